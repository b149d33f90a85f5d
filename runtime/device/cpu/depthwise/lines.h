// The inner loops of depthwise convolution, with one set of functions for each instruction set. A line is a row of
// positions of an image with channels last. A cell is a cell of the window together with the positions of the line that
// meet it. Numbers are float or double; all steps and offsets count elements.
#ifndef TFC_RUNTIME_DEVICE_CPU_DEPTHWISE_LINES_H
#define TFC_RUNTIME_DEVICE_CPU_DEPTHWISE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops/last_pass.h"

enum { TFC_DEPTHWISE_MOST_CELLS = 1024 };

// Position p reads the image at in + p * in_step if first <= p < last; otherwise it is over the padding.
struct tfc_depthwise_cell {
  int64_t in, filter; // where its channels lie in the image and in the filter
  int64_t first, last;
  bool zero; // positions [first, last) read zeros
};

struct tfc_depthwise_block { // lines that meet the same cells
  int64_t lines, positions;  // positions: of each line
  int64_t in_step, in_line;  // from a position to the next one, and from a line to the next one
  int64_t out_step, out_line;
  // The padding is multiplied, too, as the zeros of a padded image would be. This can change the sign of a zero, and
  // makes a NaN of an infinite weight.
  bool bordered;
  // For floats: the operations that are applied to each element of the output before it is written, or NULL. The first
  // line begins `at` elements after the output's begin.
  const struct tfc_last_pass *last;
  int64_t at;
};

struct tfc_depthwise_lines {
  // out[l * out_line + p * out_step + c] = the sum of in * filter over the cells that position p of line l meets, added
  // in their order; 0 if it meets none. `cells` are those of the first line. There are at most TFC_DEPTHWISE_MOST_CELLS
  // of them.
  void (*lines)(const struct tfc_depthwise_cell *cells, int64_t count, const struct tfc_depthwise_block *block,
                const void *in, const void *filter, void *out, int64_t channels);
  // For each cell: sums[cell.filter + c] += the sum of in[cell.in + p * in_step + c] * dy[p * channels + c] over the
  // positions p from cell.first to before cell.last.
  void (*filter)(const struct tfc_depthwise_cell *cells, int64_t count, const void *in, int64_t in_step, const void *dy,
                 void *sums, int64_t channels);
};
struct tfc_depthwise_kernel {
  struct tfc_depthwise_lines of_float, of_double;
};
extern const struct tfc_depthwise_kernel tfc_depthwise_generic;
#if defined(__x86_64__)
extern const struct tfc_depthwise_kernel tfc_depthwise_avx2, tfc_depthwise_avx512;
#endif

#endif
