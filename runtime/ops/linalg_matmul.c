// MatMul, batched products, and _FusedMatMul (TensorFlow's graph optimizer Grappler fuses a product with its bias and
// activation). float32, float64 and complex types use the serial BLAS; 16-bit floats are widened to float32 first;
// integers use plain loops with wrap-around.
#include "runtime/ops/linalg_matmul.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/blas.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/math_narrow.h"
#include "runtime/ops/row.h"

// --- One product, or a band of its rows or columns ----------------------------------------------------------------
struct band {
  int64_t row, rows, column, columns; // of the output
};

// Element (i, j) of op(x) [rows, columns] lies at i * down + j * right.
static void steps(enum ops_transpose t, int64_t rows, int64_t columns, int64_t *down, int64_t *right) {
  *down = t == OPS_PLAIN ? columns : 1;
  *right = t == OPS_PLAIN ? 1 : rows;
}

#define PLAIN_PRODUCT(t, r)                                                                                            \
  static void product_##t##_##r(const struct ops_matmul *mm, const struct band *z, const void *av, const void *bv,     \
                                void *ov) {                                                                            \
    int64_t ad, ar, bd, br;                                                                                            \
    steps(mm->a, mm->m, mm->k, &ad, &ar);                                                                              \
    steps(mm->b, mm->k, mm->n, &bd, &br);                                                                              \
    for (int64_t i = z->row; i < z->row + z->rows; i++) {                                                              \
      ops_##r *out = (ops_##r *)ov + i * mm->n;                                                                        \
      for (int64_t j = z->column; j < z->column + z->columns; j++) {                                                   \
        ops_##r##_u sum = 0;                                                                                           \
        const ops_##t *a = (const ops_##t *)av + i * ad, *b = (const ops_##t *)bv + j * br;                            \
        for (int64_t k = 0; k < mm->k; k++) sum += (ops_##r##_u)a[k * ar] * (ops_##r##_u)b[k * bd];                    \
        out[j] = (ops_##r)sum;                                                                                         \
      }                                                                                                                \
    }                                                                                                                  \
  }
#define PLAIN_SAME(t, ...) PLAIN_PRODUCT(t, t)
OPS_INTS(PLAIN_SAME, ~)
PLAIN_PRODUCT(i8, i32)
PLAIN_PRODUCT(u8, i32)

static CBLAS_TRANSPOSE blas_transpose(enum ops_transpose t) {
  return t == OPS_PLAIN ? CblasNoTrans : t == OPS_TRANSPOSED ? CblasTrans : CblasConjTrans;
}

static void band_product(const struct ops_matmul *mm, const struct band *z, const void *a, const void *b, void *out) {
  size_t size = tfc_dtype_size(mm->a_type);
  int m = (int)z->rows, n = (int)z->columns, k = (int)mm->k;
  int lda = (int)(mm->a == OPS_PLAIN ? mm->k : mm->m), ldb = (int)(mm->b == OPS_PLAIN ? mm->n : mm->k);
  int ldc = (int)mm->n;
  const void *pa = (const char *)a + (size_t)(z->row * (mm->a == OPS_PLAIN ? mm->k : 1)) * size;
  const void *pb = (const char *)b + (size_t)(z->column * (mm->b == OPS_PLAIN ? 1 : mm->k)) * size;
  void *pc = (char *)out + (size_t)(z->row * mm->n + z->column) * size;
  CBLAS_TRANSPOSE ta = blas_transpose(mm->a), tb = blas_transpose(mm->b);
#define PLAIN_CASE(t, ...)                                                                                             \
  case OPS_DT_##t: product_##t##_##t(mm, z, a, b, out); break;
  switch (mm->a_type) {
  case TFC_FLOAT: ops_sgemm(ta, tb, m, n, k, 1, pa, lda, pb, ldb, 0, pc, ldc); break;
  case TFC_DOUBLE: ops_dgemm(ta, tb, m, n, k, 1, pa, lda, pb, ldb, 0, pc, ldc); break;
  case TFC_COMPLEX64: ops_cgemm(ta, tb, m, n, k, pa, lda, pb, ldb, pc, ldc); break;
  case TFC_COMPLEX128: ops_zgemm(ta, tb, m, n, k, pa, lda, pb, ldb, pc, ldc); break;
  default:
    if (mm->out_type == TFC_INT32 && mm->a_type == TFC_INT8) {
      product_i8_i32(mm, z, a, b, out);
      break;
    }
    if (mm->out_type == TFC_INT32 && mm->a_type == TFC_UINT8) {
      product_u8_i32(mm, z, a, b, out);
      break;
    }
    switch (mm->a_type) {
      OPS_INTS(PLAIN_CASE, ~)
    default: break;
    }
  }
}

// --- Splitting products among threads ----------------------------------------------------------------------------
// A product of more than about 4 MFLOP is cut into at most 8 bands of rows (or of columns, if there are more columns
// than rows). Smaller products are grouped until a group has about 4 MFLOP.
struct batch_job {
  const struct ops_matmul *mm;
  const char *a, *b;
  char *out;
  const int64_t *a_index, *b_index;
  int64_t bands, band;
  bool by_rows;
};
static void batch_piece(void *arg, int64_t begin, int64_t end) {
  const struct batch_job *j = arg;
  const struct ops_matmul *mm = j->mm;
  size_t size = tfc_dtype_size(mm->a_type);
  for (int64_t i = begin; i < end; i++) {
    int64_t pair = i / j->bands, at = i % j->bands * j->band;
    struct band z = {0, mm->m, 0, mm->n};
    if (j->by_rows) {
      z.row = at;
      z.rows = mm->m - at < j->band ? mm->m - at : j->band;
    } else {
      z.column = at;
      z.columns = mm->n - at < j->band ? mm->n - at : j->band;
    }
    band_product(mm, &z, j->a + (size_t)((j->a_index ? j->a_index[pair] : pair) * mm->m * mm->k) * size,
                 j->b + (size_t)((j->b_index ? j->b_index[pair] : pair) * mm->k * mm->n) * size,
                 j->out + (size_t)(pair * mm->m * mm->n) * tfc_dtype_size(mm->out_type));
  }
}

static tfc_status widen(struct tfc_kernel_ctx *ctx, tfc_dtype type, const uint16_t *x, int64_t n,
                        struct tfc_buffer **out) {
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * 4 + 4, out));
  ops_narrow_to_float(type, x, (*out)->data, n);
  return NULL;
}

