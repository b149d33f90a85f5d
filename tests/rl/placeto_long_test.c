// Compares Placeto's parts with a second, plain implementation: the features of groups, its network, the rewards of a
// sweep, and the sign of each weight's update.
#include "tests/common/test.h"

#include <stdio.h>

// The library has these names too, so the copies that this file includes get others.
#define tfc_algo_placeto own_algo_placeto
#define tfc_algo_placeto_random own_algo_placeto_random
#include "placer/model/machine_yaml.h"
#include "rl/placeto.c"
#include "tests/placer/instances.h"
#include "tests/rl/plain_network.h"

enum { MOST = 64 }; // the most groups

struct rig {
  struct instance instance;
  struct tfc_evaluator *evaluator;
  struct tfc_simulator *sim;
  struct tfc_solution out;
  struct tfc_budget budget;
  struct placeto l;
};

static void rig_make(struct rig *r, uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich) {
  struct tfc_random random;
  *r = (struct rig){0};
  tfc_random_init(&random, seed);
  r->instance = random_instance(&random, nodes, devices, rich, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = r->instance.problem;
  assert_ok(tfc_evaluator_simulated(p, 1, &r->evaluator));
  assert_ok(tfc_simulator_create(p, &r->sim));
  assert_ok(tfc_solution_init(&r->out, p));
  r->budget = (struct tfc_budget){.evaluations = 80, .seed = seed, .threads = 1};
  r->l.learns = true;
  assert_ok(tfc_rival_init(&r->l.r, p, r->evaluator, &r->budget, 1, &r->out));
  assert_ok(prepare(&r->l));
  assert_ok(build(&r->l));
  assert_true(r->l.groups <= MOST);
}
static void rig_free(struct rig *r) {
  release(&r->l);
  tfc_solution_deinit(&r->out);
  tfc_simulator_free(r->sim);
  tfc_evaluator_free(r->evaluator);
  instance_free(&r->instance);
}

struct plain { // the state of all groups
  double time[MOST], sent[MOST], out[MOST][MOST], in[MOST][MOST];
  bool reaches[MOST][MOST], allowed[MOST][8];
};

static void describe(const struct placeto *l, struct plain *out) {
  const struct tfc_problem *p = l->r.problem;
  const struct tfc_cost_graph *g = p->graph;
  double all_sent = 1;
  *out = (struct plain){0};
  for (uint32_t a = 0; a < l->groups; a++)
    for (uint32_t d = 0; d < l->devices; d++) out->allowed[a][d] = true;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    double fastest = INFINITY;
    for (uint32_t d = 0; d < l->devices; d++) {
      if (tfc_problem_allows(p, u, d))
        fastest = fmin(fastest, (double)tfc_problem_unit_time(p, u, d));
      else
        out->allowed[l->group[u]][d] = false;
    }
    out->time[l->group[u]] += fastest / (double)p->total_fastest * l->groups;
  }
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t tensor = p->net_tensor[net], a = l->group[p->unit[g->producer[tensor]]];
    out->sent[a] += (double)g->bytes[tensor] * l->groups;
    all_sent += (double)g->bytes[tensor];
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
      const uint32_t b = l->group[p->net_unit[k]];
      if (a == b) continue;
      out->out[a][b] += 1 + (double)g->bytes[tensor], out->in[b][a] += 1 + (double)g->bytes[tensor];
      out->reaches[a][b] = true;
    }
  }
  for (uint32_t a = 0; a < l->groups; a++) {
    double sent = 0, got = 0;
    out->sent[a] /= all_sent;
    for (uint32_t b = 0; b < l->groups; b++) sent += out->out[a][b], got += out->in[a][b];
    for (uint32_t b = 0; b < l->groups; b++) out->out[a][b] /= fmax(sent, 1e-9), out->in[a][b] /= fmax(got, 1e-9);
  }
  for (uint32_t round = 0; round < l->groups; round++)
    for (uint32_t a = 0; a < l->groups; a++)
      for (uint32_t b = 0; b < l->groups; b++)
        for (uint32_t c = 0; c < l->groups; c++)
          if (out->reaches[a][b] && out->reaches[b][c]) out->reaches[a][c] = true;
}

