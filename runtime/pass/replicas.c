// The new graph is written as a GraphDef and parsed. Nodes belong to these sets:
//   varies   depends on the split feeds, by data edges that do not go through an averaged gradient; and what only lets
//            others wait for such nodes
//   copied   every tower has its own: what varies, what is without state and needed for that, and, if each tower has
//            variables of its own, everything that depends on them
//   others   are there once
#include "runtime/pass/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/graph/export.h"
#include "runtime/graph/wire.h"
#include "runtime/pass/frames.h"

struct cut { // a gradient that is averaged over the towers
  struct tfc_output output;
  uint32_t update; // an update that uses this gradient
};
struct maker {
  const struct tfc_graph *g;
  const struct tfc_replicas_request *request;
  struct tfc_shapes shapes;
  bool *needed, *in_step, *varies, *copied, *seen;
  bool *awaited; // with backups: nodes of a tower for which a node waits that exists once, for all towers
  uint32_t *todo, todo_count;
  uint32_t *store; // [node] where a variable is kept, and nodes that go with it: index in request->stores, or TFC_NONE
  TFC_ARRAY(struct cut) cuts;
  struct tfc_text text;
};

static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE && tfc_node_role(n) != TFC_ROLE_TEMPORARY;
}
static bool is_update(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_UPDATE;
}
// Whether the node makes a stack or an array that exists for one step: each tower has its own.
static bool is_of_step(const struct tfc_node *n) {
  const tfc_op_role role = tfc_node_role(n);
  return role == TFC_ROLE_STACK || role == TFC_ROLE_PUSH || role == TFC_ROLE_POP || role == TFC_ROLE_STACK_CLOSE ||
         role == TFC_ROLE_TENSOR_ARRAY;
}
static bool has_state(const struct tfc_node *n) {
  return !n->def || (n->def->flags & (TFC_OP_STATEFUL | TFC_OP_PLACEHOLDER) && !is_of_step(n));
}

// Returns the variable from which the node's first input comes.
static uint32_t variable_of(const struct tfc_graph *g, uint32_t update) {
  for (uint32_t n = update, hops = 0; hops < 16; hops++) {
    if (is_variable(&g->nodes[n])) return n;
    if (!g->nodes[n].input_count) break;
    n = tfc_node_inputs(g, &g->nodes[n])[0].node;
  }
  return TFC_NONE;
}
static bool reads_variable(const struct tfc_graph *g, uint32_t node) {
  const struct tfc_node *n = &g->nodes[node];
  return n->def && n->input_count && tfc_output_dtype(g, tfc_node_inputs(g, n)[0]) == TFC_RESOURCE && !is_update(n) &&
         !(n->def->flags & TFC_OP_ASYNC) && variable_of(g, node) != TFC_NONE;
}

// Whether a part of the name is "gradients", "gradients_1" and so on, or "gradient_tape".
static bool is_gradient(tfc_str name) {
  for (size_t at = 0; at < name.size;) {
    const tfc_str rest = tfc_str_sub(name, at, name.size);
    const size_t slash = tfc_str_find(rest, '/');
    if (slash == SIZE_MAX) return false;
    const tfc_str part = tfc_str_sub(rest, 0, slash);
    if (tfc_str_is(part, "gradients") || tfc_str_starts(part, "gradients_") || tfc_str_is(part, "gradient_tape"))
      return true;
    at += slash + 1;
  }
  return false;
}

static uint32_t cut_of(const struct maker *m, struct tfc_output o) {
  for (uint32_t i = 0; i < m->cuts.count; i++)
    if (m->cuts.data[i].output.node == o.node && m->cuts.data[i].output.index == o.index) return i;
  return TFC_NONE;
}

