// Devices: one const vtable per kind. The executor hands a driver prepared segments and waits on timeline semaphores;
// it never launches node by node where shapes are static.
//
// Every driver passes tests/device/conformance (shapes, order of waits and signals, limits, errors).
#ifndef TFC_RUNTIME_DEVICE_DRIVER_H
#define TFC_RUNTIME_DEVICE_DRIVER_H

#include <stdatomic.h>

#include "runtime/ops/kernel.h"
#include "runtime/trace.h"

// What GPUs compute products and convolutions of float32 tensors in. Tensors and sums are float32 all the same.
#define TFC_MATHS(X) X(FLOAT32, "float32") X(TF32, "tf32") X(FLOAT16, "float16") X(BFLOAT16, "bfloat16")
typedef enum tfc_math {
  TFC_MATH_DEFAULT, // float32, and tf32 where other rounding is welcome
#define TFC_MATH_ENUM(name, text) TFC_MATH_##name,
  TFC_MATHS(TFC_MATH_ENUM)
#undef TFC_MATH_ENUM
} tfc_math;
static inline tfc_math tfc_math_resolve(tfc_math asked, bool rounding) {
  return asked ? asked : rounding ? TFC_MATH_TF32 : TFC_MATH_FLOAT32;
}
const char *tfc_math_name(tfc_math math); // "tf32"; NULL: none of its own (the default)
tfc_math tfc_math_parse(tfc_str name);    // TFC_MATH_DEFAULT: there is none of that name

struct tfc_device_info {
  char name[48];       // "cpu:0"
  char kind[16];       // "cpu": operations take equally long on devices of one kind
  char tensorflow[96]; // "/job:localhost/replica:0/task:0/device:CPU:0"
  char model[96];      // what the hardware calls itself
  char label[16];      // "measured", "oversubscribed", "virtual", "emulated"
  char math[12];       // "tf32", as configured; "": a device that has no such choice
  uint64_t memory;     // limit in bytes, UINT64_MAX: none
  uint32_t cores;      // threads that one operation is split over
  // Devices with the same address space hand buffers over; host code may read tensors of address space 0 only.
  uint32_t address_space;
};

struct tfc_device_driver;
struct tfc_device { // embedded first in the driver's own record
  const struct tfc_device_driver *driver;
  struct tfc_device_info info;
  uint16_t index; // in the session: trace records carry it
};

// A value that only grows; a wait is over when it has reached the wanted value. Made by tfc_semaphore_create, used by
// any thread and any driver. Freed only after the devices that signal it were synchronized: a signaller may still look
// for sleepers when a waiter has already gone on. A driver with events of its own keeps them in `native`.
struct tfc_semaphore {
  _Atomic uint64_t value;
  _Atomic uint64_t stamp;   // ticks of the last signal: when a tensor that was waited for was there
  _Atomic uint32_t waiters; // threads that sleep on it
  _Atomic uint32_t futex;
  void *native;
  void (*native_free)(void *native);
};
TFC_MUST_USE tfc_status tfc_semaphore_create(struct tfc_semaphore **out);
void tfc_semaphore_free(struct tfc_semaphore *s);
// From the host; wakes sleepers. A value below the present one changes nothing.
void tfc_semaphore_signal(struct tfc_semaphore *s, uint64_t value);
// Blocks until the value is reached; spins for at most spin_ns first. DEADLINE_EXCEEDED after timeout_ns (< 0: never).
TFC_MUST_USE tfc_status tfc_semaphore_wait(struct tfc_semaphore *s, uint64_t value, int64_t spin_ns,
                                           int64_t timeout_ns);

static inline bool tfc_semaphore_reached(const struct tfc_semaphore *s, uint64_t value) {
  return atomic_load_explicit(&s->value, memory_order_acquire) >= value;
}

struct tfc_timepoint {
  struct tfc_semaphore *semaphore;
  uint64_t value;
};

// When a device worked during a step (ticks; begin 0: not at all). Each device writes its own, so that a step's time
// is known without a trace.
struct tfc_span {
  _Alignas(64) uint64_t begin;
  uint64_t end;
  // Where it was when it saw that the step was over: the node that ran last, and the next one. 1 + id; 0: nothing seen.
  _Atomic uint32_t last, next;
};

