// Tests that a run of tfc-place --machine, which measures nothing, is in the database like a measured one, for a cost
// graph and for a TensorFlow graph: each command of tfc-report answers, says that its figures are simulated, and the
// figures of the answer follow from the views.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/units.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define MACHINE " --machine " TFC_SOURCE_DIR "/configs/4xk80.yaml "
#define TENSORFLOW TFC_SOURCE_DIR "/examples/mlp.pb"

static char folder[64];

// Four branches between a beginning and an end; each operation takes ten times as long on the host.
static void write_costs(void) {
  struct tfc_text t = {0};
  tfc_text_printf(&t, "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"cpu\", \"k80\"], \"nodes\": ["
                      "{\"name\": \"net/in\", \"time_us\": {\"cpu\": 200, \"k80\": 20}, \"memory\": 4000},"
                      "{\"name\": \"net/out\", \"time_us\": {\"cpu\": 300, \"k80\": 30}}");
  for (int i = 0; i < 8; i++)
    tfc_text_printf(&t, ", {\"name\": \"net/b%d\", \"time_us\": {\"cpu\": %d, \"k80\": %d}, \"memory\": 1000}", i,
                    1000 + 10 * i, 100 + i);
  tfc_text_printf(&t, "], \"edges\": [");
  for (int i = 0; i < 4; i++)
    tfc_text_printf(&t,
                    "%s{\"from\": \"net/in\", \"to\": \"net/b%d\", \"bytes\": 5000, \"live\": 5000}, {\"from\": "
                    "\"net/b%d\", \"to\": \"net/b%d\", \"bytes\": 6000}, {\"from\": \"net/b%d\", \"to\": \"net/out\", "
                    "\"bytes\": %d}",
                    i ? ", " : "", i, i, i + 4, i + 4, 7000 + i);
  tfc_text_printf(&t, "]}");
  command_put(folder, "costs.json", t.data);
  tfc_text_deinit(&t);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "modelled-run")) return -1;
  write_costs();
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// Returns the number that a query of a database gives.
static double ask(const char *database, const char *sql) {
  char path[96];
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, database);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const double value = sqlite3_column_type(q, 0) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return value;
}
static void same(const char *database, const char *sql, const char *other, double tolerance) {
  const double a = ask(database, sql), b = ask(database, other);
  if (!(fabs(a - b) <= tolerance)) fail_msg("%s: %.9g, but %s: %.9g", sql, a, other, b);
}

static void fits_in_80_columns(const char *text) {
  for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
    end = line + strcspn(line, "\n");
    int columns = 0;
    for (const char *c = line; c < end; c++) columns += ((unsigned char)*c & 0xc0) != 0x80;
    if (columns > 80) fail_msg("%d columns: %.*s", columns, (int)(end - line), line);
  }
}

static void every_command(const char *database) {
  static const struct {
    const char *command, *text, *csv;
  } all[] = {{"show 1", "simulated placement", "run_id,state,program,"},
             {"critical 1", "\nThe simulated step, which ends after ", "position,kind,"},
             {"gaps 1", "of the answer (simulated)", "device,start_us,"},
             {"memory 1", "under the answer (simulated)", "device_id,device,peak_bytes,"},
             {"nodes 1", "by their time in a step (simulated)", "node_id,node,"},
             {"compare 1 2", "(simulated)", "run_id,graph,"}};
  const struct command_result *r;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    r = command("cd %s && tfc-report --db %s %s", folder, database, all[i].command);
    assert_result(r, 0, "");
    if (!strstr(r->out, all[i].text)) fail_msg("%s: no '%s' in: %s", all[i].command, all[i].text, r->out);
    if (strstr(r->out, "traced") || strstr(r->out, "nearest to the median"))
      fail_msg("%s speaks of traced steps: %s", all[i].command, r->out);
    fits_in_80_columns(r->out);
    r = command("cd %s && tfc-report --db %s %s --csv | head -c 60000", folder, database, all[i].command);
    if (strncmp(r->out, all[i].csv, strlen(all[i].csv)) != 0) fail_msg("%s: %.80s", all[i].command, r->out);
    if (!strchr(strchr(r->out, '\n') + 1, ',')) fail_msg("%s --csv: only a head", all[i].command);
  }
  r = command("cd %s && tfc-report --db %s trace 1 --out t.json && python3 -c \"import json; e = json.load(open("
              "'t.json'))['traceEvents']; print(sum(x['ph'] == 'X' for x in e), sum(x['ph'] == 's' for x in e))\"",
              folder, database);
  assert_result(r, 0, "");
  unsigned slices = 0, flows = 0;
  assert_int_equal(sscanf(r->out, "%u %u", &slices, &flows), 2);
  assert_true(slices >= ask(database, "SELECT (SELECT COUNT(*) FROM v_op WHERE run_id = 1 AND duration_us > 0) +"
                                      " (SELECT COUNT(*) FROM v_transfer WHERE run_id = 1)"));
  assert_true(flows >= ask(database, "SELECT COUNT(*) FROM v_transfer WHERE run_id = 1"));
}

