// tfc-place over the tasks of a job, which are threads of this process: what each task reads, times and gives to task
// 0, and the machine and the costs that task 0 places with. The measuring worker and the search are stand-ins, so that
// every time is known.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/measuring.h"
#include "cli/place.h"
#include "cli/restart.h"
#include "placer/tasks/links.h"
#include "placer/tasks/profile.h"
#include "placer/tasks/steps.h"
#include "profiler/store_rows.h"
#include "runtime/base/clock.h"
#include "runtime/io/npy.h"
#include "tests/cli/in_process.h"
#include "tests/cli/job_threads.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[TEST_FOLDER_SIZE], graph[96], value[96];
static const char graph_text[] = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
                                 "       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }"
                                 "node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
                                 "       attr { key: 'shape' value { shape { dim { size: 3 } } } } }"
                                 "node { name: 'a' op: 'Square' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }"
                                 "node { name: 'b' op: 'Exp' input: 'y' attr { key: 'T' value { type: DT_FLOAT } } }"
                                 "node { name: 'c' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }"
                                 "node { name: 'd' op: 'Neg' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }";
enum { X, Y, A, B, C, D, NODES };

static int set_up(void **state) {
  (void)state;
  test_program_start(test_program = "tfc-place");
  if (test_folder_make(folder, "place-tasks")) return -1;
  command_put(folder, "g.pbtxt", graph_text);
  snprintf(graph, sizeof graph, "%s/g.pbtxt", folder);
  snprintf(value, sizeof value, "x:0=%s/x.npy", folder);
  struct tfc_tensor x = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(5, 2), &x));
  for (int i = 0; i < 10; i++) ((float *)x.data)[i] = (float)i;
  assert_ok(tfc_npy_write(strchr(value, '=') + 1, &x));
  tfc_tensor_release(&x);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static atomic_int locks;
static tfc_status lock_here(bool wait, struct tfc_lock **out) {
  (void)out;
  atomic_fetch_add(&locks, wait ? 1 : 100);
  return NULL;
}

// What a task times: 1000 for its second device, 100 for each task before, and the node. Nothing times node B on the
// second devices, node C on those of task 0, and node D on any. Node Y is timed by task 1 alone, on its second device.
static double time_of(uint32_t rank, uint32_t device, uint32_t node) {
  if ((node == B && device == 1) || (node == C && rank == 0) || node == D) return (double)NAN;
  if (node == Y && (rank != 1 || device != 1)) return INFINITY;
  return 1000.0 * device + 100.0 * rank + node;
}
static atomic_int profiled;
static bool patterns;    // --devices has TensorFlow's names, those of the CPUs of all tasks but the first one
static int failing = -1; // the task whose profile fails
static tfc_status profile_here(const struct tfc_measure_options *o, uint32_t devices, uint32_t nodes, double end_s,
                               double *out_us) {
  char lock[64];
  uint32_t rank = test_transport->rank; // the member owns the transport, which still exists
  snprintf(lock, sizeof lock, "/tfc-measuring.task%u.lock", rank);
  const double left = end_s - 1e-9 * (double)tfc_now_ns();
  if ((int)rank == failing) return tfc_status_make(TFC_ABORTED, "no profile");
  if (!o->lock || strlen(o->lock) < strlen(lock) || strcmp(o->lock + strlen(o->lock) - strlen(lock), lock) != 0)
    return tfc_status_make(TFC_INTERNAL, "lock %s", o->lock);
  if (devices != (patterns ? 1 : 2) || nodes != NODES || strcmp(o->devices, patterns ? "cpu:0" : "cpu:0,emu:0") != 0 ||
      strcmp(o->graph, graph) != 0)
    return tfc_status_make(TFC_INTERNAL, "%u devices of %s, %u nodes", devices, o->devices, nodes);
  if (left > 200 || left < 150) return tfc_status_make(TFC_INTERNAL, "%g s of 1000", left); // a fifth
  if (o->cancel != tfc_program_cancel() || o->execution.seed != 7) return tfc_status_make(TFC_INTERNAL, "options");
  if (o->feed_count != 2 || !tfc_str_is(o->feeds[0].name, "x:0") || !tfc_str_is(o->feeds[1].name, "y:0"))
    return tfc_status_make(TFC_INTERNAL, "feeds");
  // x is the file's, and y has synthetic values, which are those of every program with this seed.
  const struct tfc_tensor *x = o->feeds[0].value, *y = o->feeds[1].value;
  struct tfc_tensor same = {0};
  struct tfc_step_feed feed = {
      .output = {Y, 0}, .name = TFC_STR("y:0"), .dtype = TFC_FLOAT, .shape = TFC_SHAPE(3), .low = -1, .high = 1};
  if (x->shape.rank != 2 || x->shape.dims[0] != 5 || ((const float *)x->data)[9] != 9)
    return tfc_status_make(TFC_INTERNAL, "x");
  TFC_RETURN_IF_ERROR(tfc_step_synthetic(&feed, 7, &same));
  const bool equal = y->size == same.size && memcmp(y->data, same.data, same.size) == 0;
  tfc_tensor_release(&same);
  if (!equal) return tfc_status_make(TFC_INTERNAL, "y");
  if (o->fetch_count != 2 || !tfc_str_is(o->fetches[0], "c:0") || !tfc_str_is(o->fetches[1], "d:0"))
    return tfc_status_make(TFC_INTERNAL, "fetches");
  for (uint32_t d = 0; d < devices; d++)
    for (uint32_t n = 0; n < nodes; n++) out_us[d * nodes + n] = time_of(rank, d, n);
  atomic_fetch_add(&profiled, 1);
  return NULL;
}

