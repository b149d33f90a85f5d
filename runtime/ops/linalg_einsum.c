// Einsum of one or two operands: any product and sum that the equation describes, with ellipses that broadcast and
// labels that are repeated in an operand (which selects its diagonal) or in the result.
//
// Every operand is a strided view over its labels. Labels that occur in one operand only, and not in the result, are
// summed away; the others are ordered [batch, free, contracted], the operand is made dense, and the matrices are
// multiplied.
#include "runtime/ops/linalg_einsum.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_matmul.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Equations -------------------------------------------------------------------------------------------------------
// Labels are letters; the dimensions of an ellipsis are labels of their own, counted from the right: ELLIPSIS + i.
enum { ELLIPSIS = 128, MAX_LABELS = 2 * TFC_MAX_RANK + 4 };
struct term {
  int count; // dimensions; includes those of the ellipsis once their number is known
  int labels[MAX_LABELS];
  int ellipsis; // position among the written labels, -1 for none
};
struct equation {
  int inputs;
  struct term in[2], out;
};

static tfc_status parse_term(tfc_str text, struct term *out) {
  struct term t = {.ellipsis = -1};
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (i + 2 >= text.size || text.data[i + 1] != '.' || text.data[i + 2] != '.' || t.ellipsis >= 0)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' has a misplaced ellipsis", TFC_STR_ARG(text));
      t.ellipsis = t.count;
      i += 2;
      continue;
    }
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%c' is not a label", c);
    if (t.count == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many labels");
    t.labels[t.count++] = c;
  }
  *out = t;
  return NULL;
}
static tfc_status parse_equation(tfc_str text, struct equation *out) {
  struct equation e = {0};
  size_t arrow = 0;
  while (arrow + 1 < text.size && !(text.data[arrow] == '-' && text.data[arrow + 1] == '>')) arrow++;
  if (arrow + 1 >= text.size)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the equation '%.*s' has no '->'", TFC_STR_ARG(text));
  tfc_str inputs = tfc_str_sub(text, 0, arrow);
  size_t comma = tfc_str_find(inputs, ',');
  e.inputs = comma == SIZE_MAX ? 1 : 2;
  TFC_RETURN_IF_ERROR(parse_term(tfc_str_sub(inputs, 0, comma), &e.in[0]));
  if (e.inputs == 2) TFC_RETURN_IF_ERROR(parse_term(tfc_str_sub(inputs, comma + 1, inputs.size), &e.in[1]));
  TFC_RETURN_IF_ERROR(parse_term(tfc_str_sub(text, arrow + 2, text.size), &e.out));
  *out = e;
  return NULL;
}
// Replaces the ellipsis by labels for its `n` dimensions.
static void expand_ellipsis(struct term *t, int n) {
  if (t->ellipsis < 0) return;
  memmove(&t->labels[t->ellipsis + n], &t->labels[t->ellipsis], (size_t)(t->count - t->ellipsis) * sizeof *t->labels);
  for (int i = 0; i < n; i++) t->labels[t->ellipsis + i] = ELLIPSIS + n - 1 - i;
  t->count += n;
}
static bool has(const struct term *t, int label) {
  for (int i = 0; i < t->count; i++)
    if (t->labels[i] == label) return true;
  return false;
}

