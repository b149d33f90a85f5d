// tfc-place --replicas: simulates many replicas of a step on a described machine. Reads from a database how much step
// times vary, prints a table for each mode, and writes the page.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "placer/placer.h"
#include "placer/replicas/sweep.h"
#include "reports/query.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

struct replicas {
  const struct place_options *o;
  uint32_t *counts, count_count;
  struct tfc_workload workload;
  struct tfc_hardware hardware;
  struct tfc_step_times times;
  struct tfc_sweep sweep;
  char *source; // says where the step times come from
  char device[64];
};

// --- Numbers of replicas, given as N,N,...,N -----------------------------------------------------------------------
static bool add_count(struct replicas *r, int64_t n) {
  if (n < 1 || n > TFC_REPLICAS_MOST || r->count_count == TFC_REPLICAS_MOST) return false;
  if (r->count_count && (uint32_t)n <= r->counts[r->count_count - 1]) return false;
  r->counts[r->count_count++] = (uint32_t)n;
  return true;
}

// For "..." in the list: continues it up to `last`, by multiplying or adding as between the two numbers before.
static bool fill_up(struct replicas *r, int64_t last) {
  if (r->count_count < 2) return false;
  const uint32_t *c = r->counts + r->count_count;
  const bool doubles = c[-1] % c[-2] == 0 && (r->count_count < 3 || c[-1] * c[-3] == c[-2] * c[-2]);
  const uint32_t by = doubles ? c[-1] / c[-2] : c[-1] - c[-2];
  for (int64_t n = c[-1];;) {
    n = doubles ? n * by : n + by;
    if (n >= last) return add_count(r, last);
    if (!add_count(r, n)) return false;
  }
}

static bool parse_counts(const char *text, struct replicas *r) {
  bool fills = false;
  for (const char *at = text; *at;) {
    const size_t size = strcspn(at, ",");
    const tfc_str word = {at, size};
    int64_t n = 0;
    if (tfc_str_is(word, "...") || tfc_str_is(word, "\xe2\x80\xa6")) {
      if (fills) return false;
      fills = true;
    } else {
      tfc_status s = tfc_parse_i64(word, &n);
      const bool fine = !s && (fills ? fill_up(r, n) : add_count(r, n));
      tfc_status_free(s);
      if (!fine) return false;
      fills = false;
    }
    at += size;
    if (*at && !*++at) return false; // a comma at the end
  }
  return !fills && r->count_count > 0;
}

int place_check_replicas(const struct tfc_program *program, const struct place_options *o) {
  const bool any = o->replicas != NULL;
  if (!any && (o->sync || o->async || o->backup >= 0 || o->ps || o->step_times))
    return tfc_flags_error(program, "--sync, --async, --backup, --ps and --step-times are for --replicas");
  if (!any) return 0;
  if (!o->machine)
    return tfc_flags_error(program, "--replicas needs a described machine: --machine configs/16x8xh100.yaml");
  if (o->measure_with || o->evaluate || o->resume)
    return tfc_flags_error(program,
                           "--replicas goes with none of --measure-with, --evaluate and --resume: it simulates");
  if (o->sync && o->async) return tfc_flags_error(program, "--sync and --async: one of them, or neither for both");
  if (o->async && o->backup >= 0)
    return tfc_flags_error(program, "--backup is for synchronous replicas: asynchronous ones wait for nobody");
  struct replicas r = {.counts = calloc(TFC_REPLICAS_MOST, sizeof *r.counts)};
  const bool fine = r.counts && parse_counts(o->replicas, &r);
  free(r.counts);
  if (fine) return 0;
  return tfc_flags_error(program,
                         "--replicas needs ascending numbers up to %d, such as 1,2,4,8 or 1,2,4,...,1000, not '%s'",
                         TFC_REPLICAS_MOST, o->replicas);
}

// --- How much step times vary ----------------------------------------------------------------------------------------
// Selects the step times of the last run that has steps (of this graph, if `:other` is not 0). fit() divides each by
// the median of its placement.
static const char steps_query[] =
    "WITH s AS (SELECT run_id, placement_id, step_us FROM v_step WHERE step_us > 0 AND"
    " (:other = 0 OR run_id IN (SELECT run_id FROM v_run WHERE graph_sha256 = '%s')))"
    " SELECT run_id, placement_id, step_us FROM s WHERE run_id = (SELECT MAX(run_id) FROM s)"
    " ORDER BY placement_id, step_us";