static uint32_t links_wanted;
static tfc_status links_here(struct tfc_member *member, const struct tfc_cluster_spec *spec, double end_s,
                             struct tfc_task_link *out, uint32_t *out_count) {
  const double left = end_s - 1e-9 * (double)tfc_now_ns();
  (void)member;
  if (left > 300 || left < 250) return tfc_status_make(TFC_INTERNAL, "%g s of 1000", left);
  *out_count = links_wanted;
  for (uint32_t i = 0; i < links_wanted; i++) {
    out[i] = (struct tfc_task_link){.a = i % (uint32_t)spec->tasks.count, .b = (uint32_t)spec->tasks.count - 1};
    for (uint32_t k = 0; k < TFC_TASK_LINK_SIZES; k++) {
      out[i].point[k].bytes = 4 * pow(16, k);
      out[i].point[k].time_us = 10 * (k + 1) + i;
    }
  }
  return NULL;
}

static struct tfc_task_steps_options asked;
static tfc_status steps_here(const struct tfc_task_steps_options *o, struct tfc_task_steps **out) {
  asked = *o;
  *out = (struct tfc_task_steps *)&asked;
  return NULL;
}

static int place_here(const struct place_options *o, bool cost_graph);

static struct cli_restart restarted;
static char words[3][64];
static void (*meanwhile)(void);
static int restart_here(const struct cli_restart *r) {
  restarted = *r;
  for (int i = 0; i < 3; i++) {
    const char *word = r->again(r->user);
    snprintf(words[i], sizeof words[i], "%s", word ? word : "-");
    if (meanwhile) meanwhile();
  }
  return 77;
}

#undef fail // a macro of CMocka, and a name in the file below
#define cli_task_connect connect_here
#define tfc_guard_enter guard_here
#define cli_measuring_lock lock_here
#define tfc_task_profile profile_here
#define tfc_task_links links_here
#define tfc_task_steps_create steps_here
#define place_modelled place_here
#define cli_restart(...) restart_here(__VA_ARGS__)
#include "cli/place_tasks.c"
#define fail() _fail(__FILE__, __LINE__)

// --- The stand-in of the search --------------------------------------------------------------------------------------

static atomic_int placed;
static char wrong[400]; // what the stand-in of the search found
#define HOLDS(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) return tfc_status_make(TFC_INTERNAL, "line %d: %s", __LINE__, #condition);                       \
  } while (0)
