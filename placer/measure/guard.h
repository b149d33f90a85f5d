// In the measuring worker: a thread that answers while another one hangs. Before the parent ends the worker it asks
// with a signal, and this thread tells it where the step stands.
#ifndef TFC_PLACER_MEASURE_GUARD_H
#define TFC_PLACER_MEASURE_GUARD_H

#include <signal.h>

#include "runtime/exec/session.h"

enum { TFC_GUARD_SIGNAL = SIGUSR1 };
// Before any other thread is started, which would take the signal. Answers go to `fd`.
void tfc_guard_start(int fd);
// What runs from here on; NULL: nothing.
void tfc_guard_watch(const struct tfc_plan *plan);

#endif
