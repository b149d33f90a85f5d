// Turns filled arrays into a graph: resolves names, op definitions, outputs and edges, checks types, lists consumers,
// and looks for cycles. Every error names the node.
#include "runtime/graph/graph_internal.h"

#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"

static tfc_status no_memory_of(const struct tfc_graph *g) {
  return tfc_status_no_memory_for("a graph of %u nodes", g->node_count);
}

tfc_status tfc_arg_count(const struct tfc_op_arg *arg, const struct tfc_attr_view *attrs, uint32_t *out) {
  if (!arg->number_attr.size && !arg->is_list) {
    *out = 1;
    return NULL;
  }
  tfc_str name = arg->is_list ? arg->type_attr : arg->number_attr;
  const struct tfc_attr *a = tfc_attr_find(attrs, name);
  if (!a) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is missing", TFC_STR_ARG(name));
  if (a->kind == TFC_ATTR_PLACEHOLDER)
    return tfc_status_make(TFC_UNIMPLEMENTED,
                           "attribute '%.*s' of a polymorphic function decides how many tensors '%.*s' is",
                           TFC_STR_ARG(name), TFC_STR_ARG(arg->name));
  int64_t n =
      arg->is_list ? (a->kind == TFC_ATTR_LIST_TYPE ? (int64_t)a->count : -1) : (a->kind == TFC_ATTR_INT ? a->i : -1);
  if (n > TFC_MAX_NODE_OUTPUTS)
    return tfc_status_make(TFC_UNIMPLEMENTED,
                           "attribute '%.*s' says that '%.*s' is %lld tensors; at most %d are supported",
                           TFC_STR_ARG(name), TFC_STR_ARG(arg->name), (long long)n, TFC_MAX_NODE_OUTPUTS);
  if (n < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' does not say how many tensors '%.*s' is",
                           TFC_STR_ARG(name), TFC_STR_ARG(arg->name));
  *out = (uint32_t)n;
  return NULL;
}

tfc_status tfc_arg_type(const struct tfc_op_arg *arg, const struct tfc_attr_view *attrs, uint32_t index,
                        tfc_dtype *out) {
  tfc_dtype t = arg->type;
  if (t == TFC_DTYPE_NONE) {
    const struct tfc_attr *a = tfc_attr_find(attrs, arg->type_attr);
    if (!a) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is missing", TFC_STR_ARG(arg->type_attr));
    if (a->kind == TFC_ATTR_PLACEHOLDER) {
      *out = TFC_DTYPE_NONE;
      return NULL;
    }
    if (arg->is_list && a->kind == TFC_ATTR_LIST_TYPE && index < a->count)
      t = a->types[index];
    else if (!arg->is_list && a->kind == TFC_ATTR_TYPE)
      t = a->type;
    if (!tfc_dtype_valid(t))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is not an element type that tfc knows",
                             TFC_STR_ARG(arg->type_attr));
  }
  *out = arg->is_ref && !tfc_dtype_is_ref(t) ? (tfc_dtype)(t + TFC_REF) : t;
  return NULL;
}

// Returns the attributes of a node in `g`, for look-ups.
static struct tfc_attr_view view_of(const struct tfc_graph *g, const struct tfc_node *n) {
  return (struct tfc_attr_view){g->attrs + n->attr_begin, n->attr_count, n->def ? tfc_op_signature(n->def) : NULL};
}

static tfc_status name_node(struct tfc_graph *g, uint32_t id) {
  struct tfc_node *n = &g->nodes[id];
  bool found;
  if (!n->name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "node %u (%.*s) has no name", id, TFC_STR_ARG(n->op));
  if (!n->op.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' has no op", TFC_STR_ARG(n->name));
  if (!tfc_strmap_put(&g->by_name, n->name, id, &found)) return no_memory_of(g);
  if (found)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "two nodes have the name '%.*s' (%.*s and %.*s)", TFC_STR_ARG(n->name),
                           TFC_STR_ARG(g->nodes[*tfc_strmap_get(&g->by_name, n->name)].op), TFC_STR_ARG(n->op));
  return NULL;
}

struct types {
  tfc_dtype *data;
  size_t count, capacity;
};

static tfc_status push_types(struct tfc_graph *g, struct types *types, const struct tfc_node *n) {
  const struct tfc_op_signature *sig = tfc_op_signature(n->def);
  struct tfc_attr_view view = view_of(g, n);
  for (uint32_t a = 0; a < sig->output_count; a++) {
    uint32_t count;
    TFC_RETURN_IF_ERROR(tfc_arg_count(&sig->outputs[a], &view, &count));
    for (uint32_t k = 0; k < count; k++) {
      tfc_dtype t;
      TFC_RETURN_IF_ERROR(tfc_arg_type(&sig->outputs[a], &view, k, &t));
      if (!tfc_array_push(types, t)) return no_memory_of(g);
    }
  }
  return NULL;
}

