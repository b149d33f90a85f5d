// Runs a job from start to end: set-up, the phases one after another, and clean-up with any outcome. Only this file
// knows all records, and hands each phase those that it uses.
#include "placer/job/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/account.h"
#include "placer/job/answer.h"
#include "placer/job/evaluate.h"
#include "placer/job/final.h"
#include "placer/job/given.h"
#include "placer/job/profile.h"
#include "placer/job/repeat.h"
#include "placer/job/resume.h"
#include "placer/job/rivals.h"
#include "placer/job/search.h"
#include "placer/measure/step_names.h"
#include "placer/model/placement_json.h"
#include "profiler/graph_digest.h"
#include "profiler/store_rows.h"

struct tfc_job {
  const struct tfc_job_options *o;
  struct tfc_job_clock clock;
  struct tfc_job_schedule schedule;
  struct tfc_job_model model;
  struct tfc_job_candidates candidates;
  struct tfc_job_journal journal;
  struct tfc_job_proposers proposers;
  struct tfc_measurer *measurer;
  const struct tfc_measure_info *info;
  struct tfc_tensor *feeds; // [step->feed_count]; synthetic feeds are owned, others are borrowed
  struct tfc_measure_feed *feed_list;
  bool spent; // the job goes on with a run that has used its time: it measures nothing, and the run stays interrupted
};

// --- Set-up ----------------------------------------------------------------------------------------------------------
static tfc_status make_feeds(struct tfc_job *j) {
  const struct tfc_step_spec *step = j->o->step;
  j->feeds = calloc(step->feed_count + 1u, sizeof *j->feeds);
  j->feed_list = calloc(step->feed_count + 1u, sizeof *j->feed_list);
  if (!j->feeds || !j->feed_list) return tfc_status_no_memory(NULL);
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

// Returns how long the job waits for a worker that sends nothing: at most as long as the whole job may take.
static double hang_seconds(const struct tfc_job_options *o) {
  return o->seconds > 0 ? fmin(60, fmax(10, o->seconds)) : 60;
}

static void say_math(struct tfc_job *j) {
  const char *math = tfc_devices_math(j->info->devices, j->info->device_count);
  if (j->o->execution.gpu_math && !math)
    tfc_job_say(&j->clock, true, "no GPU is among the devices: asking for %s changes nothing",
                tfc_math_name((tfc_math)j->o->execution.gpu_math));
  if (math && strcmp(math, tfc_math_name(TFC_MATH_FLOAT32)))
    tfc_job_say(&j->clock, false, "GPUs compute products and convolutions of float32 tensors in %s", math);
}

static void say_waiting(void *user, const char *who) {
  const struct tfc_job *j = user;
  tfc_job_say(&j->clock, false, "waiting for another run that measures on this machine: %s", who);
}

static tfc_status start_measurer(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_step_names names = {0};
  char *tuning = NULL;
  struct tfc_measure_options o = {.graph = j->o->graph_path,
                                  .devices = j->o->devices,
                                  .checkpoint = j->o->checkpoint,
                                  .execution = j->o->execution,
                                  .feeds = j->feed_list,
                                  .hang_seconds = hang_seconds(j->o),
                                  .end_s = tfc_job_moment(&j->clock, j->clock.total_s),
                                  .lock = j->o->lock,
                                  .wait = j->o->wait ? say_waiting : NULL,
                                  .wait_user = j,
                                  .cancel = j->o->cancel};
  TFC_TRY(s, tfc_step_names_init(&names, j->o->graph, j->o->step, &o));
  TFC_TRY(s, tfc_store_get_tuning(j->journal.store, &tuning));
  o.tuning = tuning;
  TFC_TRY(s, tfc_measurer_create(&o, &j->measurer));
  // The time in which the job waited for the lock does not count.
  tfc_job_clock_leave_out(&j->clock, tfc_measurer_waited_s(j->measurer));
  j->info = tfc_measurer_info(j->measurer);
  if (j->info->tuning) TFC_TRY(s, tfc_job_journal_tuning(&j->journal, j->info->tuning));
  if (j->info->note) tfc_job_say(&j->clock, true, "%s", j->info->note);
  say_math(j);
  if (!j->info->op_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: the step has no operation that takes time: there is nothing to place",
             j->o->graph_path);
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5 * j->info->whole.cores)
    tfc_job_say(&j->clock, true, "other programs are at work (load %.1f on %u cores): what is measured is disturbed",
                load, j->info->whole.cores);
out:
  tfc_step_names_deinit(&names);
  free(tuning);
  return s;
}

