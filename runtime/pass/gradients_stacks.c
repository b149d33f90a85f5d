// Gradients of gradients of loops. A loop keeps values for its gradient on stacks, which take them from one loop to
// another. Their gradients go the opposite way: the gradient of the popping loop visits the iterations in the order of
// the pushes, and pushes the gradients of the popped values onto a stack of its own. The gradient of the pushing loop
// begins when that stack is complete, and pops from it.
#include "runtime/pass/gradients_internal.h"

static uint32_t source_of(const struct tfc_graph *g, struct tfc_output o) {
  for (;;) {
    const struct tfc_node *n = &g->nodes[o.node];
    uint32_t flags = n->def ? n->def->flags : 0;
    bool passes = flags & (TFC_OP_ENTER | TFC_OP_SWITCH) || tfc_gradients_is_identity(n);
    if (!passes || !n->input_count) return o.node;
    o = tfc_node_inputs(g, n)[0];
  }
}

tfc_status tfc_gradients_find_stacks(struct tfc_gradients *e) {
  e->stack_uses.count = 0;
  for (uint32_t i = 0; i < e->g->node_count; i++) {
    const struct tfc_node *n = &e->g->nodes[i];
    bool pops = tfc_node_role(n) == TFC_ROLE_POP;
    if (!n->input_count || (!pops && tfc_node_role(n) != TFC_ROLE_PUSH)) continue;
    struct tfc_grad_stack_use use = {source_of(e->g, tfc_node_inputs(e->g, n)[0]), i, pops};
    if (!tfc_array_push(&e->stack_uses, use)) return tfc_status_no_memory("gradients");
  }
  return NULL;
}

static uint32_t outermost(const struct tfc_gradients *e, uint32_t loop) {
  while (loop && e->frames.frames[loop].parent) loop = e->frames.frames[loop].parent;
  return loop;
}

static bool needs_no_more(const struct tfc_guards *a, const struct tfc_guards *than) {
  for (uint32_t i = 0; i < a->count; i++) {
    bool found = false;
    for (uint32_t k = 0; k < than->count; k++)
      found |= a->items[i].pred.node == than->items[k].pred.node &&
               a->items[i].pred.index == than->items[k].pred.index && a->items[i].side == than->items[k].side;
    if (!found) return false;
  }
  return true;
}

tfc_status tfc_gradients_pair_stacks(struct tfc_gradients *e) {
  for (size_t i = 0; i < e->stack_uses.count; i++) {
    const struct tfc_grad_stack_use *pop = &e->stack_uses.data[i], *push = NULL;
    if (!pop->pops || !e->between[pop->node]) continue;
    uint32_t uses = 0;
    for (size_t k = 0; k < e->stack_uses.count; k++) {
      if (e->stack_uses.data[k].stack != pop->stack) continue;
      uses++;
      if (!e->stack_uses.data[k].pops) push = &e->stack_uses.data[k];
    }
    if (!push) continue;
    struct tfc_grad_stack pair = {.push = push->node, .pop = pop->node, .gradient = TFC_NO_OUTPUT};
    pair.from = outermost(e, e->frames.of_node[pair.push]);
    pair.to = outermost(e, e->frames.of_node[pair.pop]);
    bool loops = pair.from && pair.to && pair.from != pair.to;
    if (uses != 2 || !loops || !needs_no_more(&e->frames.frames[pair.to].around, &e->frames.frames[pair.from].around))
      return tfc_status_make(TFC_UNIMPLEMENTED, "gradients: node '%.*s' pops what node '%.*s' pushed%s",
                             TFC_STR_ARG(e->g->nodes[pair.pop].name), TFC_STR_ARG(e->g->nodes[pair.push].name),
                             loops ? ", and so do others, or a branch alone" : ", not from one loop to another");
    if (!tfc_array_push(&e->stacks, pair)) return tfc_status_no_memory("gradients");
    e->loops[pair.from].waits++;
    for (uint32_t loop = e->frames.of_node[pair.push]; loop; loop = e->frames.frames[loop].parent)
      e->loops[loop].keeps = true;
  }
  return NULL;
}

static struct tfc_grad_stack *find(struct tfc_gradients *e, uint32_t id) {
  for (size_t i = 0; i < e->stacks.count; i++)
    if (e->stacks.data[i].push == id || e->stacks.data[i].pop == id) return &e->stacks.data[i];
  return NULL;
}

