// Makes a dynamic plan: nodes, edges, static frames, and a prepared segment for each device, whose operations are
// launched one by one.
#include <stdlib.h>

#include "runtime/base/map.h"
#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/exec/node_state.h"
#include "runtime/exec/variables.h"
#include "runtime/pass/fold.h"

struct maker {
  struct tfc_build *b;
  struct tfc_plan *plan;
  struct tfc_dynamic *d;
  const struct tfc_graph *g;
  struct tfc_arena *arena;
  uint32_t *of_node;                // [node] number of its dnode; TFC_NONE: it has none
  uint32_t *of_feed;                // [feed]
  uint32_t *op_count;               // [device]
  uint32_t *product;                // [node] for an addition: the matrix product that it also computes, or TFC_NONE
  uint32_t *runs_in;                // [node] the node whose operation does its work
  struct tfc_dynamic_chain **chain; // [node] the chain that it runs, or NULL
  bool *elided;                     // [node] it does not run: its readers read its input directly
  TFC_ARRAY(struct tfc_dedge) edges;
  TFC_ARRAY(uint32_t) sources; // [edges] dnode that the edge leaves
  TFC_ARRAY(struct tfc_dframe) frames;
  struct tfc_intmap frame_of; // key: a hash of the frame's parent and name; value: the first frame with this hash
};