#define ANSWER " JOIN v_run USING (run_id, placement_id) WHERE run_id = 1 "
// Every figure of the answer follows from rows of the views.
static void figures(const char *database) {
  static const char *const views[] = {"v_device",    "v_link",   "v_node",     "v_cost", "v_edge",
                                      "v_placement", "v_step",   "v_op",       "v_busy", "v_memory",
                                      "v_transfer",  "v_result", "v_op_total", "v_run"};
  char sql[160];
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM %s WHERE run_id = 1", views[i]);
    if (!(ask(database, sql) > 0)) fail_msg("%s has no rows", views[i]);
  }
  same(database, "SELECT step_median_us FROM v_run WHERE run_id = 1",
       "SELECT MAX(start_us + duration_us) FROM v_op" ANSWER, 0.0011);
  same(database, "SELECT step_median_us FROM v_run WHERE run_id = 1", "SELECT step_us FROM v_step WHERE run_id = 1",
       0.0011);
  // What a device takes for all operations one after another is what a step takes on it alone.
  same(database, "SELECT step_median_us FROM v_result WHERE run_id = 1 AND placement = 'single:gpu:0'",
       "SELECT SUM(c.median_us + (c.median_us > 0) * d.dispatch_us) FROM v_cost c JOIN v_device d USING (run_id, kind)"
       " WHERE run_id = 1 AND d.name = 'gpu:0'",
       0.001);
  same(database, "SELECT best_single_us FROM v_run WHERE run_id = 1",
       "SELECT MIN(step_median_us) FROM v_result WHERE run_id = 1 AND placement LIKE 'single:%' AND state = 'ok'", 0);
  same(database, "SELECT speedup FROM v_run WHERE run_id = 1",
       "SELECT best_single_us / step_median_us FROM v_run WHERE run_id = 1", 1e-9);
  // Each single device has everything, and each operation ran where the answer has it.
  same(database,
       "SELECT COUNT(*) FROM v_placement WHERE run_id = 1 AND placement = 'single:gpu:2' AND device = 'gpu:2'",
       "SELECT COUNT(*) FROM v_node WHERE run_id = 1 AND unit_id IS NOT NULL", 0);
  same(database,
       "SELECT COUNT(*) FROM v_op JOIN v_placement USING (run_id, placement_id, node_id, device_id) WHERE"
       " run_id = 1",
       "SELECT COUNT(*) FROM v_op WHERE run_id = 1", 0);
  // Work by device, and what was sent: a tensor to a device at most once.
  same(database, "SELECT SUM(busy_us) FROM v_busy WHERE run_id = 1",
       "SELECT SUM(duration_us) FROM v_op WHERE run_id = 1", 0.0011);
  same(database, "SELECT transfer_bytes FROM v_result" ANSWER, "SELECT SUM(bytes) FROM v_transfer" ANSWER, 0);
  same(database, "SELECT transfers FROM v_result" ANSWER, "SELECT COUNT(*) FROM v_transfer" ANSWER, 0);
  same(database, "SELECT COUNT(*) FROM v_transfer WHERE run_id = 1",
       "SELECT COUNT(DISTINCT node_id || ':' || output || ':' || target_id) FROM v_transfer WHERE run_id = 1", 0);
  // A link takes its latency and the bytes at its bandwidth: 12 GB/s.
  same(database, "SELECT time_us FROM v_link WHERE run_id = 1 AND source = 'gpu:0' AND target = 'gpu:1' AND bytes = 0",
       "SELECT 10", 1e-6);
  same(database, "SELECT SUM(duration_us) FROM v_transfer WHERE run_id = 1",
       "SELECT SUM(10 + bytes / 12e3) FROM v_transfer WHERE run_id = 1",
       0.001 * ask(database, "SELECT COUNT(*) FROM v_transfer WHERE run_id = 1")); // each is rounded to 1 ns
  // All is labelled, nothing has a measured candidate, and the views know how the search went.
  same(database, "SELECT COUNT(*) FROM v_result WHERE run_id = 1 AND label <> 'modelled'", "SELECT 0", 0);
  same(database, "SELECT COUNT(*) FROM v_episode", "SELECT 0", 0);
  same(database,
       "SELECT ending LIKE 'It ended after % with % of its 400 evaluations. The best placement that it saw,"
       " by %, is the answer.' FROM v_run WHERE run_id = 1",
       "SELECT 1", 0);
  same(database,
       "SELECT learning LIKE 'The learned policy: ' || policy_samples || ' placements of its own %' FROM"
       " v_result" ANSWER,
       "SELECT 1", 0);
}

