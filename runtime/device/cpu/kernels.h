// Fast kernels of CPU devices: a table with rows for the ops that are worth one. An op without a row, or one whose rows
// all decline, runs its reference kernel. A file with rows ends with TFC_CPU_KERNELS(rows); the linker gathers the rows
// of all files.
//
//   static tfc_status matmul_prepare(struct tfc_cpu_prepare *p) { ... p->base->state = ...; return NULL; }
//   static tfc_status matmul_run(struct tfc_kernel_ctx *ctx) { ... }
//   static const struct tfc_cpu_kernel rows[] = {{"MatMul", TFC_TYPE_BIT(TFC_FLOAT), matmul_prepare, matmul_run, 0}};
//   TFC_CPU_KERNELS(rows);
#ifndef TFC_RUNTIME_DEVICE_CPU_KERNELS_H
#define TFC_RUNTIME_DEVICE_CPU_KERNELS_H

#include "runtime/device/driver.h"

struct tfc_cpu_prepare {
  struct tfc_prepare_ctx *base;    // graph, node, shapes, constants; state and release are set here
  const struct tfc_segment_op *op; // its slots; an output with data has a planned place. NULL: a single launch
  const struct tfc_device *device; // info.cores: threads of parallel_for
  int variant;                     // from the row
};
struct tfc_cpu_kernel {
  const char *op;
  uint32_t types; // bits of the dtypes of input 0 (of output 0 where there is no input); 0: any
  // Optional. UNIMPLEMENTED declines (because of an attribute or an unknown shape): the next row of the op is tried,
  // then the reference kernel with the op's own prepare. Any other error makes the plan fail.
  tfc_status (*prepare)(struct tfc_cpu_prepare *p);
  tfc_status (*run)(struct tfc_kernel_ctx *ctx);
  // a number that tells a `prepare` that serves several rows which row it is for; each file has its own numbers
  int variant;
};
struct tfc_cpu_kernels {
  const struct tfc_cpu_kernel *rows;
  size_t count;
};
#define TFC_CPU_KERNELS(rows)                                                                                          \
  static const struct tfc_cpu_kernels tfc_cpu_kernels_##rows                                                           \
      __attribute__((used, section("tfc_cpu_kernels"))) = {rows, sizeof(rows) / sizeof *(rows)}

// Returns the next row of an op: the first one if `after` is NULL, otherwise the one that follows `after`; NULL: there
// are no more. Any thread may call it.
const struct tfc_cpu_kernel *tfc_cpu_kernel_next(tfc_str op, tfc_dtype type, const struct tfc_cpu_kernel *after);

#endif
