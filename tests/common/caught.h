// Catches what this process writes to stdout or stderr, with all its threads and the processes that it starts.
//
//   static struct test_caught caught;
//   test_catch(&caught, stderr);
//   ... say something ...
//   test_caught_end(&caught);
//   SAYS(caught, "something", 1); // or caught.text
#ifndef TFC_TESTS_COMMON_CAUGHT_H
#define TFC_TESTS_COMMON_CAUGHT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/test.h"

struct test_caught {
  FILE *stream, *file;
  int kept;
  char text[32768];
};

static inline void test_catch(struct test_caught *c, FILE *stream) {
  fflush(stream);
  c->stream = stream, c->kept = dup(fileno(stream)), c->file = tmpfile();
  if (c->kept < 0 || !c->file || dup2(fileno(c->file), fileno(stream)) < 0) abort();
}
static inline void test_caught_end(struct test_caught *c) {
  fflush(c->stream);
  dup2(c->kept, fileno(c->stream));
  close(c->kept);
  rewind(c->file);
  c->text[fread(c->text, 1, sizeof c->text - 1, c->file)] = 0;
  fclose(c->file);
}
// How often the text `what` is in it.
static inline int test_caught_count(const struct test_caught *c, const char *what) {
  int n = 0;
  for (const char *at = c->text; (at = strstr(at, what)); at += strlen(what)) n++;
  return n;
}
// Expects the text `what` exactly `times` times in what was caught; 0: not at all.
#define SAYS(caught, what, times) test_caught_expect(&(caught), what, times, __LINE__)
static inline void test_caught_expect(const struct test_caught *c, const char *what, int times, int line) {
  const int n = test_caught_count(c, what);
  if (n != times) fail_msg("line %d: '%s' is %d times, not %d, in: %s", line, what, n, times, c->text);
}

#endif
