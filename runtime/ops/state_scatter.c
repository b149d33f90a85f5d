// Operations that read and write rows of variables: Scatter…, ResourceScatter…, ResourceGather.
//
// var [rows, row...], indices [any], updates [indices..., row...] or a scalar. If an index occurs more than once, its
// updates are applied in order.
#include "runtime/ops/array_gather.h"
#include "runtime/ops/array_index.h"
#include "runtime/ops/rows_ahead.h"
#include "runtime/ops/state_common.h"

enum operation { UPDATE, ADD, SUB, MUL, DIV, MIN, MAX };
static const char *const operation_names[] = {"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"};

static enum operation operation_of(tfc_str op) {
  for (int i = ADD; i <= MAX; i++)
    if (tfc_str_ends(op, operation_names[i])) return (enum operation)i;
  return UPDATE;
}

// Compilers make vectors of a loop whose length is constant.
OPS_CLONES static void add_floats(float *restrict to, const float *restrict from, int64_t n) {
  enum { BLOCK = 16 };
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK)
    for (int k = 0; k < BLOCK; k++) to[i + k] += from[i + k];
  for (; i < n; i++) to[i] += from[i];
}

// to[i] = to[i] op from[i]; with a step of 0, from[0] is used for all.
static tfc_status combine(tfc_dtype dtype, enum operation op, void *to, const void *from, int64_t n, int64_t step) {
  if (op == UPDATE && step) {
    memcpy(to, from, (size_t)n * tfc_dtype_size(dtype));
    return NULL;
  }
  if (op == ADD && step && dtype == TFC_FLOAT) { // gradients of rows are added this way: a loop of its own is worth it
    add_floats(to, from, n);
    return NULL;
  }
  if (dtype == TFC_BOOL || !(OPS_BITS(OPS_NUMBERS) & TFC_TYPE_BIT(dtype))) {
    // An update by one repeated element, of any plain type.
    size_t size = tfc_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) memcpy((char *)to + (size_t)i * size, from, size);
    return NULL;
  }
  if (op == DIV && tfc_dtype_is_integer(dtype))
    for (int64_t i = 0; i < (step ? n : 1); i++) {
      struct tfc_tensor view = {.dtype = dtype, .data = (void *)from};
      if (tfc_tensor_int(&view, i) == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "integer division by zero");
    }
#define LOOP(expression)                                                                                               \
  for (int64_t i = 0; i < n; i++) {                                                                                    \
    const C a = OPS_GET(t[i]), b = OPS_GET(f[i * step]);                                                               \
    (void)a, (void)b;                                                                                                  \
    OPS_PUT(t[i], expression);                                                                                         \
  }
  if (op < MIN) {
    OPS_SWITCH(OPS_NUMBERS, dtype, {
      S *t = to;
      const S *f = from;
      switch ((int)op) {
      case UPDATE: LOOP(b) break;
      case ADD: LOOP(a + b) break;
      case SUB: LOOP(a - b) break;
      case MUL: LOOP(a * b) break;
      default: LOOP(a / b) break;
      }
    })
  } else {
    OPS_SWITCH(OPS_REALS, dtype, {
      S *t = to;
      const S *f = from;
      if (op == MIN)
        LOOP(a < b ? a : b)
      else
        LOOP(a > b ? a : b)
    })
  }
#undef LOOP
  return NULL;
}

static tfc_status copy_strings(struct tfc_tensor *var, int64_t at, const struct tfc_tensor *from, int64_t first,
                               int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; i++)
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(var, at + i, tfc_tensor_get_string(from, first + i * step)));
  return NULL;
}

