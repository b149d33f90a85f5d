// What a report answers besides its tables: what the answer is, why a faster rival is not it, what to move, which
// figures are only a part.
#include "tests/reports/lists_runs.h"

#include "reports/compare.h"
#include "reports/compare_page.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/memory.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "tests/reports/html.h"

static struct tfc_text shown(struct tfc_store *db) {
  struct tfc_text text = {0};
  assert_ok(tfc_report_show(db, 1, &text));
  assert_fits(&text);
  for (char *c = text.data; *c; c++) // sentences are broken into lines anywhere
    if (*c == '\n') *c = ' ';
  return text;
}
static void says(const char *name, const char *sql, const char *expected) {
  struct tfc_store *db = made(name, "measured", sql);
  struct tfc_text text = shown(db);
  assert_said(&text, expected);
  tfc_text_deinit(&text);
  tfc_store_close(db);
}

#define RIVAL(id, name, state, us)                                                                                     \
  "INSERT INTO placement (run_id, placement_id, role, name, state, label, median_us, steps) VALUES (1, " #id           \
  ", 'baseline', '" name "', '" state "', 'measured', " #us ", 5);"
#define CHOSE(id, us, answer_us)                                                                                       \
  "INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT placement, 50, 'choose', "   \
  "0, "                                                                                                                \
  "0, 0, " #us "000 FROM placement WHERE placement_id = " #id ";"                                                      \
  "INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT placement, 50, 'choose', "   \
  "0, "                                                                                                                \
  "0, 0, " #answer_us "000 FROM placement WHERE placement_id = 0;"

static void test_faster_rivals(void **state) {
  (void)state;
  says("fits", RIVAL(3, "expert", "no fit", 400),
       "expert took less (400.0 us, the answer 600.0 us), but does not fit in");
  says("lost", RIVAL(3, "expert", "ok", 590) CHOSE(3, 640, 610),
       "expert took less (590.0 us, the answer 600.0 us), but lost in the turns that chose the answer (640.0 us, the "
       "answer 610.0 us).");
  says("early", RIVAL(3, "single:cpu:1", "ok", 590),
       "single:cpu:1 took less (590.0 us, the answer 600.0 us), but was not in the turns that chose the answer.");
  says("undivided", RIVAL(3, "whole", "ok", 500),
       "The undivided machine is faster (500.0 us, the answer 600.0 us), but is no placement.");
  struct tfc_store *db = made("slower", "measured", RIVAL(3, "expert", "ok", 700));
  struct tfc_text text = shown(db);
  assert_null(strstr(text.data, "took less"));
  assert_null(strstr(text.data, "The answer is"));
  tfc_text_deinit(&text);
  tfc_store_close(db);
}

static void test_what_it_is(void **state) {
  (void)state;
  says("expert", "UPDATE placement SET role = 'baseline', name = 'expert' WHERE placement_id = 0",
       "The answer is the expert's placement: no other was faster.");
  says("again",
       RIVAL(3, "expert", "ok", 700) "INSERT INTO assignment (placement, unit_id, device_id) SELECT (SELECT placement "
                                     "FROM placement WHERE placement_id ="
                                     " 3), unit_id, device_id FROM assignment WHERE placement = 1",
       "The answer is the expert's placement, found again.");
  says("single", "UPDATE assignment SET device_id = 1 WHERE placement = 1",
       "The answer is one device: all of it is on cpu:1.");
}

