// Jobs of tfc-run whose tasks are threads of this process: which tasks take steps, which graph, script, placement and
// devices each of them has, and what they say and return if something is wrong. A step takes a quarter from a variable
// that begins at 1 and fetches what it was before, so all results follow by hand; they are those of one task.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/io/npy.h"
#include "tests/cli/cluster_job.h"
#include "tests/common/rows.h"

// It gets its transports from the file above.
#include "cli/run_cluster.c"
#define fail() _fail(__FILE__, __LINE__)

// --- Which task takes steps ------------------------------------------------------------------------------------------

static void test_the_first_task_that_is_no_ps_trains(void **state) {
  (void)state;
  static const struct {
    const char *cluster, *chief;
    uint32_t count;
    bool on_ps;
  } cases[] = {{"worker=1", "/job:worker/task:0", 1, false},
               {"worker=2", "/job:worker/task:0", 2, false},
               {"ps=1,worker=2", "/job:worker/task:0", 3, true},
               {"ps=2", "/job:ps/task:0", 2, true},
               {"worker=1,ps=1,chief=1", "/job:worker/task:0", 3, true},
               {"ps=1,chief=1,worker=1", "/job:chief/task:0", 3, true}};
  command_put(folder, "plain.pbtxt", GRAPH("", "0.25"));
  command_put(folder, "ps.pbtxt", GRAPH("/job:ps/task:0", "0.25"));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[200];
    struct run_options o = options(in(cases[i].on_ps ? "ps.pbtxt" : "plain.pbtxt"), cases[i].cluster);
    o.save_checkpoint = in("saved");
    run_same(cases[i].count, &o);
    codes(0, 0, 0);
    snprintf(line, sizeof line, "%s: read:0 = 0.25\n", cases[i].chief); // four steps; what the last one began with
    SAYS(test_out, line, 1);
    SAYS(test_out, "read:0 = ", 1);
    snprintf(line, sizeof line, "%s: step: median ", cases[i].chief);
    SAYS(test_out, line, 1);
    SAYS(test_out, " 3 steps\n", 1);
    SAYS(test_err, "saved: 1 variables saved\n", 1);
    SAYS(test_err, "error", 0), SAYS(test_err, "tfc-run:", 0);
    // Task 0 alone names all tasks, in their order.
    SAYS(test_err, " on ", (int)cases[i].count), SAYS(test_err, ": cpu:0 (", (int)cases[i].count);
    SAYS(test_err, "/job:ps/task:0 on ", strstr(cases[i].cluster, "ps") != NULL);
    // Each task's name is known to its guard.
    struct tfc_cluster_spec spec = {0};
    assert_ok(tfc_cluster_spec_parse(tfc_str_from(cases[i].cluster), &spec));
    const char *last = test_err.text;
    for (uint32_t r = 0; r < cases[i].count; r++) {
      char name[TFC_TASK_TEXT];
      assert_string_equal(test_tasks[r].guard.name, tfc_cluster_task_name(&spec, r, name));
      snprintf(line, sizeof line, "%s on ", name);
      last = strstr(last, line);
      assert_non_null(last);
    }
    tfc_cluster_spec_deinit(&spec);
    // What the fourth step left is what the next job begins with.
    o.checkpoint = o.save_checkpoint, o.save_checkpoint = NULL, o.steps = 2, o.warmup = 0;
    run_same(cases[i].count, &o);
    codes(0, 0, 0);
    snprintf(line, sizeof line, "%s: read:0 = -0.25\n", cases[i].chief);
    SAYS(test_out, line, 1);
    SAYS(test_err, "saved: 1 of 1 variables restored\n", 1);
  }
}

