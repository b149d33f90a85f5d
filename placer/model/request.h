// What the user of tfc-place asks of a placement, wherever it is made: on this machine, on a described one, or for a
// cost graph. The flags are read into this record, and it goes as a whole to those who act on them (docs/adding.md).
#ifndef TFC_PLACER_MODEL_REQUEST_H
#define TFC_PLACER_MODEL_REQUEST_H

#include "placer/model/problem.h"
#include "runtime/base/texts.h"

// What the devices are that the graph itself names for its nodes: a placement to compare with, devices that nodes must
// stay on, or nothing. In the order of the choices of --device-strings.
enum tfc_device_strings { TFC_STRINGS_BASELINE, TFC_STRINGS_CONSTRAIN, TFC_STRINGS_IGNORE };

struct tfc_request {                      // borrows its texts
  tfc_objective objective;                // in the order of the choices of --objective
  enum tfc_device_strings device_strings; // not used for cost graphs, whose nodes name no devices
  struct tfc_texts pins;                  // "REGEX=DEVICE"
  struct tfc_texts baselines;             // "NAME=FILE"
};

#endif
