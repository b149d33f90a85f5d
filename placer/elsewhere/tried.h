// The placement that is being tried, while nobody knows yet how its steps end. If it ends the whole job (it takes all
// memory of a host, say, so that a task is killed), the resumed run counts it as failed and does not try it again.
#ifndef TFC_PLACER_ELSEWHERE_TRIED_H
#define TFC_PLACER_ELSEWHERE_TRIED_H

#include "placer/elsewhere/state.h"

// Stores that this placement is being tried now, if it is known and has no reading yet; otherwise that none is.
TFC_MUST_USE tfc_status tfc_elsewhere_try(struct tfc_elsewhere *run, const struct tfc_solution *solution);
// Stores that no placement is being tried. It begins no transaction.
TFC_MUST_USE tfc_status tfc_elsewhere_tried_none(struct tfc_elsewhere *run);
// Adds the placement that was being tried when the run was broken off, as one that failed. *out_added: there was one.
TFC_MUST_USE tfc_status tfc_elsewhere_take_tried(struct tfc_elsewhere *run, bool *out_added);

#endif
