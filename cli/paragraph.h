// Paragraph: text for people, broken into lines between words.
#ifndef TFC_CLI_PARAGRAPH_H
#define TFC_CLI_PARAGRAPH_H

#include <stdio.h>

enum { CLI_COLUMNS = 80 }; // width of texts on stdout
// Prints `text` and ends the line. The first word stands where `column` characters have been printed, further lines
// begin with `indent` spaces; a line's end in `text` is kept. A word that is longer than a line is not broken.
void cli_paragraph(FILE *out, const char *text, int column, int indent, int width);

#endif
