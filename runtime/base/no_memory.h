// Makes the status of a failed allocation.
#ifndef TFC_RUNTIME_BASE_NO_MEMORY_H
#define TFC_RUNTIME_BASE_NO_MEMORY_H

#include "runtime/base/status.h"

// Its message is "out of memory: <what>". `what` says what the memory was for, such as "reading a graph".
TFC_MUST_USE static inline tfc_status tfc_status_no_memory(const char *what) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: %s", what);
}

#endif
