// Gradients that tfc builds are compared with those that TensorFlow built into the example graphs, and with finite
// differences.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/graph/import.h"
#include "runtime/pass/function_gradient.h"
#include "runtime/pass/pass.h"
#include "tests/common/eval.h"

static struct tfc_graph *load(const char *name) {
  struct tfc_graph *g = NULL;
  char *path = tfc_format("%s/examples/%s.pb", TFC_SOURCE_DIR, name);
  assert_ok(tfc_graph_load(path, NULL, &g));
  free(path);
  return g;
}

static struct tfc_output output_of(const struct tfc_graph *g, tfc_str name) {
  struct tfc_output o;
  assert_ok(tfc_graph_parse_output(g, name, &o));
  return o;
}

// Feeds random values to every placeholder and variable: integers below `below`, floats around 0.
static void feed_all(struct eval *e, const struct tfc_graph *g, const struct tfc_shapes *shapes, int64_t below) {
  struct tfc_random random;
  tfc_random_init(&random, 5);
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!n->def || !(n->def->flags & (TFC_OP_PLACEHOLDER | TFC_OP_VARIABLE))) continue;
    struct tfc_shape shape = shapes->shapes[n->output_begin];
    struct tfc_tensor t;
    for (int d = 0; d < shape.rank; d++)
      if (shape.dims[d] < 0) shape.dims[d] = 4;
    tfc_dtype type = tfc_dtype_base(g->output_dtypes[n->output_begin]);
    assert_ok(tfc_tensor_create(type, &shape, &t));
    for (int64_t k = 0; k < tfc_tensor_elements(&t); k++)
      if (type == TFC_FLOAT)
        ((float *)t.data)[k] = (float)(tfc_random_unit(&random) - 0.5) * 0.2f;
      else if (type == TFC_INT32)
        ((int32_t *)t.data)[k] = (int32_t)tfc_random_below(&random, (uint64_t)below);
      else
        fail_msg("%s", tfc_dtype_name(type));
    eval_feed(e, i, &t);
    tfc_tensor_release(&t);
  }
}

static bool same_bits(const struct tfc_tensor *a, const struct tfc_tensor *b) {
  return a->dtype == b->dtype && tfc_shape_equal(&a->shape, &b->shape) && memcmp(a->data, b->data, a->size) == 0;
}

// Checks that d(loss)/d(xs), as tfc builds it, has the same bits as the tensors `theirs` of the graph.
static void compare(const char *graph, const char *loss, const char *const *xs, const char *const *theirs,
                    uint32_t count) {
  struct tfc_graph *g = load(graph), *more = NULL;
  struct tfc_output y = output_of(g, tfc_str_from(loss)), x[8], grads[8];
  struct tfc_shapes shapes = {0};
  struct eval e = {0};
  for (uint32_t i = 0; i < count; i++) x[i] = output_of(g, tfc_str_from(xs[i]));
  assert_ok(tfc_gradients(g, &y, 1, x, count, NULL, &more, grads));
  assert_ok(tfc_infer_shapes(more, NULL, 0, &shapes));
  assert_ok(eval_create(more, &e));
  feed_all(&e, more, &shapes, 10);
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_tensor *mine, *other;
    assert_true(tfc_output_valid(grads[i]));
    assert_ok(eval_output(&e, grads[i], &mine));
    assert_ok(eval_output(&e, output_of(more, tfc_str_from(theirs[i])), &other));
    if (!same_bits(mine, other)) fail_msg("%s: the gradient of %s is not %s", graph, xs[i], theirs[i]);
  }
  eval_deinit(&e);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(more);
  tfc_graph_release(g);
}

static void ridge_is_tensorflows(void **state) {
  (void)state;
  compare("ridge", "loss:0", (const char *[]){"w:0", "b:0"}, (const char *[]){"grad_w:0", "grad_b:0"}, 2);
}

static void mlp_is_tensorflows(void **state) {
  (void)state;
  compare("mlp", "loss:0", (const char *[]){"hidden1/kernel:0", "hidden1/bias:0", "hidden2/kernel:0"},
          (const char *[]){"gradients/hidden1/MatMul_grad/tuple/control_dependency_1:0",
                           "gradients/hidden1/add_grad/tuple/control_dependency_1:0",
                           "gradients/hidden2/MatMul_grad/tuple/control_dependency_1:0"},
          3);
}

