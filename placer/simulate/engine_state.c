// The engine's state: lays it out in one block, and starts, saves and restores it.
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/engine_queues.h"

static size_t carve(size_t *at, size_t count, size_t size) {
  size_t here = (*at + 63) & ~(size_t)63;
  *at = here + count * size;
  return here;
}

static tfc_status make_fours(struct tfc_engine *e) {
  const struct tfc_cost_graph *g = e->problem->graph;
  const uint32_t tensors = e->problem->tensor_count;
  e->first_four = calloc(tensors + 1u, sizeof *e->first_four);
  for (uint32_t t = 0; e->first_four && t < tensors; t++)
    e->first_four[t + 1] = e->first_four[t] + (g->first_consumer[t + 1] - g->first_consumer[t] + 3) / 4;
  if (e->first_four) e->fours = malloc(sizeof *e->fours * (4 * (size_t)e->first_four[tensors] + 1));
  if (!e->fours) {
    tfc_engine_deinit(e);
    return tfc_status_no_memory("a simulator");
  }
  for (uint32_t t = 0; t < tensors; t++)
    for (uint32_t i = 0; i < 4 * (e->first_four[t + 1] - e->first_four[t]); i++) {
      const uint32_t c = g->first_consumer[t] + i;
      e->fours[4 * (size_t)e->first_four[t] + i] =
          c < g->first_consumer[t + 1] ? g->consumer[c] : e->problem->node_count + i % 4;
    }
  return NULL;
}

static tfc_status make_pace(struct tfc_engine *e) {
  const struct tfc_cost_graph *g = e->problem->graph;
  const struct tfc_machine *m = e->problem->machine;
  e->pace = calloc(m->device_count, sizeof *e->pace);
  if (!e->pace) {
    tfc_engine_deinit(e);
    return tfc_status_no_memory("a simulator");
  }
  for (uint32_t d = 0; d < m->device_count; d++) {
    struct tfc_engine_pace *pace = &e->pace[d];
    uint32_t kind = 0;
    while (kind < g->kind_count && !tfc_str_equal(g->kind_names[kind], m->devices[d].kind)) kind++;
    for (uint32_t i = 0; i < m->device_count; i++) pace->neighbours |= (uint64_t)(e->kind_of[i] == e->kind_of[d]) << i;
    pace->slowdown = m->devices[d].slowdown, pace->slowdown_count = m->devices[d].slowdown_count;
    // If no node has a time for this kind, no node runs there, so any column may be used.
    pace->time_us = g->time_us + (kind < g->kind_count ? kind : 0), pace->stride = g->kind_count;
    pace->dispatch = (int64_t)(m->devices[d].dispatch_us * 1e6 + 0.5);
  }
  return NULL;
}

