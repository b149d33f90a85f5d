// tfc-place with a TensorFlow graph and local devices: reads the graph, and finds and prints its step. The placer's job
// (placer/job) profiles, searches, learns and measures; this file shows its progress, prints the answer, and writes the
// placement and the report.
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/import_note.h"
#include "cli/paragraph.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/step_args.h"
#include "placer/job/job.h"
#include "placer/model/placement_json.h"
#include "reports/reports.h"
#include "rl/rl.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

// --- Showing progress ------------------------------------------------------------------------------------------------

static const char *phase_name(tfc_job_phase phase) {
  switch (phase) {
  case TFC_JOB_IMPORT: return "prepare";
  case TFC_JOB_PROFILE: return "profile";
  case TFC_JOB_SEARCH: return "search";
  case TFC_JOB_FINAL: return "final";
  case TFC_JOB_DONE: return "report";
  }
  return "";
}

struct watch {
  int phase; // the phase whose progress is shown; -1: none
  uint32_t measured;
  double best_us;
};

static void end_phase(struct watch *w) {
  char best[32];
  if (w->phase < 0) return;
  if (w->best_us == w->best_us)
    tfc_progress_end("%u placements measured, best %s", w->measured, tfc_show_us(best, w->best_us));
  else
    tfc_progress_end("done");
  w->phase = -1;
}

static void on_event(void *user, const struct tfc_job_event *e) {
  struct watch *w = user;
  char best[32];
  if (w->phase != (int)e->phase) {
    end_phase(w);
    w->phase = (int)e->phase;
    tfc_progress_begin(phase_name(e->phase));
  }
  w->measured = e->measured, w->best_us = e->best_us;
  if (e->text && e->warning)
    tfc_warn("%s", e->text);
  else if (e->text)
    tfc_say("  %s", e->text);
  double fraction = e->seconds_total > 0 ? e->seconds / e->seconds_total : -1;
  if (e->best_us == e->best_us)
    tfc_progress_update(fraction, e->seconds_total - e->seconds, "%u measured (at most %u), best %s", e->measured,
                        e->measured_total, tfc_show_us(best, e->best_us));
  else
    tfc_progress_update(fraction, e->seconds_total - e->seconds, "%u measured", e->measured);
}

// --- Printing the answer ---------------------------------------------------------------------------------------------

static const char *state_text(tfc_result_state state) {
  switch (state) {
  case TFC_RESULT_OK: return "";
  case TFC_RESULT_CUT: return "stopped early";
  case TFC_RESULT_NO_FIT: return "does not fit in memory";
  case TFC_RESULT_ILLEGAL: return "not allowed";
  case TFC_RESULT_FAILED: return "failed";
  }
  return "";
}

// Writes a range as "598.3 .. 698.3 ms", or with both units if they differ.
static void show_range(char out[64], double low, double high) {
  char a[32], b[32];
  tfc_show_us(a, low), tfc_show_us(b, high);
  const char *unit_a = strchr(a, ' '), *unit_b = strchr(b, ' ');
  const bool same = unit_a && unit_b && strcmp(unit_a, unit_b) == 0;
  snprintf(out, 64, "%.*s .. %s", same ? (int)(unit_a - a) : (int)strlen(a), a, b);
}

// Three digits, so that a row stays within 80 columns where a noisy machine makes intervals wide.
static const char *ratio_text(char buffer[32], double ratio) {
  snprintf(buffer, 32, "%.*f", ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0, ratio);
  return buffer;
}

