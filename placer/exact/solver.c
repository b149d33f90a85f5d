#include "placer/exact/solver.h"

#include <Cbc_C_Interface.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

#define OVERTIME_SECONDS 2.0 // CBC looks at its clock only between its own stages
// the most seconds for a program that is limited by nodes, so that no program runs without end
#define MOST_SECONDS 600.0

int tfc_program_variable(struct tfc_program *p, double cost, double low, double high, bool whole) {
  if (!tfc_array_push(&p->cost, cost) || !tfc_array_push(&p->low, low) || !tfc_array_push(&p->high, high) ||
      !tfc_array_push(&p->whole, (char)whole))
    p->failed = true;
  return (int)p->cost.count - 1;
}

void tfc_program_row(struct tfc_program *p, double low, double high) {
  if (!tfc_array_push(&p->row_low, low) || !tfc_array_push(&p->row_high, high) ||
      !tfc_array_push(&p->row_first, (int)p->column.count))
    p->failed = true;
}

void tfc_program_term(struct tfc_program *p, int variable, double coefficient) {
  if (!tfc_array_push(&p->column, variable) || !tfc_array_push(&p->value, coefficient)) p->failed = true;
}

void tfc_program_deinit(struct tfc_program *p) {
  tfc_array_free(&p->cost);
  tfc_array_free(&p->low);
  tfc_array_free(&p->high);
  tfc_array_free(&p->whole);
  tfc_array_free(&p->row_low);
  tfc_array_free(&p->row_high);
  tfc_array_free(&p->row_first);
  tfc_array_free(&p->column);
  tfc_array_free(&p->value);
}

// The answer of the solving process, in memory that both processes can access.
struct result {
  struct tfc_program_answer answer; // without x
  bool has;                         // x is a solution
  double x[];                       // [variable]
};

// The program column by column, as CBC takes it.
struct columns {
  int *start, *row;
  double *value;
};

// first counts the terms of each column, then stores them
static bool turn(const struct tfc_program *p, struct columns *out) {
  const int columns = (int)p->cost.count, rows = (int)p->row_low.count, terms = (int)p->column.count;
  int *start = out->start = calloc((size_t)columns + 2, sizeof *start);
  out->row = malloc(sizeof *out->row * ((size_t)terms + 1));
  out->value = malloc(sizeof *out->value * ((size_t)terms + 1));
  if (!start || !out->row || !out->value) return false;
  for (int i = 0; i < terms; i++) start[p->column.data[i] + 2]++;
  for (int c = 0; c < columns; c++) start[c + 2] += start[c + 1];
  for (int r = 0; r < rows; r++)
    for (int i = p->row_first.data[r]; i < (r + 1 < rows ? p->row_first.data[r + 1] : terms); i++) {
      int at = start[p->column.data[i] + 1]++;
      out->row[at] = r, out->value[at] = p->value.data[i];
    }
  return true;
}

// `plain` leaves out cuts, heuristics and presolve, which have most of CBC's assertions.
static void solve(const struct tfc_program *p, const struct columns *by_column, const struct tfc_program_limits *limits,
                  double seconds, bool plain, struct result *out) {
  const int columns = (int)p->cost.count;
  char text[32];
  bool integer = false;
  Cbc_Model *model = Cbc_newModel();
  if (!model) return;
  Cbc_setLogLevel(model, 0);
  Cbc_setParameter(model, "logLevel", "0");
  Cbc_loadProblem(model, columns, (int)p->row_low.count, by_column->start, by_column->row, by_column->value,
                  p->low.data, p->high.data, p->cost.data, p->row_low.data, p->row_high.data);
  Cbc_setObjSense(model, 1);
  for (int c = 0; c < columns; c++)
    if (p->whole.data[c]) Cbc_setInteger(model, c), integer = true;
  if (seconds > 0) {
    snprintf(text, sizeof text, "%.3f", seconds);
    Cbc_setParameter(model, "seconds", text);
    Cbc_setParameter(model, "timeMode", "elapsed");
  }
  if (limits->nodes > 0) {
    snprintf(text, sizeof text, "%d", limits->nodes);
    Cbc_setParameter(model, "maxNodes", text);
  }
  Cbc_setParameter(model, "threads", "0");
  if (plain) {
    Cbc_setParameter(model, "preprocess", "off");
    Cbc_setParameter(model, "cuts", "off");
    Cbc_setParameter(model, "heuristics", "off");
  }
  if (integer && limits->start) Cbc_setInitialSolution(model, limits->start);
  Cbc_solve(model);
  struct tfc_program_answer answer = {.optimal = Cbc_isProvenOptimal(model) != 0,
                                      .infeasible = Cbc_isProvenInfeasible(model) != 0};
  answer.bound = answer.optimal ? Cbc_getObjValue(model) : integer ? Cbc_getBestPossibleObjValue(model) : -INFINITY;
  answer.value = Cbc_getObjValue(model);
  const double *solution =
      answer.optimal || (integer && Cbc_numberSavedSolutions(model) > 0) ? Cbc_getColSolution(model) : NULL;
  if (solution) memcpy(out->x, solution, sizeof *out->x * (size_t)columns);
  out->has = solution != NULL;
  out->answer = answer;
  Cbc_deleteModel(model);
}

