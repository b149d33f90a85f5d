// On devices that launch kernels, computes for all steps of an unrolled loop at once what no step needs from another
// step: an output layer, attention over an encoder's results, and their gradients. Sums over steps are computed at
// once, too: the gradient of a weight is one product of stacked operands, the gradient of a bias is one sum over all
// rows. Sums are rounded in another order, so this needs `--rewrites all`.
//
// A stack is a set of operations of one type, one from each step of the loop, that is replaced by one operation on
// stacked tensors. The first stacks are matrix products that read the same matrix; further ones are the operations that
// read or make the tensors of a stack. Operations may become a stack only if no path leads from one of them through
// other operations to one of them, where each stack found before counts as one operation. So no cycles arise.
#include "runtime/exec/rewrites/stacks.h"
#include "runtime/exec/rewrites/stacks_make.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"

enum {
  LEAST = 4,              // the fewest operations of a stack
  MOST_BYTES = 4 << 20,   // the largest piece of a stacked tensor, in bytes: computing larger ones takes so long that
                          // fewer launches gain nothing
  MOST_SEARCHES = 1 << 14 // the most searches for paths
};

struct finding {
  struct tfc_stacks w;
  uint32_t op_count, searches, grown; // grown: the number of stacks whose readers and makers were tried
  struct tfc_ir_followers after;
  uint32_t *seen, *todo; // [ops] for the search that is running: seen marks operations, todo lists them
  uint32_t search;
};

// --- Looking at operations -----------------------------------------------------------------------------------------
static bool may_be_stacked(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  enum {
    flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_HOST | TFC_OP_ASYNC | TFC_OP_SAVES |
            TFC_OP_FUNCTIONAL | TFC_OP_VIEW | TFC_OP_NO_ELEMENTS
  };
  return !op->dead && !op->joint && !op->prepared && !op->wanted && op->def && !(op->def->flags & flags) &&
         !op->def->node_state && !op->output_variables && !op->host.all && op->input_count <= TFC_STACK_INPUTS &&
         tfc_ir_launches(ir, op->device, NULL);
}

// Whether this value can be one piece of a stacked tensor.
static bool is_piece(const struct tfc_ir_value *v) {
  return v->kind == TFC_IR_OP && v->op != TFC_NONE && v->planned && v->bytes > 0 && v->bytes <= MOST_BYTES;
}

static bool same_attribute(const struct tfc_attr *a, const struct tfc_attr *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case TFC_ATTR_INT: return a->i == b->i;
  case TFC_ATTR_FLOAT: return a->f == b->f;
  case TFC_ATTR_BOOL: return a->b == b->b;
  case TFC_ATTR_STRING: return tfc_str_equal(a->s, b->s);
  case TFC_ATTR_TYPE: return a->type == b->type;
  default: return false;
  }
}

static bool same_attributes(const struct tfc_graph *g, const struct tfc_node *a, const struct tfc_node *b) {
  const struct tfc_op_signature *signature = tfc_op_signature(a->def);
  if (a->def != b->def) return false;
  for (uint32_t i = 0; i < signature->attr_count; i++) {
    char name[64];
    const tfc_str s = signature->attrs[i].name;
    if (s.size >= sizeof name) return false;
    memcpy(name, s.data, s.size), name[s.size] = 0;
    const struct tfc_attr *x = tfc_node_attr(g, a, name), *y = tfc_node_attr(g, b, name);
    if (x && y ? !same_attribute(x, y) : x != y) return false;
  }
  return true;
}

static bool same_constant(const struct tfc_ir_value *a, const struct tfc_ir_value *b) {
  if (a->kind != TFC_IR_CONST || b->kind != TFC_IR_CONST || !tfc_dtype_is_plain(a->dtype)) return false;
  const struct tfc_tensor *x = a->constant, *y = b->constant;
  return x->dtype == y->dtype && tfc_shape_equal(&x->shape, &y->shape) && x->size == y->size &&
         !memcmp(x->data, y->data, x->size);
}

