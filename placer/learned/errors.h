// Errors: how good the predictions were that the learned model, and the model it started from, made before each
// measurement.
#ifndef TFC_PLACER_LEARNED_ERRORS_H
#define TFC_PLACER_LEARNED_ERRORS_H

#include "runtime/base/array.h"
#include "runtime/base/str.h"

struct tfc_learned_prediction { // of one placement, us
  double learned, given, measured;
};
struct tfc_learned_predictions {
  TFC_ARRAY(struct tfc_learned_prediction) list;
};
// Adds one line if there are at least ten predictions: medians of the absolute errors, and Kendall's tau.
void tfc_learned_tell_errors(const struct tfc_learned_predictions *predictions, struct tfc_text *out);
// Adds one line if `share` (tfc_learned_trust) is below 95 %.
void tfc_learned_tell_trust(double share, struct tfc_text *out);

#endif
