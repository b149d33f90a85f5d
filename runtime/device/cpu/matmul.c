// Fast kernels of MatMul and BatchMatMul for float32 and 16-bit floats. The latter are computed in float32, bfloat16
// with the processor's own dot products where it has them, and rounded once, at the end. A constant right side is
// packed when the plan is made. If another right side is used a second time in a step with the same contents (for
// example a weight in a loop), it is packed, and the packed form is kept for the rest of the step.
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/memory_account.h"
#include "runtime/device/cpu/constants.h"
#include "runtime/device/cpu/kernels.h"
#include "runtime/device/cpu/narrow.h"
#include "runtime/host/gemm/bfloat.h"
#include "runtime/host/gemm/products.h"

struct kept {         // a packed B that is kept for the rest of the step
  _Atomic bool taken; // a thread uses it; several threads may run one plan at once, and another one then packs B itself
  int64_t step;       // with `stamp`: the step and the contents of B that it was made from; -1: none
  uint64_t stamp;
  const float *data;
  int64_t k, n;
  bool packed; // `memory` holds the packed B; false: this step has used B only once so far
  bool split;  // packed for the tile unit
  float *memory;
  size_t bytes;
  struct tfc_memory_account *account; // the account on which `bytes` are counted
};
struct state {
  bool transpose_a, transpose_b;
  bool same_shapes;  // for a sum: neither term is broadcast
  struct kept *kept; // NULL for batches, which keep nothing
  float *constant;   // the constant B [k, n], packed; NULL: B is packed in each step if that pays
};

// Whether there is room to keep a packed matrix. That only saves time, and tensors may need the memory: so under a
// limit, half of the limit must stay free.
static bool has_room(const struct tfc_memory_account *a, size_t bytes) {
  uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed), most = a->limit / 2;
  return a->limit == UINT64_MAX || (bytes <= most && taken <= most - bytes);
}

static void drop(struct kept *kept) {
  free(kept->memory);
  if (kept->bytes) tfc_account_give(kept->account, kept->bytes);
  kept->memory = NULL, kept->bytes = 0;
}

static void release(void *state) {
  struct state *s = state;
  if (s->kept) drop(s->kept);
  free(s->kept);
  free(s->constant);
}

// Variants of the rows.
enum {
  BATCH = 1,
  SAME_SHAPES = 2, // the terms of a sum, or the operands of a batch, have the same shape: nothing is broadcast
  SUM = 4,         // a product that is added to input 0
};

// Packs a constant B when the plan is made, because packing takes as long as multiplying it by some dozen rows.
static void pack_constant(const struct tfc_cpu_prepare *p, struct state *s) {
  const struct tfc_prepare_ctx *base = p->base;
  if (!base->input_values || !base->input_values[1] || base->input_dtypes[0] != TFC_FLOAT) return;
  const struct tfc_shape *a = &base->input_shapes[0], *b = &base->input_values[1]->shape;
  if (!tfc_shape_is_static(a) || a->rank < 2 || b->rank != 2) return;
  const bool joins = !s->transpose_a; // all matrices of a batch are multiplied together, as the rows of one matrix
  const int64_t rows =
      joins ? tfc_shape_elements(a) / (a->dims[a->rank - 1] ? a->dims[a->rank - 1] : 1) : a->dims[a->rank - 1];
  const int64_t columns = b->dims[1];
  const struct tfc_matrix matrix = {base->input_values[1]->data, s->transpose_b ? 1 : columns,
                                    s->transpose_b ? columns : 1};
  s->constant = tfc_cpu_pack_constant(p->device, matrix, rows, b->dims[s->transpose_b], b->dims[!s->transpose_b]);
  if (s->constant) p->base->release = release;
}

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct tfc_prepare_ctx *base = p->base;
  struct state *s = TFC_ARENA_NEW(base->arena, struct state);
  if (!s) return tfc_status_no_memory(NULL);
  const bool batch = p->variant & BATCH;
  s->transpose_a = tfc_node_attr_bool(base->graph, base->node, batch ? "adj_x" : "transpose_a", false);
  s->transpose_b = tfc_node_attr_bool(base->graph, base->node, batch ? "adj_y" : "transpose_b", false);
  s->same_shapes = p->variant & SAME_SHAPES;
  base->state = s;
  if (!batch && base->input_dtypes[0] == TFC_FLOAT) {
    s->kept = calloc(1, sizeof *s->kept);
    if (!s->kept) return tfc_status_no_memory(NULL);
    s->kept->step = -1;
    base->release = release;
  }
  if (!(p->variant & SUM)) pack_constant(p, s);
  return NULL;
}

