// A row names its senders and its receivers by two patterns. First, the set of devices that match is computed for each
// pattern. Then the rows are read from the last to the first, because of several rows that match a pair of devices the
// last one counts. Each sender has a set of the receivers for which no row has been found yet (`open`). A row is given
// to all pairs of a sender that matches it and a receiver in that sender's set that matches it; these receivers leave
// the set. Sets are bits, so 64 receivers are handled at a time.
#include "placer/model/links.h"

#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "runtime/base/none.h"

struct matcher {
  const struct tfc_machine *machine;
  uint32_t words;             // of a set of devices, which has a bit for each
  struct tfc_strmap devices;  // name -> device
  struct tfc_strmap patterns; // pattern -> number of its set
  TFC_ARRAY(uint64_t) sets;   // [pattern * words]
  uint32_t *host;             // [device]
  uint64_t *of_host;          // [host * words]
  uint64_t *open;             // [from * words] receivers that no row has matched yet
  uint64_t *senders;          // [words] devices with such receivers
  struct tfc_intmap done;     // key: two patterns and the row's hosts
};

static uint64_t bit(uint32_t device) {
  return UINT64_C(1) << (device % 64);
}

static bool add_set(struct matcher *m, tfc_str pattern) {
  const size_t at = m->sets.count;
  if (!tfc_array_resize(&m->sets, at + m->words)) return false;
  uint64_t *set = m->sets.data + at;
  if (tfc_str_find(pattern, '*') == SIZE_MAX) {
    const uint64_t *device = tfc_strmap_get(&m->devices, pattern);
    if (device) set[*device / 64] |= bit((uint32_t)*device);
    return true;
  }
  for (uint32_t d = 0; d < m->machine->device_count; d++)
    if (tfc_glob_match(pattern, m->machine->devices[d].name)) set[d / 64] |= bit(d);
  return true;
}

// Finds or makes the set of devices that a pattern matches.
static bool find_set(struct matcher *m, tfc_str pattern, uint64_t *out) {
  bool found;
  const uint64_t *set = tfc_strmap_put(&m->patterns, pattern, m->patterns.count, &found);
  if (!set) return false;
  *out = *set;
  return found || add_set(m, pattern);
}

// Gives the row to all pairs of this sender that match it and have no row yet.
static void take(struct matcher *m, uint32_t row, const uint64_t *to, uint32_t from, uint32_t *out_row) {
  const tfc_hosts hosts = m->machine->links[row].hosts;
  const uint64_t *same = m->of_host + (size_t)m->host[from] * m->words;
  uint64_t *open = m->open + (size_t)from * m->words, left = 0;
  for (uint32_t w = 0; w < m->words; w++) {
    uint64_t hit = to[w] & open[w];
    if (hosts == TFC_HOSTS_SAME) hit &= same[w];
    if (hosts == TFC_HOSTS_DIFFERENT) hit &= ~same[w];
    open[w] &= ~hit, left |= open[w];
    for (; hit; hit &= hit - 1)
      out_row[(size_t)from * m->machine->device_count + 64 * w + (uint32_t)__builtin_ctzll(hit)] = row;
  }
  if (!left) m->senders[from / 64] &= ~bit(from);
}

static tfc_status prepare(struct matcher *m) {
  const uint32_t devices = m->machine->device_count;
  m->words = (devices + 63) / 64;
  m->host = calloc(devices + 1u, sizeof *m->host);
  m->open = calloc((size_t)devices * m->words + 1, sizeof *m->open);
  m->senders = calloc(m->words + 1u, sizeof *m->senders);
  if (!m->host || !m->open || !m->senders) return tfc_status_no_memory("the links of a machine");
  m->of_host = calloc((size_t)tfc_machine_hosts(m->machine, m->host) * m->words + 1, sizeof *m->of_host);
  if (!m->of_host) return tfc_status_no_memory("the links of a machine");
  for (uint32_t d = 0; d < devices; d++) {
    if (!tfc_strmap_put(&m->devices, m->machine->devices[d].name, d, NULL))
      return tfc_status_no_memory("the links of a machine");
    m->senders[d / 64] |= bit(d);
    m->of_host[(size_t)m->host[d] * m->words + d / 64] |= bit(d);
  }
  for (uint32_t d = 0; d < devices; d++)
    memcpy(m->open + (size_t)d * m->words, m->senders, m->words * sizeof *m->senders);
  return NULL;
}

tfc_status tfc_machine_links(const struct tfc_machine *machine, uint32_t *out_row) {
  struct matcher m = {.machine = machine};
  tfc_status s = NULL;
  TFC_TRY(s, prepare(&m));
  for (size_t i = 0; i < (size_t)machine->device_count * machine->device_count; i++) out_row[i] = TFC_NONE;
  for (uint32_t row = machine->link_count; row-- > 0;) {
    const struct tfc_link *l = &machine->links[row];
    uint64_t from, to, any = 0;
    bool found;
    for (uint32_t w = 0; w < m.words; w++) any |= m.senders[w];
    if (!any) break;
    if (!find_set(&m, l->from, &from) || !find_set(&m, l->to, &to) ||
        !tfc_intmap_put(&m.done, from << 32 | to << 2 | l->hosts, 0, &found))
      TFC_TRY(s, tfc_status_no_memory("the links of a machine"));
    if (found) continue; // a later row has the same patterns
    const uint64_t *senders = m.sets.data + from * m.words, *receivers = m.sets.data + to * m.words;
    for (uint32_t w = 0; w < m.words; w++)
      for (uint64_t left = senders[w] & m.senders[w]; left; left &= left - 1)
        take(&m, row, receivers, 64 * w + (uint32_t)__builtin_ctzll(left), out_row);
  }
out:
  tfc_strmap_deinit(&m.devices);
  tfc_strmap_deinit(&m.patterns);
  tfc_intmap_deinit(&m.done);
  tfc_array_free(&m.sets);
  free(m.host);
  free(m.of_host);
  free(m.open);
  free(m.senders);
  return s;
}
