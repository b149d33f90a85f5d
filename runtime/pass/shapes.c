// Shape inference: one walk in topological order, every node's own shape function with all that is known of its
// inputs. Loops: the first walk takes a Merge's back edge to be like its way in; where the body then disagrees, what
// differs becomes unknown and the walk is done again, until nothing changes.
#include <stdlib.h>

#include "runtime/pass/fold.h"

struct inference {
  const struct tfc_graph *graph;
  struct tfc_shapes *out;
  struct tfc_shape *as_shape; // [output] partial values of integer vectors
  bool *fixed;                // [output] fed
  bool *known;                // [output] inferred in this walk
  struct tfc_shape *loop;     // [node] what a loop's Merge is known to be, rank TFC_MAX_RANK + 1: not yet
  bool *looped;               // [node]
  int64_t next_symbol;
  const struct tfc_shape **inputs; // scratch, [largest arity]
  const struct tfc_shape **partial;
  const struct tfc_tensor **values;
  const struct tfc_handle_info **handles;
};

static int64_t fresh_symbol(struct tfc_shape_ctx *ctx) {
  struct inference *in = ctx->owner;
  return --in->next_symbol;
}

static uint32_t number(const struct tfc_graph *g, struct tfc_output o) {
  return g->nodes[o.node].output_begin + (uint32_t)o.index;
}

// A constant integer scalar or vector as partial value.
static struct tfc_shape partial_of(const struct tfc_tensor *t) {
  struct tfc_shape p = TFC_SHAPE_UNKNOWN;
  int64_t count = tfc_tensor_elements(t);
  if ((t->dtype != TFC_INT32 && t->dtype != TFC_INT64) || t->shape.rank > 1 || count > TFC_MAX_RANK) return p;
  p.rank = (int32_t)count;
  for (int64_t i = 0; i < count; i++) {
    int64_t v = tfc_tensor_int(t, i);
    p.dims[i] = v < 0 ? TFC_DIM_UNKNOWN : v;
  }
  return p;
}

// A partial value that is known whole is a constant.
static const struct tfc_tensor *constant_of(struct inference *in, const struct tfc_shape *p, tfc_dtype dtype,
                                            const struct tfc_shape *shape) {
  if (p->rank < 0 || (dtype != TFC_INT32 && dtype != TFC_INT64) || tfc_shape_elements(shape) != p->rank) return NULL;
  for (int i = 0; i < p->rank; i++)
    if (!tfc_dim_known(p->dims[i])) return NULL;
  int32_t small[TFC_MAX_RANK];
  for (int i = 0; i < p->rank; i++) small[i] = (int32_t)p->dims[i];
  struct tfc_tensor t = {dtype, *shape, dtype == TFC_INT32 ? (void *)small : (void *)(uintptr_t)p->dims,
                         (size_t)p->rank * tfc_dtype_size(dtype), NULL};
  return tfc_fold_keep(&t, &in->out->arena);
}

static tfc_status explain(tfc_status s, const struct inference *in, const struct tfc_node *n) {
  struct tfc_text text = {0};
  char buffer[TFC_SHAPE_TEXT];
  for (uint32_t i = 0; i < n->input_count; i++)
    tfc_text_printf(&text, "%s%s", i ? ", " : "", tfc_shape_show(in->inputs[i], buffer));
  s = tfc_status_annotate(s, "node '%.*s' (%.*s) of %s", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op),
                          text.data ? text.data : "no inputs");
  tfc_text_deinit(&text);
  return s;
}

// Fills the scratch arrays. The back edge of a loop, not inferred yet, looks like the first input.
static void gather(struct inference *in, const struct tfc_node *n) {
  static const struct tfc_shape unknown = {.rank = TFC_RANK_UNKNOWN};
  static const struct tfc_handle_info nothing = {.dtype = TFC_DTYPE_NONE, .shape = {.rank = TFC_RANK_UNKNOWN}};
  const struct tfc_graph *g = in->graph;
  const struct tfc_output *inputs = tfc_node_inputs(g, n);
  for (uint32_t i = 0; i < n->input_count; i++) {
    uint32_t o = number(g, inputs[i]);
    if (!in->known[o] && i > 0) {
      in->inputs[i] = in->inputs[0];
      in->partial[i] = &unknown;
      in->values[i] = NULL;
      in->handles[i] = in->handles[0];
      continue;
    }
    in->inputs[i] = in->known[o] ? &in->out->shapes[o] : &unknown;
    in->partial[i] = &in->as_shape[o];
    in->values[i] = in->out->values[o];
    in->handles[i] = in->known[o] ? &in->out->handles[o] : &nothing;
  }
}

