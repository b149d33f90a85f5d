// Fast rows of MatMul and BatchMatMul in float32. Work is split over panels of C's columns, or over rows where there
// are too few panels; the bits do not depend on that (gemm.h).
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/scratch.h"
#include "runtime/device/cpu/kernels.h"

enum { few_rows = 12, short_k = 64, packed_chunk_bytes = 8 << 20 };

struct product { // C [m, n] = A [m, k] B [k, n]
  struct tfc_matrix a, b;
  float *c;
  int64_t m, n, k;
  int64_t row_part; // rows of a piece, a multiple of 8
  int64_t panel_part, panel_parts;
  _Atomic bool failed;
};

// One piece: some rows of some panels. B is packed where it pays: a transposed one always, a plain one where many rows
// share it.
static void run_piece(struct product *p, int64_t piece) {
  int64_t row = piece / p->panel_parts * p->row_part, first = piece % p->panel_parts * p->panel_part;
  int64_t row_end = row + p->row_part < p->m ? row + p->row_part : p->m;
  int64_t panels = tfc_gemm_panels(p->n), width = tfc_gemm_panel();
  int64_t last = first + p->panel_part < panels ? first + p->panel_part : panels;
  bool direct = p->b.column == 1 && (row_end - row < few_rows || p->k <= short_k);
  int64_t packed_first = direct ? panels - 1 : first;
  bool packs = !direct || (last == panels && p->n % width);
  float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(row_end - row, p->k) + 64);
  size_t packed_bytes = (size_t)(((packs ? last - packed_first : 0) * p->k + 8) * width) * sizeof(float);
  float *packed = tfc_thread_scratch(TFC_SCRATCH_B, packed_bytes);
  if (!a || !packed) {
    p->failed = true;
    return;
  }
  packed -= packed_first * width * p->k; // where panel 0 would be
  if (packs) tfc_gemm_pack(p->b, p->k, p->n, packed_first, last, packed);
  struct tfc_gemm_product product = {.a = p->a, .packed_b = packed, .k = p->k};
  if (direct)
    product = (struct tfc_gemm_product){
        .a = p->a, .b = p->b.data, .b_row = p->b.row, .tail = packed + (panels - 1) * width * p->k, .k = p->k};
  tfc_gemm_run(&product, 1, p->n, p->c, p->n, false, row, row_end, first, last, a);
}

static void run_pieces(void *arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) run_piece(arg, i);
}

static tfc_status multiply(struct tfc_kernel_ctx *ctx, struct product *p, int threads) {
  int64_t panels = tfc_gemm_panels(p->n), wanted = threads > 1 ? 2 * threads : 1;
  int64_t chunk = packed_chunk_bytes / (int64_t)sizeof(float) / tfc_gemm_panel() / (p->k > 0 ? p->k : 1);
  if (2.0 * (double)p->m * (double)p->n * (double)p->k < 1e6) wanted = 1; // less than a hand-over is worth
  p->panel_part = (panels + wanted - 1) / wanted;
  if (p->panel_part > chunk) p->panel_part = chunk;
  if (p->panel_part < 1) p->panel_part = 1;
  p->panel_parts = (panels + p->panel_part - 1) / p->panel_part;
  int64_t row_parts = p->panel_parts < wanted ? (wanted + p->panel_parts - 1) / p->panel_parts : 1;
  p->row_part = ((p->m + row_parts - 1) / row_parts + 7) / 8 * 8;
  if (p->row_part < 32) p->row_part = 32;
  row_parts = (p->m + p->row_part - 1) / p->row_part;
  if (wanted == 1 && p->panel_parts * row_parts == 1)
    run_piece(p, 0);
  else
    tfc_kernel_parallel_for(ctx, p->panel_parts * row_parts, 1, run_pieces, p);
  return p->failed ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory") : NULL;
}

struct state {
  bool transpose_a, transpose_b;
};

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct tfc_prepare_ctx *base = p->base;
  struct state *s = TFC_ARENA_NEW(base->arena, struct state);
  if (!s) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  bool batch = tfc_str_starts(base->node->op, "Batch");
  s->transpose_a = tfc_node_attr_bool(base->graph, base->node, batch ? "adj_x" : "transpose_a", false);
  s->transpose_b = tfc_node_attr_bool(base->graph, base->node, batch ? "adj_y" : "transpose_b", false);
  base->state = s;
  return NULL;
}

// The last two dimensions of an operand as op(X) [rows, columns].
static struct tfc_matrix operand(const struct tfc_tensor *t, bool transpose, int64_t *rows, int64_t *columns) {
  int64_t r = t->shape.dims[t->shape.rank - 2], c = t->shape.dims[t->shape.rank - 1];
  *rows = transpose ? c : r;
  *columns = transpose ? r : c;
  return (struct tfc_matrix){t->data, transpose ? 1 : c, transpose ? c : 1};
}

