// --map of tfc-export: which names the devices of a placement get, which of them still need one, and what is said of
// placements of another graph.
#include "tests/common/test.h"

#include <string.h>

#include "cli/devmap.h"
#include "runtime/graph/import.h"

// Nodes a and b are on gpu:0, c on gpu:1, and d on the host. Nothing is on acc.
static struct tfc_placement_device devices[4];
static struct tfc_placement_node nodes[4];
static struct tfc_placement *placement;
static int set_up(void **state) {
  (void)state;
  static const char *const names[] = {"gpu:0", "gpu:1", "host", "acc"}, *const own[] = {"a", "b", "c", "d"};
  static const int on[] = {0, 0, 1, 2};
  assert_ok(tfc_placement_create(&placement));
  for (int i = 0; i < 4; i++) {
    devices[i] = (struct tfc_placement_device){.name = tfc_str_from(names[i])};
    nodes[i] = (struct tfc_placement_node){.name = tfc_str_from(own[i]), .device = tfc_str_from(names[on[i]])};
  }
  placement->devices = devices, placement->device_count = 4, placement->nodes = nodes, placement->node_count = 4;
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_placement_free(placement);
  return 0;
}
static void are(const char *first, const char *second, const char *third, const char *fourth) {
  const char *const wanted[] = {first, second, third, fourth};
  for (int i = 0; i < 4; i++)
    if (!tfc_str_is(devices[i].tensorflow, wanted[i]))
      fail_msg("%.*s: %.*s, not %s", TFC_STR_ARG(devices[i].name), TFC_STR_ARG(devices[i].tensorflow), wanted[i]);
}

static void test_names(void **state) {
  (void)state;
  assert_ok(cli_devmap_apply(placement, NULL));
  are("/device:GPU:0", "/device:GPU:1", "/device:HOST:0", "/device:ACC:0");
  devices[1].tensorflow = TFC_STR("/device:GPU:9"); // what the file says stays
  devices[0].tensorflow = (struct tfc_str){0};
  assert_ok(cli_devmap_apply(placement, ""));
  are("/device:GPU:0", "/device:GPU:9", "/device:HOST:0", "/device:ACC:0");
  assert_ok(cli_devmap_apply(placement, "gpu:0=/job:worker/task:1/device:GPU:0,acc=/device:CPU:3,host=/device:CPU:0"));
  are("/job:worker/task:1/device:GPU:0", "/device:GPU:9", "/device:CPU:0", "/device:CPU:3");
  assert_ok(cli_devmap_apply(placement, "gpu:1=/device:GPU:2,"));
  are("/job:worker/task:1/device:GPU:0", "/device:GPU:2", "/device:CPU:0", "/device:CPU:3");
}

static void test_wrong_names(void **state) {
  (void)state;
  static const char *const wrong[] = {"gpu:0", "=/device:GPU:0", "gpu:0=", "gpu:1=/device:GPU:0,gpu:0",
                                      "gpu:1=/device:GPU:0,,"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_fails(cli_devmap_apply(placement, wrong[i]), TFC_INVALID_ARGUMENT, "' is not NAME=DEVICE");
  assert_fails(cli_devmap_apply(placement, "gpu:7=/device:GPU:0"), TFC_UNAVAILABLE,
               "--map: the placement has no device 'gpu:7'; its devices begin with 'gpu:0'");
  assert_fails(cli_devmap_apply(placement, "gpu:0=/job:"), TFC_INVALID_ARGUMENT, "--map gpu:0");
  placement->device_count = 0;
  assert_fails(cli_devmap_apply(placement, "gpu:0=/device:GPU:0"), TFC_UNAVAILABLE, "begin with 'none'");
}

static void test_devices_without_names(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"", "gpu:0"},           {"gpu:0=x", "gpu:1"},        {"gpu:1=x", "gpu:0"},
                                         {"gpu:0=x,gpu:1=y", ""}, {"gpu:1=x,gpu:0=y", ""},     {"gpu:0,gpu:1", ""},
                                         {"gpu:01=x", "gpu:0"},   {"acc=x,gpu:0=y,", "gpu:1"}, {"x=gpu:0", "gpu:0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const tfc_str device = cli_devmap_unnamed(placement, cases[i][0]);
    if (!tfc_str_is(device, cases[i][1])) fail_msg("'%s': '%.*s'", cases[i][0], TFC_STR_ARG(device));
  }
}

// Names that TensorFlow cannot read matter only where something is on the device.
static void test_checks(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) devices[i].tensorflow = TFC_STR("/device:CPU:0");
  assert_ok(cli_devmap_check(placement));
  devices[3].tensorflow = TFC_STR("/job:");
  assert_ok(cli_devmap_check(placement));
  devices[2].tensorflow = TFC_STR("/job:");
  assert_fails(cli_devmap_check(placement), TFC_INVALID_ARGUMENT,
               "TensorFlow takes no device of the name 'host' (give it one with --map)");
}

#define NODE(name) "node { name: '" name "' op: 'NoOp' }\n"
static void test_graphs(void **state) {
  (void)state;
  static const struct {
    const char *graph, *says; // NULL: it is the placement's
  } cases[] = {
      {NODE("a") NODE("b") NODE("c") NODE("d"), NULL},
      {NODE("d") NODE("c") NODE("b") NODE("a"), NULL},
      {NODE("a") NODE("b") NODE("c") NODE("d") NODE("e"), "the placement has no node 'e': it was made for another"},
      {NODE("a") NODE("b") NODE("c"), "has a node 'd' that the graph does not have: it was made for another"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_graph *g = NULL;
    struct cli_devmap *map = NULL;
    assert_ok(tfc_graph_parse(tfc_str_from(cases[i].graph), "graph", NULL, &g));
    for (int d = 0; d < 4; d++) devices[d].tensorflow = devices[d].name;
    if (cases[i].says) {
      assert_fails(cli_devmap_create(g, placement, &map), TFC_INVALID_ARGUMENT, cases[i].says);
      assert_null(map);
    } else {
      assert_ok(cli_devmap_create(g, placement, &map));
      for (int n = 0; n < 4; n++)
        assert_true(tfc_str_equal(cli_devmap_device(map, nodes[n].name, TFC_STR("before")), nodes[n].device));
      assert_int_equal(cli_devmap_device(map, TFC_STR("e"), TFC_STR("before")).size, 0);
    }
    cli_devmap_free(map);
    tfc_graph_release(g);
  }
  struct tfc_graph *g = NULL;
  struct cli_devmap *map = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(cases[0].graph), "graph", NULL, &g));
  nodes[3].device = TFC_STR("tpu:0");
  assert_fails(cli_devmap_create(g, placement, &map), TFC_UNAVAILABLE,
               "the placement puts 'd' on 'tpu:0', which is not among its devices");
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_wrong_names, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_devices_without_names, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_checks, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_graphs, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
