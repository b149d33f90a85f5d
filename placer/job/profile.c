// Profile: the step on one device of each kind and on the undivided machine, blocks with and without tracing in turns;
// the links; and from all that the machine, the costs and the problem that searches see.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "profiler/statistics.h"
#include "runtime/base/units.h"

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

// The overhead of tracing: traced against untraced blocks of the same plan, in turns. On a machine whose steps vary by
// more than tracing costs it cannot be told from nothing; `out_least` is what it surely is (95 %).
static tfc_status overhead_of(const struct tfc_measured *m, double *out, double *out_least) {
  tfc_status s = NULL;
  enum { MOST = 16, ROUNDS = 2000 };
  struct tfc_block_pair pairs[MOST] = {{0}};
  double *us = calloc(m->step_count + 1u, sizeof *us);
  struct tfc_interval ratio;
  uint32_t count = 0;
  if (!us) return no_memory();
  for (uint32_t i = 0; i < m->step_count;) {
    uint32_t first = i, block = m->steps[i].block;
    for (; i < m->step_count && m->steps[i].block == block && m->steps[i].warmup == m->steps[first].warmup; i++)
      us[i] = 1e-3 * (double)m->steps[i].duration_ns;
    if (m->steps[first].warmup || count == MOST) continue;
    if (m->steps[first].traced)
      pairs[count].a = us + first, pairs[count].a_count = i - first;
    else
      pairs[count].b = us + first, pairs[count].b_count = i - first;
    count += pairs[count].a_count && pairs[count].b_count;
  }
  TFC_TRY(s, tfc_bootstrap_ratio(pairs, count, ROUNDS, 1, &ratio));
  *out = ratio.value - 1, *out_least = ratio.low - 1;
out:
  free(us);
  return s;
}

// What an operation takes beside its own time, on a device that is never idle: (step - operations) / operations.
static double dispatch_of(const struct tfc_measured *m) {
  double *each = calloc(m->profile_count + 1u, sizeof *each);
  size_t n = 0;
  for (uint32_t i = 0; each && i < m->profile_count; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    int64_t sum = 0;
    for (size_t k = 0; k < p->ops.count; k++) sum += p->ops.data[k].duration_ns;
    each[n++] = 1e-3 * (double)(p->duration_ns - sum) / (double)p->ops.count;
  }
  double median = tfc_quartiles_of(each, n).median;
  free(each);
  return isfinite(median) && median > 0 ? median : 0;
}

struct profiling {
  struct tfc_job *job;
  const uint32_t *device; // [entry] or UINT32_MAX: whole
};

static tfc_status learn_costs(struct tfc_job *j, const struct tfc_measured *m) {
  tfc_status s = NULL;
  struct tfc_fusion fusion;
  TFC_RETURN_IF_ERROR(tfc_fusion_init(&fusion, m->done_by, m->done_by_count, j->plain, j->kept));
  for (uint32_t i = 0; i < m->profile_count && !s; i++) {
    s = tfc_cost_table_add(j->alone, &m->profiles[i], j->kind_of_device, j->info->device_count, &fusion, NULL);
    if (!s) s = tfc_cost_table_add(j->costs, &m->profiles[i], j->kind_of_device, j->info->device_count, &fusion, NULL);
  }
  tfc_fusion_deinit(&fusion);
  return s;
}

// The first failure is the one that says why there is no profile: those behind it may only have had no time left.
static void remember_trouble(struct tfc_job *j, const struct tfc_measured *m) {
  if (j->trouble || m->state == TFC_RESULT_OK || !m->message) return;
  j->trouble = tfc_str_dup(tfc_str_from(m->message));
  j->trouble_code = m->code == TFC_OK || m->code == TFC_CANCELLED ? TFC_ABORTED : m->code;
}

