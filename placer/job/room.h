#ifndef TFC_PLACER_JOB_ROOM_H
#define TFC_PLACER_JOB_ROOM_H

#include "placer/job/model.h"

// RESOURCE_EXHAUSTED where variables alone have no room on the devices, whatever goes where: all of them together, or
// those of a unit. Nothing is said about what a step needs besides.
TFC_MUST_USE tfc_status tfc_job_check_room(const struct tfc_job_model *model);

#endif
