#include "profiler/idle.h"

#include <stdlib.h>

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Returns how much of [begin, end) is covered by transfers to the device. Transfers are sorted by start.
static int64_t covered(const struct tfc_step_profile *p, uint32_t device, int64_t begin, int64_t end) {
  int64_t sum = 0, at = begin;
  for (size_t i = 0; i < p->transfers.count && p->transfers.data[i].start_ns < end; i++) {
    const struct tfc_profile_transfer *t = &p->transfers.data[i];
    if (t->device != device) continue;
    int64_t from = clamp(t->start_ns, at, end), to = clamp(t->start_ns + t->duration_ns, from, end);
    sum += to - from;
    if (to > at) at = to;
  }
  return sum;
}

// Whether there is only one device, so that no other device can be waited for.
static bool one_device(const struct tfc_step_profile *p) {
  for (size_t i = 1; i < p->ops.count; i++)
    if (p->ops.data[i].device != p->ops.data[0].device) return false;
  return true;
}

static void cut_gap(const struct tfc_step_profile *p, uint32_t device, int64_t begin, int64_t end, int64_t launched,
                    bool alone, struct tfc_idle *out) {
  int64_t launch = launched < 0 ? 0 : clamp(launched - begin, 0, end - begin);
  int64_t transfer = covered(p, device, begin + launch, end);
  if (alone) launch = end - begin - transfer; // from the launch to the start, too
  out->launch_ns += launch;
  out->transfer_ns += transfer;
  out->dependency_ns += end - begin - launch - transfer;
  out->launch_gaps += launch > 0;
  if (launch > out->longest_launch_gap_ns) out->longest_launch_gap_ns = launch;
}

tfc_status tfc_idle_find(struct tfc_step_profile *p, int64_t short_gap_ns) {
  size_t devices = p->busy.count;
  const bool alone = one_device(p);
  struct {
    int64_t at; // when the last operation ended
    bool ran;
  } *last = calloc(devices + 1, sizeof *last);
  if (!last) return tfc_status_no_memory(NULL);
  for (size_t d = 0; d < devices; d++) p->busy.data[d].idle = (struct tfc_idle){0};
  for (size_t i = 0; i < p->ops.count; i++) {
    const struct tfc_profile_op *o = &p->ops.data[i];
    if (o->device >= devices) continue;
    struct tfc_idle *idle = &p->busy.data[o->device].idle;
    int64_t *at = &last[o->device].at, start = clamp(o->start_ns, *at, p->duration_ns);
    int64_t end = clamp(o->start_ns + o->duration_ns, start, p->duration_ns);
    const bool is_short = last[o->device].ran && start - *at < short_gap_ns;
    if (start > *at && !is_short) cut_gap(p, o->device, *at, start, o->launched_ns, alone, idle);
    idle->work_ns += end - start;
    *at = end;
    last[o->device].ran = true;
  }
  for (size_t d = 0; d < devices; d++) p->busy.data[d].idle.end_ns = p->duration_ns - last[d].at;
  free(last);
  return NULL;
}
