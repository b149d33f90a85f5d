// Datasets whose function makes a dataset of each element (flat map, interleave), and windows, whose elements are
// datasets.
#include "runtime/ops/data_dataset.h"

// --- Flat map, interleave ----------------------------------------------------------------------------------------
// Up to n[CYCLE] datasets are open at once. n[BLOCK] elements are taken from one of them, then from the next one. If a
// dataset has ended, a new one takes its place when its turn comes again. Flat map is an interleave with one open
// dataset.
enum { CYCLE, BLOCK };
struct cycle {
  struct tfc_dataset_iterator **open; // [n[CYCLE]]; grows as places are first used
  int64_t room, opened, at, given;    // given: elements that the current place has given in this turn
  bool ended;                         // the input dataset has ended
};

static void cycle_end(struct tfc_dataset_iterator *it) {
  struct cycle *c = tfc_dataset_state(it);
  for (int64_t i = 0; i < c->room; i++) tfc_dataset_close(c->open[i]);
  free(c->open);
}
static void advance(struct cycle *c, const struct tfc_dataset *d) {
  c->given = 0;
  c->at = (c->at + 1) % d->n[CYCLE];
}
// Calls the function with the next element and opens the dataset that it returns, in the current place.
static tfc_status open_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  struct cycle *c = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  const uint32_t count = d->inputs[0]->parts;
  struct tfc_tensor *in = tfc_dataset_parts(count), made = {0};
  struct tfc_dataset *inner = NULL;
  tfc_status s = NULL;
  if (!in) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (c->at >= c->room) {
    const int64_t room = c->at + 1 > 2 * c->room ? c->at + 1 : 2 * c->room;
    struct tfc_dataset_iterator **grown = realloc(c->open, (size_t)room * sizeof *grown);
    if (!grown) TFC_TRY(s, tfc_status_no_memory(NULL));
    memset(grown + c->room, 0, (size_t)(room - c->room) * sizeof *grown);
    c->open = grown, c->room = room;
  }
  TFC_TRY(s, tfc_dataset_next(ctx, it->inputs[0], in, &c->ended));
  if (c->ended) goto out;
  TFC_TRY(s, tfc_dataset_call(ctx, d, in, count, &made, 1));
  TFC_TRY(s, tfc_status_annotate(tfc_dataset_of(&made, &inner), "dataset '%s': its function", d->node));
  if (inner->parts != d->parts)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "dataset '%s': its function makes elements of %u components, not %u", d->node,
             inner->parts, d->parts);
  TFC_TRY(s, tfc_dataset_open(ctx, inner, &c->open[c->at]));
  c->opened++;
out:
  tfc_dataset_parts_free(in, count);
  tfc_tensor_release(&made);
  return s;
}
static tfc_status cycle_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  struct cycle *c = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  while (!c->ended || c->opened > 0) {
    if (c->at >= c->room || !c->open[c->at]) {
      if (!c->ended)
        TFC_RETURN_IF_ERROR(open_next(ctx, it));
      else
        advance(c, d);
      if (c->ended && c->opened == 0) break;
      continue;
    }
    TFC_RETURN_IF_ERROR(tfc_dataset_next(ctx, c->open[c->at], parts, ended));
    if (!*ended) {
      if (++c->given == d->n[BLOCK]) advance(c, d);
      return NULL;
    }
    tfc_dataset_close(c->open[c->at]);
    c->open[c->at] = NULL;
    c->opened--;
    advance(c, d);
  }
  *ended = true;
  return NULL;
}
static const struct tfc_dataset_kind flat_map_kind = {
    .name = "FlatMap", .state = sizeof(struct cycle), .next = cycle_next, .end = cycle_end};
static const struct tfc_dataset_kind interleave_kind = {
    .name = "Interleave", .state = sizeof(struct cycle), .next = cycle_next, .end = cycle_end};