static tfc_status infer_node(struct inference *in, uint32_t id) {
  const struct tfc_graph *g = in->graph;
  const struct tfc_node *n = &g->nodes[id];
  uint32_t first = n->output_begin;
  bool all_fixed = n->output_count > 0;
  for (uint32_t i = 0; i < n->output_count; i++) all_fixed &= in->fixed[first + i];
  if (n->output_count == 0) return NULL;
  struct tfc_shape *shapes = &in->out->shapes[first], *partial = &in->as_shape[first];
  struct tfc_handle_info *handles = &in->out->handles[first];
  if (all_fixed) {
    for (uint32_t i = 0; i < n->output_count; i++) in->known[first + i] = true;
    return NULL;
  }
  struct tfc_shape *keep = TFC_ARENA_ARRAY(&in->out->arena, struct tfc_shape, n->output_count);
  if (!keep) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < n->output_count; i++) {
    keep[i] = shapes[i];
    shapes[i] = partial[i] = TFC_SHAPE_UNKNOWN;
    handles[i] = (struct tfc_handle_info){.dtype = TFC_DTYPE_NONE, .shape = TFC_SHAPE_UNKNOWN};
    if (!in->fixed[first + i]) in->out->values[first + i] = NULL;
  }
  gather(in, n);
  if (n->def && n->def->shape) {
    struct tfc_shape_ctx ctx = {.graph = g,
                                .node = n,
                                .inputs = in->inputs,
                                .input_values = in->values,
                                .input_as_shape = in->partial,
                                .input_handles = in->handles,
                                .outputs = shapes,
                                .output_as_shape = partial,
                                .output_handles = handles,
                                .new_symbol = fresh_symbol,
                                .owner = in};
    tfc_status s = n->def->shape(&ctx);
    if (s) return explain(s, in, n);
  }
  bool merge = n->def && n->def->flags & TFC_OP_MERGE;
  if (in->looped[id] && in->loop[id].rank <= TFC_MAX_RANK) shapes[0] = in->loop[id];
  for (uint32_t i = 0; i < n->output_count; i++) {
    uint32_t o = first + i;
    in->known[o] = true;
    if (in->fixed[o]) { // a feed: what the user says counts
      shapes[i] = keep[i];
      partial[i] = in->out->values[o] ? partial_of(in->out->values[o]) : TFC_SHAPE_UNKNOWN;
      continue;
    }
    if (tfc_dtype_is_ref(g->output_dtypes[o]) || merge) continue;
    in->out->values[o] = constant_of(in, &partial[i], g->output_dtypes[o], &shapes[i]);
  }
  if (merge) return NULL;
  const struct tfc_attr *value =
      n->def && n->def->flags & TFC_OP_NOP && n->output_count == 1 ? tfc_node_attr(g, n, "value") : NULL;
  if (value && value->kind == TFC_ATTR_TENSOR && !in->fixed[first]) {
    in->out->values[first] = value->tensor;
    shapes[0] = value->tensor->shape;
  }
  if (!in->out->values[first]) tfc_fold(g, n, in->values, &in->out->arena, &in->out->values[first]);
  for (uint32_t i = 0; i < n->output_count; i++) {
    const struct tfc_tensor *v = in->out->values[first + i];
    if (!v || in->fixed[first + i]) continue;
    shapes[i] = v->shape;
    partial[i] = partial_of(v);
  }
  return NULL;
}

// What holds on every way into a loop: unknown where they differ.
static struct tfc_shape common(const struct tfc_shape *a, const struct tfc_shape *b) {
  if (a->rank < 0 || a->rank != b->rank) return TFC_SHAPE_UNKNOWN;
  struct tfc_shape c = *a;
  for (int i = 0; i < c.rank; i++)
    if (a->dims[i] != b->dims[i]) c.dims[i] = TFC_DIM_UNKNOWN;
  return c;
}

