// Matrix products through cuBLASLt. Its matrices are column-major, so a row-major matrix is there the transposed one:
// C^T = op(B)^T op(A)^T, with B as the first operand.
//
// Algorithms that add with atomics are excluded, so that results are the same in every run. Products of float32 are
// computed in float32, unless the device is configured otherwise; if no algorithm computes a product in the configured
// arithmetic, a more exact one is used.
//
// The library proposes several algorithms, first the one that it expects to be fastest. They are timed once per shape
// and device, and the fastest is kept, as for convolutions; if there is no memory for the timing, the first one is
// used.
//
// The library documents its rectifier as max(x, 0), and not what that is for NaN, which has to stay NaN. So one product
// with a bias of NaN is computed by each algorithm, and those that make a number of it are not used.
#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/device/cuda/kernels/library/choices.h"
#include "runtime/device/cuda/kernels/library/plans.h"
#include "runtime/device/cuda/kernels/library/timing.h"
#include "runtime/device/cuda/kernels/memory.h"
#include "runtime/device/cuda/kernels/product.h"

enum { WORKSPACE = 32 << 20, MOST = 8, RUNS = 4, ROUNDS = 3, ALIGN = 256, REFUSED = -1 };

struct key { // compared by bytes: no padding may differ
  int64_t m, n, k, batch, stride_a, stride_b, stride_c;
  int32_t type, transpose_a, transpose_b, sm_count, capability, math, alignment, epilogue;
};
struct tfc_cuda_product_plan {
  struct key key;
  cublasLtMatmulDesc_t operation; // launches with a bias make one of their own, with its address
  cublasComputeType_t compute;    // the arithmetic of `operation`
  cublasLtMatrixLayout_t a, b, c; // as cuBLASLt sees them
  cublasLtMatmulAlgo_t algorithm;
  size_t scratch;
  int choice;     // index of the algorithm among those that the library proposed; REFUSED: none may be used
  bool measured;  // `choice` was made by timing several algorithms
  char model[64]; // of the device
};

static tfc_status failed(cublasStatus_t code, const char *what) {
  return tfc_status_make(code == CUBLAS_STATUS_NOT_SUPPORTED ? TFC_UNIMPLEMENTED : TFC_INTERNAL, "cuBLASLt: %s: %s",
                         what, cublasLtGetStatusString(code));
}
#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cublasStatus_t code_ = (call);                                                                                     \
    if (code_ != CUBLAS_STATUS_SUCCESS) {                                                                              \
      s = failed(code_, #call);                                                                                        \
      goto out;                                                                                                        \
    }                                                                                                                  \
  } while (0)

static cudaDataType_t data_type(int32_t t) {
  return t == TFC_FLOAT ? CUDA_R_32F : t == TFC_DOUBLE ? CUDA_R_64F : t == TFC_HALF ? CUDA_R_16F : CUDA_R_16BF;
}

static tfc_status make_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows, int64_t columns,
                              int64_t batch, int64_t stride) {
  tfc_status s = NULL;
  int32_t count = (int32_t)batch;
  CHECK(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows));
  if (batch > 1) {
    CHECK(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    CHECK(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
out:
  return s;
}

static void free_plan(void *plan) {
  struct tfc_cuda_product_plan *p = plan;
  if (!p) return;
  if (p->operation) cublasLtMatmulDescDestroy(p->operation);
  if (p->a) cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) cublasLtMatrixLayoutDestroy(p->c);
  free(p);
}

// Lists the arithmetics in which the product may be computed, the preferred one first. Returns how many there are.
static int ways(const struct key *key, cublasComputeType_t out[3]) {
  int n = 0;
  if (key->type == TFC_DOUBLE) return out[0] = CUBLAS_COMPUTE_64F, 1;
  if (key->math == TFC_MATH_FLOAT16) out[n++] = CUBLAS_COMPUTE_32F_FAST_16F;
  if (key->math == TFC_MATH_BFLOAT16) out[n++] = CUBLAS_COMPUTE_32F_FAST_16BF;
  if (key->math != TFC_MATH_FLOAT32) out[n++] = CUBLAS_COMPUTE_32F_FAST_TF32;
  out[n++] = CUBLAS_COMPUTE_32F;
  return n;
}

// `bias`: its address, or one that is aligned alike; the heuristics look at nothing else.
static tfc_status describe(const struct tfc_cuda_library *library, const struct key *key, cublasComputeType_t compute,
                           const void *bias, cublasLtMatmulDesc_t *out) {
  tfc_status s = NULL;
  cublasLtMatmulDesc_t operation = NULL;
  CHECK(cublasLtMatmulDescCreate(&operation, compute, key->type == TFC_DOUBLE ? CUDA_R_64F : CUDA_R_32F));
  cublasOperation_t first = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t second = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
  if (library->is_virtual)
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &key->sm_count,
                                         sizeof key->sm_count));
  if (key->epilogue) { // rows of the matrix as cuBLASLt sees it are columns here, so the bias has one element for each
    const uint32_t epilogue =
        key->epilogue == TFC_CUDA_EPILOGUE_BIAS ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_RELU_BIAS;
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }
  *out = operation, operation = NULL;
