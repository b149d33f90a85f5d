// What a job writes to the database, and what it reads from it to go on. One transaction for each measured placement,
// while the worker waits: never inside a timed step.
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "profiler/statistics.h"
#include "runtime/base/units.h"

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

// --- Graph, devices, costs -------------------------------------------------------------------------------------------
static tfc_status store_devices(struct tfc_job *j) {
  for (uint32_t d = 0; d <= j->info->device_count; d++) {
    bool whole = d == j->info->device_count;
    const struct tfc_device_info *i = whole ? &j->info->whole : &j->info->devices[d];
    struct tfc_text slowdown = {0};
    struct tfc_store_device row = {.device_id = d,
                                   .name = whole ? "whole" : i->name,
                                   .kind = i->kind,
                                   .model = i->model,
                                   .tensorflow = i->tensorflow,
                                   .label = i->label,
                                   .cores = i->cores,
                                   .memory_space = i->address_space,
                                   .math = i->math[0] ? i->math : NULL,
                                   .memory_limit = whole ? i->memory : j->bare->devices[d].memory,
                                   .dispatch_us = (double)NAN};
    if (!whole) {
      double factors[TFC_MAX_DEVICES];
      tfc_calibration_slowdown(&j->calibration, j->kind_of_device[d], factors);
      for (uint32_t k = 0; k < j->info->device_count; k++)
        tfc_text_printf(&slowdown, "%s%.4f", k ? ", " : "[", factors[k]);
      tfc_text_printf(&slowdown, "]");
      row.dispatch_us = j->calibration.kinds[j->kind_of_device[d]].dispatch_us;
      row.slowdown = slowdown.data;
    }
    tfc_status s = tfc_store_add_devices(j->store, j->run, &row, 1);
    tfc_text_deinit(&slowdown);
    if (s) return s;
  }
  return NULL;
}

tfc_status tfc_job_store_subject(struct tfc_job *j) {
  tfc_status s = NULL;
  const struct tfc_graph *g = j->o->graph;
  struct tfc_store_node *nodes = calloc(g->node_count + 1u, sizeof *nodes);
  struct tfc_store_edge *edges = calloc(j->subject->edge_count + 1u, sizeof *edges);
  if (!nodes || !edges) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n->output_count && n->output_begin + k < j->info->output_count; k++)
      bytes += j->info->output_bytes[n->output_begin + k];
    uint32_t anchor = j->subject->needed[i] ? j->subject->anchor[i] : TFC_NONE;
    nodes[i] = (struct tfc_store_node){
        .node_id = i,
        .name = n->name,
        .op = n->op,
        .unit_id = anchor == TFC_NONE ? UINT32_MAX : j->problem->unit[anchor],
        .flops = (double)NAN,
        .bytes_touched = (double)NAN,
        .memory = j->subject->cost_of[i] == TFC_NONE ? 0 : j->subject->memory[j->subject->cost_of[i]],
        .output_bytes = bytes};
  }
  for (uint32_t e = 0; e < j->subject->edge_count; e++) {
    const struct tfc_subject_edge *edge = &j->subject->edges[e];
    edges[e] = (struct tfc_store_edge){j->subject->node_of[edge->from], edge->output, j->subject->node_of[edge->to],
                                       edge->bytes};
  }
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_set_label(j->store, j->run, j->label));
  TFC_TRY(s, tfc_store_add_nodes(j->store, j->run, nodes, g->node_count));
  TFC_TRY(s, tfc_store_add_edges(j->store, j->run, edges, j->subject->edge_count));
  TFC_TRY(s, store_devices(j));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  free(nodes);
  free(edges);
  return s;
}

