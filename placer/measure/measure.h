// Measuring: runs placements for real and times every step, in a worker process of the same binary, so that a crash, a
// hang or a fault costs one placement and not the run. One measuring run per machine at a time.
//
// A program that measures calls the worker's entry first thing in main:
//
//   if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
//
// and then
//
//   TFC_TRY(s, tfc_measurer_create(&options, &measurer)); // takes the machine's lock, starts the worker, initialises
//   TFC_TRY(s, tfc_measurer_run(measurer, &batch, got_result, user));
//
// One thread. Within a batch, entries are run in blocks of steps in turns with the reference (A B A B), because
// machines drift; variables are restored before each entry; nothing is saved or written.
#ifndef TFC_PLACER_MEASURE_MEASURE_H
#define TFC_PLACER_MEASURE_MEASURE_H

#include "placer/simulate/evaluator.h"
#include "placer/subject/subject.h"
#include "profiler/collector.h"
#include "runtime/exec/session.h"

bool tfc_measure_is_worker(int argc, char **argv);
int tfc_measure_worker_main(int argc, char **argv); // returns the exit code

struct tfc_measure_feed {
  tfc_str name; // "x:0"
  const struct tfc_tensor *value;
};
struct tfc_measure_options {
  const char *program; // the executable that is started as worker; NULL: this one
  const char *graph;   // path
  // Prefix of the checkpoint from which variables are restored after the initialiser; NULL: none.
  const char *checkpoint;
  const char *devices; // as --devices
  struct tfc_execution execution;
  const struct tfc_measure_feed *feeds;
  uint32_t feed_count;
  const tfc_str *fetches, *targets, *inits; // outputs; nodes; nodes run once, one after the other
  uint32_t fetch_count, target_count, init_count;
  const char *tuning; // what drivers measured before (struct tfc_device_driver), or NULL
  // How many seconds a worker may be silent while it runs steps before it counts as hung. 0: 60. Setting up may always
  // take 60 s.
  double hang_seconds;
  double end_s;     // on tfc_now_ns's clock; a silent worker is not waited for much longer than until then; 0: no end
  const char *lock; // the lock file of measuring runs; NULL: the user's own
  // Called once if another run measures, with a text that names that run; this one then waits for it to end, and
  // `end_s` moves by the waiting time. NULL: an error instead of waiting.
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
  uint32_t *ops; // nodes that really run
  uint32_t op_count;
  bool is_static;
  struct tfc_plan_continued *continued; // operations that continue another's sum when one device runs the step
  uint32_t continued_count;
  struct tfc_plan_shared *shared; // nodes for which one device packs a weight only once
  uint32_t shared_count;
  // The variables of a static step, each once: they stay on some device whatever the placement.
  struct tfc_plan_variable *variables;
  uint32_t variable_count;
  // [node_count] on one device: the operation that the node's work is fused into, else UINT32_MAX; NULL: none.
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
// ABORTED: another run measures on this machine (and who), or the worker was lost. Otherwise what is wrong with the
// graph, the step or the devices.
TFC_MUST_USE tfc_status tfc_measurer_create(const struct tfc_measure_options *options, struct tfc_measurer **out);
void tfc_measurer_free(struct tfc_measurer *measurer); // ends the worker; NULL is fine
const struct tfc_measure_info *tfc_measurer_info(const struct tfc_measurer *measurer);
uint32_t tfc_measurer_restarts(const struct tfc_measurer *measurer); // how many workers were lost so far
double tfc_measurer_waited_s(const struct tfc_measurer *measurer);   // how long it waited for the lock

typedef enum tfc_trace_mode {
  TFC_TRACE_MODE_ALL,       // every timed step
  TFC_TRACE_MODE_ALTERNATE, // blocks in turns, traced first
  TFC_TRACE_MODE_NONE,
} tfc_trace_mode;

struct tfc_measure_entry {
  bool whole;         // on the undivided machine: no placement; operations side by side where that is faster
  bool plain;         // without rewrites: each operation runs by itself; its time says what share it has of a fused one
  bool in_parts;      // operations split as when several devices run (struct tfc_run_spec)
  uint32_t in_flight; // > 1: so many steps at once; a timed "step" is then the time between the ends of two steps
  const uint16_t *placement; // [node_count] device
  const uint32_t *sequence;  // [sequence_count] nodes in order of start; NULL: the plan's own
  uint32_t sequence_count;
  // If the batch chooses (`choose` below): whether this entry may be chosen, and whether it is measured to the end even
  // if another one is chosen.
  bool answers, stays;
};
struct tfc_measure_batch {
  const struct tfc_measure_entry *entries;
  uint32_t count;
  uint32_t reference;     // an entry that the others are run in turns with; UINT32_MAX: none
  uint32_t warmup;        // untimed steps before each entry's first block
  bool settle;            // warm up until allocation has settled: `warmup` to 10 steps, one if the deadline has passed
  uint32_t block, blocks; // timed steps of a block, blocks of each entry
  // > 0, without a reference: so many turns of one block each come first and choose the fastest of those that may be
  // chosen (choice.h); one that is surely slower is out as soon as that is sure. Then come `blocks` turns of the chosen
  // one and of those that stay, which had no part in the choice. They are numbered from `choose` on, and at least one
  // is run, however late it is.
  uint32_t choose;
  double choose_until_s; // no turn but the first begins to choose after that; 0: as long as it takes
  double stop_ratio;     // > 0: after 2 steps, an entry this much slower than the best (with `best_us`) is stopped
  double best_us;        // NaN: unknown; the reference's is used
  tfc_trace_mode trace;
  bool ignore_limits; // run entries that do not fit all the same (profiles)
  bool again;         // an entry whose worker died is run once more (profiles: everything else depends on them)
  // On tfc_now_ns's clock; 0: none. After it only each entry's first block begins, and blocks end after 2 steps.
  double deadline_s;
};

struct tfc_measured_step {
  uint32_t block;
  bool traced, warmup;
  int64_t start_ns, duration_ns;
  int64_t host_ns; // by the host's clock, as that of steps without a trace; 0: it was not one step alone
};
// The result of one entry. Valid during the callback only.
struct tfc_measured {
  uint32_t entry;
  tfc_result_state state; // OK, CUT (stopped as far too slow), NO_FIT, ILLEGAL, FAILED
  tfc_code code;          // the error of the last three states; TFC_OK if no status stopped it
  const char *message;    // NULL where there is none
  bool in_lanes; // undivided machine: operations ran side by side, which was faster; none of its steps has a trace
  // The devices' own records (kernels and copies of GPUs) time traced steps: steps without a trace, which the host's
  // clock times, are not mixed with these.
  bool by_records;
  double seconds; // how long measuring it took, with making the plan
  const struct tfc_measured_step *steps;
  uint32_t step_count;
  const struct tfc_step_profile *profiles; // of traced steps, in their order
  const uint32_t *profile_step;            // [profile_count] index in `steps`
  uint32_t profile_count;
  const uint64_t *peak; // [device_count] bytes; [1] for whole
  uint32_t peak_count;
  const struct tfc_plan_transfer_row { // what the plan sends
    uint32_t node;
    int32_t output;
    uint32_t source, target;
    uint64_t bytes;
  } * transfers;
  uint32_t transfer_count;
  // By node: the operation that does the node's work, if rewrites fused it into another; else UINT32_MAX. NULL: nothing
  // was fused.
  const uint32_t *done_by;
  uint32_t done_by_count; // node_count, or 0
  double ratio;           // to the reference, from neighbouring blocks; NaN without a reference
};
// Whether a step's duration is one of those that say how long the placement's step takes.
bool tfc_measured_counts(const struct tfc_measured *measured, const struct tfc_measured_step *step);
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
// After `end_s` (on tfc_now_ns's clock; 0: none) only a few steps of a few sizes are measured.
TFC_MUST_USE tfc_status tfc_measurer_links(struct tfc_measurer *measurer, double end_s, struct tfc_link_time **out,
                                           uint32_t *out_count);

#endif
