// One walk in topological order: a node is in the deepest frame of its inputs and has their guards. An Enter leads one
// frame deeper, an Exit one back; a Switch adds a guard; a Merge has only the guards that all its inputs have.
#include "runtime/pass/frames.h"

#include <stdlib.h>

#include "runtime/base/array.h"

enum { most_guards = 64 };

struct finder {
  const struct tfc_graph *g;
  struct tfc_frames *out;
  TFC_ARRAY(struct tfc_frame) frames;
  struct tfc_guards *of_frame; // [frame capacity]: the guards that the Enters of a frame have in the surrounding frame
  size_t frame_capacity;
  uint32_t *depth; // by frame
};

static bool has_flag(const struct tfc_graph *g, uint32_t id, uint32_t flag) {
  return g->nodes[id].def && g->nodes[id].def->flags & flag;
}

bool tfc_frames_is_loop_switch(const struct tfc_graph *g, const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_SWITCH && n->input_count == 2 &&
         has_flag(g, tfc_node_inputs(g, n)[1].node, TFC_OP_LOOP_COND);
}

bool tfc_frames_is_loop_merge(const struct tfc_graph *g, const struct tfc_node *n) {
  if (!n->def || !(n->def->flags & TFC_OP_MERGE)) return false;
  for (uint32_t k = 0; k < n->input_count; k++)
    if (has_flag(g, tfc_node_inputs(g, n)[k].node, TFC_OP_NEXT_ITERATION)) return true;
  return false;
}

// --- Sets of guards ------------------------------------------------------------------------------------------------
static bool same_guard(const struct tfc_guard *a, const struct tfc_guard *b) {
  return a->pred.node == b->pred.node && a->pred.index == b->pred.index && a->side == b->side;
}

static bool contains(const struct tfc_guards *set, const struct tfc_guard *one) {
  for (uint32_t i = 0; i < set->count; i++)
    if (same_guard(&set->items[i], one)) return true;
  return false;
}

static bool includes(const struct tfc_guards *set, const struct tfc_guards *all) {
  for (uint32_t i = 0; i < all->count; i++)
    if (!contains(set, &all->items[i])) return false;
  return true;
}

static bool unite(struct finder *f, struct tfc_guards *into, const struct tfc_guards *more) {
  if (includes(into, more)) return true;
  if (includes(more, into)) {
    *into = *more;
    return true;
  }
  struct tfc_guard *items = TFC_ARENA_ARRAY(&f->out->arena, struct tfc_guard, (size_t)into->count + more->count);
  if (!items) return false;
  uint32_t n = into->count;
  memcpy(items, into->items, n * sizeof *items);
  for (uint32_t i = 0; i < more->count && n < most_guards; i++)
    if (!contains(into, &more->items[i])) items[n++] = more->items[i];
  *into = (struct tfc_guards){items, n};
  return true;
}

static bool intersect(struct finder *f, struct tfc_guards *into, const struct tfc_guards *other) {
  if (includes(other, into)) return true;
  struct tfc_guard *items = TFC_ARENA_ARRAY(&f->out->arena, struct tfc_guard, (size_t)into->count + 1);
  if (!items) return false;
  uint32_t n = 0;
  for (uint32_t i = 0; i < into->count; i++)
    if (contains(other, &into->items[i])) items[n++] = into->items[i];
  *into = (struct tfc_guards){items, n};
  return true;
}

