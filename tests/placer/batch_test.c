// Tests how a worker measures a batch: in which order entries run, which steps count, how an entry is compared with the
// reference beside it, when one is stopped, left out or chosen, and what exceeds memory. Plans and the clock are played
// here: a step takes as long as the test says.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/batch.h"
#include "placer/measure/choice.h"
#include "placer/measure/guard.h"
#include "placer/measure/pipeline.h"
#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "profiler/statistics.h"
#include "runtime/base/clock.h"

enum { MOST = 8, MOST_RUNS = 512, DEVICES = 2 };

// --- Played plans and clock ------------------------------------------------------------------------------------------
static struct { // how each entry behaves
  double us;
  double later_us;     // us from the second timed step on; 0: the same as before
  tfc_code plan_fails; // the error of making the entry's plan
  uint32_t fails_from; // the number of the step (from 1) that fails; 0: none
  uint64_t peak[DEVICES];
} play[MOST];
static double slows; // each played microsecond makes steps longer by this share
static int64_t now_ns;
static uint32_t beat, steps_of[MOST], plans_made, plans_freed, pipelines;
static uint64_t allocated[32]; // bytes that traced steps have allocated
static uint32_t drained;
static bool lanes;
static struct ran {
  uint32_t entry;
  bool traced;
  double us;
} ran[MOST_RUNS];
static uint32_t ran_count;
static double last_us;
static tfc_adapt adapts[MOST];
static bool side_by_side[MOST];
static struct tfc_plan_variable held_variables[] = {{.device = 0, .bytes = 100}, {.device = 1, .bytes = 30}};
static struct tfc_plan_info infos[MOST];

static int64_t played_now(void) {
  return now_ns;
}
static tfc_status played_beat(struct tfc_worker *w, uint32_t entry) {
  (void)w;
  beat = entry;
  return NULL;
}
static tfc_status played_open(struct tfc_worker *w, int side) {
  w->sides[side].ready = true;
  return NULL;
}
static tfc_status played_create(struct tfc_session *s, const struct tfc_run_spec *spec, struct tfc_plan **out) {
  (void)s;
  adapts[beat] = spec->adapt, side_by_side[beat] = spec->side_by_side;
  if (play[beat].plan_fails) return tfc_status_make(play[beat].plan_fails, "played");
  *out = (struct tfc_plan *)(uintptr_t)(beat + 1);
  plans_made++;
  return NULL;
}
static void played_free(struct tfc_plan *p) {
  plans_freed += p != NULL;
}
static uint32_t entry_of(const struct tfc_plan *p) {
  return (uint32_t)((uintptr_t)p - 1);
}
static const struct tfc_plan_info *played_info(const struct tfc_plan *p) {
  const uint32_t e = entry_of(p);
  infos[e] = (struct tfc_plan_info){.peak_bytes = play[e].peak,
                                    .device_count = DEVICES,
                                    .is_static = true,
                                    .variables = held_variables,
                                    .variable_count = 2};
  return &infos[e];
}
static tfc_status played_run(struct tfc_plan *p, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                             const struct tfc_run_options *o) {
  (void)feeds, (void)fetches;
  const uint32_t e = entry_of(p);
  assert_int_equal(e, beat);
  if (++steps_of[e] == play[e].fails_from) return tfc_status_make(TFC_UNAVAILABLE, "played");
  last_us = play[e].later_us > 0 && steps_of[e] > 4 ? play[e].later_us : play[e].us;
  last_us = round(last_us * (1 + slows * 1e-3 * (double)now_ns));
  now_ns += (int64_t)last_us * 1000;
  assert_true(ran_count < MOST_RUNS);
  ran[ran_count++] = (struct ran){e, o->trace != NULL, last_us};
  return NULL;
}
static double played_last(const struct tfc_plan *p) {
  (void)p;
  return last_us;
}
static tfc_status played_drain(struct tfc_collector *c, const struct tfc_collector_names *names, const bool *async,
                               struct tfc_step_profile *out) {
  (void)c, (void)names, (void)async;
  // By the records the step was a microsecond shorter.
  *out = (struct tfc_step_profile){.start_ns = now_ns, .duration_ns = (int64_t)last_us * 1000 - 1000};
  out->allocated = allocated[drained < 31 ? drained : 31];
  drained++;
  return NULL;
}
static tfc_status played_pipeline(struct tfc_worker *w, struct tfc_plan *plan, struct tfc_plan **copies, uint32_t entry,
                                  uint32_t in_flight, uint32_t windows, int64_t *ns) {
  (void)w, (void)copies, (void)in_flight;
  assert_int_equal(entry_of(plan), entry);
  pipelines++;
  for (uint32_t i = 0; i < windows; i++) ns[i] = (int64_t)play[entry].us * 1000 + i;
  now_ns += (int64_t)play[entry].us * 1000 * windows;
  return NULL;
}

