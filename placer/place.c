// Places a cost graph on the machine of a machine file, and makes a placement document.
#include "placer/place.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"
#include "placer/search/local.h"
#include "placer/search/rivals.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

#define SECONDS 600 // --time by default

static bool arena_copy(struct tfc_arena *arena, tfc_str *out, tfc_str text) {
  *out = tfc_arena_str(arena, text);
  return out->data != NULL;
}

static double us(int64_t ps) {
  return ps == TFC_TIME_MAX ? NAN : (double)ps / 1e6;
}

static tfc_status add_path(const struct tfc_problem *p, const struct tfc_timeline *t, struct tfc_placement *f) {
  const struct tfc_cost_graph *g = p->graph;
  f->path = TFC_ARENA_ARRAY(&f->arena, struct tfc_placement_path_item, t->path_count);
  if (!f->path) return tfc_status_no_memory("a placement");
  for (uint32_t i = 0; i < t->path_count; i++) {
    struct tfc_placement_path_item *q = &f->path[f->path_count++];
    uint32_t item = t->path[i];
    const struct tfc_transfer *x = item < t->node_count ? NULL : &t->transfers[item - t->node_count];
    bool fine = arena_copy(&f->arena, &q->node, g->names[x ? g->producer[x->tensor] : item]);
    if (x) {
      fine &= arena_copy(&f->arena, &q->from, p->machine->devices[x->from].name) &&
              arena_copy(&f->arena, &q->to, p->machine->devices[x->to].name);
      q->start_us = us(x->start), q->end_us = us(x->end);
    } else {
      q->start_us = us(t->start[item]), q->end_us = us(t->end[item]);
    }
    if (!fine) return tfc_status_no_memory("a placement");
  }
  return NULL;
}

tfc_status tfc_placement_from_solution(const struct tfc_problem *p, const struct tfc_solution *solution,
                                       const struct tfc_bound *bound, struct tfc_placement **out) {
  tfc_status s = NULL;
  const struct tfc_cost_graph *g = p->graph;
  struct tfc_placement *f = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_timeline timeline = {0};
  struct tfc_verdict v = {0};
  v.busy = calloc(p->device_count, sizeof *v.busy);
  v.memory = calloc(p->device_count, sizeof *v.memory);
  if (!v.busy || !v.memory) TFC_TRY(s, tfc_status_no_memory("a placement"));
  TFC_TRY(s, tfc_placement_create(&f));
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_check(p, solution->device));
  tfc_simulate(sim, solution->device, solution->rank, TFC_TIME_MAX, &v);
  TFC_TRY(s, tfc_simulate_timeline(sim, solution->device, solution->rank, &timeline));
  f->graph_nodes = g->node_count;
  f->objective = p->objective;
  f->value_us = us(v.value), f->value_ps = v.value, f->feasible = v.feasible;
  f->transfers = v.transfers, f->transfer_bytes = v.transfer_bytes;
  // Computes the simulated step time, which is shown for either objective.
  int64_t step = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (timeline.end[n] > step) step = timeline.end[n];
  f->step_median_us = f->step_q1_us = f->step_q3_us = us(step);
  f->step_ps = step, f->step_count = 1;
  f->step_label = TFC_LABEL_MODELLED;
  f->devices = TFC_ARENA_ARRAY(&f->arena, struct tfc_placement_device, p->device_count);
  f->nodes = TFC_ARENA_ARRAY(&f->arena, struct tfc_placement_node, p->node_count);
  if (!f->devices || !f->nodes) TFC_TRY(s, tfc_status_no_memory("a placement"));
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *x = &p->machine->devices[d];
    struct tfc_placement_device *y = &f->devices[f->device_count++];
    if (!arena_copy(&f->arena, &y->name, x->name) || !arena_copy(&f->arena, &y->kind, x->kind) ||
        (x->tensorflow.data && !arena_copy(&f->arena, &y->tensorflow, x->tensorflow)))
      TFC_TRY(s, tfc_status_no_memory("a placement"));
    y->label = x->label, y->busy_us = us(v.busy[d]), y->busy_ps = v.busy[d], y->memory = v.memory[d];
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    const uint32_t u = p->unit[n], d = solution->device[u];
    struct tfc_placement_node *y = &f->nodes[f->node_count++];
    y->name = tfc_arena_str(&f->arena, g->names[n]);
    y->device = f->devices[d].name;
    y->order = timeline.sequence[n];
    if (!y->name.data) TFC_TRY(s, tfc_status_no_memory("a placement"));
    uint32_t allowed = 0;
    for (uint32_t e = 0; e < p->device_count && allowed < 2; e++) allowed += tfc_problem_allows(p, u, e);
    if (p->unit_pin[u] != TFC_NONE)
      y->reason = g->pin[n].data ? TFC_STR("pinned") : TFC_STR("in a group with a pinned node");
    else if (allowed == 1 && p->device_count > 1)
      y->reason = TFC_STR("the only device that can run it");
  }
  if (bound && bound->value > 0) {
    f->bound_us = us(bound->value), f->bound_ps = bound->value;
    f->bound_name = tfc_str_from(tfc_bound_name(bound->kind));
  }
  TFC_TRY(s, add_path(p, &timeline, f));
  *out = f, f = NULL;
