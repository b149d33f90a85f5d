// Contiguous splits by dynamic programming. A device gets the difference of two ideals (an ideal is a set of units
// closed under predecessors). The best way to reach an ideal with certain devices used is the best over all smaller
// ideals and all devices for the last piece. If there are too many ideals, only the prefixes of one linear order are
// used; in long orders units are first joined into runs. Nodes of the backward pass that share a unit with their
// forward nodes follow these, so every edge between units is taken as a forward one, from the unit that comes first.
//
// If all links are alike, what a piece sends and receives depends on the piece alone. If not, each piece is assumed to
// use the cheapest links: then the table contains lower bounds, which guide a depth-first search for splits, beginning
// with the last piece.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/algo/dp.h"
#include "placer/algo/dp_ideals.h"
#include "placer/algo/dp_piece.h"
#include "placer/algo/dp_unlike.h"
#include "placer/algo/fold.h"
#include "placer/algo/order.h"

#define LONGEST_ORDER 1200
#define LARGEST_STATES 4096
#define LARGEST_WORK 2e10 // bound on pairs of ideals times states times types
#define COARSE 16         // of prefixes, every so many are ideals of the split that bounds pieces

struct choice { // the best way to reach an ideal in a state, given by its last piece
  uint32_t ideal;
  uint8_t type;
};

static tfc_status find_types(struct tfc_dp *q) {
  const struct tfc_problem *p = q->p;
  for (uint32_t u = 0; u < p->unit_count; u++)
    // a device with pinned units is a type of its own
    if (p->unit_pin[u] != TFC_NONE) q->type_of[p->unit_pin[u]] = TFC_DP_TYPES;
  for (uint32_t d = 0; d < p->device_count; d++) {
    const bool alone = q->type_of[d] == TFC_DP_TYPES;
    uint32_t t = 0;
    while (t < q->type_count &&
           (alone || q->type[t].pinned ||
            !(p->device_class[q->type[t].first] == p->device_class[d] && q->type[t].limit == p->limit[d])))
      t++;
    q->type_of[d] = t;
    if (t < q->type_count) {
      q->type[t].count++;
      continue;
    }
    if (t == TFC_DP_TYPES)
      return tfc_status_make(TFC_FAILED_PRECONDITION, "more than %d kinds of devices, or devices with pins",
                             TFC_DP_TYPES);
    struct tfc_dp_type *x = &q->type[q->type_count++];
    *x = (struct tfc_dp_type){.first = d, .count = 1, .limit = p->limit[d], .pinned = alone};
  }
  q->state_count = 1;
  for (uint32_t t = 0; t < q->type_count; t++) {
    q->stride[t] = q->state_count;
    q->state_count *= q->type[t].count + 1;
    if (q->state_count > LARGEST_STATES)
      return tfc_status_make(TFC_FAILED_PRECONDITION, "too many combinations of devices for dynamic programming");
  }
  return NULL;
}

// Divides the linear order into runs: single units or, if there are too many, so many units each that LONGEST_ORDER
// runs remain.
static void make_runs(struct tfc_dp *q, const uint32_t *order) {
  const struct tfc_problem *p = q->p;
  double total = 0, held = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) total += (double)tfc_problem_unit_time(p, u, q->type[0].first) + 1;
  for (uint32_t i = 0; i < p->unit_count; i++) {
    uint32_t u = order[i];
    if (p->unit_count <= LONGEST_ORDER) {
      q->run[u] = q->run_count++;
      continue;
    }
    held += (double)tfc_problem_unit_time(p, u, q->type[0].first) + 1;
    q->run[u] = q->run_count;
    if (held >= total / (LONGEST_ORDER / 2.0)) held = 0, q->run_count++;
  }
  if (p->unit_count > LONGEST_ORDER) q->run_count++;
  for (uint32_t u = 0; u < p->unit_count; u++) q->first[q->run[u] + 2]++;
  for (uint32_t r = 0; r < q->run_count; r++) q->first[r + 2] += q->first[r + 1];
  for (uint32_t u = 0; u < p->unit_count; u++) q->member[q->first[q->run[u] + 1]++] = u;
}