// --- Results ---------------------------------------------------------------------------------------------------------
static struct result {
  uint32_t entry, state, code, in_lanes, variables_only, step_count;
  char message[160];
  double seconds, ratio;
  struct tfc_measured_step steps[64];
} results[MOST];
static uint32_t result_count;

static tfc_status played_send(int fd, enum tfc_wire_type type, const struct tfc_pack *p) {
  (void)fd;
  if (type == TFC_WIRE_DONE) return NULL;
  assert_int_equal(type, TFC_WIRE_RESULT);
  assert_true(result_count < MOST);
  struct result *r = &results[result_count++];
  struct tfc_unpack u = {p->bytes.data, p->bytes.data + p->bytes.count, false};
  size_t count;
  r->entry = tfc_unpack_u32(&u);
  r->state = tfc_unpack_u32(&u);
  r->code = tfc_unpack_u32(&u);
  const tfc_str message = tfc_unpack_str(&u);
  assert_true(message.size < sizeof r->message);
  memcpy(r->message, message.data, message.size);
  r->message[message.size] = 0;
  r->in_lanes = tfc_unpack_u32(&u);
  r->variables_only = tfc_unpack_u32(&u);
  assert_int_equal(tfc_unpack_u32(&u), 0); // the message has no records of GPUs
  r->seconds = tfc_unpack_f64(&u);
  r->ratio = tfc_unpack_f64(&u);
  const void *steps = tfc_unpack_array(&u, sizeof *r->steps, &count);
  assert_true(!u.failed && count <= 64);
  r->step_count = (uint32_t)count;
  if (count) memcpy(r->steps, steps, count * sizeof *r->steps);
  return NULL;
}
static tfc_status played_receive(int fd, int64_t timeout_ns, const atomic_bool *cancel, uint32_t *type,
                                 tfc_wire_buffer *buffer) {
  (void)fd, (void)timeout_ns, (void)cancel, (void)buffer;
  *type = TFC_WIRE_ACK;
  return NULL;
}

#define tfc_now_ns played_now
#define tfc_now_s() (1e-9 * (double)played_now())
#define tfc_worker_beat played_beat
#define tfc_worker_side_open played_open
#define tfc_plan_create played_create
#define tfc_plan_free played_free
#define tfc_plan_info(p) played_info(p)
#define tfc_plan_run played_run
#define tfc_plan_last_step_us played_last
#define tfc_plan_in_lanes(p) lanes
#define tfc_session_restore(s, snapshot) ((void)(s), (tfc_status)NULL)
#define tfc_session_set_callers(s, n) ((void)(s))
#define tfc_collector_reset(c) ((void)(c))
#define tfc_collector_rest(c) ((void)(c), (tfc_status)NULL)
#define tfc_collector_sink(c) ((void)(c), (struct tfc_trace_sink *)(uintptr_t)8)
#define tfc_collector_make_room(c) ((void)(c), false)
#define tfc_collector_has_profiler(c) ((void)(c), false)
#define tfc_collector_drain played_drain
#define tfc_guard_watch(p) ((void)(p))
#define tfc_worker_pipeline played_pipeline
#define tfc_worker_pack_fused(w, info, p) tfc_pack_u64(p, 0)
#define tfc_wire_send played_send
#define tfc_wire_receive played_receive
#include "placer/measure/batch.c"
#undef tfc_now_ns

static struct tfc_device_driver driver;
static struct tfc_device devices[DEVICES] = {{.driver = &driver, .info = {.name = "cpu:0"}},
                                             {.driver = &driver, .info = {.name = "cpu:1"}}};
