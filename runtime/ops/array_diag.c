// The operations on diagonals: Diag, DiagPart, MatrixBandPart, and MatrixDiag, MatrixDiagPart, MatrixSetDiag of all
// versions.
//
// A band of diagonals d_low … d_high (0 is the main one, positive ones lie above it) is stored as rows, the highest
// diagonal first. Each row is as long as the longest diagonal; `align` says at which end of its row a shorter one is
// ("RIGHT": the padding is on the left). Version 1 of the operations has one diagonal and no dimension of rows.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// --- Bands of diagonals ----------------------------------------------------------------------------------------------
struct band {
  int64_t low, high, rows, columns, longest;
  bool super_left, sub_left; // whether diagonals above (below) the main one are at the left end of their rows
};
static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t diagonal_length(const struct band *b, int64_t d) {
  return smaller(b->rows + smaller(d, 0), b->columns - larger(d, 0));
}
// Element k of diagonal d is element k + diagonal_offset(b, d) of its row in the band.
static int64_t diagonal_offset(const struct band *b, int64_t d) {
  bool left = d >= 0 ? b->super_left : b->sub_left;
  return left ? 0 : b->longest - diagonal_length(b, d);
}

static tfc_status read_band(const struct tfc_tensor *k, struct band *b) {
  int64_t n = k ? tfc_tensor_elements(k) : 0;
  if (k) {
    TFC_KERNEL_CHECK(k->shape.rank <= 1, "diag_index must be a scalar or vector");
    TFC_KERNEL_CHECK(n == 1 || n == 2, "diag_index must have one or two elements, received %lld elements.",
                     (long long)n);
    b->low = tfc_tensor_int(k, 0);
    b->high = tfc_tensor_int(k, n - 1);
    TFC_KERNEL_CHECK(b->low <= b->high, "lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
                     (long long)b->low, (long long)b->high);
  }
  return NULL;
}
static tfc_status check_band(const struct band *b) {
  TFC_KERNEL_CHECK((-b->rows < b->low && b->low < b->columns) || b->low == 0,
                   "lower_diag_index is out of bound: %lld. It must be between %lld and %lld", (long long)b->low,
                   (long long)-b->rows, (long long)b->columns);
  TFC_KERNEL_CHECK((-b->rows < b->high && b->high < b->columns) || b->high == 0,
                   "upper_diag_index is out of bound: %lld. It must be between %lld and %lld", (long long)b->high,
                   (long long)-b->rows, (long long)b->columns);
  return NULL;
}
static void measure_band(struct band *b) {
  b->longest = smaller(b->rows + smaller(b->high, 0), b->columns - larger(b->low, 0));
}

struct align_state {
  bool super_left, sub_left;
};
static void read_align(const struct tfc_graph *g, const struct tfc_node *n, struct align_state *out) {
  // The default is that of versions 1 and 2, which have no `align`.
  tfc_str align = tfc_node_attr_string(g, n, "align", "LEFT_LEFT");
  out->super_left = tfc_str_starts(align, "LEFT");
  out->sub_left = tfc_str_ends(align, "LEFT");
}
static tfc_status prepare_align(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct align_state, state);
  read_align(ctx->graph, ctx->node, state);
  return NULL;
}

// Copies the diagonals of a band, one after another, between `matrix` [batches, rows, columns] and `diag` [batches,
// diagonals, longest].
static tfc_status copy_band(struct tfc_kernel_ctx *ctx, const struct band *b, int64_t batches,
                            const struct tfc_tensor *matrix, const struct tfc_tensor *diag, bool into_matrix,
                            struct tfc_tensor *dst) {
  int64_t diagonals = b->high - b->low + 1;
  for (int64_t d = b->high; d >= b->low; d--) {
    int64_t n = diagonal_length(b, d), row = b->high - d;
    if (n <= 0) continue;
    int64_t in_matrix = larger(-d, 0) * b->columns + larger(d, 0), in_diag = row * b->longest + diagonal_offset(b, d);
    struct ops_block block = {.rank = 2, .dims = {batches, n}};
    int64_t matrix_steps[2] = {b->rows * b->columns, b->columns + 1}, diag_steps[2] = {diagonals * b->longest, 1};
    memcpy(block.dst_strides, into_matrix ? matrix_steps : diag_steps, sizeof matrix_steps);
    memcpy(block.src_strides, into_matrix ? diag_steps : matrix_steps, sizeof matrix_steps);
    block.dst_at = into_matrix ? in_matrix : in_diag;
    block.src_at = into_matrix ? in_diag : in_matrix;
    TFC_RETURN_IF_ERROR(ops_copy_block(ctx, dst, into_matrix ? diag : matrix, &block));
  }
  return NULL;
}