tfc_status tfc_job_store_costs(struct tfc_job *j) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, store_devices(j));
  for (uint32_t i = 0; i < j->calibration.link_count; i++) {
    const struct tfc_link_time *t = &j->calibration.links[i];
    struct tfc_store_link row = {t->source, t->target, t->bytes, t->time_us, t->samples};
    TFC_TRY(s, tfc_store_add_links(j->store, j->run, &row, 1));
  }
  for (uint32_t c = 0; c < j->subject->cost_count; c++) {
    for (uint32_t k = 0; k < j->subject->kind_count && j->subject->runs[c]; k++) {
      struct tfc_cost cost = tfc_cost_table_get(j->costs, j->subject->node_of[c], k);
      if (!cost.samples) continue;
      char kind[32];
      snprintf(kind, sizeof kind, "%.*s", TFC_STR_ARG(j->subject->kinds[k]));
      struct tfc_store_cost row = {j->subject->node_of[c], kind,        cost.median_us, cost.q1_us, cost.q3_us,
                                   cost.fastest_us,        cost.samples};
      TFC_TRY(s, tfc_store_add_costs(j->store, j->run, &row, 1));
    }
  }
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  return s;
}

// --- Measurements ----------------------------------------------------------------------------------------------------
static const char *state_name(tfc_result_state state) {
  static const char *const names[] = {"ok", "cut", "no fit", "illegal", "failed"};
  return names[state];
}

static tfc_status store_placement(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m) {
  tfc_status s = NULL;
  uint16_t *device = NULL;
  uint32_t units = j->problem->unit_count;
  if (!(device = calloc(units + 1u, sizeof *device))) return no_memory();
  for (uint32_t u = 0; u < units; u++)
    device[u] = k->solution.device ? k->solution.device[u] : (uint16_t)j->info->device_count;
  k->placement_id = j->next_id++;
  bool candidate = !k->baseline;
  bool timed = isfinite(k->median_us);
  struct tfc_store_placement row = {.placement_id = k->placement_id,
                                    .role = k->role,
                                    .name = k->name,
                                    .algorithm = k->algorithm,
                                    .episode = candidate && m ? (int64_t)++j->episodes : -1,
                                    .digest = k->digest,
                                    .state = m ? state_name(k->state) : "modelled",
                                    .label = m ? j->label : "modelled",
                                    .simulated_us = k->simulated_us,
                                    .median_us = k->median_us,
                                    .q1_us = k->q1_us,
                                    .q3_us = k->q3_us,
                                    .steps = k->steps,
                                    .ratio = m ? k->ratio : (double)NAN,
                                    .reward = timed && k->state == TFC_RESULT_OK ? -k->median_us : (double)NAN,
                                    .cost_s = m ? m->seconds : (double)NAN,
                                    .at_s = tfc_job_seconds(j),
                                    .transfers = k->transfers,
                                    .transfer_bytes = k->transfer_bytes,
                                    .message = k->note};
  s = tfc_store_add_placement(j->store, j->run, &row, k->whole || k->solution.device ? device : NULL, units, &k->key);
  free(device);
  return s;
}

