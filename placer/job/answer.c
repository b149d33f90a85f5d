// The end: intervals, bound, gap, the table and the document.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "placer/place.h"
#include "profiler/statistics.h"
#include "runtime/base/units.h"

enum { BOOTSTRAPS = 2000 };

// --- Comparing -------------------------------------------------------------------------------------------------------
struct side { // steps in order, each with its block
  const double *us;
  const uint32_t *block;
  size_t count;
};
static struct side final_run(const struct tfc_job_known *k) {
  return (struct side){k->final_step_us.data, k->final_block_of.data, k->final_step_us.count};
}
static struct side in_flight(const struct tfc_job_known *k) {
  return (struct side){k->in_flight.us.data, k->in_flight.block.data, k->in_flight.us.count};
}

// median(a) / median(b) over blocks that were run in turns.
static tfc_status compare(struct side a, struct side b, uint64_t seed, struct tfc_interval *out) {
  struct tfc_block_pair pairs[TFC_JOB_FINAL_ROUNDS] = {0};
  const struct side sides[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < sides[i].count; k++) {
      uint32_t block = sides[i].block[k];
      if (block >= TFC_JOB_FINAL_ROUNDS) continue;
      const double *at = &sides[i].us[k];
      if (i == 0 && pairs[block].a_count++ == 0) pairs[block].a = at;
      if (i == 1 && pairs[block].b_count++ == 0) pairs[block].b = at;
    }
  }
  uint32_t count = 0;
  while (count < TFC_JOB_FINAL_ROUNDS && pairs[count].a_count && pairs[count].b_count) count++;
  return tfc_bootstrap_ratio(pairs, count, BOOTSTRAPS, seed, out);
}

// The load of a step on the busiest device: as measured with several steps in flight, else as modelled.
static double load_of(const struct tfc_job_known *k) {
  return k->in_flight.us.count ? k->in_flight.median_us : k->simulated_us;
}

static tfc_status add_row(struct tfc_job *j, const struct tfc_job_known *k, const char *name, const char *kind,
                          const struct tfc_job_known *single) {
  tfc_status s = NULL;
  struct tfc_job_outcome *out = j->out;
  struct tfc_job_row *rows = realloc(out->rows, (out->row_count + 1) * sizeof *rows);
  if (!rows) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  out->rows = rows;
  struct tfc_job_row r = {.kind = kind,
                          .state = k->state,
                          .modelled = isnan(k->median_us) && !k->note,
                          .median_us = tfc_job_final_us(k),
                          .q1_us = isfinite(k->final_us) ? k->final_q1 : k->q1_us,
                          .q3_us = isfinite(k->final_us) ? k->final_q3 : k->q3_us,
                          .steps = isfinite(k->final_us) ? k->final_steps : k->steps,
                          .simulated_us = k->simulated_us,
                          .speedup = (double)NAN,
                          .low = (double)NAN,
                          .high = (double)NAN};
  r.load_us = (double)NAN;
  if (j->o->objective == TFC_OBJECTIVE_THROUGHPUT && (k->solution.device || k->in_flight.us.count))
    r.load_us = load_of(k), r.load_steps = (uint32_t)k->in_flight.us.count;
  struct tfc_interval interval;
  if (isfinite(r.load_us) && single) {
    r.speedup = load_of(single) / r.load_us;
    if (k->in_flight.us.count && single->in_flight.us.count) {
      TFC_TRY(s, compare(in_flight(single), in_flight(k), (uint64_t)j->o->execution.seed, &interval));
      r.speedup = interval.value, r.low = interval.low, r.high = interval.high;
    }
  } else if (single && isfinite(k->final_us) && isfinite(single->final_us)) {
    TFC_TRY(s, compare(final_run(single), final_run(k), (uint64_t)j->o->execution.seed, &interval));
    r.speedup = interval.value, r.low = interval.low, r.high = interval.high;
  } else if (single && isfinite(r.median_us) && isfinite(tfc_job_final_us(single))) {
    r.speedup = tfc_job_final_us(single) / r.median_us;
  }
  r.name = tfc_str_dup(tfc_str_from(name));
  const struct tfc_job_known *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best];
  bool earlier = best && isfinite(best->final_us) && !isfinite(k->final_us) && k->median_us < best->final_us;
  const char *note = k->note       ? k->note
                     : k->in_lanes ? "operations side by side"
                     : earlier     ? "not in the final turns: the machine was faster then"
                                   : NULL;
  r.note = note ? tfc_str_dup(tfc_str_from(note)) : NULL;
  if (!r.name || (note && !r.note)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  out->rows[out->row_count++] = r;
out:
  return s;
}

