// What operations keep from step to step beside variables: a session that goes on from the text of it gives what the
// first session gives next. And what cannot be saved is named, whatever its name is.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/exec/saved_state.h"
#include "runtime/graph/import.h"
#include "runtime/ops/kernel.h"

#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define TYPE(key, type) ATTR(key, "type: " type)
#define CONST(name, type, shape, values)                                                                               \
  " name: '" name "' op: 'Const'" TYPE("dtype", type)                                                                  \
      ATTR("value", "tensor { dtype: " type " tensor_shape { " shape " } " values " }")
#define KINDS(type) ATTR("output_types", "list { type: " type " }") ATTR("output_shapes", "list { shape { } }")
#define NODE(text) "node {" text " }\n"
#define IN(name) " input: '" name "'"
#define SEEDS ATTR("seed", "i: 3") ATTR("seed2", "i: 4")
#define ONE_DIM(n) "dim { size: " n " }"

struct place { // a session with what belongs to its task
  struct tfc_resources *resources;
  struct tfc_session *session;
};
static struct tfc_device_set devices;

static void open_place(const struct tfc_graph *graph, struct place *out) {
  assert_ok(tfc_resources_create(&out->resources));
  const struct tfc_session_options options = {.devices = &devices, .resources = out->resources};
  assert_ok(tfc_session_create(graph, &options, &out->session));
}
static void close_place(struct place *p) {
  tfc_session_free(p->session);
  tfc_resources_free(p->resources);
}
static struct tfc_graph *parse(const char *text) {
  struct tfc_graph *graph = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "saved_state.pbtxt", NULL, &graph));
  return graph;
}
static void run_target(const struct tfc_graph *g, const struct place *p, const char *name) {
  uint32_t target = TFC_NONE;
  assert_ok(tfc_graph_parse_node(g, tfc_str_from(name), &target));
  assert_ok(
      tfc_session_run(p->session, &(struct tfc_run_spec){.targets = &target, .target_count = 1}, NULL, NULL, NULL));
}
static void fetch(const struct tfc_graph *g, const struct place *p, const char *name, struct tfc_tensor *out) {
  struct tfc_output output;
  assert_ok(tfc_graph_parse_output(g, tfc_str_from(name), &output));
  assert_ok(tfc_session_run(p->session, &(struct tfc_run_spec){.fetches = &output, .fetch_count = 1}, NULL, out, NULL));
}
static double number(const struct tfc_graph *g, const struct place *p, const char *name) {
  struct tfc_tensor t = {0};
  fetch(g, p, name, &t);
  const double value = t.dtype == TFC_FLOAT ? (double)*(const float *)t.data : (double)tfc_tensor_int(&t, 0);
  tfc_tensor_release(&t);
  return value;
}

// Saves a place's state, and opens another place that goes on from there. The caller frees the text.
static void go_on(const struct tfc_graph *g, const struct place *from, struct place *to, struct tfc_text *text) {
  assert_ok(tfc_resources_write_state(from->resources, text));
  assert_ok(tfc_session_write_state(from->session, text));
  open_place(g, to);
  assert_ok(tfc_resources_read_state(to->resources, (tfc_str){text->data, text->size}));
  assert_ok(tfc_session_read_state(to->session, (tfc_str){text->data, text->size}));
}

// Takes `before` steps, goes on in another place, and compares the next steps of both. A step fetches all `names`.
static void continues(const char *graph_text, const char *const *names, int count, int before, int after) {
  struct tfc_graph *g = parse(graph_text);
  struct place first, second;
  struct tfc_text text = {0};
  double last = 0;
  int different = 0;
  open_place(g, &first);
  for (int i = 0; i < before; i++)
    for (int k = 0; k < count; k++) number(g, &first, names[k]);
  go_on(g, &first, &second, &text);
  if (strstr(text.data, "unsaved")) fail_msg("%s", text.data);
  for (int i = 0; i < after; i++) {
    for (int k = 0; k < count; k++) {
      const double want = number(g, &first, names[k]), got = number(g, &second, names[k]);
      if (want != got) fail_msg("step %d, %s: %.9g, not %.9g; the state was\n%s", i, names[k], got, want, text.data);
      different += want != last;
      last = want;
    }
  }
  assert_true(different > 1);
  tfc_text_deinit(&text);
  close_place(&first);
  close_place(&second);
  tfc_graph_release(g);
}

