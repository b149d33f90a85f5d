// Non-maximum suppression: boxes are chosen by score, the best first. A box that overlaps a better one too far
// (intersection over union) is dropped or, in "Soft-NMS" (Bodla et al. 2017), gets a lower score the more it overlaps.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/heap.h"
#include "runtime/ops/image_scale.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

struct scored {
  float score;
  int32_t box, compared; // compared: how many of the chosen boxes this one was compared with
};
// Whether box `a` is better than `b`: of two with equal scores, the one that comes first.
static inline bool better(const void *none, struct scored a, struct scored b) {
  (void)none;
  return a.score != b.score ? a.score > b.score : a.box < b.box;
}
TFC_HEAP(boxes, struct scored, const void *, better)

// Like C++'s std::min and std::max, these give the first operand if one is NaN.
static float less(float a, float b) {
  return b < a ? b : a;
}
static float more(float a, float b) {
  return a < b ? b : a;
}
static float overlap(const float *a, const float *b) { // a box is given by any two opposite corners
  float ay[2] = {less(a[0], a[2]), more(a[0], a[2])}, ax[2] = {less(a[1], a[3]), more(a[1], a[3])};
  float by[2] = {less(b[0], b[2]), more(b[0], b[2])}, bx[2] = {less(b[1], b[3]), more(b[1], b[3])};
  float area_a = (ay[1] - ay[0]) * (ax[1] - ax[0]), area_b = (by[1] - by[0]) * (bx[1] - bx[0]);
  if (area_a <= 0 || area_b <= 0) return 0;
  float height = more(less(ay[1], by[1]) - more(ay[0], by[0]), 0);
  float width = more(less(ax[1], bx[1]) - more(ax[0], bx[0]), 0);
  float both = height * width;
  return both / (area_a + area_b - both);
}

struct suppression {
  const float *boxes;    // [n, 4]; if NULL, `overlaps` is given instead
  const float *overlaps; // [n, n]
  int64_t n, most;
  float threshold, least, sigma; // sigma 0: boxes that overlap too far are dropped
  bool half;                     // scores are kept in half precision
};
static float similarity(const struct suppression *p, int32_t a, int32_t b) {
  return p->overlaps ? p->overlaps[a * p->n + b] : overlap(p->boxes + 4 * a, p->boxes + 4 * b);
}
static float stored(const struct suppression *p, float x) {
  // As in TensorFlow, every step is rounded to the type of the scores.
  return p->half ? tfc_half_to_float(tfc_float_to_half(x)) : x;
}
// Chooses among the candidates in heap [n]; chosen and scores have room for p->most. Returns how many were chosen.
static int64_t suppress(const struct suppression *p, struct scored *heap, size_t count, int32_t *chosen,
                        float *scores) {
  int64_t kept = 0;
  float scale = p->sigma > 0 ? stored(p, -0.5f / p->sigma) : 0;
  for (size_t i = count / 2; i-- > 0;) boxes_sink(heap, count, i, heap[i], NULL);
  while (kept < p->most && count > 0) {
    struct scored next = boxes_pop(heap, count--, NULL);
    float before = next.score;
    bool dropped = false;
    for (int64_t j = kept; !dropped && j-- > next.compared;) {
      float s = stored(p, similarity(p, next.box, chosen[j]));
      if (p->sigma > 0) {
        next.score = stored(p, next.score * stored(p, expf(stored(p, stored(p, scale * s) * s))));
        if (next.score <= p->least) break;
      } else {
        dropped = s > p->threshold;
        if (isnan(s)) next.score = 0;
        if (next.score <= p->least) break;
      }
    }
    next.compared = (int32_t)kept;
    if (dropped) continue;
    if (next.score == before) {
      chosen[kept] = next.box;
      scores[kept++] = next.score;
    } else if (next.score > p->least) {
      boxes_push(heap, count++, next, NULL);
    }
  }
  return kept;
}

struct suppression_state {
  float threshold;
  bool padded, per_class, clipped;
};
static tfc_status prepare_suppression(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct suppression_state, state);
  state->threshold = (float)tfc_node_attr_float(ctx->graph, ctx->node, "iou_threshold", 0.5);
  state->padded = tfc_node_attr_bool(ctx->graph, ctx->node, "pad_to_max_output_size", false);
  state->per_class = tfc_node_attr_bool(ctx->graph, ctx->node, "pad_per_class", false);
  state->clipped = tfc_node_attr_bool(ctx->graph, ctx->node, "clip_boxes", true);
  return NULL;
}
static void put(struct tfc_tensor *t, int64_t i, float value) {
  if (t->dtype == TFC_HALF)
    ((uint16_t *)t->data)[i] = tfc_float_to_half(value);
  else
    ((float *)t->data)[i] = value;
}