static bool fed(const struct maker *m, struct tfc_output o) {
  return o.index >= 0 && m->b->ground->fed[m->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static bool all_fed(const struct maker *m, const struct tfc_node *n) {
  for (uint32_t i = 0; i < n->output_count; i++)
    if (!m->b->ground->fed[n->output_begin + i]) return false;
  return n->output_count > 0;
}

// Returns the op of a node. A node whose op is the name of a function runs as a call of that function.
static const struct tfc_op_def *def_of(const struct tfc_node *n) {
  return n->def || n->function == TFC_NONE ? n->def : tfc_op_find(TFC_STR("StatefulPartitionedCall"));
}

static tfc_dnode_kind kind_of(const struct maker *m, const struct tfc_node *n) {
  uint32_t f = def_of(n)->flags;
  tfc_op_role role = tfc_node_role(n);
  if (f & TFC_OP_SWITCH) return TFC_DNODE_SWITCH;
  if (f & TFC_OP_MERGE) return TFC_DNODE_MERGE;
  if (f & (TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_LOOP_COND)) return TFC_DNODE_PASS;
  if (role == TFC_ROLE_IDENTITY || role == TFC_ROLE_REF_IDENTITY || role == TFC_ROLE_PASSES ||
      role == TFC_ROLE_DEFAULT || role == TFC_ROLE_RESULT)
    return TFC_DNODE_PASS;
  if (role == TFC_ROLE_SPREAD) return TFC_DNODE_SPREAD;
  if (f & TFC_OP_VARIABLE && role != TFC_ROLE_TEMPORARY)
    return tfc_dtype_is_ref(m->g->output_dtypes[n->output_begin]) ? TFC_DNODE_VARIABLE : TFC_DNODE_HANDLE;
  if (tfc_const_value(m->g, n)) return TFC_DNODE_CONST;
  if (n->output_count == 0 && (f & TFC_OP_NOP || role == TFC_ROLE_TRIGGER)) return TFC_DNODE_NONE;
  return TFC_DNODE_OP;
}

static bool takes_reference(const struct tfc_op_def *def, uint32_t input) {
  const struct tfc_op_signature *sig = tfc_op_signature(def);
  for (uint32_t i = 0; i < sig->input_count && i <= input; i++) {
    if (sig->inputs[i].number_attr.size || sig->inputs[i].is_list) return i == 0 && sig->inputs[i].is_ref;
    if (i == input) return sig->inputs[i].is_ref;
  }
  return false;
}

// Returns input `k` of a node as it runs. An addition that computes a product has the other summand first, then the
// product's inputs.
static struct tfc_output input_of(const struct maker *m, uint32_t id, uint32_t k) {
  const struct tfc_output *in = tfc_node_inputs(m->g, &m->g->nodes[id]);
  if (m->chain[id]) return tfc_dynamic_chain_input(m->chain[id], k);
  if (m->product[id] == TFC_NONE) return in[k];
  return k ? tfc_node_inputs(m->g, &m->g->nodes[m->product[id]])[k - 1] : in[in[0].node == m->product[id]];
}

// Returns a bit for each input in whose memory an output may be computed, or which a called function may take over.
static uint32_t reusable_inputs(const struct tfc_op_def *def) {
  if (def->flags & (TFC_OP_INPLACE | TFC_OP_FUNCTIONAL)) return UINT32_MAX;
  return def->flags & TFC_OP_INPLACE_FIRST || def->role == TFC_ROLE_CROSS_ENTROPY;
}

// Returns the device of a node: as placed, except that a node that reads a variable runs where the variable is.
static uint16_t device_of(const struct maker *m, uint32_t id) {
  const struct tfc_node *n = &m->g->nodes[id];
  if (!m->b->spec->placement) return 0;
  if (tfc_node_role(n) == TFC_ROLE_READ) {
    const struct tfc_output handle = tfc_node_inputs(m->g, n)[0];
    if (tfc_node_role(&m->g->nodes[handle.node]) == TFC_ROLE_HANDLE && !fed(m, handle)) id = handle.node;
  }
  return m->b->spec->placement[id];
}

static tfc_status make_node(struct maker *m, uint32_t id, struct tfc_dnode *out) {
  const struct tfc_node *n = &m->g->nodes[id];
  const bool adds_product = m->product[id] != TFC_NONE;
  const struct tfc_dynamic_chain *chain = m->chain[id];
  const struct tfc_chain_finish *finish = NULL;
  const uint32_t finished = chain ? tfc_dynamic_chain_product(chain, &finish) : TFC_NONE;
  uint32_t reusable = 0;
  const struct tfc_op_def *def = finished != TFC_NONE                 ? m->g->nodes[finished].def
                                 : chain                              ? &tfc_dynamic_chain_def
                                 : !adds_product                      ? def_of(n)
                                 : tfc_node_role(n) == TFC_ROLE_ADD_N ? &tfc_add_n_product_def
                                                                      : &tfc_add_product_def;
  struct tfc_session *session = m->plan->session;
  *out = (struct tfc_dnode){.kind = kind_of(m, n),
                            .node = id,
                            .def = def,
                            .device = device_of(m, id),
                            .input_count =
                                chain ? tfc_dynamic_chain_inputs(chain, &reusable) : n->input_count + adds_product,
                            .output_count = n->output_count,
                            .is_async = def->flags & TFC_OP_ASYNC,
                            .is_exit = def->flags & TFC_OP_EXIT,
                            .tells_dead = def->flags & TFC_OP_ASYNC && def->flags & TFC_OP_DEAD_INPUTS,
                            .is_trigger = tfc_node_role(n) == TFC_ROLE_TRIGGER};
  for (uint32_t k = 0; k < n->input_count && k < 32 && !adds_product && !chain; k++)
    if (tfc_dtype_is_ref(tfc_output_dtype(m->g, tfc_node_inputs(m->g, n)[k])) && takes_reference(def, k))
      out->reference_inputs |= 1u << k;
  out->keeps_reference = n->output_count && tfc_dtype_is_ref(m->g->output_dtypes[n->output_begin]);
  if (out->kind == TFC_DNODE_CONST) out->constant = tfc_node_attr(m->g, n, "value")->tensor;
  if (def->flags & TFC_OP_ENTER) out->is_constant = tfc_node_attr_bool(m->g, n, "is_constant", false);
  if (out->kind == TFC_DNODE_VARIABLE || out->kind == TFC_DNODE_HANDLE) {
    struct tfc_ir_variable v = {.node = id, .device = out->device};
    TFC_RETURN_IF_ERROR(tfc_session_variable(session, m->g, id, &v.variable));
    if (out->kind == TFC_DNODE_HANDLE) {
      struct tfc_tensor *handle = TFC_ARENA_NEW(m->arena, struct tfc_tensor);
      if (!handle) return tfc_status_no_memory("planning a step");
      TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_RESOURCE, &TFC_SHAPE_SCALAR, handle));
      tfc_object_retain(&v.variable->object);
      *(struct tfc_object **)handle->data = &v.variable->object;
      v.handle = handle;
    }
    if (!tfc_array_push(&m->plan->ir.variables, v)) return tfc_status_no_memory("planning a step");
    out->variable = v.variable;
    out->handle = v.handle;
  }
  if (out->kind == TFC_DNODE_OP) {
    const struct tfc_device *device = session->devices[out->device];
    out->host = tfc_host_memory(m->g, n, def);
    out->direct = def->flags & (TFC_OP_FUNCTIONAL | TFC_OP_ASYNC) ||
                  (device->info.address_space && (def->flags & TFC_OP_HOST || tfc_touches_variant(m->g, n))) ||
                  (device->driver->on_its_own && out->host.all);
    if (!out->direct) out->kernel = m->op_count[out->device]++;
    if (!device->info.address_space || out->host.all)
      out->reusable_inputs = chain ? reusable : reusable_inputs(def) & ~out->reference_inputs;
    TFC_RETURN_IF_ERROR(tfc_session_node_state(session, m->g, m->b->spec->states, id, &out->node_state));
  }
  if (out->output_count > m->d->most_outputs) m->d->most_outputs = out->output_count;
  return NULL;
}

