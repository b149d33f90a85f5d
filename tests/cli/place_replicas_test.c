// What tfc-place --replicas asks of the simulation of replicas, and how it shows what comes back: the numbers of
// replicas, the modes, the step times of a database, tables, documents and the page. The simulation is a stand-in.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/place.h"
#include "placer/replicas/sweep.h"
#include "reports/reports.h"
#include "tests/cli/place_stand_ins.h"

static const char *machine_path;

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static struct tfc_sweep_options asked;
static char asked_counts[200];
static tfc_status sweep_here(const struct tfc_sweep_options *o, struct tfc_sweep *out) {
  asked = *o;
  asked_counts[0] = 0;
  for (uint32_t i = 0; i < o->count_count; i++)
    snprintf(asked_counts + strlen(asked_counts), sizeof asked_counts - strlen(asked_counts), "%s%u", i ? " " : "",
             o->counts[i]);
  assert_int_equal(forgotten, 0); // a signal interrupts the simulation
  assert_ptr_equal(o->cancel, tfc_program_cancel());
  o->progress(o->user, 1, 4);
  out->row = calloc(o->count_count, sizeof *out->row);
  out->row_count = o->count_count;
  for (uint32_t i = 0; i < o->count_count; i++) {
    const double n = o->counts[i];
    struct tfc_sweep_row *row = &out->row[i];
    row->count = o->counts[i], row->backup = i + 1, row->gain = 1.25;
    for (int mode = 0; mode < TFC_REPLICAS_MODES; mode++)
      row->result[mode] = (struct tfc_replicas_result){.hosts = 2 + i,
                                                       .servers = 5 + i,
                                                       .batches_per_second = 1000 * (mode + 1) + n,
                                                       .efficiency = 0.5 + 0.125 * mode,
                                                       .median_us = 100 * (mode + 1),
                                                       .q1_us = 90 * (mode + 1),
                                                       .q3_us = 110 * (mode + 1),
                                                       .p95_us = 120 * (mode + 1),
                                                       .steps = 70 + (uint32_t)mode,
                                                       .dropped = 0.25,
                                                       .link = "card of h:0",
                                                       .link_bytes = 2000000,
                                                       .link_share = 0.75};
    row->with_backup = row->result[TFC_REPLICAS_SYNC];
    row->with_backup.median_us = 160;
  }
  return NULL;
}
static char page[300];
static tfc_status page_here(const struct tfc_report_replicas_page *p, const char *dir) {
  assert_int_equal(forgotten, 1); // a signal that stopped the simulation does not stop the page
  snprintf(page, sizeof page, "%s of %s on %s, %u rows, %d%d%d, %s", strrchr(dir, '/') + 1, strrchr(p->graph, '/') + 1,
           strrchr(p->machine, '/') + 1, p->sweep->row_count, p->modes[0], p->modes[1], p->modes[2],
           strstr(p->text->data, "A replica on acc:0") ? "described" : "");
  return strstr(dir, "full") ? tfc_status_make(TFC_DATA_LOSS, "no space") : NULL;
}
static double ratios[64];
static uint32_t ratio_count;
static tfc_status fit_here(double *ratio, uint32_t count, struct tfc_step_times *out) {
  ratio_count = count;
  memcpy(ratios, ratio, count * sizeof *ratio);
  if (count < 5) return tfc_status_make(TFC_INVALID_ARGUMENT, "too few");
  *out = (struct tfc_step_times){.sigma = 0.125, .late_share = 0.25, .late_factor = 3, .samples = count};
  return NULL;
}
#define tfc_sweep_run sweep_here
#define tfc_report_replicas page_here
#define tfc_step_times_fit fit_here
#include "cli/place_replicas.c"

