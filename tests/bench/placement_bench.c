// scripts/bench_placement runs it, once for each measurement:
//   placement_bench speed FAMILY NODES DEVICES
//     counts placements that are evaluated in a second on one core: simulated in full (random placements), and by delta
//     evaluation (random moves from a local optimum)
//   placement_bench solve FAMILY NODES DEVICES OBJECTIVE ALGORITHM SEED SECONDS THREADS [mixed] [tight=1.3] [cpus=1]
//     runs one search; prints a line of JSON
//   placement_bench graph COSTS.json MACHINE.yaml OBJECTIVE ALGORITHM SEED SECONDS THREADS
//   placement_bench save FAMILY NODES DEVICES OBJECTIVE DIR [options]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/search/local.h"
#include "tests/bench/families.h"

static int fail(tfc_status s) {
  fprintf(stderr, "placement_bench: %s\n", tfc_status_message(s));
  tfc_status_free(s);
  return 1;
}

static double evaluations_per_second(const struct tfc_problem *p, struct tfc_simulator *sim, struct tfc_random *r) {
  tfc_device_id *device = calloc(p->unit_count, sizeof *device);
  double spent = 0;
  uint32_t count = 0;
  while (spent < 1 || count < 5) {
    for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)tfc_random_below(r, p->device_count);
    struct tfc_verdict v = {0};
    double begin = tfc_now_s();
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
    spent += tfc_now_s() - begin;
    count++;
  }
  free(device);
  return count / spent;
}

// Returns how many random moves of one unit, each away from the placement `from`, are simulated in a second. `cut`: a
// simulation stops when it is slower than `from`.
static double trials_per_second(const struct tfc_problem *p, struct tfc_random *r, const struct tfc_solution *from,
                                bool cut) {
  struct tfc_delta *delta = NULL;
  struct tfc_verdict v = {0};
  tfc_status s = tfc_delta_create(p, &delta);
  if (s) exit(fail(s));
  tfc_delta_reset(delta, from->device, from->rank, &v);
  int64_t value = v.value;
  uint64_t count = 0;
  static struct tfc_move
      moves[1 << 14]; // drawn before the clock starts, because drawing a move takes half as long as a trial
  for (uint32_t i = 0; i < 1 << 14; i++) do
      moves[i] = (struct tfc_move){(uint32_t)tfc_random_below(r, p->unit_count),
                                   (tfc_device_id)tfc_random_below(r, p->device_count)};
    while (moves[i].device == from->device[moves[i].unit]);
  double begin = tfc_now_s(), spent = 0;
  do {
    tfc_delta_try(delta, &moves[count % (1 << 14)], 1, NULL, 0, cut ? value : TFC_TIME_MAX, &v);
    count++;
  } while (count % 64 || (spent = tfc_now_s() - begin) < 1); // reading the clock takes half as long as a trial
  tfc_delta_free(delta);
  return (double)count / spent;
}

