#include "placer/job/document.h"

#include <math.h>
#include <stdlib.h>

#include "placer/measure/evaluator.h"
#include "runtime/base/units.h"

// Copies the candidate's solution, with the order of operations with which it was found to fit.
static tfc_status rank_as_run(const struct tfc_job_model *m, const struct tfc_job_candidate *k,
                              struct tfc_solution *out) {
  tfc_status s = NULL;
  double *order = malloc((m->problem->node_count + 1u) * sizeof *order);
  uint32_t *rank = malloc((m->problem->node_count + 1u) * sizeof *rank);
  if (!order || !rank) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < m->problem->node_count; i++) order[i] = (double)NAN;
  for (uint32_t i = 0; i < k->sequence_count; i++) {
    uint32_t c = m->subject->cost_of[k->sequence[i]];
    if (c != TFC_NONE) order[c] = i;
  }
  TFC_TRY(s, tfc_rank_from_order(m->problem, order, rank));
  TFC_TRY(s, tfc_solution_copy(out, &k->solution, m->problem));
  free(out->rank);
  out->rank = rank, rank = NULL;
out:
  free(order);
  free(rank);
  return s;
}

static double time_on(const struct tfc_cost_graph *g, tfc_str node, tfc_str kind) { // NaN: the time is not known
  for (uint32_t k = 0; g && k < g->kind_count; k++)
    for (uint32_t i = 0; i < g->node_count && tfc_str_equal(g->kind_names[k], kind); i++)
      if (tfc_str_equal(g->names[i], node)) return g->time_us[(size_t)i * g->kind_count + k];
  return NAN;
}

// For each operation that its device cannot run itself, adds that as the reason, with the operation's time.
static tfc_status give_fallback_reasons(const struct tfc_job_model *m, struct tfc_placement *d) {
  for (uint32_t i = 0; i < m->info->fallback_count; i++) {
    const struct tfc_measure_fallback *f = &m->info->fallbacks[i];
    struct tfc_placement_node *n = f->node < d->node_count ? &d->nodes[f->node] : NULL;
    bool there = false; // whether the placement has the node on a device of this kind
    for (uint32_t k = 0; n && k < d->device_count; k++)
      there |= tfc_str_equal(d->devices[k].name, n->device) && tfc_str_equal(d->devices[k].kind, d->devices[0].kind);
    if (!there) continue;
    char text[32];
    double us = time_on(m->cost_graph, n->name, d->devices[0].kind);
    n->reason = tfc_arena_printf(&d->arena, "%.*s%son the host between copies%s%s: %s", TFC_STR_ARG(n->reason),
                                 n->reason.size ? "; " : "", isfinite(us) ? ", " : "",
                                 isfinite(us) ? tfc_show_us(text, us) : "", f->reason);
    if (!n->reason.data) return tfc_status_no_memory(NULL);
  }
  return NULL;
}

