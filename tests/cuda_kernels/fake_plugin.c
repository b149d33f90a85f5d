// A fake libtfc_cuda.so for a machine without a GPU: the complete driver on the fake of the CUDA calls, with the
// kernels' source run on the CPU. Programs, and scripts/gpu_check which runs them, use it as they would use a GPU.
//
// Kernels run when their stream reaches them, one at a time, and can be captured as on a GPU. FAKE_DELAY_NS=N delays
// each piece of work by a random time up to N ns, so that a missing wait shows. With FAKE_IDLE=1, kernels compute
// nothing. FAKE_GRAPHS=FILE: each launch of a graph writes a line with its pieces of work, how many of them follow each
// other at least, and its streams.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernel.h"
#include "tests/cuda_kernels/streams.h"

// The profiler's plug-in may be loaded before or after this one, so each new stream looks for it again.
static struct tfc_cuda_api api;
static int stream_create(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out) {
  tfc_cuda_fake_watch(dlsym(RTLD_DEFAULT, "tfc_fake_watcher"));
  return tfc_cuda_fake_api.stream_create(partition, out);
}

// Returns one choice of an algorithm, so that code that keeps such choices can be tested.
char *tfc_cuda_product_tuning(void) {
  return strdup("a fake GPU\ta product\t1\n");
}

static FILE *graphs;
static void note(const struct tfc_cuda_fake_graph *g) {
  fprintf(graphs, "%zu %zu %u\n", g->works, g->longest, g->lanes);
  fflush(graphs);
}

__attribute__((constructor)) static void install(void) {
  const char *delay = getenv("FAKE_DELAY_NS"), *file = getenv("FAKE_GRAPHS");
  if (file && (graphs = fopen(file, "w"))) tfc_cuda_fake_watch_graphs(note);
  cuda_streams_install(
      &(struct tfc_cuda_fake_options){.memory = (uint64_t)16 << 30, .idle = getenv("FAKE_IDLE") != NULL});
  api = tfc_cuda_fake_api;
  api.stream_create = stream_create;
  tfc_cuda_api = &api;
  if (!delay) return;
  tfc_cuda_fake_delay(atoll(delay));
  tfc_cuda_fake_shuffle(1);
}
