// Tries every CUDA and CUPTI call that the driver makes, one by one, on a real GPU, to find out which of them work on
// this machine. Each group of calls runs in its own process, so that a lost context or a hang ends only that group.
//
//   gpu_probe_test [group...]      basic graphs green libraries peers cupti
//
// Without the plug-in or a GPU the test says so and passes. It prints a line for each call: "ok", or "WRONG" with
// CUDA's error message.
#include "tests/common/test.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/gpu.h"
#include "runtime/base/clock.h"
#include "runtime/base/str.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/driver.h"

enum { BYTES = 1 << 20, SECONDS = 60, PARTS = 4 };
static const struct tfc_cuda_api *api;
static int wrong;

static int said(int error, const char *what) {
  printf("%s %s%s%s\n", error ? "WRONG" : "ok   ", what, error ? ": " : "", error ? api->error_text(error) : "");
  if (error) printf("      (%s, %d)\n", api->error_name(error), error);
  fflush(stdout);
  wrong += error != 0;
  return error;
}
#define DO(call) said((call), #call)

static void expect(bool ok, const char *what) {
  printf("%s %s\n", ok ? "ok   " : "WRONG", what);
  fflush(stdout);
  wrong += !ok;
}

struct place { // a stream, and memory of the host and of the device
  tfc_cuda_stream stream;
  void *host, *a, *b;
};

static bool make_place(const struct tfc_cuda_partition *partition, struct place *out) {
  int error = DO(api->stream_create(partition, &out->stream));
  error |= DO(api->allocate_host(&out->host, BYTES));
  error |= DO(api->allocate(&out->a, BYTES));
  error |= DO(api->allocate(&out->b, BYTES));
  return !error;
}

static void free_place(struct place *p) {
  if (p->a) DO(api->release(p->a));
  if (p->b) DO(api->release(p->b));
  if (p->host) DO(api->release_host(p->host));
  if (p->stream) DO(api->stream_destroy(p->stream));
}

// Fills a, copies it to b on the device and back to the host, and checks the bytes.
static void round_trip(struct place *p, int value, const char *what) {
  memset(p->host, 0, BYTES);
  int error = api->set(p->a, value, BYTES, p->stream);
  if (!error) error = api->copy(p->b, p->a, BYTES, p->stream);
  if (!error) error = api->copy(p->host, p->b, BYTES, p->stream);
  if (!error) error = api->stream_synchronize(p->stream);
  if (said(error, what)) return;
  const unsigned char *bytes = p->host;
  expect(bytes[0] == value && bytes[BYTES - 1] == value, "what was filled and copied came back");
}

// Whether a stream of a green context takes events of the primary context is a question, not a check: the driver
// follows the answer (runtime/device/cuda/event.h). Where it does not, events are made with `green` current.
static bool refuses_primary(struct place *p) {
  tfc_cuda_event event = NULL;
  if (DO(api->event_create(false, &event))) return false;
  const int error = api->event_record(event, p->stream);
  printf("      the primary context's events are %s%s\n", error ? "refused: " : "taken",
         error ? api->error_text(error) : "");
  if (error) (void)api->last_error();
  DO(api->event_destroy(event));
  return error && api->push;
}

static int make_event(const struct tfc_cuda_partition *green, bool timing, tfc_cuda_event *out) {
  int error = green ? DO(api->push(green)) : 0;
  if (error) return error;
  error = DO(api->event_create(timing, out));
  if (green) DO(api->pop());
  return error;
}

// green: the context of the events, NULL: the primary one.
static void events(struct place *p, const struct tfc_cuda_partition *green) {
  tfc_cuda_event plain = NULL, begin = NULL, end = NULL;
  float ms = -1;
  if (make_event(green, false, &plain) | make_event(green, true, &begin) | make_event(green, true, &end)) return;
  DO(api->event_record(begin, p->stream));
  (void)api->set(p->a, 1, BYTES, p->stream);
  DO(api->event_record(plain, p->stream));
  DO(api->event_record(end, p->stream));
  DO(api->stream_wait(p->stream, plain));
  int error = TFC_CUDA_NOT_READY;
  for (int i = 0; error == TFC_CUDA_NOT_READY && i < 100000; i++) {
    error = api->event_query(end);
    tfc_sleep_ns(10000);
  }
  said(error, "api->event_query(end) until it is reached");
  DO(api->last_error());
  DO(api->event_elapsed(begin, end, &ms));
  expect(ms >= 0 && ms < 1000, "the time between two events");
  DO(api->event_destroy(plain));
  DO(api->event_destroy(begin));
  DO(api->event_destroy(end));
}