// Adds to `set` what depends on its members, within the nodes that are needed; not through gradients that are averaged.
static void close_forward(struct maker *m, bool *set, const bool *within, bool by_control) {
  m->todo_count = 0;
  for (uint32_t i = 0; i < m->g->node_count; i++)
    if (set[i]) m->todo[m->todo_count++] = i;
  while (m->todo_count) {
    const uint32_t n = m->todo[--m->todo_count];
    for (uint32_t c = m->g->consumer_begin[n]; c < m->g->consumer_begin[n + 1]; c++) {
      const struct tfc_consumer *k = &m->g->consumers[c];
      const bool averaged = !by_control && cut_of(m, (struct tfc_output){n, k->output}) != TFC_NONE;
      if (set[k->node] || !within[k->node] || averaged || (k->input < 0 && !by_control)) continue;
      set[k->node] = true;
      m->todo[m->todo_count++] = k->node;
    }
  }
}

static void mark_feeds(const struct maker *m, bool *set) {
  const struct tfc_step_spec *step = m->request->step;
  for (uint32_t i = 0; i < step->feed_count; i++)
    if (m->request->split[i]) set[step->feeds[i].output.node] = true;
}

static tfc_status refuse(const struct tfc_node *n, const char *why) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "--replicas: '%.*s' (%.*s) %s", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op),
                         why);
}

// Goes back from an update's inputs to the gradients.
static tfc_status find_cuts(struct maker *m, uint32_t update) {
  const struct tfc_graph *g = m->g;
  memset(m->seen, 0, g->node_count * sizeof *m->seen);
  m->todo_count = 0;
  m->todo[m->todo_count++] = update;
  while (m->todo_count) {
    const struct tfc_node *n = &g->nodes[m->todo[--m->todo_count]];
    for (uint32_t k = 0; k < n->input_count; k++) {
      const struct tfc_output o = tfc_node_inputs(g, n)[k];
      const struct tfc_node *from = &g->nodes[o.node];
      if (!m->varies[o.node] || tfc_dtype_is_ref(tfc_output_dtype(g, o))) continue;
      if (is_gradient(from->name)) {
        if (cut_of(m, o) == TFC_NONE && !tfc_array_push(&m->cuts, (struct cut){o, update}))
          return tfc_status_no_memory("replicas");
        continue;
      }
      if (has_state(from) || is_update(from))
        return refuse(&g->nodes[update],
                      "gets values that depend on the batch and are no gradient: towers would differ "
                      "from one device");
      if (m->seen[o.node]) continue;
      m->seen[o.node] = true;
      m->todo[m->todo_count++] = o.node;
    }
  }
  return NULL;
}

static tfc_status check_nodes(const struct maker *m) {
  for (uint32_t i = 0; i < m->g->node_count; i++) {
    const struct tfc_node *n = &m->g->nodes[i];
    if (!m->in_step[i]) continue;
    if (tfc_node_role(n) == TFC_ROLE_BATCH_NORM && m->varies[i] && tfc_node_attr_bool(m->g, n, "is_training", true))
      return refuse(n, "normalises by the batch: a tower sees only its part of it");
    if (!has_state(n) || !n->output_count || is_variable(n) || is_update(n) || reads_variable(m->g, i) ||
        (n->def && n->def->flags & TFC_OP_PLACEHOLDER))
      continue;
    return refuse(n, n->def
                         ? "keeps a state of its own (random numbers, a queue, an iterator): towers would not do what "
                           "one device does"
                         : "is an operation that is not known");
  }
  return NULL;
}

// All nodes of loops are copied that the step needs, also those that are connected to their loop only by control edges;
// not updates, nor nodes with a state that do not read a variable.
static tfc_status copy_loops(struct maker *m) {
  struct tfc_frames frames = {0};
  if (!m->g->has_frames) return NULL;
  TFC_RETURN_IF_ERROR(tfc_frames_find(m->g, &frames));
  for (uint32_t i = 0; i < m->g->node_count; i++)
    if (m->needed[i] && frames.of_node[i] && (!has_state(&m->g->nodes[i]) || reads_variable(m->g, i)) &&
        !is_update(&m->g->nodes[i]))
      m->copied[i] = true;
  tfc_frames_deinit(&frames);
  return NULL;
}

