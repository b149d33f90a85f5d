// The rendezvous has one lock and a hash table by key. An entry is either a tensor or an operation that waits for one.
// An operation continues only after the lock was released.
#include "runtime/cluster/rendezvous.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"

typedef void (*giver)(struct tfc_kernel_ctx *ctx, tfc_status status, const struct tfc_tensor *value);
struct entry {
  struct entry *next;
  struct tfc_rendezvous_key key;
  struct tfc_tensor value;    // dtype NONE: dead
  struct tfc_kernel_ctx *ctx; // the operation that waits; NULL: the entry is a tensor
  giver give;
  tfc_str name;
};
typedef enum step_state { STEP_RUNS, STEP_ABORTED, STEP_OVER } step_state;
struct step {
  int64_t number;
  step_state state;
};
enum { BUCKETS = 1024 };
// an object among the session's resources, so that cancelling a step also wakes the operations that wait in this
// rendezvous
struct door {
  struct tfc_object object;
  pthread_mutex_t lock;
  struct entry *buckets[BUCKETS];
  TFC_ARRAY(struct step) steps; // steps not older than the oldest running step of their client
  TFC_ARRAY(int64_t) oldest;    // [client] its oldest running step
};
struct meeting {
  struct tfc_meeting base;
  struct tfc_resources *resources;
  struct door *door;
};

static struct entry **bucket_of(struct door *d, const struct tfc_rendezvous_key *key) {
  const uint64_t parts[] = {(uint64_t)key->step, key->iteration, key->edge};
  return &d->buckets[tfc_hash_bytes(parts, sizeof parts) % BUCKETS];
}
static bool same(const struct tfc_rendezvous_key *a, const struct tfc_rendezvous_key *b) {
  return a->step == b->step && a->iteration == b->iteration && a->edge == b->edge;
}
static struct entry *take(struct door *d, const struct tfc_rendezvous_key *key, bool waiting) {
  for (struct entry **at = bucket_of(d, key); *at; at = &(*at)->next)
    if (same(&(*at)->key, key) && !(*at)->ctx == !waiting) {
      struct entry *e = *at;
      *at = e->next;
      return e;
    }
  return NULL;
}

static step_state state_of(const struct door *d, int64_t number) {
  const uint32_t client = tfc_step_client(number);
  if (client < d->oldest.count && number < d->oldest.data[client]) return STEP_OVER;
  for (size_t i = d->steps.count; i-- > 0;)
    if (d->steps.data[i].number == number) return d->steps.data[i].state;
  return STEP_RUNS; // the step is unknown: the tensor arrived before the message that begins the step
}

static void entry_free(struct entry *e) {
  tfc_tensor_release(&e->value);
  free(e);
}
static void let_go(struct entry *e, tfc_code code) {
  while (e) {
    struct entry *next = e->next;
    if (e->ctx)
      e->give(e->ctx,
              tfc_status_make(code, "'%.*s' did not come: the step has ended in another task", TFC_STR_ARG(e->name)),
              NULL);
    entry_free(e);
    e = next;
  }
}

// Removes entries from the table and returns them as a list. `step` 0: operations whose run was cancelled; otherwise
// the entries of that step, all or (waiting_only) only operations that wait.
static struct entry *unlink_of(struct door *d, int64_t step, bool waiting_only) {
  struct entry *gone = NULL;
  for (uint32_t b = 0; b < BUCKETS; b++)
    for (struct entry **at = &d->buckets[b]; *at;) {
      struct entry *e = *at;
      const bool is_of =
          step ? e->key.step == step && (e->ctx || !waiting_only) : e->ctx && e->ctx->env->cancelled(e->ctx->env);
      if (!is_of) {
        at = &e->next;
        continue;
      }
      *at = e->next;
      e->next = gone;
      gone = e;
    }
  return gone;
}

static void wake(struct tfc_object *object) {
  struct door *d = (struct door *)(void *)object;
  pthread_mutex_lock(&d->lock);
  struct entry *gone = unlink_of(d, 0, true);
  pthread_mutex_unlock(&d->lock);
  let_go(gone, TFC_CANCELLED);
}

static void destroy(struct tfc_object *object) {
  struct door *d = (struct door *)(void *)object;
  for (uint32_t b = 0; b < BUCKETS; b++) let_go(d->buckets[b], TFC_CANCELLED);
  tfc_array_free(&d->steps);
  tfc_array_free(&d->oldest);
  pthread_mutex_destroy(&d->lock);
  free(d);
}
static const struct tfc_object_type door_type = {.name = "rendezvous", .destroy = destroy, .wake = wake};

static tfc_status make_door(void *arg, struct tfc_object **out) {
  (void)arg;
  struct door *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory("a rendezvous");
  d->object = (struct tfc_object){&door_type, 1};
  pthread_mutex_init(&d->lock, NULL);
  *out = &d->object;
  return NULL;
}

