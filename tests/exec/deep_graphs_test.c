// Tests graphs that are deeper than any that a program makes: they need neither a deep stack nor time that grows with
// the square of the depth.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/str.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

static struct tfc_graph *parsed(struct tfc_text *text) {
  struct tfc_graph *g = NULL;
  assert_false(text->failed);
  assert_ok(tfc_graph_parse((tfc_str){text->data, text->size}, "deep.pbtxt", NULL, &g));
  tfc_text_deinit(text);
  return g;
}

#define FLOAT(key) "attr { key: '" key "' value { type: DT_FLOAT } } "
#define X                                                                                                              \
  "node { name: 'x' op: 'Const' " FLOAT(                                                                               \
      "dtype") "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }\n"

static void *lower(void *graph) {
  return tfc_lower_loaded(graph);
}

// A chain of functions, each of which calls the next one, is lowered on a small stack.
static void chain_of_functions(void **state) {
  (void)state;
  enum { DEPTH = 40000 };
  struct tfc_text text = {0};
  pthread_attr_t attributes;
  pthread_t thread;
  void *s = NULL;
  tfc_text_printf(&text, X "node { name: 'y' op: 'f0' input: 'x' }\nlibrary {\n");
  for (int i = 0; i < DEPTH; i++)
    tfc_text_printf(&text,
                    "function { signature { name: 'f%d' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'r' "
                    "type: DT_FLOAT } } node_def { name: 'n' op: '%s%.0d' input: 'a' %s} ret { key: 'r' value: "
                    "'n:%s:0' } }\n",
                    i, i + 1 < DEPTH ? "f" : "Neg", i + 1 < DEPTH ? i + 1 : 0, i + 1 < DEPTH ? "" : FLOAT("T"),
                    i + 1 < DEPTH ? "r" : "y");
  tfc_text_printf(&text, "}\n");
  struct tfc_graph *g = parsed(&text);
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 2 << 20), 0);
  assert_int_equal(pthread_create(&thread, &attributes, lower, &g), 0);
  assert_int_equal(pthread_join(thread, &s), 0);
  pthread_attr_destroy(&attributes);
  assert_ok((tfc_status)s);
  tfc_graph_release(g);
}

// Loops in loops, none of which is left.
static void chain_of_loops(void **state) {
  (void)state;
  enum { DEPTH = 150000 };
  struct tfc_text text = {0};
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor out = {0};
  tfc_text_printf(&text, X);
  for (int i = 0; i < DEPTH; i++)
    tfc_text_printf(&text,
                    "node { name: 'e%d' op: 'Enter' input: '%s%.0d' " FLOAT("T") "attr { key: 'frame_name' value { s: "
                                                                                 "'loop%d' } } }\n",
                    i + 1, i ? "e" : "x", i, i);
  struct tfc_graph *g = parsed(&text);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .callers = 1}, &session));
  const struct tfc_output fetch = {g->node_count - 1, 0};
  const clock_t begin = clock();
  assert_fails(tfc_session_run(session, &(struct tfc_run_spec){.fetches = &fetch, .fetch_count = 1}, NULL, &out, NULL),
               TFC_INVALID_ARGUMENT, "is inside of the loop 'loop149999' and cannot be fetched");
  assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 15);
  tfc_session_free(session);
  tfc_graph_release(g);
  tfc_devices_close(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chain_of_functions), cmocka_unit_test(chain_of_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
