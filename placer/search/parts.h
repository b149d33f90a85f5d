// Assigns parts of the graph to devices, by memory and work. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_PARTS_H
#define TFC_PLACER_SEARCH_PARTS_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_part {
  uint64_t memory;
  double work; // at its fastest, ps
  uint32_t number;
};
struct tfc_parts {
  const struct tfc_problem *p;
  uint32_t count;
  const uint32_t *of; // [unit]
  bool any;           // every part may be on some device
  bool *may;          // [part * device_count + device]
  uint64_t *memory;   // [part]
  double *time;       // [part * class_count + class]
  struct tfc_part *sorted;
  double *load;   // [device]
  uint64_t *used; // [device]
};
enum tfc_parts_order { TFC_PARTS_BY_WORK, TFC_PARTS_BY_MEMORY, TFC_PARTS_ANYHOW };

// of [unit] (borrowed): parts from 0. May be deinitialised after an error.
TFC_MUST_USE tfc_status tfc_parts_init(struct tfc_parts *parts, const struct tfc_problem *problem, const uint32_t *of,
                                       uint32_t count);
void tfc_parts_deinit(struct tfc_parts *parts);
// Part after part where the work is least among the devices with room, else where there is most room; `any` must hold.
// home [part].
void tfc_parts_spread(struct tfc_parts *parts, struct tfc_random *random, enum tfc_parts_order order,
                      tfc_device_id *home);
// Divides devices anew, two at a time, until all parts fit (placer/search/pack.h); true: they do.
bool tfc_parts_pack(const struct tfc_parts *parts, struct tfc_random *random, bool thorough, tfc_device_id *home);

#endif
