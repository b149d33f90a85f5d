// Rows of optimizers, scatters, segments, gathers and one-hot tensors.
#include "runtime/device/cuda/kernels/update.h"

#include "runtime/device/cuda/kernels/state.h"
#include "runtime/ops/state_common.h"
#include "runtime/ops/training_rules.h"
#include "runtime/ops/training_scaled.h"

static bool is_index(tfc_dtype t) {
  return t == TFC_INT32 || t == TFC_INT64;
}
static bool is_real(tfc_dtype t) {
  return tfc_cuda_type_in(t, OPS_BITS(TFC_CUDA_REALS));
}

// Sorts positions by the row that their index names. *memory: scratch that the caller releases.
static tfc_status sort_indices(struct tfc_cuda_launch *l, tfc_dtype type, const void *indices, int64_t n, int64_t rows,
                               struct tfc_cuda_runs *out, struct tfc_buffer **memory) {
  size_t bytes;
  TFC_KERNEL_CHECK(n <= INT32_MAX && rows < UINT32_MAX, "%lld indices into %lld rows are too many", (long long)n,
                   (long long)rows);
  TFC_CUDA_LAUNCHED(l, tfc_cuda_runs_bytes(n, &bytes));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, memory));
  int failed = tfc_cuda_make_runs((int)type, indices, n, rows, (*memory)->data, out, l->stream);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}

// --- Optimizers --------------------------------------------------------------------------------------------------
static const struct {
  const char *name;
  uint32_t slots, scalars;
} rules[] = {
#define RULE(name, slots, scalars) {#name, slots, scalars},
    TFC_CUDA_RULES(RULE)};

struct apply {
  int rule;
  // `scalars`, `grad` and `indices` are indices of inputs; `indices` TFC_NONE: the whole variable is updated.
  uint32_t slots, scalar_count, scalars[TFC_RULE_SCALARS], grad, indices;
  uint32_t scale; // the input by which the gradient is multiplied first; TFC_NONE: there is none
  uint32_t longs; // bit i: scalar i is an int64
  tfc_dtype type;
  bool flag;
};
static uint32_t input_named(const struct tfc_op_signature *s, tfc_str name) {
  for (uint32_t i = 0; i < s->input_count; i++)
    if (tfc_str_equal(s->inputs[i].name, name)) return i;
  return TFC_NONE;
}
static tfc_status prepare_rule(struct tfc_cuda_prepare *p, const struct tfc_op_def *def, uint32_t scale) {
  TFC_CUDA_STATE(p, struct apply, a);
  const struct tfc_rule *rule = tfc_rule_find(p->base->node->op);
  const struct tfc_op_signature *s = tfc_op_signature(def);
  a->rule = -1;
  a->scale = scale;
  for (int i = 0; rule && i < TFC_CUDA_RULE_COUNT; i++)
    if (!strcmp(rules[i].name, rule->op)) a->rule = i;
  if (a->rule < 0) TFC_CUDA_DECLINE("no kernel for this rule");
  a->slots = rules[a->rule].slots;
  a->grad = input_named(s, tfc_str_from(rule->grad));
  if (a->grad == TFC_NONE) a->grad = input_named(s, TFC_STR("grad"));
  a->indices = input_named(s, TFC_STR("indices"));
  for (tfc_str rest = tfc_str_from(rule->scalars); rest.size;) {
    uint32_t input = input_named(s, tfc_str_take(&rest, ' '));
    if (input < s->input_count && s->inputs[input].type == TFC_INT64) a->longs |= 1u << a->scalar_count;
    a->scalars[a->scalar_count++] = input;
  }
  if (a->scalar_count != rules[a->rule].scalars || (int)a->slots != rule->slots)
    return tfc_status_make(TFC_INTERNAL, "the rule of %s has other slots or scalars on the host", rule->op);
  const tfc_dtype type = a->type = tfc_cuda_type(p, a->grad);
  if (!tfc_cuda_type_in(type, OPS_BITS(OPS_FLOATS))) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  if (a->indices != TFC_NONE && !is_index(tfc_cuda_type(p, a->indices))) TFC_CUDA_DECLINE("indices of this type");
  a->flag = rule->flag && tfc_node_attr_bool(p->base->graph, p->base->node, rule->flag,
                                             tfc_str_is(tfc_str_from(rule->flag), "update_slots"));
  return NULL;
}
static tfc_status apply_prepare(struct tfc_cuda_prepare *p) {
  return prepare_rule(p, p->base->def, TFC_NONE);
}
static tfc_status scaled_prepare(struct tfc_cuda_prepare *p) {
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  const struct tfc_scaled_update *scaled = p->op->state;
  return prepare_rule(p, scaled->update, scaled->scale);
}

