// DOPPLER (Yao et al. 2026, Dual-Policy Learning for Device Assignment in Asynchronous Dataflow Graphs): an episode
// goes through all units. SEL selects the next among those whose producers are placed, PLC puts it on a device, by an
// embedding of the unit and by the state of the devices (section 4.2: when it could start there, which tensors must be
// fetched, how much work the device already has). Messages are passed once for an episode, not once for a step (section
// 4.2). Stage 1 imitates the critical-path teacher, which selects the longest remaining path and places it where it
// ends first (section 5.1); no placement is evaluated for that. Stage 2 is REINFORCE on the evaluator, an update for
// each episode; a choice is greedy but for a share of EXPLORATION that falls to 0 (section 5.2), and only choices that
// were drawn are credited: a greedy choice would be the same whatever its outcome. Stage 3 of the paper, measured
// steps, is stage 2 with an evaluator that measures. Here the network is smaller (16 wide, 2 rounds of messages) and
// the rate higher than in the paper, which has thousands of episodes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/rival.h"
#include "rl/rival_network.h"

enum { WIDTH = 16, STATE = 5, ROUNDS = 2, IMITATIONS = 60 };
#define EXPLORATION 0.2
#define IMITATION_RATE 0.01
#define RATE 0.01

enum mode { IMITATE, EXPLORE };

struct doppler {
  struct tfc_rival r;
  struct tfc_rival_network net;
  struct tfc_plan *embed;
  uint32_t units, devices, links;
  float *facts;                // [unit, TFC_RIVAL_FACTS]
  int32_t *from, *to;          // [link] units of a net
  float *in_share, *out_share; // [link] 1 / links of the consumer, of the producer
  double *path;                // [unit] longest remaining path
  uint32_t *first_rank;        // [unit]
  double average;              // ps, mean over the units
  // Outputs of the network.
  struct tfc_tensor
      values[5]; // [0] the selection's scores [unit, 1]; [1] embedded units [unit, WIDTH]; the rest: weights
  // The state of an episode.
  uint32_t *waiting;                       // [unit] producers that are not placed
  uint32_t *ready, ready_count, *position; // [unit] a set without order; position: the index of a unit in it
  bool *placed;
  double *entered, *left;      // [unit] the sum of shares when the unit became ready, and when it was selected
  bool *credited;              // [unit] true: the unit was chosen by a random draw, false: it had the best score
  double *free_at, *committed; // [device]
  double *end;                 // [unit]
  double *arrival;             // [net, device] when the net's tensor arrives on the device; NaN: it was not sent
  float *state;                // [unit, device, STATE]
  float *mask, *weight; // mask [unit, device]: 0, or a large negative number if the unit is not allowed there; weight:
                        // the advantage of the choice
  float *selection;     // [unit, 1] advantage times the derivative of the logarithm of the probability
};