// A stream writes a flag when it has done what came before; the host sees it without asking CUDA. Whether it does is a
// question: where it does not, the driver asks for events (runtime/device/cuda/flag.h).
static void flags(struct place *p) {
  uint32_t *flag = p->host;
  const int64_t begin = tfc_now_ns();
  __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
  (void)api->set(p->a, 1, BYTES, p->stream);
  const int error = api->write_flag(p->stream, flag, 7);
  if (error) {
    printf("      flags are refused, events are asked for: %s\n", api->error_text(error));
    (void)api->last_error();
    return;
  }
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 7 && tfc_now_ns() - begin < 1000000000) continue;
  const int64_t seen = tfc_now_ns();
  DO(api->stream_synchronize(p->stream));
  if (*flag == 7)
    printf("      the flag was seen after %.1f us, the stream's end after %.1f us\n", 1e-3 * (double)(seen - begin),
           1e-3 * (double)(tfc_now_ns() - begin));
  else
    printf("      a flag was not written, events are asked for\n");
}

// Prints the versions of the plug-in's libraries.
static void versions(void) {
  static const struct {
    const char *library, *call;
  } calls[] = {{"libcublasLt.so.13", "cublasLtGetVersion"}, {"libcudnn.so.9", "cudnnGetVersion"}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *library = dlopen(calls[i].library, RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, calls[i].call) : NULL;
    size_t (*ask)(void) = NULL;
    memcpy(&ask, &found, sizeof found);
    if (ask) printf("      %s: version %zu\n", calls[i].library, ask());
  }
}

static void basic(void) {
  struct tfc_cuda_properties q = {0};
  struct place p = {0};
  size_t left = 0, total = 0;
  int count = 0;
  DO(api->device_count(&count));
  if (!DO(api->properties(0, &q)))
    printf("      %d GPUs; %s: %d multiprocessors, capability %d, %.1f GB, driver %d, runtime %d\n", count, q.name,
           q.sm_count, q.capability, 1e-9 * (double)q.memory, q.driver_version, q.runtime_version);
  versions();
  DO(api->enter(0));
  if (!make_place(NULL, &p)) return;
  DO(api->memory_info(&left, &total));
  round_trip(&p, 7, "fill and copy on a stream");
  events(&p, NULL);
  flags(&p);
  free_place(&p);
}

static void graphs_on(const struct tfc_cuda_partition *partition) {
  struct place p = {0};
  struct tfc_cuda_graph_node nodes[8] = {0};
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  if (!make_place(partition, &p)) return;
  round_trip(&p, 1, "before the capture");
  if (DO(api->capture_begin(p.stream))) return;
  DO(api->set(p.a, 9, BYTES, p.stream));
  DO(api->capture_count(p.stream, &count));
  expect(count == 1, "one node was captured");
  void *more = NULL; // tfc allocates memory for kernels while they are captured
  DO(api->allocate(&more, BYTES));
  DO(api->copy(p.b, p.a, BYTES, p.stream));
  DO(api->capture_count(p.stream, &count));
  expect(count == 2, "two nodes were captured");
  if (DO(api->capture_end(p.stream, nodes, 8, &count, &graph))) return;
  printf("      %zu nodes: kinds %d %d, ids %llu %llu\n", count, nodes[0].kind, nodes[1].kind,
         (unsigned long long)nodes[0].id, (unsigned long long)nodes[1].id);
  DO(api->graph_launch(graph, p.stream));
  DO(api->copy(p.host, p.b, BYTES, p.stream));
  DO(api->stream_synchronize(p.stream));
  expect(((unsigned char *)p.host)[BYTES / 2] == 9, "the graph did its work");
  DO(api->graph_destroy(graph));
  DO(api->capture_begin(p.stream));
  DO(api->set(p.a, 3, BYTES, p.stream));
  api->capture_abort(p.stream);
  round_trip(&p, 4, "after a capture that was given up");
  if (more) DO(api->release(more));
  free_place(&p);
}