// Fills in what an update reads and writes, and checks types and shapes.
static tfc_status operands_of(struct tfc_cuda_launch *l, const struct apply *a, struct tfc_cuda_update *u,
                              struct tfc_variable **out) {
  const struct tfc_tensor *grad = l->ctx->inputs[a->grad];
  struct tfc_variable *v[4] = {0};
  *u = (struct tfc_cuda_update){.grad = grad->data, .count = tfc_cuda_count(grad), .longs = a->longs, .flag = a->flag};
  for (uint32_t i = 0; i <= a->slots; i++) TFC_RETURN_IF_ERROR(tfc_cuda_writable(l, i, &v[i]));
  const struct tfc_shape *shape = &v[0]->value.shape;
  TFC_KERNEL_CHECK(v[0]->dtype == grad->dtype, "var and grad have different types");
  for (uint32_t i = 1; i <= a->slots; i++) {
    TFC_KERNEL_CHECK(tfc_shape_equal(&v[i]->value.shape, shape) && v[i]->dtype == grad->dtype,
                     "var %s and its slot %.*s %s do not have the same shape and type",
                     tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}), TFC_STR_ARG(v[i]->name),
                     tfc_shape_show(&v[i]->value.shape, (char[TFC_SHAPE_TEXT]){0}));
    u->slots[i - 1] = v[i]->value.data;
  }
  u->var = v[0]->value.data;
  for (uint32_t i = 0; i < a->scalar_count; i++) {
    const struct tfc_tensor *t = l->ctx->inputs[a->scalars[i]];
    tfc_dtype want = a->longs >> i & 1 ? TFC_INT64 : grad->dtype;
    TFC_KERNEL_CHECK(tfc_tensor_elements(t) == 1 && t->dtype == want, "input %u is not a scalar of type %s",
                     a->scalars[i], tfc_dtype_name(want));
    u->scalars[i] = t->data;
  }
  if (a->scale != TFC_NONE) {
    const struct tfc_tensor *t = l->ctx->inputs[a->scale];
    TFC_KERNEL_CHECK(tfc_tensor_elements(t) == 1 && t->dtype == grad->dtype, "the scale of the gradient is no scalar");
    u->scale = t->data;
  }
  if (a->indices == TFC_NONE)
    TFC_KERNEL_CHECK(tfc_shape_equal(&grad->shape, shape), "var %s and grad %s do not have the same shape",
                     tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = v[0];
  return NULL;
}

static void append(struct tfc_cuda_updates *list, const struct tfc_cuda_update *u) {
  struct tfc_cuda_dense *item = &list->items[list->count++];
  *item = (struct tfc_cuda_dense){.var = u->var, .grad = u->grad, .scale = u->scale, .count = u->count};
  memcpy(item->slots, u->slots, sizeof item->slots);
  memcpy(item->scalars, u->scalars, sizeof item->scalars);
  list->longs = u->longs, list->flag = u->flag;
}

static tfc_status launch_apply(struct tfc_cuda_launch *l) {
  const struct apply *a = l->ctx->state;
  struct tfc_cuda_update u;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(operands_of(l, a, &u, &v));
  if (a->indices == TFC_NONE) {
    struct tfc_cuda_updates list = {0};
    append(&list, &u);
    if (u.count) TFC_CUDA_LAUNCHED(l, tfc_cuda_apply(a->rule, (int)a->type, &list, l->stream));
    return tfc_cuda_forward_ref(l);
  }
  const struct tfc_tensor *grad = l->ctx->inputs[a->grad], *indices = l->ctx->inputs[a->indices];
  const struct tfc_shape *shape = &v->value.shape;
  int64_t n = tfc_cuda_count(indices);
  TFC_KERNEL_CHECK(shape->rank >= 1 && indices->shape.rank == 1,
                   "var must be at least 1 dimensional and indices one-dimensional");
  bool fits = grad->shape.rank == shape->rank && grad->shape.dims[0] == n;
  for (int k = 1; fits && k < shape->rank; k++) fits = grad->shape.dims[k] == shape->dims[k];
  TFC_KERNEL_CHECK(fits, "grad %s must be the rows of var %s that %lld indices name",
                   tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}), (long long)n);
  if (u.count) {
    struct tfc_buffer *memory = NULL;
    u.count /= n;
    tfc_status s = sort_indices(l, indices->dtype, indices->data, n, shape->dims[0], &u.runs, &memory);
    int failed = s ? 0 : tfc_cuda_apply_rows(a->rule, (int)grad->dtype, &u, l->stream);
    tfc_buffer_release(memory);
    if (s) return s;
    if (failed) return tfc_cuda_status(l, failed);
  }
  return tfc_cuda_forward_ref(l);
}

