// The model: for an operation, log(measured / simulated) is the sum of a parameter for all operations, one for the
// device, one for the family, and a residual of the node on the device. For a transfer it is the sum of a parameter for
// all links and one for the pair, separately for latency and for the rest. Each arrival of a tensor adds a fixed time.
// All parameters have Gaussian priors around 0, so without data the model predicts what the simulator does; the
// posterior is that of a Bayesian linear regression (ridge; Hoerl and Kennard 1970; Bishop, "Pattern Recognition and
// Machine Learning", 2006, 3.3). A node's residual is a random effect, which is shrunk less the more often the node was
// measured (Robinson, "That BLUP is a good thing", 1991).
#include "placer/learned/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/private.h"
#include "runtime/base/map.h"

enum { MOST_FAMILIES = 64, MOST_ROWS = 400000 };
// Standard deviations: the first five are those of the priors. Then those of one timed operation; of nodes within a
// family; of one node on different devices; of one node on devices of one kind when different numbers of them are busy;
// of a transfer.
static const double sd_all = 0.3, sd_device = 0.25, sd_family = 0.3, sd_links = 0.5, sd_pair = 0.4;
static const double sd_timed = 0.08, sd_node = 0.12, sd_place = 0.06, sd_crowd = 0.02, sd_transfer = 0.15;
// Each newer sample of an operation multiplies the weight of its older ones by this, because the load under which it
// runs changes.
static const double forget = 0.97;

// The family of an operation is the last part of its name without the number: "cell/step3/MatMul_1" is a MatMul.
static tfc_str family_name(tfc_str name) {
  const size_t slash = tfc_str_rfind(name, '/');
  if (slash != SIZE_MAX && slash + 1 < name.size) name = tfc_str_sub(name, slash + 1, name.size);
  size_t end = name.size;
  while (end > 0 && name.data[end - 1] >= '0' && name.data[end - 1] <= '9') end--;
  while (end > 0 && strchr("_-.", name.data[end - 1])) end--;
  return end ? tfc_str_sub(name, 0, end) : name;
}

struct family {
  uint32_t number;
  double us;
};
static int heavier(const void *a, const void *b) {
  const struct family *x = a, *y = b;
  return x->us != y->us ? (x->us < y->us) - (x->us > y->us) : (x->number > y->number) - (x->number < y->number);
}

// Each of the families with the most time has a parameter; all other families share the last one.
static tfc_status find_families(struct tfc_learned *l) {
  tfc_status s = NULL;
  const struct tfc_problem *p = l->problem;
  struct tfc_strmap map = {0};
  struct family *all = calloc(p->node_count + 1u, sizeof *all);
  uint32_t *place = calloc(p->node_count + 1u, sizeof *place);
  if (!all || !place) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint64_t *value = tfc_strmap_put(&map, family_name(p->graph->names[n]), map.count, NULL);
    if (!value) TFC_TRY(s, tfc_status_no_memory(NULL));
    l->family[n] = (uint32_t)*value;
    int64_t most = 0;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_time(p, n, d) > most) most = tfc_problem_time(p, n, d);
    all[*value].number = (uint32_t)*value, all[*value].us += 1e-6 * (double)most;
  }
  qsort(all, map.count, sizeof *all, heavier);
  for (uint32_t i = 0; i < map.count; i++) place[all[i].number] = i < MOST_FAMILIES ? i : MOST_FAMILIES - 1;
  for (uint32_t n = 0; n < p->node_count; n++) l->family[n] = place[l->family[n]];
  l->family_count = map.count < MOST_FAMILIES ? (uint32_t)map.count : MOST_FAMILIES;
out:
  tfc_strmap_deinit(&map);
  free(all);
  free(place);
  return s;
}

