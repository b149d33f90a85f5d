#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

json_t *cli_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_string(const char *text) {
  json_t *value = json_string(text);
  char *copy = value ? NULL : tfc_str_dup(tfc_str_from(text));
  for (char *at = copy; at && *at; at++)
    if ((unsigned char)*at >= 0x80) *at = '?';
  if (copy) value = json_string(copy);
  free(copy);
  return value;
}

json_t *cli_json_error(tfc_status status) {
  return json_pack("{s:s, s:o}", "code", tfc_code_name(tfc_status_code(status)), "message",
                   cli_json_string(tfc_status_message(status)));
}

json_t *cli_json_table(const struct tfc_table *table) {
  json_t *rows = json_array();
  for (uint32_t r = 0; r < table->row_count; r++) {
    json_t *row = json_object();
    for (uint32_t c = 0; c < table->column_count; c++) {
      const struct tfc_cell *cell = tfc_table_cell(table, r, c);
      json_t *value = json_null();
      if (cell->kind == TFC_CELL_INTEGER) value = json_integer(cell->integer);
      if (cell->kind == TFC_CELL_REAL) value = cli_json_number(cell->real);
      if (cell->kind == TFC_CELL_TEXT) {
        char *text = tfc_str_dup(cell->text);
        value = text ? cli_json_string(text) : NULL;
        free(text);
      }
      json_object_set_new(row, table->names[c], value);
    }
    json_array_append_new(rows, row);
  }
  return rows;
}

static bool printed;
bool cli_json_printed(void) {
  return printed;
}

tfc_status cli_json_print(const json_t *document) {
  char *text = document ? json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
  if (!text) return tfc_status_no_memory(NULL);
  fputs(text, stdout);
  fputc('\n', stdout);
  printed = true;
  free(text);
  return NULL;
}
