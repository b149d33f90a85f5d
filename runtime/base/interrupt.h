// Interrupts work that takes long only for unusual inputs: reading a file, lowering functions, inferring shapes,
// queries of a database, plots. Such work calls tfc_interrupted again and again, for instance for every node. Only the
// flag and the time limit that a program has set interrupt it.
//
//   TFC_RETURN_IF_ERROR(tfc_interrupted("lowering functions"));
#ifndef TFC_RUNTIME_BASE_INTERRUPT_H
#define TFC_RUNTIME_BASE_INTERRUPT_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

// Names the flag that the program's signal handler sets; NULL: there is no flag. The flag must exist as long as the
// process.
void tfc_interrupt_on(const atomic_bool *flag);
// Sets the time limit, a time of tfc_now_ns's clock; 0: none. `what` names it in messages ("--time 10s"); it is copied.
void tfc_interrupt_at(int64_t deadline_ns, const char *what);

// Returns NULL if the work may continue, CANCELLED if the flag is set, DEADLINE_EXCEEDED (which names the limit) if the
// time is over. Any thread may call it; a call takes a few nanoseconds.
TFC_MUST_USE tfc_status tfc_interrupted(const char *doing);

// Names a process group that must not outlive this process; 0: there is none.
void tfc_interrupt_child(pid_t group);
// Kills that group. A signal handler that ends the process at once calls it first.
void tfc_interrupt_end_child(void);

#endif
