// Crossed features: SparseCross, SparseCrossV2, SparseCrossHashed, RaggedCross. From each column, one of the row's
// features is chosen; the output's row has a value for every combination, and the last column's feature changes
// fastest. A value is the texts of the chosen features joined, or their hashes mixed (and reduced to buckets). Columns
// are the sparse inputs, then the dense ones; for RaggedCross, `input_order` gives their order.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/row.h"
#include "runtime/ops/sparse_common.h"
#include "runtime/ops/string_hash.h"

struct column {
  const struct tfc_tensor *values;
  int64_t *begin; // [rows + 1] for sparse columns
  int64_t width;  // for dense columns
};
struct rule {
  bool hashed, seeded, keyed;
  uint64_t seed, key[2]; // the first value of the mixed hash; the key for hashing texts
  int64_t buckets;       // 0 or less: all of int64
  tfc_str between;
};

static uint64_t shift_mix(uint64_t v) {
  return v ^ v >> 47;
}
static uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t k = 0xc6a4a7935bd1e995u;
  uint64_t h = (a ^ k ^ shift_mix(b * k) * k) * k;
  return shift_mix(shift_mix(h) * k);
}

static int64_t first_of(const struct column *c, int64_t row) {
  return c->begin ? c->begin[row] : row * c->width;
}
static int64_t features_of(const struct column *c, int64_t row) {
  return c->begin ? c->begin[row + 1] - c->begin[row] : c->width;
}

