// Tests what every transport promises, with the local and the faulty transport (tests/cluster/mpi_test.sh runs this
// suite with MPI): every message arrives complete, once, and in order from each sender; a failure of one task reaches
// all tasks.
#include "tests/common/test.h"
#include "tests/common/transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"

enum { TASKS = 4 };

struct one {
  struct tfc_transport *transport;
  pthread_t thread;
  tfc_status status;
};
static void *exchange(void *arg) {
  struct one *o = arg;
  o->status = tfc_test_exchange(o->transport, 40, 7);
  tfc_transport_close(o->transport);
  return NULL;
}

static void run_all(const struct tfc_faults *faults) {
  struct tfc_transport *transports[TASKS];
  struct one ones[TASKS];
  assert_ok(tfc_transport_local(TASKS, transports));
  for (uint32_t r = 0; r < TASKS; r++) {
    struct tfc_faults own = faults ? *faults : (struct tfc_faults){0};
    own.seed += r;
    if (faults) assert_ok(tfc_transport_faulty(transports[r], &own, &transports[r]));
    ones[r] = (struct one){.transport = transports[r]};
  }
  for (uint32_t r = 0; r < TASKS; r++) pthread_create(&ones[r].thread, NULL, exchange, &ones[r]);
  for (uint32_t r = 0; r < TASKS; r++) pthread_join(ones[r].thread, NULL);
  for (uint32_t r = 0; r < TASKS; r++) assert_ok(ones[r].status);
}

static void *wake(void *arg) {
  struct one *o = arg;
  o->status = tfc_test_wakes(o->transport, 2000, 11);
  tfc_transport_close(o->transport);
  return NULL;
}
static void wakes(void **state) {
  struct tfc_transport *transports[2];
  struct one ones[2];
  (void)state;
  assert_ok(tfc_transport_local(2, transports));
  for (uint32_t r = 0; r < 2; r++) ones[r] = (struct one){.transport = transports[r]};
  for (uint32_t r = 0; r < 2; r++) pthread_create(&ones[r].thread, NULL, wake, &ones[r]);
  for (uint32_t r = 0; r < 2; r++) pthread_join(ones[r].thread, NULL);
  for (uint32_t r = 0; r < 2; r++) assert_ok(ones[r].status);
}

static void local(void **state) {
  (void)state;
  run_all(NULL);
}
static uint32_t destroyed;
static void destroy(struct tfc_buffer *b) {
  destroyed++;
  free(b);
}

// What nobody has received when all tasks close is freed, in every task's inbox.
static void what_is_left_is_freed(void **state) {
  (void)state;
  struct tfc_transport *transports[TASKS];
  assert_ok(tfc_transport_local(TASKS, transports));
  destroyed = 0;
  for (uint32_t to = 0; to < TASKS; to++)
    for (uint32_t k = 0; k <= to; k++) {
      struct tfc_message *m = NULL;
      struct tfc_buffer *body = calloc(1, sizeof *body);
      assert_non_null(body);
      *body = (struct tfc_buffer){.references = 1, .destroy = destroy};
      assert_ok(tfc_message_create(1, 0, &m));
      m->body = body;
      assert_ok(transports[0]->type->send(transports[0], to, m));
    }
  for (uint32_t r = 0; r < TASKS; r++) tfc_transport_close(transports[r]);
  assert_int_equal(destroyed, 1 + 2 + 3 + 4);
}
static void faulty(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) run_all(&(struct tfc_faults){.seed = 16 * seed, .most_delay_ns = 1000000});
}

// `cluster_transport_thread_test seeds COUNT`: many seeds, with delays of up to 0.1, 0.3 and 1 ms in turn.
static uint64_t seed_count;
static void many_seeds(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= seed_count; seed++)
    run_all(&(struct tfc_faults){.seed = 1000 + 16 * seed,
                                 .most_delay_ns = (int64_t[]){100000, 300000, 1000000}[seed % 3]});
  print_message("%llu seeds: every message came, once and in order\n", (unsigned long long)seed_count);
}

// Waiting takes as long as was asked if no message comes, and no longer than that message takes if one does.
static void waits(void **state) {
  (void)state;
  struct tfc_transport *t[2];
  assert_ok(tfc_transport_local(2, t));
  int64_t begin = tfc_now_ns();
  assert_ok(t[0]->type->progress(t[0], 60000000));
  assert_true(tfc_now_ns() - begin >= 60000000);
  struct tfc_message *m = NULL;
  assert_ok(tfc_message_create(0, 0, &m));
  assert_ok(t[1]->type->send(t[1], 0, m));
  begin = tfc_now_ns();
  assert_ok(t[0]->type->progress(t[0], INT64_C(600000000000)));
  assert_true(tfc_now_ns() - begin < INT64_C(300000000000));
  assert_ok(t[0]->type->receive(t[0], &m));
  assert_non_null(m);
  tfc_message_free(m);
  for (int i = 0; i < 2; i++) tfc_transport_close(t[i]);
}

static void failure_reaches_all(void **state) {
  (void)state;
  struct tfc_transport *t[3];
  assert_ok(tfc_transport_local(3, t));
  (t[1]->type->fail)(t[1], 4, "task 2 is gone");
  for (uint32_t r = 0; r < 3; r++) {
    tfc_status s = t[r]->type->progress(t[r], 1000000000);
    assert_int_equal(tfc_status_code(s), TFC_UNAVAILABLE);
    assert_string_equal(tfc_status_message(s), "task 2 is gone");
    tfc_status_free(s);
  }
  for (uint32_t r = 0; r < 3; r++) tfc_transport_close(t[r]);
}

