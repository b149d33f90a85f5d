// Runs all programs on a small graph: places it, reads the database through its views, makes the report, exports, and
// evaluates the placement again.
#include "tests/common/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "runtime/graph/import.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define GRAPH TFC_SOURCE_DIR "/examples/rnnlm.pb"
static char folder[64];

static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "whole");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// Whether the text contains these words in this order, with blanks or ends of lines between them.
static bool says(const char *text, const char *words) {
  bool found = false;
  char *flat = strdup(text), *to = flat;
  for (const char *from = text; *from; from++) {
    const char c = *from == '\n' ? ' ' : *from;
    if (c != ' ' || to == flat || to[-1] != ' ') *to++ = c;
  }
  *to = 0;
  found = strstr(flat, words) != NULL;
  free(flat);
  return found;
}

static void check_columns(const char *text) {
  while (*text) {
    const size_t n = strcspn(text, "\n");
    if (n > 80) fail_msg("wider than 80 columns: %.*s", (int)n, text);
    text += n + (text[n] == '\n');
  }
}

static double number(const char *sql) {
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  char path[96];
  snprintf(path, sizeof path, "%s/t.db", folder);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  double value = sqlite3_column_double(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

static void test_place(void **state) {
  (void)state;
  const struct command_result *r =
      command("cd %s && cp %s g.pb && tfc-place --graph g.pb --devices 2 --time 10s --db t.db", folder, GRAPH);
  if (r->code != 0 && r->code != 7)
    fail_msg("exit %d: %s", r->code,
             r->err); // either code is right: whether the answer is faster depends on the machine
  assert_non_null(strstr(r->out, "whole"));
  assert_non_null(strstr(r->out, "single:cpu:0"));
  // The share of the step that a device was busy,
  char busy[2][16];
  for (int d = 0; d < 2; d++) {
    char line[32];
    snprintf(line, sizeof line, "\n  cpu:%d      ", d);
    const char *row = strstr(r->out, line);
    assert_non_null(row);
    assert_int_equal(sscanf(row + strlen(line), " %15[0-9.] %%", busy[d]), 1);
  }
  // The first screen: what was measured, why the search ended, and what to do next.
  assert_non_null(strstr(r->out, "\nCritical path of the traced step nearest to the median\n"));
  assert_null(strstr(r->out, "Critical path (simulated)"));
  assert_true(says(r->out, "candidates measured"));
  assert_non_null(strstr(r->out, "\nNext: tfc-report critical 1,"));
  assert_non_null(strstr(r->out, "with --db t.db\n"));
  check_columns(r->out);
  struct tfc_placement *p = NULL;
  struct tfc_graph *g = NULL;
  char path[96];
  snprintf(path, sizeof path, "%s/g.placement.json", folder);
  assert_ok(tfc_placement_read(path, &p));
  assert_ok(tfc_graph_load(GRAPH, NULL, &g));
  assert_int_equal(p->node_count, g->node_count);
  assert_int_equal(p->device_count, 2);
  assert_true(p->step_median_us > 0);
  tfc_placement_free(p);
  tfc_graph_release(g);
  assert_exit(0, "", "test -s %s/g.report/index.html", folder);
  // and in `show` they are the same
  r = command("tfc-report --db %s/t.db show", folder);
  for (int d = 0; d < 2; d++) {
    char name[32], share[32];
    snprintf(name, sizeof name, "\n  cpu:%d      ", d);
    snprintf(share, sizeof share, " %s %%", busy[d]);
    const char *row = strstr(r->out, name), *end = row ? strchr(row + 1, '\n') : NULL,
               *found = row ? strstr(row, share) : NULL;
    if (!found || found > end) fail_msg("cpu:%d is not busy for%s in %s", d, share, r->out);
  }
}

static void test_database(void **state) {
  (void)state;
  static const char *const views[] = {"v_run",      "v_device", "v_node",   "v_edge",    "v_placement",
                                      "v_step",     "v_op",     "v_memory", "v_episode", "v_transfer",
                                      "v_op_total", "v_busy",   "v_cost",   "v_link",    "v_result"};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
    char sql[64];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM %s", views[i]);
    if (number(sql) == 0) fail_msg("%s is empty", views[i]);
  }
  assert_true(number("SELECT blas_core <> '' AND cpu_model <> '' FROM v_run") == 1);
  // For each step and device: time of operations <= busy time <= step time.
  assert_true(number("SELECT COUNT(*) FROM v_busy WHERE operations_us > busy_us + 1e-6 OR busy_us > step_us + 1e-6") ==
              0);
  // Every operation of the answer ran where it was placed.
  assert_true(number("SELECT COUNT(*) FROM v_op o JOIN v_run r USING (run_id, placement_id) JOIN v_placement p USING"
                     " (run_id, placement_id, node_id) WHERE o.device_id <> p.device_id") == 0);
}

static void test_afterwards(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-report --db t.db list", folder);
  assert_exit(0, "", "cd %s && tfc-report --db t.db show --out again && test -s again/index.html", folder);
  assert_exit(0, "", "cd %s && tfc-report --db t.db trace --out t.json.gz && gzip -t t.json.gz", folder);
  assert_exit(0, "A step takes", "cd %s && tfc-export --db t.db --graph g.pb --out placed.pb", folder);
  assert_exit(0, "",
              "cd %s && tfc-export --graph placed.pb --strip-devices --out bare.pb && tfc-export --graph g.pb "
              "--strip-devices --out bare2.pb && cmp bare.pb bare2.pb",
              folder);
  assert_exit(0, "", "cd %s && tfc-place --graph g.pb --devices 2 --evaluate g.placement.json --db t.db", folder);
  assert_exit(0, "", "cd %s && tfc-report --db t.db gc --keep 1", folder);
  assert_true(number("SELECT COUNT(*) FROM v_run") == 1);
}

static void test_refusals(void **state) {
  (void)state;
  assert_exit(3, "nowhere.pb", "cd %s && tfc-place --graph nowhere.pb", folder);
  assert_exit(3, "cut.pb", "cd %s && head -c 5000 g.pb >cut.pb && tfc-place --graph cut.pb --devices 2", folder);
  assert_exit(3, "nothing", "cd %s && tfc-place --graph g.pb --devices 2 --target nothing", folder);
  assert_exit(3, "words", "cd %s && tfc-place --graph g.pb --devices 2 --feed 'words=float32[16,16]'", folder);
  assert_exit(4, "--devices gpu:7", "cd %s && tfc-place --graph g.pb --devices gpu:7", folder);
  assert_exit(6, "/proc/t.db", "cd %s && tfc-place --graph g.pb --devices 2 --db /proc/t.db", folder);
  assert_exit(5, "", "cd %s && tfc-place --graph g.pb --devices 2 --time 20s --memory 'cpu:*=100kB'", folder);
}

// An interrupted run is resumed. --resume with another graph or other settings is refused, and changes nothing in the
// run.
static void test_resume(void **state) {
  (void)state;
  assert_exit(
      130, "--resume 1", // interrupted as soon as the profile is done
      "cd %s && cp %s g.pb && rm -f t.db && : >shown && { { n=0; until grep -q '^profile ' shown || [ $n = 900 ]; "
      "do n=$((n + 1)); sleep 0.1; done; kill -INT $(cat pid); } & sh -c 'echo $$ >pid; exec tfc-place "
      "--graph g.pb --devices 2 --time 30s --db t.db --report none 2>shown'; } ; code=$?; cat shown >&2; "
      "exit $code",
      folder, GRAPH);
  assert_exit(3, "measured on cpu:0 (", "cd %s && tfc-place --graph g.pb --devices 1 --db t.db --resume 1", folder);
  assert_exit(3, "objective", "cd %s && tfc-place --graph g.pb --devices 2 --objective throughput --db t.db --resume",
              folder);
  assert_exit(3, "another graph",
              "cd %s && cp " TFC_SOURCE_DIR "/examples/mlp.pb h.pb && tfc-place --graph h.pb "
              "--devices 2 --db t.db --resume 1",
              folder);
  assert_true(number("SELECT COUNT(*) FROM v_run WHERE state = 'interrupted'") == 1);
  // Memory limits are those of the resumed call, so a placement that fitted before may not fit now.
  const struct command_result *r = command("cd %s && tfc-place --graph g.pb --devices 2 --time 150s --measurements 4 "
                                           "--db t.db --resume --memory 'cpu:*=10MB' --report none",
                                           folder);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  assert_true(says(r->out, "does not fit"));
  assert_true(says(r->out, "(its limit is 10.0 MB)"));
  assert_non_null(strstr(r->err, "going on with run 1"));
  assert_exit(3, "is done", "cd %s && tfc-place --graph g.pb --devices 2 --db t.db --resume 1", folder);
  assert_true(number("SELECT COUNT(*) FROM v_run WHERE state = 'done'") == 1);
  assert_exit(0, "", "cd %s && rm t.db g.placement.json", folder);
}

// With --objective throughput the load of the devices decides, and the answer says that its value is modelled.
static void test_throughput(void **state) {
  (void)state;
  const struct command_result *r = command("cd %s && cp %s o.pb && tfc-place --graph o.pb --devices 2 --time 6s "
                                           "--objective throughput --db o.db --report none --save-problem saved",
                                           folder, GRAPH);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s%s", r->code, r->out, r->err);
  assert_true(says(r->out, "modelled from measured operations"));
  check_columns(r->out);
  struct tfc_placement *p = NULL;
  char path[96];
  snprintf(path, sizeof path, "%s/o.placement.json", folder);
  assert_ok(tfc_placement_read(path, &p));
  assert_int_equal(p->objective, TFC_OBJECTIVE_THROUGHPUT);
  assert_true(p->value_us > 0);
  tfc_placement_free(p);
  assert_exit(0, "", "cd %s/saved && tfc-place --graph graph.json --machine machine.yaml --evaluate placement.json",
              folder);
}

// Steps that update no variables are measured with several of them in flight.
static void test_in_flight(void **state) {
  (void)state;
  const struct command_result *r = command("cd %s && cp %s g.pb && tfc-place --graph g.pb --devices 2 --time 10s "
                                           "--fetch loss:0 --objective throughput --db t.db --report none --json",
                                           folder, GRAPH);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s%s", r->code, r->out, r->err);
  assert_non_null(strstr(r->out, "\"value_label\": \"measured\""));
  double apart = number("SELECT step_us FROM v_step s JOIN v_run r USING (run_id, placement_id) WHERE phase = "
                        "'one by one' ORDER BY step_us LIMIT 1");
  assert_true(apart > 0);
  // At least two placements were measured in turns, with equally many blocks.
  assert_true(number("SELECT COUNT(DISTINCT placement_id) FROM v_step WHERE phase = 'one by one'") >= 2);
  assert_true(number("SELECT COUNT(*) FROM v_step WHERE phase = 'in flight' AND traced") == 0);
  r = command("cd %s && tfc-report --db t.db show --out flight", folder);
  assert_int_equal(r->code, 0);
  assert_true(says(r->out, "steps in flight: one ends every"));
  assert_true(says(r->out, "steps one by one: one ends every"));
  assert_exit(0, "", "cd %s && grep -q 'smallest load' flight/index.html && rm t.db", folder);
}

// The step fits on no single device: tfc-place finds a placement that fits, and it trains with the same losses, to the
// bit.
static void test_too_large_for_one(void **state) {
  (void)state;
  const struct command_result *r = NULL;
  static const int seconds[] = {8, 60, 180}; // a busy machine may find no placement that fits in the first time
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds && (!r || r->code == 5); i++)
    r = command("cd %s && cp %s l.pb && tfc-place --graph l.pb --devices 4 --time %ds --memory 'cpu:*=7MB' --db l.db "
                "--report none",
                folder, GRAPH, seconds[i]);
  if (r->code != 0) fail_msg("exit %d: %s", r->code, r->err);
  assert_non_null(strstr(r->out, "single:cpu:0"));
  assert_true(says(r->out, "does not fit"));
  struct tfc_placement *p = NULL;
  char path[96];
  snprintf(path, sizeof path, "%s/l.placement.json", folder);
  assert_ok(tfc_placement_read(path, &p));
  assert_true(p->feasible);
  for (uint32_t d = 0; d < p->device_count; d++) assert_in_range(p->devices[d].memory, 0, 7000000);
  tfc_placement_free(p);
  assert_exit(0, "",
              "cd %s && s=" TFC_SOURCE_DIR
              "/examples/golden/rnnlm/script.json && tfc-run --graph l.pb --run $s --out one "
              "&& tfc-run --graph l.pb --placement l.placement.json --run $s --out parts && ls one/20/loss_0.npy && "
              "diff -r one parts",
              folder);
  assert_exit(5, "more than its limit",
              "cd %s && tfc-place --graph l.pb --devices 4 --time 3s --memory 'cpu:*=3MB' --db n.db --report none",
              folder);
  r = command("cd %s && rm -f n.json && tfc-place --graph l.pb --devices 4 --time 3s --memory 'cpu:*=3MB' --db n.db "
              "--report none --out n.json --json; ls n.json",
              folder);
  assert_non_null(strstr(r->out, "\"feasible\": false"));
  assert_null(strstr(r->out, "\nn.json")); // a placement that does not fit is not written as an answer
  // If no placement can fit, an error is reported before anything is profiled.
  static const char *const impossible[][2] = {
      {"305 kB too little already", "--memory 'cpu:*=900kB'"},
      {"variable 'lm/embedding': 768 kB, and cpu:1", "--memory cpu:1=300kB --pin 'lm/embedding=cpu:1'"},
  };
  for (size_t i = 0; i < 2; i++) {
    r = command("cd %s && tfc-place --graph l.pb --devices 4 --time 60s %s --db n.db --report none", folder,
                impossible[i][1]);
    assert_int_equal(r->code, 5);
    assert_non_null(strstr(r->err, impossible[i][0]));
    assert_null(strstr(r->err, "profile"));
  }
  // This is exactly enough memory for the variables. Whether it is enough for a step too, only a measurement shows.
  assert_exit(5, "1 B too little already",
              "cd %s && tfc-place --graph l.pb --devices 1 --time 2s --memory 'cpu:*=3905439' --db n.db --report none",
              folder);
  r = command("cd %s && tfc-place --graph l.pb --devices 1 --time 2s --memory 'cpu:*=3905440' --db n.db --report none",
              folder);
  assert_int_equal(r->code, 5);
  assert_null(strstr(r->err, "nothing can fit"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resume),     cmocka_unit_test(test_throughput),
      cmocka_unit_test(test_in_flight),  cmocka_unit_test(test_too_large_for_one),
      cmocka_unit_test(test_place),      cmocka_unit_test(test_database),
      cmocka_unit_test(test_afterwards), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
