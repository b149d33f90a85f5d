// Makes the list of `tfc-report critical`: the critical path of the answer's representative traced step, how long each
// of its items waited, and the shares of types of operations and of tensors in the paths of the
// traced steps nearest to the median.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/critical.h"
#include "reports/lists.h"
#include "reports/moves.h"
#include "reports/reports.h"
#include "reports/traced.h"
#include "runtime/base/units.h"

static const char *us_text(char *buffer, double us) {
  return us == us ? tfc_show_us(buffer, us) : "-";
}
static double us_of(int64_t ns) {
  return (double)ns * 1e-3;
}
static tfc_str keep(struct tfc_arena *arena, tfc_str text) {
  return tfc_arena_str(arena, text);
}
static tfc_str op_text(const struct tfc_traced *t, uint32_t op, const char *column) {
  return tfc_table_text(&t->op_rows, op, column);
}
static tfc_str transfer_text(const struct tfc_traced *t, uint32_t transfer, const char *column) {
  return tfc_table_text(&t->transfer_rows, transfer, column);
}

// --- Sums over the traced steps --------------------------------------------------------------------------------------

struct share { // a type of operation, or a transferred tensor: its share of all paths
  tfc_str name, source, target;
  int64_t sum, count;
  int32_t output;
  bool other; // the share is that of transfers or of waiting, not of a type of operation
};
struct shares {
  struct share *items;
  uint32_t count, capacity;
};

static tfc_status add_share(struct shares *all, struct tfc_arena *arena, const struct share *key, int64_t ns) {
  for (uint32_t i = 0; i < all->count; i++) {
    struct share *x = &all->items[i];
    if (x->other != key->other || x->output != key->output || !tfc_str_equal(x->name, key->name) ||
        !tfc_str_equal(x->source, key->source) || !tfc_str_equal(x->target, key->target))
      continue;
    x->sum += ns, x->count++;
    return NULL;
  }
  if (all->count == all->capacity) {
    uint32_t grown = all->capacity ? 2 * all->capacity : 64;
    struct share *items = TFC_ARENA_ARRAY(arena, struct share, grown);
    if (!items) return tfc_status_no_memory(NULL);
    if (all->count) memcpy(items, all->items, all->count * sizeof *items);
    all->items = items, all->capacity = grown;
  }
  struct share *x = &all->items[all->count++];
  *x = *key;
  x->name = keep(arena, key->name), x->source = keep(arena, key->source), x->target = keep(arena, key->target);
  x->sum = ns, x->count = 1;
  return NULL;
}

static tfc_status add_path(const struct tfc_traced *t, struct tfc_arena *arena, struct shares *types,
                           struct shares *edges) {
  const struct share waiting = {.name = TFC_STR("waiting"), .other = true},
                     moving = {.name = TFC_STR("transfers"), .other = true};
  tfc_status s = NULL;
  for (uint32_t i = 0; i < t->path_count; i++) {
    const struct tfc_traced_item *item = &t->path[i];
    if (item->waited > 0) TFC_TRY(s, add_share(types, arena, &waiting, item->waited));
    if (item->op != TFC_NONE) {
      struct share key = {.name = op_text(t, item->op, "op")};
      TFC_TRY(s, add_share(types, arena, &key, item->end - item->start));
    } else {
      struct share key = {.name = transfer_text(t, item->transfer, "node"),
                          .source = transfer_text(t, item->transfer, "source"),
                          .target = transfer_text(t, item->transfer, "target"),
                          .output = t->transfers[item->transfer].output};
      TFC_TRY(s, add_share(types, arena, &moving, item->end - item->start));
      TFC_TRY(s, add_share(edges, arena, &key, item->end - item->start));
    }
  }
out:
  return s;
}

static int most_first(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
  return tfc_str_compare(x->name, y->name);
}

// --- Critical path ---------------------------------------------------------------------------------------------------

