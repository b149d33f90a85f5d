// Values that variants and handles hold: tensor lists and optionals (ragged tensors: data_ragged.h). Once made, they do
// not change, so any number of handles may share one.
#ifndef TFC_RUNTIME_OPS_DATA_VARIANT_H
#define TFC_RUNTIME_OPS_DATA_VARIANT_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Makes a tensor that outlives the step's memory plan: it shares the memory of `t` if that has a buffer, else it is a
// copy.
TFC_MUST_USE tfc_status tfc_data_keep(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, struct tfc_tensor *out);
// Makes zeros of a static shape. Strings are "".
TFC_MUST_USE tfc_status tfc_data_zeros(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape,
                                       struct tfc_tensor *out);
// Sets output `i` to `t` and takes over its reference.
TFC_MUST_USE tfc_status tfc_data_output(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_tensor *t);
// Reads a shape input of the list ops: a scalar -1 means an unknown rank, a -1 in a vector an unknown dimension.
TFC_MUST_USE tfc_status tfc_data_shape(const struct tfc_tensor *t, struct tfc_shape *out);
// Makes element [index] of the first dimension a tensor of its own.
TFC_MUST_USE tfc_status tfc_data_row(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, int64_t index,
                                     struct tfc_tensor *out);
// Copies all elements of `from` to `to`, from element `at` of it on. Both have the same type, which may be string.
TFC_MUST_USE tfc_status tfc_data_copy(struct tfc_tensor *to, int64_t at, const struct tfc_tensor *from);
// Returns `s` with the dimension `dim` in front.
struct tfc_shape tfc_data_prepend(int64_t dim, const struct tfc_shape *s);
// Returns the shape that TensorFlow infers for the handles of stacks and TensorArrays: [2], the shape of the older
// reference handles. In fact they are scalars.
static inline struct tfc_shape tfc_data_handle_shape(void) {
  struct tfc_shape s = tfc_shape_unknown_of_rank(1);
  s.dims[0] = 2;
  return s;
}

// --- Lists -------------------------------------------------------------------------------------------------------
// A list is a persistent array: lists share chunks of elements, and a change copies one chunk and the table of chunks.
enum { TFC_LIST_CHUNK = 32 };
struct tfc_list_chunk {
  _Atomic int32_t references;
  struct tfc_tensor items[TFC_LIST_CHUNK]; // dtype NONE: never written
};
struct tfc_list {
  struct tfc_object object;
  tfc_dtype dtype;
  struct tfc_shape element_shape;
  int64_t count, most; // most: max_num_elements, -1 for any number
  struct tfc_list_chunk **chunks;
};
extern const struct tfc_object_type tfc_list_type;
TFC_MUST_USE tfc_status tfc_list_create(tfc_dtype dtype, const struct tfc_shape *element_shape, int64_t count,
                                        struct tfc_list **out);
// As tfc_list_create, but the elements may not be written: only tfc_list_change gives them memory.
TFC_MUST_USE tfc_status tfc_list_reserve(tfc_dtype dtype, const struct tfc_shape *element_shape, int64_t count,
                                         struct tfc_list **out);
// Makes a list like this one with `count` elements, of which new ones are unwritten. The chunk of element `index` may
// be written to. `only`: nobody else uses `list`, so that its chunks are moved, not copied or shared; afterwards it may
// only be released.
TFC_MUST_USE tfc_status tfc_list_change(struct tfc_list *list, int64_t count, int64_t index, bool only,
                                        struct tfc_list **out);
static inline struct tfc_tensor *tfc_list_at(const struct tfc_list *list, int64_t i) {
  return &list->chunks[i / TFC_LIST_CHUNK]->items[i % TFC_LIST_CHUNK];
}

// --- Optionals ---------------------------------------------------------------------------------------------------
struct tfc_optional {
  struct tfc_object object;
  uint32_t count; // an optional without a value has count 0
  bool present;
  struct tfc_tensor values[];
};
extern const struct tfc_object_type tfc_optional_type;
TFC_MUST_USE tfc_status tfc_optional_create(uint32_t count, bool present, struct tfc_optional **out);

// --- Arithmetic on variants: for ZerosLike and AddN --------------------------------------------------------------
// Makes zeros like what each element of a variant tensor holds. tfc_variant_add adds two of the same kind and shape.
TFC_MUST_USE tfc_status tfc_variant_zeros_like(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x,
                                               struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_variant_add(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *a,
                                        const struct tfc_tensor *b, struct tfc_tensor *out);

#endif
