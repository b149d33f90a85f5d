// Tests the files of the store: the database, its journal and its lock, when they are somebody else's, in use, left by
// a writer that was killed, or not what they should be.
#include "tests/common/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/lock.h"
#include "profiler/store.h"
#include "profiler/store_runs.h"
#include "tests/profiler/stores.h"

static void test_one_writer(void **state) {
  (void)state;
  struct tfc_store *store = NULL, *other = NULL;
  assert_ok(tfc_store_open(path, &writing, &store));
  char expected[64];
  snprintf(expected, sizeof expected, "process %d (store test)", (int)getpid());
  assert_fails(tfc_store_open(path, &writing, &other), TFC_DATA_LOSS, expected);
  assert_fails(tfc_store_open(path, &writing, &other), TFC_DATA_LOSS, "wait until it ends");
  tfc_store_close(store);
  assert_ok(tfc_store_open(path, &writing, &other));
  tfc_store_close(other);
}

static void test_what_is_not_a_database(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  struct tfc_store_options reading = {0};
  assert_fails(tfc_store_open(path, &reading, &store), TFC_NOT_FOUND, path);
  assert_fails(tfc_store_open(folder, &reading, &store), TFC_INVALID_ARGUMENT, "a folder");
  FILE *f = fopen(path, "w");
  for (int i = 0; i < 4096; i++) fputs("not a database ", f);
  fclose(f);
  assert_fails(tfc_store_open(path, &reading, &store), TFC_INVALID_ARGUMENT, "not an SQLite database");
  assert_fails(tfc_store_open(path, &writing, &store), TFC_DATA_LOSS, "not an SQLite database");
  unlink(path);
  sqlite3 *db = NULL;
  sqlite3_open(path, &db);
  sqlite3_exec(db, "CREATE TABLE theirs (x)", NULL, NULL, NULL);
  sqlite3_close(db);
  assert_fails(tfc_store_open(path, &writing, &store), TFC_DATA_LOSS, "not one of tfc's");
  unlink(path);
  assert_ok(tfc_store_open(path, &writing, &store));
  sqlite3_exec(tfc_store_handle(store), "PRAGMA user_version = 99", NULL, NULL, NULL);
  tfc_store_close(store);
  assert_fails(tfc_store_open(path, &reading, &store), TFC_INVALID_ARGUMENT, "newer tfc");
  char lost[160];
  snprintf(lost, sizeof lost, "%s/none/t.db", folder);
  assert_fails(tfc_store_open(lost, &writing, &store), TFC_DATA_LOSS, "cannot be written");
}

// Runs as a user other than root, because root may write everywhere.
static void test_read_only_folder(void **state) {
  (void)state;
  chmod(folder, 0555);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);
    struct tfc_store *store = NULL;
    tfc_status s = tfc_store_open(path, &writing, &store);
    _exit(tfc_status_code(s) == TFC_DATA_LOSS && strstr(tfc_status_message(s), "cannot be written") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_int_equal(WEXITSTATUS(status), 0);
}

