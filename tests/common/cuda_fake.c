// A fake of CUDA for tests. One lock guards everything, because the fake must be correct, not fast. A stream that has
// nothing to do sleeps on a condition variable of its own (so that a piece of work does not wake all streams); threads
// that wait for another stream's work sleep on `changed`.
#include "tests/common/cuda_fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/device/runner.h"
#include "tests/common/cuda_fake_memory.h"

enum { WORK, COPY, SET, RECORD, WAIT };
enum { LANES = 8 }; // streams of one capture
struct work {
  int kind, value;
  void (*fn)(void *argument);
  void *argument; // a copy of the argument, which this work owns
  size_t size;
  void *to;
  const void *from;
  size_t bytes;
  struct record *record; // RECORD makes this record reached, WAIT waits for it
  uint32_t correlation;  // the launch's, see tfc_cuda_fake_watcher
  uint64_t node;         // of a captured graph
  // Of a captured graph: the stream of the capture, how many pieces of work of each stream come before this one, and
  // whether work of another stream comes directly after it.
  uint32_t lane, before[LANES];
  bool awaited;
  struct work *next;
};
// one recording of an event: a stream that waits for it continues to wait for this one even if the event is recorded
// again
struct record {
  uint32_t references;
  bool reached;
  int64_t when;
};
enum { LIVE = 0x11fe, DEAD = 0xdead };
struct CUevent_st {
  int device;
  struct record *last; // NULL: never recorded
  bool timing;
  uint64_t captured;      // the capture in which it was recorded last; 0: in none
  uint32_t before[LANES]; // as in struct work
  uint32_t life;
  struct CUevent_st *grave;
};
struct cudnnContext {
  uint64_t green; // id of the context that was current when the stream was made; 0: the primary context
};
struct CUgraph_st {
  int unused;
};
struct CUgraphExec_st {
  struct work *first, **end;
  size_t count, longest; // `longest`: how many pieces of work follow each other at least
  uint64_t first_node;
  bool invalid; // something was done that may not be captured
  uint32_t lanes, in_lane[LANES];
  const struct CUstream_st *origin; // where the capture began
};
struct CUstream_st {
  pthread_t thread;
  pthread_cond_t wake; // signalled when there is work, or when the stream ends
  struct work *first, **end;
  bool busy, stop;
  struct CUgraphExec_st *capture;       // which all its streams share
  uint32_t lane, before[LANES];         // in the capture: its number, and what comes before the stream's next work
  pthread_t capturer;                   // the thread that captures, if `capture` is set
  struct CUstream_st *sides[LANES - 1]; // run the branches of graphs that are launched into this stream
  uint64_t green;                       // the green context of the partition; 0: none
  uint32_t id, life;
  int device;
  bool orphan; // its green context was destroyed
  struct CUstream_st *next, *grave;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct tfc_cuda_fake_options options;
static struct CUstream_st *streams;
static struct CUstream_st *stream_graves; // destroyed streams are kept, so that the fake notices if one is used
static struct CUevent_st *event_graves;
static bool peers[64][64];
static _Thread_local int current_device;
static _Thread_local uint64_t current_green; // the green context that this thread pushed, 0: none
static uint64_t violations, counts[TFC_CUDA_FAKE_CALL_COUNT], fail_from[TFC_CUDA_FAKE_CALL_COUNT],
    fail_to[TFC_CUDA_FAKE_CALL_COUNT];
static int fail_error[TFC_CUDA_FAKE_CALL_COUNT], sticky, work_error;
static uint64_t work_number, work_fails, work_hangs;
static int64_t delay_ns;
static bool shuffled;
static struct tfc_random shuffle;
static uint32_t stream_count;
static uint64_t graph_count;
static struct tfc_cuda_fake_graph last_graph;
static void (*graph_watcher)(const struct tfc_cuda_fake_graph *graph);
static const struct tfc_cuda_fake_watcher *watcher;

// --- Control -----------------------------------------------------------------------------------------------------
void tfc_cuda_fake_install(const struct tfc_cuda_fake_options *o) {
  pthread_mutex_lock(&lock);
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
  for (struct CUstream_st *s; (s = stream_graves);) stream_graves = s->grave, free(s);
  for (struct CUevent_st *e; (e = event_graves);) event_graves = e->grave, free(e);
  pthread_mutex_unlock(&lock);
  tfc_cuda_api = &tfc_cuda_fake_api;
}

void tfc_cuda_fake_fail(enum tfc_cuda_fake_call call, uint64_t n, uint64_t times, int error) {
  pthread_mutex_lock(&lock);
  fail_from[call] = n ? counts[call] + n : 0;
  fail_to[call] = n ? fail_from[call] + (times ? times : 1) : 0;
  fail_error[call] = error;
  pthread_mutex_unlock(&lock);
}
void tfc_cuda_fake_fail_work(uint64_t n, int error) {
  pthread_mutex_lock(&lock);
  work_fails = n ? work_number + n : 0;
  work_error = error;
  pthread_mutex_unlock(&lock);
}
void tfc_cuda_fake_hang(uint64_t n) {
  pthread_mutex_lock(&lock);
  work_hangs = n ? work_number + n : 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
void tfc_cuda_fake_delay(int64_t ns) {
  pthread_mutex_lock(&lock);
  delay_ns = ns;
  pthread_mutex_unlock(&lock);
}
void tfc_cuda_fake_shuffle(uint64_t seed) {
  pthread_mutex_lock(&lock);
  shuffled = seed != 0;
  tfc_random_init(&shuffle, seed);
  pthread_mutex_unlock(&lock);
}
uint64_t tfc_cuda_fake_calls(enum tfc_cuda_fake_call call) {
  pthread_mutex_lock(&lock);
  uint64_t n = counts[call];
  pthread_mutex_unlock(&lock);
  return n;
}
uint64_t tfc_cuda_fake_violations(void) {
  pthread_mutex_lock(&lock);
  uint64_t n = violations;
  pthread_mutex_unlock(&lock);
  return n;
}
uint64_t tfc_cuda_fake_works(void) {
  pthread_mutex_lock(&lock);
  uint64_t n = work_number;
  pthread_mutex_unlock(&lock);
  return n;
}
uint64_t tfc_cuda_fake_bytes(void) {
  pthread_mutex_lock(&lock);
  uint64_t n = tfc_fake_memory_bytes();
  pthread_mutex_unlock(&lock);
  return n;
}
void tfc_cuda_fake_reset(void) {
  pthread_mutex_lock(&lock);
  sticky = 0;
  pthread_mutex_unlock(&lock);
}
struct tfc_cuda_fake_graph tfc_cuda_fake_graph(void) {
  pthread_mutex_lock(&lock);
  const struct tfc_cuda_fake_graph g = last_graph;
  pthread_mutex_unlock(&lock);
  return g;
}
void tfc_cuda_fake_watch_graphs(void (*launched)(const struct tfc_cuda_fake_graph *graph)) {
  graph_watcher = launched;
}
void *tfc_cuda_fake_host(const void *p) {
  return tfc_to_host(p);
}

// counts a call, under the lock; returns the error that the call must return
static int count(enum tfc_cuda_fake_call call) {
  if (sticky) return sticky;
  uint64_t n[2] = {++counts[TFC_CUDA_FAKE_ANY], ++counts[call]};
  for (int i = 0; i < 2; i++) {
    enum tfc_cuda_fake_call c = i ? call : TFC_CUDA_FAKE_ANY;
    if (!fail_from[c] || n[i] < fail_from[c] || n[i] >= fail_to[c]) continue;
    if (tfc_cuda_error_is_sticky(fail_error[c])) sticky = fail_error[c];
    return fail_error[c];
  }
  return 0;
}

// --- Calls that CUDA refuses: each is counted, and returns the error -----------------------------------------------
enum {
  INVALID_VALUE = 1,
  INVALID_HANDLE = 400, // the handle was destroyed, or belongs to another device
  PEER_ALREADY = 704,
  CONTEXT_DESTROYED = 709,
  CAPTURE_UNSUPPORTED = 900, // and the capture is lost
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,     // two captures would become one
  CAPTURE_UNMATCHED = 903, // it began on another stream
  CAPTURE_UNJOINED = 904,  // a stream of the capture has work after which the first one does not come
  CAPTURE_ISOLATION = 905, // a stream in capture waits for work that was not captured
  CAPTURED_EVENT = 907
};
static int violation(int error) { // under the lock
  violations++;
  return error;
}
static int use_stream(const struct CUstream_st *s) {
  if (s->life != LIVE) return violation(INVALID_HANDLE);
  return s->orphan ? violation(CONTEXT_DESTROYED) : 0;
}
static int use_event(const struct CUevent_st *e) {
  return e->life == LIVE ? 0 : violation(INVALID_HANDLE);
}
// A kernel or a graph may only be launched into a stream of the thread's current device.
static int use_for_launch(const struct CUstream_st *s) {
  int error = use_stream(s);
  return error || s->device == current_device ? error : violation(INVALID_HANDLE);
}
static int refuse_capture(struct CUstream_st *s, int error) {
  s->capture->invalid = true;
  return violation(error);
}
static int use_memory(const void *p, size_t bytes) {
  return tfc_fake_memory_is_valid(p, bytes) ? 0 : violation(INVALID_VALUE);
}

static int counted(enum tfc_cuda_fake_call call) {
  pthread_mutex_lock(&lock);
  int error = count(call);
  pthread_mutex_unlock(&lock);
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
static int enter(int device) {
  int error = device < options.devices ? counted(TFC_CUDA_FAKE_ENTER) : 101;
  if (!error) current_device = device;
  return error;
}

// --- Memory ------------------------------------------------------------------------------------------------------
static void expect_no_capture(void); // no other thread may be capturing; under the lock
static int make_block(void **out, size_t bytes, bool pinned) {
  expect_no_capture();
  return tfc_fake_memory_allocate(out, bytes, pinned, current_device) ? 0 : 2;
}
static bool is_running(void) { // under the lock
  for (const struct CUstream_st *s = streams; s; s = s->next)
    if (s->busy) return true;
  return false;
}
static int free_block(void *p) {
  pthread_mutex_lock(&lock);
  expect_no_capture();
  while (sticky && is_running())
    pthread_cond_wait(&changed, &lock); // after a sticky error no kernel runs, as on a real device
  const bool known = tfc_fake_memory_free(p);
  pthread_mutex_unlock(&lock);
  return known ? 0 : 1;
}
static int release(void *p) { // like cudaFree: waits until the device has done its work
  tfc_cuda_fake_idle();
  return free_block(p);
}
static int allocate(void **out, size_t bytes) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_ALLOCATE);
  if (!error && bytes > options.memory - tfc_fake_memory_bytes()) error = 2;
  if (!error) error = make_block(out, bytes, false);
  pthread_mutex_unlock(&lock);
  return error;
}
static int allocate_host(void **out, size_t bytes) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_ALLOCATE_HOST);
  if (!error) error = make_block(out, bytes, true);
  pthread_mutex_unlock(&lock);
  return error;
}
static int memory_info(size_t *out_free, size_t *out_total) { // of the device that the thread has entered
  pthread_mutex_lock(&lock);
  *out_total = options.memory;
  *out_free = options.memory - tfc_fake_memory_held_by(current_device);
  pthread_mutex_unlock(&lock);
  return 0;
}