// --- Several updates in one launch -------------------------------------------------------------------------------
bool tfc_cuda_together(const struct tfc_cuda_kernel *row, const void *state, const struct tfc_cuda_kernel *next,
                       const void *next_state) {
  if (row->launch != launch_apply || next->launch != launch_apply) return false;
  const struct apply *a = state, *b = next_state;
  return a->rule == b->rule && a->type == b->type && a->longs == b->longs && a->flag == b->flag &&
         a->indices == TFC_NONE && b->indices == TFC_NONE;
}

static bool overlap(const void *a, size_t a_size, const void *b, size_t b_size) {
  return a && b && (uintptr_t)a < (uintptr_t)b + b_size && (uintptr_t)b < (uintptr_t)a + a_size;
}
// Whether `a` writes memory that `b` reads or writes.
static bool disturbs(const struct tfc_cuda_dense *a, const struct tfc_cuda_dense *b, size_t size) {
  const void *const written[] = {a->var, a->slots[0], a->slots[1], a->slots[2]};
  const void *const used[] = {b->var, b->slots[0], b->slots[1], b->slots[2], b->grad};
  bool found = false;
  for (size_t w = 0; w < sizeof written / sizeof *written; w++) {
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
      found |= overlap(written[w], (size_t)a->count * size, used[i], (size_t)b->count * size);
    for (size_t i = 0; i < sizeof b->scalars / sizeof *b->scalars; i++)
      found |= overlap(written[w], (size_t)a->count * size, b->scalars[i], sizeof(int64_t));
    found |= overlap(written[w], (size_t)a->count * size, b->scale, size);
  }
  return found;
}

static tfc_status launch_list(struct tfc_cuda_launch *l, const struct apply *a, struct tfc_cuda_updates *list) {
  int error = list->count ? tfc_cuda_apply(a->rule, (int)a->type, list, l->stream) : 0;
  list->count = 0;
  return error ? tfc_cuda_status(l, error) : NULL;
}

tfc_status tfc_cuda_launch_together(struct tfc_cuda_launch *l, struct tfc_kernel_ctx *const *contexts, uint32_t count,
                                    uint32_t *out_at) {
  struct tfc_cuda_updates list = {0};
  const struct apply *a = contexts[0]->state;
  for (*out_at = 0; *out_at < count; ++*out_at) {
    struct tfc_cuda_update u;
    struct tfc_variable *v = NULL;
    struct tfc_cuda_updates alone = {0};
    l->ctx = contexts[*out_at];
    TFC_RETURN_IF_ERROR(operands_of(l, l->ctx->state, &u, &v));
    append(&alone, &u);
    bool apart = list.count == TFC_CUDA_UPDATES;
    for (int32_t i = 0; i < list.count && !apart; i++)
      apart = disturbs(&list.items[i], &alone.items[0], tfc_dtype_size(a->type)) ||
              disturbs(&alone.items[0], &list.items[i], tfc_dtype_size(a->type));
    if (apart) TFC_RETURN_IF_ERROR(launch_list(l, a, &list));
    if (u.count) append(&list, &u);
  }
  --*out_at;
  TFC_RETURN_IF_ERROR(launch_list(l, a, &list));
  for (uint32_t i = 0; i < count; i++) { // it may copy the new values, so it comes after the launches
    l->ctx = contexts[ *out_at = i];
    TFC_RETURN_IF_ERROR(tfc_cuda_forward_ref(l));
  }
  return NULL;
}

// --- Scatters ----------------------------------------------------------------------------------------------------
static tfc_status scatter_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, int, how);
  *how = p->variant;
  if (!is_real(tfc_cuda_type(p, 2))) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(tfc_cuda_type(p, 2)));
  if (!is_index(tfc_cuda_type(p, 1))) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
