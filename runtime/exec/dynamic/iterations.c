// Runs loops whose iterations are fixed lists of nodes (dynamic/loops.c): values go directly to their readers, without
// counting inputs or waiting. A loop begins when all its inputs have entered; if one of them is dead, it runs in
// ready order, as other frames do. All iterations use the value slots of the first. Between two iterations the whole
// state of the loop is in the inputs of its Merges.
#include "runtime/exec/dynamic/iterations.h"
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/nodes.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/wait.h"

enum { CHECK_EVERY = 64 };

static void release_inputs(const struct tfc_dnode *n, struct tfc_run_value *in) {
  for (uint32_t k = 0; k < n->input_count; k++)
    if (in[k].live && !(n->kept_inputs >> k & 1)) tfc_run_value_release(&in[k]);
}

// Passes input `k` on to the readers of the node's output.
static void hand_through(const struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_iteration *it, uint32_t k,
                         int32_t output) {
  struct tfc_run_value *in = it->values + n->input_begin + k, kept;
  if (n->kept_inputs >> k & 1) {
    kept = *in;
    tfc_buffer_retain(kept.t.buffer);
    in = &kept;
  }
  tfc_run_hand_on(r, n, it, output, in);
}

static tfc_status run_node(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_iteration *it = item->iteration;
  struct tfc_run_value *in = it->values + n->input_begin, *outs = r->outs;
  switch (n->kind) {
  case TFC_DNODE_SPREAD:
    for (uint32_t k = 0; k < n->input_count; k++) hand_through(r, n, it, k, (int32_t)k);
    return NULL;
  case TFC_DNODE_MERGE: hand_through(r, n, it, !in[0].live, 0); return NULL;
  case TFC_DNODE_SWITCH: {
    int64_t index = 0;
    TFC_RETURN_IF_ERROR(tfc_run_index(r, n, 1, &in[1], &index));
    hand_through(r, n, it, 0, index != 0);
    release_inputs(n, in);
    return NULL;
  }
  case TFC_DNODE_PASS:
    if (!n->is_exit) {
      hand_through(r, n, it, 0, 0);
      return NULL;
    }
    it->outstanding++; // an Exit leaves the frame in the same way as in ready order
    tfc_run_process(r, item);
    return NULL;
  default:
    TFC_RETURN_IF_ERROR(tfc_run_compute(r, item, outs));
    release_inputs(n, in);
    for (uint32_t i = 0; i < n->output_count; i++) tfc_run_hand_on(r, n, it, (int32_t)i, &outs[i]);
    return NULL;
  }
}

static bool run_list(struct tfc_run *r, const struct tfc_run_item *loop, const struct tfc_dnode *list, uint32_t count) {
  struct tfc_run_item item = *loop;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_dnode *n = item.node = &list[i];
    tfc_status s = run_node(r, &item);
    if (!s) continue;
    for (uint32_t k = 0; k < n->output_count; k++) tfc_run_value_release(&r->outs[k]);
    tfc_run_fail(r, s);
    return false;
  }
  return !r->failed;
}

void tfc_run_iterate(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dloop *loop = item->frame->f->loop;
  const struct tfc_dnode *by = &r->d->nodes[loop->condition];
  struct tfc_run_value *condition = item->iteration->values + by->input_begin + 1;
  int64_t goes_on = 1;
  for (uint32_t turn = 1;; turn++) {
    if (!run_list(r, item, loop->before, loop->before_count)) return;
    tfc_status s = tfc_run_index(r, by, 1, condition, &goes_on);
    if (s) {
      tfc_run_fail(r, s);
      return;
    }
    if (goes_on == 0) break;
    if (!run_list(r, item, loop->body, loop->body_count)) return;
    if (r->deadline || turn % CHECK_EVERY == 0) tfc_run_check_time(r);
    if (r->failed) return;
    if (!r->in_flight || !atomic_load_explicit(&r->mailbox->arrived, memory_order_relaxed)) continue;
    // Puts the loop on the ready list, so that kernels that have returned are handled first.
    tfc_run_make_ready(r, item->node, item->frame, item->iteration, false);
    item->iteration->outstanding--;
    return;
  }
  if (run_list(r, item, loop->leaving, loop->leaving_count)) tfc_run_finish(r, item, r->outs);
}
