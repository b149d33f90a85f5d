#include "placer/exact/mincut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/none.h"

#define ALWAYS (INT64_C(1) << 61) // the capacity of an arc that no minimum cuts

struct arc {
  uint32_t to, next; // the next arc of the same vertex
  int64_t room;      // how much more may flow; that of the arc back is at `index ^ 1`
};

struct tfc_mincut {
  const struct tfc_mincut_graph *g;
  uint32_t vertex_count, arc_count, source, sink;
  struct arc *arc;
  uint32_t *head;  // [vertex]
  uint32_t *level; // [vertex] steps from the source
  uint32_t *at;    // [vertex] the arc that is looked at
  uint32_t *queue; // [vertex]
  uint32_t *net;   // [net] its arc
};

// Adds an arc and the one back.
static uint32_t add(struct tfc_mincut *c, uint32_t from, uint32_t to) {
  const uint32_t index = c->arc_count;
  c->arc[index] = (struct arc){to, c->head[from], 0};
  c->arc[index + 1] = (struct arc){from, c->head[to], 0};
  c->head[from] = index, c->head[to] = index + 1;
  c->arc_count += 2;
  return index;
}

// Arcs in order: of each unit, from the source and to the sink; then of the nets.
static void add_arcs(struct tfc_mincut *c) {
  const struct tfc_mincut_graph *g = c->g;
  for (uint32_t v = 0; v < c->vertex_count; v++) c->head[v] = TFC_NONE;
  for (uint32_t u = 0; u < g->unit_count; u++) add(c, c->source, u), add(c, u, c->sink);
  for (uint32_t n = 0; n < g->net_count; n++) {
    const uint32_t *unit = &g->unit[g->first[n]], count = g->first[n + 1] - g->first[n];
    if (count == 2) {
      c->net[n] = add(c, unit[0], unit[1]);
      continue;
    }
    const uint32_t in = g->unit_count + 2 * n, out = in + 1;
    c->net[n] = add(c, in, out);
    for (uint32_t k = 0; k < count; k++) add(c, unit[k], in), add(c, out, unit[k]);
  }
}

struct tfc_mincut *tfc_mincut_create(const struct tfc_mincut_graph *g) {
  struct tfc_mincut *c = calloc(1, sizeof *c);
  double sum = 0;
  for (uint32_t n = 0; n < g->net_count; n++) sum += (double)g->cost[n];
  for (uint32_t u = 0; u < g->unit_count; u++) sum += (double)g->work[u];
  if (!c || sum > 0x1p59) return free(c), NULL;
  c->g = g;
  c->vertex_count = g->unit_count + 2 * g->net_count + 2;
  c->source = c->vertex_count - 1, c->sink = c->vertex_count - 2;
  const size_t most = 2 * (2 * (size_t)g->unit_count + g->net_count + 2 * (size_t)g->first[g->net_count]);
  c->arc = malloc(most * sizeof *c->arc);
  c->head = malloc(c->vertex_count * sizeof *c->head), c->level = malloc(c->vertex_count * sizeof *c->level);
  c->at = malloc(c->vertex_count * sizeof *c->at), c->queue = malloc(c->vertex_count * sizeof *c->queue);
  c->net = malloc(((size_t)g->net_count + 1) * sizeof *c->net);
  if (!c->arc || !c->head || !c->level || !c->at || !c->queue || !c->net) return tfc_mincut_free(c), NULL;
  add_arcs(c);
  return c;
}

void tfc_mincut_free(struct tfc_mincut *c) {
  if (!c) return;
  free(c->arc), free(c->head), free(c->level), free(c->at), free(c->queue), free(c->net);
  free(c);
}

uint64_t tfc_mincut_arcs(const struct tfc_mincut *c) {
  return c->arc_count;
}

