// Queues of tuples: FIFO, padding FIFO, random shuffle, priority.
//
// Enqueues and dequeues that have to wait are kept in the queue, in order, and completed (tfc_kernel_ctx.done) by
// whoever makes them possible, outside of the queue's lock: a dequeue by an enqueue, both by close. A waiting kernel
// whose step was cancelled completes with CANCELLED when tfc_queues_wake is called: whoever cancels a step calls it.
#ifndef TFC_RUNTIME_OPS_DATA_QUEUE_H
#define TFC_RUNTIME_OPS_DATA_QUEUE_H

#include "runtime/ops/kernel.h"

// Looks at all queues of a session for kernels that wait and whose env->cancelled() says that their step is over.
// Any thread.
void tfc_queues_wake(struct tfc_resources *resources);

#endif
