#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/graph/export.h"
#include "runtime/graph/wire.h"
#include "tests/common/folder.h"

static char directory[TEST_FOLDER_SIZE];
static char path_buffer[4096];
static const char *in_directory(const char *name) {
  snprintf(path_buffer, sizeof path_buffer, "%s/%s", directory, name);
  return path_buffer;
}

// --- Graphs made here ----------------------------------------------------------------------------------------------
static void put_node(struct tfc_text *g, const char *name, const char *op, const char *inputs, const char *device,
                     tfc_str extra) {
  struct tfc_text n = {0};
  tfc_wire_put_bytes(&n, 1, tfc_str_from(name));
  tfc_wire_put_bytes(&n, 2, tfc_str_from(op));
  for (tfc_str rest = tfc_str_from(inputs); rest.size;) {
    size_t comma = tfc_str_find(rest, ',');
    tfc_wire_put_bytes(&n, 3, tfc_str_sub(rest, 0, comma));
    rest = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(rest, comma + 1, rest.size);
  }
  if (device) tfc_wire_put_bytes(&n, 4, tfc_str_from(device));
  tfc_text_add(&n, extra);
  tfc_wire_put_bytes(g, 1, tfc_text_view(&n));
  tfc_text_deinit(&n);
}

static tfc_status parse(struct tfc_text *g, struct tfc_graph **out) {
  tfc_status s = tfc_graph_parse(tfc_text_view(g), "made.pb", NULL, out);
  tfc_text_deinit(g);
  return s;
}

static void unknown_ops_load(void **state) {
  (void)state;
  struct tfc_text t = {0};
  struct tfc_graph *g = NULL;
  put_node(&t, "late", "NotAnOp", "first:3,^first", "/gpu:1", TFC_STR(""));
  put_node(&t, "first", "NotAnOpEither", "", NULL, TFC_STR(""));
  assert_ok(parse(&t, &g));
  assert_int_equal(g->node_count, 2);
  assert_null(g->nodes[0].def);
  assert_int_equal(g->nodes[1].output_count, 4);
  assert_int_equal(g->nodes[0].input_count, 1);
  assert_int_equal(g->nodes[0].control_count, 1);
  assert_true(tfc_str_is(g->nodes[0].device, "/gpu:1"));
  assert_int_equal(g->consumer_begin[2] - g->consumer_begin[1], 2);
  tfc_graph_release(g);
}

