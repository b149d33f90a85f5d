// Tests errors as users meet them: wrong files, paths that cannot be written, interrupts, databases that are not tfc's.
// Each has its exit code and a message that names the cause; stdout has a result or nothing.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

static void put(const char *name, const char *text, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fwrite(text, 1, size, file);
  fclose(file);
}
#define PUT(name, text) put(name, text, sizeof(text) - 1)

static const char machine[] = "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 4}\n"
                              "links:\n  - {from: \"*\", to: \"*\", bandwidth: 1GB/s}\n";

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "faults")) return -1;
  PUT("text.pb", "hello\n");
  PUT("empty.pb", "");
  PUT("m.yaml", machine);
  PUT("two.json", "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": [{\"name\": "
                  "\"a\", \"time_us\": {\"acc\": 10}}, {\"name\": \"b\", \"time_us\": {\"acc\": 50}}], \"edges\": "
                  "[{\"from\": \"a\", \"to\": \"b\", \"bytes\": 1000}]}");
  PUT("steer.pbtxt",
      "node { name: \"a\\033[2Jb\" op: \"Relu\" input: \"gone\" attr { key: \"T\" value { type: DT_FLOAT } "
      "} }\n");
  PUT("huge.pbtxt",
      "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: "
      "\"shape\" value { shape { dim { size: 1099511627776 } dim { size: 1099511627776 } } } } }\n"
      "node { name: \"y\" op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n");
  char line[256];
  snprintf(line, sizeof line, "cd %s && mkdir dir && cp %s/examples/mlp.pb m.pb && head -c 1000 m.pb > cut.pb", folder,
           TFC_SOURCE_DIR);
  return system(line);
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void test_wrong_graphs(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"nowhere.pb", "nowhere.pb"}, {"dir", "saved_model.pb"}, {"empty.pb", "empty"},
      {"cut.pb", "cut.pb"},         {"text.pb", "line 1"},     {"huge.pbtxt", "feed 'x"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_exit(3, wrong[i][1], "cd %s && tfc-run --graph %s", folder, wrong[i][0]);
    const struct command_result *r = command("cd %s && tfc-place --graph %s --devices 2", folder, wrong[i][0]);
    assert_result(r, 3, wrong[i][1]);
    assert_string_equal(r->out, "");
  }
  // Control characters in a name from a file do not reach the terminal.
  const struct command_result *r = command("cd %s && tfc-run --graph steer.pbtxt", folder);
  assert_int_equal(r->code, 3);
  assert_null(strchr(r->err, '\033'));
  assert_non_null(strstr(r->err, "a\\x1b[2Jb"));
}

static void test_feeds(void **state) {
  (void)state;
  static const char *const programs[] = {"tfc-run", "tfc-place --devices 2 --time 5s --db f.db"};
  for (size_t i = 0; i < 2; i++) {
    assert_exit(2, "--feed", "cd %s && %s --graph m.pb --feed x", folder, programs[i]);
    assert_exit(3, "float99[2]", "cd %s && %s --graph m.pb --feed 'x=float99[2]'", folder, programs[i]);
    const struct command_result *r = command("cd %s && %s --graph m.pb --feed x=none.npy", folder, programs[i]);
    assert_result(r, 3, "none.npy");
    assert_result(r, 3, "--feed x");
  }
}

// An error in the text of --devices is a usage error in every program; a device that does not exist has another exit
// code.
static void test_device_lists(void **state) {
  (void)state;
  static const char *const programs[] = {"tfc-run --graph m.pb --steps 1",
                                         "tfc-place --graph m.pb --time 1s --db d.db --report none",
                                         "tfc-place --graph two.json --machine m.yaml --time 1s"};
  static const char *const wrong[] = {"0", "acc:0-2,acc:1", "acc:2-1", "-1", "1025", "2000", "4097", "", ",", "acc:0,"};
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < (i == 1 ? 3 : sizeof wrong / sizeof *wrong); k++) // the second reads it as the first
      assert_exit(2, "--devices", "cd %s && %s --devices '%s'", folder, programs[i], wrong[k]);
    assert_exit(4, "gone", "cd %s && %s --devices gone:0", folder, programs[i]);
  }
  for (size_t i = 0; i < 2; i++) {
    assert_exit(2, "cpu:x", "cd %s && %s --devices cpu:x", folder, programs[i]);
    assert_exit(4, "cpu:9999", "cd %s && %s --devices cpu:9999", folder, programs[i]);
  }
}

