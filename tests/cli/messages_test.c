// Tests what the programs write for people: help, versions, colours, the log, progress, and the description of a graph;
// and how processes of one host divide its cores.
#include "tests/common/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/flags.h"
#include "cli/import_note.h"
#include "cli/paragraph.h"
#include "cli/program.h"
#include "cli/progress.c"
#include "cli/task.h"
#include "runtime/base/log.h"
#include "runtime/graph/import.h"
#include "runtime/ops/blas_core.h"
#include "tests/cli/in_process.h"
#include "tests/common/caught.h"

static struct test_caught caught;
static void catch_begin(FILE *of) {
  test_catch(&caught, of);
}
static const char *catch_end(void) {
  test_caught_end(&caught);
  return caught.text;
}
static void has(const char *text) {
  if (!strstr(caught.text, text)) fail_msg("no '%s' in: %s", text, caught.text);
}
static void lacks(const char *text) {
  if (strstr(caught.text, text)) fail_msg("'%s' in: %s", text, caught.text);
}

// --- help ----------------------------------------------------------------------------------------------------------

struct options {
  struct tfc_common common;
  const char *text, *resume, *word;
  int choice;
};
static const struct tfc_flag flags[] = {{.name = "graph",
                                         .kind = TFC_FLAG_TEXT,
                                         .offset = offsetof(struct options, text),
                                         .value = "PATH",
                                         .help = "its graph"},
                                        {.name = "number",
                                         .letter = 'n',
                                         .kind = TFC_FLAG_TEXT,
                                         .offset = offsetof(struct options, word),
                                         .value = "N",
                                         .help = "how many"},
                                        {.name = "resume",
                                         .kind = TFC_FLAG_OPTIONAL,
                                         .offset = offsetof(struct options, resume),
                                         .value = "RUN",
                                         .help = "goes on"},
                                        {.name = "objective",
                                         .kind = TFC_FLAG_CHOICE,
                                         .offset = offsetof(struct options, choice),
                                         .choices = "step|throughput",
                                         .help = "what for"},
                                        {.name = "objectiv",
                                         .kind = TFC_FLAG_CHOICE,
                                         .offset = offsetof(struct options, choice),
                                         .choices = "step|throughput",
                                         .help = "shorter"}};
static const struct tfc_program program = {.name = "tfc-test",
                                           .summary = "tests",
                                           .usage = "tfc-test FLAGS",
                                           .examples = "  tfc-test --graph g.pb\n",
                                           .exit_codes = "7    seven",
                                           .flags = flags,
                                           .flag_count = sizeof flags / sizeof *flags};

