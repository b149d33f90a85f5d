// Readings: the step times that the user's program reports, corrected for how fast its machine was at that moment. The
// reference, the best of the rivals, is measured in every batch, so a candidate's ratio to it is free of drift. The
// incumbent is measured again with each batch; otherwise one lucky reading could keep it the best.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/answer.h"
#include "placer/elsewhere/readings.h"
#include "placer/elsewhere/record.h"
#include "placer/elsewhere/resume.h"

static void average(struct tfc_elsewhere_known *k, double log_us) {
  k->log_us = k->readings ? k->log_us + (log_us - k->log_us) / (k->readings + 1.0) : log_us;
  k->readings++;
}

// Converts the trace's names to numbers; rows with names that are not in the problem are skipped.
static tfc_status learn(struct tfc_elsewhere *r, const struct tfc_solution *candidate,
                        const struct tfc_command_answer *a, double median_us, double scale) {
  tfc_status s = NULL;
  const struct tfc_cost_graph *g = r->problem->graph;
  struct tfc_learned_trace trace = {0};
  struct tfc_learned_operation *operations = malloc((a->operations.count + 1) * sizeof *operations);
  struct tfc_learned_transfer *transfers = malloc((a->transfers.count + 1) * sizeof *transfers);
  if (!operations || !transfers) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = 0; i < a->operations.count; i++) {
    const struct tfc_command_operation *x = &a->operations.data[i];
    const uint64_t *node = tfc_strmap_get(&r->node_of, x->node), *device = tfc_strmap_get(&r->device_of, x->device);
    if (!node || !device || candidate->device[r->problem->unit[*node]] != *device) continue;
    operations[trace.operation_count++] =
        (struct tfc_learned_operation){(uint32_t)*node, (uint32_t)*device, x->start_us, x->time_us};
  }
  for (size_t i = 0; i < a->transfers.count; i++) {
    const struct tfc_command_transfer *x = &a->transfers.data[i];
    const uint64_t *node = tfc_strmap_get(&r->node_of, x->node), *from = tfc_strmap_get(&r->device_of, x->from);
    const uint64_t *to = tfc_strmap_get(&r->device_of, x->to);
    for (uint32_t t = node && from && to ? g->first_tensor[*node] : 0;
         node && from && to && t < g->first_tensor[*node + 1]; t++)
      if (g->output[t] == x->output && *from != *to) {
        transfers[trace.transfer_count++] =
            (struct tfc_learned_transfer){t, (uint32_t)*from, (uint32_t)*to, x->start_us, x->time_us};
        break;
      }
  }
  trace.operations = operations, trace.transfers = transfers;
  TFC_TRY(s, tfc_learned_add(r->learned, candidate, median_us, scale, trace.operation_count ? &trace : NULL));
out:
  free(operations);
  free(transfers);
  return s;
}

tfc_status tfc_elsewhere_observe(void *user, uint32_t index, const struct tfc_solution *candidate,
                                 const struct tfc_command_answer *a, const struct tfc_result *result) {
  struct tfc_elsewhere *r = user;
  const bool is_reference = index == TFC_NONE;
  struct tfc_elsewhere_known *k = &r->known.data[is_reference ? r->reference : r->batch[index]];
  const double us = result->state == TFC_RESULT_OK ? 1e-6 * (double)result->value : (double)NAN;
  r->reading_s = r->reading_s > 0 ? 0.8 * r->reading_s + 0.2 * result->cost_seconds : result->cost_seconds;
  if (is_reference) {
    TFC_RETURN_IF_ERROR(tfc_elsewhere_store(r, k, a, r->phase));
    // To remove the drift, the model learns each reading of the reference scaled to the reference's mean level.
    if (r->learned && us > 0 && isfinite(k->log_us))
      TFC_RETURN_IF_ERROR(learn(r, candidate, a, us, exp(k->log_us) / us));
    return NULL;
  }
  const struct tfc_elsewhere_known *reference = r->reference == TFC_NONE ? NULL : &r->known.data[r->reference];
  const bool is_first = k->key == 0;
  k->state = result->state, k->seconds = result->cost_seconds;
  free(k->note);
  k->note = result->message ? tfc_str_dup(tfc_str_from(result->message)) : NULL;
  if (us > 0) {
    if (is_first) {
      k->median_us = us, k->q1_us = 1e-6 * (double)result->q1, k->q3_us = 1e-6 * (double)result->q3;
      k->steps = result->steps, k->ratio = result->ratio;
    }
    average(k, isfinite(result->ratio) && reference && isfinite(reference->log_us)
                   ? log(result->ratio) + reference->log_us
                   : log(us));
  }
  if (!k->baseline && is_first) r->episodes++;
  TFC_RETURN_IF_ERROR(tfc_elsewhere_store(r, k, a, r->phase));
  if (r->learned && us > 0) TFC_RETURN_IF_ERROR(learn(r, candidate, a, us, exp(k->log_us) / us));
  return NULL;
}

tfc_status tfc_elsewhere_read(struct tfc_elsewhere *r, const uint32_t *list, uint32_t count) {
  tfc_status s = NULL;
  struct tfc_result *results = calloc(count + 1u, sizeof *results);
  struct tfc_solution *candidates = calloc(count + 1u, sizeof *candidates);
  struct tfc_solution reference = {0};
  const uint32_t former = r->best;
  if (!results || !candidates) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++) candidates[i] = r->known.data[list[i]].solution;
  r->batch = list;
  struct tfc_rules rules = {.cutoff = TFC_TIME_MAX, .warmup = 1, .steps = 5};
  if (r->reference != TFC_NONE) reference = r->known.data[r->reference].solution, rules.reference = &reference;
  TFC_TRY(s, tfc_evaluate(r->evaluator, candidates, count, &rules, results));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[list[i]];
    if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL)
      tfc_elsewhere_say(r, true, "%s was not measured: %s", k->name, k->note ? k->note : "no reason given");
  }
  tfc_elsewhere_choose(r);
  if (r->best != former && !r->known.data[r->best].baseline) r->known.data[r->best].won = true;
  if (r->reference == TFC_NONE) r->reference = r->best;
  TFC_TRY(s, tfc_elsewhere_keep(r));
  if (r->best != former) TFC_TRY(s, tfc_elsewhere_tell_best(r));
out:
  for (uint32_t i = 0; i < count && results; i++) tfc_result_deinit(&results[i]);
  free(results);
  free(candidates);
  return s;
}
