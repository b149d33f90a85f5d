// Tests the three file formats: what is read and written, and that every kind of bad file gives its status code and the
// name of the faulty part.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "tests/placer/instances.h"
#include "tests/placer/links.h"

#define GRAPH(nodes, edges)                                                                                            \
  "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"cpu\", \"acc\"], \"nodes\": [" nodes                 \
  "], \"edges\": [" edges "]}"
#define A "{\"name\": \"a\", \"time_us\": {\"cpu\": 5.0, \"acc\": 0.4}, \"memory\": 1048576}"
#define B "{\"name\": \"b\", \"time_us\": {\"cpu\": 1}}"

static void test_bad_graphs(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "g.json"},
      {"[]", "not a JSON object"},
      {"{\"format\": 3}", "format"},
      {"{\"format\": \"tfc-machine\"}", "expected 'tfc-cost-graph'"},
      {"{\"format\": \"tfc-cost-graph\", \"version\": 2, \"kinds\": [], \"nodes\": []}", "version 2"},
      {"{\"format\": \"tfc-cost-graph\", \"kinds\": [], \"nodes\": []}", "no \"version\""},
      {"{\"format\": \"tfc-cost-graph\", \"version\": null, \"kinds\": [], \"nodes\": []}", "version"},
      {"{\"format\": \"tfc-cost-graph\", \"version\": 1, \"nodes\": []}", "kinds"},
      {"{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"a\", \"a\"], \"nodes\": []}", "twice"},
      {"{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [1], \"nodes\": []}", "kinds"},
      {"{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": []}", "nodes"},
      {GRAPH("", ""), "no nodes"},
      {GRAPH(A ", " A, ""), "'a'"},
      {GRAPH("3", ""), "nodes[0]"},
      {GRAPH("{\"time_us\": {}}", ""), "name"},
      {GRAPH("{\"name\": \"\", \"time_us\": {}}", ""), "name"},
      {GRAPH("{\"name\": \"a\"}", ""), "time_us"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"gpu\": 1}}", ""), "'gpu'"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": -1}}", ""), "'a'"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": \"x\"}}", ""), "'cpu'"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"memory\": -4}", ""), "memory"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"memory\": 0.5}", ""), "memory"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"memory\": null}", ""), "\"memory\" is null"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"group\": 1}", ""), "group"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"pin\": 1}", ""), "pin"},
      {GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 1}, \"order\": \"x\"}", ""), "order"},
      {GRAPH(A, "{\"from\": \"a\", \"to\": \"zz\", \"bytes\": 1}"), "'zz'"},
      {GRAPH(A, "{\"from\": \"yy\", \"to\": \"a\", \"bytes\": 1}"), "'yy'"},
      {GRAPH(A, "{\"from\": \"a\", \"bytes\": 1}"), "\"to\""},
      {GRAPH(A, "{\"from\": \"a\", \"to\": \"a\", \"bytes\": 1}"), "cycle"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\"}"), "bytes"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": -1}"), "bytes"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1.5}"), "bytes"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1, \"output\": -2}"), "output"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1, \"output\": -1}"), "control"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1, \"live\": -1}"), "live"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1, \"live\": null}"), "\"live\" is null"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1, \"output\": null}"), "\"output\" is null"},
      {GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": null, \"output\": -1}"), "\"bytes\" is null"},
      {GRAPH(A ", " B,
             "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1}, {\"from\": \"b\", \"to\": \"a\", \"bytes\": 1}"),
       "cycle"},
      {GRAPH(A ", " B ", {\"name\": \"c\", \"time_us\": {\"cpu\": 1}}",
             "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1}, {\"from\": \"a\", \"to\": \"c\", \"bytes\": 2}"),
       "disagree on bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_cost_graph *g = NULL;
    tfc_status s = tfc_cost_graph_parse(tfc_str_from(cases[i].text), "g.json", &g);
    if (!s) fail_msg("accepted: %s", cases[i].text);
    if (!strstr(tfc_status_message(s), cases[i].says) || !strstr(tfc_status_message(s), "g.json"))
      fail_msg("no '%s' in: %s", cases[i].says, tfc_status_message(s));
    assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
    tfc_status_free(s);
  }
  // A file that is cut off at any byte gives an error, never a crash.
  const char *good = GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1}");
  for (size_t n = 0; n < strlen(good); n++) {
    struct tfc_cost_graph *g = NULL;
    tfc_status s = tfc_cost_graph_parse((tfc_str){good, n}, "g.json", &g);
    assert_non_null(s);
    tfc_status_free(s);
  }
}

