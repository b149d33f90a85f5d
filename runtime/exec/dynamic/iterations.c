// Runs loops whose iterations are fixed lists of nodes (dynamic/loops.c): values go directly to their readers, without
// counting inputs or waiting. A loop begins when all its inputs have entered; if one of them is dead, it runs in
// ready order, as other frames do. All iterations use the value slots of the first. Between two iterations the whole
// state of the loop is in the inputs of its Merges.
#include "runtime/exec/dynamic/iterations.h"

#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/nodes.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/terms.h"
#include "runtime/exec/dynamic/wait.h"

enum { CHECK_EVERY = 64 };

static void release_inputs(const struct tfc_dnode *n, struct tfc_run_value *in) {
  for (uint32_t k = 0; k < n->input_count; k++)
    if (in[k].live && !(n->kept_inputs >> k & 1)) tfc_run_value_release(&in[k]);
}

// Passes input `k` on to the readers of the node's output.
static void hand_through(const struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_iteration *it, uint32_t k,
                         int32_t output) {
  struct tfc_run_value *in = it->values + n->input_begin + k, kept;
  if (n->kept_inputs >> k & 1) {
    kept = *in;
    tfc_buffer_retain(kept.t.buffer);
    in = &kept;
  }
  tfc_run_hand_on(r, n, it, output, in);
}

static tfc_status run_node(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_iteration *it = item->iteration;
  struct tfc_run_value *in = it->values + n->input_begin, *outs = r->outs;
  switch (n->kind) {
  case TFC_DNODE_SPREAD:
    for (uint32_t k = 0; k < n->input_count; k++) hand_through(r, n, it, k, (int32_t)k);
    return NULL;
  case TFC_DNODE_MERGE: hand_through(r, n, it, !in[0].live, 0); return NULL;
  case TFC_DNODE_SWITCH: {
    int64_t index = 0;
    TFC_RETURN_IF_ERROR(tfc_run_index(r, n, 1, &in[1], &index));
    hand_through(r, n, it, 0, index != 0);
    release_inputs(n, in);
    return NULL;
  }
  case TFC_DNODE_PASS:
    if (!n->is_exit) {
      hand_through(r, n, it, 0, 0);
      return NULL;
    }
    it->outstanding++; // an Exit leaves the frame in the same way as in ready order
    tfc_run_process(r, item);
    return NULL;
  default:
    if (n->gathers) {
      bool waits = false;
      TFC_RETURN_IF_ERROR(tfc_run_gather(r, item, &waits));
      if (waits) {
        hand_through(r, n, it, 0, 0);
        release_inputs(n, in);
        return NULL;
      }
    }
    TFC_RETURN_IF_ERROR(tfc_run_compute(r, item, outs));
    release_inputs(n, in);
    for (uint32_t i = 0; i < n->output_count; i++) tfc_run_hand_on(r, n, it, (int32_t)i, &outs[i]);
    return NULL;
  }
}

static bool run_list(struct tfc_run *r, const struct tfc_run_item *loop, const struct tfc_dnode *list, uint32_t count) {
  struct tfc_run_item item = *loop;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_dnode *n = item.node = &list[i];
    tfc_status s = run_node(r, &item);
    if (!s) continue;
    for (uint32_t k = 0; k < n->output_count; k++) tfc_run_value_release(&r->outs[k]);
    tfc_run_fail(r, s);
    return false;
  }
  return !r->failed;
}

// Runs iterations until the loop's condition says that it has ended, and returns true. False: the run or a loop beside
// it has failed, or kernels have returned that must be handled first. Adds the number of iterations to *turns.
static bool run_turns(struct tfc_run *r, const struct tfc_run_item *item, uint64_t *turns) {
  const struct tfc_dloop *loop = item->frame->f->loop;
  const struct tfc_dnode *by = &r->d->nodes[loop->condition];
  struct tfc_run_value *condition = item->iteration->values + by->input_begin + 1;
  int64_t goes_on = 1;
  for (uint32_t turn = 1;; turn++, ++*turns) {
    if (r->beside_failed && atomic_load_explicit(r->beside_failed, memory_order_relaxed)) return false;
    if (!run_list(r, item, loop->before, loop->before_count)) return false;
    tfc_status s = tfc_run_index(r, by, 1, condition, &goes_on);
    if (s) {
      tfc_run_fail(r, s);
      return false;
    }
    if (goes_on == 0) return true;
    if (!run_list(r, item, loop->body, loop->body_count)) return false;
    if (r->deadline || turn % CHECK_EVERY == 0) tfc_run_check_time(r);
    if (r->failed) return false;
    if (r->in_flight && atomic_load_explicit(&r->mailbox->arrived, memory_order_relaxed)) return false;
  }
}

static void leave(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dloop *loop = item->frame->f->loop;
  tfc_status s = tfc_run_add_terms(r, item);
  if (s)
    tfc_run_fail(r, s);
  else if (run_list(r, item, loop->leaving, loop->leaving_count))
    tfc_run_finish(r, item, r->outs);
}

void tfc_run_iterate(struct tfc_run *r, const struct tfc_run_item *item) {
  uint64_t turns = 0;
  if (run_turns(r, item, &turns)) {
    leave(r, item);
  } else if (!r->failed) { // puts the loop on the ready list, so that kernels that have returned are handled first
    tfc_run_make_ready(r, item->node, item->frame, item->iteration, false);
    item->iteration->outstanding--;
  }
}