static tfc_status list_path(const struct tfc_traced *t, struct tfc_report_lists *lists) {
  static const char *const columns[] = {"position", "kind",     "node",    "op",        "device", "source",
                                        "bytes",    "start_us", "time_us", "waited_us", NULL};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(&lists->tables[0], columns));
  for (uint32_t i = 0; i < t->path_count; i++) {
    const struct tfc_traced_item *item = &t->path[i];
    struct tfc_cell *row;
    TFC_TRY(s, tfc_table_add(&lists->tables[0], &row));
    row[0] = tfc_cell_integer(i);
    if (item->op != TFC_NONE) {
      row[1] = tfc_cell_text(TFC_STR("operation"));
      row[2] = tfc_cell_text(keep(&lists->arena, op_text(t, item->op, "node")));
      row[3] = tfc_cell_text(keep(&lists->arena, op_text(t, item->op, "op")));
      row[4] = tfc_cell_text(keep(&lists->arena, op_text(t, item->op, "device")));
    } else {
      row[1] = tfc_cell_text(TFC_STR("transfer"));
      row[2] = tfc_cell_text(keep(&lists->arena, transfer_text(t, item->transfer, "node")));
      row[4] = tfc_cell_text(keep(&lists->arena, transfer_text(t, item->transfer, "target")));
      row[5] = tfc_cell_text(keep(&lists->arena, transfer_text(t, item->transfer, "source")));
      row[6] = tfc_cell_integer(t->transfers[item->transfer].bytes);
    }
    row[7] = tfc_cell_real(us_of(item->start));
    row[8] = tfc_cell_real(us_of(item->end - item->start));
    row[9] = tfc_cell_real(us_of(item->waited));
  }
out:
  return s;
}

static tfc_status list_shares(struct shares *types, struct shares *edges, int64_t steps, int64_t total,
                              struct tfc_report_lists *lists) {
  static const char *const type_columns[] = {"op", "count", "time_us", "percent", NULL};
  static const char *const edge_columns[] = {"node", "output", "source", "target", "steps", "time_us", "percent", NULL};
  const double each = 1.0 / (double)steps, percent = total > 0 ? 100.0 / (double)total : 0;
  struct tfc_cell *row;
  tfc_status s = NULL;
  if (types->count) qsort(types->items, types->count, sizeof *types->items, most_first);
  if (edges->count) qsort(edges->items, edges->count, sizeof *edges->items, most_first);
  TFC_TRY(s, tfc_table_init(&lists->tables[1], type_columns));
  TFC_TRY(s, tfc_table_init(&lists->tables[2], edge_columns));
  for (uint32_t i = 0; i < types->count; i++) {
    const struct share *x = &types->items[i];
    TFC_TRY(s, tfc_table_add(&lists->tables[1], &row));
    row[0] = tfc_cell_text(x->name);
    row[1] = tfc_cell_real((double)x->count * each);
    row[2] = tfc_cell_real(us_of(x->sum) * each);
    row[3] = tfc_cell_real((double)x->sum * percent);
  }
  for (uint32_t i = 0; i < edges->count; i++) {
    const struct share *x = &edges->items[i];
    TFC_TRY(s, tfc_table_add(&lists->tables[2], &row));
    row[0] = tfc_cell_text(x->name);
    row[1] = tfc_cell_integer(x->output);
    row[2] = tfc_cell_text(x->source);
    row[3] = tfc_cell_text(x->target);
    row[4] = tfc_cell_integer(x->count);
    row[5] = tfc_cell_real(us_of(x->sum) * each);
    row[6] = tfc_cell_real((double)x->sum * percent);
  }
out:
  return s;
}

// Items of less than 0.5 % of the step are summed into one line, so that the path of a large graph stays readable.
static void print_path(const struct tfc_table *t, double step_us, struct tfc_text *out) {
  enum { COLUMNS = 80, LEFT = 2 + 3 * 10 + 1 }; // LEFT: columns of the line that the times take
  char a[32], b[32], c[32], from[96], to[96], where[200];
  double small = 0, waited = 0;
  uint32_t count = 0;
  int wide = 2;
  for (uint32_t r = 0; r < t->row_count; r++) {
    const size_t source = tfc_table_text(t, r, "source").size, device = tfc_table_text(t, r, "device").size;
    const size_t size = source ? (source < 8 ? source : 8) + (device < 8 ? device : 8) + 4 : device < 18 ? device : 18;
    if ((int)size > wide) wide = (int)size;
  }
  tfc_text_printf(out, "\n  %-9s %-9s %-9s  %-*s %s\n", "at", "takes", "waited", wide, "on", "operation or tensor");
  for (uint32_t r = 0; r <= t->row_count; r++) {
    double time = tfc_table_number(t, r, "time_us"), wait = tfc_table_number(t, r, "waited_us");
    if (r < t->row_count && time + wait < 0.005 * step_us) {
      small += time, waited += wait, count++;
      continue;
    }
    if (count)
      tfc_text_printf(out, "  %-9s %-9s %-9s  %-*s (%u short one%s)\n", "", us_text(a, small), us_text(b, waited), wide,
                      "", count, count == 1 ? "" : "s");
    small = waited = 0, count = 0;
    if (r == t->row_count) break;
    tfc_str source = tfc_table_text(t, r, "source"), device = tfc_table_text(t, r, "device");
    if (source.size)
      snprintf(where, sizeof where, "%s to %s", tfc_report_fit(from, source, 8), tfc_report_fit(to, device, 8));
    else
      tfc_report_fit(where, device, 18);
    tfc_text_printf(out, "  %-9s %-9s %-9s  %-*s ", us_text(a, tfc_table_number(t, r, "start_us")), us_text(b, time),
                    us_text(c, wait), wide, where);
    tfc_report_add_fit(out, tfc_table_text(t, r, "node"), (size_t)(COLUMNS - LEFT - wide - 1));
    tfc_text_printf(out, "\n");
  }
}

