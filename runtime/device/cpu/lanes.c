// A lane is a list of operations for one core. Each thread of the device runs one lane. The loops of a large operation
// are split: the lane that runs it and the lanes that are idle at that time work on them together.
//
// The plan says which lanes run what, and in which order. But on a shared machine operations rarely take the time that
// was measured for the plan. So a lane may deviate from the plan's order: it runs the first of its own operations that
// is ready. If none is ready, it helps with an operation that is split, or takes the first ready operation of any lane.
// An operation that is planned on several lanes starts on the first of them that is free; the others help before they
// go on.
#include "runtime/device/cpu/lanes.h"

#include <sched.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/wait.h"
#include "runtime/ops/rendezvous.h"

struct lane {
  _Alignas(64) _Atomic uint32_t ended; // number of operations that it has split and that have ended
  _Atomic uint32_t splits;             // the step whose loops it splits now; TFC_NONE: none
  _Atomic uint64_t *ready; // a bit for each of its steps: the steps before it have ended (another lane may already have
                           // taken it)
  const uint32_t *steps;   // [step_count]
  uint32_t step_count;
  struct tfc_team team;
  struct tfc_kernel_env env[TFC_CPU_MOST_LANES]; // env[n - 1] is for operations on n threads
};
struct late { // a step whose operation completes by callback
  struct tfc_cpu_lanes *lanes;
  uint32_t step;
};
struct tfc_cpu_lanes {
  struct tfc_runner *runner;
  struct tfc_prepared *prepared;
  const struct tfc_lanes *plan;
  struct tfc_step *step;
  struct lane *lanes;
  _Atomic uint64_t *ready; // the bits of all lanes
  uint32_t ready_words;
  uint32_t *steps;                    // the steps of all lanes, lane after lane
  uint32_t *bit;                      // [lane * step_count + step] the step's index in the lane
  _Atomic bool *taken;                // [steps] a lane runs it or has run it
  _Atomic uint32_t *before;           // [steps] how many steps that it waits for have not ended
  uint32_t *next;                     // [steps] linked lists that `end` uses: steps without work that can end now
  struct late *late;                  // [steps]
  _Alignas(64) _Atomic uint32_t left; // steps that have not ended
  _Atomic uint32_t under_way;         // operations that have begun and will complete by callback
  _Atomic uint32_t completed;         // counts those that have completed
  bool kept; // tensors for other tasks may be kept until the rendezvous's `flush`; only if there is a single lane
};

static void split(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                  void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  tfc_team_for(env->stream, total, grain, fn, arg);
}

static void release(void *own) {
  struct tfc_cpu_lanes *l = own;
  if (!l) return;
  free(l->lanes);
  free((void *)l->ready);
  free(l->steps);
  free(l->bit);
  free((void *)l->taken);
  free((void *)l->before);
  free(l->next);
  free(l->late);
  free(l);
}

static bool make_room(struct tfc_cpu_lanes *l) {
  const struct tfc_lanes *plan = l->plan;
  size_t n = plan->step_count + 1u, planned = 1;
  for (uint32_t k = 0; k < plan->step_count; k++) planned += (uint32_t)__builtin_popcount(plan->steps[k].lanes);
  l->ready_words = (uint32_t)(planned / 64 + plan->count);
  l->lanes = aligned_alloc(64, plan->count * sizeof *l->lanes);
  l->ready = calloc(l->ready_words, sizeof *l->ready);
  l->steps = malloc(planned * sizeof *l->steps);
  l->bit = malloc(plan->count * n * sizeof *l->bit);
  l->taken = calloc(n, sizeof *l->taken);
  l->before = calloc(n, sizeof *l->before);
  l->next = malloc(n * sizeof *l->next);
  l->late = malloc(n * sizeof *l->late);
  for (uint32_t k = 0; l->late && k < plan->step_count; k++) l->late[k] = (struct late){l, k};
  return l->late && l->lanes && l->ready && l->steps && l->bit && l->taken && l->before && l->next;
}

tfc_status tfc_cpu_lanes_create(struct tfc_runner *r, struct tfc_prepared *p) {
  const struct tfc_lanes *plan = tfc_runner_segment(p)->lanes;
  struct tfc_cpu_lanes *l = aligned_alloc(64, sizeof *l);
  if (l) *l = (struct tfc_cpu_lanes){.runner = r, .prepared = p, .plan = plan};
  if (!l || plan->count > TFC_CPU_MOST_LANES || !make_room(l)) {
    release(l);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: no memory for %u lanes", r->device->info.name, plan->count);
  }
  memset((void *)l->lanes, 0, plan->count * sizeof *l->lanes);
  for (uint32_t i = 0, at = 0, word = 0; i < plan->count; i++) {
    struct lane *lane = &l->lanes[i];
    lane->team.index = (int)i;
    lane->steps = l->steps + at;
    lane->ready = l->ready + word;
    for (uint32_t k = 0; k < plan->step_count; k++) {
      if (!(plan->steps[k].lanes >> i & 1)) continue;
      l->bit[i * plan->step_count + k] = lane->step_count++;
      l->steps[at++] = k;
    }
    word += (lane->step_count + 63) / 64;
    for (uint32_t k = 0; k < plan->count; k++) {
      struct tfc_kernel_env *env = &lane->env[k];
      *env = r->env;
      env->threads = (int)k + 1;
      env->parallel_for = split;
      env->stream = &lane->team; // a CPU device has no streams
    }
  }
  tfc_runner_attach(p, l, release);
  return NULL;
}

