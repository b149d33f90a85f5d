// The builder keeps each node's edges in one array (data inputs first, then control inputs, as in a graph). Edges,
// attributes and types of the base graph's nodes are views into that graph until they are changed.
#include "runtime/graph/builder.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/graph/graph_internal.h"

struct entry {
  struct tfc_node node; // the `begin` fields are not used here
  struct tfc_output *edges;
  uint32_t edge_capacity; // 0: the edges are a view
  const struct tfc_attr *attrs;
  const tfc_dtype *types;
};

struct tfc_builder {
  const struct tfc_graph *base;
  TFC_ARRAY(struct entry) entries;
  struct tfc_strmap names; // name → the number to try next if the name is in use
  struct tfc_arena arena;  // becomes the arena of the finished graph
  tfc_str device, scope;
  tfc_status status;
};

tfc_status tfc_builder_create(const struct tfc_graph *base, struct tfc_builder **out) {
  struct tfc_builder *b = calloc(1, sizeof *b);
  if (!b) return tfc_status_no_memory("building a graph");
  tfc_arena_init(&b->arena, 64 * 1024);
  b->base = base;
  tfc_graph_retain(base);
  if (base) {
    if (!tfc_array_reserve(&b->entries, base->node_count) || !tfc_strmap_reserve(&b->names, base->node_count)) {
      tfc_builder_free(b);
      return tfc_status_no_memory("building a graph");
    }
    for (uint32_t i = 0; i < base->node_count; i++) {
      const struct tfc_node *n = &base->nodes[i];
      b->entries.data[i] = (struct entry){.node = *n,
                                          .edges = base->inputs + n->input_begin,
                                          .attrs = base->attrs + n->attr_begin,
                                          .types = base->output_dtypes + n->output_begin};
      tfc_strmap_put(&b->names, n->name, 1, NULL);
    }
    b->entries.count = base->node_count;
  }
  *out = b;
  return NULL;
}

void tfc_builder_free(struct tfc_builder *b) {
  if (!b) return;
  tfc_array_free(&b->entries);
  tfc_strmap_deinit(&b->names);
  tfc_arena_deinit(&b->arena);
  tfc_status_free(b->status);
  tfc_graph_release(b->base);
  free(b);
}

tfc_status tfc_builder_status(const struct tfc_builder *b) {
  return b->status;
}

void tfc_builder_fail(struct tfc_builder *b, tfc_status status) {
  b->status = tfc_status_join(b->status, status);
}

const struct tfc_graph *tfc_builder_base(const struct tfc_builder *b) {
  return b->base;
}

void tfc_builder_set_device(struct tfc_builder *b, tfc_str device) {
  b->device = device.size ? tfc_arena_str(&b->arena, device) : (tfc_str){0};
}

void tfc_builder_set_scope(struct tfc_builder *b, const char *prefix) {
  b->scope = prefix && *prefix ? tfc_arena_str(&b->arena, tfc_str_from(prefix)) : (tfc_str){0};
}

// --- Copying arrays and attributes ---------------------------------------------------------------------------------
static void *copy_bytes(struct tfc_arena *arena, const void *data, size_t count, size_t size) {
  void *copy = tfc_arena_array(arena, count + 1, size);
  if (copy && count) memcpy(copy, data, count * size);
  return copy;
}

static bool copy_tensor(struct tfc_arena *arena, const struct tfc_tensor *t, struct tfc_tensor *out) {
  *out = *t;
  out->buffer = NULL;
  char *data = tfc_arena_alloc(arena, t->size + 64);
  if (!data) return false;
  data += -(uintptr_t)data & 63;
  if (t->size) memcpy(data, t->data, t->size);
  out->data = data;
  if (t->dtype != TFC_STRING) return true;
  struct tfc_string *strings = out->data;
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) {
    tfc_str s = tfc_arena_str(arena, tfc_tensor_get_string(t, i));
    if (!s.data) return false;
    strings[i] = (struct tfc_string){(char *)s.data, s.size};
  }
  return true;
}

