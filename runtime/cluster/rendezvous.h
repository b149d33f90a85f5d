// A task's rendezvous: tensors that came before anybody asked for them, and operations that asked before they came.
//
// What belongs to a step that is over is dropped, also what arrives later. Steps are numbered by their clients
// (tfc_step_number), each with every number once.
#ifndef TFC_RUNTIME_CLUSTER_RENDEZVOUS_H
#define TFC_RUNTIME_CLUSTER_RENDEZVOUS_H

#include "runtime/ops/rendezvous.h"

struct tfc_meeting {
  struct tfc_rendezvous base; // `send` is set by the owner
  void *owner;
};
// Waiting operations whose steps were cancelled are let go by tfc_resources_wake(resources).
TFC_MUST_USE tfc_status tfc_meeting_create(struct tfc_resources *resources, struct tfc_meeting **out);
void tfc_meeting_free(struct tfc_meeting *m); // before the resources

enum { TFC_STEP_BITS = 40 };
static inline int64_t tfc_step_number(uint32_t client, int64_t count) {
  return ((int64_t)client + 1) << TFC_STEP_BITS | count;
}
static inline uint32_t tfc_step_client(int64_t step) {
  return (uint32_t)(step >> TFC_STEP_BITS) - 1;
}

// A step begins here; its client's steps below `oldest` are over.
TFC_MUST_USE tfc_status tfc_meeting_begin(struct tfc_meeting *m, int64_t step, int64_t oldest);
// Lets all go that wait in the step, and those to come.
void tfc_meeting_abort(struct tfc_meeting *m, int64_t step);
void tfc_meeting_end(struct tfc_meeting *m, int64_t step);
// A tensor (NULL: dead) has come; shared.
TFC_MUST_USE tfc_status tfc_meeting_give(struct tfc_meeting *m, const struct tfc_rendezvous_key *key,
                                         const struct tfc_tensor *value);
// One that has come already: what was fed or fetched. False: it has not.
bool tfc_meeting_take(struct tfc_meeting *m, const struct tfc_rendezvous_key *key, struct tfc_tensor *out);

#endif
