// Tests tfc-report as a program: every command on one database, tables as text, --csv and --json, and usage errors.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/change.h"
#include "tests/common/command.h"

#ifdef TFC_SANITIZED // which reserves terabytes of addresses
#define LITTLE_MEMORY ""
#else
#define LITTLE_MEMORY "ulimit -v 1000000; "
#endif
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

// Texts of a database that somebody made: what people read stays short and controls no terminal, tables have all of it.
static void test_long_texts(void **state) {
  (void)state;
  static const char *const columns[] = {
      "run.graph",     "run.program",    "run.label",      "run.command",     "run.message",       "run.algorithm",
      "run.cpu_model", "run.bound_name", "placement.name", "placement.label", "placement.message", "device.name",
      "device.label",  "device.math",    "node.name",      "node.op",         "warning.text",      "step.phase"};
  static const char *const commands[] = {"list", "show 1", "compare 1 2"};
  char path[96], sql[300];
  snprintf(path, sizeof path, "%s/long.db", folder);
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    const char *dot = strchr(columns[i], '.');
    assert_exit(0, "", "cp %s/tfc.db %s", folder, path);
    snprintf(sql, sizeof sql, "UPDATE %.*s SET %s = char(27) || '[2J' || printf('%%.*c', 9000, 'x') || %s",
             (int)(dot - columns[i]), columns[i], dot + 1, dot + 1);
    change_database(path, sql);
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
      const struct command_result *r = command("tfc-report --db %s %s", path, commands[c]);
      if (r->code || strchr(r->out, 27) || strchr(r->err, 27) || strlen(r->out) > 30000)
        fail_msg("%s, %s: exit %d, %zu bytes: %.1000s%s", columns[i], commands[c], r->code, strlen(r->out), r->out,
                 r->err);
    }
  }
  // all of it
  assert_exit(0, "", "cp %s/tfc.db %s", folder, path);
  change_database(path, "UPDATE node SET name = printf('%.*c', 3000000, 'x') || name WHERE node_id = 0");
  assert_exit(0, "", "tfc-report --db %s nodes 1 --csv | awk 'length > 3000000 {n++} END {exit !n}'", path);
  assert_exit(0, "", "tfc-report --db %s nodes 1 --json | awk 'length > 3000000 {n++} END {exit !n}'", path);
  // A text that no run has is not read: reports would hold several copies of it.
  change_database(path, "UPDATE run SET graph = printf('%.*c', 134217729, 'x')");
  for (size_t c = 0; c < 2; c++) {
    assert_exit(3, "a text in it is longer than 134", LITTLE_MEMORY "tfc-report --db %s %s", path, commands[c]);
    assert_exit(3, "a text in it is longer than 134", LITTLE_MEMORY "tfc-report --db %s %s --json", path, commands[c]);
  }
}

static void test_files(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-report compare 1 2 --out both && grep -q '<table' both/index.html", folder);
  assert_exit(0, "", "cd %s && tfc-report trace 1 --out t.json && head -c 1 t.json | grep -q '{'", folder);
  assert_exit(0, "", "cd %s && tfc-report trace 1 --out t.json.gz && gzip -t t.json.gz", folder);
}

// Each command takes as many runs as it can show, and only its own flags.
static void test_words(void **state) {
  (void)state;
  static const char *const too_many[][2] = {{"list 1", "list does not take '1'"},
                                            {"show 1 2", "show does not take '2'"},
                                            {"critical 1 2", "critical does not take '2'"},
                                            {"gaps 1 2", "gaps does not take '2'"},
                                            {"memory 1 2", "memory does not take '2'"},
                                            {"nodes 1 2", "nodes does not take '2'"},
                                            {"trace 1 2", "trace does not take '2'"},
                                            {"gc 1 --keep 1", "gc does not take '1'"},
                                            {"", "say list, show, compare"},
                                            {"xyzzyxyzzy", "there is no 'xyzzyxyzzy': say list"},
                                            {"gc", "gc needs --keep N"},
                                            {"gc --keep 1 --csv", "gc has no table for --csv"},
                                            {"nodes 1 --steps 1", "nodes has no --steps and no --placement: trace has"},
                                            {"nodes 1 --placement x", "nodes has no --steps and no --placement"},
                                            {"trace 1 --steps 3-2", "'3-2' is neither"},
                                            {"trace 1 --steps x", "'x' is neither"},
                                            {"trace 1 --steps 1-", "'1-' is neither"},
                                            {"compare 1 2x", "'2x' is not a run's number"}};
  for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++)
    assert_exit(2, too_many[i][1], "cd %s && tfc-report %s", folder, too_many[i][0]);
  assert_exit(3, "no run 0", "cd %s && tfc-report show 0", folder);
  assert_exit(0, "", "cd %s && tfc-report compare $(yes 1 | head -32)", folder);
  assert_exit(2, "no more arguments are expected", "cd %s && tfc-report compare $(yes 1 | head -32) 2", folder);
}

