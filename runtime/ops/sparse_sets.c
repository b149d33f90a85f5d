// Operations on sets in the last dimension: unions, intersections, differences, and sizes.
//
// Each row (over all dimensions but the last) is a set. Results are sparse; the members of each row are in order,
// without repetition.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/sparse_common.h"

enum set_operation { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION };

// One operand: a row is the number of a combination of leading indices; elements are sorted by (row, value), without
// repetition.
struct members {
  const struct tfc_tensor *values;
  int64_t *rows, *from; // [count]: each member's row, and its element in `values`
  int64_t count;
};

static bool is_named(tfc_str s, const char *name) { // ignores case
  return s.size == strlen(name) && strncasecmp(s.data, name, s.size) == 0;
}
static int compare_values(const struct tfc_tensor *a, int64_t i, const struct tfc_tensor *b, int64_t j) {
  if (a->dtype == TFC_STRING) {
    tfc_str p = tfc_tensor_get_string(a, i), q = tfc_tensor_get_string(b, j);
    size_t n = p.size < q.size ? p.size : q.size;
    int c = n ? memcmp(p.data, q.data, n) : 0;
    return c ? c : (p.size > q.size) - (p.size < q.size);
  }
  int64_t p = tfc_tensor_int(a, i), q = tfc_tensor_int(b, j);
  return (p > q) - (p < q);
}
static int compare_members(const void *a, const void *b, void *arg) {
  const struct members *m = arg;
  const int64_t *p = a, *q = b; // a member is {row, element}
  if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
  return compare_values(m->values, p[1], m->values, q[1]);
}

// Returns the number of the row with the leading indices `at`.
static int64_t row_of(const int64_t *at, const int64_t *dims, int rank) {
  int64_t row = 0;
  for (int d = 0; d < rank - 1; d++) row = row * dims[d] + at[d];
  return row;
}

static tfc_status gather_members(struct tfc_kernel_ctx *ctx, const struct ops_sparse *x, const struct tfc_tensor *dense,
                                 struct members *m, struct tfc_buffer **held) {
  m->values = x ? x->values : dense;
  int64_t n = x ? x->count : tfc_tensor_elements(dense), last = x ? 0 : dense->shape.dims[dense->shape.rank - 1];
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(4 * n + 4) * sizeof(int64_t), held));
  int64_t *pairs = (*held)->data;
  m->rows = pairs + 2 * n;
  m->from = m->rows + n;
  for (int64_t i = 0; i < n; i++) {
    pairs[2 * i] = x ? row_of(x->at + i * x->rank, x->dims, x->rank) : i / last;
    pairs[2 * i + 1] = i;
  }
  qsort_r(pairs, (size_t)n, 2 * sizeof *pairs, compare_members, m);
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && compare_members(pairs + 2 * i, pairs + 2 * i - 2, m) == 0) continue;
    m->rows[m->count] = pairs[2 * i];
    m->from[m->count++] = pairs[2 * i + 1];
  }
  return NULL;
}

