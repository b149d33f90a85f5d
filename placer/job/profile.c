// Profile: runs the step on one device of each kind and on the undivided machine, in turns with and without tracing,
// and times the links. Makes from all that the machine, the costs and the problem that searches use.
#include "placer/job/profile.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/given.h"
#include "placer/job/room.h"
#include "profiler/statistics.h"
#include "runtime/base/units.h"

// Computes the overhead of tracing from traced and untraced blocks of the same plan, which ran in turns. If step times
// vary by more than tracing costs, the overhead may differ from 0 only by noise; *out_least is the lower end of its 95
// % interval.
static tfc_status overhead_of(const struct tfc_measured *m, double *out, double *out_least) {
  tfc_status s = NULL;
  enum { MOST = 16, ROUNDS = 2000 };
  struct tfc_block_pair pairs[MOST] = {{0}};
  double *us = calloc(m->step_count + 1u, sizeof *us);
  struct tfc_interval ratio;
  uint32_t count = 0;
  if (!us) return tfc_status_no_memory("profiling");
  for (uint32_t i = 0; i < m->step_count;) {
    uint32_t first = i, block = m->steps[i].block;
    for (; i < m->step_count && m->steps[i].block == block && m->steps[i].warmup == m->steps[first].warmup; i++)
      us[i] = 1e-3 * (double)m->steps[i].host_ns; // the host's clock times traced and untraced steps alike
    if (m->steps[first].warmup || count == MOST) continue;
    if (m->steps[first].traced)
      pairs[count].a = us + first, pairs[count].a_count = i - first;
    else
      pairs[count].b = us + first, pairs[count].b_count = i - first;
    count += pairs[count].a_count && pairs[count].b_count;
  }
  TFC_TRY(s, tfc_bootstrap_ratio(pairs, count, ROUNDS, 1, &ratio));
  *out = ratio.value - 1, *out_least = ratio.low - 1;
out:
  free(us);
  return s;
}

// Returns the time in us that dispatching an operation takes: the step's time minus the sum of its operations' times,
// divided by the number of operations. (The device is never idle between operations.)
static double dispatch_of(const struct tfc_measured *m) {
  double *each = calloc(m->profile_count + 1u, sizeof *each);
  size_t n = 0;
  for (uint32_t i = 0; each && i < m->profile_count; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    int64_t sum = 0;
    for (size_t k = 0; k < p->ops.count; k++) sum += p->ops.data[k].duration_ns;
    each[n++] = 1e-3 * (double)(p->duration_ns - sum) / (double)p->ops.count;
  }
  double median = tfc_quartiles_of(each, n).median;
  free(each);
  return isfinite(median) && median > 0 ? median : 0;
}

struct profiling {
  struct tfc_job_measuring *t;
  const uint32_t *device; // [entry]; TFC_NONE: the undivided machine
  char *trouble;          // why the first run that failed did so; NULL: none failed
  tfc_code trouble_code;
};

// Stores the message of the first failure, because it is the reason why there is no profile. Later runs may have failed
// only because time was over.
static void remember_trouble(struct profiling *p, const struct tfc_measured *m) {
  if (p->trouble || m->state == TFC_RESULT_OK || !m->message) return;
  p->trouble = tfc_str_dup(tfc_str_from(m->message));
  p->trouble_code = m->code == TFC_OK || m->code == TFC_CANCELLED ? TFC_ABORTED : m->code;
}

// Stores the times of steps on one device whose operations were split as in runs on several devices.
static tfc_status run_in_parts(void *user, const struct tfc_measured *m) {
  struct profiling *p = user;
  remember_trouble(p, m);
  if (m->state != TFC_RESULT_OK) {
    tfc_job_say(p->t->clock, true, "in parts: %s", m->message ? m->message : "the step failed");
    return NULL;
  }
  return tfc_job_model_learn(p->t->model, m, false);
}

