// Shuffled datasets, in TensorFlow's order for the same seeds.
//
// A buffer has places for the elements that were read; the places of one epoch are a slice of it. The next element is a
// random one of the first slice. An iterator's random numbers come from Philox. Its seeds are either two new numbers of
// the dataset's own generator for each epoch, so that iterations differ, or always the dataset's seeds.
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/random_philox.h"

enum { SIZE, TIMES, RESHUFFLE }; // indices into n; TIMES -1: for ever
enum { MOST_EPOCHS = 3 };        // epochs that may be in the buffer at once

struct numbers { // hands out the four numbers of a draw one by one
  struct tfc_philox philox;
  uint32_t drawn[4], left;
};
static void seed(struct numbers *r, uint64_t low, uint64_t high) {
  *r = (struct numbers){.philox = tfc_philox_seed(low, high)};
}
static uint32_t number(struct numbers *r) {
  if (!r->left) {
    tfc_philox_draw(&r->philox, r->drawn);
    r->left = 4;
  }
  return r->drawn[4 - r->left--];
}

struct seeds { // shared by all iterators over a dataset
  uint64_t low, high;
  struct numbers of_epochs;
};
struct slice { // an epoch's places: positions that are taken modulo the size of the buffer
  int64_t begin, end;
};
struct shuffle {
  struct numbers numbers;
  TFC_ARRAY(struct tfc_tensor *) places; // [used]; NULL: the place is free
  TFC_ARRAY(struct slice) slices;
  int64_t held, epoch;
  bool any; // an element was ever read
};

static void next_seeds(struct tfc_dataset_iterator *it) {
  struct shuffle *s = tfc_dataset_state(it);
  struct tfc_dataset *d = it->dataset;
  struct seeds *shared = tfc_dataset_shared(d);
  uint64_t low = shared->low, high = shared->high;
  pthread_mutex_lock(&d->lock);
  if (d->n[RESHUFFLE]) {
    low = number(&shared->of_epochs);
    high = number(&shared->of_epochs);
  }
  pthread_mutex_unlock(&d->lock);
  seed(&s->numbers, low, high);
}

static tfc_status begin(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  (void)ctx;
  next_seeds(it);
  return NULL;
}
static void end(struct tfc_dataset_iterator *it) {
  struct shuffle *s = tfc_dataset_state(it);
  for (size_t i = 0; i < s->places.count; i++)
    if (s->places.data[i]) tfc_dataset_parts_free(s->places.data[i], it->dataset->parts);
  tfc_array_free(&s->places);
  tfc_array_free(&s->slices);
}

static tfc_status put(struct tfc_dataset_iterator *it, struct tfc_tensor *element) {
  struct shuffle *s = tfc_dataset_state(it);
  struct slice *last = &s->slices.data[s->slices.count - 1];
  const size_t at = (size_t)(last->end % it->dataset->n[SIZE]);
  if (at >= s->places.count && !tfc_array_resize(&s->places, at + 1))
    return tfc_status_no_memory("the buffer of a shuffle");
  s->places.data[at] = element;
  last->end++;
  s->held++;
  return NULL;
}

// Reads until the buffer is full or there is no more to read.
static tfc_status fill(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  struct shuffle *s = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  const int64_t times = d->n[TIMES];
  while (s->held < d->n[SIZE] && !(s->slices.count > MOST_EPOCHS && s->held > 0)) {
    bool ended = false;
    if (!it->inputs[0] || s->epoch == 0) {
      if (times >= 0 && s->epoch >= times) return NULL;
      const int64_t from = s->slices.count ? s->slices.data[s->slices.count - 1].end : 0;
      if (!it->inputs[0]) TFC_RETURN_IF_ERROR(tfc_dataset_open(ctx, d->inputs[0], &it->inputs[0]));
      if (!tfc_array_push(&s->slices, (struct slice){from, from})) return tfc_status_no_memory(NULL);
      s->epoch++;
    }
    struct tfc_tensor *element = tfc_dataset_parts(d->parts);
    if (!element) return tfc_status_no_memory("the buffer of a shuffle");
    tfc_status failed = tfc_dataset_next(ctx, it->inputs[0], element, &ended);
    if (!failed && !ended) {
      s->any = true;
      failed = put(it, element);
    }
    if (failed || ended) tfc_dataset_parts_free(element, d->parts);
    if (failed) return failed;
    if (!ended) continue;
    tfc_dataset_close(it->inputs[0]);
    it->inputs[0] = NULL;
    if (!s->any && times < 0) { // an empty dataset would be read for ever
      s->epoch = INT64_MAX;
      return NULL;
    }
  }
  return NULL;
}

