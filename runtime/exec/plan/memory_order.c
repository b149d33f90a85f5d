// Operations of one device that do not run in the planned order need waits where memory is reused: one that writes to a
// place waits for all operations that wrote or read it earlier in the planned order.
#include "runtime/exec/plan/memory_order.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/exec/plan/plan_internal.h"

struct user { // an item that uses a range of memory
  uint32_t item, next;
};
struct range { // [begin, end) with the operation that wrote it, and the items that have read it since then
  uint64_t begin, end;
  uint32_t users; // TFC_NONE: the end
};
struct orderer {
  TFC_ARRAY(struct user) users;
  TFC_ARRAY(struct range) ranges; // by address, disjoint
  tfc_memory_edge_list *edges;
  uint32_t *last; // [items] 1 + the last item for which an edge from it was added; 0: none
};

static size_t first_behind(const struct orderer *o, uint64_t address) {
  size_t low = 0, high = o->ranges.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (o->ranges.data[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool use(struct orderer *o, struct range *r, uint32_t item) {
  if (!tfc_array_push(&o->users, (struct user){item, r->users})) return false;
  r->users = (uint32_t)o->users.count - 1;
  return true;
}

// Makes `item` wait for all earlier items that use the memory that it writes. TFC_NONE: a copy, which runs elsewhere
// and starts after the ends of all these items. So the range is only there for those that read it.
static bool write(struct orderer *o, uint32_t item, uint64_t begin, uint64_t end) {
  if (begin == end) return true;
  size_t at = first_behind(o, begin), upto = at;
  struct range left = {0}, right = {0}, own = {begin, end, TFC_NONE};
  for (; upto < o->ranges.count && o->ranges.data[upto].begin < end; upto++) {
    struct range r = o->ranges.data[upto];
    if (r.begin < begin) left = (struct range){r.begin, begin, r.users};
    if (r.end > end) right = (struct range){end, r.end, r.users};
    for (uint32_t u = item == TFC_NONE ? TFC_NONE : r.users; u != TFC_NONE; u = o->users.data[u].next) {
      uint32_t from = o->users.data[u].item;
      if (from == item || o->last[from] == item + 1) continue;
      o->last[from] = item + 1;
      if (!tfc_array_push(o->edges, (struct tfc_memory_edge){from, item})) return false;
    }
  }
  if (item != TFC_NONE && !use(o, &own, item)) return false;
  struct range put[3];
  size_t count = 0, gone = upto - at;
  if (left.end) put[count++] = left;
  put[count++] = own;
  if (right.end) put[count++] = right;
  for (size_t k = gone; k < count; k++)
    if (!tfc_array_push(&o->ranges, own)) return false; // makes room at the end; the elements are moved below
  size_t behind = o->ranges.count - (count > gone ? count - gone : 0) - upto;
  memmove(o->ranges.data + at + count, o->ranges.data + upto, behind * sizeof own);
  memcpy(o->ranges.data + at, put, count * sizeof own);
  if (gone > count) o->ranges.count -= gone - count;
  return true;
}

static bool read(struct orderer *o, uint32_t item, uint64_t begin, uint64_t end) {
  for (size_t k = first_behind(o, begin); k < o->ranges.count && o->ranges.data[k].begin < end; k++)
    if (!use(o, &o->ranges.data[k], item)) return false;
  return true;
}

// The place of an operation's input at this location; false: it has none there.
static bool place_of_input(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                           const struct tfc_memory_plan *memory, const struct tfc_ir_op *op, uint32_t input,
                           uint16_t location, uint64_t *out_begin, uint64_t *out_end) {
  uint32_t v = op->inputs[input].value;
  if (v == TFC_NONE || op->inputs[input].variable != TFC_NONE || tfc_input_location(ir, op, input) != location)
    return false;
  const uint32_t t =
      a->first_copy[v] == TFC_NONE ? TFC_NONE : tfc_find_copy(a, ir, v, tfc_input_location(ir, op, input));
  if (t != TFC_NONE && a->transfers[t].item != TFC_NONE) {
    *out_begin = memory->copy_offset[t];
  } else {
    while (ir->values.data[v].alias != TFC_NONE) v = ir->values.data[v].alias;
    if (tfc_value_location(ir, &ir->values.data[v]) != location) return false; // it is handed over, and read there
    *out_begin = memory->value_offset[v];
  }
  *out_end = *out_begin + ir->values.data[v].bytes;
  return *out_begin != UINT64_MAX;
}

static tfc_status order(struct orderer *o, const struct tfc_ir *ir, const struct tfc_arrangement *a,
                        const struct tfc_memory_plan *memory, uint16_t location) {
  for (uint32_t i = 0; i < a->item_count; i++) {
    if (a->items[i].op == TFC_NONE) {
      const struct tfc_plan_copy *c = &a->transfers[a->items[i].transfer];
      const uint64_t at = memory->copy_offset[a->items[i].transfer];
      if (c->target == location && at != UINT64_MAX && !write(o, TFC_NONE, at, at + ir->values.data[c->value].bytes))
        return tfc_status_no_memory("planning a step");
      continue;
    }
    if (ir->ops.data[a->items[i].op].device != location) continue;
    const struct tfc_ir_op *op = &ir->ops.data[a->items[i].op];
    uint64_t begin = 0, end = 0;
    bool ok = true;
    for (uint32_t k = 0; k < op->output_count && ok; k++) {
      const uint32_t v = op->outputs[k];
      if (v == TFC_NONE || ir->values.data[v].alias != TFC_NONE || memory->value_offset[v] == UINT64_MAX ||
          tfc_value_location(ir, &ir->values.data[v]) != location)
        continue;
      ok = write(o, i, memory->value_offset[v], memory->value_offset[v] + ir->values.data[v].bytes);
    }
    for (uint32_t k = 0; k < op->input_count && ok; k++)
      if (place_of_input(ir, a, memory, op, k, location, &begin, &end)) ok = read(o, i, begin, end);
    if (!ok) return tfc_status_no_memory("planning a step");
  }
  return NULL;
}

tfc_status tfc_memory_order(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                            const struct tfc_memory_plan *memory, uint16_t location, tfc_memory_edge_list *out) {
  struct orderer o = {.edges = out, .last = calloc(a->item_count + 1u, sizeof *o.last)};
  tfc_status s = o.last ? order(&o, ir, a, memory, location) : tfc_status_no_memory("planning a step");
  tfc_array_free(&o.users);
  tfc_array_free(&o.ranges);
  free(o.last);
  return s;
}
