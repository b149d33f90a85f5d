// The devices under the answer: how busy they were, what they waited for, their memory; and how virtual devices slow
// each other down.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "reports/html.h"
#include "reports/memory.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

// Adds why each device was idle in the step.
static void add_idle(struct tfc_page *p) {
  static const struct {
    const char *column, *title;
  } causes[] = {{"idle_launch_percent", "launch"},
                {"idle_transfer_percent", "transfer"},
                {"idle_dependency_percent", "another device"},
                {"idle_end_percent", "end of step"}};
  const struct tfc_table *t = &p->devices;
  char a[32];
  bool known = false;
  for (uint32_t r = 0; r < t->row_count; r++) {
    for (size_t c = 0; c < sizeof causes / sizeof *causes; c++)
      known |= tfc_table_number(t, r, causes[c].column) >= 0.05; // which are shown as 0.1 %
  }
  if (!known) return;
  tfc_page_add(
      p,
      "<p>Why they stood still: the host had not launched yet, a tensor was on its way, another device was not done,"
      " or the device was done before the step. Shares of the step, by the clock (v_busy): time in which any tensor"
      " was arriving is \"transfer\".%s</p>\n<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>device</th>",
      p->args.step >= 0 ? " \"Longest gaps\" are divided by the last input that an operation waited for." : "");
  for (size_t c = 0; c < sizeof causes / sizeof *causes; c++)
    tfc_page_add(p, "<th class=\"n\">%s</th>", causes[c].title);
  tfc_page_add(p, "<th class=\"n\">longest launch</th></tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double gap = tfc_table_number(t, r, "launch_gap_us");
    tfc_page_add(p, "<tr><td>");
    tfc_page_escaped(p, tfc_table_text(t, r, "name"));
    tfc_page_add(p, "</td>");
    for (size_t c = 0; c < sizeof causes / sizeof *causes; c++) {
      double share = tfc_table_number(t, r, causes[c].column);
      tfc_page_add(p, "<td class=\"n\" data-l=\"%s\">", causes[c].title);
      if (share == share && tfc_report_idle_known(t, r)) tfc_page_add(p, "%.1f %%", share);
      tfc_page_add(p, "</td>");
    }
    tfc_page_add(p, "<td class=\"n\" data-l=\"longest launch\">");
    if (gap == gap) tfc_page_add(p, "%s", tfc_html_us(a, gap));
    tfc_page_add(p, "</td></tr>\n");
  }
  tfc_page_add(p, "</tbody></table></div>\n");
}

