// Rows: writes a problem into the database: the devices and links of its machine, and the nodes, costs and edges of its
// cost graph. Its times and links come from files, nobody measured them: so their number of samples is 0.
//
// The store needs an open transaction; its errors are those of profiler/store.h.
#ifndef TFC_PLACER_MODEL_ROWS_H
#define TFC_PLACER_MODEL_ROWS_H

#include "placer/model/problem.h"
#include "profiler/store.h"

TFC_MUST_USE tfc_status tfc_problem_write_devices(const struct tfc_problem *problem, tfc_label label,
                                                  struct tfc_store *store, int64_t run);
// For each ordered pair of devices that a link connects: how long no bytes take, and how long a MiB takes.
TFC_MUST_USE tfc_status tfc_problem_write_links(const struct tfc_problem *problem, struct tfc_store *store,
                                                int64_t run);
// `ids`: [node_count] the nodes' numbers in the database; NULL: those of the problem.
TFC_MUST_USE tfc_status tfc_problem_write_costs(const struct tfc_problem *problem, const uint32_t *ids,
                                                struct tfc_store *store, int64_t run);
TFC_MUST_USE tfc_status tfc_problem_write_graph(const struct tfc_problem *problem, struct tfc_store *store,
                                                int64_t run);

#endif
