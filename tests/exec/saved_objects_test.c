// Tests that queues, readers, accumulators, barriers, staging areas and maps, learned samplers and
// mutable tables go on as they would have after
// their content was saved as text and loaded by another session; that text which makes no sense is refused; and that
// elements which waited for room come in behind the others.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/exec/saved_state.h"
#include "runtime/graph/import.h"
#include "runtime/ops/kernel.h"
#include "runtime/ops/saved.h"

#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "'" inputs attrs " }\n"
#define IN(name) " input: '" name "'"
#define TYPE(key, type) ATTR(key, "type: DT_" type)
#define TYPES(key, types) ATTR(key, "list { " types " }")
#define FLOATS "type: DT_FLOAT"
#define CONST(name, type, shape, value)                                                                                \
  NODE(name, "Const", "",                                                                                              \
       TYPE("dtype", type) ATTR("value", "tensor { dtype: DT_" type " tensor_shape { " shape " } " value " }"))
#define ONE "dim { size: 1 }"

static const char graph_text[] = NODE("x", "Placeholder", "", TYPE("dtype", "FLOAT") ATTR("shape", "shape {}"))
    NODE("number", "Cast", IN("x"), TYPE("SrcT", "FLOAT") TYPE("DstT", "INT64"))
        NODE("text", "AsString", IN("number"), TYPE("T", "INT64")) CONST("one", "INT32", ONE, "int_val: 1")
            CONST("square", "INT32", "dim { size: 2 }", "int_val: 1 int_val: 1") CONST("two", "INT32", "", "int_val: 2")
                CONST("single", "INT32", "", "int_val: 1") CONST("unknown", "INT64", "dim { size: 0 }", "") NODE(
                    "x_list", "Reshape", IN("x") IN("one"), TYPE("T", "FLOAT") TYPE("Tshape", "INT32"))
                    NODE("x_row", "Reshape", IN("x") IN("square"), TYPE("T", "FLOAT") TYPE("Tshape", "INT32")) NODE(
                        "number_list", "Reshape", IN("number") IN("one"), TYPE("T", "INT64") TYPE("Tshape", "INT32"))
                        NODE("text_list", "Reshape", IN("text") IN("one"), TYPE("T", "STRING") TYPE("Tshape", "INT32"))
                            NODE("vector", "Fill", IN("number_list") IN("x"),
                                 TYPE("T", "FLOAT") TYPE("index_type", "INT64"))
    // first in, first out
    NODE("fifo", "FIFOQueueV2", "", TYPES("component_types", FLOATS " type: DT_STRING") ATTR("capacity", "i: 3")) NODE(
        "put_fifo", "QueueEnqueueV2", IN("fifo") IN("x") IN("text"), TYPES("Tcomponents", FLOATS " type: DT_STRING"))
        NODE("take_fifo", "QueueDequeueV2", IN("fifo"), TYPES("component_types", FLOATS " type: DT_STRING"))
            NODE("close_fifo", "QueueCloseV2", IN("fifo"), "") NODE("size_fifo", "QueueSizeV2", IN("fifo"), "")
                NODE("closed_fifo", "QueueIsClosedV2", IN("fifo"), "")
    // shuffled
    NODE("shuffle", "RandomShuffleQueue", "",
         TYPES("component_types", FLOATS) ATTR("min_after_dequeue", "i: 2") ATTR("seed", "i: 3") ATTR("seed2", "i: 5"))
        NODE("put_shuffle", "QueueEnqueue", IN("shuffle") IN("x"), TYPES("Tcomponents", FLOATS))
            NODE("take_shuffle", "QueueDequeue", IN("shuffle"), TYPES("component_types", FLOATS))
    // padded
    NODE("padding", "PaddingFIFOQueueV2", "",
         TYPES("component_types", FLOATS) TYPES("shapes", "shape { dim { size: -1 } }"))
        NODE("put_padding", "QueueEnqueueV2", IN("padding") IN("vector"), TYPES("Tcomponents", FLOATS))
            NODE("take_padding", "QueueDequeueManyV2", IN("padding") IN("two"), TYPES("component_types", FLOATS))
    // by priority
    NODE("priority", "PriorityQueueV2", "", TYPES("component_types", FLOATS) TYPES("shapes", "shape {}"))
        NODE("put_priority", "QueueEnqueueV2", IN("priority") IN("number") IN("x"),
             TYPES("Tcomponents", "type: DT_INT64 " FLOATS))
            NODE("take_priority", "QueueDequeueV2", IN("priority"), TYPES("component_types", "type: DT_INT64 " FLOATS))
    // accumulators
    NODE("dense", "ConditionalAccumulator", "", TYPE("dtype", "FLOAT") ATTR("shape", "shape {}"))
        NODE("put_dense", "AccumulatorApplyGradient", IN("dense") IN("number") IN("x"), TYPE("dtype", "FLOAT"))
            NODE("take_dense", "AccumulatorTakeGradient", IN("dense") IN("two"), TYPE("dtype", "FLOAT"))
                NODE("count_dense", "AccumulatorNumAccumulated", IN("dense"), "")
                    NODE("sparse", "SparseConditionalAccumulator", "",
                         TYPE("dtype", "FLOAT") ATTR("shape", "shape { dim { size: -1 } dim { size: 1 } }"))
                        NODE("put_sparse", "SparseAccumulatorApplyGradient",
                             IN("sparse") IN("number") IN("number_list") IN("x_row") IN("unknown"),
                             TYPE("dtype", "FLOAT") ATTR("has_known_shape", "b: false"))
                            NODE("take_sparse", "SparseAccumulatorTakeGradient", IN("sparse") IN("two"),
                                 TYPE("dtype", "FLOAT"))
    // a reader
    NODE("path", "Placeholder", "", TYPE("dtype", "STRING") ATTR("shape", "shape {}"))
        NODE("files", "FIFOQueueV2", "", TYPES("component_types", "type: DT_STRING"))
            NODE("put_file", "QueueEnqueueV2", IN("files") IN("path"), TYPES("Tcomponents", "type: DT_STRING"))
                NODE("reader", "TextLineReaderV2", "", "") NODE("read", "ReaderReadV2", IN("reader") IN("files"), "")
                    NODE("records", "ReaderNumRecordsProducedV2", IN("reader"), "")
    // a barrier and a staging area
    NODE("barrier", "Barrier", "", TYPES("component_types", FLOATS " " FLOATS) TYPES("shapes", "shape {} shape {}"))
        NODE("put_first", "BarrierInsertMany", IN("barrier") IN("text_list") IN("x_list"),
             TYPE("T", "FLOAT") ATTR("component_index", "i: 0"))
            NODE("put_second", "BarrierInsertMany", IN("barrier") IN("text_list") IN("x_list"),
                 TYPE("T", "FLOAT") ATTR("component_index", "i: 1"))
                NODE("take_barrier", "BarrierTakeMany", IN("barrier") IN("single"),
                     TYPES("component_types", FLOATS " " FLOATS))
                    NODE("number_row", "Reshape", IN("number") IN("square"), TYPE("T", "INT64") TYPE("Tshape", "INT32"))
                        NODE("learned", "LearnedUnigramCandidateSampler", IN("number_row"),
                             ATTR("num_true", "i: 1") ATTR("num_sampled", "i: 2") ATTR("unique", "b: true")
                                 ATTR("range_max", "i: 5") ATTR("seed", "i: 1") ATTR("seed2", "i: 2"))
                            CONST("first", "INT32", ONE, "int_val: 0") CONST("second", "INT32", ONE, "int_val: 1")
                                CONST("both", "INT32", "dim { size: 2 }", "int_val: 0 int_val: 1")
                                    NODE("put_map_first", "MapStage", IN("number") IN("first") IN("x"),
                                         TYPES("dtypes", FLOATS " " FLOATS) TYPES("fake_dtypes", FLOATS)
                                             ATTR("shared_name", "s: 'map'"))
                                        NODE("put_map_second", "MapStage", IN("number") IN("second") IN("x"),
                                             TYPES("dtypes", FLOATS " " FLOATS) TYPES("fake_dtypes", FLOATS)
                                                 ATTR("shared_name", "s: 'map'"))
                                            NODE("take_map", "MapUnstage", IN("number") IN("both"),
                                                 TYPES("dtypes", FLOATS " " FLOATS) ATTR("shared_name", "s: 'map'"))
                                                NODE("table", "MutableHashTableV2", "",
                                                     TYPE("key_dtype", "STRING") TYPE("value_dtype", "INT64"))
                                                    NODE("put_table", "LookupTableInsertV2",
                                                         IN("table") IN("text_list") IN("number_list"),
                                                         TYPE("Tin", "STRING") TYPE("Tout", "INT64"))
                                                        NODE("drop_table", "LookupTableRemoveV2",
                                                             IN("table") IN("text_list"), TYPE("Tin", "STRING"))
                                                            NODE("all_table", "LookupTableExportV2", IN("table"),
                                                                 TYPE("Tkeys", "STRING") TYPE("Tvalues", "INT64"))
                                                                NODE("put_area", "Stage", IN("x"),
                                                                     TYPES("dtypes", FLOATS)
                                                                         ATTR("shared_name", "s: 'area'"))
                                                                    NODE("take_area", "Unstage", "",
                                                                         TYPES("dtypes", FLOATS)
                                                                             ATTR("shared_name", "s: 'area'"));

