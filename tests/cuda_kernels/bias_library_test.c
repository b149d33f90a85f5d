// Products with a bias, and with the rectifier of that, through the plug-in's own code that calls cuBLASLt, on a fake
// of it: what is asked of the library, and what it computes.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/device/cuda/kernels/product.h"
#include "tests/cuda_kernels/host.h"

static float *numbers(int64_t count, int step) {
  float *x = aligned_alloc(64, ((size_t)count * sizeof *x / 64 + 1) * 64);
  assert_non_null(x);
  for (int64_t i = 0; i < count; i++) x[i] = (float)((i * step) % 23 - 11) * 0.125f;
  return x;
}

static void check(const struct tfc_cuda_product *p) {
  struct tfc_cuda_launch launch = {.library = cuda_host_library()};
  const struct tfc_cuda_product_plan *plan = NULL;
  float *a = numbers(p->m * p->k, 7), *b = numbers(p->k * p->n, 5), *bias = numbers(p->n, 3),
        *c = numbers(p->m * p->n, 1);
  assert_ok(tfc_cuda_product_find(launch.library, p, &plan));
  void *scratch = aligned_alloc(256, (tfc_cuda_product_scratch(plan) + 255) / 256 * 256);
  assert_non_null(scratch);
  const uint32_t before = cuda_fake_epilogues;
  assert_ok(tfc_cuda_product_run_bias(&launch, plan, a, b, bias, c, scratch));
  assert_int_equal(cuda_fake_epilogues, before + 1);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double sum = 0;
      for (int64_t k = 0; k < p->k; k++)
        sum += (double)a[p->transpose_a ? k * p->m + i : i * p->k + k] *
               (double)b[p->transpose_b ? j * p->k + k : k * p->n + j];
      sum += (double)bias[j];
      if (p->epilogue == TFC_CUDA_EPILOGUE_BIAS_RECTIFIED && sum < 0) sum = 0;
      assert_true(fabs(sum - (double)c[i * p->n + j]) <= 1e-5);
    }
  free(a);
  free(b);
  free(bias);
  free(c);
  free(scratch);
}

static struct tfc_cuda_product product(int64_t m, int64_t n, int64_t k, int how, tfc_cuda_epilogue epilogue) {
  return (struct tfc_cuda_product){.type = TFC_FLOAT,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .transpose_a = how & 1,
                                   .transpose_b = how & 2,
                                   .batch = 1,
                                   .stride_c = m * n,
                                   .alignment = TFC_CUDA_PRODUCT_ALIGNMENT,
                                   .epilogue = epilogue};
}

static void what_they_compute(void **state) {
  (void)state;
  for (int how = 0; how < 4; how++)
    for (int epilogue = TFC_CUDA_EPILOGUE_BIAS; epilogue <= TFC_CUDA_EPILOGUE_BIAS_RECTIFIED; epilogue++) {
      const struct tfc_cuda_product small = product(3, 5, 4, how, (tfc_cuda_epilogue)epilogue),
                                    wide = product(17, 40, 9, how, (tfc_cuda_epilogue)epilogue);
      check(&small);
      check(&wide);
    }
}

static void what_the_library_declines(void **state) {
  (void)state;
  const struct tfc_cuda_product p = product(6, 7, 8, 0, TFC_CUDA_EPILOGUE_BIAS),
                                plain = product(6, 7, 8, 0, TFC_CUDA_EPILOGUE_NONE);
  const struct tfc_cuda_product_plan *plan = NULL;
  cuda_fake_no_epilogues = true;
  tfc_status s = tfc_cuda_product_find(cuda_host_library(), &p, &plan);
  assert_int_equal(tfc_status_code(s), TFC_UNIMPLEMENTED);
  tfc_status_free(s);
  assert_ok(
      tfc_cuda_product_find(cuda_host_library(), &plain, &plan)); // another plan, although the shapes are the same
  cuda_fake_no_epilogues = false;
  check(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_they_compute), cmocka_unit_test(what_the_library_declines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
