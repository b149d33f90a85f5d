#include "placer/job/proposers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/schedule.h"
#include "profiler/store_rows.h"
#include "runtime/base/str.h"

void tfc_job_proposers_deinit(struct tfc_job_proposers *p) {
  for (size_t i = 0; i < p->list.count; i++) free(p->list.data[i].name);
  tfc_array_free(&p->list);
}

static struct tfc_job_proposer *find(const struct tfc_job_proposers *p, const char *name) {
  for (size_t i = 0; i < p->list.count; i++)
    if (strcmp(p->list.data[i].name, name) == 0) return &p->list.data[i];
  return NULL;
}
const struct tfc_job_proposer *tfc_job_proposers_find(const struct tfc_job_proposers *p, const char *name) {
  return find(p, name);
}

// Owns the name from then on, also after an error.
static tfc_status add(struct tfc_job_proposers *p, struct tfc_job_proposer one) {
  if (one.name && tfc_array_push(&p->list, one)) return NULL;
  free(one.name);
  return tfc_status_no_memory("counting measurements");
}

tfc_status tfc_job_proposers_measured(struct tfc_job_proposers *p, const char *name, bool learned, double simulated_us,
                                      double measured_us) {
  struct tfc_job_proposer *one = find(p, name);
  if (!one) {
    struct tfc_job_proposer made = {.name = tfc_str_dup(tfc_str_from(name)),
                                    .learned = learned,
                                    .best_simulated = INFINITY,
                                    .best_measured = INFINITY};
    TFC_RETURN_IF_ERROR(add(p, made));
    one = &p->list.data[p->list.count - 1];
  }
  one->measured++;
  if (simulated_us < one->best_simulated) one->best_simulated = simulated_us;
  if (measured_us < one->best_measured) one->best_measured = measured_us;
  return NULL;
}

void tfc_job_proposers_simulated(struct tfc_job_proposers *p, uint64_t evaluations) {
  p->evaluations += evaluations;
}

void tfc_job_proposers_searched(struct tfc_job_proposers *p, const struct tfc_search_account *policy) {
  tfc_search_account_add(&p->searches, policy);
}

tfc_status tfc_job_proposers_restore(struct tfc_job_proposers *p, const struct tfc_store_proposer *row) {
  const struct tfc_job_proposer one = {
      .name = tfc_str_dup(tfc_str_from(row->name)),
      .learned = row->learned,
      .measured = row->measured,
      .won = row->won,
      .best_simulated = isfinite(row->best_simulated_us) ? row->best_simulated_us : INFINITY,
      .best_measured = isfinite(row->best_measured_us) ? row->best_measured_us : INFINITY};
  return add(p, one);
}

void tfc_job_proposers_won(struct tfc_job_proposers *p, const char *name) {
  struct tfc_job_proposer *one = find(p, name);
  if (one) one->won++;
}

uint32_t tfc_job_proposers_unearned_left(const struct tfc_job_proposers *p, uint32_t measurements) {
  const uint32_t most = (uint32_t)(tfc_job_shares.unearned * measurements);
  uint32_t spent = 0;
  for (size_t i = 0; i < p->list.count; i++)
    if (p->list.data[i].learned && !p->list.data[i].won) spent += p->list.data[i].measured;
  return most > spent ? most - spent : 0;
}

double tfc_job_proposers_draw(const struct tfc_job_proposers *p, const char *name, bool learned, uint32_t measurements,
                              struct tfc_random *random) {
  const struct tfc_job_proposer *one = find(p, name);
  const double n = one ? one->measured : 0, won = one ? one->won : 0;
  if (learned && won < 1 && !tfc_job_proposers_unearned_left(p, measurements)) return -1;
  // Draws from a normal distribution with the mean and deviation of the posterior Beta(1 + won, 1 + lost).
  const double mean = (won + 1) / (n + 2), sd = sqrt(mean * (1 - mean) / (n + 3));
  return fmax(0, mean + sd * tfc_random_normal(random));
}

bool tfc_job_proposers_may_search(const struct tfc_job_proposers *p, uint64_t limit, uint64_t held,
                                  uint64_t *out_left) {
  const uint64_t gone = p->evaluations + held;
  *out_left = limit > gone ? limit - gone : 0;
  return !limit || *out_left;
}
