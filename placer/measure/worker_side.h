// State of the worker that its tasks share (batches, links, steps in flight): its devices and sessions, and how it
// reports. Only this folder uses it, in the worker's process and on one thread.
#ifndef TFC_PLACER_MEASURE_WORKER_SIDE_H
#define TFC_PLACER_MEASURE_WORKER_SIDE_H

#include "placer/measure/measure.h"
#include "placer/measure/wire.h"
#include "runtime/exec/session.h"
#include "runtime/graph/graph.h"

struct tfc_worker_side { // the devices that the user chose, or the undivided machine
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_snapshot *snapshot;
  struct tfc_collector *collector;
  bool ready;
};
struct tfc_worker {
  int fd;
  bool lost; // a device stopped working, so a new process must replace this one
  struct tfc_graph *graph;
  // [0]: the devices that the user chose; [1]: the undivided machine; [2]: the devices of [0], without rewrites.
  struct tfc_worker_side sides[3];
  struct tfc_run_spec step; // without a placement
  struct tfc_run_spec init;
  struct tfc_output *feeds, *fetches;
  struct tfc_shape *shapes;
  struct tfc_tensor *values, *results; // values of feeds, results of fetches
  uint32_t *targets, *inits;
  bool *async, *runs;             // [node] async: it has TFC_OP_ASYNC; runs: the step runs it
  struct tfc_execution execution; // owned; its limits are checked against what plans need
  char *checkpoint;               // prefix, "" for none
  uint64_t *most_bytes;           // [devices of sides[0]] the memory limits
};

// Opens the side's devices, initialises its variables and takes a snapshot of them, once.
TFC_MUST_USE tfc_status tfc_worker_side_open(struct tfc_worker *w, int side);
// Appends to a message the number of nodes and tfc_plan_done_by of each of them; or 0 if no node is fused.
void tfc_worker_pack_fused(const struct tfc_worker *w, const struct tfc_plan_info *info, struct tfc_pack *p);
// Tells the parent process that the worker is alive, and which entry of a batch it is working on.
TFC_MUST_USE tfc_status tfc_worker_beat(struct tfc_worker *w, uint32_t entry);

#endif