out:
  if (operation) cublasLtMatmulDescDestroy(operation);
  return s;
}

static cublasStatus_t multiply(struct cublasLtContext *handle, const struct tfc_cuda_product_plan *p,
                               cublasLtMatmulDesc_t operation, const void *a, const void *b, const void *addend,
                               void *c, void *scratch, void *stream) {
  const float one = 1, beta = addend != NULL;
  const double wide_one = 1, wide_beta = addend != NULL;
  const bool wide = p->key.type == TFC_DOUBLE;
  return cublasLtMatmul(handle, operation, wide ? (const void *)&wide_one : &one, b, p->a, a, p->b,
                        wide ? (const void *)&wide_beta : &beta, addend ? addend : c, p->c, c, p->c, &p->algorithm,
                        scratch, p->scratch, stream);
}

// --- Timing algorithms ---------------------------------------------------------------------------------------------
struct measuring {
  struct cublasLtContext *handle;
  const struct tfc_cuda_product_plan *plan;
  cublasLtMatmulDesc_t operation;
  char *a, *b, *c, *scratch;
  void *stream;
};
static tfc_status run_once(void *arg) {
  const struct measuring *m = arg;
  cublasStatus_t code = multiply(m->handle, m->plan, m->operation, m->a, m->b, NULL, m->c, m->scratch, m->stream);
  return code ? failed(code, "cublasLtMatmul") : NULL;
}

static size_t bytes_of(const struct key *key, int64_t matrix, int64_t stride) { // the result is rounded up
  const int64_t n = matrix + (key->batch > 1 ? (key->batch - 1) * stride : 0);
  return ((size_t)n * tfc_dtype_size((tfc_dtype)key->type) + ALIGN - 1) / ALIGN * ALIGN;
}

// Whether the first and the last element of a product of zeros with a bias of NaN are NaN after the epilogue.
static bool keeps_nan(const struct measuring *m, void *bias, size_t bias_bytes) {
  const struct key *key = &m->plan->key;
  const size_t last = (size_t)(key->m * key->n) - 1;
  float ends[2] = {0};
  tfc_status s = NULL;
  if (cudaMemsetAsync(bias, 0xff, bias_bytes, m->stream)) return false; // all bits set: NaN
  s = run_once((void *)(uintptr_t)m);
  for (int i = 0; i < 2 && !s; i++)
    if (cudaMemcpyAsync(&ends[i], m->c + (i ? last : 0) * sizeof(float), sizeof(float), cudaMemcpyDeviceToHost,
                        m->stream))
      s = tfc_status_make(TFC_INTERNAL, "reading a product");
  if (cudaStreamSynchronize(m->stream) && !s) s = tfc_status_make(TFC_INTERNAL, "waiting for a product");
  const bool kept = !s && isnan(ends[0]) && isnan(ends[1]);
  tfc_status_free(s);
  return kept;
}

