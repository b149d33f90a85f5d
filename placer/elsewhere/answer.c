// Writes the placement document of the answer, with measured values instead of the model's.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/answer.h"
#include "placer/learned/errors.h"
#include "profiler/statistics.h"
#include "runtime/base/units.h"

static tfc_status quartiles(const struct tfc_elsewhere_known *k, struct tfc_quartiles *out, uint32_t *out_steps) {
  *out = (struct tfc_quartiles){k->median_us, k->q1_us, k->q3_us, k->median_us};
  *out_steps = k->steps;
  if (!k->final_us.count) return NULL;
  double *us = malloc(k->final_us.count * sizeof *us);
  if (!us) return tfc_status_no_memory(NULL);
  memcpy(us, k->final_us.data, k->final_us.count * sizeof *us);
  *out = tfc_quartiles_of(us, k->final_us.count), *out_steps = (uint32_t)k->final_us.count;
  free(us);
  return NULL;
}

static tfc_status add_baselines(struct tfc_elsewhere *r, struct tfc_placement *p) {
  p->baselines = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_baseline, r->known.count + 1);
  if (!p->baselines) return tfc_status_no_memory(NULL);
  p->baseline_count = 0;
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    struct tfc_quartiles q;
    uint32_t steps;
    if (!k->baseline) continue;
    struct tfc_placement_baseline *b = &p->baselines[p->baseline_count++];
    TFC_RETURN_IF_ERROR(quartiles(k, &q, &steps));
    *b = (struct tfc_placement_baseline){.name = tfc_arena_str(&p->arena, tfc_str_from(k->name)),
                                         .median_us = k->state == TFC_RESULT_OK ? q.median : (double)NAN,
                                         .feasible = k->state == TFC_RESULT_OK};
    if (k->note) b->note = tfc_arena_str(&p->arena, tfc_str_from(k->note));
  }
  return NULL;
}

// Compares two predictions that were made before each reading, the learned model's and the given model's, by their
// error and by Kendall's tau.
static void add_errors(const struct tfc_elsewhere *r, struct tfc_text *t) {
  struct tfc_learned_predictions all = {0};
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    const struct tfc_learned_prediction p = {k->predicted_us, k->simulated_us, exp(k->log_us)};
    if (isfinite(p.learned) && isfinite(p.given) && isfinite(p.measured)) t->failed |= !tfc_array_push(&all.list, p);
  }
  tfc_learned_tell_errors(&all, t);
  tfc_array_free(&all.list);
}

static void summarise(struct tfc_elsewhere *r, const struct tfc_elsewhere_verdict *v) {
  struct tfc_text t = {0};
  const struct tfc_elsewhere_known *k = &r->known.data[v->answer];
  const char *label = tfc_label_name(tfc_command_label(r->program));
  char a[32];
  tfc_text_printf(
      &t, r->o->settings->ask ? "Measured on %s (%s): %zu placements.\n" : "Measured with '%s' (%s): %zu placements.\n",
      r->o->settings->measure_with, label, r->known.count);
  if (v->single != TFC_NONE && isfinite(v->ratio))
    tfc_text_printf(&t, "Best single device (%s): %.3f times as long (95 %%: %.3f to %.3f).\n",
                    r->known.data[v->single].name, v->ratio, v->low, v->high);
  if (isfinite(k->simulated_us))
    tfc_text_printf(&t, "The model as it was given says %s.\n", tfc_show_us(a, k->simulated_us));
  for (uint32_t d = 0; r->learned && d < r->problem->device_count; d++) {
    double sd;
    const double factor = tfc_learned_device_factor(r->learned, d, &sd);
    if (isfinite(factor) && fabs(log(factor)) > 2 * sd && fabs(factor - 1) > 0.05)
      tfc_text_printf(&t, "Operations on %.*s take %.2f times what the model says.\n",
                      TFC_STR_ARG(r->problem->machine->devices[d].name), factor);
  }
  if (r->learned) add_errors(r, &t);
  if (r->learned) tfc_learned_tell_trust(tfc_learned_trust(r->learned), &t);
  tfc_search_account_tell(&r->searches, &t);
  if (tfc_command_restarts(r->program))
    tfc_text_printf(&t, "The command was started again %u times.\n", tfc_command_restarts(r->program));
  r->out->summary = t.data;
}

