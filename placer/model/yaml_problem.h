// What libyaml found wrong with a file, said with the line that has to be mended.
#ifndef TFC_PLACER_MODEL_YAML_PROBLEM_H
#define TFC_PLACER_MODEL_YAML_PROBLEM_H

#include <yaml.h>

#include "runtime/base/status.h"

// INVALID_ARGUMENT. A bracket, brace or quotation mark that is never closed is found much later, often at the end of
// the file: the line where it was opened comes first.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