static tfc_status add_edge(struct maker *m, uint32_t from, struct tfc_dedge e) {
  return tfc_array_push(&m->sources, from) && tfc_array_push(&m->edges, e) ? NULL
                                                                           : tfc_status_no_memory("planning a step");
}

// Returns the real producer of an output, behind nodes that only pass it on.
static struct tfc_output origin_of(const struct maker *m, struct tfc_output o) {
  while (!fed(m, o) && m->elided[o.node]) o = tfc_node_inputs(m->g, &m->g->nodes[o.node])[0];
  return o;
}

static bool hands_on(const struct maker *m, uint32_t id) {
  const struct tfc_node *n = &m->g->nodes[id];
  tfc_op_role role = tfc_node_role(n);
  bool passes = role == TFC_ROLE_IDENTITY || role == TFC_ROLE_PASSES || (n->def && n->def->flags & TFC_OP_LOOP_COND);
  return n->input_count == 1 && n->output_count == 1 && n->control_count == 0 && n->def && m->runs_in[id] == id &&
         passes && !tfc_dtype_is_ref(m->g->output_dtypes[n->output_begin]) &&
         !tfc_dtype_is_ref(tfc_output_dtype(m->g, tfc_node_inputs(m->g, n)[0]));
}

// Elides nodes that only pass their input on, unless a control edge leaves them (after a Switch it says which branch is
// live), or their input comes from an Enter or a NextIteration.
static void elide(struct maker *m) {
  uint32_t count = m->g->node_count;
  for (uint32_t i = 0; i < count; i++) m->elided[i] = m->b->ground->needed[i] && hands_on(m, i);
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_node *n = &m->g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(m->g, n);
    for (uint32_t k = n->input_count; m->b->ground->needed[i] && k < n->input_count + n->control_count; k++)
      m->elided[in[k].node] = false;
  }
  for (uint32_t i = 0; i < count; i++) { // every cycle contains a NextIteration
    if (!m->elided[i]) continue;
    struct tfc_output o = origin_of(m, (struct tfc_output){i, 0});
    const struct tfc_op_def *def = fed(m, o) ? NULL : def_of(&m->g->nodes[o.node]);
    if (def && def->flags & (TFC_OP_ENTER | TFC_OP_NEXT_ITERATION)) m->elided[i] = false;
  }
}

static uint32_t source_of(const struct maker *m, struct tfc_output o, int32_t *out_index) {
  o = origin_of(m, o);
  *out_index = o.index;
  if (!fed(m, o)) return m->of_node[o.node];
  *out_index = 0;
  return m->of_feed[m->b->ground->fed[m->g->nodes[o.node].output_begin + (uint32_t)o.index] - 1];
}

// Checks that every node that leads to another iteration, or out of a loop, comes after an Enter.
static tfc_status check_loops(const struct maker *m) {
  const struct tfc_graph *g = m->g;
  tfc_status s = NULL;
  uint32_t *stack = malloc(((size_t)g->node_count + 1) * sizeof *stack), depth = 0;
  bool *within = calloc((size_t)g->node_count + 1, sizeof *within);
  if (!stack || !within) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < g->node_count; i++)
    if (g->nodes[i].def && g->nodes[i].def->flags & TFC_OP_ENTER) within[i] = true, stack[depth++] = i;
  while (depth) {
    const uint32_t id = stack[--depth];
    for (uint32_t c = g->consumer_begin[id]; c < g->consumer_begin[id + 1]; c++)
      if (!within[g->consumers[c].node]) within[g->consumers[c].node] = true, stack[depth++] = g->consumers[c].node;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!m->b->ground->needed[i] || within[i] || !n->def || !(n->def->flags & TFC_OP_NEXT_ITERATION)) continue;
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) is outside of a loop: no Enter leads to it",
             TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  }
out:
  free(stack);
  free(within);
  return s;
}

