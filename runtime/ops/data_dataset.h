// Datasets, which describe what an input pipeline reads, and the iterators that walk over them.
//
// A dataset is a value in a variant: its kind, the datasets that it reads, and the tensors and the function that it was
// made with. It never changes, except for state that its kind shares between iterators (a cache, seeds). An iterator
// walks over one dataset and owns the iterators over its input datasets. One kernel at a time asks it for elements, and
// the functions of the pipeline run in that kernel's step. A kind of dataset is one const struct; its op is a row that
// makes one:
//
//   static tfc_status take_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
//                               bool *ended) {
//     int64_t *taken = tfc_dataset_state(it);
//     if (*taken == it->dataset->n[0]) return *ended = true, NULL;
//     ++*taken;
//     return tfc_dataset_next(ctx, it->inputs[0], parts, ended);
//   }
#ifndef TFC_RUNTIME_OPS_DATA_DATASET_H
#define TFC_RUNTIME_OPS_DATA_DATASET_H

#include <pthread.h>

#include "runtime/base/array.h"
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct tfc_dataset_iterator;
struct tfc_dataset_kind {
  const char *name;
  size_t state;  // bytes of an iterator's own state, zero at first
  size_t shared; // bytes that all iterators over a dataset share, zero at first
  bool opens;    // `begin` opens the inputs itself; otherwise all inputs are open before `begin`
  // All but `next` are optional. `next` fills parts[dataset->parts], which are empty before the call, or sets *ended;
  // after that and after an error the parts are released by the caller.
  tfc_status (*begin)(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it);
  tfc_status (*next)(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                     bool *ended);
  void (*end)(struct tfc_dataset_iterator *it);
  void (*forget)(void *shared); // releases the shared state
};
struct tfc_dataset {
  struct tfc_object object;
  const struct tfc_dataset_kind *kind;
  char *node; // the node that made it, for messages
  uint32_t input_count, tensor_count, parts, depth;
  struct tfc_dataset **inputs;
  struct tfc_tensor *tensors; // the function's captured inputs, or the elements themselves
  tfc_dtype *types;           // [parts], of an element
  struct tfc_func_attr function;
  pthread_mutex_t lock; // guards the shared state
  int64_t n[4];         // numbers; each kind defines their meaning
  max_align_t shared[];
};
struct tfc_dataset_iterator {
  struct tfc_dataset *dataset;
  struct tfc_dataset_iterator **inputs; // [dataset->input_count]; NULL: not open
  max_align_t state[];
};

static inline void *tfc_dataset_shared(struct tfc_dataset *d) {
  return d->shared;
}
static inline void *tfc_dataset_state(struct tfc_dataset_iterator *it) {
  return it->state;
}

// Creates a dataset that reads the datasets among the kernel's inputs [0, input_count) and keeps the kernel's inputs
// [first_tensor, first_tensor + tensor_count). The types of an element's parts are the node's attribute output_types
// (or Toutput_types); without either, an element is one string.
TFC_MUST_USE tfc_status tfc_dataset_create(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind,
                                           uint32_t input_count, uint32_t first_tensor, uint32_t tensor_count,
                                           struct tfc_dataset **out);
// Sets the function that the dataset's iterators will call: the one in the node's attribute `name`.
TFC_MUST_USE tfc_status tfc_dataset_set_function(struct tfc_kernel_ctx *ctx, const char *name, struct tfc_dataset *d);
// Sets the kernel's output 0 to the dataset and takes over the caller's reference.
TFC_MUST_USE tfc_status tfc_dataset_output(struct tfc_kernel_ctx *ctx, struct tfc_dataset *d);
// Reads an input that is a scalar integer or bool.
TFC_MUST_USE tfc_status tfc_dataset_number(struct tfc_kernel_ctx *ctx, uint32_t input, const char *name, int64_t *out);

TFC_MUST_USE tfc_status tfc_dataset_open(struct tfc_kernel_ctx *ctx, struct tfc_dataset *d,
                                         struct tfc_dataset_iterator **out);
void tfc_dataset_close(struct tfc_dataset_iterator *it); // NULL is fine
// Gets the next element; the caller owns the parts that were filled. CANCELLED: the step has ended.
TFC_MUST_USE tfc_status tfc_dataset_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it,
                                         struct tfc_tensor *parts, bool *ended);
// Calls the dataset's function with `count` tensors and its captured inputs.
TFC_MUST_USE tfc_status tfc_dataset_call(struct tfc_kernel_ctx *ctx, const struct tfc_dataset *d,
                                         const struct tfc_tensor *args, uint32_t count, struct tfc_tensor *results,
                                         uint32_t result_count);
// As tfc_dataset_call, for a function that returns a boolean.
TFC_MUST_USE tfc_status tfc_dataset_ask(struct tfc_kernel_ctx *ctx, const struct tfc_dataset *d,
                                        const struct tfc_tensor *args, uint32_t count, bool *yes);
// Finds the dataset in a scalar variant. Borrowed.
TFC_MUST_USE tfc_status tfc_dataset_of(const struct tfc_tensor *t, struct tfc_dataset **out);

// Allocates `count` empty tensors; NULL: out of memory. Freeing them frees their content.
struct tfc_tensor *tfc_dataset_parts(uint32_t count);
void tfc_dataset_parts_free(struct tfc_tensor *parts, size_t count);
void tfc_dataset_parts_clear(struct tfc_tensor *parts, size_t count);

// A list of elements, each with its parts in order.
struct tfc_dataset_elements {
  TFC_ARRAY(struct tfc_tensor) items;
};
void tfc_dataset_elements_free(struct tfc_dataset_elements *e);
// Appends the next element of `it`.
TFC_MUST_USE tfc_status tfc_dataset_gather(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it,
                                           struct tfc_dataset_elements *e, bool *ended);

// Gives each output the shape that the attribute output_shapes lists for it.
tfc_status tfc_dataset_shape_next(struct tfc_shape_ctx *ctx);
// Sets the outputs to these parts, which must have the types and shapes that the node declares.
TFC_MUST_USE tfc_status tfc_dataset_deliver(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *parts, uint32_t count);

// Kernels that call functions run on the step's own thread, like kernels that wait (TFC_OP_ASYNC), and must end with
// this call. In a loop they use an iterator in the order of the iterations, like all ops with state.
static inline tfc_status tfc_dataset_done(struct tfc_kernel_ctx *ctx) {
  ctx->done(ctx, NULL);
  return NULL;
}
enum { TFC_DATASET_TURNS = 1 }; // node_state of operations that use an iterator

#define TFC_DATASET_KINDS "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"
#define TFC_DATASET_MORE ", metadata: string = ''"
#define TFC_DATASET_ROW(op, in, attributes, kernel_)                                                                   \
  {                                                                                                                    \
    .name = op, .inputs = in, .outputs = "handle: variant", .attrs = attributes,                                       \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = ops_shape_scalar, .kernel = kernel_   \
  }

#endif