static void parse(const char *first, const char *second) {
  char a[32], b[32], *argv[] = {"tfc-test", a, b, NULL};
  struct options o = {0};
  strcpy(a, first), strcpy(b, second);
  catch_begin(stdout);
  const int code = tfc_flags_parse(&program, *second ? 3 : 2, argv, &o, NULL);
  catch_end();
  assert_int_equal(code, 0);
}
// The longest line of those that begin in the column of explanations.
static size_t longest(void) {
  size_t most = 0;
  for (const char *line = caught.text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (strspn(line, " ") == 34 && strcspn(line, "\n") > most) most = strcspn(line, "\n");
  return most;
}
static void test_help(void **state) {
  (void)state;
  char line[200];
  setenv("COLUMNS", "80", 1);
  parse("--help", "");
  assert_int_equal(strncmp(caught.text,
                           "tfc-test: tests\n\nExamples\n  tfc-test --graph g.pb\n\nUsage\n  tfc-test FLAGS\n\nFlags\n",
                           80),
                   0);
  static const char *const rows[][2] = {{"      --graph PATH", "its graph"},
                                        {"  -n, --number N", "how many"},
                                        {"      --resume [RUN]", "goes on"},
                                        {"      --objectiv step|throughput", "shorter"},
                                        {"  -q, --quiet", "only results, warnings and errors"},
                                        {"  -h, --help", "print this"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(line, sizeof line, "\n%-34s%s\n", rows[i][0], rows[i][1]);
    has(line);
  }
  // A head that leaves no room has a line of its own.
  snprintf(line, sizeof line, "\n      --objective step|throughput\n%34swhat for\n", "");
  has(line);
  has("\n      --untrusted[=memory=SIZE,time=T,nodes=N]\n");
  has("\nExit codes\n  0    done\n");
  has("\n  130  interrupted; what was stored is kept\n  7    seven\n");
  // Lines are as wide as the terminal, between 60 and 110 characters.
  static const struct {
    const char *columns;
    size_t width;
  } widths[] = {{"80", 80}, {"60", 60}, {"20", 60}, {"110", 110}, {"500", 110}};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    setenv("COLUMNS", widths[i].columns, 1);
    parse("-h", "");
    assert_true(longest() <= widths[i].width && longest() > widths[i].width - 12);
  }
  unsetenv("COLUMNS");
  parse("-h", "");
  assert_true(longest() <= 80); // where it is no terminal
  parse("--version", "");
  assert_string_equal(caught.text, "tfc-test " TFC_VERSION "\n");
  parse("--color=always", "--help");
  has("\033[1mtfc-test\033[0m: tests");
  parse("--color=never", "--help");
  lacks("\033");
}

// A paragraph that begins in column 4, with an indent of 2 and at most 12 columns. The last word fits exactly; one
// character more does not.
static void test_paragraph(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"one two thr", "one two\n  thr\n"},
                                         {"one four", "one four\n"},
                                         {"one fours", "one\n  fours\n"},
                                         {"a  b", "a b\n"},
                                         {"a\nb c", "a\n  b c\n"},
                                         {"a\n", "a\n"},
                                         {"averylongwordindeed x", "\n  averylongwordindeed\n  x\n"},
                                         {"\xc3\xa4\xc3\xb6\xc3\xbc four", "\xc3\xa4\xc3\xb6\xc3\xbc four\n"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    catch_begin(stdout);
    cli_paragraph(stdout, cases[i][0], 4, 2, 12);
    assert_string_equal(catch_end(), cases[i][1]);
  }
}

// --- the log and messages ------------------------------------------------------------------------------------------

static void test_log(void **state) {
  (void)state;
  test_program_start("tfc-test");
  for (int quiet = 0; quiet < 2; quiet++)
    for (int verbose = 0; verbose < 2; verbose++) {
      tfc_program_set_output(quiet, verbose, TFC_COLOR_NEVER);
      assert_true(tfc_quiet() == (quiet == 1));
      catch_begin(stderr);
      tfc_log(TFC_LOG_DEBUG, "detail %d", 1);
      tfc_log(TFC_LOG_INFO, "news");
      tfc_log(TFC_LOG_WARNING, "careful");
      tfc_log(TFC_LOG_ERROR, "broken");
      tfc_say("said");
      tfc_warn("warned\x01\x7f");
      catch_end();
      char expected[200];
      snprintf(expected, sizeof expected, "%s%swarning: careful\nerror: broken\n%swarning: warned\\x01\\x7f\n",
               verbose && !quiet ? "detail 1\n" : "", quiet ? "" : "news\n", quiet ? "" : "said\n");
      assert_string_equal(caught.text, expected);
    }
  tfc_program_set_output(false, false, TFC_COLOR_ALWAYS);
  catch_begin(stderr);
  tfc_log(TFC_LOG_WARNING, "careful");
  tfc_log(TFC_LOG_ERROR, "broken");
  assert_string_equal(catch_end(), "\033[1;33mwarning: \033[0mcareful\n\033[1;31merror: \033[0mbroken\n");
  tfc_program_set_output(false, false, TFC_COLOR_AUTO);
  FILE *file = tmpfile();
  assert_string_equal(tfc_paint(file, "1"), ""); // a file has no colours
  fclose(file);
}

