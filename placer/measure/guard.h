// Guard: a thread of the measuring worker that still answers when another thread hangs. Before the parent process ends
// the worker, it sends TFC_GUARD_SIGNAL, and this thread answers which work of the step has not ended (tfc_plan_where).
#ifndef TFC_PLACER_MEASURE_GUARD_H
#define TFC_PLACER_MEASURE_GUARD_H

#include <signal.h>

#include "runtime/exec/session.h"

enum { TFC_GUARD_SIGNAL = SIGUSR1 };
// Call it before any other thread is started, because that thread would receive the signal. Answers go to `fd`.
void tfc_guard_start(int fd);
// Sets the plan that runs from now on; NULL: none runs.
void tfc_guard_watch(const struct tfc_plan *plan);

#endif
