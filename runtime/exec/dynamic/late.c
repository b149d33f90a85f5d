// Finds operations of a dynamic plan that should start later than they could, because until another operation is ready
// their results would only occupy memory:
//
// - Operations that only updates of variables read and that depend on variables and constants alone (the old average of
//   an optimizer, scaled) run when nothing else is left, unless an update of what they read could come first.
// - A large tensor that is computed from small ones (the zeros that a loop adds gradients to) waits for the last of the
//   other inputs of its only reader.
#include <stdlib.h>

#include "runtime/exec/dynamic/dynamic.h"

enum { LARGE = 64 << 10, RATIO = 16, MOST_VARIABLES = 8 };

struct finder {
  const struct tfc_build *b;
  struct tfc_dynamic *d;
  const struct tfc_dedge *edges;
  const uint32_t *sources; // [edges] dnode that the edge leaves
  uint32_t edge_count;
  uint32_t *in_begin, *in; // CSR: the edges that lead to each dnode
  uint32_t *out_begin, *out;
  uint32_t *level; // [nodes] length of the longest path to the node, without back edges of loops
};

static tfc_status list_edges(const struct finder *f, bool incoming, uint32_t **out_begin, uint32_t **out) {
  uint32_t n = f->d->node_count, *begin = calloc(n + 2u, sizeof *begin), *list = malloc((f->edge_count + 1u) * 4u);
  *out_begin = begin, *out = list;
  if (!begin || !list) return tfc_status_no_memory("planning a step");
  for (uint32_t e = 0; e < f->edge_count; e++) begin[(incoming ? f->edges[e].to : f->sources[e]) + 2]++;
  for (uint32_t i = 1; i <= n; i++) begin[i + 1] += begin[i];
  for (uint32_t e = 0; e < f->edge_count; e++) list[begin[(incoming ? f->edges[e].to : f->sources[e]) + 1]++] = e;
  return NULL;
}

static bool goes_back(const struct tfc_dnode *n) {
  return n->def && n->def->flags & TFC_OP_NEXT_ITERATION;
}

static tfc_status find_levels(struct finder *f) {
  uint32_t n = f->d->node_count, depth = 0;
  uint32_t *waits = calloc(n + 1u, sizeof *waits), *stack = malloc((n + 1u) * sizeof *stack);
  f->level = calloc(n + 1u, sizeof *f->level);
  tfc_status s = NULL;
  if (!waits || !stack || !f->level) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t e = 0; e < f->edge_count; e++)
    if (!goes_back(&f->d->nodes[f->sources[e]])) waits[f->edges[e].to]++;
  for (uint32_t i = 0; i < n; i++)
    if (waits[i] == 0) stack[depth++] = i;
  while (depth) {
    uint32_t from = stack[--depth];
    for (uint32_t k = f->out_begin[from]; k < f->out_begin[from + 1]; k++) {
      uint32_t to = f->edges[f->out[k]].to;
      if (goes_back(&f->d->nodes[from])) continue;
      if (f->level[to] <= f->level[from]) f->level[to] = f->level[from] + 1;
      if (--waits[to] == 0) stack[depth++] = to;
    }
  }
out:
  free(waits);
  free(stack);
  return s;
}

// Whether the operation has no effect except its outputs, and these do not depend on when it runs.
static bool is_pure(const struct tfc_dnode *n) {
  return n->kind == TFC_DNODE_OP && !n->is_async && !n->direct && !n->node_state && !n->reference_inputs &&
         !(n->def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_FUNCTIONAL | TFC_OP_VIEW | TFC_OP_CHECKS));
}

static bool is_update(const struct tfc_dnode *n) {
  return n->kind == TFC_DNODE_OP && n->def->flags & TFC_OP_UPDATE;
}

// --- Operations that only updates read -----------------------------------------------------------------------------
static bool reads(const struct finder *f, uint32_t node, uint32_t source) {
  for (uint32_t k = f->in_begin[node]; k < f->in_begin[node + 1]; k++)
    if (f->sources[f->in[k]] == source) return true;
  return false;
}

// Whether `node` comes after `first`, by one edge or by two.
static bool is_after(const struct finder *f, uint32_t node, uint32_t first) {
  for (uint32_t k = f->in_begin[node]; k < f->in_begin[node + 1]; k++) {
    uint32_t source = f->sources[f->in[k]];
    if (source == first || reads(f, source, first)) return true;
  }
  return false;
}

// Whether all nodes that get a reference to the variable, directly or through other such nodes, come after `first`.
static bool updates_come_after(const struct finder *f, const struct tfc_variable *variable, uint32_t first) {
  for (uint32_t i = 0; i < f->d->node_count; i++) {
    if (f->d->nodes[i].kind != TFC_DNODE_VARIABLE || f->d->nodes[i].variable != variable) continue;
    for (uint32_t k = f->out_begin[i]; k < f->out_begin[i + 1]; k++) {
      uint32_t to = f->edges[f->out[k]].to;
      const struct tfc_dnode *n = &f->d->nodes[to];
      // This reader takes the value, not the reference, so it cannot write.
      if (f->edges[f->out[k]].output < 0 || (!n->keeps_reference && !n->reference_inputs)) continue;
      if (!is_after(f, to, first)) return false;
    }
  }
  return true;
}

