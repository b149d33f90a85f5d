// The checkpoints of --supervise DIR: DIR/model.ckpt-STEPS (TensorFlow's V2 format), the last five, and the file
// DIR/checkpoint that names them, as TensorFlow's Saver keeps it. Beside each is model.ckpt-STEPS.state, with the state
// of random operations, iterators, queues, tables and other objects.
#ifndef TFC_CLI_RUN_SAVES_H
#define TFC_CLI_RUN_SAVES_H

#include "cli/run.h"
#include "runtime/base/str.h"

enum { RUN_SAVES_KEPT = 5 };
struct run_saves {
  const struct run_setup *setup;
  const char *folder;
  bool chief;    // only the chief reads and writes files
  bool together; // all clients save and restore, each at the same step; the caller sets it after run_saves_open
  int64_t kept[RUN_SAVES_KEPT]; // step numbers of the existing checkpoints, the oldest first
  uint32_t kept_count;
  int64_t steps;        // step number of the last checkpoint; 0: there is none
  struct tfc_text told; // what the user was already warned is not saved, a line for each object
};
TFC_MUST_USE tfc_status run_saves_open(const struct run_setup *setup, const char *folder, bool chief,
                                       struct run_saves *out);
void run_saves_close(struct run_saves *saves);
// Gives the variables the values of the last checkpoint, if there is one, and operations the state that they had.
// Initialise before, for what is in no checkpoint: tables, datasets.
// The chief alone calls it.
TFC_MUST_USE tfc_status run_saves_restore(struct run_saves *saves);
// Gives this client's local variables the values that they had. Each client calls it after the chief has restored.
TFC_MUST_USE tfc_status run_saves_restore_own(struct run_saves *saves);
// Each client that takes part calls it, with no step of its own running. A signal does not break it off
// (tfc_program_finish_steps).
TFC_MUST_USE tfc_status run_saves_write(struct run_saves *saves, int64_t steps);

#endif
