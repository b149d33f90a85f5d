// Shape inference: calls the ops' shape functions in topological order, with all values that are known (constants,
// small integer tensors folded by the reference kernels, partly known shapes as values).
//
// Loops: a Merge is first assumed to have the shape that enters the loop. If, after a pass, less is known of the shape
// that comes back, the Merge gets what both have in common, and the pass runs again. This can happen only a few times
// for a Merge, so it ends. Functions: the body is inferred with the call's inputs.
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/interrupt.h"
#include "runtime/pass/fold.h"
#include "runtime/pass/pass.h"

enum { fold_limit = 1024, depth_limit = 24, pass_limit = 64, body_cost = 200, body_nodes_limit = 1 << 21 };

struct call_input { // a parameter of a function's body
  struct tfc_shape shape;
  const struct tfc_tensor *value;
  const struct tfc_shape *partial;
  struct tfc_handle_info handle;
};

struct engine {
  const struct tfc_graph *g;
  struct tfc_shapes *out;
  const struct tfc_shape **partial; // by output number; NULL: nothing is known
  struct tfc_shape *believed;       // for each node, the output that is assumed of a loop's Merge; rank -2: nothing is
                                    // assumed yet
  struct tfc_intmap symbols;        // (node << 8 | number of the call) → symbol
  int64_t *next_symbol;             // shared with the bodies of functions
  uint64_t *body_nodes;             // nodes of bodies visited so far; shared with the bodies
  struct tfc_intmap overrides;      // output number → index
  const struct tfc_shape_override *override_list;
  const struct call_input *args; // for a function's body: its arguments, by the index in the attribute
  uint32_t arg_count, depth;
  uint32_t node, symbol_calls; // the current node
  bool lenient;                // a node that contradicts its inputs gets unknown outputs
  bool any_feeds;              // other values may be fed, so defaults are not used
  tfc_shape_note note;         // optional: gets contradictions; such a node has unknown outputs then
  void *note_arg;
};

static int64_t new_symbol(struct tfc_shape_ctx *ctx) {
  struct engine *e = ctx->owner;
  uint64_t key = (uint64_t)e->node << 8 | (e->symbol_calls++ & 255);
  bool found;
  uint64_t *s = tfc_intmap_put(&e->symbols, key, (uint64_t)*e->next_symbol, &found);
  if (!s) return TFC_DIM_UNKNOWN;
  if (!found) --*e->next_symbol;
  return (int64_t)*s;
}

static struct tfc_shape join(const struct tfc_shape *a, const struct tfc_shape *b) { // what is the same in both
  if (a->rank != b->rank || a->rank < 0) return TFC_SHAPE_UNKNOWN;
  struct tfc_shape r = *a;
  for (int i = 0; i < r.rank; i++)
    if (a->dims[i] != b->dims[i]) r.dims[i] = TFC_DIM_UNKNOWN;
  return r;
}

// Returns a constant integer scalar or vector as a shape; negative numbers mean "unknown" there.
static const struct tfc_shape *value_as_shape(struct engine *e, const struct tfc_tensor *t) {
  if ((t->dtype != TFC_INT32 && t->dtype != TFC_INT64) || t->shape.rank > 1) return NULL;
  int64_t n = tfc_tensor_elements(t);
  if (n < 0 || n > TFC_MAX_RANK) return NULL;
  struct tfc_shape *s = tfc_arena_alloc(&e->out->arena, sizeof *s);
  if (!s) return NULL;
  *s = (struct tfc_shape){.rank = (int32_t)n};
  for (int64_t i = 0; i < n; i++) {
    int64_t d = tfc_tensor_int(t, i);
    s->dims[i] = d < 0 ? TFC_DIM_UNKNOWN : d;
  }
  return s;
}

// Copies a tensor into the arena and releases the original.
static const struct tfc_tensor *keep(struct engine *e, struct tfc_tensor *t) {
  struct tfc_tensor *copy = tfc_arena_alloc(&e->out->arena, sizeof *copy);
  char *data = copy ? tfc_arena_alloc(&e->out->arena, t->size + 1) : NULL;
  if (!data) return NULL;
  if (t->size) memcpy(data, t->data, t->size);
  *copy = *t;
  copy->data = data;
  copy->buffer = NULL;
  return copy;
}