// Kendall's tau over what was measured as candidates and rivals on several devices.
static tfc_status correlate(struct tfc_job *j) {
  size_t n = 0, count = j->known.count;
  double *x = calloc(count + 1, sizeof *x), *y = calloc(count + 1, sizeof *y), *spread = calloc(count + 1, sizeof *y);
  tfc_status s = NULL;
  if (!x || !y || !spread) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (size_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (!k->solution.device || k->state != TFC_RESULT_OK || isnan(k->median_us) || isnan(k->simulated_us)) continue;
    x[n] = k->simulated_us, y[n] = k->median_us, spread[n++] = 0.5 * (k->q3_us - k->q1_us);
  }
  j->out->tau = tfc_kendall_tau(x, y, spread, n, NULL);
  j->out->tau_placements = (uint32_t)n;
out:
  free(x);
  free(y);
  free(spread);
  return s;
}

// --- Bound -----------------------------------------------------------------------------------------------------------
// The shortest step that any placement was seen to take, the answer's or another's in a faster minute.
static double least_us(const struct tfc_job *j, double least) {
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (!tfc_job_can_answer(k)) continue;
    least = fmin(least, fmin(k->median_us, tfc_job_final_us(k)));
  }
  return least;
}

static tfc_status find_bound(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_problem *problem = NULL;
  // The fastest time seen of each operation, nothing for dispatch or neighbours, links that cost nothing.
  TFC_TRY(s, tfc_local_machine(j->info, NULL, j->o->execution.limits, j->o->execution.limit_count, &machine));
  TFC_TRY(s, tfc_subject_cost_graph(j->subject, j->costs, true, NULL, &graph));
  TFC_TRY(s, tfc_problem_create(graph, machine, j->o->objective, &problem));
  TFC_TRY(s, tfc_bound_compute(problem, NULL, &j->bound));
  double us = 1e-6 * (double)j->bound.value;
  // More devices than cores: their work shares the cores.
  uint32_t cores = j->info->whole.cores;
  if (j->info->device_count > cores && cores > 0 && j->bound.kind == TFC_BOUND_WORK)
    us = us * j->info->device_count / cores;
  j->out->bound_us = us;
  j->out->bound_name = tfc_bound_name(j->bound.kind);
  const struct tfc_job_known *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best];
  double value = !best                                         ? (double)NAN
                 : j->o->objective == TFC_OBJECTIVE_THROUGHPUT ? load_of(best)
                                                               : tfc_job_final_us(best);
  if (isfinite(value)) {
    j->out->gap = value / us - 1;
    if (j->o->objective == TFC_OBJECTIVE_STEP) value = least_us(j, value);
    if (us > value) {
      tfc_job_say(j, true,
                  "the lower bound, %.1f us, is above what was measured, %.1f us: the cost model is wrong here", us,
                  value);
      j->out->bound_us = 0, j->out->bound_name = NULL, j->out->gap = (double)NAN;
    }
  }
out:
  tfc_problem_free(problem);
  tfc_cost_graph_free(graph);
  tfc_machine_free(machine);
  return s;
}

// --- Critical path, traffic ------------------------------------------------------------------------------------------
struct share {
  tfc_str op;
  int64_t ps;
};
static int by_share(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  return (x->ps < y->ps) - (x->ps > y->ps);
}

