#include "tests/common/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/flags.h"
#include "cli/program.h"
#include "tests/common/caught.h"

struct options {
  struct tfc_common common;
  const char *graph, *resume, *config;
  struct tfc_texts feeds;
  int64_t steps, offset;
  double time;
  int objective;
  bool profile;
};
static const struct tfc_flag flags[] = {
    {.name = "graph",
     .kind = TFC_FLAG_TEXT,
     .offset = offsetof(struct options, graph),
     .value = "PATH",
     .required = true,
     .help = "the graph"},
    {.name = "feed",
     .kind = TFC_FLAG_TEXTS,
     .offset = offsetof(struct options, feeds),
     .value = "NAME=FILE",
     .help = "a feed"},
    {.name = "steps",
     .letter = 'n',
     .kind = TFC_FLAG_COUNT,
     .offset = offsetof(struct options, steps),
     .value = "N",
     .minimum = 1,
     .maximum = 1000,
     .help = "steps"},
    {.name = "time", .kind = TFC_FLAG_SECONDS, .offset = offsetof(struct options, time), .value = "T", .help = "time"},
    {.name = "objective",
     .kind = TFC_FLAG_CHOICE,
     .offset = offsetof(struct options, objective),
     .choices = "step|throughput",
     .help = "objective"},
    {.name = "offset",
     .kind = TFC_FLAG_COUNT,
     .offset = offsetof(struct options, offset),
     .value = "N",
     .help = "a number without limits of its own"},
    {.name = "profile", .kind = TFC_FLAG_BOOL, .offset = offsetof(struct options, profile), .help = "profile"},
    {.name = "resume",
     .kind = TFC_FLAG_OPTIONAL,
     .offset = offsetof(struct options, resume),
     .value = "RUN",
     .help = "resume"},
    {.name = "config",
     .kind = TFC_FLAG_SETTINGS,
     .offset = offsetof(struct options, config),
     .value = "FILE",
     .help = "settings"},
};
static const struct tfc_program program = {.name = "tfc-test",
                                           .summary = "tests",
                                           .usage = "tfc-test",
                                           .examples = "  tfc-test\n",
                                           .flags = flags,
                                           .flag_count = sizeof flags / sizeof *flags,
                                           .argument_max = 1};

// Parses a command line whose words are separated by single blanks; stderr goes to `caught`.
static struct test_caught caught;
static char *copies[64]; // the options point into them
static size_t copy_count;
static int parse(const char *line, struct options *o, struct tfc_texts *arguments) {
  char *copy = copies[copy_count++] = strdup(line), *argv[32] = {"tfc-test"};
  int argc = 1;
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  test_catch(&caught, stderr);
  int code = tfc_flags_parse(&program, argc, argv, o, arguments);
  test_caught_end(&caught);
  return code;
}

static void test_values(void **state) {
  (void)state;
  struct options o = {.steps = 10};
  struct tfc_texts arguments = {0};
  assert_int_equal(parse("--graph a.pb --feed x:0=x.npy --feed=y:0=y.npy -n 5 --time 90s --objective throughput show "
                         "--profile -q",
                         &o, &arguments),
                   -1);
  assert_string_equal(o.graph, "a.pb");
  assert_int_equal(o.feeds.count, 2);
  assert_string_equal(o.feeds.items[1], "y:0=y.npy");
  assert_int_equal(o.steps, 5);
  assert_true(o.time == 90);
  assert_int_equal(o.objective, 1);
  assert_true(o.profile && o.common.quiet && !o.common.json);
  assert_int_equal(arguments.count, 1);
  assert_string_equal(arguments.items[0], "show");
  free(o.feeds.items);
  free(arguments.items);
}

