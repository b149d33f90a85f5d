// Assigns parts of the graph (sets of units) to devices, so that memory suffices and work is spread. Internal to the
// placer.
#ifndef TFC_PLACER_SEARCH_PARTS_H
#define TFC_PLACER_SEARCH_PARTS_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_part {
  uint64_t memory;
  double work; // ps, its time on the device that is fastest for it
  uint32_t number;
};
struct tfc_parts {
  const struct tfc_problem *p;
  uint32_t count;
  const uint32_t *of; // [unit] its part
  bool any;           // each part may be on at least one device
  bool *may;          // [part * device_count + device] whether the part may be there
  uint64_t *memory;   // [part]
  double *time;       // [part * class_count + class]
  struct tfc_part *sorted;
  double *load;   // [device]
  uint64_t *used; // [device]
};
enum tfc_parts_order { TFC_PARTS_BY_WORK, TFC_PARTS_BY_MEMORY, TFC_PARTS_ANYHOW };

// of [unit]: the part of each unit, numbered from 0; borrowed. Call deinit also after an error.
TFC_MUST_USE tfc_status tfc_parts_init(struct tfc_parts *parts, const struct tfc_problem *problem, const uint32_t *of,
                                       uint32_t count);
void tfc_parts_deinit(struct tfc_parts *parts);
// Assigns one part after another to the device with the least work among those that have memory for it; if none has, to
// the one with the most free memory. Needs `any`. home [part]: its device.
void tfc_parts_spread(struct tfc_parts *parts, struct tfc_random *random, enum tfc_parts_order order,
                      tfc_device_id *home);
// Takes two devices at a time and divides their parts again until all fit (placer/search/pack.h). True: they fit.
bool tfc_parts_pack(const struct tfc_parts *parts, struct tfc_random *random, bool thorough, tfc_device_id *home);

#endif
