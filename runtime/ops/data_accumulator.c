// Conditional accumulators, which synchronous training uses: an accumulator sums the gradients of one global step and
// drops stale ones. A kernel that takes the result waits until enough gradients have been applied. It gets their mean
// (or sum); then the accumulator is empty, and its global step is one higher. Accumulators are dense or sparse, and are
// referred to by two strings or by a resource handle.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/ops/data_named.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/saved.h"

struct waiter { // a kernel that waits to take the result
  struct waiter *next;
  struct tfc_kernel_ctx *ctx;
  int64_t wanted;
  tfc_status result;
};
struct accumulator {
  struct tfc_object object;
  pthread_mutex_t lock;
  char *name;
  bool sparse, mean;
  tfc_dtype dtype;
  struct tfc_shape shape;          // as the node declares it
  int64_t step, count;             // the current global step; the number of gradients in `sum`
  struct tfc_tensor sum;           // if sparse: [rows, ...]
  int64_t *indices, *counts, rows; // if sparse: for each row of `sum`, its index and the number of gradients in it
  struct waiter *first, **last;
};

static void empty(struct accumulator *a) {
  tfc_tensor_release(&a->sum);
  free(a->indices);
  free(a->counts);
  a->indices = a->counts = NULL;
  a->rows = a->count = 0;
}
static void destroy(struct tfc_object *self) {
  struct accumulator *a = (struct accumulator *)self;
  empty(a);
  pthread_mutex_destroy(&a->lock);
  free(a->name);
  free(a);
}
static void wake(struct tfc_object *self);
static void describe(struct tfc_object *self, struct tfc_text *out) {
  struct accumulator *a = (struct accumulator *)self;
  pthread_mutex_lock(&a->lock);
  tfc_text_printf(out, "accumulator '%s' (%lld gradients of step %lld", a->name, (long long)a->count,
                  (long long)a->step);
  if (a->first) tfc_text_printf(out, ", %lld wanted", (long long)a->first->wanted);
  tfc_text_printf(out, ")");
  pthread_mutex_unlock(&a->lock);
}
static void waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  struct accumulator *a = (struct accumulator *)self;
  pthread_mutex_lock(&a->lock);
  for (const struct waiter *w = a->first; w; w = w->next) fn(arg, w->ctx->env->step_id);
  pthread_mutex_unlock(&a->lock);
}
static tfc_status save(struct tfc_object *self, struct tfc_text *out) {
  struct accumulator *a = (struct accumulator *)self;
  pthread_mutex_lock(&a->lock);
  tfc_saved_add_number(out, a->sparse);
  tfc_saved_add_number(out, a->step);
  tfc_saved_add_number(out, a->count);
  if (a->count) tfc_saved_add_tensor(out, &a->sum);
  for (int64_t i = 0; a->count && a->sparse && i < a->rows; i++) {
    tfc_saved_add_number(out, a->indices[i]);
    tfc_saved_add_number(out, a->counts[i]);
  }
  pthread_mutex_unlock(&a->lock);
  return NULL;
}
static tfc_status load(struct tfc_object *self, tfc_str words) {
  struct accumulator *a = (struct accumulator *)self;
  struct tfc_saved in = {.words = words};
  struct tfc_tensor sum = {0};
  int64_t *indices = NULL, *counts = NULL;
  const bool sparse = tfc_saved_number(&in, 0, 1);
  const int64_t step = tfc_saved_number(&in, INT64_MIN, INT64_MAX / 2), count = tfc_saved_number(&in, 0, INT64_MAX / 2);
  if (!in.failure && sparse != a->sparse)
    in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "it was %s, and is not any more", sparse ? "sparse" : "dense");
  if (count) tfc_saved_tensor(&in, a->dtype, &sum);
  const int64_t rows = sparse && sum.shape.rank > 0 ? sum.shape.dims[0] : 0;
  if (sparse && count && !in.failure) {
    indices = calloc((size_t)rows + 1, sizeof *indices);
    counts = calloc((size_t)rows + 1, sizeof *counts);
    if (!indices || !counts) in.failure = tfc_status_no_memory("an accumulator");
  }
  for (int64_t i = 0; i < rows && !in.failure; i++) {
    indices[i] = tfc_saved_number(&in, i ? indices[i - 1] : 0, INT64_MAX);
    counts[i] = tfc_saved_number(&in, 1, INT64_MAX / 2);
  }
  tfc_status s = tfc_saved_end(&in);
  if (s) {
    tfc_tensor_release(&sum);
    free(indices), free(counts);
    return s;
  }
  pthread_mutex_lock(&a->lock);
  empty(a);
  a->step = step, a->count = count;
  a->sum = sum, a->indices = indices, a->counts = counts, a->rows = rows;
  pthread_mutex_unlock(&a->lock);
  wake(self);
  return NULL;
}
static const struct tfc_object_type accumulator_type = {.name = "accumulator",
                                                        .destroy = destroy,
                                                        .wake = wake,
                                                        .describe = describe,
                                                        .waits = waits,
                                                        .save = save,
                                                        .load = load};

