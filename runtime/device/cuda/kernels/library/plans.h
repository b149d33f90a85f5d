// A table of plans (for matrix products, convolutions, ...), found by the bytes of their keys. Plans are made when
// segments are prepared and kept until the process ends: there are a few hundred shapes at most. Every plan begins with
// its key.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_PLANS_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_PLANS_H

#include <pthread.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/device/cuda/kernel.h"

struct tfc_cuda_plans {
  pthread_mutex_t lock; // initialise it with PTHREAD_MUTEX_INITIALIZER
  size_t key_size;
  // `make`: makes the plan of a key; called under the lock. `free`: frees a plan that could not be added to the table.
  tfc_status (*make)(struct tfc_cuda_library *library, const void *key, void **out);
  void (*free)(void *plan);
  TFC_ARRAY(void *) made;
};

static inline tfc_status tfc_cuda_plans_find(struct tfc_cuda_plans *p, struct tfc_cuda_library *library,
                                             const void *key, const void **out) {
  tfc_status s = NULL;
  void *fresh = NULL;
  pthread_mutex_lock(&p->lock);
  for (size_t i = p->made.count; i-- > 0;)
    if (!memcmp(p->made.data[i], key, p->key_size)) {
      *out = p->made.data[i];
      goto out;
    }
  if ((s = p->make(library, key, &fresh))) {
    // Whichever error the library reports, the op's next row may be able to run the operation.
    if (tfc_status_code(s) == TFC_INTERNAL || tfc_status_code(s) == TFC_UNAVAILABLE) {
      tfc_status declined = tfc_status_make(TFC_UNIMPLEMENTED, "%s", tfc_status_message(s));
      tfc_status_free(s);
      s = declined;
    }
    goto out;
  }
  if (!tfc_array_push(&p->made, fresh)) {
    p->free(fresh);
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  *out = fresh;
out:
  pthread_mutex_unlock(&p->lock);
  return s;
}

#endif
