// Staging areas by key: MapStage inserts the parts of a tuple, all at once or some at a time; MapUnstage removes a
// tuple or some of its parts, MapPeek copies them. Both wait until the key is there, and staging waits for room. Tuples
// are ordered by key: MapUnstageNoKey removes the tuple with the smallest key, and so does OrderedMapUnstageNoKey.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/saved.h"

struct tuple {
  int64_t key;
  struct tfc_tensor *parts; // [map->parts]; dtype NONE: the part is missing
};
typedef TFC_ARRAY(struct tuple) tuples; // ordered by key
enum what { PUT, TAKE, PEEK, TAKE_ANY };
struct waiter {
  struct waiter *next;
  struct tfc_kernel_ctx *ctx;
  enum what what;
  tfc_status result;
};
struct map {
  struct tfc_object object;
  pthread_mutex_t lock;
  int64_t capacity; // the number of complete tuples it may hold; 0: any
  uint32_t parts;
  tfc_dtype *dtypes;
  tuples whole, partial;
  struct waiter *first;
};

static void tuple_free(struct map *m, struct tuple *t) {
  for (uint32_t i = 0; t->parts && i < m->parts; i++) tfc_tensor_release(&t->parts[i]);
  free(t->parts);
}
static void forget(struct map *m, tuples *t) {
  for (size_t i = 0; i < t->count; i++) tuple_free(m, &t->data[i]);
  tfc_array_free(t);
}
static void map_destroy(struct tfc_object *self) {
  struct map *m = (struct map *)self;
  forget(m, &m->whole);
  forget(m, &m->partial);
  pthread_mutex_destroy(&m->lock);
  free(m->dtypes);
  free(m);
}
static void map_run(struct map *m);
static void map_wake(struct tfc_object *self) {
  tfc_object_retain(self);
  map_run((struct map *)self);
  tfc_object_release(self);
}
static tfc_status map_save(struct tfc_object *self, struct tfc_text *out);
static tfc_status map_load(struct tfc_object *self, tfc_str words);
static void map_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg);
static const struct tfc_object_type map_type = {.name = "staging map",
                                                .destroy = map_destroy,
                                                .wake = map_wake,
                                                .waits = map_waits,
                                                .save = map_save,
                                                .load = map_load};

static tfc_status map_make(void *arg, struct tfc_object **out) {
  const struct tfc_kernel_ctx *ctx = arg;
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "dtypes");
  if (tfc_node_attr_int(ctx->graph, ctx->node, "memory_limit", 0) > 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a staging map with a memory_limit (only capacity is kept)");
  struct map *m = calloc(1, sizeof *m);
  uint32_t parts = types && types->kind == TFC_ATTR_LIST_TYPE ? types->count : 0;
  tfc_dtype *dtypes = calloc(parts + 1u, sizeof *dtypes);
  if (!m || !dtypes) {
    free(m), free(dtypes);
    return tfc_status_no_memory(NULL);
  }
  for (uint32_t i = 0; i < parts; i++) dtypes[i] = types->types[i];
  *m = (struct map){.object = {.type = &map_type, .references = 1}, .parts = parts, .dtypes = dtypes};
  m->capacity = tfc_node_attr_int(ctx->graph, ctx->node, "capacity", 0);
  pthread_mutex_init(&m->lock, NULL);
  *out = &m->object;
  return NULL;
}
static tfc_status map_of(struct tfc_kernel_ctx *ctx, struct map **out) { // the caller must release it
  return tfc_resources_find_or_create(ctx->env->resources, tfc_node_attr_string(ctx->graph, ctx->node, "container", ""),
                                      tfc_named_name(ctx), &map_type, map_make, ctx, (struct tfc_object **)out);
}

