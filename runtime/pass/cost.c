// Computes the FLOP and bytes of an operation from its op's row and the inferred shapes.
#include <math.h>
#include <stdlib.h>

#include "runtime/pass/pass.h"

static double bytes_of(const struct tfc_graph *g, const struct tfc_shapes *shapes, uint32_t output) {
  const struct tfc_shape *shape = &shapes->shapes[output];
  int64_t count = tfc_shape_is_static(shape) ? tfc_shape_elements(shape) : 0;
  return (double)(count > 0 ? count : 0) * (double)tfc_dtype_size(tfc_dtype_base(g->output_dtypes[output]));
}

// Cost functions need static shapes. The first input and output decide the cost; other shapes may be known only to
// kernels (such as what batch normalisation keeps for its gradient), and then count as empty.
bool tfc_node_cost(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shapes *shapes,
                   struct tfc_op_cost *out) {
  const struct tfc_output *inputs = tfc_node_inputs(g, n);
  size_t count = (size_t)n->input_count + n->output_count;
  struct tfc_shape few[24], *shape = count <= 24 ? few : calloc(count, sizeof *shape);
  struct tfc_op_cost cost = {0};
  bool known = shape != NULL;
  for (uint32_t i = 0; i < count && shape; i++) {
    bool input = i < n->input_count;
    uint32_t o = input ? g->nodes[inputs[i].node].output_begin + (uint32_t)inputs[i].index
                       : n->output_begin + (i - n->input_count);
    bool is_static = tfc_shape_is_static(&shapes->shapes[o]);
    shape[i] = is_static ? shapes->shapes[o] : (struct tfc_shape){0};
    known &= is_static || (i != 0 && i != n->input_count);
    cost.bytes += bytes_of(g, shapes, o);
  }
  if (known && n->def && n->def->cost) {
    struct tfc_op_cost own = {0};
    n->def->cost(g, n, shape, shape + n->input_count, &own);
    if (own.flops >= 0 && own.bytes >= 0 && isfinite(own.flops) && isfinite(own.bytes)) cost = own;
  }
  if (shape != few) free(shape);
  *out = cost;
  return known;
}
