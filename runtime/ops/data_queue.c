#include "runtime/ops/data_queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/random_philox.h"
#include "runtime/ops/saved.h"
#include "runtime/ops/state_common.h"

enum kind { FIFO, PADDING, SHUFFLE, PRIORITY };
static const char *const kind_names[] = {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"};

struct tuple {
  struct tfc_tensor *parts; // [queue->parts]
};
typedef TFC_ARRAY(struct tuple) tuples;

// A kernel that waits, either with elements to put in or for elements.
struct waiter {
  struct waiter *next;
  struct tfc_kernel_ctx *ctx; // NULL: elements that a kernel was waiting to put in when the queue was saved
  bool enqueue, many, up_to;
  int64_t wanted;  // how many elements; for a peek: the element's index
  tuples elements; // enqueue: those from `at` on are still to be put in; dequeue: those taken so far
  size_t at;
  tfc_status result;
};
struct line {
  struct waiter *first, **last;
};

struct tfc_queue {
  struct tfc_object object;
  pthread_mutex_t lock;
  enum kind kind;
  char *name;
  int64_t capacity, least; // capacity, -1 for any; min_after_dequeue
  uint32_t parts;
  tfc_dtype *dtypes;
  struct tfc_shape *shapes; // [parts], or NULL if not declared
  struct tfc_philox generator;
  struct tfc_philox_words words; // the current numbers of `generator`
  bool closed;
  tuples items;
  size_t head; // index of the first of `items` that was not taken
  struct line enqueues, dequeues, peeks;
};

static void tuple_free(struct tfc_queue *q, struct tuple *t) {
  for (uint32_t i = 0; t->parts && i < q->parts; i++) tfc_tensor_release(&t->parts[i]);
  free(t->parts);
  t->parts = NULL;
}
static void waiter_free(struct tfc_queue *q, struct waiter *w) {
  for (size_t i = 0; i < w->elements.count; i++) tuple_free(q, &w->elements.data[i]);
  tfc_array_free(&w->elements);
  free(w);
}
static void queue_destroy(struct tfc_object *self) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  for (size_t i = q->head; i < q->items.count; i++) tuple_free(q, &q->items.data[i]);
  tfc_array_free(&q->items);
  while (q->enqueues.first) { // only those without a kernel are left
    struct waiter *w = q->enqueues.first;
    q->enqueues.first = w->next;
    waiter_free(q, w);
  }
  pthread_mutex_destroy(&q->lock);
  free(q->name);
  free(q->dtypes);
  free(q->shapes);
  free(q);
}
static void queue_wake(struct tfc_object *self);
static void queue_describe(struct tfc_object *self, struct tfc_text *out);
static void queue_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg);
static tfc_status queue_save(struct tfc_object *self, struct tfc_text *out);
static tfc_status queue_load(struct tfc_object *self, tfc_str words);
static const struct tfc_object_type queue_type = {.name = "queue",
                                                  .destroy = queue_destroy,
                                                  .wake = queue_wake,
                                                  .describe = queue_describe,
                                                  .waits = queue_waits,
                                                  .save = queue_save,
                                                  .load = queue_load};

// --- Creating queues ---------------------------------------------------------------------------------------------
static enum kind kind_of(tfc_str op) {
  return tfc_str_starts(op, "FIFO")      ? FIFO
         : tfc_str_starts(op, "Padding") ? PADDING
         : tfc_str_starts(op, "Random")  ? SHUFFLE
                                         : PRIORITY;
}

static struct tfc_queue *queue_new(enum kind kind) {
  struct tfc_queue *q = calloc(1, sizeof *q);
  if (!q) return NULL;
  q->object = (struct tfc_object){.type = &queue_type, .references = 1};
  pthread_mutex_init(&q->lock, NULL);
  q->enqueues.last = &q->enqueues.first;
  q->dequeues.last = &q->dequeues.first;
  q->peeks.last = &q->peeks.first;
  q->kind = kind;
  q->capacity = -1;
  return q;
}