// --- Stored tuples, which the lock guards --------------------------------------------------------------------------
static size_t place_of(const tuples *t, int64_t key) { // the first tuple whose key is not less
  size_t low = 0, high = t->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (t->data[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
static struct tuple *find(const tuples *t, int64_t key) {
  size_t at = place_of(t, key);
  return at < t->count && t->data[at].key == key ? &t->data[at] : NULL;
}
static bool insert(tuples *t, struct tuple made) {
  size_t at = place_of(t, made.key);
  if (!tfc_array_push(t, made)) return false;
  memmove(t->data + at + 1, t->data + at, (t->count - 1 - at) * sizeof made);
  t->data[at] = made;
  return true;
}
static void drop(tuples *t, struct tuple *gone) {
  size_t at = (size_t)(gone - t->data);
  memmove(gone, gone + 1, (--t->count - at) * sizeof *gone);
}
static bool is_whole(const struct map *m, const struct tuple *t) {
  for (uint32_t i = 0; i < m->parts; i++)
    if (t->parts[i].dtype == TFC_DTYPE_NONE) return false;
  return true;
}

// Inputs: key, indices, values. The values become parts of the key's tuple; a tuple that becomes complete needs room.
static tfc_status put(struct map *m, struct tfc_kernel_ctx *ctx, bool *out_wait) {
  const int64_t key = *(const int64_t *)ctx->inputs[0]->data;
  const struct tfc_tensor *indices = ctx->inputs[1];
  const uint32_t values = ctx->input_count - 2;
  struct tuple *t = find(&m->partial, key);
  uint32_t there = 0;
  for (uint32_t i = 0; i < values; i++) {
    int64_t at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(!t || t->parts[at].dtype == TFC_DTYPE_NONE,
                     "The tensor for index '%lld' for key '%lld' was already initialized '%u'.", (long long)at,
                     (long long)key, m->parts);
  }
  for (uint32_t i = 0; t && i < m->parts; i++) there += t->parts[i].dtype != TFC_DTYPE_NONE;
  if (there + values == m->parts) {
    if (find(&m->whole, key)) return NULL; // as in TensorFlow, a complete tuple of the same key stays
    *out_wait = m->capacity > 0 && (int64_t)m->whole.count >= m->capacity;
    if (*out_wait) return NULL;
  }
  if (!t) {
    struct tuple made = {key, calloc(m->parts + 1u, sizeof *made.parts)};
    if (!made.parts || !insert(&m->partial, made)) {
      free(made.parts);
      return tfc_status_no_memory(NULL);
    }
    t = find(&m->partial, key);
  }
  for (uint32_t i = 0; i < values; i++)
    TFC_RETURN_IF_ERROR(tfc_data_keep(ctx, ctx->inputs[i + 2], &t->parts[tfc_tensor_int(indices, i)]));
  if (!is_whole(m, t)) return NULL;
  if (!insert(&m->whole, *t)) return tfc_status_no_memory(NULL);
  drop(&m->partial, t);
  return NULL;
}

// Sets the outputs from `first` on to the parts that the indices name.
static tfc_status get(struct map *m, struct tfc_kernel_ctx *ctx, struct tuple *t, uint32_t first, bool keep) {
  const struct tfc_tensor *indices = ctx->inputs[ctx->input_count - 1];
  const int64_t count = tfc_tensor_elements(indices);
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(t->parts[at].dtype != TFC_DTYPE_NONE,
                     "Tensor at index '%lld' for key '%lld' has already been "
                     "removed.",
                     (long long)at, (long long)t->key);
    TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, first + (uint32_t)i, &t->parts[at]));
  }
  if (keep) return NULL;
  bool any = false;
  for (int64_t i = 0; i < count; i++) tfc_tensor_release(&t->parts[tfc_tensor_int(indices, i)]);
  for (uint32_t i = 0; i < m->parts; i++) any |= t->parts[i].dtype != TFC_DTYPE_NONE;
  if (!any) {
    tuple_free(m, t);
    drop(&m->whole, t);
  }
  return NULL;
}