static bool is_shared(const struct tfc_ir *ir, const struct tfc_ir_input *a, const struct tfc_ir_input *b) {
  const bool same = a->value == b->value || same_constant(&ir->values.data[a->value], &ir->values.data[b->value]);
  return same && tfc_shape_equal(tfc_ir_shape(ir, a), tfc_ir_shape(ir, b));
}

bool tfc_stacks_describe(const struct tfc_ir *ir, uint32_t id, uint32_t stacked, struct tfc_stacks_op *out) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->input_count > TFC_STACK_INPUTS) return false;
  for (uint32_t i = 0; i < op->input_count; i++) {
    const struct tfc_ir_input *in = &op->inputs[i];
    if (in->value == TFC_NONE || in->variable != TFC_NONE) return false;
    const struct tfc_ir_value *v = &ir->values.data[in->value];
    out->shapes[i] = tfc_ir_shape(ir, in);
    out->values[i] = v->kind == TFC_IR_CONST ? v->constant : NULL;
    if (!tfc_shape_is_static(out->shapes[i])) return false;
  }
  out->of = (struct tfc_stacking_of){
      ir->graph, &ir->graph->nodes[op->node], op->def, out->shapes, out->values, op->input_count, stacked};
  return true;
}

bool tfc_stacks_is_stacked(const struct tfc_stacks *w, const uint32_t *ops, uint32_t count, uint32_t input,
                           uint32_t *out_stack, uint32_t *out_output) {
  const struct tfc_ir *ir = w->ir;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_value *v = &ir->values.data[ir->ops.data[ops[i]].inputs[input].value];
    if (v->kind != TFC_IR_OP || v->op == TFC_NONE || w->stack_of[v->op] == TFC_NONE) return false;
    if (i == 0) *out_stack = w->stack_of[v->op], *out_output = v->output;
    if (w->stack_of[v->op] != *out_stack || v->output != *out_output || w->place[v->op] != i) return false;
  }
  return w->all.data[*out_stack].count == count && w->all.data[*out_stack].sum == TFC_NONE;
}

// --- Paths -----------------------------------------------------------------------------------------------------------
// One step of the search for a path between members of the proposed stack: appends to f->todo the operations that come
// directly after `op`, except `except`. An operation that is in a stack already brings all operations of that stack
// with it, because they will be one operation. False: one of them is a member of the proposed stack.
static bool go_on(struct finding *f, uint32_t op, uint32_t except, uint32_t *count) {
  const uint32_t member = f->search, met = f->search + 1;
  for (uint32_t e = f->after.begin[op]; e < f->after.begin[op + 1]; e++) {
    const uint32_t to = f->after.ops[e];
    if (to == except) continue;
    if (f->seen[to] == member) return false;
    if (f->seen[to] == met) continue;
    f->seen[to] = met;
    f->todo[(*count)++] = to;
    if (f->w.stack_of[to] == TFC_NONE) continue;
    const struct tfc_stack *stack = &f->w.all.data[f->w.stack_of[to]];
    for (uint32_t i = 0; i <= stack->count; i++) {
      const uint32_t other = i < stack->count ? stack->ops[i] : stack->sum;
      if (other == TFC_NONE || f->seen[other] == met) continue;
      if (f->seen[other] == member) return false;
      f->seen[other] = met;
      f->todo[(*count)++] = other;
    }
  }
  return true;
}

// Whether no path leads from one of the operations to another of them. Paths to `sum` (TFC_NONE: there is none) are
// allowed.
static bool can_be_one(struct finding *f, const uint32_t *ops, uint32_t count, uint32_t sum) {
  uint32_t todo = 0;
  if (f->searches++ >= MOST_SEARCHES) return false;
  f->search += 2;
  for (uint32_t i = 0; i < count; i++) {
    if (f->seen[ops[i]] == f->search) return false; // it is in the list twice
    f->seen[ops[i]] = f->search;
  }
  if (sum != TFC_NONE) f->seen[sum] = f->search;
  for (uint32_t i = 0; i < count; i++)
    if (!go_on(f, ops[i], sum, &todo)) return false;
  if (sum != TFC_NONE && !go_on(f, sum, TFC_NONE, &todo)) return false;
  for (uint32_t at = 0; at < todo; at++)
    if (!go_on(f, f->todo[at], TFC_NONE, &todo)) return false;
  return true;
}

