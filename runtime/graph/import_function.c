// Reads FunctionDefs: parameters become _Arg nodes, results _Retval nodes. In a body, inputs are written "parameter",
// "node:output argument:index" and "^node".
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"
#include "runtime/graph/import_internal.h"

struct param { // ArgDef
  tfc_str name, type_attr, number_attr, list_attr;
  tfc_dtype type;
  bool is_ref;
};

static tfc_status read_param(tfc_str bytes, struct param *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct param p = {.name = TFC_STR("")};
  while (tfc_wire_next(&w, &f)) {
    if (f.type == TFC_WIRE_BYTES) {
      if (f.number == 1) p.name = f.bytes;
      if (f.number == 4) p.type_attr = f.bytes;
      if (f.number == 5) p.number_attr = f.bytes;
      if (f.number == 6) p.list_attr = f.bytes;
    } else if (f.type == TFC_WIRE_VARINT) {
      if (f.number == 3) p.type = (tfc_dtype)(f.value < 256 ? f.value : 0);
      if (f.number == 16) p.is_ref = f.value != 0;
    }
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "parameter '%.*s': %s", TFC_STR_ARG(p.name), w.error);
  if (p.type && !tfc_dtype_valid(p.type))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "parameter '%.*s' has an unknown type", TFC_STR_ARG(p.name));
  if (p.is_ref && p.type && !tfc_dtype_is_ref(p.type)) p.type = (tfc_dtype)(p.type + TFC_REF);
  *out = p;
  return NULL;
}

struct params {
  struct param *data;
  size_t count, capacity;
};

// Reads the signature, an OpDef: names, parameters, results.
static tfc_status read_signature(tfc_str bytes, struct tfc_function *fn, struct params *args, struct params *rets) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 17 && f.type == TFC_WIRE_VARINT) fn->stateful = f.value != 0;
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 1) fn->name = f.bytes;
    if (f.number == 2 || f.number == 3) {
      struct param p;
      TFC_RETURN_IF_ERROR(read_param(f.bytes, &p));
      if (!(f.number == 2 ? tfc_array_push(args, p) : tfc_array_push(rets, p)))
        return tfc_status_no_memory("reading a function");
    }
  }
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "signature: %s", w.error) : NULL;
}

static tfc_status find_signature(tfc_str bytes, tfc_str *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  *out = (tfc_str){0};
  while (tfc_wire_next(&w, &f))
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) *out = f.bytes;
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s (field %u)", w.error, f.number);
  return NULL;
}

// Reads name, parameters and results of a function. The first pass does so for every function, so that bodies may call
// any of them.
static tfc_status declare(struct tfc_graph *g, tfc_str bytes, struct tfc_function *fn) {
  tfc_status s = NULL;
  struct params args = {0}, rets = {0};
  tfc_str signature;
  *fn = (struct tfc_function){.name = TFC_STR(""), .gradient = TFC_STR(""), .problem = TFC_STR("")};
  TFC_TRY(s, find_signature(bytes, &signature));
  TFC_TRY(s, read_signature(signature, fn, &args, &rets));
  if (!fn->name.size) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a function has no name");
  tfc_str *arg_names = TFC_ARENA_ARRAY(&g->arena, tfc_str, args.count + 1);
  tfc_str *ret_names = TFC_ARENA_ARRAY(&g->arena, tfc_str, rets.count + 1);
  tfc_dtype *arg_types = TFC_ARENA_ARRAY(&g->arena, tfc_dtype, args.count + 1);
  tfc_dtype *ret_types = TFC_ARENA_ARRAY(&g->arena, tfc_dtype, rets.count + 1);
  tfc_str *type_attrs = TFC_ARENA_ARRAY(&g->arena, tfc_str, args.count + rets.count + 1);
  if (!arg_names || !ret_names || !arg_types || !ret_types || !type_attrs) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = 0; i < args.count + rets.count; i++) {
    const struct param *p = i < args.count ? &args.data[i] : &rets.data[i - args.count];
    *(i < args.count ? &arg_names[i] : &ret_names[i - args.count]) = p->name;
    *(i < args.count ? &arg_types[i] : &ret_types[i - args.count]) = p->type;
    type_attrs[i] = p->type_attr;
    if (p->number_attr.size || p->list_attr.size)
      fn->problem =
          tfc_arena_printf(&g->arena, "how many tensors '%.*s' is, is left to the caller", TFC_STR_ARG(p->name));
  }
  fn->arg_names = arg_names, fn->ret_names = ret_names;
  fn->arg_types = arg_types, fn->ret_types = ret_types;
  fn->arg_type_attrs = type_attrs, fn->ret_type_attrs = type_attrs + args.count;
  fn->arg_count = (uint32_t)args.count, fn->ret_count = (uint32_t)rets.count;