// --- Streams -----------------------------------------------------------------------------------------------------
static void run(struct work *w) { // without the lock
  switch (w->kind) {
  case WORK:
    if (!options.idle) w->fn(w->argument);
    break;
  case COPY: tfc_fake_memory_copy(tfc_to_host(w->to), tfc_to_host(w->from), w->bytes); break;
  case SET: tfc_fake_memory_fill(tfc_to_host(w->to), w->value, w->bytes); break;
  default: break;
  }
}

void tfc_cuda_fake_watch(const struct tfc_cuda_fake_watcher *w) {
  pthread_mutex_lock(&lock);
  watcher = w;
  pthread_mutex_unlock(&lock);
}
static void run_seen(const struct CUstream_st *s, struct work *w) {
  const int64_t start = tfc_now_ns();
  run(w);
  if (!watcher || !w->correlation) return;
  watcher->ran(&(struct tfc_cuda_fake_seen){.kind = w->kind == WORK   ? TFC_CUDA_FAKE_KERNEL
                                                    : w->kind == COPY ? TFC_CUDA_FAKE_COPIED
                                                                      : TFC_CUDA_FAKE_FILLED,
                                            .start_ns = start,
                                            .end_ns = tfc_now_ns(),
                                            .context = s->green ? (uint32_t)s->green : 1,
                                            .stream = s->id,
                                            .correlation = w->correlation,
                                            .graph_node = w->node,
                                            .bytes = w->bytes});
}

