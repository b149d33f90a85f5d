// For suites that call functions of a program in their own process.
#ifndef TFC_TESTS_CLI_IN_PROCESS_H
#define TFC_TESTS_CLI_IN_PROCESS_H

#include <stdlib.h>

#include "cli/program.h"

// What the program's main() does first.
static inline void test_program_start(const char *name) {
  unsetenv("OPENBLAS_CORETYPE"); // if it is set, the program starts itself again
  tfc_program_start(name, NULL);
}

#endif
