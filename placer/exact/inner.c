#include "placer/exact/inner.h"

#include <math.h>
#include <stdlib.h>

uint32_t tfc_inner_count(const struct tfc_problem *p, uint32_t class) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < p->device_count; d++) count += tfc_inner_is(p, class, d);
  return count;
}

struct tfc_inner_times tfc_inner_times_of(const struct tfc_problem *p, uint32_t class, uint32_t unit) {
  struct tfc_inner_times times = {INT64_MAX, INT64_MAX};
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!tfc_problem_allows(p, unit, d)) continue;
    int64_t *least = tfc_inner_is(p, class, d) ? &times.inner : &times.outer;
    const int64_t time = tfc_problem_unit_time(p, unit, d);
    if (time < *least) *least = time;
  }
  return times;
}

double tfc_inner_relief(const struct tfc_problem *p, uint32_t class, const double *work) {
  double relief = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    double ratio = 0;
    for (uint32_t u = 0; u < p->unit_count && !tfc_inner_is(p, class, d); u++)
      if (work[u] > 0 && tfc_problem_allows(p, u, d))
        ratio = fmax(ratio, work[u] / (double)tfc_problem_unit_time(p, u, d)); // of no time: infinite
    relief += ratio;
  }
  return relief;
}

// Sets pays[s] for each speed s of which an inner device is charged for a transfer, and an example of such a pair.
// False: there may be a transfer that charges none.
static bool find_speeds(const struct tfc_problem *p, uint32_t class, const struct tfc_pair **pays) {
  for (uint32_t d = 0; d < p->device_count; d++)
    for (uint32_t e = 0; e < p->device_count && tfc_inner_is(p, class, d); e++) {
      const struct tfc_pair *out = tfc_problem_pair(p, d, e), *in = tfc_problem_pair(p, e, d);
      if (d == e) continue;
      if (out->linked && !(out->occupies & TFC_OCCUPIES_SENDER)) return false;
      if (in->linked && !(in->occupies & TFC_OCCUPIES_RECEIVER)) return false;
      if (out->linked) pays[out->speed] = out;
      if (in->linked) pays[in->speed] = in;
    }
  return true;
}

bool tfc_inner_net_costs(const struct tfc_problem *p, uint32_t class, int64_t *out_cost) {
  const struct tfc_pair **pays = calloc((size_t)p->speed_count + 1, sizeof *pays); // [speed]
  const bool fine = pays && find_speeds(p, class, pays);
  for (uint32_t n = 0; n < p->net_count && fine; n++) {
    out_cost[n] = INT64_MAX;
    for (uint32_t s = 0; s < p->speed_count; s++) {
      const int64_t time = pays[s] ? tfc_problem_wire_time(p, p->net_tensor[n], pays[s]) : INT64_MAX;
      if (time < out_cost[n]) out_cost[n] = time;
    }
  }
  free(pays);
  return fine;
}
