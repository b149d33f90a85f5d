// Opens and locks the database, and runs transactions. The journal is a write-ahead log only if this SQLite is newer
// than 3.51.2: older versions have a defect when a second connection writes, and tfc's lock does not keep other
// programs from writing. Otherwise it is a rollback journal.

#include "profiler/store_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "profiler/schema.h"
#include "runtime/base/file.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/units.h"

enum { WAL_SAFE_VERSION = 3051003, PAGE = 8192, BUSY_MS = 10000 };
static const uint64_t least_free = (uint64_t)8 << 20;

// Returns SQLite's message, with the path, as a status, and rolls an open transaction back.
static tfc_status failed(struct tfc_store *store, const char *what) {
  int code = sqlite3_errcode(store->db);
  tfc_status s =
      tfc_status_make(TFC_DATA_LOSS, "%s: %s: %s", *store->path ? store->path : "the database in memory", what,
                      code == SQLITE_BUSY ? "another program is reading or writing it and does not give it back"
                                          : sqlite3_errmsg(store->db));
  if (!sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  return s;
}

tfc_status tfc_store_exec(struct tfc_store *store, const char *sql, const char *what) {
  return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? NULL : failed(store, what);
}

// Returns the code for a file that is no database of tfc's, or a damaged one: for a reader it is bad input, for a
// writer a place that cannot be written.
static tfc_code unusable(bool write) {
  return write ? TFC_DATA_LOSS : TFC_INVALID_ARGUMENT;
}

tfc_status tfc_store_unreadable(struct tfc_store *store) {
  const int code = sqlite3_errcode(store->db);
  char most[32];
  if (code == SQLITE_INTERRUPT) return tfc_status_make(TFC_CANCELLED, "interrupted while reading %s", store->path);
  if (code == SQLITE_NOMEM) return tfc_status_no_memory("reading a database");
  if (code == SQLITE_TOOBIG)
    return tfc_status_make(unusable(store->lock != NULL), "%s: a text in it is longer than %s; no run of tfc's has one",
                           store->path, tfc_show_bytes(most, sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, -1)));
  if (code != SQLITE_CORRUPT && code != SQLITE_NOTADB && code != SQLITE_ERROR) return failed(store, "cannot be read");
  return tfc_status_make(
      unusable(store->lock != NULL),
      "%s: the database is damaged, or its tables were changed by another program (%s); give another "
      "one with --db, or put an older copy in its place",
      store->path, sqlite3_errmsg(store->db));
}

static tfc_status pragma(struct tfc_store *store, const char *sql, bool write, int64_t *out) {
  sqlite3_stmt *q = NULL;
  tfc_status s = NULL;
  bool row = sqlite3_prepare_v2(store->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;
  int code = sqlite3_errcode(store->db);
  if (!row && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB))
    s = tfc_status_make(unusable(write), "%s: %s; give another one with --db", store->path,
                        code == SQLITE_NOTADB ? "not an SQLite database" : "the database is damaged or cut short");
  else if (!row)
    s = failed(store, "cannot be read");
  else
    *out = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return s;
}

