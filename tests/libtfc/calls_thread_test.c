// Calls tfc.h as programs do: with their own memory, with mistakes, and from several threads.
#include "tests/common/test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libtfc/tfc.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define IN(name) " input: \"" name "\""
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define CONST(value) ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " value " }")
static const char graph[] = NODE("x", "Placeholder", FLOAT("dtype") ATTR("shape", "shape { dim { size: -1 } }"))
    NODE("s", "Placeholder", ATTR("dtype", "type: DT_STRING") ATTR("shape", "shape { dim { size: -1 } }"))
        NODE("square", "Square", IN("x") FLOAT("T")) NODE("upper", "StringUpper", IN("s"))
            NODE("zero", "Const", FLOAT("dtype") CONST("0")) NODE("one", "Const", FLOAT("dtype") CONST("1"))
                NODE("v", "VarHandleOp", FLOAT("dtype") ATTR("shape", "shape {}") ATTR("shared_name", "s: \"v\""))
                    NODE("init", "AssignVariableOp", IN("v") IN("zero") FLOAT("dtype"))
                        NODE("count", "AssignAddVariableOp",
                             IN("v") IN("one") FLOAT("dtype")) NODE("read", "ReadVariableOp", IN("v") FLOAT("dtype"))
                            NODE("checked", "CheckNumerics", IN("x") FLOAT("T") ATTR("message", "s: \"not finite\""));

static char folder[64], path[128];
static tfc_model *model;

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "calls")) return -1;
  command_put(folder, "g.pbtxt", graph);
  snprintf(path, sizeof path, "%s/g.pbtxt", folder);
  tfc_error *error = tfc_model_open(path, NULL, &model);
  if (error) print_error("%s\n", tfc_error_text(error));
  return error ? -1 : 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_model_close(model);
  return test_folder_remove(folder);
}

#define assert_fine(call)                                                                                              \
  do {                                                                                                                 \
    tfc_error *error_ = (call);                                                                                        \
    if (error_) fail_msg("%s", tfc_error_text(error_));                                                                \
  } while (0)
#define assert_error(call, code, text)                                                                                 \
  do {                                                                                                                 \
    tfc_error *error_ = (call);                                                                                        \
    assert_non_null(error_);                                                                                           \
    assert_int_equal(tfc_error_code(error_), code);                                                                    \
    if (!strstr(tfc_error_text(error_), text)) fail_msg("no '%s' in: %s", text, tfc_error_text(error_));               \
    tfc_error_free(error_);                                                                                            \
  } while (0)

static tfc_call *prepare(const char *feed, const char *fetch, const char *target) {
  tfc_call *call = NULL;
  assert_fine(tfc_call_prepare(model,
                               &(tfc_call_spec){.feeds = &feed,
                                                .feed_count = feed != NULL,
                                                .fetches = &fetch,
                                                .fetch_count = fetch != NULL,
                                                .targets = &target,
                                                .target_count = target != NULL},
                               &call));
  return call;
}
static tfc_array floats(float *data, int64_t count) {
  return (tfc_array){
      .dtype = TFC_ARRAY_FLOAT32, .rank = 1, .dims = {count}, .data = data, .bytes = (size_t)count * sizeof *data};
}

static void in_the_callers_memory(void **state) {
  (void)state;
  float x[5] = {9, 1, 2, 3, 4}, y[4] = {0};
  tfc_call *call = prepare("x", "square:0", NULL);
  assert_true(isnan(tfc_call_step_us(call)));
  tfc_array in = floats(x + 1, 3), out = {.data = y, .bytes = sizeof y}; // an address that is aligned to floats only
  assert_fine(tfc_call_run(call, &in, &out));
  assert_ptr_equal(out.data, y);
  assert_int_equal(out.dtype, TFC_ARRAY_FLOAT32);
  assert_int_equal(out.rank, 1);
  assert_int_equal(out.dims[0], 3);
  assert_int_equal(out.bytes, 12);
  assert_true(y[0] == 1 && y[1] == 4 && y[2] == 9 && y[3] == 0);
  assert_true(tfc_call_step_us(call) > 0);
  // A tensor without elements is a value too.
  in = floats(x, 0), out = (tfc_array){.data = y, .bytes = sizeof y};
  assert_fine(tfc_call_run(call, &in, &out));
  assert_int_equal(out.bytes, 0);
  tfc_call_free(call);
}