// Adds the nodes that only let others wait, if all that they wait for varies. TensorFlow makes one for the gradients of
// each operation (tuple/group_deps). If it were there once, each tower's gradients would wait for those of all towers,
// with a message there and back for each operation.
static tfc_status add_waits(struct maker *m) {
  const struct tfc_graph *g = m->g;
  const struct tfc_step_spec *step = m->request->step;
  TFC_RETURN_IF_ERROR(tfc_graph_topological(g, m->todo));
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t node = m->todo[i];
    const struct tfc_node *n = &g->nodes[node];
    bool waits = m->in_step[node] && n->control_count && !n->input_count && !n->output_count && !has_state(n);
    for (uint32_t k = 0; k < n->control_count && waits; k++) waits = m->varies[tfc_node_inputs(g, n)[k].node];
    for (uint32_t k = 0; k < step->target_count && waits; k++) waits = step->targets[k] != node; // waits for all towers
    if (waits) m->varies[node] = true;
  }
  return NULL;
}

static tfc_status find_sets(struct maker *m) {
  const struct tfc_graph *g = m->g;
  mark_feeds(m, m->varies);
  close_forward(m, m->varies, m->in_step, false);
  TFC_RETURN_IF_ERROR(check_nodes(m));
  for (uint32_t i = 0; i < g->node_count; i++)
    if (m->in_step[i] && is_update(&g->nodes[i])) TFC_RETURN_IF_ERROR(find_cuts(m, i));
  if (!m->cuts.count)
    return tfc_status_make(TFC_UNIMPLEMENTED, "--replicas: no update of the step depends on its feeds by a gradient");
  memset(m->varies, 0, g->node_count * sizeof *m->varies);
  mark_feeds(m, m->varies);
  close_forward(m, m->varies, m->in_step, false);
  TFC_RETURN_IF_ERROR(add_waits(m));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (m->varies[i] && is_update(&g->nodes[i]))
      return refuse(&g->nodes[i], "gets values that depend on the batch and are no gradient");
    m->copied[i] = m->varies[i] || (!m->request->store_count && m->needed[i] && is_variable(&g->nodes[i]));
  }
  if (!m->request->store_count) close_forward(m, m->copied, m->needed, true);
  TFC_RETURN_IF_ERROR(copy_loops(m));
  m->todo_count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (m->copied[i]) m->todo[m->todo_count++] = i;
  while (m->todo_count) { // adds nodes without state that the copied nodes need
    const struct tfc_node *n = &g->nodes[m->todo[--m->todo_count]];
    for (uint32_t k = 0; k < n->input_count; k++) {
      const uint32_t from = tfc_node_inputs(g, n)[k].node;
      if (m->copied[from] || has_state(&g->nodes[from]) || is_update(&g->nodes[from])) continue;
      if (cut_of(m, tfc_node_inputs(g, n)[k]) != TFC_NONE) continue;
      m->copied[from] = true;
      m->todo[m->todo_count++] = from;
    }
  }
  return NULL;
}

// --- Devices -------------------------------------------------------------------------------------------------------
static uint64_t variable_bytes(const struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
  size_t bytes = 0;
  if (shape && shape->kind == TFC_ATTR_SHAPE)
    tfc_status_free(tfc_tensor_bytes(tfc_node_attr_type(g, n, "dtype", TFC_FLOAT), shape->shape, &bytes));
  return bytes;
}

