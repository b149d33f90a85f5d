// Rows of MatMul and BatchMatMul, of products with some rows of a matrix, and of products with a bias.
#include "runtime/device/cuda/kernels/chain.h"
#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/product.h"
#include "runtime/ops/product_bias.h"

struct matmul {
  bool transpose_a, transpose_b;
  // The following members are set by `prepare` if shapes are static, otherwise by each launch.
  bool is_static;
  struct tfc_cuda_product product;
  int64_t outer, outer_a, outer_b, outer_c; // `outer` launches, if one stride cannot describe all batches, and each
                                            // operand's stride between launches
  const struct tfc_cuda_product_plan *plan;
  int64_t first;  // the first row of the second operand that the product uses
  bool rectified; // max(x, 0) of the product with its bias
};

// Splits the batch dimensions of operands and result into a loop of `outer` launches and a batch with one stride in
// each launch.
static tfc_status shape_product(const struct tfc_shape *a, const struct tfc_shape *b, struct matmul *s,
                                struct tfc_shape *out) {
  struct tfc_shape batch_a = *a, batch_b = *b, batch;
  struct tfc_cuda_product *p = &s->product;
  TFC_KERNEL_CHECK(a->rank >= 2 && b->rank >= 2, "operands must have at least 2 dimensions");
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&batch_a, &batch_b, &batch));
  TFC_KERNEL_CHECK(batch.rank + 2 <= TFC_MAX_RANK, "too many dimensions");
  p->transpose_a = s->transpose_a;
  p->transpose_b = s->transpose_b;
  p->m = a->dims[a->rank - (s->transpose_a ? 1 : 2)];
  p->k = a->dims[a->rank - (s->transpose_a ? 2 : 1)];
  p->n = b->dims[b->rank - (s->transpose_b ? 2 : 1)];
  int64_t other = b->dims[b->rank - (s->transpose_b ? 1 : 2)];
  TFC_KERNEL_CHECK(p->k == other, "Matrix size-incompatible: the inner dimensions are %lld and %lld", (long long)p->k,
                   (long long)other);
  *out = batch;
  out->dims[out->rank++] = p->m;
  out->dims[out->rank++] = p->n;
  // Goes from the innermost dimension outwards: a dimension is joined with those inside it if it continues their
  // stride.
  int64_t full_a = p->m * p->k, full_b = p->k * p->n, step_a = full_a, step_b = full_b, count = 1;
  p->batch = 1;
  p->stride_a = p->stride_b = 0;
  s->outer = 1;
  s->outer_a = s->outer_b = 0;
  for (int d = batch.rank - 1; d >= 0; d--) {
    int64_t n = batch.dims[d];
    int ea = d - (batch.rank - batch_a.rank), eb = d - (batch.rank - batch_b.rank);
    int64_t na = ea < 0 ? 1 : batch_a.dims[ea], nb = eb < 0 ? 1 : batch_b.dims[eb];
    if (n == 1) continue;
    int64_t sa = na == 1 ? 0 : step_a, sb = nb == 1 ? 0 : step_b;
    step_a *= na;
    step_b *= nb;
    if (s->outer == 1 && (p->batch == 1 || (sa == p->stride_a * p->batch && sb == p->stride_b * p->batch))) {
      if (p->batch == 1) p->stride_a = sa, p->stride_b = sb;
      p->batch *= n;
    } else if (s->outer == 1 || (sa == s->outer_a * s->outer && sb == s->outer_b * s->outer)) {
      if (s->outer == 1) s->outer_a = sa, s->outer_b = sb;
      s->outer *= n;
    } else {
      return tfc_status_make(TFC_UNIMPLEMENTED, "batch dimensions that broadcast in more than two ways");
    }
    count *= n;
  }
  p->stride_c = p->m * p->n;
  s->outer_c = p->stride_c * p->batch;
  if (count == 0) p->batch = 0, s->outer = 0;
  p->alignment = TFC_CUDA_PRODUCT_ALIGNMENT;
  int64_t size = (int64_t)tfc_dtype_size(p->type);
  while (p->alignment > size &&
         (s->outer_a * size % p->alignment || s->outer_b * size % p->alignment || s->outer_c * size % p->alignment))
    p->alignment /= 2;
  return NULL;
}

