// The index (of a node, an operation, a unit, a device, ...) that stands for nothing.
#ifndef TFC_RUNTIME_BASE_NONE_H
#define TFC_RUNTIME_BASE_NONE_H

#include <stdint.h>

#define TFC_NONE UINT32_MAX

#endif
