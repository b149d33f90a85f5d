// tfc-place on a TensorFlow graph and local devices. Reads the graph, works out the step and shows it. The placer's job
// (placer/job) profiles, searches, learns and measures; this file shows its progress, prints the answer, and writes the
// placement and the report.
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/import_note.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/step_args.h"
#include "placer/job/job.h"
#include "reports/reports.h"
#include "rl/rl.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

// --- Watching --------------------------------------------------------------------------------------------------------

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
  int phase; // the phase that is shown; -1: none
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
    tfc_progress_update(fraction, e->seconds_total - e->seconds, "%u of %u measured, best %s", e->measured,
                        e->measured_total, tfc_show_us(best, e->best_us));
  else
    tfc_progress_update(fraction, e->seconds_total - e->seconds, "%u measured", e->measured);
}

// --- The answer ------------------------------------------------------------------------------------------------------

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

static void print_row(const struct tfc_job_row *r, double answer_us, bool loads) {
  char a[32], b[32], c[32], quartiles[80] = "", against[48] = "", load[64] = "";
  bool answer = strcmp(r->kind, "answer") == 0;
  if (r->median_us == r->median_us && !r->modelled)
    snprintf(quartiles, sizeof quartiles, "%s .. %s", tfc_show_us(b, r->q1_us), tfc_show_us(c, r->q3_us));
  double us = r->modelled ? r->simulated_us : r->median_us;
  double counts = loads ? r->load_us : us;
  if (counts == counts && answer_us > 0 && !answer) snprintf(against, sizeof against, "%.3f", counts / answer_us);
  if (loads && r->load_us == r->load_us)
    snprintf(load, sizeof load, "%s (%s)", tfc_show_us(b, r->load_us), r->load_steps ? "measured" : "modelled");
  printf("%s  %-20s %11s  %-24s", answer ? tfc_paint(stdout, "1;32") : "", r->name, us == us ? tfc_show_us(a, us) : "-",
         r->modelled ? "(simulated)" : quartiles);
  if (r->modelled || r->steps == 0)
    printf(" %5s", "");
  else
    printf(" %5u", r->steps);
  if (loads) printf("  %21s", load);
  printf("  %9s%s", against, answer ? tfc_paint(stdout, "0") : "");
  if (r->low == r->low && strcmp(r->kind, "single") != 0) printf("  %.3f (%.3f to %.3f)", r->speedup, r->low, r->high);
  const char *state = state_text(r->state);
  if (state[0]) printf("  %s", state);
  if (r->note && r->note[0]) printf("  %s", r->note);
  putchar('\n');
}

static void print_devices(const struct tfc_job_outcome *o) {
  char a[32], b[32];
  if (!o->placement || o->device_count == 0) return;
  printf("\n  %-10s %8s %12s  %s\n", "device", "busy", "peak memory",
         o->crossing_modelled ? "sends (simulated)" : "sends");
  for (uint32_t d = 0; d < o->device_count; d++) {
    const char *comma = "";
    printf("  %-10.*s", TFC_STR_ARG(o->placement->devices[d].name));
    if (o->busy_share && o->busy_share[d] == o->busy_share[d])
      printf(" %6.1f %%", 100 * o->busy_share[d]);
    else
      printf(" %8s", "-");
    printf(" %12s ", o->peak ? tfc_show_bytes(a, (double)o->peak[d]) : "-");
    for (uint32_t t = 0; o->crossing && t < o->device_count; t++) {
      uint64_t bytes = o->crossing[(size_t)d * o->device_count + t];
      if (bytes == 0 || t == d) continue;
      printf("%s %s to %.*s", comma, tfc_show_bytes(b, (double)bytes), TFC_STR_ARG(o->placement->devices[t].name));
      comma = ",";
    }
    putchar('\n');
  }
}

static void print_answer(const struct place_options *o, const struct tfc_job_outcome *out) {
  double answer_us = NAN;
  const bool loads = o->objective == 1;
  char a[32];
  if (out->first_line) printf("%s%s%s\n\n", tfc_paint(stdout, "1"), out->first_line, tfc_paint(stdout, "0"));
  for (uint32_t i = 0; i < out->row_count; i++)
    if (strcmp(out->rows[i].kind, "answer") == 0) answer_us = loads ? out->rows[i].load_us : out->rows[i].median_us;
  if (out->row_count > 0) {
    printf("  %-20s %11s  %-24s %5s", "placement", "step", "quartiles", "steps");
    if (loads) printf("  %21s", "load a step");
    printf("  %9s  %s\n", "to found", "speed-up to best single (95 %)");
    for (uint32_t i = 0; i < out->row_count; i++) print_row(&out->rows[i], answer_us, loads);
  }
  print_devices(out);
  putchar('\n');
  if (out->bound_us == out->bound_us && out->bound_us > 0)
    printf("Lower bound %s%s%s%s; the answer is %.1f %% above it.\n", tfc_show_us(a, out->bound_us),
           out->bound_name ? " (" : "", out->bound_name ? out->bound_name : "", out->bound_name ? ")" : "",
           100 * out->gap);
  if (out->path) printf("Critical path (simulated): %s\n", out->path);
  if (out->tau == out->tau)
    printf("Simulated against measured: Kendall's tau %.2f over %u placements.\n", out->tau, out->tau_placements);
  if (out->learning) printf("%s", out->learning);
  if (out->trace_overhead == out->trace_overhead)
    printf(out->trace_told ? "Tracing costs %.1f %% of a step.\n"
                           : "Tracing costs no more than steps vary (%.1f %% of one, as measured).\n",
           100 * out->trace_overhead);
  if (out->lost_workers) printf("%u measuring processes were lost on the way.\n", out->lost_workers);
  if (out->run) printf("Run %lld of %s.\n", (long long)out->run, o->db);
}

