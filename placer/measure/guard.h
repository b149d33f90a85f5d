// In the measuring worker: a thread that answers while another one hangs. Before the parent ends the worker it asks
// with a signal, and this thread tells it where the step stands.
#ifndef TFC_PLACER_MEASURE_GUARD_H
#define TFC_PLACER_MEASURE_GUARD_H

#include <signal.h>

#include "runtime/exec/session.h"

enum { TFC_GUARD_SIGNAL = SIGUSR1 };
// Call it before any other thread is started, because that thread would receive the signal. Answers go to `fd`.
void tfc_guard_start(int fd);
// The plan that runs from here on; NULL: none.
void tfc_guard_watch(const struct tfc_plan *plan);

#endif
