// Collective operations: each member of a group gives a tensor, and all members get the same result: the sum of the
// tensors, their concatenation, or the tensor of one member; or its own part of a sum, or of all tensors. A member is a
// device of a task. Members name their group by a key and a size, as in TensorFlow; who the members are is known when
// the last one has called.
//
// The n-th call of a member with a given group key and instance key belongs to the n-th such call of every other
// member. The parts of a sum are added in the order of the members, so that its bits are the same from run to run.
//
// struct tfc_collectives is an object among a task's resources. Without a wire to other tasks, all members are in this
// task.
#ifndef TFC_RUNTIME_OPS_COLLECTIVE_H
#define TFC_RUNTIME_OPS_COLLECTIVE_H

#include "runtime/ops/kernel.h"

typedef enum tfc_collective_kind {
  TFC_COLLECTIVE_REDUCE,
  TFC_COLLECTIVE_GATHER,
  TFC_COLLECTIVE_BROADCAST,
  // Each member gets the piece of the sum, or the row of each member's tensor, that has its place in the group.
  TFC_COLLECTIVE_REDUCE_SCATTER,
  TFC_COLLECTIVE_ALL_TO_ALL,
} tfc_collective_kind;
typedef enum tfc_collective_math {
  TFC_COLLECTIVE_ADD,
  TFC_COLLECTIVE_MUL,
  TFC_COLLECTIVE_MIN,
  TFC_COLLECTIVE_MAX,
} tfc_collective_math;

struct tfc_collective_call {
  tfc_collective_kind kind;
  tfc_collective_math math; // for a reduction
  bool divides;             // for a reduction: the result is divided by the number of members
  bool gives;               // false: the member receives a broadcast
  tfc_dtype dtype;
  struct tfc_shape shape; // for the receiver of a broadcast: the shape that it expects
  uint32_t device;        // number of the member's device in its task
  int32_t group, size;    // key and size of the group
  int32_t rank;           // the member's position in the group; -1: members are ordered by task and device
  int64_t instance;
};

// The beginning of a message between the collectives of two tasks.
struct tfc_collective_head {
  uint32_t what, part;
  int32_t group, size, rank;
  uint32_t device, kind, dtype;
  int64_t instance, turn;
  int32_t dim_count, zero;
  int64_t dims[TFC_MAX_RANK];
};
struct tfc_collective_wire {
  uint32_t rank, count; // rank of this task; number of tasks
  // Any thread may call this. `body` is shared until it has been sent.
  tfc_status (*send)(struct tfc_collective_wire *wire, uint32_t to, const struct tfc_collective_head *head,
                     tfc_str rest, struct tfc_buffer *body, uint64_t size);
};

struct tfc_collectives;
// Returns the collectives of these resources, which the first call creates. The caller gets a reference.
TFC_MUST_USE tfc_status tfc_collectives_of(struct tfc_resources *resources, struct tfc_collectives **out);
void tfc_collectives_release(struct tfc_collectives *c); // NULL is fine
// Call it before the first collective operation. The wire is borrowed and must outlive the steps.
void tfc_collectives_connect(struct tfc_collectives *c, struct tfc_collective_wire *wire);
// Handles a message from task `from`. INVALID_ARGUMENT: the message is not valid.
TFC_MUST_USE tfc_status tfc_collectives_take(struct tfc_collectives *c, uint32_t from,
                                             const struct tfc_collective_head *head, tfc_str rest,
                                             struct tfc_buffer *body, uint64_t size);
// For a kernel with TFC_OP_ASYNC. If it succeeds, output 0 is set and ctx->done is called later, or before it
// returns.
// `value`: what the member gives, or NULL.
TFC_MUST_USE tfc_status tfc_collectives_call(struct tfc_collectives *c, struct tfc_kernel_ctx *ctx,
                                             const struct tfc_collective_call *call, const struct tfc_tensor *value);

#endif