// The unrolled language model: every tensor of which TensorFlow's graph computes the norm, to clip it, has the bits of
// one of tfc's gradients.
static void rnnlm_is_tensorflows(void **state) {
  (void)state;
  struct tfc_graph *g = load("rnnlm"), *more = NULL;
  struct tfc_output y = output_of(g, TFC_STR("loss:0")), xs[64], grads[64];
  struct tfc_shapes shapes = {0};
  struct eval e = {0};
  uint32_t count = 0, checked = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (tfc_str_is(g->nodes[i].op, "VariableV2") && count < 64) xs[count++] = (struct tfc_output){i, 0};
  assert_ok(tfc_gradients(g, &y, 1, xs, count, NULL, &more, grads));
  assert_ok(tfc_infer_shapes(more, NULL, 0, &shapes));
  assert_ok(eval_create(more, &e));
  feed_all(&e, more, &shapes, 1000);
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_tensor *theirs, *mine;
    bool found = false;
    if (!tfc_str_is(g->nodes[i].op, "L2Loss")) continue;
    struct tfc_output in = tfc_node_inputs(g, &g->nodes[i])[0];
    // (These are the rows of sparse gradients.)
    if (tfc_str_is(g->nodes[in.node].op, "ConcatV2") || tfc_str_is(g->nodes[in.node].op, "Reshape")) continue;
    assert_ok(eval_output(&e, in, &theirs));
    for (uint32_t k = 0; k < count && !found; k++)
      if (tfc_output_valid(grads[k])) {
        assert_ok(eval_output(&e, grads[k], &mine));
        found = same_bits(mine, theirs);
      }
    if (!found) fail_msg("no gradient here is %.*s", TFC_STR_ARG(g->nodes[in.node].name));
    checked++;
  }
  assert_true(checked >= 4);
  eval_deinit(&e);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(more);
  tfc_graph_release(g);
}

// Compares the gradient of y = sum(tanh(x w + b)^2 gathered), in float64, with central differences.
static void finite_differences_agree(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_tensor values[3];
  struct tfc_output in[3], grads[3];
  const struct tfc_shape dims[3] = {TFC_SHAPE(3, 4), TFC_SHAPE(4, 2), TFC_SHAPE(2)};
  struct tfc_random random;
  tfc_random_init(&random, 3);
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < 3; i++) {
    in[i] = tfc_add_placeholder(b, NULL, TFC_DOUBLE, &dims[i]);
    assert_ok(tfc_tensor_create(TFC_DOUBLE, &dims[i], &values[i]));
    for (int64_t k = 0; k < tfc_tensor_elements(&values[i]); k++)
      ((double *)values[i].data)[k] = tfc_random_unit(&random) - 0.5;
  }
  struct tfc_output h = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", tfc_add2(b, "MatMul", in[0], in[1]), in[2]));
  struct tfc_output rows =
      tfc_add3(b, "GatherV2", h, tfc_add_i32_vector(b, (int32_t[]){2, 0, 2}, 3), tfc_add_i32(b, 0));
  struct tfc_output both = tfc_add2(b, "AddV2", tfc_add1(b, "Square", rows), tfc_add2(b, "Mul", rows, in[2]));
  struct tfc_output y = tfc_add2(b, "Sum", both, tfc_add_i32_vector(b, (int32_t[]){0, 1}, 2));
  assert_ok(tfc_builder_gradients(b, &y, 1, in, 3, NULL, grads));
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  for (int i = 0; i < 3; i++)
    for (int64_t k = 0; k < tfc_tensor_elements(&values[i]); k++) {
      double sides[2], slope = 0;
      double *at = (double *)values[i].data + k, saved = *at;
      for (int side = -1; side <= 1; side++) {
        struct eval e;
        const struct tfc_tensor *t;
        *at = saved + 1e-5 * side;
        assert_ok(eval_create(g, &e));
        for (int j = 0; j < 3; j++) eval_feed(&e, in[j].node, &values[j]);
        assert_ok(eval_output(&e, side ? y : grads[i], &t));
        if (side)
          sides[side > 0] = *(double *)t->data;
        else
          slope = ((double *)t->data)[k];
        eval_deinit(&e);
      }
      *at = saved;
      double difference = (sides[1] - sides[0]) / 2e-5;
      if (!(fabs(slope - difference) <= 1e-8 + 1e-6 * fabs(slope)))
        fail_msg("input %d, element %d: %.12g, by differences %.12g", i, (int)k, slope, difference);
    }
  for (int i = 0; i < 3; i++) tfc_tensor_release(&values[i]);
  tfc_graph_release(g);
}

