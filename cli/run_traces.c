// The devices of all tasks are numbered in the order of their tasks.
#include "cli/run_traces.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph_digest.h"
#include "cli/program.h"
#include "profiler/collector.h"
#include "profiler/host.h"
#include "profiler/lock.h"
#include "profiler/store_rows.h"
#include "profiler/warnings.h"
#include "runtime/base/clock.h"
#include "runtime/base/none.h"
#include "runtime/base/units.h"

struct storing {
  const struct run_traces *traces;
  const struct run_setup *setup;
  struct tfc_store *store;
  uint32_t *first;    // [task + 1] number of its first device
  uint32_t *producer; // [node] the device that ran it in the step that is stored; TFC_NONE: none did
  int64_t run, key;
};

tfc_status run_traces_add(struct run_traces *traces, struct tfc_cluster_trace *step) {
  const struct tfc_cluster_trace taken = *step;
  *step = (struct tfc_cluster_trace){0};
  if (tfc_array_push(&traces->steps, taken)) return NULL;
  *step = taken;
  tfc_cluster_trace_deinit(step);
  return tfc_status_no_memory("a profile");
}

void run_traces_deinit(struct run_traces *traces) {
  for (size_t i = 0; i < traces->steps.count; i++) tfc_cluster_trace_deinit(&traces->steps.data[i]);
  tfc_array_free(&traces->steps);
}

static const struct tfc_device_info *device_of_task(const struct storing *w, uint32_t rank, uint32_t index) {
  return tfc_member_device(w->setup->member, rank, index);
}

// The label of a run whose operations are on these devices: that of the first one whose numbers are not plainly
// measured.
static const char *label_of(const struct storing *w) {
  const uint32_t tasks = (uint32_t)w->setup->tasks->tasks.count;
  for (uint32_t r = 0; r < tasks; r++)
    for (uint32_t d = 0; d < tfc_member_device_count(w->setup->member, r); d++)
      if (strcmp(device_of_task(w, r, d)->label, "measured") != 0) return device_of_task(w, r, d)->label;
  return "measured";
}

static tfc_status store_devices(struct storing *w) {
  const struct tfc_cluster_spec *spec = w->setup->tasks;
  uint32_t count = 0, spaces = 0; // memory spaces of the tasks before
  for (uint32_t r = 0; r < spec->tasks.count; r++) {
    uint32_t own_spaces = 0;
    w->first[r] = count;
    for (uint32_t d = 0; d < tfc_member_device_count(w->setup->member, r); d++) {
      const struct tfc_device_info *i = device_of_task(w, r, d);
      char task[TFC_TASK_TEXT], full[TFC_TASK_TEXT + sizeof "/device:" + sizeof i->name];
      snprintf(full, sizeof full, "%s/device:%s", tfc_cluster_task_name(spec, r, task), i->name);
      for (char *c = full + strlen(full) - strlen(i->name); *c; c++) *c = (char)toupper((unsigned char)*c);
      const struct tfc_store_device device = {.device_id = count++,
                                              .name = full,
                                              .kind = i->kind,
                                              .model = i->model,
                                              .tensorflow = full,
                                              .label = i->label,
                                              .cores = i->cores,
                                              .memory_limit = i->memory,
                                              .memory_space = spaces + i->address_space,
                                              .math = i->math[0] ? i->math : NULL,
                                              .dispatch_us = NAN};
      TFC_RETURN_IF_ERROR(tfc_store_add_devices(w->store, w->run, &device, 1));
      if (i->address_space >= own_spaces) own_spaces = i->address_space + 1;
    }
    spaces += own_spaces;
  }
  w->first[spec->tasks.count] = count;
  return NULL;
}

static tfc_status store_nodes(const struct storing *w) {
  const struct tfc_graph *g = w->setup->graph;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_store_node node = {.node_id = i,
                                        .name = g->nodes[i].name,
                                        .op = g->nodes[i].op,
                                        .unit_id = TFC_NONE,
                                        .flops = NAN,
                                        .bytes_touched = NAN};
    TFC_RETURN_IF_ERROR(tfc_store_add_nodes(w->store, w->run, &node, 1));
  }
  return NULL;
}

