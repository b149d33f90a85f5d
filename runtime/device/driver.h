// Devices. Each kind of device has a driver, which is a const vtable. The executor submits prepared segments to a
// driver and waits for timeline semaphores. It launches single operations only for frames and dynamic shapes.
//
// Every driver must pass tests/device/conformance_thread_test.c (shapes, order of waits and signals, limits, errors).
#ifndef TFC_RUNTIME_DEVICE_DRIVER_H
#define TFC_RUNTIME_DEVICE_DRIVER_H

#include <stdatomic.h>

#include "runtime/ops/kernel.h"
#include "runtime/ops/transposed_filter.h"
#include "runtime/trace.h"

// The arithmetic in which GPUs compute products and convolutions of float32 tensors. Tensors and sums are float32 in
// any case.
#define TFC_MATHS(X) X(FLOAT32, "float32") X(TF32, "tf32") X(FLOAT16, "float16") X(BFLOAT16, "bfloat16")
typedef enum tfc_math {
  TFC_MATH_DEFAULT, // float32; tf32 if rewrites may change rounding
#define TFC_MATH_ENUM(name, text) TFC_MATH_##name,
  TFC_MATHS(TFC_MATH_ENUM)
#undef TFC_MATH_ENUM
} tfc_math;
static inline tfc_math tfc_math_resolve(tfc_math asked, bool rounding) {
  return asked ? asked : rounding ? TFC_MATH_TF32 : TFC_MATH_FLOAT32;
}
const char *tfc_math_name(tfc_math math); // "tf32"; NULL for the default
tfc_math tfc_math_parse(tfc_str name);    // TFC_MATH_DEFAULT: unknown name

struct tfc_device_info {
  char name[48];       // "cpu:0"
  char kind[16];       // such as "cpu"; an operation takes the same time on all devices of one kind
  char tensorflow[96]; // "/job:localhost/replica:0/task:0/device:CPU:0"
  char model[96];      // the hardware's name
  char label[16];      // "measured", "oversubscribed", "virtual", "emulated"
  char math[12];       // the configured arithmetic, such as "tf32"; "": the device has only one
  uint64_t memory;     // limit in bytes; UINT64_MAX: no limit
  uint32_t cores;      // the largest number of threads that run the loops of one operation
  // Devices with the same address space pass buffers to each other without a copy. Host code may read only tensors of
  // address space 0.
  uint32_t address_space;
};

struct tfc_device_driver;
struct tfc_device { // embedded first in the driver's own record
  const struct tfc_device_driver *driver;
  struct tfc_device_info info;
  uint16_t index; // the device's number in the session, for trace records
};

// A timeline semaphore: a value that only increases; a wait is over when the value is reached. It is made by
// tfc_semaphore_create, and any thread and any driver may use it. Before it is freed, the devices that signal it must
// be synchronized, because the signalling thread may still read `waiters` when a waiter has continued. A driver that
// has events of its own stores them in `native`.
struct tfc_semaphore {
  _Atomic uint64_t value;
  _Atomic uint64_t stamp;   // time of the last signal, in ticks: when the tensor that waiters need was ready
  _Atomic uint32_t waiters; // threads that sleep on it
  _Atomic uint32_t futex;
  void *native;
  void (*native_free)(void *native);
};
TFC_MUST_USE tfc_status tfc_semaphore_create(struct tfc_semaphore **out);
void tfc_semaphore_free(struct tfc_semaphore *s);
// Signals from the host, and wakes sleeping threads. A value below the current one has no effect.
void tfc_semaphore_signal(struct tfc_semaphore *s, uint64_t value);
// Waits until the value is reached: spins for at most spin_ns, then sleeps. DEADLINE_EXCEEDED after timeout_ns (below
// 0: no limit).
TFC_MUST_USE tfc_status tfc_semaphore_wait(struct tfc_semaphore *s, uint64_t value, int64_t spin_ns,
                                           int64_t timeout_ns);

static inline bool tfc_semaphore_reached(const struct tfc_semaphore *s, uint64_t value) {
  return atomic_load_explicit(&s->value, memory_order_acquire) >= value;
}

struct tfc_timepoint {
  struct tfc_semaphore *semaphore;
  uint64_t value;
};

// When a device worked during a step (ticks; begin 0: it did not work). Each device writes its own span, so that a
// step's time is known without a trace.
struct tfc_span {
  _Alignas(64) uint64_t begin;
  uint64_t end;
  // Where the device stopped when it found that the step had failed or was cancelled: the last node that ran, and the
  // next one (1 + id; 0: not known).
  _Atomic uint32_t last, next;
};

