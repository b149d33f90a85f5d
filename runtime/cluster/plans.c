// Which nodes of the graph run is found by pruning; the condition of a loop runs whenever the loop does, because other
// tasks need its value.
#include "runtime/cluster/plans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/none.h"
#include "runtime/cluster/common_order.h"
#include "runtime/cluster/queues.h"
#include "runtime/exec/groundwork.h"
#include "runtime/pass/pass.h"

void tfc_cluster_plan_free(struct tfc_cluster_plan *p) {
  if (!p) return;
  for (uint32_t i = 0; p->parts && i < p->part_count; i++) {
    struct tfc_cluster_part *part = &p->parts[i];
    tfc_array_free(&part->feeds);
    tfc_array_free(&part->fetches);
    tfc_text_deinit(&part->feed_names);
    tfc_text_deinit(&part->fetch_names);
    tfc_text_deinit(&part->target_names);
    tfc_text_deinit(&part->crossings);
  }
  free(p->feed_shapes);
  free(p->wanted), free(p->parts), free(p->ranks), free(p->feeds), free(p->fetches), free(p->targets);
  free(p);
}

static bool same_outputs(const struct tfc_output *a, const struct tfc_output *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i].node != b[i].node || a[i].index != b[i].index) return false;
  return true;
}
bool tfc_cluster_plan_has_names(const struct tfc_cluster_plan *p, const struct tfc_run_spec *spec) {
  return p->feed_count == spec->feed_count && p->fetch_count == spec->fetch_count &&
         p->target_count == spec->target_count && same_outputs(p->feeds, spec->feeds, p->feed_count) &&
         same_outputs(p->fetches, spec->fetches, p->fetch_count) &&
         (!p->target_count || !memcmp(p->targets, spec->targets, p->target_count * sizeof *p->targets));
}

bool tfc_cluster_plan_is_for(const struct tfc_cluster_plan *p, const struct tfc_run_spec *spec) {
  if (!tfc_cluster_plan_has_names(p, spec)) return false;
  for (uint32_t i = 0; p->feed_shapes && i < p->feed_count; i++)
    if (!tfc_shape_equal(&p->feed_shapes[i], &spec->feed_shapes[i])) return false;
  return true;
}

static void add_name(struct tfc_text *out, const struct tfc_graph *g, struct tfc_output o) {
  const tfc_str name = g->nodes[o.node].name;
  if (o.index >= 0)
    tfc_text_printf(out, "%.*s:%d", TFC_STR_ARG(name), o.index);
  else
    tfc_text_add(out, name);
  tfc_text_add(out, (tfc_str){"", 1});
}

static bool is_fed(const struct tfc_run_spec *spec, struct tfc_output o) {
  for (uint32_t i = 0; i < spec->feed_count; i++)
    if (spec->feeds[i].node == o.node && spec->feeds[i].index == o.index) return true;
  return false;
}
// A node does not run if all its outputs are fed; then its inputs are not needed either.
static bool is_replaced(const struct tfc_graph *g, const struct tfc_run_spec *spec, uint32_t node) {
  for (uint32_t k = 0; k < g->nodes[node].output_count; k++)
    if (!is_fed(spec, (struct tfc_output){node, (int32_t)k})) return false;
  return g->nodes[node].output_count > 0;
}

static bool is_wanted(const struct tfc_cut *cut, const struct tfc_run_spec *spec, const bool *needed,
                      const struct tfc_cut_edge *e) {
  const struct tfc_graph *g = cut->graph;
  for (uint32_t c = g->consumer_begin[e->source.node]; c < g->consumer_begin[e->source.node + 1]; c++) {
    const struct tfc_consumer *k = &g->consumers[c];
    if (k->output == e->source.index && cut->ranks[k->node] == e->to && needed[k->node] &&
        !is_replaced(g, spec, k->node))
      return true;
  }
  return false;
}