static tfc_status queue_make(void *arg, struct tfc_object **out) {
  struct tfc_kernel_ctx *ctx = arg;
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  const struct tfc_attr *types = tfc_node_attr(g, n, "component_types"), *shapes = tfc_node_attr(g, n, "shapes");
  struct tfc_queue *q = queue_new(kind_of(n->op));
  if (!q) return tfc_status_no_memory(NULL);
  q->capacity = tfc_node_attr_int(g, n, "capacity", -1);
  q->least = q->kind == SHUFFLE ? tfc_node_attr_int(g, n, "min_after_dequeue", 0) : 0;
  uint64_t seed = (uint64_t)tfc_node_attr_int(g, n, "seed", 0), seed2 = (uint64_t)tfc_node_attr_int(g, n, "seed2", 0);
  if (!seed && !seed2) seed = ctx->env->seed, seed2 = 1;
  q->generator = tfc_philox_seed(seed, seed2);
  q->words = tfc_philox_words(&q->generator);
  uint32_t first = q->kind == PRIORITY; // part 0 of a priority queue is the priority
  q->parts = first + (types && types->kind == TFC_ATTR_LIST_TYPE ? types->count : 0);
  q->name = tfc_str_dup(n->name);
  q->dtypes = calloc(q->parts + 1, sizeof *q->dtypes);
  bool told = q->kind == PRIORITY || (shapes && shapes->kind == TFC_ATTR_LIST_SHAPE && shapes->count > 0);
  if (told) q->shapes = calloc(q->parts + 1, sizeof *q->shapes);
  tfc_status s = NULL;
  if (!q->name || !q->dtypes || (told && !q->shapes)) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (first) q->dtypes[0] = TFC_INT64, q->shapes[0] = TFC_SHAPE_SCALAR;
  for (uint32_t i = first; i < q->parts; i++) q->dtypes[i] = types->types[i - first];
  if (told && shapes && shapes->kind == TFC_ATTR_LIST_SHAPE) {
    if (shapes->count != q->parts - first)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Different number of component types (%u) vs. shapes (%u).", q->parts - first,
               shapes->count);
    for (uint32_t i = first; i < q->parts; i++) q->shapes[i] = shapes->shapes[i - first];
  }
  if (q->capacity == 0 || q->least < 0 || (q->capacity > 0 && q->least >= q->capacity))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a queue with capacity %lld and min_after_dequeue %lld", (long long)q->capacity,
             (long long)q->least);
  *out = &q->object;
  return NULL;
out:
  queue_destroy(&q->object);
  return s;
}

tfc_status tfc_queue_of_node(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &queue_type, queue_make);
}

// --- Stored elements; the caller holds the lock ------------------------------------------------------------------
static int64_t held(const struct tfc_queue *q) {
  return (int64_t)(q->items.count - q->head);
}

static int64_t priority(const struct tuple *t) {
  return *(const int64_t *)t->parts[0].data;
}
// A binary heap, smallest first. Elements of equal priority are taken in the order that C++'s std::push_heap and
// std::pop_heap give, because TensorFlow's queue uses those.
static void heap_put(struct tuple *h, size_t hole, struct tuple t) {
  for (; hole > 0 && priority(&h[(hole - 1) / 2]) > priority(&t); hole = (hole - 1) / 2) h[hole] = h[(hole - 1) / 2];
  h[hole] = t;
}
static struct tuple heap_take(struct tuple *h, size_t count) { // afterwards the heap has count - 1 tuples
  struct tuple first = h[0], last = h[count - 1];
  size_t hole = 0, left = count - 1;
  for (size_t child = 2; child < left; child = 2 * hole + 2) {
    if (priority(&h[child]) > priority(&h[child - 1])) child--;
    h[hole] = h[child];
    hole = child;
  }
  if (2 * hole + 2 == left) { // the last parent has only one child
    h[hole] = h[left - 1];
    hole = left - 1;
  }
  if (left) heap_put(h, hole, last);
  return first;
}

static bool put(struct tfc_queue *q, struct tuple t) {
  if (q->head > 64 && q->head * 2 > q->items.count) { // close the gap at the front
    memmove(q->items.data, q->items.data + q->head, (q->items.count - q->head) * sizeof t);
    q->items.count -= q->head;
    q->head = 0;
  }
  if (!tfc_array_push(&q->items, t)) return false;
  if (q->kind == PRIORITY) heap_put(q->items.data, q->items.count - 1, t); // q->head is always 0 here
  return true;
}

static struct tuple take(struct tfc_queue *q) {
  struct tuple *h = q->items.data, t;
  switch (q->kind) {
  case SHUFFLE: {
    size_t i = q->head + tfc_philox_word(&q->words) % (uint64_t)held(q);
    t = h[i];
    h[i] = h[--q->items.count];
    return t;
  }
  case PRIORITY: t = heap_take(h, q->items.count--); return t;
  case FIFO:
  case PADDING: break;
  }
  t = h[q->head++];
  return t;
}