// One step in flight. The first kernel that fails stores its status here. Segments that come later do not run, but they
// still signal, so that the step ends on all devices.
struct tfc_step {
  int64_t id;
  _Atomic bool failed;
  _Atomic bool cancelled;
  tfc_status status;               // the first failure, which the step owns; read it after the step has ended
  int64_t limit_ns;                // the step's time limit, for messages; 0: none
  struct tfc_span *spans;          // one for each device, by index; NULL: the caller does not need them
  struct tfc_trace_sink *trace;    // NULL: not traced
  struct tfc_resources *resources; // the session's
  struct tfc_resources *step_resources;
  struct tfc_rendezvous *rendezvous; // NULL: there are no other tasks
  uint64_t seed;
  // The queue's key for this step. Work of one stream runs in the order of submission; work of different streams runs
  // when it is ready, the older step first. Below TFC_STREAMS; 0: steps run one by one.
  uint32_t stream;
};
enum { TFC_STREAMS = 16 };
void tfc_step_fail(struct tfc_step *step, tfc_status status); // takes over the status; only the first one is kept

static inline bool tfc_step_stopped(const struct tfc_step *step) {
  return atomic_load_explicit(&step->failed, memory_order_relaxed) ||
         atomic_load_explicit(&step->cancelled, memory_order_relaxed);
}

// Records that a device skips the rest of a segment: operation `last` ran, and operation `next` would have followed
// (ids + 1; 0: none). Only the first call has an effect.
static inline void tfc_step_note_stop(struct tfc_step *step, uint16_t device, uint32_t last, uint32_t next) {
  uint32_t none = 0;
  if (step->spans && atomic_compare_exchange_strong(&step->spans[device].next, &none, next))
    atomic_store(&step->spans[device].last, last);
}

// A variable whose value is an operation's input, without a read op between them (the plan has removed it). The
// variable must be initialised when the operation runs.
struct tfc_variable_read {
  struct tfc_variable *variable;
  // The slot of a reshaped read: before the operation runs, it gets the address of the variable's data. NULL: the
  // operation's slot is variable->value itself.
  struct tfc_tensor *view;
};

// An operation of a segment. Tensors are slots that the plan owns: a producer's output slot is its consumers' input
// slot. With static shapes their data is set when planned; slots of feeds and variables change between steps.
struct tfc_segment_op {
  uint32_t node; // id in the graph, also used in traces
  const struct tfc_op_def *def;
  const struct tfc_tensor **inputs;
  struct tfc_tensor **outputs;
  struct tfc_variable **variables;        // [input_count]
  struct tfc_variable **output_variables; // [output_count]
  uint32_t input_count, output_count;
  void *node_state;
  // Operands in host memory (runtime/ops/host_memory.h), not counting strings and handles.
  uint32_t host_inputs, host_outputs;
  bool on_host; // all operands are in host memory: the driver calls def->kernel on the host and launches nothing
  const struct tfc_shape *input_shapes, *output_shapes; // inferred; if one is not static, the kernel allocates outputs
  const tfc_dtype *input_dtypes;
  const struct tfc_tensor *const *input_values; // for each input: its value if it is a constant, else NULL
  const struct tfc_variable_read *reads;
  uint32_t read_count;
  struct tfc_tensor *const *releases; // slots without a planned place that no operation after this one reads
  uint32_t release_count;
  bool prepared; // a rewrite prepared it: `state` is passed to the kernel, def->prepare is not called
  void *state;   // owned by the plan
  const struct tfc_chain_finish *finish; // follows on output 0 (runtime/host/chain/chain.h); NULL: nothing
  const struct tfc_window *window;       // a convolution's (runtime/ops/nn_window.h); NULL: as the attributes say
};
// Returns the element type by which kernels of a node are chosen: that of its first input, or without inputs that of
// its first output.
static inline tfc_dtype tfc_node_main_type(const struct tfc_graph *g, const struct tfc_node *n) {
  if (n->input_count) return tfc_dtype_base(tfc_output_dtype(g, tfc_node_inputs(g, n)[0]));
  return n->output_count ? tfc_dtype_base(g->output_dtypes[n->output_begin]) : TFC_DTYPE_NONE;
}
// Returns what a kernel of the operation is prepared with; the kernel's state goes to `arena`.
static inline struct tfc_prepare_ctx tfc_segment_prepare_ctx(const struct tfc_graph *g, const struct tfc_segment_op *op,
                                                             struct tfc_arena *arena) {
  return (struct tfc_prepare_ctx){.graph = g,
                                  .node = &g->nodes[op->node],
                                  .def = op->def,
                                  .input_shapes = op->input_shapes,
                                  .output_shapes = op->output_shapes,
                                  .input_dtypes = op->input_dtypes,
                                  .input_values = op->input_values,
                                  .window = op->window,
                                  .arena = arena};
}
// The shortest time of an operation that was measured while nothing else ran on its device. In ticks.
struct tfc_op_time {
  uint64_t wall;
  uint64_t split; // the part of `wall` that was spent in loops on several cores
  uint64_t work;  // the sum over all cores of the time in those loops
};
// Lanes: operations of one segment run at the same time, each lane on one core. An operation is planned on one lane, or
// its loops are split over several. A lane without a ready operation takes one that is planned on another lane. An
// operation may start when all steps that have it in their `after` lists have ended. Running the operations one by one
// in the order of the segment is correct, too.
struct tfc_lane_step {
  uint32_t op;                       // index in the segment; TFC_NONE: nothing to run, it only joins dependencies
  uint32_t lanes;                    // bit i is set: the step is planned on lane i
  bool open;                         // for a step on one lane: idle lanes may help
  uint32_t before;                   // how many steps must end before this one starts
  uint32_t after_begin, after_count; // in `after`: steps that wait for it
};
struct tfc_lanes {
  uint32_t count, step_count;
  const struct tfc_lane_step *steps; // in the planned order
  const uint32_t *after;
};
// Operation i must come after the operations ops[begin[i]] up to ops[end[i]] of the segment, which are before it; of
// all others before it, it is independent.
struct tfc_segment_order {
  const uint32_t *begin, *end, *ops;
};
struct tfc_segment {
  const struct tfc_graph *graph;
  struct tfc_segment_op *ops;
  uint32_t op_count;
  bool rounding;            // faster arithmetic with other rounding is allowed
  const uint32_t *arrivals; // transfers without a copy. In the trace, they end when this segment has ended its waits
  uint32_t arrival_count;
  const struct tfc_lanes *lanes; // NULL: operations run in order. Not NULL only for drivers with has_lanes
  // Not NULL: a driver may run operations side by side that this does not order. NULL: it runs them in order.
  const struct tfc_segment_order *order;
  struct tfc_op_time *times; // NULL, or [op_count]: the driver updates them in each run; wall 0: not timed yet
};