static tfc_status explain(struct tfc_job *j, const struct tfc_job_known *k) {
  tfc_status s = NULL;
  struct tfc_timeline t = {0};
  struct share *share = NULL;
  struct tfc_text text = {0};
  uint32_t devices = j->info->device_count, count = 0;
  struct tfc_job_outcome *out = j->out;
  out->busy_share = calloc(devices + 1u, sizeof *out->busy_share);
  out->peak = calloc(devices + 1u, sizeof *out->peak);
  out->crossing = calloc((size_t)devices * devices + 1, sizeof *out->crossing);
  if (!out->busy_share || !out->peak || !out->crossing) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t d = 0; d < devices; d++) {
    out->busy_share[d] = k->share ? k->share[d] : (double)NAN;
    out->peak[d] = k->peak ? k->peak[d] : 0;
  }
  TFC_TRY(s, tfc_simulate_timeline(j->simulator, k->solution.device, k->solution.rank, &t));
  for (uint32_t i = 0; i < t.transfer_count; i++)
    out->crossing[(size_t)t.transfers[i].from * devices + t.transfers[i].to] +=
        j->problem->graph->bytes[t.transfers[i].tensor];
  if (!(share = calloc(t.path_count + 1u, sizeof *share))) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  int64_t total = 0;
  for (uint32_t i = 0; i < t.path_count; i++) {
    uint32_t item = t.path[i];
    bool node = item < t.node_count;
    const struct tfc_transfer *x = node ? NULL : &t.transfers[item - t.node_count];
    tfc_str op = node ? j->o->graph->nodes[j->subject->node_of[item]].op : TFC_STR("transfers");
    int64_t ps = node ? t.end[item] - t.start[item] : x->end - x->start;
    uint32_t n = 0;
    while (n < count && !tfc_str_equal(share[n].op, op)) n++;
    if (n == count) share[count++].op = op;
    share[n].ps += ps;
    total += ps;
  }
  qsort(share, count, sizeof *share, by_share);
  for (uint32_t i = 0; i < count && i < 6 && total > 0; i++)
    tfc_text_printf(&text, "%s%.*s %.0f %%", i ? ", " : "", TFC_STR_ARG(share[i].op),
                    100 * (double)share[i].ps / (double)total);
  out->path = text.data, text.data = NULL;
out:
  tfc_text_deinit(&text);
  free(share);
  tfc_timeline_deinit(&t);
  return s;
}

// The solution with the order that it was found to fit with.
static tfc_status rank_as_run(const struct tfc_job *j, const struct tfc_job_known *k, struct tfc_solution *out) {
  tfc_status s = NULL;
  double *order = malloc((j->problem->node_count + 1u) * sizeof *order);
  uint32_t *rank = malloc((j->problem->node_count + 1u) * sizeof *rank);
  if (!order || !rank) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < j->problem->node_count; i++) order[i] = (double)NAN;
  for (uint32_t i = 0; i < k->sequence_count; i++) {
    uint32_t c = j->subject->cost_of[k->sequence[i]];
    if (c != TFC_NONE) order[c] = i;
  }
  TFC_TRY(s, tfc_rank_from_order(j->problem, order, rank));
  TFC_TRY(s, tfc_solution_copy(out, &k->solution, j->problem));
  free(out->rank);
  out->rank = rank, rank = NULL;
out:
  free(order);
  free(rank);
  return s;
}

// --- The document ----------------------------------------------------------------------------------------------------
static double time_on(const struct tfc_cost_graph *g, tfc_str node, tfc_str kind) { // NaN: not known
  for (uint32_t k = 0; g && k < g->kind_count; k++)
    for (uint32_t i = 0; i < g->node_count && tfc_str_equal(g->kind_names[k], kind); i++)
      if (tfc_str_equal(g->names[i], node)) return g->time_us[(size_t)i * g->kind_count + k];
  return NAN;
}

