// Runs a batch of entries in the worker: makes a plan for each entry, runs blocks of steps in turns, and sends each
// result when its entry has ended.
//
// Without a reference, round r runs block r of every entry (A B C A B C). With a reference R, a block of R comes before
// and after each entry's block, and neighbouring entries share it: R A R B R C R. An entry that is far too slow after 1
// warm-up and 2 timed steps is stopped. In a batch that chooses (`choose` in measure.h), the first turns choose the
// fastest entry, and the later turns measure it.
#include "placer/measure/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/choice.h"
#include "placer/measure/guard.h"
#include "placer/measure/pipeline.h"
#include "placer/model/machine.h"
#include "profiler/collector_gpu.h"
#include "profiler/statistics.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"
#include "runtime/device/settle.h"

enum { MOST_IN_FLIGHT = 1024, MOST_WINDOWS = 64, MOST_CHOOSING = 64 };

struct run { // one entry
  struct tfc_measure_entry entry;
  uint16_t *placement;
  uint32_t *sequence;
  struct tfc_plan *plan;
  // With several steps in flight: a plan for each of the others, [in_flight - 1]; NULL: one plan, in ready order, runs
  // all.
  struct tfc_plan **copies;
  struct tfc_worker_side *side;
  tfc_result_state state;
  tfc_code code;
  char *message;
  double seconds;
  bool warm, ended, sent, in_lanes;
  TFC_ARRAY(struct tfc_measured_step) steps;
  TFC_ARRAY(struct tfc_step_profile) profiles;
  TFC_ARRAY(uint32_t) profile_step;
  double ratio_sum, reference_us; // ratio_sum: sum of the ratios to the neighbouring reference blocks
  uint32_t ratio_count;
};
struct batch {
  struct tfc_worker *w;
  struct tfc_measure_batch rules;
  struct run *runs;
  uint32_t count;
};

static void free_plans(struct run *r) {
  for (uint32_t i = 0; r->copies && i + 1 < r->entry.in_flight; i++) tfc_plan_free(r->copies[i]);
  free(r->copies);
  tfc_plan_free(r->plan);
  r->plan = NULL, r->copies = NULL;
}

static void run_deinit(struct run *r) {
  free_plans(r);
  for (size_t i = 0; i < r->profiles.count; i++) tfc_step_profile_deinit(&r->profiles.data[i]);
  tfc_array_free(&r->profiles);
  tfc_array_free(&r->profile_step);
  tfc_array_free(&r->steps);
  free(r->placement);
  free(r->sequence);
  free(r->message);
}

// Turns an error into the result of its entry, because the other entries of the batch are not affected. Takes the
// status.
static void entry_fails(struct run *r, tfc_status s) {
  tfc_code code = tfc_status_code(s);
  r->state = code == TFC_RESOURCE_EXHAUSTED ? TFC_RESULT_NO_FIT
             : code == TFC_INVALID_ARGUMENT ? TFC_RESULT_ILLEGAL
                                            : TFC_RESULT_FAILED;
  r->code = code;
  free(r->message);
  r->message = tfc_str_dup(tfc_str_from(tfc_status_message(s)));
  r->ended = true;
  tfc_status_free(s);
}

// Returns the bytes that the plan needs while several steps are in flight: each step has its own memory for tensors,
// and variables exist once.
static uint64_t needed_bytes(const struct run *r, const struct tfc_plan_info *info, uint32_t device) {
  uint64_t variables = 0, all = info->peak_bytes[device];
  if (r->entry.in_flight < 2 || !info->is_static) return all;
  for (uint32_t i = 0; i < info->variable_count; i++)
    variables += info->variables[i].device == device ? info->variables[i].bytes : 0;
  return variables + r->entry.in_flight * (all - variables);
}