static tfc_status put_cross(const struct rule *rule, const struct column *columns, uint32_t count,
                            const int64_t *chosen, int64_t row, struct tfc_tensor *y, int64_t at) {
  if (rule->hashed) {
    uint64_t hash = rule->seed;
    for (uint32_t c = 0; c < count; c++) {
      int64_t i = first_of(&columns[c], row) + chosen[c];
      uint64_t one;
      if (columns[c].values->dtype == TFC_STRING) {
        tfc_str text = tfc_tensor_get_string(columns[c].values, i);
        one = rule->keyed ? tfc_keyed_hash64(text, rule->key) : tfc_fingerprint64(text);
      } else {
        one = (uint64_t)tfc_tensor_int(columns[c].values, i);
        if (columns[c].begin && !rule->seeded) {
          // There, TensorFlow hashes the low four bytes of a sparse column's number.
          uint32_t low = (uint32_t)one;
          tfc_str four = {(const char *)&low, sizeof low};
          one = rule->keyed ? tfc_keyed_hash64(four, rule->key) : tfc_fingerprint64(four);
        }
      }
      hash = c == 0 && !rule->seeded ? one : mix(hash, one);
    }
    ((int64_t *)y->data)[at] = (int64_t)(hash % (rule->buckets > 0 ? (uint64_t)rule->buckets : (uint64_t)INT64_MAX));
    return NULL;
  }
  struct tfc_text text = {0};
  for (uint32_t c = 0; c < count; c++) {
    int64_t i = first_of(&columns[c], row) + chosen[c];
    char number[24];
    if (c) tfc_text_add(&text, rule->between);
    if (columns[c].values->dtype == TFC_STRING) {
      tfc_text_add(&text, tfc_tensor_get_string(columns[c].values, i));
    } else {
      int n = snprintf(number, sizeof number, "%" PRId64, tfc_tensor_int(columns[c].values, i));
      tfc_text_add(&text, (tfc_str){number, (size_t)n});
    }
  }
  const tfc_status s = tfc_tensor_set_text(y, at, &text);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status same_rows(int64_t *rows, int64_t n) {
  TFC_KERNEL_CHECK(*rows < 0 || *rows == n, "Expected batch size %lld, got %lld", (long long)*rows, (long long)n);
  *rows = n;
  return NULL;
}
static tfc_status sparse_column(struct tfc_kernel_ctx *ctx, uint32_t indices, uint32_t values, uint32_t shape,
                                int64_t *rows, struct column *out) {
  struct ops_sparse x;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, indices, values, shape, true, &x));
  TFC_KERNEL_CHECK(x.rank == 2, "input %u of a cross must have rank 2, it has %d", indices, x.rank);
  TFC_RETURN_IF_ERROR(same_rows(rows, x.dims[0]));
  TFC_KERNEL_CHECK(*rows <= (int64_t)1 << 40, "%lld rows are too many", (long long)*rows);
  out->values = x.values;
  out->begin = calloc((size_t)*rows + 1, sizeof *out->begin);
  if (!out->begin) return tfc_status_no_memory(NULL);
  for (int64_t i = 0, last = 0; i < x.count; last = x.at[2 * i], i++) {
    TFC_KERNEL_CHECK(x.at[2 * i] >= last, "indices[%u] are not in the order of rows", indices);
    out->begin[x.at[2 * i] + 1]++;
  }
  for (int64_t r = 0; r < *rows; r++) out->begin[r + 1] += out->begin[r];
  return NULL;
}
static tfc_status dense_column(const struct tfc_tensor *x, int64_t *rows, struct column *out) {
  TFC_KERNEL_CHECK(x->shape.rank == 2, "Dense inputs should be a matrix but received rank %d", x->shape.rank);
  *out = (struct column){x, NULL, x->shape.dims[1]};
  return same_rows(rows, x->shape.dims[0]);
}
static tfc_status ragged_column(const struct tfc_tensor *values, const struct tfc_tensor *splits, int64_t *rows,
                                struct column *out) {
  TFC_KERNEL_CHECK(values->shape.rank == 1, "tf.ragged.cross only supports inputs with rank=2");
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && splits->shape.dims[0] >= 1,
                   "row splits must be a vector with an element");
  int64_t n = splits->shape.dims[0];
  TFC_RETURN_IF_ERROR(same_rows(rows, n - 1));
  out->values = values;
  out->begin = calloc((size_t)n, sizeof *out->begin);
  if (!out->begin) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < n; i++) {
    out->begin[i] = tfc_tensor_int(splits, i);
    TFC_KERNEL_CHECK(i ? out->begin[i] >= out->begin[i - 1] : out->begin[0] == 0,
                     "Invalid ragged splits: element %lld is %lld", (long long)i, (long long)out->begin[i]);
  }
  TFC_KERNEL_CHECK(out->begin[n - 1] == values->shape.dims[0], "Invalid ragged splits: the last is %lld of %lld values",
                   (long long)out->begin[n - 1], (long long)values->shape.dims[0]);
  return NULL;
}
static tfc_status count_crosses(const struct column *columns, uint32_t count, int64_t rows, int64_t *total,
                                int64_t *widest) {
  for (int64_t r = 0; r < rows; r++) {
    int64_t crosses = 1;
    for (uint32_t c = 0; c < count; c++)
      TFC_KERNEL_CHECK(!__builtin_mul_overflow(crosses, features_of(&columns[c], r), &crosses),
                       "row %lld has too many crosses", (long long)r);
    if (crosses > *widest) *widest = crosses;
    TFC_KERNEL_CHECK(!__builtin_add_overflow(*total, crosses, total) && *total <= (int64_t)1 << 40,
                     "there are too many crosses");
  }
  return NULL;
}
// Writes the crosses of a row from element `to` on; *out_crosses is their number.
static tfc_status cross_row(const struct rule *rule, const struct column *columns, uint32_t count, int64_t *chosen,
                            int64_t row, struct tfc_tensor *values, int64_t to, int64_t *out_crosses) {
  int64_t crosses = 1;
  for (uint32_t c = 0; c < count; c++) crosses *= features_of(&columns[c], row);
  memset(chosen, 0, count * sizeof *chosen);
  for (int64_t k = 0; k < crosses; k++) {
    TFC_RETURN_IF_ERROR(put_cross(rule, columns, count, chosen, row, values, to + k));
    for (uint32_t c = count; c-- > 0;) {
      if (++chosen[c] < features_of(&columns[c], row)) break;
      chosen[c] = 0;
    }
  }
  *out_crosses = crosses;
  return NULL;
}
static void free_columns(struct column *columns, uint32_t count) {
  for (uint32_t c = 0; columns && c < count; c++) free(columns[c].begin);
  free(columns);
}

