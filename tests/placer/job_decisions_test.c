// Tests single decisions of a job, by figures that were worked out by hand: what a profile says of tracing and of
// dispatching, how many heuristics and candidates there is time for, which proposal is measured next, what a measured
// step teaches, how memory turns out larger than simulated, and what is said of learning.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/account.h"
#include "placer/job/profile.h"
#include "runtime/base/clock.h"

static void close_to(double a, double b) {
  if (!(fabs(a - b) < 1e-9 * fmax(1, fabs(b)))) fail_msg("%.12g is not %.12g", a, b);
}

// What a lesson passes on to the learned model.
static struct tfc_learned_operation taught[16];
static uint32_t taught_count;
static double taught_step_us, taught_scale;
static bool taught_trace;
static tfc_status played_add(struct tfc_learned *l, const struct tfc_solution *solution, double step_us, double scale,
                             const struct tfc_learned_trace *trace) {
  (void)l, (void)solution;
  taught_step_us = step_us, taught_scale = scale, taught_trace = trace != NULL;
  taught_count = trace ? trace->operation_count : 0;
  assert_true(taught_count <= 16);
  for (uint32_t i = 0; i < taught_count; i++) taught[i] = trace->operations[i];
  return NULL;
}
#include "placer/job/lesson.c"

// What a simulation finds (for the memory that placements need).
static uint64_t simulated_memory[2];
static bool simulated_legal = true;
static void played_simulate(struct tfc_simulator *simulator, const tfc_device_id *device, const uint32_t *rank,
                            int64_t cutoff, struct tfc_verdict *out) {
  (void)simulator, (void)device, (void)rank, (void)cutoff;
  out->legal = simulated_legal, out->value = 5000000;
  if (out->memory) out->memory[0] = simulated_memory[0], out->memory[1] = simulated_memory[1];
}
#define tfc_simulate(s, d, r, c, o) played_simulate(s, d, r, c, o)
#define tfc_learned_add(l, s, u, c, t) played_add(l, s, u, c, t)
#include "placer/job/model.c"
#undef tfc_learned_add
#undef tfc_simulate

// The time that a job has used is what a test says.
static int64_t played_ns;
#define tfc_now_ns() played_ns
#include "placer/job/account.c"
#include "placer/job/clock.c"
#include "placer/job/profile.c"
#include "placer/job/rivals.c"
#include "placer/job/search.c"
#include "placer/job/turns.c"

// --- Profile ---------------------------------------------------------------------------------------------------------
// Steps of blocks in turns, "T3 U3" and so on: T traced, U without a trace, W warm-up.
static uint32_t blocks_of(const char *text, double traced_us, double other_us, struct tfc_measured_step *steps) {
  uint32_t n = 0, block = 0;
  for (const char *at = text; *at; at += at[2] ? 3 : 2) {
    for (int k = 0; k < at[1] - '0'; k++)
      steps[n++] = (struct tfc_measured_step){.block = block,
                                              .warmup = at[0] == 'W',
                                              .traced = at[0] == 'T',
                                              .duration_ns = 77,
                                              .host_ns = (int64_t)(1e3 * (at[0] == 'W'   ? 900
                                                                          : at[0] == 'T' ? traced_us
                                                                                         : other_us))};
    block += at[0] != 'W';
  }
  return n;
}

static void tracing(void **state) {
  (void)state;
  struct tfc_measured_step steps[64];
  struct tfc_measured m = {.steps = steps};
  double overhead, least;
  m.step_count = blocks_of("W2 T3 U3 T3 U3", 110, 100, steps);
  assert_ok(overhead_of(&m, &overhead, &least));
  close_to(overhead, 0.1);
  close_to(least, 0.1); // the steps do not vary
  // The second pair is slower by a factor for both, which cancels; the last traced block has no partner.
  m.step_count = blocks_of("W2 T3 U3 T3 U3 T3", 110, 100, steps);
  for (uint32_t i = 8; i < 14; i++) steps[i].host_ns *= 3;
  for (uint32_t i = 14; i < 17; i++) steps[i].host_ns *= 50;
  assert_ok(overhead_of(&m, &overhead, &least));
  assert_true(overhead > 0.09 && overhead < 0.11);
  m.step_count = blocks_of("T2 U2", 50, 100, steps);
  assert_ok(overhead_of(&m, &overhead, &least));
  close_to(overhead, -0.5);
  struct tfc_job_model model = {.trace = TFC_TRACE_MODE_ALL};
  tfc_job_model_set_trace_overhead(&model, 0.3, 0.02);
  assert_true(model.trace_overhead == 0.3 && model.trace_overhead_least == 0.02);
  assert_int_equal(model.trace, TFC_TRACE_MODE_ALL); // up to 2 % all steps carry a trace
  tfc_job_model_set_trace_overhead(&model, 0.3, 0.021);
  assert_int_equal(model.trace, TFC_TRACE_MODE_ALTERNATE);
}

