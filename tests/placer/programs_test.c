// Compares exhaustive search and the integer program of the step objective with a plain enumeration: the number of
// evaluations, the answers, when they stop, and the value of the relaxation. Also compares the bound from total work
// with the optimum of its linear program.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/exact/bound.h"
#include "placer/exact/exhaust.h"
#include "placer/exact/ilp.h"
#include "tests/placer/instances.h"

enum { NODES = 6, DEVICES = 3, MOST_ORDERS = 800 };

static bool consumes(const struct tfc_problem *p, uint32_t n, uint32_t before) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
    if (g->producer[g->input[i]] == before) return true;
  return false;
}

// Changes `device` to the next of all assignments, allowed or not; false: there are no more.
static bool next_assignment(const struct tfc_problem *p, tfc_device_id *device) {
  uint32_t u = p->unit_count;
  while (u-- > 0) {
    if (++device[u] < p->device_count) return true;
    device[u] = 0;
  }
  return false;
}
static bool allowed(const struct tfc_problem *p, const tfc_device_id *device) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (!tfc_problem_allows(p, u, device[u])) return false;
  return true;
}

// --- Exhaustive search -----------------------------------------------------------------------------------------------

// Of sequences that differ only by exchanging neighbours that are on different devices and have no edge between them,
// only the lexicographically first counts.
struct orders {
  uint32_t count;
  uint32_t sequence[MOST_ORDERS][NODES];
};

static void add_least_form(const struct tfc_problem *p, const tfc_device_id *device, const uint32_t *sequence,
                           struct orders *out) {
  uint32_t left[NODES], form[NODES], count = p->node_count;
  memcpy(left, sequence, sizeof left);
  for (uint32_t k = 0; k < p->node_count; k++) {
    uint32_t best = TFC_NONE, where = 0;
    for (uint32_t i = 0; i < count; i++) {
      bool free = left[i] < best; // it is the smallest so far, unless an item before it must stay before it
      for (uint32_t j = 0; j < i; j++)
        if (consumes(p, left[i], left[j]) || device[p->unit[left[i]]] == device[p->unit[left[j]]]) free = false;
      if (free) best = left[i], where = i;
    }
    form[k] = best;
    memmove(left + where, left + where + 1, (count - where - 1) * sizeof *left);
    count--;
  }
  for (uint32_t i = 0; i < out->count; i++)
    if (memcmp(out->sequence[i], form, p->node_count * sizeof *form) == 0) return;
  assert_true(out->count < MOST_ORDERS);
  memcpy(out->sequence[out->count++], form, p->node_count * sizeof *form);
}
static void all_orders(const struct tfc_problem *p, const tfc_device_id *device, uint32_t *sequence, uint32_t depth,
                       struct orders *out) {
  if (depth == p->node_count) {
    add_least_form(p, device, sequence, out);
    return;
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    bool ready = true;
    for (uint32_t i = 0; i < depth; i++) ready = ready && sequence[i] != n;
    for (uint32_t m = 0; m < p->node_count && ready; m++) {
      bool done = !consumes(p, n, m);
      for (uint32_t i = 0; i < depth; i++) done = done || sequence[i] == m;
      ready = done;
    }
    if (!ready) continue;
    sequence[depth] = n;
    all_orders(p, device, sequence, depth + 1, out);
  }
}

static void keep(struct tfc_score *best, const struct tfc_verdict *v) {
  const struct tfc_score score = tfc_score_of(v);
  if (tfc_score_better(score, *best)) *best = score;
}