// `numbers`: how many inputs follow the captured ones; the first two of them are cycle_length and block_length.
static tfc_status make_cycle(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind, uint32_t numbers) {
  struct tfc_dataset *d = NULL;
  int64_t cycle = 1, block = INT64_MAX;
  const uint32_t captured = ctx->input_count - 1 - numbers;
  if (numbers) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1 + captured, "cycle_length", &cycle));
  if (numbers) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 2 + captured, "block_length", &block));
  enum { MOST_OPEN = 1 << 20 };
  if (numbers > 2 && cycle == -1)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a cycle_length that TensorFlow chooses by the machine's cores");
  TFC_KERNEL_CHECK(cycle > 0 && cycle <= MOST_OPEN, "cycle_length must be greater than zero.");
  TFC_KERNEL_CHECK(block > 0, "block_length must be greater than zero.");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, 1, 1, captured, &d));
  d->n[CYCLE] = cycle, d->n[BLOCK] = block;
  tfc_status s = tfc_dataset_set_function(ctx, "f", d);
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}
static tfc_status flat_map(struct tfc_kernel_ctx *ctx) {
  return make_cycle(ctx, &flat_map_kind, 0);
}
static tfc_status interleave(struct tfc_kernel_ctx *ctx) {
  return make_cycle(ctx, &interleave_kind, 2);
}
static tfc_status interleave_v2(struct tfc_kernel_ctx *ctx) { // has the further input num_parallel_calls
  return make_cycle(ctx, &interleave_kind, 3);
}
static tfc_status interleave_v4(struct tfc_kernel_ctx *ctx) {
  // Has num_parallel_calls and two buffer sizes as further inputs.
  return make_cycle(ctx, &interleave_kind, 5);
}

// --- Windows -----------------------------------------------------------------------------------------------------
// A window is a dataset that gives the elements that it holds.
static tfc_status held_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                            bool *ended) {
  uint32_t *at = tfc_dataset_state(it);
  (void)ctx;
  *ended = *at == it->dataset->tensor_count;
  if (!*ended) tfc_tensor_share(&it->dataset->tensors[(*at)++], &parts[0]);
  return NULL;
}
static const struct tfc_dataset_kind held_kind = {.name = "Window", .state = sizeof(uint32_t), .next = held_next};

enum { SIZE, SHIFT, STRIDE, DROP }; // indices into a dataset's numbers `n`
struct window {
  struct tfc_dataset_elements waiting;
  bool ended;
};
static void window_end(struct tfc_dataset_iterator *it) {
  tfc_dataset_elements_free(&((struct window *)tfc_dataset_state(it))->waiting);
}

// Makes a dataset of component `part` of the waiting elements, taking every n[STRIDE]th.
static tfc_status window_of(struct tfc_kernel_ctx *ctx, const struct tfc_dataset *d, const struct window *w,
                            uint32_t part, struct tfc_tensor *out) {
  struct tfc_dataset *held = NULL;
  const size_t each = d->inputs[0]->parts, waiting = w->waiting.items.count / each;
  const int64_t stride = d->n[STRIDE];
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_VARIANT, &TFC_SHAPE_SCALAR, out));
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &held_kind, 0, 0, 0, &held));
  *(struct tfc_object **)out->data = &held->object;
  const size_t count = 1 + (waiting - 1) / (size_t)stride;
  struct tfc_tensor *elements = count < UINT32_MAX ? tfc_dataset_parts((uint32_t)count) : NULL;
  if (!elements) return tfc_status_no_memory("a window");
  for (size_t i = 0; i < count; i++)
    tfc_tensor_share(&w->waiting.items.data[i * (size_t)stride * each + part], &elements[i]);
  free(held->tensors);
  held->tensors = elements;
  held->tensor_count = (uint32_t)count;
  held->parts = 1;
  held->types[0] = elements[0].dtype;
  held->depth = d->depth;
  return NULL;
}
static tfc_status window_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  struct window *w = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  const uint32_t each = d->inputs[0]->parts;
  const int64_t target = (d->n[SIZE] - 1) * d->n[STRIDE] + 1;
  while (!w->ended && (int64_t)(w->waiting.items.count / each) < target)
    TFC_RETURN_IF_ERROR(tfc_dataset_gather(ctx, it->inputs[0], &w->waiting, &w->ended));
  const size_t count = w->waiting.items.count / each;
  *ended = count == 0 || (d->n[DROP] && (int64_t)count < target);
  if (*ended) return NULL;
  for (uint32_t p = 0; p < d->parts; p++) TFC_RETURN_IF_ERROR(window_of(ctx, d, w, p, &parts[p]));
  const size_t gone = d->n[SHIFT] < (int64_t)count ? (size_t)d->n[SHIFT] : count;
  struct tfc_tensor *items = w->waiting.items.data;
  tfc_dataset_parts_clear(items, gone * each);
  w->waiting.items.count -= gone * each;
  memmove(items, items + gone * each, w->waiting.items.count * sizeof *items);
  for (int64_t i = (int64_t)count; i < d->n[SHIFT] && !w->ended; i++) { // skip the elements between two windows
    TFC_RETURN_IF_ERROR(tfc_dataset_gather(ctx, it->inputs[0], &w->waiting, &w->ended));
    tfc_dataset_parts_clear(w->waiting.items.data, w->waiting.items.count);
    w->waiting.items.count = 0;
  }
  return NULL;
}
static const struct tfc_dataset_kind window_kind = {
    .name = "Window", .state = sizeof(struct window), .next = window_next, .end = window_end};