// Two workers have graphs of their own and the same variable, and the ps has none. Both take four steps, one of 0.25
// and one of 10; the first worker initialises and saves.
static void test_graphs_of_their_own(void **state) {
  (void)state;
  command_put(folder, "own.worker.0.pbtxt", GRAPH("/job:ps/task:0", "0.25"));
  command_put(folder, "own.worker.1.pbtxt", GRAPH("/job:ps/task:0", "10"));
  struct run_options o = options(in("own.{job}.{task}.pbtxt"), "ps=1,worker=2");
  o.save_checkpoint = in("both");
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_out, "/job:worker/task:0: read:0 = ", 1);
  SAYS(test_out, "/job:worker/task:1: read:0 = ", 1);
  SAYS(test_out, "/job:ps/", 0);
  SAYS(test_err, "both: 1 variables saved\n", 1);
  o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.checkpoint = in("both"), o.steps = 1, o.warmup = 0;
  run_same(3, &o);
  SAYS(test_out, "/job:worker/task:0: read:0 = -40\n", 1); // 1 - 4 * 0.25 - 4 * 10
  // A graph that is missing without {job} or {task} in its name is an error of the task that needs it.
  o = options(in("nowhere.pbtxt"), "ps=1,worker=2");
  run_same(3, &o);
  SAYS(test_err, "tfc-run: /job:worker/task:0: ", 1);
  SAYS(test_err, "nowhere.pbtxt", 3); // and the other two say which task it was that failed
  SAYS(test_err, "tfc-run: /job:ps/task:0: /job:worker/task:0: ", 1);
  SAYS(test_err, "tfc-run: /job:worker/task:1: /job:worker/task:0: ", 1);
  assert_int_equal(test_tasks[1].code, 3);
  assert_true(test_tasks[0].code && test_tasks[2].code);
}

static void test_paths(void **state) {
  (void)state;
  struct tfc_cluster_task task = {(char[]){"worker"}, 12};
  static const char *const cases[][2] = {{"a.{job}.{task}.pb", "a.worker.12.pb"},
                                         {"{task}{job}", "12worker"},
                                         {"{jo}{tas}{", "{jo}{tas}{"},
                                         {"plain", "plain"},
                                         {"{job}/{job}", "worker/worker"},
                                         {"", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *path = expand(cases[i][0], &task);
    assert_string_equal(path, cases[i][1]);
    free(path);
  }
  // A script of its own comes before that of all.
  command_put(folder, "s.worker.12.json", "{}");
  char *path = script_of(in("s.json"), &task);
  assert_string_equal(path, in("s.worker.12.json"));
  free(path);
  path = script_of(in("s"), &task); // without the ending
  assert_string_equal(path, in("s.worker.12.json"));
  free(path);
  task.index = 1;
  assert_null(script_of(in("s.json"), &task));
  command_put(folder, "s.json", "{}");
  path = script_of(in("s.json"), &task);
  assert_string_equal(path, in("s.json"));
  free(path);
  command_put(folder, ".worker.1.json", "{}"); // five characters are no name with an ending
  assert_int_equal(chdir(folder), 0);
  path = script_of(".json", &task);
  assert_null(path);
  assert_int_equal(chdir(TFC_SOURCE_DIR), 0);
}

static void test_who_trains(void **state) {
  (void)state;
  static const struct {
    const char *cluster, *graph;
    bool async;
    const char *expected; // of each task: c: the chief, t: it takes steps, -: it serves
  } cases[] = {{"ps=1,worker=2", "one.pb", false, "-c-"},
               {"worker=2", "one.pb", false, "c-"},
               {"ps=2", "one.pb", false, "c-"},
               {"ps=1,worker=2", "one.pb", true, "-ct"},
               {"worker=1,ps=1,chief=1", "one.pb", true, "c-t"},
               {"ps=1,worker=2", "m.{job}.{task}.pb", false, "-ct"},
               {"worker=3", "m.{job}.{task}.pb", false, "ct-"},
               {"worker=2", "n.{task}.pb", false, "-c"},
               {"ps=1,worker=1", "none.{job}.pb", false, "--"}};
  command_put(folder, "m.worker.0.pb", "x"), command_put(folder, "m.worker.1.pb", "x"),
      command_put(folder, "n.1.pb", "x");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct run_options o = {.graph = in(cases[i].graph), .async = cases[i].async};
    struct job job = {.options = &o};
    assert_ok(tfc_cluster_spec_parse(tfc_str_from(cases[i].cluster), &job.spec));
    for (uint32_t r = 0; r < job.spec.tasks.count; r++) {
      job.graph = expand(o.graph, &job.spec.tasks.data[r]), job.chief = false;
      const bool takes = trains(&job, r);
      const char got = takes && job.chief ? 'c' : takes ? 't' : '-';
      if (got != cases[i].expected[r]) fail_msg("case %zu: task %u: %c", i, r, got);
      free(job.graph);
    }
    tfc_cluster_spec_deinit(&job.spec);
  }
}

// --- Devices and placements ------------------------------------------------------------------------------------------

static void put_placement(const char *name, const char *device_of_v) {
  char text[1024];
  snprintf(text, sizeof text,
           "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"v\": \"%s\", \"init\": \"%s\", \"read\": "
           "\"%s\", \"update\": \"%s\", \"one\": \"/job:worker/task:0/device:CPU:0\", \"amount\": "
           "\"/job:worker/task:0/device:CPU:0\"}}",
           device_of_v, device_of_v, device_of_v, device_of_v);
  command_put(folder, name, text);
}