tfc_status tfc_job_document(const struct tfc_job_candidates *c, const struct tfc_job_candidate *k,
                            struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = c->model;
  struct tfc_placement *d = NULL;
  struct tfc_solution as_run = {0};
  struct tfc_text execution = {0};
  TFC_TRY(s, tfc_placement_create(&d));
  d->run = out->run;
  d->graph_file = tfc_arena_str(&d->arena, tfc_str_from(m->o->graph_path));
  d->objective = m->o->request.objective;
  double median = tfc_job_final_us(k);
  bool timed = isfinite(median);
  const bool loads = m->o->request.objective == TFC_OBJECTIVE_THROUGHPUT;
  d->value_us = loads ? tfc_job_load_us(k) : timed ? median : k->simulated_us;
  d->value_label = timed && !(loads && !k->in_flight.us.count) ? tfc_measure_label(m->info) : TFC_LABEL_MODELLED;
  d->feasible = k->state != TFC_RESULT_NO_FIT;
  d->transfers = k->transfers, d->transfer_bytes = k->transfer_bytes;
  const char *virtual_transfers = tfc_virtual_transfers(m->info->devices, m->info->device_count);
  if (virtual_transfers) d->virtual_transfers = tfc_str_from(virtual_transfers);
  const char *math = tfc_devices_math(m->info->devices, m->info->device_count);
  if (math) d->gpu_math = tfc_arena_str(&d->arena, tfc_str_from(math));
  tfc_execution_format(&m->o->execution, &execution);
  d->execution = tfc_arena_str(&d->arena, (tfc_str){execution.data, execution.size});
  d->step_median_us = median;
  d->step_q1_us = isfinite(k->final_us) ? k->final_q1 : k->q1_us;
  d->step_q3_us = isfinite(k->final_us) ? k->final_q3 : k->q3_us;
  d->step_count = isfinite(k->final_us) ? k->final_steps : k->steps;
  d->step_label = timed ? tfc_measure_label(m->info) : TFC_LABEL_MODELLED;
  if (isfinite(c->unordered.us)) {
    d->unordered_median_us = c->unordered.us, d->unordered_count = c->unordered.steps;
    d->unordered_q1_us = c->unordered.q1_us, d->unordered_q3_us = c->unordered.q3_us;
  }
  d->device_count = m->info->device_count;
  d->devices = TFC_ARENA_ARRAY(&d->arena, struct tfc_placement_device, d->device_count + 1u);
  if (!d->devices || !d->graph_file.data) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < d->device_count; i++) {
    const struct tfc_machine_device *at = &m->machine->devices[i];
    d->devices[i] = (struct tfc_placement_device){.name = tfc_arena_str(&d->arena, at->name),
                                                  .tensorflow = tfc_arena_str(&d->arena, at->tensorflow),
                                                  .kind = tfc_arena_str(&d->arena, at->kind),
                                                  .label = at->label,
                                                  .busy_us = k->busy_us && timed ? k->busy_us[i] : 0,
                                                  .memory = k->peak ? k->peak[i] : 0};
  }
  if (loads && k->solution.device) {
    double *us = TFC_ARENA_ARRAY(&d->arena, double, d->device_count + 1u);
    if (!us) TFC_TRY(s, tfc_status_no_memory(NULL));
    const bool known = tfc_job_model_loads(m, &k->solution, us);
    for (uint32_t i = 0; known && i < d->device_count; i++) d->devices[i].busy_us = us[i];
  }
  uint32_t rows = 0;
  d->baselines = TFC_ARENA_ARRAY(&d->arena, struct tfc_placement_baseline, out->row_count + 1u);
  if (!d->baselines) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < out->row_count; i++) {
    const struct tfc_job_row *r = &out->rows[i];
    if (strcmp(r->kind, "answer") == 0 || r->modelled) continue;
    d->baselines[rows++] = (struct tfc_placement_baseline){
        .name = tfc_arena_str(&d->arena, tfc_str_from(r->name)),
        .median_us = r->state == TFC_RESULT_OK || r->state == TFC_RESULT_CUT ? r->median_us : (double)NAN,
        .feasible = r->state != TFC_RESULT_NO_FIT && r->state != TFC_RESULT_ILLEGAL,
        .note = r->note ? tfc_arena_str(&d->arena, tfc_str_from(r->note)) : (tfc_str){0}};
  }
  d->baseline_count = rows;
  d->bound_us = out->bound_us > 0 ? out->bound_us : (double)NAN;
  if (out->bound_name) d->bound_name = tfc_arena_str(&d->arena, tfc_str_from(out->bound_name));
  d->algorithm = tfc_arena_str(&d->arena, tfc_str_from(k->algorithm ? k->algorithm : k->name));
  d->seed = (uint64_t)m->o->execution.seed;
  d->evaluations = c->episodes;
  if (k->sequence) TFC_TRY(s, rank_as_run(m, k, &as_run));
  TFC_TRY(s, tfc_subject_document(m->subject, m->problem, as_run.device ? &as_run : &k->solution, d));
  TFC_TRY(s, give_fallback_reasons(m, d));
  out->placement = d, d = NULL;
out:
  tfc_text_deinit(&execution);
  if (as_run.device) tfc_solution_deinit(&as_run);
  tfc_placement_free(d);
  return s;
}
