// Finds the frames that run iteration by iteration. In these loops only the nodes after the condition can be dead, and
// all of them at once: loops with one condition, whose variables are Merges of an Enter and a NextIteration, each
// followed by a Switch, and with no inner loop, branch or operation that waits. An iteration is then a list of nodes,
// the same each time: first the nodes before the condition, then the body. dynamic/iterations.c runs it.
#include <stdlib.h>

#include "runtime/base/map.h"
#include "runtime/exec/dynamic/run.h"

typedef enum turn_part { BEFORE, BODY, LEAVING } turn_part; // of an iteration
struct finder {
  struct tfc_dynamic *d;
  uint32_t *source; // [edges] dnode that the edge leaves
  uint32_t *waits;  // [nodes] how many edges inside the frame have a producer that is not yet in the order
  turn_part *part;  // [nodes]
  bool *early;      // [nodes] whether an input was computed before the condition
  bool *skipped;    // [nodes] whether the node only hands a value on, and has no place in the loops' lists
  uint32_t *stack;  // scratch: [edges + nodes]
  TFC_ARRAY(struct tfc_dedge) added; // edges of the nodes in the loops' lists
  uint32_t *order;                   // the frame's nodes, each after its producers
  uint32_t order_count, node_count;
};

static uint32_t flags_of(const struct tfc_dnode *n) {
  return n->def ? n->def->flags : 0;
}
static bool is_next(const struct tfc_dnode *n) {
  return flags_of(n) & TFC_OP_NEXT_ITERATION;
}
static bool is_enter(const struct tfc_dnode *n) {
  return flags_of(n) & TFC_OP_ENTER;
}

// Whether a node may be in such a loop; its edges are checked elsewhere.
static bool may_be_in(const struct tfc_dnode *n) {
  if (is_enter(n) || n->is_async || n->keeps_reference || n->input_count > TFC_RUN_FEW || n->output_count > TFC_RUN_FEW)
    return false;
  switch (n->kind) {
  case TFC_DNODE_SWITCH: return n->input_count == 2 && n->output_count == 2;
  case TFC_DNODE_MERGE: return n->input_count == 2 && n->control_count == 0 && !n->wants_index;
  case TFC_DNODE_OP:
  case TFC_DNODE_PASS:
  case TFC_DNODE_SPREAD:
  case TFC_DNODE_CONST:
  case TFC_DNODE_NONE:
  case TFC_DNODE_HANDLE: return true;
  default: return false;
  }
}

// Checks an edge inside frame `f` or into it. *out: the part of the iteration that the consumer belongs to, if the edge
// decides it.
static bool edge_fits(const struct finder *x, uint32_t f, uint32_t e, turn_part *out) {
  const struct tfc_dedge *edge = &x->d->edges[e];
  const struct tfc_dnode *from = &x->d->nodes[x->source[e]], *to = &x->d->nodes[edge->to];
  *out = BEFORE;
  if (is_enter(from)) {
    if (from->keeps_reference || edge->output < 0) return false;
    return from->is_constant ? to->kind != TFC_DNODE_MERGE : to->kind == TFC_DNODE_MERGE;
  }
  if (from->frame != f) return false;
  if (is_next(from)) return to->kind == TFC_DNODE_MERGE && edge->output == 0;
  if (to->kind == TFC_DNODE_MERGE || from->is_exit) return false;
  *out = from->is_trigger ? BEFORE : x->part[x->source[e]];
  if (from->kind == TFC_DNODE_SWITCH) {
    if (edge->output < 0) return false;
    *out = edge->output == 1 ? BODY : LEAVING;
  }
  return true;
}

// Sorts the nodes of frame `f` topologically and finds for each to which part of the loop it belongs (turn_part). Nodes
// that are ready wait on a stack: the one that became ready last comes first, so that a value is read soon after it is
// computed. False: the frame does not have the form of a loop.
static bool put_in_order(struct finder *x, uint32_t f, const uint32_t *nodes, uint32_t *stack) {
  const struct tfc_dynamic *d = x->d;
  uint32_t depth = 0;
  x->order_count = 0;
  for (uint32_t i = x->node_count; i-- > 0;) {
    const struct tfc_dnode *n = &d->nodes[nodes[i]];
    x->part[nodes[i]] = BEFORE;
    if (x->waits[nodes[i]] == 0 || n->kind == TFC_DNODE_MERGE) stack[depth++] = nodes[i];
  }
  while (depth) {
    uint32_t id = stack[--depth];
    const struct tfc_dnode *n = &d->nodes[id];
    x->order[x->order_count++] = id;
    if (n->is_exit || is_next(n)) continue;
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
      turn_part part;
      uint32_t to = d->edges[e].to;
      if (!edge_fits(x, f, e, &part)) return false;
      if (part > x->part[to]) x->part[to] = part;
      if (--x->waits[to] == 0) stack[depth++] = to;
    }
  }
  return x->order_count == x->node_count;
}