#define DRAW                                                                                                           \
  "function { signature { name: 'draw' input_arg { name: 'i' type: DT_INT64 } output_arg { name: 'y' type: DT_FLOAT "  \
  "} } node_def {" CONST("scalar", "DT_INT32", ONE_DIM("0"),                                                           \
                         "") " } node_def { name: 'u' op: 'RandomUniform'" IN("scalar:output:0")                       \
      TYPE("dtype", "DT_FLOAT") TYPE("T", "DT_INT32") SEEDS " } node_def { name: 'c' op: 'Cast'" IN("i")               \
          TYPE("SrcT", "DT_INT64") TYPE("DstT", "DT_FLOAT") " } node_def { name: 'sum' op: 'AddV2'" IN("c:y:0")        \
              IN("u:output:0") TYPE("T", "DT_FLOAT") " } ret { key: 'y' value: 'sum:z:0' } }\n"
#define RANGE(dataset)                                                                                                 \
  NODE(CONST("zero", "DT_INT64", "", "int64_val: 0"))                                                                  \
  NODE(CONST("hundred", "DT_INT64", "", "int64_val: 100"))                                                             \
  NODE(CONST("one", "DT_INT64", "", "int64_val: 1"))                                                                   \
  NODE(" name: 'range' op: 'RangeDataset'" IN("zero") IN("hundred") IN("one") KINDS("DT_INT64"))                       \
  NODE(" name: '" dataset "' op: 'MapDataset'" IN("range") ATTR("f", "func { name: 'draw' }")                          \
           ATTR("Targuments", "list { }") KINDS("DT_FLOAT"))

// The step and two datasets call one function: each goes on with its own numbers.
static const char shared_text[] = "library { " DRAW "}\n" RANGE("mapped")
    NODE(" name: 'left' op: 'IteratorV2'" ATTR("shared_name", "s: 'left'") ATTR("container", "s: ''") KINDS("DT_FLOAT"))
        NODE(" name: 'right' op: 'IteratorV2'" ATTR("shared_name", "s: 'a\\tright\\n\\\\one'")
                 ATTR("container", "s: 'in\\there'") KINDS("DT_FLOAT"))
            NODE(" name: 'begin_left' op: 'MakeIterator'" IN("mapped") IN("left"))
                NODE(" name: 'begin_right' op: 'MakeIterator'" IN("mapped") IN("right"))
                    NODE(" name: 'next_left' op: 'IteratorGetNext'" IN("left") KINDS("DT_FLOAT"))
                        NODE(" name: 'next_right' op: 'IteratorGetNext'" IN("right") KINDS("DT_FLOAT"))
                            NODE(" name: 'call' op: 'StatefulPartitionedCall'" IN("one")
                                     ATTR("Tin", "list { type: DT_INT64 }") ATTR("Tout", "list { type: DT_FLOAT }")
                                         ATTR("f", "func { name: 'draw' }"));
static void a_shared_function(void **state) {
  (void)state;
  static const char *const names[] = {"next_left", "call", "call", "next_right", "call", "next_left"};
  struct tfc_graph *g = parse(shared_text);
  struct place first, second;
  struct tfc_text text = {0};
  open_place(g, &first);
  run_target(g, &first, "begin_left"), run_target(g, &first, "begin_right");
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 6; k++) number(g, &first, names[k]);
  go_on(g, &first, &second, &text);
  // As training does it: the initialiser runs before the state is read.
  close_place(&second);
  open_place(g, &second);
  run_target(g, &second, "begin_left"), run_target(g, &second, "begin_right");
  assert_ok(tfc_resources_read_state(second.resources, (tfc_str){text.data, text.size}));
  assert_ok(tfc_session_read_state(second.session, (tfc_str){text.data, text.size}));
  for (int i = 0; i < 5; i++)
    for (int k = 0; k < 6; k++) {
      const double want = number(g, &first, names[k]), got = number(g, &second, names[k]);
      if (want != got) fail_msg("round %d, %s: %.9g, not %.9g; the state was\n%s", i, names[k], got, want, text.data);
    }
  assert_null(strstr(text.data, "unsaved"));
  tfc_text_deinit(&text);
  close_place(&first);
  close_place(&second);
  tfc_graph_release(g);
}

// A one-shot iterator whose factory draws the elements themselves.
static const char drawn_text[] =
    "library { function { signature { name: 'factory' is_stateful: true output_arg { name: 'd' type: DT_VARIANT } } "
    "node_def {" CONST("shape", "DT_INT32", ONE_DIM("1"),
                       "int_val: 9") " } node_def { name: 'u' op: 'RandomUniform'" IN("shape:output:0")
        TYPE("dtype", "DT_FLOAT") TYPE("T", "DT_INT32") SEEDS
    " } node_def { name: 'slices' op: 'TensorSliceDataset'" IN("u:output:0")
        ATTR("Toutput_types", "list { type: DT_FLOAT }")
            ATTR("output_shapes",
                 "list { shape { } }") " } ret { key: 'd' value: "
                                       "'slices:handle:0' } } }\n" NODE(" name: 'once' op: 'OneShotIterator'" ATTR(
                                           "dataset_factory", "func { name: 'factory' }") KINDS("DT_FLOAT"))
                                           NODE(" name: 'next' op: 'IteratorGetNext'" IN("once") KINDS("DT_FLOAT"));
