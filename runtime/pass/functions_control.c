// If and Case become Switch and Merge, While becomes a frame.
#include <stdlib.h>

#include "runtime/pass/frames.h"
#include "runtime/pass/functions_internal.h"
#include "runtime/pass/pass.h"

// Puts a constant into the frame and the branch of `x`, by a control edge from `x`.
static struct tfc_output near(struct tfc_lowering *l, struct tfc_output constant, struct tfc_output x) {
  if (tfc_output_valid(constant) && tfc_output_valid(x)) tfc_builder_add_control(l->b, constant.node, x.node);
  return constant;
}

// Converts a scalar to bool, by TensorFlow's rules.
static tfc_status truth(struct tfc_lowering *l, const struct tfc_call_site *at, struct tfc_output x,
                        struct tfc_output *out) {
  tfc_dtype type = tfc_builder_dtype(l->b, x);
  *out = x;
  if (type == TFC_BOOL) return NULL;
  if (!tfc_dtype_is_integer(type) && !tfc_dtype_is_floating(type))
    return tfc_status_make(TFC_UNIMPLEMENTED, "a condition of type %s", tfc_dtype_name(type));
  struct tfc_output zero = near(l, tfc_add_scalar(l->b, type, 0), x);
  *out = tfc_lowering_add(l, at, "NotEqual", "truth", (struct tfc_output[]){x, zero}, 2, NULL, 0, NULL, 0);
  return NULL;
}

// Lowers one branch, which is alive if `pred` has the value `side`: its parameters come through a Switch, and
// everything else waits for the pivot.
static tfc_status lower_branch(struct tfc_lowering *l, const struct tfc_call_site *at, const char *name,
                               struct tfc_output pred, int32_t side, uint32_t begin, const struct tfc_func_attr *func,
                               struct tfc_inlined *out) {
  tfc_status s = NULL;
  struct tfc_call_site branch = *at;
  struct tfc_output *args = calloc((size_t)at->arg_count + 1, sizeof *args);
  uint32_t controls = begin != TFC_NONE;
  if (!args) return tfc_status_no_memory("lowering functions");
  branch.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/%s", TFC_STR_ARG(at->name), name);
  struct tfc_output pivot = tfc_lowering_add(l, &branch, "Switch", "switch_pred", (struct tfc_output[]){pred, pred}, 2,
                                             &begin, controls, NULL, 0);
  pivot.index = side;
  branch.control = tfc_lowering_add(l, &branch, "Identity", "pivot", &pivot, 1, NULL, 0, NULL, 0).node;
  for (uint32_t i = 0; i < at->arg_count; i++) {
    args[i] = tfc_lowering_add(l, &branch, "Switch", "switch", (struct tfc_output[]){at->args[i], pred}, 2, &begin,
                               controls, NULL, 0);
    args[i].index = side;
  }
  branch.args = args;
  branch.strict = false;
  branch.attrs = func->attrs;
  branch.attr_count = func->attr_count;
  TFC_TRY(s, tfc_lowering_inline_call(l, &branch, func->name, out));
  TFC_TRY(s, tfc_lowering_check(l, at->caller, func->name, out->results, out->result_count));
  // This node runs after the branch, and is alive if the branch is.
  uint32_t waits[2] = {branch.control, out->done};
  out->done =
      tfc_lowering_add(l, &branch, "Identity", "over", &pivot, 1, waits, out->done == TFC_NONE ? 1 : 2, NULL, 0).node;
out:
  free(args);
  return s;
}

static tfc_status merge_branches(struct tfc_lowering *l, const struct tfc_call_site *at,
                                 const struct tfc_inlined *branches, uint32_t count) {
  tfc_status s = NULL;
  uint32_t outputs = tfc_builder_node(l->b, at->caller)->output_count;
  struct tfc_output *merged = calloc((size_t)outputs + 1, sizeof *merged), *in = calloc((size_t)count + 1, sizeof *in);
  if (!merged || !in) TFC_TRY(s, tfc_status_no_memory("lowering functions"));
  for (uint32_t i = 0; i < outputs; i++) {
    for (uint32_t k = 0; k < count; k++) in[k] = branches[k].results[i];
    merged[i] = tfc_lowering_add(l, at, "Merge", "merge", in, count, NULL, 0, NULL, 0);
  }
  for (uint32_t k = 0; k < count; k++) in[k] = (struct tfc_output){branches[k].done, 0};
  uint32_t over = tfc_lowering_add(l, at, "Merge", "over", in, count, NULL, 0, NULL, 0).node;
  s = tfc_status_clone(tfc_builder_status(l->b));
  if (!s) s = tfc_lowering_settle(l, at->caller, merged, over, false);
out:
  free(merged);
  free(in);
  return s;
}