// The attributes of a node: the string "text" and the number "number".
static struct tfc_text two_attrs(const char *first, uint64_t second) {
  struct tfc_text all = {0}, value = {0}, entry = {0};
  tfc_wire_put_bytes(&value, 2, tfc_str_from(first));
  tfc_wire_put_bytes(&entry, 1, TFC_STR("text"));
  tfc_wire_put_bytes(&entry, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(&all, 5, tfc_text_view(&entry));
  value.size = entry.size = 0;
  tfc_wire_put_int(&value, 3, second);
  tfc_wire_put_bytes(&entry, 1, TFC_STR("number"));
  tfc_wire_put_bytes(&entry, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(&all, 5, tfc_text_view(&entry));
  tfc_text_deinit(&value);
  tfc_text_deinit(&entry);
  return all;
}

// Nodes with equal bytes of attributes share them; fields after the attributes must be equal, too.
static void equal_attributes_are_shared(void **state) {
  (void)state;
  struct tfc_text t = {0}, same = two_attrs("a", 7), other = two_attrs("b", 300), named = two_attrs("a", 7);
  struct tfc_graph *g = NULL;
  tfc_wire_put_bytes(&named, 4, TFC_STR("/cpu:1")); // a device after the attributes
  put_node(&t, "x", "X", "", NULL, tfc_text_view(&same));
  put_node(&t, "y", "X", "x", NULL, tfc_text_view(&same));
  put_node(&t, "z", "X", "x", NULL, tfc_text_view(&other));
  put_node(&t, "device", "X", "", NULL, tfc_text_view(&named));
  put_node(&t, "again", "X", "", NULL, tfc_text_view(&named));
  put_node(&t, "last", "X", "x", NULL, tfc_text_view(&same));
  assert_ok(parse(&t, &g));
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    bool is_other = tfc_str_is(n->name, "z");
    assert_int_equal(n->attr_count, 2);
    assert_true(tfc_str_is(tfc_node_attr_string(g, n, "text", ""), is_other ? "b" : "a"));
    assert_int_equal(tfc_node_attr_int(g, n, "number", 0), is_other ? 300 : 7);
    assert_true(tfc_str_is(n->device, i == 3 || i == 4 ? "/cpu:1" : ""));
  }
  assert_int_equal(g->nodes[1].attr_begin, g->nodes[0].attr_begin);
  assert_int_equal(g->nodes[4].input_count, 0);
  tfc_graph_release(g);
  tfc_text_deinit(&same);
  tfc_text_deinit(&other);
  tfc_text_deinit(&named);
}

static void bad_graphs_name_the_culprit(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  struct tfc_text t = {0};
  put_node(&t, "a", "X", "", NULL, TFC_STR(""));
  put_node(&t, "a", "Y", "", NULL, TFC_STR(""));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "made.pb: two nodes have the name 'a'");
  put_node(&t, "a", "X", "nowhere:0", NULL, TFC_STR(""));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "node 'a' (X): input 'nowhere:0' names no node");
  put_node(&t, "a", "X", "^b,b", NULL, TFC_STR(""));
  put_node(&t, "b", "X", "", NULL, TFC_STR(""));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "after a control input");
  put_node(&t, "a", "X", "b", NULL, TFC_STR(""));
  put_node(&t, "b", "X", "a", NULL, TFC_STR(""));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "cycle of 2 nodes");
  put_node(&t, "", "X", "", NULL, TFC_STR(""));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "no name");
  put_node(&t, "a", "X", "", NULL, TFC_STR("\x2a\x7f")); // an attribute that is longer than the node
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "node 0 'a' (X): it is shorter than its length says (field 5)");
  // attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2^40 } dim { size: 2^40 } } } } }
  struct tfc_text tensor = {0}, shape = {0}, dim = {0}, value = {0}, entry = {0}, attr = {0};
  tfc_wire_put_int(&dim, 1, 1ull << 40);
  tfc_wire_put_bytes(&shape, 2, tfc_text_view(&dim));
  tfc_wire_put_bytes(&shape, 2, tfc_text_view(&dim));
  tfc_wire_put_int(&tensor, 1, 1);
  tfc_wire_put_bytes(&tensor, 2, tfc_text_view(&shape));
  tfc_wire_put_bytes(&value, 8, tfc_text_view(&tensor));
  tfc_wire_put_bytes(&entry, 1, TFC_STR("value"));
  tfc_wire_put_bytes(&entry, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(&attr, 5, tfc_text_view(&entry));
  put_node(&t, "big", "X", "", NULL, tfc_text_view(&attr));
  assert_fails(parse(&t, &g), TFC_INVALID_ARGUMENT, "'big' (X): attribute 'value'");
  tfc_text_deinit(&tensor), tfc_text_deinit(&shape), tfc_text_deinit(&dim);
  tfc_text_deinit(&value), tfc_text_deinit(&entry), tfc_text_deinit(&attr);

  assert_fails(tfc_graph_parse(TFC_STR(""), "empty.pb", NULL, &g), TFC_INVALID_ARGUMENT, "empty.pb: the file is empty");
  assert_fails(tfc_graph_parse(TFC_STR("\x89PNG\r\n\x1a\n"), "a.png", NULL, &g), TFC_INVALID_ARGUMENT, "a.png");
  assert_fails(tfc_graph_parse(TFC_STR("{\"format\": 1}"), "a.json", NULL, &g), TFC_INVALID_ARGUMENT, "a.json");
  assert_fails(tfc_graph_load(in_directory("missing.pb"), NULL, &g), TFC_NOT_FOUND, "missing.pb");
  assert_fails(tfc_graph_load(directory, NULL, &g), TFC_INVALID_ARGUMENT, "without saved_model.pb");
}

