// Open addressing, linear probing, at most three quarters full. Nothing is removed, so no tombstones.
#include "runtime/base/map.h"

#include <stdlib.h>
#include <xxhash.h>

uint64_t tfc_hash_bytes(const void *data, size_t size) {
  return XXH3_64bits(data, size);
}

bool tfc_strmap_reserve(struct tfc_strmap *map, size_t count) {
  size_t capacity = map->capacity ? map->capacity : 16;
  while (capacity / 4 * 3 < count) {
    if (capacity > SIZE_MAX / 4) return false;
    capacity *= 2;
  }
  if (capacity == map->capacity) return true;
  struct tfc_strmap_slot *slots = calloc(capacity, sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < map->capacity; i++) {
    if (!map->slots[i].key.data) continue;
    size_t at = map->slots[i].hash & (capacity - 1);
    while (slots[at].key.data) at = (at + 1) & (capacity - 1);
    slots[at] = map->slots[i];
  }
  free(map->slots);
  map->slots = slots;
  map->capacity = capacity;
  return true;
}

static struct tfc_strmap_slot *find(const struct tfc_strmap *map, tfc_str key, uint64_t hash) {
  size_t at = hash & (map->capacity - 1);
  for (;; at = (at + 1) & (map->capacity - 1)) {
    struct tfc_strmap_slot *slot = &map->slots[at];
    if (!slot->key.data || (slot->hash == hash && tfc_str_equal(slot->key, key))) return slot;
  }
}

uint64_t *tfc_strmap_put(struct tfc_strmap *map, tfc_str key, uint64_t value, bool *out_found) {
  if (!tfc_strmap_reserve(map, map->count + 1)) return NULL;
  if (!key.data) key = TFC_STR("");
  uint64_t hash = tfc_hash_bytes(key.data, key.size);
  struct tfc_strmap_slot *slot = find(map, key, hash);
  if (out_found) *out_found = slot->key.data != NULL;
  if (!slot->key.data) {
    *slot = (struct tfc_strmap_slot){key, hash, value};
    map->count++;
  }
  return &slot->value;
}

const uint64_t *tfc_strmap_get(const struct tfc_strmap *map, tfc_str key) {
  if (!map->count) return NULL;
  if (!key.data) key = TFC_STR("");
  struct tfc_strmap_slot *slot = find(map, key, tfc_hash_bytes(key.data, key.size));
  return slot->key.data ? &slot->value : NULL;
}

void tfc_strmap_deinit(struct tfc_strmap *map) {
  free(map->slots);
  *map = (struct tfc_strmap){0};
}

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
