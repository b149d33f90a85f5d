// Queues of tuples, of four kinds: FIFO, padding FIFO, random shuffle, and priority.
//
// Enqueues and dequeues that have to wait are kept in the queue, in order. The operation that makes them possible
// completes them (tfc_kernel_ctx.done), outside of the queue's lock: an enqueue completes a dequeue, closing completes
// both. A waiting kernel whose step was cancelled completes with CANCELLED when tfc_resources_wake is called; whoever
// cancels a step must call it.
#ifndef TFC_RUNTIME_OPS_DATA_QUEUE_H
#define TFC_RUNTIME_OPS_DATA_QUEUE_H

#include "runtime/ops/kernel.h"

struct tfc_queue;

// Makes a queue for a barrier: a priority queue without a limit, whose part 0 is the int64 priority; `shapes` NULL: not
// declared. All functions may be called from any thread.
TFC_MUST_USE tfc_status tfc_queue_create(tfc_str name, uint32_t parts, const tfc_dtype *dtypes,
                                         const struct tfc_shape *shapes, struct tfc_queue **out);
void tfc_queue_release(struct tfc_queue *q); // NULL is fine
// As the members of tfc_object_type, for an object that contains a queue.
void tfc_queue_wake(struct tfc_queue *q);
void tfc_queue_waits(struct tfc_queue *q, void (*fn)(void *arg, int64_t step), void *arg);
TFC_MUST_USE tfc_status tfc_queue_save(struct tfc_queue *q, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_queue_load(struct tfc_queue *q, tfc_str words);
int64_t tfc_queue_size(struct tfc_queue *q);
tfc_dtype tfc_queue_dtype(const struct tfc_queue *q, uint32_t part);
// Checks that these values [n, ...] are valid for part `part` of n tuples.
TFC_MUST_USE tfc_status tfc_queue_check(const struct tfc_queue *q, uint32_t part, const struct tfc_tensor *values);
// The same for the value of one tuple.
TFC_MUST_USE tfc_status tfc_queue_check_one(const struct tfc_queue *q, uint32_t part, const struct tfc_tensor *value);
// Takes over the parts of one tuple; on failure they still belong to the caller.
TFC_MUST_USE tfc_status tfc_queue_put(struct tfc_queue *q, struct tfc_tensor *parts);
// Completes the kernel later, with `n` tuples as its outputs (or, with `up_to`, with what a closed queue still has).
TFC_MUST_USE tfc_status tfc_queue_take(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t n, bool up_to);
// Finds the queue behind input `i`, with a reference.
TFC_MUST_USE tfc_status tfc_queue_of_input(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_queue **out);
// Sets the kernel's output to a handle of the queue that its node describes, which is created if it does not exist.
TFC_MUST_USE tfc_status tfc_queue_of_node(struct tfc_kernel_ctx *ctx);
// Creates a queue for a staging area: first in, first out, with at most `capacity` tuples (-1: any number).
TFC_MUST_USE tfc_status tfc_queue_create_fifo(tfc_str name, int64_t capacity, uint32_t parts, const tfc_dtype *dtypes,
                                              struct tfc_queue **out);
// tfc_queue_put_inputs makes one tuple of the kernel's inputs from `first` on (`many`: one for each of their rows) once
// there is room; tfc_queue_take_one sets the kernel's outputs to one tuple once there is one. Both complete the kernel
// later.
TFC_MUST_USE tfc_status tfc_queue_put_inputs(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, bool many,
                                             uint32_t first);
TFC_MUST_USE tfc_status tfc_queue_take_one(struct tfc_kernel_ctx *ctx, struct tfc_queue *q);
// Copies the tuple at `index`, which stays in the queue; waits until it exists.
TFC_MUST_USE tfc_status tfc_queue_peek(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t index);
void tfc_queue_clear(struct tfc_queue *q);
TFC_MUST_USE tfc_status tfc_queue_close(struct tfc_queue *q, bool cancel);
bool tfc_queue_is_closed(struct tfc_queue *q);

#endif
