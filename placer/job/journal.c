#include "placer/job/journal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/finalists.h"
#include "placer/measure/evaluator.h"
#include "placer/simulate/single_moves.h"
#include "placer/subject/rows.h"
#include "profiler/host.h"
#include "profiler/statistics.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "profiler/warnings.h"

enum { RAW_KEPT = 20 }; // for so many candidates the times of single operations are kept in the database

static const char *label_of(const struct tfc_job_model *m) {
  return tfc_label_name(tfc_measure_label(m->info));
}

// --- Beginning a run -----------------------------------------------------------------------------------------------
tfc_status tfc_job_journal_open(struct tfc_job_journal *j, const struct tfc_job_options *o,
                                const struct tfc_job_clock *clock) {
  *j = (struct tfc_job_journal){.clock = clock, .warnings = o->warnings};
  return tfc_store_open(o->database, &(struct tfc_store_options){.write = true, .purpose = o->program}, &j->store);
}

void tfc_job_journal_close(struct tfc_job_journal *j) {
  tfc_store_close(j->store);
  tfc_array_free(&j->rows);
}

tfc_status tfc_job_journal_begin(struct tfc_job_journal *j, const struct tfc_job_options *o, const char *sha256) {
  struct tfc_host host;
  struct tfc_text execution = {0};
  tfc_host_describe(&host);
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s,
          tfc_store_add_run(j->store,
                            &(struct tfc_store_run){.program = o->program,
                                                    .command = o->command,
                                                    .graph = o->graph_path,
                                                    .graph_sha256 = sha256,
                                                    .graph_nodes = o->graph->node_count,
                                                    .objective = tfc_objective_name(o->request.objective),
                                                    .algorithms = o->search.algorithms ? o->search.algorithms : "auto",
                                                    .label = "measured",
                                                    .seed = (uint64_t)o->execution.seed,
                                                    .host = host.name,
                                                    .cpu_model = host.cpu_model,
                                                    .blas_core = host.blas_core},
                            &j->run));
  // from here on the run can be resumed
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "progress", TFC_STR("0 nan")));
  tfc_execution_format(&o->execution, &execution);
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "execution", (tfc_str){execution.data, execution.size}));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  tfc_text_deinit(&execution);
  return s;
}

tfc_status tfc_job_journal_tuning(struct tfc_job_journal *j, const char *lines) {
  TFC_RETURN_IF_ERROR(tfc_store_begin(j->store));
  TFC_RETURN_IF_ERROR(tfc_store_put_tuning(j->store, lines));
  return tfc_store_commit(j->store);
}

void tfc_job_journal_resume(struct tfc_job_journal *j, int64_t run) {
  j->run = run;
}

// --- Graph, devices, costs -------------------------------------------------------------------------------------------
static tfc_status store_devices(struct tfc_job_journal *j, const struct tfc_job_model *m) {
  for (uint32_t d = 0; d <= m->info->device_count; d++) {
    bool whole = d == m->info->device_count;
    const struct tfc_device_info *i = whole ? &m->info->whole : &m->info->devices[d];
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
                                   .memory_limit = whole ? i->memory : m->bare->devices[d].memory,
                                   .dispatch_us = (double)NAN};
    if (!whole) {
      double factors[TFC_MAX_DEVICES];
      tfc_calibration_slowdown(&m->calibration, m->kind_of_device[d], factors);
      for (uint32_t k = 0; k < m->info->device_count; k++)
        tfc_text_printf(&slowdown, "%s%.4f", k ? ", " : "[", factors[k]);
      tfc_text_printf(&slowdown, "]");
      row.dispatch_us = m->calibration.kinds[m->kind_of_device[d]].dispatch_us;
      row.slowdown = slowdown.data;
    }
    tfc_status s = tfc_store_add_devices(j->store, j->run, &row, 1);
    tfc_text_deinit(&slowdown);
    if (s) return s;
  }
  return NULL;
}

