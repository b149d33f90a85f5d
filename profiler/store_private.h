// Declarations for all files of the store: the store itself, its statements, and functions that run them.
#ifndef TFC_PROFILER_STORE_PRIVATE_H
#define TFC_PROFILER_STORE_PRIVATE_H

#include <sqlite3.h>

#include "profiler/lock.h"
#include "profiler/store.h"

// NAME, SQL: all statements that write during steps; each is prepared only once.
#define TFC_STORE_STATEMENTS(X)                                                                                        \
  X(RUN, "INSERT INTO run (state, program, command, version, started_unix_s, graph, graph_sha256, graph_nodes,"        \
         " objective, algorithms, seed, label, host, cpu_model, blas_core)"                                            \
         " VALUES ('running', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)")                           \
  X(FINISH, "UPDATE run SET state = ?2, ended_unix_s = ?3, exit_code = ?4, algorithm = ?5, best_placement_id = ?6,"    \
            " speedup = ?7, speedup_low = ?8, speedup_high = ?9, bound_us = ?10, bound_name = ?11,"                    \
            " trace_overhead = ?12, tau = ?13, tau_placements = ?14, answer = ?15, message = ?16 WHERE run_id = ?1")   \
  X(LABEL, "UPDATE run SET label = ?2 WHERE run_id = ?1")                                                              \
  X(GRAPH_NODES, "UPDATE run SET graph_nodes = ?2 WHERE run_id = ?1")                                                  \
  X(STATE, "INSERT OR REPLACE INTO state (run_id, name, value) VALUES (?1, ?2, ?3)")                                   \
  X(WARNING, "INSERT INTO warning (run_id, number, text) VALUES (?1, (SELECT COALESCE(MAX(number), 0) + 1 FROM "       \
             "warning WHERE run_id = ?1), ?2) ON CONFLICT DO NOTHING")                                                 \
  X(DEVICE,                                                                                                            \
    "INSERT OR REPLACE INTO device (run_id, device_id, name, kind, model, tensorflow, label, cores, memory_bytes, "    \
    "dispatch_us, slowdown, memory_space, math) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")      \
  X(LINK,                                                                                                              \
    "INSERT OR REPLACE INTO link (run_id, source, target, bytes, time_us, samples) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")   \
  X(NODE, "INSERT OR REPLACE INTO node (run_id, node_id, name, op, unit_id, flops, bytes_touched, memory_bytes, "      \
          "output_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                 \
  X(COST, "INSERT OR REPLACE INTO cost (run_id, node_id, kind, median_us, q1_us, q3_us, fastest_us, samples) VALUES "  \
          "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                                          \
  X(EDGE, "INSERT OR REPLACE INTO edge (run_id, edge_id, producer, output, consumer, bytes) VALUES (?1, ?2, ?3, ?4, "  \
          "?5, ?6)")                                                                                                   \
  X(PLACEMENT,                                                                                                         \
    "INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, digest, state, label,"               \
    " simulated_us, median_us, q1_us, q3_us, steps, ratio, reward, cost_s, at_s, transfers, transfer_bytes,"           \
    " message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"               \
    " ?19, ?20, ?21)")                                                                                                 \
  X(FINAL, "UPDATE placement SET name = COALESCE(?2, name), final_median_us = ?3, final_q1_us = ?4, final_q3_us = ?5," \
           " final_steps = ?6 WHERE placement = ?1")                                                                   \
  X(ASSIGNMENT, "INSERT INTO assignment (placement, unit_id, device_id) VALUES (?1, ?2, ?3)")                          \
  X(STEP, "INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) VALUES (?1, ?2, ?3, ?4, "   \
          "?5, ?6, ?7)")                                                                                               \
  X(BUSY, "INSERT INTO busy (placement, step, device_id, operations_ns, busy_ns, operations, launch_ns, transfer_ns, " \
          "dependency_ns, end_ns, launch_gap_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")               \
  X(OP, "INSERT INTO op (placement, step, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, "          \
        "launched_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                    \
  X(TUNING, "INSERT OR REPLACE INTO tuning (device, key, value) VALUES (?1, ?2, ?3)")                                  \
  X(OP_TOTAL, "INSERT OR REPLACE INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, "       \
              "total_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                         \
  X(TRANSFER, "INSERT INTO transfer (placement, step, position, node_id, output, source, target, bytes, start_ns, "    \
              "duration_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                                         \
  X(PREDICTION, "INSERT OR REPLACE INTO prediction (placement, prior_us, learned_us, learned_sd) VALUES (?1, ?2, ?3, " \
                "?4)")                                                                                                 \
  X(PROPOSER, "INSERT OR REPLACE INTO proposer (run_id, name, learned, measured, won, best_simulated_us, "             \
              "best_measured_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                 \
  X(POLICY_SEARCH, "INSERT OR REPLACE INTO policy_search (placement, samples, entropy, invalid_share, move_turns, "    \
                   "move_wins, move_gain, move_s, other_gain, other_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "       \
                   "?9, ?10)")                                                                                         \
  X(MEMORY, "INSERT OR REPLACE INTO memory (placement, device_id, peak_bytes, complete) VALUES (?1, ?2, ?3, ?4)")      \
  X(LOAD, "INSERT OR REPLACE INTO load (placement, load_us, samples, at_once) VALUES (?1, ?2, ?3, ?4)")                \
  X(DEVICE_LOAD, "INSERT OR REPLACE INTO device_load (placement, device_id, load_us) VALUES (?1, ?2, ?3)")             \
  X(MOVES_TRIED, "INSERT OR REPLACE INTO moves_tried (placement, units, value_us) VALUES (?1, ?2, ?3)")                \
  X(SINGLE_MOVE, "INSERT OR REPLACE INTO single_move (placement, unit_id, node_id, operations, source, target, "       \
                 "won_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                        \
  X(WORK, "INSERT INTO work (placement, step, position, kind, name, device_id, node_id, context, stream, start_ns, "   \
          "duration_ns, grid, block, registers, shared_bytes, bytes, direction, transfer, segment) VALUES (?1, ?2, "   \
          "?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"                                        \
          " ?18, ?19)")                                                                                                \
  X(CALL, "INSERT INTO gpu_call (placement, step, position, kind, name, context, stream, start_ns, duration_ns, "      \
          "bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                                                   \
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

tfc_status tfc_store_exec(struct tfc_store *store, const char *sql, const char *what);
// Runs a statement. One letter for each value: i int64_t, f double (NaN is NULL, must not be infinite), F double (must
// be finite), s const char * (NULL is NULL), S const char * (NULL is ""), v tfc_str as text, b tfc_str as bytes.
tfc_status tfc_store_put(struct tfc_store *store, enum tfc_store_statement statement, const char *types, ...);

#endif
