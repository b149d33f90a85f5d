// Makes the list of `tfc-report gaps`: the gaps of each device in the representative traced step, and what the device
// waited for in them.
#include <stdio.h>
#include <string.h>

#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/reports.h"
#include "reports/traced.h"
#include "runtime/base/units.h"

// Returns `name`, or its end, in what is left of a line of 80 columns of which `used` are taken.
static const char *fit_rest(char buffer[96], tfc_str name, size_t used, size_t most) {
  const size_t left = used < 74 ? 80 - used : 6;
  return tfc_report_fit(buffer, name, left < most ? left : most);
}

// Adds a node's name: at most `most` columns of it, or, where `whole`, all.
static void add_name(struct tfc_text *out, tfc_str name, size_t used, size_t most, bool whole) {
  char buffer[96];
  if (whole)
    tfc_text_add(out, name);
  else
    tfc_text_printf(out, "%s", fit_rest(buffer, name, used, most));
}

void tfc_report_gap(const struct tfc_table *t, uint32_t row, bool whole, struct tfc_text *out) {
  enum { INDENT = 2, DEVICE = 12, NODE = 40, TENSOR = 30 }; // most columns of a device's and of a node's name
  char a[32], device[96], source[96];
  double wait = tfc_table_number(t, row, "dependency_us"), transfer = tfc_table_number(t, row, "transfer_us"),
         other = tfc_table_number(t, row, "other_us");
  tfc_str producer = tfc_table_text(t, row, "producer");
  tfc_report_fit(device, tfc_table_text(t, row, "device"), DEVICE);
  tfc_report_fit(source, tfc_table_text(t, row, "source"), DEVICE);
  if (tfc_str_is(tfc_table_text(t, row, "cause"), "end")) {
    tfc_text_printf(out, "%s has nothing more to do: %s to the end of the step", device,
                    tfc_show_us(a, tfc_table_number(t, row, "gap_us")));
    return;
  }
  tfc_text_printf(out, "%s waits ", device);
  const size_t names = INDENT + strlen(device) + strlen(source);
  if (wait > 0) {
    tfc_show_us(a, wait);
    tfc_text_printf(out, "%s for ", a);
    add_name(out, producer, names + strlen(a) + strlen(" waits  for  of ,"), NODE, whole);
    tfc_text_printf(out, " of %s%s", source, transfer > 0 || other > 0 ? ",\n    then " : "");
  }
  if (transfer > 0 && wait > 0) {
    tfc_text_printf(out, "%s for its transfer%s", tfc_show_us(a, transfer), other > 0 ? ", then " : "");
  } else if (transfer > 0) {
    tfc_show_us(a, transfer);
    tfc_text_printf(out, "%s for the transfer of ", a);
    add_name(out, producer, names + strlen(a) + strlen(" waits  for the transfer of  from ,"), TENSOR, whole);
    tfc_text_printf(out, " from %s%s", source, other > 0 ? ",\n    then " : "");
  }
  if (other > 0) {
    // If devices share cores, a device that has all its inputs may have no core to run on. The text mentions this if
    // the time is not small.
    const bool shared = tfc_str_is(tfc_table_text(t, row, "label"), "oversubscribed") &&
                        other >= 0.05 * tfc_table_number(t, row, "gap_us");
    tfc_text_printf(out, "%s %s", tfc_show_us(a, other),
                    wait > 0 || transfer > 0 ? (shared ? "to begin (cores are shared)" : "to begin")
                    : shared                 ? "with nothing missing (cores are shared),\n    before "
                                             : "with nothing missing,\n    before ");
    if (wait <= 0 && transfer <= 0) add_name(out, tfc_table_text(t, row, "node"), 0, NODE, whole);
  }
}

