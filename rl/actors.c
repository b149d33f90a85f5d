// Clustering: edges between units in order of weight, heaviest first, merge their clusters while the result stays
// below a cap on time and some device may hold it; the cap doubles until few enough clusters are left. What has no edge
// left (islands) is merged in order of the graph.
#include "rl/actors.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"

enum { op_buckets = 32, plain_features = 8 };

struct link {
  uint32_t a, b;
  double weight; // bytes, or next to nothing for control edges
};

struct clusters {
  uint32_t *parent;
  double *time;
  uint64_t *allowed; // bits of devices, 64 of them; further ones are taken as allowed alike
  uint32_t count;
};

static uint32_t find(struct clusters *c, uint32_t u) {
  while (c->parent[u] != u) u = c->parent[u] = c->parent[c->parent[u]];
  return u;
}

static bool merge(struct clusters *c, uint32_t a, uint32_t b, double cap) {
  a = find(c, a), b = find(c, b);
  if (a == b || c->time[a] + c->time[b] > cap || !(c->allowed[a] & c->allowed[b])) return false;
  if (b < a) {
    uint32_t t = a;
    a = b, b = t;
  }
  c->parent[b] = a;
  c->time[a] += c->time[b];
  c->allowed[a] &= c->allowed[b];
  c->count--;
  return true;
}

static int heavier(const void *x, const void *y) {
  const struct link *a = x, *b = y;
  if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
  if (a->a != b->a) return a->a < b->a ? -1 : 1;
  return (a->b > b->b) - (a->b < b->b);
}

// One link for each pair of units that exchange something, weights added up.
static tfc_status collect_links(const struct tfc_problem *p, struct link **out, size_t *out_count) {
  tfc_status s = NULL;
  const struct tfc_cost_graph *g = p->graph;
  struct tfc_intmap seen = {0};
  TFC_ARRAY(struct link) links = {0};
  for (uint32_t t = 0; t < g->tensor_count; t++) {
    uint32_t from = p->unit[g->producer[t]];
    double weight = g->output[t] == TFC_OUTPUT_CONTROL ? 1e-3 : (double)g->bytes[t] + 1;
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      uint32_t to = p->unit[g->consumer[c]];
      if (from == to) continue;
      bool found = false;
      uint64_t *slot = tfc_intmap_put(&seen, (uint64_t)from << 32 | to, links.count, &found);
      if (!slot) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
      if (found)
        links.data[*slot].weight += weight;
      else if (!tfc_array_push(&links, (struct link){from, to, weight}))
        TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
  }
  *out = links.data, *out_count = links.count;
  links.data = NULL;
out:
  tfc_array_free(&links);
  tfc_intmap_deinit(&seen);
  return s;
}

static double unit_seconds(const struct tfc_problem *p, uint32_t u) { // at its fastest device
  int64_t best = -1;
  for (uint32_t d = 0; d < p->device_count; d++) {
    int64_t t = tfc_problem_unit_time(p, u, d);
    if (t >= 0 && (best < 0 || t < best)) best = t;
  }
  return best < 0 ? 0 : (double)best * 1e-12;
}

static void cluster(struct clusters *c, const struct link *links, size_t link_count, uint32_t unit_count, double total,
                    uint32_t wanted) {
  for (double cap = total / wanted; c->count > wanted && cap < 4 * total + 1; cap *= 2) {
    for (size_t i = 0; i < link_count && c->count > wanted; i++) merge(c, links[i].a, links[i].b, cap);
    if (cap < total) continue;
    for (uint32_t u = 1; u < unit_count && c->count > wanted; u++) merge(c, u - 1, u, cap);
  }
}

static float squash(double x) {
  return (float)(log1p(x < 0 ? 0 : x) / 10);
}

static void describe(const struct tfc_problem *p, const struct tfc_node_facts *facts, float *features, uint32_t width) {
  const struct tfc_cost_graph *g = p->graph;
  double longest = 1;
  for (uint32_t n = 0; n < p->node_count; n++)
    if ((double)p->remaining[n] > longest) longest = (double)p->remaining[n];
  for (uint32_t u = 0; u < p->unit_count; u++) {
    float *f = features + (size_t)u * width;
    double in = 0, out = 0, remaining = 0, elements = 0;
    uint32_t begin = p->first_member[u], end = p->first_member[u + 1];
    for (uint32_t i = begin; i < end; i++) {
      uint32_t n = p->member[i];
      for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) out += (double)g->bytes[t];
      for (uint32_t k = g->first_input[n]; k < g->first_input[n + 1]; k++) in += (double)g->bytes[g->input[k]];
      if ((double)p->remaining[n] > remaining) remaining = (double)p->remaining[n];
      if (facts && facts->elements && facts->elements[n] > elements) elements = facts->elements[n];
      if (facts && facts->op_type) f[plain_features + facts->op_type[n] % op_buckets] += 1.0f / (float)(end - begin);
    }
    f[0] = squash(unit_seconds(p, u) * 1e6);
    f[1] = squash(in);
    f[2] = squash(out);
    f[3] = squash((double)p->unit_memory[u]);
    f[4] = (float)(remaining / longest);
    f[5] = squash((double)(end - begin));
    f[6] = squash(elements);
    uint32_t allowed = 0;
    for (uint32_t d = 0; d < p->device_count; d++) allowed += tfc_problem_allows(p, u, d);
    f[7] = (float)allowed / (float)p->device_count;
  }
}