// Prints at most 80 columns; what does not fit is printed on the lines below.
static void print_row(const struct tfc_job_row *r, const struct tfc_job_row *found, bool loads) {
  char a[32], b[32], c[32], quartiles[64] = "", against[48] = "", load[64] = "", speedup[112] = "", steps[16] = "",
                            line[400];
  bool answer = strcmp(r->kind, "answer") == 0;
  if (r->median_us == r->median_us && !r->modelled) show_range(quartiles, r->q1_us, r->q3_us);
  double us = r->modelled ? r->simulated_us : r->median_us;
  double counts = loads ? r->load_us : us;
  const double found_us = !found ? (double)NAN : loads ? found->load_us : found->median_us;
  // what was measured is not compared with what was simulated or computed
  const bool alike = found && (loads ? !r->load_steps == !found->load_steps : r->modelled == found->modelled);
  if (counts == counts && found_us > 0 && alike && !answer)
    snprintf(against, sizeof against, "%.3f", counts / found_us);
  if (!r->modelled && r->steps) snprintf(steps, sizeof steps, "%u", r->steps);
  if (loads && r->load_us == r->load_us)
    snprintf(load, sizeof load, "%s (%s)", tfc_show_us(a, r->load_us), r->load_steps ? "measured" : "modelled");
  if (r->low == r->low && strcmp(r->kind, "single") != 0 && r->interval_steps < TFC_JOB_INTERVAL_STEPS)
    snprintf(speedup, sizeof speedup, "%s (%u step%s)", ratio_text(a, r->speedup), r->interval_steps,
             r->interval_steps == 1 ? "" : "s");
  else if (r->low == r->low && strcmp(r->kind, "single") != 0)
    snprintf(speedup, sizeof speedup, "%s (%s-%s)", ratio_text(a, r->speedup), ratio_text(b, r->low),
             ratio_text(c, r->high));
  int n = snprintf(line, sizeof line, "  %-13s %10s  ", r->name, us == us ? tfc_show_us(a, us) : "-");
  if (loads)
    n += snprintf(line + n, sizeof line - (size_t)n, "%5s %19s %8s  %s", r->modelled ? "sim." : steps, load, against,
                  speedup);
  else
    n += snprintf(line + n, sizeof line - (size_t)n, "%-17s %5s %8s  %s", r->modelled ? "(simulated)" : quartiles,
                  steps, against, speedup);
  while (n > 0 && line[n - 1] == ' ') line[--n] = 0;
  printf("%s%s%s", answer ? tfc_paint(stdout, "1;32") : "", line, answer ? tfc_paint(stdout, "0") : "");
  const char *state = state_text(r->state), *note = r->note ? r->note : "";
  const int more = (int)(strlen(state) + strlen(note)) + (*state && *note ? 2 : 0);
  snprintf(line, sizeof line, "%s%s%s", state, *state && *note ? ", " : "", note);
  if (!more) {
    putchar('\n');
  } else if (n + 2 + more <= CLI_COLUMNS) {
    printf("  %s\n", line);
  } else {
    printf("\n%*s", 6, "");
    cli_paragraph(stdout, line, 6, 6, CLI_COLUMNS);
  }
}

// Rivals that were only simulated fit into a few lines.
static bool is_folded(const struct tfc_job_row *r) {
  return r->modelled && r->state == TFC_RESULT_OK && !(r->note && *r->note) && strcmp(r->kind, "answer") != 0;
}

static void print_folded(const struct tfc_job_outcome *o, bool loads) {
  struct tfc_text text = {0};
  char a[32];
  for (uint32_t i = 0; i < o->row_count; i++) {
    const struct tfc_job_row *r = &o->rows[i];
    const double us = loads ? r->load_us : r->simulated_us;
    if (is_folded(r))
      tfc_text_printf(&text, "%s%s %s", text.size ? ", " : "", r->name, us == us ? tfc_show_us(a, us) : "-");
  }
  if (text.size)
    cli_paragraph(stdout, text.data, printf("  only simulated%s: ", loads ? " (their loads)" : ""), 4, CLI_COLUMNS);
  tfc_text_deinit(&text);
}