// Inputs: boxes [n, 4] or overlaps [n, n], scores [n], the most boxes to choose, threshold, least score, sigma.
static tfc_status non_max_suppression(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *boxes = ctx->inputs[0], *scores = ctx->inputs[1];
  const struct suppression_state *state = ctx->state;
  bool overlaps = tfc_str_is(ctx->node->op, "NonMaxSuppressionWithOverlaps");
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  int64_t n = boxes->shape.rank > 0 ? boxes->shape.dims[0] : 0, width = overlaps ? n : 4, count = 0;
  if (overlaps)
    TFC_KERNEL_CHECK(boxes->shape.rank == 2 && boxes->shape.dims[1] == n, "overlaps must be square");
  else
    TFC_KERNEL_CHECK(boxes->shape.rank == 2 && boxes->shape.dims[1] == 4, "boxes must have shape [n, 4]");
  TFC_KERNEL_CHECK(scores->shape.rank == 1 && tfc_tensor_elements(scores) == n, "scores has incompatible shape");
  for (uint32_t i = 2; i < ctx->input_count; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be 0-D, its rank is %d", i,
                     ctx->inputs[i]->shape.rank);
  struct suppression p = {.n = n,
                          .most = tfc_tensor_int(ctx->inputs[2], 0),
                          .threshold = ctx->input_count > 3 ? ops_pixel(ctx->inputs[3], 0) : state->threshold,
                          .least = ctx->input_count > 4 ? ops_pixel(ctx->inputs[4], 0) : -INFINITY,
                          .sigma = ctx->input_count > 5 ? ops_pixel(ctx->inputs[5], 0) : 0,
                          .half = scores->dtype == TFC_HALF};
  TFC_KERNEL_CHECK(p.most >= 0, "max_output_size must be non-negative");
  TFC_KERNEL_CHECK(overlaps || (p.threshold >= 0 && p.threshold <= 1), "iou_threshold must be in [0, 1]");
  TFC_KERNEL_CHECK(p.sigma >= 0, "soft_nms_sigma must be at least 0");
  int64_t given = state->padded ? p.most : p.most < n ? p.most : n;
  p.most = given < n ? given : n;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)n * (sizeof(struct scored) + 4 * (size_t)width + 8) + 16, &held));
  struct scored *heap = held->data;
  float *corners = (float *)(heap + n), *chosen_scores = corners + n * width;
  int32_t *chosen = (int32_t *)(chosen_scores + n);
  for (int64_t i = 0; i < n * width; i++) corners[i] = ops_pixel(boxes, i);
  p.boxes = corners;
  p.overlaps = overlaps ? corners : NULL;
  for (int64_t i = 0; i < n; i++) {
    float score = ops_pixel(scores, i);
    if (score > p.least) heap[count++] = (struct scored){score, (int32_t)i, 0};
  }
  int64_t kept = suppress(&p, heap, (size_t)count, chosen, chosen_scores), size = state->padded ? given : kept;
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE(size), &y));
  for (int64_t i = 0; i < size; i++) ((int32_t *)y->data)[i] = i < kept ? chosen[i] : 0;
  if (ctx->output_count > 2) {
    TFC_TRY(s, tfc_kernel_output(ctx, 1, scores->dtype, &TFC_SHAPE(size), &y));
    for (int64_t i = 0; i < size; i++) put(y, i, i < kept ? chosen_scores[i] : 0);
  }
  if (ctx->output_count > 1) {
    TFC_TRY(s, tfc_kernel_output(ctx, ctx->output_count - 1, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
    *(int32_t *)y->data = (int32_t)kept;
  }
out:
  tfc_buffer_release(held);
  return s;
}

// --- CombinedNonMaxSuppression -------------------------------------------------------------------------------------
struct detection {
  float score;
  int32_t box, class_;
};
static int best_first(const void *a, const void *b) {
  const struct detection *p = a, *q = b;
  if (p->score != q->score) return p->score > q->score ? -1 : 1;
  if (p->class_ != q->class_) return p->class_ < q->class_ ? -1 : 1;
  return (p->box > q->box) - (p->box < q->box);
}
// Inputs: boxes [batch, n, 1 or classes, 4], scores [batch, n, classes], the most boxes of a class, the most boxes of
// an image, threshold, least score.
// Outputs: boxes [batch, m, 4], scores [batch, m], classes [batch, m], how many boxes are valid [batch].
static tfc_status combined(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *boxes = ctx->inputs[0], *scores = ctx->inputs[1];
  const struct suppression_state *state = ctx->state;
  struct tfc_tensor *out[4] = {0};
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(boxes->shape.rank == 4, "boxes must be 4-D, its shape is %s",
                   tfc_shape_show(&boxes->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(scores->shape.rank == 3, "scores must be 3-D, its shape is %s",
                   tfc_shape_show(&scores->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (uint32_t i = 2; i < 6; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be 0-D, its rank is %d", i,
                     ctx->inputs[i]->shape.rank);
  int64_t batch = boxes->shape.dims[0], n = boxes->shape.dims[1], sets = boxes->shape.dims[2];
  int64_t classes = scores->shape.dims[2], most = tfc_tensor_int(ctx->inputs[2], 0);
  int64_t total = tfc_tensor_int(ctx->inputs[3], 0);
  float threshold = ((const float *)ctx->inputs[4]->data)[0], least = ((const float *)ctx->inputs[5]->data)[0];
  TFC_KERNEL_CHECK(scores->shape.dims[0] == batch, "boxes and scores must have same batch size");
  TFC_KERNEL_CHECK(scores->shape.dims[1] == n, "scores has incompatible shape");
  TFC_KERNEL_CHECK(boxes->shape.dims[3] == 4, "boxes must have 4 columns");
  TFC_KERNEL_CHECK(sets == 1 || sets == classes, "third dimension of boxes must be either 1 or num classes");
  TFC_KERNEL_CHECK(most > 0, "max_size_per_class must be positive");
  TFC_KERNEL_CHECK(total > 0, "max_total_size must be > 0");
  TFC_KERNEL_CHECK(threshold >= 0 && threshold <= 1, "iou_threshold must be in [0, 1]");
  int64_t size = state->per_class && most < (total + classes - 1) / (classes ? classes : 1) ? most * classes : total;
  if (state->per_class && !classes) size = 0;
  if (most > n) most = n;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(batch, size, 4), &out[0]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_FLOAT, &TFC_SHAPE(batch, size), &out[1]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_FLOAT, &TFC_SHAPE(batch, size), &out[2]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 3, TFC_INT32, &TFC_SHAPE(batch), &out[3]));
  for (int i = 0; i < 3; i++)
    if (out[i]->size) memset(out[i]->data, 0, out[i]->size);
  TFC_TRY(s, tfc_kernel_scratch(ctx,
                                (size_t)n * (sizeof(struct scored) + 24) +
                                    (size_t)(most * classes) * sizeof(struct detection) + 16,
                                &held));
  struct detection *found = held->data;
  struct scored *heap = (struct scored *)(found + most * classes);
  float *corners = (float *)(heap + n), *chosen_scores = corners + 4 * n;
  int32_t *chosen = (int32_t *)(chosen_scores + n);
  for (int64_t b = 0; b < batch; b++) {
    const float *all = (const float *)boxes->data + b * n * sets * 4;
    int64_t found_count = 0;
    for (int64_t c = 0; c < classes; c++) {
      int64_t count = 0;
      for (int64_t i = 0; i < n; i++) {
        float score = ((const float *)scores->data)[(b * n + i) * classes + c];
        if (score > least) heap[count++] = (struct scored){score, (int32_t)i, 0};
        memcpy(corners + 4 * i, all + (i * sets + (sets > 1 ? c : 0)) * 4, 16);
      }
      struct suppression p = {.boxes = corners, .n = n, .most = most, .threshold = threshold, .least = least};
      int64_t kept = suppress(&p, heap, (size_t)count, chosen, chosen_scores);
      for (int64_t i = 0; i < kept; i++)
        found[found_count++] = (struct detection){chosen_scores[i], chosen[i], (int32_t)c};
    }
    qsort(found, (size_t)found_count, sizeof *found, best_first);
    if (found_count > size) found_count = size;
    for (int64_t i = 0; i < found_count; i++) {
      const float *box = all + (found[i].box * sets + (sets > 1 ? found[i].class_ : 0)) * 4;
      for (int k = 0; k < 4; k++)
        ((float *)out[0]->data)[(b * size + i) * 4 + k] = state->clipped ? more(less(box[k], 1), 0) : box[k];
      ((float *)out[1]->data)[b * size + i] = found[i].score;
      ((float *)out[2]->data)[b * size + i] = (float)found[i].class_;
    }
    ((int32_t *)out[3]->data)[b] = (int32_t)found_count;
  }
out:
  tfc_buffer_release(held);
  return s;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_suppression(struct tfc_shape_ctx *ctx) {
  struct tfc_shape boxes, scores;
  int64_t most = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &boxes));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &scores));
  for (uint32_t i = 2; i < ctx->node->input_count; i++) {
    struct tfc_shape scalar;
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 0, &scalar));
  }
  if (!tfc_node_attr_bool(ctx->graph, ctx->node, "pad_to_max_output_size", false) || !ops_known_int(ctx, 2, &most))
    most = TFC_DIM_UNKNOWN;
  if (most < TFC_DIM_UNKNOWN) return tfc_status_make(TFC_INVALID_ARGUMENT, "max_output_size must be non-negative");
  ctx->outputs[0] = TFC_SHAPE(most);
  if (ctx->node->output_count > 2) ctx->outputs[1] = TFC_SHAPE(most);
  if (ctx->node->output_count > 1) ctx->outputs[ctx->node->output_count - 1] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_combined(struct tfc_shape_ctx *ctx) {
  struct tfc_shape boxes, scores;
  int64_t most, total, size = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &boxes));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 3, &scores));
  if (ops_known_int(ctx, 3, &total)) {
    if (total <= 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "max_total_size should be > 0");
    size = total;
    if (tfc_node_attr_bool(ctx->graph, ctx->node, "pad_per_class", false)) {
      bool known = ops_known_int(ctx, 2, &most) && most > 0 && scores.dims[2] >= 0;
      if (!known)
        size = TFC_DIM_UNKNOWN;
      else if (scores.dims[2] == 0 || most < (total + scores.dims[2] - 1) / scores.dims[2])
        size = most * scores.dims[2];
    }
  }
  ctx->outputs[0] = TFC_SHAPE(boxes.dims[0], size, 4);
  ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE(boxes.dims[0], size);
  ctx->outputs[3] = TFC_SHAPE(boxes.dims[0]);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define SUPPRESSION                                                                                                    \
  .flags = TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_suppression, .cost = ops_cost_inputs,                             \
  .prepare = prepare_suppression, .kernel = non_max_suppression
