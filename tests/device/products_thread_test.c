// Tests that products which are divided over the threads of a team have the bits of products on one thread.
#include "tests/common/test.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cpu/team.h"
#include "runtime/host/gemm/products.h"

enum { THREADS = 4, MOST_PRODUCTS = 3 };
// Sanitizers, under which a product takes thirty times as long, need each way to divide a product once.
#ifdef TFC_SANITIZED
enum { SHARE = 3 };
#else
enum { SHARE = 1 };
#endif

static struct tfc_team team;
static int calls_taken; // calls whose parts the team's loop runs one after another, as if no other thread was free

static void on_team(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                    void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  (void)env;
  tfc_team_for(&team, total, grain, fn, arg);
}

static void alone(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                  void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  (void)env;
  calls_taken++;
  for (int64_t begin = 0; begin < total; begin += grain) fn(arg, begin, begin + grain < total ? begin + grain : total);
}

static float *random_floats(struct tfc_random *r, int64_t count) {
  float *p = malloc((size_t)(count ? count : 1) * sizeof *p);
  for (int64_t i = 0; i < count; i++) p[i] = (float)(2 * tfc_random_unit(r) - 1);
  return p;
}

static struct tfc_matrix matrix(const float *data, int64_t rows, int64_t columns, bool transposed) {
  return (struct tfc_matrix){data, transposed ? 1 : columns, transposed ? rows : 1};
}

static void compare(struct tfc_random *r, int64_t m, int64_t n, int64_t count, const int64_t *k) {
  struct tfc_product products[MOST_PRODUCTS];
  float *memory[3 * MOST_PRODUCTS] = {0};
  for (int64_t i = 0; i < count; i++) {
    float *a = memory[3 * i] = random_floats(r, m * k[i]), *b = memory[3 * i + 1] = random_floats(r, k[i] * n);
    products[i] = (struct tfc_product){
        .a = matrix(a, m, k[i], tfc_random_below(r, 2)), .b = matrix(b, k[i], n, tfc_random_below(r, 2)), .k = k[i]};
    if (tfc_random_below(r, 2)) continue;
    float *packed = memory[3 * i + 2] = aligned_alloc(64, (tfc_gemm_packed_bytes(k[i], n) + 63) / 64 * 64);
    tfc_gemm_pack(products[i].b, k[i], n, 0, tfc_gemm_panels(n), packed);
    products[i].packed_b = packed;
  }
  float *start = random_floats(r, m * n), *c = malloc((size_t)(m * n) * sizeof *c),
        *d = malloc((size_t)(m * n) * sizeof *d);
  const bool accumulate = tfc_random_below(r, 2);
  const size_t bytes = (size_t)(m * n) * sizeof *c;
  struct tfc_kernel_env one = {.parallel_for = alone, .threads = 1},
                        all = {.parallel_for = on_team, .threads = THREADS};
  struct tfc_kernel_env late = {.parallel_for = alone, .threads = THREADS};
  memcpy(c, start, bytes);
  assert_null(tfc_products_run(&(struct tfc_kernel_ctx){.env = &one}, products, count, m, n, accumulate, c));
  memcpy(d, start, bytes);
  assert_null(tfc_products_run(&(struct tfc_kernel_ctx){.env = &all}, products, count, m, n, accumulate, d));
  assert_memory_equal(c, d, bytes);
  memcpy(d, start, bytes);
  assert_null(tfc_products_run(&(struct tfc_kernel_ctx){.env = &late}, products, count, m, n, accumulate, d));
  assert_memory_equal(c, d, bytes);
  for (int i = 0; i < 3 * MOST_PRODUCTS; i++) free(memory[i]);
  free(start), free(c), free(d);
}

static void threads_do_not_change_bits(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  for (int round = 0; round < 40 / SHARE; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, 300), n = 1 + (int64_t)tfc_random_below(&r, 600), k[MOST_PRODUCTS];
    int64_t count = 1 + (int64_t)tfc_random_below(&r, MOST_PRODUCTS);
    for (int64_t i = 0; i < count; i++) k[i] = 1 + (int64_t)tfc_random_below(&r, 400);
    compare(&r, m, n, count, k);
  }
  // Shapes for each way to divide a product: few rows, rows in several blocks, a long k in pieces, a B that stays in
  // cache.
  static const int64_t shapes[][3] = {{32, 700, 1500}, {500, 600, 500}, {230, 2500, 200}, {700, 64, 100},
                                      {51, 900, 900},  {1, 900, 3000},  {2900, 800, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int round = 0; round < 3 / SHARE; round++) compare(&r, shapes[i][0], shapes[i][2], 1, &shapes[i][1]);
  assert_true(calls_taken > 0);
}

// The product of a vector with B has the same bits whether B is packed or not, and whether it overwrites the result or
// is added to it.
static void vectors_as_other_rows(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 6);
  struct tfc_kernel_env all = {.parallel_for = on_team, .threads = THREADS};
  struct tfc_kernel_ctx ctx = {.env = &all};
  for (int round = 0; round < 24 / SHARE; round++) {
    const int64_t k = 1 + (int64_t)tfc_random_below(&r, round % 2 ? 60 : 1500),
                  n = 1 + (int64_t)tfc_random_below(&r, 2000);
    float *a = random_floats(&r, k), *b = random_floats(&r, k * n), *c = random_floats(&r, n);
    float *packed = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64), *d = malloc((size_t)n * sizeof *d);
    struct tfc_product p = {.a = matrix(a, 1, k, false), .b = matrix(b, k, n, round % 4 < 2), .k = k}, q = p;
    tfc_gemm_pack(p.b, k, n, 0, tfc_gemm_panels(n), packed);
    q.packed_b = packed;
    memcpy(d, c, (size_t)n * sizeof *d);
    assert_null(tfc_products_run(&ctx, &p, 1, 1, n, round % 3 == 0, c));
    assert_null(tfc_products_run(&ctx, &q, 1, 1, n, round % 3 == 0, d));
    assert_memory_equal(c, d, (size_t)n * sizeof *c);
    free(a), free(b), free(c), free(d), free(packed);
  }
}

