// The test that every transport has to pass. Each task calls it: it sends messages with and without bodies, of all
// sizes, to every task including itself, and checks the messages that it receives.
#ifndef TFC_TESTS_COMMON_TRANSPORT_H
#define TFC_TESTS_COMMON_TRANSPORT_H

#include "runtime/transport/transport.h"

// Sends `count` messages to each task, and receives as many from each. All tasks call it with the same numbers. The
// transport stays open.
TFC_MUST_USE tfc_status tfc_test_exchange(struct tfc_transport *t, uint32_t count, uint64_t seed);

// Task 0 of three sends messages to the others that say that more follow. ABORTED: they came in more packets than they
// have to, or not as they were sent. Only for a transport that counts packets, in one thread.
TFC_MUST_USE tfc_status tfc_test_together(struct tfc_transport *t, uint32_t rounds);

// Tasks 0 and 1, of two, send each other a number there and back `count` times, each after a random time below 40 us,
// while the other one looks for messages, is about to sleep, or sleeps: a message that comes in any of these moments
// must wake it. DEADLINE_EXCEEDED: one was found only when a sleep of 5 s had ended.
TFC_MUST_USE tfc_status tfc_test_wakes(struct tfc_transport *t, uint32_t count, uint64_t seed);

#endif
