#include "runtime/ops/signal_fft_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/element_types.h"

typedef float lanes __attribute__((vector_size(OPS_FFT_LANES * sizeof(float)), aligned(4)));

struct ops_fft_lines {
  enum ops_fft kind;
  int64_t n, points; // n: length of a line; points: length of its complex transform (n, or n / 2 for real lines)
  int32_t *place;    // [points] where `transform` puts each frequency
  float *roots;      // [n] cosine and sine of 2 pi k / n
  int64_t root_step; // n / points
};

bool ops_fft_lines_suit(int64_t n) {
  return n >= OPS_FFT_SHORTEST && n <= OPS_FFT_LONGEST && (n & (n - 1)) == 0;
}

// Returns where radix-4 passes (and a last radix-2 pass, if a factor of 2 is left) put frequency k of n.
static int32_t place_of(int64_t k, int64_t n) {
  int64_t place = 0;
  for (; n >= 4; n /= 4, k /= 4) place += k % 4 * (n / 4);
  return (int32_t)(place + k);
}

struct ops_fft_lines *ops_fft_lines_create(enum ops_fft kind, int64_t n) {
  const int64_t points = kind >= OPS_FFT_REAL ? n / 2 : n;
  struct ops_fft_lines *p = calloc(1, sizeof *p + (size_t)(2 * n) * sizeof(float) + (size_t)points * sizeof(int32_t));
  if (!p) return NULL;
  *p = (struct ops_fft_lines){.kind = kind, .n = n, .points = points, .root_step = n / points};
  p->roots = (float *)(void *)(p + 1);
  p->place = (int32_t *)(void *)(p->roots + 2 * n);
  for (int64_t k = 0; k < n; k++) {
    const double angle = 2 * M_PI * (double)k / (double)n;
    p->roots[2 * k] = (float)cos(angle), p->roots[2 * k + 1] = (float)sin(angle);
  }
  for (int64_t k = 0; k < points; k++) p->place[k] = place_of(k, points);
  return p;
}

// Multiplies (re, im) by e^(-i angle), where angle is that of number `root` in p->roots.
#define TURN(re, im, root)                                                                                             \
  do {                                                                                                                 \
    const float c_ = p->roots[2 * (root)], s_ = p->roots[2 * (root) + 1];                                              \
    const lanes r_ = (re);                                                                                             \
    re = r_ * c_ + (im)*s_, im = (im)*c_ - r_ * s_;                                                                    \
  } while (0)

// Decimation in frequency, in place (Gentleman and Sande 1966); re and im
// [points].
OPS_CLONES static void transform(const struct ops_fft_lines *p, lanes *re, lanes *im) {
  int64_t length = p->points, step = p->root_step; // roots of unity of this length are every step-th of p->roots
  for (; length >= 4; length /= 4, step *= 4) {
    const int64_t q = length / 4;
    for (int64_t block = 0; block < p->points; block += length)
      for (int64_t j = block; j < block + q; j++) {
        const lanes ar = re[j] + re[j + 2 * q], ai = im[j] + im[j + 2 * q];
        const lanes br = re[j] - re[j + 2 * q], bi = im[j] - im[j + 2 * q];
        const lanes cr = re[j + q] + re[j + 3 * q], ci = im[j + q] + im[j + 3 * q];
        const lanes dr = im[j + q] - im[j + 3 * q], di = re[j + 3 * q] - re[j + q]; // times -i
        lanes r1 = br + dr, i1 = bi + di, r2 = ar - cr, i2 = ai - ci, r3 = br - dr, i3 = bi - di;
        const int64_t root = (j - block) * step;
        re[j] = ar + cr, im[j] = ai + ci;
        TURN(r1, i1, root);
        TURN(r2, i2, 2 * root);
        TURN(r3, i3, 3 * root);
        re[j + q] = r1, im[j + q] = i1, re[j + 2 * q] = r2, im[j + 2 * q] = i2, re[j + 3 * q] = r3, im[j + 3 * q] = i3;
      }
  }
  for (int64_t j = 0; length == 2 && j < p->points; j += 2) {
    const lanes r = re[j], i = im[j];
    re[j] = r + re[j + 1], im[j] = i + im[j + 1], re[j + 1] = r - re[j + 1], im[j + 1] = i - im[j + 1];
  }
}

// gather: loads element `i` of `count` lines, one line for each lane (lanes without a line are zero); scatter: stores
// it.
static inline __attribute__((always_inline)) void gather(const float *x, int64_t step, int64_t count, int64_t i,
                                                         lanes *out) {
  float v[OPS_FFT_LANES] = {0};
  if (count == OPS_FFT_LANES)
    for (int l = 0; l < OPS_FFT_LANES; l++) v[l] = x[l * step + i];
  else
    for (int64_t l = 0; l < count; l++) v[l] = x[l * step + i];
  memcpy(out, v, sizeof v);
}
static inline __attribute__((always_inline)) void scatter(const lanes *in, float *y, int64_t step, int64_t count,
                                                          int64_t i) {
  if (count == OPS_FFT_LANES)
    for (int l = 0; l < OPS_FFT_LANES; l++) y[l * step + i] = (*in)[l];
  else
    for (int64_t l = 0; l < count; l++) y[l * step + i] = (*in)[l];
}

