// Tests that the faulty transport hands everything on to the transport that it wraps, except what it was asked to
// change, with an inner transport that writes down its calls; and that a received message can be sent on.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/transport/transport.h"

static struct {
  struct tfc_transport base;
  uint32_t sent, to[8], numbers[8], closed, failed, attended, rested;
  struct tfc_message *last;
  int64_t wait_ns;
  const char *why;
} inner;

static tfc_status note_send(struct tfc_transport *t, uint32_t to, struct tfc_message *m) {
  (void)t;
  assert_true(inner.sent < 8);
  inner.to[inner.sent] = to;
  if (m->head_size >= 4) memcpy(&inner.numbers[inner.sent], m->head, 4);
  inner.sent++;
  tfc_message_free(inner.last);
  inner.last = m;
  return NULL;
}
static tfc_status note_receive(struct tfc_transport *t, struct tfc_message **out) {
  (void)t;
  *out = inner.last, inner.last = NULL;
  return NULL;
}
static tfc_status note_progress(struct tfc_transport *t, int64_t wait_ns) {
  (void)t;
  inner.wait_ns = wait_ns;
  return NULL;
}
static void note_attend(struct tfc_transport *t, bool begins) {
  (void)t;
  *(begins ? &inner.attended : &inner.rested) += 1;
}
static tfc_status note_flush(struct tfc_transport *t) {
  (void)t;
  return NULL;
}
static void note_fail(struct tfc_transport *t, int code, const char *why) {
  (void)t;
  inner.failed += (uint32_t)code, inner.why = why;
}
static void note_close(struct tfc_transport *t) {
  (void)t;
  inner.closed++;
}
static const struct tfc_transport_type noting = {.name = "noting",
                                                 .send = note_send,
                                                 .flush = note_flush,
                                                 .receive = note_receive,
                                                 .progress = note_progress,
                                                 .attend = note_attend,
                                                 .fail = note_fail,
                                                 .close = note_close};

static struct tfc_transport *wrapped(const struct tfc_faults *faults) {
  struct tfc_transport *t = NULL;
  tfc_message_free(inner.last);
  memset(&inner, 0, sizeof inner);
  inner.base = (struct tfc_transport){.type = &noting, .rank = 1, .count = 3, .beside = 1, .beside_count = 3};
  assert_ok(tfc_transport_faulty(&inner.base, faults, &t));
  return t;
}
static struct tfc_message *message(uint32_t number) {
  struct tfc_message *m = NULL;
  assert_ok(tfc_message_create(5, sizeof number, &m));
  memcpy(m->head, &number, sizeof number);
  return m;
}

static void test_handed_on(void **state) {
  (void)state;
  struct tfc_transport *t = wrapped(&(struct tfc_faults){.seed = 1});
  assert_string_equal(t->type->name, "faulty");
  assert_int_equal(t->rank, 1);
  assert_int_equal(t->count, 3);
  t->type->attend(t, true);
  assert_int_equal(inner.attended, 1);
  assert_int_equal(inner.rested, 0);
  t->type->attend(t, false);
  assert_int_equal(inner.attended, 1);
  assert_int_equal(inner.rested, 1);
  (t->type->fail)(t, 7, "gone");
  assert_int_equal(inner.failed, 7);
  assert_string_equal(inner.why, "gone");
  assert_ok(t->type->progress(t, 1000));
  assert_int_equal(inner.wait_ns, 1000);
  assert_ok(t->type->progress(t, 5000000000)); // it never sleeps for longer than 0.2 ms, because of what it holds back
  assert_int_equal(inner.wait_ns, 200000);
  assert_ok(t->type->send(t, 3, message(9))); // there is no such task: the inner transport says what that means
  assert_int_equal(inner.sent, 1);
  assert_int_equal(inner.to[0], 3);
  struct tfc_message *m = NULL;
  assert_ok(t->type->receive(t, &m));
  assert_non_null(m);
  tfc_message_free(m);
  assert_int_equal(inner.closed, 0);
  tfc_transport_close(t);
  assert_int_equal(inner.closed, 1);
}

