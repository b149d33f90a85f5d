// Lowers functions and functional control flow: a call becomes its body's nodes, If and Case become Switch and Merge,
// While becomes a frame. The calling node itself stays, with its id, name and outputs, as an Identity of the results (a
// NoOp if there are none), so that fetches, targets and consumers need not change; it runs after everything that the
// body must run.
//
// Nodes that lowering adds are lowered too, up to a limit: beyond it, a function that calls itself stays a call.
#include <stdlib.h>

#include "runtime/base/interrupt.h"
#include "runtime/base/sandbox.h"
#include "runtime/graph/library.h"
#include "runtime/pass/frames.h"
#include "runtime/pass/function_gradient.h"
#include "runtime/pass/functions_internal.h"
#include "runtime/pass/pass.h"

enum { depth_limit = 48, node_limit = 1 << 20 };

// Returns the most nodes that functions may be lowered to; an untrusted graph may have fewer.
static uint64_t most_nodes(void) {
  return tfc_untrusted_nodes() < node_limit ? tfc_untrusted_nodes() : node_limit;
}

static tfc_status lower_call(struct tfc_lowering *l, struct tfc_call_site *at, tfc_str function) {
  struct tfc_inlined body;
  at->control = tfc_lowering_control(l, at);
  at->strict = at->control != TFC_NONE;
  if (!at->strict && at->inside) at->control = tfc_lowering_pivot(l, at);
  TFC_RETURN_IF_ERROR(tfc_lowering_inline_call(l, at, function, &body));
  TFC_RETURN_IF_ERROR(tfc_lowering_check(l, at->caller, function, body.results, body.result_count));
  return tfc_lowering_settle(l, at->caller, body.results, body.done, false);
}

// For a call in a loop or a branch: the gradient is built as a function, whose body then gets a control edge from the
// caller's control input, like any other body.
static tfc_status lower_gradient_inside(struct tfc_lowering *l, struct tfc_call_site *at,
                                        const struct tfc_function *fn) {
  struct tfc_function made = {0};
  struct tfc_inlined body;
  TFC_RETURN_IF_ERROR(tfc_function_gradient(l->gradients, fn, &made));
  at->control = tfc_lowering_control(l, at);
  at->strict = at->control != TFC_NONE;
  if (!at->strict) at->control = tfc_lowering_pivot(l, at);
  at->made_from = fn->body->node_count;
  tfc_status s = tfc_lowering_inline(l, at, &made, &body);
  if (!s) s = tfc_lowering_check(l, at->caller, fn->name, body.results, body.result_count);
  if (!s) s = tfc_lowering_settle(l, at->caller, body.results, body.done, false);
  tfc_graph_release(made.body);
  free((void *)(uintptr_t)made.args);
  return s;
}

// Lowers the gradient f(x..., dy...) of a function with inputs x to the gradients of the xs.
static tfc_status lower_symbolic_gradient(struct tfc_lowering *l, struct tfc_call_site *at) {
  tfc_status s = NULL;
  const struct tfc_func_attr *f = NULL;
  struct tfc_inlined body;
  TFC_RETURN_IF_ERROR(tfc_lowering_func(l, at->caller, "f", &f));
  const struct tfc_function *fn = tfc_graph_function(l->library, f->name);
  uint32_t outputs = tfc_builder_node(l->b, at->caller)->output_count;
  if (fn && fn->gradient.size) return lower_call(l, at, fn->gradient);
  if (!fn || fn->arg_count + fn->ret_count != at->arg_count || outputs != fn->arg_count)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of function '%.*s'", TFC_STR_ARG(f->name));
  if (at->inside && fn->body) {
    at->attrs = f->attrs, at->attr_count = f->attr_count;
    return lower_gradient_inside(l, at, fn);
  }
  struct tfc_call_site forward = *at;
  struct tfc_output *xs = calloc(2 * (size_t)fn->arg_count + 2, sizeof *xs),
                    *grads = xs ? xs + fn->arg_count + 1 : NULL;
  if (!xs) return tfc_status_no_memory("lowering functions");
  for (uint32_t i = 0; i < fn->arg_count; i++)
    xs[i] = tfc_lowering_add(l, at, "Identity", "x", &at->args[i], 1, NULL, 0, NULL, 0);
  forward.args = xs;
  forward.arg_count = fn->arg_count;
  forward.control = tfc_lowering_control(l, at);
  forward.attrs = f->attrs, forward.attr_count = f->attr_count;
  TFC_TRY(s, tfc_lowering_inline_call(l, &forward, f->name, &body));
  TFC_TRY(s, l->gradients(l->b, body.results, fn->ret_count, xs, fn->arg_count, at->args + fn->arg_count, grads));
  for (uint32_t i = 0; i < fn->arg_count; i++)
    if (!tfc_output_valid(grads[i])) grads[i] = tfc_add1(l->b, "ZerosLike", xs[i]);
  TFC_TRY(s, tfc_lowering_check(l, at->caller, f->name, grads, fn->arg_count));
  s = tfc_lowering_settle(l, at->caller, grads, body.done, false);
out:
  free(xs);
  return s;
}