out:
  free(v.busy), free(v.memory);
  tfc_timeline_deinit(&timeline);
  tfc_simulator_free(sim);
  tfc_placement_free(f);
  return s;
}

tfc_status tfc_place_describe(const struct tfc_problem *p, const struct tfc_solution *solution,
                              struct tfc_placement **out) {
  TFC_RETURN_IF_ERROR(tfc_placement_from_solution(p, solution, NULL, out));
  const uint32_t *rank = solution->rank ? solution->rank : p->rank;
  for (uint32_t n = 0; n < p->node_count; n++) (*out)->nodes[n].order = rank[n];
  return NULL;
}

// Adds "single:DEVICE" for every device, and the given rivals, as baselines of the document. *best: the best single
// device that fits.
static tfc_status add_baselines(const struct tfc_place_options *o, const struct tfc_problem *p, struct tfc_placement *f,
                                int64_t *out_best) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution solution = {0};
  *out_best = TFC_TIME_MAX;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  f->baselines =
      TFC_ARENA_ARRAY(&f->arena, struct tfc_placement_baseline, (size_t)p->device_count + o->request.baselines.count);
  if (!f->baselines) TFC_TRY(s, tfc_status_no_memory("baselines"));
  for (uint32_t i = 0; i < p->device_count + o->request.baselines.count; i++) {
    struct tfc_placement_baseline *b = &f->baselines[f->baseline_count++];
    struct tfc_verdict v = {.value = TFC_TIME_MAX};
    tfc_status wrong = NULL;
    b->median_us = NAN;
    if (i < p->device_count) {
      tfc_str device = p->machine->devices[i].name;
      b->name = tfc_arena_printf(&f->arena, "single:%.*s", TFC_STR_ARG(device));
      wrong = tfc_placement_single(p, device, &solution);
    } else {
      const char *text = o->request.baselines.items[i - p->device_count], *equals = strchr(text, '=');
      struct tfc_placement *rival = NULL;
      if (!equals) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "baseline '%s' is not NAME=FILE", text);
      b->name = tfc_arena_str(&f->arena, (tfc_str){text, (size_t)(equals - text)});
      TFC_TRY(s, tfc_placement_read(equals + 1, &rival));
      s = tfc_placement_resolve(rival, p, &solution);
      tfc_placement_free(rival);
      if (s) TFC_TRY(s, tfc_status_annotate(s, "%s", equals + 1));
    }
    if (!b->name.data) TFC_TRY(s, tfc_status_no_memory("baselines"));
    if (wrong) {
      b->note = tfc_arena_str(&f->arena, tfc_str_from(tfc_status_message(wrong)));
      tfc_status_free(wrong);
      continue;
    }
    tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
    b->median_us = us(v.value), b->median_ps = v.value == TFC_TIME_MAX ? 0 : v.value, b->feasible = v.feasible;
    if (!v.feasible) b->note = TFC_STR("does not fit in memory");
    if (i < p->device_count && v.feasible && v.value < *out_best) *out_best = v.value;
  }
