#include "runtime/base/interrupt.h"

#include <signal.h>
#include <stdio.h>

#include "runtime/base/clock.h"

static const atomic_bool *_Atomic interrupt_flag;
static _Atomic int64_t deadline;
static char deadline_name[64];
static _Atomic pid_t child;

void tfc_interrupt_on(const atomic_bool *flag) {
  atomic_store(&interrupt_flag, flag);
}

void tfc_interrupt_at(int64_t deadline_ns, const char *what) {
  snprintf(deadline_name, sizeof deadline_name, "%s", what ? what : "");
  atomic_store(&deadline, deadline_ns);
}

tfc_status tfc_interrupted(const char *doing) {
  const atomic_bool *flag = atomic_load_explicit(&interrupt_flag, memory_order_relaxed);
  if (flag && atomic_load_explicit(flag, memory_order_relaxed))
    return tfc_status_make(TFC_CANCELLED, "interrupted while %s", doing);
  const int64_t until = atomic_load_explicit(&deadline, memory_order_relaxed);
  if (!until) return NULL;
  // Only every 16th call reads the clock, because that costs more than most of the work between two calls.
  static _Thread_local uint32_t asked;
  if (asked++ % 16 || tfc_now_ns() < until) return NULL;
  return tfc_status_make(TFC_DEADLINE_EXCEEDED, "no time left while %s: %s", doing, deadline_name);
}

void tfc_interrupt_child(pid_t group) {
  atomic_store(&child, group);
}

void tfc_interrupt_end_child(void) {
  const pid_t group = atomic_load(&child);
  if (group > 0) kill(-group, SIGKILL);
}
