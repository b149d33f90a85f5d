#include "placer/job/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/choice.h"
#include "placer/measure/evaluator.h"
#include "profiler/statistics.h"
#include "profiler/store_rows.h"
#include "runtime/base/units.h"

// Passes the best time and the number of measured candidates to the clock, which shows them with every event.
static void show(struct tfc_job_candidates *c) {
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  tfc_job_clock_show(c->clock, c->episodes, best ? fmin(c->best_seen_us, best->median_us) : (double)NAN);
}

void tfc_job_candidates_init(struct tfc_job_candidates *c, struct tfc_job_clock *clock,
                             const struct tfc_job_model *model) {
  *c = (struct tfc_job_candidates){.clock = clock,
                                   .model = model,
                                   .best = TFC_NONE,
                                   .best_seen_us = INFINITY,
                                   .seen = TFC_NONE,
                                   .unordered.us = (double)NAN};
  show(c);
}

static void candidate_deinit(struct tfc_job_candidate *k) {
  free(k->name);
  free(k->algorithm);
  free(k->note);
  free(k->peak);
  free(k->busy_us);
  free(k->crossing);
  free(k->sequence);
  tfc_solution_deinit(&k->solution);
  tfc_array_free(&k->final_step_us);
  tfc_array_free(&k->final_block_of);
  tfc_array_free(&k->in_flight.us);
  tfc_array_free(&k->in_flight.block);
}

void tfc_job_candidates_clear(struct tfc_job_candidates *c) {
  for (size_t i = 0; i < c->list.count; i++) candidate_deinit(&c->list.data[i]);
  c->list.count = 0, c->best = c->seen = TFC_NONE, c->best_seen_us = INFINITY;
  show(c);
}

void tfc_job_candidates_deinit(struct tfc_job_candidates *c) {
  for (size_t i = 0; i < c->list.count; i++) candidate_deinit(&c->list.data[i]);
  tfc_array_free(&c->list);
}

static double known(double us) {
  return isnan(us) ? 0 : us;
}

// --- Adding ----------------------------------------------------------------------------------------------------------
// The role as text that lives as long as the program.
static const char *role_of(const char *role) {
  return strcmp(role, "candidate") == 0 ? "candidate" : strcmp(role, "heuristic") == 0 ? "heuristic" : "baseline";
}

static uint64_t digest_of(const struct tfc_job_candidates *c, const struct tfc_solution *solution) {
  return solution ? tfc_job_model_digest(c->model, solution->device) : 0;
}

// Adds a candidate with copies of its algorithm and its placement; NULL: it has none. Owns it from then on, also after
// an error. If it has no name, there was no memory for it.
static tfc_status push(struct tfc_job_candidates *c, struct tfc_job_candidate *k, const char *algorithm,
                       const struct tfc_solution *solution, uint32_t *out_index) {
  tfc_status s = NULL;
  k->algorithm = algorithm ? tfc_str_dup(tfc_str_from(algorithm)) : NULL;
  if (!k->name || (algorithm && !k->algorithm)) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (solution) TFC_TRY(s, tfc_solution_copy(&k->solution, solution, c->model->problem));
  if (!tfc_array_push(&c->list, *k)) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (k->episode > c->episodes) c->episodes = k->episode;
  *out_index = (uint32_t)c->list.count - 1;
  show(c);
out:
  if (s) candidate_deinit(k);
  return s;
}

tfc_status tfc_job_candidates_add(struct tfc_job_candidates *c, const char *name, const char *algorithm,
                                  const char *role, const struct tfc_solution *solution, uint32_t *out_index,
                                  bool *out_new) {
  const uint64_t digest = digest_of(c, solution);
  bool rival = strcmp(role, "candidate") != 0;
  for (uint32_t i = 0; i < c->list.count && !rival; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (k->digest != digest || !k->solution.device || isnan(k->median_us)) continue;
    *out_index = i, *out_new = false;
    return NULL;
  }
  struct tfc_job_candidate k = {.role = role_of(role),
                                .baseline = rival,
                                .heuristic = strcmp(role, "heuristic") == 0,
                                .digest = digest,
                                .median_us = (double)NAN,
                                .q1_us = (double)NAN,
                                .q3_us = (double)NAN,
                                .ratio = (double)NAN,
                                .level_us = (double)NAN,
                                .final_us = (double)NAN};
  k.simulated_us = tfc_job_model_simulate(c->model, solution);
  k.prior_us = known(tfc_job_model_prior(c->model, solution));
  k.predicted_us = k.prior_us > 0 ? k.prior_us : k.simulated_us;
  k.learned_us = known(tfc_job_model_predict(c->model, solution, &k.learned_sd));
  k.name = name ? tfc_str_dup(tfc_str_from(name)) : tfc_format("#%zu", c->list.count);
  TFC_RETURN_IF_ERROR(push(c, &k, algorithm, solution, out_index));
  *out_new = true;
  return NULL;
}

