// tfc-place --machine with a TensorFlow graph: nothing runs. The step is found and planned as for a local device. The
// time of each operation is computed from its FLOP and bytes and the machine's rates (cost_model.h), and the search
// simulates steps. Every figure is modelled.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cost_model.h"
#include "cli/graph_digest.h"
#include "cli/import_note.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/step_args.h"
#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "placer/placer.h"
#include "placer/record.h"
#include "placer/search/rivals.h"
#include "placer/subject/subject.h"
#include "placer/tasks/steps.h"
#include "runtime/base/units.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

struct described {
  const struct place_options *o;
  struct tfc_graph *graph;
  struct cli_step step;
  struct tfc_machine *machine;
  struct tfc_device_set devices; // one local device, to plan the step; nothing runs on it
  struct tfc_session *session;
  struct tfc_plan *plan;
  struct tfc_shapes shapes;
  struct tfc_output *feeds;      // [step.spec.feed_count]
  struct tfc_shape *feed_shapes; // [step.spec.feed_count]
  uint32_t *ops;                 // [op_count] nodes that run
  uint32_t op_count;
  uint32_t *done_by;      // [node] the operation into which the node is fused; tensors between the two are not counted
  uint64_t *output_bytes; // [output_total]
  bool *supported;        // [kind * node_count + node]
  struct tfc_cost_table *costs;
  struct tfc_subject *subject;
  struct tfc_cost_graph *cost_graph;
  struct tfc_problem *problem;
  struct tfc_simulator *simulator;
  char digest[65];                        // sha256 of the graph's file, "": it could not be read
  const struct tfc_record_target *record; // where the answer is recorded
};

static double us(int64_t ps) {
  return ps == TFC_TIME_MAX ? (double)NAN : (double)ps / 1e6;
}

// --- The machine -----------------------------------------------------------------------------------------------------
// For --devices N: selects N devices of one kind. It is the kind with the most FLOP per second of those that have at
// least N devices.
static tfc_status select_devices(struct tfc_machine *m, const char *list) {
  int64_t count;
  tfc_status s = tfc_parse_i64(tfc_str_from(list), &count);
  if (s || count < 1) {
    tfc_status_free(s);
    return tfc_machine_select(m, tfc_str_from(list));
  }
  uint32_t best = TFC_NONE;
  for (uint32_t d = 0; d < m->device_count; d++) {
    int64_t alike = 0;
    for (uint32_t e = 0; e < m->device_count; e++) alike += tfc_str_equal(m->devices[e].kind, m->devices[d].kind);
    if (alike >= count && (best == TFC_NONE || m->devices[d].flops > m->devices[best].flops)) best = d;
  }
  if (best == TFC_NONE)
    return tfc_status_make(TFC_UNAVAILABLE, "the machine has no kind with %lld devices", (long long)count);
  return tfc_machine_select_kind(m, m->devices[best].kind, (uint32_t)count);
}

static tfc_status read_machine(struct described *d) {
  const struct place_options *o = d->o;
  TFC_RETURN_IF_ERROR(o->tasks ? place_tasks_machine(o->tasks, &d->machine)
                               : tfc_machine_read(o->machine, &d->machine));
  if (o->devices && !o->tasks) {
    tfc_status s = select_devices(d->machine, o->devices);
    if (s) return tfc_status_annotate(s, "--devices %s", o->devices);
  }
  for (uint32_t i = 0; i < o->limits.count; i++) {
    const char *text = o->limits.items[i], *equals = strrchr(text, '=');
    uint64_t bytes;
    tfc_status s = tfc_parse_bytes(tfc_str_from(equals + 1), &bytes);
    if (!s) s = tfc_machine_limit(d->machine, (tfc_str){text, (size_t)(equals - text)}, bytes);
    if (s) return tfc_status_annotate(s, "--memory %s", text);
  }
  for (uint32_t i = 0; i < d->machine->device_count && !o->tasks; i++)
    d->machine->devices[i].label = TFC_LABEL_MODELLED;
  return NULL;
}

// Returns the first device of kind "cpu", for operations that run only on a host; TFC_NONE: the machine has none.
static uint32_t host_of(const struct tfc_machine *m) {
  for (uint32_t i = 0; i < m->device_count; i++)
    if (tfc_str_is(m->devices[i].kind, "cpu")) return i;
  return TFC_NONE;
}

