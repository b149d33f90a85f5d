// CTCGreedyDecoder and CTCBeamSearchDecoder, which read labels out of unaligned class scores, and EditDistance, which
// computes how far one sequence is from another.
//
// inputs [time, batch, classes] -> sparse decoded [batch, longest] and log_probability [batch, paths]
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "runtime/base/array.h"
#include "runtime/base/heap.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/sparse_common.h"

static tfc_status check_inputs(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *lengths = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 3, "inputs is not a 3-Tensor");
  TFC_KERNEL_CHECK(lengths->shape.rank == 1, "sequence_length is not a vector");
  TFC_KERNEL_CHECK(x->shape.dims[0] > 0, "max_time is 0");
  TFC_KERNEL_CHECK(x->shape.dims[1] > 0, "batch_size is 0");
  TFC_KERNEL_CHECK(x->shape.dims[2] > 0, "num_classes must be positive");
  TFC_KERNEL_CHECK(lengths->shape.dims[0] == x->shape.dims[1],
                   "len(sequence_length) != batch_size. len(sequence_length): %lld batch_size: %lld",
                   (long long)lengths->shape.dims[0], (long long)x->shape.dims[1]);
  for (int64_t b = 0; b < lengths->shape.dims[0]; b++)
    TFC_KERNEL_CHECK(tfc_tensor_int(lengths, b) <= x->shape.dims[0],
                     "sequence_length(%lld) is %lld, more than max_time %lld", (long long)b,
                     (long long)tfc_tensor_int(lengths, b), (long long)x->shape.dims[0]);
  return NULL;
}

// The labels of all sequences, one sequence after the other; ends[b] is where those of sequence b end.
struct decoded {
  TFC_ARRAY(int64_t) labels;
  int64_t *ends;
};
// Writes path `p` of `paths` to the outputs, as a sparse matrix.
static tfc_status put_decoded(struct tfc_kernel_ctx *ctx, const struct decoded *d, int64_t batch, uint32_t p,
                              uint32_t paths) {
  struct tfc_tensor *at = NULL, *values = NULL;
  int64_t n = (int64_t)d->labels.count, longest = 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, p, TFC_INT64, &TFC_SHAPE(n, 2), &at));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, paths + p, TFC_INT64, &TFC_SHAPE(n), &values));
  for (int64_t b = 0, i = 0; b < batch; b++) {
    int64_t begin = i;
    for (; i < d->ends[b]; i++) {
      ((int64_t *)at->data)[2 * i] = b;
      ((int64_t *)at->data)[2 * i + 1] = i - begin;
      ((int64_t *)values->data)[i] = d->labels.data[i];
    }
    if (i - begin > longest) longest = i - begin;
  }
  return ops_sparse_shape_output(ctx, 2 * paths + p, (int64_t[]){batch, longest}, 2);
}

// --- Greedy ----------------------------------------------------------------------------------------------------------
static tfc_status greedy(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *lengths = ctx->inputs[1];
  struct tfc_tensor *score = NULL;
  struct decoded d = {0};
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(check_inputs(ctx));
  int64_t batch = x->shape.dims[1], classes = x->shape.dims[2];
  bool merge = tfc_node_attr_bool(ctx->graph, ctx->node, "merge_repeated", false);
  int64_t blank = tfc_node_attr_int(ctx->graph, ctx->node, "blank_index", -1);
  if (blank < 0) blank += classes;
  TFC_KERNEL_CHECK(blank >= 0 && blank < classes, "blank_index is expected to be between %lld and %lld but was %lld",
                   (long long)-classes, (long long)classes - 1, (long long)blank);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 3, x->dtype, &TFC_SHAPE(batch, 1), &score));
  if (!(d.ends = calloc((size_t)batch + 1, sizeof *d.ends))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t b = 0; b < batch; b++) {
    int64_t previous = -1;
    OPS_SWITCH(OPS_FLOATS, x->dtype, {
      C sum = 0;
      for (int64_t t = 0; t < tfc_tensor_int(lengths, b); t++) {
        const S *row = (const S *)x->data + (t * batch + b) * classes;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
          if (OPS_GET(row[c]) > OPS_GET(row[best])) best = c;
        sum -= OPS_GET(row[best]);
        if (best != blank && !(merge && best == previous) && !tfc_array_push(&d.labels, best))
          TFC_TRY(s, tfc_status_no_memory(NULL));
        previous = best;
      }
      OPS_PUT(((S *)score->data)[b], sum);
    })
    d.ends[b] = (int64_t)d.labels.count;
  }
  TFC_TRY(s, put_decoded(ctx, &d, batch, 0, 1));