// Tells the watcher of work that never runs: the launch is not unfinished any more.
static void drop_seen(const struct work *w) {
  if (!watcher || !w->correlation) return;
  watcher->ran(&(struct tfc_cuda_fake_seen){.kind = TFC_CUDA_FAKE_DROPPED, .correlation = w->correlation});
}

static void release_record(struct record *r) { // under the lock
  if (r && --r->references == 0) free(r);
}
static void free_work(struct work *w) {
  release_record(w->record);
  free(w->argument);
  free(w);
}

static void *stream_thread(void *arg) {
  struct CUstream_st *s = arg;
  (void)prctl(PR_SET_TIMERSLACK, 1000); // else each delay takes 50 us more than it should
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!s->first && !s->stop) pthread_cond_wait(&s->wake, &lock);
    struct work *w = s->first;
    if (!w) break;
    if (w->kind == WAIT && w->record && !w->record->reached && !s->stop) {
      pthread_cond_wait(&changed, &lock);
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
    while (real && work_hangs && work_number >= work_hangs) pthread_cond_wait(&changed, &lock);
    bool skip = sticky != 0;
    pthread_mutex_unlock(&lock);
    if (real && ns) tfc_sleep_ns(ns);
    if (real && !skip) run_seen(s, w);
    if (real && skip) drop_seen(w);
    pthread_mutex_lock(&lock);
    const bool reached = w->kind == RECORD;
    if (reached) {
      w->record->reached = true;
      w->record->when = tfc_now_ns();
    }
    s->busy = false;
    free_work(w);
    if (reached || !s->first || sticky) pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static struct CUstream_st *make_stream(uint64_t green, int device) {
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
  struct CUstream_st *s = make_stream(partition ? partition->id : 0, current_device);
  pthread_mutex_lock(&lock);
  s->id = 13 + stream_count++;
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&lock);
  *out = s;
  return 0;
}
// The stream that runs lane `lane` of graphs that are launched into `s`; a profiler sees it as `s`.
static struct CUstream_st *side_of(struct CUstream_st *s, uint32_t lane) { // under the lock
  if (!lane) return s;
  struct CUstream_st **side = &s->sides[lane - 1];
  if (*side) return *side;
  *side = make_stream(s->green, s->device);
  (*side)->id = s->id;
  (*side)->next = streams;
  return streams = *side;
}
static void detach(const struct CUgraphExec_st *g) { // the streams of a capture leave it; under the lock
  for (struct CUstream_st *s = streams; s; s = s->next)
    if (s->capture == g) s->capture = NULL;
}
static int graph_destroy(tfc_cuda_graph g);
static int stream_destroy(tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  if (s->life != LIVE) {
    int error = violation(INVALID_HANDLE);
    pthread_mutex_unlock(&lock);
    return error;
  }
  struct CUstream_st **at = &streams;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  violations += s->capture != NULL;
  s->stop = true;
  pthread_cond_signal(&s->wake);
  pthread_cond_broadcast(&changed); // the stream may be waiting for a record
  pthread_mutex_unlock(&lock);
  pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->wake);
  for (int i = 0; i < LANES - 1; i++)
    if (s->sides[i]) (void)stream_destroy(s->sides[i]);
  pthread_mutex_lock(&lock);
  struct CUgraphExec_st *g = s->capture;
  if (g) detach(g), s->capture = NULL;
  pthread_mutex_unlock(&lock);
  if (g) (void)graph_destroy(g);
  pthread_mutex_lock(&lock);
  s->life = DEAD;
  s->grave = stream_graves;
  stream_graves = s;
  pthread_mutex_unlock(&lock);
  return 0;
}
static void wait_idle(struct CUstream_st *s) { // under the lock
  while ((s->first || s->busy) && !sticky) pthread_cond_wait(&changed, &lock);
}
void tfc_cuda_fake_idle(void) {
  pthread_mutex_lock(&lock);
  for (struct CUstream_st *s = streams; s && !sticky;) {
    bool waits = s->first || s->busy;
    if (waits) pthread_cond_wait(&changed, &lock);
    s = waits ? streams : s->next;
  }
  pthread_mutex_unlock(&lock);
}
static int stream_synchronize(tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_STREAM_SYNCHRONIZE);
  if (!error) error = use_stream(s);
  if (!error && s->capture) error = refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error) wait_idle(s);
  if (!error) error = sticky;
  pthread_mutex_unlock(&lock);
  return error;
}

