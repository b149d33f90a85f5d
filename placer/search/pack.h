// Packing: puts items into bins of limited memory, for problems in which moves and exchanges of single units no longer
// make everything fit. Internal to the placer.
//
// Takes two bins at a time and divides their items again, in the best way: it divides the items into two halves, lists
// the sums of all subsets of each half in order, and looks for a pair of sums that fits (Horowitz and Sahni 1974,
// Computing Partitions with Applications to the Knapsack Problem, section 2). Usually one bin is too full and the other
// has free memory; other pairs are divided, too, because that makes new divisions possible.
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
  bool thorough; // if only some dozens of items need memory, also tries to fill bins exactly, for up to a few seconds
};
// bin [item]: the current bin of each item; updated. Tries `rounds` pairs of bins, fewer if everything fits before.
// Returns the bytes above the limits (never more than before); UINT64_MAX: out of memory, and nothing has changed.
uint64_t tfc_pack_bins(const struct tfc_pack *pack, struct tfc_random *random, uint32_t rounds, tfc_device_id *bin);

#endif