static void dispatching(void **state) {
  (void)state;
  // Steps of 100, 200 and 90 us; their operations take 70, 110 and 94.
  struct tfc_profile_op ops[3][3] = {{{0, 30000, 0, 0, 0, 0}, {0, 40000, 0, 0, 0, 0}},
                                     {{0, 50000, 0, 0, 0, 0}, {0, 40000, 0, 0, 0, 0}, {0, 20000, 0, 0, 0, 0}},
                                     {{0, 94000, 0, 0, 0, 0}}};
  struct tfc_step_profile profiles[3] = {{.duration_ns = 100000}, {.duration_ns = 200000}, {.duration_ns = 90000}};
  static const size_t counts[] = {2, 3, 1};
  for (int i = 0; i < 3; i++) profiles[i].ops.data = ops[i], profiles[i].ops.count = counts[i];
  struct tfc_measured m = {.profiles = profiles, .profile_count = 3};
  close_to(dispatch_of(&m), 15); // the median of 15, 30 and -4
  m.profile_count = 2;
  close_to(dispatch_of(&m), 22.5);
  m.profile_count = 0;
  close_to(dispatch_of(&m), 0);
  m.profiles = profiles + 2, m.profile_count = 1;
  close_to(dispatch_of(&m), 0); // below zero it is noise
}

static void trouble(void **state) {
  (void)state;
  struct profiling p = {0};
  struct tfc_measured m = {.state = TFC_RESULT_OK, .message = "all is well"};
  remember_trouble(&p, &m);
  assert_null(p.trouble);
  m.state = TFC_RESULT_FAILED, m.message = NULL;
  remember_trouble(&p, &m);
  assert_null(p.trouble);
  m.message = "first", m.code = TFC_UNIMPLEMENTED;
  remember_trouble(&p, &m);
  m.message = "second", m.code = TFC_INTERNAL;
  remember_trouble(&p, &m);
  assert_string_equal(p.trouble, "first");
  assert_int_equal(p.trouble_code, TFC_UNIMPLEMENTED);
  free(p.trouble);
  static const tfc_code unclear[] = {TFC_OK, TFC_CANCELLED};
  for (int i = 0; i < 2; i++) {
    struct profiling q = {0};
    m.code = unclear[i];
    remember_trouble(&q, &m);
    assert_int_equal(q.trouble_code, TFC_ABORTED);
    free(q.trouble);
  }
}

