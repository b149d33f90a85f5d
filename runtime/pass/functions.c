// Functions and functional control flow, lowered: a call becomes its body's nodes, If and Case become Switch and Merge,
// While becomes a frame. The calling node itself stays, with its id, name and outputs, as an Identity of the results (a
// NoOp where there are none), so that nobody who names it notices; it runs after everything that the body must run.
//
// What has no inputs in a body gets a control input that ties it to the branch or the iteration that it belongs to.
// Lowering goes on with the nodes that it adds, to a limit: a function that calls itself stays a call there.
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/pass/frames.h"
#include "runtime/pass/functions.h"
#include "runtime/pass/pass.h"

enum { depth_limit = 48, node_limit = 1 << 22 };

struct lowering {
  struct tfc_builder *b;
  const struct tfc_graph *library;
  TFC_ARRAY(uint32_t) origin; // by node of the builder
  TFC_ARRAY(uint8_t) depth;
  TFC_ARRAY(uint32_t) caller;
  bool *recursive;        // by function
  TFC_ARRAY(bool) inside; // of a loop or a branch: nodes without inputs have to be tied to it
  TFC_ARRAY(bool) steady; // computed from what a loop does not change: alive in the iteration that ends it, too
};

static tfc_status out_of_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
}

// What a call gives: one output per result, and a node after which everything in it has run (or TFC_NO_NODE).
struct inlined {
  struct tfc_output *results;
  uint32_t done;
};

// The caller's view of one call.
struct site {
  uint32_t caller; // node of the builder
  tfc_str name;    // prefix of the body's nodes
  tfc_str device;  // for nodes without one
  const struct tfc_output *args;
  uint32_t arg_count;
  uint32_t control;             // what runs before anything in it, or TFC_NO_NODE
  bool strict;                  // parameters wait for `control` too
  bool inside;                  // the caller is in a loop or a branch
  const struct tfc_attr *attrs; // of a polymorphic call
  uint32_t attr_count;
  uint32_t made_from; // > 0: the body's nodes from this id on are no function's in the file, and all go with this call
};

static struct tfc_output add_node(struct lowering *l, const struct site *at, const char *op, const char *suffix,
                                  const struct tfc_output *inputs, uint32_t count, const uint32_t *controls,
                                  uint32_t control_count, const struct tfc_attr *attrs, uint32_t attr_count) {
  tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/%s", TFC_STR_ARG(at->name), suffix);
  uint32_t id = tfc_builder_add(l->b, &(struct tfc_node_spec){.op = op,
                                                              .name = name.data,
                                                              .inputs = inputs,
                                                              .input_count = count,
                                                              .controls = controls,
                                                              .control_count = control_count,
                                                              .attrs = attrs,
                                                              .attr_count = attr_count,
                                                              .device = at->device});
  return (struct tfc_output){id, 0};
}

// --- What a loop does not change -------------------------------------------------------------------------------------
static void set_steady(struct lowering *l, uint32_t id) {
  size_t count = l->steady.count;
  if (id >= count && !tfc_array_resize(&l->steady, (size_t)id + 1)) {
    tfc_builder_fail(l->b, out_of_memory());
    return;
  }
  for (size_t i = count; i < id; i++) l->steady.data[i] = false;
  l->steady.data[id] = true;
}

static bool is_steady(const struct lowering *l, struct tfc_output o) {
  if (o.node < l->steady.count && l->steady.data[o.node]) return true;
  const struct tfc_attr *constant = tfc_builder_attr(l->b, o.node, "is_constant");
  return constant && constant->b && tfc_str_ends(tfc_builder_node(l->b, o.node)->op, "Enter");
}

// A node that lives and dies with the inputs of a call.
static uint32_t pivot_of(const struct lowering *l, const struct site *at) {
  for (uint32_t i = 0; i < at->arg_count; i++)
    if (!is_steady(l, at->args[i])) return at->args[i].node;
  return at->arg_count ? at->args[0].node : TFC_NO_NODE;
}

// Would the node do something in the iteration that ends the loop?
static bool acts_when_over(const struct lowering *l, const struct tfc_node *n, const struct tfc_output *inputs) {
  bool call = !n->def || tfc_str_ends(n->op, "Call"), all = true, any = false;
  if (n->def && !(n->def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_FUNCTIONAL))) return false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    bool steady = is_steady(l, inputs[k]);
    all &= steady;
    any |= steady;
  }
  return all || (any && !call && n->def->flags & TFC_OP_FUNCTIONAL); // a branch or a loop goes by single inputs
}

// --- Attributes of a body's node at this call ------------------------------------------------------------------------
static const struct tfc_attr *find(const struct tfc_attr *attrs, uint32_t count, tfc_str name) {
  for (uint32_t i = 0; i < count; i++)
    if (tfc_str_equal(attrs[i].name, name)) return &attrs[i];
  return NULL;
}

