// What tfc-place makes of a graph and a described machine before and after the search: the problem, the rivals, the
// document, the lines below the table, the exit code and the record. Search and measuring are stand-ins. The graph has
// two products of 12 MFLOP, which take 10 us at 1.2 TFLOPS, and their difference (30 kFLOP, 0.025 us); a tensor of 120
// kB takes 2 us to the other device.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/place.h"
#include "placer/placer.h"
#include "placer/search/rivals.h"
#include "tests/cli/in_process.h"
#include "tests/common/caught.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char own_folder[TEST_FOLDER_SIZE];
static struct test_caught caught;

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static struct {
  const char *algorithm;
  int64_t value, bound;
  uint64_t excess;
  bool cancelled, optimal, none, apart; // apart: the products are on different devices; none: nothing is found
} find;
static struct {
  double seconds;
  uint32_t count;
  char rivals[400]; // "NAME DEVICES, ...": the devices of a, b and s
  char single[16];  // of each rival: whether it is said to be on one device
  bool evaluate;
  uint64_t seed;
} asked;
static uint32_t unit_named(const struct tfc_problem *p, const char *name);
static void tell_devices(const struct tfc_problem *p, const char *name, const tfc_device_id *device) {
  const size_t at = strlen(asked.rivals);
  snprintf(asked.rivals + at, sizeof asked.rivals - at, "%s%s %d%d%d", at ? ", " : "", name,
           (int)device[unit_named(p, "a")], (int)device[unit_named(p, "b")], (int)device[unit_named(p, "s")]);
}
static tfc_status search_here(const struct tfc_problem *p, const struct tfc_search_options *o,
                              const struct tfc_rival *rivals, uint32_t count, struct tfc_search_outcome *out) {
  memset(&asked, 0, sizeof asked);
  asked.seconds = o->seconds, asked.count = count, asked.seed = o->seed;
  for (uint32_t i = 0; i < count; i++) tell_devices(p, rivals[i].name, rivals[i].solution.device);
  *out = (struct tfc_search_outcome){.value = find.value,
                                     .excess = find.excess,
                                     .algorithm = find.algorithm,
                                     .evaluations = 321,
                                     .cancelled = find.cancelled,
                                     .optimal = find.optimal,
                                     .bound = {.value = find.bound, .kind = TFC_BOUND_WORK}};
  if (find.none) return NULL;
  TFC_RETURN_IF_ERROR(tfc_solution_init(&out->best, p));
  for (uint32_t u = 0; u < p->unit_count; u++) out->best.device[u] = 0;
  if (find.apart) out->best.device[unit_named(p, "b")] = 1;
  return NULL;
}
static char described[300];
static tfc_status elsewhere_here(const struct tfc_elsewhere_options *o, struct tfc_elsewhere_outcome *out) {
  struct tfc_placement *p = NULL;
  memset(&asked, 0, sizeof asked);
  asked.count = o->rival_count, asked.evaluate = o->evaluate != NULL, asked.seed = o->search.seed;
  for (uint32_t i = 0; i < o->rival_count; i++) {
    tell_devices(o->problem, o->rivals[i].name, o->rivals[i].solution->device);
    asked.single[i] = o->rivals[i].single ? '1' : '0';
  }
  if (o->evaluate) tell_devices(o->problem, "evaluated", o->evaluate->device);
  const struct tfc_solution *any = o->evaluate ? o->evaluate : o->rivals[0].solution;
  TFC_RETURN_IF_ERROR(o->describe(o->user, any, &p));
  snprintf(described, sizeof described, "%.*s %.*s %g %u %s %s %s", TFC_STR_ARG(p->graph_file),
           TFC_STR_ARG(p->graph_sha256), p->value_us, p->node_count, o->sha256, o->machine, o->settings->measure_with);
  out->exit_code = 7, out->placement = p, out->run = 5;
  return NULL;
}
static struct {
  int calls, given, exit_code;
  bool expert, search, options, answer, document;
  double flops[8]; // of each node
  uint64_t bytes[8];
  uint32_t nodes;
  char message[300];
} record_asked;
static void record_here(const struct tfc_record *r, const struct tfc_record_target *target,
                        struct tfc_place_outcome *out) {
  (void)target;
  record_asked.calls++;
  record_asked.given = (int)r->given_count, record_asked.exit_code = r->exit_code,
  record_asked.expert = r->expert != NULL;
  record_asked.search = r->search != NULL, record_asked.options = r->options != NULL,
  record_asked.answer = r->answer != NULL;
  record_asked.document = r->document == out->placement;
  record_asked.nodes = r->graph_rows->node_count;
  for (uint32_t i = 0; i < record_asked.nodes && i < 8; i++)
    record_asked.flops[i] = r->graph_rows->work[i].flops, record_asked.bytes[i] = r->graph_rows->output_bytes[i];
  for (uint32_t i = 0; r->given && i < r->given_count; i++)
    if (strcmp(r->given[i].name, "baseline") != 0) record_asked.given = -1;
  snprintf(record_asked.message, sizeof record_asked.message, "%s", r->message);
}
#define tfc_search_beside search_here
#define tfc_elsewhere_run elsewhere_here
#define tfc_place_record record_here
#include "cli/place_machine.c"