static void what_it_sees(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct rig r;
    static struct plain x;
    rig_make(&r, seed, 6 + (uint32_t)seed * 6, 2 + (uint32_t)seed % 3, seed % 2 ? RICH_KINDS | RICH_PINS : 0);
    const struct placeto *l = &r.l;
    const struct tfc_problem *p = l->r.problem;
    const uint32_t n = l->groups;
    describe(l, &x);
    uint32_t first[MOST];
    bool seen[MOST] = {0};
    for (uint32_t a = 0; a < n; a++) {
      plain_equal((double)l->facts[2 * a], x.time[a], 1e-4, "share of time");
      plain_equal((double)l->facts[2 * a + 1], x.sent[a], 1e-4, "share of bytes");
      for (uint32_t b = 0; b < n; b++) {
        plain_equal((double)l->outgoing[a * n + b], x.out[a][b], 1e-4, "outgoing");
        plain_equal((double)l->incoming[a * n + b], x.in[a][b], 1e-4, "incoming");
        // Each other group is in one of three pools: it reaches a, a reaches it (and not the other way), or neither.
        double count[4] = {0};
        int kind = 0;
        for (uint32_t c = 0; c < n; c++) {
          const int k = c == a ? 0 : x.reaches[c][a] ? 1 : x.reaches[a][c] ? 2 : 3;
          count[k]++;
          if (c == b) kind = k;
        }
        for (int k = 0; k < 4; k++)
          plain_equal((double)l->pools[((size_t)k * n + a) * n + b], k == kind ? 1 / count[k] : 0, 1e-5, "pool");
      }
      for (uint32_t d = 0; d < l->devices; d++)
        assert_true(x.allowed[a][d] ? l->allowed[a * l->devices + d] >= 0 : l->allowed[a * l->devices + d] < -1e8f);
      first[a] = TFC_NONE;
      for (uint32_t i = 0; i < p->node_count; i++)
        if (l->group[p->unit[i]] == a && p->rank[i] < first[a]) first[a] = p->rank[i];
    }
    for (uint32_t i = 0; i < n; i++) {
      assert_true(l->order[i] < n && !seen[l->order[i]]);
      seen[l->order[i]] = true;
      assert_true(!i || first[l->order[i - 1]] < first[l->order[i]]);
    }
    rig_free(&r);
  }
}

// The number of groups is an eighth of the evaluations, but 8 to 25. (A chain, so that it can be divided anywhere.)
static void number_of_groups(void **state) {
  (void)state;
  static const uint64_t evaluations[] = {8, 80, 160, 2000}, most[] = {8, 10, 20, 25};
  struct tfc_cost_builder *b = NULL;
  struct instance i = {0};
  uint32_t kind, id, before = 0;
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (int k = 0; k < 120; k++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", k);
    assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &id));
    assert_ok(tfc_cost_builder_time(b, id, kind, 10));
    if (k) assert_ok(tfc_cost_builder_edge(b, before, 0, id, 1000, TFC_LIVE_ABSENT));
    before = id;
  }
  assert_ok(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  static const char machine[] =
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 2}\n"
      "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 1GB/s}\n";
  assert_ok(tfc_machine_parse(tfc_str_from(machine), "m", &i.machine));
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  for (int k = 0; k < 4; k++) {
    struct placeto l = {.learns = true};
    struct tfc_solution out = {0};
    const struct tfc_budget budget = {.evaluations = evaluations[k], .seed = 1, .threads = 1};
    assert_ok(tfc_solution_init(&out, i.problem));
    assert_ok(tfc_rival_init(&l.r, i.problem, NULL, &budget, 1, &out));
    assert_ok(prepare(&l));
    assert_in_range(l.groups, most[k] - most[k] / 8, most[k] + most[k] / 8);
    release(&l);
    tfc_solution_deinit(&out);
  }
  instance_free(&i);
}

