// Kendall's tau of simulated against measured steps, computed from v_result, so that the plot of these points, the
// page, the terminal and the database say the same.
#ifndef TFC_REPORTS_TAU_H
#define TFC_REPORTS_TAU_H

#include "reports/query.h"

// One row: tau, the number of placements and the number of their pairs that count: those whose measured steps are
// further apart than half of the distance of the quartiles of both together. A pair of which the simulated steps are
// equal counts, for neither order. It is the rule of tfc_kendall_tau (profiler/statistics.h), which computes v_run.tau
// when a run ends; here it is SQL so that the plot can show it beside its points. tau is NULL if no pair counts; where
// loads were searched there are no placements, because what is simulated then is not a step.
#define TFC_SQL_TAU                                                                                                    \
  "WITH p AS MATERIALIZED (SELECT placement_id AS id, simulated_us AS x, step_median_us AS y, 0.5 * (step_q3_us - "    \
  "step_q1_us) AS s FROM v_result WHERE run_id = :run AND state = 'ok' AND simulated_us IS NOT NULL AND "              \
  "step_median_us IS NOT NULL AND label IS NOT 'modelled' AND (SELECT objective FROM v_run WHERE run_id = :run) IS "   \
  "NOT 'throughput') SELECT 1.0 * SUM(((a.x > b.x) - (a.x < b.x)) * ((a.y > b.y) - (a.y < b.y))) / COUNT(*) AS tau, "  \
  "(SELECT COUNT(*) FROM p) AS placements, COUNT(*) AS pairs FROM p a JOIN p b ON a.id < b.id WHERE ABS(a.y - b.y) > " \
  "a.s + b.s"

// A row for an answer that was stopped early when it was first measured: its state in v_result stays "cut", and tau
// counts only "ok". Columns: the simulated step, the measured step, half of the distance between the quartiles.
#define TFC_SQL_TAU_WITHOUT                                                                                            \
  "SELECT r.simulated_us, r.step_median_us, 0.5 * (r.step_q3_us - r.step_q1_us) FROM v_result r JOIN v_run v USING "   \
  "(run_id, placement_id) WHERE r.run_id = :run AND r.state = 'cut' AND r.simulated_us IS NOT NULL AND "               \
  "r.step_median_us IS NOT NULL AND v.objective IS NOT 'throughput'"

struct tfc_report_tau {
  double tau; // NaN: no pair of placements counts
  double placements, pairs;
  bool without_answer; // the answer was measured and is none of these placements (TFC_SQL_TAU_WITHOUT)
};
// Whether `tau` differs, when rounded to two decimals, from v_run.tau, which the run computed by the rule of its
// version.
bool tfc_report_tau_differs(const struct tfc_report_tau *tau, const struct tfc_table *run);
TFC_MUST_USE tfc_status tfc_report_tau(struct tfc_store *store, const struct tfc_query_args *args,
                                       struct tfc_report_tau *out);

#endif
