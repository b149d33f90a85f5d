// Compares runs with the first of them: step times with their spread, nodes that moved, memory, time by type of
// operation, and which differences are within the noise.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/compare.h"
#include "reports/html.h"
#include "reports/lists.h"
#include "reports/reports.h"
#include "reports/summary.h"
#include "runtime/base/units.h"

enum { SHOWN_TYPES = 20 }; // types of operations in the text on two runs

struct interval {
  // 95 % confidence interval of the median; NaN for fewer than six values; of a simulated time, which has no noise, the
  // time itself
  double low, high;
};
struct side { // one of the runs that are compared
  struct tfc_query_args args;
  struct tfc_table run, result, steps, ops, totals, memory, moved, pairs;
  struct interval step;
  char name[32], math[16];
  double peak, moved_nodes;
  bool peak_part;        // of the variables alone
  bool simulated, loads; // `loads`: the run searched for the smallest load, not for the shortest step
};

static const char sql_result[] =
    "SELECT transfers, transfer_bytes, label FROM v_result WHERE run_id = :run AND placement_id"
    " = :placement";
// The steps from which the answer's time was computed: the last `step_count` steps of the final measurement. Its
// earlier steps were used to choose the answer.
#define STEPS                                                                                                          \
  "steps AS MATERIALIZED (SELECT step, step_us, traced FROM v_step WHERE run_id = :run AND placement_id = :placement"  \
  " AND phase = (SELECT phase FROM v_step WHERE run_id = :run AND placement_id = :placement AND phase NOT IN ('in"     \
  " flight', 'one by one') ORDER BY phase <> 'final', phase = 'profile' LIMIT 1) ORDER BY step DESC LIMIT COALESCE("   \
  "NULLIF((SELECT step_count FROM v_result WHERE run_id = :run AND placement_id = :placement), 0), -1))"
static const char sql_steps[] = "WITH " STEPS " SELECT step_us FROM steps ORDER BY step_us";
static const char sql_ops[] =
    "WITH " STEPS " SELECT o.op, o.step, SUM(o.duration_us) AS us FROM v_op o WHERE o.run_id ="
    " :run AND o.placement_id = :placement AND o.step IN (SELECT step FROM steps) GROUP BY"
    " o.op, o.step ORDER BY o.op, us";
static const char sql_totals[] =
    TFC_SQL_TOOK "SELECT op, COUNT(*) AS number, SUM(us) AS us FROM took GROUP BY op ORDER BY 3 DESC, op";
static const char sql_memory[] = "SELECT d.name AS device, m.peak_bytes, m.limit_bytes, " TFC_SQL_SHARE(
    "busy_us") " AS busy_percent, (SELECT COUNT(*)"
               " FROM v_placement p WHERE p.run_id = :run AND p.placement_id = :placement AND p.device_id = "
               "d.device_id) AS nodes, " TFC_SQL_PEAK_COMPLETE
               " AS complete FROM v_device d LEFT JOIN v_memory m ON m.run_id = d.run_id AND m.placement_id ="
               " :placement AND m.device_id = d.device_id WHERE d.run_id = :run AND d.name <> 'whole' ORDER BY "
               "d.device_id";
// Counts the nodes that are in both runs and changed their device, by the first two parts of their names. :other is the
// first run, :step is the first run's placement. The runs are united and not joined: see nodes.c.
static const char sql_moved[] =
    "WITH one AS (SELECT node, device AS source, NULL AS target FROM v_placement WHERE run_id = :other AND placement_id"
    " = :step UNION ALL SELECT node, NULL, device FROM v_placement WHERE run_id = :run AND placement_id = :placement),"
    " both AS (SELECT node, MAX(source) AS source, MAX(target) AS target, instr(node, '/') AS first FROM one GROUP BY"
    " node HAVING MAX(source) <> MAX(target)), cut AS (SELECT node, source, target, first, CASE WHEN first THEN"
    " instr(substr(node, first + 1), '/') ELSE 0 END AS second FROM both)"
    " SELECT CASE WHEN second THEN substr(node, 1, first + second - 1) WHEN first THEN substr(node, 1, first - 1)"
    " ELSE node END AS scope, source, target, COUNT(*) AS nodes FROM cut GROUP BY 1, 2, 3 ORDER BY nodes DESC, scope,"
    " source, target";

