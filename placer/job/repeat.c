// What was measured is measured again, minutes apart: how well the simulator orders placements is not to depend on how
// fast the machine was in the one moment of each.
#include <math.h>
#include <stdlib.h>

#include "placer/job/private.h"
#include "runtime/base/random.h"

enum { AT_ONCE = 5 }; // plans that are in memory

struct again {
  struct tfc_job *job;
  const uint32_t *index; // [entry] of known
};

static tfc_status took(void *user, const struct tfc_measured *m) {
  struct again *a = user;
  struct tfc_job_known *k = &a->job->known.data[a->index[m->entry]];
  struct tfc_result r = {0};
  TFC_RETURN_IF_ERROR(tfc_result_from_measured(m, a->job->info->device_count, TFC_LABEL_MEASURED, false, &r));
  bool kept = r.state != TFC_RESULT_OK || !r.steps || tfc_array_push(&k->again_us, 1e-6 * (double)r.value);
  tfc_result_deinit(&r);
  return kept ? NULL : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

static tfc_status measure_some(struct tfc_job *j, const uint32_t *index, uint32_t count) {
  tfc_status s = NULL;
  struct again a = {j, index};
  size_t nodes = j->o->graph->node_count, costs = j->subject->cost_count;
  struct tfc_measure_entry entry[AT_ONCE] = {{0}};
  uint16_t *placement = malloc((count * nodes + 1) * sizeof *placement);
  uint32_t *sequence = malloc((count * costs + 1) * sizeof *sequence);
  if (!placement || !sequence) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < count; i++) {
    entry[i].placement = placement + i * nodes, entry[i].sequence = sequence + i * costs;
    TFC_TRY(s, tfc_job_assign(j, &j->known.data[index[i]], placement + i * nodes, sequence + i * costs,
                              &entry[i].sequence_count));
  }
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = count,
                                    .reference = UINT32_MAX,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .best_us = (double)NAN,
                                    .trace = j->trace};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, took, &a));
out:
  free(placement);
  free(sequence);
  return s;
}

static tfc_status give_pairs(struct tfc_job *j, const uint32_t *index, uint32_t count) {
  if (!(j->out->pairs = calloc(count + 1u, sizeof *j->out->pairs))) goto no_memory;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[index[i]];
    struct tfc_job_pair *pair = &j->out->pairs[j->out->pair_count++];
    pair->predicted_us = k->simulated_us, pair->simulated_us = tfc_job_simulate(j, &k->solution);
    pair->algorithm = tfc_str_dup(tfc_str_from(k->algorithm));
    pair->measured_us = malloc((k->again_us.count + 1) * sizeof *pair->measured_us);
    if (!pair->algorithm || !pair->measured_us) goto no_memory;
    for (; pair->measured_count < k->again_us.count; pair->measured_count++)
      pair->measured_us[pair->measured_count] = k->again_us.data[pair->measured_count];
  }
  return NULL;
no_memory:
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

tfc_status tfc_job_repeat(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_random random;
  uint32_t count = 0, *index = malloc((j->known.count + 1) * sizeof *index);
  if (!index) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  tfc_random_init(&random, j->o->seed + 29);
  for (uint32_t i = 0; i < j->known.count; i++) {
    struct tfc_job_known *k = &j->known.data[i];
    if (k->baseline || k->state != TFC_RESULT_OK || !isfinite(k->median_us)) continue;
    if (!tfc_array_push(&k->again_us, k->median_us)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    index[count++] = i;
  }
  for (uint32_t round = 0; round < j->o->repeats; round++) {
    tfc_job_say(j, false, "measuring %u placements again, %u of %u", count, round + 1, j->o->repeats);
    for (uint32_t i = count; i > 1; i--) {
      uint32_t other = (uint32_t)tfc_random_below(&random, i), kept = index[i - 1];
      index[i - 1] = index[other], index[other] = kept;
    }
    for (uint32_t i = 0; i < count; i += AT_ONCE) {
      if (tfc_job_cancelled(j)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
      TFC_TRY(s, measure_some(j, index + i, count - i < AT_ONCE ? count - i : AT_ONCE));
    }
  }
  TFC_TRY(s, give_pairs(j, index, count));
out:
  free(index);
  return s;
}