// Expands the ellipses as the operands' ranks require; sizes[label] becomes the size of each label, which may be
// unknown.
static tfc_status resolve(struct equation *e, const struct tfc_shape *const *shapes, int64_t sizes[ELLIPSIS + 32]) {
  int longest = 0;
  for (int l = 0; l < ELLIPSIS + 32; l++) sizes[l] = TFC_DIM_UNKNOWN;
  for (int i = 0; i < e->inputs; i++) {
    struct term *t = &e->in[i];
    int extra = shapes[i]->rank - t->count;
    if (extra < 0 || (extra > 0 && t->ellipsis < 0))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "operand %d of rank %d has %d labels", i, shapes[i]->rank, t->count);
    if (extra > longest) longest = extra;
    expand_ellipsis(t, extra);
    for (int d = 0; d < t->count; d++) {
      int label = t->labels[d];
      int64_t n = shapes[i]->dims[d], *have = &sizes[label];
      if (!tfc_dim_known(n)) {
        if (*have == TFC_DIM_UNKNOWN) *have = n;
      } else if (!tfc_dim_known(*have) || (label >= ELLIPSIS && *have == 1)) {
        *have = n;
      } else if (*have != n && !(label >= ELLIPSIS && n == 1)) {
        return tfc_status_make(TFC_INVALID_ARGUMENT, "Expected dimension %lld at axis %d of the input %d but got %lld",
                               (long long)*have, d, i, (long long)n);
      }
    }
  }
  expand_ellipsis(&e->out, longest);
  for (int d = 0; d < e->out.count; d++) {
    int label = e->out.labels[d];
    if (!has(&e->in[0], label) && !(e->inputs == 2 && has(&e->in[1], label)))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a label of the result is in no operand");
  }
  return NULL;
}

// --- Kernel ----------------------------------------------------------------------------------------------------------
#define SUM_ROWS(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t o = 0; o < rows; o++) {                                                                               \
      ops_##t##_u sum = 0;                                                                                             \
      for (int64_t i = 0; i < n; i++) sum += (ops_##t##_u)OPS_GET_##t(((const ops_##t *)x)[o * n + i]);                \
      ((ops_##t *)y)[o] = OPS_PUT_##t(sum);                                                                            \
    }                                                                                                                  \
    return true;
static bool sum_rows(tfc_dtype type, const void *x, void *y, int64_t rows, int64_t n) {
  switch (type) {
    OPS_NUMBERS(SUM_ROWS, ~)
  default: return false;
  }
}

// Makes the operand dense over `order` (labels that it has, or along which it is broadcast); its other labels are
// summed away.
static tfc_status gather_operand(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, const struct term *t,
                                 const int *order, int count, const int64_t *sizes, struct tfc_buffer **out) {
  int64_t strides[TFC_MAX_RANK];
  struct ops_block block = {0};
  struct tfc_buffer *dense = NULL, *sums = NULL;
  tfc_status s = NULL;
  tfc_shape_strides(&x->shape, strides);
  int64_t rows = 1, n = 1;
  for (int pass = 0; pass < 2; pass++) { // first the labels in `order`, then those to sum over
    for (int k = 0; k < (pass == 0 ? count : t->count); k++) {
      int label = pass == 0 ? order[k] : t->labels[k];
      bool ordered = false, earlier = false;
      for (int i = 0; i < count; i++) ordered |= order[i] == label;
      for (int i = 0; i < k && pass; i++) earlier |= t->labels[i] == label;
      if (pass == 1 && (ordered || earlier)) continue;
      int64_t stride = 0, size = pass == 0 ? sizes[label] : 1;
      for (int d = 0; d < t->count; d++) {
        if (t->labels[d] != label) continue;
        if (pass == 1) size = x->shape.dims[d];
        if (x->shape.dims[d] != 1) stride += strides[d]; // a repeated label steps along the diagonal
      }
      if (block.rank == TFC_MAX_RANK + 2) return tfc_status_make(TFC_UNIMPLEMENTED, "so many labels");
      block.dims[block.rank] = size;
      block.src_strides[block.rank++] = stride;
      *(pass == 0 ? &rows : &n) *= size;
    }
  }
  int64_t step = 1;
  for (int d = block.rank - 1; d >= 0; d--) {
    block.dst_strides[d] = step;
    step *= block.dims[d];
  }
  size_t size = tfc_dtype_size(x->dtype);
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(rows * n) * size + size, &dense));
  struct tfc_tensor to = {.dtype = x->dtype, .data = dense->data, .size = (size_t)(rows * n) * size};
  TFC_TRY(s, ops_copy_block(ctx, &to, x, &block));
  if (n != 1) {
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)rows * size + size, &sums));
    if (!sum_rows(x->dtype, dense->data, sums->data, rows, n)) s = ops_unsupported_type(ctx, x->dtype);
    tfc_buffer_release(dense);
    dense = sums;
    sums = NULL;
    if (s) goto out;
  }
  *out = dense;
  dense = NULL;