static int64_t leading(const struct tfc_shape *s, int less) { // product of all but the last `less` dimensions
  int64_t n = 1;
  for (int d = 0; d < s->rank - less; d++) n *= s->dims[d];
  return n;
}

// --- MatrixDiagPart --------------------------------------------------------------------------------------------------
static tfc_status diag_part_shape(const struct tfc_shape *x, struct band *b, struct tfc_shape *out) {
  *out = *x;
  out->rank -= 2;
  if (b->high > b->low) out->dims[out->rank++] = b->high - b->low + 1;
  out->dims[out->rank++] = b->longest;
  return NULL;
}
static tfc_status matrix_diag_part(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct align_state *align = ctx->state;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank >= 2, "input must be at least 2-dim, received shape of rank %d", x->shape.rank);
  struct band b = {.rows = x->shape.dims[x->shape.rank - 2],
                   .columns = x->shape.dims[x->shape.rank - 1],
                   .super_left = align->super_left,
                   .sub_left = align->sub_left};
  TFC_RETURN_IF_ERROR(read_band(ctx->input_count > 1 ? ctx->inputs[1] : NULL, &b));
  TFC_RETURN_IF_ERROR(check_band(&b));
  measure_band(&b);
  TFC_RETURN_IF_ERROR(diag_part_shape(&x->shape, &b, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  if (b.high > b.low) {
    if (ctx->input_count > 2) {
      TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[2]) == 1, "padding_value must be a scalar");
      TFC_RETURN_IF_ERROR(ops_fill_with(y, 0, tfc_tensor_elements(y), ctx->inputs[2], 0));
    } else {
      ops_fill_zero(y);
    }
  }
  return copy_band(ctx, &b, leading(&x->shape, 2), x, y, false, y);
}
static tfc_status shape_matrix_diag_part(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  struct band b = {0};
  if (ctx->node->input_count > 2) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 0, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &x));
  if (x.rank < 0) return NULL;
  if (ctx->node->input_count > 1) {
    if (!ctx->input_values || !ctx->input_values[1]) return NULL;
    TFC_RETURN_IF_ERROR(read_band(ctx->input_values[1], &b));
  }
  b.rows = x.dims[x.rank - 2];
  b.columns = x.dims[x.rank - 1];
  if (tfc_dim_known(b.rows) && tfc_dim_known(b.columns)) {
    TFC_RETURN_IF_ERROR(check_band(&b));
    measure_band(&b);
  } else {
    b.longest = TFC_DIM_UNKNOWN;
  }
  return diag_part_shape(&x, &b, &ctx->outputs[0]);
}