tfc_status tfc_lowering_if(struct tfc_lowering *l, struct tfc_call_site *at) {
  const struct tfc_func_attr *then_func = NULL, *else_func = NULL;
  struct tfc_inlined branches[2];
  struct tfc_output pred = at->args[0];
  TFC_RETURN_IF_ERROR(tfc_lowering_func(l, at->caller, "then_branch", &then_func));
  TFC_RETURN_IF_ERROR(tfc_lowering_func(l, at->caller, "else_branch", &else_func));
  TFC_RETURN_IF_ERROR(truth(l, at, pred, &pred));
  uint32_t begin = tfc_lowering_control(l, at);
  at->args++;
  at->arg_count--;
  TFC_RETURN_IF_ERROR(lower_branch(l, at, "else", pred, 0, begin, else_func, &branches[0]));
  TFC_RETURN_IF_ERROR(lower_branch(l, at, "then", pred, 1, begin, then_func, &branches[1]));
  return merge_branches(l, at, branches, 2);
}

tfc_status tfc_lowering_case(struct tfc_lowering *l, struct tfc_call_site *at) {
  tfc_status s = NULL;
  const struct tfc_attr *list = tfc_builder_attr(l->b, at->caller, "branches");
  if (!list || list->kind != TFC_ATTR_LIST_FUNC || !list->count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute 'branches' is missing");
  uint32_t n = list->count, begin = tfc_lowering_control(l, at);
  const struct tfc_func_attr *funcs = list->funcs;
  struct tfc_inlined *branches = calloc(n, sizeof *branches);
  if (!branches) return tfc_status_no_memory("lowering functions");
  // An index out of range selects the last branch.
  struct tfc_output index = at->args[0];
  struct tfc_output zero = near(l, tfc_add_i32(l->b, 0), index);
  struct tfc_output last = near(l, tfc_add_i32(l->b, (int32_t)n - 1), index);
  struct tfc_output below = tfc_add2(l->b, "Less", index, zero);
  index = tfc_add2(l->b, "Minimum", tfc_add3(l->b, "SelectV2", below, last, index), last);
  at->args++;
  at->arg_count--;
  for (uint32_t k = 0; k < n; k++) {
    tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "branch_%u", k);
    struct tfc_output pred = tfc_add2(l->b, "Equal", index, near(l, tfc_add_i32(l->b, (int32_t)k), index));
    TFC_TRY(s, lower_branch(l, at, name.data, pred, 1, begin, &funcs[k], &branches[k]));
  }
  s = merge_branches(l, at, branches, n);
out:
  free(branches);
  return s;
}

// Whether result i of the body is parameter i itself; then the loop does not change it.
static bool is_invariant(const struct tfc_function *body, uint32_t i) {
  struct tfc_output in = tfc_node_inputs(body->body, &body->body->nodes[body->rets[i]])[0];
  return in.node == body->args[i];
}

