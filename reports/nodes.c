// Makes the list of `tfc-report nodes`: one row for each operation of a run's answer, the slowest first.
#include <stdio.h>
#include <string.h>

#include "reports/lists.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "reports/traced.h"
#include "runtime/base/units.h"

// Computes quartiles by linear interpolation, over the operations that were recorded one by one. If only totals of an
// operation were stored, the median is that of the totals, and the quartiles are NULL. An operation that runs several
// times in a step has a sample for each time, and takes its median that many times in a step.
#define QUANTILE(quarters)                                                                                             \
  "SUM(CASE k WHEN " quarters " * last / 4 THEN us * (1 - " quarters " * last % 4 / 4.0) WHEN " quarters               \
  " * last / 4 + 1 THEN us * (" quarters " * last % 4 / 4.0) ELSE 0 END)"
// The parts are united and not joined, and v_node is found by its key: without statistics on its tables, SQLite would
// read one part as a whole for each row of the other, which takes a minute for 20,000 nodes.
const char tfc_report_sql_nodes[] =
    "WITH mine AS MATERIALIZED (SELECT node_id, device, step, duration_us AS us FROM v_op WHERE run_id = :run AND"
    " placement_id = :placement), ranked AS (SELECT node_id, device, step, us, ROW_NUMBER() OVER (PARTITION BY node_id,"
    " device ORDER BY us) - 1 AS k, COUNT(*) OVER (PARTITION BY node_id, device) - 1 AS last FROM mine), times AS"
    " (SELECT node_id, device, MAX(last) + 1 AS samples, " QUANTILE("1") " AS q1_us, " QUANTILE(
        "2") " AS median_us, " QUANTILE("3") " AS q3_us, MIN(us) AS fastest_us, NULLIF(SUM(step = :step), 0) AS runs, "
                                             "SUM(CASE WHEN step = :step"
                                             " THEN us END) AS step_us, NULL AS total_samples, NULL AS total_median_us "
                                             "FROM ranked GROUP BY node_id, device"
                                             " UNION ALL SELECT node_id, device, NULL, NULL, NULL, NULL, fastest_us, "
                                             "NULL, NULL, samples, median_us FROM"
                                             " v_op_total WHERE run_id = :run AND placement_id = :placement), merged "
                                             "AS (SELECT node_id, device,"
                                             " COALESCE(MAX(samples), MAX(total_samples)) AS samples, "
                                             "COALESCE(MAX(median_us), MAX(total_median_us)) AS"
                                             " median_us, MAX(q1_us) AS q1_us, MAX(q3_us) AS q3_us, MIN(fastest_us) AS "
                                             "fastest_us, MAX(runs) AS runs,"
                                             " MAX(step_us) AS step_us FROM times GROUP BY node_id, device) SELECT "
                                             "m.node_id, n.name AS node, n.op, m.device,"
                                             " n.unit_id, m.samples, m.median_us, m.q1_us, m.q3_us, m.fastest_us, "
                                             "n.output_bytes, n.bytes_touched,"
                                             " n.memory_bytes, n.flops, CASE WHEN :step < 0 THEN 1 ELSE m.runs END AS "
                                             "runs, CASE WHEN :step < 0 THEN"
                                             " m.median_us ELSE m.step_us END AS step_us, NULL AS slack_us FROM merged "
                                             "m CROSS JOIN v_node n ON n.run_id = :run"
                                             " AND n.node_id = m.node_id ORDER BY step_us DESC, m.node_id";

// The slack of a node is the smallest slack of its operations in the step.
static tfc_status add_slack(struct tfc_table *t, const struct tfc_traced *traced) {
  struct tfc_arena arena = {0};
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < traced->op_count; i++)
    if (traced->ops[i].node >= nodes) nodes = traced->ops[i].node + 1;
  int64_t *slack = TFC_ARENA_ARRAY(&arena, int64_t, (size_t)nodes + 1);
  if (!slack) return tfc_status_no_memory(NULL);
  for (uint32_t n = 0; n < nodes; n++) slack[n] = -1;
  for (uint32_t i = 0; i < traced->op_count; i++) {
    const struct tfc_traced_op *o = &traced->ops[i];
    int64_t *least = &slack[o->node];
    if (*least < 0 || o->latest - o->end < *least) *least = o->latest - o->end;
  }
  for (uint32_t r = 0; r < t->row_count; r++) {
    struct tfc_cell *row = &t->cells[(size_t)r * t->column_count];
    int64_t node = row[0].integer;
    if (node >= 0 && node < nodes && slack[node] >= 0)
      row[t->column_count - 1] = tfc_cell_real((double)slack[node] * 1e-3);
  }
  tfc_arena_deinit(&arena);
  return NULL;
}