// --- MatrixDiag ------------------------------------------------------------------------------------------------------
static bool given_scalar(const struct tfc_tensor *t, int64_t *out) {
  if (!t || t->shape.rank) return false;
  *out = tfc_tensor_int(t, 0);
  return true;
}
// Computes the size of the matrix from the band and the requested size (-1: the smallest that fits).
static tfc_status matrix_size(struct band *b, int64_t diagonal_dim, int64_t rows, int64_t columns) {
  int64_t min_rows = diagonal_dim - smaller(b->high, 0), min_columns = diagonal_dim + larger(b->low, 0);
  TFC_KERNEL_CHECK(rows == -1 || rows >= min_rows, "The number of rows is too small.");
  TFC_KERNEL_CHECK(columns == -1 || columns >= min_columns, "The number of columns is too small.");
  if (rows == -1 && columns == -1) {
    rows = columns = larger(min_rows, min_columns);
  } else if (rows == -1) {
    rows = min_rows;
  } else if (columns == -1) {
    columns = min_columns;
  }
  TFC_KERNEL_CHECK(
      rows == min_rows || columns == min_columns,
      "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.");
  b->rows = rows;
  b->columns = columns;
  b->longest = diagonal_dim;
  return NULL;
}
static tfc_status matrix_diag(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct align_state *align = ctx->state;
  struct band b = {.super_left = align->super_left, .sub_left = align->sub_left};
  int64_t rows = -1, columns = -1;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "diagonal must be at least 1-dim");
  if (ctx->input_count > 1) {
    TFC_RETURN_IF_ERROR(read_band(ctx->inputs[1], &b));
    TFC_KERNEL_CHECK(given_scalar(ctx->inputs[2], &rows) && given_scalar(ctx->inputs[3], &columns),
                     "num_rows and num_cols must be scalars");
    TFC_KERNEL_CHECK(ctx->inputs[4]->shape.rank == 0, "padding_value must be a scalar");
  }
  bool many = b.high > b.low;
  TFC_KERNEL_CHECK(x->shape.rank >= 1 + many, "diagonal must be at least %d-dim", 1 + many);
  TFC_KERNEL_CHECK(!many || x->shape.dims[x->shape.rank - 2] == b.high - b.low + 1,
                   "The number of diagonals provided in the input does not match the lower_diag_index and "
                   "upper_diag_index range.");
  TFC_RETURN_IF_ERROR(matrix_size(&b, x->shape.dims[x->shape.rank - 1], rows, columns));
  TFC_RETURN_IF_ERROR(check_band(&b));
  struct tfc_shape shape = x->shape;
  shape.rank -= 1 + many;
  TFC_KERNEL_CHECK(shape.rank + 2 <= TFC_MAX_RANK, "the result has too many dimensions");
  int64_t batches = leading(&shape, 0);
  shape.dims[shape.rank++] = b.rows;
  shape.dims[shape.rank++] = b.columns;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  if (ctx->input_count > 1)
    TFC_RETURN_IF_ERROR(ops_fill_with(y, 0, tfc_tensor_elements(y), ctx->inputs[4], 0));
  else
    ops_fill_zero(y);
  return copy_band(ctx, &b, batches, y, x, true, y);
}
static tfc_status shape_matrix_diag(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  struct band b = {0};
  int64_t rows = -1, columns = -1;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (x.rank < 0) return NULL;
  bool known = true;
  if (ctx->node->input_count > 1) {
    if (!ctx->input_values || !ctx->input_values[1]) return NULL;
    TFC_RETURN_IF_ERROR(read_band(ctx->input_values[1], &b));
    known = given_scalar(ctx->input_values[2], &rows) && given_scalar(ctx->input_values[3], &columns);
  }
  bool many = b.high > b.low;
  int64_t longest = x.dims[x.rank - 1];
  if (x.rank < 1 + many) return tfc_status_make(TFC_INVALID_ARGUMENT, "diagonal must be at least %d-dim", 1 + many);
  x.rank -= 1 + many;
  if (x.rank + 2 > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  x.dims[x.rank] = x.dims[x.rank + 1] = TFC_DIM_UNKNOWN;
  if (known && tfc_dim_known(longest)) {
    TFC_RETURN_IF_ERROR(matrix_size(&b, longest, rows, columns));
    x.dims[x.rank] = b.rows;
    x.dims[x.rank + 1] = b.columns;
  } else if (ctx->node->input_count == 1) {
    x.dims[x.rank] = x.dims[x.rank + 1] = longest;
  }
  x.rank += 2;
  ctx->outputs[0] = x;
  return NULL;
}

// The batch dimensions of the diagonals are those of the matrices. If k is not known, TensorFlow assumes one diagonal.
static tfc_status shape_matrix_set_diag(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, diagonal;
  int64_t k[2] = {0};
  int n = 0;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 1, &diagonal));
  const bool many = ctx->node->input_count == 3 && ctx->input_values && ctx->input_values[2] &&
                    ctx->input_values[2]->shape.rank == 1 && ops_known_ints(ctx, 2, k, 2, &n) && n == 2 && k[0] != k[1];
  ctx->outputs[0] = x;
  if (diagonal.rank < 0 || tfc_shape_is_static(&x)) return NULL;
  diagonal.rank += many ? 0 : 1;
  if (diagonal.rank < 2 || diagonal.rank > TFC_MAX_RANK) return NULL;
  diagonal.dims[diagonal.rank - 1] = diagonal.dims[diagonal.rank - 2] = TFC_DIM_UNKNOWN;
  return tfc_shape_merge(&x, &diagonal, &ctx->outputs[0]);
}

