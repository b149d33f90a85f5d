#include "placer/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/placement_json.h"
#include "placer/model/rows.h"
#include "placer/search/rivals.h"
#include "placer/simulate/simulate.h"
#include "placer/simulate/single_moves.h"
#include "profiler/idle.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "runtime/base/units.h"

struct writer {
  const struct tfc_record *r;
  const struct tfc_problem *p;
  struct tfc_store *store;
  int64_t run, answer_key;
  struct tfc_timeline timeline;
  struct tfc_verdict verdict;
  bool step; // the objective
  bool kept; // the database is a file
};

static int64_t ns(int64_t ps) {
  return ps / 1000;
}

static uint32_t node_id(const struct writer *w, uint32_t node) {
  return w->r->graph_rows ? w->r->graph_rows->subject->node_of[node] : node;
}

static tfc_status add_problem(const struct writer *w) {
  const struct tfc_subject_rows *rows = w->r->graph_rows;
  TFC_RETURN_IF_ERROR(tfc_problem_write_devices(w->p, TFC_LABEL_MODELLED, w->store, w->run));
  TFC_RETURN_IF_ERROR(tfc_problem_write_links(w->p, w->store, w->run));
  TFC_RETURN_IF_ERROR(rows ? tfc_subject_write_rows(rows, w->store, w->run)
                           : tfc_problem_write_graph(w->p, w->store, w->run));
  return tfc_problem_write_costs(w->p, rows ? rows->subject->node_of : NULL, w->store, w->run);
}

// --- Placements ------------------------------------------------------------------------------------------------------

static tfc_status add_loads(const struct writer *w) {
  const struct tfc_placement *f = w->r->document;
  double *us = calloc(f->device_count + 1u, sizeof *us);
  if (!us) return tfc_status_no_memory("a report");
  for (uint32_t d = 0; d < f->device_count; d++) us[d] = f->devices[d].busy_us; // under throughput, the load
  const struct tfc_store_load load = {.load_us = f->value_us, .device_us = us, .device_count = f->device_count};
  tfc_status s = tfc_store_add_load(w->store, w->answer_key, &load);
  free(us);
  return s;
}

static tfc_status add_answer(struct writer *w) {
  const struct tfc_placement *f = w->r->document;
  char *algorithm = tfc_str_dup(f->algorithm.data ? f->algorithm : TFC_STR("given"));
  if (!algorithm) return tfc_status_no_memory("a report");
  const struct tfc_store_placement row = {.placement_id = 0,
                                          .role = "heuristic",
                                          .name = algorithm,
                                          .algorithm = algorithm,
                                          .episode = -1,
                                          .state = "ok",
                                          .label = tfc_label_name(TFC_LABEL_MODELLED),
                                          .simulated_us = f->step_median_us,
                                          .median_us = f->step_median_us,
                                          .q1_us = (double)NAN,
                                          .q3_us = (double)NAN,
                                          .ratio = (double)NAN,
                                          .reward = (double)NAN,
                                          .transfers = w->verdict.transfers,
                                          .transfer_bytes = w->verdict.transfer_bytes,
                                          .message = f->feasible ? NULL : "does not fit in memory"};
  tfc_status s =
      tfc_store_add_placement(w->store, w->run, &row, w->r->answer->device, w->p->unit_count, &w->answer_key);
  free(algorithm);
  if (!s && !w->step) s = add_loads(w);
  if (s || !w->r->search) return s;
  const struct tfc_store_policy_search policy = tfc_search_account_row(&w->r->search->learned);
  return policy.samples ? tfc_store_add_policy_search(w->store, w->answer_key, &policy) : NULL;
}

