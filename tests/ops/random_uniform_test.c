// Uniform floats are made 256 at a time, and those at a tensor's end one draw at a time: the numbers are the same.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/graph/builder.h"
#include "tests/common/eval.h"

static void numbers_do_not_depend_on_the_count(void **state) {
  (void)state;
  enum { AT_ONCE = 256, MOST = 5 };
  for (int32_t seed = 1; seed < 20; seed++)
    for (int32_t whole = 0; whole < MOST; whole++) {
      struct tfc_builder *b = NULL;
      struct tfc_graph *g = NULL;
      struct eval e = {0};
      struct tfc_output made[2];
      const struct tfc_tensor *short_of_it, *all;
      assert_ok(tfc_builder_create(NULL, &b));
      for (int32_t k = 0; k < 2; k++) {
        const int32_t size = (whole + 1) * AT_ONCE + k - 1, seeds[2] = {seed, 1000 * seed};
        made[k] = tfc_add(b, "StatelessRandomUniform", NULL,
                          (struct tfc_output[]){tfc_add_i32_vector(b, &size, 1), tfc_add_i32_vector(b, seeds, 2)}, 2,
                          NULL, 0);
      }
      assert_ok(tfc_builder_finish(b, &g));
      assert_ok(eval_create(g, &e));
      assert_ok(eval_output(&e, made[0], &short_of_it));
      assert_ok(eval_output(&e, made[1], &all));
      assert_true(all->size == short_of_it->size + sizeof(float));
      assert_memory_equal(short_of_it->data, all->data, short_of_it->size);
      const float *x = all->data;
      double sum = 0;
      for (int32_t i = 0; i < (whole + 1) * AT_ONCE; i++) {
        assert_true(x[i] >= 0 && x[i] < 1 && (i == 0 || x[i] != x[i - 1]));
        sum += (double)x[i];
      }
      assert_true(sum > 0.4 * (whole + 1) * AT_ONCE && sum < 0.6 * (whole + 1) * AT_ONCE);
      eval_deinit(&e);
      tfc_graph_release(g);
      tfc_builder_free(b);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_do_not_depend_on_the_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
