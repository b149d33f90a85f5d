// Jobs of one task, which need no mpirun: the programs are run as users do. What such a job leaves of its failure, and
// what it says of devices that it does not have.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/failure.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[TEST_FOLDER_SIZE];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "one-task");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define JOB "tfc-run --cluster worker=1 --supervise %s/saved --json"
static void test_failure_is_kept(void **state) {
  (void)state;
  char path[96];
  snprintf(path, sizeof path, "%s/saved", folder);
  assert_int_equal(cli_failure_read(NULL), 0);
  assert_int_equal(cli_failure_read(path), 0);
  command_put(folder, "bad.pb", "nonsense");
  assert_exit(3, "bad.pb", JOB " --graph %s/bad.pb --steps 1", folder, folder);
  assert_int_equal(cli_failure_read(path), 3);
  const struct command_result *r = command("cat %s/failure", path);
  assert_int_equal(strncmp(r->out, "3 /job:worker/task:0: ", 22), 0);
  assert_null(strstr(r->out + 22, "/job:worker/task:0: ")); // the task is named once
  assert_non_null(strstr(r->out, "bad.pb: line 1"));
  // a job that ends well removes it
  assert_exit(0, "", JOB " --graph %s/examples/ridge.pb --steps 2", folder, TFC_SOURCE_DIR);
  assert_int_equal(cli_failure_read(path), 0);
  assert_int_not_equal(access(path, F_OK), -1);
  snprintf(path, sizeof path, "%s/saved/failure", folder);
  assert_int_equal(access(path, F_OK), -1);

  // Only what would come again is kept.
  snprintf(path, sizeof path, "%s/codes", folder);
  for (int code = 0; code < 140; code++) {
    cli_failure_leave(path, code, "task", "why");
    assert_int_equal(cli_failure_read(path), code == 2 || code == 3 || code == 5 ? code : 0);
    cli_failure_forget(path);
    assert_int_equal(cli_failure_read(path), 0);
  }
  command_put(folder, "failure", "4 another task was lost\n");
  assert_int_equal(cli_failure_read(folder), 0);
  command_put(folder, "failure", "nothing\n");
  assert_int_equal(cli_failure_read(folder), 0);
  cli_failure_forget(NULL);
}

// A job of one task trains as a program by itself does, and its profile counts what a step has.
static void test_alone(void **state) {
  (void)state;
  assert_exit(0, "/job:worker/task:0 on ",
              "tfc-run --cluster worker=1 --graph %s/examples/ridge.pb --steps 4 --warmup 1 --profile --db %s/alone.db",
              TFC_SOURCE_DIR, folder);
  const struct command_result *r = command("tfc-report --db %s/alone.db show 1", folder);
  assert_result(r, 0, "");
  assert_non_null(strstr(r->out, "    4   1.000x")); // four steps
  // a device that this task does not have, and names that are none
  assert_exit(4, "/job:worker/task:0: ",
              "tfc-run --cluster worker=1 --graph %s/examples/ridge.pb --steps 1 --devices gpu:77", TFC_SOURCE_DIR);
  assert_exit(3, "--cluster worker=0", "tfc-run --cluster worker=0 --graph %s/examples/ridge.pb --steps 1",
              TFC_SOURCE_DIR);
}

// tfc-place in a job of one task: it places, and what it asks for is what it was given.
static void test_place_alone(void **state) {
  (void)state;
  assert_exit(
      0, "/job:worker/task:0 on ",
      "tfc-place --wait --cluster worker=1 --graph %s/examples/ridge.pb --time 3s --measurements 2 --report none "
      "--db %s/place.db --out %s/place.json; c=$?; [ $c = 7 ] && exit 0; exit $c",
      TFC_SOURCE_DIR, folder, folder);
  const struct command_result *r = command("cat %s/place.json", folder);
  assert_non_null(strstr(r->out, "\"/job:worker/task:0/device:CPU:0\""));
  static const struct {
    const char *devices, *says;
    int code;
  } wrong[] = {{"/job:worker/task:0", "'/job:worker/task:0' is not /job:NAME/task:N/device:TYPE:N", 3},
               {"/job:worker/task:0/device:TPU:0", "devices of tasks are CPU:N or GPU:N", 3},
               {"/job:worker/task:*/device:GPU:*", "name GPUs by their numbers", 3},
               {"/job:worker/task:0/device:CPU:x", "x", 3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_exit(
        wrong[i].code, wrong[i].says,
        "tfc-place --wait --cluster worker=1 --graph %s/examples/ridge.pb --time 3s --report none --db %s/no.db "
        "--out %s/no.json --devices '%s'",
        TFC_SOURCE_DIR, folder, folder, wrong[i].devices);
  assert_exit(2, "--restarts needs --cluster", "tfc-place --graph %s/examples/ridge.pb --restarts 1", TFC_SOURCE_DIR);
  static const char *const refused[] = {"--machine m.yaml", "--checkpoint c", "--untrusted", "--objective throughput"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    assert_exit(2, "several", "tfc-place --cluster worker=1 --graph %s/examples/ridge.pb %s", TFC_SOURCE_DIR,
                refused[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_failure_is_kept), cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_place_alone)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
