#include "runtime/ops/sparse_common.h"

#include <stdlib.h>

tfc_status ops_sparse_input(struct tfc_kernel_ctx *ctx, uint32_t indices, uint32_t values, uint32_t shape, bool inside,
                            struct ops_sparse *out) {
  const struct tfc_tensor *at = ctx->inputs[indices], *dims = ctx->inputs[shape];
  const struct tfc_tensor *v = values == TFC_NONE ? NULL : ctx->inputs[values];
  char text[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(at->shape.rank == 2, "Input indices should be a matrix but received shape %s",
                   tfc_shape_show(&at->shape, text));
  TFC_KERNEL_CHECK(dims->shape.rank == 1, "Input shape should be a vector but received shape %s",
                   tfc_shape_show(&dims->shape, text));
  TFC_KERNEL_CHECK(!v || v->shape.rank == 1, "Input values should be a vector but received shape %s",
                   tfc_shape_show(&v->shape, text));
  TFC_KERNEL_CHECK(!v || v->shape.dims[0] == at->shape.dims[0], "there are %lld indices and %lld values",
                   (long long)at->shape.dims[0], (long long)v->shape.dims[0]);
  TFC_KERNEL_CHECK(dims->shape.dims[0] == at->shape.dims[1],
                   "Dimensionality of indices (%lld) and of the shape (%lld) differ", (long long)at->shape.dims[1],
                   (long long)dims->shape.dims[0]);
  TFC_KERNEL_CHECK(dims->shape.dims[0] <= TFC_MAX_RANK, "%lld dimensions are more than %d",
                   (long long)dims->shape.dims[0], TFC_MAX_RANK);
  *out = (struct ops_sparse){at->data, at->shape.dims[0], (int)dims->shape.dims[0], v, dims->data};
  for (int64_t i = 0; inside && i < out->count; i++)
    for (int d = 0; d < out->rank; d++) {
      int64_t x = out->at[i * out->rank + d];
      TFC_KERNEL_CHECK(x >= 0 && x < out->dims[d],
                       "indices[%lld] is out of bounds: %lld is not in [0, %lld) in dimension %d", (long long)i,
                       (long long)x, (long long)out->dims[d], d);
    }
  return NULL;
}

int ops_sparse_compare(const int64_t *a, const int64_t *b, int rank) {
  for (int d = 0; d < rank; d++)
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  return 0;
}

struct sorting {
  const int64_t *at;
  int rank;
};
static int compare_elements(const void *a, const void *b, void *arg) {
  const struct sorting *s = arg;
  int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
  int c = ops_sparse_compare(s->at + p * s->rank, s->at + q * s->rank, s->rank);
  return c ? c : (p > q) - (p < q);
}
void ops_sparse_order(const int64_t *at, int64_t count, int rank, int64_t *order) {
  bool sorted = true;
  for (int64_t i = 0; i < count; i++) {
    order[i] = i;
    sorted &= i == 0 || ops_sparse_compare(at + (i - 1) * rank, at + i * rank, rank) <= 0;
  }
  if (!sorted) qsort_r(order, (size_t)count, sizeof *order, compare_elements, &(struct sorting){at, rank});
}

tfc_status ops_sparse_output(struct tfc_kernel_ctx *ctx, uint32_t first, int64_t count, int rank, tfc_dtype dtype,
                             int64_t **out_at, struct tfc_tensor **out_values) {
  struct tfc_tensor *at = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first, TFC_INT64, &TFC_SHAPE(count, rank), &at));
  if (out_values) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + 1, dtype, &TFC_SHAPE(count), out_values));
  *out_at = at->data;
  return NULL;
}
tfc_status ops_sparse_shape_output(struct tfc_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int rank) {
  struct tfc_tensor *t = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, TFC_INT64, &TFC_SHAPE(rank), &t));
  for (int d = 0; d < rank; d++) ((int64_t *)t->data)[d] = dims[d];
  return NULL;
}

tfc_status ops_shape_sparse(struct tfc_shape_ctx *ctx, uint32_t first, uint32_t i, bool with_shape) {
  struct tfc_shape dims;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 1, &dims));
  ctx->outputs[first] = TFC_SHAPE(TFC_DIM_UNKNOWN, dims.dims[0]);
  ctx->outputs[first + 1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  if (with_shape) ctx->outputs[first + 2] = TFC_SHAPE(dims.dims[0]);
  return NULL;
}
