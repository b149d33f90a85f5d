// Filters of convolutions whose dimensions are in the order that a library reads. A rewrite of plans
// (runtime/exec/rewrites/filters.c) transposes a filter once for all that read it. A transposed filter keeps the shape
// of the graph's, [spatial..., in, out]: only the order of its elements is another.
#ifndef TFC_RUNTIME_OPS_TRANSPOSED_FILTER_H
#define TFC_RUNTIME_OPS_TRANSPOSED_FILTER_H

#include <stddef.h>

#include "runtime/graph/shape.h"

// A cell is a position in the filter's window.
typedef enum tfc_filter_form {
  TFC_FILTER_OF_GRAPH,       // [cells, in, out]
  TFC_FILTER_CHANNELS_LAST,  // [out, cells, in]
  TFC_FILTER_CHANNELS_FIRST, // [out, in, cells]
} tfc_filter_form;

// In the order out, in, cells; in elements.
struct tfc_filter_layout {
  int64_t size[3], stride[3];
};
struct tfc_filter_layout tfc_filter_layout(tfc_filter_form form, int64_t out, int64_t in, int64_t cells);
// The same for a filter of the graph's shape, which has at least two dimensions, all of them known.
struct tfc_filter_layout tfc_filter_layout_of(tfc_filter_form form, const struct tfc_shape *shape);
// Turns a filter of the graph in host memory. size: bytes of an element.
void tfc_filter_transpose(tfc_filter_form form, const struct tfc_shape *shape, size_t size, const void *from, void *to);

#endif