// --- Creating accumulators ---------------------------------------------------------------------------------------
static tfc_status make(void *arg, struct tfc_object **out) {
  const struct tfc_kernel_ctx *ctx = arg;
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  struct accumulator *a = calloc(1, sizeof *a);
  char *name = tfc_str_dup(tfc_named_name(ctx));
  if (!a || !name) {
    free(a), free(name);
    return tfc_status_no_memory(NULL);
  }
  a->object = (struct tfc_object){.type = &accumulator_type, .references = 1};
  pthread_mutex_init(&a->lock, NULL);
  a->name = name;
  a->sparse = tfc_str_starts(ctx->node->op, "Sparse");
  a->mean = !tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "reduction_type", "MEAN"), "SUM");
  a->dtype = tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_DTYPE_NONE);
  a->shape = shape && shape->kind == TFC_ATTR_SHAPE ? *shape->shape : TFC_SHAPE_UNKNOWN;
  a->last = &a->first;
  *out = &a->object;
  return NULL;
}
static tfc_status create(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &accumulator_type, make);
}
static tfc_status accumulator_of(struct tfc_kernel_ctx *ctx, struct accumulator **out) { // the caller must release it
  return tfc_named_get(ctx, &accumulator_type, (struct tfc_object **)out);
}

// --- Taking the mean of the gradients ----------------------------------------------------------------------------
// Divides each row of the sum by the number of its gradients.
static void divide(struct accumulator *a) {
  int64_t n = tfc_tensor_elements(&a->sum), row = a->sparse && a->rows ? n / a->rows : n;
  OPS_SWITCH(OPS_FLOATS, a->dtype, {
    S *x = a->sum.data;
    for (int64_t i = 0; i < n; i++) {
      S divisor;
      OPS_PUT(divisor, a->sparse ? a->counts[i / row] : a->count);
      OPS_PUT(x[i], OPS_GET(x[i]) / OPS_GET(divisor));
    }
  })
}

static tfc_status give_indices(struct tfc_kernel_ctx *ctx, const struct accumulator *a) {
  struct tfc_tensor *indices = NULL, *shape = NULL;
  int rank = a->sum.shape.rank;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(a->rows), &indices));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_INT64, &TFC_SHAPE(rank), &shape));
  if (a->rows) memcpy(indices->data, a->indices, (size_t)a->rows * sizeof *a->indices);
  int64_t *dims = shape->data;
  for (int d = 0; d < rank; d++) dims[d] = a->sum.shape.dims[d];
  if (rank) dims[0] = a->shape.rank > 0 ? a->shape.dims[0] : -1;
  return NULL;
}

// Lets kernels take the result while there are enough gradients; those that are finished are appended to `done`.
static void serve(struct accumulator *a, struct waiter ***done) {
  while (a->first && (a->count >= a->first->wanted ||
                      (a->first->ctx->env->cancelled && a->first->ctx->env->cancelled(a->first->ctx->env)))) {
    struct waiter *w = a->first;
    a->first = w->next;
    if (!a->first) a->last = &a->first;
    w->next = NULL;
    if (w->ctx->env->cancelled && w->ctx->env->cancelled(w->ctx->env)) {
      w->result = tfc_status_make(TFC_CANCELLED, "TakeGrad operation was cancelled");
    } else {
      if (a->mean) divide(a);
      w->result = a->sparse ? give_indices(w->ctx, a) : NULL;
      if (!w->result) w->result = tfc_kernel_set_output(w->ctx, a->sparse ? 1 : 0, &a->sum);
      if (!w->result) {
        empty(a);
        a->step++;
      }
    }
    **done = w;
    *done = &w->next;
  }
}
static void complete(struct waiter *done) { // called without the lock
  for (struct waiter *w = done, *next; w; w = next) {
    next = w->next;
    struct tfc_kernel_ctx *ctx = w->ctx;
    tfc_status s = w->result;
    free(w);
    ctx->done(ctx, s);
  }
}

