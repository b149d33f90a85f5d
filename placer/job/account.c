#include "placer/job/account.h"

#include <math.h>
#include <string.h>

#include "placer/learned/errors.h"
#include "runtime/base/units.h"

static void add_errors(const struct tfc_job_candidates *c, struct tfc_text *out) {
  struct tfc_learned_predictions all = {0};
  for (size_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    const struct tfc_learned_prediction p = {k->learned_us, k->prior_us, k->median_us};
    if (k->episode && k->state == TFC_RESULT_OK && p.learned > 0 && p.given > 0 && p.measured > 0)
      out->failed |= !tfc_array_push(&all.list, p);
  }
  tfc_learned_tell_errors(&all, out);
  tfc_array_free(&all.list);
}

struct side { // placements of learned policies, or of all other algorithms
  uint32_t measured, won;
  double best_us;
};

static struct side side_of(const struct tfc_job_proposers *p, bool learned) {
  struct side s = {.best_us = INFINITY};
  for (size_t i = 0; i < p->list.count; i++) {
    const struct tfc_job_proposer *one = &p->list.data[i];
    if (one->learned != learned) continue;
    s.measured += one->measured, s.won += one->won;
    s.best_us = fmin(s.best_us, one->best_measured);
  }
  return s;
}

// Whether nothing that was measured before the candidate could be the answer.
static bool is_first(const struct tfc_job_candidates *c, const struct tfc_job_candidate *candidate) {
  for (const struct tfc_job_candidate *k = c->list.data; k < candidate; k++)
    if (tfc_job_can_answer(k)) return false;
  return true;
}

void tfc_job_account(const struct tfc_job_candidates *c, const struct tfc_job_proposers *p, struct tfc_text *out) {
  const struct side learned = side_of(p, true), others = side_of(p, false);
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  const struct tfc_job_proposer *by =
      best && best->algorithm && best->episode ? tfc_job_proposers_find(p, best->algorithm) : NULL;
  char a[32], b[32];
  add_errors(c, out);
  if (c->model->learned) tfc_learned_tell_trust(tfc_learned_trust(c->model->learned), out);
  tfc_search_account_tell(&p->searches, out);
  if (!learned.measured) return;
  tfc_text_printf(out,
                  "The learned policy proposed %u of %u measured placements, of which %u took the lead (others %u)",
                  learned.measured, learned.measured + others.measured, learned.won, others.won);
  if (isfinite(learned.best_us) && isfinite(others.best_us))
    tfc_text_printf(out, "; its best took %s, the others' best %s", tfc_show_us(a, learned.best_us),
                    tfc_show_us(b, others.best_us));
  tfc_text_printf(out, by && by->learned ? ": the answer is its own" : ": the answer is not its own");
  // A placement took the lead only if it was faster than a placement that was measured before it.
  if (by && by->learned && !learned.won)
    tfc_text_printf(out, is_first(c, best) ? ", and nothing before it could be one" : ", chosen at the end");
  tfc_text_printf(out, ".\n");
}
