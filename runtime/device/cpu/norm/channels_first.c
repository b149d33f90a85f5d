// The passes of a normalisation with channels first. Libraries normalise layers with it: each row of a matrix is a
// channel, whose elements lie together and stay in the first-level cache from pass to pass.
//
// Sums have 64 partial sums of fixed places in a block, so the shape alone decides the order of additions.
#include "runtime/device/cpu/norm/pass.h"
#include "runtime/ops/element_types.h"

typedef float lanes __attribute__((vector_size(64), aligned(4)));
enum { LANES = 16, VECTORS = 4, STRETCH = LANES * VECTORS };
#define EACH(k) _Pragma("GCC unroll 4") for (int k = 0; k < VECTORS; k++)
#define INLINE static inline __attribute__((always_inline))

struct stretch {     // elements of one channel that are contiguous in memory
  int64_t at, count; // index of the first one in the tensor; how many there are
};
// Returns the elements that are contiguous from element number `first` of the channel on; at most `left` of them.
static struct stretch stretch_of(const struct tfc_norm_pass *p, int64_t channel, int64_t first, int64_t left) {
  const int64_t outer = first / p->inner, inner = first % p->inner, here = p->inner - inner;
  return (struct stretch){(outer * p->channels + channel) * p->inner + inner, here < left ? here : left};
}

INLINE float total(const lanes *sums) {
  const lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int l = 0; l < LANES; l++) sum += all[l];
  return sum;
}

INLINE float sum_of(const float *x, int64_t n) {
  lanes sums[VECTORS] = {{0}};
  float rest = 0;
  int64_t i = 0;
  for (; i + STRETCH <= n; i += STRETCH) EACH(k) sums[k] += *(const lanes *)(x + i + k * LANES);
  for (; i + LANES <= n; i += LANES) sums[0] += *(const lanes *)(x + i);
  for (; i < n; i++) rest += x[i];
  return total(sums) + rest;
}

INLINE float squares_of(const float *x, float mean, int64_t n) {
  lanes sums[VECTORS] = {{0}};
  float rest = 0;
  int64_t i = 0;
  for (; i + STRETCH <= n; i += STRETCH) EACH(k) {
      const lanes d = *(const lanes *)(x + i + k * LANES) - mean;
      sums[k] += d * d;
    }
  for (; i + LANES <= n; i += LANES) {
    const lanes d = *(const lanes *)(x + i) - mean;
    sums[0] += d * d;
  }
  for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
  return total(sums) + rest;
}

OPS_CLONES void tfc_norm_moments(const struct tfc_norm_pass *p, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++)
    for (int64_t b = 0; b < p->blocks; b++) {
      const int64_t first = b * p->block, last = first + p->block < p->rows ? first + p->block : p->rows;
      float sum = 0, squares = 0;
      struct stretch s;
      for (int64_t i = first; i < last; i += s.count) {
        s = stretch_of(p, c, i, last - i);
        sum += sum_of(p->x + s.at, s.count);
      }
      const float mean = sum / (float)(last - first);
      for (int64_t i = first; i < last; i += s.count) {
        s = stretch_of(p, c, i, last - i);
        squares += squares_of(p->x + s.at, mean, s.count);
      }
      p->sums[2 * b * p->channels + c] = mean, p->sums[(2 * b + 1) * p->channels + c] = squares;
    }
}

// Adds the sum of x * (y - mean) to *products, and returns the sum of x.
INLINE float products_of(const float *x, const float *y, float mean, int64_t n, float *products) {
  lanes sums[VECTORS] = {{0}}, weighted[VECTORS] = {{0}};
  float rest = 0, more = 0;
  int64_t i = 0;
  for (; i + STRETCH <= n; i += STRETCH) EACH(k) {
      const lanes d = *(const lanes *)(x + i + k * LANES);
      sums[k] += d;
      weighted[k] += d * (*(const lanes *)(y + i + k * LANES) - mean);
    }
  for (; i + LANES <= n; i += LANES) {
    const lanes d = *(const lanes *)(x + i);
    sums[0] += d;
    weighted[0] += d * (*(const lanes *)(y + i) - mean);
  }
  for (; i < n; i++) rest += x[i], more += x[i] * (y[i] - mean);
  *products += total(weighted) + more;
  return total(sums) + rest;
}

OPS_CLONES void tfc_norm_products(const struct tfc_norm_pass *p, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++)
    for (int64_t b = 0; b < p->blocks; b++) {
      const int64_t first = b * p->block, last = first + p->block < p->rows ? first + p->block : p->rows;
      float sum = 0, products = 0;
      struct stretch s;
      for (int64_t i = first; i < last; i += s.count) {
        s = stretch_of(p, c, i, last - i);
        sum += products_of(p->dy + s.at, p->x + s.at, p->mean[c], s.count, &products);
      }
      p->sums[2 * b * p->channels + c] = sum, p->sums[(2 * b + 1) * p->channels + c] = products;
    }
}

// Runs the assignment for all elements of channels [begin, end): for 16 of them at once (T is `lanes`), or one (float).
#define EACH_ELEMENT(assignment)                                                                                       \
  struct stretch s;                                                                                                    \
  for (int64_t first = 0; first < p->rows; first += s.count) {                                                         \
    int64_t i = 0;                                                                                                     \
    s = stretch_of(p, c, first, p->rows - first);                                                                      \
    for (; i + LANES <= s.count; i += LANES) assignment(lanes);                                                        \
    for (; i < s.count; i++) assignment(float);                                                                        \
  }
#define AT(T, array) (*(const T *)((array) + s.at + i))
#define TO(T) (*(T *)(p->y + s.at + i)) // may be x or dy

OPS_CLONES void tfc_norm_apply(const struct tfc_norm_pass *p, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++) {
    const float mean = p->mean[c], scale = p->scale[c], shift = p->shift[c];
#define APPLY(T) TO(T) = (AT(T, p->x) - mean) * scale + shift
    EACH_ELEMENT(APPLY)
  }
}

OPS_CLONES void tfc_norm_differentiate(const struct tfc_norm_pass *p, bool training, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++) {
    const float mean = p->mean[c], scale = p->scale[c], less = p->less[c], slope = p->slope[c];
#define DIFFERENTIATE(T) TO(T) = scale * (AT(T, p->dy) - less - (AT(T, p->x) - mean) * slope)
#define SCALE(T) TO(T) = scale * AT(T, p->dy)
    if (training) {
      EACH_ELEMENT(DIFFERENTIATE)
    } else {
      EACH_ELEMENT(SCALE)
    }
  }
}