// --- Time for measurements -------------------------------------------------------------------------------------------
static void time_for(void **state) {
  (void)state;
  // Before its blocks an entry has two steps that adapt and one that warms up. With the reference: both entries' steps
  // before, one block of five for the candidate, two for the reference: 21 steps of a second.
  uint32_t count = 8;
  assert_true(time_for_reference(1e6, 21.001, &count));
  assert_int_equal(count, 8);
  assert_false(time_for_reference(1e6, 20.9, &count)); // each candidate alone needs five steps
  assert_int_equal(count, 4);
  count = 3;
  assert_false(time_for_reference(1e6, 20.9, &count));
  assert_int_equal(count, 3);
  assert_false(time_for_reference(1e6, 4, &count)); // at least one
  assert_int_equal(count, 1);
  count = 3;
  assert_false(time_for_reference(1e6, -5, &count));
  assert_int_equal(count, 1);
  // Heuristics: until four tenths of the job; five steps each. Rivals that must be measured come first.
  struct tfc_job_schedule schedule = tfc_job_schedule_of(100, 0);
  struct tfc_job_candidates c = {0};
  struct tfc_job_candidate rows[] = {{.single = true, .median_us = 2e6},
                                     {.single = true, .median_us = 1e6},
                                     {.median_us = 1e3}, // not a single device
                                     {.single = true, .median_us = (double)NAN}};
  struct tfc_job_clock clock = {.before_s = 3};
  const struct tfc_job_measuring t = {.clock = &clock, .schedule = &schedule, .candidates = &c};
  c.list.data = rows, c.list.count = 4;
  static const struct {
    double used_s; // of 40
    uint32_t must, expected;
  } cases[] = {{3, 0, 3},  {25, 0, 3}, {25.1, 0, 2}, {25, 1, 2}, {29.9, 0, 2}, {29.9, 1, 1},
               {30, 1, 1}, {30, 9, 1}, {39, 0, 1},   {40, 0, 0}, {90, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    played_ns = (int64_t)(1e9 * (cases[i].used_s - 3)); // three seconds before an interruption
    assert_int_equal(measured_heuristics(&t, cases[i].must), cases[i].expected);
  }
}

// --- Search ----------------------------------------------------------------------------------------------------------
static tfc_status no_proposal(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *b,
                              struct tfc_solution *out, uint64_t *count) {
  (void)p, (void)e, (void)b, (void)out, (void)count;
  return NULL;
}
static const struct tfc_algo first_learner = {.name = "rl", .propose = no_proposal},
                             named_learner = {.name = "placeto", .needs = TFC_NEEDS_NAME, .propose = no_proposal};
static const struct tfc_algo *const learners[] = {&first_learner, &named_learner, NULL};

static void names_are(const char *algorithms, const char *expected, bool learns) {
  const struct tfc_job_options o = {.search.algorithms = algorithms, .learned = learners};
  char *names = NULL;
  bool got = !learns;
  assert_ok(searching_names(&o, &names, &got));
  if (expected)
    assert_string_equal(names, expected);
  else
    assert_null(names);
  assert_int_equal(got, learns);
  free(names);
}

static void names(void **state) {
  (void)state;
  names_are(NULL, "auto", true);
  names_are("auto", "auto", true);
  names_are("heft,rl,lns", "heft,lns", true);
  names_are("heft,placeto", "heft", true);
  names_are("placeto", NULL, true);
  names_are("rl,placeto", NULL, true);
  names_are("heft,,lns,", "heft,lns", false);
  names_are("r,rll,rl2", "r,rll,rl2", false); // only parts of the learner's name
  const struct tfc_job_options all = {.learned = learners},
                               one = {.search.algorithms = "heft,placeto", .learned = learners};
  assert_true(takes_part(&all, &first_learner));
  assert_false(takes_part(&all, &named_learner)); // only if the user names it
  assert_false(takes_part(&one, &first_learner));
  assert_true(takes_part(&one, &named_learner));
  assert_true(tfc_job_is_learned(&all, "rl") && tfc_job_is_learned(&all, "auto: policy"));
  assert_true(tfc_job_is_learned(&all, "policy"));
  assert_false(tfc_job_is_learned(&all, "policy2") || tfc_job_is_learned(&all, "lns") || tfc_job_is_learned(&all, "r"));
}

// The best of each algorithm, drawn by credit; none that is 12 % above the best prediction.
static void proposals(void **state) {
  (void)state;
  struct tfc_job_proposers proposers = {0};
  struct tfc_job_schedule schedule = {.measurements = 40};
  const struct tfc_job_options o = {.learned = learners};
  const struct tfc_job_model model = {.o = &o};
  struct tfc_job_measuring t = {.model = (struct tfc_job_model *)(uintptr_t)&model, .schedule = &schedule};
  struct searching x = {.t = &t,
                        .proposers = &proposers,
                        .near = near_simulated,
                        .expected = 0}; // no measurement for a learner without credit
  tfc_random_init(&x.random, 4);
  struct proposal list[] = {{.algorithm = "lns", .us = 112},  {.algorithm = "lns", .us = 100},
                            {.algorithm = "heft", .us = 113}, {.algorithm = "lns", .us = 105},
                            {.algorithm = "rl", .us = 101},   {.algorithm = "lns", .us = 100.5, .used = true}};
  struct proposals all = {list, 6};
  static const int order[] = {1, 3, 0};
  for (int i = 0; i < 3; i++) {
    struct proposal *next = next_of(&x, &all);
    assert_ptr_equal(next, &list[order[i]]);
    next->used = true;
  }
  assert_null(next_of(&x, &all));
  x.expected = 40;
  assert_ptr_equal(next_of(&x, &all), &list[4]);
  // An algorithm that always wins is drawn more often than one that never does.
  for (int i = 0; i < 30; i++) {
    assert_ok(tfc_job_proposers_measured(&proposers, "lns", false, 1, 1));
    assert_ok(tfc_job_proposers_measured(&proposers, "heft", false, 1, 1));
    tfc_job_proposers_won(&proposers, "lns");
  }
  for (int i = 0; i < 6; i++) list[i].used = i == 4;
  list[2].us = 100;
  uint32_t lns = 0;
  for (int i = 0; i < 200; i++) {
    struct proposal *next = next_of(&x, &all);
    assert_true(next == &list[1] || next == &list[2]); // the first of its algorithm
    lns += next == &list[1];
  }
  assert_true(lns > 180);
  // Times that were drawn with the model's uncertainty have less room above the shortest.
  list[2].us = 100 / near_drawn - 0.1, x.near = near_drawn;
  for (int i = 0; i < 20; i++) assert_ptr_equal(next_of(&x, &all), &list[2]);
  tfc_job_proposers_deinit(&proposers);
}

// A neighbour differs in at most 1 + units / 50 units, each at most three after the one before; pins hold.
static void neighbours(void **state) {
  (void)state;
  enum { UNITS = 149, TRIES = 400 };
  static uint32_t pin[UNITS], class_of[3];
  static int64_t time[UNITS];
  uint32_t ranks[1] = {0}, moved[4] = {0}, first[UNITS] = {0}, onto[3] = {0};
  tfc_device_id device[UNITS] = {0};
  const struct tfc_cost_graph graph = {.node_count = 1};
  const struct tfc_problem p = {.graph = &graph,
                                .unit_count = UNITS,
                                .device_count = 3,
                                .node_count = 1,
                                .unit_pin = pin,
                                .unit_time = time,
                                .device_class = class_of};
  const struct tfc_solution from = {device, ranks};
  struct tfc_random r;
  tfc_random_init(&r, 6);
  for (uint32_t u = 0; u < UNITS; u++) pin[u] = u % 10 == 0 ? 0 : TFC_NONE, device[u] = 0;
  for (int i = 0; i < TRIES; i++) {
    struct tfc_solution to = {0};
    uint32_t changed = 0, least = TFC_NONE, most = 0;
    assert_ok(perturb(&p, &from, &r, &to));
    assert_null(to.rank);
    for (uint32_t u = 0; u < UNITS; u++) {
      if (to.device[u] == device[u]) continue;
      assert_true(u % 10 != 0);
      changed++, onto[to.device[u]]++;
      if (least == TFC_NONE) least = u;
      most = u;
    }
    assert_int_equal(distance(&p, &from, &to), changed);
    assert_true(changed <= 3); // 1 + (0, 1 or 2)
    if (changed && most - least < UNITS / 2) {
      assert_true(most - least <= 6);
      first[least]++;
    }
    moved[changed]++;
    tfc_solution_deinit(&to);
  }
  uint32_t begun = 0;
  for (uint32_t u = 0; u < UNITS; u++) begun += first[u] > 0;
  assert_true(begun > UNITS / 2); // it begins anywhere
  assert_true(moved[1] > TRIES / 5 && moved[2] > TRIES / 20 && moved[3] > 5);
  assert_true(onto[1] > TRIES / 5 && onto[2] > TRIES / 5);
}

// What a learner gets beside other algorithms, and how many measurements a run expects to make.
static void learners_shares(void **state) {
  (void)state;
  struct tfc_job_proposers proposers = {0};
  struct tfc_job_schedule schedule = {.measurements = 200};
  struct tfc_job_candidates c = {.episodes = 20};
  struct tfc_job_clock clock = {0};
  struct tfc_job_measuring t = {.clock = &clock, .schedule = &schedule, .candidates = &c};
  struct searching x = {.t = &t, .proposers = &proposers, .begin_s = 10, .begun_with = 20};
  played_ns = INT64_C(10000000000);
  expect(&x, 110);
  assert_int_equal(x.expected, 200); // nothing was measured yet
  c.episodes = 28, played_ns = INT64_C(30000000000);
  expect(&x, 110); // 8 in 20 s: 40 in 100 s
  assert_int_equal(x.expected, 60);
  c.episodes = 120;
  expect(&x, 110);
  assert_int_equal(x.expected, 200);
  c.episodes = 28, x.expected = 60;
  assert_int_equal(learner_budget(&x, &first_learner, 1, 0), 15);
  assert_int_equal(learner_budget(&x, &first_learner, 2, 1), 7);
  for (int i = 0; i < 9; i++) assert_ok(tfc_job_proposers_measured(&proposers, "auto: policy", true, 1, 1));
  assert_int_equal(learner_budget(&x, &first_learner, 1, 0), 6); // what the policy took in searches counts
  tfc_job_proposers_won(&proposers, "auto: policy");
  assert_int_equal(learner_budget(&x, &first_learner, 1, 0), 15);
  assert_ok(tfc_job_proposers_measured(&proposers, first_learner.name, true, 1, 1));
  tfc_job_proposers_won(&proposers, first_learner.name);
  assert_int_equal(learner_budget(&x, &first_learner, 1, 0), 30);
  c.episodes = 190; // half of what is left
  assert_int_equal(learner_budget(&x, &first_learner, 1, 0), 5);
  tfc_job_proposers_deinit(&proposers);
}

static void learners_begin(void **state) {
  (void)state;
  struct tfc_job_schedule schedule = {.measurements = 100};
  struct tfc_job_candidates c = {.episodes = 69};
  struct tfc_job_clock clock = {0};
  struct tfc_job_proposers proposers = {0};
  struct tfc_job_options o = {0};
  struct tfc_job_model m = {.o = &o};
  struct tfc_job_measuring t = {.clock = &clock, .schedule = &schedule, .candidates = &c, .model = &m};
  struct searching x = {.t = &t, .proposers = &proposers};
  played_ns = INT64_C(50000000000);
  assert_false(learners_turn(&x, 5.9, 2, 50.1));
  assert_true(learners_turn(&x, 6, 0, 50.1)); // the search has converged
  assert_true(learners_turn(&x, 0, 3, 50.1)); // three rounds found nothing new
  assert_true(learners_turn(&x, 0, 0, 50));   // their time has come
  c.episodes = 70;                            // their share of the measurements begins
  assert_true(learners_turn(&x, 0, 0, 50.1));
  c.episodes = 69; // what the search may simulate is used up; a fifth is kept for them
  o.evaluations = 1000, x.held = 200, proposers.evaluations = 799;
  assert_false(learners_turn(&x, 0, 0, 50.1));
  proposers.evaluations = 800;
  assert_true(learners_turn(&x, 0, 0, 50.1));
}

// --- The model -------------------------------------------------------------------------------------------------------
static void memory(void **state) {
  (void)state;
  static tfc_device_id device[1];
  struct tfc_machine_device devices[2] = {{.memory = 1000}, {.memory = TFC_NO_LIMIT}};
  struct tfc_machine bare = {.device_count = 2, .devices = devices};
  const struct tfc_measure_info info = {.device_count = 2};
  struct tfc_problem problem = {.has_limits = true, .device_count = 2};
  const struct tfc_solution solution = {.device = device};
  uint64_t peak[2] = {600, 90000};
  struct tfc_measured m = {.state = TFC_RESULT_OK, .peak = peak, .peak_count = 2};
  struct tfc_job_model model = {.info = &info, .bare = &bare, .problem = &problem, .memory_ratio = 1};
  simulated_memory[0] = 400, simulated_memory[1] = 100, simulated_legal = true;
  tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 0.7 * 1 + 0.3 * 1.5); // the device without a limit does not count
  tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 0.7 * 1.15 + 0.3 * 1.5);
  devices[1].memory = 390; // now both count: the larger ratio, 900, up to 2.5
  tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 2.5);
  peak[0] = peak[1] = 1; // never below 1
  for (int i = 0; i < 40; i++) tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 1);
  // What takes at most a quarter of the limit says nothing.
  peak[0] = 600, peak[1] = 90000;
  simulated_memory[0] = 250, simulated_memory[1] = 97;
  tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 1);
  simulated_memory[0] = 251;
  static const tfc_result_state none[] = {TFC_RESULT_ILLEGAL, TFC_RESULT_FAILED};
  for (int i = 0; i < 2; i++) {
    m.state = none[i];
    tfc_job_model_learn_memory(&model, &solution, &m);
    close_to(model.memory_ratio, 1);
  }
  m.state = TFC_RESULT_NO_FIT, m.peak_count = 1; // the undivided machine
  tfc_job_model_learn_memory(&model, &solution, &m);
  m.peak_count = 2, simulated_legal = false;
  tfc_job_model_learn_memory(&model, &solution, &m);
  simulated_legal = true, problem.has_limits = false;
  tfc_job_model_learn_memory(&model, &solution, &m);
  close_to(model.memory_ratio, 1);
  problem.has_limits = true;
  static const tfc_result_state some[] = {TFC_RESULT_NO_FIT, TFC_RESULT_CUT};
  for (int i = 0; i < 2; i++) {
    m.state = some[i], model.memory_ratio = 1;
    tfc_job_model_learn_memory(&model, &solution, &m);
    close_to(model.memory_ratio, 0.7 + 0.3 * 600 / 251);
  }
  // Searches get more of the limits again.
  model.memory_ratio = 1.5;
  assert_true(tfc_job_model_aim_nearer(&model));
  close_to(model.memory_ratio, 1.3);
  model.memory_ratio = 1.02;
  assert_true(tfc_job_model_aim_nearer(&model));
  close_to(model.memory_ratio, 1);
  assert_false(tfc_job_model_aim_nearer(&model));
  close_to(model.memory_ratio, 1);
}

