// Plans memory: every value with a static shape gets its place in an arena when the plan is made. This goes through the
// items in the order of the sequence: the results of an item are placed in the best-fitting free range of its arena;
// after the item, the memory of values that have no later reader is freed.
//
// Devices run at their own pace, so "freed" has a condition: a clock (for each queue, how many items must have ended).
// An item may use a free range only if its own clock covers the range's condition, so reuse never adds a wait. A range
// whose condition no item covers is kept to the end of the step. Afterwards places are chosen a second time with all
// lifetimes known, and the smaller result is used.
#include <stdlib.h>

#include "runtime/exec/plan/memory.h"
#include "runtime/exec/plan/plan_internal.h"

enum { ALIGNMENT = 64, SENT = 1 << 16 }; // SENT: bytes from which on a result that is sent has memory of its own

struct range {
  uint64_t offset, size;
  uint32_t *condition; // [queues]
};
typedef TFC_ARRAY(struct range) range_list;
struct block { // memory of one value or copy, or of several values that are computed in place, one after another
  uint64_t offset, size;
  uint16_t location;
  bool placed, kept;
  bool reused;         // an output was computed in the memory of this block
  bool freed;          // the last reader of the block was found
  uint32_t readers;    // number of reads that are still to come
  uint32_t from;       // the first item that uses the block
  uint32_t inside;     // the block in whose memory it is computed; TFC_NONE: it has a place of its own
  uint32_t *condition; // [queues] clock of the reads so far
};
struct planner {
  const struct tfc_ir *ir;
  const struct tfc_arrangement *a;
  struct tfc_arena *arena;
  struct tfc_memory_plan *plan;
  range_list *free; // [location], by offset
  // [location] freed since the last allocation; they are merged only when there is another allocation.
  range_list *freed;
  struct block *blocks;
  uint32_t *block_of_value, *block_of_copy;
  uint32_t *first_read, *reads; // where in `reads` the inputs of an operation begin; the elements of `reads` are
                                // blocks, or TFC_NONE
  uint32_t *conditions;         // all conditions of the blocks
  uint32_t block_count;
  uint32_t now; // the current item
};

static bool covers(const uint32_t *clock, const uint32_t *condition, uint32_t n) {
  for (uint32_t q = 0; q < n; q++)
    if (condition[q] > clock[q]) return false;
  return true;
}

static bool insert(range_list *list, size_t at, struct range r) {
  if (!tfc_array_push(list, r)) return false;
  memmove(list->data + at + 1, list->data + at, (list->count - 1 - at) * sizeof r);
  list->data[at] = r;
  return true;
}

static void erase(range_list *list, size_t at) {
  memmove(list->data + at, list->data + at + 1, (list->count - 1 - at) * sizeof *list->data);
  list->count--;
}

static tfc_status take_freed(range_list *list, range_list *freed) {
  for (size_t i = 0; i < freed->count; i++) {
    size_t low = 0, high = list->count;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (list->data[middle].offset < freed->data[i].offset)
        low = middle + 1;
      else
        high = middle;
    }
    if (!insert(list, low, freed->data[i])) return tfc_status_no_memory("planning a step");
  }
  freed->count = 0;
  return NULL;
}

static tfc_status allocate(struct planner *p, struct block *b, const uint32_t *clock) {
  b->from = p->now;
  range_list *list = &p->free[b->location];
  TFC_RETURN_IF_ERROR(take_freed(list, &p->freed[b->location]));
  uint32_t n = p->a->queue_count;
  uint64_t *top = &p->plan->size[b->location];
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < list->count; i++) {
    struct range *r = &list->data[i];
    if (!covers(clock, r->condition, n)) continue;
    while (i + 1 < list->count && list->data[i + 1].offset == r->offset + r->size &&
           covers(clock, list->data[i + 1].condition, n)) { // joins neighbours that are both free for this item
      struct range *next = &list->data[i + 1];
      for (uint32_t q = 0; q < n; q++)
        if (next->condition[q] > r->condition[q]) r->condition[q] = next->condition[q];
      r->size += next->size;
      erase(list, i + 1);
      r = &list->data[i];
    }
    if (r->size >= b->size && (best == SIZE_MAX || r->size < list->data[best].size)) best = i;
  }
  b->placed = true;
  if (best != SIZE_MAX) {
    struct range *r = &list->data[best];
    b->offset = r->offset;
    r->offset += b->size;
    r->size -= b->size;
    if (r->size == 0) erase(list, best);
    return NULL;
  }
  struct range *last = list->count ? &list->data[list->count - 1] : NULL;
  // Extends the last free range if it is at the end of the arena.
  if (last && last->offset + last->size == *top && covers(clock, last->condition, n)) {
    b->offset = last->offset;
    *top = last->offset + b->size;
    list->count--;
    return NULL;
  }
  b->offset = *top;
  if (__builtin_add_overflow(*top, b->size, top) || *top > (uint64_t)INT64_MAX)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "the step needs more memory than there are addresses");
  return NULL;
}

