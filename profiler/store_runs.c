// Finds runs and their answers, stores what --resume needs, and deletes old runs.

#include "profiler/store_runs.h"
#include "profiler/schema.h"
#include "profiler/store_private.h"

// Reads the first column of the first row into *out; NOT_FOUND with `missing` if there is no row or it is NULL.
static tfc_status ask_text(struct tfc_store *store, const char *sql, int64_t run_id, const char *name,
                           const char *missing, struct tfc_text *out) {
  tfc_status s = NULL;
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(store->db, sql, -1, &q, NULL) != SQLITE_OK) {
    s = tfc_store_unreadable(store);
    goto out;
  }
  sqlite3_bind_int64(q, 1, run_id);
  if (name) sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
  int rc = sqlite3_step(q);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
    s = tfc_store_unreadable(store);
  } else if (rc == SQLITE_DONE || sqlite3_column_type(q, 0) == SQLITE_NULL) {
    s = tfc_status_make(TFC_NOT_FOUND, "%s: run %lld has no %s", store->path, (long long)run_id, missing);
  } else {
    const void *data = sqlite3_column_blob(q, 0);
    tfc_text_add(out, (tfc_str){data ? data : "", (size_t)sqlite3_column_bytes(q, 0)});
    if (out->failed) s = tfc_status_no_memory(NULL);
  }
out:
  sqlite3_finalize(q);
  return s;
}

static tfc_status ask_int(struct tfc_store *store, const char *sql, int64_t parameter, bool *out_found, int64_t *out) {
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(store->db, sql, -1, &q, NULL);
  if (rc == SQLITE_OK) {
    sqlite3_bind_int64(q, 1, parameter);
    rc = sqlite3_step(q);
  }
  *out_found = rc == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL;
  if (*out_found) *out = sqlite3_column_int64(q, 0);
  tfc_status s = rc == SQLITE_ROW || rc == SQLITE_DONE ? NULL : tfc_store_unreadable(store);
  sqlite3_finalize(q);
  return s;
}

tfc_status tfc_store_get_state(struct tfc_store *store, int64_t run_id, const char *name, struct tfc_text *out) {
  return ask_text(store, "SELECT value FROM state WHERE run_id = ?1 AND name = ?2", run_id, name, "state to go on from",
                  out);
}

tfc_status tfc_store_get_answer(struct tfc_store *store, int64_t run_id, struct tfc_text *out) {
  return ask_text(store, "SELECT answer FROM run WHERE run_id = ?1", run_id, NULL, "placement: it did not finish", out);
}

tfc_status tfc_store_find_run(struct tfc_store *store, int64_t run_id, int64_t *out_id) {
  bool found = false, any = false;
  int64_t last = 0;
  TFC_RETURN_IF_ERROR(ask_int(store, "SELECT MAX(run_id) FROM run", 0, &any, &last));
  if (!any) return tfc_status_make(TFC_NOT_FOUND, "%s: holds no runs", store->path);
  if (run_id < 0) return *out_id = last, NULL;
  TFC_RETURN_IF_ERROR(ask_int(store, "SELECT run_id FROM run WHERE run_id = ?1", run_id, &found, out_id));
  if (!found)
    return tfc_status_make(TFC_NOT_FOUND, "%s: no run %lld; the last one is %lld", store->path, (long long)run_id,
                           (long long)last);
  return NULL;
}

tfc_status tfc_store_find_interrupted(struct tfc_store *store, int64_t run_id, const char *name, int64_t *out_id) {
  bool found = false;
  char sql[240];
  if (run_id >= 0) {
    TFC_RETURN_IF_ERROR(tfc_store_find_run(store, run_id, out_id));
    sqlite3_snprintf(sizeof sql, sql, "SELECT run_id FROM state WHERE run_id = ?1 AND name = %Q", name);
    TFC_RETURN_IF_ERROR(ask_int(store, sql, run_id, &found, out_id));
    return found ? NULL
                 : tfc_status_make(TFC_NOT_FOUND,
                                   "%s: run %lld cannot go on with these flags: it measured where they do not, or "
                                   "measured nothing (tfc-report list shows the runs)",
                                   store->path, (long long)run_id);
  }
  // If this process may write, no other one does, so a run in state "running" was killed.
  sqlite3_snprintf(sizeof sql, sql,
                   "SELECT MAX(run_id) FROM run WHERE state IN ('interrupted', 'running') AND run_id IN"
                   " (SELECT run_id FROM state WHERE name = %Q)",
                   name);
  TFC_RETURN_IF_ERROR(ask_int(store, sql, 0, &found, out_id));
  return found ? NULL : tfc_status_make(TFC_NOT_FOUND, "%s: no interrupted run to go on with", store->path);
}

tfc_status tfc_store_begin_again(struct tfc_store *store, int64_t run_id) {
  static const char *const tables[] = {"placement", "proposer", "edge", "cost", "link", "node", "device"};
  tfc_status s = NULL;
  char sql[96];
  // SQLite ignores this within a transaction.
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, "PRAGMA foreign_keys = ON", "cannot be written"));
  TFC_RETURN_IF_ERROR(tfc_store_begin(store));
  for (size_t i = 0; i < sizeof tables / sizeof *tables && !s; i++) {
    sqlite3_snprintf(sizeof sql, sql, "DELETE FROM %s WHERE run_id = %lld", tables[i], (long long)run_id);
    s = tfc_store_exec(store, sql, "cannot be written");
  }
  if (s) tfc_store_rollback(store);
  return s;
}

tfc_status tfc_store_gc(struct tfc_store *store, int64_t keep, int64_t *out_deleted) {
  if (keep < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "gc keeps a number of runs, not %lld", (long long)keep);
  char sql[160];
  sqlite3_snprintf(sizeof sql, sql,
                   "DELETE FROM run WHERE run_id NOT IN (SELECT run_id FROM run ORDER BY run_id DESC LIMIT %lld)",
                   (long long)keep);
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, "PRAGMA foreign_keys = ON", "cannot be written"));
  TFC_RETURN_IF_ERROR(tfc_store_begin(store));
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, sql, "cannot be written"));
  *out_deleted = sqlite3_changes(store->db);
  TFC_RETURN_IF_ERROR(tfc_store_commit(store));
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, "PRAGMA foreign_keys = OFF", "cannot be written"));
  return tfc_store_exec(store, "VACUUM", "cannot be written");
}

tfc_status tfc_store_index(struct tfc_store *store) {
  TFC_RETURN_IF_ERROR(tfc_store_begin(store));
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_indexes, "cannot be written"));
  return tfc_store_commit(store);
}
