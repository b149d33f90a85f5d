// Products of bfloat16 with the processor's dot products: beside sums in double, for random sizes and layouts, and part
// by part, to the bit.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/graph/dtype.h"
#include "runtime/host/gemm/bfloat.h"

#ifdef TFC_SANITIZED
enum { ROUNDS = 20 };
#else
enum { ROUNDS = 120 };
#endif

static int calls; // of the loop that divides work

static int64_t below(struct tfc_random *r, int64_t limit) {
  return (int64_t)tfc_random_below(r, (uint64_t)limit);
}

// A matrix [rows, columns] of random numbers, by rows or by columns, with a gap behind each of them.
static struct tfc_bfloat_matrix draw(struct tfc_random *r, int64_t rows, int64_t columns, uint16_t **out_memory) {
  const bool transposed = below(r, 2);
  const int64_t apart = (transposed ? rows : columns) + below(r, 3), count = apart * (transposed ? columns : rows);
  uint16_t *memory = *out_memory = malloc((size_t)(count + 1) * sizeof *memory);
  for (int64_t i = 0; i < count; i++) memory[i] = tfc_float_to_bfloat16((float)(2 * tfc_random_unit(r) - 1));
  return (struct tfc_bfloat_matrix){memory, transposed ? 1 : apart, transposed ? apart : 1};
}

static float at(const struct tfc_bfloat_matrix *m, int64_t i, int64_t j) {
  return tfc_bfloat16_to_float(m->data[i * m->row + j * m->column]);
}

static void near_to_sums_in_double(const struct tfc_bfloat_product *p) {
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double sum = 0, size = 0;
      for (int64_t z = 0; z < p->k; z++) {
        const double term = (double)at(&p->a, i, z) * (double)at(&p->b, z, j);
        sum += term, size += fabs(term);
      }
      // The result is rounded to 8 bits of mantissa, each addition before it to 24.
      const double got = (double)tfc_bfloat16_to_float(p->c[i * p->c_row + j]);
      assert_true(fabs(got - sum) <= 0x1p-8 * fabs(sum) + 0x1p-22 * size + 1e-30);
    }
}

// A part of C is the same bits as in the whole, wherever it is cut.
static void parts_are_the_same(struct tfc_random *r, const struct tfc_bfloat_product *p) {
  const int64_t row = below(r, p->m), column = below(r, p->n);
  struct tfc_bfloat_product part = *p;
  part.m = p->m - row, part.n = p->n - column, part.c_row = part.n;
  part.a.data += row * p->a.row, part.b.data += column * p->b.column;
  part.c = malloc((size_t)(part.m * part.n) * sizeof *part.c);
  assert_ok(tfc_bfloat_run(NULL, &part));
  for (int64_t i = 0; i < part.m; i++)
    assert_memory_equal(part.c + i * part.n, p->c + (row + i) * p->c_row + column, (size_t)part.n * sizeof *part.c);
  free(part.c);
}

static void products(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 41);
  if (!tfc_bfloat_available()) skip();
  for (int round = 0; round < ROUNDS; round++) {
    struct tfc_bfloat_product p = {.m = 1 + below(&r, 90), .k = below(&r, 140), .n = 1 + below(&r, 150)};
    uint16_t *memory[2];
    p.a = draw(&r, p.m, p.k, &memory[0]), p.b = draw(&r, p.k, p.n, &memory[1]);
    p.c_row = p.n + below(&r, 5);
    p.c = malloc((size_t)(p.m * p.c_row) * sizeof *p.c);
    memset(p.c, 0x7f, (size_t)(p.m * p.c_row) * sizeof *p.c);
    assert_ok(tfc_bfloat_run(NULL, &p));
    near_to_sums_in_double(&p);
    for (int64_t i = 0; i < p.m; i++) // between the rows of C nothing is written
      for (int64_t j = p.n; j < p.c_row; j++) assert_int_equal(p.c[i * p.c_row + j], 0x7f7f);
    parts_are_the_same(&r, &p);
    free(memory[0]), free(memory[1]), free(p.c);
  }
}

static void in_turns(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                     void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  (void)env;
  calls++;
  for (int64_t begin = 0; begin < total; begin += grain) fn(arg, begin, begin + grain < total ? begin + grain : total);
}
static struct tfc_bfloat_product product_of(const void *batch, int64_t i) {
  return ((const struct tfc_bfloat_product *)batch)[i];
}

// However products are divided among cores, their bits are those of one core.
static void division_does_not_change_bits(void **state) {
  (void)state;
  enum { COUNT = 6 };
  struct tfc_random r;
  tfc_random_init(&r, 43);
  if (!tfc_bfloat_available()) skip();
  for (int round = 0; round < 12; round++) {
    struct tfc_kernel_env env = {.parallel_for = in_turns,
                                 .threads = round % 2 ? COUNT : 3}; // as many products as cores, or more
    struct tfc_kernel_ctx ctx = {.env = &env};
    struct tfc_bfloat_product one[COUNT], divided[COUNT];
    uint16_t *memory[COUNT][2];
    const int64_t m = 80 + below(&r, 200), k = 60 + below(&r, 400), n = 80 + below(&r, 200),
                  count = round % 3 ? COUNT : 1;
    const size_t bytes = (size_t)(m * n) * sizeof(uint16_t);
    for (int i = 0; i < count; i++) {
      one[i] = (struct tfc_bfloat_product){.m = m, .k = k, .n = n, .c = malloc(bytes), .c_row = n};
      one[i].a = draw(&r, m, k, &memory[i][0]), one[i].b = draw(&r, k, n, &memory[i][1]);
      assert_ok(tfc_bfloat_run(NULL, &one[i]));
      divided[i] = one[i];
      divided[i].c = calloc(1, bytes);
    }
    calls = 0;
    assert_ok(tfc_bfloat_run_all(&ctx, count, product_of, divided));
    assert_true(calls > 0);
    for (int i = 0; i < count; i++) {
      assert_memory_equal(one[i].c, divided[i].c, bytes);
      free(memory[i][0]), free(memory[i][1]), free(one[i].c), free(divided[i].c);
    }
  }
}

static void special_numbers(void **state) {
  (void)state;
  if (!tfc_bfloat_available()) skip();
  const float numbers[] = {INFINITY, NAN, -INFINITY, 3.0f};
  const uint16_t one = tfc_float_to_bfloat16(1);
  for (int i = 0; i < 4; i++) {
    const uint16_t given = tfc_float_to_bfloat16(numbers[i]);
    uint16_t got;
    const struct tfc_bfloat_product p = {{&given, 1, 1}, {&one, 1, 1}, 1, 1, 1, &got, 1};
    assert_ok(tfc_bfloat_run(NULL, &p));
    const float wide = tfc_bfloat16_to_float(got);
    assert_true(isnan(numbers[i]) ? isnan(wide) : wide == numbers[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(division_does_not_change_bits),
                                     cmocka_unit_test(special_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
