// Union-find: elements 0 .. count - 1 in disjoint sets. parent[i] leads towards the root, the element by which the
// whole set is known; a root is its own parent. Each search for a root shortens the path to it.
#ifndef TFC_RUNTIME_BASE_UNION_FIND_H
#define TFC_RUNTIME_BASE_UNION_FIND_H

#include <stdint.h>

// Each element becomes a set of its own.
static inline void tfc_union_find_init(uint32_t *parent, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) parent[i] = i;
}

static inline uint32_t tfc_union_find_root(uint32_t *parent, uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// Joins two sets; the root of `keeps` stays the root. Nothing changes if both are in one set already.
static inline void tfc_union_find_join(uint32_t *parent, uint32_t keeps, uint32_t joins) {
  parent[tfc_union_find_root(parent, joins)] = tfc_union_find_root(parent, keeps);
}

#endif