struct move {
  const char *node; // if it has outputs, all are fetched; otherwise it is a target
  float x;
};
static const struct move before[] = {
    {"put_fifo", 1},       {"put_fifo", 2},      {"take_fifo", 0},      {"put_fifo", 3},      {"put_shuffle", 1},
    {"put_shuffle", 2},    {"put_shuffle", 3},   {"put_shuffle", 4},    {"put_shuffle", 5},   {"take_shuffle", 0},
    {"put_padding", 2},    {"put_padding", 3},   {"put_padding", 1},    {"take_padding", 0},  {"put_priority", 5},
    {"put_priority", 3},   {"put_priority", 9},  {"put_priority", 3.5}, {"put_priority", 4},  {"take_priority", 0},
    {"put_dense", 2},      {"put_dense", 3},     {"take_dense", 0},     {"put_dense", 7},     {"put_sparse", 4},
    {"put_sparse", 1},     {"put_sparse", 4},    {"put_file", 0},       {"put_file", 0},      {"read", 0},
    {"read", 0},           {"put_first", 7},     {"put_first", 8},      {"put_second", 7},    {"put_area", 3},
    {"put_area", 4},       {"learned", 3},       {"learned", 3},        {"put_map_first", 5}, {"put_map_second", 5},
    {"put_map_second", 6}, {"put_map_first", 7}, {"put_table", 3},      {"put_table", 1},     {"put_table", 2},
    {"drop_table", 1}};