static void test_devices(void **state) {
  (void)state;
  put_placement("p.json", "/job:worker/task:1/device:CPU:1");
  put_placement("local.json", "cpu:0");
  static const struct {
    const char *devices, *placement, *task, *list;
  } cases[] = {{NULL, NULL, "/job:worker/task:0", "cpu:0"},
               {"cpu:0-1", NULL, "/job:worker/task:0", "cpu:0-1"},
               {NULL, "p.json", "/job:worker/task:0", "cpu:0"},
               {NULL, "p.json", "/job:worker/task:1", "cpu:0-1"},
               {"cpu:0", "p.json", "/job:worker/task:1", "cpu:0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct run_options o = {.devices = cases[i].devices};
    struct job job = {.options = &o};
    char *list = NULL, *placement = NULL;
    if (cases[i].placement) placement = job.placement = tfc_format("%s", in(cases[i].placement));
    snprintf(job.name, sizeof job.name, "%s", cases[i].task);
    assert_ok(find_devices(&job, &list));
    assert_string_equal(list, cases[i].list);
    assert_true(!placement == !job.placed.devices); // it was read, for `place`
    tfc_placed_deinit(&job.placed);
    free(list), free(placement);
  }
  char *list = NULL;
  const struct run_options o = {0};
  struct job job = {.options = &o, .placement = (char *)(uintptr_t)in("local.json"), .name = "/job:worker/task:0"};
  assert_fails(find_devices(&job, &list), TFC_UNAVAILABLE, "local.json: 'cpu:0' is not /job:NAME/task:N/device:TYPE:N");
  tfc_placed_deinit(&job.placed);
}

// What the database at the path answers (test_rows).
static const char *rows(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  const char *got = test_rows(db, sql);
  sqlite3_close(db);
  return got;
}

// The variable is where the file says, and the results stay. The profile says so, too.
static void test_placement(void **state) {
  (void)state;
  put_placement("there.json", "/job:worker/task:1/device:CPU:0");
  struct run_options o = options(in("plain.pbtxt"), "worker=2");
  o.placement = in("there.json"), o.profile = true, o.db = in("placed.db");
  run_same(2, &o);
  codes(0, 0, 0);
  SAYS(test_out, "/job:worker/task:0: read:0 = 0.25\n", 1);
  assert_string_equal(rows(o.db, "SELECT count(*), min(state), min(program) FROM run"), "1|done|tfc-run");
  assert_string_equal(rows(o.db, "SELECT count(*) FROM step"), "3");
  assert_string_equal(rows(o.db, "SELECT DISTINCT n.name, d.tensorflow FROM op o JOIN node n ON n.node_id = o.node_id "
                                 "JOIN device d ON d.device_id = o.device_id WHERE n.name IN ('update')"),
                      "update|/job:worker/task:1/device:CPU:0");
  // It names a task or a device that is not there, or lacks a node.
  put_placement("there.json", "/job:worker/task:7/device:CPU:0");
  o.profile = false;
  run_same(2, &o);
  assert_int_equal(test_tasks[0].code, 4);
  SAYS(test_err, "tfc-run: /job:worker/task:0: ", 1);
  SAYS(test_err, "/job:worker/task:7/device:CPU:0", 2);
  command_put(folder, "there.json",
              "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"v\": "
              "\"/job:worker/task:1/device:CPU:0\"}}");
  run_same(2, &o);
  assert_int_equal(test_tasks[0].code, 3);
  SAYS(test_err, "no device for node", 2);
  // {task} in its name: each task reads its own.
  put_placement("own.0.json", "/job:worker/task:1/device:CPU:0");
  put_placement("own.1.json", "/job:worker/task:1/device:CPU:1"); // so task 1 opens two
  o.placement = in("own.{task}.json");
  run_same(2, &o);
  codes(0, 0, 0);
  SAYS(test_err, "/job:worker/task:1 on ", 1);
  SAYS(test_err, ", cpu:1 (", 1);
}

// A task with one device of one core may move to other cores afterwards, and one with several stays.
static void test_cores(void **state) {
  (void)state;
  struct run_options o = options(in("plain.pbtxt"), "worker=2");
  for (int devices = 1; devices < 3; devices++) {
    o.devices = devices == 1 ? "cpu:0" : "cpu:0-1";
    atomic_store(&test_shared, 0), atomic_store(&test_left, 0);
    run_same(2, &o);
    codes(0, 0, 0);
    const bool single = devices == 1 && test_caught_count(&test_err, ", 1 cores)") == 2;
    assert_int_equal(atomic_load(&test_shared), 2);
    assert_int_equal(atomic_load(&test_left), single ? 2 : 0);
  }
}

// --- Scripts ---------------------------------------------------------------------------------------------------------

static float number_in(const char *path) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_npy_read(path, &t));
  assert_int_equal(t.dtype, TFC_FLOAT);
  const float value = *(const float *)t.data;
  tfc_tensor_release(&t);
  return value;
}

