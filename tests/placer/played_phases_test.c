// Plays whole jobs on a machine whose step times are known (played_job.h), for what single phases and options do:
// random placements, given ones, files, the expert's placement, devices that fail, limits of memory, learners.
#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "profiler/warnings.h"
#include "tests/placer/played_whole_job.h"

// --- Random placements, measured again and again -------------------------------------------------------------------
static void again(void **state) {
  (void)state;
  begin();
  struct tfc_job_options o = options_of();
  o.random_first = 7, o.repeats = 2, o.search.algorithms = "lns";
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
  // The search goes on to the end of its time, though it finds nothing more.
  assert_true(times_logged("search lns") > 100);
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
  struct tfc_warnings warnings = TFC_WARNINGS_INIT;
  tfc_warnings_add(&warnings, "other programs are at work");
  o.evaluate = "single:cpu:1", o.warnings = &warnings;
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
  rows_are("SELECT number, text FROM warning", "1 other programs are at work");
  tfc_warnings_deinit(&warnings);
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
  o.request.baselines = (struct tfc_texts){baselines, 1};
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
  o.request.baselines.count = 0, o.evaluate = answer_path;
  play.log.size = 0;
  note("begins");
  assert_ok(tfc_job_run(&o, &out));
  logged_part(" batch 2220000; 1 + 4 x 5, best 827, trace all");
  assert_true(out.placement->value_us == 424);
  tfc_job_outcome_deinit(&out);
  // What cannot be read is said before anything is measured.
  o.evaluate = NULL, o.request.baselines.count = 2, play.log.size = 0;
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
  play.log.size = 0, o.request.device_strings = TFC_STRINGS_IGNORE;
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
  for (uint32_t n = 0; n < 16; n++) done_by[n] = TFC_NONE;
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
  *budget->samples = (struct tfc_guide_samples){.count = 200, .invalid_share = 0.25, .entropy = 0.5};
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

// A fifth of the evaluations is kept for learners, and what they simulate counts.
static uint64_t learner_simulations;
static tfc_status simulates(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *budget,
                            struct tfc_solution *best, uint64_t *count) {
  (void)p, (void)e, (void)best, (void)count;
  learner_simulations = budget->simulations;
  *budget->simulated += 150;
  return tfc_status_make(TFC_FAILED_PRECONDITION, "it has seen enough");
}
static void learners_simulate(void **state) {
  (void)state;
  static const struct tfc_algo learner = {.name = "rl", .propose = simulates};
  static const struct tfc_algo *const list[] = {&learner, NULL};
  static const char *const found[] = {"1110000", NULL};
  begin();
  play.found = found;
  struct tfc_job_options o = options_of();
  o.learned = list, o.evaluations = 700;
  assert_ok(tfc_job_run(&o, &out));
  show_log();
  logged("warning: rl: it has seen enough");
  assert_int_equal(learner_simulations, 140);
  // 560 before it; it took more than it might, so nothing is left.
  assert_int_equal(play.simulated, 560);
  rows_are("SELECT value FROM state WHERE name = 'evaluations'", "710");
  end();
  begin();
  play.found = found;
  o = options_of();
  o.learned = list;
  assert_ok(tfc_job_run(&o, &out));
  assert_int_equal(learner_simulations, 0); // no limit
  end();
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
    o.learned = list, o.search.algorithms = alone ? "rl,doppler" : NULL, o.measurements = 64;
    assert_ok(tfc_job_run(&o, &out));
    show_log();
    // Beside other algorithms a quarter of the 64 measurements, divided by two learners; alone all, divided.
    assert_int_equal(learner_most, alone ? 32 : 8);
    logged(alone ? "says: rl learns from up to 32 measurements" : "says: rl learns from up to 8 measurements");
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
    // What the policy said of its placements before they were measured is in each of these rows.
    rows_are(
        "SELECT COUNT(*), MIN(policy_samples), MAX(policy_entropy), MIN(policy_invalid_share), MAX(policy_move_turns)"
        " FROM v_episode WHERE algorithm = 'rl'",
        "3 200 0.5 0.25 0");
    assert_non_null(strstr(out.learning, alone ? "which 1 took the lead" : "which 0 took the lead"));
    assert_non_null(strstr(out.learning, alone ? ": the answer is its own." : ": the answer is not its own."));
    assert_int_equal(times_logged("search auto") > 0, !alone);
    end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(again),  cmocka_unit_test(evaluated), cmocka_unit_test(files),
      cmocka_unit_test(expert), cmocka_unit_test(fused),     cmocka_unit_test(troubles),
      cmocka_unit_test(limits), cmocka_unit_test(learners),  cmocka_unit_test(learners_simulate),
  };
  snprintf(db_path, sizeof db_path, "/tmp/tfc-played-phases-test-%d.db", (int)getpid());
  snprintf(answer_path, sizeof answer_path, "/tmp/tfc-played-phases-test-%d.json", (int)getpid());
  snprintf(folder, sizeof folder, "/tmp/tfc-played-phases-test-%d", (int)getpid());
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  remove_files();
  return failed;
}