tfc_status tfc_job_candidates_add_device(struct tfc_job_candidates *c, const char *device,
                                         const struct tfc_solution *solution, uint32_t *out_index) {
  struct tfc_job_candidate k = {.role = "baseline",
                                .whole = !device,
                                .single = device,
                                .baseline = true,
                                .digest = digest_of(c, solution),
                                .median_us = (double)NAN,
                                .simulated_us = (double)NAN,
                                .predicted_us = (double)NAN,
                                .final_us = (double)NAN};
  k.name = device ? tfc_format("single:%s", device) : tfc_format("whole");
  return push(c, &k, NULL, solution, out_index);
}

tfc_status tfc_job_candidates_restore(struct tfc_job_candidates *c, const struct tfc_store_placement *row,
                                      tfc_result_state state, double level_us, const struct tfc_solution *solution,
                                      uint32_t *out_index) {
  struct tfc_job_candidate k = {.role = role_of(row->role),
                                .whole = strcmp(row->name, "whole") == 0,
                                .single = strncmp(row->name, "single:", 7) == 0,
                                .baseline = strcmp(row->role, "candidate") != 0,
                                .heuristic = strcmp(row->role, "heuristic") == 0,
                                .digest = digest_of(c, solution),
                                .episode = row->episode > 0 ? (uint32_t)row->episode : 0,
                                .state = state,
                                .screened_state = state,
                                .median_us = row->median_us,
                                .q1_us = row->q1_us,
                                .q3_us = row->q3_us,
                                .steps = row->steps,
                                .ratio = row->ratio,
                                .level_us = isnan(level_us) ? row->median_us : level_us,
                                .simulated_us = row->simulated_us,
                                .predicted_us = row->simulated_us,
                                .final_us = (double)NAN};
  k.name = tfc_str_dup(tfc_str_from(row->name));
  return push(c, &k, row->algorithm, solution, out_index);
}

void tfc_job_candidates_rule_out(struct tfc_job_candidates *c, uint32_t index, tfc_result_state state) {
  c->list.data[index].state = state;
}

void tfc_job_candidates_searched(struct tfc_job_candidates *c, uint32_t index,
                                 const struct tfc_search_account *policy) {
  c->list.data[index].policy = *policy;
}

tfc_status tfc_job_candidates_add_again(struct tfc_job_candidates *c, uint32_t index,
                                        const struct tfc_solution *solution, const char *algorithm,
                                        uint32_t *out_index) {
  const struct tfc_job_candidate *k = &c->list.data[index];
  struct tfc_job_candidate again = {.role = "candidate",
                                    .digest = k->digest,
                                    .state = k->state,
                                    .screened_state = k->screened_state,
                                    .code = k->code,
                                    .median_us = (double)NAN,
                                    .q1_us = k->q1_us,
                                    .q3_us = k->q3_us,
                                    .steps = k->steps,
                                    .ratio = k->ratio,
                                    .level_us = k->level_us,
                                    .simulated_us = k->simulated_us,
                                    .predicted_us = k->predicted_us,
                                    .prior_us = k->prior_us,
                                    .learned_us = known(tfc_job_model_predict(c->model, solution, NULL)),
                                    .learned_sd = k->learned_sd,
                                    .final_us = (double)NAN,
                                    .final_q1 = k->final_q1,
                                    .final_q3 = k->final_q3,
                                    .transfers = k->transfers,
                                    .transfer_bytes = k->transfer_bytes};
  again.name = tfc_format("#%zu", c->list.count);
  return push(c, &again, algorithm, solution, out_index);
}

// Sets how many bytes go from each device to each other device in a step, by the plan that ran.
static tfc_status take_crossing(struct tfc_job_candidate *k, const struct tfc_measured *m, uint32_t devices) {
  free(k->crossing);
  k->crossing = NULL;
  if (m->state != TFC_RESULT_OK || k->whole) return NULL;
  if (!(k->crossing = calloc((size_t)devices * devices + 1, sizeof *k->crossing))) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < m->transfer_count; i++) {
    const struct tfc_plan_transfer_row *t = &m->transfers[i];
    if (t->source < devices && t->target < devices) k->crossing[(size_t)t->source * devices + t->target] += t->bytes;
  }
  return NULL;
}

