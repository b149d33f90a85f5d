// Handles a run that can only wait: sleeping, deadlocks, deadlines, and messages that say what waits for what.
#include "runtime/device/wait.h"
#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/wait.h"
#include "runtime/exec/queue_threads.h"
#include "runtime/ops/rendezvous.h"

enum { POLL_NS = 5000000 };

// --- Messages ----------------------------------------------------------------------------------------------------
// Appends the queue, barrier or accumulator that a kernel waits for.
static void describe_resource(const struct tfc_run *r, const struct tfc_run_flight *f, struct tfc_text *text) {
  const struct tfc_tensor *handle = f->item.node->is_async && f->item.node->input_count ? f->inputs[0] : NULL;
  struct tfc_object *o = NULL, *found = NULL;
  if (handle && handle->dtype == TFC_RESOURCE && handle->size == sizeof(void *))
    o = *(struct tfc_object **)handle->data;
  if (handle && handle->dtype == TFC_STRING && tfc_tensor_elements(handle) == 2)
    o = found =
        tfc_resources_look(r->session->resources, tfc_tensor_get_string(handle, 0), tfc_tensor_get_string(handle, 1));
  if (o && o->type->describe) {
    tfc_text_printf(text, " waits for ");
    o->type->describe(o, text);
  } else {
    tfc_text_printf(text, " has not completed");
  }
  tfc_object_release(found);
}

static bool in_the_air(const struct tfc_run *r, const struct tfc_dnode *n) {
  for (const struct tfc_run_flight *f = r->flights; f; f = f->after)
    if (f->item.node == n) return true;
  return false;
}

// Appends the names of kernels that wait, with what they wait for, and of some nodes that wait for these kernels.
void tfc_run_name_waiting(struct tfc_run *r, struct tfc_text *text) {
  const struct tfc_graph *g = r->plan->ir.graph;
  uint32_t shown = 0;
  if (!r->root) return; // the run did not begin
  for (const struct tfc_run_flight *f = r->flights; f && shown < 8; f = f->after, shown++) {
    const struct tfc_dnode *n = f->item.node;
    tfc_text_printf(text, "%s'%.*s' (%s) on %s", shown ? ", " : "", TFC_STR_ARG(g->nodes[n->node].name), n->def->name,
                    r->session->devices[n->device]->info.name);
    describe_resource(r, f, text);
  }
  for (uint32_t i = 0; i < r->d->node_count && shown < 12; i++) {
    const struct tfc_dnode *n = &r->d->nodes[i];
    const struct tfc_run_iteration *it = n->frame == 0 ? tfc_run_iteration(r->root, 0) : NULL;
    if (!it || it->pending[n->local] == TFC_RUN_DONE || n->kind == TFC_DNODE_FETCH || n->kind == TFC_DNODE_FEED)
      continue;
    const struct tfc_node *node = &g->nodes[n->node];
    for (uint32_t k = 0; k < node->input_count + node->control_count && shown < 12; k++) {
      struct tfc_output o = tfc_node_inputs(g, node)[k];
      for (uint32_t j = 0; j < r->d->node_count; j++) {
        const struct tfc_dnode *p = &r->d->nodes[j];
        if (p->node != o.node || p->kind == TFC_DNODE_FEED || p->kind == TFC_DNODE_FETCH) continue;
        if (p->frame == 0 && it->pending[p->local] == TFC_RUN_DONE && !(p->def->flags & TFC_OP_EXIT)) continue;
        if (r->flights && !in_the_air(r, p)) continue; // the others do not wait for this one, because it waits itself
        tfc_text_printf(text, "%s'%.*s' waits for '%.*s'", shown++ ? ", " : "", TFC_STR_ARG(node->name),
                        TFC_STR_ARG(g->nodes[o.node].name));
        break;
      }
    }
  }
}

// --- Deadlocks ---------------------------------------------------------------------------------------------------
uint32_t tfc_run_at_work(const struct tfc_run *r) {
  uint32_t count = r->in_flight - r->waiting;
  for (const struct tfc_run_flight *f = atomic_load(&r->mailbox->arrived); f; f = f->next)
    count -= !f->item.node->is_async;
  return count;
}
struct blocked {
  struct tfc_blocked base;
  struct tfc_run_mailbox *mailbox;
};
static bool nothing_came(const struct tfc_blocked *b) {
  return !atomic_load(&((const struct blocked *)b)->mailbox->arrived);
}
static void look_again(const struct tfc_blocked *b) {
  struct tfc_run_mailbox *m = ((const struct blocked *)b)->mailbox;
  atomic_fetch_add(&m->signal, 1);
  tfc_futex_wake(&m->signal, 1);
}