// Rows of neighbours' weights (log of bytes), scaled to sum 1.
static void relate(const struct link *links, size_t count, uint32_t n, float *incoming, float *outgoing) {
  for (size_t i = 0; i < count; i++) {
    float w = (float)log1p(links[i].weight);
    incoming[(size_t)links[i].b * n + links[i].a] += w;
    outgoing[(size_t)links[i].a * n + links[i].b] += w;
  }
  for (int side = 0; side < 2; side++) {
    float *m = side ? outgoing : incoming;
    for (uint32_t u = 0; u < n; u++) {
      double sum = 0;
      for (uint32_t v = 0; v < n; v++) sum += m[(size_t)u * n + v];
      if (sum <= 0) continue;
      for (uint32_t v = 0; v < n; v++) m[(size_t)u * n + v] = (float)(m[(size_t)u * n + v] / sum);
    }
  }
}

tfc_status tfc_actors_create(const struct tfc_problem *p, const struct tfc_node_facts *facts, uint32_t max_actors,
                             struct tfc_actors **out) {
  tfc_status s = NULL;
  struct tfc_actors *a = calloc(1, sizeof *a);
  struct clusters c = {0};
  struct link *links = NULL;
  size_t link_count = 0;
  uint32_t n = p->unit_count;
  if (!a) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  uint32_t *actor = TFC_ARENA_ARRAY(&a->arena, uint32_t, n);
  c = (struct clusters){calloc(n, sizeof *c.parent), calloc(n, sizeof *c.time), calloc(n, sizeof *c.allowed), n};
  if (!actor || !c.parent || !c.time || !c.allowed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, collect_links(p, &links, &link_count));
  double total = 0;
  for (uint32_t u = 0; u < n; u++) {
    c.parent[u] = u;
    c.time[u] = unit_seconds(p, u);
    total += c.time[u];
    for (uint32_t d = 0; d < p->device_count && d < 64; d++)
      if (tfc_problem_allows(p, u, d)) c.allowed[u] |= UINT64_C(1) << d;
    if (p->device_count > 64) c.allowed[u] |= UINT64_C(1) << 63;
  }
  if (link_count) qsort(links, link_count, sizeof *links, heavier);
  cluster(&c, links, link_count, n, total, max_actors ? max_actors : 1);
  for (uint32_t u = 0; u < n; u++)
    if (find(&c, u) == u) actor[u] = a->actor_count++; // roots have the lowest index of their cluster
  for (uint32_t u = 0; u < n; u++) actor[u] = actor[find(&c, u)];

  a->unit_count = n;
  a->device_count = p->device_count;
  a->feature_count = plain_features + (facts && facts->op_type ? op_buckets : 0);
  a->actor = actor;
  float *features = TFC_ARENA_ARRAY(&a->arena, float, (size_t)n * a->feature_count);
  float *incoming = TFC_ARENA_ARRAY(&a->arena, float, (size_t)n *n);
  float *outgoing = TFC_ARENA_ARRAY(&a->arena, float, (size_t)n *n);
  float *pool = TFC_ARENA_ARRAY(&a->arena, float, (size_t)a->actor_count *n);
  float *forbidden = TFC_ARENA_ARRAY(&a->arena, float, (size_t)a->actor_count * p->device_count);
  if (!features || !incoming || !outgoing || !pool || !forbidden) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  describe(p, facts, features, a->feature_count);
  relate(links, link_count, n, incoming, outgoing);
  for (uint32_t u = 0; u < n; u++) {
    double share = c.time[find(&c, u)];
    pool[(size_t)actor[u] * n + u] = (float)(unit_seconds(p, u) + 1e-9) / (float)(share + 1e-9);
    for (uint32_t d = 0; d < p->device_count; d++)
      if (!tfc_problem_allows(p, u, d)) forbidden[(size_t)actor[u] * p->device_count + d] = -60;
  }
  a->features = features, a->incoming = incoming, a->outgoing = outgoing, a->pool = pool, a->forbidden = forbidden;
  *out = a, a = NULL;
out:
  free(c.parent), free(c.time), free(c.allowed), free(links);
  tfc_actors_free(a);
  return s;
}

void tfc_actors_free(struct tfc_actors *actors) {
  if (!actors) return;
  tfc_arena_deinit(&actors->arena);
  free(actors);
}

void tfc_actors_apply(const struct tfc_actors *actors, const tfc_device_id *choice, struct tfc_solution *solution) {
  for (uint32_t u = 0; u < actors->unit_count; u++) solution->device[u] = choice[actors->actor[u]];
}