// Calls say() while stderr is a new pseudo-terminal. *out_text: what the terminal got, without the carriage returns
// that a terminal adds to line feeds. false: there are no pseudo-terminals.
static bool on_terminal(void (*say)(void), char *out_text, size_t size) {
  const int end = posix_openpt(O_RDWR | O_NOCTTY);
  const char *name = end >= 0 && grantpt(end) == 0 && unlockpt(end) == 0 ? ptsname(end) : NULL;
  const int terminal = name ? open(name, O_RDWR | O_NOCTTY) : -1;
  size_t used = 0;
  if (terminal < 0) return false;
  fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  say();
  fputs("\nEND\n", stderr);
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  for (char c; used + 1 < size && !(used > 4 && memcmp(out_text + used - 5, "\nEND\n", 5) == 0);) {
    if (read(end, &c, 1) != 1) break;
    if (c != '\r') out_text[used++] = c;
  }
  close(terminal), close(end);
  assert_true(used > 5);
  out_text[used - 5] = 0;
  return true;
}
// Ten words of 9 characters, 99 with the blanks between them.
#define TEN "word01___ word02___ word03___ word04___ word05___ word06___ word07___ word08___ word09___ word10__."
static void say_much(void) {
  tfc_warn("%s", TEN);                              // "warning: " and seven words are 78 characters
  tfc_warn("a line\n\n    %s\nthe last line", TEN); // four blanks and seven words are 73 characters
  tfc_say("%s", TEN);                               // eight words are 79
  tfc_log(TFC_LOG_ERROR, "%s", TEN);
}
// On a terminal, lines longer than 80 characters are broken between words, and go on with two blanks more than they
// begin with. Errors are not broken; where stderr is no terminal, nothing is.
static void test_long_messages(void **state) {
  (void)state;
  static const char apart[] =
      "warning: word01___ word02___ word03___ word04___ word05___ word06___ word07___\n  word08___ word09___ "
      "word10__.\n"
      "warning: a line\n\n    word01___ word02___ word03___ word04___ word05___ word06___ word07___\n"
      "      word08___ word09___ word10__.\nthe last line\n"
      "word01___ word02___ word03___ word04___ word05___ word06___ word07___ word08___\n  word09___ word10__.\n"
      "error: " TEN "\n";
  static const char whole[] =
      "warning: " TEN "\nwarning: a line\n\n    " TEN "\nthe last line\n" TEN "\nerror: " TEN "\n";
  char text[2000];
  test_program_start("tfc-test");
  tfc_program_set_output(false, false, TFC_COLOR_NEVER);
  catch_begin(stderr);
  say_much();
  assert_string_equal(catch_end(), whole);
  if (!on_terminal(say_much, text, sizeof text)) {
    print_message("this system has no pseudo-terminals\n");
    skip();
  }
  assert_string_equal(text, apart);
}

// --- progress ------------------------------------------------------------------------------------------------------

