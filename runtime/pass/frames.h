// The control flow of a graph: which loop each node is in, which nodes a loop consists of, and which branches must be
// taken before a node runs.
//
//   struct tfc_frames frames = {0};
//   TFC_TRY(s, tfc_frames_find(g, &frames));
//   if (frames.of_node[id] != 0) ... // inside of a loop
//   tfc_frames_deinit(&frames);
#ifndef TFC_RUNTIME_PASS_FRAMES_H
#define TFC_RUNTIME_PASS_FRAMES_H

#include "runtime/graph/op_def.h"

// The nodes of one loop variable. A field is TFC_NONE if the graph has no such node.
struct tfc_frame_variable { // Enter → Merge → Switch → (Exit | body → NextIteration → Merge)
  uint32_t enter, merge, switch_, exit, next;
};
struct tfc_guard { // alive only if `pred` has the value `side`
  struct tfc_output pred;
  int32_t side;
};
struct tfc_guards {
  const struct tfc_guard *items; // in topological order: outer branches first
  uint32_t count;
};
struct tfc_frame {
  uint32_t parent; // TFC_NONE for the root
  tfc_str name;
  int64_t parallel;
  uint32_t condition;       // the LoopCond
  struct tfc_guards around; // the guards in the surrounding frame under which it is entered
  struct tfc_frame_variable *variables;
  uint32_t variable_count;
  uint32_t *constants; // Enter nodes of values that do not change in the loop
  uint32_t constant_count;
};
struct tfc_frames {
  // For each node: the frame of its outputs (of an Enter, the frame of the loop; of an Exit, the surrounding frame). 0:
  // the root.
  uint32_t *of_node;
  struct tfc_frame *frames;
  uint32_t count;
  // The guards of each output within its frame, by output number. Behind them, the guards of each node, by node id.
  struct tfc_guards *guards;
  struct tfc_arena arena;
};

// Whether this is the Switch or the Merge of a loop's variable.
bool tfc_frames_is_loop_switch(const struct tfc_graph *g, const struct tfc_node *n);
bool tfc_frames_is_loop_merge(const struct tfc_graph *g, const struct tfc_node *n);

// Whether this node is in a loop or a branch.
bool tfc_frames_is_inside(const struct tfc_graph *g, const struct tfc_frames *frames, uint32_t id);

// INVALID_ARGUMENT: the graph has a cycle, or an Exit that is in no loop.
TFC_MUST_USE tfc_status tfc_frames_find(const struct tfc_graph *g, struct tfc_frames *out);
void tfc_frames_deinit(struct tfc_frames *frames);

#endif
