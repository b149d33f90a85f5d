// Tables of kernels, gathered from the rows of many files through a linker section, and searched by op and dtype. Each
// kind of device has rows with other functions (cpu/kernels.h, cuda/kernel.h), but all rows are found in the same way.
//
//   for (each contributed array) for (each row) tfc_kernel_table_add(&table, row->op, row->types, row);
//   tfc_kernel_table_sort(&table);                                            // once, then read by any thread
//   for (const void *row = NULL; (row = tfc_kernel_table_next(&table, op, type, row));) ...
#ifndef TFC_RUNTIME_DEVICE_KERNEL_TABLE_H
#define TFC_RUNTIME_DEVICE_KERNEL_TABLE_H

#include "runtime/base/array.h"
#include "runtime/base/str.h"
#include "runtime/graph/op_def.h"

struct tfc_kernel_entry {
  const char *op;
  uint32_t types; // bits of dtypes; 0: any
  const void *row;
};
struct tfc_kernel_table {
  TFC_ARRAY(struct tfc_kernel_entry) entries;
};

void tfc_kernel_table_add(struct tfc_kernel_table *table, const char *op, uint32_t types, const void *row);
void tfc_kernel_table_sort(struct tfc_kernel_table *table);

// Returns the next row for an op and a dtype after row `after` (NULL: the first one). Rows of one file come in the
// order of the file. NULL: there are no more.
const void *tfc_kernel_table_next(const struct tfc_kernel_table *table, tfc_str op, tfc_dtype type, const void *after);

#endif