static tfc_status prepare(struct doppler *d) {
  const struct tfc_problem *p = d->r.problem;
  const size_t n = d->units = p->unit_count, m = d->devices = p->device_count;
  for (uint32_t net = 0; net < p->net_count; net++) d->links += p->net_first[net + 1] - p->net_first[net];
  d->facts = calloc(n * TFC_RIVAL_FACTS, sizeof *d->facts);
  d->from = calloc(d->links + 1u, sizeof *d->from), d->to = calloc(d->links + 1u, sizeof *d->to);
  d->in_share = calloc(d->links + 1u, sizeof *d->in_share), d->out_share = calloc(d->links + 1u, sizeof *d->out_share);
  d->path = calloc(n, sizeof *d->path), d->first_rank = calloc(n, sizeof *d->first_rank);
  d->waiting = calloc(n, sizeof *d->waiting), d->ready = calloc(n, sizeof *d->ready);
  d->position = calloc(n, sizeof *d->position), d->placed = calloc(n, sizeof *d->placed);
  d->entered = calloc(n, sizeof *d->entered), d->left = calloc(n, sizeof *d->left);
  d->credited = calloc(n, sizeof *d->credited);
  d->free_at = calloc(m, sizeof *d->free_at), d->committed = calloc(m, sizeof *d->committed);
  d->end = calloc(n, sizeof *d->end);
  d->arrival = calloc((size_t)p->net_count * m + 1, sizeof *d->arrival);
  d->state = calloc(n * m * STATE, sizeof *d->state);
  d->mask = calloc(n * m, sizeof *d->mask), d->weight = calloc(n * m, sizeof *d->weight);
  d->selection = calloc(n, sizeof *d->selection);
  if (!d->facts || !d->from || !d->to || !d->in_share || !d->out_share || !d->path || !d->first_rank || !d->waiting ||
      !d->ready || !d->position || !d->placed || !d->entered || !d->left || !d->credited || !d->free_at ||
      !d->committed || !d->end || !d->arrival || !d->state || !d->mask || !d->weight || !d->selection)
    return tfc_status_no_memory(NULL);
  tfc_rival_facts(p, d->facts);
  uint32_t link = 0;
  for (uint32_t u = 0; u < n; u++) {
    d->first_rank[u] = UINT32_MAX;
    for (uint32_t k = p->first_member[u]; k < p->first_member[u + 1]; k++) {
      d->path[u] = fmax(d->path[u], (double)p->remaining[p->member[k]]);
      if (p->rank[p->member[k]] < d->first_rank[u]) d->first_rank[u] = p->rank[p->member[k]];
    }
    for (uint32_t e = 0; e < m; e++) d->mask[u * m + e] = tfc_problem_allows(p, u, e) ? 0 : -1e9f;
    const uint32_t begin = link;
    for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++)
      for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++, link++)
        d->from[link] = (int32_t)u, d->to[link] = (int32_t)p->net_unit[k];
    for (uint32_t k = begin; k < link; k++) {
      d->out_share[k] = 1.0f / (float)(link - begin);
      d->waiting[d->to[k]]++;
    }
  }
  for (uint32_t k = 0; k < link; k++) d->in_share[k] = 1.0f / (float)d->waiting[d->to[k]];
  d->average = fmax(1, (double)p->total_fastest / (double)n);
  return NULL;
}

static struct tfc_output indices(struct doppler *d, const int32_t *data) {
  return tfc_add_i32_vector(d->net.b, data, d->links);
}

// Returns, for each sink, the sum over its links of share * h[source].
static struct tfc_output messages(struct doppler *d, struct tfc_output h, struct tfc_output source,
                                  struct tfc_output share, struct tfc_output sink) {
  struct tfc_builder *b = d->net.b;
  struct tfc_output taken = tfc_add3(b, "GatherV2", h, source, tfc_add_i32(b, 0));
  return tfc_add3(b, "UnsortedSegmentSum", tfc_add2(b, "Mul", taken, share), sink, tfc_add_i32(b, (int32_t)d->units));
}

