// Which row of a machine's links counts for each ordered pair of devices.
#ifndef TFC_PLACER_MODEL_LINKS_H
#define TFC_PLACER_MODEL_LINKS_H

#include "placer/model/machine.h"

// out_row [from * device_count + to]: the last link row that matches the ordered pair; TFC_NONE: these two devices
// cannot exchange data. Each different pattern is compared once with each device, so the time is in proportion to
// patterns times devices, plus rows times senders.
TFC_MUST_USE tfc_status tfc_machine_links(const struct tfc_machine *machine, uint32_t *out_row);

#endif
