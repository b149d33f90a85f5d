#include "runtime/ops/sparse_parts.h"

#include "runtime/ops/array_copy.h"
#include "runtime/ops/data_variant.h"

void ops_sparse_part_release(struct ops_sparse_part *p) {
  tfc_tensor_release(&p->at);
  tfc_tensor_release(&p->values);
  tfc_tensor_release(&p->dims);
}

static tfc_status check_ranks(const struct tfc_kernel_ctx *ctx) {
  static const char *const names[3] = {"indices should be a matrix", "values should be a vector",
                                       "shape should be a vector"};
  for (uint32_t i = 0; i < 3; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == (i == 0 ? 2 : 1), "Input %s but received shape %s", names[i],
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

tfc_status ops_sparse_part_inputs(struct tfc_kernel_ctx *ctx, struct ops_sparse_part *out) {
  struct ops_sparse_part p = {0};
  struct tfc_tensor *const parts[3] = {&p.at, &p.values, &p.dims};
  TFC_RETURN_IF_ERROR(check_ranks(ctx));
  for (uint32_t i = 0; i < 3; i++) {
    tfc_status s = tfc_data_keep(ctx, ctx->inputs[i], parts[i]);
    if (s) {
      ops_sparse_part_release(&p);
      return s;
    }
  }
  *out = p;
  return NULL;
}

tfc_status ops_sparse_rows(struct tfc_kernel_ctx *ctx, struct ops_sparse *out) {
  struct ops_sparse x;
  TFC_RETURN_IF_ERROR(check_ranks(ctx));
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.dims[0] > 1, "Rank of input SparseTensor should be > 1, but saw rank: %lld",
                   (long long)ctx->inputs[2]->shape.dims[0]);
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  int64_t total = 1;
  for (int d = 0; d < x.rank; d++)
    TFC_KERNEL_CHECK(x.dims[d] >= 0 && !__builtin_mul_overflow(total, x.dims[d], &total),
                     "dimension %d of the dense shape, %lld, is negative or too large", d, (long long)x.dims[d]);
  for (int64_t i = 1; i < x.count; i++) {
    int order = ops_sparse_compare(x.at + (i - 1) * x.rank, x.at + i * x.rank, x.rank);
    TFC_KERNEL_CHECK(order < 0, "indices[%lld] is %s", (long long)i, order ? "out of order" : "repeated");
  }
  *out = x;
  return NULL;
}

tfc_status ops_sparse_row(const struct ops_sparse *x, int64_t row, int64_t *at, struct ops_sparse_part *out) {
  struct ops_sparse_part p = {0};
  tfc_status s = NULL;
  int64_t begin = *at, end = begin;
  int rank = x->rank - 1;
  while (end < x->count && x->at[end * x->rank] == row) end++;
  TFC_TRY(s, tfc_tensor_create(TFC_INT64, &TFC_SHAPE(end - begin, rank), &p.at));
  TFC_TRY(s, tfc_tensor_create(x->values->dtype, &TFC_SHAPE(end - begin), &p.values));
  TFC_TRY(s, tfc_tensor_create(TFC_INT64, &TFC_SHAPE(rank), &p.dims));
  int64_t *to = p.at.data;
  for (int64_t i = begin; i < end; i++)
    for (int d = 0; d < rank; d++) *to++ = x->at[i * x->rank + d + 1];
  for (int d = 0; d < rank; d++) ((int64_t *)p.dims.data)[d] = x->dims[d + 1];
  TFC_TRY(s, ops_copy_elements(&p.values, 0, x->values, begin, end - begin));
  *at = end;
  *out = p;
  return NULL;
out:
  ops_sparse_part_release(&p);
  return s;
}

tfc_status ops_sparse_part_check(const struct ops_sparse_part *p, int64_t index, tfc_dtype dtype) {
  char text[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(p->at.dtype == TFC_INT64 && p->at.shape.rank == 2,
                   "Expected serialized_sparse[%lld, 0] to represent an index matrix but received %s of shape %s",
                   (long long)index, tfc_dtype_name(p->at.dtype), tfc_shape_show(&p->at.shape, text));
  TFC_KERNEL_CHECK(p->values.shape.rank == 1,
                   "Expected serialized_sparse[%lld, 1] to represent a values vector but received shape %s",
                   (long long)index, tfc_shape_show(&p->values.shape, text));
  TFC_KERNEL_CHECK(p->values.dtype == dtype, "Requested SparseTensor of type %s but SparseTensor[%lld]'s values are %s",
                   tfc_dtype_name(dtype), (long long)index, tfc_dtype_name(p->values.dtype));
  TFC_KERNEL_CHECK(p->dims.dtype == TFC_INT64 && p->dims.shape.rank == 1,
                   "Expected serialized_sparse[%lld, 2] to be a shape vector but it is %s of shape %s",
                   (long long)index, tfc_dtype_name(p->dims.dtype), tfc_shape_show(&p->dims.shape, text));
  TFC_KERNEL_CHECK(p->at.shape.dims[0] == p->values.shape.dims[0],
                   "SparseTensor[%lld] has %lld indices and %lld values", (long long)index,
                   (long long)p->at.shape.dims[0], (long long)p->values.shape.dims[0]);
  TFC_KERNEL_CHECK(p->at.shape.dims[1] == p->dims.shape.dims[0],
                   "SparseTensor[%lld] has indices of %lld columns and a shape of %lld dimensions", (long long)index,
                   (long long)p->at.shape.dims[1], (long long)p->dims.shape.dims[0]);
  return NULL;
}

tfc_status ops_sparse_stack(struct tfc_kernel_ctx *ctx, const struct ops_sparse_part *parts, int64_t count,
                            const struct tfc_shape *outer) {
  int64_t rank = parts[0].dims.shape.dims[0], total = 0, all = outer->rank + rank;
  struct tfc_tensor *at = NULL, *values = NULL, *shape = NULL;
  for (int64_t i = 0; i < count; i++) {
    TFC_KERNEL_CHECK(parts[i].dims.shape.dims[0] == rank,
                     "Inconsistent shape across SparseTensors: rank prior to SparseTensor[%lld] was: %lld but rank of "
                     "SparseTensor[%lld] is: %lld",
                     (long long)i, (long long)rank, (long long)i, (long long)parts[i].dims.shape.dims[0]);
    for (int64_t d = 0; d < rank; d++)
      TFC_KERNEL_CHECK(((const int64_t *)parts[i].dims.data)[d] >= 0, "SparseTensor[%lld] has a negative dimension",
                       (long long)i);
    total += parts[i].values.shape.dims[0];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(total, all), &at));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, parts[0].values.dtype, &TFC_SHAPE(total), &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_INT64, &TFC_SHAPE(all), &shape));
  int64_t *to = at->data, *dims = shape->data, place[TFC_MAX_RANK] = {0}, done = 0;
  for (int64_t d = 0; d < all; d++) dims[d] = d < outer->rank ? outer->dims[d] : 0;
  for (int64_t i = 0; i < count; i++) {
    const struct ops_sparse_part *p = &parts[i];
    const int64_t *from = p->at.data, n = p->values.shape.dims[0];
    for (int64_t k = 0; k < n; k++) {
      for (int d = 0; d < outer->rank; d++) *to++ = place[d];
      for (int64_t d = 0; d < rank; d++) *to++ = *from++;
    }
    for (int64_t d = 0; d < rank; d++) {
      int64_t size = ((const int64_t *)p->dims.data)[d];
      if (size > dims[outer->rank + d]) dims[outer->rank + d] = size;
    }
    TFC_RETURN_IF_ERROR(ops_copy_elements(values, done, &p->values, 0, n));
    done += n;
    for (int d = outer->rank; d-- > 0;) {
      if (++place[d] < outer->dims[d]) break;
      place[d] = 0;
    }
  }
  return NULL;
}