// Each variable is put on the store that has the fewest bytes so far; slots of a variable (NAME/Adam) are put on the
// variable's store. An operation is put on the store of the variable that it updates, or of the node that needs it.
static tfc_status choose_stores(const struct tfc_graph *g, uint32_t store_count, uint32_t *store) {
  uint64_t *load = calloc(store_count, sizeof *load);
  uint32_t *order = malloc((g->node_count + 1u) * sizeof *order);
  tfc_status s = load && order ? tfc_graph_topological(g, order) : tfc_status_no_memory("replicas");
  for (uint32_t i = 0; !s && i < g->node_count; i++) store[i] = TFC_NONE;
  for (uint32_t i = 0; !s && i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!is_variable(n)) continue;
    size_t end = n->name.size;
    while (end > 0 && n->name.data[end - 1] != '/') end--;
    const uint32_t of = end ? tfc_graph_find(g, tfc_str_sub(n->name, 0, end - 1)) : TFC_NONE;
    uint32_t best = 0;
    for (uint32_t k = 1; k < store_count; k++)
      if (load[k] < load[best]) best = k;
    if (of != TFC_NONE && of < i && is_variable(&g->nodes[of])) best = store[of];
    store[i] = best;
    load[best] += variable_bytes(g, n) + 1;
  }
  for (uint32_t i = 0; !s && i < g->node_count; i++) {
    const uint32_t v = is_update(&g->nodes[i]) || reads_variable(g, i) ? variable_of(g, i) : TFC_NONE;
    if (v != TFC_NONE) store[i] = store[v];
  }
  for (uint32_t k = g->node_count; !s && k-- > 0;) {
    const uint32_t i = order[k];
    for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1] && store[i] == TFC_NONE; c++)
      store[i] = store[g->consumers[c].node];
  }
  free(load);
  free(order);
  return s;
}

static const char *device_of(const struct maker *m, uint32_t node, uint32_t tower) {
  const struct tfc_replicas_request *r = m->request;
  if (m->copied[node]) return r->towers[tower];
  if (!r->store_count) return r->towers[0];
  return r->stores[m->store[node] == TFC_NONE ? 0 : m->store[node]];
}

// --- Writing -------------------------------------------------------------------------------------------------------
static void put_name(struct tfc_text *out, const struct maker *m, uint32_t node, uint32_t tower) {
  if (tower && m->copied[node]) tfc_text_printf(out, "replica_%u/", tower);
  tfc_text_add(out, m->g->nodes[node].name);
}
static void put_output(struct tfc_text *out, const struct maker *m, struct tfc_output o, uint32_t tower) {
  if (o.index < 0) tfc_text_printf(out, "^");
  put_name(out, m, o.node, tower);
  if (o.index > 0) tfc_text_printf(out, ":%d", o.index);
}

struct inputs { // the texts of a node's inputs
  struct tfc_text *texts;
  uint32_t count, size;
  bool failed;
};
static struct tfc_text *next_input(struct inputs *in) {
  static struct tfc_text nowhere;
  if (in->count == in->size) {
    const uint32_t size = in->size ? in->size * 2 : 8;
    struct tfc_text *more = realloc(in->texts, size * sizeof *more);
    if (!more) {
      in->failed = true;
      nowhere = (struct tfc_text){.failed = true};
      return &nowhere;
    }
    in->texts = more, in->size = size;
  }
  in->texts[in->count] = (struct tfc_text){0};
  return &in->texts[in->count++];
}

static void put_made(struct maker *m, const char *op, tfc_str name, const char *device, struct inputs *in,
                     const struct tfc_attr *attrs, uint32_t attr_count) {
  tfc_str *views = calloc(in->count + 1u, sizeof *views);
  m->text.failed |= in->failed || !views;
  for (uint32_t k = 0; k < in->count; k++) {
    m->text.failed |= in->texts[k].failed;
    if (views) views[k] = tfc_text_view(&in->texts[k]);
  }
  if (!m->text.failed)
    tfc_graph_put_new_node(&(struct tfc_new_node){.op = op,
                                                  .name = name,
                                                  .device = tfc_str_from(device),
                                                  .inputs = views,
                                                  .input_count = in->count,
                                                  .attrs = attrs,
                                                  .attr_count = attr_count},
                           &m->text);
  for (uint32_t k = 0; k < in->count; k++) tfc_text_deinit(&in->texts[k]);
  free(in->texts);
  free(views);
  *in = (struct inputs){0};
}

