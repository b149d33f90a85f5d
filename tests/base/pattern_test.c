// Patterns: the expected matches and replacements are TensorFlow 2.15.1's (tf.strings.regex_full_match and
// regex_replace).
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/pattern.h"
#include "runtime/base/str.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static void whole_texts_match(void **state) {
  (void)state;
  const struct {
    const char *text;
    size_t size;
    const char *pattern;
    bool matches;
  } cases[] = {
      {TEXT("caat"), "ca+?t", true},
      {TEXT("gr\xc3\xb6\xc3\x9f\x65"), "gr\\pL+e", true},
      {TEXT("a\0b"), "a.b", true},
      {TEXT("ab\ncd"), "(?s)ab.cd", true},
      {TEXT("ab\ncd"), "ab.cd", false},
      {TEXT("Hello"), "(?i)hELLO", true},
      {TEXT("x y"), "x[\\s]y", true},
      {TEXT("a"), "", false},
      {TEXT(""), "", true},
      {TEXT("ab"), "a|ab", true},
      {TEXT("a.b"), "\\Qa.b\\E", true},
      {TEXT("\xff"), ".", false},
      {TEXT("\xff"), "\\C", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[160];
    struct tfc_pattern *pattern = tfc_pattern_make(cases[i].pattern, strlen(cases[i].pattern), why, sizeof why);
    assert_non_null(pattern);
    if (tfc_pattern_matches(pattern, cases[i].text, cases[i].size) != cases[i].matches)
      fail_msg("case %zu: '%s'", i, cases[i].pattern);
    tfc_pattern_free(pattern);
  }
}

static void matches_are_replaced(void **state) {
  (void)state;
  const struct {
    const char *text, *pattern, *rewrite;
    bool all;
    const char *result;
  } cases[] = {
      {"hello world", "o", "0", true, "hell0 w0rld"},
      {"hello world", "o", "0", false, "hell0 world"},
      {"abcabc", "(a)(b)?", "<\\2\\1>", true, "<ba>c<ba>c"},
      {"abc", "b*", "-", true, "-a-c-"},
      {"banana", "ana", "o", true, "bona"},
      {"aaa", "a|aa|aaa", "<\\0>", true, "<a><a><a>"}, // the first alternative, not the longest
      {"abc", "x", "\\7", true, "abc"},
      {"abc", "b", "\\7", true, "abc"},
      {"a1b22", "(\\d+?)", "[\\1]", true, "a[1]b[2][2]"},
      {"\xc3\xa4\xc3\xb6", "", "-", true, "-\xc3\xa4-\xc3\xb6-"},
      {"a\\b", "\\\\", "\\\\\\\\", true, "a\\\\b"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[160];
    size_t size = 0;
    struct tfc_pattern *pattern = tfc_pattern_make(cases[i].pattern, strlen(cases[i].pattern), why, sizeof why);
    assert_non_null(pattern);
    char *result = tfc_pattern_replace(pattern, cases[i].text, strlen(cases[i].text), cases[i].rewrite,
                                       strlen(cases[i].rewrite), cases[i].all, &size);
    assert_non_null(result);
    assert_string_equal(result, cases[i].result);
    assert_int_equal(size, strlen(cases[i].result));
    free(result);
    tfc_pattern_free(pattern);
  }
}

// Patterns that would crash or hang a regular-expression compiler that is recursive or that expands repeat counts.
static void hostile_patterns_end(void **state) {
  (void)state;
  enum { DEEP = 20000 };
  char why[160], *nested = malloc(2 * DEEP + 1), *open = malloc(DEEP + 1);
  assert_true(nested && open);
  memset(nested, '(', DEEP);
  memset(nested + DEEP, ')', DEEP);
  memset(open, '(', DEEP);
  nested[2 * DEEP] = open[DEEP] = 0;
  struct tfc_pattern *pattern = tfc_pattern_make(nested, 2 * DEEP, why, sizeof why);
  if (pattern) assert_true(tfc_pattern_matches(pattern, "", 0));
  tfc_pattern_free(pattern);
  const char *bad[] = {open, "((a{1000}){1000}){1000}", "(((a{30}){30}){30}){30}", "a{1001}", "(?=a)", "(a)\\1", "["};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    why[0] = 0;
    pattern = tfc_pattern_make(bad[i], strlen(bad[i]), why, sizeof why);
    if (pattern) fail_msg("'%.60s' compiled", bad[i]);
    assert_true(strlen(why) > 0);
  }
  // Patterns on which a backtracking matcher takes exponential time.
  char text[5001];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = 0;
  pattern = tfc_pattern_make("(a*)*b", 6, why, sizeof why);
  assert_non_null(pattern);
  assert_false(tfc_pattern_matches(pattern, text, sizeof text - 1));
  tfc_pattern_free(pattern);
  free(nested);
  free(open);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_texts_match),
      cmocka_unit_test(matches_are_replaced),
      cmocka_unit_test(hostile_patterns_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
