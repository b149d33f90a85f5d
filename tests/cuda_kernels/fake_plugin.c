// libtfc_cuda.so for a machine without a GPU: the whole driver on the fake of the CUDA calls, with the kernels' source
// run on the CPU. Whole programs, and scripts/gpu_check with them, run on it as they would on a GPU.
//
// Kernels run when their stream gets there, one at a time, and are captured as on a GPU. FAKE_DELAY_NS=N delays each
// piece of work by a random part of that, so that what only seems to be in order is not. FAKE_IDLE=1: kernels compute
// nothing.
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/cuda_kernels/streams.h"

// The profiler's plug-in may be loaded before or after.
static struct tfc_cuda_api api;
static int stream_create(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out) {
  tfc_cuda_fake_watch(dlsym(RTLD_DEFAULT, "tfc_fake_watcher"));
  return tfc_cuda_fake_api.stream_create(partition, out);
}

__attribute__((constructor)) static void install(void) {
  const char *delay = getenv("FAKE_DELAY_NS");
  cuda_streams_install(
      &(struct tfc_cuda_fake_options){.memory = (uint64_t)16 << 30, .idle = getenv("FAKE_IDLE") != NULL});
  api = tfc_cuda_fake_api;
  api.stream_create = stream_create;
  tfc_cuda_api = &api;
  if (!delay) return;
  tfc_cuda_fake_delay(atoll(delay));
  tfc_cuda_fake_shuffle(1);
}
