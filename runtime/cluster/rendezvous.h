// A task's rendezvous. It keeps tensors that came before an operation asked for them, and operations that asked before
// their tensor came.
//
// Tensors and operations of a step that has ended are dropped, also those that come later. Each client numbers its
// steps (tfc_step_number) and uses no number twice.
#ifndef TFC_RUNTIME_CLUSTER_RENDEZVOUS_H
#define TFC_RUNTIME_CLUSTER_RENDEZVOUS_H

#include "runtime/ops/rendezvous.h"

struct tfc_meeting {
  struct tfc_rendezvous base; // the owner sets `send`
  void *owner;
};
// Operations that wait for a cancelled step are released by tfc_resources_wake(resources).
TFC_MUST_USE tfc_status tfc_meeting_create(struct tfc_resources *resources, struct tfc_meeting **out);
void tfc_meeting_free(struct tfc_meeting *m); // before the resources are freed

enum { TFC_STEP_BITS = 40 };
static inline int64_t tfc_step_number(uint32_t client, int64_t count) {
  return ((int64_t)client + 1) << TFC_STEP_BITS | count;
}
static inline uint32_t tfc_step_client(int64_t step) {
  return (uint32_t)(step >> TFC_STEP_BITS) - 1;
}

// Call when a step begins in this task. Steps of the same client below `oldest` have ended.
TFC_MUST_USE tfc_status tfc_meeting_begin(struct tfc_meeting *m, int64_t step, int64_t oldest);
// Call when a step is aborted: all of its operations that wait, now or later, end with an error.
void tfc_meeting_abort(struct tfc_meeting *m, int64_t step);
void tfc_meeting_end(struct tfc_meeting *m, int64_t step);
// Call when a tensor (NULL: dead) has come from another task. Its buffer is shared.
TFC_MUST_USE tfc_status tfc_meeting_give(struct tfc_meeting *m, const struct tfc_rendezvous_key *key,
                                         const struct tfc_tensor *value);
// Takes a tensor that has come already: a feed or a fetched value. False: it has not come.
bool tfc_meeting_take(struct tfc_meeting *m, const struct tfc_rendezvous_key *key, struct tfc_tensor *out);

#endif
