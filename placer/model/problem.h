// Placement problem: what an algorithm sees. It combines a cost graph, a machine and an objective, and computes once
// what does not depend on a placement: colocation units (the nodes of one group, or a node alone), times in picoseconds
// on each device, which units may be on which devices, wires, and the precedence among ready operations.
//
//   TFC_TRY(s, tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &problem));
//
// The graph and the machine are borrowed and must outlive the problem. Immutable: any number of threads may read it.
#ifndef TFC_PLACER_MODEL_PROBLEM_H
#define TFC_PLACER_MODEL_PROBLEM_H

#include "placer/model/cost_graph.h"
#include "placer/model/machine.h"

#define TFC_OBJECTIVES(X)                                                                                              \
  X(STEP, "step")                                                                                                      \
  X(THROUGHPUT, "throughput")
typedef enum tfc_objective {
#define TFC_OBJECTIVE_ENUM(name, text) TFC_OBJECTIVE_##name,
  TFC_OBJECTIVES(TFC_OBJECTIVE_ENUM)
#undef TFC_OBJECTIVE_ENUM
} tfc_objective;
const char *tfc_objective_name(tfc_objective objective);
TFC_MUST_USE tfc_status tfc_objective_parse(tfc_str name, tfc_objective *out);

#define TFC_TIME_MAX INT64_MAX     // "never", "no limit" (picoseconds)
#define TFC_CANNOT_RUN INT64_C(-1) // the time of a node where it cannot run

typedef uint16_t tfc_device_id; // index of a device in the machine

// An ordered pair of devices.
struct tfc_pair {
  int64_t latency;  // ps
  double bandwidth; // bytes per second, INFINITY: no limit
  uint32_t wire;    // index of the wire; transfers on one wire wait for each other; TFC_NONE: these never wait
  uint16_t speed;   // speed class: pairs of one class take the same time for the same bytes
  uint8_t linked;   // 0: no link row matches, so the two cannot exchange data
  uint8_t occupies; // enum tfc_occupies
  const struct tfc_link *link;
};

struct tfc_problem {
  struct tfc_arena arena;
  const struct tfc_cost_graph *graph;
  const struct tfc_machine *machine;
  tfc_objective objective;
  uint32_t node_count, tensor_count, unit_count, device_count;
  uint32_t class_count; // devices of one class have the same kind and dispatch time, and share a row of times
  uint32_t wire_count, speed_count, net_count;

  // Nodes.
  const uint32_t *unit; // [node] the unit that it belongs to
  const int64_t *time;  // [class * node_count + node] ps with dispatch time, without slowdown; or TFC_CANNOT_RUN
  // [node] ps, the longest path from its start to the end of the step, with the fastest time of each node and without
  // transfers
  const int64_t *remaining;
  const uint32_t *rank;    // [node] precedence among ready operations: a permutation, lowest first
  const uint32_t *by_rank; // [node_count] the nodes, sorted by rank
  // Units.
  const uint32_t *first_member; // [unit_count + 1]
  const uint32_t *member;       // [node_count] nodes of a unit, ascending
  const uint64_t *unit_memory;  // [unit] sum of its nodes' memory
  // [class * unit_count + unit] sum of the times of its nodes; TFC_CANNOT_RUN if one of them cannot run
  const int64_t *unit_time;
  const uint32_t *unit_pin; // [unit] the only device it may be on, or TFC_NONE
  // Nets: tensors that at least one other unit consumes, sorted by the unit of their producer.
  const uint32_t *first_net;  // [unit_count + 1]
  const uint32_t *net_tensor; // [net]
  const uint32_t *net_first;  // [net_count + 1] into net_unit
  const uint32_t *net_unit;   // the other units that consume the net, ascending
  const uint32_t *first_need; // [unit_count + 1] into need
  const uint32_t *need;       // the nets that a unit consumes, ascending
  // Devices and pairs.
  const uint32_t *device_class; // [device]
  const uint64_t *limit;        // [device] bytes
  const uint32_t *host;         // [device] number of the host that it is in
  uint32_t host_count;
  const struct tfc_pair *pair; // [from * device_count + to]
  const int64_t *wire_time;    // [speed * tensor_count + tensor] ps; NULL if the table would be too large
  const uint32_t *twin;        // [device] the first device that can be exchanged with it without changing the machine;
                               // it may be the device itself
  bool live_matters;           // has_live, and some placement may need more live bytes than a device has
  bool has_live, has_slowdown, has_occupancy, has_missing_links, has_limits;
  bool is_bounded;       // no slowdown is below 1, so no operation is shorter than its `time`
  double horizon;        // ps; every step of every placement is shorter
  int64_t total_fastest; // ps; sum over all nodes of the shortest time
};

