#include "placer/search/rivals.h"

#include <string.h>

#include "placer/simulate/simulate.h"

// Finds the legal rival with the smallest value, among those within memory if there are any; NULL: none is legal.
static tfc_status best_of(const struct tfc_problem *p, const struct tfc_rival *rivals, uint32_t count,
                          const struct tfc_rival **out, struct tfc_verdict *out_verdict) {
  struct tfc_simulator *sim = NULL;
  TFC_RETURN_IF_ERROR(tfc_simulator_create(p, &sim));
  *out = NULL;
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_verdict v = {.value = TFC_TIME_MAX};
    tfc_status illegal = tfc_solution_check(p, rivals[i].solution.device);
    const bool legal = illegal == NULL;
    tfc_status_free(illegal);
    if (!legal) continue;
    tfc_simulate(sim, rivals[i].solution.device, rivals[i].solution.rank, TFC_TIME_MAX, &v);
    if (!v.legal || v.value == TFC_TIME_MAX) continue;
    if (*out && (v.excess > out_verdict->excess || (v.excess == out_verdict->excess && v.value >= out_verdict->value)))
      continue;
    *out = &rivals[i], *out_verdict = v;
  }
  tfc_simulator_free(sim);
  return NULL;
}

tfc_status tfc_search_beside(const struct tfc_problem *p, const struct tfc_search_options *options,
                             const struct tfc_rival *rivals, uint32_t count, struct tfc_search_outcome *out) {
  struct tfc_search_options with = *options;
  const struct tfc_rival *best = NULL;
  struct tfc_verdict v = {0};
  struct tfc_solution copy = {0};
  if (options->settings.algorithms && strcmp(options->settings.algorithms, "auto") != 0)
    return tfc_search(p, options, out);
  TFC_RETURN_IF_ERROR(best_of(p, rivals, count, &best, &v));
  if (best && !with.start) with.start = &best->solution;
  TFC_RETURN_IF_ERROR(tfc_search(p, &with, out));
  if (!best) return NULL;
  if (out->best.device && (out->excess < v.excess || (out->excess == v.excess && out->value <= v.value))) return NULL;
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&copy, &best->solution, p));
  if (out->best.device) tfc_solution_deinit(&out->best);
  out->best = copy, out->value = v.value, out->excess = v.excess, out->algorithm = best->name;
  out->optimal = out->bound.value > 0 && v.excess == 0 && v.value == out->bound.value;
  return NULL;
}
