// Checkpoints in TensorFlow's first format: one file, a sorted table of slices whose values are TensorProtos, in blocks
// that may be compressed. A file is read and written as a whole.
//
//   struct tfc_checkpoint_v1 *c = NULL;
//   TFC_TRY(s, tfc_checkpoint_v1_open("model.ckpt-?????-of-00002", &c)); // a path, or a pattern of several
//   TFC_TRY(s, tfc_checkpoint_v1_read(c, TFC_STR("w"), NULL, NULL, &tensor)); // release it
//   tfc_checkpoint_v1_close(c);
//
// NOT_FOUND: no such file or tensor; INVALID_ARGUMENT: not such a file, or a checksum is wrong. Only one thread at a
// time may use it.
#ifndef TFC_RUNTIME_IO_CHECKPOINT_V1_H
#define TFC_RUNTIME_IO_CHECKPOINT_V1_H

#include "runtime/io/checkpoint.h"

struct tfc_checkpoint_v1;
TFC_MUST_USE tfc_status tfc_checkpoint_v1_open(const char *pattern, struct tfc_checkpoint_v1 **out);
void tfc_checkpoint_v1_close(struct tfc_checkpoint_v1 *c); // NULL is fine
TFC_MUST_USE tfc_status tfc_checkpoint_v1_find(const struct tfc_checkpoint_v1 *c, tfc_str name, tfc_dtype *out_dtype,
                                               struct tfc_shape *out_shape);
// Reads the part that begins at `starts` and has these `lengths`; both NULL: the whole tensor.
TFC_MUST_USE tfc_status tfc_checkpoint_v1_read(const struct tfc_checkpoint_v1 *c, tfc_str name, const int64_t *starts,
                                               const int64_t *lengths, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_checkpoint_v1_write(const char *path, const struct tfc_checkpoint_item *items,
                                                size_t count);

#endif