void tfc_page_devices(struct tfc_page *p) {
  const struct tfc_table *t = &p->devices;
  char a[32], b[32], c[32];
  bool parts = false; // of some peak only a part is known
  tfc_page_add(
      p,
      "<h2>Devices</h2>\n<p>%s%s. %s.</p>\n<div "
      "class=\"scroll\"><table class=\"stack\"><thead><tr><th>device</th>"
      "<th>hardware</th><th class=\"n\">cores</th><th class=\"n\">busy</th><th></th><th class=\"n\">operations</th>"
      "<th class=\"n\">received</th><th class=\"n\">peak memory</th><th class=\"n\">limit</th><th></th></tr></thead>"
      "<tbody>\n",
      tfc_page_profiled(p) ? "In this run" : "Under the answer", tfc_report_simulated(p->store, &p->args),
      p->args.step >= 0 ? "Shares are those of the step" : "Shares are medians over the steps");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double busy = tfc_table_number(t, r, "busy_percent"), cores = tfc_table_number(t, r, "cores");
    const double peak = tfc_table_number(t, r, "peak_bytes");
    const bool part = tfc_report_peak_is_part(t, r);
    parts |= part;
    tfc_str label = tfc_table_text(t, r, "label");
    tfc_page_add(p, "<tr><td>");
    tfc_page_escaped(p, tfc_table_text(t, r, "name"));
    tfc_page_add(p, "</td><td class=\"note\">");
    const tfc_str model = tfc_table_text(t, r, "model"); // a described device has only a kind
    tfc_page_escaped(p, model.size ? model : tfc_table_text(t, r, "kind"));
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"cores\">");
    if (cores > 0) tfc_page_add(p, "%.0f", cores);
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"busy\">");
    if (busy == busy) tfc_page_add(p, "%.0f %%", busy);
    tfc_page_add(p, "</td><td class=\"wide\">");
    if (busy == busy)
      tfc_page_add(p, "<span class=\"bar\" style=\"width:%.1f%%;background:var(--d%u)\"></span>",
                   busy > 100 ? 100 : busy, tfc_palette_device(tfc_table_text(t, r, "name")));
    tfc_page_add(p,
                 "</td><td class=\"n\" data-l=\"operations\">%.0f</td><td class=\"n\" data-l=\"received\">%s</td>"
                 "<td class=\"n\" data-l=\"peak memory\">%s%s</td><td class=\"n\" data-l=\"limit\">%s</td><td>"
                 "<span class=\"tag%s\">",
                 tfc_table_number(t, r, "operations"), tfc_html_bytes(a, tfc_table_number(t, r, "received_bytes")),
                 part ? "&gt;" : "", tfc_html_bytes(b, peak),
                 tfc_table_number(t, r, "memory_limit_bytes") == tfc_table_number(t, r, "memory_limit_bytes")
                     ? tfc_html_bytes(c, tfc_table_number(t, r, "memory_limit_bytes"))
                     : "none",
                 tfc_str_is(label, "measured") ? "" : " odd");
    tfc_page_escaped(p, label);
    tfc_page_add(p, "</span></td></tr>\n");
  }
  tfc_page_add(p, "</tbody></table></div>\n");
  if (parts) {
    tfc_page_add(p, "<p class=\"note\">");
    tfc_page_escaped(p, tfc_str_from(tfc_report_peak_note));
    tfc_page_add(p, ".</p>\n");
  }
  tfc_page_query(p, "The query behind this table", tfc_report_sql_devices);
  tfc_str how = tfc_report_virtual_transfers(p->store, &p->args);
  if (how.size) tfc_page_add(p, "<p>A tensor from one virtual device to another: %.*s.</p>\n", TFC_STR_ARG(how));
  char math[16];
  tfc_report_gpu_math(p->store, &p->args, math);
  if (*math) tfc_page_add(p, "<p>Products and convolutions of float32 on GPUs: %s.</p>\n", math);
  add_idle(p);
}

// Virtual devices share one GPU's memory bandwidth and cache. This query compares the time of each type of operation
// alone with its time while other devices work. It uses the answer or, if the answer uses one device, the placement
// that uses the most devices.
static const char sql_beside[] =
    "WITH own AS (SELECT o.placement_id, o.node_id, o.op, o.device_id, o.median_us FROM v_op_total o JOIN v_device d"
    " USING (run_id, device_id) WHERE o.run_id = :run AND d.label = 'virtual'),"
    " shared AS (SELECT placement_id, COUNT(DISTINCT device_id) AS devices FROM own GROUP BY placement_id HAVING"
    " devices > 1),"
    " chosen AS (SELECT placement_id, placement, devices FROM shared JOIN v_result USING (placement_id) WHERE run_id ="
    " :run ORDER BY placement_id = :placement DESC, devices DESC, step_median_us LIMIT 1),"
    " alone AS (SELECT node_id, MIN(median_us) AS us FROM own JOIN v_result USING (placement_id) WHERE run_id = :run"
    " AND placement LIKE 'single:%' GROUP BY node_id)"
    " SELECT own.op, COUNT(*) AS operations, SUM(alone.us) AS alone_us, SUM(own.median_us) AS beside_us,"
    " SUM(own.median_us) / SUM(alone.us) AS factor, chosen.placement, chosen.devices FROM own JOIN chosen USING"
    " (placement_id) JOIN alone USING (node_id) GROUP BY own.op ORDER BY beside_us DESC, own.op LIMIT 20";