static tfc_status build(struct doppler *d) {
  tfc_status s = NULL;
  struct tfc_rival_network *n = &d->net;
  const int64_t units = d->units, devices = d->devices;
  TFC_TRY(s, tfc_rival_network_begin(n));
  struct tfc_output facts = tfc_rival_constant(n, d->facts, units, TFC_RIVAL_FACTS);
  struct tfc_output h = tfc_add1(n->b, "Tanh", tfc_rival_dense(n, "embed", facts, TFC_RIVAL_FACTS, WIDTH));
  if (d->links) {
    struct tfc_output from = indices(d, d->from), to = indices(d, d->to);
    struct tfc_output in_share = tfc_rival_constant(n, d->in_share, d->links, 1);
    struct tfc_output out_share = tfc_rival_constant(n, d->out_share, d->links, 1);
    for (int round = 0; round < ROUNDS; round++) {
      struct tfc_output parts[] = {h, messages(d, h, from, in_share, to), messages(d, h, to, out_share, from)};
      const char *const names[] = {"messages0", "messages1"};
      struct tfc_output joined = tfc_rival_concat(n, parts, 3, 1);
      h = tfc_add1(n->b, "Tanh", tfc_rival_dense(n, names[round], joined, 3 * WIDTH, WIDTH));
    }
  }
  struct tfc_output both[] = {h, facts};
  h = tfc_rival_concat(n, both, 2, 1);
  struct tfc_output hidden = tfc_add1(n->b, "Tanh", tfc_rival_dense(n, "select", h, WIDTH + TFC_RIVAL_FACTS, WIDTH));
  struct tfc_output score = tfc_rival_dense(n, "score", hidden, WIDTH, 1);
  struct tfc_output unit = tfc_rival_dense(n, "unit", h, WIDTH + TFC_RIVAL_FACTS, WIDTH);
  // PLC: relu(unit + state W) v for each device.
  struct tfc_output state = tfc_rival_placeholder(n, "state", TFC_SHAPE(units * devices, STATE));
  struct tfc_output mask = tfc_rival_placeholder(n, "mask", TFC_SHAPE(units, devices));
  struct tfc_output weight = tfc_rival_placeholder(n, "weight", TFC_SHAPE(units, devices));
  struct tfc_output selection = tfc_rival_placeholder(n, "selection", TFC_SHAPE(units, 1));
  struct tfc_output state_weights = tfc_rival_weight(n, "state_weights", STATE, WIDTH, sqrt(1.0 / STATE));
  struct tfc_output place = tfc_rival_weight(n, "place", WIDTH, 1, sqrt(1.0 / WIDTH));
  const int32_t tall[] = {(int32_t)units, (int32_t)devices, WIDTH}, flat[] = {(int32_t)(units * devices), WIDTH};
  const int32_t single[] = {(int32_t)units, 1, WIDTH}, table[] = {(int32_t)units, (int32_t)devices};
  struct tfc_output by_state = tfc_rival_reshape(n, tfc_add2(n->b, "MatMul", state, state_weights), tall, 3);
  struct tfc_output joint = tfc_add2(n->b, "AddV2", by_state, tfc_rival_reshape(n, unit, single, 3));
  struct tfc_output active = tfc_rival_reshape(n, tfc_add1(n->b, "Relu", joint), flat, 2);
  struct tfc_output logits = tfc_rival_reshape(n, tfc_add2(n->b, "MatMul", active, place), table, 2);
  struct tfc_output log_p = tfc_add1(n->b, "LogSoftmax", tfc_add2(n->b, "AddV2", logits, mask));
  struct tfc_output gain = tfc_rival_sum(n, tfc_add2(n->b, "Mul", weight, log_p), (int32_t[]){0, 1}, 2);
  struct tfc_output order = tfc_rival_sum(n, tfc_add2(n->b, "Mul", selection, score), (int32_t[]){0, 1}, 2);
  struct tfc_output loss = tfc_add1(n->b, "Neg", tfc_add2(n->b, "AddV2", gain, order));
  struct tfc_output feeds[] = {state, mask, weight, selection}, fetches[] = {score, unit, state_weights, place};
  TFC_TRY(s, tfc_rival_network_finish(n, loss, feeds, 4, d->r.budget->seed));
  TFC_TRY(s, tfc_rival_network_plan(n, NULL, 0, fetches, 4, &d->embed));
out:
  return s;
}

static void forget(struct doppler *d) {
  for (int i = 0; i < 4; i++) tfc_tensor_release(&d->values[i]);
}

static tfc_status look(struct doppler *d) {
  forget(d);
  return tfc_plan_run(d->embed, NULL, d->values, NULL);
}

// The score is limited, because it becomes an exponent.
static double selection_of(const struct doppler *d, uint32_t u) {
  const double x = (double)((const float *)d->values[0].data)[u];
  return fmax(-30, fmin(30, x));
}

static void become_ready(struct doppler *d, uint32_t u, double share) {
  d->position[u] = d->ready_count;
  d->ready[d->ready_count++] = u;
  d->entered[u] = share;
}

