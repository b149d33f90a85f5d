// CUDA on the CPU, the part that runtime/device/cuda/kernels/host.h declares. The threads of a block are fibers on one
// thread, for kernels with barriers: each runs until its next barrier, then the next one goes on. A barrier that not
// all threads of a block reach ends the test.
//
// "Device memory" is one region that is out of reach but while a kernel runs, so that host code that looks into a
// device's tensors faults.
#include "tests/cuda_kernels/host.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(TFC_SANITIZED) && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SWITCHES 1
#endif

struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;

// --- Device memory -----------------------------------------------------------------------------------------------
enum { REGION = 256 << 20 };
static char *region;
static size_t used;

void *cuda_host_allocate(size_t bytes) {
  if (!region) {
    region = mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) abort();
  }
  if (bytes > REGION - used) abort();
  void *place = region + used;
  used += (bytes + 511) / 256 * 256;
  return place;
}

void cuda_host_reset(void) {
  used = 0;
}

static unsigned depth;
void tfc_host_begin(void) {
  if (region && used && !depth++ && mprotect(region, REGION, PROT_READ | PROT_WRITE)) abort();
}
void tfc_host_end(void) {
  if (region && used && !--depth && mprotect(region, REGION, PROT_NONE)) abort();
}

// --- Blocks ------------------------------------------------------------------------------------------------------
// Fibers are made once and run one body after another. ucontext makes their stacks; _setjmp and _longjmp switch, as
// swapcontext would ask the kernel for the signal mask each time.
enum { MOST = 1024, STACK = 64 * 1024 };
struct fiber {
  jmp_buf place;
  char *stack;
  bool made, finished;
  unsigned long barriers;
  void *fake; // of the address sanitizer
};
static struct fiber fibers[MOST];
static jmp_buf home;
static unsigned current;
static void (*body)(void *);
static void *argument;
#ifdef SWITCHES
static const void *home_bottom;
static size_t home_size;
#endif

static void leave(struct fiber *f) {
#ifdef SWITCHES
  __sanitizer_start_switch_fiber(&f->fake, home_bottom, home_size);
#endif
  if (!_setjmp(f->place)) _longjmp(home, 1);
#ifdef SWITCHES
  __sanitizer_finish_switch_fiber(f->fake, &home_bottom, &home_size);
#endif
}

static void start(void) {
#ifdef SWITCHES
  __sanitizer_finish_switch_fiber(NULL, &home_bottom, &home_size);
#endif
  struct fiber *f = &fibers[current];
  for (;;) {
    body(argument);
    f->finished = true;
    leave(f);
  }
}

void tfc_host_barrier(void) {
  struct fiber *f = &fibers[current];
  f->barriers++;
  leave(f);
}

static void make(struct fiber *f) {
  ucontext_t context;
  if (!f->stack && !(f->stack = malloc(STACK))) abort();
  f->made = true;
  getcontext(&context);
  context.uc_stack.ss_sp = f->stack;
  context.uc_stack.ss_size = STACK;
  context.uc_link = NULL;
  makecontext(&context, start, 0);
  setcontext(&context);
}

static void enter(unsigned i) {
  struct fiber *f = &fibers[i];
  current = i;
  threadIdx = (struct tfc_host_index){i, 0, 0};
#ifdef SWITCHES
  static void *fake;
  if (!f->stack && !(f->stack = malloc(STACK))) abort();
  __sanitizer_start_switch_fiber(&fake, f->stack, STACK);
#endif
  if (!_setjmp(home)) {
    if (f->made)
      _longjmp(f->place, 1);
    else
      make(f);
  }
#ifdef SWITCHES
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

void tfc_host_fibers(unsigned threads, void (*run)(void *), void *arg) {
  if (threads > MOST) abort();
  body = run;
  argument = arg;
  for (unsigned i = 0; i < threads; i++) {
    fibers[i].finished = false;
    fibers[i].barriers = 0;
  }
  for (unsigned running = threads; running;) {
    running = 0;
    for (unsigned i = 0; i < threads; i++)
      if (!fibers[i].finished) {
        enter(i);
        running += !fibers[i].finished;
      }
    for (unsigned i = 1; i < threads; i++)
      if (fibers[i].barriers != fibers[0].barriers || fibers[i].finished != fibers[0].finished) {
        fprintf(stderr, "thread %u of a block is at barrier %lu, thread 0 at %lu\n", i, fibers[i].barriers,
                fibers[0].barriers);
        abort();
      }
  }
}
