// Chrome's trace format: a process per device with a row for operations and one for what it receives; one after
// another the traced steps, on a common axis.
#include <stdio.h>
#include <zlib.h>

#include "reports/reports.h"
#include "runtime/base/file.h"

static void add_escaped(struct tfc_text *out, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\')
      tfc_text_printf(out, "\\%c", c);
    else if (c < ' ')
      tfc_text_printf(out, "\\u%04x", c);
    else
      tfc_text_add(out, (tfc_str){text.data + i, 1});
  }
}

static tfc_status gzip_text(const struct tfc_text *text, struct tfc_text *out) {
  z_stream z = {0};
  unsigned char buffer[65536];
  tfc_status s = NULL;
  int rc;
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (text->size > UINT32_MAX) TFC_FAIL(s, TFC_UNIMPLEMENTED, "a trace of more than 4 GiB");
  z.next_in = (unsigned char *)text->data, z.avail_in = (uInt)text->size;
  do {
    z.next_out = buffer, z.avail_out = sizeof buffer;
    rc = deflate(&z, Z_FINISH);
    tfc_text_add(out, (tfc_str){(const char *)buffer, sizeof buffer - z.avail_out});
  } while (rc == Z_OK);
  if (rc != Z_STREAM_END || out->failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
out:
  deflateEnd(&z);
  return s;
}

tfc_status tfc_report_trace(struct tfc_store *store, int64_t run_id, const char *path, uint64_t *out_events) {
  struct tfc_query_args args;
  struct tfc_table devices = {0}, ops = {0}, transfers = {0};
  struct tfc_text text = {0}, packed = {0};
  uint64_t events = 0;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  if (args.step < 0) { // the answer was not traced: the last placement that was
    TFC_TRY(s, tfc_table_query(store, "SELECT MAX(placement_id) FROM v_op WHERE run_id = :run", &args, &ops));
    if (ops.row_count && ops.cells[0].kind == TFC_CELL_INTEGER) args.placement = ops.cells[0].integer;
    tfc_table_deinit(&ops);
  }
  TFC_TRY(s, tfc_table_query(store,
                             "SELECT device_id, name, COALESCE(model, kind) AS model, label FROM v_device WHERE run_id"
                             " = :run ORDER BY device_id",
                             &args, &devices));
  TFC_TRY(s,
          tfc_table_query(store,
                          "SELECT o.node, o.op, o.device_id, o.step, s.start_us + o.start_us AS at_us, o.duration_us,"
                          " o.dispatch_us FROM v_op o JOIN v_step s USING (run_id, placement_id, step)"
                          " WHERE o.run_id = :run AND o.placement_id = :placement ORDER BY at_us",
                          &args, &ops));
  TFC_TRY(s,
          tfc_table_query(store,
                          "SELECT t.node, t.output, t.source, t.target_id, t.step, s.start_us + t.start_us AS at_us,"
                          " t.duration_us, t.bytes FROM v_transfer t JOIN v_step s USING (run_id, placement_id, step)"
                          " WHERE t.run_id = :run AND t.placement_id = :placement ORDER BY at_us",
                          &args, &transfers));
  if (ops.row_count == 0)
    TFC_FAIL(s, TFC_NOT_FOUND, "%s: run %lld has no traced step to export", tfc_store_path(store), (long long)args.run);
  double zero = tfc_table_number(&ops, 0, "at_us");
  tfc_text_printf(&text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
  for (uint32_t r = 0; r < devices.row_count; r++) {
    int pid = (int)tfc_table_number(&devices, r, "device_id") + 1;
    tfc_text_printf(&text, "%s{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": \"",
                    r ? ",\n" : "", pid);
    add_escaped(&text, tfc_table_text(&devices, r, "name"));
    tfc_text_printf(&text, " (");
    add_escaped(&text, tfc_table_text(&devices, r, "label"));
    tfc_text_printf(&text,
                    ")\"}},\n{\"ph\": \"M\", \"pid\": %d, \"tid\": 1, \"name\": \"thread_name\", \"args\": "
                    "{\"name\": \"operations\"}},\n{\"ph\": \"M\", \"pid\": %d, \"tid\": 2, \"name\": "
                    "\"thread_name\", \"args\": {\"name\": \"arriving\"}}",
                    pid, pid);
  }
  for (uint32_t r = 0; r < ops.row_count; r++, events++) {
    tfc_text_printf(&text,
                    ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"op\", "
                    "\"name\": \"",
                    (int)tfc_table_number(&ops, r, "device_id") + 1, tfc_table_number(&ops, r, "at_us") - zero,
                    tfc_table_number(&ops, r, "duration_us"));
    add_escaped(&text, tfc_table_text(&ops, r, "op"));
    tfc_text_printf(&text, "\", \"args\": {\"node\": \"");
    add_escaped(&text, tfc_table_text(&ops, r, "node"));
    tfc_text_printf(&text, "\", \"step\": %.0f}}", tfc_table_number(&ops, r, "step"));
  }
  for (uint32_t r = 0; r < transfers.row_count; r++, events++) {
    tfc_text_printf(&text,
                    ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": 2, \"ts\": %.3f, \"dur\": %.3f, \"cat\": "
                    "\"transfer\", \"name\": \"from ",
                    (int)tfc_table_number(&transfers, r, "target_id") + 1,
                    tfc_table_number(&transfers, r, "at_us") - zero, tfc_table_number(&transfers, r, "duration_us"));
    add_escaped(&text, tfc_table_text(&transfers, r, "source"));
    tfc_text_printf(&text, "\", \"args\": {\"tensor\": \"");
    add_escaped(&text, tfc_table_text(&transfers, r, "node"));
    tfc_text_printf(&text, ":%.0f\", \"bytes\": %.0f, \"step\": %.0f}}", tfc_table_number(&transfers, r, "output"),
                    tfc_table_number(&transfers, r, "bytes"), tfc_table_number(&transfers, r, "step"));
  }
  tfc_text_printf(&text, "\n]}\n");
  if (text.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, gzip_text(&text, &packed));
  TFC_TRY(s, tfc_file_write(path, (tfc_str){packed.data, packed.size}));
  *out_events = events;
out:
  tfc_table_deinit(&devices);
  tfc_table_deinit(&ops);
  tfc_table_deinit(&transfers);
  tfc_text_deinit(&text);
  tfc_text_deinit(&packed);
  return s;
}
