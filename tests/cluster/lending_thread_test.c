// A reference variable's memory is sent without a copy. Whoever writes to the variable while it is sent waits, in
// static plans and in ready order, by an update and by an assignment; a step that is cancelled meanwhile ends. A result
// is sent without a copy, too.
#include "tests/common/test.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/device/list.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/ops/rendezvous.h"

enum { COUNT = 1 << 16 };

// A network that is slow: it keeps the tensor that was sent, and reads its elements only in `deliver`, 60 ms later.
struct network {
  struct tfc_rendezvous base;
  pthread_mutex_t lock;
  struct tfc_tensor sent; // dtype NONE: nothing is on its way
  float first, last;      // what arrived
};

static tfc_status take(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                       const struct tfc_tensor *value, bool more) {
  struct network *n = (struct network *)(void *)r;
  (void)key, (void)name, (void)more;
  pthread_mutex_lock(&n->lock);
  tfc_tensor_share(value, &n->sent);
  pthread_mutex_unlock(&n->lock);
  return NULL;
}

static void flush(struct tfc_rendezvous *r) { // nothing is kept
  (void)r;
}

static void *deliver(void *arg) { // a while after it was sent
  struct network *n = arg;
  for (bool done = false; !done;) {
    pthread_mutex_lock(&n->lock);
    done = n->sent.dtype != TFC_DTYPE_NONE;
    pthread_mutex_unlock(&n->lock);
    nanosleep(&(struct timespec){.tv_nsec = done ? 60000000 : 1000000}, NULL);
  }
  n->first = ((const float *)n->sent.data)[0];
  n->last = ((const float *)n->sent.data)[COUNT - 1];
  tfc_tensor_release(&n->sent);
  return NULL;
}

// clang-format off
#define TYPE(key) " attr { key: \"" key "\" value { type: DT_FLOAT } }"
#define SHAPE " attr { key: \"shape\" value { shape { dim { size: 65536 } } } }"
#define SEND \
  TYPE("T") \
  " attr { key: 'tensor_name' value { s: 'v' } } attr { key: 'send_device' value { s: 'a' } }" \
  " attr { key: 'send_device_incarnation' value { i: 1 } } attr { key: 'recv_device' value { s: 'b' } }" \
  " attr { key: '_edge' value { i: 0 } } attr { key: '_peer' value { i: 1 } } attr { key: '_order' value { i: 0 } }"
static const char text[] =
    "node { name: 'x' op: 'Placeholder'" TYPE("dtype") SHAPE " }"
    "node { name: 'v' op: 'VariableV2'" TYPE("dtype") SHAPE " }"
    "node { name: 'init' op: 'Assign' input: 'v' input: 'x'" TYPE("T") " }"
    "node { name: 'read' op: 'Identity' input: 'v'" TYPE("T") " }"
    "node { name: 'send' op: '_Send' input: 'read'" SEND " attr { key: '_copies' value { b: true } } }"
    "node { name: 'add' op: 'AssignAdd' input: 'v' input: 'x' input: '^send'" TYPE("T") " }"
    "node { name: 'assign' op: 'Assign' input: 'v' input: 'x' input: '^send'" TYPE("T") " }"
    "node { name: 'minus' op: 'Neg' input: 'x'" TYPE("T") " }"
    "node { name: 'send_result' op: '_Send' input: 'minus'" SEND " }";
// clang-format on

struct setting {
  struct tfc_device_set devices;
  struct tfc_graph *graph;
  struct tfc_session *session;
  struct network network;
  struct tfc_tensor x;
};
static void set_up(struct setting *t) {
  *t = (struct setting){.network = {.base = {.send = take, .flush = flush, .lends = true}}};
  pthread_mutex_init(&t->network.lock, NULL);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &t->devices));
  assert_ok(tfc_graph_parse(tfc_str_from(text), "graph", NULL, &t->graph));
  const struct tfc_session_options options = {.devices = &t->devices, .rendezvous = &t->network.base};
  assert_ok(tfc_session_create(t->graph, &options, &t->session));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(COUNT), &t->x));
}
static void tear_down(struct setting *t) {
  tfc_tensor_release(&t->x);
  tfc_session_free(t->session);
  tfc_graph_release(t->graph);
  tfc_devices_close(&t->devices);
  pthread_mutex_destroy(&t->network.lock);
}
static tfc_status run(struct setting *t, const char *target, float value, bool dynamic, const _Atomic bool *cancel) {
  struct tfc_output x;
  uint32_t node;
  assert_ok(tfc_graph_parse_output(t->graph, TFC_STR("x"), &x));
  assert_ok(tfc_graph_parse_node(t->graph, tfc_str_from(target), &node));
  for (int i = 0; i < COUNT; i++) ((float *)t->x.data)[i] = value;
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .targets = &node, .target_count = 1, .dynamic = dynamic};
  return tfc_session_run(t->session, &spec, &t->x, NULL, &(struct tfc_run_options){.cancel = cancel});
}

