// When devices have come to rest, for whoever measures them.
#ifndef TFC_RUNTIME_DEVICE_SETTLE_H
#define TFC_RUNTIME_DEVICE_SETTLE_H

// A device that works on its own captures a segment when it has run so often, and once more when a profiler looks on
// for the first time. Either takes longer than many steps.
enum { TFC_RUNS_BEFORE_CAPTURE = 2 };

#endif
