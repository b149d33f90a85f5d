// What is wrong with a YAML text: more of something than libyaml can read quickly, or libyaml's error message as a
// status that names the line of the file to correct.
#ifndef TFC_PLACER_MODEL_YAML_PROBLEM_H
#define TFC_PLACER_MODEL_YAML_PROBLEM_H

#include <yaml.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

// INVALID_ARGUMENT: reading the text would take too long or too much memory. The limit is named; call this before
// libyaml sees the text.
TFC_MUST_USE tfc_status tfc_yaml_check(tfc_str text);
// Returns INVALID_ARGUMENT, or RESOURCE_EXHAUSTED if memory was out. libyaml finds a bracket, brace or quotation mark
// that is never closed much later, often at the end of the file: in this case the message names the line where it was
// opened.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