static tfc_status release(struct planner *p, struct block *b) {
  if (!b->placed || b->kept) return NULL;
  b->freed = true;
  uint32_t *condition = TFC_ARENA_ARRAY(p->arena, uint32_t, p->a->queue_count);
  if (!condition || !tfc_array_push(&p->freed[b->location], (struct range){b->offset, b->size, condition}))
    return tfc_status_no_memory("planning a step");
  memcpy(condition, b->condition, p->a->queue_count * sizeof *condition);
  return NULL;
}

static uint32_t block_of_input(const struct planner *p, const struct tfc_ir_op *op, uint32_t input) {
  uint32_t v = op->inputs[input].value;
  if (v == TFC_NONE || op->inputs[input].variable != TFC_NONE) return TFC_NONE;
  uint32_t t =
      p->a->first_copy[v] == TFC_NONE ? TFC_NONE : tfc_find_copy(p->a, p->ir, v, tfc_input_location(p->ir, op, input));
  return t != TFC_NONE && p->ir->values.data[v].kind != TFC_IR_CONST ? p->block_of_copy[t] : p->block_of_value[v];
}

// Finds the blocks that each operation reads, and the number of readers of each block.
static tfc_status find_reads(struct planner *p) {
  const struct tfc_ir *ir = p->ir;
  size_t total = 0;
  for (uint32_t i = 0; i < p->a->item_count; i++)
    if (p->a->items[i].op != TFC_NONE) total += ir->ops.data[p->a->items[i].op].input_count;
  p->first_read = tfc_arena_alloc(p->arena, (p->a->item_count + 1u) * sizeof *p->first_read);
  p->reads = tfc_arena_alloc(p->arena, (total + 1) * sizeof *p->reads);
  if (!p->first_read || !p->reads) return tfc_status_no_memory("planning a step");
  total = 0;
  for (uint32_t i = 0; i < p->a->item_count; i++) {
    p->first_read[i] = (uint32_t)total;
    if (p->a->items[i].op == TFC_NONE) continue;
    const struct tfc_ir_op *op = &ir->ops.data[p->a->items[i].op];
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t b = p->reads[total++] = block_of_input(p, op, k);
      if (b != TFC_NONE) p->blocks[b].readers++;
    }
  }
  return NULL;
}

// Returns the block that input `input` of the current operation is read from; NULL: the input has no place.
static struct block *block_read(const struct planner *p, uint32_t input) {
  uint32_t b = p->reads[p->first_read[p->now] + input];
  return b == TFC_NONE ? NULL : &p->blocks[b];
}

static void new_block(struct planner *p, uint64_t bytes, uint16_t location, uint32_t *out) {
  struct block *b = &p->blocks[p->block_count];
  uint64_t size = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
  *b = (struct block){.size = size, .location = location, .inside = TFC_NONE};
  b->condition = p->conditions + (size_t)p->block_count * p->a->queue_count;
  *out = p->block_count++;
}

static void done_by(const struct planner *p, struct block *b, const struct tfc_item *item) {
  (void)p;
  if (item->position + 1 > b->condition[item->queue]) b->condition[item->queue] = item->position + 1;
}

