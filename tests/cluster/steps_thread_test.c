// Steps of graphs whose nodes are in several tasks: values, state shared by name, errors, cancelling, dead tensors,
// loops, and tasks that stop answering or send broken messages.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/cluster/member_internal.h"
#include "runtime/cluster/serve.h"
#include "runtime/graph/import.h"
#include "tests/common/scalar.h"

#define IN(name) " input: \"" name "\""
#define ON(job, task) " device: \"/job:" job "/task:" task "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define TYPE(key) ATTR(key, "type: DT_FLOAT")
#define SCALAR(name, value, ...)                                                                                       \
  NODE(name, "Const",                                                                                                  \
       __VA_ARGS__ TYPE("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " value " }"))
#define BINARY(name, op, a, b, ...) NODE(name, op, IN(a) IN(b) __VA_ARGS__ TYPE("T"))

// v is on the ps, and the workers add to it. x is on worker 0, and twice x is computed on worker 1.
static const char graph_text[] = NODE("v", "VariableV2", ON("ps", "0") TYPE("dtype") ATTR("shape", "shape {}"))
    SCALAR("zero", "0", ON("ps", "0")) SCALAR("one", "1") NODE("v/read", "Identity", IN("v") ON("ps", "0") TYPE("T"))
        NODE("init", "Assign", IN("v") IN("zero") ON("ps", "0") TYPE("T"))
            NODE("x", "Placeholder", ON("worker", "0") TYPE("dtype") ATTR("shape", "shape {}"))
                NODE("y", "Placeholder", ON("ps", "0") TYPE("dtype") ATTR("shape", "shape {}"))
                    BINARY("double", "AddV2", "x", "x", ON("worker", "1"))
                        BINARY("sum", "AddV2", "double", "v/read", ON("worker", "0"))
                            NODE("add", "AssignAdd", IN("v") IN("one") ON("ps", "0") TYPE("T"))
                                BINARY("more", "AddV2", "sum", "y", ON("worker", "1"))
    // `after` runs on worker 1 once `add` has updated v
    NODE("after", "NoOp", IN("^add") ON("worker", "1"))
        NODE("read_after", "Identity", IN("v") IN("^after") ON("ps", "0") TYPE("T"))
    // a branch across tasks
    NODE("p", "Placeholder", ON("worker", "0") ATTR("dtype", "type: DT_BOOL") ATTR("shape", "shape {}"))
        NODE("switch", "Switch", IN("sum") IN("p") ON("worker", "0") TYPE("T"))
            BINARY("if_true", "Mul", "switch:1", "switch:1", ON("worker", "1"))
                NODE("if_false", "Neg", IN("switch") ON("ps", "0") TYPE("T"))
                    NODE("merge", "Merge", IN("if_false") IN("if_true") ON("worker", "0") TYPE("T") ATTR("N", "i: 2"))
    // a step that fails on the ps while the other tasks wait for its tensors
    NODE("checked", "CheckNumerics", IN("y") ON("ps", "0") TYPE("T") ATTR("message", "s: 'broken'"))
        BINARY("needs_checked", "AddV2", "checked", "x", ON("worker", "1"))
    // queues
    NODE("queue", "FIFOQueueV2",
         ON("ps", "0") ATTR("component_types", "list { type: DT_FLOAT }") ATTR("shapes", "list { shape {} }")
             ATTR("capacity", "i: 10") ATTR("shared_name", "s: 'tokens'"))
        NODE("put", "QueueEnqueueV2", IN("queue") IN("x") ON("ps", "0") ATTR("Tcomponents", "list { type: DT_FLOAT }"))
            NODE("take", "QueueDequeueV2", IN("queue") ON("ps", "0") ATTR("component_types", "list { type: DT_FLOAT }"))
                BINARY("taken", "AddV2", "take", "one", ON("worker", "1"));