static void wake(struct tfc_object *self) {
  struct accumulator *a = (struct accumulator *)self;
  struct waiter *done = NULL, **end = &done;
  pthread_mutex_lock(&a->lock);
  for (struct waiter **at = &a->first; *at;) { // cancelled steps may also be behind the first waiter
    struct waiter *w = *at;
    if (!w->ctx->env->cancelled || !w->ctx->env->cancelled(w->ctx->env)) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    w->next = NULL;
    w->result = tfc_status_make(TFC_CANCELLED, "TakeGrad operation was cancelled");
    *end = w;
    end = &w->next;
  }
  a->last = &a->first;
  while (*a->last) a->last = &(*a->last)->next;
  serve(a, &end);
  pthread_mutex_unlock(&a->lock);
  complete(done);
}

static tfc_status take(struct tfc_kernel_ctx *ctx) {
  struct accumulator *a = NULL;
  struct waiter *done = NULL, **end = &done;
  TFC_RETURN_IF_ERROR(accumulator_of(ctx, &a));
  int64_t wanted = ops_scalar_int(ctx->inputs[1]);
  struct waiter *w = calloc(1, sizeof *w);
  tfc_status s = NULL;
  if (wanted <= 0)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Argument num_required must be at least 1");
  else if (!w)
    s = tfc_status_no_memory(NULL);
  if (s) {
    free(w);
    tfc_object_release(&a->object);
    return s;
  }
  *w = (struct waiter){.ctx = ctx, .wanted = wanted};
  pthread_mutex_lock(&a->lock);
  *a->last = w;
  a->last = &w->next;
  serve(a, &end);
  pthread_mutex_unlock(&a->lock);
  complete(done);
  tfc_object_release(&a->object);
  return NULL;
}

// --- Applying gradients ------------------------------------------------------------------------------------------
static tfc_status mismatch(const struct tfc_shape *want, const struct tfc_shape *got) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                         tfc_shape_show(want, (char[TFC_SHAPE_TEXT]){0}),
                         tfc_shape_show(got, (char[TFC_SHAPE_TEXT]){0}));
}

static tfc_status add_dense(struct tfc_kernel_ctx *ctx, struct accumulator *a, const struct tfc_tensor *gradient) {
  if (!tfc_shape_compatible(&a->shape, &gradient->shape)) return mismatch(&a->shape, &gradient->shape);
  if (a->count == 0) {
    struct tfc_tensor copy = {0};
    (void)ctx;
    TFC_RETURN_IF_ERROR(tfc_tensor_clone(gradient, &copy));
    a->sum = copy;
    return NULL;
  }
  if (!tfc_shape_equal(&a->sum.shape, &gradient->shape)) return mismatch(&a->sum.shape, &gradient->shape);
  int64_t n = tfc_tensor_elements(gradient);
  OPS_SWITCH(OPS_FLOATS, a->dtype, {
    const S *x = gradient->data;
    S *sum = a->sum.data;
    for (int64_t i = 0; i < n; i++) OPS_PUT(sum[i], OPS_GET(sum[i]) + OPS_GET(x[i]));
  })
  return NULL;
}

// Whether `shape` begins with `begin`: the accumulator's shape may have fewer dimensions than a gradient; the further
// ones may then have any size.
static bool begins_with(const struct tfc_shape *begin, const struct tfc_shape *shape) {
  if (begin->rank < 0 || shape->rank < 0) return true;
  for (int d = 0; d < begin->rank; d++)
    if (d >= shape->rank || (begin->dims[d] >= 0 && shape->dims[d] >= 0 && begin->dims[d] != shape->dims[d]))
      return false;
  return true;
}