uint32_t tfc_report_path_rows(const struct tfc_table *types, uint32_t most) {
  uint32_t rows = 0;
  while (rows < types->row_count && rows < most && tfc_table_number(types, rows, "time_us") > 0) rows++;
  return rows;
}

struct tfc_report_rest tfc_report_path_rest(const struct tfc_table *types, uint32_t shown) {
  struct tfc_report_rest rest = {0};
  for (uint32_t r = shown; r < types->row_count && tfc_table_number(types, r, "time_us") > 0; r++) {
    rest.rows++;
    rest.time_us += tfc_table_number(types, r, "time_us");
    rest.percent += tfc_table_number(types, r, "percent");
  }
  return rest;
}

tfc_status tfc_report_print_moves(struct tfc_store *store, const struct tfc_query_args *args,
                                  const struct tfc_report_lists *path, uint32_t count, struct tfc_text *out) {
  const struct tfc_table *t = &path->tables[3];
  struct tfc_text head = {0};
  char a[32], from[96], to[96];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_moves_explain(store, args, t, &head));
  if (head.size) tfc_text_printf(out, "\nWhat to move: %s\n", head.data);
  for (uint32_t r = 0; r < t->row_count && r < count; r++) {
    const size_t begin = out->size;
    tfc_text_printf(out, "  %10s  %s to %s: ", us_text(a, tfc_table_number(t, r, "won_us")),
                    tfc_report_fit(from, tfc_table_text(t, r, "source"), 8),
                    tfc_report_fit(to, tfc_table_text(t, r, "target"), 8));
    tfc_report_add_fit(out, tfc_table_text(t, r, "node"), 80 - (out->size - begin));
    tfc_text_printf(out, "\n");
  }
out:
  tfc_text_deinit(&head);
  return s;
}

// Lists the path of the step args->step, and the shares in the paths of the steps that `sql` selects, which
// *out_steps gets. `out_end`: when the step ends; `out_graph`: the run has edges.
static tfc_status list_all(struct tfc_store *store, const struct tfc_query_args *args, const char *sql,
                           struct tfc_report_lists *lists, struct tfc_table *out_steps, int64_t *out_end,
                           bool *out_graph) {
  struct tfc_traced traced = {0}, other = {0};
  struct tfc_table steps = {0}, step_edges = {0};
  struct shares types = {0}, edges = {0};
  int64_t total = 0;
  tfc_status s = NULL;
  lists->names[0] = "path", lists->names[1] = "operations", lists->names[2] = "edges", lists->names[3] = "moves";
  lists->count = 4;
  TFC_TRY(s, tfc_traced_edges(store, args, &step_edges));
  TFC_TRY(s, tfc_traced_load_step(store, args, &step_edges, &traced));
  TFC_TRY(s, list_path(&traced, lists));
  TFC_TRY(s, tfc_report_moves(store, args, &traced, &lists->arena, &lists->tables[3]));
  *out_graph = traced.edge_count > 0;
  *out_end = traced.end;
  TFC_TRY(s, tfc_table_query(store, sql, args, &steps));
  for (uint32_t r = 0; r < steps.row_count; r++) {
    struct tfc_query_args one = *args;
    one.step = tfc_table_cell(&steps, r, 0)->integer;
    const struct tfc_traced *t = one.step == args->step ? &traced : &other;
    tfc_traced_deinit(&other);
    if (t == &other) TFC_TRY(s, tfc_traced_load_step(store, &one, &step_edges, &other));
    total += t->end;
    TFC_TRY(s, add_path(t, &lists->arena, &types, &edges));
  }
  TFC_TRY(s, list_shares(&types, &edges, steps.row_count, total, lists));
  *out_steps = steps;
  steps = (struct tfc_table){0};
out:
  tfc_traced_deinit(&traced);
  tfc_traced_deinit(&other);
  tfc_table_deinit(&steps);
  tfc_table_deinit(&step_edges);
  return s;
}

tfc_status tfc_report_critical_step(struct tfc_store *store, const struct tfc_query_args *args,
                                    struct tfc_report_lists *out) {
  struct tfc_report_lists lists = {0};
  struct tfc_table steps = {0};
  int64_t end;
  bool graph;
  tfc_status s = NULL;
  TFC_TRY(s, list_all(store, args, "SELECT :step AS step", &lists, &steps, &end, &graph));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  tfc_table_deinit(&steps);
  return s;
}