static void test_graph(void **state) {
  (void)state;
  struct tfc_cost_graph *g = NULL, *again = NULL;
  struct tfc_text text = {0}, more = {0};
  assert_ok(tfc_cost_graph_parse(
      TFC_STR(GRAPH(
          A ", " B
            ", {\"name\": \"c\", \"time_us\": {\"acc\": 2}, \"group\": \"g\", \"pin\": \"acc:0\", \"order\": -1.5}",
          "{\"from\": \"a\", \"to\": \"c\", \"bytes\": 10, \"live\": 7}, {\"from\": \"a\", \"to\": \"b\", \"bytes\": "
          "10},"
          "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 10, \"output\": 0}, {\"from\": \"b\", \"to\": \"c\", "
          "\"output\": -1, \"bytes\": 0}")),
      "g.json", &g));
  assert_int_equal(g->node_count, 3);
  assert_int_equal(g->tensor_count, 2);
  assert_int_equal(g->consumer_count, 3); // the edge that is given twice counts once
  assert_int_equal(g->live[0], 7);
  assert_int_equal(g->output[1], TFC_OUTPUT_CONTROL);
  assert_true(isnan(g->time_us[1 * 2 + 1]));
  assert_true(g->order[2] == -1.5);
  assert_ok(tfc_cost_graph_format(g, &text));
  assert_true(tfc_cost_graph_sniff((tfc_str){text.data, text.size}));
  // A file that begins like JSON is read as JSON, so its errors are those of JSON. A byte order mark is skipped.
  assert_true(tfc_cost_graph_sniff(TFC_STR("{}")) && tfc_cost_graph_sniff(TFC_STR(" []")));
  assert_true(tfc_cost_graph_sniff(TFC_STR("\xef\xbb\xbf{\"format\": \"tfc-costgraph\"}")));
  assert_false(tfc_cost_graph_sniff(TFC_STR("\n[\n\010pictures\022\013Placeholder")));
  assert_false(tfc_cost_graph_sniff(TFC_STR("\n{\n\002ab\022\002No")));
  assert_false(tfc_cost_graph_sniff(TFC_STR("\x0a\x07")) || tfc_cost_graph_sniff(TFC_STR("node {")));
  assert_fails(tfc_cost_graph_parse(TFC_STR("[]"), "list", &again), TFC_INVALID_ARGUMENT, "tfc-cost-graph");
  assert_fails(tfc_cost_graph_parse(TFC_STR("{}"), "empty", &again), TFC_INVALID_ARGUMENT, "tfc-cost-graph");
  struct tfc_text marked = {0};
  tfc_text_printf(&marked, "\xef\xbb\xbf%s", text.data);
  assert_ok(tfc_cost_graph_parse((tfc_str){marked.data, marked.size}, "marked", &again));
  tfc_text_deinit(&marked);
  tfc_cost_graph_free(again);
  again = NULL;
  assert_ok(tfc_cost_graph_parse((tfc_str){text.data, text.size}, "again", &again));
  assert_ok(tfc_cost_graph_format(again, &more));
  assert_string_equal(text.data, more.data);
  uint32_t count;
  assert_ok(tfc_cost_graph_pin(again, "a|b", TFC_STR("cpu:0"), &count));
  assert_int_equal(count, 2);
  assert_fails(tfc_cost_graph_pin(again, "c", TFC_STR("cpu:0"), NULL), TFC_INVALID_ARGUMENT, "'acc:0'");
  assert_fails(tfc_cost_graph_pin(again, "nothing", TFC_STR("cpu:0"), NULL), TFC_INVALID_ARGUMENT, "nothing");
  assert_fails(tfc_cost_graph_pin(again, "(", TFC_STR("cpu:0"), NULL), TFC_INVALID_ARGUMENT, "(");
  tfc_text_deinit(&text);
  tfc_text_deinit(&more);
  tfc_cost_graph_free(g);
  tfc_cost_graph_free(again);
}

