// libyaml's error message as a status, with the line of the file that has to be corrected.
#ifndef TFC_PLACER_MODEL_YAML_PROBLEM_H
#define TFC_PLACER_MODEL_YAML_PROBLEM_H

#include <yaml.h>

#include "runtime/base/status.h"

// INVALID_ARGUMENT. A bracket, brace or quotation mark that is never closed is detected much later, often at the end of
// the file: the message names the line where it was opened first.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