tfc_status tfc_engine_init(struct tfc_engine *e, const struct tfc_problem *p, bool live) {
  *e = (struct tfc_engine){.problem = p, .live = live};
  const size_t nodes = p->node_count, devices = p->device_count, wires = p->wire_count + 1;
  const size_t held = live ? p->tensor_count : 0;
  e->plain = !live && !p->has_occupancy && !p->has_slowdown;
  e->masks = (uint32_t)(devices + 63) / 64;
  size_t bits = nodes;
  do { // each level has one word for 64 words of the level below
    e->level_at[e->levels++] = e->words;
    bits = (bits + 63) / 64;
    e->words += (uint32_t)bits;
  } while (bits > 1);
  e->lean = e->plain && devices <= FILLER_DEVICE, e->inbox = !live && p->has_occupancy && devices <= FILLER_DEVICE;
  e->apart = e->wired = true;
  for (size_t i = 0; i < devices * devices; i++) {
    if (!p->pair[i].linked) continue;
    e->wired &= p->pair[i].wire != TFC_NONE;
    e->inbox &= p->pair[i].wire == TFC_NONE && p->pair[i].occupies == TFC_OCCUPIES_RECEIVER;
    e->apart &= p->pair[i].latency > 0;
  }
  // A time and the number of a leaf are packed into 64 bits, if the longest possible step allows that.
  e->leaf_bits = e->inbox ? INBOX_LEAF_BITS : LEAST_LEAF_BITS;
  while ((UINT64_C(1) << e->leaf_bits) < devices + p->wire_count) e->leaf_bits++;
  if (p->horizon < (double)(UINT64_C(1) << (62 - e->leaf_bits))) e->leaves = UINT32_C(1) << e->leaf_bits;
  e->wired &= e->leaves > 0, e->inbox &= e->leaves > 0, e->lean &= e->wired;
  size_t at = 0, tree = carve(&at, 2 * (size_t)e->leaves, sizeof *e->tree);
  size_t running = carve(&at, e->leaves, sizeof *e->running);
  size_t scalars = carve(&at, 1, sizeof *e->scalars), pending = carve(&at, nodes + 4, sizeof *e->pending);
  size_t ready = carve(&at, devices * e->words, sizeof *e->ready), left = carve(&at, devices, sizeof *e->left);
  size_t busy = carve(&at, devices, sizeof *e->busy), idle = carve(&at, e->masks, sizeof *e->idle);
  size_t has_ready = carve(&at, e->masks, sizeof *e->has_ready), head = carve(&at, wires, sizeof *e->wire_head);
  size_t tail = carve(&at, wires, sizeof *e->wire_tail), wire_busy = carve(&at, wires, sizeof *e->wire_busy);
  size_t root = carve(&at, devices, sizeof *e->heap_root), class = carve(&at, devices, sizeof *e->class_busy);
  size_t inbox = carve(&at, devices, sizeof *e->inbox_head), inbox_tail = carve(&at, devices, sizeof *e->inbox_tail);
  size_t holds = carve(&at, held, sizeof *e->holds), memory = carve(&at, devices, sizeof *e->memory);
  size_t peak = carve(&at, devices, sizeof *e->peak), first_transfer = carve(&at, held, sizeof *e->first_transfer);
  e->block_size = (at + 63) & ~(size_t)63;
  e->block = aligned_alloc(64, e->block_size);
  e->device = calloc(nodes + 4, sizeof *e->device);
  e->rank = calloc(nodes, sizeof *e->rank);
  e->by_rank = calloc(nodes, sizeof *e->by_rank);
  e->ended_nodes = calloc(devices, sizeof *e->ended_nodes);
  e->touched_wires = calloc(wires, sizeof *e->touched_wires);
  e->wire_touched = calloc(wires, 1);
  e->kind_of = calloc(devices, sizeof *e->kind_of);
  e->inputs = calloc(nodes, sizeof *e->inputs);
  e->sources = calloc(nodes, sizeof *e->sources);
  if (!e->inputs || !e->sources || !e->block || !e->device || !e->rank || !e->by_rank || !e->ended_nodes ||
      !e->touched_wires || !e->wire_touched || !e->kind_of || !tfc_array_reserve(&e->events, devices + wires + 16)) {
    tfc_engine_deinit(e);
    return tfc_status_no_memory("a simulator");
  }
  uint8_t *b = e->block;
  e->tree = (void *)(b + tree), e->running = (void *)(b + running);
  e->scalars = (void *)(b + scalars), e->pending = (void *)(b + pending), e->ready = (void *)(b + ready);
  e->left = (void *)(b + left), e->busy = (void *)(b + busy), e->idle = (void *)(b + idle);
  e->has_ready = (void *)(b + has_ready), e->wire_head = (void *)(b + head), e->wire_tail = (void *)(b + tail);
  e->wire_busy = b + wire_busy, e->heap_root = (void *)(b + root), e->class_busy = (void *)(b + class);
  e->holds = (void *)(b + holds), e->memory = (void *)(b + memory), e->peak = (void *)(b + peak);
  e->first_transfer = (void *)(b + first_transfer);
  e->inbox_head = (void *)(b + inbox), e->inbox_tail = (void *)(b + inbox_tail);
  for (uint32_t d = 0; d < devices; d++) {
    e->kind_of[d] = d;
    for (uint32_t c = 0; c < d && e->kind_of[d] == d; c++)
      if (tfc_str_equal(p->machine->devices[c].kind, p->machine->devices[d].kind)) e->kind_of[d] = c;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    e->inputs[n] = p->graph->first_input[n + 1] - p->graph->first_input[n];
    if (!e->inputs[n]) e->sources[e->source_count++] = n;
  }
  e->rank_now = p->rank, e->by_rank_now = p->by_rank;
  for (uint32_t i = 0; i < 4; i++) e->device[nodes + i] = FILLER_DEVICE;
  if (e->inbox) TFC_RETURN_IF_ERROR(make_pace(e));
  return e->lean || e->inbox ? make_fours(e) : NULL;
}

void tfc_engine_deinit(struct tfc_engine *e) {
  free(e->block), free(e->device), free(e->rank), free(e->by_rank), free(e->ended_nodes), free(e->touched_wires);
  free(e->wire_touched), free(e->kind_of), free(e->inputs), free(e->sources), free(e->first_four), free(e->fours);
  free(e->pace);
  tfc_array_free(&e->events);
  tfc_array_free(&e->transfers);
  tfc_array_free(&e->walk);
  tfc_array_free(&e->log);
  tfc_array_free(&e->log_sequence);
  *e = (struct tfc_engine){0};
}

bool tfc_engine_place(struct tfc_engine *e, const tfc_device_id *unit_device, const uint32_t *rank) {
  const struct tfc_problem *p = e->problem;
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (unit_device[u] >= p->device_count || !tfc_problem_allows(p, u, unit_device[u])) return false;
  for (uint32_t n = 0; n < p->node_count; n++) e->device[n] = unit_device[p->unit[n]];
  if (rank && rank != p->rank) {
    memcpy(e->rank, rank, sizeof *rank * p->node_count);
    for (uint32_t n = 0; n < p->node_count; n++) e->by_rank[rank[n]] = n;
    e->rank_now = e->rank, e->by_rank_now = e->by_rank;
  } else {
    e->rank_now = p->rank, e->by_rank_now = p->by_rank;
  }
  return true;
}

