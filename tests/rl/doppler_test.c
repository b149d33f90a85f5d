// Compares DOPPLER's parts with a second, plain implementation: the teacher is a list scheduler, the states of devices
// follow from the schedule so far, the derivatives of drawn selections are those of their probability, the network
// computes the paper's formulas.
#include "tests/common/test.h"

#include <stdio.h>

// The library has this name too, so the copy that this file includes gets another one.
#define tfc_algo_doppler own_algo_doppler
#include "rl/doppler.c"
#include "tests/placer/instances.h"
#include "tests/rl/plain_network.h"

struct rig {
  struct instance instance;
  struct tfc_evaluator *evaluator;
  struct tfc_solution out;
  struct tfc_budget budget;
  struct doppler d;
  uint32_t *in_order;
};

static void rig_make(struct rig *r, uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich) {
  struct tfc_random random;
  *r = (struct rig){0};
  tfc_random_init(&random, seed);
  r->instance = random_instance(&random, nodes, devices, rich, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = r->instance.problem;
  assert_ok(tfc_evaluator_simulated(p, 1, &r->evaluator));
  assert_ok(tfc_solution_init(&r->out, p));
  r->budget = (struct tfc_budget){.evaluations = 10, .seed = seed, .threads = 1};
  assert_ok(tfc_rival_init(&r->d.r, p, r->evaluator, &r->budget, 1, &r->out));
  assert_ok(prepare(&r->d));
  assert_ok(build(&r->d));
  assert_ok(look(&r->d));
  r->in_order = calloc(p->node_count + 1u, sizeof *r->in_order);
  for (uint32_t i = 0; i < p->node_count; i++) r->in_order[i] = p->unit[p->by_rank[i]];
}
static void rig_free(struct rig *r) {
  release(&r->d);
  free(r->in_order);
  tfc_solution_deinit(&r->out);
  tfc_evaluator_free(r->evaluator);
  instance_free(&r->instance);
}

static uint32_t producer(const struct tfc_problem *p, uint32_t net) {
  return p->unit[p->graph->producer[p->net_tensor[net]]];
}
static bool reads(const struct tfc_problem *p, uint32_t unit, uint32_t net) {
  for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
    if (p->net_unit[k] == unit) return true;
  return false;
}
static double path_of(const struct tfc_problem *p, uint32_t unit) {
  double longest = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->unit[n] == unit) longest = fmax(longest, (double)p->remaining[n]);
  return longest;
}
static uint32_t rank_of(const struct tfc_problem *p, uint32_t unit) {
  uint32_t least = TFC_NONE;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->unit[n] == unit && p->rank[n] < least) least = p->rank[n];
  return least;
}

// Finds the order in which the units of an episode were selected. `left` has the running sum of shares at which each
// unit was selected; every share is above 0, so that the sums are in that order.
static void order_of(const struct doppler *d, uint32_t *order) {
  for (uint32_t u = 0; u < d->units; u++) {
    uint32_t at = u;
    for (; at > 0 && d->left[order[at - 1]] > d->left[u]; at--) order[at] = order[at - 1];
    order[at] = u;
  }
}

struct plain_schedule { // the state of an episode
  bool placed[64];
  double end[64], free_at[8], committed[8], there[256][8]; // there: when the tensor arrives on the device; below 0: not
                                                           // sent
};

static double wire_to(const struct doppler *d, uint32_t net, uint32_t e) {
  const struct tfc_problem *p = d->r.problem;
  const struct tfc_pair *pair = tfc_problem_pair(p, d->r.samples[0].device[producer(p, net)], e);
  return pair->linked ? (double)tfc_problem_wire_time(p, p->net_tensor[net], pair) : 1000 * d->average;
}