static uint32_t unit_named(const struct tfc_problem *p, const char *name) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (tfc_str_is(tfc_problem_unit_name(p, u), name)) return u;
  fail_msg("no unit has '%s'", name);
  return 0;
}

#define FLOAT(key) "attr { key: '" key "' value { type: DT_FLOAT } } "
#define INPUT(name, rows, columns)                                                                                     \
  "node { name: '" name "' op: 'Placeholder' " FLOAT("dtype") "attr { key: 'shape' value { shape { dim { size: " rows  \
                                                              " } dim { size: " columns " } } } } }\n"
#define PRODUCT(name, device)                                                                                          \
  "node { name: '" name "' op: 'MatMul' input: 'x' input: 'w' device: '" device "' " FLOAT("T") "}\n"
#define GRAPH(first, second)                                                                                           \
  INPUT("x", "100", "200")                                                                                             \
  INPUT("w", "200", "300")                                                                                             \
  PRODUCT("a", first)                                                                                                  \
  PRODUCT("b", second) "node { name: 's' op: 'Sub' input: 'a' input: 'b' device: '" first "' " FLOAT("T") "}\n"
static const char machine_text[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                                   "  - {name: \"acc:0\", kind: acc, memory: 1GB, count: 2, flops: 1.2e+12, "
                                   "memory_bandwidth: 100TB/s}\n"
                                   "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 120GB/s}\n";
static const char *in(const char *name) {
  return test_folder_path(own_folder, name);
}
static int set_up(void **state) {
  (void)state;
  test_program_start("tfc-place");
  if (test_folder_make(own_folder, "place-machine")) return -1;
  command_put(own_folder, "g.pbtxt", GRAPH("/device:GPU:0", "/device:GPU:1"));
  command_put(own_folder, "plain.pbtxt", GRAPH("", ""));
  command_put(own_folder, "other.pbtxt", GRAPH("/device:GPU:1", "/device:GPU:0"));
  command_put(own_folder, "m.yaml", machine_text);
  command_put(own_folder, "mine.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"x\": \"host\", "
              "\"w\": \"host\", \"a\": \"acc:1\", \"b\": \"acc:0\", \"s\": \"acc:0\"}}");
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(own_folder);
}
static struct place_options flags(const char *graph) {
  return (struct place_options){.graph = in(graph), .machine = in("m.yaml"), .restarts = -1};
}
static struct tfc_record_target target;
static tfc_status place(const struct place_options *o, struct tfc_place_outcome *out) {
  const struct tfc_search_options search_options = {.seconds = 100, .seed = 3};
  *out = (struct tfc_place_outcome){0};
  record_asked.calls = 0;
  test_catch(&caught, stderr);
  tfc_status s = place_machine(o, &search_options, &target, out);
  test_caught_end(&caught);
  return s;
}
static bool near(double a, double b) {
  return fabs(a - b) < 1e-4;
}

// --- Searching -------------------------------------------------------------------------------------------------------

static void find_is(int64_t value, bool apart) {
  memset(&find, 0, sizeof find);
  find.algorithm = "some", find.value = value, find.bound = 10000000, find.apart = apart;
}

static void test_search(void **state) {
  (void)state;
  struct place_options o = flags("g.pbtxt");
  struct tfc_place_outcome out;
  char mine[200], theirs[200];
  snprintf(mine, sizeof mine, "mine=%s", in("mine.json")),
      snprintf(theirs, sizeof theirs, "theirs=%s", in("other.pbtxt"));
  const char *baselines[] = {mine, theirs};
  o.request.baselines = (struct tfc_texts){baselines, 2};
  target = (struct tfc_record_target){0};
  find_is(12025000, true);
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "single 000, single 111, expert 010, baseline 100, baseline 101");
  assert_true(asked.seconds == 100 && asked.seed == 3 && out.exit_code == 0 && record_asked.calls == 0);
  const struct tfc_placement *p = out.placement;
  assert_true(near(p->value_us, 12.025) && p->seed == 3 && p->evaluations == 321 && tfc_str_is(p->algorithm, "some"));
  assert_true(tfc_str_is(p->graph_file, o.graph) && p->graph_sha256.size == 64 && p->feasible);
  const struct command_result *r = command("sha256sum <%s", o.graph);
  assert_int_equal(strncmp(r->out, p->graph_sha256.data, 64), 0);
  static const struct {
    const char *name;
    double us;
  } rows[] = {
      {"single:acc:0", 20.025}, {"single:acc:1", 20.025}, {"expert", 12.025}, {"mine", 12.025}, {"theirs", 12.025}};
  assert_int_equal(p->baseline_count, 5);
  for (uint32_t i = 0; i < 5; i++) {
    const struct tfc_placement_baseline *b = &p->baselines[i];
    if (!tfc_str_is(b->name, rows[i].name) || !near(b->median_us, rows[i].us) || !b->feasible || b->note.size)
      fail_msg("row %u: %.*s %g %.*s", i, TFC_STR_ARG(b->name), b->median_us, TFC_STR_ARG(b->note));
  }
  assert_string_equal(out.summary, "Best single device: 20.0 us, 1.665 times as long (modelled).\n"
                                   "Lower bound 10.0 us (work per device); the answer is 20.2 % above it.\n"
                                   "Nothing was run: times follow from each operation's FLOP and bytes at the rates of "
                                   "the machine file, and real ones are longer.\n");
  assert_null(out.over_limits);
  // 3 operations of 12, 12 and 0.03 MFLOP; 320 kB, 320 kB and 240 kB read, 120 kB written three times
  SAYS(caught,
       "the step, modelled: 3 operations, 0.024 GFLOP and 1.2 MB read and written; "
       "0 B of variables; 3 units\n",
       1);
  SAYS(caught, "graph: 5 nodes of 3 types", 1);
  SAYS(caught, "warning: expert: device strings mapped to the devices in use: ", 1);
  tfc_place_outcome_deinit(&out);
}

