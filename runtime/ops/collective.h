// Collective operations: the members of a group each give a tensor, and all of them get what these make together: a
// sum, all tensors one after the other, or the tensor of one member. A member is a device of a task. Members name
// their group by a key and a size, as in TensorFlow: which they are is found out when the last one has called.
//
// The n-th call of a member with some group and instance key meets the n-th of every other member. The parts of a sum
// are added in the order of the members, so that its bits are the same from run to run.
//
// A task's collectives are an object among its resources. Without a wire to other tasks all members are in this one.
#ifndef TFC_RUNTIME_OPS_COLLECTIVE_H
#define TFC_RUNTIME_OPS_COLLECTIVE_H

#include "runtime/ops/kernel.h"

typedef enum tfc_collective_kind {
  TFC_COLLECTIVE_REDUCE,
  TFC_COLLECTIVE_GATHER,
  TFC_COLLECTIVE_BROADCAST,
} tfc_collective_kind;
typedef enum tfc_collective_math {
  TFC_COLLECTIVE_ADD,
  TFC_COLLECTIVE_MUL,
  TFC_COLLECTIVE_MIN,
  TFC_COLLECTIVE_MAX,
} tfc_collective_math;

struct tfc_collective_call {
  tfc_collective_kind kind;
  tfc_collective_math math; // of a reduction
  bool divides;             // ... whose result is divided by the number of members
  bool gives;               // false: a member that gets what another one broadcasts
  tfc_dtype dtype;
  struct tfc_shape shape; // of a broadcast's receiver: what it expects
  uint32_t device;        // number of the member's device in its task
  int32_t group, size;    // key and size of the group
  int32_t rank;           // the member's place among the others; -1: by task and device
  int64_t instance;
};

// What the collectives of tasks tell each other.
struct tfc_collective_head {
  uint32_t what, part;
  int32_t group, size, rank;
  uint32_t device, kind, dtype;
  int64_t instance, turn;
  int32_t dim_count, zero;
  int64_t dims[TFC_MAX_RANK];
};
struct tfc_collective_wire {
  uint32_t rank, count; // of this task; of tasks
  // Any thread. `body` is shared until it was sent.
  tfc_status (*send)(struct tfc_collective_wire *wire, uint32_t to, const struct tfc_collective_head *head,
                     tfc_str rest, struct tfc_buffer *body, uint64_t size);
};

struct tfc_collectives;
// The collectives of these resources, made when they are asked for first. Returned with a reference.
TFC_MUST_USE tfc_status tfc_collectives_of(struct tfc_resources *resources, struct tfc_collectives **out);
void tfc_collectives_release(struct tfc_collectives *c); // NULL is fine
// Before the first call. The wire is borrowed and outlives the steps.
void tfc_collectives_connect(struct tfc_collectives *c, struct tfc_collective_wire *wire);
// A message has come. INVALID_ARGUMENT: it makes no sense.
TFC_MUST_USE tfc_status tfc_collectives_take(struct tfc_collectives *c, uint32_t from,
                                             const struct tfc_collective_head *head, tfc_str rest,
                                             struct tfc_buffer *body, uint64_t size);
// For a kernel with TFC_OP_ASYNC. If it succeeds, output 0 is set and ctx->done called, perhaps before it returns.
// `value`: what the member gives, or NULL.
TFC_MUST_USE tfc_status tfc_collectives_call(struct tfc_collectives *c, struct tfc_kernel_ctx *ctx,
                                             const struct tfc_collective_call *call, const struct tfc_tensor *value);

#endif
