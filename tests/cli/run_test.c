// Runs tfc-run --run as other programs do: with input files and output files. Checks every field and every exit code.
#include "tests/common/test.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/io/npy.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define FLOATS(key) ATTR(key, "list { type: DT_FLOAT }")
static const char graph[] = NODE("x", "Placeholder", FLOAT("dtype") ATTR("shape", "shape { dim { size: -1 } }")) NODE(
    "n", "Placeholder", ATTR("dtype", "type: DT_INT32") ATTR("shape", "shape { dim { size: -1 } }"))
    NODE("scope/b", "Placeholder", ATTR("dtype", "type: DT_BFLOAT16") ATTR("shape", "shape { dim { size: -1 } }")) NODE(
        "y", "Square", IN("x") FLOAT("T")) NODE("scope/twice", "Add",
                                                IN("scope/b") IN("scope/b") ATTR("T", "type: DT_BFLOAT16"))
        NODE("words", "AsString", IN("x") FLOAT("T")) NODE(
            "zero", "Const", FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 }"))
            NODE("one", "Const",
                 FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 }"))
                NODE("v", "VariableV2", FLOAT("dtype") ATTR("shape", "shape {}"))
                    NODE("init", "Assign", IN("v") IN("zero") FLOAT("T")) NODE(
                        "count", "AssignAdd", IN("v") IN("one") FLOAT("T")) NODE("read", "Identity", IN("v") FLOAT("T"))
                        NODE("q", "FIFOQueueV2",
                             FLOATS("component_types") ATTR("shapes", "list { shape {} }") ATTR("capacity", "i: 2"))
                            NODE("put", "QueueEnqueueV2", IN("q") IN("one") FLOATS("Tcomponents"))
                                NODE("take", "QueueDequeueV2", IN("q") FLOATS("component_types"))
                                    NODE("close", "QueueCloseV2", IN("q"))
                                        NODE("checked", "CheckNumerics",
                                             IN("x") FLOAT("T") ATTR("message", "s: \"not finite\""))
                                            NODE("odd", "Frobnicate", IN("x"))
                                                NODE("any", "Placeholder",
                                                     FLOAT("dtype") ATTR("shape", "shape { unknown_rank: true }"))
                                                    NODE("any2", "Square", IN("any") FLOAT("T"))
                                                        NODE("odd2", "Frobnicate", IN("any2"))
                                                            NODE("behind", "Square", IN("odd2") FLOAT("T"));

static char folder[64];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "run")) return -1;
  command_put(folder, "g.pbtxt", graph);
  struct tfc_tensor t = {0};
  char path[128];
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(3), &t));
  for (int i = 0; i < 3; i++) ((float *)t.data)[i] = (float)i + 1.5f;
  snprintf(path, sizeof path, "%s/x.npy", folder);
  assert_ok(tfc_npy_write(path, &t));
  ((float *)t.data)[1] = 1.0f / 0.0f;
  snprintf(path, sizeof path, "%s/bad.npy", folder);
  assert_ok(tfc_npy_write(path, &t));
  tfc_tensor_release(&t);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static struct tfc_tensor got(const char *name) { // reads a tensor from the folder of results
  char path[256];
  struct tfc_tensor t = {0};
  snprintf(path, sizeof path, "%s/out/deep/%s.npy", folder, name);
  assert_ok(tfc_npy_read(path, &t));
  return t;
}
static float number(const char *name, int i) {
  struct tfc_tensor t = got(name);
  assert_true(t.dtype == TFC_FLOAT && i < tfc_tensor_elements(&t));
  float x = ((const float *)t.data)[i];
  tfc_tensor_release(&t);
  return x;
}

#define RUN(code, text, script, flags)                                                                                 \
  do {                                                                                                                 \
    command_put(folder, "s.json", "{\"runs\": [" script "]}");                                                         \
    assert_exit(code, text, "tfc-run --graph %s/g.pbtxt --run %s/s.json --out %s/out/deep %s", folder, folder, folder, \
                flags);                                                                                                \
  } while (0)

