// Builds the placement problem of a step: cost nodes, units, constraints, edges. Edges are found by walking from each
// operation back through elided nodes to the operation or variable that produces the tensor.
#include "placer/subject/subject.h"

#include <stdlib.h>
#include <string.h>

#include "placer/subject/units.h"
#include "runtime/base/pattern.h"
#include "runtime/pass/pass.h"

struct maker {
  struct tfc_subject *l;
  const struct tfc_graph *g;
  const struct tfc_subject_options *o;
  struct tfc_units units;
  uint32_t *order;      // [node] topological
  bool *needed, *is_op; // [node]
  bool *fed;            // [output_total]
  uint32_t *anchor, *cost_of, *node_of;
  TFC_ARRAY(struct tfc_subject_edge) edges;
  TFC_ARRAY(struct tfc_output) stack; // for walking back
  uint32_t *mark;                     // [node] last walk that visited it
  uint32_t walk;
  bool *effects, *leads; // [node] effects: it, or a node before it, has an effect; leads: it, or a node after it, has
                         // an effect or is an update
};

#define NEED(pointer)                                                                                                  \
  do {                                                                                                                 \
    if (!(pointer)) {                                                                                                  \
      s = tfc_status_no_memory("the placement problem");                                                               \
      goto out;                                                                                                        \
    }                                                                                                                  \
  } while (0)

static bool has_flag(const struct tfc_graph *g, uint32_t node, uint32_t flags) {
  return g->nodes[node].def && (g->nodes[node].def->flags & flags);
}

// --- Cost nodes ------------------------------------------------------------------------------------------------------
static uint64_t variable_bytes(const struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
  tfc_dtype type = tfc_node_attr_type(g, n, "dtype", TFC_FLOAT);
  size_t bytes = 0;
  if (!shape || shape->kind != TFC_ATTR_SHAPE) return 0;
  tfc_status s = tfc_tensor_bytes(tfc_dtype_base(type), shape->shape, &bytes);
  tfc_status_free(s);
  return s ? 0 : bytes;
}

static tfc_status make_nodes(struct maker *m) {
  tfc_status s = NULL;
  const struct tfc_graph *g = m->g;
  struct tfc_subject *l = m->l;
  uint32_t count = 0;
  bool *runs = TFC_ARENA_ARRAY(&l->arena, bool, g->node_count + 1u);
  uint64_t *memory = TFC_ARENA_ARRAY(&l->arena, uint64_t, g->node_count + 1u);
  NEED(runs && memory);
  for (uint32_t i = 0; i < g->node_count; i++) {
    m->cost_of[i] = TFC_NONE;
    if (!m->needed[i] || !(m->is_op[i] || has_flag(g, i, TFC_OP_VARIABLE))) continue;
    runs[count] = m->is_op[i];
    memory[count] = has_flag(g, i, TFC_OP_VARIABLE) ? variable_bytes(g, &g->nodes[i]) : 0;
    l->variable_bytes += memory[count];
    m->node_of[count] = i;
    m->cost_of[i] = count++;
  }
  uint32_t *fused = TFC_ARENA_ARRAY(&l->arena, uint32_t, count + 1);
  NEED(fused);
  for (uint32_t c = 0; c < count; c++) {
    uint32_t into = m->o->done_by ? m->o->done_by[m->node_of[c]] : TFC_NONE;
    fused[c] = into < g->node_count && m->cost_of[into] != TFC_NONE ? m->cost_of[into] : c;
  }
  l->fused = fused;
  l->cost_count = count, l->node_of = m->node_of, l->cost_of = m->cost_of, l->runs = runs, l->memory = memory;
out:
  return s;
}

// --- Edges -----------------------------------------------------------------------------------------------------------
static tfc_status push_edge(struct maker *m, uint32_t from, int32_t output, uint32_t to) {
  if (from == to) return NULL;
  uint64_t bytes = 0;
  if (output >= 0) {
    const struct tfc_node *n = &m->g->nodes[m->l->node_of[from]];
    if (!m->l->runs[from])
      bytes = m->l->memory[from];
    else if (m->o->output_bytes && (uint32_t)output < n->output_count)
      bytes = m->o->output_bytes[n->output_begin + (uint32_t)output];
  }
  return tfc_array_push(&m->edges, (struct tfc_subject_edge){from, to, output, bytes})
             ? NULL
             : tfc_status_no_memory("the placement problem");
}

