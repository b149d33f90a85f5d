#include "runtime/ops/blas.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/ops/blas_core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#if defined(__x86_64__)
// What OpenBLAS calls when it is loaded. NULL: another library computes, or OpenBLAS was built for one processor.
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

// Whether these kernels of OpenBLAS use AVX2 at least.
static bool uses_avx2(const char *core) {
  static const char *const names[] = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(core, names[i]) == 0) return true;
  return false;
}

const char *tfc_blas_better_core(void) {
  __builtin_cpu_init();
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || uses_avx2(openblas_get_corename()) ||
      !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return NULL;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? "SkylakeX" : "Haswell";
}

void tfc_blas_choose_again(void) {
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit) return;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}
#else
const char *tfc_blas_better_core(void) {
  return NULL;
}
void tfc_blas_choose_again(void) {}
#endif

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