static int64_t matrices(int64_t count, const int64_t *index) {
  int64_t n = 0;
  if (!index) return count;
  for (int64_t i = 0; i < count; i++)
    if (index[i] >= n) n = index[i] + 1;
  return n;
}

tfc_status ops_matmul_batch(struct tfc_kernel_ctx *ctx, const struct ops_matmul *mm, const void *a, const void *b,
                            void *out, int64_t count, const int64_t *a_index, const int64_t *b_index) {
  int64_t total = count * mm->m * mm->n;
  if (total == 0) return NULL;
  if (mm->k == 0) {
    memset(out, 0, (size_t)total * tfc_dtype_size(mm->out_type));
    return NULL;
  }
  TFC_KERNEL_CHECK(mm->m <= INT_MAX && mm->n <= INT_MAX && mm->k <= INT_MAX, "matrix dimensions over 2^31");
  if (mm->a_type == TFC_HALF || mm->a_type == TFC_BFLOAT16) {
    struct ops_matmul wide = *mm;
    struct tfc_buffer *fa = NULL, *fb = NULL, *fo = NULL;
    tfc_status s = NULL;
    wide.a_type = wide.out_type = TFC_FLOAT;
    TFC_TRY(s, widen(ctx, mm->a_type, a, matrices(count, a_index) * mm->m * mm->k, &fa));
    TFC_TRY(s, widen(ctx, mm->a_type, b, matrices(count, b_index) * mm->k * mm->n, &fb));
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)total * 4, &fo));
    TFC_TRY(s, ops_matmul_batch(ctx, &wide, fa->data, fb->data, fo->data, count, a_index, b_index));
    ops_narrow_from_float(mm->a_type, fo->data, out, total);
  out:
    tfc_buffer_release(fa);
    tfc_buffer_release(fb);
    tfc_buffer_release(fo);
    return s;
  }
  struct batch_job job = {mm, a, b, out, a_index, b_index, 1, 0, mm->m >= mm->n};
  int64_t longer = job.by_rows ? mm->m : mm->n;
  double work = 2.0 * (double)mm->m * (double)mm->n * (double)mm->k, worth = 4e6;
  job.band = longer;
  if (work > worth && longer >= 32) {
    double pieces = work / worth < 8 ? work / worth : 8;
    job.band = (int64_t)((double)longer / pieces) + 1;
    job.band = (job.band + 15) / 16 * 16;
    job.bands = (longer + job.band - 1) / job.band;
  }
  int64_t grain = work / (double)job.bands >= worth ? 1 : (int64_t)(worth / (work / (double)job.bands)) + 1;
  tfc_kernel_parallel_for(ctx, count * job.bands, grain, batch_piece, &job);
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
struct matmul_state {
  enum ops_transpose a, b;
  tfc_dtype out;
  // 0: operands are broadcast; 1: they have the same rank and batch (BatchMatMul); 2: they are matrices (MatMul)
  int same_rank;
};