static bool waits_for_tower(const struct maker *m, uint32_t node, struct tfc_output input) {
  return m->request->backups && input.index < 0 && !m->copied[node] && m->varies[input.node];
}

static tfc_status put_node(struct maker *m, uint32_t node, uint32_t tower) {
  const struct tfc_graph *g = m->g;
  const struct tfc_node *n = &g->nodes[node];
  struct inputs in = {0};
  struct tfc_text name = {0}, shared = {0};
  char *op = tfc_format("%.*s", TFC_STR_ARG(n->op));
  struct tfc_attr *attrs = calloc(n->attr_count + 1u, sizeof *attrs);
  uint32_t attr_count = 0;
  put_name(&name, m, node, tower);
  for (uint32_t k = 0; attrs && k < n->attr_count; k++) {
    struct tfc_attr a = g->attrs[n->attr_begin + k];
    if (tfc_str_is(a.name, "_class")) continue; // tasks are chosen by devices
    const bool names = tfc_str_is(a.name, "frame_name") || tfc_str_is(a.name, "shared_name") ||
                       tfc_str_is(a.name, "stack_name") || tfc_str_is(a.name, "tensor_array_name");
    if (tower && names && a.kind == TFC_ATTR_STRING && a.s.size) {
      shared.size = 0;
      tfc_text_printf(&shared, "replica_%u/%.*s", tower, TFC_STR_ARG(a.s));
      a.s = tfc_text_view(&shared);
    }
    attrs[attr_count++] = a;
  }
  for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
    const struct tfc_output o = tfc_node_inputs(g, n)[k];
    const uint32_t cut = o.index < 0 || m->varies[node] ? TFC_NONE : cut_of(m, o);
    if (cut != TFC_NONE)
      tfc_text_printf(next_input(&in), "replicas/mean_%u", cut);
    else if (waits_for_tower(m, node, o)) // with backups, updates run after the towers, and not when all have ended
      m->awaited[o.node] = true;
    else if (!m->request->backups && o.index < 0 && !m->copied[node] && m->copied[o.node])
      for (uint32_t t = 0; t < m->request->count; t++) put_output(next_input(&in), m, o, t); // waits for all copies
    else
      put_output(next_input(&in), m, o, tower);
  }
  tfc_status s = op && attrs && !name.failed && !shared.failed ? NULL : tfc_status_no_memory("replicas");
  if (s) in.failed = true;
  put_made(m, op, tfc_text_view(&name), device_of(m, node, tower), &in, attrs, attr_count);
  tfc_text_deinit(&name);
  tfc_text_deinit(&shared);
  free(attrs);
  free(op);
  return s;
}

static void put_scalar(struct maker *m, tfc_str name, const char *device, tfc_dtype dtype, double value) {
  float single = (float)value;
  int32_t integer = (int32_t)value;
  struct tfc_tensor t = {.dtype = dtype, .shape = TFC_SHAPE_SCALAR};
  t.data = dtype == TFC_FLOAT ? (void *)&single : dtype == TFC_DOUBLE ? (void *)&value : (void *)&integer;
  t.size = dtype == TFC_DOUBLE ? 8 : 4;
  const struct tfc_attr attrs[] = {tfc_attr_type("dtype", dtype), tfc_attr_tensor("value", &t)};
  struct inputs in = {0};
  put_made(m, "Const", name, device, &in, attrs, 2);
}