// A function to run on a device's thread. The caller keeps the record until the function has run.
struct tfc_task {
  void (*run)(struct tfc_task *task);
};

struct tfc_prepared; // defined by each driver; holds chosen kernels, packed weights, a captured CUDA graph

// A copy of one tensor between two places. If `source_device` or `target_device` is NULL, that side is in host memory.
struct tfc_copy {
  struct tfc_device *source_device, *target_device;
  const struct tfc_tensor *source; // read after the waits
  struct tfc_tensor *target;       // data NULL: the target's driver allocates it (for a shape that is known only when
                                   // the source has been computed); else its size equals the source's
  const struct tfc_variable *variable; // the source is this variable's value: it must be initialised
  uint32_t id;                         // for the trace, or TFC_COPY_UNTRACED
  // The target's memory was allocated when the copy was submitted, so earlier work of its device may still use it. (A
  // planned place is free when the waits are over.)
  bool fresh;
};
enum { TFC_COPY_UNTRACED = 0x7fffffff };

struct tfc_driver_options {
  const char *spec;       // the list that the user gave ("cpu:0-3"); NULL: the driver's default
  uint32_t count;         // number of devices; 0: all that exist
  const uint64_t *memory; // memory limits by device; NULL: no limits
  bool whole;             // true: one device that is the whole machine
  bool shared;            // true: virtual and emulated devices have one common address space, so that tensors are
                          // passed without a copy
};

struct tfc_device_settings { // set by the sessions that use a device
  bool capture;              // prepared segments may be captured and replayed (CUDA graphs)
  tfc_math math;             // the type in which float32 is multiplied; resolved, so never TFC_MATH_DEFAULT
};

// Whether a device computes with the host's own kernels (runtime/device/cpu); rewrites prepare operations for these.
typedef enum tfc_host_kernels {
  TFC_HOST_KERNELS_NONE,
  TFC_HOST_KERNELS_APART,    // on memory with another address space
  TFC_HOST_KERNELS_IN_PLACE, // on the host's memory
} tfc_host_kernels;