// --- Stacks --------------------------------------------------------------------------------------------------------
// Whether the operations are equal except for inputs of equal type and shape. *out_stacked: a bit for each input that
// differs.
static bool are_alike(const struct finding *f, const uint32_t *ops, uint32_t count, uint32_t *out_stacked) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_ir_op *first = &ir->ops.data[ops[0]];
  *out_stacked = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[ops[i]];
    if (f->w.stack_of[ops[i]] != TFC_NONE || !may_be_stacked(ir, op)) return false;
    if (op->def != first->def || op->device != first->device || op->input_count != first->input_count ||
        op->output_count != first->output_count ||
        !same_attributes(ir->graph, &ir->graph->nodes[first->node], &ir->graph->nodes[op->node]))
      return false;
    for (uint32_t k = 0; k < op->output_count; k++) {
      if (op->outputs[k] == TFC_NONE || first->outputs[k] == TFC_NONE) return false;
      const struct tfc_ir_value *v = &ir->values.data[op->outputs[k]], *like = &ir->values.data[first->outputs[k]];
      if (!is_piece(v) || v->fetched || v->alias != TFC_NONE || v->dtype != like->dtype ||
          !tfc_shape_equal(&v->shape, &like->shape))
        return false;
    }
    for (uint32_t k = 0; k < op->input_count; k++)
      if (op->inputs[k].value == TFC_NONE || first->inputs[k].value == TFC_NONE ||
          !is_shared(ir, &first->inputs[k], &op->inputs[k]))
        *out_stacked |= 1u << k;
  }
  for (uint32_t k = 0; k < first->input_count; k++) {
    if (!(*out_stacked >> k & 1)) continue;
    for (uint32_t i = 0; i < count; i++) {
      const struct tfc_ir_op *op = &ir->ops.data[ops[i]];
      const struct tfc_ir_input *in = &op->inputs[k];
      if (in->value == TFC_NONE || tfc_host_bit(op->host.inputs, k)) return false;
      const struct tfc_ir_value *v = &ir->values.data[in->value], *like = &ir->values.data[first->inputs[k].value];
      if (!is_piece(v) || v->dtype != like->dtype ||
          !tfc_shape_equal(tfc_ir_shape(ir, in), tfc_ir_shape(ir, &first->inputs[k])))
        return false;
    }
  }
  return true;
}

static tfc_status add_stack(struct finding *f, const struct tfc_stack *like) {
  struct tfc_stack stack = *like;
  stack.ops = tfc_arena_alloc(&f->w.arena, like->count * sizeof *stack.ops);
  if (!stack.ops || !tfc_array_push(&f->w.all, stack)) return tfc_status_no_memory("planning a step");
  memcpy(stack.ops, like->ops, like->count * sizeof *stack.ops);
  for (uint32_t i = 0; i < stack.count; i++) {
    f->w.stack_of[stack.ops[i]] = (uint32_t)f->w.all.count - 1;
    f->w.place[stack.ops[i]] = i;
  }
  if (stack.sum != TFC_NONE) f->w.stack_of[stack.sum] = (uint32_t)f->w.all.count - 1;
  return NULL;
}

