// Turns libyaml's error message into a status that names the line of the file to correct.
#ifndef TFC_PLACER_MODEL_YAML_PROBLEM_H
#define TFC_PLACER_MODEL_YAML_PROBLEM_H

#include <yaml.h>

#include "runtime/base/status.h"

// Returns INVALID_ARGUMENT. libyaml finds a bracket, brace or quotation mark that is never closed much later, often at
// the end of the file: in this case the message names the line where it was opened.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
