// The final turns measure the best placements by the readings so far, and the best single device: each has one reading
// in each turn. The first half of the turns chooses the answer; placements that are surely slower are dropped early.
// The second half measures how long a step of the answer takes: its readings did not influence the choice, so they are
// not biased by it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/final.h"
#include "placer/elsewhere/record.h"
#include "placer/measure/command_wire.h"
#include "profiler/statistics.h"
#include "profiler/store_rows.h"

enum { FINALISTS = 6, CHOOSE = 4, CONFIRM = CHOOSE };

static const double most_share = 0.35; // the largest share of the run's time; with slow programs there are fewer turns
                                       // and finalists

double tfc_elsewhere_final_seconds(const struct tfc_elsewhere *r) {
  const double all = r->reading_s * ((FINALISTS + 1) * CHOOSE + 2 * CONFIRM + 1);
  return r->seconds > 0 ? fmin(all, most_share * r->seconds) : all;
}

// Returns the number of turns that choose (as many confirm); *out_finalists: the number of finalists.
static uint32_t plan(const struct tfc_elsewhere *r, uint32_t *out_finalists) {
  const double left = r->seconds - tfc_elsewhere_seconds(r);
  const double readings = r->seconds > 0 && r->reading_s > 0 ? left / r->reading_s : INFINITY;
  const uint32_t turns = readings >= 30 ? CHOOSE : readings >= 12 ? 2 : 1;
  const double some = (readings - 2 * turns) / turns - 1;
  *out_finalists = some >= FINALISTS ? FINALISTS : some >= 2 ? (uint32_t)some : 2;
  return turns;
}

struct finalist {
  uint32_t index;
  bool out;                        // it was dropped, or it failed
  double log_us[CHOOSE + CONFIRM]; // medians of its readings, NaN: none
};

static bool is_fine(const struct tfc_elsewhere_known *k) {
  return k->state == TFC_RESULT_OK && isfinite(k->log_us);
}

static tfc_status read_turn(struct tfc_elsewhere *r, struct finalist *list, uint32_t count, uint32_t turn) {
  tfc_status s = NULL;
  struct tfc_placement *document = NULL;
  struct tfc_command_answer answer = {0};
  for (uint32_t i = 0; i < count; i++) {
    struct finalist *f = &list[(i + turn) % count]; // each turn begins with another finalist
    struct tfc_elsewhere_known *k = &r->known.data[f->index];
    f->log_us[turn] = (double)NAN;
    if (f->out) continue;
    TFC_TRY(s, r->o->describe(r->o->user, &k->solution, &document));
    TFC_TRY(s, tfc_command_ask(r->program, document, 1, 5, &answer));
    tfc_placement_free(document);
    document = NULL;
    TFC_TRY(s, tfc_elsewhere_store(r, k, &answer, "final"));
    if (answer.state == TFC_RESULT_FAILED)
      tfc_elsewhere_say(r, true, "%s was not measured in the final turns: %s", k->name,
                        answer.message ? answer.message : "no reason given");
    if (answer.state != TFC_RESULT_OK || !answer.step_us.count) continue;
    for (size_t n = 0; n < answer.step_us.count && turn >= CHOOSE; n++)
      if (!tfc_array_push(&k->final_us, answer.step_us.data[n])) TFC_TRY(s, tfc_status_no_memory(NULL));
    f->log_us[turn] = log(tfc_quartiles_of(answer.step_us.data, answer.step_us.count).median);
  }
out:
  tfc_placement_free(document);
  tfc_command_answer_deinit(&answer);
  return s;
}

// Compares the step times of two candidates over the turns in which both were measured: *out_mean is the mean of
// log(b's time / a's time), *out_error the standard error of that mean. Returns the number of these turns.
static uint32_t compare(const struct finalist *a, const struct finalist *b, uint32_t turns, double *out_mean,
                        double *out_error) {
  double sum = 0, squares = 0;
  uint32_t n = 0;
  for (uint32_t t = 0; t < turns; t++) {
    const double x = b->log_us[t] - a->log_us[t];
    if (isfinite(x)) sum += x, squares += x * x, n++;
  }
  *out_mean = n ? sum / n : (double)NAN;
  *out_error = n > 1 ? sqrt(fmax(squares / n - *out_mean * *out_mean, 0) / (n - 1)) : (double)INFINITY;
  return n;
}

static uint32_t leader(const struct finalist *list, uint32_t count, uint32_t turns) {
  uint32_t best = TFC_NONE;
  for (uint32_t i = 0; i < count; i++) {
    double mean, error;
    if (list[i].out || !isfinite(list[i].log_us[turns - 1])) continue;
    if (best == TFC_NONE || (compare(&list[best], &list[i], turns, &mean, &error) && mean < 0)) best = i;
  }
  return best;
}