// --- The step --------------------------------------------------------------------------------------------------------
static tfc_status read_step(struct described *d) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  const struct place_options *o = d->o;
  const struct cli_step_args args = place_step_args(o);
  TFC_TRY(s, tfc_graph_load(o->graph, NULL, &d->graph));
  cli_import_describe(d->graph, &text);
  TFC_TRY(s, cli_step_infer(d->graph, &args, &d->step));
  for (uint32_t i = 0; i < d->step.spec.note_count; i++)
    tfc_text_printf(&text, "%.*s\n", TFC_STR_ARG(d->step.spec.notes[i]));
  TFC_TRY(s, tfc_lower_loaded(&d->graph));
  if (text.size) text.data[text.size - 1] = 0;
  tfc_say("%s", text.data ? text.data : "");
out:
  tfc_text_deinit(&text);
  return s;
}

// Plans the step on one local device, to find which nodes run as operations and which are elided.
static tfc_status plan_step(struct described *d) {
  const struct tfc_step_spec *step = &d->step.spec;
  const struct tfc_graph *g = d->graph;
  tfc_status s = NULL;
  struct tfc_shape_override *fed = calloc(step->feed_count + 1u, sizeof *fed);
  bool *runs = NULL;
  d->feeds = calloc(step->feed_count + 1u, sizeof *d->feeds);
  d->feed_shapes = calloc(step->feed_count + 1u, sizeof *d->feed_shapes);
  d->output_bytes = calloc(g->output_total + 1u, sizeof *d->output_bytes);
  if (!fed || !d->feeds || !d->feed_shapes || !d->output_bytes) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < step->feed_count; i++) {
    d->feeds[i] = step->feeds[i].output, d->feed_shapes[i] = step->feeds[i].shape;
    fed[i] = (struct tfc_shape_override){.output = d->feeds[i], .shape = d->feed_shapes[i]};
  }
  TFC_TRY(s, tfc_infer_fed_shapes(g, fed, step->feed_count, &d->shapes));
  TFC_TRY(s, tfc_devices_open("cpu:0", NULL, 0, &d->devices));
  TFC_TRY(s,
          tfc_session_create(g,
                             &(struct tfc_session_options){
                                 .devices = &d->devices, .execution.seed = d->o->execution.seed, .no_rewrites = true},
                             &d->session));
  TFC_TRY(s, tfc_plan_create(d->session,
                             &(struct tfc_run_spec){.feeds = d->feeds,
                                                    .feed_count = step->feed_count,
                                                    .feed_shapes = d->feed_shapes,
                                                    .fetches = step->fetches,
                                                    .fetch_count = step->fetch_count,
                                                    .targets = step->targets,
                                                    .target_count = step->target_count},
                             &d->plan));
  const struct tfc_plan_info *info = tfc_plan_info(d->plan);
  d->ops = calloc(g->node_count + 1u, sizeof *d->ops), d->done_by = malloc((g->node_count + 1u) * sizeof *d->done_by);
  runs = calloc(g->node_count + 1u, sizeof *runs);
  if (!d->ops || !d->done_by || !runs) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < info->op_count; i++) runs[info->ops[i].node] = true;
  for (uint32_t i = 0; i < g->node_count; i++) {
    d->done_by[i] = tfc_plan_done_by(info, i);
    if (runs[i] || d->done_by[i] != TFC_NONE) d->ops[d->op_count++] = i;
  }
  if (d->op_count == 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: the step has no operation that takes time: there is nothing to place",
             d->o->graph);
  for (uint32_t i = 0; i < g->output_total; i++) {
    size_t bytes = 0;
    if (!tfc_shape_is_static(&d->shapes.shapes[i]) || !g->output_dtypes[i]) continue;
    tfc_status t = tfc_tensor_bytes(tfc_dtype_base(g->output_dtypes[i]), &d->shapes.shapes[i], &bytes);
    d->output_bytes[i] = t ? 0 : bytes;
    tfc_status_free(t);
  }
out:
  free(fed);
  free(runs);
  return s;
}

