// Linear and integer programs, solved by CBC. A row means  low <= sum of coefficient * variable <= high.  Internal to
// the placer.
//
// CBC aborts its process when one of its own assertions fails, which badly scaled programs can cause, and it may miss
// its time limit. So each program is solved in a forked process; if that process dies, the program is solved once more
// without cuts, heuristics and presolve. Any thread may call. (The allocators of sanitizers do not survive a fork in a
// process with threads: under a sanitizer, programs are solved in this process, one at a time.)
#ifndef TFC_PLACER_EXACT_SOLVER_H
#define TFC_PLACER_EXACT_SOLVER_H

#include <stdatomic.h>

#include "runtime/base/array.h"
#include "runtime/base/status.h"

struct tfc_program {                   // minimised
  TFC_ARRAY(double) cost, low, high;   // [variable]
  TFC_ARRAY(char) whole;               // [variable] 1: must be an integer
  TFC_ARRAY(double) row_low, row_high; // [row]
  TFC_ARRAY(int) row_first;            // [row] index into column and value
  TFC_ARRAY(int) column;
  TFC_ARRAY(double) value;
  bool failed; // memory ran out
};
int tfc_program_variable(struct tfc_program *program, double cost, double low, double high, bool whole);
void tfc_program_row(struct tfc_program *program, double low, double high);           // begins a row
void tfc_program_term(struct tfc_program *program, int variable, double coefficient); // adds to the last row
void tfc_program_deinit(struct tfc_program *program);

struct tfc_program_limits {
  double seconds;            // 0: none
  int nodes;                 // the most nodes of the search tree; 0: no limit
  const double *start;       // [variable] a feasible assignment to begin with, or NULL
  const atomic_bool *cancel; // or NULL
};
struct tfc_program_answer {
  double *x;    // [variable], the caller frees it; NULL: no solution was found
  double value; // of x
  double bound; // no solution is below it; -INFINITY: not known
  bool optimal, infeasible;
  bool gave_up; // the solver crashed, or was killed after its time limit: there is no result
};
TFC_MUST_USE tfc_status tfc_program_solve(const struct tfc_program *program, const struct tfc_program_limits *limits,
                                          struct tfc_program_answer *out);

#endif