out:
  tfc_array_free(&args);
  tfc_array_free(&rets);
  return s;
}

// --- Bodies --------------------------------------------------------------------------------------------------------
struct body {
  struct tfc_graph *owner, *g;
  struct tfc_function *fn;
  struct tfc_node_reader r;
  struct tfc_strmap rets;       // name of a result → the text that says where it comes from
  TFC_ARRAY(tfc_str) controls;  // nodes that must run
  TFC_ARRAY(tfc_str) arg_attrs; // entries of arg_attr
  TFC_ARRAY(tfc_str) attrs;     // entries of attr
};

static tfc_status push_attr(struct body *b, struct tfc_attr attr) {
  b->r.nodes.data[b->r.nodes.count - 1].attr_count++;
  return tfc_array_push(&b->r.attrs, attr) ? NULL : tfc_status_no_memory("reading a function");
}

// Adds the type and the index of a parameter or result node.
static tfc_status push_param_attrs(struct body *b, tfc_dtype type, tfc_str type_attr, uint32_t index) {
  struct tfc_attr t = {.name = TFC_STR("T"), .kind = TFC_ATTR_TYPE, .type = tfc_dtype_base(type)};
  if (!type) { // an attribute of the function decides
    t.kind = TFC_ATTR_PLACEHOLDER;
    t.s = type_attr;
  }
  TFC_RETURN_IF_ERROR(push_attr(b, t));
  return push_attr(b, (struct tfc_attr){.name = TFC_STR("index"), .kind = TFC_ATTR_INT, .i = index});
}

static tfc_status push_node(struct body *b, tfc_str name, const char *op) {
  struct tfc_node n = {.name = name,
                       .op = tfc_str_from(op),
                       .device = TFC_STR(""),
                       .function = TFC_NONE,
                       .input_begin = (uint32_t)b->r.inputs.count,
                       .attr_begin = (uint32_t)b->r.attrs.count,
                       .raw = TFC_STR("")};
  return tfc_array_push(&b->r.nodes, n) ? NULL : tfc_status_no_memory("reading a function");
}

// Adds the attributes that the file gives for parameter `index` (mostly shapes).
static tfc_status push_given_attrs(struct body *b, uint32_t index) {
  for (size_t i = 0; i < b->arg_attrs.count; i++) {
    struct tfc_wire w = tfc_wire_of(b->arg_attrs.data[i]);
    struct tfc_field f;
    uint64_t key = 0;
    tfc_str value = {0};
    while (tfc_wire_next(&w, &f)) {
      if (f.number == 1 && f.type == TFC_WIRE_VARINT) key = f.value;
      if (f.number == 2 && f.type == TFC_WIRE_BYTES) value = f.bytes;
    }
    if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "arg_attr: %s", w.error);
    if (key != index) continue;
    w = tfc_wire_of(value);
    while (tfc_wire_next(&w, &f)) {
      struct tfc_attr attr = {0};
      tfc_str text;
      if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
      TFC_RETURN_IF_ERROR(tfc_read_entry(f.bytes, &attr.name, &text));
      if (tfc_str_is(attr.name, "T") || tfc_str_is(attr.name, "index")) continue;
      TFC_RETURN_IF_ERROR(tfc_read_attr_value(&b->r.attr_reader, text, &attr));
      TFC_RETURN_IF_ERROR(push_attr(b, attr));
    }
    if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "arg_attr: %s", w.error);
  }
  return NULL;
}

