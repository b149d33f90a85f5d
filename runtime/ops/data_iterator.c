// Iterators, from which steps take the elements of a dataset. A named iterator belongs to the session and keeps its
// position from step to step; an anonymous iterator exists as long as a handle to it. The kernel that requests an
// element also computes it, within its own step. Two kernels that request elements at the same time take turns.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/data_iterator.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_variant.h"

struct iterator {
  struct tfc_object object;
  pthread_mutex_t lock;            // error-checking: a pipeline that reads its own iterator would wait for itself
  struct tfc_dataset_iterator *at; // NULL: not open
  struct tfc_dataset *dataset;     // the dataset that the iterator walks over; NULL: not initialised
  uint64_t given;                  // how many elements it has given since it was opened
  uint64_t skip;                   // how many elements are dropped before the next one is given
  uint32_t begun;                  // how often it was put at the beginning of a dataset
  bool anonymous;
  uint64_t number; // the number in its string handle
};

static atomic_bool repeat;
void tfc_iterators_repeat(void) {
  atomic_store(&repeat, true);
}

static void destroy(struct tfc_object *self) {
  struct iterator *it = (struct iterator *)self;
  tfc_dataset_close(it->at);
  if (it->dataset) tfc_object_release(&it->dataset->object);
  pthread_mutex_destroy(&it->lock);
  free(it);
}
// Positions of iterators with names are saved by tfc_iterators_each, also of those that no step has made yet. That of
// one without a name cannot be saved: nothing says which iterator it would be in another run.
static tfc_status save(struct tfc_object *self, struct tfc_text *out) {
  struct iterator *it = (struct iterator *)self;
  (void)out;
  if (pthread_mutex_lock(&it->lock)) return NULL; // a step of another client may ask it for an element now
  const bool holds = it->anonymous && it->given > 0;
  pthread_mutex_unlock(&it->lock);
  return holds ? tfc_status_make(TFC_UNIMPLEMENTED, "an iterator without a name") : NULL;
}
static const struct tfc_object_type iterator_type = {.name = "iterator", .destroy = destroy, .save = save};

// Closes the iterator's dataset; the next request opens it again.
static void restart(void *unused, tfc_str container, tfc_str name, struct tfc_object *object) {
  struct iterator *it = (struct iterator *)object;
  (void)unused, (void)container, (void)name;
  if (object->type != &iterator_type || pthread_mutex_lock(&it->lock)) return;
  tfc_dataset_close(it->at);
  it->at = NULL;
  pthread_mutex_unlock(&it->lock);
}
void tfc_iterators_restart(struct tfc_resources *r) {
  tfc_resources_each(r, restart, NULL);
}

static tfc_status create(void *unused, struct tfc_object **out) {
  static _Atomic uint64_t made;
  pthread_mutexattr_t kind;
  struct iterator *it = calloc(1, sizeof *it);
  (void)unused;
  if (!it) return tfc_status_no_memory(NULL);
  it->object = (struct tfc_object){.type = &iterator_type, .references = 1};
  it->number = ++made;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&it->lock, &kind);
  pthread_mutexattr_destroy(&kind);
  *out = &it->object;
  return NULL;
}

static tfc_status hold(struct iterator *it) {
  if (pthread_mutex_lock(&it->lock) == 0) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "an iterator is asked for an element while it makes one: its pipeline "
                                               "reads the iterator itself");
}

// The context in which an iterator works. What the functions of its pipeline draw at random is counted for this
// iterator alone: another run that puts the iterator where it was lets them draw the same numbers again, whatever else
// calls them. (Iterators without a name exist for a step or two, and leave the counts where the step has them.)
struct own_ctx {
  struct tfc_kernel_env env;
  struct tfc_kernel_ctx ctx;
};
static struct tfc_kernel_ctx *ctx_of(struct tfc_kernel_ctx *ctx, const struct iterator *it, struct own_ctx *own) {
  own->env = *ctx->env, own->ctx = *ctx;
  own->ctx.env = &own->env;
  if (!it->anonymous) own->env.states = it->number;
  return &own->ctx;
}

