// Queues, transfers, waits and signals of a plan.
#ifndef TFC_RUNTIME_EXEC_PLAN_ARRANGE_H
#define TFC_RUNTIME_EXEC_PLAN_ARRANGE_H

#include "runtime/exec/plan/lane_schedule.h"

// The numbers of queues: d for operations of device d, device_count + d for copies to it; in a plan with lanes each
// lane is a queue. The locations of memory: device d, or device_count for the host's memory if devices have memory of
// their own.
struct tfc_item {
  uint32_t op;       // TFC_NONE: a copy
  uint32_t transfer; // the copy's index in transfers; only if `op` is TFC_NONE
  uint16_t queue;
  uint32_t position; // in the order of its queue
  bool signals;
  uint32_t wait_begin, wait_count;
  uint32_t arrival_begin, arrival_count;
};
struct tfc_wait {
  uint16_t queue;
  uint32_t position; // position of the item that must have ended
};
struct tfc_plan_copy { // a value that is moved, or is handed over (item TFC_NONE)
  uint32_t value;
  uint16_t source, target; // locations
  uint32_t item;
};
struct tfc_arrangement {
  struct tfc_item *items;
  uint32_t item_count;
  struct tfc_wait *waits;
  uint32_t *arrivals;
  struct tfc_plan_copy *transfers;
  uint32_t transfer_count;
  uint32_t *first_copy, *next_copy; // [values], [transfers]: for each value, a linked list of its transfers
  uint32_t queue_count;
  uint32_t *clocks;      // [item * queue_count + queue]: how many items of each queue have ended when the item starts
  uint32_t *queue_items; // [queue] number of items
  uint32_t *item_of_op;  // [ops]
};
TFC_MUST_USE tfc_status tfc_arrange(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count,
                                    const struct tfc_lane_schedule *lanes, // NULL: the plan has no lanes
                                    struct tfc_arena *arena, struct tfc_arrangement *out);
// These return the location of a value's memory, and the location where an operation needs its input `i`.
uint16_t tfc_value_location(const struct tfc_ir *ir, const struct tfc_ir_value *v);
uint16_t tfc_input_location(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t input);
bool tfc_location_on_host(const struct tfc_ir *ir, uint16_t location);
// Finds the copy of a value at a location: its index among transfers, or TFC_NONE if the value needs no copy there.
uint32_t tfc_find_copy(const struct tfc_arrangement *a, const struct tfc_ir *ir, uint32_t value, uint16_t location);

#endif