static struct tfc_device *pointers[DEVICES] = {&devices[0], &devices[1]};
static uint64_t most_bytes[DEVICES];

static void reset(void) {
  memset(play, 0, sizeof play);
  memset(steps_of, 0, sizeof steps_of);
  memset(allocated, 0, sizeof allocated);
  for (uint32_t i = 0; i < MOST; i++) play[i].us = 100 * (i + 1);
  slows = 0, now_ns = 1000000000, ran_count = drained = plans_made = plans_freed = pipelines = 0, lanes = false;
  most_bytes[0] = most_bytes[1] = UINT64_MAX;
}

// Runs a batch; results are in `results` in the order in which they were sent.
static void measure(struct tfc_measure_batch m, const struct tfc_measure_entry *entries, uint32_t count) {
  struct tfc_graph graph = {.node_count = 1};
  struct tfc_worker w = {.graph = &graph, .most_bytes = most_bytes};
  struct tfc_pack p = {0};
  const uint16_t placement = 0;
  for (int i = 0; i < 3; i++) w.sides[i].set = (struct tfc_device_set){.devices = pointers, .count = DEVICES};
  result_count = 0;
  memset(results, 0, sizeof results);
  tfc_pack_u32(&p, count);
  tfc_pack_u32(&p, m.reference);
  tfc_pack_u32(&p, m.warmup);
  tfc_pack_u32(&p, m.settle);
  tfc_pack_u32(&p, m.block);
  tfc_pack_u32(&p, m.blocks);
  tfc_pack_u32(&p, m.choose);
  tfc_pack_f64(&p, m.choose_until_s);
  tfc_pack_f64(&p, m.stop_ratio);
  tfc_pack_f64(&p, m.best_us);
  tfc_pack_u32(&p, m.trace);
  tfc_pack_u32(&p, m.ignore_limits);
  tfc_pack_f64(&p, m.deadline_s);
  for (uint32_t i = 0; i < count; i++) {
    tfc_pack_u32(&p, entries[i].whole);
    tfc_pack_u32(&p, entries[i].plain);
    tfc_pack_u32(&p, entries[i].in_parts);
    tfc_pack_u32(&p, entries[i].in_flight);
    tfc_pack_u32(&p, entries[i].answers);
    tfc_pack_u32(&p, entries[i].stays);
    tfc_pack_array(&p, &placement, 1, sizeof placement);
    tfc_pack_array(&p, NULL, 0, sizeof(uint32_t));
  }
  struct tfc_unpack u = {p.bytes.data, p.bytes.data + p.bytes.count, false};
  assert_ok(tfc_worker_batch(&w, &u));
  assert_int_equal(plans_made, plans_freed);
  tfc_array_free(&p.bytes);
}

static const struct result *result_of(uint32_t entry) {
  for (uint32_t i = 0; i < result_count; i++)
    if (results[i].entry == entry) return &results[i];
  fail_msg("entry %u has no result", entry);
  return NULL;
}

// The order of runs, as entries: "000 111 00".
static void ran_in_order(const char *expected) {
  uint32_t at = 0;
  for (const char *c = expected; *c; c++) {
    if (*c == ' ') continue;
    assert_true(at < ran_count);
    assert_int_equal(ran[at++].entry, *c - '0');
  }
  assert_int_equal(at, ran_count);
}

static const struct tfc_measure_batch usual = {
    .warmup = 1, .block = 2, .blocks = 2, .best_us = (double)NAN, .trace = TFC_TRACE_MODE_NONE, .reference = 0};