// A journal that a stranger made names another file, which SQLite would delete. A journal that is a pipe could be read
// without end.
static void test_journal_of_strangers(void **state) {
  (void)state;
  char victim[128], journal[128], tail[160] = {0};
  struct tfc_store *store = NULL;
  int64_t run = 0;
  unlink(path);
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  tfc_store_close(store);
  snprintf(victim, sizeof victim, "%s/victim", folder);
  snprintf(journal, sizeof journal, "%s-journal", path);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) { // leaves a journal that has to be rolled back
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) || sqlite3_exec(db,
                                                "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; "
                                                "UPDATE run SET graph = printf('%.*c', 200000, 'x')",
                                                NULL, NULL, NULL))
      _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_true(WIFSIGNALED(status));
  FILE *f = fopen(victim, "w");
  assert_non_null(f);
  assert_true(fputs("something dear", f) >= 0 && fclose(f) == 0);
  // four bytes, the name, its size, its sum, and the mark
  const size_t size = strlen(victim);
  uint32_t sum = 0, at = 4;
  for (size_t i = 0; i < size; i++) sum += (uint32_t)victim[i];
  memcpy(tail + at, victim, size), at += (uint32_t)size;
  for (int i = 3; i >= 0; i--) tail[at++] = (char)((uint32_t)size >> 8 * i);
  for (int i = 3; i >= 0; i--) tail[at++] = (char)(sum >> 8 * i);
  memcpy(tail + at, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8), at += 8;
  f = fopen(journal, "ab");
  assert_non_null(f);
  assert_true(fwrite(tail, 1, at, f) == at && fclose(f) == 0);
  assert_fails(tfc_store_open(path, &(struct tfc_store_options){0}, &store), TFC_INVALID_ARGUMENT, "several databases");
  assert_fails(tfc_store_open(path, &writing, &store), TFC_DATA_LOSS, "several databases");
  assert_int_equal(access(victim, F_OK), 0);
  char link[128];
  snprintf(link, sizeof link, "%s/link.db", folder);
  assert_int_equal(symlink(path, link), 0);
  assert_fails(tfc_store_open(link, &(struct tfc_store_options){0}, &store), TFC_INVALID_ARGUMENT, "several databases");
  assert_int_equal(access(victim, F_OK), 0);
  unlink(link), unlink(victim), unlink(journal);
  assert_int_equal(mkfifo(journal, 0600), 0);
  assert_fails(tfc_store_open(path, &(struct tfc_store_options){0}, &store), TFC_INVALID_ARGUMENT,
               "not a regular file");
  unlink(journal), unlink(path);
}

static void test_a_killed_writer(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct tfc_store *store = NULL;
    int64_t run = 0;
    if (tfc_store_open(path, &writing, &store) || add_run(store, &run) || add_candidate(store, run, 0, 5)) _exit(1);
    if (tfc_store_begin(store)) _exit(1);
    if (tfc_store_set_label(store, run, "half")) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_true(WIFSIGNALED(status));
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_true(ask(store, "SELECT COUNT(*) FROM v_run WHERE state = 'running'") == 1);
  assert_false(tfc_store_being_written(store));
  tfc_store_close(store);
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_true(tfc_store_being_written(store));
  assert_true(ask(store, "SELECT COUNT(*) FROM v_run WHERE state = 'interrupted'") == 1);
  assert_ok(tfc_store_find_interrupted(store, -1, "options", &run));
  assert_int_equal(run, 1);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_run WHERE label = 'measured'") == 1);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_op") == 4);
  tfc_store_close(store);
}