// Adds a row for another placement. If the objective is the step, `us` goes into the columns of step times; otherwise
// it is a load.
static tfc_status add_other(const struct writer *w, int64_t id, const char *role, const char *name,
                            const char *algorithm, double us, const char *state, const char *note,
                            const tfc_device_id *devices) {
  int64_t key;
  const double step = w->step ? us : (double)NAN;
  const bool baseline = strcmp(role, "baseline") == 0;
  const struct tfc_store_placement row = {.placement_id = id,
                                          .role = role,
                                          .name = name,
                                          .algorithm = algorithm,
                                          .episode = -1,
                                          .state = state,
                                          .label = tfc_label_name(TFC_LABEL_MODELLED),
                                          .simulated_us = step,
                                          .median_us = baseline ? step : (double)NAN,
                                          .q1_us = (double)NAN,
                                          .q3_us = (double)NAN,
                                          .ratio = (double)NAN,
                                          .reward = (double)NAN,
                                          .transfers = UINT64_MAX,
                                          .transfer_bytes = UINT64_MAX,
                                          .message = note && *note ? note : NULL};
  TFC_RETURN_IF_ERROR(tfc_store_add_placement(w->store, w->run, &row, devices, devices ? w->p->unit_count : 0, &key));
  return w->step || us != us ? NULL : tfc_store_add_load(w->store, key, &(struct tfc_store_load){.load_us = us});
}

// Returns the device of each unit under a baseline of the document. NULL: it is not known, or is not stored, because
// the graph is too large, or because the database is only in memory: its one reader is the page, which shows no
// baseline's devices but the expert's. `single` [unit_count]: memory for the result if the baseline is one device.
static const tfc_device_id *devices_of(const struct writer *w, uint32_t baseline, tfc_device_id *single) {
  const struct tfc_placement *f = w->r->document;
  const tfc_str name = f->baselines[baseline].name;
  const uint32_t own = f->baseline_count - w->r->given_count; // the baselines that are not from files
  if (w->p->node_count > TFC_RECORD_MOST) return NULL;
  if (!w->kept && !tfc_str_is(name, "expert")) return NULL;
  if (baseline >= own) return w->r->given[baseline - own].solution.device;
  if (tfc_str_is(name, "expert")) return w->r->expert ? w->r->expert->device : NULL;
  if (!tfc_str_starts(name, "single:")) return NULL;
  const uint32_t device = tfc_machine_find(w->p->machine, tfc_str_sub(name, strlen("single:"), SIZE_MAX));
  if (device == TFC_NONE) return NULL;
  for (uint32_t u = 0; u < w->p->unit_count; u++) single[u] = (tfc_device_id)device;
  return single;
}

static tfc_status add_others(const struct writer *w, tfc_device_id *single) {
  const struct tfc_placement *f = w->r->document;
  int64_t id = 1;
  for (uint32_t i = 0; i < f->baseline_count; i++) {
    const struct tfc_placement_baseline *b = &f->baselines[i];
    char *name = tfc_str_dup(b->name), *note = tfc_str_dup(b->note);
    tfc_status s = !name || !note ? tfc_status_no_memory("a report")
                                  : add_other(w, id++, "baseline", name, NULL, b->median_us,
                                              b->median_us != b->median_us ? "illegal"
                                              : b->feasible                ? "ok"
                                                                           : "no fit",
                                              note, devices_of(w, i, single));
    free(name), free(note);
    TFC_RETURN_IF_ERROR(s);
  }
  for (uint32_t i = 0; w->r->search && i < w->r->search->entry_count; i++) {
    const struct tfc_search_entry *e = &w->r->search->entries[i];
    char note[128];
    const bool legal = e->value != TFC_TIME_MAX;
    if (!legal && e->note)
      snprintf(note, sizeof note, "%s", e->note);
    else
      snprintf(note, sizeof note, "%llu evaluation%s, %.2f s%s%s", (unsigned long long)e->evaluations,
               e->evaluations == 1 ? "" : "s", e->seconds,
               e->note ? ": "
               : legal ? ""
                       : ": nothing legal",
               e->note ? e->note : "");
    TFC_RETURN_IF_ERROR(
        add_other(w, id++, "heuristic", e->algorithm, e->algorithm, legal ? (double)e->value * 1e-6 : (double)NAN,
                  !legal && e->note ? "not tried"
                  : !legal          ? "illegal"
                  : e->excess       ? "no fit"
                                    : "modelled",
                  note, legal && w->kept && w->p->node_count <= TFC_RECORD_MOST ? e->solution.device : NULL));
  }
  return NULL;
}

