// Tests the learned model with a known truth: from noisy readings it finds the true factors, and then it predicts the
// times of new placements.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/learned.h"
#include "placer/learned/private.h"
#include "tests/placer/instances.h"

enum { DEVICES = 4, CHAINS = 6, LENGTH = 20 };

// Makes chains of products and sums. Some operations read a result of the next chain.
static struct instance make(void) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_random r;
  uint32_t kind, node[CHAINS][LENGTH];
  tfc_random_init(&r, 5);
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (int k = 0; k < LENGTH; k++)
    for (int c = 0; c < CHAINS; c++) {
      char name[64];
      const int size = snprintf(name, sizeof name, "chain%d/step%d/%s_%d", c, k, k % 2 ? "Add" : "MatMul", k);
      MUST(tfc_cost_builder_node(b, (tfc_str){name, (size_t)size}, &node[c][k]));
      MUST(tfc_cost_builder_time(b, node[c][k], kind,
                                 k % 2 ? 20 + 10 * tfc_random_unit(&r) : 60 + 40 * tfc_random_unit(&r)));
      if (k) MUST(tfc_cost_builder_edge(b, node[c][k - 1], 0, node[c][k], 20000, TFC_LIVE_ABSENT));
      if (k > 1 && k % 5 == 0)
        MUST(tfc_cost_builder_edge(b, node[(c + 1) % CHAINS][k - 1], 0, node[c][k], 20000, TFC_LIVE_ABSENT));
    }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (int d = 0; d < DEVICES; d++) {
    char name[16];
    const int size = snprintf(name, sizeof name, "acc:%d", d);
    MUST(tfc_machine_add_device(
        i.machine,
        &(struct tfc_machine_device){.name = {name, (size_t)size}, .kind = TFC_STR("acc"), .memory = TFC_NO_LIMIT}));
  }
  struct tfc_link link = tfc_link_default();
  link.latency_us = 5, link.bandwidth = 4e9; // a tensor takes 5 us of latency and 5 us for its bytes
  MUST(tfc_machine_add_link(i.machine, &link));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}

static void random_placement(const struct tfc_problem *p, struct tfc_random *r, struct tfc_solution *out) {
  MUST(tfc_solution_init(out, p));
  for (uint32_t u = 0; u < p->unit_count; u++) // most units of a chain are on the same device
    out->device[u] = (tfc_device_id)(tfc_random_unit(r) < 0.85 ? (u % CHAINS) % DEVICES : tfc_random_below(r, DEVICES));
  const tfc_device_id shift = (tfc_device_id)tfc_random_below(r, DEVICES);
  for (uint32_t u = 0; u < p->unit_count; u++) out->device[u] = (tfc_device_id)((out->device[u] + shift) % DEVICES);
}

// Sets the true factors: one device is 1.45 times as slow; products take 1.3 times as long, sums 0.8 times, links 2.5
// times.
static void truth(const struct tfc_learned *l, double *theta) {
  memset(theta, 0, l->dim * sizeof *theta);
  theta[1 + 2] = log(1.45);
  for (uint32_t n = 0; n < l->problem->node_count; n++)
    theta[l->at_family + l->family[n]] =
        memmem(l->problem->graph->names[n].data, l->problem->graph->names[n].size, "MatMul", 6) ? log(1.3) : log(0.8);
  theta[l->at_links] = theta[l->at_links + 1] = log(2.5);
}

static int by_start(const void *a, const void *b) {
  const double x = ((const struct tfc_learned_operation *)a)->start_us,
               y = ((const struct tfc_learned_operation *)b)->start_us;
  return (x > y) - (x < y);
}

static double beside = 1; // a factor on the step time that no operation or transfer explains

