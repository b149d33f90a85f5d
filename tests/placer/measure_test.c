// Measuring in a worker process: steps are timed and traced, measuring changes no variable, and if a worker is lost,
// only one placement fails. The binary of the test is also the worker.
#include "tests/common/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placer/measure/measure.h"
#include "placer/measure/wire.h"
#include "placer/measure/worker.h"
#include "profiler/lock.h"
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"

static const char *graph_path = TFC_SOURCE_DIR "/examples/mlp.pb";
static char lock_path[64];
// When measuring links has to end (0: never). Under sanitizers that is at once, after the smallest sizes: an element of
// the larger ones takes a hundred times as long there.
#ifdef TFC_SANITIZED
static const double links_end_s = 1e-6;
#else
static const double links_end_s = 0;
#endif

struct fixture {
  struct tfc_graph *graph;
  struct tfc_step_spec step;
  struct tfc_tensor *values;
  struct tfc_measure_feed *feeds;
  tfc_str targets[16], inits[16];
  struct tfc_measure_options options;
};

static void make(struct fixture *f) {
  *f = (struct fixture){0};
  assert_ok(tfc_graph_load(graph_path, NULL, &f->graph));
  assert_ok(tfc_step_infer(f->graph, &(struct tfc_step_request){.batch = 32}, &f->step));
  f->values = calloc(f->step.feed_count + 1u, sizeof *f->values);
  f->feeds = calloc(f->step.feed_count + 1u, sizeof *f->feeds);
  for (uint32_t i = 0; i < f->step.feed_count; i++) {
    assert_ok(tfc_step_synthetic(&f->step.feeds[i], 1, &f->values[i]));
    f->feeds[i] = (struct tfc_measure_feed){f->step.feeds[i].name, &f->values[i]};
  }
  assert_true(f->step.target_count <= 16 && f->step.init_count <= 16);
  for (uint32_t i = 0; i < f->step.target_count; i++) f->targets[i] = f->graph->nodes[f->step.targets[i]].name;
  for (uint32_t i = 0; i < f->step.init_count; i++) f->inits[i] = f->graph->nodes[f->step.inits[i]].name;
  snprintf(lock_path, sizeof lock_path, "/tmp/tfc-measure-test-%d.lock", (int)getpid());
  f->options = (struct tfc_measure_options){.graph = graph_path,
                                            .devices = "cpu:0-1",
                                            .feeds = f->feeds,
                                            .feed_count = f->step.feed_count,
                                            .targets = f->targets,
                                            .target_count = f->step.target_count,
                                            .inits = f->inits,
                                            .init_count = f->step.init_count,
                                            .execution.seed = 1,
                                            .hang_seconds = 30,
                                            .lock = lock_path};
}
static void unmake(struct fixture *f) {
  for (uint32_t i = 0; i < f->step.feed_count; i++) tfc_tensor_release(&f->values[i]);
  free(f->values);
  free(f->feeds);
  tfc_step_spec_deinit(&f->step);
  tfc_graph_release(f->graph);
  unlink(lock_path);
}

