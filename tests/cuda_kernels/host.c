// CUDA on the CPU: defines what runtime/device/cuda/kernels/host.h declares. For kernels with barriers, the threads of
// a block are fibers on one thread: each fiber runs until its next barrier, then the next fiber continues. The test
// ends with an error if not all threads of a block reach a barrier.
//
// "Device memory" is one region that can be accessed only while a kernel runs, so that host code that reads or writes a
// device's tensors faults.
#include "tests/cuda_kernels/host.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

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

void (*cuda_host_enter)(void), (*cuda_host_leave)(void);
static unsigned depth;
void tfc_host_begin(void) {
  if (cuda_host_enter) cuda_host_enter();
  if (region && used && !depth++ && mprotect(region, REGION, PROT_READ | PROT_WRITE)) abort();
}
void tfc_host_end(void) {
  if (region && used && !--depth && mprotect(region, REGION, PROT_NONE)) abort();
  if (cuda_host_leave) cuda_host_leave();
}

int (*cuda_host_enqueue)(void *stream, void (*run)(void *argument), const void *argument, size_t size);
int tfc_host_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size) {
  if (cuda_host_enqueue) return cuda_host_enqueue(stream, run, argument, size);
  run((void *)(uintptr_t)argument);
  return 0;
}

// --- Blocks ------------------------------------------------------------------------------------------------------
// Fibers are made once and run one body after another. ucontext makes their stacks. _setjmp and _longjmp switch between
// them, because swapcontext makes a system call for the signal mask each time; but the address sanitizer supports only
// swapcontext.
#ifdef TFC_SANITIZED
typedef ucontext_t place;
#define SWITCH(from, to) swapcontext(&(from), &(to))
#define BEGIN(from, context) swapcontext(&(from), &(context))
#else
typedef jmp_buf place;
#define SWITCH(from, to)                                                                                               \
  do {                                                                                                                 \
    if (!_setjmp(from)) _longjmp(to, 1);                                                                               \
  } while (0)
#define BEGIN(from, context)                                                                                           \
  do {                                                                                                                 \
    if (!_setjmp(from)) setcontext(&(context));                                                                        \
  } while (0)
#endif
enum { MOST = 1024, STACK = 64 * 1024 };
struct fiber {
  place place;
  char *stack;
  bool finished;
  unsigned long barriers;
};
static struct fiber fibers[MOST];
static place home;
static unsigned current;
static void (*body)(void *);
static void *argument;

static void start(void) {
  struct fiber *f = &fibers[current];
  for (;;) {
    body(argument);
    f->finished = true;
    SWITCH(f->place, home);
  }
}

void tfc_host_barrier(void) {
  struct fiber *f = &fibers[current];
  f->barriers++;
  SWITCH(f->place, home);
}

static void enter(unsigned i) {
  struct fiber *f = &fibers[i];
  current = i;
  threadIdx = (struct tfc_host_index){i, 0, 0};
  if (f->stack) {
    SWITCH(home, f->place);
    return;
  }
  ucontext_t context;
  if (!(f->stack = malloc(STACK))) abort();
  getcontext(&context);
  context.uc_stack.ss_sp = f->stack;
  context.uc_stack.ss_size = STACK;
  context.uc_link = NULL;
  makecontext(&context, start, 0);
  BEGIN(home, context);
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

// --- Arithmetic --------------------------------------------------------------------------------------------------
float cuda_fake_operand(tfc_math math, float v) {
  uint32_t bits;
  switch (math) {
  case TFC_MATH_FLOAT16: return tfc_half_to_float(tfc_float_to_half(v));
  case TFC_MATH_BFLOAT16: return tfc_bfloat16_to_float(tfc_float_to_bfloat16(v));
  case TFC_MATH_TF32: // 10 bits of mantissa, to nearest
    memcpy(&bits, &v, sizeof bits);
    if ((bits >> 23 & 255) != 255) bits = (bits + (1u << 12)) & ~((1u << 13) - 1);
    memcpy(&v, &bits, sizeof bits);
    return v;
  default: return v;
  }
}
