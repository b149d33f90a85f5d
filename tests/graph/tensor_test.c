#include "tests/common/test.h"

#include <math.h>

#include "runtime/graph/tensor.h"

static void dtypes_have_names(void **state) {
  (void)state;
  assert_int_equal(tfc_dtype_parse(TFC_STR("float")), TFC_FLOAT);
  assert_int_equal(tfc_dtype_parse(TFC_STR("DT_INT64")), TFC_INT64);
  assert_int_equal(tfc_dtype_parse(TFC_STR("float32_ref")), TFC_FLOAT + TFC_REF);
  assert_int_equal(tfc_dtype_parse(TFC_STR("float17")), TFC_DTYPE_NONE);
  assert_string_equal(tfc_dtype_name((tfc_dtype)(TFC_HALF + TFC_REF)), "float16_ref");
  assert_false(tfc_dtype_valid(0) || tfc_dtype_valid(24) || tfc_dtype_valid(100) || tfc_dtype_valid(-1));
  assert_true(tfc_dtype_valid(101));
}

// Every float16 is converted to float32 and back; a float32 between two float16 values is rounded to the nearer one,
// ties to even.
static void halves_round(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 65536; h++) {
    float f = tfc_half_to_float((uint16_t)h);
    if (isnan(f))
      assert_true(isnan(tfc_half_to_float(tfc_float_to_half(f))));
    else
      assert_int_equal(tfc_float_to_half(f), h);
    if ((h & 0x7fff) >= 0x7c00 - 1 || isnan(f)) continue;
    float next = tfc_half_to_float((uint16_t)(h + 1)), middle = (f + next) / 2;
    assert_int_equal(tfc_float_to_half(middle), h & 1 ? h + 1 : h);
    assert_int_equal(tfc_float_to_half(nextafterf(middle, f)), h);
    assert_int_equal(tfc_float_to_half(nextafterf(middle, next)), h + 1);
  }
  assert_int_equal(tfc_float_to_half(65520.0f), 0x7c00);
  assert_int_equal(tfc_float_to_half(65519.0f), 0x7bff);
  for (uint32_t h = 0; h < 65536; h++) {
    float f = tfc_bfloat16_to_float((uint16_t)h);
    if (!isnan(f)) assert_int_equal(tfc_float_to_bfloat16(f), h);
  }
  assert_true(isnan(tfc_bfloat16_to_float(tfc_float_to_bfloat16(NAN))));
}

static void shapes_merge_and_broadcast(void **state) {
  (void)state;
  struct tfc_shape a = TFC_SHAPE(2, -1, -5), b = TFC_SHAPE(-1, 3, -1), out;
  char text[TFC_SHAPE_TEXT];
  assert_ok(tfc_shape_merge(&a, &b, &out));
  assert_string_equal(tfc_shape_show(&out, text), "[2,3,?d]");
  assert_fails(tfc_shape_merge(&TFC_SHAPE(2), &TFC_SHAPE(3), &out), TFC_INVALID_ARGUMENT, "[2] and [3]");
  assert_ok(tfc_shape_broadcast(&TFC_SHAPE(4, 1), &TFC_SHAPE(3), &out));
  assert_string_equal(tfc_shape_show(&out, text), "[4,3]");
  assert_ok(tfc_shape_broadcast(&TFC_SHAPE(-1, -7, 1), &TFC_SHAPE(5, -7, -8), &out));
  assert_string_equal(tfc_shape_show(&out, text), "[5,?f,?g]");
  assert_fails(tfc_shape_broadcast(&TFC_SHAPE(2), &TFC_SHAPE(3), &out), TFC_INVALID_ARGUMENT, "broadcast");
  assert_int_equal(tfc_shape_elements(&TFC_SHAPE(INT64_MAX, 2)), -1);
  assert_int_equal(tfc_shape_elements(&TFC_SHAPE(INT64_MAX, 2, 0)), 0);
}

static void tensors_own_their_elements(void **state) {
  (void)state;
  struct tfc_tensor t, copy, shared;
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE(2), &t));
  assert_ok(tfc_tensor_set_string(&t, 0, TFC_STR("one")));
  assert_ok(tfc_tensor_set_string(&t, 0, TFC_STR("other")));
  assert_ok(tfc_tensor_clone(&t, &copy));
  tfc_tensor_share(&t, &shared);
  tfc_tensor_release(&t);
  assert_true(tfc_str_is(tfc_tensor_get_string(&copy, 0), "other"));
  assert_true(tfc_str_is(tfc_tensor_get_string(&shared, 0), "other"));
  assert_int_equal(tfc_tensor_get_string(&shared, 1).size, 0);
  tfc_tensor_release(&copy);
  tfc_tensor_release(&shared);
  assert_fails(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(1ll << 40, 1ll << 40), &t), TFC_INVALID_ARGUMENT, "too large");
  assert_fails(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(-1), &t), TFC_INVALID_ARGUMENT, "not fully known");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dtypes_have_names),
      cmocka_unit_test(halves_round),
      cmocka_unit_test(shapes_merge_and_broadcast),
      cmocka_unit_test(tensors_own_their_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