// Stores the steps of the final turns in the candidate: the medians of the blocks that choose the answer, and the steps
// of the other blocks as the result. If GPUs' own records time the traced steps, steps without a trace are kept apart
// from the result.
static tfc_status take_final(struct tfc_job_candidate *k, const struct tfc_measured *m, uint32_t final_from) {
  tfc_status s = NULL;
  double block_us[TFC_JOB_CHOOSE_ROUNDS][64];
  uint32_t block_count[TFC_JOB_CHOOSE_ROUNDS] = {0}, untraced = 0;
  double *us = calloc(m->step_count + 1u, sizeof *us);
  bool recorded = false;
  if (!us) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < m->step_count; i++)
    recorded |= m->by_records && m->steps[i].traced && !m->steps[i].warmup && m->steps[i].block >= final_from;
  for (uint32_t i = 0; i < m->step_count; i++) {
    const struct tfc_measured_step *t = &m->steps[i];
    const double step_us = 1e-3 * (double)t->duration_ns;
    if (t->warmup) continue;
    if (t->block < final_from) {
      if (t->block < TFC_JOB_CHOOSE_ROUNDS && block_count[t->block] < 64)
        block_us[t->block][block_count[t->block]++] = step_us;
    } else if (recorded && !t->traced) {
      us[untraced++] = step_us;
    } else if (!tfc_array_push(&k->final_step_us, step_us) ||
               !tfc_array_push(&k->final_block_of, t->block - final_from)) {
      TFC_TRY(s, tfc_status_no_memory(NULL));
    }
  }
  k->untraced_us = tfc_quartiles_of(us, untraced).median, k->untraced_steps = untraced;
  for (k->choose_count = 0; k->choose_count < TFC_JOB_CHOOSE_ROUNDS && block_count[k->choose_count]; k->choose_count++)
    k->choose_us[k->choose_count] = tfc_quartiles_of(block_us[k->choose_count], block_count[k->choose_count]).median;
  if (!k->final_step_us.count) goto out;
  free(us);
  us = malloc(k->final_step_us.count * sizeof *us);
  if (!us) TFC_TRY(s, tfc_status_no_memory(NULL));
  memcpy(us, k->final_step_us.data, k->final_step_us.count * sizeof *us);
  const struct tfc_quartiles q = tfc_quartiles_of(us, k->final_step_us.count);
  k->final_us = q.median, k->final_q1 = q.q1, k->final_q3 = q.q3, k->final_steps = (uint32_t)k->final_step_us.count;
out:
  free(us);
  return s;
}

void tfc_job_candidates_begin_final(struct tfc_job_candidates *c, uint32_t choosing) {
  c->final_from = choosing;
}

tfc_status tfc_job_candidates_take(struct tfc_job_candidates *c, uint32_t index, const struct tfc_measured *m,
                                   bool final) {
  struct tfc_job_candidate *k = &c->list.data[index];
  tfc_status s = NULL;
  struct tfc_result r = {0};
  uint32_t devices = k->whole ? 1 : c->model->info->device_count;
  TFC_TRY(s, tfc_result_from_measured(m, devices, TFC_LABEL_MEASURED, true, &r));
  bool timed = r.steps > 0;
  double median = timed ? 1e-6 * (double)r.value : (double)NAN, q1 = timed ? 1e-6 * (double)r.q1 : (double)NAN,
         q3 = timed ? 1e-6 * (double)r.q3 : (double)NAN;
  if (final) {
    TFC_TRY(s, take_final(k, m, c->final_from));
  } else {
    k->median_us = median, k->q1_us = q1, k->q3_us = q3, k->steps = r.steps, k->ratio = r.ratio;
    k->level_us = median;
    k->screened_state = r.state;
  }
  k->state = r.state, k->code = m->code;
  k->transfers = r.transfers, k->transfer_bytes = r.transfer_bytes;
  k->in_lanes = m->in_lanes;
  free(k->peak);
  free(k->busy_us);
  k->peak = malloc((devices + 1u) * sizeof *k->peak);
  k->busy_us = malloc((devices + 1u) * sizeof *k->busy_us);
  if (!k->peak || !k->busy_us) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < devices; d++) {
    k->peak[d] = r.memory[d];
    k->busy_us[d] = 1e-6 * (double)r.busy[d];
  }
  k->peak_part = m->variables_only;
  TFC_TRY(s, take_crossing(k, m, devices));
  if (m->message) {
    free(k->note);
    k->note = tfc_str_dup(tfc_str_from(m->message));
  }
  if (!k->baseline && !k->episode) k->episode = ++c->episodes;
out:
  show(c);
  tfc_result_deinit(&r);
  return s;
}

