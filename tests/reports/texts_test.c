// Compares complete terminal texts of runs in which every number was chosen by hand: each expected line was worked out
// from tests/reports/by_hand.h and the changes below.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/compare.h"
#include "reports/compare_page.h"
#include "reports/lists.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/reports/by_hand.h"
#include "tests/reports/html.h"

static char folder[64], path[96];
static struct tfc_store *store;

static void change(const char *sql) {
  change_database(path, sql);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "texts")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  setenv("TZ", "UTC", 1);
  assert_ok(write_by_hand(path, "measured"));
  assert_ok(write_by_hand(path, "modelled"));
  assert_ok(write_by_hand(path, "virtual"));
  // Runs begin at whole hours of 1 January 1970, and each took 90 s.
  change("UPDATE run SET started_unix_s = 3600 * run_id, ended_unix_s = 3600 * run_id + 90");
  // The first run gets rivals, a verdict, a bound, an interval, a comparison of simulated and measured times, and a
  // message.
  change("INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, state, label, simulated_us,"
         " median_us, q1_us, q3_us, steps, message) VALUES"
         " (1, 1, 'baseline', 'whole', NULL, NULL, 'ok', 'measured', NULL, 450, 440, 470, 30, NULL),"
         " (1, 2, 'baseline', 'single:cpu:0', NULL, NULL, 'ok', 'measured', 1180, 1200, 1100, 1300, 30, NULL),"
         " (1, 3, 'baseline', 'single:cpu:1', NULL, NULL, 'no fit', 'measured', 1180, NULL, NULL, NULL, 0,"
         " 'cpu:1: needs 2.0 MB, its limit is 1.0 MB'),"
         " (1, 4, 'baseline', 'expert', NULL, NULL, 'cut', 'measured', 890, 900, 880, 990, 2, NULL),"
         " (1, 5, 'baseline', 'etf', 'etf', NULL, 'modelled', 'modelled', 640, NULL, NULL, NULL, 0, NULL),"
         " (1, 6, 'candidate', 'candidate 6', 'lns', 0, 'ok', 'measured', 580, 750, 740, 760, 5, NULL),"
         " (1, 7, 'candidate', 'candidate 7', 'lns', 1, 'failed', 'measured', 700, NULL, NULL, NULL, 0, 'a crash')");
  change("UPDATE run SET speedup = 2, speedup_low = 1.9, speedup_high = 2.125, bound_us = 480, bound_name ="
         " 'critical path', tau = 0.75, tau_placements = 4, cpu_model = 'a model', message = 'Said by the program.',"
         " command = 'tfc-place --graph net.pb' WHERE run_id = 1");
  change("INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) SELECT "
         "placement, node_id, device_id, 2, duration_ns, duration_ns, 2 * duration_ns FROM"
         " op WHERE step = 0");
  change("UPDATE busy SET launch_ns = 10000, transfer_ns = 20000, dependency_ns = 30000, end_ns = 40000,"
         " launch_gap_ns = 7000 WHERE placement = 1");
  change("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT 1, 10 + n.column1, "
         "'in flight', 0, 0, 0, 1000 * n.column2 FROM (VALUES (0, 310),"
         " (1, 290), (2, 300)) n");
  change("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT 1, 20 + n.column1, "
         "'one by one', 0, 0, 0, 1000 * n.column2 FROM (VALUES (0, 500),"
         " (1, 520), (2, 700), (3, 510)) n");
  // The third run gets virtual devices of one GPU and a graph with a long name, and was killed.
  change("UPDATE device SET memory_space = 5, math = 'TF32' WHERE run_id = 3");
  change("UPDATE run SET state = 'running', objective = 'throughput', bound_us = 480, bound_name = 'work',"
         " graph = 'models/of/a/house/with_a_name_of_more_than_26.pb' WHERE run_id = 3");
  // In the second placement `a` and the unit of `b` (which has the weights) are on the other device. Both placements
  // are timed in ten more steps; the interval of ten steps goes from the shortest to the longest.
  change("UPDATE assignment SET device_id = 1 WHERE placement = 2 AND unit_id < 2");
  change("UPDATE run SET graph_sha256 = CASE run_id WHEN 3 THEN 'abd' ELSE 'abc' END");
  change("UPDATE placement SET median_us = 1200, q1_us = 1150, q3_us = 1300 WHERE placement = 2");
  change("UPDATE placement SET steps = 10 WHERE placement < 3");
  change("DELETE FROM memory WHERE placement = 2 AND device_id = 0");
  change("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT p.column1, 100 + "
         "n.column1, 'final', 0, 0, 0, 1000 * p.column1 * n.column2 FROM"
         " (VALUES (1), (2)) p, (VALUES (0, 590), (1, 592), (2, 594), (3, 596), (4, 598), (5, 602), (6, 604), (7, 606),"
         " (8, 608), (9, 610)) n");
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_store_close(store);
  return test_folder_remove(folder);
}

static void equal(struct tfc_text *text, const char *expected) {
  assert_string_equal(text->data, expected);
  tfc_text_deinit(text);
}
static void list_equals(tfc_status s, struct tfc_report_lists *lists, const char *expected) {
  assert_ok(s);
  equal(&lists->text, expected);
  tfc_report_lists_deinit(lists);
}

static void runs(void **state) {
  (void)state;
  struct tfc_text text = {0};
  assert_ok(tfc_report_list(store, &text));
  assert_string_equal(text.data, "  run  state       started          program   graph\n"
                                 "    1  done        1970-01-01 01:00 tfc-place net.pb\n"
                                 "       step 600.0 us, whole 450.0 us, single 1.200 ms, expert 900.0 us, by lns\n"
                                 "    2  done        1970-01-01 02:00 tfc-place net.pb\n"
                                 "       step 1.200 ms (simulated), by lns\n"
                                 "    3  interrupted 1970-01-01 03:00 tfc-place with_a_name_of_more_than_26.pb\n"
                                 "       step 600.0 us, by lns\n");
  for (const char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) assert_true(end - line <= 80);
  tfc_text_deinit(&text);
}