static void test_codes(void **state) {
  (void)state;
  struct place_options o = flags("plain.pbtxt");
  struct tfc_place_outcome out;
  static const struct {
    int64_t value;
    uint64_t excess;
    bool cancelled;
    int code;
    const char *says;
  } cases[] = {
      {12025000, 0, false, 0, "1.665 times as long"},
      {20024999, 0, false, 0, "1.000 times as long"},
      {20025000, 0, false, 7, "1.000 times as long"},
      {30000000, 0, false, 7, "0.667 times as long"},
      {12025000, 1500, false, 5, "Nothing that was tried fits in memory: 1.5 kB too much in the best of it.\n"},
      {12025000, 1500, true, 130, "Nothing that was tried fits"},
      {12025000, 0, true, 130, "Lower bound 10.0 us"}};
  target = (struct tfc_record_target){0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    find_is(cases[i].value, true);
    find.excess = cases[i].excess, find.cancelled = cases[i].cancelled;
    assert_ok(place(&o, &out));
    assert_string_equal(asked.rivals, "single 000, single 111"); // the graph names no devices
    if (out.exit_code != cases[i].code || !strstr(out.summary, cases[i].says))
      fail_msg("case %zu: %d, %s", i, out.exit_code, out.summary);
    assert_true(!strstr(out.summary, "Lower bound") == (cases[i].excess > 0));
    assert_int_equal(out.placement->baseline_count, 2);
    tfc_place_outcome_deinit(&out);
  }
  find_is(10000000, true), find.optimal = true;
  assert_ok(place(&o, &out));
  assert_non_null(strstr(out.summary, "the answer is 0.0 % above it: optimal.\n"));
  tfc_place_outcome_deinit(&out);
  find_is(12025000, true), find.bound = 0;
  assert_ok(place(&o, &out));
  assert_null(strstr(out.summary, "Lower bound"));
  tfc_place_outcome_deinit(&out);
  find_is(0, false), find.none = true;
  assert_fails(place(&o, &out), TFC_INVALID_ARGUMENT, "no legal placement was found: links or kinds are missing in ");
  find.cancelled = true;
  assert_fails(place(&o, &out), TFC_CANCELLED, "interrupted before a placement was found");
  // With device strings that are ignored, nothing is an expert's.
  o = flags("g.pbtxt");
  o.request.device_strings = TFC_STRINGS_IGNORE;
  find_is(12025000, true);
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "single 000, single 111");
  assert_int_equal(out.placement->baseline_count, 2);
  tfc_place_outcome_deinit(&out);
  // A limit that no single device keeps: 240 kB of results.
  const char *limits[] = {"acc:*=200kB"};
  o.limits = (struct tfc_texts){limits, 1};
  assert_ok(place(&o, &out));
  assert_non_null(strstr(out.summary, "No single device can hold and run it (modelled).\n"));
  assert_true(out.exit_code == 0 && tfc_str_is(out.placement->baselines[0].note, "does not fit in memory"));
  assert_false(out.placement->baselines[1].feasible);
  tfc_place_outcome_deinit(&out);
  limits[0] = "gpu:*=1MB";
  assert_fails(place(&o, &out), TFC_UNAVAILABLE, "--memory gpu:*=1MB");
  o.limits.count = 0, o.devices = "3";
  assert_fails(place(&o, &out), TFC_UNAVAILABLE, "--devices 3: the machine has no kind with 3 devices");
}

