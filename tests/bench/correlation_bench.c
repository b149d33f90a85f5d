// Measures whether predictions rank placements as measurements do. For a graph, the times of COUNT / 2 random
// placements (by number of devices used) and of as many from the search's path are predicted and then measured. All are
// measured again in three more rounds, each in an order of its own, so that the readings of a placement are minutes
// apart. Prints, for the simulator with the profile's costs and for the learned model as it was before each
// measurement, Kendall's tau over pairs whose medians differ by more than their joint spread (half the distance between
// the quartiles of the readings), and the median of predicted / measured, for all and for each half. For comparison it
// prints the tau of one reading against the median of the other three, over the same pairs, as the mean over the four
// readings: a prediction that is as good as a reading cannot have more. The exit code is 1 if the simulator's tau over
// all pairs is below 0.8.
//
//   correlation_bench GRAPH [DEVICES [SECONDS [COUNT [BATCH [DATABASE]]]]]
//
// SECONDS is the time of profile and search; the rounds follow after it. If a DATABASE is given, it is not deleted.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/job/job.h"
#include "placer/measure/worker.h"
#include "profiler/statistics.h"
#include "runtime/graph/import.h"

enum { REPEATS = 3, ROUNDS = REPEATS + 1 };

static void say(void *user, const struct tfc_job_event *e) {
  (void)user;
  if (e->text) fprintf(stderr, "%s%s\n", e->warning ? "warning: " : "  ", e->text);
}

struct observations { // arrays [n], with one element for each placement
  double *prior, *learned, *measured, *spread;
  double *reading[ROUNDS], *others[ROUNDS]; // a reading, and the median of the other readings
  size_t n, rounds;                         // rounds: the number of readings that every placement has
};

static bool is_random(const struct tfc_job_pair *p) {
  return strcmp(p->algorithm, "random placement") == 0;
}

static void observe(struct observations *o, const struct tfc_job_pair *p) {
  if (isnan(p->prior_us) || isnan(p->learned_us)) return; // nothing was learned yet
  if (p->measured_count < o->rounds) o->rounds = p->measured_count;
  for (uint32_t k = 0; k < p->measured_count && k < ROUNDS; k++) {
    double others[ROUNDS];
    size_t count = 0;
    for (uint32_t i = 0; i < p->measured_count && i < ROUNDS; i++)
      if (i != k) others[count++] = p->measured_us[i];
    o->reading[k][o->n] = p->measured_us[k], o->others[k][o->n] = tfc_quartiles_of(others, count).median;
  }
  double all[ROUNDS]; // a copy, because the readings are sorted
  const size_t rounds = p->measured_count < ROUNDS ? p->measured_count : ROUNDS;
  memcpy(all, p->measured_us, rounds * sizeof *all);
  const struct tfc_quartiles q = tfc_quartiles_of(all, rounds);
  o->prior[o->n] = p->prior_us, o->learned[o->n] = p->learned_us;
  o->measured[o->n] = q.median, o->spread[o->n++] = (q.q3 - q.q1) / 2;
}

// `out_bias`: the median of predicted / measured - 1. `out_error`: the median of its absolute value.
static void errors(const double *predicted, const struct observations *o, double *out_bias, double *out_error) {
  double *x = malloc((o->n + 1) * sizeof *x);
  *out_bias = *out_error = (double)NAN;
  if (!x) return;
  for (size_t i = 0; i < o->n; i++) x[i] = predicted[i] / o->measured[i] - 1;
  *out_bias = tfc_quartiles_of(x, o->n).median;
  for (size_t i = 0; i < o->n; i++) x[i] = fabs(predicted[i] / o->measured[i] - 1);
  *out_error = tfc_quartiles_of(x, o->n).median;
  free(x);
}

// Computes tau of a reading against the other ones, over the pairs that are also used for predictions: pairs whose
// medians of all readings differ by more than their joint spread.
static double tau_of_readings(const struct observations *o) {
  double sum = 0;
  for (size_t k = 0; k < o->rounds; k++) {
    double agree = 0, pairs = 0;
    for (size_t i = 0; i < o->n; i++)
      for (size_t j = 0; j < i; j++) {
        if (!(fabs(o->measured[i] - o->measured[j]) > o->spread[i] + o->spread[j])) continue;
        const double a = o->reading[k][i] - o->reading[k][j], b = o->others[k][i] - o->others[k][j];
        agree += a * b > 0 ? 1 : a * b < 0 ? -1 : 0, pairs++;
      }
    sum += agree / pairs;
  }
  return o->n > 1 && o->rounds > 1 ? sum / (double)o->rounds : (double)NAN;
}

