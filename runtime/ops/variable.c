// Variables: values with a name that outlive a step (struct tfc_variable in kernel.h).
#include <sched.h>
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/ops/kernel.h"

static void destroy(struct tfc_object *self) {
  struct tfc_variable *v = (struct tfc_variable *)self;
  tfc_tensor_release(&v->value);
  pthread_mutex_destroy(&v->access);
  free((char *)v->name.data);
  free(v);
}

const struct tfc_object_type tfc_variable_type = {.name = "variable", .destroy = destroy};

tfc_status tfc_variable_create(tfc_str name, tfc_dtype dtype, const struct tfc_shape *shape,
                               struct tfc_variable **out) {
  struct tfc_variable *v = calloc(1, sizeof *v);
  char *copy = v ? tfc_str_dup(name) : NULL;
  if (!copy) {
    free(v);
    return tfc_status_no_memory_for("variable '%.*s'", TFC_STR_ARG(name));
  }
  v->object = (struct tfc_object){.type = &tfc_variable_type, .references = 1};
  pthread_mutex_init(&v->access, NULL);
  v->name = (tfc_str){copy, name.size};
  v->dtype = tfc_dtype_base(dtype);
  v->shape = *shape;
  *out = v;
  return NULL;
}

tfc_status tfc_variable_check(const struct tfc_variable *v) {
  if (v->initialized) return NULL;
  return tfc_status_make(TFC_FAILED_PRECONDITION,
                         "variable '%.*s' is not initialized: run the graph's initialiser first (--init), or restore a "
                         "checkpoint (--checkpoint)",
                         TFC_STR_ARG(v->name));
}

// The lock is held only for a few instructions, so a waiting thread spins and then yields its core.
void tfc_variable_lock(struct tfc_variable *v) {
  for (int spins = 0;; spins++) {
    int32_t free_lock = 0;
    if (atomic_compare_exchange_weak_explicit(&v->lock, &free_lock, 1, memory_order_acquire, memory_order_relaxed))
      return;
    if (spins > 64) sched_yield();
  }
}

void tfc_variable_unlock(struct tfc_variable *v) {
  atomic_store_explicit(&v->lock, 0, memory_order_release);
}