static void shown(void **state) {
  (void)state;
  static const char *const expected[] = {
      "Run 1: net.pb, done, measured\n"
      "  tfc-place --graph net.pb\n"
      "  Said by the program.\n"
      "  a model; seed 1; 2 candidates measured\n"
      "\n"
      "  placement                 step            quartiles steps to found simulated\n"
      "  whole                 450.0 us 440.0 us .. 470.0 us    30   0.750x         -\n"
      "> answer                600.0 us 600.0 us .. 602.0 us    10   1.000x  590.0 us\n"
      "  expert                900.0 us 880.0 us .. 990.0 us     2   1.500x  890.0 us\n"
      "    cut\n"
      "  single:cpu:0          1.200 ms 1.100 ms .. 1.300 ms    30   2.000x  1.180 ms\n"
      "  single:cpu:1                 -               no fit     0           1.180 ms\n"
      "    cpu:1: needs 2.0 MB, its limit is 1.0 MB\n"
      "  only simulated: etf 640.0 us\n"
      "\n"
      "How far apart steps end:\n"
      "  answer, steps in flight: one ends every 300.0 us (3 times)\n"
      "  answer, steps one by one: one ends every 515.0 us (4 times)\n"
      "Against the best single device: 2.000x, 95 % interval 1.900 to 2.125\n"
      "Lower bound: 480.0 us (critical path); the answer is 25.0 % above it\n"
      "Simulated against measured: Kendall's tau 0.33 over 3 placements\n"
      "  (v_run.tau is 0.75, by the rule of the version that measured)\n"
      "It ended after 90.00 s of its 600.00 s with 2 candidates measured, of at most\n"
      "200. The best candidate seen is candidate 6 by lns, 750.0 us when it was\n"
      "measured: it was not in the final turns, the answer took 600.0 us. The undivided\n"
      "machine is faster (450.0 us, the answer 600.0 us), but is no placement.\n"
      "\n"
      "  device     label              busy operations  received       peak      limit\n"
      "  cpu:0      measured         75.0 %          3    2.0 kB    15.0 kB     1.0 MB\n"
      "  cpu:1      measured         36.3 %          2    5.0 kB     9.0 kB       none\n"
      "\n"
      "  idle for        launch    transfer another device  end of step longest launch\n"
      "  cpu:0            1.7 %       3.3 %          5.0 %        6.7 %        7.00 us\n"
      "  cpu:1            1.7 %       3.3 %          5.0 %        6.7 %        7.00 us\n"
      "  By the clock (v_busy): time in which any tensor was arriving is \"transfer\".\n"
      "  `gaps` divides by the last input that an operation waited for.\n"
      "\n"
      "Longest gaps\n"
      "  cpu:1 waits 195.0 us for net/d of cpu:0,\n"
      "    then 30.0 us for its transfer, then 2.00 us to begin\n"
      "  cpu:1 waits 100.0 us for net/a of cpu:0,\n"
      "    then 50.0 us for its transfer, then 5.00 us to begin\n"
      "  cpu:0 has nothing more to do: 150.0 us to the end of the step\n"
      "\n"
      "  moved in the step         tensors     bytes       took    exposed overlapped\n"
      "  cpu:0       to cpu:1            2    5.0 kB    80.0 us    80.0 us    0.00 us\n"
      "  cpu:1       to cpu:0            1    2.0 kB    20.0 us    0.00 us    20.0 us\n"
      "\n"
      "Critical path of the traced step nearest to the median\n"
      "   66.7 %   400.0 us  MatMul\n"
      "   19.7 %   118.0 us  Softmax\n"
      "    8.3 %    50.0 us  AddV2\n"
      "    5.0 %    30.0 us  transfers\n"
      "    0.3 %    2.00 us  waiting\n"
      "  The transfer that costs most: 30.0 us (5.0 %), cpu:0 to cpu:1,\n"
      "    net/d\n"
      "\n"
      "What to move: estimated and not checked; each would shorten\n"
      "  the step of 600.0 us by\n"
      "     32.0 us  cpu:1 to cpu:0: net/e\n"
      "     30.0 us  cpu:0 to cpu:1: net/d\n"
      "\n"
      "Next: tfc-report critical 1, gaps 1, memory 1, nodes 1, trace 1;\n"
      "      tfc-report show 1 --out DIR (the page)\n",
      "Run 2: net.pb, done, modelled (simulated)\n"
      "  tfc-place\n"
      "  seed 1; 0 candidates measured\n"
      "\n"
      "  simulated placement       step            quartiles steps to found simulated\n"
      "> answer                1.200 ms 1.150 ms .. 1.300 ms    10   1.000x  590.0 us\n"
      "\n"
      "It simulated for 90.00 s and measured nothing.\n"
      "\n"
      "  device     label              busy operations  received       peak      limit\n"
      "  cpu:0      modelled         74.5 %          3    2.0 kB          -     1.0 MB\n"
      "  cpu:1      modelled         36.8 %          2    5.0 kB     9.0 kB       none\n"
      "\n"
      "Longest gaps (simulated)\n"
      "  cpu:1 waits 195.0 us for net/d of cpu:0,\n"
      "    then 30.0 us for its transfer, then 2.00 us to begin\n"
      "  cpu:1 waits 100.0 us for net/a of cpu:0,\n"
      "    then 50.0 us for its transfer, then 5.00 us to begin\n"
      "  cpu:0 has nothing more to do: 154.0 us to the end of the step\n"
      "\n"
      "  moved (simulated)         tensors     bytes       took    exposed overlapped\n"
      "  cpu:0       to cpu:1            2    5.0 kB    80.0 us    80.0 us    0.00 us\n"
      "  cpu:1       to cpu:0            1    2.0 kB    20.0 us    0.00 us    20.0 us\n"
      "\n"
      "Critical path of the simulated step\n"
      "   66.2 %   400.0 us  MatMul\n"
      "   20.2 %   122.0 us  Softmax\n"
      "    8.3 %    50.0 us  AddV2\n"
      "    5.0 %    30.0 us  transfers\n"
      "    0.3 %    2.00 us  waiting\n"
      "  The transfer that costs most: 30.0 us (5.0 %), cpu:0 to cpu:1,\n"
      "    net/d\n"
      "\n"
      "What would help most:\n"
      "  what this path takes besides operations on their fastest kind of device\n"
      "     30.0 us of    30.0 us  net/d: transfer, cpu:0 to cpu:1\n"
      "\n"
      "What to move: estimated and not checked; each would shorten\n"
      "  the step of 604.0 us by\n"
      "     32.0 us  cpu:1 to cpu:0: net/e\n"
      "     30.0 us  cpu:0 to cpu:1: net/d\n"
      "\n"
      "Next: tfc-report critical 2, gaps 2, memory 2, nodes 2, trace 2;\n"
      "      tfc-report show 2 --out DIR (the page)\n",
      "Run 3: ..with_a_name_of_more_than_26.pb, running, virtual\n"
      "  tfc-place\n"
      "  seed 1; 0 candidates measured\n"
      "\n"
      "  placement                  load            to found   step alone steps\n"
      "> answer                        -                         600.0 us     2\n"
      "\n"
      "Searched for the smallest load of the busiest device.\n"
      "\"step alone\": one step at a time.\n"
      "Lower bound of the load: 480.0 us (work)\n"
      "It has not ended, or was killed.\n"
      "\n"
      "  device     label              busy operations  received       peak      limit\n"
      "  cpu:0      virtual          75.0 %          3    2.0 kB    15.0 kB     1.0 MB\n"
      "  cpu:1      virtual          36.3 %          2    5.0 kB     9.0 kB       none\n"
      "\n"
      "  a tensor from one virtual device to another: handed over\n"
      "\n"
      "  products and convolutions of float32 on GPUs: TF32\n"
      "\n"
      "Longest gaps\n"
      "  cpu:1 waits 195.0 us for net/d of cpu:0,\n"
      "    then 30.0 us for its transfer, then 2.00 us to begin\n"
      "  cpu:1 waits 100.0 us for net/a of cpu:0,\n"
      "    then 50.0 us for its transfer, then 5.00 us to begin\n"
      "  cpu:0 has nothing more to do: 150.0 us to the end of the step\n"
      "\n"
      "  moved in the step         tensors     bytes       took    exposed overlapped\n"
      "  cpu:0       to cpu:1            2    5.0 kB    80.0 us    80.0 us    0.00 us\n"
      "  cpu:1       to cpu:0            1    2.0 kB    20.0 us    0.00 us    20.0 us\n"
      "  devices share memory: tensors are handed over, no byte of them is copied\n"
      "\n"
      "Critical path of the traced step nearest to the median\n"
      "   66.7 %   400.0 us  MatMul\n"
      "   19.7 %   118.0 us  Softmax\n"
      "    8.3 %    50.0 us  AddV2\n"
      "    5.0 %    30.0 us  transfers\n"
      "    0.3 %    2.00 us  waiting\n"
      "  The transfer that costs most: 30.0 us (5.0 %), cpu:0 to cpu:1,\n"
      "    net/d\n"
      "\n"
      "What to move: estimated and not checked; each would shorten\n"
      "  the step of 600.0 us by\n"
      "     32.0 us  cpu:1 to cpu:0: net/e\n"
      "     30.0 us  cpu:0 to cpu:1: net/d\n"
      "\n"
      "Next: tfc-report critical 3, gaps 3, memory 3, nodes 3, trace 3;\n"
      "      tfc-report show 3 --out DIR (the page)\n"};
  for (int64_t i = 0; i < 3; i++) {
    struct tfc_text text = {0};
    char *whole = tfc_format("%s      with --db %s\n", expected[i], path);
    assert_ok(tfc_report_show(store, i + 1, &text));
    equal(&text, whole);
    free(whole);
  }
}