// --- The job ---------------------------------------------------------------------------------------------------------

// "DEVICE=SIZE" of --memory. The patterns are malloc'd.
static tfc_status parse_limits(const struct place_options *o, struct tfc_memory_limit *out) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < o->limits.count; i++) {
    const char *text = o->limits.items[i], *equals = strrchr(text, '=');
    s = tfc_status_annotate(tfc_parse_bytes(tfc_str_from(equals + 1), &out[i].bytes), "--memory %s", text);
    if (s) goto out;
    if (!(out[i].pattern = tfc_str_dup((tfc_str){text, (size_t)(equals - text)})))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
out:
  return s;
}

char *place_command_line(void) {
  char text[4096];
  FILE *file = fopen("/proc/self/cmdline", "rb");
  size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  for (size_t i = 0; i + 1 < n; i++)
    if (text[i] == 0) text[i] = ' ';
  text[n] = 0;
  return strdup(text);
}

static void write_report(const struct place_options *o, const struct tfc_job_outcome *outcome, int *code) {
  struct tfc_store *store = NULL;
  char *dir = o->report ? tfc_format("%s", o->report) : place_default_path(o->graph, ".report");
  tfc_status s = NULL;
  if (o->evaluate && !o->report) goto out;
  if (!dir) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
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
  struct cli_step_args args = {.fetches = o->fetches,
                               .targets = o->targets,
                               .inits = o->inits,
                               .feeds = o->feeds,
                               .batch = o->batch,
                               .no_init = o->checkpoint != NULL};
  struct tfc_policy *policy = NULL;
  struct tfc_job_outcome outcome = {0};
  struct tfc_memory_limit *limits = calloc((size_t)o->limits.count + 1, sizeof *limits);
  struct tfc_job_value *values = calloc((size_t)o->feeds.count + 1, sizeof *values);
  struct tfc_text text = {0};
  struct watch watch = {.phase = -1, .best_us = NAN};
  char *path = NULL, *command = place_command_line(), devices[32];
  int64_t resume = 0;
  int code = 0;
  tfc_status s = NULL;
  if (!limits || !values || !command) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (!place_resume(o, &resume)) {
    fprintf(stderr, "tfc-place: --resume %s: not a run's number (tfc-report list shows them)\n", o->resume);
    code = 2;
    goto out;
  }
  TFC_TRY(s, parse_limits(o, limits));
  TFC_TRY(s, place_check_files(o));
  TFC_TRY(s, place_read_policy(o, &policy));
  // Reading the graph gets a few seconds even of a short time: without a graph there is nothing to place.
  if (o->time > 0) {
    snprintf(devices, sizeof devices, "--time %.6gs", o->time);
    tfc_interrupt_at(tfc_now_ns() + (int64_t)(1e9 * fmin(fmax(o->time, 5), 1e8)), devices);
  }
  TFC_TRY(s, tfc_graph_load(o->graph, NULL, &graph));
  cli_import_describe(graph, &text);
  TFC_TRY(s, cli_step_infer(graph, &args, &step));
  for (uint32_t i = 0; i < step.spec.note_count; i++) tfc_text_printf(&text, "%.*s\n", TFC_STR_ARG(step.spec.notes[i]));
  TFC_TRY(s, tfc_lower_loaded(&graph)); // the step is found in the graph as loaded; placing works inside functions
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
      .pins = o->pins.items,
      .pin_count = o->pins.count,
      .baselines = o->baselines.items,
      .baseline_count = o->baselines.count,
      .objective = o->objective == 1 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP,
      .device_strings = o->device_strings == TFC_STRINGS_CONSTRAIN ? TFC_STRINGS_ARE_CONSTRAINTS
                        : o->device_strings == TFC_STRINGS_IGNORE  ? TFC_STRINGS_ARE_IGNORED
                                                                   : TFC_STRINGS_RIVAL,
      .algorithms = o->algorithm,
      .learned = place_learned(policy),
      .extra = place_extra(),
      .guide = policy ? &policy->guide : NULL,
      .measurements = (uint32_t)o->measurements,
      .seconds = o->time,
      .evaluations = (uint64_t)o->evaluations,
      .prior = o->model == 1,
      .no_early_stop = o->no_early_stop,
      .wait = o->wait,
      .database = o->db,
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
  bool fits = outcome.placement && outcome.placement->feasible; // an answer that does not fit is not written
  if (outcome.placement && (o->evaluate ? o->out != NULL : fits)) {
    path = o->out ? tfc_format("%s", o->out) : place_default_path(o->graph, ".placement.json");
    s = path ? tfc_placement_write(outcome.placement, path) : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
    if (s)
      code = tfc_program_fail(s);
    else if (outcome.interrupted && o->common.json) // without --json the answer ends with it
      tfc_say("Interrupted. The best placement so far is in %s", path);
    s = NULL;
  }
  if (o->common.json && outcome.placement) {
    TFC_TRY(s, tfc_placement_format(outcome.placement, &text));
    fwrite(text.data, 1, text.size, stdout);
    if (text.size == 0 || text.data[text.size - 1] != '\n') putchar('\n');
  } else if (!o->common.json && (outcome.placement || outcome.row_count > 0)) {
    print_answer(o, &outcome);
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