static tfc_status store_subject(struct tfc_job_journal *j, const struct tfc_job_model *m) {
  const struct tfc_subject_rows rows = {.subject = m->subject,
                                        .problem = m->problem,
                                        .output_bytes = m->info->output_bytes,
                                        .output_count = m->info->output_count,
                                        .work = m->info->work,
                                        .node_count = m->info->node_count};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_set_label(j->store, j->run, label_of(m)));
  TFC_TRY(s, tfc_subject_write_rows(&rows, j->store, j->run));
  TFC_TRY(s, store_devices(j, m));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  return s;
}

static tfc_status store_costs(struct tfc_job_journal *j, const struct tfc_job_model *m) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, store_devices(j, m));
  for (uint32_t i = 0; i < m->calibration.link_count; i++) {
    const struct tfc_link_time *t = &m->calibration.links[i];
    struct tfc_store_link row = {t->source, t->target, t->bytes, t->time_us, t->samples};
    TFC_TRY(s, tfc_store_add_links(j->store, j->run, &row, 1));
  }
  for (uint32_t c = 0; c < m->subject->cost_count; c++) {
    for (uint32_t k = 0; k < m->subject->kind_count && m->subject->runs[c]; k++) {
      struct tfc_cost cost = tfc_cost_table_get(m->alone, m->subject->node_of[c], k);
      if (!cost.samples) continue;
      cost.fastest_us = fmin(cost.fastest_us, tfc_cost_table_fastest(m->costs, m->subject->node_of[c], k));
      char kind[32];
      snprintf(kind, sizeof kind, "%.*s", TFC_STR_ARG(m->subject->kinds[k]));
      struct tfc_store_cost row = {m->subject->node_of[c], kind,        cost.median_us, cost.q1_us, cost.q3_us,
                                   cost.fastest_us,        cost.samples};
      TFC_TRY(s, tfc_store_add_costs(j->store, j->run, &row, 1));
    }
  }
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  return s;
}

tfc_status tfc_job_journal_rebuild(struct tfc_job_journal *j, struct tfc_job_model *m) {
  TFC_RETURN_IF_ERROR(tfc_job_model_rebuild(m));
  if (!j->has_subject) TFC_RETURN_IF_ERROR(store_subject(j, m));
  j->has_subject = true;
  return store_costs(j, m);
}

// --- Measurements ----------------------------------------------------------------------------------------------------
const char *tfc_job_state_name(tfc_result_state state) {
  static const char *const names[] = {"ok", "cut", "no fit", "illegal", "failed"};
  return names[state];
}

static tfc_status store_placement(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index,
                                  const struct tfc_measured *m) {
  const struct tfc_job_candidate *k = &c->list.data[index];
  struct tfc_job_journal_row *at = &j->rows.data[index];
  tfc_status s = NULL;
  uint16_t *device = NULL;
  uint32_t units = c->model->problem->unit_count;
  if (!(device = calloc(units + 1u, sizeof *device))) return tfc_status_no_memory("recording a run");
  for (uint32_t u = 0; u < units; u++)
    device[u] = k->solution.device ? k->solution.device[u] : (uint16_t)c->model->info->device_count;
  at->placement_id = j->next_id++;
  bool timed = isfinite(k->median_us);
  struct tfc_store_placement row = {.placement_id = at->placement_id,
                                    .role = k->role,
                                    .name = k->name,
                                    .algorithm = k->algorithm,
                                    .episode = k->episode && m ? (int64_t)k->episode : -1,
                                    .digest = k->digest,
                                    .state = m ? tfc_job_state_name(k->state) : "modelled",
                                    .label = m ? label_of(c->model) : "modelled",
                                    .simulated_us = k->predicted_us,
                                    .median_us = k->median_us,
                                    .q1_us = k->q1_us,
                                    .q3_us = k->q3_us,
                                    .steps = k->steps,
                                    .ratio = m ? k->ratio : (double)NAN,
                                    .reward = timed && k->state == TFC_RESULT_OK ? -k->median_us : (double)NAN,
                                    .cost_s = m ? m->seconds : (double)NAN,
                                    .at_s = tfc_job_seconds(j->clock),
                                    .transfers = m ? k->transfers : UINT64_MAX,
                                    .transfer_bytes = m ? k->transfer_bytes : UINT64_MAX,
                                    .message = k->note};
  s = tfc_store_add_placement(j->store, j->run, &row, k->whole || k->solution.device ? device : NULL, units, &at->key);
  free(device);
  const struct tfc_store_policy_search policy = tfc_search_account_row(&k->policy);
  if (!s && policy.samples) s = tfc_store_add_policy_search(j->store, at->key, &policy);
  if (s || !(k->prior_us > 0)) return s;
  const bool learned = k->learned_us > 0;
  return tfc_store_add_prediction(j->store, at->key, k->prior_us, learned ? k->learned_us : (double)NAN,
                                  learned ? k->learned_sd : (double)NAN);
}