static void files_in_and_out(void **state) {
  (void)state;
  RUN(0, "",
      "{\"feeds\": {\"x:0\": \"x.npy\", \"scope/b:0\": \"x.npy\"}, \"fetches\": [\"y:0\", \"scope/twice:0\", "
      "\"words:0\"]},"
      "{\"targets\": [\"init\"]}, {\"targets\": [\"count\"], \"fetches\": []}, {\"targets\": [\"^count\"]},"
      "{\"fetches\": [\"read:0\", \"v:0\"]}",
      "");
  assert_true(number("0/y_0", 2) == 3.5f * 3.5f);
  assert_true(number("0/scope_twice_0", 1) == 5); // a bfloat16 is fed and fetched as float32
  struct tfc_tensor words = got("0/words_0");
  assert_true(words.dtype == TFC_STRING && tfc_str_is(tfc_tensor_get_string(&words, 0), "1.500000"));
  tfc_tensor_release(&words);
  assert_true(number("4/read_0", 0) == 2 && number("4/v_0", 0) == 2);
}

static void feeds_of_other_types(void **state) {
  (void)state;
  struct tfc_tensor t = {0};
  char path[128];
  assert_ok(tfc_tensor_create(TFC_DOUBLE, &TFC_SHAPE(2), &t));
  ((double *)t.data)[0] = -1.5, ((double *)t.data)[1] = 0.1;
  snprintf(path, sizeof path, "%s/double.npy", folder);
  assert_ok(tfc_npy_write(path, &t));
  t.dtype = TFC_INT64;
  ((int64_t *)t.data)[0] = 7, ((int64_t *)t.data)[1] = (int64_t)1 << 40;
  snprintf(path, sizeof path, "%s/long.npy", folder);
  assert_ok(tfc_npy_write(path, &t));
  tfc_tensor_release(&t);
  RUN(0, "",
      "{\"feeds\": {\"x:0\": \"double.npy\", \"scope/b:0\": \"long.npy\"}, \"fetches\": [\"y:0\", \"scope/twice:0\"]}",
      "");
  assert_true(number("0/y_0", 0) == 2.25f && number("0/y_0", 1) == 0.1f * 0.1f);
  assert_true(number("0/scope_twice_0", 0) == 14);
  RUN(3, "feed 'n:0': is int64, the graph wants int32, which cannot hold 1099511627776",
      "{\"feeds\": {\"n:0\": \"long.npy\"}, \"fetches\": [\"n:0\"]}", "");
}

// A fetched reference edge gives its variable's value at the end of the step, in graphs with queues too.
static void references_at_the_end(void **state) {
  (void)state;
  RUN(0, "",
      "{\"targets\": [\"init\"]}, {\"targets\": [\"count\"], \"fetches\": [\"v:0\"]},"
      "{\"targets\": [\"put\", \"count\"], \"fetches\": [\"v:0\", \"init:0\"]}, {\"targets\": [\"put\", \"count\"], "
      "\"fetches\": [\"v:0\"]}",
      "");
  assert_true(number("1/v_0", 0) == 1);
  assert_true(number("2/v_0", 0) == number("2/init_0", 0));
  assert_true(number("3/v_0", 0) == number("2/v_0", 0) + 1);
}

static void values_come_first(void **state) {
  (void)state;
  char flags[256];
  RUN(3, "variable 'v' is not initialized", "{\"fetches\": [\"read:0\"]}", ""); // with --run no initialiser is inferred
  snprintf(flags, sizeof flags, "--init init --init count --save-checkpoint %s/c", folder);
  RUN(0, "", "{\"targets\": [\"count\"], \"fetches\": []}", flags);
  snprintf(flags, sizeof flags, "--checkpoint %s/c", folder);
  RUN(0, "1 of 1 variables restored", "{\"fetches\": [\"read:0\"]}", flags);
  assert_true(number("0/read_0", 0) == 2);
  snprintf(flags, sizeof flags, "--init init --checkpoint %s/c",
           folder); // the checkpoint is restored after the initialiser
  RUN(0, "", "{\"fetches\": [\"read:0\"]}", flags);
  assert_true(number("0/read_0", 0) == 2);
  RUN(3, "nothing.index", "{\"fetches\": [\"read:0\"]}", "--checkpoint nothing");
  RUN(3, "--init nothing", "{\"fetches\": [\"read:0\"]}", "--init nothing");
}

