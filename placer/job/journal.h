// Journal: all that a job writes to the database. Each measured placement is one transaction, written while the worker
// waits, never during a timed step. The journal also knows which candidates have rows already.
#ifndef TFC_PLACER_JOB_JOURNAL_H
#define TFC_PLACER_JOB_JOURNAL_H

#include "placer/job/candidates.h"
#include "profiler/store.h"

struct tfc_job_journal_row { // of a candidate
  int64_t key, placement_id; // in the store; key 0: not there
  uint32_t next_step;        // number of its next step
  bool raw;                  // rows of its single operations are there
};
struct tfc_job_journal {
  struct tfc_store *store;
  int64_t run; // 0: none was begun
  const struct tfc_job_clock *clock;
  bool has_subject;                           // nodes and edges are there
  int64_t next_id;                            // of placements
  TFC_ARRAY(struct tfc_job_journal_row) rows; // by index of candidate
};

TFC_MUST_USE tfc_status tfc_job_journal_open(struct tfc_job_journal *journal, const struct tfc_job_options *options,
                                             const struct tfc_job_clock *clock);
void tfc_job_journal_close(struct tfc_job_journal *journal);
TFC_MUST_USE tfc_status tfc_job_journal_begin(struct tfc_job_journal *journal, const struct tfc_job_options *options,
                                              const char *sha256); // a new run
// A candidate that is in the store already.
TFC_MUST_USE tfc_status tfc_job_journal_know(struct tfc_job_journal *journal, uint32_t index,
                                             struct tfc_job_journal_row row);
// The candidates so far were forgotten: their rows stay in the store.
void tfc_job_journal_forget(struct tfc_job_journal *journal);
// Rebuilds the model and stores its costs; the first time its nodes and edges too.
TFC_MUST_USE tfc_status tfc_job_journal_rebuild(struct tfc_job_journal *journal, struct tfc_job_model *model);
// A measurement of a candidate that has taken it over: new, a placement row first; `final`: with its final numbers.
TFC_MUST_USE tfc_status tfc_job_journal_measured(struct tfc_job_journal *journal,
                                                 const struct tfc_job_candidates *candidates, uint32_t index,
                                                 const struct tfc_measured *measured, const char *phase, bool final);
// The same with so many steps at once.
TFC_MUST_USE tfc_status tfc_job_journal_in_flight(struct tfc_job_journal *journal,
                                                  const struct tfc_job_candidates *candidates, uint32_t index,
                                                  const struct tfc_measured *measured, uint32_t at_once);
// A placement that was only simulated.
TFC_MUST_USE tfc_status tfc_job_journal_modelled(struct tfc_job_journal *journal,
                                                 const struct tfc_job_candidates *candidates, uint32_t index);
// What an interrupted run goes on from.
TFC_MUST_USE tfc_status tfc_job_journal_progress(struct tfc_job_journal *journal, const struct tfc_job_model *model);
int64_t tfc_job_journal_placement_id(const struct tfc_job_journal *journal, uint32_t index); // -1: not stored
// The end of the run, whichever way it ended.
TFC_MUST_USE tfc_status tfc_job_journal_finish(struct tfc_job_journal *journal, const struct tfc_store_answer *answer);
const char *tfc_job_state_name(tfc_result_state state); // as the store has it

#endif
