#include "placer/search/elite.h"

#include <string.h>

tfc_status tfc_elite_join(struct tfc_elite *e, const struct tfc_problem *p, const struct tfc_solution *solution,
                          struct tfc_score score) {
  uint32_t at = 0;
  if (score.value == TFC_TIME_MAX && e->count) return NULL;
  while (at < e->count && tfc_score_better(e->score[at], score)) at++;
  if (at == TFC_ELITE || (at < e->count && !tfc_score_better(score, e->score[at]))) return NULL;
  struct tfc_solution copy = {0};
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&copy, solution, p));
  if (e->count == TFC_ELITE) tfc_solution_deinit(&e->solution[--e->count]);
  memmove(&e->solution[at + 1], &e->solution[at], (e->count - at) * sizeof *e->solution);
  memmove(&e->score[at + 1], &e->score[at], (e->count - at) * sizeof *e->score);
  e->solution[at] = copy, e->score[at] = score, e->count++;
  return NULL;
}

void tfc_elite_clear(struct tfc_elite *e) {
  for (uint32_t i = 0; i < e->count; i++) tfc_solution_deinit(&e->solution[i]);
  e->count = 0;
}

tfc_status tfc_elite_join_all(struct tfc_elite *to, const struct tfc_elite *from, const struct tfc_problem *p) {
  for (uint32_t i = 0; i < from->count; i++)
    TFC_RETURN_IF_ERROR(tfc_elite_join(to, p, &from->solution[i], from->score[i]));
  return NULL;
}
