// The rows of the kernel table for reductions, softmax, cross entropies and biases.
#include "runtime/device/cuda/kernels/reduce.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/dnn.h"
#include "runtime/device/cuda/kernels/elementwise.h"

// --- Describing a reduction ----------------------------------------------------------------------------------------
// Joins neighbouring dimensions that are all kept or all reduced, and fills in the reduction.
static tfc_status plan(const struct tfc_shape *x, const bool *reduced, struct tfc_cuda_reduction *out) {
  struct tfc_cuda_reduction r = {.outputs = 1, .count = 1};
  int64_t strides[TFC_MAX_RANK];
  tfc_shape_strides(x, strides);
  int last = -1; // whether the last dimension of more than one element is kept (0) or reduced (1); -1: there was none
                 // yet
  for (int d = 0; d < x->rank; d++) {
    int64_t n = x->dims[d];
    *(reduced[d] ? &r.count : &r.outputs) *= n;
    if (n == 1) continue;
    int32_t *rank = reduced[d] ? &r.reduced_rank : &r.kept_rank;
    int64_t *dims = reduced[d] ? r.reduced_dims : r.kept_dims, *to = reduced[d] ? r.reduced_strides : r.kept_strides;
    if (last == reduced[d]) {
      dims[*rank - 1] *= n;
      to[*rank - 1] = strides[d];
    } else {
      if (*rank == TFC_CUDA_RANK) return tfc_status_make(TFC_UNIMPLEMENTED, "too many dimensions");
      dims[*rank] = n;
      to[(*rank)++] = strides[d];
    }
    last = reduced[d];
  }
  r.along = last != 0;
  if (!r.kept_rank) r.kept_rank = 1, r.kept_dims[0] = 1;
  if (!r.reduced_rank) r.reduced_rank = 1, r.reduced_dims[0] = 1;
  tfc_cuda_reduction_split(&r);
  *out = r;
  return NULL;
}

static tfc_status run_planned(struct tfc_cuda_launch *l, const struct tfc_cuda_reduction *r, int kind,
                              const struct tfc_tensor *x, struct tfc_tensor *y) {
  if (!r->outputs) return NULL;
  struct tfc_buffer *scratch = NULL;
  size_t bytes = tfc_cuda_reduction_scratch(r);
  if (bytes) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, &scratch));
  int failed = tfc_cuda_reduce(kind, (int)x->dtype, r, x->data, y->data, scratch ? scratch->data : NULL, l->stream);
  tfc_buffer_release(scratch);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}

// --- Over given dimensions ---------------------------------------------------------------------------------------
struct state {
  bool keep_dims;
  struct tfc_cuda_argument axes;
};
static tfc_status reduce_constant(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct state, state);
  state->keep_dims = tfc_node_attr_bool(p->base->graph, p->base->node, "keep_dims", false);
  state->axes = tfc_cuda_argument(p, 1);
  if (!state->axes.constant) TFC_CUDA_DECLINE("the axes are not constant");
  return NULL;
}
static tfc_status reduce_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct state, state);
  state->keep_dims = tfc_node_attr_bool(p->base->graph, p->base->node, "keep_dims", false);
  state->axes = tfc_cuda_argument(p, 1);
  return NULL;
}