// Where loads were searched, steps decide nothing: the candidate with the smallest load is named.
static void test_loads(void **state) {
  (void)state;
  static const char sql[] =
      "UPDATE run SET objective = 'throughput', speedup = 2.5;"
      "INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, state, label, median_us, steps)"
      " VALUES (1, 4, 'candidate', '#4', 'lns', 1, 'ok', 'measured', 100, 5);"
      "INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, state, label, median_us, steps)"
      " VALUES (1, 5, 'candidate', '#5', 'heft', 2, 'ok', 'measured', 900, 5);" RIVAL(
          6, "single:cpu:0", "ok", 450) "INSERT INTO load (placement, load_us, samples, at_once) SELECT placement, "
                                        "CASE placement_id WHEN 0 THEN 200 WHEN 4 "
                                        "THEN 350 WHEN 5 THEN 210 ELSE 500 END,"
                                        " 0, 0 FROM placement;";
  struct tfc_store *db = made("loads", "measured", sql);
  struct tfc_text text = shown(db);
  assert_said(&text, "The candidate with the smallest load is #5 by heft, 210.0 us; the load of the answer is "
                     "200.0 us.");
  assert_said(&text, "Load against the best single device: 2.500x (computed)");
  assert_said(&text, "> answer                 200.0 us computed     1.000x     600.0 us");
  assert_said(&text, "  single:cpu:0           500.0 us computed     2.500x     450.0 us");
  assert_null(strstr(text.data, "took less"));
  assert_near(ask(db, "SELECT best_single_load_us / load_us - speedup FROM v_run"), 0);
  tfc_text_deinit(&text);
  // The page has the load and its ratio as the main figures; those of steps alone say that they are.
  assert_ok(tfc_report_html(db, 1, &text));
  html_says(text.data, "<p class=\"verdict\">", "</p>",
            "Searched for the smallest load of the busiest device. It is 200.0 us, computed from measured operations. "
            "The load of the best single device is 2.50 times as large. The steps below ran one at a time, which was "
            "not searched for: 600.0 us each, on the best single device 450.0 us.");
  html_says(
      text.data, "<div class=\"cards\">", "</div>\n</div>",
      "200.0 usload of the busiest device, computed 2.50×load against the best single device (500.0 us) 600.0 "
      "usone step alone, median of 2; quartiles 600.0 us to 602.0 us 0.75×one step alone, against the best single "
      "device (450.0 us)");
  assert_said(&text, "<div class=\"card main\"><b>2.50×</b>");
  assert_said(&text, "<div class=\"card aside\"><b>0.75×</b>");
  tfc_text_deinit(&text);
  tfc_store_close(db);
  // Measured: a step that ends every 250 us with three at once, 600 us on one device.
  db =
      made("rates", "measured",
           "UPDATE run SET objective = 'throughput', speedup = 2.3, speedup_low = 2.1, speedup_high = 2.6;" RIVAL(
               6, "single:cpu:0", "ok",
               450) "INSERT INTO load (placement, load_us, samples, at_once) SELECT placement, CASE placement_id WHEN "
                    "0 THEN 250 "
                    "ELSE 600 END, 30, 3 FROM placement;" RIVAL(
                        7, "dp", "ok",
                        640) "INSERT INTO load (placement, load_us, samples, at_once) SELECT placement, 240, 0, 0 FROM "
                             "placement WHERE placement_id = 7;");
  // A load that was only computed has no ratio to one that was measured.
  text = shown(db);
  assert_said(&text, "> answer                 250.0 us measured     1.000x     600.0 us     2 ");
  assert_said(&text, "  single:cpu:0           600.0 us measured     2.400x     450.0 us     5 ");
  assert_said(&text, "  dp                     240.0 us computed                640.0 us     5 ");
  tfc_text_deinit(&text);
  assert_ok(tfc_report_html(db, 1, &text));
  html_says(text.data, "<p class=\"verdict\">", "</p>",
            "Searched for the smallest load of the busiest device. The load of the best single device is 2.40 times as "
            "large (95&nbsp;% interval 2.10 to 2.60). The steps below ran one at a time, which was not searched for: "
            "600.0 us each, on the best single device 450.0 us.");
  html_says(text.data, "<div class=\"cards\">", "<div class=\"card aside\">",
            "250.0 usfrom the end of one step to that of the next, 3 at once 2.40×rate against the best single device "
            "(600.0 us) ");
  tfc_text_deinit(&text);
  tfc_store_close(db);
}

