#include "tests/common/test.h"

#include "runtime/graph/builder.h"
#include "runtime/graph/device_spec.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/signature.h"

static struct tfc_output arg(struct tfc_builder *b, const char *name, tfc_dtype type) {
  struct tfc_attr attrs[] = {tfc_attr_type("T", type), tfc_attr_int("index", 0)};
  return tfc_add(b, "_Arg", name, NULL, 0, attrs, 2);
}
static uint32_t ret(struct tfc_builder *b, const char *name, struct tfc_output x) {
  struct tfc_attr attrs[] = {tfc_attr_int("index", 0)};
  return tfc_add(b, "_Retval", name, &x, 1, attrs, 1).node;
}

static void builds_a_graph(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL, *more = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  tfc_builder_set_scope(b, "net");
  struct tfc_output x = arg(b, "x", TFC_FLOAT);
  struct tfc_output again = arg(b, "x", TFC_INT32), third = arg(b, "x", TFC_INT32);
  uint32_t r = ret(b, NULL, x);
  tfc_builder_add_control(b, r, again.node);
  tfc_builder_add_control(b, r, third.node);
  tfc_builder_add_control(b, r, again.node);
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_int_equal(g->node_count, 4);
  assert_int_equal(tfc_graph_find(g, TFC_STR("net/x_1")), again.node);
  assert_int_equal(tfc_graph_find(g, TFC_STR("net/x_2")), third.node);
  assert_int_equal(tfc_graph_find(g, TFC_STR("net/_Retval")), r);
  assert_int_equal(g->nodes[r].control_count, 2);
  assert_int_equal(tfc_node_attr_type(g, &g->nodes[r], "T", TFC_DTYPE_NONE), TFC_FLOAT); // the type was inferred
  assert_int_equal(g->consumer_begin[x.node + 1] - g->consumer_begin[x.node], 1);
  assert_int_equal(g->consumers[g->consumer_begin[x.node]].node, r);
  assert_int_equal(g->consumers[g->consumer_begin[again.node]].input, TFC_CONTROL);

  assert_ok(tfc_builder_create(g, &b)); // nodes are added to a finished graph: its nodes keep their ids
  tfc_graph_release(g);
  uint32_t s = ret(b, "net/x", again);
  assert_ok(tfc_builder_finish(b, &more));
  tfc_builder_free(b);
  assert_int_equal(more->node_count, 5);
  assert_int_equal(tfc_graph_find(more, TFC_STR("net/x_3")), s);
  assert_int_equal(tfc_graph_find(more, TFC_STR("net/x_1")), again.node);
  struct tfc_output o;
  assert_ok(tfc_graph_parse_output(more, TFC_STR("net/x_1:0"), &o));
  assert_int_equal(o.node, again.node);
  assert_fails(tfc_graph_parse_output(more, TFC_STR("net/x_1:1"), &o), TFC_INVALID_ARGUMENT, "net/x_1");
  assert_fails(tfc_graph_parse_output(more, TFC_STR("^net/x_1"), &o), TFC_INVALID_ARGUMENT, "--target net/x_1");
  assert_fails(tfc_graph_parse_output(more, TFC_STR("nothing"), &o), TFC_INVALID_ARGUMENT, "'nothing'");
  tfc_graph_release(more);
}