static void test_progress(void **state) {
  (void)state;
  static const struct {
    double seconds;
    const char *text;
  } left[] = {{-1, ""},          {0, "0 s left"},      {5.4, "5 s left"},    {59, "59 s left"},
              {60, "1:00 left"}, {125.9, "2:05 left"}, {3600, "60:00 left"}, {360000, "6000:00 left"},
              {360001, ""}};
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    char text[32];
    format_left(text, sizeof text, left[i].seconds);
    assert_string_equal(text, left[i].text);
  }
  // Into a file: a line now and then, and one at the end. A quarter of the work took ten seconds.
  tfc_program_set_output(false, false, TFC_COLOR_NEVER);
  catch_begin(stderr);
  tfc_progress_begin("search");
  tfc_progress_update(0.5, 3, "too soon");
  bar.last = tfc_now_ns() - INT64_C(14000000000);
  tfc_progress_update(0.5, 3, "too soon");
  bar.last = tfc_now_ns() - INT64_C(16000000000), bar.begin = tfc_now_ns() - INT64_C(10000000000);
  tfc_progress_update(0.25, -1, "%d tried", 7);
  tfc_progress_update(0.5, 3, "too soon");
  bar.last -= INT64_C(16000000000);
  tfc_progress_update(1.5, 0, "more than all");
  bar.last -= INT64_C(16000000000);
  tfc_progress_update(-1, -1, "unknown");
  bar.last -= INT64_C(16000000000);
  tfc_progress_update(0.005, -1, "just begun");
  bar.begin = tfc_now_ns() - INT64_C(2500000000);
  tfc_progress_end("%s", "done");
  tfc_progress_update(0.5, 3, "after the end");
  tfc_progress_end("again");
  catch_end();
  has("  search     25 %  7 tried, 30 s left\n");
  has("  search    100 %  more than all, 0 s left\n");
  has("  search     unknown\n");
  has("  search      0 %  just begun\n");
  has("search     done  (2.50 s)\n");
  lacks("too soon"), lacks("after the end"), lacks("again"), lacks("\r");
  // On a terminal of 80 columns. A figure keeps its unit: the bar gets shorter, and only then words go.
  char line[640];
  strcpy(bar.phase, "final");
  format_line(line, sizeof line, 80, 0.5, "best 408.8 ms", "9 s left");
  assert_string_equal(line, "\r\033[Kfinal     ████████████              best 408.8 ms  9 s left");
  format_line(line, sizeof line, 80, 0.5, "1 of 200 measured, best 408.8 ms", "9 s left");
  assert_string_equal(line, "\r\033[Kfinal     ███████████             1 of 200 measured, best 408.8 ms  9 s left");
  format_line(line, sizeof line, 80, 1, "1 of 200 measured, 17 of which are of no use at all, best 408.8 ms",
              "1:09 left");
  assert_string_equal(line, "\r\033[Kfinal     ████████  1 of 200 measured, 17 of which are of no use  1:09 left");
  format_line(line, sizeof line, 30, -1, "onewordwithoutanyspace", "");
  assert_string_equal(line, "\r\033[Kfinal               ");
  tfc_program_set_output(true, false, TFC_COLOR_NEVER);
  catch_begin(stderr);
  tfc_progress_begin("search");
  bar.last = 0;
  tfc_progress_update(0.5, 3, "quiet");
  tfc_progress_end("quiet");
  assert_string_equal(catch_end(), "");
  tfc_program_set_output(false, false, TFC_COLOR_AUTO);
}

// --- graphs --------------------------------------------------------------------------------------------------------

#define NODE(name, op, rest) "node { name: \"" name "\" op: \"" op "\" " rest " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define TYPE(key) ATTR(key, "type: DT_FLOAT")
static void describe(const char *text, const char *expected) {
  char path[] = "/tmp/tfc-messages-XXXXXX";
  const int file = mkstemp(path);
  struct tfc_graph *g = NULL;
  struct tfc_text out = {0};
  assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
  assert_ok(tfc_graph_load(path, NULL, &g));
  unlink(path);
  cli_import_describe(g, &out);
  assert_string_equal(out.data, expected);
  tfc_text_deinit(&out);
  tfc_graph_release(g);
}
static void test_descriptions(void **state) {
  (void)state;
  describe(NODE("x", "Placeholder", TYPE("dtype") ATTR("shape", "shape { dim { size: 4 } }")),
           "graph: 1 nodes of 1 types, 0 variables (0 B), no control flow, no device strings, 0 colocated nodes\n");
  // A variable of 2 x 3 numbers and one of unknown size; two operations that are not known.
  describe(
      NODE("x", "Placeholder", TYPE("dtype") ATTR("shape", "shape { dim { size: 4 } }")) NODE(
          "p", "Placeholder", ATTR("dtype", "type: DT_BOOL") ATTR("shape", "shape { }"))
          NODE("s", "Switch", "input: \"x\" input: \"p\"" TYPE("T")) NODE(
              "v", "VariableV2",
              "device: \"/device:CPU:0\"" TYPE("dtype") ATTR("shape", "shape { dim { size: 2 } dim { size: 3 } }"))
              NODE("w", "VariableV2",
                   "device: \"/device:CPU:1\"" TYPE("dtype") ATTR("shape", "shape { unknown_rank: true }"))
                  NODE("y", "Square",
                       "input: \"s:1\" device: \"/device:CPU:1\"" TYPE("T") ATTR("_class", "list { s: \"loc:@v\" }"))
                      NODE("odd", "Frobnicate", "input: \"x\"") NODE("odd2", "Frobnicate", "input: \"x\""),
      "graph: 8 nodes of 5 types, 2 variables (24 B and some of unknown size), control flow (0 nodes of loops, 1 of "
      "branches), 2 device strings, 1 colocated nodes\nnot supported: Frobnicate, 2 of them, first 'odd'\n");
}

