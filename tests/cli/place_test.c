// Tests tfc-place on cost graphs, as outside programs call it: what it prints, what it writes, every exit code.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/large_problem.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "place")) return -1;
  command_put(
      folder, "g.json",
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
      "{\"name\": \"a\", \"time_us\": {\"acc\": 10}, \"memory\": 1000},"
      "{\"name\": \"b\", \"time_us\": {\"acc\": 50}, \"memory\": 1000},"
      "{\"name\": \"c\", \"time_us\": {\"acc\": 50}, \"memory\": 1000},"
      "{\"name\": \"d\", \"time_us\": {\"acc\": 10}, \"memory\": 1000}],"
      "\"edges\": [{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1000}, {\"from\": \"a\", \"to\": \"c\", \"bytes\": "
      "1000},"
      "{\"from\": \"b\", \"to\": \"d\", \"bytes\": 1000}, {\"from\": \"c\", \"to\": \"d\", \"bytes\": 1000}]}");
  command_put(folder, "chain.json",
              "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
              "{\"name\": \"a\", \"time_us\": {\"acc\": 10}}, {\"name\": \"b\", \"time_us\": {\"acc\": 50}}],"
              "\"edges\": [{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1000}]}");
  command_put(folder, "m.yaml",
              "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, memory: 4kB, count: 2}\n"
              "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 1GB/s}\n");
  command_put(folder, "half.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a\": \"acc:0\", \"b\": \"acc:0\", "
              "\"c\": \"acc:1\", \"d\": \"acc:0\"}}");
  command_put(folder, "gone.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a\": \"gpu:9\", \"b\": \"acc:0\"}}");
  command_put(folder, "less.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a\": \"acc:0\", \"b\": \"acc:0\"}}");
  large_problem_put(folder);
  command_put(folder, "settings.yaml", "# settings\nseed: 7\nevaluations: 500\nmemory: {\"acc:*\": 3kB}\n");
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define PLACE "cd %s && tfc-place --machine m.yaml "

// Returns the document of a successful call. It must be all that the program writes to stdout.
static json_t *document(int expected, const char *arguments) {
  const struct command_result *r = command(PLACE "%s --json", folder, arguments);
  if (r->code != expected) fail_msg("%s: exit %d: %s", arguments, r->code, r->err);
  json_error_t error;
  json_t *d = json_loads(r->out, 0, &error);
  if (!d) fail_msg("%s: %s in: %s", arguments, error.text, r->out);
  assert_string_equal(json_string_value(json_object_get(d, "format")), "tfc-placement");
  return d;
}
static double value(const json_t *d) {
  return json_number_value(json_object_get(d, "value_us"));
}

static void test_evaluate(void **state) {
  (void)state;
  json_t *d = document(0, "--graph g.json --evaluate half.json");
  assert_true(value(d) == 10 + 2 + 50 + 2 + 10); // a, its transfer, c, its transfer, d
  assert_int_equal(json_integer_value(json_object_get(d, "transfers")), 2);
  json_decref(d);
  d = document(0, "--graph g.json --evaluate single:acc:1");
  assert_true(value(d) == 120);
  json_decref(d);
  assert_exit(1, "", "test -e %s/g.placement.json", folder); // nothing is written unless --out is given
  d = document(5, "--graph g.json --evaluate single:acc:0 --memory 'acc:0=3999'");
  assert_true(json_is_false(json_object_get(d, "feasible")));
  json_decref(d);
}

