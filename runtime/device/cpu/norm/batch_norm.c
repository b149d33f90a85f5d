// Fast kernels of FusedBatchNorm and its gradient for float32. What is said here is about channels last; the passes for
// channels first are in channels_first.c.
//
// x is a matrix [rows, channels], divided into blocks of rows that fit into the cache. The mean and the sum of squared
// deviations are computed for each block in float32, and joined in float64 in the order of the blocks (Chan, Golub,
// LeVeque 1979). So memory is read once for the statistics and once more for the result. The division into blocks
// depends on the shape alone.
#include <math.h>
#include <tgmath.h>

#include "runtime/device/cpu/kernels.h"
#include "runtime/device/cpu/norm/pass.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

enum { BLOCK_FLOATS = 16384, FEWEST_ROWS = 16, PIECE_FLOATS = 32768, BLOCK_OF_CHANNEL = 4096 };

struct norm {
  bool training, channels_first;
  double epsilon, factor; // exponential_avg_factor
};

static tfc_status declined(void) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "not covered");
}

enum { GRADIENT = 1 }; // the variant of the gradients' rows

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct tfc_prepare_ctx *base = p->base;
  const bool gradient = p->variant == GRADIENT;
  if (base->input_dtypes[0] != TFC_FLOAT || base->input_dtypes[gradient ? 3 : 1] != TFC_FLOAT) return declined();
  struct norm *n = TFC_ARENA_NEW(base->arena, struct norm);
  if (!n) return tfc_status_no_memory(NULL);
  n->channels_first = tfc_str_starts(tfc_node_attr_string(base->graph, base->node, "data_format", "NHWC"), "NC");
  n->training = tfc_node_attr_bool(base->graph, base->node, "is_training", true);
  n->epsilon = (double)(float)tfc_node_attr_float(base->graph, base->node, "epsilon", 0.0001);
  n->factor = (double)(float)tfc_node_attr_float(base->graph, base->node, "exponential_avg_factor", 1);
  base->state = n;
  return NULL;
}

