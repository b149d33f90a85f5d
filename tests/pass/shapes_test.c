#include "tests/common/test.h"

#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

static const struct tfc_shape *shape_of(const struct tfc_graph *g, const struct tfc_shapes *shapes, tfc_str tensor) {
  struct tfc_output o;
  assert_ok(tfc_graph_parse_output(g, tensor, &o));
  return &shapes->shapes[g->nodes[o.node].output_begin + (uint32_t)o.index];
}

static tfc_str next_line(tfc_str *rest) {
  size_t end = tfc_str_find(*rest, '\n');
  tfc_str line = tfc_str_sub(*rest, 0, end);
  *rest = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*rest, end + 1, rest->size);
  return line;
}

// Every dimension that TensorFlow infers must be inferred here too, with the same size.
static void check_example(const char *name) {
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  struct tfc_file file;
  char *graph = tfc_format("%s/examples/%s.pb", TFC_SOURCE_DIR, name);
  char *golden = tfc_format("%s/tests/pass/shapes/%s.txt", TFC_SOURCE_DIR, name);
  size_t outputs = 0;
  assert_ok(tfc_graph_load(graph, NULL, &g));
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  assert_ok(tfc_file_map(golden, &file));
  tfc_str rest = {(const char *)file.data, file.size};
  while (rest.size) {
    tfc_str line = next_line(&rest);
    size_t blank = tfc_str_find(line, ' ');
    tfc_str tensor = tfc_str_sub(line, 0, blank), dims = tfc_str_sub(line, blank + 1, line.size);
    struct tfc_output o;
    tfc_status s = tfc_graph_parse_output(g, tensor, &o);
    tfc_status_free(s);
    if (s) fail_msg("%s has no %.*s", name, TFC_STR_ARG(tensor));
    const struct tfc_shape *have = shape_of(g, &shapes, tensor);
    char text[TFC_SHAPE_TEXT];
    outputs++;
    if (tfc_str_is(dims, "?")) continue;
    int rank = 0;
    for (tfc_str d = dims; d.size; rank++) {
      size_t comma = tfc_str_find(d, ',');
      int64_t want;
      assert_ok(tfc_parse_i64(tfc_str_sub(d, 0, comma), &want));
      if (rank >= have->rank || (want >= 0 && have->dims[rank] != want))
        fail_msg("%s: %.*s is %s, not [%.*s]", name, TFC_STR_ARG(tensor), tfc_shape_show(have, text),
                 TFC_STR_ARG(dims));
      d = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(d, comma + 1, d.size);
    }
    if (have->rank != rank) fail_msg("%s: %.*s has not rank %d", name, TFC_STR_ARG(tensor), rank);
  }
  assert_true(outputs > 50);
  tfc_file_unmap(&file);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
  free(graph);
  free(golden);
}

static void agrees_with_tensorflow(void **state) {
  (void)state;
  check_example("ridge");
  check_example("rnnlm");
}

// An unknown batch size stays the same symbol through Shape, arithmetic on parts of the shape, Pack and Reshape.
static void symbols_survive(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  char text[TFC_SHAPE_TEXT];
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(-1, 6));
  struct tfc_output size = tfc_add1(b, "Shape", x);
  struct tfc_output one = tfc_add_i32_vector(b, (int32_t[]){1}, 1), zero = tfc_add_i32_vector(b, (int32_t[]){0}, 1);
  struct tfc_attr shrink = tfc_attr_int("shrink_axis_mask", 1);
  struct tfc_output batch =
      tfc_add(b, "StridedSlice", NULL, (struct tfc_output[]){size, zero, one, one}, 4, &shrink, 1);
  struct tfc_output to =
      tfc_add(b, "Pack", NULL, (struct tfc_output[]){batch, tfc_add_i32(b, 2), tfc_add_i32(b, 3)}, 3, NULL, 0);
  struct tfc_output y = tfc_add2(b, "Reshape", x, to);
  struct tfc_output z = tfc_add2(b, "Reshape", y, tfc_add_i32_vector(b, (int32_t[]){-1, 6}, 2));
  struct tfc_output sum = tfc_add2(b, "AddV2", x, tfc_add2(b, "Reshape", z, size));
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[y.node].output_begin], text), "[?a,2,3]");
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[sum.node].output_begin], text), "[?a,6]");
  tfc_shapes_deinit(&shapes);

  struct tfc_shape_override feed = {.output = x, .shape = TFC_SHAPE(32, 6)};
  assert_ok(tfc_infer_shapes(g, &feed, 1, &shapes));
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[y.node].output_begin], text), "[32,2,3]");
  assert_int_equal(tfc_tensor_int(shapes.values[g->nodes[batch.node].output_begin], 0), 32);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
}

