// What a task does for the steps of other tasks' clients: it keeps their parts of graphs and plans, and runs parts of
// their steps on threads of its own. These functions take the member's lock themselves.
//
// INVALID_ARGUMENT: a message names a graph or a plan that this task does not have, or has already.
#ifndef TFC_RUNTIME_CLUSTER_SERVE_H
#define TFC_RUNTIME_CLUSTER_SERVE_H

#include "runtime/cluster/member_internal.h"

// Keeps this task's part of a session's graph, a GraphDef of `size` bytes; keeps a reference to the buffer.
TFC_MUST_USE tfc_status tfc_serve_graph(struct tfc_member *t, uint32_t client, uint32_t session, tfc_str execution,
                                        struct tfc_buffer *graph, uint64_t size);
// Keeps the part of a plan that this task runs; `names` has its feeds, fetches and targets.
TFC_MUST_USE tfc_status tfc_serve_plan(struct tfc_member *t, uint32_t client, const struct tfc_head_plan *head,
                                       struct tfc_buffer *names, uint64_t size);
// Starts a part of a step on a thread; the answer to the client is sent when it has ended.
TFC_MUST_USE tfc_status tfc_serve_start(struct tfc_member *t, uint32_t client, const struct tfc_head_run *head);
// Makes this task's part of a step end with an error.
void tfc_serve_abort(struct tfc_member *t, int64_t step);
// What this task has recorded of a step. It is written as text only when the step has ended, because that takes time.
// The caller frees it, also if the step has failed.
struct tfc_serve_record {
  struct tfc_served *served; // NULL: the step is not traced, or has failed
  int64_t step;
  struct tfc_part_trace trace;
};
TFC_MUST_USE tfc_status tfc_serve_record_write(struct tfc_member *t, struct tfc_serve_record *record,
                                               struct tfc_text *out);
void tfc_serve_record_deinit(struct tfc_member *t, struct tfc_serve_record *record);
// Runs the client's own part of its step, on the calling thread. `is_static`: no other step runs meanwhile, in any
// task. `out_record` may be NULL if the step is not traced.
TFC_MUST_USE tfc_status tfc_serve_here(struct tfc_member *t, uint32_t session, uint32_t plan, bool is_static,
                                       const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                       const struct tfc_run_options *options, struct tfc_serve_record *out_record);
// Sends a tensor to the task whose part of the step waits for it: the `send` of the member's rendezvous.
TFC_MUST_USE tfc_status tfc_serve_send(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                                       const struct tfc_tensor *value, bool more);
void tfc_serve_flush(struct tfc_rendezvous *r); // its `flush`
// Frees a client's part of a graph. No step of it runs any more.
void tfc_serve_forget(struct tfc_member *t, uint32_t client, uint32_t session);
// Ends all steps and joins the threads that run them. The thread that receives messages may still run: what it hears
// from now on starts no step.
void tfc_serve_end(struct tfc_member *t);
void tfc_serve_free(struct tfc_member *t); // frees what was served, when that thread has ended, too

#endif