// A database from elsewhere may have other views and triggers: endless queries, or changes to what is written. A view,
// virtual table or trigger in the place of a table, or on one, is an error. *out_views: whether all views of tfc's that
// are there are as tfc makes them; objects of other names are the user's own.
static tfc_status check_objects(struct tfc_store *store, bool write, bool *out_views) {
  tfc_status s = NULL;
  sqlite3 *own = NULL;
  sqlite3_stmt *theirs = NULL, *ours = NULL;
  *out_views = true;
  if (sqlite3_open_v2(":memory:", &own, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
      sqlite3_exec(own, tfc_schema_tables, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_exec(own, tfc_schema_added, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_exec(own, tfc_schema_views, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(own, "SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE", -1, &ours, NULL) !=
          SQLITE_OK)
    TFC_TRY(s, tfc_status_no_memory("a database"));
  if (sqlite3_prepare_v2(store->db,
                         "SELECT type, tbl_name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') OR "
                         "sql LIKE 'CREATE VIRTUAL%'",
                         -1, &theirs, NULL) != SQLITE_OK)
    TFC_FAIL(s, unusable(write), "%s: the database is damaged; give another one with --db", store->path);
  while (sqlite3_step(theirs) == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(theirs, 0),
               *sql = (const char *)sqlite3_column_text(theirs, 2);
    sqlite3_reset(ours);
    sqlite3_bind_value(ours, 1, sqlite3_column_value(theirs, 1));
    if (sqlite3_step(ours) != SQLITE_ROW) continue;
    const bool view = !strcmp((const char *)sqlite3_column_text(ours, 0), "view");
    if (!type || !sql || !view || strcmp(type, "view") != 0)
      TFC_FAIL(s, unusable(write),
               "%s: another program has put a %s in the place of table '%s', or on it; give another database with --db",
               store->path, type, sqlite3_column_text(theirs, 1));
    *out_views &= !strcmp(sql, (const char *)sqlite3_column_text(ours, 1));
  }
out:
  sqlite3_finalize(theirs);
  sqlite3_finalize(ours);
  sqlite3_close(own);
  return s;
}

// Changes tables and views of an older version, or of an empty database, to those of today.
static tfc_status upgrade(struct tfc_store *store, bool empty, int64_t version) {
  int64_t segments = 0, launches = 0, complete = 0;
  TFC_RETURN_IF_ERROR(tfc_store_begin(store));
  if (empty) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_tables, "cannot be written"));
  TFC_RETURN_IF_ERROR(
      pragma(store, "SELECT COUNT(*) FROM pragma_table_info('busy') WHERE name = 'launch_ns'", true, &launches));
  if (!launches) // version 1, and the first databases of version 2
    TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade, "cannot be written"));
  if (!empty && version <= 2) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade_2, "cannot be written"));
  if (!empty && version <= 4) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade_4, "cannot be written"));
  if (!empty && version <= 5) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade_5, "cannot be written"));
  TFC_RETURN_IF_ERROR(
      pragma(store, "SELECT COUNT(*) FROM pragma_table_info('memory') WHERE name = 'complete'", true, &complete));
  if (!complete) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade_11, "cannot be written"));
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_added, "cannot be written"));
  TFC_RETURN_IF_ERROR(
      pragma(store, "SELECT COUNT(*) FROM pragma_table_info('work') WHERE name = 'segment'", true, &segments));
  if (!segments) TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_upgrade_6, "cannot be written"));
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, tfc_schema_views, "cannot be written"));
  char sql[128];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", TFC_SCHEMA_APPLICATION_ID,
                   TFC_SCHEMA_VERSION);
  TFC_RETURN_IF_ERROR(tfc_store_exec(store, sql, "cannot be written"));
  return tfc_store_commit(store);
}

// A database of an older version lacks views and columns that readers ask for. So this reads from a copy that gets
// them, in a temporary file of SQLite's own; the file itself is not changed.
static tfc_status read_upgraded(struct tfc_store *store, int64_t version) {
  sqlite3 *copy = NULL;
  sqlite3_backup *backup = NULL;
  tfc_status s = NULL;
  if (sqlite3_open_v2("", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
      !(backup = sqlite3_backup_init(copy, "main", store->db, "main")))
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "%s: no temporary copy could be made: %s", store->path,
             copy ? sqlite3_errmsg(copy) : "out of memory");
  int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: it is of an older version (schema %lld), and no copy could be made: %s",
             store->path, (long long)version, sqlite3_errstr(code));
  sqlite3_close(store->db);
  store->db = copy, copy = NULL;
  store->is_copy = true;
  TFC_TRY(s, upgrade(store, false, version));
out:
  sqlite3_close(copy);
  return s;
}

// Creates the schema, or checks that it is tfc's.
static tfc_status prepare_schema(struct tfc_store *store, bool write) {
  int64_t id = 0, version = 0, tables = 0;
  bool views = true;
  TFC_RETURN_IF_ERROR(pragma(store, "PRAGMA application_id", write, &id));
  TFC_RETURN_IF_ERROR(pragma(store, "PRAGMA user_version", write, &version));
  TFC_RETURN_IF_ERROR(pragma(store, "SELECT COUNT(*) FROM sqlite_schema", write, &tables));
  if (tables > 0 && id != TFC_SCHEMA_APPLICATION_ID)
    return tfc_status_make(unusable(write), "%s: an SQLite database, but not one of tfc's; give another one with --db",
                           store->path);
  if (version > TFC_SCHEMA_VERSION)
    return tfc_status_make(unusable(write), "%s: written by a newer tfc (schema %lld, this one knows %d)", store->path,
                           (long long)version, TFC_SCHEMA_VERSION);
  if (tables > 0 && version < 1)
    return tfc_status_make(unusable(write),
                           "%s: there is no version %lld of tfc's databases; give another one with --db", store->path,
                           (long long)version);
  if (tables == 0 && !write) return tfc_status_make(TFC_NOT_FOUND, "%s: holds no runs", store->path);
  if (tables > 0) TFC_RETURN_IF_ERROR(check_objects(store, write, &views));
  if (tables > 0 && version == TFC_SCHEMA_VERSION && views) return NULL;
  return write ? upgrade(store, tables == 0, version) : read_upgraded(store, version);
}