tfc_status tfc_lowering_while(struct tfc_lowering *l, struct tfc_call_site *at) {
  tfc_status s = NULL;
  const struct tfc_func_attr *cond = NULL, *body = NULL;
  TFC_RETURN_IF_ERROR(tfc_lowering_func(l, at->caller, "cond", &cond));
  TFC_RETURN_IF_ERROR(tfc_lowering_func(l, at->caller, "body", &body));
  const struct tfc_function *fn = tfc_graph_function(l->library, body->name);
  const struct tfc_function *test = tfc_graph_function(l->library, cond->name);
  uint32_t n = at->arg_count, begin = tfc_lowering_control(l, at), pivot = TFC_NONE, variables = 0;
  if (!fn || !fn->body || !test || !test->body || fn->ret_count != n || fn->arg_count != n || !test->ret_count)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a loop whose body is missing or does not fit");
  const struct tfc_attr *parallel = tfc_builder_attr(l->b, at->caller, "parallel_iterations");
  struct tfc_output *memory = calloc(5 * ((size_t)n + 1), sizeof *memory);
  if (!memory) return tfc_status_no_memory("lowering functions");
  struct tfc_output *merges = memory, *switches = merges + n + 1, *inside = switches + n + 1, *exits = inside + n + 1;
  struct tfc_attr attrs[] = {
      tfc_attr_string("frame_name", at->name), tfc_attr_bool("is_constant", false),
      tfc_attr_int("parallel_iterations", parallel && parallel->kind == TFC_ATTR_INT ? parallel->i : 10)};
  for (uint32_t i = 0; i < n; i++) {
    bool invariant = is_invariant(fn, i);
    attrs[1].b = invariant;
    struct tfc_output enter =
        tfc_lowering_add(l, at, "Enter", "enter", &at->args[i], 1, &begin, begin != TFC_NONE, attrs, 3);
    if (invariant) tfc_lowering_set_steady(l, enter.node);
    merges[i] =
        invariant ? enter
                  : tfc_lowering_add(l, at, "Merge", "merge", (struct tfc_output[]){enter, enter}, 2, NULL, 0, NULL, 0);
    variables += !invariant;
    if (!invariant && pivot == TFC_NONE) pivot = merges[i].node;
  }
  if (!variables) TFC_FAIL(s, TFC_UNIMPLEMENTED, "a loop that changes nothing");
  struct tfc_call_site part = *at;
  struct tfc_inlined result;
  part.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/cond", TFC_STR_ARG(at->name));
  part.args = merges;
  part.control = pivot;
  part.strict = false;
  part.attrs = cond->attrs, part.attr_count = cond->attr_count;
  TFC_TRY(s, tfc_lowering_inline_call(l, &part, cond->name, &result));
  struct tfc_output condition;
  TFC_TRY(s, truth(l, &part, result.results[0], &condition));
  condition =
      tfc_lowering_add(l, at, "LoopCond", "loop_cond", &condition, 1, &result.done, result.done != TFC_NONE, NULL, 0);
  uint32_t body_pivot = TFC_NONE;
  for (uint32_t i = 0; i < n; i++) {
    inside[i] = merges[i];
    if (is_invariant(fn, i)) continue;
    switches[i] =
        tfc_lowering_add(l, at, "Switch", "switch", (struct tfc_output[]){merges[i], condition}, 2, NULL, 0, NULL, 0);
    struct tfc_output taken = {switches[i].node, 1};
    inside[i] = tfc_lowering_add(l, at, "Identity", "in", &taken, 1, NULL, 0, NULL, 0);
    if (body_pivot == TFC_NONE) body_pivot = inside[i].node;
  }
  part.name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/body", TFC_STR_ARG(at->name));
  part.args = inside;
  part.control = body_pivot;
  part.attrs = body->attrs, part.attr_count = body->attr_count;
  TFC_TRY(s, tfc_lowering_inline_call(l, &part, body->name, &result));
  TFC_TRY(s, tfc_lowering_check(l, at->caller, body->name, result.results, result.result_count));
  for (uint32_t i = 0; i < n; i++) {
    if (is_invariant(fn, i)) continue;
    struct tfc_output next = tfc_lowering_add(l, at, "NextIteration", "next", &result.results[i], 1, &result.done,
                                              result.done != TFC_NONE, NULL, 0);
    tfc_builder_set_input(l->b, merges[i].node, 1, next);
    exits[i] = tfc_lowering_add(l, at, "Exit", "exit", &switches[i], 1, NULL, 0, NULL, 0);
  }
  s = tfc_status_clone(tfc_builder_status(l->b));
  // The loop has ended when any of its variables has left it.
  uint32_t over = TFC_NONE;
  for (uint32_t i = 0; i < n && over == TFC_NONE; i++)
    if (!is_invariant(fn, i)) over = exits[i].node;
  for (uint32_t i = 0; i < n; i++)
    if (is_invariant(fn, i)) exits[i] = tfc_lowering_add(l, at, "Identity", "same", &at->args[i], 1, &over, 1, NULL, 0);
  if (!s) s = tfc_lowering_settle(l, at->caller, exits, over, true);
out:
  free(memory);
  return s;
}
