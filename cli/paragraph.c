#include "cli/paragraph.h"

#include <stdbool.h>
#include <string.h>

static int characters(const char *text, size_t size) { // of UTF-8
  int count = 0;
  for (size_t i = 0; i < size; i++) count += (text[i] & 0xC0) != 0x80;
  return count;
}

void cli_paragraph(FILE *out, const char *text, int column, int indent, int width) {
  int begin = column;
  while (*text) {
    if (*text == '\n') {
      if (text[1]) fprintf(out, "\n%*s", indent, "");
      column = begin = indent, text++;
      continue;
    }
    const size_t size = strcspn(text, " \n");
    const int word = characters(text, size);
    const bool starts = column == begin; // no word is on this line yet
    if (column + !starts + word > width && (!starts || begin > indent)) {
      fprintf(out, "\n%*s", indent, "");
      column = begin = indent;
    }
    if (column > begin) fputc(' ', out), column++;
    fwrite(text, 1, size, out);
    column += word, text += size;
    text += strspn(text, " ");
  }
  fputc('\n', out);
}
