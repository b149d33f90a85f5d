// Writes a run to the database: a row for each placement, its steps and, if the program sent a trace, the operations of
// a step. Each reading is one transaction.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/bandit.h"
#include "placer/elsewhere/record.h"
#include "placer/model/placement_json.h"
#include "placer/model/rows.h"
#include "profiler/collector.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "profiler/warnings.h"
#include "runtime/base/clock.h"

enum { RAW_KEPT = 20 }; // placements whose operations are kept in the database

tfc_status tfc_elsewhere_open(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  const struct tfc_elsewhere_options *o = r->o;
  const struct tfc_elsewhere_settings *t = o->settings;
  char host[128] = "";
  TFC_TRY(s,
          tfc_store_open(t->database, &(struct tfc_store_options){.write = true, .purpose = "tfc-place"}, &r->store));
  if (t->resume) goto out;
  TFC_TRY(s, tfc_store_begin(r->store));
  TFC_TRY(s, tfc_store_add_run(r->store,
                               &(struct tfc_store_run){
                                   .program = "tfc-place",
                                   .command = t->program_command,
                                   .graph = o->graph,
                                   .graph_sha256 = o->sha256,
                                   .graph_nodes = r->problem->node_count,
                                   .objective = tfc_objective_name(r->problem->objective),
                                   .algorithms = o->search.settings.algorithms ? o->search.settings.algorithms : "auto",
                                   .seed = o->search.seed,
                                   .label = tfc_label_name(tfc_command_label(r->program)),
                                   .host = host[0] ? host : NULL},
                               &r->run));
  TFC_TRY(s, tfc_store_set_state(r->store, r->run, "measured_with", tfc_str_from(t->measure_with)));
  TFC_TRY(s, tfc_problem_write_devices(r->problem, tfc_command_label(r->program), r->store, r->run));
  TFC_TRY(s, tfc_problem_write_graph(r->problem, r->store, r->run));
  TFC_TRY(s, tfc_problem_write_links(r->problem, r->store, r->run)); // the prior, as not measured
  TFC_TRY(s, tfc_problem_write_costs(r->problem, NULL, r->store, r->run));
  TFC_TRY(s, tfc_store_commit(r->store));
out:
  return s;
}

static const char *state_name(tfc_result_state state) {
  static const char *const names[] = {"ok", "cut", "no fit", "illegal", "failed"};
  return names[state];
}

static tfc_status add_placement(struct tfc_elsewhere *r, struct tfc_elsewhere_known *k) {
  tfc_status s = NULL;
  const struct tfc_problem *p = r->problem;
  struct tfc_verdict v = {0};
  const bool timed = k->state == TFC_RESULT_OK && isfinite(k->median_us);
  v.memory = calloc(p->device_count, sizeof *v.memory);
  if (!v.memory) return tfc_status_no_memory("recording a run");
  tfc_simulate(r->simulator, k->solution.device, k->solution.rank, TFC_TIME_MAX, &v);
  k->placement_id = r->next_id++;
  struct tfc_store_placement row = {.placement_id = k->placement_id,
                                    .role = k->role,
                                    .name = k->name,
                                    .algorithm = k->algorithm,
                                    .episode = k->baseline ? -1 : (int64_t)r->episodes,
                                    .digest = k->digest,
                                    .state = state_name(k->state),
                                    .label = tfc_label_name(tfc_command_label(r->program)),
                                    .simulated_us = k->simulated_us,
                                    .median_us = k->median_us,
                                    .q1_us = k->q1_us,
                                    .q3_us = k->q3_us,
                                    .steps = k->steps,
                                    .ratio = k->ratio,
                                    .reward = timed ? -k->median_us : (double)NAN,
                                    .cost_s = k->seconds,
                                    .at_s = tfc_elsewhere_seconds(r),
                                    .transfers = v.transfers,
                                    .transfer_bytes = v.transfer_bytes,
                                    .message = k->note};
  TFC_TRY(s, tfc_store_add_placement(r->store, r->run, &row, k->solution.device, p->unit_count, &k->key));
  const struct tfc_store_policy_search policy = tfc_search_account_row(&k->policy);
  if (policy.samples) TFC_TRY(s, tfc_store_add_policy_search(r->store, k->key, &policy));
  TFC_TRY(s, tfc_store_add_prediction(r->store, k->key, k->simulated_us, k->predicted_us, (double)NAN));
  for (uint32_t d = 0; d < p->device_count && timed; d++)
    TFC_TRY(s, tfc_store_add_memory(r->store, k->key, &(struct tfc_store_memory){d, v.memory[d], !p->has_live}, 1));
out:
  free(v.memory);
  return s;
}