// One step in flight. A failing kernel records the first status here; after that every segment of the step is skipped
// but still signals, so that a step always ends everywhere.
struct tfc_step {
  int64_t id;
  _Atomic bool failed;
  _Atomic bool cancelled;
  tfc_status status;               // the first failure, owned; read when the step has ended
  int64_t limit_ns;                // that it was given, for messages; 0: none
  struct tfc_span *spans;          // by device index, NULL: not wanted
  struct tfc_trace_sink *trace;    // NULL: not traced
  struct tfc_resources *resources; // of the session
  struct tfc_resources *step_resources;
  uint64_t seed;
  // What queues know it by: work of one stream runs in the order in which it was submitted, that of different streams
  // as it gets ready, the older first. Less than TFC_STREAMS; 0: where steps run one by one.
  uint32_t stream;
};
enum { TFC_STREAMS = 16 };
void tfc_step_fail(struct tfc_step *step, tfc_status status); // takes it; only the first is kept

static inline bool tfc_step_stopped(const struct tfc_step *step) {
  return atomic_load_explicit(&step->failed, memory_order_relaxed) ||
         atomic_load_explicit(&step->cancelled, memory_order_relaxed);
}

// A device leaves the rest of a segment out: `last` ran, `next` would have been next (ids + 1, 0: none). The first one
// counts.
static inline void tfc_step_note_stop(struct tfc_step *step, uint16_t device, uint32_t last, uint32_t next) {
  uint32_t none = 0;
  if (step->spans && atomic_compare_exchange_strong(&step->spans[device].next, &none, next))
    atomic_store(&step->spans[device].last, last);
}

// A variable that an operation reads by value (its read op is elided): it must be initialised when the operation runs.
struct tfc_variable_read {
  struct tfc_variable *variable;
  struct tfc_tensor *view; // a reshaped read's slot: follows the variable's data. NULL: the slot is variable->value
};

// An operation of a segment. Tensors are slots that the plan owns: a producer's output slot is its consumers' input
// slot. With static shapes their data is set when planned; slots of feeds and variables change between steps.
struct tfc_segment_op {
  uint32_t node; // id in graph, what traces name
  const struct tfc_op_def *def;
  const struct tfc_tensor **inputs;
  struct tfc_tensor **outputs;
  struct tfc_variable **variables;        // [input_count]
  struct tfc_variable **output_variables; // [output_count]
  uint32_t input_count, output_count;
  void *node_state;
  uint32_t host_inputs, host_outputs; // operands in host memory (runtime/ops/host_memory.h); besides strings, handles
  bool on_host;                       // all of them: the driver calls def->kernel with host memory and launches nothing
  const struct tfc_shape *input_shapes, *output_shapes; // as inferred: static, or the kernel finds its outputs' places
  const tfc_dtype *input_dtypes;
  const struct tfc_tensor *const *input_values; // constants, else NULL entries
  const struct tfc_variable_read *reads;
  uint32_t read_count;
  struct tfc_tensor *const *releases; // slots without a planned place that nobody reads after this operation
  uint32_t release_count;
  bool prepared; // by a rewrite: `state` goes to the kernel, def->prepare is not called
  void *state;   // owned by the plan
};
// What an operation took when nothing else ran on its device; the least that was seen. Ticks.
struct tfc_op_time {
  uint64_t wall;
  uint64_t split; // of `wall`: in loops that the device's cores share
  uint64_t work;  // of all cores in those loops
};
// Lanes: operations of one segment side by side. Each is planned on a lane, or split over several; a lane that has
// nothing that is ready takes what is planned on others. An operation may start when all that come before it have
// ended. Running the operations one by one in the order of the segment is right, too.
struct tfc_lane_step {
  uint32_t op;                       // index in the segment; UINT32_MAX: nothing is run, others wait for it
  uint32_t lanes;                    // as planned: a bit for each
  bool open;                         // of one lane: others may help that would be idle
  uint32_t before;                   // so many steps must have ended
  uint32_t after_begin, after_count; // in `after`: steps that wait for it
};
struct tfc_lanes {
  uint32_t count, step_count;
  const struct tfc_lane_step *steps; // in the planned order
  const uint32_t *after;
};
struct tfc_segment {
  const struct tfc_graph *graph;
  struct tfc_segment_op *ops;
  uint32_t op_count;
  bool rounding;            // faster arithmetic that rounds otherwise is welcome
  const uint32_t *arrivals; // transfers that were handed over and end with this segment's waits (trace)
  uint32_t arrival_count;
  const struct tfc_lanes *lanes; // NULL: in order. Only for drivers that have lanes
  struct tfc_op_time *times;     // NULL, or [op_count] to be kept in runs; wall 0: nothing was seen yet
};

// Something to run on a device's thread; the caller's until it has run.
struct tfc_task {
  void (*run)(struct tfc_task *task);
};