// Steps on one device, with its operations as they run beside other devices.
static tfc_status run_in_parts(void *user, const struct tfc_measured *m) {
  struct tfc_job *j = user;
  remember_trouble(j, m);
  if (m->state != TFC_RESULT_OK) {
    tfc_job_say(j, true, "in parts: %s", m->message ? m->message : "the step failed");
    return NULL;
  }
  return learn_costs(j, m);
}

static tfc_status profiled(void *user, const struct tfc_measured *m) {
  tfc_status s = NULL;
  struct profiling *p = user;
  struct tfc_job *j = p->job;
  uint32_t device = p->device[m->entry];
  remember_trouble(j, m);
  bool whole = device == UINT32_MAX;
  struct tfc_job_known known = {.role = "baseline",
                                .whole = whole,
                                .single = !whole,
                                .baseline = true,
                                .median_us = (double)NAN,
                                .simulated_us = (double)NAN,
                                .final_us = (double)NAN};
  known.name = whole ? tfc_format("whole") : tfc_format("single:%s", j->info->devices[device].name);
  if (!known.name || !tfc_array_push(&j->known, known)) {
    free(known.name);
    return no_memory();
  }
  struct tfc_job_known *k = &j->known.data[j->known.count - 1];
  struct tfc_measured seen = *m;
  char *why = NULL;
  if (!whole) {
    TFC_TRY(s, tfc_solution_init(&k->solution, j->problem));
    tfc_status illegal = tfc_placement_single(j->problem, tfc_str_from(j->info->devices[device].name), &k->solution);
    if (illegal) { // pins and the like: timed for its costs, but no rival
      why = tfc_str_dup(tfc_str_from(tfc_status_message(illegal)));
      tfc_status_free(illegal);
      tfc_solution_deinit(&k->solution);
      seen.state = m->state == TFC_RESULT_OK ? TFC_RESULT_ILLEGAL : m->state;
      seen.message = why;
    } else {
      k->digest = tfc_job_digest(j->problem, k->solution.device);
    }
  }
  if (!whole && seen.state == TFC_RESULT_OK && m->peak_count > device &&
      m->peak[device] > j->bare->devices[device].memory) {
    char a[32], b[32];
    why = tfc_format("it needs %s, the limit is %s", tfc_show_bytes(a, (double)m->peak[device]),
                     tfc_show_bytes(b, (double)j->bare->devices[device].memory));
    seen.state = TFC_RESULT_NO_FIT, seen.message = why;
  }
  if (m->state == TFC_RESULT_OK && !whole) {
    uint32_t kind = j->kind_of_device[device];
    if (j->info->device_count == 1) TFC_TRY(s, learn_costs(j, m));
    j->calibration.kinds[kind].dispatch_us = dispatch_of(m);
    if (isnan(j->trace_overhead)) TFC_TRY(s, overhead_of(m, &j->trace_overhead, &j->trace_overhead_least));
  }
  TFC_TRY(s, tfc_job_record(j, k, &seen, "profile"));
  if (isfinite(k->median_us)) {
    char text[32];
    tfc_job_say(j, false, "%s: %s a step (%u steps)%s%s", k->name, tfc_show_us(text, k->median_us), k->steps,
                why ? "; " : "", why ? why : "");
  } else {
    tfc_job_say(j, true, "%s: %s", k->name, m->message ? m->message : "failed");
  }
out:
  free(why);
  return s;
}

// Steps without rewrites: what each operation takes by itself.
static tfc_status weighed(void *user, const struct tfc_measured *m) {
  struct tfc_job *j = user;
  remember_trouble(j, m);
  if (m->state != TFC_RESULT_OK)
    tfc_job_say(j, true, "without rewrites: %s", m->message ? m->message : "the step failed");
  for (uint32_t i = 0; i < m->profile_count; i++)
    TFC_RETURN_IF_ERROR(
        tfc_cost_table_add(j->plain, &m->profiles[i], j->kind_of_device, j->info->device_count, NULL, NULL));
  return NULL;
}

