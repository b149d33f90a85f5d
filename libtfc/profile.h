// Runs one step and measures the time of every operation.
#ifndef TFC_LIBTFC_PROFILE_H
#define TFC_LIBTFC_PROFILE_H

#include "libtfc/model.h"

TFC_MUST_USE tfc_status tfc_profile_run(struct tfc_model *model, struct tfc_plan *plan, const struct tfc_tensor *feeds,
                                        struct tfc_tensor *fetches, tfc_profile **out);

#endif