// Returns the 95 % confidence interval of the median by order statistics (Conover, "Practical Nonparametric
// Statistics", 1999, 3.2: the normal approximation of the binomial distribution). The values are sorted.
static struct interval interval_of(const struct tfc_table *t, uint32_t from, uint32_t count, uint32_t column) {
  double width = 1.96 * sqrt(count), n = count;
  if (count < 6) return (struct interval){NAN, NAN};
  uint32_t low = (uint32_t)fmax(1, floor((n - width) / 2)), high = (uint32_t)fmin(n, ceil((n + width) / 2) + 1);
  return (struct interval){tfc_table_cell(t, from + low - 1, column)->real,
                           tfc_table_cell(t, from + high - 1, column)->real};
}
// Compares the first run's interval with this run's; returns "unknown" if there are too few steps. Simulated times are
// sums of the same terms in any order: they are equal if only their last bits differ.
static const char *verdict_of(struct interval a, struct interval b) {
  if (a.low != a.low || b.low != b.low) return "unknown";
  const double digits = 1e-9 * fabs(a.high);
  if (fabs(a.low - b.high) <= digits && fabs(a.high - b.low) <= digits) return "equal";
  return b.low > a.high ? "slower" : b.high < a.low ? "faster" : "noise";
}
// Of two runs: "unlike" if one is simulated and the other measured.
static const char *verdict_of_steps(const struct side *a, const struct side *b) {
  return a->simulated != b->simulated ? "unlike" : verdict_of(a->step, b->step);
}
static double total_of(const struct side *side, tfc_str op, const char *column) {
  for (uint32_t r = 0; r < side->totals.row_count; r++)
    if (tfc_str_equal(tfc_table_cell(&side->totals, r, 0)->text, op)) return tfc_table_number(&side->totals, r, column);
  return NAN;
}
// Finds a type's rows of `ops`, its sum in each traced step, the smallest first. Returns how many there are.
static uint32_t steps_of_op(const struct side *side, tfc_str op, uint32_t *out_from) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < side->ops.row_count; r++)
    if (tfc_str_equal(tfc_table_cell(&side->ops, r, 0)->text, op) && count++ == 0) *out_from = r;
  return count;
}
static struct interval interval_of_op(const struct side *side, tfc_str op) {
  uint32_t from = 0;
  const uint32_t count = steps_of_op(side, op, &from);
  if (side->simulated) return (struct interval){total_of(side, op, "us"), total_of(side, op, "us")};
  return interval_of(&side->ops, from, count, 2);
}
// Returns the median of the sums of which the interval is made, so that it lies in it; if no step was traced, the sum
// of the operations' medians.
static double time_of_op(const struct side *side, tfc_str op) {
  uint32_t from = 0;
  const uint32_t count = steps_of_op(side, op, &from);
  if (!count) return total_of(side, op, "us");
  const double low = tfc_table_cell(&side->ops, from + (count - 1) / 2, 2)->real,
               high = tfc_table_cell(&side->ops, from + count / 2, 2)->real;
  return 0.5 * (low + high);
}

static tfc_status load(struct tfc_store *store, int64_t run, const struct side *first, struct side *out) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run, &out->args));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_run, &out->args, &out->run));
  TFC_TRY(s, tfc_table_query(store, sql_result, &out->args, &out->result));
  TFC_TRY(s, tfc_table_query(store, sql_steps, &out->args, &out->steps));
  TFC_TRY(s, tfc_table_query(store, sql_ops, &out->args, &out->ops));
  TFC_TRY(s, tfc_table_query(store, sql_totals, &out->args, &out->totals));
  TFC_TRY(s, tfc_table_query(store, sql_memory, &out->args, &out->memory));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_pairs, &out->args, &out->pairs));
  struct tfc_query_args moved = out->args;
  moved.other = first ? first->args.run : out->args.run;
  moved.step = first ? first->args.placement : out->args.placement;
  TFC_TRY(s, tfc_table_query(store, sql_moved, &moved, &out->moved));
  const double us = tfc_table_number(&out->run, 0, "step_median_us");
  const double q1 = tfc_table_number(&out->run, 0, "step_q1_us");
  out->loads = tfc_str_is(tfc_table_text(&out->run, 0, "objective"), "throughput");
  out->simulated = tfc_report_is_modelled(&out->run, 0) && q1 != q1;
  out->step = out->simulated ? (struct interval){us, us} : interval_of(&out->steps, 0, out->steps.row_count, 0);
  snprintf(out->name, sizeof out->name, "run %lld", (long long)out->args.run);
  tfc_report_gpu_math(store, &out->args, out->math);
  out->peak = NAN;
  for (uint32_t r = 0; r < out->memory.row_count; r++) {
    double peak = tfc_table_number(&out->memory, r, "peak_bytes");
    if (peak == peak) out->peak = out->peak == out->peak ? fmax(out->peak, peak) : peak;
    out->peak_part |= tfc_report_peak_is_part(&out->memory, r);
  }
  for (uint32_t r = 0; r < out->moved.row_count; r++) out->moved_nodes += tfc_table_number(&out->moved, r, "nodes");
