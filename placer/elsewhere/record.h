// Writes the run to the database.
#ifndef TFC_PLACER_ELSEWHERE_RECORD_H
#define TFC_PLACER_ELSEWHERE_RECORD_H

#include "placer/elsewhere/final.h"

// Opens the database and adds the run, unless an interrupted run goes on (tfc_elsewhere_resume).
TFC_MUST_USE tfc_status tfc_elsewhere_open(struct tfc_elsewhere *run);
TFC_MUST_USE tfc_status tfc_elsewhere_store(struct tfc_elsewhere *run, struct tfc_elsewhere_known *known,
                                            const struct tfc_command_answer *answer, const char *phase);
// Stores which algorithm proposed which of the measured placements.
TFC_MUST_USE tfc_status tfc_elsewhere_store_proposers(struct tfc_elsewhere *run);
TFC_MUST_USE tfc_status tfc_elsewhere_close(struct tfc_elsewhere *run, const struct tfc_elsewhere_verdict *verdict,
                                            tfc_status failed, bool cancelled);

#endif
