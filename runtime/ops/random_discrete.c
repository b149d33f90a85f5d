// Multinomial, which samples classes, and RandomShuffle, which shuffles rows.
#include <float.h>
#include <stdlib.h>

#include "runtime/ops/data_variant.h"
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/random_stream.h"

// Inputs: logits [batch, classes] (not normalised), num_samples; output [batch, num_samples]. `seeded`: the generator
// of a stateless op, made from input 2; otherwise NULL.
enum { RESERVED = 256 };
static tfc_status sample_classes(struct tfc_kernel_ctx *ctx, const struct tfc_philox *seeded) {
  const struct tfc_tensor *x = ctx->inputs[0], *wanted = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 2, "logits should be a matrix, got shape %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(wanted->shape.rank == 0, "num_samples should be a scalar");
  int64_t n = ops_scalar_int(wanted), batch = x->shape.dims[0], classes = x->shape.dims[1];
  TFC_KERNEL_CHECK(n >= 0, "num_samples should be nonnegative, got %lld", (long long)n);
  TFC_KERNEL_CHECK(classes > 0, "num_classes should be positive, got %lld", (long long)classes);
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(batch, n), &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  struct tfc_buffer *scratch = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)classes * sizeof(double), &scratch));
  double *sums = scratch->data; // the running sums of exp(logits - max)
  // A sample takes one double, which is made of two words.
  struct tfc_philox p =
      seeded ? *seeded : tfc_random_reserve(ctx, (uint64_t)(batch * ((n + 3) / 4 * 4) * 2) * RESERVED);
  struct tfc_philox_words words = tfc_philox_words(&p);
  for (int64_t b = 0; b < batch; b++) {
    double total = 0;
    OPS_SWITCH(OPS_REALS, x->dtype, {
      const S *row = (const S *)x->data + b * classes;
      double max = -DBL_MAX;
      for (int64_t j = 0; j < classes; j++) {
        const double v = (double)OPS_GET(row[j]);
        if (isfinite(v) && v > max) max = v;
      }
      for (int64_t j = 0; j < classes; j++) {
        const double v = (double)OPS_GET(row[j]);
        if (isfinite(v)) total += exp(v - max);
        sums[j] = total;
      }
    })
    for (int64_t i = 0; i < n; i++) {
      uint32_t x0 = tfc_philox_word(&words), x1 = tfc_philox_word(&words);
      double find = tfc_bits_to_double(x0, x1) * total;
      int64_t lo = 0, hi = classes; // find the first sum above it
      while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (sums[mid] > find)
          hi = mid;
        else
          lo = mid + 1;
      }
      if (type == TFC_INT32)
        ((int32_t *)y->data)[b * n + i] = (int32_t)lo;
      else
        ((int64_t *)y->data)[b * n + i] = lo;
    }
  }
  tfc_buffer_release(scratch);
  return NULL;
}

static tfc_status multinomial(struct tfc_kernel_ctx *ctx) {
  return sample_classes(ctx, NULL);
}
static tfc_status stateless_multinomial(struct tfc_kernel_ctx *ctx) {
  struct tfc_philox p;
  TFC_RETURN_IF_ERROR(tfc_random_of_seed(ctx->inputs[2], &p));
  return sample_classes(ctx, &p);
}

// Puts the rows of the input into a random order (Fisher and Yates).
static tfc_status shuffle_rows(struct tfc_kernel_ctx *ctx, const struct tfc_philox *seeded) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  if (x->shape.rank == 0 || x->shape.dims[0] <= 1) return tfc_kernel_set_output(ctx, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  int64_t n = x->shape.dims[0], row = tfc_tensor_elements(x) / n;
  struct tfc_buffer *scratch = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * sizeof(int64_t), &scratch));
  int64_t *order = scratch->data;
  struct tfc_philox p = seeded ? *seeded : tfc_random_reserve(ctx, (uint64_t)(n - 1 + 3) / 4);
  struct tfc_philox_words words = tfc_philox_words(&p);
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = 0; i < n - 1; i++) {
    int64_t k = i + tfc_philox_word(&words) % (uint32_t)(n - i), t = order[i];
    order[i] = order[k];
    order[k] = t;
  }
  tfc_status s = NULL;
  size_t size = tfc_dtype_size(x->dtype);
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor view = *x;
    view.shape.dims[0] = 1;
    view.data = (char *)x->data + (size_t)(order[i] * row) * size;
    view.size = (size_t)row * size;
    s = tfc_data_copy(y, i * row, &view);
  }
  tfc_buffer_release(scratch);
  return s;
}

static tfc_status shuffle(struct tfc_kernel_ctx *ctx) {
  return shuffle_rows(ctx, NULL);
}
static tfc_status stateless_shuffle(struct tfc_kernel_ctx *ctx) {
  struct tfc_philox p;
  uint32_t rest;
  TFC_RETURN_IF_ERROR(tfc_random_of_inputs(ctx, &p, &rest));
  return shuffle_rows(ctx, &p);
}

static tfc_status shape_multinomial(struct tfc_shape_ctx *ctx) {
  struct tfc_shape logits, scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &logits));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  const struct tfc_tensor *n = ctx->input_values ? ctx->input_values[1] : NULL;
  ctx->outputs[0] = TFC_SHAPE(logits.dims[0], n ? ops_scalar_int(n) : TFC_DIM_UNKNOWN);
  return NULL;
}
static const struct tfc_op_def random_discrete_rows[] = {
    {.name = "Multinomial",
     .inputs = "logits: T, num_samples: int32",
     .outputs = "output: output_dtype",
     .attrs = "seed: int = 0, seed2: int = 0, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
              "half, uint32, uint64}, output_dtype: {int32, int64} = int64",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 2,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_multinomial,
     .prepare = tfc_random_prepare,
     .kernel = multinomial},
    {.name = "StatelessMultinomial",
     .inputs = "logits: T, num_samples: int32, seed: Tseed",
     .outputs = "output: output_dtype",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}, Tseed: "
              "{int32, int64} = int64, output_dtype: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 6,
     .shape = shape_multinomial,
     .kernel = stateless_multinomial,
     .samples = "float[2,3], int32[]=4, int32[2]=[1,2]"},
    {.name = "RandomShuffle",
     .inputs = "value: T",
     .outputs = "output: T",
     .attrs = "seed: int = 0, seed2: int = 0, T: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = ops_shape_same,
     .prepare = tfc_random_prepare,
     .kernel = shuffle},
    {.name = "StatelessShuffle",
     .inputs = "value: T, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 14,
     .shape = ops_shape_same,
     .kernel = stateless_shuffle},
};
TFC_REGISTER_OPS(random_discrete_rows);