out:
  tfc_array_free(&d.labels);
  free(d.ends);
  return s;
}

// --- Beam search -----------------------------------------------------------------------------------------------------
// A beam is a node of a tree of labels, with log probabilities that its labels end in a blank, in the last label, or in
// either.
struct chances {
  double total, blank, label;
};
struct beam {
  struct beam *parent, *first_child, *next_sibling; // siblings: one for each label, all made at once
  int32_t label;
  struct chances old, new;
};
struct search {
  TFC_ARRAY(struct beam *) blocks; // each block has the children of one beam
  struct beam **leaves, **heap;    // [width]
  int64_t width, leaf_count, heap_count;
  bool narrow; // for float32: results are rounded after each operation
};
static const double never = -INFINITY;
static double rounded(const struct search *s, double x) {
  return s->narrow ? (double)(float)x : x;
}
static double log_sum(const struct search *s, double a, double b) {
  if (a == never) return b;
  if (b == never) return a;
  double high = a > b ? a : b, low = a > b ? b : a;
  if (s->narrow) return (double)((float)high + log1pf(expf((float)low - (float)high)));
  return high + log1p(exp(low - high));
}
static bool active(const struct beam *b) {
  return b->new.total != never;
}

static inline bool is_worse(const void *none, const struct beam *a, const struct beam *b) {
  (void)none;
  return a->new.total < b->new.total;
}
// Of the `width` best beams so far, the worst is the first of the heap.
TFC_HEAP(beams, struct beam *, const void *, is_worse)

// Adds a beam to the best. Returns the one that is no longer among them (which may be `b` itself), or NULL.
static struct beam *keep_best(struct search *s, struct beam *b) {
  if (s->heap_count < s->width) {
    beams_push(s->heap, (size_t)s->heap_count++, b, NULL);
    return NULL;
  }
  if (!(b->new.total > s->heap[0]->new.total)) return b; // of equal beams the earlier one stays
  struct beam *out = s->heap[0];
  beams_sink(s->heap, (size_t)s->heap_count, 0, b, NULL);
  return out;
}
static int by_total(const void *a, const void *b) { // best first
  double p = (*(struct beam *const *)a)->new.total, q = (*(struct beam *const *)b)->new.total;
  return (p < q) - (p > q);
}
// Makes the best beams the leaves, in descending order.
static void settle(struct search *s) {
  qsort(s->heap, (size_t)s->heap_count, sizeof *s->heap, by_total);
  memcpy(s->leaves, s->heap, (size_t)s->heap_count * sizeof *s->heap);
  s->leaf_count = s->heap_count;
}
static tfc_status make_children(struct search *s, struct beam *b, int32_t classes) {
  if (b->first_child) return NULL;
  struct beam *block = calloc((size_t)classes, sizeof *block);
  if (!block || !tfc_array_push(&s->blocks, block)) {
    free(block);
    return tfc_status_no_memory(NULL);
  }
  for (int32_t c = 0; c < classes - 1; c++) // for all labels but the blank
    block[c] = (struct beam){.parent = b,
                             .label = c,
                             .next_sibling = c + 2 < classes ? block + c + 1 : NULL,
                             .old = {never, never, never},
                             .new = {never, never, never}};
  b->first_child = block;
  return NULL;
}