#define MACHINE "format: tfc-machine\nversion: 1\ndevices:\n"
static void test_bad_machines(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "m.yaml"},
      {"a: [1", "m.yaml"},
      {"- 1", "mapping"},
      {"format: tfc-placement", "tfc-machine"},
      {"format: tfc-machine\nversion: 7", "version"},
      {"format: tfc-machine\nversion: 1\n", "no devices"},
      {MACHINE "  - {kind: cpu}\n", "name"},
      {MACHINE "  - {name: x}\n", "'x'"},
      {MACHINE "  - {name: x, kind: k, memory: 3 apples}\n", "memory"},
      {MACHINE "  - {name: x, kind: k, count: 2}\n", "number at the end"},
      {MACHINE "  - {name: 'x:0', kind: k, count: 0}\n", "count"},
      {MACHINE "  - {name: 'x:0', kind: k, count: 99999}\n", "count"},
      {MACHINE "  - {name: x, kind: k}\n  - {name: x, kind: k}\n", "'x'"},
      {MACHINE "  - {name: x, kind: k, name: y}\n", "twice"},
      {MACHINE "  - {name: x, kind: k, slowdown: 2}\n", "slowdown"},
      {MACHINE "  - {name: x, kind: k, slowdown: [-1]}\n", "slowdown"},
      {MACHINE "  - {name: x, kind: k, slowdown: [1, 0]}\n", "slowdown"},
      {MACHINE "  - {name: x, kind: k, memory: 0.5}\n", "memory: '0.5' is not a whole number"},
      {MACHINE "  - {name: x, kind: k, dispatch: -2us}\n", "dispatch"},
      {MACHINE "  - {name: x, kind: k, flops: -1}\n", "flops is not a rate"},
      {MACHINE "  - {name: x, kind: k, memory_bandwidth: 1e307kB/s}\n", "memory_bandwidth: '1e307kB/s' is not"},
      {MACHINE "  - {name: \"x\\0y\", kind: k}\n", "line 4: name contains a zero byte"},
      {MACHINE "  - {name: x, kind: k}\nlinks: 3\n", "links"},
      {MACHINE "  - {name: x, kind: k\n\n\n", "line 4: the '{' there is not closed"},
      {"format: tfc-machine\nversion: 1\ndevices: [\n  {name: x, kind: k}\n", "line 3: the '[' there is not closed"},
      {MACHINE "  - {name: 'x, kind: k}\nlinks: []\n", "line 4: the quotation mark there is not closed"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x}\n", "from and to"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, bandwidth: 0}\n", "bandwidth"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, latency: 3 parsecs}\n", "line 6"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, occupies: all}\n", "'all'"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, duplex: maybe}\n", "'maybe'"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, curve: [[1, 1], [1, 2]]}\n", "ascend"},
      {MACHINE "  - {name: x, kind: k}\nlinks:\n  - {from: x, to: x, curve: [[1]]}\n", "[bytes, time]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_machine *m = NULL;
    tfc_status s = tfc_machine_parse(tfc_str_from(cases[i].text), "m.yaml", &m);
    if (!s) fail_msg("accepted: %s", cases[i].text);
    if (!strstr(tfc_status_message(s), cases[i].says) || !strstr(tfc_status_message(s), "m.yaml"))
      fail_msg("no '%s' in: %s", cases[i].says, tfc_status_message(s));
    assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
    tfc_status_free(s);
  }
}

static void test_links_of_hosts(void **state) {
  (void)state;
  struct tfc_machine *m = NULL;
  uint32_t row[16];
  assert_ok(tfc_machine_parse(TFC_STR(MACHINE "  - {name: \"a:0\", kind: a, host: one, count: 2}\n"
                                              "  - {name: \"b:0\", kind: b, host: two, count: 2}\n"
                                              "links:\n"
                                              "  - {from: \"a:*\", to: \"*\", hosts: different, bandwidth: 1GB/s}\n"
                                              "  - {from: \"*\", to: \"*:1\", hosts: same, bandwidth: 2GB/s}\n"
                                              "  - {from: \"b:1\", to: \"a:0\", bandwidth: 3GB/s}\n"),
                              "m.yaml", &m));
  assert_true(links_agree(m));
  assert_ok(tfc_machine_links(m, row));
  assert_true(row[2 * 4 + 0] == TFC_NONE && row[2 * 4 + 1] == TFC_NONE && m->links[row[2 * 4 + 3]].bandwidth == 2e9);
  tfc_machine_free(m);
}

