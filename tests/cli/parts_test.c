// Tests parts of the programs one by one, with values worked out by hand: times from a machine's rates, the conversion
// of feeds to the graph's types, settings files, shapes on the command line, and what tfc-export writes.
#include "tests/common/test.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cost_model.h"
#include "cli/devmap.h"
#include "cli/export_lists.h"
#include "cli/feed_cast.h"
#include "cli/json.h"
#include "cli/settings.h"
#include "cli/step_args.c"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "runtime/base/file.h"
#include "runtime/graph/builder.h"
#include "runtime/pass/pass.h"
#include "tests/common/close.h"
#include "tests/common/folder.h"

static char folder[64];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "parts");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}
static const char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
// --- times from rates ----------------------------------------------------------------------------------------------

// A product of a 20 x 30 and a 30 x 40 matrix is 48,000 FLOP; both and the result are 2600 numbers of 4 bytes. On a
// device of 1 GFLOP/s and 1 GB/s the FLOP take longest, on
// one of 1 TFLOP/s and 1 GB/s the bytes do.
static void test_cost_model(void **state) {
  (void)state;
  static const char machine[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                                "  - {name: 'a:0', kind: a, flops: 1.0e+9, memory_bandwidth: 1GB/s}\n"
                                "  - {name: 'b:0', kind: b, flops: 1.0e+12, memory_bandwidth: 1GB/s}\n"
                                "  - {name: 'a:1', kind: a, flops: 1.0e+9, memory_bandwidth: 1GB/s}\n"
                                "links:\n  - {from: '*', to: '*'}\n";
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes;
  struct tfc_machine *m = NULL;
  struct tfc_cost_table *table = NULL;
  struct cli_cost_total total;
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(20, 30)),
                          y = tfc_add_placeholder(b, "y", TFC_FLOAT, &TFC_SHAPE(30, 40)),
                          z = tfc_add2(b, "MatMul", x, y);
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  assert_ok(tfc_machine_parse(tfc_str_from(machine), "m.yaml", &m));
  const uint32_t ops[] = {z.node};
  assert_ok(cli_cost_model(g, &shapes, ops, 1, m, &table, &total));
  assert_close(total.flops, 48000);
  assert_close(total.bytes, 10400);
  assert_int_equal(total.unknown, 0);
  assert_true(fabs(tfc_cost_table_get(table, z.node, 0).median_us - 48) < 1e-5);
  assert_true(fabs(tfc_cost_table_get(table, z.node, 1).median_us - 10.4) < 1e-5);
  assert_true(isnan(tfc_cost_table_get(table, x.node, 0).median_us));
  tfc_cost_table_free(table);
  tfc_machine_free(m);
  static const struct {
    const char *devices, *says;
  } wrong[] = {{"  - {name: 'a:0', kind: a, flops: 1.0e+9}\n", "no memory_bandwidth"},
               {"  - {name: 'a:0', kind: a, memory_bandwidth: 1GB/s}\n", "no flops"},
               {"  - {name: 'a:0', kind: a, flops: 1.0e+9, memory_bandwidth: 1GB/s}\n"
                "  - {name: 'a:1', kind: a, flops: 2.0e+9, memory_bandwidth: 1GB/s}\n",
                "'a:0' and 'a:1' are of one kind"},
               {"  - {name: 'a:0', kind: a, flops: 1.0e+9, memory_bandwidth: 2GB/s}\n"
                "  - {name: 'a:1', kind: a, flops: 1.0e+9, memory_bandwidth: 1GB/s}\n",
                "'a:0' and 'a:1' are of one kind"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[500];
    snprintf(text, sizeof text, "format: tfc-machine\nversion: 1\ndevices:\n%slinks:\n  - {from: '*', to: '*'}\n",
             wrong[i].devices);
    assert_ok(tfc_machine_parse(tfc_str_from(text), "m.yaml", &m));
    assert_fails(cli_cost_model(g, &shapes, ops, 1, m, &table, &total), TFC_INVALID_ARGUMENT, wrong[i].says);
    tfc_machine_free(m);
  }
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
}

// --- feeds ---------------------------------------------------------------------------------------------------------

static struct tfc_tensor one_of(tfc_dtype type, int64_t whole, double real) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(type, &TFC_SHAPE(2), &t));
  for (int i = 0; i < 2; i++) switch (type) { // the second element has the value that is tested
    case TFC_INT8: ((int8_t *)t.data)[i] = (int8_t)(i ? whole : 0); break;
    case TFC_INT32: ((int32_t *)t.data)[i] = (int32_t)(i ? whole : 0); break;
    case TFC_INT64: ((int64_t *)t.data)[i] = i ? whole : 0; break;
    case TFC_UINT64: ((uint64_t *)t.data)[i] = (uint64_t)(i ? whole : 0); break;
    case TFC_BOOL: ((uint8_t *)t.data)[i] = i ? whole != 0 : 0; break;
    case TFC_FLOAT: ((float *)t.data)[i] = i ? (float)real : 0; break;
    default: ((double *)t.data)[i] = i ? real : 0; break;
    }
  return t;
}