static tfc_status make_nodes(struct maker *m) {
  const struct tfc_run_spec *spec = m->b->spec;
  uint32_t most = m->g->node_count + spec->feed_count + spec->fetch_count;
  m->d->nodes = TFC_ARENA_ARRAY(m->arena, struct tfc_dnode, most + 1);
  if (!m->d->nodes) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    m->of_feed[i] = m->d->node_count;
    m->d->nodes[m->d->node_count++] = (struct tfc_dnode){.kind = TFC_DNODE_FEED, .node = i, .output_count = 1};
  }
  for (uint32_t i = 0; i < m->g->node_count; i++) {
    m->of_node[i] = TFC_NONE;
    if (!m->b->ground->needed[i] || all_fed(m, &m->g->nodes[i]) || m->runs_in[i] != i || m->elided[i]) continue;
    if (!def_of(&m->g->nodes[i]))
      return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': there is no op '%.*s' and no function of that name",
                             TFC_STR_ARG(m->g->nodes[i].name), TFC_STR_ARG(m->g->nodes[i].op));
    m->of_node[i] = m->d->node_count;
    TFC_RETURN_IF_ERROR(make_node(m, i, &m->d->nodes[m->d->node_count]));
    m->d->node_count++;
  }
  for (uint32_t i = 0; i < spec->fetch_count; i++)
    m->d->nodes[m->d->node_count++] = (struct tfc_dnode){.kind = TFC_DNODE_FETCH, .node = i, .input_count = 1};
  return NULL;
}

static tfc_status control_edges(struct maker *m, uint32_t to, uint32_t of) {
  const struct tfc_node *node = &m->g->nodes[of];
  const struct tfc_output *in = tfc_node_inputs(m->g, node);
  for (uint32_t k = node->input_count; k < node->input_count + node->control_count; k++) {
    if (m->of_node[in[k].node] == TFC_NONE) continue; // a fed node: it is always ready
    TFC_RETURN_IF_ERROR(add_edge(m, m->of_node[in[k].node], (struct tfc_dedge){.to = to, .output = TFC_CONTROL}));
    m->d->nodes[to].control_count++;
  }
  return NULL;
}

static tfc_status make_waits(struct maker *m) {
  struct tfc_dynamic *d = m->d;
  uint32_t *after = TFC_ARENA_ARRAY(m->arena, uint32_t, d->node_count + 1);
  if (!after) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(tfc_dynamic_find_late(m->b, d, m->edges.data, m->sources.data, (uint32_t)m->edges.count, after));
  for (uint32_t i = 0; i < d->node_count; i++) {
    if (after[i] == TFC_NONE) continue;
    TFC_RETURN_IF_ERROR(add_edge(m, after[i], (struct tfc_dedge){.to = i, .output = TFC_CONTROL}));
    d->nodes[i].control_count++;
  }
  return NULL;
}

static tfc_status make_edges(struct maker *m) {
  struct tfc_dynamic *d = m->d;
  for (uint32_t i = 0; i < d->node_count; i++) {
    struct tfc_dnode *n = &d->nodes[i];
    if (n->kind == TFC_DNODE_FEED) continue;
    int32_t index;
    if (n->kind == TFC_DNODE_FETCH) {
      uint32_t from = source_of(m, m->b->spec->fetches[n->node], &index);
      TFC_RETURN_IF_ERROR(add_edge(m, from, (struct tfc_dedge){.to = i, .output = index}));
      continue;
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
      uint32_t from = source_of(m, input_of(m, n->node, k), &index);
      TFC_RETURN_IF_ERROR(add_edge(m, from, (struct tfc_dedge){.to = i, .output = index, .slot = k}));
    }
    TFC_RETURN_IF_ERROR(control_edges(m, i, n->node));
    if (m->product[n->node] != TFC_NONE) TFC_RETURN_IF_ERROR(control_edges(m, i, m->product[n->node]));
  }
  TFC_RETURN_IF_ERROR(make_waits(m));
  // Sorts the edges by the node that they come from; edges from one node keep their order.
  uint32_t *begin = TFC_ARENA_ARRAY(m->arena, uint32_t, d->node_count + 2);
  d->edges = TFC_ARENA_ARRAY(m->arena, struct tfc_dedge, m->edges.count + 1);
  if (!begin || !d->edges) return tfc_status_no_memory("planning a step");
  d->edge_count = (uint32_t)m->edges.count;
  for (size_t e = 0; e < m->edges.count; e++) begin[m->sources.data[e] + 2]++;
  for (uint32_t i = 1; i <= d->node_count; i++) begin[i + 1] += begin[i];
  for (size_t e = 0; e < m->edges.count; e++) d->edges[begin[m->sources.data[e] + 1]++] = m->edges.data[e];
  for (uint32_t i = 0; i < d->node_count; i++) {
    struct tfc_dnode *n = &d->nodes[i];
    n->edge_begin = begin[i];
    n->edge_end = begin[i + 1];
    for (uint32_t e = n->edge_end; e-- > n->edge_begin;) {
      bool last = d->edges[e].output >= 0;
      for (uint32_t later = e + 1; last && later < n->edge_end; later++)
        last = d->edges[later].output != d->edges[e].output;
      d->edges[e].last = last;
      if (n->kind == TFC_DNODE_MERGE && d->edges[e].output == 1) n->wants_index = true;
    }
  }
  return NULL;
}

