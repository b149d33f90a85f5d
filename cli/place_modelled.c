// tfc-place with a described machine. The placer (place_machine.c for a TensorFlow graph) does the work; this file
// calls it, shows its progress and prints the answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/paragraph.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "placer/model/placement_json.h"
#include "placer/placer.h"
#include "profiler/store.h"
#include "profiler/store_runs.h"
#include "profiler/warnings.h"
#include "reports/reports.h"
#include "rl/rl.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

// --- Progress and results --------------------------------------------------------------------------------------------
static void on_said(bool warning, const char *text) {
  if (warning)
    tfc_warn("%s", text);
  else
    tfc_say("%s", text);
}

// Where the placement is written. NULL: out of memory.
static char *out_path(const struct place_options *o) {
  return o->out ? tfc_format("%s", o->out) : place_default_path(o->graph, ".placement.json");
}

// mpirun leaves tasks little time between Ctrl-C and killing them, so over tasks the best placement so far is always
// written already.
static tfc_status write_best(void *user, const struct tfc_placement *best) {
  const struct place_options *o = user;
  char *path = out_path(o);
  struct stat old;
  tfc_status s = NULL;
  if (!path)
    s = tfc_status_no_memory(NULL);
  else if (stat(path, &old) != 0 || S_ISREG(old.st_mode)) // to a pipe or a terminal goes the last one only
    s = tfc_placement_write(best, path);
  free(path);
  return s;
}

struct tfc_elsewhere_settings *place_elsewhere(const struct place_options *o) {
  static struct tfc_elsewhere_settings settings;
  static char command[4096];
  if (!o->measure_with && !o->tasks) return NULL;
  char *line = tfc_program_command_line();
  snprintf(command, sizeof command, "%s", line ? line : "tfc-place");
  free(line);
  const char *temporary = getenv("TMPDIR");
  int64_t resume;
  place_resume(o, &resume); // place_check has already checked its syntax
  settings = (struct tfc_elsewhere_settings){.measure_with = o->tasks ? place_tasks_text(o->tasks) : o->measure_with,
                                             .timeout_s = o->measure_timeout,
                                             .stderr_to = o->common.verbose ? STDERR_FILENO : -1,
                                             .temporary = temporary && temporary[0] ? temporary : NULL,
                                             .measurements = (uint32_t)o->measurements,
                                             .prior = o->model == 1,
                                             .database = o->db,
                                             .resume = resume,
                                             .program_command = command,
                                             .say = on_said,
                                             .warnings = tfc_program_warnings(),
                                             .improved = o->tasks ? write_best : NULL,
                                             .improved_user = (void *)(uintptr_t)o};
  return &settings;
}

// The database in memory gets the warnings when all of them have been printed.
static tfc_status record_warnings(struct tfc_store *record) {
  int64_t run;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_find_run(record, -1, &run));
  TFC_TRY(s, tfc_store_begin(record));
  TFC_TRY(s, tfc_warnings_store(tfc_program_warnings(), record, run));
  TFC_TRY(s, tfc_store_commit(record));
out:
  if (s) tfc_store_rollback(record);
  return s;
}

static tfc_status write_report(const struct place_options *o, struct tfc_place_outcome *outcome, const char *dir) {
  tfc_status s = outcome->unrecorded;
  struct tfc_store *store = NULL;
  outcome->unrecorded = NULL;
  if (s) return s;
  if (outcome->record) { // a database in memory
    TFC_TRY(s, record_warnings(outcome->record));
    return tfc_report_page(outcome->record, -1, dir);
  }
  TFC_TRY(s, tfc_store_open(o->db, &(struct tfc_store_options){0}, &store));
  TFC_TRY(s, tfc_report_page(store, outcome->run, dir));
out:
  tfc_store_close(store);
  return s;
}

static void on_progress(void *user, const struct tfc_search_progress *p) {
  (void)user;
  double fraction = -1, left = -1;
  if (p->seconds_total > 0) fraction = p->seconds / p->seconds_total, left = p->seconds_total - p->seconds;
  if (p->evaluations_total > 0) {
    double by_count = (double)p->evaluations / (double)p->evaluations_total;
    if (by_count > fraction) fraction = by_count, left = -1;
  }
  char best[32];
  if (p->best == TFC_TIME_MAX)
    tfc_progress_update(fraction, left, "%s: nothing legal yet", p->algorithm);
  else
    tfc_progress_update(fraction, left, "%s: best %s%s", p->algorithm, tfc_show_us(best, (double)p->best * 1e-6),
                        p->feasible ? "" : " (does not fit)");
}

