// The job from start to end: set-up, phases in turn, and what is left behind whichever way it ends.
#include "placer/job/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "placer/place.h"
#include "profiler/host.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"

double tfc_job_seconds(const struct tfc_job *j) {
  return j->before_s + 1e-9 * (double)(tfc_now_ns() - j->begin_ns);
}
bool tfc_job_cancelled(const struct tfc_job *j) {
  return j->o->cancel && atomic_load(j->o->cancel);
}

static double best_us(const struct tfc_job *j) {
  return j->best == UINT32_MAX ? (double)NAN : fmin(j->best_seen_us, j->known.data[j->best].median_us);
}

void tfc_job_say(struct tfc_job *j, bool warning, const char *format, ...) {
  char text[1024];
  if (!j->o->event) return;
  if (format) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
  }
  struct tfc_job_event event = {.phase = j->phase,
                                .warning = warning,
                                .text = format ? text : NULL,
                                .seconds = tfc_job_seconds(j),
                                .seconds_total = tfc_job_total_seconds(j),
                                .measured = j->episodes,
                                .measured_total = j->o->measurements ? j->o->measurements : 200,
                                .best_us = best_us(j)};
  j->o->event(j->o->user, &event);
}

uint64_t tfc_job_digest(const struct tfc_problem *p, const tfc_device_id *device) {
  uint64_t h = 14695981039346656037u;
  for (uint32_t u = 0; u < p->unit_count; u++) h = (h ^ (uint64_t)(device[u] + 1)) * 1099511628211u;
  return h;
}

// --- Set-up ----------------------------------------------------------------------------------------------------------
static tfc_status hash_graph(const char *path, char out_hex[65]) {
  struct tfc_file file = {0};
  char *inside = NULL;
  tfc_status s = tfc_file_map(path, &file);
  if (s) { // a SavedModel directory
    tfc_status_free(s);
    if (!(inside = tfc_format("%s/saved_model.pb", path)))
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
    s = tfc_file_map(inside, &file);
  }
  if (!s) tfc_sha256((tfc_str){(const char *)file.data, file.size}, out_hex);
  tfc_file_unmap(&file);
  free(inside);
  return s;
}

static tfc_status make_feeds(struct tfc_job *j) {
  const struct tfc_step_spec *step = j->o->step;
  j->feeds = calloc(step->feed_count + 1u, sizeof *j->feeds);
  j->feed_list = calloc(step->feed_count + 1u, sizeof *j->feed_list);
  if (!j->feeds || !j->feed_list) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < step->feed_count; i++) {
    const struct tfc_tensor *value = NULL;
    for (uint32_t k = 0; k < j->o->value_count; k++)
      if (j->o->values[k].output.node == step->feeds[i].output.node &&
          j->o->values[k].output.index == step->feeds[i].output.index)
        value = &j->o->values[k].value;
    if (!value) {
      TFC_RETURN_IF_ERROR(tfc_step_synthetic(&step->feeds[i], (uint64_t)j->o->execution.seed, &j->feeds[i]));
      value = &j->feeds[i];
    }
    j->feed_list[i] = (struct tfc_measure_feed){step->feeds[i].name, value};
  }
  return NULL;
}

static tfc_status begin_run(struct tfc_job *j, const char *sha256) {
  struct tfc_host host;
  struct tfc_text execution = {0};
  tfc_host_describe(&host);
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(j->store));
  TFC_TRY(s, tfc_store_add_run(j->store,
                               &(struct tfc_store_run){.program = j->o->program,
                                                       .command = j->o->command,
                                                       .graph = j->o->graph_path,
                                                       .graph_sha256 = sha256,
                                                       .graph_nodes = j->o->graph->node_count,
                                                       .objective = tfc_objective_name(j->o->objective),
                                                       .algorithms = j->o->algorithms ? j->o->algorithms : "auto",
                                                       .label = "measured",
                                                       .seed = (uint64_t)j->o->execution.seed,
                                                       .host = host.name,
                                                       .cpu_model = host.cpu_model,
                                                       .blas_core = host.blas_core},
                               &j->run));
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "progress", TFC_STR("0 nan"))); // it can be gone on with from here
  tfc_execution_format(&j->o->execution, &execution);
  TFC_TRY(s, tfc_store_set_state(j->store, j->run, "execution", (tfc_str){execution.data, execution.size}));
  TFC_TRY(s, tfc_store_commit(j->store));
  j->out->run = j->run;
