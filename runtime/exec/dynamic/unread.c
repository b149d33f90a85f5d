// Finds stacks from which only shapes are used: a gradient often needs only the shape of a value. Pushes onto such
// stacks keep only shapes, so that the value itself is freed after its last reader.
#include <stdlib.h>

#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/ops/data_stack.h"

struct finder {
  struct tfc_dynamic *d;
  const struct tfc_graph *g;
  const struct tfc_session *session;
  bool *seen;
  uint32_t *todo, *pushes; // [nodes]
};

static bool is_op(const struct tfc_dnode *n, tfc_op_role role) {
  return n->kind == TFC_DNODE_OP && n->def->role == role;
}
static bool on_host(const struct finder *f, const struct tfc_dnode *n) {
  return f->session->devices[n->device]->info.address_space == 0;
}

static bool reads_shape(const struct finder *f, const struct tfc_dnode *n) {
  return is_op(n, TFC_ROLE_OF_SHAPE) && on_host(f, n);
}

static bool is_read(const struct finder *f, const struct tfc_dnode *pop) {
  for (uint32_t e = pop->edge_begin; e < pop->edge_end; e++)
    if (f->d->edges[e].output >= 0 && !reads_shape(f, &f->d->nodes[f->d->edges[e].to])) return true;
  return !on_host(f, pop);
}

// Whether all readers of the stack's handle are known, and no popped value is read. Adds its pushes to `pushes`.
static bool is_unread(const struct finder *f, uint32_t stack, uint32_t *out_count) {
  uint32_t depth = 0, count = 0;
  memset(f->seen, 0, f->d->node_count * sizeof *f->seen);
  f->todo[depth++] = stack;
  while (depth) {
    const struct tfc_dnode *n = &f->d->nodes[f->todo[--depth]];
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
      const struct tfc_dedge *edge = &f->d->edges[e];
      const struct tfc_dnode *to = &f->d->nodes[edge->to];
      if (edge->output < 0 || f->seen[edge->to]) continue;
      f->seen[edge->to] = true;
      if (to->kind == TFC_DNODE_PASS)
        f->todo[depth++] = edge->to;
      else if (is_op(to, TFC_ROLE_PUSH) && edge->slot == 0 && on_host(f, to))
        f->pushes[count++] = edge->to;
      else if (!(is_op(to, TFC_ROLE_POP) && !is_read(f, to)) && !is_op(to, TFC_ROLE_STACK_CLOSE))
        return false;
    }
  }
  *out_count = count;
  return true;
}

tfc_status tfc_dynamic_find_unread(struct tfc_dynamic *d, const struct tfc_graph *g,
                                   const struct tfc_session *session) {
  tfc_status s = NULL;
  uint32_t n = d->node_count, count = 0;
  struct finder f = {.d = d, .g = g, .session = session};
  f.seen = malloc((n + 1u) * sizeof *f.seen);
  f.todo = malloc((n + 1u) * sizeof *f.todo);
  f.pushes = malloc((n + 1u) * sizeof *f.pushes);
  if (!f.seen || !f.todo || !f.pushes) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < n; i++) {
    if (!is_op(&d->nodes[i], TFC_ROLE_STACK) || d->nodes[i].keeps_reference || !on_host(&f, &d->nodes[i])) continue;
    if (!tfc_dtype_is_plain(tfc_node_attr_type(g, &g->nodes[d->nodes[i].node], "elem_type", TFC_DTYPE_NONE))) continue;
    if (!is_unread(&f, i, &count)) continue;
    for (uint32_t k = 0; k < count; k++) d->nodes[f.pushes[k]].def = &tfc_stack_push_shape_def;
  }
out:
  free(f.seen);
  free(f.todo);
  free(f.pushes);
  return s;
}