// Makes the document of a placement that was measured, or that does not fit.
static tfc_status make_document(struct tfc_elsewhere *r, const struct tfc_elsewhere_known *k,
                                struct tfc_placement **out) {
  tfc_status s = NULL;
  struct tfc_placement *p = NULL;
  struct tfc_quartiles q;
  uint32_t steps;
  TFC_TRY(s, r->o->describe(r->o->user, &k->solution, &p));
  TFC_TRY(s, quartiles(k, &q, &steps));
  if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL)
    TFC_FAIL(s, r->o->settings->ask ? TFC_ABORTED : TFC_UNAVAILABLE, "%s'%s': %s",
             r->o->settings->ask ? "" : "--measure-with ", r->o->settings->measure_with,
             k->note ? k->note : "it was not measured");
  if (k->state != TFC_RESULT_OK) p->feasible = false;
  p->run = r->run;
  p->measured_with = tfc_arena_str(&p->arena, tfc_str_from(r->o->settings->measure_with));
  p->algorithm = tfc_arena_str(&p->arena, tfc_str_from(k->algorithm ? k->algorithm : k->name));
  p->seed = r->o->search.seed, p->evaluations = r->evaluations;
  p->value_us = p->step_median_us = q.median, p->step_q1_us = q.q1, p->step_q3_us = q.q3;
  p->value_ps = p->step_ps = 0, p->step_count = steps;
  if (r->o->settings->ask) { // each task ordered its own operations: the document's order was not used
    p->unordered_median_us = q.median, p->unordered_q1_us = q.q1, p->unordered_q3_us = q.q3;
    p->unordered_count = steps;
  }
  p->value_label = p->step_label = tfc_command_label(r->program);
  p->bound_us = (double)NAN, p->bound_ps = 0;
  for (uint32_t d = 0; d < p->device_count; d++) p->devices[d].label = tfc_command_label(r->program);
  TFC_TRY(s, add_baselines(r, p));
  *out = p, p = NULL;
out:
  tfc_placement_free(p);
  return s;
}

tfc_status tfc_elsewhere_tell_best(struct tfc_elsewhere *r) {
  const struct tfc_elsewhere_settings *settings = r->o->settings;
  struct tfc_placement *p = NULL;
  if (!settings->improved || r->o->evaluate || r->best == TFC_NONE) return NULL;
  TFC_RETURN_IF_ERROR(make_document(r, &r->known.data[r->best], &p));
  tfc_status s = settings->improved(settings->improved_user, p);
  tfc_placement_free(p);
  return s;
}

tfc_status tfc_elsewhere_answer(struct tfc_elsewhere *r, const struct tfc_elsewhere_verdict *v) {
  tfc_status s = NULL;
  bool any_fits = false;
  for (size_t i = 0; i < r->known.count; i++) any_fits |= r->known.data[i].state != TFC_RESULT_NO_FIT;
  if (v->answer == TFC_NONE) {
    const char *note = r->known.count ? r->known.data[0].note : NULL;
    if (!any_fits)
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no placement that was tried fits, says the program that measures");
    TFC_FAIL(s, r->o->settings->ask ? TFC_ABORTED : TFC_UNAVAILABLE, "%s'%s' measured none of %zu placements%s%s",
             r->o->settings->ask ? "" : "--measure-with ", r->o->settings->measure_with, r->known.count,
             note ? ": " : "", note ? note : "");
  }
  const struct tfc_elsewhere_known *k = &r->known.data[v->answer];
  const bool timed = k->state == TFC_RESULT_OK;
  TFC_TRY(s, make_document(r, k, &r->out->placement));
  summarise(r, v);
  r->out->exit_code = !timed ? 5 : 0;
  if (timed && !r->o->evaluate && v->single != TFC_NONE && !(v->low > 1)) r->out->exit_code = 7;
out:
  return s;
}