out:
  tfc_buffer_release(dense);
  tfc_buffer_release(sums);
  return s;
}

static tfc_status prepare_equation(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct equation, e);
  TFC_RETURN_IF_ERROR(parse_equation(tfc_node_attr_string(ctx->graph, ctx->node, "equation", ""), e));
  if ((uint32_t)e->inputs != ctx->node->input_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the equation has %d operands, the node %u", e->inputs,
                           ctx->node->input_count);
  return NULL;
}

static tfc_status einsum(struct tfc_kernel_ctx *ctx) {
  struct equation e = *(const struct equation *)ctx->state;
  const struct tfc_shape *shapes[2] = {&ctx->inputs[0]->shape, e.inputs == 2 ? &ctx->inputs[1]->shape : NULL};
  tfc_dtype type = ctx->inputs[0]->dtype;
  int64_t sizes[ELLIPSIS + 32];
  struct tfc_buffer *a = NULL, *b = NULL, *product = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  if (!(OPS_BITS(OPS_NUMBERS) & TFC_TYPE_BIT(type))) return ops_unsupported_type(ctx, type);
  TFC_RETURN_IF_ERROR(resolve(&e, shapes, sizes));
  // The result's labels, each once: [batch, free of the first, free of the second].
  int batch[MAX_LABELS], free_a[MAX_LABELS], free_b[MAX_LABELS], inner[MAX_LABELS], order[MAX_LABELS];
  int nb = 0, na = 0, nf = 0, nk = 0, count = 0;
  for (int d = 0; d < e.out.count; d++) {
    int label = e.out.labels[d];
    bool seen = false;
    for (int k = 0; k < d; k++) seen |= e.out.labels[k] == label;
    if (seen) continue;
    bool in_a = has(&e.in[0], label), in_b = e.inputs == 2 && has(&e.in[1], label);
    if (in_a && in_b)
      batch[nb++] = label;
    else if (in_a)
      free_a[na++] = label;
    else
      free_b[nf++] = label;
  }
  for (int d = 0; e.inputs == 2 && d < e.in[0].count; d++) {
    int label = e.in[0].labels[d];
    bool seen = has(&e.out, label);
    for (int k = 0; k < d; k++) seen |= e.in[0].labels[k] == label;
    if (!seen && has(&e.in[1], label)) inner[nk++] = label;
  }
  int64_t dims[4] = {1, 1, 1, 1}; // batch, m, n, k
#define COLLECT(labels, n, at)                                                                                         \
  for (int i = 0; i < (n); i++) {                                                                                      \
    order[count++] = (labels)[i];                                                                                      \
    dims[at] *= sizes[(labels)[i]];                                                                                    \
  }
  COLLECT(batch, nb, 0)
  COLLECT(free_a, na, 1)
  COLLECT(inner, nk, 3)
  TFC_TRY(s, gather_operand(ctx, ctx->inputs[0], &e.in[0], order, count, sizes, &a));
  if (e.inputs == 2) {
    dims[0] = dims[3] = 1;
    count = 0;
    COLLECT(batch, nb, 0)
    COLLECT(inner, nk, 3)
    COLLECT(free_b, nf, 2)
    TFC_TRY(s, gather_operand(ctx, ctx->inputs[1], &e.in[1], order, count, sizes, &b));
    size_t bytes = (size_t)(dims[0] * dims[1] * dims[2]) * tfc_dtype_size(type);
    TFC_TRY(s, tfc_kernel_scratch(ctx, bytes + 16, &product));
    struct ops_matmul mm = {type, type, dims[1], dims[2], dims[3], OPS_PLAIN, OPS_PLAIN};
    TFC_TRY(s, ops_matmul_batch(ctx, &mm, a->data, b->data, product->data, dims[0], NULL, NULL));
  }
  struct tfc_shape shape = {0};
  if (e.out.count > TFC_MAX_RANK) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the result has too many dimensions");
  for (int d = 0; d < e.out.count; d++) shape.dims[shape.rank++] = sizes[e.out.labels[d]];
  TFC_TRY(s, tfc_kernel_output(ctx, 0, type, &shape, &y));
  // Copies the product into the order of the result; a label that the result repeats steps along its diagonal.
  int64_t strides[TFC_MAX_RANK], step = 1;
  tfc_shape_strides(&shape, strides);
  struct ops_block block = {.rank = nb + na + nf};
  count = 0;
  COLLECT(batch, nb, 0)
  COLLECT(free_a, na, 1)
  COLLECT(free_b, nf, 2)
  for (int d = count - 1; d >= 0; d--) {
    block.dims[d] = sizes[order[d]];
    block.src_strides[d] = step;
    step *= block.dims[d];
    for (int k = 0; k < e.out.count; k++)
      if (e.out.labels[k] == order[d]) block.dst_strides[d] += strides[k];
  }
  if (count != e.out.count) ops_fill_zero(y);
  struct tfc_tensor from = {.dtype = type, .data = e.inputs == 2 ? product->data : a->data};
  s = ops_copy_block(ctx, y, &from, &block);
out:
  tfc_buffer_release(a);
  tfc_buffer_release(b);
  tfc_buffer_release(product);
  return s;
}

