// Tests how tfc infers what a step is (feeds, targets, initialisers) if the user does not say: on the example graphs,
// and on small graphs that test one rule each.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/pass/step.h"

#define EXAMPLE(name) TFC_SOURCE_DIR "/examples/" name ".pb"

static struct tfc_graph *load(const char *path) {
  struct tfc_graph *g = NULL;
  assert_ok(tfc_graph_load(path, NULL, &g));
  return g;
}

static void check_training(const char *path, uint32_t feed_count) {
  struct tfc_graph *g = load(path);
  struct tfc_step_spec step = {0};
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 16}, &step));
  for (uint32_t i = 0; i < step.note_count; i++) print_message("%.*s\n", TFC_STR_ARG(step.notes[i]));
  assert_int_equal(step.target_count, 1);
  assert_true(tfc_str_is(g->nodes[step.targets[0]].name, "train_op"));
  assert_int_equal(step.init_count, 1);
  assert_true(tfc_str_is(g->nodes[step.inits[0]].name, "init"));
  assert_int_equal(step.feed_count, feed_count);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
}

static void test_examples(void **state) {
  (void)state;
  check_training(EXAMPLE("nmt"), 3);
  check_training(EXAMPLE("rnnlm"), 2);
  check_training(EXAMPLE("mlp"), 2);
  check_training(EXAMPLE("ridge"), 2);
}

// In graphs with control flow or functions, and in a SavedModel with a signature, a step is found and every feed has a
// shape.
static void test_other_examples(void **state) {
  (void)state;
  static const char *const names[] = {"nmt_while.pb",    "nmt_while_v2.pb", "transformer.pb", "resnet50.pb",
                                      "inception_v3.pb", "lstm_grid.pb",    "saved_model"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[512];
    struct tfc_step_spec step = {0};
    snprintf(path, sizeof path, "%s/examples/%s", TFC_SOURCE_DIR, names[i]);
    struct tfc_graph *g = load(path);
    assert_ok(tfc_status_annotate(tfc_step_infer(g, &(struct tfc_step_request){.batch = 2}, &step), "%s", names[i]));
    print_message("%s\n", names[i]);
    for (uint32_t k = 0; k < step.note_count; k++) print_message("  %.*s\n", TFC_STR_ARG(step.notes[k]));
    assert_true(step.target_count + step.fetch_count > 0);
    assert_true(step.feed_count > 0);
    if (!tfc_str_is(tfc_str_from(names[i]), "saved_model"))
      assert_true(tfc_str_is(g->nodes[step.targets[0]].name, "train_op"));
    tfc_step_spec_deinit(&step);
    tfc_graph_release(g);
  }
}

static const struct tfc_step_feed *feed_named(const struct tfc_step_spec *step, const char *name) {
  for (uint32_t i = 0; i < step->feed_count; i++)
    if (tfc_str_is(step->feeds[i].name, name)) return &step->feeds[i];
  fail_msg("no feed %s", name);
  return NULL;
}

static void test_ranges(void **state) {
  (void)state;
  struct tfc_graph *g = load(EXAMPLE("nmt"));
  struct tfc_step_spec step = {0};
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){0}, &step));
  static const char *const names[] = {"source:0", "target_in:0", "target_out:0"};
  for (int i = 0; i < 3; i++) { // token ids: rows of the embedding, classes of the softmax
    const struct tfc_step_feed *f = feed_named(&step, names[i]);
    assert_true(f->low == 0 && f->high == 8000);
    struct tfc_tensor a = {0}, b = {0};
    assert_ok(tfc_step_synthetic(f, 1, &a));
    assert_ok(tfc_step_synthetic(f, 1, &b));
    assert_int_equal(a.size, 32 * 20 * 4);
    assert_memory_equal(a.data, b.data, a.size);
    int64_t largest = 0;
    for (int64_t k = 0; k < 640; k++) {
      int64_t v = tfc_tensor_int(&a, k);
      assert_in_range(v, 0, 7999);
      if (v > largest) largest = v;
    }
    assert_true(largest > 4000);
    tfc_tensor_release(&a);
    tfc_tensor_release(&b);
  }
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
  g = load(EXAMPLE("mlp"));
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 7}, &step));
  assert_true(feed_named(&step, "labels:0")->high == 10);
  assert_int_equal(feed_named(&step, "x:0")->shape.dims[0], 7);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
}

