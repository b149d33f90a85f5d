// Writes Chrome's trace format. Each device is a process with two rows: one for operations, one for tensors that it
// receives, and one for each stream that a GPU's profiler has seen. Flow arrows go from producers through transfers to
// consumers. Each device has a counter that is 1 while it is busy. The traced steps follow each other on one time axis,
// and each is an event of a separate process.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/reports.h"
#include "reports/traced.h"
#include "runtime/base/file.h"

static void add_escaped(struct tfc_text *out, tfc_str text) {
  size_t from = 0;
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c >= ' ' && c != '"' && c != '\\') continue;
    tfc_text_add(out, (tfc_str){text.data + from, i - from});
    tfc_text_printf(out, c < ' ' ? "\\u%04x" : "\\%c", c);
    from = i + 1;
  }
  tfc_text_add(out, (tfc_str){text.data + from, text.size - from});
}

// Appends a text without a format, because a trace has millions of numbers.
static void add_literal(struct tfc_text *out, const char *text) {
  tfc_text_add(out, tfc_str_from(text));
}
static char *digits_before(char *end, uint64_t value, int least) {
  do {
    *--end = (char)('0' + value % 10);
    value /= 10, least--;
  } while (value || least > 0);
  return end;
}
static void add_integer(struct tfc_text *out, int64_t value) {
  char text[24], *at = digits_before(text + sizeof text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
  if (value < 0) *--at = '-';
  tfc_text_add(out, (tfc_str){at, (size_t)(text + sizeof text - at)});
}
static void add_ns(struct tfc_text *out, int64_t ns) { // in microseconds
  const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
  char text[32], *at = digits_before(text + sizeof text, size % 1000, 3);
  *--at = '.';
  at = digits_before(at, size / 1000, 1);
  if (ns < 0) *--at = '-';
  tfc_text_add(out, (tfc_str){at, (size_t)(text + sizeof text - at)});
}

static tfc_status gzip_text(const struct tfc_text *text, struct tfc_text *out) {
  z_stream z = {0};
  unsigned char buffer[65536];
  tfc_status s = NULL;
  int rc;
  if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return tfc_status_no_memory(NULL);
  if (text->size > UINT32_MAX) TFC_FAIL(s, TFC_UNIMPLEMENTED, "a trace of more than 4 GiB");
  z.next_in = (unsigned char *)text->data, z.avail_in = (uInt)text->size;
  do {
    z.next_out = buffer, z.avail_out = sizeof buffer;
    rc = deflate(&z, Z_FINISH);
    tfc_text_add(out, (tfc_str){(const char *)buffer, sizeof buffer - z.avail_out});
  } while (rc == Z_OK);
  if (rc != Z_STREAM_END || out->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
out:
  deflateEnd(&z);
  return s;
}

enum { MOST_TRACKS = 256 };
struct writer {
  struct tfc_text text;
  uint64_t events, flows;
  struct {
    int64_t pid;
    int tid;
  } tracks[MOST_TRACKS]; // of streams, which have been named
  uint32_t track_count;
};

// Writes an event up to its name; the caller adds the rest and the closing brace.
static void begin_event(struct writer *w, const char *phase, int64_t pid, int tid, int64_t ns) {
  struct tfc_text *t = &w->text;
  add_literal(t, w->events++ ? ",\n{\"ph\": \"" : "{\"ph\": \"");
  add_literal(t, phase);
  add_literal(t, "\", \"pid\": "), add_integer(t, pid);
  add_literal(t, ", \"tid\": "), add_integer(t, tid);
  add_literal(t, ", \"ts\": "), add_ns(t, ns);
}
static void begin_slice(struct writer *w, int64_t pid, int tid, int64_t ns, int64_t took_ns, const char *category) {
  begin_event(w, "X", pid, tid, ns);
  add_literal(&w->text, ", \"dur\": "), add_ns(&w->text, took_ns);
  add_literal(&w->text, ", \"cat\": \""), add_literal(&w->text, category);
  add_literal(&w->text, "\", \"name\": \"");
}
static void add_name(struct writer *w, int64_t pid, int tid, tfc_str name, tfc_str label) {
  begin_event(w, "M", pid, tid, 0);
  tfc_text_printf(&w->text, ", \"name\": \"%s\", \"args\": {\"name\": \"", tid ? "thread_name" : "process_name");
  add_escaped(&w->text, name);
  if (label.size) tfc_text_printf(&w->text, " (%.*s)", TFC_STR_ARG(label));
  add_literal(&w->text, "\"}}");
}
// Adds a flow arrow from the end of one slice to the beginning of another. Viewers attach an arrow to the slice that
// contains its time.
static void add_flow(struct writer *w, int64_t from_pid, int from_tid, int64_t from_ns, int64_t to_pid, int to_tid,
                     int64_t to_ns) {
  static const char tail[] = ", \"cat\": \"tensor\", \"name\": \"tensor\"}";
  w->flows++;
  begin_event(w, "s", from_pid, from_tid, from_ns);
  add_literal(&w->text, ", \"id\": "), add_integer(&w->text, (int64_t)w->flows), add_literal(&w->text, tail);
  begin_event(w, "f", to_pid, to_tid, to_ns);
  add_literal(&w->text, ", \"bp\": \"e\", \"id\": "), add_integer(&w->text, (int64_t)w->flows);
  add_literal(&w->text, tail);
}
static void add_memory(struct writer *w, const struct tfc_table *levels, int64_t at) {
  for (uint32_t r = 0; r < levels->row_count; r++) {
    begin_event(w, "C", tfc_table_cell(levels, r, 0)->integer + 1, 0,
                at + llround(1e3 * tfc_table_cell(levels, r, 1)->real));
    add_literal(&w->text, ", \"name\": \"memory\", \"args\": {\"bytes\": ");
    add_integer(&w->text, tfc_table_cell(levels, r, 2)->integer), add_literal(&w->text, "}}");
  }
}
static void add_busy(struct writer *w, int64_t pid, int64_t ns, bool busy) {
  begin_event(w, "C", pid, 0, ns);
  add_literal(&w->text, ", \"name\": \"busy\", \"args\": {\"busy\": ");
  add_literal(&w->text, busy ? "1}}" : "0}}");
}

enum { OPERATIONS = 1, ARRIVING = 2, STREAMS = 16 }; // rows of a device; from STREAMS on those of a GPU's streams

// Writes one step, which began `at` nanoseconds after the first one. Device d is process d + 1.
static void add_step(struct writer *w, const struct tfc_traced *t, int64_t step, int64_t at, int64_t step_ns,
                     int64_t devices) {
  begin_slice(w, 0, OPERATIONS, at, step_ns, "step");
  add_literal(&w->text, "step "), add_integer(&w->text, step), add_literal(&w->text, "\"}");
  for (uint32_t i = 0; i < t->op_count; i++) {
    const struct tfc_traced_op *o = &t->ops[i];
    begin_slice(w, o->device + 1, OPERATIONS, at + o->start, o->end - o->start, "op");
    tfc_str op = tfc_table_text(&t->op_rows, i, "op"); // empty in cost graphs, whose nodes have no type
    add_escaped(&w->text, op.size ? op : tfc_table_text(&t->op_rows, i, "node"));
    add_literal(&w->text, "\", \"args\": {\"node\": \"");
    add_escaped(&w->text, tfc_table_text(&t->op_rows, i, "node"));
    add_literal(&w->text, "\", \"step\": "), add_integer(&w->text, step), add_literal(&w->text, "}}");
  }
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const struct tfc_traced_transfer *x = &t->transfers[i];
    begin_slice(w, x->target + 1, ARRIVING, at + x->start, x->end - x->start, "transfer");
    add_literal(&w->text, "from "), add_escaped(&w->text, tfc_table_text(&t->transfer_rows, i, "source"));
    add_literal(&w->text, "\", \"args\": {\"tensor\": \"");
    add_escaped(&w->text, tfc_table_text(&t->transfer_rows, i, "node"));
    add_literal(&w->text, ":"), add_integer(&w->text, x->output);
    add_literal(&w->text, "\", \"bytes\": "), add_integer(&w->text, x->bytes);
    add_literal(&w->text, ", \"step\": "), add_integer(&w->text, step), add_literal(&w->text, "}}");
    uint32_t producer = t->op_count; // the producer's last run that began before the transfer
    for (uint32_t k = 0; k < t->op_count && t->ops[k].start <= x->start; k++)
      if (t->ops[k].node == x->node && t->ops[k].device == x->source) producer = k;
    if (producer < t->op_count)
      add_flow(w, x->source + 1, OPERATIONS, at + t->ops[producer].start, x->target + 1, ARRIVING, at + x->start);
  }
  for (uint32_t i = 0; i < t->link_count; i++) {
    const struct tfc_traced_link *l = &t->links[i];
    if (l->transfer == TFC_NONE) continue;
    const struct tfc_traced_op *o = &t->ops[l->op];
    add_flow(w, o->device + 1, ARRIVING, at + t->transfers[l->transfer].start, o->device + 1, OPERATIONS,
             at + o->start);
  }
  for (int64_t d = 0; d < devices; d++) {
    int64_t until = -1;
    for (uint32_t i = 0; i < t->op_count; i++) {
      const struct tfc_traced_op *o = &t->ops[i];
      if (o->device != d) continue;
      if (o->start > until) {
        if (until >= 0) add_busy(w, d + 1, at + until, false);
        add_busy(w, d + 1, at + o->start, true);
      }
      if (o->end > until) until = o->end;
    }
    if (until >= 0) add_busy(w, d + 1, at + until, false);
  }
}

// Writes what the GPU's profiler recorded of one step: a row for each stream, with its kernels, copies and fills. Works
// of no device are in a process of their own.
static tfc_status add_streams(struct writer *w, struct tfc_store *store, const struct tfc_query_args *args, int64_t at,
                              int64_t devices) {
  static const char sql[] =
      "SELECT device_id, stream, start_us, duration_us, name, node, NULL AS bytes FROM v_kernel WHERE run_id = :run AND"
      " placement_id = :placement AND step = :step UNION ALL SELECT device_id, stream, start_us, duration_us, kind || "
      "' '"
      " || COALESCE(direction, ''), node, bytes FROM v_copy WHERE run_id = :run AND placement_id = :placement AND step "
      "="
      " :step ORDER BY 3";
  struct tfc_table rows = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, sql, args, &rows));
  for (uint32_t r = 0; r < rows.row_count; r++) {
    const struct tfc_cell *device = tfc_table_cell(&rows, r, 0), *stream = tfc_table_cell(&rows, r, 1),
                          *bytes = tfc_table_cell(&rows, r, 6);
    const int64_t pid = device->kind == TFC_CELL_INTEGER ? device->integer + 1 : devices + 1;
    const int tid = STREAMS + (stream->kind == TFC_CELL_INTEGER ? (int)stream->integer : 0);
    uint32_t k = 0;
    while (k < w->track_count && (w->tracks[k].pid != pid || w->tracks[k].tid != tid)) k++;
    if (k == w->track_count && k < MOST_TRACKS) {
      char name[32];
      snprintf(name, sizeof name, "stream %d", tid - STREAMS);
      w->tracks[w->track_count].pid = pid, w->tracks[w->track_count++].tid = tid;
      if (pid > devices) add_name(w, pid, 0, TFC_STR("no device"), (tfc_str){0});
      add_name(w, pid, tid, tfc_str_from(name), (tfc_str){0});
    }
    const int64_t start = llround(1e3 * tfc_table_cell(&rows, r, 2)->real);
    begin_slice(w, pid, tid, at + start, llround(1e3 * tfc_table_cell(&rows, r, 3)->real),
                bytes->kind == TFC_CELL_NULL ? "kernel" : "copy");
    add_escaped(&w->text, tfc_table_text(&rows, r, "name"));
    add_literal(&w->text, "\", \"args\": {\"node\": \"");
    add_escaped(&w->text, tfc_table_text(&rows, r, "node"));
    add_literal(&w->text, "\", \"step\": "), add_integer(&w->text, args->step);
    if (bytes->kind == TFC_CELL_INTEGER) add_literal(&w->text, ", \"bytes\": "), add_integer(&w->text, bytes->integer);
    add_literal(&w->text, "}}");
  }
