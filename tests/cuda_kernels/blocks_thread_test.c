// What host.c promises to the kernels' tests: launches are refused as a GPU refuses them; blocks and threads run in
// both orders; and under the thread sanitizer, races between threads of a block or between blocks are reported, while
// what a barrier orders is not.
#include "tests/common/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda_kernels/host.h"

static void refusals(void **state) {
  (void)state;
  assert_int_equal(tfc_host_refusal(1, 256, 256), 0);
  assert_int_equal(tfc_host_refusal(0, 256, 256), 9);
  assert_int_equal(tfc_host_refusal((int64_t)1 << 31, 256, 256), 9);
  assert_int_equal(tfc_host_refusal(1, 0, 256), 9);
  assert_int_equal(tfc_host_refusal(1, 1025, 2048), 9);
  assert_int_equal(tfc_host_refusal(1, 257, 256), 701); // nobody has made sure that there are enough registers
  assert_int_equal(tfc_host_refusal(1, 1024, 1024), 0);
}

// --- Kernels -----------------------------------------------------------------------------------------------------
enum { BLOCKS = 4, THREADS = 64, ITEMS = BLOCKS * THREADS };
static int x[ITEMS], y[ITEMS];

static int item(void) {
  return (int)(blockIdx.x * THREADS + threadIdx.x);
}
static void every_thread_its_own(void *arg) {
  (void)arg;
  x[item()] = item();
}
static void neighbour_after_barrier(void *arg) {
  (void)arg;
  x[item()] = item();
  tfc_host_barrier();
  y[item()] = x[item() ^ 1];
  tfc_host_barrier();
  x[item() ^ 1] = y[item()];
}
static void neighbour_without_barrier(void *arg) {
  (void)arg;
  x[item()] = item();
  y[item()] = x[item() ^ 1];
}
static void far_neighbour_after_one_barrier(void *arg) { // a second barrier is missing
  (void)arg;
  x[item()] = item();
  tfc_host_barrier();
  y[item()] = x[item() ^ 32];
  x[item()] = 0;
}
static void next_block(void *arg) {
  (void)arg;
  x[item()] = item();
  y[item()] = x[(item() + THREADS) % ITEMS];
}
static void run(void (*kernel)(void *arg), bool takes_turns) {
  memset(x, 0, sizeof x);
  memset(y, 0, sizeof y);
  tfc_host_grid(BLOCKS, THREADS, takes_turns, kernel, NULL);
}

static void all_run(void **state) {
  (void)state;
  for (int backwards = 0; backwards < 2; backwards++) {
    cuda_host_backwards = backwards;
    run(every_thread_its_own, false);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(x[i], i);
    run(every_thread_its_own, true);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(x[i], i);
    run(neighbour_after_barrier, true);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(y[i], i ^ 1);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(x[i], i);
  }
  cuda_host_backwards = false;
}

#ifndef TFC_HOST_RACES
// Whether a kernel gives the same results in both orders.
static bool same_backwards(void (*kernel)(void *arg), bool takes_turns) {
  int first[2][ITEMS];
  run(kernel, takes_turns);
  memcpy(first[0], x, sizeof x);
  memcpy(first[1], y, sizeof y);
  cuda_host_backwards = true;
  run(kernel, takes_turns);
  cuda_host_backwards = false;
  return !memcmp(first[0], x, sizeof x) && !memcmp(first[1], y, sizeof y);
}
static void order_shows(void **state) {
  (void)state;
  assert_true(same_backwards(neighbour_after_barrier, true));
  assert_false(same_backwards(neighbour_without_barrier, true));
  assert_false(same_backwards(neighbour_without_barrier, false));
  assert_false(same_backwards(far_neighbour_after_one_barrier, true));
  assert_false(same_backwards(next_block, false));
}
#else
static const struct {
  const char *name;
  void (*kernel)(void *arg);
  bool takes_turns, races;
} cases[] = {
    {"every_thread_its_own", every_thread_its_own, false, false},
    {"every_thread_its_own", every_thread_its_own, true, false},
    {"neighbour_after_barrier", neighbour_after_barrier, true, false},
    {"neighbour_without_barrier", neighbour_without_barrier, true, true},
    {"neighbour_without_barrier", neighbour_without_barrier, false, true},
    {"far_neighbour_after_one_barrier", far_neighbour_after_one_barrier, true, true},
    {"next_block", next_block, true, true},
    {"next_block", next_block, false, true},
};
// The thread sanitizer reports the races that there are, and no others. Each case runs in a process of its own, whose
// exit status says whether something was reported.
static void races(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char number[16];
    snprintf(number, sizeof number, "%zu", i);
    pid_t child = fork();
    if (child == 0) {
      const int nowhere = open("/dev/null", O_WRONLY);
      if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0)
        execl("/proc/self/exe", "blocks_thread_test", number, (char *)NULL);
      _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != (cases[i].races ? 66 : 0))
      fail_msg("%s, case %zu: exit status %d", cases[i].name, i, WEXITSTATUS(status));
  }
}
#endif

int main(int argc, char **argv) {
#ifdef TFC_HOST_RACES
  if (argc == 2) { // one of `cases`
    const size_t i = strtoul(argv[1], NULL, 10);
    if (i < sizeof cases / sizeof *cases) run(cases[i].kernel, cases[i].takes_turns);
    return 0;
  }
#else
  (void)argc, (void)argv;
#endif
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals),
      cmocka_unit_test(all_run),
#ifdef TFC_HOST_RACES
      cmocka_unit_test(races),
#else
      cmocka_unit_test(order_shows),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
