// Operations that choose between tensors (Select, SelectV2) and the one that adds many (AddN).
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/select_condition.h"

// --- Select ------------------------------------------------------------------------------------------------------
#define SELECT_RUN(size_, type_)                                                                                       \
  case size_: {                                                                                                        \
    const type_ *t = in[1], *e = in[2];                                                                                \
    type_ *out = y;                                                                                                    \
    if (step[0] == 0) {                                                                                                \
      const type_ *from = c[0] ? t : e;                                                                                \
      int64_t by = c[0] ? step[1] : step[2];                                                                           \
      for (int64_t i = 0; i < n; i++) out[i] = from[i * by];                                                           \
    } else if (step[1] && step[2]) {                                                                                   \
      OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = c[i] ? t[i] : e[i];                                     \
    } else {                                                                                                           \
      for (int64_t i = 0; i < n; i++) out[i] = c[i] ? t[i * step[1]] : e[i * step[2]];                                 \
    }                                                                                                                  \
    break;                                                                                                             \
  }
// out[i] = c[i] ? t[i * t_step] : e[i * e_step] for 4 bytes; steps are 0 or 1. By bits, so that the compiler makes
// vectors of it.
OPS_CLONES static void select_words(const uint8_t *c, const uint32_t *t, int64_t t_step, const uint32_t *e,
                                    int64_t e_step, uint32_t *out, int64_t n) {
  const uint32_t first = t_step ? 0 : *t, second = e_step ? 0 : *e;
  if (t_step && e_step) {
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {
      const uint32_t mask = 0u - (c[i] != 0);
      out[i] = (t[i] & mask) | (e[i] & ~mask);
    }
  } else if (t_step) {
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {
      const uint32_t mask = 0u - (c[i] != 0);
      out[i] = (t[i] & mask) | (second & ~mask);
    }
  } else {
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {
      const uint32_t mask = 0u - (c[i] != 0);
      out[i] = (first & mask) | ((e_step ? e[i] : second) & ~mask);
    }
  }
}

// out = condition ? t : e, for elements of the given size
static void select_run(void *arg, const void *const in[3], const int64_t step[3], void *y, int64_t n) {
  const size_t *size = arg;
  const bool *c = in[0];
  if (*size == 4 && step[0] == 1 && n > 0) {
    select_words(in[0], in[1], step[1], in[2], step[2], y, n);
    return;
  }
  switch (*size) {
    SELECT_RUN(1, uint8_t)
    SELECT_RUN(2, uint16_t)
    SELECT_RUN(4, uint32_t)
    SELECT_RUN(8, uint64_t)
  default: {
    char *out = y;
    for (int64_t i = 0; i < n; i++) {
      const char *from = c[i * step[0]] ? (const char *)in[1] + (size_t)(i * step[1]) * *size
                                        : (const char *)in[2] + (size_t)(i * step[2]) * *size;
      memcpy(out + (size_t)i * *size, from, *size);
    }
  }
  }
}

// Copies strings and handles one by one.
static tfc_status select_objects(struct tfc_tensor *y, const struct tfc_tensor *c, const struct tfc_tensor *t,
                                 const struct tfc_tensor *e, const struct ops_broadcast *plan) {
  int64_t at[TFC_MAX_RANK] = {0};
  for (int64_t i = 0; i < plan->total; i++) {
    int64_t rest = i, o[3] = {0};
    for (int d = plan->rank - 1; d >= 0; d--) {
      at[d] = rest % plan->dims[d];
      rest /= plan->dims[d];
      for (int k = 0; k < 3; k++) o[k] += at[d] * plan->strides[k][d];
    }
    bool first = ((const bool *)c->data)[o[0]];
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, i, first ? t : e, first ? o[1] : o[2], 1));
  }
  return NULL;
}

static tfc_status select_shapes(struct tfc_kernel_ctx *ctx, const struct tfc_shape *condition) {
  const struct tfc_tensor *c = ctx->inputs[0], *t = ctx->inputs[1], *e = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  size_t size = tfc_dtype_size(t->dtype);
  struct ops_broadcast_job job = {.count = 3,
                                  .fn = select_run,
                                  .arg = &size,
                                  .in = {c->data, t->data, e->data},
                                  .size = {1, size, size},
                                  .out_size = size};
  const struct tfc_shape *shapes[3] = {condition, &t->shape, &e->shape};
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, 3, &job.plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, t->dtype, &job.plan.shape, &y));
  if (!tfc_dtype_is_plain(t->dtype)) return select_objects(y, c, t, e, &job.plan);
  job.out = y->data;
  ops_broadcast_all(ctx, &job, OPS_GRAIN_CHEAP);
  return NULL;
}

