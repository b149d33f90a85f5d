// Gradients through control flow are compared with TensorFlow's (golden/control_gradients, made by
// control_gradients.py) and with finite differences. They run in a session, because frames and branches need an
// executor.
//
//   control_gradients_test [NAME]   shows the cases whose name contains NAME
#include "tests/common/packed.h"
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "runtime/device/driver.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/control_case.h"
#include "tests/common/golden.h"

enum { MOST = 8 };
static const char *filter = "";

struct suite {
  struct whole forward;
  struct tfc_graph *expected;
  struct tfc_device_set devices;
};

static tfc_status run(struct tfc_session *session, const struct tfc_output *feed, const struct tfc_tensor *value,
                      const struct tfc_output *fetches, uint32_t count, struct tfc_tensor *out) {
  struct tfc_run_spec spec = {.feeds = feed, .feed_count = feed != NULL, .fetches = fetches, .fetch_count = count};
  struct tfc_run_options options = {.deadline_ns = 200 * (int64_t)1000000000};
  return tfc_session_run(session, &spec, value, out, &options);
}

static double weighted(const struct tfc_tensor *y, const struct tfc_tensor *w) {
  double sum = 0;
  for (int64_t i = 0; i < tfc_tensor_elements(y); i++) sum += ((double *)y->data)[i] * ((double *)w->data)[i];
  return sum;
}

// Compares some elements of the gradient of input x with (f(x + h) - f(x - h)) / 2h, where f is the sum of y times the
// fixed weights w.
static tfc_status differences(struct tfc_session *session, struct tfc_output x, struct tfc_output y,
                              struct tfc_output w, const struct tfc_tensor *gradient) {
  tfc_status s = NULL;
  struct tfc_tensor value = {0}, weight = {0}, sides[2] = {{0}};
  const double h = 1e-5;
  TFC_TRY(s, run(session, NULL, NULL, &x, 1, &value));
  TFC_TRY(s, run(session, NULL, NULL, &w, 1, &weight));
  int64_t n = tfc_tensor_elements(&value), step = n > 4 ? n / 4 : 1;
  for (int64_t i = 0; i < n; i += step) {
    double *at = (double *)value.data + i, saved = *at;
    for (int k = 0; k < 2; k++) {
      *at = saved + (k ? h : -h);
      TFC_TRY(s, run(session, &x, &value, &y, 1, &sides[k]));
    }
    *at = saved;
    double slope = (weighted(&sides[1], &weight) - weighted(&sides[0], &weight)) / (2 * h);
    double built = ((double *)gradient->data)[i];
    for (int k = 0; k < 2; k++) tfc_tensor_release(&sides[k]);
    if (!(fabs(slope - built) <= 1e-7 + 1e-6 * fabs(slope)))
      TFC_FAIL(s, TFC_INTERNAL, "element %d: %.12g, by differences %.12g", (int)i, built, slope);
  }
out:
  tfc_tensor_release(&value);
  tfc_tensor_release(&weight);
  for (int k = 0; k < 2; k++) tfc_tensor_release(&sides[k]);
  return s;
}

