// The fast kernel of Einsum for float32, float16 and bfloat16. It computes matrix products that read their operands in
// place with strides, instead of transposing them first. 16-bit floats are computed in float32, bfloat16 with the
// processor's own dot products where it has them, and rounded once, at the end.
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cpu/constants.h"
#include "runtime/device/cpu/kernels.h"
#include "runtime/device/cpu/narrow.h"
#include "runtime/host/gemm/bfloat.h"
#include "runtime/host/gemm/products.h"
#include "runtime/host/gemm/scratch.h"
#include "runtime/ops/linalg_einsum.h"
#include "runtime/ops/math_narrow.h"

struct state {
  struct ops_einsum_products form;
  float *constant; // B, packed when the plan was made; NULL: B is not constant, or differs between the products
};

static void release(void *state) {
  free(((struct state *)state)->constant);
}

static void pack_constant(const struct tfc_cpu_prepare *p, struct state *s) {
  const struct ops_einsum_products *form = &s->form;
  const struct tfc_tensor *b = p->base->input_values ? p->base->input_values[!form->swapped] : NULL;
  if (!b || b->dtype != TFC_FLOAT) return;
  for (int d = 0; d < form->rank; d++)
    if (form->b[d]) return;
  s->constant = tfc_cpu_pack_constant(p->device, (struct tfc_matrix){b->data, form->b_row, form->b_column}, form->m,
                                      form->k, form->n);
  if (s->constant) p->base->release = release;
}

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct tfc_prepare_ctx *base = p->base;
  struct state *s = TFC_ARENA_NEW(base->arena, struct state);
  if (!s) return tfc_status_no_memory(NULL);
  if (base->node->input_count != 2) return tfc_status_make(TFC_UNIMPLEMENTED, "one operand");
  const struct tfc_shape *shapes[2] = {&base->input_shapes[0], &base->input_shapes[1]};
  if (!tfc_shape_is_static(shapes[0]) || !tfc_shape_is_static(shapes[1]))
    return tfc_status_make(TFC_UNIMPLEMENTED, "shapes that are not known");
  TFC_RETURN_IF_ERROR(ops_einsum_as_products(base->graph, base->node, shapes, &s->form));
  base->state = s;
  pack_constant(p, s);
  return NULL;
}

struct einsum_job {
  const struct ops_einsum_products *p;
  const float *a, *b, *packed_b;
  char *c;
  tfc_dtype type;
  bool split;
  _Atomic bool failed;
};

static void offsets(const struct ops_einsum_products *p, int64_t index, int64_t *a, int64_t *b, int64_t *c) {
  *a = *b = *c = 0;
  for (int d = p->rank - 1; d >= 0; d--) {
    const int64_t i = index % p->dims[d];
    index /= p->dims[d];
    *a += i * p->a[d], *b += i * p->b[d], *c += i * p->c[d];
  }
}

static struct tfc_product product_at(const struct einsum_job *j, int64_t index, int64_t *out_c) {
  const struct ops_einsum_products *p = j->p;
  int64_t a, b;
  offsets(p, index, &a, &b, out_c);
  return (struct tfc_product){.a = {j->a + a, p->a_row, p->a_column},
                              .b = {j->b + b, p->b_row, p->b_column},
                              .packed_b = j->packed_b,
                              .k = p->k};
}

// Copies rows [begin, end) of a product [m, n] to their places in the result.
static void put_rows(const struct einsum_job *j, const float *rows, int64_t c, int64_t begin, int64_t end) {
  const struct ops_einsum_products *p = j->p;
  for (int64_t i = begin; i < end; i++) {
    const float *row = rows + i * p->n;
    const int64_t at = c + i * p->c_row;
    if (j->type == TFC_FLOAT)
      memcpy((float *)(void *)j->c + at, row, (size_t)p->n * sizeof *row);
    else
      ops_narrow_from_float(j->type, row, (uint16_t *)(void *)j->c + at, p->n);
  }
}

static bool in_place(const struct einsum_job *j) {
  return j->type == TFC_FLOAT && (j->p->c_row == j->p->n || j->p->m == 1);
}

