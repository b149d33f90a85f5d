#include "placer/job/table.h"

#include <math.h>
#include <stdlib.h>

#include "profiler/statistics.h"

enum { BOOTSTRAPS = 2000 };

struct side { // the steps of one placement in order, and the block of each
  const double *us;
  const uint32_t *block;
  size_t count;
};
static struct side final_run(const struct tfc_job_candidate *k) {
  return (struct side){k->final_step_us.data, k->final_block_of.data, k->final_step_us.count};
}
static struct side in_flight(const struct tfc_job_candidate *k) {
  return (struct side){k->in_flight.us.data, k->in_flight.block.data, k->in_flight.us.count};
}

static uint32_t fewer(struct side a, struct side b) {
  return (uint32_t)(a.count < b.count ? a.count : b.count);
}

// Computes median(a) / median(b) over blocks that were run in turns.
static tfc_status compare(struct side a, struct side b, uint64_t seed, struct tfc_interval *out) {
  struct tfc_block_pair pairs[TFC_JOB_FINAL_ROUNDS] = {0};
  const struct side sides[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < sides[i].count; k++) {
      uint32_t block = sides[i].block[k];
      if (block >= TFC_JOB_FINAL_ROUNDS) continue;
      const double *at = &sides[i].us[k];
      if (i == 0 && pairs[block].a_count++ == 0) pairs[block].a = at;
      if (i == 1 && pairs[block].b_count++ == 0) pairs[block].b = at;
    }
  }
  uint32_t count = 0;
  while (count < TFC_JOB_FINAL_ROUNDS && pairs[count].a_count && pairs[count].b_count) count++;
  return tfc_bootstrap_ratio(pairs, count, BOOTSTRAPS, seed, out);
}

tfc_status tfc_job_table_add(const struct tfc_job_candidates *c, const struct tfc_job_candidate *k, const char *name,
                             const char *kind, const struct tfc_job_candidate *single, struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_options *o = c->model->o;
  struct tfc_job_row *rows = realloc(out->rows, (out->row_count + 1) * sizeof *rows);
  if (!rows) return tfc_status_no_memory(NULL);
  out->rows = rows;
  struct tfc_job_row r = {.kind = kind,
                          .state = k->state,
                          .modelled = isnan(k->median_us) && !k->note,
                          .median_us = tfc_job_final_us(k),
                          .q1_us = isfinite(k->final_us) ? k->final_q1 : k->q1_us,
                          .q3_us = isfinite(k->final_us) ? k->final_q3 : k->q3_us,
                          .steps = isfinite(k->final_us) ? k->final_steps : k->steps,
                          .simulated_us = k->simulated_us,
                          .speedup = (double)NAN,
                          .low = (double)NAN,
                          .high = (double)NAN};
  r.load_us = (double)NAN;
  if (o->request.objective == TFC_OBJECTIVE_THROUGHPUT && (k->solution.device || k->in_flight.us.count))
    r.load_us = tfc_job_load_us(k), r.load_steps = (uint32_t)k->in_flight.us.count;
  struct tfc_interval interval;
  if (isfinite(r.load_us) && single) {
    r.speedup = tfc_job_load_us(single) / r.load_us;
    if (k->in_flight.us.count && single->in_flight.us.count) {
      TFC_TRY(s, compare(in_flight(single), in_flight(k), (uint64_t)o->execution.seed, &interval));
      r.speedup = interval.value, r.low = interval.low, r.high = interval.high;
      r.interval_steps = fewer(in_flight(single), in_flight(k));
    }
  } else if (single && isfinite(k->final_us) && isfinite(single->final_us)) {
    TFC_TRY(s, compare(final_run(single), final_run(k), (uint64_t)o->execution.seed, &interval));
    r.speedup = interval.value, r.low = interval.low, r.high = interval.high;
    r.interval_steps = fewer(final_run(single), final_run(k));
  } else if (single && isfinite(r.median_us) && isfinite(tfc_job_final_us(single))) {
    r.speedup = tfc_job_final_us(single) / r.median_us;
  }
  r.name = tfc_str_dup(tfc_str_from(name));
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  bool earlier = best && isfinite(best->final_us) && !isfinite(k->final_us) && k->median_us < best->final_us;
  const char *note = k->note                      ? k->note
                     : k->in_lanes                ? "operations side by side"
                     : earlier && k->choose_count ? "it lost in the turns that chose the answer"
                     : earlier                    ? "not in the final turns: the machine was faster then"
                                                  : NULL;
  r.note = note ? tfc_str_dup(tfc_str_from(note)) : NULL;
  if (!r.name || (note && !r.note)) TFC_TRY(s, tfc_status_no_memory(NULL));
  out->rows[out->row_count++] = r;
out:
  return s;
}

tfc_status tfc_job_table_fill(const struct tfc_job_candidates *c, const struct tfc_job_candidate *single,
                              struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  for (size_t i = 0; i < c->list.count; i++)
    if (c->list.data[i].whole) TFC_TRY(s, tfc_job_table_add(c, &c->list.data[i], "whole", "whole", single, out));
  if (best) TFC_TRY(s, tfc_job_table_add(c, best, best->single ? best->name : "found", "answer", single, out));
  for (int kind = 0; kind < 3; kind++)
    for (size_t i = 0; i < c->list.count; i++) {
      static const char *const kinds[] = {"single", "baseline", "heuristic"};
      const struct tfc_job_candidate *k = &c->list.data[i];
      const int is = k->single ? 0 : k->heuristic ? 2 : k->baseline && !k->whole ? 1 : -1;
      if (is == kind && (kind != 0 || k != best))
        TFC_TRY(s, tfc_job_table_add(c, k, k->name, kinds[kind], single, out));
    }
out:
  return s;
}

// Computes Kendall's tau between simulated and measured steps, over candidates and rivals, from what v_result has of
// them, so that reports compute the same (reports/tau.h). Where loads are searched, what is simulated is not a step,
// and there is none.
tfc_status tfc_job_table_correlate(const struct tfc_job_candidates *c, struct tfc_job_outcome *out) {
  size_t n = 0, count = c->list.count;
  double *x = calloc(count + 1, sizeof *x), *y = calloc(count + 1, sizeof *y), *spread = calloc(count + 1, sizeof *y);
  tfc_status s = NULL;
  if (!x || !y || !spread) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    const bool finished = isfinite(k->final_us);
    if (c->model->o->request.objective == TFC_OBJECTIVE_THROUGHPUT || !k->solution.device ||
        k->screened_state != TFC_RESULT_OK || isnan(k->median_us) || isnan(k->predicted_us))
      continue;
    x[n] = k->predicted_us, y[n] = tfc_job_final_us(k);
    spread[n++] = 0.5 * (finished ? k->final_q3 - k->final_q1 : k->q3_us - k->q1_us);
  }
  out->tau = tfc_kendall_tau(x, y, spread, n, NULL);
  out->tau_placements = (uint32_t)n;
out:
  free(x);
  free(y);
  free(spread);
  return s;
}