static tfc_status profile_steps(struct tfc_job *j) {
  tfc_status s = NULL;
  uint32_t count = 0, nodes = j->o->graph->node_count;
  uint32_t *device = calloc(j->info->device_count + 2u, sizeof *device);
  struct tfc_measure_entry *entry = calloc(j->info->device_count + 2u, sizeof *entry);
  uint16_t *placement = calloc(((size_t)j->info->device_count + 2) * nodes + 1, sizeof *placement);
  if (!device || !entry || !placement) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t d = 0; d < j->info->device_count; d++) {
    bool first = true;
    for (uint32_t e = 0; e < d; e++) first &= j->kind_of_device[e] != j->kind_of_device[d];
    if (!first) continue; // identical devices are measured once
    uint16_t *p = placement + (size_t)count * nodes;
    const bool *supported = j->info->supported + (size_t)j->kind_of_device[d] * nodes;
    for (uint32_t i = 0; i < nodes; i++) p[i] = supported[i] ? (uint16_t)d : (uint16_t)j->subject->host;
    entry[count].placement = p;
    device[count++] = d;
  }
  double seconds = tfc_job_total_seconds(j);
  for (uint32_t i = 0; i < count; i++) entry[i].plain = true;
  struct tfc_measure_batch plain = {.entries = entry,
                                    .count = count,
                                    .reference = UINT32_MAX,
                                    .warmup = 1,
                                    .block = 3,
                                    .blocks = 1,
                                    .best_us = (double)NAN,
                                    .ignore_limits = true,
                                    .again = true,
                                    .deadline_s = 1e-9 * (double)j->begin_ns - j->before_s + 0.1 * seconds};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &plain, weighed, j));
  TFC_TRY(s, tfc_job_keep_together(j));
  for (uint32_t i = 0; i < count; i++) entry[i].plain = false, entry[i].in_parts = true;
  struct tfc_measure_batch parts = plain;
  parts.block = 5;
  parts.deadline_s += 0.05 * seconds;
  if (j->info->device_count > 1) TFC_TRY(s, tfc_measurer_run(j->measurer, &parts, run_in_parts, j));
  for (uint32_t i = 0; i < count; i++) entry[i].in_parts = false;
  entry[count].whole = true;
  device[count++] = UINT32_MAX;
  struct profiling p = {j, device};
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = count,
                                    .reference = UINT32_MAX,
                                    .warmup = 2,
                                    .settle = true,
                                    .block = 3,
                                    .blocks = 4,
                                    .best_us = (double)NAN,
                                    .trace = TFC_TRACE_MODE_ALTERNATE,
                                    .ignore_limits = true,
                                    .again = true,
                                    .deadline_s = 1e-9 * (double)j->begin_ns - j->before_s + 0.2 * seconds};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, profiled, &p));
out:
  free(device);
  free(entry);
  free(placement);
  return s;
}

tfc_status tfc_job_profile(struct tfc_job *j) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_job_rebuild(j)); // without costs: units and what may go where
  if (j->o->evaluate)
    TFC_TRY(s, tfc_job_check_given(j));
  else
    TFC_TRY(s, tfc_job_check_room(j));
  TFC_TRY(s, profile_steps(j));
  bool any = false;
  for (size_t i = 0; i < j->known.count; i++) any |= j->known.data[i].single && isfinite(j->known.data[i].median_us);
  if (!any) {
    TFC_FAIL(s, j->trouble ? j->trouble_code : TFC_ABORTED, "the step could not be profiled: %s",
             j->trouble ? j->trouble : "no device could run it");
  }
  if (isfinite(j->trace_overhead)) {
    if (j->trace_overhead_least > 0.02) j->trace = TFC_TRACE_MODE_ALTERNATE;
    tfc_job_say(j, false, "tracing costs %.1f %% of a step%s", 100 * j->trace_overhead,
                j->trace == TFC_TRACE_MODE_ALTERNATE ? ": traced and untraced blocks alternate"
                : j->trace_overhead > 0.02           ? ", which is no more than the steps vary"
                                                     : "");
  }
  if (j->info->device_count > 1) {
    free(j->calibration.links);
    j->calibration.links = NULL;
    double end = 1e-9 * (double)j->begin_ns - j->before_s + 0.25 * tfc_job_total_seconds(j);
    TFC_TRY(s, tfc_measurer_links(j->measurer, end, &j->calibration.links, &j->calibration.link_count));
    for (uint32_t i = 0; i < j->calibration.link_count; i++) {
      const struct tfc_link_time *t = &j->calibration.links[i];
      char a[32], b[32];
      if (i == 0 || i + 1 == j->calibration.link_count || t->bytes == 262144)
        tfc_job_say(j, false, "%s to %s: %s in %s", j->info->devices[t->source].name, j->info->devices[t->target].name,
                    tfc_show_bytes(a, (double)t->bytes), tfc_show_us(b, t->time_us));
    }
  }
