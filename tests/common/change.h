// Changes a database by SQL, for tests of runs that are unusual, or that another program changed.
#ifndef TFC_TESTS_COMMON_CHANGE_H
#define TFC_TESTS_COMMON_CHANGE_H

#include <sqlite3.h>

#include "tests/common/test.h"

// The test fails if the database cannot be opened, or if SQLite refuses a statement.
static inline void change_database(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *error = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s: %s", sql, error);
  sqlite3_close(db);
}

#endif