// A slot of a variable in parts is saved as a slice, too: w/part_K/slot is the K-th part of w/slot.
static void slots_in_parts(void **state) {
  (void)state;
#define STRINGS(name, a, b)                                                                                            \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: DT_STRING")                                                                                \
           ATTR("value", "tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: '" a                  \
                         "' string_val: '" b "' }"))
#define PART(k, size, values)                                                                                          \
  NODE("c" k, "Const",                                                                                                 \
       FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: " size " } } " values " }"))  \
  NODE("w/part_" k "/slot", "VariableV2", FLOAT("dtype") ATTR("shape", "shape { dim { size: " size " } }"))            \
  NODE("r" k, "Identity", IN("w/part_" k "/slot") FLOAT("T"))
  static const char text[] = PART("0", "2", "float_val: 1 float_val: 2") PART("1", "1", "float_val: 3")
      STRINGS("names", "w/slot", "w/slot") STRINGS("slices", "3 0,2", "3 2,1")
          NODE("file", "Placeholder", ATTR("dtype", "type: DT_STRING") ATTR("shape", "shape { }"))
              NODE("save", "SaveV2",
                   IN("file") IN("names") IN("slices") IN("c0") IN("c1")
                       ATTR("dtypes", "list { type: DT_FLOAT type: DT_FLOAT }"));
  command_put(folder, "parts.pbtxt", text);
  struct tfc_tensor file = {0};
  char path[128];
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE_SCALAR, &file));
  snprintf(path, sizeof path, "%s/parts", folder);
  assert_ok(tfc_tensor_set_string(&file, 0, tfc_str_from(path)));
  snprintf(path, sizeof path, "%s/file.npy", folder);
  assert_ok(tfc_npy_write(path, &file));
  tfc_tensor_release(&file);
  command_put(folder, "s.json", "{\"runs\": [{\"feeds\": {\"file:0\": \"file.npy\"}, \"targets\": [\"save\"]}]}");
  assert_exit(0, "", "tfc-run --graph %s/parts.pbtxt --run %s/s.json --out %s/out/deep", folder, folder, folder);
  command_put(folder, "s.json", "{\"runs\": [{\"fetches\": [\"r0:0\", \"r1:0\"]}]}");
  assert_exit(0, "2 of 2 variables restored",
              "tfc-run --graph %s/parts.pbtxt --run %s/s.json --out %s/out/deep --checkpoint %s/parts", folder, folder,
              folder, folder);
  assert_true(number("0/r0_0", 0) == 1 && number("0/r0_0", 1) == 2 && number("0/r1_0", 0) == 3);
}