struct seen {
  uint32_t count, ok, failed, lost; // lost: the entry that failed
  uint32_t op_count;
  double median_us[8];
  void (*during)(void);
  char message[256];
  const struct tfc_measure_info *info; // which nodes are fused on one device; NULL: it is not compared
};
static tfc_status got(void *user, const struct tfc_measured *m) {
  struct seen *s = user;
  s->count++;
  if (m->state == TFC_RESULT_FAILED) {
    s->failed++;
    s->lost = m->entry;
    snprintf(s->message, sizeof s->message, "%s", m->message ? m->message : "");
    return NULL;
  }
  assert_int_equal(m->state, TFC_RESULT_OK);
  s->ok++;
  if (s->info) {
    assert_int_equal(m->done_by_count, s->info->node_count);
    assert_memory_equal(m->done_by, s->info->done_by, m->done_by_count * sizeof *m->done_by);
  }
  uint32_t timed = 0, traced = 0;
  for (uint32_t i = 0; i < m->step_count; i++) {
    assert_true(m->steps[i].duration_ns > 0);
    timed += !m->steps[i].warmup;
    traced += !m->steps[i].warmup && m->steps[i].traced;
  }
  assert_int_equal(timed, 5);
  assert_int_equal(traced, m->profile_count);
  for (uint32_t i = 0; i < m->profile_count; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    assert_int_equal(p->duration_ns, m->steps[m->profile_step[i]].duration_ns);
    assert_true(p->ops.count > 0 && p->ops.count <= s->op_count);
    for (size_t d = 0; d < p->busy.count; d++) {
      assert_true(p->busy.data[d].operations_ns <= p->busy.data[d].busy_ns);
      assert_true(p->busy.data[d].busy_ns <= p->duration_ns);
    }
  }
  s->median_us[m->entry] = m->step_count ? 1e-3 * (double)m->steps[m->step_count - 1].duration_ns : 0;
  return NULL;
}

static void test_measures(void **state) {
  (void)state;
  struct fixture f;
  struct tfc_measurer *m = NULL, *second = NULL;
  make(&f);
  assert_ok(tfc_measurer_create(&f.options, &m));
  const struct tfc_measure_info *info = tfc_measurer_info(m);
  assert_int_equal(info->device_count, 2);
  assert_string_equal(info->devices[1].name, "cpu:1");
  assert_int_equal(info->node_count, f.graph->node_count);
  assert_true(info->op_count > 10 && info->is_static);
  // The work of each product follows from its shapes: 2 m k n FLOP, and 4 bytes for each number that it reads or
  // writes.
  uint32_t products = 0;
  for (uint32_t i = 0; i < f.graph->node_count; i++) {
    const struct tfc_node *n = &f.graph->nodes[i];
    if (!tfc_str_is(n->op, "MatMul")) continue;
    const struct tfc_output *in = tfc_node_inputs(f.graph, n);
    double touched = 0, square = 1;
    for (uint32_t k = 0; k < 3; k++) {
      uint32_t o = k < 2 ? f.graph->nodes[in[k].node].output_begin + (uint32_t)in[k].index : n->output_begin;
      touched += (double)info->output_bytes[o], square *= (double)info->output_bytes[o] / 4;
    }
    assert_true(fabs(info->work[i].flops - 2 * sqrt(square)) < 1e-6 * info->work[i].flops);
    assert_true(fabs(info->work[i].bytes - touched) < 0.5);
    products++;
  }
  assert_true(products > 0);
  // A second measuring run on this machine gets an error that names the first one.
  char expected[32];
  snprintf(expected, sizeof expected, "process %d", (int)getpid());
  assert_fails(tfc_measurer_create(&f.options, &second), TFC_ABORTED, expected);
  uint16_t *one = calloc(f.graph->node_count, sizeof *one), *other = calloc(f.graph->node_count, sizeof *other);
  for (uint32_t i = 0; i < f.graph->node_count; i++) other[i] = 1;
  struct tfc_measure_entry entries[] = {{.placement = one}, {.whole = true}, {.placement = other}};
  struct seen seen = {.op_count = info->op_count};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 3,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .best_us = (double)NAN};
  assert_ok(tfc_measurer_run(m, &batch, got, &seen));
  assert_int_equal(seen.ok, 3);
  assert_int_equal(tfc_measurer_restarts(m), 0);
  struct tfc_link_time *times = NULL;
  uint32_t count = 0;
  assert_ok(tfc_measurer_links(m, links_end_s, &times, &count));
  assert_true(count > 3);
  for (uint32_t i = 0; i < count; i++) assert_true(isfinite(times[i].time_us) && times[i].time_us >= 0);
  free(times);
  tfc_measurer_free(m);
  free(one);
  free(other);
  unmake(&f);
}

