// Optimizers: one kernel for every Apply…, SparseApply… and their Resource forms. The names in the op's signature say
// what each input is.
//
// Dense: var, slots and grad have one shape. Sparse: grad is [n, ...] for n rows of var [rows, ...]; if a row occurs
// twice, it is updated twice, in order.
#include "runtime/ops/training_apply.h"

#include "runtime/ops/rows_ahead.h"
#include "runtime/ops/state_common.h"
#include "runtime/ops/training_rules.h"

enum { GRAIN = 16384 };

struct apply_state {
  const struct tfc_rule *rule;
  uint32_t grad, indices; // numbers of inputs; indices TFC_NONE: a dense update
  uint32_t scalars[TFC_RULE_SCALARS];
  uint32_t scalar_count;
  bool flag, lock;
};

static uint32_t input_named(const struct tfc_op_signature *sig, tfc_str name) {
  for (uint32_t i = 0; i < sig->input_count; i++)
    if (tfc_str_equal(sig->inputs[i].name, name)) return i;
  return TFC_NONE;
}

static uint32_t read_roles(const struct tfc_op_def *def, struct apply_state *out) {
  const struct tfc_op_signature *sig = tfc_op_signature(def);
  out->rule = tfc_rule_find(tfc_str_from(def->name));
  out->grad = input_named(sig, tfc_str_from(out->rule->grad));
  if (out->grad == TFC_NONE) out->grad = input_named(sig, TFC_STR("grad"));
  out->indices = input_named(sig, TFC_STR("indices"));
  tfc_str rest = tfc_str_from(out->rule->scalars);
  out->scalar_count = 0;
  while (rest.size) out->scalars[out->scalar_count++] = input_named(sig, tfc_str_take(&rest, ' '));
  return out->scalar_count;
}

static tfc_status apply_prepare(struct tfc_prepare_ctx *ctx) {
  struct apply_state *s = TFC_ARENA_NEW(ctx->arena, struct apply_state);
  if (!s) return tfc_status_no_memory(NULL);
  read_roles(ctx->def, s);
  // An op that lacks the attribute behaves as if update_slots were true and any other flag false.
  s->flag = s->rule->flag && tfc_node_attr_bool(ctx->graph, ctx->node, s->rule->flag,
                                                tfc_str_is(tfc_str_from(s->rule->flag), "update_slots"));
  s->lock = tfc_node_attr_bool(ctx->graph, ctx->node, "use_locking", false);
  ctx->state = s;
  return NULL;
}

struct piece {
  const struct tfc_rule *rule;
  struct tfc_rule_span span;
  size_t element;
  const struct tfc_apply_source *source; // NULL: the gradient is a tensor in memory
};

static void run_piece(void *arg, int64_t begin, int64_t end) {
  const struct piece *p = arg;
  struct tfc_rule_span s = p->span;
  size_t offset = (size_t)begin * p->element;
  s.var = (char *)s.var + offset;
  for (int k = 0; k < p->rule->slots; k++) s.slots[k] = (char *)s.slots[k] + offset;
  s.grad = (const char *)s.grad + offset;
  s.count = end - begin;
  p->rule->run(&s);
}

static void run_made(void *arg, int64_t begin, int64_t end) {
  struct piece p = *(const struct piece *)arg;
  _Alignas(64) float gradient[TFC_APPLY_BLOCK];
  const struct tfc_rule_span span = p.span;
  for (int64_t at = begin; at < end; at += TFC_APPLY_BLOCK) {
    int64_t n = end - at < TFC_APPLY_BLOCK ? end - at : TFC_APPLY_BLOCK;
    p.source->fill(p.source->arg, at, n, gradient);
    size_t offset = (size_t)at * p.element;
    p.span.var = (char *)span.var + offset;
    for (int k = 0; k < p.rule->slots; k++) p.span.slots[k] = (char *)span.slots[k] + offset;
    p.span.grad = gradient;
    p.span.count = n;
    p.rule->run(&p.span);
  }
}

struct sparse_job { // updates of some rows
  const struct piece *piece;
  struct ops_rows rows;
  int64_t row; // elements of one
};
static void bring_row(const struct piece *p, size_t offset, size_t bytes) {
  ops_bring_row((const char *)p->span.var + offset, bytes);
  for (int k = 0; k < p->rule->slots; k++) ops_bring_row((const char *)p->span.slots[k] + offset, bytes);
}

