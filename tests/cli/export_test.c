// Runs tfc-export as its users do: it writes devices into a graph file and changes nothing else. Checks every exit
// code.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "runtime/graph/import.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define GRAPH TFC_SOURCE_DIR "/examples/mlp.pb"
#define SAVED_MODEL TFC_SOURCE_DIR "/examples/saved_model"
static char folder[64];
static struct tfc_graph *graph;

// Writes a placement with nodes on cpu:0 and cpu:1 in turn, without node `missing`, and with a node `extra` that the
// graph does not have.
static void write_placement(const char *name, uint32_t missing, bool extra) {
  struct tfc_placement *p = NULL;
  char path[128];
  assert_ok(tfc_placement_create(&p));
  p->run = 3;
  p->feasible = true;
  p->device_count = 2;
  p->devices = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_device, 2);
  p->devices[0] = (struct tfc_placement_device){
      .name = TFC_STR("cpu:0"), .kind = TFC_STR("cpu"), .tensorflow = TFC_STR("/device:CPU:0")};
  p->devices[1] = (struct tfc_placement_device){.name = TFC_STR("cpu:1"), .kind = TFC_STR("cpu")};
  p->nodes = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_node, graph->node_count + 1);
  for (uint32_t i = 0; i < graph->node_count; i++)
    if (i != missing)
      p->nodes[p->node_count++] = (struct tfc_placement_node){
          .name = graph->nodes[i].name, .device = i % 2 ? TFC_STR("cpu:1") : TFC_STR("cpu:0"), .order = i};
  if (extra)
    p->nodes[p->node_count++] =
        (struct tfc_placement_node){.name = TFC_STR("nowhere"), .device = TFC_STR("cpu:0"), .order = 0};
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_ok(tfc_placement_write(p, path));
  tfc_placement_free(p);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "export")) return -1;
  tfc_status s = tfc_graph_load(GRAPH, NULL, &graph);
  if (s) fprintf(stderr, "%s\n", tfc_status_message(s));
  if (s) return -1;
  write_placement("p.json", TFC_NONE, false);
  write_placement("missing.json", 7, false);
  write_placement("extra.json", TFC_NONE, true);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_graph_release(graph);
  return test_folder_remove(folder);
}

static void check_devices(const char *name, const char *even, const char *odd) {
  struct tfc_graph *g = NULL;
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_ok(tfc_graph_load(path, NULL, &g));
  assert_int_equal(g->node_count, graph->node_count);
  for (uint32_t i = 0; i < g->node_count; i++) {
    assert_true(tfc_str_equal(g->nodes[i].name, graph->nodes[i].name));
    assert_true(tfc_str_equal(g->nodes[i].op, graph->nodes[i].op));
    assert_int_equal(g->nodes[i].input_count, graph->nodes[i].input_count);
    if (!tfc_str_is(g->nodes[i].device, i % 2 ? odd : even))
      fail_msg("%.*s is on %.*s", TFC_STR_ARG(g->nodes[i].name), TFC_STR_ARG(g->nodes[i].device));
  }
  tfc_graph_release(g);
}

static void test_graphdef(void **state) {
  (void)state;
  assert_exit(0, "Written", "tfc-export --placement %s/p.json --graph %s --out %s/a.pb", folder, GRAPH, folder);
  check_devices("a.pb", "/device:CPU:0", "/device:CPU:1");
  assert_exit(0, "Written", "tfc-export --placement %s/p.json --graph %s --out %s/a.pbtxt", folder, GRAPH, folder);
  check_devices("a.pbtxt", "/device:CPU:0", "/device:CPU:1");
}

static void test_map_and_strip(void **state) {
  (void)state;
  assert_exit(0, "",
              "tfc-export --placement %s/p.json --graph %s --out %s/b.pb --map "
              "'cpu:1=/job:worker/task:1/device:GPU:0,cpu:0=/job:ps/task:0/device:CPU:0'",
              folder, GRAPH, folder);
  check_devices("b.pb", "/job:ps/task:0/device:CPU:0", "/job:worker/task:1/device:GPU:0");
  assert_exit(0, "", "tfc-export --graph %s/b.pb --strip-devices --out %s/c.pb", folder, folder);
  check_devices("c.pb", "", "");
  assert_exit(0, "", "cmp %s/c.pb %s", folder,
              GRAPH); // the original has no device strings either, so the files are equal byte for byte
}

static void test_tables(void **state) {
  (void)state;
  assert_exit(0, "", "tfc-export --placement %s/p.json --out %s/a.csv && wc -l <%s/a.csv", folder, folder, folder);
  assert_exit(0, "", "head -n 2 %s/a.csv", folder);
  assert_non_null(strstr(command("head -n 2 %s/a.csv", folder)->out, ",\"cpu:0\",\"/device:CPU:0\",0,"));
  assert_exit(0, "", "tfc-export --placement %s/p.json --out %s/q.json", folder, folder);
  struct tfc_placement *p = NULL;
  char path[128];
  snprintf(path, sizeof path, "%s/q.json", folder);
  assert_ok(tfc_placement_read(path, &p));
  assert_int_equal(p->node_count, graph->node_count);
  tfc_placement_free(p);
}