static bool is_read(const struct tfc_graph *g, uint32_t node) { // it reads a variable through the handle
  return tfc_node_role(&g->nodes[node]) == TFC_ROLE_READ;
}

// Returns the real producer of an elided node's output: an operation or a variable, or TFC_NO_OUTPUT for constants.
static struct tfc_output producer_of(const struct maker *m, struct tfc_output o) {
  for (;;) {
    const struct tfc_node *n = &m->g->nodes[o.node];
    if (o.index >= 0 && m->fed[n->output_begin + (uint32_t)o.index]) return TFC_NO_OUTPUT;
    if (m->cost_of[o.node] != TFC_NONE) return o;
    if (n->input_count == 0 || !(has_flag(m->g, o.node, TFC_OP_VIEW) || is_read(m->g, o.node))) return TFC_NO_OUTPUT;
    o = tfc_node_inputs(m->g, n)[0];
  }
}

// Whether a node has an effect that only control edges put in order, on something other than variables or a random
// generator of its own. Control edges between nodes without such effects do not change results; readers and updates of
// variables get edges of their own.
static bool has_effect(const struct maker *m, const struct tfc_node *n) {
  if (!n->def || n->def->flags & TFC_OP_SAVES) return true;
  if (!(n->def->flags & TFC_OP_STATEFUL) || n->def->flags & TFC_OP_VARIABLE || n->def->node_state) return false;
  bool any = false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct tfc_output in = tfc_node_inputs(m->g, n)[k];
    if (tfc_output_dtype(m->g, in) != TFC_RESOURCE) continue;
    while (has_flag(m->g, in.node, TFC_OP_VIEW) && m->g->nodes[in.node].input_count)
      in = tfc_node_inputs(m->g, &m->g->nodes[in.node])[0];
    if (!has_flag(m->g, in.node, TFC_OP_VARIABLE)) return true;
    any = true;
  }
  return !any;
}

static void mark_effects(struct maker *m) {
  for (uint32_t k = 0; k < m->g->node_count; k++) {
    uint32_t i = m->order[k];
    const struct tfc_node *n = &m->g->nodes[i];
    if (!m->needed[i]) continue;
    m->effects[i] = has_effect(m, n);
    m->leads[i] = m->effects[i] || has_flag(m->g, i, TFC_OP_UPDATE);
    for (uint32_t j = 0; j < n->input_count + n->control_count; j++)
      m->effects[i] |= m->effects[tfc_node_inputs(m->g, n)[j].node];
  }
  for (uint32_t k = m->g->node_count; k-- > 0;) {
    uint32_t i = m->order[k];
    const struct tfc_node *n = &m->g->nodes[i];
    for (uint32_t j = 0; m->leads[i] && j < n->input_count + n->control_count; j++)
      m->leads[tfc_node_inputs(m->g, n)[j].node] = true;
  }
}

// Adds control edges to `consumer` from everything that `node` waits for.
static tfc_status walk_controls(struct maker *m, uint32_t node, uint32_t consumer) {
  tfc_status s = NULL;
  m->walk++;
  m->stack.count = 0;
  if (!tfc_array_push(&m->stack, (struct tfc_output){node, TFC_CONTROL}))
    return tfc_status_no_memory("the placement problem");
  while (m->stack.count) {
    uint32_t at = m->stack.data[--m->stack.count].node;
    if (m->mark[at] == m->walk) continue;
    m->mark[at] = m->walk;
    uint32_t from = m->cost_of[at];
    if (!m->effects[at]) continue;
    if (from != TFC_NONE && m->l->runs[from]) {
      TFC_TRY(s, push_edge(m, from, TFC_OUTPUT_CONTROL, consumer));
      continue;
    }
    const struct tfc_node *n = &m->g->nodes[at];
    const struct tfc_output *in = tfc_node_inputs(m->g, n);
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++)
      if (!tfc_array_push(&m->stack, in[k])) return tfc_status_no_memory("the placement problem");
  }
