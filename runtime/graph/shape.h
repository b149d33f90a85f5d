// Shapes. A known dimension is >= 0. TFC_DIM_UNKNOWN (-1) is unknown; every value below it is a symbol: unknown too,
// but equal symbols are equal sizes (a batch dimension keeps its identity through a graph). Rank TFC_RANK_UNKNOWN
// (-1): nothing is known.
#ifndef TFC_RUNTIME_GRAPH_SHAPE_H
#define TFC_RUNTIME_GRAPH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum { TFC_MAX_RANK = 10, TFC_RANK_UNKNOWN = -1, TFC_DIM_UNKNOWN = -1 };

struct tfc_shape {
  int32_t rank; // -1: unknown
  int64_t dims[TFC_MAX_RANK];
};

#define TFC_SHAPE_UNKNOWN ((struct tfc_shape){.rank = TFC_RANK_UNKNOWN})
#define TFC_SHAPE_SCALAR ((struct tfc_shape){.rank = 0})
// TFC_SHAPE(2, 3): dimensions as arguments.
#define TFC_SHAPE(...)                                                                                                 \
  ((struct tfc_shape){.rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = {__VA_ARGS__}})

struct tfc_shape tfc_shape_unknown_of_rank(int rank);
bool tfc_shape_is_static(const struct tfc_shape *s);                        // rank and every dimension known
int64_t tfc_shape_elements(const struct tfc_shape *s);                      // product; -1 if unknown or over INT64_MAX
bool tfc_shape_equal(const struct tfc_shape *a, const struct tfc_shape *b); // same rank, dims and symbols
// Whether both could describe the same tensor. (Unknown sizes and symbols match anything.)
bool tfc_shape_compatible(const struct tfc_shape *a, const struct tfc_shape *b);
// Combines what is known in both; INVALID_ARGUMENT: they contradict each other.
TFC_MUST_USE tfc_status tfc_shape_merge(const struct tfc_shape *a, const struct tfc_shape *b, struct tfc_shape *out);
TFC_MUST_USE tfc_status tfc_dim_merge(int64_t a, int64_t b, int64_t *out);
// Broadcasts like numpy; unknown dimensions give what is certain (a known dimension > 1 wins over an unknown one).
TFC_MUST_USE tfc_status tfc_shape_broadcast(const struct tfc_shape *a, const struct tfc_shape *b,
                                            struct tfc_shape *out);
// Writes a shape as text: "[32,?,512]"; "?" if the rank is unknown; symbols as "?a". `buffer` has at least
// TFC_SHAPE_TEXT bytes and is returned.
enum { TFC_SHAPE_TEXT = 256 };
const char *tfc_shape_show(const struct tfc_shape *s, char *buffer);
// Sets out_strides to the row-major strides, in elements, of a static shape.
void tfc_shape_strides(const struct tfc_shape *s, int64_t *out_strides);

static inline bool tfc_dim_known(int64_t d) {
  return d >= 0;
}

#endif