// Devices of one kind may slow each other down. If every device is treated as a kind of its own, the learned times
// contain that effect; its prior is the mean of the machine's slow-downs (for 1 to all devices of the kind busy).
static double slowdown_of(const struct tfc_machine_device *x, uint32_t busy) {
  return x->slowdown_count ? x->slowdown[busy <= x->slowdown_count ? busy - 1 : x->slowdown_count - 1] : 1;
}
static void find_crowds(struct tfc_learned *l) {
  const struct tfc_machine *m = l->problem->machine;
  for (uint32_t d = 0; d < m->device_count; d++) {
    uint32_t number = 0, last = d;
    for (uint32_t e = 0; e < m->device_count; e++) {
      if (!l->alike || !tfc_str_equal(m->devices[e].kind, m->devices[d].kind)) continue;
      l->slot[(size_t)d * m->device_count + number++] = last = e;
      l->crowd[e] = log(slowdown_of(&m->devices[e], number));
    }
    for (; number < m->device_count; number++) l->slot[(size_t)d * m->device_count + number] = last;
  }
  if (l->alike) return;
  for (uint32_t d = 0; d < m->device_count; d++) {
    const struct tfc_machine_device *x = &m->devices[d];
    double sum = 0;
    uint32_t alike = 0;
    for (uint32_t e = 0; e < m->device_count; e++)
      if (tfc_str_equal(m->devices[e].kind, x->kind) && x->slowdown_count) sum += log(slowdown_of(x, ++alike));
    l->crowd[d] = alike ? sum / alike : 0;
  }
}

// Returns the unit for the time of an arrival: half of the median time of an operation.
static double arrival_unit(const struct tfc_problem *p) {
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_time(p, n, d) > 0) sum += log(1e-6 * (double)tfc_problem_time(p, n, d)), count++;
  return count ? 0.5 * exp(sum / count) : 1;
}

tfc_status tfc_learned_create(const struct tfc_problem *p, bool alike, struct tfc_learned **out) {
  tfc_status s = NULL;
  struct tfc_learned *l = calloc(1, sizeof *l);
  const uint32_t devices = p->device_count, pairs = tfc_learned_pair_count(p);
  if (!l) return tfc_status_no_memory("the learned model");
  l->problem = p, l->alike = alike;
  l->slot = calloc((size_t)devices * devices + 1, sizeof *l->slot);
  if (!l->slot) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!(l->family = calloc(p->node_count + 1u, sizeof *l->family))) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!(l->crowd = calloc(devices + 1u, sizeof *l->crowd))) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, find_families(l));
  find_crowds(l);
  l->at_family = 1 + devices, l->at_links = l->at_family + l->family_count, l->at_pairs = l->at_links + 2;
  l->at_arrival = l->at_pairs + 2 * pairs, l->dim = l->at_arrival + 1;
  l->arrival_unit_us = arrival_unit(p);
  const size_t cells = (size_t)p->node_count * devices + 1, square = (size_t)l->dim * l->dim;
  l->prior = calloc(l->dim, sizeof *l->prior);
  l->mean = calloc(l->dim, sizeof *l->mean);
  l->covariance_diagonal = calloc(l->dim, sizeof *l->covariance_diagonal);
  l->precision = calloc(square, sizeof *l->precision);
  l->factor = calloc(square, sizeof *l->factor);
  l->operation = calloc(cells, sizeof *l->operation);
  l->node_effect = calloc(cells, sizeof *l->node_effect);
  l->node_sd = calloc(cells, sizeof *l->node_sd);
  l->link = calloc(2 * pairs + 1u, sizeof *l->link);
  l->latency_share = calloc(2 * pairs + 1u, sizeof *l->latency_share);
  l->shared = calloc((size_t)pairs * pairs + 1, sizeof *l->shared);
  l->overlapped = calloc((size_t)pairs * pairs + 1, sizeof *l->overlapped);
  if (!l->prior || !l->mean || !l->covariance_diagonal || !l->precision || !l->factor || !l->operation ||
      !l->node_effect || !l->node_sd || !l->link || !l->latency_share || !l->shared || !l->overlapped)
    TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < l->dim; i++)
    l->prior[i] = i == 0              ? sd_all
                  : i < l->at_family  ? sd_device
                  : i < l->at_links   ? sd_family
                  : i < l->at_pairs   ? sd_links
                  : i < l->at_arrival ? sd_pair
                                      : 1;
  TFC_TRY(s, tfc_simulator_create(p, &l->simulator));
  TFC_TRY(s, tfc_learned_fit(l));
  *out = l, l = NULL;
out:
  tfc_learned_free(l);
  return s;
}

void tfc_learned_free(struct tfc_learned *l) {
  if (!l) return;
  for (size_t i = 0; i < l->steps.count; i++) tfc_solution_deinit(&l->steps.data[i].solution);
  tfc_array_free(&l->steps);
  tfc_array_free(&l->rows);
  tfc_array_free(&l->trust.trials);
  tfc_simulator_free(l->simulator);
  tfc_simulator_free(l->now_simulator);
  tfc_learned_world_deinit(&l->now);
  free(l->slot), free(l->family), free(l->crowd), free(l->prior), free(l->mean), free(l->precision), free(l->factor),
      free(l->covariance_diagonal);
  free(l->operation), free(l->link), free(l->latency_share), free(l->node_effect), free(l->node_sd);
  free(l->shared), free(l->overlapped);
  free(l);
}

