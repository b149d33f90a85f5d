// What member.c tells the client of this task about its steps.
#ifndef TFC_RUNTIME_CLUSTER_CLIENT_INTERNAL_H
#define TFC_RUNTIME_CLUSTER_CLIENT_INTERNAL_H

#include "runtime/cluster/member_internal.h"

// Notes that task `from` has ended its part of a step, with `message` as its error if it failed.
TFC_MUST_USE tfc_status tfc_client_done(struct tfc_member *t, uint32_t from, const struct tfc_head_done *head,
                                        tfc_str message);
// Takes the trace of a task that has answered, or the error that kept the task from writing it.
TFC_MUST_USE tfc_status tfc_client_trace(struct tfc_member *t, uint32_t from, const struct tfc_head_done *head,
                                         tfc_str message, struct tfc_buffer *trace, uint64_t size);
// Makes a step end with the error `why`, in all tasks that run parts of it. It takes
// over `why`. The caller holds the member's lock.
void tfc_client_abort_locked(struct tfc_member *t, struct tfc_client_step *step, tfc_status why);

#endif
