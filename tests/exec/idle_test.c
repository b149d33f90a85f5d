// Tests that a weight is packed at a moment when its device would otherwise wait.
#include "tests/common/test.h"

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define T ATTR("T", "type: DT_FLOAT")
#define SQUARE ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { dim { size: 256 } dim { size: 256 } }")

// Device 0 computes x, a = x v, b = a v; device 1 computes c = tanh b, d = c w, e = d w.
static const char text[] = "node { name: \"x\" op: \"Placeholder\"" SQUARE " }\n"
                           "node { name: \"v\" op: \"VariableV2\"" SQUARE " }\n"
                           "node { name: \"w\" op: \"VariableV2\"" SQUARE " }\n"
                           "node { name: \"a\" op: \"MatMul\" input: \"x\" input: \"v\"" T " }\n"
                           "node { name: \"b\" op: \"MatMul\" input: \"a\" input: \"v\"" T " }\n"
                           "node { name: \"c\" op: \"Tanh\" input: \"b\"" T " }\n"
                           "node { name: \"d\" op: \"MatMul\" input: \"c\" input: \"w\"" T " }\n"
                           "node { name: \"e\" op: \"MatMul\" input: \"d\" input: \"w\"" T " }\n";

static void packed_while_waiting(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "idle", NULL, &g));
  assert_ok(tfc_devices_open("emu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  uint32_t a = tfc_graph_find(g, TFC_STR("a")), c = tfc_graph_find(g, TFC_STR("c")),
           d = tfc_graph_find(g, TFC_STR("d"));
  uint32_t sequence[] = {a, tfc_graph_find(g, TFC_STR("b")), c, d, tfc_graph_find(g, TFC_STR("e"))};
  uint16_t placement[8] = {0};
  placement[c] = placement[d] = placement[sequence[4]] = placement[tfc_graph_find(g, TFC_STR("w"))] = 1;
  struct tfc_output x = {tfc_graph_find(g, TFC_STR("x")), 0}, e = {sequence[4], 0};
  struct tfc_run_spec spec = {.feeds = &x,
                              .feed_count = 1,
                              .fetches = &e,
                              .fetch_count = 1,
                              .placement = placement,
                              .sequence = sequence,
                              .sequence_count = 5};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  uint32_t order[8] = {0}, count = 0;
  for (uint32_t i = 0; i < info->op_count; i++)
    if (info->ops[i].device == 1) order[count++] = info->ops[i].node;
  assert_int_equal(count, 4);
  assert_int_equal(order[0], d); // the packing is counted for the first operation that reads the weight
  assert_int_equal(order[1], c);
  assert_int_equal(order[2], d);
  // Each result and its reader is an edge, with its bytes.
  for (int i = 0; i + 1 < 5; i++) {
    uint32_t found = 0;
    for (uint32_t k = 0; k < info->edge_count; k++)
      found += info->edges[k].from == sequence[i] && info->edges[k].to == sequence[i + 1] &&
               info->edges[k].bytes == 256 * 256 * 4;
    assert_int_equal(found, 1);
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(packed_while_waiting)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
