// Makes the summary of the traced step for `tfc-report show` and the page: gaps, bytes between pairs of devices, the
// critical path, and operations that could be faster.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "reports/summary.h"
#include "runtime/base/map.h"
#include "runtime/base/units.h"

const char tfc_report_sql_pairs[] =
    "SELECT source, target, COUNT(*) AS number, SUM(bytes) AS bytes, SUM(duration_us) AS time_us, MIN(how) AS how FROM "
    "v_transfer WHERE"
    " run_id = :run AND placement_id = :placement AND step = :step GROUP BY source_id, target_id ORDER BY bytes DESC,"
    " source, target";
// Finds the best rates that operations of at least 20 us reached on any device of the run. The 5 % of them with the
// highest rates are left out, because changing clocks and fusion make outliers.
const char tfc_report_sql_rates[] =
    "WITH c AS (SELECT node_id, fastest_us AS us FROM v_cost WHERE run_id = :run UNION ALL SELECT node_id,"
    " fastest_us FROM v_op_total WHERE run_id = :run AND NOT EXISTS (SELECT 1 FROM v_cost WHERE run_id = :run)), r"
    " AS MATERIALIZED (SELECT n.flops / c.us AS f, n.bytes_touched / c.us AS b FROM c JOIN v_node n ON n.run_id ="
    " :run AND n.node_id = c.node_id WHERE c.us >= 20) SELECT (SELECT f FROM r WHERE f > 0 ORDER BY f DESC LIMIT 1"
    " OFFSET (SELECT COUNT(*) / 20 FROM r WHERE f > 0)) AS flops_per_us, (SELECT b FROM r WHERE b > 0 ORDER BY b"
    " DESC LIMIT 1 OFFSET (SELECT COUNT(*) / 20 FROM r WHERE b > 0)) AS bytes_per_us";
static const char sql_nodes[] = "SELECT n.name, n.flops, n.bytes_touched, (SELECT MIN(c.fastest_us) FROM v_cost c WHERE"
                                " c.run_id = n.run_id AND c.node_id = n.node_id) AS fastest_us, n.node_id FROM v_node n"
                                " WHERE n.run_id = :run";
// Medians as `nodes` has them (tfc_report_sql_nodes), of the nodes whose numbers are put in. pieces: how many times the
// node ran in the step if the graph has no loops; each time it did a part of its work.
static const char sql_medians[] =
    "WITH mine AS MATERIALIZED (SELECT node_id, device, step, duration_us AS us FROM v_op WHERE run_id = :run"
    " AND placement_id = :placement AND node_id IN (%s)),"
    " ranked AS (SELECT node_id, device, step, us,"
    " ROW_NUMBER() OVER (PARTITION BY node_id, device ORDER BY us) - 1 AS k,"
    " COUNT(*) OVER (PARTITION BY node_id, device) - 1 AS last FROM mine)"
    " SELECT node_id, device, SUM(CASE k WHEN 2 * last / 4 THEN us * (1 - 2 * last %% 4 / 4.0)"
    " WHEN 2 * last / 4 + 1 THEN us * (2 * last %% 4 / 4.0) ELSE 0 END) AS median_us,"
    " CASE WHEN NOT " TFC_SQL_HAS_LOOPS " THEN MAX(SUM(step = :step), 1) ELSE 1 END AS pieces"
    " FROM ranked GROUP BY node_id, device";
static const char sql_dispatch[] = "SELECT name, dispatch_us FROM v_device WHERE run_id = :run";

static const char *winnings_heading(const struct tfc_report_summary *m) {
  return m->modelled    ? "what this path takes besides operations on their fastest kind of device"
         : m->has_rates ? "operations of this path at the run's best rates"
                        : "operations of this path as fast as they once were";
}

// --- Lists -----------------------------------------------------------------------------------------------------------