// What a device could not run itself says so, with its time.
static tfc_status give_fallback_reasons(const struct tfc_job *j, struct tfc_placement *d) {
  for (uint32_t i = 0; i < j->info->fallback_count; i++) {
    const struct tfc_measure_fallback *f = &j->info->fallbacks[i];
    struct tfc_placement_node *n = f->node < d->node_count ? &d->nodes[f->node] : NULL;
    bool there = false; // on a device of the kind that was asked
    for (uint32_t k = 0; n && k < d->device_count; k++)
      there |= tfc_str_equal(d->devices[k].name, n->device) && tfc_str_equal(d->devices[k].kind, d->devices[0].kind);
    if (!there) continue;
    char text[32];
    double us = time_on(j->cost_graph, n->name, d->devices[0].kind);
    n->reason = tfc_arena_printf(&d->arena, "%.*s%son the host between copies%s%s: %s", TFC_STR_ARG(n->reason),
                                 n->reason.size ? "; " : "", isfinite(us) ? ", " : "",
                                 isfinite(us) ? tfc_show_us(text, us) : "", f->reason);
    if (!n->reason.data) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  return NULL;
}

static tfc_status write_document(struct tfc_job *j, const struct tfc_job_known *k) {
  tfc_status s = NULL;
  struct tfc_placement *d = NULL;
  struct tfc_solution as_run = {0};
  struct tfc_text execution = {0};
  TFC_TRY(s, tfc_placement_create(&d));
  d->run = j->run;
  d->graph_file = tfc_arena_str(&d->arena, tfc_str_from(j->o->graph_path));
  d->objective = j->o->objective;
  double median = tfc_job_final_us(k);
  bool timed = isfinite(median);
  d->value_us = j->o->objective == TFC_OBJECTIVE_THROUGHPUT ? load_of(k) : timed ? median : k->simulated_us;
  d->value_label = j->o->objective == TFC_OBJECTIVE_THROUGHPUT && !k->in_flight.us.count ? TFC_LABEL_MODELLED
                   : timed                                                               ? tfc_measure_label(j->info)
                                                                                         : TFC_LABEL_MODELLED;
  d->feasible = k->state != TFC_RESULT_NO_FIT;
  d->transfers = k->transfers, d->transfer_bytes = k->transfer_bytes;
  const char *virtual_transfers = tfc_virtual_transfers(j->info->devices, j->info->device_count);
  if (virtual_transfers) d->virtual_transfers = tfc_str_from(virtual_transfers);
  const char *math = tfc_devices_math(j->info->devices, j->info->device_count);
  if (math) d->gpu_math = tfc_arena_str(&d->arena, tfc_str_from(math));
  tfc_execution_format(&j->o->execution, &execution);
  d->execution = tfc_arena_str(&d->arena, (tfc_str){execution.data, execution.size});
  d->step_median_us = median;
  d->step_q1_us = isfinite(k->final_us) ? k->final_q1 : k->q1_us;
  d->step_q3_us = isfinite(k->final_us) ? k->final_q3 : k->q3_us;
  d->step_count = isfinite(k->final_us) ? k->final_steps : k->steps;
  d->step_label = timed ? tfc_measure_label(j->info) : TFC_LABEL_MODELLED;
  if (isfinite(j->unordered_us)) {
    d->unordered_median_us = j->unordered_us, d->unordered_count = j->unordered_steps;
    d->unordered_q1_us = j->unordered_q1, d->unordered_q3_us = j->unordered_q3;
  }
  d->device_count = j->info->device_count;
  d->devices = TFC_ARENA_ARRAY(&d->arena, struct tfc_placement_device, d->device_count + 1u);
  if (!d->devices || !d->graph_file.data) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < d->device_count; i++) {
    const struct tfc_machine_device *m = &j->machine->devices[i];
    d->devices[i] = (struct tfc_placement_device){.name = tfc_arena_str(&d->arena, m->name),
                                                  .tensorflow = tfc_arena_str(&d->arena, m->tensorflow),
                                                  .kind = tfc_arena_str(&d->arena, m->kind),
                                                  .label = m->label,
                                                  .busy_us = k->busy_us && timed ? k->busy_us[i] : 0,
                                                  .memory = k->peak ? k->peak[i] : 0};
  }
  uint32_t rows = 0;
  d->baselines = TFC_ARENA_ARRAY(&d->arena, struct tfc_placement_baseline, j->out->row_count + 1u);
  if (!d->baselines) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < j->out->row_count; i++) {
    const struct tfc_job_row *r = &j->out->rows[i];
    if (strcmp(r->kind, "answer") == 0 || r->modelled) continue;
    d->baselines[rows++] = (struct tfc_placement_baseline){
        .name = tfc_arena_str(&d->arena, tfc_str_from(r->name)),
        .median_us = r->state == TFC_RESULT_OK || r->state == TFC_RESULT_CUT ? r->median_us : (double)NAN,
        .feasible = r->state != TFC_RESULT_NO_FIT && r->state != TFC_RESULT_ILLEGAL,
        .note = r->note ? tfc_arena_str(&d->arena, tfc_str_from(r->note)) : (tfc_str){0}};
  }
  d->baseline_count = rows;
  d->bound_us = j->out->bound_us > 0 ? j->out->bound_us : (double)NAN;
  if (j->out->bound_name) d->bound_name = tfc_arena_str(&d->arena, tfc_str_from(j->out->bound_name));
  d->algorithm = tfc_arena_str(&d->arena, tfc_str_from(k->algorithm ? k->algorithm : k->name));
  d->seed = (uint64_t)j->o->execution.seed;
  d->evaluations = j->episodes;
  if (k->sequence) TFC_TRY(s, rank_as_run(j, k, &as_run));
  TFC_TRY(s, tfc_subject_document(j->subject, j->problem, as_run.device ? &as_run : &k->solution, d));
  TFC_TRY(s, give_fallback_reasons(j, d));
  j->out->placement = d, d = NULL;
