// Several runs compared, as one HTML page.
#ifndef TFC_REPORTS_COMPARE_PAGE_H
#define TFC_REPORTS_COMPARE_PAGE_H

#include "reports/lists.h"

// Writes DIR/index.html (and creates DIR) with what tfc_report_compare found. `database`: the name of its file;
// `is_copy`: tfc_store_is_copy.
TFC_MUST_USE tfc_status tfc_report_compare_page(const struct tfc_report_lists *lists, const char *database,
                                                bool is_copy, const char *dir);

#endif
