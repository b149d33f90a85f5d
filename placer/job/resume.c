#include "placer/job/resume.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/store_read.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"

// --- Checking that the run is of the same graph and devices ----------------------------------------------------------
struct checking {
  const struct tfc_job_options *o;
  const char *sha256;
  int64_t run;
};
static tfc_status check_run(void *user, const struct tfc_store_run *r, const char *state) {
  const struct checking *c = user;
  const char *asked = tfc_objective_name(c->o->request.objective);
  if (strcmp(state, "done") == 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld is done: there is nothing to go on with", (long long)c->run);
  if (!r->graph_sha256 || strcmp(r->graph_sha256, c->sha256) != 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld is about another graph, %s as it was then",
                           (long long)c->run, r->graph);
  if (strcmp(r->objective, asked) != 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld has the objective %s, not %s", (long long)c->run,
                           r->objective, asked);
  return NULL;
}

static void describe_device(struct tfc_text *text, const char *name, uint32_t cores, const char *math) {
  const bool has_math = math && math[0];
  tfc_text_printf(text, "%s%s (%u core%s%s%s)", text->size ? ", " : "", name, cores, cores == 1 ? "" : "s",
                  has_math ? ", products in " : "", has_math ? math : "");
}

static tfc_status describe_row(void *user, const struct tfc_store_device *d) {
  if (strcmp(d->name, "whole") != 0) describe_device(user, d->name, d->cores, d->math);
  return NULL;
}

static tfc_status check_devices(struct tfc_store *store, const struct tfc_measure_info *info, int64_t run) {
  tfc_status s = NULL;
  struct tfc_text then = {0}, now = {0};
  TFC_TRY(s, tfc_store_read_devices(store, run, describe_row, &then));
  for (uint32_t d = 0; d < info->device_count; d++)
    describe_device(&now, info->devices[d].name, info->devices[d].cores, info->devices[d].math);
  if (then.failed || now.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (then.size && strcmp(then.data, now.data) != 0) // empty: the run was interrupted before it stored its devices
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld measured on %s; it cannot go on with %s", (long long)run, then.data,
             now.data);
out:
  tfc_text_deinit(&then);
  tfc_text_deinit(&now);
  return s;
}

// Times that were measured with one execution mode are not valid for another one. It is only a warning, because the
// user may want the change.
static void compare_execution(const struct tfc_job_options *o, const struct tfc_job_clock *clock,
                              struct tfc_store *store, int64_t run) {
  struct tfc_text text = {0};
  struct tfc_execution then = {0};
  tfc_status s = tfc_store_get_state(store, run, "execution", &text);
  if (!s) s = tfc_execution_parse((tfc_str){text.data, text.size}, &then);
  if (!s && !tfc_execution_alike(&then, &o->execution))
    tfc_job_say(clock, true, "run %lld began with other flags (%s): what it measured may take another time now",
                (long long)run, text.size ? text.data : "the defaults");
  tfc_status_free(s);
  tfc_execution_deinit(&then);
  tfc_text_deinit(&text);
}

// --- The model -------------------------------------------------------------------------------------------------------
static tfc_status take_device(void *user, const struct tfc_store_device *d) {
  struct tfc_job_model *m = user;
  if (d->device_id >= m->info->device_count || !d->slowdown) return NULL;
  const char *text = d->slowdown;
  tfc_job_model_set_dispatch(m, d->device_id, isfinite(d->dispatch_us) ? d->dispatch_us : 0);
  uint32_t n = 1;
  for (char *end; n <= m->info->device_count && *text; text = *end ? end + 1 : end, n++) {
    while (*text == '[' || *text == ' ') text++;
    tfc_job_model_set_slowdown(m, d->device_id, n, strtod(text, &end));
  }
  return NULL;
}

static tfc_status take_link(void *user, const struct tfc_store_link *l) {
  struct tfc_job_model *m = user;
  if (l->source >= m->info->device_count || l->target >= m->info->device_count) return NULL;
  return tfc_job_model_add_link(m, &(struct tfc_link_time){l->source, l->target, l->bytes, l->time_us, l->samples});
}

static tfc_status take_cost(void *user, const struct tfc_store_cost *cost) {
  struct tfc_job_model *m = user;
  for (uint32_t k = 0; k < m->subject->kind_count; k++) {
    if (!tfc_str_is(m->subject->kinds[k], cost->kind)) continue;
    TFC_RETURN_IF_ERROR(tfc_job_model_add_cost(m, cost->node_id, k, cost->median_us, cost->fastest_us));
  }
  return NULL;
}

// --- The candidates --------------------------------------------------------------------------------------------------
// The state "levels" of the run (journal.h)
struct levels {
  int64_t incumbent;         // the id of its placement; -1: none
  TFC_ARRAY(int64_t) id;     // of the placements
  TFC_ARRAY(double) us;      // the level of each
  TFC_ARRAY(uint32_t) newer; // candidates, by index, that were stored later than the levels
  uint32_t at;               // the incumbent among the candidates; TFC_NONE: none
};
static tfc_status read_levels(struct tfc_store *store, int64_t run, struct levels *l) {
  struct tfc_text text = {0};
  l->incumbent = -1, l->at = TFC_NONE;
  tfc_status s = tfc_store_get_state(store, run, "levels", &text);
  if (s) { // the run ended before it stored them, or is of an older version
    tfc_status_free(s);
    tfc_text_deinit(&text);
    return NULL;
  }
  char *at = NULL;
  l->incumbent = strtoll(text.data, &at, 10);
  for (char *middle = NULL, *end = NULL; *at == '\n'; at = end) {
    const int64_t id = strtoll(at, &middle, 10);
    const double us = strtod(middle, &end);
    if (middle == at || end == middle) break; // not what tfc has written
    if (tfc_array_push(&l->id, id) && tfc_array_push(&l->us, us)) continue;
    tfc_text_deinit(&text);
    return tfc_status_no_memory("resuming a run");
  }
  tfc_text_deinit(&text);
  return NULL;
}

static const double *level_of(const struct levels *l, int64_t placement_id) {
  for (size_t i = 0; i < l->id.count && i < l->us.count; i++)
    if (l->id.data[i] == placement_id) return &l->us.data[i];
  return NULL;
}

// The incumbent is the one that the run had, not the one with the shortest median: measurements in turns with others
// may have shown that this median was luck. Candidates that were stored after the levels (the process was killed) are
// compared with it.
static void choose_incumbent(const struct levels *l, struct tfc_job_candidates *c) {
  if (l->at == TFC_NONE || !tfc_job_can_answer(&c->list.data[l->at])) {
    tfc_job_candidates_choose_by_level(c);
    return;
  }
  tfc_job_candidates_lead(c, l->at);
  for (size_t i = 0; i < l->newer.count; i++) tfc_job_candidates_consider(c, l->newer.data[i]);
}

static void levels_deinit(struct levels *l) {
  tfc_array_free(&l->id);
  tfc_array_free(&l->us);
  tfc_array_free(&l->newer);
}

struct taking {
  const struct tfc_job_model *model;
  struct tfc_job_candidates *candidates;
  struct tfc_job_journal *journal;
  // the candidate whose rows are being read
  struct tfc_solution solution;
  tfc_result_state state;
  uint32_t seen; // units of it that were read so far
  struct levels levels;
};
static tfc_status take_unit(void *user, uint32_t unit, uint32_t device) {
  struct taking *t = user;
  if (unit < t->model->problem->unit_count && device < t->model->problem->device_count)
    t->solution.device[unit] = (tfc_device_id)device, t->seen++;
  return NULL;
}

static tfc_status judge_memory(void *user, const struct tfc_store_memory *row) {
  struct taking *t = user;
  if (row->device_id < t->model->bare->device_count && row->peak > t->model->bare->devices[row->device_id].memory)
    t->state = TFC_RESULT_NO_FIT;
  return NULL;
}

// Limits and pins may have changed since the candidate was measured: if it violates those of this run, it cannot be the
// answer.
static tfc_status judge_again(struct taking *t, int64_t key) {
  if (t->state != TFC_RESULT_OK) return NULL;
  for (uint32_t u = 0; t->solution.device && u < t->model->problem->unit_count; u++)
    if (!tfc_problem_allows(t->model->problem, u, t->solution.device[u])) t->state = TFC_RESULT_ILLEGAL;
  return tfc_store_read_memory(t->journal->store, key, judge_memory, t);
}

static tfc_status take_placement(void *user, const struct tfc_store_placement_read *p) {
  tfc_status s = NULL;
  struct taking *t = user;
  const struct tfc_store_placement *row = &p->row;
  const double *level = level_of(&t->levels, row->placement_id);
  uint32_t index;
  tfc_result_state stored = TFC_RESULT_OK;
  for (int i = TFC_RESULT_OK; i <= TFC_RESULT_FAILED; i++)
    if (strcmp(row->state, tfc_job_state_name((tfc_result_state)i)) == 0) stored = (tfc_result_state)i;
  t->seen = 0, t->state = stored;
  if (strcmp(row->name, "whole") != 0) {
    TFC_TRY(s, tfc_solution_init(&t->solution, t->model->problem));
    TFC_TRY(s, tfc_store_read_assignment(t->journal->store, p->key, take_unit, t));
    if (t->seen != t->model->problem->unit_count) tfc_solution_deinit(&t->solution);
    TFC_TRY(s, judge_again(t, p->key));
  }
  TFC_TRY(s, tfc_job_candidates_restore(t->candidates, row, stored, level ? *level : (double)NAN,
                                        t->solution.device ? &t->solution : NULL, &index));
  if (t->state != stored) tfc_job_candidates_rule_out(t->candidates, index, t->state);
  if (row->placement_id == t->levels.incumbent) t->levels.at = index;
  if (!level && !tfc_array_push(&t->levels.newer, index)) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_job_journal_know(t->journal, index, p));
out:
  tfc_solution_deinit(&t->solution);
  return s;
}

