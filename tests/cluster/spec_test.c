// Tests texts and files that list the tasks of a cluster.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/cluster/spec.h"

static void shows(const struct tfc_cluster_spec *spec, const char *wanted) {
  char all[512] = "", name[TFC_TASK_TEXT];
  for (uint32_t r = 0; r < spec->tasks.count; r++) {
    strcat(all, tfc_cluster_task_name(spec, r, name));
    strcat(all, " ");
    assert_int_equal(tfc_cluster_spec_rank(spec, tfc_str_from(spec->tasks.data[r].job), spec->tasks.data[r].index), r);
  }
  assert_string_equal(all, wanted);
}

static void texts(void **state) {
  (void)state;
  struct tfc_cluster_spec spec = {0};
  assert_ok(tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
  shows(&spec, "/job:ps/task:0 /job:worker/task:0 /job:worker/task:1 ");
  assert_int_equal(tfc_cluster_spec_rank(&spec, TFC_STR("worker"), 2), TFC_NONE);
  assert_int_equal(tfc_cluster_spec_rank(&spec, TFC_STR("work"), 1), TFC_NONE);
  tfc_cluster_spec_deinit(&spec);
  static const char *const bad[] = {"",       "ps",        "ps=",   "ps=0",  "ps=x",           "=2",    "ps=1,",
                                    "ps=1,,", "ps=1,ps=2", "p/s=1", "ps=-1", "ps=99999999999", "1ps=1", "worker=5000"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_fails(tfc_cluster_spec_parse(tfc_str_from(bad[i]), &spec), TFC_INVALID_ARGUMENT, "");
}

static void files(void **state) {
  (void)state;
  static const struct {
    const char *text, *tasks;
  } good[] = {
      {"{\"worker\": [\"a:1\", \"b:2\"], \"ps\": [\"c:3\"]}", "/job:worker/task:0 /job:worker/task:1 /job:ps/task:0 "},
      {"{\"cluster\": {\"chief\": [\"a:1\"], \"ps\": {\"3\": \"c:3\"}}, \"task\": {\"type\": \"ps\", \"index\": 3}}",
       "/job:chief/task:0 /job:ps/task:3 "},
      {"job { name: \"ps\" tasks { key: 0 value: \"a:1\" } }\njob { name: 'worker' tasks { value: \"b:1\" } tasks { "
       "key: "
       "1 value: \"c:1\" } }",
       "/job:ps/task:0 /job:worker/task:0 /job:worker/task:1 "},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct tfc_cluster_spec spec = {0};
    assert_ok(tfc_cluster_spec_read(tfc_str_from(good[i].text), "spec", &spec));
    shows(&spec, good[i].tasks);
    tfc_cluster_spec_deinit(&spec);
    // a text that is cut off gives an error, or fewer complete jobs
    for (size_t size = 0; size < strlen(good[i].text); size++) {
      tfc_status s = tfc_cluster_spec_read((tfc_str){good[i].text, size}, "spec", &spec);
      if (s) assert_non_null(strstr(tfc_status_message(s), "spec: "));
      if (!s) tfc_cluster_spec_deinit(&spec);
      tfc_status_free(s);
    }
  }
  static const char *const bad[] = {"{\"ps\": 3}",
                                    "{\"ps\": [3]}",
                                    "{}",
                                    "{\"ps\": [\"a\"]} more",
                                    "job { }  [",
                                    "job { name: \"ps\" tasks { key: x } }",
                                    "{\"p s\": [\"a\"]}",
                                    "{\"ps\": [\"a\\n\"]}"};
  struct tfc_cluster_spec spec = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_fails(tfc_cluster_spec_read(tfc_str_from(bad[i]), "spec", &spec), TFC_INVALID_ARGUMENT, "");
}

// Only a file itself has "cluster": a file of many of them, one in another, would need a deep stack.
static void nested(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct tfc_cluster_spec spec = {0};
  for (int i = 0; i < 1000000; i++) tfc_text_add(&text, TFC_STR("{\"cluster\":"));
  assert_false(text.failed);
  assert_fails(tfc_cluster_spec_read((tfc_str){text.data, text.size}, "spec", &spec), TFC_INVALID_ARGUMENT, "spec: ");
  tfc_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(files), cmocka_unit_test(nested)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