static tfc_status scan(struct body *b, tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    tfc_str key, value;
    if (f.type != TFC_WIRE_BYTES) continue;
    switch (f.number) {
    case 4:
      TFC_RETURN_IF_ERROR(tfc_read_entry(f.bytes, &key, &value));
      uint64_t at = (uint64_t)b->controls.count; // results are few, so their texts are in arrays in addition to the map
      if (!tfc_array_push(&b->controls, value)) return tfc_status_no_memory("reading a function");
      if (!tfc_strmap_put(&b->rets, key, at, NULL)) return tfc_status_no_memory("reading a function");
      break;
    case 5:
      if (!tfc_array_push(&b->attrs, f.bytes)) return tfc_status_no_memory("reading a function");
      break;
    case 7:
      if (!tfc_array_push(&b->arg_attrs, f.bytes)) return tfc_status_no_memory("reading a function");
      break;
    default: break;
    }
  }
  return NULL; // no error is possible here: these bytes were read before, for the signature
}

// Finds the output that a name in a body refers to.
static tfc_status resolve(const struct body *b, tfc_str text, struct tfc_output *out) {
  const struct tfc_graph *g = b->g;
  struct tfc_output o = {0, 0};
  tfc_str name = text, argument = {0};
  if (text.size && text.data[0] == '^') {
    name = tfc_str_sub(text, 1, text.size);
    o.index = TFC_CONTROL;
  } else {
    size_t colon = tfc_str_find(text, ':');
    if (colon != SIZE_MAX) {
      name = tfc_str_sub(text, 0, colon);
      tfc_str rest = tfc_str_sub(text, colon + 1, text.size);
      size_t second = tfc_str_find(rest, ':');
      argument = tfc_str_sub(rest, 0, second);
      tfc_str number = second == SIZE_MAX ? TFC_STR("0") : tfc_str_sub(rest, second + 1, rest.size);
      if (second == SIZE_MAX && argument.size && argument.data[0] >= '0' && argument.data[0] <= '9')
        number = argument, argument = (tfc_str){0}; // the text has the form "parameter:0"
      int64_t index;
      tfc_status s = tfc_parse_i64(number, &index);
      tfc_status_free(s);
      if (s || index < 0 || index > TFC_MAX_NODE_OUTPUTS)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s' has no valid output number", TFC_STR_ARG(text));
      o.index = (int32_t)index;
    }
  }
  const uint64_t *id = tfc_strmap_get(&g->by_name, name);
  if (!id)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s' names no node of the function", TFC_STR_ARG(text));
  o.node = (uint32_t)*id;
  const struct tfc_node *n = &g->nodes[o.node];
  if (argument.size && n->def) {
    const struct tfc_op_signature *sig = tfc_op_signature(n->def);
    struct tfc_attr_view view = {g->attrs + n->attr_begin, n->attr_count, sig};
    uint32_t offset = 0, a = 0, count = 0;
    for (; a < sig->output_count; a++, offset += count) {
      TFC_RETURN_IF_ERROR(tfc_arg_count(&sig->outputs[a], &view, &count));
      if (tfc_str_equal(sig->outputs[a].name, argument)) break;
    }
    if (a == sig->output_count || (uint32_t)o.index >= count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s': op %s has no such output", TFC_STR_ARG(text),
                             n->def->name);
    o.index += (int32_t)offset;
  } else if (argument.size && n->function != TFC_NONE) {
    const struct tfc_function *fn = &b->owner->functions[n->function];
    uint32_t r = 0;
    while (r < fn->ret_count && !tfc_str_equal(fn->ret_names[r], argument)) r++;
    if (r == fn->ret_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "input '%.*s': function '%.*s' has no such result",
                             TFC_STR_ARG(text), TFC_STR_ARG(fn->name));
    o.index = (int32_t)r;
  }
  *out = o;
  return NULL;
}

static tfc_status resolve_all(struct body *b) {
  for (uint32_t i = 0; i < b->g->node_count; i++) {
    const struct tfc_node *n = &b->g->nodes[i];
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      tfc_status s = resolve(b, b->r.inputs.data[n->input_begin + k], &b->g->inputs[n->input_begin + k]);
      if (s) return tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
    }
  }
  return NULL;
}