static void digests(void **state) {
  (void)state;
  const struct tfc_problem problem = {.unit_count = 3};
  const struct tfc_job_model model = {.problem = (struct tfc_problem *)(uintptr_t)&problem};
  const tfc_device_id a[] = {0, 1, 2}, b[] = {0, 2, 1}, c[] = {0, 1, 2}, d[] = {0, 0, 0};
  // FNV-1a over the devices' numbers from 1 on, computed with another type.
  unsigned __int128 h = 14695981039346656037u, mask = UINT64_MAX;
  for (int u = 0; u < 3; u++) h = ((h ^ (unsigned)(a[u] + 1)) * 1099511628211u) & mask;
  assert_true(tfc_job_model_digest(&model, a) == (uint64_t)h);
  assert_true(tfc_job_model_digest(&model, a) == tfc_job_model_digest(&model, c));
  assert_true(tfc_job_model_digest(&model, a) != tfc_job_model_digest(&model, b));
  assert_true(tfc_job_model_digest(&model, a) != tfc_job_model_digest(&model, d));
}

static void flight(void **state) {
  (void)state;
  struct tfc_op_def update = {.flags = TFC_OP_UPDATE}, other = {0};
  struct tfc_node nodes[2] = {{.def = &update}, {.def = &other}};
  const struct tfc_graph graph = {.nodes = nodes, .node_count = 2};
  bool needed[2] = {false, true};
  const struct tfc_subject subject = {.needed = needed};
  struct tfc_job_options o = {.graph = &graph, .request.objective = TFC_OBJECTIVE_THROUGHPUT};
  const struct tfc_job_model model = {.o = &o, .subject = (struct tfc_subject *)(uintptr_t)&subject};
  assert_true(tfc_job_model_runs_in_flight(&model)); // the update is not part of the step
  o.request.objective = TFC_OBJECTIVE_STEP;
  assert_false(tfc_job_model_runs_in_flight(&model));
  o.request.objective = TFC_OBJECTIVE_THROUGHPUT, needed[0] = true;
  assert_false(tfc_job_model_runs_in_flight(&model));
  nodes[0].def = NULL;
  assert_true(tfc_job_model_runs_in_flight(&model));
}

