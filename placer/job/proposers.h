// Proposers: which algorithm proposed each measured placement, and which algorithm gets the next measurement. It is a
// bandit (Thompson 1933) whose arms are the algorithms. An algorithm gets credit only if its placement was faster in
// turns with the previous best one, because a fast first measurement may be luck. All learned policies without credit
// together get at most a quarter of the measurements.
#ifndef TFC_PLACER_JOB_PROPOSERS_H
#define TFC_PLACER_JOB_PROPOSERS_H

#include <stdbool.h>
#include <stdint.h>

#include "placer/search/account.h"
#include "runtime/base/array.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

struct tfc_store_proposer;

struct tfc_job_proposer {
  char *name;
  bool learned;          // a learned policy
  uint32_t measured;     // number of its placements that were measured
  uint32_t won;          // number of these that were faster, in turns, than the previous best
  double best_simulated, // us: the best placement's time, simulated before it was measured
      best_measured;     // us; infinite: none of its placements was measured
};
struct tfc_job_proposers {
  TFC_ARRAY(struct tfc_job_proposer) list;
  struct tfc_search_account searches; // what the learned policy did in the simulated searches of this process
  uint64_t evaluations; // placements that all searches of the run have simulated, also before it was interrupted
};
void tfc_job_proposers_deinit(struct tfc_job_proposers *proposers);
// Counts a measured placement that `name` proposed; a time of NaN is not known. `learned` is used at the first call for
// a name.
TFC_MUST_USE tfc_status tfc_job_proposers_measured(struct tfc_job_proposers *proposers, const char *name, bool learned,
                                                   double simulated_us, double measured_us);
// Counts placements that a search has simulated.
void tfc_job_proposers_simulated(struct tfc_job_proposers *proposers, uint64_t evaluations);
// Adds what the learned policy did in a search.
void tfc_job_proposers_searched(struct tfc_job_proposers *proposers, const struct tfc_search_account *policy);
// Adds a proposer of the run that is resumed.
TFC_MUST_USE tfc_status tfc_job_proposers_restore(struct tfc_job_proposers *proposers,
                                                  const struct tfc_store_proposer *row);
void tfc_job_proposers_won(struct tfc_job_proposers *proposers, const char *name);
// Returns how many of `measurements` learned policies without credit may still take, all together.
uint32_t tfc_job_proposers_unearned_left(const struct tfc_job_proposers *proposers, uint32_t measurements);
// Thompson sampling: draws a guess of the probability that the next placement of `name` wins, from what its placements
// won so far; the caller measures a placement of the algorithm with the highest guess. Below 0: it is a learned policy
// without credit, and such policies have used up their share of all `measurements`.
double tfc_job_proposers_draw(const struct tfc_job_proposers *proposers, const char *name, bool learned,
                              uint32_t measurements, struct tfc_random *random);
const struct tfc_job_proposer *tfc_job_proposers_find(const struct tfc_job_proposers *proposers, const char *name);
// Whether the run's searches may simulate any more placements, of `limit` in all, `held` of which are kept for others
// (limit 0: nothing limits them). *out_left: how many; 0 with true: any number.
bool tfc_job_proposers_may_search(const struct tfc_job_proposers *proposers, uint64_t limit, uint64_t held,
                                  uint64_t *out_left);

#endif