// Colocation with nodes of the body means their copies; with parameters it means nothing here.
static tfc_status rename_class(struct lowering *l, const struct site *at, const struct tfc_graph *body,
                               struct tfc_attr *a) {
  struct tfc_arena *arena = tfc_builder_arena(l->b);
  tfc_str *names = TFC_ARENA_ARRAY(arena, tfc_str, (size_t)a->count + 1);
  uint32_t n = 0;
  if (!names) return out_of_memory();
  for (uint32_t i = 0; i < a->count; i++) {
    tfc_str s = a->strings[i];
    if (tfc_str_starts(s, "loc:@")) {
      tfc_str target = tfc_str_sub(s, 5, s.size);
      uint32_t id = tfc_graph_find(body, target);
      if (id == TFC_NO_NODE || tfc_str_is(body->nodes[id].op, "_Arg")) continue;
      s = tfc_arena_printf(arena, "loc:@%.*s/%.*s", TFC_STR_ARG(at->name), TFC_STR_ARG(target));
      if (!s.data) return out_of_memory();
    }
    names[n++] = s;
  }
  a->strings = names;
  a->count = n;
  return NULL;
}

static tfc_status copy_attrs(struct lowering *l, const struct site *at, const struct tfc_function *fn,
                             const struct tfc_node *n, struct tfc_attr **out, uint32_t *out_count) {
  bool made = at->made_from && n >= fn->body->nodes + at->made_from;
  struct tfc_arena *arena = tfc_builder_arena(l->b);
  const struct tfc_attr *from = fn->body->attrs + n->attr_begin;
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(arena, struct tfc_attr, (size_t)n->attr_count + 1);
  if (!attrs) return out_of_memory();
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
      if (!a.s.data) return out_of_memory();
    }
    attrs[count++] = a;
  }
  if (!made) {
    attrs[count] = (struct tfc_attr){.name = TFC_STR("_tfc_key"), .kind = TFC_ATTR_STRING};
    attrs[count].s = tfc_arena_printf(arena, "function/%.*s:%.*s", TFC_STR_ARG(fn->name), TFC_STR_ARG(n->name));
    if (!attrs[count++].s.data) return out_of_memory();
  }
  *out = attrs;
  *out_count = count;
  return NULL;
}

// --- One call --------------------------------------------------------------------------------------------------------
struct copying {
  const struct tfc_graph *body;
  uint32_t *first;             // body node → builder node of its outputs, TFC_NO_NODE: not yet
  struct tfc_output *argument; // body _Arg node → what it is
};

static bool map_output(const struct copying *c, struct tfc_output o, struct tfc_output *out) {
  if (tfc_output_valid(c->argument[o.node])) {
    *out = c->argument[o.node];
    return true;
  }
  if (c->first[o.node] == TFC_NO_NODE) return false;
  *out = (struct tfc_output){c->first[o.node], o.index};
  return true;
}