// Whether the body has an op that tfc does not know. Such a call stays a call, because it is possible that no step
// needs it.
static bool body_is_known(const struct tfc_lowering *l, tfc_str name) {
  const struct tfc_function *fn = tfc_graph_function(l->library, name);
  const struct tfc_graph *owner = l->library->library ? l->library->library : l->library;
  if (!fn || !fn->body || (l->recursive && l->recursive[fn - owner->functions])) return false;
  for (uint32_t i = 0; i < fn->body->node_count; i++)
    if (!fn->body->nodes[i].def && fn->body->nodes[i].function == TFC_NONE) return false;
  return true;
}

// Computes how many nodes a call stands for, before the first node is made: in a file of a few lines, functions that
// call each other twice can stand for more nodes than any machine can hold.
static tfc_status check_size(const struct tfc_lowering *l, uint32_t id, uint64_t *total) {
  static const char *const names[] = {"f", "then_branch", "else_branch", "cond", "body", "branches"};
  const struct tfc_node *n = tfc_builder_node(l->b, id);
  const struct tfc_graph *owner = l->library->library ? l->library->library : l->library;
  uint64_t nodes = 0, most = 0;
  const struct tfc_function *largest = NULL;
  for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
    const bool direct = i == sizeof names / sizeof *names;
    const struct tfc_attr *a = direct ? NULL : tfc_builder_attr(l->b, id, names[i]);
    const uint32_t count = direct                          ? !n->def
                           : !a                            ? 0
                           : a->kind == TFC_ATTR_FUNC      ? 1
                           : a->kind == TFC_ATTR_LIST_FUNC ? a->count
                                                           : 0;
    for (uint32_t k = 0; k < count; k++) {
      const struct tfc_function *fn = tfc_graph_function(l->library, direct                     ? n->op
                                                                     : a->kind == TFC_ATTR_FUNC ? a->func->name
                                                                                                : a->funcs[k].name);
      if (!fn) continue;
      const uint64_t expanded = l->expanded[fn - owner->functions];
      if (!largest || expanded > most) most = expanded, largest = fn;
      if (__builtin_add_overflow(nodes, expanded, &nodes)) nodes = UINT64_MAX;
    }
  }
  if (__builtin_add_overflow(*total, nodes, total)) *total = UINT64_MAX;
  if (*total <= most_nodes()) return NULL;
  return tfc_status_make(
      TFC_OUT_OF_RANGE,
      "node '%.*s' (%.*s): with function '%.*s' and what that calls the graph becomes more than %llu "
      "nodes, the most that tfc takes",
      TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), TFC_STR_ARG(largest->name), (unsigned long long)most_nodes());
}

static bool can_lower(const struct tfc_lowering *l, uint32_t id) {
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

static tfc_status lower_node(struct tfc_lowering *l, uint32_t id, bool inside) {
  tfc_status s = NULL;
  const struct tfc_node n = *tfc_builder_node(l->b, id);
  struct tfc_output *args = calloc((size_t)n.input_count + 1, sizeof *args);
  if (!args) return tfc_status_no_memory("lowering functions");
  for (uint32_t k = 0; k < n.input_count; k++) args[k] = tfc_builder_input(l->b, id, k);
  struct tfc_call_site at = {.caller = id,
                             .name = n.name,
                             .device = n.device,
                             .args = args,
                             .arg_count = n.input_count,
                             .inside = inside,
                             .control = TFC_NONE};
  const struct tfc_func_attr *f = NULL;
  if (!n.def) {
    s = lower_call(l, &at, n.op);
  } else if (n.def->role == TFC_ROLE_CALL) {
    s = tfc_lowering_func(l, id, "f", &f);
    if (!s) at.attrs = f->attrs, at.attr_count = f->attr_count;
    if (!s) s = lower_call(l, &at, f->name);
  } else if (n.def->role == TFC_ROLE_REMOTE_CALL && n.input_count) {
    s = tfc_lowering_func(l, id, "f", &f);
    at.args++, at.arg_count--;
    if (!s) s = lower_call(l, &at, f->name);
  } else if (n.def->role == TFC_ROLE_IF && n.input_count) {
    s = tfc_lowering_if(l, &at);
  } else if (n.def->role == TFC_ROLE_CASE && n.input_count) {
    s = tfc_lowering_case(l, &at);
  } else if (n.def->role == TFC_ROLE_WHILE) {
    s = tfc_lowering_while(l, &at);
  } else if (n.def->role == TFC_ROLE_SYMBOLIC_GRADIENT) {
    s = lower_symbolic_gradient(l, &at);
  }
  free(args);
  return tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n.name), TFC_STR_ARG(n.op));
}

