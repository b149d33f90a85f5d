// A task's rendezvous: it keeps tensors that arrive before an operation asks for them, and operations that ask before
// their tensor arrives.
//
// When a step has ended, its tensors and operations are dropped, also those that come later. Each client numbers its
// steps (tfc_step_number) and uses no number twice.
#ifndef TFC_RUNTIME_CLUSTER_RENDEZVOUS_H
#define TFC_RUNTIME_CLUSTER_RENDEZVOUS_H

#include "runtime/ops/rendezvous.h"

struct tfc_meeting {
  struct tfc_rendezvous base; // the owner sets `send`
  void *owner;
};
// If a step is cancelled, tfc_resources_wake(resources) wakes its operations that wait here.
TFC_MUST_USE tfc_status tfc_meeting_create(struct tfc_resources *resources, struct tfc_meeting **out);
void tfc_meeting_free(struct tfc_meeting *m); // before the resources are freed

enum { TFC_STEP_BITS = 40 };
static inline int64_t tfc_step_number(uint32_t client, int64_t count) {
  return ((int64_t)client + 1) << TFC_STEP_BITS | count;
}
static inline uint32_t tfc_step_client(int64_t step) {
  return (uint32_t)(step >> TFC_STEP_BITS) - 1;
}
// The lowest bit of a step's number: all tasks record the step for its client (traces.h).
static inline bool tfc_step_is_traced(int64_t step) {
  return step & 1;
}
static inline int64_t tfc_step_count(int64_t step) { // how many steps the client began before
  return (step & (((int64_t)1 << TFC_STEP_BITS) - 1)) >> 1;
}

// Call it when a step begins in this task. Steps of the same client with numbers below `oldest` have ended.
TFC_MUST_USE tfc_status tfc_meeting_begin(struct tfc_meeting *m, int64_t step, int64_t oldest);
// Call it when a step is aborted: all its operations that wait, now or later, end with an error.
void tfc_meeting_abort(struct tfc_meeting *m, int64_t step);
void tfc_meeting_end(struct tfc_meeting *m, int64_t step);
// Call it when a tensor (NULL: dead) has arrived from another task. The rendezvous shares its buffer.
TFC_MUST_USE tfc_status tfc_meeting_give(struct tfc_meeting *m, const struct tfc_rendezvous_key *key,
                                         const struct tfc_tensor *value);
// Takes a tensor that has already arrived: a feed or a fetched value. False: it has not arrived.
bool tfc_meeting_take(struct tfc_meeting *m, const struct tfc_rendezvous_key *key, struct tfc_tensor *out);

#endif
