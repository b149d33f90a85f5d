// Tests loops and branches that are spread over devices: under random placements over CPU and emulated devices, the
// gradients of the cases of tests/pass/control_gradients.py (loops in loops, branches in loops, TensorArrays, lists,
// stacks, lowered functions) are those that one device computes.
//
//   loops_thread_test [NAME]   shows the cases whose name contains NAME
#include "tests/common/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/driver.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/control_case.h"
#include "tests/common/golden.h"

#ifdef TFC_SANITIZED
enum { STRIDE = 24, PLACEMENTS = 1 };
#else
enum { STRIDE = 6, PLACEMENTS = 2 };
#endif
enum { MOST = 8 };
static const char *filter = "";

// Places operations on a variable on its device, 0, and all others on random devices.
static void scatter(const struct tfc_graph *g, uint32_t devices, struct tfc_random *random, uint16_t *placement) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    bool stays = n->def && n->def->flags & TFC_OP_VARIABLE;
    for (uint32_t k = 0; k < n->input_count && !stays; k++) {
      tfc_dtype t = tfc_output_dtype(g, tfc_node_inputs(g, n)[k]);
      stays = tfc_dtype_is_ref(t) || t == TFC_RESOURCE;
    }
    placement[i] = stays ? 0 : (uint16_t)tfc_random_below(random, devices);
  }
}

static tfc_status run(const struct tfc_graph *g, const struct tfc_device_set *set, const uint16_t *placement,
                      const char *init, const struct tfc_output *fetches, uint32_t count, struct tfc_tensor *out) {
  tfc_status s = NULL;
  struct tfc_session *session = NULL;
  uint32_t target = tfc_graph_find(g, tfc_str_from(init));
  struct tfc_run_spec prepare = {.targets = &target, .target_count = 1, .placement = placement};
  struct tfc_run_spec step = {.fetches = fetches, .fetch_count = count, .placement = placement};
  struct tfc_run_options options = {.deadline_ns = 200 * (int64_t)1000000000};
  TFC_TRY(s, tfc_session_create(g, &(struct tfc_session_options){.devices = set}, &session));
  TFC_TRY(s, tfc_session_run(session, &prepare, NULL, NULL, NULL));
  s = tfc_session_run(session, &step, NULL, out, &options);
out:
  tfc_session_free(session);
  return s;
}

static tfc_status run_case(const struct whole *whole, const json_t *item, const struct tfc_device_set *one,
                           const struct tfc_device_set *many, const char *rule, struct tfc_random *random) {
  const json_t *names = json_object_get(item, "xs");
  uint32_t count = (uint32_t)json_array_size(names), fetched = 1;
  struct tfc_output xs[MOST], y, w, grads[MOST], fetches[MOST + 1];
  struct tfc_tensor expected[MOST + 1] = {{0}}, got[MOST + 1] = {{0}};
  struct tfc_graph *forward = NULL, *more = NULL;
  uint16_t *placement = NULL;
  tfc_status s = NULL;
  if (count > MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "too many inputs");
  TFC_TRY(s, control_case_load(whole, item, &forward, &y, &w, xs));
  TFC_TRY(s, tfc_gradients(forward, &y, 1, xs, count, &w, &more, grads));
  fetches[0] = y;
  for (uint32_t i = 0; i < count; i++)
    if (tfc_output_valid(grads[i])) fetches[fetched++] = grads[i];
  if (!(placement = calloc(more->node_count + 1u, sizeof *placement))) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, run(more, one, NULL, control_case_text(item, "init"), fetches, fetched, expected));
  for (int k = 0; k < PLACEMENTS; k++) {
    scatter(more, many->count, random, placement);
    TFC_TRY(s, run(more, many, placement, control_case_text(item, "init"), fetches, fetched, got));
    for (uint32_t i = 0; i < fetched; i++) {
      char why[300];
      if (!golden_compare(&got[i], &expected[i], rule, why, sizeof why))
        TFC_FAIL(s, TFC_INTERNAL, "fetch %u: %s", i, why);
      tfc_tensor_release(&got[i]);
    }
  }
out:
  for (uint32_t i = 0; i <= MOST; i++) tfc_tensor_release(&got[i]), tfc_tensor_release(&expected[i]);
  free(placement);
  tfc_graph_release(more);
  tfc_graph_release(forward);
  return s;
}

static void over(const char *devices, const char *rule, uint64_t seed) {
  struct whole forward;
  struct tfc_device_set one = {0}, many = {0};
  struct tfc_random random;
  int passed = 0, failed = 0;
  tfc_random_init(&random, seed);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &one));
  assert_ok(tfc_devices_open(devices, NULL, 0, &many));
  assert_ok(whole_load(TFC_SOURCE_DIR "/tests/pass/golden/control_gradients/graph.pb.gz", &forward));
  json_t *document = json_load_file(TFC_SOURCE_DIR "/tests/pass/golden/control_gradients/cases.json", 0, NULL);
  assert_non_null(document);
  const json_t *cases = json_object_get(document, "cases");
  for (size_t i = seed % STRIDE; i < json_array_size(cases); i += *filter ? 1 : STRIDE) {
    const json_t *item = json_array_get(cases, i);
    // In these cases a call to a function that an attribute names remains in the graph, so they are skipped.
    if (!strstr(control_case_text(item, "name"), filter) ||
        strstr(control_case_text(item, "name"), "function_with_gradient"))
      continue;
    tfc_status s = run_case(&forward, item, &one, &many, rule, &random);
    if (s)
      failed++, print_message("FAILED %s on %s: %s\n", control_case_text(item, "name"), devices, tfc_status_message(s));
    else
      passed++;
    tfc_status_free(s);
  }
  print_message("%s: %d passed, %d failed\n", devices, passed, failed);
  json_decref(document);
  whole_deinit(&forward);
  tfc_devices_close(&many);
  tfc_devices_close(&one);
  assert_true(passed > 0);
  assert_int_equal(failed, 0);
}

static void over_cpus(void **state) {
  (void)state;
  over("cpu:0-1", "exact", 1);
  over("cpu:0-3", "exact", 2);
}
static void over_emulated(void **state) {
  (void)state;
  over("emu:0-3", "relative:1e-12", 3);
}
static void over_both(void **state) {
  (void)state;
  over("cpu:0-1,emu:0-1", "relative:1e-12", 4);
}

int main(int argc, char **argv) {
  if (argc > 1) filter = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(over_cpus), cmocka_unit_test(over_emulated),
                                     cmocka_unit_test(over_both)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
