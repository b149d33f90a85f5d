// Plays whole jobs on a machine whose step times are known (played_job.h): which batches each phase asks for, how it
// divides the time, what it reports, what the database has afterwards, and how an interrupted job goes on.
#include "tests/common/test.h"

#include <sqlite3.h>
#include <unistd.h>

#include "placer/measure/evaluator.h"
#include "tests/placer/played_job.h"

// The sources of the job, whose calls of the measurer, of searches and of the clock are played.
#include "placer/job/clock.c"
#include "placer/job/turns.c"
#define measuring flight_measuring
#define measured flight_measured
#include "placer/job/in_flight.c"
#undef measuring
#undef measured
#include "placer/job/evaluate.c"
#include "placer/job/final.c"
#include "placer/job/job.c"
// A database that is only read by this process: it need not wait for the disk.
static tfc_status played_store(const char *path, const struct tfc_store_options *options, struct tfc_store **to) {
  TFC_RETURN_IF_ERROR(tfc_store_open(path, options, to));
  assert_int_equal(sqlite3_exec(tfc_store_handle(*to), "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
  return NULL;
}
#define tfc_store_open played_store
#include "placer/job/journal.c"
#undef tfc_store_open
#include "placer/job/learn.c"
#include "placer/job/profile.c"
#include "placer/job/repeat.c"
#include "placer/job/resume.c"
#include "placer/job/rivals.c"
#include "placer/job/search.c"
#include "placer/measure/evaluator.c"

static char db_path[64];
static struct tfc_job_outcome out;

// A job of 100 s whose searches find nothing that the model does not know (--model prior).
static struct tfc_job_options options_of(void) {
  return (struct tfc_job_options){.program = "played",
                                  .command = "played job",
                                  .graph_path = TFC_SOURCE_DIR "/examples/mlp.pb",
                                  .graph = play.graph,
                                  .step = &play.step,
                                  .devices = "3",
                                  .execution = {.seed = 3, .threads = 1},
                                  .measurements = 40,
                                  .seconds = 100,
                                  .prior = true,
                                  .database = db_path,
                                  .cancel = &play.cancel,
                                  .event = heard};
}

static void remove_files(void) {
  static const char *const more[] = {"", "-wal", "-shm", "-journal", ".lock"};
  char path[80];
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    snprintf(path, sizeof path, "%s%s", db_path, more[i]);
    unlink(path);
  }
}

// --- Reading the log and the database --------------------------------------------------------------------------------
// The log has this line, with any second before it if `line` has none.
static void logged(const char *line) {
  char whole[1024];
  snprintf(whole, sizeof whole, "%s%s\n", line[0] >= '0' && line[0] <= '9' ? "\n" : " ", line);
  if (!strstr(play.log.data, whole)) fail_msg("no line '%s' in:\n%s", line, play.log.data);
}
static void not_logged(const char *text) {
  if (strstr(play.log.data, text)) fail_msg("'%s' in:\n%s", text, play.log.data);
}
static void logged_part(const char *text) {
  if (!strstr(play.log.data, text)) fail_msg("no '%s' in:\n%s", text, play.log.data);
}
static uint32_t times_logged(const char *text) {
  uint32_t n = 0;
  for (const char *at = play.log.data; (at = strstr(at, text)); at++) n++;
  return n;
}

// The rows of a query, columns separated by blanks and rows by semicolons.
static void rows_are(const char *sql, const char *expected) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  struct tfc_text got = {0};
  assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  tfc_text_printf(&got, "%s", "");
  while (sqlite3_step(q) == SQLITE_ROW) {
    if (got.size) tfc_text_printf(&got, "; ");
    for (int c = 0; c < sqlite3_column_count(q); c++) {
      if (c) tfc_text_printf(&got, " ");
      if (sqlite3_column_type(q, c) == SQLITE_FLOAT)
        tfc_text_printf(&got, "%.6g", sqlite3_column_double(q, c));
      else if (sqlite3_column_type(q, c) == SQLITE_NULL)
        tfc_text_printf(&got, "-");
      else
        tfc_text_printf(&got, "%s", (const char *)sqlite3_column_text(q, c));
    }
  }
  sqlite3_finalize(q);
  sqlite3_close(db);
  if (strcmp(got.data ? got.data : "", expected) != 0)
    fail_msg("%s:\n   %s\nis not\n   %s", sql, got.data ? got.data : "", expected);
  tfc_text_deinit(&got);
}

static void begin(void) {
  remove_files();
  play_begin();
}
static void end(void) {
  tfc_job_outcome_deinit(&out);
  play_end();
  remove_files();
}