// --- Lessons ---------------------------------------------------------------------------------------------------------
// Nodes 0 to 3 are operations, on two devices; node 4 costs nothing. On one device, nodes 1 and 2 are fused into node
// 0.
static void lessons(void **state) {
  (void)state;
  enum { NODES = 5 };
  static const uint32_t cost_of[NODES] = {0, 1, 2, 3, TFC_NONE};
  static const uint32_t device_class[2] = {0, 1};
  // ps with 2 us (device 0) or 1 us (device 1) of dispatch: alone 10, 20, 10, 40 us; twice that on device 1
  static const int64_t time[8] = {12000000, 22000000, 12000000, 42000000, 21000000, 41000000, 21000000, 81000000};
  struct tfc_machine_device devices[2] = {{.dispatch_us = 2}, {.dispatch_us = 1}};
  const struct tfc_machine machine = {.device_count = 2, .devices = devices};
  const struct tfc_problem problem = {
      .machine = &machine, .node_count = 4, .device_count = 2, .time = time, .device_class = device_class};
  const struct tfc_graph graph = {.node_count = NODES};
  const struct tfc_job_options o = {.graph = &graph};
  const struct tfc_subject subject = {.cost_of = cost_of, .cost_count = 4};
  struct tfc_job_model model = {.o = &o,
                                .subject = (struct tfc_subject *)(uintptr_t)&subject,
                                .prior_problem = (struct tfc_problem *)(uintptr_t)&problem};
  tfc_device_id at[4] = {0};
  const struct tfc_solution solution = {.device = at};
  // Three steps: node 0 (with its members) took 60, 50 and 90 us, in two parts in each; node 3 took 70, 40 and 50 on
  // device 1; node 4 has no costs.
  struct tfc_profile_op ops[3][4] = {
      {{1000, 40000, 0, 0, 0, 0}, {2000, 70000, 3, 1, 0, 0}, {3000, 20000, 0, 0, 0, 0}, {4000, 9000, 4, 0, 0, 0}},
      {{5000, 40000, 0, 0, 0, 0}, {6000, 40000, 3, 1, 0, 0}, {7000, 10000, 0, 0, 0, 0}, {8000, 9000, 4, 0, 0, 0}},
      {{9000, 40000, 0, 0, 0, 0}, {9100, 50000, 3, 1, 0, 0}, {9200, 50000, 0, 0, 0, 0}, {9300, 9000, 4, 0, 0, 0}}};
  struct tfc_step_profile profiles[3] = {{0}};
  for (int i = 0; i < 3; i++) profiles[i].ops.data = ops[i], profiles[i].ops.count = 4;
  static const uint32_t done_by[NODES] = {TFC_NONE, 0, 0, TFC_NONE, TFC_NONE};
  struct tfc_measured m = {
      .profiles = profiles, .profile_count = 3, .done_by = done_by, .done_by_count = NODES, .state = TFC_RESULT_OK};
  taught_trace = true, taught_step_us = 0;
  assert_ok(tfc_job_lesson(&model, &solution, 123, &m));
  assert_true(taught_step_us == 0); // there is no model that learns
  model.learned = (struct tfc_learned *)(uintptr_t)1;
  assert_ok(tfc_job_lesson(&model, &solution, 123, &m));
  assert_true(taught_trace && taught_step_us == 123 && taught_scale == 1);
  assert_int_equal(taught_count, 4);
  // The median of the sums, 60 us, is divided like 10 : 20 : 10. Starts are those of the second step.
  static const struct tfc_learned_operation expected[] = {{0, 0, 5, 15}, {1, 0, 5, 30}, {2, 0, 5, 15}, {3, 1, 6, 50}};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(taught[i].node, expected[i].node);
    assert_int_equal(taught[i].device, expected[i].device);
    close_to(taught[i].start_us, expected[i].start_us);
    close_to(taught[i].time_us, expected[i].time_us);
  }
  m.done_by = NULL, m.done_by_count = 0;
  assert_ok(tfc_job_lesson(&model, &solution, 9, &m));
  assert_int_equal(taught_count, 2);
  close_to(taught[0].time_us, 60);
  m.profile_count = 0; // only the step's time
  assert_ok(tfc_job_lesson(&model, &solution, 55, &m));
  assert_true(!taught_trace && taught_step_us == 55);
}