static tfc_status check_vector(const struct tfc_tensor *t, int64_t channels, const char *what) {
  TFC_KERNEL_CHECK(t->shape.rank == 1 && t->shape.dims[0] == channels,
                   "%s must be a vector with as many elements as x has channels (%lld), but is %s", what,
                   (long long)channels, tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

// --- Passes ------------------------------------------------------------------------------------------------------
static int64_t channels_of(const struct norm *n, const struct tfc_shape *x) {
  return x->dims[n->channels_first ? 1 : x->rank - 1];
}

static struct tfc_norm_pass pass_of(const struct norm *n, const struct tfc_tensor *x) {
  struct tfc_norm_pass p = {.x = x->data, .channels = channels_of(n, &x->shape), .inner = 1};
  p.rows = tfc_tensor_elements(x) / p.channels;
  p.block = n->channels_first ? BLOCK_OF_CHANNEL : BLOCK_FLOATS / p.channels;
  for (int d = 2; n->channels_first && d < x->shape.rank; d++) p.inner *= x->shape.dims[d];
  if (p.block < FEWEST_ROWS) p.block = FEWEST_ROWS;
  p.blocks = (p.rows + p.block - 1) / p.block;
  return p;
}

// The sums of 16 to 64 columns are kept in registers over all rows of a block; the columns after the last multiple of
// 16 are summed one by one. `V` vectors of columns are summed together. Each has `R` partial sums for different rows,
// because an addition takes several cycles and the next one must not wait for it.
typedef float lanes __attribute__((vector_size(64), aligned(4)));
enum { LANES = 16 };
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

static inline __attribute__((always_inline)) void moments_of(int V, int R, const float *x, int64_t c, int64_t rows,
                                                             float *mean, float *squares) {
  lanes sum[8], center[4];
  int64_t r = 0;
  EACH(k, V * R) sum[k] = (lanes){0};
  for (; r + R <= rows; r += R) EACH(k, V * R) sum[k] += *(const lanes *)(x + (r + k / V) * c + k % V * LANES);
  for (; r < rows; r++) EACH(k, V) sum[k] += *(const lanes *)(x + r * c + k * LANES);
  EACH(k, V * (R - 1)) sum[k % V] += sum[V + k];
  EACH(k, V) * (lanes *)(mean + k * LANES) = center[k] = sum[k] * (1.0f / (float)rows);
  EACH(k, V * R) sum[k] = (lanes){0};
  for (r = 0; r + R <= rows; r += R) EACH(k, V * R) {
      const lanes d = *(const lanes *)(x + (r + k / V) * c + k % V * LANES) - center[k % V];
      sum[k] += d * d;
    }
  for (; r < rows; r++) EACH(k, V) {
      const lanes d = *(const lanes *)(x + r * c + k * LANES) - center[k];
      sum[k] += d * d;
    }
  EACH(k, V * (R - 1)) sum[k % V] += sum[V + k];
  EACH(k, V) * (lanes *)(squares + k * LANES) = sum[k];
}

// Computes the mean and the sum of squared deviations of each block.
OPS_CLONES static void moments(void *arg, int64_t begin, int64_t end) {
  const struct tfc_norm_pass *p = arg;
  const int64_t c = p->channels;
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = b * p->block, rows = first + p->block < p->rows ? p->block : p->rows - first;
    const float *x = p->x + first * c;
    float *mean = p->sums + 2 * b * c, *squares = mean + c;
    int64_t k = 0;
    for (; k + 4 * LANES <= c; k += 4 * LANES) moments_of(4, 2, x + k, c, rows, mean + k, squares + k);
    for (; k + 2 * LANES <= c; k += 2 * LANES) moments_of(2, 4, x + k, c, rows, mean + k, squares + k);
    for (; k + LANES <= c; k += LANES) moments_of(1, 4, x + k, c, rows, mean + k, squares + k);
    for (; k < c; k++) {
      float sum = 0, square = 0;
      for (int64_t r = 0; r < rows; r++) sum += x[r * c + k];
      mean[k] = sum * (1.0f / (float)rows);
      for (int64_t r = 0; r < rows; r++) {
        const float d = x[r * c + k] - mean[k];
        square += d * d;
      }
      squares[k] = square;
    }
  }
}

// y = (x - mean) * scale + shift
OPS_CLONES static void normalise(void *arg, int64_t begin, int64_t end) {
  const struct tfc_norm_pass *p = arg;
  const int64_t c = p->channels;
  const float *restrict mean = p->mean, *restrict scale = p->scale, *restrict shift = p->shift;
  for (int64_t r = begin; r < end; r++) {
    const float *x = p->x + r * c;
    float *y = p->y + r * c; // may be x
    for (int64_t k = 0; k < c; k++) y[k] = (x[k] - mean[k]) * scale[k] + shift[k];
  }
}

static inline __attribute__((always_inline)) void products_of(int V, int R, const float *x, const float *dy, int64_t c,
                                                              int64_t rows, const float *mean, float *sums,
                                                              float *products) {
  lanes sum[4], product[4], center[4];
  int64_t r = 0;
  EACH(k, V * R) sum[k] = product[k] = (lanes){0};
  EACH(k, V) center[k] = *(const lanes *)(mean + k * LANES);
  for (; r + R <= rows; r += R) EACH(k, V * R) {
      const int64_t at = (r + k / V) * c + k % V * LANES;
      const lanes d = *(const lanes *)(dy + at);
      sum[k] += d;
      product[k] += d * (*(const lanes *)(x + at) - center[k % V]);
    }
  for (; r < rows; r++) EACH(k, V) {
      const lanes d = *(const lanes *)(dy + r * c + k * LANES);
      sum[k] += d;
      product[k] += d * (*(const lanes *)(x + r * c + k * LANES) - center[k]);
    }
  EACH(k, V * (R - 1)) sum[k % V] += sum[V + k], product[k % V] += product[V + k];
  EACH(k, V) * (lanes *)(sums + k * LANES) = sum[k], *(lanes *)(products + k * LANES) = product[k];
}

// Computes the sums of dy and of dy * (x - mean) of each block.
OPS_CLONES static void products(void *arg, int64_t begin, int64_t end) {
  const struct tfc_norm_pass *p = arg;
  const int64_t c = p->channels;
  const float *mean = p->mean;
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = b * p->block, rows = first + p->block < p->rows ? p->block : p->rows - first;
    const float *x = p->x + first * c, *dy = p->dy + first * c;
    float *sum = p->sums + 2 * b * c, *product = sum + c;
    int64_t k = 0;
    for (; k + 4 * LANES <= c; k += 4 * LANES)
      products_of(4, 1, x + k, dy + k, c, rows, mean + k, sum + k, product + k);
    for (; k + 2 * LANES <= c; k += 2 * LANES)
      products_of(2, 2, x + k, dy + k, c, rows, mean + k, sum + k, product + k);
    for (; k + LANES <= c; k += LANES) products_of(1, 4, x + k, dy + k, c, rows, mean + k, sum + k, product + k);
    for (; k < c; k++) {
      float total = 0, weighted = 0;
      for (int64_t r = 0; r < rows; r++) {
        total += dy[r * c + k];
        weighted += dy[r * c + k] * (x[r * c + k] - mean[k]);
      }
      sum[k] = total, product[k] = weighted;
    }
  }
}