// Rows of the steps that were timed; operations only of traced ones.
static tfc_status store_steps(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m,
                              const char *phase) {
  tfc_status s = NULL;
  uint32_t *number = calloc(m->step_count + 1u, sizeof *number);
  TFC_ARRAY(struct tfc_store_op) ops = {0};
  TFC_ARRAY(struct tfc_store_transfer) transfers = {0};
  uint32_t on_whole = k->whole ? j->info->device_count : 0;
  if (!number) return no_memory();
  for (uint32_t i = 0; i < m->step_count; i++) {
    const struct tfc_measured_step *t = &m->steps[i];
    number[i] = k->next_step;
    if (t->warmup) continue;
    struct tfc_store_step row = {k->next_step++, phase, t->block, t->traced, t->start_ns, t->duration_ns};
    TFC_TRY(s, tfc_store_add_steps(j->store, k->key, &row, 1));
  }
  for (uint32_t i = 0; i < m->profile_count; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    uint32_t step = number[m->profile_step[i]];
    for (size_t d = 0; d < p->busy.count; d++) {
      struct tfc_store_busy row = tfc_store_busy_of(step, (uint32_t)d + on_whole, &p->busy.data[d]);
      TFC_TRY(s, tfc_store_add_busy(j->store, k->key, &row, 1));
    }
    ops.count = transfers.count = 0;
    for (size_t n = 0; n < p->ops.count; n++) {
      const struct tfc_profile_op *o = &p->ops.data[n];
      struct tfc_store_op row = {step,        (uint32_t)n,    o->node,        o->device + on_whole,
                                 o->start_ns, o->duration_ns, o->dispatch_ns, o->launched_ns};
      if (!tfc_array_push(&ops, row)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t n = 0; n < p->transfers.count; n++) {
      const struct tfc_profile_transfer *t = &p->transfers.data[n];
      if (t->id >= m->transfer_count) continue;
      const struct tfc_plan_transfer_row *of = &m->transfers[t->id];
      struct tfc_store_transfer row = {
          step,        (uint32_t)n,   of->node, of->output, of->source, of->target, t->bytes ? t->bytes : of->bytes,
          t->start_ns, t->duration_ns};
      if (!tfc_array_push(&transfers, row)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
    TFC_TRY(s, tfc_store_add_ops(j->store, k->key, ops.data, ops.count));
    TFC_TRY(s, tfc_store_add_transfers(j->store, k->key, transfers.data, transfers.count));
    TFC_TRY(s, tfc_store_add_works(j->store, k->key, step, on_whole, p->works.data, p->works.count));
    TFC_TRY(s, tfc_store_add_calls(j->store, k->key, step, p->calls.data, p->calls.count));
    k->raw = true;
  }
out:
  tfc_array_free(&ops);
  tfc_array_free(&transfers);
  free(number);
  return s;
}

static int by_node(const void *a, const void *b) {
  const struct tfc_profile_op *x = *(const struct tfc_profile_op *const *)a,
                              *y = *(const struct tfc_profile_op *const *)b;
  return (x->node > y->node) - (x->node < y->node);
}

static tfc_status store_totals(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m) {
  tfc_status s = NULL;
  TFC_ARRAY(const struct tfc_profile_op *) all = {0};
  double ns[1024];
  for (uint32_t i = 0; i < m->profile_count; i++)
    for (size_t n = 0; n < m->profiles[i].ops.count; n++)
      if (!tfc_array_push(&all, &m->profiles[i].ops.data[n])) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (all.count) qsort(all.data, all.count, sizeof *all.data, by_node);
  for (size_t i = 0, e; i < all.count; i = e) {
    struct tfc_store_op_total row = {.node_id = all.data[i]->node,
                                     .device_id = k->whole ? j->info->device_count : all.data[i]->device};
    for (e = i; e < all.count && all.data[e]->node == row.node_id; e++) {
      if (row.samples < 1024) ns[row.samples++] = (double)all.data[e]->duration_ns;
      row.total_ns += all.data[e]->duration_ns;
    }
    struct tfc_quartiles q = tfc_quartiles_of(ns, row.samples);
    row.median_ns = (int64_t)q.median;
    row.fastest_ns = (int64_t)q.least;
    TFC_TRY(s, tfc_store_add_op_totals(j->store, k->key, &row, 1));
  }
  for (uint32_t d = 0; d < m->peak_count; d++) {
    struct tfc_store_memory row = {k->whole ? j->info->device_count : d, m->peak[d]};
    TFC_TRY(s, tfc_store_add_memory(j->store, k->key, &row, 1));
  }
out:
  tfc_array_free(&all);
  return s;
}

// Raw rows are kept for the last candidates; the best's and the baselines' stay.
static tfc_status drop_old_raw(struct tfc_job *j) {
  uint32_t kept = 0;
  for (size_t i = j->known.count; i-- > 0;) {
    struct tfc_job_known *k = &j->known.data[i];
    if (!k->raw || k->baseline || i == j->best || k->final_steps) continue;
    if (++kept <= TFC_JOB_RAW_KEPT) continue;
    TFC_RETURN_IF_ERROR(tfc_store_drop_raw(j->store, k->key));
    k->raw = false;
  }
  return NULL;
}

// Costs follow what is measured: each operation's time without the slow-down of its moment.
static tfc_status refit(struct tfc_job *j, const struct tfc_measured *m) {
  tfc_status s = NULL;
  uint32_t devices = j->info->device_count;
  double *factors = calloc((size_t)devices * j->calibration.kind_count + 1, sizeof *factors);
  struct tfc_fusion fusion = {0};
  if (!factors) return no_memory();
  TFC_TRY(s, tfc_fusion_init(&fusion, m->done_by, m->done_by_count, j->plain, j->kept));
  for (uint32_t kind = 0; kind < j->calibration.kind_count; kind++) {
    struct tfc_slowdown_sums sums = {j->calibration.kinds[kind].measured_us, j->calibration.kinds[kind].alone_us,
                                     devices};
    for (uint32_t i = 0; i < m->profile_count; i++)
      tfc_slowdown_add(&sums, j->alone, &fusion, &m->profiles[i], j->kind_of_device, devices, kind);
    tfc_calibration_slowdown(&j->calibration, kind, factors + (size_t)kind * devices);
  }
  for (uint32_t i = 0; i < m->profile_count; i++)
    TFC_TRY(s, tfc_cost_table_add(j->costs, &m->profiles[i], j->kind_of_device, devices, &fusion, factors));
out:
  tfc_fusion_deinit(&fusion);
  free(factors);
  return s;
}

static tfc_status take_numbers(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m, bool final) {
  tfc_status s = NULL;
  struct tfc_result r = {0};
  uint32_t devices = k->whole ? 1 : j->info->device_count;
  TFC_TRY(s, tfc_result_from_measured(m, devices, TFC_LABEL_MEASURED, true, &r));
  bool timed = r.steps > 0;
  double median = timed ? 1e-6 * (double)r.value : (double)NAN, q1 = timed ? 1e-6 * (double)r.q1 : (double)NAN,
         q3 = timed ? 1e-6 * (double)r.q3 : (double)NAN;
  if (final) {
    k->final_us = median, k->final_q1 = q1, k->final_q3 = q3, k->final_steps = r.steps;
    for (uint32_t i = 0; i < m->step_count; i++)
      if (!m->steps[i].warmup && (!tfc_array_push(&k->final_step_us, 1e-3 * (double)m->steps[i].duration_ns) ||
                                  !tfc_array_push(&k->final_block_of, m->steps[i].block)))
        TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  } else {
    k->median_us = median, k->q1_us = q1, k->q3_us = q3, k->steps = r.steps, k->ratio = r.ratio;
    k->level_us = median;
  }
  k->state = r.state, k->code = m->code;
  k->transfers = r.transfers, k->transfer_bytes = r.transfer_bytes;
  k->in_lanes = m->in_lanes;
  free(k->peak);
  free(k->busy_us);
  free(k->share);
  k->peak = malloc((devices + 1u) * sizeof *k->peak);
  k->busy_us = malloc((devices + 1u) * sizeof *k->busy_us);
  k->share = malloc((devices + 1u) * sizeof *k->share);
  if (!k->peak || !k->busy_us || !k->share) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t d = 0; d < devices; d++) {
    int64_t busy = 0, total = 0;
    for (uint32_t i = 0; i < m->profile_count; i++) {
      busy += d < m->profiles[i].busy.count ? m->profiles[i].busy.data[d].busy_ns : 0;
      total += m->profiles[i].duration_ns;
    }
    k->peak[d] = r.memory[d];
    k->busy_us[d] = 1e-6 * (double)r.busy[d];
    k->share[d] = total ? (double)busy / (double)total : (double)NAN;
  }
  if (m->message) {
    free(k->note);
    k->note = tfc_str_dup(tfc_str_from(m->message));
  }
out:
  tfc_result_deinit(&r);
  return s;
}

// A step's tensors are reused only where that adds no wait, so placements need more than simulated: how much more is
// learned from those that were thought to fit.
static void learn_memory(struct tfc_job *j, const struct tfc_job_known *k, const struct tfc_measured *m) {
  struct tfc_verdict verdict = {0};
  double most = 0;
  if (!j->problem->has_limits || !k->solution.device || k->single || m->peak_count != j->info->device_count) return;
  if (m->state != TFC_RESULT_OK && m->state != TFC_RESULT_NO_FIT && m->state != TFC_RESULT_CUT) return;
  if (!(verdict.memory = calloc(j->info->device_count + 1u, sizeof *verdict.memory))) return; // only a hint is lost
  tfc_simulate(j->simulator, k->solution.device, k->solution.rank, TFC_TIME_MAX, &verdict);
  for (uint32_t d = 0; d < j->info->device_count && verdict.legal; d++)
    if (j->bare->devices[d].memory != TFC_NO_LIMIT && verdict.memory[d] > j->bare->devices[d].memory / 4)
      most = fmax(most, (double)m->peak[d] / (double)verdict.memory[d]);
  free(verdict.memory);
  if (most > 0) j->memory_ratio = fmin(2.5, fmax(1, 0.7 * j->memory_ratio + 0.3 * most));
}

tfc_status tfc_job_record_in_flight(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m,
                                    uint32_t at_once) {
  tfc_status s = NULL;
  struct tfc_result r = {0};
  TFC_TRY(s, tfc_result_from_measured(m, j->info->device_count, TFC_LABEL_MEASURED, false, &r));
  TFC_TRY(s, tfc_store_begin(j->store));
  if (!k->key) TFC_TRY(s, store_placement(j, k, m));
  TFC_TRY(s, store_steps(j, k, m, at_once > 1 ? "in flight" : "one by one"));
  TFC_TRY(s, tfc_store_commit(j->store));
  if (r.state != TFC_RESULT_OK || !r.steps) goto out;
  if (k->in_flight.us.count && k->in_flight.median_us <= 1e-6 * (double)r.value) goto out;
  k->in_flight.us.count = k->in_flight.block.count = 0, k->in_flight.at_once = at_once;
  k->in_flight.median_us = 1e-6 * (double)r.value;
  k->in_flight.q1_us = 1e-6 * (double)r.q1, k->in_flight.q3_us = 1e-6 * (double)r.q3;
  for (uint32_t i = 0; i < m->step_count; i++)
    if (!tfc_array_push(&k->in_flight.us, 1e-3 * (double)m->steps[i].duration_ns) ||
        !tfc_array_push(&k->in_flight.block, m->steps[i].block))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
out:
  if (s) tfc_store_rollback(j->store);
  tfc_result_deinit(&r);
  return s;
}

tfc_status tfc_job_record(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_measured *m, const char *phase) {
  tfc_status s = NULL;
  bool final = strcmp(phase, "final") == 0;
  TFC_TRY(s, take_numbers(j, k, m, final));
  TFC_TRY(s, tfc_store_begin(j->store));
  if (!k->key) TFC_TRY(s, store_placement(j, k, m));
  TFC_TRY(s, store_steps(j, k, m, phase));
  TFC_TRY(s, store_totals(j, k, m));
  if (final && isfinite(k->final_us))
    TFC_TRY(s, tfc_store_set_final(j->store, k->key, NULL, k->final_us, k->final_q1, k->final_q3, k->final_steps));
  TFC_TRY(s, drop_old_raw(j));
  TFC_TRY(s, tfc_store_commit(j->store));
  if (!final) learn_memory(j, k, m);
  if (!k->whole && !k->single && m->profile_count) TFC_TRY(s, refit(j, m));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}

tfc_status tfc_job_store_modelled(struct tfc_job *j, struct tfc_job_known *k) {
  tfc_status s = NULL;
  if (k->key) return NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, store_placement(j, k, NULL));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  return s;
}

// --- Going on --------------------------------------------------------------------------------------------------------
tfc_status tfc_job_save_state(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  tfc_text_printf(&text, "%.3f %.6g %.6g", tfc_job_seconds(j), j->trace_overhead, j->trace_overhead_least);
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "progress", (tfc_str){text.data, text.size}));
  TFC_TRY(s, store_devices(j));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  tfc_text_deinit(&text);
  return s;
}