// --- Tests -----------------------------------------------------------------------------------------------------------
// A block of the reference before and after each block; neighbours share it. The machine becomes slower all the time.
static void reference(void **state) {
  (void)state;
  const struct tfc_measure_entry e[3] = {{0}};
  reset();
  slows = 1e-4;
  play[1].us = 250, play[2].us = 50;
  measure(usual, e, 3);
  ran_in_order("000 00  111 11  00  11  00  222 22  00  22  00");
  assert_int_equal(results[0].entry, 1);
  assert_int_equal(results[1].entry, 2);
  assert_int_equal(results[2].entry, 0);
  // The timed blocks lie in the list of runs at these places.
  static const uint32_t own[3][2] = {{0}, {8, 12}, {19, 23}}, before[3][2] = {{0}, {3, 10}, {14, 21}},
                        after[3][2] = {{0}, {10, 14}, {21, 25}};
  for (uint32_t k = 1; k < 3; k++) {
    const struct result *r = result_of(k);
    double sum = 0;
    for (uint32_t b = 0; b < 2; b++) {
      const uint32_t x = own[k][b], y = before[k][b], z = after[k][b];
      sum += (ran[x].us + ran[x + 1].us) / ((ran[y].us + ran[y + 1].us + ran[z].us + ran[z + 1].us) / 2);
    }
    assert_true(fabs(r->ratio - sum / 2) < 1e-12);
    assert_true(fabs(r->ratio - play[k].us / 100) < 0.03 * play[k].us / 100); // in spite of the drift
    assert_int_equal(r->state, TFC_RESULT_OK);
    assert_int_equal(r->step_count, 7);
    uint32_t timed = 0, warm = 0;
    for (uint32_t i = 0; i < 7; i++) {
      warm += r->steps[i].warmup;
      if (r->steps[i].warmup) continue;
      assert_int_equal(r->steps[i].block, timed++ / 2);
      assert_false(r->steps[i].traced);
    }
    assert_true(timed == 4 && warm == 3); // two steps in which the order adapts, one of warming up
    assert_int_equal(r->steps[3].duration_ns, (int64_t)ran[own[k][0]].us * 1000);
    assert_int_equal(r->steps[3].host_ns, r->steps[3].duration_ns);
  }
  assert_true(isnan(result_of(0)->ratio));
  assert_int_equal(result_of(0)->steps[result_of(0)->step_count - 1].block, 4);
  assert_int_equal(adapts[1], TFC_ADAPT_WHERE_FASTER);
}

// Far slower than the best, or than the reference if that is not known: stopped after two steps.
static void stopped(void **state) {
  (void)state;
  const struct tfc_measure_entry e[3] = {{0}};
  struct tfc_measure_batch m = usual;
  m.block = 5, m.stop_ratio = 3;
  reset();
  play[1].us = 301, play[2].us = 300;
  measure(m, e, 3);
  const struct result *cut = result_of(1), *kept = result_of(2);
  assert_int_equal(cut->state, TFC_RESULT_CUT);
  assert_int_equal(cut->step_count, 3 + 2);
  assert_true(fabs(cut->ratio - 3.01) < 1e-12);
  assert_int_equal(kept->state, TFC_RESULT_OK);
  assert_int_equal(kept->step_count, 3 + 10);
  assert_true(fabs(kept->ratio - 3) < 1e-12);
  reset();
  m.best_us = 50;
  play[1].us = 149, play[2].us = 151;
  measure(m, e, 3);
  assert_int_equal(result_of(1)->state, TFC_RESULT_OK);
  assert_int_equal(result_of(2)->state, TFC_RESULT_CUT);
  reset();
  m.best_us = (double)NAN, m.reference = TFC_NONE; // there is no time to compare with
  measure(m, e, 3);
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(result_of(i)->state, TFC_RESULT_OK);
}