static void failures(void **state) {
  (void)state;
  RUN(3, "run 1: node 'checked' (CheckNumerics) on cpu:0, inputs (float32[3]): not finite",
      "{\"targets\": [\"init\"]}, {\"feeds\": {\"x:0\": \"bad.npy\"}, \"fetches\": [\"checked:0\"]}, {\"targets\": "
      "[\"no\"]}",
      "");
  RUN(3, "run 0", "{\"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"odd:0\"]}", "");
  RUN(3, "op Frobnicate", "{\"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"odd:0\"]}", "");
  RUN(3, "'x'", "{\"fetches\": [\"y:0\"]}", "");
  RUN(3, "missing.npy", "{\"feeds\": {\"x:0\": \"missing.npy\"}, \"fetches\": [\"y:0\"]}", "");
  RUN(3, "b.npy", "{\"feeds\": {\"x:0\": \"b.npy\"}, \"fetches\": [\"y:0\"]}", "");
  RUN(3, "there is no node 'nobody'", "{\"fetches\": [\"nobody:0\"]}", "");
  RUN(3, "'fetches' is not a list", "{\"fetches\": \"y:0\"}", "");
  RUN(3, "is not a list of runs", "{\"together\": 3}", "");
  // A key that the program does not know is reported before the first run of the script, even if it is in a later one.
  RUN(3, "run 1: unknown key 'fetch' (there are feeds, fetches,", "{\"targets\": [\"no\"]}, {\"fetch\": [\"y:0\"]}",
      "");
  RUN(3, "run 0, together 1: unknown key 'partial'",
      "{\"together\": [{\"fetches\": [\"y:0\"]}, {\"partial\": \"p\", \"fetches\": [\"y:0\"]}]}", "");
  RUN(3, "run 0: unknown key 'targets'", "{\"together\": [{\"fetches\": [\"y:0\"]}], \"targets\": [\"no\"]}", "");
  RUN(3, "run 1: not an object", "{\"fetches\": [\"y:0\"]}, 3", "");
  command_put(folder, "s.json", "{\"runs\": [], \"run\": []}");
  assert_exit(3, "s.json: the script: unknown key 'run'", "tfc-run --graph %s/g.pbtxt --run %s/s.json --out %s/out",
              folder, folder, folder);
  RUN(0, "",
      "{\"comment\": \"c\", \"expected\": {\"y:0\": \"y.npy\"}, \"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": "
      "[\"y:0\"]}",
      "");
  RUN(1, "waits for FIFOQueue 'q' (0 elements, capacity 2)", "{\"fetches\": [\"take:0\"]}", ""); // queue q is empty
  RUN(1, "did not end within 1e-06 ms: it had not begun", "{\"fetches\": [\"take:0\"], \"deadline_ms\": 0.000001}", "");
  // the status is CANCELLED, but no signal came, so the exit code is 1 and not 130
  RUN(1, "is closed", "{\"targets\": [\"close\"]}, {\"targets\": [\"put\"]}", "");
  command_put(folder, "s.json", "{\"runs\": [{\"fetches\": [\"y:0\"]]}");
  assert_exit(3, "s.json: line 1", "tfc-run --graph %s/g.pbtxt --run %s/s.json --out %s/out", folder, folder, folder);
  assert_exit(3, "none.json", "tfc-run --graph %s/g.pbtxt --run %s/none.json --out %s/out", folder, folder, folder);
  assert_exit(2, "--out", "tfc-run --graph %s/g.pbtxt --run %s/s.json", folder, folder);
  assert_exit(2, "--save-checkpoint needs a name", "tfc-run --graph %s/g.pbtxt --save-checkpoint '' --init init",
              folder);
  assert_exit(2, "--supervise DIR", "tfc-run --graph %s/g.pbtxt --save-every 5s", folder);
  command_put(folder, "s.json", "{\"runs\": [{\"targets\": [\"init\"], \"fetches\": [\"one:0\"]}]}");
  assert_exit(6, "/proc/none", "tfc-run --graph %s/g.pbtxt --run %s/s.json --out /proc/none", folder, folder);
}

static void expected_errors(void **state) {
  (void)state;
  RUN(0, "",
      "{\"targets\": [\"init\"]}, {\"feeds\": {\"x:0\": \"bad.npy\"}, \"fetches\": [\"checked:0\"], \"error\": \"not "
      "finite\"},"
      "{\"fetches\": [\"take:0\"], \"error\": \"deadlock\"}, {\"targets\": [\"count\"]}, {\"fetches\": [\"read:0\"]}",
      "");
  assert_true(number("4/read_0", 0) == 1);
  RUN(1, "it succeeded", "{\"targets\": [\"init\"], \"error\": \"x\"}", "");
  RUN(1, "an error with 'zz' is expected, this one came", "{\"fetches\": [\"read:0\"], \"error\": \"zz\"}", "");
}