// Searches one step: x [classes] are the scores, the last one that of the blank.
static tfc_status step(struct search *s, const double *x, int32_t classes) {
  const int32_t blank = classes - 1;
  double max = x[0], sum = 0;
  for (int32_t c = 1; c < classes; c++) max = x[c] > max ? x[c] : max;
  for (int32_t c = 0; c < classes; c++)
    sum = rounded(s, sum + (s->narrow ? (double)expf((float)(x[c] - max)) : exp(x[c] - max)));
  const double norm = rounded(s, max + (s->narrow ? (double)logf((float)sum) : log(sum)));
  s->heap_count = 0;
  for (int64_t i = 0; i < s->leaf_count; i++) s->leaves[i]->old = s->leaves[i]->new;
  for (int64_t i = 0; i < s->leaf_count; i++) {
    struct beam *b = s->leaves[i];
    if (b->parent) { // beams that keep their labels
      if (active(b->parent)) {
        const double previous = b->label == b->parent->label ? b->parent->old.blank : b->parent->old.total;
        b->new.label = log_sum(s, b->new.label, previous);
      }
      b->new.label = rounded(s, b->new.label + rounded(s, x[b->label] - norm));
    }
    b->new.blank = rounded(s, b->old.total + rounded(s, x[blank] - norm));
    b->new.total = log_sum(s, b->new.blank, b->new.label);
    keep_best(s, b);
  }
  for (int64_t i = 0; i < s->leaf_count; i++) { // beams that get one label more
    struct beam *b = s->leaves[i];
    if (b->old.total == never || (s->heap_count == s->width && b->old.total < s->heap[0]->new.total)) continue;
    TFC_RETURN_IF_ERROR(make_children(s, b, classes));
    for (struct beam *c = b->first_child; c; c = c->next_sibling) {
      if (active(c)) continue;
      c->new.blank = never;
      const double previous = c->label == b->label ? b->old.blank : b->old.total;
      c->new.label = rounded(s, rounded(s, x[c->label] - norm) + previous);
      c->new.total = c->new.label;
      if (s->heap_count == s->width && !(c->new.total > s->heap[0]->new.total)) {
        c->old = c->new = (struct chances){never, never, never};
        continue;
      }
      struct beam *out = keep_best(s, c);
      // no values in this step; those of the step before still count
      if (out) out->new = (struct chances){never, never, never};
    }
  }
  settle(s);
  return NULL;
}

static tfc_status push_path(struct decoded *d, const struct beam *b, bool merge) {
  size_t begin = d->labels.count;
  int32_t previous = -1;
  for (; b->parent; b = b->parent) {
    if (!merge || b->label != previous)
      if (!tfc_array_push(&d->labels, (int64_t)b->label)) return tfc_status_no_memory(NULL);
    previous = b->label;
  }
  for (size_t i = begin, j = d->labels.count; i + 1 < j; i++) {
    int64_t t = d->labels.data[i];
    d->labels.data[i] = d->labels.data[--j];
    d->labels.data[j] = t;
  }
  return NULL;
}

static tfc_status beam_search(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *lengths = ctx->inputs[1];
  struct tfc_tensor *score = NULL;
  struct decoded *paths = NULL;
  struct search search = {0};
  double *row = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(check_inputs(ctx));
  int64_t batch = x->shape.dims[1], classes = x->shape.dims[2];
  uint32_t top = (uint32_t)tfc_node_attr_int(ctx->graph, ctx->node, "top_paths", 1);
  bool merge = tfc_node_attr_bool(ctx->graph, ctx->node, "merge_repeated", true);
  search.width = tfc_node_attr_int(ctx->graph, ctx->node, "beam_width", 1);
  TFC_KERNEL_CHECK(search.width >= 1 && search.width <= INT32_MAX && classes <= INT32_MAX,
                   "a beam of %lld is not possible", (long long)search.width);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 3 * top, x->dtype, &TFC_SHAPE(batch, top), &score));
  paths = calloc(top, sizeof *paths);
  search.leaves = calloc((size_t)search.width, 2 * sizeof *search.leaves);
  row = malloc((size_t)classes * sizeof *row);
  if (!paths || !search.leaves || !row) TFC_TRY(s, tfc_status_no_memory(NULL));
  search.heap = search.leaves + search.width;
  search.narrow = x->dtype == TFC_FLOAT;
  for (uint32_t p = 0; p < top; p++)
    if (!(paths[p].ends = calloc((size_t)batch + 1, sizeof(int64_t)))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t b = 0; b < batch; b++) {
    struct beam root = {.label = -1, .old = {0, 0, never}, .new = {0, 0, never}};
    search.leaves[0] = &root;
    search.leaf_count = 1;
    for (int64_t t = 0; t < tfc_tensor_int(lengths, b); t++) {
      OPS_SWITCH(OPS_FLOATS, x->dtype, {
        const S *from = (const S *)x->data + (t * batch + b) * classes;
        for (int64_t c = 0; c < classes; c++) row[c] = (double)OPS_GET(from[c]);
      })
      TFC_TRY(s, step(&search, row, (int32_t)classes));
    }
    if (search.leaf_count < top)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "Less leaves in the beam search than requested. Have %lld leaves but requested %u "
               "paths for batch entry %lld.",
               (long long)search.leaf_count, top, (long long)b);
    for (uint32_t p = 0; p < top; p++) {
      TFC_TRY(s, push_path(&paths[p], search.leaves[p], merge));
      paths[p].ends[b] = (int64_t)paths[p].labels.count;
      OPS_SWITCH(OPS_FLOATS, x->dtype, { OPS_PUT(((S *)score->data)[b * top + p], search.leaves[p]->new.total); })
    }
    for (size_t i = 0; i < search.blocks.count; i++) free(search.blocks.data[i]);
    search.blocks.count = 0;
  }
  for (uint32_t p = 0; p < top; p++) TFC_TRY(s, put_decoded(ctx, &paths[p], batch, p, top));
