// Inlines one call: copies the body's nodes to the calling graph. A body's node without inputs gets a control input,
// which ties it to its branch or iteration. So does a node that has an effect and depends only on values which the loop
// does not change, because it would also act in the iteration that ends the loop.
#include <stdlib.h>

#include "runtime/base/interrupt.h"
#include "runtime/pass/functions_internal.h"
#include "runtime/pass/pass.h"

// --- Values that a loop does not change ------------------------------------------------------------------------------
void tfc_lowering_set_steady(struct tfc_lowering *l, uint32_t id) {
  size_t count = l->steady.count;
  if (id >= count && !tfc_array_resize(&l->steady, (size_t)id + 1)) {
    tfc_builder_fail(l->b, tfc_status_no_memory("lowering functions"));
    return;
  }
  for (size_t i = count; i < id; i++) l->steady.data[i] = false;
  l->steady.data[id] = true;
}

static bool is_steady(const struct tfc_lowering *l, struct tfc_output o) {
  if (o.node < l->steady.count && l->steady.data[o.node]) return true;
  const struct tfc_attr *constant = tfc_builder_attr(l->b, o.node, "is_constant");
  const struct tfc_op_def *def = tfc_builder_node(l->b, o.node)->def;
  return constant && constant->b && def && def->flags & TFC_OP_ENTER;
}

// Returns a node that is dead exactly if the inputs of the call are dead.
uint32_t tfc_lowering_pivot(const struct tfc_lowering *l, const struct tfc_call_site *at) {
  for (uint32_t i = 0; i < at->arg_count; i++)
    if (!is_steady(l, at->args[i])) return at->args[i].node;
  return at->arg_count ? at->args[0].node : TFC_NONE;
}

// Whether the node would have an effect in the iteration that ends the loop.
static bool acts_when_over(const struct tfc_lowering *l, const struct tfc_node *n, const struct tfc_output *inputs) {
  bool call = tfc_lowering_is_call(n), all = true, any = false;
  if (n->def && !(n->def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_FUNCTIONAL))) return false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    bool steady = is_steady(l, inputs[k]);
    all &= steady;
    any |= steady;
  }
  // A branch or a loop needs only one such input.
  return all || (any && !call && n->def->flags & TFC_OP_FUNCTIONAL);
}

// --- Attributes of a body's node at this call ------------------------------------------------------------------------
static const struct tfc_attr *find(const struct tfc_attr *attrs, uint32_t count, tfc_str name) {
  for (uint32_t i = 0; i < count; i++)
    if (tfc_str_equal(attrs[i].name, name)) return &attrs[i];
  return NULL;
}

// Colocation with nodes of the body becomes colocation with the copies of these nodes; colocation with parameters is
// dropped.
static tfc_status rename_class(struct tfc_lowering *l, const struct tfc_call_site *at, const struct tfc_graph *body,
                               struct tfc_attr *a) {
  struct tfc_arena *arena = tfc_builder_arena(l->b);
  tfc_str *names = TFC_ARENA_ARRAY(arena, tfc_str, (size_t)a->count + 1);
  uint32_t n = 0;
  if (!names) return tfc_status_no_memory("lowering functions");
  for (uint32_t i = 0; i < a->count; i++) {
    tfc_str s = a->strings[i];
    if (tfc_str_starts(s, "loc:@")) {
      tfc_str target = tfc_str_sub(s, 5, s.size);
      uint32_t id = tfc_graph_find(body, target);
      if (id == TFC_NONE || tfc_node_role(&body->nodes[id]) == TFC_ROLE_PARAMETER) continue;
      s = tfc_arena_printf(arena, "loc:@%.*s/%.*s", TFC_STR_ARG(at->name), TFC_STR_ARG(target));
      if (!s.data) return tfc_status_no_memory("lowering functions");
    }
    names[n++] = s;
  }
  a->strings = names;
  a->count = n;
  return NULL;
}

