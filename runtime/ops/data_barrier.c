// Barriers: tuples whose components are inserted one by one, under a key. A complete tuple goes into a priority queue,
// where the key that was seen first comes first; kernels that take tuples wait there.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_queue.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/saved.h"

struct partial { // a tuple that lacks components
  char *key;     // a zero-terminated copy
  size_t key_size;
  int64_t index;
  struct tfc_tensor *parts; // [components], NULL: the tuple was completed and removed; dtype NONE: not inserted yet
};
struct barrier {
  struct tfc_object object;
  pthread_mutex_t lock;
  char *name;
  uint32_t components;
  struct tfc_queue *ready; // of complete tuples: (index, key, components...)
  int64_t next_index;
  TFC_ARRAY(struct partial) incomplete;
  struct tfc_strmap by_key; // gives an index into `incomplete`, or GONE
  size_t live;
  bool closed, cancelled;
};
#define GONE UINT64_MAX

static void partial_free(struct barrier *b, struct partial *p) {
  for (uint32_t i = 0; p->parts && i < b->components; i++) tfc_tensor_release(&p->parts[i]);
  free(p->parts);
  p->parts = NULL;
}
static void forget_all(struct barrier *b) {
  for (size_t i = 0; i < b->incomplete.count; i++) {
    partial_free(b, &b->incomplete.data[i]);
    free(b->incomplete.data[i].key);
  }
  b->incomplete.count = b->live = 0;
  tfc_strmap_deinit(&b->by_key);
  b->by_key = (struct tfc_strmap){0};
}
static void barrier_destroy(struct tfc_object *self) {
  struct barrier *b = (struct barrier *)self;
  forget_all(b);
  tfc_array_free(&b->incomplete);
  tfc_queue_release(b->ready);
  pthread_mutex_destroy(&b->lock);
  free(b->name);
  free(b);
}
static void barrier_wake(struct tfc_object *self) {
  tfc_queue_wake(((struct barrier *)self)->ready);
}
static void barrier_describe(struct tfc_object *self, struct tfc_text *out) {
  struct barrier *b = (struct barrier *)self;
  pthread_mutex_lock(&b->lock);
  tfc_text_printf(out, "Barrier '%s' (%lld elements complete, %zu incomplete%s)", b->name,
                  (long long)tfc_queue_size(b->ready), b->live, b->closed ? ", closed" : "");
  pthread_mutex_unlock(&b->lock);
}
static void barrier_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  tfc_queue_waits(((struct barrier *)self)->ready, fn, arg);
}
static tfc_status barrier_save(struct tfc_object *self, struct tfc_text *out);
static tfc_status barrier_load(struct tfc_object *self, tfc_str words);
static const struct tfc_object_type barrier_type = {.name = "barrier",
                                                    .destroy = barrier_destroy,
                                                    .wake = barrier_wake,
                                                    .describe = barrier_describe,
                                                    .waits = barrier_waits,
                                                    .save = barrier_save,
                                                    .load = barrier_load};

static tfc_status barrier_make(void *arg, struct tfc_object **out) {
  tfc_status s = NULL;
  const struct tfc_kernel_ctx *ctx = arg;
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "component_types"),
                        *shapes = tfc_node_attr(ctx->graph, ctx->node, "shapes");
  uint32_t n = types && types->kind == TFC_ATTR_LIST_TYPE ? types->count : 0;
  bool told = shapes && shapes->kind == TFC_ATTR_LIST_SHAPE && shapes->count > 0;
  struct barrier *b = calloc(1, sizeof *b);
  tfc_dtype *dtypes = calloc(n + 2u, sizeof *dtypes);
  struct tfc_shape *all = calloc(n + 2u, sizeof *all);
  if (!b || !dtypes || !all) {
    free(b), free(dtypes), free(all);
    return tfc_status_no_memory(NULL);
  }
  b->object = (struct tfc_object){.type = &barrier_type, .references = 1};
  pthread_mutex_init(&b->lock, NULL);
  b->components = n;
  b->next_index = INT64_MIN;
  b->name = tfc_str_dup(tfc_named_name(ctx));
  if (!b->name) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (told && shapes->count != n)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Different number of component types (%u) vs. shapes (%u).", n, shapes->count);
  if (tfc_node_attr_int(ctx->graph, ctx->node, "capacity", -1) != -1)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Barrier only accepts capacity=-1.");
  dtypes[0] = TFC_INT64, dtypes[1] = TFC_STRING;
  all[0] = all[1] = TFC_SHAPE_SCALAR;
  for (uint32_t i = 0; i < n; i++) {
    dtypes[i + 2] = types->types[i];
    if (told) all[i + 2] = shapes->shapes[i];
  }
  TFC_TRY(s, tfc_queue_create(tfc_named_name(ctx), n + 2, dtypes, told ? all : NULL, &b->ready));
  *out = &b->object, b = NULL;
