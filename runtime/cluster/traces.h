// Traces of steps that run in several tasks. Each task records the operations of its part and the tensors that come to
// it from other tasks, and sends this to the step's client as a text, after it has said that its part has ended:
// writing and sending the text takes no time of the step. Lines:
//
//   part<TAB>CAME<TAB>ANSWERED<TAB>RECORDS LOST
//   op<TAB>BEGIN<TAB>END<TAB>DEVICE<TAB>NODE
//   tensor<TAB>SENT<TAB>ARRIVED<TAB>EDGE<TAB>BYTES
//
// CAME: when the client's message came that begins the part; ANSWERED: when the task said that it has ended. Times are
// nanoseconds of CLOCK_MONOTONIC_RAW; SENT is by the sender's clock. BEGIN and END of operations are converted from
// ticks (runtime/base/clock.h), so beside the other times they are good to about a microsecond. A name is written as
// runtime/base/state_text.h says.
#ifndef TFC_RUNTIME_CLUSTER_TRACES_H
#define TFC_RUNTIME_CLUSTER_TRACES_H

#include "runtime/base/array.h"
#include "runtime/base/str.h"
#include "runtime/graph/graph.h"
#include "runtime/trace.h"

struct tfc_arrival { // a tensor that has come from another task in a traced step
  int64_t step, sent_ns, arrived_ns;
  uint64_t bytes;
  uint32_t edge;
};
typedef TFC_ARRAY(struct tfc_arrival) tfc_arrival_list;

struct tfc_round_trip { // of the question to run a part, and its answer
  int64_t asked_ns, answered_ns;
};
struct tfc_part_trace {
  struct tfc_trace_sink sink;
  struct tfc_round_trip here; // by the clock of the task that runs the part
};
// Room for `records` records of each of `devices` devices.
TFC_MUST_USE tfc_status tfc_part_trace_begin(struct tfc_part_trace *p, uint32_t devices, size_t records);
// How many records the buffer of one device would have needed, so that none was lost.
size_t tfc_part_trace_needs(const struct tfc_part_trace *p);
// Appends the lines of a part that has ended. `arrivals`: those of the step.
TFC_MUST_USE tfc_status tfc_part_trace_write(const struct tfc_part_trace *p, const struct tfc_graph *part,
                                             const tfc_arrival_list *arrivals, struct tfc_text *out);
void tfc_part_trace_deinit(struct tfc_part_trace *p);

struct tfc_cut;
// What the client reads from the texts of all tasks: here nodes and outputs are those of its own graph (not of a task's
// part of it), and times are by its own clock.
struct tfc_cluster_op {
  int64_t begin_ns, end_ns;
  uint32_t node, rank, device;
};
struct tfc_cluster_transfer {
  int64_t begin_ns, end_ns;
  uint64_t bytes;
  struct tfc_output tensor;
  uint32_t from, to; // ranks
};
struct tfc_cluster_trace {
  int64_t begin_ns, end_ns; // of the step, as its client sees it
  TFC_ARRAY(struct tfc_cluster_op) ops;
  TFC_ARRAY(struct tfc_cluster_transfer) transfers;
  int64_t lost;         // records that found no room
  int64_t clock_off_ns; // clocks of other hosts may be set wrong by so much; 0: all tasks have one clock
};
// Takes a task's text. The clock of another host is set right by `trip`: when the client asked this task and got its
// answer, by the client's clock. It is assumed that question and answer were on their way for equally long; the error
// is at most half of that time. NULL: the client's clock is that of the task. `offsets` [task]: what was found, for
// transfers between tasks; they are added by tfc_cluster_trace_add_arrivals, when the operations of all tasks have been
// added.
TFC_MUST_USE tfc_status tfc_cluster_trace_add(struct tfc_cluster_trace *t, const struct tfc_cut *cut, uint32_t rank,
                                              tfc_str text, const struct tfc_round_trip *trip, int64_t *offsets);
TFC_MUST_USE tfc_status tfc_cluster_trace_add_arrivals(struct tfc_cluster_trace *t, const struct tfc_cut *cut,
                                                       uint32_t rank, tfc_str text, const int64_t *offsets);
void tfc_cluster_trace_deinit(struct tfc_cluster_trace *t);

#endif