// Finds the block of an input in which the output may be computed, because nothing reads the input afterwards; NULL:
// there is none.
static struct block *in_place(const struct planner *p, const struct tfc_ir_op *op, uint32_t output,
                              const struct block *out, const uint32_t *clock) {
  uint32_t all = op->input_count >= 32 ? UINT32_MAX : (1u << op->input_count) - 1, candidates = 0;
  if (op->in_place)
    candidates = op->in_place[output];
  else if (output == 0)
    candidates = op->def->flags & TFC_OP_INPLACE ? all : op->def->flags & TFC_OP_INPLACE_FIRST ? all & 1 : 0;
  for (uint32_t k = 0; k < op->input_count && k < 32; k++) {
    struct block *b = candidates >> k & 1 ? block_read(p, k) : NULL;
    if (!b || !b->placed || b->kept || b->reused || b->location != out->location || b->size != out->size) continue;
    if (p->ir->values.data[op->inputs[k].value].bytes != p->ir->values.data[op->outputs[output]].bytes) continue;
    uint32_t own = 0;
    bool refused = false; // another input is in the same block, which the output must not overwrite
    for (uint32_t m = 0; m < op->input_count; m++) {
      if (block_read(p, m) != b) continue;
      own++;
      refused = refused || m >= 32 || !(candidates >> m & 1);
    }
    if (!refused && b->readers == own && covers(clock, b->condition, p->a->queue_count)) return b;
  }
  return NULL;
}

static tfc_status plan_item(struct planner *p, uint32_t index) {
  const struct tfc_ir *ir = p->ir;
  const struct tfc_item *item = &p->a->items[index];
  p->now = index;
  const uint32_t *clock = p->a->clocks + (size_t)index * p->a->queue_count;
  if (item->op == TFC_NONE) { // a copy
    const struct tfc_plan_copy *copy = &p->a->transfers[item->transfer];
    uint32_t to = p->block_of_copy[item->transfer], from = p->block_of_value[copy->value];
    if (to != TFC_NONE) {
      TFC_RETURN_IF_ERROR(allocate(p, &p->blocks[to], clock));
      p->plan->copy_offset[item->transfer] = p->blocks[to].offset;
      done_by(p, &p->blocks[to], item);
      if (p->blocks[to].readers == 0) TFC_RETURN_IF_ERROR(release(p, &p->blocks[to]));
    }
    if (from != TFC_NONE) {
      done_by(p, &p->blocks[from], item);
      if (--p->blocks[from].readers == 0) TFC_RETURN_IF_ERROR(release(p, &p->blocks[from]));
    }
    return NULL;
  }
  const struct tfc_ir_op *op = &ir->ops.data[item->op];
  for (uint32_t i = 0; i < op->output_count; i++) {
    uint32_t v = op->outputs[i];
    if (v == TFC_NONE || p->block_of_value[v] == TFC_NONE || ir->values.data[v].alias != TFC_NONE) continue;
    struct block *b = &p->blocks[p->block_of_value[v]];
    struct block *same = in_place(p, op, i, b, clock);
    if (same) {
      b->offset = same->offset;
      b->placed = true;
      b->from = index;
      b->inside = (uint32_t)(same - p->blocks);
      same->reused = true;
    } else {
      TFC_RETURN_IF_ERROR(allocate(p, b, clock));
    }
    p->plan->value_offset[v] = b->offset;
    done_by(p, b, item);
  }
  for (uint32_t k = 0; k < op->input_count; k++) {
    struct block *b = block_read(p, k);
    if (!b) continue;
    done_by(p, b, item);
    if (--b->readers == 0 && !b->reused) TFC_RETURN_IF_ERROR(release(p, b));
  }
  for (uint32_t i = 0; i < op->output_count; i++) { // frees outputs without readers
    uint32_t v = op->outputs[i];
    if (v == TFC_NONE || p->block_of_value[v] == TFC_NONE || ir->values.data[v].alias != TFC_NONE) continue;
    struct block *b = &p->blocks[p->block_of_value[v]];
    if (b->readers == 0) TFC_RETURN_IF_ERROR(release(p, b));
  }
  return NULL;
}

// --- Choosing places with all lifetimes known ----------------------------------------------------------------------
// Places are chosen for the largest blocks first, which leaves fewer gaps than choosing in the order of the items. Two
// blocks may share a place if one begins after all readers of the other have ended. The result is used if it needs less
// memory.
enum { MOST_BLOCKS = 6000, MOST_ON_SEVERAL = 3000 };

static int by_size(const void *a, const void *b) {
  const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
  if (x->size != y->size) return x->size < y->size ? 1 : -1;
  return x->from != y->from ? (x->from > y->from ? 1 : -1) : (x > y) - (x < y);
}

static uint32_t place_of(const struct planner *p, uint32_t block) {
  while (p->blocks[block].inside != TFC_NONE) block = p->blocks[block].inside;
  return block;
}

