// Internal to the dynamic path: one run of a plan. The thread that runs it owns everything, except the mailbox, and a
// flight (a kernel on another thread) until it returns.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_RUN_H
#define TFC_RUNTIME_EXEC_DYNAMIC_RUN_H

#include "runtime/device/queue.h"
#include "runtime/exec/dynamic/dynamic.h"

enum { TFC_RUN_DONE = UINT32_MAX, TFC_RUN_FEW = 16 };

struct tfc_run_value {
  struct tfc_tensor t;
  struct tfc_variable *reference;
  uint16_t location; // device, or TFC_PLAN_HOST
  bool live;
};
struct tfc_run_frame;
struct tfc_run_iteration {
  uint32_t outstanding; // nodes that are ready or running
  int64_t number;
  // Frames that were entered from this iteration. It must not be next to `outstanding`: the compiler would load both at
  // once, and such a load waits for the last store to one of them.
  uint32_t children;
  struct tfc_run_value *values;
  uint32_t *pending, *dead; // [node_count]
  struct tfc_run_frame *first_child;
  struct tfc_run_iteration *next_free;
};
struct tfc_run_deferred {
  const struct tfc_dnode *node;
  struct tfc_run_value value;
  bool dead;
};
struct tfc_run_item {
  const struct tfc_dnode *node;
  struct tfc_run_frame *frame;
  struct tfc_run_iteration *iteration;
  bool dead;
};
struct tfc_run_terms; // products that wait to be added to a sum (dynamic/terms.h)
struct tfc_run_frame {
  const struct tfc_dframe *f;
  uint32_t index;
  struct tfc_run_frame *parent;
  struct tfc_run_iteration *parent_iteration;
  struct tfc_run_frame *sibling;
  struct tfc_run_iteration **ring; // [ring_mask + 1] by number
  int64_t count;                   // number of the last iteration
  uint32_t outstanding;            // number of iterations that are under way
  uint32_t pending_enters;
  TFC_ARRAY(const struct tfc_dnode *) dead_exits;
  TFC_ARRAY(struct tfc_run_deferred) next_roots; // NextIteration values, until an iteration ends
  TFC_ARRAY(struct tfc_run_deferred) constants;  // values of constant Enters; before a loop begins, those of all Enters
  struct tfc_run_terms *terms;                   // [sums of the loop], or NULL while none waits
  int64_t *turns;                                // by ordered node: the iteration that is next
  TFC_ARRAY(struct tfc_run_item) parked;         // ordered nodes that wait for their turn
  struct tfc_run_frame *previous, *next;         // all frames of the run
};

// The mailbox, through which kernels on other threads return. It is freed only when no such kernel uses it any more.
struct tfc_run_flight;
struct tfc_run_mailbox {
  _Atomic(struct tfc_run_flight *) arrived;
  _Atomic uint32_t signal;
  _Atomic int32_t references;
};
struct tfc_run_copies;       // copies that are under way (dynamic/copies.c)
struct tfc_run_sending {     // values that are being moved to the operation that reads them
  struct tfc_run_copy *made; // copies that were made and not submitted yet
  uint64_t arrival;          // value of `to`'s timeline at arrival; 0: nothing was sent
  uint16_t to;
};
struct tfc_run {
  struct tfc_plan *plan;
  struct tfc_dynamic *d;
  struct tfc_session *session;
  struct tfc_step *step; // of the outermost run
  bool nested, failed;
  struct tfc_run *parent;      // nested: the run whose kernel this run belongs to
  struct tfc_partial *partial; // NULL: not a partial run; in a partial run feeds come one by one
  // whether all fetches that the current call of a partial run needs are known
  bool (*has_all)(const struct tfc_partial *p);
  _Atomic bool stopped;
  tfc_status status;
  int64_t deadline;
  const struct tfc_dnode *at; // the last node that began on this thread
  const _Atomic bool *cancel;
  const _Atomic bool *beside_failed; // of a loop that runs beside others: one of them has failed; otherwise NULL
  struct tfc_run_frame *root, *frames;
  struct tfc_run_iteration **pools;     // [frame_count]
  TFC_ARRAY(struct tfc_run_item) ready; // a stack
  TFC_ARRAY(struct tfc_run_item) loops; // that wait until nothing else is ready, to run side by side
  // Updates of variables: a queue that is used when nothing else is ready, because nodes that were ready before still
  // read the old value if no edge orders them.
  TFC_ARRAY(struct tfc_run_item) updates;
  size_t updates_begin;
  TFC_ARRAY(struct tfc_run_item) last; // a stack, used when there are no updates either
  uint32_t in_flight, root_done, parked;
  uint32_t waiting; // kernels in flight that wait for something outside of the step
  bool kept;        // tensors for other tasks may be kept, until the rendezvous's `flush`
  struct tfc_run_flight *flights;
  struct tfc_run_mailbox *mailbox;
  struct tfc_kernel_env *envs, *host_envs; // [devices]; host_envs: with host memory
  struct tfc_run_copies *copies;           // of the outermost run; NULL: no device has memory of its own
  _Atomic bool *launched;                  // [devices] of the outermost run: operations may still be running there
  struct tfc_run_value *outs;              // [most_outputs]
  const struct tfc_tensor *feeds;
  struct tfc_tensor *fetches;
  struct tfc_variable **late; // [fetch_count] or NULL: variables whose references are fetched; they are read at the end
                              // of the step
  struct tfc_dynamic_parent self; // for functions that kernels call
};
struct tfc_run_flight { // a kernel that runs on another thread, or waits
  struct tfc_task task;
  struct tfc_kernel_ctx ctx;
  struct tfc_run *run;
  struct tfc_run_mailbox *mailbox;
  struct tfc_run_item item;
  uint64_t arrival; // value of its device's timeline when its inputs arrive; 0: they were already there
  struct tfc_run_value *outs;
  tfc_status status;
  struct tfc_run_flight *next;           // in the list of arrived flights
  struct tfc_run_flight *before, *after; // in the list of the run's flights
  struct tfc_tensor **outputs;
  const struct tfc_tensor **inputs;
  struct tfc_variable **variables;
};