static const struct move after[] = {
    {"take_fifo", 0},      {"put_fifo", 9},      {"take_fifo", 0},    {"closed_fifo", 0},   {"close_fifo", 0},
    {"take_fifo", 0},      {"closed_fifo", 0},   {"put_shuffle", 6},  {"put_shuffle", 7},   {"take_shuffle", 0},
    {"take_shuffle", 0},   {"take_shuffle", 0},  {"put_shuffle", 8},  {"take_shuffle", 0},  {"put_padding", 4},
    {"take_padding", 0},   {"take_priority", 0}, {"put_priority", 1}, {"take_priority", 0}, {"take_priority", 0},
    {"put_dense", 0},      {"count_dense", 0},   {"put_dense", 5},    {"take_dense", 0},    {"put_sparse", 2},
    {"take_sparse", 0},    {"read", 0},          {"read", 0},         {"records", 0},       {"put_second", 8},
    {"take_barrier", 0},   {"take_barrier", 0},  {"take_area", 0},    {"put_area", 5},      {"take_area", 0},
    {"learned", 1},        {"learned", 4},       {"take_map", 5},     {"put_map_first", 6}, {"take_map", 6},
    {"put_map_second", 7}, {"take_map", 7},      {"all_table", 0},    {"put_table", 9},     {"drop_table", 3},
    {"put_table", 3},      {"all_table", 0}};
enum { BEFORE = sizeof before / sizeof *before, AFTER = sizeof after / sizeof *after };

struct rig {
  struct tfc_graph *graph;
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_resources *resources;
};
static char path[] = "/tmp/tfc_saved_objects_XXXXXX";

static void rig_make(struct rig *r) {
  *r = (struct rig){0};
  assert_ok(tfc_graph_parse(tfc_str_from(graph_text), "objects", NULL, &r->graph));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &r->set));
  assert_ok(tfc_resources_create(&r->resources));
  const struct tfc_session_options options = {.devices = &r->set, .resources = r->resources};
  assert_ok(tfc_session_create(r->graph, &options, &r->session));
}
static void rig_free(struct rig *r) {
  tfc_session_free(r->session);
  tfc_resources_free(r->resources);
  tfc_devices_close(&r->set);
  tfc_graph_release(r->graph);
}

