// The emulated device computes with the CPU's kernels on one thread. It is asynchronous and has an address space of its
// own, so tests on a machine without a GPU run the executor's code for GPUs.
//
// Tests can make its n-th call of one kind, or of all kinds together, fail or take longer, and can delay all of its
// work. (Discovering and opening cannot fail in this way, because there is no device yet.)
//
//   tfc_emulated_inject(device, &(struct tfc_emulated_fault){.call = TFC_EMULATED_SUBMIT, .number = 3});
#ifndef TFC_RUNTIME_DEVICE_EMULATED_EMULATED_H
#define TFC_RUNTIME_DEVICE_EMULATED_EMULATED_H

#include "runtime/device/driver.h"

// The kinds of calls: name, text. RUN and COPY_RUN fail when the work runs on the device's threads, not when it is
// submitted.
#define TFC_EMULATED_CALLS(X)                                                                                          \
  X(ANY, "any")                                                                                                        \
  X(ALLOCATE, "allocate")                                                                                              \
  X(PREPARE, "prepare")                                                                                                \
  X(SUBMIT, "submit")                                                                                                  \
  X(COPY, "copy")                                                                                                      \
  X(RUN, "run")                                                                                                        \
  X(COPY_RUN, "copy_run")                                                                                              \
  X(LAUNCH, "launch")                                                                                                  \
  X(READ, "read")                                                                                                      \
  X(WRITE, "write")                                                                                                    \
  X(POST, "post")                                                                                                      \
  X(SYNCHRONIZE, "synchronize")

typedef enum tfc_emulated_call {
#define TFC_EMULATED_ENUM(name, text) TFC_EMULATED_##name,
  TFC_EMULATED_CALLS(TFC_EMULATED_ENUM)
#undef TFC_EMULATED_ENUM
      TFC_EMULATED_CALL_COUNT
} tfc_emulated_call;

struct tfc_emulated_fault {
  tfc_emulated_call call;
  uint64_t number;  // the first call that fails, counted from now (1: the next one); 0: no call fails
  uint64_t times;   // how many calls in a row fail; 0: one
  tfc_code code;    // the error's code; 0: UNAVAILABLE
  int64_t delay_ns; // not 0: these calls do not fail, but take this much longer
};
struct tfc_emulated_delay {
  int64_t run_ns, copy_ns; // before each segment / copy, on the device's threads
  uint64_t jitter;         // not 0: each delay is a random fraction of run_ns or copy_ns; this is the seed
};
void tfc_emulated_inject(struct tfc_device *device, const struct tfc_emulated_fault *fault); // any thread; NULL: none
void tfc_emulated_delay(struct tfc_device *device, const struct tfc_emulated_delay *delay);
uint64_t tfc_emulated_calls(const struct tfc_device *device, tfc_emulated_call call); // made so far

#endif