// Whether `node` only passes on the value of a variable (*out) or of a constant (*out NULL).
static bool is_value_of(const struct finder *f, uint32_t node, const struct tfc_variable **out) {
  const struct tfc_dnode *n = &f->d->nodes[node];
  *out = NULL;
  if (n->kind == TFC_DNODE_CONST) return true;
  // A read of a resource variable, which copies the value when it runs.
  if (n->kind == TFC_DNODE_OP) return n->def->role == TFC_ROLE_READ;
  if (n->kind == TFC_DNODE_PASS && n->input_count == 1 && f->in_begin[node + 1] - f->in_begin[node] == 1)
    n = &f->d->nodes[f->sources[f->in[f->in_begin[node]]]];
  *out = n->kind == TFC_DNODE_VARIABLE ? n->variable : NULL;
  return *out != NULL;
}

static bool is_before_updates(const struct finder *f, uint32_t node) {
  const struct tfc_dnode *n = &f->d->nodes[node];
  const struct tfc_variable *variables[MOST_VARIABLES], *v;
  uint32_t count = 0;
  if (!is_pure(n) || n->input_count == 0 || n->input_count > MOST_VARIABLES ||
      f->out_begin[node] == f->out_begin[node + 1])
    return false;
  for (uint32_t k = f->out_begin[node]; k < f->out_begin[node + 1]; k++)
    if (!is_update(&f->d->nodes[f->edges[f->out[k]].to])) return false;
  for (uint32_t k = f->in_begin[node]; k < f->in_begin[node + 1]; k++) {
    if (f->edges[f->in[k]].output < 0) continue;
    if (!is_value_of(f, f->sources[f->in[k]], &v)) return false;
    if (v) variables[count++] = v;
  }
  for (uint32_t i = 0; i < count; i++)
    if (!updates_come_after(f, variables[i], node)) return false;
  return true;
}

// --- Large tensors with one reader ---------------------------------------------------------------------------------
static uint64_t bytes_of(const struct finder *f, struct tfc_output o) { // 0: not known
  size_t bytes = 0;
  const struct tfc_shape *shape =
      &f->b->ground->shapes.shapes[f->b->graph->nodes[o.node].output_begin + (uint32_t)o.index];
  tfc_dtype dtype = tfc_dtype_base(tfc_output_dtype(f->b->graph, o));
  if (!tfc_shape_is_static(shape) || !tfc_dtype_is_plain(dtype)) return 0;
  tfc_status s = tfc_tensor_bytes(dtype, shape, &bytes);
  tfc_status_free(s);
  return s ? 0 : bytes;
}

// Whether the output is large, and computed only from constants and small integers.
static bool is_made_of_little(const struct finder *f, uint32_t node) {
  const struct tfc_dnode *n = &f->d->nodes[node];
  if (n->def == &tfc_dynamic_chain_def || n->input_count != f->b->graph->nodes[n->node].input_count)
    return false; // it computes other nodes, too
  if (!is_pure(n) || n->output_count != 1 || f->out_begin[node + 1] - f->out_begin[node] != 1) return false;
  uint64_t bytes = bytes_of(f, (struct tfc_output){n->node, 0});
  if (bytes < LARGE) return false;
  const struct tfc_graph *g = f->b->graph;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct tfc_output o = tfc_node_inputs(g, &g->nodes[n->node])[k];
    uint64_t in = bytes_of(f, o);
    if (in == 0 || in > bytes / RATIO || tfc_dtype_is_ref(tfc_output_dtype(g, o))) return false;
    if (!tfc_dtype_is_integer(tfc_output_dtype(g, o)) && tfc_node_role(&g->nodes[o.node]) != TFC_ROLE_CONST)
      return false;
  }
  for (uint32_t i = 0; i < f->b->spec->target_count; i++)
    if (f->b->spec->targets[i] == n->node) return false;
  return true;
}

// Finds the input that the only reader of `node` gets last; TFC_NONE: no input comes later than `node` could.
static uint32_t last_beside(const struct finder *f, uint32_t node) {
  const struct tfc_dedge *edge = &f->edges[f->out[f->out_begin[node]]];
  const struct tfc_dnode *reader = &f->d->nodes[edge->to];
  uint32_t found = TFC_NONE, level = f->level[node] + 1;
  if (edge->output < 0 || reader->kind == TFC_DNODE_MERGE || goes_back(reader)) return TFC_NONE;
  for (uint32_t k = f->in_begin[edge->to]; k < f->in_begin[edge->to + 1]; k++) {
    uint32_t source = f->sources[f->in[k]];
    const struct tfc_dnode *n = &f->d->nodes[source];
    if (f->edges[f->in[k]].output < 0 || source == node || f->level[source] <= level) continue;
    if (n->kind == TFC_DNODE_OP || n->is_exit) found = source, level = f->level[source];
  }
  return found;
}

tfc_status tfc_dynamic_find_late(const struct tfc_build *b, struct tfc_dynamic *d, const struct tfc_dedge *edges,
                                 const uint32_t *sources, uint32_t edge_count, uint32_t *after) {
  tfc_status s = NULL;
  struct finder f = {.b = b, .d = d, .edges = edges, .sources = sources, .edge_count = edge_count};
  TFC_TRY(s, list_edges(&f, true, &f.in_begin, &f.in));
  TFC_TRY(s, list_edges(&f, false, &f.out_begin, &f.out));
  for (uint32_t i = 0; i < d->node_count; i++) {
    struct tfc_dnode *n = &d->nodes[i];
    after[i] = TFC_NONE;
    if (n->kind != TFC_DNODE_OP) continue;
    n->turn = is_update(n) ? TFC_TURN_UPDATE : is_before_updates(&f, i) ? TFC_TURN_LAST : TFC_TURN_ANY;
    if (!is_made_of_little(&f, i)) continue;
    if (!f.level) TFC_TRY(s, find_levels(&f));
    after[i] = last_beside(&f, i);
  }
out:
  free(f.in_begin);
  free(f.in);
  free(f.out_begin);
  free(f.out);
  free(f.level);
  return s;
}
