// Makes the list of `tfc-report memory`: the peak of each device's memory under the answer, as it was planned or
// counted, and the variables and tensors that the device holds at the moment of the traced step when it holds most.
// These follow from the recorded edges, transfers and operations.
#include <stdio.h>

#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

// Finds what is held in memory and how long, in nanoseconds. A tensor is held on its producer's device from the
// producer's start until its readers on that device and its transfers have ended; if it is handed over, until the
// readers on the other device have ended. A copy is held on the receiving device from the transfer's start until its
// readers there have ended. Outputs of a variable are not counted, because they are in the variable's own memory.
//
// That is also what the simulator counts. In a step that ran, what shares memory counts once. An AddN that adds up only
// matrix products without other readers never has them in memory (runtime/exec/rewrites/sums.c): its sum is held from
// the start of the first of them. An operation whose result is as large as its input, of which it is the only reader,
// is taken to work in place, so that its input is held until it starts; products and convolutions cannot.
//
// A moment is nanoseconds * 2^20, and within them: what ends then, transfers that begin, and operations in their order,
// each with its end behind its start if it takes no time. So the input and the result of an operation that takes no
// time are held together.
#define HELD                                                                                                           \
  "WITH m AS MATERIALIZED (SELECT COALESCE(MAX(label = 'modelled'), 0) AS simulated FROM v_result WHERE "              \
  "run_id = :run AND placement_id = :placement), o AS MATERIALIZED (SELECT node_id, node, device, s * "                \
  "1048576 AS began, s * 1048576 + 2 * p + 1 AS s, e * 1048576 + CASE WHEN s = e THEN 2 * p + 2 ELSE 0 "               \
  "END AS e FROM (SELECT node_id, node, device, MIN(position) AS p, CAST(ROUND(MIN(start_us) * 1000) AS "              \
  "INTEGER) AS s, CAST(ROUND(MAX(start_us + duration_us) * 1000) AS INTEGER) AS e FROM v_op WHERE "                    \
  "run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id, device)), x AS "                     \
  "MATERIALIZED (SELECT node_id, node, output, target, bytes, how, CAST(ROUND(MIN(start_us) * 1000) AS "               \
  "INTEGER) * 1048576 + 1 AS s, CAST(ROUND(MAX(start_us + duration_us) * 1000) AS INTEGER) * 1048576 AS "              \
  "e FROM v_transfer WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY "                     \
  "node_id, output, target), g AS MATERIALIZED (SELECT producer_id, output, consumer_id, MAX(bytes) AS "               \
  "bytes FROM v_edge WHERE run_id = :run AND output >= 0 AND bytes > 0 GROUP BY 1, 2, 3), alone AS "                   \
  "MATERIALIZED (SELECT producer_id, output FROM g GROUP BY 1, 2 HAVING COUNT(*) = 1), terms AS "                      \
  "MATERIALIZED (SELECT producer_id AS id, consumer_id AS sum FROM g WHERE consumer_id IN (SELECT "                    \
  "g.consumer_id FROM v_node c CROSS JOIN g ON g.consumer_id = c.node_id CROSS JOIN v_node p ON "                      \
  "p.run_id = :run AND p.node_id = g.producer_id WHERE c.run_id = :run AND c.op = 'AddN' AND NOT "                     \
  "(SELECT simulated FROM m) GROUP BY 1 HAVING MIN(p.op = 'MatMul' AND (g.producer_id, g.output) IN "                  \
  "(SELECT producer_id, output FROM alone)))), begun AS MATERIALIZED (SELECT t.sum AS id, o.device, "                  \
  "MIN(o.s) AS s FROM terms t JOIN o ON o.node_id = t.id GROUP BY 1, 2), taken AS MATERIALIZED (SELECT "               \
  "producer_id, output FROM g WHERE (producer_id, output) IN (SELECT producer_id, output FROM alone) "                 \
  "AND (consumer_id, bytes) IN (SELECT producer_id, bytes FROM g) AND consumer_id IN (SELECT node_id "                 \
  "FROM v_node WHERE run_id = :run AND op <> '' AND op NOT LIKE '%MatMul%' AND op NOT LIKE '%Conv%') "                 \
  "AND NOT (SELECT simulated FROM m)), held AS MATERIALIZED (SELECT 'variable' AS kind, p.device, "                    \
  "n.name AS node, NULL AS output, n.memory_bytes AS bytes, 0 AS s, COALESCE((SELECT MAX(e) FROM o), 0) "              \
  "AS e FROM v_node n JOIN v_placement p ON p.run_id = n.run_id AND p.placement_id = :placement AND "                  \
  "p.node_id = n.node_id WHERE n.run_id = :run AND n.memory_bytes > 0 UNION ALL SELECT 'tensor', "                     \
  "p.device, p.node, g.output, MAX(g.bytes), MIN(p.s, COALESCE(b.s, p.s)), MAX(MAX(p.e, CASE WHEN "                    \
  "c.device = p.device THEN CASE WHEN (g.producer_id, g.output) IN (SELECT producer_id, output FROM "                  \
  "taken) THEN c.began ELSE c.e END WHEN x.how = 'handed over' AND NOT (SELECT simulated FROM m) THEN "                \
  "c.e ELSE 0 END, COALESCE(x.e, 0))) FROM g JOIN o p ON p.node_id = g.producer_id JOIN o c ON "                       \
  "c.node_id = g.consumer_id LEFT JOIN x ON x.node_id = g.producer_id AND x.output = g.output AND "                    \
  "x.target = c.device AND c.device <> p.device LEFT JOIN begun b ON b.id = p.node_id AND b.device = "                 \
  "p.device WHERE NOT EXISTS (SELECT 1 FROM v_node v WHERE v.run_id = :run AND v.node_id = "                           \
  "g.producer_id AND v.memory_bytes > 0) AND g.producer_id NOT IN (SELECT id FROM terms) GROUP BY "                    \
  "g.producer_id, g.output, p.device UNION ALL SELECT 'received', x.target, x.node, x.output, x.bytes, "               \
  "x.s, MAX(x.e, COALESCE((SELECT MAX(c.e) FROM g JOIN o c ON c.node_id = g.consumer_id AND c.device = "               \
  "x.target WHERE g.producer_id = x.node_id AND g.output = x.output), 0)) FROM x WHERE x.how IS NULL OR "              \
  "x.how <> 'handed over' OR (SELECT simulated FROM m)), events AS (SELECT device, s AS t, bytes AS "                  \
  "more FROM held UNION ALL SELECT device, e, -bytes FROM held), levels AS (SELECT device, t, SUM(more) "              \
  "OVER (PARTITION BY device ORDER BY t, more ROWS UNBOUNDED PRECEDING) AS bytes FROM events), fullest "               \
  "AS MATERIALIZED (SELECT device, t, bytes FROM (SELECT device, t, bytes, ROW_NUMBER() OVER (PARTITION "              \
  "BY device ORDER BY bytes DESC, t) AS k FROM levels) WHERE k = 1)"