// `labels`: the columns "device" and "label" of the run's devices.
static tfc_status list_gaps(const struct tfc_traced *t, const struct tfc_table *labels,
                            struct tfc_report_lists *lists) {
  static const char *const columns[] = {"device", "start_us",      "gap_us",      "cause",    "node",  "producer",
                                        "source", "dependency_us", "transfer_us", "other_us", "label", NULL};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(&lists->tables[0], columns));
  for (uint32_t i = 0; i < t->gap_count; i++) {
    const struct tfc_traced_gap *g = &t->gaps[i];
    struct tfc_cell *row;
    TFC_TRY(s, tfc_table_add(&lists->tables[0], &row));
    // The trace has no names of devices, but each operation's row has one: finds an operation of this device.
    uint32_t at = 0;
    while (at + 1 < t->op_count && t->ops[at].device != g->device) at++;
    row[0] = tfc_cell_text(tfc_arena_str(&lists->arena, tfc_table_text(&t->op_rows, at, "device")));
    row[1] = tfc_cell_real((double)g->start * 1e-3);
    row[2] = tfc_cell_real((double)(g->end - g->start) * 1e-3);
    row[3] = tfc_cell_text(g->op == TFC_NONE                                           ? TFC_STR("end")
                           : g->dependency >= g->transfer && g->dependency >= g->other ? TFC_STR("dependency")
                           : g->transfer >= g->other                                   ? TFC_STR("transfer")
                                                                                       : TFC_STR("other"));
    row[7] = tfc_cell_real((double)g->dependency * 1e-3);
    row[8] = tfc_cell_real((double)g->transfer * 1e-3);
    row[9] = tfc_cell_real((double)g->other * 1e-3);
    for (uint32_t k = 0; k < labels->row_count; k++)
      if (tfc_str_equal(tfc_table_text(labels, k, "device"), row[0].text))
        row[10] = tfc_cell_text(tfc_arena_str(&lists->arena, tfc_table_text(labels, k, "label")));
    if (g->op == TFC_NONE) continue;
    const struct tfc_traced_op *o = &t->ops[g->op];
    row[4] = tfc_cell_text(tfc_arena_str(&lists->arena, tfc_table_text(&t->op_rows, g->op, "node")));
    if (g->dependency + g->transfer == 0) continue;
    const struct tfc_table *from = o->transfer != TFC_NONE ? &t->transfer_rows : &t->op_rows;
    uint32_t which = o->transfer != TFC_NONE ? o->transfer : o->producer;
    row[5] = tfc_cell_text(tfc_arena_str(&lists->arena, tfc_table_text(from, which, "node")));
    row[6] = tfc_cell_text(
        tfc_arena_str(&lists->arena, tfc_table_text(from, which, o->transfer != TFC_NONE ? "source" : "device")));
  }
out:
  return s;
}

// Lists how long each device was idle, by what it waited for. A device that ran nothing has no gaps and was idle for
// the whole step. `names`: the column "device" of the run's devices, without the undivided machine.
static tfc_status list_devices(const struct tfc_traced *traced, const struct tfc_table *gaps,
                               const struct tfc_table *names, struct tfc_report_lists *lists) {
  static const char *const columns[] = {"device",      "gaps",     "idle_us", "dependency_us",
                                        "transfer_us", "other_us", "end_us",  NULL};
  struct tfc_table *t = &lists->tables[1];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(t, columns));
  for (uint32_t r = 0; r < gaps->row_count; r++) {
    tfc_str device = tfc_table_text(gaps, r, "device");
    struct tfc_cell *row = NULL;
    for (uint32_t k = 0; k < t->row_count && !row; k++)
      if (tfc_str_equal(tfc_table_text(t, k, "device"), device)) row = &t->cells[(size_t)k * t->column_count];
    if (!row) {
      TFC_TRY(s, tfc_table_add(t, &row));
      row[0] = tfc_cell_text(device);
      row[1] = tfc_cell_integer(0);
      for (uint32_t c = 2; c < t->column_count; c++) row[c] = tfc_cell_real(0);
    }
    const bool end = tfc_str_is(tfc_table_text(gaps, r, "cause"), "end");
    row[1] = tfc_cell_integer(row[1].integer + 1);
    row[2].real += tfc_table_number(gaps, r, "gap_us");
    row[3].real += tfc_table_number(gaps, r, "dependency_us");
    row[4].real += tfc_table_number(gaps, r, "transfer_us");
    row[end ? 6 : 5].real += tfc_table_number(gaps, r, "other_us");
  }
  for (uint32_t k = 0; k < names->row_count; k++) {
    tfc_str device = tfc_table_text(names, k, "device");
    struct tfc_cell *row;
    bool ran = tfc_str_is(device, "whole");
    for (uint32_t i = 0; i < traced->op_count && !ran; i++)
      ran = tfc_str_equal(tfc_table_text(&traced->op_rows, i, "device"), device);
    // Under the undivided machine no device ran anything by itself.
    if (ran || tfc_str_is(tfc_table_text(&traced->op_rows, 0, "device"), "whole")) continue;
    TFC_TRY(s, tfc_table_add(t, &row));
    row[0] = tfc_cell_text(tfc_arena_str(&lists->arena, device));
    row[1] = tfc_cell_integer(0);
    for (uint32_t c = 2; c < t->column_count; c++) row[c] = tfc_cell_real(0);
    row[2] = row[6] = tfc_cell_real((double)traced->end * 1e-3);
  }
