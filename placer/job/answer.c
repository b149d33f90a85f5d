#include "placer/job/answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/document.h"
#include "placer/job/explain.h"
#include "placer/job/saved_problem.h"
#include "placer/job/table.h"
#include "runtime/base/units.h"

// Returns the candidate that did not fit but lacks the least memory on its worst device; NULL: nothing was measured.
static const struct tfc_job_candidate *nearest_fit(const struct tfc_job_candidates *c, uint32_t *out_device,
                                                   uint64_t *out_missing) {
  const struct tfc_job_candidate *nearest = NULL;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (k->state != TFC_RESULT_NO_FIT || !k->solution.device || !k->peak) continue;
    uint64_t worst = 0;
    uint32_t at = 0;
    for (uint32_t d = 0; d < c->model->bare->device_count; d++)
      if (k->peak[d] > c->model->bare->devices[d].memory && k->peak[d] - c->model->bare->devices[d].memory > worst)
        worst = k->peak[d] - c->model->bare->devices[d].memory, at = d;
    if (worst && worst < least) least = worst, *out_device = at, *out_missing = worst, nearest = k;
  }
  return nearest;
}

// Returns the bytes that all devices together may hold.
static uint64_t limit_of_all(const struct tfc_job_candidates *c) {
  uint64_t limit = 0;
  for (uint32_t d = 0; d < c->model->bare->device_count; d++) {
    uint64_t one = c->model->bare->devices[d].memory;
    limit = one == TFC_NO_LIMIT || limit + one < limit ? TFC_NO_LIMIT : limit + one;
  }
  return limit;
}

static tfc_status say_no_fit(const struct tfc_job_candidates *c) {
  char need[32], held[32];
  const uint64_t limit = limit_of_all(c);
  uint64_t variables = c->model->subject->variable_bytes, least = 0;
  uint32_t where = 0;
  const struct tfc_job_candidate *nearest = nearest_fit(c, &where, &least);
  char text[160] = "", a[32], b[32];
  if (nearest)
    snprintf(text, sizeof text, "; the nearest of them needs %s on %.*s, %s more than its limit",
             tfc_show_bytes(a, (double)nearest->peak[where]), TFC_STR_ARG(c->model->bare->devices[where].name),
             tfc_show_bytes(b, (double)least));
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                         "nothing that was tried fits: the variables alone take %s, all devices together may hold "
                         "%s%s, and a step needs room for its tensors besides%s",
                         tfc_show_bytes(need, (double)variables), tfc_show_bytes(held, (double)limit),
                         variables > limit ? ", which is too little already" : "", text);
}

// Explains why there is no answer: no placement fits, everything that was tried failed for another reason, or nothing
// was tried because an earlier part of the run had used up the time.
static tfc_status say_why_not(const struct tfc_job_candidates *c, int *out_exit_code) {
  const struct tfc_job_candidate *other = NULL;
  bool no_fit = false;
  for (size_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (!k->solution.device) continue;
    no_fit |= k->state == TFC_RESULT_NO_FIT;
    if (k->state == TFC_RESULT_FAILED || k->state == TFC_RESULT_ILLEGAL) other = k;
  }
  uint32_t where;
  uint64_t missing;
  const bool room = c->model->subject->variable_bytes <= limit_of_all(c) && !nearest_fit(c, &where, &missing);
  *out_exit_code = no_fit || (!other && !room) ? 5 : 1;
  if (*out_exit_code == 5) return say_no_fit(c);
  if (!other)
    return tfc_status_make(TFC_ABORTED, "no placement was measured: the time was over before the first one; "
                                        "--time gives more");
  return tfc_status_make(other->code == TFC_OK || other->code == TFC_CANCELLED ? TFC_ABORTED : other->code,
                         "no placement could be measured: %s", other->note ? other->note : "they failed");
}

// --- The first line of the message -----------------------------------------------------------------------------------
static char *first_line_of_step(const struct tfc_job_candidate *best, const struct tfc_job_candidate *whole) {
  char a[32], b[32];
  const char *us = tfc_show_us(b, tfc_job_final_us(best));
  if (whole && whole->state == TFC_RESULT_OK && tfc_job_final_us(whole) < tfc_job_final_us(best))
    return tfc_format("The undivided machine is fastest: %s a step, against %s for the best placement.",
                      tfc_show_us(a, tfc_job_final_us(whole)), us);
  if (best->single) return tfc_format("One device is fastest: everything on %s, %s a step.", best->name + 7, us);
  return tfc_format("Found: %s a step.", us);
}

