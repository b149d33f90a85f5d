// The final run: the answer, what it is compared with and the undivided machine once more, in turns. Nothing that must
// be compared is left out for want of time: each then has fewer steps.
#ifndef TFC_PLACER_JOB_FINAL_H
#define TFC_PLACER_JOB_FINAL_H

#include "placer/job/turns.h"

TFC_MUST_USE tfc_status tfc_job_final(struct tfc_job_turns *turns);

#endif