static void test_scripts(void **state) {
  (void)state;
  command_put(folder, "job.worker.0.json",
              "{\"runs\": [{\"targets\": [\"update\"]}, {\"barrier\": \"taken\"}, {\"barrier\": \"read\"}, "
              "{\"fetches\": [\"read:0\"]}]}");
  command_put(folder, "job.worker.1.json",
              "{\"runs\": [{\"barrier\": \"taken\"}, {\"fetches\": [\"read:0\"]}, {\"targets\": [\"update\"]}, "
              "{\"barrier\": \"read\"}]}");
  // --init of each task with a script runs; the ps has none and serves. The checkpoint comes after it, once.
  struct run_options o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.save_checkpoint = in("four"); // 1 - 4 * 0.25 = 0
  run_same(3, &o);
  codes(0, 0, 0);
  o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.script = in("job.json"), o.out = in("results"), o.checkpoint = in("four"), o.save_checkpoint = in("after");
  o.profile = true, o.db = in("scripts.db");
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_err, "four: 1 of 1 variables restored\n", 1), SAYS(test_err, "after: 1 variables saved\n", 1);
  const struct command_result *r = command("cd %s/results && ls */*/*", folder);
  if (!strstr(r->out, "worker.0/3/") || !strstr(r->out, "worker.1/1/")) fail_msg("%s%s", r->out, r->err);
  char first[160], second[160];
  assert_int_equal(sscanf(strstr(r->out, "worker.0/3/"), "%150s", first), 1);
  assert_int_equal(sscanf(strstr(r->out, "worker.1/1/"), "%150s", second), 1);
  char whole[400];
  snprintf(whole, sizeof whole, "%s/results/%s", folder, second);
  assert_true(number_in(whole) == -0.25f);
  snprintf(whole, sizeof whole, "%s/results/%s", folder, first);
  assert_true(number_in(whole) == -0.5f);
  // Each of the two tasks with a script has a run in the database for each kind of its steps.
  assert_string_equal(rows(o.db, "SELECT substr(r.command, instr(r.command, ', /job:') + 2), count(*), r.state FROM "
                                 "run r JOIN v_step s USING (run_id) GROUP BY r.run_id ORDER BY 1"),
                      "/job:worker/task:0, run 0|1|done,/job:worker/task:0, run 3|1|done,"
                      "/job:worker/task:1, run 1|1|done,/job:worker/task:1, run 2|1|done");
  // Without --checkpoint the variable has its initial value.
  o.checkpoint = o.save_checkpoint = NULL, o.profile = false;
  run_same(3, &o);
  codes(0, 0, 0);
  assert_true(number_in(whole) == 0.5f);
  // The first task with a script has saved once, when both scripts had ended.
  o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.checkpoint = in("after"), o.steps = 1, o.warmup = 0;
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_out, "/job:worker/task:0: read:0 = -0.5\n", 1);
  // The same if that is the first task of the job.
  o = options(in("ps.pbtxt"), "worker=2,ps=1");
  o.script = in("job.json"), o.out = in("results"), o.checkpoint = in("four"), o.save_checkpoint = in("again");
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_err, "four: 1 of 1 variables restored\n", 1), SAYS(test_err, "again: 1 variables saved\n", 1);
}

// --- Errors ----------------------------------------------------------------------------------------------------------

// What a task has left in its folder for the program that starts it again.
static const char *failure(const char *supervised) {
  char path[200];
  snprintf(path, sizeof path, "%s/failure", supervised);
  return test_file_text(path);
}