static tfc_status copy_node(struct lowering *l, const struct site *at, const struct tfc_function *fn, struct copying *c,
                            uint32_t id) {
  tfc_status s = NULL;
  const struct tfc_graph *body = c->body;
  const struct tfc_node *n = &body->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(body, n);
  struct tfc_attr *attrs = NULL;
  uint32_t attr_count = 0, control_count = 0;
  struct tfc_output *inputs = calloc((size_t)n->input_count + 1, sizeof *inputs);
  uint32_t *controls = calloc((size_t)n->control_count + 2, sizeof *controls);
  char *op = tfc_str_dup(n->op);
  if (!inputs || !controls || !op) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  TFC_TRY(s, copy_attrs(l, at, fn, n, &attrs, &attr_count));
  struct tfc_output any = TFC_NO_OUTPUT;
  for (uint32_t k = 0; k < n->input_count; k++)
    if (map_output(c, in[k], &inputs[k])) any = inputs[k];
  for (uint32_t k = 0; k < n->input_count; k++) // the back edge of a loop is closed when it is there
    if (!map_output(c, in[k], &inputs[k])) inputs[k] = any;
  for (uint32_t k = n->input_count; k < n->input_count + n->control_count; k++) {
    if (tfc_output_valid(c->argument[in[k].node])) {
      controls[control_count++] = c->argument[in[k].node].node;
    } else if (c->first[in[k].node] != TFC_NO_NODE) {
      controls[control_count++] = c->first[in[k].node];
    }
  }
  bool all_steady = n->input_count && !control_count;
  for (uint32_t k = 0; k < n->input_count && all_steady; k++) all_steady = is_steady(l, inputs[k]);
  if (at->control != TFC_NO_NODE && ((!n->input_count && !control_count) || acts_when_over(l, n, inputs))) {
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
  if (all_steady) set_steady(l, c->first[id]);
  s = tfc_status_clone(tfc_builder_status(l->b));
out:
  free(inputs);
  free(controls);
  free(op);
  return s;
}

static tfc_status close_back_edges(struct lowering *l, const struct copying *c) {
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

static tfc_status inline_function(struct lowering *l, const struct site *at, const struct tfc_function *fn,
                                  struct inlined *out) {
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
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  for (size_t i = 0; i < n; i++) c.first[i] = TFC_NO_NODE, c.argument[i] = TFC_NO_OUTPUT;
  for (uint32_t i = 0; i < fn->arg_count; i++) {
    struct tfc_output arg = at->args[i];
    if (at->strict && at->control != TFC_NO_NODE) {
      tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "arg_%u", i);
      arg = add_node(l, at, "Identity", name.data, &arg, 1, &at->control, 1, NULL, 0);
    }
    c.argument[fn->args[i]] = arg;
  }
  TFC_TRY(s, tfc_graph_topological(fn->body, order));
  for (size_t i = 0; i < n; i++) {
    const struct tfc_node *node = &fn->body->nodes[order[i]];
    if (tfc_output_valid(c.argument[order[i]]) || tfc_str_is(node->op, "_Retval")) continue;
    TFC_TRY(s, copy_node(l, at, fn, &c, order[i]));
  }
  TFC_TRY(s, close_back_edges(l, &c));
  for (uint32_t i = 0; i < fn->ret_count; i++) {
    struct tfc_output in = tfc_node_inputs(fn->body, &fn->body->nodes[fn->rets[i]])[0];
    if (!map_output(&c, in, &results[i])) TFC_FAIL(s, TFC_INTERNAL, "result %u of a function is nowhere", i);
  }
  // What must have run when the call is over: what the function names; else whatever has a state.
  for (uint32_t i = 0; i < fn->control_ret_count; i++)
    if (c.first[fn->control_rets[i]] != TFC_NO_NODE) controls[control_count++] = c.first[fn->control_rets[i]];
  for (size_t i = 0; i < n && !fn->control_ret_count; i++) {
    const struct tfc_op_def *def = fn->body->nodes[i].def;
    if (def && (def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE)) && c.first[i] != TFC_NO_NODE &&
        !(def->flags & TFC_OP_VARIABLE))
      controls[control_count++] = c.first[i];
  }
  out->results = results;
  out->done = TFC_NO_NODE;
  if (control_count) out->done = add_node(l, at, "NoOp", "done", NULL, 0, controls, control_count, NULL, 0).node;
  s = tfc_status_clone(tfc_builder_status(l->b));
out:
  free(c.first);
  free(c.argument);
  free(order);
  free(controls);
  return tfc_status_annotate(s, "function '%.*s'", TFC_STR_ARG(fn->name));
}
static tfc_status inline_call(struct lowering *l, const struct site *at, tfc_str function, struct inlined *out) {
  const struct tfc_function *fn = tfc_graph_function(l->library, function);
  if (!fn) return tfc_status_make(TFC_INVALID_ARGUMENT, "there is no function '%.*s'", TFC_STR_ARG(function));
  if (!fn->body)
    return tfc_status_make(TFC_UNIMPLEMENTED, "function '%.*s': %.*s", TFC_STR_ARG(function), TFC_STR_ARG(fn->problem));
  return inline_function(l, at, fn, out);
}

// --- The calling node ------------------------------------------------------------------------------------------------
// Makes it an Identity of the results, behind its own control inputs and `done`.
static tfc_status settle(struct lowering *l, uint32_t id, const struct tfc_output *results, uint32_t done) {
  const struct tfc_node *n = tfc_builder_node(l->b, id);
  uint32_t outputs = n->output_count, count = 0;
  uint32_t *controls = calloc((size_t)n->control_count + 2, sizeof *controls);
  if (!controls) return out_of_memory();
  for (uint32_t k = 0; k < n->control_count; k++)
    controls[count++] = tfc_builder_input(l->b, id, n->input_count + k).node;
  if (done != TFC_NO_NODE) controls[count++] = done;
  const struct tfc_attr *kept[1] = {tfc_builder_attr(l->b, id, "_tfc_key")};
  tfc_builder_replace(l->b, id,
                      &(struct tfc_node_spec){.op = !outputs       ? "NoOp"
                                                    : outputs == 1 ? "Identity"
                                                                   : "IdentityN",
                                              .name = "lowered",
                                              .inputs = results,
                                              .input_count = outputs,
                                              .controls = controls,
                                              .control_count = count,
                                              .attrs = kept[0],
                                              .attr_count = kept[0] ? 1 : 0});
  free(controls);
  return tfc_status_clone(tfc_builder_status(l->b));
}

// What the caller waits for, as one node; TFC_NO_NODE when it waits for nothing.
static uint32_t caller_control(struct lowering *l, const struct site *at) {
  const struct tfc_node *n = tfc_builder_node(l->b, at->caller);
  uint32_t inputs = n->input_count, count = n->control_count;
  if (!count) return TFC_NO_NODE;
  uint32_t *controls = calloc(count, sizeof *controls);
  if (!controls) {
    tfc_builder_fail(l->b, out_of_memory());
    return TFC_NO_NODE;
  }
  for (uint32_t k = 0; k < count; k++) controls[k] = tfc_builder_input(l->b, at->caller, inputs + k).node;
  uint32_t id = add_node(l, at, "NoOp", "begin", NULL, 0, controls, count, NULL, 0).node;
  free(controls);
  return id;
}