static tfc_status set_up(struct tfc_job *j, const char *sha256) {
  tfc_status s = NULL;
  TFC_TRY(s, make_feeds(j));
  TFC_TRY(s, start_measurer(j));
  TFC_TRY(s, tfc_job_model_init(&j->model, j->o, j->info));
  TFC_TRY(s, tfc_job_check_given_devices(&j->model));
  TFC_TRY(s, tfc_job_model_take_graph(&j->model));
  const struct tfc_subject *subject = j->model.subject;
  tfc_job_say(&j->clock, false, "the step: %u operations, %u variables, %u edges; %u units", j->info->op_count,
              subject->cost_count - j->info->op_count, subject->edge_count, subject->unit_count);
  if (j->o->resume) {
    TFC_TRY(s, tfc_job_resume(j->o, sha256, &j->clock, &j->model, &j->candidates, &j->journal));
    tfc_measurer_set_end(j->measurer, tfc_job_moment(&j->clock, j->clock.total_s)); // the time used before counts, too
  } else {
    TFC_TRY(s, tfc_job_journal_begin(&j->journal, j->o, sha256));
  }
out:
  return s;
}

static void tear_down(struct tfc_job *j) {
  tfc_measurer_free(j->measurer);
  tfc_job_journal_close(&j->journal);
  for (uint32_t i = 0; j->feeds && i < j->o->step->feed_count; i++) tfc_tensor_release(&j->feeds[i]);
  free(j->feeds);
  free(j->feed_list);
  tfc_job_candidates_deinit(&j->candidates);
  tfc_job_proposers_deinit(&j->proposers);
  tfc_job_model_deinit(&j->model);
}

// --- The phases ------------------------------------------------------------------------------------------------------
static tfc_status phases(struct tfc_job *j, struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  struct tfc_job_measuring measuring = {.measurer = j->measurer,
                                        .clock = &j->clock,
                                        .schedule = &j->schedule,
                                        .model = &j->model,
                                        .candidates = &j->candidates,
                                        .journal = &j->journal};
  tfc_job_clock_enter(&j->clock, TFC_JOB_PROFILE);
  if (!j->o->resume || j->model.calibration.link_count == 0) {
    tfc_job_candidates_clear(&j->candidates); // drops the candidates of a profile that did not end
    tfc_job_journal_forget(&j->journal);
    TFC_TRY(s, tfc_job_profile(&measuring));
  } else {
    TFC_TRY(s, tfc_job_model_keep_together(&j->model, &j->clock));
  }
  TFC_TRY(s, tfc_job_journal_rebuild(&j->journal, &j->model));
  TFC_TRY(s, tfc_job_model_begin_learning(&j->model));
  if (j->o->resume)
    TFC_TRY(s, tfc_job_resume_learning(&j->clock, &j->model, &j->candidates, &j->journal, &j->proposers));
  TFC_TRY(s, tfc_job_journal_progress(&j->journal, &j->model, &j->candidates, &j->proposers));
  tfc_job_candidates_predict(&j->candidates);
  if (j->o->evaluate) return tfc_job_evaluate(&measuring, out);
  j->spent = j->o->resume && tfc_job_seconds(&j->clock) >= j->clock.total_s && tfc_job_candidates_best(&j->candidates);
  if (j->spent) {
    tfc_job_say(&j->clock, true,
                "run %lld has used its time (%.0f s): nothing more is measured, and the answer is the one that it had; "
                "with a longer --time it can go on",
                (long long)j->journal.run, j->clock.total_s);
    return NULL;
  }
  TFC_TRY(s, tfc_job_rivals(&measuring, &j->proposers));
  TFC_TRY(s, tfc_job_journal_progress(&j->journal, &j->model, &j->candidates, &j->proposers));
  tfc_job_clock_enter(&j->clock, TFC_JOB_SEARCH);
  const char *why = NULL;
  TFC_TRY(s, tfc_job_search(&measuring, &j->proposers, &why));
  TFC_TRY(s, tfc_job_journal_tell(&j->journal, "ending", why));
  TFC_TRY(s, tfc_job_journal_progress(&j->journal, &j->model, &j->candidates, &j->proposers));
  tfc_job_clock_enter(&j->clock, TFC_JOB_FINAL);
  TFC_TRY(s, j->o->repeats ? tfc_job_repeat(&j->candidates, j->measurer, out) : tfc_job_final(&measuring));
out:
  return s;
}

static tfc_status tell_learning(struct tfc_job *j, struct tfc_job_outcome *out) {
  struct tfc_text text = {0};
  tfc_job_account(&j->candidates, &j->proposers, &text);
  if (text.failed || !text.size) {
    tfc_text_deinit(&text);
    return NULL; // the message loses this line
  }
  out->learning = text.data;
  return tfc_job_journal_tell(&j->journal, "learning", out->learning);
}

