// Each node gets a number that depends on its own properties, then DEPTH times a new number that depends on its own,
// its producers' and its consumers' numbers (colour refinement; Weisfeiler and Leman 1968). The number of a unit is the
// sum of its nodes' numbers; units with equal numbers are of one kind.
#include "placer/search/kinds.h"

#include <stdlib.h>

#include "runtime/base/map.h"

enum { DEPTH = 3 };

struct keyed {
  uint64_t key;
  uint32_t position, unit;
};
static int compare_keyed(const void *x, const void *y) {
  const struct keyed *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->position > b->position) - (a->position < b->position);
}

static uint64_t mix(uint64_t a, uint64_t b) {
  return tfc_hash_bytes((uint64_t[]){a, b}, 2 * sizeof a);
}

static uint64_t own_number(const struct tfc_problem *p, uint32_t n) {
  const struct tfc_cost_graph *g = p->graph;
  uint64_t number = p->unit_pin[p->unit[n]];
  for (uint32_t c = 0; c < p->class_count; c++) number = mix(number, (uint64_t)p->time[(size_t)c * p->node_count + n]);
  for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) number = mix(number, g->bytes[t]);
  return number;
}

static uint64_t number_with_neighbours(const struct tfc_cost_graph *g, const uint64_t *number, uint32_t n) {
  uint64_t producers = 0, consumers = 0; // sums, so that the order of the neighbours does not count
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
    producers += mix(number[g->producer[g->input[i]]], 1);
  for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
    consumers += mix(number[g->consumer[c]], 2);
  return mix(mix(number[n], producers), consumers);
}

tfc_status tfc_kinds_find(struct tfc_kinds *k, const struct tfc_problem *p) {
  const size_t nodes = (size_t)p->node_count + 1, units = (size_t)p->unit_count + 1;
  tfc_status s = NULL;
  uint64_t *number = calloc(nodes, sizeof *number), *next = calloc(nodes, sizeof *next);
  struct keyed *list = calloc(units, sizeof *list);
  *k = (struct tfc_kinds){0};
  k->of = calloc(units, sizeof *k->of), k->first = calloc(units + 1, sizeof *k->first);
  k->unit = calloc(units, sizeof *k->unit), k->at = calloc(units, sizeof *k->at);
  if (!number || !next || !list || !k->of || !k->first || !k->unit || !k->at)
    TFC_TRY(s, tfc_status_no_memory("kinds of units"));
  for (uint32_t n = 0; n < p->node_count; n++) number[n] = own_number(p, n);
  for (int round = 0; round < DEPTH; round++) {
    for (uint32_t n = 0; n < p->node_count; n++) next[n] = number_with_neighbours(p->graph, number, n);
    uint64_t *old = number;
    number = next, next = old;
  }
  for (uint32_t u = 0; u < p->unit_count; u++) list[u] = (struct keyed){.position = TFC_NONE, .unit = u};
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = p->graph->topological[i];
    struct keyed *unit = &list[p->unit[n]];
    unit->key += number[n];
    if (unit->position == TFC_NONE) unit->position = i;
  }
  if (p->unit_count > 1) qsort(list, p->unit_count, sizeof *list, compare_keyed);
  for (uint32_t i = 0; i < p->unit_count; i++) {
    if (i == 0 || list[i].key != list[i - 1].key) k->first[k->count++] = i;
    k->of[list[i].unit] = k->count - 1, k->unit[i] = list[i].unit, k->at[list[i].unit] = i;
  }
  k->first[k->count] = p->unit_count;
out:
  free(number), free(next), free(list);
  if (s) tfc_kinds_deinit(k);
  return s;
}

void tfc_kinds_deinit(struct tfc_kinds *k) {
  free(k->of), free(k->first), free(k->unit), free(k->at);
  *k = (struct tfc_kinds){0};
}