out:
  return s;
}

// Adds edges so that each update of a variable comes after every reader of the old value. A reader that the graph puts
// after the update reads the new value.
static tfc_status order_updates(struct maker *m) {
  tfc_status s = NULL;
  const struct tfc_graph *g = m->g;
  size_t edges = m->edges.count;
  TFC_ARRAY(uint32_t) updates = {0};
  bool *after = calloc(g->node_count + 1u, sizeof *after);
  if (!after) return tfc_status_no_memory("the placement problem");
  for (uint32_t c = 0; c < m->l->cost_count; c++)
    if (m->l->runs[c] && has_flag(g, m->l->node_of[c], TFC_OP_UPDATE))
      if (!tfc_array_push(&updates, c)) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t u = 0; u < updates.count; u++) {
    uint32_t update = updates.data[u], node = m->l->node_of[update];
    struct tfc_output variable = producer_of(m, tfc_node_inputs(g, &g->nodes[node])[0]);
    if (!tfc_output_valid(variable)) continue;
    uint32_t held = m->cost_of[variable.node];
    memset(after, 0, g->node_count * sizeof *after);
    m->stack.count = 0;
    if (!tfc_array_push(&m->stack, (struct tfc_output){node, 0})) TFC_TRY(s, tfc_status_no_memory(NULL));
    while (m->stack.count) {
      uint32_t at = m->stack.data[--m->stack.count].node;
      for (uint32_t k = g->consumer_begin[at]; k < g->consumer_begin[at + 1]; k++) {
        uint32_t next = g->consumers[k].node;
        if (after[next] || !m->needed[next]) continue;
        after[next] = true;
        if (!tfc_array_push(&m->stack, (struct tfc_output){next, 0})) TFC_TRY(s, tfc_status_no_memory(NULL));
      }
    }
    for (size_t e = 0; e < edges; e++) {
      struct tfc_subject_edge edge = m->edges.data[e];
      if (edge.from != held || edge.output < 0 || edge.to == update || after[m->l->node_of[edge.to]]) continue;
      // Two updates have the order that the graph gives them, if it gives one.
      if (has_flag(g, m->l->node_of[edge.to], TFC_OP_UPDATE)) continue;
      TFC_TRY(s, push_edge(m, edge.to, TFC_OUTPUT_CONTROL, update));
    }
  }
out:
  tfc_array_free(&updates);
  free(after);
  return s;
}

static tfc_status make_edges(struct maker *m) {
  tfc_status s = NULL;
  mark_effects(m);
  for (uint32_t c = 0; c < m->l->cost_count; c++) {
    if (!m->l->runs[c]) continue;
    const struct tfc_node *n = &m->g->nodes[m->l->node_of[c]];
    const struct tfc_output *in = tfc_node_inputs(m->g, n);
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output from = producer_of(m, in[k]);
      if (tfc_output_valid(from)) TFC_TRY(s, push_edge(m, m->cost_of[from.node], from.index, c));
    }
    for (uint32_t k = 0; k < n->control_count && m->leads[m->l->node_of[c]]; k++)
      TFC_TRY(s, walk_controls(m, in[n->input_count + k].node, c));
  }
  TFC_TRY(s, order_updates(m));
  if (m->edges.count) qsort(m->edges.data, m->edges.count, sizeof *m->edges.data, tfc_subject_by_ends);
  size_t kept = 0;
  for (size_t i = 0; i < m->edges.count; i++)
    if (kept == 0 || tfc_subject_by_ends(&m->edges.data[kept - 1], &m->edges.data[i]) != 0)
      m->edges.data[kept++] = m->edges.data[i];
  struct tfc_subject_edge *edges = TFC_ARENA_ARRAY(&m->l->arena, struct tfc_subject_edge, kept + 1);
  NEED(edges);
  if (kept) memcpy(edges, m->edges.data, kept * sizeof *edges);
  m->l->edges = edges, m->l->edge_count = (uint32_t)kept;