// --- The network -----------------------------------------------------------------------------------------------------

// Computes log p [device] of the devices on which group v may be placed.
static void forward_plainly(const struct placeto *l, const struct plain *x, const struct plain_network *w,
                            const uint32_t *device, const bool *visited, uint32_t v, double *log_p) {
  double h[MOST][16], next[MOST][16], joined[64] = {0}, hidden[16], pool_size[4] = {0};
  const uint32_t n = l->groups;
  for (uint32_t g = 0; g < n; g++) {
    double seen[4 + 8] = {x->time[g], x->sent[g], g == v, visited[g]};
    seen[4 + device[g]] = 1;
    plain_dense(w, "embed", "embed_bias", seen, h[g]);
    plain_tanh(h[g], 16);
  }
  for (int round = 0; round < 3; round++) {
    char name[16], bias[16];
    snprintf(name, sizeof name, "round%d", round), snprintf(bias, sizeof bias, "round%d_bias", round);
    for (uint32_t g = 0; g < n; g++) {
      double parts[48] = {0};
      memcpy(parts, h[g], sizeof h[g]);
      for (uint32_t k = 0; k < n; k++)
        for (int i = 0; i < 16; i++) parts[16 + i] += x->in[g][k] * h[k][i], parts[32 + i] += x->out[g][k] * h[k][i];
      plain_dense(w, name, bias, parts, next[g]);
      plain_tanh(next[g], 16);
    }
    memcpy(h, next, sizeof h);
  }
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t g = 0; g < n; g++) {
      const int k = g == v ? 0 : x->reaches[g][v] ? 1 : x->reaches[v][g] ? 2 : 3;
      if (!pass)
        pool_size[k]++;
      else
        for (int i = 0; i < 16; i++) joined[k * 16 + i] += h[g][i] / pool_size[k];
    }
  plain_dense(w, "hidden", "hidden_bias", joined, hidden);
  plain_tanh(hidden, 16);
  plain_dense(w, "head", "head_bias", hidden, log_p);
  for (uint32_t d = 0; d < l->devices; d++)
    if (!x->allowed[v][d]) log_p[d] -= 1e9;
  plain_log_softmax(log_p, l->devices);
}

struct taught {
  const struct placeto *l;
  const struct plain *x;
  const uint32_t *before, *chosen; // [group] devices at first; the sweep's choices
  const double *advantage;         // [step]
  double bonus;
};
static double loss(const struct plain_network *w, const void *user) {
  const struct taught *t = user;
  uint32_t device[MOST];
  bool visited[MOST] = {0};
  double sum = 0;
  memcpy(device, t->before, sizeof device);
  for (uint32_t step = 0; step < t->l->groups; step++) {
    const uint32_t v = t->l->order[step];
    double log_p[8], entropy = 0;
    forward_plainly(t->l, t->x, w, device, visited, v, log_p);
    for (uint32_t d = 0; d < t->l->devices; d++)
      if (log_p[d] > -1e8) entropy -= exp(log_p[d]) * log_p[d];
    sum -= t->advantage[step] * log_p[t->chosen[v]] + t->bonus * entropy;
    device[v] = t->chosen[v], visited[v] = true;
  }
  return sum;
}

static double cost_of(struct rig *r, const uint32_t *device) {
  const struct tfc_problem *p = r->l.r.problem;
  tfc_device_id *placed = calloc(p->unit_count, sizeof *placed);
  struct tfc_verdict v = {0};
  for (uint32_t u = 0; u < p->unit_count; u++) placed[u] = tfc_rival_allowed(p, u, device[r->l.group[u]]);
  tfc_simulate(r->sim, placed, NULL, TFC_TIME_MAX, &v);
  free(placed);
  return (double)v.value / (double)p->total_fastest;
}