// Fills the STATE numbers that describe unit u on each device. Returns the device where it would end first.
static uint32_t describe(struct doppler *d, uint32_t u) {
  const struct tfc_problem *p = d->r.problem;
  float *state = d->state + (size_t)u * d->devices * STATE;
  double start[64], end[64], fetched[64], there[64], first_start = INFINITY, first_end = INFINITY, least = INFINITY;
  uint32_t best = 0;
  for (uint32_t e = 0; e < d->devices; e++) {
    start[e] = d->free_at[e], fetched[e] = there[e] = 0;
    for (uint32_t k = p->first_need[u]; k < p->first_need[u + 1]; k++) {
      const uint32_t net = p->need[k], tensor = p->net_tensor[net], from = p->unit[p->graph->producer[tensor]];
      if (!d->placed[from]) continue;
      const double known = d->arrival[(size_t)net * d->devices + e];
      double at = known;
      if (isnan(known)) {
        const struct tfc_pair *pair = tfc_problem_pair(p, d->r.samples[0].device[from], e);
        const double wire = pair->linked ? (double)tfc_problem_wire_time(p, tensor, pair) : 1000 * d->average;
        fetched[e] += wire;
        at = d->end[from] + wire;
      } else {
        there[e] += 1.0 / (p->first_need[u + 1] - p->first_need[u]);
      }
      start[e] = fmax(start[e], at);
    }
    const bool may = tfc_problem_allows(p, u, e);
    end[e] = may ? start[e] + (double)tfc_problem_unit_time(p, u, e) : INFINITY;
    if (end[e] < first_end) first_end = end[e], best = e;
    if (may) first_start = fmin(first_start, start[e]);
    least = fmin(least, d->committed[e]);
  }
  for (uint32_t e = 0; e < d->devices; e++, state += STATE) {
    const bool may = isfinite(end[e]);
    state[0] = may ? (float)(log1p(fmax(0, start[e] - first_start) / d->average) / 3) : 0;
    state[1] = may ? (float)(log1p(fmax(0, end[e] - first_end) / d->average) / 3) : 0;
    state[2] = (float)(log1p(fetched[e] / d->average) / 3);
    state[3] = (float)there[e];
    state[4] = (float)(log1p((d->committed[e] - least) / d->average) / 5);
    if (may) d->end[u] = end[e];
  }
  d->end[u] = end[best];
  return best;
}

static void log_softmax(const struct doppler *d, uint32_t u, float *out) {
  const float *unit = (const float *)d->values[1].data + (size_t)u * WIDTH, *w = d->values[2].data,
              *place = d->values[3].data;
  double most = -INFINITY, sum = 0;
  for (uint32_t e = 0; e < d->devices; e++) {
    const float *state = d->state + ((size_t)u * d->devices + e) * STATE;
    double logit = (double)d->mask[(size_t)u * d->devices + e];
    for (int k = 0; k < WIDTH; k++) {
      float x = unit[k];
      for (int i = 0; i < STATE; i++) x += state[i] * w[i * WIDTH + k];
      if (x > 0) logit += (double)(x * place[k]);
    }
    out[e] = (float)logit;
    most = fmax(most, logit);
  }
  for (uint32_t e = 0; e < d->devices; e++) sum += exp((double)out[e] - most);
  for (uint32_t e = 0; e < d->devices; e++) out[e] -= (float)(most + log(sum));
}

static void put(struct doppler *d, uint32_t u, uint32_t e, double share) {
  const struct tfc_problem *p = d->r.problem;
  double start = d->free_at[e];
  for (uint32_t k = p->first_need[u]; k < p->first_need[u + 1]; k++) {
    const uint32_t net = p->need[k], tensor = p->net_tensor[net], from = p->unit[p->graph->producer[tensor]];
    double *at = &d->arrival[(size_t)net * d->devices + e];
    if (!d->placed[from]) continue;
    if (isnan(*at)) {
      const struct tfc_pair *pair = tfc_problem_pair(p, d->r.samples[0].device[from], e);
      *at = d->end[from] + (pair->linked ? (double)tfc_problem_wire_time(p, tensor, pair) : 1000 * d->average);
    }
    start = fmax(start, *at);
  }
  const double time = (double)tfc_problem_unit_time(p, u, e);
  d->end[u] = d->free_at[e] = start + time;
  d->committed[e] += time;
  d->r.samples[0].device[u] = (tfc_device_id)e;
  d->placed[u] = true;
  for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++) {
    d->arrival[(size_t)net * d->devices + e] = d->end[u];
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
      const uint32_t to = p->net_unit[k];
      if (--d->waiting[to] == 0 && !d->placed[to]) become_ready(d, to, share);
    }
  }
}