// The importer makes TensorFlow's checks of names, device strings, classes and versions, and accepts what TensorFlow
// accepts.
static void rules_of_import(void **state) {
  (void)state;
  static const struct {
    const char *text, *error;
  } cases[] = {
      {"node { name: 'a>b/_c-.' op: 'X' } node { name: '.0' op: 'X' } versions { producer: 5000 min_consumer: 1645 }",
       NULL},
      {"node { name: '_a' op: 'X' }", "'_a' (X): the name"},
      {"node { name: 'a b' op: 'X' }", "'a b' (X): the name"},
      {"node { name: 'a:0' op: 'X' }", "'a:0' (X): the name"},
      {"node { name: 'a>_b' op: 'X' }", "'a>_b' (X): the name"},
      {"node { name: 'a>' op: 'X' }", "'a>' (X): the name"},
      {"node { name: '/a' op: 'X' }", "'/a' (X): the name"},
      {"node { name: 'a' op: 'X' device: '/job:localhost/device:CPU:0' }", NULL},
      {"node { name: 'a' op: 'X' device: 'garbage' }", "'a' (X): device 'garbage'"},
      {"node { name: 'a' op: 'X' device: '/task:x' }", "'a' (X): device '/task:x'"},
      {"node { name: 'a' op: 'X' attr { key: '_class' value { list { s: 'loc:@b' s: 'c' } } } } node { name: 'b' op: "
       "'X' }",
       NULL},
      {"node { name: 'a' op: 'X' attr { key: '_class' value { list { s: 'loc:@c' } } } }",
       "'a' (X): it is to be colocated with 'c'"},
      {"node { name: 'a' op: 'X' } versions { min_consumer: 1646 }", "min_consumer"},
      {"node { name: 'a' op: 'X' } versions { producer: -1 }", "version -1"},
      {"node { name: 'a' op: 'X' } versions { bad_consumers: [ 3, 1645 ] }", "not to be read by version 1645"},
      {"node { name: 'a' op: 'X' } versions { bad_consumers: [ 3, 1644 ] }", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_graph *g = NULL;
    tfc_status s = tfc_graph_parse(tfc_str_from(cases[i].text), "made.pbtxt", NULL, &g);
    if (cases[i].error)
      assert_fails(s, TFC_INVALID_ARGUMENT, cases[i].error);
    else
      assert_ok(s);
    tfc_graph_release(g);
  }
}

static const char text_graph[] =
    "# a comment\n"
    "node {\n  name: \"x\" op: 'Thing'\n  attr { key: \"T\" value { type: DT_FLOAT } }\n"
    "  attr { key: \"s\" value { s: \"a\\n\\\"b\\001\" \"c\" } }\n"
    "  attr { key: \"l\" value { list { i: [1, -2, 0x10] } } }\n"
    "  attr { key: \"f\" value { f: 1.5 } } }\n"
    "node: < name: \"y\", op: \"Thing\"; input: \"x:1\" input: \"^x\" device: \"/gpu:0\" >\n"
    "versions { producer: 1645 }\n";

static void text_reads(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  tfc_graph_format format;
  assert_ok(tfc_graph_parse(tfc_str_from(text_graph), "a.pbtxt", &format, &g));
  assert_int_equal(format, TFC_FORMAT_PBTXT);
  assert_int_equal(g->node_count, 2);
  assert_int_equal(g->producer_version, 1645);
  assert_int_equal(tfc_node_attr_type(g, &g->nodes[0], "T", TFC_DTYPE_NONE), TFC_FLOAT);
  assert_true(tfc_str_equal(tfc_node_attr_string(g, &g->nodes[0], "s", ""), TFC_STR("a\n\"b\001c")));
  const struct tfc_attr *l = tfc_node_attr(g, &g->nodes[0], "l");
  assert_int_equal(l->count, 3);
  assert_int_equal(l->ints[1], -2);
  assert_int_equal(l->ints[2], 16);
  tfc_graph_release(g);
  assert_fails(tfc_graph_parse(TFC_STR("node {\n nam: \"x\" }"), "b.pbtxt", NULL, &g), TFC_INVALID_ARGUMENT,
               "b.pbtxt: line 2: NodeDef has no field 'nam'");
  assert_fails(tfc_graph_parse(TFC_STR("node { name: \"x }"), "b.pbtxt", NULL, &g), TFC_INVALID_ARGUMENT, "line 1");
  assert_fails(tfc_graph_parse(TFC_STR("node { name: \"x\" "), "b.pbtxt", NULL, &g), TFC_INVALID_ARGUMENT, "not end");
}

// --- Whole files ---------------------------------------------------------------------------------------------------
static tfc_str to_gpu(void *arg, tfc_str key, tfc_str device) {
  (void)device;
  (*(size_t *)arg)++;
  return tfc_str_is(key, "init") ? (tfc_str){0} : TFC_STR("/device:GPU:7");
}

static void same_graph(const struct tfc_graph *a, const struct tfc_graph *b, const char *device) {
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->edge_count, b->edge_count);
  assert_memory_equal(a->inputs, b->inputs, a->edge_count * sizeof *a->inputs);
  for (uint32_t i = 0; i < a->node_count; i++) {
    assert_true(tfc_str_equal(a->nodes[i].name, b->nodes[i].name));
    assert_true(tfc_str_equal(a->nodes[i].op, b->nodes[i].op));
    assert_int_equal(a->nodes[i].attr_count, b->nodes[i].attr_count);
    if (device && !tfc_str_is(a->nodes[i].name, "init"))
      assert_true(tfc_str_is(b->nodes[i].device, device));
    else
      assert_true(tfc_str_equal(a->nodes[i].device, b->nodes[i].device));
  }
}

