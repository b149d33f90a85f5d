// Two things that the CUDA driver needs for every table of calls (api.h). First, each thread's current device: nearly
// every call needs it to be set, and remembering it saves a call into CUDA each time. Second, a list of the sticky
// errors, which end a context: CUDA has no call that says whether an error is sticky, and a driver that continues after
// one gets wrong errors from then on.
#include "runtime/device/cuda/api.h"

#include "runtime/device/cuda/device.h"

const struct tfc_cuda_api *tfc_cuda_api;

// The device that each thread has made current, and the table by which it did.
static _Thread_local const struct tfc_cuda_api *entered_api;
static _Thread_local int entered_ordinal = -1;

int tfc_cuda_enter(const struct tfc_cuda_api *api, int ordinal) {
  if (entered_api == api && entered_ordinal == ordinal) return 0;
  int error = api->enter(ordinal);
  if (error) return error;
  entered_api = api;
  entered_ordinal = ordinal;
  return 0;
}

bool tfc_cuda_error_is_sticky(int error) {
  switch (error) {
  case 214:              // cudaErrorECCUncorrectable
  case 220:              // cudaErrorNvlinkUncorrectable
  case 700:              // cudaErrorIllegalAddress
  case 702:              // cudaErrorLaunchTimeout
  case 709:              // cudaErrorContextIsDestroyed
  case 710:              // cudaErrorAssert
  case 226:              // cudaErrorContained
  case 714:              // cudaErrorHardwareStackError
  case 715:              // cudaErrorIllegalInstruction
  case 716:              // cudaErrorMisalignedAddress
  case 717:              // cudaErrorInvalidAddressSpace
  case 718:              // cudaErrorInvalidPc
  case 719:              // cudaErrorLaunchFailure
  case 721:              // cudaErrorTensorMemoryLeak
  case 999: return true; // cudaErrorUnknown
  default: return false;
  }
}
