#include "placer/job/finalists.h"

#include <math.h>
#include <string.h>

enum { FINALISTS = 3, MOST_FINALISTS = 8, FEWEST_BLOCK = 2 };

static void add_once(uint32_t *list, uint32_t *count, uint32_t index) {
  for (uint32_t i = 0; i < *count; i++)
    if (list[i] == index) return;
  if (*count < TFC_JOB_MOST_FINALISTS) list[(*count)++] = index;
}

// Whether the candidate is the expert's placement or one that the user gave.
static bool is_rival(const struct tfc_job_candidate *k) {
  return k->baseline && !k->heuristic && !k->single && !k->whole;
}

// Whether the candidate has a time. Candidates that were stopped as too slow count, because something may have
// disturbed them.
static bool is_timed(const struct tfc_job_candidate *k) {
  return (k->state == TFC_RESULT_OK || k->state == TFC_RESULT_CUT) && isfinite(k->median_us);
}

// Returns the fastest candidate that can be the answer; `single`: among those on one device; otherwise among those on
// several devices that are not in `list`. TFC_NONE: there is none.
static uint32_t fastest(const struct tfc_job_candidates *c, bool single, const uint32_t *list, uint32_t count) {
  uint32_t best = TFC_NONE;
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    bool taken = !tfc_job_can_answer(k) || k->single != single;
    for (uint32_t n = 0; n < count && !taken; n++) taken = list[n] == i || c->list.data[list[n]].digest == k->digest;
    if (!taken && (best == TFC_NONE || k->level_us < c->list.data[best].level_us)) best = i;
  }
  return best;
}

// Lists the candidates that must be compared: the incumbent, the one that was reported as the best so far, the fastest
// one on several devices and on one, the undivided machine, and the rivals. For the throughput objective also those
// with the smallest loads: the answer is one of them, and its steps shall have been measured like those of its rivals.
static uint32_t competitors(const struct tfc_job_candidates *c, uint32_t *list) {
  uint32_t count = 0, spread = fastest(c, false, NULL, 0), single = fastest(c, true, NULL, 0);
  if (c->best != TFC_NONE) add_once(list, &count, c->best);
  if (c->seen != TFC_NONE && tfc_job_can_answer(&c->list.data[c->seen])) add_once(list, &count, c->seen);
  if (spread != TFC_NONE) add_once(list, &count, spread);
  if (single != TFC_NONE) add_once(list, &count, single);
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if ((k->whole && k->state == TFC_RESULT_OK) || (is_rival(k) && is_timed(k))) add_once(list, &count, i);
  }
  uint32_t loads[TFC_JOB_MOST_FINALISTS];
  const uint32_t load_count = tfc_job_finalists_by_load(c, loads);
  for (uint32_t i = 0; i < load_count; i++) add_once(list, &count, loads[i]);
  return count;
}

bool tfc_job_stays(const struct tfc_job_candidates *c, uint32_t index) {
  const struct tfc_job_candidate *k = &c->list.data[index];
  uint32_t loads[TFC_JOB_MOST_FINALISTS];
  const uint32_t load_count = tfc_job_finalists_by_load(c, loads);
  for (uint32_t i = 0; i < load_count; i++)
    if (loads[i] == index) return true;
  return k->whole || k->single || is_rival(k);
}

// Returns how many seconds the final turns take. In the turns that choose, each candidate has `choose` timed steps, and
// before them steps in which its plan adapts and warms up. The incumbent and the candidates that stay (tfc_job_stays)
// have `stay` more steps.
static double seconds_for(const struct tfc_job_candidates *c, const uint32_t *list, uint32_t count, uint32_t choose,
                          uint32_t stay) {
  double us = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[list[i]];
    const uint32_t steps = choose + (tfc_job_stays(c, list[i]) || list[i] == c->best ? stay : 0);
    us += (steps + 2 + (k->whole ? TFC_ADAPT_STEPS : TFC_ADAPT_ORDER_STEPS)) * k->median_us;
  }
  return 1e-6 * us;
}

