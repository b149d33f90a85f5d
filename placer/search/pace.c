#include "placer/search/pace.h"

#include <math.h>

static const double shortest_s = 0.15;    // a round, or a job where there are several on a thread
static const double cooling_rounds = 0.5; // the last round, which cools down, in rounds

// Returns `slice`, or all that is left if a rest of less than a third of a slice would follow.
static double part_of(double left, double slice) {
  return slice > left || left - slice < slice / 3 ? left : slice;
}

struct tfc_pace tfc_pace_step(double *slice, double left, uint32_t threads, uint32_t most, bool cooling) {
  if (*slice <= 0) *slice = fmax(shortest_s, left * TFC_PACE_ROUND / 100);
  const double last = cooling ? cooling_rounds * *slice : 0, before = left - last;
  if (cooling && before < last / 4) return (struct tfc_pace){.jobs = threads, .seconds = left, .cools = true};
  const double span = part_of(before, *slice);
  const double fit = fmax(threads, floor(span * threads / shortest_s));
  struct tfc_pace pace = {.jobs = most > threads ? most : threads, .seconds = span};
  if (fit < pace.jobs) pace.jobs = (uint32_t)fit;
  if (pace.jobs > threads) pace.seconds = span * threads / pace.jobs;
  return pace;
}

struct tfc_pace tfc_pace_throughput(double *slice, double left, uint32_t threads) {
  *slice = *slice <= 0 ? fmax(shortest_s, left / 30) : *slice * 1.35;
  *slice = part_of(left, *slice);
  return (struct tfc_pace){.jobs = threads, .seconds = *slice};
}