// --- Visiting the nodes in topological order -----------------------------------------------------------------------
static struct tfc_guards needs(const struct finder *f, struct tfc_output o) {
  return f->out
      ->guards[o.index < 0 ? f->g->output_total + o.node : f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}

// Returns the predicate itself, behind any Identity, so that all its users have the same one.
static struct tfc_output predicate(const struct tfc_graph *g, struct tfc_output o) {
  while (tfc_node_role(&g->nodes[o.node]) == TFC_ROLE_IDENTITY) o = tfc_node_inputs(g, &g->nodes[o.node])[0];
  return o;
}

static tfc_status enter(struct finder *f, uint32_t id, uint32_t parent, const struct tfc_guards *around,
                        uint32_t *out) {
  const struct tfc_node *n = &f->g->nodes[id];
  tfc_str name = tfc_node_attr_string(f->g, n, "frame_name", "");
  uint32_t at = 1;
  while (at < f->frames.count && !(f->frames.data[at].parent == parent && tfc_str_equal(f->frames.data[at].name, name)))
    at++;
  if (at == f->frames.count) {
    struct tfc_frame frame = {.parent = parent, .name = name, .condition = TFC_NONE};
    frame.parallel = tfc_node_attr_int(f->g, n, "parallel_iterations", 10);
    if (!tfc_array_push(&f->frames, frame)) return tfc_status_no_memory("control flow");
    if (f->frame_capacity < f->frames.capacity) {
      size_t capacity = f->frames.capacity;
      struct tfc_guards *sets = realloc(f->of_frame, capacity * sizeof *sets);
      uint32_t *depths = sets ? realloc(f->depth, capacity * sizeof *depths) : NULL;
      if (sets) f->of_frame = sets;
      if (depths) f->depth = depths;
      if (!sets || !depths) return tfc_status_no_memory("control flow");
      f->frame_capacity = capacity;
    }
    f->of_frame[at] = (struct tfc_guards){0};
    f->depth[at] = f->depth[parent] + 1;
  }
  *out = at;
  return unite(f, &f->of_frame[at], around) ? NULL : tfc_status_no_memory("control flow");
}

static tfc_status visit(struct finder *f, uint32_t id) {
  const struct tfc_graph *g = f->g;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  uint32_t flags = n->def ? n->def->flags : 0, frame = 0;
  bool loop_merge = tfc_frames_is_loop_merge(g, n), first = true;
  struct tfc_guards all = {0}, common = {0};
  for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
    if (has_flag(g, in[k].node, TFC_OP_NEXT_ITERATION) && flags & TFC_OP_MERGE) continue; // not visited yet
    uint32_t from = f->out->of_node[in[k].node];
    if (f->depth[from] > f->depth[frame]) frame = from;
    struct tfc_guards need = needs(f, in[k]);
    if (!(flags & TFC_OP_MERGE) || loop_merge || k >= n->input_count) {
      if (!unite(f, &all, &need)) return tfc_status_no_memory("control flow");
    } else if (first) {
      common = need;
      first = false;
    } else if (!intersect(f, &common, &need)) {
      return tfc_status_no_memory("control flow");
    }
  }
  if (!unite(f, &all, &common)) return tfc_status_no_memory("control flow");
  if (flags & TFC_OP_ENTER) {
    TFC_RETURN_IF_ERROR(enter(f, id, frame, &all, &frame));
    all = (struct tfc_guards){0};
  } else if (flags & TFC_OP_EXIT) {
    if (frame == 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' (Exit) is in no loop", TFC_STR_ARG(n->name));
    all = f->of_frame[frame];
    frame = f->frames.data[frame].parent;
  } else if (flags & TFC_OP_LOOP_COND) {
    f->frames.data[frame].condition = id;
  }
  f->out->of_node[id] = frame;
  f->out->guards[g->output_total + id] = all;
  bool branches = flags & TFC_OP_SWITCH && n->input_count && !tfc_frames_is_loop_switch(g, n);
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct tfc_guards *set = &f->out->guards[n->output_begin + i];
    *set = all;
    if (!branches || all.count == most_guards) continue;
    struct tfc_guard *items = TFC_ARENA_ARRAY(&f->out->arena, struct tfc_guard, (size_t)all.count + 1), own;
    if (!items) return tfc_status_no_memory("control flow");
    own = (struct tfc_guard){predicate(g, in[n->input_count - 1]), (int32_t)i};
    uint32_t count = 0;
    for (uint32_t k = 0; k < all.count; k++)
      if (!same_guard(&all.items[k], &own)) items[count++] = all.items[k];
    items[count++] = own;
    *set = (struct tfc_guards){items, count};
  }
  return NULL;
}

// --- The nodes of each loop ----------------------------------------------------------------------------------------
static uint32_t consumer_with(const struct tfc_graph *g, uint32_t id, int32_t output, uint32_t flag) {
  for (uint32_t k = g->consumer_begin[id]; k < g->consumer_begin[id + 1]; k++)
    if (g->consumers[k].output == output && has_flag(g, g->consumers[k].node, flag)) return g->consumers[k].node;
  return TFC_NONE;
}