// Appends what the move's node gives to `out`.
static tfc_status try_move(struct rig *r, const struct move *m, struct tfc_text *out) {
  const uint32_t node = tfc_graph_find(r->graph, tfc_str_from(m->node));
  const bool fetched = r->graph->nodes[node].output_count > 0;
  const struct tfc_output feeds[] = {{tfc_graph_find(r->graph, TFC_STR("x")), 0},
                                     {tfc_graph_find(r->graph, TFC_STR("path")), 0}};
  struct tfc_output fetches[4];
  struct tfc_tensor values[2], got[4] = {0};
  float x = m->x;
  values[0] = (struct tfc_tensor){TFC_FLOAT, TFC_SHAPE_SCALAR, &x, sizeof x, NULL};
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE_SCALAR, &values[1]));
  assert_ok(tfc_tensor_set_string(&values[1], 0, tfc_str_from(path)));
  const uint32_t count = fetched ? r->graph->nodes[node].output_count : 0;
  for (uint32_t i = 0; i < count; i++) fetches[i] = (struct tfc_output){node, (int32_t)i};
  const struct tfc_run_spec spec = {.feeds = feeds,
                                    .feed_count = 2,
                                    .fetches = fetches,
                                    .fetch_count = count,
                                    .targets = &node,
                                    .target_count = 1,
                                    .dynamic = true};
  tfc_status s = tfc_session_run(r->session, &spec, values, got, NULL);
  tfc_text_printf(out, "%s", m->node);
  for (uint32_t i = 0; i < count && !s; i++) {
    tfc_saved_add_tensor(out, &got[i]);
    tfc_tensor_release(&got[i]);
  }
  tfc_text_printf(out, "\n");
  tfc_tensor_release(&values[1]);
  return s;
}
static void move_all(struct rig *r, const struct move *moves, int count, struct tfc_text *out) {
  for (int i = 0; i < count; i++) {
    tfc_status s = try_move(r, &moves[i], out);
    if (s) fail_msg("move %d, %s: %s", i, moves[i].node, tfc_status_message(s));
  }
}
static void save(struct rig *r, struct tfc_text *out) {
  assert_ok(tfc_resources_write_state(r->resources, out));
  assert_ok(tfc_session_write_state(r->session, out)); // how far the sampler has drawn
  assert_false(strstr(out->data, "unsaved"));
}
static void load(struct rig *r, const struct tfc_text *state) {
  assert_ok(tfc_resources_read_state(r->resources, (tfc_str){state->data, state->size}));
  assert_ok(tfc_session_read_state(r->session, (tfc_str){state->data, state->size}));
}

static void goes_on(void **unused) {
  (void)unused;
  struct rig a, b;
  struct tfc_text first = {0}, state = {0}, again = {0}, wanted = {0}, end = {0};
  rig_make(&a);
  move_all(&a, before, BEFORE, &first);
  save(&a, &state);
  move_all(&a, after, AFTER, &wanted);
  save(&a, &end);
  rig_free(&a);
  // `there`: so many moves make objects, which then hold something else, before the state is loaded.
  static const int some[] = {0, BEFORE / 2, BEFORE};
  for (int k = 0; k < 3; k++) {
    const int there = some[k];
    struct tfc_text got = {0}, other = {0};
    rig_make(&b);
    move_all(&b, before, there, &other);
    load(&b, &state);
    again.size = 0;
    save(&b, &again); // also what no step has used since
    assert_int_equal(again.size, state.size);
    if (there == BEFORE) assert_string_equal(again.data, state.data);
    move_all(&b, after, AFTER, &got);
    assert_string_equal(got.data, wanted.data);
    again.size = 0;
    save(&b, &again);
    assert_string_equal(again.data, end.data);
    rig_free(&b);
    tfc_text_deinit(&got);
    tfc_text_deinit(&other);
  }
  tfc_text_deinit(&first), tfc_text_deinit(&state), tfc_text_deinit(&again), tfc_text_deinit(&wanted);
  tfc_text_deinit(&end);
}

