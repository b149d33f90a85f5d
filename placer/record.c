#include "placer/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "placer/simulate/simulate.h"
#include "profiler/idle.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"

struct writer {
  const struct tfc_record *r;
  const struct tfc_problem *p;
  struct tfc_store *store;
  int64_t run, answer_key;
  struct tfc_timeline timeline;
  struct tfc_verdict verdict;
  bool step; // the objective
};

static int64_t ns(int64_t ps) {
  return ps / 1000;
}

static tfc_status add_devices(const struct writer *w) {
  const struct tfc_machine *m = w->p->machine;
  tfc_status s = NULL;
  for (uint32_t d = 0; d < w->p->device_count && !s; d++) {
    const struct tfc_machine_device *x = &m->devices[d];
    char *name = tfc_str_dup(x->name), *kind = tfc_str_dup(x->kind),
         *tensorflow = x->tensorflow.data ? tfc_str_dup(x->tensorflow) : NULL;
    struct tfc_store_device row = {.device_id = d,
                                   .name = name,
                                   .kind = kind,
                                   .tensorflow = tensorflow,
                                   .label = tfc_label_name(TFC_LABEL_MODELLED),
                                   .memory_space = d,
                                   .memory_limit = x->memory,
                                   .dispatch_us = x->dispatch_us};
    s = name && kind ? tfc_store_add_devices(w->store, w->run, &row, 1) : tfc_status_no_memory("a report");
    free(name), free(kind), free(tensorflow);
  }
  return s;
}

static tfc_status add_graph(const struct writer *w) {
  const struct tfc_cost_graph *g = w->p->graph;
  tfc_status s = NULL;
  struct tfc_store_edge *edges = calloc(g->consumer_count + 1u, sizeof *edges);
  char *kind = NULL;
  if (!edges) return tfc_status_no_memory("a report");
  for (uint32_t n = 0; n < g->node_count; n++) {
    uint64_t bytes = 0;
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) bytes += g->bytes[t];
    struct tfc_store_node row = {.node_id = n,
                                 .name = g->names[n],
                                 .op = w->r->ops ? w->r->ops[n] : TFC_STR(""),
                                 .unit_id = w->p->unit[n],
                                 .flops = w->r->flops ? w->r->flops[n] : (double)NAN,
                                 .bytes_touched = w->r->bytes ? w->r->bytes[n] : (double)NAN,
                                 .memory = g->memory[n],
                                 .output_bytes = bytes};
    TFC_TRY(s, tfc_store_add_nodes(w->store, w->run, &row, 1));
  }
  for (uint32_t t = 0; t < g->tensor_count; t++)
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
      edges[c] = (struct tfc_store_edge){g->producer[t], g->output[t], g->consumer[c], g->bytes[t]};
  TFC_TRY(s, tfc_store_add_edges(w->store, w->run, edges, g->consumer_count));
  for (uint32_t k = 0; k < g->kind_count; k++) {
    free(kind);
    if (!(kind = tfc_str_dup(g->kind_names[k]))) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a report");
    for (uint32_t n = 0; n < g->node_count; n++) {
      const double us = g->time_us[(size_t)n * g->kind_count + k];
      if (!isnan(us))
        TFC_TRY(s, tfc_store_add_costs(w->store, w->run, &(struct tfc_store_cost){n, kind, us, us, us, us, 0}, 1));
    }
  }
out:
  free(kind);
  free(edges);
  return s;
}

// --- Placements ------------------------------------------------------------------------------------------------------

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
  return s;
}

// Adds a row for another placement. If the objective is the step, `us` goes into the columns of step times; a load is
// only written into the message, because those columns are for steps.
static tfc_status add_other(const struct writer *w, int64_t id, const char *role, const char *name,
                            const char *algorithm, double us, const char *state, const char *note,
                            const tfc_device_id *devices) {
  char said[160], time[32];
  int64_t key;
  said[0] = 0;
  if (!w->step && us == us) snprintf(said, sizeof said, "load %s", tfc_show_us(time, us));
  if (note && *note) snprintf(said + strlen(said), sizeof said - strlen(said), "%s%s", *said ? ", " : "", note);
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
                                          .message = *said ? said : NULL};
  return tfc_store_add_placement(w->store, w->run, &row, devices, devices ? w->p->unit_count : 0, &key);
}

static tfc_status add_others(const struct writer *w) {
  const struct tfc_placement *f = w->r->document;
  int64_t id = 1;
  for (uint32_t i = 0; i < f->baseline_count; i++) {
    const struct tfc_placement_baseline *b = &f->baselines[i];
    char *name = tfc_str_dup(b->name), *note = tfc_str_dup(b->note);
    const bool expert = w->r->expert && tfc_str_is(b->name, "expert");
    tfc_status s = !name || !note ? tfc_status_no_memory("a report")
                                  : add_other(w, id++, "baseline", name, NULL, b->median_us,
                                              b->median_us != b->median_us ? "illegal"
                                              : b->feasible                ? "ok"
                                                                           : "no fit",
                                              note, expert ? w->r->expert->device : NULL);
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
    TFC_RETURN_IF_ERROR(add_other(w, id++, "heuristic", e->algorithm, e->algorithm,
                                  legal ? (double)e->value * 1e-6 : (double)NAN,
                                  !legal && e->note ? "not tried"
                                  : !legal          ? "illegal"
                                  : e->excess       ? "no fit"
                                                    : "modelled",
                                  note, NULL));
  }
  return NULL;
}

