// What `tfc-report show` says of the traced step: gaps, bytes by pair of devices, the critical path, and what would
// make the step shorter.
#include <math.h>
#include <stdio.h>

#include "reports/lists.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

static const char sql_pairs[] =
    "SELECT source, target, COUNT(*) AS number, SUM(bytes) AS bytes, SUM(duration_us) AS time_us FROM v_transfer WHERE"
    " run_id = :run AND placement_id = :placement AND step = :step GROUP BY source_id, target_id ORDER BY bytes DESC,"
    " source, target";
// The best rates that operations of at least 20 us reached on any device of the run.
static const char sql_rates[] = "SELECT MAX(n.flops / c.fastest_us) AS flops_per_us, MAX(n.bytes_touched / "
                                "c.fastest_us) AS bytes_per_us FROM v_cost"
                                " c JOIN v_node n USING (run_id, node_id) WHERE c.run_id = :run AND c.fastest_us >= 20";
static const char sql_nodes[] = "SELECT n.name, n.flops, n.bytes_touched, (SELECT MIN(c.fastest_us) FROM v_cost c WHERE"
                                " c.run_id = n.run_id AND c.node_id = n.node_id) AS fastest_us FROM v_node n WHERE"
                                " n.run_id = :run";

static void print_gaps(const struct tfc_report_lists *gaps, struct tfc_text *out) {
  const struct tfc_table *t = &gaps->tables[0];
  if (!t->row_count) return;
  tfc_text_printf(out, "\nLongest gaps\n");
  for (uint32_t r = 0; r < t->row_count && r < 3; r++) {
    tfc_text_printf(out, "  ");
    tfc_report_gap(t, r, out);
    tfc_text_printf(out, "\n");
  }
}

// Exposed: the time of a transfer during which the target device was idle because of it. (It counts from the producer's
// end, so waiting for the link is part of it.)
static void print_pairs(const struct tfc_table *pairs, const struct tfc_table *gaps, struct tfc_text *out) {
  char a[32], b[32], c[32], name[96];
  if (!pairs->row_count) return;
  tfc_text_printf(out, "\n  %-25s %9s %11s %13s %13s\n", "moved in the step", "tensors", "bytes", "took", "exposed");
  for (uint32_t r = 0; r < pairs->row_count && r < 12; r++) {
    tfc_str source = tfc_table_text(pairs, r, "source"), target = tfc_table_text(pairs, r, "target");
    double exposed = 0;
    for (uint32_t g = 0; g < gaps->row_count; g++)
      if (tfc_str_equal(tfc_table_text(gaps, g, "device"), target) &&
          tfc_str_equal(tfc_table_text(gaps, g, "source"), source))
        exposed += tfc_table_number(gaps, g, "transfer_us");
    tfc_text_printf(out, "  %-11s", tfc_report_fit(name, source, 11));
    tfc_text_printf(out, " to %-10s %9.0f %11s %13s %13s\n", tfc_report_fit(name, target, 10),
                    tfc_table_number(pairs, r, "number"), tfc_show_bytes(a, tfc_table_number(pairs, r, "bytes")),
                    tfc_show_us(b, tfc_table_number(pairs, r, "time_us")), tfc_show_us(c, exposed));
  }
  if (pairs->row_count > 12) tfc_text_printf(out, "  and %u more pairs\n", pairs->row_count - 12);
}

static void print_path(const struct tfc_report_lists *path, const char *simulated, struct tfc_text *out) {
  const struct tfc_table *types = &path->tables[1], *edges = &path->tables[2];
  char a[32], name[96];
  tfc_text_printf(out, "\nCritical path of the traced steps%s\n", simulated);
  for (uint32_t r = 0; r < types->row_count && r < 5; r++) {
    tfc_str op = tfc_table_text(types, r, "op");
    tfc_text_printf(out, "  %5.1f %% %10s  %s\n", tfc_table_number(types, r, "percent"),
                    tfc_show_us(a, tfc_table_number(types, r, "time_us")),
                    op.size ? tfc_report_fit(name, op, 40) : "operations");
  }
  if (!edges->row_count) return;
  tfc_text_printf(out, "  %5.1f %% %10s", tfc_table_number(edges, 0, "percent"),
                  tfc_show_us(a, tfc_table_number(edges, 0, "time_us")));
  tfc_text_printf(out, "  of it %s", tfc_report_fit(name, tfc_table_text(edges, 0, "node"), 24));
  tfc_text_printf(out, " from %s", tfc_report_fit(name, tfc_table_text(edges, 0, "source"), 10));
  tfc_text_printf(out, " to %s\n", tfc_report_fit(name, tfc_table_text(edges, 0, "target"), 10));
}

