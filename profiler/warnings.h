// Warnings: what a program warned of, for the database. A program adds each warning that it prints; whoever stores a
// run stores them with it, as often as it likes: a warning that the run has already is not stored again.
//
//   static struct tfc_warnings warnings = TFC_WARNINGS_INIT;
//   tfc_warnings_add(&warnings, "other programs are at work");
//   TFC_TRY(s, tfc_warnings_store(&warnings, store, run)); // needs an open transaction
//
// Any thread may add.
#ifndef TFC_PROFILER_WARNINGS_H
#define TFC_PROFILER_WARNINGS_H

#include <pthread.h>

#include "profiler/store.h"

enum { TFC_WARNINGS_MOST = 64 }; // later ones are not kept

struct tfc_warnings {
  pthread_mutex_t lock;
  uint32_t count;
  char *texts[TFC_WARNINGS_MOST]; // all different
};
#define TFC_WARNINGS_INIT                                                                                              \
  { .lock = PTHREAD_MUTEX_INITIALIZER }

// Without memory the warning is not kept.
void tfc_warnings_add(struct tfc_warnings *warnings, const char *text);
// `warnings` may be NULL: there are none.
TFC_MUST_USE tfc_status tfc_warnings_store(struct tfc_warnings *warnings, struct tfc_store *store, int64_t run);
void tfc_warnings_deinit(struct tfc_warnings *warnings);

#endif