static inline void tfc_run_value_release(struct tfc_run_value *v) {
  if (v->t.buffer) tfc_buffer_release(v->t.buffer);
  v->t.buffer = NULL;
  v->t.data = NULL;
  v->t.dtype = TFC_DTYPE_NONE;
  v->reference = NULL;
  v->live = false;
}
// Moves `from` to a place that holds nothing. Copies only as many dimensions as the shape has.
static inline void tfc_run_value_move(const struct tfc_run_value *from, struct tfc_run_value *to) {
  to->t.dtype = from->t.dtype;
  to->t.shape.rank = from->t.shape.rank;
  for (int32_t d = 0; d < from->t.shape.rank; d++) to->t.shape.dims[d] = from->t.shape.dims[d];
  to->t.data = from->t.data;
  to->t.size = from->t.size;
  to->t.buffer = from->t.buffer;
  to->reference = from->reference;
  to->location = from->location;
  to->live = from->live;
}
static inline void tfc_run_give(const struct tfc_dedge *edge, struct tfc_run_iteration *it,
                                struct tfc_run_value *from) {
  tfc_run_value_move(from, &it->values[edge->value]);
  if (edge->last)
    from->t.buffer = NULL;
  else
    tfc_buffer_retain(from->t.buffer);
}

// Passes one of a node's outputs to its readers in the frame, and releases the rest.
static inline void tfc_run_hand_on(const struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_iteration *it,
                                   int32_t output, struct tfc_run_value *from) {
  for (const struct tfc_dedge *e = r->d->edges + n->edge_begin, *end = r->d->edges + n->edge_end; e < end; e++)
    if (e->output == output) tfc_run_give(e, it, from);
  tfc_run_value_release(from);
}
static inline struct tfc_run_iteration *tfc_run_iteration(const struct tfc_run_frame *f, int64_t number) {
  struct tfc_run_iteration *it = f->ring[number & f->f->ring_mask];
  return it && it->number == number ? it : NULL;
}
static inline bool tfc_run_own_space(const struct tfc_run *r, uint16_t device) {
  return r->session->devices[device]->info.address_space != 0;
}

// Begin, continue and end a run (dynamic.c). The loop continues until nothing remains to be done; in a partial run
// until everything that the call needs is known and only kernels that wait for something outside of the step remain.
tfc_status tfc_run_begin(struct tfc_run *r);
void tfc_run_loop(struct tfc_run *r);
void tfc_run_end(struct tfc_run *r);
// Waits until devices have executed everything that the outermost run gave them. Returns their errors joined with
// `before`, which it takes.
tfc_status tfc_run_settle(struct tfc_run *r, tfc_status before);

#endif