static void test_search(void **state) {
  (void)state;
  json_t *a = document(0, "--graph g.json --evaluations 2000 --seed 5"), *b;
  assert_true(value(a) == 72);
  assert_exit(0, "", "test -e %s/g.placement.json", folder);
  b = document(0, "--graph g.json --evaluations 2000 --seed 5 --threads 1 --out other.json");
  json_object_del(a, "graph"), json_object_del(b, "graph");
  assert_true(json_equal(a, b)); // the result is the same on any number of cores
  json_decref(a);
  json_decref(b);
  b = document(7, "--graph chain.json --evaluations 100"); // no placement is faster than one device (exit code 7), but
                                                           // the document has an answer
  assert_true(value(b) == 60);
  json_decref(b);
  b = document(0, "--graph g.json --config settings.yaml");
  assert_int_equal(json_integer_value(json_object_get(b, "seed")), 7);
  json_decref(b);
}

static void test_exit_codes(void **state) {
  (void)state;
  assert_exit(2, "did you mean --graph?", "tfc-place --grph x");
  assert_exit(2, "--graph PATH is missing", "tfc-place --devices 4");
  assert_exit(2, "did you mean anneal?", PLACE "--graph g.json --algorithm aneal", folder);
  assert_exit(2, "--machine", "cd %s && tfc-place --graph g.json", folder);
  assert_exit(2, "'DEVICE=SIZE'", PLACE "--graph g.json --memory 3GB", folder);
  assert_exit(2, "'a(b' is no regular expression", PLACE "--graph g.json --pin 'a(b=acc:0'", folder);
  assert_exit(2, "'(' is no regular expression", PLACE "--graph g.json --pin '(=acc:0'", folder);
  assert_exit(2, "--algorithm", PLACE "--graph g.json --algorithm ''", folder);
  assert_exit(2, "not a run's number", PLACE "--graph g.json --resume x", folder);
  assert_exit(2, "--resume goes on with a search", PLACE "--graph g.json --resume --evaluate half.json", folder);
  assert_exit(3, "none.db", PLACE "--graph g.json --resume --db none.db", folder);
  assert_exit(0, "", "test ! -e %s/none.db", folder);
  assert_exit(2, "--feed", PLACE "--graph g.json --feed 'x=int32[2]'", folder);
  assert_exit(2, "--fetch", PLACE "--graph g.json --fetch a:0", folder);
  assert_exit(3, "nothere.json", PLACE "--graph nothere.json", folder);
  assert_exit(3, "nothere.yaml", "cd %s && tfc-place --graph g.json --machine nothere.yaml", folder);
  assert_exit(3, "'c'", PLACE "--graph g.json --evaluate less.json", folder);
  assert_exit(4, "gpu:9", PLACE "--graph g.json --evaluate gone.json", folder);
  assert_exit(4, "acc:5", PLACE "--graph g.json --devices acc:5", folder);
  assert_exit(4, "gpu:9", PLACE "--graph g.json --evaluate gone.json --pin nothing=acc:0", folder);
  assert_exit(4, "acc:9", PLACE "--graph g.json --pin nothing=acc:0 --pin a=acc:9", folder);
  assert_exit(3, "nothing", PLACE "--graph g.json --pin nothing=acc:0", folder);
  assert_exit(5, "acc:0 holds 3.0 kB, 500 B over its limit of 2.5 kB",
              PLACE "--graph g.json --evaluate half.json --memory 'acc:0=2500'", folder);
  assert_exit(5, "acc:0 holds", PLACE "--graph g.json --evaluations 100 --memory 'acc:*=1500' --json", folder);
  assert_exit(5, "acc:0 holds 4.0 kB, 1 B over", PLACE "--graph g.json --evaluate single:acc:0 --memory 'acc:0=3999'",
              folder);
  assert_null(strstr(command(PLACE "--graph g.json --evaluations 100 --memory 'acc:*=1500'", folder)->out, "gap at"));
  assert_exit(6, "/proc/x", PLACE "--graph g.json --evaluations 100 --out /proc/x", folder);
  // No input is overwritten, by whichever path it is named.
  assert_exit(6, "it is a file that is read", PLACE "--graph g.json --evaluations 100 --out ./g.json", folder);
  assert_exit(6, "it is a file that is read", PLACE "--graph g.json --evaluate half.json --out ./half.json", folder);
  assert_exit(0, "", "grep -q cost-graph %s/g.json && grep -q acc:1 %s/half.json", folder, folder);
  assert_exit(3, "no setting 'sed'; did you mean 'seed'?",
              "cd %s && echo 'sed: 3' >bad.yaml && tfc-place --machine m.yaml --graph g.json --config bad.yaml",
              folder);
  assert_exit(0, "", "tfc-place --algorithm help");
  assert_exit(0, "", "tfc-place --help");
  assert_exit(0, "", "tfc-place --version");
}

