// A guard for a task of a job: the program continues in a child process. If the child dies, the parent prints why, with
// the task, the host and what the child did last, and exits with code 4, so that mpirun ends the other tasks. (A
// process that is killed cannot print anything itself.)
#ifndef TFC_CLI_GUARD_H
#define TFC_CLI_GUARD_H

#include <stdbool.h>

enum { TFC_GUARD_NAME = 192, TFC_GUARD_LAST = 160 };
struct tfc_guard { // shared by both processes; the child writes
  char name[TFC_GUARD_NAME];
  char last[TFC_GUARD_LAST];
};
// True in the child, with *out. In the parent it does not return before the child has ended: false, and *out_code is
// what the program, whose name messages begin with, is to end with. Call it before any thread is started. Where there
// can be no child, true with *out NULL.
bool tfc_guard_enter(const char *program, struct tfc_guard **out, int *out_code);

#endif
