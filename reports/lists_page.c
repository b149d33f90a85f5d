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

static void add_table(struct tfc_text *out, const char *name, const struct tfc_table *t) {
  tfc_text_printf(out, "<section id=\"%s\"><h2>%c%s</h2>\n", name, name[0] - 'a' + 'A', name + 1);
  if (!t->row_count) {
    tfc_text_printf(out, "<p>There are none.</p></section>\n");
    return;
  }
  tfc_text_printf(out, "<div style=\"overflow-x:auto\"><table><thead><tr>");
  for (uint32_t c = 0; c < t->column_count; c++) {
    char head[64];
    snprintf(head, sizeof head, "%s", t->names[c]);
    size_t size = strlen(head);
    if (size > 3 && strcmp(head + size - 3, "_us") == 0) head[size - 3] = 0;
    for (char *p = head; *p; p++)
      if (*p == '_') *p = ' ';
    bool words = false; // the column has text; columns of numbers are aligned to the right
    for (uint32_t r = 0; r < t->row_count; r++) words |= tfc_table_cell(t, r, c)->kind == TFC_CELL_TEXT;
    tfc_text_printf(out, "<th%s>%s</th>", words ? "" : " class=\"n\"", head);
  }
  tfc_text_printf(out, "</tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    tfc_text_printf(out, "<tr>");
    for (uint32_t c = 0; c < t->column_count; c++) add_cell(out, t->names[c], tfc_table_cell(t, r, c));
    tfc_text_printf(out, "</tr>\n");
  }
  tfc_text_printf(out, "</tbody></table></div></section>\n");
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
  for (uint32_t i = 0; i < lists->count; i++) add_table(&html, lists->names[i], &lists->tables[i]);
  tfc_text_printf(&html, "</main></body></html>\n");
  if (html.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_file_write(path, (tfc_str){html.data, html.size}));
out:
  tfc_text_deinit(&html);
  free(path);
  return s;
}
