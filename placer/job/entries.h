// Entries: candidates in the form that a measured batch takes (placer/measure/measure.h): the device of each node, and
// the order of operations.
#ifndef TFC_PLACER_JOB_ENTRIES_H
#define TFC_PLACER_JOB_ENTRIES_H

#include "placer/job/candidates.h"

struct tfc_job_entries {
  struct tfc_measure_entry *list; // [count]; the undivided machine is an entry without a placement
  uint16_t *placements;           // arrays that entries of the list point into
  uint32_t *sequences;
};
// Makes entries for the candidates index[count], and for candidate `last` unless that is TFC_NONE. Deinitialise them
// also after an error.
TFC_MUST_USE tfc_status tfc_job_entries_make(const struct tfc_job_candidates *candidates, const uint32_t *index,
                                             uint32_t count, uint32_t last, struct tfc_job_entries *out);
void tfc_job_entries_deinit(struct tfc_job_entries *entries);

#endif