// Makes `p` use the packed B if this step has used B before. True: the caller must clear kept->taken after the product.
static bool use_kept(struct tfc_kernel_ctx *ctx, struct kept *kept, struct tfc_product *p, int64_t m, int64_t n) {
  struct tfc_buffer *buffer = ctx->inputs[1]->buffer; // NULL: the plan assigned the memory, so the operation that
                                                      // writes it runs once in a step
  if (m == 1) return false; // a vector uses every element of B once, so packing B gains nothing
  if (!kept || !buffer || atomic_exchange_explicit(&kept->taken, true, memory_order_acquire)) return false;
  uint64_t stamp = tfc_buffer_stamp(buffer);
  if (kept->step != ctx->env->step_id || kept->stamp != stamp || kept->data != p->b.data || kept->k != p->k ||
      kept->n != n) {
    kept->step = ctx->env->step_id, kept->stamp = stamp, kept->data = p->b.data, kept->k = p->k, kept->n = n;
    kept->packed = false;
    return true;
  }
  bool split = tfc_products_choose_split(ctx, m, n, p->k, tfc_split_blocks(p->k), true);
  if (kept->packed && kept->split != split) return true;
  size_t bytes = split ? tfc_split_packed_bytes(p->k, n) : (tfc_gemm_packed_bytes(p->k, n) + 63) / 64 * 64;
  if (!kept->packed && kept->bytes < bytes) {
    drop(kept);
    kept->account = tfc_account_current();
    if (has_room(kept->account, bytes) &&
        tfc_account_take(kept->account, bytes)) { // else B is packed again for every product
      kept->memory = aligned_alloc(64, bytes);
      if (kept->memory)
        kept->bytes = bytes;
      else
        tfc_account_give(kept->account, bytes);
    }
  }
  if (!kept->memory) return true;
  if (!kept->packed && split)
    tfc_split_pack_b(&(struct tfc_split_matrix){.matrix = p->b}, p->k, n, 0, tfc_split_sides(n), kept->memory);
  else if (!kept->packed)
    tfc_products_pack(ctx, p->b, p->k, n, kept->memory);
  kept->packed = true, kept->split = split;
  if (split)
    p->split_b = kept->memory;
  else
    p->packed_b = kept->memory;
  return true;
}

// Returns the matrix op(X) [rows, columns] in the last two dimensions of an operand.
static struct tfc_matrix operand(const struct tfc_tensor *t, bool transpose, int64_t *rows, int64_t *columns) {
  int64_t r = t->shape.dims[t->shape.rank - 2], c = t->shape.dims[t->shape.rank - 1];
  *rows = transpose ? c : r;
  *columns = transpose ? r : c;
  return (struct tfc_matrix){t->data, transpose ? 1 : c, transpose ? c : 1};
}

// Finds the last two dimensions of C, and the first matrices of A and B.
static tfc_status operands(const struct tfc_kernel_ctx *ctx, struct tfc_product *out, int64_t *out_m, int64_t *out_n) {
  const struct state *s = ctx->state;
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  TFC_KERNEL_CHECK(a->shape.rank >= 2 && b->shape.rank >= 2, "matrix product of tensors of rank %d and %d",
                   (int)a->shape.rank, (int)b->shape.rank);
  int64_t inner;
  *out = (struct tfc_product){0};
  out->a = operand(a, s->transpose_a, out_m, &out->k);
  out->b = operand(b, s->transpose_b, &inner, out_n);
  TFC_KERNEL_CHECK(inner == out->k, "matrix product of [%lld,%lld] and [%lld,%lld]: inner sizes differ",
                   (long long)*out_m, (long long)out->k, (long long)inner, (long long)*out_n);
  return NULL;
}

