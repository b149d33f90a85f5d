// Proposers: who proposed what was measured, and who is given measurements: a bandit (Thompson 1933), each arm an
// algorithm. Credit comes only from readings in turns with the placement that led before: a first reading that says
// "faster" may have been lucky. A learned policy gets at most a quarter of the measurements before it has such credit.
#ifndef TFC_PLACER_JOB_PROPOSERS_H
#define TFC_PLACER_JOB_PROPOSERS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/array.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

struct tfc_job_proposer {
  char *name;
  bool learned;          // a policy that learns
  uint32_t measured;     // of its placements
  uint32_t won;          // that were faster, in turns, than what led
  double best_simulated, // us, of its placements: what the model said before they were measured
      best_measured;     // us; infinite: none
};
struct tfc_job_proposers {
  TFC_ARRAY(struct tfc_job_proposer) list;
};
void tfc_job_proposers_deinit(struct tfc_job_proposers *proposers);
// A placement of `name` was measured; NaN: not known. `learned` of the first one counts.
TFC_MUST_USE tfc_status tfc_job_proposers_measured(struct tfc_job_proposers *proposers, const char *name, bool learned,
                                                   double simulated_us, double measured_us);
void tfc_job_proposers_won(struct tfc_job_proposers *proposers, const char *name);
// A draw of how likely the next placement of `name` wins; below 0: it has had its share of `measurements` in all.
double tfc_job_proposers_draw(const struct tfc_job_proposers *proposers, const char *name, bool learned,
                              uint32_t measurements, struct tfc_random *random);
const struct tfc_job_proposer *tfc_job_proposers_find(const struct tfc_job_proposers *proposers, const char *name);

#endif
