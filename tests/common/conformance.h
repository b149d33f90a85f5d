// The tests that every driver must pass: order of waits and signals, failures, copies, single launches, limits.
#ifndef TFC_TESTS_COMMON_CONFORMANCE_H
#define TFC_TESTS_COMMON_CONFORMANCE_H

#include "runtime/device/driver.h"

// Runs the tests on each list of two devices ("cpu:0-1") in `device_lists`, which ends with NULL. Returns the number of
// tests that failed.
int tfc_conformance_run(const char *const *device_lists);

// The op that these tests run, with a kernel for the host: y = x + 1 in float32; a tensor of seven elements is an
// error.
extern const struct tfc_op_def tfc_conformance_add_one;

#endif
