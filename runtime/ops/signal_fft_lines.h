// Fourier transforms of lines of float32 whose length is a power of two, eight lines at a time: each
// vector has one element of each line.
#ifndef TFC_RUNTIME_OPS_SIGNAL_FFT_LINES_H
#define TFC_RUNTIME_OPS_SIGNAL_FFT_LINES_H

#include "runtime/ops/kernel.h"

enum { OPS_FFT_LANES = 8, OPS_FFT_SHORTEST = 4, OPS_FFT_LONGEST = 1 << 16 };
enum ops_fft { OPS_FFT_FORWARD, OPS_FFT_INVERSE, OPS_FFT_REAL, OPS_FFT_REAL_INVERSE };

// n: the length of a line of numbers (complex ones, or real ones). NULL: no memory. Freed with free().
struct ops_fft_lines;
bool ops_fft_lines_suit(int64_t n);
struct ops_fft_lines *ops_fft_lines_create(enum ops_fft kind, int64_t n);
// Transforms `count` lines on the device's cores. Lines of x are `x_step` floats apart (a line may be longer than the
// part that is read); lines of y are dense.
TFC_MUST_USE tfc_status ops_fft_lines_run(struct tfc_kernel_ctx *ctx, const struct ops_fft_lines *plan, const float *x,
                                          int64_t x_step, int64_t count, float *y);

#endif
