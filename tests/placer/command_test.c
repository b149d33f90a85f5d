// Tests the lines that tfc and a measuring program exchange: correct lines, and every way in which a line can be wrong.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "placer/measure/command.h"
#include "placer/measure/command_wire.h"
#include "placer/measure/lines.h"
#include "placer/model/placement_json.h"
#include "runtime/base/clock.h"

static tfc_status read_answer(const char *line, uint64_t id, struct tfc_command_answer *answer) {
  uint64_t got = 0;
  return tfc_command_read_answer(tfc_str_from(line), id, answer, &got);
}

static void answers_are_read(void **state) {
  (void)state;
  struct tfc_command_answer a = {0};
  assert_ok(
      read_answer("{\"id\": 7, \"step_us\": [12.5, 13], \"more\": {\"x\": 1}, \"operations\": [{\"node\": \"a\", "
                  "\"device\": \"acc:0\", \"start_us\": 0.0, \"time_us\": 5.5}], \"transfers\": [{\"node\": \"a\", "
                  "\"output\": 0, \"from\": \"acc:0\", \"to\": \"acc:1\", \"start_us\": 5.5, \"time_us\": 2}]}",
                  7, &a));
  assert_int_equal(a.state, TFC_RESULT_OK);
  assert_int_equal(a.step_us.count, 2);
  assert_true(a.step_us.data[0] == 12.5 && a.step_us.data[1] == 13);
  assert_int_equal(a.operations.count, 1);
  assert_true(tfc_str_is(a.operations.data[0].device, "acc:0") && a.operations.data[0].time_us == 5.5);
  assert_int_equal(a.transfers.count, 1);
  assert_true(tfc_str_is(a.transfers.data[0].to, "acc:1") && a.transfers.data[0].start_us == 5.5);
  assert_ok(read_answer("{\"id\": 8, \"fits\": false}", 8, &a));
  assert_int_equal(a.state, TFC_RESULT_NO_FIT);
  assert_int_equal(a.step_us.count, 0);
  assert_ok(read_answer("{\"id\": 9, \"error\": \"the cluster is gone\"}", 9, &a));
  assert_int_equal(a.state, TFC_RESULT_FAILED);
  assert_string_equal(a.message, "the cluster is gone");
  tfc_command_answer_deinit(&a);
}

static void nonsense_is_no_answer(void **state) {
  (void)state;
  struct tfc_command_answer a = {0};
  static const char *const wrong[] = {
      "",
      "hello",
      "[1, 2]",
      "{}",
      "{\"id\": 7}",
      "{\"id\": 7, \"step_us\": []}",
      "{\"id\": 7, \"step_us\": 5}",
      "{\"id\": 7, \"step_us\": [\"5\"]}",
      "{\"id\": 7, \"step_us\": [0]}",
      "{\"id\": 7, \"step_us\": [-1]}",
      "{\"id\": 7, \"step_us\": [NaN]}",
      "{\"id\": 7, \"step_us\": [1e999]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [{\"node\": \"a\"}]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [{\"node\": \"a\", \"device\": \"b\", \"time_us\": -1}]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [3]}",
#define OPERATION(start, time) "{\"node\": \"a\", \"device\": \"b\", \"start_us\": " start ", \"time_us\": " time "}"
      "{\"id\": 7, \"step_us\": [5], \"operations\": [" OPERATION("0", "1e300") "]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [" OPERATION("1e300", "1") "]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [" OPERATION("-1e300", "1") "]}",
      "{\"id\": 7, \"step_us\": [5], \"operations\": [" OPERATION("0", "6e14") ", " OPERATION("0", "6e14") "]}",
      "{\"id\": 7, \"step_us\": [5], \"transfers\": [{\"node\": \"a\", \"from\": \"b\", \"to\": \"c\", \"time_us\": "
      "1e300}]}",
      "{\"id\": 7, \"step_us\": [5], \"transfers\": {}}",
      "{\"id\": \"7\", \"step_us\": [5]}",
      "{\"id\": 7, \"fits\": 3}",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tfc_status s = read_answer(wrong[i], 7, &a);
    if (tfc_status_code(s) != TFC_INVALID_ARGUMENT) fail_msg("'%s' was taken", wrong[i]);
    assert_int_equal(a.state, TFC_RESULT_FAILED);
    assert_int_equal(a.step_us.count, 0);
    tfc_status_free(s);
  }
  assert_fails(read_answer("{\"id\": 7, \"step_us\": [5], \"transfers\": [3]}", 7, &a), TFC_INVALID_ARGUMENT,
               "\"transfers\"[0] is not an object");
  assert_fails(read_answer("{\"id\": 6, \"step_us\": [5]}", 7, &a), TFC_OUT_OF_RANGE, "to 6 and not to 7");
  tfc_command_answer_deinit(&a);
}