out:
  tfc_text_deinit(&execution);
  if (as_run.device) tfc_solution_deinit(&as_run);
  tfc_placement_free(d);
  return s;
}

// --- The answer ------------------------------------------------------------------------------------------------------
// What did not fit, but missed least on its worst device; NULL: nothing was measured.
static const struct tfc_job_known *nearest_fit(const struct tfc_job *j, uint32_t *out_device, uint64_t *out_missing) {
  const struct tfc_job_known *nearest = NULL;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->state != TFC_RESULT_NO_FIT || !k->solution.device || !k->peak) continue;
    uint64_t worst = 0;
    uint32_t at = 0;
    for (uint32_t d = 0; d < j->bare->device_count; d++)
      if (k->peak[d] > j->bare->devices[d].memory && k->peak[d] - j->bare->devices[d].memory > worst)
        worst = k->peak[d] - j->bare->devices[d].memory, at = d;
    if (worst && worst < least) least = worst, *out_device = at, *out_missing = worst, nearest = k;
  }
  return nearest;
}

static tfc_status say_no_fit(struct tfc_job *j) {
  char need[32], held[32];
  uint64_t limit = 0;
  for (uint32_t d = 0; d < j->bare->device_count; d++) {
    uint64_t one = j->bare->devices[d].memory;
    limit = one == TFC_NO_LIMIT || limit + one < limit ? TFC_NO_LIMIT : limit + one;
  }
  uint64_t variables = j->subject->variable_bytes, least = 0;
  uint32_t where = 0;
  const struct tfc_job_known *nearest = nearest_fit(j, &where, &least);
  char text[160] = "", a[32], b[32];
  if (nearest)
    snprintf(text, sizeof text, "; the nearest of them needs %s on %.*s, %s more than its limit",
             tfc_show_bytes(a, (double)nearest->peak[where]), TFC_STR_ARG(j->bare->devices[where].name),
             tfc_show_bytes(b, (double)least));
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                         "nothing that was tried fits: the variables alone take %s, all devices together may hold "
                         "%s%s, and a step needs room for its tensors besides%s",
                         tfc_show_bytes(need, (double)variables), tfc_show_bytes(held, (double)limit),
                         variables > limit ? ", which is too little already" : "", text);
}

// There is no answer: nothing fits, or what was tried failed in another way.
static tfc_status say_why_not(struct tfc_job *j) {
  const struct tfc_job_known *other = NULL;
  bool no_fit = false;
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (!k->solution.device) continue;
    no_fit |= k->state == TFC_RESULT_NO_FIT;
    if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL) other = k;
  }
  j->out->exit_code = no_fit || !other ? 5 : 1;
  if (j->out->exit_code == 5) return say_no_fit(j);
  return tfc_status_make(other->code == TFC_OK || other->code == TFC_CANCELLED ? TFC_ABORTED : other->code,
                         "no placement could be measured: %s", other->note ? other->note : "they failed");
}

// Pipelined, the load counts: measured with several steps in flight, where any was; else modelled from what was
// measured of operations and links. The least of what runs, and of single devices. True: measured.
static bool choose_by_load(struct tfc_job *j, const struct tfc_job_known **single) {
  bool measured = false;
  *single = NULL;
  for (uint32_t i = 0; i < j->known.count; i++)
    measured |= tfc_job_can_answer(&j->known.data[i]) && j->known.data[i].in_flight.us.count;
  j->best = UINT32_MAX;
  for (uint32_t i = 0; i < j->known.count; i++) {
    struct tfc_job_known *k = &j->known.data[i];
    if (k->solution.device && !k->in_flight.us.count)
      k->simulated_us = tfc_job_simulate(j, &k->solution); // by the costs as they are known at the end
    if (!tfc_job_can_answer(k) || (measured && !k->in_flight.us.count) || isnan(load_of(k))) continue;
    if (j->best == UINT32_MAX || !(load_of(&j->known.data[j->best]) <= load_of(k))) j->best = i;
    if (k->single && (!*single || load_of(k) < load_of(*single))) *single = k;
  }
  return measured;
}

