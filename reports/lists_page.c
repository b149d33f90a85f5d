// Writes lists as an HTML page: one file that needs no other files, with a table for each list.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reports/lists.h"
#include "reports/lists_page.h"
#include "reports/plot.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

static void add_escaped(struct tfc_text *out, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
    tfc_text_add(out, entity ? tfc_str_from(entity) : (tfc_str){&text.data[i], 1});
  }
}

// The column's name ends with its unit: values in columns _us and _bytes are shown with a fitting prefix.
static void add_cell(struct tfc_text *out, const char *column, const struct tfc_cell *cell) {
  tfc_str name = tfc_str_from(column);
  char shown[32];
  if (cell->kind == TFC_CELL_TEXT) {
    tfc_text_printf(out, "<td>");
    add_escaped(out, cell->text);
    tfc_text_printf(out, "</td>");
  } else if (cell->kind == TFC_CELL_NULL)
    tfc_text_printf(out, "<td class=\"n\">–</td>");
  else if (tfc_str_ends(name, "_us"))
    tfc_text_printf(out, "<td class=\"n\">%s</td>", tfc_show_us(shown, cell->real));
  else if (tfc_str_ends(name, "bytes"))
    tfc_text_printf(out, "<td class=\"n\">%s</td>", tfc_show_bytes(shown, cell->real));
  else if (cell->kind == TFC_CELL_INTEGER)
    tfc_text_printf(out, "<td class=\"n\">%lld</td>", (long long)cell->integer);
  else
    tfc_text_printf(out, "<td class=\"n\">%.4g</td>", cell->real);
}

// Writes a column's name without its unit _us, which the values have. `tag`: th or td, perhaps with attributes.
static void add_head(struct tfc_text *out, const char *name, const char *tag) {
  char head[64];
  snprintf(head, sizeof head, "%s", name);
  const size_t size = strlen(head);
  if (size > 3 && strcmp(head + size - 3, "_us") == 0) head[size - 3] = 0;
  for (char *p = head; *p; p++)
    if (*p == '_') *p = ' ';
  tfc_text_printf(out, "<%s>%s</%.2s>", tag, head, tag);
}

static void add_rows(struct tfc_text *out, const struct tfc_table *t) {
  tfc_text_printf(out, "<table><thead><tr>");
  for (uint32_t c = 0; c < t->column_count; c++) {
    bool words = false; // the column has text; columns of numbers are aligned to the right
    for (uint32_t r = 0; r < t->row_count; r++) words |= tfc_table_cell(t, r, c)->kind == TFC_CELL_TEXT;
    add_head(out, t->names[c], words ? "th" : "th class=\"n\"");
  }
  tfc_text_printf(out, "</tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    const struct tfc_cell *first = tfc_table_cell(t, r, 0), *before = r ? tfc_table_cell(t, r - 1, 0) : NULL;
    tfc_text_printf(out, "<tr>");
    if (before && first->kind == TFC_CELL_TEXT && tfc_str_equal(first->text, before->text))
      tfc_text_printf(out, "<td></td>"); // the name is not repeated
    else
      add_cell(out, t->names[0], first);
    for (uint32_t c = 1; c < t->column_count; c++) add_cell(out, t->names[c], tfc_table_cell(t, r, c));
    tfc_text_printf(out, "</tr>\n");
  }
  tfc_text_printf(out, "</tbody></table>");
}

// A table of few rows with many columns is turned: its columns become rows. Those in which no cell has a value are left
// out.
static void add_turned(struct tfc_text *out, const struct tfc_table *t) {
  tfc_text_printf(out, "<table class=\"turned\"><tbody>\n");
  for (uint32_t c = 0; c < t->column_count; c++) {
    bool known = false;
    for (uint32_t r = 0; r < t->row_count; r++) {
      const struct tfc_cell *cell = tfc_table_cell(t, r, c);
      known |= cell->kind == TFC_CELL_TEXT ? cell->text.size > 0 : cell->kind != TFC_CELL_NULL;
    }
    if (!known) continue;
    tfc_text_printf(out, "<tr>");
    add_head(out, t->names[c], "td class=\"note\"");
    for (uint32_t r = 0; r < t->row_count; r++) add_cell(out, t->names[c], tfc_table_cell(t, r, c));
    tfc_text_printf(out, "</tr>\n");
  }
  tfc_text_printf(out, "</tbody></table>");
}

static void add_table(struct tfc_text *out, const char *name, const struct tfc_table *t) {
  enum { MANY = 12 }; // so many columns do not fit a page
  tfc_text_printf(out, "<section id=\"%s\"><h2>%c%s</h2>\n", name, name[0] - 'a' + 'A', name + 1);
  if (!t->row_count) {
    tfc_text_printf(out, "<p>There are none.</p></section>\n");
    return;
  }
  tfc_text_printf(out, "<div class=\"scroll\">");
  if (t->column_count > MANY && t->row_count <= MANY)
    add_turned(out, t);
  else
    add_rows(out, t);
  tfc_text_printf(out, "</div></section>\n");
}

tfc_status tfc_report_lists_page(const struct tfc_report_lists *lists, const char *title, const char *note,
                                 const char *dir) {
  struct tfc_text html = {0};
  char *path = tfc_format("%s/index.html", dir);
  tfc_status s = NULL;
  if (!path) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: the report's directory cannot be made: %s", dir, strerror(errno));
  tfc_text_printf(&html,
                  "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                  "content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n<style>\n",
                  title);
  tfc_text_add(&html, tfc_str_from(tfc_embedded_find("page.css")));
  tfc_text_printf(&html, "</style></head>\n<body><main>\n<header><h1>%s</h1>\n<p>%s</p></header>\n", title, note);
  uint32_t longest = 0; // comes last, so that a reader sees the others
  for (uint32_t i = 0; i < lists->count; i++)
    if (lists->tables[i].row_count > lists->tables[longest].row_count) longest = i;
  for (uint32_t i = 0; i < lists->count; i++)
    if (i != longest || lists->count == 1) add_table(&html, lists->names[i], &lists->tables[i]);
  if (lists->count > 1) add_table(&html, lists->names[longest], &lists->tables[longest]);
  tfc_text_printf(&html, "</main></body></html>\n");
  if (html.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_file_write(path, (tfc_str){html.data, html.size}));
out:
  tfc_text_deinit(&html);
  free(path);
  return s;
}