uint32_t tfc_learned_readings(const struct tfc_learned *l) {
  return l->readings;
}

// --- Adding measurements -------------------------------------------------------------------------------------------
static void sample(struct tfc_learned_sums *to, double x, double keep) {
  to->weight = keep * to->weight + 1, to->sum = keep * to->sum + x;
}

// Returns [node] the number of tensors from other devices that this operation was the first to read on its device.
static uint32_t *count_arrivals(const struct tfc_learned *l, const struct tfc_solution *solution,
                                const struct tfc_learned_trace *trace) {
  const struct tfc_problem *p = l->problem;
  const struct tfc_cost_graph *g = p->graph;
  uint32_t *arrivals = calloc(p->node_count + 1u, sizeof *arrivals), *first = calloc(p->device_count, sizeof *first);
  double *start = malloc((p->node_count + 1u) * sizeof *start);
  if (!arrivals || !start || !first) {
    free(arrivals), free(start), free(first);
    return NULL;
  }
  for (uint32_t n = 0; n < p->node_count; n++) start[n] = (double)NAN;
  for (uint32_t i = 0; i < trace->operation_count; i++)
    start[trace->operations[i].node] = trace->operations[i].start_us;
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    const uint32_t from = solution->device[p->unit[g->producer[t]]];
    for (uint32_t d = 0; d < p->device_count; d++) first[d] = TFC_NONE;
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      const uint32_t n = g->consumer[c], d = solution->device[p->unit[n]];
      if (d != from && (first[d] == TFC_NONE || start[n] < start[first[d]])) first[d] = n;
    }
    for (uint32_t d = 0; d < p->device_count; d++)
      if (first[d] != TFC_NONE) arrivals[first[d]]++;
  }
  free(start);
  free(first);
  return arrivals;
}

// Returns how many devices of the kind are busy when an operation starts, its own device included. `end` [device]: when
// the operation that started there last ends; updated.
static uint32_t busy_devices(const struct tfc_problem *p, const struct tfc_learned_operation *x, double *end) {
  uint32_t busy = 0;
  end[x->device] = x->start_us + x->time_us;
  for (uint32_t d = 0; d < p->device_count; d++)
    busy += tfc_str_equal(p->machine->devices[d].kind, p->machine->devices[x->device].kind) &&
            (d == x->device || end[d] > x->start_us);
  return busy;
}

static tfc_status add_operations(struct tfc_learned *l, double scale, const struct tfc_learned_trace *trace,
                                 const uint32_t *arrivals) {
  const struct tfc_problem *p = l->problem;
  double *end = calloc(p->device_count + 1u, sizeof *end);
  if (!end) return tfc_status_no_memory("the learned model");
  l->traced = true;
  for (uint32_t i = 0; i < trace->operation_count; i++) {
    const struct tfc_learned_operation *x = &trace->operations[i];
    const double prior = tfc_learned_prior_us(l, x->node, x->device);
    const uint32_t busy = l->alike ? busy_devices(p, x, end) : 1;
    if (prior <= 0 || !(x->time_us > 0)) continue;
    const double ratio = log(scale * x->time_us / prior);
    const uint32_t slot = l->alike ? l->slot[(size_t)x->device * p->device_count + busy - 1] : x->device;
    const struct tfc_learned_row row = {x->node, arrivals[x->node], (uint16_t)slot, scale * x->time_us};
    // The measured time of a link between devices of a kind already contains the time for reading another device's
    // memory.
    if (l->alike || !arrivals[x->node]) {
      sample(&l->operation[(size_t)x->node * p->device_count + slot], fmax(-3, fmin(3, ratio)), forget);
    } else if (l->rows.count < MOST_ROWS && !tfc_array_push(&l->rows, row)) {
      free(end);
      return tfc_status_no_memory("the learned model");
    }
  }
  free(end);
  return NULL;
}

