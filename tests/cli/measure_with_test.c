// Tests tfc-place --measure-with: programs measure the placements of cost graphs and TensorFlow graphs.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

// Writes a graph of four chains of eight products each, and the sum of their results.
static void put_graph(void) {
  struct tfc_text t = {0};
  tfc_text_printf(&t, "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": [");
  for (int c = 0; c < 4; c++)
    for (int i = 0; i < 8; i++)
      tfc_text_printf(&t, "{\"name\": \"chain%d/step%d/%s\", \"time_us\": {\"acc\": %d}}, ", c, i,
                      i % 2 ? "Add" : "MatMul", 50 + 7 * c + i);
  tfc_text_printf(&t, "{\"name\": \"sum\", \"time_us\": {\"acc\": 5}}], \"edges\": [");
  for (int c = 0; c < 4; c++)
    for (int i = 0; i < 8; i++)
      if (i < 7)
        tfc_text_printf(&t, "{\"from\": \"chain%d/step%d/%s\", \"to\": \"chain%d/step%d/%s\", \"bytes\": 40000}, ", c,
                        i, i % 2 ? "Add" : "MatMul", c, i + 1, i % 2 ? "MatMul" : "Add");
      else
        tfc_text_printf(&t, "{\"from\": \"chain%d/step7/Add\", \"to\": \"sum\", \"bytes\": 4000}%s", c,
                        c < 3 ? ", " : "");
  tfc_text_printf(&t, "]}");
  command_put(folder, "costs.json", t.data);
  tfc_text_deinit(&t);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "measure-with")) return -1;
  put_graph();
  command_put(
      folder, "m.yaml",
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 4, memory: 1GB, flops: "
      "1.0e+12, memory_bandwidth: 100GB/s}\nlinks:\n  - {from: \"*\", to: \"*\", latency: 2us, bandwidth: 10GB/s}\n");
  // A program that answers each request: a step takes as many microseconds as the fullest device has nodes. $1 says
  // what the program does wrong: `die` ends it at the third request, `full` answers that no placement fits, `gone`
  // answers that each reading after the tenth failed.
  command_put(folder, "count.sh",
              "read -r hello\n"
              "echo '{\"ready\": true, \"label\": \"emulated\"}'\n"
              "while read -r line; do\n"
              "  id=$(printf '%s' \"$line\" | sed 's/^{\"id\": \\([0-9]*\\).*/\\1/')\n"
              "  if [ \"$id\" = 3 ] && [ \"$1\" = die ]; then exit 1; fi\n"
              "  if [ \"$1\" = gone ] && [ \"$id\" -gt 10 ]; then\n"
              "    echo \"{\\\"id\\\": $id, \\\"error\\\": \\\"it is gone\\\"}\"; continue\n"
              "  fi\n"
              "  if [ \"$1\" = full ]; then echo \"{\\\"id\\\": $id, \\\"fits\\\": false}\"; continue; fi\n"
              "  most=0\n"
              "  for d in 0 1 2 3; do\n"
              "    n=$(printf '%s' \"${line%%\\\"order\\\"*}\" | grep -o \"\\\": \\\"acc:$d\\\"\" | wc -l)\n"
              "    if [ \"$n\" -gt \"$most\" ]; then most=$n; fi\n"
              "  done\n"
              "  echo \"{\\\"id\\\": $id, \\\"step_us\\\": [$most.01, $most.02, $most.00, $most.01, $most.02]}\"\n"
              "done\n");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static json_t *document(const char *name) {
  char path[128];
  json_error_t error;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  json_t *root = json_load_file(path, 0, &error);
  if (!root) fail_msg("%s: %s", path, error.text);
  return root;
}

static double query(const char *sql) {
  char path[128];
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  snprintf(path, sizeof path, "%s/t.db", folder);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
  const double value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_double(statement, 0) : (double)NAN;
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

#define PLACE "cd %s && tfc-place --graph costs.json --machine m.yaml --db t.db --report none --out o.json "
#define SMALL "--measurements 12 --evaluations 4000 "

static void a_cost_graph_is_measured(void **state) {
  (void)state;
  assert_exit(0, "", PLACE SMALL "--measure-with 'sh count.sh' --report r", folder);
  json_t *o = document("o.json");
  assert_string_equal(json_string_value(json_object_get(o, "measured_with")), "sh count.sh");
  const json_t *step = json_object_get(o, "step");
  assert_string_equal(json_string_value(json_object_get(step, "label")), "emulated");
  const double us = json_number_value(json_object_get(step, "median_us"));
  assert_true(us < 12 && us >= 9 && us == json_number_value(json_object_get(o, "value_us")));
  assert_int_equal(json_object_size(json_object_get(o, "placement")), 33);
  assert_int_equal(json_array_size(json_object_get(o, "baselines")), 4);
  const json_int_t evaluations = json_integer_value(json_object_get(o, "evaluations"));
  assert_true(evaluations > 0 && evaluations <= 4000); // those of all searches together
  json_t *single = json_array_get(json_object_get(o, "baselines"), 0);
  assert_true(fabs(json_number_value(json_object_get(single, "median_us")) - 33.01) < 1e-9);
  json_decref(o);
  assert_true(
      query("SELECT COUNT(*) FROM v_episode WHERE measured_with = 'sh count.sh' AND label = 'emulated' AND state = "
            "'ok'") >= 4);
  assert_true(query("SELECT COUNT(*) FROM v_placement") >= 33 * 5);
  assert_true(query("SELECT COUNT(*) FROM v_step WHERE phase = 'final'") >= 20);
  assert_true(query("SELECT speedup_low FROM v_run") > 1);
  assert_exit(0, "", "grep -q 'sh count.sh' %s/r/index.html", folder);
  // No more placements are measured than --measurements allows.
  assert_true(query("SELECT COUNT(*) FROM v_result") <= 12);
  // The database says which algorithm proposed each placement.
  assert_true(query("SELECT SUM(measured) FROM v_proposer") == query("SELECT COUNT(*) FROM v_episode"));
  assert_true(query("SELECT SUM(won) FROM v_proposer") >= 1);
  assert_true(query("SELECT MIN(best_measured_us) FROM v_proposer") ==
              query("SELECT MIN(step_median_us) FROM v_episode"));
}

static void hidden_machine_is_learned(void **state) {
  (void)state;
  assert_exit(0, "",
              PLACE "--measurements 40 --evaluations 20000 --measure-with 'hidden_machine --seed 3 --label measured'",
              folder);
  assert_exit(0, "", "cd %s && hidden_machine --seed 3 --graph costs.json --machine m.yaml --truth o.json", folder);
  json_t *o = document("o.json");
  const double measured = json_number_value(json_object_get(o, "value_us"));
  const struct command_result *r =
      command("cd %s && hidden_machine --seed 3 --graph costs.json --machine m.yaml --truth o.json", folder);
  const double truth = strtod(r->out, NULL);
  if (!(fabs(log(measured / truth)) < 0.2)) fail_msg("measured %g, truth %g", measured, truth);
  json_decref(o);
  // What the policy did in the searches is stored with each candidate, and printed.
  assert_true(
      query("SELECT COUNT(*) FROM v_episode WHERE run_id = (SELECT MAX(run_id) FROM v_run) AND policy_samples > "
            "0 AND policy_entropy > 0 AND policy_entropy <= 1 AND policy_invalid_share = 0") >= 8);
  assert_true(query("SELECT learning LIKE '%The learned policy: %' FROM v_run WHERE run_id = (SELECT MAX(run_id) FROM "
                    "v_run)") == 1);
  // The times of operations and transfers are stored, and no device is busy for longer than the step.
  assert_true(query("SELECT COUNT(*) FROM v_op WHERE run_id = (SELECT MAX(run_id) FROM v_run)") > 33);
  assert_true(query("SELECT COUNT(*) FROM v_transfer WHERE run_id = (SELECT MAX(run_id) FROM v_run)") > 0);
  assert_true(query("SELECT COUNT(*) FROM v_busy WHERE operations_us > busy_us + 1e-6 OR busy_us > step_us + 1e-6") ==
              0);
}

// With --model prior, measurements do not change the costs, so the same placements are found whatever step times the
// program answers.
static void the_prior_stays_where_it_is_asked_for(void **state) {
  (void)state;
  assert_exit(0, "", PLACE SMALL "--measure-with 'hidden_machine --seed 3' --model prior", folder);
  assert_true(query("SELECT COUNT(*) FROM v_episode WHERE run_id = (SELECT MAX(run_id) FROM v_run) AND algorithm IN "
                    "('learned', 'thompson')") == 0);
}

static void what_goes_wrong_is_said(void **state) {
  (void)state;
  assert_exit(0, "was not measured: it ended with code 1", PLACE SMALL "--measure-with 'sh count.sh die'", folder);
  assert_true(
      query("SELECT COUNT(*) FROM v_result WHERE run_id = (SELECT MAX(run_id) FROM v_run) AND state = 'failed' AND "
            "message LIKE '%ended with code 1%'") == 1);
  assert_exit(5, "no placement that was tried fits", PLACE SMALL "--measure-with 'sh count.sh full'", folder);
  // If all readings of the final turns fail, the answer is what was measured before, but not shown to be better.
  assert_exit(7, "was not measured in the final turns: it is gone",
              "rm -f %s/o.json; " PLACE SMALL "--measure-with 'sh count.sh gone'", folder, folder);
  json_t *o = document("o.json");
  assert_true(json_number_value(json_object_get(o, "value_us")) > 8);
  json_decref(o);
  assert_exit(4, "started 4 times", PLACE SMALL "--measure-with 'exit 3'", folder);
  assert_exit(2, "--measure-with needs a machine", "cd %s && tfc-place --graph x.pb --measure-with 'sh count.sh'",
              folder);
  assert_exit(2, "--measure-timeout is for --measure-with", PLACE "--measure-timeout 3s", folder);
  assert_exit(2, "--objective throughput", PLACE "--objective throughput --measure-with 'sh count.sh'", folder);
}

// If measurements take long, there are fewer of them, and time is still left for rounds before the final turns. There
// is always time for 40 readings, if nothing else takes any. On a busy machine all else takes longer than usual, and
// then the readings and the time are longer, too.
static void slow_readings_leave_time_to_search(void **state) {
  (void)state;
  static const double readings[] = {0.3, 1.5};
  double episodes = 0, steps = 0;
  for (size_t i = 0; i < sizeof readings / sizeof *readings && !(episodes >= 3 && steps >= 10); i++) {
    char program[128];
    snprintf(program, sizeof program,
             "while read -r line; do sleep %g; echo \"$line\"; done | hidden_machine --seed 2\n", readings[i]);
    command_put(folder, "slow.sh", program);
    assert_exit(0, "", PLACE "--time %gs --measurements 40 --measure-with 'sh slow.sh'", folder, 40 * readings[i]);
    episodes = query("SELECT COUNT(*) FROM v_episode WHERE run_id = (SELECT MAX(run_id) FROM v_run)");
    steps = query("SELECT COUNT(*) FROM v_step WHERE phase = 'final' AND run_id = (SELECT MAX(run_id) FROM v_run)");
  }
  if (!(episodes >= 3 && steps >= 10)) fail_msg("%g placements measured, %g steps in the final turns", episodes, steps);
}

// An interrupted run is resumed: its measurements count, what it learned is known, and no placement is measured twice.
static void an_interrupted_run_is_gone_on_with(void **state) {
  (void)state;
  command_put(folder, "some.sh",
              "n=0; while read -r line; do n=$((n + 1)); [ $n -eq 60 ] && kill -INT $(cat pid); "
              "echo \"$line\"; done | hidden_machine --seed 2\n");
  assert_exit(
      130, "",
      "cd %s && sh -c 'echo $$ > pid; exec tfc-place --graph costs.json --machine m.yaml --db t.db --out o.json "
      "--report none --policy none --measurements 48 --evaluations 20000 --measure-with \"sh some.sh\"'",
      folder);
  const double before = query("SELECT COUNT(*) FROM v_result WHERE run_id = (SELECT MAX(run_id) FROM v_run)");
  assert_true(before > 20 && before < 48);
  assert_true(query("SELECT COUNT(*) FROM v_run WHERE state = 'interrupted'") >= 1);
  // What another version of tfc kept is refused.
  static const char *const kept[] = {"learned", "elsewhere"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
#define RENUMBER                                                                                                       \
  "cd %s && sqlite3 t.db \"UPDATE state SET value = CAST(replace(CAST(value AS TEXT), '%s %d ', '%s %d ') AS BLOB) "   \
  "WHERE name = '%s'\""
    assert_exit(0, "", RENUMBER, folder, kept[i], 1, kept[i], 9, kept[i]);
    assert_exit(3, "another version of tfc, in format 9 instead of 1",
                PLACE "--measurements 48 --evaluations 20000 --measure-with 'hidden_machine --seed 2' --resume",
                folder);
    assert_exit(0, "", RENUMBER, folder, kept[i], 9, kept[i], 1, kept[i]);
  }
  // An order of operations in which a rank comes twice is refused.
  assert_true(query("SELECT COUNT(*) FROM state WHERE name LIKE 'rank %'") > 0);
  assert_exit(0, "",
              "cd %s && cp t.db whole.db && sqlite3 t.db \"UPDATE state SET value = CAST('0 0 ' || CAST(value AS TEXT) "
              "AS BLOB) WHERE name LIKE 'rank %%'\"",
              folder);
  assert_exit(6, "an order of operations is broken",
              PLACE "--measurements 48 --evaluations 20000 --measure-with 'hidden_machine --seed 2' --resume", folder);
  assert_exit(0, "", "cd %s && mv whole.db t.db", folder);
  const struct command_result *r = command(
      PLACE "--measurements 48 --evaluations 20000 --measure-with 'hidden_machine --seed 2' --resume 2>&1", folder);
  assert_int_equal(r->code, 0);
  assert_non_null(strstr(r->out, "going on with run"));
  assert_non_null(strstr(r->out, "may take another time")); // the first run had another command
  assert_null(strstr(r->out, "is lost"));
  assert_true(query("SELECT COUNT(*) FROM v_result WHERE run_id = (SELECT MAX(run_id) FROM v_run)") == 48);
  assert_true(query("SELECT COUNT(DISTINCT digest) FROM placement WHERE run_id = (SELECT MAX(run_id) FROM v_run)") ==
              48);
  // Predictions of the first round after the interrupt use what was learned before it.
  assert_true(query("SELECT COUNT(*) FROM v_episode WHERE run_id = (SELECT MAX(run_id) FROM v_run) AND predicted_us IS "
                    "NULL") <= 8);
  assert_exit(3, "is done",
              PLACE SMALL "--measure-with 'hidden_machine --seed 2' --resume $(sqlite3 %s/t.db 'SELECT "
                          "MAX(run_id) FROM run')",
              folder, folder);
  assert_exit(2, "not a run's number", PLACE "--measure-with 'hidden_machine --seed 2' --resume x", folder);
}

// Ctrl-C in the final turns, too, interrupts the run: it can be gone on with.
static void the_final_turns_are_interrupted(void **state) {
  (void)state;
  command_put(folder, "last.sh",
              "n=0; while read -r line; do n=$((n + 1)); echo $n >asked; [ $n = \"$1\" ] && kill -INT $(cat pid); "
              "echo \"$line\"; done | sh count.sh\n");
#define LAST                                                                                                           \
  "cd %s && sh -c 'echo $$ > pid; exec tfc-place --graph costs.json --machine m.yaml --db l.db --out l.json --report " \
  "none --policy none --measurements 12 --evaluations 4000 --measure-with \"sh last.sh %s\"'"
  assert_exit(0, "", LAST, folder, "none");
  // The last turns are asked for after all else.
  assert_exit(130, "", LAST, folder, "$(($(cat asked) - 2))");
  assert_exit(0, "", "cd %s && [ \"$(sqlite3 l.db 'SELECT state, exit_code FROM run WHERE run_id = 2')\" = '%s' ]",
              folder, "interrupted|130");
  assert_exit(0, "going on with run 2",
              "cd %s && tfc-place --graph costs.json --machine m.yaml --db l.db --out l.json "
              "--report none --policy none --measurements 12 --evaluations 4000 --measure-with 'sh count.sh' --resume",
              folder);
}

// A program that dies and cannot be started again ends the run with exit 4. Once it can be started, the run is gone on
// with: what was measured before counts.
static void a_run_whose_program_died_is_gone_on_with(void **state) {
  (void)state;
  command_put(folder, "dies.sh",
              "[ -e broken ] && exit 3\n"
              "n=0; while read -r line; do n=$((n + 1)); [ $n = 25 ] && touch broken && exit 3; echo \"$line\"; done | "
              "sh count.sh\n");
#define DIES                                                                                                           \
  "cd %s && tfc-place --graph costs.json --machine m.yaml --db d.db --out d.json --report none --policy none "         \
  "--measurements 24 --evaluations 1000 --measure-with 'sh dies.sh' "
  assert_exit(4, "started", DIES, folder);
  assert_exit(0, "", "cd %s && [ \"$(sqlite3 d.db 'SELECT state, exit_code FROM run')\" = '%s' ]", folder,
              "interrupted|4");
  assert_exit(0, "", "cd %s && rm broken && sqlite3 d.db 'SELECT digest FROM placement' | sort >before", folder);
  assert_exit(0, "going on with run 1", "sed -i 's/= 25 /= none /' %s/dies.sh; " DIES "--resume", folder, folder);
  // Every placement that was measured in the first part was kept.
  assert_exit(0, "", "cd %s && sqlite3 d.db 'SELECT digest FROM placement' | sort >after && [ -s before ]", folder);
  assert_exit(0, "", "cd %s && [ -z \"$(comm -23 before after)\" ]", folder);
  assert_exit(0, "", "cd %s && [ \"$(sqlite3 d.db 'SELECT COUNT(*), state FROM run')\" = '%s' ]", folder, "1|done");
}

static void a_placement_is_evaluated(void **state) {
  (void)state;
  assert_exit(0, "",
              "rm -f %s/o.json; " PLACE "--measure-with 'sh count.sh' --evaluate single:acc:2 --json > %s/e.json",
              folder, folder, folder);
  json_t *o = document("e.json");
  assert_true(fabs(json_number_value(json_object_get(o, "value_us")) - 33.01) < 1e-9);
  json_decref(o);
  assert_exit(5, "", PLACE "--measure-with 'sh count.sh full' --evaluate single:acc:2", folder);
}

static void a_tensorflow_graph_is_measured(void **state) {
  (void)state;
  const struct command_result *r = command(
      "cd %s && tfc-place --graph %s/examples/mlp.pb --machine m.yaml --db t.db --report none --out p.json " SMALL
      "--measure-with 'sh count.sh'",
      folder, TFC_SOURCE_DIR);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  json_t *o = document("p.json");
  assert_string_equal(json_string_value(json_object_get(o, "measured_with")), "sh count.sh");
  assert_true(json_object_size(json_object_get(o, "placement")) > 38); // all nodes of the file
  json_decref(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cost_graph_is_measured),
      cmocka_unit_test(hidden_machine_is_learned),
      cmocka_unit_test(the_prior_stays_where_it_is_asked_for),
      cmocka_unit_test(what_goes_wrong_is_said),
      cmocka_unit_test(slow_readings_leave_time_to_search),
      cmocka_unit_test(an_interrupted_run_is_gone_on_with),
      cmocka_unit_test(the_final_turns_are_interrupted),
      cmocka_unit_test(a_run_whose_program_died_is_gone_on_with),
      cmocka_unit_test(a_placement_is_evaluated),
      cmocka_unit_test(a_tensorflow_graph_is_measured),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
