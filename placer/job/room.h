#ifndef TFC_PLACER_JOB_ROOM_H
#define TFC_PLACER_JOB_ROOM_H

#include "placer/job/model.h"

// RESOURCE_EXHAUSTED: variables cannot fit under any placement, either all of them together or those of one unit. It
// does not check other memory that a step needs.
TFC_MUST_USE tfc_status tfc_job_check_room(const struct tfc_job_model *model);

#endif