// The second at which a line with this text came.
static double second_of(const char *text) {
  const char *at = strstr(play.log.data, text);
  if (!at) fail_msg("no '%s' in:\n%s", text, play.log.data);
  while (at > play.log.data && at[-1] != '\n') at--;
  return atof(at);
}
// How many candidates the database has measurements of.
static uint32_t play_measured(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "SELECT MAX(episode) FROM placement", -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const uint32_t n = (uint32_t)sqlite3_column_int(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return n;
}

// The table of the answer, "KIND NAME TIME, ...".
static void table_is(const char *expected) {
  struct tfc_text got = {0};
  for (uint32_t i = 0; i < out.row_count; i++)
    tfc_text_printf(&got, "%s%s %s %.0f", i ? ", " : "", out.rows[i].kind, out.rows[i].name, out.rows[i].median_us);
  assert_string_equal(got.data, expected);
  tfc_text_deinit(&got);
}

static void show_log(void) {
  if (getenv("TFC_SHOW_LOG")) fprintf(stderr, "%s", play.log.data);
}

// --- A whole job -----------------------------------------------------------------------------------------------------
// The best placement has the chain a on "acc:0" and the rest on a CPU: 403 us for the chain b with its dispatches, and
// 21 us for "j"; it is what the second round finds. The first finds one that takes 10 us more.
static const char *const two_rounds[] = {"2220001 heft:1110000 policy:2220002", "2220000 policy:2220001", NULL};

static void profile_and_rivals(void) {
  // One device of each kind; shares of 100 s. Each batch takes half a second here.
  logged("0.00 batch 0000000 plain, 2222222 plain; 1 + 1 x 3, no limits, again, trace all, until 10.00");
  logged("0.50 batch 0000000 parts, 2222222 parts; 1 + 1 x 5, no limits, again, trace all, until 15.00");
  logged("1.00 batch 0000000, 2222222, whole; 2 + 4 x 3, settle, no limits, again, trace alternate, until 20.00");
  logged("1.50 links until 25.00");
  logged("says: single:cpu:0: 827.0 us a step (12 steps)"); // 820 us and seven dispatches
  logged("says: single:acc:0: 967.0 us a step (12 steps)");
  logged("says: whole: 600.0 us a step (12 steps)");
  logged("says: tracing costs 1.0 % of a step");
  logged("says: best so far: 827.0 us a step, by single:cpu:0");
  logged("says: cpu:0 to cpu:1: 1.0 kB in 10.0 us"); // the first link, those of 262144 bytes, and the last
  logged("says: cpu:0 to acc:0: 262 kB in 20.0 us");
  logged("says: acc:0 to cpu:0: 1.0 MB in 30.0 us");
  assert_int_equal(times_logged(" to cpu:") + times_logged(" to acc:"), 5);
  // The three best heuristics; dls proposes what heft does, and peft takes 977 us.
  logged("1.50 batch 1110000, 0002220, 1111110; 1 + 1 x 5, stop 1.5, best 827, trace all, until 35.00");
  logged("says: heft: 434.0 us a step (simulated 434.0 us)");
  logged("says: m-topo: 834.0 us a step (simulated 834.0 us)");
  logged("says: metis: 837.0 us a step (simulated 837.0 us)");
  not_logged("peft:");
}

static void whole_job(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  const struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  profile_and_rivals();
  // The search: 73 s are left, an eighth of them is more than 50 ms for each of seven units, and half a second is the
  // least. Two new placements are as fast as the reference, so it stays.
  logged("2.00 search auto for 0.5000 s, seed 3, start 1110000");
  logged("2.50 batch 2220001, 2220002, 1110000 reference; 1 + 1 x 5, stop 1.5, best 434, trace all, until 75.00");
  logged("3.00 search auto for 0.5000 s, seed 7922, start 1110000"); // what was found is no better than the leader
  logged("says: best so far: 424.0 us a step, by lns");
  logged("4.00 batch 2220000, 1110000 reference; 1 + 3 x 5, trace none, until 75.00"); // is it really faster?
  logged("4.50 search auto for 0.5000 s, seed 15841, start 2220000");
  // It ends after one round and fifteen shorter ones without a gain, or three that find nothing to measure.
  assert_true(times_logged("search auto") >= 2 + 3 && times_logged("search auto") <= 2 + 16);
  assert_int_equal(out.measured, play_measured());
  assert_true(out.measured <= 40);
  // The final turns: all but the report's 5 s and the 8 % for the answer without its order; 45 % of it chooses.
  const double from = second_of("says: final run:"), until = 95 - 0.08 * (95 - from);
  char line[256];
  snprintf(line, sizeof line, "; 1 + 6 x 5, 4 choose until %.2f, trace all, until %.2f\n", from + 0.45 * (until - from),
           until);
  if (!strstr(play.log.data, line)) fail_msg("no '%s' in %s", line, play.log.data);
  // The best, the best single device, the undivided machine, and the seven next best on several devices.
  logged_part("says: final run: 10 placements in turns");
  logged_part("batch 2220000 answers, 0000000 answers stays, whole stays, 2");
  not_logged("0002220 answers");
  not_logged("1111110 answers");
  assert_int_equal(times_logged(" batch 2220000; 1 + 2 x 5, no limits, trace none, until 95.00"), 1);
  // The answer.
  assert_int_equal(out.exit_code, 0);
  assert_string_equal(out.first_line, "Found: 424.0 us a step.");
  const struct tfc_job_row *answer = tfc_job_outcome_answer(&out);
  assert_true(answer->median_us == 424 && answer->steps == 30 && fabs(answer->speedup - 827.0 / 424) < 1e-9);
  assert_string_equal(out.bound_name, "critical path"); // b1, b2, b3, j at their best, 420 us, without dispatching
  assert_true(fabs(out.bound_us - 420) < 1e-6 && fabs(out.gap - 4.0 / 420) < 1e-9);
  assert_string_equal(out.path, "Neg 59 %, Exp 36 %, AddV2 5 %"); // 252, 151 and 21 of 424 us
  assert_true(out.crossing[2 * DEVICES + 0] == 64 && out.crossing[0] == 0 && !out.crossing_modelled);
  assert_true(fabs(out.busy_share[0] - 420.0 / 424) < 1e-6 && fabs(out.busy_share[2] - 140.0 / 424) < 1e-6);
  assert_true(out.busy_share[1] == 0 && out.peak[0] == 4000 && out.peak[2] == 3000);
  assert_true(fabs(out.trace_overhead - 0.01) < 1e-9 && !out.interrupted && out.lost_workers == 0);
  const struct tfc_placement *d = out.placement;
  assert_true(d->value_us == 424 && d->step_median_us == 424 && d->step_q1_us == 424 && d->step_count == 30);
  assert_true(d->unordered_median_us == 424 && d->unordered_count == 10);
  assert_true(d->value_label == TFC_LABEL_MEASURED && d->step_label == TFC_LABEL_MEASURED && d->feasible);
  assert_true(d->transfers == 1 && d->transfer_bytes == 64 && d->run == out.run && d->seed == 3);
  assert_true(d->evaluations == out.measured && tfc_str_is(d->algorithm, "lns") && d->bound_us == out.bound_us);
  assert_true(d->device_count == 3 && d->devices[0].busy_us == 420 && d->devices[2].memory == 3000);
  assert_true(tfc_str_is(d->devices[2].name, "acc:0") && tfc_str_is(d->devices[1].kind, "cpu"));
  assert_int_equal(d->baseline_count, out.row_count - 1 - 2); // without the answer, dls and peft
  table_is("whole whole 600, answer found 424, single single:cpu:0 827, single single:acc:0 967, heuristic metis 837, "
           "heuristic heft 434, heuristic peft nan, heuristic dls nan, heuristic m-topo 834");
  end();
}

// --- The database ----------------------------------------------------------------------------------------------------
static void database(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  const struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  rows_are("SELECT program, command, graph_nodes, objective, algorithms, label, seed, state, exit_code, algorithm, "
           "speedup, bound_us, bound_name, trace_overhead FROM run",
           "played played job 9 step auto measured 3 done 0 lns 1.95047 420 critical path 0.01");
  struct tfc_host host;
  char described[400];
  tfc_host_describe(&host);
  snprintf(described, sizeof described, "%s|%s", host.name, host.cpu_model);
  rows_are("SELECT host || '|' || cpu_model FROM run", described);
  rows_are("SELECT device_id, name, kind, label, cores, memory_space, dispatch_us FROM device ORDER BY device_id",
           "0 cpu:0 cpu measured 1 0 1; 1 cpu:1 cpu measured 2 1 1; 2 acc:0 acc measured 3 2 1; "
           "3 whole cpu measured 8 0 -");
  rows_are("SELECT COUNT(*), SUM(time_us), SUM(samples) FROM link WHERE bytes = 1024", "3 30 21");
  rows_are("SELECT kind, SUM(median_us), SUM(fastest_us), COUNT(*) FROM cost GROUP BY kind ORDER BY kind",
           "acc 960 960 7; cpu 820 820 7");
  rows_are("SELECT name, op, flops - node_id, bytes_touched - node_id, output_bytes FROM node WHERE unit_id IS NULL "
           "ORDER BY name",
           "outside Unpack 16 128 128; x Placeholder 16 128 64");
  rows_are("SELECT COUNT(*), SUM(bytes) FROM edge", "6 384");
  // Baselines first, which ran before any time was known that could be simulated; then heuristics: those that were not
  // measured have no figures of a run.
  rows_are("SELECT placement_id, role, name, algorithm, episode, state, simulated_us, median_us, steps, ratio, "
           "transfers, transfer_bytes FROM placement WHERE episode IS NULL ORDER BY placement_id",
           "0 baseline single:cpu:0 - - ok - 827 12 - 0 0; 1 baseline single:acc:0 - - ok - 967 12 - 0 0; "
           "2 baseline whole - - ok - 600 12 - 0 0; 3 heuristic dls dls - modelled 434 - 0 - - -; "
           "4 heuristic peft peft - modelled 977 - 0 - - -; 5 heuristic heft heft - ok 434 434 5 - 1 64; "
           "6 heuristic m-topo m-topo - ok 834 834 5 - 1 64; 7 heuristic metis metis - ok 837 837 5 - 2 128");
  rows_are("SELECT name, algorithm, state, simulated_us, median_us, ratio, final_median_us, final_steps FROM placement "
           "WHERE episode <= 3 ORDER BY episode",
           "#8 lns ok 434 434 1 - -; #9 auto: policy ok 434 434 1 - -; #10 lns ok 424 424 0.976959 424 30");
  rows_are("SELECT phase, COUNT(*), COUNT(DISTINCT block), SUM(traced) FROM step JOIN placement USING (placement) "
           "WHERE name = '#10' GROUP BY phase ORDER BY phase",
           "choose 20 4 20; final 30 6 30; screen 5 1 5");
  rows_are("SELECT DISTINCT duration_ns FROM step JOIN placement USING (placement) WHERE name = 'whole'", "600000");
  rows_are("SELECT MIN(step), MAX(step), COUNT(*) FROM step JOIN placement USING (placement) WHERE name = '#10'",
           "0 54 55");
  // Totals of the last measurement: the turns that chose, four blocks of five steps.
  rows_are(
      "SELECT device_id, COUNT(*), SUM(samples), SUM(median_ns), SUM(fastest_ns) FROM op_total JOIN placement USING "
      "(placement) WHERE name = '#8' GROUP BY device_id",
      "0 3 60 400000 400000; 1 1 20 20000 20000; 2 3 60 140000 140000");
  rows_are("SELECT device_id, peak_bytes FROM memory JOIN placement USING (placement) WHERE name = 'whole'", "3 7000");
  rows_are("SELECT device_id, peak_bytes FROM memory JOIN placement USING (placement) WHERE name = '#8'",
           "0 3000; 1 1000; 2 3000");
  rows_are("SELECT unit_id IS NULL, device_id FROM assignment JOIN placement USING (placement) WHERE name = 'whole' "
           "GROUP BY 1, 2",
           "0 3");
  rows_are("SELECT name, learned, measured > 0, won FROM proposer ORDER BY name", "auto: policy 1 1 0; lns 0 1 1; "
                                                                                  "neighbour 0 1 0");
  rows_are("SELECT value FROM state WHERE name = 'execution'", "--seed 3 --threads 1");
  rows_are("SELECT prior_us, learned_us FROM prediction JOIN placement USING (placement) WHERE name = '#10'", "424 -");
  end();
}

// --- Resuming --------------------------------------------------------------------------------------------------------
static void refused(struct tfc_job_options o, const char *message) {
  struct tfc_job_outcome none;
  o.resume = 1;
  tfc_status s = tfc_job_run(&o, &none);
  if (!s || !strstr(tfc_status_message(s), message)) fail_msg("%s", s ? tfc_status_message(s) : "it went on");
  tfc_status_free(s);
  tfc_job_outcome_deinit(&none);
}

static void goes_on(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  play.cancel_at = 6; // three of the profile, the rivals, two rounds
  struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  assert_true(out.interrupted && out.exit_code == 130);
  assert_int_equal(out.measured, 2);
  rows_are("SELECT state, exit_code FROM run", "interrupted 130");
  rows_are("SELECT value FROM state WHERE name = 'progress'", "4.000 0.01 0.01");
  tfc_job_outcome_deinit(&out);
  o.objective = TFC_OBJECTIVE_THROUGHPUT;
  refused(o, "run 1 has the objective step, not throughput");
  o.objective = TFC_OBJECTIVE_STEP, o.graph_path = TFC_SOURCE_DIR "/examples/nmt.pb";
  refused(o, "run 1 is about another graph, " TFC_SOURCE_DIR "/examples/mlp.pb as it was then");
  o.graph_path = TFC_SOURCE_DIR "/examples/mlp.pb", play.devices[1].cores = 1;
  refused(o, "run 1 measured on cpu:0 (1 core), cpu:1 (2 cores), acc:0 (3 cores); it cannot go on with cpu:0 (1 core), "
             "cpu:1 (1 core), acc:0 (3 cores)");
  play.devices[1].cores = 2;
  rows_are("SELECT state FROM run", "interrupted");
  // A thousand seconds later, of which the job counts none.
  play.now_ns = INT64_C(2000000000000);
  play.cancel_at = 0, play.searches = 1;
  atomic_store(&play.cancel, false);
  play.log.size = 0;
  note("begins");
  o.resume = -1, o.execution.seed = 4, o.execution.rewrites = TFC_REWRITES_ALL;
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  logged("says: going on with run 1 after 4 s and 2 measured placements");
  logged("warning: run 1 began with other flags (--seed 3 --threads 1): what it measured may take another time now");
  not_logged("plain");
  not_logged("links");
  // No heuristic is measured again; the costs, with dispatching, are those of the profile.
  logged("1000.00 search auto for 0.5000 s, seed 4, start 1110000");
  not_logged("batch 2220001,"); // it was measured before
  logged_part("batch 2220000 answers, 0000000 answers stays, whole stays, 2");
  // Heuristics in the order in which they were stored.
  table_is("whole whole 600, answer found 424, single single:cpu:0 827, single single:acc:0 967, heuristic dls nan, "
           "heuristic peft nan, heuristic heft 434, heuristic m-topo 834, heuristic metis 837");
  assert_int_equal(out.run, 1);
  assert_int_equal(out.exit_code, 0);
  assert_string_equal(out.first_line, "Found: 424.0 us a step.");
  rows_are("SELECT COUNT(*), state FROM run", "1 done");
  rows_are("SELECT name, role, episode, median_us, state FROM placement WHERE placement_id < 11 ORDER BY placement_id",
           "single:cpu:0 baseline - 827 ok; single:acc:0 baseline - 967 ok; whole baseline - 600 ok; "
           "dls heuristic - - modelled; peft heuristic - - modelled; heft heuristic - 434 ok; "
           "m-topo heuristic - 834 ok; metis heuristic - 837 ok; #8 candidate 1 434 ok; #9 candidate 2 434 ok; "
           "#10 candidate 3 424 ok");
  // Steps of a placement that was stored before have the numbers after those.
  rows_are("SELECT COUNT(*), MAX(step) FROM step JOIN placement USING (placement) WHERE name = 'single:cpu:0'",
           "62 61");
  o.resume = 1;
  refused(o, "run 1 is done: there is nothing to go on with");
  end();
}

// What was learned of operations is stored, and read again before anything new is learned.
static void learning_goes_on(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  play.cancel_at = 6;
  struct tfc_job_options o = options_of();
  o.prior = false;
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  assert_int_equal(out.measured, 2);
  rows_are("SELECT COUNT(*), SUM(length(value) > 100) FROM state WHERE name = 'learned'", "1 1");
  rows_are("SELECT COUNT(*), SUM(measured), SUM(won) FROM proposer", "2 2 0");
  tfc_job_outcome_deinit(&out);
  sqlite3 *db = NULL; // keeps what was learned beside it
  assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "INSERT INTO state SELECT run_id, 'kept', value FROM state WHERE name = 'learned'",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  sqlite3_close(db);
  play.cancel_at = 1, play.batches = 0; // the first batch after resuming is interrupted
  atomic_store(&play.cancel, false);
  o.resume = -1;
  assert_ok(tfc_job_run(&o, &out));
  assert_int_equal(out.measured, 2);
  not_logged("is lost");
  rows_are("SELECT COUNT(DISTINCT value) FROM state WHERE name IN ('kept', 'learned')", "1");
  rows_are("SELECT COUNT(*), SUM(measured), SUM(won) FROM proposer", "2 2 0");
  end();
}

// Steps overlap only if some unit is elsewhere.
static void one_device(void **state) {
  (void)state;
  static const struct {
    tfc_device_id device[3];
    bool one;
  } cases[] = {{{0, 0, 0}, true},  {{2, 2, 2}, true},  {{1, 0, 0}, false},
               {{0, 1, 0}, false}, {{0, 0, 1}, false}, {{0, 1, 2}, false}};
  const struct tfc_problem p = {.unit_count = 3}, small = {.unit_count = 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct tfc_job_candidate k = {.solution.device = (tfc_device_id *)(uintptr_t)cases[i].device};
    assert_int_equal(on_one_device(&p, &k), cases[i].one);
    assert_true(on_one_device(&small, &k));
  }
}

// --- Throughput ------------------------------------------------------------------------------------------------------
static void throughput(void **state) {
  (void)state;
  // b1 and j on one CPU, b2 and b3 on the other: no placement has a smaller load than these 250 us.
  static const char *const found[] = {"2221001 lns:2220000", NULL};
  begin();
  play.found = found;
  struct tfc_job_options o = options_of();
  o.objective = TFC_OBJECTIVE_THROUGHPUT;
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  // A long step may have a small load, so none is stopped.
  assert_int_equal(times_logged("stop 1.5"), 0);
  // Three devices: two steps in flight. A single device and the undivided machine run one step after another.
  assert_int_equal(times_logged(" placements in turns, one step by one and with 2 in flight\n"), 1);
  assert_int_equal(times_logged(" 0000000 x1, whole x1; 1 + 6 x 4, trace none, until 95.00"), 1);
  assert_int_equal(times_logged("0000000 x2") + times_logged("whole x2"), 0);
  // The busiest device works 250 us, and seven are lost.
  assert_string_equal(out.first_line, "Found: with 2 steps in flight one ends every 257.0 us.");
  const struct tfc_job_row *answer = tfc_job_outcome_answer(&out);
  assert_true(answer->load_us == 257 && answer->load_steps == 24 && fabs(answer->speedup - 827.0 / 257) < 1e-9);
  // Steps that warm up are no part of it: with these, the single device's interval would not be a point.
  for (uint32_t i = 0; i < out.row_count; i++)
    if (strcmp(out.rows[i].name, "single:cpu:0") == 0)
      assert_true(out.rows[i].load_us == 827 && out.rows[i].load_steps == 24 && out.rows[i].speedup == 1);
  assert_true(answer->low == answer->speedup && answer->high == answer->speedup);
  assert_true(out.placement->value_us == 257 && out.placement->value_label == TFC_LABEL_MEASURED);
  rows_are(
      "SELECT phase, COUNT(*), MIN(duration_ns), MAX(duration_ns) FROM step JOIN placement USING (placement) WHERE "
      "placement_id = (SELECT best_placement_id FROM run) AND phase = 'in flight' GROUP BY phase",
      "in flight 24 257000 257000");
  rows_are("SELECT phase, COUNT(*) FROM step WHERE phase = 'one by one' GROUP BY phase", "one by one 120");
  end();
}

// --- When a search ends ----------------------------------------------------------------------------------------------
// The first round finds the best. Later ones find two placements that are new, but no better: the search ends after the
// first of these and fifteen more, each of which counts a third, as 1 + 15 / 3 = 6.
static void converged(void **state) {
  (void)state;
  static char lines[22][64];
  static const char *found[23];
  uint32_t next = 0;
  for (uint32_t i = 0; i < 22; i++) {
    snprintf(lines[i], sizeof lines[i], "2220000");
    for (int k = 0; k < 2; next++) { // the chain a on the devices 1 and 2 or 0 and 2, b on the other CPU, j anywhere
      const uint32_t j = next % 3, a = next / 3 % 8, b = next / 24;
      if (j == 0 && a == 0) continue;
      const size_t n = strlen(lines[i]);
      snprintf(lines[i] + n, sizeof lines[i] - n, " lns:%u%u%u%u%u%u%u", a & 1 ? 1 - b : 2, a & 2 ? 1 - b : 2,
               a & 4 ? 1 - b : 2, b, b, b, j);
      k++;
    }
    found[i] = lines[i];
  }
  begin();
  play.found = found;
  const struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  not_logged("neighbour");
  const uint32_t rounds = times_logged("search auto");
  assert_true(rounds == 17 || rounds == 18); // a third is not exact
  assert_int_equal(out.measured, 1 + 2 * rounds);
  end();
}

// --- A job that is late ----------------------------------------------------------------------------------------------
static void late(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  play.batch_s = 22;
  const struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  // The final turns end more than 5 % and a second after the job's time, so nothing is measured after them.
  const double ends = second_of("says: final run:") + 22;
  assert_true(ends > 106.1 && ends < 140);
  assert_int_equal(times_logged("1 + 2 x 5, no limits"), 0);
  assert_true(out.placement->unordered_count == 0);
  end();
}

// --- A bound that cannot be ------------------------------------------------------------------------------------------
static void wrong_bound(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  play.hurry = 0.5; // steps on several devices take half of what their operations take
  const struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  logged("warning: the lower bound, 420.0 us, is above what was measured, 212.0 us: the cost model is wrong here");
  assert_true(out.bound_us == 0 && !out.bound_name && isnan(out.gap));
  rows_are("SELECT bound_us IS NULL, bound_name IS NULL FROM run", "1 1");
  assert_true(isnan(out.placement->bound_us));
  end();
}

// --- Random placements, measured again and again -------------------------------------------------------------------
static void again(void **state) {
  (void)state;
  begin();
  struct tfc_job_options o = options_of();
  o.random_first = 7, o.repeats = 2, o.algorithms = "lns";
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  assert_int_equal(out.pair_count, 7);
  for (uint32_t i = 0; i < 7; i++) {
    const struct tfc_job_pair *p = &out.pairs[i];
    assert_string_equal(p->algorithm, "random placement");
    assert_int_equal(p->measured_count, 3);
    assert_true(p->measured_us[0] == p->measured_us[1] && p->measured_us[0] == p->measured_us[2]);
    assert_true(p->prior_us == p->predicted_us && p->prior_us == p->simulated_us && isnan(p->learned_us));
  }
  // The first is on one device; five at once, in a new order each time.
  assert_int_equal(times_logged("says: measuring 7 placements again, "), 2);
  logged("says: measuring 7 placements again, 2 of 2");
  assert_int_equal(times_logged("; 1 + 1 x 5, trace all\n"), 4);
  rows_are("SELECT COUNT(DISTINCT digest), COUNT(*) FROM placement WHERE algorithm = 'random placement'", "7 7");
  not_logged("final run");
  tfc_job_outcome_deinit(&out);
  // The times of single operations are kept for the last twenty candidates, the best one, and the baselines.
  o.random_first = 25, o.repeats = 1;
  assert_ok(tfc_job_run(&o, &out));
  rows_are("SELECT COUNT(DISTINCT placement) FROM op JOIN placement USING (placement) WHERE run_id = 2 AND episode > 5",
           "20");
  rows_are(
      "SELECT COUNT(DISTINCT placement) <= 1 FROM op JOIN placement USING (placement) WHERE run_id = 2 AND episode "
      "BETWEEN 1 AND 5",
      "1");
  rows_are("SELECT COUNT(DISTINCT placement) FROM op JOIN placement USING (placement) WHERE run_id = 2 AND role <> "
           "'candidate'",
           "5"); // two devices alone and three heuristics; the undivided machine has no trace
  end();
}

// --- One given placement ---------------------------------------------------------------------------------------------
static void evaluated(void **state) {
  (void)state;
  begin();
  struct tfc_job_options o = options_of();
  o.evaluate = "single:cpu:1";
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  assert_int_equal(times_logged(" batch 1111111; 1 + 4 x 5, best 827, trace all, until 75.00"), 1);
  not_logged("search");
  assert_int_equal(out.exit_code, 0);
  assert_int_equal(out.row_count, 1);
  assert_string_equal(out.rows[0].name, "evaluated");
  assert_true(out.rows[0].median_us == 827 && out.rows[0].steps == 20);
  assert_true(out.placement->value_us == 827 && out.placement->transfers == 0);
  rows_are("SELECT name, role, episode FROM placement WHERE placement_id = 3", "evaluated baseline -");
  rows_are("SELECT state, answer IS NOT NULL FROM run", "done 1");
  tfc_job_outcome_deinit(&out);
  o.evaluate = "single:cpu:7";
  assert_fails(tfc_job_run(&o, &out), TFC_UNAVAILABLE, "cpu:7");
  tfc_job_outcome_deinit(&out);
  play.fails[1] = true, o.evaluate = "single:cpu:1";
  assert_fails(tfc_job_run(&o, &out), TFC_UNIMPLEMENTED, "the placement could not be measured: no kernel");
  end();
}

// --- Files: baselines, given placements, the saved problem -----------------------------------------------------------
static char answer_path[64], folder[64];

// Solves nothing: reads the saved problem as another program would, and simulates the saved placement.
static void check_saved(void) {
  char path[100];
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_problem *problem = NULL;
  struct tfc_placement *saved = NULL;
  struct tfc_solution solution;
  snprintf(path, sizeof path, "%s/graph.json", folder);
  assert_ok(tfc_cost_graph_read(path, &graph));
  unlink(path);
  snprintf(path, sizeof path, "%s/machine.yaml", folder);
  assert_ok(tfc_machine_read(path, &machine));
  unlink(path);
  snprintf(path, sizeof path, "%s/placement.json", folder);
  assert_ok(tfc_placement_read(path, &saved));
  unlink(path);
  rmdir(folder);
  assert_ok(tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &problem));
  assert_int_equal(graph->node_count, OPS);
  assert_int_equal(saved->node_count, OPS); // without the nodes that the step does not run
  assert_int_equal(saved->graph_nodes, OPS);
  assert_null(saved->graph_sha256.data);
  place(problem, "2220000", &solution);
  assert_int_equal(simulated(problem, &solution), 424000000);
  for (uint32_t i = 0; i < OPS; i++)
    for (uint32_t k = 0; k < OPS; k++)
      if (tfc_str_is(saved->nodes[k].name, op_names[i]))
        assert_true(tfc_str_is(saved->nodes[k].device, i < 3 ? "acc:0" : "cpu:0"));
  tfc_solution_deinit(&solution);
  tfc_placement_free(saved);
  tfc_problem_free(problem);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
}