static void test_errors_of_a_job(void **state) {
  (void)state;
  struct run_options o[3];
  for (int i = 0; i < 3; i++) o[i] = options(in("ps.pbtxt"), "ps=1,worker=2");
  // A target that is not there: one task says it and leaves it behind, the others say whose it is.
  static const char *const none[] = {"nowhere"};
  for (int i = 0; i < 3; i++) {
    o[i].targets = (struct tfc_texts){(const char **)(uintptr_t)none, 1};
    o[i].supervise = in(i == 0 ? "left.0" : i == 1 ? "left.1" : "left.2");
  }
  run_tasks(3, o);
  assert_int_equal(test_tasks[1].code, 3);
  assert_true(test_tasks[0].code && test_tasks[2].code);
  SAYS(test_err, "tfc-run: /job:worker/task:0: ", 1);
  SAYS(test_err, "tfc-run: /job:ps/task:0: /job:worker/task:0: ", 1);
  SAYS(test_err, "tfc-run: /job:worker/task:1: /job:worker/task:0: ", 1);
  SAYS(test_err, "tfc-run: ", 3);
  const char *text = failure(o[1].supervise);
  if (strncmp(text, "3 /job:worker/task:0: ", 22) != 0 || !strstr(text, "nowhere")) fail_msg("%s", text);
  assert_null(strstr(text + 22, "/job:worker"));
  // The other tasks have no file `failure`: they ended because a task was lost, and a restart may help against that.
  assert_string_equal(failure(o[0].supervise), ""), assert_string_equal(failure(o[2].supervise), "");
  // When a job ends well, its chief removes its own file, and no other task does.
  assert_int_equal(command("mkdir -p %s", o[2].supervise)->code, 0);
  command_put(o[2].supervise, "failure", "3 of a job before\n");
  for (int i = 0; i < 3; i++) o[i].targets = options("", "").targets, o[i].warmup = 0;
  run_tasks(3, o);
  codes(0, 0, 0);
  assert_string_equal(failure(o[1].supervise), "");
  assert_string_not_equal(failure(o[2].supervise), "");
  // What cannot be joined: each task says so, with its name.
  for (int i = 0; i < 3; i++) {
    o[i] = options(in("ps.pbtxt"), "ps=1,worker=2");
    o[i].replicas = 3;
  }
  run_tasks(3, o);
  codes(3, 3, 3);
  SAYS(test_err, "tfc-run: /job:worker/task:1: --replicas 3 needs as many tasks whose job is not ps", 2);
  test_catch(&test_err, stderr); // before there is a transport
  const int code = run_cluster(&(struct run_options){.graph = in("ps.pbtxt"), .cluster = "ps=x", .restarts = -1}, NULL);
  test_caught_end(&test_err);
  assert_int_equal(code, 3);
  SAYS(test_err, "tfc-run: --cluster ps=x", 1);
}

static void test_guard_and_restarts(void **state) {
  (void)state;
  struct run_options o = options(in("plain.pbtxt"), "worker=2,ps=1");
  char *argv[] = {(char[]){"tfc-run"}, NULL};
  test_guarded = false; // the parent process of a task: it has nothing to do but to return
  assert_int_equal(run_cluster(&o, argv), 17);
  test_guarded = true;
  o.restarts = 0, o.supervise = in("kept");
  assert_int_equal(run_cluster(&o, argv), 77);
  assert_string_equal(test_restarted.program, "tfc-run");
  assert_true(test_restarted.restarts == 0 && test_restarted.tasks == 3 && test_restarted.argv == argv &&
              !test_restarted.again);
  assert_string_equal(test_restarted_folder, in("kept"));
  o.restarts = 5, o.cluster = "worker=x";
  memset(&test_restarted, 0, sizeof test_restarted);
  test_catch(&test_err, stderr);
  assert_int_equal(run_cluster(&o, argv), 3);
  test_caught_end(&test_err);
  assert_true(!test_restarted.program);
}

// --- After a signal --------------------------------------------------------------------------------------------------

static int fail_here(struct job *job, tfc_status s) {
  jmp_buf here;
  test_at_exit = &here, test_exit_code = -1;
  test_catch(&test_err, stderr);
  volatile int code = -1;
  if (!setjmp(here)) code = (fail)(job, s);
  test_caught_end(&test_err);
  return code;
}