out:
  return s;
}
static void unload(struct side *side) {
  struct tfc_table *const tables[] = {&side->run,    &side->result, &side->steps, &side->ops,
                                      &side->totals, &side->memory, &side->moved, &side->pairs};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) tfc_table_deinit(tables[i]);
}

// --- Tables ----------------------------------------------------------------------------------------------------------

static struct tfc_cell text_cell(struct tfc_report_lists *lists, tfc_str text) {
  return tfc_cell_text(tfc_arena_str(&lists->arena, text));
}
static struct tfc_cell copied(struct tfc_report_lists *lists, const struct tfc_cell *cell) {
  if (!cell) return (struct tfc_cell){.real = NAN};
  return cell->kind == TFC_CELL_TEXT ? text_cell(lists, cell->text) : *cell;
}

static bool other_graph(const struct side *a, const struct side *b) {
  const tfc_str x = tfc_table_text(&a->run, 0, "graph_sha256"), y = tfc_table_text(&b->run, 0, "graph_sha256");
  return x.size && y.size && !tfc_str_equal(x, y);
}
static const char *load_how(const struct side *x) {
  return tfc_report_load_how(tfc_table_number(&x->run, 0, "load_samples"), tfc_report_is_modelled(&x->run, 0));
}
static const char *shown_how(const struct side *x) { // nothing if its load is not known
  const double load = tfc_table_number(&x->run, 0, "load_us");
  return load == load ? load_how(x) : "";
}
// Returns a run's value of a column that is about steps in runs that searched for steps, and about loads in others; NaN
// if this run's is about the other.
static double about(const struct side *x, bool loads, const char *column) {
  return x->loads == loads ? tfc_table_number(&x->run, 0, column) : (double)NAN;
}

static void put(const struct tfc_table *t, struct tfc_cell *row, const char *column, struct tfc_cell value) {
  uint32_t c = 0;
  while (c < t->column_count && strcmp(t->names[c], column) != 0) c++;
  assert(c < t->column_count);
  row[c] = value;
}

static tfc_status list_runs(const struct side *sides, uint32_t count, struct tfc_report_lists *lists) {
  static const char *const columns[] = {"run_id",
                                        "graph",
                                        "label",
                                        "algorithm",
                                        "state",
                                        "cpu_model",
                                        "step_median_us",
                                        "step_q1_us",
                                        "step_q3_us",
                                        "step_count",
                                        "whole_us",
                                        "best_single_us",
                                        "expert_us",
                                        "bound_us",
                                        "simulated_us",
                                        "transfers",
                                        "transfer_bytes",
                                        "step_low_us",
                                        "step_high_us",
                                        "ratio",
                                        "verdict",
                                        "moved_nodes",
                                        "peak_bytes",
                                        "graph_sha256",
                                        "objective",
                                        "load_us",
                                        "load_samples",
                                        "load_at_once",
                                        "best_single_load_us",
                                        "load_how",
                                        "load_ratio",
                                        "step_bound_us",
                                        "load_bound_us",
                                        "step_simulated_us",
                                        NULL};
  struct tfc_table *t = &lists->tables[TFC_COMPARE_RUNS];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(t, columns));
  for (uint32_t i = 0; i < count; i++) {
    const struct side *x = &sides[i];
    struct tfc_cell *row;
    TFC_TRY(s, tfc_table_add(t, &row));
    for (uint32_t c = 0; columns[c]; c++) { // what v_run and v_result have has the same names here
      const struct tfc_cell *cell = tfc_table_find(&x->run, 0, columns[c]);
      if (!cell) cell = tfc_table_find(&x->result, 0, columns[c]);
      if (cell) row[c] = copied(lists, cell);
    }
    put(t, row, "step_low_us", tfc_cell_real(x->step.low));
    put(t, row, "step_high_us", tfc_cell_real(x->step.high));
    put(t, row, "peak_bytes", tfc_cell_real(x->peak));
    const double load = tfc_table_number(&x->run, 0, "load_us");
    if (load == load) put(t, row, "load_how", tfc_cell_text(tfc_str_from(load_how(x))));
    put(t, row, "step_bound_us", tfc_cell_real(about(x, false, "bound_us")));
    put(t, row, "load_bound_us", tfc_cell_real(about(x, true, "bound_us")));
    put(t, row, "step_simulated_us", tfc_cell_real(about(x, false, "simulated_us")));
    if (i == 0) continue;
    put(t, row, "moved_nodes", tfc_cell_real(x->moved_nodes));
    if (other_graph(&sides[0], x)) {
      put(t, row, "verdict", tfc_cell_text(TFC_STR("other graph")));
      continue;
    }
    if (strcmp(load_how(&sides[0]), load_how(x)) == 0)
      put(t, row, "load_ratio", tfc_cell_real(load / tfc_table_number(&sides[0].run, 0, "load_us")));
    put(t, row, "ratio",
        tfc_cell_real(tfc_table_number(&x->run, 0, "step_median_us") /
                      tfc_table_number(&sides[0].run, 0, "step_median_us")));
    put(t, row, "verdict", tfc_cell_text(tfc_str_from(verdict_of_steps(&sides[0], x))));
  }