// Is called if even the fewest steps of all candidates take too long. Drops the slowest of the user's placements, or
// the expert's placement if it is slower than the fastest candidate by a large factor.
static bool drop_one(const struct tfc_job_candidates *c, uint32_t *list, uint32_t *count) {
  uint32_t worst = TFC_NONE;
  double least_us = INFINITY;
  for (uint32_t i = 0; i < *count; i++) least_us = fmin(least_us, c->list.data[list[i]].median_us);
  for (uint32_t i = 0; i < *count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[list[i]];
    if (list[i] == c->best || list[i] == c->seen || !is_rival(k)) continue;
    if (strcmp(k->name, "expert") == 0 && k->median_us < 5 * least_us) continue;
    if (worst == TFC_NONE || k->median_us > c->list.data[list[worst]].median_us) worst = i;
  }
  if (worst == TFC_NONE) return false;
  memmove(list + worst, list + worst + 1, (*count - worst - 1) * sizeof *list);
  --*count;
  return true;
}

uint32_t tfc_job_finalists(const struct tfc_job_candidates *c, double left_s, uint32_t *list, uint32_t *out_block) {
  uint32_t count = competitors(c, list), several = 0, block = TFC_JOB_FINAL_BLOCK;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[list[i]];
    several += k->solution.device && !k->single && !is_rival(k);
  }
  // The first measurement cannot tell candidates with similar times apart. So more of them take part if there is time
  // for all rounds of all candidates, even if the machine has become slower by a third.
  for (; several < MOST_FINALISTS && count < TFC_JOB_MOST_FINALISTS; several++) {
    const bool few = several < FINALISTS;
    const uint32_t choose = few ? TFC_JOB_FINAL_BLOCK : TFC_JOB_CHOOSE_ROUNDS * TFC_JOB_FINAL_BLOCK * 4 / 3;
    const uint32_t stay = few ? TFC_JOB_FINAL_BLOCK : TFC_JOB_FINAL_ROUNDS * TFC_JOB_FINAL_BLOCK * 4 / 3;
    list[count] = fastest(c, false, list, count);
    if (list[count] == TFC_NONE || seconds_for(c, list, count + 1, choose, stay) > left_s) break;
    count++;
  }
  while (seconds_for(c, list, count, FEWEST_BLOCK, FEWEST_BLOCK) > left_s && drop_one(c, list, &count)) {
  }
  while (block > FEWEST_BLOCK && seconds_for(c, list, count, block, block) > left_s) block--;
  *out_block = block;
  return count;
}

double tfc_job_final_s(const struct tfc_job_candidates *c, const struct tfc_job_schedule *schedule) {
  uint32_t list[TFC_JOB_MOST_FINALISTS], count = competitors(c, list);
  double turns = seconds_for(c, list, count, FEWEST_BLOCK + 1, FEWEST_BLOCK + 1) / (1 - tfc_job_shares.unordered);
  if (tfc_job_model_runs_in_flight(c->model)) turns /= 1 - tfc_job_shares.in_flight;
  return turns + tfc_job_report_s(schedule);
}

uint32_t tfc_job_finalists_by_load(const struct tfc_job_candidates *c, uint32_t *list) {
  uint32_t count = 0;
  if (c->model->o->request.objective != TFC_OBJECTIVE_THROUGHPUT) return 0;
  for (int single = 0; single < 2; single++)
    for (uint32_t round = 0; round < (single ? 1 : FINALISTS); round++) {
      uint32_t best = TFC_NONE;
      for (uint32_t i = 0; i < c->list.count; i++) {
        const struct tfc_job_candidate *k = &c->list.data[i];
        bool taken = !tfc_job_can_answer(k) || k->single != (single == 1) || isnan(k->simulated_us);
        for (uint32_t n = 0; n < count && !taken; n++) taken = c->list.data[list[n]].digest == k->digest;
        if (!taken && (best == TFC_NONE || k->simulated_us < c->list.data[best].simulated_us)) best = i;
      }
      if (best != TFC_NONE) add_once(list, &count, best);
    }
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (k->baseline && !k->heuristic && !k->single && tfc_job_can_answer(k)) add_once(list, &count, i);
  }
  for (uint32_t i = 0; i < c->list.count; i++)
    if (c->list.data[i].whole && c->list.data[i].state == TFC_RESULT_OK) add_once(list, &count, i);
  return count;
}