static const char sql_devices[] = HELD
    " SELECT d.device_id, d.name AS device, m.peak_bytes, m.limit_bytes, 100.0 * m.peak_bytes / m.limit_bytes AS"
    " percent, " TFC_SQL_PEAK_COMPLETE
    " AS complete, (SELECT COALESCE(SUM(h.bytes), 0) FROM held h WHERE h.kind = 'variable' AND h.device = d.name) AS"
    " variable_bytes, f.bytes AS named_bytes, f.t / 1048576 * 1e-3 AS fullest_us FROM v_device d LEFT JOIN v_memory m "
    "ON"
    " m.run_id = d.run_id AND m.placement_id = :placement AND m.device_id = d.device_id LEFT JOIN fullest f ON"
    " f.device = d.name WHERE d.run_id = :run AND d.name <> 'whole' ORDER BY d.device_id";
static const char sql_tensors[] = HELD
    " SELECT h.device, h.kind, h.node, h.output, h.bytes, h.s / 1048576 * 1e-3 AS from_us, h.e / 1048576 * 1e-3 AS "
    "until_us FROM held h"
    " JOIN fullest f ON f.device = h.device AND h.s <= f.t AND (h.e > f.t OR h.kind = 'variable') ORDER BY h.device,"
    " h.bytes DESC, h.node, h.output";

static const char sql_levels[] =
    HELD " SELECT DISTINCT d.device_id, l.t / 1048576 * 1e-3 AS at_us, l.bytes FROM (SELECT device, t, SUM(more) OVER "
         "(PARTITION BY"
         " device ORDER BY t) AS bytes FROM events) l JOIN v_device d ON d.run_id = :run AND d.name = l.device ORDER BY"
         " d.device_id, l.t";

