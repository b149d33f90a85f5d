// Saved states of operations (runtime/exec/saved_state.h): which of them nothing takes in a job of another shape, and
// what they say about steps that still move.
#ifndef TFC_RUNTIME_CLUSTER_STATES_H
#define TFC_RUNTIME_CLUSTER_STATES_H

#include "runtime/base/array.h"
#include "runtime/cluster/cut.h"

// Returns the text from the first line on that begins with `mark`; empty: no line does.
tfc_str tfc_states_from(tfc_str text, const char *mark);
// Removes the next section, and what is before it, from the text. `out_name`: what its first line has after `mark`;
// `out_lines`: the lines after it, up to the next one that begins with `mark`. False: there is none.
bool tfc_states_section(tfc_str *text, const char *mark, tfc_str *out_name, tfc_str *out_lines);

// `text` has the lines that were saved for the task with the name `task`. Appends a line, for people, about those that
// cannot be restored: the job has no such task or no such client, or the operation or object is in another task now.
// Lines about the sessions of other clients, and about objects in their tasks, are left out, because they belong to
// graphs that this client, whose rank is `client`, does not know. `clients` [task]: which tasks run steps of their own
// now; others have no local variables. Returns the task's rank; TFC_NONE: there is no such task.
uint32_t tfc_states_list_lost(const struct tfc_cut *cut, uint32_t client, const bool *clients, tfc_str task,
                              tfc_str text, struct tfc_text *out);

// What the states of all tasks say about steps that run now. Steps that save states are not among them.
//
//   "waits<TAB>STEP": an object of the task lets a step of some client wait
//   "runs<TAB>STEP": the task, as a client, runs the step
//   "threads<TAB>NUMBER": so many threads of queue runners begin, run or end a step of the task
struct tfc_moving {
  TFC_ARRAY(int64_t) waits, runs; // step numbers; `runs`: of the clients that matter
  uint32_t threads;               // of these clients
  uint32_t runs_before, threads_before;
  bool is_listed; // each of these threads runs a step: none is about to begin one, or ends one
  bool failed;    // out of memory, or a line makes no sense
};
void tfc_moving_begin(struct tfc_moving *m);
// Takes a line of a task's state; `matters`: the steps of the task's client do. False: the line is about something
// else.
bool tfc_moving_take(struct tfc_moving *m, bool matters, tfc_str line);
void tfc_moving_next(struct tfc_moving *m); // the lines of a task have ended
bool tfc_moving_rests(const struct tfc_moving *m);
void tfc_moving_deinit(struct tfc_moving *m);

#endif