// Two sweeps: the reward of each step, by the simulator. The first sweep has no baseline, the second has the first's
// rewards.
static void sweeps(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct rig r;
    static struct plain x;
    double cost, baseline[MOST] = {0};
    uint32_t before[MOST] = {0}, chosen[MOST], moved = 0;
    rig_make(&r, seed, 40, 2 + (uint32_t)seed % 3, seed % 2 ? RICH_KINDS : 0);
    r.l.r.limit = 1000;
    const uint32_t n = r.l.groups;
    describe(&r.l, &x);
    assert_ok(evaluate(&r.l, &cost));
    plain_equal(cost, cost_of(&r, before), 1e-9, "cost");
    for (uint32_t number = 0; number < 2; number++) {
      struct plain_network w = {0};
      double reward[MOST], following = 0, advantage[MOST], size = 0, now = cost;
      uint32_t device[MOST] = {0};
      for (uint32_t g = 0; g < n; g++) before[g] = device[g] = r.l.device[g];
      plain_read(&r.l.net, &w);
      const double share = 0.25;
      const uint64_t used = r.l.r.used;
      assert_ok(sweep(&r.l, number, share, &cost));
      uint32_t moves = 0;
      for (uint32_t g = 0; g < n; g++) chosen[g] = r.l.device[g], moves += chosen[g] != before[g];
      assert_int_equal(r.l.r.used - used, moves); // a step that keeps the device needs no evaluation
      moved += moves;
      for (uint32_t step = 0; step < n; step++) {
        const uint32_t v = r.l.order[step];
        assert_true(r.l.visited[v] && x.allowed[v][chosen[v]]);
        device[v] = chosen[v];
        const double then = cost_of(&r, device);
        reward[step] = log(now / then), now = then;
      }
      plain_equal(cost, now, 1e-9, "cost after a sweep");
      for (uint32_t step = n; step-- > 0;) {
        following = reward[step] + 0.9 * following;
        advantage[step] = following - baseline[step];
        baseline[step] += (number ? 0.2 : 1) * (following - baseline[step]);
        plain_equal(r.l.baseline[step], baseline[step], 1e-7, "baseline");
        size += fabs(advantage[step]) / n;
      }
      for (uint32_t step = 0; step < n; step++) {
        advantage[step] = fmax(-3, fmin(3, advantage[step] / (size + 1e-9))) / n;
        for (uint32_t d = 0; d < r.l.devices; d++)
          plain_equal((double)r.l.weight[step * r.l.devices + d], d == chosen[r.l.order[step]] ? advantage[step] : 0,
                      1e-5, "advantage");
      }
      if (!number)
        plain_first_update(&w, &r.l.net, 0.03, loss,
                           &(struct taught){&r.l, &x, before, chosen, advantage, 0.02 * (1 - share) / n});
      plain_free(&w);
    }
    assert_true(moved > 0);
    rig_free(&r);
  }
}

// The frequencies of choices agree with the network's probabilities.
static void choices(void **state) {
  (void)state;
  struct rig r;
  static struct plain x;
  struct plain_network w = {0};
  double log_p[8], often[8] = {0};
  uint32_t device[MOST] = {0};
  bool visited[MOST] = {0};
  rig_make(&r, 7, 40, 3, 0);
  describe(&r.l, &x);
  plain_read(&r.l.net, &w);
  const uint32_t v = r.l.order[3];
  for (uint32_t i = 0; i < 3; i++) {
    device[r.l.order[i]] = i;
    r.l.device[r.l.order[i]] = (tfc_device_id)i, r.l.visited[r.l.order[i]] = visited[r.l.order[i]] = true;
  }
  forward_plainly(&r.l, &x, &w, device, visited, v, log_p);
  for (int i = 0; i < 3000; i++) {
    uint32_t to;
    assert_ok(choose(&r.l, v, 3, &to));
    often[to] += 1.0 / 3000;
  }
  for (uint32_t d = 0; d < 3; d++) assert_true(fabs(often[d] - exp(log_p[d])) < 0.04);
  plain_free(&w);
  rig_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_sees), cmocka_unit_test(number_of_groups),
                                     cmocka_unit_test(sweeps), cmocka_unit_test(choices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
