// --restarts with an mpirun of the test's own, which writes down how it was started and does what the test says: how
// often a job is started, with which words, what its exit code becomes, and what is done with an mpirun that does not
// end. The clock of cli/restart.c runs twenty times as fast.
#include "tests/common/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "tests/common/caught.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static int64_t fast_clock(void) {
  return 20 * tfc_now_ns();
}
#define tfc_now_ns fast_clock
#include "cli/restart.c"
#undef tfc_now_ns

static char folder[TEST_FOLDER_SIZE];
static struct test_caught err;
static const char *in(const char *name) {
  return test_folder_path(folder, name);
}
static void tell(const char *name, const char *text) { // an executable file
  command_put(folder, name, text);
  assert_int_equal(chmod(in(name), 0755), 0);
}
static int set_up(void **state) {
  (void)state;
  char path[4096];
  if (test_folder_make(folder, "restart")) return -1;
  snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
  return setenv("PATH", path, 1);
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// The first start ends with the first of these codes, the second one with the second, and so on. The words of each go
// into the file `words`.
static void mpirun_ends_with(const char *codes) {
  char script[1000];
  snprintf(script, sizeof script,
           "#!/bin/bash\ncd %s\nfor w in \"$@\"; do printf '%%s|' \"$w\" >>words; done\necho >>words\n"
           "read -r first rest <codes\necho \"$rest\" >codes\ncase $first in KILL) kill -KILL $$;; esac\n"
           "[ -e leave ] && cp leave failure\nexit $first\n",
           folder);
  tell("mpirun", script);
  command_put(folder, "codes", codes);
  unlink(in("words"));
}
static int asked;
static const char *again(void *user) {
  static const char *const said[] = {"--resume=1", NULL, "--resume=3", "--resume=4"};
  assert_true(user == &asked);
  return said[asked++];
}
static int starts(void) {
  int n = 0;
  for (const char *at = test_file_text(in("words")); (at = strchr(at, '\n')); at++) n++;
  return n;
}
static int run(const char *codes, int64_t restarts, const char *leaves) {
  char *argv[] = {(char[]){"tfc-x"}, (char[]){"--graph"}, (char[]){"g"},   (char[]){"--restarts"},
                  (char[]){"7"},     (char[]){"-q"},      (char[]){"end"}, NULL};
  mpirun_ends_with(codes);
  command_put(folder, "failure", "5 of a job before\n");
  unlink(in("leave"));
  if (leaves) command_put(folder, "leave", leaves);
  asked = 0;
  test_catch(&err, stderr);
  const int code = cli_restart(&(struct cli_restart){.program = "tfc-x",
                                                     .restarts = restarts,
                                                     .tasks = 12,
                                                     .argv = argv,
                                                     .folder = folder,
                                                     .again = again,
                                                     .user = &asked});
  test_caught_end(&err);
  return code;
}

static void test_codes(void **state) {
  (void)state;
  static const struct {
    const char *codes, *leaves; // leaves: what a task writes into the supervised folder
    int64_t restarts;
    int code, starts;
  } cases[] = {{"0 9", NULL, 3, 0, 1},
               {"4 4 0 9", NULL, 3, 0, 3},
               {"4 4 4 9", NULL, 2, 4, 3},
               {"4 9", NULL, 0, 4, 1},
               {"3 0", NULL, 3, 3, 1},
               {"1 0", NULL, 3, 1, 1},
               {"5 0", NULL, 3, 5, 1},
               {"130 0", NULL, 3, 130, 1},
               {"131 0", NULL, 3, 0, 2}, // a process that a signal ended
               {"139 137 2", NULL, 3, 2, 3},
               {"KILL 0", NULL, 1, 0, 2},
               {"KILL KILL 0", NULL, 1, 4, 2},
               {"4 0", "3 of a graph\n", 3, 3, 1}, // the failure would come again
               {"4 0", "4 of a task\n", 3, 0, 2},
               {"0 0", "3 of a graph\n", 3, 0, 1},
               {"1 0", "3 of a graph\n", 3, 1, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int code = run(cases[i].codes, cases[i].restarts, cases[i].leaves);
    if (code != cases[i].code || starts() != cases[i].starts || asked != cases[i].starts - 1)
      fail_msg("case %zu: code %d, %d starts, asked %d times: %s", i, code, starts(), asked, err.text);
    char line[80];
    for (int k = 1; k <= 4; k++) {
      snprintf(line, sizeof line, "the job has failed; restart %d of %d\n", k, (int)cases[i].restarts);
      SAYS(err, line, k < cases[i].starts);
    }
  }
}

// mpirun gets the program itself and all words but --restarts; after a failure one more, which replaces that of the
// failure before.
static void test_words(void **state) {
  (void)state;
  char self[4096], expected[9000];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(size > 0);
  self[size] = 0;
  assert_int_equal(run("4 4 4 0", 3, NULL), 0);
  int n = 0;
  static const char *const last[] = {"", "--resume=1|", "", "--resume=3|"};
  for (int i = 0; i < 4; i++)
    n += snprintf(expected + n, sizeof expected - (size_t)n,
                  "--oversubscribe|--bind-to|none|-n|12|%s|--graph|g|-q|end|%s\n", self, last[i]);
  assert_string_equal(test_file_text(in("words")), expected);
  static const char *const cases[][2] = {{"--restarts=3", ""}, {"--restarts-never", "--restarts-never"}, {"-x", "-x"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct command c = {0};
    char word[32], *argv[] = {(char[]){"--restarts"}, word, (char[]){"y"}, NULL};
    snprintf(word, sizeof word, "%s", cases[i][0]);
    assert_true(make_command(3, argv, &c));
    assert_string_equal(c.words[5], "3");
    assert_string_equal(c.words[6], self);
    assert_string_equal(c.words[7], cases[i][1][0] ? cases[i][1] : "y");
    assert_true(cases[i][1][0] ? !strcmp(c.words[8], "y") && !c.words[9] : !c.words[8]);
    free(c.words);
  }
}

static void test_no_mpirun(void **state) {
  (void)state;
  char *before = strdup(getenv("PATH"));
  unlink(in("mpirun"));
  setenv("PATH", "/nowhere", 1);
  char *argv[] = {(char[]){"tfc-x"}, NULL};
  test_catch(&err, stderr);
  const int code = cli_restart(&(struct cli_restart){.program = "tfc-x", .restarts = 2, .tasks = 2, .argv = argv});
  test_caught_end(&err);
  setenv("PATH", before, 1);
  free(before);
  assert_int_equal(code, 1);
  assert_string_equal(err.text, "tfc-x: mpirun cannot be started: No such file or directory (Debian: openmpi-bin)\n");
}

// --- What is seen of mpirun's processes ------------------------------------------------------------------------------

// Starts a process of this name, which ends when *out_pipe is closed.
static pid_t child(const char *name, int *out_pipe) {
  int ready[2], until[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  assert_int_equal(pipe(until), 0);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_NAME, name);
    close(until[1]);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    (void)!read(until[0], &byte, 1);
    _exit(0);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]), close(ready[1]), close(until[0]);
  *out_pipe = until[1];
  return pid;
}
static void wait_for_zombie(pid_t pid) {
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void test_stat(void **state) {
  (void)state;
  static const char *const names[] = {"plain", "a (b) c", "x) Z 1 (y", "fifteen letters"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[16], name[16] = "", process_state = 0;
    int until, parent = 0;
    const pid_t pid = child(names[i], &until);
    snprintf(text, sizeof text, "%d", (int)pid);
    for (int k = 0; k < 1000 && process_state != 'S'; k++) { // it comes to its read
      assert_true(read_stat(text, name, &process_state, &parent));
      usleep(1000);
    }
    assert_string_equal(name, names[i]);
    assert_int_equal(process_state, 'S');
    assert_int_equal(parent, getpid());
    close(until);
    wait_for_zombie(pid);
    assert_true(read_stat(text, name, &process_state, &parent));
    assert_int_equal(process_state, 'Z');
    waitpid(pid, NULL, 0);
    assert_false(read_stat(text, name, &process_state, &parent));
  }
}

static void test_processes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool ended, began, runs;
  } cases[] = {{"tfc-x", false, true, true},
               {"tfc-x", true, true, false},
               {"orted", false, false, true},
               {"orted", true, false, false},
               {"averylongname-o", false, false, true}};
  bool began = false;
  assert_false(has_processes(getpid(), "/usr/bin/tfc-x", &began));
  assert_false(began);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int until;
    const pid_t pid = child(cases[i].name, &until);
    if (cases[i].ended) close(until), wait_for_zombie(pid);
    began = false;
    assert_true(has_processes(getpid(), "/usr/bin/tfc-x", &began) == cases[i].runs);
    assert_true(began == cases[i].began);
    began = false;
    assert_true(has_processes(getpid(), "tfc-x", &began) == cases[i].runs); // a program without a folder
    assert_true(began == cases[i].began);
    began = true; // what was seen stays
    assert_true(has_processes(getpid(), "other", &began) == cases[i].runs && began);
    began = false; // another process's children
    assert_false(has_processes(pid, "tfc-x", &began) || began);
    if (!cases[i].ended) close(until);
    waitpid(pid, NULL, 0);
  }
  int until;
  const pid_t pid = child("averylongname-o", &until);
  began = false;
  assert_true(has_processes(getpid(), "/x/averylongname-of-a-program", &began) && began); // 15 letters are kept
  close(until);
  waitpid(pid, NULL, 0);
}

