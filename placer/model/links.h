// Which row of a machine's links counts for each ordered pair of devices.
#ifndef TFC_PLACER_MODEL_LINKS_H
#define TFC_PLACER_MODEL_LINKS_H

#include "placer/model/machine.h"

// out_row [from * device_count + to]: the last link row that matches the ordered pair; TFC_NONE: these two devices
// cannot exchange data. Rows with the same pattern share one comparison of that pattern with the names of all devices.
// The time is in proportion to (number of patterns) * (number of devices) + (number of rows) * (number of devices)²
// / 64.
TFC_MUST_USE tfc_status tfc_machine_links(const struct tfc_machine *machine, uint32_t *out_row);

#endif