// Checks that there is one condition, computed before the body; that the loop is left by Exits of Switches; and that
// the rest is in the body.
static bool parts_fit(const struct finder *x, uint32_t f, uint32_t *out_condition) {
  const struct tfc_dynamic *d = x->d;
  uint32_t condition = TFC_NONE, nexts = 0, merges = 0;
  int32_t output = 0;
  for (uint32_t e = 0; e < d->edge_count; e++) {
    const struct tfc_dnode *from = &d->nodes[x->source[e]], *to = &d->nodes[d->edges[e].to];
    if (to->frame != f) continue;
    turn_part part = x->part[d->edges[e].to];
    nexts += to->kind == TFC_DNODE_MERGE && is_next(from);
    if (from->is_trigger && part != BODY) return false;
    if (to->is_exit && (d->edges[e].output != 0 || from->kind != TFC_DNODE_SWITCH || from->frame != f)) return false;
    if (to->kind != TFC_DNODE_SWITCH) continue;
    if (d->edges[e].output < 0 || part != BEFORE) return false;
    if (d->edges[e].slot != 1) continue;
    if (from->frame != f) return false;
    if (condition != TFC_NONE && (condition != x->source[e] || output != d->edges[e].output)) return false;
    condition = x->source[e], output = d->edges[e].output;
    *out_condition = d->edges[e].to;
  }
  for (uint32_t i = 0; i < x->node_count; i++) {
    const struct tfc_dnode *n = &d->nodes[x->order[i]];
    turn_part part = x->part[x->order[i]];
    merges += n->kind == TFC_DNODE_MERGE;
    if (n->is_exit ? n->control_count > 0 || part != LEAVING : part == LEAVING) return false;
    if (is_next(n) && part != BODY) return false;
  }
  return condition != TFC_NONE && nexts == merges;
}

static void keep_input(struct tfc_dnode *n, uint32_t slot) {
  n->kept_inputs |= 1u << slot;
  n->reusable_inputs &= ~n->kept_inputs;
}

// Whether the node does nothing but hand its only input to its readers.
static bool only_passes(const struct tfc_dnode *n) {
  return n->kind == TFC_DNODE_PASS && !n->is_exit && !is_enter(n) && !n->is_trigger && n->input_count == 1 &&
         !n->kept_inputs;
}

// Finds the nodes of the frame that the lists leave out. A NextIteration stays if its value was computed before the
// condition (control edges hold it back until the body): without it the value would be at its Merge while that has not
// taken the last iteration's yet.
static void find_skipped(struct finder *x) {
  const struct tfc_dynamic *d = x->d;
  for (uint32_t i = 0; i < x->order_count; i++) {
    const uint32_t id = x->order[i];
    const struct tfc_dnode *n = &d->nodes[id];
    x->skipped[id] = only_passes(n) && !(is_next(n) && x->early[id]);
    const bool early = x->skipped[id] ? x->early[id] : x->part[id] == BEFORE && n->kind != TFC_DNODE_SWITCH;
    for (uint32_t e = n->edge_begin; e < n->edge_end && !n->is_exit && !is_next(n); e++)
      if (d->edges[e].output >= 0 && early) x->early[d->edges[e].to] = true;
  }
}

// Gives a node of a list edges of its own, to the readers beyond nodes that only pass a value on. The lists' order says
// what runs after what, so control edges are left out.
static tfc_status add_edges(struct finder *x, struct tfc_dnode *n) {
  const struct tfc_dynamic *d = x->d;
  const size_t begin = x->added.count;
  for (uint32_t own = n->edge_begin; own < n->edge_end; own++) {
    uint32_t depth = 0;
    if (d->edges[own].output < 0) continue;
    x->stack[depth++] = own;
    while (depth) {
      struct tfc_dedge edge = d->edges[x->stack[--depth]];
      const struct tfc_dnode *to = &d->nodes[edge.to];
      for (uint32_t e = to->edge_begin; x->skipped[edge.to] && e < to->edge_end; e++)
        if (d->edges[e].output == 0) x->stack[depth++] = e;
      edge.output = d->edges[own].output;
      if (!x->skipped[edge.to] && !tfc_array_push(&x->added, edge)) return tfc_status_no_memory("planning a step");
    }
  }
  for (size_t i = begin; i < x->added.count; i++) {
    bool last = true;
    for (size_t later = i + 1; last && later < x->added.count; later++)
      last = x->added.data[later].output != x->added.data[i].output;
    x->added.data[i].last = last;
  }
  n->edge_begin = d->edge_count + (uint32_t)begin;
  n->edge_end = d->edge_count + (uint32_t)x->added.count;
  return NULL;
}