// --policy takes the shipped policy, none, another file, or a policy that a run saved.
static void test_policy(void **state) {
  (void)state;
  assert_exit(2, "controls", PLACE "--graph large.json --algorithm rl --policy none", folder);
  assert_exit(2, "controls", PLACE "--graph large.json --algorithm heft,rl --policy none", folder);
  assert_exit(2, "--save-policy", PLACE "--graph g.json --policy none --save-policy p.json", folder);
  assert_exit(3, "nothere.json", PLACE "--graph g.json --policy nothere.json", folder);
  assert_exit(3, "m.yaml", PLACE "--graph g.json --policy m.yaml", folder);
  assert_exit(3, "g.json: not a policy", PLACE "--graph g.json --policy g.json", folder);
  assert_exit(6, "/proc/x", PLACE "--graph large.json --algorithm rl --evaluations 5 --save-policy /proc/x", folder);
  json_t *first = document(0, "--graph large.json --algorithm rl --evaluations 60 --save-policy p.json");
  json_t *again = document(0, "--graph large.json --algorithm rl --evaluations 1 --policy p.json");
  json_t *none = document(0, "--graph large.json --algorithm auto --evaluations 300 --policy none");
  assert_int_equal(json_integer_value(json_object_get(first, "evaluations")), 60);
  assert_true(value(again) ==
              value(first)); // the first rollout of the saved policy is the best of the run that saved it
  assert_true(value(none) > 0);
  json_decref(first), json_decref(again), json_decref(none);
  static const char *const controls[] = {"policy-random", "policy-anneal", "policy-untrained"};
  for (int i = 0; i < 3; i++) {
    const struct command_result *r = command(
        PLACE "--graph large.json --algorithm %s --evaluations 30 --policy none --json -q", folder, controls[i]);
    assert_true(r->code == 0 || r->code == 7);
    assert_non_null(strstr(r->out, "\"evaluations\": 30"));
  }
}

