// The engine of tfc_simulate and tfc_delta: simulates one step, event by event, in exact picoseconds. Internal to the
// placer.
//
// The state of a simulation at one instant is in one block (plus the list of transfers and the heap of ends that are
// still to come), so that it can be saved and restored by copying. The caller sets `device` [node] and `rank` [node].
// After a state was saved, they may change for nodes that were not ready in that state.
#ifndef TFC_PLACER_SIMULATE_ENGINE_STATE_H
#define TFC_PLACER_SIMULATE_ENGINE_STATE_H

#include "placer/simulate/simulate.h"
#include "runtime/base/array.h"

// A transfer that joined the waiting list: its index is its place in the list.
struct tfc_engine_transfer {
  uint32_t tensor;
  uint32_t next;  // the next one on the same wire; or its sibling in a heap of transfers that wait for a device; or
                  // TFC_ENGINE_OVER
  uint32_t holds; // while it waits: its first child in such a heap; when it has ended: consumers at the destination
                  // that have not ended
  tfc_device_id from, to;
};
#define TFC_ENGINE_OVER (TFC_NONE - 1) // value of `next` for a transfer that has ended
struct tfc_engine_event {
  int64_t time;
  uint32_t item; // a node, or EVENT_TRANSFER | index of a transfer
};

// A record of a transfer on its wire: when it joined the list, and when it ended.
struct tfc_engine_ride {
  int64_t joined, ended;
  uint32_t tensor;
  tfc_device_id from, to;
};
struct tfc_engine_rides {
  TFC_ARRAY(struct tfc_engine_ride) list; // in the order of the wire
  size_t over;                            // how many have ended
};

// A record of the order in which operations end.
struct tfc_engine_ends {
  uint32_t *position; // [node]
  uint32_t *node;     // [node_count] the inverse of `position`
  uint32_t *started;  // [node_count + 1] element k: how many operations had started at the end of the instant at which
                      // the k-th ended
};

struct tfc_engine_pace {
  uint64_t neighbours;    // the devices of its kind
  const double *slowdown; // factors, by the number of busy devices of its kind
  const double *time_us;  // [node * stride] of its kind
  uint32_t slowdown_count, stride;
  int64_t dispatch; // ps
};

struct tfc_engine_scalars {
  int64_t now, value;
  uint64_t transfer_bytes;                                   // added up if count_bytes
  uint32_t ended, event_count, transfer_count, transfer_low; // transfer_low: all transfers before this index have ended
};

struct tfc_engine {
  const struct tfc_problem *problem;
  tfc_device_id *device;                  // [node + 1]
  uint32_t *rank;                         // [node]
  uint32_t *by_rank;                      // [node_count]
  const uint32_t *rank_now, *by_rank_now; // the ranks in use: the problem's or the engine's own
  bool live;                              // live bytes are counted
  bool plain;                             // no live bytes, no occupancy, no slowdown
  bool lean;              // plain, with fewer than 64 devices; every transfer uses a wire, and every end has a leaf
  bool apart;             // every transfer takes more than 0 ps
  bool wired;             // every transfer uses a wire, and every end has a leaf
  bool inbox;             // no live bytes, fewer than 64 devices, no wires; every transfer occupies only its receiver
  uint32_t levels, words; // of the set of ready operations of a device, which has a bit for each rank, and for each 64
                          // bits one bit in the next level
  uint32_t level_at[6];
  uint32_t leaves; // leaves of the tree of ends, a power of two; 0: times are too long to be packed into its keys
  uint32_t leaf_bits;
  uint32_t masks; // 64-bit words of a set of devices

  // The block that is saved and restored.
  uint8_t *block;
  size_t block_size;
  struct tfc_engine_scalars *scalars;
  uint32_t *pending;          // [node] how many of its inputs have not arrived
  uint64_t *ready;            // [device * words]
  uint64_t *tree;             // [2 * leaves] for each inner node the smallest end below it: time << leaf_bits | leaf,
                              // or UINT64_MAX. The leaves are devices, then wires
  uint32_t *running;          // [leaves] the operation or transfer that ends there
  int64_t *left;              // [device] ps of operations that have not started
  int64_t *busy;              // [device] ps
  uint64_t *idle, *has_ready; // sets of devices
  uint32_t *wire_head, *wire_tail;   // [wire] waiting transfers
  uint8_t *wire_busy;                // [wire]
  uint32_t *heap_root;               // [device] transfers that wait for the device, by index
  uint32_t *class_busy;              // [class] (by kind) devices that are not idle
  uint32_t *inbox_head, *inbox_tail; // [device] inbox: transfers that wait for it, in the order of the list
  uint32_t *holds;                   // [tensor] on the producer's device: consumers and transfers that have not ended
  uint64_t *memory, *peak;           // [device] live bytes
  uint32_t *first_transfer;          // [tensor] index of its first transfer (with live bytes)