static void update_rows(void *arg, int64_t begin, int64_t end) {
  const struct sparse_job *j = arg;
  const struct piece *p = j->piece;
  const size_t bytes = (size_t)j->row * p->element;
  for (struct ops_rows_walk w = ops_rows_part(&j->rows, begin, end); ops_rows_next(&w);) {
    if (w.ahead >= 0) bring_row(p, (size_t)w.ahead * bytes, bytes);
    if (w.row < 0) continue;
    const size_t offset = (size_t)w.row * bytes;
    struct tfc_rule_span s = p->span;
    s.var = (char *)s.var + offset;
    for (int k = 0; k < p->rule->slots; k++) s.slots[k] = (char *)s.slots[k] + offset;
    s.grad = (const char *)s.grad + (size_t)w.i * bytes;
    s.count = j->row;
    p->rule->run(&s);
  }
}

static tfc_status run_sparse(struct tfc_kernel_ctx *ctx, struct piece *p, const struct tfc_tensor *var,
                             const struct tfc_tensor *grad, const struct tfc_tensor *indices) {
  TFC_KERNEL_CHECK(var->shape.rank >= 1, "var must be at least 1 dimensional");
  TFC_KERNEL_CHECK(indices->shape.rank == 1, "indices must be one-dimensional");
  int64_t n = tfc_tensor_elements(indices), rows = var->shape.dims[0];
  bool fits = grad->shape.rank == var->shape.rank && grad->shape.dims[0] == n;
  for (int k = 1; fits && k < var->shape.rank; k++) fits = grad->shape.dims[k] == var->shape.dims[k];
  TFC_KERNEL_CHECK(fits, "grad %s must be the rows of var %s that %lld indices name",
                   tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&var->shape, (char[TFC_SHAPE_TEXT]){0}), (long long)n);
  for (int64_t i = 0; i < n; i++) {
    int64_t index = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(index >= 0 && index < rows, "Index %lld at offset %lld in indices is out of range [0, %lld)",
                     (long long)index, (long long)i, (long long)rows);
  }
  struct sparse_job job = {p, ops_rows_of(indices, rows, grad->size, ctx->env->threads),
                           rows ? tfc_tensor_elements(var) / rows : 0};
  tfc_kernel_parallel_for(ctx, job.rows.parts, 1, update_rows, &job);
  return NULL;
}

// Whether `one` is already among the variables: a graph may use one variable several times, which must be locked only
// once.
static bool among(struct tfc_variable *const *v, int count, const struct tfc_variable *one) {
  for (int i = 0; i < count; i++)
    if (v[i] == one) return true;
  return false;
}

