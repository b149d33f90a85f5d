// The engine under tfc_simulate and tfc_delta: one step, event by event, in exact picoseconds. Internal to the placer.
//
// The state of a simulation at one instant lies in one block (plus the log of transfers and the heap of ends that are
// still to come), so that it can be saved and restored by copying. `device` [node] and `rank` [node] are set by the
// caller. After a state was saved, they may change for nodes that were not ready in that state.
#ifndef TFC_PLACER_SIMULATE_ENGINE_H
#define TFC_PLACER_SIMULATE_ENGINE_H

#include "placer/simulate/simulate.h"
#include "runtime/base/array.h"

// A transfer that joined the waiting list: its index is its place in the list.
struct tfc_engine_transfer {
  uint32_t tensor;
  uint32_t
      next; // behind it on the same wire; its sibling in a heap of those that wait for a device; or TFC_ENGINE_OVER
  uint32_t holds; // waiting: its first child in such a heap; over: consumers at the destination that have not ended
  tfc_device_id from, to;
};
#define TFC_ENGINE_OVER (TFC_NONE - 1) // `next` of a transfer that has ended
struct tfc_engine_event {
  int64_t time;
  uint32_t item; // a node, or EVENT_TRANSFER | index of a transfer
};

// A transfer's time on its wire, recorded: from joining the list to its end.
struct tfc_engine_ride {
  int64_t joined, ended;
  uint32_t tensor;
  tfc_device_id from, to;
};
struct tfc_engine_rides {
  TFC_ARRAY(struct tfc_engine_ride) list; // in the order of the wire
  size_t over;                            // how many have ended
};

// The order in which operations end, recorded.
struct tfc_engine_ends {
  uint32_t *position; // [node]
  uint32_t *node;     // [node_count] the inverse
  uint32_t *started;  // [node_count + 1] how many had started when so many had ended, at the end of that instant
};

struct tfc_engine_pace {
  uint64_t neighbours;    // devices of its kind
  const double *slowdown; // factors, by the number of busy devices of its kind
  const double *time_us;  // [node * stride] of its kind
  uint32_t slowdown_count, stride;
  int64_t dispatch; // ps
};

struct tfc_engine_scalars {
  int64_t now, value;
  uint64_t transfer_bytes;                                   // counted if count_bytes
  uint32_t ended, event_count, transfer_count, transfer_low; // low: all before have ended
};

struct tfc_engine {
  const struct tfc_problem *problem;
  tfc_device_id *device;                  // [node + 1]
  uint32_t *rank;                         // [node]
  uint32_t *by_rank;                      // [node_count]
  const uint32_t *rank_now, *by_rank_now; // the ranks in use: the problem's or the engine's own
  bool live;                              // live bytes are counted
  bool plain;                             // no live bytes, no occupancy, no slowdown
  bool lean;                              // plain, fewer than 64 devices, every transfer on a wire, every end on a leaf
  bool apart;                             // every transfer takes more than 0 ps
  bool wired;                             // every transfer on a wire, every end on a leaf
  bool inbox;             // no live bytes, fewer than 64 devices, no wires, every transfer occupies its receiver alone
  bool count_incoming;    // `left` has the transfers that a device is to receive too
  uint32_t levels, words; // of the set of ready operations of a device: a bit for each rank, summed up by 64
  uint32_t level_at[6];
  uint32_t leaves; // of the tree of ends, a power of two; 0: times are too long to be packed
  uint32_t leaf_bits;
  uint32_t masks; // 64-bit words of a set of devices

  // The block.
  uint8_t *block;
  size_t block_size;
  struct tfc_engine_scalars *scalars;
  uint32_t *pending;          // [node] inputs that are not there
  uint64_t *ready;            // [device * words]
  uint64_t *tree;             // [2 * leaves] least end below each inner node: time << leaf_bits | leaf, or UINT64_MAX;
                              // leaves: devices, then wires
  uint32_t *running;          // [leaves] the item that ends there
  int64_t *left;              // [device] ps of operations that have not started
  int64_t *busy;              // [device] ps
  uint64_t *idle, *has_ready; // sets of devices
  uint32_t *wire_head, *wire_tail;   // [wire] waiting transfers
  uint8_t *wire_busy;                // [wire]
  uint32_t *heap_root;               // [device] transfers that wait for it, by index
  uint32_t *class_busy;              // [class] (by kind) devices that are not idle
  uint32_t *inbox_head, *inbox_tail; // [device] inbox: transfers that wait for it, in the order of the list
  uint32_t *holds;                   // [tensor] on the producer's device: consumers and transfers that have not ended
  uint64_t *memory, *peak;           // [device] live bytes
  uint32_t *first_transfer;          // [tensor] index of its first transfer (with live bytes)

