// Pace: how a search under a time limit divides its time into rounds, and a round among its jobs. Plain arithmetic: the
// caller reads the clock. Internal to the placer.
//
//   double slice = 0;
//   while (left > 0) {
//     struct tfc_pace now = tfc_pace_step(&slice, left, threads, 8, true);
//     ... run now.jobs jobs of now.seconds each, on `threads` threads
//   }
#ifndef TFC_PLACER_SEARCH_PACE_H
#define TFC_PLACER_SEARCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define TFC_PACE_ROUND 7 // percent of the time, or of the evaluations, that one round gets

struct tfc_pace {
  uint32_t jobs;
  double seconds; // of each job
  bool cools;     // the round is the last one, in which jobs only cool down
};
// Returns the next round of a search for the step objective. All rounds take the same time. A round has `most` jobs; if
// these would be very short, it has fewer, but at least one for each thread. *slice: seconds of a round; 0 before the
// first round. `left`: seconds until the search ends. `cooling`: whether the last round only lowers the temperature.
struct tfc_pace tfc_pace_step(double *slice, double left, uint32_t threads, uint32_t most, bool cooling);
// The next round of a search for throughput, where starts take long: one job for each thread, each round longer than
// the one before.
struct tfc_pace tfc_pace_throughput(double *slice, double left, uint32_t threads);

#endif