// Returns the worker of this process, which is its only child.
static pid_t child(void) {
  char path[64], text[64] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  if (!fgets(text, sizeof text, file)) text[0] = 0;
  fclose(file);
  return (pid_t)atoi(text);
}

struct harm {
  struct seen seen;
  int signal; // sent to the worker once the first result is there
};
static tfc_status harm(void *user, const struct tfc_measured *m) {
  struct harm *h = user;
  TFC_RETURN_IF_ERROR(got(&h->seen, m));
  if (h->seen.count == 1) {
    pid_t worker = child();
    if (worker <= 0) return tfc_status_make(TFC_INTERNAL, "no worker");
    kill(worker, h->signal);
  }
  return NULL;
}

static void lose_a_worker(int signal, const char *message) {
  struct fixture f;
  struct tfc_measurer *m = NULL;
  make(&f);
  // So long does the measurer wait for a worker that sends nothing; a step takes far less time, even on a slow machine.
  f.options.hang_seconds = signal == SIGSTOP ? 12 : 30;
  assert_ok(tfc_measurer_create(&f.options, &m));
  uint16_t *one = calloc(f.graph->node_count, sizeof *one);
  struct tfc_measure_entry entries[] = {{.placement = one}, {.placement = one}, {.placement = one}, {.placement = one}};
  struct harm h = {.seen = {.op_count = tfc_measurer_info(m)->op_count, .info = tfc_measurer_info(m)},
                   .signal = signal};
  assert_non_null(h.seen.info->done_by);
  struct tfc_measure_batch batch = {
      .entries = entries, .count = 4, .reference = 0, .warmup = 1, .block = 5, .blocks = 1, .best_us = (double)NAN};
  batch.reference = TFC_NONE;
  assert_ok(tfc_measurer_run(m, &batch, harm, &h));
  assert_int_equal(h.seen.count, 4); // every entry has one result
  assert_int_equal(h.seen.failed, 1);
  assert_int_equal(h.seen.ok, 3);
  assert_int_equal(tfc_measurer_restarts(m), 1);
  if (!strstr(h.seen.message, message)) fail_msg("no '%s' in: %s", message, h.seen.message);
  tfc_measurer_free(m);
  free(one);
  unmake(&f);
}
static void test_a_crash_costs_one(void **state) {
  (void)state;
  lose_a_worker(SIGKILL, "was killed (SIGKILL)"); // sanitizers catch the signals that a bug raises
}
// With `again`, a batch gets all its results although a worker was lost.
static void test_a_crash_is_made_up_for(void **state) {
  (void)state;
  struct fixture f;
  struct tfc_measurer *m = NULL;
  make(&f);
  f.options.hang_seconds = 16; // a worker that measures links beats for each step
  assert_ok(tfc_measurer_create(&f.options, &m));
  uint16_t *one = calloc(f.graph->node_count, sizeof *one);
  struct tfc_measure_entry entries[] = {{.placement = one}, {.placement = one}, {.placement = one}};
  struct harm h = {.seen = {.op_count = tfc_measurer_info(m)->op_count}, .signal = SIGKILL};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 3,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .best_us = (double)NAN,
                                    .again = true};
  assert_ok(tfc_measurer_run(m, &batch, harm, &h));
  assert_int_equal(h.seen.count, 3);
  assert_int_equal(h.seen.ok, 3);
  assert_int_equal(tfc_measurer_restarts(m), 1);
  struct tfc_link_time *times = NULL;
  uint32_t count = 0;
  for (int stopped = 0; stopped < 2; stopped++) { // a worker that is silent is lost, too
    kill(child(), stopped ? SIGSTOP : SIGKILL);
    assert_ok(tfc_measurer_links(m, links_end_s, &times, &count));
    assert_true(count > 3);
    assert_int_equal(tfc_measurer_restarts(m), 2 + stopped);
    free(times);
  }
  tfc_measurer_free(m);
  free(one);
  unmake(&f);
}
static void test_a_hang_costs_one(void **state) {
  (void)state;
  lose_a_worker(SIGSTOP, "no sign for 12 s");
}

