// Operations on many rows of a table: distinct indices, rows picked by index, and rows updated by an optimizer, of
// which some occur often. Each on one core and on three, with the same bits. Compared with plain loops, gathers, distinct
// values and sums have the same bits; Adagrad's updates are within 1e-5.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { ROWS = 61, COUNT = 4000, WIDTH = 147 }; // so many that threads divide the updates among them

static const char *const cores[] = {"cpu:0", "cpu:0-2"};

static struct tfc_tensor draw(struct tfc_random *r, tfc_dtype type, struct tfc_shape shape, int64_t limit) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(type, &shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++)
    if (type == TFC_FLOAT)
      ((float *)t.data)[i] = (float)(2 * tfc_random_unit(r) - 1);
    else if (type == TFC_INT32)
      ((int32_t *)t.data)[i] = (int32_t)tfc_random_below(r, (uint64_t)limit);
    else
      ((int64_t *)t.data)[i] = (int64_t)tfc_random_below(r, (uint64_t)limit);
  return t;
}

// Runs targets, if there are any, in a step of their own, and then fetches.
static void run(struct tfc_builder *b, const char *on, const struct tfc_output *targets, uint32_t target_count,
                const struct tfc_output *fetches, uint32_t fetch_count, struct tfc_tensor *got) {
  struct tfc_graph *graph = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  uint32_t nodes[4];
  for (uint32_t i = 0; i < target_count; i++) nodes[i] = targets[i].node;
  assert_ok(tfc_builder_finish(b, &graph));
  assert_ok(tfc_devices_open(on, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  const struct tfc_run_spec first = {.targets = nodes, .target_count = target_count};
  if (target_count) assert_ok(tfc_session_run(session, &first, NULL, NULL, NULL));
  const struct tfc_run_spec spec = {.fetches = fetches, .fetch_count = fetch_count};
  assert_ok(tfc_session_run(session, &spec, NULL, got, NULL));
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(graph);
}

// --- Unique ------------------------------------------------------------------------------------------------------
static int64_t value(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

static void distinct_integers(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 5);
  for (int round = 0; round < 24; round++) {
    const tfc_dtype type = round % 2 ? TFC_INT64 : TFC_INT32;
    const int64_t n = (int64_t)tfc_random_below(&r, 400), limit = round % 3 ? 50 : INT32_MAX;
    struct tfc_tensor x = draw(&r, type, TFC_SHAPE(n), limit), got[2] = {{0}};
    for (int64_t i = 0; i < n && type == TFC_INT64 && round % 4 == 1; i++)
      ((int64_t *)x.data)[i] *= -((int64_t)1 << 32); // their low halves are equal
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output in = tfc_add_const(b, "x", &x), y = tfc_add(b, "Unique", NULL, &in, 1, NULL, 0);
    run(b, cores[0], NULL, 0, (struct tfc_output[]){y, {y.node, 1}}, 2, got);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t first = 0;
      while (value(&x, first) != value(&x, i)) first++;
      const int32_t which = ((const int32_t *)got[1].data)[i];
      if (first == i)
        assert_int_equal(which, count++);
      else
        assert_int_equal(which, ((const int32_t *)got[1].data)[first]);
      assert_true(value(&got[0], which) == value(&x, i));
    }
    assert_int_equal(tfc_tensor_elements(&got[0]), count);
    for (int i = 0; i < 2; i++) tfc_tensor_release(&got[i]);
    tfc_tensor_release(&x);
    tfc_builder_free(b);
  }
}

// --- Gather ------------------------------------------------------------------------------------------------------
static void rows_by_index(void **state) {
  (void)state;
  for (int several = 0; several < 2; several++) {
    struct tfc_random r;
    tfc_random_init(&r, 6);
    struct tfc_tensor table = draw(&r, TFC_FLOAT, TFC_SHAPE(ROWS, WIDTH), 0), got = {0};
    struct tfc_tensor indices = draw(&r, TFC_INT64, TFC_SHAPE(COUNT), ROWS),
                      axis = draw(&r, TFC_INT32, TFC_SHAPE(1), 1);
    axis.shape = TFC_SHAPE_SCALAR;
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output in[] = {tfc_add_const(b, "table", &table), tfc_add_const(b, "indices", &indices),
                              tfc_add_const(b, "axis", &axis)};
    struct tfc_output y = tfc_add(b, "GatherV2", NULL, in, 3, NULL, 0);
    run(b, cores[several], NULL, 0, &y, 1, &got);
    for (int64_t i = 0; i < COUNT; i++)
      assert_memory_equal((const float *)got.data + i * WIDTH, (const float *)table.data + value(&indices, i) * WIDTH,
                          WIDTH * sizeof(float));
    tfc_tensor_release(&got);
    tfc_tensor_release(&table), tfc_tensor_release(&indices), tfc_tensor_release(&axis);
    tfc_builder_free(b);
  }
}

// --- Sparse updates ----------------------------------------------------------------------------------------------
static struct tfc_output variable(struct tfc_builder *b, const char *name, const struct tfc_tensor *first,
                                  struct tfc_output *out_assigned) {
  const struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &first->shape)};
  struct tfc_output v = tfc_add(b, "VariableV2", name, NULL, 0, attrs, 2);
  *out_assigned = tfc_add(b, "Assign", NULL, (struct tfc_output[]){v, tfc_add_const(b, NULL, first)}, 2, NULL, 0);
  return v;
}