static void a_factory_that_draws(void **state) {
  (void)state;
  continues(drawn_text, (const char *const[]){"next"}, 1, 4, 5);
}

// --- Tables ----------------------------------------------------------------------------------------------------------
#define TABLE(name, op, key, value, more)                                                                              \
  NODE(" name: '" name "' op: '" op "'" TYPE("key_dtype", key) TYPE("value_dtype", value) more)
#define ON_TABLE(name, op, table, key, value, ...) NODE(" name: '" name "' op: '" op "'" IN(table) __VA_ARGS__)
#define PUT(name, table, keys, values, key, value)                                                                     \
  NODE(" name: '" name "' op: 'LookupTableInsertV2'" IN(table) IN(keys) IN(values) TYPE("Tin", key) TYPE("Tout", value))
#define ALL(name, table, key, value)                                                                                   \
  NODE(" name: '" name "' op: 'LookupTableExportV2'" IN(table) TYPE("Tkeys", key) TYPE("Tvalues", value))
static const char tables_text[] = NODE(CONST("words", "DT_STRING", ONE_DIM("4"),
                                             "string_val: 'b\\tc' string_val: '' string_val: 'a\\n\\\\x41' "
                                             "string_val: 'z\\000z'"))
    NODE(CONST("numbers", "DT_INT64", ONE_DIM("4"), "int64_val: 7 int64_val: -8 int64_val: 9 int64_val: 10")) NODE(
        CONST("lines", "DT_STRING", ONE_DIM("4") ONE_DIM("2"),
              "string_val: 'p' string_val: '' string_val: '\\t' string_val: 'q' string_val: 'r' string_val: "
              "'s' string_val: '' string_val: ''")) NODE(CONST("gone", "DT_STRING", ONE_DIM("1"), "string_val: ''"))
        NODE(CONST("empty", "DT_INT64", "", "int64_val: -1")) NODE(CONST("deleted", "DT_INT64", "", "int64_val: -2"))
            TABLE("plain", "MutableHashTableV2", "DT_STRING", "DT_INT64", ATTR("shared_name", "s: 'the\\ttable\\n'"))
                PUT("fill_plain", "plain", "words", "numbers", "DT_STRING", "DT_INT64")
                    NODE(" name: 'drop' op: 'LookupTableRemoveV2'" IN("plain") IN("gone") TYPE("Tin", "DT_STRING"))
                        ALL("plain_all", "plain", "DT_STRING", "DT_INT64")
                            TABLE("of_lines", "MutableHashTableOfTensorsV2", "DT_INT64", "DT_STRING",
                                  ATTR("value_shape", "shape { " ONE_DIM("2") " }"))
                                PUT("fill_lines", "of_lines", "numbers", "lines", "DT_INT64", "DT_STRING")
                                    ALL("lines_all", "of_lines", "DT_INT64", "DT_STRING")
                                        NODE(" name: 'dense' op: 'MutableDenseHashTableV2'" IN("empty") IN("deleted")
                                                 TYPE("key_dtype", "DT_INT64") TYPE("value_dtype", "DT_INT64"))
                                            PUT("fill_dense", "dense", "numbers", "numbers", "DT_INT64", "DT_INT64")
                                                ALL("dense_all", "dense", "DT_INT64", "DT_INT64")
                                                    TABLE("nothing", "MutableHashTableV2", "DT_STRING", "DT_INT64", "")
                                                        ALL("nothing_all", "nothing", "DT_STRING", "DT_INT64")
                                                            PUT("fill_nothing", "nothing", "words", "numbers",
                                                                "DT_STRING", "DT_INT64");

