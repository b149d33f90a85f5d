// Host-backed device memory: a limit counts every byte that was allocated from the system; cached blocks are freed
// before an allocation is refused; without a limit cached blocks are reused without further checks.
#include "tests/common/test.h"

#include <pthread.h>

#include "runtime/base/random.h"
#include "runtime/device/memory.h"

static void to_the_byte(void **state) {
  (void)state;
  struct tfc_memory m;
  struct tfc_buffer *b[4] = {0};
  const uint64_t piece = 9000000, limit = 3 * piece;
  assert_null(tfc_memory_init(&m, "emu:0", limit, 0));
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 3; i++) assert_ok(tfc_memory_allocate(&m, piece, &b[i]));
    assert_true(m.account->taken == limit && tfc_memory_held(&m) == limit);
    assert_fails(tfc_memory_allocate(&m, 1, &b[3]), TFC_RESOURCE_EXHAUSTED,
                 "emu:0: out of memory: 1 B asked for, 27.0 MB in use, limit 27.0 MB, largest free block 0 B");
    for (int i = 0; i < 3; i++) tfc_buffer_release(b[i]);
    assert_true(m.account->taken == limit && tfc_memory_held(&m) == 0); // freed blocks are cached
    assert_true(tfc_account_take(
        m.account, piece + 1)); // an allocation that is no block of the device: a string, an element of a list
    assert_true(m.account->taken == limit - piece + 1 && !tfc_account_take(m.account, limit));
    tfc_account_give(m.account, piece + 1);
    assert_ok(tfc_memory_allocate(&m, limit - 64, &b[0]));
    assert_ok(tfc_memory_allocate(&m, 64, &b[1]));
    assert_fails(tfc_memory_allocate(&m, 0, &b[2]), TFC_RESOURCE_EXHAUSTED, "largest free block 0 B");
    tfc_buffer_release(b[0]);
    tfc_buffer_release(b[1]);
  }
  const struct tfc_memory_account *account = m.account; // is never freed
  tfc_memory_deinit(&m);
  assert_true(account->taken == 0);
}

enum { LIVE = 30, ROUNDS = 20000, THREADS = 3 };
static struct tfc_memory shared;
static void *give_and_take(void *arg) {
  struct tfc_random random;
  struct tfc_buffer *live[LIVE] = {0};
  uintptr_t refused = 0;
  tfc_random_init(&random, (uint64_t)(uintptr_t)arg);
  for (int i = 0; i < ROUNDS; i++) {
    struct tfc_buffer **at = &live[tfc_random_below(&random, LIVE)];
    if (*at) {
      tfc_buffer_release(*at);
      *at = NULL;
      continue;
    }
    const size_t bytes = (size_t)1 << (6 + tfc_random_below(&random, 12)),
                 size = bytes + tfc_random_below(&random, bytes);
    tfc_status s = tfc_memory_allocate(&shared, size, at);
    if (s) {
      refused += tfc_status_code(s) == TFC_RESOURCE_EXHAUSTED;
      tfc_status_free(s);
    } else {
      for (size_t k = 0; k < size; k += 4096) ((volatile char *)(*at)->data)[k] = (char)i;
    }
  }
  for (int i = 0; i < LIVE; i++) tfc_buffer_release(live[i]);
  return (void *)refused;
}

static void side_by_side(void **state) {
  (void)state;
  for (int limited = 0; limited < 2; limited++) {
    pthread_t threads[THREADS];
    uintptr_t refused = 0;
    assert_null(tfc_memory_init(&shared, "emu:0", limited ? 1200000 : UINT64_MAX, 0));
    for (uintptr_t i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, give_and_take, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
      void *one = NULL;
      pthread_join(threads[i], &one);
      refused += (uintptr_t)one;
    }
    assert_true(limited ? refused > 100 : refused == 0);
    assert_true(tfc_memory_held(&shared) == 0 && shared.account->taken <= shared.account->limit);
    const struct tfc_memory_account *account = shared.account;
    tfc_memory_deinit(&shared);
    assert_true(account->taken == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(to_the_byte), cmocka_unit_test(side_by_side)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