tfc_status tfc_builder_lower(struct tfc_builder *b, tfc_gradients_fn *gradients, uint32_t id, bool inside) {
  struct tfc_lowering l = {.library = tfc_builder_base(b), .b = b, .gradients = gradients};
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
  // A chain of more than 1,000 calls is cut, because this recursion must not overflow the stack: the function behind
  // the cut is not inlined, like a recursive one.
  if (c->state[at] == 1 || depth > 1000) c->recursive[at] = true;
  if (c->state[at] || depth > 1000) return;
  c->state[at] = 1;
  for (uint32_t i = 0; i < fn->body->node_count; i++) {
    const struct tfc_node *n = &fn->body->nodes[i];
    if (!n->def) walk_name(c, n->op, depth + 1);
    for (uint32_t k = 0; k < n->attr_count; k++) walk_attr(c, &fn->body->attrs[n->attr_begin + k], depth + 1);
  }
  c->state[at] = 2;
}

static tfc_status find_recursive(struct tfc_lowering *l, const struct tfc_graph *g) {
  struct calls c = {.owner = g->library ? g->library : g};
  c.state = calloc(c.owner->function_count + 1u, sizeof *c.state);
  c.recursive = l->recursive = calloc(c.owner->function_count + 1u, sizeof *c.recursive);
  if (!c.state || !c.recursive) {
    free(c.state);
    return tfc_status_no_memory("lowering functions");
  }
  for (uint32_t i = 0; i < c.owner->function_count; i++) walk_name(&c, c.owner->functions[i].name, 0);
  free(c.state);
  l->expanded = calloc(c.owner->function_count + 1u, sizeof *l->expanded);
  return l->expanded ? tfc_library_measure(c.owner, l->expanded) : tfc_status_no_memory("lowering functions");
}

// --- Lowering all calls of a graph -----------------------------------------------------------------------------------
// Finds which nodes of the graph are in a loop or a branch.
static tfc_status find_inside(struct tfc_lowering *l, const struct tfc_graph *g) {
  struct tfc_frames frames = {0};
  if (!tfc_array_resize(&l->inside, g->node_count)) return tfc_status_no_memory("lowering functions");
  bool any = false;
  for (uint32_t i = 0; i < g->node_count && !any; i++)
    any = g->nodes[i].def && g->nodes[i].def->flags & (TFC_OP_SWITCH | TFC_OP_ENTER);
  if (!any) return NULL;
  TFC_RETURN_IF_ERROR(tfc_frames_find(g, &frames));
  for (uint32_t i = 0; i < g->node_count; i++) l->inside.data[i] = tfc_frames_is_inside(g, &frames, i);
  tfc_frames_deinit(&frames);
  return NULL;
}

// Whether output `index` of the node is its input `index`, as of a node that called a loop (tfc_lowering_settle). The
// attribute TFC_LOWERED_LOOP does not say so: a file may have it at any node.
static bool hands_on(const struct tfc_node *n, int32_t index) {
  const tfc_op_role role = tfc_node_role(n);
  return index >= 0 && (uint32_t)index < n->input_count && (role == TFC_ROLE_IDENTITY || role == TFC_ROLE_SPREAD);
}

bool tfc_lowered_result(const struct tfc_graph *g, struct tfc_output o, struct tfc_output *out) {
  const struct tfc_node *n = &g->nodes[o.node];
  if (!hands_on(n, o.index) || !tfc_node_attr_bool(g, n, TFC_LOWERED_LOOP, false)) return false;
  *out = tfc_node_inputs(g, n)[o.index];
  return true;
}