out:
  return s;
}

static double longest(const struct side *sides, uint32_t count, tfc_str op) {
  double most = 0;
  for (uint32_t i = 0; i < count; i++) {
    double us = time_of_op(&sides[i], op);
    if (us > most) most = us;
  }
  return most;
}
struct type {
  tfc_str op;
  double us;
};
static int longest_first(const void *a, const void *b) {
  const struct type *x = a, *y = b;
  if (x->us != y->us) return x->us < y->us ? 1 : -1;
  return tfc_str_compare(x->op, y->op);
}

// Lists a row for each type of operation and run; the types that take most in any run come first.
static tfc_status list_operations(const struct side *sides, uint32_t count, struct tfc_report_lists *lists) {
  static const char *const columns[] = {"op",           "run_id", "number",  "time_us", "step_low_us",
                                        "step_high_us", "ratio",  "verdict", NULL};
  struct tfc_table *t = &lists->tables[TFC_COMPARE_OPERATIONS];
  uint32_t type_count = 0, most = 0;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(t, columns));
  for (uint32_t i = 0; i < count; i++) most += sides[i].totals.row_count;
  struct type *types = TFC_ARENA_ARRAY(&lists->arena, struct type, (size_t)most + 1);
  if (!types) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t r = 0; r < sides[i].totals.row_count; r++) {
      tfc_str op = tfc_table_cell(&sides[i].totals, r, 0)->text;
      uint32_t k = 0;
      while (k < type_count && !tfc_str_equal(types[k].op, op)) k++;
      if (k < type_count) continue;
      types[type_count++] = (struct type){tfc_arena_str(&lists->arena, op), longest(sides, count, op)};
    }
  qsort(types, type_count, sizeof *types, longest_first);
  for (uint32_t k = 0; k < type_count; k++) {
    struct interval first = interval_of_op(&sides[0], types[k].op);
    double first_us = time_of_op(&sides[0], types[k].op);
    for (uint32_t i = 0; i < count; i++) {
      struct interval here = interval_of_op(&sides[i], types[k].op);
      double us = time_of_op(&sides[i], types[k].op);
      struct tfc_cell *row;
      TFC_TRY(s, tfc_table_add(t, &row));
      row[0] = tfc_cell_text(types[k].op);
      row[1] = tfc_cell_integer(sides[i].args.run);
      row[2] = tfc_cell_real(total_of(&sides[i], types[k].op, "number"));
      row[3] = tfc_cell_real(us);
      row[4] = tfc_cell_real(here.low), row[5] = tfc_cell_real(here.high);
      if (i == 0 || us != us || !(first_us > 0) || other_graph(&sides[0], &sides[i])) continue;
      row[6] = tfc_cell_real(us / first_us);
      if (sides[0].simulated == sides[i].simulated) row[7] = tfc_cell_text(tfc_str_from(verdict_of(first, here)));
    }
  }
out:
  return s;
}