tfc_status tfc_job_resume(const struct tfc_job_options *o, const char *sha256, struct tfc_job_clock *clock,
                          struct tfc_job_model *model, struct tfc_job_candidates *candidates,
                          struct tfc_job_journal *journal) {
  tfc_status s = NULL;
  struct tfc_text progress = {0};
  struct tfc_store *store = journal->store;
  struct taking taking = {.model = model, .candidates = candidates, .journal = journal};
  double before_s = 0, overhead = (double)NAN, least = (double)NAN;
  int64_t run = 0;
  TFC_TRY(s, tfc_store_find_interrupted(store, o->resume, "progress", &run));
  TFC_TRY(s, tfc_store_read_run(store, run, check_run, &(struct checking){o, sha256, run}));
  TFC_TRY(s, check_devices(store, model->info, run));
  compare_execution(o, clock, store, run);
  // From here on this job continues the run; a run that was refused before has not been changed.
  tfc_job_journal_resume(journal, run);
  s = tfc_store_get_state(store, run, "progress", &progress);
  if (!s) sscanf(progress.data, "%lf %lf %lf", &before_s, &overhead, &least);
  tfc_job_clock_resume(clock, before_s);
  tfc_status_free(s), s = NULL;
  tfc_job_model_set_trace_overhead(model, overhead, least);
  TFC_TRY(s, tfc_store_read_devices(store, run, take_device, model));
  TFC_TRY(s, tfc_store_read_links(store, run, take_link, model));
  TFC_TRY(s, tfc_store_read_costs(store, run, take_cost, model));
  TFC_TRY(s, tfc_job_journal_rebuild(journal, model));
  TFC_TRY(s, read_levels(store, run, &taking.levels));
  TFC_TRY(s, tfc_store_read_placements(store, run, take_placement, &taking));
  choose_incumbent(&taking.levels, candidates);
  tfc_job_say(clock, false, "going on with run %lld after %.0f s and %u measured placements", (long long)run,
              clock->before_s, candidates->episodes);
out:
  levels_deinit(&taking.levels);
  tfc_text_deinit(&progress);
  return s;
}

