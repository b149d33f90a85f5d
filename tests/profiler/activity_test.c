// Tests made-up records of a GPU profiler: to which operation each belongs, and every kind of broken record.
#include "tests/common/test.h"

#include "profiler/activity.h"

static struct tfc_activity *a;
static struct tfc_activity_result r;

static int set_up(void **state) {
  (void)state;
  assert_ok(tfc_activity_create(&a));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_activity_free(a);
  tfc_activity_result_deinit(&r);
  return 0;
}

static struct tfc_activity_work kernel(uint32_t correlation, uint32_t stream, int64_t start, int64_t end) {
  return (struct tfc_activity_work){.kind = TFC_ACTIVITY_KERNEL,
                                    .start_ns = start,
                                    .end_ns = end,
                                    .context = 1,
                                    .stream = stream,
                                    .correlation = correlation,
                                    .name = "k"};
}
static void add(uint32_t correlation, uint32_t stream, int64_t start, int64_t end) {
  struct tfc_activity_work w = kernel(correlation, stream, start, end);
  tfc_activity_add(a, &w);
}

static void attributed(void **state) {
  (void)state;
  // Links and records of work come in any order, from several streams and devices. Of nested marks the inner one
  // counts.
  add(12, 7, 3000, 4000);
  tfc_activity_correlate(a, 11, tfc_activity_external(5, 0, 42));
  tfc_activity_correlate(a, 12, tfc_activity_external(5, 1, 99));
  tfc_activity_correlate(a, 12, tfc_activity_external(5, 1, 43));
  tfc_activity_correlate(a, 13, tfc_activity_external(5, 2, 3 | TFC_TRACE_UID_TRANSFER));
  add(13, 8, 1500, 1700);
  add(11, 7, 1000, 2000);
  add(14, 9, 5000, 5500); // a record without a link belongs to no operation
  assert_ok(tfc_activity_take(a, 5, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 4);
  assert_int_equal(r.works.data[0].uid, 42);
  assert_int_equal(r.works.data[0].device, 0);
  assert_int_equal(r.works.data[1].uid, 3 | TFC_TRACE_UID_TRANSFER);
  assert_int_equal(r.works.data[1].device, 2);
  assert_int_equal(r.works.data[2].uid, 43);
  assert_int_equal(r.works.data[2].device, 1);
  assert_int_equal(r.works.data[3].uid, TFC_NONE);
  assert_int_equal(r.busy_ns, 1000 + 200 + 1000 + 500);
  assert_int_equal(r.attributed_ns, 2200);
  assert_ok(tfc_activity_take(a, 6, &r)); // nothing is left after a take
  assert_int_equal(r.works.count, 0);
}

static void other_steps(void **state) {
  (void)state;
  tfc_activity_correlate(a, 1, tfc_activity_external(0xffffff, 0, 1));
  tfc_activity_correlate(a, 2, tfc_activity_external(0x1000000, 0, 2)); // wraps: step 0
  add(1, 1, 10, 20);
  add(2, 1, 30, 40);
  assert_ok(tfc_activity_take(a, 0x1000000, &r));
  assert_int_equal(r.works.count, 1);
  assert_int_equal(r.works.data[0].uid, 2);
  assert_int_equal(r.late, 1);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 of other steps");
}

static void graphs(void **state) {
  (void)state;
  tfc_activity_map(a, 501, 7);
  tfc_activity_map(a, 500, 6);
  tfc_activity_correlate(a, 1, tfc_activity_external(1, 3, 1000)); // the launch of the graph
  for (int i = 0; i < 3; i++) {
    struct tfc_activity_work w = kernel(1, 1, 100 + 100 * i, 150 + 100 * i);
    w.graph_node = 500 + (uint64_t)i; // 502 was never mapped
    tfc_activity_add(a, &w);
  }
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.works.data[0].uid, 6);
  assert_int_equal(r.works.data[1].uid, 7);
  assert_int_equal(r.works.data[1].device, 3);
  assert_int_equal(r.works.data[2].uid, TFC_NONE);
  assert_int_equal(r.attributed_ns, 100);
  tfc_activity_clone(a, 501, 601);
  tfc_activity_clone(a, 601, 701);
  tfc_activity_clone(a, 999, 702); // cloned from an unknown node
  tfc_activity_correlate(a, 4, tfc_activity_external(3, 0, 1000));
  for (int i = 0; i < 3; i++) {
    struct tfc_activity_work w = kernel(4, 1, 10 + 10 * i, 15 + 10 * i);
    w.graph_node = i == 2 ? 702 : 601 + 100 * (uint64_t)i;
    tfc_activity_add(a, &w);
  }
  assert_ok(tfc_activity_take(a, 3, &r));
  assert_int_equal(r.works.data[0].uid, 7);
  assert_int_equal(r.works.data[1].uid, 7);
  assert_int_equal(r.works.data[2].uid, TFC_NONE);
  tfc_activity_correlate(a, 9, tfc_activity_external(2, 3, 1000)); // the map of nodes is kept for later steps
  struct tfc_activity_work w = kernel(9, 1, 900, 950);
  w.graph_node = 501;
  tfc_activity_add(a, &w);
  assert_ok(tfc_activity_take(a, 2, &r));
  assert_int_equal(r.works.data[0].uid, 7);
}

