// Makes the operations that run (the ir) from a graph.
//
// Accesses of a variable happen in the canonical order (groundwork.c): an operation reads the version that the last
// update before it wrote, and the next update waits for the read. With these edges, a control edge matters only if it
// orders an effect on something other than a variable (queues, tables, prints, assertions): the others are dropped.
//
// Constants, NoOp, views, variables, handles and reads are elided: they have no operation, and a `source` describes
// their output instead. A read of a resource variable must be a copy if one of its consumers comes after the variable's
// next update. A reference is an alias: its reader sees the variable's current value.
//
// A part of a graph that runs in several tasks has operations that send tensors to other tasks and receive tensors from
// them. A send never waits for the other task, a receive waits until its tensor has come. Tasks whose plans are made
// one by one could wait for each other in a circle, since a plan adds waits: operations have an order, reuse memory,
// are merged. So all crossings of the graph, the edges between tasks, have one common order, in which a crossing comes
// after all that it depends on in any task (its source's position in one topological order of the whole graph); and in
// every task a receive waits for all sends of crossings before its own (`after_sends`). Whatever is done with the ir
// afterwards keeps it free of cycles, so nothing that a plan adds lets a send wait for the receive of a later crossing.
// Proof that no step stands still: of the crossings whose tensor has not come, take the first one in the common order.
// If its send has not run, it waits, in its own task, only for operations that are ready or wait for receives, and
// these receives belong to earlier crossings, whose tensors have come. So some operation can run, or the tensor is on
// its way. This holds with any number of tasks in ready order, which add no waits at all.
#include <stdlib.h>

#include "runtime/exec/plan/build.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/exec/variables.h"
#include "runtime/pass/fold.h"

enum source_kind { NOTHING, PLAIN, REFERENCE, HANDLE };
struct source {
  enum source_kind kind;
  uint32_t value;    // PLAIN, HANDLE
  uint32_t variable; // REFERENCE, HANDLE: index in ir->variables
  const struct tfc_shape *view;
  uint32_t after; // an operation other than the producer that must have ended, too; TFC_NONE: none
};
struct access { // the accesses of one variable that were met so far in the canonical order
  uint32_t node;
  uint32_t version;                     // value id of the variable's present version
  uint32_t writer;                      // the operation that wrote the current version, or TFC_NONE
  TFC_ARRAY(uint32_t) readers;          // operations that read the present version
  TFC_ARRAY(uint32_t) update_positions; // in the canonical order, ascending
};
struct walk {
  struct tfc_build *b;
  struct tfc_ir *ir;
  struct source *sources;            // [output]
  uint32_t *after;                   // [node] an operation or joint to wait for; TFC_NONE: there is none
  uint32_t *variable_of;             // [node] VARIABLE nodes: index + 1
  uint32_t *feed_values;             // [feed] value id
  bool *effects;                     // [node] an effect that control edges order happens at this node or before it
  bool *leads;                       // [node] an effect or update happens at this node or after it
  bool *controls;                    // [node] a control edge starts from this node
  TFC_ARRAY(struct access) accesses; // by variable
  TFC_ARRAY(uint32_t) set;           // scratch
  TFC_ARRAY(uint32_t) sent;          // operations that send, since the last one that receives
  uint32_t all_sent;                 // an operation or joint after all sends before these; TFC_NONE: there are none
};

tfc_status tfc_build_begin(struct tfc_session *session, const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                           const struct tfc_groundwork *ground, struct tfc_build *out) {
  for (uint32_t i = 0; i < graph->node_count && spec->placement; i++) {
    const struct tfc_node *n = &graph->nodes[i];
    bool runs = ground->needed[i] && n->function == TFC_NONE && !tfc_all_fed(ground, n);
    if (runs && spec->placement[i] >= session->device_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' is placed on device %u of %u", TFC_STR_ARG(n->name),
                             spec->placement[i], session->device_count);
  }
  *out = (struct tfc_build){.session = session, .graph = graph, .spec = spec, .ground = ground};
  return NULL;
}

// --- Effects and control edges -----------------------------------------------------------------------------------
static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE;
}

// Finds the VariableV2 or VarHandleOp node behind an output, through identities and updates of references.
static uint32_t variable_root(const struct tfc_build *b, struct tfc_output o) {
  const struct tfc_graph *g = b->graph;
  for (int depth = 0; depth < 1000; depth++) {
    const struct tfc_node *n = &g->nodes[o.node];
    if (tfc_is_fed(b->ground, o) || !n->def) return TFC_NONE;
    if (n->def->flags & TFC_OP_VARIABLE) return o.node;
    tfc_dtype t = tfc_output_dtype(g, o);
    bool passes = (n->def->flags & TFC_OP_VIEW && n->input_count && (t == TFC_RESOURCE || tfc_dtype_is_ref(t))) ||
                  (n->def->flags & TFC_OP_UPDATE && tfc_dtype_is_ref(t));
    if (!passes || !n->input_count) return TFC_NONE;
    o = tfc_node_inputs(g, n)[0];
  }
  return TFC_NONE;
}

