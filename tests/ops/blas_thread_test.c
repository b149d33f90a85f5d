// Matrix products that several threads compute at the same time have the same bits as alone.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/ops/blas.h"

enum { THREADS = 4, M = 37, N = 100, K = 300, ROUNDS = 2000 };

// The elements are integers, so that any order of adding gives the same sum.
static void *multiply(void *wrong) {
  double *a = malloc(sizeof(double) * M * K), *b = malloc(sizeof(double) * K * N);
  double *c = calloc(M * N, sizeof *c), *want = calloc(M * N, sizeof *want);
  float *fa = malloc(sizeof(float) * M * K), *fb = malloc(sizeof(float) * K * N), *fc = calloc(M * N, sizeof *fc);
  if (!a || !b || !c || !want || !fa || !fb || !fc) abort();
  for (int i = 0; i < M * K; i++) a[i] = fa[i] = (float)((i * 7) % 13 - 6);
  for (int i = 0; i < K * N; i++) b[i] = fb[i] = (float)((i * 5) % 11 - 5);
  for (int i = 0; i < M; i++)
    for (int k = 0; k < K; k++)
      for (int j = 0; j < N; j++) want[i * N + j] += a[i * K + k] * b[k * N + j];
  for (int round = 0; round < ROUNDS; round++) {
    ops_dgemm(CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
    ops_sgemm(CblasNoTrans, CblasNoTrans, M, N, K, 1, fa, K, fb, N, 0, fc, N);
    for (int i = 0; i < M * N; i++) *(int *)wrong += c[i] != want[i] || (double)fc[i] != want[i];
  }
  free(a), free(b), free(c), free(want), free(fa), free(fb), free(fc);
  return NULL;
}

static void side_by_side(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, multiply, &wrong[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(wrong[i], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(side_by_side)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
