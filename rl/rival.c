#include "rl/rival.h"

#include <math.h>
#include <stdlib.h>

tfc_status tfc_rival_init(struct tfc_rival *r, const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, uint32_t batch, struct tfc_solution *out) {
  *r = (struct tfc_rival){.problem = problem,
                          .evaluator = evaluator,
                          .budget = budget,
                          .out = out,
                          .best = TFC_SCORE_NONE,
                          .samples = calloc(batch, sizeof *r->samples),
                          .results = calloc(batch, sizeof *r->results),
                          .cost = calloc(batch, sizeof *r->cost),
                          .batch = batch,
                          .limit = budget->evaluations     ? budget->evaluations
                                   : budget->deadline <= 0 ? 2000
                                                           : UINT64_MAX,
                          .worst = 1};
  if (!r->samples || !r->results || !r->cost) return tfc_status_no_memory(NULL);
  tfc_random_init(&r->random, budget->seed);
  for (uint32_t i = 0; i < batch; i++) TFC_RETURN_IF_ERROR(tfc_solution_init(&r->samples[i], problem));
  return NULL;
}

void tfc_rival_deinit(struct tfc_rival *r) {
  for (uint32_t i = 0; i < r->batch; i++) {
    if (r->samples) tfc_solution_deinit(&r->samples[i]);
    if (r->results) tfc_result_deinit(&r->results[i]);
  }
  free(r->samples), free(r->results), free(r->cost);
  *r = (struct tfc_rival){0};
}

uint32_t tfc_rival_room(const struct tfc_rival *r) {
  if (tfc_budget_over(r->budget) || r->used >= r->limit) return 0;
  return r->limit - r->used < r->batch ? (uint32_t)(r->limit - r->used) : r->batch;
}

tfc_status tfc_rival_evaluate(struct tfc_rival *r, uint32_t count) {
  const struct tfc_problem *p = r->problem;
  const struct tfc_rules rules = {.cutoff = TFC_TIME_MAX, .warmup = 1, .steps = 5};
  const double scale = fmax(1, (double)p->total_fastest);
  if (p->has_missing_links || p->has_limits)
    for (uint32_t i = 0; i < count; i++) tfc_local_repair(p, &r->random, r->samples[i].device, NULL);
  TFC_RETURN_IF_ERROR(tfc_evaluate(r->evaluator, r->samples, count, &rules, r->results));
  r->used += count;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_result *x = &r->results[i];
    const bool timed = x->value > 0 && x->value < TFC_TIME_MAX;
    const struct tfc_score score = {x->excess, x->value};
    r->cost[i] = timed ? (double)x->value / scale : r->worst;
    if (x->state == TFC_RESULT_OK || x->state == TFC_RESULT_CUT) r->worst = fmax(r->worst, r->cost[i]);
    if (x->state != TFC_RESULT_OK && x->state != TFC_RESULT_CUT) r->cost[i] = fmax(r->cost[i], 2 * r->worst);
    if (!timed || (x->state != TFC_RESULT_OK && x->state != TFC_RESULT_NO_FIT)) continue;
    if (!tfc_score_better(score, r->best)) continue;
    r->best = score;
    tfc_budget_found(r->budget, score);
    TFC_RETURN_IF_ERROR(tfc_solution_copy(r->out, &r->samples[i], p));
  }
  return NULL;
}

tfc_status tfc_rival_end(const struct tfc_rival *r, const char *name, uint64_t *out_evaluations) {
  *out_evaluations += r->used;
  if (r->best.value != TFC_TIME_MAX) return NULL;
  return tfc_status_make(TFC_FAILED_PRECONDITION, "%s: none of %llu samples could run", name,
                         (unsigned long long)r->used);
}

uint32_t tfc_rival_draw(struct tfc_random *random, const float *log_p, uint32_t count) {
  double u = tfc_random_unit(random);
  uint32_t last = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double p = exp((double)log_p[i]);
    if (p > 1e-20) last = i;
    if ((u -= p) < 0) return i;
  }
  return last;
}

tfc_device_id tfc_rival_allowed(const struct tfc_problem *p, uint32_t unit, uint32_t device) {
  while (!tfc_problem_allows(p, unit, device)) device = (device + 1) % p->device_count;
  return (tfc_device_id)device;
}

int64_t tfc_rival_fastest(const struct tfc_problem *p, uint32_t unit) {
  int64_t best = TFC_TIME_MAX;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (tfc_problem_allows(p, unit, d) && tfc_problem_unit_time(p, unit, d) < best)
      best = tfc_problem_unit_time(p, unit, d);
  return best == TFC_TIME_MAX ? 0 : best;
}

void tfc_rival_facts(const struct tfc_problem *p, float *out) {
  const struct tfc_cost_graph *g = p->graph;
  double longest = 1;
  for (uint32_t n = 0; n < p->node_count; n++) longest = fmax(longest, (double)p->remaining[n]);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    float *f = out + (size_t)u * TFC_RIVAL_FACTS;
    double sent = 0, needed = 0, remaining = 0, rank = 0;
    for (uint32_t k = p->first_net[u]; k < p->first_net[u + 1]; k++) sent += (double)g->bytes[p->net_tensor[k]];
    for (uint32_t k = p->first_need[u]; k < p->first_need[u + 1]; k++)
      needed += (double)g->bytes[p->net_tensor[p->need[k]]];
    for (uint32_t k = p->first_member[u]; k < p->first_member[u + 1]; k++) {
      remaining = fmax(remaining, (double)p->remaining[p->member[k]]);
      rank += (double)p->rank[p->member[k]] / (p->first_member[u + 1] - p->first_member[u]);
    }
    f[0] = (float)(log1p(1e-6 * (double)tfc_rival_fastest(p, u)) / 10);
    f[1] = (float)(log1p(sent) / 20);
    f[2] = (float)(log1p(needed) / 20);
    f[3] = (float)(log1p((double)p->unit_memory[u]) / 20);
    f[4] = (float)(remaining / longest);
    f[5] = (float)(rank / (p->node_count + 1.0));
    f[6] = (float)(log1p(p->first_need[u + 1] - p->first_need[u]) / 5);
  }
}