tfc_status tfc_gradients_of_pop(struct tfc_gradients *e, uint32_t id, uint32_t frame) {
  struct tfc_grad_stack *pair = find(e, id);
  uint32_t loop = e->frames.of_node[id], first = tfc_builder_node_count(e->b);
  if (!pair) return NULL;
  tfc_str device = e->g->nodes[id].device;
  struct tfc_attr type = tfc_attr_type("elem_type", tfc_dtype_base(e->g->output_dtypes[e->g->nodes[id].output_begin]));
  struct tfc_output most = tfc_add_i32(e->b, -1);
  uint32_t stack = tfc_builder_add(
      e->b, &(struct tfc_node_spec){
                .op = "StackV2", .inputs = &most, .input_count = 1, .attrs = &type, .attr_count = 1, .device = device});
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, 0));
  pair->gradient = (struct tfc_output){stack, 0};
  first = tfc_builder_node_count(e->b);
  struct tfc_output inputs[] = {
      tfc_gradients_guarded(e, pair->gradient, frame, &e->frames.guards[e->g->nodes[id].output_begin]),
      tfc_gradients_to_dense(e, &e->grads[e->g->nodes[id].output_begin].data[0])};
  uint32_t push = tfc_builder_add(e->b, &(struct tfc_node_spec){.op = "StackPushV2",
                                                                .inputs = inputs,
                                                                .input_count = 2,
                                                                .controls = &e->loops[loop].pivot,
                                                                .control_count = 1,
                                                                .device = device});
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, frame));
  tfc_gradients_before_next(e, loop, push);
  return tfc_status_clone(tfc_builder_status(e->b));
}

tfc_status tfc_gradients_of_push(struct tfc_gradients *e, uint32_t id) {
  const struct tfc_node *n = &e->g->nodes[id];
  const struct tfc_grad_stack *pair = find(e, id);
  const struct tfc_grad_list *list = &e->grads[n->output_begin];
  struct tfc_output elem = tfc_node_inputs(e->g, n)[1];
  if (list->count) TFC_RETURN_IF_ERROR(tfc_gradients_push(e, elem, list->data[0]));
  if (!pair || !tfc_output_valid(pair->gradient)) return NULL;
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_output complete = tfc_add1(e->b, "Identity", pair->gradient);
  if (tfc_output_valid(complete)) tfc_builder_add_control(e->b, complete.node, e->loops[pair->to].over);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, 0));
  struct tfc_output g = tfc_gradients_take_back(e, complete, (struct tfc_output){id, 0}, e->frames.of_node[id],
                                                &e->frames.guards[n->output_begin]);
  TFC_RETURN_IF_ERROR(tfc_status_clone(tfc_builder_status(e->b)));
  return tfc_gradients_push(e, elem, tfc_grad_dense(g));
}

bool tfc_gradients_came_by_stack(const struct tfc_gradients *e, uint32_t loop) {
  for (size_t i = 0; i < e->stacks.count; i++) {
    if (!tfc_output_valid(e->stacks.data[i].gradient)) continue;
    for (uint32_t at = e->frames.of_node[e->stacks.data[i].push]; at; at = e->frames.frames[at].parent)
      if (at == loop) return true;
  }
  return false;
}

tfc_status tfc_gradients_begin_pushed(struct tfc_gradients *e, uint32_t loop, uint32_t frame) {
  for (size_t i = 0; i < e->stacks.count; i++) {
    uint32_t push = e->stacks.data[i].push;
    if (e->frames.of_node[push] == loop && !e->pending[push] && !tfc_array_push(&e->queue->ids, push))
      return tfc_status_no_memory("gradients");
  }
  for (uint32_t inner = 1; inner < e->frames.count; inner++)
    if (e->frames.frames[inner].parent == loop && e->loops[inner].keeps && !e->loops[inner].exits_left)
      TFC_RETURN_IF_ERROR(tfc_gradients_of_loop(e, inner, frame));
  return NULL;
}

tfc_status tfc_gradients_end_popped(struct tfc_gradients *e, uint32_t loop) {
  for (size_t i = 0; i < e->stacks.count; i++) {
    uint32_t from = e->stacks.data[i].from;
    if (e->stacks.data[i].to == loop && --e->loops[from].waits == 0 && !e->loops[from].exits_left)
      TFC_RETURN_IF_ERROR(tfc_gradients_of_loop(e, from, 0));
  }
  return NULL;
}
