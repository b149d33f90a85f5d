// A fake of CUDA for tests. One lock guards everything, because the fake must be correct, not fast. A stream that has
// nothing to do sleeps on a condition variable of its own (so that a piece of work does not wake all streams); threads
// that wait for another stream's work sleep on `changed`.
#include "tests/common/cuda_fake_private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/device/runner.h"
#include "tests/common/cuda_fake_memory.h"

struct tfc_fake tfc_fake = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct tfc_cuda_fake_options options;
static struct CUstream_st *stream_graves; // destroyed streams are kept, so that the fake notices if one is used
static struct CUevent_st *event_graves;
static bool peers[64][64];
static uint64_t pushed;         // bit i: green context 10 + i is current on a thread
static uint64_t green_ends[64]; // how many green contexts 10 + i have been destroyed
static _Thread_local int current_device;
static _Thread_local uint64_t current_green; // the green context that this thread pushed, 0: none
static _Thread_local bool is_pushed;         // a context was pushed, perhaps one that `enter` has replaced since
static _Thread_local int device_below;       // which `pop` makes current again
static uint64_t violations, counts[TFC_CUDA_FAKE_CALL_COUNT], fail_from[TFC_CUDA_FAKE_CALL_COUNT],
    fail_to[TFC_CUDA_FAKE_CALL_COUNT];
static int fail_error[TFC_CUDA_FAKE_CALL_COUNT], sticky, work_error;
static uint64_t work_number, work_fails, work_hangs;
static int64_t delay_ns;
static bool shuffled;
static struct tfc_random shuffle;
static uint32_t stream_count;

// --- Control -----------------------------------------------------------------------------------------------------
void tfc_cuda_fake_install(const struct tfc_cuda_fake_options *o) {
  pthread_mutex_lock(&tfc_fake.lock);
  options = *o;
  if (!options.devices) options.devices = 1;
  if (!options.sm_count) options.sm_count = 132;
  if (!options.granularity) options.granularity = 8;
  if (!options.memory) options.memory = (uint64_t)1 << 32;
  tfc_fake_memory_readable(options.readable);
  memset(counts, 0, sizeof counts);
  memset(fail_from, 0, sizeof fail_from);
  memset(fail_to, 0, sizeof fail_to);
  sticky = 0;
  violations = 0;
  work_fails = 0;
  delay_ns = 0;
  shuffled = false;
  memset(peers, 0, sizeof peers);
  pushed = 0;
  for (struct CUstream_st *s; (s = stream_graves);) stream_graves = s->grave, free(s);
  for (struct CUevent_st *e; (e = event_graves);) event_graves = e->grave, free(e);
  pthread_mutex_unlock(&tfc_fake.lock);
  tfc_cuda_api = &tfc_cuda_fake_api;
}

void tfc_cuda_fake_fail(enum tfc_cuda_fake_call call, uint64_t n, uint64_t times, int error) {
  pthread_mutex_lock(&tfc_fake.lock);
  fail_from[call] = n ? counts[call] + n : 0;
  fail_to[call] = n ? fail_from[call] + (times ? times : 1) : 0;
  fail_error[call] = error;
  pthread_mutex_unlock(&tfc_fake.lock);
}
void tfc_cuda_fake_fail_work(uint64_t n, int error) {
  pthread_mutex_lock(&tfc_fake.lock);
  work_fails = n ? work_number + n : 0;
  work_error = error;
  pthread_mutex_unlock(&tfc_fake.lock);
}
void tfc_cuda_fake_hang(uint64_t n) {
  pthread_mutex_lock(&tfc_fake.lock);
  work_hangs = n ? work_number + n : 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&tfc_fake.lock);
}
void tfc_cuda_fake_delay(int64_t ns) {
  pthread_mutex_lock(&tfc_fake.lock);
  delay_ns = ns;
  pthread_mutex_unlock(&tfc_fake.lock);
}
void tfc_cuda_fake_shuffle(uint64_t seed) {
  pthread_mutex_lock(&tfc_fake.lock);
  shuffled = seed != 0;
  tfc_random_init(&shuffle, seed);
  pthread_mutex_unlock(&tfc_fake.lock);
}
uint64_t tfc_cuda_fake_calls(enum tfc_cuda_fake_call call) {
  pthread_mutex_lock(&tfc_fake.lock);
  uint64_t n = counts[call];
  pthread_mutex_unlock(&tfc_fake.lock);
  return n;
}
uint64_t tfc_cuda_fake_violations(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  uint64_t n = violations;
  pthread_mutex_unlock(&tfc_fake.lock);
  return n;
}
uint64_t tfc_cuda_fake_works(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  uint64_t n = work_number;
  pthread_mutex_unlock(&tfc_fake.lock);
  return n;
}
uint64_t tfc_cuda_fake_bytes(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  uint64_t n = tfc_fake_memory_bytes();
  pthread_mutex_unlock(&tfc_fake.lock);
  return n;
}
void tfc_cuda_fake_reset(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  sticky = 0;
  pthread_mutex_unlock(&tfc_fake.lock);
}
void *tfc_cuda_fake_host(const void *p) {
  return tfc_to_host(p);
}

