// The kernels of attention by themselves, beside sums in double precision: with heads between rows and elements, and
// with operands that have other elements between their rows. Under the thread sanitizer two blocks run at once.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/device/cuda/kernels/attention.h"
#include "tests/cuda_kernels/host.h"

enum { BATCHES = 2, HEADS = 2 };

struct operand {
  float *data;
  struct tfc_attention_strides strides;
};
// [batches, rows, heads, elements], and `gap` other elements after each.
static struct operand make(int64_t rows, int64_t elements, int64_t gap, int step) {
  const int64_t each = elements + gap, count = BATCHES * rows * HEADS * each;
  struct operand o = {malloc((size_t)count * sizeof(float)), {rows * HEADS * each, each, HEADS * each}};
  assert_non_null(o.data);
  for (int64_t i = 0; i < count; i++) o.data[i] = i % each < elements ? (float)(i * step % 61 - 30) * 0.05f : NAN;
  return o;
}
static double at(const struct operand *o, int64_t batch, int64_t head, int64_t row, int64_t element) {
  return (double)o->data[batch * o->strides.batch + head * o->strides.head + row * o->strides.row + element];
}
static void expect(const struct operand *o, int64_t batch, int64_t head, int64_t row, int64_t element, double want) {
  const double got = at(o, batch, head, row, element);
  if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
    fail_msg("batch %d, head %d, row %d, element %d: %.9g, not %.9g", (int)batch, (int)head, (int)row, (int)element,
             got, want);
}

static void check(int64_t queries, int64_t keys, int64_t depth, int64_t width, int64_t gap, bool masked) {
  const struct operand q = make(queries, depth, gap, 7), k = make(keys, depth, gap, 11), v = make(keys, width, 0, 13),
                       d_out = make(queries, width, gap, 17), mask = make(1, queries * keys, 0, 19),
                       out = make(queries, width, gap, 1), dq = make(queries, depth, 0, 1),
                       dk = make(keys, depth, gap, 1), dv = make(keys, width, 0, 1);
  float *logs = malloc((size_t)(BATCHES * HEADS * queries) * sizeof *logs),
        *sums = malloc((size_t)(BATCHES * HEADS * queries) * sizeof *sums);
  double *p = malloc((size_t)(queries * keys) * sizeof *p), *ds = malloc((size_t)(queries * keys) * sizeof *ds);
  const struct tfc_attention a = {.batches = BATCHES,
                                  .heads = HEADS,
                                  .queries = queries,
                                  .keys = keys,
                                  .depth = (int32_t)depth,
                                  .width = (int32_t)width,
                                  .scale = 0.3f,
                                  .masked = masked,
                                  .q = q.strides,
                                  .k = k.strides,
                                  .v = v.strides,
                                  .out = out.strides,
                                  .d_out = d_out.strides,
                                  .dq = dq.strides,
                                  .dk = dk.strides,
                                  .dv = dv.strides,
                                  .mask = {0, queries * keys, keys}, // the same for all batches
                                  .mask_column = 1};
  assert_true(logs && sums && p && ds);
  assert_int_equal(tfc_cuda_attention(&a, q.data, k.data, v.data, masked ? mask.data : NULL, out.data, logs, NULL), 0);
  assert_int_equal(tfc_cuda_attention_gradients(&a, q.data, k.data, v.data, masked ? mask.data : NULL, out.data, logs,
                                                d_out.data, dq.data, dk.data, dv.data, sums, NULL),
                   0);
  for (int64_t b = 0; b < BATCHES; b++)
    for (int64_t h = 0; h < HEADS; h++) {
      for (int64_t i = 0; i < queries; i++) {
        double sum = 0, both = 0;
        for (int64_t j = 0; j < keys; j++) {
          double s = 0;
          for (int64_t d = 0; d < depth; d++) s += at(&q, b, h, i, d) * at(&k, b, h, j, d);
          s = s * (double)a.scale + (masked ? (double)mask.data[h * queries * keys + i * keys + j] : 0);
          sum += p[i * keys + j] = exp(s);
        }
        assert_true(fabs((double)logs[(b * HEADS + h) * queries + i] - log(sum)) <= 1e-5 * (1 + fabs(log(sum))));
        for (int64_t j = 0; j < keys; j++) {
          double g = 0;
          p[i * keys + j] /= sum;
          for (int64_t c = 0; c < width; c++) g += at(&d_out, b, h, i, c) * at(&v, b, h, j, c);
          ds[i * keys + j] = g;
          both += g * p[i * keys + j];
        }
        for (int64_t j = 0; j < keys; j++) ds[i * keys + j] = (ds[i * keys + j] - both) * p[i * keys + j];
        for (int64_t c = 0; c < width; c++) {
          double want = 0;
          for (int64_t j = 0; j < keys; j++) want += p[i * keys + j] * at(&v, b, h, j, c);
          expect(&out, b, h, i, c, want);
        }
        for (int64_t d = 0; d < depth; d++) {
          double want = 0;
          for (int64_t j = 0; j < keys; j++) want += ds[i * keys + j] * at(&k, b, h, j, d);
          expect(&dq, b, h, i, d, want * (double)a.scale);
        }
      }
      for (int64_t j = 0; j < keys; j++) {
        for (int64_t d = 0; d < depth; d++) {
          double want = 0;
          for (int64_t i = 0; i < queries; i++) want += ds[i * keys + j] * at(&q, b, h, i, d);
          expect(&dk, b, h, j, d, want * (double)a.scale);
        }
        for (int64_t c = 0; c < width; c++) {
          double want = 0;
          for (int64_t i = 0; i < queries; i++) want += p[i * keys + j] * at(&d_out, b, h, i, c);
          expect(&dv, b, h, j, c, want);
        }
      }
    }
  const struct operand *const all[] = {&q, &k, &v, &d_out, &mask, &out, &dq, &dk, &dv};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->data);
  free(logs);
  free(sums);
  free(p);
  free(ds);
}

static void shapes(void **state) {
  (void)state;
  for (int backwards = 0; backwards < 2; backwards++) {
    cuda_host_backwards = backwards;
    check(1, 1, 1, 1, 0, false);
    check(33, 65, 33, 31, 3, true);
    check(65, 33, 5, 70, 0, true);
    check(40, 70, 100, 64, 1, false);
  }
  cuda_host_backwards = false;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
