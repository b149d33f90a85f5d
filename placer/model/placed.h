// A placement file, matched with a graph: which of the opened devices each node runs on. Every program that runs a
// graph by a placement file uses it.
//
//   struct tfc_placed placed = {0};
//   TFC_TRY(s, tfc_placed_read("nmt.placement.json", graph, &placed));
//   TFC_TRY(s, tfc_devices_open(placed.devices, NULL, 0, &set));
//   TFC_TRY(s, tfc_placed_assign(&placed, &set, &placement, &order));   // for tfc_run_spec
//   tfc_placed_deinit(&placed);
#ifndef TFC_PLACER_MODEL_PLACED_H
#define TFC_PLACER_MODEL_PLACED_H

#include "placer/model/placement.h"
#include "runtime/device/driver.h"

struct tfc_placed {
  const char *path;              // borrowed, for messages
  const struct tfc_graph *graph; // borrowed; its functions are lowered
  struct tfc_placement *placement;
  char *devices;     // a list in the form of --devices: the one in the file, otherwise the devices of its nodes in
                     // order of first use
  tfc_math gpu_math; // the arithmetic of GPUs when the placement was measured; TFC_MATH_DEFAULT: the file does not say
                     // it
};
// Reads the file, but does not compare it with the graph: the caller first reports devices that do not exist.
TFC_MUST_USE tfc_status tfc_placed_read(const char *path, const struct tfc_graph *graph, struct tfc_placed *out);
// Fills out_placement[node_count] (indices of devices in the set) and out_order[node_count] (NULL where the file has no
// order); the caller frees both. UNAVAILABLE: the file names a device that is not in the set. INVALID_ARGUMENT names a
// node of the file that the graph does not have, or a node of the graph's file that has no device.
TFC_MUST_USE tfc_status tfc_placed_assign(const struct tfc_placed *placed, const struct tfc_device_set *set,
                                          uint16_t **out_placement, double **out_order);
// The same with the devices of a machine, for jobs of several tasks, where each task orders its own operations.
TFC_MUST_USE tfc_status tfc_placed_assign_machine(const struct tfc_placed *placed, const struct tfc_machine *machine,
                                                  uint16_t **out_placement);
void tfc_placed_deinit(struct tfc_placed *placed);

#endif
