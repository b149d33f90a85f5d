// The emulated device: host-backed and asynchronous, with an address space of its own, so that every path that a GPU
// takes through the executor is run where there is none. It computes with the CPU's kernels on one thread.
//
// Tests make it fail: the n-th call of any kind, or of all kinds together, fails or takes longer; and all of its work
// is delayed. (Discovering and opening come before there is a device that could be told.)
//
//   tfc_emulated_inject(device, &(struct tfc_emulated_fault){.call = TFC_EMULATED_SUBMIT, .number = 3});
#ifndef TFC_RUNTIME_DEVICE_EMULATED_EMULATED_H
#define TFC_RUNTIME_DEVICE_EMULATED_EMULATED_H

#include "runtime/device/driver.h"

// name, text. RUN and COPY_RUN fail when the work runs on the device's threads, not when it is submitted.
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
  uint64_t number;  // the n-th such call from now fails (1: the next); 0: none does
  uint64_t times;   // and the calls after it, this many in all; 0: one
  tfc_code code;    // UNAVAILABLE when 0
  int64_t delay_ns; // not 0: these calls do not fail, they take so much longer
};
struct tfc_emulated_delay {
  int64_t run_ns, copy_ns; // before each segment / copy, on the device's threads
  uint64_t jitter;         // not 0: each delay is a random part of it, from this seed
};
void tfc_emulated_inject(struct tfc_device *device, const struct tfc_emulated_fault *fault); // any thread; NULL: none
void tfc_emulated_delay(struct tfc_device *device, const struct tfc_emulated_delay *delay);
uint64_t tfc_emulated_calls(const struct tfc_device *device, tfc_emulated_call call); // made so far

#endif