// Called under the lock. Puts the iterator at the beginning of `d`; *before is the old walk, which the caller closes.
static void set(struct iterator *it, struct tfc_dataset *d, struct tfc_dataset_iterator *at,
                struct tfc_dataset_iterator **before) {
  tfc_object_retain(&d->object);
  if (it->dataset) tfc_object_release(&it->dataset->object);
  *before = it->at;
  it->dataset = d, it->at = at, it->given = 0, it->begun++;
}

static tfc_status named(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &iterator_type, create);
}

static tfc_status anonymous(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(create(NULL, &o));
  ((struct iterator *)o)->anonymous = true;
  if (ctx->output_count > 1) {
    // The second output is a deleter, which has nothing to delete: the handle's last holder frees the iterator.
    struct tfc_tensor nothing = {0};
    tfc_status s = tfc_tensor_create(TFC_VARIANT, &TFC_SHAPE_SCALAR, &nothing);
    if (!s) s = tfc_data_output(ctx, 1, &nothing);
    if (s) {
      tfc_object_release(o);
      return s;
    }
  }
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, o);
}
static tfc_status nothing_to_delete(struct tfc_kernel_ctx *ctx) {
  (void)ctx;
  return NULL;
}

static tfc_status make_iterator(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  struct tfc_dataset *d = NULL;
  struct tfc_dataset_iterator *at = NULL;
  struct own_ctx own;
  TFC_RETURN_IF_ERROR(tfc_dataset_of(ctx->inputs[0], &d));
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 1, &iterator_type, &o));
  struct iterator *it = (struct iterator *)o;
  TFC_RETURN_IF_ERROR(tfc_dataset_open(ctx_of(ctx, it, &own), d, &at));
  tfc_status s = hold(it);
  if (s) {
    tfc_dataset_close(at);
    return s;
  }
  struct tfc_dataset_iterator *before = NULL;
  set(it, d, at, &before);
  it->skip = 0;
  pthread_mutex_unlock(&it->lock);
  tfc_dataset_close(before);
  return NULL;
}

// The first step that uses the iterator calls the function that makes its dataset.
static tfc_status one_shot(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor made = {0};
  struct tfc_dataset *d = NULL;
  tfc_status s = NULL;
  struct own_ctx own;
  const struct tfc_attr *factory = tfc_node_attr(ctx->graph, ctx->node, "dataset_factory");
  TFC_KERNEL_CHECK(factory && factory->kind == TFC_ATTR_FUNC, "attribute 'dataset_factory' is missing");
  if (!ctx->env->call) return tfc_status_make(TFC_UNIMPLEMENTED, "no function can be called here");
  TFC_RETURN_IF_ERROR(named(ctx));
  struct iterator *it = *(struct iterator **)ctx->outputs[0]->data;
  TFC_RETURN_IF_ERROR(hold(it));
  if (!it->dataset) {
    struct tfc_dataset_iterator *at = NULL, *before = NULL;
    struct tfc_kernel_ctx *its = ctx_of(ctx, it, &own);
    TFC_TRY(s, its->env->call(its->env, factory->func, NULL, 0, &made, 1));
    TFC_TRY(s, tfc_dataset_of(&made, &d));
    TFC_TRY(s, tfc_dataset_open(its, d, &at));
    set(it, d, at, &before);
  }
out:
  pthread_mutex_unlock(&it->lock);
  tfc_tensor_release(&made);
  return s ? s : tfc_dataset_done(ctx);
}

// Called under the lock.
static tfc_status reopen(struct tfc_kernel_ctx *ctx, struct iterator *it) {
  tfc_dataset_close(it->at);
  it->at = NULL;
  it->given = 0;
  return tfc_dataset_open(ctx, it->dataset, &it->at);
}

// Called under the lock. Takes and drops the elements that were given before the run was broken off.
static tfc_status catch_up(struct tfc_kernel_ctx *ctx, struct iterator *it) {
  const uint32_t count = it->dataset->parts;
  struct tfc_tensor *parts = tfc_dataset_parts(count);
  tfc_status s = parts ? NULL : tfc_status_no_memory(NULL);
  while (!s && it->skip) {
    bool ended = false;
    s = tfc_dataset_next(ctx, it->at, parts, &ended);
    tfc_dataset_parts_clear(parts, count);
    if (!s && ended)
      s = tfc_status_make(TFC_FAILED_PRECONDITION,
                          "the dataset has %llu elements, and %llu had been taken from it when the state was saved",
                          (unsigned long long)it->given, (unsigned long long)(it->given + it->skip));
    if (!s) it->given++, it->skip--;
  }
  tfc_dataset_parts_free(parts, parts ? count : 0);
  return s;
}

