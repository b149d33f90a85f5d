#include "placer/solver.h"

#include <Cbc_C_Interface.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

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

tfc_status tfc_program_solve(const struct tfc_program *p, const struct tfc_program_limits *limits,
                             struct tfc_program_answer *out) {
  tfc_status s = NULL;
  Cbc_Model *model = NULL;
  const int columns = (int)p->cost.count, rows = (int)p->row_low.count, terms = (int)p->column.count;
  // CBC takes columns: count, then place.
  int *start = calloc((size_t)columns + 2, sizeof *start), *index = malloc(sizeof *index * ((size_t)terms + 1));
  double *value = malloc(sizeof *value * ((size_t)terms + 1)), *x = NULL;
  struct tfc_program_answer answer = {.bound = -INFINITY};
  char text[32];
  bool integer = false;
  pthread_mutex_lock(&one_at_a_time);
  if (p->failed || !start || !index || !value) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a program");
  for (int i = 0; i < terms; i++) start[p->column.data[i] + 2]++;
  for (int c = 0; c < columns; c++) start[c + 2] += start[c + 1];
  for (int r = 0; r < rows; r++)
    for (int i = p->row_first.data[r]; i < (r + 1 < rows ? p->row_first.data[r + 1] : terms); i++) {
      int at = start[p->column.data[i] + 1]++;
      index[at] = r, value[at] = p->value.data[i];
    }
  model = Cbc_newModel();
  if (!model) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a program");
  Cbc_setLogLevel(model, 0);
  Cbc_setParameter(model, "logLevel", "0");
  Cbc_loadProblem(model, columns, rows, start, index, value, p->low.data, p->high.data, p->cost.data, p->row_low.data,
                  p->row_high.data);
  Cbc_setObjSense(model, 1);
  for (int c = 0; c < columns; c++)
    if (p->whole.data[c]) Cbc_setInteger(model, c), integer = true;
  if (limits->seconds > 0) {
    snprintf(text, sizeof text, "%.3f", limits->seconds);
    Cbc_setParameter(model, "seconds", text);
    Cbc_setParameter(model, "timeMode", "elapsed");
  }
  if (limits->nodes > 0) {
    snprintf(text, sizeof text, "%d", limits->nodes);
    Cbc_setParameter(model, "maxNodes", text);
  }
  Cbc_setParameter(model, "threads", "0");
  if (integer && limits->start) Cbc_setInitialSolution(model, limits->start);
  Cbc_solve(model);
  answer.optimal = Cbc_isProvenOptimal(model) != 0;
  answer.infeasible = Cbc_isProvenInfeasible(model) != 0;
  answer.bound = answer.optimal ? Cbc_getObjValue(model) : integer ? Cbc_getBestPossibleObjValue(model) : -INFINITY;
  bool has = answer.optimal || (integer && Cbc_numberSavedSolutions(model) > 0);
  const double *solution = has ? Cbc_getColSolution(model) : NULL;
  if (solution) {
    x = malloc(sizeof *x * ((size_t)columns + 1));
    if (!x) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a program");
    memcpy(x, solution, sizeof *x * (size_t)columns);
    answer.x = x, answer.value = Cbc_getObjValue(model);
  }
  *out = answer;
out:
  if (model) Cbc_deleteModel(model);
  pthread_mutex_unlock(&one_at_a_time);
  free(start), free(index), free(value);
  return s;
}