static tfc_status make_loop(struct finder *x, uint32_t f, uint32_t condition, struct tfc_arena *arena) {
  struct tfc_dynamic *d = x->d;
  struct tfc_dloop *loop = TFC_ARENA_NEW(arena, struct tfc_dloop);
  struct tfc_dnode *lists = TFC_ARENA_ARRAY(arena, struct tfc_dnode, 2 * (size_t)x->node_count + 1);
  if (!loop || !lists) return tfc_status_no_memory("planning a step");
  loop->condition = condition;
  loop->start = (struct tfc_dnode){.kind = TFC_DNODE_LOOP, .frame = f};
  for (uint32_t e = 0; e < d->edge_count; e++)
    if (is_enter(&d->nodes[x->source[e]]) && d->nodes[d->edges[e].to].frame == f && d->nodes[x->source[e]].is_constant)
      keep_input(&d->nodes[d->edges[e].to], d->edges[e].slot);
  find_skipped(x);
  struct tfc_dnode **to[] = {&loop->before, &loop->body, &loop->leaving};
  uint32_t *count[] = {&loop->before_count, &loop->body_count, &loop->leaving_count};
  for (turn_part part = BEFORE; part <= LEAVING; part++) {
    *to[part] = lists;
    for (uint32_t i = 0; i < x->order_count; i++) {
      const struct tfc_dnode *n = &d->nodes[x->order[i]];
      bool is_switch = n->kind == TFC_DNODE_SWITCH, leaves = false;
      for (uint32_t e = n->edge_begin; is_switch && e < n->edge_end; e++) leaves |= d->edges[e].output == 0;
      bool here = is_switch ? part == BODY || (part == LEAVING && leaves) : x->part[x->order[i]] == part;
      if (!here || n->kind == TFC_DNODE_NONE || x->skipped[x->order[i]]) continue;
      *lists = *n;
      if (!n->is_exit) TFC_RETURN_IF_ERROR(add_edges(x, lists)); // an Exit leaves the frame as in ready order
      lists++;
    }
    *count[part] = (uint32_t)(lists - *to[part]);
  }
  d->frames[f].loop = loop;
  return NULL;
}

// Puts the edges of the lists behind the graph's.
static tfc_status join_edges(struct finder *x, struct tfc_arena *arena) {
  struct tfc_dynamic *d = x->d;
  if (!x->added.count) return NULL;
  struct tfc_dedge *all = TFC_ARENA_ARRAY(arena, struct tfc_dedge, d->edge_count + x->added.count);
  if (!all) return tfc_status_no_memory("planning a step");
  if (d->edge_count) memcpy(all, d->edges, d->edge_count * sizeof *all);
  memcpy(all + d->edge_count, x->added.data, x->added.count * sizeof *all);
  d->edges = all;
  return NULL;
}

// Whether an input of the frame depends, outside of it, on one of the frame's outputs. Then the frame begins before all
// its inputs have entered.
static bool feeds_itself(const struct finder *x, uint32_t f, bool *seen, uint32_t *stack) {
  const struct tfc_dynamic *d = x->d;
  uint32_t depth = 0;
  memset(seen, 0, d->node_count * sizeof *seen);
  for (uint32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].frame == f && d->nodes[i].is_exit) seen[i] = true, stack[depth++] = i;
  while (depth) {
    const struct tfc_dnode *n = &d->nodes[stack[--depth]];
    // It leads to another iteration of the surrounding frame, which is a new instance of this frame.
    if (is_next(n)) continue;
    if (is_enter(n) && n->enters == f) return true;
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++)
      if (!seen[d->edges[e].to]) seen[d->edges[e].to] = true, stack[depth++] = d->edges[e].to;
  }
  return false;
}

// Whether other threads may run other operations while this node runs: it changes nothing outside of its loop.
static bool keeps_apart(const struct tfc_dnode *n) {
  const uint32_t shared = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_FUNCTIONAL | TFC_OP_SAVES | TFC_OP_FILES;
  const bool reads = n->def && n->def->role == TFC_ROLE_READ;
  return (reads || !(flags_of(n) & shared)) && !n->ordered && !n->node_state && !n->reference_inputs;
}
static bool all_keep_apart(const struct tfc_dloop *loop) {
  for (uint32_t i = 0; i < loop->before_count; i++)
    if (!keeps_apart(&loop->before[i])) return false;
  for (uint32_t i = 0; i < loop->body_count; i++)
    if (!keeps_apart(&loop->body[i])) return false;
  return true;
}
static bool same_ops(const struct tfc_dnode *a, const struct tfc_dnode *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i].kind != b[i].kind || a[i].def != b[i].def) return false;
  return true;
}
static bool are_alike(const struct tfc_dloop *a, const struct tfc_dloop *b) {
  return a->before_count == b->before_count && a->body_count == b->body_count &&
         same_ops(a->before, b->before, a->before_count) && same_ops(a->body, b->body, a->body_count);
}