// dx = scale (dy - less - (x - mean) slope)
OPS_CLONES static void differentiate(void *arg, int64_t begin, int64_t end) {
  const struct tfc_norm_pass *p = arg;
  const int64_t c = p->channels;
  const float *restrict mean = p->mean, *restrict scale = p->scale;
  const float *restrict less = p->less, *restrict slope = p->slope;
  for (int64_t r = begin; r < end; r++) {
    const float *x = p->x + r * c, *dy = p->dy + r * c;
    float *dx = p->y + r * c; // may be x or dy
    for (int64_t k = 0; k < c; k++) dx[k] = scale[k] * (dy[k] - less[k] - (x[k] - mean[k]) * slope[k]);
  }
}

// dx = scale dy
OPS_CLONES static void scale_only(void *arg, int64_t begin, int64_t end) {
  const struct tfc_norm_pass *p = arg;
  const int64_t c = p->channels;
  const float *restrict scale = p->scale;
  for (int64_t r = begin; r < end; r++) {
    const float *dy = p->dy + r * c;
    float *dx = p->y + r * c; // may be dy
    for (int64_t k = 0; k < c; k++) dx[k] = scale[k] * dy[k];
  }
}

// Channels first: how many channels a call takes, and how many of these go through all passes before the next ones.
enum { CHANNELS_TOGETHER = 16 };
static int64_t channels_per_call(const struct tfc_norm_pass *p) {
  return (PIECE_FLOATS / p->rows / CHANNELS_TOGETHER + 1) * CHANNELS_TOGETHER;
}

static void each_row(struct tfc_kernel_ctx *ctx, struct tfc_norm_pass *p,
                     void (*rows)(void *arg, int64_t begin, int64_t end)) {
  tfc_kernel_parallel_for(ctx, p->rows, PIECE_FLOATS / p->channels + 1, rows, p);
}

// --- Statistics of channels --------------------------------------------------------------------------------------
enum { CHANNELS = 64 }; // so many channels are combined together, block after block
static int64_t channels_at_once(const struct tfc_norm_pass *p) {
  return (8192 / p->blocks / CHANNELS + 1) * CHANNELS;
}

// Combines the blocks' means and sums of squared deviations, for `count` channels from `k` on.
OPS_CLONES static void join_moments(const struct tfc_norm_pass *p, int64_t k, int64_t count, double *restrict mean,
                                    double *restrict squares) {
  double rows = 0;
  for (int64_t i = 0; i < count; i++) mean[i] = squares[i] = 0;
  for (int64_t b = 0; b < p->blocks; b++) {
    const double more = (double)((b + 1) * p->block < p->rows ? p->block : p->rows - b * p->block), all = rows + more;
    const float *restrict means = p->sums + 2 * b * p->channels + k, *restrict deviations = means + p->channels;
    for (int64_t i = 0; i < count; i++) {
      const double d = (double)means[i] - mean[i];
      mean[i] += d * more / all;
      squares[i] += (double)deviations[i] + d * d * rows * more / all;
    }
    rows = all;
  }
}

OPS_CLONES static void join_sums(const struct tfc_norm_pass *p, int64_t k, int64_t count, double *restrict sum,
                                 double *restrict product) {
  for (int64_t i = 0; i < count; i++) sum[i] = product[i] = 0;
  for (int64_t b = 0; b < p->blocks; b++) {
    const float *restrict sums = p->sums + 2 * b * p->channels + k, *restrict products = sums + p->channels;
    for (int64_t i = 0; i < count; i++) sum[i] += (double)sums[i], product[i] += (double)products[i];
  }
}

