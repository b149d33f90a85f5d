#include "placer/job/model.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/together.h"
#include "runtime/graph/op_def.h"

// Returns all options except `together`, which the caller sets; `feeds` has room for the step's feeds.
static struct tfc_subject_options subject_options(const struct tfc_job_model *model, struct tfc_output *feeds) {
  const struct tfc_step_spec *step = model->o->step;
  for (uint32_t i = 0; i < step->feed_count; i++) feeds[i] = step->feeds[i].output;
  uint64_t all = 0, least = UINT64_MAX; // all memory and the smallest limit show whether a limit can matter
  for (uint32_t i = 0; i < model->info->output_count; i++) all += model->info->output_bytes[i];
  for (uint32_t d = 0; d < model->bare->device_count; d++)
    if (model->bare->devices[d].memory < least) least = model->bare->devices[d].memory;
  return (struct tfc_subject_options){.feeds = feeds,
                                      .feed_count = step->feed_count,
                                      .fetches = step->fetches,
                                      .fetch_count = step->fetch_count,
                                      .targets = step->targets,
                                      .target_count = step->target_count,
                                      .ops = model->info->ops,
                                      .op_count = model->info->op_count,
                                      .output_bytes = model->info->output_bytes,
                                      .machine = model->bare,
                                      .request = model->o->request,
                                      .host = model->bare->devices[0].name,
                                      .supported = model->info->supported,
                                      .done_by = model->info->done_by,
                                      .continued = model->info->continued,
                                      .continued_count = model->info->continued_count,
                                      .live = least < all};
}

tfc_status tfc_job_model_init(struct tfc_job_model *model, const struct tfc_job_options *o,
                              const struct tfc_measure_info *info) {
  *model = (struct tfc_job_model){.o = o,
                                  .info = info,
                                  .memory_ratio = 1,
                                  .trace_overhead = (double)NAN,
                                  .trace_overhead_least = (double)NAN,
                                  .trace = TFC_TRACE_MODE_ALL};
  return tfc_local_machine(info, NULL, o->execution.limits, o->execution.limit_count, &model->bare);
}

tfc_status tfc_job_model_take_graph(struct tfc_job_model *model) {
  tfc_status s = NULL;
  const uint32_t nodes = model->o->graph->node_count, devices = model->info->device_count;
  struct tfc_output *feeds = calloc(model->o->step->feed_count + 1u, sizeof *feeds);
  if (!feeds) return tfc_status_no_memory("the placement problem");
  struct tfc_subject_options options = subject_options(model, feeds);
  TFC_TRY(s, tfc_subject_create(model->o->graph, &options, &model->subject));
  TFC_TRY(s, tfc_calibration_init(&model->calibration, model->info));
  TFC_TRY(s, tfc_cost_table_create(nodes, model->calibration.kind_count, &model->plain));
  TFC_TRY(s, tfc_cost_table_create(nodes, model->calibration.kind_count, &model->alone));
  TFC_TRY(s, tfc_cost_table_create(nodes, model->calibration.kind_count, &model->costs));
  model->kind_of_device = calloc(devices + 1u, sizeof *model->kind_of_device);
  if (!model->kind_of_device) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < devices; d++) model->kind_of_device[d] = tfc_kind_of_device(model->info, d);
out:
  free(feeds);
  return s;
}

tfc_status tfc_job_model_keep_together(struct tfc_job_model *model, const struct tfc_job_clock *clock) {
  if (model->kept) return NULL;
  tfc_status s = NULL;
  uint32_t count = 0;
  struct tfc_node_pair *together = NULL;
  struct tfc_output *feeds = calloc(model->o->step->feed_count + 1u, sizeof *feeds);
  if (!feeds) TFC_TRY(s, tfc_status_no_memory(NULL));
  const struct tfc_job_together given = {model->o->graph, model->info, model->subject, model->plain,
                                         model->calibration.kind_count};
  TFC_TRY(s, tfc_job_find_together(&given, &model->kept, &together, &count));
  if (!count) goto out;
  struct tfc_subject_options options = subject_options(model, feeds);
  options.together = together, options.together_count = count;
  tfc_status apart = tfc_subject_create(model->o->graph, &options, &model->coarse);
  tfc_status_free(apart); // nodes to be kept together have different pins, so the search does without coarse units
  if (model->coarse)
    tfc_job_say(clock, false, "%u units where what runs fused, or on the same weights, is kept together",
                model->coarse->unit_count);
out:
  free(feeds);
  free(together);
  return s;
}