static void nodes(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  list_equals(tfc_report_nodes(store, 1, &lists), &lists,
              "Run 1: operations of the answer, by their time in a step\n"
              "\n"
              "  in a step half range  bytes    slack device operation\n"
              "   300.0 us    0.00 us 2.0 kB  0.00 us cpu:0  net/b\n"
              "   118.0 us    1.00 us 5.0 kB  0.00 us cpu:1  net/e\n"
              "   100.0 us    0.00 us 1.0 kB  0.00 us cpu:0  net/a\n"
              "   100.0 us    0.00 us 3.0 kB 125.0 us cpu:1  net/c\n"
              "    50.0 us    0.00 us 4.0 kB  0.00 us cpu:0  net/d\n"
              "\n"
              "In a step: all its runs in step 0, the traced one nearest to the median.\n"
              "Half range: half of the distance between the quartiles.\n"
              "Bytes: of the outputs; -: they have no shape before they run.\n"
              "Slack: how much later it could have ended in a step that takes no longer.\n");
}

static char *compared(const int64_t *runs, uint32_t count) {
  struct tfc_report_lists lists = {0};
  struct tfc_file file;
  char *dir = tfc_format("%s.compared", path), *name = tfc_format("%s/index.html", dir);
  assert_ok(tfc_report_compare(store, runs, count, &lists));
  assert_ok(tfc_report_compare_page(&lists, "t.db", false, dir));
  assert_ok(tfc_file_map(name, &file));
  char *html = strndup((const char *)file.data, file.size);
  html_check(html);
  tfc_file_unmap(&file);
  tfc_report_lists_deinit(&lists);
  free(dir), free(name);
  return html;
}
// The page of two runs says what the text says, and of more devices, traffic and operations.
static void two_runs_page(void **state) {
  (void)state;
  char *html = compared((const int64_t[]){1, 2}, 2);
  html_says(
      html, "<header>", "<details",
      "Runs compared\n"
      "Runs 1 and 2 of t.db, against run 1.\n"
      "A step of run 2 takes 1.200 ms, 2.00 times the 600.0 us of run 1: slower, by more than the noise.\n"
      "Steps\n"
      "Median of the steps that measure each run's answer. In the picture, from 533.2 us to 1.357 ms: the median "
      "(line), its 95&nbsp;% interval by order statistics (thin bar) and the quartiles of the steps (thick bar). Where "
      "two "
      "intervals meet, the difference is noise; fewer than six steps have none.\n"
      "run|step|533.2 us to 1.357 ms|95&nbsp;% interval|quartiles|steps|times run 1||\n"
      "run 1|600.0 us||590.0 us – 610.0 us|600.0 us – 602.0 us|10|||\n"
      "run 2|1.200 ms||1.180 ms – 1.220 ms|1.150 ms – 1.300 ms|10|2.000|slower|\n"
      "What else they measured and computed Runs are not measured in turns: where the undivided machine or one device "
      "became slower too, the machine did.\n"
      "run|undivided machine|best single device|expert's placement|lower bound|step as simulated|\n"
      "run 1|450.0 us|1.200 ms|900.0 us|480.0 us|590.0 us|\n"
      "run 2|–|–|–|–|590.0 us × 1.000|\n"
      "Placement\n"
      "Nodes that both runs have and that are on another device than in run 1, by scope (the first two parts of their "
      "names).\n"
      "Run 2: 3 nodes moved scope|from, to|nodes||\n"
      "net|cpu:0 → cpu:1|3||\n"
      "Devices and memory\n"
      "Under each run's answer: the share of its representative step (the traced one nearest to the median) in which a "
      "device was busy, the most memory that it held, and how many nodes are placed on it.\n"
      "device|busyrun 1|busyrun 2|peak memoryrun 1|peak memoryrun 2|limitrun 1|limitrun 2|nodesrun 1|nodesrun 2|\n"
      "cpu:0|75 %|75 %|15.0 kB|–|1.0 MB|–|4|1|\n"
      "cpu:1|36 %|37 %|9.0 kB|9.0 kB|–|–|2|5|\n"
      "Traffic\n"
      "What moved between devices in each run's representative step: run 1: 7.0 kB, run 2: 7.0 kB altogether.\n"
      "from, to|bytesrun 1|bytesrun 2|tensorsrun 1|tensorsrun 2|tookrun 1|tookrun 2|\n"
      "cpu:0 → cpu:1|5.0 kB|5.0 kB|2|2|80.0 us|80.0 us|\n"
      "cpu:1 → cpu:0|2.0 kB|2.0 kB|1|1|20.0 us|20.0 us|\n"
      "Operations\n"
      "Time of a step by type of operation, on all devices: the median over the traced steps of their sums in each. "
      "The bars are differences, to the left where the second run is faster; thick ones are within the noise of the "
      "two "
      "medians.\n"
      "type|run 1|run 2|difference|−4.00 us to +4.00 us|times run 1||\n"
      "MatMul|400.0 us|400.0 us|+0.00 us||1.000|unknown|\n"
      "Softmax|118.0 us|122.0 us|+4.00 us||1.034|unknown|\n"
      "Relu|100.0 us|100.0 us|+0.00 us||1.000|unknown|\n"
      "AddV2|50.0 us|50.0 us|+0.00 us||1.000|unknown|\n"
      "What was compared\n"
      "run|graph|times are|searched for|found by|state|processor|\n"
      "run 1|net.pb|measured|step|lns|done|a model|\n"
      "run 2|net.pb|modelled|step|lns|done||\n");
  free(html);
  html = compared((const int64_t[]){1, 2, 3, 1}, 4);
  html_says(
      html, "<header>", "<details",
      "Runs compared\n"
      "Runs 1, 2, 3 and 1 of t.db, against run 1.\n"
      "A step of run 2 takes 1.200 ms, 2.00 times the 600.0 us of run 1: slower, by more than the noise.\n"
      "Run 3 is of another graph than run 1: their times do not compare.\n"
      "A step of run 1 takes 600.0 us, 1.00 times the 600.0 us of run 1: the difference is noise, because the "
      "95&nbsp;% intervals meet.\n"
      "Steps\n"
      "Median of the steps that measure each run's answer. In the picture, from 533.2 us to 1.357 ms: the median "
      "(line), its 95&nbsp;% interval by order statistics (thin bar) and the quartiles of the steps (thick bar). Where "
      "two intervals meet, the difference is noise; fewer than six steps have none.\n"
      "run|step|533.2 us to 1.357 ms|95&nbsp;% interval|quartiles|steps|times run 1||\n"
      "run 1|600.0 us||590.0 us – 610.0 us|600.0 us – 602.0 us|10|||\n"
      "run 2|1.200 ms||1.180 ms – 1.220 ms|1.150 ms – 1.300 ms|10|2.000|slower|\n"
      "run 3|600.0 us||–|600.0 us – 602.0 us|2||other graph|\n"
      "run 1|600.0 us||590.0 us – 610.0 us|600.0 us – 602.0 us|10|1.000|noise|\n"
      "Loads What runs for throughput searched for: the time that the busiest device needs for a step, or, where it "
      "was measured, from the end of one step to that of the next.\n"
      "run|load of the busiest device|which is|of the best single device|lower bound of the load|\n"
      "run 1|–||–|–|\n"
      "run 2|–||–|–|\n"
      "run 3|–||–|480.0 us|\n"
      "run 1|–||–|–|\n"
      "What else they measured and computed Runs are not measured in turns: where the undivided machine or one "
      "device became slower too, the machine did.\n"
      "run|undivided machine|best single device|expert's placement|lower bound|step as simulated|\n"
      "run 1|450.0 us|1.200 ms|900.0 us|480.0 us|590.0 us|\n"
      "run 2|–|–|–|–|590.0 us × 1.000|\n"
      "run 3|–|–|–|–|–|\n"
      "run 1|450.0 us × 1.000|1.200 ms × 1.000|900.0 us × 1.000|480.0 us × 1.000|590.0 us × 1.000|\n"
      "Placement\n"
      "Nodes that both runs have and that are on another device than in run 1, by scope (the first two parts of "
      "their names).\n"
      "Run 2: 3 nodes moved scope|from, to|nodes||\n"
      "net|cpu:0 → cpu:1|3||\n"
      "Run 3: no node that both have is on another device.\n"
      "Run 1: no node that both have is on another device.\n"
      "Devices and memory\n"
      "Under each run's answer: the share of its representative step (the traced one nearest to the median) in "
      "which a device was busy, the most memory that it held, and how many nodes are placed on it.\n"
      "device|run|busy|peak memory|limit|nodes|\n"
      "cpu:0|run 1|75 %|15.0 kB|1.0 MB|4|\n"
      "cpu:0|run 2|75 %|–|–|1|\n"
      "cpu:0|run 3|75 %|15.0 kB|1.0 MB|4|\n"
      "cpu:0|run 1|75 %|15.0 kB|1.0 MB|4|\n"
      "cpu:1|run 1|36 %|9.0 kB|–|2|\n"
      "cpu:1|run 2|37 %|9.0 kB|–|5|\n"
      "cpu:1|run 3|36 %|9.0 kB|–|2|\n"
      "cpu:1|run 1|36 %|9.0 kB|–|2|\n"
      "Traffic\n"
      "What moved between devices in each run's representative step: run 1: 7.0 kB, run 2: 7.0 kB, run 3: 7.0 "
      "kB, run 1: 7.0 kB altogether.\n"
      "from, to|run|bytes|tensors|took|\n"
      "cpu:0 → cpu:1|run 1|5.0 kB|2|80.0 us|\n"
      "cpu:0 → cpu:1|run 2|5.0 kB|2|80.0 us|\n"
      "cpu:0 → cpu:1|run 3|5.0 kB|2|80.0 us|\n"
      "cpu:0 → cpu:1|run 1|5.0 kB|2|80.0 us|\n"
      "cpu:1 → cpu:0|run 1|2.0 kB|1|20.0 us|\n"
      "cpu:1 → cpu:0|run 2|2.0 kB|1|20.0 us|\n"
      "cpu:1 → cpu:0|run 3|2.0 kB|1|20.0 us|\n"
      "cpu:1 → cpu:0|run 1|2.0 kB|1|20.0 us|\n"
      "Operations\n"
      "Time of a step by type of operation, on all devices: the median over the traced steps of their sums in "
      "each. Beside each: whether it differs from the first run by more than the noise.\n"
      "type|run 1|run 2|run 3|run 1|\n"
      "MatMul|400.0 us|400.0 us unknown|400.0 us|400.0 us unknown|\n"
      "Softmax|118.0 us|122.0 us unknown|120.0 us|118.0 us unknown|\n"
      "Relu|100.0 us|100.0 us unknown|100.0 us|100.0 us unknown|\n"
      "AddV2|50.0 us|50.0 us unknown|50.0 us|50.0 us unknown|\n"
      "What was compared\n"
      "run|graph|times are|searched for|found by|state|processor|\n"
      "run 1|net.pb|measured|step|lns|done|a model|\n"
      "run 2|net.pb|modelled|step|lns|done||\n"
      "run 3|models/of/a/house/with_a_name_of_more_than_26.pb|virtual|throughput|lns|running||\n"
      "run 1|net.pb|measured|step|lns|done|a model|\n");
  free(html);
}

