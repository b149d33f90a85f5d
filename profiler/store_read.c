#include "profiler/store_read.h"

#include <math.h>

#include "profiler/store_private.h"
#include "profiler/store_rows.h"

static tfc_status prepare(struct tfc_store *store, const char *sql, int64_t key, sqlite3_stmt **out) {
  if (sqlite3_prepare_v2(store->db, sql, -1, out, NULL) != SQLITE_OK) return tfc_store_unreadable(store);
  sqlite3_bind_int64(*out, 1, key);
  return NULL;
}

static const char *text_of(sqlite3_stmt *q, int i) {
  return (const char *)sqlite3_column_text(q, i);
}
// The text of a column that tfc always fills; "" if somebody else made the table and left the column empty.
static const char *word_of(sqlite3_stmt *q, int i) {
  const char *text = text_of(q, i);
  return text ? text : "";
}
static double number_of(sqlite3_stmt *q, int i) {
  return sqlite3_column_type(q, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, i);
}
static uint32_t count_of(sqlite3_stmt *q, int i) {
  return (uint32_t)sqlite3_column_int64(q, i);
}

// Runs the following statement, which sets `s`, for each row. Rows that cannot be read to their end are an error.
#define FOR_ROWS(sql, key, ...)                                                                                        \
  tfc_status s = NULL;                                                                                                 \
  sqlite3_stmt *q = NULL;                                                                                              \
  int rc = SQLITE_DONE;                                                                                                \
  TFC_RETURN_IF_ERROR(prepare(store, sql, key, &q));                                                                   \
  while (!s && (rc = sqlite3_step(q)) == SQLITE_ROW) __VA_ARGS__                                                       \
  if (!s && rc != SQLITE_DONE) s = tfc_store_unreadable(store);                                                        \
  sqlite3_finalize(q);                                                                                                 \
  return s

tfc_status tfc_store_read_run(struct tfc_store *store, int64_t run_id, tfc_store_run_fn fn, void *user) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  TFC_TRY(s, prepare(store, "SELECT state, graph_sha256, graph, objective FROM run WHERE run_id = ?1", run_id, &q));
  const int rc = sqlite3_step(q);
  if (rc == SQLITE_DONE) TFC_FAIL(s, TFC_NOT_FOUND, "run %lld cannot be read", (long long)run_id);
  if (rc != SQLITE_ROW) TFC_TRY(s, tfc_store_unreadable(store));
  const struct tfc_store_run run = {.graph_sha256 = text_of(q, 1), .graph = word_of(q, 2), .objective = word_of(q, 3)};
  s = fn(user, &run, word_of(q, 0));
out:
  sqlite3_finalize(q);
  return s;
}

tfc_status tfc_store_read_devices(struct tfc_store *store, int64_t run_id, tfc_store_device_fn fn, void *user) {
  FOR_ROWS("SELECT device_id, name, cores, math, dispatch_us, slowdown FROM device WHERE run_id = ?1"
           " ORDER BY device_id",
           run_id, {
             const struct tfc_store_device row = {.device_id = count_of(q, 0),
                                                  .name = word_of(q, 1),
                                                  .cores = count_of(q, 2),
                                                  .math = text_of(q, 3),
                                                  .dispatch_us = number_of(q, 4),
                                                  .slowdown = text_of(q, 5)};
             s = fn(user, &row);
           });
}

tfc_status tfc_store_read_links(struct tfc_store *store, int64_t run_id, tfc_store_link_fn fn, void *user) {
  FOR_ROWS("SELECT source, target, bytes, time_us, samples FROM link WHERE run_id = ?1", run_id, {
    const struct tfc_store_link row = {count_of(q, 0), count_of(q, 1), (uint64_t)sqlite3_column_int64(q, 2),
                                       number_of(q, 3), count_of(q, 4)};
    s = fn(user, &row);
  });
}

tfc_status tfc_store_read_costs(struct tfc_store *store, int64_t run_id, tfc_store_cost_fn fn, void *user) {
  FOR_ROWS("SELECT node_id, kind, median_us, q1_us, q3_us, fastest_us, samples FROM cost WHERE run_id = ?1", run_id, {
    const struct tfc_store_cost row = {count_of(q, 0),  word_of(q, 1),   number_of(q, 2), number_of(q, 3),
                                       number_of(q, 4), number_of(q, 5), count_of(q, 6)};
    s = fn(user, &row);
  });
}

tfc_status tfc_store_read_placements(struct tfc_store *store, int64_t run_id, tfc_store_placement_fn fn, void *user) {
  FOR_ROWS("SELECT p.placement, p.placement_id, p.role, p.name, p.algorithm, p.episode, p.state,"
           " p.simulated_us, p.median_us, p.q1_us, p.q3_us, p.ratio, p.steps,"
           " (SELECT COALESCE(MAX(s.step) + 1, 0) FROM step s WHERE s.placement = p.placement),"
           " EXISTS (SELECT 1 FROM op o WHERE o.placement = p.placement)"
           " FROM placement p WHERE p.run_id = ?1 ORDER BY p.placement_id",
           run_id, {
             const struct tfc_store_placement_read row = {.key = sqlite3_column_int64(q, 0),
                                                          .row = {.placement_id = sqlite3_column_int64(q, 1),
                                                                  .role = word_of(q, 2),
                                                                  .name = word_of(q, 3),
                                                                  .algorithm = text_of(q, 4),
                                                                  .episode = sqlite3_column_int64(q, 5),
                                                                  .state = word_of(q, 6),
                                                                  .simulated_us = number_of(q, 7),
                                                                  .median_us = number_of(q, 8),
                                                                  .q1_us = number_of(q, 9),
                                                                  .q3_us = number_of(q, 10),
                                                                  .ratio = number_of(q, 11),
                                                                  .steps = count_of(q, 12)},
                                                          .next_step = count_of(q, 13),
                                                          .raw = sqlite3_column_int(q, 14)};
             s = fn(user, &row);
           });
}

tfc_status tfc_store_read_assignment(struct tfc_store *store, int64_t key, tfc_store_assignment_fn fn, void *user) {
  FOR_ROWS("SELECT unit_id, device_id FROM assignment WHERE placement = ?1", key,
           { s = fn(user, count_of(q, 0), count_of(q, 1)); });
}

tfc_status tfc_store_read_proposers(struct tfc_store *store, int64_t run_id, tfc_store_proposer_fn fn, void *user) {
  FOR_ROWS("SELECT name, learned, measured, won, best_simulated_us, best_measured_us FROM proposer WHERE run_id = ?1",
           run_id, {
             const struct tfc_store_proposer row = {word_of(q, 0),   sqlite3_column_int(q, 1) != 0,
                                                    count_of(q, 2),  count_of(q, 3),
                                                    number_of(q, 4), number_of(q, 5)};
             s = fn(user, &row);
           });
}

tfc_status tfc_store_read_memory(struct tfc_store *store, int64_t key, tfc_store_memory_fn fn, void *user) {
  FOR_ROWS("SELECT device_id, peak_bytes, complete = 0 FROM memory WHERE placement = ?1", key, {
    const struct tfc_store_memory row = {count_of(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
                                         sqlite3_column_int64(q, 2) != 0};
    s = fn(user, &row);
  });
}