static tfc_status fit(struct replicas *r, const struct tfc_table *t) {
  tfc_status s = NULL;
  uint32_t count = 0;
  double *ratio = calloc(t->row_count + 1u, sizeof *ratio);
  if (!ratio) return tfc_status_no_memory("replicas");
  for (uint32_t i = 0, end; i < t->row_count; i = end) {
    const int64_t placement = tfc_table_cell(t, i, 1)->integer;
    for (end = i; end < t->row_count && tfc_table_cell(t, end, 1)->integer == placement;) end++;
    if (end - i < 5) continue;
    const double median = tfc_table_cell(t, i + (end - i) / 2, 2)->real;
    for (uint32_t k = i; k < end; k++) ratio[count++] = tfc_table_cell(t, k, 2)->real / median;
  }
  TFC_TRY(s, tfc_step_times_fit(ratio, count, &r->times));
out:
  free(ratio);
  return s;
}

static tfc_status read_times(struct replicas *r, const char *path, const char *sha256) {
  tfc_status s = NULL;
  struct tfc_store *store = NULL;
  struct tfc_table table = {0};
  char *query = tfc_format(steps_query, sha256);
  const struct tfc_query_args args = {.other = !r->o->step_times};
  if (!query) TFC_TRY(s, tfc_status_no_memory("replicas"));
  TFC_TRY(s, tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  TFC_TRY(s, tfc_table_query(store, query, &args, &table));
  TFC_TRY(s, fit(r, &table));
  r->source =
      tfc_format("run %lld of %s, %u steps", (long long)tfc_table_cell(&table, 0, 0)->integer, path, r->times.samples);
out:
  tfc_table_deinit(&table);
  tfc_store_close(store);
  free(query);
  return s;
}

static tfc_status find_times(struct replicas *r, const char *sha256) {
  const struct place_options *o = r->o;
  if (o->step_times) return tfc_status_annotate(read_times(r, o->step_times, sha256), "--step-times %s", o->step_times);
  if (sha256[0] && access(o->db, R_OK) == 0) {
    tfc_status s = read_times(r, o->db, sha256);
    tfc_status_free(s); // the database has no run of this graph
    if (!s) return NULL;
  }
  r->times = (struct tfc_step_times){.sigma = 0.05, .late_share = 0.01, .late_factor = 1.5};
  r->source = tfc_format("assumed, because no database says: give one with --step-times");
  return NULL;
}

// --- Printing --------------------------------------------------------------------------------------------------------
static void describe(const struct replicas *r, struct tfc_text *out) {
  char a[32], b[32], c[32];
  const struct tfc_workload *w = &r->workload;
  const struct tfc_hardware *h = &r->hardware;
  tfc_text_printf(out,
                  "A replica on %s takes %s a step alone, reads %s of parameters and sends %s of gradients "
                  "(modelled).\n",
                  r->device, tfc_show_us(a, w->step_us), tfc_show_bytes(b, w->pulled), tfc_show_bytes(c, w->pushed));
  tfc_text_printf(out, "%u %.*s on each host", h->per_host, TFC_STR_ARG(h->kind));
  if (h->hosts > 1)
    tfc_text_printf(out, ", %u hosts%s", h->hosts,
                    r->counts[r->count_count - 1] > h->per_host * h->hosts ? " (and more like them)" : "");
  tfc_text_printf(
      out, ".\nStep times: a standard deviation of %.1f %%, %.1f %% of the steps late by a factor of %.2f (%s).\n",
      100 * r->times.sigma, 100 * r->times.late_share, r->times.late_factor, r->source ? r->source : "");
  if (w->parameter_count == 0) tfc_text_printf(out, "The step reads no variables: replicas exchange nothing.\n");
}

static void print_mode(const struct replicas *r, int mode, struct tfc_text *out) {
  static const char *const titles[] = {"Synchronous, gradients reduced by all", "Synchronous, parameter servers",
                                       "Asynchronous, parameter servers (a step: one replica's)"};
  char a[32], b[32], c[32], d[32];
  tfc_text_printf(out, "\n%s\n\n  %8s %6s %10s %11s %11s %21s %11s  %s\n", titles[mode], "replicas",
                  mode == TFC_REPLICAS_ALL ? "hosts" : "ps", "batches/s", "efficiency", "step", "quartiles",
                  "bytes/step", "the busiest link");
  for (uint32_t i = 0; i < r->sweep.row_count; i++) {
    const struct tfc_replicas_result *x = &r->sweep.row[i].result[mode];
    tfc_text_printf(out, "  %8u %6u %10.4g %9.1f %% %11s %9s .. %8s %11s  %s (%.0f %% of the time)\n",
                    r->sweep.row[i].count, mode == TFC_REPLICAS_ALL ? x->hosts : x->servers, x->batches_per_second,
                    100 * x->efficiency, tfc_show_us(a, x->median_us), tfc_show_us(b, x->q1_us),
                    tfc_show_us(c, x->q3_us), tfc_show_bytes(d, x->link_bytes), x->link, 100 * x->link_share);
  }
}

static void print_backups(const struct replicas *r, struct tfc_text *out) {
  char a[32], b[32];
  tfc_text_printf(out,
                  "\nBackup workers of synchronous replicas with parameter servers%s\n\n  %8s %8s %11s %11s %10s\n",
                  r->o->backup < 0 ? ": how many pay best" : "", "replicas", "backups", "step", "with them", "gain");
  for (uint32_t i = 0; i < r->sweep.row_count; i++) {
    const struct tfc_sweep_row *x = &r->sweep.row[i];
    tfc_text_printf(out, "  %8u %8u %11s %11s %8.1f %%\n", x->count, x->backup,
                    tfc_show_us(a, x->result[TFC_REPLICAS_SYNC].median_us), tfc_show_us(b, x->with_backup.median_us),
                    100 * (x->gain - 1));
  }
  tfc_text_printf(out,
                  "  (gain: in batches a second, with the backups' devices counted: it is above 0 only where they are\n"
                  "  better used as backups than as more replicas)\n");
}

static json_t *result_json(const struct tfc_replicas_result *x) {
  return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:{s:s, s:o, s:o}}", "hosts", (int)x->hosts,
                   "ps", (int)x->servers, "batches_per_second", cli_json_number(x->batches_per_second), "efficiency",
                   cli_json_number(x->efficiency), "median_us", cli_json_number(x->median_us), "q1_us",
                   cli_json_number(x->q1_us), "q3_us", cli_json_number(x->q3_us), "p95_us", cli_json_number(x->p95_us),
                   "steps", (int)x->steps, "dropped_per_step", cli_json_number(x->dropped), "busiest_link", "name",
                   x->link, "bytes_per_step", cli_json_number(x->link_bytes), "busy_share",
                   cli_json_number(x->link_share));
}

