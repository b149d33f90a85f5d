// Fourier transforms over the last one, two or three dimensions: FFT, IFFT, RFFT, IRFFT and their 2D and 3D forms.
//
// A line of n elements is split by n's prime factors (Cooley and Tukey 1965); one with a prime factor over 64 becomes a
// convolution of a length that is a power of two (Bluestein 1970). Computed in complex128, rounded once; lines of
// float32 whose length is a power of two in float32, several at a time (signal_fft_lines.h).
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/signal_fft_lines.h"

typedef double _Complex cplx;

enum { LARGEST_FACTOR = 64 };

struct plan {
  int64_t n;
  bool convolve;  // use Bluestein's method
  int64_t padded; // length of the convolution, a power of two
  cplx *roots;    // [n] e^(-2 pi i k / n)
  cplx *chirp;    // [n] e^(-pi i k^2 / n)
  cplx *kernel;   // [padded], already transformed
  cplx *work;     // [n] or [2 padded]
  struct plan *inner;
};

static void plan_free(struct plan *p) {
  if (!p) return;
  free(p->roots);
  free(p->chirp);
  free(p->kernel);
  free(p->work);
  plan_free(p->inner);
  free(p);
}

static cplx root(int64_t k, int64_t n) { // e^(-2 pi i k / n)
  double angle = -2 * M_PI * (double)k / (double)n;
  return CMPLX(cos(angle), sin(angle));
}

static int64_t smallest_factor(int64_t n) {
  for (int64_t f = 2; f * f <= n; f++)
    if (n % f == 0) return f;
  return n;
}

// out[k] = sum over j of in[j * step] w^(jk) for k < n, where w is the root of order n: every `at`-th of the plan's
// roots.
static void transform(const struct plan *p, const cplx *in, int64_t step, cplx *out, int64_t n) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  int64_t f = smallest_factor(n), m = n / f, at = p->n / n; // roots of order n are every at-th root
  for (int64_t r = 0; r < f; r++) transform(p, in + r * step, step * f, out + r * m, m);
  cplx part[LARGEST_FACTOR];
  for (int64_t k = 0; k < m; k++) {
    for (int64_t r = 0; r < f; r++) part[r] = out[r * m + k] * p->roots[r * k * at];
    if (f == 2) {
      out[k] = part[0] + part[1];
      out[m + k] = part[0] - part[1];
      continue;
    }
    for (int64_t q = 0; q < f; q++) {
      cplx sum = part[0];
      for (int64_t r = 1; r < f; r++) sum += part[r] * p->roots[(r * q % f) * (p->n / f)];
      out[q * m + k] = sum;
    }
  }
}

static void run(struct plan *p, cplx *line); // transforms in place, forward
static tfc_status plan_make(int64_t n, struct plan **out) {
  tfc_status s = NULL;
  struct plan *p = calloc(1, sizeof *p);
  if (!p) TFC_TRY(s, tfc_status_no_memory(NULL));
  p->n = n;
  int64_t rest = n;
  while (rest > 1 && smallest_factor(rest) <= LARGEST_FACTOR) rest /= smallest_factor(rest);
  p->convolve = rest > 1;
  for (p->padded = 1; p->padded < 2 * n; p->padded *= 2) {
  }
  p->roots = malloc((size_t)n * sizeof(cplx));
  p->work = malloc((size_t)(p->convolve ? p->padded : n) * sizeof(cplx));
  if (!p->roots || !p->work) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t k = 0; k < n; k++) p->roots[k] = root(k, n);
  if (p->convolve) {
    p->chirp = malloc((size_t)n * sizeof(cplx));
    p->kernel = calloc((size_t)p->padded, sizeof(cplx));
    if (!p->chirp || !p->kernel) TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, plan_make(p->padded, &p->inner));
    for (int64_t k = 0; k < n; k++) p->chirp[k] = root((int64_t)((__int128)k * k % (2 * n)), 2 * n);
    p->kernel[0] = 1;
    for (int64_t k = 1; k < n; k++) p->kernel[k] = p->kernel[p->padded - k] = conj(p->chirp[k]);
    run(p->inner, p->kernel);
  }
  *out = p;
  return NULL;
out:
  plan_free(p);
  return s;
}

