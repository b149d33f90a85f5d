// After how many steps a device is in a steady state, so that steps can be measured.
#ifndef TFC_RUNTIME_DEVICE_SETTLE_H
#define TFC_RUNTIME_DEVICE_SETTLE_H

// After this many runs an asynchronous device captures a segment as a graph. It captures the segment once more when a
// profiler records for the first time. A capture takes longer than many steps.
enum { TFC_RUNS_BEFORE_CAPTURE = 2 };

#endif