static tfc_status matmul(struct tfc_kernel_ctx *ctx) {
  struct tfc_product p;
  int64_t m, n;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 2 && ctx->inputs[1]->shape.rank == 2,
                   "matrix product of tensors of rank %d and %d", (int)ctx->inputs[0]->shape.rank,
                   (int)ctx->inputs[1]->shape.rank);
  TFC_RETURN_IF_ERROR(operands(ctx, &p, &m, &n));
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(m, n), &out));
  const struct state *state = ctx->state;
  struct kept *kept = state->kept;
  if (state->constant && !tfc_products_may_split(ctx)) p.packed_b = state->constant;
  bool taken = !p.packed_b && use_kept(ctx, kept, &p, m, n);
  tfc_status s = tfc_products_run_finished(ctx, &p, m, n, out->data);
  if (taken) atomic_store_explicit(&kept->taken, false, memory_order_release);
  return s;
}

// Computes input 0 + product [m, n], where one of the two is broadcast to the shape of the other.
static tfc_status add_repeated(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n) {
  tfc_status s = NULL;
  struct tfc_buffer *buffer = NULL;
  struct tfc_tensor *out = NULL;
  struct tfc_shape to = ctx->inputs[0]->shape, shape;
  const float *added = ctx->inputs[0]->data;
  TFC_TRY(s, tfc_shape_broadcast(&to, &TFC_SHAPE(m, n), &shape));
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(m * n) * sizeof(float) + 1, &buffer));
  TFC_TRY(s, tfc_products_run(ctx, p, 1, m, n, false, buffer->data));
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_FLOAT, &shape, &out));
  const float *product = buffer->data;
  for (int64_t i = 0; i < shape.dims[0]; i++)
    for (int64_t j = 0; j < shape.dims[1]; j++)
      ((float *)out->data)[i * shape.dims[1] + j] =
          added[(to.dims[0] == 1 ? 0 : i * to.dims[1]) + (to.dims[1] == 1 ? 0 : j)] +
          product[(m == 1 ? 0 : i * n) + (n == 1 ? 0 : j)];
out:
  tfc_buffer_release(buffer);
  return s;
}

enum { MOST_TERMS = 16 };
// Input 0 plus several matrix products: of inputs 1 and 2, of inputs 3 and 4, and so on, added in this order. All must
// have the shape of input 0; nothing is broadcast. The output may have the memory of input 0.
static tfc_status add_products(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *to = ctx->inputs[0];
  const int64_t count = ctx->input_count / 2;
  struct tfc_kernel_ctx factors = *ctx;
  struct tfc_product products[MOST_TERMS];
  TFC_KERNEL_CHECK(count <= MOST_TERMS, "a sum of %lld matrix products", (long long)count);
  for (int64_t i = 0; i < count; i++) {
    int64_t m, n;
    factors.inputs = ctx->inputs + 1 + 2 * i;
    TFC_RETURN_IF_ERROR(operands(&factors, &products[i], &m, &n));
    TFC_KERNEL_CHECK(tfc_shape_equal(&to->shape, &TFC_SHAPE(m, n)),
                     "a matrix product of [%lld,%lld] added to another shape", (long long)m, (long long)n);
  }
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &to->shape, &out));
  if (out->data != to->data && to->size) memcpy(out->data, to->data, to->size);
  return tfc_products_run(ctx, products, count, to->shape.dims[0], to->shape.dims[1], true, out->data);
}

// Adds the product of the last two inputs to the first input. The output may have the memory of the first input.
static tfc_status add_product(struct tfc_kernel_ctx *ctx) {
  if (ctx->input_count > 3) return add_products(ctx);
  const struct tfc_tensor *to = ctx->inputs[0];
  struct tfc_kernel_ctx factors = *ctx;
  factors.inputs++;
  struct tfc_product p;
  int64_t m, n;
  TFC_RETURN_IF_ERROR(operands(&factors, &p, &m, &n));
  const bool equal = tfc_shape_equal(&to->shape, &TFC_SHAPE(m, n));
  if (!equal && to->shape.rank == 2 && !((const struct state *)ctx->state)->same_shapes)
    return add_repeated(ctx, &p, m, n);
  TFC_KERNEL_CHECK(equal, "a matrix product of [%lld,%lld] added to another shape", (long long)m, (long long)n);
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &to->shape, &out));
  if (out->data != to->data && to->size) memcpy(out->data, to->data, to->size);
  struct kept *kept = ((const struct state *)ctx->state)->kept;
  bool taken = use_kept(&factors, kept, &p, m, n);
  tfc_status s = tfc_products_run(ctx, &p, 1, m, n, true, out->data);
  if (taken) atomic_store_explicit(&kept->taken, false, memory_order_release);
  return s;
}