// `busy`: [device] shares of the step; NULL: they are not known.
static void print_devices(const struct tfc_job_outcome *o, const double *busy) {
  enum { SENDS = 36 }; // the column in which `sends` begins
  char a[32], b[32];
  if (!o->placement || o->device_count == 0) return;
  printf("\n  %-10s %8s %12s  %s\n", "device", "busy", "peak memory",
         o->crossing_modelled ? "sends (simulated)" : "sends");
  for (uint32_t d = 0; d < o->device_count; d++) {
    const char *comma = "";
    printf("  %-10.*s", TFC_STR_ARG(o->placement->devices[d].name));
    if (busy && busy[d] == busy[d])
      printf(" %6.1f %%", 100 * busy[d]);
    else
      printf(" %8s", "-");
    char peak[40] = "-";
    if (o->peak)
      snprintf(peak, sizeof peak, "%s%s", o->peak_part && o->peak[d] ? ">" : "", tfc_show_bytes(a, (double)o->peak[d]));
    printf(" %12s  ", peak);
    struct tfc_text sends = {0};
    if (o->limit && o->limit[d] != TFC_NO_LIMIT)
      tfc_text_printf(&sends, "(its limit is %s) ", tfc_show_bytes(b, (double)o->limit[d]));
    for (uint32_t t = 0; o->crossing && t < o->device_count; t++) {
      uint64_t bytes = o->crossing[(size_t)d * o->device_count + t];
      if (bytes == 0 || t == d) continue;
      tfc_text_printf(&sends, "%s%s to %.*s", comma, tfc_show_bytes(b, (double)bytes),
                      TFC_STR_ARG(o->placement->devices[t].name));
      comma = ", ";
    }
    cli_paragraph(stdout, sends.data ? sends.data : "", SENDS, SENDS, CLI_COLUMNS);
    tfc_text_deinit(&sends);
  }
  if (o->peak && o->peak_part) printf("  %s\n", tfc_report_peak_note);
}

void place_explain(const char *db, struct tfc_store *store, int64_t run) {
  struct tfc_store *opened = NULL;
  struct tfc_text text = {0};
  tfc_status s = store ? NULL : tfc_store_open(db, &(struct tfc_store_options){0}, &opened);
  if (!s) s = tfc_report_explain(store ? store : opened, run, &text);
  if (s)
    tfc_warn("the run cannot be explained: %s", tfc_status_message(s));
  else if (text.size)
    fwrite(text.data, 1, text.size, stdout);
  tfc_status_free(s);
  tfc_text_deinit(&text);
  tfc_store_close(opened);
}

// Reads the shares of the step that devices were busy; the caller frees them. NULL: they are not known.
static double *read_busy(struct tfc_store *store, int64_t run, uint32_t device_count) {
  double *busy = store ? malloc((device_count + 1u) * sizeof *busy) : NULL;
  tfc_status s = busy ? tfc_report_busy_shares(store, run, device_count, busy) : NULL;
  if (s) free(busy), busy = NULL; // place_explain says why the database cannot be read
  tfc_status_free(s);
  return busy;
}

// `store`: the database with the run; NULL: there is none, or place_explain says why it cannot be opened. `busy` as in
// print_devices.
static void print_answer(const struct place_options *o, const struct tfc_job_outcome *out, struct tfc_store *store,
                         const double *busy) {
  const struct tfc_job_row *found = NULL;
  const bool loads = o->request.objective == TFC_OBJECTIVE_THROUGHPUT;
  char a[32];
  if (out->first_line) {
    printf("%s", tfc_paint(stdout, "1"));
    cli_paragraph(stdout, out->first_line, 0, 0, CLI_COLUMNS);
    printf("%s\n", tfc_paint(stdout, "0"));
  }
  for (uint32_t i = 0; i < out->row_count; i++)
    if (strcmp(out->rows[i].kind, "answer") == 0) found = &out->rows[i];
  if (out->row_count > 0) {
    // The speed-up is relative to the best single device.
    printf("  %-13s %10s  ", "placement", "step");
    if (loads)
      printf("%5s %19s", "steps", "load a step");
    else
      printf("%-17s %5s", "quartiles", "steps");
    printf(" %8s  %s\n", "to found", "speed-up (95 %)");
    for (uint32_t i = 0; i < out->row_count; i++)
      if (!is_folded(&out->rows[i])) print_row(&out->rows[i], found, loads);
    print_folded(out, loads);
  }
  print_devices(out, busy);
  putchar('\n');
  if (out->bound_us == out->bound_us && out->bound_us > 0)
    printf("Lower bound %s%s%s%s; the answer is %.1f %% above it.\n", tfc_show_us(a, out->bound_us),
           out->bound_name ? " (" : "", out->bound_name ? out->bound_name : "", out->bound_name ? ")" : "",
           100 * out->gap);
  if (out->path && !out->run) { // the database has the measured one
    const int n = printf("Critical path (simulated): ");
    cli_paragraph(stdout, out->path, n, 2, CLI_COLUMNS);
  }
  if (out->tau == out->tau)
    printf("Simulated against measured: Kendall's tau %.2f over %u placements.\n", out->tau, out->tau_placements);
  if (out->learning) cli_paragraph(stdout, out->learning, 0, 0, CLI_COLUMNS);
  if (out->trace_overhead == out->trace_overhead)
    printf(out->trace_told ? "Tracing costs %.1f %% of a step.\n"
                           : "Tracing costs no more than steps vary (%.1f %% of one, as measured).\n",
           100 * out->trace_overhead);
  if (out->untraced_steps)
    printf("GPUs' records time the steps above; untraced, by the host's clock, the answer takes %s (median of %u).\n",
           tfc_show_us(a, out->untraced_us), out->untraced_steps);
  if (out->lost_workers) printf("%u measuring processes were lost on the way.\n", out->lost_workers);
  if (out->run) {
    printf("Run %lld of %s.\n", (long long)out->run, o->db);
    place_explain(o->db, store, out->run);
  }
}