static void run(struct plan *p, cplx *line) {
  if (p->n <= 1) return;
  if (!p->convolve) {
    memcpy(p->work, line, (size_t)p->n * sizeof(cplx));
    transform(p, p->work, 1, line, p->n);
    return;
  }
  cplx *w = p->work;
  memset(w, 0, (size_t)p->padded * sizeof(cplx));
  for (int64_t k = 0; k < p->n; k++) w[k] = line[k] * p->chirp[k];
  run(p->inner, w);
  // Conjugation makes the forward transform the inverse one.
  for (int64_t k = 0; k < p->padded; k++) w[k] = conj(w[k] * p->kernel[k]);
  run(p->inner, w);
  for (int64_t k = 0; k < p->n; k++) line[k] = conj(w[k]) / (double)p->padded * p->chirp[k];
}

// --- Kernels ---------------------------------------------------------------------------------------------------------
struct fft_state {
  int rank;
  bool real, inverse;
  int64_t length;              // of the lines that `lines` is for
  struct ops_fft_lines *lines; // NULL: made when it runs, or lines of which several at a time are not computed
};
static enum ops_fft kind_of(const struct fft_state *state) {
  if (state->real) return state->inverse ? OPS_FFT_REAL_INVERSE : OPS_FFT_REAL;
  return state->inverse ? OPS_FFT_INVERSE : OPS_FFT_FORWARD;
}
static void release(void *state) {
  free(((struct fft_state *)state)->lines);
}
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct fft_state, state);
  const char *name = ctx->def->name;
  state->inverse = strstr(name, "IFFT") || strstr(name, "IRFFT");
  state->real = strstr(name, "RFFT") != NULL;
  state->rank = strstr(name, "2D") ? 2 : strstr(name, "3D") ? 3 : 1;
  const struct tfc_shape *x = &ctx->input_shapes[0];
  const struct tfc_tensor *given = state->real && ctx->input_values ? ctx->input_values[1] : NULL;
  int64_t n = -1;
  if (given && tfc_tensor_elements(given) == 1) n = *(const int32_t *)given->data;
  if (!state->real && x->rank > 0 && tfc_dim_known(x->dims[x->rank - 1])) n = x->dims[x->rank - 1];
  if (state->rank != 1 || !ops_fft_lines_suit(n)) return NULL;
  state->length = n;
  state->lines = ops_fft_lines_create(kind_of(state), n);
  ctx->release = release;
  return state->lines ? NULL : tfc_status_no_memory(NULL);
}

// Transforms x [outer, n, inner] along n, in place.
static tfc_status along(struct plan *p, cplx *x, int64_t outer, int64_t n, int64_t inner, bool inverse, cplx *line) {
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      cplx *at = x + o * n * inner + i;
      for (int64_t k = 0; k < n; k++) line[k] = inverse ? conj(at[k * inner]) : at[k * inner];
      run(p, line);
      for (int64_t k = 0; k < n; k++) at[k * inner] = inverse ? conj(line[k]) / (double)n : line[k];
    }
  return NULL;
}

// Transforms every dimension of x, one block with `rank` sizes.
static tfc_status block(struct plan *const *plans, int rank, const int64_t *sizes, cplx *x, bool inverse, cplx *line) {
  int64_t total = 1, inner = 1;
  for (int d = 0; d < rank; d++) total *= sizes[d];
  for (int d = rank - 1; d >= 0; d--) {
    TFC_RETURN_IF_ERROR(along(plans[d], x, total / sizes[d] / inner, sizes[d], inner, inverse, line));
    inner *= sizes[d];
  }
  return NULL;
}

// Copies the part `to` of a block with dimensions `from`, element by element; an element has `wide` doubles.
static void cut(const double *src, const int64_t *from, double *dst, const int64_t *to, int rank, int wide) {
  int64_t rows = 1;
  for (int d = 0; d < rank - 1; d++) rows *= to[d];
  for (int64_t r = 0; r < rows; r++) {
    int64_t rest = r, at = 0, step = from[rank - 1];
    for (int d = rank - 2; d >= 0; d--) {
      at += rest % to[d] * step;
      rest /= to[d];
      step *= from[d];
    }
    memcpy(dst + r * to[rank - 1] * wide, src + at * wide, (size_t)(to[rank - 1] * wide) * sizeof(double));
  }
}