// --- What learning contributed ---------------------------------------------------------------------------------------
static void contributions(void **state) {
  (void)state;
  struct tfc_job_proposers p = {0};
  struct tfc_job_candidates c = {.best = 0};
  const struct tfc_job_model model = {0};
  struct tfc_job_candidate best = {.algorithm = (char *)(uintptr_t) "rl", .episode = 3, .median_us = 400};
  struct tfc_text text = {0};
  c.model = &model, c.list.data = &best, c.list.count = 1;
  assert_ok(tfc_job_proposers_measured(&p, "lns", false, 1, 500));
  tfc_job_account(&c, &p, &text);
  assert_int_equal(text.size, 0); // nothing was learned
  for (int i = 0; i < 3; i++) assert_ok(tfc_job_proposers_measured(&p, "rl", true, 1, 400 + i));
  assert_ok(tfc_job_proposers_measured(&p, "heft", false, 1, 450));
  tfc_job_proposers_won(&p, "rl"), tfc_job_proposers_won(&p, "heft"), tfc_job_proposers_won(&p, "heft");
  tfc_job_account(&c, &p, &text);
  assert_string_equal(text.data, "The learned policy proposed 3 of 5 measured placements, of which 1 took the lead "
                                 "(others 2); its best took 400.0 us, the others' best 450.0 us: the answer is its "
                                 "own.\n");
  text.size = 0;
  best.algorithm = (char *)(uintptr_t) "lns";
  tfc_job_account(&c, &p, &text);
  assert_non_null(strstr(text.data, ": the answer is not its own.\n"));
  text.size = 0;
  best.algorithm = (char *)(uintptr_t) "rl", best.episode = 0; // it was not measured as a candidate
  tfc_job_account(&c, &p, &text);
  assert_non_null(strstr(text.data, "is not its own.\n"));
  text.size = 0;
  best.episode = 3;
  for (size_t i = 0; i < p.list.count; i++)
    if (!p.list.data[i].learned) p.list.data[i].best_measured = INFINITY;
  tfc_job_account(&c, &p, &text);
  assert_string_equal(text.data, "The learned policy proposed 3 of 5 measured placements, of which 1 took the lead "
                                 "(others 2): the answer is its own.\n");
  // If the learned policy never took the lead, the sentence says how its placement can be the answer.
  uint16_t device = 0;
  struct tfc_job_candidate rows[] = {{.state = TFC_RESULT_OK, .median_us = INFINITY}, best};
  c.list.data = rows, c.list.count = 2, c.best = 1;
  for (size_t i = 0; i < p.list.count; i++) p.list.data[i].won = 0;
  text.size = 0;
  tfc_job_account(&c, &p, &text);
  assert_non_null(strstr(text.data, "(others 0): the answer is its own, and nothing before it could be one.\n"));
  rows[0].solution.device = &device, rows[0].median_us = 500;
  text.size = 0;
  tfc_job_account(&c, &p, &text);
  assert_non_null(strstr(text.data, "(others 0): the answer is its own, chosen at the end.\n"));
  tfc_text_deinit(&text);
  tfc_job_proposers_deinit(&p);
}

