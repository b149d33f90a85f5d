// What memory this process may still take: the machine's, within the limits of its control groups and of `ulimit -v`
// and
// `-d`. Linux hands out more addresses than it has pages and ends the process that touches them; whoever takes memory
// for tensors asks here first, and can say which operation wanted it. Any thread.
#ifndef TFC_RUNTIME_BASE_MEMORY_LEFT_H
#define TFC_RUNTIME_BASE_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The tightest bound.
struct tfc_memory_bound {
  const char *what; // "this machine", "its control group", "ulimit -v", "this process"
  uint64_t limit;   // bytes
  uint64_t used;    // of it, by everybody who shares it, without what can be taken back
  uint64_t left;    // UINT64_MAX: not known
};
void tfc_memory_bound(struct tfc_memory_bound *out);
uint64_t tfc_memory_left(void); // `left` of it
// This process may be resident with so many bytes and no more: less than that is left from now on.
void tfc_memory_limit(uint64_t bytes);

// Counts memory that is about to be allocated; false where it, and what was granted and not touched so far, is more
// than what is left. Looks at the system only after much was granted since it last did. What was granted is given back
// with the same size.
bool tfc_memory_grant(size_t bytes);
void tfc_memory_give_back(size_t bytes);
// What is in the resident set now and was not granted is not tensors: the program, what read a graph. To be called
// before much is granted (when a session is made).
void tfc_memory_mark(void);

#endif