static void test_machine(void **state) {
  (void)state;
  struct tfc_machine *m = NULL, *again = NULL;
  struct tfc_text text = {0}, more = {0};
  assert_ok(tfc_machine_parse(
      TFC_STR(MACHINE "  - {name: \"cpu:0\", kind: cpu, memory: 64GiB, tensorflow: \"/device:CPU:0\"}\n"
                      "  - {name: \"acc:8\", kind: acc, memory: 16GB, count: 6, dispatch: 500ns, slowdown: [1, 1.25]}\n"
                      "links:\n"
                      "  - {from: \"*\", to: \"*\", latency: 10us, bandwidth: 12GB/s, duplex: false, occupies: both}\n"
                      "  - {from: \"acc:*\", to: \"cpu:0\", latency: 1ms, wire: pcie, curve: [[0, 1us], [4KiB, 3]], "
                      "wake: 80us}\n"),
      "m.yaml", &m));
  assert_int_equal(m->device_count, 7);
  assert_true(links_agree(m));
  assert_true(tfc_str_is(m->devices[3].name, "acc:10"));
  assert_true(m->devices[0].memory == UINT64_C(64) << 30 && m->devices[1].memory == 16000000000u);
  assert_true(m->devices[2].dispatch_us == 0.5 && m->devices[2].slowdown[1] == 1.25);
  assert_int_equal(tfc_machine_find(m, TFC_STR("/device:CPU:0")), 0);
  const struct tfc_link *l = link_between(m, 1, 0);
  assert_true(l->latency_us == 1000 && l->curve_count == 2 && l->curve[1].bytes == 4096 && l->duplex);
  assert_true(l->wake_us == 80);
  l = link_between(m, 0, 1);
  assert_true(l->bandwidth == 12e9 && !l->duplex && l->occupies == TFC_OCCUPIES_BOTH && l->wake_us == 0);
  assert_ok(tfc_machine_format(m, &text));
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "again", &again));
  assert_ok(tfc_machine_format(again, &more));
  assert_string_equal(text.data, more.data);
  assert_fails(tfc_machine_select(again, TFC_STR("acc:8-20")), TFC_UNAVAILABLE, "acc:14");
  assert_ok(tfc_machine_select(again, TFC_STR("acc:9-10,cpu:0")));
  assert_int_equal(again->device_count, 3);
  assert_true(tfc_str_is(again->devices[0].name, "cpu:0"));
  assert_ok(tfc_machine_limit(again, TFC_STR("acc:*"), 5));
  assert_int_equal(again->devices[2].memory, 5);
  assert_fails(tfc_machine_limit(again, TFC_STR("tpu*"), 5), TFC_UNAVAILABLE, "tpu*");
  tfc_text_deinit(&text);
  tfc_text_deinit(&more);
  tfc_machine_free(m);
  tfc_machine_free(again);
}

// Whatever characters a name has, it is read from what was written: libyaml refuses some characters, takes others for
// the end of a line, and more than 256 open brackets are refused, also within names.
static void test_machine_names(void **state) {
  (void)state;
  static const struct {
    const char *written, *name;
  } cases[] = {{"\\x7f", "\x7f"},
               {"\\x81", "\xc2\x81"},
               {"\\N", "\xc2\x85"},
               {"\\_", "\xc2\xa0"},
               {"\\L", "\xe2\x80\xa8"},
               {"\\P", "\xe2\x80\xa9"},
               {"\\uFEFF", "\xef\xbb\xbf"},
               {"\\uFFFE", "\xef\xbf\xbe"},
               {"\\uFFFF", "\xef\xbf\xbf"},
               {"\\r\\n\\t\\e", "\r\n\t\x1b"},
               {"\\U0010FFFF", "\xf4\x8f\xbf\xbf"},
               {"[[[{]]}", "[[[{]]}"},
               {"\\\\u0041", "\\u0041"},
               {"'#: ,&*!%@`", "'#: ,&*!%@`"},
               {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_machine *m = NULL, *again = NULL;
    struct tfc_text file = {0}, text = {0}, more = {0};
    tfc_text_printf(&file,
                    MACHINE "  - {name: \"%s:0\", kind: \"%s\", count: 200, host: \"%s\", tensorflow: \"%s:0\"}\n"
                            "links:\n  - {from: \"%s*\", to: \"*%s\", wire: \"%s\"}\n",
                    cases[i].written, cases[i].written, cases[i].written, cases[i].written, cases[i].written,
                    cases[i].written, cases[i].written);
    assert_ok(tfc_machine_parse((tfc_str){file.data, file.size}, "m.yaml", &m));
    assert_ok(tfc_machine_format(m, &text));
    assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "again", &again));
    assert_ok(tfc_machine_format(again, &more));
    assert_string_equal(text.data, more.data);
    assert_int_equal(again->device_count, 200);
    assert_true(tfc_str_is(again->devices[7].kind, cases[i].name));
    assert_true(tfc_str_is(again->links[0].wire, cases[i].name));
    tfc_text_deinit(&file);
    tfc_text_deinit(&text);
    tfc_text_deinit(&more);
    tfc_machine_free(m);
    tfc_machine_free(again);
  }
}