static tfc_status shuffle_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                               bool *ended) {
  struct shuffle *s = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  const int64_t size = d->n[SIZE];
  if (s->epoch < INT64_MAX) TFC_RETURN_IF_ERROR(fill(ctx, it));
  *ended = s->held == 0;
  if (*ended) return NULL;
  while (s->slices.data[0].begin == s->slices.data[0].end) { // an epoch is over
    memmove(s->slices.data, s->slices.data + 1, --s->slices.count * sizeof *s->slices.data);
    next_seeds(it);
  }
  struct slice *front = &s->slices.data[0];
  const int64_t offset = number(&s->numbers) % (front->end - front->begin);
  struct tfc_tensor **chosen = &s->places.data[(front->begin + offset) % size];
  struct tfc_tensor **first = &s->places.data[front->begin % size], *element = *chosen;
  *chosen = *first;
  *first = NULL;
  front->begin++;
  s->held--;
  for (uint32_t i = 0; i < d->parts; i++) parts[i] = element[i];
  free(element);
  return NULL;
}
static const struct tfc_dataset_kind kind = {.name = "Shuffle",
                                             .state = sizeof(struct shuffle),
                                             .shared = sizeof(struct seeds),
                                             .begin = begin,
                                             .next = shuffle_next,
                                             .end = end};

// Inputs: dataset, buffer_size, seed, seed2, and with `repeats` count.
static tfc_status make(struct tfc_kernel_ctx *ctx, bool repeats) {
  struct tfc_dataset *d = NULL;
  int64_t size, low, high, times = 1;
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1, "buffer_size", &size));
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 2, "seed", &low));
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 3, "seed2", &high));
  if (repeats) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 4, "count", &times));
  TFC_KERNEL_CHECK(size > 0 || size == -1, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  TFC_KERNEL_CHECK(times > 0 || times == -1, "count must be greater than zero or equal to -1.");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &kind, 1, 0, 0, &d));
  if (d->parts != d->inputs[0]->parts) {
    tfc_object_release(&d->object);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "elements have as many components as those that are read");
  }
  struct seeds *shared = tfc_dataset_shared(d);
  shared->low = (uint64_t)low, shared->high = (uint64_t)high;
  if (low == 0 && high == 0) { // seeds 0 and 0 mean any seeds: the session's, and another one for each dataset
    static _Atomic uint64_t made;
    shared->low = ctx->env->seed;
    shared->high = ++made;
  }
  seed(&shared->of_epochs, shared->low, shared->high);
  d->n[SIZE] = size < 0 ? INT64_MAX : size;
  d->n[TIMES] = times;
  d->n[RESHUFFLE] = tfc_node_attr_bool(ctx->graph, ctx->node, "reshuffle_each_iteration", true);
  return tfc_dataset_output(ctx, d);
}
static tfc_status shuffle(struct tfc_kernel_ctx *ctx) {
  return make(ctx, false);
}
static tfc_status shuffle_and_repeat(struct tfc_kernel_ctx *ctx) {
  return make(ctx, true);
}

// Releases a handle that an op must return although each dataset here makes its own seeds and its own cache.
static void stand_in_destroy(struct tfc_object *self) {
  free(self);
}
static const struct tfc_object_type stand_in_type = {.name = "stand-in for a dataset's own state",
                                                     .destroy = stand_in_destroy};
static tfc_status stand_in(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = calloc(1, sizeof *o);
  if (!o) return tfc_status_no_memory(NULL);
  *o = (struct tfc_object){.type = &stand_in_type, .references = 1};
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, o);
}
// Rejects a handle of seeds or of a cache that several datasets share: tfc does not run such datasets.
static tfc_status takes_stand_in(struct tfc_kernel_ctx *ctx, uint32_t input) {
  struct tfc_object *o = NULL;
  if (tfc_tensor_elements(ctx->inputs[input]) == 1) o = *(struct tfc_object **)ctx->inputs[input]->data;
  if (o && o->type == &stand_in_type) return NULL;
  return tfc_status_make(TFC_UNIMPLEMENTED, "a seed generator or cache that datasets share");
}
static tfc_status shuffle_of_generator(struct tfc_kernel_ctx *ctx) {
  TFC_RETURN_IF_ERROR(takes_stand_in(ctx, 4));
  return make(ctx, false);
}
static tfc_status shuffle_and_repeat_of_generator(struct tfc_kernel_ctx *ctx) {
  TFC_RETURN_IF_ERROR(takes_stand_in(ctx, 5));
  return make(ctx, true);
}

#define KINDS TFC_DATASET_KINDS
#define MORE TFC_DATASET_MORE
#define ROW TFC_DATASET_ROW
#define STAND_IN(op)                                                                                                   \
  {                                                                                                                    \
    .name = op, .inputs = "", .outputs = "handle: resource", .attrs = "",                                              \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = ops_shape_scalar, .kernel = stand_in  \
  }
static const struct tfc_op_def data_dataset_shuffle_rows[] = {
    ROW("ShuffleDataset", "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
        "reshuffle_each_iteration: bool = true, " KINDS MORE, shuffle),
    ROW("ShuffleDatasetV3",
        "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, seed_generator: resource",
        "reshuffle_each_iteration: bool = true, " KINDS MORE, shuffle_of_generator),
    ROW("ShuffleAndRepeatDataset",
        "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64",
        KINDS ", reshuffle_each_iteration: bool = true" MORE, shuffle_and_repeat),
    ROW("ShuffleAndRepeatDatasetV2",
        "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64, seed_generator: resource",
        "reshuffle_each_iteration: bool = true, " KINDS MORE, shuffle_and_repeat_of_generator),
    STAND_IN("DummySeedGenerator"),
    STAND_IN("DummyMemoryCache"),
};
TFC_REGISTER_OPS(data_dataset_shuffle_rows);
