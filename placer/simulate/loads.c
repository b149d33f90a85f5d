#include "placer/simulate/loads.h"

#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

// Whether each tensor takes the same time between all pairs of devices.
static bool is_even(const struct tfc_problem *p) {
  if (p->device_count < 2 || p->device_count > 64 || !p->wire_time || p->has_missing_links) return false;
  for (size_t i = 0; i < (size_t)p->device_count * p->device_count; i++)
    if (p->pair[i].linked && p->pair[i].speed != 0) return false;
  return true;
}

tfc_status tfc_loads_init(struct tfc_loads *l, const struct tfc_problem *p) {
  *l = (struct tfc_loads){.problem = p, .words = (p->device_count + 63u) / 64};
  l->device = calloc((size_t)p->unit_count + 1, sizeof *l->device);
  l->load = calloc(p->device_count, sizeof *l->load);
  l->peek = calloc(p->device_count, sizeof *l->peek);
  l->memory = calloc(p->device_count, sizeof *l->memory);
  l->count = calloc((size_t)p->net_count * p->device_count + 1, sizeof *l->count);
  l->ends = calloc((size_t)p->net_count * l->words + 1, sizeof *l->ends);
  l->source = calloc((size_t)p->net_count + 1, sizeof *l->source);
  l->time = calloc((size_t)p->net_count + 1, sizeof *l->time);
  if (is_even(p) && l->time) {
    for (uint32_t i = 0; i < p->net_count; i++) l->time[i] = p->wire_time[p->net_tensor[i]];
    l->sends = calloc(p->device_count, sizeof *l->sends);
    l->receives = calloc(p->device_count, sizeof *l->receives);
    for (uint32_t from = 0; l->sends && l->receives && from < p->device_count; from++)
      for (uint32_t to = 0; to < p->device_count; to++) {
        const uint8_t occupies = from == to ? 0 : tfc_problem_pair(p, from, to)->occupies;
        if (occupies & TFC_OCCUPIES_SENDER) l->sends[from] |= UINT64_C(1) << to;
        if (occupies & TFC_OCCUPIES_RECEIVER) l->receives[from] |= UINT64_C(1) << to;
      }
  }
  if (l->device && l->load && l->peek && l->memory && l->count && l->ends && l->source && l->time) return NULL;
  tfc_loads_deinit(l);
  return tfc_status_no_memory("the loads");
}

void tfc_loads_deinit(struct tfc_loads *l) {
  free(l->device), free(l->load), free(l->peek), free(l->memory), free(l->count), free(l->ends), free(l->source),
      free(l->time);
  free(l->sends), free(l->receives);
  *l = (struct tfc_loads){0};
}

// Changes of counts. They are unsigned and may be negative (wrap around) until all are added.
struct tally {
  uint64_t transfers, bytes, missing;
};

// Returns one word of a set, without device `minus` and with device `plus` (TFC_NONE: no device).
INLINE uint64_t word_of(const uint64_t *set, uint32_t w, uint32_t minus, uint32_t plus) {
  uint64_t word = set[w];
  if (minus != TFC_NONE && minus >> 6 == w) word &= ~(UINT64_C(1) << (minus & 63));
  if (plus != TFC_NONE && plus >> 6 == w) word |= UINT64_C(1) << (plus & 63);
  return word;
}

// Returns the time, in ps, of the longest transfer of a tensor from `from`, among those that occupy the sender.
static int64_t sending_of(const struct tfc_loads *l, const uint64_t *ends, uint32_t tensor, uint32_t from,
                          uint32_t minus, uint32_t plus) {
  const struct tfc_problem *p = l->problem;
  int64_t sending = 0;
  for (uint32_t w = 0; w < l->words; w++)
    for (uint64_t set = word_of(ends, w, minus, plus); set; set &= set - 1) {
      const uint32_t d = w * 64 + (uint32_t)__builtin_ctzll(set);
      if (d == from) continue;
      const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
      if (!pair->linked || !(pair->occupies & TFC_OCCUPIES_SENDER)) continue;
      const int64_t time = tfc_problem_wire_time(p, tensor, pair);
      if (time > sending) sending = time;
    }
  return sending;
}

// Adds (sign 1) or removes (-1) one destination of a tensor, except for the sender's load.
INLINE void count_end(const struct tfc_problem *p, uint32_t tensor, uint32_t from, uint32_t to, int64_t sign,
                      int64_t *load, struct tally *t) {
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  t->transfers += (uint64_t)sign, t->bytes += (uint64_t)sign * p->graph->bytes[tensor];
  if (!pair->linked)
    t->missing += (uint64_t)sign;
  else if (pair->occupies & TFC_OCCUPIES_RECEIVER)
    load[to] += sign * tfc_problem_wire_time(p, tensor, pair);
}

