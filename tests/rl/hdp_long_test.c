// Compares HDP's parts with a second, plain implementation: the features of groups, the sequence-to-sequence network
// with attention, its random choices, and the sign of each weight's update.
#include "tests/common/test.h"

#include <stdio.h>

// The library has these names too, so the copies that this file includes get others.
#define tfc_algo_hdp own_algo_hdp
#define tfc_algo_hdp_random own_algo_hdp_random
#include "rl/hdp.c"
#include "tests/placer/instances.h"
#include "tests/rl/plain_network.h"

enum { DEVICES = 4 };

struct rig {
  struct instance instance;
  struct tfc_evaluator *evaluator;
  struct tfc_solution out;
  struct tfc_budget budget;
  struct hdp l;
};

static void rig_make(struct rig *r, uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich) {
  struct tfc_random random;
  *r = (struct rig){0};
  tfc_random_init(&random, seed);
  r->instance = random_instance(&random, nodes, devices, rich, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = r->instance.problem;
  assert_ok(tfc_evaluator_simulated(p, 1, &r->evaluator));
  assert_ok(tfc_solution_init(&r->out, p));
  r->budget = (struct tfc_budget){.evaluations = 40, .seed = seed, .threads = 1};
  r->l.learns = true;
  assert_ok(tfc_rival_init(&r->l.r, p, r->evaluator, &r->budget, BATCH, &r->out));
  assert_ok(prepare(&r->l));
  assert_ok(build(&r->l));
}
static void rig_free(struct rig *r) {
  release(&r->l);
  tfc_solution_deinit(&r->out);
  tfc_evaluator_free(r->evaluator);
  instance_free(&r->instance);
}

// --- The network -----------------------------------------------------------------------------------------------------

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
// Gates in the order input, forget (1 is added), output, new.
static void lstm(const struct plain_network *n, const char *name, const char *bias, const double *x, size_t size,
                 double *h, double *c) {
  double both[256], gates[128];
  memcpy(both, x, size * sizeof *x);
  memcpy(both + size, h, 32 * sizeof *h);
  plain_dense(n, name, bias, both, gates);
  for (int i = 0; i < 32; i++) {
    c[i] = c[i] * sigmoid(gates[32 + i] + 1) + sigmoid(gates[i]) * tanh(gates[96 + i]);
    h[i] = sigmoid(gates[64 + i]) * tanh(c[i]);
  }
}

// Sample i: makes the choices by `noise`, or takes (forced) those of `choice`. Returns the sum of weight * log p.
static double decode_plainly(const struct hdp *l, const struct plain_network *n, uint32_t i, const float *noise,
                             uint32_t *choice, const float *weight) {
  double embedded[32][32], encoded[32][32], keys[32][32], h[32] = {0}, c[32] = {0}, before[DEVICES] = {0}, sum = 0;
  for (uint32_t g = 0; g < 32; g++) {
    double x[FEATURES];
    for (uint32_t k = 0; k < FEATURES; k++) x[k] = (double)l->described[((size_t)g * BATCH + i) * FEATURES + k];
    plain_dense(n, "embed", "embed/bias", x, embedded[g]);
    plain_tanh(embedded[g], 32);
    lstm(n, "encoder", "encoder_bias", embedded[g], 32, h, c);
    memcpy(encoded[g], h, sizeof h);
    plain_dense(n, "key", NULL, encoded[g], keys[g]);
  }
  for (uint32_t g = 0; g < 32; g++) {
    double x[32 + DEVICES], query[32], share[32], total = 0, head[64] = {0}, logit[DEVICES], log_p[DEVICES];
    memcpy(x, embedded[g], sizeof embedded[g]);
    memcpy(x + 32, before, l->devices * sizeof *before);
    lstm(n, "decoder", "decoder_bias", x, 32 + l->devices, h, c);
    plain_dense(n, "query", NULL, h, query);
    for (uint32_t k = 0; k < 32; k++) {
      double key[32];
      for (int m = 0; m < 32; m++) key[m] = tanh(keys[k][m] + query[m]);
      plain_dense(n, "energy", NULL, key, &share[k]);
      total += share[k] = exp(share[k]);
    }
    memcpy(head, h, sizeof h);
    for (uint32_t k = 0; k < 32; k++)
      for (int m = 0; m < 32; m++) head[32 + m] += share[k] / total * encoded[k][m];
    plain_dense(n, "head", "head_bias", head, logit);
    for (uint32_t d = 0; d < l->devices; d++) log_p[d] = logit[d] = 5 * tanh(logit[d]);
    plain_log_softmax(log_p, l->devices);
    if (noise) {
      choice[g] = 0;
      for (uint32_t d = 0; d < l->devices; d++) {
        logit[d] += (double)noise[((size_t)g * BATCH + i) * l->devices + d];
        if (logit[d] > logit[choice[g]]) choice[g] = d;
      }
    }
    for (uint32_t d = 0; d < l->devices; d++) {
      before[d] = d == choice[g];
      if (weight) sum += (double)weight[((size_t)g * BATCH + i) * l->devices + d] * log_p[d];
    }
  }
  return sum;
}

static void group_log_p(const struct hdp *l, const struct plain_network *n, uint32_t u, double *out) {
  double x[TFC_RIVAL_FACTS], hidden[64];
  for (uint32_t k = 0; k < TFC_RIVAL_FACTS; k++) x[k] = (double)l->facts[u * TFC_RIVAL_FACTS + k];
  plain_dense(n, "grouper", "grouper/bias", x, hidden);
  for (int k = 0; k < 64; k++) hidden[k] = fmax(0, hidden[k]);
  plain_dense(n, "group", "group/bias", hidden, out);
  plain_log_softmax(out, 32);
}

struct taught {
  const struct hdp *l;
  const float *unit_weight, *group_weight;
  uint32_t choice[BATCH][32];
};
static double loss(const struct plain_network *n, const void *user) {
  const struct taught *t = user;
  double sum = 0, log_p[32];
  uint32_t choice[32];
  for (uint32_t u = 0; u < t->l->units; u++) {
    group_log_p(t->l, n, u, log_p);
    for (uint32_t g = 0; g < 32; g++) sum -= (double)t->unit_weight[u * 32 + g] * log_p[g];
  }
  for (uint32_t i = 0; i < BATCH; i++) {
    memcpy(choice, t->choice[i], sizeof choice);
    sum -= decode_plainly(t->l, n, i, NULL, choice, t->group_weight);
  }
  return sum;
}

static void draws_and_learns(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    struct rig r;
    struct plain_network n = {0};
    static struct taught t;
    rig_make(&r, seed, 20, 2 + (uint32_t)seed, seed == 2 ? RICH_KINDS : 0);
    struct hdp *l = &r.l;
    plain_read(&l->net, &n);
    assert_ok(draw(l));
    for (uint32_t i = 0; i < BATCH; i++) {
      uint32_t choice[32];
      decode_plainly(l, &n, i, l->noise, choice, NULL);
      for (uint32_t g = 0; g < 32; g++) {
        assert_int_equal(l->choice[i * 32 + g], choice[g]);
        t.choice[i][g] = choice[g];
      }
      for (uint32_t u = 0; u < l->units; u++) { // the group's device, or the next one on which the unit may run
        const uint32_t wanted = choice[l->groups[i * l->units + u]];
        uint32_t d = wanted;
        while (!tfc_problem_allows(l->r.problem, u, d)) d = d + 1 == l->devices ? 0 : d + 1;
        assert_int_equal(l->r.samples[i].device[u], d);
      }
    }
    // Three of the samples were evaluated: the advantage of each is its reward minus the mean of the rewards before it.
    static const double cost[] = {0.25, 1, 0.49};
    memcpy(l->r.cost, cost, sizeof cost);
    l->baseline = -0.6;
    assert_ok(learn(l, 3, seed == 1));
    const double mean = -(0.5 + 1 + 0.7) / 3, base = seed == 1 ? mean : -0.6;
    plain_equal(l->baseline, 0.9 * base + 0.1 * mean, 1e-12, "baseline");
    for (uint32_t i = 0; i < BATCH; i++) {
      const double advantage = i < 3 ? (-sqrt(cost[i]) - base) / 3 : 0;
      for (uint32_t g = 0; g < 32; g++)
        for (uint32_t d = 0; d < l->devices; d++) {
          const size_t at = (g * BATCH + i) * l->devices + d;
          const bool is = i < 3 && d == t.choice[i][g];
          assert_true(l->forced[at] == (is ? 1.0f : 0.0f));
          plain_equal((double)l->group_weight[at], is ? advantage : 0, 1e-6, "weight of a choice");
        }
    }
    for (uint32_t u = 0; u < l->units; u++)
      for (uint32_t g = 0; g < 32; g++) {
        double sum = 0;
        for (uint32_t i = 0; i < 3; i++)
          if (l->groups[i * l->units + u] == g) sum += (-sqrt(cost[i]) - base) / 3;
        plain_equal((double)l->unit_weight[u * 32 + g], sum, 1e-6, "weight of a group");
      }
    t.l = l, t.unit_weight = l->unit_weight, t.group_weight = l->group_weight;
    if (seed == 1) plain_first_update(&n, &l->net, 0.01, loss, &t);
    plain_free(&n);
    rig_free(&r);
  }
}

