#include "reports/query.h"

#include <math.h>
#include <sqlite3.h>

tfc_status tfc_table_add(struct tfc_table *t, struct tfc_cell **out_row) {
  if (t->row_count == t->row_capacity) {
    uint32_t grown = t->row_capacity ? 2 * t->row_capacity : 64;
    struct tfc_cell *cells = TFC_ARENA_ARRAY(&t->arena, struct tfc_cell, (size_t)grown * t->column_count);
    if (!cells) return tfc_status_no_memory(NULL);
    if (t->row_count) memcpy(cells, t->cells, (size_t)t->row_count * t->column_count * sizeof *cells);
    t->cells = cells, t->row_capacity = grown;
  }
  *out_row = &t->cells[(size_t)t->row_count++ * t->column_count];
  for (uint32_t c = 0; c < t->column_count; c++) (*out_row)[c] = (struct tfc_cell){.real = NAN};
  return NULL;
}

tfc_status tfc_table_init(struct tfc_table *table, const char *const *columns) {
  struct tfc_table t = {0};
  while (columns[t.column_count]) t.column_count++;
  t.names = TFC_ARENA_ARRAY(&t.arena, const char *, (size_t)t.column_count + 1);
  if (!t.names) return tfc_status_no_memory(NULL);
  for (uint32_t c = 0; c < t.column_count; c++) t.names[c] = columns[c];
  *table = t;
  return NULL;
}

struct tfc_cell tfc_cell_integer(int64_t value) {
  return (struct tfc_cell){.kind = TFC_CELL_INTEGER, .integer = value, .real = (double)value};
}
struct tfc_cell tfc_cell_real(double value) {
  return (struct tfc_cell){.kind = value == value ? TFC_CELL_REAL : TFC_CELL_NULL, .real = value};
}
struct tfc_cell tfc_cell_text(tfc_str text) {
  return (struct tfc_cell){.kind = TFC_CELL_TEXT, .real = NAN, .text = text};
}

static void add_quoted(struct tfc_text *out, tfc_str text) {
  bool plain = true;
  for (size_t i = 0; i < text.size; i++) plain &= !strchr(",\"\r\n", text.data[i]) && text.data[i];
  if (plain) {
    tfc_text_add(out, text);
    return;
  }
  tfc_text_add(out, TFC_STR("\""));
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == '"') tfc_text_add(out, TFC_STR("\""));
    tfc_text_add(out, (tfc_str){&text.data[i], 1});
  }
  tfc_text_add(out, TFC_STR("\""));
}
void tfc_table_csv(const struct tfc_table *t, struct tfc_text *out) {
  for (uint32_t c = 0; c < t->column_count; c++) {
    if (c) tfc_text_add(out, TFC_STR(","));
    add_quoted(out, tfc_str_from(t->names[c]));
  }
  tfc_text_add(out, TFC_STR("\r\n"));
  for (uint32_t r = 0; r < t->row_count; r++) {
    for (uint32_t c = 0; c < t->column_count; c++) {
      const struct tfc_cell *cell = tfc_table_cell(t, r, c);
      if (c) tfc_text_add(out, TFC_STR(","));
      if (cell->kind == TFC_CELL_INTEGER) tfc_text_printf(out, "%lld", (long long)cell->integer);
      if (cell->kind == TFC_CELL_REAL) tfc_text_printf(out, "%.15g", cell->real);
      if (cell->kind == TFC_CELL_TEXT) add_quoted(out, cell->text);
    }
    tfc_text_add(out, TFC_STR("\r\n"));
  }
}

tfc_status tfc_table_query(struct tfc_store *store, const char *sql, const struct tfc_query_args *args,
                           struct tfc_table *out) {
  sqlite3 *db = tfc_store_handle(store);
  sqlite3_stmt *statement = NULL;
  struct tfc_table t = {0};
  tfc_status s = NULL;
  int rc;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) TFC_TRY(s, tfc_store_unreadable(store));
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
  if (!t.names) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t c = 0; c < t.column_count; c++)
    t.names[c] = tfc_arena_str(&t.arena, tfc_str_from(sqlite3_column_name(statement, (int)c))).data;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
    struct tfc_cell *row;
    TFC_TRY(s, tfc_table_add(&t, &row));
    for (uint32_t c = 0; c < t.column_count; c++) {
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
  if (rc != SQLITE_DONE) TFC_TRY(s, tfc_store_unreadable(store));
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