static void same(const struct tfc_tensor *a, const struct tfc_tensor *b) {
  assert_int_equal(a->dtype, b->dtype);
  assert_true(tfc_shape_equal(&a->shape, &b->shape));
  for (int64_t i = 0; i < tfc_tensor_elements(a); i++) {
    if (a->dtype == TFC_STRING)
      assert_true(tfc_str_equal(tfc_tensor_get_string(a, i), tfc_tensor_get_string(b, i)));
    else
      assert_int_equal(tfc_tensor_int(a, i), tfc_tensor_int(b, i));
  }
}
static void tables(void **state) {
  (void)state;
  static const char *const fetches[] = {"plain_all:0", "plain_all:1", "lines_all:0",  "lines_all:1",
                                        "dense_all:0", "dense_all:1", "nothing_all:0"};
  static const int64_t sizes[] = {3, 3, 4, 8, 4, 4, 0};
  struct tfc_graph *g = parse(tables_text);
  struct place first, second;
  struct tfc_text text = {0};
  open_place(g, &first);
  run_target(g, &first, "fill_plain"), run_target(g, &first, "fill_lines"), run_target(g, &first, "fill_dense");
  run_target(g, &first, "drop");
  for (size_t i = 0; i < 7; i += 2) { // an empty table is saved, too: it may have been filled before the state is read
    struct tfc_tensor t = {0};
    fetch(g, &first, fetches[i], &t);
    tfc_tensor_release(&t);
  }
  for (int filled = 0; filled < 2; filled++) { // the tables are new, or hold something else
    assert_ok(tfc_resources_write_state(first.resources, &text));
    open_place(g, &second);
    if (filled) run_target(g, &second, "fill_plain"), run_target(g, &second, "fill_nothing");
    assert_ok(tfc_resources_read_state(second.resources, (tfc_str){text.data, text.size}));
    for (size_t i = 0; i < 7; i++) {
      struct tfc_tensor want = {0}, got = {0};
      fetch(g, &first, fetches[i], &want);
      fetch(g, &second, fetches[i], &got);
      assert_int_equal(tfc_tensor_elements(&want), sizes[i]);
      same(&want, &got);
      tfc_tensor_release(&want);
      tfc_tensor_release(&got);
    }
    assert_null(strstr(text.data, "unsaved"));
    tfc_text_deinit(&text);
    close_place(&second);
  }
  close_place(&first);
  tfc_graph_release(g);
}

// --- What is not saved -----------------------------------------------------------------------------------------------
static const char unsaved_text[] = NODE(CONST("key", "DT_INT64", "", "int64_val: 5"))
    NODE(CONST("at", "DT_INT32", ONE_DIM("1"), "int_val: 0")) NODE(CONST("value", "DT_FLOAT", "", "float_val: 2")) NODE(
        CONST("indices", "DT_INT64", ONE_DIM("1") ONE_DIM("1"), "int64_val: 0"))
        NODE(CONST("values", "DT_FLOAT", ONE_DIM("1"), "float_val: 2")) NODE(
            CONST("shape", "DT_INT64", ONE_DIM("1"), "int64_val: 1"))
            NODE(CONST("classes", "DT_INT64", ONE_DIM("1") ONE_DIM("1"), "int64_val: 2")) NODE(
                " name: 'map' op: 'MapStage'" IN("key") IN("at") IN("list") ATTR("dtypes", "list { type: DT_VARIANT }")
                    ATTR("fake_dtypes", "list { type: DT_VARIANT }") ATTR("shared_name", "s: 'a\\tmap'"))
                NODE(" name: 'sparse' op: 'AddSparseToTensorsMap'" IN("indices") IN("values") IN("shape")
                         TYPE("T", "DT_FLOAT") ATTR("shared_name", "s: 'sparse'"))
                    NODE(" name: 'sampler' op: 'LearnedUnigramCandidateSampler'" IN("classes") ATTR("num_true", "i: 1")
                             ATTR("num_sampled", "i: 2") ATTR("unique", "b: true") ATTR("range_max", "i: 4"))
                        NODE(" name: 'queue' op: 'FIFOQueueV2'" ATTR("component_types", "list { type: DT_VARIANT }")
                                 ATTR("shared_name", "s: 'a\\nqueue'"))
                            NODE(" name: 'put' op: 'QueueEnqueueV2'" IN("queue") IN("list")
                                     ATTR("Tcomponents", "list { type: DT_VARIANT }"))
                                NODE(CONST("most", "DT_INT32", "", "int_val: 5"))
                                    NODE(" name: 'list' op: 'EmptyTensorList'" IN("at") IN("most")
                                             TYPE("element_dtype", "DT_FLOAT") TYPE("shape_type", "DT_INT32"));
