// The profiler's public header.
#ifndef TFC_PROFILER_PROFILER_H
#define TFC_PROFILER_PROFILER_H

#include "profiler/collector.h"
#include "profiler/cost_table.h"
#include "profiler/lock.h"
#include "profiler/statistics.h"
#include "profiler/store.h"

#endif