static tfc_status matmul(struct tfc_kernel_ctx *ctx) {
  const struct state *s = ctx->state;
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  TFC_KERNEL_CHECK(a->shape.rank == 2 && b->shape.rank == 2, "matrix product of tensors of rank %d and %d",
                   (int)a->shape.rank, (int)b->shape.rank);
  struct product p = {0};
  int64_t inner;
  p.a = operand(a, s->transpose_a, &p.m, &p.k);
  p.b = operand(b, s->transpose_b, &inner, &p.n);
  TFC_KERNEL_CHECK(inner == p.k, "matrix product of [%lld,%lld] and [%lld,%lld]: inner sizes differ", (long long)p.m,
                   (long long)p.k, (long long)inner, (long long)p.n);
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(p.m, p.n), &out));
  p.c = out->data;
  return p.m && p.n ? multiply(ctx, &p, ctx->env->threads) : NULL;
}

// Batch dimensions broadcast. Matrices of a batch run side by side, each on one core, where there are enough of them.
struct batch {
  struct tfc_kernel_ctx *ctx;
  struct product one;
  const float *a, *b;
  float *c;
  struct tfc_shape shape; // of C's batch dimensions
  int64_t a_stride[TFC_MAX_RANK], b_stride[TFC_MAX_RANK];
  _Atomic bool failed;
};

static struct product at(const struct batch *b, int64_t index) {
  struct product p = b->one;
  int64_t a_at = 0, b_at = 0, rest = index;
  for (int d = b->shape.rank - 1; d >= 0; d--) {
    int64_t i = rest % b->shape.dims[d];
    rest /= b->shape.dims[d];
    a_at += i * b->a_stride[d];
    b_at += i * b->b_stride[d];
  }
  p.a.data = b->a + a_at;
  p.b.data = b->b + b_at;
  p.c = b->c + index * p.m * p.n;
  return p;
}

static void run_batch(void *arg, int64_t begin, int64_t end) {
  struct batch *b = arg;
  for (int64_t i = begin; i < end; i++) {
    struct product p = at(b, i);
    p.panel_parts = 1;
    p.panel_part = tfc_gemm_panels(p.n);
    p.row_part = (p.m + 7) / 8 * 8;
    run_piece(&p, 0);
    if (p.failed) atomic_store(&b->failed, true);
  }
}

// Strides in elements of the batch dimensions of an operand, aligned to the output's; 0 where it repeats.
static void batch_strides(const struct tfc_tensor *t, const struct tfc_shape *batch, int64_t *strides) {
  int have = t->shape.rank - 2;
  int64_t stride = t->shape.dims[t->shape.rank - 1] * t->shape.dims[t->shape.rank - 2];
  for (int d = batch->rank - 1; d >= 0; d--) {
    int own = d - (batch->rank - have);
    strides[d] = own < 0 || t->shape.dims[own] == 1 ? 0 : stride;
    if (own >= 0) stride *= t->shape.dims[own];
  }
}

static tfc_status batch_matmul(struct tfc_kernel_ctx *ctx) {
  const struct state *s = ctx->state;
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  TFC_KERNEL_CHECK(a->shape.rank >= 2 && b->shape.rank >= 2, "matrix product of tensors of rank %d and %d",
                   (int)a->shape.rank, (int)b->shape.rank);
  struct batch batch = {.ctx = ctx, .a = a->data, .b = b->data};
  struct product *p = &batch.one;
  int64_t inner;
  p->a = operand(a, s->transpose_a, &p->m, &p->k);
  p->b = operand(b, s->transpose_b, &inner, &p->n);
  TFC_KERNEL_CHECK(inner == p->k, "matrix product of [%lld,%lld] and [%lld,%lld]: inner sizes differ", (long long)p->m,
                   (long long)p->k, (long long)inner, (long long)p->n);
  struct tfc_shape sa = a->shape, sb = b->shape;
  sa.rank -= 2, sb.rank -= 2;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&sa, &sb, &batch.shape));
  int64_t count = tfc_shape_elements(&batch.shape);
  struct tfc_shape shape = batch.shape;
  shape.dims[shape.rank++] = p->m;
  shape.dims[shape.rank++] = p->n;
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &shape, &out));
  batch.c = out->data;
  if (!p->m || !p->n || !count) return NULL;
  batch_strides(a, &batch.shape, batch.a_stride);
  batch_strides(b, &batch.shape, batch.b_stride);
  if (count >= ctx->env->threads) {
    double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    int64_t grain = flop < 5e5 ? (int64_t)(5e5 / (flop + 1)) + 1 : 1;
    tfc_kernel_parallel_for(ctx, count, grain, run_batch, &batch);
    return atomic_load(&batch.failed) ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory") : NULL;
  }
  for (int64_t i = 0; i < count; i++) {
    struct product q = at(&batch, i);
    TFC_RETURN_IF_ERROR(multiply(ctx, &q, ctx->env->threads));
  }
  return NULL;
}

static const struct tfc_cpu_kernel rows[] = {
    {"MatMul", TFC_TYPE_BIT(TFC_FLOAT), prepare, matmul},
    {"BatchMatMul", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_matmul},
    {"BatchMatMulV2", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_matmul},
};
TFC_CPU_KERNELS(rows);
