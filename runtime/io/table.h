// Sorted string tables, the format of LevelDB and of TensorFlow's checkpoint indexes: blocks of entries whose keys
// share prefixes (each block with a checksum; compressed blocks, by Snappy, are read but never written), an index
// block, and a footer.
#ifndef TFC_RUNTIME_IO_TABLE_H
#define TFC_RUNTIME_IO_TABLE_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

struct tfc_table_entry {
  tfc_str key, value;
};
// Reads all entries, in order. Keys are in the arena, values are views into `bytes` or the arena. INVALID_ARGUMENT: the
// bytes are no table, or a checksum is wrong.
TFC_MUST_USE tfc_status tfc_table_read(tfc_str bytes, struct tfc_arena *arena, struct tfc_table_entry **out,
                                       size_t *out_count);
// Writes `entries`, which must be in strictly ascending order of bytes.
TFC_MUST_USE tfc_status tfc_table_write(const struct tfc_table_entry *entries, size_t count, struct tfc_text *out);

#endif