static void side_by_side(void **state) {
  (void)state;
  RUN(0, "",
      "{\"targets\": [\"init\"]}, {\"together\": [{\"fetches\": [\"take:0\"]}, {\"targets\": [\"put\"]},"
      "{\"targets\": [\"count\"]}, {\"targets\": [\"count\"]}]}, {\"fetches\": [\"read:0\"]}",
      "");
  assert_true(number("1/0/take_0", 0) == 1);
  assert_true(number("2/read_0", 0) == 2);
  RUN(1, "run 0, together",
      "{\"together\": [{\"fetches\": [\"take:0\"]}, {\"fetches\": [\"take:0\"]}, {\"targets\": [\"put\"]}]}", "");
  RUN(1, "waits for FIFOQueue",
      "{\"together\": [{\"fetches\": [\"take:0\"]}, {\"fetches\": [\"take:0\"]}, {\"targets\": [\"put\"]}]}",
      "--devices cpu:0-1");
}

static void in_pieces(void **state) {
  (void)state;
  RUN(0, "",
      "{\"targets\": [\"init\"]}, {\"partial\": \"p\", \"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"y:0\"]},"
      "{\"targets\": [\"count\"]}, {\"partial\": \"p\", \"fetches\": [\"scope/twice:0\"], \"error\": \"cannot be "
      "computed\"},"
      "{\"partial\": \"p\", \"feeds\": {\"scope/b:0\": \"x.npy\"}, \"fetches\": [\"scope/twice:0\"]},"
      "{\"partial\": \"p\", \"fetches\": [\"y:0\"], \"error\": \"fetched before\"}",
      "");
  assert_true(number("1/y_0", 0) == 2.25f && number("4/scope_twice_0", 2) == 7);
  RUN(3, "is not the name of a step", "{\"partial\": 3}", "");
}

static void document(void **state) {
  (void)state;
  command_put(folder, "s.json",
              "{\"runs\": [{\"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"y:0\"]}, {\"fetches\": [\"read:0\"]}]}");
  const struct command_result *r =
      command("tfc-run --json --graph %s/g.pbtxt --run %s/s.json --out %s/out/deep", folder, folder, folder);
  assert_int_equal(r->code, 3);
  json_t *d = json_loads(r->out, 0, NULL);
  assert_non_null(d);
  const json_t *runs = json_object_get(d, "runs"), *y;
  assert_int_equal(json_array_size(runs), 2);
  y = json_object_get(json_object_get(json_array_get(runs, 0), "fetches"), "y:0");
  assert_string_equal(json_string_value(json_object_get(y, "dtype")), "float32");
  assert_int_equal(json_integer_value(json_array_get(json_object_get(y, "shape"), 0)), 3);
  assert_true(json_number_value(json_object_get(json_array_get(runs, 0), "wall_us")) > 0);
  const json_t *error = json_object_get(json_array_get(runs, 1), "error");
  assert_string_equal(json_string_value(json_object_get(error, "code")), "failed precondition");
  assert_non_null(strstr(json_string_value(json_object_get(error, "message")), "variable 'v'"));
  json_decref(d);
}