// --- The operations of the answer's step ---------------------------------------------------------------------------

static int earlier(const void *a, const void *b) {
  const struct tfc_profile_transfer *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
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
    out->ops.data[t->sequence[n]] = (struct tfc_profile_op){start, took, n, device, -1, -1};
    busy->operations++, busy->operations_ns += took, busy->busy_ns += took;
    if (start + took > out->duration_ns) out->duration_ns = start + took;
  }
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const int64_t start = ns(t->transfers[i].start);
    out->transfers.data[i] = (struct tfc_profile_transfer){
        .start_ns = start, .duration_ns = ns(t->transfers[i].end) - start, .device = t->transfers[i].to};
  }
  if (t->transfer_count) qsort(out->transfers.data, t->transfer_count, sizeof *out->transfers.data, earlier);
  return tfc_idle_find(out);
}

static tfc_status add_operations(const struct writer *w) {
  const struct tfc_timeline *t = &w->timeline;
  const struct tfc_cost_graph *g = w->p->graph;
  tfc_status s = NULL;
  struct tfc_step_profile step = {0};
  struct tfc_store_op_total *totals = calloc(t->node_count + 1u, sizeof *totals);
  if (!totals) return tfc_status_no_memory("a report");
  TFC_TRY(s, fill_profile(w, &step));
  for (uint32_t i = 0; i < t->node_count; i++) {
    const struct tfc_profile_op *o = &step.ops.data[i];
    totals[i] = (struct tfc_store_op_total){o->node, o->device, 1, o->duration_ns, o->duration_ns, o->duration_ns};
    const struct tfc_store_op row = {0, i, o->node, o->device, o->start_ns, o->duration_ns, -1, 0};
    TFC_TRY(s, tfc_store_add_ops(w->store, w->answer_key, &row, 1));
  }
  TFC_TRY(s, tfc_store_add_op_totals(w->store, w->answer_key, totals, t->node_count));
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const struct tfc_transfer *x = &t->transfers[i];
    const struct tfc_store_transfer row = {.position = i,
                                           .node_id = g->producer[x->tensor],
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
    TFC_RETURN_IF_ERROR(
        tfc_store_add_memory(w->store, w->answer_key, &(struct tfc_store_memory){d, w->verdict.memory[d]}, 1));
  return traced ? add_operations(w) : NULL;
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
  TFC_TRY(s, tfc_store_finish_run(w->store, w->run,
                                  &(struct tfc_store_answer){.state = "done",
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

tfc_status tfc_record_write(const struct tfc_record *r, struct tfc_store *store, int64_t *out_run) {
  const struct tfc_problem *p = r->problem;
  struct writer w = {.r = r, .p = p, .store = store, .step = p->objective == TFC_OBJECTIVE_STEP};
  struct tfc_simulator *simulator = NULL;
  tfc_status s = NULL;
  if (!(w.verdict.memory = calloc(p->device_count + 1u, sizeof *w.verdict.memory)))
    return tfc_status_no_memory("a report");
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  tfc_simulate(simulator, r->answer->device, r->answer->rank, TFC_TIME_MAX, &w.verdict);
  TFC_TRY(s, tfc_simulate_timeline(simulator, r->answer->device, r->answer->rank, &w.timeline));
  TFC_TRY(s, tfc_store_begin(store));
  TFC_TRY(s, tfc_store_add_run(store,
                               &(struct tfc_store_run){.program = "tfc-place",
                                                       .command = r->command,
                                                       .graph = r->graph,
                                                       .graph_nodes = (int64_t)r->document->graph_nodes,
                                                       .objective = tfc_objective_name(p->objective),
                                                       .seed = r->document->seed,
                                                       .label = tfc_label_name(TFC_LABEL_MODELLED)},
                               &w.run));
  TFC_TRY(s, add_devices(&w));
  TFC_TRY(s, add_graph(&w));
  TFC_TRY(s, add_answer(&w));
  TFC_TRY(s, add_others(&w));
  TFC_TRY(s, add_step(&w));
  TFC_TRY(s, finish(&w));
  TFC_TRY(s, tfc_store_commit(store));
  *out_run = w.run;
out:
  if (s) tfc_store_rollback(store);
  tfc_timeline_deinit(&w.timeline);
  tfc_simulator_free(simulator);
  free(w.verdict.memory);
  return s;
}