static tfc_status prepare(const struct tfc_job *j, const char *sql, int64_t key, sqlite3_stmt **out) {
  sqlite3 *db = tfc_store_handle(j->store);
  if (sqlite3_prepare_v2(db, sql, -1, out, NULL) != SQLITE_OK)
    return tfc_status_make(TFC_DATA_LOSS, "%s: %s", tfc_store_path(j->store), sqlite3_errmsg(db));
  sqlite3_bind_int64(*out, 1, key);
  return NULL;
}
static double column(sqlite3_stmt *q, int i) {
  return sqlite3_column_type(q, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, i);
}

static tfc_status resume_calibration(struct tfc_job *j) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  TFC_TRY(s, prepare(j, "SELECT device_id, dispatch_us, slowdown FROM device WHERE run_id = ?1", j->run, &q));
  while (sqlite3_step(q) == SQLITE_ROW) {
    uint32_t d = (uint32_t)sqlite3_column_int(q, 0);
    const char *text = (const char *)sqlite3_column_text(q, 2);
    if (d >= j->info->device_count || !text) continue;
    struct tfc_kind_calibration *k = &j->calibration.kinds[j->kind_of_device[d]];
    k->dispatch_us = sqlite3_column_double(q, 1);
    uint32_t n = 1;
    for (char *end; n <= j->info->device_count && *text; text = *end ? end + 1 : end, n++) {
      while (*text == '[' || *text == ' ') text++;
      k->measured_us[n] = 1e5 * strtod(text, &end);
      k->alone_us[n] = n > 1 ? 1e5 : 0;
    }
  }
  sqlite3_finalize(q), q = NULL;
  TFC_TRY(s, prepare(j, "SELECT source, target, bytes, time_us, samples FROM link WHERE run_id = ?1", j->run, &q));
  while (sqlite3_step(q) == SQLITE_ROW) {
    struct tfc_link_time t = {(uint32_t)sqlite3_column_int(q, 0), (uint32_t)sqlite3_column_int(q, 1),
                              (uint64_t)sqlite3_column_int64(q, 2), sqlite3_column_double(q, 3),
                              (uint32_t)sqlite3_column_int(q, 4)};
    if (t.source >= j->info->device_count || t.target >= j->info->device_count) continue;
    struct tfc_link_time *more = realloc(j->calibration.links, (j->calibration.link_count + 1) * sizeof *more);
    if (!more) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    j->calibration.links = more;
    more[j->calibration.link_count++] = t;
  }
  sqlite3_finalize(q), q = NULL;
  TFC_TRY(s, prepare(j, "SELECT node_id, kind, median_us, fastest_us FROM cost WHERE run_id = ?1", j->run, &q));
  while (sqlite3_step(q) == SQLITE_ROW) {
    for (uint32_t k = 0; k < j->subject->kind_count; k++) {
      if (!tfc_str_is(j->subject->kinds[k], (const char *)sqlite3_column_text(q, 1))) continue;
      uint32_t node = (uint32_t)sqlite3_column_int(q, 0);
      for (int i = 0; i < 3; i++) { // the median, and what was fastest
        double us = sqlite3_column_double(q, i ? 2 : 3);
        TFC_TRY(s, tfc_cost_table_put(j->alone, node, k, us));
        TFC_TRY(s, tfc_cost_table_put(j->costs, node, k, us));
      }
    }
  }