// Gives the model one noisy reading of the truth: the step time and, with `pieces`, the times of operations.
static void measure(struct tfc_learned *l, const struct tfc_learned_world *w, const struct tfc_solution *solution,
                    struct tfc_random *r, bool pieces, double arrival_us) {
  const struct tfc_problem *p = l->problem;
  struct tfc_simulator *simulator = NULL;
  struct tfc_timeline t = {0};
  MUST(tfc_simulator_create(w->problem, &simulator));
  MUST(tfc_simulate_timeline(simulator, solution->device, solution->rank, &t));
  struct tfc_learned_operation *operations = calloc(p->node_count, sizeof *operations);
  struct tfc_learned_transfer *transfers = calloc(t.transfer_count + 1, sizeof *transfers);
  double step = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    const uint32_t d = solution->device[p->unit[n]];
    uint32_t arrivals = 0;
    for (uint32_t i = p->graph->first_input[n]; i < p->graph->first_input[n + 1]; i++) {
      const uint32_t x = p->graph->input[i];
      bool first = solution->device[p->unit[p->graph->producer[x]]] != d;
      for (uint32_t c = p->graph->first_consumer[x]; c < p->graph->first_consumer[x + 1]; c++) {
        const uint32_t other = p->graph->consumer[c];
        if (other != n && solution->device[p->unit[other]] == d && t.start[other] < t.start[n]) first = false;
      }
      arrivals += first;
    }
    const double us = 1e-6 * (double)(t.end[n] - t.start[n]);
    operations[n] = (struct tfc_learned_operation){n, d, 1e-6 * (double)t.start[n],
                                                   us * exp(0.05 * tfc_random_normal(r)) + arrivals * arrival_us};
    step = fmax(step, 1e-6 * (double)t.end[n]);
  }
  for (uint32_t i = 0; i < t.transfer_count; i++) {
    const struct tfc_transfer *x = &t.transfers[i];
    transfers[i] = (struct tfc_learned_transfer){x->tensor, x->from, x->to, 1e-6 * (double)x->start,
                                                 1e-6 * (double)(x->end - x->start)};
  }
  qsort(operations, p->node_count, sizeof *operations, by_start);
  const struct tfc_learned_trace trace = {operations, p->node_count, transfers, t.transfer_count};
  assert_ok(tfc_learned_add(l, solution, beside * step * exp(0.02 * tfc_random_normal(r)), 1, pieces ? &trace : NULL));
  free(operations);
  free(transfers);
  tfc_timeline_deinit(&t);
  tfc_simulator_free(simulator);
}