static void refuses_what_cannot_be(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  tfc_add(b, "NoSuchOp", "a", NULL, 0, NULL, 0);
  assert_fails(tfc_builder_finish(b, &g), TFC_UNIMPLEMENTED, "node 'a' (NoSuchOp)");
  tfc_builder_free(b);

  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = arg(b, "x", TFC_FLOAT);
  tfc_add(b, "_Retval", "r", &x, 1, (struct tfc_attr[]){tfc_attr_type("T", TFC_INT32), tfc_attr_int("index", 0)}, 2);
  assert_fails(tfc_builder_finish(b, &g), TFC_INVALID_ARGUMENT, "must be int32, but 'x:0' is float32");
  tfc_builder_free(b);

  assert_ok(tfc_builder_create(NULL, &b));
  tfc_add(b, "_Arg", "x", NULL, 0, (struct tfc_attr[]){tfc_attr_type("T", TFC_INT32)}, 1);
  assert_fails(tfc_builder_finish(b, &g), TFC_INVALID_ARGUMENT, "attribute 'index' is missing");
  tfc_builder_free(b);

  // A number of inputs that is right, but larger than what tfc supports.
  enum { MANY = 65536 };
  static struct tfc_output terms[MANY + 1];
  for (uint32_t count = MANY; count <= MANY + 1; count++) {
    assert_ok(tfc_builder_create(NULL, &b));
    x = arg(b, "x", TFC_FLOAT);
    for (uint32_t i = 0; i < count; i++) terms[i] = x;
    tfc_add(b, "AddN", "sum", terms, count,
            (struct tfc_attr[]){tfc_attr_type("T", TFC_FLOAT), tfc_attr_int("N", count)}, 2);
    if (count <= MANY) {
      assert_ok(tfc_builder_finish(b, &g));
      tfc_graph_release(g);
    } else
      assert_fails(tfc_builder_finish(b, &g), TFC_UNIMPLEMENTED,
                   "node 'sum' (AddN): attribute 'N' says that 'inputs' is 65537 tensors; at most 65536 are supported");
    tfc_builder_free(b);
  }
}

static void cycles_are_named(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = arg(b, "x", TFC_FLOAT), y = arg(b, "y", TFC_FLOAT), z = arg(b, "z", TFC_FLOAT);
  uint32_t outside = ret(b, "outside", x);
  tfc_builder_add_control(b, x.node, z.node);
  tfc_builder_add_control(b, y.node, x.node);
  tfc_builder_add_control(b, z.node, y.node);
  tfc_status s = tfc_builder_finish(b, &g);
  assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
  assert_non_null(strstr(tfc_status_message(s), "cycle of 3 nodes"));
  assert_non_null(strstr(tfc_status_message(s), "'x'"));
  assert_non_null(strstr(tfc_status_message(s), "'y'"));
  assert_non_null(strstr(tfc_status_message(s), "'z'"));
  assert_null(strstr(tfc_status_message(s), "outside"));
  tfc_status_free(s);
  tfc_builder_free(b);
  (void)outside;
}

// Every row of every family has a signature that can be parsed, and no op has two rows.
static void signatures_parse(void **state) {
  (void)state;
  size_t n;
  const struct tfc_op_def *const *ops = tfc_op_list(&n);
  assert_true(n > 0);
  for (size_t i = 0; i < n; i++) {
    struct tfc_arena arena = {0};
    struct tfc_op_signature sig;
    assert_ok(tfc_signature_parse(ops[i], &arena, &sig));
    tfc_arena_deinit(&arena);
    if (i && strcmp(ops[i - 1]->name, ops[i]->name) == 0) fail_msg("op %s has two rows", ops[i]->name);
    assert_ptr_equal(tfc_op_find(tfc_str_from(ops[i]->name)), ops[i]);
  }
}