// A step whose operations all take no time is an answer like others, with a report.
static void test_no_time(void **state) {
  (void)state;
  command_put(folder, "zero.json",
              "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
              "{\"name\": \"a\", \"time_us\": {\"acc\": 0}}, {\"name\": \"b\", \"time_us\": {\"acc\": 0}}],"
              "\"edges\": [{\"from\": \"a\", \"to\": \"b\", \"bytes\": 0}]}");
  const struct command_result *r = command(PLACE "--graph zero.json --evaluations 30", folder);
  if (r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  assert_non_null(strstr(r->out, "best single device: 0.00 us (1.000 times as long)"));
  assert_non_null(strstr(r->out, "Written: zero.report/index.html"));
  assert_null(strstr(r->out, "nan"));
  assert_exit(0, "", "cd %s && test -s zero.placement.json && ! grep -qw nan zero.report/index.html", folder);
}

// The report of a modelled run is one page, by default in the graph's folder. An error of its path is reported before
// the search.
static void test_report(void **state) {
  (void)state;
  const struct command_result *r = command(
      "cd %s && cp g.json j.json && tfc-place --graph j.json --machine m.yaml --evaluations 30 -q --report rep && "
      "grep -c '<h2>' rep/index.html && grep -o 'acc:1' rep/index.html | head -1; ls -d j.report",
      folder);
  assert_non_null(strstr(r->out, "acc:1"));
  assert_null(strstr(r->out, "j.report"));
  r = command("cd %s && cp g.json h.json && tfc-place --graph h.json --machine m.yaml --evaluations 30 -q; "
              "test -f h.report/index.html",
              folder);
  assert_int_equal(r->code, 0);
  // What the page says of the step is on the terminal, too. There is no database that another command could read: the
  // next thing to do is to name one.
  assert_non_null(strstr(r->out, "\nLongest gaps (simulated)\n"));
  assert_non_null(strstr(r->out, "\nCritical path of the simulated step\n"));
  assert_non_null(strstr(r->out, "\nNext: the same with --db FILE keeps the run, for tfc-report\n"));
  r = command(
      "cd %s && cp g.json i.json && tfc-place --graph i.json --machine m.yaml --evaluations 30 -q --report none; "
      "tfc-place --graph i.json --machine m.yaml --evaluate single:acc:0 -q; ls -d i.report",
      folder);
  assert_null(strstr(r->out, "i.report"));
  r = command("cd %s && tfc-place --graph g.json --machine m.yaml --evaluations 30 --report /proc/x", folder);
  assert_int_equal(r->code, 6);
}

static void test_time(void **state) {
  (void)state;
  json_t *d = document(0, "--graph g.json --time 1s");
  assert_true(value(d) == 72);
  json_decref(d);
  // Interrupted: the best placement so far is written, and the message says so.
  // (The interrupt comes after some seconds, because a slow machine needs them to find any placement.)
  assert_exit(
      130, "",
      "cd %s && for s in 1 4 20 100; do rm -f large.placement.json; timeout -s INT $s tfc-place --machine m.yaml "
      "--graph large.json --time 300s --algorithm anneal; code=$?; test -e large.placement.json && break; "
      "done; test -e large.placement.json || exit 99; [ $code -eq 124 ] && exit 130; exit $code",
      folder);
  // The same with --json: stdout has one document, which also says which file has the placement.
  const struct command_result *r = command("cd %s && for s in 1 4 20 100; do rm -f large.placement.json; "
                                           "timeout -s INT $s tfc-place --machine m.yaml --graph large.json "
                                           "--time 300s --algorithm anneal --json >shown; "
                                           "test -e large.placement.json && break; done; cat shown",
                                           folder);
  assert_non_null(strstr(r->err, "large.placement.json"));
  json_t *kept = json_loads(r->out, 0, NULL);
  assert_non_null(kept);
  json_decref(kept);
}

// Starts a search, waits until `begun` is true and then for a while, sends the signal, and expects the exit code. A
// shell makes programs in the background ignore SIGINT, so it must not come before they catch it. Under sanitizers the
// solver of linear programs runs in the program's own process, and takes signals that come while it solves. So there
// the signal is sent until one has reached the program.
#ifdef TFC_SANITIZED
#define AGAIN "for i in 1 2 3 4 5 6 7 8; do sleep 0.24; kill -%s $pid; done 2> /dev/null; "
#else
#define AGAIN ": %s; "
#endif
static void interrupt(const char *signal, int expected, const char *begun, const char *wait, const char *flags) {
  assert_exit(
      0, "",
      "cd %s && { tfc-place --machine slow.yaml --graph large.json --report none --evaluations 90000 --out b.json "
      "--db %s 2> said & pid=$!; until %s; do sleep 0.02; done; sleep %s; kill -%s $pid; " AGAIN
      "wait $pid; test $? = %d; } > out 2> err",
      folder, flags, begun, wait, signal, signal, expected);
}

// In a subshell: waits until the program that its shell has become catches SIGINT (bit 2 of SigCgt), and then 2 s.
#define TWO_SECONDS                                                                                                    \
  "while kill -0 $$ && ! grep -q \"^SigCgt:.*[2367abef]\\$\" /proc/$$/status; do sleep 0.02; done 2>/dev/null; "       \
  "sleep 2; "

// A search that was interrupted twice, and killed once, has the same answer as one without interruption. It continues
// only with the same flags.
static void test_resume(void **state) {
  (void)state;
#define LARGE                                                                                                          \
  "cd %s && tfc-place --machine slow.yaml --graph large.json --report none --evaluations 90000 --out b.json --db "     \
  "k.db "
  json_t *a = document(0, "--machine slow.yaml --graph large.json --report none --evaluations 90000"), *b;
  interrupt("INT", 130, LARGE_PROBLEM_BEGUN("k.db"), "0", "k.db");
  interrupt("INT", 130, "grep -q 'going on' said", "0.1", "k.db --resume");
  assert_exit(0, "", "grep -q 'Run 1 is kept in k.db; go on with: tfc-place ... --resume 1' %s/said", folder);
  interrupt("KILL", 137, "grep -q 'going on' said", "0.05", "k.db --resume 1");
  assert_exit(3, "began with --seed 1, not 2: give it the same flags", LARGE "--resume --seed 2", folder);
  assert_exit(3, "began with --pin (not given), not n3=acc:0", LARGE "--resume --pin n3=acc:0", folder);
  assert_exit(3, "began with --algorithm auto, not heft", LARGE "--resume --algorithm heft", folder);
  assert_exit(3, "began with --evaluations 90000, not 400", LARGE "--resume --evaluations 400", folder);
  assert_exit(3, "began with another policy", LARGE "--resume --policy none", folder);
  assert_exit(3, "another graph: g.json", LARGE "--resume --graph g.json", folder);
  assert_exit(3, "another machine: n.yaml",
              "cd %s && sed s/1us/2us/ slow.yaml > n.yaml && tfc-place --graph large.json "
              "--machine n.yaml --evaluations 90000 --report none --db k.db --resume",
              folder);
  assert_exit(3, "no run 7", LARGE "--resume 7", folder);
  b = document(0, "--machine slow.yaml --graph large.json --report none --evaluations 90000 --out b.json --db k.db "
                  "--resume --threads 1");
  assert_true(json_equal(a, b));
  assert_exit(0, "", "cmp %s/large.placement.json %s/b.json", folder, folder);
  assert_exit(3, "run 1 is done", LARGE "--resume 1", folder);
  assert_exit(3, "no interrupted run", LARGE "--resume", folder);
  assert_exit(0, "", "cd %s && tfc-report --db k.db list | grep -q done", folder);
  // A database that is not named is written only if the search is interrupted. Time that was used stays used.
  assert_exit(0, "", PLACE "--graph g.json --evaluations 100 --report none && test ! -e tfc.db", folder);
  assert_exit(130, "is kept in tfc.db",
              "cd %s && sh -c '(" TWO_SECONDS
              "kill -INT $$) & exec tfc-place --graph large.json --machine slow.yaml --time 60s "
              "--report none'",
              folder);
  assert_exit(0, "going on with run 1",
              "cd %s && tfc-place --graph large.json --machine slow.yaml --time 5s --report none --resume", folder);
  // Where it cannot be kept, the interrupted search says so, and has its answer all the same.
  assert_exit(130, "the search cannot be resumed",
              "cd %s && mkdir -p in/tfc.db && cd in && sh -c '(" TWO_SECONDS "kill -INT $$) & exec tfc-place --graph "
              "../large.json --machine ../slow.yaml --time 60s --report none --out a.json'",
              folder);
  assert_exit(0, "", "test -s %s/in/a.json", folder);
  json_decref(a);
  json_decref(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_evaluate),   cmocka_unit_test(test_search), cmocka_unit_test(test_resume),
      cmocka_unit_test(test_exit_codes), cmocka_unit_test(test_policy), cmocka_unit_test(test_report),
      cmocka_unit_test(test_no_time),    cmocka_unit_test(test_time),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