static tfc_status copy_attrs(struct tfc_lowering *l, const struct tfc_call_site *at, const struct tfc_function *fn,
                             const struct tfc_node *n, struct tfc_attr **out, uint32_t *out_count) {
  bool made = at->made_from && n >= fn->body->nodes + at->made_from;
  struct tfc_arena *arena = tfc_builder_arena(l->b);
  const struct tfc_attr *from = fn->body->attrs + n->attr_begin;
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(arena, struct tfc_attr, (size_t)n->attr_count + 1);
  if (!attrs) return tfc_status_no_memory("lowering functions");
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    struct tfc_attr a = from[i];
    if (a.kind == TFC_ATTR_PLACEHOLDER) {
      const struct tfc_attr *given = find(at->attrs, at->attr_count, a.s);
      if (!given)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' of function '%.*s' is not given",
                               TFC_STR_ARG(a.s), TFC_STR_ARG(fn->name));
      tfc_str name = a.name;
      a = *given;
      a.name = name;
    }
    if (tfc_str_is(a.name, "_tfc_key")) continue;
    if (tfc_str_is(a.name, "_class") && a.kind == TFC_ATTR_LIST_STRING) {
      TFC_RETURN_IF_ERROR(rename_class(l, at, fn->body, &a));
      if (!a.count) continue;
    }
    if (tfc_str_is(a.name, "frame_name") && a.kind == TFC_ATTR_STRING) {
      a.s = tfc_arena_printf(arena, "%.*s/%.*s", TFC_STR_ARG(at->name), TFC_STR_ARG(a.s));
      if (!a.s.data) return tfc_status_no_memory("lowering functions");
    }
    attrs[count++] = a;
  }
  if (!made) {
    attrs[count] = (struct tfc_attr){.name = TFC_STR("_tfc_key"), .kind = TFC_ATTR_STRING};
    attrs[count].s = tfc_arena_printf(arena, "function/%.*s:%.*s", TFC_STR_ARG(fn->name), TFC_STR_ARG(n->name));
    if (!attrs[count++].s.data) return tfc_status_no_memory("lowering functions");
  }
  *out = attrs;
  *out_count = count;
  return NULL;
}

// --- Inlining one call -----------------------------------------------------------------------------------------------
struct copying {
  const struct tfc_graph *body;
  uint32_t *first;             // body node → number of its first copied node in the builder; TFC_NONE: not copied yet
  struct tfc_output *argument; // body's _Arg node → the caller's output for it
};

static bool map_output(const struct copying *c, struct tfc_output o, struct tfc_output *out) {
  if (tfc_output_valid(c->argument[o.node])) {
    *out = c->argument[o.node];
    return true;
  }
  if (c->first[o.node] == TFC_NONE) return false;
  *out = (struct tfc_output){c->first[o.node], o.index};
  return true;
}

static tfc_status copy_node(struct tfc_lowering *l, const struct tfc_call_site *at, const struct tfc_function *fn,
                            struct copying *c, uint32_t id) {
  tfc_status s = NULL;
  const struct tfc_graph *body = c->body;
  const struct tfc_node *n = &body->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(body, n);
  struct tfc_attr *attrs = NULL;
  uint32_t attr_count = 0, control_count = 0;
  struct tfc_output *inputs = calloc((size_t)n->input_count + 1, sizeof *inputs);
  uint32_t *controls = calloc((size_t)n->control_count + 2, sizeof *controls);
  char *op = tfc_str_dup(n->op);
  TFC_TRY(s, tfc_interrupted("lowering functions"));
  if (!inputs || !controls || !op) TFC_TRY(s, tfc_status_no_memory("lowering functions"));
  TFC_TRY(s, copy_attrs(l, at, fn, n, &attrs, &attr_count));
  struct tfc_output any = TFC_NO_OUTPUT;
  for (uint32_t k = 0; k < n->input_count; k++)
    if (map_output(c, in[k], &inputs[k])) any = inputs[k];
  for (uint32_t k = 0; k < n->input_count; k++) // the back edge of a loop is added when its source exists
    if (!map_output(c, in[k], &inputs[k])) inputs[k] = any;
  for (uint32_t k = n->input_count; k < n->input_count + n->control_count; k++) {
    if (tfc_output_valid(c->argument[in[k].node])) {
      controls[control_count++] = c->argument[in[k].node].node;
    } else if (c->first[in[k].node] != TFC_NONE) {
      controls[control_count++] = c->first[in[k].node];
    }
  }
  bool all_steady = n->input_count && !control_count;
  for (uint32_t k = 0; k < n->input_count && all_steady; k++) all_steady = is_steady(l, inputs[k]);
  if (at->control != TFC_NONE && ((!n->input_count && !control_count) || acts_when_over(l, n, inputs))) {
    controls[control_count++] = at->control;
    all_steady = false;
  }
  tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/%.*s", TFC_STR_ARG(at->name), TFC_STR_ARG(n->name));
  c->first[id] = tfc_builder_add(l->b, &(struct tfc_node_spec){.op = op,
                                                               .name = name.data,
                                                               .inputs = inputs,
                                                               .input_count = n->input_count,
                                                               .controls = controls,
                                                               .control_count = control_count,
                                                               .attrs = attrs,
                                                               .attr_count = attr_count,
                                                               .device = n->device.size ? n->device : at->device,
                                                               .borrow = !at->made_from});
  if (all_steady) tfc_lowering_set_steady(l, c->first[id]);
  s = tfc_status_clone(tfc_builder_status(l->b));
out:
  free(inputs);
  free(controls);
  free(op);
  return s;
}