static tfc_status prepare_matmul(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct matmul_state, state);
  state->a = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false) ? OPS_TRANSPOSED : OPS_PLAIN;
  state->b = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false) ? OPS_TRANSPOSED : OPS_PLAIN;
  state->same_rank = 2;
  return NULL;
}
static tfc_status prepare_batch(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct matmul_state, state);
  state->a = tfc_node_attr_bool(ctx->graph, ctx->node, "adj_x", false) ? OPS_ADJOINT : OPS_PLAIN;
  state->b = tfc_node_attr_bool(ctx->graph, ctx->node, "adj_y", false) ? OPS_ADJOINT : OPS_PLAIN;
  state->out = tfc_node_attr_type(ctx->graph, ctx->node, "Tout", TFC_DTYPE_NONE);
  state->same_rank = tfc_str_is(ctx->node->op, "BatchMatMul");
  return NULL;
}

static tfc_status multiply(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  const struct matmul_state *state = ctx->state;
  const struct tfc_shape *sa = &a->shape, *sb = &b->shape;
  char ta[TFC_SHAPE_TEXT], tb[TFC_SHAPE_TEXT];
  struct tfc_tensor *y = NULL;
  if (sa->rank < 2 || sb->rank < 2)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "operands must have rank 2 or more: %s, %s", tfc_shape_show(sa, ta),
                           tfc_shape_show(sb, tb));
  if (state->same_rank && (sa->rank != sb->rank || (state->same_rank == 2 && sa->rank != 2)))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "In[0] and In[1] has different ndims: %s vs. %s",
                           tfc_shape_show(sa, ta), tfc_shape_show(sb, tb));
  if (!(OPS_BITS(OPS_NUMBERS) & TFC_TYPE_BIT(a->dtype))) return ops_unsupported_type(ctx, a->dtype);
  bool at = state->a != OPS_PLAIN, bt = state->b != OPS_PLAIN;
  int64_t m = sa->dims[sa->rank - (at ? 1 : 2)], k = sa->dims[sa->rank - (at ? 2 : 1)];
  int64_t k2 = sb->dims[sb->rank - (bt ? 1 : 2)], n = sb->dims[sb->rank - (bt ? 2 : 1)];
  if (k != k2)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                           tfc_shape_show(sa, ta), tfc_shape_show(sb, tb));
  struct tfc_shape batch_a = *sa, batch_b = *sb, batch, shape;
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  if (state->same_rank && !tfc_shape_equal(&batch_a, &batch_b))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "In[0] and In[1] must have the same batch dimensions: %s vs. %s",
                           tfc_shape_show(sa, ta), tfc_shape_show(sb, tb));
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&batch_a, &batch_b, &batch));
  shape = batch;
  shape.dims[shape.rank++] = m;
  shape.dims[shape.rank++] = n;
  tfc_dtype out = state->out == TFC_DTYPE_NONE ? a->dtype : state->out;
  if (b->dtype != a->dtype || (out != a->dtype && !(out == TFC_INT32 && tfc_dtype_size(a->dtype) == 1)))
    return tfc_status_make(TFC_UNIMPLEMENTED, "products of %s and %s into %s", tfc_dtype_name(a->dtype),
                           tfc_dtype_name(b->dtype), tfc_dtype_name(out));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, out, &shape, &y));
  struct ops_matmul mm = {a->dtype, out, m, n, k, state->a, state->b};
  int64_t count = tfc_shape_elements(&batch);
  if (tfc_shape_equal(&batch_a, &batch_b))
    return ops_matmul_batch(ctx, &mm, a->data, b->data, y->data, count, NULL, NULL);
  struct tfc_buffer *index = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)count * 16 + 16, &index));
  int64_t *ia = index->data, *ib = ia + count;
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, step_a = 1, step_b = 1;
    ia[i] = ib[i] = 0;
    for (int d = batch.rank - 1; d >= 0; d--) {
      int64_t x = rest % batch.dims[d];
      int ea = d - (batch.rank - batch_a.rank), eb = d - (batch.rank - batch_b.rank);
      rest /= batch.dims[d];
      if (ea >= 0) {
        if (batch_a.dims[ea] != 1) ia[i] += x * step_a;
        step_a *= batch_a.dims[ea];
      }
      if (eb >= 0) {
        if (batch_b.dims[eb] != 1) ib[i] += x * step_b;
        step_b *= batch_b.dims[eb];
      }
    }
  }
  tfc_status s = ops_matmul_batch(ctx, &mm, a->data, b->data, y->data, count, ia, ib);
  tfc_buffer_release(index);
  return s;
}

