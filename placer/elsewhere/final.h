// The final turns, which choose the answer and measure it.
#ifndef TFC_PLACER_ELSEWHERE_FINAL_H
#define TFC_PLACER_ELSEWHERE_FINAL_H

#include "placer/elsewhere/state.h"

// The result of the final turns. The ratio and its interval are NaN if no single device was measured.
struct tfc_elsewhere_verdict {
  uint32_t answer, single; // index of the answer and of the best single device; TFC_NONE: none
  double ratio, low, high; // the single device's step time divided by the answer's; its 95 % interval
};
double tfc_elsewhere_final_seconds(const struct tfc_elsewhere *run); // time reserved for the final turns
// *out_cancelled: the user stopped the run before the turns ended; the answer is the best so far.
TFC_MUST_USE tfc_status tfc_elsewhere_final(struct tfc_elsewhere *run, struct tfc_elsewhere_verdict *out,
                                            bool *out_cancelled);

#endif
