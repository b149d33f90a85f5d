// Runs element-wise kernels: chooses the loop for the type, the runs of elements, and the cores that compute them.
#include "runtime/ops/math_elementwise.h"

#include <string.h>

tfc_status ops_unsupported_type(const struct tfc_kernel_ctx *ctx, tfc_dtype dtype) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "%.*s is not supported for %s", TFC_STR_ARG(ctx->node->op),
                         tfc_dtype_name(dtype));
}

// --- Broadcasting ------------------------------------------------------------------------------------------------
tfc_status ops_broadcast_plan(const struct tfc_shape *const *shapes, int count, struct ops_broadcast *out) {
  struct ops_broadcast p = {.shape = *shapes[0]};
  for (int k = 1; k < count; k++) {
    struct tfc_shape joined;
    TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&p.shape, shapes[k], &joined));
    p.shape = joined;
  }
  p.total = tfc_shape_elements(&p.shape);
  int64_t plain[3] = {1, 1, 1}; // the stride that an operand which is not repeated would have in dimension d
  int64_t dims[TFC_MAX_RANK], strides[3][TFC_MAX_RANK];
  int rank = 0; // dimensions are collected from the last to the first
  for (int d = p.shape.rank - 1; d >= 0; d--) {
    int64_t n = p.shape.dims[d], s[3] = {0};
    if (n == 1) continue;
    for (int k = 0; k < count; k++) {
      int e = d - (p.shape.rank - shapes[k]->rank);
      bool repeated = e < 0 || shapes[k]->dims[e] == 1;
      s[k] = repeated ? 0 : plain[k];
      if (!repeated) plain[k] *= n;
    }
    bool joins = rank > 0;
    for (int k = 0; joins && k < count; k++)
      joins = s[k] == (strides[k][rank - 1] == 0 ? 0 : strides[k][rank - 1] * dims[rank - 1]) &&
              (s[k] == 0) == (strides[k][rank - 1] == 0);
    if (joins) {
      dims[rank - 1] *= n;
    } else {
      dims[rank] = n;
      for (int k = 0; k < count; k++) strides[k][rank] = s[k];
      rank++;
    }
  }
  if (rank == 0) {
    dims[0] = 1;
    for (int k = 0; k < count; k++) strides[k][0] = 0;
    rank = 1;
  }
  p.rank = rank;
  for (int d = 0; d < rank; d++) {
    p.dims[d] = dims[rank - 1 - d];
    for (int k = 0; k < count; k++) p.strides[k][d] = strides[k][rank - 1 - d];
  }
  *out = p;
  return NULL;
}

void ops_broadcast_run(const struct ops_broadcast_job *job, int64_t begin, int64_t end) {
  const struct ops_broadcast *plan = &job->plan;
  int count = job->count, last = plan->rank - 1;
  int64_t at[TFC_MAX_RANK] = {0}, offset[3] = {0}, step[3] = {0}, rest = begin;
  if (begin >= end) return; // an empty output may have dimensions of 0, by which the code below would divide
  for (int d = last; d >= 0; d--) {
    at[d] = rest % plan->dims[d];
    rest /= plan->dims[d];
    for (int k = 0; k < count; k++) offset[k] += at[d] * plan->strides[k][d];
  }
  for (int k = 0; k < count; k++) step[k] = plan->strides[k][last] ? 1 : 0;
  while (begin < end) {
    int64_t n = plan->dims[last] - at[last];
    if (n > end - begin) n = end - begin;
    const void *p[3] = {0};
    for (int k = 0; k < count; k++) p[k] = (const char *)job->in[k] + (size_t)offset[k] * job->size[k];
    job->fn(job->arg, p, step, (char *)job->out + (size_t)begin * job->out_size, n);
    begin += n;
    at[last] += n;
    for (int k = 0; k < count; k++) offset[k] += n * step[k];
    for (int d = last; d > 0 && at[d] == plan->dims[d]; d--) {
      for (int k = 0; k < count; k++) offset[k] += plan->strides[k][d - 1] - plan->dims[d] * plan->strides[k][d];
      at[d] = 0;
      at[d - 1]++;
    }
  }
}

static void broadcast_piece(void *arg, int64_t begin, int64_t end) {
  ops_broadcast_run(arg, begin, end);
}

void ops_broadcast_all(struct tfc_kernel_ctx *ctx, struct ops_broadcast_job *job, int64_t grain) {
  if (job->plan.total == 0) return;
  if (job->plan.total <= grain)
    ops_broadcast_run(job, 0, job->plan.total);
  else
    tfc_kernel_parallel_for(ctx, job->plan.total, grain, broadcast_piece, job);
}