static void test_record(void **state) {
  (void)state;
  struct place_options o = flags("g.pbtxt");
  struct tfc_place_outcome out;
  char mine[200];
  snprintf(mine, sizeof mine, "mine=%s", in("mine.json"));
  const char *baselines[] = {mine};
  for (int given = 0; given < 2; given++) {
    o.request.baselines = (struct tfc_texts){baselines, (uint32_t)given};
    target = (struct tfc_record_target){.wanted = true};
    find_is(20025000, false);
    assert_ok(place(&o, &out));
    assert_true(record_asked.calls == 1 && record_asked.given == given && record_asked.exit_code == 7 &&
                record_asked.expert);
    assert_true(record_asked.search && record_asked.options && record_asked.answer && record_asked.document &&
                record_asked.nodes == 5);
    assert_true(asked.seconds == 100);
    static const double flops[] = {NAN, NAN, 12e6, 12e6, 30e3}; // x, w, a, b, s
    static const uint64_t bytes[] = {80000, 240000, 120000, 120000, 120000};
    for (int i = 0; i < 5; i++) {
      assert_true(isnan(flops[i]) ? isnan(record_asked.flops[i]) : record_asked.flops[i] == flops[i]);
      assert_int_equal(record_asked.bytes[i], bytes[i]);
    }
    assert_int_equal(strncmp(record_asked.message, "nothing was run: ", 17), 0);
    tfc_place_outcome_deinit(&out);
  }
  target.page = true; // it takes 1.5 s of the time, and 40 us for each of 3 nodes
  assert_ok(place(&o, &out));
  assert_true(fabs(asked.seconds - (100 - 1.5 - 3 * 4e-5)) < 1e-9);
  tfc_place_outcome_deinit(&out);
  o = flags("plain.pbtxt");
  assert_ok(place(&o, &out));
  assert_false(record_asked.expert);
  tfc_place_outcome_deinit(&out);
  o.evaluate = "single:acc:1";
  assert_ok(place(&o, &out));
  assert_true(record_asked.calls == 1 && !record_asked.search && !record_asked.options && record_asked.answer &&
              record_asked.document);
  assert_true(record_asked.exit_code == 0 && !record_asked.given && !record_asked.expert);
  tfc_place_outcome_deinit(&out);
}

// --- Evaluating and measuring ----------------------------------------------------------------------------------------