static void set_room(struct tfc_mincut *c, double border_price, double work_price, const uint8_t *fixed) {
  const struct tfc_mincut_graph *g = c->g;
  double sum = 0;
  for (uint32_t n = 0; n < g->net_count; n++) sum += border_price * (double)g->cost[n];
  for (uint32_t u = 0; u < g->unit_count; u++) sum += fabs(work_price) * (double)g->work[u];
  const bool exact = (border_price == 0 || border_price == 1) && (work_price == 0 || work_price == 1);
  const double scale = exact || sum <= 0 ? 1 : 0x1p59 / sum;
  for (uint32_t u = 0; u < g->unit_count; u++) {
    const int64_t work = llrint(fabs(work_price) * (double)g->work[u] * scale);
    c->arc[4 * u].room = fixed[u] == TFC_MINCUT_INSIDE ? ALWAYS : work_price < 0 ? work : 0;
    c->arc[4 * u + 2].room = fixed[u] == TFC_MINCUT_OUTSIDE ? ALWAYS : work_price > 0 ? work : 0;
    c->arc[4 * u + 1].room = c->arc[4 * u + 3].room = 0;
  }
  for (uint32_t n = 0; n < g->net_count; n++) {
    const uint32_t index = c->net[n], count = g->first[n + 1] - g->first[n];
    c->arc[index].room = llrint(border_price * (double)g->cost[n] * scale);
    c->arc[index + 1].room = count == 2 ? c->arc[index].room : 0;
    for (uint32_t k = 0; k < 2 * count && count > 2; k++)
      c->arc[index + 2 + 2 * k].room = ALWAYS, c->arc[index + 3 + 2 * k].room = 0;
  }
}

// Whether more may flow to the sink.
static bool find_levels(struct tfc_mincut *c) {
  uint32_t first = 0, last = 0;
  for (uint32_t v = 0; v < c->vertex_count; v++) c->level[v] = TFC_NONE;
  c->queue[last++] = c->source, c->level[c->source] = 0;
  while (first < last) {
    const uint32_t v = c->queue[first++];
    for (uint32_t a = c->head[v]; a != TFC_NONE; a = c->arc[a].next) {
      const uint32_t to = c->arc[a].to;
      if (c->arc[a].room > 0 && c->level[to] == TFC_NONE) c->level[to] = c->level[v] + 1, c->queue[last++] = to;
    }
  }
  return c->level[c->sink] != TFC_NONE;
}

// Sends up to `most` from a vertex along levels. Returns how much went.
static int64_t send(struct tfc_mincut *c, uint32_t v, int64_t most) {
  if (v == c->sink) return most;
  int64_t sent = 0;
  for (uint32_t *a = &c->at[v]; *a != TFC_NONE; *a = c->arc[*a].next) {
    struct arc *arc = &c->arc[*a];
    if (arc->room <= 0 || c->level[arc->to] != c->level[v] + 1) continue;
    const int64_t went = send(c, arc->to, arc->room < most - sent ? arc->room : most - sent);
    arc->room -= went, c->arc[*a ^ 1].room += went, sent += went;
    if (sent == most) return sent;
  }
  c->level[v] = TFC_NONE;
  return sent;
}

void tfc_mincut_solve(struct tfc_mincut *c, double border_price, double work_price, const uint8_t *fixed,
                      struct tfc_mincut_set *out) {
  const struct tfc_mincut_graph *g = c->g;
  set_room(c, border_price, work_price, fixed);
  while (find_levels(c)) {
    memcpy(c->at, c->head, c->vertex_count * sizeof *c->at);
    send(c, c->source, ALWAYS);
  }
  out->border = out->work = 0;
  for (uint32_t u = 0; u < g->unit_count; u++) {
    out->inside[u] = c->level[u] != TFC_NONE;
    out->work += out->inside[u] ? g->work[u] : 0;
  }
  for (uint32_t n = 0; n < g->net_count; n++) {
    bool some = false, all = true;
    for (uint32_t k = g->first[n]; k < g->first[n + 1]; k++)
      some |= out->inside[g->unit[k]], all &= out->inside[g->unit[k]];
    out->border += some && !all ? g->cost[n] : 0;
  }
}
