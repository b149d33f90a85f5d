// Layout: embeds the graph of units in space and cuts it along many directions. The coordinates of a unit are its
// distances, in edges, to pivots that are far from each other. In a grid-shaped graph (a recurrent network over layers
// and steps), sums and differences of two coordinates are its rows and columns, whatever the order of nodes in the
// file.
#include <stdlib.h>

#include "placer/algo/order.h"
#include "placer/algo/partition.h"
#include "placer/algo/split.h"

enum { PIVOTS = 7, DIRECTIONS = 2 * PIVOTS * PIVOTS };
enum { MIDDLE = 2 }; // index of the pivot that is far from both ends of the longest path

struct at {
  int32_t key;
  uint32_t next; // tie-breaker between equal keys
  uint32_t what; // unit or node
};
static int compare(const void *a, const void *b) {
  const struct at *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->next > y->next) - (x->next < y->next);
}

// Computes breadth-first distances from one unit to all others; a unit that cannot be reached gets a distance larger
// than all others.
static void hops(const struct tfc_partition_graph *g, uint32_t from, int32_t *queue, int32_t *distance) {
  int32_t head = 0, tail = 0;
  for (int32_t v = 0; v < g->vertex_count; v++) distance[v] = -1;
  distance[from] = 0;
  queue[tail++] = (int32_t)from;
  while (head < tail) {
    const int32_t v = queue[head++];
    for (int32_t e = g->first[v]; e < g->first[v + 1]; e++)
      if (distance[g->to[e]] < 0) distance[g->to[e]] = distance[v] + 1, queue[tail++] = g->to[e];
  }
  const int32_t most = distance[queue[tail - 1]];
  for (int32_t v = 0; v < g->vertex_count; v++)
    if (distance[v] < 0) distance[v] = most + 1;
}

// Finds the ends of the graph as seen from the unit at which `distance` starts: units without a neighbour that is
// farther away. (In a grid these are the corners. The largest distances alone would miss some of them if the grid is
// much longer than wide.)
static void find_ends(const struct tfc_partition_graph *g, const int32_t *distance, bool *is_end) {
  for (int32_t v = 0; v < g->vertex_count; v++) {
    is_end[v] = true;
    for (int32_t e = g->first[v]; e < g->first[v + 1]; e++) is_end[v] &= distance[g->to[e]] <= distance[v];
  }
}

// Fills distance [PIVOTS * units]. Each pivot is the unit that is farthest from the pivots before it; from the fourth
// pivot on it must be an end.
static void embed(const struct tfc_partition_graph *g, int32_t *queue, int32_t *nearest, bool *is_end,
                  int32_t *distance) {
  const uint32_t units = (uint32_t)g->vertex_count;
  uint32_t pivot = 0;
  for (uint32_t u = 0; u < units; u++) nearest[u] = INT32_MAX, is_end[u] = true;
  for (int32_t k = -1; k < PIVOTS; k++) { // k = -1 only finds a unit that is far from unit 0
    int32_t *own = distance + (size_t)(k < 0 ? 0 : k) * units;
    hops(g, pivot, queue, own);
    if (k == MIDDLE) find_ends(g, own, is_end);
    for (uint32_t u = 0; u < units; u++)
      if (k < 0 || own[u] < nearest[u]) nearest[u] = own[u];
    pivot = 0;
    for (uint32_t u = 1; u < units; u++)
      if (is_end[u] > is_end[pivot] || (is_end[u] == is_end[pivot] && nearest[u] > nearest[pivot])) pivot = u;
    for (uint32_t u = 0; k < 0 && u < units; u++) nearest[u] = INT32_MAX;
  }
}

// Returns the coordinate of a unit along a direction (0 to DIRECTIONS - 1): the distance to one pivot, or the sum or
// difference of two such distances.
static int32_t along(const int32_t *distance, uint32_t units, uint32_t direction, uint32_t unit) {
  const uint32_t i = direction / (2 * PIVOTS), j = direction / 2 % PIVOTS;
  const int32_t x = distance[(size_t)i * units + unit], y = distance[(size_t)j * units + unit];
  return i == j ? x : direction % 2 ? x - y : x + y;
}
static bool is_repeated(uint32_t direction) {
  const uint32_t i = direction / (2 * PIVOTS), j = direction / 2 % PIVOTS;
  return j < i || (i == j && direction % 2);
}

struct layout {
  const struct tfc_problem *p;
  const struct tfc_budget *budget;
  struct tfc_simulator *sim;
  int32_t *distance;
  struct at *at; // [node]
  uint64_t *evaluations;
};
static bool is_over(const struct layout *l) {
  return tfc_budget_over(l->budget) || (l->budget->evaluations && *l->evaluations >= l->budget->evaluations);
}
static struct tfc_score score_of(struct layout *l, const struct tfc_solution *solution) {
  struct tfc_verdict v = {0};
  tfc_simulate(l->sim, solution->device, solution->rank, TFC_TIME_MAX, &v);
  ++*l->evaluations;
  return tfc_score_of(&v);
}