static tfc_status cross(struct tfc_kernel_ctx *ctx, const struct rule *rule, uint32_t sparse, uint32_t dense) {
  uint32_t count = sparse + dense;
  struct column *columns = calloc(count + 1, sizeof *columns);
  int64_t *chosen = calloc(count + 1, sizeof *chosen), rows = -1, total = 0, widest = 0;
  struct tfc_tensor *at = NULL, *values = NULL, *dims = NULL;
  tfc_status s = NULL;
  if (!columns || !chosen) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t c = 0; c < sparse; c++)
    TFC_TRY(s, sparse_column(ctx, c, sparse + c, 2 * sparse + c, &rows, &columns[c]));
  for (uint32_t d = 0; d < dense; d++)
    TFC_TRY(s, dense_column(ctx->inputs[3 * sparse + d], &rows, &columns[sparse + d]));
  if (rows < 0) rows = 0;
  TFC_TRY(s, count_crosses(columns, count, rows, &total, &widest));
  struct tfc_shape places = TFC_SHAPE(total, 2), list = TFC_SHAPE(total), two = TFC_SHAPE(2);
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_INT64, &places, &at));
  TFC_TRY(s, tfc_kernel_output(ctx, 1, rule->hashed ? TFC_INT64 : TFC_STRING, &list, &values));
  TFC_TRY(s, tfc_kernel_output(ctx, 2, TFC_INT64, &two, &dims));
  ((int64_t *)dims->data)[0] = rows;
  ((int64_t *)dims->data)[1] = widest;
  for (int64_t r = 0, to = 0; r < rows; r++) {
    int64_t crosses = 0;
    TFC_TRY(s, cross_row(rule, columns, count, chosen, r, values, to, &crosses));
    for (int64_t k = 0; k < crosses; k++, to++) {
      ((int64_t *)at->data)[2 * to] = r;
      ((int64_t *)at->data)[2 * to + 1] = k;
    }
  }
out:
  free_columns(columns, count);
  free(chosen);
  return s;
}

static uint32_t items_of(const struct tfc_kernel_ctx *ctx, const char *attribute) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, attribute);
  return a ? a->count : 0;
}
// Inputs: values and row splits of the ragged columns; indices, values and shapes of the sparse ones; the dense ones.
// `input_order` has one letter for each column: R (ragged), S (sparse) or D (dense).
static tfc_status ragged_cross(struct tfc_kernel_ctx *ctx) {
  uint32_t ragged = items_of(ctx, "ragged_values_types"), sparse = items_of(ctx, "sparse_values_types"),
           dense = items_of(ctx, "dense_types"), count = ragged + sparse + dense, used[3] = {0};
  tfc_str order = tfc_node_attr_string(ctx->graph, ctx->node, "input_order", "");
  tfc_dtype out = ctx->graph->output_dtypes[ctx->node->output_begin],
            splits_type = ctx->graph->output_dtypes[ctx->node->output_begin + 1];
  struct rule rule = {.hashed = out == TFC_INT64,
                      .seeded = true,
                      .seed = (uint64_t)tfc_node_attr_int(ctx->graph, ctx->node, "hash_key", 0),
                      .buckets = tfc_node_attr_int(ctx->graph, ctx->node, "num_buckets", 0),
                      .between = TFC_STR("_X_")};
  TFC_KERNEL_CHECK(order.size == count && ctx->input_count == 2 * ragged + 3 * sparse + dense &&
                       items_of(ctx, "ragged_splits_types") == ragged,
                   "input_order '%.*s' does not fit %u columns", TFC_STR_ARG(order), count);
  struct column *columns = calloc(count + 1, sizeof *columns);
  int64_t *chosen = calloc(count + 1, sizeof *chosen), rows = -1, total = 0, widest = 0;
  struct tfc_tensor *values = NULL, *splits = NULL;
  tfc_status s = NULL;
  if (!columns || !chosen) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t c = 0; c < count; c++) {
    if (order.data[c] == 'R' && used[0] < ragged) {
      TFC_TRY(s, ragged_column(ctx->inputs[used[0]], ctx->inputs[ragged + used[0]], &rows, &columns[c]));
      used[0]++;
    } else if (order.data[c] == 'S' && used[1] < sparse) {
      uint32_t first = 2 * ragged + used[1]++;
      TFC_TRY(s, sparse_column(ctx, first, first + sparse, first + 2 * sparse, &rows, &columns[c]));
    } else if (order.data[c] == 'D' && used[2] < dense) {
      TFC_TRY(s, dense_column(ctx->inputs[2 * ragged + 3 * sparse + used[2]++], &rows, &columns[c]));
    } else {
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "input_order '%.*s' does not fit the inputs", TFC_STR_ARG(order));
    }
  }
  if (rows < 0) rows = 0;
  TFC_TRY(s, count_crosses(columns, count, rows, &total, &widest));
  if (splits_type == TFC_INT32 && total > INT32_MAX)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%lld crosses are too many for splits of int32", (long long)total);
  TFC_TRY(s, tfc_kernel_output(ctx, 0, out, &TFC_SHAPE(total), &values));
  TFC_TRY(s, tfc_kernel_output(ctx, 1, splits_type, &TFC_SHAPE(rows + 1), &splits));
  for (int64_t r = 0, to = 0; r <= rows; r++) {
    if (splits_type == TFC_INT32)
      ((int32_t *)splits->data)[r] = (int32_t)to;
    else
      ((int64_t *)splits->data)[r] = to;
    int64_t crosses = 0;
    if (r < rows) TFC_TRY(s, cross_row(&rule, columns, count, chosen, r, values, to, &crosses));
    to += crosses;
  }