static void what_is_not_saved_is_named(void **state) {
  (void)state;
  struct tfc_graph *g = parse(unsaved_text);
  struct place p;
  struct tfc_text text = {0};
  struct tfc_tensor t = {0};
  open_place(g, &p);
  assert_ok(tfc_resources_write_state(p.resources, &text));
  assert_int_equal(text.size, 0);
  run_target(g, &p, "map"), run_target(g, &p, "put");
  fetch(g, &p, "sparse", &t);
  tfc_tensor_release(&t);
  fetch(g, &p, "sampler", &t);
  tfc_tensor_release(&t);
  assert_ok(tfc_resources_write_state(p.resources, &text));
  static const char *const lines[] = {
      "unsaved\twhat the staging map 'a\\x09map' holds\n", "unsaved\twhat the map of sparse tensors 'sparse' holds\n",
      "object\tcandidates\tsampler\tlearned unigram distribution\t", "unsaved\twhat the queue 'a\\x0aqueue' holds\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!strstr(text.data, lines[i])) fail_msg("no '%s' in\n%s", lines[i], text.data);
  tfc_text_deinit(&text);
  close_place(&p);
  tfc_graph_release(g);
}

// --- Broken states ---------------------------------------------------------------------------------------------------
static void what_makes_no_sense_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "iterator\t\t\t\n",
      "iterator\t-1\t\tname\n",
      "iterator\t1\t\t\n",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct tfc_resources *r = NULL;
    assert_ok(tfc_resources_create(&r));
    tfc_status s = tfc_resources_read_state(r, tfc_str_from(wrong[i]));
    if (tfc_status_code(s) != TFC_INVALID_ARGUMENT) fail_msg("%s: %s", wrong[i], s ? tfc_status_message(s) : "taken");
    tfc_status_free(s);
    tfc_resources_free(r);
  }
}

// --- Another client --------------------------------------------------------------------------------------------------

// One client saves while another one's steps use an iterator without a name.
static const char anonymous_text[] = NODE(CONST("zero", "DT_INT64", "", "int64_val: 0"))
    NODE(CONST("many", "DT_INT64", "", "int64_val: 1000000")) NODE(CONST("one", "DT_INT64", "", "int64_val: 1"))
        NODE(" name: 'range' op: 'RangeDataset'" IN("zero") IN("many") IN("one") KINDS("DT_INT64"))
            NODE(" name: 'made' op: 'AnonymousIteratorV3'" KINDS("DT_INT64"))
                NODE(" name: 'begin' op: 'MakeIterator'" IN("range") IN("made"))
                    NODE(" name: 'handle' op: 'IteratorToStringHandle'" IN("made") IN("^begin"))
                        NODE(" name: 'given' op: 'Placeholder'" TYPE("dtype", "DT_STRING") ATTR("shape", "shape { }"))
                            NODE(" name: 'found' op: 'IteratorFromStringHandleV2'" IN("given"))
                                NODE(" name: 'next' op: 'IteratorGetNext'" IN("found") KINDS("DT_INT64"));
enum { STEPS = 200 };
struct stepping {
  const struct tfc_graph *graph;
  const struct place *place;
  struct tfc_tensor handle;
  _Atomic bool over;
  tfc_status status;
};
static void *step(void *arg) {
  struct stepping *s = arg;
  struct tfc_output feed = {0}, next = {0};
  s->status = tfc_graph_parse_output(s->graph, TFC_STR("given"), &feed);
  if (!s->status) s->status = tfc_graph_parse_output(s->graph, TFC_STR("next"), &next);
  const struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .fetches = &next, .fetch_count = 1};
  for (int i = 0; i < STEPS && !s->status; i++) {
    struct tfc_tensor t = {0};
    s->status = tfc_session_run(s->place->session, &spec, &s->handle, &t, NULL);
    tfc_tensor_release(&t);
  }
  atomic_store(&s->over, true);
  return NULL;
}
static void saving_beside_steps(void **state) {
  (void)state;
  struct tfc_graph *g = parse(anonymous_text);
  struct place p;
  pthread_t thread;
  open_place(g, &p);
  struct stepping s = {.graph = g, .place = &p};
  fetch(g, &p, "handle", &s.handle);
  assert_int_equal(pthread_create(&thread, NULL, step, &s), 0);
  bool over = false;
  do {
    struct tfc_text text = {0};
    over = atomic_load(&s.over); // at least one save is after the steps
    assert_ok(tfc_resources_write_state(p.resources, &text));
    if (over && !strstr(text.data ? text.data : "", "unsaved\twhat the iterator '")) fail_msg("it is not named");
    tfc_text_deinit(&text);
  } while (!over);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_ok(s.status);
  tfc_tensor_release(&s.handle);
  close_place(&p);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_shared_function),
                                     cmocka_unit_test(a_factory_that_draws),
                                     cmocka_unit_test(tables),
                                     cmocka_unit_test(what_is_not_saved_is_named),
                                     cmocka_unit_test(what_makes_no_sense_is_refused),
                                     cmocka_unit_test(saving_beside_steps)};
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_devices_close(&devices);
  return failed;
}
