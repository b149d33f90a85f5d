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

// The green context that the thread has made current, NULL: none, and its device. CUDA's call for entering a device
// replaces the current context, also a green one that was pushed, and `pop` then makes the device before it current.
static _Thread_local const struct tfc_cuda_partition *green;
static _Thread_local int green_ordinal;

int tfc_cuda_enter(const struct tfc_cuda_api *api, int ordinal) {
  if (entered_api == api && entered_ordinal == ordinal) return 0;
  const bool leaves = green && entered_ordinal == green_ordinal;
  if (leaves) (void)api->pop();
  int error = api->enter(ordinal);
  if (!error) {
    entered_api = api;
    entered_ordinal = ordinal;
  }
  if (green && entered_ordinal == green_ordinal) {
    const int lost = api->push(green);
    if (lost) green = NULL;
    error = error ? error : lost;
  }
  return error;
}

int tfc_cuda_entered(const struct tfc_cuda_api *api) {
  return entered_api == api ? entered_ordinal : -1;
}

int tfc_cuda_push(const struct tfc_cuda_api *api, const struct tfc_cuda_partition *partition) {
  const int error = api->push(partition);
  if (!error) green = partition, green_ordinal = entered_ordinal;
  return error;
}
void tfc_cuda_pop(const struct tfc_cuda_api *api) {
  if (green && entered_ordinal == green_ordinal) (void)api->pop();
  green = NULL;
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
