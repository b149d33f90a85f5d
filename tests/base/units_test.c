// Tests how sizes, rates and times are read and shown, at the limits between units, and the words and bytes of states.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/state_text.h"
#include "runtime/base/units.h"

static void test_bytes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
  } good[] = {{"0", 0},
              {"17", 17},
              {" 17 B ", 17},
              {"+3kB", 3000},
              {".5kB", 500},
              {"1.5 MB", 1500000},
              {"2GB", UINT64_C(2000000000)},
              {"3TB", UINT64_C(3000000000000)},
              {"1KiB", 1024},
              {"1.5MiB", 1572864},
              {"2GiB", UINT64_C(2147483648)},
              {"1TiB", UINT64_C(1099511627776)},
              {"0.0006kB", 1}, // rounded to a byte
              {"1e3", 1000},
              {"4503599627370497", UINT64_C(4503599627370497)}, // 2^52 + 1: with 0.5 more it would be rounded to even
              {"9007199254740991", UINT64_C(9007199254740991)},
              {"9.1e18", UINT64_C(9100000000000000000)}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    uint64_t bytes = 5;
    assert_ok(tfc_parse_bytes(tfc_str_from(good[i].text), &bytes));
    if (bytes != good[i].bytes) fail_msg("%s: %llu", good[i].text, (unsigned long long)bytes);
  }
  static const struct {
    const char *text, *says;
  } bad[] = {{"", "is not a number"},
             {"   ", "is not a number"},
             {"kB", "is not a number"},
             {"x5", "is not a number"},
             {"-x", "is not a number"},
             {"inf", "is not a number"},
             {"nan", "is not a number"},
             {"0x10", "is not a number"},
             {"0X10", "is not a number"},
             {"1e999", "is not a number"},
             {"1.5", "not a whole number"},
             {"2.5B", "not a whole number"},
             {"5kb", "unknown unit 'kb'"},
             {"5 GB/s", "unknown unit 'GB/s'"},
             {"-1", "is not a size"},
             {"9.2e18", "is not a size"},
             {"9300000TB", "is not a size"},
             {"5 units of some bytes", "has an unknown unit"},
             {"5kB 6", "unknown unit 'kB 6'"},
             {"5sixteen-letters!", "has an unknown unit"},
             {"5sixteen-letters", "unknown unit 'sixteen-letters'"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t bytes = 5;
    assert_fails(tfc_parse_bytes(tfc_str_from(bad[i].text), &bytes), TFC_INVALID_ARGUMENT, bad[i].says);
    assert_int_equal(bytes, 5);
  }
  char digits[80];
  memset(digits, '1', sizeof digits);
  uint64_t bytes = 5;
  assert_fails(tfc_parse_bytes((tfc_str){digits, 64}, &bytes), TFC_INVALID_ARGUMENT, "is not a number");
  assert_fails(tfc_parse_bytes((tfc_str){digits, 63}, &bytes), TFC_INVALID_ARGUMENT, "is not a size");
}

static void reads(tfc_status (*parse)(tfc_str, double *), const char *text, double expected) {
  double x = -7;
  tfc_status s = parse(tfc_str_from(text), &x);
  if (!isnan(expected)) {
    assert_ok(s);
    if (!(fabs(x - expected) <= 1e-12 * fabs(expected))) fail_msg("%s: %.17g", text, x);
  } else {
    if (!s) fail_msg("'%s' is read as %g", text, x);
    tfc_status_free(s);
    assert_true(x > -7.5 && x < -6.5); // unchanged
  }
}

static void test_rates_and_times(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double rate, us, number;
  } all[] = {{"12", 12, 12, 12},
             {"-3.5", NAN, NAN, -3.5},
             {"0", NAN, 0, 0},
             {"12GB/s", 12e9, NAN, NAN},
             {"12 MiB/s", 12582912, NAN, NAN},
             {"5/s", 5, NAN, NAN},
             {"5B/s", 5, NAN, NAN},
             {"12GB", NAN, NAN, NAN},
             {"1e307kB/s", NAN, NAN, NAN}, // more than a double can hold
             {"1e305min", NAN, NAN, NAN},
             {"5B", NAN, NAN, NAN},
             {"5 km/s", NAN, NAN, NAN},
             {"7us", NAN, 7, NAN},
             {"7ns", NAN, 0.007, NAN},
             {"7ms", NAN, 7000, NAN},
             {"1.5s", NAN, 1500000, NAN},
             {"2m", NAN, 120e6, NAN},
             {"2min", NAN, 120e6, NAN},
             {"1h", NAN, 3600e6, NAN},
             {"-1s", NAN, NAN, NAN},
             {"3d", NAN, NAN, NAN}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    reads(tfc_parse_bandwidth, all[i].text, all[i].rate);
    reads(tfc_parse_time_us, all[i].text, all[i].us);
    reads(tfc_parse_double, all[i].text, all[i].number);
  }
}

