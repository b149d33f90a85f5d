// On devices that launch kernels, moves optimizer updates to one place in the order, after the last of their gradients:
// such devices run updates that follow each other in one launch. Gradients stay in memory until then, so large
// variables are not moved: they are updated as soon as their gradients are known. Without `--rewrites all`, no variable
// is moved.
#include "runtime/exec/rewrites/scaled.h"

enum { MOST_BYTES = 16 << 20 };

struct together {
  struct tfc_ir *ir;
  struct tfc_arena arena;
  struct tfc_ir_readers readers;
  bool *is_update;        // [ops] an update on `device` that is to be moved
  bool *follows;          // [ops] it must run after one of the updates
  uint32_t *todo, pushed; // the operations that follow an update; of those before `pushed` the successors are listed,
                          // too
  uint16_t device;
};

static bool is_candidate(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint16_t device) {
  if (op->dead || op->joint || op->device != device || !op->def || !(op->def->flags & TFC_OP_UPDATE)) return false;
  const uint32_t gradient = tfc_rewrites_gradient(op);
  if (gradient >= op->input_count || op->inputs[gradient].value == TFC_NONE) return false;
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[gradient].value];
  return v->kind == TFC_IR_OP && v->op != TFC_NONE && ir->ops.data[v->op].device == device && v->planned &&
         v->bytes <= MOST_BYTES;
}

static void follow(struct together *t, uint32_t op) {
  if (t->follows[op]) return;
  t->follows[op] = true;
  t->todo[t->pushed++] = op;
}

// Finds all operations that must run after one of the updates.
static void find_followers(struct together *t) {
  const struct tfc_ir *ir = t->ir;
  for (uint32_t at = 0, seeded = 0; seeded < ir->ops.count || at < t->pushed;) {
    const bool seed = at == t->pushed;
    const uint32_t id = seed ? seeded++ : t->todo[at++];
    if (seed && !t->is_update[id]) continue;
    for (size_t v = 0; v < ir->values.count; v++) { // the outputs of the operation, and the variable's value after it
      const struct tfc_ir_value *value = &ir->values.data[v];
      if (value->op != id || (value->kind != TFC_IR_OP && value->kind != TFC_IR_VARIABLE)) continue;
      for (uint32_t r = t->readers.begin[v]; r < t->readers.begin[v + 1]; r++) follow(t, t->readers.ops[r]);
    }
    for (size_t e = 0; e < ir->edges.count; e++)
      if (ir->edges.data[e].from == id && !ir->ops.data[ir->edges.data[e].to].dead) follow(t, ir->edges.data[e].to);
  }
}

// Returns the next operation that the update waits for; TFC_NONE: there are no more. *at: how far the search has
// come; the caller begins with 0.
static uint32_t awaited(const struct tfc_ir *ir, uint32_t update, size_t *at) {
  const struct tfc_ir_op *op = &ir->ops.data[update];
  for (; *at < op->input_count; ++*at) {
    const uint32_t value = op->inputs[*at].value;
    const struct tfc_ir_value *v = value == TFC_NONE ? NULL : &ir->values.data[value];
    if (v && v->op != TFC_NONE && (v->kind == TFC_IR_OP || v->kind == TFC_IR_VARIABLE) && v->op != update)
      return ++*at, v->op;
  }
  for (size_t e; (e = *at - op->input_count) < ir->edges.count;) {
    ++*at;
    if (ir->edges.data[e].to == update) return ir->edges.data[e].from;
  }
  return TFC_NONE;
}

static tfc_status bring_together(struct together *t) {
  struct tfc_ir *ir = t->ir;
  const uint32_t count = (uint32_t)ir->ops.count;
  uint32_t first = TFC_NONE, updates = 0, joint = 0;
  find_followers(t);
  for (uint32_t i = 0; i < count; i++) {
    if (!t->is_update[i]) continue;
    size_t at = 0;
    for (uint32_t from; (from = awaited(ir, i, &at)) != TFC_NONE;)
      if (t->follows[from] || t->is_update[from]) t->is_update[i] = false;
    if (t->follows[i]) t->is_update[i] = false;
    if (t->is_update[i] && first == TFC_NONE) first = i;
    updates += t->is_update[i];
  }
  if (updates < 2) return NULL;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(
      ir, &(struct tfc_ir_op){.node = ir->ops.data[first].node, .device = t->device, .joint = true}, &joint));
  const size_t edges = ir->edges.count;
  for (uint32_t i = 0; i < count; i++) {
    if (!t->is_update[i]) continue;
    size_t at = 0;
    const size_t inputs = ir->ops.data[i].input_count;
    for (uint32_t from; at < inputs + edges && (from = awaited(ir, i, &at)) != TFC_NONE;)
      if (ir->ops.data[from].device == t->device || ir->ops.data[from].joint)
        TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, from, joint));
    TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, joint, i));
  }
  return NULL;
}

static tfc_status all_together(struct tfc_ir *ir) {
  tfc_status s = NULL;
  const size_t count = ir->ops.count;
  for (uint16_t d = 0; d < ir->device_count && !s; d++) {
    struct together t = {.ir = ir, .device = d};
    bool any = false;
    if (!tfc_ir_launches(ir, d, NULL)) continue;
    t.is_update = TFC_ARENA_ARRAY(&t.arena, bool, ir->ops.count + 1);
    t.follows = TFC_ARENA_ARRAY(&t.arena, bool, ir->ops.count + 1);
    t.todo = TFC_ARENA_ARRAY(&t.arena, uint32_t, ir->ops.count + 1);
    if (!t.is_update || !t.follows || !t.todo) s = tfc_status_no_memory("planning a step");
    for (uint32_t i = 0; i < count && !s; i++) any |= t.is_update[i] = is_candidate(ir, &ir->ops.data[i], d);
    if (!s && any) s = tfc_ir_readers(ir, &t.arena, &t.readers);
    if (!s && any) s = bring_together(&t);
    tfc_arena_deinit(&t.arena);
  }
  return s;
}

static const struct tfc_rewrite rows[] = {{"updates together", 65, false, all_together}};
TFC_REWRITES(rows);