static void rows_that_occur_often_are_updated_in_order(void **state) {
  (void)state;
  struct tfc_tensor got[2] = {{0}};
  for (int several = 0; several < 2; several++) {
    struct tfc_random r;
    tfc_random_init(&r, 7);
    struct tfc_tensor var = draw(&r, TFC_FLOAT, TFC_SHAPE(ROWS, WIDTH), 0), rate = draw(&r, TFC_FLOAT, TFC_SHAPE(1), 0);
    struct tfc_tensor squares = draw(&r, TFC_FLOAT, TFC_SHAPE(ROWS, WIDTH), 0);
    struct tfc_tensor grad = draw(&r, TFC_FLOAT, TFC_SHAPE(COUNT, WIDTH), 0);
    struct tfc_tensor indices = draw(&r, TFC_INT32, TFC_SHAPE(COUNT), ROWS);
    for (int64_t i = 0; i < ROWS * WIDTH; i++) ((float *)squares.data)[i] += 1.5f;
    rate.shape = TFC_SHAPE_SCALAR, *(float *)rate.data = 0.25f;
    struct tfc_builder *b = NULL;
    struct tfc_output assigned[2];
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output in[] = {variable(b, "var", &var, &assigned[0]), variable(b, "squares", &squares, &assigned[1]),
                              tfc_add_const(b, "rate", &rate), tfc_add_const(b, "grad", &grad),
                              tfc_add_const(b, "indices", &indices)};
    struct tfc_output updated = tfc_add(b, "SparseApplyAdagrad", NULL, in, 5, NULL, 0);
    run(b, cores[several], assigned, 2, &updated, 1, &got[several]);
    for (int64_t i = 0; i < COUNT; i++)
      for (int64_t c = 0; c < WIDTH; c++) {
        const int64_t at = value(&indices, i) * WIDTH + c;
        const float g = ((const float *)grad.data)[i * WIDTH + c];
        float *s = (float *)squares.data + at;
        *s += g * g;
        ((float *)var.data)[at] -= 0.25f * g / sqrtf(*s);
      }
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
      assert_true(fabsf(((const float *)got[several].data)[i] - ((const float *)var.data)[i]) < 1e-5f);
    struct tfc_tensor *made[] = {&var, &rate, &squares, &grad, &indices};
    for (int i = 0; i < 5; i++) tfc_tensor_release(made[i]);
    tfc_builder_free(b);
  }
  assert_memory_equal(got[0].data, got[1].data, got[0].size);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&got[i]);
}

static void rows_are_added_in_order(void **state) {
  (void)state;
  for (int several = 0; several < 2; several++) {
    struct tfc_random r;
    tfc_random_init(&r, 8);
    struct tfc_tensor var = draw(&r, TFC_FLOAT, TFC_SHAPE(ROWS, WIDTH), 0), got = {0};
    struct tfc_tensor updates = draw(&r, TFC_FLOAT, TFC_SHAPE(COUNT, WIDTH), 0);
    struct tfc_tensor indices = draw(&r, TFC_INT32, TFC_SHAPE(COUNT), ROWS);
    struct tfc_builder *b = NULL;
    struct tfc_output assigned;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output in[] = {variable(b, "var", &var, &assigned), tfc_add_const(b, "indices", &indices),
                              tfc_add_const(b, "updates", &updates)};
    struct tfc_output updated = tfc_add(b, "ScatterAdd", NULL, in, 3, NULL, 0);
    run(b, cores[several], &assigned, 1, &updated, 1, &got);
    float *expected = var.data;
    for (int64_t i = 0; i < COUNT; i++)
      for (int64_t c = 0; c < WIDTH; c++)
        expected[value(&indices, i) * WIDTH + c] += ((const float *)updates.data)[i * WIDTH + c];
    assert_memory_equal(got.data, expected, got.size);
    struct tfc_tensor *made[] = {&var, &updates, &indices, &got};
    for (int i = 0; i < 4; i++) tfc_tensor_release(made[i]);
    tfc_builder_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(distinct_integers), cmocka_unit_test(rows_by_index),
                                     cmocka_unit_test(rows_that_occur_often_are_updated_in_order),
                                     cmocka_unit_test(rows_are_added_in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
