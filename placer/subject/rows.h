// Rows: writes the graph of a subject into the database: all nodes of the TensorFlow graph with the units to which they
// belong, and the edges of the step. Runs that measure and runs that simulate write them alike.
#ifndef TFC_PLACER_SUBJECT_ROWS_H
#define TFC_PLACER_SUBJECT_ROWS_H

#include "placer/subject/subject.h"
#include "profiler/store.h"
#include "runtime/graph/op_def.h"

struct tfc_subject_rows {
  const struct tfc_subject *subject;
  const struct tfc_problem *problem; // of the subject
  const uint64_t *output_bytes;      // [output_count] of the graph's outputs; 0: not known
  const struct tfc_op_cost *work;    // [node_count] FLOP and bytes of one run of each node; NaN: not known
  uint32_t output_count, node_count;
};
// The store needs an open transaction; its errors are those of profiler/store.h.
TFC_MUST_USE tfc_status tfc_subject_write_rows(const struct tfc_subject_rows *rows, struct tfc_store *store,
                                               int64_t run);

#endif