static void graphs(void) {
  DO(api->enter(0));
  graphs_on(NULL);
}

static void green(void) {
  struct tfc_cuda_partition parts[PARTS] = {0};
  struct place p[2] = {0};
  tfc_cuda_event event = NULL;
  int granularity = 0, total = 0;
  DO(api->enter(0));
  if (DO(api->split(0, PARTS, parts, &granularity, &total))) return;
  printf("      %d multiprocessors in groups of %d:", total, granularity);
  for (int i = 0; i < PARTS; i++) printf(" %d (context %llu)", parts[i].sm_count, (unsigned long long)parts[i].id);
  printf("\n");
  if (!make_place(&parts[0], &p[0]) || !make_place(&parts[1], &p[1])) return;
  round_trip(&p[0], 5, "fill and copy on a green stream");
  const struct tfc_cuda_partition *context = refuses_primary(&p[0]) ? &parts[0] : NULL;
  events(&p[0], context);
  flags(&p[0]);
  (void)make_event(context, false, &event);
  DO(api->event_record(event, p[0].stream));
  DO(api->stream_wait(p[1].stream, event));
  round_trip(&p[1], 6, "a green stream behind another one");
  graphs_on(&parts[0]);
  DO(api->event_destroy(event));
  free_place(&p[0]);
  free_place(&p[1]);
  for (int i = 0; i < PARTS; i++) DO(api->unsplit(&parts[i]));
}

// Makes a cuDNN handle on one stream and moves it to another one, as a capture does. Whether a handle takes a green
// context's stream while the primary context is current is a question, as for events: where it does not, everything is
// done with the green context current (runtime/device/cuda/libraries.c).
static void cudnn_on(const struct tfc_cuda_partition *partition, const char *what) {
  const char *text = "?";
  struct cudnnContext *cudnn = NULL;
  tfc_cuda_stream streams[2] = {0};
  bool pushed = false;
  for (int i = 0; i < 2; i++) DO(api->stream_create(partition, &streams[i]));
  int error = api->cudnn_create(streams[0], &cudnn, &text);
  if (error && partition && api->push) {
    printf("      refused in the primary context: %s\n", text);
    pushed = !DO(api->push(partition));
    error = api->cudnn_create(streams[0], &cudnn, &text);
  }
  expect(!error, what);
  if (!cudnn) printf("      %s\n", text);
  if (cudnn) {
    expect(!api->cudnn_stream(cudnn, streams[1]), "cudnnSetStream");
    expect(!api->cudnn_stream(cudnn, streams[0]), "cudnnSetStream, back");
    expect(!api->cudnn_destroy(cudnn), "cudnnDestroy");
  }
  if (pushed) DO(api->pop());
  for (int i = 0; i < 2; i++) DO(api->stream_destroy(streams[i]));
}

static void libraries(void) {
  const char *text = "?";
  struct cublasLtContext *blaslt = NULL;
  struct tfc_cuda_partition parts[2] = {0};
  int granularity = 0, total = 0;
  DO(api->enter(0));
  if (!api->blaslt_create) printf("      there is no cuBLASLt\n");
  if (api->blaslt_create) expect(!api->blaslt_create(&blaslt, &text), "cublasLtCreate");
  if (api->blaslt_create && !blaslt) printf("      %s\n", text);
  if (blaslt) expect(!api->blaslt_destroy(blaslt), "cublasLtDestroy");
  if (!api->cudnn_create) {
    printf("      built without cuDNN\n");
    return;
  }
  cudnn_on(NULL, "cudnnCreate");
  if (DO(api->split(0, 2, parts, &granularity, &total))) return;
  cudnn_on(&parts[0], "cudnnCreate, its stream in a green context");
  for (int i = 0; i < 2; i++) DO(api->unsplit(&parts[i]));
}