// --- Forward -----------------------------------------------------------------------------------------------------
struct forward {
  const struct norm *norm;
  const struct tfc_norm_pass *pass;
  const float *scale, *old_mean, *old_variance;
  float *mean, *variance, *saved_mean, *saved_variance; // outputs
  float *center, *factor;
};
static void finish_forward(void *arg, int64_t begin, int64_t end) {
  const struct forward *f = arg;
  const struct norm *n = f->norm;
  const double count = (double)f->pass->rows, weight = n->factor;
  double means[CHANNELS], squares[CHANNELS];
  for (int64_t first = begin; first < end; first += CHANNELS) {
    const int64_t here = end - first < CHANNELS ? end - first : CHANNELS;
    if (n->training) join_moments(f->pass, first, here, means, squares);
    for (int64_t i = 0, k = first; i < here; i++, k++) {
      double mean, variance;
      if (n->training) {
        mean = means[i], variance = squares[i] / count;
        const double unbiased = count > 1 ? squares[i] / (count - 1) : variance;
        f->saved_mean[k] = (float)mean, f->saved_variance[k] = (float)variance;
        f->mean[k] = (float)(weight == 1 ? mean : (1 - weight) * (double)f->old_mean[k] + weight * mean);
        f->variance[k] =
            (float)(weight == 1 ? unbiased : (1 - weight) * (double)f->old_variance[k] + weight * unbiased);
      } else {
        mean = (double)f->old_mean[k], variance = (double)f->old_variance[k];
        f->mean[k] = f->saved_mean[k] = f->old_mean[k], f->variance[k] = f->saved_variance[k] = f->old_variance[k];
      }
      f->center[k] = (float)mean;
      f->factor[k] = (float)((double)f->scale[k] / sqrt(variance + n->epsilon));
    }
  }
}

static void forward_channels(void *arg, int64_t begin, int64_t end) {
  struct forward *f = arg;
  for (int64_t first = begin; first < end; first += CHANNELS_TOGETHER) {
    const int64_t last = first + CHANNELS_TOGETHER < end ? first + CHANNELS_TOGETHER : end;
    if (f->norm->training) tfc_norm_moments(f->pass, first, last);
    finish_forward(f, first, last);
    tfc_norm_apply(f->pass, first, last);
  }
}

// Inputs: x, scale, offset, mean, variance. Outputs: y, batch_mean, batch_variance, reserve_space_1, reserve_space_2,
// in V3 also reserve_space_3.
static tfc_status batch_norm(struct tfc_kernel_ctx *ctx) {
  const struct norm *n = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_KERNEL_CHECK(x->shape.rank == 4 || x->shape.rank == 5, "input must be 4 or 5-dimensional: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t c = channels_of(n, &x->shape);
  struct tfc_tensor *y = NULL, *stats[4], *third = NULL;
  struct tfc_buffer *scratch = NULL;
  tfc_status s = NULL;
  bool running = !n->training || n->factor != 1;
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[1], c, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[2], c, "offset"));
  for (uint32_t i = 3; i < 5; i++) {
    const char *what = i == 3 ? "mean" : "variance";
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1, "estimated_%s must be 1-dimensional", what);
    if (running) TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[i], c, what));
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (uint32_t i = 0; i < 4; i++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i + 1, TFC_FLOAT, &TFC_SHAPE(c), &stats[i]));
  if (ctx->output_count > 5) { // reserve_space_3: only cuDNN stores something here for the gradient; here it is a 0
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 5, TFC_FLOAT, &TFC_SHAPE_SCALAR, &third));
    *(float *)third->data = 0;
  }
  if (tfc_tensor_elements(x) == 0) {
    for (int i = 0; i < 4; i++)
      for (int64_t k = 0; k < c; k++) ((float *)stats[i]->data)[k] = NAN;
    return NULL;
  }
  struct tfc_norm_pass p = pass_of(n, x);
  const float *scale = ctx->inputs[1]->data, *old_mean = ctx->inputs[3]->data, *old_variance = ctx->inputs[4]->data;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(2 * p.blocks * c + 2 * c) * sizeof(float), &scratch));
  float *center = scratch->data, *factor = center + c;
  p.y = y->data, p.sums = factor + c;
  p.mean = center, p.scale = factor, p.shift = ctx->inputs[2]->data;
  struct forward f = {
      n,      &p,    scale, old_mean, old_variance, stats[0]->data, stats[1]->data, stats[2]->data, stats[3]->data,
      center, factor};
  if (n->channels_first) {
    tfc_kernel_parallel_for(ctx, c, channels_per_call(&p), forward_channels, &f);
    goto out;
  }
  if (n->training) tfc_kernel_parallel_for(ctx, p.blocks, 1, moments, &p);
  tfc_kernel_parallel_for(ctx, c, channels_at_once(&p), finish_forward, &f);
  each_row(ctx, &p, normalise);
out:
  tfc_buffer_release(scratch);
  return s;
}

