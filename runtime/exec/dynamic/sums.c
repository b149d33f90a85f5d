// Finds matrix products whose only reader is an addition: say, a cell's weight gradients, which a loop sums over its
// steps. If the product and the addition are on one CPU device, the addition computes the product into its other
// operand, tile by tile, and the product itself is never written. The results are bit-identical, because each element
// of the product is the same chain of multiply-adds, which is then added.
#include "runtime/exec/dynamic/dynamic.h"

#define ADD_PRODUCT(what)                                                                                              \
  {                                                                                                                    \
    .name = (what), .inputs = "to: float, a: float, b: float", .outputs = "sum: float", .attrs = "",                   \
    .flags = TFC_OP_INPLACE_FIRST                                                                                      \
  }
const struct tfc_op_def tfc_add_product_def = ADD_PRODUCT("_AddProduct"),
                        tfc_add_n_product_def = ADD_PRODUCT("_AddNProduct");

struct finder {
  const struct tfc_build *b;
  const struct tfc_graph *g;
  const struct tfc_session *session;
  uint32_t *readers; // [node] number of readers of its outputs, including control edges and fetches
};

static bool fed(const struct finder *f, struct tfc_output o) {
  return o.index < 0 || f->b->ground->fed[f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static const struct tfc_shape *shape_of(const struct finder *f, struct tfc_output o) {
  return &f->b->ground->shapes.shapes[f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static uint16_t device_of(const struct finder *f, uint32_t node) {
  return f->b->spec->placement ? f->b->spec->placement[node] : 0;
}
static bool is_float(const struct finder *f, struct tfc_output o) {
  return tfc_output_dtype(f->g, o) == TFC_FLOAT;
}

static bool adds_two(const struct finder *f, uint32_t id) {
  const struct tfc_node *n = &f->g->nodes[id];
  if (!n->def || n->input_count != 2 || n->output_count != 1) return false;
  return n->def->role == TFC_ROLE_ADD_N || n->def->role == TFC_ROLE_ADD;
}

// Whether the shapes may fit. They may be known only partly, such as those of values from a stack: if they differ at
// run time, AddV2 broadcasts and AddN fails; the fused kernels do the same.
static bool may_fit(const struct tfc_shape *term, const struct tfc_shape *to) {
  if (to->rank != 2 || !tfc_shape_is_static(to) || term->rank != 2) return false;
  for (int d = 0; d < 2; d++)
    if (term->dims[d] >= 0 && term->dims[d] != to->dims[d]) return false;
  return true;
}

// Whether the product is read by the addition `sum` only.
static bool is_term(const struct finder *f, uint32_t sum, struct tfc_output term, struct tfc_output to) {
  const struct tfc_node *n = &f->g->nodes[term.node];
  if (fed(f, term) || !n->def || n->def->role != TFC_ROLE_PRODUCT || f->readers[term.node] != 1) return false;
  if (!is_float(f, term) || device_of(f, term.node) != device_of(f, sum)) return false;
  // A transposed right operand is usually a weight, and then the sum is so small that fusing gains nothing.
  if (tfc_node_attr_bool(f->g, n, "transpose_b", false)) return false;
  if (f->session->devices[device_of(f, sum)]->driver->host_kernels != TFC_HOST_KERNELS_IN_PLACE) return false;
  if (!may_fit(shape_of(f, term), shape_of(f, to))) return false;
  for (int k = 0; k < 2; k++)
    if (tfc_dtype_is_ref(tfc_output_dtype(f->g, tfc_node_inputs(f->g, n)[k]))) return false;
  return is_float(f, to);
}

tfc_status tfc_dynamic_find_sums(const struct tfc_build *b, const struct tfc_session *session, struct tfc_arena *arena,
                                 uint32_t **out) {
  struct finder f = {.b = b, .g = b->graph, .session = session};
  uint32_t *product = TFC_ARENA_ARRAY(arena, uint32_t, f.g->node_count + 1);
  f.readers = TFC_ARENA_ARRAY(arena, uint32_t, f.g->node_count + 1);
  if (!product || !f.readers) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < f.g->node_count; i++) {
    const struct tfc_node *n = &f.g->nodes[i];
    product[i] = TFC_NONE;
    if (!b->ground->needed[i]) continue;
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) f.readers[tfc_node_inputs(f.g, n)[k].node]++;
  }
  for (uint32_t i = 0; i < b->spec->fetch_count; i++) f.readers[b->spec->fetches[i].node]++;
  for (uint32_t i = 0; i < b->spec->target_count; i++) f.readers[b->spec->targets[i]]++;
  for (uint32_t i = 0; i < f.g->node_count && !session->options.no_rewrites; i++) {
    if (!b->ground->needed[i] || !adds_two(&f, i) || fed(&f, (struct tfc_output){i, 0})) continue;
    const struct tfc_output *in = tfc_node_inputs(f.g, &f.g->nodes[i]);
    for (int k = 1; k >= 0 && product[i] == TFC_NONE; k--)
      if (is_term(&f, i, in[k], in[!k])) product[i] = in[k].node;
  }
  *out = product;
  return NULL;
}
