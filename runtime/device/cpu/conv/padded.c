// Of an image with few channels, a row of a window is only a few floats, and each one that reaches over the edge takes
// longer to find than to multiply. A copy of the image with its border of zeros takes little time beside that, because
// it has fewer channels than the convolution's result. The result stays the same to the bit, because the same
// numbers are multiplied and added in the same order.
#include "runtime/device/cpu/conv/padded.h"

#include <string.h>

#include "runtime/host/gemm/scratch.h"

enum { SLACK = 16, MOST_GROWTH = 4, LINE_WORK = 16384 };

struct copying { // copies lines of the image, with zeros around them
  const struct tfc_patches *from;
  int64_t in[3]; // of the copy
  float *to;
};

static void copy_lines(void *arg, int64_t begin, int64_t end) {
  const struct copying *j = arg;
  const struct tfc_patches *p = j->from;
  const int64_t c = p->channels, length = j->in[1] * c, before = p->before[1] * c;
  const int64_t room = length - before, there = p->in[1] * c < room ? p->in[1] * c : room;
  for (int64_t line = begin; line < end; line++) {
    const int64_t rest = line / j->in[0], y = line % j->in[0] - p->before[0], z = rest % j->in[2] - p->before[2];
    const float *image = p->image + rest / j->in[2] * p->in[2] * p->in[0] * p->in[1] * c;
    float *to = j->to + line * length;
    if (y < 0 || y >= p->in[0] || z < 0 || z >= p->in[2] || there <= 0) {
      memset(to, 0, (size_t)length * sizeof *to);
      continue;
    }
    memset(to, 0, (size_t)before * sizeof *to);
    memcpy(to + before, image + (z * p->in[0] + y) * p->in[1] * c, (size_t)there * sizeof *to);
    memset(to + before + there, 0, (size_t)(length - before - there) * sizeof *to);
  }
}

bool tfc_patches_pad(struct tfc_kernel_ctx *ctx, struct tfc_patches *p, int64_t most_channels) {
  int64_t in[3], size = p->batch * p->channels, old = size;
  if (p->channels > most_channels) return false;
  for (int k = 0; k < 3; k++) {
    if (p->before[k] < 0) return false;
    in[k] = (p->out[k] - 1) * p->stride[k] + (p->size[k] - 1) * p->dilation[k] + 1;
    size *= in[k], old *= p->in[k];
  }
  if (size > MOST_GROWTH * old) return false;
  struct copying j = {p, {in[0], in[1], in[2]}, NULL};
  j.to = tfc_thread_scratch(TFC_SCRATCH_PADDED, (size_t)(size + SLACK) * sizeof *j.to);
  if (!j.to) return false;
  memset(j.to + size, 0, SLACK * sizeof *j.to);
  tfc_kernel_parallel_for(ctx, p->batch * in[2] * in[0], LINE_WORK / (in[1] * p->channels + 1) + 1, copy_lines, &j);
  p->image = j.to, p->inside = true;
  for (int k = 0; k < 3; k++) p->in[k] = in[k], p->before[k] = 0;
  return true;
}