out:
  tfc_solution_deinit(&solution);
  tfc_simulator_free(sim);
  return s;
}

static tfc_status save_problem(const char *folder, const struct tfc_problem *p) {
  tfc_status s = NULL;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return tfc_status_make(TFC_DATA_LOSS, "%s: %s", folder, strerror(errno));
  char *graph = tfc_format("%s/graph.json", folder), *machine = tfc_format("%s/machine.yaml", folder);
  if (!graph || !machine) TFC_TRY(s, tfc_status_no_memory("saving the problem"));
  TFC_TRY(s, tfc_cost_graph_write(p->graph, graph));
  TFC_TRY(s, tfc_machine_write(p->machine, machine));
out:
  free(graph), free(machine);
  return s;
}

// For --devices N: selects N devices of one kind. It is the kind on which the graph runs fastest, of those that have at
// least N devices.
static tfc_status select_devices(const char *list, const struct tfc_cost_graph *g, struct tfc_machine *m) {
  int64_t count;
  tfc_status s = tfc_parse_i64(tfc_str_from(list), &count);
  if (s || count < 1) {
    tfc_status_free(s);
    return tfc_machine_select(m, tfc_str_from(list));
  }
  tfc_str best = {0};
  double least = INFINITY;
  uint32_t most = 0;
  for (uint32_t d = 0; d < m->device_count; d++) {
    const tfc_str kind = m->devices[d].kind;
    uint32_t alike = 0, runs = 0;
    double time = 0;
    for (uint32_t e = 0; e < m->device_count; e++) alike += tfc_str_equal(m->devices[e].kind, kind);
    if (alike < count) continue;
    for (uint32_t k = 0; k < g->kind_count; k++)
      for (uint32_t n = 0; tfc_str_equal(g->kind_names[k], kind) && n < g->node_count; n++)
        if (!isnan(g->time_us[(size_t)n * g->kind_count + k]))
          runs++, time += g->time_us[(size_t)n * g->kind_count + k];
    if (runs > most || (runs == most && time < least) || !best.data) best = kind, most = runs, least = time;
  }
  if (!best.data)
    return tfc_status_make(TFC_UNAVAILABLE, "the machine has no kind with %lld devices", (long long)count);
  return tfc_machine_select_kind(m, best, (uint32_t)count);
}

static tfc_status load(const struct tfc_place_options *o, struct tfc_cost_graph **graph, struct tfc_machine **machine,
                       struct tfc_placement **placement, struct tfc_problem **problem) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_cost_graph_read(o->graph, graph));
  TFC_TRY(s, tfc_machine_read(o->machine, machine));
  if (o->devices) TFC_TRY(s, select_devices(o->devices, *graph, *machine));
  for (uint32_t i = 0; i < o->limit_count; i++) {
    const char *equals = strrchr(o->limits[i], '=');
    uint64_t bytes;
    if (!equals) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "memory limit '%s' is not DEVICE=SIZE", o->limits[i]);
    TFC_TRY(s, tfc_parse_bytes(tfc_str_from(equals + 1), &bytes));
    TFC_TRY(s, tfc_machine_limit(*machine, (tfc_str){o->limits[i], (size_t)(equals - o->limits[i])}, bytes));
  }
  if (o->evaluate) { // check devices first, before the problem is made
    bool file = strncmp(o->evaluate, "single:", 7) != 0 && strcmp(o->evaluate, "-") != 0;
    if (file) TFC_TRY(s, tfc_placement_read(o->evaluate, placement));
    TFC_TRY(s, tfc_placement_check_devices(o->evaluate, *placement, *machine, false));
  }
  for (uint32_t i = 0; i < o->request.pins.count; i++) {
    const char *equals = strrchr(o->request.pins.items[i], '=');
    if (equals && tfc_machine_find(*machine, tfc_str_from(equals + 1)) == TFC_NONE)
      TFC_FAIL(s, TFC_UNAVAILABLE, "pin '%s': device '%s' is not in the machine", o->request.pins.items[i], equals + 1);
  }
  for (uint32_t i = 0; i < o->request.pins.count; i++) {
    const char *equals = strrchr(o->request.pins.items[i], '=');
    if (!equals) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s' is not REGEX=DEVICE", o->request.pins.items[i]);
    char *regex = tfc_str_dup((tfc_str){o->request.pins.items[i], (size_t)(equals - o->request.pins.items[i])});
    if (!regex) TFC_TRY(s, tfc_status_no_memory("a pin"));
    s = tfc_cost_graph_pin(*graph, regex, tfc_str_from(equals + 1), NULL);
    free(regex);
    if (s) goto out;
  }
  s = tfc_problem_create(*graph, *machine, o->request.objective, problem);
  if (s) s = tfc_status_annotate(s, "%s", o->graph);
