// Tests that a signal ends tfc-run where work does not end by itself: in a loop of the initialiser, and in a single
// operation, which cannot be asked to stop.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

// A variable whose initial value is the result of a loop without end.
static const char looping[] =
    "library { function { signature { name: 'always' input_arg { name: 'i' type: DT_INT32 } output_arg { name: 'o' "
    "type: DT_BOOL } } node_def { name: 'e' op: 'Equal' input: 'i' input: 'i' attr { key: 'T' value { type: DT_INT32 } "
    "} } ret { key: 'o' value: 'e:z:0' } }\n"
    "function { signature { name: 'body' input_arg { name: 'i' type: DT_INT32 } output_arg { name: 'o' type: DT_INT32 "
    "} } node_def { name: 'n' op: 'Neg' input: 'i' attr { key: 'T' value { type: DT_INT32 } } } ret { key: 'o' value: "
    "'n:y:0' } } }\n"
    "node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor "
    "{ dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }\n"
    "node { name: 'w' op: 'While' input: 'one' attr { key: 'T' value { list { type: DT_INT32 } } } attr { key: 'cond' "
    "value { func { name: 'always' } } } attr { key: 'body' value { func { name: 'body' } } } }\n"
    "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'shape' value { "
    "shape { } } } attr { key: 'shared_name' value { s: 'v' } } }\n"
    "node { name: 'init' op: 'AssignVariableOp' input: 'v' input: 'w' attr { key: 'dtype' value { type: DT_INT32 } } "
    "}\n"
    "node { name: 'read' op: 'ReadVariableOp' input: 'v' attr { key: 'dtype' value { type: DT_INT32 } } }\n";

static void put_string(FILE *f, const char *name, const char *before, char letter, int times, const char *after) {
  fprintf(f,
          "node { name: '%s' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { "
          "tensor { dtype: DT_STRING tensor_shape { } string_val: '%s",
          name, before);
  for (int i = 0; i < times; i++) fputc(letter, f);
  fprintf(f, "%s' } } } }\n", after);
}

// A pattern of 300,000 places on a text of as many characters: it takes minutes.
static void put_long_match(void) {
  char path[96];
  snprintf(path, sizeof path, "%s/match.pbtxt", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  put_string(f, "text", "", 'a', 300000, "");
  fputs(
      "node { name: 'pattern' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { "
      "tensor { dtype: DT_STRING tensor_shape { } string_val: '(",
      f);
  for (int i = 0; i < 100000; i++) fputs("a?", f);
  fputs(")b' } } } }\n", f);
  put_string(f, "rewrite", "", 'x', 1, "");
  fputs("node { name: 'match' op: 'RegexReplace' input: 'text' input: 'pattern' input: 'rewrite' }\n", f);
  fclose(f);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "unending")) return -1;
  command_put(folder, "loop.pbtxt", looping);
  put_long_match();
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// Runs tfc-run and signals it soon after the shell's condition `begun` holds; it is killed if it goes on for a minute.
#define SIGNALLED(number, begun, flags)                                                                                \
  command("cd %s && rm -f pid && : >said && { { n=0; until " begun " || [ $n = 900 ]; do n=$((n + 1)); sleep 0.05; "   \
          "done; sleep 0.2; kill -" number                                                                             \
          " $(cat pid); } & timeout -s KILL 60 sh -c 'echo $$ >pid; exec tfc-run " flags                               \
          " 2>said'; }; code=$?; cat said >&2; exit $code",                                                            \
          folder)

static void test_initialiser(void **state) {
  (void)state;
  assert_result(SIGNALLED("TERM", "grep -q ^initialiser: said", "--graph loop.pbtxt --init init --fetch read:0"), 130,
                "initialising variables: the step was cancelled");
  command_put(folder, "script.json", "{\"runs\": [{\"fetches\": [\"read:0\"]}]}");
  assert_result(SIGNALLED("INT", "[ -s pid ]", "--graph loop.pbtxt --init init --run script.json --out o"), 130, "");
  assert_exit(1, "'w/", "cd %s && tfc-run --graph loop.pbtxt --init init --fetch read:0 --untrusted=time=1s", folder);
}

static void test_operation(void **state) {
  (void)state;
  assert_result(SIGNALLED("TERM", "grep -q ^step: said", "--graph match.pbtxt --fetch match:0"), 130,
                "tfc-run: interrupted; an operation of the step does not end");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_initialiser), cmocka_unit_test(test_operation)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
