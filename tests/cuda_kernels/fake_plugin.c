// A fake libtfc_cuda.so for a machine without a GPU: the complete driver on the fake of the CUDA calls, with the
// kernels' source run on the CPU. Programs, and scripts/gpu_check which runs them, use it as they would use a GPU.
//
// Kernels run when their stream reaches them, one at a time, and can be captured as on a GPU. FAKE_DELAY_NS=N delays
// each piece of work by a random time up to N ns, so that a missing wait shows. With FAKE_IDLE=1, kernels compute
// nothing. With FAKE_STRICT_CUDNN=1, handles of cuDNN want the context of their stream; with FAKE_LOST_FLAGS=1, streams
// do not write their flags. FAKE_GRAPHS=FILE: each launch of a graph writes a line with its pieces of work, how many of
// them follow each other at least, and its streams. FAKE_CHAINS=FILE: each launch of a chain writes a line with its
// kind, how many elements a thread computes at once, its steps (expression, operands, result), and for each operand
// whether it has columns, and whether rows share it (tests/gpu/chains.py).
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernel.h"
#include "runtime/device/cuda/kernels/chain.h"
#include "runtime/device/cuda/kernels/layout.h"
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

// --- The linker puts these functions in front of launchers ----------------------------------------------------------
static FILE *chains;
static pthread_mutex_t chains_lock = PTHREAD_MUTEX_INITIALIZER;
static void note_chain(const char *kind, const struct tfc_cuda_chain *c) {
  enum { NO_OPERAND = -128 };
  bool wide = c->columns % 4 == 0;
  for (int i = 0; i < c->operand_count; i++)
    wide =
        wide && (!c->operands[i].column || ((uintptr_t)c->operands[i].data % 16 == 0 && c->operands[i].row % 4 == 0));
  pthread_mutex_lock(&chains_lock);
  fprintf(chains, "%s %d ", kind, wide ? 4 : 1);
  for (int i = 0; i < c->step_count; i++) {
    const struct tfc_cuda_chain_step *s = &c->steps[i];
    fprintf(chains, "%s%d,%d,%d,%d", i ? ";" : "", s->expression, s->a,
            s->expression < TFC_CUDA_CHAIN_FIRST_BINARY ? NO_OPERAND : s->b, s->out);
  }
  for (int i = 0; i < c->operand_count; i++)
    fprintf(chains, "%c%d%d", i ? ',' : ' ', c->operands[i].column != 0, c->operands[i].each != 0);
  fprintf(chains, "\n");
  fflush(chains);
  pthread_mutex_unlock(&chains_lock);
}
int __real_tfc_cuda_chain_run(const struct tfc_cuda_chain *chain, void *stream);
int __wrap_tfc_cuda_chain_run(const struct tfc_cuda_chain *chain, void *stream);
int __wrap_tfc_cuda_chain_run(const struct tfc_cuda_chain *chain, void *stream) {
  if (chains) note_chain("chain", chain);
  tfc_cuda_fake_name("chain_kernel"); // as CUPTI names it
  const int error = __real_tfc_cuda_chain_run(chain, stream);
  tfc_cuda_fake_name(NULL);
  return error;
}
int __real_tfc_cuda_chain_run_rows(const struct tfc_cuda_chain *chain, int32_t lanes, void *stream);
int __wrap_tfc_cuda_chain_run_rows(const struct tfc_cuda_chain *chain, int32_t lanes, void *stream);
int __wrap_tfc_cuda_chain_run_rows(const struct tfc_cuda_chain *chain, int32_t lanes, void *stream) {
  if (chains) note_chain("rows", chain);
  tfc_cuda_fake_name("chain_rows_kernel");
  const int error = __real_tfc_cuda_chain_run_rows(chain, lanes, stream);
  tfc_cuda_fake_name(NULL);
  return error;
}

// --- Images that are transposed --------------------------------------------------------------------------------------
int __real_tfc_cuda_images_copy(const struct tfc_cuda_images *images, const struct tfc_cuda_layout *from_layout,
                                const void *from, const struct tfc_cuda_layout *to_layout, void *to, void *stream);
int __wrap_tfc_cuda_images_copy(const struct tfc_cuda_images *images, const struct tfc_cuda_layout *from_layout,
                                const void *from, const struct tfc_cuda_layout *to_layout, void *to, void *stream);
int __wrap_tfc_cuda_images_copy(const struct tfc_cuda_images *images, const struct tfc_cuda_layout *from_layout,
                                const void *from, const struct tfc_cuda_layout *to_layout, void *to, void *stream) {
  tfc_cuda_fake_name("transpose_kernel of images"); // CUPTI names only the kernel
  const int error = __real_tfc_cuda_images_copy(images, from_layout, from, to_layout, to, stream);
  tfc_cuda_fake_name(NULL);
  return error;
}

__attribute__((constructor)) static void install(void) {
  const char *delay = getenv("FAKE_DELAY_NS"), *file = getenv("FAKE_GRAPHS"), *of_chains = getenv("FAKE_CHAINS");
  if (of_chains) chains = fopen(of_chains, "w");
  if (file && (graphs = fopen(file, "w"))) tfc_cuda_fake_watch_graphs(note);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.memory = (uint64_t)16 << 30,
                                                       .idle = getenv("FAKE_IDLE") != NULL,
                                                       .lost_flags = getenv("FAKE_LOST_FLAGS") != NULL,
                                                       .strict_cudnn = getenv("FAKE_STRICT_CUDNN") != NULL});
  api = tfc_cuda_fake_api;
  api.stream_create = stream_create;
  tfc_cuda_api = &api;
  if (!delay) return;
  tfc_cuda_fake_delay(atoll(delay));
  tfc_cuda_fake_shuffle(1);
}
