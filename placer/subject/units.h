// Finds which nodes of a graph must share a device, and why. Private to this folder.
#ifndef TFC_PLACER_SUBJECT_UNITS_H
#define TFC_PLACER_SUBJECT_UNITS_H

#include "placer/subject/subject.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op_def.h"

typedef enum tfc_tie {
  TFC_TIE_NONE,
  TFC_TIE_CLASS,     // _class loc:@
  TFC_TIE_REFERENCE, // a reference to a variable
  TFC_TIE_HANDLE,    // a resource handle
  TFC_TIE_FUNCTION,  // the same node of the same function, in another call
  TFC_TIE_CALL,      // serves a call that was lowered
} tfc_tie;

struct tfc_units {
  uint32_t *parent; // [node] union-find
  uint8_t *tie;     // [node] enum tfc_tie: the reason why it was tied first
  uint32_t *tied_to;
};
TFC_MUST_USE tfc_status tfc_units_find_all(const struct tfc_graph *g, struct tfc_arena *arena, struct tfc_units *out);
void tfc_units_join(struct tfc_units *units, uint32_t a, uint32_t b); // for a reason that is not in the graph
uint32_t tfc_units_root(const struct tfc_units *units, uint32_t node);

int tfc_subject_by_ends(const void *a, const void *b); // edges, for qsort: producer, output, consumer

#endif
