// Schedule: how a job's time is divided. All shares are in one table; the phases read them from here and have none of
// their own.
#ifndef TFC_PLACER_JOB_SCHEDULE_H
#define TFC_PLACER_JOB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

// Shares are fractions of the whole time, unless the comment says of what else. A share that is a moment counts from
// the job's beginning.
struct tfc_job_shares {
  // Profile: after these moments no block of steps begins, except each placement's first.
  double plain;    // steps without rewrites
  double in_parts; // steps of one device, split as when several devices run
  double profile;  // each single device and the undivided machine
  double links;    // transfers
  // Rivals.
  double heuristic;        // of each heuristic, simulated
  double rivals;           // after this moment each rival gets only two steps
  double heuristics_until; // heuristics are measured until this moment; the rest belongs to the search
  // Search.
  // The search gets at least this much even after a slow profile, but not beyond this moment.
  double search_least, search_latest;
  double learn_from;           // of the search's time: when learners begin
  double learn_measurements;   // of the measurements: how many may be made before that
  double learner_measurements; // of all measurements: the most that learners get if other algorithms run too
  double learner;              // of the time left then, if other algorithms run too; learners alone get all
  double round;                // of the time left: one round of simulated search
  double stale_round;          // of a round: the next round, if this one improved nothing
  // Time held back for the final run: the larger of `final`, and of `final_slow` plus one second.
  double final, final_slow;
  double final_most; // the most that is held back, even if steps are slow
  double report;     // of the final run, plus one second: tables and pages
  double unordered;  // of what is left for turns: measuring the answer without its order of operations
  double in_flight;  // of the same, if steps in flight are measured
  // --evaluate.
  double evaluate; // the moment by which steps in flight are measured
};
extern const struct tfc_job_shares tfc_job_shares;

struct tfc_job_schedule {
  double total_s;
  uint32_t measurements; // most measurements in all
  double search_until_s; // the search goes on at least until then; 0: it has not begun
  double batch_until_s;  // batches of this phase have to end by then; 0: when the search ends
};
struct tfc_job_schedule tfc_job_schedule_of(double seconds, uint32_t measurements); // 0: the defaults
double tfc_job_until(const struct tfc_job_schedule *schedule, double share);        // a share of the whole time, s
double tfc_job_report_s(const struct tfc_job_schedule *schedule);
// The end of the search, if the final run needs at least `final_s` seconds.
double tfc_job_search_end_s(const struct tfc_job_schedule *schedule, double final_s);
// Called when the search begins: sets its earliest end.
void tfc_job_begin_search(struct tfc_job_schedule *schedule, double now_s);
// The seconds of a round of search, if so much time is left; `fresh`: the last round found something.
double tfc_job_round_s(double left_s, uint32_t unit_count, bool fresh);
uint32_t tfc_job_measurements_left(const struct tfc_job_schedule *schedule, uint32_t made);

#endif
