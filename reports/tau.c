#include "reports/tau.h"

#include <math.h>

tfc_status tfc_report_tau(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_report_tau *out) {
  struct tfc_table t = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, TFC_SQL_TAU, args, &t));
  struct tfc_report_tau tau = {tfc_table_number(&t, 0, "tau"), tfc_table_number(&t, 0, "placements"),
                               tfc_table_number(&t, 0, "pairs"), false};
  tfc_table_deinit(&t);
  TFC_TRY(s, tfc_table_query(store, TFC_SQL_TAU_WITHOUT, args, &t));
  tau.without_answer = t.row_count > 0;
  *out = tau;
out:
  tfc_table_deinit(&t);
  return s;
}

bool tfc_report_tau_differs(const struct tfc_report_tau *tau, const struct tfc_table *run) {
  const double stored = tfc_table_number(run, 0, "tau");
  return tau->tau == tau->tau && stored == stored && round(100 * tau->tau) != round(100 * stored);
}
