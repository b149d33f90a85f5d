// Runs the learners: algorithms that propose placements and learn from their measured step times. Each measurement is
// an episode of the run.
#ifndef TFC_PLACER_JOB_LEARN_H
#define TFC_PLACER_JOB_LEARN_H

#include "placer/algo/algo.h"
#include "placer/job/measuring.h"
#include "placer/job/proposers.h"

// Runs the learner `algo` until `until_s` seconds of the job are over, with at most `measurements` measurements.
TFC_MUST_USE tfc_status tfc_job_learn(struct tfc_job_measuring *measuring, struct tfc_job_proposers *proposers,
                                      const struct tfc_algo *algo, double until_s, uint32_t measurements);

#endif