#define TYPE_FLOAT " attr { key: \"T\" value { type: DT_FLOAT } } "
// A step that fails while it is profiled has the exit code of its reason, and names the node.
static void test_steps_that_fail(void **state) {
  (void)state;
  // The .npy file holds the two dimensions of `filled`: first [-5, 3], which is an error, then [2000000, 2000000],
  // which are 16 TB and more than any machine has.
  PUT("fill.pbtxt",
      "node { name: \"n\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: "
      "\"shape\" value { shape { dim { size: 2 } } } } }\n"
      "node { name: \"v\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: "
      "\"value\" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.5 } } } }\n"
      "node { name: \"filled\" op: \"Fill\" input: \"n\" input: \"v\"" TYPE_FLOAT "}\n"
      "node { name: \"y\" op: \"Relu\" input: \"filled\"" TYPE_FLOAT "}\n");
  char npy[136];
  for (int i = 0; i < 2; i++) {
    int32_t dims[2] = {i ? 2000000 : -5, i ? 2000000 : 3};
    memset(npy, ' ', sizeof npy);
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char head[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
    memcpy(npy + 10, head, sizeof head - 1);
    npy[127] = '\n';
    memcpy(npy + 128, dims, sizeof dims);
    put(i ? "huge.npy" : "negative.npy", npy, sizeof npy);
  }
  static const char *const programs[] = {
      "tfc-run --steps 1", "tfc-place --devices 2 --time 5s --db s.db --report none",
      "tfc-place --devices 2 --time 5s --db s.db --report none --evaluate single:cpu:0"};
  for (size_t i = 0; i < 3; i++) {
    assert_exit(3, "node 'filled' (Fill)", "cd %s && %s --graph fill.pbtxt --feed n=negative.npy", folder, programs[i]);
    assert_exit(5, "node 'filled' (Fill)", "cd %s && %s --graph fill.pbtxt --feed n=huge.npy", folder, programs[i]);
  }
  // The same sizes, known before anything runs.
  PUT("static.pbtxt",
      "node { name: \"s\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \"value\" value { "
      "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 2000000 int_val: 2000000 } } } }\n"
      "node { name: \"big\" op: \"RandomUniform\" input: \"s\" attr { key: \"T\" value { type: DT_INT32 } } attr { "
      "key: "
      "\"dtype\" value { type: DT_FLOAT } } }\n"
      "node { name: \"y\" op: \"Relu\" input: \"big\"" TYPE_FLOAT "}\n");
  for (size_t i = 0; i < 3; i++) {
    const struct command_result *r = command("cd %s && %s --graph static.pbtxt --json", folder, programs[i]);
    assert_result(r, 5, "float32[2000000,2000000] of node 'big'");
    json_t *d = json_loads(r->out, 0, NULL); // tfc-run writes the document also if nothing was measured
    const json_t *error = json_object_get(d, "error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), "out of memory");
    assert_non_null(strstr(json_string_value(json_object_get(error, "message")), "node 'big'"));
    assert_true(i == 0 || json_is_false(json_object_get(d, "feasible")));
    json_decref(d);
  }
}

// A node that contradicts its inputs does not stop the inference of other shapes, nor a step that does not need it.
static void test_a_contradiction(void **state) {
  (void)state;
  PUT("contradiction.pbtxt",
      "node { name: \"c\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \"value\" value { "
      "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.5 } } } }\n"
      "node { name: \"v\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value { "
      "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.5 } } } }\n"
      "node { name: \"y\" op: \"Relu\" input: \"v\"" TYPE_FLOAT "}\n");
  assert_exit(3, "'c' (Const): Type mismatch between value (float32) and dtype (int32)",
              "cd %s && tfc-run --graph contradiction.pbtxt --fetch c:0 --steps 1", folder);
  assert_exit(0, "", "cd %s && tfc-run --graph contradiction.pbtxt --fetch y:0 --steps 1", folder);
  const struct command_result *r = command("cd %s && tfc-run --graph contradiction.pbtxt --shapes", folder);
  assert_result(r, 3, "'c' (Const)");
  assert_non_null(strstr(r->out, "y (Relu) float32[]"));
  r = command("cd %s && tfc-run --graph contradiction.pbtxt --shapes --json", folder);
  assert_int_equal(r->code, 3);
  json_t *d = json_loads(r->out, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(d, "nodes")), 3);
  assert_int_equal(json_array_size(json_object_get(d, "errors")), 1);
  assert_non_null(json_object_get(d, "error"));
  json_decref(d);
}

// A step that waits for an element that nothing can bring fails at once.
static void test_a_deadlock(void **state) {
  (void)state;
#define QUEUE_OF_FLOATS "attr { key: \"component_types\" value { list { type: DT_FLOAT } } }"
  PUT("stuck.pbtxt", "node { name: \"q\" op: \"FIFOQueueV2\" " QUEUE_OF_FLOATS " attr { key: \"shapes\" value { list { "
                     "shape { dim { size: 2 } } } } } }\n"
                     "node { name: \"d\" op: \"QueueDequeueV2\" input: \"q\" " QUEUE_OF_FLOATS " }\n"
                     "node { name: \"r\" op: \"Relu\" input: \"d\"" TYPE_FLOAT "}\n");
  assert_exit(1, "'d' (QueueDequeueV2) on cpu:0 waits for FIFOQueue 'q'",
              "cd %s && timeout 200 tfc-place --devices 2 --time 10s --db h.db --report none --graph stuck.pbtxt",
              folder);
}

// A step that hangs ends when the time budget of 3 s ends, or at most 3.3 s later (a tenth of the budget and 3 s).
static void test_a_hang(void **state) {
  (void)state;
#define QUEUE_OF_FLOATS "attr { key: \"component_types\" value { list { type: DT_FLOAT } } }"
#define TYPE_BOOL " attr { key: \"T\" value { type: DT_BOOL } }"
  PUT("hang.pbtxt",
      "node { name: \"c\" op: \"Const\" attr { key: \"dtype\" value { type: DT_BOOL } } attr { key: \"value\" value { "
      "tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } } }\n"
      "node { name: \"e\" op: \"Enter\" input: \"c\"" TYPE_BOOL " attr { key: \"frame_name\" value { s: \"f\" } } }\n"
      "node { name: \"m\" op: \"Merge\" input: \"e\" input: \"n\" attr { key: \"N\" value { i: 2 } }" TYPE_BOOL "}\n"
      "node { name: \"l\" op: \"LoopCond\" input: \"m\" }\n"
      "node { name: \"s\" op: \"Switch\" input: \"m\" input: \"l\"" TYPE_BOOL "}\n"
      "node { name: \"n\" op: \"NextIteration\" input: \"s:1\"" TYPE_BOOL "}\n"
      "node { name: \"x\" op: \"Exit\" input: \"s\"" TYPE_BOOL "}\n"
      "node { name: \"y\" op: \"LogicalNot\" input: \"x\" }\n");
  int ms = 0; // milliseconds; a busy machine has several attempts
  for (int tries = 0; tries < 5 && (!tries || ms > 6300); tries++) {
    const struct command_result *r =
        command("cd %s && date +%%s%%N >begin && timeout 200 tfc-place --devices 2 --time 3s --db h.db --report none "
                "--graph hang.pbtxt; code=$?; echo $(( ($(date +%%s%%N) - $(cat begin)) / 1000000 )); exit $code",
                folder);
    assert_result(r, 1, "could not be profiled: the measuring process gave no sign");
    ms = atoi(r->out);
  }
  if (ms > 6300) fail_msg("%d ms", ms);
}

// An output that cannot be written is reported before anything runs, so no profile was begun.
static void test_outputs_first(void **state) {
  (void)state;
  static const char *const wrong[] = {"--out none/p.json",     "--out dir",      "--report none/r", "--report text.pb",
                                      "--save-problem none/p", "--db none/t.db", "--db dir"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const struct command_result *r = command("cd %s && tfc-place --graph m.pb --devices 2 %s", folder, wrong[i]);
    if (r->code != 6) fail_msg("%s: exit %d: %s", wrong[i], r->code, r->err);
    assert_null(strstr(r->err, "profile"));
    assert_string_equal(r->out, "");
  }
  assert_exit(6, "--out", "cd %s && tfc-place --graph two.json --machine m.yaml --out none/p.json", folder);
  assert_exit(3, "none.json", "cd %s && tfc-place --graph m.pb --devices 2 --evaluate none.json", folder);
  assert_exit(3, "--baseline", "cd %s && tfc-place --graph m.pb --devices 2 --baseline mine=text.pb", folder);
  const struct command_result *r = command("cd %s && tfc-run --graph m.pb --profile --db none/t.db", folder);
  assert_int_equal(r->code, 6);
  assert_null(strstr(r->err, "steps after"));
}

static void test_databases(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-run --graph m.pb --profile --steps 2 --db t.db -q", folder);
  assert_exit(0, "",
              "cd %s && cp t.db new.db && sqlite3 new.db 'PRAGMA user_version = 99' && head -c 9000 t.db > cut.db",
              folder);
  static const char *const wrong[][2] = {
      {"text.pb", "not an SQLite database"}, {"new.db", "newer tfc"}, {"cut.db", "damaged"}};
  for (size_t i = 0; i < 3; i++) { // an error of input for programs that read it, of output for those that write it
    assert_exit(3, wrong[i][1], "cd %s && tfc-report --db %s list", folder, wrong[i][0]);
    assert_exit(6, wrong[i][1], "cd %s && tfc-run --graph m.pb --profile --db %s", folder, wrong[i][0]);
    assert_exit(6, wrong[i][1], "cd %s && tfc-place --graph m.pb --devices 2 --db %s", folder, wrong[i][0]);
  }
}

// With --json, stdout has one JSON document and nothing else, whatever characters names contain and although
// partitioners print messages.
static void test_documents(void **state) {
  (void)state;
  static const char *const calls[] = {
      "tfc-export --graph m.pb --strip-devices --out 'a\"b.pb' --json",
      "tfc-place --graph two.json --machine m.yaml --time 1s --out o.json --json", // METIS cannot make so many parts
      "tfc-run --graph m.pb --steps 1 --json",
      "tfc-run --graph m.pb --shapes --json",
      "tfc-run --list-ops --json",
  };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    char line[512];
    snprintf(line, sizeof line, "cd %s && %s >document; code=$?; [ $code = 0 -o $code = 7 ] || exit $code", folder,
             calls[i]);
    assert_exit(0, "", "%s", line);
    snprintf(line, sizeof line, "%s/document", folder);
    json_error_t error;
    json_t *d = json_load_file(line, 0, &error);
    if (!d) fail_msg("%s: %s", calls[i], error.text);
    json_decref(d);
  }
  // A device file is written to and not replaced by a file; a symbolic link remains a link.
  const struct command_result *r =
      command("cd %s && ln -s target.json link.json && : >target.json && "
              "tfc-place --graph two.json --machine m.yaml --time 1s -q --out link.json >shown; "
              "test -L link.json && grep -q tfc-placement target.json && "
              "{ tfc-place --graph two.json --machine m.yaml --time 1s -q --out /dev/stdout | grep -c tfc-placement; }",
              folder);
  assert_string_equal(r->out, "1\n");
}

