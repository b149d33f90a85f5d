// For each line of output positions and each row of the window, tfc_lines_filter adds a product to a part of dw,
// transposed:
//
//   [filters, size[1] * channels]  +=  dy's line, transposed [filters, positions] · windows [positions, size[1] *
//   channels]
//
// Row x of the right side is one contiguous piece of an image's line, stride[1] * channels elements after the piece of
// row x - 1. It is read from the image, or from a copy of the line with zeros as padding. Vectors may read beyond a
// window; the products of these elements go to columns of the sum that are not used.
//
// Lines are divided into `parts` groups, on any number of cores. Each group has its own sum, and the sums are added
// in order, so that the result does not depend on the number of cores.
#include "runtime/device/cpu/conv/lines.h"

#include <string.h>

#include "runtime/host/gemm/scratch.h"

enum { parts = 16, stripe = 8, lane = 16 };

struct job {
  const struct tfc_patches *p;
  const float *dy;
  float *dw;
  int64_t filters, filters_up, columns, columns_up; // filters and columns of a part of dw, rounded up
  int64_t size;                                     // of a part's sum
  float *sums;                                      // [parts, size[0], filters_up, columns_up]
  _Atomic bool failed;
};

// With few filters, a vector of them would be mostly empty, and vectors go along the windows instead. The limits are
// the same for all instruction sets, because the two ways add in different orders.
bool tfc_lines_pay(const struct tfc_patches *p, int64_t filters) {
  const int64_t columns = p->size[1] * p->channels;
  return filters <= stripe && tfc_patches_are_flat(p) && p->dilation[1] == 1 && p->before[1] >= 0 &&
         p->before[1] < p->size[1] && p->out[1] >= 24 && p->batch * p->out[0] >= parts && columns * p->size[0] <= 2048;
}

// Returns the number of elements from the begin of a line's first window to the last element that is read for its last
// window.
static int64_t read_length(const struct job *j) {
  const struct tfc_patches *p = j->p;
  return (p->out[1] - 1) * p->stride[1] * p->channels + j->columns_up;
}

// Returns the windows of line `y` of image `n`.
static const float *windows(const struct job *j, int64_t n, int64_t y, float *copy) {
  const struct tfc_patches *p = j->p;
  const int64_t c = p->channels, width = p->in[1], reach = (p->out[1] - 1) * p->stride[1] + p->size[1];
  const float *line = p->image + (n * p->in[0] + y) * width * c;
  const float *end = p->image + p->batch * p->in[0] * width * c;
  if (p->before[1] == 0 && reach <= width && read_length(j) <= end - line) return line;
  int64_t here = reach - p->before[1] < width ? reach - p->before[1] : width;
  float *to = copy + p->before[1] * c;
  memset(copy, 0, (size_t)(p->before[1] * c) * sizeof *copy);
  memcpy(to, line, (size_t)(here * c) * sizeof *copy);
  memset(to + here * c, 0, (size_t)(read_length(j) - (p->before[1] + here) * c) * sizeof *copy);
  return copy;
}

// Copies a line of dy in stripes of 8 filters: [stripe][position][filter of the stripe].
static void pack_line(const struct job *j, const float *dy, float *out) {
  const int64_t count = j->p->out[1];
  for (int64_t f = 0; f < j->filters; f += stripe, out += count * stripe) {
    int64_t n = j->filters - f < stripe ? j->filters - f : stripe;
    for (int64_t x = 0; x < count; x++) {
      if (n == stripe) {
        memcpy(out + x * stripe, dy + x * j->filters + f, stripe * sizeof *out);
        continue;
      }
      for (int64_t r = 0; r < stripe; r++) out[x * stripe + r] = r < n ? dy[x * j->filters + f + r] : 0;
    }
  }
}

static void sum_part(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const struct tfc_patches *p = j->p;
  const int64_t lines = p->batch * p->out[0], count = p->out[1];
  float *a = tfc_thread_scratch(TFC_SCRATCH_A, (size_t)(count * j->filters_up + read_length(j) + lane) * sizeof *a);
  if (!a) {
    j->failed = true;
    return;
  }
  float *copy = a + count * j->filters_up;
  for (int64_t part = begin; part < end; part++) {
    float *sum = j->sums + part * j->size;
    memset(sum, 0, (size_t)j->size * sizeof *sum);
    for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; line++) {
      int64_t n = line / p->out[0], top = line % p->out[0] * p->stride[0] - p->before[0];
      pack_line(j, j->dy + line * count * j->filters, a);
      for (int64_t i = 0; i < p->size[0]; i++) {
        int64_t y = top + i * p->dilation[0];
        if (y < 0 || y >= p->in[0]) continue;
        tfc_gemm_add(a, j->filters_up, windows(j, n, y, copy), p->stride[1] * p->channels, count, j->columns_up,
                     sum + i * j->filters_up * j->columns_up);
      }
    }
  }
}

// Adds up the sums of the parts for rows [begin, end) of dw, always in the same order.
static void finish(void *arg, int64_t begin, int64_t end) {
  const struct job *j = arg;
  for (int64_t row = begin; row < end; row++)
    for (int64_t f = 0; f < j->filters; f++) {
      const float *from = j->sums + (row / j->columns * j->filters_up + f) * j->columns_up + row % j->columns;
      float sum = from[0];
      for (int64_t part = 1; part < parts; part++) sum += from[part * j->size];
      j->dw[row * j->filters + f] = sum;
    }
}

tfc_status tfc_lines_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy, int64_t filters,
                            float *dw) {
  struct job j = {.p = p, .dy = dy, .dw = dw, .filters = filters, .columns = p->size[1] * p->channels};
  j.filters_up = (filters + stripe - 1) / stripe * stripe;
  j.columns_up = (j.columns + lane - 1) / lane * lane;
  j.size = p->size[0] * j.filters_up * j.columns_up;
  j.sums = tfc_thread_scratch(TFC_SCRATCH_FILTER, (size_t)(parts * j.size) * sizeof *j.sums);
  if (!j.sums) return tfc_status_no_memory(NULL);
  tfc_kernel_parallel_for(ctx, parts, 1, sum_part, &j);
  if (j.failed) return tfc_status_no_memory(NULL);
  tfc_kernel_parallel_for(ctx, p->size[0] * j.columns, 2048 / filters + 1, finish, &j);
  return NULL;
}
