// Runs prepared segments on the host, for the drivers of all host-backed devices. It chooses each operation's kernel
// and builds its call when a segment is prepared; a run of the segment makes the calls in order.
//
// A device with its own address space (offset != 0) gives out real addresses plus `offset`, so that host code which
// uses them faults. The runner translates them back for the time of one kernel call.
#ifndef TFC_RUNTIME_DEVICE_RUNNER_H
#define TFC_RUNTIME_DEVICE_RUNNER_H

#include "runtime/device/driver.h"
#include "runtime/device/memory.h"

struct tfc_team_times;
struct tfc_runner {
  struct tfc_device *device;
  struct tfc_memory *memory;
  uint64_t offset;
  bool fast_kernels;         // use the CPU's table of fast kernels first
  struct tfc_kernel_env env; // for the device's thread; the driver's `environment` has filled it
  // The same, but it allocates host memory: for host operations of a device with another address space.
  struct tfc_kernel_env host_env;
  // Total times of the loops that the device's team has run; with them the runner updates the times of segments. NULL:
  // the driver has no team.
  const struct tfc_team_times *times;
};

TFC_MUST_USE tfc_status tfc_runner_prepare(struct tfc_runner *r, const struct tfc_segment *segment,
                                           struct tfc_prepared **out);
void tfc_runner_release(struct tfc_prepared *p); // NULL is fine
// Runs a segment on the calling thread; no other thread runs segments of this runner. An error goes to the step. If
// `fail` is given (by tests), the first operation ends with that error. The device waited for the segment's semaphores
// from `waited_from` to `waited_to`, in ticks.
void tfc_runner_run(struct tfc_runner *r, struct tfc_prepared *p, struct tfc_step *step, tfc_status fail,
                    uint64_t waited_from, uint64_t waited_to);
TFC_MUST_USE tfc_status tfc_runner_launch(struct tfc_runner *r, struct tfc_prepared *p, uint32_t index,
                                          struct tfc_kernel_ctx *ctx);
// These are for drivers that run the operations of a segment one by one, in an order of their own. tfc_runner_enter
// prepares an environment for a step; tfc_runner_set_environment gives it to an operation (else the runner's is used);
// tfc_runner_run_one runs the operation. False: the step has failed.
void tfc_runner_enter(struct tfc_kernel_env *env, struct tfc_step *step);
void tfc_runner_set_environment(struct tfc_prepared *p, uint32_t index, struct tfc_kernel_env *env);
bool tfc_runner_run_one(struct tfc_prepared *p, uint32_t index, struct tfc_step *step);
// Of an operation that completes by callback (TFC_OP_ASYNC), tfc_runner_run_one waits until it has completed.
// tfc_runner_begin_one does not: it, or later another thread, calls `ended` once. (`good` false: the step has failed.)
// `more`: the thread begins another such operation at once, or calls the rendezvous's `flush`.
bool tfc_runner_completes_later(const struct tfc_prepared *p, uint32_t index);
void tfc_runner_begin_one(struct tfc_prepared *p, uint32_t index, struct tfc_step *step, bool more,
                          void (*ended)(void *arg, bool good), void *arg);
const struct tfc_segment *tfc_runner_segment(const struct tfc_prepared *p);
// Attaches a struct of the driver's own (say, the graph that it captured) to a prepared segment, which then owns it and
// frees it with `release`.
void tfc_runner_attach(struct tfc_prepared *p, void *own, void (*release)(void *own));
void *tfc_runner_attached(const struct tfc_prepared *p);
bool tfc_runner_supports(struct tfc_runner *r, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason);

// Addresses on a host-backed device with an address space of its own are host addresses plus this offset.
#define TFC_FOREIGN_OFFSET UINT64_C(0x00a0000000000000) // never a mapped user address; a fault on x86-64 and aarch64
static inline bool tfc_is_foreign(const void *p) {
  return ((uint64_t)(uintptr_t)p & TFC_FOREIGN_OFFSET) == TFC_FOREIGN_OFFSET;
}
static inline void *tfc_to_host(const void *p) {
  return (void *)(uintptr_t)((uint64_t)(uintptr_t)p & ~TFC_FOREIGN_OFFSET);
}
static inline void *tfc_to_foreign(const void *p) {
  return (void *)(uintptr_t)((uint64_t)(uintptr_t)p | TFC_FOREIGN_OFFSET);
}

// Puts node, op, device and the inputs' types and shapes before the message of a kernel's error.
TFC_MUST_USE tfc_status tfc_op_error(tfc_status status, const struct tfc_graph *graph, const struct tfc_node *node,
                                     const struct tfc_device *device, const struct tfc_tensor *const *inputs,
                                     uint32_t input_count);

#endif