static void exhaustive(void **state) {
  (void)state;
  static struct orders orders;
  uint32_t ordered = 0;
  for (uint64_t number = 0; number < 40; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 900 + number);
    const uint32_t rich = number % 2 ? RICH_KINDS | RICH_PINS | RICH_LIMITS | RICH_GROUPS : 0;
    struct instance i = random_instance(&r, 2 + (uint32_t)number % (NODES - 2), 1 + (uint32_t)pick(&r, DEVICES), rich,
                                        number % 5 == 4 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    struct tfc_score plain = TFC_SCORE_NONE, best, found;
    tfc_device_id device[NODES] = {0};
    uint64_t placements = 0, all = 0, used = 0;
    bool complete = false;
    assert_ok(tfc_simulator_create(p, &sim));
    do {
      if (!allowed(p, device)) continue;
      struct tfc_verdict v = {0};
      placements++;
      tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
      keep(&plain, &v);
    } while (next_assignment(p, device));
    best = plain, all = placements;
    memset(device, 0, sizeof device);
    do {
      if (!allowed(p, device)) continue;
      uint32_t sequence[NODES], rank[NODES];
      orders.count = 0;
      all_orders(p, device, sequence, 0, &orders);
      all += orders.count;
      for (uint32_t k = 0; k < orders.count; k++) {
        struct tfc_verdict v = {0};
        for (uint32_t n = 0; n < p->node_count; n++) rank[orders.sequence[k][n]] = n;
        tfc_simulate(sim, device, rank, TFC_TIME_MAX, &v);
        keep(&best, &v);
      }
    } while (next_assignment(p, device));
    assert_int_equal(tfc_exhaust_count(p, 1 << 20, false), placements);
    assert_int_equal(tfc_exhaust_count(p, 1 << 20, true), all);
    assert_int_equal(tfc_exhaust_count(p, placements, false), placements);
    assert_true(tfc_exhaust_count(p, placements - 1, false) == UINT64_MAX);
    assert_int_equal(tfc_exhaust_count(p, all, true), all);
    assert_true(tfc_exhaust_count(p, all - 1, true) == UINT64_MAX);
    for (int with = 0; with < 2; with++) {
      const struct tfc_budget budget = {.threads = 1};
      assert_ok(tfc_solution_init(&solution, p));
      assert_ok(tfc_exhaust(p, &budget, with, -1, &solution, &found, &used, &complete));
      assert_int_equal(used, with ? all : placements);
      assert_true(complete == (with || p->objective == TFC_OBJECTIVE_THROUGHPUT));
      assert_int_equal(found.value, with ? best.value : plain.value);
      assert_int_equal(found.excess, with ? best.excess : plain.excess);
      struct tfc_verdict v = {0};
      tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
      assert_int_equal(tfc_score_of(&v).value, found.value);
      ordered += with && solution.rank;
      tfc_solution_deinit(&solution);
    }
    // Exhaustive search ends when the budget is spent, or when the value is good enough.
    if (placements > 1) {
      const struct tfc_budget few = {.evaluations = placements - 1, .threads = 1}, any = {.threads = 1};
      assert_ok(tfc_solution_init(&solution, p));
      assert_ok(tfc_exhaust(p, &few, false, -1, &solution, &found, &used, &complete));
      assert_int_equal(used, placements - 1);
      assert_false(complete);
      tfc_solution_deinit(&solution);
      assert_ok(tfc_solution_init(&solution, p));
      assert_ok(tfc_exhaust(p, &any, true, plain.value, &solution, &found, &used, &complete));
      if (!plain.excess && plain.value != TFC_TIME_MAX) {
        assert_int_equal(found.value, plain.value);
        assert_true(used <= placements && !complete);
      }
      tfc_solution_deinit(&solution);
    }
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(ordered > 0);
  struct tfc_random r;
  tfc_random_init(&r, 1);
  struct instance i = random_instance(&r, TFC_EXHAUST_NODES + 1, 2, 0, TFC_OBJECTIVE_STEP);
  struct tfc_solution solution = {0};
  struct tfc_score found;
  uint64_t used;
  bool complete;
  assert_true(tfc_exhaust_count(i.problem, UINT64_MAX - 1, false) == UINT64_MAX);
  assert_ok(tfc_solution_init(&solution, i.problem));
  assert_fails(
      tfc_exhaust(i.problem, &(struct tfc_budget){.evaluations = 5}, false, -1, &solution, &found, &used, &complete),
      TFC_FAILED_PRECONDITION, "too large");
  tfc_solution_deinit(&solution);
  instance_free(&i);
}

// --- The integer program of a step -----------------------------------------------------------------------------------

// Returns the value that the program minimises: the larger one of the largest sum of times on a device and the longest
// path, where an edge between devices takes as long as its tensor on the fastest of all links; -1: the placement does
// not fit, or a link is missing.
static double relaxed(const struct tfc_problem *p, const tfc_device_id *device) {
  const struct tfc_cost_graph *g = p->graph;
  double load[DEVICES] = {0}, end[16] = {0}, worst = 0;
  uint64_t memory[DEVICES] = {0};
  for (uint32_t u = 0; u < p->unit_count; u++) memory[device[u]] += p->unit_memory[u];
  for (uint32_t d = 0; d < p->device_count; d++)
    if (memory[d] > p->limit[d]) return -1;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = g->topological[i], d = device[p->unit[n]];
    double start = 0;
    for (uint32_t k = g->first_input[n]; k < g->first_input[n + 1]; k++) {
      const uint32_t tensor = g->input[k], from = g->producer[tensor], e = device[p->unit[from]];
      double wire = INFINITY;
      if (d != e && !tfc_problem_pair(p, e, d)->linked) return -1;
      for (uint32_t a = 0; a < p->device_count; a++)
        for (uint32_t b = 0; b < p->device_count; b++)
          if (a != b && tfc_problem_pair(p, a, b)->linked)
            wire = fmin(wire, (double)tfc_problem_wire_time(p, tensor, tfc_problem_pair(p, a, b)));
      start = fmax(start, end[from] + (d == e ? 0 : wire));
    }
    end[n] = start + (double)tfc_problem_time(p, n, d);
    load[d] += (double)tfc_problem_time(p, n, d);
    worst = fmax(worst, end[n]);
  }
  for (uint32_t d = 0; d < p->device_count; d++) worst = fmax(worst, load[d]);
  return worst;
}