static double start_on(const struct doppler *d, const struct plain_schedule *s, uint32_t u, uint32_t e,
                       double *out_fetched, double *out_there) {
  const struct tfc_problem *p = d->r.problem;
  double start = s->free_at[e], fetched = 0;
  uint32_t there = 0, needs = 0;
  for (uint32_t net = 0; net < p->net_count; net++) {
    if (!reads(p, u, net)) continue;
    needs++;
    if (!s->placed[producer(p, net)]) continue;
    if (s->there[net][e] >= 0) {
      there++;
      start = fmax(start, s->there[net][e]);
    } else {
      fetched += wire_to(d, net, e);
      start = fmax(start, s->end[producer(p, net)] + wire_to(d, net, e));
    }
  }
  *out_fetched = fetched, *out_there = needs ? (double)there / needs : 0;
  return start;
}

// Repeats the episode in `d` by the plain rules and compares everything that the episode stored.
static void replay(const struct rig *r, bool taught) {
  const struct doppler *d = &r->d;
  const struct tfc_problem *p = d->r.problem;
  struct plain_schedule s = {0};
  uint32_t order[64];
  assert_true(d->units <= 64 && d->devices <= 8 && p->net_count <= 256);
  for (uint32_t net = 0; net < p->net_count; net++)
    for (uint32_t e = 0; e < d->devices; e++) s.there[net][e] = -1;
  order_of(d, order);
  for (uint32_t step = 0; step < d->units; step++) {
    const uint32_t u = order[step];
    double start[8], end[8], fetched[8], there[8], first_start = INFINITY, first_end = INFINITY, least = INFINITY;
    uint32_t ends_first = 0;
    for (uint32_t e = 0; e < d->devices; e++) {
      start[e] = start_on(d, &s, u, e, &fetched[e], &there[e]);
      end[e] = start[e] + (double)tfc_problem_unit_time(p, u, e);
      least = fmin(least, s.committed[e]);
      if (!tfc_problem_allows(p, u, e)) continue;
      first_start = fmin(first_start, start[e]);
      if (end[e] < first_end) first_end = end[e], ends_first = e;
    }
    const float *state = d->state + (size_t)u * d->devices * 5;
    for (uint32_t e = 0; e < d->devices; e++, state += 5) {
      const bool may = tfc_problem_allows(p, u, e);
      plain_equal((double)state[0], may ? log1p((start[e] - first_start) / d->average) / 3 : 0, 1e-4, "start");
      plain_equal((double)state[1], may ? log1p((end[e] - first_end) / d->average) / 3 : 0, 1e-4, "end");
      plain_equal((double)state[2], log1p(fetched[e] / d->average) / 3, 1e-4, "fetched");
      plain_equal((double)state[3], there[e], 1e-4, "there");
      plain_equal((double)state[4], log1p((s.committed[e] - least) / d->average) / 5, 1e-4, "committed");
    }
    if (taught) { // of the units whose producers are placed, the one with the longest path; of equals the first in the
                  // scene's order
      for (uint32_t v = 0; v < d->units; v++) {
        bool ready = !s.placed[v] && v != u;
        for (uint32_t net = 0; net < p->net_count; net++)
          ready = ready && (!reads(p, v, net) || s.placed[producer(p, net)]);
        if (!ready) continue;
        assert_true(path_of(p, v) < path_of(p, u) || (path_of(p, v) <= path_of(p, u) && rank_of(p, v) > rank_of(p, u)));
      }
      assert_int_equal(d->r.samples[0].device[u], ends_first);
    }
    const uint32_t e = d->r.samples[0].device[u];
    assert_true(tfc_problem_allows(p, u, e));
    for (uint32_t net = 0; net < p->net_count; net++)
      if (reads(p, u, net) && s.placed[producer(p, net)] && s.there[net][e] < 0)
        s.there[net][e] = s.end[producer(p, net)] + wire_to(d, net, e);
    s.placed[u] = true;
    s.end[u] = s.free_at[e] = end[e];
    s.committed[e] += (double)tfc_problem_unit_time(p, u, e);
    for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++) s.there[net][e] = s.end[u];
    plain_equal(d->end[u], s.end[u], 1e-9, "end of a unit");
    for (uint32_t k = 0; k < d->devices; k++)
      assert_true(d->weight[(size_t)u * d->devices + k] == (k == e ? 1.0f : 0.0f));
  }
  for (uint32_t e = 0; e < d->devices; e++) plain_equal(d->free_at[e], s.free_at[e], 1e-9, "free at");
}

