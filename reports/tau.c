#include "reports/tau.h"

tfc_status tfc_report_tau(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_report_tau *out) {
  struct tfc_table t = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, TFC_SQL_TAU, args, &t));
  *out = (struct tfc_report_tau){tfc_table_number(&t, 0, "tau"), tfc_table_number(&t, 0, "placements"),
                                 tfc_table_number(&t, 0, "pairs")};
out:
  tfc_table_deinit(&t);
  return s;
}