static void signature_notation(void **state) {
  (void)state;
  static const struct tfc_op_def row = {
      .name = "Test",
      .inputs = "a: T, values: N * T, xs: Tin, ref: Ref(T), n: int32",
      .outputs = "y: Tout, refs: Ref(N * T)",
      .attrs =
          "T: {float, DT_INT32, bfloat16} = DT_FLOAT, N: int >= 2, Tin: list(type) >= 1, Tout: list({int32, "
          "int64}), padding: {'SAME', 'VALID'}, list: list(int) = [1, -2], f: float = 1e-3, b: bool = true, s: "
          "string = 'a,b', shape: shape = [2, -1], u: shape = { unknown_rank: true }, fn: func, e: list(string) = []",
  };
  struct tfc_arena arena = {0};
  struct tfc_op_signature sig;
  assert_ok(tfc_signature_parse(&row, &arena, &sig));
  assert_int_equal(sig.input_count, 5);
  assert_int_equal(sig.output_count, 2);
  assert_int_equal(sig.attr_count, 13);
  assert_true(tfc_str_is(sig.inputs[1].number_attr, "N"));
  assert_true(sig.inputs[2].is_list && sig.inputs[3].is_ref && sig.inputs[4].type == TFC_INT32);
  assert_true(sig.outputs[1].is_ref && tfc_str_is(sig.outputs[1].number_attr, "N"));
  assert_int_equal(sig.attrs[0].allowed_types,
                   TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_BFLOAT16));
  assert_int_equal(sig.attrs[0].default_value.type, TFC_FLOAT);
  assert_true(sig.attrs[1].has_minimum && sig.attrs[1].minimum == 2 && !sig.attrs[1].has_default);
  assert_int_equal(sig.attrs[4].kind, TFC_ATTR_STRING);
  assert_int_equal(sig.attrs[5].default_value.ints[1], -2);
  assert_true(sig.attrs[6].default_value.f == (double)1e-3f);
  assert_true(tfc_str_is(sig.attrs[8].default_value.s, "a,b"));
  assert_int_equal(sig.attrs[9].default_value.shape->dims[1], -1);
  assert_int_equal(sig.attrs[10].default_value.shape->rank, TFC_RANK_UNKNOWN);
  assert_int_equal(sig.attrs[12].kind, TFC_ATTR_LIST_STRING);
  tfc_arena_deinit(&arena);

  struct tfc_op_def bad = {.name = "Bad", .inputs = "a: U", .outputs = "", .attrs = ""};
  assert_fails(tfc_signature_parse(&bad, &arena, &sig), TFC_INVALID_ARGUMENT, "op Bad: 'a: U'");
  tfc_arena_deinit(&arena);
}

static void devices_parse(void **state) {
  (void)state;
  struct tfc_device_spec spec;
  assert_ok(tfc_device_spec_parse(TFC_STR("/job:localhost/replica:0/task:2/device:GPU:1"), &spec));
  assert_true(tfc_str_is(spec.job, "localhost") && spec.replica == 0 && spec.task == 2 && spec.index == 1);
  assert_string_equal(spec.type, "GPU");
  const char *partial[] = {"/gpu:1", "/device:GPU:1", "/device:gpu:1"};
  for (size_t i = 0; i < sizeof partial / sizeof *partial; i++) {
    assert_ok(tfc_device_spec_parse(tfc_str_from(partial[i]), &spec));
    assert_true(spec.job.size == 0 && spec.replica == -1 && spec.task == -1 && spec.index == 1);
    assert_string_equal(spec.type, "GPU");
  }
  assert_ok(tfc_device_spec_parse(TFC_STR("/device:GPU:*"), &spec));
  assert_int_equal(spec.index, -1);
  assert_ok(tfc_device_spec_parse(TFC_STR(""), &spec));
  assert_true(spec.job.size == 0 && spec.task == -1 && !spec.type[0] && spec.index == -1);
  assert_fails(tfc_device_spec_parse(TFC_STR("/gpu:x"), &spec), TFC_INVALID_ARGUMENT, "'x'");
  assert_fails(tfc_device_spec_parse(TFC_STR("gpu:0"), &spec), TFC_INVALID_ARGUMENT, "gpu:0");
  const char *whole[] = {"job:a_1/device:GPU:1", "//job:*/task:1/", "/device:XLA_GPU:*", "/"};
  const char *malformed[] = {"/job:", "/job:1a", "/job:a-b", "/device::0", "/device:1X:0", "/device:C+U:0", "/device:"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    assert_ok(tfc_device_spec_parse(tfc_str_from(whole[i]), &spec));
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
    assert_fails(tfc_device_spec_parse(tfc_str_from(malformed[i]), &spec), TFC_INVALID_ARGUMENT, malformed[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(builds_a_graph),   cmocka_unit_test(refuses_what_cannot_be), cmocka_unit_test(cycles_are_named),
      cmocka_unit_test(signatures_parse), cmocka_unit_test(signature_notation),     cmocka_unit_test(devices_parse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
