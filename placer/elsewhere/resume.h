// Saves what a run has measured and learned, and reads it again.
#ifndef TFC_PLACER_ELSEWHERE_RESUME_H
#define TFC_PLACER_ELSEWHERE_RESUME_H

#include "placer/elsewhere/state.h"

// Stores, after each batch, what is needed to resume the run.
TFC_MUST_USE tfc_status tfc_elsewhere_keep(struct tfc_elsewhere *run);
// Resumes the run that the settings name, after tfc_elsewhere_open. INVALID_ARGUMENT: that run placed another problem,
// or has ended.
TFC_MUST_USE tfc_status tfc_elsewhere_resume(struct tfc_elsewhere *run);

#endif
