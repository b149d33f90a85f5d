// Declarations for all files of the store: the store itself, its statements, and functions that run them.
#ifndef TFC_PROFILER_STORE_PRIVATE_H
#define TFC_PROFILER_STORE_PRIVATE_H

#include <sqlite3.h>

#include "profiler/lock.h"
#include "profiler/store.h"

// NAME, the statement without its columns: all statements that write during steps. The columns come from the first row
// that is written (tfc_store_put). WARNING is whole, because it computes one of its columns.
#define TFC_STORE_STATEMENTS(X)                                                                                        \
  X(RUN, "INSERT INTO run")                                                                                            \
  X(FINISH, "UPDATE run")                                                                                              \
  X(LABEL, "UPDATE run")                                                                                               \
  X(GRAPH_NODES, "UPDATE run")                                                                                         \
  X(STATE, "INSERT OR REPLACE INTO state")                                                                             \
  X(WARNING, "INSERT INTO warning (run_id, number, text) VALUES (:run_id, (SELECT COALESCE(MAX(number), 0) + 1 FROM "  \
             "warning WHERE run_id = :run_id), :text) ON CONFLICT DO NOTHING")                                         \
  X(DEVICE, "INSERT OR REPLACE INTO device")                                                                           \
  X(LINK, "INSERT OR REPLACE INTO link")                                                                               \
  X(NODE, "INSERT OR REPLACE INTO node")                                                                               \
  X(COST, "INSERT OR REPLACE INTO cost")                                                                               \
  X(EDGE, "INSERT OR REPLACE INTO edge")                                                                               \
  X(PLACEMENT, "INSERT INTO placement")                                                                                \
  X(FINAL, "UPDATE placement")                                                                                         \
  X(NAME, "UPDATE placement")                                                                                          \
  X(ASSIGNMENT, "INSERT INTO assignment")                                                                              \
  X(STEP, "INSERT INTO step")                                                                                          \
  X(BUSY, "INSERT INTO busy")                                                                                          \
  X(OP, "INSERT INTO op")                                                                                              \
  X(TUNING, "INSERT OR REPLACE INTO tuning")                                                                           \
  X(OP_TOTAL, "INSERT OR REPLACE INTO op_total")                                                                       \
  X(TRANSFER, "INSERT INTO transfer")                                                                                  \
  X(PREDICTION, "INSERT OR REPLACE INTO prediction")                                                                   \
  X(PROPOSER, "INSERT OR REPLACE INTO proposer")                                                                       \
  X(POLICY_SEARCH, "INSERT OR REPLACE INTO policy_search")                                                             \
  X(MEMORY, "INSERT OR REPLACE INTO memory")                                                                           \
  X(LOAD, "INSERT OR REPLACE INTO load")                                                                               \
  X(DEVICE_LOAD, "INSERT OR REPLACE INTO device_load")                                                                 \
  X(MOVES_TRIED, "INSERT OR REPLACE INTO moves_tried")                                                                 \
  X(SINGLE_MOVE, "INSERT OR REPLACE INTO single_move")                                                                 \
  X(WORK, "INSERT INTO work")                                                                                          \
  X(CALL, "INSERT INTO gpu_call")                                                                                      \
  X(DROP_WORKS, "DELETE FROM work")                                                                                    \
  X(DROP_CALLS, "DELETE FROM gpu_call")                                                                                \
  X(DROP_OPS, "DELETE FROM op")                                                                                        \
  X(DROP_TRANSFERS, "DELETE FROM transfer")
enum tfc_store_statement {
#define TFC_STORE_ENUM(name, verb) TFC_STORE_##name,
  TFC_STORE_STATEMENTS(TFC_STORE_ENUM)
#undef TFC_STORE_ENUM
      TFC_STORE_STATEMENT_COUNT
};

struct tfc_store {
  sqlite3 *db;
  char *path;
  struct tfc_lock *lock; // NULL: read-only
  bool is_copy;          // tfc_store_is_copy
  sqlite3_stmt *statements[TFC_STORE_STATEMENT_COUNT];
};

tfc_status tfc_store_exec(struct tfc_store *store, const char *sql, const char *what);

// A value and the column that it is for.
struct tfc_store_value {
  const char *column;
  enum tfc_store_type { TFC_STORE_NULL, TFC_STORE_INTEGER, TFC_STORE_REAL, TFC_STORE_TEXT, TFC_STORE_BYTES } type;
  union {
    int64_t integer;
    double real; // must be finite
    tfc_str text;
  };
};

// Runs a statement: inserts a row of `count` values; or updates the rows whose first column has the first value,
// setting the others; or deletes them. Every call of one statement must name the same columns in the same order,
// because it is prepared only once.
tfc_status tfc_store_put(struct tfc_store *store, enum tfc_store_statement statement, const struct tfc_store_value *row,
                         size_t count);

#endif