struct scatter_state {
  enum operation op;
  bool lock;
};
static tfc_status scatter_prepare(struct tfc_prepare_ctx *ctx) {
  struct scatter_state *s = TFC_ARENA_NEW(ctx->arena, struct scatter_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->op = operation_of(ctx->node->op);
  s->lock = tfc_node_attr_bool(ctx->graph, ctx->node, "use_locking", false);
  ctx->state = s;
  return NULL;
}

static bool inside(int64_t index, int64_t limit) {
  return index >= 0 && index < limit;
}
// Returns the row at which vector `i` of the indices begins; -1: it is out of range.
static int64_t row_of(const struct tfc_shape *shape, const struct tfc_tensor *indices, int64_t depth, int64_t i) {
  int64_t at = 0;
  for (int k = 0; k < depth; k++) {
    int64_t index = tfc_tensor_int(indices, i * depth + k);
    if (!inside(index, shape->dims[k])) return -1;
    at = at * shape->dims[k] + index;
  }
  return at;
}

// Updates of rows of plain elements that cannot fail.
struct scatter_job {
  struct ops_rows rows;
  const struct tfc_tensor *var, *updates;
  enum operation op;
  int64_t row; // elements of one
};

static void scatter_rows(void *arg, int64_t begin, int64_t end) {
  const struct scatter_job *j = arg;
  const size_t bytes = (size_t)j->row * tfc_dtype_size(j->var->dtype);
  const bool scalar = j->updates->shape.rank == 0;
  char *to = j->var->data;
  const char *from = j->updates->data;
  for (struct ops_rows_walk w = ops_rows_part(&j->rows, begin, end); ops_rows_next(&w);) {
    if (w.ahead >= 0) ops_bring_row(to + (size_t)w.ahead * bytes, bytes);
    if (w.row >= 0) // combine fails only for DIV, which is not divided among cores
      tfc_status_free(combine(j->var->dtype, j->op, to + (size_t)w.row * bytes,
                              scalar ? from : from + (size_t)w.i * bytes, j->row, !scalar));
  }
}

static tfc_status scatter_into(struct tfc_kernel_ctx *ctx, struct tfc_variable *v, enum operation op,
                               const struct tfc_tensor *indices, const struct tfc_tensor *updates) {
  const struct tfc_shape *vs = &v->value.shape;
  TFC_KERNEL_CHECK(vs->rank >= 1, "variable '%.*s' must be at least 1-D", TFC_STR_ARG(v->name));
  int64_t n = tfc_tensor_elements(indices), rows = vs->dims[0], row = rows ? tfc_tensor_elements(&v->value) / rows : 0;
  bool scalar = updates->shape.rank == 0;
  if (!scalar) {
    bool fits = updates->shape.rank == indices->shape.rank + vs->rank - 1;
    for (int i = 0; fits && i < indices->shape.rank; i++) fits = updates->shape.dims[i] == indices->shape.dims[i];
    for (int i = 1; fits && i < vs->rank; i++) fits = updates->shape.dims[indices->shape.rank + i - 1] == vs->dims[i];
    TFC_KERNEL_CHECK(fits,
                     "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                     "updates.shape %s, indices.shape %s, params.shape %s",
                     tfc_shape_show(&updates->shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&indices->shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(vs, (char[TFC_SHAPE_TEXT]){0}));
  }
  for (int64_t i = 0; i < n; i++)
    if (!inside(tfc_tensor_int(indices, i), rows)) return ops_bad_index(indices, i, rows);
  if (v->dtype != TFC_STRING && op != DIV) {
    struct scatter_job job = {ops_rows_of(indices, rows, updates->size, ctx->env->threads), &v->value, updates, op,
                              row};
    tfc_kernel_parallel_for(ctx, job.rows.parts, 1, scatter_rows, &job);
    return NULL;
  }
  size_t size = tfc_dtype_size(v->dtype);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tfc_tensor_int(indices, i) * row, from = scalar ? 0 : i * row;
    if (v->dtype == TFC_STRING)
      TFC_RETURN_IF_ERROR(copy_strings(&v->value, at, updates, from, row, !scalar));
    else
      TFC_RETURN_IF_ERROR(combine(v->dtype, op, (char *)v->value.data + (size_t)at * size,
                                  (const char *)updates->data + (size_t)from * size, row, !scalar));
  }
  return NULL;
}

static tfc_status scatter_nd_into(struct tfc_kernel_ctx *ctx, struct tfc_variable *v, enum operation op,
                                  const struct tfc_tensor *indices, const struct tfc_tensor *updates) {
  (void)ctx;
  const struct tfc_shape *vs = &v->value.shape, *is = &indices->shape;
  TFC_KERNEL_CHECK(is->rank >= 1, "indices must be at least 1-D");
  int64_t depth = is->dims[is->rank - 1], n = 1, row = 1;
  TFC_KERNEL_CHECK(depth <= vs->rank, "indices.shape[-1] = %lld must be <= params.rank = %d", (long long)depth,
                   vs->rank);
  for (int i = 0; i < is->rank - 1; i++) n *= is->dims[i];
  for (int i = (int)depth; i < vs->rank; i++) row *= vs->dims[i];
  bool fits = updates->shape.rank == is->rank - 1 + vs->rank - depth;
  for (int i = 0; fits && i < is->rank - 1; i++) fits = updates->shape.dims[i] == is->dims[i];
  for (int i = (int)depth; fits && i < vs->rank; i++)
    fits = updates->shape.dims[is->rank - 1 + i - (int)depth] == vs->dims[i];
  TFC_KERNEL_CHECK(fits,
                   "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:], got updates "
                   "%s, indices %s, params %s",
                   tfc_shape_show(&updates->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(is, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(vs, (char[TFC_SHAPE_TEXT]){0}));
  size_t size = tfc_dtype_size(v->dtype);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = row_of(vs, indices, depth, i);
    if (at < 0) return ops_bad_slice(indices, i, "shape", vs);
    at *= row;
    if (v->dtype == TFC_STRING)
      TFC_RETURN_IF_ERROR(copy_strings(&v->value, at, updates, i * row, row, 1));
    else
      TFC_RETURN_IF_ERROR(combine(v->dtype, op, (char *)v->value.data + (size_t)at * size,
                                  (const char *)updates->data + (size_t)(i * row) * size, row, 1));
  }
  return NULL;
}

static tfc_status scatter_any(struct tfc_kernel_ctx *ctx,
                              tfc_status (*into)(struct tfc_kernel_ctx *, struct tfc_variable *, enum operation,
                                                 const struct tfc_tensor *, const struct tfc_tensor *)) {
  const struct scatter_state *st = ctx->state;
  const struct tfc_tensor *indices = ctx->inputs[1], *updates = ctx->inputs[2];
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  bool lock = st->lock || tfc_state_is_resource(ctx, 0);
  if (lock) tfc_variable_lock(v);
  tfc_status s = tfc_state_writable(ctx, 0, &v);
  if (!s && v->dtype != updates->dtype)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' has type %s, updates %s", TFC_STR_ARG(v->name),
                        tfc_dtype_name(v->dtype), tfc_dtype_name(updates->dtype));
  if (!s) s = into(ctx, v, st->op, indices, updates);
  if (lock) tfc_variable_unlock(v);
  return s ? s : tfc_state_forward_ref(ctx);
}
static tfc_status scatter(struct tfc_kernel_ctx *ctx) {
  return scatter_any(ctx, scatter_into);
}
static tfc_status scatter_nd(struct tfc_kernel_ctx *ctx) {
  return scatter_any(ctx, scatter_nd_into);
}

// --- Gathering ---------------------------------------------------------------------------------------------------
static tfc_status copy_elements(struct tfc_tensor *to, int64_t at, const struct tfc_tensor *from, int64_t first,
                                int64_t n) {
  if (to->dtype == TFC_STRING) return copy_strings(to, at, from, first, n, 1);
  size_t size = tfc_dtype_size(to->dtype);
  if (n)
    memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)first * size, (size_t)n * size);
  return NULL;
}

