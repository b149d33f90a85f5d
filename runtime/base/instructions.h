// Which of the processor's vector instructions kernels may use. Kernels are chosen once in a process, because one
// kernel cannot read what another one has packed: set a limit before the first kernel is chosen. Any thread.
#ifndef TFC_RUNTIME_BASE_INSTRUCTIONS_H
#define TFC_RUNTIME_BASE_INSTRUCTIONS_H

#include "runtime/base/status.h"

typedef enum tfc_instructions {
  TFC_INSTRUCTIONS_NATIVE, // all that the processor has (AMX included)
  TFC_INSTRUCTIONS_AVX2,   // with FMA
  TFC_INSTRUCTIONS_AVX512, // F, BW, DQ, VL
} tfc_instructions;

// Limits the instructions from now on; NATIVE changes nothing. UNAVAILABLE: the processor does not have them.
// FAILED_PRECONDITION: kernels were chosen already, with another limit.
TFC_MUST_USE tfc_status tfc_instructions_limit(tfc_instructions most);
// Whether the processor has these instructions and the limit allows them; for NATIVE: whether there is no limit. After
// the first call of this, the limit cannot change.
bool tfc_instructions_allowed(tfc_instructions wanted);

#endif
