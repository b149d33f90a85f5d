// Statuses for YAML texts: of a text that libyaml would read too slowly, and of a text that libyaml cannot read.
// Messages name the line of the file to correct.
#ifndef TFC_PLACER_MODEL_YAML_PROBLEM_H
#define TFC_PLACER_MODEL_YAML_PROBLEM_H

#include <yaml.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

// Checks a text before libyaml reads it. INVALID_ARGUMENT: libyaml would need too much time or memory; the message says
// which limit the text exceeds.
TFC_MUST_USE tfc_status tfc_yaml_check(tfc_str text);
// Returns INVALID_ARGUMENT, or RESOURCE_EXHAUSTED if there was no memory. libyaml finds a bracket, brace or quotation
// mark that is never closed much later, often at the end of the file: in this case the message names the line where it
// was opened.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