static void test_delays(void **state) {
  (void)state;
  // held back until the transport is closed, then sent in order of the tasks, and of their messages
  struct tfc_transport *t = wrapped(&(struct tfc_faults){.seed = 3, .most_delay_ns = INT64_MAX / 4});
  for (uint32_t i = 0; i < 6; i++) assert_ok(t->type->send(t, 2 - i % 3, message(i)));
  assert_ok(t->type->progress(t, 0));
  assert_int_equal(inner.sent, 0);
  tfc_transport_close(t);
  static const uint32_t to[] = {0, 0, 1, 1, 2, 2}, numbers[] = {2, 5, 1, 4, 0, 3};
  assert_int_equal(inner.sent, 6);
  assert_memory_equal(inner.to, to, sizeof to);
  assert_memory_equal(inner.numbers, numbers, sizeof numbers);
  // without a delay everything goes at the next progress
  t = wrapped(&(struct tfc_faults){.seed = 3});
  assert_ok(t->type->send(t, 0, message(1)));
  assert_int_equal(inner.sent, 0);
  assert_ok(t->type->progress(t, 0));
  assert_int_equal(inner.sent, 1);
  tfc_transport_close(t);
  assert_int_equal(inner.sent, 1);
}

// The first numbers of xorshift64* (Vigna 2016) with the state 1, which is what seed 0 makes, are 0x47e4ce4b896cdd1d,
// 0xabcfa6a8e079651d, 0xb9d10d8feb731f57 and 0x4db418a0bb1b019d.
static void test_garbled(void **state) {
  (void)state;
  struct tfc_transport *t = wrapped(&(struct tfc_faults){.seed = 0, .garbled_after = 2});
  static const unsigned char changed[] = {0xa8, 0x8f, 0xa0};
  for (uint32_t i = 1; i <= 3; i++) {
    struct tfc_message *m = NULL;
    assert_ok(tfc_message_create(5, 3, &m));
    assert_ok(t->type->send(t, 0, m));
    assert_ok(t->type->progress(t, 0));
    assert_int_equal(inner.last->kind, i == 2 ? 0x896cdd1d : 5);
    assert_int_equal(inner.last->head_size, 3);
    static const unsigned char zeros[3];
    assert_memory_equal(inner.last->head, i == 2 ? changed : zeros, 3);
  }
  tfc_transport_close(t);
}

// A message that was received while others waited behind it is sent on: it arrives alone.
static void test_sent_on(void **state) {
  (void)state;
  struct tfc_transport *t[2];
  struct tfc_message *m = NULL;
  assert_ok(tfc_transport_local(2, t));
  for (uint32_t i = 1; i <= 3; i++) assert_ok(t[0]->type->send(t[0], 1, message(i)));
  assert_ok(t[1]->type->receive(t[1], &m));
  assert_ok(t[1]->type->send(t[1], 0, m));
  assert_ok(t[0]->type->receive(t[0], &m));
  assert_int_equal(m->peer, 1);
  tfc_message_free(m);
  assert_ok(t[0]->type->receive(t[0], &m));
  assert_null(m);
  for (uint32_t i = 2; i <= 3; i++) {
    uint32_t number = 0;
    assert_ok(t[1]->type->receive(t[1], &m));
    memcpy(&number, m->head, sizeof number);
    assert_int_equal(number, i);
    assert_int_equal(m->peer, 0);
    tfc_message_free(m);
  }
  for (uint32_t r = 0; r < 2; r++) tfc_transport_close(t[r]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_handed_on),
      cmocka_unit_test(test_delays),
      cmocka_unit_test(test_garbled),
      cmocka_unit_test(test_sent_on),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_message_free(inner.last);
  return failed;
}
