// Splits for links that differ: a depth-first search from the last piece to the first, in which the table of lower
// bounds rules out what cannot be better than the best split so far.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/algo/dp_piece.h"
#include "placer/algo/dp_unlike.h"
#include "placer/simulate/loads.h"

#define LARGEST_SEARCH 3000000 // bound on the pieces that are tried

struct candidate { // a last piece: the ideal before it, and the device that gets it
  double bound;
  uint32_t ideal, device;
};
struct splitter {
  struct tfc_dp *q;
  const struct tfc_dp_ideals *x;
  bool all; // ideals are sets (bits); otherwise they are prefixes, given by their length
  // [ideal * state_count + state] the smallest load of a split of the ideal over at most the devices of the state.
  const double *rest;
  bool *used; // [device]
  // [(depth + 1) * device_count + device] load of the placed pieces, and a lower bound for the rest.
  double *load;
  tfc_device_id *device, *best_device; // [unit]
  struct tfc_loads loads;              // loads of complete splits
  double best;
  uint32_t *seen, *net_seen; // [ideal], [net] number of the last visit
  uint32_t stamp, net_stamp;
  uint64_t work;
};

static bool is_in(const struct splitter *f, uint32_t ideal, uint32_t run) {
  return f->all ? f->x->bits.data[(size_t)ideal * f->x->words + run / 64] >> (run % 64) & 1 : run < ideal;
}

// Whether a device that is interchangeable with d and comes before it is unused; then d need not be tried.
static bool has_twin(const struct splitter *f, uint32_t d) {
  for (uint32_t e = 0; e < d; e++)
    if (!f->used[e] && f->q->p->twin[e] == f->q->p->twin[d] && f->q->type_of[e] == f->q->type_of[d]) return true;
  return false;
}

static int compare_candidates(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
  if (x->ideal != y->ideal) return x->ideal < y->ideal ? -1 : 1;
  return (x->device > y->device) - (x->device < y->device);
}

// Places the piece between two ideals on `device` and adds its cost to `load`: to the device's load, and to the loads
// of the devices of later pieces that it sends to. Returns the largest load; INFINITY: a link is missing.
static double put_piece(struct splitter *f, uint32_t from, uint32_t to, uint32_t device, double *load) {
  struct tfc_dp *q = f->q;
  const struct tfc_problem *p = q->p;
  double largest = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (!is_in(f, to, q->run[u]) || is_in(f, from, q->run[u])) continue;
    f->device[u] = (tfc_device_id)device;
    load[device] += (double)tfc_problem_unit_time(p, u, device);
  }
  f->net_stamp++;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (!is_in(f, to, q->run[u]) || is_in(f, from, q->run[u])) continue;
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) { // the producers of these are not placed yet
      const uint32_t net = p->need[i], source = q->run[p->unit[p->graph->producer[p->net_tensor[net]]]];
      if (f->net_seen[net] == f->net_stamp || (is_in(f, to, source) && !is_in(f, from, source))) continue;
      f->net_seen[net] = f->net_stamp;
      if (is_in(f, from, source)) {
        load[device] += q->type[q->type_of[device]].in[net];
      } else { // an edge of the backward pass, from a piece that was already placed
        const uint32_t sender = f->device[p->unit[p->graph->producer[p->net_tensor[net]]]];
        const struct tfc_pair *pair = tfc_problem_pair(p, sender, device);
        if (!pair->linked) return INFINITY;
        if (pair->occupies & TFC_OCCUPIES_RECEIVER)
          load[device] += (double)tfc_problem_wire_time(p, p->net_tensor[net], pair);
      }
    }
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      const uint32_t tensor = p->net_tensor[i];
      double sending = 0;
      bool outside = false; // it is sent to earlier pieces, by an edge of the backward pass
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t e = f->device[p->net_unit[j]];
        bool before = false; // another consumer on the same device comes before this one
        outside |= is_in(f, from, q->run[p->net_unit[j]]);
        if (is_in(f, from, q->run[p->net_unit[j]]) || e == device) continue;
        for (uint32_t k = p->net_first[i]; k < j && !before; k++)
          before = !is_in(f, from, q->run[p->net_unit[k]]) && f->device[p->net_unit[k]] == e;
        if (before) continue;
        const struct tfc_pair *pair = tfc_problem_pair(p, device, e);
        if (!pair->linked) return INFINITY;
        const double time = (double)tfc_problem_wire_time(p, tensor, pair);
        load[e] += (pair->occupies & TFC_OCCUPIES_RECEIVER ? time : 0) - q->type[q->type_of[e]].in[i];
        if (pair->occupies & TFC_OCCUPIES_SENDER) sending = fmax(sending, time);
      }
      load[device] += outside ? fmax(sending, q->type[q->type_of[device]].out[i]) : sending;
    }
  }
  for (uint32_t d = 0; d < p->device_count; d++) largest = fmax(largest, load[d]);
  return largest;
}