static tfc_status operate(struct tfc_kernel_ctx *ctx, const struct ops_sparse *a, const struct tfc_tensor *dense_a,
                          const struct ops_sparse *b, const struct tfc_tensor *dense_b, const int64_t *dims, int rank) {
  tfc_str name = tfc_node_attr_string(ctx->graph, ctx->node, "set_operation", "");
  enum set_operation what = A_MINUS_B;
  struct members p = {0}, q = {0};
  struct tfc_buffer *held[3] = {0};
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  int64_t *at = NULL, n = 0, most = 0, k = 0, shape[TFC_MAX_RANK];
  if (is_named(name, "b-a"))
    what = B_MINUS_A;
  else if (is_named(name, "intersection"))
    what = INTERSECTION;
  else if (is_named(name, "union"))
    what = UNION;
  else
    TFC_KERNEL_CHECK(is_named(name, "a-b"), "Invalid set_operation %.*s.", TFC_STR_ARG(name));
  TFC_TRY(s, gather_members(ctx, a, dense_a, &p, &held[0]));
  TFC_TRY(s, gather_members(ctx, b, dense_b, &q, &held[1]));
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(p.count + q.count + 1) * 2 * sizeof(int64_t), &held[2]));
  // An element of a is stored as it is, one of b as its complement (~)
  int64_t *rows = held[2]->data, *sources = rows + p.count + q.count;
  for (int64_t i = 0, j = 0; i < p.count || j < q.count;) {
    int c = i == p.count             ? 1
            : j == q.count           ? -1
            : p.rows[i] != q.rows[j] ? (p.rows[i] < q.rows[j] ? -1 : 1)
                                     : compare_values(p.values, p.from[i], q.values, q.from[j]);
    bool take = what == UNION || (what == INTERSECTION ? c == 0 : what == A_MINUS_B ? c < 0 : c > 0);
    if (take) {
      rows[n] = c <= 0 ? p.rows[i] : q.rows[j];
      sources[n++] = c <= 0 ? p.from[i] : ~q.from[j];
    }
    i += c <= 0, j += c >= 0;
  }
  TFC_TRY(s, ops_sparse_output(ctx, 0, n, rank, p.values->dtype, &at, &y));
  for (int64_t i = 0; i < n; i++) {
    k = i > 0 && rows[i] == rows[i - 1] ? k + 1 : 0;
    if (k + 1 > most) most = k + 1;
    int64_t row = rows[i];
    at[i * rank + rank - 1] = k;
    for (int d = rank - 2; d >= 0; d--) {
      at[i * rank + d] = row % dims[d];
      row /= dims[d];
    }
    bool first = sources[i] >= 0;
    TFC_TRY(s, ops_copy_elements(y, i, first ? p.values : q.values, first ? sources[i] : ~sources[i], 1));
  }
  for (int d = 0; d < rank - 1; d++) shape[d] = dims[d];
  shape[rank - 1] = most;
  TFC_TRY(s, ops_sparse_shape_output(ctx, 2, shape, rank));
out:
  for (int i = 0; i < 3; i++) tfc_buffer_release(held[i]);
  return s;
}

static tfc_status check_groups(const int64_t *a, int a_rank, const int64_t *b, int b_rank) {
  TFC_KERNEL_CHECK(a_rank >= 2 && b_rank >= 2, "Invalid rank %d.", a_rank < b_rank ? a_rank : b_rank);
  TFC_KERNEL_CHECK(a_rank == b_rank, "Mismatched ranks: %d and %d", a_rank, b_rank);
  for (int d = 0; d < a_rank - 1; d++)
    TFC_KERNEL_CHECK(a[d] == b[d], "Mismatched group shapes: %lld vs %lld in dimension %d.", (long long)a[d],
                     (long long)b[d], d);
  return NULL;
}
static tfc_status sparse_set(struct tfc_kernel_ctx *ctx, uint32_t first, struct ops_sparse *out) {
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, first, first + 1, first + 2, true, out));
  if (!tfc_node_attr_bool(ctx->graph, ctx->node, "validate_indices", true)) return NULL;
  for (int64_t i = 1; i < out->count; i++)
    TFC_KERNEL_CHECK(ops_sparse_compare(out->at + (i - 1) * out->rank, out->at + i * out->rank, out->rank) < 0,
                     "indices[%lld] is %s", (long long)i,
                     ops_sparse_compare(out->at + (i - 1) * out->rank, out->at + i * out->rank, out->rank)
                         ? "out of order. Many sparse ops require sorted indices."
                         : "repeated");
  return NULL;
}
static tfc_status dense_to_dense(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(check_groups(a->shape.dims, a->shape.rank, b->shape.dims, b->shape.rank));
  return operate(ctx, NULL, a, NULL, b, a->shape.dims, a->shape.rank);
}
static tfc_status dense_to_sparse(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  struct ops_sparse b;
  TFC_RETURN_IF_ERROR(sparse_set(ctx, 1, &b));
  TFC_RETURN_IF_ERROR(check_groups(a->shape.dims, a->shape.rank, b.dims, b.rank));
  return operate(ctx, NULL, a, &b, NULL, a->shape.dims, a->shape.rank);
}
static tfc_status sparse_to_sparse(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse a, b;
  TFC_RETURN_IF_ERROR(sparse_set(ctx, 0, &a));
  TFC_RETURN_IF_ERROR(sparse_set(ctx, 3, &b));
  TFC_RETURN_IF_ERROR(check_groups(a.dims, a.rank, b.dims, b.rank));
  return operate(ctx, &a, NULL, &b, NULL, a.dims, a.rank);
}
static tfc_status set_size(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct members m = {0};
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = {.rank = 0};
  TFC_RETURN_IF_ERROR(sparse_set(ctx, 0, &x));
  TFC_KERNEL_CHECK(x.rank >= 1, "a set needs a dimension");
  for (int d = 0; d < x.rank - 1; d++) shape.dims[shape.rank++] = x.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &shape, &y));
  memset(y->data, 0, y->size);
  TFC_RETURN_IF_ERROR(gather_members(ctx, &x, NULL, &m, &held));
  for (int64_t i = 0; i < m.count; i++) ((int32_t *)y->data)[m.rows[i]]++;
  tfc_buffer_release(held);
  return NULL;
}