static bool copy_attr(struct tfc_arena *arena, const struct tfc_attr *a, struct tfc_attr *out);

static bool copy_func(struct tfc_arena *arena, const struct tfc_func_attr *f, struct tfc_func_attr *out) {
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(arena, struct tfc_attr, f->attr_count + 1);
  *out = (struct tfc_func_attr){tfc_arena_str(arena, f->name), attrs, f->attr_count};
  if (!attrs || !out->name.data) return false;
  for (uint32_t i = 0; i < f->attr_count; i++)
    if (!copy_attr(arena, &f->attrs[i], &attrs[i])) return false;
  return true;
}

static bool copy_attr(struct tfc_arena *arena, const struct tfc_attr *a, struct tfc_attr *out) {
  struct tfc_attr c = *a;
  c.name = tfc_arena_str(arena, a->name);
  bool ok = c.name.data != NULL;
  switch (a->kind) {
  case TFC_ATTR_STRING:
  case TFC_ATTR_PLACEHOLDER:
    c.s = tfc_arena_str(arena, a->s);
    ok &= c.s.data != NULL;
    break;
  case TFC_ATTR_SHAPE: ok &= (c.shape = copy_bytes(arena, a->shape, 1, sizeof *a->shape)) != NULL; break;
  case TFC_ATTR_TENSOR: {
    struct tfc_tensor *t = TFC_ARENA_NEW(arena, struct tfc_tensor);
    ok &= t && copy_tensor(arena, a->tensor, t);
    c.tensor = t;
    break;
  }
  case TFC_ATTR_FUNC: {
    struct tfc_func_attr *f = TFC_ARENA_NEW(arena, struct tfc_func_attr);
    ok &= f && copy_func(arena, a->func, f);
    c.func = f;
    break;
  }
  case TFC_ATTR_LIST_INT: ok &= (c.ints = copy_bytes(arena, a->ints, a->count, sizeof *a->ints)) != NULL; break;
  case TFC_ATTR_LIST_FLOAT: ok &= (c.floats = copy_bytes(arena, a->floats, a->count, sizeof *a->floats)) != NULL; break;
  case TFC_ATTR_LIST_BOOL: ok &= (c.bools = copy_bytes(arena, a->bools, a->count, sizeof *a->bools)) != NULL; break;
  case TFC_ATTR_LIST_TYPE: ok &= (c.types = copy_bytes(arena, a->types, a->count, sizeof *a->types)) != NULL; break;
  case TFC_ATTR_LIST_SHAPE: ok &= (c.shapes = copy_bytes(arena, a->shapes, a->count, sizeof *a->shapes)) != NULL; break;
  case TFC_ATTR_LIST_STRING: {
    tfc_str *strings = copy_bytes(arena, a->strings, a->count, sizeof *a->strings);
    for (uint32_t i = 0; strings && i < a->count; i++) {
      strings[i] = tfc_arena_str(arena, strings[i]);
      ok &= strings[i].data != NULL;
    }
    ok &= (c.strings = strings) != NULL;
    break;
  }
  case TFC_ATTR_LIST_TENSOR: {
    struct tfc_tensor *tensors = TFC_ARENA_ARRAY(arena, struct tfc_tensor, a->count + 1);
    for (uint32_t i = 0; tensors && i < a->count; i++) ok &= copy_tensor(arena, &a->tensors[i], &tensors[i]);
    ok &= (c.tensors = tensors) != NULL;
    break;
  }
  case TFC_ATTR_LIST_FUNC: {
    struct tfc_func_attr *funcs = TFC_ARENA_ARRAY(arena, struct tfc_func_attr, a->count + 1);
    for (uint32_t i = 0; funcs && i < a->count; i++) ok &= copy_func(arena, &a->funcs[i], &funcs[i]);
    ok &= (c.funcs = funcs) != NULL;
    break;
  }
  default: break;
  }
  *out = c;
  return ok;
}