// A misprint in a node's name gives an error that suggests the right name. An output (name:0) may stand for its
// operation. If an op is not known, that error is reported before others.
static void near_names(void **state) {
  (void)state;
#define STEP(flags) "tfc-run --graph %s/g.pbtxt --steps 1 " flags, folder
  assert_exit(3, "--target cuont: there is no node 'cuont' in the graph; did you mean 'count'?",
              STEP("--target cuont"));
  assert_exit(3, "--fetch twice:0: there is no node 'twice' in the graph; did you mean 'scope/twice'?",
              STEP("--fetch twice:0"));
  assert_exit(3, "--init inti: there is no node 'inti' in the graph; did you mean 'init'?",
              STEP("--target count --init inti"));
  const struct command_result *r = command(STEP("--target somethingelse"));
  assert_true(r->code == 3 && !strstr(r->err, "did you mean"));
  assert_exit(0, "", STEP("--target count:0 --init init:0"));
  assert_exit(0, "", STEP("--target close:0 --warmup 0")); // an operation without outputs
  assert_exit(3, "node 'odd': op Frobnicate is not known", STEP("--target odd"));
  // (The placeholder of 'behind' has no shape, but the unknown op is reported first.)
  assert_exit(3, "node 'odd2': op Frobnicate is not known", STEP("--fetch behind:0"));
  // An operation has no value: the error names it, and says what can be done with it.
  assert_exit(3,
              "--fetch ^count: '^count' is the operation and none of its outputs: name one, as 'count:0', or run the "
              "operation as a target (--target count)",
              STEP("--fetch ^count"));
  assert_exit(3, "--fetch ^close: node 'close' (QueueCloseV2) has no outputs; run it as a target (--target close)",
              STEP("--fetch ^close"));
  assert_exit(3, "'close' (QueueCloseV2) has no outputs; run it as a target (--target close)",
              STEP("--fetch close:0=close.npy"));
  assert_exit(3, "--feed ^count=float32[]: '^count' is the operation", STEP("--feed '^count=float32[]'"));
  RUN(3, "'put' (QueueEnqueueV2) has no outputs; run it as a target", "{\"fetches\": [\"put\"]}", "");
  command_put(folder, "s.json", "{\"runs\": [{\"fetches\": [\"behind:0\"]}]}");
  assert_exit(3, "node 'odd2': op Frobnicate is not known", "tfc-run --graph %s/g.pbtxt --run %s/s.json --out %s/out",
              folder, folder, folder);
}