static bool begins_after(const struct planner *p, const struct block *b, const struct block *other) {
  uint32_t n = p->a->queue_count;
  return !other->kept && covers(p->a->clocks + (size_t)b->from * n, other->condition, n);
}

static tfc_status place_by_size(struct planner *p, uint16_t location) {
  struct block **blocks = TFC_ARENA_ARRAY(p->arena, struct block *, p->block_count + 1);
  struct block **placed = TFC_ARENA_ARRAY(p->arena, struct block *, p->block_count + 1); // sorted by offset
  uint64_t *offsets = TFC_ARENA_ARRAY(p->arena, uint64_t, p->block_count + 1), top = 0;
  if (!blocks || !placed || !offsets) return tfc_status_no_memory("planning a step");
  uint32_t count = 0, placed_count = 0;
  for (uint32_t i = 0; i < p->block_count; i++) {
    struct block *b = &p->blocks[i];
    if (b->location == location && b->placed && b->inside == TFC_NONE) blocks[count++] = b;
  }
  qsort(blocks, count, sizeof *blocks, by_size);
  for (uint32_t i = 0; i < count; i++) {
    struct block *b = blocks[i];
    uint64_t at = 0;
    uint32_t k = 0;
    for (; k < placed_count; k++) {
      const struct block *other = placed[k];
      uint64_t offset = offsets[other - p->blocks];
      if (offset + other->size <= at || begins_after(p, other, b) || begins_after(p, b, other)) continue;
      if (offset >= at + b->size) break;
      at = offset + other->size;
    }
    offsets[b - p->blocks] = at;
    if (at + b->size > top) top = at + b->size;
    for (k = placed_count++; k > 0 && offsets[placed[k - 1] - p->blocks] > at; k--) placed[k] = placed[k - 1];
    placed[k] = b;
  }
  if (top >= p->plan->size[location]) return NULL;
  p->plan->size[location] = top;
  for (uint32_t i = 0; i < p->block_count; i++)
    if (p->blocks[i].placed && p->blocks[i].location == location) p->blocks[i].offset = offsets[place_of(p, i)];
  return NULL;
}

static tfc_status place_again(struct planner *p) {
  bool one = true;
  for (uint32_t i = 0; i < p->a->item_count; i++) one = one && p->a->items[i].queue == p->a->items[0].queue;
  if (p->block_count > (one ? MOST_BLOCKS : MOST_ON_SEVERAL)) return NULL;
  // A place is occupied until everything that was computed in it has been read.
  for (uint32_t i = 0; i < p->block_count; i++) {
    const struct block *b = &p->blocks[i];
    struct block *place = &p->blocks[place_of(p, i)];
    place->kept |= b->kept || (!b->freed && !b->reused);
    for (uint32_t q = 0; q < p->a->queue_count; q++)
      if (b->placed && b->condition[q] > place->condition[q]) place->condition[q] = b->condition[q];
  }
  for (uint16_t l = 0; l <= p->ir->device_count; l++) TFC_RETURN_IF_ERROR(place_by_size(p, l));
  for (size_t v = 0; v < p->ir->values.count; v++)
    if (p->plan->value_offset[v] != UINT64_MAX) p->plan->value_offset[v] = p->blocks[p->block_of_value[v]].offset;
  for (uint32_t t = 0; t < p->a->transfer_count; t++)
    if (p->plan->copy_offset[t] != UINT64_MAX) p->plan->copy_offset[t] = p->blocks[p->block_of_copy[t]].offset;
  return NULL;
}

// Marks large results that are sent to another task. They get no place, but memory of their own in each step, which the
// message keeps until it is sent. Without that, they would be copied, since the next step writes to the arena.
static void mark_sent(const struct tfc_ir *ir, bool *sent) {
  for (size_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->def->role != TFC_ROLE_SEND || ir->devices[op->device]->info.address_space)
      continue;
    const uint32_t v = op->inputs[0].value;
    const struct tfc_ir_value *value = v == TFC_NONE ? NULL : &ir->values.data[v];
    if (value && value->kind == TFC_IR_OP && value->bytes >= SENT && tfc_value_location(ir, value) == op->device)
      sent[v] = true;
  }
  // A value that is read with another shape needs an address that is the same in every step.
  for (size_t v = 0; v < ir->values.count; v++)
    if (ir->values.data[v].alias != TFC_NONE) sent[v] = sent[ir->values.data[v].alias] = false;
  for (size_t i = 0; i < ir->ops.count; i++)
    for (uint32_t k = 0; k < ir->ops.data[i].input_count; k++)
      if (ir->ops.data[i].inputs[k].view && ir->ops.data[i].inputs[k].value != TFC_NONE)
        sent[ir->ops.data[i].inputs[k].value] = false;
}

