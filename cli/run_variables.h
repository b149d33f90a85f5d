// The variables of a graph whose nodes may be in several tasks: they are saved by fetching them, and restored by
// running their own initial assignments with fed values.
#ifndef TFC_CLI_RUN_VARIABLES_H
#define TFC_CLI_RUN_VARIABLES_H

#include "cli/run.h"
#include "runtime/base/array.h"

struct run_variable {
  tfc_str name;
  struct tfc_output value; // the output that is fetched to save the variable; TFC_NO_OUTPUT: nothing reads it
  uint32_t assign;         // the variable's first assignment, and the tensor that it assigns; TFC_NONE: nothing does
  struct tfc_output given;
  bool copy; // it is a replica's copy of the variable `name`
};
typedef TFC_ARRAY(struct run_variable) run_variables; // free it with tfc_array_free

// Finds the variables that a checkpoint keeps, or those that are local.
TFC_MUST_USE tfc_status run_variables_find(const struct run_setup *setup, bool local, run_variables *out);
// Gives every variable that the checkpoint has its value; *out_restored: how many of *out_count. `all`: one that the
// checkpoint does not have is an error, otherwise it is one only if no variable is there.
TFC_MUST_USE tfc_status run_variables_restore(const struct run_setup *setup, const char *prefix, bool all,
                                              size_t *out_restored, size_t *out_count);
// Writes a checkpoint; a signal does not break it off (tfc_program_finish_steps).
TFC_MUST_USE tfc_status run_variables_save(const struct run_setup *setup, const char *prefix, size_t *out_count);

#endif