static bool takes_reference(const struct tfc_op_def *def, uint32_t input) {
  const struct tfc_op_signature *sig = tfc_op_signature(def);
  for (uint32_t i = 0; i < sig->input_count && i <= input; i++) {
    if (sig->inputs[i].number_attr.size || sig->inputs[i].is_list) return false;
    if (i == input) return sig->inputs[i].is_ref;
  }
  return false;
}

// Whether a node has an effect that only control edges put in order: not on variables, nor on its own random generator.
// That a check fails is an effect: what has to wait for the check must not run then.
static bool has_effect(const struct tfc_build *b, const struct tfc_node *n) {
  uint32_t f = n->def->flags;
  if (f & (TFC_OP_SAVES | TFC_OP_CHECKS)) return true;
  if (!(f & TFC_OP_STATEFUL) || f & TFC_OP_VARIABLE || n->def->node_state) return false;
  bool any = false;
  for (uint32_t i = 0; i < n->input_count; i++) {
    struct tfc_output o = tfc_node_inputs(b->graph, n)[i];
    if (tfc_output_dtype(b->graph, o) != TFC_RESOURCE) continue;
    if (variable_root(b, o) == TFC_NONE) return true;
    any = true;
  }
  return !any;
}

static void mark_effects(struct walk *w) {
  const struct tfc_graph *g = w->b->graph;
  for (uint32_t i = 0; i < w->b->ground->order_count; i++) {
    uint32_t id = w->b->ground->order[i];
    const struct tfc_node *n = &g->nodes[id];
    if (tfc_all_fed(w->b->ground, n)) continue;
    bool effect = has_effect(w->b, n);
    w->leads[id] = effect || n->def->flags & TFC_OP_UPDATE;
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; !effect && k < n->input_count + n->control_count; k++)
      effect = !tfc_is_fed(w->b->ground, in[k]) && w->effects[in[k].node];
    w->effects[id] = effect;
    for (uint32_t k = n->input_count; k < n->input_count + n->control_count; k++) w->controls[in[k].node] = true;
  }
  for (uint32_t i = w->b->ground->order_count; i-- > 0;) {
    uint32_t id = w->b->ground->order[i];
    if (!w->leads[id]) continue;
    const struct tfc_node *n = &g->nodes[id];
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) w->leads[tfc_node_inputs(g, n)[k].node] = true;
  }
}

static bool keeps_control(const struct walk *w, uint32_t from, uint32_t to) {
  if (w->b->session->options.no_rewrites) return true;
  return w->effects[from] && w->leads[to];
}

// --- Sources -----------------------------------------------------------------------------------------------------
static tfc_status add_to_set(struct walk *w, uint32_t op) {
  if (op == TFC_NONE) return NULL;
  for (size_t i = 0; i < w->set.count && i < 8; i++) // duplicates do no harm; most are found near the end
    if (w->set.data[w->set.count - 1 - i] == op) return NULL;
  return tfc_array_push(&w->set, op) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status joint_of_set(struct walk *w, uint32_t node, uint32_t *out) {
  *out = TFC_NONE;
  if (w->set.count == 1) *out = w->set.data[0];
  if (w->set.count < 2) return NULL;
  struct tfc_ir_op joint = {.node = node, .joint = true};
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(w->ir, &joint, out));
  for (size_t i = 0; i < w->set.count; i++) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(w->ir, w->set.data[i], *out));
  return NULL;
}

static uint32_t output_number(const struct tfc_graph *g, struct tfc_output o) {
  return g->nodes[o.node].output_begin + (uint32_t)o.index;
}

// Collects what nodes after an elided node must wait for: its remaining control inputs, and what its data inputs wait
// for.
static tfc_status elided_after(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  w->set.count = 0;
  for (uint32_t k = 0; k < n->input_count; k++)
    if (!tfc_is_fed(w->b->ground, in[k])) TFC_RETURN_IF_ERROR(add_to_set(w, w->sources[output_number(g, in[k])].after));
  for (uint32_t k = n->input_count; k < n->input_count + n->control_count; k++)
    if (keeps_control(w, in[k].node, id)) TFC_RETURN_IF_ERROR(add_to_set(w, w->after[in[k].node]));
  return joint_of_set(w, id, &w->after[id]);
}