tfc_status tfc_apply_run(struct tfc_kernel_ctx *ctx, const void *state, const struct tfc_apply_source *source) {
  const struct apply_state *st = state;
  const struct tfc_rule *rule = st->rule;
  const struct tfc_tensor *grad = ctx->inputs[st->grad];
  const tfc_dtype type = source ? TFC_FLOAT : grad->dtype; // a source produces float32
  struct tfc_variable *v[TFC_RULE_SLOTS + 1] = {0};
  tfc_status s = NULL;
  int locked = 0;
  if (st->lock)
    for (; locked <= rule->slots; locked++) {
      TFC_TRY(s, tfc_state_variable(ctx, (uint32_t)locked, &v[locked]));
      if (!among(v, locked, v[locked])) tfc_variable_lock(v[locked]);
    }
  for (int i = 0; i <= rule->slots; i++) {
    TFC_TRY(s, tfc_state_writable(ctx, (uint32_t)i, &v[i]));
    if (v[i]->dtype != type)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "variable '%.*s' has type %s, its gradient %s", TFC_STR_ARG(v[i]->name),
               tfc_dtype_name(v[i]->dtype), tfc_dtype_name(type));
  }
  struct piece p = {.rule = rule, .element = tfc_dtype_size(v[0]->dtype), .source = source};
  p.span = (struct tfc_rule_span){.dtype = v[0]->dtype,
                                  .var = v[0]->value.data,
                                  .grad = grad->data,
                                  .flag = st->flag,
                                  .sparse = st->indices != TFC_NONE};
  for (uint32_t i = 0; i < st->scalar_count; i++) {
    const struct tfc_tensor *t = ctx->inputs[st->scalars[i]];
    if (tfc_tensor_elements(t) != 1)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s is not a scalar: %s", rule->scalars,
               tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
    p.span.scalars[i] = t->dtype == TFC_COMPLEX64    ? *(const float _Complex *)t->data
                        : t->dtype == TFC_COMPLEX128 ? *(const double _Complex *)t->data
                                                     : ops_scalar(t);
  }
  for (int i = 1; i <= rule->slots; i++) {
    if (!tfc_shape_equal(&v[i]->value.shape, &v[0]->value.shape))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "var %s and its slot %.*s %s do not have the same shape",
               tfc_shape_show(&v[0]->value.shape, (char[TFC_SHAPE_TEXT]){0}), TFC_STR_ARG(v[i]->name),
               tfc_shape_show(&v[i]->value.shape, (char[TFC_SHAPE_TEXT]){0}));
    p.span.slots[i - 1] = v[i]->value.data;
  }
  if (st->indices != TFC_NONE) {
    TFC_TRY(s, run_sparse(ctx, &p, &v[0]->value, grad, ctx->inputs[st->indices]));
  } else if (source) {
    if (source->elements != tfc_tensor_elements(&v[0]->value))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "var %s and a gradient of %lld elements do not have the same shape",
               tfc_shape_show(&v[0]->value.shape, (char[TFC_SHAPE_TEXT]){0}), (long long)source->elements);
    tfc_kernel_parallel_for(ctx, source->elements, GRAIN, run_made, &p);
  } else {
    if (!tfc_shape_equal(&grad->shape, &v[0]->value.shape))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "var %s and grad %s do not have the same shape",
               tfc_shape_show(&v[0]->value.shape, (char[TFC_SHAPE_TEXT]){0}),
               tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}));
    tfc_kernel_parallel_for(ctx, tfc_tensor_elements(grad), GRAIN, run_piece, &p);
  }
  TFC_TRY(s, tfc_state_forward_ref(ctx));
out:
  while (locked-- > 0)
    if (!among(v, locked, v[locked])) tfc_variable_unlock(v[locked]);
  return s;
}

static tfc_status apply(struct tfc_kernel_ctx *ctx) {
  return tfc_apply_run(ctx, ctx->state, NULL);
}

uint32_t tfc_apply_gradient(const struct tfc_op_def *def) {
  if (def->kernel != apply) return TFC_NONE;
  struct apply_state roles = {0};
  read_roles(def, &roles);
  return roles.indices == TFC_NONE ? roles.grad : TFC_NONE;
}

static tfc_status apply_shape(struct tfc_shape_ctx *ctx) {
  struct apply_state roles = {0};
  read_roles(ctx->node->def, &roles);
  struct tfc_shape shape = tfc_state_shape(ctx, 0), merged;
  for (int i = 1; i <= roles.rule->slots; i++) {
    struct tfc_shape slot = tfc_state_shape(ctx, (uint32_t)i);
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &slot, &merged));
    shape = merged;
  }
  if (roles.indices == TFC_NONE) {
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, ctx->inputs[roles.grad], &merged));
    shape = merged;
  } else {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, roles.indices, 1, &merged));
  }
  for (uint32_t i = 0; i < roles.scalar_count; i++)
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, roles.scalars[i], 0, &merged));
  if (ctx->node->output_count) ctx->outputs[0] = shape;
  return NULL;
}

static void apply_cost(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                       const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)g, (void)outputs;
  struct apply_state roles = {0};
  read_roles(n->def, &roles);
  int64_t count = tfc_shape_elements(&inputs[roles.grad]);
  double elements = count > 0 ? (double)count : 0;
  size_t element = tfc_dtype_size(tfc_output_dtype(g, tfc_node_inputs(g, n)[roles.grad]));
  out->flops = roles.rule->flops * elements;
  // Grad is read; var and slots are read and written.
  out->bytes = elements * (double)element * (1 + 2 * (roles.rule->slots + 1));
}

