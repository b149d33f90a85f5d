#include "placer/search/gain.h"

#include <math.h>

bool tfc_gain_timed(struct tfc_score before, struct tfc_score after) {
  return before.value != TFC_TIME_MAX && after.excess == before.excess;
}

double tfc_gain(struct tfc_score before, struct tfc_score after) {
  if (!tfc_score_better(after, before)) return 0;
  return tfc_gain_timed(before, after) ? log((double)before.value / (double)after.value) : 1;
}

struct gain {
  double all, own; // of the whole job; of the policy's own moves
  bool timed;      // tfc_gain_timed
};
static struct gain gain_of(const struct tfc_search_job *j) {
  struct gain g = {.all = tfc_gain(j->before, j->score), .timed = tfc_gain_timed(j->before, j->score)};
  if (g.all <= 0 || j->method != TFC_METHOD_POLICY) return g;
  const double total = (double)(j->before.value - j->score.value);
  g.own = g.timed ? g.all * fmin(1, (double)j->by_policy.gained / total) : (double)j->by_policy.fits;
  return g;
}

void tfc_gain_count(const struct tfc_search_job *j, bool by_evaluations, struct tfc_search_account *a,
                    struct tfc_credits *credits) {
  const struct gain gain = gain_of(j);
  const double rest = gain.all - gain.own;
  struct tfc_search_turns *moves = &a->moves, *others = &a->others;
  moves->count += j->method == TFC_METHOD_POLICY, moves->wins += gain.own > 0;
  moves->evaluations += j->by_policy.evaluations, moves->seconds += j->by_policy.seconds;
  others->count++, others->wins += rest > 0;
  others->evaluations += j->evaluations - j->by_policy.evaluations;
  others->seconds += fmax(0, j->seconds - j->by_policy.seconds);
  if (gain.timed) moves->gained += gain.own, others->gained += rest;
  tfc_credits_add(credits, j->method, gain.all, by_evaluations ? (double)j->evaluations : j->seconds);
}

const char *tfc_gain_name(const struct tfc_search_job *j) {
  const struct gain gain = gain_of(j);
  return tfc_search_method_names[j->method == TFC_METHOD_POLICY && 2 * gain.own < gain.all ? TFC_METHOD_ANNEAL
                                                                                           : j->method];
}
