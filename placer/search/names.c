#include "placer/search/names.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/base/map.h"

enum { MOST_PARTS = 12 };

// A part of a name between slashes: its text without digits, and its number if it has one.
struct part {
  uint64_t text, number;
  bool numbered;
};
struct unit_name {
  struct part parts[MOST_PARTS];
  uint32_t count;
};
// Parts with the same text and the same parents, which differ only by their numbers: the layers of an encoder.
struct family {
  uint64_t least, most;
  uint32_t members; // distinct numbers
  uint32_t ranges;  // 0: each number is a group of its own; else the numbers are divided into so many ranges
};

static uint64_t mix(uint64_t a, uint64_t b) {
  return tfc_hash_bytes((uint64_t[]){a, b}, 2 * sizeof a);
}

static bool starts_with(tfc_str s, const char *with) {
  return s.size >= strlen(with) && memcmp(s.data, with, strlen(with)) == 0;
}

static struct part read_part(tfc_str s) {
  struct part part = {.text = 1};
  // The names "MatMul_2" and "MatMul" belong to one family.
  size_t end = s.size;
  while (end && isdigit((unsigned char)s.data[end - 1])) end--;
  if (end && end < s.size && s.data[end - 1] == '_') end--;
  for (size_t i = 0; i < end;) {
    if (!isdigit((unsigned char)s.data[i])) {
      part.text = part.text * 1099511628211u + (unsigned char)s.data[i++];
      continue;
    }
    part.text = part.text * 1099511628211u + '#';
    part.numbered = true;
    for (; i < end && isdigit((unsigned char)s.data[i]); i++)
      part.number = part.number * 10 + (uint64_t)(s.data[i] - '0');
  }
  for (size_t i = end; i < s.size; i++) {
    if (!isdigit((unsigned char)s.data[i])) continue;
    part.numbered = true;
    part.number = part.number * 10 + (uint64_t)(s.data[i] - '0');
  }
  return part;
}

// Splits the name of an operation into parts. The name of a gradient or an update contains the name of the operation
// that it belongs to; then only that one is split.
static void read_name(tfc_str name, struct unit_name *out) {
  out->count = 0;
  while (name.size && out->count < MOST_PARTS) {
    tfc_str s = tfc_str_take(&name, '/');
    if (starts_with(s, "gradients") || starts_with(s, "gradient_tape")) continue;
    if (starts_with(s, "update_")) out->count = 0, s = tfc_str_sub(s, strlen("update_"), s.size);
    out->parts[out->count++] = read_part(s);
  }
}

// Returns the name of that operation of the unit which takes longest.
static tfc_str name_of(const struct tfc_problem *p, uint32_t u) {
  const struct tfc_cost_graph *g = p->graph;
  uint32_t best = p->member[p->first_member[u]];
  for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++)
    if (g->time_us[(size_t)p->member[i] * g->kind_count] > g->time_us[(size_t)best * g->kind_count])
      best = p->member[i];
  return g->names[best];
}

static uint64_t devices_of(const struct tfc_problem *p, uint32_t u) {
  uint64_t key = p->unit_pin[u];
  for (uint32_t d = 0; d < p->device_count && p->class_count > 1; d++) key = key * 3 + tfc_problem_allows(p, u, d);
  return key;
}

static uint32_t choose_ranges(const struct tfc_problem *p, struct tfc_random *r, uint32_t members) {
  if (members <= 2 * p->device_count) return tfc_random_below(r, 5) ? 0 : 1;
  if (tfc_random_below(r, 2)) return 1;
  return 1 + (uint32_t)tfc_random_below(r, 2 * p->device_count);
}

static uint64_t number_in_family(const struct family *f, uint64_t number) {
  if (f->ranges == 0) return number;
  return (uint64_t)((double)(number - f->least) / ((double)(f->most - f->least) + 1) * f->ranges);
}

uint32_t tfc_names_cluster(const struct tfc_problem *p, struct tfc_random *r, uint32_t *cluster) {
  uint32_t count = 0, family_count = 0;
  struct unit_name *names = malloc(((size_t)p->unit_count + 1) * sizeof *names);
  struct tfc_intmap of_family = {0}, seen = {0}, of_cluster = {0};
  struct family *families = malloc(((size_t)p->unit_count * MOST_PARTS + 1) * sizeof *families);
  if (!names || !families) goto out;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    read_name(name_of(p, u), &names[u]);
    uint64_t path = 0;
    for (uint32_t i = 0; i < names[u].count; i++) {
      const struct part *part = &names[u].parts[i];
      bool found;
      path = mix(path, part->text);
      uint64_t *at = tfc_intmap_put(&of_family, path, family_count, &found);
      if (!at) goto out;
      if (!found) families[family_count++] = (struct family){.least = part->number, .most = part->number};
      struct family *f = &families[*at];
      if (part->number < f->least) f->least = part->number;
      if (part->number > f->most) f->most = part->number;
      if (!tfc_intmap_put(&seen, mix(path, part->number), 0, &found)) goto out;
      f->members += !found;
    }
  }
  for (uint32_t f = 0; f < family_count; f++) families[f].ranges = choose_ranges(p, r, families[f].members);
  uint32_t depth = 1 + (uint32_t)tfc_random_below(r, 6);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint64_t path = 0, key = devices_of(p, u);
    for (uint32_t i = 0; i < names[u].count && i < depth; i++) {
      const struct part *part = &names[u].parts[i];
      path = mix(path, part->text);
      key = mix(key, mix(path, number_in_family(&families[*tfc_intmap_get(&of_family, path)], part->number)));
    }
    bool found;
    uint64_t *at = tfc_intmap_put(&of_cluster, key, count, &found);
    if (!at) {
      count = 0;
      goto out;
    }
    count += !found;
    cluster[u] = (uint32_t)*at;
  }
out:
  tfc_intmap_deinit(&of_family);
  tfc_intmap_deinit(&seen);
  tfc_intmap_deinit(&of_cluster);
  free(names);
  free(families);
  return count;
}