static void broken(void **state) {
  (void)state;
  tfc_activity_correlate(a, 1, tfc_activity_external(1, 0, 1));
  add(1, 1, 0, 20);
  add(1, 1, 10, 0);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "2 without time stamps");
  assert_int_equal(r.busy_ns, 0);

  add(1, 1, 30, 20); // ends before it begins
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 out of order");

  add(1, 1, 10, 190000);
  add(1, 1, 20, 199900); // two works overlap on one stream, by more than clocks differ
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 out of order");

  add(1, 1, 10, 30);
  add(1, 2, 20, 40); // on two streams, works may overlap
  struct tfc_activity_work w = kernel(1, 1, 20, 40);
  w.context = 2; // also in two contexts
  tfc_activity_add(a, &w);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));

  tfc_activity_drop(a, 17);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "17 records dropped");
  tfc_activity_drop(a, 17);
  tfc_activity_begin(a, 0); // records that were dropped before the step began do not count
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
}

// The result says how many neighbours in a stream overlap and by how much at most, for steps that are refused and for
// steps that are accepted.
static void overlaps_are_told(void **state) {
  (void)state;
  add(2, 1, 1000, 50000);
  add(1, 1, 48500, 60000); // less than the possible difference of two clocks
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.overlaps, 1);
  assert_int_equal(r.longest_overlap_ns, 1500);
  add(2, 1, 1000, 150000);
  add(1, 1, 30000, 160000);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.overlaps, 1);
  assert_int_equal(r.longest_overlap_ns, 120000);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED,
               "(1 overlap in their streams, by up to 120.0 us of 100.0 us that pass)");
}

// How far neighbours may overlap is read from the pairs before, when there are enough: four times what is usual.
static void pairs(int count, int64_t overlap) {
  for (int i = 0; i < count; i++) {
    add(2, 1, 1000, 500000); // launched after the one that seems to overlap it
    add(1, 1, 500000 - overlap, 900000);
    assert_ok(tfc_activity_take(a, 1, &r));
  }
}
static void overlaps_set_the_limit(void **state) {
  (void)state;
  struct tfc_activity_overlaps o;
  pairs(15, 300);
  tfc_activity_overlaps_get(a, &o);
  assert_int_equal(o.pairs[0], 15);
  assert_int_equal(o.longest_ns, 300);
  assert_int_equal(o.limit_ns, 100000); // too few are known
  pairs(1, 90000);
  assert_ok(tfc_activity_trust(&r));
  pairs(30, 300);
  tfc_activity_overlaps_get(a, &o);
  assert_int_equal(o.limit_ns, 2000);
  pairs(1, 2000);
  assert_ok(tfc_activity_trust(&r));
  pairs(1, 2001);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "by up to 2.0 us of 2.0 us");
  pairs(60, 4000); // that is usual on this machine
  tfc_activity_overlaps_get(a, &o);
  assert_int_equal(o.pairs[3], 61);
  assert_int_equal(o.limit_ns, 20000);
  pairs(1, 19000);
  assert_ok(tfc_activity_trust(&r));
  pairs(1, 21000);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "of 20.0 us that pass");
}

// A record that is delivered twice: its time counts once, and the step is not a measurement.
static void twice(void **state) {
  (void)state;
  tfc_activity_correlate(a, 1, tfc_activity_external(1, 0, 1));
  for (int i = 0; i < 2; i++) {
    add(1, 1, 1000, 1500); // shorter than the difference of clocks
    add(2, 1, 5000, 9000); // a record without a link belongs to no operation
  }
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.twice, 2);
  assert_int_equal(r.out_of_order, 0);
  assert_int_equal(r.works.count, 2);
  assert_int_equal(r.busy_ns, 500 + 4000);
  assert_int_equal(r.attributed_ns, 500);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "2 delivered twice");
  // Records that differ in one member only: the launch, the node of a graph, the stream.
  for (uint32_t i = 0; i < 2; i++) {
    add(5 + i, 1, 1000, 1000);
    struct tfc_activity_work w = kernel(9, 1, 2000, 2000);
    w.graph_node = 7 + i;
    tfc_activity_add(a, &w);
    add(9, 2 + i, 3000, 4000);
  }
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 6);
  const struct tfc_activity_call wait = {
      .kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 100, .end_ns = 350, .identity = 4, .name = "stream"};
  struct tfc_activity_call other = wait;
  other.identity = 5;
  tfc_activity_call(a, &wait);
  tfc_activity_call(a, &other);
  tfc_activity_call(a, &wait);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.synchronizations, 2);
  assert_int_equal(r.synchronized_ns, 500);
  assert_int_equal(r.waits_broken, 1);
  assert_ok(tfc_activity_trust(&r)); // records of the host's waiting are not part of the measurement
}