static tfc_status reduce(struct tfc_cuda_launch *l, int kind, int finish) {
  const struct state *state = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value axes;
  bool reduced[TFC_MAX_RANK] = {0};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &state->axes, &axes));
  for (int64_t i = 0; i < tfc_tensor_elements(axes.tensor); i++) {
    int64_t axis = tfc_tensor_int(axes.tensor, i);
    TFC_KERNEL_CHECK(axis >= -x->shape.rank && axis < x->shape.rank,
                     "Invalid reduction dimension (%lld for input with %d dimension(s))", (long long)axis,
                     x->shape.rank);
    axis += axis < 0 ? x->shape.rank : 0;
    TFC_KERNEL_CHECK(!reduced[axis], "Invalid reduction arguments: Axes contains duplicate dimension: %lld",
                     (long long)axis);
    reduced[axis] = true;
  }
  struct tfc_shape shape = {0};
  for (int d = 0; d < x->shape.rank; d++)
    if (!reduced[d] || state->keep_dims) shape.dims[shape.rank++] = reduced[d] ? 1 : x->shape.dims[d];
  struct tfc_cuda_reduction r;
  TFC_RETURN_IF_ERROR(plan(&x->shape, reduced, &r));
  r.finish = finish;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  return run_planned(l, &r, kind, x, y);
}
#define LAUNCH(name, kind, finish)                                                                                     \
  static tfc_status launch_##name(struct tfc_cuda_launch *l) {                                                         \
    return reduce(l, TFC_CUDA_REDUCE_##kind, TFC_CUDA_FINISH_##finish);                                                \
  }
LAUNCH(Sum, SUM, NOTHING)
LAUNCH(Mean, SUM, DIVIDE)
LAUNCH(Prod, PROD, NOTHING)
LAUNCH(Max, MAX, NOTHING)
LAUNCH(Min, MIN, NOTHING)
LAUNCH(All, ALL, NOTHING)
LAUNCH(Any, ANY, NOTHING)
LAUNCH(EuclideanNorm, SQUARES, ROOT)

// Computes Σ x² / 2.
static tfc_status launch_L2Loss(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_reduction r;
  TFC_RETURN_IF_ERROR(plan(&TFC_SHAPE(tfc_tensor_elements(x)), (const bool[]){true}, &r));
  r.finish = TFC_CUDA_FINISH_HALF;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &TFC_SHAPE_SCALAR, &y));
  return run_planned(l, &r, TFC_CUDA_REDUCE_SQUARES, x, y);
}

// The same for many tensors (runtime/exec/rewrites/squares.c).
static tfc_status launch_squares(struct tfc_cuda_launch *l) {
  for (uint32_t at = 0; at < l->ctx->input_count;) {
    struct tfc_cuda_squares list = {0};
    struct tfc_buffer *scratch = NULL;
    for (; at < l->ctx->input_count && list.count < TFC_CUDA_SQUARES; at++) {
      const struct tfc_tensor *x = l->ctx->inputs[at];
      struct tfc_tensor *y = NULL;
      TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, at, TFC_FLOAT, &TFC_SHAPE_SCALAR, &y));
      tfc_cuda_squares_add(&list, x->data, y->data, tfc_cuda_count(x));
    }
    if (list.in_pieces)
      TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, (size_t)list.items[list.count - 1].end * sizeof(float), &scratch));
    int failed = tfc_cuda_squares_run(&list, scratch ? scratch->data : NULL, l->stream);
    tfc_buffer_release(scratch);
    if (failed) return tfc_cuda_status(l, failed);
  }
  return NULL;
}

