// libtfc_cuda.so for a machine without a GPU: the whole driver on the fake of the CUDA calls, with the kernels' source
// run on the CPU. Whole programs, and scripts/gpu_check with them, run on it as they would on a GPU.
//
// Kernels run when their stream gets there, one at a time, and are captured as on a GPU. FAKE_DELAY_NS=N delays each
// piece of work by a random part of that, so that what only seems to be in order is not.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/common/cuda_fake.h"
#include "tests/cuda_kernels/host.h"

bool cuda_host_no_conv;

static pthread_mutex_t lock; // one block runs at a time

static void enter(void) {
  pthread_mutex_lock(&lock);
}
static void leave(void) {
  pthread_mutex_unlock(&lock);
}

static int enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size) {
  return tfc_cuda_fake_launch(stream, run, argument, size);
}

// The profiler's plug-in may be loaded before or after.
static struct tfc_cuda_api api;
static int stream_create(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out) {
  tfc_cuda_fake_watch(dlsym(RTLD_DEFAULT, "tfc_fake_watcher"));
  return tfc_cuda_fake_api.stream_create(partition, out);
}

__attribute__((constructor)) static void install(void) {
  const char *delay = getenv("FAKE_DELAY_NS");
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
  cuda_host_enter = enter;
  cuda_host_leave = leave;
  cuda_host_enqueue = enqueue;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.readable = true, .memory = (uint64_t)16 << 30});
  api = tfc_cuda_fake_api;
  api.stream_create = stream_create;
  tfc_cuda_api = &api;
  if (!delay) return;
  tfc_cuda_fake_delay(atoll(delay));
  tfc_cuda_fake_shuffle(1);
}
