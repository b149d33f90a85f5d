// Makes a cost graph of a subject and a profile's costs. Rewrites appear as additional edges: an operation that
// computes several fused nodes begins when the inputs of all of them have arrived, and an operation that continues
// another one's result comes after that one.
#include <math.h>
#include <stdlib.h>

#include "placer/subject/units.h"
#include "runtime/base/array.h"

static double cost_us(const struct tfc_cost_table *costs, uint32_t node, uint32_t kind, bool fastest) {
  return fastest ? tfc_cost_table_fastest(costs, node, kind) : tfc_cost_table_get(costs, node, kind).median_us;
}

// Marks the additional edges that would make a cycle with the graph's own edges.
static tfc_status mark_circles(const struct tfc_subject *l, const struct tfc_subject_edge *extra, uint32_t extra_count,
                               bool *circular) {
  tfc_status s = NULL;
  uint32_t total = l->edge_count + extra_count, count = 0;
  uint32_t *first = calloc(l->cost_count + 2u, sizeof *first), *to = calloc(total + 1u, sizeof *to);
  uint32_t *waiting = calloc(l->cost_count + 1u, sizeof *waiting), *done = calloc(l->cost_count + 1u, sizeof *done);
  if (!first || !to || !waiting || !done) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t e = 0; e < total; e++) {
      const struct tfc_subject_edge *edge = e < l->edge_count ? &l->edges[e] : &extra[e - l->edge_count];
      if (pass == 0)
        first[edge->from + 2]++, waiting[edge->to]++;
      else
        to[first[edge->from + 1]++] = edge->to;
    }
    for (uint32_t c = 1; pass == 0 && c <= l->cost_count; c++) first[c + 1] += first[c];
  }
  for (uint32_t c = 0; c < l->cost_count; c++)
    if (!waiting[c]) done[count++] = c;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = first[done[i]]; k < first[done[i] + 1]; k++)
      if (--waiting[to[k]] == 0) done[count++] = to[k];
  for (uint32_t e = 0; e < extra_count; e++) circular[e] = waiting[extra[e].from] && waiting[extra[e].to];
out:
  free(first);
  free(to);
  free(waiting);
  free(done);
  return s;
}

// --- Edges that rewrites add -----------------------------------------------------------------------------------------
struct rewritten {
  const struct tfc_subject *l;
  const bool *kept;
  uint32_t *sum_of;    // [cost] the first operation of the sum that it belongs to, or TFC_NONE
  uint32_t *continues; // [cost] the operation whose result it continues, or TFC_NONE
  TFC_ARRAY(struct tfc_subject_edge) edges;
};

static uint32_t cost_node(const struct tfc_subject *l, uint32_t node) {
  return node < l->graph->node_count ? l->cost_of[node] : TFC_NONE;
}

// Returns the first operation of a chain of continued sums; `same`: goes back only as far as the sums have the same
// operands.
static uint32_t first_of(const struct rewritten *w, uint32_t c, bool same) {
  for (uint32_t hops = 0; hops <= w->l->continued_count && w->continues[c] != TFC_NONE; hops++) {
    const struct tfc_plan_continued *k = &w->l->continued[w->continues[c]];
    if (same && !k->same) break;
    c = cost_node(w->l, k->before);
  }
  return c;
}

static tfc_status find_sums(struct rewritten *w) {
  const struct tfc_subject *l = w->l;
  w->sum_of = malloc((l->cost_count + 1u) * sizeof *w->sum_of);
  w->continues = malloc((l->cost_count + 1u) * sizeof *w->continues);
  if (!w->sum_of || !w->continues) return tfc_status_no_memory(NULL);
  for (uint32_t c = 0; c < l->cost_count; c++) w->sum_of[c] = w->continues[c] = TFC_NONE;
  for (uint32_t i = 0; i < l->continued_count; i++) {
    uint32_t c = cost_node(l, l->continued[i].node);
    if (c != TFC_NONE && cost_node(l, l->continued[i].before) != TFC_NONE) w->continues[c] = i;
  }
  for (uint32_t c = 0; c < l->cost_count; c++) {
    if (w->continues[c] == TFC_NONE) continue;
    uint32_t first = first_of(w, c, false);
    w->sum_of[c] = w->sum_of[first] = first;
    w->sum_of[cost_node(l, l->continued[w->continues[c]].before)] = first;
  }
  for (uint32_t c = 0; c < l->cost_count; c++)
    if (l->fused[c] != c && w->kept[l->node_of[c]]) w->sum_of[c] = w->sum_of[l->fused[c]];
  return NULL;
}

// Whether the edge is between two operations of one sum: its tensor is never written. add_rewritten_edges adds what is
// written.
static bool within_sum(const struct rewritten *w, uint32_t from, uint32_t to) {
  return w->sum_of[from] != TFC_NONE && w->sum_of[from] == w->sum_of[to];
}

static tfc_status add_edge(const struct tfc_subject *l, const struct tfc_subject_edge *e, struct tfc_cost_builder *b) {
  // A variable's memory on its own device exists for the whole step; only copies have a lifetime.
  bool live = l->live && e->output >= 0 && l->runs[e->from] && l->fused[e->from] != l->fused[e->to];
  return tfc_cost_builder_edge(b, e->from, e->output, e->to, e->bytes, live ? e->bytes : TFC_LIVE_ABSENT);
}

static tfc_status note(struct rewritten *w, uint32_t from, int32_t output, uint32_t to, uint64_t bytes) {
  if (from == to || tfc_array_push(&w->edges, (struct tfc_subject_edge){from, to, output, bytes})) return NULL;
  return tfc_status_no_memory(NULL);
}

