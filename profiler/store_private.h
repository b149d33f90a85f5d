// Shared by the store's files: the record, and one way to run a statement with values.
#ifndef TFC_PROFILER_STORE_PRIVATE_H
#define TFC_PROFILER_STORE_PRIVATE_H

#include <sqlite3.h>

#include "profiler/lock.h"
#include "profiler/store.h"

// NAME, SQL: every writing statement of the step path, prepared once.
#define TFC_STORE_STATEMENTS(X)                                                                                        \
  X(RUN, "INSERT INTO run (state, program, command, version, started_unix_s, graph, graph_sha256, graph_nodes,"        \
         " objective, algorithms, seed, label, host, cpu_model, blas_core)"                                            \
         " VALUES ('running', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)")                           \
  X(FINISH, "UPDATE run SET state = ?2, ended_unix_s = ?3, exit_code = ?4, algorithm = ?5, best_placement_id = ?6,"    \
            " speedup = ?7, speedup_low = ?8, speedup_high = ?9, bound_us = ?10, bound_name = ?11,"                    \
            " trace_overhead = ?12, tau = ?13, tau_placements = ?14, answer = ?15, message = ?16 WHERE run_id = ?1")   \
  X(LABEL, "UPDATE run SET label = ?2 WHERE run_id = ?1")                                                              \
  X(STATE, "INSERT OR REPLACE INTO state VALUES (?1, ?2, ?3)")                                                         \
  X(DEVICE, "INSERT OR REPLACE INTO device VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")           \
  X(LINK, "INSERT OR REPLACE INTO link VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                               \
  X(NODE, "INSERT OR REPLACE INTO node VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                   \
  X(COST, "INSERT OR REPLACE INTO cost VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                       \
  X(EDGE, "INSERT OR REPLACE INTO edge VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                               \
  X(PLACEMENT,                                                                                                         \
    "INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, digest, state, label,"               \
    " simulated_us, median_us, q1_us, q3_us, steps, ratio, reward, cost_s, at_s, transfers, transfer_bytes,"           \
    " message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"               \
    " ?19, ?20, ?21)")                                                                                                 \
  X(FINAL, "UPDATE placement SET name = COALESCE(?2, name), final_median_us = ?3, final_q1_us = ?4, final_q3_us = ?5," \
           " final_steps = ?6 WHERE placement = ?1")                                                                   \
  X(ASSIGNMENT, "INSERT INTO assignment VALUES (?1, ?2, ?3)")                                                          \
  X(STEP, "INSERT INTO step VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                      \
  X(BUSY, "INSERT INTO busy VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")                                    \
  X(OP, "INSERT INTO op VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                  \
  X(TUNING, "INSERT OR REPLACE INTO tuning VALUES (?1, ?2, ?3)")                                                       \
  X(OP_TOTAL, "INSERT OR REPLACE INTO op_total VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                   \
  X(TRANSFER, "INSERT INTO transfer VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                                 \
  X(MEMORY, "INSERT OR REPLACE INTO memory VALUES (?1, ?2, ?3)")                                                       \
  X(WORK, "INSERT INTO work VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"       \
          " ?18, ?19)")                                                                                                \
  X(CALL, "INSERT INTO gpu_call VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                                     \
  X(DROP_WORKS, "DELETE FROM work WHERE placement = ?1")                                                               \
  X(DROP_CALLS, "DELETE FROM gpu_call WHERE placement = ?1")                                                           \
  X(DROP_OPS, "DELETE FROM op WHERE placement = ?1")                                                                   \
  X(DROP_TRANSFERS, "DELETE FROM transfer WHERE placement = ?1")
enum tfc_store_statement {
#define TFC_STORE_ENUM(name, sql) TFC_STORE_##name,
  TFC_STORE_STATEMENTS(TFC_STORE_ENUM)
#undef TFC_STORE_ENUM
      TFC_STORE_STATEMENT_COUNT
};

struct tfc_store {
  sqlite3 *db;
  char *path;
  struct tfc_lock *lock; // NULL: read-only
  sqlite3_stmt *statements[TFC_STORE_STATEMENT_COUNT];
};

// What sqlite says, with the path, as a status; an open transaction is rolled back.
tfc_status tfc_store_error(struct tfc_store *store, const char *what);
tfc_status tfc_store_exec(struct tfc_store *store, const char *sql, const char *what);
// Runs a statement. One letter for each value: i int64_t, f double (NaN is NULL, must not be infinite), F double (must
// be finite), s const char * (NULL is NULL), S const char * (NULL is ""), v tfc_str as text, b tfc_str as bytes.
tfc_status tfc_store_put(struct tfc_store *store, enum tfc_store_statement statement, const char *types, ...);

#endif
