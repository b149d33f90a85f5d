// Tests .npy files: what is written is read back, files as NumPy writes them are understood, and bad ones are refused.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/io/npy.h"

static tfc_str file(const char *header, const void *values, size_t size) { // makes a file of version 1.0
  static char bytes[4096];
  size_t n = strlen(header);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (char)(n & 0xff), bytes[9] = (char)(n >> 8);
  memcpy(bytes + 10, header, n);
  if (size) memcpy(bytes + 10 + n, values, size);
  return (tfc_str){bytes, 10 + n + size};
}

static void test_round_trip(void **state) {
  (void)state;
  static const tfc_dtype types[] = {TFC_FLOAT,  TFC_DOUBLE, TFC_HALF,      TFC_INT8,      TFC_INT16,
                                    TFC_INT32,  TFC_INT64,  TFC_UINT8,     TFC_UINT16,    TFC_UINT32,
                                    TFC_UINT64, TFC_BOOL,   TFC_COMPLEX64, TFC_COMPLEX128};
  static const struct tfc_shape shapes[] = {
      {.rank = 0}, {.rank = 1, .dims = {5}}, {.rank = 3, .dims = {2, 3, 4}}, {.rank = 2, .dims = {0, 7}}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t k = 0; k < 4; k++) {
      struct tfc_tensor a = {0}, b = {0};
      struct tfc_text text = {0};
      assert_ok(tfc_tensor_create(types[i], &shapes[k], &a));
      for (size_t n = 0; n < a.size; n++)
        ((uint8_t *)a.data)[n] = types[i] == TFC_BOOL ? n % 2 : (uint8_t)(37 * n + 11);
      assert_ok(tfc_npy_format(&a, &text));
      assert_int_equal((text.size - a.size) % 64, 0);
      assert_ok(tfc_npy_parse((tfc_str){text.data, text.size}, "x.npy", &b));
      assert_int_equal(a.dtype, b.dtype);
      assert_true(tfc_shape_equal(&a.shape, &b.shape));
      if (a.size) assert_memory_equal(a.data, b.data, a.size);
      tfc_text_deinit(&text);
      tfc_tensor_release(&a);
      tfc_tensor_release(&b);
    }
}

static void test_strings_and_bfloat16(void **state) {
  (void)state;
  struct tfc_tensor a = {0}, b = {0};
  struct tfc_text text = {0};
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE(3), &a));
  assert_ok(tfc_tensor_set_string(&a, 0, TFC_STR("one")));
  assert_ok(tfc_tensor_set_string(&a, 2, TFC_STR("three")));
  assert_ok(tfc_npy_format(&a, &text));
  assert_non_null(memmem(text.data, text.size, "'|S5'", 5));
  assert_ok(tfc_npy_parse((tfc_str){text.data, text.size}, "x.npy", &b));
  assert_true(tfc_str_is(tfc_tensor_get_string(&b, 0), "one"));
  assert_int_equal(tfc_tensor_get_string(&b, 1).size, 0);
  assert_true(tfc_str_is(tfc_tensor_get_string(&b, 2), "three"));
  tfc_text_deinit(&text);
  tfc_tensor_release(&a);
  tfc_tensor_release(&b);
  assert_ok(tfc_tensor_create(TFC_BFLOAT16, &TFC_SHAPE(2), &a));
  ((uint16_t *)a.data)[0] = tfc_float_to_bfloat16(1.5f), ((uint16_t *)a.data)[1] = tfc_float_to_bfloat16(-2);
  assert_ok(tfc_npy_format(&a, &text));
  assert_ok(tfc_npy_parse((tfc_str){text.data, text.size}, "x.npy", &b));
  assert_int_equal(b.dtype, TFC_FLOAT);
  assert_true(((float *)b.data)[0] == 1.5f && ((float *)b.data)[1] == -2);
  tfc_text_deinit(&text);
  tfc_tensor_release(&a);
  tfc_tensor_release(&b);
}

static void test_orders(void **state) {
  (void)state;
  struct tfc_tensor t = {0};
  static const int32_t fortran[] = {1, 4, 2, 5, 3, 6}; // [[1, 2, 3], [4, 5, 6]]
  assert_ok(tfc_npy_parse(file("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", fortran, 24), "f", &t));
  for (int i = 0; i < 6; i++) assert_int_equal(((int32_t *)t.data)[i], i + 1);
  tfc_tensor_release(&t);
  static const uint8_t big[] = {0, 0, 1, 2};
  assert_ok(tfc_npy_parse(file("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }", big, 4), "f", &t));
  assert_int_equal(((int32_t *)t.data)[0], 258);
  tfc_tensor_release(&t);
}

