// Compares the committed cases of the families with state, control flow and blocking with TensorFlow's values. Each
// case has its own session on one CPU device, and its runs have the order that they had in TensorFlow.
//
//   session_golden_test FAMILY [CASE [lowered]]           shows one family
//   session_golden_test device=gpu:0 FAMILY [CASE]        on another device; exit code 4: it is not there
#include "tests/common/packed.h"
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/driver.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/golden.h"
#include "tests/common/source.h"

enum { NO_DEVICE = 4 };
static const char *device; // NULL: a CPU device
static int ran;            // how many cases of the last family ran

// The kernels of other devices round differently: tolerances are relative to a tensor's largest magnitude.
static const char *rule_of_devices(tfc_dtype t) {
  switch (t) {
  case TFC_FLOAT:
  case TFC_COMPLEX64: return "relative:1e-4";
  case TFC_DOUBLE:
  case TFC_COMPLEX128: return "relative:1e-9";
  case TFC_HALF: return "relative:4e-3";
  case TFC_BFLOAT16: return "relative:3e-2";
  default: return "exact";
  }
}
// TensorFlow's CPU kernel of LRN sums over all channels with weights of 0 and 1, so one infinity makes a row NaN. Only
// the reference kernel does the same.
static bool is_the_hosts(const char *name) {
  return strstr(name, "LRN.") && (strstr(name, ".inf_") || strstr(name, ".power"));
}

struct family {
  struct tfc_graph *graph, *expected;
  struct tfc_shapes shapes; // shapes of the graph; empty if its functions were lowered
  struct tfc_device_set devices;
};

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

enum { MOST = 160 };
#ifdef TFC_SANITIZED
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

// True if every dimension in `want` is known in `have`, and equal. `want` is null, or a list of dimensions, null if
// unknown.
static bool shape_agrees(const struct tfc_shape *have, const json_t *want) {
  bool same = !json_is_array(want) || have->rank == (int)json_array_size(want);
  for (size_t d = 0; same && d < json_array_size(want); d++)
    same = json_is_null(json_array_get(want, d)) || have->dims[d] == json_integer_value(json_array_get(want, d));
  return same;
}

static void check_shape(const struct family *f, struct tfc_output o, const json_t *told, size_t number, char *why,
                        size_t room) {
  const struct tfc_node *n = &f->graph->nodes[o.node];
  const struct tfc_shape *have = &f->shapes.shapes[n->output_begin + (uint32_t)o.index];
  if (shape_agrees(have, told)) return;
  char *want = json_dumps(told, JSON_ENCODE_ANY | JSON_COMPACT);
  snprintf(why, room, "run %zu, %.*s:%d: inferred %s, TensorFlow %s", number, TFC_STR_ARG(n->name), o.index,
           tfc_shape_show(have, (char[TFC_SHAPE_TEXT]){0}), want);
  free(want);
}