// Puts the elements back that a dequeue had taken before it failed: to the front, if the queue is first in, first out.
static void put_back(struct tfc_queue *q, tuples *taken) {
  if (taken->count == 0) return;
  if (q->kind == SHUFFLE || q->kind == PRIORITY) {
    for (size_t i = 0; i < taken->count; i++)
      if (!put(q, taken->data[i])) tuple_free(q, &taken->data[i]);
  } else if (taken->count <= q->head) {
    q->head -= taken->count;
    memcpy(q->items.data + q->head, taken->data, taken->count * sizeof *taken->data);
  } else {
    size_t n = q->items.count - q->head;
    if (tfc_array_reserve(&q->items, taken->count + n)) {
      memmove(q->items.data + taken->count, q->items.data + q->head, n * sizeof *taken->data);
      memcpy(q->items.data, taken->data, taken->count * sizeof *taken->data);
      q->head = 0;
      q->items.count = taken->count + n;
    } else {
      for (size_t i = 0; i < taken->count; i++) tuple_free(q, &taken->data[i]);
    }
  }
  taken->count = 0;
}

// --- Outputs of a dequeue ----------------------------------------------------------------------------------------
// Stacks one component of `n` tuples into [n, ...]; if their shapes differ, zeros are added at the end of each
// dimension.
static tfc_status batch(struct tfc_queue *q, struct tfc_kernel_ctx *ctx, uint32_t part, const tuples *t) {
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = q->shapes[part];
  for (int k = 0; k < shape.rank; k++)
    if (shape.dims[k] < 0) {
      shape.dims[k] = 0;
      for (size_t i = 0; i < t->count; i++)
        if (t->data[i].parts[part].shape.dims[k] > shape.dims[k]) shape.dims[k] = t->data[i].parts[part].shape.dims[k];
    }
  struct tfc_shape all = tfc_data_prepend((int64_t)t->count, &shape);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, part, q->dtypes[part], &all, &y));
  int64_t row = tfc_shape_elements(&shape), to_strides[TFC_MAX_RANK];
  bool plain = tfc_dtype_is_plain(y->dtype);
  size_t size = tfc_dtype_size(y->dtype);
  if (plain && y->size && q->kind == PADDING) memset(y->data, 0, y->size);
  tfc_shape_strides(&shape, to_strides);
  for (size_t i = 0; i < t->count; i++) {
    const struct tfc_tensor *x = &t->data[i].parts[part];
    if (tfc_shape_equal(&x->shape, &shape)) {
      TFC_RETURN_IF_ERROR(tfc_data_copy(y, (int64_t)i * row, x));
      continue;
    }
    int64_t at[TFC_MAX_RANK] = {0};
    for (int64_t e = 0; e < tfc_tensor_elements(x); e++) {
      int64_t to = (int64_t)i * row;
      for (int k = 0; k < shape.rank; k++) to += at[k] * to_strides[k];
      if (plain)
        memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)e * size, size);
      else if (y->dtype == TFC_STRING)
        TFC_RETURN_IF_ERROR(tfc_tensor_set_string(y, to, tfc_tensor_get_string(x, e)));
      for (int k = shape.rank; k-- > 0;) {
        if (++at[k] < x->shape.dims[k]) break;
        at[k] = 0;
      }
    }
  }
  return NULL;
}

static tfc_status deliver(struct tfc_queue *q, struct waiter *w) {
  for (uint32_t i = 0; i < q->parts; i++)
    TFC_RETURN_IF_ERROR(w->many ? batch(q, w->ctx, i, &w->elements)
                                : tfc_kernel_set_output(w->ctx, i, &w->elements.data[0].parts[i]));
  return NULL;
}

// --- Operations that wait ----------------------------------------------------------------------------------------
static void append(struct line *l, struct waiter *w) {
  w->next = NULL;
  *l->last = w;
  l->last = &w->next;
}
static struct waiter *shift(struct line *l) {
  struct waiter *w = l->first;
  l->first = w->next;
  if (!l->first) l->last = &l->first;
  return w;
}
static bool cancelled(const struct waiter *w) {
  return w->ctx && w->ctx->env->cancelled && w->ctx->env->cancelled(w->ctx->env);
}

// try_enqueue and try_dequeue let the first waiter go on as far as it can. They return true if anything changed; a
// waiter that is finished moves to `done`.
static bool try_enqueue(struct tfc_queue *q, struct line *done) {
  struct waiter *w = q->enqueues.first;
  if (!w) return false;
  if (cancelled(w)) {
    w->result = tfc_status_make(TFC_CANCELLED, "Enqueue operation was cancelled");
  } else {
    while (w->at < w->elements.count && (q->capacity < 0 || held(q) < q->capacity)) {
      if (!put(q, w->elements.data[w->at])) {
        w->result = tfc_status_no_memory(NULL);
        break;
      }
      w->elements.data[w->at++].parts = NULL;
    }
    if (w->at < w->elements.count && !w->result) return false;
  }
  append(done, shift(&q->enqueues));
  return true;
}

