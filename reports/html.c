// The parts that all HTML pages share: head, style, escaping, and writing the file.
#include "reports/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/schema.h"
#include "reports/palette.h"
#include "reports/plot.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

void tfc_html_escape(struct tfc_text *out, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
    tfc_text_add(out, entity ? tfc_str_from(entity) : (tfc_str){&text.data[i], 1});
  }
}

void tfc_json_escape(struct tfc_text *out, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\')
      tfc_text_printf(out, "\\%c", c);
    else if (c < ' ' || c == '<' || c == '>' || c == '&')
      tfc_text_printf(out, "\\u%04x", c);
    else
      tfc_text_add(out, (tfc_str){text.data + i, 1});
  }
}

void tfc_html_begin(struct tfc_text *out, tfc_str title, bool script) {
  tfc_text_printf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                       "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
                       "dark\">\n<title>");
  tfc_html_escape(out, title);
  tfc_text_printf(out, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
  tfc_palette_css(out);
  tfc_text_add(out, tfc_str_from(tfc_embedded_find("page.css")));
  tfc_text_printf(out, "</style></head>\n<body%s><main>\n", script ? "" : " class=\"plain\"");
}

void tfc_html_end(struct tfc_text *out, bool script) {
  tfc_text_printf(out, "</main>\n");
  if (script) {
    tfc_text_printf(out, "<div id=\"tip\" hidden></div>\n<script>\n");
    tfc_text_add(out, tfc_str_from(tfc_embedded_find("page.js")));
    tfc_text_printf(out, "</script>\n");
  }
  tfc_text_printf(out, "</body></html>\n");
}

void tfc_html_query(struct tfc_text *out, const char *summary, const char *sql, bool is_copy) {
  const char last = *sql ? sql[strlen(sql) - 1] : '\n';
  tfc_text_printf(out, "<details class=\"query\"><summary>%s</summary><pre>", summary);
  if (is_copy)
    tfc_text_printf(out,
                    "-- For the views of schema %d. The file has others, until the next run is written to it or until\n"
                    "-- the following command converts it, which keeps the last million runs:\n"
                    "-- tfc-report --db FILE gc --keep 1000000\n",
                    TFC_SCHEMA_VERSION);
  tfc_html_escape(out, tfc_str_from(sql));
  tfc_text_printf(out, "%s</pre></details>\n", last == ';' || last == '\n' ? "" : ";");
}

tfc_status tfc_html_write(const struct tfc_text *html, const char *dir) {
  char *path = tfc_format("%s/index.html", dir);
  tfc_status s = NULL;
  if (!path || html->failed) TFC_TRY(s, tfc_status_no_memory("a report"));
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: the report's directory cannot be made: %s", dir, strerror(errno));
  TFC_TRY(s, tfc_file_write(path, (tfc_str){html->data, html->size}));
out:
  free(path);
  return s;
}

const char *tfc_html_us(char *buffer, double us) {
  return us == us ? tfc_show_us(buffer, us) : "–";
}
const char *tfc_html_bytes(char *buffer, double bytes) {
  return bytes == bytes ? tfc_show_bytes(buffer, bytes) : "–";
}