out:
  if (b) barrier_destroy(&b->object);
  free(dtypes);
  free(all);
  return s;
}

static tfc_status barrier(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &barrier_type, barrier_make);
}

static tfc_status barrier_of(struct tfc_kernel_ctx *ctx, struct barrier **out) { // the caller must release it
  return tfc_named_get(ctx, &barrier_type, (struct tfc_object **)out);
}

// --- Inserting into tuples, which the lock guards ----------------------------------------------------------------
static tfc_status compact(struct barrier *b) { // drops the entries of removed tuples if these are at least half of all
  if (b->incomplete.count < 64 || b->live * 2 > b->incomplete.count) return NULL;
  size_t kept = 0;
  for (size_t i = 0; i < b->incomplete.count; i++) {
    if (b->incomplete.data[i].parts)
      b->incomplete.data[kept++] = b->incomplete.data[i];
    else
      free(b->incomplete.data[i].key);
  }
  b->incomplete.count = kept;
  tfc_strmap_deinit(&b->by_key);
  b->by_key = (struct tfc_strmap){0};
  for (size_t i = 0; i < kept; i++)
    if (!tfc_strmap_put(&b->by_key, (tfc_str){b->incomplete.data[i].key, b->incomplete.data[i].key_size}, i, NULL))
      return tfc_status_no_memory(NULL);
  return NULL;
}

// Finds the tuple of a key, or begins one.
static tfc_status partial_of(struct barrier *b, tfc_str key, struct partial **out, bool *out_new) {
  if (!key.data) key = (tfc_str){"", 0};
  const uint64_t *at = tfc_strmap_get(&b->by_key, key);
  if (at && *at != GONE) {
    *out = &b->incomplete.data[*at];
    return NULL;
  }
  if (b->closed)
    return tfc_status_make(TFC_CANCELLED,
                           "Barrier %s is closed, but attempted to insert a brand new key: %.*s. Pending inserts "
                           "cancelled: %d.",
                           b->name, TFC_STR_ARG(key), b->cancelled);
  TFC_RETURN_IF_ERROR(compact(b));
  struct partial made = {.key = tfc_str_dup(key),
                         .key_size = key.size,
                         .index = b->next_index,
                         .parts = calloc(b->components + 1u, sizeof *made.parts)};
  bool found = false;
  uint64_t *place = NULL;
  if (made.key && made.parts && tfc_array_push(&b->incomplete, made)) {
    place = tfc_strmap_put(&b->by_key, (tfc_str){made.key, key.size}, b->incomplete.count - 1, &found);
    if (!place) b->incomplete.count--;
  }
  if (!place) {
    free(made.key);
    free(made.parts);
    return tfc_status_no_memory(NULL);
  }
  // The map's key still points to the bytes of the key's older entry, which is kept for that.
  *place = b->incomplete.count - 1;
  b->live++;
  *out = &b->incomplete.data[b->incomplete.count - 1];
  *out_new = true;
  return NULL;
}