// Makes the machine of the profile. If placements turned out to need more memory than simulated, its limits are
// reduced, so that the placements that searches find fit in reality.
static tfc_status make_machine(const struct tfc_job_model *model, struct tfc_machine **out) {
  TFC_RETURN_IF_ERROR(tfc_local_machine(model->info, &model->calibration, model->o->execution.limits,
                                        model->o->execution.limit_count, out));
  for (uint32_t d = 0; d < (*out)->device_count; d++)
    if ((*out)->devices[d].memory != TFC_NO_LIMIT)
      (*out)->devices[d].memory = (uint64_t)((double)(*out)->devices[d].memory / model->memory_ratio);
  return NULL;
}

static tfc_status make_problem(const struct tfc_job_model *model, const struct tfc_subject *subject,
                               const struct tfc_machine *machine, struct tfc_cost_graph **out_graph,
                               struct tfc_problem **out) {
  TFC_RETURN_IF_ERROR(tfc_subject_cost_graph(subject, model->alone, false, model->kept, out_graph));
  return tfc_problem_create(*out_graph, machine, model->o->request.objective, out);
}

// Replaces the profile's machine, costs and problem by those with the learned costs. The units stay the same.
static tfc_status correct(const struct tfc_job_model *model, struct tfc_machine **machine,
                          struct tfc_cost_graph **graph, struct tfc_problem **problem) {
  struct tfc_learned_world world = {0};
  TFC_RETURN_IF_ERROR(tfc_learned_world(model->learned, *problem, NULL, &world));
  tfc_problem_free(*problem);
  tfc_cost_graph_free(*graph);
  tfc_machine_free(*machine);
  *machine = world.machine, *graph = world.graph, *problem = world.problem;
  return NULL;
}

tfc_status tfc_job_model_rebuild(struct tfc_job_model *model) {
  tfc_status s = NULL;
  const bool learned = model->learned && tfc_learned_readings(model->learned) > 0;
  struct tfc_machine *machine = NULL, *coarse_machine = NULL;
  struct tfc_cost_graph *graph = NULL, *coarse_graph = NULL;
  struct tfc_problem *problem = NULL, *coarse_problem = NULL;
  struct tfc_simulator *simulator = NULL;
  if (learned) TFC_TRY(s, tfc_learned_fit(model->learned));
  TFC_TRY(s, make_machine(model, &machine));
  TFC_TRY(s, make_problem(model, model->subject, machine, &graph, &problem));
  if (model->coarse) {
    TFC_TRY(s, make_machine(model, &coarse_machine));
    TFC_TRY(s, make_problem(model, model->coarse, coarse_machine, &coarse_graph, &coarse_problem));
    if (learned) TFC_TRY(s, correct(model, &coarse_machine, &coarse_graph, &coarse_problem));
  }
  if (learned) TFC_TRY(s, correct(model, &machine, &graph, &problem));
  TFC_TRY(s, tfc_simulator_create(problem, &simulator));
  tfc_simulator_free(model->simulator);
  tfc_problem_free(model->problem);
  tfc_cost_graph_free(model->cost_graph);
  tfc_machine_free(model->machine);
  tfc_problem_free(model->coarse_problem);
  tfc_cost_graph_free(model->coarse_graph);
  tfc_machine_free(model->coarse_machine);
  model->coarse_machine = coarse_machine, model->coarse_problem = coarse_problem, model->coarse_graph = coarse_graph;
  coarse_machine = NULL, coarse_problem = NULL, coarse_graph = NULL;
  model->machine = machine, model->cost_graph = graph, model->problem = problem, model->simulator = simulator;
  machine = NULL, graph = NULL, problem = NULL, simulator = NULL;
out:
  tfc_simulator_free(simulator);
  tfc_problem_free(problem);
  tfc_problem_free(coarse_problem);
  tfc_cost_graph_free(coarse_graph);
  tfc_cost_graph_free(graph);
  tfc_machine_free(machine);
  tfc_machine_free(coarse_machine);
  return s;
}