static void ready_lines(void **state) {
  (void)state;
  struct tfc_command_ready r;
  assert_ok(tfc_command_read_ready(TFC_STR("{\"ready\": true, \"label\": \"emulated\", \"operations\": true}"), &r));
  assert_int_equal(r.label, TFC_LABEL_EMULATED);
  assert_true(r.operations);
  assert_ok(tfc_command_read_ready(TFC_STR("{\"ready\": true}"), &r));
  assert_int_equal(r.label, TFC_LABEL_MEASURED);
  assert_false(r.operations);
  assert_fails(tfc_command_read_ready(TFC_STR("{\"ready\": false, \"error\": \"no GPU\"}"), &r), TFC_INVALID_ARGUMENT,
               "no GPU");
  assert_fails(tfc_command_read_ready(TFC_STR("{\"ready\": true, \"label\": \"guessed\"}"), &r), TFC_INVALID_ARGUMENT,
               "guessed");
  assert_fails(tfc_command_read_ready(TFC_STR("Welcome!"), &r), TFC_INVALID_ARGUMENT, "Welcome!");
}

// --- Running a program ---------------------------------------------------------------------------------------------
static struct tfc_placement *one_node(void) {
  struct tfc_placement *p = NULL;
  assert_ok(
      tfc_placement_parse(TFC_STR("{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a \\\"b\\\"\": "
                                  "\"acc:0\"}, \"order\": {\"a \\\"b\\\"\": 3}}"),
                          "test", &p));
  return p;
}

static const tfc_str device = {"acc:0", 5};
static struct tfc_command_options options_of(const char *command) {
  return (struct tfc_command_options){.command = command,
                                      .graph = "g.json",
                                      .machine = "m.yaml",
                                      .devices = &device,
                                      .device_count = 1,
                                      .stderr_to = -1};
}

#define READY "read hello; echo '{\"ready\": true}'; "

static void requests_say_it_all(void **state) {
  (void)state;
  // The program reports an error whose text is everything that it was sent: the hello, the request, and the file's
  // content.
  struct tfc_command_options o = options_of("read -r hello; echo '{\"ready\": true}'; read -r line; echo \"$hello\" "
                                            ">&2; echo \"$line\" >&2; f=$(echo \"$line\" | sed "
                                            "'s/.*\"file\": \"\\([^\"]*\\)\".*/\\1/'); grep -c tfc-placement \"$f\" "
                                            ">&2; echo '{\"id\": 1, \"step_us\": [4]}'; read -r l");
  int ends[2];
  char text[2048];
  struct tfc_command *c = NULL;
  struct tfc_command_answer a = {0};
  struct tfc_placement *p = one_node();
  assert_int_equal(pipe(ends), 0);
  o.stderr_to = ends[1];
  assert_ok(tfc_command_start(&o, &c));
  assert_ok(tfc_command_ask(c, p, 2, 6, &a));
  assert_int_equal(a.state, TFC_RESULT_OK);
  tfc_command_stop(c);
  close(ends[1]);
  size_t size = 0;
  for (ssize_t n; (n = read(ends[0], text + size, sizeof text - 1 - size)) > 0;) size += (size_t)n;
  text[size] = 0;
  close(ends[0]);
  assert_non_null(strstr(text, "{\"format\": \"tfc-measure\", \"version\": 1, \"graph\": \"g.json\", \"machine\": "
                               "\"m.yaml\", \"devices\": [\"acc:0\"]}\n"));
  assert_non_null(strstr(text,
                         "{\"id\": 1, \"placement\": {\"a \\\"b\\\"\": \"acc:0\"}, \"order\": {\"a \\\"b\\\"\": 3}, "
                         "\"file\": \""));
  assert_non_null(strstr(text, "\"warmup\": 2, \"steps\": 6}\n1\n"));
  tfc_placement_free(p);
  tfc_command_answer_deinit(&a);
}

