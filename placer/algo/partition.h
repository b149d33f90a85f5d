// The undirected graph of units that METIS and Scotch partition. The weight of a vertex is the unit's time, that of an
// edge its time on the wire. Parts are assigned to devices so that the simulated result is best. Internal to the
// algorithms.
#ifndef TFC_PLACER_ALGO_PARTITION_H
#define TFC_PLACER_ALGO_PARTITION_H

#include "placer/search/local.h"

struct tfc_partition_graph {        // compressed sparse rows, each edge in both directions, no loops
  int32_t vertex_count, edge_count; // edge_count counts both directions
  int32_t *first;                   // [vertex_count + 1]
  int32_t *to, *edge_weight;        // [edge_count], at least 1
  int32_t *weight, *memory;         // [vertex_count], scaled so that the sums fit
};
TFC_MUST_USE tfc_status tfc_partition_graph_make(const struct tfc_problem *problem, struct tfc_partition_graph *out);
void tfc_partition_graph_free(struct tfc_partition_graph *graph);
// Makes a placement from parts [unit] (0 to device_count - 1): part i goes to device i if that is allowed; units are
// moved if memory limits or missing links require it.
void tfc_partition_place(const struct tfc_problem *problem, uint64_t seed, const int32_t *part, tfc_device_id *device);
// Computes the relative speed of each device: the share of the work that it should get. The sum is 1.
void tfc_partition_shares(const struct tfc_problem *problem, double *out_share);

#endif
