// What a query of a database answers, as a text.
#ifndef TFC_TESTS_COMMON_ROWS_H
#define TFC_TESTS_COMMON_ROWS_H

#include <sqlite3.h>
#include <stdio.h>

// The rows, as "1|x,2|y"; NULL is "-". If the query is wrong, the error. The text exists until the next call.
static inline const char *test_rows(sqlite3 *db, const char *sql) {
  static char got[2000];
  sqlite3_stmt *q = NULL;
  size_t at = 0;
  got[0] = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) {
    snprintf(got, sizeof got, "%s", sqlite3_errmsg(db));
    return got;
  }
  for (int n = 0; sqlite3_step(q) == SQLITE_ROW; n++)
    for (int i = 0; i < sqlite3_column_count(q) && at < sizeof got; i++) {
      const char *text = (const char *)sqlite3_column_text(q, i);
      at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", i ? "|" : n ? "," : "", text ? text : "-");
    }
  sqlite3_finalize(q);
  return got;
}

#endif
