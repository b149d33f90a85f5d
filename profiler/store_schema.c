// A database's schema as it is to be used: made where there is none, and brought up to date where an older tfc wrote
// it. Who writes changes the file. Who only reads gets what is missing as temporary tables and views of the connection,
// which SQLite finds before those of the file: empty tables, NULL columns and the views of today. What is missing is
// looked for by name, since two databases of one version may differ in it.
#include <stdlib.h>

#include "profiler/schema.h"
#include "profiler/store_private.h"

// What is there and is no database of tfc's, or a damaged one: for who reads it bad input, for who writes it a place
// that cannot be written.
static tfc_code unusable(bool write) {
  return write ? TFC_DATA_LOSS : TFC_INVALID_ARGUMENT;
}

static tfc_status pragma(struct tfc_store *store, const char *sql, bool write, int64_t *out) {
  sqlite3_stmt *q = NULL;
  tfc_status s = NULL;
  bool row = sqlite3_prepare_v2(store->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;
  int code = sqlite3_errcode(store->db);
  if (!row && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB))
    s = tfc_status_make(unusable(write), "%s: %s", store->path,
                        code == SQLITE_NOTADB ? "not an SQLite database" : "the database is damaged or cut short");
  else if (!row)
    s = tfc_store_error(store, "cannot be read");
  else
    *out = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return s;
}

static tfc_status execute(struct tfc_store *store, struct tfc_text *sql) {
  tfc_status s = sql->failed ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory")
                             : tfc_store_exec(store, sql->data, "cannot be brought up to date");
  tfc_text_deinit(sql);
  return s;
}

static tfc_status has(struct tfc_store *store, const char *table, const char *column, bool write, bool *out) {
  char sql[160];
  int64_t count = 0;
  sqlite3_snprintf(sizeof sql, sql, "SELECT COUNT(*) FROM pragma_table_info(%Q) WHERE %Q IN ('', name)", table, column);
  TFC_RETURN_IF_ERROR(pragma(store, sql, write, &count));
  *out = count > 0;
  return NULL;
}

// The columns of a table that the file lacks, those of one table together.
static tfc_status add_columns(struct tfc_store *store, bool write) {
  for (const struct tfc_schema_column *c = tfc_schema_columns; c->name; c++) {
    struct tfc_text sql = {0};
    uint32_t missing = 0;
    bool first = true, there = true;
    for (const struct tfc_schema_column *b = tfc_schema_columns; b != c; b++) first &= strcmp(b->table, c->table) != 0;
    if (!first) continue;
    if (!write) tfc_text_printf(&sql, "CREATE TEMP VIEW %s AS SELECT *", c->table);
    for (const struct tfc_schema_column *d = c; d->name; d++) {
      if (strcmp(d->table, c->table) != 0) continue;
      tfc_status s = has(store, d->table, d->name, write, &there);
      if (s) {
        tfc_text_deinit(&sql);
        return s;
      }
      if (there) continue;
      missing++;
      if (write)
        tfc_text_printf(&sql, "ALTER TABLE %s ADD COLUMN %s %s;", d->table, d->name, d->type);
      else
        tfc_text_printf(&sql, ", NULL AS %s", d->name);
    }
    if (!write) tfc_text_printf(&sql, " FROM main.%s", c->table);
    if (missing)
      TFC_RETURN_IF_ERROR(execute(store, &sql));
    else
      tfc_text_deinit(&sql);
  }
  return NULL;
}

static tfc_status add_tables_and_views(struct tfc_store *store, bool write) {
  for (const struct tfc_schema_part *p = tfc_schema_added; p->name; p++) {
    struct tfc_text sql = {0};
    bool there;
    TFC_RETURN_IF_ERROR(has(store, p->name, "", write, &there));
    if (there) continue;
    tfc_text_printf(&sql, "CREATE %sTABLE %s (%s) STRICT, WITHOUT ROWID", write ? "" : "TEMP ", p->name, p->text);
    TFC_RETURN_IF_ERROR(execute(store, &sql));
  }
  TFC_RETURN_IF_ERROR(add_columns(store, write));
  for (const struct tfc_schema_part *p = tfc_schema_views; p->name; p++) {
    struct tfc_text sql = {0};
    if (write) tfc_text_printf(&sql, "DROP VIEW IF EXISTS %s;", p->name);
    tfc_text_printf(&sql, "CREATE %sVIEW %s AS %s", write ? "" : "TEMP ", p->name, p->text);
    TFC_RETURN_IF_ERROR(execute(store, &sql));
  }
  return NULL;
}

tfc_status tfc_store_prepare_schema(struct tfc_store *store, bool write) {
  int64_t id = 0, version = 0, tables = 0;
  TFC_RETURN_IF_ERROR(pragma(store, "PRAGMA application_id", write, &id));
  TFC_RETURN_IF_ERROR(pragma(store, "PRAGMA user_version", write, &version));
  TFC_RETURN_IF_ERROR(pragma(store, "SELECT COUNT(*) FROM sqlite_schema", write, &tables));
  if (tables > 0 && id != TFC_SCHEMA_APPLICATION_ID)
    return tfc_status_make(unusable(write), "%s: an SQLite database, but not one of tfc's", store->path);
  if (version > TFC_SCHEMA_VERSION)
    return tfc_status_make(unusable(write), "%s: written by a newer tfc (schema %lld, this one knows %d)", store->path,
                           (long long)version, TFC_SCHEMA_VERSION);
  if (tables == 0 && !write) return tfc_status_make(TFC_NOT_FOUND, "%s: holds no runs", store->path);
  if (tables > 0 && version == TFC_SCHEMA_VERSION) return NULL;
  if (!write) return add_tables_and_views(store, false);
  TFC_RETURN_IF_ERROR(tfc_store_begin(store));
  if (tables == 0) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_tables, "cannot be written"));
  TFC_RETURN_IF_ERROR(add_tables_and_views(store, true));
  char sql[128];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", TFC_SCHEMA_APPLICATION_ID,
                   TFC_SCHEMA_VERSION);
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, sql, "cannot be written"));
  return tfc_store_commit(store);
}
