// For tfc-run --backup: the runs of the graph of all towers (runtime/pass/replicas.h) of which a step consists.
#ifndef TFC_CLI_RUN_BACKUP_RUNS_H
#define TFC_CLI_RUN_BACKUP_RUNS_H

#include "cli/run.h"
#include "cli/run_backups.h"

// What a step gets and gives. Everything is borrowed, for as long as the runs exist.
struct run_backup_step {
  const struct tfc_step_spec *step; // of the graph of all towers
  const struct tfc_output *feeds;   // [step->feed_count]
  const struct tfc_tensor *values;  // [step->feed_count]
  struct tfc_tensor *results;       // [step->fetch_count]
};
struct run_backup_runs;
// Call it when the cluster session exists.
TFC_MUST_USE tfc_status run_backup_runs_create(const struct run_setup *setup, const struct run_backup_step *step,
                                               struct run_backup_runs **out);
struct run_backups_calls run_backup_runs_calls(struct run_backup_runs *runs);
void run_backup_runs_free(struct run_backup_runs *runs); // NULL is fine

#endif