// The frequencies of groups agree with the grouper's probabilities. The noise has Gumbel's distribution, with Euler's
// constant as its mean and a variance of pi squared over 6.
static void how_often(void **state) {
  (void)state;
  struct rig r;
  struct plain_network n = {0};
  enum { rounds = 250 };
  double log_p[32], often[32] = {0}, sum = 0, square = 0;
  size_t count = 0;
  rig_make(&r, 4, 12, 4, 0);
  plain_read(&r.l.net, &n);
  for (int k = 0; k < rounds; k++) {
    assert_ok(draw(&r.l));
    for (uint32_t i = 0; i < BATCH; i++) often[r.l.groups[i * r.l.units + 5]] += 1.0 / (rounds * BATCH);
    for (size_t i = 0; k < 60 && i < GROUPS * BATCH * 4; i++, count++)
      sum += (double)r.l.noise[i], square += (double)r.l.noise[i] * (double)r.l.noise[i];
  }
  group_log_p(&r.l, &n, 5, log_p);
  for (int g = 0; g < 32; g++) assert_true(fabs(often[g] - exp(log_p[g])) < 0.04);
  const double mean = sum / (double)count;
  assert_true(fabs(mean - 0.5772) < 0.03 && fabs(square / (double)count - mean * mean - 1.645) < 0.1);
  plain_free(&n);
  rig_free(&r);
}