void tfc_engine_begin(struct tfc_engine *e) {
  const struct tfc_problem *p = e->problem;
  memset(e->block, 0, e->block_size);
  memset(e->tree, 0xff, sizeof *e->tree * 2 * e->leaves);
  memset(e->wire_head, 0xff, sizeof *e->wire_head * p->wire_count);
  memset(e->heap_root, 0xff, sizeof *e->heap_root * p->device_count);
  memset(e->inbox_head, 0xff, sizeof *e->inbox_head * p->device_count);
  for (uint32_t d = 0; d < p->device_count; d++) e->idle[d >> 6] |= UINT64_C(1) << (d & 63);
  e->starts = e->all_starts = 0;
  e->log.count = e->log_sequence.count = 0;
  e->walk.count = 0;
  memcpy(e->pending, e->inputs, sizeof *e->pending * p->node_count);
  for (uint32_t n = 0; n < p->node_count; n++) e->left[e->device[n]] += tfc_problem_time(p, n, e->device[n]);
  for (uint32_t i = 0; i < e->source_count; i++) {
    const uint32_t n = e->sources[i];
    if (e->arrival) e->arrival[n] = 0;
    ready_add(e, e->device[n], e->rank_now[n], e->levels);
  }
}

bool tfc_engine_save(struct tfc_engine *e, struct tfc_engine_save *save) {
  struct tfc_engine_scalars *s = e->scalars;
  if (!e->live)
    while (s->transfer_low < s->transfer_count && e->transfers.data[s->transfer_low].next == TFC_ENGINE_OVER)
      s->transfer_low++;
  size_t count = s->transfer_count - s->transfer_low;
  if (!save->block) save->block = malloc(e->block_size);
  if (!save->block || !tfc_array_reserve(&save->events, s->event_count + 1u) ||
      !tfc_array_reserve(&save->transfers, count + 1))
    return false;
  memcpy(save->block, e->block, e->block_size);
  memcpy(save->events.data, e->events.data, sizeof *e->events.data * s->event_count);
  if (count) memcpy(save->transfers.data, e->transfers.data + s->transfer_low, sizeof *e->transfers.data * count);
  save->transfers.count = count;
  save->time = next_end(e) < 0 ? 0 : next_end(e);
  save->starts = e->starts;
  return true;
}

// A member of the block in a saved state.
#define SAVED(e, block_, member) ((void *)((block_) + ((const uint8_t *)(e)->member - (e)->block)))

static void make_later(const struct tfc_engine *e, uint8_t *block, struct tfc_engine_event *events, int64_t shift) {
  struct tfc_engine_scalars *s = SAVED(e, block, scalars);
  uint64_t *tree = SAVED(e, block, tree);
  s->now += shift;
  for (uint32_t i = 0; i < 2 * e->leaves; i++)
    if (tree[i] != UINT64_MAX) tree[i] += (uint64_t)shift << e->leaf_bits;
  for (uint32_t i = 0; i < s->event_count; i++) events[i].time += shift;
}

void tfc_engine_save_shift(const struct tfc_engine *e, struct tfc_engine_save *save, int64_t shift) {
  make_later(e, save->block, save->events.data, shift);
  save->time += shift;
}

void tfc_engine_restore(struct tfc_engine *e, const struct tfc_engine_save *save, int64_t shift) {
  memcpy(e->block, save->block, e->block_size);
  memcpy(e->events.data, save->events.data, sizeof *e->events.data * e->scalars->event_count);
  if (save->transfers.count)
    memcpy(e->transfers.data + e->scalars->transfer_low, save->transfers.data,
           sizeof *e->transfers.data * save->transfers.count);
  e->starts = save->starts;
  e->walk.count = 0;
  if (shift) make_later(e, e->block, e->events.data, shift);
}

uint32_t tfc_engine_save_ended(const struct tfc_engine *e, const struct tfc_engine_save *save) {
  return ((const struct tfc_engine_scalars *)SAVED(e, save->block, scalars))->ended;
}

void tfc_engine_save_deinit(struct tfc_engine_save *save) {
  free(save->block);
  tfc_array_free(&save->events);
  tfc_array_free(&save->transfers);
  *save = (struct tfc_engine_save){0};
}

uint64_t tfc_engine_transfer_bytes(const struct tfc_engine *e) {
  uint64_t bytes = 0;
  if (e->count_bytes) return e->scalars->transfer_bytes;
  for (uint32_t i = 0; i < e->scalars->transfer_count; i++)
    bytes += e->problem->graph->bytes[e->transfers.data[i].tensor];
  return bytes;
}