static tfc_status select_v2(struct tfc_kernel_ctx *ctx) {
  return select_shapes(ctx, &ctx->inputs[0]->shape);
}

static tfc_status select_v1(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape condition;
  TFC_RETURN_IF_ERROR(tfc_select_condition(ctx, &condition));
  return select_shapes(ctx, &condition);
}

static tfc_status shape_select_v1(struct tfc_shape_ctx *ctx) {
  struct tfc_shape merged;
  TFC_RETURN_IF_ERROR(tfc_shape_merge(ctx->inputs[1], ctx->inputs[2], &merged));
  const struct tfc_shape *c = ctx->inputs[0];
  if (c->rank > 1 || (c->rank == 1 && merged.rank == 1)) {
    struct tfc_shape all;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&merged, c, &all));
    merged = all;
  } else if (c->rank == 1 && merged.rank >= 1) {
    int64_t first;
    TFC_RETURN_IF_ERROR(tfc_dim_merge(merged.dims[0], c->dims[0], &first));
    merged.dims[0] = first;
  } else if (c->rank == 1 && merged.rank == 0) {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the condition is a vector but what it selects are scalars");
  }
  ctx->outputs[0] = merged;
  return NULL;
}

static tfc_status shape_select_v2(struct tfc_shape_ctx *ctx) {
  struct tfc_shape branches, all;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(ctx->inputs[1], ctx->inputs[2], &branches));
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(ctx->inputs[0], &branches, &all));
  ctx->outputs[0] = all;
  return NULL;
}

OPS_GRADIENT(Select) {
  struct tfc_output c = X, zeros = grad_op1(g, "ZerosLike", grad_in(g, 1));
  g->grad_inputs[1] = grad_op3(g, "Select", c, G, zeros);
  g->grad_inputs[2] = grad_op3(g, "Select", c, zeros, G);
  return NULL;
}
OPS_GRADIENT(SelectV2) {
  struct tfc_output c = X, zero = grad_const(g, G, 0);
  struct tfc_output gt = grad_op3(g, "SelectV2", c, G, zero), ge = grad_op3(g, "SelectV2", c, zero, G);
  grad_unbroadcast(g, grad_in(g, 1), g->input_shapes[1], Y, g->output_shapes[0], &gt, NULL);
  grad_unbroadcast(g, grad_in(g, 2), g->input_shapes[2], Y, g->output_shapes[0], &ge, NULL);
  g->grad_inputs[1] = gt;
  g->grad_inputs[2] = ge;
  return NULL;
}

// --- AddN --------------------------------------------------------------------------------------------------------
// Adds many tensors, from the first to the last, in one pass over memory. Blocks are summed in a separate buffer, so
// that the output may be the memory of any input.
enum { SUM_BLOCK = 1024 };
#define SUM_LOOP(t, ...)                                                                                               \
  OPS_CLONES_##t static void add_##t(void *yv, const void *xv, int64_t n) {                                            \
    ops_##t *y = yv;                                                                                                   \
    const ops_##t *x = xv;                                                                                             \
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] =                                                             \
        OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(y[i]) + (ops_##t##_u)OPS_GET_##t(x[i]));                                  \
  }
OPS_NUMBERS(SUM_LOOP, ~)
#define SUM_ROW(t, ...) [OPS_DT_##t] = add_##t,
static void (*const sum_table[TFC_DTYPE_COUNT])(void *y, const void *x, int64_t n) = {OPS_NUMBERS(SUM_ROW, ~)};

// Adds two tensors.
OPS_CLONES_f32 static void add_pair(const void *av, int64_t a_step, const void *bv, int64_t b_step, void *yv,
                                    int64_t n) {
  const float *a = av, *b = bv;
  float *y = yv;
  if (a_step && b_step) {
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
    return;
  }
  for (int64_t i = 0; i < n; i++) y[i] = a[i * a_step] + b[i * b_step];
}

struct sum_job {
  const struct tfc_kernel_ctx *ctx;
  char *y;
  size_t size;
  void (*add)(void *y, const void *x, int64_t n);
};
static void sum_piece(void *arg, int64_t begin, int64_t end) {
  const struct sum_job *j = arg;
  if (j->ctx->input_count == 2 && j->ctx->inputs[0]->dtype == TFC_FLOAT) {
    const float *a = j->ctx->inputs[0]->data, *b = j->ctx->inputs[1]->data;
    add_pair(a + begin, 1, b + begin, 1, (float *)(void *)j->y + begin, end - begin);
    return;
  }
  _Alignas(64) char block[SUM_BLOCK * 16];
  for (int64_t at = begin; at < end; at += SUM_BLOCK) {
    int64_t n = end - at < SUM_BLOCK ? end - at : SUM_BLOCK;
    size_t offset = (size_t)at * j->size, bytes = (size_t)n * j->size;
    memcpy(block, (const char *)j->ctx->inputs[0]->data + offset, bytes);
    for (uint32_t k = 1; k < j->ctx->input_count; k++) j->add(block, (const char *)j->ctx->inputs[k]->data + offset, n);
    memcpy(j->y + offset, block, bytes);
  }
}

