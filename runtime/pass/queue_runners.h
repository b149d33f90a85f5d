// Queue runners say which operations fill which queue. They are in a MetaGraph's collection "queue_runners".
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
  const uint32_t *enqueues; // a separate thread runs each of these again and again; an operation may be listed several
                            // times
  uint32_t enqueue_count;
  // `close` runs when the last of these threads has ended; `cancel` runs to stop them all. TFC_NONE: there is no
  // such operation.
  uint32_t close, cancel;
  uint32_t ending; // bit c: an enqueue that fails with tfc_code c has ended normally
};
struct tfc_queue_runners {
  struct tfc_queue_runner *list;
  uint32_t count;
  struct tfc_arena arena;
};
// INVALID_ARGUMENT names a node that the graph does not have. A graph without the collection has no runners.
TFC_MUST_USE tfc_status tfc_queue_runners_read(const struct tfc_graph *g, struct tfc_queue_runners *out);
void tfc_queue_runners_deinit(struct tfc_queue_runners *r);

// wanted[count] becomes true for the runners of queues that the nodes in `needed` [node] use. Nodes that these runners
// run are needed as well, with the queues that they use. Scratch: stack [node_count].
void tfc_queue_runners_need(const struct tfc_queue_runners *r, const struct tfc_graph *g, bool *needed, bool *wanted,
                            uint32_t *stack);

#endif
