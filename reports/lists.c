// Functions that all lists use: finding the run, placement and step, shortening texts, and freeing.
#include "reports/lists.h"

#include <stdio.h>
#include <string.h>

#include "profiler/store_runs.h"
#include "reports/reports.h"

void tfc_report_lists_deinit(struct tfc_report_lists *lists) {
  for (uint32_t i = 0; i < lists->count; i++) tfc_table_deinit(&lists->tables[i]);
  tfc_text_deinit(&lists->text);
  tfc_arena_deinit(&lists->arena);
  *lists = (struct tfc_report_lists){0};
}

// Returns the text, or, if it is longer than `width`, so much of its end that ".." fits before it.
static tfc_str end_of(tfc_str text, size_t width) {
  size_t from = text.size > width ? text.size - (width - 2) : 0;
  while (from > 0 && from < text.size && ((unsigned char)text.data[from] & 0xc0) == 0x80) from++; // not in a character
  return tfc_str_sub(text, from, SIZE_MAX);
}

void tfc_report_add_fit(struct tfc_text *out, tfc_str text, size_t width) {
  const size_t begin = out->size + (text.size > width ? 2 : 0);
  if (text.size > width) tfc_text_add(out, TFC_STR(".."));
  tfc_text_add(out, end_of(text, width));
  if (!out->failed && out->data && out->size > begin) tfc_report_plain(out->data + begin);
}

const char *tfc_report_fit_ends(char buffer[96], tfc_str text, size_t width) {
  if (text.size <= width) return tfc_report_fit(buffer, text, width);
  size_t begin = width / 2;
  while (begin > 0 && ((unsigned char)text.data[begin] & 0xc0) == 0x80) begin--; // not in a character
  tfc_report_fit(buffer, text, width - begin);
  memmove(buffer + begin, buffer, strlen(buffer) + 1);
  memcpy(buffer, text.data, begin);
  tfc_report_plain(buffer);
  return buffer;
}

const char *tfc_report_fit(char buffer[96], tfc_str text, size_t width) {
  const bool cut = text.size > width;
  const size_t from = text.size - end_of(text, width).size;
  snprintf(buffer, 96, "%s%.*s", cut ? ".." : "", (int)(text.size - from), text.data ? text.data + from : "");
  tfc_report_plain(buffer);
  return buffer;
}

void tfc_report_plain(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
}

bool tfc_report_is_modelled(const struct tfc_table *runs, uint32_t row) {
  return tfc_str_is(tfc_table_text(runs, row, "label"), "modelled") && !tfc_table_text(runs, row, "measured_with").size;
}

bool tfc_report_is_too_large(const struct tfc_table *runs, uint32_t row) {
  const double us = tfc_table_number(runs, row, "step_median_us"); // without an answer, nothing is said of it
  return us == us && tfc_table_number(runs, row, "exit_code") == 5;
}

const char *tfc_report_simulated(struct tfc_store *store, const struct tfc_query_args *args) {
  struct tfc_table t = {0};
  tfc_status s =
      tfc_table_query(store, "SELECT label FROM v_result WHERE run_id = :run AND placement_id = :placement", args, &t);
  bool modelled = !s && tfc_str_is(tfc_table_text(&t, 0, "label"), "modelled");
  tfc_status_free(s);
  tfc_table_deinit(&t);
  return modelled ? " (simulated)" : "";
}

tfc_status tfc_report_focus(struct tfc_store *store, int64_t run_id, struct tfc_query_args *out) {
  struct tfc_query_args args = {.run = run_id, .placement = -1, .step = -1};
  struct tfc_table t = {0};
  tfc_status s = NULL;
  int64_t found;
  TFC_TRY(s, tfc_store_find_run(store, run_id, &found));
  args.run = found;
  TFC_TRY(s, tfc_table_query(store,
                             "SELECT COALESCE((SELECT placement_id FROM v_run WHERE run_id = :run),"
                             " (SELECT MAX(placement_id) FROM v_op WHERE run_id = :run),"
                             " (SELECT MAX(placement_id) FROM v_result WHERE run_id = :run))",
                             &args, &t));
  if (t.row_count && t.cells[0].kind == TFC_CELL_INTEGER) args.placement = t.cells[0].integer;
  tfc_table_deinit(&t);
  TFC_TRY(s, tfc_table_query(store,
                             "WITH steps AS (SELECT step, phase, step_us FROM v_step s WHERE run_id = :run AND"
                             " placement_id = :placement AND traced AND EXISTS (SELECT 1 FROM v_op o WHERE"
                             " o.run_id = :run AND o.placement_id = :placement AND o.step = s.step))"
                             " SELECT step FROM steps ORDER BY phase <> 'final', ABS(step_us - (SELECT step_median_us"
                             " FROM v_result WHERE run_id = :run AND placement_id = :placement)), step LIMIT 1",
                             &args, &t));
  if (t.row_count) args.step = t.cells[0].integer;
  *out = args;
out:
  tfc_table_deinit(&t);
  return s;
}