static void make_ready(struct tfc_cpu_lanes *l, uint32_t step) {
  for (uint32_t lanes = l->plan->steps[step].lanes; lanes; lanes &= lanes - 1) {
    uint32_t i = (uint32_t)__builtin_ctz(lanes), bit = l->bit[i * l->plan->step_count + step];
    atomic_fetch_or_explicit(&l->lanes[i].ready[bit / 64], UINT64_C(1) << bit % 64, memory_order_release);
  }
}

// Marks a step as ended. Steps without work that now wait for no other step end with it.
static void end(struct tfc_cpu_lanes *l, uint32_t step) {
  const struct tfc_lanes *plan = l->plan;
  uint32_t chain = TFC_NONE, count = 0;
  for (;;) {
    const struct tfc_lane_step *s = &plan->steps[step];
    for (uint32_t k = s->after_begin; k < s->after_begin + s->after_count; k++) {
      uint32_t other = plan->after[k];
      if (atomic_fetch_sub_explicit(&l->before[other], 1, memory_order_acq_rel) != 1) continue;
      if (plan->steps[other].op != TFC_NONE)
        make_ready(l, other);
      else
        l->next[other] = chain, chain = other;
    }
    count++;
    if (chain == TFC_NONE) break;
    step = chain, chain = l->next[step];
  }
  atomic_fetch_sub_explicit(&l->left, count, memory_order_acq_rel);
}

// Returns the first step of a lane that is ready and that no lane has taken; TFC_NONE if there is none.
static uint32_t first_ready(const struct tfc_cpu_lanes *l, const struct lane *lane) {
  for (uint32_t w = 0; w * 64 < lane->step_count; w++) {
    uint64_t bits = atomic_load_explicit(&lane->ready[w], memory_order_acquire);
    for (; bits; bits &= bits - 1) {
      uint32_t step = lane->steps[w * 64 + (uint32_t)__builtin_ctzll(bits)];
      if (!atomic_load_explicit(&l->taken[step], memory_order_relaxed)) return step;
      atomic_fetch_and_explicit(&lane->ready[w], ~(bits & -bits), memory_order_relaxed);
    }
  }
  return TFC_NONE;
}

// Of the steps before `limit` that other lanes split now, helps with the first one until it has ended. False: there is
// none.
static bool help(struct tfc_cpu_lanes *l, uint32_t index, uint32_t limit) {
  struct lane *other = NULL;
  uint32_t ended = 0;
  for (uint32_t i = 0; i < l->plan->count; i++) {
    if (i == index) continue;
    uint32_t seen =
        // read before `splits`, because `run` clears `splits` first
        atomic_load_explicit(&l->lanes[i].ended, memory_order_acquire);
    uint32_t step = atomic_load_explicit(&l->lanes[i].splits, memory_order_acquire);
    if (step < limit) other = &l->lanes[i], ended = seen, limit = step;
  }
  if (other) tfc_team_help(&other->team, (int)index, &other->ended, ended + 1);
  return other;
}

// Works in a loop of another lane's operation, if one is open. `loops` holds, for each lane, the loop in which this
// lane worked last, so that it does not join it again.
static bool help_once(struct tfc_cpu_lanes *l, uint32_t index, uint32_t *loops) {
  for (uint32_t i = 0; i < l->plan->count; i++)
    if (i != index && tfc_team_help_once(&l->lanes[i].team, (int)index, &loops[i])) return true;
  return false;
}

// Called when an operation has completed, on any thread. The last thing that it does is to count, because the step may
// end then.
static void complete(void *arg, bool good) {
  const struct late *late = arg;
  struct tfc_cpu_lanes *l = late->lanes;
  if (good) end(l, late->step);
  atomic_fetch_add_explicit(&l->completed, 1, memory_order_release);
  tfc_futex_wake(&l->completed, 1);
  atomic_fetch_sub_explicit(&l->under_way, 1, memory_order_release);
}

static void flush(struct tfc_cpu_lanes *l) {
  struct tfc_rendezvous *others = l->step->rendezvous;
  if (!l->kept) return;
  l->kept = false;
  if (others) others->flush(others);
}

