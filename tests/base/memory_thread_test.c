// The account of memory, asked by several threads at once.
#include "tests/common/test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/memory_left.h"

enum { THREADS = 4, PROCESSES = 40 };

static pthread_barrier_t barrier;

static void *mark(void *unused) {
  pthread_barrier_wait(&barrier);
  tfc_memory_mark();
  return unused;
}

// The first marks of a process, all at the same moment. Where a sanitizer's allocator stands in for the C library's,
// they are the first that the library's own allocator sees: it must be set up once.
static void first_marks(void **state) {
  (void)state;
  for (int i = 0; i < PROCESSES; i++) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t threads[THREADS];
      if (pthread_barrier_init(&barrier, NULL, THREADS)) _exit(2);
      for (int k = 0; k < THREADS; k++)
        if (pthread_create(&threads[k], NULL, mark, NULL)) _exit(2);
      for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
      _exit(0);
    }
    assert_true(child > 0);
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_marks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