static void files(void **state) {
  (void)state;
  static char own[80], strings[80];
  const char *baselines[] = {own, strings};
  begin();
  play.found = two_rounds;
  struct tfc_job_options o = options_of();
  struct tfc_measure_fallback fallback = {play.op[4], (char *)(uintptr_t) "no kernel for it"};
  play.info.fallbacks = &fallback, play.info.fallback_count = 1;
  o.save_problem = folder;
  assert_ok(tfc_job_run(&o, &out));
  check_saved();
  uint32_t told = 0; // b2 is on the device that cannot run it; the time is the one measured there
  for (uint32_t i = 0; i < out.placement->node_count; i++) {
    const struct tfc_placement_node *n = &out.placement->nodes[i];
    if (!n->reason.data || !strstr(n->reason.data, "on the host")) continue;
    assert_true(tfc_str_is(n->name, "b2"));
    assert_non_null(strstr(n->reason.data, "on the host between copies, 150.0 us: no kernel for it"));
    told++;
  }
  assert_int_equal(told, 1);
  out.placement->gpu_math = TFC_STR("float32"); // say, on another day
  assert_ok(tfc_placement_write(out.placement, answer_path));
  tfc_job_outcome_deinit(&out);
  o.save_problem = NULL, play.info.fallback_count = 0, play.found = NULL;
  // As the user's placement it is measured beside the best three heuristics, and it is the answer.
  snprintf(own, sizeof own, "own=%s", answer_path);
  o.baselines = baselines, o.baseline_count = 1;
  play.log.size = 0, play.now_ns = INT64_C(1000000000000);
  note("begins");
  snprintf(play.devices[2].math, sizeof play.devices[2].math, "tf32");
  assert_ok(tfc_job_run(&o, &out));
  char line[200];
  snprintf(line, sizeof line, "warning: %s was measured with products in float32 on GPUs; they are in tf32 now",
           answer_path);
  logged(line);
  logged("says: GPUs compute products and convolutions of float32 tensors in tf32");
  assert_true(tfc_str_is(out.placement->gpu_math, "tf32"));
  logged("1.50 batch 2220000, 1110000, 0002220, 1111110; 1 + 1 x 5, stop 1.5, best 827, trace all, until 35.00");
  logged("says: own: 424.0 us a step (simulated 424.0 us)");
  assert_string_equal(out.first_line, "Found: 424.0 us a step.");
  logged_part("batch 2220000 answers stays, 0000000 answers stays, whole stays"); // a rival stays to the end
  rows_are("SELECT role, name, state FROM placement WHERE name = 'own' AND run_id = 2", "baseline own ok");
  tfc_job_outcome_deinit(&out);
  o.baseline_count = 0, o.evaluate = answer_path;
  play.log.size = 0;
  note("begins");
  assert_ok(tfc_job_run(&o, &out));
  logged_part(" batch 2220000; 1 + 4 x 5, best 827, trace all");
  assert_true(out.placement->value_us == 424);
  tfc_job_outcome_deinit(&out);
  // What cannot be read is said before anything is measured.
  o.evaluate = NULL, o.baseline_count = 2, play.log.size = 0;
  snprintf(strings, sizeof strings, "no such thing");
  assert_fails(tfc_job_run(&o, &out), TFC_INVALID_ARGUMENT, "baseline 'no such thing' is not NAME=FILE");
  tfc_job_outcome_deinit(&out);
  snprintf(strings, sizeof strings, "x=/no/such/file.json");
  assert_fails(tfc_job_run(&o, &out), TFC_NOT_FOUND, "baseline x=/no/such/file.json");
  unlink(answer_path);
  end();
}

