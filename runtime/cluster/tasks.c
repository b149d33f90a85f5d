// Nodes that have to be in one task form a set: members of a colocation class, a variable and the operations that take
// it by reference, the producer of a resource handle and the operations that use the handle. Some device string chooses
// the set's task: that of a node with state if it has one, otherwise the first one in the set.
#include "runtime/cluster/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "runtime/base/none.h"
#include "runtime/base/union_find.h"
#include "runtime/device/driver.h"
#include "runtime/graph/device_spec.h"
#include "runtime/graph/op_def.h"

struct placer {
  const struct tfc_graph *g;
  const struct tfc_cluster_spec *spec;  // not NULL: tasks are chosen
  const struct tfc_device_set *devices; // not NULL: devices within a task are chosen
  uint32_t own;
  uint32_t *set, *rank; // [node] `set`: the node's set; `rank`: the rank of a set, stored at its root
};

// Finds the device that the string names; TFC_NONE: it names none of the task's devices.
static uint32_t device_of(const struct placer *p, const struct tfc_device_spec *spec) {
  char name[32];
  if (!spec->type[0] || spec->index < 0) return TFC_NONE;
  snprintf(name, sizeof name, "%s:%d", spec->type, spec->index);
  for (uint32_t d = 0; d < p->devices->count; d++)
    if (!strcasecmp(p->devices->devices[d]->info.name, name)) return d;
  return TFC_NONE;
}

// Finds the rank of the task that the node's device string names; TFC_NONE: it names none.
static tfc_status rank_of(const struct placer *p, const struct tfc_node *n, uint32_t *out) {
  struct tfc_device_spec device;
  *out = TFC_NONE;
  if (!n->device.size) return NULL;
  tfc_status s = tfc_device_spec_parse(n->device, &device);
  if (s) return tfc_status_annotate(s, "node '%.*s'", TFC_STR_ARG(n->name));
  if (p->devices) {
    *out = device_of(p, &device);
    return NULL;
  }
  if (!device.job.size && device.task < 0) return NULL;
  const struct tfc_cluster_task *own = &p->spec->tasks.data[p->own];
  tfc_str job = device.job.size ? device.job : tfc_str_from(own->job);
  const uint32_t task = device.task < 0 ? 0 : (uint32_t)device.task;
  *out = tfc_cluster_spec_rank(p->spec, job, task);
  if (*out == TFC_NONE && tfc_str_is(job, "localhost")) *out = p->own; // the graph was written for one process
  if (*out != TFC_NONE) return NULL;
  return tfc_status_make(TFC_UNAVAILABLE, "node '%.*s' is placed on '%.*s': the cluster has no /job:%.*s/task:%u",
                         TFC_STR_ARG(n->name), TFC_STR_ARG(n->device), TFC_STR_ARG(job), task);
}

static bool takes_reference(const struct tfc_node *n, uint32_t input) {
  if (!n->def) return false;
  const struct tfc_op_signature *sig = tfc_op_signature(n->def);
  for (uint32_t i = 0; i < sig->input_count && i <= input; i++) {
    if (sig->inputs[i].number_attr.size || sig->inputs[i].is_list) return sig->inputs[i].is_ref;
    if (i == input) return sig->inputs[i].is_ref;
  }
  return false;
}

static bool holds_state(const struct tfc_graph *g, const struct tfc_node *n) {
  if (n->input_count || !n->def || !(n->def->flags & TFC_OP_STATEFUL) || !n->output_count) return false;
  const tfc_dtype d = g->output_dtypes[n->output_begin];
  return d == TFC_RESOURCE || tfc_dtype_is_ref(d);
}

static void join_needs(struct placer *p) {
  const struct tfc_graph *g = p->g;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    const struct tfc_attr *class = tfc_node_attr(g, n, "_class");
    for (uint32_t k = 0; class && class->kind == TFC_ATTR_LIST_STRING && k < class->count; k++) {
      if (!tfc_str_starts(class->strings[k], "loc:@")) continue;
      const uint32_t with = tfc_graph_find(g, tfc_str_sub(class->strings[k], 5, class->strings[k].size));
      if (with != TFC_NONE) tfc_union_find_join(p->set, with, i);
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
      const tfc_dtype d = tfc_output_dtype(g, in[k]);
      // The back edge of a loop: a Merge and its inputs must be in one task.
      const bool around = n->def && n->def->flags & TFC_OP_MERGE && g->nodes[in[k].node].def &&
                          g->nodes[in[k].node].def->flags & (TFC_OP_NEXT_ITERATION | TFC_OP_ENTER);
      if (d == TFC_RESOURCE || d == TFC_VARIANT || around || (tfc_dtype_is_ref(d) && takes_reference(n, k)))
        tfc_union_find_join(p->set, in[k].node, i);
    }
  }
}

// Puts a constant that has one reader into the reader's task.
static void follow_readers(struct placer *p) {
  const struct tfc_graph *g = p->g;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const uint32_t begin = g->consumer_begin[i], end = g->consumer_begin[i + 1];
    if (n->input_count || n->device.size || tfc_node_role(n) != TFC_ROLE_CONST || begin == end) continue;
    if (tfc_union_find_root(p->set, i) != i || p->rank[i] != TFC_NONE) continue;
    bool one = true;
    for (uint32_t c = begin + 1; c < end; c++) one = one && g->consumers[c].node == g->consumers[begin].node;
    if (one) tfc_union_find_join(p->set, g->consumers[begin].node, i);
  }
}

static tfc_status place(struct placer *at, uint32_t *out_ranks) {
  tfc_status s = NULL;
  struct placer p = *at;
  const struct tfc_graph *g = p.g;
  p.set = malloc((g->node_count + 1u) * sizeof *p.set);
  p.rank = malloc((g->node_count + 1u) * sizeof *p.rank);
  if (!p.set || !p.rank) TFC_TRY(s, tfc_status_no_memory("placing a graph"));
  tfc_union_find_init(p.set, g->node_count);
  for (uint32_t i = 0; i < g->node_count; i++) p.rank[i] = TFC_NONE;
  join_needs(&p);
  for (int round = 0; round < 2; round++) // round 0: nodes with state
    for (uint32_t i = 0; i < g->node_count; i++) {
      const struct tfc_node *n = &g->nodes[i];
      uint32_t *rank = &p.rank[tfc_union_find_root(p.set, i)];
      if (*rank != TFC_NONE || (round == 0 && !holds_state(g, n))) continue;
      TFC_TRY(s, rank_of(&p, n, rank));
    }
  follow_readers(&p);
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t rank = p.rank[tfc_union_find_root(p.set, i)];
    out_ranks[i] = rank == TFC_NONE ? p.own : rank;
  }
out:
  free(p.set);
  free(p.rank);
  return s;
}

tfc_status tfc_cluster_place(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                             uint32_t *out_ranks) {
  return place(&(struct placer){.g = g, .spec = spec, .own = own}, out_ranks);
}

tfc_status tfc_member_place(const struct tfc_graph *g, const struct tfc_device_set *devices, uint16_t *out_devices) {
  uint32_t *ranks = calloc(g->node_count + 1u, sizeof *ranks);
  if (!ranks) return tfc_status_no_memory("placing a graph");
  tfc_status s = place(&(struct placer){.g = g, .devices = devices}, ranks);
  for (uint32_t i = 0; !s && i < g->node_count; i++) out_devices[i] = (uint16_t)ranks[i];
  free(ranks);
  return s;
}