// INVALID_ARGUMENT: a group is pinned to two devices, or no device can run it, or times exceed 64 bits of picoseconds;
// UNAVAILABLE: a pin names a device that the machine lacks.
TFC_MUST_USE tfc_status tfc_problem_create(const struct tfc_cost_graph *graph, const struct tfc_machine *machine,
                                           tfc_objective objective, struct tfc_problem **out);
void tfc_problem_free(struct tfc_problem *problem); // NULL is fine

int64_t tfc_problem_wire_time_of(const struct tfc_pair *pair, uint64_t bytes);
// Returns the time in ps of a tensor's transfer between two linked devices: the latency plus the time of its bytes on
// the wire.
static inline int64_t tfc_problem_wire_time(const struct tfc_problem *problem, uint32_t tensor,
                                            const struct tfc_pair *pair) {
  return problem->wire_time ? problem->wire_time[(size_t)pair->speed * problem->tensor_count + tensor]
                            : tfc_problem_wire_time_of(pair, problem->graph->bytes[tensor]);
}
static inline bool tfc_problem_allows(const struct tfc_problem *problem, uint32_t unit, uint32_t device) {
  return (problem->unit_pin[unit] == TFC_NONE || problem->unit_pin[unit] == device) &&
         problem->unit_time[(size_t)problem->device_class[device] * problem->unit_count + unit] >= 0;
}
// Returns the sum of the times of the unit's operations on the device, in ps. The kind of the device must be able to
// run the unit.
static inline int64_t tfc_problem_unit_time(const struct tfc_problem *problem, uint32_t unit, uint32_t device) {
  return problem->unit_time[(size_t)problem->device_class[device] * problem->unit_count + unit];
}
static inline int64_t tfc_problem_time(const struct tfc_problem *problem, uint32_t node, uint32_t device) {
  return problem->time[(size_t)problem->device_class[device] * problem->node_count + node];
}
static inline const struct tfc_pair *tfc_problem_pair(const struct tfc_problem *problem, uint32_t from, uint32_t to) {
  return &problem->pair[(size_t)from * problem->device_count + to];
}
// Returns the name of a unit for messages: its group's name, or the name of its only node.
tfc_str tfc_problem_unit_name(const struct tfc_problem *problem, uint32_t unit);

// A solution: what algorithms propose. It owns its arrays.
struct tfc_solution {
  tfc_device_id *device; // [unit]
  uint32_t *rank;        // [node] precedence that is used instead of the problem's; NULL: the problem's is used
};
TFC_MUST_USE tfc_status tfc_solution_init(struct tfc_solution *solution, const struct tfc_problem *problem);
TFC_MUST_USE tfc_status tfc_solution_copy(struct tfc_solution *to, const struct tfc_solution *from,
                                          const struct tfc_problem *problem);
void tfc_solution_deinit(struct tfc_solution *solution);
// Checks that every unit is on an allowed device, and that every tensor that changes devices has a link.
// INVALID_ARGUMENT names the first unit or tensor that fails.
TFC_MUST_USE tfc_status tfc_solution_check(const struct tfc_problem *problem, const tfc_device_id *device);
// Turns priorities (`order` [node]: finite numbers, the lowest first; NaN: none) into ranks, by the rule of the
// placement file's format.
TFC_MUST_USE tfc_status tfc_rank_from_order(const struct tfc_problem *problem, const double *order, uint32_t *out_rank);

#endif