tfc_status tfc_job_candidates_take_in_flight(struct tfc_job_candidates *c, uint32_t index, const struct tfc_measured *m,
                                             uint32_t at_once) {
  tfc_status s = NULL;
  struct tfc_result r = {0};
  struct tfc_job_candidate *k = &c->list.data[index];
  TFC_TRY(s, tfc_result_from_measured(m, c->model->info->device_count, TFC_LABEL_MEASURED, false, &r));
  if (r.state != TFC_RESULT_OK || !r.steps) goto out;
  if (k->in_flight.us.count && k->in_flight.median_us <= 1e-6 * (double)r.value) goto out;
  k->in_flight.us.count = k->in_flight.block.count = 0, k->in_flight.at_once = at_once;
  k->in_flight.median_us = 1e-6 * (double)r.value;
  k->in_flight.q1_us = 1e-6 * (double)r.q1, k->in_flight.q3_us = 1e-6 * (double)r.q3;
  for (uint32_t i = 0; i < m->step_count; i++) {
    if (!tfc_measured_counts(m, &m->steps[i])) continue; // steps one after another warm up first
    if (!tfc_array_push(&k->in_flight.us, 1e-3 * (double)m->steps[i].duration_ns) ||
        !tfc_array_push(&k->in_flight.block, m->steps[i].block))
      TFC_TRY(s, tfc_status_no_memory(NULL));
  }
out:
  tfc_result_deinit(&r);
  return s;
}

tfc_status tfc_job_candidates_take_unordered(struct tfc_job_candidates *c, const struct tfc_measured *m) {
  struct tfc_result r = {0};
  TFC_RETURN_IF_ERROR(tfc_result_from_measured(m, c->model->info->device_count, TFC_LABEL_MEASURED, false, &r));
  if (r.state == TFC_RESULT_OK && r.steps)
    c->unordered =
        (struct tfc_job_unordered){1e-6 * (double)r.value, 1e-6 * (double)r.q1, 1e-6 * (double)r.q3, r.steps};
  tfc_result_deinit(&r);
  return NULL;
}

void tfc_job_candidates_level(struct tfc_job_candidates *c, uint32_t index, double reference_us) {
  struct tfc_job_candidate *k = &c->list.data[index];
  k->level_us = isfinite(k->ratio * reference_us) ? k->ratio * reference_us : k->median_us;
}

tfc_status tfc_job_candidates_keep_sequence(struct tfc_job_candidates *c, uint32_t index, const uint32_t *sequence,
                                            uint32_t count) {
  struct tfc_job_candidate *k = &c->list.data[index];
  if (!c->model->problem->has_limits || k->sequence || k->state != TFC_RESULT_OK) return NULL;
  if (!(k->sequence = malloc((count + 1u) * sizeof *k->sequence))) return tfc_status_no_memory(NULL);
  memcpy(k->sequence, sequence, count * sizeof *sequence);
  k->sequence_count = count;
  return NULL;
}

void tfc_job_candidates_predict(struct tfc_job_candidates *c) {
  for (size_t i = 0; i < c->list.count; i++) {
    struct tfc_job_candidate *k = &c->list.data[i];
    if (k->solution.device && isnan(k->simulated_us)) k->simulated_us = tfc_job_model_simulate(c->model, &k->solution);
  }
}

// --- The incumbent ---------------------------------------------------------------------------------------------------
void tfc_job_candidates_lead(struct tfc_job_candidates *c, uint32_t index) {
  c->best = index;
  show(c);
}

void tfc_job_candidates_consider(struct tfc_job_candidates *c, uint32_t index) {
  const struct tfc_job_candidate *k = &c->list.data[index], *best = tfc_job_candidates_best(c);
  if (!tfc_job_can_answer(k) || (best && !(k->level_us < best->level_us))) return;
  char text[32];
  bool seen = k->median_us >= c->best_seen_us; // false: it is better than its reference, but was measured while the
                                               // machine was slower
  if (!seen) c->best_seen_us = k->median_us, c->seen = index;
  tfc_job_candidates_lead(c, index);
  if (!seen)
    tfc_job_say(c->clock, false, "best so far: %s a step, by %s", tfc_show_us(text, k->median_us),
                k->algorithm ? k->algorithm : k->name);
}

void tfc_job_candidates_confirm(struct tfc_job_candidates *c, uint32_t former, double ratio) {
  if (c->best == TFC_NONE) return;
  // this ratio is from more measurements than the first level
  c->list.data[c->best].level_us = ratio * c->list.data[former].level_us;
  if (ratio > 1) tfc_job_candidates_lead(c, former);
}