static tfc_status fft(struct tfc_kernel_ctx *ctx) {
  const struct fft_state *state = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct tfc_shape *s = &x->shape;
  struct tfc_shape shape = *s;
  struct tfc_tensor *y = NULL;
  struct plan *plans[3] = {NULL, NULL, NULL};
  struct tfc_buffer *held = NULL;
  tfc_status status = NULL;
  int rank = state->rank, first = s->rank - rank;
  int64_t sizes[3], from[3], half[3]; // sizes of the transform, of the input's block, and of the half that is stored
  tfc_dtype wanted = ctx->graph->output_dtypes[ctx->node->output_begin];
  bool wide_in = x->dtype == TFC_DOUBLE || x->dtype == TFC_COMPLEX128,
       wide_out = wanted == TFC_DOUBLE || wanted == TFC_COMPLEX128;
  TFC_KERNEL_CHECK(wide_in == wide_out, "Wrong types for %s real FFT: in=%s out=%s",
                   state->inverse ? "backward" : "forward", tfc_dtype_name(x->dtype), tfc_dtype_name(wanted));
  TFC_KERNEL_CHECK(s->rank >= rank, "Input must have rank of at least %d but got: %d", rank, s->rank);
  for (int d = 0; d < rank; d++) sizes[d] = from[d] = s->dims[first + d];
  if (state->real) {
    const struct tfc_tensor *length = ctx->inputs[1];
    TFC_KERNEL_CHECK(length->shape.rank == 1 && length->shape.dims[0] == rank, "fft_length must have shape [%d]", rank);
    for (int d = 0; d < rank; d++) {
      int64_t n = sizes[d] = ((const int32_t *)length->data)[d];
      TFC_KERNEL_CHECK(n >= 0, "fft_length[%d] must >= 0, but got: %lld", d, (long long)n);
      int64_t needed = state->inverse && d == rank - 1 ? n / 2 + 1 : n;
      if (n == 0 && d == rank - 1) needed = 0;
      TFC_KERNEL_CHECK(from[d] == 0 || from[d] >= needed,
                       "Input dimension %d must have length of at least %lld but got: %lld", first + d,
                       (long long)needed, (long long)from[d]);
    }
  }
  int64_t outer = 1, read = 1; // how many lines the last dimension has; how many elements are read
  for (int d = 0; d < s->rank; d++) {
    read *= s->dims[d];
    if (d < s->rank - 1) outer *= state->inverse && d >= first ? sizes[d - first] : s->dims[d];
  }
  TFC_KERNEL_CHECK(!state->real || sizes[rank - 1] > 0 || read == 0 || outer == 0, "no zero-sized FFTs");
  memcpy(half, sizes, sizeof half);
  if (state->real && sizes[rank - 1] > 0) half[rank - 1] = sizes[rank - 1] / 2 + 1;
  int64_t batches = 1, in_block = 1, full = 1, half_block = 1, longest = 1;
  for (int d = 0; d < first; d++) batches *= s->dims[d];
  for (int d = 0; d < rank; d++) {
    shape.dims[first + d] = state->real && !state->inverse ? half[d] : sizes[d];
    in_block *= from[d], half_block *= half[d];
    if (__builtin_mul_overflow(full, sizes[d], &full) || full > INT64_MAX / 64)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "fft_length is too large");
    if (sizes[d] > longest) longest = sizes[d];
  }
  tfc_dtype out = x->dtype;
  if (state->real) {
    bool narrow = out == TFC_FLOAT || out == TFC_COMPLEX64;
    out = state->inverse ? narrow ? TFC_FLOAT : TFC_DOUBLE : narrow ? TFC_COMPLEX64 : TFC_COMPLEX128;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, out, &shape, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  if (batches * in_block == 0) {
    ops_fill_zero(y);
    return NULL;
  }
  if (rank == 1 && !wide_in && ops_fft_lines_suit(sizes[0])) {
    const bool kept = state->lines && state->length == sizes[0];
    struct ops_fft_lines *lines = kept ? state->lines : ops_fft_lines_create(kind_of(state), sizes[0]);
    if (!lines) return tfc_status_no_memory(NULL);
    status = ops_fft_lines_run(ctx, lines, x->data, from[0] * (x->dtype == TFC_FLOAT ? 1 : 2), batches, y->data);
    if (!kept) free(lines);
    return status;
  }
  for (int d = 0; d < rank; d++) TFC_TRY(status, plan_make(sizes[d], &plans[d]));
  TFC_TRY(status, tfc_kernel_scratch(ctx, (size_t)(in_block + 2 * full + half_block + longest) * sizeof(cplx), &held));
  cplx *input = held->data, *spectrum = input + in_block, *other = spectrum + full, *line = other + full + half_block;
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_widen(x, b * in_block, in_block, input);
    if (!state->real) {
      TFC_TRY(status, block(plans, rank, sizes, input, state->inverse, line));
      ops_linalg_narrow(input, y, b * full, full);
    } else if (!state->inverse) {
      cut((double *)input, from, (double *)other, sizes, rank, 1);
      for (int64_t i = 0; i < full; i++) spectrum[i] = ((double *)other)[i];
      TFC_TRY(status, block(plans, rank, sizes, spectrum, false, line));
      cut((double *)spectrum, sizes, (double *)other, half, rank, 2);
      ops_linalg_narrow(other, y, b * half_block, half_block);
    } else {
      cut((double *)input, from, (double *)other, half, rank, 2);
      int64_t n = sizes[rank - 1], h = half[rank - 1], rows = half_block / h;
      // First all dimensions but the last are transformed, for the half that is stored; then the other half of the last
      // one is filled in by symmetry.
      int64_t inner = h;
      for (int d = rank - 2; d >= 0; d--) {
        TFC_TRY(status, along(plans[d], other, half_block / sizes[d] / inner, sizes[d], inner, true, line));
        inner *= sizes[d];
      }
      for (int64_t r = 0; r < rows; r++) {
        cplx *to = spectrum + r * n;
        for (int64_t k = 0; k < n; k++) to[k] = k < h ? other[r * h + k] : conj(other[r * h + n - k]);
      }
      TFC_TRY(status, along(plans[rank - 1], spectrum, rows, n, 1, true, line));
      for (int64_t i = 0; i < full; i++) ((double *)other)[i] = creal(spectrum[i]);
      ops_linalg_narrow(other, y, b * full, full);
    }
  }