static bool over_limit(const struct tfc_worker *w, struct run *r) {
  const struct tfc_plan_info *info = tfc_plan_info(r->plan);
  struct tfc_text why = {0};
  char a[32], c[32];
  for (uint32_t d = 0; d < info->device_count && !r->entry.whole; d++) {
    uint64_t need = needed_bytes(r, info, d);
    if (need > w->most_bytes[d])
      tfc_text_printf(&why, "%s%s: needs %s, its limit is %s", why.size ? "; " : "", r->side->set.devices[d]->info.name,
                      tfc_show_bytes(a, (double)need), tfc_show_bytes(c, (double)w->most_bytes[d]));
  }
  if (!why.size) return false;
  r->state = TFC_RESULT_NO_FIT, r->ended = true;
  r->message = why.data;
  return true;
}

// Makes as many plans as there are steps in flight, each with memory of its own. If that is impossible for this step,
// makes one plan in ready order for all of them.
static tfc_status plan_in_flight(struct run *r, struct tfc_run_spec *spec) {
  spec->adapt = TFC_ADAPT_OFF, spec->side_by_side = true;
  tfc_status s = tfc_plan_create(r->side->session, spec, &r->plan);
  if (tfc_status_code(s) != TFC_FAILED_PRECONDITION) return s;
  tfc_status_free(s);
  spec->dynamic = true, spec->side_by_side = false, spec->sequence = NULL, spec->sequence_count = 0;
  return tfc_plan_create(r->side->session, spec, &r->plan);
}

static tfc_status make_copies(struct run *r, const struct tfc_run_spec *spec) {
  if (!spec->side_by_side) return NULL;
  if (!(r->copies = calloc(r->entry.in_flight, sizeof(*r->copies)))) return tfc_status_no_memory("measuring");
  for (uint32_t i = 0; i + 1 < r->entry.in_flight; i++)
    TFC_RETURN_IF_ERROR(tfc_plan_create(r->side->session, spec, &r->copies[i]));
  return NULL;
}

static void plan_entry(struct batch *b, struct run *r) {
  tfc_status s = NULL;
  struct tfc_run_spec spec = b->w->step;
  // the parent then knows which entry was being planned, if that ends this process
  TFC_TRY(s, tfc_worker_beat(b->w, (uint32_t)(r - b->runs)));
  int side = r->entry.whole ? 1 : r->entry.plain ? 2 : 0;
  TFC_TRY(s, tfc_worker_side_open(b->w, side));
  r->side = &b->w->sides[side];
  spec.in_parts = r->entry.in_parts;
  // a profile must always run in the same way
  if (!b->rules.settle || r->entry.whole) spec.adapt = TFC_ADAPT_WHERE_FASTER;
  if (!r->entry.whole) {
    if (!b->rules.ignore_limits) spec.most_bytes = b->w->most_bytes;
    spec.placement = r->placement;
    spec.sequence = r->entry.sequence_count ? r->sequence : NULL;
    spec.sequence_count = r->entry.sequence_count;
  }
  TFC_TRY(s, r->entry.in_flight > 1 ? plan_in_flight(r, &spec) : tfc_plan_create(r->side->session, &spec, &r->plan));
  if (!b->rules.ignore_limits && over_limit(b->w, r)) return;
  TFC_TRY(s, make_copies(r, &spec));
  TFC_TRY(s, tfc_session_restore(r->side->session, r->side->snapshot));
out:
  if (s) entry_fails(r, s);
}