// Enters the current piece, which leads from the ideal `before` to the ideal `i`, where it is the best way. Returns
// whether no device has room for the piece, or for a larger one.
static bool enter_piece(const struct tfc_dp *q, uint32_t before, uint32_t i, struct choice *from, double *value) {
  bool hopeless = true;
  for (uint32_t t = 0; t < q->type_count; t++) {
    const double cost = tfc_dp_cost(q, t);
    hopeless &= q->memory > q->type[t].limit || q->barred[t];
    if (cost == INFINITY) continue;
    for (uint32_t state = 0; state < q->state_count; state++) {
      // All devices of the type are used.
      if (state / q->stride[t] % (q->type[t].count + 1) == q->type[t].count) continue;
      const double others = value[(size_t)before * q->state_count + state];
      double *after = &value[(size_t)i * q->state_count + state + q->stride[t]];
      const double worst = others > cost ? others : cost;
      if (worst < *after) {
        *after = worst;
        from[(size_t)i * q->state_count + state + q->stride[t]] = (struct choice){before, (uint8_t)t};
      }
    }
  }
  return hopeless;
}

// Whether every device computes longer than `most` for the current piece, and so for all pieces that contain it.
static bool is_longer(const struct tfc_dp *q, double most) {
  bool longer = true;
  for (uint32_t t = 0; t < q->type_count; t++) longer &= q->time[t] > most;
  return longer;
}

// Enters the pieces that end at the prefix i and begin at every `step`th one, if some device takes at most `most` for
// them.
static void enter_prefixes(struct tfc_dp *q, uint32_t i, uint32_t step, double most, struct choice *from,
                           double *value) {
  bool hopeless = false;
  for (uint32_t before = i; before-- > 0 && !hopeless;) {
    tfc_dp_change(q, before, 1);
    hopeless = is_longer(q, most);
    if (!hopeless && before % step == 0) hopeless = enter_piece(q, before, i, from, value);
  }
  tfc_dp_clear(q);
}

// Enters every piece between a smaller ideal and the ideal i. A depth-first walk finds them: it takes one run after
// another away from i, each time one that no run left there takes a tensor from.
static void enter_pieces(struct tfc_dp *q, const struct tfc_dp_ideals *x, uint32_t i, uint32_t *stamp,
                         struct tfc_dp_frame *stack, struct choice *from, double *value) {
  uint32_t depth = 0;
  stack[depth++] = (struct tfc_dp_frame){i, x->first_step.data[i], TFC_NONE};
  stamp[i] = i;
  while (depth) {
    struct tfc_dp_frame *f = &stack[depth - 1];
    if (f->next == x->first_step.data[f->ideal + 1]) {
      if (f->run != TFC_NONE) tfc_dp_change(q, f->run, -1);
      depth--;
      continue;
    }
    const struct tfc_dp_step step = x->steps.data[f->next++];
    if (stamp[step.ideal] == i) continue;
    stamp[step.ideal] = i;
    tfc_dp_change(q, step.run, 1);
    const bool hopeless = enter_piece(q, step.ideal, i, from, value);
    stack[depth++] = (struct tfc_dp_frame){step.ideal, x->first_step.data[step.ideal + hopeless], step.run};
  }
}

static void clear(const struct tfc_dp *q, uint32_t count, double *value) {
  for (size_t k = 0; k < (size_t)count * q->state_count; k++) value[k] = INFINITY;
  value[0] = 0; // nothing placed, no device used
}

// Finds the best of the splits whose pieces begin and end at every COARSEth prefix only, and returns its load: the best
// of all splits has no higher one, so none of its pieces takes longer. INFINITY: there is no such split. The result has
// a margin for rounding.
static double find_most(struct tfc_dp *q, uint32_t count, struct choice *from, double *value) {
  double most = INFINITY;
  clear(q, count, value);
  for (uint32_t i = COARSE; i < count; i += COARSE) enter_prefixes(q, i, COARSE, INFINITY, from, value);
  if ((count - 1) % COARSE) enter_prefixes(q, count - 1, COARSE, INFINITY, from, value);
  for (uint32_t k = 0; k < q->state_count; k++) most = fmin(most, value[(size_t)(count - 1) * q->state_count + k]);
  return most * (1 + 1e-6);
}