// Control edges from an elided view wait for the operations that compute its data inputs, too, if one of these or one
// before them has an effect. (Its readers wait for them anyway.)
static tfc_status elided_controls(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  const struct tfc_node *n = &g->nodes[id];
  if (!w->effects[id] || !w->controls[id]) return NULL;
  w->set.count = 0;
  TFC_RETURN_IF_ERROR(add_to_set(w, w->after[id]));
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct source *s = &w->sources[output_number(g, tfc_node_inputs(g, n)[k])];
    if (s->kind == PLAIN && w->ir->values.data[s->value].kind == TFC_IR_OP)
      TFC_RETURN_IF_ERROR(add_to_set(w, w->ir->values.data[s->value].op));
  }
  return joint_of_set(w, id, &w->after[id]);
}

static tfc_status value_for_output(struct walk *w, struct tfc_output origin, const struct tfc_ir_value *base,
                                   uint32_t *out) {
  const struct tfc_graph *g = w->b->graph;
  struct tfc_ir_value v = *base;
  v.origin = origin;
  v.alias = v.kind == TFC_IR_OP ? v.alias : TFC_NONE;
  v.dtype = tfc_dtype_base(tfc_output_dtype(g, origin));
  v.shape = w->b->ground->shapes.shapes[output_number(g, origin)];
  if (v.constant) {
    v.shape = v.constant->shape;
    v.dtype = v.constant->dtype;
  }
  size_t bytes = 0;
  if (tfc_shape_is_static(&v.shape)) {
    tfc_status s = tfc_tensor_bytes(v.dtype, &v.shape, &bytes);
    if (s) return tfc_status_annotate(s, "node '%.*s'", TFC_STR_ARG(g->nodes[origin.node].name));
    v.bytes = bytes;
    v.planned = v.kind == TFC_IR_OP && tfc_dtype_is_plain(v.dtype) &&
                tfc_node_role(&g->nodes[origin.node]) != TFC_ROLE_RECEIVE; // it is where the message has put it
  }
  return tfc_ir_add_value(w->ir, &v, out);
}

// `number`: of an output that is fed. A feed may be several outputs' (tfc_lowered_result).
static tfc_status make_feed(struct walk *w, uint32_t number) {
  const uint32_t feed = w->b->ground->fed[number] - 1;
  struct tfc_ir_value v = {.kind = TFC_IR_FEED, .op = TFC_NONE, .feed = feed};
  if (w->feed_values[feed] == TFC_NONE)
    TFC_RETURN_IF_ERROR(value_for_output(w, w->b->spec->feeds[feed], &v, &w->feed_values[feed]));
  w->sources[number] = (struct source){PLAIN, w->feed_values[feed], TFC_NONE, NULL, TFC_NONE};
  return NULL;
}

static tfc_status make_constant(struct walk *w, uint32_t id, uint32_t index, const struct tfc_tensor *value) {
  struct tfc_output o = {id, (int32_t)index};
  struct tfc_ir_value v = {.kind = TFC_IR_CONST, .op = TFC_NONE, .constant = value};
  uint32_t made;
  TFC_RETURN_IF_ERROR(value_for_output(w, o, &v, &made));
  w->sources[output_number(w->b->graph, o)] = (struct source){PLAIN, made, TFC_NONE, NULL, w->after[id]};
  return NULL;
}

static uint16_t device_of(const struct walk *w, uint32_t node) {
  return w->b->spec->placement ? w->b->spec->placement[node] : 0;
}

static tfc_status make_variable(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  struct tfc_ir_variable v = {.node = id, .device = device_of(w, id)};
  TFC_RETURN_IF_ERROR(tfc_session_variable(w->b->session, g, id, &v.variable));
  uint32_t index = TFC_NONE;
  for (size_t i = 0; i < w->ir->variables.count; i++) // two nodes may refer to the same variable
    if (w->ir->variables.data[i].variable == v.variable) index = (uint32_t)i;
  struct tfc_output o = {id, 0};
  bool reference = tfc_dtype_is_ref(tfc_output_dtype(g, o));
  if (index != TFC_NONE) {
    const struct tfc_ir_variable *first = &w->ir->variables.data[index];
    if (first->device != v.device)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "nodes '%.*s' and '%.*s' are one variable and placed on %s and %s",
                             TFC_STR_ARG(g->nodes[first->node].name), TFC_STR_ARG(g->nodes[id].name),
                             w->ir->devices[first->device]->info.name, w->ir->devices[v.device]->info.name);
  } else {
    struct tfc_tensor *handle = TFC_ARENA_NEW(&w->ir->arena, struct tfc_tensor);
    if (!handle) return tfc_status_no_memory("planning a step");
    TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_RESOURCE, &TFC_SHAPE_SCALAR, handle));
    tfc_object_retain(&v.variable->object);
    *(struct tfc_object **)handle->data = &v.variable->object;
    v.handle = handle;
    index = (uint32_t)w->ir->variables.count;
    struct access a = {.node = id, .writer = TFC_NONE};
    struct tfc_ir_value version = {.kind = TFC_IR_VARIABLE, .op = TFC_NONE, .variable = index, .origin = o};
    version.alias = TFC_NONE;
    version.dtype = v.variable->dtype;
    version.shape = v.variable->shape;
    size_t bytes = 0;
    if (tfc_shape_is_static(&version.shape) && !tfc_tensor_bytes(version.dtype, &version.shape, &bytes))
      version.bytes = bytes;
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(w->ir, &version, &a.version));
    if (!tfc_array_push(&w->ir->variables, v) || !tfc_array_push(&w->accesses, a))
      return tfc_status_no_memory("planning a step");
  }
  w->variable_of[id] = index + 1;
  struct source *s = &w->sources[output_number(g, o)];
  *s = (struct source){REFERENCE, TFC_NONE, index, NULL, w->after[id]};
  if (reference) return NULL;
  struct tfc_ir_value h = {.kind = TFC_IR_CONST, .op = TFC_NONE, .constant = w->ir->variables.data[index].handle};
  uint32_t made;
  TFC_RETURN_IF_ERROR(value_for_output(w, o, &h, &made));
  *s = (struct source){HANDLE, made, index, NULL, w->after[id]};
  return NULL;
}