// --- The expert ------------------------------------------------------------------------------------------------------
static void expert(void **state) {
  (void)state;
  begin();
  tfc_graph_release(play.graph);
  play.experts = true;
  build_graph();
  struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  // The expert comes first, and is a rival to the end.
  logged("1.50 batch 2220000, 1110000, 0002220, 1111110; 1 + 1 x 5, stop 1.5, best 827, trace all, until 35.00");
  logged("says: expert: 424.0 us a step (simulated 424.0 us)");
  logged("says: best so far: 424.0 us a step, by expert");
  logged_part("batch 2220000 answers stays, 0000000 answers stays, whole stays");
  tfc_job_outcome_deinit(&out);
  play.log.size = 0, o.device_strings = TFC_STRINGS_ARE_IGNORED;
  assert_ok(tfc_job_run(&o, &out));
  not_logged("expert");
  tfc_job_outcome_deinit(&out);
  play.log.size = 0, o.evaluate = "-";
  assert_ok(tfc_job_run(&o, &out));
  logged_part(" batch 2220000; 1 + 4 x 5, best 827, trace all");
  end();
}

// --- Fused operations ------------------------------------------------------------------------------------------------
// On one device a2 is a part of a1, and its output is large; so searches keep both in one unit.
static void fused(void **state) {
  (void)state;
  begin();
  play.found = two_rounds;
  uint32_t done_by[16];
  for (uint32_t n = 0; n < 16; n++) done_by[n] = UINT32_MAX;
  done_by[play.op[1]] = play.op[0];
  play.info.done_by = done_by;
  play.info.output_bytes[play.graph->nodes[play.op[1]].output_begin] = 100000; // 20 us of 60 to write and read
  struct tfc_job_options o = options_of();
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  logged("says: 6 units where what runs fused, or on the same weights, is kept together");
  assert_int_equal(play.search_units, 6);
  rows_are("SELECT COUNT(DISTINCT unit_id) FROM node", "7"); // placements are in the graph's own units
  end();
}