// Adds rows for the timed steps, and rows for their operations if the steps were traced.
static tfc_status store_steps(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index,
                              const struct tfc_measured *m, const char *phase) {
  const struct tfc_job_candidate *k = &c->list.data[index];
  struct tfc_job_journal_row *at = &j->rows.data[index];
  tfc_status s = NULL;
  uint32_t *number = calloc(m->step_count + 1u, sizeof *number);
  TFC_ARRAY(struct tfc_store_op) ops = {0};
  TFC_ARRAY(struct tfc_store_transfer) transfers = {0};
  uint32_t on_whole = k->whole ? c->model->info->device_count : 0;
  if (!number) return tfc_status_no_memory("recording a run");
  for (uint32_t i = 0; i < m->step_count; i++) {
    const struct tfc_measured_step *t = &m->steps[i];
    number[i] = at->next_step;
    if (t->warmup) continue;
    const bool chooses = t->block < c->final_from && strcmp(phase, "final") == 0;
    struct tfc_store_step row = {at->next_step++, chooses ? "choose" : phase, t->block, t->traced, t->start_ns,
                                 t->duration_ns};
    TFC_TRY(s, tfc_store_add_steps(j->store, at->key, &row, 1));
  }
  for (uint32_t i = 0; i < m->profile_count; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    uint32_t step = number[m->profile_step[i]];
    for (size_t d = 0; d < p->busy.count; d++) {
      struct tfc_store_busy row = tfc_store_busy_of(step, (uint32_t)d + on_whole, &p->busy.data[d]);
      TFC_TRY(s, tfc_store_add_busy(j->store, at->key, &row, 1));
    }
    ops.count = transfers.count = 0;
    for (size_t n = 0; n < p->ops.count; n++) {
      const struct tfc_profile_op *o = &p->ops.data[n];
      struct tfc_store_op row = {step,        (uint32_t)n,    o->node,        o->device + on_whole,
                                 o->start_ns, o->duration_ns, o->dispatch_ns, o->launched_ns};
      if (!tfc_array_push(&ops, row)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
    for (size_t n = 0; n < p->transfers.count; n++) {
      const struct tfc_profile_transfer *t = &p->transfers.data[n];
      if (t->id >= m->transfer_count) continue;
      const struct tfc_plan_transfer_row *of = &m->transfers[t->id];
      struct tfc_store_transfer row = {
          step,        (uint32_t)n,   of->node, of->output, of->source, of->target, t->bytes ? t->bytes : of->bytes,
          t->start_ns, t->duration_ns};
      if (!tfc_array_push(&transfers, row)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
    TFC_TRY(s, tfc_store_add_ops(j->store, at->key, ops.data, ops.count));
    TFC_TRY(s, tfc_store_add_transfers(j->store, at->key, transfers.data, transfers.count));
    TFC_TRY(s, tfc_store_add_works(j->store, at->key, step, on_whole, p->works.data, p->works.count));
    TFC_TRY(s, tfc_store_add_calls(j->store, at->key, step, p->calls.data, p->calls.count));
    at->raw = true;
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

static tfc_status store_totals(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index,
                               const struct tfc_measured *m) {
  const struct tfc_job_candidate *k = &c->list.data[index];
  struct tfc_job_journal_row *at = &j->rows.data[index];
  tfc_status s = NULL;
  TFC_ARRAY(const struct tfc_profile_op *) all = {0};
  double ns[1024];
  for (uint32_t i = 0; i < m->profile_count; i++)
    for (size_t n = 0; n < m->profiles[i].ops.count; n++)
      if (!tfc_array_push(&all, &m->profiles[i].ops.data[n])) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (all.count) qsort(all.data, all.count, sizeof *all.data, by_node);
  for (size_t i = 0, e; i < all.count; i = e) {
    struct tfc_store_op_total row = {.node_id = all.data[i]->node,
                                     .device_id = k->whole ? c->model->info->device_count : all.data[i]->device};
    for (e = i; e < all.count && all.data[e]->node == row.node_id; e++) {
      if (row.samples < 1024) ns[row.samples++] = (double)all.data[e]->duration_ns;
      row.total_ns += all.data[e]->duration_ns;
    }
    struct tfc_quartiles q = tfc_quartiles_of(ns, row.samples);
    row.median_ns = (int64_t)q.median;
    row.fastest_ns = (int64_t)q.least;
    TFC_TRY(s, tfc_store_add_op_totals(j->store, at->key, &row, 1));
  }
  for (uint32_t d = 0; d < m->peak_count; d++) {
    struct tfc_store_memory row = {k->whole ? c->model->info->device_count : d, m->peak[d], m->variables_only};
    TFC_TRY(s, tfc_store_add_memory(j->store, at->key, &row, 1));
  }
out:
  tfc_array_free(&all);
  return s;
}

// Deletes rows of single operations, except those of the last candidates, the best one and the baselines. For the
// throughput objective, the candidates with the smallest loads keep theirs, too: the incumbent has the shortest step,
// but the answer will be one of those with small loads.
static tfc_status drop_old_raw(struct tfc_job_journal *j, const struct tfc_job_candidates *c) {
  uint32_t kept = 0, loads[TFC_JOB_MOST_FINALISTS];
  const uint32_t load_count = tfc_job_finalists_by_load(c, loads);
  for (size_t i = j->rows.count; i-- > 0;) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    struct tfc_job_journal_row *at = &j->rows.data[i];
    bool stays = k->baseline || i == c->best || k->final_steps;
    for (uint32_t n = 0; n < load_count; n++) stays |= loads[n] == i;
    if (!at->raw || stays) continue;
    if (++kept <= RAW_KEPT) continue;
    TFC_RETURN_IF_ERROR(tfc_store_drop_raw(j->store, at->key));
    at->raw = false;
  }
  return NULL;
}

static tfc_status make_room(struct tfc_job_journal *j, uint32_t index) {
  while (j->rows.count <= index)
    if (!tfc_array_push(&j->rows, (struct tfc_job_journal_row){0})) return tfc_status_no_memory("recording a run");
  return NULL;
}

tfc_status tfc_job_journal_know(struct tfc_job_journal *j, uint32_t index,
                                const struct tfc_store_placement_read *stored) {
  TFC_RETURN_IF_ERROR(make_room(j, index));
  const int64_t id = stored->row.placement_id;
  j->rows.data[index] = (struct tfc_job_journal_row){stored->key, id, stored->next_step, stored->raw};
  if (id >= j->next_id) j->next_id = id + 1;
  return NULL;
}

void tfc_job_journal_forget(struct tfc_job_journal *j) {
  j->rows.count = 0;
}

tfc_status tfc_job_journal_measured(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index,
                                    const struct tfc_measured *m, const char *phase, bool final) {
  tfc_status s = NULL;
  const struct tfc_job_candidate *k = &c->list.data[index];
  TFC_RETURN_IF_ERROR(make_room(j, index));
  TFC_TRY(s, tfc_store_begin(j->store));
  if (!j->rows.data[index].key) TFC_TRY(s, store_placement(j, c, index, m));
  TFC_TRY(s, store_steps(j, c, index, m, phase));
  TFC_TRY(s, store_totals(j, c, index, m));
  if (final && isfinite(k->final_us))
    TFC_TRY(s, tfc_store_set_final(j->store, j->rows.data[index].key, NULL, k->final_us, k->final_q1, k->final_q3,
                                   k->final_steps));
  TFC_TRY(s, drop_old_raw(j, c));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}

tfc_status tfc_job_journal_in_flight(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index,
                                     const struct tfc_measured *m, uint32_t at_once) {
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(make_room(j, index));
  TFC_TRY(s, tfc_store_begin(j->store));
  if (!j->rows.data[index].key) TFC_TRY(s, store_placement(j, c, index, m));
  TFC_TRY(s, store_steps(j, c, index, m, at_once > 1 ? "in flight" : "one by one"));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}

tfc_status tfc_job_journal_modelled(struct tfc_job_journal *j, const struct tfc_job_candidates *c, uint32_t index) {
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(make_room(j, index));
  if (j->rows.data[index].key) return NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, store_placement(j, c, index, NULL));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}

int64_t tfc_job_journal_placement_id(const struct tfc_job_journal *j, uint32_t index) {
  return index < j->rows.count && j->rows.data[index].key ? j->rows.data[index].placement_id : -1;
}

// --- Resuming and ending a run ---------------------------------------------------------------------------------------
static tfc_status store_learned(struct tfc_job_journal *j, const struct tfc_job_model *m) {
  struct tfc_text text = {0};
  tfc_status s = tfc_learned_save(m->learned, &text);
  if (!s) s = tfc_store_set_state(j->store, j->run, "learned", (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}

static tfc_status store_proposers(struct tfc_job_journal *j, const struct tfc_job_proposers *p) {
  for (size_t i = 0; i < p->list.count; i++) {
    const struct tfc_job_proposer *one = &p->list.data[i];
    const struct tfc_store_proposer row = {one->name, one->learned,        one->measured,
                                           one->won,  one->best_simulated, one->best_measured};
    TFC_RETURN_IF_ERROR(tfc_store_add_proposers(j->store, j->run, &row, 1));
  }
  return NULL;
}

static tfc_status store_levels(struct tfc_job_journal *j, const struct tfc_job_candidates *c) {
  struct tfc_text text = {0};
  tfc_text_printf(&text, "%lld", c->best == TFC_NONE ? -1LL : (long long)tfc_job_journal_placement_id(j, c->best));
  for (uint32_t i = 0; i < c->list.count; i++) {
    const long long id = (long long)tfc_job_journal_placement_id(j, i);
    if (id >= 0 && isfinite(c->list.data[i].level_us))
      tfc_text_printf(&text, "\n%lld %.17g", id, c->list.data[i].level_us);
  }
  tfc_status s = text.failed ? tfc_status_no_memory("storing a run's progress")
                             : tfc_store_set_state(j->store, j->run, "levels", (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}

tfc_status tfc_job_journal_progress(struct tfc_job_journal *j, const struct tfc_job_model *m,
                                    const struct tfc_job_candidates *c, const struct tfc_job_proposers *proposers) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  tfc_text_printf(&text, "%.3f %.6g %.6g", tfc_job_seconds(j->clock), m->trace_overhead, m->trace_overhead_least);
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "progress", (tfc_str){text.data, text.size}));
  TFC_TRY(s, store_devices(j, m));
  TFC_TRY(s, store_levels(j, c));
  if (m->learned) TFC_TRY(s, store_learned(j, m));
  TFC_TRY(s, store_proposers(j, proposers));
  tfc_text_deinit(&text);
  tfc_text_printf(&text, "%llu", (unsigned long long)proposers->evaluations);
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "evaluations", (tfc_str){text.data, text.size}));
  TFC_TRY(s, tfc_warnings_store(j->warnings, j->store, j->run));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  tfc_text_deinit(&text);
  return s;
}

tfc_status tfc_job_journal_tell(struct tfc_job_journal *j, const char *what, const char *text) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, what, tfc_str_from(text)));
  TFC_TRY(s, tfc_store_commit(j->store));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}