// Asks until an answer is valid or `most` attempts have failed; returns how many failed.
static uint32_t failures(struct tfc_command *c, uint32_t most) {
  struct tfc_command_answer a = {0};
  struct tfc_placement *p = one_node();
  uint32_t failed = 0;
  while (failed < most) {
    assert_ok(tfc_command_ask(c, p, 1, 1, &a));
    if (a.state == TFC_RESULT_OK) break;
    assert_non_null(a.message);
    failed++;
  }
  tfc_placement_free(p);
  tfc_command_answer_deinit(&a);
  return failed;
}

// A program that fails once costs one measurement. It is started again only if it ended.
static void what_goes_wrong_costs_one_reading(void **state) {
  (void)state;
  static const struct {
    const char *once;
    uint32_t restarts;
  } cases[] = {{"exit 3", 1},         {"kill -9 $$", 1},
               {"exec sleep 100", 1}, {"exec >&-; sleep 100", 1},
               {"echo nonsense", 0},  {"echo '{\"id\": 77, \"step_us\": [1]}'", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char mark[] = "/tmp/tfc-command-test-XXXXXX", text[512];
    int fd = mkstemp(mark); // while this file exists, the program has not failed yet
    assert_true(fd >= 0);
    close(fd);
    snprintf(
        text, sizeof text,
        READY
        "while read -r line; do id=$(echo \"$line\" | sed 's/^{\"id\": \\([0-9]*\\).*/\\1/'); if rm %s 2>/dev/null; "
        "then %s; else echo \"{\\\"id\\\": $id, \\\"step_us\\\": [4]}\"; fi; done",
        mark, cases[i].once);
    struct tfc_command_options o = options_of(text);
    struct tfc_command *c = NULL;
    o.timeout_s = 1;
    assert_ok(tfc_command_start(&o, &c));
    assert_int_equal(failures(c, 3), 1);
    assert_int_equal(failures(c, 3), 0);
    assert_int_equal(tfc_command_restarts(c), cases[i].restarts);
    tfc_command_stop(c);
  }
}

static void an_answer_that_comes_twice_costs_one_reading(void **state) {
  (void)state;
  struct tfc_command *c = NULL;
  struct tfc_command_options o = options_of(
      READY "read -r line; echo '{\"id\": 1, \"step_us\": [4]}'; echo '{\"id\": 1, \"step_us\": [4]}'; id=1; "
            "while read -r line; do id=$((id + 1)); echo \"{\\\"id\\\": $id, \\\"step_us\\\": [4]}\"; done");
  assert_ok(tfc_command_start(&o, &c));
  assert_int_equal(failures(c, 9), 0);
  assert_int_equal(failures(c, 9), 1);
  assert_int_equal(failures(c, 9), 0);
  assert_int_equal(tfc_command_restarts(c), 0);
  tfc_command_stop(c);
}

static void a_program_that_always_ends_is_given_up(void **state) {
  (void)state;
  struct tfc_command *c = NULL;
  struct tfc_command_options o = options_of("echo broken >&2; exit 7");
  assert_fails(tfc_command_start(&o, &c), TFC_UNAVAILABLE, "it ended with code 7: broken; it was started 4 times");
  o = options_of(READY "read -r line; exit 1");
  assert_ok(tfc_command_start(&o, &c));
  struct tfc_command_answer a = {0};
  struct tfc_placement *p = one_node();
  for (int i = 0; i < 4; i++) assert_ok(tfc_command_ask(c, p, 1, 1, &a));
  assert_fails(tfc_command_ask(c, p, 1, 1, &a), TFC_UNAVAILABLE, "started 4 times");
  tfc_command_stop(c);
  tfc_placement_free(p);
  tfc_command_answer_deinit(&a);
}

// A large request, which does not fit into a pipe's buffer, goes to a program that writes a lot before it reads:
// neither side may block the other.
static void nobody_waits_for_the_other(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct tfc_placement *p = NULL;
  struct tfc_command *c = NULL;
  struct tfc_command_answer a = {0};
  tfc_text_printf(&text, "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {");
  for (int i = 0; i < 20000; i++) tfc_text_printf(&text, "%s\"node%d\": \"acc:0\"", i ? ", " : "", i);
  tfc_text_printf(&text, "}}");
  assert_ok(tfc_placement_parse((tfc_str){text.data, text.size}, "test", &p));
  struct tfc_command_options o = options_of(
      READY "head -c 300000 /dev/zero | tr '\\0' 'x' >&2; head -c 300000 /dev/zero | tr '\\0' ' '; read -r line; echo "
            "'{\"id\": 1, \"step_us\": [4]}'; cat > /dev/null");
  assert_ok(tfc_command_start(&o, &c));
  assert_ok(tfc_command_ask(c, p, 1, 1, &a));
  assert_int_equal(a.state, TFC_RESULT_OK);
  tfc_command_stop(c);
  tfc_placement_free(p);
  tfc_text_deinit(&text);
  tfc_command_answer_deinit(&a);
}

static void closing_its_stdin_ends_it(void **state) {
  (void)state;
  char mark[] = "/tmp/tfc-command-test-XXXXXX", text[256];
  struct tfc_command *c = NULL;
  int fd = mkstemp(mark);
  assert_true(fd >= 0);
  close(fd);
  snprintf(text, sizeof text, READY "cat > /dev/null; rm %s",
           mark); // removes the file when its input ends; stopping gives it time for that
  struct tfc_command_options o = options_of(text);
  assert_ok(tfc_command_start(&o, &c));
  assert_int_equal(access(mark, F_OK), 0);
  tfc_command_stop(c);
  assert_int_equal(access(mark, F_OK), -1);
  // A command that does not end when its standard input is closed is killed, with the processes that it started.
  o = options_of(READY "sleep 1000 & echo $! >&2; sleep 1000");
  int ends[2];
  char number[32] = "", path[64];
  assert_int_equal(pipe(ends), 0);
  o.stderr_to = ends[1];
  assert_ok(tfc_command_start(&o, &c));
  tfc_command_stop(c);
  assert_true(read(ends[0], number, sizeof number - 1) > 0);
  close(ends[0]), close(ends[1]);
  // after the process has become a zombie this path can no longer be read
  snprintf(path, sizeof path, "/proc/%d/cwd", atoi(number));
  for (int i = 0; i < 100 && access(path, F_OK) == 0; i++) tfc_sleep_ns(10000000);
  assert_int_not_equal(access(path, F_OK), 0);
}

// A command that writes without end is cut off: on stdout, whole lines or one that never ends, and on stderr, where
// each reading ends by its own time.
static void floods_end(void **state) {
  (void)state;
  static const struct {
    const char *command;
    tfc_code code; // of the exchange
    int64_t left_ns;
  } floods[] = {{"yes", TFC_OK, 300000000},
                {"yes >&2", TFC_DEADLINE_EXCEEDED, 300000000},
                {"sleep 0.2; exec cat /dev/zero", TFC_DEADLINE_EXCEEDED, 1}, // it begins while it is stopped
                {"cat /dev/zero >&2", TFC_DEADLINE_EXCEEDED, 300000000}};
  for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
    struct tfc_lines *l = NULL;
    tfc_str line;
    int64_t left_ns = floods[i].left_ns;
    const double begin = tfc_now_s();
    assert_ok(tfc_lines_start(floods[i].command, -1, &l));
    tfc_status s = tfc_lines_exchange(l, (tfc_str){0}, 1 << 20, &left_ns, NULL, &line);
    if (tfc_status_code(s) != floods[i].code)
      fail_msg("%s: %s", floods[i].command, s ? tfc_status_message(s) : "no error");
    tfc_status_free(s);
    assert_true(tfc_now_s() - begin < 20);
    free(tfc_lines_stop(l, false));
    if (tfc_now_s() - begin > 40) fail_msg("%s: stopped after %g s", floods[i].command, tfc_now_s() - begin);
  }
}