// With backups: writes the queues through which the towers' tensors go, and what takes the accepted ones. Each queue
// has an element at most, or as many as are accepted.
static void put_queues(struct maker *m, struct tfc_output o, const char *last, const char *device) {
  const tfc_dtype dtype = tfc_dtype_base(tfc_output_dtype(m->g, o));
  const struct tfc_attr queued = {
      .name = TFC_STR("component_types"), .kind = TFC_ATTR_LIST_TYPE, .count = 1, .types = &dtype};
  const struct tfc_attr given = {
      .name = TFC_STR("Tcomponents"), .kind = TFC_ATTR_LIST_TYPE, .count = 1, .types = &dtype};
  const uint32_t count = m->request->count, accepted = count - m->request->backups;
  char name[96];
  struct inputs in = {0};
  snprintf(name, sizeof name, "%s/accepted", last);
  put_made(m, "FIFOQueueV2", tfc_str_from(name), device, &in, &queued, 1);
  for (uint32_t t = 0; t < count; t++) {
    snprintf(name, sizeof name, "%s/queue_%u", last, t);
    put_made(m, "FIFOQueueV2", tfc_str_from(name), device, &in, &queued, 1);
    snprintf(name, sizeof name, "%s/give_%u", last, t);
    tfc_text_printf(next_input(&in), "%s/queue_%u", last, t);
    put_output(next_input(&in), m, o, t);
    put_made(m, "QueueEnqueueV2", tfc_str_from(name), device, &in, &given, 1);
    snprintf(name, sizeof name, "%s/take_%u", last, t);
    tfc_text_printf(next_input(&in), "%s/queue_%u", last, t);
    put_made(m, "QueueDequeueV2", tfc_str_from(name), device, &in, &queued, 1);
    snprintf(name, sizeof name, "%s/accept_%u", last, t);
    tfc_text_printf(next_input(&in), "%s/accepted", last);
    tfc_text_printf(next_input(&in), "%s/take_%u", last, t);
    put_made(m, "QueueEnqueueV2", tfc_str_from(name), device, &in, &given, 1);
  }
  for (uint32_t i = 0; i < accepted; i++) { // one after the other: in the order in which they were accepted
    snprintf(name, sizeof name, "%s/accepted_%u", last, i);
    tfc_text_printf(next_input(&in), "%s/accepted", last);
    if (i) tfc_text_printf(next_input(&in), "^%s/accepted_%u", last, i - 1);
    put_made(m, "QueueDequeueV2", tfc_str_from(name), device, &in, &queued, 1);
  }
}

// With backups: writes for each tower the node that runs what updates wait for.
static void put_awaited(struct maker *m) {
  for (uint32_t t = 0; t < m->request->count; t++) {
    char name[64];
    struct inputs in = {0};
    for (uint32_t i = 0; i < m->g->node_count; i++)
      if (m->awaited[i]) put_output(next_input(&in), m, (struct tfc_output){i, -1}, t);
    snprintf(name, sizeof name, "replicas/after_%u", t);
    if (in.count) put_made(m, "NoOp", tfc_str_from(name), m->request->towers[t], &in, NULL, 0);
  }
}

// Writes a node that joins the tensors of all towers: their mean, or all their rows. `what` is the end of its name.
static tfc_status put_joined(struct maker *m, struct tfc_output o, bool rows, bool divides, const char *what,
                             uint32_t number, const char *device) {
  const tfc_dtype dtype = tfc_dtype_base(tfc_output_dtype(m->g, o));
  const uint32_t count = m->request->count - m->request->backups;
  char last[64], joined[96], part[96];
  struct inputs in = {0};
  divides = divides && (dtype == TFC_FLOAT || dtype == TFC_DOUBLE);
  snprintf(last, sizeof last, "replicas/%s_%u", what, number);
  snprintf(joined, sizeof joined, "%s%s", last, divides ? "/sum" : "");
  snprintf(part, sizeof part, "%s/part", last);
  if (!rows && !divides)
    return refuse(&m->g->nodes[o.node], "is to be averaged over the towers, and is not of type float or double");
  if (m->request->backups) put_queues(m, o, last, device);
  for (uint32_t t = 0; t < count; t++)
    if (m->request->backups)
      tfc_text_printf(next_input(&in), "%s/accepted_%u", last, t);
    else
      put_output(next_input(&in), m, o, t);
  if (rows && count > 1) {
    char axis[96];
    snprintf(axis, sizeof axis, "%s/axis", last);
    put_scalar(m, tfc_str_from(axis), device, TFC_INT32, 0);
    tfc_text_printf(next_input(&in), "%s", axis);
  }
  const struct tfc_attr attrs[] = {tfc_attr_int("N", count), tfc_attr_type("T", dtype),
                                   tfc_attr_type("Tidx", TFC_INT32)};
  if (count == 1) // of two towers, one is a backup
    put_made(m, "Identity", tfc_str_from(joined), device, &in, attrs + 1, 1);
  else
    put_made(m, rows ? "ConcatV2" : "AddN", tfc_str_from(joined), device, &in, attrs, rows ? 3 : 2);
  if (!divides) return NULL;
  put_scalar(m, tfc_str_from(part), device, dtype, 1.0 / count);
  tfc_text_printf(next_input(&in), "%s", joined);
  tfc_text_printf(next_input(&in), "%s", part);
  put_made(m, "Mul", tfc_str_from(last), device, &in, attrs + 1, 1);
  return NULL;
}