// --- Devices that fail, and memory -----------------------------------------------------------------------------------
static void troubles(void **state) {
  (void)state;
  begin();
  struct tfc_job_options o = options_of();
  o.seconds = 12;
  play.fails[0] = play.fails[2] = true, play.load = 4.1;
  assert_fails(tfc_job_run(&o, &out), TFC_UNIMPLEMENTED, "the step could not be profiled: no kernel");
  logged("warning: other programs are at work (load 4.1 on 8 cores): what is measured is disturbed");
  logged("warning: in parts: no kernel");
  rows_are("SELECT state, message FROM run", "failed the step could not be profiled: no kernel");
  // The job waits for a silent worker as long as it may take itself, between 10 and 60 s.
  assert_true(play.asked.hang_seconds == 12 && fabs(play.asked.end_s - 1012) < 1e-9);
  assert_string_equal(play.feed_name, "x:0");
  assert_string_equal(play.fetch_name, "j:0");
  tfc_job_outcome_deinit(&out);
  // The device that works is enough. Waiting for the lock is no part of the job's time.
  play.fails[0] = false, play.load = 4, play.waited_s = 100, play.found = two_rounds;
  play.log.size = 0;
  note("begins");
  o.seconds = 100;
  assert_ok(tfc_job_run(&o, &out));
  not_logged("other programs");
  logged("warning: single:acc:0: no kernel");
  assert_string_equal(out.first_line, "Found: 424.0 us a step.");
  assert_true(play.asked.hang_seconds == 60);
  assert_int_equal(times_logged("until 75.00"), 0); // all moments are later
  logged_part("until 176.50");
  tfc_job_outcome_deinit(&out);
  play.waited_s = 0;
  o.seconds = 3;
  play.fails[0] = true;
  tfc_status_free(tfc_job_run(&o, &out));
  assert_true(play.asked.hang_seconds == 10);
  tfc_job_outcome_deinit(&out);
  play.info.op_count = 0;
  assert_fails(tfc_job_run(&o, &out), TFC_INVALID_ARGUMENT,
               "mlp.pb: the step has no operation that takes time: there is nothing to place");
  end();
}