// A product of batches of matrices, whose batch dimensions may be broadcast. If there are enough matrices, they are
// computed at the same time, each on one core.
struct batch {
  struct tfc_product first;
  int64_t m, n;
  float *c;
  bool split;
  struct tfc_shape shape; // of C's batch dimensions
  int64_t a_stride[TFC_MAX_RANK], b_stride[TFC_MAX_RANK];
  _Atomic bool failed;
};

// Finds where the matrices of a product begin, in elements.
static void offsets(const struct batch *b, int64_t index, int64_t *out_a, int64_t *out_b) {
  *out_a = *out_b = 0;
  for (int d = b->shape.rank - 1; d >= 0; d--) {
    int64_t i = index % b->shape.dims[d];
    index /= b->shape.dims[d];
    *out_a += i * b->a_stride[d];
    *out_b += i * b->b_stride[d];
  }
}

static struct tfc_product at(const struct batch *b, int64_t index) {
  struct tfc_product p = b->first;
  int64_t in_a, in_b;
  offsets(b, index, &in_a, &in_b);
  p.a.data += in_a, p.b.data += in_b;
  return p;
}

static void run_batch(void *arg, int64_t begin, int64_t end) {
  struct batch *b = arg;
  for (int64_t i = begin; i < end; i++) {
    struct tfc_product p = at(b, i);
    tfc_status s = tfc_products_run_serial(&p, 1, b->m, b->n, b->split, b->c + i * b->m * b->n);
    if (s) b->failed = true;
    tfc_status_free(s);
  }
}

// Finds the strides, in elements, of an operand along the output's batch dimensions; 0 for a dimension that is
// broadcast.
static void batch_strides(const struct tfc_tensor *t, const struct tfc_shape *batch, int64_t *strides) {
  int have = t->shape.rank - 2;
  int64_t stride = t->shape.dims[t->shape.rank - 1] * t->shape.dims[t->shape.rank - 2];
  for (int d = batch->rank - 1; d >= 0; d--) {
    int own = d - (batch->rank - have);
    strides[d] = own < 0 || t->shape.dims[own] == 1 ? 0 : stride;
    if (own >= 0) stride *= t->shape.dims[own];
  }
}

static tfc_status run_all(struct tfc_kernel_ctx *ctx, struct batch *batch, int64_t count) {
  if (count < ctx->env->threads) {
    for (int64_t i = 0; i < count; i++) {
      struct tfc_product p = at(batch, i);
      TFC_RETURN_IF_ERROR(tfc_products_run(ctx, &p, 1, batch->m, batch->n, false, batch->c + i * batch->m * batch->n));
    }
    return NULL;
  }
  double flop = 2.0 * (double)batch->m * (double)batch->n * (double)batch->first.k;
  tfc_kernel_parallel_for(ctx, count, flop < 5e5 ? (int64_t)(5e5 / (flop + 1)) + 1 : 1, run_batch, batch);
  return batch->failed ? tfc_status_no_memory(NULL) : NULL;
}

// --- bfloat16 with the processor's dot products ------------------------------------------------------------------
struct bfloat_batch {
  const struct batch *batch;
  const uint16_t *a, *b;
  uint16_t *c;
};

static struct tfc_bfloat_product bfloat_at(const void *arg, int64_t index) {
  const struct bfloat_batch *j = arg;
  const struct batch *b = j->batch;
  const struct tfc_product *p = &b->first;
  int64_t in_a, in_b;
  offsets(b, index, &in_a, &in_b);
  return (struct tfc_bfloat_product){.a = {j->a + in_a, p->a.row, p->a.column},
                                     .b = {j->b + in_b, p->b.row, p->b.column},
                                     .m = b->m,
                                     .k = p->k,
                                     .n = b->n,
                                     .c = j->c + index * b->m * b->n,
                                     .c_row = b->n};
}

