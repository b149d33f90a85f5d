#include "placer/measure/command_evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/command_wire.h"
#include "profiler/statistics.h"

enum { BETWEEN = 4 }; // number of candidates between two measurements of the reference

struct command_evaluator {
  struct tfc_evaluator base; // must be the first member
  struct tfc_command *program;
  tfc_describe_fn describe;
  void *describe_user;
  tfc_reading_fn observe;
  void *observe_user;
};

// Fills a result from an answer, except its ratio and details.
static tfc_status fill(const struct tfc_command *program, const struct tfc_command_answer *a, struct tfc_result *r) {
  double *us = malloc((a->step_us.count + 1) * sizeof *us);
  if (!us) return tfc_status_no_memory(NULL);
  if (a->step_us.count) memcpy(us, a->step_us.data, a->step_us.count * sizeof *us);
  const struct tfc_quartiles q = tfc_quartiles_of(us, (uint32_t)a->step_us.count);
  free(us);
  const bool timed = a->state == TFC_RESULT_OK;
  r->state = a->state;
  r->label = tfc_command_label(program);
  r->steps = timed ? (uint32_t)a->step_us.count : 0;
  r->value = timed ? (int64_t)(q.median * 1e6 + 0.5) : TFC_TIME_MAX;
  r->q1 = timed ? (int64_t)(q.q1 * 1e6 + 0.5) : TFC_TIME_MAX;
  r->q3 = timed ? (int64_t)(q.q3 * 1e6 + 0.5) : TFC_TIME_MAX;
  r->ratio = (double)NAN;
  r->cost_seconds = a->seconds;
  free(r->message);
  r->message = a->message ? tfc_str_dup(tfc_str_from(a->message)) : NULL;
  return NULL;
}

static tfc_status read_one(struct command_evaluator *e, const struct tfc_solution *candidate,
                           const struct tfc_rules *rules, struct tfc_command_answer *answer, struct tfc_result *r) {
  tfc_status s = tfc_solution_check(e->base.problem, candidate->device);
  struct tfc_placement *document = NULL;
  if (s) {
    free(r->message);
    *r = (struct tfc_result){.state = TFC_RESULT_ILLEGAL,
                             .label = tfc_command_label(e->program),
                             .value = TFC_TIME_MAX,
                             .q1 = TFC_TIME_MAX,
                             .q3 = TFC_TIME_MAX,
                             .ratio = (double)NAN,
                             .message = tfc_str_dup(tfc_str_from(tfc_status_message(s)))};
    tfc_status_free(s);
    answer->state = TFC_RESULT_ILLEGAL;
    return NULL;
  }
  TFC_TRY(s, e->describe(e->describe_user, candidate, &document));
  TFC_TRY(s, tfc_command_ask(e->program, document, rules->warmup ? rules->warmup : 1, rules->steps ? rules->steps : 5,
                             answer));
  TFC_TRY(s, fill(e->program, answer, r));
out:
  tfc_placement_free(document);
  return s;
}

// Measures the reference. *out_log: logarithm of its median; NaN: there is no reference.
static tfc_status read_reference(struct command_evaluator *e, const struct tfc_rules *rules, double *out_log) {
  tfc_status s = NULL;
  struct tfc_command_answer answer = {0};
  struct tfc_result result = {0};
  *out_log = (double)NAN;
  if (!rules->reference) return NULL;
  TFC_TRY(s, read_one(e, rules->reference, rules, &answer, &result));
  if (result.state == TFC_RESULT_OK && result.value > 0) *out_log = log((double)result.value);
  if (e->observe) TFC_TRY(s, e->observe(e->observe_user, TFC_NONE, rules->reference, &answer, &result));
out:
  tfc_command_answer_deinit(&answer);
  tfc_result_deinit(&result);
  return s;
}

static tfc_status evaluate(struct tfc_evaluator *base, const struct tfc_solution *candidates, uint32_t count,
                           const struct tfc_rules *rules, struct tfc_result *results) {
  tfc_status s = NULL;
  struct command_evaluator *e = (struct command_evaluator *)base;
  struct tfc_command_answer answers[BETWEEN] = {0};
  double before = (double)NAN, after;
  TFC_TRY(s, read_reference(e, rules, &before));
  for (uint32_t first = 0; first < count; first += BETWEEN) {
    const uint32_t some = count - first < BETWEEN ? count - first : BETWEEN;
    for (uint32_t i = 0; i < some; i++)
      TFC_TRY(s, read_one(e, &candidates[first + i], rules, &answers[i], &results[first + i]));
    TFC_TRY(s, read_reference(e, rules, &after));
    for (uint32_t i = 0; i < some; i++) {
      struct tfc_result *r = &results[first + i];
      const double share = (i + 1.0) / (some + 1.0);
      const double level = isnan(before) ? after : isnan(after) ? before : (1 - share) * before + share * after;
      if (r->state == TFC_RESULT_OK && r->value > 0) r->ratio = exp(log((double)r->value) - level);
      if (e->observe) TFC_TRY(s, e->observe(e->observe_user, first + i, &candidates[first + i], &answers[i], r));
    }
    before = after;
  }
out:
  for (int i = 0; i < BETWEEN; i++) tfc_command_answer_deinit(&answers[i]);
  return s;
}

static void free_evaluator(struct tfc_evaluator *base) {
  free(base);
}

tfc_status tfc_evaluator_command(struct tfc_command *program, const struct tfc_problem *problem,
                                 tfc_describe_fn describe, void *describe_user, tfc_reading_fn observe,
                                 void *observe_user, struct tfc_evaluator **out) {
  static const struct tfc_evaluator_vtable vtable = {"program", evaluate, free_evaluator};
  struct command_evaluator *e = calloc(1, sizeof *e);
  if (!e) return tfc_status_no_memory(NULL);
  *e = (struct command_evaluator){{&vtable, problem}, program, describe, describe_user, observe, observe_user};
  *out = &e->base;
  return NULL;
}
