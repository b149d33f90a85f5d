// Restricts a process that runs a graph which is not trusted. There are two independent lines of defence. First, the
// runtime refuses operations that use files, graphs that are too large, and memory beyond a limit, with a message that
// names the node. Second, the kernel denies what an error in the runtime might allow (Landlock: files and programs;
// seccomp: sockets, tracing other processes, and other calls that computing does not need).
//
// It is in this folder because code of many folders needs it: programs enter it, the measuring worker inherits it, and
// operations check whether it is in force.
//
//   struct tfc_sandbox_path paths[] = {{"graph.pb", TFC_SANDBOX_READ}, {"out.npy", TFC_SANDBOX_WRITE}};
//   struct tfc_sandbox_rules rules = {.paths = paths, .path_count = 2, .memory = TFC_UNTRUSTED_MEMORY, ...};
//   TFC_TRY(s, tfc_sandbox_enter(&rules, &missing));
//
// It cannot be undone. Enter it before other threads are started: existing threads keep their rights.
#ifndef TFC_RUNTIME_BASE_SANDBOX_H
#define TFC_RUNTIME_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

#define TFC_UNTRUSTED_MEMORY (UINT64_C(8) << 30) // the memory that a process may take, in bytes
#define TFC_UNTRUSTED_NODES UINT64_C(1048576)    // the nodes of a graph with lowered functions
#define TFC_UNTRUSTED_SECONDS 600.0

typedef enum tfc_sandbox_access {
  TFC_SANDBOX_READ, // a file, or everything in a folder
  // A file that may be created or replaced. This allows everything in its folder, or in the nearest one that exists.
  TFC_SANDBOX_WRITE,
  TFC_SANDBOX_FOLDER, // everything in a folder that may be created: in the nearest one that exists
  TFC_SANDBOX_RUN,    // a program that may be started
} tfc_sandbox_access;
struct tfc_sandbox_path {
  const char *path;
  tfc_sandbox_access access;
};

struct tfc_sandbox_rules {
  const struct tfc_sandbox_path *paths; // allowed in addition to what every process needs: libraries, /proc, /sys
  uint32_t path_count;
  bool starts_programs; // false: no program may be started
  uint64_t memory, nodes;
};

// Writes into `out_missing` a line for each restriction that this kernel or this build cannot apply. INTERNAL: the
// kernel refused something that it claims to support.
TFC_MUST_USE tfc_status tfc_sandbox_enter(const struct tfc_sandbox_rules *rules, struct tfc_text *out_missing);
// Called in a process that a restricted program has started: it inherited the kernel's restrictions and the memory
// limit; this sets the others.
void tfc_sandbox_inherit(uint64_t nodes);

// Any thread may call this.
bool tfc_untrusted(void);
uint64_t tfc_untrusted_nodes(void); // UINT64_MAX: graphs are trusted

#endif
