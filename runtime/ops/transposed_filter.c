#include "runtime/ops/transposed_filter.h"

#include <string.h>

struct tfc_filter_layout tfc_filter_layout(tfc_filter_form form, int64_t out, int64_t in, int64_t cells) {
  struct tfc_filter_layout l = {{out, in, cells}, {1, out, in * out}};
  if (form == TFC_FILTER_CHANNELS_LAST)
    l.stride[0] = in * cells, l.stride[1] = 1, l.stride[2] = in;
  else if (form == TFC_FILTER_CHANNELS_FIRST)
    l.stride[0] = in * cells, l.stride[1] = cells, l.stride[2] = 1;
  return l;
}

struct tfc_filter_layout tfc_filter_layout_of(tfc_filter_form form, const struct tfc_shape *shape) {
  int64_t cells = 1;
  for (int k = 0; k < shape->rank - 2; k++) cells *= shape->dims[k];
  return tfc_filter_layout(form, shape->dims[shape->rank - 1], shape->dims[shape->rank - 2], cells);
}

void tfc_filter_transpose(tfc_filter_form form, const struct tfc_shape *shape, size_t size, const void *from,
                          void *to) {
  const struct tfc_filter_layout a = tfc_filter_layout_of(TFC_FILTER_OF_GRAPH, shape),
                                 b = tfc_filter_layout_of(form, shape);
  for (int64_t cell = 0; cell < a.size[2]; cell++)
    for (int64_t in = 0; in < a.size[1]; in++)
      for (int64_t out = 0; out < a.size[0]; out++)
        memcpy((char *)to + (size_t)(out * b.stride[0] + in * b.stride[1] + cell * b.stride[2]) * size,
               (const char *)from + (size_t)(out * a.stride[0] + in * a.stride[1] + cell * a.stride[2]) * size, size);
}
