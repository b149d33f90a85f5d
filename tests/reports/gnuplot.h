// A shell script that takes gnuplot's place.
#ifndef TFC_TESTS_REPORTS_GNUPLOT_H
#define TFC_TESTS_REPORTS_GNUPLOT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/common/test.h"

// Writes the script into the folder, which becomes the first of PATH. Returns the usual PATH for remove_gnuplot.
static char *put_gnuplot(const char *folder, const char *commands) {
  char *usual = tfc_str_dup(tfc_str_from(getenv("PATH"))), *path = tfc_format("%s:%s", folder, usual);
  char *file = tfc_format("%s/gnuplot", folder), *script = tfc_format("#!/bin/sh\n%s\n", commands);
  assert_ok(tfc_file_write(file, tfc_str_from(script)));
  assert_int_equal(chmod(file, 0755), 0);
  setenv("PATH", path, 1);
  free(path), free(file), free(script);
  return usual;
}
static void remove_gnuplot(const char *folder, char *usual) {
  char *file = tfc_format("%s/gnuplot", folder);
  setenv("PATH", usual, 1);
  unlink(file);
  free(file), free(usual);
}

#endif
