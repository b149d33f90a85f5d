#include "placer/search/parts.h"

#include <stdlib.h>
#include <string.h>

#include "placer/search/pack.h"

#define PACK_ROUNDS 64

static bool may_be(const void *user, uint32_t part, uint32_t device) {
  const struct tfc_parts *q = user;
  return q->may[(size_t)part * q->p->device_count + device];
}

void tfc_parts_deinit(struct tfc_parts *q) {
  free(q->may), free(q->memory), free(q->time), free(q->sorted), free(q->load), free(q->used);
  *q = (struct tfc_parts){0};
}

tfc_status tfc_parts_init(struct tfc_parts *q, const struct tfc_problem *p, const uint32_t *of, uint32_t count) {
  *q = (struct tfc_parts){.p = p, .of = of, .count = count, .any = true};
  q->may = malloc(((size_t)count * p->device_count + 1) * sizeof *q->may);
  q->memory = calloc(count + 1u, sizeof *q->memory);
  q->time = calloc((size_t)count * p->class_count + 1, sizeof *q->time);
  q->sorted = malloc(sizeof *q->sorted * (count + 1u));
  q->load = calloc(p->device_count + 1u, sizeof *q->load);
  q->used = calloc(p->device_count + 1u, sizeof *q->used);
  if (!q->may || !q->memory || !q->time || !q->sorted || !q->load || !q->used) return tfc_status_no_memory("packing");
  memset(q->may, 1, (size_t)count * p->device_count * sizeof *q->may);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    q->memory[of[u]] += p->unit_memory[u];
    for (uint32_t d = 0; d < p->device_count; d++)
      q->may[(size_t)of[u] * p->device_count + d] &= tfc_problem_allows(p, u, d);
    for (uint32_t c = 0; c < p->class_count; c++)
      q->time[(size_t)of[u] * p->class_count + c] += (double)p->unit_time[(size_t)c * p->unit_count + u];
  }
  for (uint32_t k = 0; k < count; k++) {
    bool any = false;
    q->sorted[k] = (struct tfc_part){q->memory[k], 1e300, k};
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_be(q, k, d)) continue;
      const double time = q->time[(size_t)k * p->class_count + p->device_class[d]];
      any = true;
      if (time < q->sorted[k].work) q->sorted[k].work = time;
    }
    q->any &= any;
  }
  return NULL;
}

static int by_memory(const void *a, const void *b) {
  const struct tfc_part *x = a, *y = b;
  if (x->memory != y->memory) return x->memory > y->memory ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}
static int by_work(const void *a, const void *b) {
  const struct tfc_part *x = a, *y = b;
  if (x->work != y->work) return x->work > y->work ? -1 : 1;
  return by_memory(a, b);
}

void tfc_parts_spread(struct tfc_parts *q, struct tfc_random *random, enum tfc_parts_order order, tfc_device_id *home) {
  const struct tfc_problem *p = q->p;
  qsort(q->sorted, q->count, sizeof *q->sorted, order == TFC_PARTS_BY_WORK ? by_work : by_memory);
  for (uint32_t i = q->count; i > 1 && order == TFC_PARTS_ANYHOW; i--) {
    const uint32_t j = (uint32_t)tfc_random_below(random, i);
    const struct tfc_part x = q->sorted[i - 1];
    q->sorted[i - 1] = q->sorted[j], q->sorted[j] = x;
  }
  memset(q->load, 0, sizeof *q->load * p->device_count);
  memset(q->used, 0, sizeof *q->used * p->device_count);
  for (uint32_t i = 0; i < q->count; i++) {
    const uint32_t k = q->sorted[i].number;
    uint32_t best = TFC_NONE;
    bool fits = false;
    double least = 0;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_be(q, k, d)) continue;
      const uint64_t room = p->limit[d] > q->used[d] ? p->limit[d] - q->used[d] : 0;
      const bool has_room = room >= q->memory[k];
      const double time = q->time[(size_t)k * p->class_count + p->device_class[d]];
      const double cost = has_room ? q->load[d] + time : -(double)room;
      if (best != TFC_NONE && (has_room != fits ? fits : cost >= least)) continue;
      best = d, least = cost, fits = has_room;
    }
    home[k] = (tfc_device_id)best;
    q->used[best] += q->memory[k];
    q->load[best] += q->time[(size_t)k * p->class_count + p->device_class[best]];
  }
}

bool tfc_parts_pack(const struct tfc_parts *q, struct tfc_random *random, bool thorough, tfc_device_id *home) {
  const struct tfc_pack pack = {q->count, q->p->device_count, q->memory, q->p->limit, may_be, q, thorough};
  return tfc_pack_bins(&pack, random, PACK_ROUNDS, home) == 0;
}