// --- Values --------------------------------------------------------------------------------------------------------
// A partial value without unknowns is a constant.
static void partial_to_value(struct engine *e, uint32_t number, tfc_dtype type, const struct tfc_shape *shape) {
  const struct tfc_shape *p = e->partial[number];
  if (!p || e->out->values[number] || !tfc_shape_is_static(p)) return;
  if (type != TFC_INT32 && type != TFC_INT64) return;
  if (!(shape->rank == 1 && shape->dims[0] == p->rank) && !(shape->rank == 0 && p->rank == 1)) return;
  struct tfc_tensor *t = TFC_ARENA_NEW(&e->out->arena, struct tfc_tensor);
  void *data = tfc_arena_alloc(&e->out->arena, (size_t)p->rank * 8 + 8);
  if (!t || !data) return;
  *t =
      (struct tfc_tensor){.dtype = type, .shape = *shape, .data = data, .size = (size_t)p->rank * tfc_dtype_size(type)};
  for (int i = 0; i < p->rank; i++)
    if (type == TFC_INT32)
      ((int32_t *)data)[i] = (int32_t)p->dims[i];
    else
      ((int64_t *)data)[i] = p->dims[i];
  e->out->values[number] = t;
}

static bool small(const struct tfc_tensor *t) {
  return tfc_dtype_is_plain(t->dtype) && tfc_tensor_elements(t) <= fold_limit;
}

static tfc_status fold(struct engine *e, const struct tfc_node *n, const struct tfc_tensor *const *values) {
  tfc_status s = NULL;
  const struct tfc_graph *g = e->g;
  if (!n->input_count || !tfc_can_fold(n)) return NULL;
  for (uint32_t i = 0; i < n->input_count; i++)
    if (!values[i]) return NULL;
  const struct tfc_shape *shape0 = &e->out->shapes[n->output_begin];
  if ((n->def->flags & (TFC_OP_VIEW | TFC_OP_CHECKS)) == TFC_OP_VIEW && n->input_count == 1 &&
      tfc_shape_equal(shape0, &values[0]->shape)) {
    e->out->values[n->output_begin] = values[0];
    return NULL;
  }
  for (uint32_t i = 0; i < n->input_count; i++)
    if (!small(values[i])) return NULL;
  for (uint32_t i = 0; i < n->output_count; i++) {
    int64_t elements = tfc_shape_elements(&e->out->shapes[n->output_begin + i]);
    tfc_dtype type = g->output_dtypes[n->output_begin + i];
    // A tensor in host memory describes shapes (BroadcastGradientArgs), so it is small even if its size depends on
    // values. The result of an op that selects elements of a small tensor (the axes of a Tensordot) is small, too.
    bool picks = n->def->role == TFC_ROLE_PICKS;
    if (elements < 0 && (picks || (i < 32 && n->def->host_outputs >> i & 1))) elements = 0;
    if (elements < 0 || elements > fold_limit || tfc_dtype_is_ref(type) || !tfc_dtype_is_plain(type)) return NULL;
  }
  struct tfc_tensor *outputs = calloc(n->output_count, sizeof *outputs);
  if (!outputs) return tfc_status_no_memory("shape inference");
  s = tfc_fold(g, n, values, outputs);
  if (s) { // no error yet: the node fails when it runs, if it ever runs
    tfc_status_free(s);
    free(outputs);
    return NULL;
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    if (small(&outputs[i]) && (outputs[i].data || !outputs[i].size)) {
      e->out->values[n->output_begin + i] = keep(e, &outputs[i]);
      if (!tfc_shape_is_static(&e->out->shapes[n->output_begin + i]))
        e->out->shapes[n->output_begin + i] = outputs[i].shape;
    }
    tfc_tensor_release(&outputs[i]);
  }
  free(outputs);
  return NULL;
}

