// Tests what reports say of a run that was only simulated: its page, its texts, and that its database may be in memory
// alone.
#include "tests/common/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/place.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "tests/common/folder.h"
#include "tests/reports/html.h"

static char folder[64];

static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "modelled");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// Places a cost graph on a described machine, and returns the page (malloc'd).
static char *page_of(const char *costs, const char *machine, struct tfc_place_options options,
                     struct tfc_place_outcome *outcome) {
  char graph_path[128], machine_path[128];
  struct tfc_text html = {0};
  snprintf(graph_path, sizeof graph_path, "%s/other.json", folder);
  snprintf(machine_path, sizeof machine_path, "%s/other.yaml", folder);
  assert_ok(tfc_file_write(graph_path, tfc_str_from(costs)));
  assert_ok(tfc_file_write(machine_path, tfc_str_from(machine)));
  options.graph = graph_path, options.machine = machine_path, options.record.wanted = true;
  assert_ok(tfc_place_modelled(&options, outcome));
  assert_ok(tfc_report_html(outcome->record, -1, &html));
  return html.data;
}

// a, 103 us, is sent for 10 us to b, which takes 205 us there, 55 on the other kind; that is sent for 12 us to c. Each
// operation has a dispatch: 3, 5, 3.
static const char two_kinds[] =
    "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\", \"old\"], \"nodes\": ["
    "{\"name\": \"a\", \"time_us\": {\"acc\": 100}, \"pin\": \"acc:0\"},"
    "{\"name\": \"b\", \"time_us\": {\"acc\": 50, \"old\": 200}, \"pin\": \"old:0\"},"
    "{\"name\": \"c\", \"time_us\": {\"acc\": 100}, \"pin\": \"acc:0\"}], \"edges\": ["
    "{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1}, {\"from\": \"b\", \"to\": \"c\", \"bytes\": 1}]}";
static const char two_devices[] =
    "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, dispatch: 3us}\n"
    "  - {name: \"old:0\", kind: old, dispatch: 5us}\nlinks:\n  - {from: \"acc:0\", to: \"old:0\", latency: 10us}\n"
    "  - {from: \"old:0\", to: \"acc:0\", latency: 12us}\n";

static void modelled_help(void **state) {
  (void)state;
  struct tfc_place_outcome outcome = {0};
  struct tfc_text text = {0};
  char *page = page_of(
      two_kinds, two_devices,
      (struct tfc_place_options){.search = {.settings.algorithms = "heft", .evaluations = 10, .threads = 1}}, &outcome);
  html_says(
      page, "<h3>What would help most (simulated)</h3>", "</div>",
      "What the critical path takes besides operations on their fastest kind of device:\n"
      "150.0 us of 205.0 us: b12.0 us of 12.0 us: b: transfer, old:0 to acc:011.0 us of 11.0 us: the dispatch of 3 "
      "operations");
  assert_ok(tfc_report_explain(outcome.record, -1, &text));
  assert_non_null(strstr(text.data, "\nWhat would help most:\n"
                                    "  what this path takes besides operations on their fastest kind of device\n"
                                    "    150.0 us of   205.0 us  b\n"
                                    "     12.0 us of    12.0 us  b: transfer, old:0 to acc:0\n"
                                    "     11.0 us of    11.0 us  the dispatch of 3 operations\n"));
  tfc_text_deinit(&text);
  tfc_place_outcome_deinit(&outcome);
  free(page);
}

// Of an answer that does not fit in memory, the list of runs and the page say so: 2 kB are too much for 1.5 kB.
static void too_large(void **state) {
  (void)state;
  static const char costs[] =
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\", \"old\"], \"nodes\": ["
      "{\"name\": \"a\", \"time_us\": {\"acc\": 100, \"old\": 200}, \"memory\": 2000}], \"edges\": []}";
  static const char machine[] =
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, memory: 1500B}\n"
      "  - {name: \"old:0\", kind: old, memory: 1MB}\nlinks:\n  - {from: \"*\", to: \"*\", latency: 10us}\n";
  struct tfc_place_outcome outcome = {0};
  struct tfc_text text = {0};
  char *page = page_of(costs, machine, (struct tfc_place_options){.evaluate = "single:acc:0"}, &outcome);
  assert_int_equal(outcome.exit_code, 5);
  html_says(page, "<p class=\"verdict\">", "</p>",
            "The answer does not fit in memory. In the simulation a step of it takes 100.0 us. Nothing was run.");
  html_says(
      page, "<div class=\"cards\">", "</div>\n</div>",
      "100.0 usa step, simulated; the answer does not fit in memory 2.00×against the best single device (200.0 us); "
      "the answer does not fit in memory");
  assert_ok(tfc_report_list(outcome.record, &text));
  const char *times = "\n       does not fit in memory, step 100.0 us (simulated),\n"
                      "       single 200.0 us (simulated), by given\n";
  if (!strstr(text.data, times)) fail_msg("no '%s' in: %s", times, text.data);
  tfc_text_deinit(&text);
  tfc_place_outcome_deinit(&outcome);
  free(page);
}