// by_hand.h: d reads b of cpu:0 and c of cpu:1 and is read on cpu:1, which is idle from 255 to 482; e reads only d.
static void test_moves(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  assert_ok(tfc_report_critical(hand, 1, &lists));
  const struct tfc_table *t = &lists.tables[3];
  assert_string_equal(lists.names[3], "moves");
  // e would begin on cpu:0 when d has ended, at 450, and end 32 us sooner; d would begin on cpu:1 at 400, and its
  // result would be there at 450 instead of 480. b needs more time than cpu:1 was ever idle.
  assert_int_equal(t->row_count, 2);
  assert_true(tfc_str_is(tfc_table_text(t, 0, "node"), "net/e") && tfc_str_is(tfc_table_text(t, 0, "target"), "cpu:0"));
  assert_near(tfc_table_number(t, 0, "won_us"), 32);
  assert_true(tfc_str_is(tfc_table_text(t, 1, "node"), "net/d") && tfc_str_is(tfc_table_text(t, 1, "target"), "cpu:1"));
  assert_near(tfc_table_number(t, 1, "won_us"), 30);
  assert_said(&lists.text, "What to move: estimated and not checked; each would shorten\n"
                           "  the step of 600.0 us by\n"
                           "     32.0 us  cpu:1 to cpu:0: net/e\n");
  tfc_report_lists_deinit(&lists);
  // With links, d waits for b: 3000 bytes at 4 us and 1 us for 1000 bytes, from 400 on.
  struct tfc_store *db = made("links", "measured",
                              "INSERT INTO link (run_id, source, target, bytes, time_us, samples) VALUES (1, 0, 1, 0, "
                              "4, 1), (1, 0, 1, 1000, 5, 1), (1, 1, 0, 0, 90, 1)");
  assert_ok(tfc_report_critical(db, 1, &lists));
  const uint32_t d = row_of(&lists.tables[3], "node", "net/d");
  assert_near(tfc_table_number(&lists.tables[3], d, "won_us"), 30 - 10); // b's output is 2000 bytes: 5 us times two
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
  // A third device that could take d as well is not another row.
  db = made("third", "measured",
            "INSERT INTO device (run_id, device_id, name, kind, label) SELECT run_id, 2, 'cpu:2', kind, label FROM "
            "device WHERE device_id = 1");
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_true(lists.tables[3].row_count >= 2);
  for (uint32_t r = 1; r < lists.tables[3].row_count; r++)
    for (uint32_t k = 0; k < r; k++)
      assert_true(tfc_table_cell(&lists.tables[3], r, 0)->integer != tfc_table_cell(&lists.tables[3], k, 0)->integer);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
  says("show", NULL,
       "What to move: estimated and not checked; each would shorten   the step of 600.0 us by      32.0 us");
  struct tfc_text page = {0};
  assert_ok(tfc_report_html(hand, 1, &page));
  html_says(page.data, "<h3>What to move</h3>", "</ol>",
            "estimated and not checked; each would shorten the step of 600.0 us by\n"
            "32.0 us: net/e from cpu:1 to cpu:030.0 us: net/d from cpu:0 to cpu:1");
  assert_said(&page, "FROM v_link l JOIN v_device s"); // its query
  assert_said(&page, "No other placement stands beside it: this run has no expert's placement");
  tfc_text_deinit(&page);
  db = made("expert", "measured",
            "UPDATE placement SET name = 'expert', state = 'cut' WHERE run_id = 1 AND placement_id = (SELECT "
            "best_placement_id FROM run"
            " WHERE run_id = 1)");
  assert_ok(tfc_report_html(db, 1, &page));
  assert_said(&page, "No other placement stands beside it: the answer is the expert's placement.");
  tfc_text_deinit(&page);
  // It was stopped early at first, but not in the turns that chose it.
  page = shown(db);
  assert_said(&page, "590.0 us  It ended"); // and no "cut" between
  tfc_text_deinit(&page);
  tfc_store_close(db);
  // So it is none of the placements of tau, which is said; the plot shows it.
  db = made(
      "apart", "measured",
      "UPDATE placement SET state = 'cut' WHERE run_id = 1 AND placement_id = (SELECT best_placement_id FROM run "
      "WHERE run_id = 1); INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, state, label,"
      " simulated_us, median_us, q1_us, q3_us, steps) VALUES (1, 40, 'candidate', 'c 40', 'x', 4, 'ok', 'measured',"
      " 700, 710, 709, 711, 5), (1, 41, 'candidate', 'c 41', 'x', 5, 'ok', 'measured', 800, 810, 809, 811, 5)");
  page = shown(db);
  assert_said(&page, "placements   (not the answer, which was stopped early when it was first measured)");
  tfc_text_deinit(&page);
  assert_ok(tfc_report_html(db, 1, &page));
  assert_said(&page, "placements (not the answer, which was stopped early at first)");
  assert_said(&page, "answer, not in τ");
  tfc_text_deinit(&page);
  tfc_store_close(db);
  // Why there is no tau.
  db = made("spread", "measured",
            "UPDATE placement SET q1_us = 1, q3_us = 5000, final_q1_us = 1, final_q3_us = 5000 WHERE run_id = 1");
  page = shown(db);
  assert_said(&page, "no Kendall's tau, for no two of the placements that were measured (");
  tfc_text_deinit(&page);
  tfc_store_close(db);
  // What was simulated counts, not an estimate.
  static const char tried[] = "INSERT INTO moves_tried (placement, units, value_us) SELECT placement, 7, 600 FROM "
                              "placement WHERE placement_id ="
                              " (SELECT best_placement_id FROM run WHERE run_id = 1) AND run_id = 1;";
  char sql[512];
  db = made("tried", "measured", tried);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_int_equal(lists.tables[3].row_count, 0);
  assert_said(&lists.text, "What to move: nothing. 7 units of the critical path were tried on other\n"
                           "  devices, each by itself: in simulation none shortens the step.\n");
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_html(db, 1, &page));
  html_says(page.data, "<h3>What to move</h3>", "</div>",
            "nothing. 7 units of the critical path were tried on other devices, each by itself: in simulation none "
            "shortens the step.\n");
  tfc_text_deinit(&page);
  tfc_store_close(db);
  snprintf(sql, sizeof sql,
           "%s INSERT INTO single_move (placement, unit_id, node_id, operations, source, target, won_us) SELECT "
           "placement, 1, 1, 2, 0, 1, 12.5 FROM moves_tried",
           tried);
  char off[640];
  snprintf(off, sizeof off, "%s; UPDATE moves_tried SET value_us = 900", sql);
  says("off", off,
       "What to move: each by itself would shorten the simulated step of 900.0 us   (measured: 600.0 us; the "
       "simulation is 50 % too long) by      12.5 us");
  db = made("wins", "measured", sql);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_int_equal(lists.tables[3].row_count, 1);
  assert_near(tfc_table_number(&lists.tables[3], 0, "checked"), 1);
  assert_near(tfc_table_number(&lists.tables[3], 0, "value_us"), 600);
  assert_said(&lists.text, "What to move: each by itself would shorten the simulated step of 600.0 us by\n"
                           "     12.5 us  cpu:0 to cpu:1: net/b\n");
  tfc_report_lists_deinit(&lists);
  snprintf(sql, sizeof sql, "UPDATE run SET objective = 'throughput'");
  assert_int_equal(sqlite3_exec(tfc_store_handle(db), sql, NULL, NULL, NULL), SQLITE_OK);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_said(&lists.text, "What to move: each by itself would lower\n  the simulated largest load of 600.0 us by\n");
  tfc_report_lists_deinit(&lists);
  // The answer does not fit in memory.
  assert_int_equal(
      sqlite3_exec(tfc_store_handle(db), "UPDATE run SET objective = 'step', exit_code = 5", NULL, NULL, NULL),
      SQLITE_OK);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_said(&lists.text,
              "What to move: the answer does not fit in memory, and it may not after any\n  of these either; "
              "each by itself would shorten the simulated step of 600.0 us by\n");
  tfc_report_lists_deinit(&lists);
  assert_int_equal(sqlite3_exec(tfc_store_handle(db), "DELETE FROM single_move", NULL, NULL, NULL), SQLITE_OK);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_said(&lists.text, "in simulation none shortens the step.\n  Nor does the answer fit in memory.\n");
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// net/b ran in two pieces of 150 us, each of which had half of its 20000 FLOP; the best rate is 100 in a microsecond.
// They are one row. In a loop, each run does all of them.
static void test_pieces(void **state) {
  (void)state;
#define IN_PIECES                                                                                                      \
  "UPDATE node SET flops = 10000 * (node_id + 1) WHERE node_id < 2;"                                                   \
  "INSERT INTO cost (run_id, node_id, kind, median_us, q1_us, q3_us, fastest_us, samples) VALUES (1, 0, 'cpu', 100,"   \
  " 100, 100, 100, 2);"                                                                                                \
  "UPDATE op SET duration_ns = 150000 WHERE node_id = 1;"                                                              \
  "INSERT INTO op (placement, step, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, launched_ns) "   \
  "SELECT placement, step, 9, node_id, device_id, 250000, 150000, NULL, NULL FROM op WHERE node_id = "                 \
  "1;"
  says("pieces", IN_PIECES,
       "What would help most: operations of this path at the run's best rates     100.0 us of   300.0 us  net/b ");
  struct tfc_store *db = made("rounds", "measured", IN_PIECES "UPDATE node SET op = 'NextIteration' WHERE node_id = 2");
  struct tfc_text text = shown(db);
  assert_null(strstr(text.data, "0.0 us  net/b"));
  tfc_text_deinit(&text);
  tfc_store_close(db);
}

