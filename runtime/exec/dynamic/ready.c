// The ready list of a run, and its error: state that all other parts of a run change.
#include "runtime/exec/dynamic/ready.h"
#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/wait.h"

void tfc_run_fail(struct tfc_run *r, tfc_status s) {
  if (r->failed) {
    tfc_status_free(s);
    return;
  }
  const bool asked = r->cancel && atomic_load(r->cancel);
  if (tfc_status_code(s) == TFC_CANCELLED && r->deadline && !asked && tfc_now_ns() >= r->deadline) {
    tfc_status_free(s); // a kernel has seen before the run that time is over
    tfc_run_check_time(r);
    return;
  }
  r->failed = true;
  r->status = s;
  atomic_store(&r->stopped, true);
  if (r->in_flight) tfc_resources_wake(r->session->resources);
}

void tfc_run_make_ready(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_frame *f,
                        struct tfc_run_iteration *it, bool dead) {
  it->outstanding++;
  if (n->ordered && it->number > f->turns[n->ordered - 1]) {
    if (!tfc_array_push(&f->parked, (struct tfc_run_item){n, f, it, dead}))
      tfc_run_fail(r, tfc_status_no_memory("running a step"));
    r->parked++;
    return;
  }
  struct tfc_run_item item = {n, f, it, dead};
  bool pushed = n->turn == TFC_TURN_ANY || f != r->root ? tfc_array_push(&r->ready, item)
                : n->turn == TFC_TURN_UPDATE            ? tfc_array_push(&r->updates, item)
                                                        : tfc_array_push(&r->last, item);
  if (!pushed) tfc_run_fail(r, tfc_status_no_memory("running a step"));
}

bool tfc_run_unpark(struct tfc_run *r) {
  if (!r->parked) return false;
  for (struct tfc_run_frame *f = r->frames; f; f = f->next) {
    for (size_t i = 0; i < f->parked.count; i++)
      if (!tfc_array_push(&r->ready, f->parked.data[i])) tfc_run_fail(r, tfc_status_no_memory("running a step"));
    f->parked.count = 0;
  }
  r->parked = 0;
  return true;
}

bool tfc_run_takes_time(const struct tfc_dnode *n) {
  if (n->kind == TFC_DNODE_OP) return n->def->role != TFC_ROLE_SEND;
  return n->kind == TFC_DNODE_LOOP || n->kind == TFC_DNODE_FEED || n->kind == TFC_DNODE_FETCH;
}

bool tfc_run_sends_more(const struct tfc_run *r) {
  return r->ready.count && !tfc_run_takes_time(r->ready.data[r->ready.count - 1].node);
}