// An interrupt ends the program with 130, whenever it comes.
static void test_interrupts(void **state) {
  (void)state;
  static const char *const after[] = {"0.03", "0.1", "0.4", "1.5"};
  for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
    const struct command_result *r = command("cd %s && { timeout --preserve-status -s INT %s tfc-place --graph m.pb "
                                             "--devices 2 --time 20s --db i.db --report none --out i.json "
                                             "; } ; echo $?",
                                             folder, after[i]);
    if (!strstr(r->out, "130")) fail_msg("after %s s: %s%s", after[i], r->out, r->err);
  }
  // With --save-problem, a run that is interrupted before or after its profile is done writes a problem with its times,
  // or none.
  static const char *const saved[] = {
      "sleep 0.2", "sleep 0.5",
      "n=0; until grep -q '^profile ' shown || [ $n = 600 ]; do n=$((n + 1)); sleep 0.1; done"};
  for (size_t i = 0; i < 3; i++) {
    const struct command_result *r = command(
        "cd %s && rm -rf p shown pid && : >shown && { { %s; kill -INT $(cat pid); } & sh -c 'echo $$ >pid; exec "
        "tfc-place --graph m.pb --devices 2 --time 30s --db p.db --report none --out i.json --save-problem p "
        "2>shown'; wait; } ; ls p 2>/dev/null | grep -v placement; grep -c '\"cpu\": *[0-9.]*[1-9]' p/graph.json; cat "
        "shown >&2",
        folder, saved[i]);
    bool written = strstr(r->out, "graph.json") != NULL;
    if (written && atoi(strstr(r->out, "machine.yaml") + 12) == 0) fail_msg("after %s: no times", saved[i]);
    if (i == 2 && !written) fail_msg("nothing was saved: %s", r->err);
  }
  // The steps before the interrupt are kept. (They are one transaction, so it cannot be seen from outside when steps
  // began; the test waits some seconds, which may be too few on a slow machine.)
  const struct command_result *r =
      command("cd %s && for s in 1 5 25; do rm -f r.db*; { { n=0; until sqlite3 r.db 'SELECT state FROM v_run' "
              ">/dev/null 2>&1 || [ $n = 600 ]; do n=$((n + 1)); sleep 0.1; done; sleep $s; kill -INT $(cat pid); } & "
              "sh -c 'echo $$ >pid; exec tfc-run --graph m.pb --steps 1000000 --profile --db r.db'; code=$?; wait; }; "
              "state=$(sqlite3 r.db 'SELECT state FROM v_run'); [ -z \"$state\" ] || break; done; echo $code; "
              "echo $state",
              folder);
  assert_string_equal(r->out, "130\ninterrupted\n");
}