// Runs a step. It makes the steps that wait for this one ready (`end`) before it releases the lanes that help, so that
// these find the ready steps at once.
static bool run(struct tfc_cpu_lanes *l, struct lane *own, uint32_t step) {
  const struct tfc_lane_step *s = &l->plan->steps[step];
  uint32_t planned = (uint32_t)__builtin_popcount(s->lanes),
           threads = planned == 1 && s->open ? l->plan->count : planned;
  own->team.size = (int)threads;
  tfc_runner_set_environment(l->prepared, s->op, &own->env[threads - 1]);
  if (tfc_runner_completes_later(l->prepared, s->op)) {
    const bool alone = l->plan->count == 1;
    atomic_fetch_add_explicit(&l->under_way, 1, memory_order_relaxed);
    if (alone) l->kept = true;
    tfc_runner_begin_one(l->prepared, s->op, l->step, alone, complete, &l->late[step]);
    return true;
  }
  flush(l);
  if (planned > 1) atomic_store_explicit(&own->splits, step, memory_order_release);
  bool good = tfc_runner_run_one(l->prepared, s->op, l->step);
  if (good) end(l, step);
  if (planned > 1) {
    atomic_store_explicit(&own->splits, TFC_NONE, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->ended, 1, memory_order_release);
  }
  return good;
}

enum { ASLEEP_NS = 1000000 };

// Sends and receives messages for a short time, or until an operation that waits for another task has completed.
static void attend(struct tfc_cpu_lanes *l) {
  struct tfc_rendezvous *others = l->step->rendezvous;
  const uint32_t seen = atomic_load_explicit(&l->completed, memory_order_acquire);
  if (!atomic_load_explicit(&l->under_way, memory_order_acquire)) return;
  flush(l);
  if (others && others->attend) others->attend(others, &l->completed, seen);
  if (l->plan->count == 1) // nothing else makes a step ready
    tfc_futex_wait(&l->completed, seen, ASLEEP_NS);
  else
    sched_yield();
}

static void run_lane(struct tfc_cpu_lanes *l, uint32_t index) {
  enum { SPINS = 20000 };
  struct lane *own = &l->lanes[index];
  uint32_t idle = 0, loops[TFC_CPU_MOST_LANES] = {0};
  while (atomic_load_explicit(&l->left, memory_order_acquire) && !tfc_step_stopped(l->step)) {
    uint32_t step = first_ready(l, own);
    if (step == TFC_NONE) flush(l);
    bool helped = help(l, index, step);
    for (uint32_t i = 0, other; !helped && step == TFC_NONE && i < l->plan->count; i++)
      if ((other = first_ready(l, &l->lanes[i])) < step) step = other;
    if (!helped && step != TFC_NONE) {
      if (!atomic_exchange_explicit(&l->taken[step], true, memory_order_relaxed) && !run(l, own, step)) return;
      helped = true;
    }
    if (helped || help_once(l, index, loops))
      idle = 0;
    else if (index == 0 && idle >= SPINS / 100 && atomic_load_explicit(&l->under_way, memory_order_acquire))
      attend(l);
    else if (++idle < SPINS)
      tfc_pause();
    else
      sched_yield(); // another lane's thread may be waiting for this core
  }
  flush(l);
}

static void run_lanes(void *arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) run_lane(arg, (uint32_t)i);
}

static void begin_step(struct tfc_cpu_lanes *l, struct tfc_step *step) {
  const struct tfc_lanes *plan = l->plan;
  l->step = step;
  for (uint32_t i = 0; i < plan->count; i++) {
    atomic_store_explicit(&l->lanes[i].splits, TFC_NONE, memory_order_relaxed);
    for (uint32_t k = 0; k < plan->count; k++) tfc_runner_enter(&l->lanes[i].env[k], step);
  }
  for (uint32_t w = 0; w < l->ready_words; w++) atomic_store_explicit(&l->ready[w], 0, memory_order_relaxed);
  for (uint32_t k = 0; k < plan->step_count; k++) {
    atomic_store_explicit(&l->before[k], plan->steps[k].before, memory_order_relaxed);
    atomic_store_explicit(&l->taken[k], false, memory_order_relaxed);
  }
  atomic_store_explicit(&l->left, plan->step_count, memory_order_relaxed);
  atomic_store_explicit(&l->under_way, 0, memory_order_relaxed);
  for (uint32_t k = 0; k < plan->step_count; k++) {
    if (plan->steps[k].before) continue;
    if (plan->steps[k].op == TFC_NONE)
      end(l, k);
    else
      make_ready(l, k);
  }
}

void tfc_cpu_lanes_run(struct tfc_runner *r, struct tfc_team *team, struct tfc_prepared *p, struct tfc_step *step) {
  struct tfc_cpu_lanes *l = tfc_runner_attached(p);
  if (tfc_step_stopped(step)) return;
  struct tfc_memory_account *before = tfc_account_enter(r->memory->account);
  begin_step(l, step);
  uint64_t begin = tfc_ticks();
  if (!tfc_team_try_for(team, l->plan->count, 1, run_lanes, l)) {
    for (uint32_t i = 0; i < tfc_runner_segment(p)->op_count; i++) {
      tfc_runner_set_environment(p, i, &l->lanes[0].env[0]);
      if (!tfc_runner_run_one(p, i, step)) break;
    }
  }
  while (atomic_load_explicit(&l->under_way, memory_order_acquire)) attend(l); // of a step that has failed
  if (step->spans) {
    struct tfc_span *span = &step->spans[r->device->index];
    if (!span->begin) span->begin = begin;
    span->end = tfc_ticks();
  }
  tfc_account_enter(before);
}
