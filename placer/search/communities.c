#include "placer/search/communities.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/union_find.h"

#define MOST_PASSES 16
#define MOST_LEVELS 12

struct arc {
  uint32_t to;
  float weight;
};
// A weighted graph. Its nodes are units, or the communities of the level below.
struct level {
  uint32_t count;
  size_t *first; // [count + 1]
  struct arc *arcs;
  double *degree;   // [count] sum of the weights of its arcs, including those to itself
  uint64_t *memory; // [count]
  uint64_t *where;  // [count] an id of the set of devices on which it may be
};

static void level_deinit(struct level *l) {
  free(l->first), free(l->arcs), free(l->degree), free(l->memory), free(l->where);
  *l = (struct level){0};
}

static bool level_init(struct level *l, uint32_t count, size_t arcs) {
  *l = (struct level){.count = count};
  l->first = calloc((size_t)count + 2, sizeof *l->first);
  l->arcs = malloc(sizeof *l->arcs * (arcs + 1));
  l->degree = calloc((size_t)count + 1, sizeof *l->degree);
  l->memory = calloc((size_t)count + 1, sizeof *l->memory);
  l->where = calloc((size_t)count + 1, sizeof *l->where);
  return l->first && l->arcs && l->degree && l->memory && l->where;
}

static bool units_level(const struct tfc_problem *p, const struct tfc_community_options *o, struct level *l) {
  const struct tfc_pair *pair = NULL; // any link will do: its latency and bandwidth turn bytes into a time
  for (size_t i = 0; i < (size_t)p->device_count * p->device_count && !pair; i++)
    if (p->pair[i].linked) pair = &p->pair[i];
  if (!level_init(l, p->unit_count, 2 * (size_t)p->net_first[p->net_count])) return false;
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t j = p->net_first[p->first_net[u]]; j < p->net_first[p->first_net[u + 1]]; j++)
      l->first[u + 1]++, l->first[p->net_unit[j] + 1]++;
  for (uint32_t u = 0; u < p->unit_count; u++) l->first[u + 1] += l->first[u];
  size_t *at = malloc(sizeof *at * ((size_t)p->unit_count + 1));
  if (!at) return false;
  memcpy(at, l->first, sizeof *at * p->unit_count);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    l->memory[u] = p->unit_memory[u];
    for (uint32_t d = 0; d < p->device_count; d++)
      l->where[u] = l->where[u] * UINT64_C(0x9e3779b97f4a7c15) + (tfc_problem_allows(p, u, d) ? 2 : 1);
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      const double cost = pair ? (double)tfc_problem_wire_time(p, p->net_tensor[i], pair) + 1 : 1;
      const double fan = (double)(p->net_first[i + 1] - p->net_first[i]);
      const float weight = (float)(pow(cost, o->power) / pow(fan, o->fan));
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t v = p->net_unit[j];
        l->arcs[at[u]++] = (struct arc){v, weight}, l->arcs[at[v]++] = (struct arc){u, weight};
        l->degree[u] += (double)weight, l->degree[v] += (double)weight;
      }
    }
  }
  free(at);
  return true;
}

struct mover {
  double *total, *to;      // total: sum of degrees; to: sum of the weights between the current node and the community
  uint64_t *memory;        // [community]
  uint32_t *order, *touch; // order: nodes in the order of their turns; touch: communities that the current node has
                           // arcs to
};

// Moves each node to the neighbouring community that increases modularity most, until no move increases it. of [node]:
// its community. False: no node was moved.
static bool move_nodes(const struct level *l, struct mover *m, struct tfc_random *random, double resolution,
                       uint64_t most, uint32_t *of) {
  double sum = 0;
  bool any = false;
  for (uint32_t n = 0; n < l->count; n++) {
    of[n] = n, m->total[n] = l->degree[n], m->memory[n] = l->memory[n], m->order[n] = n, m->to[n] = 0;
    sum += l->degree[n];
  }
  if (sum <= 0) return false;
  for (uint32_t n = l->count; n > 1; n--) {
    const uint32_t k = (uint32_t)tfc_random_below(random, n), x = m->order[n - 1];
    m->order[n - 1] = m->order[k], m->order[k] = x;
  }
  for (int pass = 0; pass < MOST_PASSES; pass++) {
    uint32_t moved = 0;
    for (uint32_t i = 0; i < l->count; i++) {
      const uint32_t n = m->order[i], home = of[n];
      uint32_t touched = 0, best = home;
      for (size_t a = l->first[n]; a < l->first[n + 1]; a++) {
        if (l->arcs[a].to == n) continue;
        const uint32_t c = of[l->arcs[a].to];
        if (m->to[c] == 0) m->touch[touched++] = c;
        m->to[c] += (double)l->arcs[a].weight;
      }
      const double share = resolution * l->degree[n] / sum;
      m->total[home] -= l->degree[n];
      double gain = m->to[home] - share * m->total[home];
      for (uint32_t t = 0; t < touched; t++) {
        const uint32_t c = m->touch[t];
        const double here = m->to[c] - share * m->total[c];
        if (c == home || here <= gain * (1 + 1e-12) + 1e-12 * l->degree[n]) continue;
        if (l->where[c] != l->where[n] || m->memory[c] > most || l->memory[n] > most - m->memory[c]) continue;
        gain = here, best = c;
      }
      for (uint32_t t = 0; t < touched; t++) m->to[m->touch[t]] = 0;
      m->total[best] += l->degree[n];
      if (best == home) continue;
      m->memory[home] -= l->memory[n], m->memory[best] += l->memory[n];
      of[n] = best, moved++, any = true;
    }
    if (!moved) break;
  }
  return any;
}

