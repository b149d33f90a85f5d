// Does the simulator order placements as measuring does? On a graph, 25 random placements (by number of devices used)
// and 25 from the search's path are simulated and measured, and what was measured is measured again in three more
// rounds, each in an order of its own, so that the readings of a placement are minutes apart. Kendall's tau over pairs
// whose medians differ by more than their joint spread (half the distance between the quartiles of the readings), for
// all and for each half, by what was simulated before a placement was measured; beside it, by the costs as they are
// after the search. Exit 1 where the whole is below 0.8.
//
//   correlation_bench GRAPH [DEVICES [SECONDS [DATABASE]]]
//
// SECONDS are profile and search; the rounds come after. A DATABASE that is given is kept.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/job/job.h"
#include "profiler/statistics.h"
#include "runtime/graph/import.h"

enum { HALF = 25, REPEATS = 3 };

static void say(void *user, const struct tfc_job_event *e) {
  (void)user;
  if (e->text) fprintf(stderr, "%s%s\n", e->warning ? "warning: " : "  ", e->text);
}

struct observations { // [n], of each placement
  double *predicted, *simulated, *measured, *spread;
  size_t n;
};

static bool is_random(const struct tfc_job_pair *p) {
  return strcmp(p->algorithm, "random placement") == 0;
}

static void observe(struct observations *o, const struct tfc_job_pair *p) {
  struct tfc_quartiles q = tfc_quartiles_of(p->measured_us, p->measured_count); // sorts them
  o->predicted[o->n] = p->predicted_us, o->simulated[o->n] = p->simulated_us;
  o->measured[o->n] = q.median, o->spread[o->n++] = (q.q3 - q.q1) / 2;
}

static double correlate(struct observations *o, const char *name) {
  size_t pairs = 0;
  double tau = tfc_kendall_tau(o->predicted, o->measured, o->spread, o->n, &pairs);
  double later = tfc_kendall_tau(o->simulated, o->measured, o->spread, o->n, NULL);
  printf("%-9s tau %6.3f  over %zu placements, %zu pairs further apart than their spread (by the costs at the end"
         " %.3f)\n",
         name, tau, o->n, pairs, later);
  return tau;
}

// Prints all, and tau; false: not known.
static bool print(const struct tfc_job_outcome *outcome, double *out_tau) {
  size_t count = outcome->pair_count;
  struct observations some[3] = {{0}}; // random, searched, all
  bool ok = true;
  for (int i = 0; i < 3; i++) {
    double **of[] = {&some[i].predicted, &some[i].simulated, &some[i].measured, &some[i].spread};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) ok &= (*of[k] = calloc(count + 1, sizeof(double))) != NULL;
  }
  printf("predicted, simulated at the end, measured (us)\n");
  for (size_t i = 0; ok && i < count; i++) {
    const struct tfc_job_pair *p = &outcome->pairs[i];
    printf("%-18s %9.0f %9.0f  ", p->algorithm, p->predicted_us, p->simulated_us);
    for (uint32_t k = 0; k < p->measured_count; k++) printf(" %9.0f", p->measured_us[k]);
    printf("\n");
    observe(&some[!is_random(p)], p);
    observe(&some[2], p);
  }
  if (ok) {
    correlate(&some[0], "random");
    correlate(&some[1], "searched");
    *out_tau = correlate(&some[2], "all");
  }
  for (int i = 0; i < 3; i++)
    free(some[i].predicted), free(some[i].simulated), free(some[i].measured), free(some[i].spread);
  return ok;
}

int main(int argc, char **argv) {
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  if (argc < 2) {
    fprintf(stderr, "correlation_bench GRAPH [DEVICES [SECONDS [DATABASE]]]\n");
    return 2;
  }
  char path[] = "/tmp/tfc-correlation-XXXXXX", db_path[4096];
  const bool kept = argc > 4;
  int failed = 1;
  struct tfc_graph *graph = NULL;
  struct tfc_step_spec step = {0};
  struct tfc_job_outcome outcome = {0};
  tfc_status s = NULL;
  if (!mkdtemp(path)) return 1;
  if (kept)
    snprintf(db_path, sizeof db_path, "%s", argv[4]);
  else
    snprintf(db_path, sizeof db_path, "%s/t.db", path);
  TFC_TRY(s, tfc_graph_load(argv[1], NULL, &graph));
  TFC_TRY(s, tfc_step_infer(graph, &(struct tfc_step_request){.batch = 32}, &step));
  struct tfc_job_options options = {.program = "correlation_bench",
                                    .command = argv[1],
                                    .graph_path = argv[1],
                                    .graph = graph,
                                    .step = &step,
                                    .devices = argc > 2 ? argv[2] : "4",
                                    .seconds = argc > 3 ? atof(argv[3]) : 900,
                                    .measurements = 2 * HALF,
                                    .random_first = HALF,
                                    .repeats = REPEATS,
                                    .no_early_stop = true,
                                    .execution.seed = 1,
                                    .database = db_path,
                                    .event = say};
  TFC_TRY(s, tfc_job_run(&options, &outcome));
  double tau = NAN;
  printf("%s, %u devices\n", argv[1], outcome.device_count);
  failed = !print(&outcome, &tau) || !(tau >= 0.8);
out:
  if (s) fprintf(stderr, "correlation_bench: %s\n", tfc_status_message(s));
  tfc_status_free(s);
  tfc_job_outcome_deinit(&outcome);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(graph);
  if (!kept) {
    unlink(db_path);
    strcat(db_path, ".lock");
    unlink(db_path);
  }
  rmdir(path);
  return failed;
}