tfc_status tfc_job_model_begin_learning(struct tfc_job_model *model) {
  tfc_status s = NULL;
  model->profiled = true;
  if (model->prior_problem) return NULL;
  TFC_TRY(s, make_machine(model, &model->prior_machine));
  TFC_TRY(s, make_problem(model, model->subject, model->prior_machine, &model->prior_graph, &model->prior_problem));
  TFC_TRY(s, tfc_simulator_create(model->prior_problem, &model->prior_simulator));
  if (!model->o->prior && model->info->device_count > 1)
    TFC_TRY(s, tfc_learned_create(model->prior_problem, true, &model->learned));
out:
  return s;
}

void tfc_job_model_set_trace_overhead(struct tfc_job_model *model, double overhead, double least) {
  model->trace_overhead = overhead, model->trace_overhead_least = least;
  if (least > 0.02) model->trace = TFC_TRACE_MODE_ALTERNATE;
}

void tfc_job_model_set_timing(struct tfc_job_model *model, const struct tfc_measured *m) {
  model->by_records |= m->by_records;
}

void tfc_job_model_set_dispatch(struct tfc_job_model *model, uint32_t device, double us) {
  model->calibration.kinds[model->kind_of_device[device]].dispatch_us = us;
}

void tfc_job_model_set_slowdown(struct tfc_job_model *model, uint32_t device, uint32_t busy, double factor) {
  struct tfc_kind_calibration *k = &model->calibration.kinds[model->kind_of_device[device]];
  k->measured_us[busy] = 1e5 * factor;
  k->alone_us[busy] = busy > 1 ? 1e5 : 0;
}

void tfc_job_model_set_links(struct tfc_job_model *model, struct tfc_link_time *links, uint32_t count) {
  free(model->calibration.links);
  model->calibration.links = links, model->calibration.link_count = count;
}

tfc_status tfc_job_model_add_link(struct tfc_job_model *model, const struct tfc_link_time *link) {
  struct tfc_calibration *c = &model->calibration;
  struct tfc_link_time *more = realloc(c->links, (c->link_count + 1) * sizeof *more);
  if (!more) return tfc_status_no_memory("the times of links");
  c->links = more;
  more[c->link_count++] = *link;
  return NULL;
}

tfc_status tfc_job_model_add_cost(struct tfc_job_model *model, uint32_t node, uint32_t kind, double median_us,
                                  double fastest_us) {
  for (int i = 0; i < 3; i++) { // takes the median and the fastest time, so that the table has both
    const double us = i ? median_us : fastest_us;
    TFC_RETURN_IF_ERROR(tfc_cost_table_put(model->alone, node, kind, us));
    TFC_RETURN_IF_ERROR(tfc_cost_table_put(model->costs, node, kind, us));
  }
  return NULL;
}

void tfc_job_model_deinit(struct tfc_job_model *model) {
  tfc_learned_free(model->learned);
  tfc_simulator_free(model->prior_simulator);
  tfc_problem_free(model->prior_problem);
  tfc_cost_graph_free(model->prior_graph);
  tfc_machine_free(model->prior_machine);
  tfc_simulator_free(model->simulator);
  tfc_problem_free(model->problem);
  tfc_problem_free(model->coarse_problem);
  tfc_cost_graph_free(model->coarse_graph);
  tfc_machine_free(model->coarse_machine);
  tfc_subject_free(model->coarse);
  free(model->kept);
  tfc_cost_graph_free(model->cost_graph);
  tfc_machine_free(model->machine);
  tfc_subject_free(model->subject);
  tfc_machine_free(model->bare);
  tfc_cost_table_free(model->plain);
  tfc_cost_table_free(model->alone);
  tfc_cost_table_free(model->costs);
  tfc_calibration_deinit(&model->calibration);
  free(model->kind_of_device);
}