// --- ArgMax, ArgMin ----------------------------------------------------------------------------------------------
struct arg_state {
  struct tfc_cuda_argument axis;
  tfc_dtype type;
};
static tfc_status arg_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct arg_state, state);
  state->axis = tfc_cuda_argument(p, 1);
  state->type = tfc_node_attr_type(p->base->graph, p->base->node, "output_type", TFC_INT64);
  if (state->type != TFC_INT32 && state->type != TFC_INT64) TFC_CUDA_DECLINE("places of this integer type");
  return NULL;
}
static tfc_status run_arg(struct tfc_cuda_launch *l, bool least) {
  const struct arg_state *state = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value value;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &state->axis, &value));
  TFC_KERNEL_CHECK(tfc_tensor_elements(value.tensor) == 1, "dim must be a scalar");
  int64_t axis = tfc_tensor_int(value.tensor, 0), outer = 1, inner = 1;
  TFC_KERNEL_CHECK(axis >= -x->shape.rank && axis < x->shape.rank, "dim %lld is outside of [%d, %d)", (long long)axis,
                   -x->shape.rank, x->shape.rank);
  axis += axis < 0 ? x->shape.rank : 0;
  struct tfc_shape shape = {0};
  for (int d = 0; d < x->shape.rank; d++) {
    if (d == axis) continue;
    shape.dims[shape.rank++] = x->shape.dims[d];
    *(d < axis ? &outer : &inner) *= x->shape.dims[d];
  }
  TFC_KERNEL_CHECK(x->shape.dims[axis] > 0, "Reduction axis %lld is empty in the input", (long long)axis);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, state->type, &shape, &y));
  if (!y->size) return NULL;
  const int64_t n = x->shape.dims[axis];
  const size_t bytes = tfc_cuda_arg_scratch(outer, n, inner);
  struct tfc_buffer *scratch = NULL;
  if (bytes) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, &scratch));
  int failed = tfc_cuda_arg((int)x->dtype, (int)state->type, least, outer, n, inner, x->data, y->data,
                            scratch ? scratch->data : NULL, l->stream);
  tfc_buffer_release(scratch);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}
static tfc_status launch_ArgMax(struct tfc_cuda_launch *l) {
  return run_arg(l, false);
}
static tfc_status launch_ArgMin(struct tfc_cuda_launch *l) {
  return run_arg(l, true);
}

// --- Softmax -----------------------------------------------------------------------------------------------------
enum { LOGARITHM = 1 }; // variant of LogSoftmax's row
static tfc_status softmax_library(struct tfc_cuda_prepare *p) {
  const struct tfc_shape *x = &p->base->input_shapes[0];
  const struct tfc_cuda_dnn_plan *plan = NULL;
  struct tfc_cuda_dnn dnn;
  if (!tfc_shape_is_static(x) || x->rank < 1) TFC_CUDA_DECLINE("shapes are not static");
  memset(&dnn, 0, sizeof dnn);
  dnn.role = TFC_CUDA_DNN_SOFTMAX;
  dnn.type = (int32_t)tfc_cuda_type(p, 0);
  dnn.flag = p->variant == LOGARITHM;
  dnn.channels = x->dims[x->rank - 1];
  dnn.outer = dnn.channels ? tfc_shape_elements(x) / dnn.channels : 0, dnn.inner = 1;
  TFC_RETURN_IF_ERROR(tfc_cuda_dnn_find(p->library, &dnn, &plan, &p->declined));
  p->base->state = (void *)(uintptr_t)plan;
  p->library_note = "cuDNN";
  return NULL;
}
static tfc_status run_softmax(struct tfc_cuda_launch *l, bool log) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "logits must have >= 1 dimension");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  int64_t n = x->shape.dims[x->shape.rank - 1];
  const struct tfc_cuda_dnn_plan *plan = l->ctx->state;
  if (plan) return tfc_cuda_dnn_run(l, plan, &(struct tfc_cuda_dnn_memory){.x = x->data, .out = y->data});
  TFC_CUDA_LAUNCHED(l, tfc_cuda_softmax((int)x->dtype, log, tfc_cuda_count(x) / n, n, x->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_Softmax(struct tfc_cuda_launch *l) {
  return run_softmax(l, false);
}
static tfc_status launch_LogSoftmax(struct tfc_cuda_launch *l) {
  return run_softmax(l, true);
}

static tfc_status launch_sparse(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0], *labels = l->ctx->inputs[1];
  struct tfc_tensor *loss = NULL, *back = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 2 && labels->shape.rank == 1, "logits must be 2-D and labels 1-D");
  int64_t batch = x->shape.dims[0], classes = x->shape.dims[1];
  TFC_KERNEL_CHECK(labels->shape.dims[0] == batch, "logits and labels must have the same first dimension");
  TFC_KERNEL_CHECK(classes > 0, "Must have at least one class");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &TFC_SHAPE(batch), &loss));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 1, x, &back));
  if (!x->size) return NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_sparse_cross_entropy((int)x->dtype, (int)labels->dtype, batch, classes, x->data,
                                                     labels->data, loss->data, back->data, l->stream));
  return NULL;
}