// What had no time is not called illegal.
static void not_tried(void **state) {
  (void)state;
  struct tfc_place_outcome outcome = {0};
  struct tfc_table t = {0};
  const struct tfc_query_args args = {.run = 1};
  char *page = page_of(
      two_kinds, two_devices,
      (struct tfc_place_options){.search = {.settings.algorithms = "heft", .seconds = 1e-9, .threads = 1}}, &outcome);
  assert_ok(tfc_table_query(outcome.record,
                            "SELECT state, message FROM v_result WHERE run_id = :run AND placement = 'heft' AND"
                            " role = 'heuristic' AND step_median_us IS NULL",
                            &args, &t));
  assert_int_equal(t.row_count, 1);
  assert_true(tfc_str_is(tfc_table_text(&t, 0, "state"), "not tried"));
  assert_true(tfc_str_is(tfc_table_text(&t, 0, "message"), "no time left for HEFT"));
  assert_non_null(strstr(page, "<span class=\"tag odd\">not tried</span>"));
  tfc_table_deinit(&t);
  tfc_place_outcome_deinit(&outcome);
  free(page);
}

// The page of a database that exists only in memory: it says that its figures are simulated, and has neither queries
// nor commands, because its reader has no file for them.
static void modelled_page(void **state) {
  (void)state;
  static const char costs[] =
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
      "{\"name\": \"net/a\", \"time_us\": {\"acc\": 100}}, {\"name\": \"net/b\", \"time_us\": {\"acc\": 200}},"
      "{\"name\": \"net/c\", \"time_us\": {\"acc\": 300}, \"memory\": 1000}, {\"name\": \"d<e>\", \"time_us\": "
      "{\"acc\": "
      "50}}], \"edges\": [{\"from\": \"net/a\", \"to\": \"net/b\", \"bytes\": 5000}, {\"from\": \"net/a\", \"to\": "
      "\"net/c\", \"bytes\": 5000}, {\"from\": \"net/b\", \"to\": \"d<e>\", \"bytes\": 7000}, {\"from\": \"net/c\", "
      "\"to\": \"d<e>\", \"bytes\": 7000}]}";
  static const char machine[] =
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, memory: 1MB, "
      "count: 2}\nlinks:\n  - {from: \"*\", to: \"*\", latency: 10us}\n";
  char graph_path[128], machine_path[128], dir[96], file[128];
  struct tfc_file html = {0};
  struct tfc_place_outcome outcome = {0};
  snprintf(graph_path, sizeof graph_path, "%s/costs.json", folder);
  snprintf(machine_path, sizeof machine_path, "%s/m.yaml", folder);
  snprintf(dir, sizeof dir, "%s/modelled", folder);
  snprintf(file, sizeof file, "%s/index.html", dir);
  assert_ok(tfc_file_write(graph_path, tfc_str_from(costs)));
  assert_ok(tfc_file_write(machine_path, tfc_str_from(machine)));
  const struct tfc_place_options options = {.graph = graph_path,
                                            .machine = machine_path,
                                            .record.wanted = true,
                                            .search = {.settings.algorithms = "heft", .evaluations = 10, .threads = 1}};
  assert_ok(tfc_place_modelled(&options, &outcome));
  assert_ok(tfc_report_page(outcome.record, -1, dir));
  assert_ok(tfc_file_map(file, &html));
  char *text = strndup((const char *)html.data, html.size);
  html_check(text);
  html_says(text, "<p class=\"verdict\">", "</p>",
            "In the simulation a step takes 450.0 us under the placement that was found, 1.44 times faster than on the "
            "best single device. Nothing was run.");
  html_says(
      text, "<div class=\"cards\">", "</div>\n</div>",
      "450.0 usa step, simulated 1.44×against the best single device (650.0 us) 0 %above the lower bound of 450.0 us "
      "(critical path)");
  html_says(text, "<h2>Devices</h2>", "</table>",
            "Under the answer (simulated). Shares are those of the step.\n"
            "device|hardware|cores|busy||operations|received|peak memory|limit||\n"
            "acc:0|acc||100 %||3|7.0 kB|&gt;1.0 kB|1.0 MB|modelled|\n"
            "acc:1|acc||44 %||1|5.0 kB|0 B|1.0 MB|modelled|\n");
  html_says(text, "<p>Why they stood still", "</table>",
            ": the host had not launched yet, a tensor was on its way, another device was not done, or the device was "
            "done before the step. Shares of the step, by the clock (v_busy): time in which any tensor was arriving is "
            "\"transfer\". \"Longest gaps\" are divided by the last input that an operation waited for.\n"
            "device|launch|transfer|another device|end of step|longest launch|\n"
            "acc:0|0.0 %|0.0 %|0.0 %|0.0 %|0.00 us|\n"
            "acc:1|0.0 %|2.2 %|22.2 %|31.1 %|0.00 us|\n");
  assert_null(strstr(text, "tfc-report"));
  assert_null(strstr(text, "queries behind"));
  assert_non_null(strstr(text, "<div class=\"timeline\""));
  assert_non_null(strstr(text, "d&lt;e&gt;"));
  free(text);
  tfc_file_unmap(&html);
  tfc_place_outcome_deinit(&outcome);
  // If there is no memory for the record, the answer is there all the same.
  const sqlite3_int64 limit = sqlite3_hard_heap_limit64(1 << 14);
  tfc_status s = tfc_place_modelled(&options, &outcome);
  sqlite3_hard_heap_limit64(limit);
  assert_ok(s);
  assert_null(outcome.record);
  assert_non_null(outcome.placement);
  assert_int_equal(outcome.exit_code, 0);
  assert_int_equal(strncmp(tfc_status_message(outcome.unrecorded), "the report: ", 12), 0);
  tfc_place_outcome_deinit(&outcome);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(modelled_page), cmocka_unit_test(too_large),
                                     cmocka_unit_test(modelled_help), cmocka_unit_test(not_tried)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