// Step times of hours are written with all picoseconds, although a double of microseconds has fewer digits.
static void test_long_steps(void **state) {
  (void)state;
  struct instance i = {0};
  struct tfc_solution a = {0};
  struct tfc_placement *f = NULL;
  struct tfc_text text = {0};
  assert_ok(tfc_cost_graph_parse(TFC_STR(GRAPH("{\"name\": \"a\", \"time_us\": {\"cpu\": 4600000000.123457}}, "
                                               "{\"name\": \"b\", \"time_us\": {\"cpu\": 4700000000.123456}}, "
                                               "{\"name\": \"c\", \"time_us\": {\"cpu\": 0.000002}}",
                                               "")),
                                 "g.json", &i.graph));
  assert_ok(tfc_machine_parse(TFC_STR("format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"cpu:0\", kind: cpu}\n"),
                              "m.yaml", &i.machine));
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_ok(tfc_solution_init(&a, i.problem));
  assert_ok(tfc_placement_from_solution(i.problem, &a, NULL, &f));
  assert_ok(tfc_placement_format(f, &text));
  assert_non_null(strstr(text.data, "\"value_us\": 9300000000.246916,"));
  assert_non_null(strstr(text.data, "\"busy_us\": 9300000000.246916,"));
  assert_non_null(strstr(text.data, "\"median_us\": 9300000000.246916,"));
  tfc_text_deinit(&text);
  tfc_placement_free(f);
  tfc_solution_deinit(&a);
  instance_free(&i);
}

// A document that was made from a solution reads back as the same placement, with the same order and value.
static void test_placement(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 200; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 4000 + number);
    struct instance i = random_instance(&r, 1 + (uint32_t)pick(&r, 30), 1 + (uint32_t)pick(&r, 4),
                                        (uint32_t)pick(&r, RICH_ALL + 1) & ~RICH_MISSING, TFC_OBJECTIVE_STEP);
    struct tfc_solution a = {0}, b = {0};
    struct tfc_placement *f = NULL, *g = NULL;
    struct tfc_text text = {0}, more = {0};
    struct tfc_bound bound;
    assert_ok(tfc_solution_init(&a, i.problem));
    random_devices(&r, i.problem, a.device);
    assert_ok(tfc_bound_compute(i.problem, NULL, &bound));
    assert_ok(tfc_placement_from_solution(i.problem, &a, &bound, &f));
    assert_ok(tfc_placement_format(f, &text));
    assert_ok(tfc_placement_parse((tfc_str){text.data, text.size}, "p.json", &g));
    assert_ok(tfc_placement_format(g, &more));
    assert_string_equal(text.data, more.data);
    assert_ok(tfc_placement_resolve(g, i.problem, &b));
    assert_memory_equal(a.device, b.device, sizeof *a.device * i.problem->unit_count);
    struct tfc_simulator *sim = NULL;
    struct tfc_verdict v = {0}, w = {0};
    assert_ok(tfc_simulator_create(i.problem, &sim));
    tfc_simulate(sim, a.device, a.rank, TFC_TIME_MAX, &v);
    tfc_simulate(sim, b.device, b.rank, TFC_TIME_MAX, &w);
    assert_int_equal(v.value, w.value);
    assert_true(fabs(g->value_us * 1e6 - (double)v.value) < 0.5);
    tfc_simulator_free(sim);
    // Causes each error that has a message of its own.
    tfc_str device = g->nodes[0].device, name = g->nodes[0].name;
    g->nodes[0].device = TFC_STR("gpu:77");
    g->nodes[0].name = TFC_STR("no such node"); // unknown devices are reported before unknown nodes
    assert_fails(tfc_placement_resolve(g, i.problem, &b), TFC_UNAVAILABLE, "gpu:77");
    g->nodes[0].device = device;
    assert_fails(tfc_placement_resolve(g, i.problem, &b), TFC_INVALID_ARGUMENT, "no such node");
    g->nodes[0].name = name;
    g->node_count--;
    assert_fails(tfc_placement_resolve(g, i.problem, &b), TFC_INVALID_ARGUMENT, "missing");
    tfc_text_deinit(&text);
    tfc_text_deinit(&more);
    tfc_placement_free(f);
    tfc_placement_free(g);
    tfc_solution_deinit(&a);
    tfc_solution_deinit(&b);
    instance_free(&i);
  }
  struct tfc_placement *p = NULL;
  assert_fails(tfc_placement_parse(TFC_STR("{\"format\": \"tfc-placement\"}"), "p.json", &p), TFC_INVALID_ARGUMENT,
               "placement");
  assert_fails(tfc_placement_parse(TFC_STR("{\"format\": \"tfc-placement\", \"placement\": {\"a\": 1}}"), "p.json", &p),
               TFC_INVALID_ARGUMENT, "'a'");
  assert_fails(tfc_placement_parse(
                   TFC_STR("{\"format\": \"tfc-placement\", \"placement\": {\"a\": \"x\"}, \"order\": {\"b\": 1}}"),
                   "p.json", &p),
               TFC_INVALID_ARGUMENT, "'b'");
  assert_fails(tfc_placement_read("/nonexistent/p.json", &p), TFC_NOT_FOUND, "/nonexistent/p.json");
}