// Returns a shape of at most two dimensions as one of two, with dimensions of size 1 added in front.
static struct tfc_shape matrix_of(const struct tfc_shape *s) {
  return s->rank == 2 ? *s : TFC_SHAPE(1, s->rank == 1 ? s->dims[0] : 1);
}
static tfc_status launch_dense(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0], *labels = l->ctx->inputs[1];
  struct tfc_tensor *loss = NULL, *back = NULL;
  struct tfc_shape shape, xs = matrix_of(&x->shape), ls = matrix_of(&labels->shape);
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&x->shape, &labels->shape, &shape));
  TFC_KERNEL_CHECK(shape.rank == 2,
                   "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &TFC_SHAPE(shape.dims[0]), &loss));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 1, x->dtype, &shape, &back));
  if (shape.dims[0] == 0) return NULL;
  TFC_KERNEL_CHECK(shape.dims[1] > 0, "Must have at least one class");
  struct tfc_cuda_dense_rows r = {.rows = shape.dims[0],
                                  .n = shape.dims[1],
                                  .logits_row = xs.dims[0] == 1 ? 0 : xs.dims[1],
                                  .logits_column = xs.dims[1] == 1 ? 0 : 1,
                                  .labels_row = ls.dims[0] == 1 ? 0 : ls.dims[1],
                                  .labels_column = ls.dims[1] == 1 ? 0 : 1};
  TFC_CUDA_LAUNCHED(
      l, tfc_cuda_cross_entropy((int)x->dtype, &r, x->data, labels->data, loss->data, back->data, l->stream));
  return NULL;
}