static tfc_status close_back_edges(struct tfc_lowering *l, const struct copying *c) {
  const struct tfc_graph *body = c->body;
  for (uint32_t id = 0; id < body->node_count; id++) {
    const struct tfc_node *n = &body->nodes[id];
    const struct tfc_output *in = tfc_node_inputs(body, n);
    if (!n->def || !(n->def->flags & TFC_OP_MERGE)) continue;
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output o;
      if (map_output(c, in[k], &o)) tfc_builder_set_input(l->b, c->first[id], k, o);
    }
  }
  return NULL;
}

tfc_status tfc_lowering_inline(struct tfc_lowering *l, const struct tfc_call_site *at, const struct tfc_function *fn,
                               struct tfc_inlined *out) {
  tfc_status s = NULL;
  struct copying c = {0};
  uint32_t *order = NULL, *controls = NULL, control_count = 0;
  struct tfc_output *results = NULL;
  if (at->arg_count != fn->arg_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "function '%.*s' takes %u inputs, not %u", TFC_STR_ARG(fn->name),
                           fn->arg_count, at->arg_count);
  c.body = fn->body;
  size_t n = fn->body->node_count;
  c.first = malloc((n + 1) * sizeof *c.first);
  c.argument = calloc(n + 1, sizeof *c.argument);
  order = malloc((n + 1) * sizeof *order);
  controls = calloc(n + fn->ret_count + 2, sizeof *controls);
  results = TFC_ARENA_ARRAY(tfc_builder_arena(l->b), struct tfc_output, (size_t)fn->ret_count + 1);
  if (!c.first || !c.argument || !order || !controls || !results)
    TFC_TRY(s, tfc_status_no_memory("lowering functions"));
  for (size_t i = 0; i < n; i++) c.first[i] = TFC_NONE, c.argument[i] = TFC_NO_OUTPUT;
  for (uint32_t i = 0; i < fn->arg_count; i++) {
    struct tfc_output arg = at->args[i];
    if (at->strict && at->control != TFC_NONE) {
      tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "arg_%u", i);
      arg = tfc_lowering_add(l, at, "Identity", name.data, &arg, 1, &at->control, 1, NULL, 0);
    }
    c.argument[fn->args[i]] = arg;
  }
  TFC_TRY(s, tfc_graph_topological(fn->body, order));
  for (size_t i = 0; i < n; i++) {
    const struct tfc_node *node = &fn->body->nodes[order[i]];
    if (tfc_output_valid(c.argument[order[i]]) || tfc_node_role(node) == TFC_ROLE_RESULT) continue;
    TFC_TRY(s, copy_node(l, at, fn, &c, order[i]));
  }
  TFC_TRY(s, close_back_edges(l, &c));
  for (uint32_t i = 0; i < fn->ret_count; i++) {
    struct tfc_output in = tfc_node_inputs(fn->body, &fn->body->nodes[fn->rets[i]])[0];
    if (!map_output(&c, in, &results[i])) TFC_FAIL(s, TFC_INTERNAL, "result %u of a function is nowhere", i);
  }
  // Nodes that must have run before the call ends: those that the function names; if it names none, all stateful nodes.
  for (uint32_t i = 0; i < fn->control_ret_count; i++)
    if (c.first[fn->control_rets[i]] != TFC_NONE) controls[control_count++] = c.first[fn->control_rets[i]];
  for (size_t i = 0; i < n && !fn->control_ret_count; i++) {
    const struct tfc_op_def *def = fn->body->nodes[i].def;
    if (def && (def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE)) && c.first[i] != TFC_NONE &&
        !(def->flags & TFC_OP_VARIABLE))
      controls[control_count++] = c.first[i];
  }
  out->results = results;
  out->result_count = fn->ret_count;
  out->done = TFC_NONE;
  if (control_count)
    out->done = tfc_lowering_add(l, at, "NoOp", "done", NULL, 0, controls, control_count, NULL, 0).node;
  s = tfc_status_clone(tfc_builder_status(l->b));
out:
  free(c.first);
  free(c.argument);
  free(order);
  free(controls);
  return tfc_status_annotate(s, "function '%.*s'", TFC_STR_ARG(fn->name));
}
tfc_status tfc_lowering_inline_call(struct tfc_lowering *l, const struct tfc_call_site *at, tfc_str function,
                                    struct tfc_inlined *out) {
  const struct tfc_function *fn = tfc_graph_function(l->library, function);
  if (!fn) return tfc_status_make(TFC_INVALID_ARGUMENT, "there is no function '%.*s'", TFC_STR_ARG(function));
  if (!fn->body)
    return tfc_status_make(TFC_UNIMPLEMENTED, "function '%.*s': %.*s", TFC_STR_ARG(function), TFC_STR_ARG(fn->problem));
  return tfc_lowering_inline(l, at, fn, out);
}