// --- Adding nodes --------------------------------------------------------------------------------------------------
static tfc_status unique_name(struct tfc_builder *b, const char *name, const char *op, tfc_str *out) {
  tfc_str wanted = tfc_str_from(name && *name ? name : op);
  wanted = b->scope.size ? tfc_arena_printf(&b->arena, "%.*s/%.*s", TFC_STR_ARG(b->scope), TFC_STR_ARG(wanted))
                         : tfc_arena_str(&b->arena, wanted);
  if (!wanted.data) return tfc_status_no_memory("building a graph");
  bool found;
  uint64_t *next = tfc_strmap_put(&b->names, wanted, 1, &found);
  if (!next) return tfc_status_no_memory("building a graph");
  tfc_str result = wanted;
  while (found) {
    uint64_t number = (*tfc_strmap_put(&b->names, wanted, 1, NULL))++;
    result = tfc_arena_printf(&b->arena, "%.*s_%llu", TFC_STR_ARG(wanted), (unsigned long long)number);
    if (!result.data || !tfc_strmap_put(&b->names, result, 1, &found)) return tfc_status_no_memory("building a graph");
  }
  *out = result;
  return NULL;
}

struct attr_list {
  struct tfc_attr *data;
  uint32_t count;
};

static const struct tfc_attr *given(const struct attr_list *attrs, tfc_str name) {
  struct tfc_attr_view view = {attrs->data, attrs->count, NULL};
  return tfc_attr_find(&view, name);
}

// Adds the attributes that follow from the inputs: types, numbers, lists of types. The array has room for them.
static tfc_status infer_attrs(struct tfc_builder *b, const struct tfc_op_signature *sig,
                              const struct tfc_node_spec *spec, struct attr_list *attrs) {
  // Counts the tensors of arguments that have a given number, and the arguments that share the remaining tensors.
  uint32_t fixed = 0, sharing = 0;
  tfc_str shared = {0};
  for (uint32_t a = 0; a < sig->input_count; a++) {
    const struct tfc_op_arg *arg = &sig->inputs[a];
    tfc_str name = arg->is_list ? arg->type_attr : arg->number_attr;
    const struct tfc_attr *known = name.size ? given(attrs, name) : NULL;
    if (!name.size)
      fixed++;
    else if (known)
      fixed += known->kind == TFC_ATTR_INT ? (uint32_t)known->i : known->count;
    else if (!sharing || tfc_str_equal(shared, name))
      shared = name, sharing++;
    else
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' must be given", TFC_STR_ARG(name));
  }
  uint32_t each = 0;
  if (sharing) {
    if (spec->input_count < fixed || (spec->input_count - fixed) % sharing)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%u inputs do not fit its signature", spec->input_count);
    each = (spec->input_count - fixed) / sharing;
  }
  uint32_t at = 0;
  for (uint32_t a = 0; a < sig->input_count; a++) {
    const struct tfc_op_arg *arg = &sig->inputs[a];
    uint32_t count = 1;
    tfc_str name = arg->is_list ? arg->type_attr : arg->number_attr;
    if (name.size) {
      const struct tfc_attr *known = given(attrs, name);
      count = !known ? each : known->kind == TFC_ATTR_INT ? (uint32_t)known->i : known->count;
      if (!known && !arg->is_list)
        attrs->data[attrs->count++] = (struct tfc_attr){.name = name, .kind = TFC_ATTR_INT, .i = each};
    }
    if (count > spec->input_count - at)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s' is missing", TFC_STR_ARG(arg->name));
    if (arg->is_list && !given(attrs, arg->type_attr)) {
      tfc_dtype *types = TFC_ARENA_ARRAY(&b->arena, tfc_dtype, count + 1);
      if (!types) return tfc_status_no_memory("building a graph");
      for (uint32_t k = 0; k < count; k++) types[k] = tfc_dtype_base(tfc_builder_dtype(b, spec->inputs[at + k]));
      attrs->data[attrs->count++] =
          (struct tfc_attr){.name = arg->type_attr, .kind = TFC_ATTR_LIST_TYPE, .count = count, .types = types};
    } else if (!arg->is_list && arg->type_attr.size && count && !given(attrs, arg->type_attr)) {
      tfc_dtype t = tfc_dtype_base(tfc_builder_dtype(b, spec->inputs[at]));
      attrs->data[attrs->count++] = (struct tfc_attr){.name = arg->type_attr, .kind = TFC_ATTR_TYPE, .type = t};
    }
    at += count;
  }
  if (at != spec->input_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%u inputs are too many: it takes %u", spec->input_count, at);
  return NULL;
}

static tfc_status check_types(struct tfc_builder *b, const struct tfc_op_signature *sig,
                              const struct tfc_node_spec *spec, const struct tfc_attr_view *view) {
  uint32_t at = 0;
  for (uint32_t a = 0; a < sig->input_count; a++) {
    uint32_t count;
    TFC_RETURN_IF_ERROR(tfc_arg_count(&sig->inputs[a], view, &count));
    for (uint32_t k = 0; k < count && at < spec->input_count; k++, at++) {
      tfc_dtype want, have = tfc_builder_dtype(b, spec->inputs[at]);
      TFC_RETURN_IF_ERROR(tfc_arg_type(&sig->inputs[a], view, k, &want));
      if (!tfc_dtype_feeds(have, want)) {
        tfc_str from = b->entries.data[spec->inputs[at].node].node.name;
        return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s' must be %s, but '%.*s:%d' is %s",
                               TFC_STR_ARG(sig->inputs[a].name), tfc_dtype_name(want), TFC_STR_ARG(from),
                               spec->inputs[at].index, tfc_dtype_name(have));
      }
    }
  }
  return NULL;
}