// --- The problem -----------------------------------------------------------------------------------------------------
static tfc_status make_problem(struct described *d) {
  tfc_status s = NULL;
  const struct tfc_graph *g = d->graph;
  const struct tfc_machine *m = d->machine;
  const struct tfc_step_spec *step = &d->step.spec;
  uint32_t host = host_of(m), kinds = 0, hosted = 0, *order = calloc(m->device_count + 1u, sizeof *order);
  char a[32], b[32];
  struct cli_cost_total total = {0};
  if (!order) return tfc_status_no_memory("a machine");
  for (uint32_t i = 0; i < m->device_count; i++) {
    uint32_t k = 0;
    while (k < kinds && !tfc_str_equal(m->devices[order[k]].kind, m->devices[i].kind)) k++;
    if (k == kinds) order[kinds++] = i;
  }
  if (!(d->supported = calloc((size_t)kinds * g->node_count + 1, sizeof *d->supported)))
    TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t k = 0; k < kinds; k++)
    for (uint32_t i = 0; i < g->node_count; i++) {
      bool on_host = g->nodes[i].def && (g->nodes[i].def->flags & TFC_OP_HOST);
      d->supported[(size_t)k * g->node_count + i] = !on_host || host == TFC_NONE || order[k] == host;
    }
  for (uint32_t i = 0; i < d->op_count; i++) hosted += (g->nodes[d->ops[i]].def->flags & TFC_OP_HOST) != 0;
  if (hosted && host == TFC_NONE && !d->o->tasks)
    tfc_warn("%u operations run on hosts only, and no device of %s is of kind cpu: they are costed like the others",
             hosted, d->o->machine);
  TFC_TRY(s, d->o->tasks ? place_tasks_costs(d->o->tasks, m, d->ops, d->op_count, &d->costs)
                         : cli_cost_model(g, &d->shapes, d->ops, d->op_count, m, &d->costs, &total));
  TFC_TRY(s, tfc_subject_create(g,
                                &(struct tfc_subject_options){
                                    .feeds = d->feeds,
                                    .feed_count = step->feed_count,
                                    .fetches = step->fetches,
                                    .fetch_count = step->fetch_count,
                                    .targets = step->targets,
                                    .target_count = step->target_count,
                                    .ops = d->ops,
                                    .op_count = d->op_count,
                                    .output_bytes = d->output_bytes,
                                    .machine = m,
                                    .request = d->o->request,
                                    .host = host == TFC_NONE ? TFC_STR("") : m->devices[host].name,
                                    .supported = d->supported,
                                    .done_by = d->done_by,
                                    .live = true,
                                },
                                &d->subject));
  TFC_TRY(s, tfc_subject_cost_graph(d->subject, d->costs, false, NULL, &d->cost_graph));
  TFC_TRY(s, tfc_problem_create(d->cost_graph, m, d->o->request.objective, &d->problem));
  TFC_TRY(s, tfc_simulator_create(d->problem, &d->simulator));
  if (d->o->tasks) {
    tfc_say("the step: %u operations, %s of variables; %u units", d->op_count,
            tfc_show_bytes(b, (double)d->subject->variable_bytes), d->problem->unit_count);
    goto out;
  }
  tfc_say("the step, modelled: %u operations, %.3g GFLOP and %s read and written; %s of variables; %u units",
          d->op_count, 1e-9 * total.flops, tfc_show_bytes(a, total.bytes),
          tfc_show_bytes(b, (double)d->subject->variable_bytes), d->problem->unit_count);
  if (total.unknown)
    tfc_warn("%u operations have shapes that are known only when they run: they are costed by what is known "
             "(operations in loops count once)",
             total.unknown);
out:
  free(order);
  return s;
}

static tfc_status save_problem(const struct described *d) {
  const char *folder = d->o->save_problem;
  tfc_status s = NULL;
  char *graph = tfc_format("%s/graph.json", folder), *machine = tfc_format("%s/machine.yaml", folder);
  if (!graph || !machine) TFC_TRY(s, tfc_status_no_memory(NULL));
  (void)mkdir(folder, 0777); // an error shows when the files are written
  TFC_TRY(s, tfc_cost_graph_write(d->cost_graph, graph));
  TFC_TRY(s, tfc_machine_write(d->machine, machine));
out:
  free(graph);
  free(machine);
  return s;
}