// --- Backward ----------------------------------------------------------------------------------------------------
// Inputs: dy, x, scale, reserve_space_1, reserve_space_2, in V3 also reserve_space_3. Outputs: dx, dscale, doffset, and
// two that are not used. With r = 1 / sqrt(variance + epsilon) and centered = x - mean: dscale = sum(dy centered) r,
// doffset = sum(dy), training: dx = scale r (dy - mean(dy) - centered r^2 mean(dy centered)); else dx = dy scale r.
struct backward {
  const struct norm *norm;
  const struct tfc_norm_pass *pass;
  const float *scale, *variance;
  float *dscale, *doffset; // outputs
  float *factor, *less, *slope;
};
static void finish_backward(void *arg, int64_t begin, int64_t end) {
  const struct backward *f = arg;
  const bool training = f->norm->training;
  const double all = (double)f->pass->rows;
  double sum[CHANNELS], product[CHANNELS];
  for (int64_t first = begin; first < end; first += CHANNELS) {
    const int64_t here = end - first < CHANNELS ? end - first : CHANNELS;
    join_sums(f->pass, first, here, sum, product);
    for (int64_t i = 0, k = first; i < here; i++, k++) {
      const double r = 1 / sqrt((double)f->variance[k] + f->norm->epsilon);
      f->dscale[k] = (float)(product[i] * r);
      f->doffset[k] = (float)sum[i];
      f->factor[k] = (float)((double)f->scale[k] * r);
      f->less[k] = training ? (float)(sum[i] / all) : 0;
      f->slope[k] = training ? (float)(r * r * product[i] / all) : 0;
    }
  }
}

static void backward_channels(void *arg, int64_t begin, int64_t end) {
  struct backward *b = arg;
  for (int64_t first = begin; first < end; first += CHANNELS_TOGETHER) {
    const int64_t last = first + CHANNELS_TOGETHER < end ? first + CHANNELS_TOGETHER : end;
    tfc_norm_products(b->pass, first, last);
    finish_backward(b, first, last);
    tfc_norm_differentiate(b->pass, b->norm->training, first, last);
  }
}

static tfc_status batch_norm_grad(struct tfc_kernel_ctx *ctx) {
  const struct norm *n = ctx->state;
  const struct tfc_tensor *dy = ctx->inputs[0], *x = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 4 || x->shape.rank == 5, "input must be 4 or 5-dimensional: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(tfc_shape_equal(&dy->shape, &x->shape), "x and y_backprop must have same shape");
  int64_t c = channels_of(n, &x->shape);
  struct tfc_tensor *dx = NULL, *dscale = NULL, *doffset = NULL, *rest = NULL;
  struct tfc_buffer *scratch = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[2], c, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[3], c, "reserve_space_1"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[4], c, "reserve_space_2"));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &dx));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_FLOAT, &TFC_SHAPE(c), &dscale));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_FLOAT, &TFC_SHAPE(c), &doffset));
  for (uint32_t i = 3; i < 5; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, TFC_FLOAT, &TFC_SHAPE(0), &rest));
  if (tfc_tensor_elements(x) == 0) {
    memset(dscale->data, 0, dscale->size);
    memset(doffset->data, 0, doffset->size);
    return NULL;
  }
  struct tfc_norm_pass p = pass_of(n, x);
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(2 * p.blocks * c + 3 * c) * sizeof(float), &scratch));
  float *factor = scratch->data, *less = factor + c, *slope = less + c;
  const float *scale = ctx->inputs[2]->data, *variance = ctx->inputs[4]->data;
  p.dy = dy->data, p.y = dx->data, p.mean = ctx->inputs[3]->data;
  p.sums = slope + c;
  p.scale = factor, p.less = less, p.slope = slope;
  struct backward b = {n, &p, scale, variance, dscale->data, doffset->data, factor, less, slope};
  if (n->channels_first) {
    tfc_kernel_parallel_for(ctx, c, channels_per_call(&p), backward_channels, &b);
    goto out;
  }
  tfc_kernel_parallel_for(ctx, p.blocks, 1, products, &p);
  tfc_kernel_parallel_for(ctx, c, channels_at_once(&p), finish_backward, &b);
  each_row(ctx, &p, n->training ? differentiate : scale_only);
out:
  tfc_buffer_release(scratch);
  return s;
}

static const struct tfc_cpu_kernel rows[] = {
    {"FusedBatchNorm", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm, 0},
    {"FusedBatchNormV2", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm, 0},
    {"FusedBatchNormV3", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm, 0},
    {"FusedBatchNormGrad", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm_grad, GRADIENT},
    {"FusedBatchNormGradV2", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm_grad, GRADIENT},
    {"FusedBatchNormGradV3", TFC_TYPE_BIT(TFC_FLOAT), prepare, batch_norm_grad, GRADIENT},
};
TFC_CPU_KERNELS(rows);