static tfc_status make_outputs(struct tfc_builder *b, const struct tfc_op_signature *sig,
                               const struct tfc_attr_view *view, struct entry *e) {
  uint32_t total = 0, count, at = 0;
  for (uint32_t a = 0; a < sig->output_count; a++) {
    TFC_RETURN_IF_ERROR(tfc_arg_count(&sig->outputs[a], view, &count));
    total += count;
  }
  tfc_dtype *types = TFC_ARENA_ARRAY(&b->arena, tfc_dtype, total + 1);
  if (!types) return tfc_status_no_memory("building a graph");
  for (uint32_t a = 0; a < sig->output_count; a++) {
    TFC_RETURN_IF_ERROR(tfc_arg_count(&sig->outputs[a], view, &count));
    for (uint32_t k = 0; k < count; k++) TFC_RETURN_IF_ERROR(tfc_arg_type(&sig->outputs[a], view, k, &types[at++]));
  }
  e->types = types;
  e->node.output_count = total;
  return NULL;
}

static tfc_status add_class(struct tfc_builder *b, uint32_t target, struct attr_list *attrs) {
  const struct tfc_attr *have = tfc_builder_attr(b, target, "_class");
  for (uint32_t i = 0; i < attrs->count; i++)
    if (tfc_str_is(attrs->data[i].name, "_class")) return NULL;
  if (have && have->kind == TFC_ATTR_LIST_STRING) {
    if (!copy_attr(&b->arena, have, &attrs->data[attrs->count++])) return tfc_status_no_memory("building a graph");
    return NULL;
  }
  tfc_str *name = TFC_ARENA_NEW(&b->arena, tfc_str);
  if (!name) return tfc_status_no_memory("building a graph");
  *name = tfc_arena_printf(&b->arena, "loc:@%.*s", TFC_STR_ARG(b->entries.data[target].node.name));
  attrs->data[attrs->count++] =
      (struct tfc_attr){.name = TFC_STR("_class"), .kind = TFC_ATTR_LIST_STRING, .count = 1, .strings = name};
  return NULL;
}

