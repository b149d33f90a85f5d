// Calls BLAS products, one at a time. (If two threads call Debian's serial OpenBLAS at the same time, it may give both
// the same work buffer, and then both results are wrong.) Products that should run in parallel use the device's kernels
// (runtime/host/gemm).
//
// Matrices are row-major, and arguments those of cblas_sgemm and its relatives. Any thread may call these functions.
#ifndef TFC_RUNTIME_OPS_BLAS_H
#define TFC_RUNTIME_OPS_BLAS_H

#include <cblas.h>

void ops_sgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc);
void ops_dgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double *a, int lda,
               const double *b, int ldb, double beta, double *c, int ldc);
// These two compute with alpha = 1 and beta = 0.
void ops_cgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const void *a, int lda, const void *b,
               int ldb, void *c, int ldc);
void ops_zgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const void *a, int lda, const void *b,
               int ldb, void *c, int ldc);

#endif