// --- An mpirun that does not end -------------------------------------------------------------------------------------

static int start_mpirun(const char *script, const char *program, double *out_s) {
  char text[1000];
  struct command c = {0};
  const char *words[] = {"mpirun", NULL, NULL};
  snprintf(text, sizeof text, "#!/bin/bash\ncd %s\n%s\n", folder, script);
  tell("mpirun", text);
  c.words = words;
  snprintf(c.program, sizeof c.program, "%s", program);
  test_catch(&err, stderr);
  const int64_t begin = fast_clock();
  const int code = start("tfc-x", &c);
  *out_s = 1e-9 * (double)(fast_clock() - begin);
  test_caught_end(&err);
  return code;
}

static void test_alone(void **state) {
  (void)state;
  double took;
  // Its task ends, but mpirun does not: mpirun is killed when ten looks, one a second, have found no process of it.
  assert_int_equal(start_mpirun("(exec -a x sleep 0.1) & exec sleep 1000", "/bin/sleep", &took), 4);
  SAYS(err, "all processes of mpirun have ended, and it has not: it is killed\n", 1);
  assert_true(took >= 10);
  // mpirun never had a task on this host, so its tasks are on other hosts, and mpirun is not killed.
  assert_int_equal(start_mpirun("exec sleep 1", "/bin/tfc-other", &took), 0);
  assert_string_equal(err.text, "");
  assert_true(took >= 20);
  // Its tasks run.
  assert_int_equal(start_mpirun("sleep 1 & wait; exit 3", "/bin/sleep", &took), 3);
  assert_string_equal(err.text, "");
}

