// Loads a model that tests/bench/models.py made into a session on one CPU device with all cores that this process may
// use.
#ifndef TFC_TESTS_BENCH_SUITE_MODEL_H
#define TFC_TESTS_BENCH_SUITE_MODEL_H

#include "runtime/exec/session.h"

enum { SUITE_MODEL_MOST = 64 }; // the most feeds, fetches and targets, each
struct suite_model {
  struct tfc_graph *graph;
  struct tfc_device_set devices;
  struct tfc_session *session;
  struct tfc_plan *plan;
  struct tfc_execution execution; // how its session runs; set before it is opened
  struct tfc_run_spec spec;
  struct tfc_output feeds[SUITE_MODEL_MOST], fetches[SUITE_MODEL_MOST];
  struct tfc_shape shapes[SUITE_MODEL_MOST];
  struct tfc_tensor values[SUITE_MODEL_MOST], fetched[SUITE_MODEL_MOST];
  uint32_t targets[SUITE_MODEL_MOST], inits[SUITE_MODEL_MOST], feed_count, fetch_count, target_count, init_count;
};
// Loads FOLDER's model.pb, model.json and feeds, initialises it and plans its step. `rewrites`: "exact" or "all";
// `adapt`: whether the plan may run operations side by side. `out` is zeroed before, and released also after an error.
TFC_MUST_USE tfc_status suite_model_open(const char *folder, const char *rewrites, tfc_adapt adapt,
                                         struct suite_model *out);
void suite_model_close(struct suite_model *m);

#endif
