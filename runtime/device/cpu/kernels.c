// The table of the CPU's fast kernels. It is made at the first look-up from the rows that the linker has gathered.
#include "runtime/device/cpu/kernels.h"

#include <pthread.h>

#include "runtime/device/kernel_table.h"

extern const struct tfc_cpu_kernels __start_tfc_cpu_kernels[] __attribute__((weak));
extern const struct tfc_cpu_kernels __stop_tfc_cpu_kernels[] __attribute__((weak));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tfc_kernel_table table;

static void gather(void) {
  for (const struct tfc_cpu_kernels *f = __start_tfc_cpu_kernels; f < __stop_tfc_cpu_kernels; f++)
    for (size_t i = 0; i < f->count; i++) tfc_kernel_table_add(&table, f->rows[i].op, f->rows[i].types, &f->rows[i]);
  tfc_kernel_table_sort(&table);
}

const struct tfc_cpu_kernel *tfc_cpu_kernel_next(tfc_str op, tfc_dtype type, const struct tfc_cpu_kernel *after) {
  pthread_once(&once, gather);
  return tfc_kernel_table_next(&table, op, type, after);
}