// *ended: no element is left, and `parts` is NULL.
static tfc_status next_of(struct tfc_kernel_ctx *ctx, struct tfc_tensor **parts, uint32_t *count, bool *ended) {
  struct tfc_object *o = NULL;
  struct own_ctx own;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &iterator_type, &o));
  struct iterator *it = (struct iterator *)o;
  ctx = ctx_of(ctx, it, &own);
  tfc_status s = hold(it);
  if (s) return s;
  if (!it->dataset)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION,
             "GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer "
             "operation for this iterator before getting the next element.");
  if (!it->at) TFC_TRY(s, reopen(ctx, it));
  if (it->skip) TFC_TRY(s, catch_up(ctx, it));
  *count = it->dataset->parts;
  *parts = tfc_dataset_parts(*count);
  if (!*parts) TFC_TRY(s, tfc_status_no_memory(NULL));
  s = tfc_dataset_next(ctx, it->at, *parts, ended);
  if (!s && *ended && it->given && atomic_load(&repeat)) {
    TFC_TRY(s, reopen(ctx, it));
    it->begun++;
    *ended = false;
    s = tfc_dataset_next(ctx, it->at, *parts, ended);
  }
  it->given += !s && !*ended;
out:
  pthread_mutex_unlock(&it->lock);
  if (s || *ended) {
    free(*parts);
    *parts = NULL;
  }
  return s;
}

static tfc_status get_next(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *parts = NULL;
  uint32_t count = 0;
  bool ended = false;
  TFC_RETURN_IF_ERROR(next_of(ctx, &parts, &count, &ended));
  if (ended) return tfc_status_make(TFC_OUT_OF_RANGE, "End of sequence");
  tfc_status s = tfc_dataset_deliver(ctx, parts, count);
  tfc_dataset_parts_free(parts, count);
  return s ? s : tfc_dataset_done(ctx);
}

static tfc_status get_next_as_optional(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *parts = NULL;
  struct tfc_optional *o = NULL;
  uint32_t count = 0;
  bool ended = false;
  TFC_RETURN_IF_ERROR(next_of(ctx, &parts, &count, &ended));
  tfc_status s = tfc_optional_create(ended ? 0 : count, !ended, &o);
  for (uint32_t i = 0; !s && !ended && i < count; i++) tfc_tensor_share(&parts[i], &o->values[i]);
  tfc_dataset_parts_free(parts, ended ? 0 : count);
  if (!s) s = tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &o->object);
  return s ? s : tfc_dataset_done(ctx);
}

// --- String handles ----------------------------------------------------------------------------------------------
// Once a string handle of an iterator was requested, the session keeps the iterator, under the name in that handle.
static const tfc_str handles = {"iterators of string handles", sizeof "iterators of string handles" - 1};
static tfc_status itself(void *arg, struct tfc_object **out) {
  tfc_object_retain(arg);
  *out = arg;
  return NULL;
}
static tfc_status to_string(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL, *kept = NULL;
  struct tfc_tensor *y = NULL;
  char name[40];
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &iterator_type, &o));
  snprintf(name, sizeof name, "iterator:%llu", (unsigned long long)((struct iterator *)o)->number);
  TFC_RETURN_IF_ERROR(
      tfc_resources_find_or_create(ctx->env->resources, handles, tfc_str_from(name), &iterator_type, itself, o, &kept));
  tfc_object_release(kept);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y));
  return tfc_tensor_set_string(y, 0, tfc_str_from(name));
}
static tfc_status from_string(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[0]) == 1, "the handle must be one string");
  tfc_str name = tfc_tensor_get_string(ctx->inputs[0], 0);
  TFC_RETURN_IF_ERROR(tfc_resources_find(ctx->env->resources, handles, name, &iterator_type, &o));
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, o);
}