// Finds the best split along one direction. `trial` is scratch space.
static tfc_status split_along(struct layout *l, struct tfc_random *random, struct tfc_solution *trial,
                              struct tfc_solution *out, struct tfc_score *best) {
  const struct tfc_problem *p = l->p;
  tfc_status s = NULL;
  uint32_t *order = malloc(sizeof *order * ((size_t)p->unit_count + 1));
  uint32_t *position = malloc(sizeof *position * ((size_t)p->unit_count + 1));
  if (!order || !position) TFC_TRY(s, tfc_status_no_memory("a layout"));
  TFC_TRY(s, tfc_order_units(p, false, order));
  for (uint32_t i = 0; i < p->unit_count; i++) position[order[i]] = i;
  for (uint32_t d = 0; d < DIRECTIONS && !(d && is_over(l)); d++) {
    if (is_repeated(d)) continue;
    for (uint32_t u = 0; u < p->unit_count; u++)
      l->at[u] = (struct at){along(l->distance, p->unit_count, d, u), position[u], u};
    qsort(l->at, p->unit_count, sizeof *l->at, compare);
    for (uint32_t k = 0; k < p->unit_count; k++) order[k] = l->at[k].what;
    tfc_split_order(p, random, order, trial->device);
    const struct tfc_score score = score_of(l, trial);
    if (d && !tfc_score_better(score, *best)) continue;
    *best = score;
    TFC_TRY(s, tfc_solution_copy(out, trial, p));
  }
out:
  free(order), free(position);
  return s;
}

// Keeps the devices, and tries four orders of operations for each direction, two from each of its ends: by the
// coordinates of their units, where the longest remaining path decides between equal ones; or by the longest remaining
// path, where the coordinates decide.
static tfc_status order_along(struct layout *l, struct tfc_solution *trial, struct tfc_solution *out,
                              struct tfc_score *best) {
  const struct tfc_problem *p = l->p;
  tfc_status s = NULL;
  uint32_t *by_path = malloc(sizeof *by_path * ((size_t)p->node_count + 1));
  int32_t *key = malloc(sizeof *key * ((size_t)p->unit_count + 1));
  if (!by_path || !key) TFC_TRY(s, tfc_status_no_memory("a layout"));
  TFC_TRY(s, tfc_solution_copy(trial, out, p));
  if (!trial->rank && !(trial->rank = malloc(sizeof *trial->rank * ((size_t)p->node_count + 1))))
    TFC_TRY(s, tfc_status_no_memory("a layout"));
  TFC_TRY(s, tfc_local_rerank(p, trial->device, NULL, by_path));
  for (uint32_t d = 0; d < 4 * DIRECTIONS && !is_over(l); d++) {
    if (is_repeated(d / 4)) continue;
    for (uint32_t u = 0; u < p->unit_count; u++)
      key[u] = (d % 2 ? -1 : 1) * along(l->distance, p->unit_count, d / 4, u);
    if (d / 2 % 2) {
      TFC_TRY(s, tfc_local_rerank(p, trial->device, key, trial->rank));
    } else {
      for (uint32_t n = 0; n < p->node_count; n++) l->at[n] = (struct at){key[p->unit[n]], by_path[n], n};
      qsort(l->at, p->node_count, sizeof *l->at, compare);
      for (uint32_t k = 0; k < p->node_count; k++) trial->rank[l->at[k].what] = k;
    }
    const struct tfc_score score = score_of(l, trial);
    if (!tfc_score_better(score, *best)) continue;
    *best = score;
    TFC_TRY(s, tfc_solution_copy(out, trial, p));
  }
out:
  free(by_path), free(key);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  const size_t units = p->unit_count;
  tfc_status s = NULL;
  struct layout l = {.p = p, .budget = budget, .evaluations = out_evaluations};
  struct tfc_partition_graph g = {0};
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_random random;
  int32_t *queue = malloc(sizeof *queue * (units + 1)), *nearest = malloc(sizeof *nearest * (units + 1));
  bool *is_end = malloc(sizeof *is_end * (units + 1));
  l.distance = malloc(sizeof *l.distance * (PIVOTS * units + 1));
  l.at = malloc(sizeof *l.at * ((size_t)p->node_count + 1));
  tfc_random_init(&random, budget->seed);
  if (!queue || !nearest || !is_end || !l.distance || !l.at) TFC_TRY(s, tfc_status_no_memory("a layout"));
  if (!units) TFC_FAIL(s, TFC_FAILED_PRECONDITION, "nothing to lay out");
  TFC_TRY(s, tfc_simulator_create(p, &l.sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  TFC_TRY(s, tfc_partition_graph_make(p, &g));
  embed(&g, queue, nearest, is_end, l.distance);
  TFC_TRY(s, split_along(&l, &random, &trial, out, &best));
  if (p->objective == TFC_OBJECTIVE_STEP) TFC_TRY(s, order_along(&l, &trial, out, &best));
out:
  free(queue), free(nearest), free(is_end), free(l.distance), free(l.at);
  tfc_partition_graph_free(&g);
  tfc_simulator_free(l.sim);
  tfc_solution_deinit(&trial);
  return s;
}

const struct tfc_algo tfc_algo_layout = {
    .name = "layout",
    .help = "cuts along directions of a layout in space: good for grids and other graphs that are long in two ways",
    .paper = "Harel and Koren 2002, Graph Drawing by High-Dimensional Embedding, section 2 (pivots)",
    .propose = propose,
};
