// Iterators over datasets, for what is done with all iterators of a session between steps.
#ifndef TFC_RUNTIME_OPS_DATA_ITERATOR_H
#define TFC_RUNTIME_OPS_DATA_ITERATOR_H

#include "runtime/ops/data_dataset.h"

// After this call, an iterator of this process that comes to its end begins again, if it has given an element since it
// began. A program that measures steps calls this: it may run more steps than there is data.
void tfc_iterators_repeat(void);
// Makes the iterators of a session begin again; to be called between steps.
void tfc_iterators_restart(struct tfc_resources *r);

// Where an iterator with a name is, so that another run can go on there: it takes the same elements again and drops
// them. Pipelines of tfc give the same elements each time.
struct tfc_iterator_place {
  tfc_str container, name;
  uint64_t given;                    // elements since it was opened
  uint32_t begun;                    // how often it was put at the beginning of a dataset
  const struct tfc_dataset *dataset; // NULL: it was not initialised
};
typedef void (*tfc_iterator_fn)(void *arg, const struct tfc_iterator_place *place);
void tfc_iterators_each(struct tfc_resources *r, tfc_iterator_fn fn, void *arg); // fn must not use iterators
// Makes the next request drop so many elements from the dataset's beginning. Call it before the iterator gives
// elements; it is made if it does not exist, and putting it at the beginning of another dataset ends this.
TFC_MUST_USE tfc_status tfc_iterators_go_to(struct tfc_resources *r, tfc_str container, tfc_str name, uint64_t given);

#endif
