// The name of the kernels that OpenBLAS chose when it was loaded ("SkylakeX"); the speed of products depends on them.
// The string is static; any thread may call this.
#ifndef TFC_RUNTIME_OPS_BLAS_CORE_H
#define TFC_RUNTIME_OPS_BLAS_CORE_H

const char *tfc_blas_core(void);

// OpenBLAS chooses kernels by the processor's model. If the processor is newer than the library, it may not know the
// model, and takes kernels without AVX2 that need several times as long (version 0.3.21 on Intel processors of 2023:
// "Prescott"). Then this returns the name of those that it should have taken, by the processor's instructions; else
// NULL.
const char *tfc_blas_better_core(void);
// Lets OpenBLAS choose again. It looks for a name in the environment variable OPENBLAS_CORETYPE, which the caller has
// set. Only while the process has no other thread.
void tfc_blas_choose_again(void);

#endif