// Combines updates into the rows of `s->var` [rows, width] that indices [n] name.
static tfc_status scatter_rows(struct tfc_cuda_launch *l, int how, tfc_dtype type, tfc_dtype index_type,
                               const void *indices, int64_t n, int64_t rows, struct tfc_cuda_scatter *s) {
  struct tfc_buffer *memory = NULL;
  if (!n || !s->width || !rows) return NULL;
  tfc_status status = sort_indices(l, index_type, indices, n, rows, &s->runs, &memory);
  int failed = status ? 0 : tfc_cuda_scatter_rows(how, (int)type, s, l->stream);
  tfc_buffer_release(memory);
  return status ? status : failed ? tfc_cuda_status(l, failed) : NULL;
}
static tfc_status launch_scatter(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *indices = l->ctx->inputs[1], *updates = l->ctx->inputs[2];
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_writable(l, 0, &v));
  const struct tfc_shape *vs = &v->value.shape;
  TFC_KERNEL_CHECK(vs->rank >= 1, "variable '%.*s' must be at least 1-D", TFC_STR_ARG(v->name));
  TFC_KERNEL_CHECK(v->dtype == updates->dtype, "variable '%.*s' has type %s, updates %s", TFC_STR_ARG(v->name),
                   tfc_dtype_name(v->dtype), tfc_dtype_name(updates->dtype));
  bool scalar = updates->shape.rank == 0;
  if (!scalar) {
    bool fits = updates->shape.rank == indices->shape.rank + vs->rank - 1;
    for (int i = 0; fits && i < indices->shape.rank; i++) fits = updates->shape.dims[i] == indices->shape.dims[i];
    for (int i = 1; fits && i < vs->rank; i++) fits = updates->shape.dims[indices->shape.rank + i - 1] == vs->dims[i];
    TFC_KERNEL_CHECK(fits, "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = []");
  }
  int64_t rows = vs->dims[0];
  struct tfc_cuda_scatter s = {.var = v->value.data,
                               .updates = updates->data,
                               .width = rows ? tfc_cuda_count(&v->value) / rows : 0,
                               .scalar = scalar};
  TFC_RETURN_IF_ERROR(scatter_rows(l, *(const int *)l->ctx->state, v->dtype, indices->dtype, indices->data,
                                   tfc_cuda_count(indices), rows, &s));
  return tfc_cuda_forward_ref(l);
}

// Converts index tuples [..., depth] for the tensor `target` to row numbers, in `flat`, which the caller releases.
struct tuples {
  int64_t positions, rows, width;
  struct tfc_buffer *flat;
};
static tfc_status flatten(struct tfc_cuda_launch *l, const struct tfc_shape *target, const struct tfc_tensor *indices,
                          struct tuples *out) {
  const struct tfc_shape *is = &indices->shape;
  TFC_KERNEL_CHECK(is->rank >= 1, "indices must be at least a vector");
  int64_t depth = is->dims[is->rank - 1];
  TFC_KERNEL_CHECK(depth <= target->rank && depth <= TFC_CUDA_RANK,
                   "index innermost dimension length must be <= params rank; saw: %lld vs. %d", (long long)depth,
                   target->rank);
  struct tfc_cuda_tuples t = {.positions = 1, .depth = (int32_t)depth};
  *out = (struct tuples){.positions = 1, .rows = 1, .width = 1};
  for (int d = 0; d < is->rank - 1; d++) out->positions *= is->dims[d];
  for (int d = 0; d < target->rank; d++) *(d < depth ? &out->rows : &out->width) *= target->dims[d];
  for (int d = 0; d < depth; d++) t.dims[d] = target->dims[d];
  t.positions = out->positions;
  if (!out->positions) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, (size_t)out->positions * sizeof(int64_t), &out->flat));
  int failed = tfc_cuda_flatten((int)indices->dtype, &t, indices->data, out->flat->data, l->stream);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}
