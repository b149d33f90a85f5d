// Contiguous splits by dynamic programming: a device gets the difference of two ideals (sets of units closed under
// predecessors); the best way to reach an ideal with some devices used is the best over all smaller ideals and the
// device of the last piece. Where there are too many ideals, only those of one linear order are taken; long orders are
// first joined into runs. Backward nodes that share a unit with their forward nodes follow these, so edges count
// forwards, from the unit that comes first.
//
// What a piece sends and receives depends on it alone if all links are alike. If they are not, it is taken to use the
// cheapest ones: then what the table holds are lower bounds, by which the splits are searched depth-first, the last
// piece first.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/algo/order.h"
#include "placer/loads.h"
#include "placer/local.h"
#include "runtime/base/array.h"
#include "runtime/base/map.h"

#define LARGEST_IDEALS 2500
#define LONGEST_ORDER 1200
#define LARGEST_STATES 4096
#define LARGEST_WORK 2e10 // pairs of ideals times states and types
#define MOST_TYPES 12
#define LARGEST_SEARCH 3000000 // pieces that are looked at where links are not alike

// Devices that are alike to every unit: of one kind and limit, and without pins, or a device alone that has some.
struct device_type {
  uint32_t first, count; // one of its devices, how many there are
  uint64_t limit;
  bool pinned;
  double *in, *out; // [net] what receiving and sending it costs one of them at least; INFINITY: no link
};
struct step { // an ideal without one of its last runs
  uint32_t ideal, run;
};
struct ideals {
  uint32_t count, words;
  TFC_ARRAY(uint64_t) bits;
  TFC_ARRAY(struct step) steps;
  TFC_ARRAY(uint32_t) first_step; // [count + 1]
};
struct choice {
  uint32_t ideal;
  uint8_t type;
};
struct planner {
  const struct tfc_problem *p;
  const struct tfc_budget *budget;
  uint32_t run_count;
  uint32_t *run;            // [unit]
  uint32_t *first, *member; // units of a run
  uint32_t type_count, state_count;
  struct device_type type[MOST_TYPES];
  uint32_t *type_of;           // [device]
  uint32_t stride[MOST_TYPES]; // of a type's count in a state
  // The piece at hand.
  bool *inside;     // [run]
  uint32_t *net_in; // [net] consuming units inside
  double *table;    // of the types' costs
  bool even;        // all links are alike
  double time[MOST_TYPES], wire_in[MOST_TYPES], wire_out[MOST_TYPES];
  uint32_t barred[MOST_TYPES];  // its units that may not be there
  uint32_t missing[MOST_TYPES]; // tensors of it for which there is no link
  uint64_t memory;
};

static void add_wire(struct planner *q, uint32_t t, double *sum, double time, int sign) {
  if (time == INFINITY)
    q->missing[t] += (uint32_t)sign;
  else
    *sum += sign * time;
}

// Adds (sign 1) a run to the piece or takes it out (-1).
static void change(struct planner *q, uint32_t run, int sign) {
  const struct tfc_problem *p = q->p;
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    q->memory += (uint64_t)sign * p->unit_memory[u];
    for (uint32_t t = 0; t < q->type_count; t++) {
      if (tfc_problem_allows(p, u, q->type[t].first))
        q->time[t] += sign * (double)tfc_problem_unit_time(p, u, q->type[t].first);
      else
        q->barred[t] += (uint32_t)sign;
    }
  }
  if (sign > 0) q->inside[run] = true;
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
      const uint32_t net = p->need[i], total = p->net_first[net + 1] - p->net_first[net];
      const uint32_t source = q->run[p->unit[p->graph->producer[p->net_tensor[net]]]];
      const bool produced = q->inside[source] && source != run;
      const uint32_t before = q->net_in[net], after = before + (uint32_t)sign;
      q->net_in[net] = after;
      if (source == run) continue; // settled with the producer, below
      for (uint32_t t = 0; t < q->type_count; t++) {
        const struct device_type *x = &q->type[t];
        if (!produced && (before == 0 || after == 0)) add_wire(q, t, &q->wire_in[t], x->in[net], sign);
        if (produced && (before == total || after == total)) add_wire(q, t, &q->wire_out[t], x->out[net], -sign);
      }
    }
  }
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      const uint32_t total = p->net_first[i + 1] - p->net_first[i];
      uint32_t own = 0; // consumers in this very run
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) own += q->run[p->net_unit[j]] == run;
      const uint32_t with = sign > 0 ? q->net_in[i] : q->net_in[i] + own, without = with - own;
      for (uint32_t t = 0; t < q->type_count; t++) {
        const struct device_type *x = &q->type[t];
        if (without) add_wire(q, t, &q->wire_in[t], x->in[i], -sign);
        if (with < total) add_wire(q, t, &q->wire_out[t], x->out[i], sign);
      }
    }
  }
  if (sign < 0) q->inside[run] = false;
}