out:
  tfc_text_deinit(&execution);
  return s;
}

// How long a silent worker is waited for: no longer than the whole job may take.
static double hang_seconds(const struct tfc_job *j) {
  return j->o->seconds > 0 ? fmin(60, fmax(10, j->o->seconds)) : 60;
}

static void say_math(struct tfc_job *j) {
  const char *math = tfc_devices_math(j->info->devices, j->info->device_count);
  if (j->o->execution.gpu_math && !math)
    tfc_job_say(j, true, "no GPU is among the devices: asking for %s changes nothing",
                tfc_math_name((tfc_math)j->o->execution.gpu_math));
  if (math && strcmp(math, tfc_math_name(TFC_MATH_FLOAT32)))
    tfc_job_say(j, false, "GPUs compute products and convolutions of float32 tensors in %s", math);
}

void tfc_job_compare_math(struct tfc_job *j, const char *file, const struct tfc_placement *placement) {
  const char *math = tfc_devices_math(j->info->devices, j->info->device_count);
  if (math && placement->gpu_math.data && !tfc_str_is(placement->gpu_math, math))
    tfc_job_say(j, true, "%s was measured with products in %.*s on GPUs; they are in %s now", file,
                TFC_STR_ARG(placement->gpu_math), math);
}

static tfc_status start_measurer(struct tfc_job *j) {
  tfc_status s = NULL;
  const struct tfc_step_spec *step = j->o->step;
  const struct tfc_graph *g = j->o->graph;
  char(*text)[32] = NULL;
  char *tuning = NULL;
  tfc_str *names = calloc((size_t)step->fetch_count + step->target_count + step->init_count + 1, sizeof *names);
  char **fetches = calloc(step->fetch_count + 1u, sizeof *fetches);
  if (!names || !fetches) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  uint32_t n = 0;
  for (uint32_t i = 0; i < step->fetch_count; i++) {
    fetches[i] = tfc_format("%.*s:%d", TFC_STR_ARG(g->nodes[step->fetches[i].node].name), step->fetches[i].index);
    if (!fetches[i]) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    names[n++] = tfc_str_from(fetches[i]);
  }
  for (uint32_t i = 0; i < step->target_count; i++) names[n++] = g->nodes[step->targets[i]].name;
  for (uint32_t i = 0; i < step->init_count; i++) names[n++] = g->nodes[step->inits[i]].name;
  TFC_TRY(s, tfc_store_get_tuning(j->store, &tuning));
  TFC_TRY(s, tfc_measurer_create(&(struct tfc_measure_options){.graph = j->o->graph_path,
                                                               .devices = j->o->devices,
                                                               .checkpoint = j->o->checkpoint,
                                                               .execution = j->o->execution,
                                                               .feeds = j->feed_list,
                                                               .feed_count = step->feed_count,
                                                               .fetches = names,
                                                               .targets = names + step->fetch_count,
                                                               .inits = names + step->fetch_count + step->target_count,
                                                               .fetch_count = step->fetch_count,
                                                               .target_count = step->target_count,
                                                               .init_count = step->init_count,
                                                               .tuning = tuning,
                                                               .hang_seconds = hang_seconds(j),
                                                               .end_s = 1e-9 * (double)j->begin_ns - j->before_s +
                                                                        tfc_job_total_seconds(j),
                                                               .cancel = j->o->cancel},
                                 &j->measurer));
  j->info = tfc_measurer_info(j->measurer);
  if (j->info->tuning) {
    TFC_TRY(s, tfc_store_begin(j->store));
    TFC_TRY(s, tfc_store_put_tuning(j->store, j->info->tuning));
    TFC_TRY(s, tfc_store_commit(j->store));
  }
  if (j->info->note) tfc_job_say(j, true, "%s", j->info->note);
  say_math(j);
  if (!j->info->op_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: the step has no operation that takes time: there is nothing to place",
             j->o->graph_path);
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5 * j->info->whole.cores)
    tfc_job_say(j, true, "other programs are at work (load %.1f on %u cores): what is measured is disturbed", load,
                j->info->whole.cores);
