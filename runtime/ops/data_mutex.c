// Mutexes, as critical sections use them: MutexLock waits until the mutex is free and gives a variant; the mutex is
// free again when ConsumeMutexLock takes that variant, or when the last reference to it is released.
#include <stdlib.h>

#include "runtime/ops/data_named.h"
#include "runtime/ops/row.h"

struct waiter {
  struct waiter *next;
  struct tfc_kernel_ctx *ctx;
  tfc_status result;
};
struct mutex {
  struct tfc_object object;
  pthread_mutex_t guard;
  bool held;
  struct waiter *first;
};
struct lock { // the value that a holder has
  struct tfc_object object;
  struct mutex *mutex;
  _Atomic bool held;
};

static void mutex_destroy(struct tfc_object *self) {
  pthread_mutex_destroy(&((struct mutex *)self)->guard);
  free(self);
}
static void complete(struct waiter *done) {
  for (struct waiter *w = done, *next; w; w = next) {
    next = w->next;
    struct tfc_kernel_ctx *ctx = w->ctx;
    tfc_status s = w->result;
    free(w);
    ctx->done(ctx, s);
  }
}
static tfc_status grant(struct mutex *m, struct tfc_kernel_ctx *ctx);
static bool given_up(const struct waiter *w) {
  return w->ctx->env->cancelled && w->ctx->env->cancelled(w->ctx->env);
}
// Called under the guard. Returns the waiters of cancelled steps and, if the mutex is free, the first other waiter.
static struct waiter *serve(struct mutex *m) {
  struct waiter *done = NULL, **end = &done;
  for (struct waiter **at = &m->first; *at;) {
    struct waiter *w = *at;
    bool cancelled = given_up(w);
    if (!cancelled && m->held) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    w->next = NULL;
    w->result = cancelled ? tfc_status_make(TFC_CANCELLED, "Lock acquisition cancelled.") : grant(m, w->ctx);
    *end = w;
    end = &w->next;
  }
  return done;
}
static void mutex_wake(struct tfc_object *self) {
  struct mutex *m = (struct mutex *)self;
  pthread_mutex_lock(&m->guard);
  struct waiter *done = serve(m);
  pthread_mutex_unlock(&m->guard);
  complete(done);
}
static void mutex_describe(struct tfc_object *self, struct tfc_text *out) {
  struct mutex *m = (struct mutex *)self;
  pthread_mutex_lock(&m->guard);
  tfc_text_printf(out, "mutex (%s)", m->held ? "held" : "free");
  pthread_mutex_unlock(&m->guard);
}
static const struct tfc_object_type mutex_type = {
    .name = "mutex", .destroy = mutex_destroy, .wake = mutex_wake, .describe = mutex_describe};

static void lock_release(struct lock *l) {
  if (!atomic_exchange(&l->held, false)) return;
  pthread_mutex_lock(&l->mutex->guard);
  l->mutex->held = false;
  struct waiter *done = serve(l->mutex);
  pthread_mutex_unlock(&l->mutex->guard);
  complete(done);
}
static void lock_destroy(struct tfc_object *self) {
  struct lock *l = (struct lock *)self;
  lock_release(l);
  tfc_object_release(&l->mutex->object);
  free(l);
}
static const struct tfc_object_type lock_type = {.name = "mutex lock", .destroy = lock_destroy};

static tfc_status grant(struct mutex *m, struct tfc_kernel_ctx *ctx) {
  struct lock *l = calloc(1, sizeof *l);
  if (!l) return tfc_status_no_memory(NULL);
  l->object = (struct tfc_object){.type = &lock_type, .references = 1};
  l->mutex = m;
  tfc_object_retain(&m->object);
  tfc_status s = tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &l->object);
  if (s) return s; // the output was not set: releasing the object also released the lock, which was never held
  atomic_store(&l->held, true);
  m->held = true;
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
static tfc_status make(void *arg, struct tfc_object **out) {
  (void)arg;
  struct mutex *m = calloc(1, sizeof *m);
  if (!m) return tfc_status_no_memory(NULL);
  m->object = (struct tfc_object){.type = &mutex_type, .references = 1};
  pthread_mutex_init(&m->guard, NULL);
  *out = &m->object;
  return NULL;
}
static tfc_status create(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &mutex_type, make);
}
static tfc_status acquire(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_named_get(ctx, &mutex_type, &o));
  struct mutex *m = (struct mutex *)o;
  struct waiter *w = calloc(1, sizeof *w), *done = NULL, **end = &m->first;
  if (!w) {
    tfc_object_release(o);
    return tfc_status_no_memory(NULL);
  }
  w->ctx = ctx;
  pthread_mutex_lock(&m->guard);
  while (*end) end = &(*end)->next;
  *end = w;
  done = serve(m);
  pthread_mutex_unlock(&m->guard);
  complete(done);
  tfc_object_release(o);
  return NULL;
}
static tfc_status consume(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &lock_type, &o));
  lock_release((struct lock *)o);
  return NULL;
}

#define IO(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define FLAGS TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE
static const struct tfc_op_def data_mutex_rows[] = {
    {.name = "MutexV2",
     .outputs = "resource: resource",
     .attrs = "container: string = '', shared_name: string = ''",
     .flags = FLAGS,
     IO(ops_shape_scalar, create)},
    {.name = "MutexLock",
     .inputs = "mutex: resource",
     .outputs = "mutex_lock: variant",
     .flags = FLAGS | TFC_OP_ASYNC,
     IO(ops_shape_scalar, acquire)},
    {.name = "ConsumeMutexLock", .inputs = "mutex_lock: variant", .flags = FLAGS, IO(ops_shape_none, consume)},
};
TFC_REGISTER_OPS(data_mutex_rows);
