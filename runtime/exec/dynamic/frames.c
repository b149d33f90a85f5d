// Moves values through the frames and iterations of a run, by the rules of TensorFlow's executor. A node runs when all
// its inputs have arrived. A node with a dead input is dead, and so are its outputs; but a Merge is live with its first
// live input, and dead when all inputs are dead. A dead NextIteration has no effect. A dead Exit makes its readers dead
// when its frame has ended. At most `parallel` iterations of a frame run at once.
#include "runtime/exec/dynamic/frames.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/terms.h"

#include <stdlib.h>

static struct tfc_run_iteration *new_iteration(struct tfc_run *r, struct tfc_run_frame *f, int64_t number) {
  const struct tfc_dframe *s = f->f;
  struct tfc_run_iteration *it = r->pools[f->index];
  if (it) {
    r->pools[f->index] = it->next_free;
  } else {
    size_t values = s->value_count * sizeof(struct tfc_run_value), counts = (size_t)s->node_count * sizeof(uint32_t);
    it = calloc(1, sizeof *it + values + 2 * counts);
    if (!it) {
      tfc_run_fail(r, tfc_status_no_memory("running a step"));
      return NULL;
    }
    it->values = (struct tfc_run_value *)(it + 1);
    it->pending = (uint32_t *)(it->values + s->value_count);
    it->dead = it->pending + s->node_count;
  }
  it->number = number;
  it->outstanding = it->children = 0;
  it->first_child = NULL;
  memcpy(it->pending, s->initial, s->node_count * sizeof *it->pending);
  memset(it->dead, 0, s->node_count * sizeof *it->dead);
  f->ring[number & s->ring_mask] = it;
  f->outstanding++;
  return it;
}

static void free_iteration(struct tfc_run *r, struct tfc_run_frame *f, struct tfc_run_iteration *it) {
  for (uint32_t i = 0; i < f->f->value_count; i++)
    if (it->values[i].live) tfc_run_value_release(&it->values[i]);
  f->ring[it->number & f->f->ring_mask] = NULL;
  f->outstanding--;
  it->next_free = r->pools[f->index];
  r->pools[f->index] = it;
}

struct tfc_run_frame *tfc_run_frame_create(struct tfc_run *r, uint32_t index, struct tfc_run_frame *parent,
                                           struct tfc_run_iteration *from) {
  const struct tfc_dframe *s = &r->d->frames[index];
  size_t ring = ((size_t)s->ring_mask + 1) * sizeof(struct tfc_run_iteration *);
  struct tfc_run_frame *f = calloc(1, sizeof *f + ring + s->ordered_count * sizeof(int64_t));
  if (!f) {
    tfc_run_fail(r, tfc_status_no_memory("running a step"));
    return NULL;
  }
  f->ring = (struct tfc_run_iteration **)(f + 1);
  f->turns = (int64_t *)(void *)((char *)(f + 1) + ring);
  f->f = s;
  f->index = index;
  f->parent = parent;
  f->parent_iteration = from;
  f->pending_enters = s->enter_count;
  f->next = r->frames;
  if (r->frames) r->frames->previous = f;
  r->frames = f;
  if (from) {
    f->sibling = from->first_child;
    from->first_child = f;
    from->children++;
  }
  if (new_iteration(r, f, 0)) return f;
  return NULL; // the run has failed, and its end frees the frame
}

void tfc_run_frame_free(struct tfc_run *r, struct tfc_run_frame *f) {
  for (uint32_t i = 0; i <= f->f->ring_mask; i++)
    if (f->ring[i]) free_iteration(r, f, f->ring[i]);
  for (size_t i = 0; i < f->next_roots.count; i++) tfc_run_value_release(&f->next_roots.data[i].value);
  for (size_t i = 0; i < f->constants.count; i++) tfc_run_value_release(&f->constants.data[i].value);
  tfc_run_terms_free(f);
  tfc_array_free(&f->dead_exits);
  tfc_array_free(&f->next_roots);
  tfc_array_free(&f->constants);
  tfc_array_free(&f->parked);
  if (f->next) f->next->previous = f->previous;
  if (f->previous)
    f->previous->next = f->next;
  else
    r->frames = f->next;
  free(f);
}

static void share(const struct tfc_run_value *from, struct tfc_run_value *to) {
  tfc_run_value_move(from, to);
  tfc_buffer_retain(to->t.buffer);
}

// Records a dead Exit. It is dead in every iteration but the last, so its readers outside get it only when the frame
// has ended.
static void end_dead_exit(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_frame *f,
                          struct tfc_run_iteration *it) {
  it->pending[n->local] = TFC_RUN_DONE;
  if (it->number == f->count && !tfc_array_push(&f->dead_exits, n))
    tfc_run_fail(r, tfc_status_no_memory("running a step"));
}

