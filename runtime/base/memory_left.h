// What memory this process may still take: the machine's, within the limits of its cgroups. Linux hands out more
// addresses than it has pages and ends the process that touches them; whoever takes much asks here first, and can say
// which operation wanted it. Any thread.
#ifndef TFC_RUNTIME_BASE_MEMORY_LEFT_H
#define TFC_RUNTIME_BASE_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TFC_MEMORY_MUCH = 64 << 20 }; // bytes: smaller requests are not worth the asking

// Bytes of free and reclaimable memory, of the machine or of the tightest cgroup; UINT64_MAX: not known.
uint64_t tfc_memory_left(void);
// This process may be resident with so many bytes and no more: less than that is left from now on.
void tfc_memory_limit(uint64_t bytes);
// A request of TFC_MEMORY_MUCH bytes and more: false where it, and what was granted and not touched so far, is more
// than what is left. Smaller ones are always granted. What was granted is given back with the same size.
bool tfc_memory_grant(size_t bytes);
void tfc_memory_give_back(size_t bytes);

#endif