static uint64_t hash_ops(uint64_t hash, const struct tfc_dnode *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t op[] = {hash, (uint64_t)list[i].kind, (uint64_t)(uintptr_t)list[i].def};
    hash = tfc_hash_bytes(op, sizeof op);
  }
  return hash;
}
struct alike {
  uint64_t hash; // of the operations
  struct tfc_dloop *loop;
};
static int by_hash(const void *a, const void *b) {
  const uint64_t p = ((const struct alike *)a)->hash, q = ((const struct alike *)b)->hash;
  return (p > q) - (p < q);
}

// Counts for each loop those of the same operations, with itself, such as the two directions of a recurrent layer.
static tfc_status count_alike(struct tfc_dynamic *d) {
  size_t count = 0;
  struct alike *loops = calloc(d->frame_count + 1u, sizeof *loops);
  if (!loops) return tfc_status_no_memory("planning a step");
  for (uint32_t f = 1; f < d->frame_count; f++) {
    struct tfc_dloop *loop = d->frames[f].loop;
    if (!loop || !all_keep_apart(loop)) continue;
    loops[count].hash = hash_ops(hash_ops(0, loop->before, loop->before_count), loop->body, loop->body_count);
    loops[count++].loop = loop;
  }
  qsort(loops, count, sizeof *loops, by_hash);
  for (size_t i = 0, end; i < count; i = end) {
    uint32_t alike = 0;
    for (end = i; end < count && loops[end].hash == loops[i].hash; end++)
      alike += are_alike(loops[end].loop, loops[i].loop);
    for (size_t k = i; k < end; k++) // others have the same hash by chance, and run alone
      if (are_alike(loops[k].loop, loops[i].loop)) loops[k].loop->alike = alike;
  }
  free(loops);
  return NULL;
}

tfc_status tfc_dynamic_find_loops(struct tfc_dynamic *d, struct tfc_arena *arena) {
  tfc_status s = NULL;
  struct finder x = {.d = d};
  const size_t most = d->node_count + 1u;
  x.source = malloc((d->edge_count + 1u) * sizeof *x.source);
  x.waits = calloc(most, sizeof *x.waits);
  x.part = calloc(most, sizeof *x.part);
  x.order = malloc(most * sizeof *x.order);
  x.early = calloc(most, sizeof *x.early);
  x.skipped = calloc(most, sizeof *x.skipped);
  x.stack = malloc((d->edge_count + most) * sizeof *x.stack);
  uint32_t *nodes = malloc(most * sizeof *nodes);
  bool *seen = malloc(most * sizeof *seen);
  if (!x.source || !x.waits || !x.part || !x.early || !x.skipped || !x.order || !nodes || !x.stack || !seen)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < d->node_count; i++)
    for (uint32_t e = d->nodes[i].edge_begin; e < d->nodes[i].edge_end; e++) x.source[e] = i;
  for (uint32_t f = 1; f < d->frame_count; f++) {
    bool fits = true;
    uint32_t condition = 0;
    x.node_count = 0;
    for (uint32_t i = 0; i < d->node_count; i++)
      if (d->nodes[i].frame == f) nodes[x.node_count++] = i, fits = fits && may_be_in(&d->nodes[i]), x.waits[i] = 0;
    for (uint32_t e = 0; e < d->edge_count && fits; e++) {
      turn_part part;
      uint32_t to = d->edges[e].to;
      if (d->nodes[to].frame != f) continue;
      fits = edge_fits(&x, f, e, &part);
      if (!is_enter(&d->nodes[x.source[e]])) x.waits[to]++;
    }
    if (!fits || !put_in_order(&x, f, nodes, x.stack) || !parts_fit(&x, f, &condition)) continue;
    if (feeds_itself(&x, f, seen, x.stack)) continue;
    TFC_TRY(s, make_loop(&x, f, condition, arena));
  }
  TFC_TRY(s, join_edges(&x, arena));
  TFC_TRY(s, count_alike(d));
out:
  free(x.source);
  free(x.waits);
  free(x.part);
  free(x.early);
  free(x.skipped);
  free(x.order);
  free(nodes);
  free(x.stack);
  free(seen);
  tfc_array_free(&x.added);
  return s;
}