static tfc_status shape_result(struct tfc_shape_ctx *ctx) {
  int rank = ctx->node->input_count == 6 ? -1 : ctx->inputs[0]->rank;
  const struct tfc_shape *dims = ctx->node->input_count == 2 ? NULL : ctx->inputs[ctx->node->input_count - 1];
  if (rank < 0 && ctx->node->input_count == 2) rank = ctx->inputs[1]->rank;
  if (rank < 0 && dims && dims->rank == 1 && dims->dims[0] >= 0) rank = (int)dims->dims[0];
  if (rank < 0 && ctx->node->input_count == 6 && ctx->inputs[2]->rank == 1 && ctx->inputs[2]->dims[0] >= 0)
    rank = (int)ctx->inputs[2]->dims[0];
  int64_t n = rank < 0 ? TFC_DIM_UNKNOWN : rank;
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, n);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(n);
  return NULL;
}

#define SET_TYPES "{int8, int16, int32, int64, uint8, uint16, string}"
#define SET_BITS                                                                                                       \
  (TFC_TYPE_BIT(TFC_INT8) | TFC_TYPE_BIT(TFC_INT16) | TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64) |              \
   TFC_TYPE_BIT(TFC_UINT8) | TFC_TYPE_BIT(TFC_UINT16) | TFC_TYPE_BIT(TFC_STRING))
#define SET_ROW(run)                                                                                                   \
  .outputs = "result_indices: int64, result_values: T, result_shape: int64",                                           \
  .attrs = "set_operation: string, validate_indices: bool = true, T: " SET_TYPES,                                      \
  .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST, .types = SET_BITS, .shape = shape_result, .kernel = run
static const struct tfc_op_def sparse_sets_rows[] = {
    {.name = "DenseToDenseSetOperation", .inputs = "set1: T, set2: T", SET_ROW(dense_to_dense)},
    {.name = "DenseToSparseSetOperation",
     .inputs = "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64",
     SET_ROW(dense_to_sparse)},
    {.name = "SparseToSparseSetOperation",
     .inputs = "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: T, "
               "set2_shape: int64",
     SET_ROW(sparse_to_sparse)},
    {.name = "SetSize",
     .inputs = "set_indices: int64, set_values: T, set_shape: int64",
     .outputs = "size: int32",
     .attrs = "validate_indices: bool = true, T: " SET_TYPES,
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .types = SET_BITS,
     .shape = ops_shape_nothing,
     .kernel = set_size,
     .samples = "int64[2,2]=[0,0,1,0], int32[2], int64[2]=[2,3]"},
};
TFC_REGISTER_OPS(sparse_sets_rows);
