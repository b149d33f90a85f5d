// StringNGrams: joins runs of neighbouring tokens of each row. A row is padded on both sides by `pad_width` tokens (-1:
// by one less than the run's width), but always by less than the run's width.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/row.h"

struct rule {
  tfc_str separator, left, right;
  int64_t pad;
  bool keep_short;
  const int64_t *widths;
  uint32_t count;
};
static int64_t pad_of(const struct rule *r, int64_t width) {
  return r->pad < 0 || r->pad > width - 1 ? width - 1 : r->pad;
}
static int64_t runs_of(const struct rule *r, int64_t length, int64_t width) {
  int64_t n = length + 2 * pad_of(r, width) - width + 1;
  return n > 0 ? n : 0;
}
// Returns how many runs a row has, of all widths; a row that is too short may count as one.
static int64_t row_runs(const struct rule *r, int64_t length) {
  int64_t n = 0;
  for (uint32_t i = 0; i < r->count; i++) n += runs_of(r, length, r->widths[i]);
  return n == 0 && r->keep_short && length > 0 ? 1 : n;
}
static tfc_status put_run(const struct rule *r, const struct tfc_tensor *data, int64_t from, int64_t length,
                          int64_t width, int64_t runs, int64_t k, struct tfc_tensor *y, int64_t at) {
  int64_t pad = pad_of(r, width), left = pad - k > 0 ? pad - k : 0;
  int64_t right = pad - (runs - (k + 1)) > 0 ? pad - (runs - (k + 1)) : 0, tokens = width - left - right;
  int64_t first = left > 0 ? 0 : k - pad;
  struct tfc_text text = {0};
  for (int64_t i = 0; i < width; i++) {
    if (i) tfc_text_add(&text, r->separator);
    int64_t token = first + i - left;
    bool inside = i >= left && i < left + tokens;
    TFC_KERNEL_CHECK(!inside || (token >= 0 && token < length), "a run of %lld tokens does not fit", (long long)width);
    tfc_text_add(&text, i < left ? r->left : inside ? tfc_tensor_get_string(data, from + token) : r->right);
  }
  const tfc_status s = tfc_tensor_set_text(y, at, &text);
  tfc_text_deinit(&text);
  return s;
}

// Inputs: data [n], splits [rows + 1]; outputs: ngrams [m], splits [rows + 1].
static tfc_status ngrams(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *data = ctx->inputs[0], *splits = ctx->inputs[1];
  const struct tfc_attr *widths = tfc_node_attr(ctx->graph, ctx->node, "ngram_widths");
  struct tfc_tensor *y = NULL, *ends = NULL;
  struct rule r = {.separator = tfc_node_attr_string(ctx->graph, ctx->node, "separator", ""),
                   .left = tfc_node_attr_string(ctx->graph, ctx->node, "left_pad", ""),
                   .right = tfc_node_attr_string(ctx->graph, ctx->node, "right_pad", ""),
                   .pad = tfc_node_attr_int(ctx->graph, ctx->node, "pad_width", 0),
                   .keep_short = tfc_node_attr_bool(ctx->graph, ctx->node, "preserve_short_sequences", false),
                   .widths = widths ? widths->ints : NULL,
                   .count = widths ? widths->count : 0};
  int64_t rows = tfc_tensor_elements(splits) - 1, n = tfc_tensor_elements(data), total = 0;
  for (uint32_t i = 0; i < r.count; i++)
    TFC_KERNEL_CHECK(r.widths[i] > 0 && r.widths[i] < 1 << 24, "ngram_widths must be positive, got %lld",
                     (long long)r.widths[i]);
  TFC_KERNEL_CHECK(r.pad < 1 << 24, "Pad width must be >= -1 and < 2^24, got %lld", (long long)r.pad);
  TFC_KERNEL_CHECK(splits->shape.rank == 1, "data_splits must be a vector");
  for (int64_t i = 0; i <= rows; i++) {
    int64_t end = tfc_tensor_int(splits, i), last = i ? tfc_tensor_int(splits, i - 1) : 0;
    TFC_KERNEL_CHECK(end >= last && end <= n && (i || end == 0), "Invalid split value %lld, must be in [%lld, %lld]",
                     (long long)end, (long long)last, (long long)n);
    if (i) total += row_runs(&r, end - last);
  }
  TFC_KERNEL_CHECK(rows < 0 || tfc_tensor_int(splits, rows) == n,
                   "Last split value must be data size. Expected %lld, got %lld", (long long)n,
                   (long long)tfc_tensor_int(splits, rows));
  if (n == 0 || rows < 0) { // gives as many empty strings as there are tokens
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &data->shape, &y));
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, splits->dtype, &splits->shape, &ends));
    ops_fill_zero(ends);
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(total), &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, splits->dtype, &splits->shape, &ends));
  int64_t at = 0;
  for (int64_t row = 0; row <= rows; row++) {
    if (splits->dtype == TFC_INT32)
      ((int32_t *)ends->data)[row] = (int32_t)at;
    else
      ((int64_t *)ends->data)[row] = at;
    if (row == rows) break;
    int64_t from = tfc_tensor_int(splits, row), length = tfc_tensor_int(splits, row + 1) - from, begin = at;
    for (uint32_t i = 0; i < r.count; i++)
      for (int64_t k = 0, runs = runs_of(&r, length, r.widths[i]); k < runs; k++, at++)
        TFC_RETURN_IF_ERROR(put_run(&r, data, from, length, r.widths[i], runs, k, y, at));
    if (at == begin && r.keep_short && length > 0) {
      int64_t width = length + 2 * (r.pad < 0 ? 0 : r.pad);
      TFC_RETURN_IF_ERROR(put_run(&r, data, from, length, width, 1, 0, y, at++));
    }
  }
  return NULL;
}
static tfc_status shape_ngrams(struct tfc_shape_ctx *ctx) {
  struct tfc_shape data;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &data));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &ctx->outputs[1]));
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

static const struct tfc_op_def string_ngrams_rows[] = {
    {.name = "StringNGrams",
     .inputs = "data: string, data_splits: Tsplits",
     .outputs = "ngrams: string, ngrams_splits: Tsplits",
     .attrs = "separator: string, ngram_widths: list(int) >= 0, left_pad: string, right_pad: string, pad_width: int, "
              "preserve_short_sequences: bool, Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_HOST,
     .shape = shape_ngrams,
     .kernel = ngrams},
};
TFC_REGISTER_OPS(string_ngrams_rows);
