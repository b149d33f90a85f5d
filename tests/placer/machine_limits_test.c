// Tests that no machine file needs much time or memory: a large file that makes sense is read and turned into a problem
// within seconds; a larger one is refused with an error that names the limit. Also tests which row of links counts for
// which pair of devices, because a fast and complicated algorithm finds it.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placer/model/machine_yaml.h"
#include "tests/placer/instances.h"
#include "tests/placer/links.h"

#define HEAD "format: tfc-machine\nversion: 1\n"
#define ONE HEAD "devices:\n  - {name: x, kind: k}\n"
#define MANY HEAD "devices:\n  - {name: \"acc:0\", kind: acc, count: 1024}\n"

static double cpu_seconds(void) {
  return (double)clock() / CLOCKS_PER_SEC;
}

static void refused(struct tfc_text *text, const char *says) {
  struct tfc_machine *m = NULL;
  const double begin = cpu_seconds();
  assert_false(text->failed);
  assert_fails(tfc_machine_parse((tfc_str){text->data, text->size}, "m.yaml", &m), TFC_INVALID_ARGUMENT, says);
  assert_true(cpu_seconds() - begin < 20);
  tfc_text_deinit(text);
}

// Devices and rows are random; 70 devices need more than one word of 64 bits.
static void test_rows_of_pairs(void **state) {
  (void)state;
  static const char *const patterns[] = {"*",    "a:*", "b:*",  "*:1",  "*:1*", "a:7",   "b:69", "*3*",
                                         "a*:*", "**",  "*b*5", "c:*0", "none", "a:*1*", "*:*",  "b:4*"};
  const size_t kinds = sizeof patterns / sizeof *patterns;
  struct tfc_random r;
  tfc_random_init(&r, 5);
  for (int round = 0; round < 60; round++) {
    const uint32_t devices = round % 3 ? 2 + (uint32_t)pick(&r, 12) : 70, rows = (uint32_t)pick(&r, 12);
    struct tfc_machine *m = NULL;
    assert_ok(tfc_machine_create(&m));
    for (uint32_t d = 0; d < devices; d++) {
      char name[32], host[32];
      snprintf(name, sizeof name, "%c:%u", "abc"[pick(&r, 3)], d);
      snprintf(host, sizeof host, "h%u", (uint32_t)pick(&r, 3));
      assert_ok(tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                       .kind = TFC_STR("k"),
                                                                       .host = tfc_str_from(host),
                                                                       .memory = TFC_NO_LIMIT}));
    }
    for (uint32_t i = 0; i < rows; i++) {
      struct tfc_link l = tfc_link_default();
      l.from = tfc_str_from(patterns[pick(&r, kinds)]), l.to = tfc_str_from(patterns[pick(&r, kinds)]);
      l.hosts = (tfc_hosts)pick(&r, 3);
      assert_ok(tfc_machine_add_link(m, &l));
    }
    assert_true(links_agree(m));
    tfc_machine_free(m);
  }
}

static void test_patterns(void **state) {
  (void)state;
  static const char *const patterns[] = {"",      "*",      "**", "a",    "a*",      "*a",   "*a*",    "a*a",
                                         "ab*ba", "*ab*b*", "b*", "a**b", "*aa*aa*", "*bab", "aba*aba"};
  struct tfc_random r;
  tfc_random_init(&r, 6);
  for (int round = 0; round < 2000; round++) {
    char text[9] = "";
    for (size_t i = 0, n = pick(&r, 9); i < n; i++) text[i] = "ab"[pick(&r, 2)], text[i + 1] = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
      const tfc_str pattern = tfc_str_from(patterns[i]), value = tfc_str_from(text);
      if (tfc_glob_match(pattern, value) != pattern_matches(pattern, value)) fail_msg("'%s', '%s'", patterns[i], text);
    }
  }
}

// 20,000 rows for 1,024 devices, each with patterns, a wire and a speed of its own. Only the first row matches; rows
// are tried from the last to the first, so all others are tried for every pair before.
static void test_many_rows(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct instance i = {0};
  tfc_text_printf(&text, MANY "links:\n  - {from: \"*\", to: \"*\", latency: 7us}\n");
  for (int row = 1; row < 20000; row++)
    tfc_text_printf(&text, "  - {from: \"a*c*:*\", to: \"*c*z%d*\", latency: %dus, wire: w%d}\n", row, row, row);
  assert_false(text.failed);
  const double begin = cpu_seconds();
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "m.yaml", &i.machine));
  MUST(tfc_cost_graph_parse(TFC_STR("{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": "
                                    "[{\"name\": \"a\", \"time_us\": {\"acc\": 1}}], \"edges\": []}"),
                            "g.json", &i.graph));
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_true(cpu_seconds() - begin < 20);
  assert_int_equal(i.problem->speed_count, 1);
  assert_int_equal(tfc_problem_pair(i.problem, 3, 1000)->latency, 7000000);
  instance_free(&i);
  tfc_text_deinit(&text);
}

