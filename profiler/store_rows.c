// Writes rows: one function for each table that is filled during a run.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/activity.h"
#include "profiler/collector.h"
#include "profiler/store_private.h"
#include "profiler/store_rows.h"

// Writes a row of the values that follow.
#define PUT(store, statement, ...)                                                                                     \
  tfc_store_put(store, statement, (const struct tfc_store_value[]){__VA_ARGS__},                                       \
                sizeof(const struct tfc_store_value[]){__VA_ARGS__} / sizeof(struct tfc_store_value))
// Writes a row for each i below `count`, and returns.
#define PUT_ROWS(count, ...)                                                                                           \
  do {                                                                                                                 \
    for (size_t i = 0; i < (count); i++) TFC_RETURN_IF_ERROR(PUT(store, __VA_ARGS__));                                 \
    return NULL;                                                                                                       \
  } while (0)

static struct tfc_store_value integer(const char *column, int64_t x) {
  return (struct tfc_store_value){.column = column, .type = TFC_STORE_INTEGER, .integer = x};
}
static struct tfc_store_value known(const char *column, int64_t x, bool is_known) { // an unknown number is NULL
  return is_known ? integer(column, x) : (struct tfc_store_value){.column = column};
}
static struct tfc_store_value real(const char *column, double x) {
  return (struct tfc_store_value){.column = column, .type = TFC_STORE_REAL, .real = x};
}
static struct tfc_store_value real_or_null(const char *column, double x) { // NaN is NULL
  return isnan(x) ? (struct tfc_store_value){.column = column} : real(column, x);
}
static struct tfc_store_value string(const char *column, tfc_str x) {
  return (struct tfc_store_value){.column = column, .type = TFC_STORE_TEXT, .text = x};
}
static struct tfc_store_value text(const char *column, const char *x) { // NULL is ""
  return string(column, x ? tfc_str_from(x) : (tfc_str){0});
}
static struct tfc_store_value text_or_null(const char *column, const char *x) {
  return x ? text(column, x) : (struct tfc_store_value){.column = column};
}

static double unix_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

tfc_status tfc_store_add_run(struct tfc_store *store, const struct tfc_store_run *run, int64_t *out_id) {
  TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_RUN, text("state", "running"), text("program", run->program),
                          text("command", run->command), text("version", TFC_VERSION),
                          real("started_unix_s", run->started_unix_s > 0 ? run->started_unix_s : unix_now()),
                          text("graph", run->graph), text_or_null("graph_sha256", run->graph_sha256),
                          integer("graph_nodes", run->graph_nodes), text("objective", run->objective),
                          text_or_null("algorithms", run->algorithms), integer("seed", (int64_t)run->seed),
                          text("label", run->label), text_or_null("host", run->host),
                          text_or_null("cpu_model", run->cpu_model), text_or_null("blas_core", run->blas_core)));
  *out_id = sqlite3_last_insert_rowid(store->db);
  return NULL;
}

tfc_status tfc_store_finish_run(struct tfc_store *store, int64_t run_id, const struct tfc_store_answer *a) {
  return PUT(store, TFC_STORE_FINISH, integer("run_id", run_id), text("state", a->state),
             real("ended_unix_s", unix_now()), integer("exit_code", a->exit_code),
             text_or_null("algorithm", a->algorithm), known("best_placement_id", a->placement_id, a->placement_id >= 0),
             real_or_null("speedup", a->speedup), real_or_null("speedup_low", a->speedup_low),
             real_or_null("speedup_high", a->speedup_high), real_or_null("bound_us", a->bound_us),
             text_or_null("bound_name", a->bound_name), real_or_null("trace_overhead", a->trace_overhead),
             real_or_null("tau", a->tau), known("tau_placements", a->tau_placements, a->tau_placements >= 0),
             text_or_null("answer", a->document), text_or_null("message", a->message));
}

tfc_status tfc_store_finish_measured(struct tfc_store *store, int64_t run_id, const char *state) {
  const struct tfc_store_answer answer = {.state = state,
                                          .speedup = NAN,
                                          .speedup_low = NAN,
                                          .speedup_high = NAN,
                                          .bound_us = NAN,
                                          .trace_overhead = NAN,
                                          .tau = NAN};
  return tfc_store_finish_run(store, run_id, &answer);
}