// --- tasks ---------------------------------------------------------------------------------------------------------

// Processes of one host divide the cores that they may use; if there are fewer cores than processes, some share one.
static void test_cores(void **state) {
  (void)state;
  cpu_set_t before, own, all;
  struct cli_task_mask mask;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  const uint32_t cores = (uint32_t)CPU_COUNT(&before);
  for (uint32_t tasks = 1; tasks <= cores + 1 && tasks <= 9; tasks++) {
    CPU_ZERO(&all);
    for (uint32_t k = 0; k < tasks; k++) {
      cli_task_share_cores(&(struct tfc_transport){.beside = k, .beside_count = tasks, .count = tasks}, NULL, &mask);
      assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
      const uint32_t each = tasks <= cores ? cores / tasks : 1;
      assert_int_equal(CPU_COUNT(&own), each);
      uint32_t first = 0; // how many cores that may be used come before its own
      for (int c = 0; c < CPU_SETSIZE && !CPU_ISSET(c, &own); c++) first += CPU_ISSET(c, &before) != 0;
      assert_int_equal(first, k * each % cores);
      CPU_OR(&all, &all, &own);
      cli_task_leave_cores(&mask);
      assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
      assert_true(CPU_EQUAL(&own, &before));
    }
    assert_int_equal(CPU_COUNT(&all), tasks < cores ? cores / tasks * tasks : cores);
  }
}

// Parameter servers take no cores from workers. The ps and worker 1 are on this host, and worker 0 is on another one.
static void test_cores_of_workers(void **state) {
  (void)state;
  static const uint32_t two[] = {0, 2};
  struct tfc_cluster_spec spec = {0};
  struct cli_task_mask mask;
  cpu_set_t before, own;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  const uint32_t cores = (uint32_t)CPU_COUNT(&before), half = cores > 1 ? cores / 2 : 1;
  assert_ok(tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
  const struct {
    uint32_t beside, beside_count, cores;
    const uint32_t *ranks;
  } cases[] = {{0, 2, half, two},
               {1, 2, cores, two},
               {0, 3, cores > 2 ? cores / 3 : 1, NULL},
               {1, 3, half, NULL},
               {2, 3, half, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct tfc_transport t = {
        .count = 3, .beside = cases[i].beside, .beside_count = cases[i].beside_count, .beside_ranks = cases[i].ranks};
    cli_task_share_cores(&t, &spec, &mask);
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    assert_int_equal(CPU_COUNT(&own), cases[i].cores);
    cli_task_leave_cores(&mask);
  }
  tfc_cluster_spec_deinit(&spec);
}

static void test_started(void **state) {
  (void)state;
  static const struct {
    const char *mpi, *rank, *slurm;
    bool started;
  } cases[] = {{NULL, NULL, NULL, false}, {"2", NULL, NULL, true}, {"1", NULL, NULL, false}, {NULL, NULL, "4", false},
               {NULL, "0", "4", true},    {NULL, "0", "1", false}, {NULL, "0", NULL, false}};
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_NTASKS"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *const values[] = {cases[i].mpi, cases[i].rank, cases[i].slurm};
    for (int k = 0; k < 3; k++) values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]);
    assert_true(cli_task_started() == cases[i].started);
  }
}