// Only placements that ran as candidates, and whose time both models had predicted, count as predictions.
static void errors(void **state) {
  (void)state;
  enum { GOOD = 12 };
  struct tfc_job_candidate rows[GOOD + 6];
  struct tfc_learned_predictions only = {0};
  struct tfc_text expected = {0}, got = {0};
  for (uint32_t i = 0; i < GOOD + 6; i++)
    rows[i] = (struct tfc_job_candidate){.episode = i + 1,
                                         .state = TFC_RESULT_OK,
                                         .learned_us = 100 + 7 * i,
                                         .prior_us = 90 + 11 * i,
                                         .median_us = 105 + 6 * i};
  for (uint32_t i = GOOD; i < GOOD + 6; i++) rows[i].learned_us = 1e6;
  rows[GOOD].episode = 0, rows[GOOD + 1].state = TFC_RESULT_CUT, rows[GOOD + 2].learned_us = 0;
  rows[GOOD + 3].prior_us = 0, rows[GOOD + 4].median_us = (double)NAN, rows[GOOD + 5].state = TFC_RESULT_FAILED;
  for (uint32_t i = 0; i < GOOD; i++)
    assert_true(tfc_array_push(
        &only.list, ((struct tfc_learned_prediction){rows[i].learned_us, rows[i].prior_us, rows[i].median_us})));
  tfc_learned_tell_errors(&only, &expected);
  assert_true(expected.size > 0);
  struct tfc_job_candidates c = {.best = TFC_NONE};
  const struct tfc_job_model model = {0};
  const struct tfc_job_proposers p = {0};
  c.model = &model, c.list.data = rows, c.list.count = GOOD + 6;
  tfc_job_account(&c, &p, &got);
  assert_string_equal(got.data, expected.data);
  tfc_text_deinit(&expected), tfc_text_deinit(&got);
  tfc_array_free(&only.list);
}

