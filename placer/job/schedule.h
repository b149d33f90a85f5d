// Schedule: how a job's time is divided. All shares stand in one table; phases ask here, and have no shares of their
// own.
#ifndef TFC_PLACER_JOB_SCHEDULE_H
#define TFC_PLACER_JOB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

// Shares of the whole time unless they say of what. A share that is a moment is counted from the job's beginning.
struct tfc_job_shares {
  // Profile: no block of steps begins after these moments but each placement's first.
  double plain;    // steps without rewrites
  double in_parts; // steps of one device as they run beside others
  double profile;  // each single device and the undivided machine
  double links;    // transfers
  // Rivals.
  double heuristic;        // of each heuristic, simulated
  double rivals;           // the moment after which two steps of each rival are all
  double heuristics_until; // the moment by which heuristics are measured: what is left then is the search's
  // Search.
  double search_least, search_latest; // there is this much of it even after a slow profile, but not beyond this moment
  double learn_from;                  // of the search's time: when learners begin, with or without other algorithms
  double learn_measurements;          // of the measurements: how many may be made before that
  double learner_measurements;        // of all measurements: the most that all learners get beside other algorithms
  double learner;                     // of the time that is left then, beside other algorithms; alone they get all
  double round;                       // of the time that is left: one round of simulated search
  double stale_round;                 // of a round: one after which nothing had improved
  // The final run, held back from the search: this share, or this one and a second, whichever is more.
  double final, final_slow;
  double final_most; // however slow steps are
  double report;     // of it, and a second: tables and pages
  double unordered;  // of what is left for turns: the answer without its order of operations
  double in_flight;  // of the same, where several steps at once are measured
  // --evaluate.
  double evaluate; // the moment by which steps in flight are measured
};
extern const struct tfc_job_shares tfc_job_shares;

struct tfc_job_schedule {
  double total_s;
  uint32_t measurements; // that may be made in all
  double search_until_s; // the search goes on until then at least; 0: not begun
  double batch_until_s;  // batches of this phase are to end then; 0: when the search does
};
struct tfc_job_schedule tfc_job_schedule_of(double seconds, uint32_t measurements); // 0: the defaults
double tfc_job_until(const struct tfc_job_schedule *schedule, double share);        // a share of the whole time, s
double tfc_job_report_s(const struct tfc_job_schedule *schedule);
// Until when there is searching, where the final run needs at least so many seconds.
double tfc_job_search_end_s(const struct tfc_job_schedule *schedule, double final_s);
// The search begins now: says until when it lasts at least.
void tfc_job_begin_search(struct tfc_job_schedule *schedule, double now_s);
// A round of search where so much time is left; `fresh`: the last one found something.
double tfc_job_round_s(double left_s, uint32_t unit_count, bool fresh);
uint32_t tfc_job_measurements_left(const struct tfc_job_schedule *schedule, uint32_t made);

#endif
