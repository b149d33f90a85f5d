// Queues that nothing in the graph fills: the training program filled them from its own threads, feeding placeholders
// (as numpy_input_fn does), and the file does not contain that program. A step gets the elements of such a queue as
// feeds instead.
#include "runtime/pass/step_internal.h"

static bool enqueues(const struct tfc_node *n) {
  const tfc_op_role role = tfc_node_role(n);
  return (role == TFC_ROLE_ENQUEUE || role == TFC_ROLE_ENQUEUE_MANY) && n->input_count > 0;
}
static bool enqueues_into(const struct tfc_graph *g, uint32_t id, uint32_t queue) {
  const struct tfc_node *n = &g->nodes[id];
  return enqueues(n) && tfc_node_inputs(g, n)[0].node == queue;
}
bool tfc_step_dequeues(const struct tfc_node *n) {
  const tfc_op_role role = tfc_node_role(n);
  return (role == TFC_ROLE_DEQUEUE || role == TFC_ROLE_DEQUEUE_MANY) && n->input_count > 0;
}

// Whether this node can run again and again without feeds. `unfilled`: queues that are known to stay empty.
static bool runs_alone(const struct tfc_graph *g, uint32_t id, const bool *unfilled, bool *seen, uint32_t *stack) {
  uint32_t depth = 0;
  memset(seen, 0, g->node_count * sizeof *seen);
  stack[depth++] = id, seen[id] = true;
  while (depth > 0) {
    const struct tfc_node *n = &g->nodes[stack[--depth]];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    if (tfc_node_is_placeholder(n) || (tfc_step_dequeues(n) && unfilled[in[0].node])) return false;
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++)
      if (!seen[in[k].node]) seen[in[k].node] = true, stack[depth++] = in[k].node;
  }
  return true;
}

bool tfc_step_enqueues_what_is_fed(const struct tfc_graph *g, uint32_t id, const bool *outside) {
  const struct tfc_node *n = &g->nodes[id];
  if (!enqueues(n) || !outside[id]) return false;
  const uint32_t queue = tfc_node_inputs(g, n)[0].node;
  for (uint32_t c = g->consumer_begin[queue]; c < g->consumer_begin[queue + 1]; c++)
    if (tfc_step_dequeues(&g->nodes[g->consumers[c].node])) return true;
  return false;
}

tfc_status tfc_step_unfilled_queues(const struct tfc_graph *g, const struct tfc_queue_runners *runners,
                                    const bool *needed, const bool *initial, struct tfc_arena *scratch,
                                    bool *unfilled) {
  bool *seen = TFC_ARENA_ARRAY(scratch, bool, g->node_count + 1), changed = true;
  uint32_t *stack = TFC_ARENA_ARRAY(scratch, uint32_t, g->node_count + 1);
  if (!seen || !stack) return tfc_status_no_memory(NULL);
  while (changed) { // a queue that is filled only from an empty queue stays empty, too
    changed = false;
    for (uint32_t i = 0; i < g->node_count; i++) {
      const struct tfc_node *n = &g->nodes[i];
      if (!needed[i] || !tfc_step_dequeues(n)) continue;
      const uint32_t queue = tfc_node_inputs(g, n)[0].node;
      // `fed`: the training program enqueued values that it was fed. (A queue without any enqueue is not reported here:
      // its step waits for ever.)
      bool filled = unfilled[queue], fed = false;
      for (uint32_t c = g->consumer_begin[queue]; !filled && c < g->consumer_begin[queue + 1]; c++) {
        const uint32_t user = g->consumers[c].node;
        if (!enqueues_into(g, user, queue)) continue;
        filled = needed[user] || initial[user];
        fed = fed || !runs_alone(g, user, unfilled, seen, stack);
      }
      for (uint32_t r = 0; !filled && r < runners->count; r++)
        for (uint32_t k = 0; runners->list[r].queue == queue && !filled && k < runners->list[r].enqueue_count; k++)
          filled = runs_alone(g, runners->list[r].enqueues[k], unfilled, seen, stack);
      if (!filled && fed) unfilled[queue] = changed = true;
    }
  }
  return NULL;
}

struct tfc_shape tfc_step_dequeued_shape(const struct tfc_graph *g, const struct tfc_shapes *shapes,
                                         struct tfc_output o) {
  const struct tfc_node *n = &g->nodes[o.node];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  const struct tfc_attr *attr = tfc_node_attr(g, &g->nodes[in[0].node], "shapes");
  const bool one = tfc_node_role(n) == TFC_ROLE_DEQUEUE;
  struct tfc_shape shape = TFC_SHAPE_UNKNOWN;
  if (attr && attr->kind == TFC_ATTR_LIST_SHAPE && (uint32_t)o.index < attr->count) shape = attr->shapes[o.index];
  for (uint32_t c = g->consumer_begin[in[0].node]; shape.rank < 0 && c < g->consumer_begin[in[0].node + 1]; c++) {
    const uint32_t user = g->consumers[c].node; // if the queue declares no shapes, those of what is enqueued are used
    const struct tfc_node *put = &g->nodes[user];
    if (!enqueues_into(g, user, in[0].node) || (uint32_t)o.index + 1 >= put->input_count) continue;
    const struct tfc_output from = tfc_node_inputs(g, put)[o.index + 1];
    if (from.index < 0) continue;
    shape = shapes->shapes[g->nodes[from.node].output_begin + (uint32_t)from.index];
    if (tfc_node_role(put) != TFC_ROLE_ENQUEUE_MANY || shape.rank < 1) continue;
    for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
    shape.rank--;
  }
  for (int32_t d = 0; d < shape.rank; d++)
    if (!tfc_dim_known(shape.dims[d])) shape.dims[d] = TFC_DIM_UNKNOWN;
  if (one || shape.rank < 0 || shape.rank == TFC_MAX_RANK) return shape;
  const struct tfc_tensor *many = n->input_count > 1 && in[1].index >= 0 && shapes->values
                                      ? shapes->values[g->nodes[in[1].node].output_begin + (uint32_t)in[1].index]
                                      : NULL;
  for (int32_t d = shape.rank++; d > 0; d--) shape.dims[d] = shape.dims[d - 1];
  shape.dims[0] = TFC_DIM_UNKNOWN;
  if (many && tfc_dtype_is_integer(many->dtype) && tfc_tensor_elements(many) == 1 && tfc_tensor_int(many, 0) > 0)
    shape.dims[0] = tfc_tensor_int(many, 0);
  return shape;
}
