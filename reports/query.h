// Query: reads rows of the database's views into a table in memory. Queries may use the parameters :run, :placement,
// :step and :other (the numbers in `args`).
//
//   struct tfc_table t = {0};
//   TFC_TRY(s, tfc_table_query(store, "SELECT name FROM v_device WHERE run_id = :run", &args, &t));
//   for (uint32_t r = 0; r < t.row_count; r++) use(tfc_table_text(&t, r, 0));
//   tfc_table_deinit(&t);
//
// Only one thread may use a store. INTERNAL: the query is wrong, with SQLite's message; INVALID_ARGUMENT: the database
// cannot be read.
#ifndef TFC_REPORTS_QUERY_H
#define TFC_REPORTS_QUERY_H

#include "profiler/store.h"
#include "runtime/base/arena.h"

struct tfc_query_args {
  int64_t run, placement, step, other;
};
typedef enum tfc_cell_kind { TFC_CELL_NULL, TFC_CELL_INTEGER, TFC_CELL_REAL, TFC_CELL_TEXT } tfc_cell_kind;
struct tfc_cell {
  tfc_cell_kind kind;
  int64_t integer;
  double real; // also for an integer; NaN for NULL and text
  tfc_str text;
};
struct tfc_table {
  struct tfc_arena arena;
  uint32_t column_count, row_count, row_capacity;
  const char **names;     // [column_count]
  struct tfc_cell *cells; // [row_count * column_count]
};
// What reports say of operations and devices is what they did in one step, so that all figures add up: the
// representative one (tfc_report_focus). Only a placement of which no step was recorded operation by operation has
// medians instead.
//
// Begins a query: `took` has a row for each operation of a placement and its device, with its time in that step (all
// its runs: in loops there are many) and their number.
#define TFC_SQL_TOOK                                                                                                   \
  "WITH took AS (SELECT node_id, node, op, device_id, SUM(duration_us) AS us, COUNT(*) AS n FROM v_op WHERE run_id ="  \
  " :run AND placement_id = :placement AND step = :step GROUP BY node_id, device_id UNION ALL SELECT node_id, node,"   \
  " op, device_id, median_us, 1 FROM v_op_total WHERE run_id = :run AND placement_id = :placement AND :step < 0) "
// Whether the run's graph has loops: operations that run several times in a step otherwise run in pieces.
#define TFC_SQL_HAS_LOOPS                                                                                              \
  "EXISTS (SELECT 1 FROM v_node WHERE run_id = :run AND op IN ('NextIteration', 'RefNextIteration', 'While',"          \
  " 'StatelessWhile', 'For'))"
// Whether the peak of the device `d.device_id` is all that it held (1), or what its variables take (0). Runs of older
// versions did not record it: there, steps with loops are not complete.
#define TFC_SQL_PEAK_COMPLETE                                                                                          \
  "COALESCE((SELECT m.complete FROM v_memory m WHERE m.run_id = :run AND m.placement_id = :placement AND"              \
  " m.device_id = d.device_id), CASE WHEN (SELECT program = 'tfc-place' FROM v_run WHERE run_id = :run) AND"           \
  " " TFC_SQL_HAS_LOOPS " THEN 0 END)"
// The share of the step, in percent, that a column of v_busy had on the device `d.device_id`. Without such a step: the
// median over the traced steps of the final measurement or, if it took no part in that, of those that chose it.
#define TFC_SQL_SHARE(column)                                                                                          \
  "(SELECT AVG(share) FROM (SELECT 100.0 * b." column " / b.step_us AS share, ROW_NUMBER() OVER (ORDER BY b." column   \
  " / b.step_us) AS place, COUNT(*) OVER () AS n FROM v_busy b JOIN v_step s USING (run_id, placement_id, step) WHERE" \
  " b.run_id = :run AND b.placement_id = :placement AND b.device_id = d.device_id AND b." column " IS NOT NULL AND"    \
  " b.step_us > 0 AND (b.step = :step OR (:step < 0 AND s.phase = (SELECT phase FROM v_step WHERE run_id = :run AND "  \
  "placement_id = :placement AND traced ORDER BY phase <> 'final', phase = 'profile' LIMIT 1)))) WHERE 2 * place "     \
  "BETWEEN n AND n + 2)"
TFC_MUST_USE tfc_status tfc_table_query(struct tfc_store *store, const char *sql, const struct tfc_query_args *args,
                                        struct tfc_table *out);
void tfc_table_deinit(struct tfc_table *table);

// These functions make a table that is computed and not queried: first its columns, then row by row; cells of a new row
// are NULL. `columns` ends with NULL and must exist as long as the table. RESOURCE_EXHAUSTED: out of memory.
TFC_MUST_USE tfc_status tfc_table_init(struct tfc_table *table, const char *const *columns);
TFC_MUST_USE tfc_status tfc_table_add(struct tfc_table *table, struct tfc_cell **out_row);
struct tfc_cell tfc_cell_integer(int64_t value);
struct tfc_cell tfc_cell_real(double value); // NULL for NaN
struct tfc_cell tfc_cell_text(tfc_str text); // the text is not copied

// Writes comma-separated values with a line of names (RFC 4180; quoted where a cell has a comma, a quote or a line's
// end).
void tfc_table_csv(const struct tfc_table *table, struct tfc_text *out);

static inline const struct tfc_cell *tfc_table_cell(const struct tfc_table *t, uint32_t row, uint32_t column) {
  return &t->cells[(size_t)row * t->column_count + column];
}
// Finds a cell by its column's name; NULL: there is no such column.
const struct tfc_cell *tfc_table_find(const struct tfc_table *table, uint32_t row, const char *column);
double tfc_table_number(const struct tfc_table *table, uint32_t row, const char *column); // NaN: NULL or absent
tfc_str tfc_table_text(const struct tfc_table *table, uint32_t row, const char *column);  // "" for NULL or absent

#endif
