// For tfc-run --supervise: how many steps a second each task takes, for people and, in the folder, as TensorFlow's
// events.
#ifndef TFC_CLI_RUN_STATUS_H
#define TFC_CLI_RUN_STATUS_H

#include "cli/run.h"

struct run_status; // what the chief knows
// Makes an events file in the folder.
TFC_MUST_USE tfc_status run_status_open(const struct run_setup *setup, const char *folder, struct run_status **out);
// Returns the rates of the last seconds, such as "; a second: worker:0 12.3 steps, ps:0 24.6 parts of steps". It looks
// anew every few seconds; "" before the first time.
const char *run_status_text(struct run_status *status);
// Writes events every ten seconds, or at once: the rates since the last ones and fetched scalars.
TFC_MUST_USE tfc_status run_status_write(struct run_status *status, int64_t step, const struct tfc_tensor *fetched,
                                         bool at_once);
// Says the rates since run_status_open.
void run_status_say(struct run_status *status);
TFC_MUST_USE tfc_status run_status_close(struct run_status *status); // NULL is fine

#endif