// Sets the plan's algorithm to the fastest of those found. An algorithm that fails, or that rectifies NaN to a number,
// is not chosen.
static void choose(struct tfc_cuda_library *library, struct cublasLtContext *handle, struct tfc_cuda_product_plan *p,
                   const cublasLtMatmulHeuristicResult_t *found, int count) {
  const struct key *key = &p->key;
  const size_t a = bytes_of(key, key->m * key->k, key->stride_a), b = bytes_of(key, key->k * key->n, key->stride_b);
  const size_t c = bytes_of(key, key->m * key->n, key->stride_c);
  const size_t bias =
      key->epilogue ? ((size_t)key->n * tfc_dtype_size((tfc_dtype)key->type) + ALIGN - 1) / ALIGN * ALIGN : 0;
  bool refused = false; // an algorithm works, but its rectifier does not keep NaN
  const struct tfc_device_driver *driver = library->device->driver;
  struct tfc_kernel_env env = {0};
  struct tfc_buffer *memory = NULL;
  cublasLtMatmulDesc_t operation = NULL;
  tfc_status s = driver->allocate(library->device, a + b + c + WORKSPACE + bias, &memory);
  if (driver->environment) driver->environment(library->device, &env);
  char *at = s ? NULL : memory->data;
  if (!s) s = describe(library, key, p->compute, at + a + b + c + WORKSPACE, &operation);
  struct measuring m = {handle, p, operation, at, at + a, at + a + b, at + a + b + c, env.stream};
  // The operands are zeros, because arbitrary contents may be slow to multiply (subnormal numbers, say).
  if (!s && tfc_cuda_clear_bytes(at, a + b + c, env.stream)) s = tfc_status_make(TFC_INTERNAL, "clearing");
  if (!s && bias && tfc_cuda_clear_bytes(at + a + b + c + WORKSPACE, bias, env.stream))
    s = tfc_status_make(TFC_INTERNAL, "clearing");
  float best = 0;
  for (int i = 0; i < count && !s; i++) {
    float ms = 0;
    p->algorithm = found[i].algo, p->scratch = found[i].workspaceSize;
    tfc_status failure = found[i].state ? failed(found[i].state, "heuristic") : NULL;
    if (!failure) failure = tfc_cuda_time(library, env.stream, run_once, &m, RUNS, ROUNDS, &ms);
    if (!failure && key->epilogue == TFC_CUDA_EPILOGUE_BIAS_RECTIFIED &&
        !keeps_nan(&m, at + a + b + c + WORKSPACE, bias)) {
      refused = true;
      continue;
    }
    if (!failure && (!p->measured || ms < best)) p->choice = i, p->measured = true, best = ms;
    tfc_status_free(failure);
  }
  if (refused && !p->measured) p->choice = REFUSED, p->measured = true;
  if (operation) cublasLtMatmulDescDestroy(operation);
  tfc_status_free(s);
  tfc_buffer_release(memory);
}

// --- Plans ---------------------------------------------------------------------------------------------------------
static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out);
static struct tfc_cuda_plans plans = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .making = PTHREAD_MUTEX_INITIALIZER,
                                      .key_size = sizeof(struct key),
                                      .make = make_plan,
                                      .free = free_plan};

static void choice_of(const void *plan, const char **out_model, int *out_values) {
  const struct tfc_cuda_product_plan *p = plan;
  *out_model = p->model;
  out_values[0] = p->choice, out_values[1] = p->measured;
}
static struct tfc_cuda_choices choices = {
    .kind = "product", .version = cublasLtGetVersion, .value_count = 2, .of = choice_of};

char *tfc_cuda_product_tuning(void) {
  return tfc_cuda_choices_write(&choices, &plans);
}
void tfc_cuda_product_set_tuning(const char *lines) {
  tfc_cuda_choices_read(&choices, &plans, lines);
}

static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out) {
  tfc_status s = NULL;
  const struct key *key = bytes;
  struct cublasLtContext *handle = NULL;
  cublasLtMatmulPreference_t preference = NULL;
  cublasLtMatmulHeuristicResult_t found[MOST] = {0};
  cublasComputeType_t compute[3];
  int count = 0;
  struct tfc_cuda_product_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory(NULL);
  p->key = *key;
  tfc_cuda_choice_model(library, p->model);
  TFC_TRY(s, library->blaslt(library, &handle));
  cudaDataType_t type = data_type(key->type);
  int64_t rows_b = key->transpose_b ? key->k : key->n, columns_b = key->transpose_b ? key->n : key->k;
  int64_t rows_a = key->transpose_a ? key->m : key->k, columns_a = key->transpose_a ? key->k : key->m;
  TFC_TRY(s, make_layout(&p->a, type, rows_b, columns_b, key->batch, key->stride_b));
  TFC_TRY(s, make_layout(&p->b, type, rows_a, columns_a, key->batch, key->stride_a));
  TFC_TRY(s, make_layout(&p->c, type, key->n, key->m, key->batch, key->stride_c));
  CHECK(cublasLtMatmulPreferenceCreate(&preference));
  size_t workspace = WORKSPACE;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
           alignment = (uint32_t)key->alignment;
  // The strides of a batch may be less aligned than its first matrix.
  size_t element = tfc_dtype_size((tfc_dtype)key->type);
  int64_t strides[3] = {key->stride_a, key->stride_b, key->stride_c};
  for (int i = 0; i < 3 && key->batch > 1; i++)
    while (alignment > element && ((size_t)strides[i] * element) % alignment) alignment /= 2;
  CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                             sizeof workspace));
  CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                             sizeof reductions));
  const cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; i++)
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof alignment));
  for (int i = 0, n = ways(key, compute); i < n; i++) {
    if (p->operation) cublasLtMatmulDescDestroy(p->operation), p->operation = NULL;
    TFC_TRY(s, describe(library, key, compute[i], (const void *)(uintptr_t)alignment, &p->operation));
    p->compute = compute[i];
    cublasStatus_t code =
        cublasLtMatmulAlgoGetHeuristic(handle, p->operation, p->a, p->b, p->c, p->c, preference, MOST, found, &count);
    if (code != CUBLAS_STATUS_NOT_SUPPORTED) CHECK(code);
    if (code == CUBLAS_STATUS_SUCCESS && count && found[0].state == CUBLAS_STATUS_SUCCESS) break;
    count = 0;
  }
  if (!count)
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "cuBLASLt has no algorithm for %lld x %lld x %lld", (long long)key->m,
             (long long)key->n, (long long)key->k);
  const int *kept = tfc_cuda_choices_find(&choices, p->model, key, sizeof *key);
  const bool rectified = key->epilogue == TFC_CUDA_EPILOGUE_BIAS_RECTIFIED;
  if (kept && kept[1] &&
      ((rectified && kept[0] == REFUSED) ||
       (kept[0] >= 0 && kept[0] < count && found[kept[0]].state == CUBLAS_STATUS_SUCCESS)))
    p->choice = kept[0], p->measured = true;
  else if (count > 1 || rectified)
    choose(library, handle, p, found, count);
  if (rectified && !p->measured)
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "it was not found out what cuBLASLt's rectifier makes of NaN");
  if (p->choice != REFUSED) {
    p->algorithm = found[p->choice].algo;
    p->scratch = found[p->choice].workspaceSize;
  }
  *out = p, p = NULL;