static void relaxation(void **state) {
  (void)state;
  uint32_t solved = 0, none = 0;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 300 + number);
    const uint32_t rich = number % 3 ? RICH_KINDS | RICH_PINS | RICH_LIMITS | RICH_GROUPS | RICH_MISSING : 0;
    struct instance i =
        random_instance(&r, 3 + (uint32_t)pick(&r, 5), 1 + (uint32_t)pick(&r, DEVICES), rich, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    tfc_device_id device[16] = {0}, placed[16] = {0};
    uint32_t cluster[16];
    double best = INFINITY;
    struct tfc_ilp_answer answer;
    for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u;
    do {
      const double value = allowed(p, device) ? relaxed(p, device) : -1;
      if (value >= 0) best = fmin(best, value);
    } while (next_assignment(p, device));
    assert_ok(
        tfc_ilp_solve(p, cluster, p->unit_count, &(struct tfc_program_limits){.seconds = 60}, NULL, placed, &answer));
    if (answer.gave_up) {
      instance_free(&i);
      continue;
    }
    if (isinf(best)) {
      assert_true(answer.infeasible && !answer.found);
      none++;
    } else {
      assert_true(answer.optimal && answer.found && !answer.infeasible);
      // The bound is slightly below the optimum, because the solver works with tolerances.
      if (best > 1000 && !((double)answer.bound <= best && (double)answer.bound >= best * (1 - 1e-4) - 10))
        fail_msg("problem %d: %.9g, not %.9g", (int)number, (double)answer.bound, best);
      assert_true(allowed(p, placed));
      const double value = relaxed(p, placed);
      assert_true(value >= 0 && value <= best * (1 + 1e-4) + 10);
      solved++;
    }
    instance_free(&i);
  }
  assert_true(solved > 30 && none > 0);
}

// --- The bound of the work -------------------------------------------------------------------------------------------

// For unequal devices: the smallest possible maximum load if units may be divided, as the solver computes it.
static void work(void **state) {
  (void)state;
  uint32_t compared = 0;
  for (uint64_t number = 0; number < 20; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 700 + number);
    struct instance i = random_instance(&r, 60, 2 + (uint32_t)number % 4, RICH_KINDS | (number % 2 ? RICH_PINS : 0),
                                        TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    struct tfc_program lp = {0};
    struct tfc_program_answer answer;
    struct tfc_bound bound = {0};
    const int span = tfc_program_variable(&lp, 1, 0, INFINITY, false);
    const double unit = 1000.0 / (double)p->total_fastest;
    double largest = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      double least = INFINITY;
      for (uint32_t d = 0; d < p->device_count; d++) {
        tfc_program_variable(&lp, 0, 0, tfc_problem_allows(p, u, d) ? 1 : 0, false);
        if (tfc_problem_allows(p, u, d)) least = fmin(least, (double)tfc_problem_unit_time(p, u, d));
      }
      largest = fmax(largest, least * unit);
      tfc_program_row(&lp, 1, 1);
      for (uint32_t d = 0; d < p->device_count; d++) tfc_program_term(&lp, 1 + (int)(u * p->device_count + d), 1);
    }
    for (uint32_t d = 0; d < p->device_count; d++) {
      tfc_program_row(&lp, 0, INFINITY);
      tfc_program_term(&lp, span, 1);
      for (uint32_t u = 0; u < p->unit_count; u++)
        if (tfc_problem_allows(p, u, d))
          tfc_program_term(&lp, 1 + (int)(u * p->device_count + d), -(double)tfc_problem_unit_time(p, u, d) * unit);
    }
    assert_ok(tfc_program_solve(&lp, &(struct tfc_program_limits){0}, &answer));
    assert_true(answer.optimal);
    assert_ok(tfc_bound_compute(p, NULL, &bound));
    const double truth = fmax(answer.value, largest), found = (double)bound.each[TFC_BOUND_WORK] * unit;
    if (!(found <= truth * (1 + 1e-6) && found >= 0.97 * truth)) fail_msg("%d: %g of %g", (int)number, found, truth);
    compared++;
    free(answer.x);
    tfc_program_deinit(&lp);
    instance_free(&i);
  }
  assert_int_equal(compared, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exhaustive), cmocka_unit_test(relaxation),
                                     cmocka_unit_test(work)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