static void limits(void **state) {
  (void)state;
  static const struct tfc_memory_limit limit = {"cpu:*", 5500};
  begin();
  play.found = two_rounds;
  for (uint32_t d = 0; d < 2; d++) play.devices[d].memory = 5500;
  struct tfc_job_options o = options_of();
  o.execution.limits = &limit, o.execution.limit_count = 1;
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  logged("says: single:cpu:0: 827.0 us a step (12 steps); it needs 7.0 kB, the limit is 5.5 kB");
  rows_are("SELECT name, state FROM placement WHERE role = 'baseline' ORDER BY placement_id",
           "single:cpu:0 no fit; single:acc:0 ok; whole ok");
  assert_string_equal(out.first_line, "Found: 424.0 us a step.");
  assert_true(fabs(tfc_job_outcome_answer(&out)->speedup - 967.0 / 424) < 1e-9);
  end();
}

// --- Learners --------------------------------------------------------------------------------------------------------
// A learner that proposes four placements in turns with a reference, and reports the best. There is no time left for
// the fourth.
static uint64_t learner_most;
static tfc_status learns(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *budget,
                         struct tfc_solution *best, uint64_t *count) {
  static const char *const tries[] = {"2220000", "2220000", "1110001", "0000002"};
  learner_most = budget->evaluations;
  note("learns until %.2f, seed %llu", budget->deadline - 1000, (unsigned long long)budget->seed);
  struct tfc_solution one[4] = {{0}}, reference = {0};
  struct tfc_result results[4] = {{0}};
  for (int i = 0; i < 4; i++) place(p, tries[i], &one[i]);
  place(p, "1110000", &reference);
  struct tfc_rules rules = {.cutoff = TFC_TIME_MAX, .reference = &reference};
  tfc_status s = tfc_evaluate(e, one, 4, &rules, results);
  assert_true(s || (results[0].value == 424000000 && results[2].value == 424000000 + 10000000));
  *count = 3;
  if (!s) s = tfc_solution_copy(best, &one[0], p);
  for (int i = 0; i < 4; i++) tfc_result_deinit(&results[i]), tfc_solution_deinit(&one[i]);
  tfc_solution_deinit(&reference);
  return s;
}
static tfc_status declines(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *budget,
                           struct tfc_solution *best, uint64_t *count) {
  (void)p, (void)e, (void)budget, (void)best, (void)count;
  return tfc_status_make(TFC_FAILED_PRECONDITION, "too small for it");
}

