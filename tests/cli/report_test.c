// Tests tfc-report as a program: every command on one database, tables as text, --csv and --json, and usage errors.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"

static char folder[64];

static int set_up(void **state) {
  (void)state;
  char path[96];
  struct sample_run sample;
  if (test_folder_make(folder, "report-cli")) return -1;
  snprintf(path, sizeof path, "%s/tfc.db", folder);
  tfc_status s = sample_run_write(path, 1, &sample);
  if (!s) s = sample_run_write(path, 2, &sample);
  return s ? -1 : 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void test_tables(void **state) {
  (void)state;
  static const struct {
    const char *command, *text, *csv, *json;
  } all[] = {{"list", "run", "run_id,state,", "\"runs\": ["},
             {"show 1", "Longest gaps", "run_id,state,program,", "\"results\": ["},
             {"compare 1 2", "nodes are on another device", "run_id,graph,", "\"moved\": ["},
             {"compare 1 2 1", "95 % interval", "run_id,graph,", "\"operations\": ["},
             {"critical 1", "critical path of the answer", "position,kind,", "\"edges\": ["},
             {"gaps", "waits", "device,start_us,", "\"gaps\": ["},
             {"memory 2", "at its fullest moment", "device_id,device,peak_bytes,", "\"tensors\": ["},
             {"nodes 2", "in a step", "node_id,node,", "\"nodes\": ["}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const struct command_result *r = command("cd %s && tfc-report %s", folder, all[i].command);
    assert_int_equal(r->code, 0);
    if (!strstr(r->out, all[i].text)) fail_msg("%s: no '%s' in: %s", all[i].command, all[i].text, r->out);
    r = command("cd %s && tfc-report %s --csv", folder, all[i].command);
    assert_int_equal(r->code, 0);
    if (strncmp(r->out, all[i].csv, strlen(all[i].csv)) != 0) fail_msg("%s: %.80s", all[i].command, r->out);
    r = command("cd %s && tfc-report %s --json", folder, all[i].command);
    assert_int_equal(r->code, 0);
    if (!strstr(r->out, all[i].json)) fail_msg("%s: no '%s' in: %.200s", all[i].command, all[i].json, r->out);
  }
}

static void test_refused(void **state) {
  (void)state;
  assert_exit(2, "--csv or --json", "cd %s && tfc-report nodes 1 --csv --json", folder);
  assert_exit(2, "no table for --csv", "cd %s && tfc-report trace 1 --csv", folder);
  assert_exit(2, "two runs", "cd %s && tfc-report compare 1", folder);
  assert_exit(2, "does not take '2'", "cd %s && tfc-report critical 1 2", folder);
  assert_exit(2, "is not a run's number", "cd %s && tfc-report gaps first", folder);
  assert_exit(2, "did you mean memory", "cd %s && tfc-report memry", folder);
  assert_exit(3, "9", "cd %s && tfc-report nodes 9", folder);
}

// A database whose tables are not those that its version has: bad input, with something to do about it.
static void test_damaged(void **state) {
  (void)state;
  static const char *const commands[] = {"list", "show 1", "nodes 1", "critical 1", "memory 1"};
  assert_exit(0, "",
              "cd %s && python3 -c \"import shutil, sqlite3; shutil.copy('tfc.db', 'gone.db'); c = "
              "sqlite3.connect('gone.db'); [c.execute('DROP TABLE ' + t) for t in ('op', 'run', 'memory')]; "
              "c.commit()\" && head -c 20000 tfc.db >half.db",
              folder);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_exit(3, "with --db", "cd %s && tfc-report --db gone.db %s", folder, commands[i]);
    assert_exit(3, "with --db", "cd %s && tfc-report --db half.db %s", folder, commands[i]);
  }
}

static void test_files(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-report compare 1 2 --out both && grep -q '<table' both/index.html", folder);
  assert_exit(0, "", "cd %s && tfc-report trace 1 --out t.json && head -c 1 t.json | grep -q '{'", folder);
  assert_exit(0, "", "cd %s && tfc-report trace 1 --out t.json.gz && gzip -t t.json.gz", folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_files),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