static tfc_status step(struct batch *b, struct run *r, uint32_t block, bool traced, bool warmup, uint64_t *out_alloc) {
  struct tfc_worker *w = b->w;
  TFC_RETURN_IF_ERROR(tfc_worker_beat(w, (uint32_t)(r - b->runs)));
  struct tfc_run_options options = {0};
  tfc_ticks_resync();
  if (traced) {
    tfc_collector_reset(r->side->collector);
    options.trace = tfc_collector_sink(r->side->collector);
  } else {
    TFC_RETURN_IF_ERROR(tfc_collector_rest(r->side->collector));
  }
  int64_t before = tfc_now_ns();
  tfc_guard_watch(r->plan);
  tfc_status s = tfc_plan_run(r->plan, w->values, w->results, &options);
  for (uint32_t i = 0; i < w->step.fetch_count; i++) tfc_tensor_release(&w->results[i]);
  if (!s && traced && tfc_collector_make_room(r->side->collector)) {
    tfc_collector_reset(r->side->collector);
    before = tfc_now_ns();
    s = tfc_plan_run(r->plan, w->values, w->results, &options);
    for (uint32_t i = 0; i < w->step.fetch_count; i++) tfc_tensor_release(&w->results[i]);
  }
  tfc_guard_watch(NULL);
  if (s) {
    entry_fails(r, s);
    return NULL;
  }
  double us = tfc_plan_last_step_us(r->plan);
  if (!isfinite(us) || us <= 0) {
    entry_fails(r, tfc_status_make(TFC_ABORTED, "a step of %g us is no measurement", us));
    return NULL;
  }
  const int64_t host_ns = (int64_t)(us * 1000 + 0.5);
  struct tfc_measured_step m = {block, traced, warmup, before, host_ns, host_ns};
  if (traced) {
    struct tfc_step_profile profile = {0};
    s = tfc_collector_drain(r->side->collector, &(struct tfc_collector_names){w->graph, tfc_plan_info(r->plan)},
                            w->async, &profile);
    // A warm-up step is valid without its profile, and from now on the profiler may use another timer.
    if (s && warmup && tfc_status_code(s) == TFC_ABORTED) {
      tfc_status_free(s);
      s = NULL;
    }
    if (s) {
      tfc_step_profile_deinit(&profile);
      entry_fails(r, s);
      return NULL;
    }
    m.start_ns = profile.start_ns;
    if (out_alloc) *out_alloc = profile.allocated;
    if (warmup) {
      tfc_step_profile_deinit(&profile);
    } else {
      // The step and its operations must be timed by one clock, so that the sum of the operations is not longer than
      // the step.
      m.duration_ns = profile.duration_ns;
      if (!tfc_array_push(&r->profiles, profile) || !tfc_array_push(&r->profile_step, (uint32_t)r->steps.count))
        return tfc_status_no_memory("measuring");
    }
  }
  return tfc_array_push(&r->steps, m) ? NULL : tfc_status_no_memory("measuring");
}

static bool late(const struct batch *b) {
  return b->rules.deadline_s > 0 && tfc_now_s() > b->rules.deadline_s;
}

// Adapts the plan. On the undivided machine, the first untraced steps decide whether operations run side by side. With
// several devices, the order of operations is adjusted to the times of the first steps.
static tfc_status adapt(struct batch *b, struct run *r) {
  int steps = r->entry.whole ? TFC_ADAPT_STEPS + 1 : b->rules.settle ? 0 : TFC_ADAPT_ORDER_STEPS;
  for (int i = 0; i < steps && !r->ended && !late(b); i++) TFC_RETURN_IF_ERROR(step(b, r, 0, false, true, NULL));
  r->in_lanes = r->entry.whole && tfc_plan_in_lanes(r->plan);
  return NULL;
}

static bool is_traced(const struct batch *b, uint32_t block) {
  return b->rules.trace == TFC_TRACE_MODE_ALL || (b->rules.trace == TFC_TRACE_MODE_ALTERNATE && block % 2 == 0);
}

static bool works_on_its_own(const struct run *r) {
  const struct tfc_device_set *set = &r->side->set;
  for (uint32_t d = 0; d < set->count; d++)
    if (set->devices[d]->driver->on_its_own) return true;
  return false;
}

static tfc_status warm_up(struct batch *b, struct run *r) {
  uint64_t last = UINT64_MAX, now = 0;
  uint32_t least = b->rules.warmup;
  bool traced = b->rules.settle;
  r->warm = true;
  TFC_RETURN_IF_ERROR(adapt(b, r));
  if (r->in_lanes) return NULL;
  if (works_on_its_own(r)) { // warms up until segments are captured, with tracing if the first block is traced
    if (least <= TFC_RUNS_BEFORE_CAPTURE) least = TFC_RUNS_BEFORE_CAPTURE + 1;
    traced = traced || is_traced(b, 0);
  }
  for (uint32_t i = 0; i < (b->rules.settle ? 10 : least) && !r->ended; i++) {
    TFC_RETURN_IF_ERROR(step(b, r, 0, traced, true, &now));
    if (b->rules.settle && (late(b) || (i + 1 >= least && now == last))) break;
    last = now;
  }
  return NULL;
}