// --- Function bodies -----------------------------------------------------------------------------------------------
static tfc_status infer(struct engine *e);
static tfc_status engine_init(struct engine *e);
static void engine_deinit(struct engine *e);

static bool is_interruption(tfc_status s) { // not the fault of any node
  return tfc_status_code(s) == TFC_CANCELLED || tfc_status_code(s) == TFC_DEADLINE_EXCEEDED;
}

// Infers the shapes of a function's results when it is called with `args`.
static tfc_status infer_body(struct engine *caller, const struct tfc_function *fn, const struct call_input *args,
                             uint32_t arg_count, struct tfc_shape *out, struct tfc_handle_info *out_handles) {
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  struct engine e = {.g = fn->body,
                     .out = &shapes,
                     .next_symbol = caller->next_symbol,
                     .body_nodes = caller->body_nodes,
                     .args = args,
                     .arg_count = arg_count,
                     .depth = caller->depth + 1};
  for (uint32_t i = 0; i < fn->ret_count; i++) out[i] = TFC_SHAPE_UNKNOWN, out_handles[i] = (struct tfc_handle_info){0};
  if (!fn->body || e.depth > depth_limit || arg_count != fn->arg_count) return NULL;
  // Functions that call each other twice, and nested loops, would take too many visits, so the number is limited.
  if (*caller->body_nodes > body_nodes_limit) return NULL;
  *caller->body_nodes += body_cost + fn->body->node_count;
  TFC_TRY(s, engine_init(&e));
  s = infer(&e);
  if (is_interruption(s)) goto out;
  if (s && tfc_status_code(s) != TFC_RESOURCE_EXHAUSTED) {
    // This is no error, because the body may be a branch that is never taken. Its results are unknown.
    tfc_status_free(s);
    s = NULL;
    goto out;
  }
  if (s) goto out;
  for (uint32_t i = 0; i < fn->ret_count; i++) {
    const struct tfc_node *ret = &fn->body->nodes[fn->rets[i]];
    struct tfc_output o = tfc_node_inputs(fn->body, ret)[0];
    uint32_t number = fn->body->nodes[o.node].output_begin + (uint32_t)o.index;
    out[i] = shapes.shapes[number];
    out_handles[i] = shapes.handles[number];
  }
out:
  engine_deinit(&e);
  tfc_shapes_deinit(&shapes);
  return is_interruption(s) ? s : tfc_status_annotate(s, "function '%.*s'", TFC_STR_ARG(fn->name));
}

static tfc_status collect_functions(struct engine *e, const struct tfc_node *n, const struct tfc_function **out,
                                    uint32_t capacity, uint32_t *out_count) {
  static const char *const names[] = {"f", "then_branch", "else_branch", "body"};
  uint32_t count = 0;
  const struct tfc_attr *list = tfc_node_attr(e->g, n, "branches");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const struct tfc_attr *a = tfc_node_attr(e->g, n, names[i]);
    const struct tfc_function *fn = a && a->kind == TFC_ATTR_FUNC ? tfc_graph_function(e->g, a->func->name) : NULL;
    if (fn && count < capacity) out[count++] = fn;
  }
  for (uint32_t i = 0; list && list->kind == TFC_ATTR_LIST_FUNC && i < list->count; i++) {
    const struct tfc_function *fn = tfc_graph_function(e->g, list->funcs[i].name);
    if (fn && count < capacity) out[count++] = fn;
  }
  if (!count && n->function != TFC_NONE) {
    const struct tfc_graph *library = e->g->library ? e->g->library : e->g;
    out[count++] = &library->functions[n->function];
  }
  *out_count = count;
  return NULL;
}

