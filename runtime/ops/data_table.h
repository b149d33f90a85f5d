// What mutable hash tables hold, as lines of words (runtime/base/state_text.h):
//
//   table<TAB>KEY TYPE<TAB>VALUE TYPE<TAB>VALUE SHAPE<TAB>EMPTY KEY<TAB>DELETED KEY<TAB>CONTAINER<TAB>NAME
//   pair<TAB>KEY<TAB>VALUE   for each pair of that table, in the order in which they were inserted
//
// A shape is its dimensions with commas between them. A key, or a value of numbers, is its bytes as hexadecimal digits;
// a string is written as it is, and a value of several strings is several words. A reserved key has a '=' before it; if
// the table has none, the word is empty.
#ifndef TFC_RUNTIME_OPS_DATA_TABLE_H
#define TFC_RUNTIME_OPS_DATA_TABLE_H

#include "runtime/base/state_text.h"
#include "runtime/ops/kernel.h"

// Appends the lines of an object that is a mutable table of numbers, bools or strings; of any other one, nothing.
void tfc_hash_table_write(struct tfc_object *object, tfc_str container, tfc_str name, struct tfc_text *out);
// Gives tables the pairs that `text` has for them, in place of what they hold; makes those that do not exist. Lines
// about anything else are skipped. INVALID_ARGUMENT: a line makes no sense, or a table has other types.
TFC_MUST_USE tfc_status tfc_hash_tables_read(struct tfc_resources *resources, tfc_str text);

#endif