out:
  for (int d = 0; d < rank; d++) plan_free(plans[d]);
  tfc_buffer_release(held);
  return status;
}

// --- Shapes and costs ------------------------------------------------------------------------------------------------
static int rank_of(const struct tfc_node *n) {
  return tfc_str_ends(n->op, "2D") ? 2 : tfc_str_ends(n->op, "3D") ? 3 : 1;
}
static tfc_status shape_fft(struct tfc_shape_ctx *ctx) {
  return ops_with_rank_at_least(ctx, 0, rank_of(ctx->node), &ctx->outputs[0]);
}
static tfc_status real_shape(struct tfc_shape_ctx *ctx, bool forward) {
  int rank = rank_of(ctx->node), count = 0;
  int64_t sizes[3];
  struct tfc_shape s;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, rank, &s));
  if (s.rank < 0) return NULL;
  if (ops_known_ints(ctx, 1, sizes, 3, &count)) {
    if (count != rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "fft_length must have shape [%d]", rank);
    if (forward && sizes[rank - 1] > 0) sizes[rank - 1] = sizes[rank - 1] / 2 + 1;
    for (int d = 0; d < rank; d++) s.dims[s.rank - rank + d] = sizes[d];
  } else {
    for (int d = 0; d < rank; d++) s.dims[s.rank - rank + d] = TFC_DIM_UNKNOWN;
  }
  ctx->outputs[0] = s;
  return NULL;
}
static tfc_status shape_rfft(struct tfc_shape_ctx *ctx) {
  return real_shape(ctx, true);
}
static tfc_status shape_irfft(struct tfc_shape_ctx *ctx) {
  return real_shape(ctx, false);
}
static void cost_fft(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  double size = 1;
  for (int d = 0, rank = rank_of(n); d < rank && d < inputs->rank; d++)
    size *= (double)inputs->dims[inputs->rank - 1 - d];
  out->flops = 5 * (double)tfc_shape_elements(inputs) * log2(size > 2 ? size : 2);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// --- Gradients -------------------------------------------------------------------------------------------------------
// The number of elements in the transformed block of x, in its real type.
static struct tfc_output block_size(const struct tfc_grad_ctx *g, struct tfc_output x, int rank, tfc_dtype type) {
  struct tfc_output sizes = grad_range(g, grad_op1(g, "Shape", x), -rank, INT64_MAX);
  return grad_cast(g, grad_op2(g, "Prod", sizes, tfc_add_i32(g->builder, 0)), type);
}
static tfc_dtype real_of(tfc_dtype t) {
  return t == TFC_COMPLEX64 ? TFC_FLOAT : TFC_DOUBLE;
}
static tfc_status complex_gradient(struct tfc_grad_ctx *g, const char *op, int rank, bool inverse) {
  tfc_dtype type = grad_type(g, G);
  struct tfc_output size = block_size(g, G, rank, real_of(type));
  if (inverse) size = g_div(g, tfc_add_scalar(g->builder, real_of(type), 1), size);
  g->grad_inputs[0] = g_mul(g, grad_op1(g, op, G), grad_cast(g, size, type));
  return NULL;
}
OPS_GRADIENT(FFT) {
  return complex_gradient(g, "IFFT", 1, false);
}
OPS_GRADIENT(IFFT) {
  return complex_gradient(g, "FFT", 1, true);
}
OPS_GRADIENT(FFT2D) {
  return complex_gradient(g, "IFFT2D", 2, false);
}
OPS_GRADIENT(IFFT2D) {
  return complex_gradient(g, "FFT2D", 2, true);
}
OPS_GRADIENT(FFT3D) {
  return complex_gradient(g, "IFFT3D", 3, false);
}
OPS_GRADIENT(IFFT3D) {
  return complex_gradient(g, "FFT3D", 3, true);
}

static struct tfc_output real_node(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x,
                                   struct tfc_output length, tfc_dtype real, tfc_dtype bins_type) {
  struct tfc_attr attrs[2] = {tfc_attr_type("Treal", real), tfc_attr_type("Tcomplex", bins_type)};
  return tfc_add(g->builder, op, "", (struct tfc_output[]){x, length}, 2, attrs, 2);
}
// Makes weights [bins]: 1 for the first bin and, if the length is even, for the last; `middle` for the others, which
// also count for their mirrored bins.
static struct tfc_output bin_weights(const struct tfc_grad_ctx *g, struct tfc_output bins, struct tfc_output length,
                                     tfc_dtype real, double middle) {
  struct tfc_builder *b = g->builder;
  struct tfc_output one = tfc_add_i32(b, 1), two = tfc_add_i32(b, 2), vector = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_output odd = grad_op2(g, "FloorMod", grad_item(g, length, -1), two);
  struct tfc_output inside = g_reshape(g, g_add(g, g_sub(g, bins, two), odd), vector);
  struct tfc_output end = g_reshape(g, g_sub(g, one, odd), vector), unit = tfc_add_scalar(b, real, 1);
  struct tfc_output parts[3] = {grad_op2(g, "Fill", vector, unit),
                                grad_op2(g, "Fill", inside, tfc_add_scalar(b, real, middle)),
                                grad_op2(g, "Fill", end, unit)};
  return grad_concat(g, parts, 3, tfc_add_i32(b, 0));
}
// A real transform does not store the mirrored coefficients; only the first one and, for an even length, the last have
// none. So dx = n irfft(dy), in which the coefficients with a mirrored one count half.
static tfc_status rfft_gradient(struct tfc_grad_ctx *g, const char *inverse) {
  struct tfc_builder *b = g->builder;
  tfc_dtype bins_type = grad_type(g, G), real = real_of(bins_type);
  struct tfc_output length = grad_in(g, 1), bins = grad_item(g, grad_op1(g, "Shape", G), -1);
  struct tfc_output mask = bin_weights(g, bins, length, real, 0.5); // irfft doubles the middle ones again
  struct tfc_output dx = real_node(g, inverse, g_mul(g, G, grad_cast(g, mask, bins_type)), length, real, bins_type);
  dx = g_mul(g, dx, grad_cast(g, grad_op2(g, "Prod", length, tfc_add_i32(b, 0)), real));
  // Elements that the transform cut off have gradient 0.
  struct tfc_output after = g_sub(g, grad_op1(g, "Shape", X), grad_op1(g, "Shape", dx));
  struct tfc_output pads[2] = {grad_op1(g, "ZerosLike", after), after};
  g->grad_inputs[0] = grad_op2(g, "Pad", dx, grad_pack(g, pads, 2, 1));
  return NULL;
}
OPS_GRADIENT(RFFT) {
  return rfft_gradient(g, "IRFFT");
}
OPS_GRADIENT(RFFT2D) {
  return rfft_gradient(g, "IRFFT2D");
}

static tfc_status irfft_gradient(struct tfc_grad_ctx *g, const char *forward, int rank) {
  struct tfc_builder *b = g->builder;
  tfc_dtype real = grad_type(g, G), bins_type = real == TFC_FLOAT ? TFC_COMPLEX64 : TFC_COMPLEX128;
  struct tfc_output length = grad_in(g, 1), bins = grad_item(g, grad_op1(g, "Shape", X), -1);
  struct tfc_output mask = bin_weights(g, bins, length, real, 2);
  struct tfc_output scale = g_div(g, tfc_add_scalar(b, real, 1), block_size(g, G, rank, real));
  struct tfc_output dx = real_node(g, forward, G, length, real, bins_type);
  g->grad_inputs[0] = g_mul(g, dx, grad_cast(g, g_mul(g, scale, mask), bins_type));
  return NULL;
}
OPS_GRADIENT(IRFFT) {
  return irfft_gradient(g, "RFFT", 1);
}
OPS_GRADIENT(IRFFT2D) {
  return irfft_gradient(g, "RFFT2D", 2);
}

// --- Rows ------------------------------------------------------------------------------------------------------------
#define REALS (TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE))
#define COMPLEX_ROW(op, shapes)                                                                                        \
  {                                                                                                                    \
    .name = #op, .inputs = "input: Tcomplex", .outputs = "output: Tcomplex",                                           \
    .attrs = "Tcomplex: {complex64, complex128} = complex64",                                                          \
    .types = TFC_TYPE_BIT(TFC_COMPLEX64) | TFC_TYPE_BIT(TFC_COMPLEX128), .shape = shape_fft, .cost = cost_fft,         \
    .prepare = prepare, .kernel = fft, .gradient = gradient_##op, .samples = shapes                                    \
  }
#define REAL_ROW(op, in, out, first, shapes_of, derivative, shapes)                                                    \
  {                                                                                                                    \
    .name = #op, .inputs = "input: " in ", fft_length: int32", .outputs = "output: " out,                              \
    .attrs = "Treal: {float, double} = float, Tcomplex: {complex64, complex128} = complex64", .types = first,          \
    .host_inputs = 1 << 1, .shape = shapes_of, .cost = cost_fft, .prepare = prepare, .kernel = fft,                    \
    .gradient = derivative, .samples = shapes                                                                          \
  }
#define RFFT_ROW(op, derivative, shapes) REAL_ROW(op, "Treal", "Tcomplex", REALS, shape_rfft, derivative, shapes)
#define IRFFT_ROW(op, derivative, shapes) REAL_ROW(op, "Tcomplex", "Treal", REALS, shape_irfft, derivative, shapes)
static const struct tfc_op_def signal_fft_rows[] = {
    COMPLEX_ROW(FFT, "complex64[2,8]; complex64[3,7]"),
    COMPLEX_ROW(IFFT, "complex64[2,6]; complex128[5]"),
    COMPLEX_ROW(FFT2D, "complex64[2,4,6]"),
    COMPLEX_ROW(IFFT2D, "complex64[4,3]"),
    COMPLEX_ROW(FFT3D, "complex64[2,4,3]"),
    COMPLEX_ROW(IFFT3D, "complex64[2,2,3,4]"),
    RFFT_ROW(RFFT, gradient_RFFT, "float[2,8], int32[1]=[8]; float[7], int32[1]=[5]"),
    RFFT_ROW(RFFT2D, gradient_RFFT2D, "float[2,4,6], int32[2]=[4,6]"),
    RFFT_ROW(RFFT3D, NULL, "float[2,4,6], int32[3]=[2,4,6]"),
    IRFFT_ROW(IRFFT, gradient_IRFFT, "complex64[2,5], int32[1]=[8]; complex64[4], int32[1]=[7]"),
    IRFFT_ROW(IRFFT2D, gradient_IRFFT2D, "complex64[4,4], int32[2]=[4,6]"),
    IRFFT_ROW(IRFFT3D, NULL, "complex64[2,4,4], int32[3]=[2,4,6]"),
};
TFC_REGISTER_OPS(signal_fft_rows);