// The features of groups that the placer gets.
static void what_it_sees(void **state) {
  (void)state;
  struct rig r;
  rig_make(&r, 9, 30, 3, RICH_KINDS | RICH_PINS);
  struct hdp *l = &r.l;
  const struct tfc_problem *p = l->r.problem;
  assert_ok(draw(l));
  for (uint32_t i = 0; i < BATCH; i++) {
    const uint32_t *group = l->groups + (size_t)i * l->units;
    for (uint32_t g = 0; g < 32; g++) {
      double x[FEATURES] = {0}, bytes = 0;
      for (uint32_t u = 0; u < l->units; u++) {
        if (group[u] != g) continue;
        static const int facts[] = {1, 2, 4, 5}; // the indices of: sent, needed, path, rank
        x[0] += 32.0 / l->units;
        x[1] += 32 * (double)tfc_rival_fastest(p, u) / (double)p->total_fastest;
        for (int k = 0; k < 4; k++)
          x[2 + k] += 32.0 / l->units * (double)l->facts[u * TFC_RIVAL_FACTS + (uint32_t)facts[k]];
      }
      for (uint32_t net = 0; net < p->net_count; net++) {
        if (group[p->unit[p->graph->producer[p->net_tensor[net]]]] != g) continue;
        for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
          x[6 + group[p->net_unit[k]]] += 1 + (double)p->graph->bytes[p->net_tensor[net]];
          bytes += 1 + (double)p->graph->bytes[p->net_tensor[net]];
        }
      }
      for (uint32_t k = 0; k < FEATURES; k++)
        plain_equal((double)l->described[((size_t)g * BATCH + i) * FEATURES + k],
                    k < 6 ? x[k] : x[k] / fmax(bytes, 1e-9), 1e-4, "what is seen of a group");
    }
  }
  rig_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_sees), cmocka_unit_test(draws_and_learns),
                                     cmocka_unit_test(how_often)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