// --- Frames ------------------------------------------------------------------------------------------------------
static tfc_status child_frame(struct maker *m, struct tfc_dnode *enter, uint32_t parent) {
  const struct tfc_node *n = &m->g->nodes[enter->node];
  tfc_str name = tfc_node_attr_string(m->g, n, "frame_name", "");
  bool found;
  const uint64_t hash = tfc_hash_bytes(name.data, name.size) + parent,
                 *first = tfc_intmap_put(&m->frame_of, hash, m->frames.count, &found);
  if (!first) return tfc_status_no_memory("planning a step");
  for (uint32_t f = (uint32_t)*first; found && f < m->frames.count; f++)
    if (f && m->frames.data[f].parent == parent && tfc_str_equal(m->frames.data[f].name, name)) {
      enter->enters = f;
      m->frames.data[f].enter_count++;
      return NULL;
    }
  int64_t parallel = tfc_node_attr_int(m->g, n, "parallel_iterations", 10);
  struct tfc_dframe made = {.parent = parent, .name = name, .enter_count = 1};
  made.parallel = parallel < 1 ? 1 : parallel > 1000 ? 1000 : (uint32_t)parallel;
  enter->enters = (uint32_t)m->frames.count;
  return tfc_array_push(&m->frames, made) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status find_frames(struct maker *m) {
  struct tfc_dynamic *d = m->d;
  tfc_status s = NULL;
  bool *seen = calloc(d->node_count + 1u, sizeof *seen);
  uint32_t *stack = malloc((d->node_count + 1u) * sizeof *stack), depth = 0;
  if (!seen || !stack) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (!tfc_array_push(&m->frames, (struct tfc_dframe){.parent = TFC_NONE, .parallel = 1}))
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].input_count + d->nodes[i].control_count == 0) seen[i] = true, stack[depth++] = i;
  while (depth) {
    struct tfc_dnode *n = &d->nodes[stack[--depth]];
    uint32_t to = n->frame;
    uint32_t flags = n->def ? n->def->flags : 0;
    if (flags & TFC_OP_ENTER) {
      TFC_TRY(s, child_frame(m, n, n->frame));
      to = n->enters;
    } else if (flags & TFC_OP_EXIT) {
      to = m->frames.data[n->frame].parent;
      if (to == TFC_NONE)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' (Exit) is in no frame", TFC_STR_ARG(m->g->nodes[n->node].name));
    }
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
      uint32_t next = d->edges[e].to;
      if (seen[next]) {
        if (d->nodes[next].frame == to) continue;
        const struct tfc_dnode *x = &d->nodes[next];
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' has inputs from two frames ('%.*s' and '%.*s')",
                 TFC_STR_ARG(x->kind == TFC_DNODE_FETCH ? TFC_STR("fetch") : m->g->nodes[x->node].name),
                 TFC_STR_ARG(m->frames.data[x->frame].name), TFC_STR_ARG(m->frames.data[to].name));
      }
      seen[next] = true;
      d->nodes[next].frame = to;
      if (d->nodes[next].kind == TFC_DNODE_FETCH && to != 0)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s' is inside of the loop '%.*s' and cannot be fetched",
                 TFC_STR_ARG(m->g->nodes[m->b->spec->fetches[d->nodes[next].node].node].name),
                 TFC_STR_ARG(m->frames.data[to].name));
      stack[depth++] = next;
    }
  }
  for (uint32_t i = 0; i < d->node_count; i++)
    if (!seen[i] && d->nodes[i].kind != TFC_DNODE_FETCH)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) is on a cycle that nothing enters",
               TFC_STR_ARG(m->g->nodes[d->nodes[i].node].name), TFC_STR_ARG(m->g->nodes[d->nodes[i].node].op));
out:
  free(seen);
  free(stack);
  return s;
}