static void finish(struct tfc_job *j, tfc_status failure, struct tfc_job_outcome *out) {
  bool cancelled = tfc_status_code(failure) == TFC_CANCELLED || (j->spent && !failure);
  struct tfc_text document = {0};
  tfc_status s = NULL;
  if (out->placement && (out->placement->feasible || j->o->evaluate)) {
    s = tfc_placement_format(out->placement, &document);
    tfc_status_free(s);
  }
  const struct tfc_job_candidate *best = tfc_job_candidates_best(&j->candidates);
  const struct tfc_job_row *answer = tfc_job_outcome_answer(out);
  const bool told = answer && answer->interval_steps >= TFC_JOB_INTERVAL_STEPS;
  struct tfc_store_answer stored = {.state = cancelled ? "interrupted"
                                             : failure ? "failed"
                                                       : "done",
                                    .exit_code = out->exit_code,
                                    .algorithm = best ? best->algorithm : NULL,
                                    .placement_id =
                                        best ? tfc_job_journal_placement_id(&j->journal, j->candidates.best) : -1,
                                    .speedup = answer ? answer->speedup : (double)NAN,
                                    .speedup_low = told ? answer->low : (double)NAN,
                                    .speedup_high = told ? answer->high : (double)NAN,
                                    .bound_us = out->bound_us > 0 ? out->bound_us : (double)NAN,
                                    .bound_name = out->bound_name,
                                    .trace_overhead = j->model.trace_overhead,
                                    .tau = out->tau_placements ? out->tau : (double)NAN,
                                    .tau_placements = out->tau_placements,
                                    .document = document.data,
                                    .message = failure ? tfc_status_message(failure) : NULL};
  s = tfc_job_journal_finish(&j->journal, &j->candidates, &stored);
  if (s) {
    tfc_job_say(&j->clock, true, "%s", tfc_status_message(s));
    if (out->exit_code == 0 || out->exit_code == 7) out->exit_code = 6;
    tfc_status_free(s);
  }
  tfc_text_deinit(&document);
}

tfc_status tfc_job_run(const struct tfc_job_options *o, struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  char sha256[65] = "";
  struct tfc_job j = {.o = o, .schedule = tfc_job_schedule_of(o->seconds, o->measurements)};
  j.clock = tfc_job_clock_begin(j.schedule.total_s, j.schedule.measurements, o->cancel, o->event, o->user);
  tfc_job_candidates_init(&j.candidates, &j.clock, &j.model);
  *out = (struct tfc_job_outcome){.exit_code = 1, .trace_overhead = (double)NAN, .tau = (double)NAN};
  // Steps that can fail for reasons outside of the graph come first, before time is spent.
  TFC_TRY(s, tfc_job_journal_open(&j.journal, o, &j.clock));
  TFC_TRY(s, tfc_graph_digest(o->graph_path, sha256));
  TFC_TRY(s, set_up(&j, sha256));
  out->run = j.journal.run;
  out->device_count = j.info->device_count;
  s = phases(&j, out);
  out->lost_workers = tfc_measurer_restarts(j.measurer);
  if (s && tfc_status_code(s) != TFC_CANCELLED) goto out;
  out->interrupted = s != NULL || j.spent;
  if (s || !o->evaluate) {
    if (j.model.problem) {
      tfc_status t = tfc_job_answer(&j.candidates, &j.clock, out);
      if (t && !s) {
        s = t;
        goto out;
      }
      if (tfc_status_code(t) == TFC_DATA_LOSS) tfc_job_say(&j.clock, true, "%s", tfc_status_message(t));
      tfc_status_free(t);
    }
    if (s) out->exit_code = 130;
  }
out:
  out->run = j.journal.run;
  if (out->placement) {
    out->placement->run = out->run;
    out->placement->graph_sha256 = tfc_arena_str(&out->placement->arena, tfc_str_from(sha256));
  }
  if (s && tfc_status_code(s) != TFC_CANCELLED && out->exit_code != 5) out->exit_code = tfc_status_exit_code(s);
  if (out->run) {
    tfc_status t = j.model.problem ? tfc_job_journal_progress(&j.journal, &j.model, &j.candidates, &j.proposers) : NULL;
    if (!t && j.model.problem) t = tell_learning(&j, out);
    tfc_status_free(t);
    tfc_job_clock_enter(&j.clock, TFC_JOB_DONE);
    finish(&j, s, out);
  }
  tear_down(&j);
  if (tfc_status_code(s) == TFC_CANCELLED && out->run) { // the outcome says that the job was cancelled
    tfc_status_free(s);
    s = NULL;
  }
  return s;
}