static void two_runs(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  list_equals(tfc_report_compare(store, (const int64_t[]){1, 2}, 2, &lists), &lists,
              "                                      run 1            run 2     ratio\n"
              "graph                      net.pb (both)\n"
              "label                      measured | modelled\n"
              "objective                  step (both)\n"
              "algorithm                  lns (both)\n"
              "cpu_model                  a model | \n"
              "state                      done (both)\n"
              "step                               600.0 us         1.200 ms     2.000  slower\n"
              "  95 % interval                  590-610 us     1.18-1.22 ms\n"
              "step, first quartile               600.0 us         1.150 ms     1.917\n"
              "step, third quartile               602.0 us         1.300 ms     2.159\n"
              "undivided machine                  450.0 us                -\n"
              "best single device                 1.200 ms                -\n"
              "expert                             900.0 us                -\n"
              "lower bound                        480.0 us                -\n"
              "moved in a step                      7.0 kB           7.0 kB     1.000\n"
              "peak memory of a device             15.0 kB           9.0 kB     0.600\n"
              "\n"
              "3 nodes are on another device\n"
              "       3  net                                       cpu:0 to cpu:1\n"
              "\n"
              "time in a step by op type             run 1            run 2     ratio\n"
              "MatMul                             400.0 us         400.0 us     1.000\n"
              "Softmax                            118.0 us         122.0 us     1.034\n"
              "Relu                               100.0 us         100.0 us     1.000\n"
              "AddV2                               50.0 us          50.0 us     1.000\n"
              "\n"
              "Runs are not measured in turns; what the machine did meanwhile shows in rivals\n"
              "(undivided, single device).\n");
}