tfc_status tfc_store_set_label(struct tfc_store *store, int64_t run_id, const char *label) {
  return PUT(store, TFC_STORE_LABEL, integer("run_id", run_id), text("label", label));
}
tfc_status tfc_store_set_graph_nodes(struct tfc_store *store, int64_t run_id, int64_t count) {
  return PUT(store, TFC_STORE_GRAPH_NODES, integer("run_id", run_id), integer("graph_nodes", count));
}
tfc_status tfc_store_set_state(struct tfc_store *store, int64_t run_id, const char *name, tfc_str value) {
  return PUT(store, TFC_STORE_STATE, integer("run_id", run_id), text("name", name),
             {.column = "value", .type = TFC_STORE_BYTES, .text = value});
}

tfc_status tfc_store_add_warning(struct tfc_store *store, int64_t run_id, const char *message) {
  return PUT(store, TFC_STORE_WARNING, integer("run_id", run_id), text("text", message));
}

tfc_status tfc_store_add_devices(struct tfc_store *store, int64_t run_id, const struct tfc_store_device *d,
                                 size_t count) {
  PUT_ROWS(count, TFC_STORE_DEVICE, integer("run_id", run_id), integer("device_id", d[i].device_id),
           text("name", d[i].name), text("kind", d[i].kind), text_or_null("model", d[i].model),
           text_or_null("tensorflow", d[i].tensorflow), text("label", d[i].label), integer("cores", d[i].cores),
           known("memory_bytes", (int64_t)d[i].memory_limit, d[i].memory_limit != UINT64_MAX),
           real_or_null("dispatch_us", d[i].dispatch_us), text_or_null("slowdown", d[i].slowdown),
           integer("memory_space", d[i].memory_space), text_or_null("math", d[i].math));
}
tfc_status tfc_store_add_links(struct tfc_store *store, int64_t run_id, const struct tfc_store_link *l, size_t count) {
  PUT_ROWS(count, TFC_STORE_LINK, integer("run_id", run_id), integer("source", l[i].source),
           integer("target", l[i].target), integer("bytes", (int64_t)l[i].bytes), real("time_us", l[i].time_us),
           integer("samples", l[i].samples));
}
tfc_status tfc_store_add_nodes(struct tfc_store *store, int64_t run_id, const struct tfc_store_node *n, size_t count) {
  PUT_ROWS(count, TFC_STORE_NODE, integer("run_id", run_id), integer("node_id", n[i].node_id),
           string("name", n[i].name), string("op", n[i].op), known("unit_id", n[i].unit_id, n[i].unit_id != TFC_NONE),
           real_or_null("flops", n[i].flops), real_or_null("bytes_touched", n[i].bytes_touched),
           integer("memory_bytes", (int64_t)n[i].memory), integer("output_bytes", (int64_t)n[i].output_bytes));
}
tfc_status tfc_store_add_costs(struct tfc_store *store, int64_t run_id, const struct tfc_store_cost *c, size_t count) {
  PUT_ROWS(count, TFC_STORE_COST, integer("run_id", run_id), integer("node_id", c[i].node_id), text("kind", c[i].kind),
           real("median_us", c[i].median_us), real("q1_us", c[i].q1_us), real("q3_us", c[i].q3_us),
           real("fastest_us", c[i].fastest_us), integer("samples", c[i].samples));
}
tfc_status tfc_store_add_edges(struct tfc_store *store, int64_t run_id, const struct tfc_store_edge *e, size_t count) {
  PUT_ROWS(count, TFC_STORE_EDGE, integer("run_id", run_id), integer("edge_id", (int64_t)i),
           integer("producer", e[i].producer), integer("output", e[i].output), integer("consumer", e[i].consumer),
           integer("bytes", (int64_t)e[i].bytes));
}

