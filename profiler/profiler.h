// The profiler's public header.
#ifndef TFC_PROFILER_PROFILER_H
#define TFC_PROFILER_PROFILER_H

#include "profiler/store.h"

#endif