// The mean of what the devices of a kind have timed. `first`: the first task that has devices of the machine.
static tfc_status check_costs(const struct place_tasks *t, const struct tfc_machine *m, uint32_t first) {
  static const uint32_t ops[] = {A, B, C, D, Y};
  const uint32_t kinds = patterns ? 1 : 2;
  struct tfc_cost_table *table = NULL;
  TFC_RETURN_IF_ERROR(place_tasks_costs(t, m, ops, 5, &table));
  for (uint32_t i = 0; i < 5; i++) {
    double mean[2] = {0};
    uint32_t timed[2] = {0};
    for (uint32_t k = 0; k < kinds; k++) {
      for (uint32_t r = first; r < t->spec.tasks.count; r++)
        if (isfinite(time_of(r, k, ops[i]))) mean[k] += time_of(r, k, ops[i]), timed[k]++;
      if (timed[k]) mean[k] /= timed[k];
    }
    for (uint32_t k = 0; k < kinds; k++) {
      const struct tfc_cost cost = tfc_cost_table_get(table, ops[i], k);
      if (timed[k])
        HOLDS(cost.samples == 1 && fabs(cost.median_us - mean[k]) < 1e-9);
      else if (timed[0] || timed[1]) // it cannot run there
        HOLDS(cost.samples == 0);
      else // it waits for something outside of the step
        HOLDS(cost.samples == 1 && cost.median_us == 0);
    }
  }
  HOLDS(tfc_cost_table_get(table, X, 0).samples == 0); // it was not asked for
  tfc_cost_table_free(table);
  return NULL;
}
static tfc_status look(const struct place_options *o, bool cost_graph) {
  struct place_tasks *t = o->tasks;
  struct tfc_machine *m = NULL;
  HOLDS(t && !cost_graph && t->rank == 0 && o->time < 1000 && o->time > 950);
  const uint32_t tasks_of = (uint32_t)t->spec.tasks.count, devices = patterns ? 1 : 2, first = patterns ? 1 : 0;
  char text[32];
  snprintf(text, sizeof text, "%u tasks", tasks_of);
  HOLDS(!strcmp(place_tasks_text(t), text));
  TFC_RETURN_IF_ERROR(place_tasks_machine(t, &m));
  HOLDS(m->device_count == devices * (tasks_of - first));
  for (uint32_t d = 0; d < m->device_count; d++) {
    char name[80];
    snprintf(name, sizeof name, "/job:worker/task:%u/device:%s:0", d / devices + first, d % devices ? "EMU" : "CPU");
    HOLDS(tfc_str_is(m->devices[d].name, name));
  }
  tfc_status s = check_costs(t, m, first);
  struct tfc_task_steps_options steps_of = {.machine = m};
  struct tfc_task_steps *steps = NULL;
  if (!s) s = place_tasks_steps(t, &steps_of, &steps);
  if (!s && (asked.member != t->member || strcmp(asked.graph, graph) != 0 || asked.execution->seed != 7 ||
             asked.step->feed_count != 2 || asked.feeds != t->feeds || asked.init_feeds != t->init_feeds ||
             asked.cancel != tfc_program_cancel() || asked.machine != m || !steps))
    s = tfc_status_make(TFC_INTERNAL, "steps");
  tfc_machine_free(m);
  return s;
}
static int place_here(const struct place_options *o, bool cost_graph) {
  tfc_status s = look(o, cost_graph);
  snprintf(wrong, sizeof wrong, "%s", s ? tfc_status_message(s) : "");
  tfc_status_free(s);
  atomic_fetch_add(&placed, 1);
  return 7;
}

// --- Jobs ------------------------------------------------------------------------------------------------------------

static int run_task(const void *o) {
  return place_tasks(o);
}
// Runs a job in which task r has the options o[r * step]; `step` 0: all tasks have the same.
static void run(uint32_t count, const struct place_options *o, size_t step) {
  atomic_store(&locks, 0), atomic_store(&profiled, 0), atomic_store(&placed, 0);
  test_tasks_run(count, run_task, o, step * sizeof *o);
}
static struct place_options options(const char *devices) {
  static const char *feeds[1];
  static const char *const fetches[] = {"c:0", "d:0"};
  feeds[0] = value;
  return (struct place_options){.graph = graph,
                                .devices = devices,
                                .restarts = -1,
                                .time = 1000,
                                .wait = true,
                                .feeds = {feeds, 1},
                                .fetches = {(const char **)(uintptr_t)fetches, 2},
                                .execution.seed = 7};
}