tfc_status tfc_store_add_placement(struct tfc_store *store, int64_t run_id, const struct tfc_store_placement *p,
                                   const uint16_t *device_by_unit, uint32_t unit_count, int64_t *out_key) {
  TFC_RETURN_IF_ERROR(PUT(
      store, TFC_STORE_PLACEMENT, integer("run_id", run_id), integer("placement_id", p->placement_id),
      text("role", p->role), text("name", p->name), text_or_null("algorithm", p->algorithm),
      known("episode", p->episode, p->episode >= 0), integer("digest", (int64_t)p->digest), text("state", p->state),
      text("label", p->label), real_or_null("simulated_us", p->simulated_us), real_or_null("median_us", p->median_us),
      real_or_null("q1_us", p->q1_us), real_or_null("q3_us", p->q3_us), integer("steps", p->steps),
      real_or_null("ratio", p->ratio), real_or_null("reward", p->reward), real_or_null("cost_s", p->cost_s),
      real_or_null("at_s", p->at_s), known("transfers", (int64_t)p->transfers, p->transfers != UINT64_MAX),
      known("transfer_bytes", (int64_t)p->transfer_bytes, p->transfer_bytes != UINT64_MAX),
      text_or_null("message", p->message)));
  int64_t key = sqlite3_last_insert_rowid(store->db);
  for (uint32_t u = 0; device_by_unit && u < unit_count; u++)
    TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_ASSIGNMENT, integer("placement", key), integer("unit_id", u),
                            integer("device_id", device_by_unit[u])));
  *out_key = key;
  return NULL;
}
tfc_status tfc_store_set_final(struct tfc_store *store, int64_t key, const char *name, double median_us, double q1_us,
                               double q3_us, uint32_t steps) {
  if (name) TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_NAME, integer("placement", key), text("name", name)));
  return PUT(store, TFC_STORE_FINAL, integer("placement", key), real("final_median_us", median_us),
             real("final_q1_us", q1_us), real("final_q3_us", q3_us), integer("final_steps", steps));
}

