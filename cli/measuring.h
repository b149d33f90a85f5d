// The lock that a program holds while it measures: two that measure on one machine at once would disturb each other.
#ifndef TFC_CLI_MEASURING_H
#define TFC_CLI_MEASURING_H

#include "profiler/lock.h"

// Takes the lock. `wait`: waits while another process holds it, and says so; otherwise that is ABORTED. CANCELLED: the
// user interrupted the program meanwhile.
TFC_MUST_USE tfc_status cli_measuring_lock(bool wait, struct tfc_lock **out);

#endif
