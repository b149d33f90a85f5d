// The table of fast kernels: what the linker gathered, sorted by op once.
#include "runtime/device/cpu/kernels.h"

#include <pthread.h>
#include <stdlib.h>

extern const struct tfc_cpu_kernels __start_tfc_cpu_kernels[] __attribute__((weak));
extern const struct tfc_cpu_kernels __stop_tfc_cpu_kernels[] __attribute__((weak));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct tfc_cpu_kernel **table;
static size_t table_count;

static int compare(const void *a, const void *b) {
  const struct tfc_cpu_kernel *x = *(const struct tfc_cpu_kernel *const *)a,
                              *y = *(const struct tfc_cpu_kernel *const *)b;
  int c = strcmp(x->op, y->op);
  return c ? c : (x > y) - (x < y); // rows of one op in the order of their file
}

static void gather(void) {
  size_t count = 0;
  for (const struct tfc_cpu_kernels *f = __start_tfc_cpu_kernels; f < __stop_tfc_cpu_kernels; f++) count += f->count;
  table = calloc(count + 1, sizeof *table);
  if (!table) return;
  for (const struct tfc_cpu_kernels *f = __start_tfc_cpu_kernels; f < __stop_tfc_cpu_kernels; f++)
    for (size_t i = 0; i < f->count; i++) table[table_count++] = &f->rows[i];
  qsort(table, table_count, sizeof *table, compare);
}

const struct tfc_cpu_kernel *tfc_cpu_kernel_next(tfc_str op, tfc_dtype type, const struct tfc_cpu_kernel *after) {
  pthread_once(&once, gather);
  size_t low = 0, high = table_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (tfc_str_compare(tfc_str_from(table[middle]->op), op) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool passed = after == NULL;
  for (; low < table_count && tfc_str_is(op, table[low]->op); low++) {
    const struct tfc_cpu_kernel *row = table[low];
    if (passed && (row->types == 0 || (type < 32 && (row->types & TFC_TYPE_BIT(type))))) return row;
    if (row == after) passed = true;
  }
  return NULL;
}
