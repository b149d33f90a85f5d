// Makes the list of `tfc-report memory`: the peak of each device's memory under the answer, as it was planned or
// counted, and the variables and tensors that the device holds at the moment of the traced step when it holds most.
// These follow from the recorded edges, transfers and operations (TFC_SQL_HELD).
#include <stdio.h>

#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

static const char sql_devices[] = TFC_SQL_HELD
    " SELECT d.device_id, d.name AS device, m.peak_bytes, m.limit_bytes, 100.0 * m.peak_bytes / m.limit_bytes AS"
    " percent, " TFC_SQL_PEAK_COMPLETE
    " AS complete, (SELECT COALESCE(SUM(h.bytes), 0) FROM held h WHERE h.kind = 'variable' AND h.device = d.name) AS"
    " variable_bytes, f.bytes AS named_bytes, f.t / 1048576 * 1e-3 AS fullest_us FROM v_device d LEFT JOIN v_memory m "
    "ON"
    " m.run_id = d.run_id AND m.placement_id = :placement AND m.device_id = d.device_id LEFT JOIN fullest f ON"
    " f.device = d.name WHERE d.run_id = :run AND d.name <> 'whole' ORDER BY d.device_id";
static const char sql_tensors[] = TFC_SQL_HELD
    " SELECT h.device, h.kind, h.node, h.output, h.bytes, h.s / 1048576 * 1e-3 AS from_us, h.e / 1048576 * 1e-3 AS "
    "until_us FROM held h"
    " JOIN fullest f ON f.device = h.device AND h.s <= f.t AND (h.e > f.t OR h.kind = 'variable') ORDER BY h.device,"
    " h.bytes DESC, h.node, h.output";

static const char sql_levels[] = TFC_SQL_HELD
    " SELECT DISTINCT d.device_id, l.t / 1048576 * 1e-3 AS at_us, l.bytes FROM (SELECT device, t, SUM(more) OVER "
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
    const bool less = tfc_report_peak_is_part(devices, r) || (tfc_table_number(devices, r, "complete") != 1 &&
                                                              peak_bytes < tfc_table_number(devices, r, "named_bytes"));
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
                    tfc_report_fit_ends(name, tfc_table_text(tensors, r, "node"), 54));
  }
  tfc_text_printf(text, *tfc_report_simulated(store, &args)
                            ? "\nNamed: variables and tensors at that moment, as the simulation counts them.\n"
                            : "\nNamed: variables and tensors between operations at that moment. A peak has\n"
                              "results, packed weights and scratch memory too. Sums of products, and results\n"
                              "that take over an input's memory, count once. What a loop makes counts from\n"
                              "its first round to its last.\n");
  if (unknown) tfc_text_printf(text, "%s\n", tfc_report_peak_note);
  if (text->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  return s;
}