// A writer is killed when a part of its transaction is already in the file: a reader gets what was committed before.
static void test_a_reader_after_a_kill(void **state) {
  (void)state;
  for (int locked_out = 0; locked_out < 2; locked_out++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      struct tfc_store *store = NULL;
      int64_t run = 0;
      if (tfc_store_open(path, &writing, &store) || add_run(store, &run)) _exit(1);
      sqlite3 *db = tfc_store_handle(store);
      if (sqlite3_exec(db,
                       "PRAGMA cache_size = 2; BEGIN IMMEDIATE; UPDATE run SET label = 'half';"
                       "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
                       "i < 2000) SELECT randomblob(100) AS x FROM n",
                       NULL, NULL, NULL))
        _exit(2);
      raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    struct tfc_store *store = NULL;
    struct tfc_store_options reading = {0};
    if (locked_out) { // a user without write permission is told what to do
      chmod(path, 0444), chmod(folder, 0555);
      fflush(NULL);
      child = fork();
      if (child == 0) {
        if (getuid() == 0 && setuid(65534) != 0) _exit(2);
        tfc_status s = tfc_store_open(path, &reading, &store);
        _exit(tfc_status_code(s) == TFC_INVALID_ARGUMENT && strstr(tfc_status_message(s), "as a user who may write")
                  ? 0
                  : 1);
      }
      waitpid(child, &status, 0);
      assert_int_equal(WEXITSTATUS(status), 0);
      chmod(folder, 0755), chmod(path, 0644);
    }
    assert_ok(tfc_store_open(path, &reading, &store));
    assert_true(ask(store, "SELECT COUNT(*) FROM v_run") == 1 + locked_out);
    assert_true(ask(store, "SELECT COUNT(*) FROM run WHERE label = 'half'") == 0);
    assert_true(ask(store, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'filler'") == 0);
    tfc_store_close(store);
  }
}

// A link, a file or a pipe in the place of the lock file is not followed, not truncated, and not waited for.
static void test_lock_files(void **state) {
  (void)state;
  char lock_path[160], precious[160], text[64] = "";
  struct tfc_lock *lock = NULL, *other = NULL;
  struct stat st;
  snprintf(lock_path, sizeof lock_path, "%s/lock", folder);
  snprintf(precious, sizeof precious, "%s/precious", folder);
  mode_t mask = umask(0);
  assert_ok(tfc_lock_take(lock_path, "a test", &lock));
  umask(mask);
  assert_int_equal(stat(lock_path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  assert_fails(tfc_lock_take(lock_path, "a test", &other), TFC_FAILED_PRECONDITION, "(a test) since");
  tfc_lock_release(lock);
  assert_ok(tfc_lock_take(lock_path, "a later one", &lock));
  assert_fails(tfc_lock_take(lock_path, "a test", &other), TFC_FAILED_PRECONDITION, "(a later one) since");
  tfc_lock_release(lock);
  unlink(lock_path);

  FILE *f = fopen(precious, "w");
  fputs("precious", f);
  fclose(f);
  assert_int_equal(symlink(precious, lock_path), 0);
  assert_fails(tfc_lock_take(lock_path, "a test", &lock), TFC_DATA_LOSS, "not a regular file");
  unlink(lock_path);
  assert_int_equal(link(precious, lock_path), 0);
  assert_ok(tfc_lock_take(lock_path, "a test", &lock));
  assert_true(tfc_lock_held(lock_path));
  tfc_lock_release(lock);
  f = fopen(precious, "r");
  assert_true(fgets(text, sizeof text, f) && !strcmp(text, "precious"));
  fclose(f);
  unlink(lock_path);
  assert_int_equal(mkfifo(lock_path, 0600), 0);
  assert_fails(tfc_lock_take(lock_path, "a test", &lock), TFC_DATA_LOSS, "not a regular file");
  assert_false(tfc_lock_held(lock_path));
  unlink(lock_path);
  unlink(precious);
  char *usual = NULL; // in a folder in which no other user can create a link
  assert_ok(tfc_lock_path("tfc-lock-test", &usual));
  *strrchr(usual, '/') = 0;
  assert_int_equal(lstat(usual, &st), 0);
  assert_true(S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0);
  free(usual);
}

// A folder so deep that its path has more than PATH_MAX bytes, which is not a lack of memory.
static void test_long_path(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  char name[200], before[4096];
  memset(name, 'd', sizeof name - 1), name[sizeof name - 1] = 0;
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  for (int i = 0; i < 30; i++) assert_true(mkdir(name, 0700) == 0 && chdir(name) == 0);
  FILE *f = fopen("t.db", "w");
  assert_true(f && fclose(f) == 0);
  tfc_status s = tfc_store_open("t.db", &(struct tfc_store_options){0}, &store);
  assert_int_equal(chdir(before), 0);
  assert_fails(s, TFC_INVALID_ARGUMENT, "t.db: File name too long");
}

// Opening a pipe for reading would wait for a writer, and there may be none.
static void test_a_pipe_is_no_database(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(30); // ends the suite if something waits
  assert_fails(tfc_store_open(path, &(struct tfc_store_options){.write = false}, &store), TFC_INVALID_ARGUMENT,
               "not a regular file");
  assert_fails(tfc_store_open(path, &(struct tfc_store_options){.write = true, .purpose = "a test"}, &store),
               TFC_DATA_LOSS, "not a regular file");
  alarm(0);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_pipe_is_no_database, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_long_path, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_one_writer, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_not_a_database, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_read_only_folder, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_journal_of_strangers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_killed_writer, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_reader_after_a_kill, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_lock_files, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("store_files", tests, NULL, NULL);
}
