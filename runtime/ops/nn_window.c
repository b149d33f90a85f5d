// The geometry of sliding windows, as TensorFlow defines SAME, VALID and EXPLICIT padding.
#include "runtime/ops/nn_window.h"

static tfc_status ints_of(const struct tfc_graph *g, const struct tfc_node *n, const char *name, int rank,
                          const int64_t **out) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  *out = NULL;
  if (!a || a->kind != TFC_ATTR_LIST_INT || a->count == 0) return NULL;
  if (a->count != (uint32_t)rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' must have %d items, has %u", name, rank, a->count);
  for (int i = 0; i < rank; i++)
    if (a->ints[i] <= 0 || a->ints[i] > INT32_MAX)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' must be positive, item %d is %lld", name, i,
                             (long long)a->ints[i]);
  *out = a->ints;
  return NULL;
}

tfc_status tfc_window_read(const struct tfc_graph *g, const struct tfc_node *n, int rank, struct tfc_window *out) {
  struct tfc_window w = {
      .spatial = rank - 2, .channel_size = 1, .channel_stride = 1, .batch_size = 1, .batch_stride = 1};
  for (int k = 0; k < 3; k++) w.size[k] = w.stride[k] = w.dilation[k] = 1;
  tfc_str format = tfc_node_attr_string(g, n, "data_format", "N");
  tfc_str padding = tfc_node_attr_string(g, n, "padding", "VALID");
  w.channels_first = tfc_str_starts(format, "NC");
  if (tfc_str_is(format, "NCHW_VECT_C") || tfc_str_is(format, "HWNC"))
    return tfc_status_make(TFC_UNIMPLEMENTED, "data_format %.*s", TFC_STR_ARG(format));
  const int64_t *ksize, *strides, *dilations;
  TFC_RETURN_IF_ERROR(ints_of(g, n, "ksize", rank, &ksize));
  TFC_RETURN_IF_ERROR(ints_of(g, n, "strides", rank, &strides));
  TFC_RETURN_IF_ERROR(ints_of(g, n, "dilations", rank, &dilations));
  int channel = tfc_window_channel_axis(&w);
  for (int k = 3 - w.spatial; k < 3; k++) {
    int axis = tfc_window_axis(&w, k);
    if (ksize) w.size[k] = ksize[axis];
    if (strides) w.stride[k] = strides[axis];
    if (dilations) w.dilation[k] = dilations[axis];
  }
  if (ksize) w.channel_size = ksize[channel], w.batch_size = ksize[0];
  if (strides) w.channel_stride = strides[channel], w.batch_stride = strides[0];
  if (w.batch_size != 1 || w.batch_stride != 1 || (dilations && (dilations[0] != 1 || dilations[channel] != 1)))
    return tfc_status_make(TFC_UNIMPLEMENTED, "windows over the batch dimension, or dilated channels");
  const struct tfc_attr *explicit = tfc_node_attr(g, n, "explicit_paddings");
  if (!tfc_str_is(padding, "EXPLICIT") && explicit && explicit->kind == TFC_ATTR_LIST_INT && explicit->count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  if (tfc_str_is(padding, "SAME")) {
    w.padding = TFC_PADDING_SAME;
  } else if (tfc_str_is(padding, "EXPLICIT")) {
    const struct tfc_attr *a = explicit;
    w.padding = TFC_PADDING_EXPLICIT;
    if (!a || a->kind != TFC_ATTR_LIST_INT || a->count != 2 * (uint32_t)rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "explicit_paddings attribute must contain %d values", 2 * rank);
    for (uint32_t i = 0; i < a->count; i++)
      if (a->ints[i] < 0 || a->ints[i] > INT32_MAX)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "All elements of explicit_paddings must be nonnegative");
    if (a->ints[0] || a->ints[1] || a->ints[2 * channel] || a->ints[2 * channel + 1])
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "Nonzero explicit padding in the batch or depth dimensions is not supported");
    for (int k = 3 - w.spatial; k < 3; k++) {
      int axis = tfc_window_axis(&w, k);
      w.before[k] = a->ints[2 * axis];
      w.after[k] = a->ints[2 * axis + 1];
    }
  } else if (!tfc_str_is(padding, "VALID")) {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "padding '%.*s'", TFC_STR_ARG(padding));
  }
  *out = w;
  return NULL;
}