static void test_optional_value(void **state) {
  (void)state;
  struct options o = {0};
  assert_int_equal(parse("--graph a --resume --profile", &o, NULL), -1);
  assert_string_equal(o.resume, "");
  assert_int_equal(parse("--graph a --resume 17 --profile", &o, NULL), -1);
  assert_string_equal(o.resume, "17");
  assert_int_equal(parse("--graph a --resume", &o, NULL), -1);
  assert_string_equal(o.resume, "");
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *line, *text;
  } cases[] = {
      {"--grahp a", "unknown flag --grahp; did you mean --graph?"},
      {"--object step --graph a", "did you mean --objective?"},
      {"--xyzzyx 3", "unknown flag --xyzzyx\n"},
      {"--graph", "--graph needs a value (PATH)"},
      {"--graph --profile", "--graph needs a value (PATH), but is followed by --profile"},
      {"--profile", "--graph PATH is missing"},
      {"--graph a --steps ten", "--steps needs a whole number, not 'ten'"},
      {"--graph a --steps 0", "--steps must be between 1 and 1000, not 0"},
      {"--graph a --steps 1001", "--steps must be between 1 and 1000, not 1001"},
      {"--graph a --offset -1", "--offset must be at least 0, not -1"},
      {"--graph a --objective ste", "not 'ste'"},
      {"--graph a --objective=", "not ''"},
      {"--graph a --objective stepp", "not 'stepp'"},
      {"--graph a --time 0s", "not '0s'"},
      {"--graph a --time=-5s", "not '-5s'"},
      {"--graph a -nn 5", "unknown flag -nn"},
      {"--graph a --resume -x", "unknown flag -x"},
      {"--graph -n 5", "--graph needs a value (PATH), but is followed by -n"},
      {"--graph a --objective --time", "needs a value (step|throughput), but is followed by --time"},
      {"--graph a --objective", "--objective needs a value (step|throughput)"},
      {"--graph a more", "'more' is not a flag, and no more arguments are expected here"},
      {"--graph a --steps=-5", "--steps must be between 1 and 1000, not -5"},
      {"--graph a --time 90", "such as 90s, 10m or 1h, not '90'"},
      {"--graph a --time soon", "not 'soon'"},
      {"--graph a --objective speed", "--objective is one of step|throughput, not 'speed'"},
      {"--graph a --profile=yes", "--profile takes no value"},
      {"--graph a -z", "unknown flag -z"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct options o = {0};
    assert_int_equal(parse(cases[i].line, &o, NULL), 2);
    if (!strstr(caught.text, cases[i].text))
      fail_msg("%s: expected '%s' in: %s", cases[i].line, cases[i].text, caught.text);
    assert_non_null(strstr(caught.text, "tfc-test --help"));
  }
}

// Values that look like flags but are none, the first and the last of a choice, times in other units, and flags of all
// programs.
static void test_unusual_values(void **state) {
  (void)state;
  struct options o = {.objective = 7};
  struct tfc_texts arguments = {0};
  assert_int_equal(
      parse("--graph --strange --offset 9223372036854775807 --objective step --time 1.5m -", &o, &arguments), -1);
  assert_string_equal(o.graph, "--strange");
  assert_true(o.offset == INT64_MAX && o.objective == 0 && o.time == 90);
  assert_string_equal(arguments.items[0], "-");
  free(arguments.items);
  assert_int_equal(parse("--graph=-x --time 2h --offset 0 -v --json --color never --untrusted", &o, NULL), -1);
  assert_string_equal(o.graph, "-x");
  assert_true(o.time == 7200 && o.offset == 0 && o.common.verbose && o.common.json && o.common.color == 2);
  assert_string_equal(o.common.untrusted, ""); // its value is attached or not there
  o = (struct options){0};
  assert_int_equal(parse("--graph a --untrusted=time=5s --color=always -q --time 250ms", &o, NULL), -1);
  assert_string_equal(o.common.untrusted, "time=5s");
  assert_true(o.common.color == 1 && o.common.quiet && !o.common.verbose && o.time == 0.25);
  tfc_program_set_output(false, false, TFC_COLOR_AUTO);
}

static void test_arguments(void **state) {
  (void)state;
  struct options o = {0};
  struct tfc_texts arguments = {0};
  assert_int_equal(parse("--graph a one two", &o, &arguments), 2);
  assert_non_null(strstr(caught.text, "'two' is not a flag"));
  free(arguments.items);
  arguments = (struct tfc_texts){0};
  assert_int_equal(parse("--graph a -- --profile", &o, &arguments), -1);
  assert_string_equal(arguments.items[0], "--profile");
  free(arguments.items);
  assert_int_equal(parse("--graph a one", &o, NULL), 2);
}

// The minimum and the maximum of a number are allowed themselves.
static void test_ends_of_a_range(void **state) {
  (void)state;
  struct options o = {0};
  assert_int_equal(parse("--graph a --steps 1", &o, NULL), -1);
  assert_int_equal(o.steps, 1);
  assert_int_equal(parse("--graph a --steps 1000", &o, NULL), -1);
  assert_int_equal(o.steps, 1000);
}