// --- Rivals and the document -----------------------------------------------------------------------------------------
// Reads a rival's file: a placement, or a graph with device strings.
static tfc_status read_rival(const struct described *d, const char *path, struct tfc_solution *out) {
  tfc_status s = NULL;
  struct tfc_placement *placement = NULL;
  struct tfc_graph *graph = NULL;
  if (place_is_json(path)) {
    TFC_TRY(s, tfc_placement_read(path, &placement));
    TFC_TRY(s, tfc_status_annotate(tfc_subject_resolve(d->subject, d->problem, placement, out), "%s", path));
  } else {
    TFC_TRY(s, tfc_graph_load(path, NULL, &graph));
    TFC_TRY(s, tfc_lower_loaded(&graph));
    TFC_TRY(s, tfc_status_annotate(tfc_subject_strings(d->subject, d->problem, graph, out, NULL), "%s", path));
  }
out:
  tfc_placement_free(placement);
  tfc_graph_release(graph);
  return s;
}

static void add_baseline(const struct described *d, struct tfc_placement *p, tfc_str name,
                         const struct tfc_solution *solution, tfc_status wrong, int64_t *best) {
  struct tfc_placement_baseline *b = &p->baselines[p->baseline_count++];
  struct tfc_verdict v = {.value = TFC_TIME_MAX};
  *b = (struct tfc_placement_baseline){.name = name, .median_us = (double)NAN};
  if (!wrong) wrong = tfc_solution_check(d->problem, solution->device);
  if (wrong) {
    b->note = tfc_arena_str(&p->arena, tfc_str_from(tfc_status_message(wrong)));
    tfc_status_free(wrong);
    return;
  }
  tfc_simulate(d->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  b->median_us = us(v.value), b->feasible = v.feasible;
  if (!v.feasible) b->note = TFC_STR("does not fit in memory");
  if (best && v.feasible && v.value < *best) *best = v.value;
}

static tfc_status add_baselines(const struct described *d, struct tfc_placement *p, int64_t *best_single) {
  tfc_status s = NULL;
  struct tfc_solution solution = {0};
  char *note = NULL;
  const struct tfc_texts *given = &d->o->request.baselines;
  *best_single = TFC_TIME_MAX;
  p->baselines =
      TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_baseline, d->machine->device_count + given->count + 1u);
  if (!p->baselines) return tfc_status_no_memory("a machine");
  TFC_TRY(s, tfc_solution_init(&solution, d->problem));
  for (uint32_t i = 0; i < d->machine->device_count; i++) {
    for (uint32_t u = 0; u < d->problem->unit_count; u++) solution.device[u] = (tfc_device_id)i;
    add_baseline(d, p, tfc_arena_printf(&p->arena, "single:%.*s", TFC_STR_ARG(d->machine->devices[i].name)), &solution,
                 NULL, best_single);
  }
  if (d->o->request.device_strings == TFC_STRINGS_BASELINE) {
    s = tfc_subject_strings(d->subject, d->problem, d->graph, &solution, &note);
    if (tfc_status_code(s) == TFC_NOT_FOUND) {
      tfc_status_free(s);
      s = NULL;
    } else {
      if (note) tfc_warn("expert: device strings mapped to the devices in use: %s", note);
      add_baseline(d, p, TFC_STR("expert"), &solution, s, NULL);
      s = NULL;
    }
  }
  for (uint32_t i = 0; i < given->count; i++) {
    const char *text = given->items[i], *equals = strchr(text, '=');
    TFC_TRY(s, tfc_status_annotate(read_rival(d, equals + 1, &solution), "--baseline %s", text));
    add_baseline(d, p, tfc_arena_str(&p->arena, (tfc_str){text, (size_t)(equals - text)}), &solution, NULL, NULL);
    free(solution.rank);
    solution.rank = NULL;
  }
out:
  free(note);
  tfc_solution_deinit(&solution);
  return s;
}