static const struct tfc_shape *shape_of(const struct maker *m, struct tfc_output o) {
  return &m->shapes.shapes[m->g->nodes[o.node].output_begin + (uint32_t)o.index];
}

// Whether this gradient has only some rows. It then consists of two tensors, the rows' numbers and their values; only
// the numbers are integers.
static bool is_rows(const struct maker *m, uint32_t cut) {
  const struct tfc_graph *g = m->g;
  const struct cut *c = &m->cuts.data[cut];
  const tfc_dtype dtype = tfc_output_dtype(g, c->output);
  const struct tfc_shape *shape = shape_of(m, c->output);
  bool integers = false;
  if (dtype != TFC_FLOAT && dtype != TFC_DOUBLE) return true;
  for (uint32_t i = 0; i < m->cuts.count; i++) {
    const tfc_dtype d = tfc_output_dtype(g, m->cuts.data[i].output);
    integers |= d == TFC_INT32 || d == TFC_INT64;
  }
  for (uint32_t i = 0; integers && i < g->node_count; i++) {
    const struct tfc_attr *a = is_variable(&g->nodes[i]) ? tfc_node_attr(g, &g->nodes[i], "shape") : NULL;
    if (a && a->kind == TFC_ATTR_SHAPE && tfc_shape_equal(a->shape, shape)) return false;
  }
  return integers;
}

static tfc_status put_all(struct maker *m) {
  const struct tfc_replicas_request *r = m->request;
  for (uint32_t i = 0; i < m->g->node_count; i++)
    for (uint32_t t = 0; m->needed[i] && t < (m->copied[i] ? r->count : 1); t++) TFC_RETURN_IF_ERROR(put_node(m, i, t));
  for (uint32_t c = 0; c < m->cuts.count; c++) {
    const struct cut *cut = &m->cuts.data[c];
    const char *device = r->store_count ? device_of(m, cut->update, 0) : r->towers[c % r->count];
    TFC_RETURN_IF_ERROR(put_joined(m, cut->output, is_rows(m, c), true, "mean", c, device));
  }
  for (uint32_t i = 0; i < r->step->fetch_count; i++) {
    const struct tfc_output o = r->step->fetches[i];
    if (!m->varies[o.node]) continue;
    const int32_t rank = shape_of(m, o)->rank;
    if (rank < 0) return refuse(&m->g->nodes[o.node], "is fetched, and its shape is not known");
    TFC_RETURN_IF_ERROR(put_joined(m, o, rank > 0, rank == 0, "fetch", i, r->towers[0]));
  }
  put_awaited(m);
  tfc_graph_put_library(m->g, &m->text);
  return m->text.failed ? tfc_status_no_memory("replicas") : NULL;
}