static tfc_status read_function_attrs(struct body *b) {
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(&b->owner->arena, struct tfc_attr, b->attrs.count + 1);
  if (!attrs) return tfc_status_no_memory("reading a function");
  for (size_t i = 0; i < b->attrs.count; i++) {
    tfc_str value;
    TFC_RETURN_IF_ERROR(tfc_read_entry(b->attrs.data[i], &attrs[i].name, &value));
    TFC_RETURN_IF_ERROR(tfc_read_attr_value(&b->r.attr_reader, value, &attrs[i]));
  }
  b->fn->attrs = attrs;
  b->fn->attr_count = (uint32_t)b->attrs.count;
  return NULL;
}

// Makes the name of a result's node, which must differ from all names in the body.
static tfc_str ret_node_name(struct body *b, uint32_t r, const struct tfc_strmap *taken) {
  for (int n = 0;; n++) {
    tfc_str name = n ? tfc_arena_printf(&b->g->arena, "%.*s_RetVal_%d", TFC_STR_ARG(b->fn->ret_names[r]), n)
                     : tfc_arena_printf(&b->g->arena, "%.*s_RetVal", TFC_STR_ARG(b->fn->ret_names[r]));
    if (!name.data || !tfc_strmap_get(taken, name)) return name;
  }
}