// Integers can be fed to a type if they are in its range; tests the ends of each range.
static void test_whole_feeds(void **state) {
  (void)state;
  static const struct {
    tfc_dtype type;
    int64_t low, high;
  } types[] = {{TFC_INT8, INT8_MIN, INT8_MAX}, {TFC_INT16, INT16_MIN, INT16_MAX}, {TFC_INT32, INT32_MIN, INT32_MAX},
               {TFC_UINT8, 0, UINT8_MAX},      {TFC_UINT16, 0, UINT16_MAX},       {TFC_UINT32, 0, UINT32_MAX},
               {TFC_UINT64, 0, INT64_MAX}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const int64_t tried[] = {types[i].low, types[i].high, types[i].low - 1,
                             types[i].high + (types[i].high < INT64_MAX)};
    for (int k = 0; k < 4; k++) {
      struct tfc_tensor t = one_of(TFC_INT64, tried[k], 0);
      if (k < 2 || tried[k] == types[i].high) {
        assert_ok(tfc_feed_cast(types[i].type, &t));
        assert_int_equal(t.dtype, types[i].type);
        if (types[i].type == TFC_UINT64)
          assert_true(((uint64_t *)t.data)[1] == (uint64_t)tried[k]);
        else
          assert_true(tfc_tensor_int(&t, 1) == tried[k] && tfc_tensor_int(&t, 0) == 0);
      } else {
        char says[40];
        snprintf(says, sizeof says, "cannot hold %lld", (long long)tried[k]);
        assert_fails(tfc_feed_cast(types[i].type, &t), TFC_INVALID_ARGUMENT, says);
        assert_int_equal(t.dtype, TFC_INT64); // the type did not change
      }
      tfc_tensor_release(&t);
    }
  }
  // Above 2^63 only uint64 itself holds it.
  struct tfc_tensor t = one_of(TFC_UINT64, -1, 0);
  assert_fails(tfc_feed_cast(TFC_INT64, &t), TFC_INVALID_ARGUMENT, "cannot hold 9223372036854775807 and more");
  assert_ok(tfc_feed_cast(TFC_DOUBLE, &t));
  assert_close(((double *)t.data)[1], 18446744073709551615.0);
  tfc_tensor_release(&t);
  t = one_of(TFC_BOOL, 1, 0);
  assert_ok(tfc_feed_cast(TFC_INT32, &t));
  assert_true(((int32_t *)t.data)[0] == 0 && ((int32_t *)t.data)[1] == 1);
  assert_ok(tfc_feed_cast(TFC_FLOAT, &t));
  assert_close((double)((float *)t.data)[1], 1);
  tfc_tensor_release(&t);
}

