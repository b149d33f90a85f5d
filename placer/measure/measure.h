// Measuring: runs placements for real and times every step, in a worker process of the same binary, so that a crash, a
// hang or a fault costs one placement and not the run. Only one run at a time measures on a machine.
//
// A program that measures calls the worker's entry first thing in main (worker.h), and then
//
//   TFC_TRY(s, tfc_measurer_create(&options, &measurer)); // takes the machine's lock, starts the worker, initialises
//   TFC_TRY(s, tfc_measurer_run(measurer, &batch, got_result, user));
//
// Only one thread may use a measurer. Within a batch, blocks of steps of the entries run in turns with the reference (A
// B A B), because machines drift. Variables are restored before each entry, and steps save and write nothing.
#ifndef TFC_PLACER_MEASURE_MEASURE_H
#define TFC_PLACER_MEASURE_MEASURE_H

#include "placer/simulate/evaluator.h"
#include "placer/subject/subject.h"
#include "profiler/collector.h"
#include "runtime/exec/session.h"

struct tfc_measure_feed {
  tfc_str name; // "x:0"
  const struct tfc_tensor *value;
};
struct tfc_measure_options {
  const char *program; // the executable that is started as worker; NULL: this one
  const char *graph;   // path
  // Prefix of the checkpoint from which variables are restored after the initialiser; NULL: none.
  const char *checkpoint;
  const char *devices; // in the form of --devices
  struct tfc_execution execution;
  const struct tfc_measure_feed *feeds;
  uint32_t feed_count;
  const tfc_str *fetches, *targets, *inits; // outputs; nodes; nodes run once, one after the other
  uint32_t fetch_count, target_count, init_count;
  const char *tuning; // what drivers measured in earlier runs (struct tfc_device_driver), or NULL
  // A worker that sends nothing for so many seconds while it runs steps counts as hung. 0 stands for 60. Setting up may
  // always take 60 s.
  double hang_seconds;
  double end_s;     // on tfc_now_ns's clock; after it, a silent worker is given little more time; 0: there is no end
  const char *lock; // path of the lock file of measuring runs; NULL: the user's lock file
  // Called once if another run measures, with a text that names that run; this one then waits for it to end, and the
  // waiting time is added to `end_s`. NULL: it is an error if another run measures.
  void (*wait)(void *user, const char *who);
  void *wait_user;
  const atomic_bool *cancel; // may be NULL
};

struct tfc_measure_fallback { // an operation that the first device runs on the host between copies, and why
  uint32_t node;
  char *reason;
};
struct tfc_measure_info {
  struct tfc_device_info *devices; // [device_count]
  uint32_t device_count;
  struct tfc_device_info whole; // the undivided machine
  char *note;                   // a message about the devices, or NULL
  char *tuning;                 // measurements of the drivers for choosing algorithms, or NULL
  uint32_t node_count;
  uint32_t *ops; // the nodes that run as operations
  uint32_t op_count;
  bool is_static;
  // operations that continue another operation's sum when one device runs the step
  struct tfc_plan_continued *continued;
  uint32_t continued_count;
  struct tfc_plan_shared *shared; // nodes that share a weight which one device packs only once
  uint32_t shared_count;
  // The variables of a static step, each listed once: they stay on a device under every placement.
  struct tfc_plan_variable *variables;
  uint32_t variable_count;
  // [node_count] on one device: the operation that the node is fused into, otherwise TFC_NONE; NULL: no node is
  // fused.
  uint32_t *done_by;
  // Bytes of the step's outputs by number (node.output_begin + index); 0: not known.
  uint64_t *output_bytes;
  uint32_t output_count;
  struct tfc_op_cost *work; // [node_count] FLOP and bytes of one run of each node; NaN: a shape is not static
  bool *supported;          // [kind * node_count + node], kinds in order of first appearance among the devices
  uint32_t kind_count;
  struct tfc_measure_fallback *fallbacks;
  uint32_t fallback_count;
};

struct tfc_measurer;
// ABORTED: another run measures on this machine (the message names it), or the worker was lost. Any other error says
// what is wrong with the graph, the step or the devices.
TFC_MUST_USE tfc_status tfc_measurer_create(const struct tfc_measure_options *options, struct tfc_measurer **out);
void tfc_measurer_free(struct tfc_measurer *measurer); // ends the worker; NULL is fine
const struct tfc_measure_info *tfc_measurer_info(const struct tfc_measurer *measurer);
uint32_t tfc_measurer_restarts(const struct tfc_measurer *measurer);    // how many workers were lost so far
double tfc_measurer_waited_s(const struct tfc_measurer *measurer);      // how long the measurer waited for the lock
void tfc_measurer_set_end(struct tfc_measurer *measurer, double end_s); // replaces `end_s` of the options

typedef enum tfc_trace_mode {
  TFC_TRACE_MODE_ALL,       // every timed step
  TFC_TRACE_MODE_ALTERNATE, // traced and untraced blocks in turns, a traced one first
  TFC_TRACE_MODE_NONE,
} tfc_trace_mode;