// A peak without the step's tensors is marked wherever it stands.
static void test_partial_peaks(void **state) {
  (void)state;
  static const char part[] = "UPDATE memory SET complete = 0 WHERE device_id = 0";
  struct tfc_report_lists lists = {0};
  struct tfc_store *db = made("part", "measured", part);
  struct tfc_text text = shown(db);
  assert_said(&text, " >15.0 kB ");
  assert_said(&text, "    9.0 kB ");
  assert_said(&text, tfc_report_peak_note);
  tfc_text_deinit(&text);
  assert_ok(tfc_report_memory(db, 1, &lists));
  assert_said(&lists.text, " >15.0 kB ");
  assert_said(&lists.text, tfc_report_peak_note);
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_html(db, 1, &text));
  char *devices = html_text(text.data, "<h2>Devices</h2>", "<details");
  if (!strstr(devices, "|&gt;15.0 kB|") || !strstr(devices, "|9.0 kB|") || !strstr(devices, "variables alone"))
    fail_msg("no marked peak in: %s", devices);
  free(devices);
  tfc_text_deinit(&text);
  for (uint32_t runs = 2; runs <= 3; runs++) { // two runs side by side, three in a table
    struct tfc_file page = {0};
    char html[160];
    assert_ok(tfc_report_compare(db, (const int64_t[]){1, 1, 1}, runs, &lists));
    assert_said(&lists.text, runs == 2 ? ">peak memory of a device" : "   >15.0 kB\n");
    assert_said(&lists.text, tfc_report_peak_note);
    assert_fits(&lists.text);
    assert_near(tfc_table_number(&lists.tables[TFC_COMPARE_DEVICES], 0, "complete"), 0);
    snprintf(html, sizeof html, "%s/compared", folder);
    assert_ok(tfc_report_compare_page(&lists, "part.db", false, html));
    tfc_report_lists_deinit(&lists);
    snprintf(html, sizeof html, "%s/compared/index.html", folder);
    assert_ok(tfc_file_map(html, &page));
    char *tags = strndup((const char *)page.data, page.size);
    devices = html_text(tags, "<section id=\"devices\">", "</section>");
    if (!strstr(devices, "|&gt;15.0 kB|") || !strstr(devices, "|9.0 kB|") || !strstr(devices, "variables alone"))
      fail_msg("no marked peak in: %s", devices);
    free(devices);
    free(tags);
    tfc_file_unmap(&page);
  }
  tfc_store_close(db);
  text = shown(hand);
  assert_null(strstr(text.data, ">15.0 kB"));
  tfc_text_deinit(&text);
  assert_ok(tfc_report_html(hand, 1, &text));
  assert_null(strstr(text.data, "&gt;15.0 kB"));
  tfc_text_deinit(&text);
  // A run of an older version did not record it: steps with loops are marked. An operation that ran twice in the step
  // of another graph ran in pieces.
