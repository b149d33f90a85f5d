// Reads pages as a browser does: checks that tags are closed correctly and that the rows of a table have as many cells
// as its head, and finds the texts in tables.
#ifndef TFC_TESTS_REPORTS_HTML_H
#define TFC_TESTS_REPORTS_HTML_H

#include "tests/common/test.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

static inline void html_check(const char *html) {
  enum { DEPTH = 64 };
  static const char *const empty[] = {"meta", "br", "img", "hr", "link", "input", "!doctype"};
  char open[DEPTH][16];
  size_t depth = 0, cells = 0, head = 0;
  for (const char *p = html; (p = strchr(p, '<'));) {
    char name[16];
    size_t n = 0;
    if (strncmp(p, "<!--", 4) == 0 || strncmp(p, "<?", 2) == 0) {
      p = strchr(p, '>');
      assert_non_null(p);
      continue;
    }
    const bool closes = p[1] == '/';
    const char *at = p + 1 + closes, *end = strchr(p, '>');
    if (!end) fail_msg("a tag without an end: %.60s", p);
    while (n < sizeof name - 1 && (isalnum((unsigned char)at[n]) || at[n] == '!')) name[n] = at[n], n++;
    name[n] = 0;
    if (!n) fail_msg("'<' that is no tag: %.60s", p);
    bool alone = end[-1] == '/';
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) alone = alone || strcmp(name, empty[i]) == 0;
    if (strcmp(name, "table") == 0) head = 0;
    if (strcmp(name, "tr") == 0 && !closes) cells = 0;
    if ((strcmp(name, "td") == 0 || strcmp(name, "th") == 0) && !closes) cells++;
    if (strcmp(name, "tr") == 0 && closes) {
      if (!head) head = cells;
      if (cells != head) fail_msg("a row of %zu cells under %zu heads, before: %.100s", cells, head, end);
    }
    if (closes) {
      if (!depth || strcmp(open[depth - 1], name) != 0)
        fail_msg("</%s> closes <%s>, before: %.100s", name, depth ? open[depth - 1] : "", end);
      depth--;
    } else if (!alone) {
      assert_true(depth < DEPTH);
      memcpy(open[depth++], name, sizeof name);
    }
    if (!closes && (strcmp(name, "style") == 0 || strcmp(name, "script") == 0)) end = strstr(end, "</") - 1;
    p = end + 1;
  }
  if (depth) fail_msg("<%s> is not closed", open[depth - 1]);
}

// Returns the text between `from` and `to`, without tags; "|" between cells, a line for each row or paragraph.
static inline char *html_text(const char *html, const char *from, const char *to) {
  struct tfc_text t = {0};
  const char *p = strstr(html, from);
  if (!p) fail_msg("no '%s'", from);
  const char *end = strstr(p += strlen(from), to);
  if (!end) fail_msg("no '%s' behind '%s'", to, from);
  for (bool space = true; p < end;) {
    if (*p == '<') {
      static const char *const lines[] = {"</tr>", "</p>", "</h1>", "</h2>", "</dd>", "</pre>"};
      if (strncmp(p, "</td>", 5) == 0 || strncmp(p, "</th>", 5) == 0 || strncmp(p, "</dt>", 5) == 0)
        tfc_text_add(&t, TFC_STR("|")), space = true;
      for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strncmp(p, lines[i], strlen(lines[i])) == 0) tfc_text_add(&t, TFC_STR("\n")), space = true;
      p = strchr(p, '>') + 1;
      continue;
    }
    const bool blank = *p == ' ' || *p == '\n';
    if (blank && !space) tfc_text_add(&t, TFC_STR(" "));
    if (!blank) tfc_text_add(&t, (tfc_str){p, 1});
    space = blank;
    p++;
  }
  return t.data ? t.data : strdup("");
}
static inline void html_says(const char *html, const char *from, const char *to, const char *expected) {
  char *text = html_text(html, from, to);
  assert_string_equal(text, expected);
  free(text);
}

#endif