// Lists the rows of one query for each run, with the run's id in the first column.
static tfc_status list_each(const struct side *sides, uint32_t count, enum tfc_compare_table which,
                            struct tfc_report_lists *lists) {
  static const char *const columns[TFC_COMPARE_TABLES][8] = {
      [TFC_COMPARE_MOVED] = {"run_id", "scope", "source", "target", "nodes"},
      [TFC_COMPARE_DEVICES] = {"run_id", "device", "peak_bytes", "limit_bytes", "busy_percent", "nodes", "complete"},
      [TFC_COMPARE_TRAFFIC] = {"run_id", "source", "target", "number", "bytes", "time_us", "how"}};
  struct tfc_table *t = &lists->tables[which];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(t, columns[which]));
  for (uint32_t i = which == TFC_COMPARE_MOVED; i < count; i++) {
    const struct tfc_table *from = which == TFC_COMPARE_MOVED     ? &sides[i].moved
                                   : which == TFC_COMPARE_DEVICES ? &sides[i].memory
                                                                  : &sides[i].pairs;
    assert(from->column_count + 1 == t->column_count);
    for (uint32_t r = 0; r < from->row_count; r++) {
      struct tfc_cell *row;
      TFC_TRY(s, tfc_table_add(t, &row));
      row[0] = tfc_cell_integer(sides[i].args.run);
      for (uint32_t c = 0; c < from->column_count; c++) row[c + 1] = copied(lists, tfc_table_cell(from, r, c));
    }
  }
out:
  return s;
}

// --- The text ------------------------------------------------------------------------------------------------------

static const char *show(char *buffer, double us) {
  return us == us ? tfc_show_us(buffer, us) : "-";
}
static const char *show_bytes(char *buffer, double bytes) {
  return bytes == bytes ? tfc_show_bytes(buffer, bytes) : "-";
}

static const char *show_peak(char buffer[40], const struct side *x) {
  char bytes[32];
  snprintf(buffer, 40, "%s%s", x->peak_part ? ">" : "", show_bytes(bytes, x->peak));
  return buffer;
}

// Says which runs are of another graph than the first one, or searched for something else: of those, not all times
// compare.
static void print_different(const struct side *sides, uint32_t count, struct tfc_text *out) {
  for (uint32_t i = 1; i < count; i++) {
    const struct side *x = &sides[i];
    const long long run = (long long)x->args.run, first = (long long)sides[0].args.run;
    if (other_graph(&sides[0], x))
      tfc_text_printf(out, "Run %lld is of another graph than run %lld: its times do not compare with those.\n\n", run,
                      first);
    else if (x->loads != sides[0].loads)
      tfc_text_printf(
          out, "Run %lld searched for the %s, run %lld for the %s:\nonly steps that ran one at a time compare.\n\n",
          run, x->loads ? "smallest load" : "shortest step", first, sides[0].loads ? "smallest load" : "shortest step");
    else if (*shown_how(&sides[0]) && *shown_how(x) && strcmp(load_how(&sides[0]), load_how(x)))
      tfc_text_printf(out, "The load of run %lld is %s, that of run %lld %s: they do not compare.\n\n", run,
                      load_how(x), first, load_how(&sides[0]));
  }
}

static void print_row(struct tfc_text *out, const char *label, double a, double b, bool bytes, bool compares) {
  char x[32], y[32];
  tfc_text_printf(out, "%-26s %16s %16s", label, bytes ? show_bytes(x, a) : show(x, a),
                  bytes ? show_bytes(y, b) : show(y, b));
  if (compares && a > 0 && b == b) tfc_text_printf(out, " %9.3f", b / a);
}

// What runs that searched for loads found, without a verdict: a load that is computed from costs has no interval.
static void print_loads(const struct side *a, const struct side *b, bool compares, struct tfc_text *out) {
  char label[32];
  const bool alike = compares && strcmp(load_how(a), load_how(b)) == 0;
  const char *how = a->loads && b->loads && !alike ? "" : load_how(a->loads ? a : b);
  snprintf(label, sizeof label, "load%s%s", *how ? ", " : "", how);
  print_row(out, label, about(a, true, "load_us"), about(b, true, "load_us"), false, alike);
  tfc_text_printf(out, "\n");
  print_row(out, "best single device, load", about(a, true, "best_single_load_us"),
            about(b, true, "best_single_load_us"), false, alike);
  tfc_text_printf(out, "\n");
  print_row(out, "lower bound of the load", about(a, true, "bound_us"), about(b, true, "bound_us"), false, compares);
  tfc_text_printf(out, "\n");
}