// A feed may replace the value of a PlaceholderWithDefault, so its default may be used only in a step that does not
// feed it.
static void defaults_may_be_fed(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  char text[TFC_SHAPE_TEXT];
  const struct tfc_shape pair = TFC_SHAPE(2);
  const struct tfc_attr attr = {.name = TFC_STR("shape"), .kind = TFC_ATTR_SHAPE, .shape = &pair};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output given = tfc_add_i32_vector(b, (int32_t[]){2, 3}, 2);
  struct tfc_output dims = tfc_add(b, "PlaceholderWithDefault", "dims", &given, 1, &attr, 1);
  struct tfc_output y = tfc_add2(b, "Fill", dims, tfc_add_scalar(b, TFC_FLOAT, 1));
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  const struct tfc_shape *shape_of_y = NULL;
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  shape_of_y = &shapes.shapes[g->nodes[y.node].output_begin];
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[dims.node].output_begin], text), "[2]");
  assert_null(shapes.values[g->nodes[dims.node].output_begin]);
  assert_true(shape_of_y->rank == 2 && shape_of_y->dims[0] < 0 && shape_of_y->dims[1] < 0);
  tfc_shapes_deinit(&shapes);
  assert_ok(tfc_infer_fed_shapes(g, NULL, 0, &shapes));
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[y.node].output_begin], text), "[2,3]");
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
}

static void note(void *arg, const struct tfc_node *node, tfc_status status) {
  assert_true(tfc_str_is(node->name, "product"));
  assert_int_equal(tfc_status_code(status), TFC_INVALID_ARGUMENT);
  tfc_status_free(status);
  ++*(int *)arg;
}

static void contradictions_name_the_node(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2, 3));
  tfc_add(b, "MatMul", "product", (struct tfc_output[]){x, x}, 2, NULL, 0);
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_fails(tfc_infer_shapes(g, NULL, 0, &shapes), TFC_INVALID_ARGUMENT, "node 'product' (MatMul)");
  int notes = 0;
  assert_ok(tfc_infer_shapes_noting(g, NULL, 0, note, &notes, &shapes)); // notes the error and infers all other shapes
  assert_int_equal(notes, 1);
  assert_int_equal(shape_of(g, &shapes, TFC_STR("x:0"))->rank, 2);
  assert_int_equal(shape_of(g, &shapes, TFC_STR("product:0"))->rank, -1);
  tfc_shapes_deinit(&shapes);
  assert_ok(tfc_infer_fed_shapes(g, NULL, 0, &shapes)); // no error here: a step may not need this node
  const struct tfc_shape *x_shape = shape_of(g, &shapes, TFC_STR("x:0"));
  assert_int_equal(x_shape->rank, 2);
  assert_int_equal(shape_of(g, &shapes, TFC_STR("product:0"))->rank, -1);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
}

