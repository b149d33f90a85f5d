// A guard for a task of a job: the program goes on in a child process, and the parent stays to say what it died of,
// with the task, the host and what it did last, and to end with exit code 4, so that mpirun ends the others. A process
// that is killed can say nothing itself.
#ifndef TFC_CLI_GUARD_H
#define TFC_CLI_GUARD_H

#include <stdbool.h>

enum { TFC_GUARD_NAME = 192, TFC_GUARD_LAST = 160 };
struct tfc_guard { // shared by both processes; the child writes
  char name[TFC_GUARD_NAME];
  char last[TFC_GUARD_LAST];
};
// True in the child, with *out. In the parent it does not return before the child has ended: false, and *out_code is
// what the program, whose name messages begin with, is to end with. Before any thread is started. Where there can be no
// child, true with *out NULL.
bool tfc_guard_enter(const char *program, struct tfc_guard **out, int *out_code);

#endif
