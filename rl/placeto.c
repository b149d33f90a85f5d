// Placeto (Addanki et al. 2019, Learning Generalizable Device Placement Algorithms): an episode is a sweep over all
// groups of operations, each visited once (section 2.1); at each, the policy may put it on another device, the
// placement is evaluated, and the reward is how much better it is than before (section 2.1, intermediate rewards). The
// policy's inputs for a group (section 2.2) are its time, the bytes that it sends, its device, whether it is the group
// to place, and whether it was visited; messages along and against the edges; and means over all groups that reach it,
// that it reaches, and that do neither. REINFORCE with a baseline for each step of the sweep (section 2.3) and an
// entropy bonus that falls to 0.
//
// The paper groups operations before placing (section 3.1). Here heavy edges are merged until the budget suffices for
// SWEEPS sweeps, at most MOST_GROUPS groups. A sweep starts from the result of the sweep before it, if that is better
// than the placement on one device from which the first sweep started; otherwise from that one. The network is 16 wide
// with 3 rounds of messages; the learning rate is high, because the budget allows tens of episodes, not thousands.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rl/rival.h"
#include "rl/rival_network.h"

enum { WIDTH = 16, ROUNDS = 3, SWEEPS = 8, FEWEST_GROUPS = 8, MOST_GROUPS = 25, POOLS = 4 };
#define RATE 0.03
#define ENTROPY 0.02
#define DISCOUNT 0.9

struct placeto {
  struct tfc_rival r;
  struct tfc_rival_network net;
  struct tfc_plan *act;
  bool learns;
  uint32_t groups, devices, features;
  uint32_t *group;            // [unit]
  uint32_t *order;            // [groups] the groups in the order in which they are visited: by precedence
  float *incoming, *outgoing; // [groups, groups] shares of bytes, rows sum to 1 or are 0
  float *facts;               // [groups, 2] share of time, of bytes sent
  float *pools;               // [POOLS, groups, groups] row v: the groups that are averaged for group v
  float *allowed;             // [groups, devices] 0, or a large negative number where not allowed
  tfc_device_id *device;      // [groups] now
  bool *visited;              // [groups]
  // The sweep: the network's input at each step. Rows of one group are adjacent.
  float *seen;          // [groups, steps, features]
  float *pooled[POOLS]; // [groups, steps, 1]
  float *mask, *weight; // [steps, devices]
  float *one_seen, *one_pooled[POOLS], *one_mask;
  double *reward, *baseline; // [steps]
};

static int by_first(const void *a, const void *b) {
  const double x = ((const double *)a)[0], y = ((const double *)b)[0];
  return (x > y) - (x < y);
}

static void relate(struct placeto *l) {
  const struct tfc_problem *p = l->r.problem;
  const size_t n = l->groups;
  bool *reach = calloc(n * n + 1, sizeof *reach);
  if (!reach) return;
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++)
      for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
        const size_t a = l->group[u], b = l->group[p->net_unit[k]];
        if (a == b) continue;
        const float bytes = (float)(1 + p->graph->bytes[p->net_tensor[net]]);
        reach[a * n + b] = true;
        l->outgoing[a * n + b] += bytes, l->incoming[b * n + a] += bytes;
      }
  for (int side = 0; side < 2; side++)
    for (size_t a = 0; a < n; a++) {
      float *row = (side ? l->incoming : l->outgoing) + a * n, sum = 0;
      for (size_t b = 0; b < n; b++) sum += row[b];
      for (size_t b = 0; b < n && sum > 0; b++) row[b] /= sum;
    }
  for (size_t k = 0; k < n; k++)
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; reach[a * n + k] && b < n; b++) reach[a * n + b] |= reach[k * n + b];
  for (size_t v = 0; v < n; v++) {
    float count[POOLS] = {0};
    for (int pass = 0; pass < 2; pass++)
      for (size_t g = 0; g < n; g++) {
        const int kind = g == v ? 0 : reach[g * n + v] ? 1 : reach[v * n + g] ? 2 : 3;
        if (pass == 0)
          count[kind]++;
        else
          l->pools[((size_t)kind * n + v) * n + g] = 1 / count[kind];
      }
  }
  free(reach);
}

