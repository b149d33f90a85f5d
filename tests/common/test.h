// Included first by every suite: CMocka, after the headers that it needs, and short checks for statuses.
#ifndef TFC_TESTS_COMMON_TEST_H
#define TFC_TESTS_COMMON_TEST_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "runtime/base/status.h"

// Fails the test with the message of an unexpected error.
#define assert_ok(call)                                                                                                \
  do {                                                                                                                 \
    tfc_status tfc_test_status_ = (call);                                                                              \
    if (tfc_test_status_) fail_msg("%s", tfc_status_message(tfc_test_status_));                                        \
  } while (0)

// Expects an error of this code, with this text somewhere in its message ("" for any).
#define assert_fails(call, expected_code, expected_text)                                                               \
  do {                                                                                                                 \
    tfc_status tfc_test_status_ = (call);                                                                              \
    if (!tfc_test_status_) fail_msg("%s succeeded", #call);                                                            \
    if (tfc_status_code(tfc_test_status_) != (expected_code))                                                          \
      fail_msg("expected %s, got %s: %s", tfc_code_name(expected_code),                                                \
               tfc_code_name(tfc_status_code(tfc_test_status_)), tfc_status_message(tfc_test_status_));                \
    if (!__builtin_strstr(tfc_status_message(tfc_test_status_), (expected_text)))                                      \
      fail_msg("no '%s' in: %s", (expected_text), tfc_status_message(tfc_test_status_));                               \
    tfc_status_free(tfc_test_status_);                                                                                 \
  } while (0)

#endif