static void test_jobs(void **state) {
  (void)state;
  static const struct {
    uint32_t tasks, links;
    int lines;
  } cases[] = {{2, 1, 2}, {3, 3, 6}, {4, 7, 14}, {4, 8, 16}, {4, 9, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct place_options o = options("cpu:0,emu:0");
    const uint32_t count = cases[i].tasks;
    links_wanted = cases[i].links;
    run(count, &o, 0);
    if (wrong[0]) fail_msg("%s", wrong);
    for (uint32_t r = 0; r < count; r++) {
      char name[80];
      if (test_tasks[r].code != (r ? 0 : 7)) fail_msg("task %u: %d: %s", r, test_tasks[r].code, test_err.text);
      snprintf(name, sizeof name, "/job:worker/task:%u", r);
      assert_string_equal(test_tasks[r].guard.name, name);
    }
    assert_int_equal(atomic_load(&locks), 1); // all tasks are on one host, whose first one holds the lock
    assert_int_equal(atomic_load(&profiled), count);
    assert_int_equal(atomic_load(&placed), 1);
    SAYS(test_err, " on ", (int)count), SAYS(test_err, "cpu:0 (", (int)count), SAYS(test_err, "emu:0 (", (int)count);
    SAYS(test_err, " to /job:worker/task:", cases[i].lines);
    if (count == 3) { // the smallest and the largest size
      SAYS(test_err, "/job:worker/task:1 to /job:worker/task:2: 4 B in 11.0 us\n", 1);
      SAYS(test_err, "/job:worker/task:0 to /job:worker/task:2: 4 B in 10.0 us\n", 1);
    }
    SAYS(test_err, "tfc-place:", 0);
  }
}

// With TensorFlow's names each task opens what is its own, and the machine has only what is named.
static void test_names_of_devices(void **state) {
  (void)state;
  const struct place_options o = options("/job:worker/task:1/device:CPU:0,/job:worker/task:2/device:CPU:0");
  links_wanted = 3, patterns = true;
  run(3, &o, 0);
  patterns = false;
  if (wrong[0]) fail_msg("%s", wrong);
  for (int r = 0; r < 3; r++)
    if (test_tasks[r].code != (r ? 0 : 7)) fail_msg("task %d: %d: %s", r, test_tasks[r].code, test_err.text);
  assert_int_equal(atomic_load(&placed), 1);
}

static void test_errors(void **state) {
  (void)state;
  struct place_options o[3];
  for (int i = 0; i < 3; i++) o[i] = options("cpu:0,emu:0");
  for (failing = 0; failing < 3; failing++) {
    char text[80];
    run(3, o, 1);
    for (int r = 0; r < 3; r++) {
      if (test_tasks[r].code == 0 || test_tasks[r].code == 7) fail_msg("task %d: %d", r, test_tasks[r].code);
      snprintf(text, sizeof text, "tfc-place: /job:worker/task:%d: ", r);
      SAYS(test_err, text, 1);
    }
    assert_int_equal(test_tasks[failing].code, 1);
    snprintf(text, sizeof text, "tfc-place: /job:worker/task:%d: no profile\n", failing);
    SAYS(test_err, text, 1);
    snprintf(text, sizeof text, ": /job:worker/task:%d: no profile\n", failing);
    SAYS(test_err, text, 3);
    assert_int_equal(atomic_load(&placed), 0);
  }
  failing = -1;
  o[1].devices = "gpu:77"; // it cannot join
  run(2, o, 1);
  assert_int_equal(test_tasks[1].code, 4);
  SAYS(test_err, "tfc-place: /job:worker/task:1: ", 2);
  o[1].devices = "/job:worker/task:1/device:TPU:0";
  run(2, o, 1);
  assert_int_equal(test_tasks[1].code, 3);
  SAYS(test_err, "tfc-place: /job:worker/task:1: --devices: '/job:worker/task:1/device:TPU:0'", 2);
  test_guarded = false;
  assert_int_equal(place_tasks(o), 17);
  test_guarded = true;
}

// --- Flags and restarts ----------------------------------------------------------------------------------------------

static void test_flags(void **state) {
  (void)state;
  static const struct tfc_program program = {.name = "tfc-place"};
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_NTASKS"};
  static const struct {
    struct place_options o;
    const char *says; // NULL: it is right
    bool started;     // by mpirun
  } cases[] = {
      {{.restarts = -1}, NULL, false},
      {{.restarts = -1, .machine = "m", .measure_with = "w", .checkpoint = "c", .replicas = "r"}, NULL, false},
      {{.restarts = -1, .common.untrusted = "", .request.objective = TFC_OBJECTIVE_THROUGHPUT}, NULL, false},
      {{.restarts = 0}, "--restarts needs --cluster", false},
      {{.restarts = 2, .cluster = "worker=2"}, NULL, false},
      {{.restarts = 0, .cluster = "worker=2"}, "--restarts needs --cluster", true},
      {{.restarts = -1, .cluster = "worker=2"}, NULL, false},
      {{.restarts = -1, .cluster = "worker=2"}, NULL, true},
      {{.restarts = -1}, NULL, true},
      {{.restarts = -1, .machine = "m"}, "are for one process", true},
      {{.restarts = -1, .cluster = "worker=2", .machine = "m"}, "are for one process", false},
      {{.restarts = -1, .cluster = "worker=2", .measure_with = "m"}, "are for one process", false},
      {{.restarts = -1, .cluster = "worker=2", .replicas = "2"}, "are for one process", false},
      {{.restarts = -1, .cluster = "worker=2", .checkpoint = "c"}, "--checkpoint is not for several tasks", false},
      {{.restarts = -1, .cluster = "worker=2", .common.untrusted = ""}, "--untrusted is not for several tasks", false},
      {{.restarts = -1, .cluster = "worker=2", .request.objective = TFC_OBJECTIVE_THROUGHPUT},
       "--objective throughput is not for several tasks",
       false},
  };
  for (size_t i = 0; i < 3; i++) unsetenv(names[i]);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (cases[i].started) setenv(names[0], "2", 1);
    test_catch(&test_err, stderr);
    const int code = place_check_tasks(&program, &cases[i].o);
    test_caught_end(&test_err);
    unsetenv(names[0]);
    if (code != (cases[i].says ? 2 : 0)) fail_msg("case %zu: %d: %s", i, code, test_err.text);
    SAYS(test_err, cases[i].says ? cases[i].says : "tfc-place", cases[i].says ? 1 : 0);
  }
}