// Does one run of a case: its targets, then its fetches, which are compared with what TensorFlow gave.
static tfc_status run_once(const struct family *f, struct tfc_session *session, const char *name, size_t number,
                           const json_t *run, const char *rule, char *why, size_t room) {
  const json_t *fetches = json_object_get(run, "fetches"), *targets = json_object_get(run, "targets");
  struct tfc_output outputs[MOST];
  uint32_t nodes[MOST];
  struct tfc_tensor got[MOST] = {{0}};
  struct tfc_run_spec spec = {.fetches = outputs, .targets = nodes};
  tfc_status s = NULL;
  if (json_array_size(fetches) > MOST || json_array_size(targets) > MOST)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a case with too many fetches");
  for (size_t k = 0; k < json_array_size(fetches); k++)
    TFC_TRY(s, tfc_graph_parse_output(f->graph, tfc_str_from(json_string_value(json_array_get(fetches, k))),
                                      &outputs[spec.fetch_count++]));
  for (size_t k = 0; k < json_array_size(targets); k++) {
    const char *target = json_string_value(json_array_get(targets, k));
    nodes[spec.target_count] = tfc_graph_find(f->graph, tfc_str_from(target));
    if (nodes[spec.target_count++] == TFC_NONE) TFC_FAIL(s, TFC_NOT_FOUND, "no target %s", target);
  }
  struct tfc_run_options options = {.deadline_ns = 200 * (int64_t)1000000000};
  TFC_TRY(s, tfc_session_run(session, &spec, NULL, got, &options));
  for (uint32_t k = 0; k < spec.fetch_count && !*why; k++) {
    char node[256], difference[300];
    snprintf(node, sizeof node, "%s/r%zu/f%u", name, number, k);
    uint32_t id = tfc_graph_find(f->expected, tfc_str_from(node));
    const struct tfc_attr *want = id == TFC_NONE ? NULL : tfc_node_attr(f->expected, &f->expected->nodes[id], "value");
    if (!want) TFC_FAIL(s, TFC_NOT_FOUND, "no expected value %s", node);
    const json_t *told = json_array_get(json_object_get(run, "shapes"), k);
    // (If TensorFlow's inferred shape contradicts its own result, it is not compared.)
    if (f->shapes.shapes && shape_agrees(&want->tensor->shape, told))
      check_shape(f, outputs[k], told, number, why, room);
    if (golden_compare(&got[k], want->tensor, rule, difference, sizeof difference)) continue;
    if (!device || !golden_compare(&got[k], want->tensor, rule_of_devices(got[k].dtype), difference, sizeof difference))
      snprintf(why, room, "run %zu, %s: %s", number, json_string_value(json_array_get(fetches, k)), difference);
  }
out:
  for (uint32_t k = 0; k < MOST; k++) tfc_tensor_release(&got[k]);
  return s;
}

// Returns false and a reason if the case fails. *unsupported: the reason is an op, or a variant of one, that tfc does
// not run.
static bool run_case(const struct family *f, const json_t *item, bool *unsupported, char *why, size_t room) {
  const json_t *runs = json_object_get(item, "runs");
  bool wants_error = json_is_string(json_object_get(item, "error")), failed = false;
  struct tfc_session *session = NULL;
  *why = 0;
  *unsupported = false;
  // On another device, rewrites would compute constants on the host instead, so they are off.
  struct tfc_session_options options = {.devices = &f->devices, .no_rewrites = device != NULL};
  tfc_status s = tfc_session_create(f->graph, &options, &session);
  for (size_t r = 0; !s && !*why && r < json_array_size(runs); r++) {
    const json_t *run = json_array_get(runs, r);
    const char *rule = *text_of(run, "tolerance") ? text_of(run, "tolerance") : text_of(item, "tolerance");
    s = run_once(f, session, text_of(item, "name"), r, run, rule, why, room);
    if (s && wants_error) { // the session must stay usable: the other runs go on
      failed = true;
      tfc_status_free(s);
      s = NULL;
    }
  }
  *unsupported = tfc_status_code(s) == TFC_UNIMPLEMENTED;
  if (s) snprintf(why, room, "%s: %s", tfc_code_name(tfc_status_code(s)), tfc_status_message(s));
  if (!s && !*why && wants_error && !failed) snprintf(why, room, "no error where one is expected");
  tfc_status_free(s);
  tfc_session_free(session);
  return !*why;
}