// Lists pairs of devices with the exposed time of their transfers: the time in which the target was idle because it
// waited for them. It counts from the producer's end on, so it includes waiting for the link.
static tfc_status list_pairs(const struct tfc_table *rows, const struct tfc_table *gaps, struct tfc_table *out,
                             struct tfc_arena *arena) {
  static const char *const columns[] = {"source",     "target",        "number", "bytes", "time_us",
                                        "exposed_us", "overlapped_us", "how",    NULL};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(out, columns));
  for (uint32_t r = 0; r < rows->row_count; r++) {
    struct tfc_cell *row;
    tfc_str source = tfc_table_text(rows, r, "source"), target = tfc_table_text(rows, r, "target");
    double exposed = 0;
    for (uint32_t g = 0; g < gaps->row_count; g++)
      if (tfc_str_equal(tfc_table_text(gaps, g, "device"), target) &&
          tfc_str_equal(tfc_table_text(gaps, g, "source"), source))
        exposed += tfc_table_number(gaps, g, "transfer_us");
    TFC_TRY(s, tfc_table_add(out, &row));
    row[0] = tfc_cell_text(tfc_arena_str(arena, source)), row[1] = tfc_cell_text(tfc_arena_str(arena, target));
    row[2] = *tfc_table_find(rows, r, "number"), row[3] = *tfc_table_find(rows, r, "bytes");
    const double took = tfc_table_number(rows, r, "time_us");
    row[4] = tfc_cell_real(took), row[5] = tfc_cell_real(exposed), row[6] = tfc_cell_real(fmax(took - exposed, 0));
    const tfc_str how = tfc_table_text(rows, r, "how");
    if (how.size) row[7] = tfc_cell_text(tfc_arena_str(arena, how));
  }
out:
  return s;
}

static int most_won(const void *a, const void *b) {
  const struct tfc_cell *x = a, *y = b; // rows: node, time_us, least_us, won_us
  if (x[3].real > y[3].real || x[3].real < y[3].real) return x[3].real < y[3].real ? 1 : -1;
  return tfc_str_compare(x[0].text, y[0].text);
}

static tfc_status add_winning(tfc_str node, double time, double least, struct tfc_table *out, struct tfc_arena *arena) {
  struct tfc_cell *row;
  if (least != least || !(time > least)) return NULL;
  for (uint32_t r = 0; r < out->row_count; r++) { // its pieces and the rounds of a loop are one row
    row = &out->cells[(size_t)r * out->column_count];
    if (!tfc_str_equal(row[0].text, node)) continue;
    row[1].real += time, row[2].real += least, row[3].real += time - least;
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_table_add(out, &row));
  row[0] = tfc_cell_text(tfc_arena_str(arena, node)), row[1] = tfc_cell_real(time);
  row[2] = tfc_cell_real(least), row[3] = tfc_cell_real(time - least);
  return NULL;
}

// Returns the median time of an operation as `nodes` lists it. first: from a node_id to the first row of `medians`.
static double median_of(const struct tfc_table *medians, const struct tfc_intmap *first, int64_t node, tfc_str device,
                        double *out_pieces) {
  const uint64_t *at = tfc_intmap_get(first, (uint64_t)node);
  for (uint32_t r = at ? (uint32_t)*at : medians->row_count; r < medians->row_count; r++)
    if (tfc_table_find(medians, r, "node_id")->integer == node &&
        tfc_str_equal(tfc_table_text(medians, r, "device"), device))
      return *out_pieces = tfc_table_number(medians, r, "pieces"), tfc_table_number(medians, r, "median_us");
  return NAN;
}

// Sorts the operations of the path by the time that they take above max(flops / best rate, bytes / best rate); if their
// FLOP and bytes are not known, above the fastest time ever measured for them. An operation's time is its median over
// the traced steps, so that one step in which it lost its core does not count.
static tfc_status list_measured(const struct tfc_table *path, const struct tfc_table *nodes,
                                const struct tfc_strmap *row_of, const struct tfc_table *medians,
                                const struct tfc_intmap *first, const struct tfc_table *rates, struct tfc_table *out,
                                struct tfc_arena *arena) {
  double flops = tfc_table_number(rates, 0, "flops_per_us"), bytes = tfc_table_number(rates, 0, "bytes_per_us");
  for (uint32_t r = 0; r < path->row_count; r++) {
    tfc_str node = tfc_table_text(path, r, "node");
    double least = 0;
    if (!tfc_str_is(tfc_table_text(path, r, "kind"), "operation")) continue;
    const uint64_t *known = tfc_strmap_get(row_of, node);
    if (!known) continue; // the FLOP and bytes of this node are not known
    const uint32_t n = (uint32_t)*known;
    double pieces = 1; // a row of the path is one of them
    const double time =
        median_of(medians, first, tfc_table_cell(nodes, n, 4)->integer, tfc_table_text(path, r, "device"), &pieces);
    double work = tfc_table_cell(nodes, n, 1)->real, touched = tfc_table_cell(nodes, n, 2)->real;
    if (work == work && flops > 0) least = fmax(least, work / pieces / flops);
    if (touched == touched && bytes > 0) least = fmax(least, touched / pieces / bytes);
    if (!(least > 0)) least = tfc_table_cell(nodes, n, 3)->real;
    TFC_RETURN_IF_ERROR(add_winning(node, time, least, out, arena));
  }
  return NULL;
}