static tfc_status infer_calls(struct engine *e, const struct tfc_node *n, struct tfc_shape_ctx *ctx) {
  tfc_status s = NULL;
  const struct tfc_function *functions[32];
  uint32_t count = 0;
  struct tfc_arena arena = {0};
  tfc_arena_init(&arena, 8192);
  bool loop = tfc_node_role(n) == TFC_ROLE_WHILE;
  bool call = n->function != TFC_NONE || tfc_node_role(n) == TFC_ROLE_CALL;
  uint32_t first = loop || call ? 0 : 1;
  const struct tfc_attr *shapes = tfc_node_attr(e->g, n, "output_shapes");
  bool stated = shapes && shapes->kind == TFC_ATTR_LIST_SHAPE && shapes->count == n->output_count && shapes->count;
  if (tfc_node_role(n) == TFC_ROLE_SYMBOLIC_GRADIENT || n->input_count < first) goto out;
  TFC_TRY(s, collect_functions(e, n, functions, 32, &count));
  uint32_t arg_count = n->input_count - first;
  struct call_input *args = TFC_ARENA_ARRAY(&arena, struct call_input, arg_count + 1);
  struct tfc_shape *all = TFC_ARENA_ARRAY(&arena, struct tfc_shape, n->output_count + 1);
  struct tfc_shape *one = TFC_ARENA_ARRAY(&arena, struct tfc_shape, n->output_count + 1);
  struct tfc_handle_info *handles = TFC_ARENA_ARRAY(&arena, struct tfc_handle_info, n->output_count + 1);
  if (!args || !all || !one || !handles) TFC_TRY(s, tfc_status_no_memory("shape inference"));
  for (uint32_t i = 0; i < arg_count; i++) {
    args[i] = (struct call_input){.shape = *ctx->inputs[first + i], .handle = *ctx->input_handles[first + i]};
    if (!loop) args[i].value = ctx->input_values[first + i], args[i].partial = ctx->input_as_shape[first + i];
  }
  for (int round = 0; round < 16; round++) {
    bool any = false, changed = false;
    for (uint32_t f = 0; f < count; f++) {
      if (functions[f]->ret_count != n->output_count) continue;
      TFC_TRY(s, infer_body(e, functions[f], args, arg_count, one, handles));
      for (uint32_t i = 0; i < n->output_count; i++) {
        all[i] = any ? join(&all[i], &one[i]) : one[i];
        if (!ctx->output_handles[i].dtype) ctx->output_handles[i] = handles[i];
      }
      any = true;
    }
    if (!any) break;
    for (uint32_t i = 0; loop && i < n->output_count && i < arg_count; i++) {
      struct tfc_shape both = join(&args[i].shape, &all[i]);
      changed |= !tfc_shape_equal(&both, &args[i].shape);
      all[i] = args[i].shape = both;
    }
    if (changed) continue;
    for (uint32_t i = 0; i < n->output_count; i++) {
      struct tfc_shape merged;
      // the shape function of While gives the outputs the inputs' shapes, although the loop may change them
      if (loop && !stated) {
        ctx->outputs[i] = all[i];
        continue;
      }
      tfc_status m = tfc_shape_merge(&ctx->outputs[i], &all[i], &merged);
      ctx->outputs[i] = m ? all[i] : merged;
      tfc_status_free(m);
    }
    break;
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

// --- One node ------------------------------------------------------------------------------------------------------
struct scratch { // memory that grows to the size that the largest node needs
  struct tfc_arena arena;
  uint32_t inputs, outputs;
  const struct tfc_shape **shapes, **partials;
  const struct tfc_tensor **values;
  const struct tfc_handle_info **handles;
  struct tfc_shape *out_partials;
};

static bool reserve(struct scratch *s, uint32_t inputs, uint32_t outputs) {
  if (s->shapes && inputs <= s->inputs && outputs <= s->outputs) return true;
  inputs = inputs > s->inputs ? inputs * 2 : s->inputs;
  outputs = outputs > s->outputs ? outputs * 2 : s->outputs;
  s->shapes = TFC_ARENA_ARRAY(&s->arena, const struct tfc_shape *, inputs + 8);
  s->partials = TFC_ARENA_ARRAY(&s->arena, const struct tfc_shape *, inputs + 8);
  s->values = TFC_ARENA_ARRAY(&s->arena, const struct tfc_tensor *, inputs + 8);
  s->handles = TFC_ARENA_ARRAY(&s->arena, const struct tfc_handle_info *, inputs + 8);
  s->out_partials = TFC_ARENA_ARRAY(&s->arena, struct tfc_shape, outputs + 8);
  s->inputs = inputs + 8;
  s->outputs = outputs + 8;
  return s->shapes && s->partials && s->values && s->handles && s->out_partials;
}

static bool is_back_edge(const struct engine *e, struct tfc_output from) {
  const struct tfc_op_def *def = e->g->nodes[from.node].def;
  return def && (def->flags & TFC_OP_NEXT_ITERATION);
}

static void merge_file_shapes(struct engine *e, const struct tfc_node *n) {
  const struct tfc_attr *a = tfc_node_attr(e->g, n, "_output_shapes");
  if (!a || a->kind != TFC_ATTR_LIST_SHAPE || a->count != n->output_count) return;
  for (uint32_t i = 0; i < a->count; i++) {
    struct tfc_shape *have = &e->out->shapes[n->output_begin + i], merged;
    tfc_status s = tfc_shape_merge(have, &a->shapes[i], &merged);
    if (!s) *have = merged; // if the fed batch size differs from the file's, the inferred shape is kept
    tfc_status_free(s);
  }
}

static bool is_overridden(const struct engine *e, const struct tfc_node *n) {
  for (uint32_t i = 0; i < n->output_count; i++)
    if (tfc_intmap_get(&e->overrides, n->output_begin + i)) return true;
  return false;
}

static void apply_overrides(struct engine *e, const struct tfc_node *n) {
  for (uint32_t i = 0; i < n->output_count; i++) {
    const uint64_t *at = tfc_intmap_get(&e->overrides, n->output_begin + i);
    if (!at) continue;
    const struct tfc_shape_override *o = &e->override_list[*at];
    bool declared = o->keep_shape && n->def && (n->def->flags & TFC_OP_PLACEHOLDER);
    const struct tfc_attr *shape =
        o->keep_shape && tfc_node_role(n) == TFC_ROLE_DEFAULT ? tfc_node_attr(e->g, n, "shape") : NULL;
    if (shape && shape->kind == TFC_ATTR_SHAPE)
      e->out->shapes[n->output_begin + i] = *shape->shape;
    else if (!declared)
      e->out->shapes[n->output_begin + i] = o->shape;
    e->out->values[n->output_begin + i] = o->value;
    e->partial[n->output_begin + i] = o->value ? value_as_shape(e, o->value) : NULL;
  }
}

// Finds the output of a loop's Merge: the entering shape, or what earlier passes assumed.
static void loop_merge(struct engine *e, uint32_t id, const struct tfc_node *n) {
  const struct tfc_output *in = tfc_node_inputs(e->g, n);
  struct tfc_shape *out = &e->out->shapes[n->output_begin];
  bool any = false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    if (is_back_edge(e, in[k])) continue;
    uint32_t from = e->g->nodes[in[k].node].output_begin + (uint32_t)in[k].index;
    *out = any ? join(out, &e->out->shapes[from]) : e->out->shapes[from];
    e->out->handles[n->output_begin] = e->out->handles[from];
    any = true;
  }
  if (e->believed[id].rank != -2) *out = join(out, &e->believed[id]);
  if (n->output_count > 1) out[1] = TFC_SHAPE_SCALAR;
}

// Ignores a contradiction that a node's shape function found, if it is possible that the node never runs.
static tfc_status allow(struct engine *e, const struct tfc_node *n, struct tfc_shape_ctx *ctx, tfc_status s) {
  if (!s || !(e->lenient || e->note) || tfc_status_code(s) != TFC_INVALID_ARGUMENT) return s;
  if (e->note)
    e->note(e->note_arg, n, s);
  else
    tfc_status_free(s);
  for (uint32_t i = 0; i < n->output_count; i++) {
    ctx->outputs[i] = ctx->output_as_shape[i] = TFC_SHAPE_UNKNOWN;
    ctx->output_handles[i] = (struct tfc_handle_info){.shape = TFC_SHAPE_UNKNOWN};
  }
  return NULL;
}

static tfc_status infer_node(struct engine *e, struct scratch *tmp, uint32_t id) {
  TFC_RETURN_IF_ERROR(tfc_interrupted("inferring shapes"));
  const struct tfc_graph *g = e->g;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  struct tfc_shapes *out = e->out;
  bool loop = false;
  e->node = id;
  e->symbol_calls = 0;
  for (uint32_t i = 0; i < n->output_count; i++) {
    uint32_t number = n->output_begin + i;
    out->shapes[number] = TFC_SHAPE_UNKNOWN;
    out->handles[number] = (struct tfc_handle_info){.shape = TFC_SHAPE_UNKNOWN};
    out->values[number] = NULL;
    e->partial[number] = NULL;
  }
  if (!reserve(tmp, n->input_count, n->output_count)) return tfc_status_no_memory("shape inference");
  for (uint32_t k = 0; k < n->input_count; k++) {
    uint32_t from = g->nodes[in[k].node].output_begin + (uint32_t)in[k].index;
    tmp->shapes[k] = &out->shapes[from];
    tmp->values[k] = out->values[from];
    tmp->partials[k] = e->partial[from];
    tmp->handles[k] = &out->handles[from];
    loop |= is_back_edge(e, in[k]);
  }
  for (uint32_t i = 0; i < n->output_count; i++) tmp->out_partials[i] = TFC_SHAPE_UNKNOWN;
  struct tfc_shape_ctx ctx = {.graph = g,
                              .node = n,
                              .inputs = tmp->shapes,
                              .input_values = tmp->values,
                              .input_as_shape = tmp->partials,
                              .input_handles = tmp->handles,
                              .outputs = out->shapes + n->output_begin,
                              .output_as_shape = tmp->out_partials,
                              .output_handles = out->handles + n->output_begin,
                              .new_symbol = new_symbol,
                              .owner = e};
  if (loop && n->def && (n->def->flags & TFC_OP_MERGE)) {
    loop_merge(e, id, n);
    merge_file_shapes(e, n);
    apply_overrides(e, n);
    return NULL;
  }
  tfc_status wrong = n->def ? tfc_op_check_attrs(g, n) : NULL;
  if (wrong) TFC_RETURN_IF_ERROR(e->note ? allow(e, n, &ctx, wrong) : wrong);
  if (!wrong && n->def && n->def->shape) TFC_RETURN_IF_ERROR(allow(e, n, &ctx, n->def->shape(&ctx)));
  if ((n->def && (n->def->flags & TFC_OP_FUNCTIONAL)) || n->function != TFC_NONE)
    TFC_RETURN_IF_ERROR(infer_calls(e, n, &ctx));
  bool is_arg = e->args && tfc_node_role(n) == TFC_ROLE_PARAMETER;
  if (is_arg) {
    int64_t index = tfc_node_attr_int(g, n, "index", -1);
    if (index >= 0 && index < e->arg_count) {
      const struct call_input *a = &e->args[index];
      struct tfc_shape merged;
      tfc_status s = tfc_shape_merge(&a->shape, &out->shapes[n->output_begin], &merged);
      out->shapes[n->output_begin] = s ? a->shape : merged;
      tfc_status_free(s);
      // A call may give another type than the function says; that is an error only if the call is lowered or runs.
      const bool typed = a->value && a->value->dtype == tfc_dtype_base(g->output_dtypes[n->output_begin]);
      out->values[n->output_begin] = typed ? a->value : NULL;
      e->partial[n->output_begin] = typed || !a->value ? a->partial : NULL;
      out->handles[n->output_begin] = a->handle;
    }
  } else {
    merge_file_shapes(e, n);
  }
  bool defaulted = e->any_feeds && tfc_node_role(n) == TFC_ROLE_DEFAULT;
  // An unknown dimension of a feed becomes a symbol.
  if (defaulted || (n->def && (n->def->flags & TFC_OP_PLACEHOLDER) && !is_arg))
    for (uint32_t i = 0; i < n->output_count; i++) {
      struct tfc_shape *s = &out->shapes[n->output_begin + i];
      for (int d = 0; d < s->rank; d++)
        if (s->dims[d] == TFC_DIM_UNKNOWN) s->dims[d] = new_symbol(&ctx);
    }
  for (uint32_t i = 0; i < n->output_count; i++) {
    uint32_t number = n->output_begin + i;
    if (tmp->out_partials[i].rank >= 0) {
      struct tfc_shape *p = tfc_arena_alloc(&out->arena, sizeof *p);
      if (!p) return tfc_status_no_memory("shape inference");
      *p = tmp->out_partials[i];
      e->partial[number] = p;
    }
  }
  apply_overrides(e, n);
  bool fed = defaulted || is_overridden(e, n);
  if (!fed && tfc_node_role(n) == TFC_ROLE_CONST && !out->values[n->output_begin])
    out->values[n->output_begin] = tfc_const_value(g, n);
  bool invariant = n->def && (n->def->flags & TFC_OP_ENTER) && tfc_node_attr_bool(g, n, "is_constant", false);
  if (invariant && n->input_count && !fed) {
    out->values[n->output_begin] = tmp->values[0];
    e->partial[n->output_begin] = tmp->partials[0];
  }
  if (n->output_count && !fed && !out->values[n->output_begin]) TFC_RETURN_IF_ERROR(fold(e, n, tmp->values));
  for (uint32_t i = 0; i < n->output_count; i++) {
    uint32_t number = n->output_begin + i;
    if (out->values[number] && !e->partial[number]) e->partial[number] = value_as_shape(e, out->values[number]);
    partial_to_value(e, number, g->output_dtypes[number], &out->shapes[number]);
  }
  return NULL;
}

// After a pass: compares the shape that comes back to each loop's Merge with the assumed one. True: another pass is
// needed.
static bool check_loops(struct engine *e) {
  const struct tfc_graph *g = e->g;
  bool changed = false;
  for (uint32_t id = 0; id < g->node_count; id++) {
    const struct tfc_node *n = &g->nodes[id];
    if (!n->def || !(n->def->flags & TFC_OP_MERGE)) continue;
    const struct tfc_output *in = tfc_node_inputs(g, n);
    struct tfc_shape *out = &e->out->shapes[n->output_begin];
    for (uint32_t k = 0; k < n->input_count; k++) {
      if (!is_back_edge(e, in[k])) continue;
      uint32_t from = g->nodes[in[k].node].output_begin + (uint32_t)in[k].index;
      // The assumed shape must be right in all iterations. So if a dimension is unknown in the shape that comes back,
      // it becomes unknown in the assumed shape.
      struct tfc_shape both = join(out, &e->out->shapes[from]);
      if (tfc_shape_equal(&both, out)) continue;
      struct tfc_shape now = e->believed[id].rank == -2 ? both : join(&e->believed[id], &both);
      changed |= e->believed[id].rank == -2 || !tfc_shape_equal(&now, &e->believed[id]);
      e->believed[id] = now;
    }
  }
  return changed;
}

static tfc_status infer(struct engine *e) {
  tfc_status s = NULL;
  const struct tfc_graph *g = e->g;
  struct scratch tmp = {0};
  uint32_t *order = malloc(((size_t)g->node_count + 1) * sizeof *order);
  if (!order) TFC_TRY(s, tfc_status_no_memory("shape inference"));
  TFC_TRY(s, tfc_graph_topological(g, order));
  for (int pass = 0; pass < pass_limit; pass++) {
    for (uint32_t i = 0; i < g->node_count; i++) {
      s = infer_node(e, &tmp, order[i]);
      if (is_interruption(s)) goto out;
      if (s) {
        const struct tfc_node *n = &g->nodes[order[i]];
        s = tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
        goto out;
      }
    }
    if (!g->has_frames || !check_loops(e)) break;
    // This limit ends the passes: all shapes that still change become unknown, which is a correct result. No graph has
    // reached it so far.
    if (pass == pass_limit - 2)
      for (uint32_t i = 0; i < g->node_count; i++)
        if (e->believed[i].rank != -2) e->believed[i] = TFC_SHAPE_UNKNOWN;
  }
out:
  tfc_arena_deinit(&tmp.arena);
  free(order);
  return s;
}

static tfc_status engine_init(struct engine *e) {
  const struct tfc_graph *g = e->g;
  struct tfc_shapes *out = e->out;
  tfc_arena_init(&out->arena, g->node_count > 256 ? 256 * 1024 : 8192);
  out->shapes = tfc_arena_alloc(&out->arena, ((size_t)g->output_total + 1) * sizeof *out->shapes);
  out->values = TFC_ARENA_ARRAY(&out->arena, const struct tfc_tensor *, (size_t)g->output_total + 1);
  out->handles = tfc_arena_alloc(&out->arena, ((size_t)g->output_total + 1) * sizeof *out->handles);
  e->partial = calloc((size_t)g->output_total + 1, sizeof *e->partial);
  e->believed = malloc(((size_t)g->node_count + 1) * sizeof *e->believed);
  if (!out->shapes || !out->values || !out->handles || !e->partial || !e->believed)
    return tfc_status_no_memory("shape inference");
  for (uint32_t i = 0; i < g->output_total; i++) {
    out->shapes[i] = TFC_SHAPE_UNKNOWN;
    out->handles[i] = (struct tfc_handle_info){.shape = TFC_SHAPE_UNKNOWN};
  }
  for (uint32_t i = 0; i < g->node_count; i++) e->believed[i].rank = -2;
  return NULL;
}

static void engine_deinit(struct engine *e) {
  free(e->partial);
  free(e->believed);
  tfc_intmap_deinit(&e->symbols);
  tfc_intmap_deinit(&e->overrides);
}

static tfc_status infer_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                               uint32_t override_count, bool lenient, tfc_shape_note note, void *note_arg,
                               struct tfc_shapes *out) {
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  int64_t next_symbol = -2;
  uint64_t body_nodes = 0;
  struct engine e = {.g = g,
                     .out = &shapes,
                     .next_symbol = &next_symbol,
                     .body_nodes = &body_nodes,
                     .override_list = overrides,
                     .lenient = lenient,
                     .any_feeds = !lenient,
                     .note = note,
                     .note_arg = note_arg};
  TFC_TRY(s, engine_init(&e));
  for (uint32_t i = 0; i < override_count; i++) {
    struct tfc_output o = overrides[i].output;
    if (o.node >= g->node_count || o.index < 0 || (uint32_t)o.index >= g->nodes[o.node].output_count)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a shape is given for an output that is not in the graph");
    if (!tfc_intmap_put(&e.overrides, g->nodes[o.node].output_begin + (uint32_t)o.index, i, NULL))
      TFC_TRY(s, tfc_status_no_memory("shape inference"));
  }
  TFC_TRY(s, infer(&e));
  *out = shapes;
  shapes = (struct tfc_shapes){0};
out:
  engine_deinit(&e);
  tfc_shapes_deinit(&shapes);
  return s;
}

tfc_status tfc_infer_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                            uint32_t override_count, struct tfc_shapes *out) {
  return infer_shapes(g, overrides, override_count, false, NULL, NULL, out);
}

tfc_status tfc_infer_fed_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                uint32_t override_count, struct tfc_shapes *out) {
  return infer_shapes(g, overrides, override_count, true, NULL, NULL, out);
}

tfc_status tfc_infer_shapes_noting(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                   uint32_t override_count, tfc_shape_note note, void *arg, struct tfc_shapes *out) {
  return infer_shapes(g, overrides, override_count, false, note, arg, out);
}

void tfc_shapes_deinit(struct tfc_shapes *shapes) {
  tfc_arena_deinit(&shapes->arena);
  *shapes = (struct tfc_shapes){0};
}