  TFC_ARRAY(struct tfc_engine_event) events;       // binary heap of ends that have no leaf, count in scalars
  TFC_ARRAY(struct tfc_engine_transfer) transfers; // count in scalars
  // What every run begins with.
  uint32_t *inputs;  // [node]
  uint32_t *sources; // [source_count] nodes without inputs
  uint32_t source_count;
  struct tfc_engine_pace *pace; // [device] inbox: how long operations take there
  uint32_t *first_four,
      *fours; // lean and inbox: each tensor's consumers in groups of four, padded with node_count; its first group
              // [tensor + 1]
  // Work space of one round.
  uint32_t *ended_nodes;    // [device]
  uint32_t *touched_wires;  // [wire]
  uint8_t *wire_touched;    // [wire]
  TFC_ARRAY(uint32_t) walk; // heap of indices of transfers that may start now
  uint32_t *kind_of;        // [device] devices of one kind share a number
  // The longest remaining path of each node under this placement, for cutting off. It is right only for nodes behind
  // `tail_from` in the topological order; for others the problem's own is used. NULL: not known.
  const int64_t *tail;      // [node] ps
  const uint32_t *position; // [node]
  uint32_t tail_from;
  // The engine pauses at the end of an instant if the operations that have ended, at least `watch_from` of them, are
  // exactly the first ones of another run's order of ends. NULL: it does not pause for this.
  const uint32_t *end_position; // [node]
  uint32_t reach;               // one more than the highest position of one that has ended
  uint32_t watch_from;
  // Records of the run; each is kept only if its pointer is not NULL.
  int64_t *start, *end, *arrival; // [node]; arrival: when it became ready
  int64_t *arrived;               // [tensor * device_count + device] ends of transfers
  struct tfc_engine_rides *rides; // [wire], plain problems only; inbox: [device]
  struct tfc_engine_ends *ends;
  uint32_t *sequence;                 // [node] starts of operations, counted
  TFC_ARRAY(struct tfc_transfer) log; // filled if `log_transfers`
  TFC_ARRAY(uint32_t) log_sequence;   // start of each transfer, counted together with operations
  uint32_t *step_sequence;            // [node] counted together with transfers, with log_transfers
  uint32_t starts, all_starts;
  bool log_transfers;
  bool count_bytes; // add up bytes when transfers join; else from the list, which is complete only if no saved state
                    // was restored
  bool failed;      // memory ran out
};

#define TFC_ENGINE_TRANSFER (UINT32_C(1) << 31)

// `live`: count live bytes (`has_live` in problem.h); the times are the same without.
TFC_MUST_USE tfc_status tfc_engine_init(struct tfc_engine *engine, const struct tfc_problem *problem, bool live);
void tfc_engine_deinit(struct tfc_engine *engine);
// Sets devices from units and the rank; false: a unit is where it cannot run.
bool tfc_engine_place(struct tfc_engine *engine, const tfc_device_id *unit_device, const uint32_t *rank);
void tfc_engine_begin(struct tfc_engine *engine); // the state before anything ran

typedef enum tfc_engine_stop {
  TFC_ENGINE_ENDED,
  TFC_ENGINE_CUT,     // the value cannot be below the cutoff
  TFC_ENGINE_NO_LINK, // a tensor needs a link that the machine lacks
  TFC_ENGINE_PAUSED   // `pause` operations have ended, or `end_position` asks for it; all events of this instant are
                      // handled
} tfc_engine_stop;
tfc_engine_stop tfc_engine_run(struct tfc_engine *engine, int64_t cutoff, uint32_t pause);

struct tfc_engine_save {
  uint8_t *block;
  TFC_ARRAY(struct tfc_engine_event) events;
  TFC_ARRAY(struct tfc_engine_transfer) transfers; // those from transfer_low on
  int64_t time;                                    // of the next event: everything before it has happened
  uint32_t starts;
};
bool tfc_engine_save(struct tfc_engine *engine, struct tfc_engine_save *save); // false: out of memory
// Bytes of all transfers of the finished run.
uint64_t tfc_engine_transfer_bytes(const struct tfc_engine *engine);
// `shift`: ps by which everything is later than it was saved.
void tfc_engine_restore(struct tfc_engine *engine, const struct tfc_engine_save *save, int64_t shift);
void tfc_engine_save_shift(const struct tfc_engine *engine, struct tfc_engine_save *save,
                           int64_t shift); // makes the saved state later by `shift` ps
uint32_t tfc_engine_save_ended(const struct tfc_engine *engine, const struct tfc_engine_save *save);
void tfc_engine_save_deinit(struct tfc_engine_save *save);

#endif