static tfc_status lay_out_frames(struct maker *m) {
  struct tfc_dynamic *d = m->d;
  d->frame_count = (uint32_t)m->frames.count;
  d->frames = TFC_ARENA_ARRAY(m->arena, struct tfc_dframe, d->frame_count);
  d->roots = TFC_ARENA_ARRAY(m->arena, uint32_t, d->node_count + 1);
  if (!d->frames || !d->roots) return tfc_status_no_memory("planning a step");
  memcpy(d->frames, m->frames.data, d->frame_count * sizeof *d->frames);
  for (uint32_t f = 0; f < d->frame_count; f++)
    while (d->frames[f].ring_mask < d->frames[f].parallel) d->frames[f].ring_mask = 2 * d->frames[f].ring_mask + 1;
  for (uint32_t i = 0; i < d->node_count; i++) {
    struct tfc_dframe *f = &d->frames[d->nodes[i].frame];
    d->nodes[i].local = f->node_count++;
    if (d->nodes[i].frame && d->nodes[i].node_state) d->nodes[i].ordered = ++f->ordered_count;
    d->nodes[i].input_begin = f->value_count;
    f->value_count += d->nodes[i].input_count;
  }
  for (uint32_t e = 0; e < d->edge_count; e++)
    d->edges[e].value = d->nodes[d->edges[e].to].input_begin + d->edges[e].slot;
  for (uint32_t f = 0; f < d->frame_count; f++) {
    d->frames[f].initial = TFC_ARENA_ARRAY(m->arena, uint32_t, d->frames[f].node_count + 1);
    if (!d->frames[f].initial) return tfc_status_no_memory("planning a step");
  }
  for (uint32_t i = 0; i < d->node_count; i++) {
    const struct tfc_dnode *n = &d->nodes[i];
    uint32_t *pending = &d->frames[n->frame].initial[n->local];
    *pending = n->kind == TFC_DNODE_MERGE ? 1 + 2 * n->control_count : n->input_count + n->control_count;
    if (n->input_count + n->control_count == 0) d->roots[d->root_count++] = i;
  }
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
static tfc_status prepare_direct(struct maker *m, struct tfc_dnode *n, const struct tfc_shape *shapes,
                                 const tfc_dtype *dtypes, const struct tfc_tensor *const *values) {
  const struct tfc_node *node = &m->g->nodes[n->node];
  struct tfc_prepare_ctx ctx = {.graph = m->g,
                                .node = node,
                                .def = n->def,
                                .input_shapes = shapes,
                                .output_shapes = shapes + n->input_count,
                                .input_dtypes = dtypes,
                                .input_values = values,
                                .arena = m->arena};
  if (!n->def->kernel)
    return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %s has no kernel", TFC_STR_ARG(node->name),
                           n->def->name);
  tfc_status s = tfc_kernel_prepare(&ctx);
  if (s) return tfc_status_annotate(s, "node '%.*s' (%s)", TFC_STR_ARG(node->name), n->def->name);
  n->state = ctx.state;
  n->release = ctx.release;
  return NULL;
}