static tfc_status check_nd(const struct tfc_shape *target, const struct tfc_tensor *indices,
                           const struct tfc_tensor *updates) {
  const struct tfc_shape *is = &indices->shape, *us = &updates->shape;
  int depth = is->rank ? (int)is->dims[is->rank - 1] : 0;
  bool fits = us->rank == is->rank - 1 + target->rank - depth;
  for (int i = 0; fits && i < is->rank - 1; i++) fits = us->dims[i] == is->dims[i];
  for (int i = depth; fits && i < target->rank; i++) fits = us->dims[is->rank - 1 + i - depth] == target->dims[i];
  TFC_KERNEL_CHECK(fits, "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:]");
  return NULL;
}
// Combines updates with the slices of `var` (of `target`'s shape) that the tuples name.
static tfc_status scatter_tuples(struct tfc_cuda_launch *l, int how, void *var, const struct tfc_shape *target,
                                 const struct tfc_tensor *indices, const struct tfc_tensor *updates) {
  struct tuples t = {0};
  TFC_RETURN_IF_ERROR(check_nd(target, indices, updates));
  tfc_status s = flatten(l, target, indices, &t);
  if (!s && t.flat) {
    struct tfc_cuda_scatter scatter = {.var = var, .updates = updates->data, .width = t.width};
    s = scatter_rows(l, how, updates->dtype, TFC_INT64, t.flat->data, t.positions, t.rows, &scatter);
  }
  tfc_buffer_release(t.flat);
  return s;
}
static tfc_status launch_scatter_nd_var(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *indices = l->ctx->inputs[1], *updates = l->ctx->inputs[2];
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_writable(l, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == updates->dtype, "variable '%.*s' and updates have different types",
                   TFC_STR_ARG(v->name));
  TFC_RETURN_IF_ERROR(scatter_tuples(l, *(const int *)l->ctx->state, v->value.data, &v->value.shape, indices, updates));
  return tfc_cuda_forward_ref(l);
}
static tfc_status launch_tensor_scatter(struct tfc_cuda_launch *l) { // inputs: tensor, indices, updates
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  TFC_CUDA_LAUNCHED(l, tfc_cuda_copy_bytes(y->data, x->data, x->size, l->stream));
  return scatter_tuples(l, *(const int *)l->ctx->state, y->data, &y->shape, l->ctx->inputs[1], l->ctx->inputs[2]);
}
static tfc_status scatter_nd(struct tfc_cuda_prepare *p, bool constant) { // inputs: indices, updates, shape
  TFC_CUDA_STATE(p, struct tfc_cuda_argument, shape);
  *shape = tfc_cuda_argument(p, 2);
  if (constant && !shape->constant) TFC_CUDA_DECLINE("the shape is not constant");
  if (!is_real(tfc_cuda_type(p, 1))) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(tfc_cuda_type(p, 1)));
  if (!is_index(tfc_cuda_type(p, 0))) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
static tfc_status scatter_nd_constant(struct tfc_cuda_prepare *p) {
  return scatter_nd(p, true);
}
static tfc_status scatter_nd_prepare(struct tfc_cuda_prepare *p) {
  return scatter_nd(p, false);
}
static tfc_status launch_ScatterNd(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *indices = l->ctx->inputs[0], *updates = l->ctx->inputs[1];
  struct tfc_cuda_value value;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, l->ctx->state, &value));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(value.tensor, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, updates->dtype, &shape, &y));
  TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(y->data, y->size, l->stream));
  return scatter_tuples(l, TFC_CUDA_COMBINE_ADD, y->data, &shape, indices, updates);
}

// --- Segments ----------------------------------------------------------------------------------------------------
struct segments {
  struct tfc_cuda_argument count;
  int how;
};
static tfc_status segments(struct tfc_cuda_prepare *p, bool constant) { // inputs: data, segment_ids, num_segments
  TFC_CUDA_STATE(p, struct segments, s);
  s->count = tfc_cuda_argument(p, 2);
  s->how = p->variant;
  if (constant && !s->count.constant) TFC_CUDA_DECLINE("num_segments is not constant");
  if (!is_index(tfc_cuda_type(p, 1))) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
static tfc_status segments_constant(struct tfc_cuda_prepare *p) {
  return segments(p, true);
}
static tfc_status segments_prepare(struct tfc_cuda_prepare *p) {
  return segments(p, false);
}
static tfc_status launch_segments(struct tfc_cuda_launch *l) {
  const struct segments *st = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0], *ids = l->ctx->inputs[1];
  struct tfc_cuda_value count;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->count, &count));
  TFC_KERNEL_CHECK(tfc_tensor_elements(count.tensor) == 1, "num_segments should be a scalar");
  int64_t number = tfc_tensor_int(count.tensor, 0), width = 1;
  TFC_KERNEL_CHECK(number >= 0, "Input num_segments == %lld must not be negative.", (long long)number);
  bool prefix = ids->shape.rank <= x->shape.rank;
  for (int d = 0; prefix && d < ids->shape.rank; d++) prefix = ids->shape.dims[d] == x->shape.dims[d];
  TFC_KERNEL_CHECK(prefix, "data.shape does not start with segment_ids.shape");
  struct tfc_shape shape = {.rank = 1, .dims = {number}};
  for (int d = ids->shape.rank; d < x->shape.rank; d++) {
    TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "the result has too many dimensions");
    width *= shape.dims[shape.rank++] = x->shape.dims[d];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  if (!y->size) return NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_combine_identity(st->how, (int)y->dtype, y->data, tfc_cuda_count(y), l->stream));
  struct tfc_cuda_scatter s = {.var = y->data, .updates = x->data, .width = width};
  return scatter_rows(l, st->how, x->dtype, ids->dtype, ids->data, tfc_cuda_count(ids), number, &s);
}

