#include "placer/algo/partition.h"

#include <stdlib.h>
#include <string.h>

struct half_edge {
  uint32_t from, to;
  double weight;
};
static int compare_halves(const void *a, const void *b) {
  const struct half_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static double fastest(const struct tfc_problem *p, uint32_t u) {
  double best = -1;
  for (uint32_t d = 0; d < p->device_count; d++) {
    double t = (double)tfc_problem_unit_time(p, u, d);
    if (t >= 0 && (best < 0 || t < best)) best = t;
  }
  return best < 0 ? 0 : best;
}

tfc_status tfc_partition_graph_make(const struct tfc_problem *p, struct tfc_partition_graph *out) {
  tfc_status s = NULL;
  struct tfc_partition_graph g = {.vertex_count = (int32_t)p->unit_count};
  const size_t ends = p->net_first[p->net_count];
  struct half_edge *halves = malloc(sizeof *halves * (2 * ends + 1));
  size_t count = 0, kept = 0;
  double total = 0, heaviest = 0, memory = 0;
  const struct tfc_pair *pair = NULL;
  if (!halves) TFC_TRY(s, tfc_status_no_memory("partitioning"));
  for (size_t i = 0; i < (size_t)p->device_count * p->device_count && !pair; i++)
    if (p->pair[i].linked) pair = &p->pair[i];
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      double time = pair ? (double)tfc_problem_wire_time(p, p->net_tensor[i], pair) : 1;
      double share = time / (p->net_first[i + 1] - p->net_first[i]);
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        halves[count++] = (struct half_edge){u, p->net_unit[j], share};
        halves[count++] = (struct half_edge){p->net_unit[j], u, share};
      }
    }
  qsort(halves, count, sizeof *halves, compare_halves);
  for (size_t i = 0; i < count; i++) {
    if (kept && halves[kept - 1].from == halves[i].from && halves[kept - 1].to == halves[i].to)
      halves[kept - 1].weight += halves[i].weight;
    else
      halves[kept++] = halves[i];
  }
  for (size_t i = 0; i < kept; i++)
    if (halves[i].weight > heaviest) heaviest = halves[i].weight;
  g.edge_count = (int32_t)kept;
  g.first = calloc((size_t)g.vertex_count + 2, sizeof *g.first);
  g.to = malloc(sizeof *g.to * (kept + 1)), g.edge_weight = malloc(sizeof *g.edge_weight * (kept + 1));
  g.weight = malloc(sizeof *g.weight * ((size_t)g.vertex_count + 1));
  g.memory = malloc(sizeof *g.memory * ((size_t)g.vertex_count + 1));
  if (!g.first || !g.to || !g.edge_weight || !g.weight || !g.memory) TFC_TRY(s, tfc_status_no_memory("partitioning"));
  for (size_t i = 0; i < kept; i++) {
    g.first[halves[i].from + 1]++;
    g.to[i] = (int32_t)halves[i].to;
    g.edge_weight[i] = 1 + (int32_t)(halves[i].weight / (heaviest + 1) * 10000);
  }
  for (int32_t u = 0; u < g.vertex_count; u++) {
    g.first[u + 1] += g.first[u];
    total += fastest(p, (uint32_t)u), memory += (double)p->unit_memory[u];
  }
  for (int32_t u = 0; u < g.vertex_count; u++) {
    g.weight[u] = 1 + (int32_t)(fastest(p, (uint32_t)u) / (total + 1) * 1e8);
    g.memory[u] = 1 + (int32_t)((double)p->unit_memory[u] / (memory + 1) * 1e8);
  }
  *out = g;
  g = (struct tfc_partition_graph){0};
out:
  free(halves);
  tfc_partition_graph_free(&g);
  return s;
}

void tfc_partition_graph_free(struct tfc_partition_graph *g) {
  free(g->first), free(g->to), free(g->edge_weight), free(g->weight), free(g->memory);
  *g = (struct tfc_partition_graph){0};
}

void tfc_partition_place(const struct tfc_problem *p, uint64_t seed, const int32_t *part, tfc_device_id *device) {
  struct tfc_random random;
  tfc_random_init(&random, seed);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t d = (uint32_t)part[u] % p->device_count;
    while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
    device[u] = (tfc_device_id)d;
  }
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, device, NULL);
}

void tfc_partition_shares(const struct tfc_problem *p, double *share) {
  double sum = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    double work = 0, own = 0; // total time of the units that the device can run, and their time on it
    for (uint32_t u = 0; u < p->unit_count; u++) {
      double t = (double)tfc_problem_unit_time(p, u, d);
      if (t >= 0) own += t, work += fastest(p, u);
    }
    share[d] = own > 0 && work > 0 ? work / own : 0.01;
    if (share[d] < 0.001) share[d] = 0.001;
    sum += share[d];
  }
  for (uint32_t d = 0; d < p->device_count; d++) share[d] /= sum;
}