// counts a call, under the lock; returns the error that the call must return
int tfc_fake_count(enum tfc_cuda_fake_call call) {
  if (sticky) return sticky;
  const bool harmless = call == TFC_CUDA_FAKE_WRITE_FLAG;
  uint64_t n[2] = {harmless ? 0 : ++counts[TFC_CUDA_FAKE_ANY], ++counts[call]};
  for (int i = harmless; i < 2; i++) {
    enum tfc_cuda_fake_call c = i ? call : TFC_CUDA_FAKE_ANY;
    if (!fail_from[c] || n[i] < fail_from[c] || n[i] >= fail_to[c]) continue;
    if (tfc_cuda_error_is_sticky(fail_error[c])) sticky = fail_error[c];
    return fail_error[c];
  }
  return 0;
}

// --- Calls that CUDA refuses: each is counted, and returns the error -----------------------------------------------
int tfc_fake_violation(int error) { // under the lock
  violations++;
  return error;
}
int tfc_fake_use_stream(const struct CUstream_st *s) {
  if (s->life != LIVE) return tfc_fake_violation(INVALID_HANDLE);
  return s->orphan ? tfc_fake_violation(CONTEXT_DESTROYED) : 0;
}
static uint64_t ends_of(uint64_t green) {
  return green ? green_ends[(green - 10) % 64] : 0;
}
static int use_event(const struct CUevent_st *e) {
  if (e->life != LIVE) return tfc_fake_violation(INVALID_HANDLE);
  return e->ends == ends_of(e->green) ? 0 : tfc_fake_violation(CONTEXT_DESTROYED);
}
// A kernel or a graph may only be launched into a stream of the thread's current device.
int tfc_fake_use_for_launch(const struct CUstream_st *s) {
  int error = tfc_fake_use_stream(s);
  return error || s->device == current_device ? error : tfc_fake_violation(INVALID_HANDLE);
}
static int use_memory(const void *p, size_t bytes) {
  return tfc_fake_memory_is_valid(p, bytes) ? 0 : tfc_fake_violation(INVALID_VALUE);
}

static int counted(enum tfc_cuda_fake_call call) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(call);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}

static const char *error_name(int error) {
  switch (error) {
  case 1: return "cudaErrorInvalidValue";
  case 2: return "cudaErrorMemoryAllocation";
  case 100: return "cudaErrorNoDevice";
  case 700: return "cudaErrorIllegalAddress";
  default: return "cudaErrorOther";
  }
}
static const char *error_text(int error) {
  return error == 700 ? "an illegal memory access was encountered" : "a fake failure";
}
static int device_count(int *out) {
  *out = options.devices;
  return options.devices > 0 ? 0 : TFC_CUDA_NO_DEVICE;
}
static int properties(int device, struct tfc_cuda_properties *out) {
  if (device >= options.devices) return 101;
  *out = (struct tfc_cuda_properties){
      .memory = options.memory, .sm_count = options.sm_count, .capability = 90, .shared_per_block = 232448};
  snprintf(out->name, sizeof out->name, "Fake GPU");
  return 0;
}
static void leave_green(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  if (current_green) pushed &= ~((uint64_t)1 << (current_green - 10) % 64);
  pthread_mutex_unlock(&tfc_fake.lock);
  current_green = 0;
}
// Replaces the thread's context, whichever it is.
static int enter(int device) {
  int error = device < options.devices ? counted(TFC_CUDA_FAKE_ENTER) : 101;
  if (!error) {
    leave_green();
    current_device = device;
  }
  return error;
}

