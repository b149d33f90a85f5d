// Whether several operations may become one operation. They may not if a path leads from one of them through another
// operation back to one of them, since the one operation would then wait for itself. Such paths go through ordering
// edges: a product reads a variable, the variable's update comes after it, and another product after that.
#ifndef TFC_RUNTIME_EXEC_REWRITES_MERGING_H_
#define TFC_RUNTIME_EXEC_REWRITES_MERGING_H_

#include "runtime/exec/rewrites/rewrite.h"

// The operations of a rewrite as they were when it began, and which of them have become one since. All memory is the
// arena's.
struct tfc_merging {
  struct tfc_ir_followers followers;
  uint8_t *seen;  // [ops] scratch of a search
  uint32_t *todo; // [ops] scratch of a search
  uint32_t *with; // [ops] the next of the operations with which it became one, in a ring; itself: it is on its own
};
TFC_MUST_USE tfc_status tfc_merging_begin(const struct tfc_ir *ir, struct tfc_arena *arena,
                                          const struct tfc_ir_readers *readers, struct tfc_merging *out);
// Whether a path leads from one of ops[count] through another operation to one of them or to `reader`, the operation
// that reads all of them and becomes one with them (TFC_NONE: it does not).
bool tfc_merging_waits(struct tfc_merging *m, const uint32_t *ops, uint32_t count, uint32_t reader);
// Notes that they have become one.
void tfc_merging_note(struct tfc_merging *m, const uint32_t *ops, uint32_t count, uint32_t reader);

#endif
