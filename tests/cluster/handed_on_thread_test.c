// In a static plan, an operation whose output is its whole input (a slice of everything, padding by nothing) must not
// hand on memory that the plan gives to somebody else afterwards. Here the plan cannot know the output's shape, since
// what decides it comes from another task.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/graph/import.h"

enum { ELEMENTS = 6, STEPS = 3 };

// x is computed in memory of the plan; `whole` is all of it; `next`, which runs later, may have x's place.
static const char graph_text[] =
    "node { name: 'p' op: 'Placeholder' device: '/job:chief/task:0' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape { dim { size: 6 } } } } }\n"
    "node { name: 'x' op: 'Neg' input: 'p' device: '/job:worker/task:0' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'begin' op: 'Const' device: '/job:worker/task:1' attr { key: 'dtype' value { type: DT_INT32 } }"
    " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }\n"
    "node { name: 'size' op: 'Const' device: '/job:worker/task:1' attr { key: 'dtype' value { type: DT_INT32 } }"
    " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 6 } } } }\n"
    "node { name: 'none' op: 'Const' device: '/job:worker/task:1' attr { key: 'dtype' value { type: DT_INT32 } }"
    " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } dim { size: 2 } }"
    " int_val: 0 } } } }\n"
    "node { name: 'whole' %s device: '/job:worker/task:0' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'next' op: 'Square' input: 'p' input: '^whole' device: '/job:worker/task:0'"
    " attr { key: 'T' value { type: DT_FLOAT } } }\n";
static const char *const wholes[] = {
    "op: 'Slice' input: 'x' input: 'begin' input: 'size' attr { key: 'Index' value { type: DT_INT32 } }",
    "op: 'Pad' input: 'x' input: 'none' attr { key: 'Tpaddings' value { type: DT_INT32 } }",
};

static tfc_status run_steps(struct tfc_member *member, void *arg) {
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_tensor p = {0}, got[2] = {0};
  struct tfc_output feed, fetches[2];
  char text[sizeof graph_text + 256];
  snprintf(text, sizeof text, graph_text, (const char *)arg);
  TFC_TRY(s, tfc_graph_parse(tfc_str_from(text), "graph", NULL, &g));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("p"), &feed));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("whole"), &fetches[0]));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("next"), &fetches[1]));
  TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
  TFC_TRY(s, tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(ELEMENTS), &p));
  for (int i = 0; i < STEPS; i++) {
    for (int k = 0; k < ELEMENTS; k++) ((float *)p.data)[k] = (float)(k + 2 + 10 * i);
    const struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .fetches = fetches, .fetch_count = 2};
    TFC_TRY(s, tfc_cluster_session_run(session, &spec, &p, got, NULL));
    for (int k = 0; k < ELEMENTS; k++) {
      const float x = ((float *)p.data)[k], whole = ((float *)got[0].data)[k], next = ((float *)got[1].data)[k];
      if (tfc_tensor_elements(&got[0]) != ELEMENTS || whole != -x || next != x * x)
        TFC_FAIL(s, TFC_ABORTED, "step %d, element %d: %g and %g", i, k, whole, next);
    }
    tfc_tensor_release(&got[0]);
    tfc_tensor_release(&got[1]);
  }
out:
  tfc_tensor_release(&got[0]);
  tfc_tensor_release(&got[1]);
  tfc_tensor_release(&p);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}

static void whole_inputs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
    char op[256];
    snprintf(op, sizeof op, "%s", wholes[i]);
    struct tfc_test_job job = {
        .cluster = "chief=1,worker=2", .script = run_steps, .arg = op, .serves = "worker", .static_us = 1e-9};
    tfc_test_job_succeed(&job);
    assert_true(job.static_parts[1] >= STEPS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole_inputs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