static tfc_status find_variables(struct finder *f) {
  const struct tfc_graph *g = f->g;
  struct tfc_arena *arena = &f->out->arena;
  uint32_t *merges = calloc(2 * (f->frames.count + 1), sizeof *merges), *constants = merges + f->frames.count + 1;
  tfc_status s = NULL;
  if (!merges) return tfc_status_no_memory("control flow");
  for (uint32_t i = 0; i < g->node_count; i++) {
    uint32_t at = f->out->of_node[i];
    merges[at] += tfc_frames_is_loop_merge(g, &g->nodes[i]);
    constants[at] += has_flag(g, i, TFC_OP_ENTER);
  }
  for (size_t k = 0; k < f->frames.count; k++) {
    f->frames.data[k].variables = TFC_ARENA_ARRAY(arena, struct tfc_frame_variable, (size_t)merges[k] + 1);
    f->frames.data[k].constants = TFC_ARENA_ARRAY(arena, uint32_t, (size_t)constants[k] + 1);
    if (!f->frames.data[k].variables || !f->frames.data[k].constants) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    struct tfc_frame *frame = &f->frames.data[f->out->of_node[i]];
    if (has_flag(g, i, TFC_OP_ENTER) && consumer_with(g, i, 0, TFC_OP_MERGE) == TFC_NONE)
      frame->constants[frame->constant_count++] = i;
    if (!tfc_frames_is_loop_merge(g, n)) continue;
    struct tfc_frame_variable v = {TFC_NONE, i, TFC_NONE, TFC_NONE, TFC_NONE};
    for (uint32_t k = 0; k < n->input_count; k++) {
      uint32_t from = tfc_node_inputs(g, n)[k].node;
      if (has_flag(g, from, TFC_OP_NEXT_ITERATION))
        v.next = from;
      else
        v.enter = from;
    }
    for (uint32_t k = g->consumer_begin[i]; k < g->consumer_begin[i + 1] && v.switch_ == TFC_NONE; k++)
      if (g->consumers[k].output == 0 && g->consumers[k].input == 0 &&
          tfc_frames_is_loop_switch(g, &g->nodes[g->consumers[k].node]))
        v.switch_ = g->consumers[k].node;
    if (v.switch_ != TFC_NONE) v.exit = consumer_with(g, v.switch_, 0, TFC_OP_EXIT);
    frame->variables[frame->variable_count++] = v;
  }
out:
  free(merges);
  return s;
}

tfc_status tfc_frames_find(const struct tfc_graph *g, struct tfc_frames *out) {
  tfc_status s = NULL;
  struct tfc_frames found = {0};
  struct finder f = {.g = g, .out = &found, .frame_capacity = 1};
  uint32_t *order = malloc(((size_t)g->node_count + 1) * sizeof *order);
  f.of_frame = calloc(1, sizeof *f.of_frame);
  f.depth = calloc(1, sizeof *f.depth);
  found.of_node = TFC_ARENA_ARRAY(&found.arena, uint32_t, (size_t)g->node_count + 1);
  found.guards = TFC_ARENA_ARRAY(&found.arena, struct tfc_guards, (size_t)g->output_total + g->node_count + 1);
  struct tfc_frame root = {.parent = TFC_NONE, .name = TFC_STR(""), .parallel = 1, .condition = TFC_NONE};
  if (!order || !f.of_frame || !f.depth || !found.of_node || !found.guards || !tfc_array_push(&f.frames, root))
    TFC_TRY(s, tfc_status_no_memory("control flow"));
  TFC_TRY(s, tfc_graph_topological(g, order));
  for (uint32_t i = 0; i < g->node_count; i++) TFC_TRY(s, visit(&f, order[i]));
  TFC_TRY(s, find_variables(&f));
  found.frames = TFC_ARENA_ARRAY(&found.arena, struct tfc_frame, f.frames.count);
  if (!found.frames) TFC_TRY(s, tfc_status_no_memory("control flow"));
  memcpy(found.frames, f.frames.data, f.frames.count * sizeof *found.frames);
  for (size_t k = 0; k < f.frames.count; k++) found.frames[k].around = f.of_frame[k];
  found.count = (uint32_t)f.frames.count;
  *out = found;
  found = (struct tfc_frames){0};
out:
  free(order);
  free(f.of_frame);
  free(f.depth);
  tfc_array_free(&f.frames);
  tfc_arena_deinit(&found.arena);
  return s;
}

bool tfc_frames_is_inside(const struct tfc_graph *g, const struct tfc_frames *frames, uint32_t id) {
  return frames->of_node[id] || frames->guards[g->output_total + id].count;
}

void tfc_frames_deinit(struct tfc_frames *frames) {
  tfc_arena_deinit(&frames->arena);
  *frames = (struct tfc_frames){0};
}