static double step_in(const struct tfc_problem *p, const struct tfc_solution *solution) {
  struct tfc_simulator *simulator = NULL;
  struct tfc_verdict v = {0};
  MUST(tfc_simulator_create(p, &simulator));
  tfc_simulate(simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  tfc_simulator_free(simulator);
  return 1e-6 * (double)v.value;
}

// Computes the mean |log(predicted / true)| over new placements, of the learned model and of the prior.
static void errors(const struct tfc_learned *l, const struct tfc_learned_world *real, double *out_learned,
                   double *out_prior) {
  struct tfc_learned_world w = {0};
  struct tfc_random r;
  tfc_random_init(&r, 99);
  *out_learned = *out_prior = 0;
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  for (int i = 0; i < 20; i++) {
    struct tfc_solution s = {0};
    random_placement(l->problem, &r, &s);
    const double us = step_in(real->problem, &s);
    *out_learned += fabs(log(step_in(w.problem, &s) / us)) / 20,
        *out_prior += fabs(log(step_in(l->problem, &s) / us)) / 20;
    tfc_solution_deinit(&s);
  }
  tfc_learned_world_deinit(&w);
}

static void nothing_learned_is_the_prior(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_learned_world w = {0};
  struct tfc_random r;
  tfc_random_init(&r, 1);
  assert_ok(tfc_learned_create(i.problem, false, &l));
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  for (int k = 0; k < 10; k++) {
    struct tfc_solution s = {0};
    random_placement(i.problem, &r, &s);
    assert_true(fabs(step_in(w.problem, &s) / step_in(i.problem, &s) - 1) < 1e-6);
    tfc_solution_deinit(&s);
  }
  tfc_learned_world_deinit(&w);
  assert_ok(tfc_learned_world(l, l->problem, &r, &w)); // a Thompson sample: unknown factors are drawn at random
  struct tfc_solution s = {0};
  random_placement(i.problem, &r, &s);
  assert_true(fabs(step_in(w.problem, &s) / step_in(i.problem, &s) - 1) > 1e-3);
  tfc_solution_deinit(&s);
  tfc_learned_world_deinit(&w);
  tfc_learned_free(l);
  instance_free(&i);
}

static void check(bool pieces, int readings, double arrival_us, double tolerance, double least_gain) {
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_learned_world real = {0};
  struct tfc_random r;
  double theta[512], sd, learned, prior;
  tfc_random_init(&r, 3);
  assert_ok(tfc_learned_create(i.problem, false, &l));
  assert_true(l->dim < 512);
  truth(l, theta);
  assert_ok(tfc_learned_build(l, l->problem, theta, NULL, &real));
  for (int k = 0; k < readings; k++) {
    struct tfc_solution s = {0};
    random_placement(i.problem, &r, &s);
    measure(l, &real, &s, &r, pieces, arrival_us);
    tfc_solution_deinit(&s);
  }
  assert_ok(tfc_learned_fit(l));
  const double slow = tfc_learned_device_factor(l, 2, &sd), usual = tfc_learned_device_factor(l, 1, NULL);
  if (fabs(log(slow / usual / 1.45)) > tolerance) fail_msg("device 2: %g times device 1, not 1.45", slow / usual);
  assert_true(sd > 0 && sd < 0.25);
  errors(l, &real, &learned, &prior);
  if (learned > least_gain * prior) fail_msg("error %g, of the prior %g", learned, prior);
  if (pieces) {
    const uint32_t pair = tfc_learned_pair(l, 0, 1);
    const double link =
        exp(0.5 * (tfc_learned_log_link(l, l->mean, pair, 0) + tfc_learned_log_link(l, l->mean, pair, 1)));
    if (fabs(log(link / 2.5)) > 0.1) fail_msg("link: %g, not 2.5", link);
    const double arrival = fmax(0, l->mean[l->at_arrival]) * l->arrival_unit_us;
    if (fabs(arrival - arrival_us) > 1.5) fail_msg("arrival: %g us, not %g", arrival, arrival_us);
  }
  tfc_learned_world_deinit(&real);
  tfc_learned_free(l);
  instance_free(&i);
}

static void pieces_tell_it_all(void **state) {
  (void)state;
  check(true, 4, 0, 0.05, 0.1);
}
static void arrivals_are_told_from_operations(void **state) {
  (void)state;
  check(true, 4, 8, 0.05, 1);
}
static void whole_steps_tell_much(void **state) {
  (void)state;
  check(false, 60, 0, 0.15, 0.3);
}

// Devices slow each other down. The prior has the mean slow-down, and the model must still find the one device that is
// slow by itself.
static void crowded_devices_are_told_apart(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_learned_operation operations[CHAINS * LENGTH];
  struct tfc_solution s = {0};
  static const double slowdown[] = {1, 1.2, 1.3, 1.5};
  for (int d = 0; d < DEVICES; d++) i.machine->devices[d].slowdown = slowdown, i.machine->devices[d].slowdown_count = 4;
  tfc_problem_free(i.problem);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_ok(tfc_learned_create(i.problem, false, &l));
  assert_ok(tfc_solution_init(&s, i.problem));
  for (uint32_t n = 0; n < i.problem->node_count; n++) s.device[n] = (tfc_device_id)((n % CHAINS) % DEVICES);
  // all take 1.1 times as long as alone, and device 3 takes 1.6 times that
  for (uint32_t n = 0; n < i.problem->node_count; n++)
    operations[n] = (struct tfc_learned_operation){
        n, s.device[n], 0, 1.1 * (s.device[n] == 3 ? 1.6 : 1) * 1e-6 * (double)tfc_problem_time(i.problem, n, 0)};
  assert_ok(tfc_learned_add(l, &s, 1000, 1, &(struct tfc_learned_trace){operations, i.problem->node_count, NULL, 0}));
  assert_ok(tfc_learned_fit(l));
  struct tfc_learned_world w = {0};
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  double sum[DEVICES] = {0}, alone[DEVICES] = {0};
  for (uint32_t n = 0; n < i.problem->node_count; n++) {
    sum[s.device[n]] += (double)tfc_problem_time(w.problem, n, s.device[n]);
    alone[s.device[n]] += (double)tfc_problem_time(i.problem, n, s.device[n]);
  }
  assert_true(fabs(sum[0] / alone[0] - 1.1) < 0.06 && fabs(sum[3] / alone[3] - 1.76) < 0.1);
  tfc_learned_world_deinit(&w);
  tfc_solution_deinit(&s);
  tfc_learned_free(l);
  instance_free(&i);
}

// With many devices the system of equations stays small, and the model still learns from a reading.
static void many_devices_have_few_parameters(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_learned_world w = {0};
  struct tfc_solution s = {0};
#ifdef TFC_SANITIZED
  enum { MANY = 40 };
#else
  enum { MANY = 100 };
#endif
  for (int d = DEVICES; d < MANY; d++) {
    char name[16];
    const int size = snprintf(name, sizeof name, "acc:%d", d);
    MUST(tfc_machine_add_device(
        i.machine,
        &(struct tfc_machine_device){.name = {name, (size_t)size}, .kind = TFC_STR("acc"), .memory = TFC_NO_LIMIT}));
  }
  tfc_problem_free(i.problem);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_ok(tfc_learned_create(i.problem, false, &l));
  assert_true(l->dim < 1000);
  assert_ok(tfc_solution_init(&s, i.problem));
  for (uint32_t u = 0; u < i.problem->unit_count; u++) s.device[u] = (tfc_device_id)(u % MANY);
  const double before = step_in(i.problem, &s);
  for (int k = 0; k < 8; k++) assert_ok(tfc_learned_add(l, &s, 1.5 * before, 1, NULL));
  assert_ok(tfc_learned_fit(l));
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  assert_true(fabs(log(step_in(w.problem, &s) / before / 1.5)) < 0.1);
  tfc_learned_world_deinit(&w);
  tfc_solution_deinit(&s);
  tfc_learned_free(l);
  instance_free(&i);
}

// Pairs whose transfers wait for each other and never run at the same time become one wire.
static void wires_that_are_one_are_found(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_learned_world w = {0};
  assert_ok(tfc_learned_create(i.problem, false, &l));
  struct tfc_learned_operation operations[8];
  struct tfc_learned_transfer transfers[8];
  for (uint32_t k = 0; k < 8; k++) { // all operations end at 10 us; transfers 0 -> 1 and 2 -> 3 alternate, 4 us each
    const uint32_t from = k % 2 ? 2 : 0;
    operations[k] = (struct tfc_learned_operation){k, from, 0, 10};
    transfers[k] = (struct tfc_learned_transfer){i.graph->first_tensor[k], from, from + 1, 10 + 4 * k, 4};
  }
  assert_ok(tfc_learned_watch_wires(l, &(struct tfc_learned_trace){operations, 8, transfers, 8}));
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  assert_int_equal(tfc_problem_pair(w.problem, 0, 1)->wire, tfc_problem_pair(w.problem, 2, 3)->wire);
  assert_int_not_equal(tfc_problem_pair(w.problem, 0, 1)->wire, tfc_problem_pair(w.problem, 0, 2)->wire);
  tfc_learned_world_deinit(&w);
  // If such transfers overlap in time, the pairs do not become one wire.
  for (uint32_t k = 0; k < 8; k++) transfers[k].start_us = 10 + 4 * (k / 2);
  for (int k = 0; k < 9; k++)
    assert_ok(tfc_learned_watch_wires(l, &(struct tfc_learned_trace){operations, 8, transfers, 8}));
  assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
  assert_int_not_equal(tfc_problem_pair(w.problem, 0, 1)->wire, tfc_problem_pair(w.problem, 2, 3)->wire);
  tfc_learned_world_deinit(&w);
  tfc_learned_free(l);
  instance_free(&i);
}

// The devices are equal. Families of operations take other times than expected, operations that run at the same time
// slow each other down more than the machine file says, and steps take a quarter longer than their operations explain.
// The model finds all these factors, writes them as text, and reads them back.
static void alike_devices_have_one_model(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL, *again = NULL;
  struct tfc_learned_world real = {0};
  struct tfc_random r;
  struct tfc_text text = {0};
  struct tfc_solution s[30] = {{0}};
  double theta[512], off = 0, prior_off = 0;
  static const double slowdown[] = {1, 1.05, 1.1, 1.15}, truly[] = {1, 1.3, 1.5, 1.6};
  for (int d = 0; d < DEVICES; d++) i.machine->devices[d].slowdown = slowdown, i.machine->devices[d].slowdown_count = 4;
  tfc_problem_free(i.problem);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  tfc_random_init(&r, 8);
  assert_ok(tfc_learned_create(i.problem, true, &l));
  truth(l, theta);
  for (int d = 0; d < DEVICES; d++) theta[1 + d] = log(truly[d] / slowdown[d]);
  assert_ok(tfc_learned_build(l, l->problem, theta, NULL, &real));
  assert_true(tfc_str_equal(real.machine->devices[0].kind, real.machine->devices[3].kind));
  assert_int_equal(real.machine->devices[2].slowdown_count, 4);
  assert_true(fabs(real.machine->devices[2].slowdown[3] - 1.6) < 1e-9);
  beside = 1.25;
  for (int k = 0; k < 30; k++) {
    random_placement(i.problem, &r, &s[k]);
    measure(l, &real, &s[k], &r, true, 0);
  }
  assert_ok(tfc_learned_fit(l));
  for (int k = 0; k < 20; k++) {
    struct tfc_solution other = {0};
    double us, sd;
    random_placement(i.problem, &r, &other);
    const double real_us = beside * step_in(real.problem, &other);
    assert_true(tfc_learned_predict(l, &other, &us, &sd));
    assert_true(sd > 0.01 && sd < 0.3);
    off += log(us / real_us) / 20, prior_off += log(step_in(i.problem, &other) / real_us) / 20;
    tfc_solution_deinit(&other);
  }
  if (!(fabs(off) < 0.05) || !(fabs(prior_off) > 0.2)) fail_msg("bias %g, of the prior %g", off, prior_off);
  assert_ok(tfc_learned_save(l, &text));
  assert_ok(tfc_learned_create(i.problem, true, &again));
  assert_ok(tfc_learned_load(again, (tfc_str){text.data, text.size}));
  for (size_t k = 0; k < l->steps.count; k++)
    assert_ok(tfc_learned_add(again, &l->steps.data[k].solution, exp(l->steps.data[k].log_us), 1, NULL));
  assert_ok(tfc_learned_fit(again));
  for (int k = 0; k < 30; k++) {
    double a, b;
    assert_true(tfc_learned_predict(l, &s[k], &a, NULL) && tfc_learned_predict(again, &s[k], &b, NULL));
    assert_true(fabs(a / b - 1) < 1e-5);
  }
  // A text that is damaged, or belongs to another problem, gives an error.
  struct tfc_learned *other = NULL;
  assert_ok(tfc_learned_create(i.problem, false, &other));
  assert_fails(tfc_learned_load(other, (tfc_str){text.data, text.size}), TFC_INVALID_ARGUMENT, "another problem");
  tfc_text_printf(&text, "o 99999999 1 1\n");
  assert_fails(tfc_learned_load(again, (tfc_str){text.data, text.size}), TFC_INVALID_ARGUMENT, "is broken");
  text.data[strlen("learned ")] = '9';
  assert_fails(tfc_learned_load(again, (tfc_str){text.data, text.size}), TFC_INVALID_ARGUMENT,
               "another version of tfc, in format 9 instead of 1");
  tfc_learned_free(other);
  beside = 1;
  for (int k = 0; k < 30; k++) tfc_solution_deinit(&s[k]);
  tfc_text_deinit(&text);
  tfc_learned_world_deinit(&real);
  tfc_learned_free(again);
  tfc_learned_free(l);
  instance_free(&i);
}

// A step takes longer the more devices it uses, and only placements on several devices are measured. The model must not
// predict that a placement on a single device is faster than every measured one, however different its features are.
static void what_was_never_seen_is_not_predicted(void **state) {
  (void)state;
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_random r;
  double least = INFINITY, us, alone;
  tfc_random_init(&r, 21);
  assert_ok(tfc_learned_create(i.problem, true, &l));
  for (int k = 0; k < 40; k++) {
    struct tfc_solution s = {0};
    random_placement(i.problem, &r, &s);
    for (uint32_t u = 0; u < i.problem->unit_count; u++)
      if (tfc_random_unit(&r) < 0.02 * k) s.device[u] = (tfc_device_id)tfc_random_below(&r, DEVICES);
    const double factor = 1.5 + 0.1 * k;
    least = fmin(least, factor);
    assert_ok(tfc_learned_add(l, &s, factor * step_in(i.problem, &s), 1, NULL));
    tfc_solution_deinit(&s);
  }
  assert_ok(tfc_learned_fit(l));
  struct tfc_solution single = {0};
  assert_ok(tfc_solution_init(&single, i.problem));
  assert_true(tfc_learned_predict(l, &single, &us, NULL));
  alone = step_in(l->now.problem, &single);
  assert_true(l->whole.known);
  assert_true(us / alone >= exp(l->whole.least) * 0.999 && us / alone <= exp(l->whole.most) * 1.001);
  if (!(us > 0.6 * least * step_in(i.problem, &single))) fail_msg("%g us, simulated %g", us, alone);
  tfc_solution_deinit(&single);
  tfc_learned_free(l);
  instance_free(&i);
}

// Times drawn from the prediction have its standard deviation. Two placements that differ in one unit share most of
// what is uncertain. So if both times are drawn with the same opinion (one draw of the parameters), their ratio varies
// less than that of two independent draws.
static void drawn_times_have_one_opinion(void **state) {
  (void)state;
  enum { DRAWS = 4000 };
  struct instance i = make();
  struct tfc_learned *l = NULL;
  struct tfc_random r;
  struct tfc_solution s = {0}, near = {0};
  struct tfc_learned_opinion opinion;
  double us, sd, a, b, sum = 0, squares = 0, apart = 0;
  tfc_random_init(&r, 21);
  assert_ok(tfc_learned_create(i.problem, true, &l));
  tfc_learned_draw(l, &r, &opinion); // nothing is known yet: no opinion
  for (int k = 0; k < TFC_LEARNED_FEATURES; k++) assert_true(opinion.deviation[k] == 0);
  for (int k = 0; k < 6; k++) {
    random_placement(i.problem, &r, &s);
    assert_ok(tfc_learned_add(l, &s, 1.2 * step_in(i.problem, &s) * exp(0.02 * tfc_random_normal(&r)), 1, NULL));
    tfc_solution_deinit(&s);
  }
  assert_ok(tfc_learned_fit(l));
  random_placement(i.problem, &r, &s);
  assert_ok(tfc_solution_copy(&near, &s, i.problem));
  near.device[5] = (tfc_device_id)((near.device[5] + 1) % DEVICES);
  assert_true(tfc_learned_predict(l, &s, &us, &sd));
  for (int k = 0; k < DRAWS; k++) {
    tfc_learned_draw(l, &r, &opinion);
    assert_true(tfc_learned_predict_drawn(l, &s, &opinion, &r, &a));
    assert_true(tfc_learned_predict_drawn(l, &near, &opinion, &r, &b));
    sum += log(a / us) / DRAWS, squares += log(a / us) * log(a / us) / DRAWS;
    apart += log(b / a) / DRAWS;
  }
  const double drawn = sqrt(squares - sum * sum);
  if (!(fabs(sum) < 0.1 * sd) || !(fabs(drawn / sd - 1) < 0.1)) fail_msg("drawn %g and %g, sd %g", sum, drawn, sd);
  double between = 0;
  for (int k = 0; k < DRAWS; k++) {
    tfc_learned_draw(l, &r, &opinion);
    assert_true(tfc_learned_predict_drawn(l, &s, &opinion, &r, &a));
    assert_true(tfc_learned_predict_drawn(l, &near, &opinion, &r, &b));
    between += (log(b / a) - apart) * (log(b / a) - apart) / DRAWS;
  }
  if (!(sqrt(between) < 0.8 * sqrt(2) * sd) || !(sqrt(between) >= 0.95 * sqrt(2) * l->whole.sd))
    fail_msg("between %g, sd %g, own %g", sqrt(between), sd, l->whole.sd);
  tfc_solution_deinit(&s);
  tfc_solution_deinit(&near);
  tfc_learned_free(l);
  instance_free(&i);
}

// Returns the standard deviation of log(predicted / measured) over new placements: a factor that all have in common
// does not count.
static double spread(const struct tfc_learned *l, const struct tfc_problem *real, bool fully) {
  enum { PLACEMENTS = 40 };
  struct tfc_random r;
  double sum = 0, squares = 0, us;
  tfc_random_init(&r, 77);
  for (int i = 0; i < PLACEMENTS; i++) {
    struct tfc_solution s = {0};
    random_placement(l->problem, &r, &s);
    assert_true(fully ? tfc_learned_predict_fully(l, &s, &us, NULL) : tfc_learned_predict(l, &s, &us, NULL));
    const double x = log(us / step_in(real, &s));
    sum += x, squares += x * x;
    tfc_solution_deinit(&s);
  }
  return sqrt(fmax(0, squares / PLACEMENTS - sum * sum / PLACEMENTS / PLACEMENTS));
}

// If times of operations have nothing to do with how long steps take (because something else kept the machine busy
// during the profile), the model does not use them: predictions and searched costs return to the given ones. The first
// twelve readings, when the machine was three times as slow, do not shift the predictions. If the times are true
// (`honest`), the model uses them.
static void what_does_not_predict_is_not_followed(void **state) {
  (void)state;
  for (int honest = 0; honest < 2; honest++) {
    struct instance i = make();
    struct tfc_learned *l = NULL, *again = NULL;
    struct tfc_learned_world real = {0}, w = {0};
    struct tfc_random r;
    struct tfc_text text = {0};
    double theta[512], factor[CHAINS * LENGTH * DEVICES];
    tfc_random_init(&r, 8);
    assert_ok(tfc_learned_create(i.problem, false, &l));
    assert_true(tfc_learned_trust(l) == 1);
    truth(l, theta);
    assert_ok(tfc_learned_build(l, l->problem, theta, NULL, &real));
    for (int k = 0; k < CHAINS * LENGTH * DEVICES; k++) factor[k] = exp(0.8 * tfc_random_normal(&r));
    for (int k = 0; k < 60; k++) {
      struct tfc_solution s = {0};
      struct tfc_learned_operation operations[CHAINS * LENGTH];
      random_placement(i.problem, &r, &s);
      for (uint32_t n = 0; n < i.problem->node_count; n++) {
        const uint32_t d = s.device[i.problem->unit[n]];
        operations[n] = (struct tfc_learned_operation){
            n, d, 0, 1e-6 * (double)tfc_problem_time(i.problem, n, d) * factor[n * DEVICES + d]};
      }
      const struct tfc_learned_trace trace = {.operations = operations, .operation_count = i.problem->node_count};
      if (honest)
        measure(l, &real, &s, &r, true, 0);
      else
        assert_ok(tfc_learned_add(l, &s, (k < 12 ? 6 : 2) * step_in(i.problem, &s) * exp(0.01 * tfc_random_normal(&r)),
                                  1, &trace));
      if (k % 4 == 3) assert_ok(tfc_learned_fit(l));
      tfc_solution_deinit(&s);
    }
    const struct tfc_problem *truly = honest ? real.problem : i.problem;
    const double trusted = spread(l, truly, false), fully = spread(l, truly, true);
    if (honest && (tfc_learned_trust(l) < 0.8 || trusted > 1.2 * fully))
      fail_msg("trust %g, spread %g, %g with full trust", tfc_learned_trust(l), trusted, fully);
    if (!honest && (tfc_learned_trust(l) > 0.3 || trusted > 0.5 * fully))
      fail_msg("trust %g, spread %g, %g with full trust", tfc_learned_trust(l), trusted, fully);
    struct tfc_solution some = {0};
    double us;
    random_placement(i.problem, &r, &some);
    assert_true(tfc_learned_predict(l, &some, &us, NULL));
    if (!honest && fabs(log(us / 2 / step_in(i.problem, &some))) > 0.05)
      fail_msg("predicted %g us, not %g", us, 2 * step_in(i.problem, &some));
    tfc_solution_deinit(&some);
    assert_ok(tfc_learned_world(l, l->problem, NULL, &w));
    double off = 0;
    for (uint32_t n = 0; n < i.problem->node_count; n++)
      off += fabs(log((double)tfc_problem_time(w.problem, n, 0) / (double)tfc_problem_time(l->now.problem, n, 0)));
    assert_true(honest ? off < 0.1 * LENGTH * CHAINS : off > 0.1 * LENGTH * CHAINS);
    // Whether the model follows times of operations is part of the saved text.
    assert_ok(tfc_learned_save(l, &text));
    assert_ok(tfc_learned_create(i.problem, false, &again));
    assert_ok(tfc_learned_load(again, (tfc_str){text.data, text.size}));
    assert_ok(tfc_learned_fit(again));
    assert_true(fabs(tfc_learned_trust(again) - tfc_learned_trust(l)) < 1e-6);
    tfc_text_deinit(&text);
    tfc_learned_world_deinit(&real);
    tfc_learned_world_deinit(&w);
    tfc_learned_free(l);
    tfc_learned_free(again);
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drawn_times_have_one_opinion),
      cmocka_unit_test(nothing_learned_is_the_prior),
      cmocka_unit_test(pieces_tell_it_all),
      cmocka_unit_test(arrivals_are_told_from_operations),
      cmocka_unit_test(whole_steps_tell_much),
      cmocka_unit_test(crowded_devices_are_told_apart),
      cmocka_unit_test(many_devices_have_few_parameters),
      cmocka_unit_test(wires_that_are_one_are_found),
      cmocka_unit_test(alike_devices_have_one_model),
      cmocka_unit_test(what_was_never_seen_is_not_predicted),
      cmocka_unit_test(what_does_not_predict_is_not_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
