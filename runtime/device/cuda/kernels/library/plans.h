// A table of plans (for matrix products, convolutions, ...), found by the bytes of their keys. Plans are made when
// segments are prepared and kept until the process ends: there are a few hundred shapes at most. Every plan begins with
// its key.
//
// To make a plan takes device memory, for which a thread waits while another one captures (memory.h). So a thread that
// captures must find known plans without waiting for one that makes another, and makes none itself.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_PLANS_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_PLANS_H

#include <pthread.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/device/cuda/kernel.h"

struct tfc_cuda_plans {
  pthread_mutex_t lock;   // guards `made`; initialise both with PTHREAD_MUTEX_INITIALIZER
  pthread_mutex_t making; // of the thread that makes a plan
  size_t key_size;
  // `make`: makes the plan of a key; called with `making` held. `free`: frees a plan that could not be added.
  tfc_status (*make)(struct tfc_cuda_library *library, const void *key, void **out);
  void (*free)(void *plan);
  TFC_ARRAY(void *) made;
};

static inline const void *tfc_cuda_plans_known(struct tfc_cuda_plans *p, const void *key) { // NULL: there is none
  const void *found = NULL;
  pthread_mutex_lock(&p->lock);
  for (size_t i = p->made.count; i-- > 0 && !found;)
    if (!memcmp(p->made.data[i], key, p->key_size)) found = p->made.data[i];
  pthread_mutex_unlock(&p->lock);
  return found;
}

static inline tfc_status tfc_cuda_plans_add(struct tfc_cuda_plans *p, struct tfc_cuda_library *library, const void *key,
                                            const void **out) {
  void *fresh = NULL;
  tfc_status s = p->make(library, key, &fresh);
  if (s) {
    // Whichever error the library reports, the op's next row may be able to run the operation.
    if (tfc_status_code(s) != TFC_INTERNAL && tfc_status_code(s) != TFC_UNAVAILABLE) return s;
    tfc_status declined = tfc_status_make(TFC_UNIMPLEMENTED, "%s", tfc_status_message(s));
    tfc_status_free(s);
    return declined;
  }
  pthread_mutex_lock(&p->lock);
  const bool kept = tfc_array_push(&p->made, fresh);
  pthread_mutex_unlock(&p->lock);
  if (!kept) {
    p->free(fresh);
    return tfc_status_no_memory(NULL);
  }
  *out = fresh;
  return NULL;
}

// ABORTED: the plan is not known, and the device captures.
static inline tfc_status tfc_cuda_plans_find(struct tfc_cuda_plans *p, struct tfc_cuda_library *library,
                                             const void *key, const void **out) {
  tfc_status s = NULL;
  const void *found = tfc_cuda_plans_known(p, key);
  if (!found && library->captures)
    return tfc_status_make(TFC_ABORTED, "no algorithm can be chosen while a segment is captured");
  if (!found) {
    pthread_mutex_lock(&p->making);
    if (!(found = tfc_cuda_plans_known(p, key))) // another thread may have made it meanwhile
      s = tfc_cuda_plans_add(p, library, key, &found);
    pthread_mutex_unlock(&p->making);
  }
  if (!s) *out = found;
  return s;
}

#endif
