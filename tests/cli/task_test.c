// How a process finds its job: the transport, the tasks, its part of a host's cores, and how a task that cannot join
// ends the job. Transports and cores are the test's own: a host of eight cores, which are not the first eight.
#include "tests/common/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transport/transport.h"
#include "tests/common/caught.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static cpu_set_t allowed_cores, own_cores;
static int set_calls;
static int get_cores(pid_t pid, size_t size, cpu_set_t *out) {
  (void)pid;
  if (size != sizeof *out) return -1;
  *out = allowed_cores;
  return 0;
}
static int set_cores(pid_t pid, size_t size, const cpu_set_t *cores) {
  if (pid != 0 || size != sizeof *cores) return -1;
  own_cores = *cores;
  set_calls++;
  return 0;
}
static int failed_code, closed;
static char failed_why[200];
static void fail_here(struct tfc_transport *t, int code, const char *why) {
  (void)t;
  failed_code = code;
  snprintf(failed_why, sizeof failed_why, "%s", why);
}
static void close_here(struct tfc_transport *t) {
  (void)t;
  closed++;
}
static const struct tfc_transport_type test_type = {.name = "test", .fail = fail_here, .close = close_here};
static struct tfc_transport mpi_transport;
static tfc_status mpi_here(struct tfc_transport **out) {
  if (!mpi_transport.count) return tfc_status_make(TFC_UNAVAILABLE, "no MPI");
  *out = &mpi_transport;
  return NULL;
}
#undef fail // a macro of CMocka, and a name in the file below
#define sched_getaffinity get_cores
#define sched_setaffinity set_cores
#define tfc_transport_mpi mpi_here
#include "cli/task.c"
#define fail() _fail(__FILE__, __LINE__)
#undef sched_getaffinity
#undef sched_setaffinity
#undef tfc_transport_mpi

// --- Joining ---------------------------------------------------------------------------------------------------------

static void test_connecting(void **state) {
  (void)state;
  struct tfc_cluster_spec spec = {0};
  struct tfc_transport *t = NULL;
  // Without --cluster every process is a worker.
  mpi_transport = (struct tfc_transport){.type = &test_type, .count = 3};
  assert_ok(cli_task_connect(&spec, NULL, &t));
  assert_true(t == &mpi_transport && spec.tasks.count == 3);
  for (uint32_t r = 0; r < 3; r++)
    assert_true(!strcmp(spec.tasks.data[r].job, "worker") && spec.tasks.data[r].index == r);
  tfc_cluster_spec_deinit(&spec);
  assert_ok(tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
  t = NULL;
  assert_ok(cli_task_connect(&spec, "ps=1,worker=2", &t));
  assert_true(t == &mpi_transport && spec.tasks.count == 3 && closed == 0);
  // More or fewer processes than tasks.
  t = NULL, mpi_transport.count = 2;
  assert_fails(cli_task_connect(&spec, "ps=1,worker=2", &t), TFC_INVALID_ARGUMENT,
               "--cluster ps=1,worker=2 has 3 tasks, and 2 processes were started: mpirun -n 3");
  assert_true(!t && closed == 1);
  mpi_transport.count = 0;
  assert_fails(cli_task_connect(&spec, "ps=1,worker=2", &t), TFC_UNAVAILABLE, "no MPI");
  assert_int_equal(closed, 1);
  tfc_cluster_spec_deinit(&spec);
}

static void test_closing(void **state) {
  (void)state;
  static struct test_caught err;
  tfc_status s = tfc_status_make(TFC_INVALID_ARGUMENT, "no such thing");
  struct tfc_transport t = {.type = &test_type, .count = 2};
  closed = failed_code = 0;
  test_catch(&err, stderr);
  cli_task_close(&t, "tfc-x", "/job:worker/task:1", s);
  test_caught_end(&err);
  assert_string_equal(err.text, "tfc-x: /job:worker/task:1: no such thing\n");
  assert_true(failed_code == 3 && closed == 1 && !strcmp(failed_why, "no such thing"));
  // One that is alone, one that has joined, and one without an error: nobody else waits.
  failed_code = 0, t.count = 1;
  test_catch(&err, stderr);
  cli_task_close(&t, "tfc-x", "a", s);
  t.count = 2;
  cli_task_close(&t, "tfc-x", "a", NULL);
  cli_task_close(NULL, "tfc-x", "a", s);
  test_caught_end(&err);
  assert_string_equal(err.text, "");
  assert_true(failed_code == 0 && closed == 3);
  tfc_status_free(s);
}

// Open MPI under Slurm is told how to start, and what the user has told it stays.
static void test_start_under_slurm(void **state) {
  (void)state;
  static const char variable[] = "OMPI_MCA_pmix_base_async_modex";
  static const struct {
    const char *rank, *tasks, *given, *becomes;
  } cases[] = {{"0", "4", NULL, "1"},  {"0", "4", "0", "0"},  {NULL, "4", NULL, NULL},
               {"0", "1", NULL, NULL}, {"0", "2", NULL, "1"}, {"0", NULL, NULL, NULL}};
  unsetenv("OMPI_COMM_WORLD_SIZE");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_cluster_spec spec = {0};
    struct tfc_transport *t = NULL;
    cases[i].rank ? setenv("PMIX_RANK", cases[i].rank, 1) : unsetenv("PMIX_RANK");
    cases[i].tasks ? setenv("SLURM_NTASKS", cases[i].tasks, 1) : unsetenv("SLURM_NTASKS");
    cases[i].given ? setenv(variable, cases[i].given, 1) : unsetenv(variable);
    mpi_transport = (struct tfc_transport){.type = &test_type, .count = 2};
    assert_ok(cli_task_connect(&spec, NULL, &t));
    tfc_cluster_spec_deinit(&spec);
    const char *value = getenv(variable);
    assert_true(!value == !cases[i].becomes && (!value || !strcmp(value, cases[i].becomes)));
  }
  unsetenv(variable), unsetenv("PMIX_RANK"), unsetenv("SLURM_NTASKS");
}