static void containers_keep_the_graph(void **state) {
  (void)state;
  const char *names[] = {"a.pb", "a.pbtxt", "a.meta", "a_model"};
  struct tfc_graph *g = NULL, *again = NULL;
  struct tfc_file before, after;
  assert_ok(tfc_graph_load(TFC_SOURCE_DIR "/examples/nmt.pb", NULL, &g));
  assert_true(g->node_count > 1000);
  for (int format = 0; format < 4; format++) {
    size_t asked = 0;
    tfc_graph_format found;
    assert_ok(tfc_graph_save(g, (tfc_graph_format)format, NULL, NULL, in_directory(names[format])));
    assert_ok(tfc_graph_load(in_directory(names[format]), &found, &again));
    assert_int_equal(found, format);
    same_graph(g, again, NULL);
    // The copy is saved again, as a plain GraphDef with other devices.
    assert_ok(tfc_graph_save(again, TFC_FORMAT_GRAPHDEF, to_gpu, &asked, in_directory("b.pb")));
    assert_int_equal(asked, g->node_count);
    tfc_graph_release(again);
    assert_ok(tfc_graph_load(in_directory("b.pb"), &found, &again));
    same_graph(g, again, "/device:GPU:7");
    tfc_graph_release(again);
  }
  assert_ok(tfc_file_map(TFC_SOURCE_DIR "/examples/nmt.pb", &before));
  assert_ok(tfc_file_map(in_directory("a.pb"), &after));
  assert_int_equal(before.size, after.size);
  assert_memory_equal(before.data, after.data, before.size);
  tfc_file_unmap(&before);
  tfc_file_unmap(&after);
  tfc_graph_release(g);
}

// Fields that the importer does not know are written again at the same place.
static void unknown_fields_survive(void **state) {
  (void)state;
  struct tfc_text t = {0}, extra = {0};
  struct tfc_graph *g = NULL;
  struct tfc_file file;
  size_t asked = 0;
  tfc_wire_put_bytes(&extra, 99, TFC_STR("in the node"));
  put_node(&t, "a", "X", "", "/cpu:0", tfc_text_view(&extra));
  tfc_wire_put_bytes(&t, 77, TFC_STR("in the graph"));
  tfc_wire_put_int(&t, 78, 12345678901ull);
  assert_ok(parse(&t, &g));
  assert_ok(tfc_graph_save(g, TFC_FORMAT_GRAPHDEF, to_gpu, &asked, in_directory("u.pb")));
  tfc_graph_release(g);
  put_node(&t, "a", "X", "", "/device:GPU:7", tfc_text_view(&extra));
  tfc_wire_put_bytes(&t, 77, TFC_STR("in the graph"));
  tfc_wire_put_int(&t, 78, 12345678901ull);
  assert_ok(tfc_file_map(in_directory("u.pb"), &file));
  assert_int_equal(file.size, t.size);
  assert_memory_equal(file.data, t.data, t.size);
  tfc_file_unmap(&file);
  tfc_text_deinit(&t);
  tfc_text_deinit(&extra);
}

// A file that is cut off anywhere, or has flipped bits, gives a graph or an error, never a crash.
static void damaged_files_are_refused(void **state) {
  (void)state;
  struct tfc_file file;
  struct tfc_random random;
  size_t loaded = 0;
  assert_ok(tfc_file_map(TFC_SOURCE_DIR "/examples/mlp.pb", &file));
  tfc_random_init(&random, 1);
  for (size_t size = 0; size < file.size; size += size < 400 ? 1 : 97) {
    struct tfc_graph *g = NULL;
    tfc_status s = tfc_graph_parse((tfc_str){(const char *)file.data, size}, "cut.pb", NULL, &g);
    assert_true(!s == (g != NULL));
    if (s) assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
    tfc_status_free(s);
    tfc_graph_release(g);
  }
  char *copy = malloc(file.size);
  for (int round = 0; round < 1500; round++) {
    struct tfc_graph *g = NULL;
    memcpy(copy, file.data, file.size);
    for (int k = 0; k < 1 + round % 5; k++)
      copy[tfc_random_below(&random, file.size)] ^= (char)(1u << tfc_random_below(&random, 8));
    tfc_status s = tfc_graph_parse((tfc_str){copy, file.size}, "flipped.pb", NULL, &g);
    assert_true(!s == (g != NULL));
    if (s && tfc_status_code(s) != TFC_INVALID_ARGUMENT && tfc_status_code(s) != TFC_UNIMPLEMENTED)
      fail_msg("%s", tfc_status_message(s));
    loaded += g != NULL;
    tfc_status_free(s);
    tfc_graph_release(g);
  }
  assert_true(loaded > 0);
  free(copy);
  tfc_file_unmap(&file);
}

static int make_directory(void **state) {
  (void)state;
  return test_folder_make(directory, "import");
}
static int remove_directory(void **state) {
  (void)state;
  return test_folder_remove(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unknown_ops_load),
      cmocka_unit_test(equal_attributes_are_shared),
      cmocka_unit_test(bad_graphs_name_the_culprit),
      cmocka_unit_test(rules_of_import),
      cmocka_unit_test(text_reads),
      cmocka_unit_test(containers_keep_the_graph),
      cmocka_unit_test(unknown_fields_survive),
      cmocka_unit_test(damaged_files_are_refused),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