// In a simulated step no operation is slower than its description. What can be won there is the time of transfers, the
// dispatch of operations (all of it in one row), and what an operation takes longer than on its fastest kind of device.
static tfc_status list_modelled(const struct tfc_table *path, const struct tfc_table *nodes,
                                const struct tfc_strmap *row_of, const struct tfc_table *devices, struct tfc_table *out,
                                struct tfc_arena *arena) {
  double dispatched = 0;
  uint32_t count = 0;
  char text[96];
  for (uint32_t r = 0; r < path->row_count; r++) {
    const tfc_str node = tfc_table_text(path, r, "node"), device = tfc_table_text(path, r, "device");
    const double time = tfc_table_number(path, r, "time_us");
    if (!tfc_str_is(tfc_table_text(path, r, "kind"), "operation")) {
      const tfc_str source = tfc_table_text(path, r, "source");
      char *name =
          tfc_format("%.*s: transfer, %.*s to %.*s", TFC_STR_ARG(node), TFC_STR_ARG(source), TFC_STR_ARG(device));
      if (!name) return tfc_status_no_memory("a report");
      tfc_status s = add_winning(tfc_str_from(name), time, 0, out, arena);
      free(name);
      TFC_RETURN_IF_ERROR(s);
      continue;
    }
    double dispatch = 0;
    for (uint32_t d = 0; d < devices->row_count; d++)
      if (tfc_str_equal(tfc_table_text(devices, d, "name"), device))
        dispatch = tfc_table_number(devices, d, "dispatch_us");
    if (!(dispatch > 0) || !(time > 0)) dispatch = 0;
    dispatched += dispatch, count += dispatch > 0;
    const uint64_t *known = tfc_strmap_get(row_of, node);
    const double fastest = known ? tfc_table_cell(nodes, (uint32_t)*known, 3)->real : (double)NAN;
    // Simulated times are whole nanoseconds in the database: less than one is no difference.
    if (time - dispatch - fastest > 0.0011)
      TFC_RETURN_IF_ERROR(add_winning(node, time, fastest + dispatch, out, arena));
  }
  snprintf(text, sizeof text, "the dispatch of %u operation%s", count, count == 1 ? "" : "s");
  return add_winning(tfc_str_from(text), dispatched, 0, out, arena);
}

static tfc_status list_winnings(const struct tfc_table *path, const struct tfc_table *nodes,
                                const struct tfc_table *medians, const struct tfc_table *rates,
                                const struct tfc_table *devices, bool modelled, struct tfc_table *out,
                                struct tfc_arena *arena) {
  static const char *const columns[] = {"node", "time_us", "least_us", "won_us", NULL};
  tfc_status s = NULL;
  struct tfc_strmap row_of = {0}; // from a node's name to its row of `nodes`
  struct tfc_intmap first = {0};  // from a node's number to its first row of `medians`
  TFC_TRY(s, tfc_table_init(out, columns));
  for (uint32_t n = 0; n < nodes->row_count; n++)
    if (!tfc_strmap_put(&row_of, tfc_table_cell(nodes, n, 0)->text, n, NULL))
      TFC_TRY(s, tfc_status_no_memory("a report"));
  for (uint32_t r = 0; r < medians->row_count; r++)
    if (!tfc_intmap_put(&first, (uint64_t)tfc_table_find(medians, r, "node_id")->integer, r, NULL))
      TFC_TRY(s, tfc_status_no_memory("a report"));
  TFC_TRY(s, modelled ? list_modelled(path, nodes, &row_of, devices, out, arena)
                      : list_measured(path, nodes, &row_of, medians, &first, rates, out, arena));
  if (out->row_count) qsort(out->cells, out->row_count, out->column_count * sizeof *out->cells, most_won);
out:
  tfc_strmap_deinit(&row_of);
  tfc_intmap_deinit(&first);
  return s;
}