// If one attribute counts outputs and another one lists their types, both must give the same number.
static void counts_agree(void **state) {
  (void)state;
  static const char *const nodes[] = {
      "op: 'ParseSingleExample' attr { key: 'num_sparse' value { i: 3 } } attr { key: 'sparse_keys' value { list { s: "
      "'a' "
      "} } } attr { key: 'dense_keys' value { list { } } } attr { key: 'Tdense' value { list { } } } attr { key: "
      "'dense_shapes' value { list { } } } attr { key: 'sparse_types' value { list { type: DT_FLOAT } } } input: 's'",
      "op: 'ParseSequenceExampleV2' attr { key: 'Nfeature_list_dense' value { i: 2 } } input: ['s', 'k', 'k', 'k', "
      "'k', "
      "'k', 'k', 'k', 'b']",
      "op: 'ParseSequenceExample' attr { key: 'Nfeature_list_dense' value { i: 2 } } attr { key: "
      "'feature_list_dense_missing_assumed_empty' value { list { } } } attr { key: 'context_sparse_keys' value { list "
      "{ } } } attr { key: 'context_dense_keys' value { list { } } } attr { key: 'feature_list_sparse_keys' value { "
      "list { } } } attr { key: 'feature_list_dense_keys' value { list { s: 'a' } } } attr { key: "
      "'feature_list_dense_types' value { list { type: DT_FLOAT } } } attr { key: 'feature_list_dense_shapes' value { "
      "list { shape { } } } } input: ['k', 'k']"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    struct tfc_graph *g = NULL;
    struct tfc_shapes shapes = {0};
    char *text = tfc_format(
        "node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'shape' value "
        "{ "
        "shape { } } } } node { name: 'k' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } node { "
        "name: 'b' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } } node { name: 'parse' %s }",
        nodes[i]);
    assert_ok(tfc_graph_parse(tfc_str_from(text), "text", NULL, &g));
    assert_fails(tfc_infer_shapes(g, NULL, 0, &shapes), TFC_INVALID_ARGUMENT, "node 'parse'");
    tfc_shapes_deinit(&shapes);
    tfc_graph_release(g);
    free(text);
  }
}

// Ops that need a scalar refuse a vector with one element.
static void scalars_are_scalars(void **state) {
  (void)state;
  static const char *const ops[] = {"LinSpace", "Range", "MatrixDiagPartV2"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    struct tfc_builder *b = NULL;
    struct tfc_graph *g = NULL;
    struct tfc_shapes shapes = {0};
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE_UNKNOWN), n = tfc_add_i32(b, 1);
    struct tfc_output one = tfc_add_placeholder(b, "one", TFC_FLOAT, &TFC_SHAPE(1));
    const struct tfc_output in[3][3] = {{x, one, n}, {x, x, one}, {x, n, one}};
    tfc_add(b, ops[i], "y", in[i], 3, NULL, 0);
    assert_ok(tfc_builder_finish(b, &g));
    tfc_builder_free(b);
    assert_fails(tfc_infer_shapes(g, NULL, 0, &shapes), TFC_INVALID_ARGUMENT, "node 'y'");
    tfc_graph_release(g);
  }
}

static void pruning_stops_at_feeds(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  bool needed[8];
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2));
  struct tfc_output y = tfc_add1(b, "Neg", x), z = tfc_add1(b, "Neg", y), other = tfc_add1(b, "Exp", x);
  uint32_t group = tfc_builder_add(
      b, &(struct tfc_node_spec){.op = "NoOp", .name = "group", .controls = &z.node, .control_count = 1});
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_prune(g, NULL, 0, NULL, 0, &group, 1, needed));
  assert_true(needed[x.node] && needed[y.node] && needed[z.node] && needed[group] && !needed[other.node]);
  assert_ok(tfc_prune(g, &y, 1, &other, 1, &group, 1, needed));
  assert_true(needed[x.node] && !needed[y.node] && needed[z.node] && needed[other.node]);
  assert_ok(tfc_prune(g, &y, 1, &z, 1, NULL, 0, needed));
  assert_true(!needed[x.node] && !needed[y.node] && needed[z.node] && !needed[group]);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_tensorflow),       cmocka_unit_test(symbols_survive),
      cmocka_unit_test(contradictions_name_the_node), cmocka_unit_test(counts_agree),
      cmocka_unit_test(scalars_are_scalars),          cmocka_unit_test(pruning_stops_at_feeds),
      cmocka_unit_test(defaults_may_be_fed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
