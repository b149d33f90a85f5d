// Operations that return shapes as tensors (Shape, ShapeN, Size, Rank) or change the shape of a tensor (Reshape,
// ExpandDims, Squeeze).
#include <limits.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// --- Shape, ShapeN, Size, Rank -------------------------------------------------------------------------------------
struct type_state {
  tfc_dtype out;
};
static tfc_status prepare_out_type(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->out = tfc_node_attr_type(ctx->graph, ctx->node, "out_type", TFC_INT32);
  return NULL;
}

static tfc_status put_int(struct tfc_tensor *t, int64_t i, int64_t value) {
  if (t->dtype == TFC_INT64) {
    ((int64_t *)t->data)[i] = value;
    return NULL;
  }
  TFC_KERNEL_CHECK(value <= INT32_MAX, "%lld does not fit int32: set out_type to int64", (long long)value);
  ((int32_t *)t->data)[i] = (int32_t)value;
  return NULL;
}

static tfc_status shape_values(struct tfc_kernel_ctx *ctx) { // output i gets the dimensions of input i
  const struct type_state *state = ctx->state;
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    const struct tfc_shape *s = &ctx->inputs[i]->shape;
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, state->out, &TFC_SHAPE(s->rank), &y));
    for (int d = 0; d < s->rank; d++) TFC_RETURN_IF_ERROR(put_int(y, d, s->dims[d]));
  }
  return NULL;
}
static tfc_status shape_of_shape(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    const struct tfc_shape *s = ctx->inputs[i];
    ctx->outputs[i] = s->rank < 0 ? tfc_shape_unknown_of_rank(1) : TFC_SHAPE(s->rank);
    if (s->rank >= 0) ops_set_partial(ctx, i, s);
  }
  return NULL;
}

static tfc_status size(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ((const struct type_state *)ctx->state)->out, &TFC_SHAPE_SCALAR, &y));
  return put_int(y, 0, tfc_tensor_elements(ctx->inputs[0]));
}
static tfc_status shape_size(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  if (tfc_shape_is_static(ctx->inputs[0])) ops_set_partial(ctx, 0, &TFC_SHAPE(tfc_shape_elements(ctx->inputs[0])));
  return NULL;
}

static tfc_status rank(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  return put_int(y, 0, ctx->inputs[0]->shape.rank);
}
static tfc_status shape_rank(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  if (ctx->inputs[0]->rank >= 0) ops_set_partial(ctx, 0, &TFC_SHAPE(ctx->inputs[0]->rank));
  return NULL;
}

// --- Views -------------------------------------------------------------------------------------------------------
static tfc_status set_view(struct tfc_kernel_ctx *ctx, const struct tfc_shape *shape) {
  struct tfc_tensor view = *ctx->inputs[0];
  view.shape = *shape;
  return tfc_kernel_set_output(ctx, 0, &view);
}