static void test_real_feeds(void **state) {
  (void)state;
  struct tfc_tensor t = one_of(TFC_DOUBLE, 0, -0.1);
  assert_ok(tfc_feed_cast(TFC_FLOAT, &t));
  assert_true(t.dtype == TFC_FLOAT && ((float *)t.data)[1] == -0.1f);
  assert_ok(tfc_feed_cast(TFC_HALF, &t));
  assert_int_equal(((uint16_t *)t.data)[1], 0xae66); // the nearest half to -0.1
  tfc_tensor_release(&t);
  t = one_of(TFC_FLOAT, 0, 1.5);
  assert_ok(tfc_feed_cast(TFC_BFLOAT16, &t));
  assert_int_equal(((uint16_t *)t.data)[1], 0x3fc0);
  assert_ok(tfc_feed_cast(TFC_DOUBLE, &t));
  assert_close(((double *)t.data)[1], 1.5);
  assert_ok(tfc_feed_cast(TFC_INT32, &t)); // a float is not an integer: the tensor does not change
  assert_int_equal(t.dtype, TFC_DOUBLE);
  tfc_tensor_release(&t);
  t = one_of(TFC_INT8, -5, 0);
  assert_ok(tfc_feed_cast(TFC_HALF, &t));
  assert_int_equal(((uint16_t *)t.data)[1], 0xc500);
  tfc_tensor_release(&t);
}

// --- texts ---------------------------------------------------------------------------------------------------------

static void test_typed_shapes(void **state) {
  (void)state;
  static const char *const none[] = {"float32", "float32[",     "float32]", "float32[2,x]", "float32[-1]",
                                     "real[2]", "float32[2,]x", "[2]",      "float32[2,,3]"};
  tfc_dtype type;
  struct tfc_shape shape;
  assert_true(parse_typed_shape(TFC_STR("float32[2,30,0]"), &type, &shape));
  assert_true(type == TFC_FLOAT && shape.rank == 3 && shape.dims[0] == 2 && shape.dims[1] == 30 && shape.dims[2] == 0);
  assert_true(parse_typed_shape(TFC_STR("int64[]"), &type, &shape));
  assert_true(type == TFC_INT64 && shape.rank == 0);
  for (int more = 0; more < 2; more++) { // as many dimensions as there may be, and one more
    struct tfc_text text = {0};
    for (int k = 0; k < TFC_MAX_RANK + more; k++) tfc_text_printf(&text, "%s1", k ? "," : "float32[");
    tfc_text_printf(&text, "]");
    assert_true(parse_typed_shape((tfc_str){text.data, text.size}, &type, &shape) == !more);
    tfc_text_deinit(&text);
  }
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (parse_typed_shape(tfc_str_from(none[i]), &type, &shape)) fail_msg("'%s' is no shape", none[i]);
}

