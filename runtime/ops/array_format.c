// DataFormatDimMap and DataFormatVecPermute, which translate between layouts of images ("NHWC", "NCHW"): the first one
// translates dimension numbers, the second one vectors with an entry for each dimension.
#include "runtime/ops/array_copy.h"
#include "runtime/ops/row.h"

enum { MOST = 5 };
struct formats {
  int count;
  int to[MOST];   // to[i]: the destination's number of the source's dimension i
  int from[MOST]; // from[i]: the source's number of the destination's dimension i
  tfc_str source, destination;
};
static tfc_status prepare_formats(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct formats, f);
  tfc_str s = tfc_node_attr_string(ctx->graph, ctx->node, "src_format", "NHWC");
  tfc_str d = tfc_node_attr_string(ctx->graph, ctx->node, "dst_format", "NCHW");
  *f = (struct formats){.count = (int)s.size, .source = s, .destination = d};
  TFC_KERNEL_CHECK(s.size == 4 || s.size == MOST, "Source format must be of length 4 or 5, received src_format = %.*s",
                   TFC_STR_ARG(s));
  unsigned seen = 0;
  for (size_t i = 0; i < s.size; i++)
    for (size_t k = 0; k < s.size && d.size == s.size; k++)
      if (s.data[i] == d.data[k] && !(seen >> k & 1)) {
        seen |= 1u << k;
        f->to[i] = (int)k;
        f->from[k] = (int)i;
        break;
      }
  TFC_KERNEL_CHECK(d.size == s.size && seen == (1u << s.size) - 1,
                   "Destination and source format must determine a permutation, got %.*s and %.*s", TFC_STR_ARG(s),
                   TFC_STR_ARG(d));
  for (size_t i = 0; i < s.size; i++)
    for (size_t k = i + 1; k < s.size; k++)
      TFC_KERNEL_CHECK(s.data[i] != s.data[k], "%.*s has a dimension twice", TFC_STR_ARG(s));
  return NULL;
}

static tfc_status dim_map(struct tfc_kernel_ctx *ctx) {
  const struct formats *f = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    // a number out of range wraps around
    const int64_t v = tfc_tensor_int(x, i), at = (v % f->count + f->count) % f->count;
    if (x->dtype == TFC_INT32)
      ((int32_t *)y->data)[i] = f->to[at];
    else
      ((int64_t *)y->data)[i] = f->to[at];
  }
  return NULL;
}

// Whether dimension `i` of a format is height, width or depth.
static bool spatial(tfc_str format, int i) {
  return format.data[i] == 'H' || format.data[i] == 'W' || format.data[i] == 'D';
}
// x has one number or one pair of numbers for each dimension, or for the spatial dimensions only.
static tfc_status permute(struct tfc_kernel_ctx *ctx) {
  const struct formats *f = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  char text[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(x->shape.rank == 1 || x->shape.rank == 2, "input must be a vector or 2D tensor, but got shape %s",
                   tfc_shape_show(&x->shape, text));
  const int64_t rows = x->shape.dims[0], row = x->shape.rank == 2 ? x->shape.dims[1] : 1;
  int in[MOST], out[MOST], ins = 0, outs = 0; // the dimensions that the rows of x and of y describe
  const bool some = rows == f->count - 2;
  TFC_KERNEL_CHECK(some || rows == f->count, "input must have %d or %d rows, but got shape %s", f->count - 2, f->count,
                   tfc_shape_show(&x->shape, text));
  TFC_KERNEL_CHECK(x->shape.rank == 1 || row == 2, "Second dimension of 2D input must be of size 2, but got shape %s",
                   tfc_shape_show(&x->shape, text));
  for (int i = 0; i < f->count; i++) {
    if (!some || spatial(f->source, i)) in[ins++] = i;
    if (!some || spatial(f->destination, i)) out[outs++] = i;
  }
  TFC_KERNEL_CHECK(ins == rows && outs == rows, "the formats have not %lld spatial dimensions", (long long)rows);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int k = 0; k < outs; k++)
    for (int i = 0; i < ins; i++)
      if (in[i] == f->from[out[k]]) TFC_RETURN_IF_ERROR(ops_copy_elements(y, k * row, x, i * row, row));
  return NULL;
}

#define ROW                                                                                                            \
  .inputs = "x: T", .outputs = "y: T",                                                                                 \
  .attrs = "T: {int32, int64} = int32, src_format: string = 'NHWC', dst_format: string = 'NCHW'",                      \
  .flags = TFC_OP_NOT_DIFFERENTIABLE, .types = TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64),                      \
  .shape = ops_shape_same, .prepare = prepare_formats
static const struct tfc_op_def array_format_rows[] = {
    {.name = "DataFormatDimMap", ROW, .kernel = dim_map, .samples = "int32[4]=[0,1,-1,2]"},
    {.name = "DataFormatVecPermute", ROW, .kernel = permute, .samples = "int32[4]=[1,2,3,4]; int64[2,2]=[1,2,3,4]"},
};
TFC_REGISTER_OPS(array_format_rows);