static const char *us_text(char *buffer, double us) {
  return us == us ? tfc_show_us(buffer, us) : "-";
}

static const char *bytes_text(char *buffer, double bytes) {
  return bytes == bytes ? tfc_show_bytes(buffer, bytes) : "-";
}

enum { FIELDS = 5 }; // before the operation's name
struct fields {
  const char *text[FIELDS];
};

static struct fields fields_of(const struct tfc_table *t, uint32_t row, char buffers[FIELDS][96]) {
  const double half = (tfc_table_number(t, row, "q3_us") - tfc_table_number(t, row, "q1_us")) / 2;
  return (struct fields){{us_text(buffers[0], tfc_table_number(t, row, "step_us")), us_text(buffers[1], half),
                          bytes_text(buffers[2], tfc_table_number(t, row, "output_bytes")),
                          us_text(buffers[3], tfc_table_number(t, row, "slack_us")),
                          tfc_report_fit(buffers[4], tfc_table_text(t, row, "device"), 12)}};
}

static void print_fields(const struct fields *fields, const size_t wide[FIELDS], struct tfc_text *out) {
  tfc_text_printf(out, " ");
  for (size_t f = 0; f < FIELDS; f++)
    tfc_text_printf(out, f + 1 < FIELDS ? " %*s" : " %-*s", (int)wide[f], fields->text[f]);
  tfc_text_printf(out, " ");
}

// Prints the first `count` rows in lines of at most `columns`. A field is as wide as its longest text, and names have
// the rest.
static void print_rows(const struct tfc_table *t, uint32_t count, size_t columns, struct tfc_text *out) {
  static const struct fields heads = {{"in a step", "half range", "bytes", "slack", "device"}};
  char buffers[FIELDS][96];
  size_t wide[FIELDS], used = 2;
  for (size_t f = 0; f < FIELDS; f++) {
    wide[f] = strlen(heads.text[f]);
    for (uint32_t r = 0; r < count; r++) {
      const size_t size = strlen(fields_of(t, r, buffers).text[f]);
      if (size > wide[f]) wide[f] = size;
    }
    used += wide[f] + 1;
  }
  print_fields(&heads, wide, out);
  tfc_text_printf(out, "operation\n");
  for (uint32_t r = 0; r < count; r++) {
    const struct fields fields = fields_of(t, r, buffers);
    print_fields(&fields, wide, out);
    tfc_report_add_fit(out, tfc_table_text(t, r, "node"), columns > used + 10 ? columns - used : 10);
    tfc_text_printf(out, "\n");
  }
}

tfc_status tfc_report_nodes(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out) {
  return tfc_report_nodes_within(store, run_id, 80, out);
}

tfc_status tfc_report_nodes_within(struct tfc_store *store, int64_t run_id, size_t columns,
                                   struct tfc_report_lists *out) {
  enum { SHOWN = 40 };
  struct tfc_report_lists lists = {.names = {"nodes"}};
  struct tfc_traced traced = {0};
  struct tfc_query_args args;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  lists.count = 1;
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_nodes, &args, &lists.tables[0]));
  struct tfc_table *t = &lists.tables[0];
  if (!t->row_count)
    TFC_FAIL(s, TFC_NOT_FOUND, "%s: run %lld has no times of operations", tfc_store_path(store), (long long)args.run);
  if (args.step >= 0) {
    TFC_TRY(s, tfc_traced_load(store, &args, &traced));
    if (traced.edge_count) TFC_TRY(s, add_slack(t, &traced));
  }
  const char *simulated = tfc_report_simulated(store, &args);
  tfc_text_printf(&lists.text, "Run %lld: operations of the answer, by their time in a step%s\n\n", (long long)args.run,
                  simulated);
  print_rows(t, t->row_count < SHOWN ? t->row_count : SHOWN, columns, &lists.text);
  if (t->row_count > SHOWN)
    tfc_text_printf(&lists.text, "  and %u more: --csv and --json have all\n", t->row_count - SHOWN);
  if (args.step < 0)
    tfc_text_printf(&lists.text, "\nIn a step: the median, because no step was traced.\n");
  else
    tfc_text_printf(&lists.text, "\nIn a step: all its runs in step %lld%s.\n", (long long)args.step,
                    *simulated ? ", which was simulated" : ", the traced one nearest to the median");
  tfc_text_printf(&lists.text,
                  "Half range: half of the distance between the quartiles.\n"
                  "Bytes: of the outputs; -: they have no shape before they run.\n"
                  "Slack: how much later it could have ended in a step that takes no longer%s.\n",
                  traced.edge_count ? "" : "\n(this run has no edges that would tell)");
  if (lists.text.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  tfc_traced_deinit(&traced);
  return s;
}
