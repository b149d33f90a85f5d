// Tests the sample inputs of every op: each sample can be read and built into a node, the shape function agrees with
// the kernel's outputs, and a second run gives the same bits.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "tests/common/eval.h"
#include "tests/common/sample.h"

// False for kernels that need a session or give random values.
static bool runs_alone(const struct tfc_op_def *def) {
  uint32_t left_out = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC | TFC_OP_SAVES | TFC_OP_SWITCH |
                      TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_LOOP_COND |
                      TFC_OP_FUNCTIONAL | TFC_OP_PLACEHOLDER;
  return def->kernel && def->samples && !(def->flags & left_out) && !strstr(def->inputs, "Ref(") &&
         !strstr(def->inputs, "resource") && !strstr(def->inputs, "variant");
}

static void test_samples(void **state) {
  (void)state;
  size_t count;
  const struct tfc_op_def *const *rows = tfc_op_list(&count);
  int ran = 0, failed = 0;
  for (size_t i = 0; i < count; i++) {
    if (!runs_alone(rows[i])) continue;
    int n = sample_count(rows[i]->samples);
    for (int k = 0; k < n; k++) {
      struct tfc_graph *g = NULL;
      struct eval first = {0}, second = {0};
      const struct tfc_tensor *a, *b;
      uint32_t node = TFC_NONE;
      tfc_status s = sample_graph(rows[i], rows[i]->samples, k, 7, &g, &node);
      if (!s) s = eval_create(g, &first);
      if (!s) s = eval_create(g, &second);
      for (uint32_t o = 0; !s && o < g->nodes[node].output_count; o++) {
        s = eval_output(&first, (struct tfc_output){node, (int32_t)o}, &a);
        if (!s) s = eval_output(&second, (struct tfc_output){node, (int32_t)o}, &b);
        if (!s && tfc_dtype_is_plain(a->dtype) && (a->size != b->size || memcmp(a->data, b->data, a->size)))
          s = tfc_status_make(TFC_INTERNAL, "output %u differs the second time", o);
      }
      if (s) failed++, print_message("FAILED %s, sample %d: %s\n", rows[i]->name, k, tfc_status_message(s));
      tfc_status_free(s);
      ran++;
      eval_deinit(&first);
      eval_deinit(&second);
      tfc_graph_release(g);
    }
  }
  print_message("%d samples, %d failed\n", ran, failed);
  assert_true(ran > 100);
  assert_int_equal(failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