static double block_median(const struct run *r, size_t from) {
  double us[64];
  size_t n = 0;
  for (size_t i = from; i < r->steps.count && n < 64; i++)
    if (!r->steps.data[i].warmup) us[n++] = 1e-3 * (double)r->steps.data[i].duration_ns;
  return tfc_quartiles_of(us, n).median;
}

// Measures a block with several steps in flight: the time of a "step" is the time between two ends.
static tfc_status pipelined(struct batch *b, struct run *r, uint32_t number) {
  int64_t ns[MOST_WINDOWS], begin = tfc_now_ns();
  uint32_t windows = late(b) ? 1 : b->rules.block < MOST_WINDOWS ? b->rules.block : MOST_WINDOWS;
  TFC_RETURN_IF_ERROR(tfc_worker_beat(b->w, (uint32_t)(r - b->runs)));
  tfc_status s = tfc_collector_rest(r->side->collector);
  tfc_session_set_callers(r->side->session, r->entry.in_flight);
  if (!s) s = tfc_worker_pipeline(b->w, r->plan, r->copies, (uint32_t)(r - b->runs), r->entry.in_flight, windows, ns);
  tfc_session_set_callers(r->side->session, 1);
  if (s) {
    entry_fails(r, s);
    return NULL;
  }
  for (uint32_t i = 0; i < windows; i++) {
    if (ns[i] <= 0) {
      entry_fails(r, tfc_status_make(TFC_ABORTED, "steps %lld ns apart are no measurement", (long long)ns[i]));
      return NULL;
    }
    if (!tfc_array_push(&r->steps, (struct tfc_measured_step){number, false, false, begin, ns[i], 0}))
      return tfc_status_no_memory("measuring");
  }
  return NULL;
}

// Runs one block; *out_us: its median, NaN if the entry ended in it.
static tfc_status block(struct batch *b, struct run *r, uint32_t number, double best_us, double *out_us) {
  int64_t begin = tfc_now_ns();
  *out_us = NAN;
  if (r->entry.in_flight > 1) {
    size_t first = r->steps.count;
    TFC_RETURN_IF_ERROR(pipelined(b, r, number));
    if (r->state == TFC_RESULT_OK) *out_us = block_median(r, first);
    r->seconds += 1e-9 * (double)(tfc_now_ns() - begin);
    return NULL;
  }
  bool first = !r->warm;
  if (first) TFC_RETURN_IF_ERROR(warm_up(b, r));
  bool traced = is_traced(b, number);
  if (r->in_lanes) traced = false; // a trace can show only one operation per device at any time
  // A block of another entry may have moved variables to other devices and back, so segments are captured again.
  if (!first && !r->ended && !late(b) && works_on_its_own(r))
    TFC_RETURN_IF_ERROR(step(b, r, number, traced, true, NULL));
  size_t from = r->steps.count;
  for (uint32_t i = 0; i < b->rules.block && !r->ended; i++) {
    if (i >= 2 && late(b)) break; // steps are slow: the time limit is kept, and the result has fewer steps
    TFC_RETURN_IF_ERROR(step(b, r, number, traced, false, NULL));
    if (i == 1 && number == 0 && b->rules.stop_ratio > 0 && !r->ended &&
        block_median(r, from) > b->rules.stop_ratio * best_us) { // false if the best is not known
      r->state = TFC_RESULT_CUT, r->ended = true;
      break;
    }
  }
  if (r->state == TFC_RESULT_OK || r->state == TFC_RESULT_CUT) *out_us = block_median(r, from);
  r->seconds += 1e-9 * (double)(tfc_now_ns() - begin);
  return NULL;
}