static tfc_status add_trace(struct tfc_learned *l, const struct tfc_solution *solution, double scale,
                            const struct tfc_learned_trace *trace) {
  const struct tfc_problem *p = l->problem;
  uint32_t *arrivals = count_arrivals(l, solution, trace);
  if (!arrivals) return tfc_status_no_memory("the learned model");
  tfc_status s = add_operations(l, scale, trace, arrivals);
  free(arrivals);
  if (s) return s;
  for (uint32_t i = 0; i < trace->transfer_count; i++) {
    const struct tfc_learned_transfer *x = &trace->transfers[i];
    const struct tfc_pair *pair = tfc_problem_pair(p, x->from, x->to);
    const double us = 1e-6 * (double)tfc_problem_wire_time(p, x->tensor, pair);
    if (!pair->linked || !(us > 0) || !(x->time_us > 0)) continue;
    const double share = fmin(1, 1e-6 * (double)pair->latency / us);
    const uint32_t at = 2 * tfc_learned_pair(l, x->from, x->to) + (share < 0.5);
    sample(&l->link[at], fmax(-4, fmin(4, log(scale * x->time_us / us))), 0.999);
    l->latency_share[at] = 0.999 * l->latency_share[at] + share;
  }
  return tfc_learned_watch_wires(l, trace);
}

static bool same(const struct tfc_problem *p, const struct tfc_solution *a, const struct tfc_solution *b) {
  return memcmp(a->device, b->device, p->unit_count * sizeof *a->device) == 0 && !a->rank == !b->rank &&
         (!a->rank || memcmp(a->rank, b->rank, p->node_count * sizeof *a->rank) == 0);
}

tfc_status tfc_learned_add(struct tfc_learned *l, const struct tfc_solution *solution, double step_us, double scale,
                           const struct tfc_learned_trace *trace) {
  const struct tfc_problem *p = l->problem;
  const double log_us = log(step_us * scale);
  if (!isfinite(log_us)) return tfc_status_make(TFC_INVALID_ARGUMENT, "a step of %g us", step_us);
  if (trace) TFC_RETURN_IF_ERROR(add_trace(l, solution, scale, trace));
  l->readings++;
  for (size_t i = 0; i < l->steps.count; i++) {
    struct tfc_learned_reading *known = &l->steps.data[i];
    if (!same(p, &known->solution, solution)) continue;
    known->count++, known->log_us += (log_us - known->log_us) / known->count;
    return NULL;
  }
  double predicted_us;
  struct tfc_learned_reading reading = {.log_us = log_us, .log_given = tfc_learned_log_given(l, solution), .count = 1};
  if (l->fitted && tfc_learned_predict_fully(l, solution, &predicted_us, NULL))
    TFC_RETURN_IF_ERROR(tfc_learned_note_trial(l, reading.log_given, predicted_us, log_us));
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&reading.solution, solution, p));
  if (tfc_array_push(&l->steps, reading)) return NULL;
  tfc_solution_deinit(&reading.solution);
  return tfc_status_no_memory("the learned model");
}

// --- Fitting -------------------------------------------------------------------------------------------------------
// Adds a row x theta = y to the regression. The row is given by its nonzero entries; its weight is 1 / variance.
static void add_row(const struct tfc_learned *l, double *a, double *b, const uint32_t *at, const double *x, uint32_t n,
                    double y, double weight) {
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < n; k++) a[(size_t)at[i] * l->dim + at[k]] += weight * x[i] * x[k];
    b[at[i]] += weight * x[i] * y;
  }
}

static void add_pieces(const struct tfc_learned *l, double *a, double *b) {
  const struct tfc_problem *p = l->problem;
  const uint32_t pairs = tfc_learned_pair_count(p);
  const double one[3] = {1, 1, 1};
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t d = 0; d < p->device_count; d++) {
      const struct tfc_learned_sums *x = &l->operation[(size_t)n * p->device_count + d];
      if (!(x->weight > 0)) continue;
      const uint32_t at[3] = {0, 1 + d, l->at_family + l->family[n]};
      add_row(l, a, b, at, one, 3, x->sum / x->weight - l->crowd[d],
              1 / (sd_node * sd_node + sd_timed * sd_timed / x->weight));
    }
  for (uint32_t i = 0; i < 2 * pairs; i++) {
    const struct tfc_learned_sums *x = &l->link[i];
    if (!(x->weight > 0)) continue;
    const double share = l->latency_share[i] / x->weight;
    const uint32_t pair = l->at_pairs + 2 * (i / 2);
    const uint32_t at[4] = {l->at_links, l->at_links + 1, pair, pair + 1};
    const double row[4] = {share, 1 - share, share, 1 - share};
    add_row(l, a, b, at, row, 4, x->sum / x->weight, 1 / (0.03 * 0.03 + sd_transfer * sd_transfer / x->weight));
  }
}