static int run_family(const char *family, const char *filter, bool lowered, int *out_unsupported) {
  struct family f = {0};
  char path[1024], why[1024];
  int passed = 0, failures = 0, unsupported = 0;
  tfc_status refused = tfc_devices_open(device ? device : "cpu:0", NULL, 0, &f.devices);
  if (refused && device) {
    print_message("no device: %s\n", tfc_status_message(refused));
    exit(NO_DEVICE);
  }
  assert_ok(refused);
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/graph.pb.gz", test_source_dir(), family);
  assert_ok(packed_graph_load(path, &f.graph));
  if (lowered) {
    struct tfc_graph *flat = NULL;
    assert_ok(tfc_lower_functions(f.graph, &flat, NULL));
    tfc_graph_release(f.graph);
    f.graph = flat;
  }
  if (!lowered) assert_ok(tfc_infer_fed_shapes(f.graph, NULL, 0, &f.shapes));
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/expected.pb.gz", test_source_dir(), family);
  assert_ok(packed_graph_load(path, &f.expected));
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/cases.json", test_source_dir(), family);
  json_t *document = json_load_file(path, 0, NULL);
  assert_non_null(document);
  const json_t *cases = json_object_get(document, "cases");
  for (size_t i = 0; i < json_array_size(cases); i += EVERY) {
    const json_t *item = json_array_get(cases, i);
    if (!strstr(text_of(item, "name"), filter) || (device && is_the_hosts(text_of(item, "name")))) continue;
    bool cannot;
    if (run_case(&f, item, &cannot, why, sizeof why)) {
      passed++;
      continue;
    }
    cannot ? unsupported++ : failures++;
    print_message("%s %s: %s\n", cannot ? "NOT SUPPORTED" : "FAILED", text_of(item, "name"), why);
  }
  print_message("%s: %d passed, %d failed, %d not supported\n", family, passed, failures, unsupported);
  ran = passed + failures + unsupported;
  *out_unsupported = unsupported;
  json_decref(document);
  tfc_shapes_deinit(&f.shapes);
  tfc_graph_release(f.graph);
  tfc_graph_release(f.expected);
  tfc_devices_close(&f.devices);
  return failures;
}

// At least `least` cases must pass, their number when this was written; at most `limit` may be unsupported.
#define FAMILY(name, least, limit)                                                                                     \
  static void family_##name(void **unused) {                                                                           \
    int unsupported;                                                                                                   \
    (void)unused;                                                                                                      \
    assert_int_equal(run_family(#name, "", false, &unsupported), 0);                                                   \
    assert_true(unsupported <= limit);                                                                                 \
    if (ran < ((least) + EVERY - 1) / EVERY) fail_msg("%s: %d cases ran, there were %d", #name, ran, least);           \
  }
FAMILY(state, 261, 0)
FAMILY(optimizers, 236, 0)
FAMILY(random, 207, 0)
FAMILY(nn, 198, 0)
FAMILY(data, 58, 0)
FAMILY(coordination, 71, 0)
FAMILY(edges, 153, 0)
FAMILY(sparse, 403, 0)
FAMILY(features, 136, 0)
FAMILY(files, 106, 0)
FAMILY(serialized, 155, 0)
FAMILY(pooling, 88, 0)
FAMILY(quantized, 62, 0)
FAMILY(spectral, 28, 0)
FAMILY(legacy, 83, 0)
FAMILY(uncommon, 119, 0)
FAMILY(staging, 18, 0)
FAMILY(datasets, 108, 0)
FAMILY(control_flow, 86, 3) // SymbolicGradient has no kernel: it must be lowered (see below), as tfc's programs do

// Graphs give the same values when their functions are lowered to branches and loops.
static void lowered_functions(void **unused) {
  static const char *const families[] = {"control_flow", "data", "state", "random", "datasets"};
  (void)unused;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    int unsupported;
    assert_int_equal(run_family(families[i], "", true, &unsupported), 0);
    assert_int_equal(unsupported, 0);
  }
}

int main(int argc, char **argv) {
  int unsupported;
  if (argc > 2 && !strncmp(argv[1], "device=", 7)) {
    device = argv[1] + 7;
    return run_family(argv[2], argc > 3 ? argv[3] : "", false, &unsupported) != 0;
  }
  if (argc > 1) return run_family(argv[1], argc > 2 ? argv[2] : "", argc > 3, &unsupported) != 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(family_state),        cmocka_unit_test(family_optimizers), cmocka_unit_test(family_random),
      cmocka_unit_test(family_nn),           cmocka_unit_test(family_data),       cmocka_unit_test(family_coordination),
      cmocka_unit_test(family_edges),        cmocka_unit_test(family_sparse),     cmocka_unit_test(family_features),
      cmocka_unit_test(family_control_flow), cmocka_unit_test(family_files),      cmocka_unit_test(family_serialized),
      cmocka_unit_test(family_pooling),      cmocka_unit_test(family_quantized),  cmocka_unit_test(family_spectral),
      cmocka_unit_test(family_legacy),       cmocka_unit_test(family_uncommon),   cmocka_unit_test(family_staging),
      cmocka_unit_test(family_datasets),     cmocka_unit_test(lowered_functions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