static tfc_status send_run(struct batch *b, struct run *r) {
  struct tfc_pack p = {0};
  const struct tfc_plan_info *info = r->plan ? tfc_plan_info(r->plan) : NULL;
  if (r->sent) return NULL;
  r->sent = true;
  tfc_pack_u32(&p, (uint32_t)(r - b->runs));
  tfc_pack_u32(&p, r->state);
  tfc_pack_u32(&p, r->code);
  tfc_pack_str(&p, tfc_str_from(r->message));
  tfc_pack_u32(&p, r->in_lanes);
  tfc_pack_u32(&p, info && !info->is_static); // such a plan's peak is that of its variables
  tfc_pack_u32(&p,
               r->side && r->side->collector && works_on_its_own(r) && tfc_collector_has_profiler(r->side->collector));
  tfc_pack_f64(&p, r->seconds);
  tfc_pack_f64(&p, r->ratio_count ? r->ratio_sum / r->ratio_count : NAN);
  tfc_pack_array(&p, r->steps.data, r->steps.count, sizeof *r->steps.data);
  tfc_pack_array(&p, info ? info->peak_bytes : NULL, info ? info->device_count : 0, sizeof(uint64_t));
  tfc_pack_u64(&p, info ? info->transfer_count : 0);
  for (uint32_t i = 0; info && i < info->transfer_count; i++) {
    const struct tfc_plan_transfer *t = &info->transfers[i];
    struct tfc_plan_transfer_row row = {t->tensor.node, t->tensor.index, t->source, t->target, t->bytes};
    tfc_pack_bytes(&p, &row, sizeof row);
  }
  tfc_worker_pack_fused(b->w, info, &p);
  tfc_pack_u64(&p, r->profiles.count);
  for (size_t i = 0; i < r->profiles.count; i++) {
    const struct tfc_step_profile *f = &r->profiles.data[i];
    tfc_pack_u32(&p, r->profile_step.data[i]);
    tfc_pack_u64(&p, (uint64_t)f->start_ns);
    tfc_pack_u64(&p, (uint64_t)f->duration_ns);
    tfc_pack_u64(&p, f->allocated);
    tfc_pack_array(&p, f->ops.data, f->ops.count, sizeof *f->ops.data);
    tfc_pack_array(&p, f->transfers.data, f->transfers.count, sizeof *f->transfers.data);
    tfc_pack_array(&p, f->busy.data, f->busy.count, sizeof *f->busy.data);
    tfc_pack_array(&p, f->works.data, f->works.count, sizeof *f->works.data);
    tfc_pack_array(&p, f->calls.data, f->calls.count, sizeof *f->calls.data);
  }
  tfc_wire_buffer answer = {0};
  uint32_t type = 0;
  tfc_status s = tfc_wire_send(b->w->fd, TFC_WIRE_RESULT, &p);
  if (!s) s = tfc_wire_receive(b->w->fd, -1, NULL, &type, &answer);
  if (!s && type != TFC_WIRE_ACK) s = tfc_status_make(TFC_INTERNAL, "an unexpected message");
  tfc_wire_free(&answer);
  tfc_wire_free(&p.bytes);
  free_plans(r); // the next entry needs the memory of its arena
  return s;
}

// If this process has lost a device (after an illegal address, say), everything that follows fails; the parent starts a
// new worker for the remaining entries.
static bool lost_device(const struct tfc_worker *w) {
  bool lost = false;
  for (int side = 0; side < 2; side++)
    for (uint32_t d = 0; d < w->sides[side].set.count; d++) {
      struct tfc_device *device = w->sides[side].set.devices[d];
      if (!device->driver->on_its_own) continue;
      tfc_status s = device->driver->synchronize(device);
      lost |= tfc_status_code(s) == TFC_UNAVAILABLE;
      tfc_status_free(s);
    }
  return lost;
}

static tfc_status send_result(struct batch *b, struct run *r) {
  const bool failed = !r->sent && r->state == TFC_RESULT_FAILED;
  TFC_RETURN_IF_ERROR(send_run(b, r));
  if (!failed || !lost_device(b->w)) return NULL;
  b->w->lost = true;
  return tfc_status_make(TFC_UNAVAILABLE, "a device is lost");
}

