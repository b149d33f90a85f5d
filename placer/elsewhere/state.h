// The state of the run, which all phases share: the budget, the placements that are known, messages. Only state.c says
// which placement is the incumbent.
#ifndef TFC_PLACER_ELSEWHERE_STATE_H
#define TFC_PLACER_ELSEWHERE_STATE_H

#include "placer/elsewhere/elsewhere.h"
#include "placer/learned/learned.h"
#include "placer/search/account.h"
#include "profiler/store.h"
#include "runtime/base/map.h"
#include "runtime/base/random.h"

// A placement that was measured, or will be in the current batch.
struct tfc_elsewhere_known {
  char *name;
  const char *algorithm, *role; // static, or `owned`
  char *owned;                  // the algorithm's name, if it was read from the database when the run was resumed
  bool baseline, single;
  struct tfc_solution solution;
  uint64_t digest;
  tfc_result_state state;
  char *note;
  double median_us, q1_us, q3_us; // of its first reading; NaN: there is none
  uint32_t steps;
  double ratio;        // of its first reading to the reference
  double seconds;      // duration of that reading
  double simulated_us; // step time that the simulator gives with the prior costs
  double predicted_us; // by the learned model before the reading; NaN: nothing had been learned
  double log_us; // logarithm of its step time in us: the mean of its readings, corrected for drift; NaN: there is none
  uint32_t readings;                // number of readings in that mean
  bool won;                         // at its first reading it was faster than the incumbent
  struct tfc_search_account policy; // what a learned policy contributed to the search that proposed it; samples.count
                                    // 0: nothing
  int64_t placement_id, key;
  uint32_t next_step;
  TFC_ARRAY(double) final_us;  // step times in the final turns that confirm
  TFC_ARRAY(double) choose_us; // median step times in the final turns that choose
};

struct tfc_elsewhere {
  const struct tfc_elsewhere_options *o;
  struct tfc_elsewhere_outcome *out;
  const struct tfc_problem *problem;
  double begin_s, seconds; // start, and the budget of time; seconds 0: only evaluations limit the run
  struct tfc_command *program;
  struct tfc_evaluator *evaluator;
  struct tfc_simulator *simulator;
  struct tfc_strmap node_of, device_of; // by name
  struct tfc_learned *learned;          // NULL: --model prior
  struct tfc_random random;
  TFC_ARRAY(struct tfc_elsewhere_known) known;
  uint32_t best;      // index of the incumbent, TFC_NONE: none
  uint32_t reference; // index of the placement that is measured with every batch, TFC_NONE: none yet
  uint32_t episodes;
  double reading_s;                   // duration of a recent reading
  uint64_t evaluations;               // number of simulated placements
  struct tfc_search_account searches; // what the learned policy did in the simulated searches of this process
  struct tfc_store *store;
  TFC_ARRAY(uint64_t) kept_ranks; // hashes of the orders of operations that are already in the database
  int64_t run, next_id;
  uint64_t tried;        // digest of the placement that is stored as the one being tried; 0: none
  const uint32_t *batch; // [candidate] index in known, while the evaluator runs
  const char *phase;
};

double tfc_elsewhere_seconds(const struct tfc_elsewhere *run); // since the run began
bool tfc_elsewhere_cancelled(const struct tfc_elsewhere *run);
uint32_t tfc_elsewhere_left(const struct tfc_elsewhere *run); // how many measurements are left
// Adds a placement (copied); *out_new false: it, or an equal one, is known, and *out_index is that.
TFC_MUST_USE tfc_status tfc_elsewhere_add(struct tfc_elsewhere *run, const char *name, const char *algorithm,
                                          const char *role, const struct tfc_solution *solution, uint32_t *out_index,
                                          bool *out_new);
void tfc_elsewhere_choose(struct tfc_elsewhere *run); // makes the fastest placement by its readings the incumbent
void tfc_elsewhere_forget(struct tfc_elsewhere *run); // frees all known placements
void tfc_elsewhere_say(struct tfc_elsewhere *run, bool warning, const char *format, ...) TFC_PRINTF(3, 4);

uint64_t tfc_elsewhere_digest(const struct tfc_problem *problem, const struct tfc_solution *solution);
void tfc_elsewhere_known_deinit(struct tfc_elsewhere_known *known);

#endif