static tfc_status make_ready(struct barrier *b, struct partial *p) {
  tfc_status s = NULL;
  struct tfc_tensor *tuple = calloc(b->components + 2u, sizeof *tuple);
  tfc_str key = {p->key, p->key_size};
  if (!tuple) return tfc_status_no_memory(NULL);
  TFC_TRY(s, tfc_tensor_scalar_i64(p->index, &tuple[0]));
  TFC_TRY(s, tfc_tensor_create(TFC_STRING, &TFC_SHAPE_SCALAR, &tuple[1]));
  TFC_TRY(s, tfc_tensor_set_string(&tuple[1], 0, key));
  memcpy(tuple + 2, p->parts, b->components * sizeof *tuple);
  memset(p->parts, 0, b->components * sizeof *tuple);
  uint64_t *place = tfc_strmap_put(&b->by_key, key, GONE, NULL);
  if (place) *place = GONE;
  partial_free(b, p);
  b->live--;
  s = tfc_queue_put(b->ready, tuple);
out:
  for (uint32_t i = 0; i < b->components + 2; i++) tfc_tensor_release(&tuple[i]);
  free(tuple);
  return s;
}

static tfc_status insert_one(struct tfc_kernel_ctx *ctx, struct barrier *b, uint32_t component, int64_t i,
                             bool *out_new) {
  tfc_str key = tfc_tensor_get_string(ctx->inputs[1], i);
  struct partial *p = NULL;
  TFC_RETURN_IF_ERROR(partial_of(b, key, &p, out_new));
  TFC_KERNEL_CHECK(p->parts[component].dtype == TFC_DTYPE_NONE,
                   "Key %.*s already has a value for component %u in barrier %s", TFC_STR_ARG(key), component, b->name);
  TFC_RETURN_IF_ERROR(tfc_data_row(ctx, ctx->inputs[2], i, &p->parts[component]));
  for (uint32_t k = 0; k < b->components; k++)
    if (p->parts[k].dtype == TFC_DTYPE_NONE) return NULL;
  return make_ready(b, p);
}