// y = s + fill([n], 1): n is 1 by default, but 3 is fed, and then s is broadcast. So the gradient of s must be a sum,
// although the default does not show that.
static void defaults_may_be_fed(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_output grad;
  struct tfc_tensor three;
  struct eval e;
  const struct tfc_tensor *t;
  const struct tfc_shape one = TFC_SHAPE(1);
  const struct tfc_attr attr = {.name = TFC_STR("shape"), .kind = TFC_ATTR_SHAPE, .shape = &one};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output given = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_output n = tfc_add(b, "PlaceholderWithDefault", "n", &given, 1, &attr, 1);
  struct tfc_output s = tfc_add2(b, "Fill", tfc_add_i32_vector(b, (int32_t[]){1}, 1), tfc_add_scalar(b, TFC_FLOAT, 2));
  struct tfc_output y = tfc_add2(b, "AddV2", s, tfc_add2(b, "Fill", n, tfc_add_scalar(b, TFC_FLOAT, 1)));
  assert_ok(tfc_builder_gradients(b, &y, 1, &s, 1, NULL, &grad));
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_tensor_create(TFC_INT32, &one, &three));
  *(int32_t *)three.data = 3;
  assert_ok(eval_create(g, &e));
  eval_feed(&e, n.node, &three);
  assert_ok(eval_output(&e, grad, &t));
  assert_int_equal(tfc_tensor_elements(t), 1);
  assert_true(*(float *)t->data == 3);
  eval_deinit(&e);
  tfc_tensor_release(&three);
  tfc_graph_release(g);
}

static void what_has_none_says_so(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_output grads[2];
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2));
  struct tfc_output other = tfc_add_placeholder(b, "other", TFC_FLOAT, &TFC_SHAPE(2));
  struct tfc_output y = tfc_add1(b, "NextIteration", x); // outside of any loop
  assert_fails(tfc_builder_gradients(b, &y, 1, &x, 1, NULL, grads), TFC_UNIMPLEMENTED, "node 'NextIteration'");
  struct tfc_output z = tfc_add1(b, "Square", x);
  assert_ok(tfc_builder_gradients(b, &z, 1, (struct tfc_output[]){x, other}, 2, NULL, grads));
  assert_true(tfc_output_valid(grads[0]));
  assert_false(tfc_output_valid(grads[1]));
  tfc_builder_free(b);
}

// If a node names an unknown gradient (`_gradient_op_type`), that is an error: no other gradient replaces it. If it
// names a known one, that gradient is used.
static void custom_gradients_are_not_ignored(void **state) {
  (void)state;
  static const char *const names[] = {"CustomGradient-7", "Neg"};
  for (int k = 0; k < 2; k++) {
    struct tfc_builder *b = NULL;
    struct tfc_graph *g = NULL;
    struct tfc_output grad;
    struct eval e;
    const struct tfc_tensor *t;
    struct tfc_attr attr = tfc_attr_string("_gradient_op_type", tfc_str_from(names[k]));
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output x = tfc_add1(b, "Square", tfc_add_scalar(b, TFC_FLOAT, 3));
    struct tfc_output y = tfc_add(b, "Exp", "custom", &x, 1, &attr, 1);
    tfc_status s = tfc_builder_gradients(b, &y, 1, &x, 1, NULL, &grad);
    if (k == 0) {
      assert_fails(s, TFC_UNIMPLEMENTED, "node 'custom': its attribute _gradient_op_type names the gradient 'CustomG");
      tfc_builder_free(b);
      continue;
    }
    assert_ok(s);
    assert_ok(tfc_builder_finish(b, &g));
    tfc_builder_free(b);
    assert_ok(eval_create(g, &e));
    assert_ok(eval_output(&e, grad, &t));
    assert_true(*(float *)t->data == -1);
    eval_deinit(&e);
    tfc_graph_release(g);
  }
}

