// What a process may do while it runs a graph that nobody vouches for: compute, and no more. Two independent lines: the
// runtime refuses operations that use files, graphs that are too large and memory beyond a limit, with a message that
// names the node; behind it the kernel denies what a fault in the runtime would let through (Landlock: files and
// programs; seccomp: sockets, tracing other processes, and other calls that computing has no use for).
//
// It is here because programs enter it, the measuring worker inherits it, and operations ask about it.
//
//   struct tfc_sandbox_path paths[] = {{"graph.pb", TFC_SANDBOX_READ}, {"out.npy", TFC_SANDBOX_WRITE}};
//   struct tfc_sandbox_rules rules = {.paths = paths, .path_count = 2, .memory = TFC_UNTRUSTED_MEMORY, ...};
//   TFC_TRY(s, tfc_sandbox_enter(&rules, &missing));
//
// There is no way back. Before other threads are started: those that are there keep the rights that they have.
#ifndef TFC_RUNTIME_BASE_SANDBOX_H
#define TFC_RUNTIME_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

#define TFC_UNTRUSTED_MEMORY (UINT64_C(8) << 30) // bytes that a process may take
#define TFC_UNTRUSTED_NODES UINT64_C(1048576)    // in a graph, its functions lowered
#define TFC_UNTRUSTED_SECONDS 600.0

typedef enum tfc_sandbox_access {
  TFC_SANDBOX_READ,   // a file, or everything in a folder
  TFC_SANDBOX_WRITE,  // a file that may be made or replaced: everything in its folder, or the nearest that is there
  TFC_SANDBOX_FOLDER, // everything in a folder that may be made: the nearest that is there
  TFC_SANDBOX_RUN,    // a program that may be started
} tfc_sandbox_access;
struct tfc_sandbox_path {
  const char *path;
  tfc_sandbox_access access;
};

struct tfc_sandbox_rules {
  const struct tfc_sandbox_path *paths; // beside what every process needs: libraries, /proc, /sys
  uint32_t path_count;
  bool starts_programs; // else nothing at all is started
  uint64_t memory, nodes;
};

// Writes a line for each thing that this kernel or this build cannot do into `out_missing`. INTERNAL: the kernel
// refused what it says it can do.
TFC_MUST_USE tfc_status tfc_sandbox_enter(const struct tfc_sandbox_rules *rules, struct tfc_text *out_missing);
// In a process that one with rules has started: the kernel's denials and the limit of memory came with it, the rest
// not.
void tfc_sandbox_inherit(uint64_t nodes);

// Any thread.
bool tfc_untrusted(void);
uint64_t tfc_untrusted_nodes(void); // UINT64_MAX where graphs are trusted

#endif