out:
  for (uint32_t i = 0; fetches && i < step->fetch_count; i++) free(fetches[i]);
  free(fetches);
  free(names);
  free(text);
  free(tuning);
  return s;
}

// Everything but what is kept together; `feeds` has room for the step's.
static struct tfc_subject_options subject_options(const struct tfc_job *j, struct tfc_output *feeds) {
  const struct tfc_step_spec *step = j->o->step;
  for (uint32_t i = 0; i < step->feed_count; i++) feeds[i] = step->feeds[i].output;
  uint64_t all = 0, least = UINT64_MAX; // could a limit matter at all?
  for (uint32_t i = 0; i < j->info->output_count; i++) all += j->info->output_bytes[i];
  for (uint32_t d = 0; d < j->bare->device_count; d++)
    if (j->bare->devices[d].memory < least) least = j->bare->devices[d].memory;
  return (struct tfc_subject_options){.feeds = feeds,
                                      .feed_count = step->feed_count,
                                      .fetches = step->fetches,
                                      .fetch_count = step->fetch_count,
                                      .targets = step->targets,
                                      .target_count = step->target_count,
                                      .ops = j->info->ops,
                                      .op_count = j->info->op_count,
                                      .output_bytes = j->info->output_bytes,
                                      .machine = j->bare,
                                      .pins = j->o->pins,
                                      .pin_count = j->o->pin_count,
                                      .constrain = j->o->device_strings == TFC_STRINGS_ARE_CONSTRAINTS,
                                      .host = j->bare->devices[0].name,
                                      .supported = j->info->supported,
                                      .done_by = j->info->done_by,
                                      .continued = j->info->continued,
                                      .continued_count = j->info->continued_count,
                                      .live = least < all};
}

static tfc_status make_subject(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_output *feeds = calloc(j->o->step->feed_count + 1u, sizeof *feeds);
  if (!feeds) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_local_machine(j->info, NULL, j->o->execution.limits, j->o->execution.limit_count, &j->bare));
  TFC_TRY(s, tfc_job_check_given_devices(j));
  struct tfc_subject_options options = subject_options(j, feeds);
  TFC_TRY(s, tfc_subject_create(j->o->graph, &options, &j->subject));
  TFC_TRY(s, tfc_calibration_init(&j->calibration, j->info));
  TFC_TRY(s, tfc_cost_table_create(j->o->graph->node_count, j->calibration.kind_count, &j->plain));
  TFC_TRY(s, tfc_cost_table_create(j->o->graph->node_count, j->calibration.kind_count, &j->alone));
  TFC_TRY(s, tfc_cost_table_create(j->o->graph->node_count, j->calibration.kind_count, &j->costs));
  j->kind_of_device = calloc(j->info->device_count + 1u, sizeof *j->kind_of_device);
  if (!j->kind_of_device) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t d = 0; d < j->info->device_count; d++) j->kind_of_device[d] = tfc_kind_of_device(j->info, d);
  tfc_job_say(j, false, "the step: %u operations, %u variables, %u edges; %u units", j->info->op_count,
              j->subject->cost_count - j->info->op_count, j->subject->edge_count, j->subject->unit_count);
out:
  free(feeds);
  return s;
}

tfc_status tfc_job_keep_together(struct tfc_job *j) {
  if (j->kept) return NULL;
  tfc_status s = NULL;
  uint32_t count = 0;
  struct tfc_node_pair *together = NULL;
  struct tfc_output *feeds = calloc(j->o->step->feed_count + 1u, sizeof *feeds);
  if (!feeds) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_job_find_together(j, &together, &count));
  if (!count) goto out;
  struct tfc_subject_options options = subject_options(j, feeds);
  options.together = together, options.together_count = count;
  tfc_status apart = tfc_subject_create(j->o->graph, &options, &j->coarse);
  tfc_status_free(apart); // what belongs together is pinned apart: searched without
  if (j->coarse)
    tfc_job_say(j, false, "%u units where what runs fused, or on the same weights, is kept together",
                j->coarse->unit_count);
out:
  free(feeds);
  free(together);
  return s;
}

