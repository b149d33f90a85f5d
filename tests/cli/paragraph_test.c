// Tests how text is broken into lines between words.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/paragraph.h"

static void expect(const char *wanted, const char *text, int column, int indent, int width) {
  char *said = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&said, &size);
  assert_non_null(out);
  cli_paragraph(out, text, column, indent, width);
  fclose(out);
  assert_string_equal(said, wanted);
  free(said);
}

static void test_lines(void **state) {
  (void)state;
  expect("\n", "", 0, 0, 10);
  expect("one two\nthree\n", "one two three", 0, 0, 10);
  expect("one two 34\n", "one two 34", 0, 0, 10);   // the text is exactly as wide as a line
  expect("one\n  two 3\n", "one two 3", 6, 2, 10);  // the line already has six characters
  expect("\n  long-word\n", "long-word", 6, 2, 10); // a long word has a line of its own
  expect("a\nb\n", "a\nb\n", 0, 0, 10);             // line breaks of the text are kept
  expect("a\n  b c\n", "a\nb c", 0, 2, 10);
  expect("longer-than-a-line\nb\n", "longer-than-a-line b", 0, 0, 10);
  expect("µµµµ µµµµµ\n", "µµµµ µµµµµ", 0, 0, 10); // characters count, not bytes
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