static bool note(void *user, const char *key, const char *value) {
  struct tfc_text *t = user;
  tfc_text_printf(t, "%s=%s;", key, value);
  return strcmp(key, "stop") != 0;
}
static void test_settings(void **state) {
  (void)state;
  static const struct {
    const char *text, *read, *says;
  } cases[] = {{"steps: 5\nfeed: {x: x.npy, 'y:0': y.npy}\nfetch: [a, b]\nlast: true\n",
                "steps=5;feed=x=x.npy;feed=y:0=y.npy;fetch=a;fetch=b;last=true;", NULL},
               {"", "", NULL},
               {"a: 1\nstop: now\nb: 2\n", "a=1;stop=now;", NULL},
               {"steps: 5\nfeed:\n  x: {y: 1}\n", "steps=5;", "line 3: a mapping has no place"},
               {"feed:\n  x: [1]\n", "", "line 2: a list has no place"},
               {"a: [b, [c]]\n", "a=b;", "a list has no place"},
               {"- a\n", "", "line 1: a list has no place"},
               {"just text\n", "", "settings are 'name: value'"},
               {"a: &x 1\nb: *x\n", "a=1;", "line 2: aliases"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_text got = {0};
    const char *path = path_of("settings.yaml");
    assert_ok(tfc_file_write(path, tfc_str_from(cases[i].text)));
    if (cases[i].says)
      assert_fails(tfc_settings_read(path, note, &got), TFC_INVALID_ARGUMENT, cases[i].says);
    else
      assert_ok(tfc_settings_read(path, note, &got));
    assert_string_equal(got.data ? got.data : "", cases[i].read);
    tfc_text_deinit(&got);
  }
}

static void test_json(void **state) {
  (void)state;
  json_t *x = cli_json_number(1.5), *nan = cli_json_number((double)NAN), *inf = cli_json_number(INFINITY);
  assert_true(json_is_real(x) && json_is_null(nan) && json_is_null(inf));
  json_decref(x), json_decref(nan), json_decref(inf);
  x = cli_json_string("caf\xc3\xa9"), nan = cli_json_string("bad\xff!");
  assert_string_equal(json_string_value(x), "caf\xc3\xa9");
  assert_string_equal(json_string_value(nan), "bad?!");
  json_decref(x), json_decref(nan);
  static const char *const columns[] = {"n", "x", "t", "none", NULL};
  struct tfc_table t;
  struct tfc_cell *row;
  assert_ok(tfc_table_init(&t, columns));
  for (int k = 0; k < 2; k++) {
    assert_ok(tfc_table_add(&t, &row));
    row[0] = tfc_cell_integer(7 + k), row[1] = tfc_cell_real(0.25), row[2] = tfc_cell_text(TFC_STR("a b"));
  }
  json_t *rows = cli_json_table(&t);
  assert_int_equal(json_array_size(rows), 2);
  const json_t *second = json_array_get(rows, 1);
  assert_int_equal(json_integer_value(json_object_get(second, "n")), 8);
  assert_close(json_real_value(json_object_get(second, "x")), 0.25);
  assert_string_equal(json_string_value(json_object_get(second, "t")), "a b");
  assert_true(json_is_null(json_object_get(second, "none")) && json_object_size(second) == 4);
  json_decref(rows);
  tfc_table_deinit(&t);
}

// --- exporting -----------------------------------------------------------------------------------------------------

static const char placed[] =
    "{\"format\": \"tfc-placement\", \"version\": 1, \"devices\": [{\"name\": \"gpu:0\", \"kind\": \"gpu\"}, "
    "{\"name\": "
    "\"cpu:1\", \"kind\": \"cpu\", \"tensorflow\": \"/job:ps/task:2/device:CPU:0\"}, {\"name\": \"host\", \"kind\": "
    "\"host\"}, {\"name\": \"gpu:7\", \"kind\": \"gpu\"}],"
    " \"placement\": {\"a \\\"q\\\"\": \"gpu:0\", \"b\": \"cpu:1\", \"function/f:x\": \"gpu:0\", \"c\": \"host\"},"
    " \"order\": {\"a \\\"q\\\"\": 2.5}, \"reasons\": {\"b\": \"pinned, so\"}}";

static void holds(const char *path, const char *expected) {
  struct tfc_file file;
  assert_ok(tfc_file_map(path, &file));
  char *text = strndup((const char *)file.data, file.size);
  if (!strstr(text, expected)) fail_msg("no '%s' in: %s", expected, text);
  free(text);
  tfc_file_unmap(&file);
}

static void test_exports(void **state) {
  (void)state;
  struct tfc_placement *p = NULL;
  assert_ok(tfc_placement_parse(tfc_str_from(placed), "p", &p));
  // The first device with nodes that the map does not name; the host and unused devices need no name.
  assert_true(tfc_str_is(cli_devmap_unnamed(p, ""), "gpu:0"));
  assert_true(tfc_str_is(cli_devmap_unnamed(p, "gpu:0=/device:GPU:1"), "cpu:1"));
  assert_null(cli_devmap_unnamed(p, "cpu:1=/device:CPU:0,gpu:0=/device:GPU:1").data);
  assert_true(tfc_str_is(cli_devmap_unnamed(p, "gpu:00=x,cpu:1=y"), "gpu:0"));
  assert_ok(cli_devmap_apply(p, "gpu:0=/job:worker/task:1/device:GPU:3"));
  assert_true(tfc_str_is(p->devices[0].tensorflow, "/job:worker/task:1/device:GPU:3"));
  // the names are those of the placement
  assert_true(tfc_str_is(p->devices[1].tensorflow, "/job:ps/task:2/device:CPU:0"));
  assert_true(tfc_str_is(p->devices[2].tensorflow, "/device:HOST:0"));
  assert_true(tfc_str_is(p->devices[3].tensorflow, "/device:GPU:7"));
  assert_fails(cli_devmap_apply(p, "gpu:0"), TFC_INVALID_ARGUMENT, "'gpu:0' is not NAME=DEVICE");
  assert_fails(cli_devmap_apply(p, "gpu:0="), TFC_INVALID_ARGUMENT, "is not NAME=DEVICE");
  assert_fails(cli_devmap_apply(p, "=/device:GPU:0"), TFC_INVALID_ARGUMENT, "is not NAME=DEVICE");
  assert_fails(cli_devmap_apply(p, "gpu:1=/device:GPU:0"), TFC_UNAVAILABLE, "no device 'gpu:1'");
  assert_fails(cli_devmap_apply(p, "gpu:0=/nonsense"), TFC_INVALID_ARGUMENT, "--map gpu:0");
  const char *path = path_of("p.csv");
  assert_ok(cli_export_csv(p, path));
  holds(path, "node,device,tensorflow,order,reason\n"
              "\"a \"\"q\"\"\",\"gpu:0\",\"/job:worker/task:1/device:GPU:3\",2.5,\"\"\n"
              "\"b\",\"cpu:1\",\"/job:ps/task:2/device:CPU:0\",,\"pinned, so\"\n");
  path = path_of("p.py");
  assert_ok(cli_export_device_function(p, path));
  holds(path, "DEVICES = [\"/job:worker/task:1/device:GPU:3\", \"/job:ps/task:2/device:CPU:0\", \"/device:HOST:0\", "
              "\"/device:GPU:7\"]\nNODES = {\n    \"a \\\"q\\\"\": 0,\n    \"b\": 1,\n    \"c\": 2,\n}\n");
  // A job has as many tasks as its last one needs; ports go on over jobs.
  path = path_of("p.spec");
  assert_ok(cli_export_clusterspec(p, path));
  json_t *spec = json_load_file(path, 0, NULL);
  assert_non_null(spec);
  const json_t *worker = json_object_get(spec, "worker"), *ps = json_object_get(spec, "ps"),
               *local = json_object_get(spec, "localhost");
  assert_true(json_array_size(worker) == 2 && json_array_size(ps) == 3 && json_array_size(local) == 1);
  assert_string_equal(json_string_value(json_array_get(worker, 1)), "localhost:2223");
  assert_string_equal(json_string_value(json_array_get(ps, 0)), "localhost:2224");
  assert_string_equal(json_string_value(json_array_get(local, 0)), "localhost:2227");
  json_decref(spec);
  assert_ok(cli_devmap_apply(p, "gpu:0=/job:worker/task:70000/device:GPU:3"));
  assert_fails(cli_export_clusterspec(p, path), TFC_INVALID_ARGUMENT, "task 70000");
  tfc_placement_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cost_model),   cmocka_unit_test(test_whole_feeds),
                                     cmocka_unit_test(test_real_feeds),   cmocka_unit_test(test_settings),
                                     cmocka_unit_test(test_typed_shapes), cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_exports)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
