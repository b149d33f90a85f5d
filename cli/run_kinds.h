// tfc-run --run --profile: the recorded steps of a script. Steps with the same feeds (and shapes of these), fetches and
// targets are of one kind, and each kind becomes a run of its own in the database: its steps take about as long as each
// other, and one page shows them.
//
//   TFC_TRY(s, run_kinds_open(setup, true, &setup->kinds));
//   ... run the script ...
//   TFC_TRY(s, run_kinds_store(setup->kinds, setup, false));
//   run_setup_close(setup); // frees it
#ifndef TFC_CLI_RUN_KINDS_H
#define TFC_CLI_RUN_KINDS_H

#include "cli/run.h"

struct run_kinds;
// `checks`: it fails if the database cannot be written. One task of a job asks for that.
TFC_MUST_USE tfc_status run_kinds_open(const struct run_setup *setup, bool checks, struct run_kinds **out);
void run_kinds_free(struct run_kinds *kinds); // NULL is fine
// Runs a step and keeps what was recorded of it, by all tasks if there are several. `name`: its place in the script; a
// kind has the name of its first step. `beside`: other steps run at the same time; then one process does not record it.
// Steps that fail are not kept. Any thread may call it.
TFC_MUST_USE tfc_status run_kinds_step(struct run_kinds *kinds, const struct run_setup *setup, const char *name,
                                       bool beside, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                                       struct tfc_tensor *fetches, const struct tfc_run_options *options);
// Adds a run to the database for each kind, in the order in which kinds began. `stopped`: a signal ended the script.
TFC_MUST_USE tfc_status run_kinds_store(const struct run_kinds *kinds, const struct run_setup *setup, bool stopped);

#endif