static bool is_empty(const struct matmul *s) {
  const struct tfc_cuda_product *p = &s->product;
  return !p->m || !p->n || !p->batch || !s->outer;
}

static tfc_status prepare(struct tfc_cuda_prepare *p, const char *a, const char *b) {
  TFC_CUDA_STATE(p, struct matmul, s);
  const struct tfc_prepare_ctx *base = p->base;
  s->transpose_a = tfc_node_attr_bool(base->graph, base->node, a, false);
  s->transpose_b = tfc_node_attr_bool(base->graph, base->node, b, false);
  s->product.type = tfc_cuda_type(p, 0);
  if (tfc_cuda_type(p, 1) != s->product.type ||
      tfc_dtype_base(base->graph->output_dtypes[base->node->output_begin]) != s->product.type)
    TFC_CUDA_DECLINE("operands and product of different types");
  if (!tfc_shape_is_static(&base->input_shapes[0]) || !tfc_shape_is_static(&base->input_shapes[1])) return NULL;
  struct tfc_shape out;
  TFC_RETURN_IF_ERROR(shape_product(&base->input_shapes[0], &base->input_shapes[1], s, &out));
  if (!is_empty(s) && s->product.k) {
    TFC_RETURN_IF_ERROR(tfc_cuda_product_find(p->library, &s->product, &s->plan));
    p->scratch = tfc_cuda_product_scratch(s->plan);
  }
  s->is_static = true;
  return NULL;
}
static tfc_status matmul_prepare(struct tfc_cuda_prepare *p) {
  return prepare(p, "transpose_a", "transpose_b");
}
static tfc_status batch_prepare(struct tfc_cuda_prepare *p) {
  return prepare(p, "adj_x", "adj_y");
}

// Enqueues the product `now`, of which `s` is what was prepared. addend: NULL, or what is added to it; in a product
// with an epilogue, the bias.
static tfc_status multiply(struct tfc_cuda_launch *l, const struct matmul *s, struct matmul now, const void *a,
                           const void *b, const void *addend, void *c) {
  struct tfc_buffer *held = NULL;
  void *scratch = l->scratch;
  // The prepared plan is used if the addresses are as aligned as it assumes; otherwise another plan is found.
  uintptr_t addresses = (uintptr_t)a | (uintptr_t)b | (uintptr_t)addend | (uintptr_t)c;
  while (addresses % (uintptr_t)now.product.alignment) now.product.alignment /= 2;
  if (!s->is_static || now.product.alignment != s->product.alignment) {
    TFC_RETURN_IF_ERROR(tfc_cuda_product_find(l->library, &now.product, &now.plan));
    size_t bytes = tfc_cuda_product_scratch(now.plan);
    if (bytes) {
      TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, &held));
      scratch = held->data;
    }
  }
  size_t size = tfc_dtype_size(now.product.type);
  tfc_status status = NULL;
  if (now.product.epilogue) {
    status = tfc_cuda_product_run_bias(l, now.plan, a, b, addend, c, scratch);
    tfc_buffer_release(held);
    return status;
  }
  for (int64_t i = 0; i < now.outer && !status; i++)
    status = tfc_cuda_product_run(l, now.plan, (const char *)a + (size_t)(i * now.outer_a) * size,
                                  (const char *)b + (size_t)(i * now.outer_b) * size, addend,
                                  (char *)c + (size_t)(i * now.outer_c) * size, scratch);
  tfc_buffer_release(held);
  return status;
}