struct tfc_device_driver {
  const char *kind;
  tfc_host_kernels host_kernels;
  bool has_lanes; // if a segment has lanes, a device of several cores runs it in these lanes, and measures the time of
                  // each operation
  // Operations run asynchronously, after their launch has returned. A trace's OP record is then only the time of the
  // launch; the time of execution comes from the device (EXECUTE records) or from a profiler.
  bool on_its_own;
  // Lists the devices without opening them. `out` is malloc'd. UNAVAILABLE says why there is none.
  tfc_status (*discover)(const struct tfc_driver_options *options, struct tfc_device_info **out, uint32_t *out_count);
  tfc_status (*open)(const struct tfc_device_info *info, struct tfc_device **out);
  void (*close)(struct tfc_device *device); // the device is idle

  // Allocates device memory, which counts against info.memory. RESOURCE_EXHAUSTED names the request, bytes in use,
  // limit, largest free block.
  tfc_status (*allocate)(struct tfc_device *device, size_t bytes, struct tfc_buffer **out);
  uint64_t (*in_use)(struct tfc_device *device);
  // Returns the most bytes on the device's account at one time: tensors, cached blocks, workspaces of threads. With
  // `restart`, the count starts again from the bytes that are in use now. NULL: not counted.
  uint64_t (*peak)(struct tfc_device *device, bool restart);

  // Prepares a segment before steps run: chooses kernels, reads attributes, packs constants. UNIMPLEMENTED names a node
  // and an op without kernel. The segment and its slots must exist longer than the handle.
  tfc_status (*prepare)(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out);
  void (*release)(struct tfc_device *device, struct tfc_prepared *prepared);
  // Appends to the device's queue and returns at once. Work of a device starts in the order of its submissions, each
  // after its waits. The arrays are read before the call returns.
  tfc_status (*submit)(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                       const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                       uint32_t signal_count);
  // Appends to the device's copy queue, which runs at the same time as its segments. The record is read before the call
  // returns, the tensors after the waits. The executor calls the target's driver, or the source's if the target is the
  // host. A copy between address spaces of two drivers goes through the host.
  tfc_status (*copy)(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step,
                     const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                     uint32_t signal_count);
  // Fills an environment with this device's services: allocate, parallel_for, threads, stream, device.
  void (*environment)(struct tfc_device *device, struct tfc_kernel_env *env);
  // Runs task->run on the device's thread, in order with submissions. NULL: the device has no thread; the caller
  // launches.
  tfc_status (*post)(struct tfc_device *device, struct tfc_task *task);
  // Runs operation `index` of a prepared segment now, with the caller's inputs and outputs, on the calling thread or
  // the device's (for frames and dynamic shapes; the segment's own slots are not used and may be NULL). Sets
  // ctx->state, calls the kernel, and returns when the outputs' shapes are known; on host-addressable devices, when the
  // operation is done. ctx->env is the caller's, made by `environment`. Several threads may launch at once. Errors name
  // node, op, device, inputs.
  tfc_status (*launch)(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                       struct tfc_kernel_ctx *ctx);
  // As `launch`, and writes an EXECUTE record to the step's trace. NULL if operations are not asynchronous.
  tfc_status (*launch_timed)(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                             struct tfc_kernel_ctx *ctx, struct tfc_step *step);
  // Makes everything that this thread launches on the device from now on start after the waits. It blocks only until
  // the work that signals them was submitted to devices. NULL: launches run at once, so the caller has to wait before
  // it launches.
  tfc_status (*await)(struct tfc_device *device, const struct tfc_timepoint *waits, uint32_t wait_count);
  // Copy tensors from and to the device, for feeds, fetches and checkpoints; the call returns when the copy is
  // complete. The next function waits until all submitted work has ended.
  tfc_status (*read)(struct tfc_device *device, const struct tfc_tensor *source, void *target);
  tfc_status (*write)(struct tfc_device *device, const void *source, struct tfc_tensor *target);
  tfc_status (*synchronize)(struct tfc_device *device);

  // Returns how many kernels, copies and fills the calling thread has launched so far. A library call counts as one, so
  // there may have been more. NULL: not counted.
  uint64_t (*launches)(void);