// --- Gathers -----------------------------------------------------------------------------------------------------
struct gather {
  struct tfc_cuda_argument axis;
  int64_t batch_dims;
};
static tfc_status gather_check(const struct tfc_cuda_prepare *p) {
  tfc_dtype t = tfc_cuda_type(p, 0);
  if (!tfc_dtype_is_plain(t) && t != TFC_RESOURCE) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(t));
  if (!is_index(tfc_cuda_type(p, 1))) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
static tfc_status gather_first(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct gather, g);
  g->axis.input = TFC_NONE; // no axis input: axis 0, or the first after the batch dimensions
  g->batch_dims = tfc_node_attr_int(p->base->graph, p->base->node, "batch_dims", 0);
  return gather_check(p);
}
static tfc_status gather_axis(struct tfc_cuda_prepare *p, bool constant) {
  TFC_RETURN_IF_ERROR(gather_first(p));
  struct gather *g = p->base->state;
  g->axis = tfc_cuda_argument(p, 2);
  if (constant && !g->axis.constant) TFC_CUDA_DECLINE("the axis is not constant");
  return NULL;
}
static tfc_status gather_constant(struct tfc_cuda_prepare *p) {
  return gather_axis(p, true);
}
static tfc_status gather_prepare(struct tfc_cuda_prepare *p) {
  return gather_axis(p, false);
}
static tfc_status run_gather(struct tfc_cuda_launch *l, const struct tfc_tensor *params) {
  const struct gather *st = l->ctx->state;
  const struct tfc_tensor *indices = l->ctx->inputs[1];
  const struct tfc_shape *ps = &params->shape, *is = &indices->shape;
  struct tfc_cuda_value value;
  struct tfc_tensor *y = NULL;
  int64_t batch = st->batch_dims < 0 ? st->batch_dims + is->rank : st->batch_dims, axis = batch;
  TFC_KERNEL_CHECK(ps->rank >= 1, "params must be at least 1 dimensional");
  if (st->axis.input != TFC_NONE) {
    TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->axis, &value));
    TFC_KERNEL_CHECK(tfc_tensor_elements(value.tensor) == 1, "axis must be scalar");
    axis = tfc_tensor_int(value.tensor, 0);
    axis += axis < 0 ? ps->rank : 0;
  }
  TFC_KERNEL_CHECK(axis >= 0 && axis < ps->rank, "axis %lld is outside of %d dimensions", (long long)axis, ps->rank);
  TFC_KERNEL_CHECK(batch >= 0 && batch <= is->rank && batch < ps->rank && axis >= batch,
                   "batch_dims (%lld) does not fit the ranks %d and %d and axis %lld", (long long)batch, is->rank,
                   ps->rank, (long long)axis);
  struct tfc_cuda_gather g = {.batch = 1,
                              .outer = 1,
                              .count = 1,
                              .axis = ps->dims[axis],
                              .inner = 1,
                              .size = (int32_t)tfc_dtype_size(params->dtype)};
  struct tfc_shape shape = {0};
  TFC_KERNEL_CHECK(ps->rank - 1 + is->rank - batch <= TFC_MAX_RANK, "the result has too many dimensions");
  for (int d = 0; d < axis; d++) {
    TFC_KERNEL_CHECK(d >= batch || ps->dims[d] == is->dims[d],
                     "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", d, (long long)ps->dims[d], d,
                     (long long)is->dims[d]);
    *(d < batch ? &g.batch : &g.outer) *= shape.dims[shape.rank++] = ps->dims[d];
  }
  for (int d = (int)batch; d < is->rank; d++) g.count *= shape.dims[shape.rank++] = is->dims[d];
  for (int d = (int)axis + 1; d < ps->rank; d++) g.inner *= shape.dims[shape.rank++] = ps->dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, params->dtype, &shape, &y));
  if (!y->size) return NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_gather_rows((int)indices->dtype, &g, params->data, indices->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_gather(struct tfc_cuda_launch *l) {
  return run_gather(l, l->ctx->inputs[0]);
}
static tfc_status launch_resource_gather(struct tfc_cuda_launch *l) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(l->ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  return run_gather(l, &v->value);
}
static tfc_status launch_GatherNd(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *params = l->ctx->inputs[0], *indices = l->ctx->inputs[1];
  struct tuples t = {0};
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = indices->shape;
  tfc_status s = flatten(l, &params->shape, indices, &t);
  if (s) goto out;
  shape.rank--;
  for (int d = (int)indices->shape.dims[indices->shape.rank - 1]; d < params->shape.rank; d++) {
    if (shape.rank == TFC_MAX_RANK) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the result has too many dimensions");
    shape.dims[shape.rank++] = params->shape.dims[d];
  }
  TFC_TRY(s, tfc_kernel_output(l->ctx, 0, params->dtype, &shape, &y));
  if (y->size) {
    struct tfc_cuda_gather g = {.batch = 1,
                                .outer = 1,
                                .count = t.positions,
                                .axis = t.rows,
                                .inner = t.width,
                                .size = (int32_t)tfc_dtype_size(params->dtype)};
    int failed = tfc_cuda_gather_rows(TFC_INT64, &g, params->data, t.flat->data, y->data, l->stream);
    if (failed) s = tfc_cuda_status(l, failed);
  }
out:
  tfc_buffer_release(t.flat);
  return s;
}

// --- One-hot -----------------------------------------------------------------------------------------------------
struct one_hot {
  struct tfc_cuda_argument depth;
  int64_t axis;
};
static tfc_status one_hot(struct tfc_cuda_prepare *p, bool constant) { // inputs: indices, depth, on_value, off_value
  TFC_CUDA_STATE(p, struct one_hot, o);
  o->depth = tfc_cuda_argument(p, 1);
  o->axis = tfc_node_attr_int(p->base->graph, p->base->node, "axis", -1);
  tfc_dtype type = tfc_cuda_type(p, 2), index = tfc_cuda_type(p, 0);
  if (constant && !o->depth.constant) TFC_CUDA_DECLINE("the depth is not constant");
  if (!tfc_dtype_is_plain(type) || tfc_dtype_size(type) > 8) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  if (!is_index(index) && index != TFC_UINT8) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
static tfc_status one_hot_constant(struct tfc_cuda_prepare *p) {
  return one_hot(p, true);
}
static tfc_status one_hot_prepare(struct tfc_cuda_prepare *p) {
  return one_hot(p, false);
}
static tfc_status launch_OneHot(struct tfc_cuda_launch *l) {
  const struct one_hot *o = l->ctx->state;
  const struct tfc_tensor *indices = l->ctx->inputs[0], *on = l->ctx->inputs[2], *off = l->ctx->inputs[3];
  struct tfc_cuda_value value;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &o->depth, &value));
  TFC_KERNEL_CHECK(tfc_tensor_elements(value.tensor) == 1 && tfc_tensor_elements(on) == 1 &&
                       tfc_tensor_elements(off) == 1,
                   "depth, on_value and off_value must be scalars");
  int64_t depth = tfc_tensor_int(value.tensor, 0), outer = 1, inner = 1;
  int rank = indices->shape.rank;
  TFC_KERNEL_CHECK(depth >= 0, "depth must be non-negative, got: %lld", (long long)depth);
  TFC_KERNEL_CHECK(o->axis >= -1 && o->axis <= rank && rank < TFC_MAX_RANK,
                   "Expected axis to be -1 or between [0, %d). But received: %lld", rank + 1, (long long)o->axis);
  int at = (int)(o->axis < 0 ? rank : o->axis);
  struct tfc_shape shape = {.rank = rank + 1};
  for (int d = 0; d <= rank; d++) {
    shape.dims[d] = d == at ? depth : indices->shape.dims[d < at ? d : d - 1];
    if (d != at) *(d < at ? &outer : &inner) *= shape.dims[d];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, on->dtype, &shape, &y));
  if (!y->size) return NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_one_hot((int)tfc_dtype_size(on->dtype), (int)indices->dtype, outer, depth, inner,
                                        indices->data, on->data, off->data, y->data, l->stream));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define REALS OPS_BITS(TFC_CUDA_REALS)