static bool try_dequeue(struct tfc_queue *q, struct line *done) {
  struct waiter *w = q->dequeues.first;
  if (!w) return false;
  if (cancelled(w)) {
    put_back(q, &w->elements);
    w->result = tfc_status_make(TFC_CANCELLED, "Dequeue operation was cancelled");
    append(done, shift(&q->dequeues));
    return true;
  }
  bool took = false;
  while ((int64_t)w->elements.count < w->wanted) {
    int64_t least = q->closed ? 0 : q->least;
    if (held(q) <= least) break;
    if (!tfc_array_reserve(&w->elements, w->elements.count + 1)) {
      w->result = tfc_status_no_memory(NULL);
      break;
    }
    struct tuple t = take(q);
    w->elements.data[w->elements.count++] = t;
    took = true;
  }
  if (!w->result && (int64_t)w->elements.count < w->wanted) {
    // The queue is closed: no more elements come, except from an enqueue that still waits for room.
    if (!q->closed || q->enqueues.first) return took;
    if (!(w->up_to && w->elements.count > 0)) {
      w->result = tfc_status_make(
          TFC_OUT_OF_RANGE, "%s '%s' is closed and has insufficient elements (requested %lld, current size %lld)",
          kind_names[q->kind], q->name, (long long)w->wanted, (long long)((int64_t)w->elements.count + held(q)));
      put_back(q, &w->elements);
    }
  }
  append(done, shift(&q->dequeues));
  return true;
}

// Gives the kernels that peek their elements, where there now is one at the wanted index.
static void try_peeks(struct tfc_queue *q, struct line *done) {
  struct line keep = {.last = &keep.first};
  while (q->peeks.first) {
    struct waiter *w = shift(&q->peeks);
    if (w->wanted >= held(q) && !cancelled(w)) {
      append(&keep, w);
      continue;
    }
    struct tuple t = {.parts = cancelled(w) ? NULL : calloc(q->parts + 1, sizeof *t.parts)};
    if (cancelled(w))
      w->result = tfc_status_make(TFC_CANCELLED, "Peek operation was cancelled");
    else if (!t.parts || !tfc_array_push(&w->elements, t))
      w->result = tfc_status_no_memory(NULL);
    for (uint32_t i = 0; !w->result && i < q->parts; i++)
      tfc_tensor_share(&q->items.data[q->head + (size_t)w->wanted].parts[i], &t.parts[i]);
    if (w->result && t.parts) free(t.parts);
    append(done, w);
  }
  q->peeks.first = keep.first;
  q->peeks.last = keep.first ? keep.last : &q->peeks.first;
}

// Completes the finished kernels; called without the lock.
static void complete(struct tfc_queue *q, struct line *done) {
  for (struct waiter *w = done->first, *next; w; w = next) {
    next = w->next;
    struct tfc_kernel_ctx *ctx = w->ctx;
    tfc_status s = w->result;
    if (!s && !w->enqueue) s = deliver(q, w);
    waiter_free(q, w);
    if (ctx)
      ctx->done(ctx, s);
    else
      tfc_status_free(s);
  }
}

static void flush(struct tfc_queue *q) {
  struct line done = {.last = &done.first};
  pthread_mutex_lock(&q->lock);
  for (bool going = true; going;) {
    going = try_enqueue(q, &done);
    try_peeks(q, &done); // before a dequeue takes what just came
    going |= try_dequeue(q, &done);
  }
  pthread_mutex_unlock(&q->lock);
  complete(q, &done);
}

static void queue_wake(struct tfc_object *self) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  struct line done = {.last = &done.first};
  tfc_object_retain(self);
  pthread_mutex_lock(&q->lock);
  struct line *lines[2] = {&q->enqueues, &q->dequeues};
  for (int k = 0; k < 2; k++) {
    struct line keep = {.last = &keep.first};
    while (lines[k]->first) {
      struct waiter *w = shift(lines[k]);
      if (!cancelled(w)) {
        append(&keep, w);
        continue;
      }
      if (!w->enqueue) put_back(q, &w->elements);
      w->result = tfc_status_make(TFC_CANCELLED, "%s operation was cancelled", w->enqueue ? "Enqueue" : "Dequeue");
      append(&done, w);
    }
    lines[k]->first = keep.first;
    lines[k]->last = keep.first ? keep.last : &lines[k]->first;
  }
  pthread_mutex_unlock(&q->lock);
  complete(q, &done);
  flush(q);
  tfc_object_release(self);
}

