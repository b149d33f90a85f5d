// Hash maps from a string view, or a 64-bit number, to a 64-bit value. Keys of the string map are views: their bytes
// must outlive the map. A zeroed map is empty. One writer at a time; any number of readers while nothing is written.
#ifndef TFC_RUNTIME_BASE_MAP_H
#define TFC_RUNTIME_BASE_MAP_H

#include "runtime/base/str.h"

struct tfc_strmap_entry {
  tfc_str key;
  uint64_t value;
};
struct tfc_strmap {
  struct tfc_strmap_entry *entries; // in the order in which they were put
  size_t count;
  uint64_t *slots; // each has a part of the hash, and the number of an entry
  size_t capacity; // of slots: a power of two, or 0
};
bool tfc_strmap_reserve(struct tfc_strmap *map, size_t count);
// Finds the key or adds it with `value`; *out_found (optional) says which. Returns the value's place, valid until the
// next put; NULL when memory is out.
uint64_t *tfc_strmap_put(struct tfc_strmap *map, tfc_str key, uint64_t value, bool *out_found);
const uint64_t *tfc_strmap_get(const struct tfc_strmap *map, tfc_str key); // NULL: the map does not have the key
void tfc_strmap_deinit(struct tfc_strmap *map);

struct tfc_intmap_slot {
  uint64_t key, value;
};
struct tfc_intmap {
  struct tfc_intmap_slot *slots;
  uint8_t *used;
  size_t count, capacity;
};
bool tfc_intmap_reserve(struct tfc_intmap *map, size_t count);
uint64_t *tfc_intmap_put(struct tfc_intmap *map, uint64_t key, uint64_t value, bool *out_found);
const uint64_t *tfc_intmap_get(const struct tfc_intmap *map, uint64_t key);
void tfc_intmap_deinit(struct tfc_intmap *map);

// the same in one run of a process, but not in other versions of tfc
uint64_t tfc_hash_bytes(const void *data, size_t size);

#endif