// How many bytes of memory the process has held at most.
static size_t most_memory(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return (size_t)usage.ru_maxrss << 10;
}

// A line that does not end is given up long before it takes much memory: in place of "ready" as well as of an answer.
// An answer that says all about a graph of many nodes is longer, and read.
static void a_line_has_a_longest_length(void **state) {
  (void)state;
  struct tfc_command *c = NULL;
  struct tfc_command_answer a = {0};
  struct tfc_placement *p = one_node();
  const size_t before = most_memory();
  const double begin = tfc_now_s();
  struct tfc_command_options o = options_of("exec cat /dev/zero");
  assert_fails(tfc_command_start(&o, &c), TFC_UNAVAILABLE, "a line of more than 1048576 bytes");
  o = options_of(READY "read -r line; exec cat /dev/zero");
  assert_ok(tfc_command_start(&o, &c));
  assert_ok(tfc_command_ask(c, p, 1, 1, &a));
  assert_int_equal(a.state, TFC_RESULT_FAILED);
  assert_non_null(strstr(a.message, "a line of more than 10"));
  tfc_command_stop(c);
  tfc_placement_free(p);
#ifndef TFC_SANITIZED // the sanitizer keeps what was freed
  if (most_memory() - before > 16 << 20) fail_msg("%zu bytes were held", most_memory() - before);
#else
  (void)before;
#endif
  assert_true(tfc_now_s() - begin < 30);

  struct tfc_text text = {0}, program = {0};
  tfc_text_printf(&text, "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {");
  for (int i = 0; i < 20000; i++) tfc_text_printf(&text, "%s\"n%d\": \"acc:0\"", i ? ", " : "", i);
  tfc_text_printf(&text, "}}");
  assert_ok(tfc_placement_parse((tfc_str){text.data, text.size}, "test", &p));
  // eight transfers and an operation of each node, 900 bytes
  tfc_text_printf(&program, READY "read -r line; awk 'BEGIN { printf \"{\\\"id\\\": 1, \\\"step_us\\\": [4]\"; "
                                  "for (part = 0; part < 9; part++) { printf part == 0 ? \", \\\"operations\\\": [\" : "
                                  "part == 1 ? \"], \\\"transfers\\\": [\" : \", \"; for (i = 0; i < 20000; i++) "
                                  "printf \"%%s{\\\"node\\\": \\\"n%%d\\\", \\\"device\\\": \\\"acc:0\\\", "
                                  "\\\"from\\\": \\\"acc:0\\\", \\\"to\\\": \\\"acc:1\\\", \\\"start_us\\\": 1, "
                                  "\\\"time_us\\\": 2}\", i ? \", \" : \"\", i } print \"]}\" }'; cat >/dev/null");
  o = options_of(program.data);
  assert_ok(tfc_command_start(&o, &c));
  assert_ok(tfc_command_ask(c, p, 1, 1, &a));
  if (a.state != TFC_RESULT_OK) fail_msg("%s", a.message);
  assert_int_equal(a.operations.count, 20000);
  assert_int_equal(a.transfers.count, 160000);
  tfc_command_stop(c);
  tfc_placement_free(p);
  tfc_text_deinit(&text);
  tfc_text_deinit(&program);
  tfc_command_answer_deinit(&a);
}