// Returns true if the waiter is finished.
static bool attempt(struct map *m, struct waiter *w) {
  struct tfc_kernel_ctx *ctx = w->ctx;
  bool wait = false;
  if (ctx->env->cancelled && ctx->env->cancelled(ctx->env)) {
    w->result = tfc_status_make(TFC_CANCELLED, "waiting in a staging map was cancelled");
    return true;
  }
  if (w->what == PUT) {
    w->result = put(m, ctx, &wait);
    return !wait;
  }
  struct tuple *t = w->what == TAKE_ANY ? m->whole.data : find(&m->whole, *(const int64_t *)ctx->inputs[0]->data);
  if (!t || m->whole.count == 0) return false;
  if (w->what == TAKE_ANY) {
    struct tfc_tensor *key = NULL;
    w->result = tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE_SCALAR, &key);
    if (!w->result) *(int64_t *)key->data = t->key;
  }
  if (!w->result) w->result = get(m, ctx, t, w->what == TAKE_ANY, w->what == PEEK);
  return true;
}

// Lets all waiters go on as far as they can, then completes the finished ones without holding the lock.
static void map_run(struct map *m) {
  struct waiter *done = NULL, **end = &done;
  pthread_mutex_lock(&m->lock);
  for (bool going = true; going;) {
    going = false;
    for (struct waiter **at = &m->first; *at;) {
      struct waiter *w = *at;
      if (!attempt(m, w)) {
        at = &w->next;
        continue;
      }
      *at = w->next;
      w->next = NULL;
      *end = w;
      end = &w->next;
      going = true;
    }
  }
  pthread_mutex_unlock(&m->lock);
  for (struct waiter *next; done; done = next) {
    next = done->next;
    struct tfc_kernel_ctx *ctx = done->ctx;
    tfc_status s = done->result;
    free(done);
    ctx->done(ctx, s);
  }
}

// --- Kernels -------------------------------------------------------------------------------------------------------
// Checks that the indices ascend, that each is the number of a part of the map, and that each value (or output) has the
// dtype of its part.
static tfc_status check(const struct tfc_kernel_ctx *ctx, const struct map *m, enum what what) {
  const struct tfc_tensor *indices = ctx->inputs[what == TAKE_ANY ? 0 : 1];
  const uint32_t first = what == TAKE_ANY;
  const int64_t count = tfc_tensor_elements(indices);
  const uint32_t values = what == PUT ? ctx->input_count - 2 : ctx->output_count - first;
  TFC_KERNEL_CHECK(what == TAKE_ANY || tfc_tensor_elements(ctx->inputs[0]) == 1, "the key must be a scalar");
  TFC_KERNEL_CHECK(count == values, "%lld indices for %u values", (long long)count, values);
  for (uint32_t i = 0; i < values; i++) {
    const int64_t at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(at >= 0 && at < m->parts, "Index '%lld' for key is out of bounds '%u'.", (long long)at, m->parts);
    TFC_KERNEL_CHECK(i == 0 || at > tfc_tensor_int(indices, i - 1), "Indices are not strictly ordered");
    const tfc_dtype t =
        what == PUT ? ctx->inputs[i + 2]->dtype : ctx->graph->output_dtypes[ctx->node->output_begin + first + i];
    TFC_KERNEL_CHECK(t == m->dtypes[at], "Type of part %lld is %s, not %s", (long long)at,
                     tfc_dtype_name(m->dtypes[at]), tfc_dtype_name(t));
  }
  return NULL;
}
static tfc_status start(struct tfc_kernel_ctx *ctx, enum what what) {
  struct map *m = NULL;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  tfc_status s = check(ctx, m, what);
  struct waiter *w = s ? NULL : calloc(1, sizeof *w);
  if (!s && !w) s = tfc_status_no_memory(NULL);
  if (w) {
    *w = (struct waiter){.ctx = ctx, .what = what};
    pthread_mutex_lock(&m->lock);
    struct waiter **end = &m->first;
    while (*end) end = &(*end)->next;
    *end = w;
    pthread_mutex_unlock(&m->lock);
    map_run(m);
  }
  tfc_object_release(&m->object);
  return s;
}
static tfc_status stage(struct tfc_kernel_ctx *ctx) {
  return start(ctx, PUT);
}
static tfc_status unstage(struct tfc_kernel_ctx *ctx) {
  return start(ctx, TAKE);
}
static tfc_status peek(struct tfc_kernel_ctx *ctx) {
  return start(ctx, PEEK);
}
static tfc_status unstage_any(struct tfc_kernel_ctx *ctx) {
  return start(ctx, TAKE_ANY);
}