static tfc_status append_dims(struct tfc_shape *shape, const struct tfc_shape *from, int begin) {
  for (int i = begin; i < from->rank; i++) {
    if (shape->rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
    shape->dims[shape->rank++] = from->dims[i];
  }
  return NULL;
}

static tfc_status resource_gather(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  const struct tfc_tensor *indices = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  const struct tfc_shape *vs = &v->value.shape;
  int64_t batch_dims = tfc_node_attr_int(ctx->graph, ctx->node, "batch_dims", 0);
  if (batch_dims < 0) batch_dims += indices->shape.rank;
  TFC_KERNEL_CHECK(batch_dims >= 0 && batch_dims <= indices->shape.rank && batch_dims < vs->rank,
                   "batch_dims %lld does not fit indices %s and params %s", (long long)batch_dims,
                   tfc_shape_show(&indices->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(vs, (char[TFC_SHAPE_TEXT]){0}));
  struct tfc_shape shape = indices->shape;
  TFC_RETURN_IF_ERROR(append_dims(&shape, vs, (int)batch_dims + 1));
  int64_t batches = 1, row = 1, rows = vs->dims[batch_dims];
  for (int i = 0; i < batch_dims; i++) {
    TFC_KERNEL_CHECK(vs->dims[i] == indices->shape.dims[i], "batch dimension %d of params and indices differ", i);
    batches *= vs->dims[i];
  }
  for (int i = (int)batch_dims + 1; i < vs->rank; i++) row *= vs->dims[i];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, v->dtype, &shape, &y));
  const int64_t n = batches ? tfc_tensor_elements(indices) / batches : 0;
  return ops_gather_run(ctx, &(struct ops_gather){&v->value, indices, y, batches, 1, n, rows, row});
}