static void test_evaluate(void **state) {
  (void)state;
  struct tfc_place_outcome out;
  char mine[200], other[200];
  snprintf(mine, sizeof mine, "%s", in("mine.json")), snprintf(other, sizeof other, "%s", in("other.json"));
  const struct {
    const char *graph, *what;
    double us;
    int mapped;
  } cases[] = {{"g.pbtxt", "single:acc:0", 20.025, 0}, {"g.pbtxt", "-", 12.025, 1}, {"plain.pbtxt", mine, 12.025, 0}};
  target = (struct tfc_record_target){0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct place_options o = flags(cases[i].graph);
    o.evaluate = cases[i].what;
    assert_ok(place(&o, &out));
    assert_true(near(out.placement->value_us, cases[i].us) && tfc_str_is(out.placement->algorithm, "given"));
    assert_true(out.exit_code == 0 && !out.over_limits && record_asked.calls == 0 && !out.summary);
    SAYS(caught, "warning: device strings mapped to the devices in use: ", cases[i].mapped);
    tfc_place_outcome_deinit(&out);
  }
  struct place_options o = flags("g.pbtxt");
  const char *limits[] = {"acc:0=200kB"};
  o.limits = (struct tfc_texts){limits, 1}, o.evaluate = "single:acc:0";
  assert_ok(place(&o, &out));
  assert_true(out.exit_code == 5 && out.over_limits && strstr(out.over_limits, "acc:0 holds "));
  tfc_place_outcome_deinit(&out);
  o.evaluate = "single:acc:1";
  assert_ok(place(&o, &out));
  assert_true(out.exit_code == 0 && !out.over_limits);
  tfc_place_outcome_deinit(&out);
  o.evaluate = "single:acc:2";
  assert_fails(place(&o, &out), TFC_UNAVAILABLE, "acc:2");
  command_put(own_folder, "other.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a\": \"acc:9\"}}");
  o.evaluate = other; // a device that is not there comes before nodes that are missing
  assert_fails(place(&o, &out), TFC_UNAVAILABLE, "acc:9");
  command_put(own_folder, "other.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"a\": \"acc:1\"}}");
  assert_fails(place(&o, &out), TFC_INVALID_ARGUMENT, "other.json: ");
  o = flags("plain.pbtxt");
  o.evaluate = "-"; // it names no devices
  assert_fails(place(&o, &out), TFC_NOT_FOUND, "");
}

static void test_measuring(void **state) {
  (void)state;
  struct place_options o = flags("g.pbtxt");
  struct tfc_place_outcome out;
  char mine[200], expected[600], digest[65];
  snprintf(mine, sizeof mine, "mine=%s", in("mine.json"));
  const char *baselines[] = {mine};
  target = (struct tfc_record_target){0};
  o.request.baselines = (struct tfc_texts){baselines, 1}, o.measure_with = "steps";
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "single:acc:0 000, single:acc:1 111, expert 010, mine 100");
  assert_string_equal(asked.single, "1100");
  assert_true(!asked.evaluate && asked.seed == 3 && out.exit_code == 7 && out.run == 5 && out.placement);
  const struct command_result *r = command("sha256sum <%s", o.graph);
  snprintf(digest, sizeof digest, "%.64s", r->out);
  snprintf(expected, sizeof expected, "%s %s 20.025 5 %s %s steps", o.graph, digest, digest, o.machine);
  assert_string_equal(described, expected);
  tfc_place_outcome_deinit(&out);
  o.evaluate = "single:acc:1";
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "evaluated 111");
  assert_true(asked.evaluate && asked.count == 0);
  tfc_place_outcome_deinit(&out);
  o = flags("plain.pbtxt"), o.measure_with = "steps";
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "single:acc:0 000, single:acc:1 111");
  tfc_place_outcome_deinit(&out);
  // What no device can run is no rival: here there is no link.
  command_put(own_folder, "m.yaml",
              "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 2, "
              "flops: 1.2e+12, memory_bandwidth: 100TB/s}\n");
  o = flags("g.pbtxt"), o.measure_with = "steps";
  assert_ok(place(&o, &out));
  assert_string_equal(asked.rivals, "single:acc:0 000, single:acc:1 111");
  tfc_place_outcome_deinit(&out);
  command_put(own_folder, "m.yaml", machine_text);
}

// --- The machine -----------------------------------------------------------------------------------------------------

// --devices N: N devices of the fastest kind that has N of them. Any other text is a list of names.
static void test_devices(void **state) {
  (void)state;
  static const struct {
    const char *devices, *names; // NULL: an error
    tfc_code error;
  } cases[] = {{"1", "fast:0", 0},
               {"2", "fast:0 fast:1", 0},
               {"3", "slow:0 slow:1 slow:2", 0},
               {"4", NULL, TFC_UNAVAILABLE},
               {"0", NULL, TFC_INVALID_ARGUMENT},
               {"-1", NULL, TFC_INVALID_ARGUMENT},
               {"slow:1,fast:0", "fast:0 slow:1", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_machine *m = NULL;
    assert_ok(tfc_machine_create(&m));
    for (int k = 0; k < 5; k++) {
      char name[16];
      snprintf(name, sizeof name, "%s:%d", k % 2 ? "fast" : "slow", k / 2);
      assert_ok(
          tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                 .kind = k % 2 ? TFC_STR("fast") : TFC_STR("slow"),
                                                                 .flops = k % 2 ? 2e12 : 1e12,
                                                                 .memory = TFC_NO_LIMIT}));
    }
    tfc_status s = select_devices(m, cases[i].devices);
    if (!cases[i].names) {
      assert_fails(s, cases[i].error, "");
    } else {
      char names[100] = "";
      assert_ok(s);
      for (uint32_t d = 0; d < m->device_count; d++) {
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%.*s", d ? " " : "", TFC_STR_ARG(m->devices[d].name));
      }
      if (strcmp(names, cases[i].names) != 0) fail_msg("%s: %s", cases[i].devices, names);
    }
    tfc_machine_free(m);
  }
}