#define APPLY .types = OPS_BITS(OPS_FLOATS), APPLY_KERNEL
#define APPLY_WITH_COMPLEX .types = OPS_BITS(OPS_FLOATS) | OPS_BITS(OPS_COMPLEX), APPLY_KERNEL
#define APPLY_KERNEL .shape = apply_shape, .cost = apply_cost, .prepare = apply_prepare, .kernel = apply
static const struct tfc_op_def training_apply_rows[] = {
    {.name = "ApplyAdaMax",
     .inputs = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyAdadelta",
     .inputs = "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyAdagrad",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, update_slots: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyAdagradV2",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, update_slots: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyAdam",
     .inputs = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: "
               "T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, use_nesterov: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyAddSign",
     .inputs = "var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyCenteredRMSProp",
     .inputs = "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyFtrl",
     .inputs = "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, "
              "multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyFtrlV2",
     .inputs = "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, "
              "multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyGradientDescent",
     .inputs = "var: Ref(T), alpha: T, delta: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyMomentum",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, use_nesterov: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyPowerSign",
     .inputs = "var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyProximalAdagrad",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyProximalGradientDescent",
     .inputs = "var: Ref(T), alpha: T, l1: T, l2: T, delta: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ApplyRMSProp",
     .inputs = "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyAdaMax",
     .inputs =
         "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyAdadelta",
     .inputs = "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyAdagrad",
     .inputs = "var: resource, accum: resource, lr: T, grad: T",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, update_slots: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyAdagradV2",
     .inputs = "var: resource, accum: resource, lr: T, epsilon: T, grad: T",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, update_slots: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyAdam",
     .inputs = "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
               "epsilon: T, grad: T",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, use_nesterov: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyAddSign",
     .inputs = "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyCenteredRMSProp",
     .inputs =
         "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyFtrl",
     .inputs = "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, "
              "multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyFtrlV2",
     .inputs =
         "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, "
              "multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyGradientDescent",
     .inputs = "var: resource, alpha: T, delta: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyKerasMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, use_nesterov: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false, use_nesterov: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceApplyPowerSign",
     .inputs = "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyProximalAdagrad",
     .inputs = "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyProximalGradientDescent",
     .inputs = "var: resource, alpha: T, l1: T, l2: T, delta: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyRMSProp",
     .inputs = "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyAdadelta",
     .inputs = "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, indices: "
               "Tindices",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyAdagrad",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, indices: Tindices",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, update_slots: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyAdagradV2",
     .inputs = "var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, update_slots: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyCenteredRMSProp",
     .inputs = "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, "
               "grad: T, indices: Tindices",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyFtrl",
     .inputs = "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
               "lr_power: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceSparseApplyFtrlV2",
     .inputs = "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
               "l2_shrinkage: T, lr_power: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceSparseApplyKerasMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, use_nesterov: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, use_nesterov: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ResourceSparseApplyProximalAdagrad",
     .inputs = "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceSparseApplyProximalGradientDescent",
     .inputs = "var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceSparseApplyRMSProp",
     .inputs = "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: "
               "Tindices",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyAdadelta",
     .inputs =
         "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyAdagrad",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, update_slots: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyAdagradV2",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, update_slots: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyCenteredRMSProp",
     .inputs = "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, "
               "indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyFtrl",
     .inputs =
         "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "SparseApplyFtrlV2",
     .inputs = "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
               "l2_shrinkage: T, lr_power: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, multiply_linear_by_lr: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "SparseApplyMomentum",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool "
              "= false, use_nesterov: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "SparseApplyProximalAdagrad",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "SparseApplyProximalGradientDescent",
     .inputs = "var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "SparseApplyRMSProp",
     .inputs =
         "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY_WITH_COMPLEX},
    {.name = "ApplyAdagradDA",
     .inputs = "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, lr: T, l1: "
               "T, l2: T, global_step: int64",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "SparseApplyAdagradDA",
     .inputs = "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, indices: "
               "Tindices, lr: T, l1: T, l2: T, global_step: int64",
     .outputs = "out: Ref(T)",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyAdagradDA",
     .inputs = "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, "
               "l1: T, l2: T, global_step: int64",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceSparseApplyAdagradDA",
     .inputs = "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, "
               "indices: Tindices, lr: T, l1: T, l2: T, global_step: int64",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
         "quint16, uint16, complex128, half, uint32, uint64}, Tindices: {int32, int64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
    {.name = "ResourceApplyAdamWithAmsgrad",
     .inputs = "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: "
               "T, beta2: T, epsilon: T, grad: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     APPLY},
};
TFC_REGISTER_OPS(training_apply_rows);
