// Finds lists from which only shapes are used: the body of a loop pushes values onto them, and the body of the
// gradient's loop pops these but uses only their shapes. When the first body's plan is made, all graphs exist, so all
// loops that run it can be examined.
#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/ops/data_list.h"

static bool is_loop(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_WHILE;
}
static bool reads_shape(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_OF_SHAPE;
}

static const struct tfc_function *function_of(const struct tfc_graph *library, const struct tfc_graph *g,
                                              const struct tfc_node *n, const char *attr) {
  const struct tfc_attr *a = tfc_node_attr(g, n, attr);
  const struct tfc_function *f = a && a->kind == TFC_ATTR_FUNC ? tfc_graph_function(library, a->func->name) : NULL;
  return f && f->body ? f : NULL;
}

// Finds the only reader of an output; TFC_NONE: there is none. False: there are several.
static bool one_reader(const struct tfc_graph *g, struct tfc_output o, uint32_t *out_node, uint32_t *out_slot) {
  *out_node = TFC_NONE;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_output *in = tfc_node_inputs(g, &g->nodes[i]);
    for (uint32_t k = 0; k < g->nodes[i].input_count; k++) {
      if (in[k].node != o.node || in[k].index != o.index) continue;
      if (*out_node != TFC_NONE) return false;
      *out_node = i, *out_slot = k;
    }
  }
  return true;
}
// Whether only identities read the output, and no other node reads theirs.
static bool is_unused(const struct tfc_graph *g, struct tfc_output o) {
  uint32_t node, slot;
  while (one_reader(g, o, &node, &slot)) {
    if (node == TFC_NONE) return true;
    if (tfc_node_role(&g->nodes[node]) != TFC_ROLE_IDENTITY) return false;
    o = (struct tfc_output){node, 0};
  }
  return false;
}

// Whether the only reader of argument `i` is an op of this role (*out_node), by its first input, whose output is
// result `i`.
static bool goes_through(const struct tfc_function *f, uint32_t i, tfc_op_role role, uint32_t *out_node) {
  uint32_t slot, result;
  if (i >= f->arg_count || i >= f->ret_count) return false;
  if (!one_reader(f->body, (struct tfc_output){f->args[i], 0}, out_node, &slot) || *out_node == TFC_NONE) return false;
  if (slot != 0 || tfc_node_role(&f->body->nodes[*out_node]) != role) return false;
  return one_reader(f->body, (struct tfc_output){*out_node, 0}, &result, &slot) && result == f->rets[i];
}

// Whether the loop `n` of `g` pops from its argument `i` in each iteration, and uses only shapes of what it pops.
static bool pops_shapes(const struct tfc_graph *library, const struct tfc_graph *g, uint32_t n, uint32_t i) {
  const struct tfc_node *loop = &g->nodes[n];
  uint32_t pop;
  if (!is_loop(loop) || !is_unused(g, (struct tfc_output){n, (int32_t)i})) return false;
  const struct tfc_function *condition = function_of(library, g, loop, "cond"),
                            *body = function_of(library, g, loop, "body");
  if (!condition || !body || i >= condition->arg_count) return false;
  if (!is_unused(condition->body, (struct tfc_output){condition->args[i], 0})) return false;
  if (!goes_through(body, i, TFC_ROLE_LIST_POP, &pop)) return false;
  for (uint32_t k = 0; k < body->body->node_count; k++) {
    const struct tfc_node *reader = &body->body->nodes[k];
    for (uint32_t slot = 0; slot < reader->input_count; slot++) {
      struct tfc_output o = tfc_node_inputs(body->body, reader)[slot];
      if (o.node == pop && o.index == 1 && !reads_shape(reader)) return false;
    }
  }
  return true;
}

static bool names(const struct tfc_attr *a, tfc_str function) {
  if (a->kind == TFC_ATTR_FUNC) return tfc_str_equal(a->func->name, function);
  for (uint32_t i = 0; a->kind == TFC_ATTR_LIST_FUNC && i < a->count; i++)
    if (tfc_str_equal(a->funcs[i].name, function)) return true;
  return false;
}

// Whether every user of `body` in `g` is a loop from whose result `i` only shapes are popped. *any: there is one.
static bool fits_in(const struct tfc_graph *library, const struct tfc_graph *g, const struct tfc_function *body,
                    uint32_t i, bool *any) {
  for (uint32_t k = 0; k < g->node_count; k++) {
    const struct tfc_node *n = &g->nodes[k];
    bool runs = tfc_str_equal(n->op, body->name);
    for (uint32_t a = 0; a < n->attr_count; a++) runs |= names(&g->attrs[n->attr_begin + a], body->name);
    if (!runs) continue;
    uint32_t reader, slot;
    const struct tfc_function *condition = function_of(library, g, n, "cond");
    if (!is_loop(n) || !condition || i >= condition->arg_count || function_of(library, g, n, "body") != body)
      return false;
    if (!is_unused(condition->body, (struct tfc_output){condition->args[i], 0})) return false;
    if (!one_reader(g, (struct tfc_output){k, (int32_t)i}, &reader, &slot) || reader == TFC_NONE) return false;
    if (!pops_shapes(library, g, reader, slot)) return false;
    *any = true;
  }
  return true;
}

static bool is_unread(const struct tfc_graph *main, const struct tfc_graph *library, const struct tfc_function *body,
                      uint32_t push) {
  bool any = false;
  uint32_t i = 0, node;
  while (i < body->arg_count && body->args[i] != tfc_node_inputs(body->body, &body->body->nodes[push])[0].node) i++;
  if (!goes_through(body, i, TFC_ROLE_LIST_PUSH, &node) || !fits_in(main, main, body, i, &any)) return false;
  for (uint32_t f = 0; f < library->function_count; f++)
    if (library->functions[f].body && !fits_in(main, library->functions[f].body, body, i, &any)) return false;
  return any;
}

void tfc_dynamic_find_unread_lists(struct tfc_dynamic *d, const struct tfc_graph *g,
                                   const struct tfc_session *session) {
  const struct tfc_graph *library = session->graph->library ? session->graph->library : session->graph;
  const struct tfc_function *body = NULL;
  for (uint32_t f = 0; f < library->function_count && !body; f++)
    if (library->functions[f].body == g) body = &library->functions[f];
  for (uint32_t i = 0; i < d->node_count && body; i++) {
    struct tfc_dnode *n = &d->nodes[i];
    if (n->kind != TFC_DNODE_OP || n->def->role != TFC_ROLE_LIST_PUSH) continue;
    if (session->device_count > 1 || session->devices[n->device]->info.address_space) continue;
    if (!tfc_dtype_is_plain(tfc_node_attr_type(g, &g->nodes[n->node], "element_dtype", TFC_DTYPE_NONE))) continue;
    if (is_unread(session->graph, library, body, n->node)) n->def = &tfc_list_push_shape_def;
  }
}