// --- Memory ------------------------------------------------------------------------------------------------------
static int make_block(void **out, size_t bytes, bool pinned) {
  tfc_fake_expect_no_capture();
  return tfc_fake_memory_allocate(out, bytes, pinned, current_device) ? 0 : 2;
}
static bool is_running(void) { // under the lock
  for (const struct CUstream_st *s = tfc_fake.streams; s; s = s->next)
    if (s->busy) return true;
  return false;
}
static int free_block(void *p) {
  pthread_mutex_lock(&tfc_fake.lock);
  tfc_fake_expect_no_capture();
  while (sticky && is_running())
    pthread_cond_wait(&changed, &tfc_fake.lock); // after a sticky error no kernel runs, as on a real device
  const bool known = tfc_fake_memory_free(p);
  pthread_mutex_unlock(&tfc_fake.lock);
  return known ? 0 : 1;
}
static int release(void *p) { // does not wait for the device, which cudaFree does as a rule, but does not promise
  return free_block(p);
}
static int allocate(void **out, size_t bytes) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_ALLOCATE);
  if (!error && bytes > options.memory - tfc_fake_memory_bytes()) error = 2;
  if (!error) error = make_block(out, bytes, false);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int allocate_host(void **out, size_t bytes) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_ALLOCATE_HOST);
  if (!error) error = make_block(out, bytes, true);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int memory_info(size_t *out_free, size_t *out_total) { // of the device that the thread has entered
  pthread_mutex_lock(&tfc_fake.lock);
  *out_total = options.memory;
  *out_free = options.memory - tfc_fake_memory_held_by(current_device);
  pthread_mutex_unlock(&tfc_fake.lock);
  return 0;
}

// --- Streams -----------------------------------------------------------------------------------------------------
static void run(struct work *w) { // without the lock
  switch (w->kind) {
  case WORK:
    if (!options.idle) w->fn(w->argument);
    break;
  case COPY: tfc_fake_memory_copy(tfc_to_host(w->to), tfc_to_host(w->from), w->bytes); break;
  case FLAG:
    if (!options.lost_flags) __atomic_store_n((uint32_t *)w->to, (uint32_t)w->value, __ATOMIC_RELEASE);
    break;
  case SET: tfc_fake_memory_fill(tfc_to_host(w->to), w->value, w->bytes); break;
  default: break;
  }
}

void tfc_cuda_fake_watch(const struct tfc_cuda_fake_watcher *w) {
  pthread_mutex_lock(&tfc_fake.lock);
  tfc_fake.watcher = w;
  pthread_mutex_unlock(&tfc_fake.lock);
}
static void run_seen(const struct CUstream_st *s, struct work *w) {
  const int64_t start = tfc_now_ns();
  run(w);
  if (!tfc_fake.watcher || !w->correlation) return;
  tfc_fake.watcher->ran(&(struct tfc_cuda_fake_seen){.kind = w->kind == WORK   ? TFC_CUDA_FAKE_KERNEL
                                                             : w->kind == COPY ? TFC_CUDA_FAKE_COPIED
                                                                               : TFC_CUDA_FAKE_FILLED,
                                                     .start_ns = start,
                                                     .end_ns = tfc_now_ns(),
                                                     .context = s->green ? (uint32_t)s->green : 1,
                                                     .stream = s->id,
                                                     .correlation = w->correlation,
                                                     .graph_node = w->node,
                                                     .bytes = w->bytes,
                                                     .name = w->name});
}

// Tells the watcher of work that never runs: the launch is not unfinished any more.
static void drop_seen(const struct work *w) {
  if (!tfc_fake.watcher || !w->correlation) return;
  tfc_fake.watcher->ran(&(struct tfc_cuda_fake_seen){.kind = TFC_CUDA_FAKE_DROPPED, .correlation = w->correlation});
}