static tfc_status func_attr(struct lowering *l, uint32_t id, const char *name, const struct tfc_func_attr **out) {
  const struct tfc_attr *a = tfc_builder_attr(l->b, id, name);
  if (!a || a->kind != TFC_ATTR_FUNC) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' is missing", name);
  *out = a->func;
  return NULL;
}

static tfc_status lower_call(struct lowering *l, struct site *at, tfc_str function) {
  struct inlined body;
  at->control = caller_control(l, at);
  at->strict = at->control != TFC_NO_NODE;
  if (!at->strict && at->inside) at->control = pivot_of(l, at);
  TFC_RETURN_IF_ERROR(inline_call(l, at, function, &body));
  return settle(l, at->caller, body.results, body.done);
}

// A constant in the frame and the branch that `x` is in.
static struct tfc_output near(struct lowering *l, struct tfc_output constant, struct tfc_output x) {
  if (tfc_output_valid(constant) && tfc_output_valid(x)) tfc_builder_add_control(l->b, constant.node, x.node);
  return constant;
}

// A bool from TensorFlow's truth of a scalar.
static tfc_status truth(struct lowering *l, const struct site *at, struct tfc_output x, struct tfc_output *out) {
  tfc_dtype type = tfc_builder_dtype(l->b, x);
  *out = x;
  if (type == TFC_BOOL) return NULL;
  if (!tfc_dtype_is_integer(type) && !tfc_dtype_is_floating(type))
    return tfc_status_make(TFC_UNIMPLEMENTED, "a condition of type %s", tfc_dtype_name(type));
  struct tfc_output zero = near(l, tfc_add_scalar(l->b, type, 0), x);
  *out = add_node(l, at, "NotEqual", "truth", (struct tfc_output[]){x, zero}, 2, NULL, 0, NULL, 0);
  return NULL;
}

// One branch, alive when `pred` is `side`: its parameters pass a Switch, everything else waits for the pivot.
static tfc_status lower_branch(struct lowering *l, const struct site *at, const char *name, struct tfc_output pred,
                               int32_t side, uint32_t begin, const struct tfc_func_attr *func, struct inlined *out) {
  tfc_status s = NULL;
  struct site branch = *at;
  struct tfc_output *args = calloc((size_t)at->arg_count + 1, sizeof *args);
  uint32_t controls = begin != TFC_NO_NODE;
  if (!args) return out_of_memory();
  branch.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/%s", TFC_STR_ARG(at->name), name);
  struct tfc_output pivot =
      add_node(l, &branch, "Switch", "switch_pred", (struct tfc_output[]){pred, pred}, 2, &begin, controls, NULL, 0);
  pivot.index = side;
  branch.control = add_node(l, &branch, "Identity", "pivot", &pivot, 1, NULL, 0, NULL, 0).node;
  for (uint32_t i = 0; i < at->arg_count; i++) {
    args[i] = add_node(l, &branch, "Switch", "switch", (struct tfc_output[]){at->args[i], pred}, 2, &begin, controls,
                       NULL, 0);
    args[i].index = side;
  }
  branch.args = args;
  branch.strict = false;
  branch.attrs = func->attrs;
  branch.attr_count = func->attr_count;
  TFC_TRY(s, inline_call(l, &branch, func->name, out));
  // A node that says the branch is over, alive with it.
  uint32_t waits[2] = {branch.control, out->done};
  out->done =
      add_node(l, &branch, "Identity", "over", &pivot, 1, waits, out->done == TFC_NO_NODE ? 1 : 2, NULL, 0).node;
out:
  free(args);
  return s;
}

static tfc_status merge_branches(struct lowering *l, const struct site *at, const struct inlined *branches,
                                 uint32_t count) {
  tfc_status s = NULL;
  uint32_t outputs = tfc_builder_node(l->b, at->caller)->output_count;
  struct tfc_output *merged = calloc((size_t)outputs + 1, sizeof *merged), *in = calloc((size_t)count + 1, sizeof *in);
  if (!merged || !in) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  for (uint32_t i = 0; i < outputs; i++) {
    for (uint32_t k = 0; k < count; k++) in[k] = branches[k].results[i];
    merged[i] = add_node(l, at, "Merge", "merge", in, count, NULL, 0, NULL, 0);
  }
  for (uint32_t k = 0; k < count; k++) in[k] = (struct tfc_output){branches[k].done, 0};
  uint32_t over = add_node(l, at, "Merge", "over", in, count, NULL, 0, NULL, 0).node;
  s = tfc_status_clone(tfc_builder_status(l->b));
  if (!s) s = settle(l, at->caller, merged, over);
out:
  free(merged);
  free(in);
  return s;
}

static tfc_status lower_if(struct lowering *l, struct site *at) {
  const struct tfc_func_attr *then_func = NULL, *else_func = NULL;
  struct inlined branches[2];
  struct tfc_output pred = at->args[0];
  TFC_RETURN_IF_ERROR(func_attr(l, at->caller, "then_branch", &then_func));
  TFC_RETURN_IF_ERROR(func_attr(l, at->caller, "else_branch", &else_func));
  TFC_RETURN_IF_ERROR(truth(l, at, pred, &pred));
  uint32_t begin = caller_control(l, at);
  at->args++;
  at->arg_count--;
  TFC_RETURN_IF_ERROR(lower_branch(l, at, "else", pred, 0, begin, else_func, &branches[0]));
  TFC_RETURN_IF_ERROR(lower_branch(l, at, "then", pred, 1, begin, then_func, &branches[1]));
  return merge_branches(l, at, branches, 2);
}