// --- As matrix products without copies of the operands -------------------------------------------------------------
// One dimension of the product: labels joined to one, as one stride in each tensor describes them.
struct axis {
  int64_t size, stride[3]; // strides in the first operand, in the second, and in the result
};
// Joins labels [first, last) of `labels` to one axis, from the last one on, as far as one stride describes them.
// Returns the first label that was joined.
static int join_axis(const int *labels, int first, int last, const int64_t *sizes, const int64_t (*strides)[3],
                     struct axis *out) {
  *out = (struct axis){.size = 1};
  int at = last;
  for (; at > first; at--) {
    const int label = labels[at - 1];
    const int64_t *stride = strides[label];
    if (sizes[label] == 1) continue;
    if (out->size == 1) {
      memcpy(out->stride, stride, sizeof out->stride);
    } else {
      bool joins = true;
      for (int t = 0; t < 3; t++) joins = joins && stride[t] == out->stride[t] * out->size;
      if (!joins) break;
    }
    out->size *= sizes[label];
  }
  return at;
}

tfc_status ops_einsum_as_products(const struct tfc_graph *g, const struct tfc_node *node,
                                  const struct tfc_shape *const shapes[2], struct ops_einsum_products *out) {
  struct equation e;
  int64_t sizes[ELLIPSIS + 32], strides[ELLIPSIS + 32][3] = {{0}};
  TFC_RETURN_IF_ERROR(parse_equation(tfc_node_attr_string(g, node, "equation", ""), &e));
  if (e.inputs != 2 || node->input_count != 2) return tfc_status_make(TFC_UNIMPLEMENTED, "one operand");
  TFC_RETURN_IF_ERROR(resolve(&e, shapes, sizes));
  if (e.out.count > TFC_MAX_RANK) return tfc_status_make(TFC_UNIMPLEMENTED, "the result has too many dimensions");
  struct ops_einsum_products p = {0};
  for (int d = 0; d < e.out.count; d++) p.out.dims[p.out.rank++] = sizes[e.out.labels[d]];
  for (int t = 0; t < 3; t++) {
    const struct term *term = t < 2 ? &e.in[t] : &e.out;
    int64_t step = 1;
    for (int d = term->count - 1; d >= 0; d--) {
      const int label = term->labels[d];
      const int64_t n = t < 2 ? shapes[t]->dims[d] : sizes[label];
      for (int k = 0; k < d; k++)
        if (term->labels[k] == label) return tfc_status_make(TFC_UNIMPLEMENTED, "a repeated label");
      strides[label][t] = n == 1 ? 0 : step;
      step *= n;
    }
  }
  int batch[MAX_LABELS], left[MAX_LABELS], right[MAX_LABELS], inner[MAX_LABELS], nb = 0, nl = 0, nr = 0, nk = 0;
  for (int d = 0; d < e.out.count; d++) {
    const int label = e.out.labels[d];
    const bool in_a = has(&e.in[0], label), in_b = has(&e.in[1], label);
    if (in_a && in_b)
      batch[nb++] = label;
    else if (in_a)
      left[nl++] = label;
    else
      right[nr++] = label;
  }
  for (int t = 0; t < 2; t++)
    for (int d = 0; d < e.in[t].count; d++) {
      const int label = e.in[t].labels[d];
      if (has(&e.out, label)) continue;
      if (!has(&e.in[1 - t], label)) return tfc_status_make(TFC_UNIMPLEMENTED, "a label of one operand alone");
      if (t == 0) inner[nk++] = label;
    }
  struct axis m, n, k;
  if (join_axis(inner, 0, nk, sizes, strides, &k) != 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "contracted dimensions at several distances");
  if (k.size == 0) return tfc_status_make(TFC_UNIMPLEMENTED, "an empty sum");
  // Free dimensions that cannot be joined become batch dimensions.
  const int m_first = join_axis(left, 0, nl, sizes, strides, &m), n_first = join_axis(right, 0, nr, sizes, strides, &n);
  p.swapped = n.size > 1 && n.stride[2] != 1;
  if (p.swapped) {
    const struct axis held = m;
    m = n, n = held;
  }
  if (n.size > 1 && n.stride[2] != 1) return tfc_status_make(TFC_UNIMPLEMENTED, "no contiguous rows in the result");
  const int a = p.swapped ? 1 : 0, b = 1 - a;
  p.m = m.size, p.n = n.size, p.k = k.size;
  p.a_row = m.stride[a], p.a_column = k.stride[a], p.b_row = k.stride[b], p.b_column = n.stride[b];
  p.c_row = m.size > 1 ? m.stride[2] : n.size;
  for (int i = 0; i < nb + m_first + n_first; i++) {
    const int label = i < nb ? batch[i] : i < nb + m_first ? left[i - nb] : right[i - nb - m_first];
    if (sizes[label] == 1) continue;
    if (p.rank == OPS_EINSUM_BATCH) return tfc_status_make(TFC_UNIMPLEMENTED, "so many labels");
    p.dims[p.rank] = sizes[label];
    p.a[p.rank] = strides[label][a], p.b[p.rank] = strides[label][b], p.c[p.rank++] = strides[label][2];
  }
  *out = p;
  return NULL;
}