bool tfc_learned_cholesky(const double *a, double *factor, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double sum = a[(size_t)i * n + j];
      for (uint32_t k = 0; k < j; k++) sum -= factor[(size_t)i * n + k] * factor[(size_t)j * n + k];
      if (i == j && !(sum > 0)) return false;
      factor[(size_t)i * n + j] = i == j ? sqrt(sum) : sum / factor[(size_t)j * n + j];
    }
  return true;
}
void tfc_learned_solve_lower(const double *factor, double *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < i; k++) x[i] -= factor[(size_t)i * n + k] * x[k];
    x[i] /= factor[(size_t)i * n + i];
  }
}
void tfc_learned_solve_upper(const double *factor, double *x, uint32_t n) { // with the transposed factor
  for (uint32_t i = n; i-- > 0;) {
    for (uint32_t k = i + 1; k < n; k++) x[i] -= factor[(size_t)k * n + i] * x[k];
    x[i] /= factor[(size_t)i * n + i];
  }
}

static tfc_status solve(struct tfc_learned *l, double *b) {
  if (!tfc_learned_cholesky(l->precision, l->factor, l->dim))
    return tfc_status_make(TFC_INTERNAL, "the learned model's equations have no solution");
  tfc_learned_solve_lower(l->factor, b, l->dim);
  tfc_learned_solve_upper(l->factor, b, l->dim);
  memcpy(l->mean, b, l->dim * sizeof *b);
  for (uint32_t i = 0; i < l->dim; i++) {
    double *e = b;
    memset(e, 0, l->dim * sizeof *e);
    e[i] = 1;
    tfc_learned_solve_lower(l->factor, e, l->dim);
    double sum = 0;
    for (uint32_t k = i; k < l->dim; k++) sum += e[k] * e[k];
    l->covariance_diagonal[i] = sum;
  }
  return NULL;
}

// Computes the random effects: first of each node over all devices, then of the node on each device.
static void find_effects(struct tfc_learned *l) {
  const struct tfc_problem *p = l->problem;
  const double place = l->alike ? sd_crowd : sd_place;
  for (uint32_t n = 0; n < p->node_count; n++) {
    const struct tfc_learned_sums *x = &l->operation[(size_t)n * p->device_count];
    double weight = 0, sum = 0;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!(x[d].weight > 0)) continue;
      const double w = 1 / (place * place + sd_timed * sd_timed / x[d].weight);
      weight += w, sum += w * (x[d].sum / x[d].weight - tfc_learned_log_of(l, l->mean, n, d));
    }
    const double before = 1 / (sd_node * sd_node), node = sum / (weight + before);
    for (uint32_t d = 0; d < p->device_count; d++) {
      const size_t at = (size_t)n * p->device_count + d;
      const double w = x[d].weight / (sd_timed * sd_timed), tight = 1 / (place * place);
      const double left = x[d].weight > 0 ? x[d].sum / x[d].weight - tfc_learned_log_of(l, l->mean, n, d) - node : 0;
      l->node_effect[at] = node + left * w / (w + tight);
      l->node_sd[at] = l->traced ? sqrt(1 / (w + tight) + (x[d].weight > 0 ? 0 : 1 / (weight + before))) : 0;
    }
  }
}

struct weighted {
  double x, weight;
};
static int ascending(const void *a, const void *b) {
  const double x = ((const struct weighted *)a)->x, y = ((const struct weighted *)b)->x;
  return (x > y) - (x < y);
}