static void send_number(struct tfc_transport *t, uint32_t to, uint32_t number) {
  struct tfc_message *m = NULL;
  assert_ok(tfc_message_create(1, sizeof number, &m));
  memcpy(m->head, &number, sizeof number);
  assert_ok(t->type->send(t, to, m));
}

// The order holds only between one sender and one receiver: a later message to another task may arrive earlier.
static void pairs_overtake(void **state) {
  (void)state;
  uint32_t overtaken = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct tfc_transport *t[3];
    struct tfc_message *m = NULL;
    assert_ok(tfc_transport_local(3, t));
    assert_ok(tfc_transport_faulty(t[0], &(struct tfc_faults){.seed = seed, .most_delay_ns = 20000000}, &t[0]));
    send_number(t[0], 1, 1);
    send_number(t[0], 2, 2);
    while (!m) {
      assert_ok(t[0]->type->progress(t[0], 10000));
      assert_ok(t[2]->type->receive(t[2], &m));
    }
    tfc_message_free(m);
    assert_ok(t[1]->type->receive(t[1], &m));
    overtaken += !m;
    tfc_message_free(m);
    for (uint32_t r = 0; r < 3; r++) tfc_transport_close(t[r]);
  }
  assert_in_range(overtaken, 2, 18);
}

static void falls_silent(void **state) {
  (void)state;
  struct tfc_transport *t[2];
  struct tfc_message *m = NULL;
  assert_ok(tfc_transport_local(2, t));
  assert_ok(tfc_transport_faulty(t[0], &(struct tfc_faults){.silent_after = 3}, &t[0]));
  for (uint32_t i = 1; i <= 5; i++) send_number(t[0], 1, i);
  assert_ok(t[0]->type->progress(t[0], 1000));
  for (uint32_t i = 1; i <= 3; i++) {
    assert_ok(t[1]->type->receive(t[1], &m));
    assert_int_equal(m != NULL, i < 3);
    if (m) assert_memory_equal(m->head, &i, sizeof i);
    tfc_message_free(m);
  }
  for (uint32_t r = 0; r < 2; r++) tfc_transport_close(t[r]);
}

// Task 0 sends to tasks 1 and 2 in turn. From its third message on, those to task 2 (cut_to) are lost; task 1 gets all
// of its own.
static void is_cut_off(void **state) {
  (void)state;
  struct tfc_transport *t[3];
  struct tfc_message *m = NULL;
  assert_ok(tfc_transport_local(3, t));
  assert_ok(tfc_transport_faulty(t[0], &(struct tfc_faults){.cut_after = 3, .cut_to = 2}, &t[0]));
  for (uint32_t i = 1; i <= 6; i++) send_number(t[0], 1 + i % 2, i);
  assert_ok(t[0]->type->progress(t[0], 1000));
  for (uint32_t i = 1; i <= 6; i++) {
    struct tfc_transport *to = t[1 + i % 2];
    const bool comes = i < 3 || i % 2 == 0;
    assert_ok(to->type->receive(to, &m));
    assert_int_equal(m != NULL, comes);
    if (m) assert_memory_equal(m->head, &i, sizeof i);
    tfc_message_free(m);
  }
  for (uint32_t r = 0; r < 3; r++) tfc_transport_close(t[r]);
}

typedef enum part { EXCHANGE, WAKES, TOGETHER } part;
static tfc_status run_part(struct tfc_transport *t, part what) {
  switch (what) {
  case EXCHANGE: return tfc_test_exchange(t, 40, 7);
  case WAKES: return tfc_test_wakes(t, 5000, 11);
  case TOGETHER: return tfc_test_together(t, 100);
  }
  return NULL;
}
// Runs this process as one task of mpirun: `cluster_transport_thread_test mpi [DELAY_NS]`, or with `wakes` (two tasks)
// or `together` (three).
static int over_mpi(int64_t delay_ns, part what) {
  struct tfc_transport *t = NULL;
  tfc_status s = tfc_transport_mpi(&t);
  if (!s && delay_ns) {
    const struct tfc_faults faults = {.seed = t->rank + 1, .most_delay_ns = delay_ns};
    s = tfc_transport_faulty(t, &faults, &t);
  }
  const uint32_t rank = s ? 0 : t->rank, count = s ? 0 : t->count;
  if (!s) s = run_part(t, what);
  if (s)
    fprintf(stderr, "task %u: %s\n", rank, tfc_status_message(s));
  else
    printf("task %u of %u: all messages came\n", rank, count);
  if (!s) tfc_transport_close(t);
  tfc_status_free(s);
  return s != NULL;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "mpi")) return over_mpi(argc > 2 ? atoll(argv[2]) : 0, EXCHANGE);
  if (argc > 1 && !strcmp(argv[1], "wakes")) return over_mpi(0, WAKES);
  if (argc > 1 && !strcmp(argv[1], "together")) return over_mpi(0, TOGETHER);
  if (argc > 2 && !strcmp(argv[1], "seeds")) {
    const struct CMUnitTest seeds[] = {cmocka_unit_test(many_seeds)};
    seed_count = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(seeds, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(local),          cmocka_unit_test(what_is_left_is_freed),
      cmocka_unit_test(faulty),         cmocka_unit_test(waits),
      cmocka_unit_test(wakes),          cmocka_unit_test(failure_reaches_all),
      cmocka_unit_test(pairs_overtake), cmocka_unit_test(falls_silent),
      cmocka_unit_test(is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