// --- Biases ------------------------------------------------------------------------------------------------------
static tfc_status bias_prepare(struct tfc_cuda_prepare *p) { // the state is a bool: channels are the second dimension
  TFC_CUDA_STATE(p, bool, first);
  *first = tfc_str_starts(tfc_node_attr_string(p->base->graph, p->base->node, "data_format", "NHWC"), "NC");
  return NULL;
}
static tfc_status first_prepare(struct tfc_cuda_prepare *p) { // BiasAddV1: channels are always last
  TFC_CUDA_STATE(p, bool, first);
  *first = false;
  return NULL;
}
static tfc_status channel_axis(const struct tfc_cuda_launch *l, const struct tfc_tensor *x, int *out) {
  bool first = *(const bool *)l->ctx->state;
  TFC_KERNEL_CHECK(x->shape.rank >= (first ? 3 : 2), "Input tensor must be at least %dD", first ? 3 : 2);
  *out = first ? 1 : x->shape.rank - 1;
  return NULL;
}
static tfc_status launch_BiasAdd(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0], *bias = l->ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_broadcast broadcast;
  struct tfc_shape shape, spread = {0};
  int axis;
  TFC_RETURN_IF_ERROR(channel_axis(l, x, &axis));
  TFC_KERNEL_CHECK(bias->shape.rank == 1, "Biases must be 1D");
  TFC_KERNEL_CHECK(bias->shape.dims[0] == x->shape.dims[axis],
                   "Must provide as many biases as the channel dimension of the input tensor");
  spread.rank = x->shape.rank - axis;
  for (int d = 0; d < spread.rank; d++) spread.dims[d] = d ? 1 : bias->shape.dims[0];
  TFC_RETURN_IF_ERROR(
      tfc_cuda_broadcast_plan((const struct tfc_shape *const[]){&x->shape, &spread}, 2, &shape, &broadcast));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  size_t size = tfc_dtype_size(x->dtype);
  tfc_cuda_broadcast_group(&broadcast, 2, (int)(16 / size), (const void *const[]){x->data, bias->data}, size, y->data,
                           size);
  TFC_CUDA_LAUNCHED(l, tfc_cuda_binary_Add((int)x->dtype, &broadcast, x->data, bias->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_BiasAddGrad(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *g = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_reduction r;
  bool reduced[TFC_MAX_RANK] = {0};
  int axis;
  TFC_RETURN_IF_ERROR(channel_axis(l, g, &axis));
  for (int d = 0; d < g->shape.rank; d++) reduced[d] = d != axis;
  TFC_RETURN_IF_ERROR(plan(&g->shape, reduced, &r));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, g->dtype, &TFC_SHAPE(g->shape.dims[axis]), &y));
  return run_planned(l, &r, TFC_CUDA_REDUCE_SUM, g, y);
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define REALS OPS_BITS(TFC_CUDA_REALS)
#define FLOATS OPS_BITS(OPS_FLOATS)
static const struct tfc_cuda_kernel reduce_rows[] = {
    {"Sum", REALS, reduce_constant, launch_Sum, 0},
    {"Sum", REALS, reduce_prepare, launch_Sum, TFC_CUDA_NO_CAPTURE},
    {"Mean", REALS, reduce_constant, launch_Mean, 0},
    {"Mean", REALS, reduce_prepare, launch_Mean, TFC_CUDA_NO_CAPTURE},
    // TensorFlow rounds a product of float16 after every factor, which a tree of products cannot reproduce.
    {"Prod", REALS & ~(1u << OPS_DT_f16), reduce_constant, launch_Prod, 0},
    {"Prod", REALS & ~(1u << OPS_DT_f16), reduce_prepare, launch_Prod, TFC_CUDA_NO_CAPTURE},
    {"Max", REALS, reduce_constant, launch_Max, 0},
    {"Max", REALS, reduce_prepare, launch_Max, TFC_CUDA_NO_CAPTURE},
    {"Min", REALS, reduce_constant, launch_Min, 0},
    {"Min", REALS, reduce_prepare, launch_Min, TFC_CUDA_NO_CAPTURE},
    {"All", 1u << OPS_DT_b8, reduce_constant, launch_All, 0},
    {"All", 1u << OPS_DT_b8, reduce_prepare, launch_All, TFC_CUDA_NO_CAPTURE},
    {"Any", 1u << OPS_DT_b8, reduce_constant, launch_Any, 0},
    {"Any", 1u << OPS_DT_b8, reduce_prepare, launch_Any, TFC_CUDA_NO_CAPTURE},
    {"EuclideanNorm", FLOATS, reduce_constant, launch_EuclideanNorm, 0},
    {"EuclideanNorm", FLOATS, reduce_prepare, launch_EuclideanNorm, TFC_CUDA_NO_CAPTURE},
    {"L2Loss", FLOATS, NULL, launch_L2Loss, 0},
    {"_SumsOfSquares", TFC_TYPE_BIT(TFC_FLOAT), NULL, launch_squares, 0},
    {"ArgMax", REALS, arg_prepare, launch_ArgMax, 0},
    {"ArgMin", REALS, arg_prepare, launch_ArgMin, 0},
    {"Softmax", FLOATS, softmax_library, launch_Softmax, 0},
    {"Softmax", FLOATS, NULL, launch_Softmax, 0},
    {"LogSoftmax", FLOATS, softmax_library, launch_LogSoftmax, TFC_CUDA_VARIANT(LOGARITHM)},
    {"LogSoftmax", FLOATS, NULL, launch_LogSoftmax, 0},
    {"SparseSoftmaxCrossEntropyWithLogits", FLOATS, NULL, launch_sparse, 0},
    {"SoftmaxCrossEntropyWithLogits", FLOATS, NULL, launch_dense, 0},
    {"BiasAdd", REALS, bias_prepare, launch_BiasAdd, 0},
    {"BiasAddV1", REALS, first_prepare, launch_BiasAdd, 0},
    {"BiasAddGrad", REALS, bias_prepare, launch_BiasAddGrad, 0},
};
TFC_CUDA_KERNELS(reduce_rows);