static void turns_in_rounds(void **state) {
  (void)state;
  const struct tfc_measure_entry e[3] = {{0}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE, m.warmup = 0;
  reset();
  measure(m, e, 3);
  ran_in_order("00 00 11 11 22 22 00 11 22");
  for (uint32_t i = 0; i < 3; i++) assert_true(isnan(result_of(i)->ratio));
  // The deadline passes in the first block: each entry gets its first block of two steps, and nothing is warmed up.
  reset();
  m.block = 5, m.warmup = 1, m.deadline_s = 1 + 250e-6;
  measure(m, e, 3);
  ran_in_order("000 00 1 11 2 22");
  // Against a reference the others are not measured any more.
  reset();
  m.reference = 0;
  measure(m, e, 3);
  ran_in_order("000 00");
  assert_int_equal(result_of(1)->state, TFC_RESULT_CUT);
  assert_string_equal(result_of(2)->message, "no time was left");
  assert_int_equal(result_of(0)->state, TFC_RESULT_OK);
}

// Four turns choose; the answer and those that stay are measured to the end.
static void choosing(void **state) {
  (void)state;
  struct tfc_measure_entry e[5] = {{.answers = true}, {.answers = true}, {.answers = true}, {.stays = true}, {0}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE, m.warmup = 0, m.block = 1, m.blocks = 2, m.choose = 3;
  reset();
  play[0].us = 104, play[1].us = 100, play[2].us = 180, play[3].us = 50, play[4].us = 10;
  measure(m, e, 5);
  // Entry 2 is surely slower after two turns; 0 may still be as fast; 3 and 4 cannot be the answer.
  ran_in_order("000 111 222 333 444  0 1 2 3 4  0 1 3 4  1 3  1 3");
  assert_int_equal(results[0].entry, 2);
  const struct result *answer = result_of(1);
  assert_int_equal(answer->step_count, 2 + 5);
  assert_int_equal(answer->steps[6].block, 4);
  assert_int_equal(result_of(0)->state, TFC_RESULT_OK);
  // No further turn begins after this moment.
  reset();
  play[0].us = 104, play[1].us = 100, play[2].us = 180, play[3].us = 50, play[4].us = 10;
  m.choose_until_s = 1 + 400e-6;
  measure(m, e, 5);
  ran_in_order("000 111 222 333 444  1 3 1 3");
  // The leader fails in its second turn: the other is chosen.
  reset();
  m.choose_until_s = 0;
  play[0].us = 104, play[1].us = 100, play[1].fails_from = 4;
  measure(m, e, 2);
  ran_in_order("000 111  0  0 0 0");
  assert_int_equal(result_of(1)->state, TFC_RESULT_FAILED);
}

static void failures(void **state) {
  (void)state;
  const struct tfc_measure_entry e[6] = {{0}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE;
  reset();
  play[1].plan_fails = TFC_RESOURCE_EXHAUSTED, play[2].plan_fails = TFC_INVALID_ARGUMENT,
  play[3].plan_fails = TFC_INTERNAL, play[4].fails_from = 5, play[5].us = 0;
  measure(m, e, 6);
  static const uint32_t states[] = {TFC_RESULT_OK,     TFC_RESULT_NO_FIT, TFC_RESULT_ILLEGAL,
                                    TFC_RESULT_FAILED, TFC_RESULT_FAILED, TFC_RESULT_FAILED};
  static const uint32_t codes[] = {TFC_OK,       TFC_RESOURCE_EXHAUSTED, TFC_INVALID_ARGUMENT,
                                   TFC_INTERNAL, TFC_UNAVAILABLE,        TFC_ABORTED};
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal(result_of(i)->state, states[i]);
    assert_int_equal(result_of(i)->code, codes[i]);
  }
  assert_int_equal(result_of(4)->step_count, 4);
  assert_string_equal(result_of(5)->message, "a step of 0 us is no measurement");
  assert_int_equal(result_of(0)->step_count, 3 + 4);
  assert_int_equal(result_count, 6);
}

static void limits(void **state) {
  (void)state;
  struct tfc_measure_entry e[5] = {{0}, {0}, {.in_flight = 3}, {.in_flight = 3}, {.whole = true}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE;
  reset();
  most_bytes[0] = 1000, most_bytes[1] = 330;
  play[0].peak[0] = 1000, play[0].peak[1] = 330;
  play[1].peak[0] = 1001, play[1].peak[1] = 331;
  play[2].peak[0] = 400, play[2].peak[1] = 130; // three steps: 100 + 3 * 300, 30 + 3 * 100
  play[3].peak[0] = 400, play[3].peak[1] = 131;
  play[4].peak[0] = 5000;
  measure(m, e, 5);
  assert_int_equal(result_of(0)->state, TFC_RESULT_OK);
  assert_int_equal(result_of(1)->state, TFC_RESULT_NO_FIT);
  assert_string_equal(result_of(1)->message,
                      "cpu:0: needs 1.0 kB, its limit is 1.0 kB; cpu:1: needs 331 B, its limit is 330 B");
  assert_int_equal(result_of(2)->state, TFC_RESULT_OK);
  assert_int_equal(result_of(3)->state, TFC_RESULT_NO_FIT);
  assert_string_equal(result_of(3)->message, "cpu:1: needs 333 B, its limit is 330 B");
  assert_int_equal(result_of(4)->state, TFC_RESULT_OK);
  assert_true(side_by_side[2]);
  m.ignore_limits = true;
  reset();
  most_bytes[0] = 10;
  play[0].peak[0] = 11;
  measure(m, e, 1);
  assert_int_equal(result_of(0)->state, TFC_RESULT_OK);
}

static void in_flight(void **state) {
  (void)state;
  struct tfc_measure_entry e[1] = {{.in_flight = 2}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE, m.block = 4, m.blocks = 3;
  reset();
  measure(m, e, 1);
  const struct result *r = result_of(0);
  assert_true(pipelines == 3 && ran_count == 0 && plans_made == 2);
  assert_int_equal(r->step_count, 12);
  assert_int_equal(r->steps[7].duration_ns, 100003);
  assert_int_equal(r->steps[7].block, 1);
  assert_int_equal(r->steps[7].host_ns, 0);
  assert_false(r->steps[0].warmup);
  reset();
  play[0].us = 0;
  measure(m, e, 1);
  assert_int_equal(result_of(0)->state, TFC_RESULT_FAILED);
}

// Blocks with a trace and without in turns; a traced step takes as long as its own records say.
static void traces(void **state) {
  (void)state;
  struct tfc_measure_entry e[2] = {{0}, {.whole = true}};
  struct tfc_measure_batch m = usual;
  m.reference = TFC_NONE, m.trace = TFC_TRACE_MODE_ALTERNATE, m.blocks = 3;
  reset();
  measure(m, e, 1);
  const struct result *r = result_of(0);
  assert_int_equal(r->step_count, 3 + 6);
  for (uint32_t i = 0; i < 9; i++) {
    const struct tfc_measured_step *s = &r->steps[i];
    assert_int_equal(s->traced, i >= 3 && s->block != 1);
    assert_int_equal(s->duration_ns, s->traced ? 99000 : 100000);
    assert_int_equal(s->host_ns, 100000);
    // A traced step begins at the time of its first played record, which is the time at which the step ends here.
    assert_int_equal(s->start_ns, 1000000000 + 100000 * (int64_t)(i + s->traced));
  }
  m.trace = TFC_TRACE_MODE_ALL;
  reset();
  measure(m, e, 1);
  for (uint32_t i = 3; i < 9; i++) assert_true(result_of(0)->steps[i].traced);
  // The undivided machine has more steps in which it adapts. In lanes it cannot be traced, and is not warmed up again.
  for (int in_lanes = 0; in_lanes < 2; in_lanes++) {
    reset();
    lanes = in_lanes;
    measure(m, e, 2);
    assert_int_equal(result_of(1)->in_lanes, in_lanes);
    assert_int_equal(result_of(0)->in_lanes, 0);
    assert_int_equal(result_of(1)->step_count, TFC_ADAPT_STEPS + 1 + !in_lanes + 6);
    assert_int_equal(result_of(1)->steps[result_of(1)->step_count - 1].traced, !in_lanes);
  }
  // A profile warms up with traced steps until two of them allocate the same: at least `warmup` and at most ten.
  m.settle = true, m.blocks = 1;
  reset();
  for (uint32_t i = 0; i < 32; i++) allocated[i] = i < 4 ? i : 4;
  measure(m, e, 1);
  assert_int_equal(result_of(0)->step_count, 6 + 2);
  assert_true(result_of(0)->steps[5].warmup && result_of(0)->steps[0].traced && !result_of(0)->steps[6].warmup);
  assert_int_not_equal(adapts[0], TFC_ADAPT_WHERE_FASTER); // it runs in one way only
  reset();
  for (uint32_t i = 0; i < 32; i++) allocated[i] = i;
  measure(m, e, 1);
  assert_int_equal(result_of(0)->step_count, 10 + 2);
  reset();
  m.warmup = 4; // all entries allocate the same
  measure(m, e, 1);
  assert_int_equal(result_of(0)->step_count, 4 + 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference), cmocka_unit_test(stopped),  cmocka_unit_test(turns_in_rounds),
      cmocka_unit_test(choosing),  cmocka_unit_test(failures), cmocka_unit_test(limits),
      cmocka_unit_test(in_flight), cmocka_unit_test(traces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