struct tfc_measure_entry {
  bool whole; // runs on the undivided machine: it has no placement, and operations run side by side if that is faster
  bool plain; // runs without rewrites, so that each node is an operation of its own; its time shows its share
              // of a fused operation
  bool in_parts;      // operations are split as when several devices run (struct tfc_run_spec)
  uint32_t in_flight; // > 1: so many steps run at once; a timed "step" is then the time between the ends of two steps
  const uint16_t *placement; // [node_count] device
  const uint32_t *sequence;  // [sequence_count] nodes in order of start; NULL: the plan makes the order
  uint32_t sequence_count;
  // If the batch chooses (`choose` below): `answers`: this entry may be chosen; `stays`: it is measured to the end even
  // if another one is chosen.
  bool answers, stays;
};
struct tfc_measure_batch {
  const struct tfc_measure_entry *entries;
  uint32_t count;
  uint32_t reference;     // the entry with which the others run in turns; TFC_NONE: there is none
  uint32_t warmup;        // untimed steps before each entry's first block
  bool settle;            // warms up until allocation has settled: `warmup` to 10 steps, one if the deadline has passed
  uint32_t block, blocks; // timed steps of a block, blocks of each entry
  // > 0, without a reference: so many turns of one block each come first and choose the fastest of those that may be
  // chosen (choice.h); one that is surely slower is dropped at once. Then come `blocks` turns of the chosen entry and
  // of those that stay; these turns did not influence the choice. They are numbered from `choose` on, and at least one
  // is run, however late it is.
  uint32_t choose;
  double choose_until_s; // after it, no turn except the first begins that chooses; 0: there is no limit
  double stop_ratio;     // > 0: after 2 steps, an entry that is slower than the best (with `best_us`) by this factor is
                         // stopped
  double best_us;        // NaN: it is not known, and the reference's time is used
  tfc_trace_mode trace;
  bool ignore_limits; // runs entries even if they exceed memory limits (for profiles)
  bool again;         // if the worker dies, its entry is run once more (for profiles, which everything else depends on)
  // On tfc_now_ns's clock; 0: none. After it only each entry's first block begins, and blocks end after 2 steps.
  double deadline_s;
};

struct tfc_measured_step {
  uint32_t block;
  bool traced, warmup;
  int64_t start_ns, duration_ns;
  int64_t host_ns; // the time by the host's clock, as for steps without a trace; 0: several steps were in flight
};
// The result of one entry. Valid during the callback only.
struct tfc_measured {
  uint32_t entry;
  tfc_result_state state; // OK, CUT (stopped as far too slow), NO_FIT, ILLEGAL, FAILED
  tfc_code code;          // the error of the last three states; TFC_OK if no status stopped it
  const char *message;    // NULL where there is none
  bool in_lanes; // undivided machine: operations ran side by side, because that was faster; none of its steps has a
                 // trace
  // The devices' own records (of GPUs' kernels and copies) time the traced steps. Steps without a trace, which the
  // host's clock times, are not mixed with them.
  bool by_records;
  double seconds; // how long the measurement took, with making the plan
  const struct tfc_measured_step *steps;
  uint32_t step_count;
  const struct tfc_step_profile *profiles; // profiles of the traced steps, in their order
  const uint32_t *profile_step;            // [profile_count] index in `steps`
  uint32_t profile_count;
  const uint64_t *peak; // [device_count] bytes; [1] for the undivided machine
  uint32_t peak_count;
  bool variables_only; // `peak` is that of variables: the step ran in ready order, whose tensors are not counted
  const struct tfc_plan_transfer_row { // a tensor that the plan sends
    uint32_t node;
    int32_t output;
    uint32_t source, target;
    uint64_t bytes;
  } * transfers;
  uint32_t transfer_count;
  // [node] the operation that the node is fused into, or TFC_NONE; NULL: no node is fused.
  const uint32_t *done_by;
  uint32_t done_by_count; // node_count, or 0
  double ratio;           // time divided by the reference's, from neighbouring blocks; NaN: there is no reference
};
typedef tfc_status (*tfc_measured_fn)(void *user, const struct tfc_measured *measured);
// Calls `fn` once for each entry, in the order in which they end. CANCELLED if the options' flag was set. If the worker
// crashes or hangs, its entry is FAILED with the cause, and the other entries go on in a new worker.
TFC_MUST_USE tfc_status tfc_measurer_run(struct tfc_measurer *measurer, const struct tfc_measure_batch *batch,
                                         tfc_measured_fn fn, void *user);

// The time of a link, measured by real transfers: tensors of several sizes are sent to and fro between two devices.
struct tfc_link_time {
  uint32_t source, target;
  uint64_t bytes;
  double time_us; // median time from the producer's end to the consumer's start, plus what reading remote memory adds
  uint32_t samples;
};
// After `end_s` (on tfc_now_ns's clock; 0: there is no end) it measures only a few steps of a few sizes.
TFC_MUST_USE tfc_status tfc_measurer_links(struct tfc_measurer *measurer, double end_s, struct tfc_link_time **out,
                                           uint32_t *out_count);

#endif