static bool cancelled(const struct tfc_program_limits *limits) {
  return limits->cancel && atomic_load_explicit(limits->cancel, memory_order_relaxed);
}

#ifdef TFC_SANITIZED
// Under a sanitizer: solves the program in this process; other threads wait for their turn (see solver.h).
static tfc_status solve_apart(const struct tfc_program *p, const struct columns *by_column,
                              const struct tfc_program_limits *limits, struct result *result, bool *out_gave_up) {
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  if (cancelled(limits)) return *out_gave_up = true, NULL;
  pthread_mutex_lock(&one_at_a_time);
  solve(p, by_column, limits, limits->seconds, false, result);
  pthread_mutex_unlock(&one_at_a_time);
  return NULL;
}
#else
// Waits for the solving process. False: it did not end normally.
static bool wait_for(pid_t pid, const struct tfc_program_limits *limits, double deadline) {
  int state = 0;
  for (long pause = 50000;; pause = pause < 5000000 ? pause * 2 : pause) {
    const pid_t gone = waitpid(pid, &state, WNOHANG);
    if (gone == pid) return WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (gone < 0 && errno != EINTR) return false;
    // the next iteration collects its exit status
    if (tfc_now_s() > deadline || cancelled(limits)) kill(pid, SIGKILL);
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
  }
}

static tfc_status solve_apart(const struct tfc_program *p, const struct columns *by_column,
                              const struct tfc_program_limits *limits, struct result *result, bool *out_gave_up) {
  const double begin = tfc_now_s();
  for (int attempt = 0; attempt < 2; attempt++) {
    const double left = limits->seconds > 0 ? limits->seconds - (tfc_now_s() - begin) : 0;
    if (attempt && limits->seconds > 0 && left < 0.05) break;
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "no process for a program: %s", strerror(errno));
    if (!pid) {
      // This process ends with its parent, and writes no core file if an assertion fails.
      prctl(PR_SET_PDEATHSIG, SIGKILL), prctl(PR_SET_DUMPABLE, 0);
      if (getppid() != parent) _exit(1);
      signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_DFL), signal(SIGABRT, SIG_DFL);
      const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); // hides the message of a failed assertion
      if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO);
      solve(p, by_column, limits, left, attempt, result);
      _exit(0);
    }
    *out_gave_up =
        !wait_for(pid, limits, begin + (limits->seconds > 0 ? limits->seconds : MOST_SECONDS) + OVERTIME_SECONDS);
    if (!*out_gave_up || cancelled(limits)) break;
  }
  return NULL;
}
#endif

tfc_status tfc_program_solve(const struct tfc_program *p, const struct tfc_program_limits *limits,
                             struct tfc_program_answer *out) {
  tfc_status s = NULL;
  struct columns by_column = {0};
  struct result *result = MAP_FAILED;
  const size_t bytes = sizeof *result + sizeof *result->x * p->cost.count;
  *out = (struct tfc_program_answer){.bound = -INFINITY};
  if (p->failed || !turn(p, &by_column)) TFC_TRY(s, tfc_status_no_memory("a program"));
  result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (result == MAP_FAILED) TFC_TRY(s, tfc_status_no_memory("a program"));
  TFC_TRY(s, solve_apart(p, &by_column, limits, result, &out->gave_up));
  if (out->gave_up) goto out;
  *out = result->answer;
  if (result->has) {
    out->x = malloc(sizeof *out->x * (p->cost.count + 1));
    if (!out->x) TFC_TRY(s, tfc_status_no_memory("a program"));
    memcpy(out->x, result->x, sizeof *out->x * p->cost.count);
  }
out:
  if (result != MAP_FAILED) munmap(result, bytes);
  free(by_column.start), free(by_column.row), free(by_column.value);
  return s;
}
