// Tests the evaluator that measures, without a real measurer: which batch it requests, and which results it computes
// from the measurements. All figures were worked out by hand. The measurer is a fake that records the requests.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/evaluator.h"
#include "placer/measure/measure.h"

static struct tfc_measure_batch asked;
static struct tfc_measure_entry entered[4];
static uint16_t placed[4][3];
static uint32_t order[4][2];
static struct tfc_measure_info machine;
static uint32_t refused = TFC_NONE; // index of the entry that the fake reports as FAILED

static tfc_status fake_run(struct tfc_measurer *m, const struct tfc_measure_batch *batch, tfc_measured_fn fn,
                           void *user) {
  (void)m;
  asked = *batch;
  for (uint32_t i = 0; i < batch->count; i++) {
    entered[i] = batch->entries[i];
    memcpy(placed[i], batch->entries[i].placement, sizeof placed[i]);
    memcpy(order[i], batch->entries[i].sequence, sizeof order[i]);
  }
  for (uint32_t i = batch->count; i-- > 0;) { // entries may end in any order
    const struct tfc_measured_step step = {.duration_ns = 1000 * (i + 1)};
    const struct tfc_measured measured = {.entry = i,
                                          .state = i == refused ? TFC_RESULT_FAILED : TFC_RESULT_OK,
                                          .steps = &step,
                                          .step_count = i == refused ? 0 : 1,
                                          .ratio = 0.5 * i,
                                          .message = i == refused ? "a crash" : NULL};
    TFC_RETURN_IF_ERROR(fn(user, &measured));
  }
  return NULL;
}
static const struct tfc_measure_info *fake_info(const struct tfc_measurer *m) {
  (void)m;
  return &machine;
}
// Places three nodes, of which the first two are operations.
static tfc_status fake_assign(const struct tfc_subject *l, const struct tfc_problem *p, const struct tfc_solution *s,
                              uint16_t *out_device, uint32_t *out_sequence, uint32_t *out_count) {
  (void)l, (void)p;
  if (s->device[0] == 9) return tfc_status_make(TFC_INTERNAL, "nine");
  for (uint16_t i = 0; i < 3; i++) out_device[i] = (uint16_t)(s->device[0] + i);
  out_sequence[0] = 1, out_sequence[1] = s->device[0];
  *out_count = 2;
  return NULL;
}
#define tfc_measurer_run fake_run
#define tfc_measurer_info fake_info
#define tfc_subject_assign fake_assign
#define tfc_evaluator_measured own_evaluator_measured
#define tfc_result_from_measured own_result_from_measured
#define tfc_measured_counts own_measured_counts
#define tfc_measure_label own_measure_label
#include "placer/measure/evaluator.c"

struct observed {
  uint32_t count, index[8];
  const struct tfc_solution *candidate[8];
  int64_t value[8];
};
static tfc_status observe(void *user, uint32_t index, const struct tfc_solution *candidate,
                          const struct tfc_measured *m, const struct tfc_result *r) {
  struct observed *o = user;
  assert_true(m->entry < 4 && o->count < 8);
  o->index[o->count] = index, o->candidate[o->count] = candidate, o->value[o->count++] = r->value;
  return NULL;
}

