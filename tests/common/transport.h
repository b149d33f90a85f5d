// What every transport has to do: a task's side of an exchange in which every task sends every task (itself too)
// messages with and without bodies, of all sizes, and checks what it gets.
#ifndef TFC_TESTS_COMMON_TRANSPORT_H
#define TFC_TESTS_COMMON_TRANSPORT_H

#include "runtime/transport/transport.h"

// `count` messages to each task. All tasks call it with the same numbers. The transport stays open.
TFC_MUST_USE tfc_status tfc_test_exchange(struct tfc_transport *t, uint32_t count, uint64_t seed);

#endif