static tfc_status add(struct tfc_builder *b, const struct tfc_node_spec *spec) {
  struct entry e = {.node = {.function = TFC_NONE}};
  uint32_t id = (uint32_t)b->entries.count;
  tfc_str op = tfc_str_from(spec->op);
  const struct tfc_op_def *def = tfc_op_find(op);
  const struct tfc_function *function = def || !b->base ? NULL : tfc_graph_function(b->base, op);
  if (id >= TFC_NONE - 1) return tfc_status_no_memory("building a graph");
  if (!def && !function) return tfc_status_make(TFC_UNIMPLEMENTED, "op '%s' is not known", spec->op);
  for (uint32_t i = 0; i < spec->input_count; i++) {
    struct tfc_output in = spec->inputs[i];
    if (in.node >= id || in.index < 0 || (uint32_t)in.index >= b->entries.data[in.node].node.output_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u is not an output of a node added before", i);
  }
  for (uint32_t i = 0; i < spec->control_count; i++)
    if (spec->controls[i] >= id)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "control input %u is not a node added before", i);

  TFC_RETURN_IF_ERROR(unique_name(b, spec->name, spec->op, &e.node.name));
  e.node.op = def ? tfc_str_from(def->name) : function->name;
  e.node.def = def;
  e.node.device = !spec->device.size ? b->device : spec->borrow ? spec->device : tfc_arena_str(&b->arena, spec->device);
  e.node.input_count = spec->input_count;
  e.node.control_count = spec->control_count;
  e.node.raw = TFC_STR("");
  e.edge_capacity = spec->input_count + spec->control_count;
  e.edges = TFC_ARENA_ARRAY(&b->arena, struct tfc_output, e.edge_capacity + 1);
  if (!e.edges) return tfc_status_no_memory("building a graph");
  for (uint32_t i = 0; i < spec->input_count; i++) e.edges[i] = spec->inputs[i];
  for (uint32_t i = 0; i < spec->control_count; i++)
    e.edges[spec->input_count + i] = (struct tfc_output){spec->controls[i], TFC_CONTROL};

  const struct tfc_op_signature *sig = def ? tfc_op_signature(def) : NULL;
  struct attr_list attrs = {
      TFC_ARENA_ARRAY(&b->arena, struct tfc_attr, spec->attr_count + (sig ? 2 * sig->input_count : 0) + 2), 0};
  if (!attrs.data) return tfc_status_no_memory("building a graph");
  for (uint32_t i = 0; i < spec->attr_count; i++, attrs.count++)
    if (spec->borrow)
      attrs.data[i] = spec->attrs[i];
    else if (!copy_attr(&b->arena, &spec->attrs[i], &attrs.data[i]))
      return tfc_status_no_memory("building a graph");
  if (sig) {
    TFC_RETURN_IF_ERROR(infer_attrs(b, sig, spec, &attrs));
    struct tfc_attr_view view = {attrs.data, attrs.count, sig};
    TFC_RETURN_IF_ERROR(check_types(b, sig, spec, &view));
    TFC_RETURN_IF_ERROR(make_outputs(b, sig, &view, &e));
    for (uint32_t i = 0; i < sig->attr_count; i++)
      if (!tfc_attr_find(&view, sig->attrs[i].name))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is missing", TFC_STR_ARG(sig->attrs[i].name));
  } else {
    e.types = function->ret_types;
    e.node.output_count = function->ret_count;
    e.node.function = (uint32_t)(function - (b->base->library ? b->base->library : b->base)->functions);
  }
  if (spec->colocate_with && spec->colocate_with != TFC_NONE)
    TFC_RETURN_IF_ERROR(add_class(b, spec->colocate_with - 1, &attrs));
  e.attrs = attrs.data;
  e.node.attr_count = attrs.count;
  return tfc_array_push(&b->entries, e) ? NULL : tfc_status_no_memory("building a graph");
}

uint32_t tfc_builder_add(struct tfc_builder *b, const struct tfc_node_spec *spec) {
  if (b->status) return TFC_NONE;
  tfc_status s = add(b, spec);
  if (!s) return (uint32_t)b->entries.count - 1;
  tfc_builder_fail(b, tfc_status_annotate(s, "node '%s%s%s' (%s)", b->scope.size ? b->scope.data : "",
                                          b->scope.size ? "/" : "", spec->name && *spec->name ? spec->name : spec->op,
                                          spec->op));
  return TFC_NONE;
}