// What is made of the flags exists in four forms.
static void test_generated(void **state) {
  (void)state;
  static const char *const kinds[] = {"man", "bash", "zsh", "fish"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const struct command_result *r = command("tfc-run --generate %s", kinds[i]);
    assert_result(r, 0, "");
    assert_non_null(strstr(r->out, "placement"));
  }
  assert_exit(2, "unknown flag --generate", "tfc-run --generate poem");
}

// In a folder that others may write, names of temporary files are guessed and made links to files of the user: the
// programs must write through none of them. A shell's process has the number of the program that it becomes.
static void test_links(void **state) {
  (void)state;
  static const char *const commands[] = {
      "ln -s ../victim .tfc-probe-$$; exec tfc-place --graph ../two.json --machine ../m.yaml --time 1s --db p.db "
      "--report none --out p.json",
      "ln -s ../victim p.db.$$.probe; exec tfc-place --graph ../two.json --machine ../m.yaml --time 1s --db p.db "
      "--report none --out p.json",
      "ln -s ../victim p.json.$$.tmp; exec tfc-place --graph ../two.json --machine ../m.yaml --time 1s --db p.db "
      "--report none --out p.json",
      "ln -s ../victim c.data.$$.tmp; exec tfc-run --graph ../m.pb --steps 1 --save-checkpoint c",
      "ln -s ../victim p.db.lock; exec tfc-run --graph ../m.pb --steps 1 --profile --db p.db",
  };
  PUT("victim", "mine");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const struct command_result *r =
        command("cd %s && rm -rf shared && mkdir shared && cd shared && sh -c '%s'", folder, commands[i]);
    if (r->code != 0 && r->code != 7 && r->code != 6) fail_msg("%s: exit %d: %s", commands[i], r->code, r->err);
    if (command("grep -qx mine %s/victim", folder)->code) fail_msg("written through a link: %s", commands[i]);
  }
}

