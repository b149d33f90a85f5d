#include "placer/search/elite.h"

#include <string.h>

#define VARIED 0.02 // members of a varied elite differ in at least this share of the units

static bool is_alike(const struct tfc_problem *p, const struct tfc_solution *a, const struct tfc_solution *b) {
  uint32_t differ = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) differ += a->device[u] != b->device[u];
  return differ < VARIED * p->unit_count;
}

static void drop(struct tfc_elite *e, uint32_t i) {
  tfc_solution_deinit(&e->solution[i]);
  e->count--;
  memmove(&e->solution[i], &e->solution[i + 1], (e->count - i) * sizeof *e->solution);
  memmove(&e->score[i], &e->score[i + 1], (e->count - i) * sizeof *e->score);
}

tfc_status tfc_elite_join(struct tfc_elite *e, const struct tfc_problem *p, const struct tfc_solution *solution,
                          struct tfc_score score) {
  uint32_t at = 0;
  if (score.value == TFC_TIME_MAX && e->count) return NULL;
  while (at < e->count && tfc_score_better(e->score[at], score)) at++;
  if (at == TFC_ELITE || (at < e->count && !tfc_score_better(score, e->score[at]))) return NULL;
  for (uint32_t i = 0; e->varied && i < at; i++)
    if (is_alike(p, &e->solution[i], solution)) return NULL;
  struct tfc_solution copy = {0};
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&copy, solution, p));
  for (uint32_t i = e->count; e->varied && i-- > at;)
    if (is_alike(p, &e->solution[i], solution)) drop(e, i);
  if (e->count == TFC_ELITE) drop(e, TFC_ELITE - 1);
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
