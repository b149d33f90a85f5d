// The name of an index (of an operation, a unit, a device, ...) that stands for nothing. For nodes of a graph it is
// TFC_NO_NODE (runtime/graph/graph.h), which has the same value.
#ifndef TFC_RUNTIME_BASE_NONE_H
#define TFC_RUNTIME_BASE_NONE_H

#include <stdint.h>

#define TFC_NONE UINT32_MAX

#endif
