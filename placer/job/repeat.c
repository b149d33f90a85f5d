// Measures placements again, minutes later. Otherwise a benchmark of the simulator would depend on how fast the machine
// was at the moment when each placement was first measured.
#include "placer/job/repeat.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/entries.h"
#include "placer/measure/evaluator.h"
#include "runtime/base/random.h"

enum { AT_ONCE = 5 }; // so many plans are in memory at the same time

struct again {
  const struct tfc_measure_info *info;
  struct tfc_job_pair *const *pairs; // [entry]
};

static tfc_status took(void *user, const struct tfc_measured *m) {
  struct again *a = user;
  struct tfc_job_pair *pair = a->pairs[m->entry];
  struct tfc_result r = {0};
  TFC_RETURN_IF_ERROR(tfc_result_from_measured(m, a->info->device_count, TFC_LABEL_MEASURED, false, &r));
  if (r.state == TFC_RESULT_OK && r.steps) pair->measured_us[pair->measured_count++] = 1e-6 * (double)r.value;
  tfc_result_deinit(&r);
  return NULL;
}

static tfc_status measure_some(const struct tfc_job_candidates *c, struct tfc_measurer *measurer,
                               struct tfc_job_outcome *out, const uint32_t *order, const uint32_t *index,
                               uint32_t count) {
  tfc_status s = NULL;
  struct tfc_job_entries entries = {0};
  struct tfc_job_pair *pairs[AT_ONCE] = {NULL};
  uint32_t known[AT_ONCE];
  for (uint32_t i = 0; i < count; i++) known[i] = index[order[i]], pairs[i] = &out->pairs[order[i]];
  TFC_TRY(s, tfc_job_entries_make(c, known, count, TFC_NONE, &entries));
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = count,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .best_us = (double)NAN,
                                    .trace = c->model->trace};
  TFC_TRY(s, tfc_measurer_run(measurer, &batch, took, &(struct again){c->model->info, pairs}));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}

// Makes a pair for each placement that searches or random draws had proposed, with its first measurement. index: the
// candidate of each pair.
static tfc_status begin_pairs(const struct tfc_job_candidates *c, struct tfc_job_outcome *out, uint32_t *index) {
  if (!(out->pairs = calloc(c->list.count + 1, sizeof *out->pairs))) goto no_memory;
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (k->baseline || k->state != TFC_RESULT_OK || !isfinite(k->median_us)) continue;
    index[out->pair_count] = i;
    struct tfc_job_pair *pair = &out->pairs[out->pair_count++];
    *pair = (struct tfc_job_pair){.algorithm = tfc_str_dup(tfc_str_from(k->algorithm)),
                                  .prior_us = k->prior_us > 0 ? k->prior_us : (double)NAN,
                                  .learned_us = k->learned_us > 0 ? k->learned_us : (double)NAN,
                                  .predicted_us = k->simulated_us,
                                  .simulated_us = tfc_job_model_simulate(c->model, &k->solution),
                                  .measured_us = malloc((c->model->o->repeats + 1u) * sizeof *pair->measured_us)};
    if (!pair->algorithm || !pair->measured_us) goto no_memory;
    pair->measured_us[pair->measured_count++] = k->median_us;
  }
  return NULL;
no_memory:
  return tfc_status_no_memory(NULL);
}

tfc_status tfc_job_repeat(const struct tfc_job_candidates *c, struct tfc_measurer *measurer,
                          struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  struct tfc_random random;
  uint32_t *index = malloc((c->list.count + 1) * sizeof *index);
  uint32_t *order = malloc((c->list.count + 1) * sizeof *order);
  if (!index || !order) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, begin_pairs(c, out, index));
  tfc_random_init(&random, (uint64_t)c->model->o->execution.seed + 29);
  const uint32_t count = out->pair_count;
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t round = 0; round < c->model->o->repeats; round++) {
    tfc_job_say(c->clock, false, "measuring %u placements again, %u of %u", count, round + 1, c->model->o->repeats);
    for (uint32_t i = count; i > 1; i--) {
      uint32_t other = (uint32_t)tfc_random_below(&random, i), kept = order[i - 1];
      order[i - 1] = order[other], order[other] = kept;
    }
    for (uint32_t i = 0; i < count; i += AT_ONCE) {
      if (tfc_job_cancelled(c->clock)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
      TFC_TRY(s, measure_some(c, measurer, out, order + i, index, count - i < AT_ONCE ? count - i : AT_ONCE));
    }
  }
out:
  free(index);
  free(order);
  return s;
}