// Adds (sign 1) or removes (-1) the whole cost of a net with its producer on `from`.
static void whole_net(const struct tfc_loads *l, const uint64_t *ends, uint32_t tensor, uint32_t from, int64_t sign,
                      int64_t *load, struct tally *t) {
  for (uint32_t w = 0; w < l->words; w++)
    for (uint64_t set = ends[w]; set; set &= set - 1) {
      const uint32_t d = w * 64 + (uint32_t)__builtin_ctzll(set);
      if (d != from) count_end(l->problem, tensor, from, d, sign, load, t);
    }
  if (l->problem->has_occupancy) load[from] += sign * sending_of(l, ends, tensor, from, TFC_NONE, TFC_NONE);
}

// Adds the changes from moving a unit, if a tensor takes the same time everywhere.
INLINE void shift_even(const struct tfc_loads *l, uint32_t unit, uint32_t from, uint32_t to, int64_t *load,
                       struct tally *t, bool counted) {
  const struct tfc_problem *p = l->problem;
  const uint64_t at_from = UINT64_C(1) << from, at_to = UINT64_C(1) << to;
  int64_t less = 0, more = 0; // of the two devices; kept in registers, and added without branches, because those would
                              // be mispredicted
  for (uint32_t i = p->first_net[unit]; i < p->first_net[unit + 1]; i++) {
    const uint64_t ends = l->ends[i], change = (uint64_t)((ends & at_from) != 0) - (uint64_t)((ends & at_to) != 0);
    const int64_t time = l->time[i];
    if (counted) t->transfers += change, t->bytes += change * p->graph->bytes[p->net_tensor[i]];
    const uint64_t before = ends & l->receives[from], after = ends & l->receives[to];
    for (uint64_t set = (before ^ after) & ~(at_from | at_to); __builtin_expect(set != 0, 0); set &= set - 1)
      load[__builtin_ctzll(set)] += after & set & -set ? time : -time;
    less += (ends & l->sends[from] ? time : 0) - (after & at_from ? time : 0);
    more += (ends & l->sends[to] ? time : 0) - (before & at_to ? time : 0);
  }
  for (uint32_t i = p->first_need[unit]; i < p->first_need[unit + 1]; i++) {
    const uint32_t net = p->need[i], source = l->source[net];
    const uint64_t ends = l->ends[net], away = ~(UINT64_C(1) << source);
    const uint64_t then = (l->count[(size_t)net * p->device_count + from] == 1 ? ends & ~at_from : ends) | at_to;
    const uint64_t gone = ends & ~then & away, come = then & ~ends & away;
    const uint64_t change = (uint64_t)(come != 0) - (uint64_t)(gone != 0);
    const int64_t time = l->time[net];
    if (counted) t->transfers += change, t->bytes += change * p->graph->bytes[p->net_tensor[net]];
    less += gone & l->receives[source] ? time : 0;
    more += come & l->receives[source] ? time : 0;
    load[source] += (then & l->sends[source] ? time : 0) - (ends & l->sends[source] ? time : 0);
  }
  load[from] -= less, load[to] += more;
}

static void shift_any(const struct tfc_loads *l, uint32_t unit, uint32_t from, uint32_t to, int64_t *load,
                      struct tally *t) {
  const struct tfc_problem *p = l->problem;
  for (uint32_t i = p->first_net[unit]; i < p->first_net[unit + 1]; i++) {
    const uint64_t *ends = l->ends + (size_t)i * l->words;
    whole_net(l, ends, p->net_tensor[i], from, -1, load, t);
    whole_net(l, ends, p->net_tensor[i], to, 1, load, t);
  }
  for (uint32_t i = p->first_need[unit]; i < p->first_need[unit + 1]; i++) {
    const uint32_t net = p->need[i], tensor = p->net_tensor[net];
    const uint32_t source = l->source[net];
    const uint32_t *count = l->count + (size_t)net * p->device_count;
    const uint64_t *ends = l->ends + (size_t)net * l->words;
    const bool gone = count[from] == 1, come = count[to] == 0;
    if (gone && source != from) count_end(p, tensor, source, from, -1, load, t);
    if (come && source != to) count_end(p, tensor, source, to, 1, load, t);
    if (!p->has_occupancy || !(gone || come)) continue;
    load[source] += sending_of(l, ends, tensor, source, gone ? from : TFC_NONE, to) -
                    sending_of(l, ends, tensor, source, TFC_NONE, TFC_NONE);
  }
}