out:
  return s;
}

// --- Units and constraints -------------------------------------------------------------------------------------------
static tfc_status make_anchors(struct maker *m) {
  tfc_status s = NULL;
  const struct tfc_graph *g = m->g;
  struct tfc_subject *l = m->l;
  uint32_t *of_root = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u);
  uint32_t *members = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u);
  tfc_str *group = TFC_ARENA_ARRAY(&l->arena, tfc_str, l->cost_count + 1u);
  NEED(of_root && members && group);
  for (uint32_t i = 0; i < g->node_count; i++) of_root[i] = TFC_NONE;
  for (uint32_t c = 0; c < l->cost_count; c++) {
    uint32_t root = tfc_units_root(&m->units, l->node_of[c]);
    if (of_root[root] == TFC_NONE) of_root[root] = c, l->unit_count++;
    members[root]++;
  }
  for (uint32_t c = 0; c < l->cost_count; c++) {
    uint32_t root = tfc_units_root(&m->units, l->node_of[c]);
    if (members[root] > 1) group[c] = g->nodes[l->node_of[of_root[root]]].name;
  }
  // A node that takes no time gets the device of its producer; a constant gets that of its first consumer.
  for (uint32_t k = 0; k < g->node_count; k++) {
    uint32_t i = m->order[k], root = tfc_units_root(&m->units, i);
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t j = 0; j < n->input_count + n->control_count && of_root[root] == TFC_NONE; j++)
      if (m->needed[i]) of_root[root] = of_root[tfc_units_root(&m->units, in[j].node)];
  }
  for (uint32_t k = g->node_count; k-- > 0;) {
    uint32_t i = m->order[k], root = tfc_units_root(&m->units, i);
    for (uint32_t j = g->consumer_begin[i]; j < g->consumer_begin[i + 1] && of_root[root] == TFC_NONE; j++)
      if (m->needed[i] && m->needed[g->consumers[j].node])
        of_root[root] = of_root[tfc_units_root(&m->units, g->consumers[j].node)];
  }
  for (uint32_t i = 0; i < g->node_count; i++) m->anchor[i] = of_root[tfc_units_root(&m->units, i)];
  l->anchor = m->anchor, l->group = group;
out:
  return s;
}

static tfc_status make_reasons(struct maker *m) {
  static const char *const why[] = {"",
                                    "colocated with %.*s (loc:@)",
                                    "holds a reference to %.*s",
                                    "uses the resource of %.*s",
                                    "the same node of a function as %.*s",
                                    "serves the call %.*s"};
  tfc_str *reason = TFC_ARENA_ARRAY(&m->l->arena, tfc_str, m->g->node_count + 1u);
  if (!reason) return tfc_status_no_memory("the placement problem");
  for (uint32_t i = 0; i < m->g->node_count; i++) {
    if (m->units.tie[i] == TFC_TIE_NONE || !m->needed[i]) continue;
    reason[i] =
        tfc_arena_printf(&m->l->arena, why[m->units.tie[i]], TFC_STR_ARG(m->g->nodes[m->units.tied_to[i]].name));
    if (!reason[i].data) return tfc_status_no_memory("the placement problem");
  }
  m->l->reason = reason;
  return NULL;
}

struct pinning {  // the pin of a unit, stored at its anchor
  tfc_str device; // data NULL: not pinned
  uint32_t node;  // the node that has this pin
  const char *why;
};
// Pins the unit of a node.
static tfc_status pin_unit(struct maker *m, struct pinning *pinned, uint32_t node, tfc_str device, const char *why) {
  uint32_t c = m->anchor[node];
  if (c == TFC_NONE) return NULL;
  struct pinning *p = &pinned[c];
  if (p->device.data && !tfc_str_equal(p->device, device)) {
    return tfc_status_make(
        TFC_INVALID_ARGUMENT,
        "node '%.*s' belongs on %.*s (%s), but shares a device with '%.*s', which belongs on %.*s (%s)",
        TFC_STR_ARG(m->g->nodes[node].name), TFC_STR_ARG(device), why, TFC_STR_ARG(m->g->nodes[p->node].name),
        TFC_STR_ARG(p->device), p->why);
  }
  *p = (struct pinning){device, node, why};
  return NULL;
}