// Checks, before any work is done, that files of the needed size can be written in the folder.
static tfc_status probe(struct tfc_store *store, const char *path) {
  tfc_status s = NULL;
  struct statvfs fs;
  char *name = tfc_format("%s.%d.probe", path, (int)getpid());
  int fd = -1;
  if (!name) return tfc_status_no_memory(NULL);
  static const char block[65536];
  unlink(name);
  fd = tfc_os.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: its folder cannot be written: %s", path, strerror(errno));
  for (int i = 0; i < 16; i++) {
    ssize_t n = tfc_os.write(fd, block, sizeof block);
    if (n != (ssize_t)sizeof block) // a partial write: the disk is full
      TFC_FAIL(s, TFC_DATA_LOSS, "%s: its disk cannot be written: %s", path, n < 0 ? strerror(errno) : "it is full");
  }
  if (fstatvfs(fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < least_free) {
    char a[32], b[32];
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: its disk is full: %s are left, a run needs at least %s", path,
             tfc_show_bytes(a, (double)fs.f_bavail * (double)fs.f_frsize), tfc_show_bytes(b, (double)least_free));
  }
  TFC_TRY(s, tfc_store_begin(store));
  TFC_TRY(s, tfc_store_exec(store, "CREATE TABLE probe (x); DROP TABLE probe", "cannot be written"));
  tfc_store_rollback(store);
out:
  if (fd >= 0) close(fd), unlink(name);
  free(name);
  return s;
}

// Whether a writer was stopped in the middle of a transaction: then the file is valid only after its journal is rolled
// back, which a read-only connection may not do.
static bool needs_recovery(sqlite3 *db) {
  (void)sqlite3_exec(db, "SELECT COUNT(*) FROM sqlite_schema", NULL, NULL, NULL);
  const int code = sqlite3_extended_errcode(db);
  return code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY || code == SQLITE_READONLY_CANTINIT;
}