// Chooses the next unit: by the teacher's rule, the policy's best, or drawn from the policy. If units wait for each
// other in a circle (groups of operations may), the first by rank is chosen.
static uint32_t choose_unit(struct doppler *d, enum mode mode, bool drawn, double total, uint32_t *next_in_order,
                            const uint32_t *in_order, double share) {
  if (!d->ready_count) {
    while (d->placed[in_order[*next_in_order]]) ++*next_in_order;
    become_ready(d, in_order[*next_in_order], share);
    return in_order[*next_in_order];
  }
  if (drawn) {
    double u = tfc_random_unit(&d->r.random) * total;
    for (uint32_t i = 0; i < d->ready_count; i++)
      if ((u -= exp(selection_of(d, d->ready[i]))) < 0) return d->ready[i];
    return d->ready[d->ready_count - 1];
  }
  uint32_t best = d->ready[0];
  for (uint32_t i = 1; i < d->ready_count; i++) {
    const uint32_t v = d->ready[i];
    const double a = mode == IMITATE ? d->path[v] : selection_of(d, v);
    const double b = mode == IMITATE ? d->path[best] : selection_of(d, best);
    if (a > b || (a == b && d->first_rank[v] < d->first_rank[best])) best = v;
  }
  return best;
}

// Plays one episode. Fills the sample, with the factor of each choice in the loss for an advantage of 1: the real
// advantage is known only later, when the step time is, and the factors are then multiplied by it.
static void play(struct doppler *d, enum mode mode, double exploration, const uint32_t *in_order) {
  const struct tfc_problem *p = d->r.problem;
  float log_p[64];
  double share = 0;
  uint32_t next_in_order = 0;
  memset(d->waiting, 0, d->units * sizeof *d->waiting);
  memset(d->placed, 0, d->units * sizeof *d->placed);
  memset(d->weight, 0, (size_t)d->units * d->devices * sizeof *d->weight);
  memset(d->credited, 0, d->units * sizeof *d->credited);
  memset(d->free_at, 0, d->devices * sizeof *d->free_at);
  memset(d->committed, 0, d->devices * sizeof *d->committed);
  for (size_t i = 0; i < (size_t)p->net_count * d->devices; i++) d->arrival[i] = NAN;
  d->ready_count = 0;
  for (uint32_t k = 0; k < d->links; k++) d->waiting[d->to[k]]++;
  for (uint32_t u = 0; u < d->units; u++)
    if (!d->waiting[u]) become_ready(d, u, 0);
  for (uint32_t step = 0; step < d->units; step++) {
    const bool drawn = mode == EXPLORE && tfc_random_unit(&d->r.random) < exploration;
    double total = 0;
    if (drawn || mode == IMITATE)
      for (uint32_t i = 0; i < d->ready_count; i++) total += exp(selection_of(d, d->ready[i]));
    const uint32_t u = choose_unit(d, mode, drawn, total, &next_in_order, in_order, share);
    if (total > 0) share += 1 / total, d->credited[u] = true;
    d->left[u] = share;
    const uint32_t last = d->ready[--d->ready_count];
    d->ready[d->position[u]] = last, d->position[last] = d->position[u];
    uint32_t e = describe(d, u);
    bool credited = mode == IMITATE;
    if (mode == EXPLORE) {
      log_softmax(d, u, log_p);
      credited = tfc_random_unit(&d->r.random) < exploration;
      if (credited) {
        e = tfc_rival_draw(&d->r.random, log_p, d->devices);
      } else {
        e = 0;
        for (uint32_t k = 1; k < d->devices; k++)
          if (log_p[k] > log_p[e]) e = k;
      }
      e = tfc_rival_allowed(p, u, e);
    }
    if (credited) d->weight[(size_t)u * d->devices + e] = 1;
    put(d, u, e, share);
  }
  // The derivative of the sum of log p, over the credited selections, by the score of the unit.
  for (uint32_t u = 0; u < d->units; u++)
    d->selection[u] = (float)((d->credited[u] ? 1 : 0) - exp(selection_of(d, u)) * (d->left[u] - d->entered[u]));
}

