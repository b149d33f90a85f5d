// Scene: the policy's view of a problem before anything is placed: the units in the order in which they will be placed,
// and features of each. The features do not change with the scale of the graph or machine, so what a policy learned on
// one graph applies to another. Nothing here depends on names, on the order of nodes that are alike, or on which of
// several equal devices is which.
//
// Immutable once made; any number of threads may read it.
#ifndef TFC_RL_SCENE_H
#define TFC_RL_SCENE_H

#include "placer/model/problem.h"

// Gates: numbers from 0 to 1 for each unit, by which the features of a (unit, device) pair (rl/rollout.h) are
// multiplied. A policy has a weight for each pair of a gate and a feature.
#define TFC_GATES(X)                                                                                                   \
  X(ALWAYS, "1")                                                                                                       \
  X(CRITICAL, "longest path through the unit over the critical path, above a half")                                    \
  X(TALKATIVE, "bytes in and out on a wire over that and the unit's time")                                             \
  X(LONG, "the unit's time over that and the mean unit's")                                                             \
  X(SHARED, "consumers of the widest tensor that the unit reads, 1 - 1 / n")                                           \
  X(EARLY, "remaining path over the critical path")                                                                    \
  X(WIRED, "of the whole graph: one transfer of each tensor over that and all work")                                   \
  X(WIDE, "of the whole graph: all work over the critical path and the devices, at most 1")
enum {
#define TFC_GATE_ENUM(name, text) TFC_GATE_##name,
  TFC_GATES(TFC_GATE_ENUM)
#undef TFC_GATE_ENUM
      TFC_GATE_COUNT
};

// Arrays by device that are read as vectors have room for whole vectors.
enum { TFC_SCENE_LANES = 4 };

struct tfc_scene_input {           // an input of a node
  uint32_t tensor, producer, unit; // unit: the producer's
};
struct tfc_scene_need { // a net that a unit reads
  double weight, wire;  // the net's `net_weight`, and its tensor's `wire` (0 if the scene has no `wire`)
  uint32_t net, source; // source: the unit that produces the net
  uint32_t row, fan;    // the net's `net_row`; number of units that read the net
};

struct tfc_scene {
  const struct tfc_problem *problem;
  uint32_t *order;     // [node] producers first, longest remaining path first
  float *gate;         // [unit * TFC_GATE_COUNT]
  double *own;         // [unit] mean of the unit's times on the devices that may run it, ps
  double *fastest;     // [unit] the unit's time on the fastest of these devices, ps
  float *net_weight;   // [net] mean time on the wire, ps
  double *need_weight; // [unit] sum of net_weight over the nets that the unit reads
  double *wire;        // [tensor] ps on the wire, the same between any two devices; NULL: links differ or are missing
  uint8_t occupies;    // with `wire`: whom transfers occupy (enum tfc_occupies)
  uint32_t *source;    // [net] the unit that produces the net
  struct tfc_scene_input *input; // as the graph's `input`
  struct tfc_scene_need *need;   // as the problem's `need`
  uint32_t *net_row;  // [net] the row in which a rollout counts where the net's readers have been placed, from 1 on.
                      // 0: nobody asks, because the net has one reader, which is placed after the net's source
  uint32_t row_count; // rows, with row 0
  bool *read_before;  // [unit] some unit that reads a net of this unit is placed before this unit
  uint32_t *first; // [unit] the position of its first node in `order`: units are placed in the order of these positions
  double *made_weight; // [unit] sum of net_weight over the nets that the unit makes
  uint32_t stride;     // device_count, rounded up to whole vectors
  bool *may;           // [unit * stride + device] the problem allows the unit on the device
  uint32_t *may_count; // [unit] number of devices on which the problem allows the unit
  double
      *first_time; // [unit * stride + device] ps of the unit's first node in `order`; where it may not go, any number
  uint32_t *kind;  // [unit] units of one kind hold and send the same bytes, and so do their neighbours
  uint32_t kind_count;
  tfc_device_id *device; // [device] devices sorted by their properties, not by their position in the machine
  double *pace;          // [device * paces + k] by how much operations take longer while k + 1 devices are busy
  uint32_t paces;
  float *speed; // [(unit * stride + device) * paces + k] what tfc_scene_speed returns for these; NULL: the table would
                // be too large
  double path, work; // ps: critical path; sum of all units' mean times
  double span;       // ps: the larger of the critical path and the work of one device
  bool has_pins;
};
TFC_MUST_USE tfc_status tfc_scene_create(const struct tfc_problem *problem, struct tfc_scene **out);
// Returns the logarithm of the unit's time on the device, while k + 1 devices are busy, over `fastest`.
float tfc_scene_speed(const struct tfc_scene *scene, uint32_t unit, uint32_t device, uint32_t k);
void tfc_scene_free(struct tfc_scene *scene); // NULL is fine

#endif
