#include "placer/job/schedule.h"

#include <math.h>

const struct tfc_job_shares tfc_job_shares = {.plain = 0.1,
                                              .in_parts = 0.15,
                                              .profile = 0.2,
                                              .links = 0.25,
                                              .heuristic = 0.005,
                                              .rivals = 0.35,
                                              .heuristics_until = 0.4,
                                              .search_least = 0.1,
                                              .search_latest = 0.9,
                                              .learn_from = 0.7,
                                              .learn_measurements = 0.7,
                                              .learner_measurements = 0.25,
                                              .unearned = 0.25,
                                              .learner_evaluations = 0.2,
                                              .learner = 0.5,
                                              .confirm = 0.05,
                                              .round = 1.0 / 8,
                                              .stale_round = 1.0 / 3,
                                              .final = 0.25,
                                              .final_slow = 0.14,
                                              .final_most = 0.5,
                                              .report = 0.04,
                                              .choosing = 0.45,
                                              .late = 1.05,
                                              .unordered = 0.08,
                                              .in_flight = 0.5,
                                              .evaluate = 0.9};
// Limits in seconds, for long jobs, in which the shares would be longer than is useful.
static const uint64_t round_least = 200; // evaluations: with fewer a search finds little
static const double final_longest_s = 110, round_longest_s = 40, round_shortest_s = 0.5, round_unit_s = 0.05;

struct tfc_job_schedule tfc_job_schedule_of(double seconds, uint32_t measurements) {
  return (struct tfc_job_schedule){.total_s = seconds > 0 ? seconds : 600,
                                   .measurements = measurements ? measurements : 200};
}

double tfc_job_until(const struct tfc_job_schedule *s, double share) {
  return share * s->total_s;
}

double tfc_job_report_s(const struct tfc_job_schedule *s) {
  return tfc_job_shares.report * s->total_s + 1;
}

// Returns the moment at which the search ends. The time after it is kept for the final run: a share of the job, which
// is larger if the job is short or the final run needs more (`final_s`), and is limited if the job is long.
double tfc_job_search_end_s(const struct tfc_job_schedule *s, double final_s) {
  double held = fmax(tfc_job_shares.final * s->total_s, tfc_job_shares.final_slow * s->total_s + 1);
  held = fmax(fmin(held, final_longest_s), final_s);
  held = fmin(held, tfc_job_shares.final_most * s->total_s);
  return fmax(s->total_s - held, s->search_until_s);
}

void tfc_job_begin_search(struct tfc_job_schedule *s, double now_s) {
  s->search_until_s =
      fmin(now_s + tfc_job_until(s, tfc_job_shares.search_least), tfc_job_until(s, tfc_job_shares.search_latest));
}

void tfc_job_limit_batches(struct tfc_job_schedule *s, double until_s) {
  s->batch_until_s = until_s;
}

uint64_t tfc_job_round_evaluations(uint64_t left) {
  const uint64_t part = (uint64_t)(tfc_job_shares.round * (double)left);
  return left < round_least ? left : part < round_least ? round_least : part;
}

double tfc_job_round_s(double left_s, uint32_t unit_count, bool fresh) {
  double seconds = fmin(tfc_job_shares.round * left_s, fmin(round_longest_s, round_unit_s * unit_count));
  if (!fresh) seconds *= tfc_job_shares.stale_round;
  return fmin(fmax(seconds, round_shortest_s), left_s);
}

uint32_t tfc_job_measurements_left(const struct tfc_job_schedule *s, uint32_t made) {
  return s->measurements > made ? s->measurements - made : 0;
}