// --- The operations of the answer's step ---------------------------------------------------------------------------

static int earlier(const void *a, const void *b) {
  const struct tfc_profile_transfer *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

// Whether a node of the problem is an operation; in TensorFlow graphs some are variables, which hold memory only.
static bool is_operation(const struct writer *w, uint32_t node) {
  return !w->r->graph_rows || w->r->graph_rows->subject->runs[node];
}

// Makes a profile of the simulated step, like that of a measured step.
static tfc_status fill_profile(const struct writer *w, struct tfc_step_profile *out) {
  const struct tfc_timeline *t = &w->timeline;
  if (!tfc_array_resize(&out->ops, t->node_count) || !tfc_array_resize(&out->transfers, t->transfer_count) ||
      !tfc_array_resize(&out->busy, w->p->device_count))
    return tfc_status_no_memory("a report");
  for (uint32_t d = 0; d < w->p->device_count; d++) out->busy.data[d] = (struct tfc_profile_busy){0};
  for (uint32_t n = 0; n < t->node_count; n++) {
    const uint32_t device = w->r->answer->device[w->p->unit[n]];
    const int64_t start = ns(t->start[n]), took = ns(t->end[n]) - start;
    struct tfc_profile_busy *busy = &out->busy.data[device];
    out->ops.data[t->sequence[n]] =
        (struct tfc_profile_op){start, took, is_operation(w, n) ? node_id(w, n) : TFC_NONE, device, -1, -1};
    if (!is_operation(w, n)) continue;
    busy->operations++, busy->operations_ns += took, busy->busy_ns += took;
    if (start + took > out->duration_ns) out->duration_ns = start + took;
  }
  size_t kept = 0;
  for (uint32_t i = 0; i < t->node_count; i++)
    if (out->ops.data[i].node != TFC_NONE) out->ops.data[kept++] = out->ops.data[i];
  out->ops.count = kept;
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const int64_t start = ns(t->transfers[i].start);
    out->transfers.data[i] = (struct tfc_profile_transfer){
        .start_ns = start, .duration_ns = ns(t->transfers[i].end) - start, .device = t->transfers[i].to};
  }
  if (t->transfer_count) qsort(out->transfers.data, t->transfer_count, sizeof *out->transfers.data, earlier);
  return tfc_idle_find(out, 0);
}

static tfc_status add_operations(const struct writer *w) {
  const struct tfc_timeline *t = &w->timeline;
  const struct tfc_cost_graph *g = w->p->graph;
  tfc_status s = NULL;
  struct tfc_step_profile step = {0};
  struct tfc_store_op_total *totals = calloc(t->node_count + 1u, sizeof *totals);
  if (!totals) return tfc_status_no_memory("a report");
  TFC_TRY(s, fill_profile(w, &step));
  for (uint32_t i = 0; i < step.ops.count; i++) {
    const struct tfc_profile_op *o = &step.ops.data[i];
    totals[i] = (struct tfc_store_op_total){o->node, o->device, 1, o->duration_ns, o->duration_ns, o->duration_ns};
    const struct tfc_store_op row = {0, i, o->node, o->device, o->start_ns, o->duration_ns, -1, 0};
    TFC_TRY(s, tfc_store_add_ops(w->store, w->answer_key, &row, 1));
  }
  TFC_TRY(s, tfc_store_add_op_totals(w->store, w->answer_key, totals, step.ops.count));
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const struct tfc_transfer *x = &t->transfers[i];
    const struct tfc_store_transfer row = {.position = i,
                                           .node_id = node_id(w, g->producer[x->tensor]),
                                           .output = g->output[x->tensor],
                                           .source = x->from,
                                           .target = x->to,
                                           .bytes = g->bytes[x->tensor],
                                           .start_ns = ns(x->start),
                                           .duration_ns = ns(x->end) - ns(x->start)};
    TFC_TRY(s, tfc_store_add_transfers(w->store, w->answer_key, &row, 1));
  }
  for (uint32_t d = 0; d < w->p->device_count; d++) {
    const struct tfc_store_busy row = tfc_store_busy_of(0, d, &step.busy.data[d]);
    TFC_TRY(s, tfc_store_add_busy(w->store, w->answer_key, &row, 1));
  }
