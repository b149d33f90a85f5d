// Writes rows: one function for each table that is filled during a run.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/activity.h"
#include "profiler/collector.h"
#include "profiler/store_private.h"
#include "profiler/store_rows.h"

#define ROWS(count, ...)                                                                                               \
  do {                                                                                                                 \
    for (size_t i = 0; i < (count); i++) TFC_RETURN_IF_ERROR(tfc_store_put(store, __VA_ARGS__));                       \
    return NULL;                                                                                                       \
  } while (0)

static double unix_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double known(int64_t number, bool is_known) { // an unknown number is stored as NULL
  return is_known ? (double)number : NAN;
}

tfc_status tfc_store_add_run(struct tfc_store *store, const struct tfc_store_run *run, int64_t *out_id) {
  TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_RUN, "SSSFSsiSsiSsss", run->program, run->command, TFC_VERSION,
                                    run->started_unix_s > 0 ? run->started_unix_s : unix_now(), run->graph,
                                    run->graph_sha256, run->graph_nodes, run->objective, run->algorithms,
                                    (int64_t)run->seed, run->label, run->host, run->cpu_model, run->blas_core));
  *out_id = sqlite3_last_insert_rowid(store->db);
  return NULL;
}

tfc_status tfc_store_finish_run(struct tfc_store *store, int64_t run_id, const struct tfc_store_answer *a) {
  return tfc_store_put(store, TFC_STORE_FINISH, "iSFisfffffsfffss", run_id, a->state, unix_now(), (int64_t)a->exit_code,
                       a->algorithm, known(a->placement_id, a->placement_id >= 0), a->speedup, a->speedup_low,
                       a->speedup_high, a->bound_us, a->bound_name, a->trace_overhead, a->tau,
                       known(a->tau_placements, a->tau_placements >= 0), a->document, a->message);
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
  return tfc_store_put(store, TFC_STORE_LABEL, "iS", run_id, label);
}
tfc_status tfc_store_set_graph_nodes(struct tfc_store *store, int64_t run_id, int64_t count) {
  return tfc_store_put(store, TFC_STORE_GRAPH_NODES, "ii", run_id, count);
}
tfc_status tfc_store_set_state(struct tfc_store *store, int64_t run_id, const char *name, tfc_str value) {
  return tfc_store_put(store, TFC_STORE_STATE, "iSb", run_id, name, value);
}

tfc_status tfc_store_add_warning(struct tfc_store *store, int64_t run_id, const char *text) {
  return tfc_store_put(store, TFC_STORE_WARNING, "iS", run_id, text);
}

tfc_status tfc_store_add_devices(struct tfc_store *store, int64_t run_id, const struct tfc_store_device *d,
                                 size_t count) {
  ROWS(count, TFC_STORE_DEVICE, "iiSSssSiffsis", run_id, (int64_t)d[i].device_id, d[i].name, d[i].kind, d[i].model,
       d[i].tensorflow, d[i].label, (int64_t)d[i].cores,
       known((int64_t)d[i].memory_limit, d[i].memory_limit != UINT64_MAX), d[i].dispatch_us, d[i].slowdown,
       (int64_t)d[i].memory_space, d[i].math);
}
tfc_status tfc_store_add_links(struct tfc_store *store, int64_t run_id, const struct tfc_store_link *l, size_t count) {
  ROWS(count, TFC_STORE_LINK, "iiiiFi", run_id, (int64_t)l[i].source, (int64_t)l[i].target, (int64_t)l[i].bytes,
       l[i].time_us, (int64_t)l[i].samples);
}
tfc_status tfc_store_add_nodes(struct tfc_store *store, int64_t run_id, const struct tfc_store_node *n, size_t count) {
  ROWS(count, TFC_STORE_NODE, "iivvfffii", run_id, (int64_t)n[i].node_id, n[i].name, n[i].op,
       known(n[i].unit_id, n[i].unit_id != TFC_NONE), n[i].flops, n[i].bytes_touched, (int64_t)n[i].memory,
       (int64_t)n[i].output_bytes);
}
tfc_status tfc_store_add_costs(struct tfc_store *store, int64_t run_id, const struct tfc_store_cost *c, size_t count) {
  ROWS(count, TFC_STORE_COST, "iiSFFFFi", run_id, (int64_t)c[i].node_id, c[i].kind, c[i].median_us, c[i].q1_us,
       c[i].q3_us, c[i].fastest_us, (int64_t)c[i].samples);
}
tfc_status tfc_store_add_edges(struct tfc_store *store, int64_t run_id, const struct tfc_store_edge *e, size_t count) {
  ROWS(count, TFC_STORE_EDGE, "iiiiii", run_id, (int64_t)i, (int64_t)e[i].producer, (int64_t)e[i].output,
       (int64_t)e[i].consumer, (int64_t)e[i].bytes);
}