void tfc_fake_release_record(struct record *r) { // under the lock
  if (r && --r->references == 0) free(r);
}
void tfc_fake_free_work(struct work *w) {
  tfc_fake_release_record(w->record);
  free(w->argument);
  free(w);
}

static void *stream_thread(void *arg) {
  struct CUstream_st *s = arg;
  (void)prctl(PR_SET_TIMERSLACK, 1000); // else each delay takes 50 us more than it should
  pthread_mutex_lock(&tfc_fake.lock);
  for (;;) {
    while (!s->first && !s->stop) pthread_cond_wait(&s->wake, &tfc_fake.lock);
    struct work *w = s->first;
    if (!w) break;
    if (w->kind == WAIT && w->record && !w->record->reached && !s->stop) {
      pthread_cond_wait(&changed, &tfc_fake.lock);
      continue;
    }
    if (!(s->first = w->next)) s->end = &s->first;
    s->busy = true;
    bool real = w->kind <= SET;
    work_number += real;
    if (real && work_fails && work_number >= work_fails && !sticky) {
      sticky = work_error;
      work_fails = 0;
    }
    int64_t ns = delay_ns;
    if (ns && shuffled) ns = (int64_t)tfc_random_below(&shuffle, (uint64_t)ns + 1);
    while (real && work_hangs && work_number >= work_hangs) pthread_cond_wait(&changed, &tfc_fake.lock);
    const bool gone = (w->kind == COPY || w->kind == SET) && !sticky &&
                      !(tfc_fake_memory_is_valid(w->to, w->bytes) && tfc_fake_memory_is_valid(w->from, w->bytes));
    violations += gone; // the memory was given back before the stream came to it
    bool skip = sticky != 0 || gone;
    pthread_mutex_unlock(&tfc_fake.lock);
    if (real && ns) tfc_sleep_ns(ns);
    if (real && !skip) run_seen(s, w);
    if (real && skip) drop_seen(w);
    if (w->kind == FLAG && !skip) run(w);
    pthread_mutex_lock(&tfc_fake.lock);
    const bool reached = w->kind == RECORD;
    if (reached) {
      w->record->reached = true;
      w->record->when = tfc_now_ns();
    }
    s->busy = false;
    tfc_fake_free_work(w);
    if (reached || !s->first || sticky) pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&tfc_fake.lock);
  return NULL;
}

struct CUstream_st *tfc_fake_make_stream(uint64_t green, int device) {
  struct CUstream_st *s = calloc(1, sizeof *s);
  s->end = &s->first;
  s->green = green;
  s->device = device;
  s->life = LIVE;
  if (pthread_cond_init(&s->wake, NULL)) abort();
  if (pthread_create(&s->thread, NULL, stream_thread, s)) abort();
  return s;
}
static int stream_create(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out) {
  int error = counted(TFC_CUDA_FAKE_STREAM_CREATE);
  if (error) return error;
  struct CUstream_st *s = tfc_fake_make_stream(partition ? partition->id : 0, current_device);
  pthread_mutex_lock(&tfc_fake.lock);
  s->id = 13 + stream_count++;
  s->next = tfc_fake.streams;
  tfc_fake.streams = s;
  pthread_mutex_unlock(&tfc_fake.lock);
  *out = s;
  return 0;
}
static int stream_destroy(tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  if (s->life != LIVE) {
    int error = tfc_fake_violation(INVALID_HANDLE);
    pthread_mutex_unlock(&tfc_fake.lock);
    return error;
  }
  struct CUstream_st **at = &tfc_fake.streams;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  violations += s->capture != NULL;
  s->stop = true;
  pthread_cond_signal(&s->wake);
  pthread_cond_broadcast(&changed); // the stream may be waiting for a record
  pthread_mutex_unlock(&tfc_fake.lock);
  pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->wake);
  for (int i = 0; i < LANES - 1; i++)
    if (s->sides[i]) (void)stream_destroy(s->sides[i]);
  pthread_mutex_lock(&tfc_fake.lock);
  struct CUgraphExec_st *g = s->capture;
  if (g) tfc_fake_leave_capture(g), s->capture = NULL;
  pthread_mutex_unlock(&tfc_fake.lock);
  if (g) (void)tfc_fake_graph_destroy(g);
  pthread_mutex_lock(&tfc_fake.lock);
  s->life = DEAD;
  s->grave = stream_graves;
  stream_graves = s;
  pthread_mutex_unlock(&tfc_fake.lock);
  return 0;
}
static void wait_idle(struct CUstream_st *s) { // under the lock
  while ((s->first || s->busy) && !sticky) pthread_cond_wait(&changed, &tfc_fake.lock);
}
void tfc_cuda_fake_idle(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  for (struct CUstream_st *s = tfc_fake.streams; s && !sticky;) {
    bool waits = s->first || s->busy;
    if (waits) pthread_cond_wait(&changed, &tfc_fake.lock);
    s = waits ? tfc_fake.streams : s->next;
  }
  pthread_mutex_unlock(&tfc_fake.lock);
}
static int stream_synchronize(tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_STREAM_SYNCHRONIZE);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error && s->capture) error = tfc_fake_refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error) wait_idle(s);
  if (!error) error = sticky;
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}

