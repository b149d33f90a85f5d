// Queues of tuples: FIFO, padding FIFO, random shuffle, priority.
//
// Enqueues and dequeues that have to wait are kept in the queue, in order, and completed (tfc_kernel_ctx.done) by
// whoever makes them possible, outside of the queue's lock: a dequeue by an enqueue, both by close. A waiting kernel
// whose step was cancelled completes with CANCELLED when tfc_resources_wake is called: whoever cancels a step does so.
#ifndef TFC_RUNTIME_OPS_DATA_QUEUE_H
#define TFC_RUNTIME_OPS_DATA_QUEUE_H

#include "runtime/ops/kernel.h"

struct tfc_queue;

// For barriers: a priority queue without a limit, whose part 0 is the int64 priority; `shapes` NULL: not told. All from
// any thread.
TFC_MUST_USE tfc_status tfc_queue_create(tfc_str name, uint32_t parts, const tfc_dtype *dtypes,
                                         const struct tfc_shape *shapes, struct tfc_queue **out);
void tfc_queue_release(struct tfc_queue *q); // NULL is fine
void tfc_queue_wake(struct tfc_queue *q);
int64_t tfc_queue_size(struct tfc_queue *q);
// Are these values [n, ...] what part `part` of n tuples may be?
TFC_MUST_USE tfc_status tfc_queue_check(const struct tfc_queue *q, uint32_t part, const struct tfc_tensor *values);
// Takes over one tuple's parts; on failure they stay the caller's.
TFC_MUST_USE tfc_status tfc_queue_put(struct tfc_queue *q, struct tfc_tensor *parts);
// Completes the kernel later with `n` tuples (or, with `up_to`, those that a closed queue still has) as its outputs.
TFC_MUST_USE tfc_status tfc_queue_take(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t n, bool up_to);
// The queue behind input `i`. Returned with a reference.
TFC_MUST_USE tfc_status tfc_queue_of_input(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_queue **out);
// The kernel's output is a handle to the queue that its node describes, made when it is not there yet.
TFC_MUST_USE tfc_status tfc_queue_of_node(struct tfc_kernel_ctx *ctx);
// For staging areas: first in, first out, at most `capacity` tuples (-1: any).
TFC_MUST_USE tfc_status tfc_queue_create_fifo(tfc_str name, int64_t capacity, uint32_t parts, const tfc_dtype *dtypes,
                                              struct tfc_queue **out);
// The kernel's inputs from `first` on become one tuple (`many`: one for each of their rows), when there is room; one
// tuple becomes its outputs, when there is one. Both complete the kernel later.
TFC_MUST_USE tfc_status tfc_queue_put_inputs(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, bool many,
                                             uint32_t first);
TFC_MUST_USE tfc_status tfc_queue_take_one(struct tfc_kernel_ctx *ctx, struct tfc_queue *q);
// The tuple at `index`, which stays there; waits until there is one.
TFC_MUST_USE tfc_status tfc_queue_peek(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t index);
void tfc_queue_clear(struct tfc_queue *q);
TFC_MUST_USE tfc_status tfc_queue_close(struct tfc_queue *q, bool cancel);
bool tfc_queue_is_closed(struct tfc_queue *q);

#endif
