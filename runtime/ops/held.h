// Whether objects hold something that the next step may use and that no checkpoint saves: a queue's elements, a
// reader's place in a file, ...
#ifndef TFC_RUNTIME_OPS_HELD_H
#define TFC_RUNTIME_OPS_HELD_H

#include "runtime/graph/tensor.h"

// X(kind): tfc_KIND_holds(object, &held) returns false if the object is of another kind.
#define TFC_HELD_KINDS(X)                                                                                              \
  X(accumulator)                                                                                                       \
  X(barrier)                                                                                                           \
  X(hash_table) X(iterator) X(learned_distribution) X(queue) X(reader) X(sparse_map) X(staging_area) X(staging_map)
#define TFC_HELD_KIND(kind) bool tfc_##kind##_holds(struct tfc_object *object, bool *out_held);
TFC_HELD_KINDS(TFC_HELD_KIND)
#undef TFC_HELD_KIND

static inline bool tfc_object_holds(struct tfc_object *object) {
  bool held = false;
#define TFC_HELD_KIND(kind)                                                                                            \
  if (tfc_##kind##_holds(object, &held)) return held;
  TFC_HELD_KINDS(TFC_HELD_KIND)
#undef TFC_HELD_KIND
  return false;
}

#endif