// Finds which nodes of the graph run. The condition of every loop that runs is needed, because other tasks need its
// value to continue their loops.
static tfc_status find_needed(const struct tfc_cut *cut, const struct tfc_run_spec *spec, bool *needed) {
  const struct tfc_graph *g = cut->graph;
  tfc_status s = NULL;
  uint32_t *targets = calloc((size_t)spec->target_count + cut->frames.count + 1, sizeof *targets);
  bool *runs = calloc(cut->frames.count + 1u, sizeof *runs);
  uint32_t count = spec->target_count;
  if (!targets || !runs) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  if (count) memcpy(targets, spec->targets, count * sizeof *targets);
  for (bool more = true; more;) {
    more = false;
    TFC_TRY(s, tfc_prune(g, spec->feeds, spec->feed_count, spec->fetches, spec->fetch_count, targets, count, needed));
    for (uint32_t i = 0; cut->loops.count && i < g->node_count; i++) {
      const uint32_t frame = needed[i] ? cut->frames.of_node[i] : 0;
      if (!frame || runs[frame]) continue;
      runs[frame] = true;
      const uint32_t condition = cut->frames.frames[frame].condition;
      if (condition == TFC_NONE || needed[condition]) continue;
      targets[count++] = condition;
      more = true;
    }
  }
out:
  free(targets);
  free(runs);
  return s;
}

// Adds the edges that send the conditions of loops to the tasks that iterate in them.
static void want_conditions(const struct tfc_cut *cut, bool *wanted, bool *rounds) {
  for (bool more = true; more;) {
    more = false;
    for (uint32_t e = 0; e < cut->edges.count; e++) {
      const struct tfc_cut_edge *edge = &cut->edges.data[e];
      for (uint32_t f = wanted[e] ? edge->frame : 0; f; f = cut->frames.frames[f].parent) {
        rounds[tfc_cut_loop_of(cut, f, edge->from)] = true;
        rounds[tfc_cut_loop_of(cut, f, edge->to)] = true;
      }
    }
    for (uint32_t k = 0; k < cut->loops.count; k++) {
      const uint32_t edge = cut->loops.data[k].edge;
      if (!rounds[k] || edge == TFC_NONE || wanted[edge]) continue;
      wanted[edge] = more = true;
    }
  }
}

// --- Static plans ----------------------------------------------------------------------------------------------------
static bool runs_in_ready_order(const struct tfc_graph *g, const struct tfc_run_spec *spec, const bool *needed) {
  for (uint32_t i = 0; i < g->node_count; i++)
    if (needed[i] && !is_replaced(g, spec, i) && tfc_needs_ready_order(&g->nodes[i])) return true;
  return false;
}

// Finds for each node that runs how long the longest path takes that begins behind it, and adds up all times.
static double find_tails(const struct tfc_graph *g, const struct tfc_run_spec *spec, const bool *needed,
                         const struct tfc_shapes *shapes, const uint32_t *order, double *tails) {
  double sum = 0;
  for (uint32_t k = g->node_count; k-- > 0;) {
    const uint32_t i = order[k];
    if (!needed[i] || is_replaced(g, spec, i)) continue;
    const double us = tfc_cluster_node_us(g, i, shapes);
    const struct tfc_output *in = tfc_node_inputs(g, &g->nodes[i]);
    sum += us;
    for (uint32_t n = 0; n < g->nodes[i].input_count + g->nodes[i].control_count; n++)
      tails[in[n].node] = fmax(tails[in[n].node], tails[i] + us);
  }
  return sum;
}

static void add_crossing(struct tfc_cluster_part *part, const char *name, double tail_us,
                         const struct tfc_shape *shape) {
  tfc_text_printf(&part->crossings, "%s %lld", name, (long long)(tail_us * 1e3));
  for (int d = 0; shape && d < shape->rank; d++) tfc_text_printf(&part->crossings, " %lld", (long long)shape->dims[d]);
  tfc_text_add(&part->crossings, (tfc_str){"", 1});
  part->crossing_count++;
}

