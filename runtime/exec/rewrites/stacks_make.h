// Makes one operation of each stack.
#ifndef TFC_RUNTIME_EXEC_REWRITES_STACKS_MAKE_H
#define TFC_RUNTIME_EXEC_REWRITES_STACKS_MAKE_H

#include "runtime/exec/rewrites/stacks.h"

// Replaces the operations of every stack by one operation.
TFC_MUST_USE tfc_status tfc_stacks_make(struct tfc_stacks *w);

#endif
