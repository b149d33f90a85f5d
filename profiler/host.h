// Describes the machine on which a run measures, for its row in the database. Any thread may call this.
#ifndef TFC_PROFILER_HOST_H
#define TFC_PROFILER_HOST_H

struct tfc_host {
  char name[128], cpu_model[160]; // "" where it is not known
  const char *blas_core;          // the kernels that OpenBLAS picked; static
};
void tfc_host_describe(struct tfc_host *out);

#endif
