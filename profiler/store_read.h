// Reads what a run stored, to resume it: it passes each row to a function, in the form in which it was added
// (profiler/store.h). Strings are valid during the call only; a status of the function ends the reading and is
// returned.
#ifndef TFC_PROFILER_STORE_READ_H
#define TFC_PROFILER_STORE_READ_H

#include "profiler/store.h"
#include "profiler/store_rows.h"

// NOT_FOUND: there is no such run. `state`: "running", "done", "interrupted", "failed".
typedef tfc_status (*tfc_store_run_fn)(void *user, const struct tfc_store_run *run, const char *state);
TFC_MUST_USE tfc_status tfc_store_read_run(struct tfc_store *store, int64_t run_id, tfc_store_run_fn fn, void *user);

// In the order of device_id. Only id, name, cores, math, dispatch_us and slowdown are filled in.
typedef tfc_status (*tfc_store_device_fn)(void *user, const struct tfc_store_device *device);
TFC_MUST_USE tfc_status tfc_store_read_devices(struct tfc_store *store, int64_t run_id, tfc_store_device_fn fn,
                                               void *user);
typedef tfc_status (*tfc_store_link_fn)(void *user, const struct tfc_store_link *link);
TFC_MUST_USE tfc_status tfc_store_read_links(struct tfc_store *store, int64_t run_id, tfc_store_link_fn fn, void *user);
typedef tfc_status (*tfc_store_cost_fn)(void *user, const struct tfc_store_cost *cost);
TFC_MUST_USE tfc_status tfc_store_read_costs(struct tfc_store *store, int64_t run_id, tfc_store_cost_fn fn, void *user);

struct tfc_store_placement_read {
  struct tfc_store_placement row; // without digest, label, reward, costs and transfers
  int64_t key;
  uint32_t next_step; // number of the first step that is not stored
  bool raw;           // rows of its single operations are stored
};
typedef tfc_status (*tfc_store_placement_fn)(void *user, const struct tfc_store_placement_read *placement);
// The rows are in the order of placement_id.
TFC_MUST_USE tfc_status tfc_store_read_placements(struct tfc_store *store, int64_t run_id, tfc_store_placement_fn fn,
                                                  void *user);
typedef tfc_status (*tfc_store_assignment_fn)(void *user, uint32_t unit_id, uint32_t device_id);
TFC_MUST_USE tfc_status tfc_store_read_assignment(struct tfc_store *store, int64_t key, tfc_store_assignment_fn fn,
                                                  void *user);
typedef tfc_status (*tfc_store_memory_fn)(void *user, const struct tfc_store_memory *memory);
typedef tfc_status (*tfc_store_proposer_fn)(void *user, const struct tfc_store_proposer *proposer);
TFC_MUST_USE tfc_status tfc_store_read_proposers(struct tfc_store *store, int64_t run_id, tfc_store_proposer_fn fn,
                                                 void *user);
TFC_MUST_USE tfc_status tfc_store_read_memory(struct tfc_store *store, int64_t key, tfc_store_memory_fn fn, void *user);

#endif