out:
  free_columns(columns, count);
  free(chosen);
  return s;
}
// The result has as many rows as any of the columns.
static tfc_status shape_ragged_cross(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *splits = tfc_node_attr(ctx->graph, ctx->node, "ragged_splits_types");
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "dense_types");
  const uint32_t ragged = splits ? splits->count : 0, dense = types ? types->count : 0, n = ctx->node->input_count;
  int64_t rows = TFC_DIM_UNKNOWN;
  ctx->outputs[0] = ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  if (n < 2 * ragged + dense) return tfc_status_make(TFC_INVALID_ARGUMENT, "there are %u inputs", n);
  for (uint32_t i = 0; i < ragged + dense; i++) {
    const struct tfc_shape *s = ctx->inputs[i < ragged ? ragged + i : n - dense + i - ragged];
    if (s->rank != (i < ragged ? 1 : 2) || s->dims[0] < 0) continue;
    TFC_RETURN_IF_ERROR(tfc_dim_merge(rows, s->dims[0] - (i < ragged), &rows));
  }
  if (rows >= 0) ctx->outputs[1] = TFC_SHAPE(rows + 1);
  return NULL;
}

static tfc_status counts_of(const struct tfc_kernel_ctx *ctx, uint32_t *sparse, uint32_t *dense) {
  *sparse = items_of(ctx, "sparse_types");
  *dense = items_of(ctx, "dense_types");
  TFC_KERNEL_CHECK(tfc_node_attr_int(ctx->graph, ctx->node, "N", 0) == *sparse,
                   "N is not the number of sparse_types, %u", *sparse);
  return NULL;
}