// Fills `medians` with the operations of the path; a run has many more.
static tfc_status find_medians(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_table *path,
                               const struct tfc_table *nodes, struct tfc_table *medians) {
  tfc_status s = NULL;
  struct tfc_strmap id_of = {0};
  struct tfc_text ids = {0};
  char *sql = NULL;
  for (uint32_t n = 0; n < nodes->row_count; n++)
    if (!tfc_strmap_put(&id_of, tfc_table_cell(nodes, n, 0)->text, (uint64_t)tfc_table_cell(nodes, n, 4)->integer,
                        NULL))
      TFC_TRY(s, tfc_status_no_memory("a report"));
  tfc_text_printf(&ids, "-1");
  for (uint32_t r = 0; r < path->row_count; r++) {
    const uint64_t *id = tfc_strmap_get(&id_of, tfc_table_text(path, r, "node"));
    if (id && tfc_str_is(tfc_table_text(path, r, "kind"), "operation"))
      tfc_text_printf(&ids, ",%llu", (unsigned long long)*id);
  }
  if (ids.failed || !(sql = tfc_format(sql_medians, ids.data))) TFC_TRY(s, tfc_status_no_memory("a report"));
  TFC_TRY(s, tfc_table_query(store, sql, args, medians));
out:
  tfc_strmap_deinit(&id_of);
  tfc_text_deinit(&ids);
  free(sql);
  return s;
}

tfc_status tfc_report_summarize(struct tfc_store *store, const struct tfc_query_args *args,
                                struct tfc_report_summary *out) {
  struct tfc_report_summary m = {.lists = {.names = {"pairs", "winnings"}, .count = 2}};
  struct tfc_table pairs = {0}, nodes = {0}, medians = {0}, rates = {0}, devices = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_gaps(store, args->run, &m.gaps));
  TFC_TRY(s, tfc_report_critical_step(store, args, &m.path));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_pairs, args, &pairs));
  TFC_TRY(s, tfc_table_query(store, sql_nodes, args, &nodes));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_rates, args, &rates));
  TFC_TRY(s, tfc_table_query(store, sql_dispatch, args, &devices));
  m.modelled = *tfc_report_simulated(store, args) != 0;
  if (!m.modelled) TFC_TRY(s, find_medians(store, args, &m.path.tables[0], &nodes, &medians));
  m.has_rates = tfc_table_number(&rates, 0, "flops_per_us") > 0 || tfc_table_number(&rates, 0, "bytes_per_us") > 0;
  TFC_TRY(s, list_pairs(&pairs, &m.gaps.tables[0], &m.lists.tables[0], &m.lists.arena));
  TFC_TRY(s, list_winnings(&m.path.tables[0], &nodes, &medians, &rates, &devices, m.modelled, &m.lists.tables[1],
                           &m.lists.arena));
  *out = m;
  m = (struct tfc_report_summary){0};
out:
  tfc_report_summary_deinit(&m);
  tfc_table_deinit(&pairs);
  tfc_table_deinit(&nodes);
  tfc_table_deinit(&medians);
  tfc_table_deinit(&rates);
  tfc_table_deinit(&devices);
  return s;
}
void tfc_report_summary_deinit(struct tfc_report_summary *m) {
  tfc_report_lists_deinit(&m->gaps);
  tfc_report_lists_deinit(&m->path);
  tfc_report_lists_deinit(&m->lists);
}

// --- The text ------------------------------------------------------------------------------------------------------

static void print_gaps(const struct tfc_report_lists *gaps, const char *simulated, struct tfc_text *out) {
  const struct tfc_table *t = &gaps->tables[0];
  struct tfc_text still = {0};
  tfc_report_still(gaps, &still);
  if (t->row_count || still.size) tfc_text_printf(out, "\nLongest gaps%s\n", simulated);
  for (uint32_t r = 0; r < t->row_count && r < 3; r++) {
    tfc_text_printf(out, "  ");
    tfc_report_gap(t, r, false, out);
    tfc_text_printf(out, "\n");
  }
  if (still.size) tfc_text_printf(out, "  %s\n", still.data);
  tfc_text_deinit(&still);
}

static void print_pairs(const struct tfc_table *pairs, bool modelled, struct tfc_text *out) {
  char a[32], b[32], c[32], d[32], name[96];
  if (!pairs->row_count) return;
  tfc_text_printf(out, "\n  %-25s %7s %9s %10s %10s %10s\n", modelled ? "moved (simulated)" : "moved in the step",
                  "tensors", "bytes", "took", "exposed", "overlapped");
  for (uint32_t r = 0; r < pairs->row_count && r < 12; r++) {
    tfc_text_printf(out, "  %-11s", tfc_report_fit(name, tfc_table_text(pairs, r, "source"), 11));
    tfc_text_printf(
        out, " to %-10s %7.0f %9s %10s %10s %10s\n", tfc_report_fit(name, tfc_table_text(pairs, r, "target"), 10),
        tfc_table_number(pairs, r, "number"), tfc_show_bytes(a, tfc_table_number(pairs, r, "bytes")),
        tfc_show_us(b, tfc_table_number(pairs, r, "time_us")), tfc_show_us(c, tfc_table_number(pairs, r, "exposed_us")),
        tfc_show_us(d, tfc_table_number(pairs, r, "overlapped_us")));
  }
  if (pairs->row_count > 12) tfc_text_printf(out, "  and %u more pairs\n", pairs->row_count - 12);
  bool handed = false;
  for (uint32_t r = 0; r < pairs->row_count; r++) handed |= tfc_str_is(tfc_table_text(pairs, r, "how"), "handed over");
  if (handed) tfc_text_printf(out, "  devices share memory: tensors are handed over, no byte of them is copied\n");
}