static tfc_status lower_case(struct lowering *l, struct site *at) {
  tfc_status s = NULL;
  const struct tfc_attr *list = tfc_builder_attr(l->b, at->caller, "branches");
  if (!list || list->kind != TFC_ATTR_LIST_FUNC || !list->count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute 'branches' is missing");
  uint32_t n = list->count, begin = caller_control(l, at);
  const struct tfc_func_attr *funcs = list->funcs;
  struct inlined *branches = calloc(n, sizeof *branches);
  if (!branches) return out_of_memory();
  // An index outside means the last branch.
  struct tfc_output index = at->args[0];
  struct tfc_output zero = near(l, tfc_add_i32(l->b, 0), index);
  struct tfc_output last = near(l, tfc_add_i32(l->b, (int32_t)n - 1), index);
  struct tfc_output below = tfc_add2(l->b, "Less", index, zero);
  index = tfc_add2(l->b, "Minimum", tfc_add3(l->b, "SelectV2", below, last, index), last);
  at->args++;
  at->arg_count--;
  for (uint32_t k = 0; k < n; k++) {
    tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "branch_%u", k);
    struct tfc_output pred = tfc_add2(l->b, "Equal", index, near(l, tfc_add_i32(l->b, (int32_t)k), index));
    TFC_TRY(s, lower_branch(l, at, name.data, pred, 1, begin, &funcs[k], &branches[k]));
  }
  s = merge_branches(l, at, branches, n);
out:
  free(branches);
  return s;
}

// Result i of the body is parameter i itself: the loop does not change it.
static bool is_invariant(const struct tfc_function *body, uint32_t i) {
  struct tfc_output in = tfc_node_inputs(body->body, &body->body->nodes[body->rets[i]])[0];
  return in.node == body->args[i];
}

static tfc_status lower_while(struct lowering *l, struct site *at) {
  tfc_status s = NULL;
  const struct tfc_func_attr *cond = NULL, *body = NULL;
  TFC_RETURN_IF_ERROR(func_attr(l, at->caller, "cond", &cond));
  TFC_RETURN_IF_ERROR(func_attr(l, at->caller, "body", &body));
  const struct tfc_function *fn = tfc_graph_function(l->library, body->name);
  const struct tfc_function *test = tfc_graph_function(l->library, cond->name);
  uint32_t n = at->arg_count, begin = caller_control(l, at), pivot = TFC_NO_NODE, variables = 0;
  if (!fn || !fn->body || !test || !test->body || fn->ret_count != n || fn->arg_count != n || !test->ret_count)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a loop whose body is missing or does not fit");
  const struct tfc_attr *parallel = tfc_builder_attr(l->b, at->caller, "parallel_iterations");
  struct tfc_output *memory = calloc(5 * ((size_t)n + 1), sizeof *memory);
  if (!memory) return out_of_memory();
  struct tfc_output *merges = memory, *switches = merges + n + 1, *inside = switches + n + 1, *exits = inside + n + 1;
  struct tfc_attr attrs[] = {
      tfc_attr_string("frame_name", at->name), tfc_attr_bool("is_constant", false),
      tfc_attr_int("parallel_iterations", parallel && parallel->kind == TFC_ATTR_INT ? parallel->i : 10)};
  for (uint32_t i = 0; i < n; i++) {
    bool invariant = is_invariant(fn, i);
    attrs[1].b = invariant;
    struct tfc_output enter =
        add_node(l, at, "Enter", "enter", &at->args[i], 1, &begin, begin != TFC_NO_NODE, attrs, 3);
    if (invariant) set_steady(l, enter.node);
    merges[i] =
        invariant ? enter : add_node(l, at, "Merge", "merge", (struct tfc_output[]){enter, enter}, 2, NULL, 0, NULL, 0);
    variables += !invariant;
    if (!invariant && pivot == TFC_NO_NODE) pivot = merges[i].node;
  }
  if (!variables) TFC_FAIL(s, TFC_UNIMPLEMENTED, "a loop that changes nothing");
  struct site part = *at;
  struct inlined result;
  part.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/cond", TFC_STR_ARG(at->name));
  part.args = merges;
  part.control = pivot;
  part.strict = false;
  part.attrs = cond->attrs, part.attr_count = cond->attr_count;
  TFC_TRY(s, inline_call(l, &part, cond->name, &result));
  struct tfc_output condition;
  TFC_TRY(s, truth(l, &part, result.results[0], &condition));
  condition =
      add_node(l, at, "LoopCond", "loop_cond", &condition, 1, &result.done, result.done != TFC_NO_NODE, NULL, 0);
  uint32_t body_pivot = TFC_NO_NODE;
  for (uint32_t i = 0; i < n; i++) {
    inside[i] = merges[i];
    if (is_invariant(fn, i)) continue;
    switches[i] = add_node(l, at, "Switch", "switch", (struct tfc_output[]){merges[i], condition}, 2, NULL, 0, NULL, 0);
    struct tfc_output taken = {switches[i].node, 1};
    inside[i] = add_node(l, at, "Identity", "in", &taken, 1, NULL, 0, NULL, 0);
    if (body_pivot == TFC_NO_NODE) body_pivot = inside[i].node;
  }
  part.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/body", TFC_STR_ARG(at->name));
  part.args = inside;
  part.control = body_pivot;
  part.attrs = body->attrs, part.attr_count = body->attr_count;
  TFC_TRY(s, inline_call(l, &part, body->name, &result));
  for (uint32_t i = 0; i < n; i++) {
    exits[i] = at->args[i];
    if (is_invariant(fn, i)) continue;
    struct tfc_output next = add_node(l, at, "NextIteration", "next", &result.results[i], 1, &result.done,
                                      result.done != TFC_NO_NODE, NULL, 0);
    tfc_builder_set_input(l->b, merges[i].node, 1, next);
    exits[i] = add_node(l, at, "Exit", "exit", &switches[i], 1, NULL, 0, NULL, 0);
  }
  s = tfc_status_clone(tfc_builder_status(l->b));
  // The loop is over when any of its variables has left it.
  uint32_t over = TFC_NO_NODE;
  for (uint32_t i = 0; i < n && over == TFC_NO_NODE; i++)
    if (!is_invariant(fn, i)) over = exits[i].node;
  if (!s) s = settle(l, at->caller, exits, over);
out:
  free(memory);
  return s;
}