static void batches(void **state) {
  (void)state;
  struct tfc_device_info devices[2] = {{.label = "measured"}, {.label = "measured"}};
  machine = (struct tfc_measure_info){.devices = devices, .device_count = 2};
  struct tfc_graph graph = {.node_count = 3};
  const struct tfc_subject subject = {.graph = &graph, .cost_count = 2};
  struct tfc_evaluator *e = NULL;
  struct observed seen = {0};
  struct tfc_measure_settings settings = {0};
  tfc_device_id at[3][1] = {{1}, {2}, {5}};
  const struct tfc_solution candidates[] = {{.device = at[0]}, {.device = at[1]}}, reference = {.device = at[2]};
  struct tfc_result results[2] = {0};
  struct tfc_rules rules = {.cutoff = TFC_TIME_MAX};
  assert_ok(own_evaluator_measured(NULL, &subject, NULL, &settings, NULL, NULL, &e));
  assert_string_equal(e->vtable->name, "measured");
  assert_ok(tfc_evaluate(e, candidates, 2, &rules, results));
  // Without rules and settings there is one step to warm up and one block of five.
  assert_int_equal(asked.count, 2);
  assert_true(asked.reference == TFC_NONE);
  assert_true(asked.warmup == 1 && asked.block == 5 && asked.blocks == 1);
  assert_true(asked.stop_ratio <= 0 && isnan(asked.best_us) && asked.deadline_s <= 0);
  for (uint16_t i = 0; i < 2; i++) {
    for (uint16_t n = 0; n < 3; n++) assert_int_equal(placed[i][n], i + 1 + n);
    assert_true(order[i][0] == 1 && order[i][1] == i + 1u);
    assert_int_equal(entered[i].sequence_count, 2);
    assert_false(entered[i].whole || entered[i].plain || entered[i].in_flight);
    assert_int_equal(results[i].value, 1000000 * (i + 1));
    assert_true(fabs(results[i].ratio - 0.5 * i) < 1e-12);
  }
  tfc_evaluator_free(e);
  // Settings apply to values that the rules leave open.
  settings = (struct tfc_measure_settings){
      .warmup = 3, .block = 7, .blocks = 4, .stop_ratio = 1.5, .trace = TFC_TRACE_MODE_NONE, .deadline_s = 9.5};
  assert_ok(own_evaluator_measured(NULL, &subject, NULL, &settings, observe, &seen, &e));
  rules.reference = &reference;
  assert_ok(tfc_evaluate(e, candidates, 2, &rules, results));
  assert_int_equal(asked.count, 3);
  assert_int_equal(asked.reference, 2);
  assert_int_equal(placed[2][0], 5);
  assert_true(asked.warmup == 3 && asked.block == 7 && asked.blocks == 4 && asked.trace == TFC_TRACE_MODE_NONE);
  assert_true(fabs(asked.stop_ratio - 1.5) < 1e-12 && fabs(asked.deadline_s - 9.5) < 1e-12);
  assert_int_equal(seen.count, 3); // the reference ended first and is no candidate
  assert_true(seen.index[0] == TFC_NONE && seen.candidate[0] == &reference && seen.value[0] == 3000000);
  assert_true(seen.index[1] == 1 && seen.candidate[1] == &candidates[1] && seen.value[1] == 2000000);
  assert_true(seen.index[2] == 0 && seen.candidate[2] == &candidates[0] && seen.value[2] == 1000000);
  // Rules take precedence over settings. A cutoff is the step time in microseconds with which an entry is compared.
  rules.warmup = 2, rules.steps = 6, rules.stop_ratio = 1.25, rules.cutoff = 44 * 1000000;
  refused = 1;
  assert_ok(tfc_evaluate(e, candidates, 2, &rules, results));
  refused = TFC_NONE;
  assert_true(asked.warmup == 2 && asked.block == 6 && fabs(asked.stop_ratio - 1.25) < 1e-12);
  assert_true(fabs(asked.best_us - 44) < 1e-9);
  assert_int_equal(results[0].state, TFC_RESULT_OK);
  assert_int_equal(results[1].state, TFC_RESULT_FAILED);
  assert_int_equal(results[1].value, TFC_TIME_MAX);
  assert_string_equal(results[1].message, "a crash");
  at[1][0] = 9;
  assert_fails(tfc_evaluate(e, candidates, 2, &rules, results), TFC_INTERNAL, "nine");
  tfc_evaluator_free(e);
  for (int i = 0; i < 2; i++) tfc_result_deinit(&results[i]);
}

// GPUs' own records time steps of 10 and 30 us; another step, which the host's clock timed with 50 us, is not mixed
// with these. If the host's clock times all steps, or no step has records, all steps count.
static void records_before_the_host(void **state) {
  (void)state;
  const struct tfc_measured_step steps[] = {{.warmup = true, .traced = true, .duration_ns = 70000},
                                            {.traced = true, .duration_ns = 10000},
                                            {.block = 1, .duration_ns = 50000},
                                            {.block = 1, .duration_ns = 50000},
                                            {.block = 2, .traced = true, .duration_ns = 30000}};
  const struct tfc_step_profile profiles[2] = {{0}};
  struct tfc_measured m = {.state = TFC_RESULT_OK,
                           .steps = steps,
                           .step_count = 5,
                           .profiles = profiles,
                           .profile_count = 2,
                           .by_records = true};
  struct tfc_result r = {0};
  assert_ok(own_result_from_measured(&m, 1, TFC_LABEL_MEASURED, false, &r));
  assert_int_equal(r.steps, 2);
  assert_int_equal(r.value, 20000000);
  m.by_records = false;
  assert_ok(own_result_from_measured(&m, 1, TFC_LABEL_MEASURED, false, &r));
  assert_int_equal(r.steps, 4);
  assert_int_equal(r.value, 40000000);
  m.by_records = true, m.profile_count = 0;
  assert_ok(own_result_from_measured(&m, 1, TFC_LABEL_MEASURED, false, &r));
  assert_int_equal(r.steps, 4);
  tfc_result_deinit(&r);
}

