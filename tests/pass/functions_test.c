#include "tests/common/test.h"

#include <stdlib.h>

#include "runtime/base/interrupt.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "runtime/pass/step_internal.h"

static uint32_t count_op(const struct tfc_graph *g, const char *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->node_count; i++) n += tfc_str_is(g->nodes[i].op, op);
  return n;
}

// Loops of the second generation (While ops), forward and backward, become frames. Nodes of the graph keep their ids
// and names.
static void loops_become_frames(void **state) {
  (void)state;
  struct tfc_graph *g = NULL, *lowered = NULL;
  struct tfc_shapes shapes = {0};
  uint32_t *origin = NULL, keys = 0;
  assert_ok(tfc_graph_load(TFC_SOURCE_DIR "/examples/nmt_while_v2.pb", NULL, &g));
  uint32_t loops = count_op(g, "While") + count_op(g, "StatelessWhile");
  assert_true(loops >= 4);
  assert_ok(tfc_lower_functions(g, &lowered, &origin));
  assert_int_equal(count_op(lowered, "While") + count_op(lowered, "StatelessWhile"), 0);
  assert_true(count_op(lowered, "LoopCond") >= loops);
  assert_true(lowered->has_frames);
  for (uint32_t i = 0; i < lowered->node_count; i++) {
    const struct tfc_node *n = &lowered->nodes[i];
    assert_false(n->def && (n->def->flags & TFC_OP_FUNCTIONAL));
    assert_true(origin[i] < g->node_count);
    if (i < g->node_count) {
      assert_true(tfc_str_equal(n->name, g->nodes[i].name));
      assert_int_equal(n->output_count, g->nodes[i].output_count);
      assert_int_equal(origin[i], i);
    } else {
      keys += tfc_str_starts(tfc_node_attr_string(lowered, n, "_tfc_key", ""), "function/");
    }
  }
  assert_true(keys > 100);
  assert_ok(tfc_infer_shapes(lowered, NULL, 0, &shapes));
  tfc_shapes_deinit(&shapes);
  free(origin);
  tfc_graph_release(lowered);
  tfc_graph_release(g);
}

#define ARG(name) "input_arg { name: '" name "' type: DT_FLOAT } "
#define FUNCTION(name, op, ...)                                                                                        \
  "function { signature { name: '" name                                                                                \
  "' " ARG("x") "output_arg { name: 'y' type: DT_FLOAT } } node_def { name: "                                          \
                "'n' op: '" op "' input: " __VA_ARGS__                                                                 \
                " attr { key: 'T' value { type: DT_FLOAT } } } ret { key: 'y' value: "                                 \
                "'n:y:0' } } "

static const char branches[] =
    "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { "
    "shape "
    "{ } } } }"
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
    "shape { dim { size: 3 } } } } }"
    "node { name: 'if' op: 'If' input: 'p' input: 'x' attr { key: 'Tcond' value { type: DT_BOOL } }"
    " attr { key: 'Tin' value { list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } }"
    " attr { key: 'then_branch' value { func { name: 'neg' } } } attr { key: 'else_branch' value { func { name: "
    "'outer' } "
    "} } }"
    "node { name: 'self' op: 'PartitionedCall' input: 'x' attr { key: 'Tin' value { list { type: DT_FLOAT } } }"
    " attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'f' value { func { name: 'endless' } } } }"
    "library { " FUNCTION("neg", "Neg", "'x'")
        FUNCTION("exp", "Exp", "'x'") "function { signature { name: 'outer' " ARG(
            "x") "output_arg { name: 'y' type: DT_FLOAT } } node_def { name: "
                 "'call' op: 'exp' input: 'x' } ret { key: 'y' value: "
                 "'call:y:0' } }"
                 "function { signature { name: 'endless' " ARG(
                     "x") "output_arg { name: 'y' type: DT_FLOAT } } node_def { name: 'call' op: 'endless' input: 'x' "
                          "} ret { key: "
                          "'y' value: 'call:y:0' } } }";

