// A made-up run in a database, for tests of what reads one: four devices, a layered graph, rivals, forty candidates, a
// final measurement. Everything follows from the seed.
#ifndef TFC_TESTS_COMMON_SAMPLE_RUN_H
#define TFC_TESTS_COMMON_SAMPLE_RUN_H

#include "profiler/store.h"

struct sample_run {
  int64_t run_id;
  double answer_us, whole_us, single_us, expert_us; // medians
  uint64_t transfer_bytes;                          // of a step of the answer
  double busy_us[4];                                // of the representative step of the answer
  double matmul_us;                                 // sum of the medians of the answer's MatMuls
};
// Adds a run to the database, which is created if it does not exist.
TFC_MUST_USE tfc_status sample_run_write(const char *path, uint64_t seed, struct sample_run *out);

#endif