static json_t *document(const struct replicas *r, const bool *modes) {
  static const char *const keys[] = {"sync_all", "sync_ps", "async_ps"};
  json_t *rows = json_array();
  for (uint32_t i = 0; rows && i < r->sweep.row_count; i++) {
    const struct tfc_sweep_row *x = &r->sweep.row[i];
    json_t *row = json_pack("{s:i}", "replicas", (int)x->count);
    for (int mode = 0; row && mode < TFC_REPLICAS_MODES; mode++)
      if (modes[mode]) json_object_set_new(row, keys[mode], result_json(&x->result[mode]));
    if (row && modes[TFC_REPLICAS_SYNC])
      json_object_set_new(row, "backup",
                          json_pack("{s:i, s:o, s:o}", "workers", (int)x->backup, "gain", cli_json_number(x->gain),
                                    "with", result_json(&x->with_backup)));
    json_array_append_new(rows, row);
  }
  return json_pack(
      "{s:s, s:i, s:{s:o}, s:{s:o}, s:{s:o, s:o, s:o, s:o, s:i, s:o}, s:{s:o, s:o, s:o, s:i, s:o}, s:s, s:o}", "format",
      "tfc-replicas", "version", 1, "graph", "file", cli_json_string(r->o->graph), "machine", "file",
      cli_json_string(r->o->machine), "replica", "device", cli_json_string(r->device), "step_us",
      cli_json_number(r->workload.step_us), "pulled_bytes", cli_json_number(r->workload.pulled), "pushed_bytes",
      cli_json_number(r->workload.pushed), "parameters", (int)r->workload.parameter_count, "largest_bytes",
      cli_json_number(r->workload.parameter_count ? r->workload.parameter[0] : 0), "step_times", "sigma",
      cli_json_number(r->times.sigma), "late_share", cli_json_number(r->times.late_share), "late_factor",
      cli_json_number(r->times.late_factor), "samples", (int)r->times.samples, "source",
      cli_json_string(r->source ? r->source : ""), "label", "modelled", "rows", rows);
}

