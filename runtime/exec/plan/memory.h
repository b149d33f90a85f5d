// The place of every value of a plan in the arenas.
#ifndef TFC_RUNTIME_EXEC_PLAN_MEMORY_H
#define TFC_RUNTIME_EXEC_PLAN_MEMORY_H

#include "runtime/exec/plan/arrange.h"

struct tfc_memory_plan {
  uint64_t *value_offset; // [values] offset in the arena of the value's location; UINT64_MAX: it has no place
  uint64_t *copy_offset;  // [transfers]
  uint64_t *size;         // [device_count + 1] size of each arena
};
TFC_MUST_USE tfc_status tfc_memory_plan_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                             struct tfc_arena *arena, struct tfc_memory_plan *out);

#endif