// Rolls the journal back, as the next writer would; SQLite's locks show it whether a writer is active.
static tfc_status recover(const char *path, const char *vfs) {
  tfc_status s = NULL;
  sqlite3 *db = NULL;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs) == SQLITE_OK)
    sqlite3_busy_timeout(db, BUSY_MS);
  if (!db || sqlite3_exec(db, "SELECT COUNT(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK)
    s = tfc_status_make(
        TFC_INVALID_ARGUMENT,
        "%s: whoever wrote it was stopped in the middle, and what was half written could not be undone "
        "(%s): open it once, for instance with tfc-report, as a user who may write the file and its folder",
        path, db ? sqlite3_errmsg(db) : "out of memory");
  sqlite3_close(db);
  return s;
}

// Checks the files that SQLite opens beside the database: a stranger may have made them, as well as the database.
// Reading from a pipe would not end. The journal of a transaction on several databases ends with the name of another
// file, which SQLite deletes when it has rolled the journal back; a transaction of tfc changes one database only.
// `path` has no symbolic links.
static tfc_status check_beside(const char *path, bool write) {
  static const char *const ends[] = {"-journal", "-wal", "-shm"};
  static const uint8_t mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  uint8_t last[sizeof mark];
  tfc_status s = NULL;
  struct stat st;
  for (size_t i = 0; i < sizeof ends / sizeof *ends && !s; i++) {
    char *name = tfc_format("%s%s", path, ends[i]);
    if (!name) return tfc_status_no_memory(NULL);
    const bool there = stat(name, &st) == 0;
    const int fd = there && S_ISREG(st.st_mode) ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (there && !S_ISREG(st.st_mode))
      s = tfc_status_make(unusable(write), "%s: not a regular file; no database can be read beside it", name);
    else if (i == 0 && fd >= 0 && st.st_size >= 16 &&
             pread(fd, last, sizeof last, st.st_size - (off_t)sizeof last) == (ssize_t)sizeof last &&
             memcmp(last, mark, sizeof mark) == 0)
      s = tfc_status_make(unusable(write),
                          "%s: the journal of a transaction on several databases, which tfc does not write; open the "
                          "database with the program that wrote it, or give another one with --db",
                          name);
    if (fd >= 0) close(fd);
    free(name);
  }
  return s;
}

static int on_progress(void *user) {
  (void)user;
  tfc_status s = tfc_interrupted("reading a database");
  const bool stop = tfc_status_code(s) == TFC_CANCELLED; // a deadline does not end queries
  tfc_status_free(s);
  return stop;
}

tfc_status tfc_store_open(const char *path, const struct tfc_store_options *options, struct tfc_store **out) {
  tfc_status s = NULL;
  struct stat st;
  char *lock_path = NULL, *real = NULL;
  struct tfc_store *store = calloc(1, sizeof *store);
  if (!store || !(store->path = tfc_str_dup(tfc_str_from(path)))) TFC_TRY(s, tfc_status_no_memory(NULL));
  bool there = stat(path, &st) == 0;
  if (there && S_ISDIR(st.st_mode)) TFC_FAIL(s, unusable(options->write), "%s: a folder, not a database", path);
  if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) // opening a pipe would wait for its writer
    TFC_FAIL(s, unusable(options->write), "%s: not a regular file", path);
  if (there && !(real = realpath(path, NULL))) TFC_FAIL(s, unusable(options->write), "%s: %s", path, strerror(errno));
  TFC_TRY(s, check_beside(real ? real : path, options->write));
  if (!options->write && !there) TFC_FAIL(s, TFC_NOT_FOUND, "%s: %s", path, strerror(errno));
  if (options->write) {
    if (!(lock_path = tfc_format("%s.lock", path))) TFC_TRY(s, tfc_status_no_memory(NULL));
    s = tfc_lock_take(lock_path, options->purpose, &store->lock);
    if (tfc_status_code(s) == TFC_FAILED_PRECONDITION) {
      tfc_status held = s;
      s = tfc_status_make(TFC_DATA_LOSS,
                          "%s: another process is writing it (%s); wait until it ends, or give another one with --db",
                          path, tfc_status_message(held));
      tfc_status_free(held);
    } else if (s && !strstr(tfc_status_message(s), "not a regular file")) {
      tfc_status_free(s);
      s = tfc_status_make(TFC_DATA_LOSS, "%s: its folder cannot be written: %s", path, strerror(errno));
    }
    if (s) goto out;
  }
  int flags = options->write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, options->vfs) != SQLITE_OK)
    TFC_FAIL(s, unusable(options->write), "%s: cannot be opened: %s", path,
             store->db ? sqlite3_errmsg(store->db) : "out of memory");
  sqlite3_busy_timeout(store->db, BUSY_MS);
  if (!options->write && needs_recovery(store->db)) {
    TFC_TRY(s, recover(path, options->vfs));
    sqlite3_close(store->db), store->db = NULL;
    if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, options->vfs) != SQLITE_OK)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: cannot be opened: %s", path,
               store->db ? sqlite3_errmsg(store->db) : "out of memory");
    sqlite3_busy_timeout(store->db, BUSY_MS);
  }
  sqlite3_extended_result_codes(store->db, 0);
  if (options->write) {
    char sql[160];
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA page_size = %d; PRAGMA journal_mode = %s; PRAGMA synchronous = NORMAL",
                     PAGE, sqlite3_libversion_number() >= WAL_SAFE_VERSION ? "WAL" : "TRUNCATE");
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
      int code = sqlite3_errcode(store->db);
      TFC_FAIL(s, TFC_DATA_LOSS, "%s: %s; give another one with --db", path,
               code == SQLITE_NOTADB    ? "not an SQLite database"
               : code == SQLITE_CORRUPT ? "the database is damaged or cut short"
                                        : sqlite3_errmsg(store->db));
    }
  }
  TFC_TRY(s, prepare_schema(store, options->write));
  if (options->interruptible) sqlite3_progress_handler(store->db, 10000, on_progress, NULL);
  if (options->longest) sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, options->longest);
  if (options->write) TFC_TRY(s, probe(store, path));
  if (options->write) // this process holds the lock, so earlier writers have ended
    TFC_TRY(s,
            tfc_store_exec(store, "UPDATE run SET state = 'interrupted' WHERE state = 'running'", "cannot be written"));
  *out = store, store = NULL;
out:
  free(lock_path);
  free(real);
  tfc_store_close(store);
  return s;
}