// In a loop or a branch: what is built there as a whole is tied to it like any other body.
static tfc_status lower_gradient_inside(struct lowering *l, struct site *at, const struct tfc_function *fn) {
  struct tfc_function made = {0};
  struct inlined body;
  TFC_RETURN_IF_ERROR(tfc_function_gradient(fn, &made));
  at->control = caller_control(l, at);
  at->strict = at->control != TFC_NO_NODE;
  if (!at->strict) at->control = pivot_of(l, at);
  at->made_from = fn->body->node_count;
  tfc_status s = inline_function(l, at, &made, &body);
  if (!s) s = settle(l, at->caller, body.results, body.done);
  tfc_graph_release(made.body);
  free((void *)(uintptr_t)made.args);
  return s;
}

// f(x..., dy...) of a function with inputs x: the gradients of the xs.
static tfc_status lower_symbolic_gradient(struct lowering *l, struct site *at) {
  tfc_status s = NULL;
  const struct tfc_func_attr *f = NULL;
  struct inlined body;
  TFC_RETURN_IF_ERROR(func_attr(l, at->caller, "f", &f));
  const struct tfc_function *fn = tfc_graph_function(l->library, f->name);
  uint32_t outputs = tfc_builder_node(l->b, at->caller)->output_count;
  if (fn && fn->gradient.size) return lower_call(l, at, fn->gradient);
  if (!fn || fn->arg_count + fn->ret_count != at->arg_count || outputs != fn->arg_count)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of function '%.*s'", TFC_STR_ARG(f->name));
  if (at->inside && fn->body) {
    at->attrs = f->attrs, at->attr_count = f->attr_count;
    return lower_gradient_inside(l, at, fn);
  }
  struct site forward = *at;
  struct tfc_output *xs = calloc(2 * (size_t)fn->arg_count + 2, sizeof *xs),
                    *grads = xs ? xs + fn->arg_count + 1 : NULL;
  if (!xs) return out_of_memory();
  for (uint32_t i = 0; i < fn->arg_count; i++)
    xs[i] = add_node(l, at, "Identity", "x", &at->args[i], 1, NULL, 0, NULL, 0);
  forward.args = xs;
  forward.arg_count = fn->arg_count;
  forward.control = caller_control(l, at);
  forward.attrs = f->attrs, forward.attr_count = f->attr_count;
  TFC_TRY(s, inline_call(l, &forward, f->name, &body));
  TFC_TRY(s,
          tfc_builder_gradients(l->b, body.results, fn->ret_count, xs, fn->arg_count, at->args + fn->arg_count, grads));
  for (uint32_t i = 0; i < fn->arg_count; i++)
    if (!tfc_output_valid(grads[i])) grads[i] = tfc_add1(l->b, "ZerosLike", xs[i]);
  s = settle(l, at->caller, grads, body.done);
out:
  free(xs);
  return s;
}

// Has the body an op that tfc does not know? Such a call stays: perhaps no step needs it.
static bool body_is_known(const struct lowering *l, tfc_str name) {
  const struct tfc_function *fn = tfc_graph_function(l->library, name);
  const struct tfc_graph *owner = l->library->library ? l->library->library : l->library;
  if (!fn || !fn->body || (l->recursive && l->recursive[fn - owner->functions])) return false;
  for (uint32_t i = 0; i < fn->body->node_count; i++)
    if (!fn->body->nodes[i].def && fn->body->nodes[i].function == TFC_NO_NODE) return false;
  return true;
}

