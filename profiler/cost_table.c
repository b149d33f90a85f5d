#include "profiler/cost_table.h"

#include <math.h>

#include "profiler/statistics.h"

enum { KEPT = 64 };
struct cell {
  float *samples; // [KEPT] a ring, made on first use
  uint32_t count, next;
  float fastest;
};
struct tfc_cost_table {
  struct cell *cells; // [node * kind_count + kind]
  uint32_t node_count, kind_count;
};

tfc_status tfc_cost_table_create(uint32_t node_count, uint32_t kind_count, struct tfc_cost_table **out) {
  struct tfc_cost_table *t = calloc(1, sizeof *t);
  if (t) t->cells = calloc((size_t)node_count * kind_count + 1, sizeof *t->cells);
  if (!t || !t->cells) {
    free(t);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  t->node_count = node_count, t->kind_count = kind_count;
  *out = t;
  return NULL;
}

void tfc_cost_table_free(struct tfc_cost_table *t) {
  if (!t) return;
  for (size_t i = 0; i < (size_t)t->node_count * t->kind_count; i++) free(t->cells[i].samples);
  free(t->cells);
  free(t);
}

tfc_status tfc_cost_table_put(struct tfc_cost_table *t, uint32_t node, uint32_t kind, double us) {
  if (node >= t->node_count || kind >= t->kind_count || !isfinite(us) || us < 0)
    return tfc_status_make(TFC_ABORTED, "cost table: %g us for node %u on kind %u is no measurement", us, node, kind);
  struct cell *c = &t->cells[(size_t)node * t->kind_count + kind];
  if (!c->samples && !(c->samples = malloc(KEPT * sizeof *c->samples)))
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  c->samples[c->next] = (float)us;
  c->next = (c->next + 1) % KEPT;
  if (c->count == 0 || us < (double)c->fastest) c->fastest = (float)us;
  if (c->count < KEPT) c->count++;
  return NULL;
}

tfc_status tfc_cost_table_add(struct tfc_cost_table *t, const struct tfc_step_profile *p,
                              const uint32_t *kind_of_device) {
  for (size_t i = 0; i < p->ops.count; i++)
    TFC_RETURN_IF_ERROR(tfc_cost_table_put(t, p->ops.data[i].node, kind_of_device[p->ops.data[i].device],
                                           1e-3 * (double)p->ops.data[i].duration_ns));
  return NULL;
}

struct tfc_cost tfc_cost_table_get(const struct tfc_cost_table *t, uint32_t node, uint32_t kind) {
  const struct cell *c = &t->cells[(size_t)node * t->kind_count + kind];
  double values[KEPT];
  for (uint32_t i = 0; i < c->count; i++) values[i] = (double)c->samples[i];
  struct tfc_quartiles q = tfc_quartiles_of(values, c->count);
  return (struct tfc_cost){q.median, q.q1, q.q3, c->count ? (double)c->fastest : NAN, c->count};
}

double tfc_cost_table_fastest(const struct tfc_cost_table *t, uint32_t node, uint32_t kind) {
  const struct cell *c = &t->cells[(size_t)node * t->kind_count + kind];
  return c->count ? (double)c->fastest : NAN;
}

void tfc_slowdown_add(struct tfc_slowdown_sums *sums, const struct tfc_cost_table *alone,
                      const struct tfc_step_profile *p, const uint32_t *kind_of_device, uint32_t device_count,
                      uint32_t kind) {
  int64_t *end = calloc(device_count, sizeof *end);
  if (!end) return; // one observation less
  for (size_t i = 0; i < p->ops.count; i++) {
    const struct tfc_profile_op *o = &p->ops.data[i];
    end[o->device] = o->start_ns + o->duration_ns;
    if (kind_of_device[o->device] != kind) continue;
    uint32_t busy = 0;
    for (uint32_t d = 0; d < device_count; d++)
      busy += kind_of_device[d] == kind && (d == o->device || end[d] > o->start_ns);
    struct tfc_cost cost = tfc_cost_table_get(alone, o->node, kind);
    if (busy > sums->limit || cost.samples == 0 || !(cost.median_us > 0)) continue;
    sums->measured_us[busy] += 1e-3 * (double)o->duration_ns;
    sums->alone_us[busy] += cost.median_us;
  }
  free(end);
}
