// Device memory on a fake of the CUDA calls. A limit counts, to the byte, what was allocated with CUDA. Freed blocks
// that the driver keeps are given back to CUDA before a request is refused, so a refused request would not have fitted.
#include "tests/common/test.h"

#include "runtime/base/random.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/staging.h"
#include "tests/common/cuda_fake.h"

static struct tfc_cuda_memory *memory_of(struct tfc_device *d) {
  return &tfc_cuda_device_of(d)->memory;
}

// These sizes are not multiples of a size class. If they were rounded up, neither three blocks nor the two blocks of a
// planned step would fit into the limit.
static void to_the_byte(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_buffer *b[4] = {0};
  const uint64_t limit = 3 * 9000001;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1});
  const struct tfc_memory_limit of_all = {"vgpu:*", limit};
  assert_ok(tfc_devices_open("vgpu:0-1", &of_all, 1, &set));
  struct tfc_device *d = set.devices[0];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 3; i++) assert_ok(d->driver->allocate(d, 9000001, &b[i]));
    assert_int_equal(tfc_cuda_fake_bytes(), limit);
    assert_int_equal(d->driver->in_use(d), limit);
    assert_fails(d->driver->allocate(d, 1, &b[3]), TFC_RESOURCE_EXHAUSTED,
                 "vgpu:0: out of memory: 1 B asked for, 27.0 MB in use, limit 27.0 MB, largest free block 0 B");
    for (int i = 0; i < 3; i++) tfc_buffer_release(b[i]);
    assert_int_equal(tfc_cuda_fake_bytes(), limit); // the driver keeps the freed blocks
    assert_ok(d->driver->allocate(d, limit - 1000, &b[0]));
    assert_int_equal(tfc_cuda_fake_bytes(), limit - 1000);
    assert_fails(d->driver->allocate(d, 1001, &b[1]), TFC_RESOURCE_EXHAUSTED, "largest free block 1.0 kB");
    assert_ok(d->driver->allocate(d, 1000, &b[1]));
    tfc_buffer_release(b[0]);
    tfc_buffer_release(b[1]);
  }
  assert_int_equal(memory_of(d)->peak, limit);
  assert_int_equal(memory_of(set.devices[1])->peak, 0);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
}

enum { LIVE = 40, ROUNDS = 20000 };
static void at_random(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_random random;
  struct tfc_buffer *live[LIVE] = {0};
  uint64_t most = 0;
  int refused = 0, asked = 0;
  const uint64_t limit = 10000000;
  tfc_random_init(&random, 5);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1});
  const struct tfc_memory_limit of_all = {"gpu:0", limit};
  assert_ok(tfc_devices_open("gpu:0", &of_all, 1, &set));
  struct tfc_device *d = set.devices[0];
  for (int i = 0; i < ROUNDS; i++) {
    struct tfc_buffer **at = &live[tfc_random_below(&random, LIVE)];
    if (*at) {
      tfc_buffer_release(*at);
      *at = NULL;
      continue;
    }
    const size_t bytes = (size_t)1 << (8 + tfc_random_below(&random, 13)),
                 size = bytes + tfc_random_below(&random, bytes);
    const uint64_t held = d->driver->in_use(d);
    asked++;
    tfc_status s = d->driver->allocate(d, size, at);
    if (s) {
      assert_int_equal(tfc_status_code(s), TFC_RESOURCE_EXHAUSTED);
      tfc_status_free(s);
      refused++;
      assert_true(held + size > limit);
      assert_int_equal(tfc_cuda_fake_bytes(), held); // all freed blocks were given back to CUDA
    }
    assert_true(tfc_cuda_fake_bytes() <= limit);
    assert_int_equal(tfc_cuda_fake_bytes(), memory_of(d)->taken);
    if (tfc_cuda_fake_bytes() > most) most = tfc_cuda_fake_bytes();
  }
  assert_int_equal(memory_of(d)->peak, most);
  print_message("%d of %d refused, %llu asked of CUDA\n", refused, asked, (unsigned long long)memory_of(d)->calls);
  assert_true(refused > 20 && asked > 9000);
  assert_true(memory_of(d)->calls < (uint64_t)asked * 6 / 10); // the other requests got a kept block
  for (int i = 0; i < LIVE; i++) tfc_buffer_release(live[i]);
  assert_true(d->driver->in_use(d) == 0);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
}

// Several devices share one GPU: when CUDA refuses one of them, the freed blocks that the others keep are given back
// first.
static void neighbours(void **state) {
  (void)state;
  struct tfc_device_set parts = {0}, whole = {0};
  struct tfc_buffer *b[4] = {0};
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1, .memory = 64 << 20});
  assert_ok(tfc_devices_open("vgpu:0-3", NULL, 0, &parts));
  assert_ok(tfc_devices_open_whole(parts.devices[0], &whole));
  struct tfc_device *all = whole.devices[0];
  for (int i = 0; i < 4; i++) assert_ok(parts.devices[i]->driver->allocate(parts.devices[i], 14 << 20, &b[i]));
  for (int i = 1; i < 4; i++) tfc_buffer_release(b[i]);
  assert_int_equal(tfc_cuda_fake_bytes(), 56 << 20);
  assert_ok(all->driver->allocate(all, 40 << 20, &b[1]));
  assert_int_equal(tfc_cuda_fake_bytes(), 54 << 20);
  assert_fails(all->driver->allocate(all, 12 << 20, &b[2]), TFC_RESOURCE_EXHAUSTED,
               "12.6 MB asked for, 41.9 MB in use, limit 62.9 MB, largest free block 10.5 MB");
  tfc_buffer_release(b[0]);
  tfc_buffer_release(b[1]);
  tfc_devices_close(&whole);
  tfc_devices_close(&parts);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// A piece of host memory for copies is taken alone: not with those that were kept behind it.
static void staged(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_cuda_staging *kept[2], *piece[3];
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1});
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_cuda_device *d = tfc_cuda_device_of(set.devices[0]);
  for (int i = 0; i < 2; i++) assert_ok(tfc_cuda_staging_take(d, 1000, &kept[i]));
  for (int i = 0; i < 2; i++) tfc_cuda_staging_give(d, kept[i]);
  for (int i = 0; i < 3; i++) {
    assert_ok(tfc_cuda_staging_take(d, 1000, &piece[i]));
    assert_null(piece[i]->next);
    assert_true(piece[i]->size >= 1000);
    if (i < 2) assert_true(piece[i] == kept[0] || piece[i] == kept[1]);
    for (int k = 0; k < i; k++) assert_ptr_not_equal(piece[k], piece[i]);
  }
  for (int i = 0; i < 3; i++) tfc_cuda_staging_give(d, piece[i]);
  tfc_devices_close(&set);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(to_the_byte), cmocka_unit_test(at_random),
                                     cmocka_unit_test(neighbours), cmocka_unit_test(staged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
