// The worker's side of timing links between its devices, as a message of the parent says.
#ifndef TFC_PLACER_MEASURE_LINKS_H
#define TFC_PLACER_MEASURE_LINKS_H

#include "placer/measure/worker_side.h"

TFC_MUST_USE tfc_status tfc_worker_links(struct tfc_worker *w, struct tfc_unpack *message);

#endif