// Runs commands beside the file that the shell text `make` creates: each must fail with exit code 3, and say `why`.
static void refuse(const char *make, const char *const *commands, size_t count, const char *why) {
  for (size_t i = 0; i < count; i++) {
    const struct command_result *r = command("cd %s && { %s; } && timeout -s KILL 60 %s", folder, make, commands[i]);
    if (r->code != 3 || !strstr(r->err, why)) fail_msg("%s: exit %d: %s", commands[i], r->code, r->err);
  }
}

// A pipe in the place of any file that is read is an error at once: nobody may ever write to it.
static void test_pipes(void **state) {
  (void)state;
  static const char *const commands[] = {"tfc-run --graph m.pb --run pipe --out o",
                                         "tfc-run --graph pipe",
                                         "tfc-run --graph m.pb --placement pipe",
                                         "tfc-run --graph m.pb --feed x:0=pipe",
                                         "tfc-place --graph two.json --machine pipe",
                                         "tfc-place --graph two.json --machine m.yaml --config pipe",
                                         "tfc-place --graph two.json --machine m.yaml --step pipe",
                                         "tfc-place --graph two.json --machine m.yaml --evaluate pipe",
                                         "tfc-place --graph two.json --machine m.yaml --policy pipe",
                                         "tfc-export --graph pipe --strip-devices --format pbtxt --out o.pbtxt",
                                         "tfc-report --db pipe list"};
  refuse("[ -p pipe ] || mkfifo pipe", commands, sizeof commands / sizeof *commands, "");
}