// Sums the column of a table that tfc-report prints as CSV.
static double sum_of(const char *database, const char *list, const char *column) {
  const struct command_result *r =
      command("cd %s && tfc-report --db %s %s --csv | python3 -c \"import csv, sys; print(sum(float(r['%s'] or 0) for "
              "r in csv.DictReader(sys.stdin)))\"",
              folder, database, list, column);
  assert_result(r, 0, "");
  return atof(r->out);
}

static void lists(const char *database) {
  const double step = ask(database, "SELECT step_median_us FROM v_run WHERE run_id = 1"),
               busy = ask(database, "SELECT SUM(busy_us) FROM v_busy WHERE run_id = 1"),
               used = ask(database, "SELECT COUNT(*) FROM v_busy WHERE run_id = 1 AND operations > 0");
  // The critical path is as long as the step; busy time and gaps fill the devices that ran something.
  assert_true(fabs(sum_of(database, "critical 1", "time_us") + sum_of(database, "critical 1", "waited_us") - step) <
              0.01);
  assert_true(fabs(busy + sum_of(database, "gaps 1", "gap_us") - used * step) < 0.01 * used);
  assert_true(fabs(sum_of(database, "nodes 1", "step_us") - busy) < 0.01);
  assert_true(sum_of(database, "memory 1", "peak_bytes") ==
              ask(database, "SELECT SUM(peak_bytes) FROM v_memory" ANSWER));
}

static void page(const char *database, const char *graph) {
  char path[128];
  struct tfc_file html = {0};
  assert_exit(0, "", "cd %s && tfc-report --db %s show 1 --out page", folder, database);
  snprintf(path, sizeof path, "%s/page/index.html", folder);
  assert_ok(tfc_file_map(path, &html));
  char *text = strndup((const char *)html.data, html.size);
  static const char *const says[] = {
      "In the simulation",     " of its 400 evaluations. The best placement that it saw, by ",
      "The learned policy: ",  "Longest gaps (simulated)",
      "Critical path by type", "What would help most",
      "Moved in the step",     "The answer and its rivals (simulated)",
      "tfc-report critical 1", "<div class=\"timeline\"",
      "Why they stood still",  "id=\"map\""};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++)
    if (!strstr(text, says[i])) fail_msg("the page of %s does not say '%s'", graph, says[i]);
  assert_null(strstr(text, "no learned policy took part"));
  assert_null(strstr(text, "traced step"));
  // Nothing was measured, so simulated times are not drawn as measured ones.
  assert_null(strstr(text, "<section id=\"simulated\">"));
  assert_non_null(strstr(text, "Can the model be trusted here: simulated against measured (no placement was both "
                               "simulated and measured to its end)"));
  const char *steps = strstr(text, "<section id=\"steps\">"), *end = steps ? strstr(steps, "</section>") : NULL,
             *why = steps ? strstr(steps, "It needs what was measured, and nothing was run.") : NULL,
             *figure = steps ? strstr(steps, "<figure") : NULL;
  assert_non_null(end);
  assert_true(why && why < end);
  assert_true(!figure || figure > end);
  free(text);
  tfc_file_unmap(&html);
}

static void a_run(const char *database, const char *graph) {
  const struct command_result *r = command("cd %s && tfc-place --graph %s" MACHINE
                                           "--db %s --out p.json --report none --evaluations 400 --threads 1",
                                           folder, graph, database);
  assert_result(r, 0, "");
  static const char *const says[] = {
      "\nIt ended after ",         "\nLongest gaps (simulated)\n",
      "moved (simulated)",         "\nCritical path of the simulated step\n",
      "\nWhat would help most:\n", "\nNext: tfc-report critical 1, gaps 1, memory 1, nodes 1, trace 1;\n"};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++)
    if (!strstr(r->out, says[i])) fail_msg("no '%s' in: %s", says[i], r->out);
  fits_in_80_columns(r->out);
  // The file that was written is the run's answer.
  r = command("cd %s && python3 -c \"import json, sqlite3; p = json.load(open('p.json')); c = sqlite3.connect('%s'); "
              "rows = c.execute('SELECT node, device FROM v_placement JOIN v_run USING (run_id, placement_id)')"
              ".fetchall(); assert rows and all(p['placement'][n] == d for n, d in rows); "
              "memory = dict(c.execute('SELECT device, peak_bytes FROM v_memory')); "
              "assert memory == {d['name']: d['memory'] for d in p['devices']}, memory\"",
              folder, database);
  assert_result(r, 0, "");
  r = command("cd %s && tfc-place --graph %s" MACHINE "--db %s --out q.json --report none --algorithm heft "
              "--evaluations 10 --threads 1",
              folder, graph, database);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  every_command(database);
  figures(database);
  lists(database);
  page(database, graph);
}