// Runs one block of each entry that has not ended. log_us[entry * MOST_CHOOSING + number]: the logarithm of its median;
// NULL: it is not needed.
static tfc_status turn(struct batch *b, uint32_t number, double *log_us) {
  for (uint32_t i = 0; i < b->count; i++) {
    struct run *r = &b->runs[i];
    double us = (double)NAN;
    if (r->ended) continue;
    if (!r->plan) plan_entry(b, r);
    if (!r->ended) TFC_RETURN_IF_ERROR(block(b, r, number, b->rules.best_us, &us));
    if (r->ended) TFC_RETURN_IF_ERROR(send_result(b, r));
    if (log_us && !r->ended && r->entry.answers) log_us[(size_t)i * MOST_CHOOSING + number] = log(us);
  }
  return NULL;
}

// Ends the measurement of an entry; its result is what was measured so far.
static tfc_status leave_out(struct batch *b, struct run *r) {
  r->ended = true;
  return send_result(b, r);
}

static tfc_status choose(struct batch *b) {
  tfc_status s = NULL;
  const size_t cells = (size_t)b->count * MOST_CHOOSING;
  double *log_us = malloc((cells + 1) * sizeof *log_us);
  uint32_t best = TFC_NONE;
  if (!log_us) return tfc_status_no_memory("measuring");
  for (size_t i = 0; i < cells; i++) log_us[i] = (double)NAN;
  for (uint32_t k = 0; k < b->rules.choose; k++) {
    if (k > 0 && (late(b) || (b->rules.choose_until_s > 0 && tfc_now_s() > b->rules.choose_until_s))) break;
    TFC_TRY(s, turn(b, k, log_us));
    for (uint32_t i = 0; i < b->count; i++) // an entry that has failed since then cannot be the leader
      if (b->runs[i].ended) log_us[(size_t)i * MOST_CHOOSING] = (double)NAN;
    best = tfc_choice_leader(log_us, b->count, MOST_CHOOSING, k + 1);
    for (uint32_t i = 0; i < b->count && best != TFC_NONE; i++) {
      struct run *r = &b->runs[i];
      if (!r->ended && !r->entry.stays && r->entry.answers &&
          tfc_choice_surely_slower(log_us + (size_t)best * MOST_CHOOSING, log_us + (size_t)i * MOST_CHOOSING, k + 1))
        TFC_TRY(s, leave_out(b, r));
    }
  }
  for (uint32_t i = 0; i < b->count; i++)
    if (!b->runs[i].ended && i != best && !b->runs[i].entry.stays) TFC_TRY(s, leave_out(b, &b->runs[i]));
out:
  free(log_us);
  return s;
}

static tfc_status rounds(struct batch *b) {
  if (b->rules.choose) TFC_RETURN_IF_ERROR(choose(b));
  for (uint32_t k = 0; k < b->rules.blocks; k++) {
    if (k > 0 && late(b)) break;
    TFC_RETURN_IF_ERROR(turn(b, b->rules.choose + k, NULL));
  }
  for (uint32_t i = 0; i < b->count; i++) TFC_RETURN_IF_ERROR(send_result(b, &b->runs[i]));
  return NULL;
}

// Runs the next block of the reference. If that fails, it is reported at once, so that the next entry is not taken for
// the cause.
static tfc_status reference_block(struct batch *b, struct run *reference, uint32_t *number, double *out_us) {
  if (!reference->ended) TFC_RETURN_IF_ERROR(block(b, reference, (*number)++, NAN, out_us));
  return reference->ended ? send_result(b, reference) : NULL;
}