// Ctrl-C, which a terminal sends to a group of processes, does not reach mpirun; and it ends if this program is killed.
static void test_group_and_death(void **state) {
  (void)state;
  double took;
  assert_int_equal(start_mpirun("[ \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ ] && exit 5; exit 6", "/bin/x", &took), 5);
  fflush(NULL);
  const pid_t program = fork();
  assert_true(program >= 0);
  if (program == 0) {
    start_mpirun("echo $$ >new; mv new pid; exec sleep 1000", "/bin/x", &took);
    _exit(0);
  }
  for (int k = 0; k < 6000 && !test_file_text(in("pid"))[0]; k++) usleep(10000);
  const pid_t pid = (pid_t)atoi(test_file_text(in("pid")));
  assert_true(pid > 0 && kill(pid, 0) == 0);
  kill(program, SIGKILL);
  waitpid(program, NULL, 0);
  int k = 0;
  for (char name[16], process_state = 0, text[16]; k < 6000; k++, usleep(10000)) { // nobody may wait for it: a zombie
    int parent;
    snprintf(text, sizeof text, "%d", (int)pid);
    if (!read_stat(text, name, &process_state, &parent) || process_state == 'Z') break;
  }
  assert_true(k < 6000);
}

static void on_ready(int number) {
  (void)number;
  tfc_program_stop();
}
// The last: a signal is remembered by the process. mpirun gets the signal that it passes on to its tasks, once, and 30
// s later the one that ends it.
static void test_signals(void **state) {
  (void)state;
  double took;
  signal(SIGUSR2, on_ready);
  assert_int_equal(start_mpirun("trap 'echo u >>signals' USR1; trap 'echo t >>signals; exit 0' TERM\n"
                                "kill -USR2 $PPID; for i in $(seq 1000); do sleep 0.02; done",
                                "/bin/x", &took),
                   130);
  assert_string_equal(test_file_text(in("signals")), "u\nt\n");
  assert_true(took >= 30);
  assert_int_equal(start_mpirun("trap 'exit 3' USR1; for i in $(seq 1000); do sleep 0.02; done", "/bin/x", &took), 130);
  // After a signal, mpirun is not started again. (The signal may come before mpirun has written anything.)
  assert_int_equal(run("4 0", 3, NULL), 130);
  assert_true(starts() <= 1 && asked == 0);
  SAYS(err, "the job has failed", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes),           cmocka_unit_test(test_words),
                                     cmocka_unit_test(test_no_mpirun),       cmocka_unit_test(test_stat),
                                     cmocka_unit_test(test_processes),       cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_group_and_death), cmocka_unit_test(test_signals)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
