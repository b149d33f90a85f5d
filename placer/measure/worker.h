// The worker's side of measuring: private to measure_worker*.c.
#ifndef TFC_PLACER_MEASURE_WORKER_H
#define TFC_PLACER_MEASURE_WORKER_H

#include "placer/measure/measure.h"
#include "placer/measure/wire.h"
#include "runtime/exec/session.h"
#include "runtime/graph/graph.h"

struct tfc_worker_side { // the devices asked for, or the undivided machine
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_snapshot *snapshot;
  struct tfc_collector *collector;
  bool ready;
};
struct tfc_worker {
  int fd;
  bool lost; // a device stopped working: this process is of no more use
  struct tfc_graph *graph;
  struct tfc_worker_side sides[3]; // [1]: whole, [2]: the devices of [0], without rewrites
  struct tfc_run_spec step;        // without placement
  struct tfc_run_spec init;
  struct tfc_output *feeds, *fetches;
  struct tfc_shape *shapes;
  struct tfc_tensor *values, *results; // of feeds, of fetches
  uint32_t *targets, *inits;
  bool *async, *runs;             // [node]
  struct tfc_execution execution; // owned; its limits are checked against what plans need
  char *checkpoint;               // prefix, "" for none
  uint64_t *most_bytes;           // [devices of sides[0]] what the limits say
  tfc_wire_buffer setup;          // the message, which names point into
};

// Opens the side's devices, initialises its variables and snapshots them, once.
TFC_MUST_USE tfc_status tfc_worker_side_open(struct tfc_worker *w, int side);
TFC_MUST_USE tfc_status tfc_worker_batch(struct tfc_worker *w, struct tfc_unpack *message);
// Steps of the plan with so many in flight: of one plan in ready order, or (`copies`, [in_flight - 1]) each of its own,
// made to run side by side. out_ns: [windows], how far apart they ended on average over as many ends as are in flight.
TFC_MUST_USE tfc_status tfc_worker_pipeline(struct tfc_worker *w, struct tfc_plan *plan, struct tfc_plan **copies,
                                            uint32_t entry, uint32_t in_flight, uint32_t windows, int64_t *out_ns);
TFC_MUST_USE tfc_status tfc_worker_links(struct tfc_worker *w, struct tfc_unpack *message);
// The operation that does a node's work where it is not its own, else UINT32_MAX; and the message of all of them.
uint32_t tfc_worker_done_by(const struct tfc_plan_info *info, uint32_t node);
void tfc_worker_pack_fused(const struct tfc_worker *w, const struct tfc_plan_info *info, struct tfc_pack *p);
TFC_MUST_USE tfc_status tfc_worker_beat(struct tfc_worker *w, uint32_t entry);

#endif