static uint32_t device_of(const struct storing *w, uint32_t rank, uint32_t device) {
  const uint32_t first = w->first[rank], count = w->first[rank + 1] - first;
  return device < count ? first + device : first;
}
static int64_t since(int64_t begin, int64_t ns) { // clocks of other hosts are set right only roughly
  return ns > begin ? ns - begin : 0;
}

static int by_begin(const void *a, const void *b) {
  const struct tfc_cluster_op *x = a, *y = b;
  if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}
static int by_begin_transfer(const void *a, const void *b) {
  const struct tfc_cluster_transfer *x = a, *y = b;
  return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

// The operations of a step, the earliest first, and how long each device was busy with them.
static tfc_status store_ops(const struct storing *w, uint32_t step, const struct tfc_cluster_trace *t) {
  const uint32_t devices = w->first[w->setup->tasks->tasks.count];
  tfc_status s = NULL;
  for (uint32_t i = 0; i < w->setup->graph->node_count; i++) w->producer[i] = TFC_NONE;
  struct tfc_profile_busy *busy = calloc(devices + 1u, sizeof *busy);
  int64_t *until = calloc(devices + 1u, sizeof *until);
  if (!busy || !until) TFC_TRY(s, tfc_status_no_memory("a profile"));
  for (uint32_t k = 0; k < t->ops.count; k++) {
    const struct tfc_cluster_op *o = &t->ops.data[k];
    const uint32_t d = device_of(w, o->rank, o->device);
    const int64_t begin = since(t->begin_ns, o->begin_ns), end = since(t->begin_ns, o->end_ns);
    w->producer[o->node] = d;
    const struct tfc_store_op op = {step, k, o->node, d, begin, end > begin ? end - begin : 0, -1, -1};
    TFC_TRY(s, tfc_store_add_ops(w->store, w->key, &op, 1));
    busy[d].operations++;
    busy[d].operations_ns += op.duration_ns;
    const int64_t from = begin > until[d] ? begin : until[d];
    if (end > from) busy[d].busy_ns += end - from, until[d] = end;
  }
  for (uint32_t d = 0; d < devices; d++) {
    if (busy[d].operations_ns > busy[d].busy_ns) busy[d].operations_ns = busy[d].busy_ns; // some ran side by side
    const struct tfc_store_busy row = tfc_store_busy_of(step, d, &busy[d]);
    TFC_TRY(s, tfc_store_add_busy(w->store, w->key, &row, 1));
  }
out:
  free(busy);
  free(until);
  return s;
}

static tfc_status store_transfers(const struct storing *w, uint32_t step, const struct tfc_cluster_trace *t) {
  for (uint32_t k = 0; k < t->transfers.count; k++) {
    const struct tfc_cluster_transfer *x = &t->transfers.data[k];
    const uint32_t producer = w->producer[x->tensor.node]; // none: it is elided, or its record was lost
    const int64_t begin = since(t->begin_ns, x->begin_ns), end = since(t->begin_ns, x->end_ns);
    const struct tfc_store_transfer row = {step,
                                           k,
                                           x->tensor.node,
                                           x->tensor.index,
                                           producer != TFC_NONE ? producer : device_of(w, x->from, 0),
                                           device_of(w, x->to, 0),
                                           x->bytes,
                                           begin,
                                           end > begin ? end - begin : 0};
    TFC_RETURN_IF_ERROR(tfc_store_add_transfers(w->store, w->key, &row, 1));
  }
  return NULL;
}

static tfc_status store_steps(const struct storing *w) {
  for (uint32_t i = 0; i < w->traces->steps.count; i++) {
    const struct tfc_cluster_trace *t = &w->traces->steps.data[i];
    const struct tfc_store_step step = {i, "profile", 0, true, t->begin_ns, t->end_ns - t->begin_ns};
    if (t->ops.count) qsort(t->ops.data, t->ops.count, sizeof *t->ops.data, by_begin);
    if (t->transfers.count) qsort(t->transfers.data, t->transfers.count, sizeof *t->transfers.data, by_begin_transfer);
    TFC_RETURN_IF_ERROR(tfc_store_add_steps(w->store, w->key, &step, 1));
    TFC_RETURN_IF_ERROR(store_ops(w, i, t));
    TFC_RETURN_IF_ERROR(store_transfers(w, i, t));
  }
  return NULL;
}

static int by_node(const void *a, const void *b) {
  const struct tfc_cluster_op *x = *(const struct tfc_cluster_op *const *)a,
                              *y = *(const struct tfc_cluster_op *const *)b;
  return (x->node > y->node) - (x->node < y->node);
}
// Sums each operation over all steps, for v_op_total.
static tfc_status store_totals(const struct storing *w) {
  tfc_status s = NULL;
  size_t count = 0, at = 0;
  for (size_t i = 0; i < w->traces->steps.count; i++) count += w->traces->steps.data[i].ops.count;
  const struct tfc_cluster_op **all = calloc(count + 1, sizeof *all);
  double *ns = calloc(count + 1, sizeof *ns);
  if (!all || !ns) TFC_TRY(s, tfc_status_no_memory("a profile"));
  for (size_t i = 0; i < w->traces->steps.count; i++)
    for (size_t k = 0; k < w->traces->steps.data[i].ops.count; k++) all[at++] = &w->traces->steps.data[i].ops.data[k];
  qsort(all, count, sizeof *all, by_node);
  for (size_t i = 0; i < count;) {
    struct tfc_store_op_total row = {.node_id = all[i]->node, .device_id = device_of(w, all[i]->rank, all[i]->device)};
    for (; i < count && all[i]->node == row.node_id; i++) {
      const int64_t took = since(all[i]->begin_ns, all[i]->end_ns);
      ns[row.samples++] = (double)took;
      row.total_ns += took;
    }
    const struct tfc_quartiles q = tfc_quartiles_of(ns, row.samples);
    row.median_ns = (int64_t)q.median, row.fastest_ns = (int64_t)q.least;
    TFC_TRY(s, tfc_store_add_op_totals(w->store, w->key, &row, 1));
  }
out:
  free(all);
  free(ns);
  return s;
}

static tfc_status store_run(struct storing *w, const char *what, struct tfc_quartiles q, bool stopped) {
  const struct run_options *o = w->setup->options;
  const char *label = label_of(w);
  struct tfc_host host;
  char digest[65], name[TFC_TASK_TEXT];
  char *line = tfc_program_command_line();
  uint64_t transfers = 0;
  tfc_status s = NULL;
  char *command = tfc_format("%s, %s%s%s", line ? line : "tfc-run", tfc_member_name(w->setup->member, name),
                             what ? ", " : "", what ? what : "");
  free(line);
  if (!command) TFC_TRY(s, tfc_status_no_memory("a profile"));
  tfc_host_describe(&host);
  TFC_TRY(s, cli_graph_digest(o->graph, digest));
  TFC_TRY(s, tfc_store_begin(w->store));
  const struct tfc_store_run row = {.program = "tfc-run",
                                    .command = command,
                                    .graph = o->graph,
                                    .graph_sha256 = digest[0] ? digest : NULL,
                                    .graph_nodes = w->setup->graph->node_count,
                                    .seed = (uint64_t)o->execution.seed,
                                    .host = host.name,
                                    .cpu_model = host.cpu_model,
                                    .blas_core = host.blas_core,
                                    .label = label};
  TFC_TRY(s, tfc_store_add_run(w->store, &row, &w->run));
  TFC_TRY(s, store_devices(w));
  TFC_TRY(s, store_nodes(w));
  if (w->traces->steps.count) transfers = w->traces->steps.data[w->traces->steps.count - 1].transfers.count;
  const struct tfc_store_placement placement = {.role = "baseline",
                                                .name = "run",
                                                .episode = -1,
                                                .state = "ok",
                                                .label = label,
                                                .simulated_us = NAN,
                                                .median_us = q.median,
                                                .q1_us = q.q1,
                                                .q3_us = q.q3,
                                                .steps = (uint32_t)w->traces->steps.count,
                                                .ratio = NAN,
                                                .reward = NAN,
                                                .cost_s = NAN,
                                                .at_s = NAN,
                                                .transfers = transfers};
  TFC_TRY(s, tfc_store_add_placement(w->store, w->run, &placement, NULL, 0, &w->key));
  TFC_TRY(s, store_steps(w));
  TFC_TRY(s, store_totals(w));
  TFC_TRY(s, tfc_warnings_store(tfc_program_warnings(), w->store, w->run));
  TFC_TRY(s, tfc_store_finish_measured(w->store, w->run, stopped ? "interrupted" : "done"));
  s = tfc_store_commit(w->store);
out:
  free(command);
  return s;
}

tfc_status run_traces_open(const struct run_setup *setup, int64_t quiet_ns, const _Atomic bool *cancel,
                           struct tfc_store **out) {
  const char *db = setup->options->db;
  const struct tfc_store_options options = {.write = true, .purpose = "tfc-run"};
  const int64_t loud = tfc_now_ns() + quiet_ns;
  bool told = false;
  char *lock = tfc_format("%s.lock", db);
  if (!lock) return tfc_status_no_memory("a profile");
  tfc_status s = tfc_store_open(db, &options, out);
  while (s && tfc_lock_held(lock)) {
    if (!told && tfc_now_ns() >= loud) {
      tfc_say("profile: %s; waiting", tfc_status_message(s));
      told = true;
    }
    tfc_status_free(s);
    tfc_sleep_ns(100000000);
    s = atomic_load(cancel) ? tfc_status_make(TFC_CANCELLED, "stopped while another process writes to %s", db)
                            : tfc_store_open(db, &options, out);
    if (tfc_status_code(s) == TFC_CANCELLED) break;
  }
  free(lock);
  return s;
}

tfc_status run_traces_store(const struct run_traces *traces, const struct run_setup *setup, const char *what,
                            struct tfc_quartiles step_us, bool stopped) {
  enum { QUIET_NS = 1000000000 }; // other tasks of this job may be storing theirs
  struct storing w = {.traces = traces, .setup = setup};
  const char *db = setup->options->db;
  int64_t lost = 0, off = 0;
  tfc_status s = NULL;
  for (size_t i = 0; i < traces->steps.count; i++) {
    const struct tfc_cluster_trace *t = &traces->steps.data[i];
    lost += t->lost;
    if (t->clock_off_ns > off) off = t->clock_off_ns;
  }
  if (lost) tfc_warn("--profile: %lld records of operations found no room", (long long)lost);
  if (off) tfc_say("profile: clocks of other hosts are set right to %.1f us", (double)off * 1e-3);
  w.first = calloc(setup->tasks->tasks.count + 1, sizeof *w.first);
  w.producer = calloc(setup->graph->node_count + 1u, sizeof *w.producer);
  if (!w.first || !w.producer) TFC_TRY(s, tfc_status_no_memory("a profile"));
  TFC_TRY(s, run_traces_open(setup, QUIET_NS, stopped ? tfc_program_cut_off() : tfc_program_cancel(), &w.store));
  TFC_TRY(s, store_run(&w, what, step_us, stopped));
  tfc_say("profile:%s%s run %lld in %s (tfc-report --db %s show %lld)", what ? " " : "", what ? what : "",
          (long long)w.run, db, db, (long long)w.run);
out:
  tfc_store_close(w.store);
  free(w.first);
  free(w.producer);
  return s;
}