static void print_two(const struct side *a, const struct side *b, const struct tfc_report_lists *lists,
                      struct tfc_text *out) {
  char x[32], y[32], name[96];
  tfc_text_printf(out, "%-26s %16s %16s %9s\n", "", a->name, b->name, "ratio");
  static const char *const texts[] = {"graph", "label", "objective", "algorithm", "cpu_model", "state"};
  const bool compares = !other_graph(a, b);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tfc_str ta = tfc_table_text(&a->run, 0, texts[i]), tb = tfc_table_text(&b->run, 0, texts[i]);
    if (!ta.size && !tb.size) continue;
    if (tfc_str_equal(ta, tb))
      tfc_text_printf(out, "%-26s %s (both)\n", texts[i], tfc_report_fit(name, ta, 46));
    else {
      tfc_text_printf(out, "%-26s %s |", texts[i], tfc_report_fit(name, ta, 25));
      tfc_text_printf(out, " %s\n", tfc_report_fit(name, tb, 25));
    }
  }
  if (strcmp(a->math, b->math))
    tfc_text_printf(out, "%-26s %s | %s\n", "products on GPUs", a->math, b->math);
  else if (*a->math)
    tfc_text_printf(out, "%-26s %s (both)\n", "products on GPUs", a->math);
  if (a->loads || b->loads) print_loads(a, b, compares, out);
  const char *single = a->loads || b->loads ? "best single device, step" : "best single device";
  const struct {
    const char *column, *text;
  } numbers[] = {{"step_median_us", a->loads || b->loads ? "one step alone" : "step"},
                 {"step_q1_us", "step, first quartile"},
                 {"step_q3_us", "step, third quartile"},
                 {"whole_us", "undivided machine"},
                 {"best_single_us", single},
                 {"expert_us", "expert"}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    print_row(out, numbers[i].text, tfc_table_number(&a->run, 0, numbers[i].column),
              tfc_table_number(&b->run, 0, numbers[i].column), false, compares);
    tfc_text_printf(out, "%s%s\n", i || !compares ? "" : "  ", i || !compares ? "" : verdict_of_steps(a, b));
    if (i) continue;
    const struct interval *both[] = {&a->step, &b->step};
    tfc_text_printf(out, "%-26s", "  95 % interval");
    for (size_t k = 0; k < 2; k++) {
      char range[72];
      if (both[k]->low != both[k]->low)
        snprintf(range, sizeof range, "-");
      else if ((k ? b : a)->simulated)
        snprintf(range, sizeof range, "(simulated)");
      else
        snprintf(range, sizeof range, "%.5g-%.5g %s", both[k]->low * (both[k]->high < 1e3 ? 1 : 1e-3),
                 both[k]->high * (both[k]->high < 1e3 ? 1 : 1e-3), both[k]->high < 1e3 ? "us" : "ms");
      tfc_text_printf(out, " %16s", range);
    }
    tfc_text_printf(out, "\n");
  }
  if (!a->loads || !b->loads) {
    print_row(out, a->loads || b->loads ? "lower bound of the step" : "lower bound", about(a, false, "bound_us"),
              about(b, false, "bound_us"), false, compares);
    tfc_text_printf(out, "\n");
  }
  print_row(out, "moved in a step", tfc_table_number(&a->result, 0, "transfer_bytes"),
            tfc_table_number(&b->result, 0, "transfer_bytes"), true, compares);
  tfc_text_printf(out, "\n");
  print_row(out, a->peak_part || b->peak_part ? ">peak memory of a device" : "peak memory of a device", a->peak,
            b->peak, true, compares);
  tfc_text_printf(out, "\n");
  if (a->peak_part || b->peak_part) tfc_text_printf(out, "  %s\n", tfc_report_peak_note);
  if (b->moved.row_count) {
    tfc_text_printf(out, "\n%.0f nodes are on another device\n", b->moved_nodes);
    for (uint32_t r = 0; r < b->moved.row_count && r < 12; r++) {
      tfc_text_printf(out, "  %6.0f  %-40s", tfc_table_number(&b->moved, r, "nodes"),
                      tfc_report_fit(name, tfc_table_text(&b->moved, r, "scope"), 40));
      tfc_text_printf(out, "  %s", tfc_report_fit(name, tfc_table_text(&b->moved, r, "source"), 12));
      tfc_text_printf(out, " to %s\n", tfc_report_fit(name, tfc_table_text(&b->moved, r, "target"), 12));
    }
    if (b->moved.row_count > 12) tfc_text_printf(out, "  and %u more: --json has all\n", b->moved.row_count - 12);
  } else if (a->totals.row_count && b->totals.row_count)
    tfc_text_printf(out, "\nNo node that both runs have is on another device\n");
  const struct tfc_table *t = &lists->tables[TFC_COMPARE_OPERATIONS];
  if (!t->row_count) return;
  tfc_text_printf(out, "\n%-26s %16s %16s %9s\n", "time in a step by op type", a->name, b->name, "ratio");
  for (uint32_t r = 0; r + 1 < t->row_count && r < 2 * SHOWN_TYPES; r += 2) {
    double na = tfc_table_number(t, r, "time_us"), nb = tfc_table_number(t, r + 1, "time_us");
    tfc_str verdict = tfc_table_text(t, r + 1, "verdict");
    tfc_text_printf(out, "%-26s %16s %16s", tfc_report_fit(name, tfc_table_text(t, r, "op"), 26), show(x, na),
                    show(y, nb));
    if (compares && na > 0 && nb == nb) tfc_text_printf(out, " %9.3f", nb / na);
    if (tfc_str_is(verdict, "noise")) tfc_text_printf(out, "  noise");
    tfc_text_printf(out, "\n");
  }
}