static tfc_status document(const struct described *d, const struct tfc_solution *solution,
                           const struct tfc_bound *bound, struct tfc_place_outcome *out, int64_t *best_single) {
  tfc_status s = NULL;
  char digest[65] = "";
  TFC_TRY(s, tfc_placement_from_solution(d->problem, solution, bound, &out->placement));
  struct tfc_placement *p = out->placement;
  TFC_TRY(s, tfc_subject_document(d->subject, d->problem, solution, p));
  TFC_TRY(s, add_baselines(d, p, best_single));
  p->graph_file = tfc_arena_str(&p->arena, tfc_str_from(d->o->graph));
  TFC_TRY(s, cli_graph_digest(d->o->graph, digest));
  if (digest[0]) p->graph_sha256 = tfc_arena_str(&p->arena, tfc_str_from(digest));
out:
  return s;
}

// Makes the record of an answer, with the graph's nodes and what each of them computes.
static tfc_status record(const struct described *d, struct tfc_record *r, struct tfc_place_outcome *out) {
  const struct tfc_graph *g = d->graph;
  struct tfc_op_cost *work = calloc(g->node_count + 1u, sizeof *work);
  if (!work) return tfc_status_no_memory("a report");
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t cost = d->subject->cost_of[i];
    const bool runs = cost != TFC_NONE && d->subject->runs[cost];
    if (!runs || !tfc_node_cost(g, &g->nodes[i], &d->shapes, &work[i]))
      work[i] = (struct tfc_op_cost){.flops = (double)NAN, .bytes = (double)NAN};
  }
  const struct tfc_subject_rows rows = {.subject = d->subject,
                                        .problem = d->problem,
                                        .output_bytes = d->output_bytes,
                                        .output_count = g->output_total,
                                        .work = work,
                                        .node_count = g->node_count};
  r->problem = d->problem, r->document = out->placement, r->graph = d->o->graph, r->exit_code = out->exit_code;
  r->graph_rows = &rows;
  r->message =
      "nothing was run: times follow from each operation's FLOP and bytes at the rates of the machine file; real ones "
      "are longer";
  tfc_place_record(r, d->record, out);
  free(work);
  return NULL;
}

// --- Searching and evaluating ----------------------------------------------------------------------------------------
static tfc_status check_given_devices(const struct described *d) {
  const char *what = d->o->evaluate;
  struct tfc_placement *file = NULL;
  tfc_status s = NULL;
  if (strcmp(what, "-") == 0) return NULL;
  if (strncmp(what, "single:", 7) != 0) TFC_TRY(s, tfc_placement_read(what, &file));
  TFC_TRY(s, tfc_placement_check_devices(what, file, d->machine, true));
out:
  tfc_placement_free(file);
  return s;
}

// Reads the placement that --evaluate names. The caller deinitialises *out, also after an error.
static tfc_status read_given(const struct described *d, struct tfc_solution *out) {
  tfc_status s = NULL;
  const char *what = d->o->evaluate;
  if (strncmp(what, "single:", 7) == 0) return tfc_placement_single(d->problem, tfc_str_from(what + 7), out);
  TFC_TRY(s, tfc_solution_init(out, d->problem));
  if (strcmp(what, "-") == 0) {
    char *note = NULL;
    TFC_TRY(s, tfc_subject_strings(d->subject, d->problem, d->graph, out, &note));
    if (note) tfc_warn("device strings mapped to the devices in use: %s", note);
    free(note);
  } else {
    TFC_TRY(s, read_rival(d, what, out));
  }
out:
  return s;
}

static tfc_status evaluate(const struct described *d, struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  struct tfc_solution solution = {0};
  struct tfc_bound bound;
  int64_t best;
  TFC_TRY(s, read_given(d, &solution));
  TFC_TRY(s, tfc_bound_compute(d->problem, NULL, &bound));
  TFC_TRY(s, document(d, &solution, &bound, out, &best));
  out->placement->algorithm = TFC_STR("given");
  out->exit_code = out->placement->feasible ? 0 : 5;
  out->over_limits = tfc_place_over_limits(d->problem, out->placement);
  if (d->record->wanted) TFC_TRY(s, record(d, &(struct tfc_record){.answer = &solution}, out));
out:
  tfc_solution_deinit(&solution);
  return s;
}