// Makes a stack of the operations if they can be one, and if that takes fewer launches.
static tfc_status try_stack(struct finding *f, uint32_t *ops, uint32_t count) {
  struct tfc_stack stack = {.count = count, .ops = ops, .sum = TFC_NONE};
  struct tfc_stacks_op op;
  uint32_t more = 2, a, b; // the fewest launches that pay: one for the stack, and one to take its result apart for
                           // readers of single pieces
  if (!are_alike(f, ops, count, &stack.stacked) || !tfc_stacks_describe(f->w.ir, ops[0], stack.stacked, &op))
    return NULL;
  for (size_t t = 0; t < f->w.totals.count; t++) // a reduction computes these sums
    for (uint32_t i = 0; i < count; i++)
      if (f->w.totals.data[t].sum == ops[i]) return NULL;
  stack.how = tfc_stacking_of(&op.of);
  if (stack.how == TFC_STACKING_NONE || op.shapes[0]->rank == TFC_MAX_RANK) return NULL;
  for (uint32_t k = 0; k < op.of.input_count; k++) {
    if (!(stack.stacked >> k & 1) || tfc_stacks_is_stacked(&f->w, ops, count, k, &a, &b)) continue;
    if (op.of.def->elementwise && op.of.input_count <= 2) return NULL; // in a chain it is no launch of its own
    more++;
  }
  if (more >= count || !can_be_one(f, ops, count, TFC_NONE)) return NULL;
  return add_stack(f, &stack);
}

// Returns how similar an operation is to `like`, an operation one step earlier or later.
static uint32_t likeness(const struct finding *f, uint32_t id, uint32_t like_id, uint32_t place) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_ir_op *op = &ir->ops.data[id], *like = &ir->ops.data[like_id];
  uint32_t score = 1;
  if (op->def != like->def || op->device != like->device || op->input_count != like->input_count) return 0;
  for (uint32_t k = 0; k < op->input_count; k++) {
    const uint32_t x = op->inputs[k].value, y = like->inputs[k].value;
    if (x == TFC_NONE || y == TFC_NONE) continue;
    const struct tfc_ir_value *v = &ir->values.data[x], *w = &ir->values.data[y];
    const bool made = v->kind == TFC_IR_OP && w->kind == TFC_IR_OP && v->op != TFC_NONE && w->op != TFC_NONE;
    if (is_shared(ir, &like->inputs[k], &op->inputs[k]))
      score += 2;
    else if (made && f->w.stack_of[v->op] != TFC_NONE && f->w.stack_of[v->op] == f->w.stack_of[w->op] &&
             v->output == w->output && f->w.place[v->op] == place)
      score += 2;
  }
  return score;
}

// Tries to make a stack of operations that all read output `output` of the operations of a stack in the same way.
static tfc_status try_readers(struct finding *f, uint32_t id, uint32_t output, uint32_t *ops) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_stack stack = f->w.all.data[id];
  const uint32_t first = ir->ops.data[stack.ops[0]].outputs[output];
  for (uint32_t r = f->w.readers.begin[first]; r < f->w.readers.begin[first + 1]; r++) {
    const uint32_t like = f->w.readers.ops[r];
    uint32_t found = 1;
    if (f->w.stack_of[like] != TFC_NONE || !may_be_stacked(ir, &ir->ops.data[like])) continue;
    ops[0] = like;
    for (uint32_t i = 1; i < stack.count && found == i; i++) {
      const uint32_t v = ir->ops.data[stack.ops[i]].outputs[output];
      uint32_t best = 0;
      for (uint32_t q = f->w.readers.begin[v]; q < f->w.readers.begin[v + 1]; q++) {
        const uint32_t op = f->w.readers.ops[q];
        const uint32_t score = f->w.stack_of[op] == TFC_NONE ? likeness(f, op, like, i) : 0;
        if (score > best) best = score, ops[i] = op, found = i + 1;
      }
    }
    if (found == stack.count) TFC_RETURN_IF_ERROR(try_stack(f, ops, found));
  }
  return NULL;
}

// Tries to make a stack of the operations that compute input `input` of the operations of a stack.
static tfc_status try_makers(struct finding *f, uint32_t id, uint32_t input, uint32_t *ops) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_stack *stack = &f->w.all.data[id];
  for (uint32_t i = 0; i < stack->count; i++) {
    const struct tfc_ir_value *v = &ir->values.data[ir->ops.data[stack->ops[i]].inputs[input].value];
    if (v->kind != TFC_IR_OP || v->op == TFC_NONE || f->w.stack_of[v->op] != TFC_NONE) return NULL;
    ops[i] = v->op;
  }
  return try_stack(f, ops, stack->count);
}

