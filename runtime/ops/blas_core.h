// Which kernels OpenBLAS picked when it was loaded ("SkylakeX"): they decide how fast products are. Static; any thread.
#ifndef TFC_RUNTIME_OPS_BLAS_CORE_H
#define TFC_RUNTIME_OPS_BLAS_CORE_H

const char *tfc_blas_core(void);

#endif
