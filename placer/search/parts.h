// Assigns parts of the graph to devices, by memory and work. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_PARTS_H
#define TFC_PLACER_SEARCH_PARTS_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_part {
  uint64_t memory;
  double work; // time on its fastest device, ps
  uint32_t number;
};
struct tfc_parts {
  const struct tfc_problem *p;
  uint32_t count;
  const uint32_t *of; // [unit] its part
  bool any;           // every part has a device on which it is allowed
  bool *may;          // [part * device_count + device]
  uint64_t *memory;   // [part]
  double *time;       // [part * class_count + class]
  struct tfc_part *sorted;
  double *load;   // [device]
  uint64_t *used; // [device]
};
enum tfc_parts_order { TFC_PARTS_BY_WORK, TFC_PARTS_BY_MEMORY, TFC_PARTS_ANYHOW };

// of [unit] (borrowed): parts from 0. Call deinit also after an error.
TFC_MUST_USE tfc_status tfc_parts_init(struct tfc_parts *parts, const struct tfc_problem *problem, const uint32_t *of,
                                       uint32_t count);
void tfc_parts_deinit(struct tfc_parts *parts);
// Assigns one part after another to the device with the least work among those with room; if none has room, to the one
// with most room. Needs `any`. home [part].
void tfc_parts_spread(struct tfc_parts *parts, struct tfc_random *random, enum tfc_parts_order order,
                      tfc_device_id *home);
// Divides the parts of two devices at a time anew until all fit (placer/search/pack.h). True: they fit.
bool tfc_parts_pack(const struct tfc_parts *parts, struct tfc_random *random, bool thorough, tfc_device_id *home);

#endif