static tfc_status grow(struct finding *f, uint32_t *ops) {
  for (; f->grown < f->w.all.count; f->grown++) {
    const uint32_t id = f->grown;
    const struct tfc_stack stack = f->w.all.data[id];
    const struct tfc_ir_op *op = &f->w.ir->ops.data[stack.ops[0]];
    for (uint32_t k = 0; k < op->output_count; k++) TFC_RETURN_IF_ERROR(try_readers(f, id, k, ops));
    for (uint32_t k = 0; k < op->input_count; k++)
      if (stack.stacked >> k & 1) TFC_RETURN_IF_ERROR(try_makers(f, id, k, ops));
  }
  return NULL;
}

// For sorting operations: the key is the position of an input in a stack that computes it, if there is one; otherwise
// it is the id of the value that the last of the inputs reads that are not the same for all.
struct ordered {
  uint32_t key, op;
};
static int by_key(const void *a, const void *b) {
  const struct ordered *x = a, *y = b;
  return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->op > y->op) - (x->op < y->op);
}
static tfc_status arrange(struct finding *f, uint32_t *ops, uint32_t count) {
  const struct tfc_ir *ir = f->w.ir;
  const uint32_t inputs = ir->ops.data[ops[0]].input_count;
  struct ordered *list = tfc_arena_alloc(&f->w.arena, count * sizeof *list);
  uint32_t differing = inputs - 1;
  if (!list) return tfc_status_no_memory("planning a step");
  while (differing > 0 && ir->ops.data[ops[0]].inputs[differing].value == ir->ops.data[ops[1]].inputs[differing].value)
    differing--;
  for (uint32_t k = inputs; k-- > 0;) {
    uint32_t stack = TFC_NONE, same = 0;
    for (uint32_t i = 0; i < count; i++) {
      const struct tfc_ir_value *v = &ir->values.data[ir->ops.data[ops[i]].inputs[k].value];
      const uint32_t from = v->kind == TFC_IR_OP && v->op != TFC_NONE ? f->w.stack_of[v->op] : TFC_NONE;
      if (i == 0) stack = from;
      same += from != TFC_NONE && from == stack && f->w.all.data[from].sum == TFC_NONE;
      list[i] = (struct ordered){from == TFC_NONE ? 0 : f->w.place[v->op], ops[i]};
    }
    if (same == count && f->w.all.data[stack].count == count) break;
    for (uint32_t i = 0; k == 0 && i < count; i++)
      list[i] = (struct ordered){ir->ops.data[ops[i]].inputs[differing].value, ops[i]};
  }
  qsort(list, count, sizeof *list, by_key);
  for (uint32_t i = 0; i < count; i++) ops[i] = list[i].op;
  return NULL;
}