static tfc_status size_of(struct tfc_kernel_ctx *ctx, bool whole) {
  struct map *m = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  pthread_mutex_lock(&m->lock);
  size_t n = whole ? m->whole.count : m->partial.count;
  pthread_mutex_unlock(&m->lock);
  tfc_object_release(&m->object);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)n;
  return NULL;
}
static tfc_status size(struct tfc_kernel_ctx *ctx) {
  return size_of(ctx, true);
}
static tfc_status incomplete_size(struct tfc_kernel_ctx *ctx) {
  return size_of(ctx, false);
}
static tfc_status clear(struct tfc_kernel_ctx *ctx) {
  struct map *m = NULL;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  pthread_mutex_lock(&m->lock);
  forget(m, &m->whole);
  forget(m, &m->partial);
  pthread_mutex_unlock(&m->lock);
  map_run(m); // there is room now
  tfc_object_release(&m->object);
  return NULL;
}

// --- Checkpoints -----------------------------------------------------------------------------------------------------
static void map_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  struct map *m = (struct map *)self;
  pthread_mutex_lock(&m->lock);
  for (const struct waiter *w = m->first; w; w = w->next) fn(arg, w->ctx->env->step_id);
  pthread_mutex_unlock(&m->lock);
}

static tfc_status save_tuples(const struct map *m, const tuples *all, struct tfc_text *out) {
  tfc_saved_add_number(out, (int64_t)all->count);
  for (size_t i = 0; i < all->count; i++) {
    tfc_saved_add_number(out, all->data[i].key);
    for (uint32_t k = 0; k < m->parts; k++) {
      const struct tfc_tensor *part = &all->data[i].parts[k];
      tfc_saved_add_number(out, part->dtype != TFC_DTYPE_NONE);
      if (part->dtype == TFC_DTYPE_NONE) continue;
      if (!tfc_saved_has_text(part->dtype))
        return tfc_status_make(TFC_UNIMPLEMENTED, "elements of type %s", tfc_dtype_name(part->dtype));
      tfc_saved_add_tensor(out, part);
    }
  }
  return NULL;
}
static tfc_status map_save(struct tfc_object *self, struct tfc_text *out) {
  struct map *m = (struct map *)self;
  pthread_mutex_lock(&m->lock);
  tfc_saved_add_number(out, m->parts);
  tfc_status s = save_tuples(m, &m->whole, out);
  if (!s) s = save_tuples(m, &m->partial, out);
  pthread_mutex_unlock(&m->lock);
  return s;
}

static void load_tuples(const struct map *m, struct tfc_saved *in, tuples *out) {
  for (int64_t n = tfc_saved_number(in, 0, (int64_t)in->words.size); n > 0 && !in->failure; n--) {
    struct tuple t = {tfc_saved_number(in, INT64_MIN, INT64_MAX), calloc(m->parts + 1u, sizeof *t.parts)};
    if (!t.parts || find(out, t.key) || !insert(out, t)) {
      free(t.parts);
      if (!in->failure) in->failure = tfc_status_make(TFC_INVALID_ARGUMENT, "a key is there twice, or memory is out");
      return;
    }
    struct tuple *made = find(out, t.key);
    for (uint32_t k = 0; k < m->parts; k++)
      if (tfc_saved_number(in, 0, 1)) tfc_saved_tensor(in, m->dtypes[k], &made->parts[k]);
  }
}
static tfc_status map_load(struct tfc_object *self, tfc_str words) {
  struct map *m = (struct map *)self;
  struct tfc_saved in = {.words = words};
  tuples whole = {0}, partial = {0};
  const int64_t parts = tfc_saved_number(&in, 0, UINT32_MAX);
  if (!in.failure && parts != m->parts)
    in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "it had %lld parts, and has %u", (long long)parts, m->parts);
  load_tuples(m, &in, &whole);
  load_tuples(m, &in, &partial);
  tfc_status s = tfc_saved_end(&in);
  if (s) {
    forget(m, &whole), forget(m, &partial);
    return s;
  }
  pthread_mutex_lock(&m->lock);
  forget(m, &m->whole), forget(m, &m->partial);
  m->whole = whole, m->partial = partial;
  pthread_mutex_unlock(&m->lock);
  map_run(m);
  return NULL;
}