static void summarise(const struct tfc_search_outcome *r, int64_t best_single, struct tfc_place_outcome *out) {
  char a[32];
  struct tfc_text t = {0};
  if (best_single != TFC_TIME_MAX)
    tfc_text_printf(&t, "Best single device: %s, %.3f times as long (modelled).\n", tfc_show_us(a, us(best_single)),
                    best_single == r->value ? 1.0 : (double)best_single / (double)r->value);
  else
    tfc_text_printf(&t, "No single device can hold and run it (modelled).\n");
  if (r->bound.value > 0 && !r->excess)
    tfc_text_printf(&t, "Lower bound %s (%s); the answer is %.1f %% above it%s.\n", tfc_show_us(a, us(r->bound.value)),
                    tfc_bound_name(r->bound.kind), 100 * ((double)r->value / (double)r->bound.value - 1),
                    r->optimal ? ": optimal" : "");
  if (r->excess)
    tfc_text_printf(&t, "Nothing that was tried fits in memory: %s too much in the best of it.\n",
                    tfc_show_bytes(a, (double)r->excess));
  tfc_text_printf(&t, "Nothing was run: times follow from each operation's FLOP and bytes at the rates of the machine "
                      "file, and real ones are longer.\n");
  tfc_search_account_tell(&r->learned, &t);
  out->summary = t.data;
}

// Reads the rivals for every row of the table: single devices, the graph's own device strings, files.
static tfc_status read_rivals(const struct described *d, struct tfc_rival *rivals, uint32_t *count) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < d->machine->device_count; i++) {
    struct tfc_rival *r = &rivals[(*count)++];
    r->name = "single";
    TFC_TRY(s, tfc_solution_init(&r->solution, d->problem));
    for (uint32_t u = 0; u < d->problem->unit_count; u++) r->solution.device[u] = (tfc_device_id)i;
  }
  if (d->o->request.device_strings == TFC_STRINGS_BASELINE) {
    struct tfc_rival *r = &rivals[(*count)++];
    r->name = "expert";
    TFC_TRY(s, tfc_solution_init(&r->solution, d->problem));
    tfc_status none = tfc_subject_strings(d->subject, d->problem, d->graph, &r->solution, NULL);
    if (none) tfc_solution_deinit(&rivals[--*count].solution); // the note in the table says why
    tfc_status_free(none);
  }
  for (uint32_t i = 0; i < d->o->request.baselines.count; i++) {
    const char *text = d->o->request.baselines.items[i], *equals = strchr(text, '=');
    struct tfc_rival *r = &rivals[(*count)++];
    r->name = "baseline";
    TFC_TRY(s, tfc_solution_init(&r->solution, d->problem));
    TFC_TRY(s, tfc_status_annotate(read_rival(d, equals + 1, &r->solution), "--baseline %s", text));
  }
out:
  return s;
}

static tfc_status search(const struct described *d, const struct tfc_search_options *options,
                         struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  int64_t best;
  uint32_t rival_count = 0;
  struct tfc_rival *rivals =
      calloc((size_t)d->machine->device_count + d->o->request.baselines.count + 1, sizeof *rivals);
  if (!rivals) return tfc_status_no_memory("a machine");
  TFC_TRY(s, read_rivals(d, rivals, &rival_count));
  struct tfc_search_options searched = *options;
  if (d->record->page) searched.seconds = tfc_record_leaves(searched.seconds, d->problem->node_count);
  TFC_TRY(s, tfc_search_beside(d->problem, &searched, rivals, rival_count, &out->search));
  const struct tfc_search_outcome *r = &out->search;
  if (!r->best.device) {
    if (r->cancelled) TFC_FAIL(s, TFC_CANCELLED, "interrupted before a placement was found");
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no legal placement was found: links or kinds are missing in %s", d->o->machine);
  }
  TFC_TRY(s, document(d, &r->best, &r->bound, out, &best));
  struct tfc_placement *p = out->placement;
  p->algorithm = tfc_arena_str(&p->arena, tfc_str_from(r->algorithm));
  p->seed = options->seed, p->evaluations = r->evaluations;
  summarise(r, best, out);
  out->over_limits = tfc_place_over_limits(d->problem, p);
  out->exit_code = r->cancelled ? 130 : r->excess ? 5 : r->value >= best ? 7 : 0;
  if (d->record->wanted) {
    const uint32_t given = rival_count - d->o->request.baselines.count; // the first rival from a file
    struct tfc_record recorded = {.answer = &r->best,
                                  .search = r,
                                  .options = options,
                                  .given = rivals + given,
                                  .given_count = d->o->request.baselines.count};
    for (uint32_t i = 0; i < given; i++)
      if (strcmp(rivals[i].name, "expert") == 0) recorded.expert = &rivals[i].solution;
    TFC_TRY(s, record(d, &recorded, out));
  }
out:
  for (uint32_t i = 0; i < rival_count; i++) tfc_solution_deinit(&rivals[i].solution);
  free(rivals);
  return s;
}