// Rounds down to whole nanoseconds, so that sums of operations are not longer than their step.
static int64_t ns(double us) {
  return isfinite(us) ? (int64_t)floor(1e3 * us) : 0;
}
static int64_t step_ns(double us) {
  return (int64_t)ceil(1e3 * us);
}

// Returns the step that the trace belongs to: the shortest step that is not shorter than the trace.
static uint32_t step_of_trace(const struct tfc_command_answer *a, double span_us) {
  uint32_t best = TFC_NONE;
  for (uint32_t i = 0; i < a->step_us.count; i++)
    if (step_ns(a->step_us.data[i]) >= ns(span_us) && (best == TFC_NONE || a->step_us.data[i] < a->step_us.data[best]))
      best = i;
  return best;
}

static tfc_status add_trace(struct tfc_elsewhere *r, struct tfc_elsewhere_known *k, const struct tfc_command_answer *a,
                            uint32_t first_step) {
  tfc_status s = NULL;
  const struct tfc_problem *p = r->problem;
  double span = 0;
  int64_t *busy = calloc(p->device_count, sizeof *busy);
  uint32_t *count = calloc(p->device_count, sizeof *count), rows = 0;
  struct tfc_store_op *ops = calloc(a->operations.count + 1, sizeof *ops);
  if (!busy || !count || !ops) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = 0; i < a->operations.count; i++) {
    const struct tfc_command_operation *x = &a->operations.data[i];
    const uint64_t *node = tfc_strmap_get(&r->node_of, x->node), *device = tfc_strmap_get(&r->device_of, x->device);
    if (!node || !device) continue;
    ops[rows] =
        (struct tfc_store_op){0, rows, (uint32_t)*node, (uint32_t)*device, ns(x->start_us), ns(x->time_us), -1, 0};
    rows++;
    busy[*device] += ns(x->time_us), count[*device]++;
    if (isfinite(x->start_us)) span = fmax(span, x->start_us + x->time_us);
  }
  for (uint32_t d = 0; d < p->device_count; d++) span = fmax(span, 1e-3 * (double)busy[d]);
  const uint32_t at = rows ? step_of_trace(a, span) : TFC_NONE;
  if (at == TFC_NONE) goto out;
  const uint32_t step = first_step + at;
  for (uint32_t i = 0; i < rows; i++) ops[i].step = step, ops[i].position = i;
  TFC_TRY(s, tfc_store_add_ops(r->store, k->key, ops, rows));
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_store_busy row = {
        .step = step, .device_id = d, .operations = count[d], .operations_ns = busy[d], .busy_ns = busy[d]};
    TFC_TRY(s, tfc_store_add_busy(r->store, k->key, &row, 1));
  }
  uint32_t position = 0;
  for (size_t i = 0; i < a->transfers.count; i++) {
    const struct tfc_command_transfer *x = &a->transfers.data[i];
    const uint64_t *node = tfc_strmap_get(&r->node_of, x->node), *from = tfc_strmap_get(&r->device_of, x->from);
    const uint64_t *to = tfc_strmap_get(&r->device_of, x->to);
    uint64_t bytes = 0;
    if (!node || !from || !to) continue;
    for (uint32_t t = p->graph->first_tensor[*node]; t < p->graph->first_tensor[*node + 1]; t++)
      if (p->graph->output[t] == x->output) bytes = p->graph->bytes[t];
    const struct tfc_store_transfer row = {step,          position++, (uint32_t)*node, x->output,     (uint32_t)*from,
                                           (uint32_t)*to, bytes,      ns(x->start_us), ns(x->time_us)};
    TFC_TRY(s, tfc_store_add_transfers(r->store, k->key, &row, 1));
  }
out:
  free(busy);
  free(count);
  free(ops);
  return s;
}