static void on_progress(void *user, uint32_t i, uint32_t n) {
  const struct replicas *r = user;
  tfc_progress_update((double)i / n, -1, "%u replicas", r->counts[i - 1]);
}

static tfc_status write_page(const struct replicas *r, const struct tfc_text *text, const bool *modes) {
  char *dir = NULL;
  if (r->o->report && strcmp(r->o->report, "none") == 0) return NULL;
  dir = r->o->report ? tfc_format("%s", r->o->report) : place_default_path(r->o->graph, ".report");
  if (!dir) return tfc_status_no_memory("replicas");
  tfc_program_forget_signal();
  tfc_status s = tfc_report_replicas(
      &(struct tfc_report_replicas_page){
          .graph = r->o->graph, .machine = r->o->machine, .text = text, .sweep = &r->sweep, .modes = modes},
      dir);
  if (!s && !r->o->common.json) printf("\nWritten: %s/index.html\n", dir);
  free(dir);
  return s;
}

static tfc_status with_problem(void *user, const struct tfc_problem *p, const char *sha256) {
  struct replicas *r = user;
  const struct place_options *o = r->o;
  tfc_status s = NULL;
  struct tfc_text text = {0};
  json_t *json = NULL;
  const bool servers = o->reduce != 1, all = o->reduce != 2 && !o->async && o->backup < 0;
  const bool modes[TFC_REPLICAS_MODES] = {all, servers && !o->async, servers && !o->sync};
  uint32_t device;
  TFC_TRY(s, tfc_hardware_fastest(p, &device));
  TFC_TRY(s, tfc_workload_make(p, device, &r->workload));
  TFC_TRY(s, tfc_hardware_of(p, device, &r->workload, &r->hardware));
  snprintf(r->device, sizeof r->device, "%.*s", TFC_STR_ARG(p->machine->devices[device].name));
  TFC_TRY(s, find_times(r, sha256));
  tfc_progress_begin("replicas");
  TFC_TRY(s, tfc_sweep_run(&(struct tfc_sweep_options){.workload = &r->workload,
                                                       .hardware = &r->hardware,
                                                       .times = r->times,
                                                       .counts = r->counts,
                                                       .count_count = r->count_count,
                                                       .modes = {modes[0], modes[1], modes[2]},
                                                       .backup = o->backup,
                                                       .servers = (uint32_t)o->ps,
                                                       .seed = (uint64_t)o->execution.seed,
                                                       .cancel = tfc_program_cancel(),
                                                       .progress = on_progress,
                                                       .user = r},
                           &r->sweep));
  tfc_progress_end("%u numbers of replicas", r->count_count);
  describe(r, &text);
  for (int mode = 0; mode < TFC_REPLICAS_MODES; mode++)
    if (modes[mode]) print_mode(r, mode, &text);
  if (modes[TFC_REPLICAS_SYNC]) print_backups(r, &text);
  if (text.failed) TFC_TRY(s, tfc_status_no_memory("replicas"));
  if (o->common.json) {
    if (!(json = document(r, modes))) TFC_TRY(s, tfc_status_no_memory("replicas"));
    TFC_TRY(s, cli_json_print(json));
  } else {
    fwrite(text.data, 1, text.size, stdout);
  }
  TFC_TRY(s, write_page(r, &text, modes));
out:
  json_decref(json);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status with_cost_graph(void *user, const struct tfc_problem *p) {
  return with_problem(user, p, "");
}

int place_replicas(const struct place_options *o, bool cost_graph) {
  struct replicas r = {.o = o, .counts = calloc(TFC_REPLICAS_MOST, sizeof *r.counts)};
  tfc_status s = NULL;
  if (!r.counts || !parse_counts(o->replicas, &r)) {
    s = tfc_status_no_memory("replicas");
  } else if (cost_graph) {
    s = tfc_place_with_problem(&(struct tfc_place_options){.graph = o->graph,
                                                           .machine = o->machine,
                                                           .devices = o->devices,
                                                           .request = o->request,
                                                           .limits = o->limits.items,
                                                           .limit_count = o->limits.count},
                               with_cost_graph, &r);
  } else {
    s = place_machine_problem(o, with_problem, &r);
  }
  const int code = s ? place_fail(o, s) : 0;
  tfc_sweep_deinit(&r.sweep);
  tfc_workload_deinit(&r.workload);
  free(r.counts), free(r.source);
  return code;
}