// Every object's line, cut at each of its words, is refused by objects that exist and by those that are made later.
static void refuses(void **unused) {
  (void)unused;
  struct rig a;
  struct tfc_text first = {0}, state = {0};
  int cuts = 0;
  rig_make(&a);
  move_all(&a, before, BEFORE, &first);
  save(&a, &state);
  tfc_str text = {state.data, state.size}, line;
  while (tfc_line_next(&text, &line))
    for (size_t i = 0; i < line.size; i++) {
      if (line.data[i] != '\t' || !tfc_str_starts(line, "object\t")) continue;
      cuts++;
      tfc_status s = tfc_resources_read_state(a.resources, tfc_str_sub(line, 0, i));
      if (!s && i > 6) fail_msg("taken: %.*s", (int)i, line.data);
      tfc_status_free(s);
    }
  assert_true(cuts > 100);
  static const char *const broken[] = {
      "object\t\tfifo\taccumulator\t0\t0\t0",                          // another type
      "object\t\tfifo\tqueue\t0\t7",                                   // another number of components
      "object\t\tfifo\tqueue\t3\t2",                                   // another kind
      "object\t\tdense\taccumulator\t0\t0\t1\tfloat32\t\t0000803",     // half a byte
      "object\t\tdense\taccumulator\t0\t0\t1\tfloat32\t\t0000803g",    // not a digit
      "object\t\tdense\taccumulator\t0\t0\t1\tfloat32\t2\t0000803f",   // fewer bytes than elements
      "object\t\tdense\taccumulator\t0\t0\t1\tint32\t\t0000803f",      // another element type
      "object\t\tdense\taccumulator\t0\t0\t1\tfloat32\t-1\t",          // a negative dimension
      "object\t\tdense\taccumulator\t0\t0\t1\tfloat32\t\t0000803f\t1", // words are left
      "object\t\tdense\taccumulator\t1\t0\t0",                         // sparse
      "object\t\treader\treader\t1\t0\t1\t2f6e6f7768657265\t9\t2\t1",  // a file that is not there
      "object\tcandidates\tlearned\tlearned unigram distribution\t7\t0100000001000000",
      "object\tcandidates\tlearned\tlearned unigram distribution\t5\t0100000001000000000000000100000002000000",
      "object\t\ttable\thash table\t696e743634\t0",                          // keys of another type
      "object\t\ttable\thash table\t737472696e67\t1\t61\tint32\t\t01000000", // values of another type
      "object\t\ttable\thash table\t737472696e67\t1\t61\tint64\t1\t0100000000000000",
      "object\t\tmap\tstaging map\t2\t1\t5\t1\tfloat32\t\t0000803f\t2", // neither there nor not
      "object\t\tmap\tstaging map\t2\t2\t5\t0\t0\t5\t0\t0\t0",          // a key twice
      "object\t\tfifo",
      "object\t\t\tqueue",
  };
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    tfc_status s = tfc_resources_read_state(a.resources, tfc_str_from(broken[i]));
    if (!s) fail_msg("taken: %s", broken[i]);
    tfc_status_free(s);
  }
  rig_free(&a);
  rig_make(&a);
  struct tfc_text out = {0};
  assert_ok(tfc_resources_read_state(a.resources, tfc_str_from(broken[0])));
  for (int i = 0; i < 2; i++)
    assert_fails(try_move(&a, &(struct move){"put_fifo", 1}, &out), TFC_INVALID_ARGUMENT,
                 "'fifo' is a queue, and was a accumulator");
  rig_free(&a);
  tfc_text_deinit(&first), tfc_text_deinit(&state), tfc_text_deinit(&out);
}

#define ELEMENT(text) "\tfloat32\t\t" text "\tstring\t\t61"
static void waiting_elements(void **unused) {
  (void)unused;
  struct rig r;
  struct tfc_text got = {0};
  // Two elements are in the queue, which has room for three; two steps waited to put in two elements and one.
  static const char state[] = "object\t\tfifo\tqueue\t0\t2\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t4\t0"
                              "\t2" ELEMENT("0000803f") ELEMENT("00000040") "\t2\t2" ELEMENT("00004040")
                                  ELEMENT("00008040") "\t1" ELEMENT("0000a040") "\n";
  rig_make(&r);
  assert_ok(tfc_resources_read_state(r.resources, tfc_str_from(state)));
  for (int i = 0; i < 5; i++) assert_ok(try_move(&r, &(struct move){"take_fifo", 0}, &got));
  const char *at = got.data;
  static const char *const wanted[] = {"0000803f", "00000040", "00004040", "00008040", "0000a040"};
  for (int i = 0; i < 5; i++) {
    at = strstr(at, wanted[i]);
    if (!at) fail_msg("not in order: %s", got.data);
  }
  got.size = 0;
  assert_ok(try_move(&r, &(struct move){"size_fifo", 0}, &got));
  assert_string_equal(got.data, "size_fifo\tint32\t\t00000000\n");
  // They are freed with the queue, too.
  assert_ok(tfc_resources_read_state(r.resources, tfc_str_from(state)));
  rig_free(&r);
  tfc_text_deinit(&got);
}

int main(void) {
  const int file = mkstemp(path);
  if (file < 0 || write(file, "first\nsecond\nthird\n", 19) != 19) return 1;
  close(file);
  const struct CMUnitTest tests[] = {cmocka_unit_test(goes_on), cmocka_unit_test(refuses),
                                     cmocka_unit_test(waiting_elements)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