out:
  return s;
}

char *tfc_place_over_limits(const struct tfc_problem *p, const struct tfc_placement *f) {
  char held[32], over[32], limit[32];
  struct tfc_text t = {0};
  for (uint32_t d = 0; d < p->device_count && d < f->device_count; d++) {
    const struct tfc_placement_device *y = &f->devices[d];
    if (y->memory <= p->limit[d]) continue;
    tfc_text_printf(&t, "%s%.*s holds %s, %s over its limit of %s", t.size ? "; " : "", TFC_STR_ARG(y->name),
                    tfc_show_bytes(held, (double)y->memory), tfc_show_bytes(over, (double)(y->memory - p->limit[d])),
                    tfc_show_bytes(limit, (double)p->limit[d]));
  }
  return t.data;
}

static const char nothing_ran[] =
    "nothing was run: times are the cost graph's, on the machine that the machine file describes";

void tfc_place_record(const struct tfc_record *record, const struct tfc_record_target *target,
                      struct tfc_place_outcome *out) {
  int64_t run = target->run;
  tfc_status s = target->store ? NULL : tfc_store_open_memory(&out->record);
  if (!s) s = tfc_record_write(record, target->store ? target->store : out->record, &run);
  if (!s) {
    if (target->store) out->run = run;
    return;
  }
  tfc_store_close(out->record);
  out->record = NULL;
  out->unrecorded = tfc_status_annotate(s, "the report");
}

static tfc_status evaluate(const struct tfc_place_options *o, const struct tfc_problem *p,
                           const struct tfc_placement *file, struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  struct tfc_solution solution = {0};
  struct tfc_bound bound;
  int64_t best;
  if (strcmp(o->evaluate, "-") == 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "--evaluate -: a cost graph has no device strings");
  if (strncmp(o->evaluate, "single:", 7) == 0) {
    TFC_TRY(s, tfc_placement_single(p, tfc_str_from(o->evaluate + 7), &solution));
  } else {
    s = tfc_placement_resolve(file, p, &solution);
    if (s) TFC_TRY(s, tfc_status_annotate(s, "%s", o->evaluate));
  }
  TFC_TRY(s, tfc_bound_compute(p, NULL, &bound));
  TFC_TRY(s, tfc_placement_from_solution(p, &solution, &bound, &out->placement));
  out->placement->graph_file = tfc_arena_str(&out->placement->arena, tfc_str_from(o->graph));
  TFC_TRY(s, add_baselines(o, p, out->placement, &best));
  out->placement->algorithm = TFC_STR("given");
  out->exit_code = out->placement->feasible ? 0 : 5;
  out->over_limits = tfc_place_over_limits(p, out->placement);
  if (o->record.wanted)
    tfc_place_record(&(struct tfc_record){.problem = p,
                                          .answer = &solution,
                                          .document = out->placement,
                                          .graph = o->graph,
                                          .message = nothing_ran,
                                          .exit_code = out->exit_code},
                     &o->record, out);
out:
  tfc_solution_deinit(&solution);
  return s;
}