// --- Reads of resource variables ---------------------------------------------------------------------------------
static bool elidable_view(const struct tfc_build *b, const struct tfc_node *n);

// Returns the last position in the canonical order at which an output is used, also through views.
static uint32_t last_use(const struct walk *w, uint32_t node, int32_t index, int depth) {
  const struct tfc_graph *g = w->b->graph;
  uint32_t last = 0;
  for (uint32_t i = 0; i < w->b->spec->fetch_count; i++)
    if (w->b->spec->fetches[i].node == node && w->b->spec->fetches[i].index == index) return UINT32_MAX;
  for (uint32_t c = g->consumer_begin[node]; c < g->consumer_begin[node + 1]; c++) {
    const struct tfc_consumer *k = &g->consumers[c];
    if (k->output != index || !w->b->ground->needed[k->node] || tfc_all_fed(w->b->ground, &g->nodes[k->node])) continue;
    uint32_t at = w->b->ground->position[k->node];
    if (elidable_view(w->b, &g->nodes[k->node])) {
      if (k->input > 0 && tfc_node_role(&g->nodes[k->node]) != TFC_ROLE_SPREAD) continue;
      int32_t out = tfc_node_role(&g->nodes[k->node]) == TFC_ROLE_SPREAD ? k->input : 0;
      at = depth > 100 ? UINT32_MAX : last_use(w, k->node, out, depth + 1);
    }
    if (at > last) last = at;
  }
  return last;
}

static bool must_copy(const struct walk *w, uint32_t id, uint32_t variable) {
  const struct access *a = &w->accesses.data[variable];
  uint32_t here = w->b->ground->position[id];
  for (size_t i = 0; i < a->update_positions.count; i++)
    if (a->update_positions.data[i] > here) return last_use(w, id, 0, 0) > a->update_positions.data[i];
  return false;
}

// --- Views -------------------------------------------------------------------------------------------------------
static bool keeps_shape(const struct tfc_node *n) {
  tfc_op_role role = tfc_node_role(n);
  return role == TFC_ROLE_IDENTITY || role == TFC_ROLE_PASSES || role == TFC_ROLE_DEFAULT || role == TFC_ROLE_READ;
}

static bool elidable_view(const struct tfc_build *b, const struct tfc_node *n) {
  if (b->session->options.no_rewrites && tfc_node_role(n) != TFC_ROLE_READ) return false;
  if (tfc_node_role(n) == TFC_ROLE_SPREAD) return true;
  if (!(n->def->flags & TFC_OP_VIEW) || n->input_count == 0 || n->output_count == 0) return false;
  if (n->def->flags & TFC_OP_CHECKS) return false;
  if (keeps_shape(n)) return true;
  // Nothing computes the view, so the number of its elements must be known to be that of the input.
  const struct tfc_shape *in = &b->ground->shapes.shapes[output_number(b->graph, tfc_node_inputs(b->graph, n)[0])];
  const struct tfc_shape *out = &b->ground->shapes.shapes[n->output_begin];
  return tfc_shape_is_static(in) && tfc_shape_is_static(out) && tfc_shape_elements(in) == tfc_shape_elements(out);
}

