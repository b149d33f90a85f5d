// The gate of a session decides which steps may run at the same time.
//
// Steps in ready order run at the same time. A static step runs alone. If other steps are running when it begins, it
// runs in ready order, too (its plan has a twin for that). A step that begins while a static one runs waits until that
// one ends, which it always does.
//
// A step that can only wait (for queues, barriers, accumulators) reports it. When all running steps are waiting, and no
// thread remains that could start another one, none of them can ever continue: the last one gets the error that it is a
// deadlock.
#ifndef TFC_RUNTIME_EXEC_GATE_H
#define TFC_RUNTIME_EXEC_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tfc_blocked { // a step that waits; the record is on that step's stack
  struct tfc_blocked *next;
  bool (*nothing_came)(const struct tfc_blocked *self);
  void (*look_again)(const struct tfc_blocked *self); // wakes the blocked step, so that it checks again
};
struct tfc_gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t callers; // number of threads that run steps; 0: not known (then no deadlock can be found)
  uint32_t helpers; // number of additional threads, which fill queues
  uint32_t active, dynamic_steps;
  bool static_step;
  struct tfc_blocked *blocked;
};
void tfc_gate_init(struct tfc_gate *g, uint32_t callers);
void tfc_gate_deinit(struct tfc_gate *g);
bool tfc_gate_enter_static(struct tfc_gate *g); // false: run the step in ready order (after tfc_gate_enter_dynamic)
void tfc_gate_enter_dynamic(struct tfc_gate *g);
void tfc_gate_leave(struct tfc_gate *g, bool is_static);
// Returns true if it is a deadlock; then `b` was not added to the list.
bool tfc_gate_block(struct tfc_gate *g, struct tfc_blocked *b);
void tfc_gate_unblock(struct tfc_gate *g, struct tfc_blocked *b);
void tfc_gate_set_callers(struct tfc_gate *g, uint32_t callers);
void tfc_gate_helpers(struct tfc_gate *g, int more);

#endif