static void test_whole_numbers(void **state) {
  (void)state;
  static const char *const bad[] = {
      "", "1.5", " 1", "1 ", "x", "9223372036854775808", "-", "1e3", "00000000000000000000000000000001"};
  int64_t x = 0;
  assert_ok(tfc_parse_i64(TFC_STR("-9223372036854775808"), &x));
  assert_true(x == INT64_MIN);
  assert_ok(tfc_parse_i64(TFC_STR("9223372036854775807"), &x));
  assert_true(x == INT64_MAX);
  assert_ok(tfc_parse_i64(TFC_STR("0000000000000000000000000000017"), &x)); // 31 digits
  assert_int_equal(x, 17);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_fails(tfc_parse_i64(tfc_str_from(bad[i]), &x), TFC_INVALID_ARGUMENT, "is not a whole number");
  assert_int_equal(x, 17);
}

static void test_shown(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *bytes, *us;
  } all[] = {{0, "0 B", "0.00 us"},
             {9.994, "10 B", "9.99 us"},
             {10, "10 B", "10.0 us"},
             {999, "999 B", "999.0 us"},
             {1000, "1.0 kB", "1.000 ms"},
             {1040, "1.0 kB", "1.040 ms"},
             {9999, "10.0 kB", "9.999 ms"},
             {10000, "10.0 kB", "10.00 ms"},
             {99940, "99.9 kB", "99.94 ms"},
             {99960, "100 kB", "99.96 ms"},
             {100000, "100 kB", "100.0 ms"},
             {999400, "999 kB", "999.4 ms"},
             {999600, "1.0 MB", "999.6 ms"},
             {1e6, "1.0 MB", "1.00 s"},
             {2.5e9, "2.5 GB", "2500.00 s"},
             {3e12, "3.0 TB", "3000000.00 s"},
             {4e15, "4000 TB", "4000000000.00 s"}};
  char a[32];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    assert_string_equal(tfc_show_bytes(a, all[i].value), all[i].bytes);
    assert_string_equal(tfc_show_us(a, all[i].value), all[i].us);
  }
  assert_string_equal(tfc_show_bytes(a, 999.4), "999 B");
  assert_string_equal(tfc_show_bytes(a, 999.5), "1.0 kB");
  assert_string_equal(tfc_show_bytes(a, -2500), "-2.5 kB");
}

static void test_words(void **state) {
  (void)state;
  // Every byte, written and read again.
  char all[256];
  for (int i = 0; i < 256; i++) all[i] = (char)i;
  struct tfc_text written = {0}, read = {0};
  tfc_state_add(&written, (tfc_str){all, 256});
  for (size_t i = 0; i < written.size; i++)
    assert_true((unsigned char)written.data[i] >= ' ' && written.data[i] != 127);
  tfc_state_read((tfc_str){written.data, written.size}, &read);
  assert_int_equal(read.size, 256);
  assert_memory_equal(read.data, all, 256);
  tfc_text_deinit(&written), tfc_text_deinit(&read);
  tfc_state_add(&written, TFC_STR("a\tb\\c\x7f"));
  assert_string_equal(written.data, "a\\x09b\\x5cc\\x7f");
  tfc_text_deinit(&written);
  // What is no escape stays as it is.
  tfc_state_read(TFC_STR("\\x4\\xg1\\x1g\\y41\\x41\\x42-\\x4"), &read);
  assert_string_equal(read.data, "\\x4\\xg1\\x1g\\y41AB-\\x4");
  tfc_text_deinit(&read);
  tfc_str line = TFC_STR("one\ttwo\t\tfour");
  static const char *const words[] = {"one", "two", "", "four", ""};
  for (size_t i = 0; i < 5; i++) assert_true(tfc_str_is(tfc_state_word(&line), words[i]));
  assert_int_equal(line.size, 0);
}