#define FLOATS OPS_BITS(OPS_FLOATS)
#define APPLY(name, slots, scalars)                                                                                    \
  {"Apply" #name, FLOATS, apply_prepare, launch_apply, 0},                                                             \
      {"ResourceApply" #name, TFC_CUDA_HANDLE, apply_prepare, launch_apply, TFC_CUDA_ON_FLOATS},                       \
      {"SparseApply" #name, FLOATS, apply_prepare, launch_apply, 0},                                                   \
      {"ResourceSparseApply" #name, TFC_CUDA_HANDLE, apply_prepare, launch_apply, TFC_CUDA_ON_FLOATS},
#define SCATTER(name, how)                                                                                             \
  {"Scatter" name, REALS, scatter_prepare, launch_scatter, TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)}, {                \
    "ResourceScatter" name, TFC_CUDA_HANDLE, scatter_prepare, launch_scatter,                                          \
        TFC_CUDA_ON_REALS | TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)                                                   \
  }
#define SCATTER_ND(name, how)                                                                                          \
  {"ScatterNd" name, REALS, scatter_prepare, launch_scatter_nd_var, TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)}, {       \
    "ResourceScatterNd" name, TFC_CUDA_HANDLE, scatter_prepare, launch_scatter_nd_var,                                 \
        TFC_CUDA_ON_REALS | TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)                                                   \
  }