static double cost_of(const struct planner *q, uint32_t t) {
  if (q->memory > q->type[t].limit || q->barred[t] || q->missing[t]) return INFINITY;
  return q->time[t] + q->wire_in[t] + q->wire_out[t];
}

// What each net costs a device of each type at least, on the best of its links; whether all links are alike.
static tfc_status find_wires(struct planner *q) {
  const struct tfc_problem *p = q->p;
  const struct tfc_pair *first = p->device_count > 1 ? tfc_problem_pair(p, 0, 1) : NULL;
  struct {
    uint32_t from, to;
    const struct tfc_pair *pair;
  } known[64];
  uint32_t known_count = 0;
  q->even = true;
  q->table = malloc(sizeof *q->table * ((size_t)p->net_count * q->type_count * 2 + 1));
  if (!q->table) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  for (uint32_t t = 0; t < q->type_count; t++) {
    q->type[t].in = q->table + (size_t)2 * t * p->net_count;
    q->type[t].out = q->type[t].in + p->net_count;
    for (uint32_t i = 0; i < p->net_count; i++) q->type[t].in[i] = q->type[t].out[i] = INFINITY;
  }
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      const uint32_t from = q->type_of[a], to = q->type_of[b];
      uint32_t k = 0;
      if (a == b) continue;
      q->even &= pair->linked && pair->speed == first->speed && pair->occupies == first->occupies;
      while (k < known_count && !(known[k].from == from && known[k].to == to && known[k].pair->speed == pair->speed &&
                                  known[k].pair->occupies == pair->occupies))
        k++;
      if (!pair->linked || k < known_count) continue;
      if (k < sizeof known / sizeof *known) known[k].from = from, known[k].to = to, known[known_count++].pair = pair;
      for (uint32_t i = 0; i < p->net_count; i++) {
        const double time = (double)tfc_problem_wire_time(p, p->net_tensor[i], pair);
        double *in = &q->type[to].in[i], *out = &q->type[from].out[i];
        *in = fmin(*in, pair->occupies & TFC_OCCUPIES_RECEIVER ? time : 0);
        *out = fmin(*out, pair->occupies & TFC_OCCUPIES_SENDER ? time : 0);
      }
    }
  return NULL;
}

