// Finds which tensors a plan in ready order may move between devices, and makes a row for each in profiles; each input
// of a node gets the number of its first row. A value stays on the device where it was computed until a node on another
// device reads it. Nodes that only pass a value on do not move it, so one tensor of the graph may come from several
// devices (through a Merge). Only when the step runs is it known which tensors really move.
#include <stdlib.h>

#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/exec/variables.h"

struct places { // where each output of each node may be: a bit for each device, and one for the host
  const struct tfc_plan *plan;
  const struct tfc_dynamic *d;
  uint32_t *first; // [nodes] number of its first output
  uint64_t *sets;  // [outputs * words]
  uint32_t words, host;
  uint32_t *stack, depth;
  bool *waits; // [nodes] it is on the stack
};

static uint64_t *set_of(const struct places *p, uint32_t node, uint32_t output) {
  return p->sets + (size_t)(p->first[node] + output) * p->words;
}

static bool own_space(const struct places *p, const struct tfc_dnode *n) {
  return p->plan->session->devices[n->device]->info.address_space != 0;
}

static bool hands_on(const struct tfc_dnode *n) {
  return n->kind == TFC_DNODE_PASS || n->kind == TFC_DNODE_SPREAD || n->kind == TFC_DNODE_SWITCH ||
         n->kind == TFC_DNODE_MERGE;
}

static struct tfc_output tensor_of(const struct places *p, const struct tfc_dnode *n, uint32_t output) {
  return n->kind == TFC_DNODE_FEED ? p->plan->feeds[n->node] : (struct tfc_output){n->node, (int32_t)output};
}

static tfc_dtype dtype_of(const struct places *p, const struct tfc_dnode *n, uint32_t output) {
  return tfc_output_dtype(p->plan->ir.graph, tensor_of(p, n, output));
}
static bool is_plain(const struct places *p, const struct tfc_dnode *n, uint32_t output) {
  return tfc_dtype_is_plain(tfc_dtype_base(dtype_of(p, n, output)));
}

// Returns the place where a node computes an output. (For outputs that it only passes on, its edges add the places.)
static uint32_t made_at(const struct places *p, const struct tfc_dnode *n, uint32_t output) {
  const tfc_dtype dtype = dtype_of(p, n, output);
  bool on_device = own_space(p, n) && is_plain(p, n, output);
  if (tfc_dtype_is_ref(dtype)) // at the device of the variable
    on_device = on_device && !tfc_variable_beside(p->plan->session->devices[n->device], tfc_dtype_base(dtype));
  else
    on_device = on_device && n->kind == TFC_DNODE_OP && !n->direct && !tfc_host_bit(n->host.outputs, output);
  return on_device ? n->device : p->host;
}

static void join(struct places *p, uint32_t node, uint32_t output, const uint64_t *from) {
  uint64_t *to = set_of(p, node, output), more = 0;
  for (uint32_t i = 0; i < p->words; i++) {
    more |= from[i] & ~to[i];
    to[i] |= from[i];
  }
  if (!more || p->waits[node]) return;
  p->waits[node] = true;
  p->stack[p->depth++] = node;
}

static void spread(struct places *p, const struct tfc_dedge *e, const uint64_t *from) {
  const struct tfc_dnode *to = &p->d->nodes[e->to];
  switch (to->kind) {
  case TFC_DNODE_PASS:
  case TFC_DNODE_MERGE: join(p, e->to, 0, from); break;
  case TFC_DNODE_SPREAD: join(p, e->to, e->slot, from); break;
  case TFC_DNODE_SWITCH:
    for (uint32_t i = 0; e->slot == 0 && i < to->output_count; i++) join(p, e->to, i, from);
    break;
  default: break;
  }
}

static void find_places(struct places *p) {
  for (uint32_t i = 0; i < p->d->node_count; i++) {
    const struct tfc_dnode *n = &p->d->nodes[i];
    for (uint32_t k = 0; k < n->output_count; k++) {
      if (hands_on(n) && !(n->kind == TFC_DNODE_MERGE && k == 1)) continue;
      uint32_t at = made_at(p, n, k);
      set_of(p, i, k)[at / 64] |= UINT64_C(1) << at % 64;
    }
    p->waits[i] = true;
    p->stack[p->depth++] = i;
  }
  while (p->depth) {
    uint32_t i = p->stack[--p->depth];
    const struct tfc_dnode *n = &p->d->nodes[i];
    p->waits[i] = false;
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++)
      if (p->d->edges[e].output >= 0) spread(p, &p->d->edges[e], set_of(p, i, (uint32_t)p->d->edges[e].output));
  }
}

// Returns the place where a node needs its input; TFC_NONE: it may be anywhere.
static uint32_t wanted_at(const struct places *p, const struct tfc_dnode *n, uint32_t slot) {
  switch (n->kind) {
  case TFC_DNODE_OP:
    if (slot < 32 && n->reference_inputs >> slot & 1) return TFC_NONE;
    return own_space(p, n) && !n->direct && !tfc_host_bit(n->host.inputs, slot) ? n->device : p->host;
  case TFC_DNODE_SWITCH: return slot + 1 == n->input_count ? p->host : TFC_NONE;
  case TFC_DNODE_FETCH: return p->host;
  default: return TFC_NONE;
  }
}

static uint16_t location(const struct places *p, uint32_t at) {
  return at == p->host ? TFC_PLAN_HOST : (uint16_t)at;
}