int tfc_fake_push(struct CUstream_st *s, const struct work *work) { // under the lock
  struct work *w = malloc(sizeof *w);
  void *argument = work->size ? malloc(work->size) : NULL;
  if (!w || (work->size && !argument)) {
    free(w);
    free(argument);
    return 2;
  }
  *w = *work;
  w->next = NULL;
  w->argument = work->size ? memcpy(argument, work->argument, work->size) : NULL;
  if (s->capture) {
    struct CUgraphExec_st *g = s->capture;
    w->node = g->first_node + g->count;
    w->lane = s->lane;
    memcpy(w->before, s->before, sizeof w->before);
    s->before[s->lane] = ++g->in_lane[s->lane];
    *g->end = w;
    g->end = &w->next;
    g->count++;
    return 0;
  }
  if (tfc_fake.watcher && w->kind <= SET && !w->correlation) w->correlation = tfc_fake.watcher->launched(1);
  *s->end = w;
  s->end = &w->next;
  pthread_cond_signal(&s->wake);
  return 0;
}

static _Thread_local const char *launched_name;
void tfc_cuda_fake_name(const char *name) {
  launched_name = name;
}
int tfc_cuda_fake_launch(tfc_cuda_stream stream, void (*fn)(void *argument), const void *argument, size_t size) {
  const struct work w = {
      .kind = WORK, .fn = fn, .argument = (void *)(uintptr_t)argument, .size = size, .name = launched_name};
  pthread_mutex_lock(&tfc_fake.lock);
  int error = sticky ? sticky : tfc_fake_use_for_launch(stream);
  if (!error) error = tfc_fake_push(stream, &w);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int copy(void *to, const void *from, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_COPY);
  struct work w = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
  bool pageable = tfc_fake_memory_is_pageable(to) || tfc_fake_memory_is_pageable(from);
  counts[TFC_CUDA_FAKE_PAGEABLE] += pageable;
  if (!error) error = tfc_fake_use_stream(s);
  if (!error) error = use_memory(to, bytes);
  if (!error) error = use_memory(from, bytes);
  if (!error && pageable && s->capture) error = tfc_fake_refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error && pageable) {
    wait_idle(s);
    if (tfc_fake.watcher) w.correlation = tfc_fake.watcher->launched(1);
    if (!(error = sticky))
      run_seen(s, &w);
    else
      drop_seen(&w);
  } else if (!error) {
    error = tfc_fake_push(s, &w);
  }
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  const bool right = tfc_fake_memory_is_on(to_device, to) && tfc_fake_memory_is_on(from_device, from);
  int error = right ? 0 : tfc_fake_violation(INVALID_VALUE); // device memory must be that of the device that is named
  pthread_mutex_unlock(&tfc_fake.lock);
  return error ? error : copy(to, from, bytes, s);
}
static int set(void *memory, int value, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_SET);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error) error = use_memory(memory, bytes);
  if (!error) error = tfc_fake_push(s, &(struct work){.kind = SET, .to = memory, .value = value, .bytes = bytes});
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int write_flag(tfc_cuda_stream s, uint32_t *flag, uint32_t value) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_WRITE_FLAG);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error && tfc_fake_memory_is_pageable(flag)) error = tfc_fake_violation(INVALID_VALUE);
  if (!error) error = tfc_fake_push(s, &(struct work){.kind = FLAG, .to = flag, .value = (int)value});
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int can_access_peer(int device, int peer, bool *out) {
  *out = device != peer;
  return 0;
}
static int enable_peer(int peer) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_PEER);
  if (!error && (peer == current_device || peer < 0 || peer >= options.devices || peer >= 64))
    error = tfc_fake_violation(101); // no such device, or the same one
  else if (!error && peers[current_device][peer])
    error = PEER_ALREADY; // a program may call it to find this out, so it counts as no violation
  else if (!error)
    peers[current_device][peer] = true;
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int last_error(void) {
  return sticky;
}

