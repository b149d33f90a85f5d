#include "placer/measure/evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/statistics.h"

struct measured_evaluator {
  struct tfc_evaluator base; // must be the first member
  struct tfc_measurer *measurer;
  const struct tfc_subject *subject;
  struct tfc_measure_settings settings;
  tfc_observe_fn observe;
  void *user;
};

tfc_label tfc_measure_label(const struct tfc_measure_info *info) {
  tfc_label worst = TFC_LABEL_MEASURED;
  for (uint32_t d = 0; d < info->device_count; d++)
    for (int l = TFC_LABEL_MEASURED; l <= TFC_LABEL_MODELLED; l++)
      if (strcmp(info->devices[d].label, tfc_label_name((tfc_label)l)) == 0 && l > (int)worst) worst = (tfc_label)l;
  return worst;
}

bool tfc_measured_counts(const struct tfc_measured *m, const struct tfc_measured_step *step) {
  return !step->warmup && (step->traced || !m->by_records || !m->profile_count);
}

tfc_status tfc_result_from_measured(const struct tfc_measured *m, uint32_t device_count, tfc_label label, bool detail,
                                    struct tfc_result *out) {
  double *us = calloc(m->step_count + 1u, sizeof *us);
  if (!us) return tfc_status_no_memory("measuring");
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->step_count; i++)
    if (tfc_measured_counts(m, &m->steps[i])) us[n++] = 1e-3 * (double)m->steps[i].duration_ns;
  struct tfc_quartiles q = tfc_quartiles_of(us, n);
  free(us);
  out->state = m->state;
  if (m->state == TFC_RESULT_OK && n == 0) out->state = TFC_RESULT_CUT;
  out->label = label;
  out->steps = n;
  out->value = n ? (int64_t)(q.median * 1e6 + 0.5) : TFC_TIME_MAX;
  out->q1 = n ? (int64_t)(q.q1 * 1e6 + 0.5) : TFC_TIME_MAX;
  out->q3 = n ? (int64_t)(q.q3 * 1e6 + 0.5) : TFC_TIME_MAX;
  out->ratio = m->ratio;
  out->cost_seconds = m->seconds;
  out->transfers = m->transfer_count;
  out->transfer_bytes = 0;
  for (uint32_t i = 0; i < m->transfer_count; i++) out->transfer_bytes += m->transfers[i].bytes;
  free(out->message);
  out->message = m->message ? tfc_str_dup(tfc_str_from(m->message)) : NULL;
  if (!detail) return NULL;
  if (!out->busy && !(out->busy = calloc(device_count + 1u, sizeof *out->busy)))
    return tfc_status_no_memory("measuring");
  if (!out->memory && !(out->memory = calloc(device_count + 1u, sizeof *out->memory)))
    return tfc_status_no_memory("measuring");
  for (uint32_t d = 0; d < device_count; d++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < m->profile_count; i++)
      if (d < m->profiles[i].busy.count) sum += m->profiles[i].busy.data[d].busy_ns;
    out->busy[d] = m->profile_count ? sum * 1000 / m->profile_count : 0;
    out->memory[d] = d < m->peak_count ? m->peak[d] : 0;
  }
  return NULL;
}

struct call { // one call of `evaluate`
  struct measured_evaluator *self;
  const struct tfc_solution *candidates;
  const struct tfc_rules *rules;
  struct tfc_result *results;
  uint32_t count;
};

static tfc_status got(void *user, const struct tfc_measured *m) {
  struct call *c = user;
  const struct tfc_measure_info *info = tfc_measurer_info(c->self->measurer);
  struct tfc_result reference = {0};
  bool is_candidate = m->entry < c->count;
  struct tfc_result *r = is_candidate ? &c->results[m->entry] : &reference;
  tfc_status s = tfc_result_from_measured(m, info->device_count, tfc_measure_label(info), c->rules->detail, r);
  if (!s && c->self->observe)
    s = c->self->observe(c->self->user, is_candidate ? m->entry : TFC_NONE,
                         is_candidate ? &c->candidates[m->entry] : c->rules->reference, m, r);
  tfc_result_deinit(&reference);
  return s;
}

static tfc_status evaluate(struct tfc_evaluator *base, const struct tfc_solution *candidates, uint32_t count,
                           const struct tfc_rules *rules, struct tfc_result *results) {
  tfc_status s = NULL;
  struct measured_evaluator *self = (struct measured_evaluator *)base;
  const struct tfc_subject *l = self->subject;
  struct call call = {self, candidates, rules, results, count};
  uint32_t entries = count + (rules->reference != NULL);
  struct tfc_measure_entry *entry = calloc(entries + 1u, sizeof *entry);
  size_t nodes = l->graph->node_count;
  uint16_t *placement = malloc(((size_t)entries * nodes + 1) * sizeof *placement);
  uint32_t *sequence = malloc(((size_t)entries * l->cost_count + 1) * sizeof *sequence);
  if (!entry || !placement || !sequence) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < entries; i++) {
    const struct tfc_solution *candidate = i < count ? &candidates[i] : rules->reference;
    entry[i].placement = placement + i * nodes;
    entry[i].sequence = sequence + (size_t)i * l->cost_count;
    TFC_TRY(s, tfc_subject_assign(l, self->base.problem, candidate, placement + i * nodes,
                                  sequence + (size_t)i * l->cost_count, &entry[i].sequence_count));
  }
  const struct tfc_measure_settings *t = &self->settings;
  struct tfc_measure_batch batch = {
      .entries = entry,
      .count = entries,
      .reference = rules->reference ? count : TFC_NONE,
      .warmup = rules->warmup ? rules->warmup
                : t->warmup   ? t->warmup
                              : 1,
      .block = rules->steps ? rules->steps
               : t->block   ? t->block
                            : 5,
      .blocks = t->blocks ? t->blocks : 1,
      .stop_ratio = rules->stop_ratio > 0 ? rules->stop_ratio : t->stop_ratio,
      .best_us = rules->cutoff < TFC_TIME_MAX && rules->cutoff > 0 ? (double)rules->cutoff * 1e-6 : (double)NAN,
      .trace = t->trace,
      .deadline_s = t->deadline_s};
  TFC_TRY(s, tfc_measurer_run(self->measurer, &batch, got, &call));
out:
  free(entry);
  free(placement);
  free(sequence);
  return s;
}

static void free_evaluator(struct tfc_evaluator *base) {
  free(base);
}

tfc_status tfc_evaluator_measured(struct tfc_measurer *measurer, const struct tfc_subject *subject,
                                  const struct tfc_problem *problem, const struct tfc_measure_settings *settings,
                                  tfc_observe_fn observe, void *user, struct tfc_evaluator **out) {
  static const struct tfc_evaluator_vtable vtable = {"measured", evaluate, free_evaluator};
  struct measured_evaluator *e = calloc(1, sizeof *e);
  if (!e) return tfc_status_no_memory("measuring");
  *e = (struct measured_evaluator){{&vtable, problem}, measurer, subject, *settings, observe, user};
  *out = &e->base;
  return NULL;
}