tfc_status tfc_job_answer(struct tfc_job *j) {
  tfc_status s = NULL;
  const struct tfc_job_known *single = NULL, *whole = NULL, *best = NULL;
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->whole) whole = k;
    if (!k->single || !tfc_job_can_answer(k)) continue;
    bool final = isfinite(k->final_us), other = single && isfinite(single->final_us); // in turns counts first
    if (!single || (final == other ? tfc_job_final_us(k) < tfc_job_final_us(single) : final)) single = k;
  }
  if (j->best != UINT32_MAX && !tfc_job_can_answer(&j->known.data[j->best])) { // it failed in the final run
    const struct tfc_job_known *lost = &j->known.data[j->best];
    tfc_job_say(j, true, "the best placement could not be run once more: %s", lost->note ? lost->note : "it failed");
    j->best = UINT32_MAX;
    for (uint32_t i = 0; i < j->known.count; i++)
      if (tfc_job_can_answer(&j->known.data[i]) &&
          (j->best == UINT32_MAX || tfc_job_final_us(&j->known.data[i]) < tfc_job_final_us(&j->known.data[j->best])))
        j->best = i;
  }
  const bool loads = j->o->objective == TFC_OBJECTIVE_THROUGHPUT;
  const bool in_flight_measured = loads && choose_by_load(j, &single);
  if (j->best != UINT32_MAX) best = &j->known.data[j->best];
  j->out->measured = j->episodes;
  j->out->trace_overhead = j->trace_overhead;
  j->out->trace_told = j->trace_overhead_least > 0;
  TFC_TRY(s, tfc_job_save_problem(j));
  TFC_TRY(s, correlate(j));
  if (whole) TFC_TRY(s, add_row(j, whole, "whole", "whole", single));
  if (best) TFC_TRY(s, add_row(j, best, best->single ? best->name : "found", "answer", single));
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->single && k != best) TFC_TRY(s, add_row(j, k, k->name, "single", single));
  }
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->baseline && !k->heuristic && !k->single && !k->whole) TFC_TRY(s, add_row(j, k, k->name, "baseline", single));
  }
  for (size_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->heuristic) TFC_TRY(s, add_row(j, k, k->name, "heuristic", single));
  }
  if (!best) {
    uint32_t where;
    uint64_t missing;
    const struct tfc_job_known *nearest = nearest_fit(j, &where, &missing);
    if (nearest) TFC_TRY(s, write_document(j, nearest)); // not feasible, as it says
    s = say_why_not(j);
    goto out;
  }
  TFC_TRY(s, find_bound(j));
  TFC_TRY(s, explain(j, best));
  TFC_TRY(s, write_document(j, best));
  TFC_TRY(s, tfc_job_save_placement(j));
  const struct tfc_job_row *row = NULL;
  for (uint32_t i = 0; i < j->out->row_count; i++)
    if (strcmp(j->out->rows[i].kind, "answer") == 0) row = &j->out->rows[i];
  bool better = !single || (!best->single && isfinite(row->low) && row->low > 1);
  if (loads && !in_flight_measured) better = !single || load_of(best) < load_of(single); // modelled: no noise
  j->out->exit_code = better ? 0 : 7;
  char a[32], b[32];
  if (loads) {
    const char *name = best->single ? best->name : "Found";
    const char *load = tfc_show_us(a, load_of(best));
    j->out->first_line =
        in_flight_measured && best->single
            ? tfc_format("One device is best: on %s a step ends every %s.", name + 7, load)
        : in_flight_measured && best->in_flight.at_once < 2
            ? tfc_format("%s: one step after another, one ends every %s.", name, load)
        : in_flight_measured
            ? tfc_format("%s: with %u steps in flight one ends every %s.", name, best->in_flight.at_once, load)
            : tfc_format("%s: a load of %s a step on the busiest device (modelled from measured operations; the steps "
                         "below ran one at a time).",
                         name, load);
    double undivided = !whole || whole->state != TFC_RESULT_OK ? (double)NAN
                       : whole->in_flight.us.count             ? whole->in_flight.median_us
                                                               : tfc_job_final_us(whole);
    if (undivided < load_of(best)) {
      char *text = tfc_format("The undivided machine is fastest, one step after another: %s each. %s",
                              tfc_show_us(b, undivided), j->out->first_line ? j->out->first_line : "");
      free(j->out->first_line);
      j->out->first_line = text;
    }
    goto out;
  }
  if (whole && whole->state == TFC_RESULT_OK && tfc_job_final_us(whole) < tfc_job_final_us(best))
    j->out->first_line = tfc_format("The undivided machine is fastest: %s a step, against %s for the best placement.",
                                    tfc_show_us(a, tfc_job_final_us(whole)), tfc_show_us(b, tfc_job_final_us(best)));
  else if (best->single)
    j->out->first_line = tfc_format("One device is fastest: everything on %s, %s a step.", best->name + 7,
                                    tfc_show_us(a, tfc_job_final_us(best)));
  else
    j->out->first_line = tfc_format("Found: %s a step.", tfc_show_us(a, tfc_job_final_us(best)));