// --- Learning --------------------------------------------------------------------------------------------------------
tfc_status tfc_job_model_learn(struct tfc_job_model *model, const struct tfc_measured *m, bool plain) {
  tfc_status s = NULL;
  const uint32_t *kinds = model->kind_of_device, devices = model->info->device_count;
  struct tfc_fusion fusion = {0};
  if (!plain) TFC_RETURN_IF_ERROR(tfc_fusion_init(&fusion, m->done_by, m->done_by_count, model->plain, model->kept));
  for (uint32_t i = 0; i < m->profile_count && !s; i++) {
    const struct tfc_step_profile *p = &m->profiles[i];
    s = tfc_cost_table_add(plain ? model->plain : model->alone, p, kinds, devices, plain ? NULL : &fusion, NULL);
    if (!s && !plain) s = tfc_cost_table_add(model->costs, p, kinds, devices, &fusion, NULL);
  }
  tfc_fusion_deinit(&fusion);
  return s;
}

tfc_status tfc_job_model_see(struct tfc_job_model *model, const struct tfc_measured *m) {
  tfc_status s = NULL;
  struct tfc_fusion fusion = {0};
  TFC_RETURN_IF_ERROR(tfc_fusion_init(&fusion, m->done_by, m->done_by_count, model->plain, model->kept));
  for (uint32_t i = 0; i < m->profile_count && !s; i++)
    s = tfc_cost_table_add(model->costs, &m->profiles[i], model->kind_of_device, model->info->device_count, &fusion,
                           NULL);
  tfc_fusion_deinit(&fusion);
  return s;
}

tfc_status tfc_job_model_learn_step(struct tfc_job_model *model, const struct tfc_solution *solution, double step_us,
                                    const struct tfc_learned_trace *trace) {
  return model->learned ? tfc_learned_add(model->learned, solution, step_us, 1, trace) : NULL;
}

tfc_status tfc_job_model_load_learned(struct tfc_job_model *model, tfc_str text) {
  return tfc_learned_load(model->learned, text);
}

tfc_status tfc_job_model_draw(const struct tfc_job_model *model, struct tfc_random *random,
                              struct tfc_learned_world *out) {
  if (!model->learned || !tfc_learned_readings(model->learned))
    return tfc_status_make(TFC_FAILED_PRECONDITION, "nothing was learned");
  return tfc_learned_world(model->learned, tfc_job_model_search_problem(model), random, out);
}

// A plan reuses memory only where that adds no wait, so placements need more memory than the simulator predicts. This
// learns how much more, from placements that fit in the simulation.
void tfc_job_model_learn_memory(struct tfc_job_model *model, const struct tfc_solution *solution,
                                const struct tfc_measured *m) {
  struct tfc_verdict verdict = {0};
  double most = 0;
  if (!model->problem->has_limits || m->peak_count != model->info->device_count) return;
  if (m->state != TFC_RESULT_OK && m->state != TFC_RESULT_NO_FIT && m->state != TFC_RESULT_CUT) return;
  // If memory runs out here, the ratio stays as it is.
  if (!(verdict.memory = calloc(model->info->device_count + 1u, sizeof *verdict.memory))) return;
  tfc_simulate(model->simulator, solution->device, solution->rank, TFC_TIME_MAX, &verdict);
  for (uint32_t d = 0; d < model->info->device_count && verdict.legal; d++)
    if (model->bare->devices[d].memory != TFC_NO_LIMIT && verdict.memory[d] > model->bare->devices[d].memory / 4)
      most = fmax(most, (double)m->peak[d] / (double)verdict.memory[d]);
  free(verdict.memory);
  if (most > 0) model->memory_ratio = fmin(2.5, fmax(1, 0.7 * model->memory_ratio + 0.3 * most));
}

bool tfc_job_model_aim_nearer(struct tfc_job_model *model) {
  if (!(model->memory_ratio > 1)) return false;
  model->memory_ratio = model->memory_ratio > 1.02 ? 1 + 0.6 * (model->memory_ratio - 1) : 1;
  return true;
}

