// Compares Einsum of the CPU device with the reference kernel, for equations of models and random sizes, in float32 and
// in 16-bit floats, on one core and on several. Also compares softmax of 16-bit floats with that of the same numbers in
// float32.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/ops/math_narrow.h"
#include "tests/common/fast.h"

static const char *const equations[] = {
    "abc,cde->abde", "aecd,abcd->acbe", "acbe,aecd->abcd",    "abcd,cde->abe", "abc,cd->abd", "ab,bc->ac",
    "ab,bc->ca",     "abc,abd->acd",    "...ij,...jk->...ik", "ij,kj->ki",     "abc,dc->dab", "ab,cd->acbd",
    "abcd,bd->ac",   "ab,ab->a",        "abc,bc->a",          "ba,cb->ac",
};
static const tfc_dtype types[] = {TFC_FLOAT, TFC_BFLOAT16, TFC_HALF};

static struct tfc_output cast(struct tfc_builder *b, struct tfc_output x, tfc_dtype to) {
  struct tfc_attr attr = tfc_attr_type("DstT", to);
  return tfc_add(b, "Cast", NULL, &x, 1, &attr, 1);
}

// Returns the shape of a term. `sizes` has a size for each letter, and two for an ellipsis; with `repeats`, the first
// dimension of an ellipsis is 1.
static struct tfc_shape shape_of(const char *term, const int64_t *sizes, bool repeats) {
  struct tfc_shape s = {.rank = 0};
  for (; *term && *term != ',' && *term != '-'; term++) {
    if (*term == '.') {
      s.dims[s.rank++] = repeats ? 1 : sizes[26], s.dims[s.rank++] = sizes[27];
      term += 2;
      continue;
    }
    s.dims[s.rank++] = sizes[*term - 'a'];
  }
  return s;
}

static struct tfc_output add_einsum(struct tfc_builder *b, const char *equation, struct tfc_random *r, tfc_dtype type) {
  int64_t sizes[28];
  for (int i = 0; i < 28; i++)
    sizes[i] = tfc_random_below(r, 3) ? 1 + (int64_t)tfc_random_below(r, 9) : 1 + (int64_t)tfc_random_below(r, 40);
  struct tfc_shape shapes[2] = {shape_of(equation, sizes, tfc_random_below(r, 2)),
                                shape_of(strchr(equation, ',') + 1, sizes, false)};
  struct tfc_output in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = tfc_add_placeholder(b, i ? "y" : "x", TFC_FLOAT, &shapes[i]);
    if (type != TFC_FLOAT) in[i] = cast(b, in[i], type);
  }
  struct tfc_attr attr = tfc_attr_string("equation", tfc_str_from(equation));
  struct tfc_output out = tfc_add(b, "Einsum", NULL, in, 2, &attr, 1);
  return type == TFC_FLOAT ? out : cast(b, out, TFC_FLOAT);
}

static void against_the_reference(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  for (int round = 0; round < 144; round++) {
    const char *equation = equations[(size_t)round % (sizeof equations / sizeof *equations)];
    const tfc_dtype type = types[round / 16 % 3];
    struct tfc_builder *b = NULL;
    char what[96];
    snprintf(what, sizeof what, "%s of %s, round %d", equation, tfc_dtype_name(type), round);
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output out = add_einsum(b, equation, &r, type);
    // Both round a sum of float32 once; sums that differ in their last bits may round to neighbours.
    fast_compare(b, &out, 1, type == TFC_FLOAT ? 1e-5 : type == TFC_HALF ? 0x1p-10 : 0x1p-7, what);
    tfc_builder_free(b);
  }
}

static void run_on(const char *list, struct tfc_builder *b, struct tfc_output fetch, struct tfc_tensor *got) {
  struct tfc_graph *graph = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_output feeds[2];
  struct tfc_tensor values[2] = {0};
  struct tfc_shape shapes[2];
  uint32_t count = 0;
  struct tfc_random r;
  tfc_random_init(&r, 5);
  assert_ok(tfc_builder_finish(b, &graph));
  for (const char *name = "xy"; *name; name++) {
    const uint32_t node = tfc_graph_find(graph, (tfc_str){name, 1});
    if (node == TFC_NONE) continue;
    feeds[count] = (struct tfc_output){node, 0},
    shapes[count] = *tfc_node_attr(graph, &graph->nodes[node], "shape")->shape;
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[count], &values[count]));
    for (int64_t k = 0; k < tfc_tensor_elements(&values[count]); k++)
      ((float *)values[count].data)[k] = (float)(8 * tfc_random_unit(&r) - 4);
    count++;
  }
  assert_ok(tfc_devices_open(list, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = count, .feed_shapes = shapes, .fetches = &fetch, .fetch_count = 1};
  assert_ok(tfc_session_run(session, &spec, values, got, NULL));
  for (uint32_t i = 0; i < count; i++) tfc_tensor_release(&values[i]);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(graph);
}