struct client {
  struct tfc_graph *graph;
  struct tfc_cluster_session *session;
};
static tfc_status open_text(struct tfc_member *member, const char *text, struct client *out) {
  *out = (struct client){0};
  TFC_RETURN_IF_ERROR(tfc_graph_parse(tfc_str_from(text), "graph", NULL, &out->graph));
  return tfc_cluster_session_create(member, out->graph, &(struct tfc_execution){0}, &out->session);
}
static void close_client(struct client *c) {
  tfc_cluster_session_free(c->session);
  tfc_graph_release(c->graph);
}
static tfc_status run(struct client *c, const char *feed, float value, const char *fetch, float *out,
                      const struct tfc_run_options *options) {
  struct tfc_output feeds[2], fetched;
  struct tfc_tensor values[2] = {0}, result = {0};
  uint32_t target;
  struct tfc_run_spec spec = {0};
  if (feed) {
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(c->graph, tfc_str_from(feed), &feeds[0]));
    TFC_RETURN_IF_ERROR(scalar_f32(value, &values[0]));
    spec.feeds = feeds, spec.feed_count = 1;
    if (fetch && !strcmp(fetch, "merge")) { // p is true for values above 0
      TFC_RETURN_IF_ERROR(tfc_graph_parse_output(c->graph, TFC_STR("p"), &feeds[1]));
      TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_BOOL, &TFC_SHAPE_SCALAR, &values[1]));
      *(bool *)values[1].data = value > 0;
      spec.feed_count = 2;
    }
  }
  if (out) {
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(c->graph, tfc_str_from(fetch), &fetched));
    spec.fetches = &fetched, spec.fetch_count = 1;
  } else {
    TFC_RETURN_IF_ERROR(tfc_graph_parse_node(c->graph, tfc_str_from(fetch), &target));
    spec.targets = &target, spec.target_count = 1;
  }
  tfc_status s = tfc_cluster_session_run(c->session, &spec, values, out ? &result : NULL, options);
  if (!s && out) *out = *(const float *)result.data;
  tfc_tensor_release(&result);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&values[i]);
  return s;
}

static tfc_status all_values(struct tfc_member *member, void *arg) {
  struct client c;
  float v = 0;
  const bool chief = tfc_member_rank(member) == 1;
  const int steps = *(const int *)arg;
  tfc_status s = open_text(member, graph_text, &c);
  if (s) goto out;
  if (chief) TFC_TRY(s, run(&c, NULL, 0, "init", NULL, NULL));
  TFC_TRY(s, tfc_member_barrier(member, "initialised", NULL));
  if (chief) {
    TFC_TRY(s, run(&c, "x", 3, "sum", &v, NULL));
    WANT(v == 6);
    TFC_TRY(s, run(&c, "x", 3, "merge", &v, NULL));
    WANT(v == 36);
    TFC_TRY(s, run(&c, "x", -3, "merge", &v, NULL));
    WANT(v == 6);
    TFC_TRY(s, run(&c, "x", 2, "double", &v, NULL)); // every node is in another task
    WANT(v == 4);
    TFC_TRY(s, run(&c, "v/read", 5, "v/read", &v, NULL)); // the fed node is in another task, and no operation runs
    WANT(v == 5);
    TFC_TRY(s, run(&c, NULL, 0, "read_after", &v, NULL));
    WANT(v == 1);
    TFC_TRY(s, run(&c, NULL, 0, "init", NULL, NULL));
  }
  TFC_TRY(s, tfc_member_barrier(member, "go", NULL));
  for (int i = 0; i < steps; i++) TFC_TRY(s, run(&c, NULL, 0, "add", NULL, NULL));
  TFC_TRY(s, tfc_member_barrier(member, "go", NULL));
  TFC_TRY(s, run(&c, NULL, 0, "v/read", &v, NULL));
  WANT(v == 2 * steps); // each update took effect once
  // Worker 0 puts elements into the queue, and worker 1 takes them. Each may be ahead of the other.
  if (chief) {
    for (int i = 0; i < steps; i++) TFC_TRY(s, run(&c, "x", (float)i, "put", NULL, NULL));
  } else {
    for (int i = 0; i < steps; i++) {
      TFC_TRY(s, run(&c, NULL, 0, "taken", &v, NULL));
      WANT(v == (float)i + 1);
    }
  }
out:
  close_client(&c);
  return s;
}

