// Lists as one HTML page.
#ifndef TFC_REPORTS_LISTS_PAGE_H
#define TFC_REPORTS_LISTS_PAGE_H

#include "reports/lists.h"

// Writes DIR/index.html (and creates DIR) with the tables of `lists`. `title` and `note` are HTML.
TFC_MUST_USE tfc_status tfc_report_lists_page(const struct tfc_report_lists *lists, const char *title, const char *note,
                                              const char *dir);

#endif