// --- Products of the same matrix, from which stacks grow -----------------------------------------------------------
static tfc_status find_products(struct finding *f, uint32_t *ops, uint32_t *scratch) {
  const struct tfc_ir *ir = f->w.ir;
  tfc_status s = NULL;
  struct tfc_intmap first = {0}; // by value, the first product that reads it as its right operand
  uint32_t *next = tfc_arena_alloc(&f->w.arena, (f->op_count + 1) * sizeof *next), *last = NULL;
  last = tfc_arena_alloc(&f->w.arena, (f->op_count + 1) * sizeof *last);
  if (!next || !last) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < f->op_count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    next[i] = TFC_NONE, last[i] = i;
    if (!may_be_stacked(ir, op) || op->def->role != TFC_ROLE_PRODUCT || op->input_count < 2) continue;
    // The key: the matrix, whether it is transposed, and which of its rows are used (cells.c). Other differences are
    // found by are_alike.
    const uint64_t rows = op->input_count > 2 ? op->inputs[2].value + (uint64_t)1 : 0;
    const uint64_t key = (uint64_t)op->inputs[1].value << 33 | rows << 1 |
                         tfc_node_attr_bool(ir->graph, &ir->graph->nodes[op->node], "transpose_b", false);
    bool found = false;
    uint64_t *slot = tfc_intmap_put(&first, key, i, &found);
    if (!slot) TFC_TRY(s, tfc_status_no_memory("planning a step"));
    if (found) next[last[*slot]] = i, last[*slot] = i;
  }
  for (uint32_t i = 0; i < f->op_count; i++) {
    if (next[i] == TFC_NONE || last[i] == i) continue; // only the first of several products starts a stack
    uint32_t count = 0;
    for (uint32_t id = i; id != TFC_NONE; id = next[id])
      if (f->w.stack_of[id] == TFC_NONE) ops[count++] = id;
    if (count < LEAST) continue;
    TFC_TRY(s, arrange(f, ops, count));
    TFC_TRY(s, try_stack(f, ops, count));
    TFC_TRY(s, grow(f, scratch));
  }
out:
  tfc_intmap_deinit(&first);
  return s;
}

// --- Sums over steps -------------------------------------------------------------------------------------------------
static bool is_term(const struct finding *f, const struct tfc_ir_op *add, uint32_t k, uint32_t *out_op) {
  const struct tfc_ir *ir = f->w.ir;
  const uint32_t v = add->inputs[k].value;
  if (v == TFC_NONE || add->inputs[k].view) return false;
  const struct tfc_ir_value *value = &ir->values.data[v];
  if (value->kind != TFC_IR_OP || value->op == TFC_NONE || value->fetched || value->alias != TFC_NONE ||
      !value->planned || f->w.readers.begin[v + 1] - f->w.readers.begin[v] != 1)
    return false;
  *out_op = value->op;
  return ir->ops.data[value->op].device == add->device;
}

// Tries to make a stack of terms of a sum that one operation can compute together with their sum.
static tfc_status try_terms(struct finding *f, uint32_t id, uint32_t *ops) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_ir_op *add = &ir->ops.data[id];
  struct tfc_stack stack = {.ops = ops, .how = TFC_STACKING_ROWS, .sum = id};
  for (uint32_t k = 0; k < add->input_count; k++) {
    struct tfc_stacks_op op;
    uint32_t term;
    if (!is_term(f, add, k, &term) || f->w.stack_of[term] != TFC_NONE) continue;
    const struct tfc_ir_op *made = &ir->ops.data[term], *like = &ir->ops.data[ops[0]];
    if (!may_be_stacked(ir, made) || made->output_count != 1 || !tfc_stacks_describe(ir, term, 0, &op) ||
        !tfc_stacking_sums(&op.of))
      continue;
    bool fits = !stack.count || (made->def == like->def && made->device == like->device &&
                                 same_attributes(ir->graph, &ir->graph->nodes[like->node], op.of.node));
    for (uint32_t i = 0; i < made->input_count && fits; i++) {
      const struct tfc_ir_value *v = &ir->values.data[made->inputs[i].value];
      fits = is_piece(v) && (!stack.count || (v->dtype == ir->values.data[like->inputs[i].value].dtype &&
                                              tfc_shape_equal(op.shapes[i], tfc_ir_shape(ir, &like->inputs[i]))));
    }
    if (fits) ops[stack.count++] = term;
  }
  if (stack.count < LEAST || stack.count > UINT16_MAX) return NULL;
  stack.stacked = (1u << ir->ops.data[ops[0]].input_count) - 1;
  TFC_RETURN_IF_ERROR(arrange(f, ops, stack.count));
  return can_be_one(f, ops, stack.count, id) ? add_stack(f, &stack) : NULL;
}