// Computes the time of an arrival: the weighted median of the extra time of operations that have arrivals.
static tfc_status find_arrival(struct tfc_learned *l) {
  const uint32_t devices = l->problem->device_count;
  struct weighted *list = malloc((l->rows.count + 1) * sizeof *list);
  double total = 0, sum = 0;
  if (!list) return tfc_status_no_memory("the learned model");
  for (size_t i = 0; i < l->rows.count; i++) {
    const struct tfc_learned_row *r = &l->rows.data[i];
    const double prior = tfc_learned_prior_us(l, r->node, r->device);
    const double us = prior * exp(tfc_learned_log_of(l, l->mean, r->node, r->device) +
                                  l->node_effect[(size_t)r->node * devices + r->device]);
    list[i] = (struct weighted){(r->time_us - us) / r->arrivals, r->arrivals / (0.1 * us + 0.1 * l->arrival_unit_us)};
    total += list[i].weight;
  }
  qsort(list, l->rows.count, sizeof *list, ascending);
  for (size_t i = 0; i < l->rows.count; i++) {
    sum += list[i].weight;
    if (sum < 0.5 * total) continue;
    l->mean[l->at_arrival] = fmax(0, list[i].x) / l->arrival_unit_us;
    break;
  }
  free(list);
  return NULL;
}

tfc_status tfc_learned_fit(struct tfc_learned *l) {
  tfc_status s = NULL;
  double *b = NULL;
  // The equations of whole steps are linear only near the current estimate, so two rounds of Gauss-Newton are made.
  for (int round = 0; round < (l->traced || !l->steps.count ? 1 : 2); round++) {
    free(b);
    if (!(b = calloc(l->dim, sizeof *b))) return tfc_status_no_memory("the learned model");
    memset(l->precision, 0, (size_t)l->dim * l->dim * sizeof *l->precision);
    for (uint32_t i = 0; i < l->dim; i++) l->precision[(size_t)i * l->dim + i] = 1 / (l->prior[i] * l->prior[i]);
    add_pieces(l, l->precision, b);
    if (!l->traced && l->steps.count) TFC_TRY(s, tfc_learned_add_steps(l, l->precision, b));
    TFC_TRY(s, solve(l, b));
  }
  find_effects(l);
  if (l->rows.count) TFC_TRY(s, find_arrival(l));
  tfc_simulator_free(l->now_simulator);
  tfc_learned_world_deinit(&l->now);
  l->now_simulator = NULL;
  TFC_TRY(s, tfc_learned_build(l, l->problem, l->mean, l->node_effect, &l->now));
  TFC_TRY(s, tfc_simulator_create(l->now.problem, &l->now_simulator));
  TFC_TRY(s, tfc_learned_fit_whole(l));
  TFC_TRY(s, tfc_learned_fit_trust(l));
  l->fitted = l->readings;
out:
  free(b);
  return s;
}

// --- Problems with the learned costs -------------------------------------------------------------------------------
tfc_status tfc_learned_world(const struct tfc_learned *l, const struct tfc_problem *like, struct tfc_random *draw,
                             struct tfc_learned_world *out) {
  tfc_status s = NULL;
  const size_t cells = (size_t)l->problem->node_count * l->problem->device_count;
  double *theta = malloc((l->dim + 1u) * sizeof *theta), *effects = malloc((cells + 1) * sizeof *effects);
  if (!theta || !effects) TFC_TRY(s, tfc_status_no_memory(NULL));
  memset(theta, 0, l->dim * sizeof *theta);
  for (uint32_t i = 0; i < l->dim && draw; i++) theta[i] = tfc_random_normal(draw);
  if (draw) tfc_learned_solve_upper(l->factor, theta, l->dim);
  // arrivals were timed one by one, so their time is well known and is not drawn
  if (l->rows.count) theta[l->at_arrival] = 0;
  for (uint32_t i = 0; i < l->dim; i++) theta[i] += l->mean[i];
  for (size_t i = 0; i < cells; i++)
    effects[i] = l->node_effect[i] + (draw && l->node_sd[i] > 0 ? l->node_sd[i] * tfc_random_normal(draw) : 0);
  tfc_learned_apply_trust(l, theta, effects);
  TFC_TRY(s, tfc_learned_build(l, like, theta, effects, out));
out:
  free(theta);
  free(effects);
  return s;
}

double tfc_learned_device_factor(const struct tfc_learned *l, uint32_t device, double *out_sd) {
  // The mean of the families is not a property of a device: the factor is that of an average node on it.
  const struct tfc_problem *p = l->problem;
  double sum = 0, weight = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    const int64_t ps = tfc_problem_time(p, n, device);
    if (ps > 0) weight += (double)ps, sum += (double)ps * l->mean[l->at_family + l->family[n]];
  }
  if (out_sd) *out_sd = sqrt(l->covariance_diagonal[1 + device]);
  return exp(l->mean[0] + l->mean[1 + device] + (weight > 0 ? sum / weight : 0));
}