tfc_status tfc_store_add_steps(struct tfc_store *store, int64_t key, const struct tfc_store_step *s, size_t count) {
  PUT_ROWS(count, TFC_STORE_STEP, integer("placement", key), integer("step", s[i].step), text("phase", s[i].phase),
           integer("block", s[i].block), integer("traced", s[i].traced), integer("start_ns", s[i].start_ns),
           integer("duration_ns", s[i].duration_ns));
}
struct tfc_store_busy tfc_store_busy_of(uint32_t step, uint32_t device_id, const struct tfc_profile_busy *busy) {
  return (struct tfc_store_busy){.step = step,
                                 .device_id = device_id,
                                 .operations = busy->operations,
                                 .operations_ns = busy->operations_ns,
                                 .busy_ns = busy->busy_ns,
                                 .launch_ns = busy->idle.launch_ns,
                                 .transfer_ns = busy->idle.transfer_ns,
                                 .dependency_ns = busy->idle.dependency_ns,
                                 .end_ns = busy->idle.end_ns,
                                 .launch_gap_ns = busy->idle.longest_launch_gap_ns};
}
tfc_status tfc_store_add_busy(struct tfc_store *store, int64_t key, const struct tfc_store_busy *b, size_t count) {
  PUT_ROWS(count, TFC_STORE_BUSY, integer("placement", key), integer("step", b[i].step),
           integer("device_id", b[i].device_id), integer("operations_ns", b[i].operations_ns),
           integer("busy_ns", b[i].busy_ns), integer("operations", b[i].operations),
           integer("launch_ns", b[i].launch_ns), integer("transfer_ns", b[i].transfer_ns),
           integer("dependency_ns", b[i].dependency_ns), integer("end_ns", b[i].end_ns),
           integer("launch_gap_ns", b[i].launch_gap_ns));
}
tfc_status tfc_store_add_ops(struct tfc_store *store, int64_t key, const struct tfc_store_op *o, size_t count) {
  PUT_ROWS(count, TFC_STORE_OP, integer("placement", key), integer("step", o[i].step),
           integer("position", o[i].position), integer("node_id", o[i].node_id), integer("device_id", o[i].device_id),
           integer("start_ns", o[i].start_ns), integer("duration_ns", o[i].duration_ns),
           known("dispatch_ns", o[i].dispatch_ns, o[i].dispatch_ns >= 0),
           known("launched_ns", o[i].launched_ns, o[i].dispatch_ns >= 0));
}
tfc_status tfc_store_add_op_totals(struct tfc_store *store, int64_t key, const struct tfc_store_op_total *t,
                                   size_t count) {
  PUT_ROWS(count, TFC_STORE_OP_TOTAL, integer("placement", key), integer("node_id", t[i].node_id),
           integer("device_id", t[i].device_id), integer("samples", t[i].samples), integer("median_ns", t[i].median_ns),
           integer("fastest_ns", t[i].fastest_ns), integer("total_ns", t[i].total_ns));
}
tfc_status tfc_store_add_transfers(struct tfc_store *store, int64_t key, const struct tfc_store_transfer *t,
                                   size_t count) {
  PUT_ROWS(count, TFC_STORE_TRANSFER, integer("placement", key), integer("step", t[i].step),
           integer("position", t[i].position), integer("node_id", t[i].node_id), integer("output", t[i].output),
           integer("source", t[i].source), integer("target", t[i].target), integer("bytes", (int64_t)t[i].bytes),
           integer("start_ns", t[i].start_ns), integer("duration_ns", t[i].duration_ns));
}
tfc_status tfc_store_add_prediction(struct tfc_store *store, int64_t key, double prior_us, double learned_us,
                                    double learned_sd) {
  return PUT(store, TFC_STORE_PREDICTION, integer("placement", key), real_or_null("prior_us", prior_us),
             real_or_null("learned_us", learned_us), real_or_null("learned_sd", learned_sd));
}
tfc_status tfc_store_add_proposers(struct tfc_store *store, int64_t run, const struct tfc_store_proposer *p,
                                   size_t count) {
  PUT_ROWS(count, TFC_STORE_PROPOSER, integer("run_id", run), text_or_null("name", p[i].name),
           integer("learned", p[i].learned), integer("measured", p[i].measured), integer("won", p[i].won),
           real_or_null("best_simulated_us", isfinite(p[i].best_simulated_us) ? p[i].best_simulated_us : (double)NAN),
           real_or_null("best_measured_us", isfinite(p[i].best_measured_us) ? p[i].best_measured_us : (double)NAN));
}
tfc_status tfc_store_add_policy_search(struct tfc_store *store, int64_t key, const struct tfc_store_policy_search *p) {
  return PUT(store, TFC_STORE_POLICY_SEARCH, integer("placement", key), integer("samples", (int64_t)p->samples),
             real_or_null("entropy", p->entropy), real_or_null("invalid_share", p->invalid_share),
             integer("move_turns", p->move_turns), integer("move_wins", p->move_wins),
             real_or_null("move_gain", p->move_gain), real_or_null("move_s", p->move_s),
             real_or_null("other_gain", p->other_gain), real_or_null("other_s", p->other_s));
}
tfc_status tfc_store_add_memory(struct tfc_store *store, int64_t key, const struct tfc_store_memory *m, size_t count) {
  PUT_ROWS(count, TFC_STORE_MEMORY, integer("placement", key), integer("device_id", m[i].device_id),
           integer("peak_bytes", (int64_t)m[i].peak), integer("complete", !m[i].variables_only));
}
tfc_status tfc_store_add_load(struct tfc_store *store, int64_t key, const struct tfc_store_load *l) {
  TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_LOAD, integer("placement", key), real("load_us", l->load_us),
                          integer("samples", l->samples), integer("at_once", l->at_once)));
  PUT_ROWS(l->device_us ? l->device_count : 0, TFC_STORE_DEVICE_LOAD, integer("placement", key),
           integer("device_id", (int64_t)i), real("load_us", l->device_us[i]));
}
tfc_status tfc_store_add_moves_tried(struct tfc_store *store, int64_t key, uint32_t units, double value_us) {
  return PUT(store, TFC_STORE_MOVES_TRIED, integer("placement", key), integer("units", units),
             real("value_us", value_us));
}
tfc_status tfc_store_add_moves(struct tfc_store *store, int64_t key, const struct tfc_store_move *m, size_t count) {
  PUT_ROWS(count, TFC_STORE_SINGLE_MOVE, integer("placement", key), integer("unit_id", m[i].unit_id),
           integer("node_id", m[i].node_id), integer("operations", m[i].operations), integer("source", m[i].source),
           integer("target", m[i].target), real("won_us", m[i].won_us));
}
tfc_status tfc_store_add_works(struct tfc_store *store, int64_t key, uint32_t step, uint32_t first_device,
                               const struct tfc_activity_work *w, size_t count) {
  static const char *const kinds[] = {"kernel", "copy", "fill"};
  for (size_t i = 0; i < count; i++) {
    bool transfer = w[i].uid != TFC_NONE && w[i].uid & TFC_TRACE_UID_TRANSFER,
         kernel = w[i].kind == TFC_ACTIVITY_KERNEL;
    char grid[40], block[40];
    snprintf(grid, sizeof grid, "%ux%ux%u", w[i].grid[0], w[i].grid[1], w[i].grid[2]);
    snprintf(block, sizeof block, "%ux%ux%u", w[i].block[0], w[i].block[1], w[i].block[2]);
    TFC_RETURN_IF_ERROR(
        PUT(store, TFC_STORE_WORK, integer("placement", key), integer("step", step), integer("position", (int64_t)i),
            text("kind", kinds[w[i].kind % 3]), text("name", w[i].name),
            known("device_id", w[i].device + (int64_t)first_device, w[i].device != TFC_NO_DEVICE),
            known("node_id", w[i].uid, w[i].uid != TFC_NONE && !transfer), integer("context", w[i].context),
            integer("stream", w[i].stream), integer("start_ns", w[i].start_ns),
            integer("duration_ns", w[i].end_ns - w[i].start_ns), text_or_null("grid", kernel ? grid : NULL),
            text_or_null("block", kernel ? block : NULL), known("registers", w[i].registers, kernel),
            known("shared_bytes", w[i].shared, kernel), integer("bytes", (int64_t)w[i].bytes),
            text_or_null("direction", w[i].direction[0] ? w[i].direction : NULL),
            known("transfer", w[i].uid & ~TFC_TRACE_UID_TRANSFER, transfer),
            known("segment", w[i].correlation, w[i].graph_node != 0)));
  }
  return NULL;
}
tfc_status tfc_store_add_calls(struct tfc_store *store, int64_t key, uint32_t step, const struct tfc_activity_call *c,
                               size_t count) {
  static const char *const kinds[] = {"synchronize", "allocate", "release"};
  PUT_ROWS(count, TFC_STORE_CALL, integer("placement", key), integer("step", step), integer("position", (int64_t)i),
           text("kind", kinds[c[i].kind % 3]), text("name", c[i].name), integer("context", c[i].context),
           known("stream", c[i].stream, c[i].stream != TFC_NONE), integer("start_ns", c[i].start_ns),
           integer("duration_ns", c[i].end_ns - c[i].start_ns),
           known("bytes", (int64_t)c[i].bytes, c[i].kind != TFC_ACTIVITY_SYNCHRONIZE));
}
tfc_status tfc_store_drop_raw(struct tfc_store *store, int64_t key) {
  TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_DROP_CALLS, integer("placement", key)));
  TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_DROP_OPS, integer("placement", key)));
  TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_DROP_WORKS, integer("placement", key)));
  return PUT(store, TFC_STORE_DROP_TRANSFERS, integer("placement", key));
}