// Stores the loads that the answer was chosen by, with the costs as they are at the end.
static tfc_status store_loads(struct tfc_job_journal *j, const struct tfc_job_candidates *c) {
  tfc_status s = NULL;
  const uint32_t devices = c->model->info->device_count;
  double *us = calloc(devices + 1u, sizeof *us);
  if (!us) return tfc_status_no_memory("recording a run");
  for (uint32_t i = 0; i < c->list.count && i < j->rows.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    struct tfc_store_load load = {.load_us = tfc_job_load_us(k),
                                  .samples = (uint32_t)k->in_flight.us.count,
                                  .at_once = k->in_flight.us.count ? k->in_flight.at_once : 0};
    if (!j->rows.data[i].key || !isfinite(load.load_us) || !(k->solution.device || load.samples)) continue;
    if (k->solution.device && tfc_job_model_loads(c->model, &k->solution, us))
      load.device_us = us, load.device_count = devices;
    TFC_TRY(s, tfc_store_add_load(j->store, j->rows.data[i].key, &load));
  }
out:
  free(us);
  return s;
}

// Stores which unit of the answer would be better elsewhere, by itself. Units are those that a search moves, unless the
// answer divides one of them.
static tfc_status store_moves(struct tfc_job_journal *j, const struct tfc_job_candidates *c) {
  const struct tfc_job_model *m = c->model;
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  tfc_status s = NULL;
  struct tfc_solution coarse = {0};
  struct tfc_single_moves moves = {0};
  if (!best || !best->solution.device || !j->rows.data[c->best].key) return NULL;
  const struct tfc_problem *fine = m->problem, *p = tfc_job_model_search_problem(m);
  const struct tfc_solution *answer = &best->solution;
  if (p != fine) {
    TFC_TRY(s, tfc_solution_init(&coarse, p));
    TFC_TRY(s, tfc_subject_convert(m->subject, fine, answer, p, &coarse));
    bool whole = true;
    for (uint32_t n = 0; n < p->node_count && whole; n++)
      whole = coarse.device[p->unit[n]] == answer->device[fine->unit[n]];
    if (whole)
      answer = &coarse;
    else
      p = fine;
  }
  TFC_TRY(s, tfc_single_moves_find(p, answer, &moves));
  TFC_TRY(s, tfc_single_moves_write(&moves, fine, m->subject->node_of, j->store, j->rows.data[c->best].key));
out:
  tfc_single_moves_deinit(&moves);
  tfc_solution_deinit(&coarse);
  return s;
}

tfc_status tfc_job_journal_finish(struct tfc_job_journal *j, const struct tfc_job_candidates *c,
                                  const struct tfc_store_answer *answer) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_warnings_store(j->warnings, j->store, j->run));
  if (c->model->problem && c->model->o->request.objective == TFC_OBJECTIVE_THROUGHPUT) TFC_TRY(s, store_loads(j, c));
  if (c->model->problem) TFC_TRY(s, store_moves(j, c));
  TFC_TRY(s, tfc_store_finish_run(j->store, j->run, answer));
  TFC_TRY(s, tfc_store_commit(j->store));
  TFC_TRY(s, tfc_store_index(j->store));
out:
  if (s) tfc_store_rollback(j->store);
  return s;
}
