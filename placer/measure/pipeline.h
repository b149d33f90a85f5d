// The worker's side of measuring a plan with several steps in flight.
#ifndef TFC_PLACER_MEASURE_PIPELINE_H
#define TFC_PLACER_MEASURE_PIPELINE_H

#include "placer/measure/worker_side.h"

// Runs `in_flight` steps at the same time. Either all of them use one plan in ready order, or (`copies`, [in_flight -
// 1]) each uses a plan of its own, made for this. out_ns [windows]: the mean time between two ends, over as many ends
// as there are steps in flight.
TFC_MUST_USE tfc_status tfc_worker_pipeline(struct tfc_worker *w, struct tfc_plan *plan, struct tfc_plan **copies,
                                            uint32_t entry, uint32_t in_flight, uint32_t windows, int64_t *out_ns);

#endif