static void run_batch(void *arg, int64_t begin, int64_t end) {
  struct einsum_job *j = arg;
  const struct ops_einsum_products *p = j->p;
  float *rows = in_place(j) ? NULL : tfc_thread_scratch(TFC_SCRATCH_IMAGE, (size_t)(p->m * p->n) * sizeof *rows);
  if (!rows && !in_place(j)) {
    j->failed = true;
    return;
  }
  for (int64_t i = begin; i < end; i++) {
    int64_t c;
    const struct tfc_product product = product_at(j, i, &c);
    tfc_status s = tfc_products_run_serial(&product, 1, p->m, p->n, j->split, rows ? rows : (float *)(void *)j->c + c);
    if (s) j->failed = true;
    tfc_status_free(s);
    if (rows) put_rows(j, rows, c, 0, p->m);
  }
}

struct rows_job {
  const struct einsum_job *job;
  const float *rows;
  int64_t c;
};
static void put_range(void *arg, int64_t begin, int64_t end) {
  const struct rows_job *r = arg;
  put_rows(r->job, r->rows, r->c, begin, end);
}

// --- bfloat16 with the processor's dot products ------------------------------------------------------------------
struct bfloat_job {
  const struct ops_einsum_products *p;
  const uint16_t *a, *b;
  uint16_t *c;
};

static struct tfc_bfloat_product bfloat_at(const void *arg, int64_t index) {
  const struct bfloat_job *j = arg;
  const struct ops_einsum_products *p = j->p;
  int64_t a, b, c;
  offsets(p, index, &a, &b, &c);
  return (struct tfc_bfloat_product){.a = {j->a + a, p->a_row, p->a_column},
                                     .b = {j->b + b, p->b_row, p->b_column},
                                     .m = p->m,
                                     .k = p->k,
                                     .n = p->n,
                                     .c = j->c + c,
                                     .c_row = p->c_row};
}

static tfc_status einsum(struct tfc_kernel_ctx *ctx) {
  const struct state *state = ctx->state;
  const struct ops_einsum_products *p = &state->form;
  const struct tfc_tensor *a = ctx->inputs[p->swapped], *b = ctx->inputs[!p->swapped];
  struct tfc_buffer *held[3] = {NULL};
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  int64_t count = 1;
  struct einsum_job job = {.p = p, .type = a->dtype, .split = tfc_products_may_split(ctx)};
  if (!job.split) job.packed_b = state->constant;
  for (int d = 0; d < p->rank; d++) count *= p->dims[d];
  TFC_TRY(s, tfc_kernel_output(ctx, 0, a->dtype, &p->out, &y));
  job.c = y->data;
  if (!count || !p->m || !p->n) goto out;
  if (a->dtype == TFC_BFLOAT16 && tfc_bfloat_available()) {
    const struct bfloat_job bfloat = {p, a->data, b->data, y->data};
    return tfc_bfloat_run_all(ctx, count, bfloat_at, &bfloat);
  }
  TFC_TRY(s, tfc_cpu_widen(ctx, a, &held[0], &job.a));
  TFC_TRY(s, tfc_cpu_widen(ctx, b, &held[1], &job.b));
  if (count >= ctx->env->threads && (count > 1 || ctx->env->threads == 1)) {
    const double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    tfc_kernel_parallel_for(ctx, count, flop < 5e5 ? (int64_t)(5e5 / (flop + 1)) + 1 : 1, run_batch, &job);
    if (job.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
    goto out;
  }
  if (!in_place(&job)) TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(p->m * p->n) * sizeof(float), &held[2]));
  for (int64_t i = 0; i < count; i++) {
    int64_t c;
    const struct tfc_product product = product_at(&job, i, &c);
    float *rows = held[2] ? held[2]->data : (float *)(void *)job.c + c;
    TFC_TRY(s, tfc_products_run(ctx, &product, 1, p->m, p->n, false, rows));
    struct rows_job put = {&job, rows, c};
    if (held[2]) tfc_kernel_parallel_for(ctx, p->m, 32768 / (p->n + 1) + 1, put_range, &put);
  }
out:
  for (int i = 0; i < 3; i++) tfc_buffer_release(held[i]);
  return s;
}

static const struct tfc_cpu_kernel rows[] = {
    {"Einsum", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_HALF) | TFC_TYPE_BIT(TFC_BFLOAT16), prepare, einsum, 0},
};
TFC_CPU_KERNELS(rows);
