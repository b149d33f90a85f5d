#include "placer/model/yaml_problem.h"

#include <string.h>

// Limits for what makes libyaml slow or large: its time grows with the square of the number of open brackets, of
// anchors and of directives, and each value takes about 200 bytes of its memory. The check counts characters without
// parsing, so those in strings and comments count, too; machine and settings files have far fewer than these limits.
enum { MOST_BYTES = 8 << 20, MOST_BRACKETS = 256, MOST_MARKS = 256, MOST_ANCHORS = 256, MOST_DIRECTIVES = 256 };

// An anchor is a word that begins with "&"; a directive is the first word of a line and begins with "%". These
// functions get the byte before that character. A byte from 0x7f on may be the end of a space or line end of several
// bytes.
static bool begins_word(unsigned char before) {
  return before <= ' ' || before >= 0x7f || strchr("[{,:-?", before);
}
static bool begins_line(unsigned char before) {
  return before < ' ' || before >= 0x7f;
}

tfc_status tfc_yaml_check(tfc_str text) {
  int open = 0, anchors = 0, directives = 0, marks = 0;
  size_t line = 1;
  if (text.size > MOST_BYTES)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the file is larger than %d MiB", MOST_BYTES >> 20);
  for (size_t i = 0; i < text.size; i++) {
    const unsigned char before = i ? (unsigned char)text.data[i - 1] : '\n';
    line += text.data[i] == '\n';
    open += text.data[i] == '[' || text.data[i] == '{';
    open -= open > 0 && (text.data[i] == ']' || text.data[i] == '}');
    anchors += text.data[i] == '&' && begins_word(before);
    directives += text.data[i] == '%' && begins_line(before);
    const unsigned char after = i + 1 < text.size ? (unsigned char)text.data[i + 1] : '\n';
    // "- - - -" and "? ? ? ?" open a list or a mapping with each mark
    marks += (text.data[i] == '-' || text.data[i] == '?') && (before <= ' ' || before >= 0x7f) && after <= ' ';
    if (text.data[i] == '\n') marks = 0;
    if (marks > MOST_MARKS)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: more than %d '-' and '?' that open a list or a mapping",
                             line, MOST_MARKS);
    if (open > MOST_BRACKETS)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: more than %d brackets are open", line, MOST_BRACKETS);
    if (anchors > MOST_ANCHORS)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: more than %d anchors ('&')", line, MOST_ANCHORS);
    if (directives > MOST_DIRECTIVES)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: more than %d directives ('%%')", line, MOST_DIRECTIVES);
  }
  return NULL;
}

tfc_status tfc_yaml_problem(const yaml_parser_t *parser) {
  static const struct {
    const char *context, *name;
  } pairs[] = {{"flow mapping", "'{'"}, {"flow sequence", "'['"}, {"quoted scalar", "quotation mark"}};
  if (parser->error == YAML_MEMORY_ERROR) return tfc_status_no_memory("YAML");
  const char *problem = parser->problem ? parser->problem : "not YAML";
  for (size_t i = 0; parser->context && i < sizeof pairs / sizeof *pairs; i++)
    if (strstr(parser->context, pairs[i].context) && parser->context_mark.line < parser->problem_mark.line)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: the %s there is not closed (line %zu: %s)",
                             parser->context_mark.line + 1, pairs[i].name, parser->problem_mark.line + 1, problem);
  return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: %s", parser->problem_mark.line + 1, problem);
}