static tfc_status interval(struct tfc_elsewhere *r, const struct tfc_elsewhere_known *answer,
                           const struct tfc_elsewhere_known *single, uint32_t turns,
                           struct tfc_elsewhere_verdict *out) {
  const size_t a = answer->final_us.count / turns, b = single->final_us.count / turns;
  struct tfc_block_pair pairs[CONFIRM];
  struct tfc_interval i;
  uint32_t count = 0;
  for (uint32_t t = 0; t < turns && a && b; t++)
    pairs[count++] =
        (struct tfc_block_pair){single->final_us.data + t * b, answer->final_us.data + t * a, (uint32_t)b, (uint32_t)a};
  if (!count) return NULL;
  TFC_RETURN_IF_ERROR(tfc_bootstrap_ratio(pairs, count, 1000, r->o->search.seed, &i));
  out->ratio = i.value, out->low = i.low, out->high = i.high;
  return NULL;
}

static tfc_status store_final(struct tfc_elsewhere *r, struct tfc_elsewhere_known *k) {
  tfc_status s = NULL;
  if (!k->final_us.count) return NULL; // its readings failed; its time is that of its first reading
  double *us = malloc((k->final_us.count + 1) * sizeof *us);
  if (!us) return tfc_status_no_memory(NULL);
  if (k->final_us.count) memcpy(us, k->final_us.data, k->final_us.count * sizeof *us);
  const struct tfc_quartiles q = tfc_quartiles_of(us, k->final_us.count);
  TFC_TRY(s, tfc_store_begin(r->store));
  TFC_TRY(s, tfc_store_set_final(r->store, k->key, k->name, q.median, q.q1, q.q3, (uint32_t)k->final_us.count));
  TFC_TRY(s, tfc_store_commit(r->store));
out:
  free(us);
  return s;
}

tfc_status tfc_elsewhere_final(struct tfc_elsewhere *r, struct tfc_elsewhere_verdict *out, bool *out_cancelled) {
  tfc_status s = NULL;
  struct finalist list[FINALISTS + 1] = {0};
  uint32_t count = 0, single = TFC_NONE, most, turns = plan(r, &most);
  for (uint32_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    if (is_fine(k) && k->single && (out->single == TFC_NONE || k->log_us < r->known.data[out->single].log_us))
      out->single = i;
  }
  while (count < most) { // the next best
    uint32_t best = TFC_NONE;
    for (uint32_t i = 0; i < r->known.count; i++) {
      bool taken = !is_fine(&r->known.data[i]);
      for (uint32_t f = 0; f < count; f++) taken |= list[f].index == i;
      if (!taken && (best == TFC_NONE || r->known.data[i].log_us < r->known.data[best].log_us)) best = i;
    }
    if (best == TFC_NONE) break;
    list[count++].index = best;
  }
  if (!count) return NULL;
  out->answer = list[0].index;
  *out_cancelled = tfc_elsewhere_cancelled(r);
  if (*out_cancelled) return NULL;
  for (uint32_t i = 0; i < count; i++)
    if (list[i].index == out->single) single = i;
  if (single == TFC_NONE && out->single != TFC_NONE) single = count, list[count++].index = out->single;
  uint32_t best = 0;
  for (uint32_t turn = 0; turn < turns; turn++) {
    TFC_TRY(s, read_turn(r, list, count, turn));
    const uint32_t now = leader(list, count, turn + 1);
    if (now == TFC_NONE) continue;
    best = now;
    for (uint32_t i = 0; i < count && turn > 0; i++) {
      double mean, error;
      if (i == best || i == single) continue;
      if (compare(&list[best], &list[i], turn + 1, &mean, &error) > 1 && mean > 0.01 && mean > 4 * error)
        list[i].out = true;
    }
  }
  out->answer = list[best].index;
  for (uint32_t i = 0; i < count; i++) list[i].out = i != best && i != single;
  for (uint32_t turn = CHOOSE; turn < CHOOSE + turns; turn++) TFC_TRY(s, read_turn(r, list, count, turn));
  TFC_TRY(s, store_final(r, &r->known.data[out->answer]));
  if (single != TFC_NONE && single != best) TFC_TRY(s, store_final(r, &r->known.data[out->single]));
  if (single != TFC_NONE) TFC_TRY(s, interval(r, &r->known.data[out->answer], &r->known.data[out->single], turns, out));
out:
  if (tfc_status_code(s) == TFC_CANCELLED) { // the best so far is an answer
    tfc_status_free(s);
    s = NULL;
    *out_cancelled = true;
  }
  return s;
}