tfc_status tfc_store_add_placement(struct tfc_store *store, int64_t run_id, const struct tfc_store_placement *p,
                                   const uint16_t *device_by_unit, uint32_t unit_count, int64_t *out_key) {
  TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_PLACEMENT, "iiSSsfiSSffffiffffffs", run_id, p->placement_id,
                                    p->role, p->name, p->algorithm, known(p->episode, p->episode >= 0),
                                    (int64_t)p->digest, p->state, p->label, p->simulated_us, p->median_us, p->q1_us,
                                    p->q3_us, (int64_t)p->steps, p->ratio, p->reward, p->cost_s, p->at_s,
                                    known((int64_t)p->transfers, p->transfers != UINT64_MAX),
                                    known((int64_t)p->transfer_bytes, p->transfer_bytes != UINT64_MAX), p->message));
  int64_t key = sqlite3_last_insert_rowid(store->db);
  for (uint32_t u = 0; device_by_unit && u < unit_count; u++)
    TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_ASSIGNMENT, "iii", key, (int64_t)u, (int64_t)device_by_unit[u]));
  *out_key = key;
  return NULL;
}
tfc_status tfc_store_set_final(struct tfc_store *store, int64_t key, const char *name, double median_us, double q1_us,
                               double q3_us, uint32_t steps) {
  return tfc_store_put(store, TFC_STORE_FINAL, "isFFFi", key, name, median_us, q1_us, q3_us, (int64_t)steps);
}

tfc_status tfc_store_add_steps(struct tfc_store *store, int64_t key, const struct tfc_store_step *s, size_t count) {
  ROWS(count, TFC_STORE_STEP, "iiSiiii", key, (int64_t)s[i].step, s[i].phase, (int64_t)s[i].block, (int64_t)s[i].traced,
       s[i].start_ns, s[i].duration_ns);
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
  ROWS(count, TFC_STORE_BUSY, "iiiiiiiiiii", key, (int64_t)b[i].step, (int64_t)b[i].device_id, b[i].operations_ns,
       b[i].busy_ns, (int64_t)b[i].operations, b[i].launch_ns, b[i].transfer_ns, b[i].dependency_ns, b[i].end_ns,
       b[i].launch_gap_ns);
}
tfc_status tfc_store_add_ops(struct tfc_store *store, int64_t key, const struct tfc_store_op *o, size_t count) {
  ROWS(count, TFC_STORE_OP, "iiiiiiiff", key, (int64_t)o[i].step, (int64_t)o[i].position, (int64_t)o[i].node_id,
       (int64_t)o[i].device_id, o[i].start_ns, o[i].duration_ns, known(o[i].dispatch_ns, o[i].dispatch_ns >= 0),
       known(o[i].launched_ns, o[i].dispatch_ns >= 0));
}
tfc_status tfc_store_add_op_totals(struct tfc_store *store, int64_t key, const struct tfc_store_op_total *t,
                                   size_t count) {
  ROWS(count, TFC_STORE_OP_TOTAL, "iiiiiii", key, (int64_t)t[i].node_id, (int64_t)t[i].device_id, (int64_t)t[i].samples,
       t[i].median_ns, t[i].fastest_ns, t[i].total_ns);
}
tfc_status tfc_store_add_transfers(struct tfc_store *store, int64_t key, const struct tfc_store_transfer *t,
                                   size_t count) {
  ROWS(count, TFC_STORE_TRANSFER, "iiiiiiiiii", key, (int64_t)t[i].step, (int64_t)t[i].position, (int64_t)t[i].node_id,
       (int64_t)t[i].output, (int64_t)t[i].source, (int64_t)t[i].target, (int64_t)t[i].bytes, t[i].start_ns,
       t[i].duration_ns);
}
tfc_status tfc_store_add_prediction(struct tfc_store *store, int64_t key, double prior_us, double learned_us,
                                    double learned_sd) {
  return tfc_store_put(store, TFC_STORE_PREDICTION, "ifff", key, prior_us, learned_us, learned_sd);
}
tfc_status tfc_store_add_proposers(struct tfc_store *store, int64_t run, const struct tfc_store_proposer *p,
                                   size_t count) {
  ROWS(count, TFC_STORE_PROPOSER, "isiiiff", run, p[i].name, (int64_t)p[i].learned, (int64_t)p[i].measured,
       (int64_t)p[i].won, isfinite(p[i].best_simulated_us) ? p[i].best_simulated_us : (double)NAN,
       isfinite(p[i].best_measured_us) ? p[i].best_measured_us : (double)NAN);
}
tfc_status tfc_store_add_policy_search(struct tfc_store *store, int64_t key, const struct tfc_store_policy_search *p) {
  return tfc_store_put(store, TFC_STORE_POLICY_SEARCH, "iiffiiffff", key, (int64_t)p->samples, p->entropy,
                       p->invalid_share, (int64_t)p->move_turns, (int64_t)p->move_wins, p->move_gain, p->move_s,
                       p->other_gain, p->other_s);
}
tfc_status tfc_store_add_memory(struct tfc_store *store, int64_t key, const struct tfc_store_memory *m, size_t count) {
  ROWS(count, TFC_STORE_MEMORY, "iiii", key, (int64_t)m[i].device_id, (int64_t)m[i].peak,
       (int64_t)!m[i].variables_only);
}
tfc_status tfc_store_add_load(struct tfc_store *store, int64_t key, const struct tfc_store_load *l) {
  TFC_RETURN_IF_ERROR(
      tfc_store_put(store, TFC_STORE_LOAD, "iFii", key, l->load_us, (int64_t)l->samples, (int64_t)l->at_once));
  ROWS(l->device_us ? l->device_count : 0, TFC_STORE_DEVICE_LOAD, "iiF", key, (int64_t)i, l->device_us[i]);
}
tfc_status tfc_store_add_moves_tried(struct tfc_store *store, int64_t key, uint32_t units, double value_us) {
  return tfc_store_put(store, TFC_STORE_MOVES_TRIED, "iiF", key, (int64_t)units, value_us);
}
tfc_status tfc_store_add_moves(struct tfc_store *store, int64_t key, const struct tfc_store_move *m, size_t count) {
  ROWS(count, TFC_STORE_SINGLE_MOVE, "iiiiiiF", key, (int64_t)m[i].unit_id, (int64_t)m[i].node_id,
       (int64_t)m[i].operations, (int64_t)m[i].source, (int64_t)m[i].target, m[i].won_us);
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
    TFC_RETURN_IF_ERROR(tfc_store_put(
        store, TFC_STORE_WORK, "iiiSSffiiiissffisff", key, (int64_t)step, (int64_t)i, kinds[w[i].kind % 3], w[i].name,
        known(w[i].device + (int64_t)first_device, w[i].device != UINT16_MAX),
        known(w[i].uid, w[i].uid != TFC_NONE && !transfer), (int64_t)w[i].context, (int64_t)w[i].stream, w[i].start_ns,
        w[i].end_ns - w[i].start_ns, kernel ? grid : NULL, kernel ? block : NULL, known(w[i].registers, kernel),
        known(w[i].shared, kernel), (int64_t)w[i].bytes, w[i].direction[0] ? w[i].direction : NULL,
        known(w[i].uid & ~TFC_TRACE_UID_TRANSFER, transfer), known(w[i].correlation, w[i].graph_node != 0)));
  }
  return NULL;
}
tfc_status tfc_store_add_calls(struct tfc_store *store, int64_t key, uint32_t step, const struct tfc_activity_call *c,
                               size_t count) {
  static const char *const kinds[] = {"synchronize", "allocate", "release"};
  for (size_t i = 0; i < count; i++)
    TFC_RETURN_IF_ERROR(
        tfc_store_put(store, TFC_STORE_CALL, "iiiSSifiif", key, (int64_t)step, (int64_t)i, kinds[c[i].kind % 3],
                      c[i].name, (int64_t)c[i].context, known(c[i].stream, c[i].stream != TFC_NONE), c[i].start_ns,
                      c[i].end_ns - c[i].start_ns, known((int64_t)c[i].bytes, c[i].kind != TFC_ACTIVITY_SYNCHRONIZE)));
  return NULL;
}
tfc_status tfc_store_drop_raw(struct tfc_store *store, int64_t key) {
  TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_DROP_CALLS, "i", key));
  TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_DROP_OPS, "i", key));
  TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_DROP_WORKS, "i", key));
  return tfc_store_put(store, TFC_STORE_DROP_TRANSFERS, "i", key);
}