// --- Where iterators are, for checkpoints ------------------------------------------------------------------------
struct listing {
  tfc_iterator_fn fn;
  void *arg;
};
static void list(void *arg, tfc_str container, tfc_str name, struct tfc_object *object) {
  const struct listing *l = arg;
  struct iterator *it = (struct iterator *)object;
  if (object->type != &iterator_type || it->anonymous || tfc_str_equal(container, handles) ||
      pthread_mutex_lock(&it->lock))
    return;
  const struct tfc_iterator_place place = {
      .container = container, .name = name, .given = it->given + it->skip, .begun = it->begun, .dataset = it->dataset};
  l->fn(l->arg, &place);
  pthread_mutex_unlock(&it->lock);
}
void tfc_iterators_each(struct tfc_resources *r, tfc_iterator_fn fn, void *arg) {
  struct listing l = {fn, arg};
  tfc_resources_each(r, list, &l);
}

tfc_status tfc_iterators_go_to(struct tfc_resources *r, tfc_str container, tfc_str name, uint64_t given) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(r, container, name, &iterator_type, create, NULL, &o));
  struct iterator *it = (struct iterator *)o;
  tfc_status s = hold(it);
  if (!s) {
    if (it->given) { // the next request opens it again; a dataset that shuffles anew each time gives another order then
      tfc_dataset_close(it->at);
      it->at = NULL;
      it->given = 0;
    }
    it->skip = given;
    pthread_mutex_unlock(&it->lock);
  }
  tfc_object_release(o);
  return s;
}

#define KINDS TFC_DATASET_KINDS
#define ROW(op, in, out, attributes, shape_, more, kernel_)                                                            \
  {                                                                                                                    \
    .name = op, .inputs = in, .outputs = out, .attrs = attributes,                                                     \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | (more), .shape = shape_, .kernel = kernel_,   \
    .node_state = (more) ? TFC_DATASET_TURNS : 0                                                                       \
  }
static const struct tfc_op_def data_iterator_rows[] = {
    ROW("Iterator", "", "handle: resource", "shared_name: string, container: string, " KINDS, ops_shape_scalar, 0,
        named),
    ROW("IteratorV2", "", "handle: resource", "shared_name: string, container: string, " KINDS, ops_shape_scalar, 0,
        named),
    ROW("AnonymousIterator", "", "handle: resource", KINDS, ops_shape_scalar, 0, anonymous),
    ROW("AnonymousIteratorV2", "", "handle: resource, deleter: variant", KINDS, ops_shape_scalar, 0, anonymous),
    ROW("AnonymousIteratorV3", "", "handle: resource", KINDS, ops_shape_scalar, 0, anonymous),
    ROW("DeleteIterator", "handle: resource, deleter: variant", "", "", ops_shape_none, 0, nothing_to_delete),
    ROW("OneShotIterator", "", "handle: resource",
        "dataset_factory: func, " KINDS ", container: string = '', shared_name: string = ''", ops_shape_scalar,
        TFC_OP_ASYNC, one_shot),
    {.name = "MakeIterator",
     .inputs = "dataset: variant, iterator: resource",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .role = TFC_ROLE_MAKE_ITERATOR,
     .effect = TFC_EFFECT_TABLE,
     .shape = ops_shape_none,
     .kernel = make_iterator},
    ROW("IteratorGetNext", "iterator: resource", "components: output_types", KINDS, tfc_dataset_shape_next,
        TFC_OP_ASYNC | TFC_OP_READS_OUTSIDE, get_next),
    ROW("IteratorGetNextSync", "iterator: resource", "components: output_types", KINDS, tfc_dataset_shape_next,
        TFC_OP_ASYNC | TFC_OP_READS_OUTSIDE, get_next),
    ROW("IteratorGetNextAsOptional", "iterator: resource", "optional: variant", KINDS, ops_shape_scalar,
        TFC_OP_ASYNC | TFC_OP_READS_OUTSIDE, get_next_as_optional),
    ROW("IteratorToStringHandle", "resource_handle: resource", "string_handle: string", "", ops_shape_scalar, 0,
        to_string),
    ROW("IteratorFromStringHandle", "string_handle: string", "resource_handle: resource",
        "output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []", ops_shape_scalar, 0, from_string),
    ROW("IteratorFromStringHandleV2", "string_handle: string", "resource_handle: resource",
        "output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []", ops_shape_scalar, 0, from_string),
};
TFC_REGISTER_OPS(data_iterator_rows);
