#include "runtime/device/cpu/conv_sizes.h"

#include "runtime/ops/nn_window.h"

static bool is_known(const struct tfc_shape *s, int rank) {
  return tfc_shape_is_static(s) && s->rank == rank && tfc_shape_elements(s) > 0;
}

bool tfc_conv_sizes_read(const struct tfc_cpu_prepare *p, struct tfc_conv_sizes *out) {
  const struct tfc_prepare_ctx *base = p->base;
  const enum tfc_conv_role role = (enum tfc_conv_role)p->variant;
  const int rank =
      (role == TFC_CONV_FORWARD ? base->output_shapes : base->input_shapes + (role == TFC_CONV_INPUT))->rank;
  struct tfc_window w;
  if (rank != 4 && rank != 5) return false;
  tfc_status s = base->window ? NULL : tfc_window_read(base->graph, base->node, rank, &w);
  if (base->window) w = *base->window;
  if (s || w.channels_first) {
    tfc_status_free(s);
    return false;
  }
  const struct tfc_shape *x = role == TFC_CONV_INPUT ? &base->output_shapes[0] : &base->input_shapes[0];
  const struct tfc_shape *f = role == TFC_CONV_FILTER ? &base->output_shapes[0] : &base->input_shapes[1];
  const struct tfc_shape *y = role == TFC_CONV_FORWARD ? &base->output_shapes[0] : &base->input_shapes[2];
  if (!is_known(x, rank) || !is_known(f, rank) || !is_known(y, rank) || y->dims[0] != x->dims[0]) return false;
  const int planes = rank - 4;
  *out = (struct tfc_conv_sizes){.role = role,
                                 .dtype = base->input_dtypes[role == TFC_CONV_INPUT ? 1 : 0],
                                 .batch = x->dims[0],
                                 .channels = x->dims[rank - 1],
                                 .depth = f->dims[rank - 2],
                                 .filters = f->dims[rank - 1],
                                 .made = y->dims[rank - 1]};
  out->in[2] = out->out[2] = out->size[2] = out->stride[2] = out->dilation[2] = 1;
  for (int k = 0; k < 2 + planes; k++) {
    const int from = k < 2 ? planes + k : 0,
              of = k < 2 ? 1 + k : 0; // `from`: index in the shapes; `of`: index in the window
    out->in[k] = x->dims[1 + from], out->size[k] = f->dims[from];
    out->stride[k] = w.stride[of], out->dilation[k] = w.dilation[of];
    s = tfc_window_output(&w, of, out->in[k], out->size[k], &out->out[k], &out->before[k]);
    if (s || out->out[k] != y->dims[1 + from]) {
      tfc_status_free(s);
      return false;
    }
  }
  return true;
}

bool tfc_conv_result(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *x,
                     const struct tfc_shape *filter, struct tfc_window *out_window, struct tfc_shape *out) {
  const int rank = x->rank, planes = rank - 4;
  struct tfc_window w;
  if (rank != 4 && rank != 5) return false;
  if (!is_known(x, rank) || !is_known(filter, rank)) return false;
  tfc_status s = tfc_window_read(g, n, rank, &w);
  *out = *x;
  for (int k = 0; !s && !w.channels_first && k < 2 + planes; k++) {
    const int from = k < 2 ? planes + k : 0, of = k < 2 ? 1 + k : 0; // as above
    int64_t before;
    s = tfc_window_output(&w, of, x->dims[1 + from], filter->dims[from], &out->dims[1 + from], &before);
  }
  const bool fits = !s && !w.channels_first;
  tfc_status_free(s);
  out->dims[rank - 1] = filter->dims[rank - 1];
  if (fits) *out_window = w;
  return fits;
}