// --- Tuning ------------------------------------------------------------------------------------------------------
tfc_status tfc_store_put_tuning(struct tfc_store *store, const char *lines) {
  for (const char *line = lines; line && *line;) {
    size_t size = strcspn(line, "\n");
    const char *first = memchr(line, '\t', size);
    const char *second = first ? memchr(first + 1, '\t', size - (size_t)(first + 1 - line)) : NULL;
    if (second)
      TFC_RETURN_IF_ERROR(tfc_store_put(store, TFC_STORE_TUNING, "vvv", (tfc_str){line, (size_t)(first - line)},
                                        (tfc_str){first + 1, (size_t)(second - first - 1)},
                                        (tfc_str){second + 1, size - (size_t)(second + 1 - line)}));
    line += size + (line[size] == '\n');
  }
  return NULL;
}

tfc_status tfc_store_get_tuning(struct tfc_store *store, char **out_lines) {
  struct tfc_text text = {0};
  sqlite3_stmt *q = NULL;
  tfc_text_printf(&text, "%s", "");
  if (sqlite3_prepare_v2(store->db, "SELECT device, key, value FROM tuning", -1, &q, NULL) == SQLITE_OK)
    while (sqlite3_step(q) == SQLITE_ROW)
      tfc_text_printf(&text, "%s\t%s\t%s\n", (const char *)sqlite3_column_text(q, 0),
                      (const char *)sqlite3_column_text(q, 1), (const char *)sqlite3_column_text(q, 2));
  sqlite3_finalize(q);
  *out_lines = tfc_format("%s", text.data ? text.data : "");
  tfc_text_deinit(&text);
  return *out_lines ? NULL : tfc_status_no_memory(NULL);
}