static void branches_become_switches(void **state) {
  (void)state;
  struct tfc_graph *g = NULL, *lowered = NULL;
  struct tfc_shapes shapes = {0};
  char text[TFC_SHAPE_TEXT];
  assert_ok(tfc_graph_parse(tfc_str_from(branches), "branches.pbtxt", NULL, &g));
  assert_int_equal(g->function_count, 4);
  uint32_t id = tfc_graph_find(g, TFC_STR("if"));
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  assert_string_equal(tfc_shape_show(&shapes.shapes[g->nodes[id].output_begin], text), "[3]");
  tfc_shapes_deinit(&shapes);
  assert_ok(tfc_lower_functions(g, &lowered, NULL)); // a function that calls itself is lowered to a limited depth only
  const struct tfc_node *n = &lowered->nodes[id];
  assert_true(tfc_str_is(n->op, "Identity"));
  const struct tfc_node *merge = &lowered->nodes[tfc_node_inputs(lowered, n)[0].node];
  assert_true(tfc_str_is(merge->op, "Merge"));
  assert_int_equal(n->control_count, 1); // a control input: it waits for the end of the branch
  uint32_t neg = tfc_graph_find(lowered, TFC_STR("if/then/n")),
           exp = tfc_graph_find(lowered, TFC_STR("if/else/call/n"));
  assert_true(neg != TFC_NONE && exp != TFC_NONE);
  assert_true(tfc_str_is(lowered->nodes[neg].op, "Neg") && tfc_str_is(lowered->nodes[exp].op, "Exp"));
  assert_true(tfc_str_is(tfc_node_attr_string(lowered, &lowered->nodes[exp], "_tfc_key", ""), "function/exp:n"));
  struct tfc_output in = tfc_node_inputs(lowered, &lowered->nodes[neg])[0];
  assert_true(tfc_str_is(lowered->nodes[in.node].op, "Switch"));
  assert_int_equal(in.index, 1);
  assert_ok(tfc_infer_shapes(lowered, NULL, 0, &shapes));
  assert_string_equal(tfc_shape_show(&shapes.shapes[n->output_begin], text), "[3]");
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(lowered);
  tfc_graph_release(g);
}

// 41 small functions, of which all but one call the one before twice: 2^40 calls. Lowering refuses them. Shape
// inference follows only a limited number of calls. An interrupt or a time limit of the program stops both.
static struct tfc_graph *make_bomb(int depth) {
  struct tfc_text text = {0};
  struct tfc_graph *g = NULL;
  tfc_text_printf(&text,
                  "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } node { name: "
                  "'call' op: 'f%d' input: 'x' } library { function { signature { name: 'f0' input_arg { name: 'x' "
                  "type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } ret { key: 'y' value: 'x' } } ",
                  depth);
  for (int i = 1; i <= depth; i++)
    tfc_text_printf(
        &text,
        "function { signature { name: 'f%d' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' "
        "type: DT_FLOAT } } node_def { name: 'a' op: 'f%d' input: 'x' } node_def { name: 'b' op: 'f%d' input: "
        "'a:y:0' } ret { key: 'y' value: 'b:y:0' } } ",
        i, i - 1, i - 1);
  tfc_text_printf(&text, "}");
  assert_ok(tfc_graph_parse((tfc_str){text.data, text.size}, "bomb.pbtxt", NULL, &g));
  tfc_text_deinit(&text);
  return g;
}

static void bombs_are_refused(void **state) {
  (void)state;
  struct tfc_graph *g = make_bomb(40), *lowered = NULL;
  struct tfc_shapes shapes = {0};
  assert_fails(tfc_lower_functions(g, &lowered, NULL), TFC_OUT_OF_RANGE, "node 'call' (f40): with function 'f40'");
  assert_fails(tfc_lower_loaded(&g), TFC_OUT_OF_RANGE, "more than 1048576 nodes");
  assert_ok(tfc_infer_shapes(g, NULL, 0, &shapes));
  tfc_shapes_deinit(&shapes);
  static atomic_bool stop;
  atomic_store(&stop, true);
  tfc_interrupt_on(&stop);
  assert_fails(tfc_infer_shapes(g, NULL, 0, &shapes), TFC_CANCELLED, "inferring shapes");
  tfc_graph_release(g);
  assert_fails(tfc_graph_parse(TFC_STR("node { name: 'a' op: 'NoOp' }"), "a.pbtxt", NULL, &g), TFC_CANCELLED,
               "reading text");
  tfc_interrupt_on(NULL);
  g = make_bomb(10);
  tfc_interrupt_at(1, "--time 0s");
  assert_fails(tfc_lower_functions(g, &lowered, NULL), TFC_DEADLINE_EXCEEDED, "lowering functions: --time 0s");
  tfc_interrupt_at(0, NULL);
  assert_ok(tfc_lower_functions(g, &lowered, NULL));
  tfc_graph_release(lowered);
  tfc_graph_release(g);
}