static tfc_status find_needed(struct maker *m) {
  const struct tfc_step_spec *step = m->request->step;
  tfc_status s = NULL;
  const uint32_t count = step->target_count + step->init_count;
  uint32_t *targets = calloc(count + 1u, sizeof *targets);
  if (!targets) return tfc_status_no_memory("replicas");
  if (step->target_count) memcpy(targets, step->targets, step->target_count * sizeof *targets);
  if (step->init_count) memcpy(targets + step->target_count, step->inits, step->init_count * sizeof *targets);
  s = tfc_prune(m->g, NULL, 0, step->fetches, step->fetch_count, step->targets, step->target_count, m->in_step);
  if (!s) s = tfc_prune(m->g, NULL, 0, step->fetches, step->fetch_count, targets, count, m->needed);
  free(targets);
  return s;
}

// Lists all variables with the operations that read and assign them, also variables that only saving and restoring
// need.
static void add_variables(struct maker *m) {
  const struct tfc_graph *g = m->g;
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t c = g->consumer_begin[i]; m->needed[i] && is_variable(&g->nodes[i]) && c < g->consumer_begin[i + 1];
         c++) {
      const uint32_t reader = g->consumers[c].node;
      if (tfc_node_role(&g->nodes[reader]) == TFC_ROLE_READ && !g->nodes[reader].control_count)
        m->needed[reader] = true;
    }
}

tfc_status tfc_replicas_make(const struct tfc_graph *g, const struct tfc_replicas_request *request,
                             struct tfc_graph **out) {
  tfc_status s = NULL;
  struct maker m = {.g = g, .request = request};
  const struct tfc_step_spec *step = request->step;
  const size_t n = g->node_count + 1u;
  struct tfc_shape_override *fed = calloc(step->feed_count + 1u, sizeof *fed);
  m.needed = calloc(n, 1), m.in_step = calloc(n, 1), m.varies = calloc(n, 1), m.copied = calloc(n, 1);
  m.seen = calloc(n, 1), m.awaited = calloc(n, 1), m.todo = calloc(n, sizeof *m.todo),
  m.store = calloc(n, sizeof *m.store);
  if (!fed || !m.needed || !m.in_step || !m.varies || !m.copied || !m.seen || !m.awaited || !m.todo || !m.store) {
    s = tfc_status_no_memory("replicas");
    goto out;
  }
  for (uint32_t i = 0; i < step->feed_count; i++)
    fed[i] = (struct tfc_shape_override){.output = step->feeds[i].output, .shape = step->feeds[i].shape};
  TFC_TRY(s, tfc_infer_fed_shapes(g, fed, step->feed_count, &m.shapes));
  TFC_TRY(s, find_needed(&m));
  add_variables(&m);
  TFC_TRY(s, find_sets(&m));
  if (request->store_count) TFC_TRY(s, choose_stores(g, request->store_count, m.store));
  TFC_TRY(s, put_all(&m));
  s = tfc_graph_parse(tfc_text_view(&m.text), "the graph of all replicas", NULL, out);
out:
  tfc_shapes_deinit(&m.shapes);
  tfc_text_deinit(&m.text);
  tfc_array_free(&m.cuts);
  free(m.needed), free(m.in_step), free(m.varies), free(m.copied), free(m.seen), free(m.todo), free(m.store);
  free(m.awaited), free(fed);
  return s;
}

tfc_status tfc_replicas_place(struct tfc_graph *g, const char *tower, const char *const *stores, uint32_t store_count) {
  uint32_t *store = malloc((g->node_count + 1u) * sizeof *store);
  tfc_str *devices = calloc(g->node_count + 1u, sizeof *devices);
  tfc_status s = store && devices ? choose_stores(g, store_count, store) : tfc_status_no_memory("replicas");
  for (uint32_t i = 0; !s && i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const bool stored = (is_variable(n) || is_update(n)) && store[i] != TFC_NONE;
    devices[i] = tfc_str_from(stored ? stores[store[i]] : tower);
  }
  if (!s) s = tfc_graph_set_devices(g, devices);
  free(store);
  free(devices);
  return s;
}