// --- A product, a bias for each column, and an activation ---------------------------------------------------------
// The activations as TensorFlow's CPU kernel computes them, for float32 only; `v` is the element with its bias.
#define ACTIVATIONS(X)                                                                                                 \
  X(None, v)                                                                                                           \
  X(Relu, v <= 0 ? 0 : v)                                                                                              \
  X(Relu6, v <= 0 ? 0 : v > 6 ? 6 : v)                                                                                 \
  X(Elu, v < 0 ? expf(v) - 1 : v)                                                                                      \
  X(LeakyRelu, v > 0 ? v : v * alpha)
enum activation {
#define ACTIVATION_ENUM(name, ...) ACTIVATION_##name,
  ACTIVATIONS(ACTIVATION_ENUM)
#undef ACTIVATION_ENUM
};
struct fused_state {
  struct matmul_state product; // must be first: `multiply` reads the state as this
  enum activation activation;
  float alpha;
};

static tfc_status prepare_fused(struct tfc_prepare_ctx *ctx) {
  static const char *const names[] = {
#define ACTIVATION_NAME(name, ...) #name,
      ACTIVATIONS(ACTIVATION_NAME)
#undef ACTIVATION_NAME
  };
  const struct tfc_attr *ops = tfc_node_attr(ctx->graph, ctx->node, "fused_ops");
  const uint32_t count = ops && ops->kind == TFC_ATTR_LIST_STRING ? ops->count : 0;
  OPS_PREPARE_STATE(ctx, struct fused_state, state);
  TFC_KERNEL_CHECK(count > 0, "Fused MatMul must have at least one fused op");
  TFC_KERNEL_CHECK(ctx->node->input_count == 3, "Fused MatMul with BiasAdd must have one extra argument, not %u",
                   ctx->node->input_count - 2);
  state->product = (struct matmul_state){
      .a = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false) ? OPS_TRANSPOSED : OPS_PLAIN,
      .b = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false) ? OPS_TRANSPOSED : OPS_PLAIN,
      .same_rank = 2,
  };
  state->alpha = (float)tfc_node_attr_float(ctx->graph, ctx->node, "leakyrelu_alpha", 0.2);
  for (size_t i = 1; count == 2 && i < sizeof names / sizeof *names; i++)
    if (tfc_str_is(ops->strings[1], names[i])) state->activation = (enum activation)i;
  if (count == (state->activation ? 2 : 1) && tfc_str_is(ops->strings[0], "BiasAdd")) return NULL;
  return tfc_status_make(TFC_UNIMPLEMENTED,
                         "fused_ops of %u operations, the last of them %.*s; what is run: BiasAdd, alone or followed "
                         "by Relu, Relu6, Elu or LeakyRelu",
                         count, TFC_STR_ARG(ops->strings[count - 1]));
}