// A file that was measured with another arithmetic of GPUs is named.
static uint32_t warned;
static void take_warning(void *user, const struct tfc_job_event *e) {
  (void)user;
  assert_true(e->warning);
  assert_string_equal(e->text, "a.json was measured with products in float32 on GPUs; they are in tf32 now");
  warned++;
}
static void arithmetic(void **state) {
  (void)state;
  struct tfc_device_info device = {.math = "tf32"};
  struct tfc_measure_info info = {.devices = &device, .device_count = 1};
  const struct tfc_job_model model = {.info = &info};
  const struct tfc_job_clock clock = {.event = take_warning};
  struct tfc_placement placement = {.gpu_math = TFC_STR("float32")};
  tfc_job_model_compare_math(&model, &clock, "a.json", &placement);
  assert_int_equal(warned, 1);
  placement.gpu_math = TFC_STR("tf32");
  tfc_job_model_compare_math(&model, &clock, "a.json", &placement);
  placement.gpu_math = (tfc_str){0}; // the file does not say it
  tfc_job_model_compare_math(&model, &clock, "a.json", &placement);
  device.math[0] = 0, placement.gpu_math = TFC_STR("float32");
  tfc_job_model_compare_math(&model, &clock, "a.json", &placement);
  assert_int_equal(warned, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tracing),         cmocka_unit_test(dispatching),   cmocka_unit_test(trouble),
      cmocka_unit_test(time_for),        cmocka_unit_test(names),         cmocka_unit_test(proposals),
      cmocka_unit_test(neighbours),      cmocka_unit_test(memory),        cmocka_unit_test(learners_begin),
      cmocka_unit_test(learners_shares), cmocka_unit_test(digests),       cmocka_unit_test(flight),
      cmocka_unit_test(lessons),         cmocka_unit_test(contributions), cmocka_unit_test(errors),
      cmocka_unit_test(arithmetic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
