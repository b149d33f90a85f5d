// Tests what tfc-place says of a search on this machine that was interrupted, and of one that was not; and what it
// answers if it goes on when its time is over.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"

static const char graph[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape { dim { size: 64 } dim { size: 64 } } } } }\n"
    "node { name: 'a' op: 'MatMul' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'b' op: 'MatMul' input: 'a' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'c' op: 'AddV2' input: 'a' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }\n";

static char folder[64];

static int set_up(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tfc-interrupted-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  command_put(folder, "g.pbtxt", graph);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return command("rm -rf %s", folder)->code;
}

#define FLAGS "--graph g.pbtxt --devices 2 --report none --wait --db t.db --json"

static void is_document(const char *text) {
  json_error_t error;
  json_t *document = json_loads(text, 0, &error);
  if (!document) fail_msg("%s: %s", error.text, text);
  assert_string_equal(json_string_value(json_object_get(document, "format")), "tfc-placement");
  json_decref(document);
}

static void test_not_interrupted(void **state) {
  (void)state;
  const struct command_result *r = command("cd %s && tfc-place " FLAGS " --time 2s --measurements 1", folder);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  assert_null(strstr(r->err, "nterrupted"));
  is_document(r->out);
}

// Interrupted as soon as the profile is done: stdout has the document, stderr says which file has it and how to go on.
static void test_interrupted(void **state) {
  (void)state;
  const struct command_result *r =
      command("cd %s && : >said && { { n=0; until grep -q '^profile ' said || [ $n = 900 ]; do n=$((n + 1)); "
              "sleep 0.05; done; kill -INT $(cat pid); } & sh -c 'echo $$ >pid; exec tfc-place " FLAGS
              " --time 60s 2>said'; }; code=$?; cat said >&2; exit $code",
              folder);
  assert_result(r, 130, "Interrupted. Run 2 is kept in t.db; go on with: tfc-place ... --resume 2\n");
  assert_non_null(strstr(r->err, "Interrupted. The best placement so far is in g.placement.json\n"));
  is_document(r->out);
  // The time of the first call is used up: the answer is what it measured.
  r = command("cd %s && tfc-place " FLAGS " --resume --time 1ms", folder);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  assert_non_null(strstr(r->err, "going on with run 2"));
  is_document(r->out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_not_interrupted), cmocka_unit_test(test_interrupted)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