out:
  for (size_t i = 0; i < search.blocks.count; i++) free(search.blocks.data[i]);
  tfc_array_free(&search.blocks);
  for (uint32_t p = 0; paths && p < top; p++) {
    tfc_array_free(&paths[p].labels);
    free(paths[p].ends);
  }
  free(paths);
  free(search.leaves);
  free(row);
  return s;
}

static tfc_status shape_decoded(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, lengths;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &lengths));
  int64_t batch;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[1], lengths.dims[0], &batch));
  uint32_t paths = ctx->node->output_count / 3;
  for (uint32_t p = 0; p < paths; p++) {
    ctx->outputs[p] = TFC_SHAPE(TFC_DIM_UNKNOWN, 2);
    ctx->outputs[paths + p] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[2 * paths + p] = TFC_SHAPE(2);
  }
  ctx->outputs[3 * paths] = TFC_SHAPE(batch, paths);
  return NULL;
}

// --- Edit distance (Levenshtein 1966) --------------------------------------------------------------------------------
// Whether element i of a equals element j of b.
static bool same(const struct tfc_tensor *a, int64_t i, const struct tfc_tensor *b, int64_t j) {
  if (a->dtype == TFC_STRING) return tfc_str_equal(tfc_tensor_get_string(a, i), tfc_tensor_get_string(b, j));
  if (!tfc_dtype_is_floating(a->dtype) && !tfc_dtype_is_complex(a->dtype)) {
    size_t size = tfc_dtype_size(a->dtype);
    return memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)j * size, size) == 0;
  }
  bool equal = false;
  OPS_SWITCH(OPS_FLOATS_COMPLEX, a->dtype,
             { equal = OPS_GET(((const S *)a->data)[i]) == OPS_GET(((const S *)b->data)[j]); })
  return equal;
}
// Returns the edit distance between a's elements [ai, ai + n) and b's [bj, bj + m); `row` has room for m + 1 numbers.
static int64_t distance(const struct tfc_tensor *a, int64_t ai, int64_t n, const struct tfc_tensor *b, int64_t bj,
                        int64_t m, int64_t *row) {
  for (int64_t j = 0; j <= m; j++) row[j] = j;
  for (int64_t i = 0; i < n; i++) {
    int64_t corner = row[0];
    row[0] = i + 1;
    for (int64_t j = 0; j < m; j++) {
      int64_t above = row[j + 1], best = corner + !same(a, ai + i, b, bj + j);
      if (above + 1 < best) best = above + 1;
      if (row[j] + 1 < best) best = row[j] + 1;
      corner = above;
      row[j + 1] = best;
    }
  }
  return row[m];
}