// Passes a node's outputs to its consumers in one iteration. `outs[i].live`: output i is not dead.
static void activate(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_frame *f,
                     struct tfc_run_iteration *it, struct tfc_run_value *outs, bool dead) {
  bool from_enter = n->def && n->def->flags & TFC_OP_ENTER;
  for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
    const struct tfc_dedge *edge = &r->d->edges[e];
    const struct tfc_dnode *to = &r->d->nodes[edge->to];
    uint32_t *pending = &it->pending[to->local];
    bool control = edge->output < 0, live = !control && !dead && outs[edge->output].live, is_ready, is_dead = false;
    bool takes = live;
    if (to->kind == TFC_DNODE_MERGE) {
      if (control) {
        *pending -= 2;
        is_dead = it->dead[to->local] == to->input_count;
        is_ready = *pending == 0 || (*pending == 1 && is_dead);
      } else if (live) {
        takes = *pending != TFC_RUN_DONE && *pending & 1; // a Merge takes only the first live input
        is_ready = takes && *pending == 1;
        if (takes) *pending &= ~1u;
      } else {
        it->dead[to->local]++;
        is_dead = it->dead[to->local] == to->input_count || from_enter;
        is_ready = *pending == 1 && is_dead;
      }
    } else {
      if (control ? dead : !live) it->dead[to->local]++;
      is_ready = --*pending == 0;
      is_dead = it->dead[to->local] > 0 && !to->is_trigger;
    }
    if (takes) {
      struct tfc_run_value *in = &it->values[edge->value];
      if (edge->last) {
        tfc_run_value_move(&outs[edge->output], in);
        outs[edge->output].t.buffer = NULL;
      } else {
        share(&outs[edge->output], in);
      }
    }
    if (!is_ready) continue;
    if (is_dead && to->is_exit)
      end_dead_exit(r, to, f, it);
    else
      tfc_run_make_ready(r, to, f, it, is_dead);
  }
}

static void activate_copy(struct tfc_run *r, const struct tfc_run_deferred *c, struct tfc_run_frame *f,
                          struct tfc_run_iteration *it) {
  struct tfc_run_value v = {0};
  if (!c->dead) share(&c->value, &v);
  activate(r, c->node, f, it, &v, c->dead);
  if (!c->dead) tfc_run_value_release(&v);
}

static void next_iteration(struct tfc_run *r, struct tfc_run_frame *f) {
  f->count++;
  struct tfc_run_iteration *it = new_iteration(r, f, f->count);
  if (!it) return;
  f->dead_exits.count = 0;
  size_t roots = f->next_roots.count;
  for (size_t i = 0; i < roots; i++) {
    struct tfc_run_deferred d = f->next_roots.data[i];
    activate(r, d.node, f, it, &d.value, false);
    tfc_run_value_release(&d.value);
  }
  f->next_roots.count = 0;
  for (size_t i = 0; i < f->constants.count; i++) activate_copy(r, &f->constants.data[i], f, it);
}

static bool iteration_done(const struct tfc_run_frame *f, const struct tfc_run_iteration *it) {
  if (it->outstanding || it->children) return false;
  return it->number == 0 ? f->pending_enters == 0 : !tfc_run_iteration(f, it->number - 1);
}

static void settle(struct tfc_run *r, struct tfc_run_frame *f, struct tfc_run_iteration *it) {
  while (f->parent && !r->failed && iteration_done(f, it)) {
    int64_t number = it->number;
    for (; number <= f->count && (it = tfc_run_iteration(f, number)) && iteration_done(f, it); number++) {
      free_iteration(r, f, it);
      if (f->next_roots.count) next_iteration(r, f);
      if (r->failed) return;
    }
    if (f->pending_enters || f->outstanding) return;
    // The frame has ended: its dead Exits make their readers outside dead.
    struct tfc_run_frame *parent = f->parent;
    struct tfc_run_iteration *outside = f->parent_iteration;
    for (size_t i = 0; i < f->dead_exits.count; i++) activate(r, f->dead_exits.data[i], parent, outside, NULL, true);
    for (struct tfc_run_frame **c = &outside->first_child; *c; c = &(*c)->sibling)
      if (*c == f) {
        *c = f->sibling;
        break;
      }
    outside->children--;
    tfc_run_frame_free(r, f);
    f = parent;
    it = outside;
  }
}

// An ordered node has run in one iteration; now it may run in the next one.
static void pass_turn(struct tfc_run *r, const struct tfc_run_item *item) {
  struct tfc_run_frame *f = item->frame;
  f->turns[item->node->ordered - 1] = item->iteration->number + 1;
  for (size_t i = 0; i < f->parked.count; i++) {
    struct tfc_run_item next = f->parked.data[i];
    if (next.node != item->node || next.iteration->number > item->iteration->number + 1) continue;
    f->parked.data[i] = f->parked.data[--f->parked.count];
    r->parked--;
    if (!tfc_array_push(&r->ready, next)) tfc_run_fail(r, tfc_status_no_memory("running a step"));
    return;
  }
}