static int set_up(void **state) {
  (void)state;
  // A weight of 1 MB that a step of 1 ms reads and updates.
  if (make_folder("place-replicas", "c.json",
                  "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
                  "{\"name\": \"w\", \"time_us\": {\"acc\": 0}, \"memory\": 1000000, \"group\": \"w\"},"
                  "{\"name\": \"step\", \"time_us\": {\"acc\": 1000}},"
                  "{\"name\": \"update\", \"time_us\": {\"acc\": 0}, \"group\": \"w\"}], \"edges\": ["
                  "{\"from\": \"w\", \"to\": \"step\", \"bytes\": 1000000},"
                  "{\"from\": \"step\", \"to\": \"update\", \"bytes\": 1000000}]}"))
    return -1;
  machine_path = in("m.yaml");
  command_put(folder, "m.yaml",
              "format: tfc-machine\nversion: 1\ndevices:\n"
              "  - {name: \"acc:0\", host: \"h:0\", hosts: 2, kind: acc, flops: 1.0e+11, memory_bandwidth: 50GB/s}\n"
              "links:\n  - {from: \"*\", to: \"*\", bandwidth: 1GB/s, wire: \"card of {host}\"}\n");
  return 0;
}
static struct place_options flags(const char *counts) {
  return (struct place_options){.graph = graph_path,
                                .machine = machine_path,
                                .db = "/nowhere.db",
                                .report = "none",
                                .replicas = counts,
                                .backup = -1};
}
static int place(const struct place_options *o) {
  calls[0] = page[0] = 0, forgotten = 0;
  test_catch(&caught_out, stdout), test_catch(&caught_err, stderr);
  const int code = place_replicas(o, true);
  test_caught_end(&caught_out), test_caught_end(&caught_err);
  return code;
}

// --- Numbers of replicas ---------------------------------------------------------------------------------------------

static void test_counts(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"1", "1"},
                                         {"1,2,4", "1 2 4"},
                                         {"4096", "4096"},
                                         {"4097", NULL},
                                         {"0", NULL},
                                         {"2,2", NULL},
                                         {"1,2,4,...,32", "1 2 4 8 16 32"},
                                         {"1,2,4,...,20", "1 2 4 8 16 20"}, // the last one is there in any case
                                         {"1,2,...,8", "1 2 4 8"},          // twice as many, where both are possible
                                         {"2,6,...,54", "2 6 18 54"},
                                         {"2,3,...,6", "2 3 4 5 6"},
                                         {"2,4,6,...,11", "2 4 6 8 10 11"}, // 6 is no double of 4
                                         {"4,8,12,...,20", "4 8 12 16 20"},
                                         {"1,2,\xe2\x80\xa6,4", "1 2 4"},
                                         {"1,2,...,2", NULL},
                                         {"1,2,...,4,...,8", "1 2 4 8"},
                                         {"1,2,...,4,5", "1 2 4 5"},
                                         {"3,...,9", NULL},
                                         {"...,9", NULL},
                                         {"1,2,...", NULL},
                                         {"1,2,...,...,8", NULL},
                                         {"1,", NULL},
                                         {"", NULL},
                                         {"1,,2", NULL},
                                         {"x", NULL},
                                         {"1,2,...,5000", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct replicas r = {.counts = calloc(TFC_REPLICAS_MOST, sizeof *r.counts)};
    char text[200] = "";
    const bool fine = parse_counts(cases[i][0], &r);
    for (uint32_t k = 0; k < r.count_count && k < 30; k++)
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", k ? " " : "", r.counts[k]);
    if (fine != (cases[i][1] != NULL) || (fine && strcmp(text, cases[i][1]) != 0))
      fail_msg("%s: %s", cases[i][0], text);
    free(r.counts);
  }
  // As many as there can be.
  struct replicas r = {.counts = calloc(TFC_REPLICAS_MOST, sizeof *r.counts)};
  assert_true(parse_counts("1,2,3,...,4096", &r) && r.count_count == 4096 && r.counts[4095] == 4096);
  free(r.counts);
}