out:
  return s;
}

// --- --evaluate ------------------------------------------------------------------------------------------------------
// What --evaluate names, as a solution of the problem; the caller deinits it.
static tfc_status given(struct tfc_job *j, bool aloud, struct tfc_solution *out) {
  tfc_status s = NULL;
  const char *what = j->o->evaluate;
  struct tfc_solution solution = {0};
  struct tfc_placement *file = NULL;
  char *note = NULL;
  TFC_TRY(s, tfc_solution_init(&solution, j->problem));
  if (strcmp(what, "-") == 0) {
    TFC_TRY(s, tfc_subject_strings(j->subject, j->problem, j->o->graph, &solution, &note));
    if (note && aloud) tfc_job_say(j, true, "device strings mapped to the devices in use: %s", note);
  } else if (strncmp(what, "single:", 7) == 0) {
    TFC_TRY(s, tfc_placement_single(j->problem, tfc_str_from(what + 7), &solution));
  } else {
    TFC_TRY(s, tfc_placement_read(what, &file));
    if (aloud) tfc_job_compare_math(j, what, file);
    s = tfc_subject_resolve(j->subject, j->problem, file, &solution);
    if (s) TFC_TRY(s, tfc_status_annotate(s, "--evaluate %s", what));
  }
  *out = solution, solution = (struct tfc_solution){0};
out:
  free(note);
  tfc_placement_free(file);
  tfc_solution_deinit(&solution);
  return s;
}

tfc_status tfc_job_check_given(struct tfc_job *j) {
  struct tfc_solution solution = {0};
  TFC_RETURN_IF_ERROR(given(j, false, &solution));
  tfc_solution_deinit(&solution);
  return NULL;
}

tfc_status tfc_job_check_given_devices(struct tfc_job *j) {
  tfc_status s = NULL;
  const char *what = j->o->evaluate;
  struct tfc_placement *file = NULL;
  if (!what || strcmp(what, "-") == 0) return NULL;
  if (strncmp(what, "single:", 7) != 0) TFC_TRY(s, tfc_placement_read(what, &file));
  TFC_TRY(s, tfc_placement_check_devices(what, file, j->bare, true));
out:
  tfc_placement_free(file);
  return s;
}

tfc_status tfc_job_evaluate(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_solution solution = {0};
  uint32_t index;
  bool is_new;
  TFC_TRY(s, given(j, true, &solution));
  TFC_TRY(s, tfc_job_add(j, "evaluated", NULL, "baseline", &solution, &index, &is_new));
  j->best = UINT32_MAX;
  j->phase = TFC_JOB_FINAL;
  TFC_TRY(s, tfc_job_measure(j, &index, 1, "screen"));
  struct tfc_job_known *k = &j->known.data[index];
  if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL)
    TFC_FAIL(s, k->code == TFC_OK || k->code == TFC_CANCELLED ? TFC_ABORTED : k->code,
             "the placement could not be measured: %s", k->note ? k->note : "it failed");
  j->best = index;
  TFC_TRY(s, tfc_job_measure_in_flight(j, &index, 1, 0.9 * tfc_job_total_seconds(j)));
  k = &j->known.data[index];
  TFC_TRY(s, add_row(j, k, "evaluated", "answer", NULL));
  TFC_TRY(s, explain(j, k));
  TFC_TRY(s, write_document(j, k));
  TFC_TRY(s, tfc_job_save_problem(j));
  TFC_TRY(s, tfc_job_save_placement(j));
  j->out->exit_code = k->state == TFC_RESULT_NO_FIT ? 5 : 0;
out:
  tfc_solution_deinit(&solution);
  return s;
}
