#include "runtime/device/kernel_table.h"

#include <stdlib.h>
#include <string.h>

void tfc_kernel_table_add(struct tfc_kernel_table *table, const char *op, uint32_t types, const void *row) {
  // If there is no memory, the row is left out, and the op runs with its reference kernel or on the host.
  (void)tfc_array_push(&table->entries, (struct tfc_kernel_entry){op, types, row});
}

static int compare(const void *a, const void *b) {
  const struct tfc_kernel_entry *x = a, *y = b;
  int c = strcmp(x->op, y->op);
  return c ? c : ((const char *)x->row > (const char *)y->row) - ((const char *)x->row < (const char *)y->row);
}

void tfc_kernel_table_sort(struct tfc_kernel_table *table) {
  if (table->entries.count) qsort(table->entries.data, table->entries.count, sizeof *table->entries.data, compare);
}

const void *tfc_kernel_table_next(const struct tfc_kernel_table *table, tfc_str op, tfc_dtype type, const void *after) {
  const struct tfc_kernel_entry *entries = table->entries.data;
  size_t low = 0, high = table->entries.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (tfc_str_compare(tfc_str_from(entries[middle].op), op) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool passed = after == NULL;
  for (; low < table->entries.count && tfc_str_is(op, entries[low].op); low++) {
    const struct tfc_kernel_entry *e = &entries[low];
    if (passed && (e->types == 0 || (type < 32 && (e->types & TFC_TYPE_BIT(type))))) return e->row;
    if (e->row == after) passed = true;
  }
  return NULL;
}