static void test_given(void **state) {
  (void)state;
  struct tfc_graph *g = load(EXAMPLE("mlp"));
  struct tfc_step_spec step = {0};
  struct tfc_output loss, x;
  assert_ok(tfc_graph_parse_output(g, TFC_STR("loss:0"), &loss));
  assert_ok(tfc_graph_parse_output(g, TFC_STR("x:0"), &x));
  struct tfc_step_feed_request feed = {.output = x, .has_shape = true, .dtype = TFC_FLOAT, .shape = TFC_SHAPE(5, 784)};
  struct tfc_step_request r = {.fetches = &loss, .fetch_count = 1, .feeds = &feed, .feed_count = 1, .no_init = true};
  assert_ok(tfc_step_infer(g, &r, &step));
  assert_int_equal(step.target_count, 0);
  assert_int_equal(step.fetch_count, 1);
  assert_int_equal(step.init_count, 0);
  assert_true(feed_named(&step, "x:0")->given);
  tfc_step_spec_deinit(&step);
  feed.shape = TFC_SHAPE(5, 783);
  assert_fails(tfc_step_infer(g, &r, &step), TFC_INVALID_ARGUMENT, "feed 'x:0': the graph wants shape [?,784]");
  feed.shape = TFC_SHAPE(5, 784), feed.dtype = TFC_DOUBLE;
  assert_fails(tfc_step_infer(g, &r, &step), TFC_INVALID_ARGUMENT, "the graph wants float32, not float64");
  tfc_graph_release(g);
}

// The graph has a variable with its initial value, a real update, a save, and an output that only inference reads: the
// update alone is the step.
static void test_rules(void **state) {
  (void)state;
  static const char text[] =
      "node {name: 'v' op: 'VariableV2' attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape "
      "{}}}}\n"
      "node {name: 'zero' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'value' value {tensor "
      "{dtype: "
      "DT_FLOAT tensor_shape {} float_val: 0}}}}\n"
      "node {name: 'v/Assign' op: 'Assign' input: 'v' input: 'zero' attr {key: 'T' value {type: DT_FLOAT}}}\n"
      "node {name: 'p' op: 'Placeholder' attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape "
      "{}}}}\n"
      "%s"
      "node {name: 'read' op: 'Identity' input: 'v' attr {key: 'T' value {type: DT_FLOAT}}}\n";
  static const char update[] =
      "node {name: 'more' op: 'AssignAdd' input: 'v' input: 'p' attr {key: 'T' value {type: DT_FLOAT}}}\n";
  static const char set[] =
      "node {name: 'set' op: 'Assign' input: 'v' input: 'p' attr {key: 'T' value {type: DT_FLOAT}}}\n";
  static const struct { const char *extra, *target; } cases[] = {{update, "more"}, {set, "set"}, {"", "read"}};
  for (size_t i = 0; i < 3; i++) {
    char bytes[2048];
    struct tfc_graph *g = NULL;
    struct tfc_step_spec step = {0};
    snprintf(bytes, sizeof bytes, text, cases[i].extra);
    assert_ok(tfc_graph_parse(tfc_str_from(bytes), "text", NULL, &g));
    assert_ok(tfc_step_infer(g, &(struct tfc_step_request){0}, &step));
    bool found = false;
    for (uint32_t k = 0; k < step.target_count; k++) {
      found |= tfc_str_is(g->nodes[step.targets[k]].name, cases[i].target);
      assert_false(tfc_str_is(g->nodes[step.targets[k]].name, "v/Assign"));
    }
    assert_true(found);
    assert_int_equal(step.init_count, 1);
    assert_true(tfc_str_is(g->nodes[step.inits[0]].name, "v/Assign"));
    tfc_step_spec_deinit(&step);
    tfc_graph_release(g);
  }
}

// As optimizers write it, the collection "train_op" names an operation without outputs.
static void test_collection(void **state) {
  (void)state;
  static const char text[] =
      "graph_def {"
      " node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
      "  attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }"
      " node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }"
      "  attr { key: 'shape' value { shape {} } } }"
      " node { name: 'begin' op: 'Assign' input: 'v' input: 'one' attr { key: 'T' value { type: DT_FLOAT } } }"
      " node { name: 'more' op: 'AssignAdd' input: 'v' input: 'one' attr { key: 'T' value { type: DT_FLOAT } } }"
      " node { name: 'Adam' op: 'NoOp' input: '^more' }"
      " node { name: 'first' op: 'NoOp' input: '^begin' } }"
      "collection_def { key: 'train_op' value { node_list { value: 'Adam' } } }"
      "collection_def { key: 'init_op' value { node_list { value: 'first' } } }";
  struct tfc_graph *g = NULL;
  struct tfc_step_spec step = {0};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "train.meta", NULL, &g));
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 2}, &step));
  assert_int_equal(step.target_count, 1);
  assert_true(tfc_str_is(g->nodes[step.targets[0]].name, "Adam"));
  assert_int_equal(step.init_count, 1);
  assert_true(tfc_str_is(g->nodes[step.inits[0]].name, "first"));
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
}

// Names of local variables, of which the longer takes two bytes for its length.
static void test_local_variables(void **state) {
  (void)state;
  char name[200], text[600];
  memset(name, 'v', sizeof name);
  snprintf(text, sizeof text,
           "graph_def { node { name: 'one' op: 'NoOp' } } collection_def { key: 'local_variables' value { bytes_list {"
           " value: '\\n\\312\\001%.200s:0' value: '\\n\\007short:0' } } }",
           name);
  struct tfc_graph *g = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "train.meta", NULL, &g));
  assert_true(tfc_step_is_local_variable(g, (tfc_str){name, 200}));
  assert_true(tfc_step_is_local_variable(g, TFC_STR("short")));
  assert_false(tfc_step_is_local_variable(g, (tfc_str){name, 199}));
  assert_false(tfc_step_is_local_variable(g, TFC_STR("shor")));
  assert_false(tfc_step_is_local_variable(g, TFC_STR("short:0")));
  tfc_graph_release(g);
}