// A sum of short products, whose right sides could be read in place, has the bits of one addition after the other.
static void short_terms_one_by_one(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 7);
  struct tfc_kernel_env all = {.parallel_for = on_team, .threads = THREADS};
  struct tfc_kernel_ctx ctx = {.env = &all};
  for (int round = 0; round < 24 / SHARE; round++) {
    const int64_t m = 64 + (int64_t)tfc_random_below(&r, 200), n = 16 * (6 + (int64_t)tfc_random_below(&r, 40)),
                  k = 1 + (int64_t)tfc_random_below(&r, 70);
    const bool accumulate = tfc_random_below(&r, 2);
    struct tfc_product products[MOST_PRODUCTS];
    float *c = random_floats(&r, m * n), *d = malloc((size_t)(m * n) * sizeof *d),
          *b = aligned_alloc(64, (size_t)(MOST_PRODUCTS * k * n) * sizeof *b),
          *a = random_floats(&r, MOST_PRODUCTS * m * k);
    for (int64_t i = 0; i < MOST_PRODUCTS * k * n; i++) b[i] = (float)(2 * tfc_random_unit(&r) - 1);
    for (int64_t i = 0; i < MOST_PRODUCTS; i++)
      products[i] = (struct tfc_product){
          .a = matrix(a + i * m * k, m, k, round % 2), .b = matrix(b + i * k * n, k, n, false), .k = k};
    memcpy(d, c, (size_t)(m * n) * sizeof *d);
    assert_null(tfc_products_run(&ctx, products, MOST_PRODUCTS, m, n, accumulate, c));
    for (int64_t i = 0; i < MOST_PRODUCTS; i++)
      assert_null(tfc_products_run(&ctx, &products[i], 1, m, n, accumulate || i > 0, d));
    assert_memory_equal(c, d, (size_t)(m * n) * sizeof *c);
    free(a), free(b), free(c), free(d);
  }
}

// If rounding may change, products whose results are added are summed in one sequence: the bits are those of one
// product over all their k.
static void a_sum_may_be_one_chain(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 4);
  struct tfc_kernel_env all = {.parallel_for = on_team, .threads = THREADS};
  for (int round = 0; round < 12 / SHARE; round++) {
    const int64_t m = 513 + (int64_t)tfc_random_below(&r, 200), n = 1 + (int64_t)tfc_random_below(&r, 300);
    const int64_t most = round % 4 ? 90 : 1200; // long ones are computed in pieces
    int64_t k[MOST_PRODUCTS], total = 0;
    for (int i = 0; i < MOST_PRODUCTS; i++) total += k[i] = 1 + (int64_t)tfc_random_below(&r, (uint64_t)most);
    const bool transposed = tfc_random_below(&r, 2), accumulate = tfc_random_below(&r, 2);
    float *a = random_floats(&r, m * total), *b = random_floats(&r, total * n), *c = random_floats(&r, m * n);
    float *d = malloc((size_t)(m * n) * sizeof *d);
    struct tfc_product products[MOST_PRODUCTS], whole = {.k = total};
    whole.a = matrix(a, m, total, transposed), whole.b = matrix(b, total, n, false);
    for (int64_t i = 0, at = 0; i < MOST_PRODUCTS; at += k[i++]) {
      products[i] = whole;
      products[i].k = k[i];
      products[i].a.data += at * whole.a.column;
      products[i].b.data += at * whole.b.row;
    }
    memcpy(d, c, (size_t)(m * n) * sizeof *d);
    assert_null(tfc_products_run(&(struct tfc_kernel_ctx){.env = &all}, &whole, 1, m, n, accumulate, c));
    assert_null(tfc_products_run(&(struct tfc_kernel_ctx){.env = &all, .rounding = true}, products, MOST_PRODUCTS, m, n,
                                 accumulate, d));
    assert_memory_equal(c, d, (size_t)(m * n) * sizeof *c);
    free(a), free(b), free(c), free(d);
  }
}

static int begin_team(void **state) {
  (void)state;
  cpu_set_t allowed;
  int cpus[THREADS], count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE && count < THREADS; cpu++)
    if (CPU_ISSET(cpu, &allowed)) cpus[count++] = cpu;
  for (int i = count; i < THREADS; i++) cpus[i] = cpus[i % count]; // with fewer cores, threads share them
  return tfc_team_init(&team, THREADS, cpus, 100000) ? -1 : 0;
}

static int end_team(void **state) {
  (void)state;
  tfc_team_deinit(&team);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_change_bits),
                                     cmocka_unit_test(vectors_as_other_rows), cmocka_unit_test(short_terms_one_by_one),
                                     cmocka_unit_test(a_sum_may_be_one_chain)};
  return cmocka_run_group_tests(tests, begin_team, end_team);
}