// Complex lines. The inverse transform is the complex conjugate of the transform of the conjugated input.
OPS_CLONES static void complex_lines(const struct ops_fft_lines *p, const float *x, int64_t x_step, int64_t count,
                                     float *y, lanes *re, lanes *im) {
  const bool inverse = p->kind == OPS_FFT_INVERSE;
  const float scale = inverse ? 1.0f / (float)p->n : 1.0f;
  for (int64_t k = 0; k < p->n; k++) {
    gather(x, x_step, count, 2 * k, &re[k]);
    gather(x, x_step, count, 2 * k + 1, &im[k]);
    if (inverse) im[k] = -im[k];
  }
  transform(p, re, im);
  for (int64_t k = 0; k < p->n; k++) {
    const lanes r = re[p->place[k]] * scale, i = im[p->place[k]] * (inverse ? -scale : scale);
    scatter(&r, y, 2 * p->n, count, 2 * k);
    scatter(&i, y, 2 * p->n, count, 2 * k + 1);
  }
}

// Real lines: even elements are the real parts of a line of half the length, odd ones the imaginary parts. With Z its
// transform, E and O those of the even and the odd elements: E[k] = (Z[k] + conj Z[-k]) / 2, O[k] = (Z[k] - conj Z[-k])
// / 2i, and the line's is E[k] + w^k O[k].
OPS_CLONES static void real_lines(const struct ops_fft_lines *p, const float *x, int64_t x_step, int64_t count,
                                  float *y, lanes *re, lanes *im) {
  const int64_t h = p->points, y_step = 2 * (h + 1);
  for (int64_t k = 0; k < h; k++) {
    gather(x, x_step, count, 2 * k, &re[k]);
    gather(x, x_step, count, 2 * k + 1, &im[k]);
  }
  transform(p, re, im);
  for (int64_t k = 0; k <= h; k++) {
    const int32_t a = p->place[k % h], b = p->place[(h - k) % h];
    lanes even = (re[a] + re[b]) * 0.5f, even_i = (im[a] - im[b]) * 0.5f;
    lanes odd = (im[a] + im[b]) * 0.5f, odd_i = (re[b] - re[a]) * 0.5f;
    TURN(odd, odd_i, k);
    even += odd, even_i += odd_i;
    if (k == 0 || k == h) even_i = (lanes){0};
    scatter(&even, y, y_step, count, 2 * k);
    scatter(&even_i, y, y_step, count, 2 * k + 1);
  }
}

// Computes the inverse for real lines. The imaginary parts of the first and the last frequency are ignored.
OPS_CLONES static void real_inverse_lines(const struct ops_fft_lines *p, const float *x, int64_t x_step, int64_t count,
                                          float *y, lanes *re, lanes *im) {
  const int64_t h = p->points;
  const float scale = 1.0f / (float)p->n;
  for (int64_t k = 0; k < h; k++) {
    lanes ar, ai = {0}, br, bi = {0};
    gather(x, x_step, count, 2 * k, &ar);
    gather(x, x_step, count, 2 * (h - k), &br);
    if (k) gather(x, x_step, count, 2 * k + 1, &ai);
    if (k) gather(x, x_step, count, 2 * (h - k) + 1, &bi);
    // Z = E + i O with E = X[k] + conj X[h - k] and O = (X[k] - conj X[h - k]) w^-k, here conjugated, for the inverse.
    lanes odd = ar - br, odd_i = -(ai + bi);
    TURN(odd, odd_i, k);
    re[k] = ar + br + odd_i, im[k] = -(ai - bi) - odd;
  }
  transform(p, re, im);
  for (int64_t k = 0; k < h; k++) {
    const lanes r = re[p->place[k]] * scale, i = im[p->place[k]] * -scale;
    scatter(&r, y, p->n, count, 2 * k);
    scatter(&i, y, p->n, count, 2 * k + 1);
  }
}

struct lines_job {
  const struct ops_fft_lines *plan;
  const float *x;
  int64_t x_step, count;
  float *y;
  _Atomic bool failed;
};
static void run_groups(void *arg, int64_t begin, int64_t end) {
  static void (*const kinds[])(const struct ops_fft_lines *, const float *, int64_t, int64_t, float *, lanes *,
                               lanes *) = {
      [OPS_FFT_FORWARD] = complex_lines,
      [OPS_FFT_INVERSE] = complex_lines,
      [OPS_FFT_REAL] = real_lines,
      [OPS_FFT_REAL_INVERSE] = real_inverse_lines,
  };
  struct lines_job *j = arg;
  const struct ops_fft_lines *p = j->plan;
  const int64_t y_step = p->kind == OPS_FFT_REAL ? p->n + 2 : p->kind == OPS_FFT_REAL_INVERSE ? p->n : 2 * p->n;
  lanes *work = aligned_alloc(64, (size_t)(2 * p->points + 2) * sizeof *work);
  if (!work) {
    j->failed = true;
    return;
  }
  for (int64_t g = begin; g < end; g++) {
    const int64_t first = g * OPS_FFT_LANES, left = j->count - first;
    kinds[p->kind](p, j->x + first * j->x_step, j->x_step, left < OPS_FFT_LANES ? left : OPS_FFT_LANES,
                   j->y + first * y_step, work, work + p->points);
  }
  free(work);
}

tfc_status ops_fft_lines_run(struct tfc_kernel_ctx *ctx, const struct ops_fft_lines *plan, const float *x,
                             int64_t x_step, int64_t count, float *y) {
  struct lines_job job = {.plan = plan, .x = x, .x_step = x_step, .count = count, .y = y};
  tfc_kernel_parallel_for(ctx, (count + OPS_FFT_LANES - 1) / OPS_FFT_LANES, 1 + 4096 / plan->n, run_groups, &job);
  return job.failed ? tfc_status_no_memory(NULL) : NULL;
}