tfc_status tfc_elsewhere_store(struct tfc_elsewhere *r, struct tfc_elsewhere_known *k,
                               const struct tfc_command_answer *a, const char *phase) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(r->store));
  if (!k->key) TFC_TRY(s, add_placement(r, k));
  const uint32_t first_step = k->next_step;
  const bool traced = a->operations.count > 0;
  int64_t start = tfc_now_ns() - (int64_t)(1e9 * a->seconds);
  for (size_t i = 0; i < a->step_us.count; i++) {
    const struct tfc_store_step row = {k->next_step++, phase, k->readings, traced, start, step_ns(a->step_us.data[i])};
    start += row.duration_ns;
    TFC_TRY(s, tfc_store_add_steps(r->store, k->key, &row, 1));
  }
  if (traced) TFC_TRY(s, add_trace(r, k, a, first_step));
  if (r->known.count > RAW_KEPT) {
    struct tfc_elsewhere_known *old = &r->known.data[r->known.count - RAW_KEPT - 1];
    const uint32_t index = (uint32_t)(old - r->known.data);
    if (old->key && !old->baseline && index != r->best && old != k) TFC_TRY(s, tfc_store_drop_raw(r->store, old->key));
  }
  TFC_TRY(s, tfc_store_commit(r->store));
out:
  return s;
}

tfc_status tfc_elsewhere_store_proposers(struct tfc_elsewhere *r) {
  struct tfc_store_proposer *list = calloc(r->known.count + 1, sizeof *list);
  uint32_t count = 0;
  if (!list) return tfc_status_no_memory("recording a run");
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    uint32_t at = 0;
    if (!k->key || k->baseline || !k->algorithm) continue;
    while (at < count && strcmp(list[at].name, k->algorithm) != 0) at++;
    if (at == count)
      list[count++] = (struct tfc_store_proposer){
          k->algorithm, tfc_elsewhere_is_learned(k->algorithm), 0, 0, (double)INFINITY, (double)INFINITY};
    list[at].measured++, list[at].won += k->won;
    list[at].best_simulated_us = fmin(list[at].best_simulated_us, k->simulated_us);
    list[at].best_measured_us = fmin(list[at].best_measured_us, k->median_us);
  }
  tfc_status s = tfc_store_add_proposers(r->store, r->run, list, count);
  free(list);
  return s;
}

tfc_status tfc_elsewhere_close(struct tfc_elsewhere *r, const struct tfc_elsewhere_verdict *v, tfc_status failed,
                               bool cancelled) {
  tfc_status s = NULL;
  struct tfc_text document = {0};
  const bool answered = v->answer != TFC_NONE;
  const struct tfc_elsewhere_known *k = answered ? &r->known.data[v->answer] : NULL;
  // A run that ends because the program or a task has died can go on with what was measured before, as one that was
  // killed.
  const bool broken_off = cancelled || tfc_status_code(failed) == TFC_UNAVAILABLE;
  if (!r->run) goto out;
  if (r->out->placement) TFC_TRY(s, tfc_placement_format(r->out->placement, &document));
  TFC_TRY(s, tfc_store_begin(r->store));
  if (r->out->summary) TFC_TRY(s, tfc_store_set_state(r->store, r->run, "learning", tfc_str_from(r->out->summary)));
  TFC_TRY(s, tfc_warnings_store(r->o->settings->warnings, r->store, r->run));
  TFC_TRY(s, tfc_store_finish_run(r->store, r->run,
                                  &(struct tfc_store_answer){.state = broken_off ? "interrupted"
                                                                      : failed   ? "failed"
                                                                                 : "done",
                                                             .exit_code = r->out->exit_code,
                                                             .algorithm = k ? k->algorithm : NULL,
                                                             .placement_id = k ? k->placement_id : -1,
                                                             .speedup = v->ratio,
                                                             .speedup_low = v->low,
                                                             .speedup_high = v->high,
                                                             .bound_us = (double)NAN,
                                                             .trace_overhead = (double)NAN,
                                                             .tau = (double)NAN,
                                                             .document = document.data,
                                                             .message = failed ? tfc_status_message(failed) : NULL}));
  TFC_TRY(s, tfc_store_commit(r->store));
  TFC_TRY(s, tfc_store_index(r->store));
out:
  tfc_text_deinit(&document);
  tfc_store_close(r->store);
  r->store = NULL;
  return s;
}
