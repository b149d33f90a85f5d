// A rendezvous passes tensors between tasks: a producer leaves a tensor there, and the consumer in another task takes
// it. A producer never waits. A consumer may request the tensor before or after it has come.
#ifndef TFC_RUNTIME_OPS_RENDEZVOUS_H
#define TFC_RUNTIME_OPS_RENDEZVOUS_H

#include "runtime/ops/kernel.h"

struct tfc_rendezvous_key {
  int64_t step;
  uint64_t iteration; // identifies an iteration of a loop; 0 outside of loops
  uint32_t edge;      // number of the edge in the cut graph
  uint32_t peer;      // rank of the other task
};
// An interface: implementations embed it as their first member. Any thread may call it.
struct tfc_rendezvous {
  // Sends `value` (NULL: dead) to the task key->peer. `name` is the tensor's name, for messages; it exists as long as
  // the graph. `more`: this thread sends another tensor at once, or calls `flush`; until then this one may be kept, so
  // that small tensors for one task travel together.
  tfc_status (*send)(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                     const struct tfc_tensor *value, bool more);
  // Sends what was kept.
  void (*flush)(struct tfc_rendezvous *r);
  // Calls give(ctx, ...) once, perhaps before this function returns: with the value, with NULL (dead), or with an error
  // (the step has ended).
  void (*receive)(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                  struct tfc_kernel_ctx *ctx,
                  void (*give)(struct tfc_kernel_ctx *ctx, tfc_status status, const struct tfc_tensor *value));
  // A thread that waits until *word differs from `seen` calls this: it sends and receives messages for a short time
  // meanwhile. NULL: other threads do that.
  void (*attend)(struct tfc_rendezvous *r, const _Atomic uint32_t *word, uint32_t seen);
  // What is sent is read while it is sent, and released then: so a variable's memory may be lent (tfc_tensor_lend).
  // Else the other task gets the memory itself.
  bool lends;
};

#endif