// --- Predictions and other queries ---------------------------------------------------------------------------------
double tfc_job_model_simulate(const struct tfc_job_model *model, const struct tfc_solution *solution) {
  struct tfc_verdict verdict = {0};
  tfc_simulate(model->simulator, solution->device, solution->rank, TFC_TIME_MAX, &verdict);
  return verdict.legal ? 1e-6 * (double)verdict.value : (double)NAN;
}

bool tfc_job_model_loads(const struct tfc_job_model *model, const struct tfc_solution *solution, double *out_us) {
  const uint32_t devices = model->info->device_count;
  struct tfc_verdict verdict = {.busy = calloc(devices + 1u, sizeof *verdict.busy)};
  if (verdict.busy) tfc_simulate(model->simulator, solution->device, solution->rank, TFC_TIME_MAX, &verdict);
  const bool known = verdict.busy && verdict.legal;
  for (uint32_t d = 0; known && d < devices; d++) out_us[d] = 1e-6 * (double)verdict.busy[d];
  free(verdict.busy);
  return known;
}

double tfc_job_model_prior(const struct tfc_job_model *model, const struct tfc_solution *solution) {
  struct tfc_verdict verdict = {0};
  if (!model->prior_simulator) return (double)NAN;
  tfc_simulate(model->prior_simulator, solution->device, solution->rank, TFC_TIME_MAX, &verdict);
  return verdict.legal ? 1e-6 * (double)verdict.value : (double)NAN;
}

bool tfc_job_model_predicts(const struct tfc_job_model *model) {
  return model->learned && tfc_learned_readings(model->learned) && model->o->request.objective == TFC_OBJECTIVE_STEP;
}

double tfc_job_model_predict(const struct tfc_job_model *model, const struct tfc_solution *solution, double *out_sd) {
  double us;
  return tfc_job_model_predicts(model) && tfc_learned_predict(model->learned, solution, &us, out_sd) ? us : (double)NAN;
}

double tfc_job_model_draw_time(const struct tfc_job_model *model, const struct tfc_solution *solution,
                               const struct tfc_learned_opinion *opinion, struct tfc_random *random) {
  double us;
  return tfc_job_model_predicts(model) && tfc_learned_predict_drawn(model->learned, solution, opinion, random, &us)
             ? us
             : (double)NAN;
}

uint64_t tfc_job_model_digest(const struct tfc_job_model *model, const tfc_device_id *device) {
  uint64_t h = 14695981039346656037u;
  for (uint32_t u = 0; u < model->problem->unit_count; u++) h = (h ^ (uint64_t)(device[u] + 1)) * 1099511628211u;
  return h;
}

bool tfc_job_model_runs_in_flight(const struct tfc_job_model *model) {
  const struct tfc_graph *g = model->o->graph;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (model->subject->needed[i] && g->nodes[i].def && (g->nodes[i].def->flags & TFC_OP_UPDATE)) return false;
  return model->o->request.objective == TFC_OBJECTIVE_THROUGHPUT;
}

const struct tfc_problem *tfc_job_model_search_problem(const struct tfc_job_model *model) {
  return model->coarse_problem ? model->coarse_problem : model->problem;
}

const struct tfc_subject *tfc_job_model_search_subject(const struct tfc_job_model *model) {
  return model->coarse_problem ? model->coarse : model->subject;
}

tfc_status tfc_job_model_found(const struct tfc_job_model *model, const struct tfc_solution *found,
                               struct tfc_solution *out) {
  TFC_RETURN_IF_ERROR(tfc_solution_init(out, model->problem));
  return tfc_subject_convert(tfc_job_model_search_subject(model), tfc_job_model_search_problem(model), found,
                             model->problem, out);
}

void tfc_job_model_compare_math(const struct tfc_job_model *model, const struct tfc_job_clock *clock, const char *file,
                                const struct tfc_placement *placement) {
  const char *math = tfc_devices_math(model->info->devices, model->info->device_count);
  if (math && placement->gpu_math.data && !tfc_str_is(placement->gpu_math, math))
    tfc_job_say(clock, true, "%s was measured with products in %.*s on GPUs; they are in %s now", file,
                TFC_STR_ARG(placement->gpu_math), math);
}