static tfc_status elide_view(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  uint32_t count = tfc_node_role(n) == TFC_ROLE_SPREAD ? n->output_count : 1;
  for (uint32_t i = 0; i < count; i++) {
    struct source s = w->sources[output_number(g, in[i])];
    if (!keeps_shape(n) && count == 1 && tfc_node_role(n) != TFC_ROLE_SPREAD)
      s.view = &w->b->ground->shapes.shapes[n->output_begin];
    s.after = w->after[id] != TFC_NONE ? w->after[id] : s.after;
    if (!w->b->ground->fed[n->output_begin + i]) w->sources[n->output_begin + i] = s;
  }
  return NULL;
}

// --- Operations --------------------------------------------------------------------------------------------------
static uint32_t alias_variable(const struct tfc_ir *ir, uint32_t value) {
  while (value != TFC_NONE) {
    const struct tfc_ir_value *v = &ir->values.data[value];
    if (v->kind == TFC_IR_VARIABLE) return v->variable;
    value = v->alias;
  }
  return TFC_NONE;
}

static tfc_status reads(struct walk *w, uint32_t op, uint32_t variable) {
  struct access *a = &w->accesses.data[variable];
  TFC_RETURN_IF_ERROR(tfc_ir_add_edge(w->ir, a->writer, op));
  if (a->readers.count && a->readers.data[a->readers.count - 1] == op) return NULL;
  return tfc_array_push(&a->readers, op) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status writes(struct walk *w, uint32_t op, uint32_t variable) {
  struct access *a = &w->accesses.data[variable];
  if (a->writer == op) return NULL;
  for (size_t i = 0; i < a->readers.count; i++) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(w->ir, a->readers.data[i], op));
  TFC_RETURN_IF_ERROR(tfc_ir_add_edge(w->ir, a->writer, op));
  a->readers.count = 0;
  a->writer = op;
  struct tfc_ir_value v = w->ir->values.data[a->version];
  v.op = op;
  return tfc_ir_add_value(w->ir, &v, &a->version);
}

static tfc_status colocated(struct walk *w, uint32_t id, uint32_t variable) {
  const struct tfc_ir_variable *v = &w->ir->variables.data[variable];
  if (device_of(w, id) == v->device) return NULL;
  const struct tfc_graph *g = w->b->graph;
  return tfc_status_make(TFC_INVALID_ARGUMENT,
                         "node '%.*s' (%.*s) uses the variable of node '%.*s' and has to be on its device: they are "
                         "placed on %s and %s",
                         TFC_STR_ARG(g->nodes[id].name), TFC_STR_ARG(g->nodes[id].op),
                         TFC_STR_ARG(g->nodes[v->node].name), w->ir->devices[device_of(w, id)]->info.name,
                         w->ir->devices[v->device]->info.name);
}

// Returns what a receive must wait for: all sends before it in the common order. (The canonical order has sends and
// receives in the common order.)
static tfc_status after_sends(struct walk *w, uint32_t node, uint32_t *out) {
  w->set.count = 0;
  if (w->sent.count) {
    TFC_RETURN_IF_ERROR(add_to_set(w, w->all_sent));
    for (size_t i = 0; i < w->sent.count; i++) TFC_RETURN_IF_ERROR(add_to_set(w, w->sent.data[i]));
    TFC_RETURN_IF_ERROR(joint_of_set(w, node, &w->all_sent));
    w->sent.count = 0;
  }
  *out = w->all_sent;
  return NULL;
}