static void cancelling_does_not_wait(void **state) {
  (void)state;
  struct tfc_command *c = NULL;
  struct tfc_command_answer a = {0};
  struct tfc_placement *p = one_node();
  atomic_bool cancel = false;
  struct tfc_command_options o = options_of(READY "exec cat > /dev/null");
  o.cancel = &cancel;
  assert_ok(tfc_command_start(&o, &c));
  atomic_store(&cancel, true);
  assert_fails(tfc_command_ask(c, p, 1, 1, &a), TFC_CANCELLED, "");
  tfc_command_stop(c);
  tfc_placement_free(p);
  tfc_command_answer_deinit(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_read),
      cmocka_unit_test(nonsense_is_no_answer),
      cmocka_unit_test(ready_lines),
      cmocka_unit_test(requests_say_it_all),
      cmocka_unit_test(what_goes_wrong_costs_one_reading),
      cmocka_unit_test(an_answer_that_comes_twice_costs_one_reading),
      cmocka_unit_test(a_program_that_always_ends_is_given_up),
      cmocka_unit_test(nobody_waits_for_the_other),
      cmocka_unit_test(closing_its_stdin_ends_it),
      cmocka_unit_test(floods_end),
      cmocka_unit_test(a_line_has_a_longest_length),
      cmocka_unit_test(cancelling_does_not_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