// Of the scopes whose nodes moved, twelve are listed.
static void many_moves(void **state) {
  (void)state;
  for (int moved = 12; moved <= 13; moved++) {
    char file[sizeof path], expected[1024] = "";
    struct tfc_store *db = NULL;
    struct tfc_report_lists lists = {0};
    snprintf(file, sizeof file, "%s/moves%d.db", folder, moved);
    assert_ok(write_by_hand(file, "measured"));
    assert_ok(write_by_hand(file, "measured"));
    change_database(
        file, "WITH RECURSIVE k(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM k WHERE n < 22) INSERT INTO node (run_id,"
              " node_id, name, op, unit_id) SELECT run_id, n, 's' || n || '/x', 'Relu', n FROM k, run");
    char *sql = tfc_format("INSERT INTO assignment (placement, unit_id, device_id) SELECT p.placement, n.unit_id, "
                           "p.placement = 2 AND n.unit_id < %d"
                           " FROM placement p JOIN node n USING (run_id) WHERE n.unit_id >= 10",
                           10 + moved);
    change_database(file, sql);
    free(sql);
    assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
    assert_ok(tfc_report_compare(db, (const int64_t[]){1, 2}, 2, &lists));
    size_t n = (size_t)snprintf(expected, sizeof expected, "\n%d nodes are on another device\n", moved);
    for (int i = 0; i < 12; i++)
      n += (size_t)snprintf(expected + n, sizeof expected - n, "       1  s%d%37s  cpu:0 to cpu:1\n", 10 + i, "");
    snprintf(expected + n, sizeof expected - n, "%s", moved > 12 ? "  and 1 more: --json has all\n" : "");
    const char *at = strstr(lists.text.data, expected);
    if (!at) fail_msg("no '%s' in: %s", expected, strstr(lists.text.data, "are on another device"));
    if (at[strlen(expected)] == ' ') fail_msg("more than: %s", expected);
    tfc_report_lists_deinit(&lists);
    tfc_store_close(db);
  }
}