  // Whether the device has a kernel for this op and these types. `out_reason` (optional): a static text if not.
  bool (*supports)(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason);
  // Called before anything is prepared; sets info.math if the device has that choice. NULL: there is nothing to set.
  void (*configure)(struct tfc_device *device, const struct tfc_device_settings *settings);
  // The first function returns the measurements by which the driver chose algorithms in this process, as lines
  // "MODEL\tKEY\tVALUE" (the caller frees them; NULL: none). The second takes over the measurements of another process,
  // before any segment is prepared. NULL: the driver measures nothing.
  char *(*tuning)(void);
  void (*set_tuning)(const char *lines);
  // Returns how many operations have run on the host so far because they have no kernel, and the bytes that were copied
  // for them. NULL: that never happens.
  uint64_t (*fallbacks)(struct tfc_device *device, uint64_t *out_bytes);
  // Why operation `index` of a prepared segment runs on the host; NULL: it runs on the device. The text exists as long
  // as the handle. The function itself is NULL if all operations run on the device.
  const char *(*fallback)(const struct tfc_prepared *prepared, uint32_t index);
  // Why a library declined operation `index`, which then runs on the device with a simpler kernel. NULL: none declined
  // it. The text and the function are as for `fallback`.
  const char *(*declined)(const struct tfc_prepared *prepared, uint32_t index);
  // Whether the driver has a kernel of its own for this op, with this type for the first type attribute (or for the
  // first input, if there is none). Needs no device. NULL: every kernel of the runtime runs here.
  bool (*has_kernel)(const struct tfc_op_def *def, tfc_dtype type);
  // Whether a chain of element-wise float32 operations that the driver runs by itself (runtime/host/chain, an operation
  // that a rewrite prepared) may have a step of this op. NULL: only drivers with the host's kernels run chains.
  bool (*chains)(const struct tfc_op_def *def);
  // In which form a convolution, or the gradient of its image, reads its filter (input 1) fastest on this device, for
  // these shapes and constants. Chooses the algorithm by which `prepare` will then run it. NULL, or
  // TFC_FILTER_OF_GRAPH: as the graph has it. The caller must not read ctx->state afterwards: it has been released.
  tfc_filter_form (*filter_form)(struct tfc_device *device, struct tfc_prepare_ctx *ctx);
  // Returns by how many µs a convolution, or a gradient of one, is faster if the graph's images have channels last than
  // if they have channels first (below 0: it is slower). In the layout that the graph has, the time includes
  // conversions of images, if the device makes them. NaN: the operation cannot run in the other layout, or nothing is
  // known. NULL: the layout makes no difference on this device. ctx: as for filter_form.
  double (*channels_last_gain_us)(struct tfc_device *device, struct tfc_prepare_ctx *ctx);
};

// Functions for a struct tfc_kernel_env. The first is the `parallel_for` of devices that run operations on one thread;
// the second is the `cancelled` of environments whose `owner` is the step.
void tfc_env_serial_for(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                        void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
bool tfc_env_step_stopped(struct tfc_kernel_env *env);

extern const struct tfc_device_driver tfc_driver_cpu, tfc_driver_emulated;
// Lists the drivers that need no plug-in.
const struct tfc_device_driver *const *tfc_driver_built_in(size_t *out_count);
// Finds the driver of a kind ("cpu", "emu", "plain", "gpu", "vgpu"); loads its plug-in if needed. UNAVAILABLE with the
// reason.
TFC_MUST_USE tfc_status tfc_driver_find(const char *kind, const struct tfc_device_driver **out);
// Registers the driver of a kind of device. If that kind has a driver from a plug-in, the new one is used instead (for
// tests). Call this before any devices are opened.
void tfc_driver_add(const struct tfc_device_driver *driver);

// Opens the devices of --devices in order: "4" or "cpu:0-3,emu:0"; with ",shared" after it, virtual and emulated
// devices read each other's memory. `memory`: limits by pattern of device names. Freed by tfc_devices_close.
struct tfc_device_set {
  struct tfc_device **devices;
  uint32_t count;
  char *note; // a message for the user about the devices ("4 devices share 2 cores: oversubscribed"), or NULL
};
struct tfc_memory_limit {
  const char *pattern; // "cpu:*"
  uint64_t bytes;
};
TFC_MUST_USE tfc_status tfc_devices_open(const char *spec, const struct tfc_memory_limit *limits, uint32_t limit_count,
                                         struct tfc_device_set *out);
// Opens the undivided machine as one device of the kind of `like` ("whole:").
TFC_MUST_USE tfc_status tfc_devices_open_whole(const struct tfc_device *like, struct tfc_device_set *out);
void tfc_devices_close(struct tfc_device_set *set);
void tfc_devices_configure(const struct tfc_device_set *set, const struct tfc_device_settings *settings);
// Returns the arithmetic of the devices on which the user can choose it; NULL: there is no such device, or it is the
// default.
const char *tfc_devices_math(const struct tfc_device_info *devices, uint32_t count);
// Returns how tensors pass between virtual devices: "copy on one GPU" or "handed over"; NULL: there are no two of them.
const char *tfc_virtual_transfers(const struct tfc_device_info *devices, uint32_t count);

#endif