// Lets the plan run statically if it takes long enough: notes the shapes for which it is, and tells every part about
// its crossings.
static tfc_status describe_crossings(const struct tfc_cut *cut, const struct tfc_run_spec *spec, const bool *needed,
                                     const bool *wanted, double static_us, struct tfc_cluster_plan *p) {
  const struct tfc_graph *g = cut->graph;
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  struct tfc_shape_override *feeds = calloc(spec->feed_count + 1u, sizeof *feeds);
  uint32_t *order = calloc(g->node_count + 1u, sizeof *order);
  double *tails = calloc(g->node_count + 1u, sizeof *tails);
  if (!feeds || !order || !tails) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  for (uint32_t i = 0; i < spec->feed_count; i++)
    feeds[i] = (struct tfc_shape_override){.output = spec->feeds[i], .shape = spec->feed_shapes[i]};
  TFC_TRY(s, tfc_infer_fed_shapes(g, feeds, spec->feed_count, &shapes));
  TFC_TRY(s, tfc_graph_topological(g, order));
  if (find_tails(g, spec, needed, &shapes, order, tails) < static_us) goto out;
  if (!(p->feed_shapes = calloc(spec->feed_count + 1u, sizeof *p->feed_shapes)))
    TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  for (uint32_t i = 0; i < spec->feed_count; i++) p->feed_shapes[i] = spec->feed_shapes[i];
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    const struct tfc_cut_edge *edge = &cut->edges.data[e];
    const struct tfc_output o = edge->source;
    const struct tfc_shape *shape =
        o.index < 0 ? &TFC_SHAPE_SCALAR : &shapes.shapes[g->nodes[o.node].output_begin + (uint32_t)o.index];
    char name[TFC_CUT_NAME];
    if (!wanted[e]) continue;
    add_crossing(&p->parts[edge->from], tfc_cut_send_name(e, name), tails[o.node], NULL);
    if (tfc_shape_is_static(shape)) add_crossing(&p->parts[edge->to], tfc_cut_receive_name(e, name), 0, shape);
  }
out:
  tfc_shapes_deinit(&shapes);
  free(feeds);
  free(order);
  free(tails);
  return s;
}

// Fills p->parts [tasks]: one part for each task, also for tasks that have nothing to run.
static tfc_status fill_parts(const struct tfc_cut *cut, const struct tfc_cluster_queues *queues,
                             const struct tfc_run_spec *spec, double static_us, struct tfc_cluster_plan *p) {
  const struct tfc_graph *g = cut->graph;
  tfc_status s = NULL;
  bool *needed = calloc(g->node_count + 1u, sizeof *needed), failed = false;
  bool *wanted = calloc(cut->edges.count + 1, sizeof *wanted), *rounds = calloc(cut->loops.count + 1, sizeof *rounds);
  if (!needed || !wanted || !rounds) {
    s = tfc_status_no_memory("a step of several tasks");
    goto out;
  }
  TFC_TRY(s, find_needed(cut, spec, needed));
  if (queues) p->wanted = tfc_cluster_queues_wanted(queues, needed);
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    const struct tfc_cut_edge *edge = &cut->edges.data[e];
    wanted[e] =
        is_wanted(cut, spec, needed, edge) && !(edge->source.index < 0 && is_replaced(g, spec, edge->source.node));
  }
  want_conditions(cut, wanted, rounds);
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    char name[TFC_CUT_NAME];
    if (!wanted[e]) continue;
    struct tfc_cluster_part *part = &p->parts[cut->edges.data[e].from];
    tfc_text_add(&part->target_names, tfc_str_from(tfc_cut_send_name(e, name)));
    tfc_text_add(&part->target_names, (tfc_str){"", 1});
    part->target_count++;
  }
  for (uint32_t i = 0; i < spec->target_count; i++) {
    struct tfc_cluster_part *part = &p->parts[cut->ranks[spec->targets[i]]];
    add_name(&part->target_names, g, (struct tfc_output){spec->targets[i], TFC_CONTROL});
    part->target_count++;
  }
  for (uint32_t i = 0; i < spec->fetch_count; i++) {
    struct tfc_cluster_part *part = &p->parts[cut->ranks[spec->fetches[i].node]];
    add_name(&part->fetch_names, g, spec->fetches[i]);
    failed |= !tfc_array_push(&part->fetches, i);
  }
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    struct tfc_cluster_part *part = &p->parts[cut->ranks[spec->feeds[i].node]];
    if (!part->target_count && !part->fetches.count) continue; // this task runs nothing that could read the feed
    add_name(&part->feed_names, g, spec->feeds[i]);
    failed |= !tfc_array_push(&part->feeds, i);
  }
  if (static_us < INFINITY && !runs_in_ready_order(g, spec, needed))
    TFC_TRY(s, describe_crossings(cut, spec, needed, wanted, static_us, p));
  for (uint32_t i = 0; i < p->part_count; i++)
    failed |= p->parts[i].crossings.failed | p->parts[i].feed_names.failed | p->parts[i].fetch_names.failed |
              p->parts[i].target_names.failed;
  if (failed) s = tfc_status_no_memory("a step of several tasks");