static tfc_status prepare(struct placeto *l) {
  tfc_status s = NULL;
  const struct tfc_problem *p = l->r.problem;
  uint64_t target = l->r.limit == UINT64_MAX ? MOST_GROUPS : l->r.limit / SWEEPS;
  target = target < FEWEST_GROUPS ? FEWEST_GROUPS : target > MOST_GROUPS ? MOST_GROUPS : target;
  double *first = NULL;
  l->devices = p->device_count, l->features = 4 + l->devices;
  l->group = calloc(p->unit_count, sizeof *l->group);
  if (!l->group) TFC_TRY(s, tfc_status_no_memory(NULL));
  l->groups = tfc_local_coarsen(p, &l->r.random, NULL, (uint32_t)target, l->group);
  if (!l->groups) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (l->groups > 16 * MOST_GROUPS)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "placeto: constraints keep %u groups apart", l->groups);
  const size_t n = l->groups, m = l->devices, f = l->features;
  l->order = calloc(n, sizeof *l->order);
  l->incoming = calloc(n * n, sizeof *l->incoming), l->outgoing = calloc(n * n, sizeof *l->outgoing);
  l->facts = calloc(2 * n, sizeof *l->facts), l->pools = calloc(POOLS * n * n, sizeof *l->pools);
  l->allowed = calloc(n * m, sizeof *l->allowed), l->device = calloc(n, sizeof *l->device);
  l->visited = calloc(n, sizeof *l->visited);
  l->seen = calloc(n * n * f, sizeof *l->seen), l->one_seen = calloc(n * f, sizeof *l->one_seen);
  l->mask = calloc(n * m, sizeof *l->mask), l->weight = calloc(n * m, sizeof *l->weight);
  l->one_mask = calloc(m, sizeof *l->one_mask);
  l->reward = calloc(n, sizeof *l->reward), l->baseline = calloc(n, sizeof *l->baseline);
  first = calloc(2 * n, sizeof *first);
  bool fine = l->order && l->incoming && l->outgoing && l->facts && l->pools && l->allowed && l->device && l->visited &&
              l->seen && l->one_seen && l->mask && l->weight && l->one_mask && l->reward && l->baseline && first;
  for (int k = 0; k < POOLS; k++) {
    l->pooled[k] = calloc(n * n, sizeof *l->pooled[k]), l->one_pooled[k] = calloc(n, sizeof *l->one_pooled[k]);
    fine &= l->pooled[k] && l->one_pooled[k];
  }
  if (!fine) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t g = 0; g < n; g++) first[2 * g] = (double)p->node_count, first[2 * g + 1] = (double)g;
  double sent = 1;
  for (uint32_t k = 0; k < p->net_count; k++) sent += (double)p->graph->bytes[p->net_tensor[k]];
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const size_t g = l->group[u];
    l->facts[2 * g] += (float)((double)tfc_rival_fastest(p, u) / fmax(1, (double)p->total_fastest) * (double)n);
    for (uint32_t k = p->first_net[u]; k < p->first_net[u + 1]; k++)
      l->facts[2 * g + 1] += (float)((double)p->graph->bytes[p->net_tensor[k]] / sent * (double)n);
    for (size_t d = 0; d < m; d++)
      if (!tfc_problem_allows(p, u, (uint32_t)d)) l->allowed[g * m + d] = -1e9f;
    for (uint32_t k = p->first_member[u]; k < p->first_member[u + 1]; k++)
      first[2 * g] = fmin(first[2 * g], (double)p->rank[p->member[k]]);
  }
  qsort(first, n, 2 * sizeof *first, by_first);
  for (size_t i = 0; i < n; i++) l->order[i] = (uint32_t)first[2 * i + 1];
  relate(l);
out:
  free(first);
  return s;
}

struct weights { // weights of the network, which are used for one state, and for all states of a sweep
  struct tfc_output embed, embed_bias, round[ROUNDS], round_bias[ROUNDS], hidden, hidden_bias, head, head_bias;
};

static struct tfc_output apply(struct placeto *l, struct tfc_output x, struct tfc_output w, struct tfc_output bias) {
  return tfc_add2(l->net.b, "AddV2", tfc_add2(l->net.b, "MatMul", x, w), bias);
}

