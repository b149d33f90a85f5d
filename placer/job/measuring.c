#include "placer/job/measuring.h"

#include <string.h>

#include "placer/job/lesson.h"

tfc_status tfc_job_measuring_take(struct tfc_job_measuring *t, uint32_t index, const struct tfc_measured *m,
                                  const char *phase) {
  const bool final = strcmp(phase, "final") == 0;
  TFC_RETURN_IF_ERROR(tfc_job_candidates_take(t->candidates, index, m, final));
  TFC_RETURN_IF_ERROR(tfc_job_journal_measured(t->journal, t->candidates, index, m, phase, final));
  const struct tfc_job_candidate *k = &t->candidates->list.data[index];
  tfc_job_model_set_timing(t->model, m);
  if (k->whole || k->single) return NULL;
  if (!final && k->solution.device) tfc_job_model_learn_memory(t->model, &k->solution, m);
  return m->profile_count ? tfc_job_model_see(t->model, m) : NULL;
}

tfc_status tfc_job_measuring_learn(struct tfc_job_measuring *t, uint32_t index, const struct tfc_measured *m) {
  const struct tfc_job_candidate *k = &t->candidates->list.data[index];
  if (k->whole || !k->solution.device || k->state != TFC_RESULT_OK || !(k->median_us > 0)) return NULL;
  // The model learns the median as measured, not the level. Levels are ratios to the incumbent of that time. Each new
  // incumbent was measured a little too fast by luck, so levels become too low. The drift of the machine matters less,
  // because newer samples have a larger weight than older ones.
  return tfc_job_lesson(t->model, &k->solution, k->median_us, m);
}
