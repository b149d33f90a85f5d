// Declares what the files of the page share: the run that the page is about, the results of queries that several parts
// use, and the text that grows.
#ifndef TFC_REPORTS_PAGE_H
#define TFC_REPORTS_PAGE_H

#include "placer/model/placement.h"
#include "reports/lists.h"
#include "reports/plot.h"
#include "reports/tau.h"
#include "reports/traced.h"

struct tfc_page {
  struct tfc_store *store;
  bool kept; // the database is a file, which tfc-report can query later
  struct tfc_query_args args;
  struct tfc_plot_scale scale;
  struct tfc_table run, results, devices, in_flight; // `devices`: without the undivided machine
  struct tfc_report_tau tau;
  struct tfc_traced traced;       // the representative traced step, if args.step >= 0
  struct tfc_report_lists nodes;  // empty if no operation was timed
  struct tfc_placement *document; // the answer's, or NULL
  uint32_t *box_of;               // [box_node_count] the node's box on the map; TFC_NONE: none
  uint32_t box_node_count;
  struct tfc_text *out;
};

void tfc_page_add(struct tfc_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tfc_page_escaped(struct tfc_page *p, tfc_str text);
// Adds the queries of a part, if the database is a file.
void tfc_page_query(struct tfc_page *p, const char *summary, const char *sql);
double tfc_page_number(const struct tfc_page *p, const char *column); // of the run's row
tfc_str tfc_page_text(const struct tfc_page *p, const char *column);
bool tfc_page_profiled(const struct tfc_page *p); // a run of tfc-run, which searched nothing
bool tfc_page_modelled(const struct tfc_page *p); // nothing was run: the page shows the results of a simulation
tfc_str tfc_page_base_name(tfc_str path);

void tfc_page_head(struct tfc_page *p);  // title, verdict, cards
void tfc_page_basis(struct tfc_page *p); // says of which step the figures of the page are
// Adds the tensors that fill each device's memory at the moment when it holds most.
TFC_MUST_USE tfc_status tfc_page_memory(struct tfc_page *p);
TFC_MUST_USE tfc_status tfc_page_beside(struct tfc_page *p); // compares virtual devices of one GPU, if there are any
// Adds what the first screen of `tfc-report show` says about the traced step.
TFC_MUST_USE tfc_status tfc_page_summary(struct tfc_page *p);
void tfc_page_devices(struct tfc_page *p);
TFC_MUST_USE tfc_status tfc_page_map(struct tfc_page *p); // fills box_of
void tfc_page_timeline(struct tfc_page *p);
void tfc_page_nodes(struct tfc_page *p); // the table of operations, and the data that the script reads

#endif