static void print_many(const struct side *sides, uint32_t count, const struct tfc_report_lists *lists,
                       struct tfc_text *out) {
  const struct tfc_table *t = &lists->tables[TFC_COMPARE_RUNS], *ops = &lists->tables[TFC_COMPARE_OPERATIONS];
  const uint32_t shown = count < 5 ? count : 5;
  bool parts = false; // of some peak only a part is known
  char a[32], b[32], c[40], name[96], range[72], ratio[16];
  tfc_text_printf(out, "%-5s %10s %22s %7s %-11s %9s %10s\n", "run", "step", "95 % interval", "ratio", "", "moved",
                  "peak");
  for (uint32_t r = 0; r < t->row_count; r++) {
    const struct side *x = &sides[r];
    parts |= x->peak_part;
    double times = tfc_table_number(t, r, "ratio");
    snprintf(ratio, sizeof ratio, times == times ? "%.3f" : "", times);
    if (x->simulated)
      snprintf(range, sizeof range, "(simulated)");
    else if (x->step.low == x->step.low)
      snprintf(range, sizeof range, "%s - %s", show(a, x->step.low), show(b, x->step.high));
    else
      snprintf(range, sizeof range, "-");
    tfc_str verdict = tfc_table_text(t, r, "verdict");
    tfc_text_printf(out, "%-5lld %10s %22s %7s %-11.*s", (long long)x->args.run,
                    show(a, tfc_table_number(t, r, "step_median_us")), range, ratio,
                    (int)(verdict.size > 11 ? 11 : verdict.size), verdict.data ? verdict.data : "");
    tfc_text_printf(out, " %9s %10s\n", show_bytes(a, tfc_table_number(t, r, "transfer_bytes")), show_peak(c, x));
  }
  if (parts) tfc_text_printf(out, "  %s\n", tfc_report_peak_note);
  bool loads = false;
  for (uint32_t r = 0; r < t->row_count; r++) loads |= sides[r].loads;
  if (loads)
    tfc_text_printf(out, "\n%-5s %12s %-9s %7s %18s %14s\n", "run", "load", "", "ratio", "best single's load",
                    "lower bound");
  for (uint32_t r = 0; r < t->row_count; r++) {
    const double times = tfc_table_number(t, r, "load_ratio");
    if (!sides[r].loads) continue;
    snprintf(ratio, sizeof ratio, times == times ? "%.3f" : "", times);
    tfc_text_printf(out, "%-5lld %12s %-9s %7s", (long long)sides[r].args.run,
                    show(a, tfc_table_number(t, r, "load_us")), shown_how(&sides[r]), ratio);
    tfc_text_printf(out, " %18s %14s\n", show(b, tfc_table_number(t, r, "best_single_load_us")),
                    show(c, tfc_table_number(t, r, "load_bound_us")));
  }
  tfc_text_printf(out, "\n%-5s %12s %12s %12s %7s  %s\n", "run", "whole", "best single", "expert", "nodes", "graph");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double moved = tfc_table_number(t, r, "moved_nodes");
    tfc_text_printf(out, "%-5lld %12s", (long long)sides[r].args.run, show(a, tfc_table_number(t, r, "whole_us")));
    tfc_text_printf(out, " %12s %12s %7.0f  %s\n", show(b, tfc_table_number(t, r, "best_single_us")),
                    show(c, tfc_table_number(t, r, "expert_us")), moved == moved ? moved : 0,
                    tfc_report_fit(name, tfc_table_text(t, r, "graph"), 25));
  }
  tfc_text_printf(out, "Nodes: on another device than in run %lld.\n", (long long)sides[0].args.run);
  if (!ops->row_count) return;
  tfc_text_printf(out, "\n%-18s", "time by op type");
  for (uint32_t i = 0; i < shown; i++) tfc_text_printf(out, " %11s", sides[i].name);
  tfc_text_printf(out, "\n");
  for (uint32_t r = 0; r + count <= ops->row_count && r < 15 * count; r += count) {
    tfc_text_printf(out, "%-18s", tfc_report_fit(name, tfc_table_text(ops, r, "op"), 18));
    for (uint32_t i = 0; i < shown; i++)
      tfc_text_printf(out, " %11s", show(a, tfc_table_number(ops, r + i, "time_us")));
    tfc_text_printf(out, "\n");
  }
}

