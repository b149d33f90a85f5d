// How much memory this process may still take: the machine's, within the limits of its control groups and of `ulimit
// -v` and `ulimit -d`. Linux hands out more addresses than it has memory, and kills the process that touches them. So
// code that allocates tensors asks here first, and can then say for which operation memory was missing. Any thread may
// call these functions.
#ifndef TFC_RUNTIME_BASE_MEMORY_LEFT_H
#define TFC_RUNTIME_BASE_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A limit of the memory that this process may use, and what is left of it.
struct tfc_memory_bound {
  const char *what; // "this machine", "its control group", "ulimit -v", "this process"
  uint64_t limit;   // bytes
  uint64_t used;    // bytes in use by all processes that share the limit, without memory that the kernel can reclaim
  uint64_t left;    // UINT64_MAX: not known
};
// Finds, of all limits of this process's memory, the one that leaves the least, and how much it leaves now.
void tfc_memory_bound(struct tfc_memory_bound *out);
// Limits this process's resident memory: from now on, no more than `bytes` minus what is resident is left.
void tfc_memory_limit(uint64_t bytes);

// Counts memory that is about to be allocated. False: this, plus what was granted and not touched yet, is more than
// what is left. The system is only asked again after much more was granted. Give granted memory back with the same
// size.
bool tfc_memory_grant(size_t bytes);
void tfc_memory_give_back(size_t bytes);
// Memory that is resident now and was not granted is not for tensors, but for the program itself and for reading the
// graph. Call this before much is granted (when a session is created).
void tfc_memory_mark(void);

// How many processes the system has killed since it was started because memory ran out, here or in a control group; 0
// if it does not say. A process that was killed while this number rose was probably one of them.
uint64_t tfc_memory_kills(void);

#endif
