// Goes through the step backwards, from its end: an operation must be over when the first of its consumers needs the
// result, less the time of the transfer, and before the next operation of its device begins. Transfers on one wire do
// not overlap.
#include "placer/search/slack.h"

#include <stdlib.h>
#include <string.h>

tfc_status tfc_slack_init(struct tfc_slack *k, const struct tfc_problem *p) {
  const size_t nodes = (size_t)p->node_count + 1;
  *k = (struct tfc_slack){.problem = p};
  k->late = calloc(nodes, sizeof *k->late);
  k->before = calloc(nodes, sizeof *k->before);
  k->critical = calloc(nodes, sizeof *k->critical);
  k->order = calloc(nodes, sizeof *k->order);
  k->position = calloc(nodes, sizeof *k->position);
  k->free_until = calloc((size_t)p->device_count + 1, sizeof *k->free_until);
  k->later = calloc((size_t)p->device_count + 1, sizeof *k->later);
  k->needed = calloc((size_t)p->device_count + 1, sizeof *k->needed);
  k->wire_until = calloc((size_t)p->wire_count + 1, sizeof *k->wire_until);
  if (!k->late || !k->before || !k->critical || !k->order || !k->position || !k->free_until || !k->later ||
      !k->needed || !k->wire_until) {
    tfc_slack_deinit(k);
    return tfc_status_no_memory("the slack of a step");
  }
  for (uint32_t i = 0; i < p->node_count; i++) {
    k->position[p->graph->topological[i]] = i;
    k->order[i] = p->graph->topological[p->node_count - 1 - i];
  }
  for (uint32_t d = 0; d < p->device_count; d++) k->needed[d] = TFC_TIME_MAX;
  return NULL;
}

void tfc_slack_deinit(struct tfc_slack *k) {
  free(k->late), free(k->before), free(k->critical), free(k->order), free(k->position), free(k->free_until);
  free(k->later), free(k->needed), free(k->wire_until);
  *k = (struct tfc_slack){0};
}

// The order of the backward pass: by end, latest first; of those that end at the same time, consumers come before
// producers.
struct by_end {
  const int64_t *end;
  const uint32_t *position;
};
static bool comes_first(const struct by_end *b, uint32_t x, uint32_t y) {
  if (b->end[x] != b->end[y]) return b->end[x] > b->end[y];
  return b->position[x] > b->position[y];
}
// Merge sort, which is fast if the list is nearly sorted. The list usually is, because it was sorted before the last
// few moves. room [count]: scratch.
static void sort(const struct by_end *b, uint32_t *list, uint32_t *room, uint32_t count) {
  if (count <= 12) {
    for (uint32_t i = 1; i < count; i++) {
      const uint32_t x = list[i];
      uint32_t j = i;
      for (; j > 0 && comes_first(b, x, list[j - 1]); j--) list[j] = list[j - 1];
      list[j] = x;
    }
    return;
  }
  const uint32_t half = count / 2;
  sort(b, list, room, half);
  sort(b, list + half, room, count - half);
  if (!comes_first(b, list[half], list[half - 1])) return;
  memcpy(room, list, sizeof *room * half);
  for (uint32_t i = 0, j = half, k = 0; i < half;)
    list[k++] = j < count && comes_first(b, list[j], room[i]) ? list[j++] : room[i++];
}

static int64_t latest_end(struct tfc_slack *k, uint32_t n, const tfc_device_id *device, int64_t value) {
  const struct tfc_problem *p = k->problem;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t here = device[p->unit[n]];
  int64_t latest = value;
  for (uint32_t t = g->first_tensor[n + 1]; t-- > g->first_tensor[n];) { // the last to be sent comes first
    bool sent = false;
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      const uint32_t m = g->consumer[c], there = device[p->unit[m]];
      if (k->late[m] < k->needed[there]) k->needed[there] = k->late[m];
      sent |= there != here;
    }
    if (k->needed[here] < latest) latest = k->needed[here];
    k->needed[here] = TFC_TIME_MAX;
    for (uint32_t d = p->device_count; sent && d-- > 0;) {
      if (k->needed[d] == TFC_TIME_MAX) continue;
      const struct tfc_pair *pair = tfc_problem_pair(p, here, d);
      int64_t until = k->needed[d];
      if (pair->wire != TFC_NONE && k->wire_until[pair->wire] < until) until = k->wire_until[pair->wire];
      until -= tfc_problem_wire_time(p, t, pair);
      if (pair->wire != TFC_NONE) k->wire_until[pair->wire] = until;
      if (until < latest) latest = until;
      k->needed[d] = TFC_TIME_MAX;
    }
  }
  return latest;
}

void tfc_slack_compute(struct tfc_slack *k, const tfc_device_id *device, const int64_t *start, const int64_t *end,
                       int64_t value, double share) {
  const struct tfc_problem *p = k->problem;
  const struct by_end by = {end, k->position};
  const int64_t none = (int64_t)(share * (double)value);
  sort(&by, k->order, k->critical, p->node_count);
  k->count = 0;
  for (uint32_t d = 0; d < p->device_count; d++) k->free_until[d] = value, k->later[d] = TFC_NONE;
  for (uint32_t w = 0; w < p->wire_count; w++) k->wire_until[w] = value;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = k->order[i], d = device[p->unit[n]];
    const int64_t time = end[n] - start[n];
    int64_t until = latest_end(k, n, device, value);
    k->before[n] = TFC_NONE;
    if (time > 0) {
      if (k->free_until[d] < until) until = k->free_until[d];
      k->free_until[d] = until - time;
      if (k->later[d] != TFC_NONE) k->before[k->later[d]] = n;
      k->later[d] = n;
    }
    k->late[n] = until - time;
    if (time > 0 && k->late[n] - start[n] <= none) k->critical[k->count++] = n;
  }
}
