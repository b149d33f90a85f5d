// Products with a bias, and with the rectifier of that, through the plug-in's own code that calls cuBLASLt, on a fake
// of it: what is asked of the library, and what it computes.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "runtime/device/cuda/kernels/product.h"
#include "runtime/ops/product_bias.h"
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

// Whichever error the library reports for a bias, in whichever call, the operation is declined, and not the step
// failed.
static void declines(const struct tfc_cuda_product *p) {
  const struct tfc_cuda_product_plan *plan = NULL;
  tfc_status s = tfc_cuda_product_find(cuda_host_library(), p, &plan);
  assert_int_equal(tfc_status_code(s), TFC_UNIMPLEMENTED);
  assert_null(plan);
  tfc_status_free(s);
}
static void errors_for_a_bias(void **state) {
  (void)state;
  const int errors[] = {CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE};
  const struct tfc_cuda_product p = product(9, 11, 6, 0, TFC_CUDA_EPILOGUE_BIAS_RECTIFIED);
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    cuda_fake_epilogue_error = errors[i];
    declines(&p);
    cuda_fake_epilogue_error = 0;
    cuda_fake_attribute_error = errors[i];
    declines(&p);
    cuda_fake_attribute_error = 0;
  }
  check(&p);
}

// An algorithm whose rectifier makes a number of NaN is not used; if all do, or if nobody could find out, none is.
static void nan_stays_nan(void **state) {
  (void)state;
  const struct tfc_cuda_product quickest = product(12, 5, 3, 0, TFC_CUDA_EPILOGUE_BIAS_RECTIFIED),
                                all = product(12, 5, 4, 0, TFC_CUDA_EPILOGUE_BIAS_RECTIFIED),
                                unknown = product(12, 5, 6, 0, TFC_CUDA_EPILOGUE_BIAS_RECTIFIED),
                                plain = product(12, 5, 7, 0, TFC_CUDA_EPILOGUE_BIAS);
  cuda_fake_numbers_nan = 1 << 1; // the second algorithm is the quickest
  const uint32_t slow = cuda_fake_products_by[0], quick = cuda_fake_products_by[1];
  const struct tfc_cuda_product_plan *plan = NULL;
  assert_ok(tfc_cuda_product_find(cuda_host_library(), &quickest, &plan));
  const uint32_t slow_before = cuda_fake_products_by[0], quick_before = cuda_fake_products_by[1];
  assert_true(slow_before > slow && quick_before > quick); // both were tried
  check(&quickest);
  assert_int_equal(cuda_fake_products_by[0], slow_before + 1);
  assert_int_equal(cuda_fake_products_by[1], quick_before);
  cuda_fake_numbers_nan = 7;
  declines(&all);
  const uint32_t products = cuda_fake_products;
  declines(&all); // is known now
  assert_int_equal(cuda_fake_products, products);
  check(&plain);
  cuda_fake_numbers_nan = 0;
  cuda_host_no_room = true;
  declines(&unknown);
  cuda_host_no_room = false;
  check(&unknown);
}

static const struct tfc_cuda_kernel *row;
static void find_row(void *arg, const struct tfc_cuda_kernel *r) {
  if (!strcmp(r->op, arg) && !tfc_cuda_variant(r->flags)) row = r;
}
static tfc_status allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  (void)env;
  return tfc_buffer_create_host(bytes, out);
}
// The library has an algorithm with a bias for the alignment that the plan assumes, and none for the operands of the
// step: the product is computed without, and a kernel adds the bias.
static void operands_less_aligned_than_planned(void **state) {
  (void)state;
  enum { M = 7, N = 6, K = 5 };
  for (int rectified = 0; rectified < 2; rectified++) {
    struct tfc_bias_product how = {.rectified = rectified != 0};
    const struct tfc_shape shapes[3] = {TFC_SHAPE(M, K), TFC_SHAPE(K, N), TFC_SHAPE(N)}, result = TFC_SHAPE(M, N);
    struct tfc_arena arena = {0};
    struct tfc_prepare_ctx base = {.input_shapes = shapes, .output_shapes = &result, .arena = &arena};
    const struct tfc_segment_op op = {.prepared = true, .state = &how};
    struct tfc_cuda_prepare prepare = {.base = &base, .op = &op, .library = cuda_host_library()};
    cuda_host_each_row(find_row, (void *)(uintptr_t) "_BiasProduct");
    assert_non_null(row);
    assert_ok(row->prepare(&prepare));
    float *a = numbers(M * K + 1, 7), *b = numbers(K * N, 5), *bias = numbers(N, 3), *c = numbers(M * N, 1);
    struct tfc_tensor x = {.dtype = TFC_FLOAT, .shape = shapes[0], .data = a + 1, .size = M * K * 4},
                      y = {.dtype = TFC_FLOAT, .shape = shapes[1], .data = b, .size = K * N * 4},
                      z = {.dtype = TFC_FLOAT, .shape = shapes[2], .data = bias, .size = N * 4},
                      made = {.dtype = TFC_FLOAT, .shape = result, .data = c, .size = M * N * 4};
    const struct tfc_tensor *inputs[] = {&x, &y, &z};
    struct tfc_tensor *outputs[] = {&made};
    struct tfc_kernel_env env = {.allocate = allocate};
    struct tfc_kernel_ctx ctx = {
        .env = &env, .inputs = inputs, .outputs = outputs, .input_count = 3, .output_count = 1, .state = base.state};
    const uint32_t before = cuda_fake_epilogues;
    cuda_fake_epilogue_alignment = 16;
    assert_ok(cuda_host_launch(row, &ctx, prepare.scratch));
    cuda_fake_epilogue_alignment = 0;
    assert_int_equal(cuda_fake_epilogues, before);
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        double sum = (double)bias[j];
        for (int k = 0; k < K; k++) sum += (double)a[1 + i * K + k] * (double)b[k * N + j];
        if (rectified && sum < 0) sum = 0;
        assert_true(fabs(sum - (double)c[i * N + j]) <= 1e-5);
      }
    free(a);
    free(b);
    free(bias);
    free(c);
    tfc_arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_they_compute), cmocka_unit_test(what_the_library_declines),
                                     cmocka_unit_test(errors_for_a_bias), cmocka_unit_test(nan_stays_nan),
                                     cmocka_unit_test(operands_less_aligned_than_planned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