// NumPy stores texts as code points of four bytes, in either byte order; the tensor has them in UTF-8.
static void test_texts(void **state) {
  (void)state;
  static const uint32_t points[2][4] = {{'g', 0xe4, 0x20ac, 0x1f600}, {'x', 0, 0, 0}};
  struct tfc_tensor t = {0};
  for (int big = 0; big < 2; big++) {
    uint8_t bytes_of[sizeof points];
    for (size_t i = 0; i < 8; i++)
      for (size_t k = 0; k < 4; k++) bytes_of[4 * i + k] = (uint8_t)((&points[0][0])[i] >> 8 * (big ? 3 - k : k));
    assert_ok(tfc_npy_parse(file(big ? "{'descr': '>U4', 'fortran_order': False, 'shape': (2,), }"
                                     : "{'descr': '<U4', 'fortran_order': False, 'shape': (2,), }",
                                 bytes_of, sizeof bytes_of),
                            "x.npy", &t));
    assert_true(tfc_str_is(tfc_tensor_get_string(&t, 0), "g\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
    assert_true(tfc_str_is(tfc_tensor_get_string(&t, 1), "x"));
    tfc_tensor_release(&t);
  }
  static const uint32_t wrong[2] = {0xd800, 0x110000};
  for (int i = 0; i < 2; i++)
    assert_fails(
        tfc_npy_parse(file("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", &wrong[i], 4), "x.npy", &t),
        TFC_INVALID_ARGUMENT, "has no character");
}

static void test_bad_files(void **state) {
  (void)state;
  struct tfc_tensor t = {0};
  float x[4] = {0};
  static const struct {
    const char *header, *text;
    size_t size;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "promises 16 bytes", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "promises 16 bytes", 0},
      {"{'descr': '<f4', 'fortran_order': Perhaps, 'shape': (4,), }", "neither True nor False", 16},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }", "tuple of whole numbers", 16},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4", "tuple of whole numbers", 16},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "whole numbers", 16},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }", "too large", 16},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,), }", "not one tuple", 16},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "not read", 16},
      {"{'descr': '<V3', 'fortran_order': False, 'shape': (4,), }", "not read", 12},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", "record types", 16},
      {"{'descr': '<f4', 'shape': (4,), }", "lacks one of", 16},
      {"{'descr': '<f4', 'colour': 1}", "unknown key 'colour'", 16},
      {"no dictionary", "not a dictionary", 16},
      {"", "not a dictionary", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tfc_status s = tfc_npy_parse(file(cases[i].header, x, cases[i].size), "bad.npy", &t);
    if (!s) fail_msg("accepted: %s", cases[i].header);
    if (!strstr(tfc_status_message(s), "bad.npy") || !strstr(tfc_status_message(s), cases[i].text))
      fail_msg("no '%s' in: %s", cases[i].text, tfc_status_message(s));
    tfc_status_free(s);
  }
  tfc_str whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", x, 16);
  for (size_t n = 0; n < whole.size; n++) { // every truncation
    tfc_status s = tfc_npy_parse((tfc_str){whole.data, n}, "short.npy", &t);
    assert_non_null(s);
    tfc_status_free(s);
  }
  assert_fails(tfc_npy_read("/nowhere.npy", &t), TFC_NOT_FOUND, "/nowhere.npy");
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(1), &t));
  assert_fails(tfc_npy_write("/proc/nothing.npy", &t), TFC_DATA_LOSS, "/proc/nothing.npy");
  tfc_tensor_release(&t);
}

// In a file all strings are as long as the longest: a tensor that takes megabytes may not be written as terabytes.
static void test_one_long_string(void **state) {
  (void)state;
  struct tfc_tensor t = {0};
  struct tfc_text text = {0};
  char *longest = calloc(1 << 24, 1);
  assert_non_null(longest);
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE(1 << 20), &t));
  assert_ok(tfc_tensor_set_string(&t, 5, (tfc_str){longest, 1 << 24}));
  assert_fails(
      tfc_npy_format(&t, &text), TFC_RESOURCE_EXHAUSTED,
      "1048576 strings, each as long as the longest, which has 16777216 bytes: out of memory: 35.2 TB asked for");
  tfc_text_deinit(&text);
  tfc_tensor_release(&t);
  free(longest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_strings_and_bfloat16),
      cmocka_unit_test(test_orders),     cmocka_unit_test(test_texts),
      cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_one_long_string),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