// --- What was learned ------------------------------------------------------------------------------------------------
static tfc_status take_proposer(void *user, const struct tfc_store_proposer *row) {
  return tfc_job_proposers_restore(user, row);
}

tfc_status tfc_job_resume_learning(const struct tfc_job_clock *clock, struct tfc_job_model *m,
                                   const struct tfc_job_candidates *c, struct tfc_job_journal *j,
                                   struct tfc_job_proposers *proposers) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  unsigned long long evaluations = 0;
  TFC_TRY(s, tfc_store_read_proposers(j->store, j->run, take_proposer, proposers));
  s = tfc_store_get_state(j->store, j->run, "evaluations", &text);
  if (!s && sscanf(text.data, "%llu", &evaluations) == 1) tfc_job_proposers_simulated(proposers, evaluations);
  tfc_status_free(s), s = NULL;
  tfc_text_deinit(&text);
  if (!m->learned) goto out;
  s = tfc_store_get_state(j->store, j->run, "learned", &text);
  if (!s) s = tfc_job_model_load_learned(m, (tfc_str){text.data, text.size});
  if (s && tfc_status_code(s) == TFC_INVALID_ARGUMENT)
    tfc_job_say(clock, true, "what run %lld had learned of operations is lost: %s", (long long)j->run,
                tfc_status_message(s));
  tfc_status_free(s), s = NULL;
  for (size_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (k->solution.device && k->state == TFC_RESULT_OK && k->median_us > 0)
      TFC_TRY(s, tfc_job_model_learn_step(m, &k->solution, k->median_us, NULL));
  }
  TFC_TRY(s, tfc_job_model_rebuild(m));
out:
  tfc_text_deinit(&text);
  return s;
}