static int speed(struct family_request *q) {
  struct family_problem f = {0};
  for (int objective = 0; objective < 2; objective++) {
    q->objective = objective ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP;
    tfc_status s = family_make(q, &f);
    struct tfc_simulator *sim = NULL;
    if (!s) s = tfc_simulator_create(f.problem, &sim);
    if (s) return fail(s);
    struct tfc_random r;
    tfc_random_init(&r, 1);
    double full = evaluations_per_second(f.problem, sim, &r);
    struct tfc_search_outcome found = {0};
    s = tfc_search(f.problem, &(struct tfc_search_options){.evaluations = 2000, .threads = 1}, &found);
    if (s) return fail(s);
    struct tfc_solution random = {0};
    s = tfc_solution_copy(&random, &found.best, f.problem);
    if (s) return fail(s);
    for (uint32_t u = 0; u < f.problem->unit_count; u++)
      random.device[u] = (tfc_device_id)tfc_random_below(&r, f.problem->device_count);
    double good_full, spent = 0;
    uint32_t count = 0;
    while (spent < 0.5) {
      struct tfc_verdict v = {0};
      double begin = tfc_now_s();
      tfc_simulate(sim, found.best.device, found.best.rank, TFC_TIME_MAX, &v);
      spent += tfc_now_s() - begin, count++;
    }
    good_full = count / spent;
    printf("{\"family\": \"%s\", \"nodes\": %u, \"edges\": %u, \"devices\": %u, \"objective\": \"%s\", "
           "\"full_per_s\": %.1f, \"delta_random_per_s\": %.1f, \"delta_random_cut_per_s\": %.1f, "
           "\"full_found_per_s\": %.1f, \"delta_found_per_s\": %.1f, \"delta_found_cut_per_s\": %.1f}\n",
           q->family, f.problem->node_count, f.graph->consumer_count, f.problem->device_count,
           tfc_objective_name(q->objective), full, trials_per_second(f.problem, &r, &random, false),
           trials_per_second(f.problem, &r, &random, true), good_full,
           trials_per_second(f.problem, &r, &found.best, false), trials_per_second(f.problem, &r, &found.best, true));
    tfc_solution_deinit(&random);
    tfc_search_outcome_deinit(&found);
    tfc_simulator_free(sim);
    family_free(&f);
  }
  return 0;
}

struct curve {
  double seconds[4096];
  int64_t value[4096];
  int count;
};
static void watch(void *user, const struct tfc_search_progress *p) {
  struct curve *c = user;
  if (p->best == TFC_TIME_MAX || !p->feasible) return;
  if (c->count && c->value[c->count - 1] <= p->best) return;
  if (c->count < 4096) c->seconds[c->count] = p->seconds, c->value[c->count++] = p->best;
}

static int solve(const char *name, struct family_problem *f, const char *algorithm, uint64_t seed, double seconds,
                 uint32_t threads) {
  static struct curve curve;
  const struct tfc_problem *p = f->problem;
  struct tfc_search_outcome o = {0};
  struct tfc_search_options options = {.settings.algorithms = algorithm,
                                       .seconds = seconds,
                                       .seed = seed,
                                       .threads = threads,
                                       .progress = watch,
                                       .user = &curve};
  double begin = tfc_now_s();
  tfc_status s = tfc_search(p, &options, &o);
  if (s) return fail(s);
  double spent = tfc_now_s() - begin;
  int64_t single = TFC_TIME_MAX;
  struct tfc_solution one = {0};
  struct tfc_simulator *sim = NULL;
  if ((s = tfc_simulator_create(p, &sim))) return fail(s);
  for (uint32_t d = 0; d < p->device_count; d++) {
    struct tfc_verdict v = {0};
    if ((s = tfc_placement_single(p, p->machine->devices[d].name, &one))) {
      tfc_status_free(s);
      continue;
    }
    tfc_simulate(sim, one.device, NULL, TFC_TIME_MAX, &v);
    if (v.value < single) single = v.value;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"problem\": \"%s\", \"nodes\": %u, \"units\": %u, \"devices\": %u, \"objective\": \"%s\", \"algorithm\": "
         "\"%s\", "
         "\"seed\": %llu, \"seconds\": %.2f, \"evaluations\": %llu, \"value_us\": %.6f, \"fits\": %s, \"single_us\": "
         "%.6f, "
         "\"bound_us\": %.6f, \"bound\": \"%s\", \"optimum_us\": %.6f, \"found_by\": \"%s\", \"rss_mb\": %.0f, "
         "\"curve\": [",
         name, p->node_count, p->unit_count, p->device_count, tfc_objective_name(p->objective), algorithm,
         (unsigned long long)seed, spent, (unsigned long long)o.evaluations, (double)o.value / 1e6,
         o.best.device && !o.excess ? "true" : "false", (double)single / 1e6, (double)o.bound.value / 1e6,
         tfc_bound_name(o.bound.kind), (double)f->optimum / 1e6, o.algorithm ? o.algorithm : "",
         (double)usage.ru_maxrss / 1024);
  for (int i = 0; i < curve.count; i++)
    printf("%s[%.2f, %.3f]", i ? ", " : "", curve.seconds[i], (double)curve.value[i] / 1e6);
  printf("]}\n");
  if (getenv("PLACEMENT_BENCH_ENTRIES"))
    for (uint32_t i = 0; i < o.entry_count; i++)
      fprintf(stderr, "  %-12s %14.3f us excess %llu, %llu evaluations, %.2f s %s\n", o.entries[i].algorithm,
              (double)o.entries[i].value / 1e6, (unsigned long long)o.entries[i].excess,
              (unsigned long long)o.entries[i].evaluations, o.entries[i].seconds,
              o.entries[i].note ? o.entries[i].note : "");
  tfc_solution_deinit(&one);
  tfc_simulator_free(sim);
  tfc_search_outcome_deinit(&o);
  return 0;
}

