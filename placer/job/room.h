#ifndef TFC_PLACER_JOB_ROOM_H
#define TFC_PLACER_JOB_ROOM_H

#include "placer/job/model.h"

// RESOURCE_EXHAUSTED if variables cannot fit under any placement: all of them together, or those of one unit. Memory
// that a step needs besides variables is not checked here.
TFC_MUST_USE tfc_status tfc_job_check_room(const struct tfc_job_model *model);

#endif