static tfc_status prepare(struct maker *m) {
  struct tfc_dynamic *d = m->d;
  struct tfc_session *session = m->plan->session;
  uint32_t devices = session->device_count, used = 0;
  d->segments = TFC_ARENA_ARRAY(m->arena, struct tfc_segment, devices);
  d->prepared = TFC_ARENA_ARRAY(m->arena, struct tfc_prepared *, devices);
  if (!d->segments || !d->prepared) return tfc_status_no_memory("planning a step");
  for (uint32_t k = 0; k < devices; k++) {
    d->segments[k] = (struct tfc_segment){.graph = m->g,
                                          .op_count = m->op_count[k],
                                          .rounding = session->options.execution.rewrites == TFC_REWRITES_ALL &&
                                                      session->device_count == 1};
    d->segments[k].ops = TFC_ARENA_ARRAY(m->arena, struct tfc_segment_op, m->op_count[k] + 1);
    if (!d->segments[k].ops) return tfc_status_no_memory("planning a step");
    used += m->op_count[k] > 0;
  }
  d->inline_only = used <= 1;
  for (uint32_t i = 0; i < d->node_count; i++) {
    struct tfc_dnode *n = &d->nodes[i];
    if (n->kind != TFC_DNODE_OP) continue;
    const struct tfc_node *node = &m->g->nodes[n->node];
    struct tfc_shape *shapes = TFC_ARENA_ARRAY(m->arena, struct tfc_shape, n->input_count + n->output_count + 1);
    tfc_dtype *dtypes = TFC_ARENA_ARRAY(m->arena, tfc_dtype, n->input_count + 1);
    const struct tfc_tensor **values = TFC_ARENA_ARRAY(m->arena, const struct tfc_tensor *, n->input_count + 1);
    if (!shapes || !dtypes || !values) return tfc_status_no_memory("planning a step");
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output o = input_of(m, n->node, k);
      uint32_t number = m->g->nodes[o.node].output_begin + (uint32_t)o.index;
      shapes[k] = m->b->ground->shapes.shapes[number];
      dtypes[k] = tfc_dtype_base(tfc_output_dtype(m->g, o));
      if (!fed(m, o)) values[k] = m->b->ground->shapes.values[number];
    }
    for (uint32_t k = 0; k < n->output_count; k++)
      shapes[n->input_count + k] = m->b->ground->shapes.shapes[node->output_begin + k];
    if (n->direct) {
      TFC_RETURN_IF_ERROR(prepare_direct(m, n, shapes, dtypes, values));
      continue;
    }
    struct tfc_segment_op *op = &d->segments[n->device].ops[n->kernel];
    const struct tfc_chain_finish *finish = NULL;
    uint32_t product = m->product[n->node];
    if (m->chain[n->node]) product = tfc_dynamic_chain_product(m->chain[n->node], &finish);
    if (finish) shapes[n->input_count] = finish->before;
    *op = (struct tfc_segment_op){.node = product == TFC_NONE ? n->node : product,
                                  .def = n->def,
                                  .input_count = n->input_count,
                                  .output_count = n->output_count,
                                  .host_inputs = n->host.inputs,
                                  .host_outputs = n->host.outputs,
                                  .on_host = n->host.all,
                                  .input_shapes = shapes,
                                  .output_shapes = shapes + n->input_count,
                                  .input_dtypes = dtypes,
                                  .input_values = values,
                                  .prepared = m->chain[n->node] && !finish,
                                  .state = m->chain[n->node],
                                  .finish = finish};
  }
  for (uint32_t k = 0; k < devices; k++)
    if (m->op_count[k]) {
      struct tfc_device *device = session->devices[k];
      TFC_RETURN_IF_ERROR(device->driver->prepare(device, &d->segments[k], &d->prepared[k]));
    }
  return NULL;
}

// Checks that the operations that write a variable are on its device.
static tfc_status check_places(struct maker *m) {
  const struct tfc_dynamic *d = m->d;
  if (!m->b->spec->placement) return NULL;
  for (uint32_t i = 0; i < d->node_count; i++) {
    const struct tfc_dnode *n = &d->nodes[i];
    if (n->kind != TFC_DNODE_OP || !(n->def->flags & TFC_OP_UPDATE)) continue;
    for (uint32_t k = 0; k < n->input_count; k++) {
      struct tfc_output o = input_of(m, n->node, k);
      uint32_t from = fed(m, o) || m->elided[o.node] ? TFC_NONE : m->of_node[o.node];
      if (from == TFC_NONE || !d->nodes[from].variable || d->nodes[from].device == n->device) continue;
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "node '%.*s' (%.*s) uses the variable of node '%.*s' and has to be on its device: they "
                             "are placed on %s and %s",
                             TFC_STR_ARG(m->g->nodes[n->node].name), TFC_STR_ARG(m->g->nodes[n->node].op),
                             TFC_STR_ARG(m->g->nodes[o.node].name), m->plan->session->devices[n->device]->info.name,
                             m->plan->session->devices[d->nodes[from].device]->info.name);
    }
  }
  return NULL;
}

static tfc_status make_info(struct maker *m) {
  struct tfc_plan_info *info = &m->plan->info;
  uint32_t devices = m->plan->session->device_count;
  struct tfc_plan_op *ops = TFC_ARENA_ARRAY(m->arena, struct tfc_plan_op, m->d->node_count + 1);
  uint64_t *peaks = TFC_ARENA_ARRAY(m->arena, uint64_t, devices);
  const uint32_t variable_count = (uint32_t)m->plan->ir.variables.count;
  struct tfc_plan_variable *variables = TFC_ARENA_ARRAY(m->arena, struct tfc_plan_variable, variable_count + 1);
  if (!ops || !peaks || !variables) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < m->d->node_count; i++) {
    const struct tfc_dnode *n = &m->d->nodes[i];
    if (n->kind == TFC_DNODE_OP) ops[info->op_count++] = (struct tfc_plan_op){n->node, n->device, n->kernel};
  }
  for (size_t i = 0; i < m->plan->ir.variables.count; i++) {
    const struct tfc_ir_variable *v = &m->plan->ir.variables.data[i];
    size_t bytes = 0;
    if (tfc_shape_is_static(&v->variable->shape))
      tfc_status_free(tfc_tensor_bytes(v->variable->dtype, &v->variable->shape, &bytes));
    if (!tfc_variable_beside(m->plan->session->devices[v->device], v->variable->dtype)) peaks[v->device] += bytes;
    variables[i] = (struct tfc_plan_variable){v->node, v->device, bytes};
  }
  info->ops = ops;
  info->variables = variables;
  info->variable_count = variable_count;
  info->runs_in = m->runs_in;
  info->peak_bytes = peaks;
  info->device_count = devices;
  return NULL;
}