// Adds the changes from moving a unit. `counted`: also counts transfers and bytes.
INLINE void shift(const struct tfc_loads *l, uint32_t unit, uint32_t from, uint32_t to, int64_t *load, struct tally *t,
                  bool counted) {
  const struct tfc_problem *p = l->problem;
  load[from] -= tfc_problem_unit_time(p, unit, from);
  load[to] += tfc_problem_unit_time(p, unit, to);
  if (l->sends && l->receives)
    shift_even(l, unit, from, to, load, t, counted);
  else
    shift_any(l, unit, from, to, load, t);
}

void tfc_loads_reset(struct tfc_loads *l, const tfc_device_id *device) {
  const struct tfc_problem *p = l->problem;
  struct tally tally = {0};
  memcpy(l->device, device, sizeof *device * p->unit_count);
  memset(l->load, 0, sizeof *l->load * p->device_count);
  memset(l->memory, 0, sizeof *l->memory * p->device_count);
  memset(l->count, 0, sizeof *l->count * p->net_count * p->device_count);
  memset(l->ends, 0, sizeof *l->ends * p->net_count * l->words);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    l->load[device[u]] += tfc_problem_unit_time(p, u, device[u]);
    l->memory[device[u]] += p->unit_memory[u];
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      uint64_t *ends = l->ends + (size_t)i * l->words;
      l->source[i] = device[u];
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t d = device[p->net_unit[j]];
        l->count[(size_t)i * p->device_count + d]++;
        ends[d >> 6] |= UINT64_C(1) << (d & 63);
      }
      whole_net(l, ends, p->net_tensor[i], device[u], 1, l->load, &tally);
    }
  }
  l->transfers = tally.transfers, l->transfer_bytes = tally.bytes, l->missing = tally.missing;
}

void tfc_loads_move(struct tfc_loads *l, uint32_t unit, tfc_device_id to) {
  const struct tfc_problem *p = l->problem;
  const tfc_device_id from = l->device[unit];
  struct tally tally = {l->transfers, l->transfer_bytes, l->missing};
  if (from == to) return;
  shift(l, unit, from, to, l->load, &tally, true);
  l->transfers = tally.transfers, l->transfer_bytes = tally.bytes, l->missing = tally.missing;
  l->memory[from] -= p->unit_memory[unit];
  l->memory[to] += p->unit_memory[unit];
  l->device[unit] = to;
  for (uint32_t i = p->first_net[unit]; i < p->first_net[unit + 1]; i++) l->source[i] = to;
  for (uint32_t i = p->first_need[unit]; i < p->first_need[unit + 1]; i++) {
    uint32_t *count = l->count + (size_t)p->need[i] * p->device_count;
    uint64_t *ends = l->ends + (size_t)p->need[i] * l->words;
    if (--count[from] == 0) ends[from >> 6] &= ~(UINT64_C(1) << (from & 63));
    if (count[to]++ == 0) ends[to >> 6] |= UINT64_C(1) << (to & 63);
  }
}

void tfc_loads_peek(struct tfc_loads *l, uint32_t unit, tfc_device_id to) {
  const tfc_device_id from = l->device[unit];
  struct tally tally = {.missing = l->missing};
  for (uint32_t d = 0; d < l->problem->device_count; d++) l->peek[d] = l->load[d];
  if (from != to) shift(l, unit, from, to, l->peek, &tally, false);
  l->peek_missing = tally.missing;
}

int64_t tfc_loads_value(const struct tfc_loads *l) {
  int64_t value = 0;
  if (l->missing) return TFC_TIME_MAX;
  for (uint32_t d = 0; d < l->problem->device_count; d++)
    if (l->load[d] > value) value = l->load[d];
  return value;
}

INLINE uint64_t excess_on(const struct tfc_problem *p, uint32_t d, uint64_t memory) {
  return memory > p->limit[d] ? memory - p->limit[d] : 0;
}

uint64_t tfc_loads_excess(const struct tfc_loads *l) {
  uint64_t excess = 0;
  for (uint32_t d = 0; d < l->problem->device_count; d++) excess += excess_on(l->problem, d, l->memory[d]);
  return excess;
}

uint64_t tfc_loads_peek_excess(const struct tfc_loads *l, uint32_t unit, tfc_device_id to) {
  const struct tfc_problem *p = l->problem;
  const tfc_device_id from = l->device[unit];
  uint64_t excess = tfc_loads_excess(l);
  if (from == to) return excess;
  excess -= excess_on(p, from, l->memory[from]) + excess_on(p, to, l->memory[to]);
  return excess + excess_on(p, from, l->memory[from] - p->unit_memory[unit]) +
         excess_on(p, to, l->memory[to] + p->unit_memory[unit]);
}