static tfc_status shape_einsum(struct tfc_shape_ctx *ctx) {
  struct equation e;
  int64_t sizes[ELLIPSIS + 32];
  TFC_RETURN_IF_ERROR(parse_equation(tfc_node_attr_string(ctx->graph, ctx->node, "equation", ""), &e));
  if ((uint32_t)e.inputs != ctx->node->input_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the equation has %d operands, the node %u", e.inputs,
                           ctx->node->input_count);
  struct tfc_shape ranked[2]; // unknown ranks follow from the subscripts
  const struct tfc_shape *shapes[2];
  for (int i = 0; i < e.inputs; i++) {
    shapes[i] = ctx->inputs[i];
    if (shapes[i]->rank >= 0) continue;
    if (e.in[i].ellipsis >= 0) {
      if (e.out.ellipsis < 0) ctx->outputs[0] = tfc_shape_unknown_of_rank(e.out.count);
      return NULL;
    }
    ranked[i] = tfc_shape_unknown_of_rank(e.in[i].count);
    shapes[i] = &ranked[i];
  }
  TFC_RETURN_IF_ERROR(resolve(&e, shapes, sizes));
  if (e.out.count > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "the result has too many dimensions");
  struct tfc_shape out = {0};
  for (int d = 0; d < e.out.count; d++) out.dims[out.rank++] = sizes[e.out.labels[d]];
  ctx->outputs[0] = out;
  return NULL;
}