static tfc_status pin_matches(struct maker *m, struct pinning *pinned, const char *pin) {
  tfc_status s = NULL;
  const char *equals = strrchr(pin, '=');
  struct tfc_pattern *pattern = NULL;
  char why[160];
  uint32_t matched = 0;
  if (!equals) return tfc_status_make(TFC_INVALID_ARGUMENT, "pin '%s' is not REGEX=DEVICE", pin);
  uint32_t device = tfc_machine_find(m->o->machine, tfc_str_from(equals + 1));
  if (device == TFC_NONE) return tfc_status_make(TFC_UNAVAILABLE, "pin '%s': there is no device %s", pin, equals + 1);
  pattern = tfc_pattern_make(pin, (size_t)(equals - pin), why, sizeof why);
  if (!pattern) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s': %s", pin, why);
  for (uint32_t i = 0; i < m->g->node_count; i++) {
    if (!m->needed[i]) continue;
    if (!tfc_pattern_matches(pattern, m->g->nodes[i].name.data, m->g->nodes[i].name.size)) continue;
    matched++;
    TFC_TRY(s, pin_unit(m, pinned, i, m->o->machine->devices[device].name, pin));
  }
  if (!matched) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s' matches no node of the step", pin);
out:
  tfc_pattern_free(pattern);
  return s;
}

static tfc_status make_pins(struct maker *m) {
  tfc_status s = NULL;
  struct tfc_subject *l = m->l;
  struct pinning *pinned = TFC_ARENA_ARRAY(&l->arena, struct pinning, l->cost_count + 1u);
  tfc_str *pin = TFC_ARENA_ARRAY(&l->arena, tfc_str, l->cost_count + 1u);
  NEED(pinned && pin);
  l->host = tfc_machine_find(m->o->machine, m->o->host);
  for (uint32_t c = 0; c < l->cost_count && l->host != TFC_NONE; c++)
    if (l->runs[c] && has_flag(m->g, l->node_of[c], TFC_OP_HOST))
      TFC_TRY(s, pin_unit(m, pinned, l->node_of[c], m->o->machine->devices[l->host].name, "host only"));
  if (l->host == TFC_NONE) l->host = 0;
  for (uint32_t c = 0; c < l->cost_count && m->o->request.device_strings == TFC_STRINGS_CONSTRAIN; c++) {
    tfc_str text = m->g->nodes[l->node_of[c]].device;
    uint32_t device = TFC_NONE;
    if (text.size == 0) continue;
    TFC_TRY(s, tfc_subject_string(m->o->machine, text, &device, NULL));
    if (device != TFC_NONE)
      TFC_TRY(s, pin_unit(m, pinned, l->node_of[c], m->o->machine->devices[device].name, "its device string"));
  }
  // A device that does not exist is reported before a pattern that matches no node.
  for (uint32_t i = 0; i < m->o->request.pins.count; i++) {
    const char *equals = strrchr(m->o->request.pins.items[i], '=');
    if (equals && tfc_machine_find(m->o->machine, tfc_str_from(equals + 1)) == TFC_NONE)
      TFC_FAIL(s, TFC_UNAVAILABLE, "pin '%s': there is no device %s", m->o->request.pins.items[i], equals + 1);
  }
  for (uint32_t i = 0; i < m->o->request.pins.count; i++)
    TFC_TRY(s, pin_matches(m, pinned, m->o->request.pins.items[i]));
  for (uint32_t c = 0; c < l->cost_count; c++) pin[c] = pinned[m->anchor[l->node_of[c]]].device;
  l->pin = pin;
out:
  return s;
}

