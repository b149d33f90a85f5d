// Open addressing with linear probing, at most three quarters full. Nothing is ever removed, so there are no
// tombstones.
#include "runtime/base/map.h"

#include <stdlib.h>
#include <xxhash.h>

uint64_t tfc_hash_bytes(const void *data, size_t size) {
  return XXH3_64bits(data, size);
}

// --- Strings ---------------------------------------------------------------------------------------------------------
// A slot has 32 bits of the key's hash, and the number of its entry plus one (0: the slot is free). Slots are small,
// and entries are stored in the order of insertion: looking up names in that order (such as the inputs of a graph's
// nodes) reads neighbouring memory.
static size_t most_entries(size_t capacity) {
  return capacity / 4 * 3;
}

bool tfc_strmap_reserve(struct tfc_strmap *map, size_t count) {
  if (count <= most_entries(map->capacity)) return true;
  size_t capacity = map->capacity ? map->capacity : 16;
  while (most_entries(capacity) < count) {
    if (capacity > (size_t)1 << 31) return false;
    capacity *= 2;
  }
  struct tfc_strmap_entry *entries = realloc(map->entries, most_entries(capacity) * sizeof *entries);
  if (!entries) return false;
  map->entries = entries;
  uint64_t *slots = calloc(capacity, sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < map->capacity; i++) {
    if (!map->slots[i]) continue;
    size_t at = map->slots[i] >> 32 & (capacity - 1);
    while (slots[at]) at = (at + 1) & (capacity - 1);
    slots[at] = map->slots[i];
  }
  free(map->slots);
  map->slots = slots;
  map->capacity = capacity;
  return true;
}

// Finds the slot of the key, or the free slot where it belongs.
static uint64_t *find(const struct tfc_strmap *map, tfc_str key, uint64_t hash) {
  for (size_t at = hash & (map->capacity - 1);; at = (at + 1) & (map->capacity - 1)) {
    uint64_t slot = map->slots[at];
    if (!slot || (slot >> 32 == hash && tfc_str_equal(map->entries[(uint32_t)slot - 1].key, key)))
      return &map->slots[at];
  }
}

static uint64_t hash_of(tfc_str key) {
  return tfc_hash_bytes(key.data, key.size) >> 32;
}

uint64_t *tfc_strmap_put(struct tfc_strmap *map, tfc_str key, uint64_t value, bool *out_found) {
  if (!tfc_strmap_reserve(map, map->count + 1)) return NULL;
  if (!key.data) key = TFC_STR("");
  uint64_t hash = hash_of(key), *slot = find(map, key, hash);
  if (out_found) *out_found = *slot != 0;
  if (!*slot) {
    map->entries[map->count++] = (struct tfc_strmap_entry){key, value};
    *slot = hash << 32 | map->count;
  }
  return &map->entries[(uint32_t)*slot - 1].value;
}

const uint64_t *tfc_strmap_get(const struct tfc_strmap *map, tfc_str key) {
  if (!map->count) return NULL;
  if (!key.data) key = TFC_STR("");
  uint64_t slot = *find(map, key, hash_of(key));
  return slot ? &map->entries[(uint32_t)slot - 1].value : NULL;
}

void tfc_strmap_deinit(struct tfc_strmap *map) {
  free(map->entries);
  free(map->slots);
  *map = (struct tfc_strmap){0};
}

// --- Numbers ---------------------------------------------------------------------------------------------------------
static uint64_t mix(uint64_t x) { // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool tfc_intmap_reserve(struct tfc_intmap *map, size_t count) {
  size_t capacity = map->capacity ? map->capacity : 16;
  while (capacity / 4 * 3 < count) {
    if (capacity > SIZE_MAX / 4) return false;
    capacity *= 2;
  }
  if (capacity == map->capacity) return true;
  struct tfc_intmap grown = {calloc(capacity, sizeof *grown.slots), calloc(capacity, 1), 0, capacity};
  if (!grown.slots || !grown.used) return free(grown.slots), free(grown.used), false;
  for (size_t i = 0; i < map->capacity; i++)
    if (map->used[i]) tfc_intmap_put(&grown, map->slots[i].key, map->slots[i].value, NULL);
  tfc_intmap_deinit(map);
  *map = grown;
  return true;
}

uint64_t *tfc_intmap_put(struct tfc_intmap *map, uint64_t key, uint64_t value, bool *out_found) {
  if (map->count + 1 > map->capacity / 4 * 3 && !tfc_intmap_reserve(map, map->count + 1)) return NULL;
  size_t at = mix(key) & (map->capacity - 1);
  while (map->used[at] && map->slots[at].key != key) at = (at + 1) & (map->capacity - 1);
  if (out_found) *out_found = map->used[at];
  if (!map->used[at]) {
    map->used[at] = 1;
    map->slots[at] = (struct tfc_intmap_slot){key, value};
    map->count++;
  }
  return &map->slots[at].value;
}

const uint64_t *tfc_intmap_get(const struct tfc_intmap *map, uint64_t key) {
  if (!map->count) return NULL;
  size_t at = mix(key) & (map->capacity - 1);
  while (map->used[at] && map->slots[at].key != key) at = (at + 1) & (map->capacity - 1);
  return map->used[at] ? &map->slots[at].value : NULL;
}

void tfc_intmap_deinit(struct tfc_intmap *map) {
  free(map->slots);
  free(map->used);
  *map = (struct tfc_intmap){0};
}