// Builds the graph that computes log p [states, devices] from seen [groups * states, features], pooled [groups, states,
// 1] and mask.
static struct tfc_output forward(struct placeto *l, const struct weights *w, struct tfc_output seen,
                                 const struct tfc_output *pooled, struct tfc_output mask, uint32_t states) {
  struct tfc_rival_network *n = &l->net;
  const int32_t wide[] = {(int32_t)l->groups, (int32_t)states * WIDTH}, tall[] = {(int32_t)(l->groups * states), WIDTH};
  const int32_t cube[] = {(int32_t)l->groups, (int32_t)states, WIDTH};
  struct tfc_output adjacent[] = {tfc_rival_constant(n, l->incoming, l->groups, l->groups),
                                  tfc_rival_constant(n, l->outgoing, l->groups, l->groups)};
  struct tfc_output h = tfc_add1(n->b, "Tanh", apply(l, seen, w->embed, w->embed_bias));
  for (int k = 0; k < ROUNDS; k++) {
    struct tfc_output parts[3] = {h}, flat = tfc_rival_reshape(n, h, wide, 2);
    for (int side = 0; side < 2; side++)
      parts[1 + side] = tfc_rival_reshape(n, tfc_add2(n->b, "MatMul", adjacent[side], flat), tall, 2);
    h = tfc_add1(n->b, "Tanh", apply(l, tfc_rival_concat(n, parts, 3, 1), w->round[k], w->round_bias[k]));
  }
  struct tfc_output pools[POOLS], all = tfc_rival_reshape(n, h, cube, 3);
  for (int k = 0; k < POOLS; k++) pools[k] = tfc_rival_sum(n, tfc_add2(n->b, "Mul", all, pooled[k]), (int32_t[]){0}, 1);
  struct tfc_output joined = tfc_rival_concat(n, pools, POOLS, 1);
  struct tfc_output hidden = tfc_add1(n->b, "Tanh", apply(l, joined, w->hidden, w->hidden_bias));
  struct tfc_output logits = apply(l, hidden, w->head, w->head_bias);
  return tfc_add1(n->b, "LogSoftmax", tfc_add2(n->b, "AddV2", logits, mask));
}

static void placeholders(struct placeto *l, const char *prefix, uint32_t states, struct tfc_output *out) {
  const int64_t groups = l->groups;
  char name[32];
  snprintf(name, sizeof name, "%s_seen", prefix);
  out[0] = tfc_rival_placeholder(&l->net, name, TFC_SHAPE(groups * states, l->features));
  for (int k = 0; k < POOLS; k++) {
    snprintf(name, sizeof name, "%s_pool%d", prefix, k);
    out[1 + k] = tfc_rival_placeholder(&l->net, name, TFC_SHAPE(groups, states, 1));
  }
  snprintf(name, sizeof name, "%s_mask", prefix);
  out[1 + POOLS] = tfc_rival_placeholder(&l->net, name, TFC_SHAPE(states, l->devices));
}

static tfc_status build(struct placeto *l) {
  tfc_status s = NULL;
  struct tfc_rival_network *n = &l->net;
  struct weights w = {0};
  struct tfc_output one[2 + POOLS], all[4 + POOLS];
  const int32_t both[] = {0, 1};
  TFC_TRY(s, tfc_rival_network_begin(n));
  w.embed = tfc_rival_weight(n, "embed", l->features, WIDTH, sqrt(1.0 / l->features));
  w.embed_bias = tfc_rival_weight(n, "embed_bias", 1, WIDTH, 0);
  for (int k = 0; k < ROUNDS; k++) {
    char name[32];
    snprintf(name, sizeof name, "round%d", k);
    w.round[k] = tfc_rival_weight(n, name, 3 * WIDTH, WIDTH, sqrt(1.0 / (3 * WIDTH)));
    snprintf(name, sizeof name, "round%d_bias", k);
    w.round_bias[k] = tfc_rival_weight(n, name, 1, WIDTH, 0);
  }
  w.hidden = tfc_rival_weight(n, "hidden", POOLS * WIDTH, WIDTH, sqrt(1.0 / (POOLS * WIDTH)));
  w.hidden_bias = tfc_rival_weight(n, "hidden_bias", 1, WIDTH, 0);
  w.head = tfc_rival_weight(n, "head", WIDTH, l->devices, sqrt(0.01 / WIDTH));
  w.head_bias = tfc_rival_weight(n, "head_bias", 1, l->devices, 0);
  placeholders(l, "one", 1, one);
  placeholders(l, "all", l->groups, all);
  struct tfc_output weight = all[2 + POOLS] = tfc_rival_placeholder(n, "weight", TFC_SHAPE(l->groups, l->devices));
  struct tfc_output bonus = all[3 + POOLS] = tfc_rival_placeholder(n, "bonus", TFC_SHAPE_SCALAR);
  struct tfc_output one_log_p = forward(l, &w, one[0], one + 1, one[1 + POOLS], 1);
  struct tfc_output log_p = forward(l, &w, all[0], all + 1, all[1 + POOLS], l->groups);
  struct tfc_output gain = tfc_rival_sum(n, tfc_add2(n->b, "Mul", weight, log_p), both, 2);
  struct tfc_output disorder =
      tfc_rival_sum(n, tfc_add2(n->b, "Mul", tfc_add1(n->b, "Exp", log_p), log_p), both, 2); // the negative entropy
  struct tfc_output loss = tfc_add2(n->b, "Sub", tfc_add2(n->b, "Mul", bonus, disorder), gain);
  TFC_TRY(s, tfc_rival_network_finish(n, loss, all, 4 + POOLS, l->r.budget->seed));
  TFC_TRY(s, tfc_rival_network_plan(n, one, 2 + POOLS, &one_log_p, 1, &l->act));
out:
  return s;
}