static tfc_status run_case(const struct suite *suite, const json_t *item) {
  const json_t *names = json_object_get(item, "xs"), *wanted = json_object_get(item, "grads");
  uint32_t count = (uint32_t)json_array_size(names), fetched = 0;
  struct tfc_output xs[MOST], y, w, grads[MOST], fetches[MOST];
  struct tfc_tensor got[MOST] = {{0}};
  struct tfc_graph *forward = NULL, *more = NULL, *further = NULL;
  struct tfc_session *session = NULL;
  tfc_status s = NULL;
  if (count > MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "too many inputs");
  TFC_TRY(s, control_case_load(&suite->forward, item, &forward, &y, &w, xs));
  TFC_TRY(s, tfc_gradients(forward, &y, 1, xs, count, &w, &more, grads));
  bool second = json_integer_value(json_object_get(item, "order")) == 2;
  if (second) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++)
      if (tfc_output_valid(grads[i])) fetches[first++] = grads[i];
    TFC_TRY(s, tfc_gradients(more, fetches, first, xs, count, NULL, &further, grads));
    tfc_graph_release(more);
    more = further;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!json_is_string(json_array_get(wanted, i)) != !tfc_output_valid(grads[i]))
      TFC_FAIL(s, TFC_INTERNAL, "input %u has %s gradient, in TensorFlow it is not so", i,
               tfc_output_valid(grads[i]) ? "a" : "no");
    if (tfc_output_valid(grads[i])) fetches[fetched++] = grads[i];
  }
  TFC_TRY(s, tfc_session_create(more, &(struct tfc_session_options){.devices = &suite->devices}, &session));
  uint32_t init = tfc_graph_find(more, tfc_str_from(control_case_text(item, "init")));
  struct tfc_run_spec prepare = {.targets = &init, .target_count = 1};
  TFC_TRY(s, tfc_session_run(session, &prepare, NULL, NULL, NULL));
  TFC_TRY(s, run(session, NULL, NULL, fetches, fetched, got));
  for (uint32_t i = 0, k = 0; i < count; i++) {
    char why[300];
    if (!tfc_output_valid(grads[i])) continue;
    uint32_t id = tfc_graph_find(suite->expected, tfc_str_from(json_string_value(json_array_get(wanted, i))));
    if (id == TFC_NONE) TFC_FAIL(s, TFC_NOT_FOUND, "no expected value of input %u", i);
    const struct tfc_attr *value = tfc_node_attr(suite->expected, &suite->expected->nodes[id], "value");
    if (!golden_compare(&got[k], value->tensor, "element:1e-11:1e-5", why, sizeof why))
      TFC_FAIL(s, TFC_INTERNAL, "the gradient of input %u: %s", i, why);
    bool is_input = tfc_str_is(more->nodes[xs[i].node].op, "PlaceholderWithDefault");
    // A function may name any other function as its gradient, so its differences prove nothing.
    if (is_input && !second && !strstr(control_case_text(item, "name"), "function_with_gradient"))
      TFC_TRY(s, tfc_status_annotate(differences(session, xs[i], y, w, &got[k]), "input %u", i));
    k++;
  }
out:
  for (uint32_t i = 0; i < MOST; i++) tfc_tensor_release(&got[i]);
  tfc_session_free(session);
  tfc_graph_release(more);
  tfc_graph_release(forward);
  return s;
}

static void equal_tensorflows(void **state) {
  (void)state;
  struct suite suite = {0};
  int passed = 0, failed = 0;
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &suite.devices));
  assert_ok(whole_load(TFC_SOURCE_DIR "/tests/pass/golden/control_gradients/graph.pb.gz", &suite.forward));
  assert_ok(packed_graph_load(TFC_SOURCE_DIR "/tests/pass/golden/control_gradients/expected.pb.gz", &suite.expected));
  json_t *document = json_load_file(TFC_SOURCE_DIR "/tests/pass/golden/control_gradients/cases.json", 0, NULL);
  assert_non_null(document);
  const json_t *cases = json_object_get(document, "cases");
  for (size_t i = 0; i < json_array_size(cases); i++) {
    const json_t *item = json_array_get(cases, i);
    if (!strstr(control_case_text(item, "name"), filter)) continue;
    tfc_status s = run_case(&suite, item);
    if (s)
      failed++, print_message("FAILED %s: %s\n", control_case_text(item, "name"), tfc_status_message(s));
    else
      passed++;
    tfc_status_free(s);
  }
  print_message("%d passed, %d failed\n", passed, failed);
  json_decref(document);
  whole_deinit(&suite.forward);
  tfc_graph_release(suite.expected);
  tfc_devices_close(&suite.devices);
  if (!*filter && passed < 185) fail_msg("%d cases passed, there were 185", passed);
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) filter = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_tensorflows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
