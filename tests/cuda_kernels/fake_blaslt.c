// A fake of the cuBLASLt calls that library/blaslt.c makes, on the CPU: column-major matrices with leading dimensions,
// and batches with strides. Wrong arguments fail. Operands are rounded as the chosen arithmetic rounds them.
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/host.h"

uint32_t cuda_fake_products, cuda_fake_products_in[CUDA_FAKE_MATHS], cuda_fake_refused;
uint32_t cuda_fake_products_by[CUDA_FAKE_ALGORITHMS];
_Atomic uint32_t cuda_fake_epilogues;
bool cuda_fake_no_epilogues;
int cuda_fake_epilogue_error, cuda_fake_attribute_error;
uint32_t cuda_fake_epilogue_alignment, cuda_fake_numbers_nan;

size_t cublasLtGetVersion(void) {
  return 130000;
}

// The contents of the library's opaque records, as far as this fake needs them.
struct layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t ld, stride;
  int32_t batch;
};
struct operation {
  cublasComputeType_t compute;
  cublasOperation_t a, b;
  uint32_t epilogue;
  const void *bias;
};
struct preference {
  uint32_t alignment[4], reductions;
  size_t workspace;
};

const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "a failure of the fake";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld) {
  struct layout *l = calloc(1, sizeof *l);
  if (!l || ld < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
  *l = (struct layout){type, rows, cols, ld, 0, 1};
  *out = (cublasLtMatrixLayout_t)(void *)l;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t layout) {
  free((void *)layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attr,
                                                const void *buf, size_t size) {
  struct layout *l = (struct layout *)(void *)layout;
  if (attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof l->batch)
    memcpy(&l->batch, buf, size);
  else if (attr == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof l->stride)
    memcpy(&l->stride, buf, size);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
  struct operation *o = calloc(1, sizeof *o);
  if (!o || scale != (compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F)) return CUBLAS_STATUS_INVALID_VALUE;
  o->compute = compute;
  o->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  *out = (cublasLtMatmulDesc_t)(void *)o;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t operation) {
  free((void *)operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attr,
                                              const void *buf, size_t size) {
  struct operation *o = (struct operation *)(void *)operation;
  if (size != (attr == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof o->bias : sizeof o->a))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (attr == CUBLASLT_MATMUL_DESC_TRANSA)
    memcpy(&o->a, buf, size);
  else if (attr == CUBLASLT_MATMUL_DESC_TRANSB)
    memcpy(&o->b, buf, size);
  else if (attr == CUBLASLT_MATMUL_DESC_EPILOGUE && cuda_fake_attribute_error)
    return (cublasStatus_t)cuda_fake_attribute_error;
  else if (attr == CUBLASLT_MATMUL_DESC_EPILOGUE)
    memcpy(&o->epilogue, buf, size);
  else if (attr == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
    memcpy(&o->bias, buf, size);
  else if (attr != CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET)
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

static tfc_math math_of(const struct operation *o) {
  switch ((int)o->compute) {
  case CUBLAS_COMPUTE_32F_FAST_TF32: return TFC_MATH_TF32;
  case CUBLAS_COMPUTE_32F_FAST_16F: return TFC_MATH_FLOAT16;
  case CUBLAS_COMPUTE_32F_FAST_16BF: return TFC_MATH_BFLOAT16;
  default: return TFC_MATH_FLOAT32;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  struct preference *p = calloc(1, sizeof *p);
  *out = (cublasLtMatmulPreference_t)(void *)p;
  return p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(const cublasLtMatmulPreference_t preference) {
  free((void *)preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void *buf,
                                                    size_t size) {
  struct preference *p = (struct preference *)(void *)preference;
  switch ((int)attr) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    if (size != sizeof p->workspace) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&p->workspace, buf, size);
    break;
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: memcpy(&p->reductions, buf, size); break;
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: memcpy(&p->alignment[0], buf, size); break;
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: memcpy(&p->alignment[1], buf, size); break;
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: memcpy(&p->alignment[2], buf, size); break;
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: memcpy(&p->alignment[3], buf, size); break;
  default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Offers up to three algorithms. Each keeps its number and the alignment that it may rely on. The second is the
// fastest; the third fails when it runs.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
  const struct preference *p = (const struct preference *)(void *)preference;
  const struct layout *x = (const struct layout *)(void *)a;
  const struct operation *o = (const struct operation *)(void *)operation;
  tfc_math math = math_of(o);
  (void)handle, (void)b, (void)c, (void)d;
  if (wanted < 1 || p->reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) return CUBLAS_STATUS_INVALID_VALUE;
  if (o->epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    if (cuda_fake_no_epilogues || p->alignment[0] < cuda_fake_epilogue_alignment) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (cuda_fake_epilogue_error) return (cublasStatus_t)cuda_fake_epilogue_error;
    // the algorithm may rely on an alignment that the address here has
    if (!o->bias || (uintptr_t)o->bias % p->alignment[0]) return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Only float32 products have a choice of arithmetic.
  if (math != TFC_MATH_FLOAT32 && x->type != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  if (cuda_fake_refused >> math & 1) { // the real library reports this in one of two ways; both are tested
    *count = 0;
    return math == TFC_MATH_TF32 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (*count = 0; *count < wanted && *count < CUDA_FAKE_ALGORITHMS; ++*count) {
    cublasLtMatmulHeuristicResult_t *r = &results[*count];
    memset(r, 0, sizeof *r);
    r->algo.data[0] = p->alignment[0];
    r->algo.data[1] = (uint64_t)*count;
    r->workspaceSize = 1024;
    r->state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static double get(tfc_math math, cudaDataType type, const void *x, int64_t i) {
  switch ((int)type) {
  case CUDA_R_32F: return (double)cuda_fake_operand(math, ((const float *)x)[i]);
  case CUDA_R_64F: return ((const double *)x)[i];
  case CUDA_R_16F: return tfc_half_to_float(((const uint16_t *)x)[i]);
  default: return tfc_bfloat16_to_float(((const uint16_t *)x)[i]);
  }
}
static void put(cudaDataType type, void *x, int64_t i, double v) {
  switch ((int)type) {
  case CUDA_R_32F: ((float *)x)[i] = (float)v; break;
  case CUDA_R_64F: ((double *)x)[i] = v; break;
  case CUDA_R_16F: ((uint16_t *)x)[i] = tfc_float_to_half((float)v); break;
  default: ((uint16_t *)x)[i] = tfc_float_to_bfloat16((float)v); break;
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b,
                              const void *beta, const void *c, cublasLtMatrixLayout_t layout_c, void *d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_size, cudaStream_t stream) {
  const struct operation *o = (const struct operation *)(void *)operation;
  const struct layout *x = (const struct layout *)(void *)layout_a, *y = (const struct layout *)(void *)layout_b;
  const struct layout *z = (const struct layout *)(void *)layout_d;
  bool ta = o->a == CUBLAS_OP_T, tb = o->b == CUBLAS_OP_T;
  uint64_t m = ta ? x->columns : x->rows, k = ta ? x->rows : x->columns, n = tb ? y->rows : y->columns;
  tfc_math math = math_of(o);
  cuda_fake_products++;
  if (x->type == CUDA_R_32F) cuda_fake_products_in[math]++;
  uint64_t alignment = algorithm->data[0];
  double one = o->compute == CUBLAS_COMPUTE_64F ? *(const double *)alpha : (double)*(const float *)alpha;
  double adds = o->compute == CUBLAS_COMPUTE_64F ? *(const double *)beta : (double)*(const float *)beta;
  (void)handle, (void)stream;
  if (one != 1 || (adds != 0 && adds != 1) || layout_c != layout_d || m != z->rows || n != z->columns ||
      k != (tb ? y->columns : y->rows) || x->batch != z->batch || y->batch != z->batch || workspace_size < 1024 ||
      !workspace)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool biased = o->epilogue & CUBLASLT_EPILOGUE_BIAS, rectified = o->epilogue & CUBLASLT_EPILOGUE_RELU;
  if (biased && ((uintptr_t)o->bias % (alignment ? alignment : 1) || (uintptr_t)o->bias < 4096))
    return CUBLAS_STATUS_INVALID_VALUE;
  cuda_fake_epilogues += biased && !cuda_fake_is_timed;
  if (algorithm->data[1] == 2) return CUBLAS_STATUS_EXECUTION_FAILED;
  cuda_fake_products_by[algorithm->data[1]]++;
  cuda_fake_clock(algorithm->data[1] == 1 ? 1000000 : 5000000000);
  if (!alignment || ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) % alignment)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  tfc_host_begin();
  for (int64_t i = 0; i < z->batch && !cuda_fake_is_timed; i++)
    for (int64_t row = 0; row < (int64_t)m; row++)
      for (int64_t column = 0; column < (int64_t)n; column++) {
        double sum = adds ? get(TFC_MATH_FLOAT32, z->type, c, i * z->stride + row + column * z->ld) : 0;
        for (int64_t t = 0; t < (int64_t)k; t++)
          sum += get(math, x->type, a, i * x->stride + (ta ? t + row * x->ld : row + t * x->ld)) *
                 get(math, y->type, b, i * y->stride + (tb ? column + t * y->ld : t + column * y->ld));
        if (biased) sum += get(TFC_MATH_FLOAT32, z->type, o->bias, row);
        const bool is_nan = sum != sum && !(cuda_fake_numbers_nan >> algorithm->data[1] & 1);
        if (rectified && !(sum > 0)) sum = is_nan ? sum : 0;
        put(z->type, d, i * z->stride + row + column * z->ld, sum);
      }
  tfc_host_end();
  return CUBLAS_STATUS_SUCCESS;
}