// Work that ran before the step began does not belong to it, even if the link that names its owner is lost.
static void of_before(void **state) {
  (void)state;
  enum { BEGIN = 50000000 };
  tfc_activity_begin(a, BEGIN);
  add(1, 1, BEGIN - 1000, BEGIN + 1000); // clocks may differ by more than that
  add(2, 1, BEGIN + 2000, BEGIN + 3000);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  add(3, 1, BEGIN - 10000000, BEGIN - 9000000);
  add(2, 1, BEGIN + 2000, BEGIN + 3000);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.works.count, 1);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 of other steps");
}

// Where works of a stream overlap by less than clocks differ, the time of both counts once, for the first; what begins
// and ends within the first has none left.
static void overlaps_count_once(void **state) {
  (void)state;
  for (uint32_t i = 1; i <= 3; i++) tfc_activity_correlate(a, i, tfc_activity_external(1, 0, 10 * i));
  add(1, 1, 10000, 12000);
  add(2, 1, 10500, 11200); // within
  add(4, 1, 11900, 12600); // of no operation; 100 ns together
  add(3, 2, 10100, 10600); // another stream
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 4);
  assert_int_equal(r.busy_ns, 2000 + 600 + 500);
  assert_int_equal(r.attributed_ns, 2000 + 500);
  int64_t at = 0, sum = 0;
  for (size_t i = 0; i < r.works.count; i++) {
    const struct tfc_activity_work *w = &r.works.data[i];
    assert_true(w->start_ns >= at && w->end_ns >= w->start_ns);
    if (w->uid == 20) assert_true(w->start_ns == 12000 && w->end_ns == 12000);
    if (w->uid == TFC_NONE) assert_true(w->start_ns == 12000 && w->end_ns == 12600);
    at = w->start_ns, sum += w->end_ns - w->start_ns;
  }
  assert_int_equal(sum, r.busy_ns);
}

static void the_rest(void **state) {
  (void)state;
  const struct tfc_activity_call calls[] = {
      {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 400, .end_ns = 450, .name = "event"},
      {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 100, .end_ns = 350, .name = "stream"},
      {.kind = TFC_ACTIVITY_ALLOCATE, .start_ns = 90, .end_ns = 90, .bytes = 4096},
      {.kind = TFC_ACTIVITY_RELEASE, .start_ns = 500, .end_ns = 500, .bytes = 512}};
  for (int i = 0; i < 4; i++) tfc_activity_call(a, &calls[i]);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.synchronizations, 2);
  assert_int_equal(r.synchronized_ns, 300);
  assert_int_equal(r.allocations, 1);
  assert_int_equal(r.allocated_bytes, 4096);
  assert_int_equal(r.calls.count, 4);
  assert_int_equal(r.calls.data[0].kind, TFC_ACTIVITY_ALLOCATE);
  assert_string_equal(r.calls.data[1].name, "stream");
  assert_ok(tfc_activity_trust(&r));
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.calls.count, 0);

  const struct tfc_activity_call broken_waits[] = {
      {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 0, .end_ns = 0, .name = "stream"},
      {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 5, .end_ns = 0, .name = "event"},
      {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 400, .end_ns = 300, .name = "stream"}};
  for (size_t i = 0; i < sizeof broken_waits / sizeof *broken_waits; i++) {
    tfc_activity_call(a, &broken_waits[i]);
    assert_ok(tfc_activity_take(a, 1, &r));
    assert_int_equal(r.calls.count, 0);
    assert_int_equal(r.waits_broken, 1);
    assert_int_equal(r.synchronizations, 0);
    assert_ok(tfc_activity_trust(&r));
  }
  tfc_activity_call(a, &(struct tfc_activity_call){.kind = TFC_ACTIVITY_ALLOCATE, .bytes = 8});
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.waits_broken, 0);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 without time stamps");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(attributed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(other_steps, set_up, tear_down),
      cmocka_unit_test_setup_teardown(graphs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(broken, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlaps_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlaps_set_the_limit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlaps_count_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(of_before, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_rest, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
