// A plan, for the files that make and run it. A static plan is made in these stages, each with a header of its own:
//
//   build.c     graph → ir        which operations run, values, versions of variables, ordering edges
//   rewrite.c   ir → ir
//   order.c     ir → sequence     the order in which operations start
//   lane_schedule.c times → sequence  the same, and on which of a device's cores
//   adapt.c     times             another way to run the same operations, if times of the first steps show a gain
//   idle.c      sequence          moves weight packing to where a device would wait
//   arrange.c   sequence → items  queues, transfers, clocks, waits and signals
//   memory.c    items → places    the arena of each device
//   memory_order.c  places → edges  what operations that leave the planned order wait for, for memory's sake
//   lane_steps.c  → lanes         what each operation in lanes waits for
//   segment_order.c  items → edges  the same for devices that run independent operations side by side
//   segments.c  items → segments  prepared segments, and what is submitted in each step
//   step.c                        runs a step
//
// The session's cache owns a plan, or whoever called tfc_plan_create. Steps of a static plan run one at a time, under
// the session's run_lock or the plan's own_lock.
#ifndef TFC_RUNTIME_EXEC_PLAN_PLAN_INTERNAL_H
#define TFC_RUNTIME_EXEC_PLAN_PLAN_INTERNAL_H

#include <pthread.h>

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/exec/session_internal.h"
#include "runtime/pass/pass.h"

struct tfc_place { // a slot with a place in an arena
  struct tfc_tensor *slot;
  uint64_t offset;
  uint16_t location;
  size_t size;
  tfc_dtype dtype;
  const struct tfc_shape *shape;
};
struct tfc_feed_view { // a slot that gets a feed's tensor in each step
  struct tfc_tensor *slot;
  uint32_t feed;
  const struct tfc_shape *view;
};
struct tfc_submission {
  struct tfc_device *device;
  struct tfc_prepared *prepared; // a segment, or
  struct tfc_copy copy;          // a copy (copy.source set)
  uint32_t point_begin, wait_count, signal_count;
};
struct tfc_point { // where the value of a timepoint comes from
  uint16_t queue;
  uint32_t offset;
};

struct tfc_dynamic;
struct tfc_plan {
  struct tfc_session *session;
  uint32_t users; // steps that run a cached plan; under session->lock
  struct tfc_arena arena;
  struct tfc_ir ir;
  struct tfc_groundwork *ground; // views and folded constants of the ir point into it
  struct tfc_plan_info info;
  struct tfc_dynamic *dynamic;          // NULL: static
  struct tfc_run_spec spec;             // of a static plan: a copy, from which the twin is made
  struct tfc_session_arena *own_arenas; // [device_count + 1] for steps that run side by side; NULL: the session's
                                        // arenas are used
  pthread_mutex_t own_lock;             // with own_arenas: the running step of this plan holds it
  uint32_t stream;                      // with own_arenas: see struct tfc_step
  // static: a plan of the same step in ready order, made when it is first needed; guarded by session->lock
  struct tfc_plan *twin;
  struct tfc_adaptation *adaptation; // static: NULL: it does not adapt. Under session->run_lock
  bool borrows;             // it is the second way of an adapted plan: its ir, feeds and shapes belong to the first one
  const uint32_t *sequence; // static: from tfc_order_make
  uint32_t sequence_count;
  uint64_t *most_bytes; // [devices] the most memory that the second way may need; NULL: the devices' limits
  bool refit;           // the second way was dropped, so the arenas shrink to the size that this plan needs
  const struct tfc_plan_fetch *fetch_values;
  uint32_t *segment_ops;                  // static: operations of the ir, segment by segment
  const struct tfc_output *fetch_outputs; // dynamic: [fetch_count]
  uint16_t function_device;               // the device of a function's plan
  uint64_t function_states;               // whose state its nodes keep
  // The following members are for static plans only.
  struct tfc_place *places;
  uint32_t place_count;
  uint64_t *arena_generation, *arena_size; // [locations]
  struct tfc_feed_view *feed_views;
  uint32_t feed_view_count;
  struct tfc_tensor **unplanned; // slots to release after a step
  uint32_t unplanned_count;
  struct tfc_segment *segments;
  uint32_t segment_count;
  struct tfc_submission *submissions;
  uint32_t submission_count;
  struct tfc_point *points;
  struct tfc_timepoint *timepoints; // [points], set in each step
  uint32_t point_count;
  struct tfc_semaphore **semaphores; // [queues]
  uint64_t *base;                    // [queues] value of each semaphore before the step
  uint32_t *queue_items;
  uint32_t queue_count;
  struct tfc_span *spans; // [devices]
  struct tfc_tensor **fetch_slots;
  uint16_t *fetch_locations;
  const struct tfc_shape **fetch_views; // an entry NULL: the slot's shape
  uint32_t fetch_count, feed_count;
  tfc_dtype *feed_dtypes;
  struct tfc_shape *feed_shapes;
  const struct tfc_output *feeds; // copies in the arena
  struct tfc_resources *step_resources;
  bool uses_step_resources;
  _Atomic double last_step_us;              // several threads may run the plan one after another, and read this
  TFC_ARRAY(struct tfc_buffer *) constants; // constants that were copied to devices with their own memory
};

// Whether kernels may use the tile unit, which rounds in another way. Only in plans of one device: devices side by side
// share the unit, and four of them were 1.7 times as slow with it as without.
static inline bool tfc_rounding_welcome(const struct tfc_ir *ir) {
  return ir->all_rewrites && ir->device_count == 1;
}

// Returns the block size for the arenas of a plan with so many operations: about the bytes that they need in all, so
// that large plans get large pages.
static inline size_t tfc_plan_block_size(uint32_t operations) {
  enum { LEAST = 64 << 10, EACH = 512 };
  return (size_t)operations * EACH + LEAST;
}

#endif