out:
  return s;
}

void tfc_report_still(const struct tfc_report_lists *lists, struct tfc_text *out) {
  const struct tfc_table *t = &lists->tables[1];
  char name[96];
  uint32_t count = 0;
  tfc_str first = {0};
  for (uint32_t r = 0; r < t->row_count; r++)
    if (tfc_table_number(t, r, "gaps") == 0 && count++ == 0) first = tfc_table_text(t, r, "device");
  if (count == 1)
    tfc_text_printf(out, "%s ran nothing", tfc_report_fit(name, first, 40));
  else if (count)
    tfc_text_printf(out, "%s and %u more device%s ran nothing", tfc_report_fit(name, first, 40), count - 1,
                    count == 2 ? "" : "s");
  else if (!lists->tables[0].row_count)
    tfc_text_printf(out, "No device stood still");
}

tfc_status tfc_report_gaps(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out) {
  enum { SHOWN = 20 };
  struct tfc_report_lists lists = {.names = {"gaps", "devices"}};
  struct tfc_traced traced = {0};
  struct tfc_table labels = {0};
  struct tfc_query_args args;
  char a[32], b[32], c[32], d[32], e[32], name[96];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  lists.count = 2;
  TFC_TRY(s, tfc_traced_load(store, &args, &traced));
  TFC_TRY(s, tfc_table_query(store, "SELECT name AS device, label FROM v_device WHERE run_id = :run", &args, &labels));
  TFC_TRY(s, list_gaps(&traced, &labels, &lists));
  TFC_TRY(s, list_devices(&traced, &lists.tables[0], &labels, &lists));
  struct tfc_text *text = &lists.text;
  const struct tfc_table *gaps = &lists.tables[0], *devices = &lists.tables[1];
  tfc_text_printf(text, "Run %lld: where devices stood still in step %lld of the answer%s\n\n", (long long)args.run,
                  (long long)args.step, tfc_report_simulated(store, &args));
  tfc_text_printf(text, "  %-10s %6s %11s %12s %11s %11s %11s\n", "device", "gaps", "idle", "for others", "transfers",
                  "to begin", "at the end");
  for (uint32_t r = 0; r < devices->row_count; r++)
    tfc_text_printf(text, "  %-10s %6.0f %11s %12s %11s %11s %11s\n",
                    tfc_report_fit(name, tfc_table_text(devices, r, "device"), 10),
                    tfc_table_number(devices, r, "gaps"), tfc_show_us(a, tfc_table_number(devices, r, "idle_us")),
                    tfc_show_us(b, tfc_table_number(devices, r, "dependency_us")),
                    tfc_show_us(c, tfc_table_number(devices, r, "transfer_us")),
                    tfc_show_us(d, tfc_table_number(devices, r, "other_us")),
                    tfc_show_us(e, tfc_table_number(devices, r, "end_us")));
  tfc_text_printf(text, "\n  By cause, of this step: until the producer of the last input had ended (for\n"
                        "  others), then that input's transfer, then what is left. `show` divides by\n"
                        "  the clock (v_busy): there, all time in which any tensor was arriving counts.\n\n");
  for (uint32_t r = 0; r < gaps->row_count && r < SHOWN; r++) {
    tfc_text_printf(text, "  ");
    tfc_report_gap(gaps, r, false, text);
    tfc_text_printf(text, "\n");
  }
  if (gaps->row_count > SHOWN)
    tfc_text_printf(text, "  and %u shorter ones: --csv and --json have all\n", gaps->row_count - SHOWN);
  struct tfc_text still = {0};
  tfc_report_still(&lists, &still);
  if (still.size) tfc_text_printf(text, "  %s.\n", still.data);
  tfc_text_deinit(&still);
  if (text->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = lists;
  lists = (struct tfc_report_lists){0};
out:
  tfc_report_lists_deinit(&lists);
  tfc_traced_deinit(&traced);
  tfc_table_deinit(&labels);
  return s;
}
