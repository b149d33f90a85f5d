// Lets the streams of the fake of the CUDA calls (tests/common/cuda_fake.h) run the CUDA kernels' source: each kernel
// runs when its stream reaches it, one kernel at a time, and can be captured as on a GPU.
#include "tests/cuda_kernels/streams.h"

#include <pthread.h>

#include "tests/cuda_kernels/host.h"

bool cuda_host_no_conv;

static pthread_mutex_t lock; // held while a kernel runs: the fibers of host.c serve one kernel at a time
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void enter(void) {
  pthread_mutex_lock(&lock);
}
static void leave(void) {
  pthread_mutex_unlock(&lock);
}
static int enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size) {
  return tfc_cuda_fake_launch(stream, run, argument, size);
}

static void set_up(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
  cuda_host_enter = enter;
  cuda_host_leave = leave;
  cuda_host_enqueue = enqueue;
}

void cuda_streams_install(const struct tfc_cuda_fake_options *options) {
  struct tfc_cuda_fake_options o = *options;
  o.readable = true; // kernels read the memory that they are given
  pthread_once(&once, set_up);
  tfc_cuda_fake_install(&o);
}