out:
  tfc_step_profile_deinit(&step);
  free(totals);
  return s;
}

static tfc_status add_step(const struct writer *w) {
  const bool traced = w->p->node_count <= TFC_RECORD_MOST;
  int64_t end = 0;
  for (uint32_t n = 0; n < w->p->node_count; n++)
    if (w->timeline.end[n] > end) end = w->timeline.end[n];
  // A step whose operations all take no time has a duration, too: the database has none of 0.
  const int64_t duration = ns(end + 999);
  const struct tfc_store_step step = {.phase = "simulated", .traced = traced, .duration_ns = duration ? duration : 1};
  TFC_RETURN_IF_ERROR(tfc_store_add_steps(w->store, w->answer_key, &step, 1));
  for (uint32_t d = 0; d < w->p->device_count; d++)
    TFC_RETURN_IF_ERROR(tfc_store_add_memory(
        w->store, w->answer_key, &(struct tfc_store_memory){d, w->verdict.memory[d], !w->step || !w->p->has_live}, 1));
  return traced ? add_operations(w) : NULL;
}

static tfc_status add_moves(const struct writer *w) {
  struct tfc_single_moves moves = {0};
  tfc_status s = NULL;
  if (w->p->node_count > TFC_RECORD_MOST) return NULL; // its nodes' names are not shown either
  TFC_TRY(s, tfc_single_moves_find(w->p, w->r->answer, &moves));
  TFC_TRY(s, tfc_single_moves_write(&moves, w->p, w->r->graph_rows ? w->r->graph_rows->subject->node_of : NULL,
                                    w->store, w->answer_key));
out:
  tfc_single_moves_deinit(&moves);
  return s;
}

// Tells why the search ended, and what became of the best placement that it saw.
static void tell_ending(const struct tfc_record *r, struct tfc_text *out) {
  const struct tfc_search_outcome *found = r->search;
  const struct tfc_search_options *o = r->options;
  char a[32], b[32];
  if (!found || !o) {
    tfc_text_printf(out, "It simulated the placement that it was given, without a search.");
    return;
  }
  const unsigned long long evaluated = found->evaluations;
  if (found->optimal)
    tfc_text_printf(out, "It ended after %s and %llu evaluations: the answer equals the lower bound.",
                    tfc_show_us(a, 1e6 * found->seconds), evaluated);
  else if (o->evaluations)
    tfc_text_printf(out, "It ended after %s with %llu of its %llu evaluations.", tfc_show_us(a, 1e6 * found->seconds),
                    evaluated, (unsigned long long)o->evaluations);
  else if (o->seconds > 0)
    tfc_text_printf(out, "It searched for %s of its %s and evaluated %llu placements.",
                    tfc_show_us(a, 1e6 * found->seconds), tfc_show_us(b, 1e6 * o->seconds), evaluated);
  else
    tfc_text_printf(out, "It ended after %s and %llu evaluations.", tfc_show_us(a, 1e6 * found->seconds), evaluated);
  tfc_text_printf(out,
                  found->excess ? " Nothing that it tried fits in memory: the answer, by %s, exceeds the limits least."
                                : " The best placement that it saw, by %s, is the answer.",
                  found->algorithm);
}

static tfc_status add_account(const struct writer *w) {
  struct tfc_text ending = {0}, learning = {0};
  tfc_status s = NULL;
  tell_ending(w->r, &ending);
  if (w->r->search) tfc_search_account_tell(&w->r->search->learned, &learning);
  if (ending.failed || learning.failed) TFC_TRY(s, tfc_status_no_memory("a report"));
  TFC_TRY(s, tfc_store_set_state(w->store, w->run, "ending", (tfc_str){ending.data, ending.size}));
  if (learning.size)
    TFC_TRY(s, tfc_store_set_state(w->store, w->run, "learning", (tfc_str){learning.data, learning.size}));
out:
  tfc_text_deinit(&ending);
  tfc_text_deinit(&learning);
  return s;
}