static tfc_status learn(struct doppler *d, double advantage, double rate) {
  const float scale = (float)(advantage / d->units);
  const size_t n = d->units, m = d->devices;
  for (size_t i = 0; i < n * m; i++) d->weight[i] *= scale;
  for (size_t i = 0; i < n; i++) d->selection[i] *= scale;
  const struct tfc_tensor feeds[] = {
      tfc_rival_view(d->state, TFC_SHAPE((int64_t)(n * m), STATE)),
      tfc_rival_view(d->mask, TFC_SHAPE((int64_t)n, (int64_t)m)),
      tfc_rival_view(d->weight, TFC_SHAPE((int64_t)n, (int64_t)m)),
      tfc_rival_view(d->selection, TFC_SHAPE((int64_t)n, 1)),
  };
  return tfc_rival_network_update(&d->net, feeds, rate);
}

static void release(struct doppler *d) {
  forget(d);
  tfc_plan_free(d->embed);
  tfc_rival_network_deinit(&d->net);
  tfc_rival_deinit(&d->r);
  free(d->facts), free(d->from), free(d->to), free(d->in_share), free(d->out_share), free(d->path);
  free(d->first_rank), free(d->waiting), free(d->ready), free(d->position), free(d->placed), free(d->entered);
  free(d->left), free(d->credited), free(d->free_at), free(d->committed), free(d->end), free(d->arrival);
  free(d->state), free(d->mask), free(d->weight), free(d->selection);
}

static tfc_status propose(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct doppler d = {0};
  uint32_t *in_order = calloc(problem->node_count + 1u, sizeof *in_order);
  double baseline = 0, spread = 0;
  const double begin = tfc_now_s();
  if (!in_order) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (problem->device_count > 64)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "doppler: %u devices; it takes up to 64", problem->device_count);
  TFC_TRY(s, tfc_rival_init(&d.r, problem, evaluator, budget, 1, out));
  TFC_TRY(s, prepare(&d));
  TFC_TRY(s, build(&d));
  for (uint32_t i = 0; i < problem->node_count; i++) in_order[i] = problem->unit[problem->by_rank[i]];
  for (int i = 0; i < IMITATIONS && !tfc_budget_over(budget); i++) {
    if (budget->deadline > 0 && tfc_now_s() - begin > 0.3 * (budget->deadline - begin)) break;
    TFC_TRY(s, look(&d));
    play(&d, IMITATE, 0, in_order);
    TFC_TRY(s, learn(&d, 1, IMITATION_RATE));
  }
  while (tfc_rival_room(&d.r)) {
    double share = d.r.limit == UINT64_MAX ? 0 : (double)d.r.used / (double)d.r.limit;
    if (budget->deadline > 0) share = fmax(share, (tfc_now_s() - begin) / fmax(1e-9, budget->deadline - begin));
    const bool greedy = d.r.used == 0 || d.r.used + 1 == d.r.limit;
    TFC_TRY(s, look(&d));
    play(&d, EXPLORE, greedy ? 0 : EXPLORATION * (1 - share), in_order);
    TFC_TRY(s, tfc_rival_evaluate(&d.r, 1));
    const double reward = -log(d.r.cost[0]);
    if (greedy) continue;
    if (spread > 0) TFC_TRY(s, learn(&d, fmax(-3, fmin(3, (reward - baseline) / spread)), RATE));
    const double away = fabs(reward - baseline);
    baseline = baseline == 0 ? reward : 0.9 * baseline + 0.1 * reward;
    spread = spread > 0 ? 0.9 * spread + 0.1 * away : 0.05;
  }
  TFC_TRY(s, tfc_rival_end(&d.r, "doppler", out_evaluations));
out:
  free(in_order);
  release(&d);
  return s;
}

const struct tfc_algo tfc_algo_doppler = {
    .name = "doppler",
    .help = "learned rival: one policy selects units, another places them; imitates a list scheduler first",
    .paper = "Yao et al. 2026, DOPPLER: Dual-Policy Learning for Device Assignment, sections 4 and 5",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_NAME,
    .propose = propose,
};