// 2048 bytes are 4096 digits, which are written at once.
static void test_bytes_of_states(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2, 2047, 2048, 2049, 4096, 5000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char bytes[5000], copy[5001];
    for (size_t k = 0; k < sizes[i]; k++) bytes[k] = (char)(37 * k + 11);
    struct tfc_text out = {0};
    tfc_state_add_bytes(&out, (tfc_str){bytes, sizes[i]});
    assert_int_equal(out.size, 2 * sizes[i]);
    if (sizes[i]) assert_memory_equal(out.data, "0b", 2);
    copy[sizes[i]] = 77;
    assert_true(tfc_state_copy_bytes((tfc_str){out.data, out.size}, copy));
    if (sizes[i]) assert_memory_equal(copy, bytes, sizes[i]);
    assert_int_equal(copy[sizes[i]], 77);
    tfc_text_deinit(&out);
  }
  char two[2];
  assert_true(tfc_state_copy_bytes(TFC_STR("fe09"), two));
  assert_true((unsigned char)two[0] == 0xfe && two[1] == 9);
  static const char *const bad[] = {"f", "fe0", "fg", "gf", "FE", "0 ", "0:", "0/", "0`"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(tfc_state_copy_bytes(tfc_str_from(bad[i]), two));
}

// What people see of texts of any length and content.
static void test_texts_for_people(void **state) {
  (void)state;
  char word[1000], euros[1000];
  memset(word, 'a', sizeof word), word[999] = 0;
  for (size_t i = 0; i < 999; i += 3) memcpy(euros + i, "\xe2\x82\xac", 3);
  euros[999] = 0;
  word[0] = 'b', word[998] = 'z';
  static const struct {
    const char *text, *shown;
  } plain[] = {{"", ""},
               {"node 'a/b' (MatMul): no", "node 'a/b' (MatMul): no"},
               {"  two  blanks\n\tand a line \n", "  two  blanks\n\tand a line \n"},
               {"\033[2Jx\177\r", "\\x1b[2Jx\\x7f\\x0d"},
               {"\xc2\x9b"
                "2J \xc2\xa0 \xc3\xa4\xe2\x82\xac",
                "\\xc2\\x9b"
                "2J \xc2\xa0 \xc3\xa4\xe2\x82\xac"}, // CSI, in UTF-8
               {"\xc2", "\xc2"}};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    struct tfc_text shown = {0};
    tfc_text_add(&shown, TFC_STR(">"));
    tfc_text_add_shown(&shown, tfc_str_from(plain[i].text));
    assert_string_equal(shown.data + 1, plain[i].shown);
    tfc_text_deinit(&shown);
  }
  for (size_t size = 239; size < 1000; size++) {
    struct tfc_text shown = {0};
    char text[1100];
    snprintf(text, sizeof text, "%.*sz x", (int)size - 1, word);
    tfc_text_add_shown(&shown, tfc_str_from(text));
    if (size <= TFC_SHOWN_WORD) {
      assert_string_equal(shown.data, text);
    } else { // as many of the first and the last characters
      assert_int_equal(shown.size, 239 + 2);
      assert_true(shown.data[0] == 'b' && shown.data[238] == 'z' && !strcmp(shown.data + 239, " x"));
      assert_int_equal(strstr(shown.data, "...") - shown.data, 118);
    }
    tfc_text_deinit(&shown);
  }
  struct tfc_text shown = {0}; // not within a character: 39 of 3 bytes on each side
  tfc_text_add_shown(&shown, tfc_str_from(euros));
  assert_int_equal(shown.size, 2 * 39 * 3 + 3);
  assert_true(!strncmp(shown.data + 39 * 3, "...\xe2", 4) && !memcmp(shown.data, euros, 39 * 3));
  tfc_text_deinit(&shown);
  char many[3000] = ""; // any number of words
  for (int i = 0; i < 500; i++) strcat(many, "word ");
  tfc_text_add_shown(&shown, tfc_str_from(many));
  assert_string_equal(shown.data, many);
  tfc_text_deinit(&shown);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes),           cmocka_unit_test(test_rates_and_times),
                                     cmocka_unit_test(test_whole_numbers),   cmocka_unit_test(test_shown),
                                     cmocka_unit_test(test_words),           cmocka_unit_test(test_bytes_of_states),
                                     cmocka_unit_test(test_texts_for_people)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