static void known_deinit(struct tfc_job_known *k) {
  free(k->name);
  free(k->algorithm);
  free(k->note);
  free(k->peak);
  free(k->busy_us);
  free(k->share);
  free(k->sequence);
  tfc_solution_deinit(&k->solution);
  tfc_array_free(&k->final_step_us);
  tfc_array_free(&k->final_block_of);
  tfc_array_free(&k->in_flight.us);
  tfc_array_free(&k->in_flight.block);
}

static void tear_down(struct tfc_job *j) {
  tfc_measurer_free(j->measurer);
  tfc_store_close(j->store);
  for (uint32_t i = 0; j->feeds && i < j->o->step->feed_count; i++) tfc_tensor_release(&j->feeds[i]);
  free(j->feeds);
  free(j->feed_list);
  for (size_t i = 0; i < j->known.count; i++) known_deinit(&j->known.data[i]);
  tfc_array_free(&j->known);
  tfc_simulator_free(j->simulator);
  tfc_problem_free(j->problem);
  tfc_problem_free(j->coarse_problem);
  tfc_cost_graph_free(j->coarse_graph);
  tfc_subject_free(j->coarse);
  free(j->kept);
  if (j->searched.device) tfc_solution_deinit(&j->searched);
  tfc_cost_graph_free(j->cost_graph);
  tfc_machine_free(j->machine);
  tfc_subject_free(j->subject);
  tfc_machine_free(j->bare);
  tfc_cost_table_free(j->plain);
  tfc_cost_table_free(j->alone);
  tfc_cost_table_free(j->costs);
  tfc_calibration_deinit(&j->calibration);
  free(j->kind_of_device);
  free(j->trouble);
}

// --- The phases ------------------------------------------------------------------------------------------------------
static tfc_status phases(struct tfc_job *j) {
  tfc_status s = NULL;
  j->phase = TFC_JOB_PROFILE;
  if (!j->o->resume || j->calibration.link_count == 0) {
    for (size_t i = 0; i < j->known.count; i++) known_deinit(&j->known.data[i]); // of a profile that did not end
    j->known.count = 0, j->best = UINT32_MAX;
    TFC_TRY(s, tfc_job_profile(j));
  } else {
    TFC_TRY(s, tfc_job_keep_together(j));
  }
  TFC_TRY(s, tfc_job_rebuild(j));
  j->profiled = true;
  TFC_TRY(s, tfc_job_save_state(j));
  tfc_job_predict(j);
  if (j->o->evaluate) return tfc_job_evaluate(j);
  TFC_TRY(s, tfc_job_baselines(j));
  TFC_TRY(s, tfc_job_save_state(j));
  j->phase = TFC_JOB_SEARCH;
  TFC_TRY(s, tfc_job_search(j));
  TFC_TRY(s, tfc_job_save_state(j));
  j->phase = TFC_JOB_FINAL;
  TFC_TRY(s, j->o->repeats ? tfc_job_repeat(j) : tfc_job_final(j));
out:
  return s;
}

static void finish(struct tfc_job *j, tfc_status failure) {
  bool cancelled = tfc_status_code(failure) == TFC_CANCELLED;
  struct tfc_text document = {0};
  tfc_status s = NULL;
  if (j->out->placement && (j->out->placement->feasible || j->o->evaluate)) {
    s = tfc_placement_format(j->out->placement, &document);
    tfc_status_free(s);
  }
  const struct tfc_job_known *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best];
  const struct tfc_job_row *answer = NULL;
  for (uint32_t i = 0; i < j->out->row_count; i++)
    if (strcmp(j->out->rows[i].kind, "answer") == 0) answer = &j->out->rows[i];
  struct tfc_store_answer stored = {.state = cancelled ? "interrupted"
                                             : failure ? "failed"
                                                       : "done",
                                    .exit_code = j->out->exit_code,
                                    .algorithm = best ? best->algorithm : NULL,
                                    .placement_id = best ? best->placement_id : -1,
                                    .speedup = answer ? answer->speedup : (double)NAN,
                                    .speedup_low = answer ? answer->low : (double)NAN,
                                    .speedup_high = answer ? answer->high : (double)NAN,
                                    .bound_us = j->out->bound_us > 0 ? j->out->bound_us : (double)NAN,
                                    .bound_name = j->out->bound_name,
                                    .trace_overhead = j->trace_overhead,
                                    .tau = j->out->tau_placements ? j->out->tau : (double)NAN,
                                    .tau_placements = j->out->tau_placements,
                                    .document = document.data,
                                    .message = failure ? tfc_status_message(failure) : NULL};
  s = tfc_store_begin(j->store);
  if (!s) s = tfc_store_finish_run(j->store, j->run, &stored);
  if (!s) s = tfc_store_commit(j->store);
  if (!s) s = tfc_store_index(j->store);
  if (s) {
    tfc_store_rollback(j->store);
    tfc_job_say(j, true, "%s", tfc_status_message(s));
    if (j->out->exit_code == 0 || j->out->exit_code == 7) j->out->exit_code = 6;
    tfc_status_free(s);
  }
  tfc_text_deinit(&document);
}