// A graph is not lowered if a function has other results than its call declares, and the error says which. (For the
// same graphs tests/ops/hostile_test.c runs the calls after lowering has failed, and sees only their errors.)
static void results_are_as_declared(void **state) {
  (void)state;
  static const struct {
    const char *graph, *error;
  } cases[] = {
      {"call_without_results", "function 'f' has 0 results, but 1 are asked for"},
      {"call_with_fewer_results", "function 'f' has 1 results, but 2 are asked for"},
      {"call_with_result_of_another_type", "result 0 of function 'f' is int64, but string is asked for"},
      {"branches_with_result_of_another_type", "result 0 of function 'f' is int64, but string is asked for"},
      {"loop_that_changes_its_type", "result 0 of function 'f' is string, but int64 is asked for"},
      {"gradient_of_another_type", "result 0 of function 'f' is float32, but string is asked for"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_graph *g = NULL, *lowered = NULL;
    char *path = tfc_format(TFC_SOURCE_DIR "/tests/ops/hostile/%s.pbtxt", cases[i].graph);
    assert_ok(tfc_graph_load(path, NULL, &g));
    assert_fails(tfc_lower_functions(g, &lowered, NULL), TFC_INVALID_ARGUMENT, cases[i].error);
    tfc_graph_release(g);
    free(path);
  }
}

// A node is known to write a file even if the WriteFile is at the end of a long chain of calls that is also a cycle.
static void effects_are_found_at_any_depth(void **state) {
  (void)state;
  enum { DEPTH = 3000 };
  struct tfc_text text = {0};
  struct tfc_graph *g = NULL;
  tfc_text_printf(&text,
                  "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } node { name: "
                  "'writes' op: 'f0' input: 'x' } node { name: 'does_not' op: 'g' input: 'x' } library { ");
  for (int i = 0; i < DEPTH; i++)
    tfc_text_printf(
        &text,
        "function { signature { name: 'f%d' input_arg { name: 'x' type: DT_STRING } output_arg { name: 'y' "
        "type: DT_STRING } } node_def { name: 'a' op: 'f%d' input: 'x' } %s ret { key: 'y' value: 'a:y:0' } "
        "control_ret { key: 'w' value: 'a' } } ",
        i, (i + 1) % DEPTH, i == DEPTH - 1 ? "node_def { name: 'w' op: 'WriteFile' input: 'x' input: 'x' }" : "");
  tfc_text_printf(&text,
                  "function { signature { name: 'g' input_arg { name: 'x' type: DT_STRING } output_arg { name: 'y' "
                  "type: DT_STRING } } ret { key: 'y' value: 'x' } } }");
  assert_ok(tfc_graph_parse((tfc_str){text.data, text.size}, "deep.pbtxt", NULL, &g));
  tfc_text_deinit(&text);
  uint8_t effects[3];
  assert_int_equal(g->node_count, 3);
  assert_ok(tfc_node_effects(g, effects));
  assert_int_equal(effects[tfc_graph_find(g, TFC_STR("writes"))], TFC_EFFECT_SAVE);
  assert_int_equal(effects[tfc_graph_find(g, TFC_STR("does_not"))], TFC_EFFECT_NONE);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_become_frames),
      cmocka_unit_test(branches_become_switches),
      cmocka_unit_test(bombs_are_refused),
      cmocka_unit_test(results_are_as_declared),
      cmocka_unit_test(effects_are_found_at_any_depth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