// How much longer each operation of the path takes than it might: its time above max(flops / best rate, bytes / best
// rate), or, where its flops and bytes are not known, above the fastest time seen of it.
static void print_winnings(const struct tfc_table *path, const struct tfc_table *nodes, const struct tfc_table *rates,
                           struct tfc_text *out) {
  enum { SHOWN = 3 };
  double flops = tfc_table_number(rates, 0, "flops_per_us"), bytes = tfc_table_number(rates, 0, "bytes_per_us");
  double won[SHOWN + 1] = {0}, took[SHOWN + 1] = {0};
  tfc_str who[SHOWN + 1] = {{0}};
  char a[32], b[32], name[96];
  for (uint32_t r = 0; r < path->row_count; r++) {
    tfc_str node = tfc_table_text(path, r, "node");
    double time = tfc_table_number(path, r, "time_us"), least = 0;
    if (!tfc_str_is(tfc_table_text(path, r, "kind"), "operation")) continue;
    uint32_t n = 0;
    while (n < nodes->row_count && !tfc_str_equal(tfc_table_cell(nodes, n, 0)->text, node)) n++;
    if (n == nodes->row_count) continue; // neither flops nor bytes are known of it
    double work = tfc_table_cell(nodes, n, 1)->real, touched = tfc_table_cell(nodes, n, 2)->real;
    if (work == work && flops > 0) least = fmax(least, work / flops);
    if (touched == touched && bytes > 0) least = fmax(least, touched / bytes);
    if (!(least > 0)) least = tfc_table_cell(nodes, n, 3)->real;
    if (least != least) continue;
    int at = SHOWN;
    won[at] = time - least, took[at] = time, who[at] = node;
    for (; at > 0 && won[at] > won[at - 1]; at--) {
      double w = won[at], t = took[at];
      tfc_str x = who[at];
      won[at] = won[at - 1], took[at] = took[at - 1], who[at] = who[at - 1];
      won[at - 1] = w, took[at - 1] = t, who[at - 1] = x;
    }
  }
  if (!(won[0] > 0)) return;
  tfc_text_printf(out, "\nWhat would help most: operations of this path %s\n",
                  flops > 0 || bytes > 0 ? "at the run's best rates" : "as fast as they once were");
  for (int i = 0; i < SHOWN && won[i] > 0; i++)
    tfc_text_printf(out, "  %10s of %10s  %s\n", tfc_show_us(a, won[i]), tfc_show_us(b, took[i]),
                    tfc_report_fit(name, who[i], 50));
}

tfc_status tfc_report_summary(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_report_lists gaps = {0}, path = {0};
  struct tfc_table pairs = {0}, nodes = {0}, rates = {0};
  const long long run = (long long)args->run;
  tfc_status s = NULL;
  if (args->step >= 0) {
    TFC_TRY(s, tfc_report_gaps(store, args->run, &gaps));
    TFC_TRY(s, tfc_report_critical(store, args->run, &path));
    TFC_TRY(s, tfc_table_query(store, sql_pairs, args, &pairs));
    TFC_TRY(s, tfc_table_query(store, sql_nodes, args, &nodes));
    TFC_TRY(s, tfc_table_query(store, sql_rates, args, &rates));
    print_gaps(&gaps, out);
    print_pairs(&pairs, &gaps.tables[0], out);
    print_path(&path, tfc_report_simulated(store, args), out);
    print_winnings(&path.tables[0], &nodes, &rates, out);
    tfc_text_printf(out, "\nNext: tfc-report critical %lld, gaps %lld, memory %lld, nodes %lld, trace %lld;\n", run,
                    run, run, run, run);
  } else
    tfc_text_printf(out, "\nNo step of the answer was recorded operation by operation.\nNext:\n");
  tfc_text_printf(out, "      tfc-report show %lld --out DIR (the page)\n", run);
out:
  tfc_report_lists_deinit(&gaps);
  tfc_report_lists_deinit(&path);
  tfc_table_deinit(&pairs);
  tfc_table_deinit(&nodes);
  tfc_table_deinit(&rates);
  return s;
}
