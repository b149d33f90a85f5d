// Errors of predictions: before each measurement, the learned model and the model that it started from predict the step
// time; this compares both with the measured time.
#ifndef TFC_PLACER_LEARNED_ERRORS_H
#define TFC_PLACER_LEARNED_ERRORS_H

#include "runtime/base/array.h"
#include "runtime/base/str.h"

// step times of one placement in us; `given`: predicted by the model that the learned one started from
struct tfc_learned_prediction {
  double learned, given, measured;
};
struct tfc_learned_predictions {
  TFC_ARRAY(struct tfc_learned_prediction) list;
};
// Writes one line if there are at least ten predictions: the median absolute error of both models, and Kendall's tau.
void tfc_learned_tell_errors(const struct tfc_learned_predictions *predictions, struct tfc_text *out);
// Writes one line if `share` (from tfc_learned_trust) is below 95 %.
void tfc_learned_tell_trust(double share, struct tfc_text *out);

#endif