tfc_status tfc_window_given(struct tfc_window *w, const struct tfc_tensor *size, const struct tfc_tensor *stride) {
  const struct tfc_tensor *const given[2] = {size, stride};
  int64_t *const spatial[2] = {w->size, w->stride}, *const channel[2] = {&w->channel_size, &w->channel_stride};
  for (int i = 0; i < 2; i++) {
    const char *name = i == 0 ? "Sliding window ksize" : "Sliding window stride";
    if (tfc_tensor_elements(given[i]) != w->spatial + 2)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s must specify %d dimensions, its shape is %s", name,
                             w->spatial + 2, tfc_shape_show(&given[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
    const int32_t *v = given[i]->data;
    for (int d = 0; d < w->spatial + 2; d++)
      if (v[d] <= 0 && (i == 0 || d != tfc_window_channel_axis(w)))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "%s for dimension %d must be positive, it is %d", name, d, v[d]);
    if (v[0] != 1) return tfc_status_make(TFC_UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.");
    for (int k = 3 - w->spatial; k < 3; k++) spatial[i][k] = v[tfc_window_axis(w, k)];
    *channel[i] = v[tfc_window_channel_axis(w)];
  }
  return NULL;
}

tfc_status tfc_window_output(const struct tfc_window *w, int k, int64_t in, int64_t size, int64_t *out,
                             int64_t *out_before) {
  int64_t unused, *before = out_before ? out_before : &unused;
  *before = w->before[k];
  if (in < 0 || (size < 0 && w->padding != TFC_PADDING_SAME)) {
    *out = TFC_DIM_UNKNOWN;
    return NULL;
  }
  // reach: from the window's first cell to its last.
  int64_t stride = w->stride[k], reach = size < 0 ? 1 : (size - 1) * w->dilation[k] + 1;
  if (w->padding == TFC_PADDING_SAME) {
    *out = (in + stride - 1) / stride;
    int64_t total = (*out - 1) * stride + reach - in;
    *before = total > 0 ? total / 2 : 0;
    return NULL;
  }
  if (size < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "a window of %lld", (long long)size);
  int64_t room = in + w->before[k] + w->after[k] - reach + stride;
  if (room < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "a window that reaches over %lld does not fit into %lld (padding %lld, %lld)",
                           (long long)reach, (long long)in, (long long)w->before[k], (long long)w->after[k]);
  *out = room / stride;
  return NULL;
}

tfc_status tfc_window_infer(const struct tfc_window *w, int k, int64_t in, int64_t size, int64_t *out) {
  int64_t reach = (size - 1) * w->dilation[k] + 1, room = in + w->before[k] + w->after[k];
  if (w->padding != TFC_PADDING_SAME && in >= 0 && size >= 1 && room < reach)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Negative dimension size caused by subtracting %lld from %lld",
                           (long long)reach, (long long)room);
  return tfc_window_output(w, k, in, size, out, NULL);
}

void tfc_image_of(const struct tfc_window *w, const struct tfc_shape *shape, struct tfc_image *out) {
  int64_t strides[TFC_MAX_RANK];
  tfc_shape_strides(shape, strides);
  *out = (struct tfc_image){.batch = shape->dims[0], .batch_stride = strides[0]};
  for (int k = 0; k < 3; k++) {
    bool there = k >= 3 - w->spatial;
    out->size[k] = there ? shape->dims[tfc_window_axis(w, k)] : 1;
    out->stride[k] = there ? strides[tfc_window_axis(w, k)] : 0;
  }
  out->channels = shape->dims[tfc_window_channel_axis(w)];
  out->channel_stride = strides[tfc_window_channel_axis(w)];
}

struct tfc_shape tfc_image_shape(const struct tfc_window *w, int64_t batch, const int64_t size[3], int64_t channels) {
  struct tfc_shape s = {.rank = w->spatial + 2};
  s.dims[0] = batch;
  for (int k = 3 - w->spatial; k < 3; k++) s.dims[tfc_window_axis(w, k)] = size[k];
  s.dims[tfc_window_channel_axis(w)] = channels;
  return s;
}
