#include "placer/algo/lister.h"

#include <stdlib.h>
#include <string.h>

tfc_status tfc_lister_init(struct tfc_lister *l, const struct tfc_problem *p, bool insert) {
  const struct tfc_cost_graph *g = p->graph;
  *l = (struct tfc_lister){.problem = p, .insert = insert};
  l->device = malloc(sizeof *l->device * ((size_t)p->unit_count + 1));
  l->free_at = calloc(p->device_count, sizeof *l->free_at);
  l->memory = calloc(p->device_count, sizeof *l->memory);
  l->start = calloc(p->node_count, sizeof *l->start);
  l->finish = malloc(sizeof *l->finish * p->node_count);
  l->waiting = calloc(p->node_count, sizeof *l->waiting);
  l->ready = malloc(sizeof *l->ready * p->node_count);
  l->gaps = calloc(p->device_count, sizeof *l->gaps);
  if (!l->device || !l->free_at || !l->memory || !l->start || !l->finish || !l->waiting || !l->ready || !l->gaps) {
    tfc_lister_deinit(l);
    return tfc_status_no_memory("list scheduling");
  }
  for (uint32_t u = 0; u < p->unit_count; u++) l->device[u] = TFC_NONE;
  for (uint32_t n = 0; n < p->node_count; n++) {
    l->finish[n] = -1;
    l->waiting[n] = g->first_input[n + 1] - g->first_input[n];
    if (!l->waiting[n]) l->ready[l->ready_count++] = n;
  }
  return NULL;
}

void tfc_lister_deinit(struct tfc_lister *l) {
  for (uint32_t d = 0; l->gaps && d < l->problem->device_count; d++) free(l->gaps[d].begin), free(l->gaps[d].end);
  free(l->device), free(l->free_at), free(l->memory), free(l->start), free(l->finish), free(l->waiting);
  free(l->ready), free(l->gaps);
  *l = (struct tfc_lister){0};
}

bool tfc_lister_can(const struct tfc_lister *l, uint32_t node, uint32_t device) {
  const struct tfc_problem *p = l->problem;
  const uint32_t u = p->unit[node];
  if (l->device[u] != TFC_NONE) return l->device[u] == device;
  if (!tfc_problem_allows(p, u, device) || l->memory[device] + p->unit_memory[u] > p->limit[device]) return false;
  if (!p->has_missing_links) return true;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
    uint32_t from = l->device[p->unit[p->graph->producer[p->net_tensor[p->need[i]]]]];
    if (from != TFC_NONE && from != device && !tfc_problem_pair(p, from, device)->linked) return false;
  }
  for (uint32_t j = p->net_first[p->first_net[u]]; j < p->net_first[p->first_net[u + 1]]; j++) {
    uint32_t to = l->device[p->net_unit[j]];
    if (to != TFC_NONE && to != device && !tfc_problem_pair(p, device, to)->linked) return false;
  }
  return true;
}

static int64_t data_there(const struct tfc_lister *l, uint32_t node, uint32_t device) {
  const struct tfc_problem *p = l->problem;
  const struct tfc_cost_graph *g = p->graph;
  int64_t latest = 0;
  for (uint32_t i = g->first_input[node]; i < g->first_input[node + 1]; i++) {
    const uint32_t tensor = g->input[i], producer = g->producer[tensor], from = l->device[p->unit[producer]];
    int64_t there = l->finish[producer];
    const struct tfc_pair *pair = tfc_problem_pair(p, from, device);
    if (from != device && pair->linked) there += tfc_problem_wire_time(p, tensor, pair);
    if (there > latest) latest = there;
  }
  return latest;
}

// Returns the index of the first gap that has room for `time` from `ready` on; if there is none, the number of gaps.
static size_t find_gap(const struct tfc_gap_list *gaps, int64_t ready, int64_t time) {
  size_t low = 0, high = gaps->count;
  while (low < high) { // binary search: the first gap that ends after `ready`
    size_t middle = (low + high) / 2;
    if (gaps->end[middle] <= ready)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < gaps->count; low++) {
    int64_t begin = gaps->begin[low] > ready ? gaps->begin[low] : ready;
    if (begin + time <= gaps->end[low]) break;
  }
  return low;
}

int64_t tfc_lister_start(const struct tfc_lister *l, uint32_t node, uint32_t device) {
  int64_t ready = data_there(l, node, device);
  if (l->insert) {
    const struct tfc_gap_list *gaps = &l->gaps[device];
    size_t i = find_gap(gaps, ready, tfc_problem_time(l->problem, node, device));
    if (i < gaps->count) return gaps->begin[i] > ready ? gaps->begin[i] : ready;
  }
  return l->free_at[device] > ready ? l->free_at[device] : ready;
}

static bool add_gap(struct tfc_gap_list *gaps, size_t at, int64_t begin, int64_t end) {
  if (gaps->count == gaps->capacity) {
    size_t capacity = gaps->capacity ? 2 * gaps->capacity : 64;
    int64_t *b = realloc(gaps->begin, capacity * sizeof *b);
    if (b) gaps->begin = b;
    int64_t *e = realloc(gaps->end, capacity * sizeof *e);
    if (e) gaps->end = e;
    if (!b || !e) return false;
    gaps->capacity = capacity;
  }
  memmove(gaps->begin + at + 1, gaps->begin + at, (gaps->count - at) * sizeof *gaps->begin);
  memmove(gaps->end + at + 1, gaps->end + at, (gaps->count - at) * sizeof *gaps->end);
  gaps->begin[at] = begin, gaps->end[at] = end;
  gaps->count++;
  return true;
}