struct tfc_prepared; // a driver's own: chosen kernels, packed weights, a captured CUDA graph

// A copy of one tensor between two places; `source_device` or `target_device` NULL: host memory.
struct tfc_copy {
  struct tfc_device *source_device, *target_device;
  const struct tfc_tensor *source;     // read when the waits are over
  struct tfc_tensor *target;           // its data is set and its size equals the source's; data NULL: the driver of the
                                       // target allocates it (shapes known only when the source is)
  const struct tfc_variable *variable; // the source is this variable's value: it must be initialised
  uint32_t id;                         // for the trace, or TFC_COPY_UNTRACED
  // The target's memory was taken just now: what its device was given before may still use it. (Places of a plan are
  // free when the waits are over.)
  bool fresh;
};
enum { TFC_COPY_UNTRACED = 0x7fffffff };

struct tfc_driver_options {
  const char *spec;       // what the user asked for ("cpu:0-3"), NULL: the driver's best
  uint32_t count;         // how many devices; 0: as many as there are
  const uint64_t *memory; // limits by device, NULL: none
  bool whole;             // the undivided machine as one device
  bool shared; // virtual and emulated devices are to have one address space: tensors are handed over, not copied
};

struct tfc_device_settings { // of the sessions that use a device
  bool capture;              // prepared segments may be captured and replayed (CUDA graphs)
  tfc_math math;             // not the default
};

// Does it compute with the host's own kernels (runtime/device/cpu), which rewrites prepare operations for?
typedef enum tfc_host_kernels {
  TFC_HOST_KERNELS_NONE,
  TFC_HOST_KERNELS_APART,    // on memory of its own
  TFC_HOST_KERNELS_IN_PLACE, // on the host's memory
} tfc_host_kernels;

struct tfc_device_driver {
  const char *kind;
  tfc_host_kernels host_kernels;
  bool has_lanes; // segments with lanes run as these say on devices of several cores, and times are kept
  // Operations run after their launch has returned: an OP record is the dispatch, and when it really ran comes from the
  // device (EXECUTE records) or from a profiler.
  bool on_its_own;
  // Lists what is there, without opening it. `out` is malloc'd. UNAVAILABLE says why there is none.
  tfc_status (*discover)(const struct tfc_driver_options *options, struct tfc_device_info **out, uint32_t *out_count);
  tfc_status (*open)(const struct tfc_device_info *info, struct tfc_device **out);
  void (*close)(struct tfc_device *device); // idle by then

  // Device memory, counted against info.memory. RESOURCE_EXHAUSTED names request, in use, limit, largest free block.
  tfc_status (*allocate)(struct tfc_device *device, size_t bytes, struct tfc_buffer **out);
  uint64_t (*in_use)(struct tfc_device *device);
  // The most bytes that the device's account held at one time: tensors, what is kept to be used again, workspaces of
  // threads. With `restart` the next answer begins with what is there now. NULL: it is not counted.
  uint64_t (*peak)(struct tfc_device *device, bool restart);

  // Off the step path: choose kernels, read attributes, pack constants. A missing kernel is UNIMPLEMENTED with node
  // and op. The segment and its slots must outlive the handle.
  tfc_status (*prepare)(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out);
  void (*release)(struct tfc_device *device, struct tfc_prepared *prepared);
  // Appends to the device's queue and returns at once. Work of a device starts in the order of its submissions, each
  // after its waits. The arrays are read before the call returns.
  tfc_status (*submit)(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                       const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                       uint32_t signal_count);
  // Appends to the device's copy queue, beside compute; the record is read before the call returns, the tensors when
  // the waits are over. The executor asks the target's driver, or the source's where
  // the target is the host. Between address spaces of two drivers it stages through the host.
  tfc_status (*copy)(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step,
                     const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                     uint32_t signal_count);
  // Makes the services of an environment those of this device: allocate, parallel_for, threads, stream, device.
  void (*environment)(struct tfc_device *device, struct tfc_kernel_env *env);
  // Runs task->run on the device's thread, in order with submissions. NULL: the device has none, the caller launches.
  tfc_status (*post)(struct tfc_device *device, struct tfc_task *task);
  // Operation `index` of a prepared segment now, with the caller's inputs and outputs, on the calling thread or the
  // device's (frames, dynamic shapes; the segment's own slots are not used and may be NULL). Sets ctx->state, calls the
  // kernel and returns when outputs' shapes are known; host-addressable devices: when it is done. ctx->env is the
  // caller's, made by `environment`. Several threads may launch at once. Errors name node, op, device, inputs.
  tfc_status (*launch)(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                       struct tfc_kernel_ctx *ctx);
  // The same, and an EXECUTE record of it in the step's trace. NULL where operations do not run on their own.
  tfc_status (*launch_timed)(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                             struct tfc_kernel_ctx *ctx, struct tfc_step *step);
  // What this thread launches on the device from here on starts when the waits are over. It blocks no longer than until
  // all that they wait for was given to devices. NULL: launches run at once, so whoever launches waits by itself.
  tfc_status (*await)(struct tfc_device *device, const struct tfc_timepoint *waits, uint32_t wait_count);
  // Synchronous copies for feeds, fetches and checkpoints, and waiting for all that was submitted.
  tfc_status (*read)(struct tfc_device *device, const struct tfc_tensor *source, void *target);
  tfc_status (*write)(struct tfc_device *device, const void *source, struct tfc_tensor *target);
  tfc_status (*synchronize)(struct tfc_device *device);