// Tests the exit codes of --evaluate and of searches, in the order in which the checks are made.
static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}
static int exit_code(const char *graph, const char *machine, const char *placement, const char *says) {
  char folder[] = "/tmp/tfc-formats-XXXXXX", g[64], m[64], p[64];
  assert_non_null(mkdtemp(folder));
  snprintf(g, sizeof g, "%s/g.json", folder), snprintf(m, sizeof m, "%s/m.yaml", folder);
  snprintf(p, sizeof p, "%s/p.json", folder);
  write_file(g, graph), write_file(m, machine);
  struct tfc_place_options o = {.graph = g, .machine = m};
  if (placement && placement[0] == '{')
    write_file(p, placement), o.evaluate = p;
  else
    o.evaluate = placement;
  o.search.evaluations = 300, o.search.threads = 2;
  struct tfc_place_outcome out = {0};
  tfc_status s = tfc_place_modelled(&o, &out);
  if (s && !strstr(tfc_status_message(s), says)) fail_msg("no '%s' in: %s", says, tfc_status_message(s));
  if (!s) assert_non_null(out.placement);
  if (!s && out.exit_code == 5) assert_false(out.placement->feasible);
  int code = out.exit_code;
  tfc_status_free(s);
  tfc_place_outcome_deinit(&out);
  unlink(g), unlink(m), unlink(p), rmdir(folder);
  return code;
}
#define PLACED(pairs) "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {" pairs "}}"
static void test_exit_codes(void **state) {
  (void)state;
  const char *two = GRAPH("{\"name\": \"a\", \"time_us\": {\"acc\": 5}, \"memory\": 60}, {\"name\": \"b\", "
                          "\"time_us\": {\"acc\": 5, \"cpu\": 50}, \"memory\": 60}",
                          "");
  const char *edge = GRAPH(A ", " B, "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1}");
  const char *pinned = GRAPH("{\"name\": \"a\", \"time_us\": {\"acc\": 5}, \"pin\": \"acc:1\"}", "");
  const char *lost = GRAPH("{\"name\": \"a\", \"time_us\": {\"acc\": 5}, \"pin\": \"tpu:1\"}", "");
  const char *grouped = GRAPH("{\"name\": \"a\", \"time_us\": {\"acc\": 5}, \"group\": \"g\"}, {\"name\": \"b\", "
                              "\"time_us\": {\"acc\": 5}, \"group\": \"g\"}",
                              "");
  const char *nowhere = GRAPH("{\"name\": \"a\", \"time_us\": {}}", "");
  const char *machine =
      MACHINE "  - {name: 'acc:0', kind: acc, memory: 100, count: 2}\n  - {name: 'cpu:0', kind: cpu}\n";
  assert_int_equal(exit_code(two, machine, PLACED("\"a\": \"acc:0\", \"b\": \"acc:1\""), ""), 0);
  assert_int_equal(exit_code(two, machine, PLACED("\"a\": \"acc:0\", \"b\": \"acc:0\""), ""), 5);
  assert_int_equal(exit_code(two, machine, "single:acc:0", ""), 5);
  assert_int_equal(exit_code(two, machine, "single:cpu:0", "'a'"), 3); // node a has no time on cpu devices
  assert_int_equal(exit_code(two, machine, "single:gpu:0", "gpu:0"), 4);
  assert_int_equal(exit_code(two, machine, PLACED("\"a\": \"acc:7\""), "acc:7"),
                   4); // the unknown device is reported before the missing node b
  assert_int_equal(exit_code(nowhere, machine, PLACED("\"a\": \"acc:7\""), "acc:7"), 4);
  assert_int_equal(exit_code(nowhere, machine, PLACED("\"a\": \"acc:0\""), "'a'"), 3);
  assert_int_equal(exit_code(two, machine, PLACED("\"a\": \"acc:0\""), "'b'"), 3);
  assert_int_equal(exit_code(two, machine, PLACED("\"a\": \"acc:0\", \"b\": \"acc:1\", \"c\": \"acc:1\""), "'c'"), 3);
  assert_int_equal(exit_code(pinned, machine, PLACED("\"a\": \"acc:0\""), "'acc:1'"), 3);
  assert_int_equal(exit_code(lost, machine, NULL, "'tpu:1'"), 4);
  assert_int_equal(exit_code(grouped, machine, PLACED("\"a\": \"acc:0\", \"b\": \"acc:1\""), "'g'"), 3);
  assert_int_equal(exit_code(edge, machine, PLACED("\"a\": \"acc:0\", \"b\": \"cpu:0\""), "no link"), 3);
  assert_int_equal(exit_code(edge, machine, "-", "device strings"), 3);
  assert_int_equal(exit_code(edge, machine, "/nonexistent.json", "/nonexistent.json"), 3);
  assert_int_equal(exit_code("{", machine, NULL, "g.json"), 3);
  // The exit codes of searches: the answer is better than the best single device, is not better, or no placement fits.
  const char *roomy = MACHINE "  - {name: 'acc:0', kind: acc, count: 2}\n",
             *one = MACHINE "  - {name: 'acc:0', kind: acc}\n";
  const char *narrow = MACHINE "  - {name: 'acc:0', kind: acc, memory: 50, count: 2}\n";
  assert_int_equal(exit_code(two, roomy, NULL, ""), 0);
  assert_int_equal(exit_code(two, one, NULL, ""), 7);
  assert_int_equal(exit_code(two, machine, NULL, ""), 0); // no single device has enough memory for the graph
  assert_int_equal(exit_code(two, narrow, NULL, ""), 5);
}