static void peers(void) {
  int count = 0;
  bool can = false;
  struct place p = {0};
  void *there = NULL;
  DO(api->device_count(&count));
  if (count < 2) {
    printf("      one GPU only\n");
    return;
  }
  DO(api->enter(1));
  DO(api->allocate(&there, BYTES));
  DO(api->enter(0));
  DO(api->can_access_peer(0, 1, &can));
  printf("      direct copies: %s\n", can ? "yes" : "no");
  if (can) DO(api->enable_peer(1));
  if (!make_place(NULL, &p)) return;
  DO(api->set(p.a, 2, BYTES, p.stream));
  DO(api->copy_peer(there, 1, p.a, 0, BYTES, p.stream));
  DO(api->copy_peer(p.b, 0, there, 1, BYTES, p.stream));
  DO(api->copy(p.host, p.b, BYTES, p.stream));
  DO(api->stream_synchronize(p.stream));
  expect(((unsigned char *)p.host)[7] == 2, "there and back");
  free_place(&p);
}

// Flushes until a flush brings no more records; prints how many flushes that took.
static void flush(const struct tfc_gpu_profiler *profiler, struct tfc_activity *a) {
  size_t works = 0;
  size_t before = 0, held = 0;
  int times = 0;
  tfc_status s = NULL;
  while (!s && times < 50 && !(held && held == before)) {
    before = held;
    s = profiler->flush();
    held = tfc_activity_held(a, &works);
    if (!works) held = 0; // links between ids came, but no record of work yet
    times++;
    tfc_sleep_ns(1000000);
  }
  expect(!s, s ? tfc_status_message(s) : "flushed");
  printf("      %zu records after %d flushes\n", held, times);
  tfc_status_free(s);
}

static void show_works(struct tfc_activity *a, uint32_t step) {
  struct tfc_activity_result r = {0};
  tfc_status s = tfc_activity_take(a, step, &r);
  if (!s) s = tfc_activity_trust(&r);
  expect(!s, s ? tfc_status_message(s) : "records that can be trusted");
  tfc_status_free(s);
  size_t named = 0;
  for (size_t i = 0; i < r.works.count; i++) {
    const struct tfc_activity_work *w = &r.works.data[i];
    named += w->uid != TFC_NONE;
    printf("      %s: context %u, stream %u, correlation %u, graph node %llu, %lld ns, uid %d\n", w->name, w->context,
           w->stream, w->correlation, (unsigned long long)w->graph_node, (long long)(w->end_ns - w->start_ns),
           (int)w->uid);
  }
  int64_t age = r.works.count ? tfc_now_ns() - r.works.data[r.works.count - 1].end_ns : 0;
  printf("      the last ended %lld us ago on our clock\n", (long long)(age / 1000));
  expect(r.works.count >= 3 && named == r.works.count, "all work has its mark");
  expect(age > 0 && age < (int64_t)5e9, "its clock is ours");
  tfc_activity_result_deinit(&r);
}

// CUDA clones the captured nodes when it instantiates the graph, and records of work name the clones. Each must still
// be attributed to its operation.
static void captured_marks(const struct tfc_gpu_profiler *profiler, struct tfc_activity *a, struct place *p) {
  enum { STEP = 4, NODES = 2 };
  struct tfc_cuda_graph_node nodes[NODES] = {0};
  struct tfc_activity_result r = {0};
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  if (DO(api->capture_begin(p->stream))) return;
  DO(api->set(p->a, 9, BYTES, p->stream));
  DO(api->copy(p->b, p->a, BYTES, p->stream));
  if (DO(api->capture_end(p->stream, nodes, NODES, &count, &graph))) return;
  expect(count == NODES && nodes[0].id && nodes[1].id, "CUPTI names the captured nodes");
  for (uint32_t i = 0; i < NODES; i++) tfc_activity_map(a, nodes[i].id, 50 + i);
  tfc_activity_begin(a, 0);
  profiler->push(tfc_activity_external(STEP, 0, 49));
  DO(api->graph_launch(graph, p->stream));
  profiler->pop();
  DO(api->stream_synchronize(p->stream));
  flush(profiler, a);
  tfc_status s = tfc_activity_take(a, STEP, &r);
  if (!s) s = tfc_activity_trust(&r);
  expect(!s, s ? tfc_status_message(s) : "records of a captured graph");
  tfc_status_free(s);
  for (size_t i = 0; i < r.works.count; i++)
    printf("      %s: graph node %llu, uid %d\n", r.works.data[i].name, (unsigned long long)r.works.data[i].graph_node,
           (int)r.works.data[i].uid);
  expect(r.works.count == NODES && r.works.data[0].uid == 50 && r.works.data[1].uid == 51, "each has its operation");
  tfc_activity_result_deinit(&r);
  DO(api->graph_destroy(graph));
}