static void three_runs(void **state) {
  (void)state;
  struct tfc_report_lists lists = {0};
  list_equals(tfc_report_compare(store, (const int64_t[]){1, 2, 3}, 3, &lists), &lists,
              "Run 3 is of another graph than run 1: its times do not compare with those.\n"
              "\n"
              "run         step          95 % interval   ratio                 moved       peak\n"
              "1       600.0 us    590.0 us - 610.0 us                        7.0 kB    15.0 kB\n"
              "2       1.200 ms    1.180 ms - 1.220 ms   2.000 slower         7.0 kB     9.0 kB\n"
              "3       600.0 us                      -         other graph    7.0 kB    15.0 kB\n"
              "\n"
              "run           load             ratio best single's load    lower bound\n"
              "3                -                                    -       480.0 us\n"
              "\n"
              "run          whole  best single       expert   nodes  graph\n"
              "1         450.0 us     1.200 ms     900.0 us       0  net.pb\n"
              "2                -            -            -       3  net.pb\n"
              "3                -            -            -       0  ..name_of_more_than_26.pb\n"
              "Nodes: on another device than in run 1.\n"
              "\n"
              "time by op type          run 1       run 2       run 3\n"
              "MatMul                400.0 us    400.0 us    400.0 us\n"
              "Softmax               118.0 us    122.0 us    120.0 us\n"
              "Relu                  100.0 us    100.0 us    100.0 us\n"
              "AddV2                  50.0 us     50.0 us     50.0 us\n"
              "\n"
              "Runs are not measured in turns; what the machine did meanwhile shows in rivals\n"
              "(undivided, single device).\n");
}