// --- Events ------------------------------------------------------------------------------------------------------
static int event_create(bool timing, tfc_cuda_event *out) {
  int error = counted(TFC_CUDA_FAKE_EVENT_CREATE);
  if (error) return error;
  if (!(*out = calloc(1, sizeof **out))) return 2;
  (*out)->timing = timing;
  (*out)->device = current_device;
  (*out)->green = current_green;
  pthread_mutex_lock(&tfc_fake.lock);
  (*out)->ends = ends_of(current_green);
  pthread_mutex_unlock(&tfc_fake.lock);
  (*out)->life = LIVE;
  return 0;
}
static int event_destroy(tfc_cuda_event e) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = use_event(e);
  if (e->life == LIVE) {
    tfc_fake_release_record(e->last);
    e->last = NULL;
    e->life = DEAD;
    e->grave = event_graves;
    event_graves = e;
  }
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int event_record(tfc_cuda_event e, tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_EVENT_RECORD);
  if (!error) error = use_event(e);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error && e->device != s->device) error = tfc_fake_violation(INVALID_HANDLE);
  // No violation: a program may find out so what streams of a green context accept.
  if (!error && e->green != s->green && !(options.loose_events && !e->green)) error = INVALID_HANDLE;
  if (!error && s->capture) { // in capture it is not in the stream's queue, but says what comes before it
    e->captured = s->capture->first_node;
    memcpy(e->before, s->before, sizeof e->before);
    pthread_mutex_unlock(&tfc_fake.lock);
    return 0;
  }
  e->captured = 0;
  struct record *r = error ? NULL : calloc(1, sizeof *r);
  if (!error && !r) error = 2;
  if (!error && !(error = tfc_fake_push(s, &(struct work){.kind = RECORD, .record = r}))) {
    tfc_fake_release_record(e->last);
    e->last = r;
    r->references = 2; // the event's and the work's
  } else {
    free(r);
  }
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int event_query(tfc_cuda_event e) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_EVENT_QUERY);
  if (!error) error = use_event(e);
  if (!error && e->captured) error = tfc_fake_violation(CAPTURED_EVENT);
  if (!error && e->last && !e->last->reached) error = TFC_CUDA_NOT_READY;
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int event_elapsed(tfc_cuda_event begin, tfc_cuda_event end, float *out_ms) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_EVENT_ELAPSED);
  if (!error && (!begin->timing || !end->timing || begin->device != end->device))
    error = tfc_fake_violation(INVALID_HANDLE);
  if (!error && (!begin->last || !end->last)) error = 400;
  if (!error && (!begin->last->reached || !end->last->reached)) error = TFC_CUDA_NOT_READY;
  if (!error) *out_ms = (float)((double)(end->last->when - begin->last->when) * 1e-6);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
static int stream_wait(tfc_cuda_stream s, tfc_cuda_event e) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_STREAM_WAIT);
  if (!error) error = use_event(e);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error && e->captured)
    error = tfc_fake_wait_in_capture(s, e);
  else if (!error && s->capture)
    error = tfc_fake_refuse_capture(s, CAPTURE_ISOLATION);
  else if (!error && !(error = tfc_fake_push(s, &(struct work){.kind = WAIT, .record = e->last})) && e->last)
    e->last->references++;
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}