static int push(struct CUstream_st *s, const struct work *work) { // under the lock
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
  if (watcher && w->kind <= SET && !w->correlation) w->correlation = watcher->launched(1);
  *s->end = w;
  s->end = &w->next;
  pthread_cond_signal(&s->wake);
  return 0;
}

int tfc_cuda_fake_launch(tfc_cuda_stream stream, void (*fn)(void *argument), const void *argument, size_t size) {
  const struct work w = {.kind = WORK, .fn = fn, .argument = (void *)(uintptr_t)argument, .size = size};
  pthread_mutex_lock(&lock);
  int error = sticky ? sticky : use_for_launch(stream);
  if (!error) error = push(stream, &w);
  pthread_mutex_unlock(&lock);
  return error;
}
static int copy(void *to, const void *from, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_COPY);
  struct work w = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
  bool pageable = tfc_fake_memory_is_pageable(to) || tfc_fake_memory_is_pageable(from);
  counts[TFC_CUDA_FAKE_PAGEABLE] += pageable;
  if (!error) error = use_stream(s);
  if (!error) error = use_memory(to, bytes);
  if (!error) error = use_memory(from, bytes);
  if (!error && pageable && s->capture) error = refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error && pageable) {
    wait_idle(s);
    if (watcher) w.correlation = watcher->launched(1);
    if (!(error = sticky))
      run_seen(s, &w);
    else
      drop_seen(&w);
  } else if (!error) {
    error = push(s, &w);
  }
  pthread_mutex_unlock(&lock);
  return error;
}
static int copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  const bool right = tfc_fake_memory_is_on(to_device, to) && tfc_fake_memory_is_on(from_device, from);
  int error = right ? 0 : violation(INVALID_VALUE); // device memory must be that of the device that is named
  pthread_mutex_unlock(&lock);
  return error ? error : copy(to, from, bytes, s);
}
static int set(void *memory, int value, size_t bytes, tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_SET);
  if (!error) error = use_stream(s);
  if (!error) error = use_memory(memory, bytes);
  if (!error) error = push(s, &(struct work){.kind = SET, .to = memory, .value = value, .bytes = bytes});
  pthread_mutex_unlock(&lock);
  return error;
}
static int can_access_peer(int device, int peer, bool *out) {
  *out = device != peer;
  return 0;
}
static int enable_peer(int peer) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_PEER);
  if (!error && (peer == current_device || peer < 0 || peer >= options.devices || peer >= 64))
    error = violation(101); // no such device, or the same one
  else if (!error && peers[current_device][peer])
    error = PEER_ALREADY; // a program may call it to find this out, so it counts as no violation
  else if (!error)
    peers[current_device][peer] = true;
  pthread_mutex_unlock(&lock);
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
  (*out)->life = LIVE;
  return 0;
}
static int event_destroy(tfc_cuda_event e) {
  pthread_mutex_lock(&lock);
  int error = use_event(e);
  if (!error) {
    release_record(e->last);
    e->last = NULL;
    e->life = DEAD;
    e->grave = event_graves;
    event_graves = e;
  }
  pthread_mutex_unlock(&lock);
  return error;
}
static int event_record(tfc_cuda_event e, tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_EVENT_RECORD);
  if (!error) error = use_event(e);
  if (!error) error = use_stream(s);
  if (!error && e->device != s->device) error = violation(INVALID_HANDLE);
  if (!error && s->capture) { // in capture it is not in the stream's queue, but says what comes before it
    e->captured = s->capture->first_node;
    memcpy(e->before, s->before, sizeof e->before);
    pthread_mutex_unlock(&lock);
    return 0;
  }
  e->captured = 0;
  struct record *r = error ? NULL : calloc(1, sizeof *r);
  if (!error && !r) error = 2;
  if (!error && !(error = push(s, &(struct work){.kind = RECORD, .record = r}))) {
    release_record(e->last);
    e->last = r;
    r->references = 2; // the event's and the work's
  } else {
    free(r);
  }
  pthread_mutex_unlock(&lock);
  return error;
}
static int event_query(tfc_cuda_event e) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_EVENT_QUERY);
  if (!error) error = use_event(e);
  if (!error && e->captured) error = violation(CAPTURED_EVENT);
  if (!error && e->last && !e->last->reached) error = TFC_CUDA_NOT_READY;
  pthread_mutex_unlock(&lock);
  return error;
}
static int event_elapsed(tfc_cuda_event begin, tfc_cuda_event end, float *out_ms) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_EVENT_ELAPSED);
  if (!error && (!begin->timing || !end->timing || begin->device != end->device)) error = violation(INVALID_HANDLE);
  if (!error && (!begin->last || !end->last)) error = 400;
  if (!error && (!begin->last->reached || !end->last->reached)) error = TFC_CUDA_NOT_READY;
  if (!error) *out_ms = (float)((double)(end->last->when - begin->last->when) * 1e-6);
  pthread_mutex_unlock(&lock);
  return error;
}
// Makes what comes before the event come before the stream's next work, which becomes a part of the capture.
static int wait_in_capture(struct CUstream_st *s, const struct CUevent_st *e) { // under the lock
  struct CUstream_st *other = streams;
  while (other && !(other->capture && other->capture->first_node == e->captured)) other = other->next;
  struct CUgraphExec_st *g = other ? other->capture : NULL;
  if (!g && s->capture) return refuse_capture(s, CAPTURE_ISOLATION);
  if (!g) return violation(CAPTURED_EVENT); // its capture has ended
  if (s->capture && s->capture != g) {
    g->invalid = true;
    return refuse_capture(s, CAPTURE_MERGE);
  }
  if (!s->capture) {
    if (g->lanes == LANES) abort();
    s->capture = g;
    s->capturer = other->capturer;
    s->lane = g->lanes++;
    memset(s->before, 0, sizeof s->before);
  }
  for (int i = 0; i < LANES; i++)
    if (e->before[i] > s->before[i]) s->before[i] = e->before[i];
  return 0;
}
static int stream_wait(tfc_cuda_stream s, tfc_cuda_event e) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_STREAM_WAIT);
  if (!error) error = use_event(e);
  if (!error) error = use_stream(s);
  if (!error && e->captured)
    error = wait_in_capture(s, e);
  else if (!error && s->capture)
    error = refuse_capture(s, CAPTURE_ISOLATION);
  else if (!error && !(error = push(s, &(struct work){.kind = WAIT, .record = e->last})) && e->last)
    e->last->references++;
  pthread_mutex_unlock(&lock);
  return error;
}

