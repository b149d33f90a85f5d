// scripts/bench_hidden runs it for its row `anneal`:
//   hidden_anneal_bench GRAPH MACHINE COMMAND MEASUREMENTS EVALUATIONS SEED OUT Simulated annealing (Kirkpatrick,
//   Gelatt, Vecchi 1983) whose moves are measured: it starts from the placement that is best in the simulator after
//   EVALUATIONS evaluations of the search. COMMAND, a program for tfc-place's --measure-with, then measures
//   MEASUREMENTS proposals, each in turns with the current placement. Writes the best placement to OUT.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/command_evaluator.h"
#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "placer/place.h"
#include "runtime/base/random.h"

// The first and the last temperature, as shares of the step time: a proposal that is slower by this much is accepted
// with probability 1/e.
static const double hot = 0.03, cold = 0.002;

struct walk {
  const struct tfc_problem *problem;
  struct tfc_evaluator *evaluator;
  struct tfc_random random;
  struct tfc_solution now, best;
  double level, best_level; // the logarithms of the step times of `now` and `best`, relative to the start's
};

static tfc_status describe(void *user, const struct tfc_solution *solution, struct tfc_placement **out) {
  return tfc_place_describe(user, solution, out);
}

// Makes a move: a run of consecutive units goes to one device; often the run is a single unit.
static void move_some(struct walk *w, struct tfc_solution *to) {
  const struct tfc_problem *p = w->problem;
  const uint32_t most = tfc_random_below(&w->random, 2) ? 1 : 2 + p->unit_count / 20;
  const uint32_t count = 1 + (uint32_t)tfc_random_below(&w->random, most);
  const uint32_t first = (uint32_t)tfc_random_below(&w->random, p->unit_count);
  const uint32_t device = (uint32_t)tfc_random_below(&w->random, p->device_count);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t u = (first + i) % p->unit_count;
    if (tfc_problem_allows(p, u, device)) to->device[u] = (tfc_device_id)device;
  }
}

// Proposes one move, and measures it in turns with the current placement.
static tfc_status propose(struct walk *w, double temperature) {
  tfc_status s = NULL;
  const struct tfc_problem *p = w->problem;
  struct tfc_solution next = {0};
  struct tfc_result result = {0};
  const struct tfc_rules rules = {.cutoff = TFC_TIME_MAX, .warmup = 1, .steps = 5, .reference = &w->now};
  TFC_TRY(s, tfc_solution_copy(&next, &w->now, p));
  for (int tries = 0; tries < 100 && !memcmp(next.device, w->now.device, p->unit_count * sizeof *next.device); tries++)
    move_some(w, &next);
  TFC_TRY(s, tfc_evaluate(w->evaluator, &next, 1, &rules, &result));
  if (result.state != TFC_RESULT_OK || !(result.ratio > 0)) goto out;
  const double worse = log(result.ratio);
  if (worse > 0 && !(tfc_random_unit(&w->random) < exp(-worse / temperature))) goto out;
  w->level += worse;
  tfc_solution_deinit(&w->now);
  w->now = next, next = (struct tfc_solution){0};
  if (w->level < w->best_level) {
    w->best_level = w->level;
    TFC_TRY(s, tfc_solution_copy(&w->best, &w->now, p));
  }
out:
  tfc_result_deinit(&result);
  tfc_solution_deinit(&next);
  return s;
}

static tfc_status run(char **argv) {
  tfc_status s = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_problem *p = NULL;
  struct tfc_command *program = NULL;
  struct tfc_search_outcome found = {0};
  struct tfc_placement *document = NULL;
  struct walk w = {0};
  const uint32_t measurements = (uint32_t)strtoul(argv[4], NULL, 10);
  const struct tfc_search_options options = {.settings.algorithms = "auto",
                                             .evaluations = strtoull(argv[5], NULL, 10),
                                             .seed = strtoull(argv[6], NULL, 10),
                                             .threads = 1};
  tfc_str *names = NULL;
  TFC_TRY(s, tfc_cost_graph_read(argv[1], &graph));
  TFC_TRY(s, tfc_machine_read(argv[2], &machine));
  TFC_TRY(s, tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &p));
  if (!(names = calloc(p->device_count, sizeof *names))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < p->device_count; d++) names[d] = p->machine->devices[d].name;
  TFC_TRY(s, tfc_command_start(&(struct tfc_command_options){.command = argv[3],
                                                             .graph = argv[1],
                                                             .machine = argv[2],
                                                             .devices = names,
                                                             .device_count = p->device_count,
                                                             .stderr_to = -1},
                               &program));
  w.problem = p;
  tfc_random_init(&w.random, options.seed + 1);
  TFC_TRY(s, tfc_evaluator_command(program, p, describe, p, NULL, NULL, &w.evaluator));
  TFC_TRY(s, tfc_search(p, &options, &found));
  if (!found.best.device) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: no legal placement", argv[1]);
  TFC_TRY(s, tfc_solution_copy(&w.now, &found.best, p));
  TFC_TRY(s, tfc_solution_copy(&w.best, &found.best, p));
  for (uint32_t i = 1; i < measurements; i++) // the first measurement is that of the start
    TFC_TRY(s, propose(&w, hot * pow(cold / hot, (double)i / measurements)));
  TFC_TRY(s, tfc_place_describe(p, &w.best, &document));
  TFC_TRY(s, tfc_placement_write(document, argv[7]));
out:
  tfc_placement_free(document);
  tfc_search_outcome_deinit(&found);
  tfc_evaluator_free(w.evaluator);
  tfc_command_stop(program);
  tfc_solution_deinit(&w.now);
  tfc_solution_deinit(&w.best);
  free(names);
  tfc_problem_free(p);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
  return s;
}

int main(int argc, char **argv) {
  if (argc != 8) {
    fprintf(stderr, "usage: hidden_anneal_bench GRAPH MACHINE COMMAND MEASUREMENTS EVALUATIONS SEED OUT\n");
    return 2;
  }
  tfc_status s = run(argv);
  if (!s) return 0;
  fprintf(stderr, "hidden_anneal_bench: %s\n", tfc_status_message(s));
  tfc_status_free(s);
  return 1;
}