// Finds the terms of a sum that are all the results of one stack.
static tfc_status try_totals(struct finding *f, uint32_t id) {
  const struct tfc_ir *ir = f->w.ir;
  const struct tfc_ir_op *add = &ir->ops.data[id];
  const uint32_t stacks = (uint32_t)f->w.all.count;
  for (uint32_t s = 0; s < stacks; s++) {
    const struct tfc_stack *stack = &f->w.all.data[s];
    const struct tfc_ir_op *like = &ir->ops.data[stack->ops[0]];
    if (stack->sum != TFC_NONE || stack->count > add->input_count || like->device != add->device) continue;
    for (uint32_t output = 0; output < like->output_count; output++) {
      uint32_t found = 0;
      bool twice = false;
      for (uint32_t k = 0; k < add->input_count; k++) {
        const struct tfc_ir_value *v = &ir->values.data[add->inputs[k].value];
        if (v->kind != TFC_IR_OP || v->op == TFC_NONE || f->w.stack_of[v->op] != s || v->output != output) continue;
        if (tfc_shape_equal(tfc_ir_shape(ir, &add->inputs[k]), &ir->values.data[add->outputs[0]].shape)) found++;
        for (uint32_t j = 0; j < k; j++) twice |= add->inputs[j].value == add->inputs[k].value;
      }
      if (twice || found != stack->count || ir->values.data[add->outputs[0]].shape.rank == TFC_MAX_RANK) continue;
      if (!tfc_array_push(&f->w.totals, (struct tfc_stack_total){id, s, output}))
        return tfc_status_no_memory("planning a step");
    }
  }
  return NULL;
}

static tfc_status find_sums(struct finding *f, uint32_t *ops, uint32_t *scratch) {
  const struct tfc_ir *ir = f->w.ir;
  for (uint32_t i = 0; i < f->op_count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || op->wanted || !op->def || op->def->role != TFC_ROLE_ADD_N) continue;
    if (!tfc_ir_launches(ir, op->device, NULL) || f->w.stack_of[i] != TFC_NONE || op->outputs[0] == TFC_NONE) continue;
    if (!ir->values.data[op->outputs[0]].planned || ir->values.data[op->outputs[0]].alias != TFC_NONE) continue;
    TFC_RETURN_IF_ERROR(try_totals(f, i));
    TFC_RETURN_IF_ERROR(try_terms(f, i, ops));
    TFC_RETURN_IF_ERROR(grow(f, scratch));
  }
  return NULL;
}

static tfc_status stack_steps(struct tfc_ir *ir) {
  tfc_status s = NULL;
  const uint32_t n = (uint32_t)ir->ops.count;
  struct finding f = {.w.ir = ir, .op_count = n};
  if (!tfc_ir_any_launches(ir, NULL)) return NULL;
  struct tfc_arena *arena = &f.w.arena;
  uint32_t *ops = TFC_ARENA_ARRAY(arena, uint32_t, n + 1), *scratch = TFC_ARENA_ARRAY(arena, uint32_t, n + 1);
  f.seen = TFC_ARENA_ARRAY(arena, uint32_t, n + 1), f.todo = TFC_ARENA_ARRAY(arena, uint32_t, n + 1);
  f.w.place = TFC_ARENA_ARRAY(arena, uint32_t, n + 1), f.w.stack_of = TFC_ARENA_ARRAY(arena, uint32_t, n + 1);
  if (!ops || !scratch || !f.seen || !f.todo || !f.w.place || !f.w.stack_of)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < n; i++) f.w.stack_of[i] = TFC_NONE;
  TFC_TRY(s, tfc_ir_readers(ir, arena, &f.w.readers));
  TFC_TRY(s, tfc_ir_followers(ir, arena, &f.w.readers, &f.after));
  TFC_TRY(s, find_products(&f, ops, scratch));
  TFC_TRY(s, find_sums(&f, ops, scratch));
  TFC_TRY(s, tfc_stacks_make(&f.w));
out:
  tfc_array_free(&f.w.all);
  tfc_array_free(&f.w.totals);
  tfc_arena_deinit(&f.w.arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"unrolled steps together", 8, false, stack_steps}};
TFC_REWRITES(rows);
