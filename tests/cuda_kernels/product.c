// Matrix products by BLAS or plain loops: this file replaces the one that calls cuBLASLt.
#include "runtime/device/cuda/kernels/product.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/host.h"

_Atomic uint32_t cuda_fake_epilogues;
bool cuda_fake_no_epilogues;

struct tfc_cuda_product_plan {
  struct tfc_cuda_product p;
  tfc_math math;
};

tfc_status tfc_cuda_product_find(struct tfc_cuda_library *library, const struct tfc_cuda_product *product,
                                 const struct tfc_cuda_product_plan **out) {
  static struct tfc_cuda_product_plan *plans[4096];
  static size_t count;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // several devices call this at once
  const tfc_math math = product->type == TFC_FLOAT ? library->math : TFC_MATH_FLOAT32;
  if (product->epilogue && cuda_fake_no_epilogues)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the library has no algorithm with a bias");
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i++) {
    const struct tfc_cuda_product *p = &plans[i]->p;
    if (p->type == product->type && plans[i]->math == math && p->m == product->m && p->n == product->n &&
        p->k == product->k && p->transpose_a == product->transpose_a && p->transpose_b == product->transpose_b &&
        p->batch == product->batch && p->stride_a == product->stride_a && p->stride_b == product->stride_b &&
        p->stride_c == product->stride_c && p->epilogue == product->epilogue) {
      *out = plans[i];
      pthread_mutex_unlock(&lock);
      return NULL;
    }
  }
  if (count == sizeof plans / sizeof *plans || !(plans[count] = calloc(1, sizeof **plans))) abort();
  plans[count]->p = *product;
  plans[count]->math = math;
  *out = plans[count++];
  pthread_mutex_unlock(&lock);
  return NULL;
}

size_t tfc_cuda_product_scratch(const struct tfc_cuda_product_plan *plan) {
  (void)plan;
  return 64;
}

static double get(tfc_dtype type, const void *x, int64_t i) {
  switch ((int)type) {
  case TFC_FLOAT: return ((const float *)x)[i];
  case TFC_DOUBLE: return ((const double *)x)[i];
  case TFC_HALF: return tfc_half_to_float(((const uint16_t *)x)[i]);
  default: return tfc_bfloat16_to_float(((const uint16_t *)x)[i]);
  }
}
static void put(tfc_dtype type, void *x, int64_t i, double v) {
  switch ((int)type) {
  case TFC_FLOAT: ((float *)x)[i] = (float)v; break;
  case TFC_DOUBLE: ((double *)x)[i] = v; break;
  case TFC_HALF: ((uint16_t *)x)[i] = tfc_float_to_half((float)v); break;
  default: ((uint16_t *)x)[i] = tfc_float_to_bfloat16((float)v); break;
  }
}

static const float *rounded(tfc_math math, const float *x, int64_t n, float *out) {
  if (math == TFC_MATH_FLOAT32) return x;
  for (int64_t i = 0; i < n; i++) out[i] = cuda_fake_operand(math, x[i]);
  return out;
}

// float32 products use BLAS, so that the examples run in seconds.
static void float_product(const struct tfc_cuda_product *p, const float *a, const float *b, bool adds, float *c) {
  int m = (int)p->m, n = (int)p->n, k = (int)p->k;
  cblas_sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans, m,
              n, k, 1, a, p->transpose_a ? m : k, b, p->transpose_b ? k : n, adds, c, n);
}

struct run {
  struct tfc_cuda_product p;
  tfc_math math;
  const void *a, *b, *addend, *bias;
  void *c;
};
// What the library does before it writes an element of the first product of a batch; float32 only.
static void run_epilogue(const struct run *r) {
  const float *bias = r->bias;
  float *c = r->c;
  for (int64_t i = 0; r->p.epilogue && i < r->p.m; i++)
    for (int64_t j = 0; j < r->p.n; j++) {
      float *at = &c[i * r->p.n + j];
      *at += bias[j];
      if (r->p.epilogue == TFC_CUDA_EPILOGUE_BIAS_RECTIFIED && *at <= 0) *at = 0;
    }
}
static void run(void *argument) {
  const struct run *r = argument;
  const struct tfc_cuda_product *p = &r->p;
  size_t size = tfc_dtype_size(p->type);
  float *room = r->math == TFC_MATH_FLOAT32 ? NULL : malloc((size_t)((p->m + p->n) * p->k) * sizeof *room);
  if (!room && r->math != TFC_MATH_FLOAT32) abort();
  tfc_host_begin();
  for (int64_t batch = 0; batch < p->batch; batch++) {
    const char *x = (const char *)r->a + (size_t)(batch * p->stride_a) * size;
    const char *y = (const char *)r->b + (size_t)(batch * p->stride_b) * size;
    char *z = (char *)r->c + (size_t)(batch * p->stride_c) * size;
    const char *addend = r->addend ? (const char *)r->addend + (size_t)(batch * p->stride_c) * size : NULL;
    if (p->type == TFC_FLOAT) {
      if (addend && addend != z) memcpy(z, addend, (size_t)(p->m * p->n) * size);
      float_product(p, rounded(r->math, (const float *)x, p->m * p->k, room),
                    rounded(r->math, (const float *)y, p->n * p->k, room ? room + p->m * p->k : NULL), addend != NULL,
                    (float *)z);
      continue;
    }
    for (int64_t i = 0; i < p->m; i++)
      for (int64_t j = 0; j < p->n; j++) {
        double sum = addend ? get(p->type, addend, i * p->n + j) : 0;
        for (int64_t k = 0; k < p->k; k++)
          sum += get(p->type, x, p->transpose_a ? k * p->m + i : i * p->k + k) *
                 get(p->type, y, p->transpose_b ? j * p->k + k : k * p->n + j);
        put(p->type, z, i * p->n + j, sum);
      }
  }
  run_epilogue(r);
  tfc_host_end();
  free(room);
}

tfc_status tfc_cuda_product_run(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan, const void *a,
                                const void *b, const void *addend, void *c, void *scratch) {
  const struct run r = {plan->p, plan->math, a, b, addend, NULL, c};
  (void)scratch;
  int error = tfc_host_enqueue(l->stream, run, &r, sizeof r);
  if (!error) tfc_cuda_count_launch();
  return error ? tfc_cuda_status(l, error) : NULL;
}

tfc_status tfc_cuda_product_run_bias(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan, const void *a,
                                     const void *b, const void *bias, void *c, void *scratch) {
  const struct run r = {plan->p, plan->math, a, b, NULL, bias, c};
  (void)scratch;
  int error = tfc_host_enqueue(l->stream, run, &r, sizeof r);
  if (!error) tfc_cuda_count_launch(), cuda_fake_epilogues++;
  return error ? tfc_cuda_status(l, error) : NULL;
}
