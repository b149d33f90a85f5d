// Instructions: which of the processor's vector instructions kernels may use. Kernels choose once in a process, since
// what one has packed the other cannot read: a limit is set before the first of them asks. Any thread.
#ifndef TFC_RUNTIME_BASE_INSTRUCTIONS_H
#define TFC_RUNTIME_BASE_INSTRUCTIONS_H

#include "runtime/base/status.h"

typedef enum tfc_instructions {
  TFC_INSTRUCTIONS_NATIVE, // whatever there is (AMX included)
  TFC_INSTRUCTIONS_AVX2,   // with FMA
  TFC_INSTRUCTIONS_AVX512, // F, BW, DQ, VL
} tfc_instructions;

// No more than these from now on; NATIVE: no limit of the caller's. UNAVAILABLE: this processor does not have them.
// FAILED_PRECONDITION: kernels were chosen already, with another limit.
TFC_MUST_USE tfc_status tfc_instructions_limit(tfc_instructions most);
// The processor has them and the limit lets them be used; NATIVE: there is no limit. The limit is final from here on.
bool tfc_instructions_allowed(tfc_instructions wanted);

#endif