static void test_failures(void **state) {
  (void)state;
  const struct run_options o = {.supervise = in("alone")};
  struct job job = {.options = &o, .name = "/job:worker/task:1"};
  // CANCELLED without a signal is an error like others.
  assert_int_equal(fail_here(&job, tfc_status_make(TFC_CANCELLED, "closed")), 1);
  assert_string_equal(test_err.text, "tfc-run: /job:worker/task:1: closed\n");
  assert_string_equal(failure(o.supervise), "");
  assert_int_equal(fail_here(&job, tfc_status_make(TFC_INVALID_ARGUMENT, "wrong")), 3);
  assert_string_equal(test_err.text, "tfc-run: /job:worker/task:1: wrong\n");
  assert_string_equal(failure(o.supervise), "3 /job:worker/task:1: wrong\n");
  unlink(in("alone/failure"));
  job.name[0] = 0; // it has not joined yet
  assert_int_equal(fail_here(&job, tfc_status_make(TFC_INVALID_ARGUMENT, "wrong")), 3);
  assert_string_equal(test_err.text, "tfc-run: wrong\n");
  unlink(in("alone/failure"));
  atomic_store(&job.told, true); // another task's error was printed
  assert_int_equal(fail_here(&job, tfc_status_make(TFC_UNAVAILABLE, "lost")), 4);
  assert_string_equal(test_err.text, "");
  assert_string_equal(failure(o.supervise), "");
  // What the job says of another task.
  atomic_store(&job.told, false), snprintf(job.name, sizeof job.name, "/job:worker/task:1");
  test_catch(&test_err, stderr);
  say_failure(&job, 5, "/job:ps/task:0: too much");
  test_caught_end(&test_err);
  assert_string_equal(test_err.text, "tfc-run: /job:worker/task:1: /job:ps/task:0: too much\n");
  assert_string_equal(failure(o.supervise), "5 /job:ps/task:0: too much\n");
  assert_true(atomic_load(&job.told));
}

static void *stop_later(void *checkpoint) { // when the job has saved something
  while (!test_file_exists(checkpoint)) usleep(1000);
  stop(NULL);
  return NULL;
}
// The last: a signal is remembered by the process.
static void test_signals(void **state) {
  (void)state;
  pthread_t thread;
  long long steps = 0, saved = 0;
  // A job that keeps what it has trained ends in order, and every task with 130.
  struct run_options o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.supervise = in("stopped"), o.save_every = 0, o.steps = 100000;
  assert_false(atomic_load(tfc_program_cancel()));
  assert_int_equal(pthread_create(&thread, NULL, stop_later, (void *)(uintptr_t)in("stopped/checkpoint")), 0);
  run_same(3, &o);
  pthread_join(thread, NULL);
  assert_true(atomic_load(tfc_program_cancel()));
  codes(130, 130, 130);
  SAYS(test_err, "tfc-run: ", 1);
  const char *said = strstr(test_err.text, "tfc-run: /job:worker/task:0: stopped after ");
  assert_non_null(said);
  assert_int_equal(sscanf(strstr(said, "after "), "after %lld steps;", &steps), 1);
  assert_int_equal(sscanf(strstr(said, "/model.ckpt-"), "/model.ckpt-%lld has the variables\n", &saved), 1);
  assert_true(steps > 0 && saved == steps);
  // An error that follows from it.
  o = (struct run_options){.graph = "g"};
  struct job job = {.options = &o, .name = "/job:worker/task:1"};
  for (int count = 1; count < 4; count++)
    for (int chief = 0; chief < 2; chief++) {
      char cluster[32];
      snprintf(cluster, sizeof cluster, "worker=%d", count);
      assert_ok(tfc_cluster_spec_parse(tfc_str_from(cluster), &job.spec));
      job.chief = chief;
      const int code = fail_here(&job, tfc_status_make(TFC_CANCELLED, "stopped"));
      // With several tasks the process ends at once; only the chief says why.
      assert_int_equal(code, count == 1 ? 130 : -1);
      assert_int_equal(test_exit_code, count == 1 ? -1 : 130);
      assert_string_equal(test_err.text, count == 1 || chief ? "tfc-run: /job:worker/task:1: stopped\n" : "");
      tfc_cluster_spec_deinit(&job.spec);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_first_task_that_is_no_ps_trains),
                                     cmocka_unit_test(test_graphs_of_their_own),
                                     cmocka_unit_test(test_paths),
                                     cmocka_unit_test(test_who_trains),
                                     cmocka_unit_test(test_devices),
                                     cmocka_unit_test(test_placement),
                                     cmocka_unit_test(test_cores),
                                     cmocka_unit_test(test_scripts),
                                     cmocka_unit_test(test_errors_of_a_job),
                                     cmocka_unit_test(test_guard_and_restarts),
                                     cmocka_unit_test(test_failures),
                                     cmocka_unit_test(test_signals)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