// The steps that a trace has, as "0 1 2 ".
static const char *steps_of(const char *arguments) {
  const struct command_result *r =
      command("cd %s && tfc-report trace %s --out s.json && python3 -c \"import json; print(*sorted({e['args']['step'] "
              "for e in "
              "json.load(open('s.json'))['traceEvents'] if e.get('cat') == 'op'}), end=' ')\"",
              folder, arguments);
  assert_result(r, 0, "Written: s.json, ");
  return r->out;
}
static void test_steps_of_traces(void **state) {
  (void)state;
  char all[200], one[32], arguments[100];
  int first, second;
  snprintf(all, sizeof all, "%s", steps_of("1"));
  if (sscanf(all, "%d %d", &first, &second) != 2) fail_msg("less than two steps: %s", all);
  snprintf(one, sizeof one, "%d ", second);
  snprintf(arguments, sizeof arguments, "1 --steps %d", second);
  assert_string_equal(steps_of(arguments), one);
  snprintf(one, sizeof one, "%d %d ", first, second);
  snprintf(arguments, sizeof arguments, "--steps %d-%d", first, second); // of the last run
  assert_string_equal(steps_of(arguments), one);
  const struct command_result *r = command(
      "cd %s && tfc-report trace 1 --json --out s.json && python3 -c \"import json; print(len(json.load(open('s.json'))"
      "['traceEvents']))\"",
      folder);
  unsigned said = 0, there = 0;
  assert_result(r, 0, "");
  assert_non_null(strstr(r->out, "\"file\": \"s.json\""));
  assert_int_equal(sscanf(strstr(r->out, "\"events\": "), "\"events\": %u", &said), 1);
  assert_int_equal(sscanf(strrchr(r->out, '}') + 1, "%u", &there), 1);
  assert_true(said > 0 && said <= there); // names of rows are no events
  assert_null(strstr(r->err, "Written"));
  assert_exit(0, "Written: trace.json.gz, ", "cd %s && tfc-report trace && gzip -t trace.json.gz", folder);
}

static void test_old_runs(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && cp tfc.db old.db", folder);
  const struct command_result *r = command("cd %s && tfc-report --db old.db gc --keep 2 --json", folder);
  assert_result(r, 0, "");
  assert_string_equal(r->out, "{\"deleted\": 0}\n");
  r = command("cd %s && tfc-report --db old.db gc --keep 1", folder);
  assert_result(r, 0, "1 runs deleted.\n");
  assert_string_equal(r->out, "");
  r = command("cd %s && tfc-report --db old.db list --csv | tail -n +2", folder);
  assert_result(r, 0, "");
  assert_int_equal(strncmp(r->out, "2,", 2), 0);
  assert_true(strchr(r->out, '\n') == r->out + strlen(r->out) - 1);
  r = command("cd %s && tfc-report show 1 --out page && ls page", folder);
  assert_result(r, 0, "Written: page/index.html\n");
  assert_non_null(strstr(r->out, "index.html"));
  r = command("cd %s && tfc-report show 1", folder);
  assert_null(strstr(r->err, "Written"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),          cmocka_unit_test(test_refused),  cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_long_texts),      cmocka_unit_test(test_files),    cmocka_unit_test(test_words),
      cmocka_unit_test(test_steps_of_traces), cmocka_unit_test(test_old_runs),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