static void receive(struct tfc_rendezvous *base, const struct tfc_rendezvous_key *key, tfc_str name,
                    struct tfc_kernel_ctx *ctx, giver give) {
  struct door *d = ((struct meeting *)(void *)base)->door;
  struct entry *asks = calloc(1, sizeof *asks);
  if (!asks) {
    give(ctx, tfc_status_no_memory("a rendezvous"), NULL);
    return;
  }
  *asks = (struct entry){.key = *key, .ctx = ctx, .give = give, .name = name};
  pthread_mutex_lock(&d->lock);
  struct entry *there = take(d, key, false);
  const bool runs = there || state_of(d, key->step) == STEP_RUNS;
  if (!there && runs) {
    struct entry **bucket = bucket_of(d, key);
    asks->next = *bucket;
    *bucket = asks;
  }
  pthread_mutex_unlock(&d->lock);
  if (!there && runs) return;
  if (there) {
    give(ctx, NULL, there->value.dtype == TFC_DTYPE_NONE ? NULL : &there->value);
    entry_free(there);
    entry_free(asks);
  } else {
    let_go(asks, TFC_CANCELLED);
  }
}

tfc_status tfc_meeting_give(struct tfc_meeting *base, const struct tfc_rendezvous_key *key,
                            const struct tfc_tensor *value) {
  struct door *d = ((struct meeting *)(void *)base)->door;
  struct entry *brings = calloc(1, sizeof *brings);
  if (!brings) return tfc_status_no_memory("a rendezvous");
  brings->key = *key;
  if (value) tfc_tensor_share(value, &brings->value);
  pthread_mutex_lock(&d->lock);
  struct entry *asks = take(d, key, true);
  const bool keep = !asks && state_of(d, key->step) == STEP_RUNS;
  if (keep) {
    struct entry **bucket = bucket_of(d, key);
    brings->next = *bucket;
    *bucket = brings;
  }
  pthread_mutex_unlock(&d->lock);
  if (asks) {
    asks->give(asks->ctx, NULL, value);
    entry_free(asks);
  }
  if (!keep) entry_free(brings);
  return NULL;
}

bool tfc_meeting_take(struct tfc_meeting *base, const struct tfc_rendezvous_key *key, struct tfc_tensor *out) {
  struct door *d = ((struct meeting *)(void *)base)->door;
  pthread_mutex_lock(&d->lock);
  struct entry *there = take(d, key, false);
  pthread_mutex_unlock(&d->lock);
  if (!there) return false;
  *out = there->value;
  free(there);
  return true;
}

// Sets the state of a step. Under the lock.
static bool set_state(struct door *d, int64_t number, step_state state) {
  for (size_t i = d->steps.count; i-- > 0;)
    if (d->steps.data[i].number == number) {
      d->steps.data[i].state = state;
      return true;
    }
  return tfc_array_push(&d->steps, (struct step){number, state});
}

tfc_status tfc_meeting_begin(struct tfc_meeting *base, int64_t step, int64_t oldest) {
  struct door *d = ((struct meeting *)(void *)base)->door;
  const uint32_t client = tfc_step_client(step);
  bool ok = true;
  pthread_mutex_lock(&d->lock);
  if (d->oldest.count <= client) ok = tfc_array_resize(&d->oldest, client + 1);
  if (ok && oldest > d->oldest.data[client]) {
    size_t kept = 0;
    d->oldest.data[client] = oldest;
    for (size_t i = 0; i < d->steps.count; i++)
      if (tfc_step_client(d->steps.data[i].number) != client || d->steps.data[i].number >= oldest)
        d->steps.data[kept++] = d->steps.data[i];
    d->steps.count = kept;
  }
  ok = ok && set_state(d, step, STEP_RUNS);
  pthread_mutex_unlock(&d->lock);
  return ok ? NULL : tfc_status_no_memory("a rendezvous");
}

static void leave(struct tfc_meeting *base, int64_t step, step_state state) {
  struct door *d = ((struct meeting *)(void *)base)->door;
  pthread_mutex_lock(&d->lock);
  (void)set_state(d, step, state);
  struct entry *gone = unlink_of(d, step, state == STEP_ABORTED);
  pthread_mutex_unlock(&d->lock);
  let_go(gone, TFC_CANCELLED);
}
void tfc_meeting_abort(struct tfc_meeting *base, int64_t step) {
  leave(base, step, STEP_ABORTED);
}
void tfc_meeting_end(struct tfc_meeting *base, int64_t step) {
  leave(base, step, STEP_OVER);
}

tfc_status tfc_meeting_create(struct tfc_resources *resources, struct tfc_meeting **out) {
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(resources, TFC_STR("_task"), TFC_STR("rendezvous"), &door_type,
                                                   make_door, NULL, &object));
  struct meeting *m = calloc(1, sizeof *m);
  if (!m) {
    tfc_object_release(object);
    return tfc_status_no_memory("a rendezvous");
  }
  *m = (struct meeting){.base.base.receive = receive, .resources = resources, .door = (struct door *)(void *)object};
  *out = &m->base;
  return NULL;
}

void tfc_meeting_free(struct tfc_meeting *base) {
  struct meeting *m = (struct meeting *)(void *)base;
  if (!m) return;
  tfc_resources_remove(m->resources, TFC_STR("_task"), TFC_STR("rendezvous"));
  tfc_object_release(&m->door->object);
  free(m);
}
