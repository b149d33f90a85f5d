// CUDA on the CPU: defines what runtime/device/cuda/kernels/host.h declares. For kernels with barriers, the threads of
// a block are fibers on one thread: each fiber runs until its next barrier, then the next fiber continues. The test
// ends with an error if not all threads of a block reach a barrier.
//
// With TFC_HOST_RACES the thread sanitizer is told what is ordered on a GPU and what is not, so that it reports races
// in kernels: two blocks run at once, each on a thread of its own, and neighbouring threads of a block count as threads
// that only a barrier orders. This file itself is compiled without the sanitizer.
//
// "Device memory" is one region that can be accessed only while a kernel runs, so that host code that reads or writes a
// device's tensors faults.
#include "tests/cuda_kernels/host.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#ifdef TFC_HOST_RACES
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#endif

TFC_HOST_OWN struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;
bool cuda_host_backwards;

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

// --- Fibers ------------------------------------------------------------------------------------------------------
// A place where a fiber, or the thread that all fibers of a block share, goes on. swapcontext would make a system call
// for the signal mask each time, and the address sanitizer does not follow longjmp from one stack to another, so the
// compiler's own jumps are used: this function is left at once, and returns when somebody jumps to `from`.
typedef void *place[5];
#if defined(__clang__)
#define UNWATCHED __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#else
#define UNWATCHED __attribute__((noinline, noclone, no_sanitize("address", "thread", "undefined")))
#endif
UNWATCHED static void leave(place to) { // a function of its own: gcc 12 makes one that calls both return wrongly
  __builtin_longjmp(to, 1);
}
UNWATCHED static void jump(place from, place to) {
  if (!__builtin_setjmp(from)) leave(to);
}
UNWATCHED static void begin(place from, const ucontext_t *to) {
  if (!__builtin_setjmp(from)) setcontext(to);
}

enum { MOST = 1024, STACK = 64 * 1024 };
struct runner;
struct fiber {
  place place;
  struct runner *runner;
  char *stack; // NULL: not made yet
  bool finished;
  unsigned long barriers;
};
struct runner { // runs one block after the other
  struct fiber fibers[MOST];
  place home;
  unsigned current;
  void (*body)(void *);
  void *argument;
  unsigned number; // 0, or 1 for the second of two that run at once
  void *contexts[7];
  char gates[2];
};
static struct runner runners[2];
static TFC_HOST_OWN struct runner *mine; // of this thread

// --- Races -------------------------------------------------------------------------------------------------------
// A thread of a block has one of seven contexts of the thread sanitizer. Threads with the same context would be taken
// to run one after the other, so that races between them are not seen: with seven, those are never threads whose
// numbers differ by a power of two. What a block does begins after, and ends before, what the runner does for it.
#ifdef TFC_HOST_RACES
enum { CONTEXTS = 7, OWN_STACKS = 1 }; // on one stack, the kernels' own variables would look shared
static char borders[2];
static TFC_HOST_OWN void *own_context;
static void enter_context(unsigned thread) {
  own_context = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(mine->contexts[thread % CONTEXTS], __tsan_switch_to_fiber_no_sync);
}
static void leave_context(void) {
  __tsan_switch_to_fiber(own_context, __tsan_switch_to_fiber_no_sync);
}
static void block_begins(void) {
  __tsan_release(&borders[mine->number]);
  for (unsigned i = 0; i < CONTEXTS; i++) {
    if (!mine->contexts[i]) mine->contexts[i] = __tsan_create_fiber(0);
    enter_context(i);
    __tsan_acquire(&borders[mine->number]);
    leave_context();
  }
}
static void block_ends(void) {
  for (unsigned i = 0; i < CONTEXTS; i++) {
    enter_context(i);
    __tsan_release(&borders[mine->number]);
    leave_context();
  }
  __tsan_acquire(&borders[mine->number]);
}
static void ordered_before(char *gate) {
  __tsan_release(gate);
}
static void ordered_after(char *gate) {
  __tsan_acquire(gate);
}
#else
enum { OWN_STACKS = 0 };
static void enter_context(unsigned thread) {
  (void)thread;
}
static void leave_context(void) {}
static void block_begins(void) {}
static void block_ends(void) {}
static void ordered_before(char *gate) {
  (void)gate;
}
static void ordered_after(char *gate) {
  (void)gate;
}
#endif