tfc_status tfc_graph_resolve_nodes(struct tfc_graph *g) {
  tfc_status s = NULL;
  struct types types = {0};
  // Consecutive nodes often have the same op: compare before looking it up.
  tfc_str last = {0};
  const struct tfc_op_def *last_def = NULL;
  const struct tfc_graph *library = g->library ? g->library : g;
  if (!tfc_strmap_reserve(&g->by_name, g->node_count) || !tfc_array_reserve(&types, g->node_count + 16))
    TFC_TRY(s, no_memory_of(g));
  for (uint32_t i = 0; i < g->node_count; i++) {
    struct tfc_node *n = &g->nodes[i];
    TFC_TRY(s, name_node(g, i));
    if (!last.data || !tfc_str_equal(n->op, last)) last = n->op, last_def = tfc_op_find(n->op);
    n->def = last_def;
    n->function = TFC_NONE;
    n->output_begin = (uint32_t)types.count;
    n->output_count = 0;
    if (n->def) {
      if (n->def->flags & (TFC_OP_ENTER | TFC_OP_NEXT_ITERATION)) g->has_frames = true;
      s = push_types(g, &types, n);
    } else {
      const uint64_t *f = library->function_count ? tfc_strmap_get(&library->functions_by_name, n->op) : NULL;
      if (f) {
        const struct tfc_function *fn = &library->functions[*f];
        n->function = (uint32_t)*f;
        for (uint32_t r = 0; r < fn->ret_count && !s; r++)
          if (!tfc_array_push(&types, fn->ret_types[r])) s = no_memory_of(g);
      } else {
        // An op that tfc does not know has the outputs that the file states; if it states none, those that consumers
        // use.
        for (uint32_t k = 0; k < n->attr_count && !s; k++) {
          const struct tfc_attr *a = &g->attrs[n->attr_begin + k];
          if (a->kind != TFC_ATTR_LIST_SHAPE || !tfc_str_is(a->name, "_output_shapes")) continue;
          for (uint32_t o = 0; o < a->count && !s; o++)
            if (!tfc_array_push(&types, TFC_DTYPE_NONE)) s = no_memory_of(g);
        }
      }
    }
    if (s) {
      s = tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
      goto out;
    }
    n->output_count = (uint32_t)types.count - n->output_begin;
    if (types.count > (size_t)1 << 26) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the graph has too many outputs");
  }
  g->output_total = (uint32_t)types.count;
  g->output_dtypes = TFC_ARENA_ARRAY(&g->arena, tfc_dtype, types.count);
  if (!g->output_dtypes) TFC_TRY(s, no_memory_of(g));
  if (types.count) memcpy(g->output_dtypes, types.data, types.count * sizeof *types.data);
out:
  tfc_array_free(&types);
  return s;
}

// Resolves "name", "name:1" or "^name". The number is parsed here and not by tfc_parse_i64, for speed: this runs once
// per edge.
static tfc_status resolve_edge(const struct tfc_graph *g, const struct tfc_node *n, tfc_str text, bool control,
                               struct tfc_output *out) {
  struct tfc_output o = {0, 0};
  tfc_str name = text;
  if (control) {
    name = tfc_str_sub(text, 1, text.size);
    o.index = TFC_CONTROL;
  } else {
    size_t at = text.size;
    while (at > 0 && text.data[at - 1] >= '0' && text.data[at - 1] <= '9') at--;
    if (at > 1 && at < text.size && text.data[at - 1] == ':') {
      int64_t index = 0;
      for (size_t i = at; i < text.size && index <= INT32_MAX; i++) index = index * 10 + (text.data[i] - '0');
      if (index > TFC_MAX_NODE_OUTPUTS)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s): input '%.*s' has an absurd output number",
                               TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), TFC_STR_ARG(text));
      o.index = (int32_t)index;
      name.size = at - 1;
    }
  }
  const uint64_t *id = tfc_strmap_get(&g->by_name, name);
  if (!id)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s): input '%.*s' names no node of the graph",
                           TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), TFC_STR_ARG(text));
  o.node = (uint32_t)*id;
  *out = o;
  return NULL;
}

tfc_status tfc_graph_resolve_edges(struct tfc_graph *g, const tfc_str *texts) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      uint32_t e = n->input_begin + k;
      TFC_RETURN_IF_ERROR(resolve_edge(g, n, texts[e], k >= n->input_count, &g->inputs[e]));
    }
  }
  return NULL;
}

