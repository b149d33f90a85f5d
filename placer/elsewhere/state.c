// State that all phases share: the clock, the budget, messages, and the known placements.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/state.h"
#include "runtime/base/clock.h"

double tfc_elsewhere_seconds(const struct tfc_elsewhere *r) {
  return tfc_now_s() - r->begin_s;
}
bool tfc_elsewhere_cancelled(const struct tfc_elsewhere *r) {
  return r->o->search.cancel && atomic_load(r->o->search.cancel);
}
uint32_t tfc_elsewhere_left(const struct tfc_elsewhere *r) {
  const uint32_t all = r->o->settings->measurements;
  return r->known.count < all ? all - (uint32_t)r->known.count : 0;
}

void tfc_elsewhere_say(struct tfc_elsewhere *r, bool warning, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (r->o->settings->say) r->o->settings->say(warning, text);
}

// The hash contains the ranks only if they are not the problem's own.
uint64_t tfc_elsewhere_digest(const struct tfc_problem *p, const struct tfc_solution *s) {
  uint64_t hash = tfc_hash_bytes(s->device, p->unit_count * sizeof *s->device);
  if (s->rank && memcmp(s->rank, p->rank, p->node_count * sizeof *s->rank) != 0)
    hash ^= tfc_hash_bytes(s->rank, p->node_count * sizeof *s->rank) * 0x9e3779b97f4a7c15u;
  return hash;
}

tfc_status tfc_elsewhere_add(struct tfc_elsewhere *r, const char *name, const char *algorithm, const char *role,
                             const struct tfc_solution *solution, uint32_t *out_index, bool *out_new) {
  tfc_status s = NULL;
  struct tfc_verdict v = {0};
  const uint64_t digest = tfc_elsewhere_digest(r->problem, solution);
  *out_new = false;
  for (uint32_t i = 0; i < r->known.count; i++)
    if (r->known.data[i].digest == digest) return *out_index = i, NULL;
  struct tfc_elsewhere_known k = {.algorithm = algorithm,
                                  .role = role,
                                  .baseline = strcmp(role, "baseline") == 0,
                                  .digest = digest,
                                  .state = TFC_RESULT_CUT,
                                  .median_us = (double)NAN,
                                  .q1_us = (double)NAN,
                                  .q3_us = (double)NAN,
                                  .ratio = (double)NAN,
                                  .log_us = (double)NAN,
                                  .predicted_us = (double)NAN};
  k.name = name ? tfc_str_dup(tfc_str_from(name)) : tfc_format("#%zu", r->known.count + 1);
  if (!k.name) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_solution_copy(&k.solution, solution, r->problem));
  tfc_simulate(r->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  k.simulated_us = v.legal ? 1e-6 * (double)v.value : (double)NAN;
  if (!tfc_array_push(&r->known, k)) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out_index = (uint32_t)r->known.count - 1, *out_new = true;
out:
  if (s) free(k.name), tfc_solution_deinit(&k.solution);
  return s;
}

void tfc_elsewhere_choose(struct tfc_elsewhere *r) {
  for (uint32_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    if (k->state == TFC_RESULT_OK && isfinite(k->log_us) &&
        (r->best == TFC_NONE || k->log_us < r->known.data[r->best].log_us))
      r->best = i;
  }
}

void tfc_elsewhere_known_deinit(struct tfc_elsewhere_known *k) {
  free(k->name), free(k->note), free(k->owned);
  tfc_solution_deinit(&k->solution);
  tfc_array_free(&k->final_us);
  tfc_array_free(&k->choose_us);
}

void tfc_elsewhere_forget(struct tfc_elsewhere *r) {
  for (size_t i = 0; i < r->known.count; i++) tfc_elsewhere_known_deinit(&r->known.data[i]);
  tfc_array_free(&r->known);
  tfc_array_free(&r->kept_ranks);
}
