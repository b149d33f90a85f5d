// Tests messages between a program and its measuring worker: a complete message arrives as it was sent, a broken one
// gives an error.
#include "tests/common/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "placer/measure/wire.h"

static void test_round_trip(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  struct tfc_pack p = {0};
  uint32_t numbers[] = {1, 2, 3};
  tfc_pack_u32(&p, 7);
  tfc_pack_u64(&p, UINT64_MAX);
  tfc_pack_f64(&p, -0.5);
  tfc_pack_str(&p, TFC_STR("a name"));
  tfc_pack_array(&p, numbers, 3, sizeof *numbers);
  tfc_pack_str(&p, (tfc_str){0});
  assert_ok(tfc_wire_send(ends[0], TFC_WIRE_BATCH, &p));
  assert_ok(tfc_wire_send(ends[0], TFC_WIRE_DONE, NULL));
  tfc_wire_buffer buffer = {0};
  uint32_t type = 0;
  assert_ok(tfc_wire_receive(ends[1], 1000000000, NULL, &type, &buffer));
  assert_int_equal(type, TFC_WIRE_BATCH);
  struct tfc_unpack u = {buffer.data, buffer.data + buffer.count, false};
  assert_int_equal(tfc_unpack_u32(&u), 7);
  assert_true(tfc_unpack_u64(&u) == UINT64_MAX);
  assert_true(tfc_unpack_f64(&u) == -0.5);
  assert_true(tfc_str_is(tfc_unpack_str(&u), "a name"));
  size_t count = 0;
  const void *array = tfc_unpack_array(&u, sizeof *numbers, &count);
  assert_int_equal(count, 3);
  assert_memory_equal(array, numbers, sizeof numbers);
  assert_int_equal(tfc_unpack_str(&u).size, 0);
  assert_true(!u.failed && u.at == u.end);
  assert_ok(tfc_wire_receive(ends[1], 1000000000, NULL, &type, &buffer));
  assert_int_equal(type, TFC_WIRE_DONE);
  assert_int_equal(buffer.count, 0);
  tfc_array_free(&p.bytes);
  tfc_array_free(&buffer);
  close(ends[0]);
  close(ends[1]);
}

// A message that is cut off at any byte, or contains a wrong size, gives an error; nothing beyond its end is read.
static void test_broken_messages(void **state) {
  (void)state;
  struct tfc_pack p = {0};
  tfc_pack_u32(&p, 7);
  tfc_pack_str(&p, TFC_STR("text"));
  tfc_pack_u64(&p, 9);
  for (size_t n = 0; n < p.bytes.count; n++) {
    struct tfc_unpack u = {p.bytes.data, p.bytes.data + n, false};
    tfc_unpack_u32(&u);
    tfc_unpack_str(&u);
    assert_true(tfc_unpack_u64(&u) == 0);
    assert_true(u.failed);
  }
  tfc_array_free(&p.bytes);
  uint64_t lie = UINT64_MAX / 4;
  struct tfc_unpack u = {(const char *)&lie, (const char *)&lie + sizeof lie, false};
  size_t count = 1;
  tfc_unpack_array(&u, 16, &count);
  assert_true(u.failed && count == 0);
}

static void test_nobody_there(void **state) {
  (void)state;
  int ends[2];
  tfc_wire_buffer buffer = {0};
  uint32_t type;
  atomic_bool cancel = true;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  assert_fails(tfc_wire_receive(ends[1], 20000000, NULL, &type, &buffer), TFC_DEADLINE_EXCEEDED, "does not answer");
  assert_fails(tfc_wire_receive(ends[1], -1, &cancel, &type, &buffer), TFC_CANCELLED, "");
  uint64_t huge[2] = {TFC_WIRE_RESULT, UINT64_MAX};
  assert_int_equal(write(ends[0], huge, sizeof huge), sizeof huge);
  assert_fails(tfc_wire_receive(ends[1], 1000000000, NULL, &type, &buffer), TFC_UNAVAILABLE, "message of");
  close(ends[0]);
  assert_fails(tfc_wire_receive(ends[1], 1000000000, NULL, &type, &buffer), TFC_UNAVAILABLE, "gone");
  assert_fails(tfc_wire_send(ends[1], TFC_WIRE_DONE, NULL), TFC_UNAVAILABLE, "gone");
  close(ends[1]);
  tfc_array_free(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_broken_messages),
                                     cmocka_unit_test(test_nobody_there)};
  return cmocka_run_group_tests_name("measure_wire", tests, NULL, NULL);
}
