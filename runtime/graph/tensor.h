// Tensors: a type, a static shape, and memory.
//
// The memory belongs to a buffer with a reference count, or it is borrowed from a plan (`buffer == NULL`). `data` may
// be a device address, which only the driver of that device may use; host code may read tensors of host-addressable
// devices only.
//
// Elements of string tensors are struct tfc_string (each piece malloc'd, freed with the buffer), those of resource and
// variant tensors are struct tfc_object pointers (one reference each, released with the buffer).
//
// Reference counts are atomic, so threads may share a tensor as long as no thread writes to it.
#ifndef TFC_RUNTIME_GRAPH_TENSOR_H
#define TFC_RUNTIME_GRAPH_TENSOR_H

#include <stdatomic.h>

#include "runtime/graph/dtype.h"
#include "runtime/graph/shape.h"

struct tfc_buffer {
  _Atomic int32_t references;
  void *data;
  size_t size;                              // bytes
  void (*destroy)(struct tfc_buffer *self); // frees the data and the record; called when the last reference is released
  void *owner;                              // for `destroy`: the allocator, the account or the mapped file
  _Atomic uint64_t stamp;  // identifies the contents; 0: no stamp was requested since the buffer was written to
  _Atomic uint64_t beside; // bytes of strings that belong to elements, as far as they were counted
  _Atomic uint32_t lent;   // messages that still read this memory (tfc_tensor_lend): until it is 0, nobody writes to it
};

struct tfc_tensor {
  tfc_dtype dtype; // never a reference type
  struct tfc_shape shape;
  void *data;
  size_t size; // bytes of the elements
  struct tfc_buffer *buffer;
};

struct tfc_string {
  char *data; // malloc'd, NULL for ""
  size_t size;
};

// An object that a resource handle refers to, or that a variant holds: variable, queue, table, list, iterator,
// optional.
struct tfc_object;
struct tfc_object_type {
  const char *name;
  void (*destroy)(struct tfc_object *self);
  // Optional, for objects that kernels wait for: `wake` completes the waiting kernels of steps that have ended;
  // `describe` says what the object is and holds.
  void (*wake)(struct tfc_object *self);
  void (*describe)(struct tfc_object *self, struct tfc_text *out);
  // Optional: calls fn for each kernel that waits for the object, with the number of the kernel's step.
  void (*waits)(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg);
  // Optional, for objects that keep something from step to step (runtime/ops/saved.h). `save` appends what the object
  // holds, as words; UNIMPLEMENTED: no checkpoint can have it. `load` replaces what the object holds, which no kernel
  // uses meanwhile.
  tfc_status (*save)(struct tfc_object *self, struct tfc_text *out);
  tfc_status (*load)(struct tfc_object *self, tfc_str words);
};
struct tfc_object {
  const struct tfc_object_type *type;
  _Atomic int32_t references;
};
static inline void tfc_object_retain(struct tfc_object *o) {
  if (o) atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
}
void tfc_object_release(struct tfc_object *o); // NULL is fine

void tfc_buffer_release(struct tfc_buffer *b); // NULL is fine
static inline void tfc_buffer_retain(struct tfc_buffer *b) {
  if (b) atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
}
// Returns a stamp of the contents: a number that no other buffer ever has, and that this buffer keeps until it is
// written. Code that keeps something made from the contents (a packed weight) compares stamps to see if it is still
// valid. Code that writes to a buffer that others may have read (an update of a variable) calls tfc_buffer_written.
uint64_t tfc_buffer_stamp(struct tfc_buffer *b);
static inline void tfc_buffer_written(struct tfc_buffer *b) { // NULL is fine
  if (b) atomic_store_explicit(&b->stamp, 0, memory_order_relaxed);
}
// Allocates host memory, 64-byte aligned. The message of RESOURCE_EXHAUSTED has the size.
TFC_MUST_USE tfc_status tfc_buffer_create_host(size_t size, struct tfc_buffer **out);

// Makes a host tensor of a static shape. It is not cleared, but strings are "" and objects NULL (the buffer owns them).
TFC_MUST_USE tfc_status tfc_tensor_create(tfc_dtype dtype, const struct tfc_shape *shape, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_tensor_scalar_i64(int64_t value, struct tfc_tensor *out);
// Computes the bytes of `shape` × `dtype`. INVALID_ARGUMENT: the shape is not static, or too large.
TFC_MUST_USE tfc_status tfc_tensor_bytes(tfc_dtype dtype, const struct tfc_shape *shape, size_t *out);

void tfc_tensor_release(struct tfc_tensor *t);                             // drops the buffer; zeroes the record
void tfc_tensor_share(const struct tfc_tensor *t, struct tfc_tensor *out); // retains the buffer
// Gives a message this tensor's own memory, which may be written to otherwise: until *out is released, the tensor's
// buffer is `lent`. The tensor has all of its buffer.
TFC_MUST_USE tfc_status tfc_tensor_lend(const struct tfc_tensor *t, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_tensor_clone(const struct tfc_tensor *t, struct tfc_tensor *out); // deep copy, host
static inline int64_t tfc_tensor_elements(const struct tfc_tensor *t) {
  return tfc_shape_elements(&t->shape);
}
// Reads one element of an integer tensor (any width) as int64.
int64_t tfc_tensor_int(const struct tfc_tensor *t, int64_t index);
// Replaces a string element and frees the old one. RESOURCE_EXHAUSTED says how many bytes there was no memory for.
TFC_MUST_USE tfc_status tfc_tensor_set_string(struct tfc_tensor *t, int64_t index, tfc_str value);
// The same with a text that was put together; one that failed for lack of memory is an error, too.
TFC_MUST_USE tfc_status tfc_tensor_set_text(struct tfc_tensor *t, int64_t index, const struct tfc_text *text);
tfc_str tfc_tensor_get_string(const struct tfc_tensor *t, int64_t index);
// Reads an integer vector (or a scalar, as a vector of one) as dimensions. INVALID_ARGUMENT: it is not integer, has
// rank > 1, or is too long.
TFC_MUST_USE tfc_status tfc_tensor_to_shape(const struct tfc_tensor *t, struct tfc_shape *out);

#endif