tfc_status tfc_report_critical(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out) {
  // More than half of the steps, those nearest to the median: a few slow ones do not decide the path.
  static const char sql_steps[] =
      "SELECT step, n FROM (SELECT s.step, ROW_NUMBER() OVER (ORDER BY ABS(s.step_us - (SELECT step_median_us FROM"
      " v_result WHERE run_id = :run AND placement_id = :placement)), s.step) AS place, COUNT(*) OVER () AS n FROM"
      " v_step s WHERE s.run_id = :run AND s.placement_id = :placement AND s.traced AND s.phase ="
      " (SELECT phase FROM v_step WHERE run_id = :run AND placement_id = :placement AND step = :step) AND EXISTS"
      " (SELECT 1 FROM v_op o WHERE o.run_id = :run AND o.placement_id = :placement AND o.step = s.step)) WHERE"
      " place <= n / 2 + 1 ORDER BY step";
  struct tfc_report_lists lists = {0};
  struct tfc_table steps = {0};
  struct tfc_query_args args;
  int64_t end = 0;
  bool graph = false;
  char a[32], name[96], from[96], to[96];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  TFC_TRY(s, list_all(store, &args, sql_steps, &lists, &steps, &end, &graph));
  struct tfc_text *text = &lists.text;
  const char *simulated = tfc_report_simulated(store, &args);
  tfc_text_printf(text, "Run %lld: critical path of the answer%s\n", (long long)args.run, simulated);
  if (steps.row_count > 1)
    tfc_text_printf(text, "Mean of %u of the %.0f traced steps, those nearest to the median\n", steps.row_count,
                    tfc_table_number(&steps, 0, "n"));
  if (!graph) tfc_text_printf(text, "This run has no edges: an operation waits for the last tensor that arrived.\n");
  tfc_text_printf(text, "\n  %8s %10s %8s  %s\n", "share", "time", "number", "operations");
  for (uint32_t r = 0; r < lists.tables[1].row_count && r < 15; r++)
    tfc_text_printf(text, "  %6.1f %% %10s %8.1f  %s\n", tfc_table_number(&lists.tables[1], r, "percent"),
                    us_text(a, tfc_table_number(&lists.tables[1], r, "time_us")),
                    tfc_table_number(&lists.tables[1], r, "count"),
                    tfc_table_text(&lists.tables[1], r, "op").size
                        ? tfc_report_fit(name, tfc_table_text(&lists.tables[1], r, "op"), 48)
                        : "(of no type: a cost graph)");
  const struct tfc_report_rest rest =
      tfc_report_path_rest(&lists.tables[1], tfc_report_path_rows(&lists.tables[1], 15));
  if (rest.rows)
    tfc_text_printf(text, "  %6.1f %% %10s %8s  other (%u more: --json has all)\n", rest.percent,
                    us_text(a, rest.time_us), "", rest.rows);
  if (lists.tables[2].row_count)
    tfc_text_printf(text, "\n  %8s %10s %8s  %s\n", "share", "time", "in steps", "transfers");
  for (uint32_t r = 0; r < lists.tables[2].row_count && r < 10; r++) {
    const struct tfc_table *t = &lists.tables[2];
    const size_t begin = text->size;
    tfc_text_printf(text, "  %6.1f %% %10s %8.0f  %s to %s: ", tfc_table_number(t, r, "percent"),
                    us_text(a, tfc_table_number(t, r, "time_us")), tfc_table_number(t, r, "steps"),
                    tfc_report_fit(from, tfc_table_text(t, r, "source"), 8),
                    tfc_report_fit(to, tfc_table_text(t, r, "target"), 8));
    tfc_report_add_fit(text, tfc_table_text(t, r, "node"), 80 - (text->size - begin));
    tfc_text_printf(text, "\n");
  }
  if (lists.tables[2].row_count > 10)
    tfc_text_printf(text, "  and %u more: --json has all\n", lists.tables[2].row_count - 10);
  TFC_TRY(s, tfc_report_print_moves(store, &args, &lists, 10, text));
  if (*simulated)
    tfc_text_printf(text, "\nThe simulated step, which ends after %s:\n", us_text(a, us_of(end)));
  else
    tfc_text_printf(text, "\nStep %lld, nearest to the median, which ends after %s:\n", (long long)args.step,
                    us_text(a, us_of(end)));
  print_path(&lists.tables[0], us_of(end), text);
  if (text->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  tfc_table_deinit(&steps);
  return s;
}