static void summarise(const struct tfc_problem *p, int64_t best_single, struct tfc_place_outcome *out) {
  const struct tfc_search_outcome *r = &out->search;
  char value[32], single[32], bound[32];
  struct tfc_text t = {0};
  tfc_text_printf(&t, "%s: %s (modelled), found by %s after %llu evaluations\n", tfc_objective_name(p->objective),
                  tfc_show_us(value, us(r->value)), r->algorithm, (unsigned long long)r->evaluations);
  if (best_single != TFC_TIME_MAX)
    tfc_text_printf(&t, "best single device: %s (%.3f times as long)\n", tfc_show_us(single, us(best_single)),
                    best_single == r->value ? 1.0 : (double)best_single / (double)r->value);
  else
    tfc_text_printf(&t, "no single device can hold and run it\n");
  if (r->bound.value > 0 && !r->excess) // a placement that exceeds memory limits may be below the bound
    tfc_text_printf(&t, "lower bound: %s (%s), gap at most %.2f %%%s\n", tfc_show_us(bound, us(r->bound.value)),
                    tfc_bound_name(r->bound.kind), 100 * ((double)r->value / (double)r->bound.value - 1),
                    r->optimal ? ": optimal" : "");
  if (r->excess) {
    char bytes[32];
    tfc_text_printf(&t, "nothing fits in memory: %s too much in the best placement tried\n",
                    tfc_show_bytes(bytes, (double)r->excess));
  }
  tfc_search_account_tell(&r->learned, &t);
  out->summary = t.data;
}

// Makes rivals of all rows of the table: single devices, and the given files.
static tfc_status read_rivals(const struct tfc_place_options *o, const struct tfc_problem *p, struct tfc_rival *rivals,
                              uint32_t *count) {
  tfc_status s = NULL;
  struct tfc_placement *file = NULL;
  for (uint32_t i = 0; i < p->device_count; i++) {
    struct tfc_rival *r = &rivals[*count];
    r->name = "single";
    tfc_status illegal = tfc_placement_single(p, p->machine->devices[i].name, &r->solution);
    *count += illegal == NULL; // the note in the table says why
    tfc_status_free(illegal);
  }
  for (uint32_t i = 0; i < o->request.baselines.count; i++) {
    const char *equals = strchr(o->request.baselines.items[i], '=');
    struct tfc_rival *r = &rivals[*count];
    if (!equals) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "baseline '%s' is not NAME=FILE", o->request.baselines.items[i]);
    r->name = strncmp(o->request.baselines.items[i], "expert=", 7) == 0 ? "expert" : "baseline";
    TFC_TRY(s, tfc_placement_read(equals + 1, &file));
    TFC_TRY(s, tfc_status_annotate(tfc_placement_resolve(file, p, &r->solution), "%s", equals + 1));
    ++*count;
    tfc_placement_free(file), file = NULL;
  }
out:
  tfc_placement_free(file);
  return s;
}