static bool can_lower(const struct lowering *l, uint32_t id) {
  static const char *const names[] = {"f", "then_branch", "else_branch", "cond", "body", "branches"};
  const struct tfc_node *n = tfc_builder_node(l->b, id);
  if (!n->def) return body_is_known(l, n->op);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const struct tfc_attr *a = tfc_builder_attr(l->b, id, names[i]);
    if (a && a->kind == TFC_ATTR_FUNC && !body_is_known(l, a->func->name)) return false;
    for (uint32_t k = 0; a && a->kind == TFC_ATTR_LIST_FUNC && k < a->count; k++)
      if (!body_is_known(l, a->funcs[k].name)) return false;
  }
  return true;
}

static tfc_status lower_node(struct lowering *l, uint32_t id, bool inside) {
  tfc_status s = NULL;
  const struct tfc_node n = *tfc_builder_node(l->b, id);
  struct tfc_output *args = calloc((size_t)n.input_count + 1, sizeof *args);
  if (!args) return out_of_memory();
  for (uint32_t k = 0; k < n.input_count; k++) args[k] = tfc_builder_input(l->b, id, k);
  struct site at = {.caller = id,
                    .name = n.name,
                    .device = n.device,
                    .args = args,
                    .arg_count = n.input_count,
                    .inside = inside,
                    .control = TFC_NO_NODE};
  const struct tfc_func_attr *f = NULL;
  if (!n.def) {
    s = lower_call(l, &at, n.op);
  } else if (tfc_str_ends(n.op, "PartitionedCall")) {
    s = func_attr(l, id, "f", &f);
    if (!s) at.attrs = f->attrs, at.attr_count = f->attr_count;
    if (!s) s = lower_call(l, &at, f->name);
  } else if (tfc_str_is(n.op, "RemoteCall") && n.input_count) {
    s = func_attr(l, id, "f", &f);
    at.args++, at.arg_count--;
    if (!s) s = lower_call(l, &at, f->name);
  } else if ((tfc_str_is(n.op, "If") || tfc_str_is(n.op, "StatelessIf")) && n.input_count) {
    s = lower_if(l, &at);
  } else if ((tfc_str_is(n.op, "Case") || tfc_str_is(n.op, "StatelessCase")) && n.input_count) {
    s = lower_case(l, &at);
  } else if (tfc_str_is(n.op, "While") || tfc_str_is(n.op, "StatelessWhile")) {
    s = lower_while(l, &at);
  } else if (tfc_str_is(n.op, "SymbolicGradient")) {
    s = lower_symbolic_gradient(l, &at);
  }
  free(args);
  return tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n.name), TFC_STR_ARG(n.op));
}

tfc_status tfc_builder_lower(struct tfc_builder *b, uint32_t id, bool inside) {
  struct lowering l = {.library = tfc_builder_base(b), .b = b};
  const struct tfc_node *n = tfc_builder_node(b, id);
  if (!l.library || !can_lower(&l, id))
    return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s' (%.*s) calls a function that is missing or has unknown ops",
                           TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  tfc_status s = lower_node(&l, id, inside);
  tfc_array_free(&l.steady);
  return s;
}

// --- Functions that call themselves ----------------------------------------------------------------------------------
struct calls {
  const struct tfc_graph *owner;
  uint8_t *state; // 0: not seen, 1: being walked, 2: done
  bool *recursive;
};

static void walk_name(struct calls *c, tfc_str name, uint32_t depth);
static void walk_attr(struct calls *c, const struct tfc_attr *a, uint32_t depth) {
  if (a->kind == TFC_ATTR_FUNC) walk_name(c, a->func->name, depth);
  for (uint32_t i = 0; a->kind == TFC_ATTR_LIST_FUNC && i < a->count; i++) walk_name(c, a->funcs[i].name, depth);
}
static void walk_name(struct calls *c, tfc_str name, uint32_t depth) {
  const struct tfc_function *fn = tfc_graph_function(c->owner, name);
  if (!fn || !fn->body) return;
  size_t at = (size_t)(fn - c->owner->functions);
  if (c->state[at] == 1 || depth > 1000) c->recursive[at] = true;
  if (c->state[at]) return;
  c->state[at] = 1;
  for (uint32_t i = 0; i < fn->body->node_count; i++) {
    const struct tfc_node *n = &fn->body->nodes[i];
    if (!n->def) walk_name(c, n->op, depth + 1);
    for (uint32_t k = 0; k < n->attr_count; k++) walk_attr(c, &fn->body->attrs[n->attr_begin + k], depth + 1);
  }
  c->state[at] = 2;
}

static tfc_status find_recursive(struct lowering *l, const struct tfc_graph *g) {
  struct calls c = {.owner = g->library ? g->library : g};
  c.state = calloc(c.owner->function_count + 1u, sizeof *c.state);
  c.recursive = l->recursive = calloc(c.owner->function_count + 1u, sizeof *c.recursive);
  if (!c.state || !c.recursive) {
    free(c.state);
    return out_of_memory();
  }
  for (uint32_t i = 0; i < c.owner->function_count; i++) walk_name(&c, c.owner->functions[i].name, 0);
  free(c.state);
  return NULL;
}