static tfc_status resource_gather_nd(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  const struct tfc_tensor *indices = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  const struct tfc_shape *vs = &v->value.shape, *is = &indices->shape;
  TFC_KERNEL_CHECK(is->rank >= 1 && is->dims[is->rank - 1] <= vs->rank,
                   "indices %s must be at least a vector and index no more than the %d dimensions of params",
                   tfc_shape_show(is, (char[TFC_SHAPE_TEXT]){0}), vs->rank);
  int64_t depth = is->dims[is->rank - 1], n = 1, row = 1;
  struct tfc_shape shape = *is;
  shape.rank--;
  for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
  for (int i = (int)depth; i < vs->rank; i++) row *= vs->dims[i];
  TFC_RETURN_IF_ERROR(append_dims(&shape, vs, (int)depth));
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, v->dtype, &shape, &y));
  int64_t bad = -1; // the last index out of range, because TensorFlow names that one
  for (int64_t i = 0; i < n; i++) {
    int64_t at = row_of(vs, indices, depth, i);
    if (at < 0)
      bad = i;
    else
      TFC_RETURN_IF_ERROR(copy_elements(y, i * row, &v->value, at * row, row));
  }
  return bad < 0 ? NULL : ops_bad_slice(indices, bad, "param shape", vs);
}

// --- Shapes and gradients ----------------------------------------------------------------------------------------
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  struct tfc_shape params = tfc_state_shape(ctx, 0);
  int64_t batch_dims = tfc_node_attr_int(ctx->graph, ctx->node, "batch_dims", 0);
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (ctx->inputs[1]->rank < 0 || params.rank < 0) return NULL;
  if (batch_dims < 0) batch_dims += ctx->inputs[1]->rank;
  if (batch_dims < 0 || batch_dims > ctx->inputs[1]->rank || batch_dims >= params.rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "batch_dims does not fit: params %s",
                           tfc_shape_show(&params, (char[TFC_SHAPE_TEXT]){0}));
  ctx->outputs[0] = *ctx->inputs[1];
  return append_dims(&ctx->outputs[0], &params, (int)batch_dims + 1);
}
static tfc_status shape_gather_nd(struct tfc_shape_ctx *ctx) {
  struct tfc_shape params = tfc_state_shape(ctx, 0);
  const struct tfc_shape *indices = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 1, NULL));
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (params.rank < 0 || indices->rank < 1 || !tfc_dim_known(indices->dims[indices->rank - 1])) return NULL;
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth > params.rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "indices.shape[-1] = %lld must be <= params.rank = %d",
                           (long long)depth, params.rank);
  ctx->outputs[0] = *indices;
  ctx->outputs[0].rank--;
  return append_dims(&ctx->outputs[0], &params, (int)depth);
}