static void cost_einsum(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                        const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  struct equation e;
  int64_t sizes[ELLIPSIS + 32];
  const struct tfc_shape *shapes[2] = {&inputs[0], &inputs[1]};
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = 0;
  tfc_status s = parse_equation(tfc_node_attr_string(g, n, "equation", ""), &e);
  if (!s && (uint32_t)e.inputs == n->input_count) s = resolve(&e, shapes, sizes);
  if (!s) {
    double total = e.inputs == 2 ? 2 : 1;
    for (int l = 0; l < ELLIPSIS + 32; l++)
      if (has(&e.in[0], l) || (e.inputs == 2 && has(&e.in[1], l))) total *= (double)sizes[l];
    out->flops = total;
  }
  tfc_status_free(s);
}

// --- Gradient --------------------------------------------------------------------------------------------------------
// The text of a term, which may contain "...".
struct subscripts {
  char text[64];
};
static void add_char(struct subscripts *s, char c) {
  size_t n = strlen(s->text);
  if (n + 1 < sizeof s->text) s->text[n] = c, s->text[n + 1] = 0;
}
static struct tfc_output add_einsum(struct tfc_grad_ctx *g, const struct tfc_output *in, uint32_t count, const char *a,
                                    const char *b, const char *out) {
  char *text = b ? tfc_format("%s,%s->%s", a, b, out) : tfc_format("%s->%s", a, out);
  if (!text) {
    tfc_builder_fail(g->builder, tfc_status_no_memory(NULL));
    return TFC_NO_OUTPUT;
  }
  struct tfc_attr attr = tfc_attr_string("equation", tfc_str_from(text));
  struct tfc_output o = tfc_add(g->builder, "Einsum", "", in, count, &attr, 1);
  free(text);
  return o;
}
// Returns the number of a label's dimension. If an ellipsis comes before it, it counts from the end and is negative.
static int64_t axis_of(const char *subscripts, char label) {
  const char *dots = strstr(subscripts, "..."), *at = strchr(subscripts, label);
  if (!dots || at < dots) return at - subscripts;
  return at - (subscripts + strlen(subscripts));
}
// Broadcasts the gradient, which has the labels `left`, to all labels of `input`.
static struct tfc_output spread(struct tfc_grad_ctx *g, struct tfc_output grad, const char *left, const char *input,
                                struct tfc_output shape, const char *reduced) {
  uint32_t n = (uint32_t)strlen(reduced);
  if (n == 0 && strcmp(left, input) == 0) return grad;
  struct tfc_output sizes[16], ones[16];
  for (uint32_t i = 0; i < n; i++) {
    sizes[i] = grad_item(g, shape, axis_of(input, reduced[i]));
    ones[i] = tfc_add_i32(g->builder, 1);
  }
  struct tfc_output own = grad_shape(g, grad, NULL, TFC_INT32), zero = tfc_add_i32(g->builder, 0);
  if (n) {
    struct tfc_output from[2] = {grad_pack(g, ones, n, 0), own}, to[2] = {grad_pack(g, sizes, n, 0), own};
    grad = grad_op2(g, "BroadcastTo", g_reshape(g, grad, grad_concat(g, from, 2, zero)), grad_concat(g, to, 2, zero));
  }
  struct subscripts all = {""};
  for (uint32_t i = 0; i < n; i++) add_char(&all, reduced[i]);
  for (const char *p = left; *p; p++) add_char(&all, *p);
  return add_einsum(g, &grad, 1, all.text, NULL, input);
}
// Splits the labels of `input`: those that are in neither `a` nor `b` go to `reduced`, each once, the others to `left`.
static void split_reduced(const char *input, const char *a, const char *b, struct subscripts *reduced,
                          struct subscripts *left) {
  *reduced = *left = (struct subscripts){""};
  for (const char *p = input; *p; p++) {
    bool gone = *p != '.' && !strchr(a, *p) && !(b && strchr(b, *p));
    if (gone && strchr(reduced->text, *p)) continue;
    add_char(gone ? reduced : left, *p);
  }
}
OPS_GRADIENT(Einsum) {
  const struct tfc_attr *equation = grad_attr(g, "equation");
  struct subscripts in[2] = {{""}, {""}}, out = {""}, reduced, left;
  int part = 0;
  if (!equation || equation->kind != TFC_ATTR_STRING) return tfc_status_make(TFC_INVALID_ARGUMENT, "no equation");
  for (size_t i = 0; i < equation->s.size; i++) {
    char c = equation->s.data[i];
    if (c == ' ' || c == '-') continue;
    if (c == ',') {
      part = 1;
    } else if (c == '>') {
      part = 2;
    } else {
      add_char(part == 2 ? &out : &in[part], c);
    }
  }
  uint32_t n = grad_in_count(g);
  struct tfc_output shapes[2];
  for (uint32_t i = 0; i < n && i < 2; i++) shapes[i] = grad_shape(g, grad_in(g, i), g->input_shapes[i], TFC_INT32);
  if (n == 1) {
    split_reduced(in[0].text, out.text, NULL, &reduced, &left);
    g->grad_inputs[0] = spread(g, G, out.text, in[0].text, shapes[0], reduced.text);
    return NULL;
  }
  bool dots = strstr(out.text, "...") != NULL;
  for (int i = 0; i < 2 && dots; i++)
    if (!strstr(in[i].text, "..."))
      for (int k = 0; k < 3; k++) add_char(&in[i], '.');
  for (uint32_t i = 0; i < 2; i++) {
    struct tfc_output pair[2] = {G, grad_conj(g, grad_in(g, 1 - i))};
    split_reduced(in[i].text, out.text, in[1 - i].text, &reduced, &left);
    struct tfc_output grad = add_einsum(g, pair, 2, out.text, in[1 - i].text, left.text);
    g->grad_inputs[i] = reduced.text[0] ? spread(g, grad, left.text, in[i].text, shapes[i], reduced.text) : grad;
  }
  if (!dots) return NULL;
  // Sum the gradients over the ellipsis' dimensions that were broadcast.
  struct tfc_output parts[2];
  int64_t begins[2];
  for (int i = 0; i < 2; i++) {
    const char *at = strstr(in[i].text, "...");
    int64_t after = (int64_t)strlen(at) - 3;
    begins[i] = at - in[i].text;
    parts[i] = grad_range(g, shapes[i], begins[i], after ? -after : INT64_MAX);
  }
  struct tfc_output axes = grad_op2(g, "BroadcastGradientArgs", parts[0], parts[1]);
  for (int i = 0; i < 2; i++) {
    struct tfc_output at = g_add(g, (struct tfc_output){axes.node, i}, tfc_add_i32(g->builder, (int32_t)begins[i]));
    g->grad_inputs[i] = g_reshape(g, grad_sum(g, g->grad_inputs[i], at, false), shapes[i]);
  }
  return NULL;
}

static const struct tfc_op_def linalg_einsum_rows[] = {
    {.name = "Einsum",
     .inputs = "inputs: N * T",
     .outputs = "output: T",
     .attrs = "equation: string, N: int >= 1, T: type",
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_einsum,
     .cost = cost_einsum,
     .prepare = prepare_equation,
     .kernel = einsum,
     .gradient = gradient_Einsum,
     .samples = "float[2,3,4], float[4,5] {equation='abc,cd->abd'}; float[3,4] {equation='ij->ji'}; float[2,3], "
                "float[2,3] {equation='ij,ij->i'}; float[2,3,4], float[2,4,5] {equation='...ij,...jk->...ik'}"},
};
TFC_REGISTER_OPS(linalg_einsum_rows);