// --- Running the job -------------------------------------------------------------------------------------------------

// Parses the texts "DEVICE=SIZE" of --memory. The patterns are malloc'd.
static tfc_status parse_limits(const struct place_options *o, struct tfc_memory_limit *out) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < o->limits.count; i++) {
    const char *text = o->limits.items[i], *equals = strrchr(text, '=');
    s = tfc_status_annotate(tfc_parse_bytes(tfc_str_from(equals + 1), &out[i].bytes), "--memory %s", text);
    if (s) goto out;
    if (!(out[i].pattern = tfc_str_dup((tfc_str){text, (size_t)(equals - text)})))
      TFC_TRY(s, tfc_status_no_memory(NULL));
  }
out:
  return s;
}

static void write_report(const struct place_options *o, const struct tfc_job_outcome *outcome, int *code) {
  struct tfc_store *store = NULL;
  char *dir = o->report ? tfc_format("%s", o->report) : place_default_path(o->graph, ".report");
  tfc_status s = NULL;
  if (o->evaluate && !o->report) goto out;
  if (!dir) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (strcmp(dir, "none") == 0 || outcome->run == 0) goto out;
  TFC_TRY(s, tfc_store_open(o->db, &(struct tfc_store_options){0}, &store));
  TFC_TRY(s, tfc_report_page(store, outcome->run, dir));
  tfc_say("Written: %s/index.html", dir);
out:
  if (s) *code = tfc_program_fail(s);
  tfc_store_close(store);
  free(dir);
}