out:
  return s;
}

tfc_status tfc_job_rebuild(struct tfc_job *j) {
  tfc_status s = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_problem *problem = NULL, *coarse_problem = NULL;
  struct tfc_cost_graph *coarse_graph = NULL;
  struct tfc_simulator *simulator = NULL;
  TFC_TRY(s,
          tfc_local_machine(j->info, &j->calibration, j->o->execution.limits, j->o->execution.limit_count, &machine));
  for (uint32_t d = 0; d < machine->device_count; d++) // searches aim lower where placements need more than simulated
    if (machine->devices[d].memory != TFC_NO_LIMIT)
      machine->devices[d].memory = (uint64_t)((double)machine->devices[d].memory / j->memory_ratio);
  TFC_TRY(s, tfc_subject_cost_graph(j->subject, j->costs, false, j->kept, &graph));
  TFC_TRY(s, tfc_problem_create(graph, machine, j->o->objective, &problem));
  TFC_TRY(s, tfc_simulator_create(problem, &simulator));
  if (j->coarse) {
    TFC_TRY(s, tfc_subject_cost_graph(j->coarse, j->costs, false, j->kept, &coarse_graph));
    TFC_TRY(s, tfc_problem_create(coarse_graph, machine, j->o->objective, &coarse_problem));
  }
  bool first = j->problem == NULL;
  tfc_simulator_free(j->simulator);
  tfc_problem_free(j->problem);
  tfc_cost_graph_free(j->cost_graph);
  tfc_machine_free(j->machine);
  tfc_problem_free(j->coarse_problem);
  tfc_cost_graph_free(j->coarse_graph);
  j->coarse_problem = coarse_problem, j->coarse_graph = coarse_graph;
  coarse_problem = NULL, coarse_graph = NULL;
  j->machine = machine, j->cost_graph = graph, j->problem = problem, j->simulator = simulator;
  machine = NULL, graph = NULL, problem = NULL, simulator = NULL;
  if (first) TFC_TRY(s, tfc_job_store_subject(j));
  TFC_TRY(s, tfc_job_store_costs(j));
out:
  tfc_simulator_free(simulator);
  tfc_problem_free(problem);
  tfc_problem_free(coarse_problem);
  tfc_cost_graph_free(coarse_graph);
  tfc_cost_graph_free(graph);
  tfc_machine_free(machine);
  return s;
}

void tfc_job_predict(struct tfc_job *j) {
  for (size_t i = 0; i < j->known.count; i++) {
    struct tfc_job_known *k = &j->known.data[i];
    if (k->solution.device && isnan(k->simulated_us)) k->simulated_us = tfc_job_simulate(j, &k->solution);
  }
}

double tfc_job_simulate(struct tfc_job *j, const struct tfc_solution *solution) {
  struct tfc_verdict verdict = {0};
  tfc_simulate(j->simulator, solution->device, solution->rank, TFC_TIME_MAX, &verdict);
  return verdict.legal ? 1e-6 * (double)verdict.value : (double)NAN;
}