  // How many kernels, copies and fills the calling thread has launched so far, at least: what a library launches beyond
  // its first is not seen. NULL: not counted.
  uint64_t (*launches)(void);

  // Is there a kernel for this op and these types here? `out_reason` (optional): a static text when not.
  bool (*supports)(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason);
  // Before anything is prepared; sets info.math where the device has the choice. NULL: there is nothing to set.
  void (*configure)(struct tfc_device *device, const struct tfc_device_settings *settings);
  // What the driver has measured in this process to choose algorithms, as lines "MODEL\tKEY\tVALUE" (malloc'd; NULL:
  // nothing), and taking over what another process has measured, before anything is prepared. NULL: it measures
  // nothing.
  char *(*tuning)(void);
  void (*set_tuning)(const char *lines);
  // How many operations were run on the host between copies for want of a kernel so far, and the bytes that this
  // copied. NULL: that never happens.
  uint64_t (*fallbacks)(struct tfc_device *device, uint64_t *out_bytes);
  // Why operation `index` of a prepared segment runs on the host between copies; NULL: it runs here. The text lives as
  // long as the handle. NULL: that never happens.
  const char *(*fallback)(const struct tfc_prepared *prepared, uint32_t index);
  // Has the driver a kernel of its own for this op and this type as its first type attribute (of its first input where
  // there is none)? Needs no device. NULL: every kernel of the runtime runs here.
  bool (*has_kernel)(const struct tfc_op_def *def, tfc_dtype type);
};

// For environments: parallel_for of devices that run operations on one thread, and cancelled of those whose `owner` is
// the step.
void tfc_env_serial_for(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                        void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
bool tfc_env_step_stopped(struct tfc_kernel_env *env);

extern const struct tfc_device_driver tfc_driver_cpu, tfc_driver_emulated;
// The driver of a kind ("cpu", "emu", "gpu", "vgpu"), loading its plug-in if need be. UNAVAILABLE with the reason.
TFC_MUST_USE tfc_status tfc_driver_find(const char *kind, const struct tfc_device_driver **out);
// Another driver, for its kind or in place of the plug-in's (tests). Before the first look-up; it stays.
void tfc_driver_add(const struct tfc_device_driver *driver);

// What the user asked for with --devices: "4" or "cpu:0-3,emu:0"; ",shared" behind it: virtual and emulated devices
// read each other's memory. Opens them in order. `memory`: limits by device name pattern. Freed by tfc_devices_close.
struct tfc_device_set {
  struct tfc_device **devices;
  uint32_t count;
  char *note; // what was decided ("4 devices share 2 cores: oversubscribed"), or NULL
};
struct tfc_memory_limit {
  const char *pattern; // "cpu:*"
  uint64_t bytes;
};
TFC_MUST_USE tfc_status tfc_devices_open(const char *spec, const struct tfc_memory_limit *limits, uint32_t limit_count,
                                         struct tfc_device_set *out);
// The undivided machine as one device of the kind of `like` ("whole:").
TFC_MUST_USE tfc_status tfc_devices_open_whole(const struct tfc_device *like, struct tfc_device_set *out);
void tfc_devices_close(struct tfc_device_set *set);
void tfc_devices_configure(const struct tfc_device_set *set, const struct tfc_device_settings *settings);
// What those of them that have the choice compute products in; NULL: none has it (or was configured).
const char *tfc_devices_math(const struct tfc_device_info *devices, uint32_t count);
// What a transfer between virtual devices is: "copy on one GPU" or "handed over"; NULL where there are no two of them.
const char *tfc_virtual_transfers(const struct tfc_device_info *devices, uint32_t count);

#endif