static tfc_status sparse_cross(struct tfc_kernel_ctx *ctx) {
  uint32_t sparse, dense;
  TFC_RETURN_IF_ERROR(counts_of(ctx, &sparse, &dense));
  // Numbers are not converted to strings.
  if (tfc_node_attr_type(ctx->graph, ctx->node, "internal_type", TFC_INT64) == TFC_STRING)
    for (uint32_t i = 0; i < sparse + dense; i++)
      TFC_KERNEL_CHECK(ctx->inputs[i < sparse ? sparse + i : 2 * sparse + i]->dtype == TFC_STRING,
                       "%s should be of internal type string", i < sparse ? "Input values" : "Dense inputs");
  // The output's type decides whether values are hashed; the attribute hashed_output is ignored.
  struct rule rule = {.hashed = tfc_node_attr_type(ctx->graph, ctx->node, "out_type", TFC_INT64) == TFC_INT64,
                      .seeded = true,
                      .seed = (uint64_t)tfc_node_attr_int(ctx->graph, ctx->node, "hash_key", 0),
                      .buckets = tfc_node_attr_int(ctx->graph, ctx->node, "num_buckets", 0),
                      .between = TFC_STR("_X_")};
  return cross(ctx, &rule, sparse, dense);
}
static tfc_status sparse_cross_v2(struct tfc_kernel_ctx *ctx) {
  uint32_t sparse, dense;
  TFC_RETURN_IF_ERROR(counts_of(ctx, &sparse, &dense));
  const struct tfc_tensor *between = ctx->inputs[3 * sparse + dense];
  TFC_KERNEL_CHECK(between->shape.rank == 0, "Input separator should be a scalar.");
  struct rule rule = {.between = tfc_tensor_get_string(between, 0)};
  return cross(ctx, &rule, sparse, dense);
}
static tfc_status sparse_cross_hashed(struct tfc_kernel_ctx *ctx) {
  uint32_t sparse, dense;
  TFC_RETURN_IF_ERROR(counts_of(ctx, &sparse, &dense));
  const struct tfc_tensor *const *more = ctx->inputs + 3 * sparse + dense;
  TFC_KERNEL_CHECK(more[0]->shape.rank == 0, "Input num_buckets should be a scalar.");
  TFC_KERNEL_CHECK(more[1]->shape.rank == 0, "Input strong_hash should be a scalar.");
  TFC_KERNEL_CHECK(tfc_tensor_elements(more[2]) == 2, "Input salt must have two elements.");
  uint64_t a = (uint64_t)tfc_tensor_int(more[2], 0), b = (uint64_t)tfc_tensor_int(more[2], 1);
  struct rule rule = {
      .hashed = true, .keyed = *(const bool *)more[1]->data, .key = {a, b}, .buckets = tfc_tensor_int(more[0], 0)};
  return cross(ctx, &rule, sparse, dense);
}
static tfc_status shape_cross(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, 2);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(2);
  return NULL;
}

#define ROW(run) .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_cross, .kernel = run
#define COLUMNS "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types"
#define TYPES "sparse_types: list({int64, string}) >= 0, dense_types: list({int64, string}) >= 0"
static const struct tfc_op_def sparse_cross_rows[] = {
    {.name = "SparseCross",
     .inputs = COLUMNS,
     .outputs = "output_indices: int64, output_values: out_type, output_shape: int64",
     .attrs = "N: int >= 0, hashed_output: bool, num_buckets: int >= 0, hash_key: int, " TYPES
              ", out_type: {int64, string}, internal_type: {int64, string}",
     ROW(sparse_cross)},
    {.name = "SparseCrossV2",
     .inputs = COLUMNS ", sep: string",
     .outputs = "output_indices: int64, output_values: string, output_shape: int64",
     .attrs = "N: int >= 0, " TYPES,
     ROW(sparse_cross_v2)},
    {.name = "SparseCrossHashed",
     .inputs = COLUMNS ", num_buckets: int64, strong_hash: bool, salt: int64",
     .outputs = "output_indices: int64, output_values: int64, output_shape: int64",
     .attrs = "N: int >= 0, " TYPES,
     ROW(sparse_cross_hashed)},
    {.name = "RaggedCross",
     .inputs = "ragged_values: ragged_values_types, ragged_row_splits: ragged_splits_types, sparse_indices: Nsparse * "
               "int64, sparse_values: sparse_values_types, sparse_shape: Nsparse * int64, dense_inputs: dense_types",
     .outputs = "output_values: out_values_type, output_row_splits: out_row_splits_type",
     .attrs = "Nsparse: int >= 0, input_order: string, hashed_output: bool, num_buckets: int >= 0, hash_key: int, "
              "ragged_values_types: list({int64, string}) >= 0, ragged_splits_types: list({int32, int64}) >= 0, "
              "sparse_values_types: list({int64, string}) >= 0, dense_types: list({int64, string}) >= 0, "
              "out_values_type: {int64, string}, out_row_splits_type: {int32, int64}",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_ragged_cross,
     .kernel = ragged_cross},
};
TFC_REGISTER_OPS(sparse_cross_rows);