// A file with a hole, a million times as large as a document may be, is an error at once: it is neither read nor
// hashed.
static void test_holes(void **state) {
  (void)state;
  static const char *const commands[] = {"tfc-run --graph hole",
                                         "tfc-run --graph m.pb --run hole --out o",
                                         "tfc-run --graph m.pb --placement hole",
                                         "tfc-place --graph hole --machine m.yaml",
                                         "tfc-place --graph two.json --machine hole",
                                         "tfc-place --graph two.json --machine m.yaml --config hole",
                                         "tfc-place --graph two.json --machine m.yaml --evaluate hole",
                                         "tfc-place --graph two.json --machine m.yaml --baseline a=hole",
                                         "tfc-place --graph two.json --machine m.yaml --policy hole",
                                         "tfc-export --placement hole --out o.csv",
                                         "tfc-export --graph hole --strip-devices --format pbtxt --out o.pbtxt"};
  refuse("truncate -s 1T hole", commands, sizeof commands / sizeof *commands, "larger than 2 GiB");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_graphs),    cmocka_unit_test(test_feeds),
      cmocka_unit_test(test_outputs_first),   cmocka_unit_test(test_device_lists),
      cmocka_unit_test(test_steps_that_fail), cmocka_unit_test(test_a_contradiction),
      cmocka_unit_test(test_a_deadlock),      cmocka_unit_test(test_a_hang),
      cmocka_unit_test(test_databases),       cmocka_unit_test(test_documents),
      cmocka_unit_test(test_interrupts),      cmocka_unit_test(test_links),
      cmocka_unit_test(test_holes),           cmocka_unit_test(test_pipes),
      cmocka_unit_test(test_generated),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
