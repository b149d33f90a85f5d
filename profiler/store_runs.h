// Finds the runs of a store and what they keep for --resume; deletes old ones.
#ifndef TFC_PROFILER_STORE_RUNS_H
#define TFC_PROFILER_STORE_RUNS_H

#include "profiler/store.h"

// Begins a transaction that deletes what a run stored about its graph, its devices and its placements, so that it can
// be stored again: until the transaction is committed, the database keeps what it has. The run itself, its states and
// its warnings stay. SQLite checks foreign keys on this connection from then on. After an error there is no
// transaction.
TFC_MUST_USE tfc_status tfc_store_begin_again(struct tfc_store *store, int64_t run_id);
// The result is malloc'd and terminated by a zero byte. NOT_FOUND: there is no such state.
TFC_MUST_USE tfc_status tfc_store_get_state(struct tfc_store *store, int64_t run_id, const char *name,
                                            struct tfc_text *out);
// Reads the placement file's text of a run.
TFC_MUST_USE tfc_status tfc_store_get_answer(struct tfc_store *store, int64_t run_id, struct tfc_text *out);
// Checks that the run exists; run_id < 0: the last one. NOT_FOUND names the runs that exist.
TFC_MUST_USE tfc_status tfc_store_find_run(struct tfc_store *store, int64_t run_id, int64_t *out_id);
// Finds the run to resume: run_id or, if run_id < 0, the last interrupted one (its state is "interrupted", or it is
// "running" although no process holds the lock). `name`: the run must have a state of this name; runs that measure
// here, that another program measures, and that are only simulated have different ones. NOT_FOUND: there is no such
// run.
TFC_MUST_USE tfc_status tfc_store_find_interrupted(struct tfc_store *store, int64_t run_id, const char *name,
                                                   int64_t *out_id);
// Deletes all runs except the last `keep`, and frees their space. Do not call it inside a transaction.
TFC_MUST_USE tfc_status tfc_store_gc(struct tfc_store *store, int64_t keep, int64_t *out_deleted);
// Makes indexes for readers, once the run has ended. Not inside a transaction.
TFC_MUST_USE tfc_status tfc_store_index(struct tfc_store *store);

#endif