static void test_flags(void **state) {
  (void)state;
  static const struct tfc_program program = {.name = "tfc-place"};
  static const struct {
    struct place_options o;
    const char *says; // NULL: they are right
  } cases[] = {{{.backup = -1}, NULL},
               {{.backup = -1, .sync = true}, "are for --replicas"},
               {{.backup = -1, .async = true}, "are for --replicas"},
               {{.backup = 0}, "are for --replicas"},
               {{.backup = -1, .ps = 1}, "are for --replicas"},
               {{.backup = -1, .step_times = "t"}, "are for --replicas"},
               {{.backup = -1, .replicas = "2"}, "--replicas needs a described machine"},
               {{.backup = -1, .replicas = "2", .machine = "m"}, NULL},
               {{.backup = -1, .replicas = "2", .machine = "m", .measure_with = "x"}, "it simulates"},
               {{.backup = -1, .replicas = "2", .machine = "m", .evaluate = "x"}, "it simulates"},
               {{.backup = -1, .replicas = "2", .machine = "m", .resume = ""}, "it simulates"},
               {{.backup = -1, .replicas = "2", .machine = "m", .sync = true, .async = true}, "one of them"},
               {{.backup = -1, .replicas = "2", .machine = "m", .sync = true}, NULL},
               {{.backup = 0, .replicas = "2", .machine = "m", .async = true}, "wait for nobody"},
               {{.backup = 0, .replicas = "2", .machine = "m", .sync = true}, NULL},
               {{.backup = -1, .replicas = "2", .machine = "m", .async = true}, NULL},
               {{.backup = -1, .replicas = "2,1", .machine = "m"},
                "ascending numbers up to 4096, such as 1,2,4,8 or "
                "1,2,4,...,1000, not '2,1'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_catch(&caught_err, stderr);
    const int code = place_check_replicas(&program, &cases[i].o);
    test_caught_end(&caught_err);
    if (code != (cases[i].says ? 2 : 0) || (cases[i].says && !strstr(caught_err.text, cases[i].says)))
      fail_msg("case %zu: %d, %s", i, code, caught_err.text);
  }
}

// --- What is asked and printed ---------------------------------------------------------------------------------------

#define ALL                                                                                                            \
  "\nSynchronous, gradients reduced by all\n\n"                                                                        \
  "  replicas  hosts  batches/s  efficiency        step             quartiles  bytes/step  the busiest link\n"         \
  "         2      2       1002      50.0 %    100.0 us   90.0 us .. 110.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"                                                                                                            \
  "         3      3       1003      50.0 %    100.0 us   90.0 us .. 110.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"
#define SYNC                                                                                                           \
  "\nSynchronous, parameter servers\n\n"                                                                               \
  "  replicas     ps  batches/s  efficiency        step             quartiles  bytes/step  the busiest link\n"         \
  "         2      5       2002      62.5 %    200.0 us  180.0 us .. 220.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"                                                                                                            \
  "         3      6       2003      62.5 %    200.0 us  180.0 us .. 220.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"
#define ASYNC                                                                                                          \
  "\nAsynchronous, parameter servers (a step: one replica's)\n\n"                                                      \
  "  replicas     ps  batches/s  efficiency        step             quartiles  bytes/step  the busiest link\n"         \
  "         2      5       3002      75.0 %    300.0 us  270.0 us .. 330.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"                                                                                                            \
  "         3      6       3003      75.0 %    300.0 us  270.0 us .. 330.0 us      2.0 MB  card of h:0 (75 % of the "  \
  "time)\n"
#define BACKUPS(how)                                                                                                   \
  "\nBackup workers of synchronous replicas with parameter servers" how                                                \
  "\n\n  replicas  backups        step   with them       gain\n"                                                       \
  "         2        1    200.0 us    160.0 us     25.0 %\n"                                                           \
  "         3        2    200.0 us    160.0 us     25.0 %\n"                                                           \
  "  (gain: in batches a second, with the backups' devices counted: it is above 0 only where they are\n"               \
  "  better used as backups than as more replicas)\n"
#define BEFORE(hosts)                                                                                                  \
  "A replica on acc:0 takes 1.000 ms a step alone, reads 1.0 MB of parameters and sends 1.0 MB of gradients "          \
  "(modelled).\n1 acc on each host, 2 hosts" hosts ".\n"                                                               \
  "Step times: a standard deviation of 5.0 %, 1.0 % of the steps late by a factor of 1.50 (assumed, because no "       \
  "database says: give one with --step-times).\n"

static void test_modes(void **state) {
  (void)state;
  static const struct {
    int reduce; // 0: both, 1: all, 2: servers
    bool sync, async;
    int64_t backup;
    const char *modes, *text;
  } cases[] = {{0, false, false, -1, "111", ALL SYNC ASYNC BACKUPS(": how many pay best")},
               {1, false, false, -1, "100", ALL},
               {2, false, false, -1, "011", SYNC ASYNC BACKUPS(": how many pay best")},
               {0, true, false, -1, "110", ALL SYNC BACKUPS(": how many pay best")},
               {0, false, true, -1, "001", ASYNC},
               {0, false, false, 1, "011", SYNC ASYNC BACKUPS("")},
               {0, true, false, 0, "010", SYNC BACKUPS("")},
               {2, true, false, 2, "010", SYNC BACKUPS("")}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct place_options o = flags("2,3");
    char modes[8], expected[6000];
    o.reduce = cases[i].reduce, o.sync = cases[i].sync, o.async = cases[i].async, o.backup = cases[i].backup;
    o.ps = 4, o.execution.seed = 11;
    assert_int_equal(place(&o), 0);
    snprintf(modes, sizeof modes, "%d%d%d", asked.modes[0], asked.modes[1], asked.modes[2]);
    if (strcmp(modes, cases[i].modes) != 0) fail_msg("case %zu: %s", i, modes);
    assert_true(asked.backup == o.backup && asked.servers == 4 && asked.seed == 11);
    assert_true(asked.cancel == tfc_program_cancel() && asked.times.samples == 0 && asked.times.sigma == 0.05);
    snprintf(expected, sizeof expected, "%s%s", BEFORE(" (and more like them)"), cases[i].text);
    assert_string_equal(caught_out.text, expected);
    assert_string_equal(calls, "begin replicas\n0.25 of -1: 2 replicas\nend 2 numbers of replicas\n");
    assert_string_equal(page, "");
  }
  struct place_options o = flags("2");
  assert_int_equal(place(&o), 0);
  assert_string_equal(asked_counts, "2");
  assert_non_null(strstr(caught_out.text, "1 acc on each host, 2 hosts.\n"));
}

static void test_nothing_to_exchange(void **state) {
  (void)state;
  struct replicas r = {.counts = (uint32_t[]){1}, .count_count = 1, .device = "d"};
  struct tfc_text text = {0};
  r.hardware = (struct tfc_hardware){.kind = TFC_STR("acc"), .per_host = 8, .hosts = 1};
  describe(&r, &text);
  assert_non_null(strstr(text.data, "8 acc on each host.\n"));
  assert_non_null(strstr(text.data, "The step reads no variables: replicas exchange nothing.\n"));
  tfc_text_deinit(&text);
}

static void test_document(void **state) {
  (void)state;
#define RESULT(hosts, servers, batches, efficiency, median, q1, q3, p95, steps)                                        \
  "{\"hosts\": " hosts ", \"ps\": " servers ", \"batches_per_second\": " batches ", \"efficiency\": " efficiency       \
  ", \"median_us\": " median ", \"q1_us\": " q1 ", \"q3_us\": " q3 ", \"p95_us\": " p95 ", \"steps\": " steps          \
  ", \"dropped_per_step\": 0.25, \"busiest_link\": {\"name\": \"card of h:0\", \"bytes_per_step\": 2000000.0, "        \
  "\"busy_share\": 0.75}}"
  char expected[3000];
  struct place_options o = flags("3");
  o.common.json = true;
  for (int sync = 0; sync < 2; sync++) {
    o.sync = sync;
    assert_int_equal(place(&o), 0);
    snprintf(
        expected, sizeof expected,
        "{\"format\": \"tfc-replicas\", \"version\": 1, \"graph\": {\"file\": \"%s\"}, \"machine\": {\"file\": "
        "\"%s\"}, "
        "\"replica\": {\"device\": \"acc:0\", \"step_us\": 1000.0, \"pulled_bytes\": 1000000.0, \"pushed_bytes\": "
        "1000000.0, \"parameters\": 1, \"largest_bytes\": 1000000.0}, \"step_times\": {\"sigma\": 0.05, "
        "\"late_share\": "
        "0.01, \"late_factor\": 1.5, \"samples\": 0, \"source\": \"assumed, because no database says: give one with "
        "--step-times\"}, \"label\": \"modelled\", \"rows\": [{\"replicas\": 3, \"sync_all\": " RESULT(
            "2", "5", "1003.0", "0.5", "100.0", "90.0", "110.0", "120.0",
            "70") ", \"sync_ps\": " RESULT("2", "5", "2003.0", "0.625", "200.0", "180.0", "220.0", "240.0",
                                           "71") ", \"backup\": {\"workers\": 1, \"gain\": 1.25, "
                                                 "\"with\": " RESULT("2", "5", "2003.0", "0.625", "160.0", "180.0",
                                                                     "220.0", "240.0", "71") "}%s}]}",
        graph_path, machine_path,
        sync ? "" : ", \"async_ps\": " RESULT("2", "5", "3003.0", "0.75", "300.0", "270.0", "330.0", "360.0", "72"));
    json_t *wanted = json_loads(expected, 0, NULL), *got = json_loads(caught_out.text, 0, NULL);
    assert_non_null(wanted);
    if (!json_equal(wanted, got)) fail_msg("%s\nis not %s", caught_out.text, expected);
    json_decref(wanted), json_decref(got);
  }
}

static void test_page(void **state) {
  (void)state;
  char line[160];
  struct place_options o = flags("2,3");
  o.report = NULL;
  assert_int_equal(place(&o), 0);
  assert_string_equal(page, "c.report of c.json on m.yaml, 2 rows, 111, described");
  snprintf(line, sizeof line, "\nWritten: %s/c.report/index.html\n", folder);
  SAYS(caught_out, line, 1);
  o.report = in("mine"), o.common.json = true, o.reduce = 2;
  assert_int_equal(place(&o), 0);
  assert_string_equal(page, "mine of c.json on m.yaml, 2 rows, 011, described");
  SAYS(caught_out, "Written", 0);
  o.report = in("full"), o.common.json = false;
  assert_int_equal(place(&o), 6);
  SAYS(caught_out, "Written", 0);
  o.machine = "/nowhere.yaml";
  assert_int_equal(place(&o), 3);
}

// --- Step times ------------------------------------------------------------------------------------------------------

// Each is divided by the median of its placement; placements with less than five steps say nothing.
static void test_ratios(void **state) {
  (void)state;
  static const struct {
    int placement;
    double us;
  } steps[] = {{1, 8}, {1, 9}, {1, 10}, {1, 12}, {1, 20}, {2, 1}, {2, 2}, {2, 3},
               {2, 4}, {3, 1}, {3, 2},  {3, 3},  {3, 4},  {3, 5}, {3, 6}};
  enum { ROWS = sizeof steps / sizeof *steps };
  struct tfc_cell cells[ROWS * 3];
  struct tfc_table table = {.column_count = 3, .row_count = ROWS, .cells = cells};
  struct replicas r = {0};
  for (int i = 0; i < ROWS; i++) {
    cells[3 * i] = (struct tfc_cell){.kind = TFC_CELL_INTEGER, .integer = 9};
    cells[3 * i + 1] = (struct tfc_cell){.kind = TFC_CELL_INTEGER, .integer = steps[i].placement};
    cells[3 * i + 2] = (struct tfc_cell){.kind = TFC_CELL_REAL, .real = steps[i].us};
  }
  assert_ok(fit(&r, &table));
  static const double expected[] = {0.8, 0.9, 1, 1.2, 2, 0.25, 0.5, 0.75, 1, 1.25, 1.5};
  assert_int_equal(ratio_count, 11);
  for (int i = 0; i < 11; i++) assert_true(ratios[i] == expected[i]);
  assert_int_equal(r.times.samples, 11);
  table.row_count = 4;
  assert_fails(fit(&r, &table), TFC_INVALID_ARGUMENT, "too few");
  assert_int_equal(ratio_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),   cmocka_unit_test(test_flags),
                                     cmocka_unit_test(test_modes),    cmocka_unit_test(test_nothing_to_exchange),
                                     cmocka_unit_test(test_document), cmocka_unit_test(test_page),
                                     cmocka_unit_test(test_ratios)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