// --- Reading and changing nodes ------------------------------------------------------------------------------------
uint32_t tfc_builder_node_count(const struct tfc_builder *b) {
  return (uint32_t)b->entries.count;
}

const struct tfc_node *tfc_builder_node(const struct tfc_builder *b, uint32_t id) {
  return &b->entries.data[id].node;
}

tfc_dtype tfc_builder_dtype(const struct tfc_builder *b, struct tfc_output o) {
  return o.node >= b->entries.count || o.index < 0 ? TFC_DTYPE_NONE : b->entries.data[o.node].types[o.index];
}

const struct tfc_attr *tfc_builder_attr(const struct tfc_builder *b, uint32_t id, const char *name) {
  const struct entry *e = &b->entries.data[id];
  struct tfc_attr_view view = {e->attrs, e->node.attr_count, e->node.def ? tfc_op_signature(e->node.def) : NULL};
  return tfc_attr_find(&view, tfc_str_from(name));
}

struct tfc_output tfc_builder_input(const struct tfc_builder *b, uint32_t id, uint32_t input) {
  const struct entry *e = &b->entries.data[id];
  assert(input < e->node.input_count + e->node.control_count);
  return e->edges[input];
}

// Copies the node's edges, if they are a view, and makes room for one more.
static bool own_edges(struct tfc_builder *b, struct entry *e) {
  uint32_t count = e->node.input_count + e->node.control_count;
  e->node.raw = TFC_STR(""); // the node differs from the file now
  if (count < e->edge_capacity) return true;
  struct tfc_output *edges = TFC_ARENA_ARRAY(&b->arena, struct tfc_output, 2 * count + 2);
  if (!edges) {
    tfc_builder_fail(b, tfc_status_no_memory("building a graph"));
    return false;
  }
  if (count) memcpy(edges, e->edges, count * sizeof *edges);
  e->edges = edges;
  e->edge_capacity = 2 * count + 2;
  return true;
}

void tfc_builder_set_input(struct tfc_builder *b, uint32_t id, uint32_t input, struct tfc_output from) {
  if (b->status || !own_edges(b, &b->entries.data[id])) return;
  assert(input < b->entries.data[id].node.input_count);
  b->entries.data[id].edges[input] = from;
}

void tfc_builder_add_control(struct tfc_builder *b, uint32_t id, uint32_t from) {
  if (b->status || !own_edges(b, &b->entries.data[id])) return;
  struct entry *e = &b->entries.data[id];
  for (uint32_t i = e->node.input_count; i < e->node.input_count + e->node.control_count; i++)
    if (e->edges[i].node == from) return;
  e->edges[e->node.input_count + e->node.control_count++] = (struct tfc_output){from, TFC_CONTROL};
}

struct tfc_arena *tfc_builder_arena(struct tfc_builder *b) {
  return &b->arena;
}

void tfc_builder_replace(struct tfc_builder *b, uint32_t id, const struct tfc_node_spec *spec) {
  uint32_t made = tfc_builder_add(b, spec);
  if (made == TFC_NONE) return;
  struct entry *old = &b->entries.data[id], *e = &b->entries.data[made];
  bool same = old->node.output_count == e->node.output_count;
  for (uint32_t i = 0; same && i < e->node.output_count; i++)
    same = tfc_dtype_base(old->types[i]) == tfc_dtype_base(e->types[i]) || !old->types[i];
  if (!same) {
    tfc_builder_fail(b, tfc_status_make(TFC_INTERNAL, "node '%.*s' cannot become a %s: its outputs would change",
                                        TFC_STR_ARG(old->node.name), spec->op));
    return;
  }
  e->node.name = old->node.name;
  e->node.device = old->node.device;
  *old = *e;
  b->entries.count--;
}