static tfc_status search(const struct tfc_place_options *o, const struct tfc_problem *p,
                         struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  uint32_t rival_count = 0;
  struct tfc_rival *rivals = calloc((size_t)p->device_count + o->request.baselines.count + 1, sizeof *rivals);
  if (!rivals) return tfc_status_no_memory(NULL);
  struct tfc_search_options options = o->search;
  int64_t best_single;
  if (options.seconds <= 0 && !options.evaluations) options.seconds = SECONDS;
  if (o->record.page) options.seconds = tfc_record_leaves(options.seconds, p->node_count);
  TFC_TRY(s, read_rivals(o, p, rivals, &rival_count));
  TFC_TRY(s, tfc_search_beside(p, &options, rivals, rival_count, &out->search));
  if (!out->search.best.device) {
    if (out->search.cancelled) TFC_FAIL(s, TFC_CANCELLED, "cancelled before a placement was found");
    const char *note = out->search.entry_count && out->search.entries[0].note ? out->search.entries[0].note : "";
    out->exit_code = 3;
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no legal placement was found: links or kinds are missing%s%s", *note ? ": " : "",
             note);
  }
  TFC_TRY(s, tfc_placement_from_solution(p, &out->search.best, &out->search.bound, &out->placement));
  out->placement->graph_file = tfc_arena_str(&out->placement->arena, tfc_str_from(o->graph));
  TFC_TRY(s, add_baselines(o, p, out->placement, &best_single));
  struct tfc_placement *f = out->placement;
  f->algorithm = tfc_arena_str(&f->arena, tfc_str_from(out->search.algorithm));
  f->seed = options.seed, f->evaluations = out->search.evaluations;
  summarise(p, best_single, out);
  out->over_limits = tfc_place_over_limits(p, f);
  // Simulated times have no noise, so a time equal to the best single device's is not better.
  out->exit_code = out->search.excess ? 5 : out->search.value >= best_single ? 7 : 0;
  if (out->search.cancelled) out->exit_code = 130;
  const uint32_t given = rival_count - o->request.baselines.count; // the first rival from a file
  if (o->record.wanted)
    tfc_place_record(&(struct tfc_record){.problem = p,
                                          .answer = &out->search.best,
                                          .given = rivals + given,
                                          .given_count = o->request.baselines.count,
                                          .document = f,
                                          .search = &out->search,
                                          .options = &o->search,
                                          .graph = o->graph,
                                          .message = nothing_ran,
                                          .exit_code = out->exit_code},
                     &o->record, out);
out:
  for (uint32_t i = 0; i < rival_count; i++) tfc_solution_deinit(&rivals[i].solution);
  free(rivals);
  return s;
}

// --- Placing by measurements of a command --------------------------------------------------------------------------
struct described {
  const struct tfc_place_options *o;
  const struct tfc_problem *problem;
};

static tfc_status describe(void *user, const struct tfc_solution *solution, struct tfc_placement **out) {
  const struct described *d = user;
  TFC_RETURN_IF_ERROR(tfc_place_describe(d->problem, solution, out));
  (*out)->graph_file = tfc_arena_str(&(*out)->arena, tfc_str_from(d->o->graph));
  return NULL;
}

static tfc_status solution_of_file(const char *path, const struct tfc_problem *p, struct tfc_solution *out) {
  struct tfc_placement *file = NULL;
  TFC_RETURN_IF_ERROR(tfc_placement_read(path, &file));
  tfc_status s = tfc_placement_resolve(file, p, out);
  tfc_placement_free(file);
  return s ? tfc_status_annotate(s, "%s", path) : NULL;
}

