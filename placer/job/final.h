// The final run: the answer, the candidates it is compared with, and the undivided machine are measured once more, in
// turns. If time is short, each gets fewer steps, but none of them is left out.
#ifndef TFC_PLACER_JOB_FINAL_H
#define TFC_PLACER_JOB_FINAL_H

#include "placer/job/measuring.h"

TFC_MUST_USE tfc_status tfc_job_final(struct tfc_job_measuring *measuring);

#endif