static tfc_status plan(struct tfc_dp *q, const struct tfc_dp_ideals *x, bool all, struct choice *from, double *value) {
  tfc_status s = NULL;
  uint32_t *stamp = calloc(x->count, sizeof *stamp);
  struct tfc_dp_frame *stack = calloc((size_t)q->run_count + 2, sizeof *stack);
  if (!stamp || !stack) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  const double most = all || !q->even ? INFINITY : find_most(q, x->count, from, value);
  clear(q, x->count, value);
  for (uint32_t i = 1; i < x->count; i++) {
    if (all)
      enter_pieces(q, x, i, stamp, stack, from, value);
    else
      enter_prefixes(q, i, 1, most, from, value);
    if (tfc_budget_over(q->budget)) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for dynamic programming");
  }
out:
  free(stamp), free(stack);
  return s;
}

static void planner_deinit(struct tfc_dp *q) {
  free(q->run), free(q->first), free(q->member), free(q->inside), free(q->net_in), free(q->type_of);
  free(q->source), free(q->own), free(q->table);
  *q = (struct tfc_dp){0};
}

static tfc_status planner_init(struct tfc_dp *q, const struct tfc_problem *p, const struct tfc_budget *budget,
                               const uint32_t *order) {
  *q = (struct tfc_dp){.p = p, .budget = budget};
  q->type_of = calloc(p->device_count, sizeof *q->type_of);
  q->run = calloc((size_t)p->unit_count + 1, sizeof *q->run);
  q->first = calloc((size_t)p->unit_count + 3, sizeof *q->first);
  q->member = calloc((size_t)p->unit_count + 1, sizeof *q->member);
  q->source = calloc((size_t)p->net_count + 1, sizeof *q->source);
  q->own = calloc((size_t)p->net_count + 1, sizeof *q->own);
  q->inside = calloc((size_t)p->unit_count + 1, sizeof *q->inside);
  q->net_in = calloc((size_t)p->net_count + 1, sizeof *q->net_in);
  tfc_status s = NULL;
  if (!q->run || !q->first || !q->member || !q->source || !q->own || !q->inside || !q->net_in || !q->type_of)
    TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  TFC_TRY(s, find_types(q));
  TFC_TRY(s, tfc_dp_find_wires(q));
  make_runs(q, order);
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      q->source[i] = q->run[u];
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) q->own[i] += q->run[p->net_unit[j]] == q->run[u];
    }
  return NULL;
out:
  planner_deinit(q);
  return s;
}

// Follows the choices back from `ideal` and `state`, and writes the devices of the pieces. `all`: ideals are sets
// (bits); otherwise they are prefixes, given by their length.
static void read_choices(const struct tfc_dp *q, const struct tfc_dp_ideals *x, bool all, const struct choice *from,
                         uint32_t ideal, uint32_t state, tfc_device_id *device) {
  const struct tfc_problem *p = q->p;
  uint32_t used[TFC_DP_TYPES] = {0};
  while (ideal) {
    const struct choice c = from[(size_t)ideal * q->state_count + state];
    uint32_t to = q->type[c.type].first;
    for (uint32_t d = to, k = 0; d < p->device_count; d++) { // the next unused device of the type
      if (q->type_of[d] != c.type) continue;
      if (k++ == used[c.type]) {
        to = d;
        break;
      }
    }
    used[c.type]++;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      const uint32_t r = q->run[u];
      bool in = all ? x->bits.data[(size_t)ideal * x->words + r / 64] >> (r % 64) & 1 : r < ideal;
      bool earlier = all ? x->bits.data[(size_t)c.ideal * x->words + r / 64] >> (r % 64) & 1 : r < c.ideal;
      if (!in || earlier) continue;
      device[u] = (tfc_device_id)to;
    }
    state -= q->stride[c.type];
    ideal = c.ideal;
  }
}