#define SUPPRESSION_TYPES "T: {half, float} = float, T_threshold: {half, float} = float"
static const struct tfc_op_def image_suppress_rows[] = {
    {.name = "NonMaxSuppression",
     .inputs = "boxes: float, scores: float, max_output_size: int32",
     .outputs = "selected_indices: int32",
     .attrs = "iou_threshold: float = 0.5",
     SUPPRESSION,
     .host_inputs = 4,
     .samples = "float[3,4], float[3], int32[]=2"},
    {.name = "NonMaxSuppressionV2",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = SUPPRESSION_TYPES,
     SUPPRESSION,
     .host_inputs = 12,
     .samples = "float[3,4], float[3], int32[]=2, float[]=0.5"},
    {.name = "NonMaxSuppressionV3",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = SUPPRESSION_TYPES,
     SUPPRESSION,
     .host_inputs = 28,
     .samples = "float[3,4], float[3], int32[]=2, float[]=0.5, float[]=0"},
    {.name = "NonMaxSuppressionV4",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
     .outputs = "selected_indices: int32, valid_outputs: int32",
     .attrs = SUPPRESSION_TYPES ", pad_to_max_output_size: bool = false",
     SUPPRESSION,
     .host_inputs = 28,
     .samples = "float[3,4], float[3], int32[]=2, float[]=0.5, float[]=0 {pad_to_max_output_size=true}"},
    {.name = "NonMaxSuppressionV5",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T",
     .outputs = "selected_indices: int32, selected_scores: T, valid_outputs: int32",
     .attrs = "T: {half, float} = float, pad_to_max_output_size: bool = false",
     SUPPRESSION,
     .host_inputs = 60,
     .samples = "float[3,4], float[3], int32[]=2, float[]=0.5, float[]=0, float[]=0.5"},
    {.name = "NonMaxSuppressionWithOverlaps",
     .inputs = "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
               "score_threshold: float",
     .outputs = "selected_indices: int32",
     .attrs = "",
     SUPPRESSION,
     .host_inputs = 28,
     .samples = "float[3,3], float[3], int32[]=2, float[]=0.5, float[]=0"},
    {.name = "CombinedNonMaxSuppression",
     .inputs = "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
               "iou_threshold: float, score_threshold: float",
     .outputs = "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: int32",
     .attrs = "pad_per_class: bool = false, clip_boxes: bool = true",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 60,
     .shape = shape_combined,
     .cost = ops_cost_inputs,
     .prepare = prepare_suppression,
     .kernel = combined,
     .samples = "float[2,4,1,4], float[2,4,3], int32[]=2, int32[]=5, float[]=0.5, float[]=0"},
};
TFC_REGISTER_OPS(image_suppress_rows);