static void writer_waits(const char *writer, float written, float then, bool dynamic) {
  struct setting t;
  struct tfc_tensor v = {0};
  pthread_t thread;
  set_up(&t);
  assert_ok(run(&t, "init", 3, dynamic, NULL));
  assert_int_equal(pthread_create(&thread, NULL, deliver, &t.network), 0);
  assert_ok(run(&t, writer, written, dynamic, NULL));
  pthread_join(thread, NULL);
  assert_true(t.network.first == 3 && t.network.last == 3); // what it was when it was sent
  assert_ok(tfc_session_get_variable(t.session, TFC_STR("v"), &v));
  assert_true(((const float *)v.data)[0] == then && ((const float *)v.data)[COUNT - 1] == then);
  tfc_tensor_release(&v);
  tear_down(&t);
}
static void updates_wait(void **state) {
  (void)state;
  for (int dynamic = 0; dynamic < 2; dynamic++) writer_waits("add", 5, 8, dynamic);
}
static void assignments_wait(void **state) {
  (void)state;
  for (int dynamic = 0; dynamic < 2; dynamic++) writer_waits("assign", 5, 5, dynamic);
}

// It is sent without a copy, and a restored value does not wait for it, but gets memory of its own.
static void others_do_not_wait(void **state) {
  (void)state;
  struct setting t;
  struct tfc_tensor v = {0};
  set_up(&t);
  assert_ok(run(&t, "init", 3, false, NULL));
  assert_ok(run(&t, "send", 4, false, NULL));
  assert_int_equal(t.network.sent.dtype, TFC_FLOAT);
  assert_int_equal(atomic_load(&((struct tfc_buffer *)t.network.sent.buffer->owner)->lent), 1);
  assert_ok(tfc_session_set_variable(t.session, TFC_STR("v"), &t.x));
  assert_true(*(const float *)t.network.sent.data == 3);
  tfc_tensor_release(&t.network.sent);
  assert_ok(tfc_session_get_variable(t.session, TFC_STR("v"), &v));
  assert_true(*(const float *)v.data == 4);
  tfc_tensor_release(&v);
  tear_down(&t);
}

// A step's result is sent from its own memory, to which the next step does not write.
static void results_are_not_copied(void **state) {
  (void)state;
  for (int dynamic = 0; dynamic < 2; dynamic++) {
    struct setting t;
    set_up(&t);
    assert_ok(run(&t, "send_result", 3, dynamic, NULL));
    struct tfc_tensor first = t.network.sent;
    assert_non_null(first.buffer);
    assert_ok(run(&t, "send_result", 4, dynamic, NULL));
    assert_true(((const float *)first.data)[0] == -3 && ((const float *)first.data)[COUNT - 1] == -3);
    assert_true(*(const float *)t.network.sent.data == -4);
    tfc_tensor_release(&first);
    tfc_tensor_release(&t.network.sent);
    tear_down(&t);
  }
}

static void *cancel_soon(void *arg) {
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  atomic_store((_Atomic bool *)arg, true);
  return NULL;
}
static void cancelled_while_it_waits(void **state) {
  (void)state;
  for (int dynamic = 0; dynamic < 2; dynamic++) {
    struct setting t;
    pthread_t thread;
    _Atomic bool cancel = false;
    set_up(&t);
    assert_ok(run(&t, "init", 3, dynamic, NULL));
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
    tfc_status s = run(&t, "add", 5, dynamic, &cancel);
    pthread_join(thread, NULL);
    assert_int_equal(tfc_status_code(s), TFC_CANCELLED);
    tfc_status_free(s);
    assert_true(*(const float *)t.network.sent.data == 3);
    tfc_tensor_release(&t.network.sent);
    assert_ok(run(&t, "init", 7, dynamic, NULL)); // nobody waits any more
    tear_down(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(updates_wait),
      cmocka_unit_test(assignments_wait),
      cmocka_unit_test(others_do_not_wait),
      cmocka_unit_test(results_are_not_copied),
      cmocka_unit_test(cancelled_while_it_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