typedef TFC_ARRAY(struct tfc_plan_transfer) rows;
// Adds the transfers of one tensor to one place. *out: the first of them, or TFC_NONE.
static bool add_rows(const struct places *p, uint32_t node, uint32_t output, uint32_t wanted, const struct tfc_build *b,
                     rows *out_rows, uint32_t *out) {
  const struct tfc_output tensor = tensor_of(p, &p->d->nodes[node], output);
  const struct tfc_graph *g = p->plan->ir.graph;
  const struct tfc_shape *shape =
      &b->ground->shapes.shapes[g->nodes[tensor.node].output_begin + (uint32_t)tensor.index];
  size_t bytes = 0;
  if (tfc_shape_is_static(shape))
    tfc_status_free(tfc_tensor_bytes(tfc_dtype_base(tfc_output_dtype(g, tensor)), shape, &bytes));
  *out = TFC_NONE;
  for (uint32_t at = 0; at <= p->host; at++) {
    if (at == wanted || !(set_of(p, node, output)[at / 64] >> at % 64 & 1)) continue;
    if (*out == TFC_NONE) *out = (uint32_t)out_rows->count;
    struct tfc_plan_transfer row = {
        .tensor = tensor, .source = location(p, at), .target = location(p, wanted), .bytes = bytes};
    if (!tfc_array_push(out_rows, row)) return false;
  }
  return true;
}

static tfc_status make_rows(struct places *p, const struct tfc_build *b, struct tfc_dynamic *d, rows *out) {
  struct { // for the current output
    uint32_t wanted, first;
  } groups[64];
  for (uint32_t i = 0; i < d->node_count; i++) {
    const struct tfc_dnode *n = &d->nodes[i];
    uint32_t count = 0;
    int32_t output = TFC_CONTROL;
    for (uint32_t e = n->edge_begin; e < n->edge_end; e++) { // sorted by output
      const struct tfc_dedge *edge = &d->edges[e];
      if (edge->output < 0 || !is_plain(p, n, (uint32_t)edge->output)) continue;
      const struct tfc_dnode *to = &d->nodes[edge->to];
      const uint32_t wanted = wanted_at(p, to, edge->slot);
      if (edge->output != output) count = 0;
      output = edge->output;
      if (wanted == TFC_NONE) continue;
      uint32_t k = 0;
      while (k < count && groups[k].wanted != wanted) k++;
      if (k == count) { // there is no room for more places: forgets the others, so their rows may be added twice
        if (count == sizeof groups / sizeof *groups) k = count = 0;
        groups[k].wanted = wanted;
        if (!add_rows(p, i, (uint32_t)output, wanted, b, out, &groups[k].first))
          return tfc_status_no_memory("planning a step");
        count++;
      }
      d->moves[to->moves + edge->slot] = groups[k].first;
    }
  }
  return NULL;
}

tfc_status tfc_dynamic_find_transfers(const struct tfc_build *b, struct tfc_plan *plan) {
  tfc_status s = NULL;
  struct tfc_dynamic *d = plan->dynamic;
  struct places p = {.plan = plan, .d = d, .host = plan->session->device_count};
  rows found = {0};
  bool any = false;
  uint32_t outputs = 0, inputs = 0;
  for (uint32_t k = 0; k < plan->session->device_count; k++) any |= plan->session->devices[k]->info.address_space != 0;
  if (!any) return NULL;
  p.words = p.host / 64 + 1;
  p.first = malloc((d->node_count + 1u) * sizeof *p.first);
  p.stack = malloc((d->node_count + 1u) * sizeof *p.stack);
  p.waits = calloc(d->node_count + 1u, sizeof *p.waits);
  if (!p.first || !p.stack || !p.waits) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < d->node_count; i++) {
    p.first[i] = outputs;
    outputs += d->nodes[i].output_count;
    d->nodes[i].moves = inputs;
    inputs += d->nodes[i].input_count;
  }
  p.sets = calloc((size_t)outputs * p.words + 1, sizeof *p.sets);
  d->moves = TFC_ARENA_ARRAY(&plan->arena, uint32_t, inputs + 1);
  if (!p.sets || !d->moves) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < inputs; i++) d->moves[i] = TFC_NONE;
  find_places(&p);
  TFC_TRY(s, make_rows(&p, b, d, &found));
  struct tfc_plan_transfer *transfers = TFC_ARENA_ARRAY(&plan->arena, struct tfc_plan_transfer, found.count + 1);
  if (!transfers) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (found.count) memcpy(transfers, found.data, found.count * sizeof *transfers);
  plan->info.transfers = transfers;
  plan->info.transfer_count = (uint32_t)found.count;
out:
  tfc_array_free(&found);
  free(p.first);
  free(p.sets);
  free(p.stack);
  free(p.waits);
  return s;
}

uint32_t tfc_dynamic_transfer(const struct tfc_plan *plan, const struct tfc_dnode *n, uint32_t slot, uint16_t from) {
  const struct tfc_plan_info *info = &plan->info;
  const uint32_t first = plan->dynamic->moves ? plan->dynamic->moves[n->moves + slot] : TFC_NONE;
  for (uint32_t i = first; i < info->transfer_count; i++) {
    const struct tfc_plan_transfer *t = &info->transfers[i], *like = &info->transfers[first];
    if (t->tensor.node != like->tensor.node || t->tensor.index != like->tensor.index || t->target != like->target)
      break;
    if (t->source == from) return i;
  }
  return TFC_COPY_UNTRACED;
}