// --- The whole -------------------------------------------------------------------------------------------------------
// Which nodes of the graph are in a loop or a branch.
static tfc_status find_inside(struct lowering *l, const struct tfc_graph *g) {
  struct tfc_frames frames = {0};
  if (!tfc_array_resize(&l->inside, g->node_count)) return out_of_memory();
  bool any = false;
  for (uint32_t i = 0; i < g->node_count && !any; i++)
    any = g->nodes[i].def && g->nodes[i].def->flags & (TFC_OP_SWITCH | TFC_OP_ENTER);
  if (!any) return NULL;
  TFC_RETURN_IF_ERROR(tfc_frames_find(g, &frames));
  for (uint32_t i = 0; i < g->node_count; i++) l->inside.data[i] = tfc_frames_is_inside(g, &frames, i);
  tfc_frames_deinit(&frames);
  return NULL;
}

tfc_status tfc_lower_functions(const struct tfc_graph *g, struct tfc_graph **out, uint32_t **out_origin) {
  tfc_status s = NULL;
  struct lowering l = {.library = g};
  struct tfc_graph *lowered = NULL;
  TFC_TRY(s, tfc_builder_create(g, &l.b));
  if (!tfc_array_resize(&l.origin, g->node_count) || !tfc_array_resize(&l.depth, g->node_count))
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  for (uint32_t i = 0; i < g->node_count; i++) l.origin.data[i] = i;
  TFC_TRY(s, find_inside(&l, g));
  TFC_TRY(s, find_recursive(&l, g));
  if (!tfc_array_resize(&l.caller, g->node_count))
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  for (uint32_t i = 0; i < g->node_count; i++) l.caller.data[i] = g->caller ? g->caller[i] : TFC_NO_NODE;
  for (uint32_t id = 0; id < tfc_builder_node_count(l.b); id++) {
    const struct tfc_node *n = tfc_builder_node(l.b, id);
    bool functional = n->def ? (n->def->flags & TFC_OP_FUNCTIONAL) != 0 : n->function != TFC_NO_NODE;
    if (!functional || l.depth.data[id] >= depth_limit || !can_lower(&l, id)) continue;
    bool inside = l.inside.data[id], call = !n->def || tfc_str_ends(n->op, "Call");
    TFC_TRY(s, lower_node(&l, id, inside));
    size_t count = tfc_builder_node_count(l.b), before = l.origin.count;
    if (count > node_limit) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "functions become more than %d nodes", node_limit);
    if (!tfc_array_resize(&l.origin, count) || !tfc_array_resize(&l.depth, count) ||
        !tfc_array_resize(&l.inside, count) || !tfc_array_resize(&l.caller, count))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
    for (size_t i = before; i < count; i++) {
      l.origin.data[i] = l.origin.data[id];
      l.depth.data[i] = (uint8_t)(l.depth.data[id] + 1);
      l.inside.data[i] = inside || !call;
      l.caller.data[i] = id;
    }
  }
  TFC_TRY(s, tfc_builder_finish(l.b, &lowered));
  uint32_t *caller = TFC_ARENA_ARRAY(&lowered->arena, uint32_t, lowered->node_count + 1u);
  if (!caller) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: lowering functions");
  memcpy(caller, l.caller.data, lowered->node_count * sizeof *caller);
  lowered->caller = caller;
  lowered->file_nodes = tfc_graph_file_nodes(g);
  *out = lowered;
  lowered = NULL;
  if (out_origin) {
    *out_origin = l.origin.data;
    l.origin.data = NULL;
  }
out:
  tfc_builder_free(l.b);
  tfc_array_free(&l.origin);
  tfc_array_free(&l.depth);
  tfc_array_free(&l.inside);
  tfc_array_free(&l.steady);
  tfc_array_free(&l.caller);
  free(l.recursive);
  tfc_graph_release(lowered);
  return s;
}

tfc_status tfc_lower_loaded(struct tfc_graph **graph) {
  struct tfc_graph *lowered = NULL;
  bool calls = false;
  for (uint32_t i = 0; i < (*graph)->node_count && !calls; i++) {
    const struct tfc_node *n = &(*graph)->nodes[i];
    calls = n->def ? (n->def->flags & TFC_OP_FUNCTIONAL) != 0 : n->function != TFC_NO_NODE;
  }
  if (!calls) return NULL;
  tfc_status s = tfc_lower_functions(*graph, &lowered, NULL);
  if (tfc_status_code(s) == TFC_INVALID_ARGUMENT || tfc_status_code(s) == TFC_UNIMPLEMENTED) {
    tfc_status_free(s); // a broken call, perhaps of no step: whoever runs it hears of it
    return NULL;
  }
  if (s) return s;
  tfc_graph_release(*graph);
  *graph = lowered;
  return NULL;
}