// --- Blocks ------------------------------------------------------------------------------------------------------
int tfc_host_refusal(int64_t blocks, int64_t threads, int64_t bound) {
  if (blocks < 1 || blocks > INT32_MAX || threads < 1 || threads > MOST) return 9; // cudaErrorInvalidConfiguration
  return threads > bound ? 701 : 0;                                                // cudaErrorLaunchOutOfResources
}

// Fibers are made once and run one body after another.
static void start(void) {
  struct fiber *f = &mine->fibers[mine->current];
  for (;;) {
    f->runner->body(f->runner->argument);
    f->finished = true;
    jump(f->place, f->runner->home);
  }
}

void tfc_host_barrier(void) {
  struct fiber *f = &mine->fibers[mine->current];
  char *gate = &f->runner->gates[f->barriers++ % 2]; // two, because the first threads come to the next barrier early
  ordered_before(gate);
  jump(f->place, f->runner->home);
  ordered_after(gate);
}

static void enter(unsigned i) {
  struct runner *r = mine;
  struct fiber *f = &r->fibers[i];
  r->current = i;
  threadIdx = (struct tfc_host_index){i, 0, 0};
  enter_context(i);
  if (f->stack) {
    jump(r->home, f->place);
  } else {
    ucontext_t context;
    if (!(f->stack = malloc(STACK))) abort();
    f->runner = r;
    getcontext(&context);
    context.uc_stack.ss_sp = f->stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = NULL;
    makecontext(&context, start, 0);
    begin(r->home, &context);
  }
  leave_context();
}

static void take_turns(unsigned threads) {
  struct fiber *fibers = mine->fibers;
  if (threads > MOST) abort();
  for (unsigned i = 0; i < threads; i++) {
    fibers[i].finished = false;
    fibers[i].barriers = 0;
  }
  for (unsigned running = threads; running;) {
    running = 0;
    for (unsigned k = 0; k < threads; k++) {
      const unsigned i = cuda_host_backwards ? threads - 1 - k : k;
      if (fibers[i].finished) continue;
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

struct grid {
  unsigned blocks, threads;
  bool takes_turns;
  void (*body)(void *arg);
  void *arg;
};
// Runs every `step`-th block, from block number `number` on.
static void run_blocks(const struct grid *g, unsigned number, unsigned step) {
  struct runner *r = mine = &runners[number];
  r->body = g->body;
  r->argument = g->arg;
  r->number = number;
  gridDim = (struct tfc_host_index){g->blocks, 1, 1};
  blockDim = (struct tfc_host_index){g->threads, 1, 1};
  for (unsigned b = number; b < g->blocks; b += step) {
    blockIdx = (struct tfc_host_index){cuda_host_backwards ? g->blocks - 1 - b : b, 0, 0};
    block_begins();
    if (g->takes_turns || OWN_STACKS)
      take_turns(g->threads);
    else
      for (unsigned k = 0; k < g->threads; k++) {
        const unsigned i = cuda_host_backwards ? g->threads - 1 - k : k;
        threadIdx = (struct tfc_host_index){i, 0, 0};
        enter_context(i);
        g->body(g->arg);
        leave_context();
      }
    block_ends();
  }
}
#ifdef TFC_HOST_RACES
static void *second(void *g) {
  run_blocks(g, 1, 2);
  return NULL;
}
#endif

void tfc_host_grid(unsigned blocks, unsigned threads, bool takes_turns, void (*body)(void *arg), void *arg) {
  const struct grid g = {blocks, threads, takes_turns, body, arg};
  tfc_host_begin(); // no other thread's kernel runs until tfc_host_end
#ifdef TFC_HOST_RACES
  pthread_t thread;
  if (blocks > 1 && pthread_create(&thread, NULL, second, (void *)(uintptr_t)&g)) abort();
  run_blocks(&g, 0, blocks > 1 ? 2 : 1);
  if (blocks > 1) pthread_join(thread, NULL);
#else
  run_blocks(&g, 0, 1);
#endif
  tfc_host_end();
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
