// Cost table: the time of each operation on each kind of device, from measured steps. It keeps the last 64 samples of
// each, and gives their median and quartiles. Only one thread may use it.
#ifndef TFC_PROFILER_COST_TABLE_H
#define TFC_PROFILER_COST_TABLE_H

#include "profiler/collector.h"

struct tfc_cost {
  double median_us, q1_us, q3_us, fastest_us; // NaN: never seen on this kind
  uint32_t samples;
};

// Which nodes were fused into which operations, so that the operation's time contains theirs. `done_by[node]`: the
// operation into which the node is fused, or TFC_NONE; NULL: nothing is fused. A fused operation's time is divided
// among its members by what they take alone (`weights`, a table of times without rewrites; NULL or nothing known: the
// operation keeps all). The operation also keeps the shares of members that stay with it in every placement (`kept`).
struct tfc_cost_table;
struct tfc_fusion {
  uint32_t node_count;
  uint32_t *first, *member;             // member[first[n] .. first[n + 1]): the nodes that are fused into node n; NULL:
                                        // nothing is fused
  const struct tfc_cost_table *weights; // borrowed
  const bool *kept;                     // [node_count], borrowed; NULL: none
};
TFC_MUST_USE tfc_status tfc_fusion_init(struct tfc_fusion *fusion, const uint32_t *done_by, uint32_t node_count,
                                        const struct tfc_cost_table *weights, const bool *kept);
void tfc_fusion_deinit(struct tfc_fusion *fusion);

TFC_MUST_USE tfc_status tfc_cost_table_create(uint32_t node_count, uint32_t kind_count, struct tfc_cost_table **out);
void tfc_cost_table_free(struct tfc_cost_table *table); // NULL is fine
// `kind_of_device[device]` for every device of the profile. `fusion` NULL: every operation stands for itself. Times are
// divided by `slowdown[kind * device_count + busy - 1]`, where `busy` is the number of devices of the kind that were
// busy when the operation started. `slowdown` NULL: times are not changed.
TFC_MUST_USE tfc_status tfc_cost_table_add(struct tfc_cost_table *table, const struct tfc_step_profile *profile,
                                           const uint32_t *kind_of_device, uint32_t device_count,
                                           const struct tfc_fusion *fusion, const double *slowdown);
TFC_MUST_USE tfc_status tfc_cost_table_put(struct tfc_cost_table *table, uint32_t node, uint32_t kind, double us);
struct tfc_cost tfc_cost_table_get(const struct tfc_cost_table *table, uint32_t node, uint32_t kind);
// Returns the shortest time ever measured, in us, even if its sample is no longer kept; NaN: there is none.
double tfc_cost_table_fastest(const struct tfc_cost_table *table, uint32_t node, uint32_t kind);

#endif
