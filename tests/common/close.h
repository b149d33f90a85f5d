// Expects two numbers that are equal up to rounding.
#ifndef TFC_TESTS_COMMON_CLOSE_H
#define TFC_TESTS_COMMON_CLOSE_H

#include <math.h>

#define assert_close(x, expected)                                                                                      \
  do {                                                                                                                 \
    const double x_ = (x), expected_ = (expected);                                                                     \
    if (!(fabs(x_ - expected_) <= 1e-9 * (1 + fabs(expected_))))                                                       \
      fail_msg("%s is %.12g, not %.12g", #x, x_, expected_);                                                           \
  } while (0)

#endif
