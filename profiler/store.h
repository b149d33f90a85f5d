// Store: the SQLite database of profiles. One process writes at a time (a lock file next to the database names it);
// every program may read the views of docs/database.md. Nothing that was committed is ever lost: a run writes a batch
// of steps in one transaction, between timed steps, and a failure undoes only that batch.
//
//   struct tfc_store *store = NULL;
//   TFC_TRY(s, tfc_store_open("tfc.db", &(struct tfc_store_options){.write = true, .purpose = "tfc-place"}, &store));
//   TFC_TRY(s, tfc_store_begin(store));
//   TFC_TRY(s, tfc_store_add_run(store, &(struct tfc_store_run){.graph = "nmt.pb"}, &run_id));
//   TFC_TRY(s, tfc_store_commit(store));
//   tfc_store_close(store);
//
// A store belongs to one thread. Writing calls need an open transaction. Errors: DATA_LOSS: the database could not be
// written (the transaction is rolled back), or another process writes to it; NOT_FOUND: there is no such file or row;
// INVALID_ARGUMENT: the file is no database of tfc. A NaN is stored as NULL if the column may be empty; in times and
// rewards it is an error (INVALID_ARGUMENT).
#ifndef TFC_PROFILER_STORE_H
#define TFC_PROFILER_STORE_H

#include "runtime/base/none.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct sqlite3;
struct tfc_store;

struct tfc_store_options {
  bool write;          // else read-only
  const char *purpose; // who writes, for the lock's message
  const char *vfs;     // tests: the name of a replaced VFS
  bool interruptible;  // queries end with CANCELLED when the interrupt flag is set (tfc_interrupt_on)
  int longest;         // a longer text (bytes) is an error where it is read; 0: any length that SQLite allows
};
// For writing, it creates the database if it does not exist, takes the lock, and writes a little to find out whether it
// can.
TFC_MUST_USE tfc_status tfc_store_open(const char *path, const struct tfc_store_options *options,
                                       struct tfc_store **out);
// Makes a database in this process's memory, for reports of runs that are not stored in a file. Its path is "".
TFC_MUST_USE tfc_status tfc_store_open_memory(struct tfc_store **out);
void tfc_store_close(struct tfc_store *store);             // NULL is fine; rolls back what is open
const char *tfc_store_path(const struct tfc_store *store); // exists as long as the store
// Whether some process has it open for writing. If none has, runs in state "running" were killed; the next writer sets
// their state to "interrupted".
bool tfc_store_being_written(const struct tfc_store *store);
// Whether the store reads a temporary copy of the file with today's views, because the file has others: those of an
// older version, or of another program. The next writer converts the file.
bool tfc_store_is_copy(const struct tfc_store *store);
// Returns SQLite's handle for the caller's own queries, which may only read.
struct sqlite3 *tfc_store_handle(struct tfc_store *store);
// Returns the error of a query that has just failed; its message says what the user can do. INVALID_ARGUMENT: the file
// is damaged, or another program has changed its tables (DATA_LOSS if the store was opened for writing).
TFC_MUST_USE tfc_status tfc_store_unreadable(struct tfc_store *store);

TFC_MUST_USE tfc_status tfc_store_begin(struct tfc_store *store); // BEGIN IMMEDIATE
TFC_MUST_USE tfc_status tfc_store_commit(struct tfc_store *store);
void tfc_store_rollback(struct tfc_store *store);

#endif