static void learners(void **state) {
  (void)state;
  static const struct tfc_algo learner = {.name = "rl", .propose = learns},
                               other = {.name = "doppler", .propose = declines};
  static const struct tfc_algo *const list[] = {&learner, &other, NULL};
  static const char *const found[] = {"1110000", NULL};
  for (int alone = 0; alone < 2; alone++) {
    begin();
    play.found = found;
    struct tfc_job_options o = options_of();
    play.cut = "0000002";
    o.learned = list, o.algorithms = alone ? "rl,doppler" : NULL;
    assert_ok(tfc_job_run(&o, &out));
    show_log();
    // Beside other algorithms a quarter of the 40 measurements, divided by two learners; alone all, divided.
    assert_int_equal(learner_most, alone ? 20 : 5);
    logged(alone ? "says: rl learns from up to 20 measurements" : "says: rl learns from up to 5 measurements");
    logged("warning: doppler: too small for it");
    // Half of the time that is left, or all of it, for two.
    const double now = second_of("says: rl learns");
    char line[64];
    snprintf(line, sizeof line, "%.2f learns until %.2f, seed 3", now, now + (alone ? 1 : 0.5) * (75 - now) / 2);
    logged(line);
    assert_int_equal(
        times_logged(" batch 2220000, 2220000, 1110001, 0000002, 1110000 reference; 1 + 1 x 5, trace all, until "
                     "75.00"),
        1);
    if (alone) { // otherwise the search found one that is as fast
      logged("says: best so far: 424.0 us a step, by rl");
      assert_int_equal(times_logged(" batch 2220000, 1110000 reference; 1 + 3 x 5, trace none"), 1);
    }
    // Each measurement of a placement has its own row: two placements, one of them measured twice, have three rows.
    rows_are("SELECT COUNT(*), COUNT(DISTINCT digest), MIN(median_us), MAX(median_us) FROM placement WHERE algorithm = "
             "'rl' AND episode > 0",
             "3 2 424 434");
    rows_are("SELECT measured, won, learned, best_simulated_us, best_measured_us FROM proposer WHERE name = 'rl'",
             alone ? "3 1 1 424 424" : "3 0 1 424 424");
    assert_non_null(strstr(out.learning, alone ? "which 1 took the lead" : "which 0 took the lead"));
    assert_non_null(strstr(out.learning, alone ? ": the answer is its own." : ": the answer is not its own."));
    assert_int_equal(times_logged("search auto") > 0, !alone);
    end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_job),  cmocka_unit_test(database),
      cmocka_unit_test(goes_on),    cmocka_unit_test(throughput),
      cmocka_unit_test(again),      cmocka_unit_test(evaluated),
      cmocka_unit_test(files),      cmocka_unit_test(expert),
      cmocka_unit_test(fused),      cmocka_unit_test(learning_goes_on),
      cmocka_unit_test(one_device), cmocka_unit_test(converged),
      cmocka_unit_test(late),       cmocka_unit_test(wrong_bound),
      cmocka_unit_test(troubles),   cmocka_unit_test(limits),
      cmocka_unit_test(learners),
  };
  snprintf(db_path, sizeof db_path, "/tmp/tfc-played-job-test-%d.db", (int)getpid());
  snprintf(answer_path, sizeof answer_path, "/tmp/tfc-played-job-test-%d.json", (int)getpid());
  snprintf(folder, sizeof folder, "/tmp/tfc-played-job-test-%d", (int)getpid());
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  remove_files();
  return failed;
}