static tfc_status reshape(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *sizes = ctx->inputs[1];
  int64_t n = tfc_tensor_elements(sizes), known = 1, total = tfc_tensor_elements(x);
  int unknown = -1;
  TFC_KERNEL_CHECK(sizes->shape.rank == 1 || (sizes->shape.rank == 0 && n == 1), "sizes input must be 1-D");
  TFC_KERNEL_CHECK(n <= TFC_MAX_RANK, "a shape of %lld dimensions; at most %d are supported", (long long)n,
                   TFC_MAX_RANK);
  struct tfc_shape shape = {.rank = (int32_t)n};
  for (int d = 0; d < n; d++) {
    int64_t v = shape.dims[d] = tfc_tensor_int(sizes, d);
    TFC_KERNEL_CHECK(v >= -1, "Size %d must be non-negative, not %lld", d, (long long)v);
    if (v == -1) {
      TFC_KERNEL_CHECK(unknown < 0, "Only one input size may be -1, not both %d and %d", unknown, d);
      unknown = d;
    } else {
      TFC_KERNEL_CHECK(!__builtin_mul_overflow(known, v, &known), "the shape's size overflows");
    }
  }
  if (unknown >= 0) {
    TFC_KERNEL_CHECK(known > 0, "reshape cannot infer the missing input size for an empty tensor unless all specified "
                                "input sizes are non-zero");
    shape.dims[unknown] = total / known;
    known *= shape.dims[unknown];
  }
  char a[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(known == total, "Input to reshape is a tensor with %lld values, but the requested shape %s has %lld",
                   (long long)total, tfc_shape_show(&shape, a), (long long)known);
  return set_view(ctx, &shape);
}

static tfc_status shape_reshape(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  const struct tfc_tensor *value = ctx->input_values ? ctx->input_values[1] : NULL;
  struct tfc_shape out = ops_described_shape(ctx, 1);
  if (ctx->inputs[1]->rank == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "sizes input must be 1-D");
  for (int64_t d = 0, n = value ? tfc_tensor_elements(value) : 0; d < n; d++)
    if (tfc_tensor_int(value, d) < -1)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Size %d must be non-negative, not %lld", (int)d,
                             (long long)tfc_tensor_int(value, d));
  if (out.rank < 0) return NULL;
  // If one dimension alone is unknown, it follows from the others. In a constant, -1 asks for that; in a partly known
  // shape, an unknown dimension may be anything, but if it is the only one it follows too.
  int64_t total = tfc_shape_elements(x), known = 1;
  int unknown = -1, count = 0;
  for (int d = 0; d < out.rank; d++) {
    if (!tfc_dim_known(out.dims[d])) {
      unknown = d;
      count++;
    } else if (__builtin_mul_overflow(known, out.dims[d], &known)) {
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the shape's size overflows");
    }
  }
  if (value && count > 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "more than one size is -1");
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  if (count == 1 && x->rank >= 0) {
    // Sizes that input and output both have cancel, even unknown ones: reshaping [?a, 512] to [-1, 512] keeps the
    // symbol ?a.
    int64_t rest = 1, symbol = 0;
    int symbols = 0;
    for (int d = 0; d < x->rank; d++) {
      if (tfc_dim_known(x->dims[d])) {
        rest *= x->dims[d];
      } else {
        symbols++;
        symbol = x->dims[d];
      }
    }
    if (symbols == 0 && known > 0) {
      if (total % known)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot reshape %s to %s: %lld is not a multiple of %lld",
                               tfc_shape_show(x, a), tfc_shape_show(&out, b), (long long)total, (long long)known);
      out.dims[unknown] = total / known;
    } else if (rest == 0 && known > 0) {
      out.dims[unknown] = 0;
    } else if (symbols == 1 && rest == known && rest > 0) {
      out.dims[unknown] = symbol;
    }
  } else if (count == 0 && total >= 0 && known != total) {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot reshape %s (%lld elements) to %s (%lld elements)",
                           tfc_shape_show(x, a), (long long)total, tfc_shape_show(&out, b), (long long)known);
  }
  ctx->outputs[0] = out;
  // A small integer vector that becomes a scalar (or back) keeps its partial value.
  if (out.rank <= 1 && ctx->input_as_shape && ctx->input_as_shape[0] && ctx->input_as_shape[0]->rank >= 0)
    ops_set_partial(ctx, 0, ctx->input_as_shape[0]);
  return NULL;
}

// The gradient of an operation that only changes the shape gets the forward input's shape back.
OPS_GRADIENT(View) {
  g->grad_inputs[0] = g_reshape(g, G, grad_shape(g, X, g->input_shapes[0], TFC_INT32));
  return NULL;
}

static tfc_status expanded(const struct tfc_shape *x, int64_t dim, struct tfc_shape *out) {
  if (dim < -(int64_t)x->rank - 1 || dim > x->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Tried to expand dim index %lld for tensor with %d dimensions.",
                           (long long)dim, x->rank);
  if (x->rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  int at = (int)(dim < 0 ? dim + x->rank + 1 : dim);
  out->rank = x->rank + 1;
  for (int d = 0; d < out->rank; d++) out->dims[d] = d < at ? x->dims[d] : d == at ? 1 : x->dims[d - 1];
  return NULL;
}
static tfc_status expand_dims(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape;
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[1]) == 1, "'dim' must be a tensor with a single value");
  TFC_RETURN_IF_ERROR(expanded(&ctx->inputs[0]->shape, tfc_tensor_int(ctx->inputs[1], 0), &shape));
  return set_view(ctx, &shape);
}
static tfc_status shape_expand_dims(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t dim;
  if (ctx->input_as_shape && ctx->input_as_shape[0] && x->rank == 0) ops_set_partial(ctx, 0, ctx->input_as_shape[0]);
  if (x->rank < 0) return NULL;
  if (!ctx->input_values || !ctx->input_values[1] || !ops_known_int(ctx, 1, &dim)) {
    ctx->outputs[0] = x->rank < TFC_MAX_RANK ? tfc_shape_unknown_of_rank(x->rank + 1) : TFC_SHAPE_UNKNOWN;
    return NULL;
  }
  return expanded(x, dim, &ctx->outputs[0]);
}