static void cores_do_not_change_bits(void **state) {
  (void)state;
  for (size_t k = 0; k < 2 * sizeof equations / sizeof *equations; k++) {
    struct tfc_tensor got[2] = {0};
    for (int several = 0; several < 2; several++) {
      struct tfc_random r;
      struct tfc_builder *b = NULL;
      tfc_random_init(&r, k);
      assert_ok(tfc_builder_create(NULL, &b));
      struct tfc_output out = add_einsum(b, equations[k / 2], &r, k % 2 ? TFC_BFLOAT16 : TFC_FLOAT);
      run_on(several ? "cpu:0-2" : "cpu:0", b, out, &got[several]);
      tfc_builder_free(b);
    }
    assert_memory_equal(got[0].data, got[1].data, got[0].size);
    tfc_tensor_release(&got[0]), tfc_tensor_release(&got[1]);
  }
}

// Rows of up to 2048 elements are one block; longer ones are several.
static void narrow_softmax(void **state) {
  (void)state;
  const int64_t columns[] = {1, 7, 128, 1000, 2048, 2049, 5000};
  for (size_t k = 0; k < 4 * sizeof columns / sizeof *columns; k++) {
    const tfc_dtype type = k % 2 ? TFC_HALF : TFC_BFLOAT16;
    const char *op = k / 2 % 2 ? "LogSoftmax" : "Softmax";
    struct tfc_tensor got[2] = {0};
    for (int wide = 0; wide < 2; wide++) {
      struct tfc_builder *b = NULL;
      assert_ok(tfc_builder_create(NULL, &b));
      struct tfc_output x = cast(b, tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(3, columns[k / 4])), type);
      if (wide) x = cast(b, x, TFC_FLOAT);
      run_on("cpu:0", b, cast(b, tfc_add1(b, op, x), TFC_FLOAT), &got[wide]);
      tfc_builder_free(b);
    }
    for (int64_t i = 0; i < tfc_tensor_elements(&got[1]); i++) {
      const double a = (double)((float *)got[0].data)[i], want = (double)((float *)got[1].data)[i];
      if (!(fabs(a - want) <= fabs(want) * (type == TFC_HALF ? 0x1p-10 : 0x1p-8) + 1e-7))
        fail_msg("%s of %lld columns: element %lld is %g, of float32 %g", op, (long long)columns[k / 4], (long long)i,
                 a, want);
    }
    tfc_tensor_release(&got[0]), tfc_tensor_release(&got[1]);
  }
}

// Converts every 16-bit number to float32. Converts back the float32 numbers near each of them, whose last bits round
// up, down or to even.
static void conversions(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    const tfc_dtype type = k ? TFC_HALF : TFC_BFLOAT16;
    for (uint32_t i = 0; i < 65536; i++) {
      const uint16_t h = (uint16_t)i;
      const uint32_t ends[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
      float wide, want = k ? tfc_half_to_float(h) : tfc_bfloat16_to_float(h), near[sizeof ends / sizeof *ends];
      uint16_t narrow[sizeof ends / sizeof *ends];
      ops_narrow_to_float(type, &h, &wide, 1);
      assert_memory_equal(&wide, &want, sizeof wide);
      for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        const uint32_t bits = i << 16 | ends[e];
        memcpy(&near[e], &bits, sizeof bits);
      }
      ops_narrow_from_float(type, near, narrow, sizeof ends / sizeof *ends);
      for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
        assert_int_equal(narrow[e], k ? tfc_float_to_half(near[e]) : tfc_float_to_bfloat16(near[e]));
    }
  }
}

static void narrow_products(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 9);
  for (int round = 0; round < 24; round++) {
    const int64_t m = 1 + (int64_t)tfc_random_below(&r, 40), n = 1 + (int64_t)tfc_random_below(&r, 40),
                  k = 1 + (int64_t)tfc_random_below(&r, 60);
    const bool batch = round % 2, ta = tfc_random_below(&r, 2), tb = tfc_random_below(&r, 2);
    const tfc_dtype type = round % 4 < 2 ? TFC_HALF : TFC_BFLOAT16;
    struct tfc_shape sa = TFC_SHAPE(3, ta ? k : m, ta ? m : k), sb = TFC_SHAPE(1, tb ? n : k, tb ? k : n);
    if (!batch) sa = TFC_SHAPE(sa.dims[1], sa.dims[2]), sb = TFC_SHAPE(sb.dims[1], sb.dims[2]);
    struct tfc_attr attrs[] = {tfc_attr_bool(batch ? "adj_x" : "transpose_a", ta),
                               tfc_attr_bool(batch ? "adj_y" : "transpose_b", tb)};
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output in[] = {cast(b, tfc_add_placeholder(b, "x", TFC_FLOAT, &sa), type),
                              cast(b, tfc_add_placeholder(b, "y", TFC_FLOAT, &sb), type)};
    struct tfc_output out = cast(b, tfc_add(b, batch ? "BatchMatMulV2" : "MatMul", NULL, in, 2, attrs, 2), TFC_FLOAT);
    fast_compare(b, &out, 1, type == TFC_HALF ? 0x1p-10 : 0x1p-7, "a product of 16-bit floats");
    tfc_builder_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_reference),
                                     cmocka_unit_test(cores_do_not_change_bits), cmocka_unit_test(narrow_softmax),
                                     cmocka_unit_test(conversions), cmocka_unit_test(narrow_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