#define TENSOR_SCATTER(name, how)                                                                                      \
  { "TensorScatter" name, REALS, scatter_prepare, launch_tensor_scatter, TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how) }
#define SEGMENTS(name, how)                                                                                            \
  {"UnsortedSegment" name, REALS, segments_constant, launch_segments, TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)}, {     \
    "UnsortedSegment" name, REALS, segments_prepare, launch_segments,                                                  \
        TFC_CUDA_NO_CAPTURE | TFC_CUDA_VARIANT(TFC_CUDA_COMBINE_##how)                                                 \
  }
static const struct tfc_cuda_kernel update_rows[] = {
    TFC_CUDA_RULES(APPLY){"_ScaledUpdate", TFC_TYPE_BIT(TFC_FLOAT), scaled_prepare, launch_apply, 0},
    SCATTER("Update", UPDATE),
    SCATTER("Add", ADD),
    SCATTER("Sub", SUB),
    SCATTER("Mul", MUL),
    SCATTER("Div", DIV),
    SCATTER("Min", MIN),
    SCATTER("Max", MAX),
    SCATTER_ND("Update", UPDATE),
    SCATTER_ND("Add", ADD),
    SCATTER_ND("Sub", SUB),
    SCATTER_ND("Min", MIN),
    SCATTER_ND("Max", MAX),
    TENSOR_SCATTER("Update", UPDATE),
    TENSOR_SCATTER("Add", ADD),
    TENSOR_SCATTER("Sub", SUB),
    TENSOR_SCATTER("Min", MIN),
    TENSOR_SCATTER("Max", MAX),
    {"ScatterNd", TFC_CUDA_INDEX, scatter_nd_constant, launch_ScatterNd, TFC_CUDA_ON_REALS},
    {"ScatterNd", TFC_CUDA_INDEX, scatter_nd_prepare, launch_ScatterNd, TFC_CUDA_NO_CAPTURE | TFC_CUDA_ON_REALS},
    SEGMENTS("Sum", ADD),
    SEGMENTS("Prod", MUL),
    SEGMENTS("Max", MAX),
    SEGMENTS("Min", MIN),
    {"Gather", TFC_CUDA_PLAIN, gather_first, launch_gather, 0},
    {"GatherV2", TFC_CUDA_PLAIN, gather_constant, launch_gather, 0},
    {"GatherV2", TFC_CUDA_PLAIN, gather_prepare, launch_gather, TFC_CUDA_NO_CAPTURE},
    {"ResourceGather", TFC_CUDA_HANDLE, gather_first, launch_resource_gather, TFC_CUDA_ON_PLAIN},
    {"GatherNd", TFC_CUDA_PLAIN, gather_first, launch_GatherNd, 0},
    {"OneHot", TFC_CUDA_INDEX | TFC_TYPE_BIT(TFC_UINT8), one_hot_constant, launch_OneHot, TFC_CUDA_ON_SMALL},
    {"OneHot", TFC_CUDA_INDEX | TFC_TYPE_BIT(TFC_UINT8), one_hot_prepare, launch_OneHot,
     TFC_CUDA_NO_CAPTURE | TFC_CUDA_ON_SMALL},
};
TFC_CUDA_KERNELS(update_rows);
