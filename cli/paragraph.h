// Paragraph: text for people, broken into lines between words.
#ifndef TFC_CLI_PARAGRAPH_H
#define TFC_CLI_PARAGRAPH_H

#include <stdio.h>

enum { CLI_COLUMNS = 80 }; // width of texts on stdout
// Prints `text` and ends the line. `column` characters of the first line have already been printed; further lines begin
// with `indent` spaces. Line breaks in `text` are kept. A word that is longer than a line is not divided.
void cli_paragraph(FILE *out, const char *text, int column, int indent, int width);

#endif