// What --profile keeps of each operation is the sum of what it keeps of each step.
static void totals(void **state) {
  (void)state;
  assert_exit(
      0, "",
      "tfc-run --graph %s/g.pbtxt --feed 'x=float32[3]' --fetch words:0 --fetch y:0 --steps 4 --profile --db %s/t.db",
      folder, folder);
  char path[96];
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  snprintf(path, sizeof path, "%s/t.db", folder);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  static const char sql[] =
      "SELECT COUNT(*), SUM(abs(t.total_us - o.us) < 1e-6 AND t.samples = o.n) FROM v_op_total t JOIN"
      " (SELECT node_id, SUM(duration_us) AS us, COUNT(*) AS n FROM v_op GROUP BY node_id) o USING"
      " (node_id) WHERE o.n = 4";
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  assert_int_equal(sqlite3_column_int(q, 0), 2); // the nodes words and y
  assert_int_equal(sqlite3_column_int(q, 1), 2);
  sqlite3_finalize(q);
  // The step's edges are there, and each operation ran where the placement has it.
  static const char graph_sql[] =
      "SELECT (SELECT COUNT(*) FROM v_edge WHERE producer = 'x' AND consumer IN ('words', 'y') AND bytes = 12),"
      " (SELECT COUNT(*) FROM v_op), (SELECT COUNT(*) FROM v_op JOIN v_placement USING (run_id, placement_id, node_id,"
      " device_id))";
  assert_int_equal(sqlite3_prepare_v2(db, graph_sql, -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  assert_int_equal(sqlite3_column_int(q, 0), 2);
  assert_int_equal(sqlite3_column_int(q, 1), 8);
  assert_int_equal(sqlite3_column_int(q, 2), 8);
  sqlite3_finalize(q);
  sqlite3_close(db);
}

// A profiled run says why it ended and how long it took, from loading the graph on: warm-up, which is nearly all of it
// here, counts. It is less than the whole process took.
static void ended(void **state) {
  (void)state;
  char path[96];
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  struct timespec began, now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  assert_exit(0, "",
              "tfc-run --graph %s/g.pbtxt --feed 'x=float32[3]' --fetch y:0 --steps 4 --warmup 30000 --profile --db "
              "%s/ended.db",
              folder, folder);
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double took = (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
  snprintf(path, sizeof path, "%s/ended.db", folder);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db,
                                      "SELECT ending, wall_s, (SELECT COUNT(*) FROM v_step), (SELECT 1e-6 * "
                                      "SUM(step_us) FROM v_step) FROM v_run",
                                      -1, &q, NULL),
                   SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  assert_string_equal((const char *)sqlite3_column_text(q, 0),
                      "It ended with the 4 of 4 steps that it was to time, after 30000 of warm-up.");
  const double wall = sqlite3_column_double(q, 1);
  if (!(wall > 0.3 * took && wall < took)) fail_msg("a wall time of %g s, the process took %g s", wall, took);
  assert_int_equal(sqlite3_column_int(q, 2), 4); // warm-up is no step of the profile
  assert_true(sqlite3_column_double(q, 3) < 0.1 * wall);
  sqlite3_finalize(q);
  sqlite3_close(db);
  const struct command_result *shown = command("tfc-report --db %s/ended.db show", folder);
  assert_int_equal(shown->code, 0);
  if (!strstr(shown->out, "It ended with the 4 of 4 steps that it was to time, after 30000 of warm-up. It\ntook ") ||
      !strstr(shown->out, " in all, from loading the graph on."))
    fail_msg("no ending in: %s", shown->out);
}

// With --wait, --profile waits for who writes to the database; without it that is an error. Devices that share cores
// are a warning, which the database keeps.
static void waiting(void **state) {
  (void)state;
#define PROFILED "tfc-run --graph g.pbtxt --feed 'x=float32[3]' --fetch y:0 --steps 1 --profile --db w.db "
  assert_exit(0, "waiting",
              "cd %s && { flock w.db.lock sh -c ': >held; n=0; until grep -q waiting said || [ $n = 600 ]; do n=$((n + "
              "1)); sleep 0.05; done' & } && until [ -e held ]; do sleep 0.01; done; " PROFILED
              "--wait 2>said; code=$?; cat said >&2; exit $code",
              folder);
  assert_exit(6, "w.db",
              "cd %s && rm held && { flock w.db.lock sh -c ': >held; until [ ! -e held ]; do sleep 0.01; done' & } && "
              "until [ -e held ]; do sleep 0.01; done; " PROFILED "; code=$?; rm held; exit $code",
              folder);
  assert_exit(0, "oversubscribed",
              "cd %s && " PROFILED "--devices cpu:0-$(nproc) && sqlite3 w.db \"SELECT text FROM v_warning\" | grep -q "
              "'CPU devices share .*oversubscribed'",
              folder);
  assert_exit(2, "--wait goes with --profile",
              "cd %s && tfc-run --graph g.pbtxt --feed 'x=float32[3]' --fetch y:0 --wait", folder);
}

// On a terminal a note is broken at 80 columns; where stderr goes elsewhere it stays one line.
static void width_of_messages(void **state) {
  (void)state;
#define NOTES "NO_COLOR=1 tfc-run --graph " TFC_SOURCE_DIR "/examples/mlp.pb --steps 1"
  assert_exit(0, "",
              "cd %s && " NOTES " 2>whole >values && script -qec '" NOTES
              " >values' typed >values && grep -v ^Script typed | "
              "tr '\\r' '\\n' >broken && grep -qE 'feed: labels.{60}' whole && grep -q 'feed: labels' broken && "
              "! grep -E '.{81}' broken",
              folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(width_of_messages),
      cmocka_unit_test(feeds_of_other_types),
      cmocka_unit_test(references_at_the_end),
      cmocka_unit_test(files_in_and_out),
      cmocka_unit_test(values_come_first),
      cmocka_unit_test(slots_in_parts),
      cmocka_unit_test(failures),
      cmocka_unit_test(near_names),
      cmocka_unit_test(totals),
      cmocka_unit_test(ended),
      cmocka_unit_test(waiting),
      cmocka_unit_test(expected_errors),
      cmocka_unit_test(side_by_side),
      cmocka_unit_test(in_pieces),
      cmocka_unit_test(document),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
