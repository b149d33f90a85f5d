// Record: writes a modelled answer as a run of a database, so that programs that show measured runs can show it, too:
// the graph, the machine, the answer's simulated step operation by operation, rivals, and what each algorithm found.
//
//   TFC_TRY(s, tfc_store_open_memory(&store));
//   TFC_TRY(s, tfc_record_write(&(struct tfc_record){.problem = p, .answer = &best, .document = file}, store, &run));
//   TFC_TRY(s, tfc_report_page(store, run, "costs.report"));
#ifndef TFC_PLACER_RECORD_H
#define TFC_PLACER_RECORD_H

#include "placer/model/placement.h"
#include "placer/search/search.h"
#include "profiler/store.h"

struct tfc_record {
  const struct tfc_problem *problem;
  const struct tfc_solution *answer, *expert; // expert NULL: there is none
  const struct tfc_placement *document;       // the answer's
  const struct tfc_search_outcome *search;    // NULL: nothing was searched
  const char *graph, *command, *message;      // command and message NULL: none
  const tfc_str *ops;                         // [node of the problem] its type of operation; NULL: not known
  const double *flops, *bytes;                // [node of the problem] for one run of it; NULL: not known
};
// `store` must be open for writing. Steps of graphs with more than TFC_RECORD_MOST nodes are stored without their
// operations.
enum { TFC_RECORD_MOST = 25000 };
// Returns how many of `seconds` (the time for everything; 0: no limit) a search may use if a report is made after it:
// gnuplot takes a second, and the graph must be written and read.
double tfc_record_leaves(double seconds, uint32_t node_count);
TFC_MUST_USE tfc_status tfc_record_write(const struct tfc_record *record, struct tfc_store *store, int64_t *out_run);

#endif