static tfc_status measure(const struct tfc_place_options *o, const struct tfc_problem *p,
                          const struct tfc_placement *given, struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  const uint32_t most = p->device_count + o->request.baselines.count;
  struct described d = {o, p};
  struct tfc_elsewhere_outcome outcome = {0};
  struct tfc_elsewhere_rival *rivals = calloc(most + 1u, sizeof *rivals);
  struct tfc_solution *solutions = calloc(most + 1u, sizeof *solutions), evaluated = {0};
  char **names = calloc(most + 1u, sizeof *names);
  uint32_t count = 0;
  if (!rivals || !solutions || !names) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < most && !o->evaluate; i++) {
    const bool single = i < p->device_count;
    const char *text = single ? NULL : o->request.baselines.items[i - p->device_count],
               *equals = text ? strchr(text, '=') : NULL;
    if (text && !equals) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "baseline '%s' is not NAME=FILE", text);
    s = single ? tfc_placement_single(p, p->machine->devices[i].name, &solutions[count])
               : solution_of_file(equals + 1, p, &solutions[count]);
    if (s && !single) goto out;
    const bool runs = !s; // a device that cannot run everything is no rival
    tfc_status_free(s);
    s = NULL;
    if (!runs) continue;
    names[count] = single ? tfc_format("single:%.*s", TFC_STR_ARG(p->machine->devices[i].name))
                          : tfc_str_dup((tfc_str){text, (size_t)(equals - text)});
    if (!names[count]) TFC_TRY(s, tfc_status_no_memory(NULL));
    rivals[count] = (struct tfc_elsewhere_rival){names[count], &solutions[count], single};
    count++;
  }
  if (o->evaluate && strcmp(o->evaluate, "-") == 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "--evaluate -: a cost graph has no device strings");
  if (o->evaluate && strncmp(o->evaluate, "single:", 7) == 0)
    TFC_TRY(s, tfc_placement_single(p, tfc_str_from(o->evaluate + 7), &evaluated));
  else if (o->evaluate)
    TFC_TRY(s, tfc_status_annotate(tfc_placement_resolve(given, p, &evaluated), "%s", o->evaluate));
  s = tfc_elsewhere_run(&(struct tfc_elsewhere_options){.settings = o->elsewhere,
                                                        .problem = p,
                                                        .search = o->search,
                                                        .graph = o->graph,
                                                        .machine = o->machine,
                                                        .rivals = rivals,
                                                        .rival_count = count,
                                                        .evaluate = o->evaluate ? &evaluated : NULL,
                                                        .describe = describe,
                                                        .user = &d},
                        &outcome);
  tfc_place_take(&outcome, out);
out:
  for (uint32_t i = 0; i < most && solutions; i++) tfc_solution_deinit(&solutions[i]);
  for (uint32_t i = 0; i < most && names; i++) free(names[i]);
  tfc_solution_deinit(&evaluated);
  free(solutions);
  free(names);
  free(rivals);
  return s;
}

void tfc_place_take(struct tfc_elsewhere_outcome *from, struct tfc_place_outcome *out) {
  out->placement = from->placement, from->placement = NULL;
  out->summary = from->summary, from->summary = NULL;
  out->exit_code = from->exit_code, out->run = from->run;
  out->search.cancelled = from->cancelled;
  tfc_elsewhere_outcome_deinit(from);
}

tfc_status tfc_place_modelled(const struct tfc_place_options *o, struct tfc_place_outcome *out) {
  tfc_status s = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_placement *given = NULL;
  struct tfc_problem *problem = NULL;
  struct tfc_place_outcome outcome = {0};
  TFC_TRY(s, load(o, &graph, &machine, &given, &problem));
  if (o->save_problem) TFC_TRY(s, save_problem(o->save_problem, problem));
  if (o->elsewhere)
    TFC_TRY(s, measure(o, problem, given, &outcome));
  else if (o->evaluate)
    TFC_TRY(s, evaluate(o, problem, given, &outcome));
  else
    TFC_TRY(s, search(o, problem, &outcome));
out:
  if (s) {
    outcome.exit_code = tfc_status_exit_code(s);
    tfc_placement_free(outcome.placement);
    outcome.placement = NULL;
  }
  tfc_placement_free(given);
  tfc_problem_free(problem);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
  *out = outcome;
  return s;
}

void tfc_place_outcome_deinit(struct tfc_place_outcome *o) {
  tfc_placement_free(o->placement);
  tfc_search_outcome_deinit(&o->search);
  free(o->summary), free(o->over_limits);
  tfc_store_close(o->record);
  tfc_status_free(o->unrecorded);
  *o = (struct tfc_place_outcome){0};
}

tfc_status tfc_place_with_problem(const struct tfc_place_options *o, tfc_place_problem_fn fn, void *user) {
  tfc_status s = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_placement *none = NULL;
  struct tfc_problem *problem = NULL;
  TFC_TRY(s, load(o, &graph, &machine, &none, &problem));
  TFC_TRY(s, fn(user, problem));
out:
  tfc_problem_free(problem);
  tfc_cost_graph_free(graph);
  tfc_machine_free(machine);
  return s;
}
