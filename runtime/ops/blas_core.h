// The name of the kernels that OpenBLAS chose when it was loaded ("SkylakeX"), which decides the speed of products.
// Static; any thread.
#ifndef TFC_RUNTIME_OPS_BLAS_CORE_H
#define TFC_RUNTIME_OPS_BLAS_CORE_H

const char *tfc_blas_core(void);

#endif
