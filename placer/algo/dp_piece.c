// The time of the current piece, kept up to date while runs join and leave it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/algo/dp_piece.h"

static void add_wire(struct tfc_dp *q, uint32_t t, double *sum, double time, int sign) {
  if (time == INFINITY)
    q->missing[t] += (uint32_t)sign;
  else
    *sum += sign * time;
}

void tfc_dp_change(struct tfc_dp *q, uint32_t run, int sign) {
  const struct tfc_problem *p = q->p;
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    q->memory += (uint64_t)sign * p->unit_memory[u];
    for (uint32_t t = 0; t < q->type_count; t++) {
      if (tfc_problem_allows(p, u, q->type[t].first))
        q->time[t] += sign * (double)tfc_problem_unit_time(p, u, q->type[t].first);
      else
        q->barred[t] += (uint32_t)sign;
    }
  }
  if (sign > 0) q->inside[run] = true;
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
      const uint32_t net = p->need[i], total = p->net_first[net + 1] - p->net_first[net];
      const uint32_t source = q->source[net];
      const bool produced = q->inside[source] && source != run;
      const uint32_t before = q->net_in[net], after = before + (uint32_t)sign;
      q->net_in[net] = after;
      if (source == run) continue; // counted with the producer, below
      for (uint32_t t = 0; t < q->type_count; t++) {
        const struct tfc_dp_type *x = &q->type[t];
        if (!produced && (before == 0 || after == 0)) add_wire(q, t, &q->wire_in[t], x->in[net], sign);
        if (produced && (before == total || after == total)) add_wire(q, t, &q->wire_out[t], x->out[net], -sign);
      }
    }
  }
  for (uint32_t k = q->first[run]; k < q->first[run + 1]; k++) {
    const uint32_t u = q->member[k];
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      const uint32_t total = p->net_first[i + 1] - p->net_first[i];
      const uint32_t with = sign > 0 ? q->net_in[i] : q->net_in[i] + q->own[i], without = with - q->own[i];
      for (uint32_t t = 0; t < q->type_count; t++) {
        const struct tfc_dp_type *x = &q->type[t];
        if (without) add_wire(q, t, &q->wire_in[t], x->in[i], -sign);
        if (with < total) add_wire(q, t, &q->wire_out[t], x->out[i], sign);
      }
    }
  }
  if (sign < 0) q->inside[run] = false;
}

void tfc_dp_clear(struct tfc_dp *q) {
  memset(q->inside, 0, sizeof *q->inside * q->run_count);
  memset(q->net_in, 0, sizeof *q->net_in * q->p->net_count);
  for (uint32_t t = 0; t < q->type_count; t++) {
    q->time[t] = q->wire_in[t] = q->wire_out[t] = 0;
    q->barred[t] = q->missing[t] = 0;
  }
  q->memory = 0;
}

double tfc_dp_cost(const struct tfc_dp *q, uint32_t t) {
  if (q->memory > q->type[t].limit || q->barred[t] || q->missing[t]) return INFINITY;
  return q->time[t] + q->wire_in[t] + q->wire_out[t];
}

tfc_status tfc_dp_find_wires(struct tfc_dp *q) {
  const struct tfc_problem *p = q->p;
  const struct tfc_pair *first = p->device_count > 1 ? tfc_problem_pair(p, 0, 1) : NULL;
  struct {
    uint32_t from, to;
    const struct tfc_pair *pair;
  } known[64];
  uint32_t known_count = 0;
  q->even = true;
  q->table = malloc(sizeof *q->table * ((size_t)p->net_count * q->type_count * 2 + 1));
  if (!q->table) return tfc_status_no_memory("dynamic programming");
  for (uint32_t t = 0; t < q->type_count; t++) {
    q->type[t].in = q->table + (size_t)2 * t * p->net_count;
    q->type[t].out = q->type[t].in + p->net_count;
    for (uint32_t i = 0; i < p->net_count; i++) q->type[t].in[i] = q->type[t].out[i] = INFINITY;
  }
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      const uint32_t from = q->type_of[a], to = q->type_of[b];
      uint32_t k = 0;
      if (a == b) continue;
      q->even &= pair->linked && pair->speed == first->speed && pair->occupies == first->occupies;
      while (k < known_count && !(known[k].from == from && known[k].to == to && known[k].pair->speed == pair->speed &&
                                  known[k].pair->occupies == pair->occupies))
        k++;
      if (!pair->linked || k < known_count) continue;
      if (k < sizeof known / sizeof *known) known[k].from = from, known[k].to = to, known[known_count++].pair = pair;
      for (uint32_t i = 0; i < p->net_count; i++) {
        const double time = (double)tfc_problem_wire_time(p, p->net_tensor[i], pair);
        double *in = &q->type[to].in[i], *out = &q->type[from].out[i];
        *in = fmin(*in, pair->occupies & TFC_OCCUPIES_RECEIVER ? time : 0);
        *out = fmin(*out, pair->occupies & TFC_OCCUPIES_SENDER ? time : 0);
      }
    }
  return NULL;
}