// An op that tfc does not know has as many outputs as its consumers use; these are numbered after all others.
static tfc_status number_unknown_outputs(struct tfc_graph *g) {
  uint32_t *wanted = NULL;
  for (uint32_t e = 0; e < g->edge_count; e++) {
    const struct tfc_output o = g->inputs[e];
    const struct tfc_node *from = &g->nodes[o.node];
    if (o.index < 0 || (uint32_t)o.index < from->output_count || from->def || from->function != TFC_NONE) continue;
    if (!wanted) wanted = calloc(g->node_count, sizeof *wanted);
    if (!wanted) return no_memory_of(g);
    if ((uint32_t)o.index + 1 > wanted[o.node]) wanted[o.node] = (uint32_t)o.index + 1;
  }
  if (!wanted) return NULL;
  size_t total = g->output_total;
  for (uint32_t i = 0; i < g->node_count; i++) total += wanted[i];
  tfc_dtype *types = total < (size_t)1 << 26 ? TFC_ARENA_ARRAY(&g->arena, tfc_dtype, total) : NULL;
  if (!types) return free(wanted), no_memory_of(g);
  if (g->output_total) memcpy(types, g->output_dtypes, g->output_total * sizeof *types);
  for (uint32_t i = 0; i < g->node_count; i++)
    if (wanted[i]) {
      g->nodes[i].output_begin = g->output_total;
      g->nodes[i].output_count = wanted[i];
      g->output_total += wanted[i];
    }
  g->output_dtypes = types;
  free(wanted);
  return NULL;
}

static tfc_status check_node(struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_output *in = tfc_node_inputs(g, n);
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct tfc_node *from = &g->nodes[in[k].node];
    if ((uint32_t)in[k].index >= from->output_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u is output %d of '%.*s' (%.*s), which has %u", k,
                             in[k].index, TFC_STR_ARG(from->name), TFC_STR_ARG(from->op), from->output_count);
  }
  if (!n->def) {
    if (n->function == TFC_NONE) return NULL;
    const struct tfc_function *fn = &(g->library ? g->library : g)->functions[n->function];
    if (n->input_count != fn->arg_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the function takes %u inputs, not %u", fn->arg_count,
                             n->input_count);
    return NULL;
  }
  const struct tfc_op_signature *sig = tfc_op_signature(n->def);
  struct tfc_attr_view view = view_of(g, n);
  uint32_t at = 0;
  for (uint32_t a = 0; a < sig->input_count; a++) {
    const struct tfc_op_arg *arg = &sig->inputs[a];
    uint32_t count;
    TFC_RETURN_IF_ERROR(tfc_arg_count(arg, &view, &count));
    if (count > n->input_count - at)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%u inputs are too few: input '%.*s' is missing", n->input_count,
                             TFC_STR_ARG(arg->name));
    for (uint32_t k = 0; k < count; k++, at++) {
      tfc_dtype want, have = tfc_output_dtype(g, in[at]);
      TFC_RETURN_IF_ERROR(tfc_arg_type(arg, &view, k, &want));
      if (have == TFC_DTYPE_NONE && !tfc_dtype_is_ref(want)) // the producer is an op that tfc does not know
        g->output_dtypes[g->nodes[in[at].node].output_begin + (uint32_t)in[at].index] = have = want;
      if (!tfc_dtype_feeds(have, want))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s' must be %s, but '%.*s:%d' is %s",
                               TFC_STR_ARG(arg->name), tfc_dtype_name(want), TFC_STR_ARG(g->nodes[in[at].node].name),
                               in[at].index, tfc_dtype_name(have));
    }
  }
  if (at != n->input_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%u inputs are too many: it takes %u", n->input_count, at);
  return NULL;
}

static tfc_status make_consumers(struct tfc_graph *g) {
  g->consumer_begin = TFC_ARENA_ARRAY(&g->arena, uint32_t, (size_t)g->node_count + 2);
  g->consumers = tfc_arena_alloc(&g->arena, (size_t)g->edge_count * sizeof *g->consumers);
  if (!g->consumer_begin || !g->consumers) return no_memory_of(g);
  // A counting sort by producer: begin[id + 1] is where the next consumer of `id` goes; when all are stored, it is
  // where those of the next node begin.
  uint32_t *begin = g->consumer_begin;
  for (uint32_t e = 0; e < g->edge_count; e++) begin[g->inputs[e].node + 2]++;
  for (uint32_t i = 2; i < g->node_count + 2; i++) begin[i] += begin[i - 1];
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++)
      g->consumers[begin[in[k].node + 1]++] =
          (struct tfc_consumer){i, k < n->input_count ? (int32_t)k : TFC_CONTROL, in[k].index};
  }
  return NULL;
}

// Whether every edge comes from an earlier node; then there is no cycle.
static bool is_sorted(const struct tfc_graph *g) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++)
      if (in[k].node >= i) return false;
  }
  return true;
}

tfc_status tfc_graph_finish(struct tfc_graph *g) {
  tfc_status s = NULL;
  uint32_t *order = NULL;
  TFC_TRY(s, number_unknown_outputs(g));
  for (uint32_t i = 0; i < g->node_count; i++) {
    s = check_node(g, &g->nodes[i]);
    if (s) {
      s = tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(g->nodes[i].name), TFC_STR_ARG(g->nodes[i].op));
      goto out;
    }
  }
  TFC_TRY(s, make_consumers(g));
  if (is_sorted(g)) goto out;
  order = malloc(((size_t)g->node_count + 1) * sizeof *order);
  if (!order) TFC_TRY(s, no_memory_of(g));
  TFC_TRY(s, tfc_graph_topological(g, order));
out:
  free(order);
  return s;
}