// --- Placements to measure with --measure-with -----------------------------------------------------------------------
static tfc_status describe(void *user, const struct tfc_solution *solution, struct tfc_placement **out) {
  const struct described *d = user;
  tfc_status s = NULL;
  struct tfc_placement *p = NULL;
  TFC_TRY(s, tfc_placement_from_solution(d->problem, solution, NULL, &p));
  TFC_TRY(s, tfc_subject_document(d->subject, d->problem, solution, p));
  p->graph_file = tfc_arena_str(&p->arena, tfc_str_from(d->o->graph));
  if (d->digest[0]) p->graph_sha256 = tfc_arena_str(&p->arena, tfc_str_from(d->digest));
  *out = p, p = NULL;
out:
  tfc_placement_free(p);
  return s;
}

struct rivals {
  struct tfc_elsewhere_rival *list;
  struct tfc_solution *solutions;
  char **names;
  uint32_t count;
};

// Keeps solutions[count] as a rival with this name. A placement that cannot run (a device lacks a kind or a link) is
// dropped.
static tfc_status add_rival(const struct described *d, struct rivals *r, char *name, bool single) {
  struct tfc_solution *solution = &r->solutions[r->count];
  tfc_status wrong = tfc_solution_check(d->problem, solution->device);
  if (!name) {
    tfc_status_free(wrong);
    return tfc_status_no_memory("a machine");
  }
  if (wrong) {
    free(name);
    tfc_solution_deinit(solution);
    tfc_status_free(wrong);
    return NULL;
  }
  r->names[r->count] = name;
  r->list[r->count++] = (struct tfc_elsewhere_rival){name, solution, single};
  return NULL;
}

static tfc_status find_rivals(const struct described *d, struct rivals *r) {
  tfc_status s = NULL;
  const struct tfc_texts *given = &d->o->request.baselines;
  for (uint32_t i = 0; i < d->machine->device_count; i++) {
    TFC_TRY(s, tfc_solution_init(&r->solutions[r->count], d->problem));
    for (uint32_t u = 0; u < d->problem->unit_count; u++) r->solutions[r->count].device[u] = (tfc_device_id)i;
    TFC_TRY(s, add_rival(d, r, tfc_format("single:%.*s", TFC_STR_ARG(d->machine->devices[i].name)), true));
  }
  if (d->o->request.device_strings == TFC_STRINGS_BASELINE) {
    TFC_TRY(s, tfc_solution_init(&r->solutions[r->count], d->problem));
    s = tfc_subject_strings(d->subject, d->problem, d->graph, &r->solutions[r->count], NULL);
    if (tfc_status_code(s) == TFC_NOT_FOUND) {
      tfc_status_free(s);
      s = NULL;
      tfc_solution_deinit(&r->solutions[r->count]);
    } else {
      if (s) goto out;
      TFC_TRY(s, add_rival(d, r, tfc_str_dup(TFC_STR("expert")), false));
    }
  }
  for (uint32_t i = 0; i < given->count; i++) {
    const char *text = given->items[i], *equals = strchr(text, '=');
    TFC_TRY(s, tfc_solution_init(&r->solutions[r->count], d->problem));
    TFC_TRY(s, tfc_status_annotate(read_rival(d, equals + 1, &r->solutions[r->count]), "--baseline %s", text));
    TFC_TRY(s, add_rival(d, r, tfc_str_dup((tfc_str){text, (size_t)(equals - text)}), false));
  }
out:
  return s;
}