tfc_status tfc_store_open_memory(struct tfc_store **out) {
  tfc_status s = NULL;
  struct tfc_store *store = calloc(1, sizeof *store);
  if (!store || !(store->path = tfc_str_dup(TFC_STR("")))) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (sqlite3_open_v2(":memory:", &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    TFC_TRY(s, tfc_status_no_memory("a database"));
  TFC_TRY(s, prepare_schema(store, true));
  *out = store, store = NULL;
out:
  tfc_store_close(store);
  return s;
}

void tfc_store_close(struct tfc_store *store) {
  if (!store) return;
  for (int i = 0; i < TFC_STORE_STATEMENT_COUNT; i++) sqlite3_finalize(store->statements[i]);
  if (store->db && !sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  sqlite3_close(store->db);
  tfc_lock_release(store->lock);
  free(store->path);
  free(store);
}

bool tfc_store_being_written(const struct tfc_store *store) {
  if (!*store->path) return false; // in memory
  char *lock = tfc_format("%s.lock", store->path);
  bool held = lock && tfc_lock_held(lock);
  free(lock);
  return held;
}

bool tfc_store_is_copy(const struct tfc_store *store) {
  return store->is_copy;
}

const char *tfc_store_path(const struct tfc_store *store) {
  return store->path;
}
struct sqlite3 *tfc_store_handle(struct tfc_store *store) {
  return store->db;
}

tfc_status tfc_store_begin(struct tfc_store *store) {
  return tfc_store_exec(store, "BEGIN IMMEDIATE", "cannot be written");
}
tfc_status tfc_store_commit(struct tfc_store *store) {
  return tfc_store_exec(store, "COMMIT", "cannot be written");
}
void tfc_store_rollback(struct tfc_store *store) {
  if (!sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

// Writes the text of a statement: "INSERT INTO link (run_id, source) VALUES (?, ?)", "UPDATE run SET label = ?2 WHERE
// run_id = ?1" or "DELETE FROM op WHERE placement = ?1".
static void write_sql(struct tfc_text *sql, const char *verb, const struct tfc_store_value *row, size_t count) {
  tfc_text_printf(sql, "%s", verb);
  if (strchr(verb, ':')) return; // it is whole
  if (verb[0] == 'I') {
    for (size_t i = 0; i < count; i++) tfc_text_printf(sql, "%s%s", i ? ", " : " (", row[i].column);
    for (size_t i = 0; i < count; i++) tfc_text_printf(sql, "%s", i ? ", ?" : ") VALUES (?");
    tfc_text_printf(sql, ")");
    return;
  }
  for (size_t i = 1; i < count; i++) tfc_text_printf(sql, "%s%s = ?%zu", i > 1 ? ", " : " SET ", row[i].column, i + 1);
  tfc_text_printf(sql, " WHERE %s = ?1", row[0].column);
}

static tfc_status prepare(struct tfc_store *store, enum tfc_store_statement statement,
                          const struct tfc_store_value *row, size_t count) {
  static const char *const verbs[] = {
#define VERB(name, verb) verb,
      TFC_STORE_STATEMENTS(VERB)
#undef VERB
  };
  tfc_status s = NULL;
  struct tfc_text sql = {0};
  write_sql(&sql, verbs[statement], row, count);
  if (sql.failed) TFC_TRY(s, tfc_status_no_memory("a database"));
  if (sqlite3_prepare_v3(store->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT, &store->statements[statement], NULL) !=
      SQLITE_OK)
    s = failed(store, "cannot be written");
out:
  tfc_text_deinit(&sql);
  return s;
}

static int bind(sqlite3_stmt *q, int at, const struct tfc_store_value *v) {
  const char *text = v->text.data ? v->text.data : "";
  switch (v->type) {
  case TFC_STORE_NULL: return sqlite3_bind_null(q, at);
  case TFC_STORE_INTEGER: return sqlite3_bind_int64(q, at, v->integer);
  case TFC_STORE_REAL: return sqlite3_bind_double(q, at, v->real);
  case TFC_STORE_TEXT: return sqlite3_bind_text64(q, at, text, v->text.size, SQLITE_STATIC, SQLITE_UTF8);
  case TFC_STORE_BYTES: return sqlite3_bind_blob64(q, at, text, v->text.size, SQLITE_STATIC);
  }
  return SQLITE_MISUSE;
}

tfc_status tfc_store_put(struct tfc_store *store, enum tfc_store_statement statement, const struct tfc_store_value *row,
                         size_t count) {
  if (!store->statements[statement]) TFC_RETURN_IF_ERROR(prepare(store, statement, row, count));
  sqlite3_stmt *q = store->statements[statement];
  assert(sqlite3_bind_parameter_count(q) == (int)count);
  int rc = SQLITE_OK;
  bool finite = true;
  for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
    finite &= row[i].type != TFC_STORE_REAL || __builtin_isfinite(row[i].real);
    rc = bind(q, (int)i + 1, &row[i]);
  }
  tfc_status s = NULL;
  if (!finite)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a time or reward that is not a finite number is not stored",
                        store->path);
  else if (rc != SQLITE_OK || sqlite3_step(q) != SQLITE_DONE)
    s = failed(store, "cannot be written");
  sqlite3_reset(q);
  sqlite3_clear_bindings(q);
  return s;
}