// A run that searched for loads beside one that searched for steps, and beside itself; and two that were only
// simulated. A step is compared with a step, a load with a load that was got in the same way, and bounds stand apart.
static void loads(void **state) {
  (void)state;
  char file[sizeof path];
  struct tfc_store *db = NULL, *kept = store;
  struct tfc_report_lists lists = {0};
  snprintf(file, sizeof file, "%s/loads.db", folder);
  for (int i = 0; i < 3; i++) assert_ok(write_by_hand(file, "measured"));
  for (int i = 0; i < 3; i++) assert_ok(write_by_hand(file, "modelled"));
  change_database(file, "UPDATE run SET bound_us = 480, graph_sha256 = 'abc'");
  change_database(file, "UPDATE run SET objective = 'throughput', bound_us = 210 WHERE run_id IN (2, 3)");
  change_database(file, "INSERT INTO placement (run_id, placement_id, role, name, state, label, steps) VALUES (2, 9, "
                        "'baseline', 'single:cpu:0', 'ok', 'measured', 0)");
  change_database(file,
                  "INSERT INTO load (placement, load_us, samples, at_once) SELECT placement, CASE WHEN name LIKE "
                  "'single%' THEN 500 WHEN run_id = 2 THEN 250 ELSE 240 END, CASE run_id WHEN 2 THEN 0 ELSE 24 END, "
                  "2 FROM placement WHERE run_id IN (2, 3)");
  change_database(file, "UPDATE placement SET median_us = 500, q1_us = NULL, q3_us = NULL WHERE run_id > 3");
  change_database(file, "UPDATE placement SET median_us = 500.00000001 WHERE run_id = 5");
  change_database(file, "UPDATE placement SET median_us = 400 WHERE run_id = 6");
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
  assert_ok(tfc_report_compare(db, (const int64_t[]){1, 2}, 2, &lists));
  const char *expected = "Run 2 searched for the smallest load, run 1 for the shortest step:\n"
                         "only steps that ran one at a time compare.\n"
                         "\n"
                         "                                      run 1            run 2     ratio\n"
                         "graph                      net.pb (both)\n"
                         "label                      measured (both)\n"
                         "objective                  step | throughput\n";
  if (!tfc_str_starts(tfc_str_from(lists.text.data), expected)) assert_string_equal(lists.text.data, expected);
  expected = "load, computed                            -         250.0 us\n"
             "best single device, load                  -         500.0 us\n"
             "lower bound of the load                   -         210.0 us\n"
             "one step alone                     600.0 us         600.0 us     1.000  unknown\n";
  if (!strstr(lists.text.data, expected)) assert_string_equal(lists.text.data, expected);
  expected = "best single device, step                  -                -\n"
             "expert                                    -                -\n"
             "lower bound of the step            480.0 us                -\n"
             "moved in a step";
  if (!strstr(lists.text.data, expected)) assert_string_equal(lists.text.data, expected);
  assert_non_null(strstr(lists.text.data, "  unknown  a run has no interval: too few steps"));
  struct tfc_text csv = {0};
  tfc_table_csv(&lists.tables[TFC_COMPARE_RUNS], &csv);
  assert_non_null(
      strstr(csv.data, ",objective,load_us,load_samples,load_at_once,best_single_load_us,load_how,load_ratio,"));
  assert_non_null(strstr(csv.data, ",throughput,250"));
  tfc_text_deinit(&csv);
  tfc_report_lists_deinit(&lists);
  // Of two runs with loads there is no bound of a step. One load is measured, the other one is not.
  assert_ok(tfc_report_compare(db, (const int64_t[]){2, 3}, 2, &lists));
  expected = "The load of run 3 is measured, that of run 2 computed: they do not compare.\n\n";
  if (!tfc_str_starts(tfc_str_from(lists.text.data), expected)) assert_string_equal(lists.text.data, expected);
  assert_non_null(strstr(lists.text.data, "\nload                               250.0 us         240.0 us\n"));
  assert_null(strstr(lists.text.data, "lower bound of the step"));
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_compare(db, (const int64_t[]){2, 2, 1}, 3, &lists));
  expected = "\nrun           load             ratio best single's load    lower bound\n"
             "2         250.0 us computed                    500.0 us       210.0 us\n"
             "2         250.0 us computed    1.000           500.0 us       210.0 us\n"
             "\n";
  if (!strstr(lists.text.data, expected)) assert_string_equal(lists.text.data, expected);
  tfc_report_lists_deinit(&lists);
  // Simulated times have no noise, and are equal if they differ only in their last digits.
  assert_ok(tfc_report_compare(db, (const int64_t[]){4, 5}, 2, &lists));
  assert_non_null(strstr(lists.text.data, "500.0 us         500.0 us     1.000  equal\n"));
  assert_null(strstr(lists.text.data, "in turns"));
  tfc_report_lists_deinit(&lists);
  store = db;
  char *html = compared((const int64_t[]){1, 2}, 2);
  html_says(
      html, "<header>", "<h2>Steps",
      "Runs compared\nRuns 1 and 2 of t.db, against run 1.\n"
      "Run 2 searched for the smallest load of the busiest device, run 1 for the shortest step: only steps that ran "
      "one at a time compare. One step alone of run 2 takes 600.0 us, 1.00 times the 600.0 us of run 1: whether that "
      "is noise is not known, because a run has too few steps.\n");
  free(html);
  html = compared((const int64_t[]){2, 2}, 2);
  html_says(html, "<p class=\"verdict\">", "<h2>Steps",
            "The load of run 2, computed, is 250.0 us, 1.00 times the 250.0 us of run 2. One step alone of run 2 takes "
            "600.0 us, "
            "1.00 times the 600.0 us of run 2: whether that is noise is not known, because a run has too few steps.\n");
  free(html);
  html = compared((const int64_t[]){4, 5}, 2);
  html_says(html, "<p class=\"verdict\">", "<h2>Steps",
            "A step of run 5 takes 500.0 us, 1.00 times the 500.0 us of run 4: they are equal.\n");
  assert_null(strstr(html, "in turns"));
  free(html);
  html = compared((const int64_t[]){4, 6}, 2);
  html_says(
      html, "<p class=\"verdict\">", "<h2>Steps",
      "A step of run 6 takes 400.0 us, 0.80 times the 500.0 us of run 4: faster; both are simulated, which has no "
      "noise.\n");
  free(html);
  store = kept;
  tfc_store_close(db);
}

// --- Pages -----------------------------------------------------------------------------------------------------------

// The document of an answer, whose path has 100 us in MatMul (a), 50 us in transfers, 20 us in AddV2 (d) and 30 us in
// other operations.
static const char answer[] =
    "{\"format\": \"tfc-placement\", \"version\": 1, \"graph\": {\"file\": \"a<b>.json\", \"nodes\": 6},"
    " \"devices\": [{\"name\": \"cpu:0\", \"kind\": \"cpu\", \"label\": \"modelled\", \"busy_us\": 150, \"memory\": "
    "2048},"
    " {\"name\": \"cpu:1\", \"kind\": \"cpu\", \"label\": \"modelled\", \"busy_us\": 50, \"memory\": 1000}],"
    " \"objective\": \"step\", \"value_us\": 200, \"value_label\": \"modelled\", \"feasible\": true, \"transfers\": 3,"
    " \"transfer_bytes\": 7000, \"baselines\": [{\"name\": \"single:cpu:0\", \"median_us\": 400, \"note\": \"one\"},"
    " {\"name\": \"expert\", \"note\": \"not there\"}],"
    " \"critical_path\": [{\"node\": \"net/a\", \"from\": \"cpu:0\", \"to\": \"cpu:0\", \"start_us\": 0, \"end_us\": "
    "100},"
    " {\"node\": \"net/a\", \"from\": \"cpu:0\", \"to\": \"cpu:1\", \"start_us\": 100, \"end_us\": 150},"
    " {\"node\": \"net/d\", \"start_us\": 150, \"end_us\": 170}, {\"node\": \"gone\", \"start_us\": 170, \"end_us\": "
    "200}],"
    " \"placement\": {\"net/a\": \"cpu:0\", \"net/b\": \"cpu:0\", \"net/d\": \"cpu:1\"},"
    " \"reasons\": {\"net/a\": \"pinned & so on\", \"net/d\": \"with net/c\"}}";