static tfc_status profiled(void *user, const struct tfc_measured *m) {
  tfc_status s = NULL;
  struct profiling *p = user;
  struct tfc_job_model *model = p->t->model;
  struct tfc_job_candidates *c = p->t->candidates;
  uint32_t device = p->device[m->entry];
  remember_trouble(p, m);
  bool whole = device == TFC_NONE;
  const char *name = whole ? NULL : model->info->devices[device].name;
  struct tfc_solution solution = {0};
  uint32_t index;
  struct tfc_measured seen = *m;
  char *why = NULL;
  if (!whole) {
    TFC_TRY(s, tfc_solution_init(&solution, model->problem));
    tfc_status illegal = tfc_placement_single(model->problem, tfc_str_from(name), &solution);
    if (illegal) { // say, a pin forbids it: it is timed for its costs, but it is no rival
      why = tfc_str_dup(tfc_str_from(tfc_status_message(illegal)));
      tfc_status_free(illegal);
      tfc_solution_deinit(&solution);
      seen.state = m->state == TFC_RESULT_OK ? TFC_RESULT_ILLEGAL : m->state;
      seen.message = why;
    }
  }
  if (!whole && seen.state == TFC_RESULT_OK && m->peak_count > device &&
      m->peak[device] > model->bare->devices[device].memory) {
    char a[32], b[32];
    why = tfc_format("it needs %s, the limit is %s", tfc_show_bytes(a, (double)m->peak[device]),
                     tfc_show_bytes(b, (double)model->bare->devices[device].memory));
    seen.state = TFC_RESULT_NO_FIT, seen.message = why;
  }
  if (m->state == TFC_RESULT_OK && !whole) {
    if (model->info->device_count == 1) TFC_TRY(s, tfc_job_model_learn(model, m, false));
    tfc_job_model_set_dispatch(model, device, dispatch_of(m));
    if (isnan(model->trace_overhead)) {
      double overhead = (double)NAN, least = (double)NAN;
      TFC_TRY(s, overhead_of(m, &overhead, &least));
      tfc_job_model_set_trace_overhead(model, overhead, least);
    }
  }
  TFC_TRY(s, tfc_job_candidates_add_device(c, name, solution.device ? &solution : NULL, &index));
  TFC_TRY(s, tfc_job_measuring_take(p->t, index, &seen, "profile"));
  const struct tfc_job_candidate *k = &c->list.data[index];
  if (isfinite(k->median_us)) {
    char text[32];
    tfc_job_say(p->t->clock, false, "%s: %s a step (%u steps)%s%s", k->name, tfc_show_us(text, k->median_us), k->steps,
                why ? "; " : "", why ? why : "");
  } else {
    tfc_job_say(p->t->clock, true, "%s: %s", k->name, m->message ? m->message : "failed");
  }
out:
  tfc_solution_deinit(&solution);
  free(why);
  return s;
}

// Stores the times of steps without rewrites, which show how long each operation takes by itself.
static tfc_status weighed(void *user, const struct tfc_measured *m) {
  struct profiling *p = user;
  remember_trouble(p, m);
  if (m->state != TFC_RESULT_OK)
    tfc_job_say(p->t->clock, true, "without rewrites: %s", m->message ? m->message : "the step failed");
  return tfc_job_model_learn(p->t->model, m, true);
}

static double moment(const struct tfc_job_measuring *t, double share) {
  return tfc_job_moment(t->clock, tfc_job_until(t->schedule, share));
}