static tfc_status shape_any(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
  return NULL;
}

#define AREA "capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, "
#define NAMED ", container: string = '', shared_name: string = ''"
#define FLAGS (TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
#define OPS(prefix)                                                                                                    \
  {.name = prefix "MapStage",                                                                                          \
   .inputs = "key: int64, indices: int32, values: fake_dtypes",                                                        \
   .attrs = AREA "dtypes: list(type), fake_dtypes: list(type) >= 1" NAMED,                                             \
   .flags = FLAGS | TFC_OP_ASYNC,                                                                                      \
   .shape = ops_shape_none,                                                                                            \
   .kernel = stage},                                                                                                   \
      {.name = prefix "MapUnstage",                                                                                    \
       .inputs = "key: int64, indices: int32",                                                                         \
       .outputs = "values: dtypes",                                                                                    \
       .attrs = AREA "dtypes: list(type) >= 1" NAMED,                                                                  \
       .flags = FLAGS | TFC_OP_ASYNC,                                                                                  \
       .shape = shape_any,                                                                                             \
       .kernel = unstage},                                                                                             \
      {.name = prefix "MapPeek",                                                                                       \
       .inputs = "key: int64, indices: int32",                                                                         \
       .outputs = "values: dtypes",                                                                                    \
       .attrs = AREA "dtypes: list(type) >= 1" NAMED,                                                                  \
       .flags = FLAGS | TFC_OP_ASYNC,                                                                                  \
       .shape = shape_any,                                                                                             \
       .kernel = peek},                                                                                                \
      {.name = prefix "MapUnstageNoKey",                                                                               \
       .inputs = "indices: int32",                                                                                     \
       .outputs = "key: int64, values: dtypes",                                                                        \
       .attrs = AREA "dtypes: list(type) >= 1" NAMED,                                                                  \
       .flags = FLAGS | TFC_OP_ASYNC,                                                                                  \
       .shape = shape_any,                                                                                             \
       .kernel = unstage_any},                                                                                         \
      {.name = prefix "MapSize",                                                                                       \
       .outputs = "size: int32",                                                                                       \
       .attrs = AREA "dtypes: list(type)" NAMED,                                                                       \
       .flags = FLAGS,                                                                                                 \
       .shape = ops_shape_scalar,                                                                                      \
       .kernel = size},                                                                                                \
      {.name = prefix "MapIncompleteSize",                                                                             \
       .outputs = "size: int32",                                                                                       \
       .attrs = AREA "dtypes: list(type)" NAMED,                                                                       \
       .flags = FLAGS,                                                                                                 \
       .shape = ops_shape_scalar,                                                                                      \
       .kernel = incomplete_size},                                                                                     \
  {                                                                                                                    \
    .name = prefix "MapClear", .attrs = AREA "dtypes: list(type)" NAMED, .flags = FLAGS, .shape = ops_shape_none,      \
    .kernel = clear                                                                                                    \
  }
static const struct tfc_op_def data_map_rows[] = {OPS(""), OPS("Ordered")};
TFC_REGISTER_OPS(data_map_rows);