static void page(void **state) {
  (void)state;
  struct tfc_text html = {0};
  char *sql = tfc_format("UPDATE run SET graph_sha256 = 'abc', trace_overhead = 0.0125, answer = '%s' WHERE run_id = 1",
                         answer);
  change(sql);
  free(sql);
  assert_ok(tfc_report_html(store, 1, &html));
  html_check(html.data);
  html_says(html.data, "<header>", "<div class=\"cards\">",
            "net.pb on 2 devices\n"
            "Run 1 of t.db, 1970-01-01 01:00, took 90.00 s. Times are measured\n"
            "A step takes 600.0 us under the placement that was found: 2.00 times faster than on the best single "
            "device, by more than the noise (95&nbsp;% interval 1.90 to 2.12). The undivided machine, as one device, "
            "is faster still: 450.0 us.\n");
  html_says(
      html.data, "<div class=\"cards\">", "</div>\n</div>",
      "600.0 usa step, median of 10; quartiles 600.0 us to 602.0 us 2.00×against the best single device (1.200 ms) "
      "1.50×against the expert's hand placement (900.0 us) 0.75×against the undivided machine (450.0 us) 25 %above the "
      "lower bound of 480.0 us (critical path) 0.33Kendall's τ of simulated against measured, 3 placements; v_run.tau "
      "is "
      "0.75, by an older rule");
  html_says(html.data, "<h2>The answer and its rivals</h2>", "</table>",
            "Medians of timed steps, first operation's start to last operation's end; rows without steps were only "
            "simulated. \"cut\": stopped early, because it was much slower than the best.\n"
            "placement|step||quartiles|steps|answer is|simulated|moved||\n"
            "whole|450.0 us||440.0 us – 470.0 us|30|1.33× slower|–|–|measured |\n"
            "answer by lns|600.0 us||600.0 us – 602.0 us|10||590.0 us|7.0 kB|measured |\n"
            "expert|900.0 us||880.0 us – 990.0 us|2|1.50× faster|890.0 us|–|cut measured |\n"
            "single:cpu:0|1.200 ms||1.100 ms – 1.300 ms|30|2.00× faster|1.180 ms|–|measured |\n"
            "single:cpu:1|–|||||1.180 ms|–|no fit measured cpu:1: needs 2.0 MB, its limit is 1.0 MB|\n");
  html_says(html.data, "<details><summary>1 rival that was only simulated", "</details>",
            "placement|step||quartiles|steps|answer is|simulated|moved||\n"
            "etf|–|||||640.0 us|–|modelled |\n");
  html_says(html.data, "<h2>Devices</h2>", "<details",
            "Under the answer. Shares are those of the step.\n"
            "device|hardware|cores|busy||operations|received|peak memory|limit||\n"
            "cpu:0|model|1|75 %||3|2.0 kB|15.0 kB|1.0 MB|measured|\n"
            "cpu:1|model|1|36 %||2|5.0 kB|9.0 kB|none|measured|\n");
  html_says(html.data, "<p>Why they stood still", "</table>",
            ": the host had not launched yet, a tensor was on its way, another device was not done, or the device was "
            "done before the step. Shares of the step, by the clock (v_busy): time in which any tensor was arriving is "
            "\"transfer\". \"Longest gaps\" are divided by the last input that an operation waited for.\n"
            "device|launch|transfer|another device|end of step|longest launch|\n"
            "cpu:0|1.7 %|3.3 %|5.0 %|6.7 %|7.00 us|\n"
            "cpu:1|1.7 %|3.3 %|5.0 %|6.7 %|7.00 us|\n");
  html_says(html.data, "<h3>Critical path by type</h3>", "</table>",
            "MatMul|400.0 us|66.7 %|\n"
            "Softmax|118.0 us|19.7 %|\n"
            "AddV2|50.0 us|8.3 %|\n"
            "transfers|30.0 us|5.0 %|\n"
            "waiting|2.00 us|0.3 %|\n");
  // --csv prints the devices alone, --json the tensors too.
  assert_non_null(strstr(html.data, "All of them: tfc-report memory 1 --json."));
  html_says(html.data, "<h2>What was forced</h2>", "</table>",
            "2 operations had no choice, or fell back.\n"
            "Show themoperation|device|reason|\n"
            "net/a|cpu:0|pinned &amp; so on|\n"
            "net/d|cpu:1|with net/c|\n");
  html_says(html.data, "<h2>How this was got</h2>", "</dl>",
            "command|tfc-place --graph net.pb\n"
            "graph|net.pb\n"
            "its SHA-256|abc\n"
            "processor|a model\n"
            "found by|lns\n"
            "objective|step\n"
            "tfc|" TFC_VERSION "\n"
            "message|Said by the program.\n"
            "nodes of the graph|6\n"
            "candidates measured|2\n"
            "cost of tracing|1.25 % of a step\n"
            "seed|1\n");
  // Bars are relative to the slowest row (1.2 ms), or to a device. Rows without a valid measurement are marked.
  static const char *const bars[] = {"width:37.5%",  "width:50.0%", "width:75.0%",
                                     "width:100.0%", "width:75.0%", "width:36.3%"};
  for (size_t k = 0; k < sizeof bars / sizeof *bars; k++)
    if (!strstr(html.data, bars[k])) fail_msg("no bar of %s", bars[k]);
  uint32_t odd = 0;
  for (const char *p = html.data; (p = strstr(p, "<span class=\"tag odd\">")); p++) odd++;
  assert_int_equal(odd, 3); // the rows "cut", "no fit" and "modelled"
  tfc_text_deinit(&html);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs),          cmocka_unit_test(shown),      cmocka_unit_test(nodes),
      cmocka_unit_test(two_runs_page), cmocka_unit_test(two_runs),   cmocka_unit_test(three_runs),
      cmocka_unit_test(page),          cmocka_unit_test(many_moves), cmocka_unit_test(loads)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
