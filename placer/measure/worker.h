// Worker: the process that runs placements for a measurer. A program that measures calls its entry first thing in main:
//
//   if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
#ifndef TFC_PLACER_MEASURE_WORKER_H
#define TFC_PLACER_MEASURE_WORKER_H

#include <stdbool.h>

// Whether the process was started as a worker of a measurer.
bool tfc_measure_is_worker(int argc, char **argv);
int tfc_measure_worker_main(int argc, char **argv); // returns the exit code

#endif
