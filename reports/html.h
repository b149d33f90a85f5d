// Functions for all HTML pages: escape text for HTML and JSON, write the head with style and script, add notes with
// queries, and write the file.
#ifndef TFC_REPORTS_HTML_H
#define TFC_REPORTS_HTML_H

#include "runtime/base/status.h"
#include "runtime/base/str.h"

void tfc_html_escape(struct tfc_text *out, tfc_str text);
// Escapes a string inside of a script element: quotes, line ends and anything that could end the element.
void tfc_json_escape(struct tfc_text *out, tfc_str text);
// Writes everything from the doctype to <main>; `script`: with the page's script. `title` is escaped here.
void tfc_html_begin(struct tfc_text *out, tfc_str title, bool script);
void tfc_html_end(struct tfc_text *out, bool script);
// Adds a note with one or more queries, which the reader can unfold. Each of several queries must end with ";"; a
// single one gets it here. `is_copy` is tfc_store_is_copy: if true, the note says how the file gets the views of the
// queries.
void tfc_html_query(struct tfc_text *out, const char *summary, const char *sql, bool is_copy);
// Writes DIR/index.html (and creates DIR). DATA_LOSS: it cannot be written.
TFC_MUST_USE tfc_status tfc_html_write(const struct tfc_text *html, const char *dir);

const char *tfc_html_us(char *buffer, double us);       // "–" for NaN
const char *tfc_html_bytes(char *buffer, double bytes); // also "–" for NaN

#endif
