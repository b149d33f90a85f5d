// Packing: items in bins of limited memory, for problems that a local search by single moves and exchanges can no
// longer fit. Internal to the placer.
//
// The items of two bins are divided anew, exactly: all sums of each half of them are listed in order, and a pair of
// sums that fits is looked for (Horowitz and Sahni 1974, Computing Partitions with Applications to the Knapsack
// Problem, section 2). Bins that are too full meet bins with room; others meet each other, so that there is something
// new to try.
#ifndef TFC_PLACER_SEARCH_PACK_H
#define TFC_PLACER_SEARCH_PACK_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_pack {
  uint32_t item_count, bin_count;
  const uint64_t *size;  // [item] bytes
  const uint64_t *limit; // [bin]
  bool (*may)(const void *user, uint32_t item, uint32_t bin);
  const void *user;
  bool thorough; // if only some dozens of items need memory, also tries for up to a few seconds to fill bins exactly
};
// bin [item]: the current bin of each item, updated. Tries `rounds` pairs of bins, fewer if everything fits. Returns
// the bytes above limits (never more than before); UINT64_MAX: out of memory, and nothing has changed.
uint64_t tfc_pack_bins(const struct tfc_pack *pack, struct tfc_random *random, uint32_t rounds, tfc_device_id *bin);

#endif