static tfc_status window(struct tfc_kernel_ctx *ctx) {
  static const char *const names[] = {"size", "shift", "stride", "drop_remainder"};
  struct tfc_dataset *d = NULL;
  int64_t n[4], most;
  for (uint32_t i = 0; i < 4; i++) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, i + 1, names[i], &n[i]));
  TFC_KERNEL_CHECK(n[SIZE] > 0, "Window size must be greater than zero.");
  TFC_KERNEL_CHECK(n[SHIFT] > 0, "Window shift must be greater than zero.");
  TFC_KERNEL_CHECK(n[STRIDE] > 0, "Window stride must be greater than zero.");
  TFC_KERNEL_CHECK(!__builtin_mul_overflow(n[SIZE], n[STRIDE], &most), "the window is too large");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &window_kind, 1, 0, 0, &d));
  memcpy(d->n, n, sizeof n);
  tfc_status s = d->parts == d->inputs[0]->parts && d->parts > 0
                     ? NULL
                     : tfc_status_make(TFC_INVALID_ARGUMENT, "a window has as many components as what it is over");
  for (uint32_t i = 0; i < d->parts && !s; i++)
    if (d->types[i] != TFC_VARIANT) s = tfc_status_make(TFC_INVALID_ARGUMENT, "components of windows are datasets");
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}

#define KINDS TFC_DATASET_KINDS
#define MORE TFC_DATASET_MORE
#define ROW TFC_DATASET_ROW
static const struct tfc_op_def data_dataset_nested_rows[] = {
    ROW("FlatMapDataset", "input_dataset: variant, other_arguments: Targuments",
        "f: func, Targuments: list(type) >= 0, " KINDS MORE, flat_map),
    ROW("InterleaveDataset",
        "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64",
        "f: func, Targuments: list(type) >= 0, " KINDS MORE, interleave),
    ROW("ParallelInterleaveDatasetV2",
        "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
        "num_parallel_calls: int64",
        "f: func, Targuments: list(type) >= 0, " KINDS ", sloppy: bool = false" MORE, interleave_v2),
    ROW("ParallelInterleaveDatasetV3",
        "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
        "num_parallel_calls: int64",
        "f: func, deterministic: string = 'default', Targuments: list(type) >= 0, " KINDS MORE, interleave_v2),
    ROW("ParallelInterleaveDatasetV4",
        "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
        "buffer_output_elements: int64, prefetch_input_elements: int64, num_parallel_calls: int64",
        "f: func, deterministic: string = 'default', Targuments: list(type) >= 0, " KINDS MORE, interleave_v4),
    ROW("WindowDataset", "input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool",
        KINDS MORE, window),
};
TFC_REGISTER_OPS(data_dataset_nested_rows);
