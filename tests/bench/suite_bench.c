// tfc's side of `scripts/bench peers --suite`: runs a model that tests/bench/models.py made, line by line on stdin.
//
//   suite_bench FOLDER exact|all    on one CPU device of the cores that this process may use
//
// "first N DIR" runs N steps and writes each fetch of step k to DIR/<k>_<fetch>.npy; "run N" answers with N wall times
// of the run call in microseconds and the CPU time of them all on one line; "info" with one line of JSON: the process's
// peak resident memory and the plan's operations.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/program.h"
#include "runtime/base/clock.h"
#include "runtime/io/npy.h"
#include "tests/bench/suite_model.h"

// Runs step k. `folder`: where its fetches are written; NULL: nowhere.
static tfc_status step(struct suite_model *m, long k, const char *folder, double *out_us) {
  int64_t begin = tfc_now_ns();
  TFC_RETURN_IF_ERROR(tfc_plan_run(m->plan, m->values, m->fetched, NULL));
  *out_us = (double)(tfc_now_ns() - begin) / 1e3;
  tfc_status s = NULL;
  for (uint32_t i = 0; i < m->fetch_count; i++) {
    char *file = folder ? tfc_format("%s/%ld_%u.npy", folder, k, i) : NULL;
    if (file && !s) s = tfc_npy_write(file, &m->fetched[i]);
    free(file);
    tfc_tensor_release(&m->fetched[i]);
  }
  return s;
}

static long long peak_resident(void) {
  char line[256];
  long long kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1) break;
  if (f) fclose(f);
  return kilobytes * 1024;
}

static double cpu_us(void) { // of all threads of the process
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "suite_bench FOLDER exact|all\n");
    return 2;
  }
  static struct suite_model m;
  tfc_program_choose_blas();
  tfc_status s = NULL;
  char line[4096];
  TFC_TRY(s, suite_model_open(argv[1], argv[2], TFC_ADAPT_WHERE_FASTER, &m));
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    char *end = line;
    double us;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "run ", 4) == 0) {
      const double cpu = cpu_us();
      for (long n = strtol(line + 4, NULL, 10); n > 0; n--) {
        TFC_TRY(s, step(&m, 0, NULL, &us));
        printf("%.3f ", us);
      }
      printf("%.3f\n", cpu_us() - cpu);
    } else if (strncmp(line, "first ", 6) == 0) {
      long n = strtol(line + 6, &end, 10);
      for (long k = 0; k < n; k++) TFC_TRY(s, step(&m, k, end + strspn(end, " "), &us));
      printf("ready\n");
    } else if (strcmp(line, "info") == 0) {
      printf("{\"peak_resident\": %lld, \"operations\": %u, \"static\": %s}\n", peak_resident(),
             tfc_plan_info(m.plan)->op_count, tfc_plan_info(m.plan)->is_static ? "true" : "false");
    }
    fflush(stdout);
  }
out:
  if (s) {
    printf("error %s\n", tfc_status_message(s));
    fprintf(stderr, "suite_bench: %s\n", tfc_status_message(s));
  }
  suite_model_close(&m);
  int code = s ? 1 : 0;
  tfc_status_free(s);
  return code;
}