static tfc_status make_op(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  struct tfc_ir *ir = w->ir;
  struct tfc_ir_op op = {.node = id,
                         .def = n->def,
                         .device = device_of(w, id),
                         .input_count = n->input_count,
                         .output_count = n->output_count,
                         .cost_us = w->b->ground->cost_us[id]};
  for (uint32_t i = 0; i < w->b->spec->target_count; i++) op.wanted = op.wanted || w->b->spec->targets[i] == id;
  if (tfc_node_role(n) == TFC_ROLE_SEND)
    for (uint32_t i = 0; i < w->b->spec->crossing_count; i++)
      if (w->b->spec->crossings[i].node == id) op.tail_us = w->b->spec->crossings[i].tail_us;
  op.inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, n->input_count + 1);
  op.outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, n->output_count + 1);
  if (!op.inputs || !op.outputs) return tfc_status_no_memory("planning a step");
  bool update = n->def->flags & TFC_OP_UPDATE;
  uint32_t reference = TFC_NONE;
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct source *s = &w->sources[output_number(g, in[k])];
    struct tfc_ir_input *input = &op.inputs[k];
    *input = (struct tfc_ir_input){.value = s->value, .view = s->view, .variable = TFC_NONE};
    if (s->kind == NOTHING)
      return tfc_status_make(TFC_INTERNAL, "node '%.*s': input %u has no source", TFC_STR_ARG(n->name), k);
    if (s->kind == REFERENCE) {
      input->value = w->accesses.data[s->variable].version;
      if (tfc_dtype_is_ref(tfc_output_dtype(g, in[k])) && takes_reference(n->def, k))
        input->variable = s->variable;
      else
        input->by_value = true;
    } else if (s->kind == HANDLE) {
      input->variable = s->variable;
    } else {
      input->by_value = ir->values.data[s->value].kind == TFC_IR_VARIABLE;
    }
    if (input->variable != TFC_NONE) {
      TFC_RETURN_IF_ERROR(colocated(w, id, input->variable));
      if (reference == TFC_NONE) reference = input->variable;
    }
  }
  for (uint32_t i = 0; i < n->output_count; i++) op.outputs[i] = TFC_NONE;
  uint32_t made, sends = TFC_NONE;
  if (tfc_node_role(n) == TFC_ROLE_RECEIVE) TFC_RETURN_IF_ERROR(after_sends(w, id, &sends));
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &made));
  TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, sends, made));
  if (tfc_node_role(n) == TFC_ROLE_SEND && !tfc_array_push(&w->sent, made))
    return tfc_status_no_memory("planning a step");
  w->after[id] = made;
  // Adds ordering edges: for reads and writes of variables, for what sources wait for, and for control edges.
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct tfc_ir_input *input = &op.inputs[k];
    uint32_t read = input->variable != TFC_NONE ? input->variable : alias_variable(ir, input->value);
    if (read != TFC_NONE && !(update && input->variable != TFC_NONE)) TFC_RETURN_IF_ERROR(reads(w, made, read));
    TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, w->sources[output_number(g, in[k])].after, made));
  }
  for (uint32_t k = 0; update && k < n->input_count; k++)
    if (op.inputs[k].variable != TFC_NONE) TFC_RETURN_IF_ERROR(writes(w, made, op.inputs[k].variable));
  for (uint32_t k = n->input_count; k < n->input_count + n->control_count; k++)
    if (keeps_control(w, in[k].node, id)) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, w->after[in[k].node], made));
  // Adds the values of its outputs.
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct tfc_output o = {id, (int32_t)i};
    struct source *s = &w->sources[output_number(g, o)];
    if (tfc_dtype_is_ref(tfc_output_dtype(g, o)) && reference != TFC_NONE) {
      if (!op.output_variables) {
        op.output_variables = TFC_ARENA_ARRAY(&ir->arena, uint32_t, n->output_count);
        if (!op.output_variables) return tfc_status_no_memory("planning a step");
        for (uint32_t m = 0; m < n->output_count; m++) op.output_variables[m] = TFC_NONE;
        ir->ops.data[made].output_variables = op.output_variables;
      }
      op.output_variables[i] = reference;
      if (!w->b->ground->fed[n->output_begin + i]) *s = (struct source){REFERENCE, TFC_NONE, reference, NULL, TFC_NONE};
      continue;
    }
    struct tfc_ir_value v = {.kind = TFC_IR_OP, .op = made, .output = i, .alias = TFC_NONE};
    if (n->def->flags & TFC_OP_VIEW && i == 0 && n->input_count) v.alias = op.inputs[0].value;
    TFC_RETURN_IF_ERROR(value_for_output(w, o, &v, &op.outputs[i]));
    if (n->def->flags & TFC_OP_VIEW && n->input_count && ir->values.data[op.outputs[i]].planned)
      ir->values.data[op.outputs[i]].alias = TFC_NONE; // the kernel copies to a planned place
    if (!w->b->ground->fed[n->output_begin + i]) *s = (struct source){PLAIN, op.outputs[i], TFC_NONE, NULL, TFC_NONE};
  }
  return NULL;
}

// A sum over no dimensions, or over dimensions of size 1 (as at the end of gradients of broadcasts), is a view of its
// input. A sum over a variable is never a view, because it must not show later updates.
static bool reduces_nothing(const struct walk *w, const struct tfc_node *n) {
  const struct tfc_graph *g = w->b->graph;
  if (tfc_node_role(n) != TFC_ROLE_REDUCTION || w->b->session->options.no_rewrites) return false;
  uint32_t from = output_number(g, tfc_node_inputs(g, n)[0]);
  const struct source *s = &w->sources[from];
  if (s->kind != PLAIN || alias_variable(w->ir, s->value) != TFC_NONE) return false;
  const struct tfc_shape *x = &w->b->ground->shapes.shapes[from], *y = &w->b->ground->shapes.shapes[n->output_begin];
  // A scalar has no dimensions; if the axes are unknown, they are checked at run time.
  if (x->rank == 0 && !w->b->ground->shapes.values[output_number(g, tfc_node_inputs(g, n)[1])]) return false;
  return tfc_shape_is_static(x) && tfc_shape_is_static(y) && tfc_shape_elements(x) == tfc_shape_elements(y);
}

