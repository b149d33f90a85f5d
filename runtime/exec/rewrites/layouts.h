// Chains of operations whose images change their layout: what layouts.c finds, and layouts_make.h changes.
#ifndef TFC_RUNTIME_EXEC_REWRITES_LAYOUTS_H
#define TFC_RUNTIME_EXEC_REWRITES_LAYOUTS_H

#include "runtime/exec/rewrites/rewrite.h"

// Of an image: batch, channels, height, width. Graphs with images of three spatial dimensions stay as they are.
enum { TFC_LAYOUTS_RANK = 4 };

// How an operation works with images.
struct tfc_layouts_member {
  bool is;              // it is part of a chain; if not, the other members mean nothing
  uint32_t inputs;      // bits: the inputs that are images
  uint32_t image_count; // not 0: the first inputs are the images, and `inputs` means nothing (there may be many)
  bool makes_image;     // output 0 is an image; other outputs never are
  bool convolves;
  bool broadcasts;  // its images may be smaller than the result, and have fewer dimensions
  uint32_t vectors; // bits: the inputs that are constants with one number for each dimension
  uint32_t pairs;   // bits: the inputs that are constants with two numbers for each dimension
  uint32_t axes;    // the input that is a constant with indices of dimensions; TFC_NONE: there is none
};
struct tfc_layouts_entry { // an image that a chain reads and does not make
  uint32_t before; // index of another entry of the same value, with another shape or device; TFC_NONE: there is none
  uint32_t other;  // the same image in the other layout; TFC_NONE: it has not been transposed yet
  struct tfc_shape shape;
  uint16_t device;
};
struct tfc_layouts {
  struct tfc_ir *ir;
  bool first;             // the other layout, into which chains change, has channels first; false: last
  struct tfc_arena arena; // of the search
  struct tfc_ir_readers readers;
  bool *waits;                        // [ops] an ordering edge ends there
  uint32_t count;                     // operations before the rewrite
  struct tfc_layouts_member *members; // [count]
  uint32_t *chain;                    // [count] union-find over operations: one set is one chain
  double *gain_us;                    // [count] of a chain, at the index of its root
  struct tfc_graph *graph;            // with the changed attributes; NULL: nothing has changed yet
  TFC_ARRAY(struct tfc_layouts_entry) entries;
  uint32_t *last_entry; // [values before the rewrite] index of the value's newest entry; TFC_NONE: it has none
};

// --- Dimensions ----------------------------------------------------------------------------------------------------
// Dimension k of an image in the other layout is dimension tfc_layouts_old(k, first) in the graph's layout. `first`:
// the other layout has channels first.
static inline int tfc_layouts_old(int k, bool first) {
  if (k == 0) return 0;
  if (first) return k == 1 ? TFC_LAYOUTS_RANK - 1 : k - 1;
  return k == TFC_LAYOUTS_RANK - 1 ? 1 : k + 1;
}
static inline int64_t tfc_layouts_number(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}
// Whether the elements of an image have the same order in memory in both layouts.
static inline bool tfc_layouts_keeps_order(const struct tfc_shape *image, bool first) {
  const int64_t channels = image->dims[tfc_layouts_old(first ? 1 : TFC_LAYOUTS_RANK - 1, first)];
  return channels == 1 || tfc_shape_elements(image) == image->dims[0] * channels;
}

// --- Chains --------------------------------------------------------------------------------------------------------
static inline bool tfc_layouts_reads_image(const struct tfc_layouts_member *m, uint32_t input) {
  return m->image_count ? input < m->image_count : input < 32 && m->inputs >> input & 1;
}
// Returns the operation that makes the image that input `i` of `reader` reads, if both are in one chain and the input
// has the image's own shape. TFC_NONE: there is none.
uint32_t tfc_layouts_maker(const struct tfc_layouts *l, uint32_t reader, uint32_t i);
// Whether something besides its chain reads the image that an operation makes.
bool tfc_layouts_is_read_outside(const struct tfc_layouts *l, uint32_t op);
// The graph may transpose an image before its first layer, out of the layout into which the chain now changes. If input
// `i` of `reader` is such an image, returns the input of the transposition, which `reader` can read instead; otherwise
// NULL.
const struct tfc_ir_input *tfc_layouts_untransposed(const struct tfc_layouts *l, uint32_t reader, uint32_t i);
// Returns the entry of the image that input `i` of `reader` reads, a new one if there is none. NULL: no memory.
struct tfc_layouts_entry *tfc_layouts_entry_of(struct tfc_layouts *l, uint32_t reader, uint32_t i);
// Estimates the time of a transposition on a device.
double tfc_layouts_transposing_us(uint64_t bytes);

#endif