static void queue_describe(struct tfc_object *self, struct tfc_text *out) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  pthread_mutex_lock(&q->lock);
  tfc_text_printf(out, "%s '%s' (%lld elements", kind_names[q->kind], q->name, (long long)held(q));
  if (q->capacity >= 0) tfc_text_printf(out, ", capacity %lld", (long long)q->capacity);
  if (q->least > 0) tfc_text_printf(out, ", %lld of them kept back", (long long)q->least);
  tfc_text_printf(out, "%s)", q->closed ? ", closed" : "");
  pthread_mutex_unlock(&q->lock);
}

// --- Beginning to enqueue and dequeue ----------------------------------------------------------------------------
static tfc_status check_part(const struct tfc_queue *q, uint32_t i, const struct tfc_tensor *t, int skip) {
  TFC_KERNEL_CHECK(t->dtype == q->dtypes[i], "Type mismatch in tuple component %u. Expected %s, got %s", i,
                   tfc_dtype_name(q->dtypes[i]), tfc_dtype_name(t->dtype));
  if (!q->shapes) return NULL;
  struct tfc_shape own = {.rank = t->shape.rank - skip};
  for (int k = 0; k < own.rank; k++) own.dims[k] = t->shape.dims[k + skip];
  TFC_KERNEL_CHECK(
      tfc_shape_compatible(&q->shapes[i], &own), "Shape mismatch in tuple component %u. Expected %s, got %s", i,
      tfc_shape_show(&q->shapes[i], (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(&own, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

// Makes the waiter's elements of the inputs; the components are the inputs from `first` on.
static tfc_status fill_elements(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, struct waiter *w, int64_t n,
                                uint32_t first) {
  for (int64_t k = 0; k < n; k++) {
    struct tuple t = {.parts = calloc(q->parts + 1, sizeof *t.parts)};
    if (!t.parts || !tfc_array_push(&w->elements, t)) {
      free(t.parts);
      return tfc_status_no_memory(NULL);
    }
    for (uint32_t i = 0; i < q->parts; i++)
      TFC_RETURN_IF_ERROR(w->many ? tfc_data_row(ctx, ctx->inputs[i + first], k, &t.parts[i])
                                  : tfc_data_keep(ctx, ctx->inputs[i + first], &t.parts[i]));
  }
  return NULL;
}

tfc_status tfc_queue_put_inputs(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, bool many, uint32_t first) {
  int64_t n = 1;
  TFC_KERNEL_CHECK(ctx->input_count - first == q->parts, "Wrong number of components in tuple. Expected %u, got %u",
                   q->parts, ctx->input_count - first);
  for (uint32_t i = 0; i < q->parts; i++) {
    const struct tfc_tensor *t = ctx->inputs[i + first];
    TFC_KERNEL_CHECK(!many || t->shape.rank >= 1, "Component %u must be at least a vector", i);
    TFC_RETURN_IF_ERROR(check_part(q, i, t, many));
    if (many && i == 0) n = t->shape.dims[0];
    TFC_KERNEL_CHECK(!many || t->shape.dims[0] == n,
                     "All input tensors must have the same size in the 0th dimension. Component %u has %lld, and "
                     "should have %lld",
                     i, (long long)t->shape.dims[0], (long long)n);
  }
  struct waiter *w = calloc(1, sizeof *w);
  if (!w) return tfc_status_no_memory(NULL);
  *w = (struct waiter){.ctx = ctx, .enqueue = true, .many = many};
  tfc_status s = fill_elements(ctx, q, w, n, first);
  if (s) {
    waiter_free(q, w);
    return s;
  }
  pthread_mutex_lock(&q->lock);
  if (q->closed)
    s = tfc_status_make(TFC_CANCELLED, "%s '%s' is closed.", kind_names[q->kind], q->name);
  else
    append(&q->enqueues, w);
  pthread_mutex_unlock(&q->lock);
  if (s) {
    waiter_free(q, w);
    return s;
  }
  flush(q);
  return NULL;
}

static tfc_status start_take(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, bool many, bool up_to, int64_t n) {
  TFC_KERNEL_CHECK(ctx->output_count == q->parts, "a tuple has %u components, the op %u outputs", q->parts,
                   ctx->output_count);
  for (uint32_t i = 0; i < q->parts; i++) {
    tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin + i];
    TFC_KERNEL_CHECK(want == q->dtypes[i], "Type mismatch in tuple component %u. Expected %s, got %s", i,
                     tfc_dtype_name(q->dtypes[i]), tfc_dtype_name(want));
    TFC_KERNEL_CHECK(
        !many || (q->shapes && q->shapes[i].rank >= 0 && (q->kind == PADDING || tfc_shape_is_static(&q->shapes[i]))),
        "%s's DequeueMany and DequeueUpTo require the components to have specified shapes.", kind_names[q->kind]);
  }
  TFC_KERNEL_CHECK(n >= 0, "DequeueManyOp requested %lld < 0 elements", (long long)n);
  TFC_KERNEL_CHECK(q->capacity < 0 || n <= INT32_MAX, "too many elements");
  struct waiter *w = calloc(1, sizeof *w);
  if (!w) return tfc_status_no_memory(NULL);
  *w = (struct waiter){.ctx = ctx, .many = many, .up_to = up_to, .wanted = n};
  pthread_mutex_lock(&q->lock);
  append(&q->dequeues, w);
  pthread_mutex_unlock(&q->lock);
  flush(q);
  return NULL;
}

// --- Checkpoints -------------------------------------------------------------------------------------------------
static void queue_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  const struct line *lines[] = {&q->enqueues, &q->dequeues, &q->peeks};
  pthread_mutex_lock(&q->lock);
  for (int k = 0; k < 3; k++)
    for (const struct waiter *w = lines[k]->first; w; w = w->next)
      if (w->ctx) fn(arg, w->ctx->env->step_id);
  pthread_mutex_unlock(&q->lock);
}

static void save_tuples(const struct tfc_queue *q, const struct tuple *t, size_t count, struct tfc_text *out) {
  tfc_saved_add_number(out, (int64_t)count);
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < q->parts; k++) tfc_saved_add_tensor(out, &t[i].parts[k]);
}

// A step that waits to put something in is not known after a restart, but a queue runner that takes its steps again
// goes on behind what it had: so these elements are saved, too, in the order in which they would come in. What a
// waiting dequeue has taken so far is saved as if it had been put back.
static tfc_status queue_save(struct tfc_object *self, struct tfc_text *out) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  tfc_status s = NULL;
  int64_t pending = 0, taken = 0;
  pthread_mutex_lock(&q->lock);
  for (const struct waiter *w = q->dequeues.first; w; w = w->next) taken += w->elements.count > 0;
  for (const struct waiter *w = q->enqueues.first; w; w = w->next) pending++;
  for (uint32_t i = 0; i < q->parts; i++)
    if (!tfc_saved_has_text(q->dtypes[i]) && (held(q) || pending || taken))
      TFC_FAIL(s, TFC_UNIMPLEMENTED, "elements of type %s", tfc_dtype_name(q->dtypes[i]));
  tfc_saved_add_number(out, q->kind);
  tfc_saved_add_number(out, q->parts);
  tfc_saved_add_number(out, q->closed);
  for (int i = 0; i < 4; i++) tfc_saved_add_number(out, q->generator.counter[i]);
  for (int i = 0; i < 2; i++) tfc_saved_add_number(out, q->generator.key[i]);
  for (int i = 0; i < 4; i++) tfc_saved_add_number(out, q->words.words[i]);
  tfc_saved_add_number(out, q->words.used);
  tfc_saved_add_number(out, taken);
  for (const struct waiter *w = q->dequeues.first; w; w = w->next)
    if (w->elements.count) save_tuples(q, w->elements.data, w->elements.count, out);
  save_tuples(q, q->items.data ? q->items.data + q->head : NULL, (size_t)held(q), out);
  tfc_saved_add_number(out, pending);
  for (const struct waiter *w = q->enqueues.first; w; w = w->next)
    save_tuples(q, w->elements.data ? w->elements.data + w->at : NULL, w->elements.count - w->at, out);
out:
  pthread_mutex_unlock(&q->lock);
  return s;
}

static void load_tuples(const struct tfc_queue *q, struct tfc_saved *in, tuples *out) {
  // A tuple has at least a word for each part; without parts, the number alone must not ask for all memory.
  const int64_t count = tfc_saved_number(in, 0, q->parts ? (int64_t)in->words.size : 1 << 24);
  for (int64_t i = 0; i < count && !in->failure; i++) {
    struct tuple t = {.parts = calloc(q->parts + 1, sizeof *t.parts)};
    if (!t.parts || !tfc_array_push(out, t)) {
      free(t.parts);
      in->failure = tfc_status_no_memory("a queue");
      return;
    }
    for (uint32_t k = 0; k < q->parts; k++) {
      tfc_saved_tensor(in, q->dtypes[k], &t.parts[k]);
      const bool is_priority = q->kind == PRIORITY && k == 0; // a scalar, also where shapes are not declared
      if (!in->failure && ((q->shapes && !tfc_shape_compatible(&q->shapes[k], &t.parts[k].shape)) ||
                           (is_priority && t.parts[k].shape.rank != 0)))
        in->failure =
            tfc_status_make(TFC_INVALID_ARGUMENT, "component %u has another shape than the queue declares", k);
    }
  }
}

static void load_pending(const struct tfc_queue *q, struct tfc_saved *in, struct line *out) {
  for (int64_t n = tfc_saved_number(in, 0, (int64_t)in->words.size); n > 0 && !in->failure; n--) {
    struct waiter *w = calloc(1, sizeof *w);
    if (!w) {
      in->failure = tfc_status_no_memory("a queue");
      return;
    }
    w->enqueue = true;
    append(out, w);
    load_tuples(q, in, &w->elements);
  }
}

static tfc_status queue_load(struct tfc_object *self, tfc_str words) {
  struct tfc_queue *q = (struct tfc_queue *)self;
  struct tfc_saved in = {.words = words};
  struct tfc_philox generator;
  struct tfc_philox_words drawn = {.generator = &q->generator};
  tuples taken = {0}, items = {0};
  struct line pending = {.last = &pending.first};
  const int64_t kind = tfc_saved_number(&in, 0, PRIORITY), parts = tfc_saved_number(&in, 0, UINT32_MAX);
  if (!in.failure && (kind != (int64_t)q->kind || parts != q->parts))
    in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "it was a %s of %lld components, and is a %s of %u",
                                 kind_names[kind], (long long)parts, kind_names[q->kind], q->parts);
  const bool closed = tfc_saved_number(&in, 0, 1);
  for (int i = 0; i < 4; i++) generator.counter[i] = (uint32_t)tfc_saved_number(&in, 0, UINT32_MAX);
  for (int i = 0; i < 2; i++) generator.key[i] = (uint32_t)tfc_saved_number(&in, 0, UINT32_MAX);
  for (int i = 0; i < 4; i++) drawn.words[i] = (uint32_t)tfc_saved_number(&in, 0, UINT32_MAX);
  drawn.used = (int)tfc_saved_number(&in, 0, 4);
  for (int64_t n = tfc_saved_number(&in, 0, (int64_t)in.words.size); n > 0 && !in.failure; n--)
    load_tuples(q, &in, &taken);
  load_tuples(q, &in, &items);
  load_pending(q, &in, &pending);
  tfc_status s = tfc_saved_end(&in);
  pthread_mutex_lock(&q->lock);
  if (!s) {
    const tuples before = q->items;
    for (size_t i = q->head; i < before.count; i++) tuple_free(q, &before.data[i]);
    q->items = items, items = before, items.count = 0;
    q->head = 0, q->closed = closed, q->generator = generator, q->words = drawn;
    put_back(q, &taken);
    if (pending.first) { // before those of kernels that wait already
      *pending.last = q->enqueues.first;
      if (!q->enqueues.first) q->enqueues.last = pending.last;
      q->enqueues.first = pending.first;
      pending.first = NULL;
    }
  }
  pthread_mutex_unlock(&q->lock);
  while (pending.first) waiter_free(q, shift(&pending));
  for (size_t i = 0; i < items.count; i++) tuple_free(q, &items.data[i]);
  for (size_t i = 0; i < taken.count; i++) tuple_free(q, &taken.data[i]);
  tfc_array_free(&items);
  tfc_array_free(&taken);
  if (!s) flush(q);
  return s;
}