// The gradient of f(x, y, unused) = (x * y, exp(x)) as a function of its arguments and of the gradients of its results.
static void functions_have_functions(void **state) {
  (void)state;
  enum { ARGS = 3, RETS = 2 };
  struct tfc_builder *b = NULL;
  struct tfc_graph *body = NULL;
  struct tfc_function f = {.name = TFC_STR("f"), .arg_count = ARGS, .ret_count = RETS, .stateful = true}, out = {0};
  struct tfc_output arg[ARGS];
  uint32_t args[ARGS], rets[RETS];
  assert_ok(tfc_builder_create(NULL, &b));
  for (uint32_t i = 0; i < ARGS; i++) {
    struct tfc_attr attrs[] = {tfc_attr_type("T", TFC_FLOAT), tfc_attr_int("index", i)};
    arg[i] = tfc_add(b, "_Arg", "arg", NULL, 0, attrs, 2);
    args[i] = arg[i].node;
  }
  const struct tfc_output results[RETS] = {tfc_add2(b, "Mul", arg[0], arg[1]), tfc_add1(b, "Exp", arg[0])};
  for (uint32_t i = 0; i < RETS; i++) {
    struct tfc_attr index = tfc_attr_int("index", i);
    rets[i] = tfc_add(b, "_Retval", "ret", &results[i], 1, &index, 1).node;
  }
  assert_ok(tfc_builder_finish(b, &body));
  tfc_builder_free(b);
  f.body = body, f.args = args, f.rets = rets;
  assert_ok(tfc_function_gradient(tfc_builder_gradients, &f, &out));
  assert_int_equal(out.arg_count, ARGS + RETS);
  assert_int_equal(out.ret_count, ARGS);
  assert_true(out.stateful && tfc_str_is(out.name, "f"));
  struct eval e = {0};
  assert_ok(eval_create(out.body, &e));
  const float given[ARGS + RETS] = {2, 3, 50, 10, 100}; // x, y, unused, and the gradients of both results
  for (uint32_t i = 0; i < ARGS + RETS; i++) {
    const struct tfc_attr *index = tfc_node_attr(out.body, &out.body->nodes[out.args[i]], "index");
    assert_true(index && index->i == i);
    struct tfc_tensor t;
    assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE_SCALAR, &t));
    *(float *)t.data = given[i];
    eval_feed(&e, out.args[i], &t);
    tfc_tensor_release(&t);
  }
  const double expected[ARGS] = {10 * 3 + 100 * exp(2), 10 * 2, 0};
  for (uint32_t i = 0; i < ARGS; i++) {
    const struct tfc_node *n = &out.body->nodes[out.rets[i]];
    const struct tfc_attr *index = tfc_node_attr(out.body, n, "index");
    const struct tfc_tensor *t;
    assert_true(tfc_str_is(n->op, "_Retval") && index && index->i == i);
    assert_int_equal(n->attr_count, body->nodes[rets[0]].attr_count); // the same attributes as any result has
    assert_ok(eval_output(&e, out.body->inputs[n->input_begin], &t));
    assert_true(fabs((double)*(float *)t->data - expected[i]) < 1e-3);
  }
  eval_deinit(&e);
  tfc_graph_release((struct tfc_graph *)(uintptr_t)out.body);
  free((uint32_t *)(uintptr_t)out.args);
  tfc_graph_release(body);
}

// Each computation of gradients has a scope of its own, whose names contain nothing else.
static void scopes(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_output grad;
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2));
  struct tfc_output y = tfc_add1(b, "Exp", tfc_add1(b, "Square", x));
  static const char *const prefixes[] = {"gradients/", "gradients_1/", "gradients_2/"};
  for (int k = 0; k < 3; k++) {
    const uint32_t before = tfc_builder_node_count(b);
    assert_ok(tfc_builder_gradients(b, &y, 1, &x, 1, NULL, &grad));
    assert_true(tfc_builder_node_count(b) > before + 1);
    for (uint32_t i = before; i < tfc_builder_node_count(b); i++) {
      const tfc_str name = tfc_builder_node(b, i)->name;
      if (!tfc_str_starts(name, prefixes[k])) fail_msg("%.*s", TFC_STR_ARG(name));
    }
  }
  tfc_builder_free(b);
}