static tfc_status read_body(struct body *b, tfc_str bytes) {
  tfc_status s = NULL;
  struct tfc_function *fn = b->fn;
  struct tfc_strmap taken = {0};
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  TFC_ARRAY(tfc_str) control_rets = {0};
  uint32_t first_ret;
  TFC_TRY(s, scan(b, bytes));
  TFC_TRY(s, read_function_attrs(b));
  for (uint32_t i = 0; i < fn->arg_count; i++) {
    TFC_TRY(s, push_node(b, fn->arg_names[i], "_Arg"));
    TFC_TRY(s, push_param_attrs(b, fn->arg_types[i], fn->arg_type_attrs[i], i));
    TFC_TRY(s, push_given_attrs(b, i));
  }
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 3 && f.type == TFC_WIRE_BYTES) TFC_TRY(s, tfc_read_node(&b->r, f.bytes));
    if (f.number == 6 && f.type == TFC_WIRE_BYTES) {
      tfc_str key, value;
      TFC_TRY(s, tfc_read_entry(f.bytes, &key, &value));
      if (!tfc_array_push(&control_rets, value)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
  }
  for (size_t i = 0; i < b->r.nodes.count; i++)
    if (!tfc_strmap_put(&taken, b->r.nodes.data[i].name, i, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  first_ret = (uint32_t)b->r.nodes.count;
  for (uint32_t i = 0; i < fn->ret_count; i++) {
    const uint64_t *at = tfc_strmap_get(&b->rets, fn->ret_names[i]);
    if (!at) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "result '%.*s' has no value", TFC_STR_ARG(fn->ret_names[i]));
    tfc_str name = ret_node_name(b, i, &taken);
    if (!name.data || !tfc_strmap_put(&taken, name, 0, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, push_node(b, name, "_Retval"));
    TFC_TRY(s, push_param_attrs(b, fn->ret_types[i], fn->ret_type_attrs[i], i));
    b->r.nodes.data[b->r.nodes.count - 1].input_count = 1;
    if (!tfc_array_push(&b->r.inputs, b->controls.data[*at])) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  TFC_TRY(s, tfc_node_reader_hand_over(&b->r, b->g));
  TFC_TRY(s, tfc_graph_resolve_nodes(b->g));
  TFC_TRY(s, resolve_all(b));
  TFC_TRY(s, tfc_graph_finish(b->g));

  uint32_t *ids = TFC_ARENA_ARRAY(&b->g->arena, uint32_t, fn->arg_count + fn->ret_count + control_rets.count + 1);
  if (!ids) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < fn->arg_count; i++) ids[i] = i;
  for (uint32_t i = 0; i < fn->ret_count; i++) ids[fn->arg_count + i] = first_ret + i;
  for (size_t i = 0; i < control_rets.count; i++) {
    uint32_t id = tfc_graph_find(b->g, control_rets.data[i]);
    if (id == TFC_NONE)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "control output '%.*s' names no node of the function",
               TFC_STR_ARG(control_rets.data[i]));
    ids[fn->arg_count + fn->ret_count + i] = id;
  }
  fn->args = ids;
  fn->rets = ids + fn->arg_count;
  fn->control_rets = ids + fn->arg_count + fn->ret_count;
  fn->control_ret_count = (uint32_t)control_rets.count;
out:
  tfc_array_free(&control_rets);
  tfc_strmap_deinit(&taken);
  return s;
}

static tfc_status define(struct tfc_graph *g, tfc_str bytes, struct tfc_function *fn) {
  tfc_status s = NULL;
  struct body b = {.owner = g, .fn = fn};
  if (fn->problem.size) return NULL;
  TFC_TRY(s, tfc_graph_new_body(g, &b.g));
  fn->body = b.g; // from now on, the body is freed together with the library
  b.r.attr_reader.graph = b.g;
  s = read_body(&b, bytes);
  if (s && tfc_status_code(s) == TFC_UNIMPLEMENTED) { // such a graph can be loaded, but the function cannot be called
    fn->problem = tfc_arena_str(&g->arena, tfc_str_from(tfc_status_message(s)));
    tfc_status_free(s);
    s = NULL;
    tfc_graph_free_body(b.g);
    fn->body = NULL;
  }
out:
  tfc_strmap_deinit(&b.rets);
  tfc_array_free(&b.controls);
  tfc_array_free(&b.arg_attrs);
  tfc_array_free(&b.attrs);
  tfc_node_reader_deinit(&b.r);
  return s;
}

tfc_status tfc_read_library(struct tfc_graph *g, const tfc_str *libraries, size_t library_count) {
  tfc_status s = NULL;
  TFC_ARRAY(tfc_str) functions = {0}, gradients = {0};
  for (size_t i = 0; i < library_count; i++) {
    struct tfc_wire w = tfc_wire_of(libraries[i]);
    struct tfc_field f;
    while (tfc_wire_next(&w, &f)) {
      if (f.type != TFC_WIRE_BYTES) continue;
      if (f.number == 1 && !tfc_array_push(&functions, f.bytes)) TFC_TRY(s, tfc_status_no_memory(NULL));
      if (f.number == 2 && !tfc_array_push(&gradients, f.bytes)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
    if (w.error) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "function library: %s", w.error);
  }
  if (!functions.count) goto out;
  g->functions = tfc_arena_array(&g->arena, functions.count, sizeof *g->functions);
  if (!g->functions) TFC_TRY(s, tfc_status_no_memory_for("%zu functions", functions.count));
  for (size_t i = 0; i < functions.count; i++) {
    struct tfc_function *fn = &g->functions[i];
    bool found;
    s = declare(g, functions.data[i], fn);
    if (s) {
      s = tfc_status_annotate(s, "function %zu '%.*s'", i, TFC_STR_ARG(fn->name));
      goto out;
    }
    if (!tfc_strmap_put(&g->functions_by_name, fn->name, i, &found))
      TFC_TRY(s, tfc_status_no_memory_for("%zu functions", functions.count));
    if (found) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "two functions have the name '%.*s'", TFC_STR_ARG(fn->name));
    g->function_count = (uint32_t)i + 1;
  }
  for (size_t i = 0; i < functions.count; i++) {
    s = define(g, functions.data[i], &g->functions[i]);
    if (s) {
      s = tfc_status_annotate(s, "function '%.*s'", TFC_STR_ARG(g->functions[i].name));
      goto out;
    }
  }
  for (size_t i = 0; i < gradients.count; i++) {
    tfc_str name, gradient;
    TFC_TRY(s, tfc_read_entry(gradients.data[i], &name, &gradient));
    const uint64_t *at = tfc_strmap_get(&g->functions_by_name, name);
    if (at) g->functions[*at].gradient = gradient;
  }
out:
  tfc_array_free(&functions);
  tfc_array_free(&gradients);
  return s;
}
