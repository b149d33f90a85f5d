// Gradients of branches: the gradient of a Merge goes through a Switch to the branch that was taken. The gradients of a
// Switch's two outputs are merged, with zeros for a branch that did not use the tensor.
#include "runtime/pass/gradients_internal.h"

static bool find_side(const struct tfc_guards *set, struct tfc_output pred, int32_t side) {
  for (uint32_t i = 0; i < set->count; i++)
    if (set->items[i].pred.node == pred.node && set->items[i].pred.index == pred.index && set->items[i].side == side)
      return true;
  return false;
}

// Finds the predicate that distinguishes a Merge's two inputs, which are alive for opposite values of it.
static bool deciding(const struct tfc_gradients *e, const struct tfc_node *n, struct tfc_guard *out) {
  const struct tfc_output *in = tfc_node_inputs(e->g, n);
  if (n->input_count != 2) return false;
  const struct tfc_guards *a = &e->frames.guards[tfc_grad_number(e, in[0])],
                          *b = &e->frames.guards[tfc_grad_number(e, in[1])];
  for (uint32_t i = 0; i < a->count; i++)
    if (a->items[i].side <= 1 && find_side(b, a->items[i].pred, 1 - a->items[i].side)) {
      *out = a->items[i];
      return true;
    }
  return false;
}

tfc_status tfc_gradients_of_merge(struct tfc_gradients *e, uint32_t id, uint32_t frame) {
  const struct tfc_node *n = &e->g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(e->g, n);
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_guard by;
  const struct tfc_grad_list *list = &e->grads[n->output_begin];
  if (!list->count) return NULL;
  struct tfc_output g = tfc_gradients_to_dense(e, &list->data[0]), taken;
  if (deciding(e, n, &by)) {
    taken = tfc_add2(e->b, "Switch", g, by.pred);
    for (int32_t k = 0; k < 2; k++) {
      int32_t side = k == 0 ? by.side : 1 - by.side;
      if (tfc_output_valid(taken))
        TFC_RETURN_IF_ERROR(tfc_gradients_push(e, in[k], tfc_grad_dense((struct tfc_output){taken.node, side})));
    }
  } else {
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output here = tfc_add2(e->b, "Equal", (struct tfc_output){id, 1}, tfc_add_i32(e->b, (int32_t)k));
      taken = tfc_add2(e->b, "Switch", g, here);
      if (tfc_output_valid(taken))
        TFC_RETURN_IF_ERROR(tfc_gradients_push(e, in[k], tfc_grad_dense((struct tfc_output){taken.node, 1})));
    }
  }
  return tfc_gradients_adopt(e, first, frame);
}

static struct tfc_output on_side(struct tfc_gradients *e, struct tfc_output x, struct tfc_output pred, int32_t side) {
  struct tfc_output o = tfc_add2(e->b, "Switch", x, pred);
  o.index = side;
  return o;
}

static struct tfc_output zeros_on_side(struct tfc_gradients *e, const struct tfc_output *in, int32_t side,
                                       tfc_dtype type) {
  if (type == TFC_VARIANT) return tfc_add1(e->b, "ZerosLike", on_side(e, in[0], in[1], side));
  struct tfc_output shape = on_side(e, tfc_gradients_shape(e, in[0]), in[1], side);
  return tfc_add2(e->b, "Fill", shape, tfc_add_scalar(e->b, type, 0));
}

tfc_status tfc_gradients_push_from(struct tfc_gradients *e, const struct tfc_guards *here, struct tfc_output to,
                                   struct tfc_grad grad, uint32_t frame) {
  const struct tfc_guards *there = &e->frames.guards[tfc_grad_number(e, to)];
  if (!tfc_output_valid(grad.values)) return tfc_status_clone(tfc_builder_status(e->b));
  for (uint32_t i = here->count; i > 0; i--) {
    const struct tfc_guard *by = &here->items[i - 1];
    if (find_side(there, by->pred, by->side) || by->side > 1) continue;
    uint32_t first = tfc_builder_node_count(e->b);
    struct tfc_output g = tfc_gradients_to_dense(e, &grad), zeros;
    tfc_dtype type = tfc_dtype_base(tfc_builder_dtype(e->b, g));
    zeros = type == TFC_VARIANT ? to : tfc_gradients_shape(e, to);
    for (uint32_t k = 0; k < i - 1; k++)
      if (!find_side(there, here->items[k].pred, here->items[k].side))
        zeros = on_side(e, zeros, here->items[k].pred, here->items[k].side);
    zeros = on_side(e, zeros, by->pred, 1 - by->side);
    zeros = type == TFC_VARIANT ? tfc_add1(e->b, "ZerosLike", zeros)
                                : tfc_add2(e->b, "Fill", zeros, tfc_add_scalar(e->b, type, 0));
    grad = tfc_grad_dense(tfc_add2(e->b, "Merge", g, zeros));
    TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, frame));
  }
  return tfc_gradients_push(e, to, grad);
}

tfc_status tfc_gradients_of_switch(struct tfc_gradients *e, uint32_t id, uint32_t frame) {
  const struct tfc_node *n = &e->g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(e->g, n);
  uint32_t first = tfc_builder_node_count(e->b);
  const struct tfc_grad_list *lists = &e->grads[n->output_begin];
  struct tfc_grad sides[2], sum;
  if (!lists[0].count && !lists[1].count) return NULL;
  bool rows = true;
  tfc_dtype type = TFC_DTYPE_NONE, wide = TFC_INT32;
  for (int k = 0; k < 2; k++) {
    if (!lists[k].count) continue;
    rows &= tfc_grad_is_rows(&lists[k].data[0]);
    type = tfc_dtype_base(tfc_builder_dtype(e->b, lists[k].data[0].values));
    if (rows && tfc_builder_dtype(e->b, lists[k].data[0].indices) == TFC_INT64) wide = TFC_INT64;
  }
  for (int k = 0; k < 2; k++) {
    if (lists[k].count) {
      sides[k] = lists[k].data[0];
      if (!rows) sides[k] = tfc_grad_dense(tfc_gradients_to_dense(e, &sides[k]));
      struct tfc_attr to = tfc_attr_type("DstT", TFC_INT64);
      if (rows && wide == TFC_INT64 && tfc_builder_dtype(e->b, sides[k].indices) != wide)
        sides[k].indices = tfc_add(e->b, "Cast", NULL, &sides[k].indices, 1, &to, 1);
      // Indices that are constants of a branch are copied into the gradient's loop outside of the branch.
      if (rows) sides[k].indices = on_side(e, sides[k].indices, in[1], k);
    } else if (rows) {
      struct tfc_output none =
          tfc_add2(e->b, "Fill", tfc_add_i32_vector(e->b, (int32_t[]){0}, 1), tfc_add_scalar(e->b, wide, 0));
      sides[k].values = on_side(e, tfc_gradients_zero_rows(e, in[0], type), in[1], k);
      sides[k].indices = on_side(e, none, in[1], k);
    } else {
      sides[k] = tfc_grad_dense(zeros_on_side(e, in, k, type));
    }
  }
  sum.values = tfc_add2(e->b, "Merge", sides[0].values, sides[1].values);
  sum.indices = rows ? tfc_add2(e->b, "Merge", sides[0].indices, sides[1].indices) : TFC_NO_OUTPUT;
  sum.dense_shape = rows ? tfc_gradients_shape(e, in[0]) : TFC_NO_OUTPUT;
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, frame));
  return tfc_gradients_push_from(e, tfc_grad_guards(e, id), in[0], sum, frame);
}