static void print_table(const struct tfc_place_outcome *outcome) {
  const struct tfc_placement *p = outcome->placement;
  char a[32];
  bool step = p->objective == TFC_OBJECTIVE_STEP, given = tfc_str_is(p->algorithm, "given");
  printf("%s%s under %s%.*s: %s%s%s (%s)\n", p->feasible ? "" : "Does not fit in memory.\n",
         step ? "A step" : "The largest load", given ? "the placement that was " : "the placement found by ",
         TFC_STR_ARG(p->algorithm), tfc_paint(stdout, "1"), tfc_show_us(a, p->value_us), tfc_paint(stdout, "0"),
         tfc_label_name(p->measured_with.data ? p->step_label : TFC_LABEL_MODELLED));
  if (outcome->search.entry_count > 0) {
    printf("\n  %-18s %12s %14s %9s\n", "algorithm", step ? "step" : "load", "evaluations", "seconds");
    for (uint32_t i = 0; i < outcome->search.entry_count; i++) {
      const struct tfc_search_entry *e = &outcome->search.entries[i];
      if (e->value == TFC_TIME_MAX) {
        // Nothing was tried where a reason is given; else the algorithm found nothing that is allowed.
        const int n = printf("  %-18s %12s  ", e->algorithm, e->note ? "not tried" : "-");
        cli_paragraph(stdout, e->note ? e->note : "nothing legal", n, 6, CLI_COLUMNS);
      } else
        printf("  %-18s %12s %14llu %9.2f%s\n", e->algorithm, tfc_show_us(a, (double)e->value * 1e-6),
               (unsigned long long)e->evaluations, e->seconds, e->excess ? "  does not fit" : "");
    }
  }
  if (p->baseline_count > 0) printf("\n  %-18s %12s\n", "rival", step ? "step" : "load");
  for (uint32_t i = 0; i < p->baseline_count; i++) {
    const struct tfc_placement_baseline *b = &p->baselines[i];
    char *note = tfc_str_dup(b->note);
    const int n = printf("  %-18.*s %12s%s", TFC_STR_ARG(b->name),
                         b->median_us == b->median_us ? tfc_show_us(a, b->median_us) : "-", b->note.size ? "  " : "");
    cli_paragraph(stdout, note ? note : "", n, 6, CLI_COLUMNS);
    free(note);
  }
  printf("\n  %-18s %12s %8s %12s\n", "device", "busy", "share", "memory");
  for (uint32_t i = 0; i < p->device_count; i++) {
    const struct tfc_placement_device *d = &p->devices[i];
    char m[32];
    printf("  %-18.*s %12s %6.1f %% %12s\n", TFC_STR_ARG(d->name), tfc_show_us(a, d->busy_us),
           p->value_us > 0 ? 100 * d->busy_us / p->value_us : 0.0, tfc_show_bytes(m, (double)d->memory));
  }
  printf("\n%llu transfers, %s\n", (unsigned long long)p->transfers, tfc_show_bytes(a, (double)p->transfer_bytes));
}