// Lists all pieces that may end `ideal`, the most promising first. *out NULL: out of memory.
static uint32_t list_candidates(struct splitter *f, uint32_t ideal, uint32_t state, struct candidate **out) {
  struct tfc_dp *q = f->q;
  const struct tfc_dp_ideals *x = f->x;
  TFC_ARRAY(struct candidate) found = {0};
  struct tfc_dp_frame *stack = calloc((size_t)q->run_count + 2, sizeof *stack);
  uint32_t depth = 0;
  bool fine = stack != NULL && tfc_array_reserve(&found, 16);
  if (fine) stack[depth++] = (struct tfc_dp_frame){ideal, x->first_step.data[ideal], TFC_NONE};
  f->seen[ideal] = ++f->stamp;
  while (depth) {
    struct tfc_dp_frame *top = &stack[depth - 1];
    if (top->next == x->first_step.data[top->ideal + 1] || !fine) {
      if (top->run != TFC_NONE) tfc_dp_change(q, top->run, -1);
      depth--;
      continue;
    }
    const struct tfc_dp_step step = x->steps.data[top->next++];
    if (f->seen[step.ideal] == f->stamp) continue;
    f->seen[step.ideal] = f->stamp;
    f->work++;
    tfc_dp_change(q, step.run, 1);
    bool hopeless = true;
    for (uint32_t t = 0; t < q->type_count; t++) {
      const double cost = tfc_dp_cost(q, t);
      hopeless &= q->memory > q->type[t].limit || q->barred[t];
      if (cost == INFINITY || !(state / q->stride[t] % (q->type[t].count + 1))) continue;
      const double bound = fmax(cost, f->rest[(size_t)step.ideal * q->state_count + state - q->stride[t]]);
      if (bound >= f->best) continue;
      for (uint32_t d = 0; d < q->p->device_count && fine; d++)
        if (q->type_of[d] == t && !f->used[d] && !has_twin(f, d))
          fine = tfc_array_push(&found, (struct candidate){bound, step.ideal, d});
    }
    stack[depth++] = (struct tfc_dp_frame){step.ideal, x->first_step.data[step.ideal + (hopeless ? 1 : 0)], step.run};
  }
  free(stack);
  if (!fine) tfc_array_free(&found);
  if (fine) qsort(found.data, found.count, sizeof *found.data, compare_candidates);
  *out = found.data;
  return (uint32_t)found.count;
}

// Splits `ideal` among the unused devices. Everything after the ideal is already placed; load[depth] has its loads.
static tfc_status search_splits(struct splitter *f, uint32_t ideal, uint32_t state, uint32_t depth) {
  struct tfc_dp *q = f->q;
  const struct tfc_problem *p = q->p;
  struct candidate *list = NULL;
  tfc_status s = NULL;
  const double *load = f->load + (size_t)depth * p->device_count;
  double *next = f->load + (size_t)(depth + 1) * p->device_count;
  if (!ideal) {
    tfc_loads_reset(&f->loads, f->device);
    if (!f->loads.missing && (double)tfc_loads_value(&f->loads) < f->best) {
      f->best = (double)tfc_loads_value(&f->loads);
      memcpy(f->best_device, f->device, sizeof *f->device * p->unit_count);
    }
    return NULL;
  }
  const uint32_t count = list_candidates(f, ideal, state, &list);
  if (!list) return tfc_status_no_memory("dynamic programming");
  for (uint32_t i = 0; i < count && list[i].bound < f->best && f->work < LARGEST_SEARCH; i++) {
    const struct candidate c = list[i];
    if (tfc_budget_over(q->budget)) break;
    memcpy(next, load, sizeof *next * p->device_count);
    f->work++;
    if (put_piece(f, c.ideal, ideal, c.device, next) >= f->best) continue;
    f->used[c.device] = true;
    TFC_TRY(s, search_splits(f, c.ideal, state - q->stride[q->type_of[c.device]], depth + 1));
    f->used[c.device] = false;
  }
out:
  free(list);
  return s;
}

tfc_status tfc_dp_split_unlike(struct tfc_dp *q, const struct tfc_dp_ideals *x, bool all, double *value,
                               tfc_device_id *device, double *out_load, bool *out_done) {
  const struct tfc_problem *p = q->p;
  tfc_status s = NULL;
  struct splitter f = {.q = q, .x = x, .all = all, .rest = value, .best_device = device, .best = INFINITY};
  f.used = calloc(p->device_count, sizeof *f.used);
  f.load = calloc(((size_t)p->device_count + 2) * p->device_count, sizeof *f.load);
  f.device = calloc((size_t)p->unit_count + 1, sizeof *f.device);
  f.seen = calloc((size_t)x->count + 1, sizeof *f.seen);
  f.net_seen = calloc((size_t)p->net_count + 1, sizeof *f.net_seen);
  if (!f.used || !f.load || !f.device || !f.seen || !f.net_seen)
    TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  TFC_TRY(s, tfc_loads_init(&f.loads, p));
  for (uint32_t t = 0; t < q->type_count; t++)
    for (size_t k = 0; k < (size_t)x->count * q->state_count; k++)
      if (k % q->state_count / q->stride[t] % (q->type[t].count + 1) && value[k - q->stride[t]] < value[k])
        value[k] = value[k - q->stride[t]];
  TFC_TRY(s, search_splits(&f, x->count - 1, q->state_count - 1, 0));
  *out_load = f.best;
  *out_done = f.work < LARGEST_SEARCH && !tfc_budget_over(q->budget);
out:
  tfc_loads_deinit(&f.loads);
  free(f.used), free(f.load), free(f.device), free(f.seen), free(f.net_seen);
  return s;
}