// A file may have '=' in its name; what is no file is a list of jobs.
static void test_files_of_specs(void **state) {
  (void)state;
  char folder[TEST_FOLDER_SIZE], path[128];
  struct tfc_cluster_spec spec = {0};
  assert_int_equal(test_folder_make(folder, "task"), 0);
  command_put(folder, "a=1", "{\"ps\": [\"h:1\"], \"worker\": [\"h:2\", \"h:3\", \"h:4\"]}");
  snprintf(path, sizeof path, "%s/a=1", folder);
  assert_ok(cli_task_spec(path, &spec));
  assert_int_equal(spec.tasks.count, 4);
  tfc_cluster_spec_deinit(&spec);
  command_put(folder, "plain", "{\"cluster\": {\"worker\": [\"h:2\"]}}");
  snprintf(path, sizeof path, "%s/plain", folder);
  assert_ok(cli_task_spec(path, &spec));
  assert_int_equal(spec.tasks.count, 1);
  tfc_cluster_spec_deinit(&spec);
  command_put(folder, "plain", "{\"worker\": 7}");
  assert_fails(cli_task_spec(path, &spec), TFC_INVALID_ARGUMENT, path);
  assert_int_equal(test_folder_remove(folder), 0);
}

static void test_devices(void **state) {
  (void)state;
  static const struct {
    const char *names, *list; // for worker 0
  } cases[] = {{"/job:worker/task:0/device:GPU:2", "gpu:2"},
               {"/job:worker/task:0/device:GPU:2,/job:worker/task:0/device:GPU:0", "gpu:2,gpu:0"},
               {"/job:worker/task:0/device:GPU:1,/job:worker/task:0/device:CPU:0", "cpu:0,gpu:1"},
               {"/job:worker/task:1/device:GPU:1", "cpu:0"},
               {"/job:*/device:CPU:1,/job:ps/task:0/device:CPU:3", "cpu:0-1"},
               {"/job:worker/task:0/device:CPU:*,/job:worker/task:0/device:CPU:1", "cpu:0-1"}};
  char *list = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_ok(cli_task_devices(cases[i].names, "/job:worker/task:0", &list));
    assert_string_equal(list, cases[i].list);
    free(list);
  }
  list = NULL;
  // Names of other tasks have to be names, too.
  assert_fails(cli_task_devices("/job:ps/task:0/device:GPU:*", "/job:worker/task:0", &list), TFC_INVALID_ARGUMENT,
               "'/job:ps/task:0/device:GPU:*': name GPUs by their numbers");
  assert_fails(
      cli_task_devices("/job:worker/task:0/device:CPU:0,/job:ps/task:0/device:CPU:x", "/job:worker/task:0", &list),
      TFC_INVALID_ARGUMENT, "x");
  assert_null(list);
}

