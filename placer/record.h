// Record: writes a modelled answer as a run of a database, so that programs that show measured runs can show it, too:
// the graph, the machine, the answer's simulated step operation by operation, rivals, what each algorithm found, why
// the search ended, and what a learned policy did in it.
//
//   int64_t run = 0;
//   TFC_TRY(s, tfc_store_open_memory(&store));
//   TFC_TRY(s, tfc_record_write(&(struct tfc_record){.problem = p, .answer = &best, .document = file}, store, &run));
//   TFC_TRY(s, tfc_report_page(store, run, "costs.report"));
#ifndef TFC_PLACER_RECORD_H
#define TFC_PLACER_RECORD_H

#include "placer/model/placement.h"
#include "placer/search/search.h"
#include "placer/subject/rows.h"
#include "profiler/store.h"

struct tfc_rival; // placer/search/rivals.h

struct tfc_record {
  const struct tfc_problem *problem;
  const struct tfc_subject_rows *graph_rows;  // a TensorFlow graph; NULL: a cost graph
  const struct tfc_solution *answer, *expert; // expert: the graph's own device strings; NULL: there are none
  const struct tfc_rival *given;              // [given_count] placements of files: the document's last baselines
  uint32_t given_count;
  const struct tfc_placement *document;     // the answer's
  const struct tfc_search_outcome *search;  // NULL: nothing was searched
  const struct tfc_search_options *options; // those that the user gave; NULL: nothing was searched
  const char *graph, *command, *message;    // command and message NULL: none
  int exit_code;
};
// Where a record is written. If `store` is NULL, this is a new database in memory, from which the report is made.
struct tfc_record_target {
  bool wanted;
  bool page;               // a report is made of it afterwards, for which the search leaves time
  struct tfc_store *store; // open for writing, without a transaction
  int64_t run;             // a run of the store that has been added; it may have an earlier record, which is replaced
};

// Steps of graphs with more than TFC_RECORD_MOST nodes are stored without their operations, and rivals without their
// assignments.
enum { TFC_RECORD_MOST = 25000 };
// Returns how many of `seconds` (the time for everything; 0: no limit) a search may use if a report is made after it:
// gnuplot takes a second, and the graph must be written and read.
double tfc_record_leaves(double seconds, uint32_t node_count);
// Writes into the run *run, or adds one if it is 0. The run ends: its state becomes "interrupted" if the search was
// cancelled, otherwise "done".
TFC_MUST_USE tfc_status tfc_record_write(const struct tfc_record *record, struct tfc_store *store, int64_t *run);

#endif
