// Saves and restores the variables of a graph whose nodes may be in several tasks. One step fetches the values of all
// variables to save them. To restore them, a step runs the assignments that initialise them, and feeds these the values
// of the checkpoint.
#ifndef TFC_CLI_RUN_VARIABLES_H
#define TFC_CLI_RUN_VARIABLES_H

#include "cli/run.h"
#include "runtime/base/array.h"

struct run_variable {
  tfc_str name;
  struct tfc_output value; // the output that is fetched to save the variable; TFC_NO_OUTPUT: nothing reads it
  uint32_t assign;         // the node that initialises the variable; TFC_NONE: no node does
  struct tfc_output given; // the tensor that `assign` assigns; TFC_NO_OUTPUT: `assign` is TFC_NONE
  bool copy;               // it is a replica's copy of the variable `name`
};
typedef TFC_ARRAY(struct run_variable) run_variables; // free it with tfc_array_free

// Finds the variables that checkpoints contain, or, if `local`, the others: local variables, which TensorFlow does not
// save. Local variables that cannot be fetched or assigned are left out.
TFC_MUST_USE tfc_status run_variables_find(const struct run_setup *setup, bool local, run_variables *out);
// Restores the variables from a checkpoint. *out_count: the number of variables of the graph; *out_restored: how many
// of them the checkpoint contains. If `all`, the checkpoint has to contain every variable. If not, it has to contain at
// least one, and variables that it does not contain keep their values. Otherwise the error is INVALID_ARGUMENT.
TFC_MUST_USE tfc_status run_variables_restore(const struct run_setup *setup, const char *prefix, bool all,
                                              size_t *out_restored, size_t *out_count);
// Writes a checkpoint of the variables; *out_count: their number. `some`: those without a value are left out, because
// nothing has initialised them; otherwise one is an error. A signal does not break it off (tfc_program_finish_steps).
TFC_MUST_USE tfc_status run_variables_save(const struct run_setup *setup, const char *prefix, bool some,
                                           size_t *out_count);

#endif