int place_modelled(const struct place_options *o, bool cost_graph) {
  const bool measures = o->measure_with || o->tasks;
  struct tfc_place_options options = {
      .graph = o->graph,
      .machine = o->machine,
      .devices = o->devices,
      .request = o->request,
      .evaluate = o->evaluate,
      .limits = o->limits.items,
      .limit_count = o->limits.count,
      .save_problem = o->save_problem,
      .elsewhere = place_elsewhere(o),
      .search = {.seconds = o->time,
                 .evaluations = (uint64_t)o->evaluations,
                 .seed = (uint64_t)o->execution.seed,
                 .threads = (uint32_t)o->execution.threads,
                 .cancel = tfc_program_cancel(),
                 .prove = true,
                 .progress = on_progress},
  };
  struct tfc_place_outcome outcome = {0};
  struct tfc_text text = {0};
  const bool reports = (o->report || !o->evaluate) && !(o->report && strcmp(o->report, "none") == 0);
  char *path = NULL, *report = NULL, *why = NULL;
  if (options.search.seconds <= 0 && options.search.evaluations == 0) options.search.seconds = measures ? 600 : 60;
  struct tfc_policy *policy = NULL;
  struct place_kept *kept = NULL;
  tfc_status wrong = place_check_files(o);
  if (!wrong) wrong = place_read_policy(o, &policy);
  if (!wrong && !measures && (!o->evaluate || o->db_given)) wrong = place_kept_begin(o, policy, &options.search, &kept);
  if (wrong) {
    tfc_policy_free(policy);
    return place_fail(o, wrong);
  }
  if (kept) options.record = place_kept_target(kept);
  options.record.page = reports && !measures;
  options.record.wanted |= options.record.page;
  options.search.settings = place_search_settings(o, policy);
  if (!o->evaluate && !measures) tfc_progress_begin("search");
  tfc_program_close_stdout();
  tfc_status s = cost_graph ? tfc_place_modelled(&options, &outcome)
                            : place_machine(o, &options.search, &options.record, &outcome);
  tfc_program_open_stdout();
  tfc_program_forget_signal();
  int code = s && !cost_graph ? tfc_exit_code(s) : outcome.exit_code;
  if (!o->evaluate && !measures && !s)
    tfc_progress_end("%llu placements evaluated", (unsigned long long)outcome.search.evaluations);
  if (s) {
    why = tfc_format("%s", tfc_status_message(s));
    if (outcome.placement)
      tfc_program_fail(s);
    else
      place_fail(o, s);
    s = NULL;
  }
  if (outcome.over_limits) tfc_warn("does not fit in memory: %s", outcome.over_limits);
  if (kept && (s = place_kept_end(kept, outcome.placement, why, outcome.run != 0, code))) {
    if (o->db_given || o->resume) {
      code = tfc_program_fail(s);
    } else { // the user did not name a database
      tfc_warn("the search cannot be resumed: %s", tfc_status_message(s));
      tfc_status_free(s);
    }
    s = NULL;
  }
  if (outcome.unrecorded && !reports) code = tfc_program_fail(outcome.unrecorded), outcome.unrecorded = NULL;
  if (!outcome.placement) goto out;
  s = place_save_policy(o, policy);
  if (s) code = tfc_program_fail(s), s = NULL;
  if (o->out || !o->evaluate) {
    path = out_path(o);
    s = path ? tfc_placement_write(outcome.placement, path) : tfc_status_no_memory(NULL);
    if (s)
      code = tfc_program_fail(s);
    else if (outcome.search.cancelled && o->common.json) // without --json the last line of the table says it
      tfc_say("Interrupted. The best placement so far is in %s", path);
  }
  if (reports) {
    report = o->report ? tfc_format("%s", o->report) : place_default_path(o->graph, ".report");
    s = report ? write_report(o, &outcome, report) : tfc_status_no_memory(NULL);
    if (s) {
      code = tfc_program_fail(s);
      free(report), report = NULL;
      tfc_program_forget_signal(); // what was found is printed all the same
    }
  }
  if (o->common.json) {
    s = tfc_placement_format(outcome.placement, &text);
    if (s) {
      code = tfc_program_fail(s);
      goto out;
    }
    fwrite(text.data, 1, text.size, stdout);
    if (text.size == 0 || text.data[text.size - 1] != '\n') putchar('\n');
  } else {
    print_table(&outcome);
    putchar('\n');
    if (outcome.summary) cli_paragraph(stdout, outcome.summary, 0, 0, CLI_COLUMNS);
    if (outcome.record || outcome.run) {
      place_explain(o->db, outcome.record, outcome.record ? -1 : outcome.run);
      putchar('\n');
    }
    if (path) printf("Written: %s\n", path);
    if (report) printf("Written: %s/index.html\n", report);
  }
out:
  free(path), free(report), free(why);
  tfc_text_deinit(&text);
  tfc_place_outcome_deinit(&outcome);
  place_kept_free(kept);
  tfc_policy_free(policy);
  return code;
}