static tfc_status find_types(struct planner *q) {
  const struct tfc_problem *p = q->p;
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (p->unit_pin[u] != TFC_NONE) q->type_of[p->unit_pin[u]] = MOST_TYPES; // pinned to: a type of its own
  for (uint32_t d = 0; d < p->device_count; d++) {
    const bool alone = q->type_of[d] == MOST_TYPES;
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
    if (t == MOST_TYPES)
      return tfc_status_make(TFC_FAILED_PRECONDITION, "more than %d kinds of devices, or devices with pins",
                             MOST_TYPES);
    struct device_type *x = &q->type[q->type_count++];
    *x = (struct device_type){.first = d, .count = 1, .limit = p->limit[d], .pinned = alone};
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

// Runs of the linear order: single units, or so many that LONGEST_ORDER runs are left.
static void make_runs(struct planner *q, const uint32_t *order) {
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

// The ideals of the forward graph of runs; *out_all false: there are more than LARGEST_IDEALS.
static tfc_status find_ideals(const struct planner *q, struct ideals *x, bool *out_all) {
  const struct tfc_problem *p = q->p;
  const uint32_t runs = q->run_count, words = (runs + 63) / 64;
  tfc_status s = NULL;
  struct tfc_intmap seen = {0}; // by hash; equal hashes are taken for equal sets after a look at the bits
  uint64_t *before = calloc((size_t)runs * words + 1, sizeof *before), *next = calloc(words + 1u, sizeof *next);
  TFC_ARRAY(struct step) up = {0}; // ideal, run: adding the run leads to `reach`
  TFC_ARRAY(uint32_t) reach = {0};
  *out_all = false;
  if (!before || !next) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  for (uint32_t i = 0; i < p->net_count; i++) {
    const uint32_t a = q->run[p->unit[p->graph->producer[p->net_tensor[i]]]];
    for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
      const uint32_t b = q->run[p->net_unit[j]];
      if (a < b) before[(size_t)b * words + a / 64] |= UINT64_C(1) << (a % 64);
    }
  }
  x->words = words;
  if (!tfc_array_resize(&x->bits, words)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  x->count = 1;
  for (uint32_t i = 0; i < x->count; i++)
    for (uint32_t r = 0; r < runs; r++) {
      const uint64_t *bits = x->bits.data + (size_t)i * words;
      if (bits[r / 64] >> (r % 64) & 1) continue;
      bool can = true;
      for (uint32_t w = 0; w < words && can; w++) can = !(before[(size_t)r * words + w] & ~bits[w]);
      if (!can) continue;
      memcpy(next, bits, sizeof *next * words);
      next[r / 64] |= UINT64_C(1) << (r % 64);
      uint64_t hash = tfc_hash_bytes(next, sizeof *next * words);
      bool found;
      uint64_t *place;
      while ((place = tfc_intmap_put(&seen, hash, x->count, &found)) && found &&
             memcmp(x->bits.data + *place * words, next, sizeof *next * words) != 0)
        hash++;
      if (!place) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
      if (!found) {
        if (x->count >= LARGEST_IDEALS) goto out;
        if (!tfc_array_resize(&x->bits, ((size_t)x->count + 1) * words))
          TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
        memcpy(x->bits.data + (size_t)x->count * words, next, sizeof *next * words);
        x->count++;
      }
      if (!tfc_array_push(&up, (struct step){i, r}) || !tfc_array_push(&reach, (uint32_t)*place))
        TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
    }
  if (!tfc_array_resize(&x->first_step, (size_t)x->count + 2) || !tfc_array_resize(&x->steps, up.count))
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  for (size_t k = 0; k < reach.count; k++) x->first_step.data[reach.data[k] + 2]++;
  for (uint32_t i = 0; i < x->count; i++) x->first_step.data[i + 2] += x->first_step.data[i + 1];
  for (size_t k = 0; k < reach.count; k++) x->steps.data[x->first_step.data[reach.data[k] + 1]++] = up.data[k];
  *out_all = true;
out:
  tfc_intmap_deinit(&seen);
  tfc_array_free(&up);
  tfc_array_free(&reach);
  free(before), free(next);
  return s;
}

// Only the beginnings of the linear order.
static tfc_status linear_ideals(const struct planner *q, struct ideals *x) {
  x->count = q->run_count + 1;
  x->first_step.count = x->steps.count = 0;
  if (!tfc_array_resize(&x->first_step, (size_t)x->count + 2) || !tfc_array_resize(&x->steps, q->run_count))
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  for (uint32_t i = 0; i < x->count; i++) {
    x->first_step.data[i] = i ? i - 1 : 0;
    if (i) x->steps.data[i - 1] = (struct step){i - 1, i - 1};
  }
  x->first_step.data[x->count] = q->run_count;
  return NULL;
}

struct frame { // depth-first through smaller ideals
  uint32_t ideal, next, run;
};

static tfc_status plan(struct planner *q, const struct ideals *x, struct choice *from, double *value) {
  tfc_status s = NULL;
  uint32_t *stamp = calloc(x->count, sizeof *stamp);
  struct frame *stack = calloc((size_t)q->run_count + 2, sizeof *stack);
  if (!stamp || !stack) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  for (size_t k = 0; k < (size_t)x->count * q->state_count; k++) value[k] = INFINITY;
  value[0] = 0; // nothing placed, no device used
  for (uint32_t i = 1; i < x->count; i++) {
    uint32_t depth = 0;
    stack[depth++] = (struct frame){i, x->first_step.data[i], TFC_NONE};
    stamp[i] = i;
    while (depth) {
      struct frame *f = &stack[depth - 1];
      if (f->next == x->first_step.data[f->ideal + 1]) {
        if (f->run != TFC_NONE) change(q, f->run, -1);
        depth--;
        continue;
      }
      const struct step step = x->steps.data[f->next++];
      if (stamp[step.ideal] == i) continue;
      stamp[step.ideal] = i;
      change(q, step.run, 1);
      bool hopeless = true;
      for (uint32_t t = 0; t < q->type_count; t++) {
        const double cost = cost_of(q, t);
        hopeless &= q->memory > q->type[t].limit || q->barred[t];
        if (cost == INFINITY) continue;
        for (uint32_t state = 0; state < q->state_count; state++) {
          if (state / q->stride[t] % (q->type[t].count + 1) == q->type[t].count) continue; // all of them used
          const double before = value[(size_t)step.ideal * q->state_count + state];
          double *after = &value[(size_t)i * q->state_count + state + q->stride[t]];
          const double worst = before > cost ? before : cost;
          if (worst < *after) {
            *after = worst;
            from[(size_t)i * q->state_count + state + q->stride[t]] = (struct choice){step.ideal, (uint8_t)t};
          }
        }
      }
      stack[depth++] = (struct frame){
          step.ideal, hopeless ? x->first_step.data[step.ideal + 1] : x->first_step.data[step.ideal], step.run};
    }
    if (tfc_budget_over(q->budget)) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for dynamic programming");
  }
out:
  free(stamp), free(stack);
  return s;
}

static void planner_deinit(struct planner *q) {
  free(q->run), free(q->first), free(q->member), free(q->inside), free(q->net_in), free(q->type_of);
  free(q->table);
  *q = (struct planner){0};
}

static tfc_status planner_init(struct planner *q, const struct tfc_problem *p, const struct tfc_budget *budget,
                               const uint32_t *order) {
  *q = (struct planner){.p = p, .budget = budget};
  q->type_of = calloc(p->device_count, sizeof *q->type_of);
  q->run = calloc((size_t)p->unit_count + 1, sizeof *q->run);
  q->first = calloc((size_t)p->unit_count + 3, sizeof *q->first);
  q->member = calloc((size_t)p->unit_count + 1, sizeof *q->member);
  q->inside = calloc((size_t)p->unit_count + 1, sizeof *q->inside);
  q->net_in = calloc((size_t)p->net_count + 1, sizeof *q->net_in);
  tfc_status s = NULL;
  if (!q->run || !q->first || !q->member || !q->inside || !q->net_in || !q->type_of)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  TFC_TRY(s, find_types(q));
  TFC_TRY(s, find_wires(q));
  make_runs(q, order);
  return NULL;
out:
  planner_deinit(q);
  return s;
}

// Devices of the pieces that lead to `ideal` and `state`. `all`: ideals by their bits, else by their length.
static void read_choices(const struct planner *q, const struct ideals *x, bool all, const struct choice *from,
                         uint32_t ideal, uint32_t state, tfc_device_id *device) {
  const struct tfc_problem *p = q->p;
  uint32_t used[MOST_TYPES] = {0};
  while (ideal) {
    const struct choice c = from[(size_t)ideal * q->state_count + state];
    uint32_t to = q->type[c.type].first;
    for (uint32_t d = to, k = 0; d < p->device_count; d++) { // the next unused one of its type
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

// --- links that are not alike ----------------------------------------------------------------------------------------

struct candidate { // a piece: what is left before it, and its device
  double bound;
  uint32_t ideal, device;
};
struct splitter {
  struct planner *q;
  const struct ideals *x;
  bool all;           // ideals by their bits, else by their length
  const double *rest; // [ideal * state_count + state] the least load, with at most so many devices of each type
  bool *used;         // [device]
  double *load;       // [(depth + 1) * device_count + device] what is settled, and the least of what is not
  tfc_device_id *device, *best_device; // [unit]
  struct tfc_loads loads;              // of whole splits
  double best;
  uint32_t *seen, *net_seen; // [ideal], [net] a stamp each
  uint32_t stamp, net_stamp;
  uint64_t work;
};

static bool is_in(const struct splitter *f, uint32_t ideal, uint32_t run) {
  return f->all ? f->x->bits.data[(size_t)ideal * f->x->words + run / 64] >> (run % 64) & 1 : run < ideal;
}

// An interchangeable device before it is not used either.
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

// Settles what the piece between two ideals costs on a device: it, and the later ones that it sends to. The largest
// load then, INFINITY: there is no link.
static double put_piece(struct splitter *f, uint32_t from, uint32_t to, uint32_t device, double *load) {
  struct planner *q = f->q;
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
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) { // from whom is not known yet
      const uint32_t net = p->need[i], source = q->run[p->unit[p->graph->producer[p->net_tensor[net]]]];
      if (f->net_seen[net] == f->net_stamp || (is_in(f, to, source) && !is_in(f, from, source))) continue;
      f->net_seen[net] = f->net_stamp;
      if (is_in(f, from, source)) {
        load[device] += q->type[q->type_of[device]].in[net];
      } else { // a way back, from a piece that is settled
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
      bool outside = false; // to earlier pieces, on a way back
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t e = f->device[p->net_unit[j]];
        bool before = false; // a consumer on the same device before this one
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

// All ways to end `ideal` with a piece, the most promising first. *out NULL: out of memory.
static uint32_t list_candidates(struct splitter *f, uint32_t ideal, uint32_t state, struct candidate **out) {
  struct planner *q = f->q;
  const struct ideals *x = f->x;
  TFC_ARRAY(struct candidate) found = {0};
  struct frame *stack = calloc((size_t)q->run_count + 2, sizeof *stack);
  uint32_t depth = 0;
  bool fine = stack != NULL && tfc_array_reserve(&found, 16);
  if (fine) stack[depth++] = (struct frame){ideal, x->first_step.data[ideal], TFC_NONE};
  f->seen[ideal] = ++f->stamp;
  while (depth) {
    struct frame *top = &stack[depth - 1];
    if (top->next == x->first_step.data[top->ideal + 1] || !fine) {
      if (top->run != TFC_NONE) change(q, top->run, -1);
      depth--;
      continue;
    }
    const struct step step = x->steps.data[top->next++];
    if (f->seen[step.ideal] == f->stamp) continue;
    f->seen[step.ideal] = f->stamp;
    f->work++;
    change(q, step.run, 1);
    bool hopeless = true;
    for (uint32_t t = 0; t < q->type_count; t++) {
      const double cost = cost_of(q, t);
      hopeless &= q->memory > q->type[t].limit || q->barred[t];
      if (cost == INFINITY || !(state / q->stride[t] % (q->type[t].count + 1))) continue;
      const double bound = fmax(cost, f->rest[(size_t)step.ideal * q->state_count + state - q->stride[t]]);
      if (bound >= f->best) continue;
      for (uint32_t d = 0; d < q->p->device_count && fine; d++)
        if (q->type_of[d] == t && !f->used[d] && !has_twin(f, d))
          fine = tfc_array_push(&found, (struct candidate){bound, step.ideal, d});
    }
    stack[depth++] = (struct frame){step.ideal, x->first_step.data[step.ideal + (hopeless ? 1 : 0)], step.run};
  }
  free(stack);
  if (!fine) tfc_array_free(&found);
  if (fine) qsort(found.data, found.count, sizeof *found.data, compare_candidates);
  *out = found.data;
  return (uint32_t)found.count;
}

// Splits `ideal`, what is behind it being settled with the loads of `depth`, among devices that are not used.
static tfc_status search_splits(struct splitter *f, uint32_t ideal, uint32_t state, uint32_t depth) {
  struct planner *q = f->q;
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
  if (!list) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
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

// The best split where links are not alike; value [ideal * state_count + state]: lower bounds, with exactly so many
// devices of each type, which it changes. *out_load INFINITY: there is none; *out_done: that is certain.
static tfc_status split_unevenly(struct planner *q, const struct ideals *x, bool all, double *value,
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
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
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

// The best split over all ideals, if they are few enough, or over the order's beginnings; *out_load its largest load.
static tfc_status split(struct planner *q, tfc_device_id *device, double *out_load) {
  tfc_status s = NULL;
  struct ideals x = {0};
  struct choice *from = NULL;
  double *value = NULL;
  bool all = false, done = false;
  if (q->run_count <= 1024) TFC_TRY(s, find_ideals(q, &x, &all));
  if (!all) TFC_TRY(s, linear_ideals(q, &x));
  if ((double)x.count * x.count / 2 * q->state_count * q->type_count > LARGEST_WORK)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "too many combinations of devices for dynamic programming");
  from = calloc((size_t)x.count * q->state_count, sizeof *from);
  value = malloc(sizeof *value * x.count * q->state_count);
  if (!from || !value) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  TFC_TRY(s, plan(q, &x, from, value));
  // The ideal of everything is the last one.
  const uint32_t ideal = x.count - 1;
  uint32_t state = 0;
  for (uint32_t k = 1; k < q->state_count; k++)
    if (value[(size_t)ideal * q->state_count + k] < value[(size_t)ideal * q->state_count + state]) state = k;
  if (!isfinite(value[(size_t)ideal * q->state_count + state]))
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "no contiguous split fits");
  read_choices(q, &x, all, from, ideal, state, device); // the answer, or what is left if the search finds none
  *out_load = value[(size_t)ideal * q->state_count + state];
  if (!q->even) {
    TFC_TRY(s, split_unevenly(q, &x, all, value, device, out_load, &done));
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
  struct planner q;
  TFC_RETURN_IF_ERROR(planner_init(&q, p, budget, order));
  tfc_status s = split(&q, device, out_load);
  planner_deinit(&q);
  return s;
}

// Two orders: as the graph has it, and, where groups tie the way back to the way there, folded.
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
  if (!order || !device) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for dynamic programming");
  tfc_random_init(&random, 0); // the same for every seed
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