// Makes the readers of a lowered loop's results read them where they leave the loop, and not from the node that called
// the loop: so a variable of a loop runs only if a step needs it. (A gradient uses few of the dozens of lists onto
// which its loop pushes.) All results become alive or dead together, after the loop, so readers need not wait for the
// calling node.
static void read_results(struct tfc_builder *b) {
  const uint32_t count = tfc_builder_node_count(b);
  for (uint32_t id = 0; id < count; id++) {
    const uint32_t inputs = tfc_builder_node(b, id)->input_count;
    for (uint32_t k = 0; k < inputs; k++) {
      const struct tfc_output o = tfc_builder_input(b, id, k);
      if (hands_on(tfc_builder_node(b, o.node), o.index) && tfc_builder_attr(b, o.node, TFC_LOWERED_LOOP))
        tfc_builder_set_input(b, id, k, tfc_builder_input(b, o.node, (uint32_t)o.index));
    }
  }
}

tfc_status tfc_lower_all(const struct tfc_graph *g, tfc_gradients_fn *gradients, struct tfc_graph **out,
                         uint32_t **out_origin) {
  tfc_status s = NULL;
  struct tfc_lowering l = {.library = g, .gradients = gradients};
  struct tfc_graph *lowered = NULL;
  TFC_TRY(s, tfc_builder_create(g, &l.b));
  if (!tfc_array_resize(&l.origin, g->node_count) || !tfc_array_resize(&l.depth, g->node_count))
    TFC_TRY(s, tfc_status_no_memory("lowering functions"));
  for (uint32_t i = 0; i < g->node_count; i++) l.origin.data[i] = i;
  TFC_TRY(s, find_inside(&l, g));
  TFC_TRY(s, find_recursive(&l, g));
  if (!tfc_array_resize(&l.caller, g->node_count)) TFC_TRY(s, tfc_status_no_memory("lowering functions"));
  for (uint32_t i = 0; i < g->node_count; i++) l.caller.data[i] = g->caller ? g->caller[i] : TFC_NONE;
  uint64_t total = g->node_count;
  for (uint32_t id = 0; id < g->node_count; id++) {
    const struct tfc_node *n = &g->nodes[id];
    bool functional = n->def ? (n->def->flags & TFC_OP_FUNCTIONAL) != 0 : n->function != TFC_NONE;
    if (functional) TFC_TRY(s, check_size(&l, id, &total));
  }
  for (uint32_t id = 0; id < tfc_builder_node_count(l.b); id++) {
    const struct tfc_node *n = tfc_builder_node(l.b, id);
    bool functional = n->def ? (n->def->flags & TFC_OP_FUNCTIONAL) != 0 : n->function != TFC_NONE;
    if (!functional || l.depth.data[id] >= depth_limit || !can_lower(&l, id)) continue;
    bool inside = l.inside.data[id], call = tfc_lowering_is_call(n);
    TFC_TRY(s, lower_node(&l, id, inside));
    size_t count = tfc_builder_node_count(l.b), before = l.origin.count;
    if (count > most_nodes()) // gradients of functions and control flow add nodes that were not counted before
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s': functions become more than %llu nodes, the most that tfc takes",
               TFC_STR_ARG(g->nodes[l.origin.data[id]].name), (unsigned long long)most_nodes());
    if (!tfc_array_resize(&l.origin, count) || !tfc_array_resize(&l.depth, count) ||
        !tfc_array_resize(&l.inside, count) || !tfc_array_resize(&l.caller, count))
      TFC_TRY(s, tfc_status_no_memory("lowering functions"));
    for (size_t i = before; i < count; i++) {
      l.origin.data[i] = l.origin.data[id];
      l.depth.data[i] = (uint8_t)(l.depth.data[id] + 1);
      l.inside.data[i] = inside || !call;
      l.caller.data[i] = id;
    }
  }
  read_results(l.b);
  TFC_TRY(s, tfc_builder_finish(l.b, &lowered));
  uint32_t *caller = TFC_ARENA_ARRAY(&lowered->arena, uint32_t, lowered->node_count + 1u);
  if (!caller) TFC_TRY(s, tfc_status_no_memory("lowering functions"));
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
  free(l.expanded);
  tfc_graph_release(lowered);
  return s;
}
