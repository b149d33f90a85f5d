// Compares gradients of single operations with TensorFlow's (golden/gradients, made by gradients.py). tfc_gradients
// builds them, and the reference kernels evaluate them.
#include "tests/common/packed.h"
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/eval.h"
#include "tests/common/golden.h"
#include "tests/common/part.h"

enum { MOST = 24 };

static tfc_status outputs_of(const struct tfc_graph *g, const json_t *names, struct tfc_output *out, uint32_t *count) {
  *count = (uint32_t)json_array_size(names);
  if (*count > MOST) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many names");
  for (uint32_t i = 0; i < *count; i++)
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(g, tfc_str_from(json_string_value(json_array_get(names, i))), &out[i]));
  return NULL;
}

static tfc_status part_of(const struct whole *whole, const json_t *item, struct tfc_graph **out) {
  static const char *const keys[] = {"ys", "weights", "xs"};
  struct tfc_output all[3 * MOST];
  uint32_t total = 0, count;
  for (int i = 0; i < 3; i++, total += count)
    TFC_RETURN_IF_ERROR(outputs_of(whole->graph, json_object_get(item, keys[i]), all + total, &count));
  return whole_part(whole, all, total, NULL, 0, out);
}

static tfc_status run_case(const struct whole *whole, const struct tfc_graph *expected, const json_t *item) {
  struct tfc_output ys[MOST], weights[MOST], xs[MOST], grads[MOST];
  uint32_t y_count, weight_count, x_count;
  struct tfc_graph *forward = NULL, *more = NULL;
  struct eval e = {0}, truth = {0};
  tfc_status s = NULL;
  const json_t *wanted = json_object_get(item, "grads");
  TFC_TRY(s, part_of(whole, item, &forward));
  TFC_TRY(s, outputs_of(forward, json_object_get(item, "ys"), ys, &y_count));
  TFC_TRY(s, outputs_of(forward, json_object_get(item, "weights"), weights, &weight_count));
  TFC_TRY(s, outputs_of(forward, json_object_get(item, "xs"), xs, &x_count));
  TFC_TRY(s, tfc_gradients(forward, ys, y_count, xs, x_count, weights, &more, grads));
  TFC_TRY(s, eval_create(more, &e));
  TFC_TRY(s, eval_create(expected, &truth));
  for (uint32_t i = 0; i < x_count; i++) {
    const char *name = json_string_value(json_array_get(wanted, i));
    if (!name) {
      if (tfc_output_valid(grads[i]))
        TFC_FAIL(s, TFC_INTERNAL, "input %u has a gradient, in TensorFlow it has none", i);
      continue;
    }
    if (!tfc_output_valid(grads[i])) TFC_FAIL(s, TFC_INTERNAL, "input %u has no gradient", i);
    const struct tfc_tensor *mine, *theirs;
    char why[300];
    uint32_t id = tfc_graph_find(expected, tfc_str_from(name));
    if (id == TFC_NONE) TFC_FAIL(s, TFC_NOT_FOUND, "no expected value %s", name);
    TFC_TRY(s, eval_output(&e, grads[i], &mine));
    TFC_TRY(s, eval_output(&truth, (struct tfc_output){id, 0}, &theirs));
    bool single = mine->dtype == TFC_FLOAT || mine->dtype == TFC_COMPLEX64;
    // The tolerance of an element is relative to its own size, but at least a small part of the largest element. The
    // gradient of CTCLoss is a difference of probabilities, so its rounding error is relative to 1.
    const char *rule = !single                                                               ? "element:1e-11:1e-5"
                       : strstr(json_string_value(json_object_get(item, "name")), "CTCLoss") ? "relative:2e-5"
                                                                                             : "element:2e-5:1e-4";
    if (!golden_compare(mine, theirs, rule, why, sizeof why))
      TFC_FAIL(s, TFC_INTERNAL, "the gradient of input %u: %s", i, why);
  }
out:
  eval_deinit(&e);
  eval_deinit(&truth);
  tfc_graph_release(more);
  tfc_graph_release(forward);
  return s;
}

static const char *filter = "";

static void test_gradients(void **state) {
  (void)state;
  struct whole forward;
  struct tfc_graph *expected = NULL;
  int passed = 0, failed = 0;
  assert_ok(whole_load(TFC_SOURCE_DIR "/tests/ops/golden/gradients/graph.pb.gz", &forward));
  assert_ok(packed_graph_load(TFC_SOURCE_DIR "/tests/ops/golden/gradients/expected.pb.gz", &expected));
  json_t *document = json_load_file(TFC_SOURCE_DIR "/tests/ops/golden/gradients/cases.json", 0, NULL);
  assert_non_null(document);
  const json_t *cases = json_object_get(document, "cases");
  for (size_t i = 0; i < json_array_size(cases); i++) {
    const json_t *item = json_array_get(cases, i);
    const char *name = json_string_value(json_object_get(item, "name"));
    if (!strstr(name, filter)) continue;
    tfc_status s = run_case(&forward, expected, item);
    if (s)
      failed++, print_message("FAILED %s: %s\n", name, tfc_status_message(s));
    else
      passed++;
    tfc_status_free(s);
  }
  print_message("%d passed, %d failed\n", passed, failed);
  json_decref(document);
  whole_deinit(&forward);
  tfc_graph_release(expected);
  if (!*filter && passed < 1132) fail_msg("%d cases passed, there were 1132", passed);
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) filter = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