// After two warm-up steps come timed steps of 10, 40, 20 and 30 us: their quartiles are 17.5 and 32.5, their median is
// 25.
static void results(void **state) {
  (void)state;
  const struct tfc_measured_step steps[] = {
      {.warmup = true, .duration_ns = 900000}, {.duration_ns = 10000}, {.duration_ns = 40000},
      {.warmup = true, .duration_ns = 1},      {.duration_ns = 20000}, {.duration_ns = 30000}};
  struct tfc_profile_busy busy[2][2] = {{{.busy_ns = 100}, {.busy_ns = 40}}, {{.busy_ns = 301}, {.busy_ns = 60}}};
  const struct tfc_step_profile profiles[] = {{.busy = {busy[0], 2, 2}}, {.busy = {busy[1], 2, 2}}};
  const uint64_t peak[] = {7000, 8000};
  const struct tfc_plan_transfer_row moves[] = {{.bytes = 100}, {.bytes = 23}, {.bytes = 1}};
  const struct tfc_measured m = {.state = TFC_RESULT_OK,
                                 .steps = steps,
                                 .step_count = 6,
                                 .profiles = profiles,
                                 .profile_count = 2,
                                 .peak = peak,
                                 .peak_count = 2,
                                 .transfers = moves,
                                 .transfer_count = 3,
                                 .ratio = 0.75,
                                 .seconds = 1.25};
  struct tfc_result r = {0};
  assert_ok(own_result_from_measured(&m, 3, TFC_LABEL_MEASURED, false, &r));
  assert_int_equal(r.state, TFC_RESULT_OK);
  assert_int_equal(r.steps, 4);
  assert_int_equal(r.value, 25000000);
  assert_int_equal(r.q1, 17500000);
  assert_int_equal(r.q3, 32500000);
  assert_true(fabs(r.ratio - 0.75) < 1e-12 && fabs(r.cost_seconds - 1.25) < 1e-12);
  assert_int_equal(r.transfers, 3);
  assert_int_equal(r.transfer_bytes, 124);
  assert_null(r.message);
  assert_null(r.busy);
  assert_ok(own_result_from_measured(&m, 3, TFC_LABEL_MODELLED, true, &r));
  assert_int_equal(r.label, TFC_LABEL_MODELLED);
  const int64_t ps[] = {200500, 50000,
                        0}; // the means of 100 and 301 ns, and of 40 and 60 ns; the third was not measured
  for (int d = 0; d < 3; d++) {
    assert_int_equal(r.busy[d], ps[d]);
    assert_int_equal(r.memory[d], d < 2 ? peak[d] : 0);
  }
  // The entry was stopped during its warm-up steps, so it has no measurement.
  struct tfc_measured none = m;
  none.step_count = 1, none.profile_count = 0, none.message = "late";
  assert_ok(own_result_from_measured(&none, 3, TFC_LABEL_MEASURED, true, &r));
  assert_int_equal(r.state, TFC_RESULT_CUT);
  assert_int_equal(r.steps, 0);
  assert_true(r.value == TFC_TIME_MAX && r.q1 == TFC_TIME_MAX && r.q3 == TFC_TIME_MAX && r.busy[0] == 0);
  assert_string_equal(r.message, "late");
  none.state = TFC_RESULT_NO_FIT;
  assert_ok(own_result_from_measured(&none, 3, TFC_LABEL_MEASURED, true, &r));
  assert_int_equal(r.state, TFC_RESULT_NO_FIT);
  tfc_result_deinit(&r);
}

// The label of a measurement is the one of its device whose numbers are least reliable.
static void labels(void **state) {
  (void)state;
  struct tfc_device_info devices[3] = {{.label = "measured"}, {.label = "measured"}, {.label = "measured"}};
  const struct tfc_measure_info info = {.devices = devices, .device_count = 3};
  assert_int_equal(own_measure_label(&info), TFC_LABEL_MEASURED);
  for (int l = TFC_LABEL_MEASURED; l <= TFC_LABEL_MODELLED; l++)
    for (int d = 0; d < 3; d++) {
      for (int k = 0; k < 3; k++)
        snprintf(devices[k].label, sizeof devices[k].label, "%s",
                 tfc_label_name(k == d ? (tfc_label)l : TFC_LABEL_MEASURED));
      assert_int_equal(own_measure_label(&info), l);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches), cmocka_unit_test(results),
                                     cmocka_unit_test(records_before_the_host), cmocka_unit_test(labels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
