// Steps of one plan with several in flight, in the worker.
#ifndef TFC_PLACER_MEASURE_PIPELINE_H
#define TFC_PLACER_MEASURE_PIPELINE_H

#include "placer/measure/worker_side.h"

// Runs steps with `in_flight` of them at the same time: all of one plan in ready order, or (`copies`, [in_flight - 1])
// each of a plan of its own that was made for it. out_ns [windows]: the mean time between two ends, over as many ends
// as there are steps in flight.
TFC_MUST_USE tfc_status tfc_worker_pipeline(struct tfc_worker *w, struct tfc_plan *plan, struct tfc_plan **copies,
                                            uint32_t entry, uint32_t in_flight, uint32_t windows, int64_t *out_ns);

#endif
