#include "profiler/cost_table.h"

#include <math.h>

#include "profiler/statistics.h"

enum { KEPT = 64 };
struct cell {
  float *samples; // [KEPT] a ring buffer, allocated on first use
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
    return tfc_status_no_memory(NULL);
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
  if (!c->samples && !(c->samples = malloc(KEPT * sizeof *c->samples))) return tfc_status_no_memory(NULL);
  c->samples[c->next] = (float)us;
  c->next = (c->next + 1) % KEPT;
  if (c->count == 0 || us < (double)c->fastest) c->fastest = (float)us;
  if (c->count < KEPT) c->count++;
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

// --- Fused operations ----------------------------------------------------------------------------------------------
tfc_status tfc_fusion_init(struct tfc_fusion *f, const uint32_t *done_by, uint32_t node_count,
                           const struct tfc_cost_table *weights, const bool *kept) {
  struct tfc_fusion made = {.node_count = node_count, .weights = weights, .kept = kept};
  if (!done_by) return *f = made, NULL;
  made.first = calloc(node_count + 2u, sizeof *made.first);
  made.member = calloc(node_count + 1u, sizeof *made.member);
  if (!made.first || !made.member) {
    tfc_fusion_deinit(&made);
    return tfc_status_no_memory(NULL);
  }
  for (uint32_t n = 0; n < node_count; n++)
    if (done_by[n] < node_count && done_by[n] != n) made.first[done_by[n] + 2]++;
  for (uint32_t n = 0; n < node_count; n++) made.first[n + 2] += made.first[n + 1];
  for (uint32_t n = 0; n < node_count; n++)
    if (done_by[n] < node_count && done_by[n] != n) made.member[made.first[done_by[n] + 1]++] = n;
  *f = made;
  return NULL;
}

void tfc_fusion_deinit(struct tfc_fusion *f) {
  free(f->first);
  free(f->member);
  *f = (struct tfc_fusion){0};
}

static uint32_t members(const struct tfc_fusion *f, uint32_t node, const uint32_t **out) {
  if (!f || !f->first || node >= f->node_count) return 0;
  *out = f->member + f->first[node];
  return f->first[node + 1] - f->first[node];
}

static double weight(const struct tfc_fusion *f, uint32_t node, uint32_t kind) {
  struct tfc_cost c = f->weights ? tfc_cost_table_get(f->weights, node, kind) : (struct tfc_cost){0};
  return c.samples ? c.median_us : 0;
}

static bool stays(const struct tfc_fusion *f, uint32_t node) {
  return f->kept && f->kept[node];
}

static tfc_status share_out(struct tfc_cost_table *t, const struct tfc_fusion *f, uint32_t node, uint32_t kind,
                            double us) {
  const uint32_t *member = NULL;
  uint32_t count = members(f, node, &member);
  double own = count ? weight(f, node, kind) : 1, total = own;
  for (uint32_t i = 0; i < count; i++) {
    double share = weight(f, member[i], kind);
    total += share;
    if (stays(f, member[i])) own += share;
  }
  if (!(total > 0)) own = total = 1;
  TFC_RETURN_IF_ERROR(tfc_cost_table_put(t, node, kind, us * own / total));
  for (uint32_t i = 0; i < count; i++)
    TFC_RETURN_IF_ERROR(
        tfc_cost_table_put(t, member[i], kind, stays(f, member[i]) ? 0 : us * (weight(f, member[i], kind) / total)));
  return NULL;
}

// Returns how many devices of a kind are busy when an operation starts, itself included. Operations are sorted by
// start.
static uint32_t busy_devices(const struct tfc_profile_op *o, int64_t *end, const uint32_t *kind_of_device,
                             uint32_t device_count) {
  uint32_t busy = 0;
  end[o->device] = o->start_ns + o->duration_ns;
  for (uint32_t d = 0; d < device_count; d++)
    busy += kind_of_device[d] == kind_of_device[o->device] && (d == o->device || end[d] > o->start_ns);
  return busy;
}

tfc_status tfc_cost_table_add(struct tfc_cost_table *t, const struct tfc_step_profile *p,
                              const uint32_t *kind_of_device, uint32_t device_count, const struct tfc_fusion *fusion,
                              const double *slowdown) {
  tfc_status s = NULL;
  int64_t *end = calloc(device_count + 1u, sizeof *end);
  // by node, because some nodes run as several operations (packing, then using)
  double *us = calloc(t->node_count + 1u, sizeof *us);
  if (!end || !us) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = 0; i < p->ops.count; i++) {
    const struct tfc_profile_op *o = &p->ops.data[i];
    uint32_t busy = busy_devices(o, end, kind_of_device, device_count);
    uint32_t kind = kind_of_device[o->device];
    double factor = slowdown ? slowdown[(size_t)kind * device_count + busy - 1] : 1;
    us[o->node] += 1e-3 * (double)o->duration_ns / factor;
  }
  for (size_t i = 0; i < p->ops.count; i++) {
    const struct tfc_profile_op *o = &p->ops.data[i];
    if (us[o->node] < 0) continue;
    TFC_TRY(s, share_out(t, fusion, o->node, kind_of_device[o->device], us[o->node]));
    us[o->node] = -1;
  }
out:
  free(end);
  free(us);
  return s;
}
