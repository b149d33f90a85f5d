// Reads QueueRunnerDefs, whose fields are: queue_name 1, enqueue_op_name 2 (repeated), close_op_name 3, cancel_op_name
// 4, queue_closed_exception_types 5 (repeated, TensorFlow's error codes).
#include "runtime/pass/queue_runners.h"

#include "runtime/graph/wire.h"

static const struct {
  uint64_t number; // TensorFlow's error code
  tfc_code code;
} codes[] = {{1, TFC_CANCELLED}, {3, TFC_INVALID_ARGUMENT},   {4, TFC_DEADLINE_EXCEEDED},
             {5, TFC_NOT_FOUND}, {8, TFC_RESOURCE_EXHAUSTED}, {9, TFC_FAILED_PRECONDITION},
             {10, TFC_ABORTED},  {11, TFC_OUT_OF_RANGE},      {12, TFC_UNIMPLEMENTED},
             {13, TFC_INTERNAL}, {14, TFC_UNAVAILABLE},       {15, TFC_DATA_LOSS}};

static uint32_t bit_of(uint64_t number) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].number == number) return 1u << codes[i].code;
  return 0;
}

static tfc_status find(const struct tfc_graph *g, tfc_str name, uint32_t *out) {
  struct tfc_output tensor;
  *out = name.size ? tfc_graph_find(g, name) : TFC_NONE;
  if (!name.size || *out != TFC_NONE) return NULL;
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(g, name, &tensor)); // queue_name may be the name of a tensor
  *out = tensor.node;
  return NULL;
}

static tfc_status read_one(const struct tfc_graph *g, tfc_str bytes, struct tfc_arena *arena,
                           struct tfc_queue_runner *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct tfc_queue_runner r = {.queue = TFC_NONE, .close = TFC_NONE, .cancel = TFC_NONE};
  uint32_t *enqueues = TFC_ARENA_ARRAY(arena, uint32_t, bytes.size / 2 + 1); // a field has two bytes at least
  if (!enqueues) return tfc_status_no_memory(NULL);
  while (tfc_wire_next(&w, &f)) {
    uint64_t number;
    if (f.number == 5 && f.type == TFC_WIRE_VARINT) r.ending |= bit_of(f.value);
    if (f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire packed = tfc_wire_of(f.bytes);
    switch (f.number) {
    case 1: TFC_RETURN_IF_ERROR(find(g, f.bytes, &r.queue)); break;
    case 2: TFC_RETURN_IF_ERROR(find(g, f.bytes, &enqueues[r.enqueue_count++])); break;
    case 3: TFC_RETURN_IF_ERROR(find(g, f.bytes, &r.close)); break;
    case 4: TFC_RETURN_IF_ERROR(find(g, f.bytes, &r.cancel)); break;
    case 5:
      while (packed.at != packed.end && tfc_wire_varint(&packed, &number)) r.ending |= bit_of(number);
      break;
    default: break;
    }
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  for (uint32_t i = 0; i < r.enqueue_count; i++)
    if (enqueues[i] == TFC_NONE) return tfc_status_make(TFC_INVALID_ARGUMENT, "an operation without a name");
  if (!r.ending) r.ending = 1u << TFC_OUT_OF_RANGE;
  r.enqueues = enqueues;
  *out = r;
  return NULL;
}

tfc_status tfc_queue_runners_read(const struct tfc_graph *g, struct tfc_queue_runners *out) {
  tfc_status s = NULL;
  struct tfc_queue_runners r = {0};
  const struct tfc_collection *c = NULL;
  for (uint32_t i = 0; i < g->collection_count; i++)
    if (tfc_str_is(g->collections[i].name, "queue_runners")) c = &g->collections[i];
  r.list = TFC_ARENA_ARRAY(&r.arena, struct tfc_queue_runner, (c ? c->count : 0) + 1);
  if (!r.list) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; c && i < c->count; i++) {
    s = read_one(g, c->values[i], &r.arena, &r.list[i]);
    if (s) {
      s = tfc_status_annotate(s, "the collection 'queue_runners', number %u", i);
      goto out;
    }
    r.count++;
  }
  *out = r, r = (struct tfc_queue_runners){0};
out:
  tfc_queue_runners_deinit(&r);
  return s;
}

void tfc_queue_runners_deinit(struct tfc_queue_runners *r) {
  tfc_arena_deinit(&r->arena);
  *r = (struct tfc_queue_runners){0};
}

// Marks a node, and all nodes that it depends on.
static void mark(const struct tfc_graph *g, uint32_t node, bool *needed, uint32_t *stack) {
  uint32_t depth = 0;
  if (needed[node]) return;
  needed[node] = true;
  stack[depth++] = node;
  while (depth > 0) {
    const struct tfc_node *n = &g->nodes[stack[--depth]];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t i = 0; i < n->input_count + n->control_count; i++)
      if (!needed[in[i].node]) {
        needed[in[i].node] = true;
        stack[depth++] = in[i].node;
      }
  }
}

void tfc_queue_runners_need(const struct tfc_queue_runners *r, const struct tfc_graph *g, bool *needed, bool *wanted,
                            uint32_t *stack) {
  for (uint32_t i = 0; i < r->count; i++) wanted[i] = false;
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t i = 0; i < r->count; i++) {
      const struct tfc_queue_runner *q = &r->list[i];
      if (wanted[i] || q->queue == TFC_NONE || !needed[q->queue]) continue;
      wanted[i] = grown = true;
      for (uint32_t k = 0; k < q->enqueue_count; k++) mark(g, q->enqueues[k], needed, stack);
    }
  }
}