// Returns the bytes that one operation of a sum passes to the next: the size of its node's output. Edges are sorted by
// producer.
static uint64_t sum_bytes(const struct tfc_subject *l, uint32_t c) {
  uint32_t low = 0, high = l->edge_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const struct tfc_subject_edge *e = &l->edges[middle];
    if (e->from < c || (e->from == c && e->output < 0))
      low = middle + 1;
    else
      high = middle;
  }
  return low < l->edge_count && l->edges[low].from == c ? l->edges[low].bytes : 0;
}

static tfc_status note_continued(struct rewritten *w) {
  const struct tfc_subject *l = w->l;
  for (uint32_t c = 0; c < l->cost_count; c++) {
    if (w->continues[c] == TFC_NONE) continue;
    const struct tfc_plan_continued *k = &l->continued[w->continues[c]];
    uint32_t before = cost_node(l, k->before);
    TFC_RETURN_IF_ERROR(note(w, before, 0, c, sum_bytes(l, before)));
  }
  // The first of several pieces begins when the operands of all pieces have arrived.
  for (uint32_t e = 0; e < l->edge_count; e++) {
    const struct tfc_subject_edge *edge = &l->edges[e];
    if (w->continues[edge->to] == TFC_NONE || within_sum(w, edge->from, edge->to)) continue;
    TFC_RETURN_IF_ERROR(note(w, edge->from, edge->output, first_of(w, edge->to, true), edge->bytes));
  }
  return NULL;
}

static tfc_status add_rewritten_edges(struct rewritten *w, struct tfc_cost_builder *b) {
  tfc_status s = NULL;
  const struct tfc_subject *l = w->l;
  bool *circular = NULL;
  uint32_t count = 0;
  for (uint32_t c = 0; c < l->cost_count; c++)
    if (l->runs[c] && l->fused[c] != c && w->kept[l->node_of[c]])
      TFC_TRY(s, note(w, c, TFC_OUTPUT_CONTROL, l->fused[c], 0));
  TFC_TRY(s, note_continued(w));
  if (!w->edges.count) goto out;
  qsort(w->edges.data, w->edges.count, sizeof *w->edges.data, tfc_subject_by_ends);
  for (size_t i = 0; i < w->edges.count; i++) {
    const struct tfc_subject_edge *e = &w->edges.data[i];
    bool there =
        !within_sum(w, e->from, e->to) && bsearch(e, l->edges, l->edge_count, sizeof *e, tfc_subject_by_ends) != NULL;
    if (!there && (!count || tfc_subject_by_ends(&w->edges.data[count - 1], e) != 0)) w->edges.data[count++] = *e;
  }
  circular = calloc(count + 1u, sizeof *circular);
  if (!circular) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, mark_circles(l, w->edges.data, count, circular));
  for (uint32_t e = 0; e < count; e++)
    if (!circular[e]) TFC_TRY(s, add_edge(l, &w->edges.data[e], b));
out:
  free(circular);
  return s;
}

tfc_status tfc_subject_cost_graph(const struct tfc_subject *l, const struct tfc_cost_table *costs, bool fastest,
                                  const bool *kept, struct tfc_cost_graph **out) {
  tfc_status s = NULL;
  struct tfc_cost_builder *b = NULL;
  struct rewritten w = {.l = l, .kept = kept};
  uint32_t id = 0;
  TFC_TRY(s, tfc_cost_builder_create(&b));
  for (uint32_t k = 0; k < l->kind_count; k++) TFC_TRY(s, tfc_cost_builder_kind(b, l->kinds[k], &id));
  for (uint32_t c = 0; c < l->cost_count; c++) {
    uint32_t node = l->node_of[c];
    double other = 0; // for a kind that was not profiled: the fastest time on the other kinds
    bool seen = false;
    TFC_TRY(s, tfc_cost_builder_node(b, l->graph->nodes[node].name, &id));
    for (uint32_t k = 0; k < l->kind_count && l->runs[c]; k++) {
      double us = cost_us(costs, node, k, fastest);
      if (!isnan(us) && (!seen || us < other)) other = us, seen = true;
    }
    for (uint32_t k = 0; k < l->kind_count; k++) {
      if (l->supported && !l->supported[(size_t)k * l->graph->node_count + node]) continue;
      double us = cost_us(costs, node, k, fastest);
      TFC_TRY(s, tfc_cost_builder_time(b, id, k, !l->runs[c] ? 0 : !isnan(us) ? us : other));
    }
    tfc_cost_builder_memory(b, id, l->memory[c]);
    if (l->group[c].data) TFC_TRY(s, tfc_cost_builder_group(b, id, l->group[c]));
    if (l->pin[c].data) TFC_TRY(s, tfc_cost_builder_pin(b, id, l->pin[c]));
  }
  if (kept) TFC_TRY(s, find_sums(&w));
  for (uint32_t e = 0; e < l->edge_count; e++) {
    const struct tfc_subject_edge *edge = &l->edges[e];
    if (kept && within_sum(&w, edge->from, edge->to))
      TFC_TRY(s, note(&w, edge->from, TFC_OUTPUT_CONTROL, edge->to, 0));
    else
      TFC_TRY(s, add_edge(l, edge, b));
  }
  if (kept) TFC_TRY(s, add_rewritten_edges(&w, b));
  TFC_TRY(s, tfc_cost_builder_finish(b, out));
out:
  free(w.sum_of);
  free(w.continues);
  tfc_array_free(&w.edges);
  tfc_cost_builder_free(b);
  return s;
}
