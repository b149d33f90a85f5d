// What a search on one thread must not miss.
#include "tests/common/test.h"

#include "tests/placer/instances.h"

// A long operation and a short one, an operation of another device behind each: all is pinned, and the short one has to
// go first, though less is behind it. No rule of precedence says so, only exchanging two of them does.
static void test_orders(void **state) {
  (void)state;
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node;
  static const double times[] = {2, 0.5, 1.2, 1};
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < 4; n++) {
    static const char *const names[] = {"long", "short", "after long", "after short"};
    MUST(tfc_cost_builder_node(b, tfc_str_from(names[n]), &node));
    MUST(tfc_cost_builder_time(b, node, acc, times[n]));
    MUST(tfc_cost_builder_pin(b, node, n < 2 ? TFC_STR("acc:0") : TFC_STR("acc:1")));
  }
  for (uint32_t n = 0; n < 2; n++) MUST(tfc_cost_builder_edge(b, n, 0, n + 2, 1000, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < 2; d++)
    MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("acc:1") : TFC_STR("acc:0"),
                                                                        .kind = TFC_STR("acc"),
                                                                        .memory = TFC_NO_LIMIT,
                                                                        .label = TFC_LABEL_MODELLED}));
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e10;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct tfc_search_outcome out = {0};
    struct tfc_search_options options = {.seconds = 1, .seed = seed, .threads = 1};
    assert_ok(tfc_search(i.problem, &options, &out));
    if (out.value != 3800000)
      fail_msg("seed %llu: %lld ps, not 3800000", (unsigned long long)seed, (long long)out.value);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