out:
  if (preference) cublasLtMatmulPreferenceDestroy(preference);
  free_plan(p);
  return s;
}

tfc_status tfc_cuda_product_find(struct tfc_cuda_library *library, const struct tfc_cuda_product *product,
                                 const struct tfc_cuda_product_plan **out) {
  const void *found = NULL;
  struct key key;
  memset(&key, 0, sizeof key);
  key.m = product->m, key.n = product->n, key.k = product->k;
  key.batch = product->batch;
  key.stride_a = product->stride_a, key.stride_b = product->stride_b, key.stride_c = product->stride_c;
  key.type = (int32_t)product->type;
  key.transpose_a = product->transpose_a, key.transpose_b = product->transpose_b;
  key.alignment = product->alignment;
  key.epilogue = (int32_t)product->epilogue;
  key.sm_count = library->sm_count, key.capability = library->capability;
  key.math = product->type == TFC_FLOAT ? library->math : TFC_MATH_FLOAT32;
  if (product->batch > INT32_MAX) return tfc_status_make(TFC_UNIMPLEMENTED, "a batch of more than 2^31 matrices");
  TFC_RETURN_IF_ERROR(tfc_cuda_plans_find(&plans, library, &key, &found));
  if (((const struct tfc_cuda_product_plan *)found)->choice == REFUSED) // kept, so that it is not tried again
    return tfc_status_make(TFC_UNIMPLEMENTED, "cuBLASLt's rectifier makes a number of NaN");
  *out = found;
  return NULL;
}

size_t tfc_cuda_product_scratch(const struct tfc_cuda_product_plan *plan) {
  return plan->scratch;
}

tfc_status tfc_cuda_product_run(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan, const void *a,
                                const void *b, const void *addend, void *c, void *scratch) {
  struct cublasLtContext *handle = NULL;
  TFC_RETURN_IF_ERROR(l->library->blaslt(l->library, &handle));
  cublasStatus_t code = multiply(handle, plan, plan->operation, a, b, addend, c, scratch, l->stream);
  if (code != CUBLAS_STATUS_SUCCESS) return failed(code, "cublasLtMatmul");
  tfc_cuda_count_launch();
  return NULL;
}

tfc_status tfc_cuda_product_run_bias(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan, const void *a,
                                     const void *b, const void *bias, void *c, void *scratch) {
  struct cublasLtContext *handle = NULL;
  cublasLtMatmulDesc_t operation = NULL; // of this launch: other operations and devices use the plan at the same time
  TFC_RETURN_IF_ERROR(l->library->blaslt(l->library, &handle));
  TFC_RETURN_IF_ERROR(describe(l->library, &plan->key, plan->compute, bias, &operation));
  cublasStatus_t code = multiply(handle, plan, operation, a, b, NULL, c, scratch, l->stream);
  cublasLtMatmulDescDestroy(operation);
  if (code != CUBLAS_STATUS_SUCCESS) return failed(code, "cublasLtMatmul");
  tfc_cuda_count_launch();
  return NULL;
}