static void in_the_librarys_memory(void **state) {
  (void)state;
  float x[3] = {1, 2, 3};
  tfc_call *call = prepare("x", "square", NULL);
  tfc_array out = {0};
  for (int64_t n = 1; n <= 3; n++) { // the second and third call write to the same record
    tfc_array in = floats(x, n);
    assert_fine(tfc_call_run(call, &in, &out));
    assert_non_null(out.owner);
    assert_int_equal(out.dims[0], n);
    assert_true(((float *)out.data)[n - 1] == (float)(n * n));
  }
  tfc_array_clear(&out);
  assert_null(out.data);
  tfc_array_clear(&out);
  tfc_call_free(call);
}

static void strings(void **state) {
  (void)state;
  const tfc_text_element words[3] = {{"abc", 3}, {NULL, 0}, {"x\0y", 3}};
  tfc_array in = {
      .dtype = TFC_ARRAY_STRING, .rank = 1, .dims = {3}, .data = (void *)(uintptr_t)words, .bytes = sizeof words};
  tfc_array out = {0};
  tfc_call *call = prepare("s", "upper", NULL);
  assert_fine(tfc_call_run(call, &in, &out));
  const tfc_text_element *got = out.data;
  assert_int_equal(out.dtype, TFC_ARRAY_STRING);
  assert_int_equal(got[0].size, 3);
  assert_memory_equal(got[0].data, "ABC", 3);
  assert_int_equal(got[1].size, 0);
  assert_memory_equal(got[2].data, "X\0Y", 3);
  tfc_array_clear(&out);
  tfc_call_free(call);
}

// Feeds more different shapes than a call keeps plans for, in mixed order.
static void many_shapes(void **state) {
  (void)state;
  float x[20], y[20];
  for (int i = 0; i < 20; i++) x[i] = (float)i;
  tfc_call *call = prepare("x", "square", NULL);
  for (int k = 0; k < 60; k++) {
    int64_t n = 1 + (k * 7) % 19;
    tfc_array in = floats(x, n), out = {.data = y, .bytes = sizeof y};
    assert_fine(tfc_call_run(call, &in, &out));
    assert_int_equal(out.dims[0], n);
    assert_true(y[n - 1] == (float)((n - 1) * (n - 1)));
  }
  tfc_call_free(call);
}

static void mistakes(void **state) {
  (void)state;
  float x[3] = {1, 2, NAN}, y[2] = {7, 7};
  tfc_call *call = NULL;
  tfc_model *none = NULL;
  const char *odd = "nothing:0", *many = "square:1", *fine = "square:0";
  assert_error(tfc_model_open("/nowhere/g.pb", NULL, &none), TFC_ERROR_NOT_FOUND, "/nowhere/g.pb");
  assert_error(tfc_model_open(path, &(tfc_model_options){.devices = "cpu:x"}, &none), TFC_ERROR_INVALID_ARGUMENT,
               "cpu");
  assert_error(tfc_model_open(path, &(tfc_model_options){.execution = "--rewrites some"}, &none),
               TFC_ERROR_INVALID_ARGUMENT, "some");
  assert_null(none);
  assert_error(tfc_call_prepare(model, &(tfc_call_spec){.feed_count = 0}, &call), TFC_ERROR_INVALID_ARGUMENT, "fetch");
  assert_error(tfc_call_prepare(model, &(tfc_call_spec){.fetches = &odd, .fetch_count = 1}, &call),
               TFC_ERROR_INVALID_ARGUMENT, "nothing");
  assert_error(tfc_call_prepare(model, &(tfc_call_spec){.fetches = &many, .fetch_count = 1}, &call),
               TFC_ERROR_INVALID_ARGUMENT, "'square' (Square) has 1 outputs");
  assert_error(tfc_call_prepare(model, &(tfc_call_spec){.targets = &odd, .target_count = 1}, &call),
               TFC_ERROR_INVALID_ARGUMENT, "nothing:0");
  assert_null(call);
  assert_fine(tfc_call_prepare(model, &(tfc_call_spec){.fetches = &fine, .fetch_count = 1}, &call));
  tfc_array out = {.data = y, .bytes = sizeof y};
  assert_error(tfc_call_run(call, NULL, &out), TFC_ERROR_INVALID_ARGUMENT, "'x'"); // the placeholder is not fed
  tfc_call_free(call);

  call = prepare("x:0", "square:0", NULL);
  tfc_array in = floats(x, 3);
  assert_error(tfc_call_run(call, NULL, &out), TFC_ERROR_INVALID_ARGUMENT, "1 feeds");
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_OUT_OF_RANGE, "has 12 bytes, there is room for 8");
  assert_int_equal(out.bytes, 12); // how many bytes the result needs
  assert_true(y[0] == 7 && y[1] == 7);
  in.bytes = 8;
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "12 bytes");
  in = floats(x, 3), in.rank = 9;
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "rank 9");
  in = floats(x, 3), in.dtype = 99;
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "99");
  in = floats(x, 3), in.dtype = TFC_ARRAY_INT32;
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "int32");
  in = floats(x, -1);
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "dimension 0 is -1");
  in = floats(x, 2), in.data = NULL;
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "no data");
  in = floats((float *)(void *)((char *)x + 1), 2);
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "aligned");
  in = floats(x, 2), out = (tfc_array){.data = y, .bytes = sizeof y}; // after the errors, the call can still be used
  assert_fine(tfc_call_run(call, &in, &out));
  tfc_call_free(call);

  call = prepare("x", "checked", NULL);
  in = floats(x, 3), out = (tfc_array){0};
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "not finite");
  in = floats(x, 2);
  assert_fine(tfc_call_run(call, &in, &out));
  tfc_array_clear(&out);
  tfc_call_free(call);
  assert_int_equal(tfc_error_code(NULL), 0);
  assert_string_equal(tfc_error_text(NULL), "");
}