// Writes the policy's input for placing group v now, as state `step` of `states`.
static void look(const struct placeto *l, uint32_t v, uint32_t step, uint32_t states, float *seen, float *const *pooled,
                 float *mask) {
  const size_t n = l->groups, m = l->devices, f = l->features;
  for (size_t g = 0; g < n; g++) {
    float *row = seen + (g * states + step) * f;
    memset(row, 0, f * sizeof *row);
    row[0] = l->facts[2 * g], row[1] = l->facts[2 * g + 1];
    row[2] = g == v, row[3] = l->visited[g];
    row[4 + l->device[g]] = 1;
    for (int k = 0; k < POOLS; k++) pooled[k][g * states + step] = l->pools[((size_t)k * n + v) * n + g];
  }
  memcpy(mask + step * m, l->allowed + v * m, m * sizeof *mask);
}

static tfc_status choose(struct placeto *l, uint32_t v, uint32_t step, uint32_t *out) {
  const int64_t n = l->groups;
  struct tfc_tensor feeds[2 + POOLS], log_p = {0};
  if (!l->learns) {
    *out = (uint32_t)tfc_random_below(&l->r.random, l->devices);
    return NULL;
  }
  look(l, v, step, l->groups, l->seen, l->pooled, l->mask);
  look(l, v, 0, 1, l->one_seen, l->one_pooled, l->one_mask);
  feeds[0] = tfc_rival_view(l->one_seen, TFC_SHAPE(n, l->features));
  for (int k = 0; k < POOLS; k++) feeds[1 + k] = tfc_rival_view(l->one_pooled[k], TFC_SHAPE(n, 1, 1));
  feeds[1 + POOLS] = tfc_rival_view(l->one_mask, TFC_SHAPE(1, l->devices));
  TFC_RETURN_IF_ERROR(tfc_plan_run(l->act, feeds, &log_p, NULL));
  *out = tfc_rival_draw(&l->r.random, log_p.data, l->devices);
  tfc_tensor_release(&log_p);
  return NULL;
}

static tfc_status learn(struct placeto *l, double bonus) {
  const int64_t n = l->groups;
  struct tfc_tensor feeds[4 + POOLS];
  const float scaled = (float)(bonus / (double)n);
  feeds[0] = tfc_rival_view(l->seen, TFC_SHAPE(n * n, l->features));
  for (int k = 0; k < POOLS; k++) feeds[1 + k] = tfc_rival_view(l->pooled[k], TFC_SHAPE(n, n, 1));
  feeds[1 + POOLS] = tfc_rival_view(l->mask, TFC_SHAPE(n, l->devices));
  feeds[2 + POOLS] = tfc_rival_view(l->weight, TFC_SHAPE(n, l->devices));
  feeds[3 + POOLS] = tfc_rival_view(&scaled, TFC_SHAPE_SCALAR);
  return tfc_rival_network_update(&l->net, feeds, RATE);
}

static tfc_status evaluate(struct placeto *l, double *out_cost) {
  const struct tfc_problem *p = l->r.problem;
  for (uint32_t u = 0; u < p->unit_count; u++)
    l->r.samples[0].device[u] = tfc_rival_allowed(p, u, l->device[l->group[u]]);
  TFC_RETURN_IF_ERROR(tfc_rival_evaluate(&l->r, 1));
  *out_cost = l->r.cost[0];
  return NULL;
}