static tfc_status check_sparse(const struct accumulator *a, const struct tfc_tensor *indices,
                               const struct tfc_tensor *values, const struct tfc_tensor *shape, bool has_shape) {
  TFC_KERNEL_CHECK(indices->shape.rank == 1, "Input indices should be vector but received shape: %s",
                   tfc_shape_show(&indices->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(values->shape.rank >= 1, "Values cannot be 0-dimensional.");
  TFC_KERNEL_CHECK(indices->shape.dims[0] == values->shape.dims[0], "Expected %lld non-empty input values, got %lld.",
                   (long long)indices->shape.dims[0], (long long)values->shape.dims[0]);
  struct tfc_shape whole = values->shape; // the gradient's full shape, as far as it is known
  whole.dims[0] = TFC_DIM_UNKNOWN;
  if (has_shape && tfc_tensor_elements(shape) > 0) {
    struct tfc_shape told;
    TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(shape, &told));
    if (!tfc_shape_compatible(&told, &whole)) return mismatch(&told, &whole);
    if (!begins_with(&a->shape, &told)) return mismatch(&a->shape, &told);
  }
  if (!begins_with(&a->shape, &whole)) return mismatch(&a->shape, &whole);
  const int64_t *index = indices->data;
  int64_t rows = a->shape.rank > 0 ? a->shape.dims[0] : -1;
  for (int64_t i = 0; i < indices->shape.dims[0]; i++)
    TFC_KERNEL_CHECK(index[i] >= 0 && (rows < 0 || index[i] < rows), "index %lld of row %lld lies outside of %s",
                     (long long)index[i], (long long)i, tfc_shape_show(&a->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

// Adds a sparse gradient. Both lists of rows are in ascending order of their indices: one pass merges them and adds
// rows with the same index.
static tfc_status add_sparse(struct accumulator *a, const struct tfc_tensor *indices, const struct tfc_tensor *values) {
  int64_t n = indices->shape.dims[0], most = a->rows + n, at = 0;
  const int64_t *index = indices->data;
  struct tfc_shape shape = values->shape;
  struct tfc_tensor sum = {0};
  if (a->count && n) {
    struct tfc_shape have = a->sum.shape;
    have.dims[0] = shape.dims[0];
    if (!tfc_shape_equal(&have, &shape)) return mismatch(&have, &shape);
  }
  int64_t *merged = calloc((size_t)most + 1, sizeof *merged), *counts = calloc((size_t)most + 1, sizeof *counts);
  // The first loop counts the rows, the second one adds their values.
  for (int64_t i = 0, j = 0; merged && counts && (i < n || j < a->rows); at++) {
    bool old = j < a->rows && (i >= n || a->indices[j] <= index[i]);
    bool new = i < n && (j >= a->rows || index[i] <= a->indices[j]);
    merged[at] = old ? a->indices[j] : index[i];
    counts[at] = (old ? a->counts[j] : 0) + new;
    i += new, j += old;
  }
  shape.dims[0] = at;
  tfc_status s = merged && counts ? tfc_tensor_create(a->dtype, &shape, &sum) : tfc_status_no_memory(NULL);
  if (s) {
    free(merged), free(counts);
    return s;
  }
  int64_t row = at ? tfc_tensor_elements(&sum) / at : 0, to = 0;
  OPS_SWITCH(OPS_FLOATS, a->dtype, {
    const S *x = values->data;
    const S *had = a->sum.data;
    S *y = sum.data;
    for (int64_t i = 0, j = 0; i < n || j < a->rows; to += row) {
      bool old = j < a->rows && (i >= n || a->indices[j] <= index[i]);
      bool new = i < n && (j >= a->rows || index[i] <= a->indices[j]);
      for (int64_t k = 0; k < row; k++) {
        if (old && new)
          OPS_PUT(y[to + k], OPS_GET(had[j * row + k]) + OPS_GET(x[i * row + k]));
        else
          y[to + k] = old ? had[j * row + k] : x[i * row + k];
      }
      i += new, j += old;
    }
  })
  int64_t count = a->count;
  empty(a);
  a->count = count;
  a->sum = sum;
  a->indices = merged;
  a->counts = counts;
  a->rows = at;
  return NULL;
}

static tfc_status apply_under_lock(struct tfc_kernel_ctx *ctx, struct accumulator *a) {
  const struct tfc_tensor *gradient = ctx->inputs[a->sparse ? 3 : 2];
  TFC_KERNEL_CHECK(a->sparse == (ctx->input_count == 5), "a dense gradient for a sparse accumulator, or the reverse");
  TFC_KERNEL_CHECK(gradient->dtype == a->dtype, "the accumulator holds %s, not %s", tfc_dtype_name(a->dtype),
                   tfc_dtype_name(gradient->dtype));
  if (a->sparse)
    TFC_RETURN_IF_ERROR(check_sparse(a, ctx->inputs[2], gradient, ctx->inputs[4],
                                     tfc_node_attr_bool(ctx->graph, ctx->node, "has_known_shape", true)));
  if (ops_scalar_int(ctx->inputs[1]) < a->step) return NULL; // a stale gradient is dropped
  TFC_RETURN_IF_ERROR(a->sparse ? add_sparse(a, ctx->inputs[2], gradient) : add_dense(ctx, a, gradient));
  a->count++;
  return NULL;
}
static tfc_status apply(struct tfc_kernel_ctx *ctx) {
  struct accumulator *a = NULL;
  struct waiter *done = NULL, **end = &done;
  TFC_RETURN_IF_ERROR(accumulator_of(ctx, &a));
  pthread_mutex_lock(&a->lock);
  tfc_status s = apply_under_lock(ctx, a);
  if (!s) serve(a, &end);
  pthread_mutex_unlock(&a->lock);
  complete(done);
  tfc_object_release(&a->object);
  return s;
}

static tfc_status set_step(struct tfc_kernel_ctx *ctx) {
  struct accumulator *a = NULL;
  TFC_RETURN_IF_ERROR(accumulator_of(ctx, &a));
  pthread_mutex_lock(&a->lock);
  a->step = ops_scalar_int(ctx->inputs[1]);
  pthread_mutex_unlock(&a->lock);
  tfc_object_release(&a->object);
  return NULL;
}
static tfc_status count(struct tfc_kernel_ctx *ctx) {
  struct accumulator *a = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(accumulator_of(ctx, &a));
  pthread_mutex_lock(&a->lock);
  int64_t n = a->count;
  pthread_mutex_unlock(&a->lock);
  tfc_object_release(&a->object);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)n;
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_handle(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(2); // TensorFlow infers [2] for the resource handle too
  return NULL;
}
static tfc_status shape_take(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_take_sparse(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[1] = TFC_SHAPE_UNKNOWN;
  ctx->outputs[2] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

#define ON(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define FLAGS (TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
#define MADE                                                                                                           \
  "dtype: {float, double, half, bfloat16}, shape: shape, container: string = '', shared_name: string = '', "           \
  "reduction_type: string = 'MEAN'"
#define DTYPE "dtype: {float, double, half, bfloat16}"
#define DENSE(prefix, handle)                                                                                          \
  {.name = prefix "AccumulatorApplyGradient",                                                                          \
   .inputs = "handle: " handle ", local_step: int64, gradient: dtype",                                                 \
   .attrs = DTYPE,                                                                                                     \
   .role = TFC_ROLE_GIVES_GRADIENT,                                                                                    \
   .flags = FLAGS,                                                                                                     \
   .effect = TFC_EFFECT_UPDATE,                                                                                        \
   ON(ops_shape_none, apply)},                                                                                         \
      {.name = prefix "AccumulatorTakeGradient",                                                                       \
       .inputs = "handle: " handle ", num_required: int32",                                                            \
       .outputs = "average: dtype",                                                                                    \
       .attrs = DTYPE,                                                                                                 \
       .role = TFC_ROLE_TAKES_GRADIENT,                                                                                \
       .flags = FLAGS | TFC_OP_ASYNC,                                                                                  \
       ON(shape_take, take)},                                                                                          \
      {.name = prefix "AccumulatorSetGlobalStep",                                                                      \
       .inputs = "handle: " handle ", new_global_step: int64",                                                         \
       .flags = FLAGS,                                                                                                 \
       ON(ops_shape_none, set_step)},                                                                                  \
  {                                                                                                                    \
    .name = prefix "AccumulatorNumAccumulated", .inputs = "handle: " handle, .outputs = "num_accumulated: int32",      \
    .flags = FLAGS, ON(ops_shape_scalar, count)                                                                        \
  }
static const struct tfc_op_def data_accumulator_rows[] = {
    {.name = "ConditionalAccumulator",
     .outputs = "handle: Ref(string)",
     .attrs = MADE,
     .flags = FLAGS,
     ON(shape_handle, create)},
    {.name = "SparseConditionalAccumulator",
     .outputs = "handle: Ref(string)",
     .attrs = MADE,
     .flags = FLAGS,
     ON(shape_handle, create)},
    {.name = "ResourceConditionalAccumulator",
     .outputs = "handle: resource",
     .attrs = MADE,
     .flags = FLAGS,
     ON(shape_handle, create)},
    DENSE("", "Ref(string)"),
    DENSE("Resource", "resource"),
    {.name = "SparseAccumulatorApplyGradient",
     .inputs = "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
               "gradient_shape: int64",
     .attrs = DTYPE ", has_known_shape: bool",
     .flags = FLAGS,
     ON(ops_shape_none, apply),
     .role = TFC_ROLE_GIVES_GRADIENT,
     .effect = TFC_EFFECT_UPDATE},
    {.name = "SparseAccumulatorTakeGradient",
     .inputs = "handle: Ref(string), num_required: int32",
     .outputs = "indices: int64, values: dtype, shape: int64",
     .attrs = DTYPE,
     .flags = FLAGS | TFC_OP_ASYNC,
     ON(shape_take_sparse, take),
     .role = TFC_ROLE_TAKES_GRADIENT},
};
TFC_REGISTER_OPS(data_accumulator_rows);
