// The worker's side of a batch: measures placements in turns as a message of the parent says.
#ifndef TFC_PLACER_MEASURE_BATCH_H
#define TFC_PLACER_MEASURE_BATCH_H

#include "placer/measure/worker_side.h"

TFC_MUST_USE tfc_status tfc_worker_batch(struct tfc_worker *w, struct tfc_unpack *message);

#endif