// Returns the log of the probability of the selections in this order, by the softmax of scores over the units that are
// ready.
static double log_p_of(const struct doppler *d, const uint32_t *order, const double *score) {
  const struct tfc_problem *p = d->r.problem;
  bool placed[64] = {0};
  double sum = 0;
  for (uint32_t step = 0; step < d->units; step++) {
    double total = 0;
    for (uint32_t v = 0; v < d->units; v++) {
      bool ready = !placed[v];
      for (uint32_t net = 0; net < p->net_count; net++)
        ready = ready && (!reads(p, v, net) || placed[producer(p, net)]);
      if (ready) total += exp(score[v]);
    }
    sum += score[order[step]] - log(total);
    placed[order[step]] = true;
  }
  return sum;
}

static void derivatives(const struct rig *r) {
  const struct doppler *d = &r->d;
  double score[64];
  uint32_t order[64];
  order_of(d, order);
  for (uint32_t u = 0; u < d->units; u++) score[u] = (double)((const float *)d->values[0].data)[u];
  for (uint32_t u = 0; u < d->units; u++) {
    const double x = score[u], h = 1e-4;
    score[u] = x + h;
    const double up = log_p_of(d, order, score);
    score[u] = x - h;
    const double down = log_p_of(d, order, score);
    score[u] = x;
    plain_equal((double)d->selection[u], (up - down) / (2 * h), 1e-3, "derivative of a selection");
  }
}

static void episodes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    struct rig r;
    rig_make(&r, seed, 5 + (uint32_t)seed * 3, 1 + (uint32_t)seed % 4,
             seed % 2   ? RICH_KINDS | RICH_PINS | RICH_CALIBRATION
             : seed % 3 ? 0
                        : RICH_MISSING);
    play(&r.d, IMITATE, 0, r.in_order);
    replay(&r, true);
    derivatives(&r);
    for (int again = 0; again < 3; again++) {
      play(&r.d, EXPLORE, 1, r.in_order);
      replay(&r, false);
      derivatives(&r);
    }
    rig_free(&r);
  }
}

// The frequencies of drawn selections and devices agree with their probabilities.
static void draws(void **state) {
  (void)state;
  struct rig r;
  rig_make(&r, 3, 12, 3, 0);
  const struct tfc_problem *p = r.d.r.problem;
  enum { rounds = 4000 };
  double total = 0, first[64] = {0}, expected[64] = {0}, device[8] = {0};
  double score[64];
  uint32_t order[64];
  for (uint32_t u = 0; u < r.d.units; u++) {
    score[u] = (double)((const float *)r.d.values[0].data)[u];
    if (p->first_need[u] == p->first_need[u + 1]) expected[u] = exp(score[u]), total += expected[u];
  }
  float log_p[64];
  for (int i = 0; i < rounds; i++) {
    play(&r.d, EXPLORE, 1, r.in_order);
    order_of(&r.d, order);
    first[order[0]] += 1.0 / rounds;
    device[r.d.r.samples[0].device[order[0]]] += 1.0 / rounds;
  }
  for (uint32_t u = 0; u < r.d.units; u++) assert_true(fabs(first[u] - expected[u] / total) < 0.04);
  // Nothing is placed at first, so a unit has the same features on each device, and all devices are of one kind.
  describe(&r.d, order[0]);
  log_softmax(&r.d, order[0], log_p);
  double sum = 0;
  for (uint32_t e = 0; e < r.d.devices; e++) sum += exp((double)log_p[e]);
  plain_equal(sum, 1, 1e-5, "sum of probabilities");
  for (uint32_t e = 0; e < r.d.devices; e++) assert_true(fabs(device[e] - 1.0 / r.d.devices) < 0.04);
  rig_free(&r);
}

