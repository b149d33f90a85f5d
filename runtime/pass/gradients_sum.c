// Sums the gradients of one tensor. Dense gradients are added, first those on the same device. If all gradients are
// rows, they are joined; otherwise those that are rows are made dense.
#include "runtime/pass/gradients_internal.h"

#include <stdlib.h>

tfc_status tfc_gradients_push(struct tfc_gradients *e, struct tfc_output to, struct tfc_grad grad) {
  if (!tfc_output_valid(grad.values)) return tfc_status_clone(tfc_builder_status(e->b));
  return tfc_array_push(&e->grads[tfc_grad_number(e, to)], grad) ? NULL : tfc_status_no_memory("gradients");
}

tfc_status tfc_gradients_release(struct tfc_gradients *e, uint32_t id) {
  const struct tfc_node *n = &e->g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(e->g, n);
  for (uint32_t k = 0; k < n->input_count; k++) {
    uint32_t from = in[k].node;
    if (!e->between[from] || --e->pending[from]) continue;
    const struct tfc_node *p = &e->g->nodes[from];
    uint32_t flags = p->def ? p->def->flags : 0; // nodes that form a loop are handled with the loop
    if (flags & (TFC_OP_ENTER | TFC_OP_NEXT_ITERATION) || tfc_frames_is_loop_switch(e->g, p) ||
        tfc_frames_is_loop_merge(e->g, p))
      continue;
    if (!tfc_array_push(&e->queue->ids, from)) return tfc_status_no_memory("gradients");
  }
  return NULL;
}

// Adds the rows to zeros, because indices may repeat.
struct tfc_output tfc_gradients_to_dense(struct tfc_gradients *e, const struct tfc_grad *g) {
  if (!tfc_grad_is_rows(g)) return g->values;
  struct tfc_builder *b = e->b;
  struct tfc_output begin = tfc_add_i32_vector(b, (int32_t[]){0}, 1), end = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_attr shrink = tfc_attr_int("shrink_axis_mask", 1);
  struct tfc_output rows =
      tfc_add(b, "StridedSlice", NULL, (struct tfc_output[]){g->dense_shape, begin, end, end}, 4, &shrink, 1);
  return tfc_add3(b, "UnsortedSegmentSum", g->values, g->indices, rows);
}

// Adds dense gradients, grouped by device.
static struct tfc_output add_all(struct tfc_gradients *e, const struct tfc_output *items, size_t count) {
  struct tfc_builder *b = e->b;
  struct tfc_output sums[64], group[256];
  tfc_str devices[64];
  size_t device_count = 0;
  if (count == 1) return items[0];
  for (size_t i = 0; i < count; i++) {
    if (!tfc_output_valid(items[i])) return TFC_NO_OUTPUT;
    tfc_str device = tfc_builder_node(b, items[i].node)->device;
    size_t at = 0;
    while (at < device_count && tfc_str_compare(devices[at], device) < 0) at++;
    if (at < device_count && tfc_str_equal(devices[at], device)) continue;
    if (device_count == 64) return tfc_add(b, "AddN", NULL, items, (uint32_t)count, NULL, 0);
    memmove(devices + at + 1, devices + at, (device_count - at) * sizeof *devices);
    devices[at] = device;
    device_count++;
  }
  if (device_count == 1 || count > 256) return tfc_add(b, "AddN", NULL, items, (uint32_t)count, NULL, 0);
  for (size_t d = 0; d < device_count; d++) {
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++)
      if (tfc_str_equal(tfc_builder_node(b, items[i].node)->device, devices[d])) group[n++] = items[i];
    sums[d] = n == 1 ? group[0] : tfc_add(b, "AddN", NULL, group, n, NULL, 0);
  }
  return tfc_add(b, "AddN", NULL, sums, (uint32_t)device_count, NULL, 0);
}

// Joins the rows of several gradients.
static tfc_status join_rows(struct tfc_gradients *e, const struct tfc_grad_list *list, struct tfc_grad *out) {
  struct tfc_builder *b = e->b;
  uint32_t n = (uint32_t)list->count;
  struct tfc_output *values = calloc(2 * ((size_t)n + 1), sizeof *values), *indices = values ? values + n + 1 : NULL;
  if (!values) return tfc_status_no_memory("gradients");
  bool wide = false;
  for (uint32_t i = 0; i < n; i++) wide |= tfc_builder_dtype(b, list->data[i].indices) == TFC_INT64;
  for (uint32_t i = 0; i < n; i++) {
    values[i] = list->data[i].values;
    indices[i] = list->data[i].indices;
    if (wide && tfc_builder_dtype(b, indices[i]) != TFC_INT64) {
      struct tfc_attr to = tfc_attr_type("DstT", TFC_INT64);
      indices[i] = tfc_add(b, "Cast", NULL, &indices[i], 1, &to, 1);
    }
  }
  struct tfc_attr count = tfc_attr_int("N", n);
  values[n] = indices[n] = tfc_add_i32(b, 0);
  *out = (struct tfc_grad){tfc_add(b, "ConcatV2", NULL, values, n + 1, &count, 1),
                           tfc_add(b, "ConcatV2", NULL, indices, n + 1, &count, 1), list->data[0].dense_shape};
  free(values);
  return NULL;
}

tfc_status tfc_gradients_sum(struct tfc_gradients *e, uint32_t number) {
  struct tfc_grad_list *list = &e->grads[number];
  struct tfc_grad sum;
  if (list->count < 2) return NULL;
  bool all_sparse = true;
  for (size_t i = 0; i < list->count; i++) all_sparse &= tfc_grad_is_rows(&list->data[i]);
  if (all_sparse) {
    TFC_RETURN_IF_ERROR(join_rows(e, list, &sum));
  } else {
    struct tfc_output *items = calloc(list->count, sizeof *items);
    if (!items) return tfc_status_no_memory("gradients");
    for (size_t i = 0; i < list->count; i++) items[i] = tfc_gradients_to_dense(e, &list->data[i]);
    sum = tfc_grad_dense(add_all(e, items, list->count));
    free(items);
  }
  list->data[0] = sum;
  list->count = 1;
  return NULL;
}
