// Every lane has a team of its own, without threads: other lanes come to help with an operation that is split. Lanes
// are taken by whoever of the device's threads comes; a lane that was begun has its thread until it ends, and each step
// of a lane waits only for steps that come before it in the segment's order, so that somebody can always go on.
#include "runtime/device/cpu/lanes.h"

#include <sched.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/wait.h"

struct lane {
  _Alignas(64) _Atomic uint32_t ended; // operations of this step of the plan, UINT32_MAX: it has failed
  struct tfc_team team;
  struct tfc_kernel_env env[TFC_CPU_MOST_LANES]; // by threads - 1
};
struct tfc_cpu_lanes {
  struct tfc_runner *runner;
  struct tfc_prepared *prepared;
  const struct tfc_lanes *plan;
  struct tfc_step *step;
  struct lane *lanes;
};

static void split(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                  void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  tfc_team_for(env->stream, total, grain, fn, arg);
}

static void release(void *own) {
  struct tfc_cpu_lanes *l = own;
  if (l) free(l->lanes);
  free(l);
}

tfc_status tfc_cpu_lanes_create(struct tfc_runner *r, struct tfc_prepared *p) {
  const struct tfc_lanes *plan = tfc_runner_segment(p)->lanes;
  struct tfc_cpu_lanes *l = calloc(1, sizeof *l);
  if (l) l->lanes = aligned_alloc(64, plan->count * sizeof *l->lanes);
  if (!l || !l->lanes || plan->count > TFC_CPU_MOST_LANES) {
    release(l);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: no memory for %u lanes", r->device->info.name, plan->count);
  }
  memset(l->lanes, 0, plan->count * sizeof *l->lanes);
  l->runner = r;
  l->prepared = p;
  l->plan = plan;
  for (uint32_t i = 0; i < plan->count; i++) l->lanes[i].team.index = (int)i;
  for (uint32_t i = 0; i < plan->count; i++)
    for (uint32_t k = 0; k < plan->count; k++) {
      struct tfc_kernel_env *env = &l->lanes[i].env[k];
      *env = r->env;
      env->threads = (int)k + 1;
      env->parallel_for = split;
      env->stream = &l->lanes[i].team; // a CPU device has no streams
    }
  for (uint32_t i = 0; i < plan->begin[plan->count]; i++) {
    const struct tfc_lane_step *s = &plan->steps[i];
    tfc_runner_set_environment(p, s->op, &l->lanes[s->lane].env[s->threads - 1]);
  }
  tfc_runner_attach(p, l, release);
  return NULL;
}

static void wait_for(const struct lane *lane, uint32_t ended) {
  enum { SPINS = 20000 };
  for (uint32_t i = 0; atomic_load_explicit(&lane->ended, memory_order_acquire) < ended; i++) {
    if (i < SPINS)
      tfc_pause();
    else
      sched_yield(); // the other's core may not be its own just now
  }
}

static void run_lane(struct tfc_cpu_lanes *l, uint32_t index) {
  const struct tfc_lanes *plan = l->plan;
  struct lane *own = &l->lanes[index];
  for (uint32_t i = plan->begin[index]; i < plan->begin[index + 1]; i++) {
    const struct tfc_lane_step *s = &plan->steps[i];
    if (s->lane != index) {
      struct lane *other = &l->lanes[s->lane];
      tfc_team_help(&other->team, (int)index, &other->ended, s->ended);
      continue;
    }
    for (uint32_t w = 0; w < s->wait_count; w++) {
      const struct tfc_lane_wait *wait = &plan->waits[s->wait_begin + w];
      wait_for(&l->lanes[wait->lane], wait->ended);
    }
    own->team.size = (int)s->threads;
    if (!tfc_runner_run_one(l->prepared, s->op, l->step)) { // the others shall see that, not wait
      atomic_store_explicit(&own->ended, UINT32_MAX, memory_order_release);
      return;
    }
    atomic_store_explicit(&own->ended, s->ended, memory_order_release);
  }
}

static void run_lanes(void *arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) run_lane(arg, (uint32_t)i);
}

void tfc_cpu_lanes_run(struct tfc_runner *r, struct tfc_team *team, struct tfc_prepared *p, struct tfc_step *step) {
  struct tfc_cpu_lanes *l = tfc_runner_attached(p);
  const struct tfc_lanes *plan = l->plan;
  if (tfc_step_stopped(step)) return;
  l->step = step;
  for (uint32_t i = 0; i < plan->count; i++) {
    atomic_store_explicit(&l->lanes[i].ended, 0, memory_order_relaxed);
    for (uint32_t k = 0; k < plan->count; k++) tfc_runner_enter(&l->lanes[i].env[k], step);
  }
  uint64_t begin = tfc_ticks();
  if (!tfc_team_try_for(team, plan->count, 1, run_lanes, l)) {
    for (uint32_t i = 0; i < plan->count; i++) l->lanes[i].team.size = 1;
    for (uint32_t i = 0; i < tfc_runner_segment(p)->op_count; i++)
      if (!tfc_runner_run_one(p, i, step)) break;
  }
  if (step->spans) {
    struct tfc_span *span = &step->spans[r->device->index];
    if (!span->begin) span->begin = begin;
    span->end = tfc_ticks();
  }
}