static void free_all(struct tfc_test_job *job) {
  for (uint32_t r = 0; r < 16; r++) tfc_status_free(job->status[r]);
}

static void values(void **state) {
  (void)state;
  int steps = 50;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = all_values, .arg = &steps, .serves = "ps"};
  tfc_test_job_succeed(&job);
}
static void values_out_of_order(void **state) {
  (void)state;
  int steps = 5;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const struct tfc_faults faults = {.seed = seed, .most_delay_ns = 2000000};
    struct tfc_test_job job = {
        .cluster = "ps=1,worker=2", .script = all_values, .arg = &steps, .serves = "ps", .faults = &faults};
    tfc_test_job_succeed(&job);
  }
}

static bool says(tfc_status s, tfc_code code, const char *text) {
  if (tfc_status_code(s) == code && strstr(tfc_status_message(s), text)) return true;
  print_message("not '%s': %s\n", text, tfc_status_message(s));
  return false;
}

// The task that runs the step gets the error, which names the failing task; the tasks can run further steps.
static tfc_status errors(struct tfc_member *member, void *arg) {
  struct client c;
  float v = 0;
  tfc_status e = NULL;
  struct tfc_text text = {0}, lost = {0};
  (void)arg;
  tfc_status s = open_text(member, graph_text, &c);
  if (s || tfc_member_rank(member) != 1) goto out;
  e = run(&c, NULL, 0, "v/read", &v, NULL);
  WANT(says(e, TFC_FAILED_PRECONDITION, "on /job:ps/task:0: "));
  tfc_status_free(e);
  // the step fails on the ps, which is the only task that runs an operation
  e = run(&c, "y", 1.0f / 0.0f, "checked", &v, NULL);
  WANT(says(e, TFC_INVALID_ARGUMENT, "broken"));
  tfc_status_free(e);
  e = run(&c, "x", 1, "needs_checked", &v, NULL); // y is not fed
  WANT(says(e, TFC_INVALID_ARGUMENT, "must be fed"));
  tfc_status_free(e);
  const int64_t begin = tfc_now_ns();
  e = run(&c, NULL, 0, "taken", &v, &(struct tfc_run_options){.deadline_ns = 100000000}); // the queue is empty
  WANT(tfc_status_code(e) == TFC_DEADLINE_EXCEEDED);
  WANT(tfc_now_ns() - begin < 60000000000);
  tfc_status_free(e);
  _Atomic bool cancel = true;
  e = run(&c, NULL, 0, "taken", &v, &(struct tfc_run_options){.cancel = &cancel});
  WANT(tfc_status_code(e) == TFC_CANCELLED);
  tfc_status_free(e);
  e = tfc_cluster_session_save_state(c.session, &cancel, &text);
  WANT(tfc_status_code(e) == TFC_CANCELLED && text.size == 0);
  tfc_status_free(e);
  e = tfc_cluster_session_restore_state(c.session, TFC_STR("task\t/job:ps/task:0\n"), &cancel, &lost);
  WANT(tfc_status_code(e) == TFC_CANCELLED);
  tfc_status_free(e), e = NULL;
  cancel = false;
  TFC_TRY(s, tfc_cluster_session_save_state(c.session, &cancel, &text));
  TFC_TRY(s, tfc_cluster_session_restore_state(c.session, (tfc_str){text.data, text.size}, &cancel, &lost));
  TFC_TRY(s, run(&c, NULL, 0, "init", NULL, NULL));
  TFC_TRY(s, run(&c, "x", 7, "sum", &v, NULL));
  WANT(v == 14);
  TFC_TRY(s, run(&c, "x", 8, "put", NULL, NULL)); // the cancelled step, which waited, must not take the element
  TFC_TRY(s, run(&c, NULL, 0, "taken", &v, NULL));
  WANT(v == 9);
  e = NULL;
out:
  tfc_status_free(e);
  tfc_text_deinit(&text);
  tfc_text_deinit(&lost);
  close_client(&c);
  return s;
}
static void errors_come_back(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = errors, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

// --- Graphs that are refused -------------------------------------------------------------------------------------
static tfc_status bad_graphs(struct tfc_member *member, void *arg) {
  static const struct {
    const char *text;
    tfc_code code;
    const char *says;
  } bad[] = {
      {SCALAR("a", "1", ON("worker", "7")), TFC_UNAVAILABLE, "/job:worker/task:7"},
      {SCALAR("a", "1", ON("chief", "0")), TFC_UNAVAILABLE, "no /job:chief/task:0"},
      {SCALAR("a", "1", " device: \"/job:/x\""), TFC_INVALID_ARGUMENT, "'a'"},
  };
  tfc_status s = NULL;
  (void)arg;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct client c;
    tfc_status e = open_text(member, bad[i].text, &c);
    const bool right = says(e, bad[i].code, bad[i].says);
    tfc_status_free(e);
    close_client(&c);
    WANT(right);
  }
out:
  return s;
}
static void bad_devices(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = bad_graphs, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

// --- Tasks that fail ---------------------------------------------------------------------------------------------
static tfc_status never_ends(struct tfc_member *member, void *arg) {
  struct client c;
  float v = 0;
  (void)arg;
  tfc_status s = open_text(member, graph_text, &c);
  while (!s) s = run(&c, NULL, 0, "taken", &v, NULL); // no task fills the queue
  close_client(&c);
  return s;
}
static void somebody_says(const struct tfc_test_job *job, const char *text) {
  bool found = false;
  for (uint32_t r = 0; r < 3; r++) {
    assert_non_null(job->status[r]);
    found |= strstr(tfc_status_message(job->status[r]), text) != NULL;
    if (!strstr(tfc_status_message(job->status[r]), text))
      print_message("%u: %s\n", r, tfc_status_message(job->status[r]));
  }
  assert_true(found);
}
static void silence_ends_the_job(void **state) {
  (void)state;
  const struct tfc_faults faults = {.seed = 1, .silent_after = 12};
  const int64_t begin = tfc_now_ns();
  struct tfc_test_job job = {.cluster = "ps=1,worker=2",
                             .script = never_ends,
                             .serves = "ps",
                             .faults = &faults,
                             .faulty_rank = 2,
                             .silence_ns = 3000000000}; // on a busy machine any thread may rest for a second
  tfc_test_job_run(&job);
  assert_true(tfc_now_ns() - begin < 60000000000);
  somebody_says(&job, "/job:worker/task:1 on ");
  somebody_says(&job, "has said nothing for");
  free_all(&job);
}

// Two tasks, neither of them task 0, are cut off from each other: in the middle of steps of the one that have a part in
// the other, before the first of these, or when each waits for the other to end.
static tfc_status needs_the_other(struct tfc_member *member, void *arg) {
  struct client c;
  float v = 0;
  if (!*(const bool *)arg || tfc_member_rank(member) != 1) return NULL;
  const struct tfc_run_options options = {.deadline_ns = INT64_C(40000000000)};
  tfc_status s = open_text(member, graph_text, &c);
  while (!s) s = run(&c, "x", 2, "double", &v, &options);
  close_client(&c);
  return s;
}
static void cut_ends_the_job(void **state) {
  (void)state;
  static const struct {
    bool steps;
    uint64_t after;
  } cases[] = {{true, 40}, {true, 1}, {false, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct tfc_faults faults = {.seed = i, .cut_after = cases[i].after};
    const int64_t begin = tfc_now_ns();
    bool steps = cases[i].steps;
    struct tfc_test_job job = {.cluster = "ps=1,worker=2",
                               .script = needs_the_other,
                               .arg = &steps,
                               .serves = "ps",
                               .faults = &faults,
                               .cut_ranks = {1, 2},
                               .silence_ns = 3000000000};
    tfc_test_job_run(&job);
    assert_true(tfc_now_ns() - begin < 60000000000);
    somebody_says(&job, "/job:worker/task:");
    somebody_says(&job, "has said nothing for");
    somebody_says(&job, "; the last it did: ");
    free_all(&job);
  }
}

static void nonsense_ends_the_job(void **state) {
  (void)state;
  for (uint64_t at = 1; at <= 9; at += 2) {
    const struct tfc_faults faults = {.seed = at, .garbled_after = at};
    struct tfc_test_job job = {.cluster = "ps=1,worker=2",
                               .script = never_ends,
                               .serves = "ps",
                               .faults = &faults,
                               .faulty_rank = 1,
                               .silence_ns = 5000000000};
    tfc_test_job_run(&job);
    somebody_says(&job, "/job:worker/task:0 on ");
    free_all(&job);
  }
}

// A client may forget a graph while a step of it, which the client gave up, still waits for a queue in another task.
struct waiting {
  struct tfc_member *member;
  _Atomic bool cancel;
  tfc_status status;
};
enum { FORGOTTEN = 900 }; // the number of a graph that no other client of the test has
static void *take_forever(void *arg) {
  struct waiting *w = arg;
  struct tfc_tensor value = {0};
  const struct tfc_run_options options = {.cancel = &w->cancel};
  w->status = tfc_serve_here(w->member, FORGOTTEN, 0, false, NULL, &value, &options, NULL);
  tfc_tensor_release(&value);
  return NULL;
}
static tfc_status buffer_with(const void *data, uint64_t size, struct tfc_buffer **out) {
  TFC_RETURN_IF_ERROR(tfc_buffer_create_host(size, out));
  memcpy((*out)->data, data, size);
  return NULL;
}
static tfc_status forgets(struct tfc_member *member, void *arg) {
  (void)arg;
  static const char text[] = NODE(
      "queue", "FIFOQueueV2", ATTR("component_types", "list { type: DT_FLOAT }") ATTR("shapes", "list { shape {} }"))
      NODE("take", "QueueDequeueV2", IN("queue") ATTR("component_types", "list { type: DT_FLOAT }"));
  const struct tfc_head_plan head = {.session = FORGOTTEN, .fetches = 1};
  const uint32_t rank = tfc_member_rank(member);
  struct waiting w = {.member = member};
  struct tfc_buffer *graph = NULL, *names = NULL;
  struct tfc_text execution = {0};
  pthread_t thread;
  tfc_status s = NULL;
  tfc_execution_format(&(struct tfc_execution){0}, &execution);
  TFC_TRY(s, buffer_with(text, sizeof text - 1, &graph));
  TFC_TRY(s, buffer_with("take", sizeof "take", &names));
  TFC_TRY(s,
          tfc_serve_graph(member, rank, FORGOTTEN, (tfc_str){execution.data, execution.size}, graph, sizeof text - 1));
  TFC_TRY(s, tfc_serve_plan(member, rank, &head, names, sizeof "take"));
  WANT(pthread_create(&thread, NULL, take_forever, &w) == 0);
  struct tfc_object *queue = NULL;
  while (!queue) { // when the queue exists, the step has begun: it waits, or will wait soon
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    queue = tfc_resources_look(member->resources, TFC_STR(""), TFC_STR("queue"));
  }
  tfc_object_release(queue);
  tfc_serve_forget(member, rank, FORGOTTEN);
  atomic_store(&w.cancel, true);
  tfc_resources_wake(member->resources);
  pthread_join(thread, NULL);
  WANT(tfc_status_code(w.status) == TFC_CANCELLED);
  tfc_status_free(w.status);
  s = tfc_serve_plan(member, rank, &head, names, sizeof "take");
  WANT(tfc_status_code(s) == TFC_INVALID_ARGUMENT); // the step has been forgotten
  tfc_status_free(s), s = NULL;
out:
  tfc_text_deinit(&execution);
  tfc_buffer_release(graph);
  tfc_buffer_release(names);
  return s;
}
static void forgotten_while_a_step_waits(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = forgets, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

// A plan that comes while its graph is being opened is taken at once: the thread that handles messages must not wait
// for that, or the task falls silent.
static _Atomic bool opening, may_open;
static void configure_late(struct tfc_device *device, const struct tfc_device_settings *settings) {
  (void)device, (void)settings;
  atomic_store(&opening, true);
  while (!atomic_load(&may_open)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
static void *open_it(void *arg) {
  struct waiting *w = arg;
  struct tfc_tensor value = {0};
  w->status = tfc_serve_here(w->member, FORGOTTEN, 0, false, NULL, &value, NULL, NULL);
  tfc_tensor_release(&value);
  return NULL;
}
struct adding {
  struct tfc_member *member;
  struct tfc_buffer *names;
  _Atomic bool done;
  tfc_status status;
};
static void *add_plan(void *arg) {
  struct adding *a = arg;
  const struct tfc_head_plan head = {.session = FORGOTTEN, .plan = 1, .fetches = 1};
  a->status = tfc_serve_plan(a->member, tfc_member_rank(a->member), &head, a->names, sizeof "one");
  atomic_store(&a->done, true);
  return NULL;
}
static tfc_status opens_slowly(struct tfc_member *member, void *arg) {
  (void)arg;
  static const char text[] = SCALAR("one", "1");
  if (tfc_member_rank(member) != 1) return NULL;
  const struct tfc_head_plan head = {.session = FORGOTTEN, .fetches = 1};
  struct tfc_device *device = member->devices->devices[0];
  const struct tfc_device_driver *usual = device->driver;
  struct tfc_device_driver slow = *usual;
  struct waiting w = {.member = member};
  struct adding a = {.member = member};
  struct tfc_buffer *graph = NULL;
  pthread_t opener, adder;
  tfc_status s = NULL;
  TFC_TRY(s, buffer_with(text, sizeof text - 1, &graph));
  TFC_TRY(s, buffer_with("one", sizeof "one", &a.names));
  TFC_TRY(s, tfc_serve_graph(member, 1, FORGOTTEN, (tfc_str){0}, graph, sizeof text - 1));
  TFC_TRY(s, tfc_serve_plan(member, 1, &head, a.names, sizeof "one"));
  slow.configure = configure_late;
  device->driver = &slow;
  WANT(pthread_create(&opener, NULL, open_it, &w) == 0);
  while (!atomic_load(&opening)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  WANT(pthread_create(&adder, NULL, add_plan, &a) == 0);
  for (int i = 0; i < 30000 && !atomic_load(&a.done); i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  const bool added = atomic_load(&a.done);
  atomic_store(&may_open, true);
  pthread_join(opener, NULL);
  pthread_join(adder, NULL);
  device->driver = usual;
  s = tfc_status_join(w.status, a.status);
  if (!s) WANT(added);
out:
  tfc_buffer_release(graph);
  tfc_buffer_release(a.names);
  return s;
}
static void plans_come_while_a_graph_opens(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = opens_slowly, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

// --- The state of operations -------------------------------------------------------------------------------------
// Random numbers of two tasks, and elements of a dataset on the ps.
#define LONG(name, value)                                                                                              \
  NODE(name, "Const",                                                                                                  \
       ON("ps", "0") ATTR("dtype", "type: DT_INT64")                                                                   \
           ATTR("value", "tensor { dtype: DT_INT64 tensor_shape {} int64_val: " value " }"))
#define KINDS ATTR("output_types", "list { type: DT_INT64 }") ATTR("output_shapes", "list { shape {} }")
#define RANDOM(name, where)                                                                                            \
  NODE(name "/shape", "Const",                                                                                         \
       where ATTR("dtype", "type: DT_INT32")                                                                           \
           ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } }"))                               \
  NODE(name, "RandomUniform", IN(name "/shape") where ATTR("dtype", "type: DT_FLOAT") ATTR("T", "type: DT_INT32"))
static const char state_text[] = RANDOM("here", ON("worker", "0")) RANDOM("there", ON("ps", "0")) LONG("zero", "0")
    LONG("many", "100") LONG("one", "1") LONG("buffer", "9")
        NODE("range", "RangeDataset", IN("zero") IN("many") IN("one") ON("ps", "0") KINDS)
            NODE("shuffled", "ShuffleDataset",
                 IN("range") IN("buffer") IN("one") IN("one") ON("ps", "0") ATTR("reshuffle_each_iteration", "b: true")
                     KINDS) NODE("iterator", "IteratorV2",
                                 ON("ps", "0") ATTR("shared_name", "s: ''") ATTR("container", "s: ''") KINDS)
                NODE("begin", "MakeIterator", IN("shuffled") IN("iterator") ON("ps", "0"))
                    NODE("next", "IteratorGetNext", IN("iterator") ON("ps", "0") KINDS)
                        NODE("element", "Cast",
                             IN("next") ON("ps", "0") ATTR("SrcT", "type: DT_INT64") ATTR("DstT", "type: DT_FLOAT"));
enum { DRAWN = 3 };
struct drawing {
  struct tfc_text state; // written by the first job, read by the second one
  bool restores;
  float drawn[DRAWN * 3]; // after the state was saved or restored
};
static tfc_status draws(struct tfc_member *member, void *arg) {
  static const char *const names[] = {"here", "there", "element"};
  struct drawing *d = arg;
  struct client c = {0};
  struct tfc_text lost = {0};
  tfc_status s = NULL;
  if (tfc_member_rank(member) != 1) return NULL;
  TFC_TRY(s, open_text(member, state_text, &c));
  TFC_TRY(s, run(&c, NULL, 0, "begin", NULL, NULL));
  for (int i = 0; i < 5 && !d->restores; i++)
    for (int k = 0; k < 3; k++) TFC_TRY(s, run(&c, NULL, 0, names[k], &d->drawn[0], NULL));
  if (d->restores)
    TFC_TRY(s, tfc_cluster_session_restore_state(c.session, (tfc_str){d->state.data, d->state.size}, NULL, &lost));
  else
    TFC_TRY(s, tfc_cluster_session_save_state(c.session, NULL, &d->state));
  for (int i = 0; i < DRAWN; i++)
    for (int k = 0; k < 3; k++) TFC_TRY(s, run(&c, NULL, 0, names[k], &d->drawn[3 * i + k], NULL));
  WANT(!lost.size);
out:
  close_client(&c);
  return s;
}
static void state_goes_on(void **state) {
  (void)state;
  struct drawing first = {0}, second = {.restores = true};
  for (int i = 0; i < 2; i++) {
    struct tfc_test_job job = {
        .cluster = "ps=1,worker=2", .script = draws, .arg = i ? &second : &first, .serves = "ps"};
    if (i) second.state = first.state;
    tfc_test_job_succeed(&job);
  }
  assert_memory_equal(first.drawn, second.drawn, sizeof first.drawn);
  for (int k = 0; k < 3; k++) assert_true(first.drawn[k] != first.drawn[3 + k]);
  tfc_text_deinit(&first.state);
}
static tfc_status bad_states(struct tfc_member *member, void *arg) {
  static const char *const bad[] = {"task\t/job:ps/task:0\niterator\tmany\t\tx\n",
                                    "task\t/job:ps/task:0\niterator\t-1\t\tx\n",
                                    "task\t/job:ps/task:0\nsession\t/job:worker/task:0\t1\nnode\tmany\t\tthere\n",
                                    "task\t/job:ps/task:0\nsession\t/job:worker/task:0\t1\nnode\t-1\t\tthere\n"};
  struct client c = {0};
  struct tfc_text lost = {0};
  float v = 0;
  (void)arg;
  if (tfc_member_rank(member) != 1) return NULL;
  tfc_status s = open_text(member, state_text, &c);
  if (!s) s = run(&c, NULL, 0, "there", &v, NULL);
  for (size_t i = 0; i < sizeof bad / sizeof *bad && !s; i++) {
    tfc_status e = tfc_cluster_session_restore_state(c.session, tfc_str_from(bad[i]), NULL, &lost);
    const bool right = says(e, TFC_INVALID_ARGUMENT, "is not the state of an operation");
    tfc_status_free(e);
    WANT(right);
  }
  // What is not there is skipped: another graph may have been given. What is elsewhere now is named.
  WANT(!lost.size);
  if (!s)
    s = tfc_cluster_session_restore_state(
        c.session,
        TFC_STR("task\t/job:gone/task:0\nnode\t00\t\tx\ntask\t/job:ps/task:0\nsession\t/job:worker/task:0\t1\n"
                "node\t1\t\tgone\nnode\t1\t\there\nnode\t1\t\tthere\n"),
        NULL, &lost);
  if (!s)
    WANT(lost.size && !strcmp(lost.data, "/job:gone/task:0 is not in this job; what it had before begins anew: "
                                         "operation 'x'\n/job:ps/task:0 has other nodes or clients now; what it had "
                                         "before begins anew: operation 'here'\n"));
out:
  tfc_text_deinit(&lost);
  close_client(&c);
  return s;
}
static void broken_state(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = bad_states, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

static tfc_status one_leaves(struct tfc_member *member, void *arg) {
  (void)arg;
  return tfc_member_rank(member) == 1 ? NULL : tfc_member_barrier(member, "never", NULL);
}
static void barrier_that_never_opens(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = one_leaves, .serves = "ps"};
  tfc_test_job_run(&job);
  somebody_says(&job, "never came to the barrier 'never'");
  free_all(&job);
}

// Another task may ask for a step after this one has joined its threads: nobody would run it, and nothing is started.
static void no_step_begins_after_the_end(void **state) {
  (void)state;
  struct tfc_cluster_spec spec = {0};
  struct tfc_transport *transport;
  struct tfc_device_set devices = {0};
  struct tfc_member *member = NULL;
  assert_ok(tfc_cluster_spec_parse(TFC_STR("worker=1"), &spec));
  assert_ok(tfc_transport_local(1, &transport));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  const struct tfc_member_options options = {.spec = &spec, .transport = transport, .devices = &devices};
  assert_ok(tfc_member_join(&options, &member));
  tfc_serve_end(member);
  assert_ok(tfc_serve_start(member, 0, &(struct tfc_head_run){.step = tfc_step_number(0, 1)}));
  assert_int_equal(member->threads.count, 0);
  assert_null(member->queue);
  tfc_member_free(member);
  tfc_devices_close(&devices);
  tfc_cluster_spec_deinit(&spec);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values),
      cmocka_unit_test(values_out_of_order),
      cmocka_unit_test(errors_come_back),
      cmocka_unit_test(bad_devices),
      cmocka_unit_test(silence_ends_the_job),
      cmocka_unit_test(cut_ends_the_job),
      cmocka_unit_test(nonsense_ends_the_job),
      cmocka_unit_test(forgotten_while_a_step_waits),
      cmocka_unit_test(plans_come_while_a_graph_opens),
      cmocka_unit_test(state_goes_on),
      cmocka_unit_test(broken_state),
      cmocka_unit_test(barrier_that_never_opens),
      cmocka_unit_test(no_step_begins_after_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