  TFC_ARRAY(struct tfc_engine_event) events; // binary heap of the ends that have no leaf; their number is in `scalars`
  TFC_ARRAY(struct tfc_engine_transfer) transfers; // their number is in `scalars`
  // The state with which every run begins.
  uint32_t *inputs;  // [node]
  uint32_t *sources; // [source_count] nodes without inputs
  uint32_t source_count;
  struct tfc_engine_pace *pace; // [device] for inbox: how long operations take on the device
  uint32_t *first_four,
      *fours; // lean and inbox: each tensor's consumers in groups of four, padded with node_count; its first group
              // [tensor + 1]
  // Scratch memory of one round.
  uint32_t *ended_nodes;    // [device]
  uint32_t *touched_wires;  // [wire]
  uint8_t *wire_touched;    // [wire]
  TFC_ARRAY(uint32_t) walk; // heap of indices of transfers that may start now
  uint32_t *kind_of;        // [device] devices of one kind share a number
  // The longest remaining path of each node under this placement, used to stop a run early. It is correct only for
  // nodes after `tail_from` in the topological order; for the others the problem's own is used. NULL: not known.
  const int64_t *tail;      // [node] ps
  const uint32_t *position; // [node]
  uint32_t tail_from;
  // The engine pauses at the end of an instant if the operations that have ended, at least `watch_from` of them, are
  // exactly the first ones in the order in which another run's operations end. NULL: it does not pause for this reason.
  const uint32_t *end_position; // [node]
  uint32_t reach;               // one more than the highest position of an operation that has ended
  uint32_t watch_from;
  // Records of the run; each is made only if its pointer is not NULL.
  int64_t *start, *end, *arrival; // [node]; arrival: when the node became ready
  int64_t *arrived;               // [tensor * device_count + device] ends of transfers
  struct tfc_engine_rides *rides; // [wire], plain problems only; inbox: [device]
  struct tfc_engine_ends *ends;
  uint32_t *sequence;                 // [node] its number in the order in which operations start
  TFC_ARRAY(struct tfc_transfer) log; // filled if `log_transfers`
  TFC_ARRAY(uint32_t) log_sequence;   // number of each transfer's start, in the order of all starts
  uint32_t *step_sequence;            // [node] number of its start in that order, with log_transfers
  uint32_t starts, all_starts;
  bool log_transfers;
  bool count_bytes; // bytes are added up when transfers join; otherwise from the list, which is complete only if no
                    // saved state was restored
  bool failed;      // memory ran out
};

#define TFC_ENGINE_TRANSFER (UINT32_C(1) << 31)

// `live`: count live bytes (`has_live` in problem.h). Without that, the times are the same.
TFC_MUST_USE tfc_status tfc_engine_init(struct tfc_engine *engine, const struct tfc_problem *problem, bool live);
void tfc_engine_deinit(struct tfc_engine *engine);
// Sets the devices of nodes from those of units, and the rank. False: a unit is on a device that cannot run it.
bool tfc_engine_place(struct tfc_engine *engine, const tfc_device_id *unit_device, const uint32_t *rank);
void tfc_engine_begin(struct tfc_engine *engine); // sets the state at the beginning of a step

struct tfc_engine_save {
  uint8_t *block;
  TFC_ARRAY(struct tfc_engine_event) events;
  TFC_ARRAY(struct tfc_engine_transfer) transfers; // the transfers from transfer_low on
  int64_t time;                                    // time of the next event; all earlier events have happened
  uint32_t starts;
};
bool tfc_engine_save(struct tfc_engine *engine, struct tfc_engine_save *save); // false: out of memory
// Bytes of all transfers of the finished run.
uint64_t tfc_engine_transfer_bytes(const struct tfc_engine *engine);
// `shift` (ps) is added to all times of the saved state.
void tfc_engine_restore(struct tfc_engine *engine, const struct tfc_engine_save *save, int64_t shift);
void tfc_engine_save_shift(const struct tfc_engine *engine, struct tfc_engine_save *save,
                           int64_t shift); // makes the saved state later by `shift` ps
uint32_t tfc_engine_save_ended(const struct tfc_engine *engine, const struct tfc_engine_save *save);
void tfc_engine_save_deinit(struct tfc_engine_save *save);

#endif