tfc_status tfc_plan_make_dynamic(struct tfc_build *b, struct tfc_plan *plan) {
  tfc_status s = NULL;
  struct maker m = {.b = b, .plan = plan, .g = b->graph, .arena = &plan->arena};
  m.d = plan->dynamic = TFC_ARENA_NEW(&plan->arena, struct tfc_dynamic);
  m.of_node = malloc((b->graph->node_count + 1u) * sizeof *m.of_node);
  m.of_feed = malloc((b->spec->feed_count + 1u) * sizeof *m.of_feed);
  m.op_count = calloc(plan->session->device_count + 1u, sizeof *m.op_count);
  if (!m.d || !m.of_node || !m.of_feed || !m.op_count) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  plan->fetch_count = b->spec->fetch_count;
  struct tfc_output *fetches = TFC_ARENA_ARRAY(&plan->arena, struct tfc_output, b->spec->fetch_count + 1);
  if (!fetches) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < b->spec->fetch_count; i++) fetches[i] = b->spec->fetches[i];
  plan->fetch_outputs = fetches;
  TFC_TRY(s, tfc_dynamic_find_sums(b, plan->session, m.arena, &m.product));
  m.runs_in = TFC_ARENA_ARRAY(m.arena, uint32_t, m.g->node_count + 1);
  if (!m.runs_in) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < m.g->node_count; i++) m.runs_in[i] = i;
  for (uint32_t i = 0; i < m.g->node_count; i++)
    if (m.product[i] != TFC_NONE) m.runs_in[m.product[i]] = i;
  m.elided = calloc(m.g->node_count + 1u, sizeof *m.elided);
  if (!m.elided) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  elide(&m);
  m.chain = TFC_ARENA_ARRAY(m.arena, struct tfc_dynamic_chain *, m.g->node_count + 1);
  if (!m.chain) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (!plan->session->options.no_rewrites)
    TFC_TRY(s, tfc_dynamic_find_chains(b, plan->session, m.product, m.elided, m.runs_in, m.arena, m.chain));
  if (m.g->has_frames) TFC_TRY(s, check_loops(&m));
  TFC_TRY(s, make_nodes(&m));
  TFC_TRY(s, make_edges(&m));
  TFC_TRY(s, check_places(&m));
  TFC_TRY(s, find_frames(&m));
  TFC_TRY(s, lay_out_frames(&m));
  if (!plan->session->options.no_rewrites) TFC_TRY(s, tfc_dynamic_find_unread(m.d, m.g, plan->session));
  if (!plan->session->options.no_rewrites) tfc_dynamic_find_unread_lists(m.d, m.g, plan->session);
  TFC_TRY(s, prepare(&m));
  TFC_TRY(s, make_info(&m));
  TFC_TRY(s, tfc_dynamic_find_transfers(b, plan));
  if (m.d->inline_only) TFC_TRY(s, tfc_dynamic_find_loops(m.d, m.arena)); // copies nodes as they are now
  // Products that wait hold memory.
  if (!tfc_session_is_limited(plan->session)) TFC_TRY(s, tfc_dynamic_find_loop_sums(m.d, m.g, m.arena));
out:
  free(m.elided);
  free(m.of_node);
  free(m.of_feed);
  free(m.op_count);
  tfc_array_free(&m.edges);
  tfc_array_free(&m.sources);
  tfc_array_free(&m.frames);
  tfc_intmap_deinit(&m.frame_of);
  return s;
}

void tfc_plan_dynamic_deinit(struct tfc_plan *plan) {
  struct tfc_dynamic *d = plan->dynamic;
  for (uint32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].release) d->nodes[i].release(d->nodes[i].state);
  for (uint32_t k = 0; d->prepared && k < plan->session->device_count; k++) {
    struct tfc_device *device = plan->session->devices[k];
    if (!d->prepared[k]) continue;
    tfc_status_free(device->driver->synchronize(device));
    device->driver->release(device, d->prepared[k]);
  }
}
