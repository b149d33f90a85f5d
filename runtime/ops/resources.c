// Named objects of a session or step: a map from "container\0name" to a slot, under one lock. When an object is
// removed, its key stays, with an empty slot. What a checkpoint had of an object that does not exist yet waits in its
// slot, because only the node that makes the object knows what kind of object it is.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "runtime/base/no_memory.h"
#include "runtime/ops/kernel.h"

struct slot {
  tfc_str container, name;
  struct tfc_object *object; // one reference, or NULL
  char *kept;                // from a checkpoint: the object's type, and words (saved.h); NULL: nothing
};
struct tfc_resources {
  pthread_mutex_t lock;
  struct tfc_strmap by_key;
  TFC_ARRAY(struct slot) slots;
  struct tfc_arena arena;
};

tfc_status tfc_resources_create(struct tfc_resources **out) {
  struct tfc_resources *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_no_memory("a table of resources");
  pthread_mutex_init(&r->lock, NULL);
  tfc_arena_init(&r->arena, 4096);
  *out = r;
  return NULL;
}

void tfc_resources_free(struct tfc_resources *r) {
  if (!r) return;
  for (size_t i = 0; i < r->slots.count; i++) {
    tfc_object_release(r->slots.data[i].object);
    free(r->slots.data[i].kept);
  }
  tfc_array_free(&r->slots);
  tfc_strmap_deinit(&r->by_key);
  tfc_arena_deinit(&r->arena);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

// Makes a key for looking up. The caller frees it, unless it is `buffer` itself.
static tfc_str make_key(tfc_str container, tfc_str name, char *buffer, size_t capacity) {
  size_t size = container.size + 1 + name.size;
  char *data = size <= capacity ? buffer : malloc(size);
  if (!data) return (tfc_str){0};
  if (container.size) memcpy(data, container.data, container.size);
  data[container.size] = 0;
  if (name.size) memcpy(data + container.size + 1, name.data, name.size);
  return (tfc_str){data, size};
}

// Called under the lock. If `add`, makes a slot that does not exist.
static struct slot *find(struct tfc_resources *r, tfc_str key, size_t container_size, bool add) {
  const uint64_t *at = tfc_strmap_get(&r->by_key, key);
  if (at) return &r->slots.data[*at];
  if (!add) return NULL;
  tfc_str copy = tfc_arena_str(&r->arena, key);
  struct slot made = {tfc_str_sub(copy, 0, container_size), tfc_str_sub(copy, container_size + 1, copy.size), NULL,
                      NULL};
  if (!copy.data || !tfc_array_push(&r->slots, made)) return NULL;
  if (!tfc_strmap_put(&r->by_key, copy, r->slots.count - 1, NULL)) {
    r->slots.count--;
    return NULL;
  }
  return &r->slots.data[r->slots.count - 1];
}

// A slot, while the table is locked.
struct held {
  struct tfc_resources *resources;
  struct slot *slot; // NULL: there is none, or it could not be added
  tfc_str key;
  char buffer[256]; // of the key, if that is short
};
// Locks the table and looks for the slot. False: no memory for the key; the table is not locked.
static bool hold(struct tfc_resources *r, tfc_str container, tfc_str name, bool add, struct held *out) {
  out->key = make_key(container, name, out->buffer, sizeof out->buffer);
  if (!out->key.data) return false;
  out->resources = r;
  pthread_mutex_lock(&r->lock);
  out->slot = find(r, out->key, container.size, add);
  return true;
}
static void let_go(struct held *h) {
  pthread_mutex_unlock(&h->resources->lock);
  if (h->key.data != h->buffer) free((char *)h->key.data);
}

static tfc_status no_memory_of(tfc_str name) {
  return tfc_status_no_memory_for("resource '%.*s'", TFC_STR_ARG(name));
}

static tfc_status wrong_type(tfc_str name, const struct tfc_object *object, const struct tfc_object_type *type) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "resource '%.*s' is a %s, not a %s", TFC_STR_ARG(name),
                         object->type->name, type->name);
}

static tfc_status load(tfc_str name, tfc_str kept, struct tfc_object *object) {
  const size_t end = tfc_str_find(kept, '\t');
  const tfc_str type = tfc_str_sub(kept, 0, end),
                words = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(kept, end, SIZE_MAX);
  if (!tfc_str_is(type, object->type->name) || !object->type->load)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is a %s, and was a %.*s when its content was saved",
                           TFC_STR_ARG(name), object->type->name, TFC_STR_ARG(type));
  tfc_status s = object->type->load(object, words);
  return s ? tfc_status_annotate(s, "the %s '%.*s'", object->type->name, TFC_STR_ARG(name)) : NULL;
}