// A view with another shape has a slot of its own, so the address must be known before the step begins.
static bool view_can_follow(const struct walk *w, const struct tfc_node *n) {
  if (keeps_shape(n) || tfc_node_role(n) == TFC_ROLE_SPREAD) return true;
  const struct source *s = &w->sources[output_number(w->b->graph, tfc_node_inputs(w->b->graph, n)[0])];
  uint32_t value = s->kind == REFERENCE ? w->accesses.data[s->variable].version : s->value;
  const struct tfc_ir_value *v = &w->ir->values.data[value];
  return v->kind == TFC_IR_CONST || v->planned || (v->kind != TFC_IR_OP && tfc_shape_is_static(&v->shape));
}

static tfc_status walk_node(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->b->graph;
  const struct tfc_node *n = &g->nodes[id];
  for (uint32_t i = 0; i < n->output_count; i++)
    if (w->b->ground->fed[n->output_begin + i]) TFC_RETURN_IF_ERROR(make_feed(w, n->output_begin + i));
  if (tfc_all_fed(w->b->ground, n)) return NULL;
  uint32_t f = n->def->flags;
  bool rewrites = !w->b->session->options.no_rewrites;
  if (f & TFC_OP_VARIABLE) {
    TFC_RETURN_IF_ERROR(elided_after(w, id));
    return make_variable(w, id);
  }
  bool folded = rewrites && n->output_count && !(f & (TFC_OP_STATEFUL | TFC_OP_UPDATE));
  for (uint32_t i = 0; i < n->output_count && folded; i++)
    folded =
        w->b->ground->shapes.values[n->output_begin + i] && !tfc_dtype_is_ref(g->output_dtypes[n->output_begin + i]);
  const struct tfc_tensor *value = tfc_const_value(g, n);
  if (folded || value) {
    TFC_RETURN_IF_ERROR(elided_after(w, id));
    for (uint32_t i = 0; i < n->output_count; i++)
      if (!w->b->ground->fed[n->output_begin + i])
        TFC_RETURN_IF_ERROR(make_constant(w, id, i, folded ? w->b->ground->shapes.values[n->output_begin + i] : value));
    return NULL;
  }
  if (f & TFC_OP_NOP && n->output_count == 0) return elided_after(w, id);
  if ((elidable_view(w->b, n) || reduces_nothing(w, n)) && view_can_follow(w, n)) {
    const struct source *s = &w->sources[output_number(g, tfc_node_inputs(g, n)[0])];
    if (tfc_node_role(n) != TFC_ROLE_READ) {
      TFC_RETURN_IF_ERROR(elided_after(w, id));
      TFC_RETURN_IF_ERROR(elide_view(w, id));
      return elided_controls(w, id);
    }
    // A read as another type is left to its kernel, which refuses it.
    if (s->kind == HANDLE && !must_copy(w, id, s->variable) &&
        w->ir->variables.data[s->variable].variable->dtype == g->output_dtypes[n->output_begin]) {
      TFC_RETURN_IF_ERROR(elided_after(w, id));
      const struct access *a = &w->accesses.data[s->variable];
      // Readers wait for the writer of the version; so do nodes that have a control edge from this read.
      if (w->after[id] == TFC_NONE) w->after[id] = a->writer;
      if (!w->b->ground->fed[n->output_begin])
        w->sources[n->output_begin] = (struct source){PLAIN, a->version, TFC_NONE, NULL, w->after[id]};
      return NULL;
    }
  }
  return make_op(w, id);
}

static tfc_status note_updates(struct walk *w) { // variables must be known before their accesses
  const struct tfc_graph *g = w->b->graph;
  for (uint32_t i = 0; i < w->b->ground->order_count; i++) {
    uint32_t id = w->b->ground->order[i];
    const struct tfc_node *n = &g->nodes[id];
    if (tfc_all_fed(w->b->ground, n) || !(n->def->flags & TFC_OP_UPDATE)) continue;
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output o = tfc_node_inputs(g, n)[k];
      tfc_dtype t = tfc_output_dtype(g, o);
      if (t != TFC_RESOURCE && !tfc_dtype_is_ref(t)) continue;
      uint32_t root = variable_root(w->b, o);
      if (root == TFC_NONE || !w->variable_of[root]) continue;
      struct access *a = &w->accesses.data[w->variable_of[root] - 1];
      if (!tfc_array_push(&a->update_positions, i)) return tfc_status_no_memory("planning a step");
    }
  }
  return NULL;
}