static void print_path(const struct tfc_report_lists *path, bool modelled, struct tfc_text *out) {
  const struct tfc_table *types = &path->tables[1], *edges = &path->tables[2];
  char a[32], name[96];
  tfc_text_printf(out, "\nCritical path of the %s\n",
                  modelled ? "simulated step" : "traced step nearest to the median");
  const uint32_t shown = tfc_report_path_rows(types, 5);
  const struct tfc_report_rest rest = tfc_report_path_rest(types, shown);
  for (uint32_t r = 0; r < shown; r++) {
    tfc_str op = tfc_table_text(types, r, "op");
    tfc_text_printf(out, "  %5.1f %% %10s  %s\n", tfc_table_number(types, r, "percent"),
                    tfc_show_us(a, tfc_table_number(types, r, "time_us")),
                    op.size ? tfc_report_fit(name, op, 40) : "operations");
  }
  if (rest.rows)
    tfc_text_printf(out, "  %5.1f %% %10s  other (%u more)\n", rest.percent, tfc_show_us(a, rest.time_us), rest.rows);
  if (!edges->row_count) return;
  tfc_text_printf(out, "  The transfer that costs most: %s (%.1f %%), %s to ",
                  tfc_show_us(a, tfc_table_number(edges, 0, "time_us")), tfc_table_number(edges, 0, "percent"),
                  tfc_report_fit(name, tfc_table_text(edges, 0, "source"), 10));
  tfc_text_printf(out, "%s,\n    ", tfc_report_fit(name, tfc_table_text(edges, 0, "target"), 10));
  tfc_text_printf(out, "%s\n", tfc_report_fit(name, tfc_table_text(edges, 0, "node"), 76));
}

static void print_winnings(const struct tfc_report_summary *m, struct tfc_text *out) {
  const struct tfc_table *won = &m->lists.tables[1];
  char a[32], b[32], name[96];
  if (!won->row_count) return;
  tfc_text_printf(out, "\nWhat would help most:%s%s\n", m->modelled ? "\n  " : " ", winnings_heading(m));
  for (uint32_t r = 0; r < won->row_count && r < 3; r++)
    tfc_text_printf(out, "  %10s of %10s  %s\n", tfc_show_us(a, tfc_table_number(won, r, "won_us")),
                    tfc_show_us(b, tfc_table_number(won, r, "time_us")),
                    tfc_report_fit(name, tfc_table_text(won, r, "node"), 50));
}

void tfc_report_next(const char *path, const struct tfc_query_args *args, struct tfc_text *out) {
  const long long run = (long long)args->run;
  if (!*path) { // a database in memory is not there for another command
    tfc_text_printf(out, "Next: the same with --db FILE keeps the run, for tfc-report\n");
    return;
  }
  if (args->step >= 0)
    tfc_text_printf(out, "Next: tfc-report critical %lld, gaps %lld, memory %lld, nodes %lld, trace %lld;\n", run, run,
                    run, run, run);
  tfc_text_printf(out, "%s tfc-report show %lld --out DIR (the page)\n", args->step >= 0 ? "     " : "Next:", run);
  if (strcmp(path, "tfc.db") != 0) tfc_text_printf(out, "      with --db %s\n", path);
}

tfc_status tfc_report_summary(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_report_summary m = {0};
  tfc_status s = NULL;
  if (args->step >= 0) {
    TFC_TRY(s, tfc_report_summarize(store, args, &m));
    print_gaps(&m.gaps, tfc_report_simulated(store, args), out);
    print_pairs(&m.lists.tables[0], m.modelled, out);
    print_path(&m.path, m.modelled, out);
    print_winnings(&m, out);
    TFC_TRY(s, tfc_report_print_moves(store, args, &m.path, 3, out));
  } else
    tfc_text_printf(out, "\nNo step of the answer is kept operation by operation.\n");
  if (*tfc_store_path(store) == 0 || args->step >= 0) tfc_text_printf(out, "\n");
  tfc_report_next(tfc_store_path(store), args, out);
out:
  tfc_report_summary_deinit(&m);
  return s;
}