static tfc_status edit_distance(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse a, b;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  struct tfc_shape shape = {.rank = 0};
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, false, &a));
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 3, 4, 5, false, &b));
  TFC_KERNEL_CHECK(a.rank == b.rank && a.rank >= 1,
                   "Expected hypothesis_shape and truth_shape of one rank, got %d and %d", a.rank, b.rank);
  bool normalize = tfc_node_attr_bool(ctx->graph, ctx->node, "normalize", true);
  int groups = a.rank - 1;
  for (int d = 0; d < a.rank; d++)
    TFC_KERNEL_CHECK(a.dims[d] >= 0 && b.dims[d] >= 0, "Dimension %d must be >= 0: %lld, %lld", d, (long long)a.dims[d],
                     (long long)b.dims[d]);
  for (int d = 0; d < groups; d++) shape.dims[shape.rank++] = a.dims[d] > b.dims[d] ? a.dims[d] : b.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &shape, &y));
  float *out = y->data;
  memset(out, 0, y->size);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, ((size_t)b.count + 1) * sizeof(int64_t), &held));
  for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
    int c = i == a.count ? 1 : j == b.count ? -1 : ops_sparse_compare(a.at + i * a.rank, b.at + j * b.rank, groups);
    const int64_t *group = c <= 0 ? a.at + i * a.rank : b.at + j * b.rank;
    int64_t n = 0, m = 0, to = 0;
    for (int d = 0; d < groups; d++) { // the group must be inside the larger of both shapes
      if (group[d] < 0 || group[d] >= shape.dims[d])
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "index %lld is out of bounds: not in [0, %lld) in dimension %d",
                 (long long)group[d], (long long)shape.dims[d], d);
      to = to * shape.dims[d] + group[d];
    }
    if (c <= 0)
      while (i + n < a.count && ops_sparse_compare(group, a.at + (i + n) * a.rank, groups) == 0) n++;
    if (c >= 0)
      while (j + m < b.count && ops_sparse_compare(group, b.at + (j + m) * b.rank, groups) == 0) m++;
    if (n && m)
      out[to] = (float)distance(a.values, i, n, b.values, j, m, held->data) / (normalize ? (float)m : 1);
    else if (n)
      out[to] = normalize ? INFINITY : (float)n;
    else
      out[to] = normalize ? 1 : (float)m;
    i += n, j += m;
  }
out:
  tfc_buffer_release(held);
  return s;
}

// The output's shape is known if both shapes are.
static tfc_status shape_distance(struct tfc_shape_ctx *ctx) {
  int64_t a[TFC_MAX_RANK], b[TFC_MAX_RANK];
  int n = 0, m = 0;
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (!ops_known_ints(ctx, 2, a, TFC_MAX_RANK, &n) || !ops_known_ints(ctx, 5, b, TFC_MAX_RANK, &m)) return NULL;
  if (n != m || n < 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "Num elements of hypothesis_shape does not match truth_shape: %d vs. %d", n, m);
  ctx->outputs[0].rank = n - 1;
  for (int d = 0; d < n - 1; d++) ctx->outputs[0].dims[d] = a[d] > b[d] ? a[d] : b[d];
  return NULL;
}

#define CTC_SAMPLE "float[4,2,3], int32[2]=[4,3]"
static const struct tfc_op_def nn_ctc_decode_rows[] = {
    {.name = "CTCGreedyDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs = "decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T",
     .attrs = "merge_repeated: bool = false, blank_index: int = -1, T: {float, double} = float",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE),
     .shape = shape_decoded,
     .kernel = greedy,
     .samples = CTC_SAMPLE},
    {.name = "CTCBeamSearchDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs =
         "decoded_indices: top_paths * int64, decoded_values: top_paths * int64, decoded_shape: top_paths * int64, "
         "log_probability: T",
     .attrs = "beam_width: int >= 1, top_paths: int >= 1, merge_repeated: bool = true, T: {float, double} = float",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE),
     .shape = shape_decoded,
     .kernel = beam_search,
     .samples = CTC_SAMPLE " {beam_width=3,top_paths=2}"},
    {.name = "EditDistance",
     .inputs = "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
               "truth_values: T, truth_shape: int64",
     .outputs = "output: float",
     .attrs = "normalize: bool = true, T: type",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_distance,
     .kernel = edit_distance,
     .samples = "int64[2,2]=[0,0,1,0], int32[2], int64[2]=[2,2], int64[2,2]=[0,0,0,1], int32[2], int64[2]=[2,2]"},
};
TFC_REGISTER_OPS(nn_ctc_decode_rows);