static tfc_status insert_all(struct tfc_kernel_ctx *ctx, struct barrier *b) {
  const struct tfc_tensor *keys = ctx->inputs[1], *values = ctx->inputs[2];
  int64_t component = tfc_node_attr_int(ctx->graph, ctx->node, "component_index", 0);
  TFC_KERNEL_CHECK(keys->shape.rank == 1, "keys must be a vector, not %s",
                   tfc_shape_show(&keys->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(component >= 0 && component < b->components, "component_index %lld of %u components",
                   (long long)component, b->components);
  TFC_KERNEL_CHECK(values->shape.rank >= 1 && values->shape.dims[0] == keys->shape.dims[0],
                   "%lld keys, but values of shape %s", (long long)keys->shape.dims[0],
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_queue_check(b->ready, (uint32_t)component + 2, values));
  bool any = false;
  tfc_status s = NULL;
  pthread_mutex_lock(&b->lock);
  if (b->closed && (b->cancelled || b->live == 0))
    s = tfc_status_make(TFC_CANCELLED, "Barrier %s is closed. Pending enqueues cancelled: %d.", b->name, b->cancelled);
  for (int64_t i = 0; !s && i < keys->shape.dims[0]; i++) s = insert_one(ctx, b, (uint32_t)component, i, &any);
  if (any) b->next_index++;
  bool drained = !s && b->closed && b->live == 0;
  pthread_mutex_unlock(&b->lock);
  if (drained) s = tfc_queue_close(b->ready, false); // no more tuples can become complete
  return s;
}
static tfc_status insert_many(struct tfc_kernel_ctx *ctx) {
  struct barrier *b = NULL;
  TFC_RETURN_IF_ERROR(barrier_of(ctx, &b));
  tfc_status s = insert_all(ctx, b);
  tfc_object_release(&b->object);
  return s;
}

// --- Taking, closing, sizes --------------------------------------------------------------------------------------
static tfc_status take_many(struct tfc_kernel_ctx *ctx) {
  struct barrier *b = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(barrier_of(ctx, &b));
  int64_t n = ops_scalar_int(ctx->inputs[1]);
  bool small = tfc_node_attr_bool(ctx->graph, ctx->node, "allow_small_batch", false);
  pthread_mutex_lock(&b->lock);
  if (b->closed) {
    int64_t there = tfc_queue_size(b->ready);
    if (small)
      n = n < there ? n : there;
    else
      there += (int64_t)b->live;
    if (there < (n > 1 ? n : 1))
      s = tfc_status_make(TFC_OUT_OF_RANGE,
                          "Barrier '%s' is closed and has insufficient elements (requested %lld, total size %lld)",
                          b->name, (long long)n, (long long)there);
  }
  pthread_mutex_unlock(&b->lock);
  if (!s) s = tfc_queue_take(ctx, b->ready, n, small);
  tfc_object_release(&b->object);
  return s;
}

static tfc_status close_(struct tfc_kernel_ctx *ctx) {
  struct barrier *b = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(barrier_of(ctx, &b));
  bool cancel = tfc_node_attr_bool(ctx->graph, ctx->node, "cancel_pending_enqueues", false), drained = false;
  pthread_mutex_lock(&b->lock);
  if (b->closed && (b->cancelled || !cancel)) {
    s = tfc_status_make(TFC_CANCELLED, "Barrier '%s' is already closed.", b->name);
  } else {
    b->closed = true;
    b->cancelled = cancel;
    drained = cancel || b->live == 0;
    if (drained) forget_all(b);
  }
  pthread_mutex_unlock(&b->lock);
  if (drained) {
    s = tfc_queue_close(b->ready, cancel);
    if (tfc_status_code(s) == TFC_CANCELLED) { // the queue was closed before, when it became empty
      tfc_status_free(s);
      s = NULL;
    }
  }
  tfc_object_release(&b->object);
  return s;
}

static tfc_status size_of(struct tfc_kernel_ctx *ctx, bool ready) {
  struct barrier *b = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(barrier_of(ctx, &b));
  pthread_mutex_lock(&b->lock);
  int64_t n = ready ? tfc_queue_size(b->ready) : (int64_t)b->live;
  pthread_mutex_unlock(&b->lock);
  tfc_object_release(&b->object);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)n;
  return NULL;
}
static tfc_status ready_size(struct tfc_kernel_ctx *ctx) {
  return size_of(ctx, true);
}
static tfc_status incomplete_size(struct tfc_kernel_ctx *ctx) {
  return size_of(ctx, false);
}

// --- Checkpoints -------------------------------------------------------------------------------------------------
static tfc_status barrier_save(struct tfc_object *self, struct tfc_text *out) {
  struct barrier *b = (struct barrier *)self;
  tfc_status s = NULL;
  pthread_mutex_lock(&b->lock);
  tfc_saved_add_number(out, b->closed);
  tfc_saved_add_number(out, b->cancelled);
  tfc_saved_add_number(out, b->next_index);
  tfc_saved_add_number(out, (int64_t)b->live);
  for (size_t i = 0; i < b->incomplete.count && !s; i++) {
    const struct partial *p = &b->incomplete.data[i];
    if (!p->parts) continue;
    tfc_saved_add_bytes(out, (tfc_str){p->key, p->key_size});
    tfc_saved_add_number(out, p->index);
    for (uint32_t k = 0; k < b->components && !s; k++) {
      const struct tfc_tensor *part = &p->parts[k];
      tfc_saved_add_number(out, part->dtype != TFC_DTYPE_NONE);
      if (part->dtype == TFC_DTYPE_NONE) continue;
      if (tfc_saved_has_text(part->dtype))
        tfc_saved_add_tensor(out, part);
      else
        s = tfc_status_make(TFC_UNIMPLEMENTED, "elements of type %s", tfc_dtype_name(part->dtype));
    }
  }
  if (!s) s = tfc_queue_save(b->ready, out);
  pthread_mutex_unlock(&b->lock);
  return s;
}

// Begins tuples as they were saved. Called under the lock.
static void load_partial(struct barrier *b, struct tfc_saved *in) {
  struct partial *p = NULL;
  bool new = false;
  size_t size;
  char *key = tfc_saved_bytes(in, &size);
  const int64_t index = tfc_saved_number(in, INT64_MIN, INT64_MAX);
  if (!in->failure) in->failure = partial_of(b, (tfc_str){key, size}, &p, &new);
  free(key);
  if (!in->failure && !new) in->failure = tfc_status_make(TFC_INVALID_ARGUMENT, "a key is there twice");
  if (in->failure) return;
  p->index = index;
  for (uint32_t k = 0; k < b->components; k++) {
    if (!tfc_saved_number(in, 0, 1)) continue;
    tfc_saved_tensor(in, tfc_queue_dtype(b->ready, k + 2), &p->parts[k]);
    if (!in->failure) in->failure = tfc_queue_check_one(b->ready, k + 2, &p->parts[k]);
  }
}

static tfc_status barrier_load(struct tfc_object *self, tfc_str words) {
  struct barrier *b = (struct barrier *)self;
  struct tfc_saved in = {.words = words};
  pthread_mutex_lock(&b->lock);
  forget_all(b);
  b->closed = false; // so that tuples can begin
  const bool closed = tfc_saved_number(&in, 0, 1), cancelled = tfc_saved_number(&in, 0, 1);
  b->next_index = tfc_saved_number(&in, INT64_MIN, INT64_MAX / 2);
  for (int64_t n = tfc_saved_number(&in, 0, (int64_t)in.words.size); n > 0 && !in.failure; n--) load_partial(b, &in);
  b->closed = closed, b->cancelled = cancelled;
  pthread_mutex_unlock(&b->lock);
  if (in.failure) return tfc_saved_end(&in);
  return tfc_queue_load(b->ready, in.words);
}

static tfc_status shape_handle(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(2);
  return NULL;
}
static tfc_status shape_take(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = i < 2 ? TFC_SHAPE(TFC_DIM_UNKNOWN) : TFC_SHAPE_UNKNOWN;
  return NULL;
}

#define ON(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define FLAGS (TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
static const struct tfc_op_def data_barrier_rows[] = {
    {.name = "Barrier",
     .outputs = "handle: Ref(string)",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = FLAGS,
     ON(shape_handle, barrier)},
    {.name = "BarrierInsertMany",
     .inputs = "handle: Ref(string), keys: string, values: T",
     .attrs = "T: type, component_index: int",
     .flags = FLAGS,
     ON(ops_shape_none, insert_many),
     .effect = TFC_EFFECT_UPDATE},
    {.name = "BarrierTakeMany",
     .inputs = "handle: Ref(string), num_elements: int32",
     .outputs = "indices: int64, keys: string, values: component_types",
     .attrs = "component_types: list(type) >= 1, allow_small_batch: bool = false, wait_for_incomplete: bool = false, "
              "timeout_ms: int = -1",
     .flags = FLAGS | TFC_OP_ASYNC,
     ON(shape_take, take_many)},
    {.name = "BarrierClose",
     .inputs = "handle: Ref(string)",
     .attrs = "cancel_pending_enqueues: bool = false",
     .flags = FLAGS,
     ON(ops_shape_none, close_)},
    {.name = "BarrierReadySize",
     .inputs = "handle: Ref(string)",
     .outputs = "size: int32",
     .flags = FLAGS,
     ON(ops_shape_scalar, ready_size)},
    {.name = "BarrierIncompleteSize",
     .inputs = "handle: Ref(string)",
     .outputs = "size: int32",
     .flags = FLAGS,
     ON(ops_shape_scalar, incomplete_size)},
};
TFC_REGISTER_OPS(data_barrier_rows);