// Where loads are searched they are on the terminal, in the database and in the document, and the same everywhere.
static void test_throughput(void **state) {
  (void)state;
  static const char machine[] =
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"gpu:0\", kind: k80, count: 3}\nlinks:\n"
      "  - {from: \"*\", to: \"*\", latency: 3us, bandwidth: 1GB/s, occupies: both}\n";
  command_put(folder, "m.yaml", machine);
  const struct command_result *r =
      command("cd %s && tfc-place --graph costs.json --machine m.yaml --objective throughput --db loads.db --out l.json"
              " --report loads --evaluations 300 --threads 1",
              folder);
  assert_result(r, 0, "");
  fits_in_80_columns(r->out);
  r = command(
      "cd %s && python3 -c \"import json, sqlite3; p = json.load(open('l.json')); c = sqlite3.connect('loads.db'); "
      "loads = dict(c.execute('SELECT device, load_us FROM v_load')); "
      "assert len(loads) == 3 and loads == {d['name']: d['busy_us'] for d in p['devices']}, loads; "
      "assert max(loads.values()) == p['value_us'], p['value_us']\"",
      folder);
  assert_result(r, 0, "");
  same("loads.db", "SELECT load_us FROM v_run", "SELECT MAX(load_us) FROM v_load", 0);
  same("loads.db", "SELECT speedup FROM v_run", "SELECT best_single_load_us / load_us FROM v_run", 1e-9);
  same("loads.db", "SELECT best_single_load_us FROM v_run",
       "SELECT MIN(load_us) FROM v_result WHERE placement LIKE 'single:%'", 0);
  // By the documented rule: operations, and the wire's time of each tensor that a device receives or (once) sends.
  same("loads.db", "SELECT load_us FROM v_load WHERE device = 'gpu:0'",
       "SELECT (SELECT SUM(c.median_us) FROM v_cost c JOIN v_placement p USING (run_id, node_id) JOIN v_run USING"
       " (run_id, placement_id) WHERE p.device = 'gpu:0' AND c.kind = 'k80') + COALESCE((SELECT SUM(3 + bytes / 1e3) "
       "FROM v_transfer WHERE"
       " target = 'gpu:0'), 0) + COALESCE((SELECT SUM(us) FROM (SELECT 3 + MAX(bytes) / 1e3 AS us FROM v_transfer WHERE"
       " source = 'gpu:0' GROUP BY node_id, output)), 0)",
       1e-3);
  r = command("cd %s && tfc-report --db loads.db show && tfc-report --db loads.db list", folder);
  assert_result(r, 0, "");
  fits_in_80_columns(r->out);
  static const char *const says[] = {"Searched for the smallest load of the busiest device: ",
                                     "Load against the best single device: ",
                                     "Lower bound of the load: ",
                                     "\n  loads: gpu:0 ",
                                     "\n  placement                  load            to found   step alone",
                                     "\n       load "};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++)
    if (!strstr(r->out, says[i])) fail_msg("no '%s' in: %s", says[i], r->out);
  assert_null(strstr(r->out, "\nAgainst the best"));
  char text[32], expected[96];
  tfc_show_us(text, ask("loads.db", "SELECT load_us FROM v_result WHERE placement = 'single:gpu:1'"));
  snprintf(expected, sizeof expected, "\n  single:gpu:1         %10s simulated ", text);
  if (!strstr(r->out, expected)) fail_msg("no '%s' in: %s", expected, r->out);
}

// All memory that the simulation counts is named.
static void test_memory(void **state) {
  (void)state;
  const struct command_result *r =
      command("cd %s && tfc-place --graph %s" MACHINE "--db memory.db --out m.json --report none --algorithm "
              "round-robin,split --evaluations 50 --threads 1",
              folder, TENSORFLOW);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  r = command("cd %s && tfc-report --db memory.db memory --json | python3 -c \"import json, sys; "
              "d = json.load(sys.stdin)['devices']; used = [x for x in d if x['peak_bytes']]; assert len(used) > 1, d; "
              "assert all(x['named_bytes'] == x['peak_bytes'] and x['complete'] == 1 for x in used), d\"",
              folder);
  assert_result(r, 0, "");
}