struct finish_job {
  const struct fused_state *state;
  const float *bias;
  float *y;
  int64_t columns;
};
static void finish_rows(void *arg, int64_t begin, int64_t end) { // y [rows, columns], bias [columns]
  const struct finish_job *j = arg;
  const float alpha = j->state->alpha;
  for (int64_t row = begin; row < end; row++) {
    float *y = j->y + row * j->columns;
#define FINISH_CASE(name, ...)                                                                                         \
  case ACTIVATION_##name:                                                                                              \
    for (int64_t c = 0; c < j->columns; c++) {                                                                         \
      const float v = y[c] + j->bias[c];                                                                               \
      y[c] = __VA_ARGS__;                                                                                              \
    }                                                                                                                  \
    break;
    switch (j->state->activation) { ACTIVATIONS(FINISH_CASE) }
#undef FINISH_CASE
  }
}

static tfc_status multiply_fused(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *bias = ctx->inputs[2];
  char text[TFC_SHAPE_TEXT];
  TFC_RETURN_IF_ERROR(multiply(ctx));
  struct tfc_tensor *y = ctx->outputs[0];
  TFC_KERNEL_CHECK(bias->shape.rank == 1, "bias must be 1-dimensional: %s", tfc_shape_show(&bias->shape, text));
  TFC_KERNEL_CHECK(bias->shape.dims[0] == y->shape.dims[1],
                   "Must provide as many biases as the last dimension of the output tensor: %s for %lld columns",
                   tfc_shape_show(&bias->shape, text), (long long)y->shape.dims[1]);
  struct finish_job job = {ctx->state, bias->data, y->data, y->shape.dims[1]};
  tfc_kernel_parallel_for(ctx, y->shape.dims[0], OPS_GRAIN_COSTLY / (job.columns + 1) + 1, finish_rows, &job);
  return NULL;
}

// --- Shapes and costs ----------------------------------------------------------------------------------------------
static tfc_status product_shape(struct tfc_shape_ctx *ctx, bool at, bool bt, struct tfc_shape *a, struct tfc_shape *b,
                                int64_t *m, int64_t *n) {
  *m = *n = TFC_DIM_UNKNOWN;
  int64_t ka = TFC_DIM_UNKNOWN, kb = TFC_DIM_UNKNOWN, k;
  if (a->rank >= 2) {
    *m = a->dims[a->rank - (at ? 1 : 2)];
    ka = a->dims[a->rank - (at ? 2 : 1)];
  }
  if (b->rank >= 2) {
    kb = b->dims[b->rank - (bt ? 1 : 2)];
    *n = b->dims[b->rank - (bt ? 2 : 1)];
  }
  (void)ctx;
  tfc_status s = tfc_dim_merge(ka, kb, &k);
  return tfc_status_annotate(s, "the inner dimensions of the operands differ");
}

static tfc_status shape_matmul(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b;
  int64_t m, n;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &b));
  TFC_RETURN_IF_ERROR(product_shape(ctx, tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false),
                                    tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false), &a, &b, &m, &n));
  ctx->outputs[0] = TFC_SHAPE(m, n);
  return NULL;
}