// The file is run by Python with stand-ins for TensorFlow's classes, since CI does not install TensorFlow.
static void test_device_function(void **state) {
  (void)state;
  assert_exit(0, "Written",
              "tfc-export --placement %s/p.json --format device-function --out %s/placed.py --map "
              "cpu:0=/job:ps/device:CPU:0,cpu:1=/job:worker/task:1/device:GPU:0",
              folder, folder);
  assert_exit(
      0, "",
      "cd %s && python3 -c '\n"
      "import placed\n"
      "class Op:\n"
      "  def __init__(self, name): self.name, self.device = name, \"/device:CPU:9\"\n"
      "  def _set_device(self, device): self.device = device\n"
      "class Graph:\n"
      "  def get_operations(self): return ops\n"
      "first, second, other = (Op(n) for n in (\"%.*s\", \"%.*s\", \"no such node\"))\n"
      "ops = [first, second, other]\n"
      "assert placed.device(first) == \"/job:ps/device:CPU:0\", placed.device(first)\n"
      "assert placed.device(second) == \"/job:worker/task:1/device:GPU:0\"\n"
      "assert placed.device(other) == \"/device:CPU:9\"\n"
      "assert placed.apply(Graph()) == 2 and second.device.endswith(\"GPU:0\") and other.device.endswith(\":9\")\n"
      "assert len(placed.NODES) == %u'",
      folder, TFC_STR_ARG(graph->nodes[0].name), TFC_STR_ARG(graph->nodes[1].name), graph->node_count);
}

static void test_clusterspec(void **state) {
  (void)state;
  assert_exit(0, "",
              "tfc-export --placement %s/p.json --out %s/a.clusterspec --map "
              "cpu:0=/job:ps/device:CPU:0,cpu:1=/job:worker/task:2/device:GPU:0",
              folder, folder);
  assert_exit(0, "", "test \"$(tail -c 1 %s/a.clusterspec | wc -l)\" = 1", folder); // the last line ends
  assert_exit(0, "",
              "python3 -c 'import json; c = json.load(open(\"%s/a.clusterspec\"));"
              "assert sorted(c) == [\"ps\", \"worker\"] and len(c[\"ps\"]) == 1 and len(c[\"worker\"]) == 3, c;"
              "assert len(set(c[\"ps\"] + c[\"worker\"])) == 4'",
              folder);
}

static void test_errors(void **state) {
  (void)state;
  char name[96];
  snprintf(name, sizeof name, "no node '%.*s'", TFC_STR_ARG(graph->nodes[7].name));
  assert_exit(3, name, "tfc-export --placement %s/missing.json --graph %s --out %s/x.pb", folder, GRAPH, folder);
  assert_exit(3, "'nowhere'", "tfc-export --placement %s/extra.json --graph %s --out %s/x.pb", folder, GRAPH, folder);
  assert_exit(3, "nothere.pb", "tfc-export --placement %s/p.json --graph nothere.pb --out %s/x.pb", folder, folder);
  assert_exit(3, "nothere.pb", "tfc-export --placement %s/p.json --graph nothere.pb --out %s/x.csv", folder, folder);
  assert_exit(3, "nothere.json", "tfc-export --placement nothere.json --graph %s --out %s/x.pb", GRAPH, folder);
  assert_exit(3, "nothere.db", "tfc-export --db nothere.db --graph %s --out %s/x.pb", GRAPH, folder);
  assert_exit(2, "no device for cpu:1",
              "tfc-export --placement %s/p.json --graph %s --out %s/x.pb --map cpu:0=/device:GPU:0", folder, GRAPH,
              folder);
  assert_exit(4, "gpu:7", "tfc-export --placement %s/p.json --graph %s --out %s/x.pb --map gpu:7=/device:GPU:0", folder,
              GRAPH, folder);
  assert_exit(6, "/proc/x.pb", "tfc-export --placement %s/p.json --graph %s --out /proc/x.pb", folder, GRAPH);
  assert_exit(2, "--format", "tfc-export --placement %s/p.json --graph %s --out %s/x.bin", folder, GRAPH, folder);
  assert_exit(2, "graphdef|pbtxt", "tfc-export --placement %s/p.json --graph %s --out %s/x.bin --format onnx", folder,
              GRAPH, folder);
  assert_exit(2, "did you mean --strip-devices", "tfc-export --strip-device --graph %s --out %s/x.pb", GRAPH, folder);
}