// A loop x = x * WHAT while i < 3. Loops that other programs make wrongly are refused, with the node's name.
static struct tfc_output loop_of(struct tfc_builder *b, struct tfc_output x, int wrong) {
  struct tfc_attr name = tfc_attr_string("frame_name", TFC_STR("loop"));
  struct tfc_attr constant[] = {name, tfc_attr_bool("is_constant", true)};
  struct tfc_output zero = tfc_add_i32(b, 0), one_outside = tfc_add_i32(b, 1), three = tfc_add_i32(b, 3);
  struct tfc_output k = tfc_add_scalar(b, TFC_FLOAT, 2);
  struct tfc_output enter_x = tfc_add(b, "Enter", "enter_x", &x, 1, &name, 1);
  struct tfc_output enter_i = tfc_add(b, "Enter", "enter_i", &zero, 1, &name, 1);
  struct tfc_output limit = tfc_add(b, "Enter", "limit", &three, 1, constant, 2);
  struct tfc_output one = tfc_add(b, "Enter", "one", &one_outside, 1, constant, 2);
  struct tfc_output two = tfc_add(b, "Enter", "two", &k, 1, constant, 2);
  struct tfc_output merge_x = tfc_add(b, "Merge", "merge_x", (struct tfc_output[]){enter_x, enter_x}, 2, NULL, 0);
  struct tfc_output merge_i = tfc_add(b, "Merge", "merge_i", (struct tfc_output[]){enter_i, enter_i}, 2, NULL, 0);
  struct tfc_output less = tfc_add2(b, "Less", merge_i, limit);
  struct tfc_output condition = tfc_add(b, "LoopCond", "condition", &less, 1, NULL, 0);
  struct tfc_output switch_x = tfc_add(b, "Switch", "switch_x", (struct tfc_output[]){merge_x, condition}, 2, NULL, 0);
  struct tfc_output switch_i = tfc_add(b, "Switch", "switch_i", (struct tfc_output[]){merge_i, condition}, 2, NULL, 0);
  struct tfc_output in_x = {switch_x.node, 1}, in_i = {switch_i.node, 1};
  struct tfc_output body = tfc_add2(b, "Mul", in_x, wrong == 1 ? merge_x : two);
  struct tfc_output next_x = tfc_add(b, "NextIteration", "next_x", &body, 1, NULL, 0);
  struct tfc_output more = tfc_add2(b, "AddV2", in_i, one);
  struct tfc_output next_i = tfc_add(b, "NextIteration", "next_i", &more, 1, NULL, 0);
  tfc_builder_set_input(b, merge_x.node, 1, next_x);
  tfc_builder_set_input(b, merge_i.node, 1, next_i);
  return tfc_add(b, "Exit", "exit_x", &switch_x, 1, NULL, 0);
}
static void loops_are_checked(void **state) {
  (void)state;
  for (int wrong = 0; wrong < 2; wrong++) {
    struct tfc_builder *b = NULL;
    struct tfc_output grad;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2));
    struct tfc_output y = loop_of(b, x, wrong);
    tfc_status s = tfc_builder_gradients(b, &y, 1, &x, 1, NULL, &grad);
    if (wrong)
      assert_fails(s, TFC_UNIMPLEMENTED, "uses the loop's variable 'merge_x' outside of its body");
    else
      assert_ok(s);
    tfc_builder_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ridge_is_tensorflows),
      cmocka_unit_test(mlp_is_tensorflows),
      cmocka_unit_test(rnnlm_is_tensorflows),
      cmocka_unit_test(finite_differences_agree),
      cmocka_unit_test(what_has_none_says_so),
      cmocka_unit_test(defaults_may_be_fed),
      cmocka_unit_test(custom_gradients_are_not_ignored),
      cmocka_unit_test(functions_have_functions),
      cmocka_unit_test(scopes),
      cmocka_unit_test(loops_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