// Removes [begin, end) from the device's idle time; a gap that becomes empty is dropped.
static bool take_time(struct tfc_lister *l, uint32_t device, int64_t ready, int64_t begin, int64_t end) {
  struct tfc_gap_list *gaps = &l->gaps[device];
  size_t i = find_gap(gaps, ready, end - begin);
  if (i < gaps->count && begin < l->free_at[device]) {
    int64_t gap_end = gaps->end[i];
    if (gaps->begin[i] == begin) {
      gaps->begin[i] = end;
      if (end == gap_end) {
        memmove(gaps->begin + i, gaps->begin + i + 1, (gaps->count - i - 1) * sizeof *gaps->begin);
        memmove(gaps->end + i, gaps->end + i + 1, (gaps->count - i - 1) * sizeof *gaps->end);
        gaps->count--;
      }
      return true;
    }
    gaps->end[i] = begin;
    return end == gap_end || add_gap(gaps, i + 1, end, gap_end);
  }
  bool fine = begin == l->free_at[device] || add_gap(gaps, gaps->count, l->free_at[device], begin);
  l->free_at[device] = end;
  return fine;
}

bool tfc_lister_put(struct tfc_lister *l, uint32_t node, uint32_t device) {
  const struct tfc_problem *p = l->problem;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t u = p->unit[node];
  if (l->device[u] == TFC_NONE) l->device[u] = device, l->memory[device] += p->unit_memory[u];
  const int64_t start = tfc_lister_start(l, node, device), time = tfc_problem_time(p, node, device);
  l->start[node] = start, l->finish[node] = start + time;
  if (l->insert) {
    if (!take_time(l, device, data_there(l, node, device), start, start + time)) return false;
  } else {
    l->free_at[device] = start + time;
  }
  for (uint32_t c = g->first_consumer[g->first_tensor[node]]; c < g->first_consumer[g->first_tensor[node + 1]]; c++)
    if (--l->waiting[g->consumer[c]] == 0) l->ready[l->ready_count++] = g->consumer[c];
  return true;
}

uint32_t tfc_lister_last_resort(const struct tfc_lister *l, uint32_t node) {
  const struct tfc_problem *p = l->problem;
  const uint32_t u = p->unit[node];
  if (l->device[u] != TFC_NONE) return l->device[u];
  uint32_t best = TFC_NONE;
  double room = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!tfc_problem_allows(p, u, d)) continue;
    double left = (double)p->limit[d] - (double)l->memory[d];
    if (best == TFC_NONE || left > room) best = d, room = left;
  }
  return best;
}

struct started {
  int64_t start;
  uint32_t node;
};
static int compare_starts(const void *a, const void *b) {
  const struct started *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

tfc_status tfc_lister_finish(struct tfc_lister *l, const struct tfc_budget *budget, struct tfc_solution *out,
                             uint64_t *evaluations) {
  const struct tfc_problem *p = l->problem;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_random random;
  struct tfc_score score;
  struct started *order = malloc(sizeof *order * ((size_t)p->node_count + 1));
  uint32_t *position = malloc(sizeof *position * ((size_t)p->node_count + 1));
  if (!order || !position) TFC_TRY(s, tfc_status_no_memory("list scheduling"));
  tfc_random_init(&random, budget->seed);
  for (uint32_t u = 0; u < p->unit_count; u++) out->device[u] = (tfc_device_id)l->device[u];
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, out->device, NULL);
  if (!out->rank) out->rank = malloc(sizeof *out->rank * p->node_count);
  if (!out->rank) TFC_TRY(s, tfc_status_no_memory("list scheduling"));
  for (uint32_t i = 0; i < p->node_count; i++) position[p->graph->topological[i]] = i;
  for (uint32_t n = 0; n < p->node_count; n++) order[n] = (struct started){l->start[n], position[n]};
  qsort(order, p->node_count, sizeof *order, compare_starts);
  for (uint32_t i = 0; i < p->node_count; i++) out->rank[p->graph->topological[order[i].node]] = i;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_local_settle_within(p, sim, tfc_budget_left(budget, 0), out, &score, evaluations));
out:
  free(order), free(position);
  tfc_simulator_free(sim);
  return s;
}

double tfc_lister_mean_time(const struct tfc_problem *p, uint32_t node) {
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    int64_t t = tfc_problem_time(p, node, d);
    if (t >= 0) sum += (double)t, count++;
  }
  return count ? sum / count : 0;
}

double tfc_lister_mean_wire(const struct tfc_problem *p, uint32_t tensor) {
  double sum = 0;
  uint32_t count = 0;
  if (p->speed_count == 1 && p->wire_time) // all links have the same times
    return p->device_count > 1 ? (double)p->wire_time[tensor] * (p->device_count - 1) / p->device_count : 0;
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      if (a == b) count++;
      if (a == b || !pair->linked) continue;
      sum += (double)tfc_problem_wire_time(p, tensor, pair), count++;
    }
  return count ? sum / count : 0;
}

void tfc_lister_upward(const struct tfc_problem *p, double *rank) {
  const struct tfc_cost_graph *g = p->graph;
  for (size_t i = p->node_count; i-- > 0;) {
    uint32_t n = g->topological[i];
    double longest = 0;
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
      double wire = tfc_lister_mean_wire(p, t);
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
        if (wire + rank[g->consumer[c]] > longest) longest = wire + rank[g->consumer[c]];
    }
    rank[n] = tfc_lister_mean_time(p, n) + longest;
  }
}