static void test_specs(void **state) {
  (void)state;
  struct tfc_cluster_spec spec = {0};
  struct tfc_transport *t = NULL;
  assert_ok(cli_task_spec("ps=1,worker=2", &spec));
  assert_int_equal(spec.tasks.count, 3);
  tfc_cluster_spec_deinit(&spec);
  assert_fails(cli_task_spec("ps=x", &spec), TFC_INVALID_ARGUMENT, "--cluster ps=x");
  assert_fails(cli_task_spec("no/such/file", &spec), TFC_NOT_FOUND, "no/such/file");
  assert_ok(cli_task_spec("worker=1", &spec));
  assert_ok(cli_task_connect(&spec, "worker=1", &t)); // one task needs no other process
  assert_true(t->count == 1 && t->rank == 0);
  tfc_transport_close(t);
  tfc_cluster_spec_deinit(&spec);
}

// OpenBLAS has kernels with AVX2 for each processor that has it, also if the processor is newer than the library.
static void test_kernels_fit_the_processor(void **state) {
  (void)state;
#if defined(__x86_64__)
  static const char *const without[] = {"Prescott", "Core2", "Penryn", "Dunnington", "Atom", "Nehalem", "Sandybridge"};
  __builtin_cpu_init();
  if (getenv("OPENBLAS_CORETYPE") || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  tfc_program_choose_blas();
  assert_null(getenv("OPENBLAS_CORETYPE"));
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) assert_string_not_equal(tfc_blas_core(), without[i]);
#endif
}

// Devices of CPUs are opened from cpu:0 on, up to the last one that is named, in whatever order; GPUs one by one.
static void test_devices_of_a_task(void **state) {
  (void)state;
  static const struct {
    const char *names, *task, *list;
  } cases[] = {
      {"/job:worker/task:0/device:CPU:0,/job:worker/task:0/device:CPU:3", "/job:worker/task:0", "cpu:0-3"},
      {"/job:worker/task:0/device:CPU:2,/job:worker/task:0/device:CPU:1", "/job:worker/task:0", "cpu:0-2"},
      {"/job:worker/task:*/device:CPU:1,/job:worker/task:0/device:CPU:7", "/job:worker/task:1", "cpu:0-1"},
      {"/job:worker/task:*/device:CPU:*", "/job:worker/task:1", "cpu:0"},
      {"/job:worker/task:0/device:CPU:5", "/job:worker/task:1", "cpu:0"},
      {"/job:worker/task:0/device:GPU:1,/job:worker/task:0/device:CPU:2", "/job:worker/task:0", "cpu:0-2,gpu:1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *list = NULL;
    assert_ok(cli_task_devices(cases[i].names, cases[i].task, &list));
    assert_string_equal(list, cases[i].list);
    free(list);
  }
  char *list = NULL;
  assert_fails(cli_task_devices("/job:worker/task:0/device:TPU:0", "/job:worker/task:0", &list), TFC_INVALID_ARGUMENT,
               "CPU:N or GPU:N");
  assert_fails(cli_task_devices("cpu:0", "/job:worker/task:0", &list), TFC_INVALID_ARGUMENT, "/device:TYPE:N");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_devices_of_a_task),
                                     cmocka_unit_test(test_help),
                                     cmocka_unit_test(test_kernels_fit_the_processor),
                                     cmocka_unit_test(test_paragraph),
                                     cmocka_unit_test(test_log),
                                     cmocka_unit_test(test_long_messages),
                                     cmocka_unit_test(test_progress),
                                     cmocka_unit_test(test_descriptions),
                                     cmocka_unit_test(test_cores),
                                     cmocka_unit_test(test_cores_of_workers),
                                     cmocka_unit_test(test_started),
                                     cmocka_unit_test(test_specs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