// The command line has precedence over a settings file, wherever on it the file is named.
static void test_settings(void **state) {
  (void)state;
  char path[64], line[256];
  snprintf(path, sizeof path, "/tmp/tfc-flags-test-%d.yaml", (int)getpid());
  static const struct {
    const char *line;
    int64_t steps;
    int objective;
    bool profile;
  } cases[] = {{"--graph a --config %s", 7, 1, true},
               {"--graph a --steps 5 --config %s", 5, 1, true},
               {"--graph a --config %s -n 5 --objective step", 5, 0, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("steps: 7\nobjective: throughput\nprofile: true\n", file) >= 0 && fclose(file) == 0);
    struct options o = {0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, sizeof line, cases[i].line, path);
#pragma GCC diagnostic pop
    if (parse(line, &o, NULL) != -1) fail_msg("%s: %s", line, caught.text);
    assert_int_equal(o.steps, cases[i].steps);
    assert_int_equal(o.objective, cases[i].objective);
    assert_true(o.profile == cases[i].profile);
  }
  // A settings file may have what is required, lists, and "false"; what the command line has, stays.
  FILE *more = fopen(path, "w");
  assert_true(more && fputs("graph: b\nfeed: [x=1, y=2]\nprofile: false\n", more) >= 0 && fclose(more) == 0);
  struct options set = {.profile = true};
  snprintf(line, sizeof line, "--config %s", path);
  if (parse(line, &set, NULL) != -1) fail_msg("%s", caught.text);
  assert_string_equal(set.graph, "b");
  assert_true(set.feeds.count == 2 && strcmp(set.feeds.items[1], "y=2") == 0 && !set.profile);
  free(set.feeds.items);
  set = (struct options){0};
  snprintf(line, sizeof line, "--profile --feed z=3 --config %s --graph a", path);
  assert_int_equal(parse(line, &set, NULL), -1);
  assert_string_equal(set.graph, "a");
  assert_true(set.feeds.count == 1 && strcmp(set.feeds.items[0], "z=3") == 0 && set.profile);
  free(set.feeds.items);
  static const struct {
    const char *text, *said;
  } wrong[] = {{"steps: 1001\n", "between 1 and 1000"},
               {"stpes: 7\n", "did you mean 'steps'"},
               {"profile: maybe\n", "'profile' is true or false, not 'maybe'"},
               {"config: other.yaml\n", "no setting 'config'"},
               {"quiet: true\n", "no setting 'quiet'"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(wrong[i].text, file) >= 0 && fclose(file) == 0);
    struct options o = {0};
    snprintf(line, sizeof line, "--graph a --config %s", path);
    assert_int_equal(parse(line, &o, NULL), 3);
    if (!strstr(caught.text, wrong[i].said) || !strstr(caught.text, path))
      fail_msg("%s: %s", wrong[i].text, caught.text);
  }
  unlink(path);
}

static void test_exit_codes(void **state) {
  (void)state;
  static const struct {
    tfc_code code;
    int exit;
  } codes[] = {{TFC_CANCELLED, 1},   {TFC_INVALID_ARGUMENT, 3},   {TFC_UNIMPLEMENTED, 3}, {TFC_NOT_FOUND, 3},
               {TFC_UNAVAILABLE, 4}, {TFC_RESOURCE_EXHAUSTED, 5}, {TFC_DATA_LOSS, 6},     {TFC_INTERNAL, 1},
               {TFC_ABORTED, 1},     {TFC_DEADLINE_EXCEEDED, 1}};
  assert_int_equal(tfc_exit_code(NULL), 0);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    tfc_status s = tfc_status_make(codes[i].code, "x");
    assert_int_equal(tfc_exit_code(s), codes[i].exit);
    tfc_status_free(s);
  }
}

// A program's messages are written line by line: of a pipe in packet mode, every read returns what one write wrote.
static void test_a_line_is_one_write(void **state) {
  (void)state;
  int ends[2];
  if (pipe2(ends, O_DIRECT) != 0) {
    print_message("this system has no pipes in packet mode\n");
    skip();
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    unsetenv("OPENBLAS_CORETYPE"); // if it is set, the program would start itself again
    tfc_program_start("tfc-test", NULL);
    tfc_program_fail(tfc_status_make(TFC_INTERNAL, "a message with\ta tab and an escape \033[1m"));
    tfc_flags_error(&program, "%s needs %d tasks", "--async", 3);
    _exit(0);
  }
  assert_true(pid > 0);
  close(ends[1]);
  static const char *const lines[] = {"tfc-test: a message with\ta tab and an escape \\x1b[1m\n",
                                      "tfc-test: --async needs 3 tasks\n",
                                      "tfc-test --help shows what there is, with examples.\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char packet[512];
    const ssize_t size = read(ends[0], packet, sizeof packet - 1);
    packet[size > 0 ? size : 0] = 0;
    assert_string_equal(packet, lines[i]);
  }
  close(ends[0]);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_optional_value),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_exit_codes),
      cmocka_unit_test(test_ends_of_a_range),
      cmocka_unit_test(test_unusual_values),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_a_line_is_one_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