static tfc_status squeezed(const struct tfc_shape *x, const int64_t *dims, uint32_t count, bool known_only,
                           struct tfc_shape *out) {
  bool drop[TFC_MAX_RANK] = {0};
  for (uint32_t i = 0; i < count; i++) {
    int axis;
    TFC_RETURN_IF_ERROR(ops_axis(dims[i], x->rank, &axis));
    drop[axis] = true;
    if (x->dims[axis] != 1 && (tfc_dim_known(x->dims[axis]) || !known_only))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Can not squeeze dim[%d], expected a dimension of 1, got %lld", axis,
                             (long long)x->dims[axis]);
  }
  *out = TFC_SHAPE_SCALAR;
  for (int d = 0; d < x->rank; d++)
    if (!(count ? drop[d] : x->dims[d] == 1)) out->dims[out->rank++] = x->dims[d];
  return NULL;
}
static tfc_status prepare_squeeze(struct tfc_prepare_ctx *ctx) {
  ctx->state = (void *)(uintptr_t)tfc_node_attr(ctx->graph, ctx->node, "squeeze_dims");
  return NULL;
}
static tfc_status squeeze(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *dims = ctx->state;
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(
      squeezed(&ctx->inputs[0]->shape, dims ? dims->ints : NULL, dims ? dims->count : 0, false, &shape));
  return set_view(ctx, &shape);
}
static tfc_status shape_squeeze(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *dims = tfc_node_attr(ctx->graph, ctx->node, "squeeze_dims");
  const struct tfc_shape *x = ctx->inputs[0];
  uint32_t count = dims ? dims->count : 0;
  if (x->rank < 0) return NULL;
  if (count == 0)
    for (int d = 0; d < x->rank; d++)
      if (!tfc_dim_known(x->dims[d])) return NULL; // it may be 1, and would then be dropped
  if (ctx->input_as_shape && ctx->input_as_shape[0] && x->rank == 1 && x->dims[0] == 1)
    ops_set_partial(ctx, 0, ctx->input_as_shape[0]);
  return squeezed(x, count ? dims->ints : NULL, count, true, &ctx->outputs[0]);
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ABOUT_SHAPES                                                                                                   \
  .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ABOUT_INPUTS | TFC_OP_NO_ELEMENTS, .host_outputs = ~0u,                  \
  .cost = ops_cost_nothing
#define VIEW .flags = TFC_OP_VIEW, .cost = ops_cost_nothing, .gradient = gradient_View

static const struct tfc_op_def array_shape_rows[] = {
    {.name = "Shape",
     .role = TFC_ROLE_OF_SHAPE,
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type, out_type: {int32, int64} = int32",
     ABOUT_SHAPES,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_of_shape,
     .prepare = prepare_out_type,
     .kernel = shape_values,
     .samples = "float[3,4]; int32[] {out_type=int64}"},
    {.name = "ShapeN",
     .role = TFC_ROLE_OF_SHAPE,
     .inputs = "input: N * T",
     .outputs = "output: N * out_type",
     .attrs = "N: int >= 1, T: type, out_type: {int32, int64} = int32",
     ABOUT_SHAPES,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_of_shape,
     .prepare = prepare_out_type,
     .kernel = shape_values,
     .samples = "float[3,4], float[2]"},
    {.name = "Size",
     .role = TFC_ROLE_OF_SHAPE,
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type, out_type: {int32, int64} = int32",
     ABOUT_SHAPES,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_size,
     .prepare = prepare_out_type,
     .kernel = size,
     .samples = "float[3,4]; float[0]"},
    {.name = "Rank",
     .role = TFC_ROLE_OF_SHAPE,
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: type",
     ABOUT_SHAPES,
     .host = {"T", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .shape = shape_rank,
     .kernel = rank,
     .samples = "float[3,4]"},
    {.name = "Reshape",
     .inputs = "tensor: T, shape: Tshape",
     .outputs = "output: T",
     .attrs = "T: type, Tshape: {int32, int64} = int32",
     VIEW,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_reshape,
     .kernel = reshape,
     .samples = "float[3,4], int32[2]=[2,6]; float[3,4], int32[1]=[-1]; float[1], int32[0]=[]"},
    {.name = "ExpandDims",
     .inputs = "input: T, dim: Tdim",
     .outputs = "output: T",
     .attrs = "T: type, Tdim: {int32, int64} = int32",
     VIEW,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_expand_dims,
     .kernel = expand_dims,
     .samples = "float[3,4], int32[]=1; float[3], int32[]=-1"},
    {.name = "Squeeze",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type, squeeze_dims: list(int) >= 0 = []",
     VIEW,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_squeeze,
     .prepare = prepare_squeeze,
     .kernel = squeeze,
     .samples = "float[1,3,1]; float[1,3,1] {squeeze_dims=[0]}"},
};
TFC_REGISTER_OPS(array_shape_rows);
