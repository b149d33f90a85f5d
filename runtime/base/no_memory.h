// The error of a failed allocation, with a text that names sizes, files or nodes. (tfc_status_no_memory takes one that
// does not.) It is for memory of the host that malloc refused; an error of memory that a limit or a device refused is
// made by those who know what is left.
#ifndef TFC_RUNTIME_BASE_NO_MEMORY_H
#define TFC_RUNTIME_BASE_NO_MEMORY_H

#include "runtime/base/status.h"

// "out of memory: <what>"; `format` is printf's. Never NULL: if there is no memory for the text, it is "out of memory".
TFC_MUST_USE tfc_status tfc_status_no_memory_for(const char *format, ...) TFC_PRINTF(1, 2)
    __attribute__((returns_nonnull));

#endif
