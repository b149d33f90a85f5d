// A loop of n iterations spread over two devices and a host, for tests of how values move in ready order. One of its
// values goes back and forth: the first device computes it, the second reads it twice, and the result of the second
// goes back to the first. Another value goes one way: the first device counts up from x, ahead of the second, which
// adds up the counts. Constants come from the host.
#ifndef TFC_TESTS_COMMON_SPREAD_LOOP_H
#define TFC_TESTS_COMMON_SPREAD_LOOP_H

#include "runtime/exec/session.h"

enum { SPREAD_LOOP_SIZE = 1000 };
struct spread_loop {
  struct tfc_graph *graph;
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_plan *plan;
  struct tfc_tensor feeds[2]; // x, n
  uint16_t placement[64];
  uint32_t sent, back; // nodes: the value that the second device reads twice, and the value that goes back
};
// `devices`: the loop's first and second, then the host's.
void spread_loop_open(struct spread_loop *l, const char *devices, const struct tfc_memory_limit *limit);
tfc_status spread_loop_run(struct spread_loop *l, int32_t n, const struct tfc_run_options *options);
// Checks that the profile of a step has, for each iteration, the transfer of `sent` from the first device to the second
// (once, or once for each reader) and that of `back` from the second to the first. With `one_clock`, all devices are
// timed by the same clock: then `back` must have been computed before it is sent.
struct tfc_step_profile;
void spread_loop_check_transfers(const struct spread_loop *l, int32_t n, const struct tfc_step_profile *p,
                                 bool one_clock);
void spread_loop_close(struct spread_loop *l); // fails the test if one of the first two devices still holds memory

#endif
