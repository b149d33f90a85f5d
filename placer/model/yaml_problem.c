#include "placer/model/yaml_problem.h"

#include <string.h>

tfc_status tfc_yaml_problem(const yaml_parser_t *parser) {
  static const struct {
    const char *context, *name;
  } pairs[] = {{"flow mapping", "'{'"}, {"flow sequence", "'['"}, {"quoted scalar", "quotation mark"}};
  const char *problem = parser->problem ? parser->problem : "not YAML";
  for (size_t i = 0; parser->context && i < sizeof pairs / sizeof *pairs; i++)
    if (strstr(parser->context, pairs[i].context) && parser->context_mark.line < parser->problem_mark.line)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: the %s there is not closed (line %zu: %s)",
                             parser->context_mark.line + 1, pairs[i].name, parser->problem_mark.line + 1, problem);
  return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: %s", parser->problem_mark.line + 1, problem);
}