// --- MatrixSetDiag ---------------------------------------------------------------------------------------------------
static tfc_status matrix_set_diag(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *diag = ctx->inputs[1];
  const struct align_state *align = ctx->state;
  struct tfc_shape wanted;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank >= 2, "input must be at least 2-dim, received shape of rank %d", x->shape.rank);
  struct band b = {.rows = x->shape.dims[x->shape.rank - 2],
                   .columns = x->shape.dims[x->shape.rank - 1],
                   .super_left = align->super_left,
                   .sub_left = align->sub_left};
  TFC_RETURN_IF_ERROR(read_band(ctx->input_count > 2 ? ctx->inputs[2] : NULL, &b));
  TFC_RETURN_IF_ERROR(check_band(&b));
  measure_band(&b);
  TFC_RETURN_IF_ERROR(diag_part_shape(&x->shape, &b, &wanted));
  char p[TFC_SHAPE_TEXT], q[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(tfc_shape_equal(&wanted, &diag->shape), "diagonal must have shape %s, not %s",
                   tfc_shape_show(&wanted, p), tfc_shape_show(&diag->shape, q));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (y->data != x->data) TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, x, 0, tfc_tensor_elements(x)));
  return copy_band(ctx, &b, leading(&x->shape, 2), y, diag, true, y);
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static struct tfc_attr align_attr(struct tfc_grad_ctx *g) {
  const struct tfc_attr *align = grad_attr(g, "align");
  return tfc_attr_string("align", align && align->kind == TFC_ATTR_STRING ? align->s : TFC_STR("LEFT_LEFT"));
}
static struct tfc_output diag_part_v3(struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output k) {
  struct tfc_attr align = align_attr(g);
  return tfc_add(g->builder, "MatrixDiagPartV3", "", (struct tfc_output[]){x, k, grad_const(g, x, 0)}, 3, &align, 1);
}
static struct tfc_output set_diag_v3(struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output diag,
                                     struct tfc_output k) {
  struct tfc_attr align = align_attr(g);
  return tfc_add(g->builder, "MatrixSetDiagV3", "", (struct tfc_output[]){x, diag, k}, 3, &align, 1);
}
OPS_GRADIENT(MatrixDiag) {
  bool first = grad_in_count(g) == 1;
  g->grad_inputs[0] = first ? grad_op1(g, "MatrixDiagPart", G) : diag_part_v3(g, G, grad_in(g, 1));
  return NULL;
}
OPS_GRADIENT(MatrixDiagPart) {
  bool first = grad_in_count(g) == 1;
  struct tfc_output zeros = grad_op1(g, "ZerosLike", X);
  g->grad_inputs[0] = first ? grad_op2(g, "MatrixSetDiag", zeros, G) : set_diag_v3(g, zeros, G, grad_in(g, 1));
  return NULL;
}
OPS_GRADIENT(MatrixSetDiag) {
  struct tfc_output zeros = grad_op1(g, "ZerosLike", grad_in(g, 1));
  if (grad_in_count(g) == 2) {
    g->grad_inputs[0] = grad_op2(g, "MatrixSetDiag", G, zeros);
    g->grad_inputs[1] = grad_op1(g, "MatrixDiagPart", G);
  } else {
    g->grad_inputs[0] = set_diag_v3(g, G, zeros, grad_in(g, 2));
    g->grad_inputs[1] = diag_part_v3(g, G, grad_in(g, 2));
  }
  return NULL;
}