// The gradient consists of rows at the gathered indices.
static tfc_status grad_of_gather(struct tfc_grad_ctx *c) {
  struct tfc_builder *b = c->builder;
  struct tfc_output handle = grad_in(c, 0), indices = grad_in(c, 1);
  struct tfc_output shape = tfc_add1(b, "VariableShape", handle);
  struct tfc_output size = tfc_add2(b, "ExpandDims", tfc_add1(b, "Size", indices), tfc_add_i32(b, 0));
  struct tfc_attr end = tfc_attr_int("end_mask", 1);
  struct tfc_output one = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_output row =
      tfc_add(b, "StridedSlice", NULL, TFC_OUTPUTS(shape, one, tfc_add_i32_vector(b, (int32_t[]){0}, 1), one), &end, 1);
  struct tfc_output values_shape = tfc_add3(b, "ConcatV2", size, row, tfc_add_i32(b, 0));
  grad_set_indexed(c, 0, tfc_add2(b, "Reshape", c->grad_outputs[0], values_shape),
                   tfc_add2(b, "Reshape", indices, size), shape);
  return grad_status(c);
}
static tfc_status grad_of_gather_nd(struct tfc_grad_ctx *c) {
  struct tfc_builder *b = c->builder;
  struct tfc_output indices = grad_in(c, 1), handle = grad_in(c, 0);
  struct tfc_attr type = tfc_attr_type("out_type", grad_in_type(c, 1));
  struct tfc_output shape = tfc_add(b, "VariableShape", NULL, &handle, 1, &type, 1);
  c->grad_inputs[0] = tfc_add3(b, "ScatterNd", indices, c->grad_outputs[0], shape);
  return grad_status(c);
}
static void cost_scatter(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                         const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)outputs;
  int64_t count = tfc_shape_elements(&inputs[2]);
  out->flops = count > 0 ? (double)count : 0;
  out->bytes = 3 * out->flops * (double)tfc_dtype_size(tfc_output_dtype(g, tfc_node_inputs(g, n)[2]));
}
static void cost_gather(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                        const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)inputs;
  int64_t count = tfc_shape_elements(&outputs[0]);
  *out = (struct tfc_op_cost){
      0, count > 0 ? 2 * (double)count * (double)tfc_dtype_size(g->output_dtypes[n->output_begin]) : 0};
}

#define SCATTER(types_, host)                                                                                          \
  .types = types_, .host_inputs = host, .shape = tfc_state_shape_update, .cost = cost_scatter,                         \
  .prepare = scatter_prepare, .kernel = scatter
#define SCATTER_ND(types_, host)                                                                                       \
  .types = types_, .host_inputs = host, .shape = tfc_state_shape_update, .cost = cost_scatter,                         \
  .prepare = scatter_prepare, .kernel = scatter_nd
static const struct tfc_op_def state_scatter_rows[] = {
    {.name = "ScatterUpdate",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(0, 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterUpdate",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: type, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(0, 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterAdd",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterAdd",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterSub",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterSub",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterMul",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterMul",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterDiv",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterDiv",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterMin",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: {half, bfloat16, float, double, int32, int64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_REALS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterMin",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_REALS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterMax",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: {half, bfloat16, float, double, int32, int64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_REALS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterMax",
     .inputs = "resource: resource, indices: Tindices, updates: dtype",
     .attrs = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER(OPS_BITS(OPS_REALS), 1),
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "ScatterNdUpdate",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(0, 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterNdUpdate",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(0, 1),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ScatterNdAdd",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterNdAdd",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ScatterNdSub",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_NUMBERS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterNdSub",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_NUMBERS), 1),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ScatterNdMin",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_REALS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterNdMin",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_REALS), 1),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ScatterNdMax",
     .inputs = "ref: Ref(T), indices: Tindices, updates: T",
     .outputs = "output_ref: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_REALS), 0),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceScatterNdMax",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type, Tindices: {int32, int64}, use_locking: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     SCATTER_ND(OPS_BITS(OPS_REALS), 1),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ResourceGather",
     .inputs = "resource: resource, indices: Tindices",
     .outputs = "output: dtype",
     .attrs = "batch_dims: int = 0, validate_indices: bool = true, dtype: type, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL,
     .host = {"dtype", TFC_INT32_BIT},
     .index_use = TFC_INDEX_ROWS_OF_HANDLE,
     .host_inputs = 1,
     .shape = shape_gather,
     .gradient = grad_of_gather,
     .cost = cost_gather,
     .kernel = resource_gather},
    {.name = "ResourceGatherNd",
     .inputs = "resource: resource, indices: Tindices",
     .outputs = "output: dtype",
     .attrs = "dtype: type, Tindices: {int32, int64}",
     .flags = TFC_OP_STATEFUL,
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_gather_nd,
     .gradient = grad_of_gather_nd,
     .cost = cost_gather,
     .kernel = resource_gather_nd},
};
TFC_REGISTER_OPS(state_scatter_rows);