// --- Side by side -------------------------------------------------------------------------------------------------
// Loops change nothing but their own frames before they are left, so each may run on a thread of its own. A thread has
// a copy of the run, whose kernels do not divide their work. What loops share (constants, lists) is only read, and its
// references are counted atomically. Loops are left one after the other, in the order in which they became ready. An
// error in one of them ends the others, which may be long or without end, at their next iteration.
//
// Each core then reads all weights of its loop, which may be more than its cache holds, where an operation that is
// divided reads half of them. So both ways are measured in the first steps, and the faster one is kept.
enum { SIDE_BY_SIDE, ONE_BY_ONE };
enum { TRIES = 3 }; // of each way, before the faster one is kept
struct side_job {
  struct tfc_run run;
  struct tfc_run_item item;
  uint64_t turns;
  _Atomic bool *failed; // whether one of the jobs has failed
};

static int cores_of(const struct tfc_run *r, const struct tfc_run_item *item) {
  return r->envs[r->d->nodes[item->frame->f->loop->condition].device].threads;
}

bool tfc_run_waits_for_others(const struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dloop *loop = item->frame->f->loop;
  const int cores = cores_of(r, item);
  if (tfc_session_is_limited(r->session)) return false; // together they hold more memory than one after the other
  // In a trace a device's operations come one after the other, so that their times do not add up to more than the
  // step's: with a trace, steps take as long as one after the other.
  return cores > 1 && loop->alike >= (uint32_t)cores && !r->nested && !r->partial && !r->copies && !r->step->trace;
}

static void run_job(void *arg, int64_t begin, int64_t end) {
  struct side_job *jobs = arg;
  for (int64_t i = begin; i < end; i++)
    if (!run_turns(&jobs[i].run, &jobs[i].item, &jobs[i].turns))
      atomic_store_explicit(jobs[i].failed, true, memory_order_relaxed);
}

// Runs all loops that wait side by side, and adds their iterations to *turns. False: no memory to do so.
static bool run_side_by_side(struct tfc_run *r, uint64_t *turns) {
  const uint32_t count = (uint32_t)r->loops.count, devices = r->session->device_count, outs = r->d->most_outputs + 2u;
  const size_t env_bytes = devices * sizeof(struct tfc_kernel_env), value_bytes = outs * sizeof(struct tfc_run_value);
  // One block: the jobs, then the environments of all jobs, then their values.
  struct side_job *jobs = calloc(count, sizeof *jobs + env_bytes + value_bytes);
  if (!jobs) return false;
  struct tfc_kernel_env *envs = (void *)(jobs + count);
  struct tfc_run_value *values = (void *)(envs + (size_t)count * devices);
  struct tfc_kernel_env *env = &r->envs[r->d->nodes[r->loops.data[0].frame->f->loop->condition].device];
  _Atomic bool failed = false;
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_run *own = &jobs[i].run;
    *own = (struct tfc_run){.plan = r->plan, .d = r->d, .session = r->session, .step = r->step};
    jobs[i].item = r->loops.data[i];
    own->beside_failed = jobs[i].failed = &failed;
    own->deadline = r->deadline, own->cancel = r->cancel, own->root = r->root, own->mailbox = r->mailbox;
    own->envs = envs + (size_t)i * devices, own->outs = values + (size_t)i * outs;
    for (uint32_t d = 0; d < devices; d++) {
      own->envs[d] = r->envs[d];
      own->envs[d].threads = 1, own->envs[d].parallel_for = NULL;
    }
  }
  r->loops.count = 0;
  env->parallel_for(env, count, 1, run_job, jobs);
  for (uint32_t i = 0; i < count; i++) {
    *turns += jobs[i].turns;
    if (jobs[i].run.failed) tfc_run_fail(r, jobs[i].run.status);
  }
  for (uint32_t i = 0; i < count && !r->failed; i++) leave(r, &jobs[i].item);
  free(jobs);
  return true;
}

static void run_one_by_one(struct tfc_run *r, uint64_t *turns) {
  for (size_t i = 0; i < r->loops.count && !r->failed; i++)
    if (run_turns(r, &r->loops.data[i], turns)) leave(r, &r->loops.data[i]);
  r->loops.count = 0;
}

static int way_of(struct tfc_dloop *loop) {
  uint64_t ticks[2];
  for (int way = SIDE_BY_SIDE; way <= ONE_BY_ONE; way++) {
    if (atomic_load_explicit(&loop->times[way].count, memory_order_relaxed) < TRIES) return way;
    ticks[way] = atomic_load_explicit(&loop->times[way].ticks, memory_order_relaxed);
  }
  return ticks[ONE_BY_ONE] < ticks[SIDE_BY_SIDE];
}

void tfc_run_loops_that_wait(struct tfc_run *r) {
  const struct tfc_run_item first = r->loops.data[0];
  struct tfc_dloop *loop = first.frame->f->loop;
  if (r->loops.count < (size_t)cores_of(r, &first) || r->in_flight) {
    r->loops.count--;
    memmove(r->loops.data, r->loops.data + 1, r->loops.count * sizeof first);
    tfc_run_iterate(r, &first);
    return;
  }
  int way = way_of(loop);
  uint64_t turns = 0, begin = tfc_ticks();
  if (way == SIDE_BY_SIDE && !run_side_by_side(r, &turns)) way = ONE_BY_ONE;
  if (way == ONE_BY_ONE) run_one_by_one(r, &turns);
  if (r->failed) return; // loops that were ended say nothing about the time of an iteration
  const uint64_t each = (tfc_ticks() - begin) / (turns + 1), best = atomic_load(&loop->times[way].ticks);
  const uint32_t count = atomic_fetch_add(&loop->times[way].count, 1);
  if (count == 0 || each < best) atomic_store(&loop->times[way].ticks, each);
}