out:
  tfc_table_deinit(&rows);
  return s;
}

// Only so many steps, the first ones, get memory counters, because computing these takes longer than everything else.
enum { MEMORY_STEPS = 4 };

// Finds the placement that the user wants, by its number or by its name.
static tfc_status choose_placement(struct tfc_store *store, const char *wanted, struct tfc_query_args *args) {
  struct tfc_table all = {0};
  tfc_status s = NULL;
  bool found = false;
  TFC_TRY(s, tfc_table_query(store, "SELECT placement_id, placement FROM v_result WHERE run_id = :run", args, &all));
  for (uint32_t r = 0; r < all.row_count && !found; r++) {
    const struct tfc_cell *id = tfc_table_cell(&all, r, 0);
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)id->integer);
    found = tfc_str_is(tfc_table_cell(&all, r, 1)->text, wanted) || strcmp(number, wanted) == 0;
    if (found) args->placement = id->integer;
  }
  if (!found)
    TFC_FAIL(s, TFC_NOT_FOUND, "%s: run %lld has no placement '%s' (tfc-report show %lld lists them)",
             tfc_store_path(store), (long long)args->run, wanted, (long long)args->run);
out:
  tfc_table_deinit(&all);
  return s;
}

tfc_status tfc_report_trace(struct tfc_store *store, int64_t run_id, const struct tfc_report_trace_options *options,
                            const char *path, uint64_t *out_events) {
  struct tfc_query_args args;
  struct tfc_table devices = {0}, steps = {0}, levels = {0}, edges = {0};
  struct tfc_traced traced = {0};
  struct tfc_text packed = {0};
  struct writer w = {0};
  int64_t device_count = 0;
  uint32_t written = 0;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  if (options->placement)
    TFC_TRY(s, choose_placement(store, options->placement, &args));
  else if (args.step < 0) { // the answer was not traced, so the last traced placement is used
    TFC_TRY(s, tfc_table_query(store, "SELECT MAX(placement_id) FROM v_op WHERE run_id = :run", &args, &steps));
    if (steps.row_count && steps.cells[0].kind == TFC_CELL_INTEGER) args.placement = steps.cells[0].integer;
    tfc_table_deinit(&steps);
  }
  TFC_TRY(s,
          tfc_table_query(store, "SELECT device_id, name, label FROM v_device WHERE run_id = :run ORDER BY device_id",
                          &args, &devices));
  TFC_TRY(s, tfc_table_query(
                 store,
                 "SELECT step, start_us, step_us FROM v_step s WHERE run_id = :run AND placement_id = :placement"
                 " AND EXISTS (SELECT 1 FROM v_op o WHERE o.run_id = :run AND o.placement_id = :placement AND"
                 " o.step = s.step)"
                 " ORDER BY start_us",
                 &args, &steps));
  if (steps.row_count == 0)
    TFC_FAIL(s, TFC_NOT_FOUND, "%s: run %lld has no traced step to export", tfc_store_path(store), (long long)args.run);
  tfc_text_printf(&w.text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
  add_name(&w, 0, 0, TFC_STR("steps"), (tfc_str){0});
  for (uint32_t r = 0; r < devices.row_count; r++) {
    int64_t device = tfc_table_cell(&devices, r, 0)->integer;
    if (device < 0 || device >= TFC_TRACED_DEVICES) continue; // the database may say anything
    if (device >= device_count) device_count = device + 1;
    add_name(&w, device + 1, 0, tfc_table_text(&devices, r, "name"), tfc_table_text(&devices, r, "label"));
    add_name(&w, device + 1, OPERATIONS, TFC_STR("operations"), (tfc_str){0});
    add_name(&w, device + 1, ARRIVING, TFC_STR("arriving"), (tfc_str){0});
  }
  TFC_TRY(s, tfc_traced_edges(store, &args, &edges));
  for (uint32_t r = 0; r < steps.row_count; r++) {
    args.step = tfc_table_cell(&steps, r, 0)->integer;
    if (args.step < options->first || args.step > options->last) continue;
    const int64_t at = llround(1e3 * (tfc_table_cell(&steps, r, 1)->real - tfc_table_cell(&steps, 0, 1)->real));
    TFC_TRY(s, tfc_traced_load_step(store, &args, &edges, &traced));
    add_step(&w, &traced, args.step, at, llround(1e3 * tfc_table_cell(&steps, r, 2)->real), device_count);
    TFC_TRY(s, add_streams(&w, store, &args, at, device_count));
    tfc_traced_deinit(&traced);
    if (written++ >= MEMORY_STEPS) continue;
    TFC_TRY(s, tfc_report_memory_levels(store, &args, &levels));
    add_memory(&w, &levels, at);
    tfc_table_deinit(&levels);
  }
  if (!written)
    TFC_FAIL(s, TFC_NOT_FOUND, "%s: the traced steps of the placement are %lld to %lld, none of them is asked for",
             tfc_store_path(store), (long long)tfc_table_cell(&steps, 0, 0)->integer,
             (long long)tfc_table_cell(&steps, steps.row_count - 1, 0)->integer);
  tfc_text_printf(&w.text, "\n]}\n");
  if (w.text.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (tfc_str_ends(tfc_str_from(path), ".gz")) TFC_TRY(s, gzip_text(&w.text, &packed));
  TFC_TRY(
      s, tfc_file_write(path, packed.size ? (tfc_str){packed.data, packed.size} : (tfc_str){w.text.data, w.text.size}));
  *out_events = w.events;
out:
  tfc_table_deinit(&devices);
  tfc_table_deinit(&edges);
  tfc_table_deinit(&levels);
  tfc_table_deinit(&steps);
  tfc_traced_deinit(&traced);
  tfc_text_deinit(&w.text);
  tfc_text_deinit(&packed);
  return s;
}