out:
  sqlite3_finalize(q);
  return s;
}

// Limits and pins may be others than when it was measured: what breaks those of today is no answer to them.
static tfc_status judge_again(const struct tfc_job *j, struct tfc_job_known *k) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  if (k->whole || k->state != TFC_RESULT_OK) return NULL;
  for (uint32_t u = 0; k->solution.device && u < j->problem->unit_count; u++)
    if (!tfc_problem_allows(j->problem, u, k->solution.device[u])) k->state = TFC_RESULT_ILLEGAL;
  TFC_TRY(s, prepare(j, "SELECT device_id, peak_bytes FROM memory WHERE placement = ?1", k->key, &q));
  while (sqlite3_step(q) == SQLITE_ROW) {
    uint32_t d = (uint32_t)sqlite3_column_int(q, 0);
    if (d < j->bare->device_count && (uint64_t)sqlite3_column_int64(q, 1) > j->bare->devices[d].memory)
      k->state = TFC_RESULT_NO_FIT;
  }
out:
  sqlite3_finalize(q);
  return s;
}

static tfc_status resume_placement(struct tfc_job *j, sqlite3_stmt *row) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  struct tfc_job_known k = {.key = sqlite3_column_int64(row, 0),
                            .placement_id = sqlite3_column_int64(row, 1),
                            .final_us = (double)NAN,
                            .ratio = column(row, 11)};
  const char *role = (const char *)sqlite3_column_text(row, 2), *state = (const char *)sqlite3_column_text(row, 6);
  k.role = strcmp(role, "candidate") == 0 ? "candidate" : strcmp(role, "heuristic") == 0 ? "heuristic" : "baseline";
  k.name = tfc_str_dup(tfc_str_from((const char *)sqlite3_column_text(row, 3)));
  k.algorithm =
      sqlite3_column_text(row, 4) ? tfc_str_dup(tfc_str_from((const char *)sqlite3_column_text(row, 4))) : NULL;
  if (!k.name) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  k.whole = strcmp(k.name, "whole") == 0;
  k.single = strncmp(k.name, "single:", 7) == 0;
  k.baseline = strcmp(role, "candidate") != 0;
  k.heuristic = strcmp(role, "heuristic") == 0;
  for (int i = TFC_RESULT_OK; i <= TFC_RESULT_FAILED; i++)
    if (strcmp(state, state_name((tfc_result_state)i)) == 0) k.state = (tfc_result_state)i;
  k.simulated_us = column(row, 7), k.median_us = column(row, 8), k.q1_us = column(row, 9), k.q3_us = column(row, 10);
  k.level_us = k.median_us;
  k.steps = (uint32_t)sqlite3_column_int(row, 12);
  k.next_step = (uint32_t)sqlite3_column_int(row, 13);
  k.raw = sqlite3_column_int(row, 14);
  if (!k.whole) {
    TFC_TRY(s, tfc_solution_init(&k.solution, j->problem));
    TFC_TRY(s, prepare(j, "SELECT unit_id, device_id FROM assignment WHERE placement = ?1", k.key, &q));
    uint32_t seen = 0;
    while (sqlite3_step(q) == SQLITE_ROW) {
      uint32_t u = (uint32_t)sqlite3_column_int(q, 0), d = (uint32_t)sqlite3_column_int(q, 1);
      if (u < j->problem->unit_count && d < j->problem->device_count) k.solution.device[u] = (tfc_device_id)d, seen++;
    }
    if (seen != j->problem->unit_count)
      tfc_solution_deinit(&k.solution);
    else
      k.digest = tfc_job_digest(j->problem, k.solution.device);
  }
  TFC_TRY(s, judge_again(j, &k));
  if (!tfc_array_push(&j->known, k)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  k = (struct tfc_job_known){0};
out:
  sqlite3_finalize(q);
  free(k.name);
  free(k.algorithm);
  if (k.solution.device) tfc_solution_deinit(&k.solution);
  return s;
}