// --- Finishing the graph -------------------------------------------------------------------------------------------
static tfc_status fill(const struct tfc_builder *b, struct tfc_graph *g) {
  const struct tfc_graph *base = b->base;
  size_t edges = 0, attrs = 0;
  for (size_t i = 0; i < b->entries.count; i++) {
    edges += b->entries.data[i].node.input_count + b->entries.data[i].node.control_count;
    attrs += b->entries.data[i].node.attr_count;
  }
  if (edges > UINT32_MAX / 2 || attrs > UINT32_MAX / 2) return tfc_status_no_memory("building a graph");
  g->nodes = tfc_arena_array(&g->arena, b->entries.count + 1, sizeof *g->nodes);
  g->inputs = tfc_arena_array(&g->arena, edges + 1, sizeof *g->inputs);
  g->attrs = tfc_arena_array(&g->arena, attrs + 1, sizeof *g->attrs);
  if (!g->nodes || !g->inputs || !g->attrs) return tfc_status_no_memory("building a graph");
  g->node_count = (uint32_t)b->entries.count;
  g->edge_count = (uint32_t)edges;
  uint32_t edge = 0, attr = 0;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct entry *e = &b->entries.data[i];
    struct tfc_node *n = &g->nodes[i];
    uint32_t count = e->node.input_count + e->node.control_count;
    *n = e->node;
    n->input_begin = edge;
    n->attr_begin = attr;
    if (count) memcpy(g->inputs + edge, e->edges, count * sizeof *e->edges);
    if (n->attr_count) memcpy(g->attrs + attr, e->attrs, n->attr_count * sizeof *e->attrs);
    edge += count;
    attr += n->attr_count;
  }
  if (base) {
    g->parent = base;
    tfc_graph_retain(base);
    g->library = base->library ? base->library : base;
    g->functions = g->library->functions;
    g->function_count = g->library->function_count;
    g->collections = base->collections;
    g->collection_count = base->collection_count;
    g->signatures = base->signatures;
    g->signature_count = base->signature_count;
    g->producer_version = base->producer_version;
    g->path = base->path;
    g->variables_prefix = base->variables_prefix;
    g->assets = base->assets;
    g->asset_count = base->asset_count;
    g->saver_filename = base->saver_filename;
    g->saver_restore = base->saver_restore;
    g->saver_save = base->saver_save;
  }
  TFC_RETURN_IF_ERROR(tfc_graph_resolve_nodes(g));
  return tfc_graph_finish(g);
}

tfc_status tfc_builder_finish(struct tfc_builder *b, struct tfc_graph **out) {
  tfc_status s = b->status;
  struct tfc_graph *g = NULL;
  b->status = NULL;
  if (s) goto out;
  TFC_TRY(s, tfc_graph_new(&g));
  tfc_arena_deinit(&g->arena);
  g->arena = b->arena; // it contains names, edges and attributes
  b->arena = (struct tfc_arena){.block_size = b->arena.block_size};
  TFC_TRY(s, fill(b, g));
  *out = g, g = NULL;
out:
  tfc_graph_release(g);
  tfc_array_free(&b->entries);
  tfc_strmap_deinit(&b->names);
  b->device = b->scope = (tfc_str){0};
  return s;
}

tfc_status tfc_builder_snapshot(const struct tfc_builder *b, struct tfc_graph **out) {
  struct tfc_graph *g = NULL;
  if (b->status) return tfc_status_clone(b->status);
  TFC_RETURN_IF_ERROR(tfc_graph_new(&g));
  tfc_status s = fill(b, g); // makes views into the builder's arena, which are valid as long as the builder
  if (s)
    tfc_graph_release(g);
  else
    *out = g;
  return s;
}

// --- Short forms ---------------------------------------------------------------------------------------------------
struct tfc_output tfc_add(struct tfc_builder *b, const char *op, const char *name, const struct tfc_output *inputs,
                          uint32_t input_count, const struct tfc_attr *attrs, uint32_t attr_count) {
  uint32_t id = tfc_builder_add(b, &(struct tfc_node_spec){.op = op,
                                                           .name = name,
                                                           .inputs = inputs,
                                                           .input_count = input_count,
                                                           .attrs = attrs,
                                                           .attr_count = attr_count});
  return (struct tfc_output){id, 0};
}