static char db[96];
static void add_run(const char *state_name) {
  struct tfc_store *store = NULL;
  int64_t run_id;
  assert_ok(tfc_store_open(db, &(struct tfc_store_options){.write = true, .purpose = "test"}, &store));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_add_run(store, &(struct tfc_store_run){.program = "tfc-place", .graph = "g"}, &run_id));
  if (state_name) assert_ok(tfc_store_set_state(store, run_id, state_name, TFC_STR("2 tasks")));
  assert_ok(tfc_store_commit(store));
  tfc_store_close(store);
}
static void add_run_of_tasks(void) {
  add_run("measured_with");
}
static void add_other_run(void) {
  add_run("measured");
}

// After a failure the job goes on with the run that it had begun, and not with one that was there before.
static void test_restarts(void **state) {
  (void)state;
  char *argv[] = {(char[]){"tfc-place"}, NULL};
  struct place_options o = options("cpu:0");
  snprintf(db, sizeof db, "%s/runs.db", folder);
  o.cluster = "ps=2,worker=3", o.restarts = 4, o.db = db;
  meanwhile = add_run_of_tasks;
  assert_int_equal(place_tasks_restarted(&o, argv), 77); // there was no database
  assert_true(!strcmp(restarted.program, "tfc-place") && restarted.restarts == 4 && restarted.tasks == 5 &&
              restarted.argv == argv && !restarted.folder);
  assert_string_equal(words[0], "-");
  assert_string_equal(words[1], "--resume=1");
  assert_string_equal(words[2], "--resume=2");
  meanwhile = add_other_run; // runs 4, 5 and 6 were not measured over tasks
  assert_int_equal(place_tasks_restarted(&o, argv), 77);
  for (int i = 0; i < 3; i++) assert_string_equal(words[i], "-");
  meanwhile = add_run_of_tasks; // 7, 8 and 9
  assert_int_equal(place_tasks_restarted(&o, argv), 77);
  assert_string_equal(words[0], "-");
  assert_string_equal(words[1], "--resume=7");
  o.resume = "3"; // it goes on with that run by itself
  assert_int_equal(place_tasks_restarted(&o, argv), 77);
  for (int i = 0; i < 3; i++) assert_string_equal(words[i], "-");
  meanwhile = NULL;
  o.cluster = "worker=x", restarted.program = NULL;
  test_catch(&test_err, stderr);
  assert_int_equal(place_tasks_restarted(&o, argv), 3);
  test_caught_end(&test_err);
  assert_null(restarted.program);
  SAYS(test_err, "--cluster worker=x", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs), cmocka_unit_test(test_names_of_devices),
                                     cmocka_unit_test(test_errors), cmocka_unit_test(test_flags),
                                     cmocka_unit_test(test_restarts)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