// Finds the best split, over all ideals if they are few enough, else over the prefixes of the order. *out_load: the
// largest load.
static tfc_status split(struct tfc_dp *q, tfc_device_id *device, double *out_load) {
  tfc_status s = NULL;
  struct tfc_dp_ideals x = {0};
  struct choice *from = NULL;
  double *value = NULL;
  bool all = false, done = false;
  if (q->run_count <= 1024) TFC_TRY(s, tfc_dp_find_ideals(q, &x, &all));
  if (!all) TFC_TRY(s, tfc_dp_linear_ideals(q, &x));
  if ((double)x.count * x.count / 2 * q->state_count * q->type_count > LARGEST_WORK)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "too many combinations of devices for dynamic programming");
  from = calloc((size_t)x.count * q->state_count, sizeof *from);
  value = malloc(sizeof *value * x.count * q->state_count);
  if (!from || !value) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  TFC_TRY(s, plan(q, &x, all, from, value));
  // The last ideal contains everything.
  const uint32_t ideal = x.count - 1;
  uint32_t state = 0;
  for (uint32_t k = 1; k < q->state_count; k++)
    if (value[(size_t)ideal * q->state_count + k] < value[(size_t)ideal * q->state_count + state]) state = k;
  if (!isfinite(value[(size_t)ideal * q->state_count + state]))
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "no contiguous split fits");
  // This is the answer; if links differ, it is the answer only if the search below finds none.
  read_choices(q, &x, all, from, ideal, state, device);
  *out_load = value[(size_t)ideal * q->state_count + state];
  if (!q->even) {
    TFC_TRY(s, tfc_dp_split_unlike(q, &x, all, value, device, out_load, &done));
    if (done && *out_load == INFINITY) s = tfc_status_make(TFC_FAILED_PRECONDITION, "no contiguous split fits");
  }
out:
  tfc_array_free(&x.bits);
  tfc_array_free(&x.steps);
  tfc_array_free(&x.first_step);
  free(from), free(value);
  return s;
}

static tfc_status split_along(const struct tfc_problem *p, const struct tfc_budget *budget, const uint32_t *order,
                              tfc_device_id *device, double *out_load) {
  struct tfc_dp q;
  TFC_RETURN_IF_ERROR(planner_init(&q, p, budget, order));
  tfc_status s = split(&q, device, out_load);
  planner_deinit(&q);
  return s;
}

// Tries two orders: the graph's own, and the folded one where groups tie the backward pass to the forward pass
// (order.h).
static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  (void)out_evaluations;
  tfc_status s = NULL, straight = NULL;
  struct tfc_random random;
  double least = INFINITY, load = INFINITY;
  bool folded;
  uint32_t *order = malloc(sizeof *order * ((size_t)p->unit_count + 1));
  tfc_device_id *device = malloc(sizeof *device * ((size_t)p->unit_count + 1));
  if (!order || !device) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  tfc_random_init(&random, 0); // a fixed seed: the result is the same for every seed of the budget
  TFC_TRY(s, tfc_order_units(p, p->unit_count > LONGEST_ORDER, order));
  straight = split_along(p, budget, order, out->device, &least);
  TFC_TRY(s, tfc_order_folded(p, &folded, order));
  if (folded) {
    tfc_status bent = split_along(p, budget, order, device, &load);
    if (!bent && (straight || load < least)) {
      memcpy(out->device, device, sizeof *device * p->unit_count);
      tfc_status_free(straight);
      straight = NULL;
    }
    tfc_status_free(bent);
  }
  if (!straight && p->has_missing_links) tfc_local_repair(p, &random, out->device, NULL);
out:
  free(order), free(device);
  return tfc_status_join(s, straight);
}

const struct tfc_algo tfc_algo_dp = {
    .name = "dp",
    .help = "the best contiguous split by dynamic programming: strong for throughput on chains and few branches",
    .paper = "Tarnawski et al. 2020, Efficient Algorithms for Device Placement of DNN Graph Operators, section 5.1",
    .propose = propose,
};
