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
// In the child process, returns true and sets *out. In the parent process, returns false after the child has ended;
// *out_code is the exit code that the program must return. Messages begin with `program`. Call it before any thread is
// started. If no child process can be made, returns true with *out NULL.
bool tfc_guard_enter(const char *program, struct tfc_guard **out, int *out_code);

#endif