// --- Unary -------------------------------------------------------------------------------------------------------
struct unary_job {
  ops_unary_fn *fn;
  const char *x;
  char *y;
  size_t x_size, y_size;
};
static void unary_piece(void *arg, int64_t begin, int64_t end) {
  const struct unary_job *j = arg;
  j->fn(j->x + (size_t)begin * j->x_size, j->y + (size_t)begin * j->y_size, end - begin);
}

tfc_status ops_unary_apply(struct tfc_kernel_ctx *ctx, ops_unary_fn *fn, tfc_dtype out, int64_t grain) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  if (out == TFC_DTYPE_NONE)
    TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  else
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, out, &x->shape, &y));
  int64_t n = tfc_tensor_elements(x);
  if (n <= grain) {
    if (n > 0) fn(x->data, y->data, n);
    return NULL;
  }
  struct unary_job job = {fn, x->data, y->data, tfc_dtype_size(x->dtype), tfc_dtype_size(y->dtype)};
  tfc_kernel_parallel_for(ctx, n, grain, unary_piece, &job);
  return NULL;
}

tfc_status ops_unary_kernel(struct tfc_kernel_ctx *ctx, ops_unary_fn *const *table, tfc_dtype out, int64_t grain) {
  tfc_dtype t = ctx->inputs[0]->dtype;
  return table[t] ? ops_unary_apply(ctx, table[t], out, grain) : ops_unsupported_type(ctx, t);
}

// --- Binary ------------------------------------------------------------------------------------------------------
struct binary_job {
  ops_binary_fn *fn;
  const char *a, *b;
  char *y;
  int64_t a_step, b_step;
  size_t size, y_size;
};
static void binary_piece(void *arg, int64_t begin, int64_t end) {
  const struct binary_job *j = arg;
  j->fn(j->a + (size_t)(begin * j->a_step) * j->size, j->a_step, j->b + (size_t)(begin * j->b_step) * j->size,
        j->b_step, j->y + (size_t)begin * j->y_size, end - begin);
}

static void binary_run(void *arg, const void *const in[3], const int64_t step[3], void *y, int64_t n) {
  ops_binary_fn *const *fn = arg;
  (*fn)(in[0], step[0], in[1], step[1], y, n);
}

static tfc_status apply_binary(struct tfc_kernel_ctx *ctx, ops_binary_fn *fn, const struct tfc_tensor *a,
                               const struct tfc_tensor *b, tfc_dtype out, int64_t grain) {
  struct tfc_tensor *y = NULL;
  if (out == TFC_DTYPE_NONE) out = a->dtype;
  // If the shapes are equal or one operand is a scalar, the output is one run.
  bool a_whole = a->shape.rank != 0, b_whole = b->shape.rank != 0;
  if (!a_whole || !b_whole || tfc_shape_equal(&a->shape, &b->shape)) {
    const struct tfc_tensor *like = a_whole ? a : b;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, out, &like->shape, &y));
    int64_t n = tfc_tensor_elements(like);
    if (n <= grain) {
      if (n > 0) fn(a->data, a_whole, b->data, b_whole, y->data, n);
      return NULL;
    }
    struct binary_job job = {
        fn, a->data, b->data, y->data, a_whole, b_whole, tfc_dtype_size(a->dtype), tfc_dtype_size(out)};
    tfc_kernel_parallel_for(ctx, n, grain, binary_piece, &job);
    return NULL;
  }
  size_t size = tfc_dtype_size(a->dtype);
  struct ops_broadcast_job job = {.count = 2,
                                  .fn = binary_run,
                                  .arg = &fn,
                                  .in = {a->data, b->data},
                                  .size = {size, size},
                                  .out_size = tfc_dtype_size(out)};
  const struct tfc_shape *shapes[2] = {&a->shape, &b->shape};
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, 2, &job.plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, out, &job.plan.shape, &y));
  job.out = y->data;
  ops_broadcast_all(ctx, &job, grain);
  return NULL;
}

tfc_status ops_binary_kernel(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table, tfc_dtype out, int64_t grain) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  if (!table[a->dtype]) return ops_unsupported_type(ctx, a->dtype);
  return apply_binary(ctx, table[a->dtype], a, b, out, grain);
}

tfc_status ops_paired_kernel(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table, int64_t grain) {
  const struct tfc_tensor *a = ctx->inputs[0];
  struct tfc_tensor b = *ctx->inputs[1];
  if (!table[a->dtype]) return ops_unsupported_type(ctx, a->dtype);
  TFC_KERNEL_CHECK(tfc_tensor_elements(a) == tfc_tensor_elements(&b),
                   "The two arguments to a cwise op must have same number of elements");
  b.shape = a->shape;
  return apply_binary(ctx, table[a->dtype], a, &b, TFC_DTYPE_NONE, grain);
}