// --- Tuning ------------------------------------------------------------------------------------------------------
tfc_status tfc_store_put_tuning(struct tfc_store *store, const char *lines) {
  for (const char *line = lines; line && *line;) {
    size_t size = strcspn(line, "\n");
    const char *first = memchr(line, '\t', size);
    const char *second = first ? memchr(first + 1, '\t', size - (size_t)(first + 1 - line)) : NULL;
    if (second)
      TFC_RETURN_IF_ERROR(PUT(store, TFC_STORE_TUNING, string("device", (tfc_str){line, (size_t)(first - line)}),
                              string("key", (tfc_str){first + 1, (size_t)(second - first - 1)}),
                              string("value", (tfc_str){second + 1, size - (size_t)(second + 1 - line)})));
    line += size + (line[size] == '\n');
  }
  return NULL;
}

tfc_status tfc_store_get_tuning(struct tfc_store *store, char **out_lines) {
  struct tfc_text lines = {0};
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(store->db, "SELECT device, key, value FROM tuning", -1, &q, NULL) == SQLITE_OK)
    while (sqlite3_step(q) == SQLITE_ROW)
      tfc_text_printf(&lines, "%s\t%s\t%s\n", (const char *)sqlite3_column_text(q, 0),
                      (const char *)sqlite3_column_text(q, 1), (const char *)sqlite3_column_text(q, 2));
  sqlite3_finalize(q);
  *out_lines = lines.failed ? NULL : tfc_format("%s", lines.data ? lines.data : "");
  tfc_text_deinit(&lines);
  return *out_lines ? NULL : tfc_status_no_memory(NULL);
}