static const struct tfc_run_deferred *keep(struct tfc_run *r, const struct tfc_run_item *enter, struct tfc_run_frame *f,
                                           struct tfc_run_value *outs) {
  struct tfc_run_deferred c = {.node = enter->node, .dead = enter->dead};
  if (!c.dead) {
    c.value = outs[0];
    outs[0].t.buffer = NULL;
  }
  if (tfc_array_push(&f->constants, c)) return &f->constants.data[f->constants.count - 1];
  tfc_run_value_release(&c.value);
  tfc_run_fail(r, tfc_status_no_memory("running a step"));
  return NULL;
}

// Begins a loop that runs iteration by iteration. All its inputs are live, and are among the frame's constants.
static void begin_loop(struct tfc_run *r, struct tfc_run_frame *f) {
  struct tfc_run_iteration *it = tfc_run_iteration(f, 0);
  size_t kept = 0;
  for (size_t i = 0; i < f->constants.count; i++) {
    struct tfc_run_deferred d = f->constants.data[i], given = d;
    if (d.node->is_constant) {
      tfc_buffer_retain(d.value.t.buffer); // a second reference, so that no operation computes in place in it
      f->constants.data[kept++] = d;
    }
    tfc_run_hand_on(r, d.node, it, 0, &given.value);
  }
  f->constants.count = kept;
  tfc_run_make_ready(r, &f->f->loop->start, f, it, false);
}

// Counts an input that has entered a loop. When all inputs have, the loop begins; if one of them is dead, it runs in
// ready order.
static void enter_loop(struct tfc_run *r, const struct tfc_run_item *enter, struct tfc_run_frame *f,
                       struct tfc_run_value *outs) {
  struct tfc_run_iteration *first = tfc_run_iteration(f, 0);
  bool dead = false;
  size_t kept = 0;
  if (!keep(r, enter, f, outs) || f->pending_enters > 1) return;
  for (size_t i = 0; i < f->constants.count; i++) dead = dead || f->constants.data[i].dead;
  if (!dead) {
    begin_loop(r, f);
    return;
  }
  for (size_t i = 0; i < f->constants.count; i++) {
    struct tfc_run_deferred c = f->constants.data[i];
    activate_copy(r, &c, f, first);
    if (c.node->is_constant)
      f->constants.data[kept++] = c;
    else
      tfc_run_value_release(&c.value);
  }
  f->constants.count = kept;
}

void tfc_run_propagate(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_frame *f = item->frame;
  struct tfc_run_iteration *it = item->iteration;
  uint32_t flags = n->def ? n->def->flags : 0;
  it->pending[n->local] = TFC_RUN_DONE;
  if (n->ordered) pass_turn(r, item);
  if (f->index == 0) r->root_done++;
  struct tfc_run_frame *child = NULL;
  if (flags & TFC_OP_ENTER) {
    for (child = it->first_child; child && child->index != n->enters;) child = child->sibling;
    if (!child && !(child = tfc_run_frame_create(r, n->enters, f, it))) return;
    if (child->f->loop) {
      enter_loop(r, item, child, outs);
    } else if (n->is_constant) {
      const struct tfc_run_deferred *c = keep(r, item, child, outs);
      for (int64_t k = 0; c && k <= child->count; k++) {
        struct tfc_run_iteration *inside = tfc_run_iteration(child, k);
        if (inside) activate_copy(r, c, child, inside);
      }
    } else {
      activate(r, n, child, tfc_run_iteration(child, 0), outs, item->dead);
    }
    child->pending_enters--;
  } else if (flags & TFC_OP_EXIT) {
    activate(r, n, f->parent, f->parent_iteration, outs, false); // not dead: end_dead_exit handles dead Exits
  } else if (flags & TFC_OP_NEXT_ITERATION) {
    if (!item->dead) {
      if (it->number == f->count && f->outstanding == f->f->parallel) {
        struct tfc_run_deferred d = {.node = n, .value = outs[0]};
        outs[0].t.buffer = NULL;
        if (!tfc_array_push(&f->next_roots, d)) {
          tfc_run_value_release(&d.value);
          tfc_run_fail(r, tfc_status_no_memory("running a step"));
        }
      } else {
        if (it->number == f->count) next_iteration(r, f);
        struct tfc_run_iteration *next = tfc_run_iteration(f, it->number + 1);
        if (next) activate(r, n, f, next, outs, false);
      }
    }
  } else {
    activate(r, n, f, it, outs, item->dead);
  }
  if (child && !r->failed) {
    struct tfc_run_iteration *first = tfc_run_iteration(child, 0);
    if (first) settle(r, child, first); // before `it` may be freed, below
  }
  it->outstanding--;
  settle(r, f, it);
}