// A SavedModel with devices is loaded, its variables too, and its signature gives what it gave before. The step's time
// was simulated, and is called so.
static void test_saved_model(void **state) {
  (void)state;
  assert_exit(0, "(simulated) with the order",
              "cd %s && tfc-place --graph " SAVED_MODEL " --machine " TFC_SOURCE_DIR "/configs/4xp100.yaml --devices 2 "
              "--evaluations 20 --policy none -q --report none --out s.json && tfc-export --placement s.json "
              "--graph " SAVED_MODEL " --format savedmodel --out placed --map gpu:0=/device:CPU:0,gpu:1=/device:CPU:1",
              folder);
  assert_exit(0, "the signature 'serving_default'",
              "cd %s && tfc-run --graph placed --steps 1 && for each in " SAVED_MODEL
              " placed; do tfc-run --graph $each --steps 1 --fetch "
              "StatefulPartitionedCall:1=$(basename $each).npy || exit; done; cmp saved_model.npy placed.npy",
              folder);
}

// Devices of a described machine may have names that TensorFlow does not take: then --map has to give them others.
static void test_odd_names(void **state) {
  (void)state;
  static const char *const formats[] = {"--graph " GRAPH " --out x.pb", "--out x.py", "--out x.clusterspec"};
  assert_exit(0, "", "cd %s && sed 's/cpu:1/acc-1.b:3/g' p.json >odd.json", folder);
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    assert_exit(3, "no device of the name 'acc-1.b:3' (give it one with --map)",
                "cd %s && tfc-export --placement odd.json %s", folder, formats[i]);
    assert_exit(0, "", "cd %s && tfc-export --placement odd.json %s --map cpu:0=/device:CPU:0,acc-1.b:3=/device:GPU:3",
                folder, formats[i]);
  }
  assert_exit(0, "", "cd %s && tfc-export --placement odd.json --out x.csv", folder);
}

// The output is never the file that is read, by whatever path it is named.
static void test_input_stays(void **state) {
  (void)state;
  assert_exit(0, "",
              "cd %s && cp " GRAPH " g.pb && ln -s g.pb l.pb && ln g.pb h.pb && mkdir m && cp g.pb m/saved_model.pb",
              folder);
  static const char *const outs[] = {"g.pb", "./g.pb", "l.pb", "h.pb"};
  for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
    assert_exit(2, "it is the graph that is read", "cd %s && tfc-export --placement p.json --graph g.pb --out %s",
                folder, outs[i]);
  assert_exit(2, "it is the graph that is read",
              "cd %s && tfc-export --strip-devices --graph m/saved_model.pb --out m --format savedmodel", folder);
  assert_exit(2, "it is the placement that is read", "cd %s && tfc-export --placement p.json --out ./p.json", folder);
  assert_exit(0, "", "cd %s && cmp g.pb " GRAPH " && cmp m/saved_model.pb " GRAPH, folder);
}

// A database, and what SQLite would take for its journal or its index, is no output: of the database that is read, of
// one that is not there yet, and of any other; by its own name, by another path, and through a link.
static void test_databases_stay(void **state) {
  (void)state;
  static const char *const outs[] = {"one.db",     "one.db-journal",    "one.db-wal",       "one.db-shm",
                                     "./one.db",   "sub/../one.db-wal", "link.db-journal",  "sub/link",
                                     "new.db-wal", "./new.db-journal",  "sub/../new.db-shm"};
  assert_exit(
      0, "",
      "cd %s && tfc-place --graph " SAVED_MODEL " --machine " TFC_SOURCE_DIR
      "/configs/4xp100.yaml --devices 2 --evaluations 10 --policy none -q --report none --out c.json --db one.db && "
      "ln -s one.db link.db && mkdir sub && echo journal >one.db-journal && ln -s ../one.db-journal sub/link",
      folder);
  for (size_t i = 0; i < sizeof outs / sizeof *outs; i++) {
    const bool fresh = strstr(outs[i], "new.db") != NULL;
    assert_exit(2, "give another name", "cd %s && tfc-export --placement p.json %s --format csv --out %s", folder,
                fresh ? "--db new.db" : "", outs[i]);
  }
  assert_exit(2, "it is a file of the database one.db", "cd %s && tfc-export --db one.db --format csv --out one.db",
              folder);
  assert_exit(2, "it is a file of the database one.db",
              "cd %s && tfc-run --graph " GRAPH " --steps 1 --db one.db --fetch loss:0=one.db-journal", folder);
  assert_exit(2, "it is a file of the database", "cd %s && tfc-report --db one.db trace --out ./one.db-wal", folder);
  assert_exit(0, "", "cd %s && grep -qx journal one.db-journal", folder);
  assert_exit(0, "Written", "cd %s && tfc-export --placement p.json --format csv --out plain.db-wal", folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graphdef),        cmocka_unit_test(test_map_and_strip),  cmocka_unit_test(test_tables),
      cmocka_unit_test(test_device_function), cmocka_unit_test(test_clusterspec),    cmocka_unit_test(test_errors),
      cmocka_unit_test(test_input_stays),     cmocka_unit_test(test_databases_stay), cmocka_unit_test(test_odd_names),
      cmocka_unit_test(test_saved_model),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