static tfc_status finish(const struct writer *w) {
  const struct tfc_placement *f = w->r->document;
  tfc_status s = NULL;
  struct tfc_text document = {0};
  char *bound = f->bound_name.data ? tfc_str_dup(f->bound_name) : NULL,
       *algorithm = tfc_str_dup(f->algorithm.data ? f->algorithm : TFC_STR("given"));
  double single = (double)NAN;
  for (uint32_t i = 0; i < f->baseline_count; i++)
    if (tfc_str_starts(f->baselines[i].name, "single:") && f->baselines[i].feasible)
      single = fmin(single, f->baselines[i].median_us);
  TFC_TRY(s, tfc_placement_format(f, &document));
  TFC_TRY(s, tfc_store_finish_run(
                 w->store, w->run,
                 &(struct tfc_store_answer){.state = w->r->search && w->r->search->cancelled ? "interrupted" : "done",
                                            .exit_code = w->r->exit_code,
                                            .algorithm = algorithm,
                                            .placement_id = 0,
                                            .speedup = single / f->value_us,
                                            .speedup_low = (double)NAN,
                                            .speedup_high = (double)NAN,
                                            .bound_us = f->bound_us,
                                            .bound_name = bound,
                                            .trace_overhead = (double)NAN,
                                            .tau = (double)NAN,
                                            .document = document.data,
                                            .message = w->r->message}));
out:
  tfc_text_deinit(&document);
  free(bound);
  free(algorithm);
  return s;
}

double tfc_record_leaves(double seconds, uint32_t node_count) {
  return seconds > 0 ? fmax(0.5 * seconds, seconds - 1.5 - 4e-5 * node_count) : seconds;
}

static tfc_status add_run(struct writer *w) {
  const struct tfc_record *r = w->r;
  if (w->run) return tfc_store_set_graph_nodes(w->store, w->run, (int64_t)r->document->graph_nodes);
  return tfc_store_add_run(w->store,
                           &(struct tfc_store_run){.program = "tfc-place",
                                                   .command = r->command,
                                                   .graph = r->graph,
                                                   .graph_nodes = (int64_t)r->document->graph_nodes,
                                                   .objective = tfc_objective_name(w->p->objective),
                                                   .seed = r->document->seed,
                                                   .label = tfc_label_name(TFC_LABEL_MODELLED)},
                           &w->run);
}

tfc_status tfc_record_write(const struct tfc_record *r, struct tfc_store *store, int64_t *run) {
  const struct tfc_problem *p = r->problem;
  struct writer w = {.r = r,
                     .p = p,
                     .store = store,
                     .run = *run,
                     .step = p->objective == TFC_OBJECTIVE_STEP,
                     .kept = *tfc_store_path(store) != 0};
  struct tfc_simulator *simulator = NULL;
  tfc_device_id *single = calloc(p->unit_count + 1u, sizeof *single);
  tfc_status s = NULL;
  w.verdict.memory = calloc(p->device_count + 1u, sizeof *w.verdict.memory);
  if (!single || !w.verdict.memory) TFC_TRY(s, tfc_status_no_memory("a report"));
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  tfc_simulate(simulator, r->answer->device, r->answer->rank, TFC_TIME_MAX, &w.verdict);
  TFC_TRY(s, tfc_simulate_timeline(simulator, r->answer->device, r->answer->rank, &w.timeline));
  TFC_TRY(s, w.run ? tfc_store_begin_again(store, w.run) : tfc_store_begin(store));
  TFC_TRY(s, add_run(&w));
  TFC_TRY(s, add_problem(&w));
  TFC_TRY(s, add_answer(&w));
  TFC_TRY(s, add_others(&w, single));
  TFC_TRY(s, add_step(&w));
  TFC_TRY(s, add_moves(&w));
  TFC_TRY(s, add_account(&w));
  TFC_TRY(s, finish(&w));
  TFC_TRY(s, tfc_store_commit(store));
  *run = w.run;
out:
  if (s) tfc_store_rollback(store);
  tfc_timeline_deinit(&w.timeline);
  tfc_simulator_free(simulator);
  free(w.verdict.memory);
  free(single);
  return s;
}