tfc_status tfc_page_beside(struct tfc_page *p) {
  struct tfc_table t = {0};
  char a[32], b[32];
  TFC_RETURN_IF_ERROR(tfc_table_query(p->store, sql_beside, &p->args, &t));
  if (t.row_count) {
    tfc_page_add(
        p,
        "<section id=\"beside\"><h2>Alone and beside others</h2>\n<p class=\"caption\">Virtual devices share one GPU. "
        "Medians over all steps of the same operations, summed by type: on one of them while the others stand still, "
        "and under <b>");
    tfc_page_escaped(p, tfc_table_text(&t, 0, "placement"));
    tfc_page_add(
        p,
        "</b> with %.0f of them at work.</p>\n<div class=\"scroll\"><table "
        "class=\"stack\"><thead><tr><th>operation</th><th "
        "class=\"n\">number</th>"
        "<th class=\"n\">alone</th><th class=\"n\">beside others</th><th class=\"n\">factor</th></tr></thead><tbody>\n",
        tfc_table_number(&t, 0, "devices"));
    for (uint32_t r = 0; r < t.row_count; r++) {
      tfc_page_add(p, "<tr><td>");
      double factor = tfc_table_number(&t, r, "factor");
      tfc_page_escaped(p, tfc_table_text(&t, r, "op"));
      tfc_page_add(p,
                   "</td><td class=\"n\" data-l=\"number\">%.0f</td><td class=\"n\" data-l=\"alone\">%s</td>"
                   "<td class=\"n\" data-l=\"beside others\">%s</td><td class=\"n\" data-l=\"factor\">",
                   tfc_table_number(&t, r, "operations"), tfc_html_us(a, tfc_table_number(&t, r, "alone_us")),
                   tfc_html_us(b, tfc_table_number(&t, r, "beside_us")));
      if (factor == factor) tfc_page_add(p, "%.2f", factor);
      tfc_page_add(p, "</td></tr>\n");
    }
    tfc_page_add(p, "</tbody></table></div>\n<details><summary>The query behind this table</summary><pre>");
    tfc_page_escaped(p, tfc_str_from(sql_beside));
    tfc_page_add(p, "</pre></details></section>\n");
  }
  tfc_table_deinit(&t);
  return NULL;
}

tfc_status tfc_page_memory(struct tfc_page *p) {
  enum { SHOWN = 6 }; // tensors that are shown for each device
  struct tfc_report_lists lists = {0};
  char a[32];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_memory(p->store, p->args.run, &lists));
  const struct tfc_table *t = &lists.tables[1], *devices = &lists.tables[0];
  if (!t->row_count || p->args.step < 0) goto out; // no moment is known
  tfc_page_add(p, "<section id=\"held\"><h3>At the fullest moment</h3>\n<div class=\"tiles\">\n");
  for (uint32_t r = 0, shown = 0; r < t->row_count; r++) {
    tfc_str device = tfc_table_text(t, r, "device");
    const bool first = r == 0 || !tfc_str_equal(device, tfc_table_text(t, r - 1, "device"));
    if (first) {
      uint32_t at = 0;
      while (at + 1 < devices->row_count && !tfc_str_equal(tfc_table_text(devices, at, "device"), device)) at++;
      tfc_page_add(p, "%s<div><h3><i class=\"key d%u\"></i>", r ? "</table></div>\n" : "", tfc_palette_device(device));
      tfc_page_escaped(p, device);
      tfc_page_add(p, ", %s after the step began</h3><table>",
                   tfc_html_us(a, tfc_table_number(devices, at, "fullest_us")));
      shown = 0;
    }
    if (shown++ >= SHOWN) continue;
    tfc_page_add(p, "<tr><td class=\"n\">%s</td><td>", tfc_html_bytes(a, tfc_table_number(t, r, "bytes")));
    tfc_page_escaped(p, tfc_table_text(t, r, "kind"));
    tfc_page_add(p, "</td><td class=\"name\">");
    tfc_page_escaped(p, tfc_table_text(t, r, "node"));
    tfc_page_add(p, "</td></tr>\n");
  }
  tfc_page_add(p, "</table></div></div>\n");
  if (p->kept)
    tfc_page_add(p, "<p class=\"note\">All of them: tfc-report memory %lld --json.</p>", (long long)p->args.run);
  tfc_page_add(p, "</section>\n");
out:
  tfc_report_lists_deinit(&lists);
  return s;
}
