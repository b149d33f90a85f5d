// Queue runners: what a MetaGraph's collection "queue_runners" says about who fills which queue.
//
//   struct tfc_queue_runners r = {0};
//   TFC_TRY(s, tfc_queue_runners_read(graph, &r));
//   tfc_queue_runners_need(&r, graph, needed, wanted, stack);
//   tfc_queue_runners_deinit(&r);
#ifndef TFC_RUNTIME_PASS_QUEUE_RUNNERS_H
#define TFC_RUNTIME_PASS_QUEUE_RUNNERS_H

#include "runtime/base/arena.h"
#include "runtime/graph/graph.h"

struct tfc_queue_runner {
  uint32_t queue;           // node ids
  const uint32_t *enqueues; // each is run again and again by a thread of its own; the same may be there more than once
  uint32_t enqueue_count;
  uint32_t close, cancel; // run when the last of those threads has ended; when all is to end. TFC_NO_NODE: nothing
  uint32_t ending;        // bit c: an enqueue that fails with tfc_code c is a proper end
};
struct tfc_queue_runners {
  struct tfc_queue_runner *list;
  uint32_t count;
  struct tfc_arena arena;
};
// INVALID_ARGUMENT names what the graph does not have. A graph without the collection has none.
TFC_MUST_USE tfc_status tfc_queue_runners_read(const struct tfc_graph *g, struct tfc_queue_runners *out);
void tfc_queue_runners_deinit(struct tfc_queue_runners *r);

// wanted[count]: the runners of queues that `needed` [node] nodes use; what these run becomes needed too, and so on.
// Scratch: stack [node_count].
void tfc_queue_runners_need(const struct tfc_queue_runners *r, const struct tfc_graph *g, bool *needed, bool *wanted,
                            uint32_t *stack);

#endif
