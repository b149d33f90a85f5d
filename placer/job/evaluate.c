#include "placer/job/evaluate.h"

#include "placer/job/document.h"
#include "placer/job/explain.h"
#include "placer/job/given.h"
#include "placer/job/in_flight.h"
#include "placer/job/saved_problem.h"
#include "placer/job/table.h"
#include "placer/job/turns.h"

tfc_status tfc_job_evaluate(struct tfc_job_measuring *t, struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = t->model;
  struct tfc_job_candidates *c = t->candidates;
  struct tfc_solution solution = {0};
  uint32_t index;
  bool is_new;
  TFC_TRY(s, tfc_job_given(m, t->clock, &solution));
  TFC_TRY(s, tfc_job_candidates_add(c, "evaluated", NULL, "baseline", &solution, &index, &is_new));
  tfc_job_candidates_lead(c, TFC_NONE);
  tfc_job_clock_enter(t->clock, TFC_JOB_FINAL);
  TFC_TRY(s, tfc_job_turns_measure(t, &index, 1, true));
  const struct tfc_job_candidate *k = &c->list.data[index];
  if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL)
    TFC_FAIL(s, k->code == TFC_OK || k->code == TFC_CANCELLED ? TFC_ABORTED : k->code,
             "the placement could not be measured: %s", k->note ? k->note : "it failed");
  tfc_job_candidates_lead(c, index);
  TFC_TRY(s, tfc_job_measure_in_flight(c, t->journal, t->measurer, &index, 1,
                                       tfc_job_until(t->schedule, tfc_job_shares.evaluate)));
  k = &c->list.data[index];
  TFC_TRY(s, tfc_job_table_add(c, k, "evaluated", "answer", NULL, out));
  TFC_TRY(s, tfc_job_explain_placement(m, k, out));
  TFC_TRY(s, tfc_job_document(c, k, out));
  TFC_TRY(s, tfc_job_save_problem(m, t->clock));
  TFC_TRY(s, tfc_job_save_placement(m, out->placement));
  out->exit_code = k->state == TFC_RESULT_NO_FIT ? 5 : 0;
out:
  tfc_solution_deinit(&solution);
  return s;
}