static tfc_binary_loop *const add_pairs[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = add_pair};
static const struct tfc_elementwise loops_AddN = {.binary = add_pairs};

static tfc_status add_variants(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor sum = {0};
  tfc_tensor_share(ctx->inputs[0], &sum);
  for (uint32_t k = 1; k < ctx->input_count; k++) {
    struct tfc_tensor next = {0};
    tfc_status s = tfc_variant_add(ctx, &sum, ctx->inputs[k], &next);
    tfc_tensor_release(&sum);
    if (s) return s;
    sum = next;
  }
  return tfc_data_output(ctx, 0, &sum);
}

static tfc_status add_n(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  if (x->dtype == TFC_VARIANT) return add_variants(ctx);
  if (!sum_table[x->dtype]) return ops_unsupported_type(ctx, x->dtype);
  for (uint32_t k = 1; k < ctx->input_count; k++)
    if (!tfc_shape_equal(&x->shape, &ctx->inputs[k]->shape)) {
      char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "Inputs to operation must have the same size and shape. Input 0: %s "
                             "!= input %u: %s",
                             tfc_shape_show(&x->shape, a), k, tfc_shape_show(&ctx->inputs[k]->shape, b));
    }
  if (ctx->input_count == 1) return tfc_kernel_set_output(ctx, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  struct sum_job job = {ctx, y->data, tfc_dtype_size(x->dtype), sum_table[x->dtype]};
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(x), OPS_GRAIN_CHEAP, sum_piece, &job);
  return NULL;
}

static void cost_add_n(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                       const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  ops_cost_outputs(g, n, inputs, outputs, out);
  out->flops *= (double)n->input_count - 1;
}

OPS_GRADIENT(AddN) {
  uint32_t n = tfc_builder_node(g->builder, g->node)->input_count;
  for (uint32_t i = 0; i < n; i++) g->grad_inputs[i] = G;
  return NULL;
}

// AccumulateNV2 has an attribute with the shape of its terms and their sum.
static tfc_status shape_accumulated(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "shape");
  TFC_RETURN_IF_ERROR(ops_shape_merged(ctx));
  if (!a || a->kind != TFC_ATTR_SHAPE) return NULL;
  return tfc_shape_merge(&ctx->outputs[0], a->shape, &ctx->outputs[0]);
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def math_select_rows[] = {
    {.name = "Select",
     .plan_trait = TFC_PLAN_SELECT,
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = shape_select_v1,
     .cost = ops_cost_outputs,
     .kernel = select_v1,
     .gradient = gradient_Select,
     .samples = "bool[3,4], float[3,4], float[3,4]; bool[], float[3], float[3]; bool[3], int32[3,2], int32[3,2]"},
    {.name = "SelectV2",
     .plan_trait = TFC_PLAN_SELECT,
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = shape_select_v2,
     .cost = ops_cost_outputs,
     .kernel = select_v2,
     .gradient = gradient_SelectV2,
     .samples = "bool[3,4], float[3,4], float[3,4]; bool[3,1], float[4], float[]; bool[2], int64[2], int64[2]"},
    {.name = "AddN",
     .role = TFC_ROLE_ADD_N,
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1, T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
              "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
     .flags = TFC_OP_COMMUTATIVE | TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_NUMBERS) | TFC_TYPE_BIT(TFC_VARIANT),
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_merged,
     .cost = cost_add_n,
     .kernel = add_n,
     .elementwise = &loops_AddN,
     .gradient = gradient_AddN,
     .samples = "float[3,4], float[3,4], float[3,4]; int32[5], int32[5]; float[2]; half[4], half[4]"},
    {.name = "AccumulateNV2",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1, T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
              "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}, shape: shape",
     .flags = TFC_OP_COMMUTATIVE | TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_accumulated,
     .cost = cost_add_n,
     .kernel = add_n,
     .gradient = gradient_AddN,
     .samples = "float[3,4], float[3,4], float[3,4] {shape=[3,4]}"},
};
TFC_REGISTER_OPS(math_select_rows);