// --- Workers that die whenever they are asked to measure links -------------------------------------------------------
// Such a worker reads its messages through a relay, which looks at their types. What it does when the message comes:
// "killed"; or the folder of a control group, which it joins, and then writes to more memory than the group may have.
#define DEATH "TFC_TEST_DEATH"
static struct relay { int outer, inner; } relay;

static void die(void) {
  const char *group = getenv(DEATH);
  if (group[0] == '/') {
    char path[256];
    enum { TOO_MUCH = 256 << 20 };
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *file = fopen(path, "w");
    if (file && fputs("0", file) >= 0 && fclose(file) == 0) {
      char *memory = malloc(TOO_MUCH);
      for (size_t i = 0; memory && i < TOO_MUCH; i += 1024) ((volatile char *)memory)[i] = 1;
    }
    _exit(3); // the group did not limit it
  }
  raise(SIGKILL);
}

// Passes on `size` bytes; false: an end is closed.
static bool pass(int from, int to, char *bytes, size_t size) {
  return recv(from, bytes, size, MSG_WAITALL) == (ssize_t)size && send(to, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}
static void *to_worker(void *unused) {
  uint64_t head[2];
  char bytes[65536];
  bool open = true;
  while (open && recv(relay.outer, head, sizeof head, MSG_WAITALL) == (ssize_t)sizeof head) {
    if (head[0] == TFC_WIRE_LINKS) die();
    open = send(relay.inner, head, sizeof head, MSG_NOSIGNAL) == (ssize_t)sizeof head;
    for (uint64_t n; open && head[1]; head[1] -= n) {
      n = head[1] < sizeof bytes ? head[1] : sizeof bytes;
      open = pass(relay.outer, relay.inner, bytes, (size_t)n);
    }
  }
  shutdown(relay.inner, SHUT_WR);
  return unused;
}
static void *from_worker(void *unused) {
  char byte;
  while (pass(relay.inner, relay.outer, &byte, 1)) {
  }
  return unused;
}
static int mortal_worker(int argc, char **argv) {
  int ends[2];
  char number[16];
  pthread_t threads[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 4;
  relay = (struct relay){atoi(argv[2]), ends[0]};
  snprintf(number, sizeof number, "%d", ends[1]);
  argv[2] = number;
  pthread_create(&threads[0], NULL, to_worker, NULL);
  pthread_create(&threads[1], NULL, from_worker, NULL);
  return tfc_measure_worker_main(argc, argv);
}

// The second loss ends the measurement. No device is missing then, so the code must not say so.
static void links_are_never_measured(const char *death, tfc_code code, const char *message) {
  struct fixture f;
  struct tfc_measurer *m = NULL;
  struct tfc_link_time *times = NULL;
  uint32_t count = 0;
  make(&f);
  setenv(DEATH, death, 1);
  assert_ok(tfc_measurer_create(&f.options, &m));
  assert_fails(tfc_measurer_links(m, links_end_s, &times, &count), code, message);
  assert_int_equal(tfc_measurer_restarts(m), 1);
  unsetenv(DEATH);
  assert_ok(tfc_measurer_links(m, links_end_s, &times, &count)); // a worker that lives is started for the next request
  free(times);
  tfc_measurer_free(m);
  unmake(&f);
}
static void test_links_lost_twice(void **state) {
  (void)state;
  links_are_never_measured("killed", TFC_ABORTED, "measuring links: the measuring process was killed (SIGKILL)");
}

// Makes a control group with a limit of memory; false: that is not possible here.
static bool make_group(char *group, size_t size) {
  static const char *const places[][2] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                          {"/sys/fs/cgroup", "memory.max"},
                                          {"/sys/fs/cgroup/unified", "memory.max"}};
  char path[256];
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(group, size, "%s/tfc-measure-test-%d", places[i][0], (int)getpid());
    if (mkdir(group, 0755) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", group, places[i][1]);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool limited = fd >= 0 && write(fd, "67108864", 8) == 8;
    if (fd >= 0) close(fd);
    if (limited) return true;
    rmdir(group);
  }
  return false;
}

// A worker that the system kills because memory ran out is an error of memory, wherever it happens.
static void test_killed_for_memory(void **state) {
  (void)state;
  char group[128];
  if (!make_group(group, sizeof group)) skip();
  links_are_never_measured(group, TFC_RESOURCE_EXHAUSTED, "because memory ran out");
  rmdir(group);
}

static void test_bad_options(void **state) {
  (void)state;
  struct fixture f;
  struct tfc_measurer *m = NULL;
  make(&f);
  struct tfc_measure_options o = f.options;
  o.graph = "/nowhere/graph.pb";
  assert_fails(tfc_measurer_create(&o, &m), TFC_NOT_FOUND, "/nowhere/graph.pb");
  o = f.options;
  o.targets = (tfc_str[]){TFC_STR("nobody")};
  o.target_count = 1;
  assert_fails(tfc_measurer_create(&o, &m), TFC_INVALID_ARGUMENT, "nobody");
  o = f.options;
  o.feed_count = 0;
  assert_fails(tfc_measurer_create(&o, &m), TFC_INVALID_ARGUMENT, "must be fed");
  o = f.options;
  o.program = "/nowhere/program";
  assert_fails(tfc_measurer_create(&o, &m), TFC_INTERNAL, "/nowhere/program");
  o = f.options;
  o.devices = "gpu:77";
  assert_fails(tfc_measurer_create(&o, &m), TFC_UNAVAILABLE, "GPU");
  unmake(&f);
}

// Another run holds the lock. That is an error; or, if the caller wants to wait, the measurer reports once that it
// waits, until the lock is released.
struct other {
  struct tfc_lock *lock;
  int told;
};
static void let_go(void *user, const char *who) {
  struct other *o = user;
  assert_non_null(strstr(who, "another one"));
  o->told++;
  tfc_lock_release(o->lock);
}
static void test_waits(void **state) {
  (void)state;
  struct fixture f;
  struct other other = {0};
  struct tfc_measurer *m = NULL;
  make(&f);
  assert_ok(tfc_lock_take(lock_path, "another one", &other.lock));
  assert_fails(tfc_measurer_create(&f.options, &m), TFC_ABORTED, "another one");
  assert_fails(tfc_measurer_create(&f.options, &m), TFC_ABORTED, "--wait waits until it ends");
  f.options.wait = let_go, f.options.wait_user = &other;
  assert_ok(tfc_measurer_create(&f.options, &m));
  assert_int_equal(other.told, 1);
  assert_true(tfc_measurer_waited_s(m) > 0);
  tfc_measurer_free(m);
  unmake(&f);
}

// Every operation of a step with loops has a kernel on this kind of device.
static void test_supported(void **state) {
  (void)state;
  struct fixture f;
  struct tfc_measurer *m = NULL;
  const char *usual = graph_path;
  graph_path = TFC_SOURCE_DIR "/examples/nmt_while.pb";
  make(&f);
  assert_ok(tfc_measurer_create(&f.options, &m));
  const struct tfc_measure_info *info = tfc_measurer_info(m);
  assert_int_equal(info->kind_count, 1);
  assert_true(info->op_count > 500);
  for (uint32_t i = 0; i < info->op_count; i++)
    if (!info->supported[info->ops[i]])
      fail_msg("%.*s (%.*s)", TFC_STR_ARG(f.graph->nodes[info->ops[i]].name),
               TFC_STR_ARG(f.graph->nodes[info->ops[i]].op));
  tfc_measurer_free(m);
  unmake(&f);
  graph_path = usual;
}

// A worker also starts the graph's queue runners.
static void test_fills_queues(void **state) {
  (void)state;
#define QUEUED " attr { key: 'component_types' value { list { type: DT_FLOAT } } }"
#define FLOAT(key) " attr { key: '" key "' value { type: DT_FLOAT } }"
  static const char text[] =
      "meta_info_def { } graph_def {"
      "node { name: 'one' op: 'Const'" FLOAT(
          "dtype") " attr { key: 'value' value { tensor { dtype: DT_FLOAT "
                   "tensor_shape { } float_val: 1 } } } }"
                   "node { name: 'queue' op: 'FIFOQueueV2'" QUEUED
                   " attr { key: 'shapes' value { list { shape { } } } } "
                   "attr { key: 'capacity' value { i: 4 } } }"
                   "node { name: 'put' op: 'QueueEnqueueV2' input: 'queue' input: 'one' attr { key: 'Tcomponents' "
                   "value { list { "
                   "type: DT_FLOAT } } } }"
                   "node { name: 'close' op: 'QueueCloseV2' input: 'queue' }"
                   "node { name: 'take' op: 'QueueDequeueV2' input: 'queue'" QUEUED " }"
                   "node { name: 'sum' op: 'VarHandleOp'" FLOAT(
                       "dtype") " attr { key: 'shape' value { shape { } } } attr { key: "
                                "'shared_name' value { s: 'sum' } } }"
                                "node { name: 'sum/Assign' op: 'AssignVariableOp' input: 'sum' input: 'one'" FLOAT(
                                    "dtype") " }"
                                             "node { name: 'train' op: 'AssignAddVariableOp' input: 'sum' input: "
                                             "'take'" FLOAT(
                                                 "dtype") " }"
                                                          "} collection_def { key: 'queue_runners' value { bytes_list "
                                                          "{ value: \"\\012\\005queue\\022\\003put\\032\\005close"
                                                          "\\\"\\005close\" } } }";
  const char *usual = graph_path;
  char path[64];
  struct fixture f;
  struct tfc_measurer *m = NULL;
  snprintf(path, sizeof path, "/tmp/tfc-measure-test-%d.pbtxt", (int)getpid());
  FILE *file = fopen(path, "w");
  assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
  graph_path = path;
  make(&f);
  assert_ok(tfc_measurer_create(&f.options, &m));
  struct tfc_measure_entry entries[] = {{.whole = true}};
  struct seen seen = {.op_count = tfc_measurer_info(m)->op_count};
  struct tfc_measure_batch batch = {
      .entries = entries, .count = 1, .reference = TFC_NONE, .warmup = 1, .block = 5, .blocks = 1, .best_us = NAN};
  assert_ok(tfc_measurer_run(m, &batch, got, &seen));
  if (seen.ok != 1) fail_msg("%s", seen.message);
  assert_int_equal(tfc_measurer_restarts(m), 0);
  tfc_measurer_free(m);
  unmake(&f);
  graph_path = usual;
  unlink(path);
}

int main(int argc, char **argv) {
  if (tfc_measure_is_worker(argc, argv))
    return getenv(DEATH) ? mortal_worker(argc, argv) : tfc_measure_worker_main(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_measures),
                                     cmocka_unit_test(test_a_crash_costs_one),
                                     cmocka_unit_test(test_a_crash_is_made_up_for),
                                     cmocka_unit_test(test_a_hang_costs_one),
                                     cmocka_unit_test(test_links_lost_twice),
                                     cmocka_unit_test(test_killed_for_memory),
                                     cmocka_unit_test(test_bad_options),
                                     cmocka_unit_test(test_supported),
                                     cmocka_unit_test(test_waits),
                                     cmocka_unit_test(test_fills_queues)};
  return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
