// Finds the sums of loops: a Merge whose only reader is a Switch, whose only reader in the body is an addition of a
// product (dynamic/sums.c), whose only reader is the Merge's next iteration. Uses the loops' lists, in which edges lead
// past nodes that only pass a value on.
#include "runtime/exec/dynamic/dynamic.h"

// The only edge that leaves output `output` of a node in the lists; NULL: there are several, or none.
static const struct tfc_dedge *only_edge(const struct tfc_dynamic *d, const struct tfc_dnode *n, int32_t output) {
  const struct tfc_dedge *found = NULL;
  for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
    if (d->edges[e].output != output) continue;
    if (found) return NULL;
    found = &d->edges[e];
  }
  return found;
}
// A node of the graph is known by where its inputs begin, in its copies, too.
static struct tfc_dnode *copy_of(struct tfc_dnode *list, uint32_t count, const struct tfc_dnode *n) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i].input_begin == n->input_begin && list[i].kind == n->kind) return &list[i];
  return NULL;
}
static bool adds_product(const struct tfc_dnode *n) {
  return n->kind == TFC_DNODE_OP && (n->def == &tfc_add_product_def || n->def == &tfc_add_n_product_def);
}

// The addition that makes the next value of the variable that enters the body by this Switch; NULL: the variable is no
// such sum.
static struct tfc_dnode *addition_of(const struct tfc_dynamic *d, const struct tfc_dloop *loop,
                                     const struct tfc_dnode *by) {
  const struct tfc_dedge *in = only_edge(d, by, 1);
  if (!in || in->slot != 0 || !adds_product(&d->nodes[in->to])) return NULL;
  struct tfc_dnode *sum = copy_of(loop->body, loop->body_count, &d->nodes[in->to]);
  const struct tfc_dedge *next = sum ? only_edge(d, sum, 0) : NULL;
  if (!next || d->nodes[next->to].kind != TFC_DNODE_MERGE) return NULL;
  const struct tfc_dnode *merge = copy_of(loop->before, loop->before_count, &d->nodes[next->to]);
  const struct tfc_dedge *out = merge ? only_edge(d, merge, 0) : NULL;
  return out && out->value == by->input_begin ? sum : NULL;
}

tfc_status tfc_dynamic_find_loop_sums(struct tfc_dynamic *d, const struct tfc_graph *g, struct tfc_arena *arena) {
  for (uint32_t f = 1; f < d->frame_count; f++) {
    struct tfc_dloop *loop = d->frames[f].loop;
    for (uint32_t i = 0; loop && i < loop->body_count; i++) {
      const struct tfc_dnode *by = &loop->body[i];
      struct tfc_dnode *sum = by->kind == TFC_DNODE_SWITCH ? addition_of(d, loop, by) : NULL;
      if (!sum) continue;
      if (!loop->sums) loop->sums = TFC_ARENA_ARRAY(arena, struct tfc_dsum, loop->body_count);
      if (!loop->sums) return tfc_status_no_memory("planning a step");
      const struct tfc_node *product = &g->nodes[d->segments[sum->device].ops[sum->kernel].node];
      loop->sums[loop->sum_count++] =
          (struct tfc_dsum){.value = by->input_begin,
                            .transpose_a = tfc_node_attr_bool(g, product, "transpose_a", false),
                            .transpose_b = tfc_node_attr_bool(g, product, "transpose_b", false)};
      sum->gathers = loop->sum_count;
    }
  }
  return NULL;
}