// --- Functions of data_queue.h -----------------------------------------------------------------------------------
void tfc_queue_waits(struct tfc_queue *q, void (*fn)(void *arg, int64_t step), void *arg) {
  queue_waits(&q->object, fn, arg);
}
tfc_status tfc_queue_save(struct tfc_queue *q, struct tfc_text *out) {
  return queue_save(&q->object, out);
}
tfc_status tfc_queue_load(struct tfc_queue *q, tfc_str words) {
  return queue_load(&q->object, words);
}

static tfc_status create(enum kind kind, tfc_str name, int64_t capacity, uint32_t parts, const tfc_dtype *dtypes,
                         const struct tfc_shape *shapes, struct tfc_queue **out) {
  struct tfc_queue *q = queue_new(kind);
  if (q) {
    q->capacity = capacity;
    q->parts = parts;
    q->name = tfc_str_dup(name);
    q->dtypes = calloc(parts + 1, sizeof *q->dtypes);
    if (shapes) q->shapes = calloc(parts + 1, sizeof *q->shapes);
  }
  if (!q || !q->name || !q->dtypes || (shapes && !q->shapes)) {
    if (q) queue_destroy(&q->object);
    return tfc_status_no_memory(NULL);
  }
  if (parts) memcpy(q->dtypes, dtypes, parts * sizeof *dtypes); // barriers and stages without components have no lists
  if (parts && shapes) memcpy(q->shapes, shapes, parts * sizeof *shapes);
  *out = q;
  return NULL;
}
tfc_status tfc_queue_create(tfc_str name, uint32_t parts, const tfc_dtype *dtypes, const struct tfc_shape *shapes,
                            struct tfc_queue **out) {
  return create(PRIORITY, name, -1, parts, dtypes, shapes, out);
}
tfc_status tfc_queue_create_fifo(tfc_str name, int64_t capacity, uint32_t parts, const tfc_dtype *dtypes,
                                 struct tfc_queue **out) {
  return create(FIFO, name, capacity, parts, dtypes, NULL, out);
}
void tfc_queue_release(struct tfc_queue *q) {
  if (q) tfc_object_release(&q->object);
}
void tfc_queue_wake(struct tfc_queue *q) {
  queue_wake(&q->object);
}
int64_t tfc_queue_size(struct tfc_queue *q) {
  pthread_mutex_lock(&q->lock);
  int64_t n = held(q);
  pthread_mutex_unlock(&q->lock);
  return n;
}
tfc_dtype tfc_queue_dtype(const struct tfc_queue *q, uint32_t part) {
  return q->dtypes[part];
}