static char *first_line_of_load(const struct tfc_job_candidate *best, const struct tfc_job_candidate *whole,
                                bool measured) {
  char a[32], b[32];
  const char *name = best->single ? best->name : "Found", *load = tfc_show_us(a, tfc_job_load_us(best));
  char *line =
      measured && best->single ? tfc_format("One device is best: on %s a step ends every %s.", name + 7, load)
      : measured && best->in_flight.at_once < 2
          ? tfc_format("%s: one step after another, one ends every %s.", name, load)
      : measured
          ? tfc_format("%s: with %u steps in flight one ends every %s.", name, best->in_flight.at_once, load)
          : tfc_format("%s: a load of %s a step on the busiest device (modelled from measured operations; the steps "
                       "below ran one at a time).",
                       name, load);
  double undivided = !whole || whole->state != TFC_RESULT_OK ? (double)NAN
                     : whole->in_flight.us.count             ? whole->in_flight.median_us
                                                             : tfc_job_final_us(whole);
  if (!(undivided < tfc_job_load_us(best))) return line;
  char *text = tfc_format("The undivided machine is fastest, one step after another: %s each. %s",
                          tfc_show_us(b, undivided), line ? line : "");
  free(line);
  return text;
}

// Adds to the first line that the answer does not beat the best single device.
static void add_warning(const struct tfc_job_candidate *single, bool loads, struct tfc_job_outcome *out) {
  char a[32];
  char *text = tfc_format("%s It does not beat the best single device (%s, %s) by more than the noise.",
                          out->first_line, single->name + strlen("single:"),
                          tfc_show_us(a, loads ? tfc_job_load_us(single) : tfc_job_final_us(single)));
  if (!text) return;
  free(out->first_line);
  out->first_line = text;
}

// --- The answer ------------------------------------------------------------------------------------------------------
static const struct tfc_job_candidate *best_single(const struct tfc_job_candidates *c) {
  const struct tfc_job_candidate *single = NULL;
  for (size_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (!k->single || !tfc_job_can_answer(k)) continue;
    // A time from the final turns counts more than one from the first measurement.
    bool final = isfinite(k->final_us), other = single && isfinite(single->final_us);
    if (!single || (final == other ? tfc_job_final_us(k) < tfc_job_final_us(single) : final)) single = k;
  }
  return single;
}

static void replace_a_failed_best(struct tfc_job_candidates *c, const struct tfc_job_clock *clock) {
  const struct tfc_job_candidate *lost = tfc_job_candidates_best(c);
  if (!lost || tfc_job_can_answer(lost)) return; // it did not fail in the final run
  tfc_job_say(clock, true, "the best placement could not be run once more: %s", lost->note ? lost->note : "it failed");
  tfc_job_candidates_lead(c, TFC_NONE);
  tfc_job_candidates_choose_by_final(c);
}

static tfc_status no_answer(const struct tfc_job_candidates *c, struct tfc_job_outcome *out) {
  uint32_t where;
  uint64_t missing;
  const struct tfc_job_candidate *nearest = nearest_fit(c, &where, &missing);
  if (nearest) TFC_RETURN_IF_ERROR(tfc_job_document(c, nearest, out)); // the document says `feasible: false`
  return say_why_not(c, &out->exit_code);
}

tfc_status tfc_job_answer(struct tfc_job_candidates *c, const struct tfc_job_clock *clock,
                          struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = c->model;
  const bool loads = m->o->request.objective == TFC_OBJECTIVE_THROUGHPUT;
  bool in_flight_measured = false;
  const struct tfc_job_candidate *whole = NULL, *single = best_single(c);
  for (size_t i = 0; i < c->list.count; i++)
    if (c->list.data[i].whole) whole = &c->list.data[i];
  replace_a_failed_best(c, clock);
  if (loads) {
    uint32_t index;
    in_flight_measured = tfc_job_candidates_choose_by_load(c, &index);
    single = index == TFC_NONE ? NULL : &c->list.data[index];
  }
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  out->measured = c->episodes;
  out->trace_overhead = m->trace_overhead;
  out->trace_told = m->trace_overhead_least > 0;
  if (best) out->untraced_us = best->untraced_us, out->untraced_steps = best->untraced_steps;
  TFC_TRY(s, tfc_job_save_problem(m, clock));
  TFC_TRY(s, tfc_job_table_correlate(c, out));
  TFC_TRY(s, tfc_job_table_fill(c, single, out));
  if (!best) {
    s = no_answer(c, out);
    goto out;
  }
  TFC_TRY(s, tfc_job_explain_bound(c, clock, out));
  TFC_TRY(s, tfc_job_explain_placement(m, best, out));
  TFC_TRY(s, tfc_job_document(c, best, out));
  TFC_TRY(s, tfc_job_save_placement(m, out->placement));
  const struct tfc_job_row *row = tfc_job_outcome_answer(out);
  bool better = !single || (!best->single && isfinite(row->low) && row->low > 1);
  if (loads && !in_flight_measured)
    // modelled loads have no noise, so they are compared directly
    better = !single || tfc_job_load_us(best) < tfc_job_load_us(single);
  out->exit_code = better ? 0 : 7;
  out->first_line = loads ? first_line_of_load(best, whole, in_flight_measured) : first_line_of_step(best, whole);
  if (!better && !best->single && out->first_line) add_warning(single, loads, out);
out:
  return s;
}
