// Convolution of images in NDHWC as matrix products over patches. This is a template: nn_conv.c includes it twice, with
// REAL (float or double), GEMM (ops_sgemm or ops_dgemm) and NAME(x) defined.
//
// A row of the products is an output position. Rows are computed in blocks, whose size depends on the shapes alone, so
// that results do not depend on the number of cores.
//   x [batch, in0, in1, in2, channels]   w [size0, size1, size2, channels / groups, filters]
//   y [batch, out0, out1, out2, filters]

// Copies the patches of rows [first, first + rows) for one group to out [rows, size0 * size1 * size2 * channels /
// groups].
static void NAME(patches)(const struct conv *c, const REAL *x, int64_t first, int64_t rows, int64_t group, REAL *out) {
  const int64_t depth = c->channels / c->groups;
  for (int64_t r = 0; r < rows; r++) {
    int64_t p = first + r, at[3];
    for (int k = 2; k >= 0; k--) at[k] = p % c->out[k] * c->stride[k] - c->before[k], p /= c->out[k];
    for (int64_t i = 0; i < c->size[0]; i++)
      for (int64_t j = 0; j < c->size[1]; j++)
        for (int64_t l = 0; l < c->size[2]; l++, out += depth) {
          const int64_t d = at[0] + i * c->dilation[0], h = at[1] + j * c->dilation[1], w = at[2] + l * c->dilation[2];
          if (d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1] || w < 0 || w >= c->in[2])
            memset(out, 0, (size_t)depth * sizeof *out);
          else
            memcpy(out, x + (((p * c->in[0] + d) * c->in[1] + h) * c->in[2] + w) * c->channels + group * depth,
                   (size_t)depth * sizeof *out);
        }
  }
}

// Does the reverse of `patches`: adds patches to the positions of x that they came from.
static void NAME(add_patches)(const struct conv *c, REAL *x, int64_t first, int64_t rows, int64_t group,
                              const REAL *from) {
  const int64_t depth = c->channels / c->groups;
  for (int64_t r = 0; r < rows; r++) {
    int64_t p = first + r, at[3];
    for (int k = 2; k >= 0; k--) at[k] = p % c->out[k] * c->stride[k] - c->before[k], p /= c->out[k];
    for (int64_t i = 0; i < c->size[0]; i++)
      for (int64_t j = 0; j < c->size[1]; j++)
        for (int64_t l = 0; l < c->size[2]; l++, from += depth) {
          const int64_t d = at[0] + i * c->dilation[0], h = at[1] + j * c->dilation[1], w = at[2] + l * c->dilation[2];
          if (d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1] || w < 0 || w >= c->in[2]) continue;
          REAL *to = x + (((p * c->in[0] + d) * c->in[1] + h) * c->in[2] + w) * c->channels + group * depth;
          for (int64_t k = 0; k < depth; k++) to[k] += from[k];
        }
  }
}

// Computes blocks [begin, end) of output rows.
static void NAME(forward)(void *arg, int64_t begin, int64_t end) {
  struct work *w = arg;
  const struct conv *c = w->conv;
  const int64_t total = c->batch * c->out[0] * c->out[1] * c->out[2];
  const int64_t depth = c->channels / c->groups, filters = c->filters / c->groups, inner = c->cells * depth;
  REAL *buffer = c->pointwise ? NULL : malloc((size_t)(c->block * inner) * sizeof *buffer);
  if (!buffer && !c->pointwise) {
    atomic_store(&w->failed, true);
    return;
  }
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = b * c->block, rows = total - first < c->block ? total - first : c->block;
    for (int64_t g = 0; g < c->groups; g++) {
      const REAL *a = buffer;
      if (c->pointwise)
        a = (const REAL *)w->x + first * c->channels + g * depth;
      else
        NAME(patches)(c, w->x, first, rows, g, buffer);
      GEMM(CblasNoTrans, CblasNoTrans, (int)rows, (int)filters, (int)inner, 1, a,
           (int)(c->pointwise ? c->channels : inner), (const REAL *)w->w + g * filters, (int)c->filters, 0,
           (REAL *)w->y + first * c->filters + g * filters, (int)c->filters);
    }
  }
  free(buffer);
}

// Computes dx of images [begin, end).
static void NAME(backward_input)(void *arg, int64_t begin, int64_t end) {
  struct work *w = arg;
  const struct conv *c = w->conv;
  const int64_t image = c->out[0] * c->out[1] * c->out[2], size = c->in[0] * c->in[1] * c->in[2] * c->channels;
  const int64_t depth = c->channels / c->groups, filters = c->filters / c->groups, inner = c->cells * depth;
  REAL *buffer = malloc((size_t)(c->block * inner) * sizeof *buffer);
  if (!buffer) {
    atomic_store(&w->failed, true);
    return;
  }
  for (int64_t n = begin; n < end; n++) {
    memset((REAL *)w->x + n * size, 0, (size_t)size * sizeof(REAL));
    for (int64_t first = n * image; first < (n + 1) * image; first += c->block) {
      const int64_t rows = (n + 1) * image - first < c->block ? (n + 1) * image - first : c->block;
      for (int64_t g = 0; g < c->groups; g++) {
        GEMM(CblasNoTrans, CblasTrans, (int)rows, (int)inner, (int)filters, 1,
             (const REAL *)w->y + first * c->filters + g * filters, (int)c->filters, (const REAL *)w->w + g * filters,
             (int)c->filters, 0, buffer, (int)inner);
        NAME(add_patches)(c, w->x, first, rows, g, buffer);
      }
    }
  }
  free(buffer);
}

// Computes dw of stripes [begin, end) of the output rows, each into its own copy of w; the caller adds the copies in
// order.
static void NAME(backward_filter)(void *arg, int64_t begin, int64_t end) {
  struct work *w = arg;
  const struct conv *c = w->conv;
  const int64_t total = c->batch * c->out[0] * c->out[1] * c->out[2], blocks = (total + c->block - 1) / c->block;
  const int64_t depth = c->channels / c->groups, filters = c->filters / c->groups, inner = c->cells * depth;
  REAL *buffer = malloc((size_t)(c->block * inner) * sizeof *buffer);
  if (!buffer) {
    atomic_store(&w->failed, true);
    return;
  }
  for (int64_t s = begin; s < end; s++) {
    REAL *dw = (REAL *)w->w + s * inner * c->filters;
    memset(dw, 0, (size_t)(inner * c->filters) * sizeof *dw);
    for (int64_t b = s * blocks / c->stripes; b < (s + 1) * blocks / c->stripes; b++) {
      const int64_t first = b * c->block, rows = total - first < c->block ? total - first : c->block;
      for (int64_t g = 0; g < c->groups; g++) {
        NAME(patches)(c, w->x, first, rows, g, buffer);
        GEMM(CblasTrans, CblasNoTrans, (int)inner, (int)filters, (int)rows, 1, buffer, (int)inner,
             (const REAL *)w->y + first * c->filters + g * filters, (int)c->filters, 1, dw + g * filters,
             (int)c->filters);
      }
    }
  }
  free(buffer);
}

static void NAME(add_stripes)(REAL *w, int64_t count, int64_t stripes) {
  for (int64_t s = 1; s < stripes; s++)
    for (int64_t i = 0; i < count; i++) w[i] += w[s * count + i];
}

#undef REAL
#undef GEMM
#undef NAME