static void test_costs(void **state) {
  (void)state;
  a_run("costs.db", "costs.json");
}
static void test_tensorflow(void **state) {
  (void)state;
  a_run("graph.db", TENSORFLOW);
  // The whole graph is there, with types of operations, and its device strings are a rival with their assignment.
  same("graph.db", "SELECT COUNT(*) FROM v_node WHERE run_id = 1 AND op <> ''",
       "SELECT graph_nodes FROM v_run WHERE run_id = 1", 0);
  assert_true(ask("graph.db", "SELECT COUNT(*) FROM v_node WHERE run_id = 1 AND flops > 0") > 5);
}

// What a given placement is, and what does not fit, is kept with its warnings, too.
static void test_others(void **state) {
  (void)state;
  const struct command_result *r = command(
      "cd %s && tfc-place --graph costs.json" MACHINE "--db given.db --evaluate single:gpu:1 --report none", folder);
  assert_result(r, 0, "");
  same("given.db", "SELECT COUNT(*) FROM v_op WHERE run_id = 1 AND device = 'gpu:1'", "SELECT 10", 0);
  same("given.db",
       "SELECT ending = 'It simulated the placement that it was given, without a search.' AND state = 'done' FROM "
       "v_run",
       "SELECT 1", 0);
  r = command("cd %s && tfc-place --graph costs.json" MACHINE "--memory '*=2kB' --db given.db --out p.json --report "
              "none --evaluations 100",
              folder);
  assert_result(r, 5, "does not fit in memory: ");
  fits_in_80_columns(r->out);
  same("given.db", "SELECT COUNT(*) FROM v_warning WHERE run_id = 2 AND text LIKE 'does not fit in memory: %'",
       "SELECT 1", 0);
  same("given.db", "SELECT exit_code FROM v_run WHERE run_id = 2", "SELECT 5", 0);
  same("given.db", "SELECT ending LIKE '%Nothing that it tried fits in memory: %' FROM v_run WHERE run_id = 2",
       "SELECT 1", 0);
  r = command("cd %s && tfc-report --db given.db show 2", folder);
  assert_result(r, 0, "");
  assert_non_null(strstr(r->out, "warning: does not fit in memory: "));
  // A machine that cannot run it: the run says why.
  r = command("cd %s && sed 's/k80, /k90, /; s/kind: cpu/kind: arm/' " TFC_SOURCE_DIR
              "/configs/4xk80.yaml >other.yaml && "
              "tfc-place --graph costs.json --machine other.yaml --db given.db --report none --evaluations 10",
              folder);
  assert_result(r, 3, "");
  same("given.db",
       "SELECT state = 'failed' AND LENGTH(message) > 20 AND message <> 'nothing was run' FROM v_run WHERE"
       " run_id = 3",
       "SELECT 1", 0);
}

// An interrupted search has its best placement in the database; when it goes on, the new answer takes its place.
static void test_resumed(void **state) {
  (void)state;
#define SEARCH "--graph " TENSORFLOW MACHINE "--db kept.db --out k.json --report none "
  const struct command_result *r =
      command("cd %s && { { n=0; until [ -s kept.db ] || [ $n = 3000 ]; do n=$((n + 1)); sleep 0.01; done; sleep 1; "
              "kill -INT $(cat pid); } & sh -c 'echo $$ >pid; exec tfc-place " SEARCH "--time 120s'; }",
              folder);
  assert_result(r, 130, "go on with: tfc-place ... --resume 1");
  same("kept.db", "SELECT state = 'interrupted' AND exit_code = 130 FROM v_run", "SELECT 1", 0);
  assert_true(ask("kept.db", "SELECT COUNT(*) FROM v_op") > 10);
  const double before = ask("kept.db", "SELECT step_median_us FROM v_run");
  r = command("cd %s && tfc-place " SEARCH "--time 3s --resume", folder);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  same("kept.db", "SELECT state = 'done' AND exit_code <> 130 FROM v_run", "SELECT 1", 0);
  assert_true(ask("kept.db", "SELECT step_median_us FROM v_run") <= before);
  same("kept.db", "SELECT step_median_us FROM v_run", "SELECT MAX(start_us + duration_us) FROM v_op", 0.0011);
  same("kept.db", "SELECT COUNT(*) FROM v_step", "SELECT 1", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_costs),      cmocka_unit_test(test_tensorflow),
                                     cmocka_unit_test(test_others),     cmocka_unit_test(test_resumed),
                                     cmocka_unit_test(test_throughput), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
