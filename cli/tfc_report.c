// tfc-report: shows the runs in a database.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/program.h"
#include "cli/untrusted.h"
#include "profiler/store_runs.h"
#include "reports/compare.h"
#include "reports/compare_page.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

enum { COMPARED = 32 }; // most runs that are compared
// A database from elsewhere may have texts of any length, and a report has several copies of each. The longest text of
// a run is that of its placement file.
enum { LONGEST = 128 << 20 };
struct options {
  struct tfc_common common;
  const char *db, *out, *steps, *placement;
  int64_t keep;
  bool csv;
};
#define AT(member) .offset = offsetof(struct options, member)
static const struct tfc_flag flags[] = {
    {.name = "db",
     .path = TFC_PATH_DATABASE,
     .kind = TFC_FLAG_TEXT,
     AT(db),
     .value = "FILE",
     .help = "the database (default tfc.db)"},
    {.name = "out",
     .path = TFC_PATH_WRITE,
     .kind = TFC_FLAG_TEXT,
     AT(out),
     .value = "PATH",
     .help = "show and compare: the directory that gets the page; trace: the file (default trace.json.gz)"},
    {.name = "keep",
     .kind = TFC_FLAG_COUNT,
     AT(keep),
     .value = "N",
     .minimum = 0,
     .maximum = INT64_MAX,
     .help = "gc: how many of the last runs stay"},
    {.name = "steps",
     .kind = TFC_FLAG_TEXT,
     AT(steps),
     .value = "N[-M]",
     .help = "trace: only these steps (default: all that were traced)"},
    {.name = "placement",
     .kind = TFC_FLAG_TEXT,
     AT(placement),
     .value = "NAME",
     .help = "trace: of this placement, by its name or number (default: the answer)"},
    {.name = "csv", .kind = TFC_FLAG_BOOL, AT(csv), .help = "the table as comma-separated values on stdout"},
};
static const struct tfc_program program = {
    .name = "tfc-report",
    .summary = "look at what happened in a run",
    .usage = "tfc-report [--db FILE] list | show [RUN] [--out DIR] | compare RUN RUN... | critical [RUN] | "
             "gaps [RUN] | memory [RUN] | nodes [RUN] | trace [RUN] "
             "[--steps N-M] [--placement NAME] [--out FILE] | gc --keep N",
    .examples = "  tfc-report list\n"
                "      the runs of tfc.db\n"
                "  tfc-report --db tfc.db show 17 --out nmt.report\n"
                "      one run: its rivals, its devices, and the page with all plots\n"
                "  tfc-report compare 16 17\n"
                "      two runs side by side, or several in a table: steps, nodes that moved\n"
                "  tfc-report critical 17\n"
                "      its critical path as it was run: operations and transfers in order\n"
                "  tfc-report gaps 17\n"
                "      when devices were idle, and what they waited for\n"
                "  tfc-report memory 17\n"
                "      peak memory of devices, and what fills it\n"
                "  tfc-report nodes 17 --csv\n"
                "      every operation: device, time, bytes, slack\n"
                "  tfc-report trace 17 --out trace.json.gz\n"
                "      its traced steps for chrome://tracing or ui.perfetto.dev\n"
                "  tfc-report gc --keep 5\n"
                "      delete all but the last five runs\n",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .commands = "list|show|compare|critical|gaps|memory|nodes|trace|gc",
    .argument_max = 1 + COMPARED,
};

enum { LIST, SHOW, COMPARE, CRITICAL, GAPS, MEMORY, NODES, TRACE, GC, COMMANDS };
static const char *const commands[] = {"list",   "show",  "compare", "critical", "gaps",
                                       "memory", "nodes", "trace",   "gc",       NULL};
#define SAY "say list, show, compare, critical, gaps, memory, nodes, trace or gc"
static const char *command_name(const void *list, size_t i) {
  return ((const char *const *)list)[i];
}

// Reads a run's id from an argument; -1: the last run. False: not a valid id.
static bool parse_run(const struct tfc_texts *arguments, uint32_t i, int64_t *out) {
  *out = -1;
  if (arguments->count <= i) return true;
  tfc_status s = tfc_parse_i64(tfc_str_from(arguments->items[i]), out);
  tfc_status_free(s);
  return !s && *out >= 0;
}