static tfc_status profile_steps(struct profiling *p) {
  tfc_status s = NULL;
  struct tfc_job_measuring *t = p->t;
  struct tfc_job_model *model = t->model;
  uint32_t count = 0, nodes = model->o->graph->node_count;
  uint32_t *device = calloc(model->info->device_count + 2u, sizeof *device);
  struct tfc_measure_entry *entry = calloc(model->info->device_count + 2u, sizeof *entry);
  uint16_t *placement = calloc(((size_t)model->info->device_count + 2) * nodes + 1, sizeof *placement);
  if (!device || !entry || !placement) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < model->info->device_count; d++) {
    bool first = true;
    for (uint32_t e = 0; e < d; e++) first &= model->kind_of_device[e] != model->kind_of_device[d];
    if (!first) continue; // only the first of several identical devices is measured
    uint16_t *at = placement + (size_t)count * nodes;
    const bool *supported = model->info->supported + (size_t)model->kind_of_device[d] * nodes;
    for (uint32_t i = 0; i < nodes; i++) at[i] = supported[i] ? (uint16_t)d : (uint16_t)model->subject->host;
    entry[count].placement = at;
    device[count++] = d;
  }
  for (uint32_t i = 0; i < count; i++) entry[i].plain = true;
  struct tfc_measure_batch plain = {.entries = entry,
                                    .count = count,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 3,
                                    .blocks = 1,
                                    .best_us = (double)NAN,
                                    .ignore_limits = true,
                                    .again = true,
                                    .deadline_s = moment(t, tfc_job_shares.plain)};
  TFC_TRY(s, tfc_measurer_run(t->measurer, &plain, weighed, p));
  TFC_TRY(s, tfc_job_model_keep_together(model, t->clock));
  for (uint32_t i = 0; i < count; i++) entry[i].plain = false, entry[i].in_parts = true;
  struct tfc_measure_batch parts = plain;
  parts.block = 5;
  parts.deadline_s = moment(t, tfc_job_shares.in_parts);
  if (model->info->device_count > 1) TFC_TRY(s, tfc_measurer_run(t->measurer, &parts, run_in_parts, p));
  for (uint32_t i = 0; i < count; i++) entry[i].in_parts = false;
  entry[count].whole = true;
  device[count++] = TFC_NONE;
  p->device = device;
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = count,
                                    .reference = TFC_NONE,
                                    .warmup = 2,
                                    .settle = true,
                                    .block = 3,
                                    .blocks = 4,
                                    .best_us = (double)NAN,
                                    .trace = TFC_TRACE_MODE_ALTERNATE,
                                    .ignore_limits = true,
                                    .again = true,
                                    .deadline_s = moment(t, tfc_job_shares.profile)};
  TFC_TRY(s, tfc_measurer_run(t->measurer, &batch, profiled, p));
out:
  free(device);
  free(entry);
  free(placement);
  return s;
}

tfc_status tfc_job_profile(struct tfc_job_measuring *t) {
  tfc_status s = NULL;
  struct tfc_job_model *model = t->model;
  const struct tfc_job_candidates *c = t->candidates;
  struct profiling p = {.t = t};
  // costs are not known yet; this makes the units, and finds on which devices they may be
  TFC_TRY(s, tfc_job_journal_rebuild(t->journal, model));
  TFC_TRY(s, model->o->evaluate ? tfc_job_check_given(model) : tfc_job_check_room(model));
  TFC_TRY(s, profile_steps(&p));
  bool any = false;
  for (size_t i = 0; i < c->list.count; i++) any |= c->list.data[i].single && isfinite(c->list.data[i].median_us);
  if (!any) {
    TFC_FAIL(s, p.trouble ? p.trouble_code : TFC_ABORTED, "the step could not be profiled: %s",
             p.trouble ? p.trouble : "no device could run it");
  }
  if (isfinite(model->trace_overhead)) {
    tfc_job_say(t->clock, false, "tracing costs %.1f %% of a step%s", 100 * model->trace_overhead,
                model->trace == TFC_TRACE_MODE_ALTERNATE ? ": traced and untraced blocks alternate"
                : model->trace_overhead > 0.02           ? ", which is no more than the steps vary"
                                                         : "");
  }
  if (model->info->device_count > 1) {
    struct tfc_link_time *links = NULL;
    uint32_t link_count = 0;
    TFC_TRY(s, tfc_measurer_links(t->measurer, moment(t, tfc_job_shares.links), &links, &link_count));
    tfc_job_model_set_links(model, links, link_count);
    for (uint32_t i = 0; i < model->calibration.link_count; i++) {
      const struct tfc_link_time *l = &model->calibration.links[i];
      char a[32], b[32];
      if (i == 0 || i + 1 == model->calibration.link_count || l->bytes == 262144)
        tfc_job_say(t->clock, false, "%s to %s: %s in %s", model->info->devices[l->source].name,
                    model->info->devices[l->target].name, tfc_show_bytes(a, (double)l->bytes),
                    tfc_show_us(b, l->time_us));
    }
  }
out:
  free(p.trouble);
  return s;
}
