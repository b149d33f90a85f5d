// Products that a loop adds to a sum (struct tfc_dsum) wait until there are several, and are then added together: so
// the sum, which may be larger than a cache, is read and written once for several iterations, and cores that divide the
// work meet once. The bits are the same, because each element of the sum gets the products one after the other.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_TERMS_H
#define TFC_RUNTIME_EXEC_DYNAMIC_TERMS_H

#include <stdlib.h>

#include "runtime/exec/dynamic/run.h"

enum { TFC_RUN_TERMS = 8 }; // most that wait for one sum
struct tfc_run_terms {
  const struct tfc_dnode *node; // whose products they are
  uint32_t count;
  struct tfc_tensor factors[2 * TFC_RUN_TERMS];
};

// Takes the factors of the product that the item's node adds in this iteration. *out_waits: it took them; false: the
// node has to run, after terms that waited before have been added to its input 0.
TFC_MUST_USE tfc_status tfc_run_gather(struct tfc_run *r, const struct tfc_run_item *item, bool *out_waits);
// Adds all products that wait, when the loop has ended and before it is left.
TFC_MUST_USE tfc_status tfc_run_add_terms(struct tfc_run *r, const struct tfc_run_item *item);
static inline void tfc_run_terms_drop(struct tfc_run_terms *terms) {
  for (uint32_t i = 0; i < 2 * terms->count; i++) tfc_tensor_release(&terms->factors[i]);
  terms->count = 0;
}
static inline void tfc_run_terms_free(struct tfc_run_frame *f) {
  for (uint32_t i = 0; f->terms && i < f->f->loop->sum_count; i++) tfc_run_terms_drop(&f->terms[i]);
  free(f->terms);
}

#endif
