// Tests what happens if gnuplot hangs: a signal ends it with everything that it has started, the program ends with 130,
// and no page is left that lacks its plots. What was found before is kept.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/large_problem.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"

static char folder[64];

static int set_up(void **state) {
  (void)state;
  char path[96];
  struct sample_run sample;
  if (test_folder_make(folder, "hanging-plots")) return -1;
  // The shell ignores what can be ignored, and so does the program that it starts.
  command_put(folder, "gnuplot",
              "#!/bin/sh\ntrap '' INT TERM HUP\necho half of a picture\nsleep 300 &\necho $$ $! >pids\nwait\n");
  command_put(folder, "costs.json",
              "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"k80\"], \"nodes\": [{\"name\": \"a\", "
              "\"time_us\": {\"k80\": 5}}, {\"name\": \"b\", \"time_us\": {\"k80\": 6}}], \"edges\": []}");
  large_problem_put(folder);
  // wait_for_gnuplot: waits until gnuplot runs. end SIGNAL PID: sends the signal to the program; prints whether the
  // program had ended before, its exit code, which of gnuplot's processes are alive after 10 s, and the page's files.
  command_put(folder, "functions",
              "wait_for_gnuplot() { n=0; until [ -s pids ] || [ $n = 3000 ]; do n=$((n + 1)); sleep 0.01; done; }\n"
              "ended() { case $(cat /proc/$1/stat 2>/dev/null) in ''|*') Z '*) ;; *) false ;; esac; }\n"
              "end() { kill -$1 $2 || echo 'ended before'; wait $2; echo \"code $?\"; for p in $(cat pids); do\n"
              "  n=0; until ended $p || [ $n = 1000 ]; do n=$((n + 1)); sleep 0.01; done\n"
              "  ended $p || { echo \"alive $p\"; kill -9 $p; }\n"
              "done; rm -f pids; ls page/* 2>/dev/null; true; }\n");
  snprintf(path, sizeof path, "%s/tfc.db", folder);
  if (sample_run_write(path, 1, &sample)) return -1;
  return command("cd %s && chmod +x gnuplot", folder)->code;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define HERE "cd %s && . ./functions && export PATH=\"$PWD:$PATH\" && rm -rf page && "

static void check(const struct command_result *r, const char *says) {
  assert_result(r, 0, says);
  if (strcmp(r->out, "code 130\n") != 0) fail_msg("not only 'code 130': %s%s", r->out, r->err);
}

static void test_report(void **state) {
  (void)state;
  static const char *const signals[] = {"INT", "TERM", "HUP"};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    check(
        command(HERE "{ tfc-report --db tfc.db show 1 --out page & wait_for_gnuplot; end %s $!; }", folder, signals[i]),
        "interrupted while gnuplot was drawing the plots");
}

#define PLACE "{ tfc-place --out p.json --report page --db place.db %s >out & "

// The answer was written before.
static void test_place(void **state) {
  (void)state;
  check(command(HERE PLACE "wait_for_gnuplot; end TERM $!; }", folder,
                "--graph costs.json --machine " TFC_SOURCE_DIR "/configs/4xk80.yaml --evaluations 10"),
        "interrupted while gnuplot was drawing the plots");
  assert_exit(0, "", "cd %s && grep -q tfc-placement p.json && rm p.json", folder);
}

// The first signal ends the search; its answer and the report are written all the same. The second signal ends the
// report. (A signal within half a second of the first one would count as the same.)
static void test_second_signal(void **state) {
  (void)state;
  check(command(HERE "rm -f place.db; " PLACE "until " LARGE_PROBLEM_BEGUN(
                    "place.db") "; do sleep 0.02; done; kill -INT $!; wait_for_gnuplot; sleep 0.7; end INT $!; }",
                folder, "--graph large.json --machine slow.yaml --algorithm anneal --time 600s"),
        "");
  assert_exit(0, "", "cd %s && grep -q tfc-placement p.json", folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_place),
      cmocka_unit_test(test_second_signal),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