// --- Graphs ------------------------------------------------------------------------------------------------------
static void expect_no_capture(void) {
  for (const struct CUstream_st *s = streams; s; s = s->next)
    violations += s->capture && !pthread_equal(s->capturer, pthread_self());
}
static int capture_begin(tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_CAPTURE);
  if (!error) error = use_stream(s);
  if (!error && s->capture) error = refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error) {
    s->capture = calloc(1, sizeof *s->capture);
    s->capture->end = &s->capture->first;
    s->capture->lanes = 1;
    s->capture->origin = s;
    s->lane = 0;
    memset(s->before, 0, sizeof s->before);
    s->capturer = pthread_self();
    s->capture->first_node = 100 + (graph_count++ << 20);
  }
  pthread_mutex_unlock(&lock);
  return error;
}
static int capture_count(tfc_cuda_stream s, size_t *out) {
  *out = s->capture->count;
  return s->capture->invalid ? CAPTURE_INVALIDATED : 0;
}
static int capture_nodes(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t wanted) {
  pthread_mutex_lock(&lock);
  const struct CUgraphExec_st *g = s->capture;
  int error = use_stream(s);
  if (!error && (!g || g->invalid)) error = CAPTURE_INVALIDATED;
  memset(nodes, 0, wanted * sizeof *nodes);
  size_t skip = error || g->in_lane[s->lane] < wanted ? 0 : g->in_lane[s->lane] - wanted, at = 0;
  for (const struct work *w = error ? NULL : g->first; w && at < wanted; w = w->next)
    if (w->lane == s->lane && (!skip || !skip--))
      nodes[at++] = (struct tfc_cuda_graph_node){.id = w->node, .kind = w->kind};
  pthread_mutex_unlock(&lock);
  return error;
}
// Finds the works that another lane waits for, and the longest path through the graph.
static void follow_paths(struct CUgraphExec_st *g) {
  struct work **lanes[LANES] = {0};
  size_t *path[LANES] = {0};
  uint32_t at[LANES] = {0};
  for (uint32_t l = 0; l < g->lanes; l++) {
    lanes[l] = calloc(g->in_lane[l] + 1u, sizeof *lanes[l]);
    path[l] = calloc(g->in_lane[l] + 1u, sizeof *path[l]);
    if (!lanes[l] || !path[l]) abort();
  }
  for (struct work *w = g->first; w; w = w->next) {
    size_t before = 0;
    for (uint32_t l = 0; l < g->lanes; l++) {
      if (!w->before[l]) continue;
      if (l != w->lane) lanes[l][w->before[l] - 1]->awaited = true;
      if (path[l][w->before[l] - 1] > before) before = path[l][w->before[l] - 1];
    }
    path[w->lane][at[w->lane]] = before + 1;
    lanes[w->lane][at[w->lane]++] = w;
    if (before + 1 > g->longest) g->longest = before + 1;
  }
  for (uint32_t l = 0; l < g->lanes; l++) free(lanes[l]), free(path[l]);
}
static int capture_end(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count,
                       tfc_cuda_graph *out) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_CAPTURE);
  struct CUgraphExec_st *g = s->capture;
  if (!error && g->origin != s) {
    error = refuse_capture(s, CAPTURE_UNMATCHED); // it has to be ended where it began
    pthread_mutex_unlock(&lock);
    return error;
  }
  if (!error && g->invalid) error = CAPTURE_INVALIDATED;
  for (uint32_t l = 0; l < g->lanes && !error; l++)
    if (s->before[l] < g->in_lane[l]) error = violation(CAPTURE_UNJOINED);
  detach(g);
  pthread_mutex_unlock(&lock);
  if (error) {
    (void)graph_destroy(g);
    return error;
  }
  follow_paths(g);
  *out_count = g->count;
  const struct work *w = g->first; // kinds of work are numbered as cudaGraphNodeType is
  for (size_t i = 0; i < g->count && i < capacity; i++, w = w->next)
    nodes[i] = (struct tfc_cuda_graph_node){.id = g->lanes == 1 ? g->first_node + i : 0, .kind = w->kind};
  *out = g;
  return 0;
}
static void capture_abort(tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  struct CUgraphExec_st *g = s->capture;
  if (g) detach(g);
  pthread_mutex_unlock(&lock);
  if (g) (void)graph_destroy(g);
}