tfc_status tfc_job_run(const struct tfc_job_options *o, struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  char sha256[65] = "";
  struct tfc_job j = {.o = o,
                      .out = out,
                      .begin_ns = tfc_now_ns(),
                      .best = UINT32_MAX,
                      .best_seen_us = INFINITY,
                      .unordered_us = (double)NAN,
                      .trace_overhead = (double)NAN,
                      .trace_overhead_least = (double)NAN,
                      .memory_ratio = 1,
                      .trace = TFC_TRACE_MODE_ALL};
  *out = (struct tfc_job_outcome){.exit_code = 1, .trace_overhead = (double)NAN, .tau = (double)NAN};
  // What can fail for reasons outside the graph is tried first, before any time is spent.
  TFC_TRY(s, tfc_store_open(o->database, &(struct tfc_store_options){.write = true, .purpose = o->program}, &j.store));
  TFC_TRY(s, hash_graph(o->graph_path, sha256));
  TFC_TRY(s, make_feeds(&j));
  TFC_TRY(s, start_measurer(&j));
  TFC_TRY(s, make_subject(&j));
  if (o->resume) TFC_TRY(s, tfc_job_resume(&j, sha256));
  if (!j.run) TFC_TRY(s, begin_run(&j, sha256));
  out->device_count = j.info->device_count;
  snprintf(j.label, sizeof j.label, "%s", tfc_label_name(tfc_measure_label(j.info)));
  s = phases(&j);
  out->lost_workers = tfc_measurer_restarts(j.measurer);
  if (s && tfc_status_code(s) != TFC_CANCELLED) goto out;
  out->interrupted = s != NULL;
  if (s || !o->evaluate) {
    if (j.problem) {
      tfc_status t = tfc_job_answer(&j);
      if (t && !s) {
        s = t;
        goto out;
      }
      if (tfc_status_code(t) == TFC_DATA_LOSS) tfc_job_say(&j, true, "%s", tfc_status_message(t));
      tfc_status_free(t);
    }
    if (s) out->exit_code = 130;
  }
out:
  if (out->placement) {
    out->placement->run = j.run;
    out->placement->graph_sha256 = tfc_arena_str(&out->placement->arena, tfc_str_from(sha256));
  }
  if (s && tfc_status_code(s) != TFC_CANCELLED && out->exit_code != 5) out->exit_code = tfc_status_exit_code(s);
  if (j.run) {
    tfc_status t = j.problem ? tfc_job_save_state(&j) : NULL;
    tfc_status_free(t);
    j.phase = TFC_JOB_DONE;
    finish(&j, s);
  }
  tear_down(&j);
  if (tfc_status_code(s) == TFC_CANCELLED && out->run) { // said by the outcome
    tfc_status_free(s);
    s = NULL;
  }
  return s;
}

void tfc_job_outcome_deinit(struct tfc_job_outcome *out) {
  tfc_placement_free(out->placement);
  for (uint32_t i = 0; i < out->row_count; i++) {
    free(out->rows[i].name);
    free(out->rows[i].note);
  }
  free(out->rows);
  for (uint32_t i = 0; i < out->pair_count; i++) {
    free(out->pairs[i].algorithm);
    free(out->pairs[i].measured_us);
  }
  free(out->pairs);
  free(out->busy_share);
  free(out->peak);
  free(out->crossing);
  free(out->path);
  free(out->first_line);
  *out = (struct tfc_job_outcome){0};
}
