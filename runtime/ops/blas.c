#include "runtime/ops/blas.h"

#include <pthread.h>

#include "runtime/ops/blas_core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *tfc_blas_core(void) {
  return openblas_get_corename();
}

void ops_sgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc) {
  pthread_mutex_lock(&lock);
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  pthread_mutex_unlock(&lock);
}

void ops_dgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double *a, int lda,
               const double *b, int ldb, double beta, double *c, int ldc) {
  pthread_mutex_lock(&lock);
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  pthread_mutex_unlock(&lock);
}

void ops_cgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const void *a, int lda, const void *b,
               int ldb, void *c, int ldc) {
  static const float one[2] = {1, 0}, zero[2] = {0, 0};
  pthread_mutex_lock(&lock);
  cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, one, a, lda, b, ldb, zero, c, ldc);
  pthread_mutex_unlock(&lock);
}

void ops_zgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const void *a, int lda, const void *b,
               int ldb, void *c, int ldc) {
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  pthread_mutex_lock(&lock);
  cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, one, a, lda, b, ldb, zero, c, ldc);
  pthread_mutex_unlock(&lock);
}