#define OLDER                                                                                                          \
  "UPDATE memory SET complete = NULL; INSERT INTO op (placement, step, position, node_id, device_id, start_ns, "       \
  "duration_ns, dispatch_ns, launched_ns) SELECT placement, step, 9, node_id, device_id, 460000, 1000,"                \
  " NULL, NULL FROM op WHERE position = 3;"
  says("loop", OLDER "UPDATE node SET op = 'NextIteration' WHERE node_id = 2", " >15.0 kB ");
  says("in_pieces", OLDER, "  15.0 kB ");
}

static void test_unknown_bytes(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  struct tfc_store *db =
      made("bytes", "measured", "UPDATE node SET output_bytes = 0, bytes_touched = NULL WHERE node_id = 1");
  assert_ok(tfc_report_nodes(db, 1, &lists));
  const uint32_t b = row_of(&lists.tables[0], "node", "net/b");
  assert_true(isnan(tfc_table_number(&lists.tables[0], b, "output_bytes")));
  assert_said(&lists.text, "   300.0 us    0.00 us      - ");
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// Handing a tensor over copies nothing, so its bytes have no rate.
static void test_handed_over(void **state) {
  (void)state;
  says("handed", "UPDATE device SET memory_space = 0", "tensors are handed over, no byte of them is copied");
  struct tfc_text text = shown(hand);
  assert_null(strstr(text.data, "handed over"));
  tfc_text_deinit(&text);
  struct tfc_report_lists lists = {0};
  struct tfc_store *db = made("handed_twice", "measured", "UPDATE device SET memory_space = 0");
  assert_ok(tfc_report_compare(db, (const int64_t[]){1, 1}, 2, &lists));
  const struct tfc_table *traffic = &lists.tables[TFC_COMPARE_TRAFFIC];
  assert_int_equal(traffic->row_count, 4); // there and back, of two runs
  for (uint32_t r = 0; r < 4; r++) assert_true(tfc_str_is(tfc_table_text(traffic, r, "how"), "handed over"));
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// The two ways in which waiting is divided say which of them they are.
static void test_waiting(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  assert_ok(tfc_report_gaps(hand, 1, &lists));
  assert_said(&lists.text, "By cause, of this step: until the producer of the last input had ended");
  assert_said(&lists.text, "the clock (v_busy): there, all time in which any tensor was arriving counts.");
  tfc_report_lists_deinit(&lists);
  says("clock", "UPDATE busy SET launch_ns = 0, transfer_ns = 50000, dependency_ns = 5000, end_ns = 0",
       "By the clock (v_busy): time in which any tensor was arriving is \"transfer\".");
}

// What v_run.tau is where the version that measured had another rule; causes that a version did not record; rivals that
// have no load; and a run without a traced step.
static void test_older_runs(void **state) {
  (void)state;
#define SIMULATED(id, name, us, simulated)                                                                             \
  "INSERT INTO placement (run_id, placement_id, role, name, state, label, median_us, q1_us, q3_us, steps, "            \
  "simulated_us) VALUES (1, " #id ", 'baseline', '" name "', 'ok', 'measured', " #us ", " #us ", " #us                 \
  ", 5, " #simulated ");"
  static const char two[] = SIMULATED(3, "dp", 700, 100) SIMULATED(4, "heft", 900, 200);
  char sql[1024];
  snprintf(sql, sizeof sql, "UPDATE placement SET simulated_us = NULL; UPDATE run SET tau = 0.25; %s", two);
  says("rule", sql, "tau 1.00 over 2 placements   (v_run.tau is 0.25, by the rule of the version that measured)");
  struct tfc_store *db = made("rule_page", "measured", sql);
  struct tfc_text text = {0};
  struct tfc_table run = {0};
  assert_ok(tfc_report_html(db, 1, &text));
  assert_said(&text, "2 placements; v_run.tau is 0.25, by an older rule");
  tfc_text_deinit(&text);
  assert_ok(tfc_table_query(db, tfc_report_sql_run_with_tau, &(struct tfc_query_args){.run = 1}, &run));
  assert_int_equal(run.row_count, 1);
  assert_near(tfc_table_number(&run, 0, "tau"), 0.25);
  assert_near(tfc_table_number(&run, 0, "tau_today"), 1);
  assert_near(tfc_table_number(&run, 0, "tau_today_placements"), 2);
  tfc_table_deinit(&run);
  tfc_store_close(db);
  snprintf(sql, sizeof sql, "UPDATE placement SET simulated_us = NULL; UPDATE run SET tau = 1; %s", two);
  db = made("same_rule", "measured", sql);
  text = shown(db);
  assert_said(&text, "tau 1.00 over 2 placements");
  assert_null(strstr(text.data, "v_run.tau"));
  tfc_text_deinit(&text);
  tfc_store_close(db);

  static const char *const causes[] = {"0", "60000"};
  for (int known = 0; known < 2; known++) {
    snprintf(sql, sizeof sql, "UPDATE busy SET launch_ns = 0, transfer_ns = %s, dependency_ns = 0, end_ns = 0",
             causes[known]);
    db = made(known ? "causes" : "zeros", "measured", sql);
    text = shown(db);
    assert_true(!strstr(text.data, "idle for") == !known);
    if (known) assert_said(&text, "0.0 %      10.0 %          0.0 %        0.0 %  ");
    tfc_text_deinit(&text);
    tfc_store_close(db);
  }

  db = made("no_loads", "measured",
            "UPDATE run SET objective = 'throughput';" RIVAL(3, "dp", "modelled", NULL)
                RIVAL(4, "heft", "modelled", NULL) "INSERT INTO load (placement, load_us, samples, at_once) SELECT "
                                                   "placement, 250, 0, 0 FROM placement WHERE placement_id <> 3");
  text = shown(db);
  assert_said(&text, "only simulated (loads): heft 250.0 us  ");
  tfc_text_deinit(&text);
  change_database(tfc_store_path(db), "DELETE FROM load WHERE placement = (SELECT placement FROM placement WHERE "
                                      "placement_id = 4); DELETE FROM op");
  text = shown(db);
  assert_null(strstr(text.data, "only simulated"));
  assert_said(&text, "Next: tfc-report show 1 --out DIR (the page)");
  tfc_text_deinit(&text);
  tfc_store_close(db);
}

// Of an answer that does not fit in memory, it is not said how far it is above the bound.
static void test_too_large(void **state) {
  (void)state;
  says("large", "UPDATE run SET exit_code = 5, bound_us = 300, bound_name = 'work'",
       "Lower bound: 300.0 us (work); the answer does not fit in memory");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_faster_rivals), cmocka_unit_test(test_what_it_is),    cmocka_unit_test(test_loads),
      cmocka_unit_test(test_moves),         cmocka_unit_test(test_partial_peaks), cmocka_unit_test(test_unknown_bytes),
      cmocka_unit_test(test_handed_over),   cmocka_unit_test(test_waiting),       cmocka_unit_test(test_too_large),
      cmocka_unit_test(test_pieces),        cmocka_unit_test(test_older_runs)};
  return cmocka_run_group_tests_name("answers", tests, set_up, tear_down);
}