static void cupti(void) {
  const struct tfc_gpu_profiler *profiler = NULL;
  struct tfc_activity *activity = NULL;
  struct place p = {0};
  struct tfc_cuda_partition parts[2] = {0};
  int granularity = 0, total = 0;
  tfc_status s = tfc_gpu_profiler_get(&profiler, &activity); // CUPTI must start before CUDA is initialised
  expect(!s, s ? tfc_status_message(s) : "CUPTI started");
  tfc_status_free(s);
  if (!profiler) return;
  DO(api->enter(0));
  if (!make_place(NULL, &p)) return;
  for (uint32_t step = 1; step <= 2; step++) {
    tfc_activity_begin(activity, 0);
    profiler->push(tfc_activity_external(step, 0, 42));
    round_trip(&p, 3, "marked work");
    profiler->pop();
    flush(profiler, activity);
    show_works(activity, step);
    s = profiler->record(false);
    if (!s) s = profiler->record(true);
    expect(!s, s ? tfc_status_message(s) : "off and on again");
    tfc_status_free(s);
  }
  captured_marks(profiler, activity, &p);
  free_place(&p);
  if (DO(api->split(0, 2, parts, &granularity, &total))) return;
  printf("      green contexts %llu and %llu\n", (unsigned long long)parts[0].id, (unsigned long long)parts[1].id);
  if (!make_place(&parts[1], &p)) return;
  tfc_activity_begin(activity, 0);
  profiler->push(tfc_activity_external(3, 1, 43));
  round_trip(&p, 4, "marked work in a green context");
  profiler->pop();
  flush(profiler, activity);
  show_works(activity, 3);
  free_place(&p);
}

static const struct {
  const char *name;
  void (*run)(void);
} groups[] = {{"basic", basic},         {"graphs", graphs}, {"green", green},
              {"libraries", libraries}, {"peers", peers},   {"cupti", cupti}};
enum { GROUPS = sizeof groups / sizeof *groups };

// Loads the plug-in from the folder of the library that contains the drivers.
static const char *load(void) {
  Dl_info where;
  char *path = NULL;
  if (dladdr((const void *)&tfc_devices_open, &where) && where.dli_fname && strrchr(where.dli_fname, '/'))
    path = tfc_format("%.*s/libtfc_cuda.so", (int)(strrchr(where.dli_fname, '/') - where.dli_fname), where.dli_fname);
  void *library = dlopen(path ? path : "libtfc_cuda.so", RTLD_NOW);
  free(path);
  if (!library) return dlerror();
  const struct tfc_cuda_api *const *found = dlsym(library, "tfc_cuda_api");
  if (!found || !*found) return "the plug-in has no table of calls";
  api = *found;
  return NULL;
}

static int in_a_process(int group) {
  fflush(stdout);
  pid_t child = fork(); // before any CUDA call
  if (child < 0) return 1;
  if (child == 0) {
    alarm(SECONDS);
    groups[group].run();
    fflush(stdout);
    _exit(wrong ? 1 : 0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) < 0) return 1;
  if (WIFSIGNALED(status))
    printf("WRONG %s: ended by signal %d%s\n", groups[group].name, WTERMSIG(status),
           WTERMSIG(status) == SIGALRM ? " (it hung)" : "");
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool device_is_there(void) { // checked in a child process, because CUDA cannot be used after a fork
  fflush(stdout);
  pid_t child = fork();
  int status = 0, count = 0;
  if (child == 0) {
    alarm(SECONDS);
    int error = api->device_count(&count);
    if (error) printf("no device: %s (%s)\n", api->error_text(error), api->error_name(error));
    fflush(stdout);
    _exit(!error && count > 0 ? 0 : 1);
  }
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv) {
  const char *reason = load();
  if (reason) {
    printf("no device: %s\n", reason);
    return 0;
  }
  if (!device_is_there()) return argc > 1 ? 4 : 0;
  int failed = 0;
  for (int i = 0; i < GROUPS; i++) {
    bool wanted = argc < 2;
    for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], groups[i].name);
    if (!wanted) continue;
    printf("-- %s\n", groups[i].name);
    failed += in_a_process(i);
  }
  return failed ? 1 : 0;
}