// Queues that were filled by threads of the program that made the graph: the step feeds the outputs of the dequeue, and
// an enqueue is never the step.
static void test_input_functions(void **state) {
  (void)state;
  static const struct {
    const char *file, *feeds[3];
  } cases[] = {{"numpy_input.pb",
                {"random_shuffle_queue_DequeueMany:1 float32[16,7]", "random_shuffle_queue_DequeueMany:2 int32[16]"}},
               {"numpy_input.meta",
                {"random_shuffle_queue_DequeueMany:1 float32[16,7]", "random_shuffle_queue_DequeueMany:2 int32[16]"}},
               {"pandas_input.meta",
                {"fifo_queue_DequeueUpTo:1 float32[16]", "fifo_queue_DequeueUpTo:2 float32[16]",
                 "fifo_queue_DequeueUpTo:3 int64[16]"}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char path[256], seen[128], shape[TFC_SHAPE_TEXT];
    struct tfc_graph *g = NULL;
    struct tfc_step_spec step = {0};
    snprintf(path, sizeof path, "%s/tests/pass/input_functions/%s", TFC_SOURCE_DIR, cases[c].file);
    assert_ok(tfc_graph_load(path, NULL, &g));
    assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 99}, &step));
    assert_int_equal(step.target_count, 1);
    assert_true(tfc_str_is(g->nodes[step.targets[0]].name, "train_op"));
    uint32_t wanted = 0;
    while (wanted < 3 && cases[c].feeds[wanted]) wanted++;
    assert_int_equal(step.feed_count, wanted);
    for (uint32_t i = 0; i < wanted; i++) {
      const struct tfc_step_feed *f = &step.feeds[i];
      snprintf(seen, sizeof seen, "%.*s %s%s", TFC_STR_ARG(f->name), tfc_dtype_name(f->dtype),
               tfc_shape_show(&f->shape, shape));
      assert_string_equal(seen, cases[c].feeds[i]);
    }
    assert_true(step.feeds[wanted - 1].high == 5); // labels of five classes
    for (uint32_t i = 0; i < step.note_count; i++)
      if (tfc_str_starts(step.notes[i], "queues filled")) fail_msg("%.*s", TFC_STR_ARG(step.notes[i]));
    tfc_step_spec_deinit(&step);
    tfc_graph_release(g);
  }
}

// Queues that no queue runner fills: tfc_step_infer must not say that one does. They are filled by an initialiser, by
// the step itself, by a feed at the dequeue, or never.
static void test_filled_queues(void **state) {
  (void)state;
  static const char text[] =
      "node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
      " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }"
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
      " attr { key: 'shape' value { shape { } } } }"
      "node { name: 'q' op: 'FIFOQueueV2' attr { key: 'component_types' value { list { type: DT_FLOAT } } }"
      " attr { key: 'shapes' value { list { shape { } } } } }"
      "node { name: 'put' op: 'QueueEnqueueV2' input: 'q' input: '%s'"
      " attr { key: 'Tcomponents' value { list { type: DT_FLOAT } } } }"
      "node { name: 'take' op: 'QueueDequeueV2' input: 'q' %s"
      " attr { key: 'component_types' value { list { type: DT_FLOAT } } } }"
      "node { name: 'y' op: 'Square' input: 'take' attr { key: 'T' value { type: DT_FLOAT } } }";
  static const struct {
    const char *value, *control, *feed;
    bool init;
  } cases[] = {{"one", "", NULL, true},
               {"x", "input: '^put'", "x:0", false},
               {"x", "", "take:0", false},
               {"one", "", NULL, false}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char whole[2048];
    struct tfc_graph *g = NULL;
    struct tfc_step_spec step = {0};
    snprintf(whole, sizeof whole, text, cases[c].value, cases[c].control);
    assert_ok(tfc_graph_parse(tfc_str_from(whole), "queue.pbtxt", NULL, &g));
    const struct tfc_output fetch = {tfc_graph_find(g, TFC_STR("y")), 0};
    const uint32_t put = tfc_graph_find(g, TFC_STR("put"));
    assert_ok(tfc_step_infer(
        g, &(struct tfc_step_request){.fetches = &fetch, .fetch_count = 1, .inits = &put, .init_count = cases[c].init},
        &step));
    assert_int_equal(step.feed_count, cases[c].feed != NULL);
    if (cases[c].feed) assert_true(tfc_str_is(step.feeds[0].name, cases[c].feed));
    tfc_step_spec_deinit(&step);
    tfc_graph_release(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_examples),        cmocka_unit_test(test_other_examples),
      cmocka_unit_test(test_ranges),          cmocka_unit_test(test_given),
      cmocka_unit_test(test_rules),           cmocka_unit_test(test_collection),
      cmocka_unit_test(test_input_functions), cmocka_unit_test(test_filled_queues),
      cmocka_unit_test(test_local_variables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