// --- The network -----------------------------------------------------------------------------------------------------

static void forward(const struct doppler *d, const struct plain_network *n, double *score, double *unit) {
  const struct tfc_problem *p = d->r.problem;
  double h[64][16], next[64][16];
  for (uint32_t u = 0; u < d->units; u++) {
    double x[TFC_RIVAL_FACTS];
    for (int k = 0; k < TFC_RIVAL_FACTS; k++) x[k] = (double)d->facts[u * TFC_RIVAL_FACTS + (uint32_t)k];
    plain_dense(n, "embed", "embed/bias", x, h[u]);
    plain_tanh(h[u], 16);
  }
  for (int round = 0; round < 2; round++) { // the means over the units that it reads, and over those that read it
    for (uint32_t u = 0; u < d->units; u++) {
      double x[48] = {0};
      uint32_t in = 0, out = 0;
      memcpy(x, h[u], sizeof h[u]);
      for (uint32_t net = 0; net < p->net_count; net++)
        for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
          in += p->net_unit[k] == u, out += producer(p, net) == u;
      for (uint32_t net = 0; net < p->net_count; net++)
        for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
          for (int i = 0; i < 16; i++) {
            if (p->net_unit[k] == u) x[16 + i] += h[producer(p, net)][i] / in;
            // backwards along the edge: the sum over the readers of a producer is divided by their number
            if (producer(p, net) == u) x[32 + i] += h[p->net_unit[k]][i] / out;
          }
      plain_dense(n, round ? "messages1" : "messages0", round ? "messages1/bias" : "messages0/bias", x, next[u]);
      plain_tanh(next[u], 16);
    }
    memcpy(h, next, sizeof h);
  }
  for (uint32_t u = 0; u < d->units; u++) {
    double x[16 + TFC_RIVAL_FACTS], hidden[16];
    memcpy(x, h[u], sizeof h[u]);
    for (int k = 0; k < TFC_RIVAL_FACTS; k++) x[16 + k] = (double)d->facts[u * TFC_RIVAL_FACTS + (uint32_t)k];
    plain_dense(n, "select", "select/bias", x, hidden);
    plain_tanh(hidden, 16);
    plain_dense(n, "score", "score/bias", hidden, &score[u]);
    plain_dense(n, "unit", "unit/bias", x, unit + u * 16);
  }
}

static void devices_of(const struct doppler *d, const struct plain_network *n, const double *unit, uint32_t u,
                       double *log_p) {
  for (uint32_t e = 0; e < d->devices; e++) {
    double x[5], joint[16];
    for (int k = 0; k < 5; k++) x[k] = (double)d->state[((size_t)u * d->devices + e) * 5 + (size_t)k];
    plain_dense(n, "state_weights", NULL, x, joint);
    for (int k = 0; k < 16; k++) joint[k] = fmax(0, joint[k] + unit[u * 16 + (uint32_t)k]);
    plain_dense(n, "place", NULL, joint, &log_p[e]);
    if (!tfc_problem_allows(d->r.problem, u, e)) log_p[e] = -1e9;
  }
  plain_log_softmax(log_p, d->devices);
}

struct taught {
  const struct doppler *d;
  const float *weight, *selection;
};
static double loss(const struct plain_network *n, const void *user) {
  const struct taught *t = user;
  double score[64], unit[64 * 16], log_p[8], sum = 0;
  forward(t->d, n, score, unit);
  for (uint32_t u = 0; u < t->d->units; u++) {
    sum -= (double)t->selection[u] * score[u];
    devices_of(t->d, n, unit, u, log_p);
    for (uint32_t e = 0; e < t->d->devices; e++) {
      const double w = (double)t->weight[u * t->d->devices + e];
      if (fabs(w) > 0) sum -= w * log_p[e];
    }
  }
  return sum;
}

