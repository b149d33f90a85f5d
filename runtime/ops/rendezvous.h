// Where tensors that cross from one task to another are left and fetched: a producer never waits, a consumer may ask
// before or after.
#ifndef TFC_RUNTIME_OPS_RENDEZVOUS_H
#define TFC_RUNTIME_OPS_RENDEZVOUS_H

#include "runtime/ops/kernel.h"

struct tfc_rendezvous_key {
  int64_t step;
  uint64_t iteration; // of a loop, 0 outside
  uint32_t edge;      // of the graph that was cut
  uint32_t peer;      // the other task's rank
};
// Embedded first in what implements it (runtime/cluster). Any thread.
struct tfc_rendezvous {
  // Hands `value` (NULL: dead) to the task key->peer. `name`, which lives as long as the program's graph, says what it
  // is.
  tfc_status (*send)(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                     const struct tfc_tensor *value);
  // Calls give(ctx, ...) once, perhaps before this returns: with the value, with none (dead), or with an error (the
  // step is over).
  void (*receive)(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                  struct tfc_kernel_ctx *ctx,
                  void (*give)(struct tfc_kernel_ctx *ctx, tfc_status status, const struct tfc_tensor *value));
};

#endif