bool tfc_queue_is_closed(struct tfc_queue *q) {
  pthread_mutex_lock(&q->lock);
  bool closed = q->closed;
  pthread_mutex_unlock(&q->lock);
  return closed;
}

tfc_status tfc_queue_check(const struct tfc_queue *q, uint32_t part, const struct tfc_tensor *values) {
  return check_part(q, part, values, 1);
}
tfc_status tfc_queue_check_one(const struct tfc_queue *q, uint32_t part, const struct tfc_tensor *value) {
  return check_part(q, part, value, 0);
}

tfc_status tfc_queue_put(struct tfc_queue *q, struct tfc_tensor *parts) {
  struct tuple t = {.parts = calloc(q->parts + 1, sizeof *t.parts)};
  bool ok = false;
  if (t.parts) {
    pthread_mutex_lock(&q->lock);
    memcpy(t.parts, parts, q->parts * sizeof *parts);
    ok = put(q, t);
    pthread_mutex_unlock(&q->lock);
  }
  if (!ok) {
    free(t.parts);
    return tfc_status_no_memory(NULL);
  }
  memset(parts, 0, q->parts * sizeof *parts);
  flush(q);
  return NULL;
}

tfc_status tfc_queue_take(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t n, bool up_to) {
  return start_take(ctx, q, true, up_to, n);
}

