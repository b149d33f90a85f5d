// What reading and writing checkpoints share.
#ifndef TFC_RUNTIME_IO_BUNDLE_H
#define TFC_RUNTIME_IO_BUNDLE_H

#include "runtime/graph/import_internal.h"
#include "runtime/io/table.h"

// The key of a slice: the name and each dimension's start and length in an encoding whose order of bytes is theirs. A
// dimension that the slice has whole has start 0 and length -1.
bool tfc_slice_key(struct tfc_text *out, tfc_str name, int rank, const int64_t *starts, const int64_t *lengths);

// Writes the index of a bundle of `shards` data files. `entries` has room for the header in front of the `count` of the
// tensors (BundleEntryProto by key), which come in any order and are put in order.
TFC_MUST_USE tfc_status tfc_bundle_write_index(struct tfc_table_entry *entries, size_t count, uint32_t shards,
                                               const char *path);

#endif