tfc_status tfc_resources_find_or_create(struct tfc_resources *r, tfc_str container, tfc_str name,
                                        const struct tfc_object_type *type,
                                        tfc_status (*create)(void *arg, struct tfc_object **out), void *arg,
                                        struct tfc_object **out) {
  tfc_status s = NULL;
  struct tfc_object *made = NULL;
  for (int round = 0; round < 2; round++) {
    struct held held;
    if (!hold(r, container, name, made != NULL, &held)) {
      s = no_memory_of(name);
      break;
    }
    struct slot *slot = held.slot;
    if (slot && slot->object) {
      if (slot->object->type != type)
        s = wrong_type(name, slot->object, type);
      else
        tfc_object_retain(*out = slot->object);
      round = 2;
    } else if (made && !slot) {
      s = no_memory_of(name);
    } else if (made && slot->kept && (s = load(name, tfc_str_from(slot->kept), made))) {
      // The content that was saved stays in the slot, so that every step that needs the object fails.
    } else if (made) { // two references: one for the table, one for the caller
      free(slot->kept);
      slot->kept = NULL;
      slot->object = made;
      tfc_object_retain(*out = made);
      made = NULL;
    }
    let_go(&held);
    if (round == 0) { // `create` runs without the lock, because it may look for resources itself
      s = create(arg, &made);
      if (s) break;
    }
  }
  tfc_object_release(made);
  return s;
}

tfc_status tfc_resources_find(struct tfc_resources *r, tfc_str container, tfc_str name,
                              const struct tfc_object_type *type, struct tfc_object **out) {
  tfc_status s = NULL;
  struct held held;
  if (!hold(r, container, name, false, &held)) return no_memory_of(name);
  const struct slot *slot = held.slot;
  if (!slot || !slot->object)
    s = tfc_status_make(TFC_NOT_FOUND, "there is no %s '%.*s'", type->name, TFC_STR_ARG(name));
  else if (slot->object->type != type)
    s = wrong_type(name, slot->object, type);
  else
    tfc_object_retain(*out = slot->object);
  let_go(&held);
  return s;
}

struct tfc_object *tfc_resources_look(struct tfc_resources *r, tfc_str container, tfc_str name) {
  struct tfc_object *found = NULL;
  struct held held;
  if (!hold(r, container, name, false, &held)) return NULL;
  if (held.slot) tfc_object_retain(found = held.slot->object);
  let_go(&held);
  return found;
}

void tfc_resources_remove(struct tfc_resources *r, tfc_str container, tfc_str name) {
  struct tfc_object *gone = NULL;
  struct held held;
  if (!hold(r, container, name, false, &held)) return;
  if (held.slot) gone = held.slot->object, held.slot->object = NULL;
  let_go(&held);
  tfc_object_release(gone);
}

static int by_name(const void *a, const void *b) {
  const struct slot *x = a, *y = b;
  int c = tfc_str_compare(x->name, y->name);
  return c ? c : tfc_str_compare(x->container, y->container);
}

void tfc_resources_each(struct tfc_resources *r,
                        void (*fn)(void *arg, tfc_str container, tfc_str name, struct tfc_object *object), void *arg) {
  pthread_mutex_lock(&r->lock);
  size_t n = 0;
  struct slot *copy = malloc((r->slots.count + 1) * sizeof *copy);
  for (size_t i = 0; copy && i < r->slots.count; i++)
    if (r->slots.data[i].object) {
      copy[n] = r->slots.data[i];
      tfc_object_retain(copy[n++].object);
    }
  pthread_mutex_unlock(&r->lock);
  if (copy) qsort(copy, n, sizeof *copy, by_name);
  for (size_t i = 0; i < n; i++) {
    fn(arg, copy[i].container, copy[i].name, copy[i].object);
    tfc_object_release(copy[i].object);
  }
  free(copy);
}

tfc_status tfc_resources_load(struct tfc_resources *r, tfc_str container, tfc_str name, tfc_str kept) {
  tfc_status s = NULL;
  struct held held;
  if (!hold(r, container, name, true, &held)) return no_memory_of(name);
  struct slot *slot = held.slot;
  struct tfc_object *object = slot ? slot->object : NULL;
  tfc_object_retain(object);
  if (slot && !object) {
    free(slot->kept);
    slot->kept = tfc_str_dup(kept);
  }
  if (!slot || (!object && !slot->kept)) s = no_memory_of(name);
  let_go(&held);
  if (object) s = load(name, kept, object); // without the lock: kernels that waited for it may go on
  tfc_object_release(object);
  return s;
}

void tfc_resources_each_kept(struct tfc_resources *r,
                             void (*fn)(void *arg, tfc_str container, tfc_str name, tfc_str kept), void *arg) {
  pthread_mutex_lock(&r->lock);
  for (size_t i = 0; i < r->slots.count; i++) {
    const struct slot *slot = &r->slots.data[i];
    if (slot->kept) fn(arg, slot->container, slot->name, tfc_str_from(slot->kept));
  }
  pthread_mutex_unlock(&r->lock);
}

static void wake(void *arg, tfc_str container, tfc_str name, struct tfc_object *object) {
  (void)arg, (void)container, (void)name;
  if (object->type->wake) object->type->wake(object);
}
void tfc_resources_wake(struct tfc_resources *r) {
  tfc_resources_each(r, wake, NULL);
}