// 20,000 rows, each with a wire and a speed of its own. Each matches one pair of devices; in 20 of these pairs, both
// are the same device, which needs no link.
static void test_many_used_rows(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct instance i = {0};
  tfc_text_printf(&text, MANY "links:\n");
  for (int row = 0; row < 20000; row++)
    tfc_text_printf(&text, "  - {from: \"acc:%d\", to: \"*:%d\", latency: %dus, wire: w%d}\n", row % 1000, row / 1000,
                    row, row);
  assert_false(text.failed);
  const double begin = cpu_seconds();
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "m.yaml", &i.machine));
  struct tfc_cost_builder *b = NULL;
  uint32_t kind, node;
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (uint32_t n = 0; n < 2000; n++) {
    char name[32];
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, kind, 1));
    if (n) MUST(tfc_cost_builder_edge(b, n - 1, 0, n, n % 50, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_true(cpu_seconds() - begin < 20);
  assert_int_equal(i.problem->speed_count, 20000 - 20);
  assert_int_equal(i.problem->wire_count, 20000 - 20);
  assert_int_equal(tfc_problem_pair(i.problem, 7, 12)->latency, INT64_C(12007) * 1000000);
  instance_free(&i);
  tfc_text_deinit(&text);
}

// A short file cannot make reading long: neither by aliases, nor by many keys, which are compared with each other.
static void test_bombs(void **state) {
  (void)state;
  struct tfc_text text = {0};
  tfc_text_printf(&text, ONE "links:\n  - &a {from: x, to: x, curve: [[0, 0]");
  for (int i = 1; i < 2000; i++) tfc_text_printf(&text, ",[%d,1]", i);
  tfc_text_printf(&text, "]}\n");
  for (int i = 0; i < 2000; i++) tfc_text_printf(&text, "  - *a\n");
  refused(&text, "the curves have more than 1048576 points");
  tfc_text_printf(&text, HEAD);
  for (int i = 0; i < 100; i++) tfc_text_printf(&text, "key%d: 1\n", i);
  refused(&text, "a mapping has more than 64 keys");
  tfc_text_printf(&text, ONE "links:\n  - &a {from: x, to: x, one: 1, two: 2}\n");
  for (int i = 0; i < 200; i++) tfc_text_printf(&text, "  - *a\n");
  refused(&text, "line 6: more than 256 keys are not known");
  tfc_text_printf(&text, ONE "links:\n  - &a {from: x, to: x}\n");
  for (int i = 0; i < 1 << 18; i++) tfc_text_printf(&text, "  - *a\n");
  refused(&text, "line 6: there are more than 262144 rows of links");
  tfc_text_printf(&text, HEAD "devices:\n  - {name: \"%0300d\", kind: k, count: 1024}\n", 0);
  refused(&text, "line 4: name is longer than 255 bytes");
  tfc_text_printf(&text, HEAD "devices:\n  - {name: \"%0240d:0\", kind: k, count: 1000}\nlinks:\n", 0);
  for (int i = 0; i < 20000; i++) tfc_text_printf(&text, "  - {from: \"*0*%d*\", to: \"*\"}\n", i);
  refused(&text, "different patterns with '*' are too many for 1000 devices");
}

// Texts with many anchors, directives, open brackets or marks: libyaml's time grows with the square of their number.
static void test_libyaml(void **state) {
  (void)state;
  struct tfc_text text = {0};
  tfc_text_printf(&text, HEAD "devices:\n");
  for (int i = 0; i < 100000; i++) tfc_text_printf(&text, "  - &anchor%d x\n", i);
  refused(&text, "m.yaml: line 260: more than 256 anchors ('&')");
  for (int i = 0; i < 100000; i++) tfc_text_printf(&text, "%%TAG !t%d! tag:x\n", i);
  refused(&text, "m.yaml: line 257: more than 256 directives ('%')");
  for (int i = 0; i < 100000; i++) tfc_text_printf(&text, "[\n");
  refused(&text, "m.yaml: line 257: more than 256 brackets are open");
  for (int i = 0; i < 2000000; i++) tfc_text_add(&text, i % 2 ? TFC_STR("- ") : TFC_STR("? "));
  refused(&text, "m.yaml: line 1: more than 256 '-' and '?' that open a list or a mapping");
  tfc_text_printf(&text, ONE "#");
  for (int i = 0; i < 9 << 14; i++)
    tfc_text_add(&text, TFC_STR("0123456789012345678901234567890123456789012345678901234567890123"));
  refused(&text, "m.yaml: the file is larger than 8 MiB");
  // Words with these characters are no anchors and directives, and names with them are written so that they are read.
  struct tfc_machine *m = NULL, *again = NULL;
  tfc_text_printf(&text, "# R&D: 100%%\n#");
  for (int i = 0; i < 1000; i++) tfc_text_add(&text, TFC_STR("-"));
  tfc_text_printf(&text, "\n" HEAD "devices:\n");
  for (int i = 0; i < 400; i++) tfc_text_printf(&text, "  - {name: \"R&D%d\", kind: \"a&b %%\"}\n", i);
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "m.yaml", &m));
  tfc_text_deinit(&text);
  tfc_machine_free(m);
  m = NULL;
  tfc_text_printf(&text, HEAD "devices:\n  - {name: \"x &0\", kind: k, count: 400}\n");
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "m.yaml", &m));
  tfc_text_deinit(&text);
  assert_ok(tfc_machine_format(m, &text));
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "m.yaml", &again));
  assert_int_equal(again->device_count, 400);
  tfc_text_deinit(&text);
  tfc_machine_free(m);
  tfc_machine_free(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_patterns),       cmocka_unit_test(test_rows_of_pairs), cmocka_unit_test(test_many_rows),
      cmocka_unit_test(test_many_used_rows), cmocka_unit_test(test_bombs),         cmocka_unit_test(test_libyaml),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
