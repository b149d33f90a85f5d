#include "runtime/device/cpu/conv_sizes.h"

#include "runtime/ops/nn_window.h"

static bool is_known(const struct tfc_shape *s) {
  return tfc_shape_is_static(s) && s->rank == 4 && tfc_shape_elements(s) > 0;
}

bool tfc_conv_sizes_read(const struct tfc_cpu_prepare *p, struct tfc_conv_sizes *out) {
  const struct tfc_prepare_ctx *base = p->base;
  const enum tfc_conv_role role = (enum tfc_conv_role)p->variant;
  struct tfc_window w;
  tfc_status s = tfc_window_read(base->graph, base->node, 4, &w);
  if (s || w.channels_first) {
    tfc_status_free(s);
    return false;
  }
  const struct tfc_shape *x = role == TFC_CONV_INPUT ? &base->output_shapes[0] : &base->input_shapes[0];
  const struct tfc_shape *f = role == TFC_CONV_FILTER ? &base->output_shapes[0] : &base->input_shapes[1];
  const struct tfc_shape *y = role == TFC_CONV_FORWARD ? &base->output_shapes[0] : &base->input_shapes[2];
  if (!is_known(x) || !is_known(f) || !is_known(y) || y->dims[0] != x->dims[0]) return false;
  *out = (struct tfc_conv_sizes){.role = role,
                                 .dtype = base->input_dtypes[role == TFC_CONV_INPUT ? 1 : 0],
                                 .batch = x->dims[0],
                                 .channels = x->dims[3],
                                 .depth = f->dims[2],
                                 .filters = f->dims[3],
                                 .made = y->dims[3]};
  for (int k = 0; k < 2; k++) {
    out->in[k] = x->dims[1 + k], out->size[k] = f->dims[k];
    out->stride[k] = w.stride[1 + k], out->dilation[k] = w.dilation[1 + k];
    s = tfc_window_output(&w, 1 + k, out->in[k], out->size[k], &out->out[k], &out->before[k]);
    if (s || out->out[k] != y->dims[1 + k]) {
      tfc_status_free(s);
      return false;
    }
  }
  return true;
}