static tfc_status launch(struct tfc_cuda_launch *l) {
  const struct matmul *s = l->ctx->state;
  const struct tfc_tensor *a = l->ctx->inputs[0], *b = l->ctx->inputs[1];
  struct tfc_tensor *c = NULL;
  struct tfc_shape shape;
  struct matmul now = *s;
  TFC_RETURN_IF_ERROR(shape_product(&a->shape, &b->shape, &now, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, a->dtype, &shape, &c));
  if (is_empty(&now)) return NULL;
  if (!now.product.k) {
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(c->data, c->size, l->stream));
    return NULL;
  }
  return multiply(l, s, now, a->data, b->data, NULL, c->data);
}

// --- Products with some rows of a matrix (runtime/exec/rewrites/cells.c) --------------------------------------------
enum { TRANSPOSED = 1 };                                     // variant: with the transposed rows
static tfc_status rows_prepare(struct tfc_cuda_prepare *p) { // inputs: a, b, first row of b, perhaps an addend
  TFC_CUDA_STATE(p, struct matmul, s);
  if (!tfc_cuda_is_constant(p, 2)) TFC_CUDA_DECLINE("the first row is not constant");
  const struct tfc_shape *a = &p->base->input_shapes[0], *b = &p->base->input_shapes[1],
                         *c = &p->base->output_shapes[0];
  if (a->rank != 2 || b->rank != 2 || c->rank != 2 || !tfc_shape_is_static(a) || !tfc_shape_is_static(b) ||
      !tfc_shape_is_static(c))
    TFC_CUDA_DECLINE("shapes are not static");
  s->transpose_b = p->variant == TRANSPOSED;
  s->first = tfc_tensor_int(p->base->input_values[2], 0);
  s->product.type = TFC_FLOAT;
  const struct tfc_shape rows = TFC_SHAPE(s->transpose_b ? c->dims[1] : a->dims[1], b->dims[1]);
  struct tfc_shape out;
  TFC_RETURN_IF_ERROR(shape_product(a, &rows, s, &out));
  if (s->first < 0 || s->first + rows.dims[0] > b->dims[0] || is_empty(s) || !s->product.k || !tfc_shape_equal(&out, c))
    TFC_CUDA_DECLINE("there are no such rows");
  TFC_RETURN_IF_ERROR(tfc_cuda_product_find(p->library, &s->product, &s->plan));
  p->scratch = tfc_cuda_product_scratch(s->plan);
  s->is_static = true;
  return NULL;
}
static tfc_status launch_rows(struct tfc_cuda_launch *l) {
  const struct matmul *s = l->ctx->state;
  const struct tfc_tensor *a = l->ctx->inputs[0], *b = l->ctx->inputs[1];
  const struct tfc_tensor *addend = l->ctx->input_count > 3 ? l->ctx->inputs[3] : NULL;
  struct tfc_tensor *c = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, TFC_FLOAT, &TFC_SHAPE(s->product.m, s->product.n), &c));
  return multiply(l, s, *s, a->data, (const float *)b->data + s->first * b->shape.dims[1], addend ? addend->data : NULL,
                  c->data);
}

// --- Products with a bias (runtime/exec/rewrites/epilogues.c) --------------------------------------------------------
enum { APART = 1 }; // variant: the library has no such product, and a kernel adds the bias
static tfc_status bias_prepare(struct tfc_cuda_prepare *p) { // inputs: a, b, bias
  TFC_CUDA_STATE(p, struct matmul, s);
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  const struct tfc_bias_product *from = p->op->state;
  struct tfc_shape out;
  s->transpose_a = from->transpose_a, s->transpose_b = from->transpose_b;
  s->rectified = from->rectified;
  s->product.type = TFC_FLOAT;
  TFC_RETURN_IF_ERROR(shape_product(&p->base->input_shapes[0], &p->base->input_shapes[1], s, &out));
  if (p->variant != APART)
    s->product.epilogue = from->rectified ? TFC_CUDA_EPILOGUE_BIAS_RECTIFIED : TFC_CUDA_EPILOGUE_BIAS;
  if (!is_empty(s) && s->product.k) {
    tfc_status failed = tfc_cuda_product_find(p->library, &s->product, &s->plan);
    p->declined = failed && p->variant != APART;
    if (failed) return failed;
    p->scratch = tfc_cuda_product_scratch(s->plan);
  }
  s->is_static = true;
  return NULL;
}