// Makes one sweep from the current placement, whose cost is *cost. If the budget ends it early, nothing is learned.
static tfc_status sweep(struct placeto *l, uint64_t number, double share, double *cost) {
  const uint32_t n = l->groups;
  double following = 0, spread = 0;
  memset(l->visited, 0, n * sizeof *l->visited);
  memset(l->weight, 0, (size_t)n * l->devices * sizeof *l->weight);
  for (uint32_t step = 0; step < n; step++) {
    const uint32_t v = l->order[step];
    uint32_t to;
    double then = *cost;
    if (!tfc_rival_room(&l->r)) return NULL;
    TFC_RETURN_IF_ERROR(choose(l, v, step, &to));
    l->weight[(size_t)step * l->devices + to] = 1;
    if (to != l->device[v]) { // the cost of staying is known
      l->device[v] = (tfc_device_id)to;
      TFC_RETURN_IF_ERROR(evaluate(l, &then));
    }
    l->visited[v] = true;
    l->reward[step] = log(*cost) - log(then);
    *cost = then;
  }
  if (!l->learns) return NULL;
  for (uint32_t step = n; step-- > 0;) {
    following = l->reward[step] + DISCOUNT * following;
    l->reward[step] = following - l->baseline[step];
    l->baseline[step] += (number ? 0.2 : 1) * (following - l->baseline[step]);
    if (!number) l->reward[step] = following;
    spread += fabs(l->reward[step]) / n;
  }
  for (uint32_t step = 0; step < n; step++) {
    const double advantage = fmax(-3, fmin(3, l->reward[step] / (spread + 1e-9))) / n;
    for (uint32_t d = 0; d < l->devices; d++) l->weight[(size_t)step * l->devices + d] *= (float)advantage;
  }
  return learn(l, ENTROPY * (1 - share));
}

static void release(struct placeto *l) {
  tfc_plan_free(l->act);
  tfc_rival_network_deinit(&l->net);
  tfc_rival_deinit(&l->r);
  free(l->group), free(l->order), free(l->incoming), free(l->outgoing), free(l->facts), free(l->pools);
  free(l->allowed), free(l->device), free(l->visited), free(l->seen), free(l->one_seen), free(l->mask);
  free(l->weight), free(l->one_mask), free(l->reward), free(l->baseline);
  for (int k = 0; k < POOLS; k++) free(l->pooled[k]), free(l->one_pooled[k]);
}

static tfc_status run(const char *name, bool learns, const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                      const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct placeto l = {.learns = learns};
  double start = 0, cost = 0;
  tfc_device_id *first = NULL;
  uint64_t still = 0;
  const double begin = tfc_now_s();
  TFC_TRY(s, tfc_rival_init(&l.r, problem, evaluator, budget, 1, out));
  TFC_TRY(s, prepare(&l));
  if (learns) TFC_TRY(s, build(&l));
  if (!(first = calloc(l.groups, sizeof *first))) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, evaluate(&l, &start)); // all on device 0, as far as that is allowed
  cost = start;
  for (uint64_t number = 0; tfc_rival_room(&l.r) && still < 100; number++) {
    double share = l.r.limit == UINT64_MAX ? 0 : (double)l.r.used / (double)l.r.limit;
    if (budget->deadline > 0) share = fmax(share, (tfc_now_s() - begin) / fmax(1e-9, budget->deadline - begin));
    const uint64_t before = l.r.used;
    if (cost > start) memcpy(l.device, first, l.groups * sizeof *first), cost = start;
    TFC_TRY(s, sweep(&l, number, share, &cost));
    still = l.r.used == before ? still + 1 : 0; // counts sweeps in which the policy moved nothing
  }
  TFC_TRY(s, tfc_rival_end(&l.r, name, out_evaluations));
out:
  free(first);
  release(&l);
  return s;
}

static tfc_status propose(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  return run("placeto", true, problem, evaluator, budget, out, out_evaluations);
}

static tfc_status propose_random(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                                 const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  return run("placeto-random", false, problem, evaluator, budget, out, out_evaluations);
}

const struct tfc_algo tfc_algo_placeto = {
    .name = "placeto",
    .help = "learned rival: moves one group after the other, sweep by sweep, rewarded for what gets better",
    .paper = "Addanki et al. 2019, Placeto, section 2",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_NAME,
    .propose = propose,
};

const struct tfc_algo tfc_algo_placeto_random = {
    .name = "placeto-random",
    .help = "control of placeto: the same sweeps with devices drawn at random",
    .paper = "Addanki et al. 2019, Placeto, section 2",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_NAME,
    .propose = propose_random,
};
