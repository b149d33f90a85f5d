// Sets of units whose border is cheap: the minimum of a sum of border and work, by a maximum flow.
//
// The border of a set are the nets of which some units are inside and others are not. A net with more than two units is
// an arc between two vertices of its own, one that all units lead to and one that leads to all of them (Lawler 1973,
// "Cutsets and partitions of hypergraphs"). The flow is found by Dinitz's algorithm (1970).
#ifndef TFC_PLACER_EXACT_MINCUT_H
#define TFC_PLACER_EXACT_MINCUT_H

#include <stdbool.h>
#include <stdint.h>

struct tfc_mincut_graph {
  uint32_t unit_count, net_count;
  const uint32_t *first; // [net_count + 1] into unit
  const uint32_t *unit;  // a net's units, each once, at least two
  const int64_t *cost;   // [net] at least 0; the sum of all, and of all work, is below 2^60
  const int64_t *work;   // [unit] at least 0
};

enum { TFC_MINCUT_FREE, TFC_MINCUT_INSIDE, TFC_MINCUT_OUTSIDE };
struct tfc_mincut_set {
  bool *inside; // [unit], of the caller
  int64_t border, work;
};

struct tfc_mincut;
// NULL: out of memory, or sums are too large. `graph` is borrowed.
struct tfc_mincut *tfc_mincut_create(const struct tfc_mincut_graph *graph);
void tfc_mincut_free(struct tfc_mincut *cut); // NULL is fine
uint64_t tfc_mincut_arcs(const struct tfc_mincut *cut);

// Finds a set that holds all units that are fixed inside, at least one, and none that is fixed outside, with the least
// border_price * border + work_price * work. `border_price` is at least 0. The minimum is exact if both prices are 0 or
// 1; else it is that of costs and work that are rounded by a part in 2^59 of the largest sum. `fixed`: [unit]
// TFC_MINCUT_…
void tfc_mincut_solve(struct tfc_mincut *cut, double border_price, double work_price, const uint8_t *fixed,
                      struct tfc_mincut_set *out);

#endif
