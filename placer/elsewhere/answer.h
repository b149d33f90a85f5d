// The placement document of the answer.
#ifndef TFC_PLACER_ELSEWHERE_ANSWER_H
#define TFC_PLACER_ELSEWHERE_ANSWER_H

#include "placer/elsewhere/final.h"

TFC_MUST_USE tfc_status tfc_elsewhere_answer(struct tfc_elsewhere *run, const struct tfc_elsewhere_verdict *verdict);
// Gives the best placement so far to the calling program, if it asked for that.
TFC_MUST_USE tfc_status tfc_elsewhere_tell_best(struct tfc_elsewhere *run);

#endif