static tfc_status shape_batch(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b, batch;
  int64_t m, n;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 2, &b));
  TFC_RETURN_IF_ERROR(product_shape(ctx, tfc_node_attr_bool(ctx->graph, ctx->node, "adj_x", false),
                                    tfc_node_attr_bool(ctx->graph, ctx->node, "adj_y", false), &a, &b, &m, &n));
  // In a BatchMatMul nothing is broadcast, so the batch dimensions of one operand are also those of the other.
  const bool same = tfc_str_is(ctx->node->op, "BatchMatMul");
  if ((a.rank < 0 && b.rank < 0) || (!same && (a.rank < 0 || b.rank < 0))) return NULL;
  if (a.rank < 0) a = tfc_shape_unknown_of_rank(b.rank);
  if (b.rank < 0) b = tfc_shape_unknown_of_rank(a.rank);
  a.rank -= 2;
  b.rank -= 2;
  if (same)
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&a, &b, &batch));
  else
    TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&a, &b, &batch));
  if (batch.rank + 2 > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  batch.dims[batch.rank++] = m;
  batch.dims[batch.rank++] = n;
  ctx->outputs[0] = batch;
  return NULL;
}

static void cost_matmul(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                        const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *a = &inputs[0];
  bool at = tfc_node_attr_bool(g, n, "transpose_a", false) || tfc_node_attr_bool(g, n, "adj_x", false);
  out->flops =
      a->rank < 2 ? 0 : 2.0 * (double)tfc_shape_elements(&outputs[0]) * (double)a->dims[a->rank - (at ? 2 : 1)];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// --- Gradients ---------------------------------------------------------------------------------------------------
static struct tfc_output product(struct tfc_grad_ctx *g, const char *op, const char *ta_name, const char *tb_name,
                                 struct tfc_output a, bool ta, struct tfc_output b, bool tb) {
  struct tfc_attr attrs[3] = {tfc_attr_bool(ta_name, ta), tfc_attr_bool(tb_name, tb)};
  uint32_t count = 2;
  if (op[strlen(op) - 1] == '3') attrs[count++] = tfc_attr_type("Tout", grad_type(g, a));
  return tfc_add(g->builder, op, "", (struct tfc_output[]){a, b}, 2, attrs, count);
}
static void product_gradients(struct tfc_grad_ctx *g, const char *op, const char *ta_name, const char *tb_name,
                              struct tfc_output a, struct tfc_output b, struct tfc_output *ga, struct tfc_output *gb) {
  bool ta = grad_attr_bool(g, ta_name, false), tb = grad_attr_bool(g, tb_name, false);
#define P(x, tx, y, ty) product(g, op, ta_name, tb_name, x, tx, y, ty)
  *ga = ta ? P(b, tb, G, true) : P(G, false, b, !tb);
  *gb = tb ? P(G, true, a, ta) : P(a, !ta, G, false);
#undef P
}
OPS_GRADIENT(MatMul) {
  product_gradients(g, "MatMul", "transpose_a", "transpose_b", grad_conj(g, X), grad_conj(g, grad_in(g, 1)),
                    &g->grad_inputs[0], &g->grad_inputs[1]);
  return NULL;
}
static tfc_status batch_gradient(struct tfc_grad_ctx *g, const char *op) {
  struct tfc_output x = X, y = grad_in(g, 1), grads[2];
  const struct tfc_shape *sx = g->input_shapes[0], *sy = g->input_shapes[1];
  product_gradients(g, op, "adj_x", "adj_y", x, y, &grads[0], &grads[1]);
  g->grad_inputs[0] = grads[0];
  g->grad_inputs[1] = grads[1];
  struct tfc_shape bx = *sx, by = *sy;
  bx.rank -= 2;
  by.rank -= 2;
  if (bx.rank >= 0 && by.rank >= 0) {
    if (bx.rank == 0 && by.rank == 0) return NULL;
    if (tfc_shape_is_static(&bx) && tfc_shape_equal(&bx, &by)) return NULL;
  }
  // Batch dimensions may have been broadcast: sum over those that were.
  struct tfc_output shapes[2] = {grad_shape(g, x, sx, TFC_INT32), grad_shape(g, y, sy, TFC_INT32)};
  struct tfc_output axes =
      grad_op2(g, "BroadcastGradientArgs", grad_range(g, shapes[0], 0, -2), grad_range(g, shapes[1], 0, -2));
  for (int i = 0; i < 2; i++) {
    struct tfc_output sum = grad_sum(g, grads[i], (struct tfc_output){axes.node, i}, false);
    g->grad_inputs[i] = g_reshape(g, sum, shapes[i]);
  }
  return NULL;
}
OPS_GRADIENT(BatchMatMul) {
  return batch_gradient(g, "BatchMatMul");
}
OPS_GRADIENT(BatchMatMulV2) {
  return batch_gradient(g, "BatchMatMulV2");
}
OPS_GRADIENT(BatchMatMulV3) {
  return batch_gradient(g, "BatchMatMulV3");
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define BATCH(op)                                                                                                      \
  .types = OPS_BITS(OPS_NUMBERS), .shape = shape_batch, .cost = cost_matmul, .prepare = prepare_batch,                 \
  .kernel = multiply, .gradient = gradient_##op
#define BATCH_SAMPLES                                                                                                  \
  "float[2,3,4], float[2,4,5]; double[2,3,4], double[2,5,4] {adj_y=true}; float[2,4,3], float[2,4,5] {adj_x=true}"

static const struct tfc_op_def linalg_matmul_rows[] = {
    {.name = "MatMul",
     .flags = TFC_OP_FINISHES,
     .role = TFC_ROLE_PRODUCT,
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false, transpose_b: bool = false, T: {bfloat16, half, float, double, int32, int64, "
              "uint8, uint16, uint32, uint64, complex64, complex128}",
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_matmul,
     .cost = cost_matmul,
     .prepare = prepare_matmul,
     .kernel = multiply,
     .gradient = gradient_MatMul,
     .samples = "float[3,4], float[4,5]; float[4,3], float[4,5] {transpose_a=true}; double[3,4], double[5,4] "
                "{transpose_b=true}; float[4,3], float[5,4] {transpose_a=true, transpose_b=true}; "
                "float[0,2], float[2,1]; float[2,0], float[0,3]"},
    {.name = "_FusedMatMul",
     .inputs = "a: T, b: T, args: num_args * T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false, transpose_b: bool = false, T: {bfloat16, half, float}, num_args: int >= 0, "
              "fused_ops: list(string) = [], epsilon: float = 0.0001, leakyrelu_alpha: float = 0.2",
     .types = TFC_TYPE_BIT(TFC_FLOAT),
     .shape = shape_matmul,
     .cost = cost_matmul,
     .prepare = prepare_fused,
     .kernel = multiply_fused},
    {.name = "BatchMatMul",
     .plan_trait = TFC_PLAN_BATCHED,
     .inputs = "x: T, y: T",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}, adj_x: bool = false, adj_y: "
              "bool = false",
     BATCH(BatchMatMul),
     .host = {"T", TFC_INT32_BIT},
     .samples = BATCH_SAMPLES},
    {.name = "BatchMatMulV2",
     .plan_trait = TFC_PLAN_BATCHED,
     .inputs = "x: T, y: T",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
              "complex128}, adj_x: bool = false, adj_y: bool = false",
     BATCH(BatchMatMulV2),
     .host = {"T", TFC_INT32_BIT},
     .samples = BATCH_SAMPLES "; float[2,1,3,4], float[3,4,5]"},
    {.name = "BatchMatMulV3",
     .plan_trait = TFC_PLAN_BATCHED,
     .inputs = "x: Ta, y: Tb",
     .outputs = "output: Tout",
     .attrs =
         "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}, Tb: {bfloat16, "
         "half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}, Tout: {bfloat16, half, float, "
         "double, int16, int32, int64, complex64, complex128}, adj_x: bool = false, adj_y: bool = false",
     BATCH(BatchMatMulV3),
     .host = {"Ta", TFC_INT32_BIT},
     .samples = "float[2,3,4], float[2,4,5] {Tout=float}"},
};
TFC_REGISTER_OPS(linalg_matmul_rows);