static tfc_status against_reference(struct batch *b) {
  struct run *reference = &b->runs[b->rules.reference];
  double before = NAN;
  uint32_t number = 0;
  plan_entry(b, reference);
  TFC_RETURN_IF_ERROR(reference_block(b, reference, &number, &before));
  for (uint32_t i = 0; i < b->count; i++) {
    struct run *r = &b->runs[i];
    if (r == reference) continue;
    int64_t begin = tfc_now_ns();
    double us = NAN, after = NAN;
    if (late(b)) {
      r->state = TFC_RESULT_CUT, r->ended = true;
      r->message = tfc_str_dup(TFC_STR("no time was left"));
      TFC_RETURN_IF_ERROR(send_result(b, r));
      continue;
    }
    plan_entry(b, r);
    r->seconds = 1e-9 * (double)(tfc_now_ns() - begin);
    double best = isnan(b->rules.best_us) ? before : b->rules.best_us;
    for (uint32_t k = 0; k < b->rules.blocks && !r->ended; k++) {
      TFC_RETURN_IF_ERROR(block(b, r, k, best, &us));
      bool cut = r->ended;
      if (!cut) TFC_RETURN_IF_ERROR(reference_block(b, reference, &number, &after));
      double beside = cut ? before : 0.5 * (before + after);
      if (isfinite(us) && isfinite(beside)) r->ratio_sum += us / beside, r->ratio_count++;
      if (!cut) before = after;
    }
    TFC_RETURN_IF_ERROR(send_result(b, r));
  }
  return send_result(b, reference);
}

static tfc_status read_batch(struct batch *b, struct tfc_unpack *u) {
  struct tfc_measure_batch *m = &b->rules;
  m->count = tfc_unpack_u32(u);
  m->reference = tfc_unpack_u32(u);
  m->warmup = tfc_unpack_u32(u);
  m->settle = tfc_unpack_u32(u);
  m->block = tfc_unpack_u32(u);
  m->blocks = tfc_unpack_u32(u);
  m->choose = tfc_unpack_u32(u);
  m->choose_until_s = tfc_unpack_f64(u);
  m->stop_ratio = tfc_unpack_f64(u);
  m->best_us = tfc_unpack_f64(u);
  m->trace = (tfc_trace_mode)tfc_unpack_u32(u);
  m->ignore_limits = tfc_unpack_u32(u);
  m->deadline_s = tfc_unpack_f64(u);
  if (u->failed || m->count > 65536 || m->choose > MOST_CHOOSING ||
      (m->reference != TFC_NONE && m->reference >= m->count))
    return tfc_status_make(TFC_INTERNAL, "a broken message");
  if (!(b->runs = calloc(m->count + 1u, sizeof *b->runs))) return tfc_status_no_memory("measuring");
  b->count = m->count;
  for (uint32_t i = 0; i < m->count; i++) {
    struct run *r = &b->runs[i];
    size_t nodes = 0, sequence = 0;
    r->entry.whole = tfc_unpack_u32(u);
    r->entry.plain = tfc_unpack_u32(u);
    r->entry.in_parts = tfc_unpack_u32(u);
    r->entry.in_flight = tfc_unpack_u32(u);
    r->entry.answers = tfc_unpack_u32(u);
    r->entry.stays = tfc_unpack_u32(u);
    const void *placement = tfc_unpack_array(u, sizeof *r->placement, &nodes);
    if (!(r->placement = malloc(nodes * sizeof *r->placement + 1))) return tfc_status_no_memory("measuring");
    memcpy(r->placement, placement, nodes * sizeof *r->placement);
    const void *order = tfc_unpack_array(u, sizeof *r->sequence, &sequence);
    if (!(r->sequence = malloc(sequence * sizeof *r->sequence + 1))) return tfc_status_no_memory("measuring");
    memcpy(r->sequence, order, sequence * sizeof *r->sequence);
    r->entry.sequence_count = (uint32_t)sequence;
    if (u->failed || r->entry.in_flight > MOST_IN_FLIGHT || (!r->entry.whole && nodes != b->w->graph->node_count))
      return tfc_status_make(TFC_INTERNAL, "a broken message");
  }
  return NULL;
}

tfc_status tfc_worker_batch(struct tfc_worker *w, struct tfc_unpack *u) {
  tfc_status s = NULL;
  struct batch b = {.w = w};
  TFC_TRY(s, read_batch(&b, u));
  TFC_TRY(s, b.rules.reference == TFC_NONE ? rounds(&b) : against_reference(&b));
  TFC_TRY(s, tfc_wire_send(w->fd, TFC_WIRE_DONE, NULL));
out:
  for (uint32_t i = 0; i < b.count; i++) run_deinit(&b.runs[i]);
  free(b.runs);
  return s;
}