static tfc_status look(void *user, const struct tfc_problem *p, const char *sha256) {
  char *text = user;
  snprintf(text, 200, "%u units on %u devices, %s", p->unit_count, p->device_count, sha256);
  return NULL;
}
static void test_problem(void **state) {
  (void)state;
  struct place_options o = flags("g.pbtxt");
  char text[200] = "", expected[200];
  test_catch(&caught, stderr);
  tfc_status s = place_machine_problem(&o, look, text);
  test_caught_end(&caught);
  assert_ok(s);
  const struct command_result *r = command("sha256sum <%s", o.graph);
  snprintf(expected, sizeof expected, "3 units on 2 devices, %.64s", r->out);
  assert_string_equal(text, expected);
  // Files of the problem, which can be searched as such.
  o.save_problem = in("problem");
  struct tfc_place_outcome out;
  find_is(12025000, true);
  assert_ok(place(&o, &out));
  tfc_place_outcome_deinit(&out);
  assert_int_equal(access(in("problem/graph.json"), R_OK), 0);
  assert_int_equal(access(in("problem/machine.yaml"), R_OK), 0);
}

// An operation on strings runs only on the host. If the machine has no host, a warning says that it is costed like
// others.
static void test_host(void **state) {
  (void)state;
  struct place_options o = flags("words.pbtxt");
  struct tfc_place_outcome out;
  command_put(own_folder, "words.pbtxt",
              INPUT("x", "10", "20") "node { name: 'a' op: 'Square' input: 'x' " FLOAT(
                  "T") "}\nnode { name: 'b' op: 'Exp' "
                       "input: 'a' " FLOAT("T") "}\nnode { name: 's' op: 'AsString' input: 'b' " FLOAT("T") "}\n");
  find_is(1, false), find.none = true;
  assert_fails(place(&o, &out), TFC_INVALID_ARGUMENT, "no legal placement");
  SAYS(caught, "warning: 1 operations run on hosts only, and no device of ", 1);
  for (int first = 0; first < 2; first++) {
    char text[600];
    static const char acc[] = "  - {name: \"acc:0\", kind: acc, flops: 1.0e+12, memory_bandwidth: 1TB/s}\n",
                      cpu[] = "  - {name: \"cpu:0\", kind: cpu, flops: 1.0e+11, memory_bandwidth: 100GB/s}\n";
    snprintf(
        text, sizeof text,
        "format: tfc-machine\nversion: 1\ndevices:\n%s%slinks:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: "
        "120GB/s}\n",
        first ? cpu : acc, first ? acc : cpu);
    command_put(own_folder, "m.yaml", text);
    struct described d = {.o = &o};
    test_catch(&caught, stderr);
    assert_ok(read_machine(&d));
    assert_ok(read_step(&d));
    assert_ok(plan_step(&d));
    assert_ok(make_problem(&d));
    test_caught_end(&caught);
    SAYS(caught, "run on hosts only", 0);
    const uint32_t host = first ? 0 : 1;
    assert_int_equal(host_of(d.machine), host);
    for (uint32_t u = 0; u < d.problem->unit_count; u++) {
      assert_true(tfc_problem_allows(d.problem, u, host));
      assert_true(tfc_problem_allows(d.problem, u, 1 - host) == (u != unit_named(d.problem, "s")));
    }
    described_deinit(&d);
  }
  command_put(own_folder, "m.yaml", machine_text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_search),    cmocka_unit_test(test_codes),
                                     cmocka_unit_test(test_record),    cmocka_unit_test(test_evaluate),
                                     cmocka_unit_test(test_measuring), cmocka_unit_test(test_devices),
                                     cmocka_unit_test(test_problem),   cmocka_unit_test(test_host)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