tfc_status tfc_memory_plan_make(const struct tfc_ir *ir, const struct tfc_arrangement *a, struct tfc_arena *arena,
                                struct tfc_memory_plan *out) {
  tfc_status s = NULL;
  struct tfc_arena scratch = {.block_size = tfc_plan_block_size(a->item_count) / 2};
  struct tfc_memory_plan plan = {0};
  struct planner p = {.ir = ir, .a = a, .arena = &scratch, .plan = &plan};
  uint32_t locations = ir->device_count + 1;
  size_t values = ir->values.count;
  plan.value_offset = TFC_ARENA_ARRAY(arena, uint64_t, values + 1);
  plan.copy_offset = TFC_ARENA_ARRAY(arena, uint64_t, a->transfer_count + 1);
  plan.size = TFC_ARENA_ARRAY(arena, uint64_t, locations);
  p.free = TFC_ARENA_ARRAY(&scratch, range_list, locations);
  p.freed = TFC_ARENA_ARRAY(&scratch, range_list, locations);
  p.blocks = tfc_arena_alloc(&scratch, (values + a->transfer_count + 1) * sizeof *p.blocks);
  p.conditions = TFC_ARENA_ARRAY(&scratch, uint32_t, (values + a->transfer_count + 1) * a->queue_count);
  p.block_of_value = TFC_ARENA_ARRAY(&scratch, uint32_t, values + 1);
  p.block_of_copy = TFC_ARENA_ARRAY(&scratch, uint32_t, a->transfer_count + 1);
  bool *sent = TFC_ARENA_ARRAY(&scratch, bool, values + 1);
  if (!plan.value_offset || !plan.copy_offset || !plan.size || !p.free || !p.freed || !p.blocks || !p.conditions ||
      !p.block_of_value || !p.block_of_copy || !sent)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  mark_sent(ir, sent);
  for (size_t v = 0; v < values; v++) {
    const struct tfc_ir_value *value = &ir->values.data[v];
    plan.value_offset[v] = UINT64_MAX;
    p.block_of_value[v] = TFC_NONE;
    if (value->kind != TFC_IR_OP || ir->ops.data[value->op].dead || !value->planned || sent[v]) continue;
    new_block(&p, value->bytes, tfc_value_location(ir, value), &p.block_of_value[v]);
    p.blocks[p.block_of_value[v]].kept = value->fetched;
  }
  for (size_t v = 0; v < values; v++) { // the output of an operation that makes a view is in the memory of its input
    uint32_t root = (uint32_t)v;
    while (ir->values.data[root].alias != TFC_NONE) root = ir->values.data[root].alias;
    if (root != v) p.block_of_value[v] = p.block_of_value[root];
  }
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *copy = &a->transfers[t];
    const struct tfc_ir_value *value = &ir->values.data[copy->value];
    plan.copy_offset[t] = UINT64_MAX;
    p.block_of_copy[t] = TFC_NONE;
    if (copy->item == TFC_NONE) continue;
    bool placed = value->kind == TFC_IR_OP ? value->planned
                                           : tfc_shape_is_static(&value->shape) && tfc_dtype_is_plain(value->dtype);
    if (placed) new_block(&p, value->bytes, copy->target, &p.block_of_copy[t]);
    if (p.block_of_value[copy->value] != TFC_NONE) p.blocks[p.block_of_value[copy->value]].readers++;
  }
  TFC_TRY(s, find_reads(&p));
  for (uint32_t i = 0; i < a->item_count; i++) TFC_TRY(s, plan_item(&p, i));
  TFC_TRY(s, place_again(&p));
  *out = plan;
out:
  for (uint32_t l = 0; p.free && p.freed && l < locations; l++) {
    tfc_array_free(&p.free[l]);
    tfc_array_free(&p.freed[l]);
  }
  tfc_arena_deinit(&scratch);
  return s;
}