static bool widen_loops(struct inference *in) {
  const struct tfc_graph *g = in->graph;
  bool changed = false;
  for (uint32_t id = 0; id < g->node_count; id++) {
    const struct tfc_node *n = &g->nodes[id];
    if (!in->looped[id] || in->fixed[n->output_begin]) continue;
    struct tfc_shape all = in->out->shapes[n->output_begin];
    for (uint32_t i = 0; i < n->input_count; i++)
      all = common(&all, &in->out->shapes[number(g, tfc_node_inputs(g, n)[i])]);
    if (!tfc_shape_equal(&all, &in->out->shapes[n->output_begin])) changed = true;
    in->loop[id] = all;
  }
  return changed;
}

static tfc_status prepare(struct inference *in, const struct tfc_shape_override *overrides, uint32_t count) {
  const struct tfc_graph *g = in->graph;
  uint32_t total = g->output_total + 1, arity = 1;
  struct tfc_arena *arena = &in->out->arena;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (n->input_count > arity) arity = n->input_count;
  }
  in->out->shapes = TFC_ARENA_ARRAY(arena, struct tfc_shape, total);
  in->out->values = TFC_ARENA_ARRAY(arena, const struct tfc_tensor *, total);
  in->out->handles = TFC_ARENA_ARRAY(arena, struct tfc_handle_info, total);
  in->as_shape = calloc(total, sizeof *in->as_shape);
  in->fixed = calloc(total, sizeof *in->fixed);
  in->known = calloc(total, sizeof *in->known);
  in->loop = calloc(g->node_count + 1u, sizeof *in->loop);
  in->looped = calloc(g->node_count + 1u, sizeof *in->looped);
  in->inputs = calloc(arity, sizeof *in->inputs);
  in->partial = calloc(arity, sizeof *in->partial);
  in->values = calloc(arity, sizeof *in->values);
  in->handles = calloc(arity, sizeof *in->handles);
  if (!in->out->shapes || !in->out->values || !in->out->handles || !in->as_shape || !in->fixed || !in->known ||
      !in->loop || !in->looped || !in->inputs || !in->partial || !in->values || !in->handles)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < total; i++) in->out->shapes[i] = in->as_shape[i] = TFC_SHAPE_UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t o = number(g, overrides[i].output);
    in->fixed[o] = true;
    in->out->shapes[o] = overrides[i].shape;
    in->out->values[o] = overrides[i].value;
  }
  for (uint32_t id = 0; id < g->node_count; id++) {
    const struct tfc_node *n = &g->nodes[id];
    if (!n->def || !(n->def->flags & TFC_OP_MERGE)) continue;
    in->loop[id].rank = TFC_MAX_RANK + 1;
    for (uint32_t i = 0; i < n->input_count; i++) {
      const struct tfc_op_def *from = g->nodes[tfc_node_inputs(g, n)[i].node].def;
      in->looped[id] |= from && from->flags & TFC_OP_NEXT_ITERATION;
    }
  }
  return NULL;
}

tfc_status tfc_infer_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                            uint32_t override_count, struct tfc_shapes *out) {
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  struct inference in = {.graph = g, .out = &shapes, .next_symbol = TFC_DIM_UNKNOWN};
  uint32_t *order = malloc((g->node_count + 1u) * sizeof *order);
  if (!order) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, prepare(&in, overrides, override_count));
  TFC_TRY(s, tfc_graph_topological(g, order));
  for (int round = 0; round < 2 * TFC_MAX_RANK; round++) { // each round makes some dimension unknown for good
    memset(in.known, 0, g->output_total * sizeof *in.known);
    for (uint32_t i = 0; i < g->node_count; i++) TFC_TRY(s, infer_node(&in, order[i]));
    if (!g->has_frames || !widen_loops(&in)) break;
  }
  *out = shapes, shapes = (struct tfc_shapes){0};
out:
  free(order);
  free(in.as_shape), free(in.fixed), free(in.known), free(in.loop), free(in.looped);
  free(in.inputs), free(in.partial), free(in.values), free(in.handles);
  tfc_arena_deinit(&shapes.arena);
  return s;
}

void tfc_shapes_deinit(struct tfc_shapes *shapes) {
  tfc_arena_deinit(&shapes->arena);
  *shapes = (struct tfc_shapes){0};
}
