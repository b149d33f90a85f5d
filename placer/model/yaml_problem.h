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
// Turns libyaml's error into a status: INVALID_ARGUMENT, or RESOURCE_EXHAUSTED if there was no memory. If a bracket,
// brace or quotation mark is never closed, libyaml reports a much later line, often the last one; the status names the
// line of the bracket, brace or mark instead.
TFC_MUST_USE tfc_status tfc_yaml_problem(const yaml_parser_t *parser);

#endif