static void network(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct rig r;
    struct plain_network n = {0};
    double score[64], unit[64 * 16], log_p[8];
    float got[8], *weight, *selection;
    rig_make(&r, seed, 14, 2 + (uint32_t)seed % 3, seed % 2 ? RICH_KINDS : 0);
    plain_read(&r.d.net, &n);
    forward(&r.d, &n, score, unit);
    play(&r.d, EXPLORE, 1, r.in_order);
    for (uint32_t u = 0; u < r.d.units; u++) {
      plain_equal((double)((const float *)r.d.values[0].data)[u], score[u], 1e-4, "score");
      for (uint32_t k = 0; k < 16; k++)
        plain_equal((double)((const float *)r.d.values[1].data)[u * 16 + k], unit[u * 16 + k], 1e-4, "unit");
      devices_of(&r.d, &n, unit, u, log_p);
      log_softmax(&r.d, u, got);
      for (uint32_t e = 0; e < r.d.devices; e++)
        if (tfc_problem_allows(r.d.r.problem, u, e)) plain_equal((double)got[e], log_p[e], 1e-3, "log p");
    }
    // Choices with a positive advantage become likelier, those with a negative one less likely.
    const double advantage = seed % 2 ? 1.5 : -0.5;
    const size_t cells = (size_t)r.d.units * r.d.devices;
    weight = calloc(cells, sizeof *weight), selection = calloc(r.d.units, sizeof *selection);
    for (size_t i = 0; i < cells; i++) weight[i] = r.d.weight[i] * (float)(advantage / r.d.units);
    for (uint32_t u = 0; u < r.d.units; u++) selection[u] = r.d.selection[u] * (float)(advantage / r.d.units);
    assert_ok(learn(&r.d, advantage, 0.01));
    plain_first_update(&n, &r.d.net, 0.01, loss, &(struct taught){&r.d, weight, selection});
    free(weight), free(selection);
    plain_free(&n);
    rig_free(&r);
  }
}

// Of all samples the best is kept, also when worse ones follow; costs are shares of the time of all work in sequence.
static void best_of_samples(void **state) {
  (void)state;
  enum { SAMPLES = 10 };
  struct rig r;
  rig_make(&r, 5, 14, 3, 0);
  struct tfc_rival *rival = &r.d.r;
  const struct tfc_problem *p = rival->problem;
  tfc_device_id best[64] = {0};
  struct tfc_random random;
  tfc_random_init(&random, 9);
  int64_t least = TFC_TIME_MAX, longest = 0;
  uint32_t improved = 0;
  for (uint32_t i = 0; i < SAMPLES; i++) {
    for (uint32_t u = 0; u < p->unit_count; u++)
      rival->samples[0].device[u] = (tfc_device_id)tfc_random_below(&random, p->device_count);
    assert_int_equal(tfc_rival_room(rival), 1);
    assert_ok(tfc_rival_evaluate(rival, 1));
    const int64_t value = rival->results[0].value;
    assert_true(fabs(rival->cost[0] * (double)p->total_fastest / (double)value - 1) < 1e-12);
    if (value < least) {
      least = value, improved++;
      memcpy(best, rival->samples[0].device, p->unit_count * sizeof *best);
    }
    longest = value > longest ? value : longest;
    assert_true(rival->best.value == least && rival->best.excess == 0);
    assert_memory_equal(r.out.device, best, p->unit_count * sizeof *best);
  }
  assert_true(improved > 1 && improved < SAMPLES && longest > least);
  assert_int_equal(tfc_rival_room(rival), 0);
  uint64_t evaluations = 7;
  assert_ok(tfc_rival_end(rival, "doppler", &evaluations));
  assert_int_equal(evaluations, 7 + SAMPLES);
  rig_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(episodes), cmocka_unit_test(draws), cmocka_unit_test(network),
                                     cmocka_unit_test(best_of_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