struct tfc_output tfc_add1(struct tfc_builder *b, const char *op, struct tfc_output x) {
  return tfc_add(b, op, NULL, &x, 1, NULL, 0);
}

struct tfc_output tfc_add2(struct tfc_builder *b, const char *op, struct tfc_output x, struct tfc_output y) {
  return tfc_add(b, op, NULL, (struct tfc_output[]){x, y}, 2, NULL, 0);
}

struct tfc_output tfc_add3(struct tfc_builder *b, const char *op, struct tfc_output x, struct tfc_output y,
                           struct tfc_output z) {
  return tfc_add(b, op, NULL, (struct tfc_output[]){x, y, z}, 3, NULL, 0);
}

struct tfc_output tfc_add_const(struct tfc_builder *b, const char *name, const struct tfc_tensor *value) {
  struct tfc_attr attrs[] = {tfc_attr_type("dtype", value->dtype), tfc_attr_tensor("value", value)};
  return tfc_add(b, "Const", name, NULL, 0, attrs, 2);
}

struct tfc_output tfc_add_i32(struct tfc_builder *b, int32_t value) {
  struct tfc_tensor t = {.dtype = TFC_INT32, .shape = TFC_SHAPE_SCALAR, .data = &value, .size = sizeof value};
  return tfc_add_const(b, NULL, &t);
}

struct tfc_output tfc_add_i32_vector(struct tfc_builder *b, const int32_t *values, uint32_t count) {
  struct tfc_tensor t = {.dtype = TFC_INT32, .shape = TFC_SHAPE(count), .data = (void *)values, .size = count * 4ull};
  return tfc_add_const(b, NULL, &t);
}

struct tfc_output tfc_add_scalar(struct tfc_builder *b, tfc_dtype dtype, double value) {
  union {
    float f32[4];
    double f64[2];
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
  } u = {{0}};
  dtype = tfc_dtype_base(dtype);
  switch ((int)dtype) {
  case TFC_FLOAT:
  case TFC_COMPLEX64: u.f32[0] = (float)value; break;
  case TFC_DOUBLE:
  case TFC_COMPLEX128: u.f64[0] = value; break;
  case TFC_HALF: u.u16 = tfc_float_to_half((float)value); break;
  case TFC_BFLOAT16: u.u16 = tfc_float_to_bfloat16((float)value); break;
  case TFC_INT8: u.i8 = (int8_t)value; break;
  case TFC_INT16: u.i16 = (int16_t)value; break;
  case TFC_INT32: u.i32 = (int32_t)value; break;
  case TFC_INT64: u.i64 = (int64_t)value; break;
  case TFC_UINT8: u.u8 = (uint8_t)value; break;
  case TFC_BOOL: u.u8 = value != 0; break;
  case TFC_UINT16: u.u16 = (uint16_t)value; break;
  case TFC_UINT32: u.u32 = (uint32_t)value; break;
  case TFC_UINT64: u.u64 = (uint64_t)value; break;
  default:
    if (!b->status)
      tfc_builder_fail(b,
                       tfc_status_make(TFC_INVALID_ARGUMENT, "a scalar of %s cannot be made", tfc_dtype_name(dtype)));
    return TFC_NO_OUTPUT;
  }
  struct tfc_tensor t = {.dtype = dtype, .shape = TFC_SHAPE_SCALAR, .data = &u, .size = tfc_dtype_size(dtype)};
  return tfc_add_const(b, NULL, &t);
}

struct tfc_output tfc_add_placeholder(struct tfc_builder *b, const char *name, tfc_dtype dtype,
                                      const struct tfc_shape *shape) {
  struct tfc_attr attrs[] = {tfc_attr_type("dtype", dtype), tfc_attr_shape("shape", shape)};
  return tfc_add(b, "Placeholder", name, NULL, 0, attrs, 2);
}