// Explains the verdicts that the text shows: those on steps and, of two runs, "noise" on types of operations.
static void print_legend(const struct tfc_report_lists *lists, uint32_t count, struct tfc_text *out) {
  const struct tfc_table *runs = &lists->tables[TFC_COMPARE_RUNS], *ops = &lists->tables[TFC_COMPARE_OPERATIONS];
  bool noise = false, unknown = false, unlike = false;
  for (uint32_t r = 0; r < runs->row_count; r++) {
    const tfc_str verdict = tfc_table_text(runs, r, "verdict");
    noise |= tfc_str_is(verdict, "noise"), unknown |= tfc_str_is(verdict, "unknown");
    unlike |= tfc_str_is(verdict, "unlike");
  }
  for (uint32_t r = 1; count == 2 && r < ops->row_count && r < 2 * SHOWN_TYPES; r += 2)
    noise |= tfc_str_is(tfc_table_text(ops, r, "verdict"), "noise");
  if (noise || unknown || unlike) tfc_text_printf(out, "\nWhat the verdicts mean:\n");
  if (noise) tfc_text_printf(out, "  noise    the 95 %% intervals of the medians meet\n");
  if (unlike) tfc_text_printf(out, "  unlike   one step was simulated, the other measured\n");
  if (unknown) tfc_text_printf(out, "  unknown  a run has no interval: too few steps (fewer than six), or no answer\n");
}

tfc_status tfc_report_compare(struct tfc_store *store, const int64_t *runs, uint32_t count,
                              struct tfc_report_lists *out) {
  struct tfc_report_lists lists = {.names = {"runs", "operations", "moved", "devices", "traffic"}};
  struct side *sides = calloc((size_t)count + 1, sizeof *sides);
  tfc_status s = NULL;
  if (!sides) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++) TFC_TRY(s, load(store, runs[i], i ? &sides[0] : NULL, &sides[i]));
  lists.count = TFC_COMPARE_TABLES;
  TFC_TRY(s, list_runs(sides, count, &lists));
  TFC_TRY(s, list_operations(sides, count, &lists));
  for (int which = TFC_COMPARE_MOVED; which <= TFC_COMPARE_TRAFFIC; which++)
    TFC_TRY(s, list_each(sides, count, (enum tfc_compare_table)which, &lists));
  bool measured = false;
  for (uint32_t i = 0; i < count; i++) measured |= !sides[i].simulated;
  print_different(sides, count, &lists.text);
  if (count == 2)
    print_two(&sides[0], &sides[1], &lists, &lists.text);
  else
    print_many(sides, count, &lists, &lists.text);
  print_legend(&lists, count, &lists.text);
  if (measured)
    tfc_text_printf(&lists.text, "\nRuns are not measured in turns; what the machine did meanwhile shows in rivals\n"
                                 "(undivided, single device).\n");
  if (lists.text.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  for (uint32_t i = 0; sides && i < count; i++) unload(&sides[i]);
  free(sides);
  tfc_report_lists_deinit(&lists);
  return s;
}

void tfc_report_compare_queries(bool is_copy, struct tfc_text *out) {
  const char *const queries[] = {tfc_report_sql_run, sql_result, sql_steps, sql_ops,
                                 sql_totals,         sql_memory, sql_moved, tfc_report_sql_pairs};
  struct tfc_text all = {0};
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) tfc_text_printf(&all, "%s;\n", queries[i]);
  if (all.data)
    tfc_html_query(out,
                   "The queries behind this page, for each run (of the nodes that moved :other is the first run and "
                   ":step its placement)",
                   all.data, is_copy);
  out->failed |= all.failed;
  tfc_text_deinit(&all);
}