out:
  free(needed);
  free(wanted);
  free(rounds);
  return s;
}

static void *copy_of(const void *data, size_t size) {
  void *copy = malloc(size + 1);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

static tfc_status check_spec(const struct tfc_graph *g, const struct tfc_run_spec *spec) {
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < (k ? spec->fetch_count : spec->feed_count); i++) {
      const struct tfc_output o = k ? spec->fetches[i] : spec->feeds[i];
      if (o.node >= g->node_count || o.index < 0 || (uint32_t)o.index >= g->nodes[o.node].output_count)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "%s %u is not an output of the graph", k ? "fetch" : "feed", i);
    }
  for (uint32_t i = 0; i < spec->target_count; i++)
    if (spec->targets[i] >= g->node_count) return tfc_status_make(TFC_INVALID_ARGUMENT, "target %u is not a node", i);
  return NULL;
}

tfc_status tfc_cluster_plan_make(const struct tfc_cut *cut, uint32_t own, uint32_t tasks,
                                 const struct tfc_cluster_queues *queues, const struct tfc_run_spec *spec,
                                 double static_us, struct tfc_cluster_plan **out) {
  tfc_status s = NULL;
  struct tfc_cluster_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("a step of several tasks");
  TFC_TRY(s, check_spec(cut->graph, spec));
  p->feeds = copy_of(spec->feeds, spec->feed_count * sizeof *p->feeds);
  p->fetches = copy_of(spec->fetches, spec->fetch_count * sizeof *p->fetches);
  p->targets = copy_of(spec->targets, spec->target_count * sizeof *p->targets);
  p->parts = calloc(tasks, sizeof *p->parts);
  p->ranks = calloc(tasks, sizeof *p->ranks);
  if (!p->feeds || !p->fetches || !p->targets || !p->parts || !p->ranks)
    TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  p->feed_count = spec->feed_count;
  p->fetch_count = spec->fetch_count;
  p->target_count = spec->target_count;
  p->part_count = tasks;
  for (uint32_t r = 0; r < tasks; r++) p->parts[r].rank = r;
  TFC_TRY(s, fill_parts(cut, queues, spec, static_us, p));
  p->own = TFC_NONE;
  uint32_t kept = 0;
  for (uint32_t r = 0; r < tasks; r++) { // keep only parts in which something runs
    if (!p->parts[r].target_count && !p->parts[r].fetches.count) continue;
    const struct tfc_cluster_part swap = p->parts[kept];
    p->parts[kept] = p->parts[r];
    p->parts[r] = swap;
    if (p->parts[kept].rank == own)
      p->own = kept;
    else
      p->ranks[p->foreign_count++] = p->parts[kept].rank;
    kept++;
  }
  for (uint32_t r = kept; r < tasks; r++) {
    struct tfc_cluster_part *part =
        &p->parts[r]; // nothing runs in this task; only names of feeds were collected for it
    tfc_array_free(&part->feeds);
    tfc_text_deinit(&part->feed_names);
    *part = (struct tfc_cluster_part){0};
  }
  p->part_count = kept;
  *out = p, p = NULL;
out:
  tfc_cluster_plan_free(p);
  return s;
}