// Renumbers the communities that have nodes as 0, 1, ... in the order of their first nodes.
static uint32_t renumber(uint32_t *of, uint32_t count, uint32_t *number) {
  uint32_t next = 0;
  memset(number, 0xff, sizeof *number * count);
  for (uint32_t n = 0; n < count; n++) {
    if (number[of[n]] == TFC_NONE) number[of[n]] = next++;
    of[n] = number[of[n]];
  }
  return next;
}

// Makes the next level, whose nodes are the communities of this one.
static bool next_level(const struct level *l, const uint32_t *of, uint32_t count, struct level *out) {
  struct level x;
  bool fine = level_init(&x, count, l->first[l->count]);
  uint32_t *first = calloc((size_t)count + 2, sizeof *first), *member = malloc(sizeof *member * ((size_t)l->count + 1)),
           *touch = malloc(sizeof *touch * ((size_t)count + 1));
  double *to = calloc((size_t)count + 1, sizeof *to);
  size_t arcs = 0;
  fine = fine && first && member && touch && to;
  if (!fine) goto out;
  for (uint32_t n = 0; n < l->count; n++) first[of[n] + 2]++;
  for (uint32_t c = 0; c < count; c++) first[c + 2] += first[c + 1];
  for (uint32_t n = 0; n < l->count; n++) member[first[of[n] + 1]++] = n;
  for (uint32_t c = 0; c < count; c++) {
    uint32_t touched = 0;
    x.first[c] = arcs;
    for (uint32_t k = first[c]; k < first[c + 1]; k++) {
      const uint32_t n = member[k];
      x.degree[c] += l->degree[n], x.memory[c] += l->memory[n], x.where[c] = l->where[n];
      for (size_t a = l->first[n]; a < l->first[n + 1]; a++) {
        const uint32_t e = of[l->arcs[a].to];
        if (to[e] == 0) touch[touched++] = e;
        to[e] += (double)l->arcs[a].weight;
      }
    }
    for (uint32_t t = 0; t < touched; t++) {
      x.arcs[arcs++] = (struct arc){touch[t], (float)to[touch[t]]};
      to[touch[t]] = 0;
    }
  }
  x.first[count] = arcs;
out:
  free(first), free(member), free(touch), free(to);
  if (fine)
    *out = x;
  else
    level_deinit(&x);
  return fine;
}

uint32_t tfc_communities_find(const struct tfc_problem *p, struct tfc_random *random,
                              const struct tfc_community_options *o, uint32_t *community) {
  const size_t units = (size_t)p->unit_count + 1;
  struct level l = {0}, next;
  struct mover m = {.total = malloc(sizeof *m.total * units),
                    .to = malloc(sizeof *m.to * units),
                    .memory = malloc(sizeof *m.memory * units),
                    .order = malloc(sizeof *m.order * units),
                    .touch = malloc(sizeof *m.touch * units)};
  uint32_t *of = malloc(sizeof *of * units), count = 0;
  uint64_t most = 0;
  if (!m.total || !m.to || !m.memory || !m.order || !m.touch || !of || !units_level(p, o, &l)) goto out;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->limit[d] > most) most = p->limit[d];
  for (uint32_t u = 0; u < p->unit_count; u++) community[u] = u;
  for (int k = 0; k < MOST_LEVELS; k++) {
    if (!move_nodes(&l, &m, random, o->resolution, most, of)) break;
    const uint32_t left = renumber(of, l.count, m.touch);
    for (uint32_t u = 0; u < p->unit_count; u++) community[u] = of[community[u]];
    if (!next_level(&l, of, left, &next)) goto out;
    level_deinit(&l);
    l = next;
  }
  count = l.count;
out:
  level_deinit(&l);
  free(m.total), free(m.to), free(m.memory), free(m.order), free(m.touch), free(of);
  return count;
}

bool tfc_communities_tight(const struct tfc_problem *p) {
  double need = 0, room = 0;
  if (!p->has_limits || p->device_count < 2) return false;
  for (uint32_t u = 0; u < p->unit_count; u++) need += (double)p->unit_memory[u];
  for (uint32_t d = 0; d < p->device_count; d++) room += (double)p->limit[d];
  return need > 0.7 * room;
}

uint32_t tfc_communities_pieces(const struct tfc_problem *p, const tfc_device_id *device, uint32_t *piece) {
  uint32_t *parent = malloc(sizeof *parent * ((size_t)p->unit_count + 1)), count = 0;
  if (!parent) return 0;
  tfc_union_find_init(parent, p->unit_count);
  for (uint32_t u = 0; u < p->unit_count; u++) piece[u] = TFC_NONE;
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t j = p->net_first[p->first_net[u]]; j < p->net_first[p->first_net[u + 1]]; j++)
      if (!device || device[p->net_unit[j]] == device[u]) tfc_union_find_join(parent, u, p->net_unit[j]);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const uint32_t root = tfc_union_find_root(parent, u);
    if (piece[root] == TFC_NONE) piece[root] = count++;
    piece[u] = piece[root];
  }
  free(parent);
  return count;
}
