// Schedule: how a job's time is divided. One table has all shares; the phases read them from it and have none of their
// own.
#ifndef TFC_PLACER_JOB_SCHEDULE_H
#define TFC_PLACER_JOB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

// Shares are fractions of the whole time, unless the comment names another time. If a share is a moment, it counts from
// the job's beginning.
struct tfc_job_shares {
  // Profile: after these moments no block of steps begins, except each placement's first.
  double plain;    // steps without rewrites
  double in_parts; // steps of one device, split as when several devices run
  double profile;  // each single device and the undivided machine
  double links;    // transfers
  // Rivals.
  double heuristic;        // for each heuristic, which is simulated
  double rivals;           // after this moment each rival gets only two steps
  double heuristics_until; // until this moment heuristics are measured; the time after it belongs to the search
  // The search gets at least this share even after a slow profile, but it ends at `search_latest` at the latest.
  double search_least, search_latest;
  double learn_from;           // share of the search's time after which learners begin
  double learn_measurements;   // share of the measurements that may be made before learners begin
  double learner_measurements; // the largest share of all measurements that learners get if other algorithms run, too
  double unearned;             // the same for learners whose proposals have not yet won
  double learner_evaluations;  // share of all evaluations that is kept for learners if other algorithms run, too
  double learner;              // share of the time left at that moment that learners get if other algorithms run, too;
                               // otherwise they get all of it
  double confirm;              // the most of the search's time left that confirming a new best takes
  double round;                // share of the time, or of the evaluations, left that one round of simulated search gets
  double stale_round;          // share of a round's time that the next round gets if this one improved nothing
  // Time kept for the final run: the larger one of `final`, and `final_slow` plus one second.
  double final, final_slow;
  double final_most; // the most that is kept for it, even if steps are slow
  double report;     // share of the final run, plus one second, for writing tables and pages
  double choosing;   // share of the turns' time in which they choose the answer; after that they measure it
  double late;       // if the job is over, a short measurement is still made that ends by this share, plus one second
  double unordered;  // share of the time left for turns: for measuring the answer without its order of operations
  double in_flight;  // share of the same time: for measuring several steps in flight
  // --evaluate.
  double evaluate; // the moment by which steps in flight are measured
};
extern const struct tfc_job_shares tfc_job_shares;

struct tfc_job_schedule {
  double total_s;
  uint32_t measurements; // most measurements in all
  double search_until_s; // the search does not end before this moment; 0: it has not begun
  double batch_until_s;  // batches of this phase must end before this moment; 0: before the search ends
};
// an argument of 0 stands for the default
struct tfc_job_schedule tfc_job_schedule_of(double seconds, uint32_t measurements);
double tfc_job_until(const struct tfc_job_schedule *schedule, double share); // a share of the whole time, s
double tfc_job_report_s(const struct tfc_job_schedule *schedule);
// Returns the moment at which the search must end if the final run needs at least `final_s` seconds.
double tfc_job_search_end_s(const struct tfc_job_schedule *schedule, double final_s);
// Call it when the search begins: sets the earliest end of the search.
void tfc_job_begin_search(struct tfc_job_schedule *schedule, double now_s);
// Batches of the phase that begins must end before this moment; 0: before the search ends.
void tfc_job_limit_batches(struct tfc_job_schedule *schedule, double until_s);
// Returns how many of the evaluations that are left a round of search gets.
uint64_t tfc_job_round_evaluations(uint64_t left);
// Returns the seconds that a round of search gets. `fresh`: the last round found something.
double tfc_job_round_s(double left_s, uint32_t unit_count, bool fresh);
uint32_t tfc_job_measurements_left(const struct tfc_job_schedule *schedule, uint32_t made);

#endif