// Prints tables as --csv (only the first one) or --json (all, by name).
static tfc_status print_tables(const struct options *o, const char *const *names, const struct tfc_table *tables,
                               size_t count) {
  struct tfc_text text = {0};
  tfc_status s = NULL;
  json_t *document = NULL;
  if (o->csv) {
    tfc_table_csv(&tables[0], &text);
    if (text.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
    fwrite(text.data, 1, text.size, stdout);
    goto out;
  }
  document = json_object();
  for (size_t i = 0; i < count; i++) json_object_set_new(document, names[i], cli_json_table(&tables[i]));
  s = cli_json_print(document);
out:
  json_decref(document);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status print_queries(const struct options *o, struct tfc_store *store, const char *const *names,
                                const char *const *queries, const struct tfc_query_args *args) {
  struct tfc_table tables[4] = {0};
  size_t count = 0;
  tfc_status s = NULL;
  for (; names[count]; count++) TFC_TRY(s, tfc_table_query(store, queries[count], args, &tables[count]));
  s = print_tables(o, names, tables, count);
out:
  for (size_t i = 0; i < 4; i++) tfc_table_deinit(&tables[i]);
  return s;
}

static tfc_status print_text(const struct tfc_text *text) {
  struct tfc_text shown = {0};
  tfc_text_add_shown(&shown, (tfc_str){text->data, text->size});
  if (shown.size) fwrite(shown.data, 1, shown.size, stdout);
  const bool failed = text->failed || shown.failed;
  tfc_text_deinit(&shown);
  return failed ? tfc_status_no_memory(NULL) : NULL;
}

static tfc_status print_lists(const struct options *o, struct tfc_report_lists *lists) {
  tfc_status s = NULL;
  if (o->csv || o->common.json)
    s = print_tables(o, lists->names, lists->tables, lists->count);
  else
    s = print_text(&lists->text);
  tfc_report_lists_deinit(lists);
  return s;
}

// Parses "3" or "3-7".
static bool parse_steps(const char *text, int64_t *out_first, int64_t *out_last) {
  tfc_str all = tfc_str_from(text);
  const size_t dash = tfc_str_find(all, '-');
  tfc_str first = tfc_str_sub(all, 0, dash), last = dash == SIZE_MAX ? first : tfc_str_sub(all, dash + 1, SIZE_MAX);
  tfc_status s = tfc_parse_i64(first, out_first);
  if (!s) s = tfc_parse_i64(last, out_last);
  const bool good = !s && *out_first >= 0 && *out_first <= *out_last;
  tfc_status_free(s);
  return good;
}

static tfc_status run(int command, const struct options *o, struct tfc_store *store, const int64_t *runs,
                      uint32_t run_count) {
  struct tfc_text text = {0};
  struct tfc_query_args args = {0};
  struct tfc_report_lists lists = {0};
  const bool rows = o->csv || o->common.json;
  const int64_t a = runs[0];
  tfc_status s = NULL;
  switch (command) {
  case LIST:
    if (rows) {
      TFC_TRY(s, print_queries(o, store, (const char *const[]){"runs", NULL},
                               (const char *const[]){tfc_report_sql_runs}, &args));
      break;
    }
    TFC_TRY(s, tfc_report_list(store, &text));
    break;
  case SHOW:
    TFC_TRY(s, tfc_report_focus(store, a, &args));
    if (o->out) {
      TFC_TRY(s, tfc_report_page(store, args.run, o->out));
      tfc_say("Written: %s/index.html", o->out);
    }
    if (rows) {
      TFC_TRY(s, print_queries(o, store, (const char *const[]){"run", "results", "devices", "warnings", NULL},
                               (const char *const[]){tfc_report_sql_run_with_tau, tfc_report_sql_results,
                                                     tfc_report_sql_devices, tfc_report_sql_warnings},
                               &args));
      break;
    }
    TFC_TRY(s, tfc_report_show(store, args.run, &text));
    break;
  case COMPARE:
    TFC_TRY(s, tfc_report_compare(store, runs, run_count, &lists));
    if (o->out) {
      TFC_TRY(s, tfc_report_compare_page(&lists, tfc_store_path(store), tfc_store_is_copy(store), o->out));
      tfc_say("Written: %s/index.html", o->out);
    }
    TFC_TRY(s, print_lists(o, &lists));
    break;
  case CRITICAL:
    TFC_TRY(s, tfc_report_critical(store, a, &lists));
    TFC_TRY(s, print_lists(o, &lists));
    break;
  case GAPS:
    TFC_TRY(s, tfc_report_gaps(store, a, &lists));
    TFC_TRY(s, print_lists(o, &lists));
    break;
  case MEMORY:
    TFC_TRY(s, tfc_report_memory(store, a, &lists));
    TFC_TRY(s, print_lists(o, &lists));
    break;
  case NODES:
    TFC_TRY(s, tfc_report_nodes_within(store, a, tfc_output_columns(), &lists));
    TFC_TRY(s, print_lists(o, &lists));
    break;
  case TRACE: {
    uint64_t events;
    const char *path = o->out ? o->out : "trace.json.gz";
    struct tfc_report_trace_options chosen = {.placement = o->placement, .last = INT64_MAX};
    if (o->steps) parse_steps(o->steps, &chosen.first, &chosen.last);
    TFC_TRY(s, tfc_report_trace(store, a, &chosen, path, &events));
    if (o->common.json) {
      json_t *document = json_pack("{s:o, s:I}", "file", cli_json_string(path), "events", (json_int_t)events);
      s = cli_json_print(document);
      json_decref(document);
    } else
      tfc_say("Written: %s, %llu events. Open it in chrome://tracing or ui.perfetto.dev.", path,
              (unsigned long long)events);
    break;
  }
  case GC: {
    int64_t deleted;
    TFC_TRY(s, tfc_store_gc(store, o->keep, &deleted));
    if (o->common.json)
      printf("{\"deleted\": %lld}\n", (long long)deleted);
    else
      tfc_say("%lld runs deleted.", (long long)deleted);
    break;
  }
  }
  TFC_TRY(s, print_text(&text));
out:
  tfc_text_deinit(&text);
  tfc_report_lists_deinit(&lists);
  return s;
}

int main(int argc, char **argv) {
  static struct options o = {.db = "tfc.db", .keep = -1};
  static struct tfc_texts arguments;
  static const uint32_t most[COMMANDS] = {1, 2, 1 + COMPARED, 2, 2, 2, 2, 2, 1};
  tfc_program_start("tfc-report", argv);
  int code = tfc_flags_parse(&program, argc, argv, &o, &arguments), command = 0;
  if (code >= 0) return code;
  if (arguments.count == 0) return tfc_flags_error(&program, SAY);
  while (command < COMMANDS && strcmp(commands[command], arguments.items[0]) != 0) command++;
  if (command == COMMANDS) {
    const char *nearest = tfc_nearest(arguments.items[0], command_name, commands);
    if (nearest) return tfc_flags_error(&program, "there is no '%s'; did you mean %s?", arguments.items[0], nearest);
    return tfc_flags_error(&program, "there is no '%s': " SAY, arguments.items[0]);
  }
  int64_t runs[COMPARED] = {-1};
  uint32_t run_count = 0;
  if (arguments.count > most[command])
    return tfc_flags_error(&program, "%s does not take '%s'", commands[command], arguments.items[most[command]]);
  if (command == COMPARE && arguments.count < 3) return tfc_flags_error(&program, "compare needs two runs");
  if (o.csv && o.common.json) return tfc_flags_error(&program, "--csv or --json, not both");
  if (o.csv && (command == TRACE || command == GC))
    return tfc_flags_error(&program, "%s has no table for --csv", commands[command]);
  int64_t first, last;
  if ((o.steps || o.placement) && command != TRACE)
    return tfc_flags_error(&program, "%s has no --steps and no --placement: trace has", commands[command]);
  if (o.steps && !parse_steps(o.steps, &first, &last))
    return tfc_flags_error(&program, "--steps takes a number or two, such as 3 or 3-7; '%s' is neither", o.steps);
  if (command == GC && o.keep < 0) return tfc_flags_error(&program, "gc needs --keep N");
  for (uint32_t i = 1; i < arguments.count; i++)
    if (!parse_run(&arguments, i, &runs[run_count++]))
      return tfc_flags_error(&program, "'%s' is not a run's number (tfc-report list shows them)", arguments.items[i]);
  if ((code = cli_untrusted_enter(
           &program, &o, &(struct cli_untrusted_needs){.programs = true, .beside = o.out ? NULL : "trace.json.gz"})) >=
      0)
    return code;
  struct tfc_store *store = NULL;
  tfc_status s = tfc_store_open(
      o.db,
      &(struct tfc_store_options){
          .write = command == GC, .purpose = "tfc-report gc", .interruptible = command != GC, .longest = LONGEST},
      &store);
  if (!s) s = run(command, &o, store, runs, run_count);
  tfc_store_close(store);
  return tfc_program_finish(tfc_program_fail(s));
}