int place_local(const struct place_options *o) {
  struct tfc_graph *graph = NULL;
  struct cli_step step = {0};
  const struct cli_step_args args = place_step_args(o);
  struct tfc_policy *policy = NULL;
  struct tfc_job_outcome outcome = {0};
  struct tfc_memory_limit *limits = calloc((size_t)o->limits.count + 1, sizeof *limits);
  struct tfc_job_value *values = calloc((size_t)o->feeds.count + 1, sizeof *values);
  struct tfc_text text = {0};
  struct watch watch = {.phase = -1, .best_us = NAN};
  char *path = NULL, *command = tfc_program_command_line(), devices[32];
  int64_t resume;
  int code = 0;
  tfc_status s = NULL;
  if (!limits || !values || !command) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!place_resume(o, &resume)) {
    fprintf(stderr, "tfc-place: --resume %s: not a run's number (tfc-report list shows them)\n", o->resume);
    code = 2;
    goto out;
  }
  TFC_TRY(s, parse_limits(o, limits));
  TFC_TRY(s, place_check_files(o));
  TFC_TRY(s, place_read_policy(o, &policy));
  // Even if --time is short, reading the graph gets a few seconds: without a graph there is nothing to place.
  if (o->time > 0) {
    snprintf(devices, sizeof devices, "--time %.6gs", o->time);
    tfc_interrupt_at(tfc_now_ns() + (int64_t)(1e9 * fmin(fmax(o->time, 5), 1e8)), devices);
  }
  TFC_TRY(s, tfc_graph_load(o->graph, NULL, &graph));
  cli_import_describe(graph, &text);
  TFC_TRY(s, cli_step_infer(graph, &args, &step));
  for (uint32_t i = 0; i < step.spec.note_count; i++) tfc_text_printf(&text, "%.*s\n", TFC_STR_ARG(step.spec.notes[i]));
  // the step was found in the graph as it was loaded; placing needs it with lowered functions
  TFC_TRY(s, tfc_lower_loaded(&graph));
  tfc_interrupt_at(0, NULL);
  if (text.size) text.data[text.size - 1] = 0;
  tfc_say("%s", text.data ? text.data : "");
  tfc_text_deinit(&text);
  uint32_t value_count = 0;
  for (uint32_t i = 0; i < step.request.feed_count; i++)
    if (step.values[i].buffer)
      values[value_count++] = (struct tfc_job_value){.output = step.request.feeds[i].output, .value = step.values[i]};
  cpu_set_t cores;
  snprintf(devices, sizeof devices, "%d", sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1);
  struct tfc_job_options options = {
      .program = "tfc-place",
      .command = command,
      .graph_path = o->graph,
      .graph = graph,
      .step = &step.spec,
      .values = values,
      .value_count = value_count,
      .devices = o->devices ? o->devices : devices,
      .checkpoint = o->checkpoint,
      .execution = o->execution,
      .request = o->request,
      .search = place_search_settings(o, policy),
      .learned = place_learned(policy),
      .measurements = (uint32_t)o->measurements,
      .seconds = o->time,
      .evaluations = (uint64_t)o->evaluations,
      .prior = o->model == 1,
      .no_early_stop = o->no_early_stop,
      .wait = o->wait,
      .database = o->db,
      .warnings = tfc_program_warnings(),
      .save_problem = o->save_problem,
      .evaluate = o->evaluate,
      .resume = resume,
      .cancel = tfc_program_cancel(),
      .event = on_event,
      .user = &watch,
  };
  options.execution.limits = limits, options.execution.limit_count = o->limits.count;
  tfc_program_close_stdout();
  s = tfc_job_run(&options, &outcome);
  tfc_program_open_stdout();
  tfc_program_forget_signal();
  end_phase(&watch);
  code = outcome.exit_code;
  if (tfc_status_code(s) == TFC_UNAVAILABLE) s = tfc_status_annotate(s, "--devices %s", options.devices);
  if (s) {
    int from_status = outcome.placement ? tfc_program_fail(s) : place_fail(o, s);
    if (code == 0 || from_status == 130) code = from_status;
    s = NULL;
  }
  if (outcome.interrupted && outcome.run)
    tfc_say("Interrupted. Run %lld is kept in %s; go on with: tfc-place ... --resume %lld", (long long)outcome.run,
            o->db, (long long)outcome.run);
  bool fits = outcome.placement && outcome.placement->feasible; // an answer that exceeds memory limits is not written
  if (outcome.placement && (o->evaluate ? o->out != NULL : fits)) {
    path = o->out ? tfc_format("%s", o->out) : place_default_path(o->graph, ".placement.json");
    s = path ? tfc_placement_write(outcome.placement, path) : tfc_status_no_memory(NULL);
    if (s)
      code = tfc_program_fail(s);
    else if (outcome.interrupted && o->common.json) // without --json the end of the printed answer says it
      tfc_say("Interrupted. The best placement so far is in %s", path);
    s = NULL;
  }
  if (o->common.json && outcome.placement) {
    TFC_TRY(s, tfc_placement_format(outcome.placement, &text));
    fwrite(text.data, 1, text.size, stdout);
    if (text.size == 0 || text.data[text.size - 1] != '\n') putchar('\n');
  } else if (!o->common.json && (outcome.placement || outcome.row_count > 0)) {
    struct tfc_store *store = NULL;
    if (outcome.run) tfc_status_free(tfc_store_open(o->db, &(struct tfc_store_options){0}, &store));
    double *busy = read_busy(store, outcome.run, outcome.device_count);
    print_answer(o, &outcome, store, busy);
    free(busy);
    tfc_store_close(store);
    if (path && outcome.placement) printf("Written: %s\n", path);
  }
  write_report(o, &outcome, &code);
  if (outcome.placement) TFC_TRY(s, place_save_policy(o, policy));
out:
  if (s) code = outcome.placement ? tfc_program_fail(s) : place_fail(o, s);
  for (uint32_t i = 0; limits && i < o->limits.count; i++) free((char *)limits[i].pattern);
  free(limits);
  free(values);
  free(path);
  free(command);
  tfc_text_deinit(&text);
  tfc_job_outcome_deinit(&outcome);
  cli_step_deinit(&step);
  tfc_graph_release(graph);
  tfc_policy_free(policy);
  return code;
}
