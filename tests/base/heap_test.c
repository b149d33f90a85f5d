// Tests heaps: entries come out in order, whatever the order and number of the entries put in.
#include "tests/common/test.h"

#include <stdlib.h>

#include "runtime/base/heap.h"

enum { MOST = 200 };

static inline bool sooner(const double *time, uint32_t a, uint32_t b) {
  return time[a] < time[b];
}
TFC_HEAP(waiting, uint32_t, const double *, sooner)

static double time_of[MOST];

static void check_sorted(uint32_t *heap, size_t count) {
  double last = -1;
  bool seen[MOST] = {0};
  while (count) {
    const uint32_t id = waiting_pop(heap, count--, time_of);
    assert_true(time_of[id] >= last);
    assert_false(seen[id]);
    seen[id] = true;
    last = time_of[id];
  }
}

static void entries_come_out_in_order(void **state) {
  (void)state;
  uint32_t heap[MOST];
  srand(1);
  for (size_t n = 1; n <= MOST; n++) {
    for (uint32_t i = 0; i < n; i++) time_of[i] = rand() % 50; // many are equal
    for (uint32_t i = 0; i < n; i++) waiting_push(heap, i, i, time_of);
    check_sorted(heap, n);
  }
}

static void an_array_becomes_a_heap(void **state) {
  (void)state;
  uint32_t heap[MOST];
  for (uint32_t i = 0; i < MOST; i++) heap[i] = i, time_of[i] = (i * 37) % MOST;
  for (size_t i = MOST / 2; i-- > 0;) waiting_sink(heap, MOST, i, heap[i], time_of);
  assert_true(time_of[heap[0]] == 0);
  check_sorted(heap, MOST);
}

static void the_first_is_replaced(void **state) {
  (void)state;
  uint32_t heap[4];
  for (uint32_t i = 0; i < 4; i++) time_of[i] = i, waiting_push(heap, i, i, time_of);
  time_of[4] = 2.5;
  waiting_sink(heap, 4, 0, 4, time_of);
  const uint32_t expected[] = {1, 2, 4, 3};
  for (size_t i = 0; i < 4; i++) assert_int_equal(waiting_pop(heap, 4 - i, time_of), expected[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_come_out_in_order),
      cmocka_unit_test(an_array_becomes_a_heap),
      cmocka_unit_test(the_first_is_replaced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
