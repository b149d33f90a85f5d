// Functions with which all parts of the page write text.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "reports/html.h"
#include "reports/page.h"

void tfc_page_add(struct tfc_page *p, const char *format, ...) {
  va_list args;
  char *text = NULL;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0) p->out->failed = true, text = NULL;
  va_end(args);
  if (text) tfc_text_add(p->out, tfc_str_from(text));
  free(text);
}
void tfc_page_escaped(struct tfc_page *p, tfc_str text) {
  tfc_html_escape(p->out, text);
}
void tfc_page_query(struct tfc_page *p, const char *summary, const char *sql) {
  if (p->kept) tfc_html_query(p->out, summary, sql, tfc_store_is_copy(p->store));
}
double tfc_page_number(const struct tfc_page *p, const char *column) {
  return tfc_table_number(&p->run, 0, column);
}
tfc_str tfc_page_text(const struct tfc_page *p, const char *column) {
  return tfc_table_text(&p->run, 0, column);
}
bool tfc_page_profiled(const struct tfc_page *p) {
  return tfc_str_is(tfc_page_text(p, "program"), "tfc-run");
}
bool tfc_page_modelled(const struct tfc_page *p) {
  return tfc_report_is_modelled(&p->run, 0);
}
tfc_str tfc_page_base_name(tfc_str path) {
  size_t slash = tfc_str_rfind(path, '/');
  return slash == SIZE_MAX ? path : tfc_str_sub(path, slash + 1, SIZE_MAX);
}