static tfc_status make_kinds(struct maker *m) {
  struct tfc_subject *l = m->l;
  const struct tfc_machine *machine = m->o->machine;
  tfc_str *kinds = TFC_ARENA_ARRAY(&l->arena, tfc_str, machine->device_count + 1u);
  if (!kinds) return tfc_status_no_memory("the placement problem");
  for (uint32_t d = 0; d < machine->device_count; d++) {
    uint32_t k = 0;
    while (k < l->kind_count && !tfc_str_equal(kinds[k], machine->devices[d].kind)) k++;
    if (k == l->kind_count) kinds[l->kind_count++] = machine->devices[d].kind;
  }
  l->kinds = kinds;
  if (m->o->supported) {
    size_t count = (size_t)l->kind_count * m->g->node_count;
    bool *copy = TFC_ARENA_ARRAY(&l->arena, bool, count + 1);
    if (!copy) return tfc_status_no_memory("the placement problem");
    memcpy(copy, m->o->supported, count * sizeof *copy);
    l->supported = copy;
  }
  return NULL;
}

tfc_status tfc_subject_create(const struct tfc_graph *g, const struct tfc_subject_options *o,
                              struct tfc_subject **out) {
  tfc_status s = NULL;
  struct tfc_subject *l = calloc(1, sizeof *l);
  struct maker m = {.l = l, .g = g, .o = o};
  if (!l) return tfc_status_no_memory("the placement problem");
  tfc_arena_init(&l->arena, 1 << 20);
  tfc_graph_retain(g);
  l->graph = g, l->machine = o->machine, l->live = o->live;
  l->continued = o->continued, l->continued_count = o->continued_count;
  NEED(m.needed = TFC_ARENA_ARRAY(&l->arena, bool, g->node_count + 1u));
  NEED(m.is_op = TFC_ARENA_ARRAY(&l->arena, bool, g->node_count + 1u));
  NEED(m.fed = TFC_ARENA_ARRAY(&l->arena, bool, g->output_total + 1u));
  NEED(m.order = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u));
  NEED(m.anchor = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u));
  NEED(m.cost_of = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u));
  NEED(m.node_of = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u));
  NEED(m.mark = TFC_ARENA_ARRAY(&l->arena, uint32_t, g->node_count + 1u));
  NEED(m.effects = TFC_ARENA_ARRAY(&l->arena, bool, g->node_count + 1u));
  NEED(m.leads = TFC_ARENA_ARRAY(&l->arena, bool, g->node_count + 1u));
  TFC_TRY(s, tfc_prune(g, o->feeds, o->feed_count, o->fetches, o->fetch_count, o->targets, o->target_count, m.needed));
  for (uint32_t i = 0; i < o->op_count; i++)
    if (o->ops[i] < g->node_count) m.is_op[o->ops[i]] = true;
  for (uint32_t i = 0; i < o->feed_count; i++)
    m.fed[g->nodes[o->feeds[i].node].output_begin + (uint32_t)o->feeds[i].index] = true;
  l->needed = m.needed;
  TFC_TRY(s, tfc_graph_topological(g, m.order));
  TFC_TRY(s, tfc_units_find_all(g, &l->arena, &m.units));
  for (uint32_t i = 0; i < o->together_count; i++)
    if (m.needed[o->together[i].a] && m.needed[o->together[i].b])
      tfc_units_join(&m.units, o->together[i].a, o->together[i].b);
  TFC_TRY(s, make_nodes(&m));
  TFC_TRY(s, make_edges(&m));
  TFC_TRY(s, make_anchors(&m));
  TFC_TRY(s, make_reasons(&m));
  TFC_TRY(s, make_kinds(&m));
  TFC_TRY(s, make_pins(&m));
  *out = l, l = NULL;
out:
  tfc_array_free(&m.edges);
  tfc_array_free(&m.stack);
  tfc_subject_free(l);
  return s;
}

void tfc_subject_free(struct tfc_subject *l) {
  if (!l) return;
  tfc_graph_release(l->graph);
  tfc_arena_deinit(&l->arena);
  free(l);
}