// --- Cores -----------------------------------------------------------------------------------------------------------

static const int numbers[] = {1, 2, 3, 5, 8, 9, 10, 63};
// The cores that a task gets, as numbers in the list of those that may be used; "": it keeps all.
static const char *cores_of(uint32_t beside, uint32_t count, const uint32_t *ranks, const char *cluster,
                            uint32_t cores) {
  static char text[64];
  struct tfc_cluster_spec spec = {0};
  struct cli_task_mask mask;
  const struct tfc_transport t = {.beside = beside, .beside_count = count, .beside_ranks = ranks, .count = count};
  size_t at = 0;
  CPU_ZERO(&allowed_cores);
  for (uint32_t i = 0; i < cores; i++) CPU_SET(numbers[i], &allowed_cores);
  if (cluster) assert_ok(tfc_cluster_spec_parse(tfc_str_from(cluster), &spec));
  set_calls = 0;
  cli_task_share_cores(&t, cluster ? &spec : NULL, &mask);
  const int calls = set_calls;
  text[0] = 0;
  for (uint32_t i = 0; calls && i < cores; i++)
    if (CPU_ISSET(numbers[i], &own_cores)) at += (size_t)snprintf(text + at, sizeof text - at, "%u", i);
  if (calls) assert_int_equal(CPU_COUNT(&own_cores), at); // and no other core
  cli_task_leave_cores(&mask);
  assert_true(set_calls == calls + 1 && CPU_EQUAL(&own_cores, &allowed_cores));
  cli_task_share_cores(&t, cluster ? &spec : NULL, NULL); // nobody asks for what was before
  tfc_cluster_spec_deinit(&spec);
  return text;
}

static void test_cores(void **state) {
  (void)state;
  static const uint32_t some[] = {0, 2, 3};
  static const struct {
    uint32_t beside, count, cores;
    const uint32_t *ranks;
    const char *cluster, *own;
  } cases[] = {{0, 1, 8, NULL, NULL, ""},
               {0, 2, 8, NULL, NULL, "0123"},
               {1, 2, 8, NULL, NULL, "4567"},
               {0, 3, 8, NULL, NULL, "01"},
               {2, 3, 8, NULL, NULL, "45"},
               {7, 8, 8, NULL, NULL, "7"},
               {4, 5, 3, NULL, NULL, "1"}, // more tasks than cores
               {3, 5, 3, NULL, NULL, "0"},
               {0, 3, 8, NULL, "ps=1,worker=2", "01"}, // a third for the ps, a half for each worker
               {1, 3, 8, NULL, "ps=1,worker=2", "0123"},
               {2, 3, 8, NULL, "ps=1,worker=2", "4567"},
               {0, 3, 8, NULL, "worker=2,ps=1", "0123"},
               {1, 3, 8, NULL, "worker=2,ps=1", "4567"},
               {2, 3, 8, NULL, "worker=2,ps=1", "45"},
               {0, 2, 8, NULL, "ps=2", "0123"}, // nobody works beside them
               {1, 2, 8, NULL, "ps=2", "4567"},
               {1, 2, 8, NULL, "ps=1,worker=1", ""}, // the only worker
               {0, 2, 8, NULL, "ps=1,worker=1", "0123"},
               {0, 3, 8, some, "ps=1,a=1,b=2", "01"}, // ranks 0, 2 and 3 are on this host
               {1, 3, 8, some, "ps=1,a=1,b=2", "0123"},
               {2, 3, 8, some, "ps=1,a=1,b=2", "4567"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *own = cores_of(cases[i].beside, cases[i].count, cases[i].ranks, cases[i].cluster, cases[i].cores);
    if (strcmp(own, cases[i].own) != 0) fail_msg("case %zu: '%s', not '%s'", i, own, cases[i].own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_connecting),        cmocka_unit_test(test_closing),
                                     cmocka_unit_test(test_start_under_slurm), cmocka_unit_test(test_files_of_specs),
                                     cmocka_unit_test(test_devices),           cmocka_unit_test(test_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
