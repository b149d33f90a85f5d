// A loop of n iterations spread over two devices and a host, for tests of how values move in ready order. One of its
// values goes to and fro: what the first device makes goes to the second, which reads it twice, and what that makes
// comes back. Another one only goes: the first device counts up from x ahead of the second, which adds up what it is
// sent. Constants come from the host.
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
  uint32_t sent, back; // nodes: what goes to the second device and is read there twice, and what comes back
};
// Devices: the loop's first and second, and the host's third.
void spread_loop_open(struct spread_loop *l, const char *devices, const struct tfc_memory_limit *limit);
tfc_status spread_loop_run(struct spread_loop *l, int32_t n, const struct tfc_run_options *options);
// A profile of a step names each transfer: what goes to and fro does so in each iteration, between these devices. Where
// all is dated by one clock, what comes back has been made before.
struct tfc_step_profile;
void spread_loop_check_transfers(const struct spread_loop *l, int32_t n, const struct tfc_step_profile *p,
                                 bool one_clock);
void spread_loop_close(struct spread_loop *l); // the first two devices may hold no memory then

#endif