tfc_status tfc_queue_of_input(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_queue **out) {
  return tfc_named_input(ctx, i, &queue_type, (struct tfc_object **)out);
}
tfc_status tfc_queue_take_one(struct tfc_kernel_ctx *ctx, struct tfc_queue *q) {
  return start_take(ctx, q, false, false, 1);
}
tfc_status tfc_queue_peek(struct tfc_kernel_ctx *ctx, struct tfc_queue *q, int64_t index) {
  TFC_KERNEL_CHECK(index >= 0, "index %lld is negative", (long long)index);
  struct waiter *w = calloc(1, sizeof *w);
  if (!w) return tfc_status_no_memory(NULL);
  *w = (struct waiter){.ctx = ctx, .wanted = index};
  pthread_mutex_lock(&q->lock);
  append(&q->peeks, w);
  pthread_mutex_unlock(&q->lock);
  flush(q);
  return NULL;
}
void tfc_queue_clear(struct tfc_queue *q) {
  pthread_mutex_lock(&q->lock);
  for (size_t i = q->head; i < q->items.count; i++) tuple_free(q, &q->items.data[i]);
  q->head = q->items.count = 0;
  pthread_mutex_unlock(&q->lock);
  flush(q);
}

tfc_status tfc_queue_close(struct tfc_queue *q, bool cancel) {
  struct line done = {.last = &done.first};
  tfc_status s = NULL;
  pthread_mutex_lock(&q->lock);
  if (q->closed && !cancel)
    s = tfc_status_make(TFC_CANCELLED, "%s '%s' is already closed.", kind_names[q->kind], q->name);
  q->closed = true;
  while (cancel && q->enqueues.first) {
    struct waiter *w = shift(&q->enqueues);
    w->result = tfc_status_make(TFC_CANCELLED, "Enqueue operation was cancelled");
    append(&done, w);
  }
  pthread_mutex_unlock(&q->lock);
  complete(q, &done);
  flush(q);
  return s;
}