static void read_options(struct family_request *q, char **argv) {
  for (; *argv; argv++) {
    if (strcmp(*argv, "mixed") == 0) q->mixed = true;
    if (strncmp(*argv, "tight=", 6) == 0) q->tightness = atof(*argv + 6);
    if (strncmp(*argv, "cpus=", 5) == 0) q->cpus = (uint32_t)atoi(*argv + 5);
    if (strncmp(*argv, "graph=", 6) == 0) q->seed = (uint64_t)atoi(*argv + 6);
  }
}

int main(int argc, char **argv) {
  struct family_request q = {.seed = 1};
  struct family_problem f = {0};
  tfc_status s = NULL;
  if (argc >= 5 && strcmp(argv[1], "speed") == 0) {
    q.family = argv[2], q.nodes = (uint32_t)atoi(argv[3]), q.devices = (uint32_t)atoi(argv[4]);
    return speed(&q);
  }
  if (argc >= 10 && strcmp(argv[1], "solve") == 0) {
    q.family = argv[2], q.nodes = (uint32_t)atoi(argv[3]), q.devices = (uint32_t)atoi(argv[4]);
    if ((s = tfc_objective_parse(tfc_str_from(argv[5]), &q.objective))) return fail(s);
    read_options(&q, argv + 10);
    if ((s = family_make(&q, &f))) return fail(s);
    int code = solve(q.family, &f, argv[6], (uint64_t)atoll(argv[7]), atof(argv[8]), (uint32_t)atoi(argv[9]));
    family_free(&f);
    return code;
  }
  if (argc >= 9 && strcmp(argv[1], "graph") == 0) {
    if ((s = tfc_objective_parse(tfc_str_from(argv[4]), &q.objective))) return fail(s);
    if ((s = tfc_cost_graph_read(argv[2], &f.graph)) || (s = tfc_machine_read(argv[3], &f.machine)) ||
        (s = tfc_problem_create(f.graph, f.machine, q.objective, &f.problem)))
      return fail(s);
    int code = solve(argv[2], &f, argv[5], (uint64_t)atoll(argv[6]), atof(argv[7]), (uint32_t)atoi(argv[8]));
    family_free(&f);
    return code;
  }
  if (argc >= 7 && strcmp(argv[1], "save") == 0) {
    char path[4096];
    q.family = argv[2], q.nodes = (uint32_t)atoi(argv[3]), q.devices = (uint32_t)atoi(argv[4]);
    if ((s = tfc_objective_parse(tfc_str_from(argv[5]), &q.objective))) return fail(s);
    read_options(&q, argv + 7);
    if ((s = family_make(&q, &f))) return fail(s);
    snprintf(path, sizeof path, "%s/graph.json", argv[6]);
    if ((s = tfc_cost_graph_write(f.graph, path))) return fail(s);
    snprintf(path, sizeof path, "%s/machine.yaml", argv[6]);
    if ((s = tfc_machine_write(f.machine, path))) return fail(s);
    family_free(&f);
    return 0;
  }
  fprintf(stderr, "usage: placement_bench speed|solve|graph|save … (see the head of the source)\n");
  return 2;
}