// y += bias, and perhaps y = max(y, 0)
static tfc_status add_bias(struct tfc_cuda_launch *l, const struct matmul *s, const float *bias, float *y) {
  struct tfc_cuda_chain c = {.rows = s->product.m, .columns = s->product.n, .step_count = s->rectified ? 2 : 1};
  c.operand_count = 2;
  c.operands[0] = (struct tfc_cuda_chain_operand){.data = y, .row = c.columns, .column = 1};
  c.operands[1] = (struct tfc_cuda_chain_operand){.data = (void *)(uintptr_t)bias, .column = 1};
  c.steps[0] = (struct tfc_cuda_chain_step){TFC_CUDA_CHAIN_Add, 0, 1, s->rectified ? -1 : 0};
  c.steps[1] = (struct tfc_cuda_chain_step){TFC_CUDA_CHAIN_Relu, -1, 0, 0};
  TFC_CUDA_LAUNCHED(l, tfc_cuda_chain_run(&c, l->stream));
  return NULL;
}

static tfc_status launch_bias(struct tfc_cuda_launch *l) {
  const struct matmul *s = l->ctx->state;
  const struct tfc_tensor *a = l->ctx->inputs[0], *b = l->ctx->inputs[1], *bias = l->ctx->inputs[2];
  struct tfc_tensor *c = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, TFC_FLOAT, &TFC_SHAPE(s->product.m, s->product.n), &c));
  if (is_empty(s)) return NULL;
  struct matmul plain = *s;
  if (s->product.epilogue && s->product.k) {
    tfc_status failed = multiply(l, s, *s, a->data, b->data, bias->data, c->data);
    if (tfc_status_code(failed) != TFC_UNIMPLEMENTED) return failed;
    // The library may have an algorithm with a bias for aligned operands only, and these are not as aligned as those
    // that the plan was made for.
    tfc_status_free(failed);
    plain.product.epilogue = TFC_CUDA_EPILOGUE_NONE;
    plain.is_static = false; // the plan is another one
  }
  if (s->product.k)
    TFC_RETURN_IF_ERROR(multiply(l, &plain, plain, a->data, b->data, NULL, c->data));
  else
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(c->data, c->size, l->stream));
  return add_bias(l, s, bias->data, c->data);
}

#define FLOATS OPS_BITS(OPS_FLOATS)
static const struct tfc_cuda_kernel matmul_rows[] = {
    {"MatMul", FLOATS, matmul_prepare, launch, 0},
    {"BatchMatMul", FLOATS, batch_prepare, launch, 0},
    {"BatchMatMulV2", FLOATS, batch_prepare, launch, 0},
    {"BatchMatMulV3", FLOATS, batch_prepare, launch, 0},
    {"_BiasProduct", TFC_TYPE_BIT(TFC_FLOAT), bias_prepare, launch_bias, 0},
    {"_BiasProduct", TFC_TYPE_BIT(TFC_FLOAT), bias_prepare, launch_bias, TFC_CUDA_VARIANT(APART)},
    {"_RowsProduct", TFC_TYPE_BIT(TFC_FLOAT), rows_prepare, launch_rows, 0},
    {"_RowsProductAdd", TFC_TYPE_BIT(TFC_FLOAT), rows_prepare, launch_rows, 0},
    {"_TransposedRowsProduct", TFC_TYPE_BIT(TFC_FLOAT), rows_prepare, launch_rows, TFC_CUDA_VARIANT(TRANSPOSED)},
};
TFC_CUDA_KERNELS(matmul_rows);
