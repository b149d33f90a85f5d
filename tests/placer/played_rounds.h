// Searches with played jobs, so that what each one was given is known. A suite includes this header; the sources of
// searches and rollouts come with it, and their calls that run a job come here.
#ifndef TFC_TESTS_PLACER_PLAYED_ROUNDS_H
#define TFC_TESTS_PLACER_PLAYED_ROUNDS_H

#include <stdio.h>

#include "placer/exact/ilp.h"
#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/search/local.h"
#include "placer/search/search_job.h"
#include "tests/placer/instances.h"

// One job as it was planned.
struct planned {
  enum tfc_search_method method;
  uint64_t evaluations, spent, seed; // `spent`: before this job began
  uint32_t rounds;
  double hot, cold;
  double seconds, begin; // its length under a time limit; when it began
  struct tfc_score score;
  bool policy_first;
  bool is_best; // it begins at the best placement that any job found, or at a better one
};
static struct planned plans[4096];
static uint32_t played_count;
static struct tfc_score best_found;
static uint32_t improves; // the number of the job that finds something better, + 1; 0: none does
static int64_t parts = 2; // the step gets shorter by one of this number of parts
static bool by_moves;     // if it is a job of the policy, the policy's own moves do
static enum tfc_search_method improver;
static void (*took)(double seconds); // each job calls it with its length under a time limit; NULL: jobs take no time
static uint64_t counts;              // the evaluations of each job that has no limit on them

// Spends its budget and finds nothing; one job says that it found a shorter step.
static tfc_status play_job(const struct tfc_problem *p, struct tfc_search_job *j) {
  const uint32_t number = __atomic_fetch_add(&played_count, 1, __ATOMIC_RELAXED);
  const struct tfc_score own = score_of(p, &j->solution);
  if (number >= sizeof plans / sizeof *plans) return tfc_status_make(TFC_INTERNAL, "too many jobs");
  plans[number] = (struct planned){.method = j->method,
                                   .evaluations = j->budget.evaluations,
                                   .spent = j->evaluations,
                                   .seed = j->budget.seed,
                                   .rounds = j->rounds,
                                   .hot = j->hot,
                                   .cold = j->cold,
                                   .seconds = j->slice,
                                   .begin = tfc_now_s(),
                                   .score = j->score,
                                   .policy_first = j->policy_first,
                                   .is_best = !tfc_score_better(best_found, j->score)};
  if (own.value != j->score.value && j->score.value != best_found.value)
    return tfc_status_make(TFC_INTERNAL, "a job got a score that is not its placement's");
  j->evaluations = j->evaluations > j->budget.evaluations ? j->evaluations : j->budget.evaluations;
  if (!j->budget.evaluations) j->evaluations = counts;
  if (took) took(j->slice);
  if (number + 1 == improves) {
    best_found = (struct tfc_score){j->score.excess, j->score.value - j->score.value / parts};
    if (j->method == TFC_METHOD_POLICY && by_moves) j->by_policy.gained = j->score.value - best_found.value;
    j->score = best_found, improver = j->method;
  }
  return NULL;
}

static uint32_t settled; // placements that got a new order before the rounds
static tfc_status watched_settle(const struct tfc_problem *p, struct tfc_simulator *sim, uint64_t most,
                                 struct tfc_solution *s, struct tfc_score *out, uint64_t *evaluations) {
  settled++;
  return tfc_local_settle_within(p, sim, most, s, out, evaluations);
}

// What the integer program is asked, and what it answers.
static struct {
  uint32_t asked, count;         // how often it is asked; for how many clusters
  double seconds;                // its time limit
  bool alone;                    // each unit is a cluster of its own
  bool cancels;                  // the search can cancel it
  bool begins;                   // it begins at a placement of the search,
  tfc_device_id begins_at;       // which has the first unit on this device
  struct tfc_ilp_answer answers; // a placement that it finds has all units on the first device
  const char *fails;             // its error; NULL: none
} solver;
static tfc_status play_program(const struct tfc_problem *p, const uint32_t *cluster, uint32_t count,
                               const struct tfc_program_limits *limits, const tfc_device_id *start,
                               tfc_device_id *device, struct tfc_ilp_answer *out) {
  solver.asked++, solver.count = count, solver.seconds = limits->seconds, solver.cancels = limits->cancel != NULL;
  solver.alone = true;
  for (uint32_t u = 0; u < p->unit_count; u++) solver.alone = solver.alone && cluster[u] == u;
  solver.begins = start != NULL;
  if (start) solver.begins_at = start[0];
  if (solver.fails) return tfc_status_make(TFC_INTERNAL, "%s", solver.fails);
  *out = solver.answers;
  if (out->found) memset(device, 0, sizeof *device * p->unit_count);
  return NULL;
}

#define tfc_search_job_run play_job
#define tfc_local_settle_within watched_settle
#define tfc_ilp_solve play_program
#include "placer/search/rollouts.c"
#include "placer/search/search.c"
#undef tfc_ilp_solve
#undef tfc_local_settle_within
#undef tfc_search_job_run

static struct instance of_size(uint32_t nodes, uint64_t seed, uint32_t devices, tfc_objective objective) {
  struct tfc_random r;
  tfc_random_init(&r, seed);
  for (;;) {
    struct instance i = random_instance(&r, nodes, devices, 0, objective);
    if (3 * i.problem->net_count >= 2 * nodes) return i;
    instance_free(&i);
  }
}
static struct instance medium(uint64_t seed, uint32_t devices, tfc_objective objective) {
  return of_size(60, seed, devices, objective);
}

// Makes nodes of 10, 20 and 30 us without edges, and devices of which device d takes d + 1 times as long; with `little`
// memory, only the last device has room for all of them.
static inline struct instance three_devices(bool little) {
  char text[600];
  struct instance i = {0};
  static const char graph[] =
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"a\", \"b\", \"c\"], \"nodes\": ["
      "{\"name\": \"n0\", \"time_us\": {\"a\": 10, \"b\": 20, \"c\": 30}, \"memory\": 10},"
      "{\"name\": \"n1\", \"time_us\": {\"a\": 20, \"b\": 40, \"c\": 60}, \"memory\": 10},"
      "{\"name\": \"n2\", \"time_us\": {\"a\": 30, \"b\": 60, \"c\": 90}, \"memory\": 10}], \"edges\": []}";
  snprintf(text, sizeof text,
           "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a, memory: %d}\n"
           "  - {name: 'b:0', kind: b, memory: %d}\n  - {name: 'c:0', kind: c, memory: 30}\n"
           "links:\n  - {from: '*', to: '*', bandwidth: 1GB/s}\n",
           little ? 5 : 30, little ? 5 : 30);
  MUST(tfc_cost_graph_parse(tfc_str_from(graph), "g.json", &i.graph));
  MUST(tfc_machine_parse(tfc_str_from(text), "m.yaml", &i.machine));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}

static inline void search(const struct tfc_problem *p, uint64_t evaluations, uint64_t seed, uint32_t improving,
                          struct tfc_search_outcome *out) {
  const struct tfc_search_options options = {.evaluations = evaluations, .seed = seed, .threads = 1};
  played_count = 0, settled = 0, improves = improving, best_found = TFC_SCORE_NONE;
  assert_ok(tfc_search(p, &options, out));
}

#endif