// --- Partitions --------------------------------------------------------------------------------------------------
static int split(int device, uint32_t n, struct tfc_cuda_partition *out, int *out_granularity, int *out_total) {
  (void)device;
  int error = counted(TFC_CUDA_FAKE_SPLIT);
  *out_granularity = options.granularity;
  *out_total = options.sm_count;
  if (error) return error;
  int each = options.sm_count / (int)n / options.granularity * options.granularity;
  if (each < options.granularity) return 1;
  for (uint32_t i = 0; i < n; i++) out[i] = (struct tfc_cuda_partition){.sm_count = each, .id = 10 + i};
  return 0;
}
static int unsplit(struct tfc_cuda_partition *p) {
  pthread_mutex_lock(&tfc_fake.lock);
  for (struct CUstream_st *s = tfc_fake.streams; s; s = s->next)
    if (s->green == p->id) s->orphan = true, violations++;
  green_ends[(p->id - 10) % 64]++;
  pthread_mutex_unlock(&tfc_fake.lock);
  return 0;
}

// A green context is current on one thread at a time.
static int push_context(const struct tfc_cuda_partition *p) {
  pthread_mutex_lock(&tfc_fake.lock);
  const uint64_t bit = (uint64_t)1 << (p->id - 10) % 64;
  if (pushed & bit) (void)tfc_fake_violation(0);
  pushed |= bit;
  if (is_pushed) (void)tfc_fake_violation(0); // the driver pushes one at a time
  pthread_mutex_unlock(&tfc_fake.lock);
  current_green = p->id;
  is_pushed = true;
  device_below = current_device;
  return 0;
}
static int pop_context(void) {
  leave_green();
  pthread_mutex_lock(&tfc_fake.lock);
  if (!is_pushed) (void)tfc_fake_violation(0);
  pthread_mutex_unlock(&tfc_fake.lock);
  is_pushed = false;
  current_device = device_below;
  return 0;
}

// --- cuDNN's handle ----------------------------------------------------------------------------------------------
static int take_stream(const struct cudnnContext *handle, const struct CUstream_st *s) {
  return options.strict_cudnn && (handle->green != s->green || current_green != handle->green) ? 2000 : 0;
}
static int cudnn_create(tfc_cuda_stream stream, struct cudnnContext **out, const char **out_error) {
  struct cudnnContext *handle = calloc(1, sizeof *handle);
  if (!handle) abort();
  handle->green = current_green;
  pthread_mutex_lock(&tfc_fake.lock);
  tfc_fake_expect_no_capture(); // it takes memory
  pthread_mutex_unlock(&tfc_fake.lock);
  int error = take_stream(handle, stream);
  if (error) {
    *out_error = "the stream is of another context";
    free(handle);
  } else {
    *out = handle;
  }
  return error;
}
static int cudnn_destroy(struct cudnnContext *handle) { // waits for the device
  pthread_mutex_lock(&tfc_fake.lock);
  tfc_fake_wait_for_device(current_device);
  if (options.strict_cudnn) violations += handle->green != current_green;
  pthread_mutex_unlock(&tfc_fake.lock);
  free(handle);
  return 0;
}
static int cudnn_stream(struct cudnnContext *handle, tfc_cuda_stream stream) {
  return take_stream(handle, stream);
}
uint64_t tfc_cuda_fake_green(void) {
  return current_green;
}

const struct tfc_cuda_api tfc_cuda_fake_api = {
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .properties = properties,
    .enter = enter,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = free_block,
    .memory_info = memory_info,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .write_flag = write_flag,
    .copy = copy,
    .copy_peer = copy_peer,
    .set = set,
    .can_access_peer = can_access_peer,
    .enable_peer = enable_peer,
    .last_error = last_error,
    .capture_begin = tfc_fake_capture_begin,
    .capture_count = tfc_fake_capture_count,
    .capture_nodes = tfc_fake_capture_nodes,
    .capture_end = tfc_fake_capture_end,
    .capture_abort = tfc_fake_capture_abort,
    .graph_launch = tfc_fake_graph_launch,
    .graph_destroy = tfc_fake_graph_destroy,
    .split = split,
    .unsplit = unsplit,
    .push = push_context,
    .pop = pop_context,
    .cudnn_create = cudnn_create,
    .cudnn_destroy = cudnn_destroy,
    .cudnn_stream = cudnn_stream,
};