// The run that is gone on with must have been about the same.
static tfc_status check_run(const struct tfc_job *j, int64_t run, const char *sha256) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  TFC_TRY(s, prepare(j, "SELECT state, graph_sha256, graph, objective FROM run WHERE run_id = ?1", run, &q));
  if (sqlite3_step(q) != SQLITE_ROW) TFC_FAIL(s, TFC_NOT_FOUND, "run %lld cannot be read", (long long)run);
  const char *sha = (const char *)sqlite3_column_text(q, 1), *graph = (const char *)sqlite3_column_text(q, 2);
  const char *objective = (const char *)sqlite3_column_text(q, 3), *asked = tfc_objective_name(j->o->objective);
  if (strcmp((const char *)sqlite3_column_text(q, 0), "done") == 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld is done: there is nothing to go on with", (long long)run);
  if (!sha || strcmp(sha, sha256) != 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld is about another graph, %s as it was then", (long long)run, graph);
  if (strcmp(objective, asked) != 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld has the objective %s, not %s", (long long)run, objective, asked);
out:
  sqlite3_finalize(q);
  return s;
}

static void describe_device(struct tfc_text *text, const char *name, uint32_t cores, const char *math) {
  const bool has_math = math && math[0];
  tfc_text_printf(text, "%s%s (%u core%s%s%s)", text->size ? ", " : "", name, cores, cores == 1 ? "" : "s",
                  has_math ? ", products in " : "", has_math ? math : "");
}

static tfc_status check_devices(const struct tfc_job *j, int64_t run) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  struct tfc_text then = {0}, now = {0};
  TFC_TRY(s, prepare(j, "SELECT name, cores, math FROM device WHERE run_id = ?1 AND name != 'whole' ORDER BY device_id",
                     run, &q));
  while (sqlite3_step(q) == SQLITE_ROW)
    describe_device(&then, (const char *)sqlite3_column_text(q, 0), (uint32_t)sqlite3_column_int(q, 1),
                    (const char *)sqlite3_column_text(q, 2));
  for (uint32_t d = 0; d < j->info->device_count; d++)
    describe_device(&now, j->info->devices[d].name, j->info->devices[d].cores, j->info->devices[d].math);
  if (then.failed || now.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (then.size && strcmp(then.data, now.data) != 0) // none: it was interrupted before it knew them
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld measured on %s; it cannot go on with %s", (long long)run, then.data,
             now.data);
out:
  sqlite3_finalize(q);
  tfc_text_deinit(&then);
  tfc_text_deinit(&now);
  return s;
}

tfc_status tfc_job_resume(struct tfc_job *j, const char *sha256) {
  tfc_status s = NULL;
  struct tfc_text progress = {0};
  sqlite3_stmt *q = NULL;
  int64_t run = 0;
  if (j->o->resume < 0)
    TFC_TRY(s, tfc_store_find_interrupted(j->store, &run));
  else
    TFC_TRY(s, tfc_store_find_run(j->store, j->o->resume, &run));
  TFC_TRY(s, check_run(j, run, sha256));
  TFC_TRY(s, check_devices(j, run));
  j->run = j->out->run = run; // from here on it is this one's: what is refused stays as it was
  s = tfc_store_get_state(j->store, j->run, "progress", &progress);
  if (!s) sscanf(progress.data, "%lf %lf %lf", &j->before_s, &j->trace_overhead, &j->trace_overhead_least);
  tfc_status_free(s), s = NULL;
  if (j->trace_overhead_least > 0.02) j->trace = TFC_TRACE_MODE_ALTERNATE;
  TFC_TRY(s, resume_calibration(j));
  TFC_TRY(s, tfc_job_rebuild(j));
  TFC_TRY(s, prepare(j,
                     "SELECT p.placement, p.placement_id, p.role, p.name, p.algorithm, p.episode, p.state,"
                     " p.simulated_us, p.median_us, p.q1_us, p.q3_us, p.ratio, p.steps,"
                     " (SELECT COALESCE(MAX(s.step) + 1, 0) FROM step s WHERE s.placement = p.placement),"
                     " EXISTS (SELECT 1 FROM op o WHERE o.placement = p.placement)"
                     " FROM placement p WHERE p.run_id = ?1 ORDER BY p.placement_id",
                     j->run, &q));
  while (sqlite3_step(q) == SQLITE_ROW) {
    TFC_TRY(s, resume_placement(j, q));
    if (j->known.data[j->known.count - 1].placement_id >= j->next_id)
      j->next_id = j->known.data[j->known.count - 1].placement_id + 1;
    if (sqlite3_column_int64(q, 5) > j->episodes) j->episodes = (uint32_t)sqlite3_column_int64(q, 5);
  }
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->state == TFC_RESULT_OK && k->solution.device && isfinite(k->median_us) &&
        (j->best == UINT32_MAX || k->level_us < j->known.data[j->best].level_us))
      j->best = i;
  }
  tfc_job_say(j, false, "going on with run %lld after %.0f s and %u measured placements", (long long)j->run,
              j->before_s, j->episodes);
out:
  sqlite3_finalize(q);
  tfc_text_deinit(&progress);
  return s;
}