static tfc_status measure(struct described *d, const struct tfc_search_options *options,
                          struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  struct tfc_elsewhere_outcome outcome = {0};
  struct rivals r = {0};
  struct tfc_solution given = {0};
  const uint32_t most = d->machine->device_count + d->o->request.baselines.count + 2;
  r.list = calloc(most, sizeof *r.list), r.names = calloc(most, sizeof *r.names);
  r.solutions = calloc(most, sizeof *r.solutions);
  struct tfc_elsewhere_settings *settings = place_elsewhere(d->o);
  struct tfc_task_steps *steps = NULL;
  struct tfc_task_steps_options of_tasks = {.subject = d->subject, .problem = d->problem, .machine = d->machine};
  if (!r.list || !r.names || !r.solutions) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, cli_graph_digest(d->o->graph, d->digest));
  if (d->o->tasks) {
    TFC_TRY(s, place_tasks_steps(d->o->tasks, &of_tasks, &steps));
    settings->ask = tfc_task_steps_ask, settings->ask_user = steps;
  }
  if (d->o->evaluate)
    TFC_TRY(s, read_given(d, &given));
  else
    TFC_TRY(s, find_rivals(d, &r));
  s = tfc_elsewhere_run(&(struct tfc_elsewhere_options){.settings = settings,
                                                        .problem = d->problem,
                                                        .search = *options,
                                                        .graph = d->o->graph,
                                                        .machine = d->o->machine,
                                                        .sha256 = d->digest[0] ? d->digest : NULL,
                                                        .rivals = r.list,
                                                        .rival_count = r.count,
                                                        .evaluate = d->o->evaluate ? &given : NULL,
                                                        .describe = describe,
                                                        .user = d},
                        &outcome);
  tfc_place_take(&outcome, out);
out:
  tfc_task_steps_free(steps);
  for (uint32_t i = 0; i < most && r.solutions; i++) tfc_solution_deinit(&r.solutions[i]);
  for (uint32_t i = 0; i < most && r.names; i++) free(r.names[i]);
  tfc_solution_deinit(&given);
  free(r.list);
  free(r.names);
  free(r.solutions);
  return s;
}

static void described_deinit(struct described *d) {
  tfc_simulator_free(d->simulator);
  tfc_problem_free(d->problem);
  tfc_cost_graph_free(d->cost_graph);
  tfc_subject_free(d->subject);
  tfc_cost_table_free(d->costs);
  free(d->supported);
  free(d->output_bytes);
  free(d->ops);
  free(d->done_by);
  tfc_plan_free(d->plan);
  tfc_session_free(d->session);
  tfc_devices_close(&d->devices);
  tfc_shapes_deinit(&d->shapes);
  free(d->feeds);
  free(d->feed_shapes);
  tfc_machine_free(d->machine);
  cli_step_deinit(&d->step);
  tfc_graph_release(d->graph);
}

tfc_status place_machine(const struct place_options *o, const struct tfc_search_options *options,
                         const struct tfc_record_target *recorded, struct tfc_place_outcome *out) {
  struct described d = {.o = o, .record = recorded};
  tfc_status s = NULL;
  TFC_TRY(s, read_machine(&d));
  TFC_TRY(s, read_step(&d));
  if (o->evaluate) TFC_TRY(s, check_given_devices(&d));
  TFC_TRY(s, plan_step(&d));
  TFC_TRY(s, make_problem(&d));
  if (o->save_problem) TFC_TRY(s, save_problem(&d));
  if (o->measure_with || o->tasks)
    TFC_TRY(s, measure(&d, options, out));
  else if (o->evaluate)
    TFC_TRY(s, evaluate(&d, out));
  else
    TFC_TRY(s, search(&d, options, out));
out:
  described_deinit(&d);
  return s;
}

tfc_status place_machine_problem(const struct place_options *o, place_problem_fn fn, void *user) {
  struct described d = {.o = o};
  tfc_status s = NULL;
  TFC_TRY(s, read_machine(&d));
  TFC_TRY(s, read_step(&d));
  TFC_TRY(s, plan_step(&d));
  TFC_TRY(s, make_problem(&d));
  TFC_TRY(s, cli_graph_digest(o->graph, d.digest));
  TFC_TRY(s, fn(user, d.problem, d.digest));
out:
  described_deinit(&d);
  return s;
}
