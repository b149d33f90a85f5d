#include "reports/query.h"

#include <math.h>
#include <sqlite3.h>

tfc_status tfc_table_query(struct tfc_store *store, const char *sql, const struct tfc_query_args *args,
                           struct tfc_table *out) {
  sqlite3 *db = tfc_store_handle(store);
  sqlite3_stmt *statement = NULL;
  struct tfc_table t = {0};
  size_t capacity = 0;
  tfc_status s = NULL;
  int rc;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
    TFC_FAIL(s, TFC_INTERNAL, "%s: %s, in: %s", tfc_store_path(store), sqlite3_errmsg(db), sql);
  const struct {
    const char *name;
    int64_t value;
  } parameters[] = {
      {":run", args->run}, {":placement", args->placement}, {":step", args->step}, {":other", args->other}};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
    int index = sqlite3_bind_parameter_index(statement, parameters[i].name);
    if (index > 0) sqlite3_bind_int64(statement, index, parameters[i].value);
  }
  t.column_count = (uint32_t)sqlite3_column_count(statement);
  t.names = TFC_ARENA_ARRAY(&t.arena, const char *, (size_t)t.column_count + 1);
  if (!t.names) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t c = 0; c < t.column_count; c++)
    t.names[c] = tfc_arena_str(&t.arena, tfc_str_from(sqlite3_column_name(statement, (int)c))).data;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
    if (t.row_count == capacity) {
      size_t grown = capacity ? 2 * capacity : 64;
      struct tfc_cell *cells = TFC_ARENA_ARRAY(&t.arena, struct tfc_cell, grown * t.column_count);
      if (!cells) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
      if (capacity) memcpy(cells, t.cells, capacity * t.column_count * sizeof *cells);
      t.cells = cells, capacity = grown;
    }
    struct tfc_cell *row = &t.cells[(size_t)t.row_count++ * t.column_count];
    for (uint32_t c = 0; c < t.column_count; c++) {
      row[c].real = NAN;
      switch (sqlite3_column_type(statement, (int)c)) {
      case SQLITE_INTEGER:
        row[c].kind = TFC_CELL_INTEGER;
        row[c].integer = sqlite3_column_int64(statement, (int)c);
        row[c].real = (double)row[c].integer;
        break;
      case SQLITE_FLOAT:
        row[c].kind = TFC_CELL_REAL;
        row[c].real = sqlite3_column_double(statement, (int)c);
        break;
      case SQLITE_NULL: break;
      default:
        row[c].kind = TFC_CELL_TEXT;
        row[c].text = tfc_arena_str(&t.arena, (tfc_str){(const char *)sqlite3_column_text(statement, (int)c),
                                                        (size_t)sqlite3_column_bytes(statement, (int)c)});
      }
    }
  }
  if (rc != SQLITE_DONE) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", tfc_store_path(store), sqlite3_errmsg(db));
  *out = t;
  t = (struct tfc_table){0};
out:
  sqlite3_finalize(statement);
  tfc_arena_deinit(&t.arena);
  return s;
}

void tfc_table_deinit(struct tfc_table *table) {
  tfc_arena_deinit(&table->arena);
  *table = (struct tfc_table){0};
}

const struct tfc_cell *tfc_table_find(const struct tfc_table *table, uint32_t row, const char *column) {
  if (row >= table->row_count) return NULL;
  for (uint32_t c = 0; c < table->column_count; c++)
    if (strcmp(table->names[c], column) == 0) return tfc_table_cell(table, row, c);
  return NULL;
}
double tfc_table_number(const struct tfc_table *table, uint32_t row, const char *column) {
  const struct tfc_cell *cell = tfc_table_find(table, row, column);
  return cell ? cell->real : NAN;
}
tfc_str tfc_table_text(const struct tfc_table *table, uint32_t row, const char *column) {
  const struct tfc_cell *cell = tfc_table_find(table, row, column);
  return cell && cell->kind == TFC_CELL_TEXT ? cell->text : (tfc_str){"", 0};
}