// Starts the threads that fill the queues for which operations of this run and of the runs around it wait.
static bool fill_queues(struct tfc_run *r) {
  struct tfc_queue_threads *t = r->session->queue_threads;
  TFC_ARRAY(uint32_t) nodes = {0};
  for (const struct tfc_run *q = r; q && t; q = q->parent) {
    if (q->plan->ir.graph != r->session->graph) continue; // this is the run of a function's body
    for (const struct tfc_run_flight *f = q->flights; f; f = f->after)
      if (f->item.node->is_async) (void)tfc_array_push(&nodes, f->item.node->node);
  }
  bool started = nodes.count && tfc_queue_threads_start(t, nodes.data, (uint32_t)nodes.count);
  tfc_array_free(&nodes);
  return started;
}

static void fail_deadlocked(struct tfc_run *r) {
  struct tfc_text text = {0};
  for (struct tfc_run *q = r; q; q = q->parent) {
    if (text.size) tfc_text_printf(&text, "; outside of the function: ");
    tfc_run_name_waiting(q, &text);
  }
  tfc_run_fail(r, tfc_status_make(TFC_ABORTED, "deadlock: no step can go on: %s", text.size ? text.data : ""));
  tfc_text_deinit(&text);
}

// Waits for a signal after `seen`. If all remaining operations of the step may be waiting for other steps, informs the
// session.
static void sleep_until_signal(struct tfc_run *r, uint32_t seen, int64_t timeout) {
  struct tfc_gate *gate = &r->session->gate;
  struct blocked b = {{.nothing_came = nothing_came, .look_again = look_again}, r->mailbox};
  bool blocked = !r->failed;
  for (const struct tfc_run *q = r; q && blocked; q = q->parent) blocked = tfc_run_at_work(q) == 0;
  if (blocked && tfc_gate_block(gate, &b.base)) {
    if (!tfc_run_unpark(r) && !fill_queues(r)) fail_deadlocked(r);
    return;
  }
  // Kernels of the surrounding runs return to these runs' mailboxes and do not signal this one. So it wakes up now and
  // then, to find out whether the last of them has returned and the step is blocked.
  if (!blocked && r->parent && !r->failed) timeout = POLL_NS;
  tfc_futex_wait(&r->mailbox->signal, seen, timeout);
  if (blocked) tfc_gate_unblock(gate, &b.base);
}

void tfc_run_flush(struct tfc_run *r) {
  struct tfc_rendezvous *others = r->session->options.rendezvous;
  if (r->kept && others) others->flush(others);
  r->kept = false;
}

void tfc_run_wait(struct tfc_run *r) {
  tfc_run_flush(r);
  uint32_t seen = atomic_load(&r->mailbox->signal);
  if (atomic_load(&r->mailbox->arrived)) return;
  struct tfc_rendezvous *others = r->session->options.rendezvous;
  if (others && others->attend && tfc_run_at_work(r) == 0) others->attend(others, &r->mailbox->signal, seen);
  for (int i = 0; i < 2000; i++) {
    if (atomic_load_explicit(&r->mailbox->signal, memory_order_relaxed) != seen) return;
    tfc_pause();
  }
  bool watch = r->failed || r->deadline || r->cancel || r->nested;
  sleep_until_signal(r, seen, watch ? POLL_NS : -1);
  // Wakes kernels that began to wait after the failure.
  if (r->failed && r->in_flight) tfc_resources_wake(r->session->resources);
}

// --- Deadlines and cancellation ------------------------------------------------------------------------------------
void tfc_run_check_time(struct tfc_run *r) {
  if (r->failed) return;
  if (r->cancel && atomic_load(r->cancel)) {
    tfc_run_fail(r, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
  } else if (r->deadline && tfc_now_ns() >= r->deadline) {
    struct tfc_text text = {0};
    // of a function that has not begun: its caller, if that runs on this thread; otherwise its flights may end now
    struct tfc_run *at = r->root || !r->parent || !r->parent->d->inline_only ? r : r->parent;
    if (!at->root)
      tfc_text_printf(&text, "it had not begun");
    else if (!at->flights && at->at)
      tfc_text_printf(&text, "'%.*s' (%s) on %s was running", TFC_STR_ARG(at->plan->ir.graph->nodes[at->at->node].name),
                      at->at->def->name, r->session->devices[at->at->device]->info.name);
    else
      tfc_run_name_waiting(at, &text);
    tfc_run_fail(r,
                 tfc_status_make(TFC_DEADLINE_EXCEEDED, "the step did not end within %g ms%s%s",
                                 (double)r->step->limit_ns * 1e-6, text.size ? ": " : "", text.size ? text.data : ""));
    tfc_text_deinit(&text);
  } else if (tfc_step_stopped(r->step)) {
    tfc_run_fail(r, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
  }
}
