// Does the simulator order placements as measuring does? On a graph, 25 random placements (by number of devices used)
// and 25 from the search's path are simulated, measured, and correlated: Kendall's tau over pairs that differ by more
// than their joint spread, for all and for each half. Exit 1 where the whole is below 0.8.
//
//   correlation_bench GRAPH [DEVICES [SECONDS [DATABASE]]]
//
// A DATABASE that is given is kept.
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/job/job.h"
#include "profiler/statistics.h"
#include "runtime/graph/import.h"

enum { HALF = 25, MOST = 4096 };

static void say(void *user, const struct tfc_job_event *e) {
  (void)user;
  if (e->text) fprintf(stderr, "%s%s\n", e->warning ? "warning: " : "  ", e->text);
}

// tau over the candidates that `where` selects; prints a line.
static double correlate(sqlite3 *db, long long run, const char *name, const char *where) {
  static double x[MOST], y[MOST], spread[MOST];
  char sql[512];
  size_t n = 0, pairs = 0;
  sqlite3_stmt *q = NULL;
  snprintf(sql, sizeof sql,
           "SELECT simulated_us, step_median_us, (step_q3_us - step_q1_us) / 2 FROM v_episode"
           " WHERE run_id = %lld AND state = 'ok' AND %s",
           run, where);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) return (double)NAN;
  for (; sqlite3_step(q) == SQLITE_ROW && n < MOST; n++) {
    x[n] = sqlite3_column_double(q, 0), y[n] = sqlite3_column_double(q, 1);
    spread[n] = sqlite3_column_double(q, 2);
  }
  sqlite3_finalize(q);
  double tau = tfc_kendall_tau(x, y, spread, n, &pairs);
  printf("%-9s tau %6.3f  over %zu placements, %zu pairs further apart than their spread\n", name, tau, n, pairs);
  return tau;
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
  sqlite3 *db = NULL;
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
                                    .no_early_stop = true,
                                    .seed = 1,
                                    .database = db_path,
                                    .event = say};
  TFC_TRY(s, tfc_job_run(&options, &outcome));
  if (sqlite3_open_v2(db_path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: %s", db_path, sqlite3_errmsg(db));
  printf("%s, %u devices\n", argv[1], outcome.device_count);
  correlate(db, (long long)outcome.run, "random", "algorithm = 'random placement'");
  correlate(db, (long long)outcome.run, "searched", "algorithm <> 'random placement'");
  failed = !(correlate(db, (long long)outcome.run, "all", "1") >= 0.8);
out:
  if (s) fprintf(stderr, "correlation_bench: %s\n", tfc_status_message(s));
  tfc_status_free(s);
  sqlite3_close(db);
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
