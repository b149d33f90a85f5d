// Graphs (tests/ops/hostile/*.pbtxt) that once made an operation crash, read outside of its inputs, or run for ever.
// The first line of each is "# expects: " and a part of the error message, or "nothing" if the graph must run without
// an error. tests/fuzz/op_run_fuzz.c found most of them.
#include "tests/common/test.h"

#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/graph/import.h"
#include "tests/common/eval.h"
#include "tests/common/made_graph.h"
#include "tests/common/source.h"

static void rates_that_fit_no_type_end(void **state) {
  (void)state;
  static const char text[] = "node { name: 'shape' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } } "
                             "node { name: 'seed' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 1 int64_val: 2 } } } } "
                             "node { name: 'rate' op: 'Const' attr { key: 'dtype' value { type: DT_DOUBLE } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_DOUBLE tensor_shape { dim { size: 1 } } double_val: 1e30 } } } } "
                             "node { name: 'y' op: 'StatelessRandomPoisson' input: 'shape' input: 'seed' input: 'rate' "
                             "attr { key: 'Rtype' value { "
                             "type: DT_DOUBLE } } attr { key: 'dtype' value { type: DT_INT64 } } attr { key: 'T' value "
                             "{ type: DT_INT32 } } attr { "
                             "key: 'Tseed' value { type: DT_INT64 } } }";
  struct tfc_graph *g = NULL;
  struct eval e;
  const struct tfc_tensor *y = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "poisson.pbtxt", NULL, &g));
  assert_ok(eval_create(g, &e));
  alarm(30); // what runs for ever ends the suite
  assert_ok(eval_output(&e, (struct tfc_output){tfc_graph_find(g, TFC_STR("y")), 0}, &y));
  alarm(0);
  const int64_t value = *(const int64_t *)y->data;
  assert_true(value > INT64_MAX - 2048); // the largest float64 below 2^63
  eval_deinit(&e);
  tfc_graph_release(g);
}

static const char mark[] = "# expects: ";

static int try_all_ways(const char *path) {
  FILE *f = fopen(path, "rb");
  static char text[1 << 20];
  char expects[256] = "";
  int failed = 0;
  assert_non_null(f);
  size_t size = fread(text, 1, sizeof text, f);
  fclose(f);
  assert_true(size > sizeof mark && memcmp(text, mark, sizeof mark - 1) == 0);
  snprintf(expects, sizeof expects, "%.*s", (int)strcspn(text + sizeof mark - 1, "\n"), text + sizeof mark - 1);
  for (int way = 0; way < 8; way++) {
    struct try_options options = {.dynamic = way & 1, .no_rewrites = way & 2, .one_by_one = way & 4};
    alarm(60); // what runs for ever ends the suite
    tfc_status s = try_graph((tfc_str){text, size}, path, &options);
    alarm(0);
    bool as_said = strcmp(expects, "nothing") == 0 ? !s : s && strstr(tfc_status_message(s), expects);
    if (!as_said) {
      print_message("FAILED %s, way %d: %s\n", path, way, s ? tfc_status_message(s) : "no error");
      failed++;
    }
    tfc_status_free(s);
  }
  return failed;
}

static void graphs_end_with_an_error(void **state) {
  (void)state;
  char pattern[512];
  glob_t files = {0};
  int failed = 0;
  snprintf(pattern, sizeof pattern, "%s/tests/ops/hostile/*.pbtxt", test_source_dir());
  assert_int_equal(glob(pattern, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) failed += try_all_ways(files.gl_pathv[i]);
  print_message("%zu graphs\n", files.gl_pathc);
  assert_true(files.gl_pathc >= 7);
  assert_int_equal(failed, 0);
  globfree(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rates_that_fit_no_type_end),
                                     cmocka_unit_test(graphs_end_with_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