// --- MatrixBandPart --------------------------------------------------------------------------------------------------
static tfc_status matrix_band_part(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int64_t lower, upper;
  TFC_KERNEL_CHECK(x->shape.rank >= 2, "input must be at least 2-dim");
  TFC_KERNEL_CHECK(given_scalar(ctx->inputs[1], &lower) && given_scalar(ctx->inputs[2], &upper),
                   "num_lower and num_upper must be scalars");
  int64_t rows = x->shape.dims[x->shape.rank - 2], columns = x->shape.dims[x->shape.rank - 1];
  TFC_KERNEL_CHECK(lower <= rows, "num_lower must be negative or less or equal to number of rows (%lld) got: %lld",
                   (long long)rows, (long long)lower);
  TFC_KERNEL_CHECK(upper <= columns,
                   "num_upper must be negative or less or equal to number of columns (%lld) got: %lld",
                   (long long)columns, (long long)upper);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  size_t size = tfc_dtype_size(x->dtype);
  if (!tfc_dtype_is_plain(x->dtype))
    return tfc_status_make(TFC_UNIMPLEMENTED, "MatrixBandPart of %s", tfc_dtype_name(x->dtype));
  int64_t total = leading(&x->shape, 1);
  for (int64_t i = 0; i < total; i++) {
    int64_t row = i % rows, from = lower < 0 ? 0 : larger(row - lower, 0);
    int64_t to = upper < 0 ? columns : smaller(row + upper + 1, columns);
    char *out = (char *)y->data + (size_t)(i * columns) * size;
    const char *in = (const char *)x->data + (size_t)(i * columns) * size;
    if (from > columns) from = columns;
    if (to < from) to = from;
    memset(out, 0, (size_t)from * size);
    if (out != in) memcpy(out + (size_t)from * size, in + (size_t)from * size, (size_t)(to - from) * size);
    memset(out + (size_t)to * size, 0, (size_t)(columns - to) * size);
  }
  return NULL;
}
OPS_GRADIENT(MatrixBandPart) {
  g->grad_inputs[0] = grad_op3(g, "MatrixBandPart", G, grad_in(g, 1), grad_in(g, 2));
  return NULL;
}