static tfc_status run_bfloat(struct tfc_kernel_ctx *ctx, const struct batch *batch, int64_t count,
                             struct tfc_tensor *out) {
  const struct bfloat_batch j = {batch, ctx->inputs[0]->data, ctx->inputs[1]->data, out->data};
  return tfc_bfloat_run_all(ctx, count, bfloat_at, &j);
}

static tfc_status batch_matmul(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  struct batch batch = {0};
  TFC_RETURN_IF_ERROR(operands(ctx, &batch.first, &batch.m, &batch.n));
  struct tfc_shape sa = a->shape, sb = b->shape;
  sa.rank -= 2, sb.rank -= 2;
  TFC_KERNEL_CHECK(!((const struct state *)ctx->state)->same_shapes || tfc_shape_equal(&sa, &sb),
                   "In[0] and In[1] must have the same batch dimensions");
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&sa, &sb, &batch.shape));
  int64_t count = tfc_shape_elements(&batch.shape);
  struct tfc_shape shape = batch.shape;
  TFC_KERNEL_CHECK(shape.rank + 2 <= TFC_MAX_RANK, "a batch of %d dimensions", (int)shape.rank);
  shape.dims[shape.rank++] = batch.m;
  shape.dims[shape.rank++] = batch.n;
  struct tfc_tensor *out = NULL;
  TFC_KERNEL_CHECK(a->dtype == b->dtype, "a product of %s and %s", tfc_dtype_name(a->dtype), tfc_dtype_name(b->dtype));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &out));
  batch.split = tfc_products_may_split(ctx);
  if (!batch.m || !batch.n || !count) return NULL;
  const struct state *state = ctx->state;
  if (b->shape.rank == 2 && !state->transpose_a) { // the rows of all matrices are multiplied as the rows of one
    batch.m *= count, count = 1;
    batch.shape.rank = 0;
  }
  batch_strides(a, &batch.shape, batch.a_stride);
  batch_strides(b, &batch.shape, batch.b_stride);
  if (a->dtype == TFC_FLOAT) {
    batch.c = out->data;
    if (state->constant && !batch.split) batch.first.packed_b = state->constant;
    return run_all(ctx, &batch, count);
  }
  if (a->dtype == TFC_BFLOAT16 && tfc_bfloat_available()) return run_bfloat(ctx, &batch, count, out);
  struct tfc_buffer *held[3] = {NULL};
  tfc_status s = NULL;
  const int64_t n = count * batch.m * batch.n;
  TFC_TRY(s, tfc_cpu_widen(ctx, a, &held[0], &batch.first.a.data));
  TFC_TRY(s, tfc_cpu_widen(ctx, b, &held[1], &batch.first.b.data));
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)n * sizeof(float), &held[2]));
  batch.c = held[2]->data;
  TFC_TRY(s, run_all(ctx, &batch, count));
  tfc_cpu_narrow(ctx, a->dtype, batch.c, out->data, n);
out:
  for (int i = 0; i < 3; i++) tfc_buffer_release(held[i]);
  return s;
}

enum { NARROW = TFC_TYPE_BIT(TFC_HALF) | TFC_TYPE_BIT(TFC_BFLOAT16) };
static const struct tfc_cpu_kernel rows[] = {
    {"MatMul", TFC_TYPE_BIT(TFC_FLOAT), prepare, matmul, 0},
    {"_AddProduct", TFC_TYPE_BIT(TFC_FLOAT), prepare, add_product, SUM},
    {"_AddNProduct", TFC_TYPE_BIT(TFC_FLOAT), prepare, add_product, SUM | SAME_SHAPES},
    {"BatchMatMul", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_matmul, BATCH | SAME_SHAPES},
    {"BatchMatMulV2", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_matmul, BATCH},
    {"MatMul", NARROW, prepare, batch_matmul, SAME_SHAPES},
    {"BatchMatMul", NARROW, prepare, batch_matmul, BATCH | SAME_SHAPES},
    {"BatchMatMulV2", NARROW, prepare, batch_matmul, BATCH},
};
TFC_CPU_KERNELS(rows);
