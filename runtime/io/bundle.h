// Functions for both reading and writing checkpoints.
#ifndef TFC_RUNTIME_IO_BUNDLE_H
#define TFC_RUNTIME_IO_BUNDLE_H

#include "runtime/base/array.h"
#include "runtime/base/file.h"
#include "runtime/graph/import_attr.h"
#include "runtime/io/table.h"

// Makes the key of a slice: the name, then each dimension's start and length, in an encoding whose byte order is the
// order of the numbers. If the slice has all of a dimension, the start is 0 and the length -1.
bool tfc_slice_key(struct tfc_text *out, tfc_str name, int rank, const int64_t *starts, const int64_t *lengths);

// Writes the index of a bundle with `shards` data files. `entries` contains the `count` tensors (BundleEntryProto by
// key) in any order, behind one free place for the header; they are sorted.
TFC_MUST_USE tfc_status tfc_bundle_write_index(struct tfc_table_entry *entries, size_t count, uint32_t shards,
                                               const char *path);

#endif