// Makes the candidate with the smallest `us` the incumbent, if it can be the answer and is better than the incumbent.
static void choose(struct tfc_job_candidates *c, double (*us)(const struct tfc_job_candidate *)) {
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i], *best = tfc_job_candidates_best(c);
    if (tfc_job_can_answer(k) && (!best || us(k) < us(best))) c->best = i;
  }
  show(c);
}

static double median_of(const struct tfc_job_candidate *k) {
  return k->median_us;
}
static double level_of(const struct tfc_job_candidate *k) {
  return k->level_us;
}
void tfc_job_candidates_choose_by_median(struct tfc_job_candidates *c) {
  choose(c, median_of);
}
void tfc_job_candidates_choose_by_level(struct tfc_job_candidates *c) {
  choose(c, level_of);
}
void tfc_job_candidates_choose_by_final(struct tfc_job_candidates *c) {
  choose(c, tfc_job_final_us);
}

void tfc_job_candidates_choose_finalist(struct tfc_job_candidates *c, const uint32_t *index, uint32_t count) {
  uint32_t turns = 0, leader = TFC_NONE;
  double log_us[TFC_JOB_MOST_FINALISTS * TFC_JOB_CHOOSE_ROUNDS];
  for (uint32_t i = 0; i < count; i++)
    if (c->list.data[index[i]].choose_count > turns) turns = c->list.data[index[i]].choose_count;
  // Chooses among the candidates that have a time from the final run: in that run the batch itself chose one, and
  // measured it to the end. If there is none, chooses among all.
  for (int measured = 1; measured >= 0 && leader == TFC_NONE; measured--) {
    for (uint32_t i = 0; i < count && i < TFC_JOB_MOST_FINALISTS; i++) {
      const struct tfc_job_candidate *k = &c->list.data[index[i]];
      const bool fits = tfc_job_can_answer(k) && (!measured || isfinite(k->final_us));
      for (uint32_t t = 0; t < turns; t++)
        log_us[i * TFC_JOB_CHOOSE_ROUNDS + t] = fits && t < k->choose_count ? log(k->choose_us[t]) : (double)NAN;
    }
    leader = tfc_choice_leader(log_us, count, TFC_JOB_CHOOSE_ROUNDS, turns);
  }
  if (leader != TFC_NONE) c->best = index[leader];
  show(c);
}

void tfc_job_candidates_simulate(struct tfc_job_candidates *c) {
  for (size_t i = 0; i < c->list.count; i++) {
    struct tfc_job_candidate *k = &c->list.data[i];
    if (k->solution.device && !k->in_flight.us.count) k->simulated_us = tfc_job_model_simulate(c->model, &k->solution);
  }
}

bool tfc_job_candidates_choose_by_load(struct tfc_job_candidates *c, uint32_t *out_single) {
  bool measured = false;
  *out_single = TFC_NONE;
  for (uint32_t i = 0; i < c->list.count; i++)
    measured |= tfc_job_can_answer(&c->list.data[i]) && c->list.data[i].in_flight.us.count;
  tfc_job_candidates_simulate(c); // with the costs as they are at the end
  c->best = TFC_NONE;
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    const double us = tfc_job_load_us(k);
    if (!tfc_job_can_answer(k) || (measured && !k->in_flight.us.count) || isnan(us)) continue;
    if (c->best == TFC_NONE || !(tfc_job_load_us(&c->list.data[c->best]) <= us)) c->best = i;
    if (k->single && (*out_single == TFC_NONE || us < tfc_job_load_us(&c->list.data[*out_single]))) *out_single = i;
  }
  show(c);
  return measured;
}

// --- Facts about candidates ------------------------------------------------------------------------------------------
const struct tfc_job_candidate *tfc_job_candidates_best(const struct tfc_job_candidates *c) {
  return c->best == TFC_NONE ? NULL : &c->list.data[c->best];
}
bool tfc_job_can_answer(const struct tfc_job_candidate *k) {
  return k->solution.device && k->state == TFC_RESULT_OK && isfinite(k->median_us);
}
double tfc_job_final_us(const struct tfc_job_candidate *k) {
  return isfinite(k->final_us) ? k->final_us : k->median_us;
}
double tfc_job_choose_us(const struct tfc_job_candidate *k) {
  double sum = 0;
  for (uint32_t t = 0; t < k->choose_count; t++) sum += log(k->choose_us[t]);
  return k->choose_count ? exp(sum / k->choose_count) : (double)NAN;
}
double tfc_job_load_us(const struct tfc_job_candidate *k) {
  return k->in_flight.us.count ? k->in_flight.median_us : k->simulated_us;
}