tfc_status tfc_report_memory_levels(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_table *out) {
  return tfc_table_query(store, sql_levels, args, out);
}

static const char *bytes_text(char *buffer, double bytes, const char *none) {
  return bytes == bytes ? tfc_show_bytes(buffer, bytes) : none;
}

tfc_status tfc_report_memory(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out) {
  enum { SHOWN = 8 }; // tensors that are printed for each device
  struct tfc_report_lists lists = {.names = {"devices", "tensors"}};
  struct tfc_query_args args;
  char a[32], b[32], c[32], d[32], share[16], name[96];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  lists.count = 2;
  TFC_TRY(s, tfc_table_query(store, sql_devices, &args, &lists.tables[0]));
  TFC_TRY(s, tfc_table_query(store, sql_tensors, &args, &lists.tables[1]));
  struct tfc_text *text = &lists.text;
  const struct tfc_table *devices = &lists.tables[0], *tensors = &lists.tables[1];
  tfc_text_printf(text, "Run %lld: memory of devices under the answer%s\n\n", (long long)args.run,
                  tfc_report_simulated(store, &args));
  tfc_text_printf(text, "  %-12s %11s %11s %8s %11s %11s\n", "device", "peak", "limit", "share", "variables", "named");
  bool unknown = false; // some peak is not known, only a part of it
  for (uint32_t r = 0; r < devices->row_count; r++) {
    double percent = tfc_table_number(devices, r, "percent");
    snprintf(share, sizeof share, percent == percent ? "%.1f %%" : "-", percent);
    const double peak_bytes = tfc_table_number(devices, r, "peak_bytes");
    const bool less = (tfc_table_number(devices, r, "complete") == 0 && peak_bytes > 0) ||
                      peak_bytes < tfc_table_number(devices, r, "named_bytes");
    char peak[40];
    unknown |= less;
    snprintf(peak, sizeof peak, "%s%s", less ? ">" : "", bytes_text(a, peak_bytes, "-"));
    tfc_text_printf(text, "  %-12s %11s %11s %8s %11s %11s\n",
                    tfc_report_fit(name, tfc_table_text(devices, r, "device"), 12), peak,
                    bytes_text(b, tfc_table_number(devices, r, "limit_bytes"), "none"), share,
                    bytes_text(c, tfc_table_number(devices, r, "variable_bytes"), "-"),
                    bytes_text(d, tfc_table_number(devices, r, "named_bytes"), "-"));
  }
  tfc_str last = {0};
  uint32_t shown = 0, more = 0;
  for (uint32_t r = 0; r <= tensors->row_count; r++) {
    tfc_str device = tfc_table_text(tensors, r, "device");
    if (r == tensors->row_count || !tfc_str_equal(device, last)) {
      if (more) tfc_text_printf(text, "  %11s  and %u smaller ones: --json has all\n", "", more);
      if (r == tensors->row_count) break;
      last = device, shown = more = 0;
      uint32_t at = 0;
      while (at + 1 < devices->row_count && !tfc_str_equal(tfc_table_text(devices, at, "device"), device)) at++;
      tfc_text_printf(text, "\n%s at its fullest moment, %s after the step began:\n", tfc_report_fit(name, device, 20),
                      tfc_show_us(a, tfc_table_number(devices, at, "fullest_us")));
    }
    if (shown++ >= SHOWN) {
      more++;
      continue;
    }
    tfc_text_printf(text, "  %11s  %-9.*s %s\n", tfc_show_bytes(a, tfc_table_number(tensors, r, "bytes")),
                    TFC_STR_ARG(tfc_table_text(tensors, r, "kind")),
                    tfc_report_fit(name, tfc_table_text(tensors, r, "node"), 54));
  }
  tfc_text_printf(text, *tfc_report_simulated(store, &args)
                            ? "\nNamed: variables and tensors at that moment, as the simulation counts them.\n"
                            : "\nNamed: variables and tensors between operations at that moment. A peak has\n"
                              "results, packed weights and scratch memory too. Sums of products, and results\n"
                              "that take over an input's memory, count once. What a loop makes counts from\n"
                              "its first round to its last.\n");
  if (unknown) tfc_text_printf(text, "%s\n", tfc_report_peak_note);
  if (text->failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  return s;
}
