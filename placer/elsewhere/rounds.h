// Rounds: search, measure, learn, and search again.
#ifndef TFC_PLACER_ELSEWHERE_ROUNDS_H
#define TFC_PLACER_ELSEWHERE_ROUNDS_H

#include "placer/elsewhere/state.h"

TFC_MUST_USE tfc_status tfc_elsewhere_search(struct tfc_elsewhere *run);

#endif
