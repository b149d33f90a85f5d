// Tests what tfc-place says of a search on this machine that was interrupted, and of one that was not; what it answers
// if it goes on when its time is over; and what tfc-run keeps of training that a signal ends.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

// Its products take milliseconds: after the profile, the measurements last long enough to be interrupted.
static const char graph[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape { dim { size: 512 } dim { size: 512 } } } } }\n"
    "node { name: 'a' op: 'MatMul' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'b' op: 'MatMul' input: 'a' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'c' op: 'AddV2' input: 'a' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }\n";

static char folder[64];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "interrupted")) return -1;
  command_put(folder, "g.pbtxt", graph);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
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
      command("cd %s && : >said && { { n=0; until grep -q '^profile ' said || [ $n = 4500 ]; do n=$((n + 1)); "
              "sleep 0.01; done; kill -INT $(cat pid); } & sh -c 'echo $$ >pid; exec tfc-place " FLAGS
              " --time 60s 2>said'; }; code=$?; cat said >&2; exit $code",
              folder);
  assert_result(r, 130, "Interrupted. Run 2 is kept in t.db; go on with: tfc-place ... --resume 2\n");
  assert_non_null(strstr(r->err, "Interrupted. The best placement so far is in g.placement.json\n"));
  is_document(r->out);
  json_t *first = json_loads(r->out, 0, NULL);
  // The time of the first call is used up: the answer is what it measured, and the run can go on later. That stays so
  // if the first times of all other placements are shorter, which can be luck: the run compared them in turns.
  for (int i = 0; i < 3; i++) {
    if (i == 2) {
      r = command("cd %s && python3 -c \"import sqlite3; c = sqlite3.connect('t.db'); c.execute('UPDATE placement SET "
                  "median_us = 1 WHERE run_id = 2 AND median_us > 1 AND placement_id <> (SELECT best_placement_id FROM "
                  "run WHERE run_id = 2)'); c.commit()\"",
                  folder);
      assert_result(r, 0, "");
    }
    r = command("cd %s && tfc-place " FLAGS " --resume --time 1ms", folder);
    if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
    assert_non_null(strstr(r->err, "going on with run 2"));
    assert_non_null(strstr(r->err, "run 2 has used its time"));
    is_document(r->out);
    json_t *again = json_loads(r->out, 0, NULL);
    assert_true(json_equal(json_object_get(first, "placement"), json_object_get(again, "placement")));
    json_decref(again);
  }
  json_decref(first);
  // What the run had stored of its candidates was changed by another program: they are compared anew.
  assert_exit(
      0, "",
      "cd %s && python3 -c \"import sqlite3; c = sqlite3.connect('t.db'); assert c.execute('UPDATE state SET "
      "value = CAST(\\'5\\' || char(10) || \\'none\\' AS BLOB) WHERE name = \\'levels\\'').rowcount; c.commit()\"",
      folder);
  r = command("cd %s && timeout 60 tfc-place " FLAGS " --resume --time 1ms", folder);
  if (r->code != 0 && r->code != 7) fail_msg("exit %d: %s", r->code, r->err);
  is_document(r->out);
}

// Each step adds one to `v`; the first one prints "begun".
// clang-format off
static const char training[] =
    "node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }\n"
    "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape {} } } }\n"
    "node { name: 'init' op: 'Assign' input: 'v' input: 'one' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'read' op: 'Identity' input: 'v' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'count' op: 'AssignAdd' input: 'v' input: 'one' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'step' op: 'Print' input: 'count' input: 'count' attr { key: 'T' value { type: DT_FLOAT } }"
    " attr { key: 'U' value { list { type: DT_FLOAT } } } attr { key: 'message' value { s: 'begun' } }"
    " attr { key: 'first_n' value { i: 1 } } }\n";
// clang-format on

// Trains with these flags until a signal comes, which is sent when the first step runs.
static const struct command_result *train(const char *signal, const char *flags) {
  return command("cd %s && : >said && { { n=0; until grep -q begun said || [ $n = 4500 ]; do n=$((n + 1)); "
                 "sleep 0.01; done; kill -%s $(cat pid); } & sh -c 'echo $$ >pid; exec tfc-run --graph t.pbtxt --init "
                 "init %s 2>said'; }; code=$?; wait; cat said >&2; exit $code",
                 folder, signal, flags);
}

static void test_saved(void **state) {
  (void)state;
  command_put(folder, "t.pbtxt", training);
  const struct command_result *r = train("INT", "--target step --steps 10000000 --save-checkpoint ck");
  assert_result(r, 130, "ck: 1 variables saved\n");
  long long steps = 0;
  const char *said = strstr(r->err, "tfc-run: stopped after ");
  assert_non_null(said);
  assert_int_equal(sscanf(said, "tfc-run: stopped after %lld steps; ck has the variables", &steps), 1);
  assert_true(steps > 0);
  // The variable has counted these steps, and begun with 1.
  r = command("cd %s && tfc-run --graph t.pbtxt --checkpoint ck --fetch read --steps 1 --warmup 0", folder);
  assert_result(r, 0, "");
  char value[64];
  snprintf(value, sizeof value, "read = %.9g\n", (double)(float)(steps + 1));
  if (!strstr(r->out, value)) fail_msg("no '%s' in: %s", value, r->out);
}

static void test_supervised(void **state) {
  (void)state;
  command_put(folder, "t.pbtxt", training);
  const struct command_result *r = train("TERM", "--target step --steps 10000000 --cluster worker=1 --supervise saved "
                                                 "--profile --db profile.db");
  assert_result(r, 130, "profile: run 1 in profile.db");
  long long steps = 0, kept = 0;
  const char *said = strstr(r->err, "stopped after ");
  assert_non_null(said);
  assert_int_equal(sscanf(said, "stopped after %lld steps; saved/model.ckpt-%lld has the variables", &steps, &kept), 2);
  assert_true(steps > 0 && kept == steps);
  r = command("cd %s && tfc-report --db profile.db list", folder);
  assert_result(r, 0, "");
  assert_non_null(strstr(r->out, "interrupted"));
  // SIGUSR1, which mpirun and Slurm pass on, does the same.
  r = train("USR1", "--target step --steps 10000000 --cluster worker=1 --supervise other");
  assert_result(r, 130, " steps; other/model.ckpt-");
}

// A signal while another process writes to the database.
static void test_waiting(void **state) {
  (void)state;
  command_put(folder, "t.pbtxt", training);
  const struct command_result *r =
      command("cd %s && : >said && { { n=0; until grep -q waiting said || [ $n = 4500 ]; do n=$((n + 1)); sleep 0.05; "
              "done; kill -INT $(cat pid); } & flock waited.db.lock sh -c 'echo $$ >pid; exec tfc-run --graph t.pbtxt "
              "--target step --cluster worker=1 --profile --db waited.db 2>said'; }; code=$?; cat said >&2; exit $code",
              folder);
  assert_result(r, 130, "stopped while another process writes to waited.db");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_not_interrupted), cmocka_unit_test(test_interrupted),
                                     cmocka_unit_test(test_saved), cmocka_unit_test(test_supervised),
                                     cmocka_unit_test(test_waiting)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