// A document that contains a file's name is valid UTF-8, whatever the name is.
static void test_strings_are_utf8(void **state) {
  (void)state;
  const struct {
    const char *text, *json;
  } cases[] = {{"a\xff"
                "b",
                "\"a?b\""},
               {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
               {"\xc3", "\"?\""},
               {"\xed\xa0\x80", "\"???\""},
               {"\xc0\xaf", "\"??\""},
               {"q\"\n", "\"q\\\"\\u000a\""},
               {"\xf4\x90\x80\x80", "\"????\""},
               {"\xe0\x80\xaf", "\"???\""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_text text = {0};
    tfc_json_add_string(&text, tfc_str_from(cases[i].text));
    assert_string_equal(text.data, cases[i].json);
    tfc_text_deinit(&text);
  }
}

// There are many brackets, because reading them once took time that grew with the square of their number.
static void test_many_brackets_are_refused(void **state) {
  (void)state;
  static char text[100000];
  struct tfc_machine *m = NULL;
  memset(text, '[', sizeof text);
  assert_fails(tfc_machine_parse((tfc_str){text, sizeof text}, "deep.yaml", &m), TFC_INVALID_ARGUMENT,
               "deep.yaml: line 1: more than 256 brackets");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_many_brackets_are_refused),
      cmocka_unit_test(test_strings_are_utf8),
      cmocka_unit_test(test_bad_graphs),
      cmocka_unit_test(test_graph),
      cmocka_unit_test(test_bad_machines),
      cmocka_unit_test(test_machine),
      cmocka_unit_test(test_links_of_hosts),
      cmocka_unit_test(test_machine_names),
      cmocka_unit_test(test_placement),
      cmocka_unit_test(test_long_steps),
      cmocka_unit_test(test_exit_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