static tfc_status make_fetches(struct walk *w) {
  const struct tfc_run_spec *spec = w->b->spec;
  w->b->fetches = TFC_ARENA_ARRAY(&w->ir->arena, struct tfc_plan_fetch, spec->fetch_count + 1);
  if (!w->b->fetches) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < spec->fetch_count; i++) {
    uint32_t number = output_number(w->b->graph, spec->fetches[i]);
    if (w->b->ground->fed[number]) TFC_RETURN_IF_ERROR(make_feed(w, number));
    const struct source *s = &w->sources[number];
    if (s->kind == NOTHING)
      return tfc_status_make(TFC_INTERNAL, "fetch '%.*s' has no source",
                             TFC_STR_ARG(w->b->graph->nodes[spec->fetches[i].node].name));
    uint32_t value = s->kind == REFERENCE ? w->accesses.data[s->variable].version : s->value;
    w->b->fetches[i] = (struct tfc_plan_fetch){value, s->view};
    for (uint32_t v = value; v != TFC_NONE; v = w->ir->values.data[v].alias) w->ir->values.data[v].fetched = true;
  }
  return NULL;
}

static bool on_several_devices(const struct tfc_ir *ir) {
  uint16_t device = TFC_NO_DEVICE;
  for (size_t i = 0; i < ir->ops.count; i++) {
    if (ir->ops.data[i].joint) continue;
    if (device != TFC_NO_DEVICE && ir->ops.data[i].device != device) return true;
    device = ir->ops.data[i].device;
  }
  return false;
}

tfc_status tfc_build_ir(struct tfc_build *b, struct tfc_ir *ir) {
  tfc_status s = NULL;
  const struct tfc_graph *g = b->graph;
  struct walk w = {.b = b, .ir = ir, .all_sent = TFC_NONE};
  ir->graph = ir->source = g;
  ir->devices = b->session->devices;
  ir->device_count = b->session->device_count;
  ir->host = b->ground->host;
  ir->all_rewrites = b->session->options.execution.rewrites == TFC_REWRITES_ALL;
  struct tfc_arena scratch = {.block_size = tfc_plan_block_size(g->node_count) / 4};
  w.sources = TFC_ARENA_ARRAY(&scratch, struct source, g->output_total + 1u);
  w.after = tfc_arena_alloc(&scratch, (g->node_count + 1u) * sizeof *w.after);
  w.variable_of = TFC_ARENA_ARRAY(&scratch, uint32_t, g->node_count + 1u);
  w.feed_values = tfc_arena_alloc(&scratch, (b->spec->feed_count + 1u) * sizeof *w.feed_values);
  w.effects = TFC_ARENA_ARRAY(&scratch, bool, g->node_count + 1u);
  w.leads = TFC_ARENA_ARRAY(&scratch, bool, g->node_count + 1u);
  w.controls = TFC_ARENA_ARRAY(&scratch, bool, g->node_count + 1u);
  if (!w.sources || !w.after || !w.variable_of || !w.feed_values || !w.effects || !w.leads || !w.controls)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (!tfc_spare_take_array(&ir->ops, 2 * b->ground->order_count) ||
      !tfc_spare_take_array(&ir->values, b->ground->order_count + b->ground->order_count / 2) ||
      !tfc_spare_take_array(&ir->edges, b->ground->order_count))
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < g->node_count; i++) w.after[i] = TFC_NONE;
  for (uint32_t i = 0; i < b->spec->feed_count; i++) w.feed_values[i] = TFC_NONE;
  for (uint32_t i = 0; i < b->spec->feed_count; i++) {
    struct tfc_output o = b->spec->feeds[i];
    TFC_TRY(s, make_feed(&w, output_number(b->graph, o)));
    if (tfc_lowered_result(b->graph, o, &o)) TFC_TRY(s, make_feed(&w, output_number(b->graph, o)));
  }
  mark_effects(&w);
  for (uint32_t i = 0; i < b->ground->order_count; i++) { // variables without inputs come first
    const struct tfc_node *n = &g->nodes[b->ground->order[i]];
    if (is_variable(n) && !tfc_all_fed(b->ground, n) && !n->control_count)
      TFC_TRY(s, walk_node(&w, b->ground->order[i]));
  }
  TFC_TRY(s, note_updates(&w));
  for (uint32_t i = 0; i < b->ground->order_count; i++)
    if (!w.variable_of[b->ground->order[i]]) TFC_TRY(s, walk_node(&w, b->ground->order[i]));
  TFC_TRY(s, make_fetches(&w));
  ir->in_parts = b->spec->in_parts || on_several_devices(ir);
out:
  for (size_t i = 0; i < w.accesses.count; i++) {
    tfc_array_free(&w.accesses.data[i].readers);
    tfc_array_free(&w.accesses.data[i].update_positions);
  }
  tfc_array_free(&w.accesses);
  tfc_array_free(&w.set);
  tfc_array_free(&w.sent);
  tfc_arena_deinit(&scratch);
  return s;
}