static double correlate(struct observations *o, const char *name) {
  size_t pairs = 0;
  double bias[2], error[2];
  const double tau = tfc_kendall_tau(o->prior, o->measured, o->spread, o->n, &pairs);
  const double learned = tfc_kendall_tau(o->learned, o->measured, o->spread, o->n, NULL);
  errors(o->prior, o, &bias[0], &error[0]);
  errors(o->learned, o, &bias[1], &error[1]);
  printf(
      "%-9s %zu placements, %zu pairs further apart than their spread\n"
      "          simulator tau %6.3f, bias %+5.1f %%, error %4.1f %%; learned tau %6.3f, bias %+5.1f %%, error %4.1f "
      "%%\n"
      "          one reading against the median of the others: tau %6.3f\n",
      name, o->n, pairs, tau, 100 * bias[0], 100 * error[0], learned, 100 * bias[1], 100 * error[1],
      tau_of_readings(o));
  return tau;
}

// Prints every placement's predictions and measurements. `out_tau`: the simulator's tau over all placements. False:
// memory is out.
static bool print(const struct tfc_job_outcome *outcome, double *out_tau) {
  size_t count = outcome->pair_count;
  // random placements, searched ones, and all
  struct observations some[3] = {{.rounds = ROUNDS}, {.rounds = ROUNDS}, {.rounds = ROUNDS}};
  bool ok = true;
  for (int i = 0; i < 3; i++) {
    double **of[] = {&some[i].prior, &some[i].learned, &some[i].measured, &some[i].spread};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) ok &= (*of[k] = calloc(count + 1, sizeof(double))) != NULL;
    for (size_t k = 0; k < ROUNDS; k++) {
      ok &= (some[i].reading[k] = calloc(count + 1, sizeof(double))) != NULL;
      ok &= (some[i].others[k] = calloc(count + 1, sizeof(double))) != NULL;
    }
  }
  printf("simulated, learned, measured (us)\n");
  for (size_t i = 0; ok && i < count; i++) {
    const struct tfc_job_pair *p = &outcome->pairs[i];
    printf("%-18s %9.0f %9.0f  ", p->algorithm, p->prior_us, p->learned_us);
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
  for (int i = 0; i < 3; i++) {
    free(some[i].prior), free(some[i].learned), free(some[i].measured), free(some[i].spread);
    for (size_t k = 0; k < ROUNDS; k++) free(some[i].reading[k]), free(some[i].others[k]);
  }
  return ok;
}

int main(int argc, char **argv) {
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  if (argc < 2) {
    fprintf(stderr, "correlation_bench GRAPH [DEVICES [SECONDS [COUNT [BATCH [DATABASE]]]]]\n");
    return 2;
  }
  char path[] = "/tmp/tfc-correlation-XXXXXX", db_path[4096];
  const bool kept = argc > 6;
  const uint32_t half = argc > 4 ? (uint32_t)atoi(argv[4]) / 2 : 25;
  int failed = 1;
  struct tfc_graph *graph = NULL;
  struct tfc_step_spec step = {0};
  struct tfc_job_outcome outcome = {0};
  tfc_status s = NULL;
  if (!mkdtemp(path)) return 1;
  if (kept)
    snprintf(db_path, sizeof db_path, "%s", argv[6]);
  else
    snprintf(db_path, sizeof db_path, "%s/t.db", path);
  TFC_TRY(s, tfc_graph_load(argv[1], NULL, &graph));
  TFC_TRY(s, tfc_step_infer(graph, &(struct tfc_step_request){.batch = argc > 5 ? atoi(argv[5]) : 32}, &step));
  struct tfc_job_options options = {.program = "correlation_bench",
                                    .command = argv[1],
                                    .graph_path = argv[1],
                                    .graph = graph,
                                    .step = &step,
                                    .devices = argc > 2 ? argv[2] : "4",
                                    .seconds = argc > 3 ? atof(argv[3]) : 900,
                                    .measurements = 2 * half,
                                    .random_first = half,
                                    .repeats = REPEATS,
                                    .evaluations = 3000, // a round of search takes seconds, and most time goes to steps
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