static void nothing_given(void **state) {
  (void)state;
  const tfc_call_spec no_names[] = {{.fetch_count = 1}, {.feed_count = 2, .fetch_count = 1}, {.target_count = 1}};
  const tfc_text_element broken[1] = {{NULL, 3}};
  tfc_model *no_model = NULL;
  tfc_call *no_call = NULL;
  tfc_profile *no_profile = NULL;
  int32_t dtype;
  assert_error(tfc_model_open(NULL, NULL, &no_model), TFC_ERROR_INVALID_ARGUMENT, "NULL instead of a path");
  assert_error(tfc_model_open(path, NULL, NULL), TFC_ERROR_INVALID_ARGUMENT, "a place for the model");
  assert_error(tfc_model_save(NULL, "p"), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_save");
  assert_error(tfc_model_save(model, NULL), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_save");
  assert_error(tfc_model_restore(NULL, "p"), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_restore");
  assert_error(tfc_model_restore(model, NULL), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_restore");
  assert_error(tfc_model_tensor_type(NULL, "x", &dtype), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_tensor_type");
  assert_error(tfc_model_tensor_type(model, NULL, &dtype), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_tensor_type");
  assert_error(tfc_model_tensor_type(model, "x", NULL), TFC_ERROR_INVALID_ARGUMENT, "tfc_model_tensor_type");
  assert_int_equal(tfc_model_device_count(NULL), 0);
  assert_null(tfc_model_device_name(NULL, 0));
  assert_error(tfc_call_prepare(NULL, &no_names[0], &no_call), TFC_ERROR_INVALID_ARGUMENT, "a model");
  assert_error(tfc_call_prepare(model, NULL, &no_call), TFC_ERROR_INVALID_ARGUMENT, "a spec");
  for (size_t i = 0; i < 3; i++)
    assert_error(tfc_call_prepare(model, &no_names[i], &no_call), TFC_ERROR_INVALID_ARGUMENT, "no array of them");
  assert_error(tfc_call_run(NULL, NULL, NULL), TFC_ERROR_INVALID_ARGUMENT, "a call");
  assert_error(tfc_call_profile(NULL, NULL, NULL, &no_profile), TFC_ERROR_INVALID_ARGUMENT, "a call");
  assert_true(isnan(tfc_call_step_us(NULL)));
  assert_int_equal(tfc_profile_count(NULL), 0);
  assert_null(tfc_profile_events(NULL));
  tfc_call_free(NULL), tfc_model_close(NULL), tfc_profile_free(NULL), tfc_error_free(NULL), tfc_array_clear(NULL);
  assert_true(!no_model && !no_call && !no_profile);

  tfc_call *call = prepare("s", "upper", NULL);
  tfc_array out = {0}, in = {.dtype = TFC_ARRAY_STRING,
                             .rank = 1,
                             .dims = {1},
                             .data = (void *)(uintptr_t)broken,
                             .bytes = sizeof broken};
  assert_error(tfc_call_run(call, &in, &out), TFC_ERROR_INVALID_ARGUMENT, "element 0 has 3 bytes and no data");
  assert_error(tfc_call_profile(call, &in, &out, NULL), TFC_ERROR_INVALID_ARGUMENT, "a place for the profile");
  tfc_call_free(call);
}

static void types(void **state) {
  (void)state;
  int32_t dtype = 0;
  assert_fine(tfc_model_tensor_type(model, "s:0", &dtype));
  assert_int_equal(dtype, TFC_ARRAY_STRING);
  assert_fine(tfc_model_tensor_type(model, "v", &dtype));
  assert_int_equal(dtype, 20); // DT_RESOURCE
  assert_error(tfc_model_tensor_type(model, "s:1", &dtype), TFC_ERROR_INVALID_ARGUMENT, "1 outputs");
  assert_error(tfc_model_tensor_type(model, "t", &dtype), TFC_ERROR_INVALID_ARGUMENT, "'t'");
}

static float read_count(void) {
  float value = -1;
  tfc_call *read = prepare(NULL, "read", NULL);
  tfc_array out = {.data = &value, .bytes = sizeof value};
  assert_fine(tfc_call_run(read, NULL, &out));
  assert_int_equal(out.rank, 0);
  tfc_call_free(read);
  return value;
}

enum { THREADS = 4, TIMES = 25 };
static void *counts(void *arg) {
  for (int i = 0; i < TIMES; i++) {
    tfc_error *error = tfc_call_run(arg, NULL, NULL);
    if (error) return error;
  }
  return NULL;
}
static void *squares(void *arg) {
  float x[8], y[8];
  for (int i = 0; i < TIMES; i++) {
    int64_t n = 1 + i % 8;
    for (int k = 0; k < 8; k++) x[k] = (float)(i + k);
    tfc_array in = floats(x, n), out = {.data = y, .bytes = sizeof y};
    tfc_error *error = tfc_call_run(arg, &in, &out);
    if (error) return error;
    for (int64_t k = 0; k < n; k++)
      if (y[k] != x[k] * x[k]) return arg;
  }
  return NULL;
}
static void threads_share_variables(void **state) {
  (void)state;
  pthread_t threads[2 * THREADS];
  tfc_call *count = prepare(NULL, NULL, "count"), *square = prepare("x", "square", NULL);
  float before = read_count();
  for (int i = 0; i < 2 * THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? counts : squares, i % 2 ? count : square), 0);
  for (int i = 0; i < 2 * THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_true(read_count() == before + THREADS * TIMES);
  tfc_call_free(count);
  tfc_call_free(square);
}

static void variables_in_files(void **state) {
  (void)state;
  char prefix[128];
  snprintf(prefix, sizeof prefix, "%s/model", folder);
  tfc_call *count = prepare(NULL, NULL, "count");
  assert_fine(tfc_call_run(count, NULL, NULL));
  float before = read_count();
  assert_fine(tfc_model_save(model, prefix));
  assert_fine(tfc_call_run(count, NULL, NULL));
  assert_true(read_count() == before + 1);
  assert_fine(tfc_model_restore(model, prefix));
  assert_true(read_count() == before);
  tfc_call_free(count);

  tfc_model *whole = model, *fresh = NULL;
  assert_fine(tfc_model_open(path, NULL, &fresh));
  model = fresh;
  assert_true(read_count() == 0); // a fresh model has its initial values
  tfc_model_close(fresh), fresh = NULL;
  assert_fine(tfc_model_open(path, &(tfc_model_options){.checkpoint = prefix}, &fresh));
  model = fresh;
  assert_true(read_count() == before);
  tfc_model_close(fresh), fresh = NULL;
  assert_fine(tfc_model_open(path, &(tfc_model_options){.uninitialised = 1}, &fresh));
  model = fresh;
  tfc_call *read = prepare(NULL, "read", NULL), *init = prepare(NULL, NULL, "init");
  tfc_array out = {0};
  assert_error(tfc_call_run(read, NULL, &out), TFC_ERROR_FAILED_PRECONDITION, "'v'");
  assert_fine(tfc_call_run(init, NULL, NULL));
  assert_fine(tfc_call_run(read, NULL, &out));
  tfc_array_clear(&out);
  tfc_call_free(read);
  tfc_call_free(init);
  tfc_model_close(fresh);
  model = whole;
  assert_error(tfc_model_save(model, "/proc/nowhere/model"), TFC_ERROR_DATA_LOSS, "/proc/nowhere/model");
  assert_error(tfc_model_restore(model, "/proc/nowhere/model"), TFC_ERROR_NOT_FOUND, "/proc/nowhere/model");
}

static void placed_and_profiled(void **state) {
  (void)state;
  static const char *const names[] = {"x", "s",    "square", "upper", "zero",   "one",
                                      "v", "init", "count",  "read",  "checked"};
  char text[2048], file[128];
  int n = snprintf(text, sizeof text,
                   "{\"format\": \"tfc-placement\", \"version\": 1, \"graph\": {\"file\": \"g\"}, \"devices\": "
                   "[{\"name\": \"cpu:0\"}, {\"name\": \"cpu:1\"}], \"objective\": \"step\", \"placement\": {");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s\"%s\": \"%s\"", i ? ", " : "", names[i],
                  strcmp(names[i], "checked") == 0 ? "cpu:1" : "cpu:0");
  snprintf(text + n, sizeof text - (size_t)n, "}}");
  command_put(folder, "p.json", text);
  snprintf(file, sizeof file, "%s/p.json", folder);

  tfc_model *whole = model;
  model = NULL;
  assert_fine(tfc_model_open(path, &(tfc_model_options){.placement = file}, &model));
  assert_int_equal(tfc_model_device_count(model), 2);
  assert_string_equal(tfc_model_device_name(model, 1), "cpu:1");
  assert_null(tfc_model_device_name(model, 2));
  float x[2] = {3, 4}, y[2][2];
  const char *feeds[] = {"x"}, *fetches[] = {"square", "checked"};
  tfc_call *call = NULL;
  tfc_profile *profile = NULL;
  assert_fine(tfc_call_prepare(
      model, &(tfc_call_spec){.feeds = feeds, .feed_count = 1, .fetches = fetches, .fetch_count = 2}, &call));
  tfc_array in = floats(x, 2), out[2] = {{.data = y[0], .bytes = 8}, {.data = y[1], .bytes = 8}};
  assert_fine(tfc_call_profile(call, &in, out, &profile));
  assert_true(y[0][1] == 16 && y[1][1] == 4);
  int found = 0;
  const tfc_profile_event *events = tfc_profile_events(profile);
  for (size_t i = 0; i < tfc_profile_count(profile); i++) {
    assert_true(events[i].duration_us >= 0);
    assert_true(i == 0 || events[i].start_us >= events[i - 1].start_us);
    if (strcmp(events[i].node, "square") == 0 && strcmp(events[i].op, "Square") == 0)
      found += strcmp(events[i].device, "cpu:0") == 0;
    if (strcmp(events[i].node, "checked") == 0 && strcmp(events[i].op, "CheckNumerics") == 0)
      found += strcmp(events[i].device, "cpu:1") == 0;
  }
  assert_int_equal(found, 2);
  tfc_call_free(call);
  tfc_model_close(model);
  model = whole;
  // The profile can still be read, although its model is closed.
  assert_string_equal(tfc_profile_events(profile)[0].device[0] == 'c' ? "lives" : "", "lives");
  tfc_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_the_callers_memory),
      cmocka_unit_test(in_the_librarys_memory),
      cmocka_unit_test(strings),
      cmocka_unit_test(types),
      cmocka_unit_test(many_shapes),
      cmocka_unit_test(mistakes),
      cmocka_unit_test(nothing_given),
      cmocka_unit_test(threads_share_variables),
      cmocka_unit_test(variables_in_files),
      cmocka_unit_test(placed_and_profiled),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
