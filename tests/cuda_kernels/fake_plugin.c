// libtfc_cuda.so for a machine without a GPU: the whole driver on the fake of the CUDA calls, with the kernels' source
// run on the CPU. Whole programs, and scripts/gpu_check with them, run on it as they would on a GPU.
//
// Kernels run at once on the thread that launches them, when every stream has done what it was given: so they cannot be
// captured.
#include <pthread.h>

#include "tests/common/cuda_fake.h"
#include "tests/cuda_kernels/host.h"

bool cuda_host_no_conv;

static pthread_mutex_t lock; // one block runs at a time
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse_captures(void) {
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_CAPTURE, 1, UINT64_MAX / 2, 900);
}
static void enter(void) {
  pthread_once(&once, refuse_captures);
  tfc_cuda_fake_idle();
  pthread_mutex_lock(&lock);
}
static void leave(void) {
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void install(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
  cuda_host_enter = enter;
  cuda_host_leave = leave;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.readable = true, .memory = (uint64_t)16 << 30});
}