// --- Diag, DiagPart --------------------------------------------------------------------------------------------------
static tfc_status diag(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank >= 1 && 2 * x->shape.rank <= TFC_MAX_RANK, "Input must be at least rank 1, got %d",
                   x->shape.rank);
  memcpy(&shape.dims[shape.rank], shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  shape.rank *= 2;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  ops_fill_zero(y);
  int64_t n = tfc_tensor_elements(x);
  struct ops_block block = {.rank = 1, .dims = {n}, .dst_strides = {n + 1}, .src_strides = {1}};
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status shape_diag(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  if (x->rank < 0) return NULL;
  if (x->rank < 1 || 2 * x->rank > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "rank %d", x->rank);
  struct tfc_shape out = *x;
  memcpy(&out.dims[out.rank], x->dims, (size_t)x->rank * sizeof *x->dims);
  out.rank *= 2;
  ctx->outputs[0] = out;
  return NULL;
}
static tfc_status diag_part(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  shape.rank /= 2;
  bool square = x->shape.rank % 2 == 0 && x->shape.rank > 0;
  for (int d = 0; square && d < shape.rank; d++) square = x->shape.dims[d] == x->shape.dims[d + shape.rank];
  TFC_KERNEL_CHECK(square, "The rank of the tensor should be even and positive, its halves of the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  int64_t n = tfc_tensor_elements(y);
  struct ops_block block = {.rank = 1, .dims = {n}, .dst_strides = {1}, .src_strides = {n + 1}};
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status shape_diag_part(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  if (x->rank < 0) return NULL;
  if (x->rank % 2 || x->rank == 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Input must have even and non-zero rank, input rank is %d", x->rank);
  struct tfc_shape out = {.rank = x->rank / 2};
  for (int d = 0; d < out.rank; d++)
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x->dims[d], x->dims[d + out.rank], &out.dims[d]));
  ctx->outputs[0] = out;
  return NULL;
}
OPS_GRADIENT(Diag) {
  g->grad_inputs[0] = grad_op1(g, "DiagPart", G);
  return NULL;
}
OPS_GRADIENT(DiagPart) {
  g->grad_inputs[0] = grad_op1(g, "Diag", G);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define DIAG                                                                                                           \
  .prepare = prepare_align, .shape = shape_matrix_diag, .kernel = matrix_diag, .gradient = gradient_MatrixDiag
#define PART                                                                                                           \
  .prepare = prepare_align, .shape = shape_matrix_diag_part, .kernel = matrix_diag_part,                               \
  .gradient = gradient_MatrixDiagPart
#define SET                                                                                                            \
  .prepare = prepare_align, .shape = shape_matrix_set_diag, .kernel = matrix_set_diag,                                 \
  .gradient = gradient_MatrixSetDiag
static const struct tfc_op_def array_diag_rows[] = {
    {.name = "Diag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = shape_diag,
     .kernel = diag,
     .gradient = gradient_Diag,
     .samples = "float[3]; float[2,3]"},
    {.name = "DiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = shape_diag_part,
     .kernel = diag_part,
     .gradient = gradient_DiagPart,
     .samples = "float[3,3]"},
    {.name = "MatrixBandPart",
     .inputs = "input: T, num_lower: Tindex, num_upper: Tindex",
     .outputs = "band: T",
     .attrs = "T: type, Tindex: {int32, int64} = int64",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = ops_shape_same,
     .kernel = matrix_band_part,
     .gradient = gradient_MatrixBandPart,
     .samples = "float[3,4], int64[]=1, int64[]=-1"},
    {.name = "BatchMatrixBandPart",
     .inputs = "input: T, num_lower: int64, num_upper: int64",
     .outputs = "band: T",
     .attrs = "T: type",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = ops_shape_same,
     .kernel = matrix_band_part},
    {.name = "BatchMatrixDiag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .host = {"T", TFC_INT32_BIT},
     .prepare = prepare_align,
     .shape = shape_matrix_diag,
     .kernel = matrix_diag},
    {.name = "BatchMatrixDiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = "T: type",
     .host = {"T", TFC_INT32_BIT},
     .prepare = prepare_align,
     .shape = shape_matrix_diag_part,
     .kernel = matrix_diag_part},
    {.name = "BatchMatrixSetDiag",
     .inputs = "input: T, diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .host = {"T", TFC_INT32_BIT},
     .prepare = prepare_align,
     .shape = shape_matrix_set_diag,
     .kernel = matrix_set_diag},
    {.name = "MatrixDiag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     DIAG,
     .host = {"T", TFC_INT32_BIT},
     .samples = "float[2,3]"},
    {.name = "MatrixDiagV2",
     .inputs = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
     .outputs = "output: T",
     .attrs = "T: type",
     DIAG,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 30,
     .samples = "float[2,3], int32[]=1, int32[]=-1, int32[]=-1, float[]"},
    {.name = "MatrixDiagV3",
     .inputs = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
     .outputs = "output: T",
     .attrs = "T: type, align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
     DIAG,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 30,
     .samples = "float[2,3], int32[]=1, int32[]=-1, int32[]=-1, float[]; float[2,3], int32[2]=[0,1], int32[]=-1, "
                "int32[]=-1, float[]"},
    {.name = "MatrixDiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = "T: type",
     PART,
     .host = {"T", TFC_INT32_BIT},
     .samples = "float[2,3,4]"},
    {.name = "MatrixDiagPartV2",
     .inputs = "input: T, k: int32, padding_value: T",
     .outputs = "diagonal: T",
     .attrs = "T: type",
     PART,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .samples = "float[2,3,4], int32[2]=[-1,1], float[]"},
    {.name = "MatrixDiagPartV3",
     .inputs = "input: T, k: int32, padding_value: T",
     .outputs = "diagonal: T",
     .attrs = "T: type, align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
     PART,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .samples = "float[2,3,4], int32[2]=[-1,1], float[]"},
    {.name = "MatrixSetDiag",
     .inputs = "input: T, diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     SET,
     .host = {"T", TFC_INT32_BIT},
     .samples = "float[2,3,4], float[2,3]"},
    {.name = "MatrixSetDiagV2",
     .inputs = "input: T, diagonal: T, k: int32",
     .outputs = "output: T",
     .attrs = "T: type",
     SET,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 4,
     .samples = "float[2,3,4], float[2,3], int32[]=0"},
    {.name = "MatrixSetDiagV3",
     .inputs = "input: T, diagonal: T, k: int32",
     .outputs = "output: T",
     .attrs = "T: type, align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
     SET,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 4,
     .samples = "float[2,3,4], float[2,3], int32[]=1"},
};
TFC_REGISTER_OPS(array_diag_rows);
