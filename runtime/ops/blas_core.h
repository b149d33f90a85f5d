// The name of the kernels that OpenBLAS chose when it was loaded ("SkylakeX"); the speed of products depends on them.
// The string is static; any thread may call this.
#ifndef TFC_RUNTIME_OPS_BLAS_CORE_H
#define TFC_RUNTIME_OPS_BLAS_CORE_H

const char *tfc_blas_core(void);

#endif