// Makes a record that `s` reaches, and which can be waited for until it is released.
static int push_record(struct CUstream_st *s, struct record **out) {
  struct record *r = calloc(1, sizeof *r);
  int error = r ? push(s, &(struct work){.kind = RECORD, .record = r}) : 2;
  if (error) {
    free(r);
    return error;
  }
  r->references = 2;
  *out = r;
  return 0;
}
static int push_wait(struct CUstream_st *s, struct record *r) {
  int error = push(s, &(struct work){.kind = WAIT, .record = r});
  if (!error) r->references++;
  return error;
}
// Each lane of the graph runs on a thread of its own, and waits for what comes before its work on others.
static int launch_lanes(const struct CUgraphExec_st *g, struct CUstream_st *s) { // under the lock
  struct record *begin = NULL, **made[LANES] = {0}, *ends[LANES] = {0};
  uint32_t seen[LANES][LANES] = {{0}}, at[LANES] = {0};
  int error = push_record(s, &begin);
  for (uint32_t l = 0; l < g->lanes; l++) {
    if (!(made[l] = calloc(g->in_lane[l] + 1u, sizeof *made[l]))) abort();
    if (l && !error) error = push_wait(side_of(s, l), begin);
  }
  for (struct work *w = g->first; w && !error; w = w->next) {
    struct CUstream_st *on = side_of(s, w->lane);
    for (uint32_t l = 0; l < g->lanes && !error; l++) {
      if (l == w->lane || w->before[l] <= seen[w->lane][l]) continue;
      seen[w->lane][l] = w->before[l];
      error = push_wait(on, made[l][w->before[l] - 1]);
    }
    if (!error) error = push(on, w);
    if (!error && w->awaited) error = push_record(on, &made[w->lane][at[w->lane]]);
    at[w->lane]++;
  }
  for (uint32_t l = 1; l < g->lanes && !error; l++) {
    error = push_record(side_of(s, l), &ends[l]);
    if (!error) error = push_wait(s, ends[l]);
  }
  release_record(begin);
  for (uint32_t l = 0; l < g->lanes; l++) {
    for (uint32_t i = 0; i < g->in_lane[l]; i++) release_record(made[l][i]);
    free(made[l]);
    release_record(ends[l]);
  }
  return error;
}
static int graph_launch(tfc_cuda_graph g, tfc_cuda_stream s) {
  pthread_mutex_lock(&lock);
  int error = count(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  if (!error) error = use_for_launch(s);
  if (!error && s->capture) error = refuse_capture(s, CAPTURE_UNSUPPORTED);
  const uint32_t correlation = watcher && !error ? watcher->launched(g->count) : 0;
  for (struct work *w = g->first; w && !error; w = w->next) w->correlation = correlation;
  for (struct work *w = g->first; w && !error && g->lanes == 1; w = w->next) error = push(s, w);
  if (!error && g->lanes > 1) error = launch_lanes(g, s);
  last_graph = (struct tfc_cuda_fake_graph){g->count, g->longest, g->lanes};
  if (graph_watcher) graph_watcher(&last_graph);
  pthread_mutex_unlock(&lock);
  return error;
}
static int graph_destroy(tfc_cuda_graph g) {
  for (struct work *w = g->first, *next; w; w = next) {
    next = w->next;
    free_work(w);
  }
  free(g);
  return 0;
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
  pthread_mutex_lock(&lock);
  for (struct CUstream_st *s = streams; s; s = s->next)
    if (s->green == p->id) s->orphan = true, violations++;
  pthread_mutex_unlock(&lock);
  return 0;
}

static int push_context(const struct tfc_cuda_partition *p) {
  current_green = p->id;
  return 0;
}
static int pop_context(void) {
  current_green = 0;
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
  int error = take_stream(handle, stream);
  if (error) {
    *out_error = "the stream is of another context";
    free(handle);
  } else {
    *out = handle;
  }
  return error;
}
static int cudnn_destroy(struct cudnnContext *handle) {
  pthread_mutex_lock(&lock);
  if (options.strict_cudnn) violations += handle->green != current_green;
  pthread_mutex_unlock(&lock);
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
    .copy = copy,
    .copy_peer = copy_peer,
    .set = set,
    .can_access_peer = can_access_peer,
    .enable_peer = enable_peer,
    .last_error = last_error,
    .capture_begin = capture_begin,
    .capture_count = capture_count,
    .capture_nodes = capture_nodes,
    .capture_end = capture_end,
    .capture_abort = capture_abort,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .split = split,
    .unsplit = unsplit,
    .push = push_context,
    .pop = pop_context,
    .cudnn_create = cudnn_create,
    .cudnn_destroy = cudnn_destroy,
    .cudnn_stream = cudnn_stream,
};
