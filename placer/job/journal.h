// Journal: all that a job writes to the database. Each measured placement is one transaction, written while the worker
// waits and never during a timed step. It also remembers which candidates are stored already.
#ifndef TFC_PLACER_JOB_JOURNAL_H
#define TFC_PLACER_JOB_JOURNAL_H

#include "placer/job/candidates.h"
#include "placer/job/proposers.h"
#include "profiler/store.h"
#include "profiler/store_read.h"
#include "profiler/store_rows.h"

struct tfc_job_journal_row { // the rows of a candidate
  int64_t key, placement_id; // ids in the store; key 0: it is not stored
  uint32_t next_step;        // number of the next step
  bool raw;                  // rows of its single operations are stored
};
struct tfc_job_journal {
  struct tfc_store *store;
  int64_t run; // 0: no run has begun
  const struct tfc_job_clock *clock;
  struct tfc_warnings *warnings;              // may be NULL
  bool has_subject;                           // nodes and edges are stored
  int64_t next_id;                            // the id for the next placement
  TFC_ARRAY(struct tfc_job_journal_row) rows; // by index of candidate
};

TFC_MUST_USE tfc_status tfc_job_journal_open(struct tfc_job_journal *journal, const struct tfc_job_options *options,
                                             const struct tfc_job_clock *clock);
void tfc_job_journal_close(struct tfc_job_journal *journal);
TFC_MUST_USE tfc_status tfc_job_journal_begin(struct tfc_job_journal *journal, const struct tfc_job_options *options,
                                              const char *sha256);         // begins a new run
void tfc_job_journal_resume(struct tfc_job_journal *journal, int64_t run); // goes on with an earlier run
// Stores the measurements by which drivers choose algorithms, for later runs: the lines of struct tfc_measure_info.
TFC_MUST_USE tfc_status tfc_job_journal_tuning(struct tfc_job_journal *journal, const char *lines);
// Tells the journal that a candidate is already stored (by the run that is resumed).
TFC_MUST_USE tfc_status tfc_job_journal_know(struct tfc_job_journal *journal, uint32_t index,
                                             const struct tfc_store_placement_read *stored);
// Forgets all candidates so far; their rows stay in the store.
void tfc_job_journal_forget(struct tfc_job_journal *journal);
// Rebuilds the model and stores its costs; at the first call also its nodes and edges.
TFC_MUST_USE tfc_status tfc_job_journal_rebuild(struct tfc_job_journal *journal, struct tfc_job_model *model);
// Stores a measurement after tfc_job_candidates_take: first the candidate's placement, if it is not stored yet, then
// the steps. `final`: also the figures of the final run.
TFC_MUST_USE tfc_status tfc_job_journal_measured(struct tfc_job_journal *journal,
                                                 const struct tfc_job_candidates *candidates, uint32_t index,
                                                 const struct tfc_measured *measured, const char *phase, bool final);
// Does the same for a measurement with several steps in flight.
TFC_MUST_USE tfc_status tfc_job_journal_in_flight(struct tfc_job_journal *journal,
                                                  const struct tfc_job_candidates *candidates, uint32_t index,
                                                  const struct tfc_measured *measured, uint32_t at_once);
// Stores a placement that was only simulated.
TFC_MUST_USE tfc_status tfc_job_journal_modelled(struct tfc_job_journal *journal,
                                                 const struct tfc_job_candidates *candidates, uint32_t index);
// Stores what is needed to resume the run if it is interrupted: among it, which candidate is the incumbent, and the
// levels of all. State "levels": the incumbent's id (-1: none), then the id and the level in us of each candidate.
// State "evaluations": how many placements the run's searches have simulated.
TFC_MUST_USE tfc_status tfc_job_journal_progress(struct tfc_job_journal *journal, const struct tfc_job_model *model,
                                                 const struct tfc_job_candidates *candidates,
                                                 const struct tfc_job_proposers *proposers);
// Stores a text about the run, which the view v_run shows. `what`: "learning" for what learned policies contributed,
// "ending" for why the search ended.
TFC_MUST_USE tfc_status tfc_job_journal_tell(struct tfc_job_journal *journal, const char *what, const char *text);
int64_t tfc_job_journal_placement_id(const struct tfc_job_journal *journal, uint32_t index); // -1: not stored
// Ends the run in the database, with any outcome.
TFC_MUST_USE tfc_status tfc_job_journal_finish(struct tfc_job_journal *journal,
                                               const struct tfc_job_candidates *candidates,
                                               const struct tfc_store_answer *answer);
const char *tfc_job_state_name(tfc_result_state state); // the name that the store uses for the state

#endif
