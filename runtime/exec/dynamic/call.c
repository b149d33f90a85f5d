// Runs functions of the library that kernels call, inside of the step, with a plan for each body and device.
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/dynamic/run.h"

static tfc_status function_plan(struct tfc_run *r, const struct tfc_function *fn, uint16_t device, uint64_t states,
                                struct tfc_plan **out) {
  tfc_status s = NULL;
  struct tfc_session *session = r->session;
  struct tfc_output *feeds = NULL, *fetches = NULL;
  uint32_t *targets = NULL, target_count = 0;
  uint16_t *placement = NULL;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->function_plans.count && !*out; i++) {
    struct tfc_plan *p = session->function_plans.data[i];
    if (p->ir.graph == fn->body && p->function_device == device && p->function_states == states) *out = p;
  }
  pthread_mutex_unlock(&session->lock);
  if (*out) return NULL;
  const struct tfc_graph *g = fn->body;
  feeds = calloc(fn->arg_count + 1u, sizeof *feeds);
  fetches = calloc(fn->ret_count + 1u, sizeof *fetches);
  targets = calloc(g->node_count + fn->control_ret_count + 1u, sizeof *targets);
  placement = calloc(g->node_count + 1u, sizeof *placement);
  if (!feeds || !fetches || !targets || !placement) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < fn->arg_count; i++) feeds[i] = (struct tfc_output){fn->args[i], 0};
  for (uint32_t i = 0; i < fn->ret_count; i++) fetches[i] = tfc_node_inputs(g, &g->nodes[fn->rets[i]])[0];
  for (uint32_t i = 0; i < fn->control_ret_count; i++) targets[target_count++] = fn->control_rets[i];
  for (uint32_t i = 0; i < g->node_count; i++) { // operations with an effect run even if nothing reads them
    placement[i] = device;
    const struct tfc_op_def *def = g->nodes[i].def;
    if (def && def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE) && !(def->flags & TFC_OP_VARIABLE) && !def->node_state)
      targets[target_count++] = i;
  }
  struct tfc_run_spec spec = {.feeds = feeds,
                              .feed_count = fn->arg_count,
                              .fetches = fetches,
                              .fetch_count = fn->ret_count,
                              .targets = targets,
                              .target_count = target_count,
                              .placement = placement,
                              .states = states,
                              .dynamic = true};
  struct tfc_plan *plan = NULL;
  TFC_TRY(s, session->planner->create(session, g, &spec, &plan));
  plan->function_device = device, plan->function_states = states;
  pthread_mutex_lock(&session->lock);
  bool kept = tfc_array_push(&session->function_plans, plan);
  pthread_mutex_unlock(&session->lock);
  if (!kept) {
    session->planner->free(plan);
    TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  *out = plan;
out:
  free(feeds);
  free(fetches);
  free(targets);
  free(placement);
  return s;
}

// Calls within calls use the stack of one thread: an endless recursion must end with an error before the stack is full.
#ifdef TFC_SANITIZED
// Stack frames are larger with a sanitizer, so fewer nested calls are allowed.
enum { DEEPEST_CALL = 200, NAMED_CALLS = 4, SHOWN = 400 };
#else
enum { DEEPEST_CALL = 2000, NAMED_CALLS = 4, SHOWN = 400 };
#endif
static _Thread_local int depth;

// Shortens an error that passed through many nested calls: keeps its first and its last nodes.
static tfc_status shortened(tfc_status s) {
  const char *message = s ? tfc_status_message(s) : "";
  const size_t size = strlen(message);
  if (size <= SHOWN) return s;
  tfc_status end = tfc_status_make(tfc_status_code(s), "... %s", message + size - SHOWN);
  tfc_status_free(s);
  return end;
}

tfc_status tfc_dynamic_call(struct tfc_kernel_env *env, const struct tfc_func_attr *func,
                            const struct tfc_tensor *inputs, uint32_t input_count, struct tfc_tensor *outputs,
                            uint32_t output_count) {
  struct tfc_run *r = env->owner;
  const struct tfc_function *fn = tfc_graph_function(r->session->graph, func->name);
  struct tfc_plan *plan = NULL;
  if (!fn) return tfc_status_make(TFC_NOT_FOUND, "there is no function '%.*s'", TFC_STR_ARG(func->name));
  if (fn->arg_count != input_count || fn->ret_count != output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "function '%.*s' has %u parameters and %u results, called with %u and %u",
                           TFC_STR_ARG(func->name), fn->arg_count, fn->ret_count, input_count, output_count);
  for (uint32_t i = 0; i < input_count; i++) {
    const tfc_dtype declared = fn->arg_types[i] ? tfc_dtype_base(fn->arg_types[i]) : inputs[i].dtype;
    if (inputs[i].dtype != declared)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "parameter %u of function '%.*s' must be %s, but is %s", i,
                             TFC_STR_ARG(func->name), tfc_dtype_name(declared), tfc_dtype_name(inputs[i].dtype));
  }
  TFC_RETURN_IF_ERROR(function_plan(r, fn, env->device->index, env->states, &plan));
  if (depth == DEEPEST_CALL)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "function '%.*s': functions call each other %d deep; a recursion has to end before that",
                           TFC_STR_ARG(func->name), DEEPEST_CALL);
  struct tfc_dynamic_parent parent = r->self;
  parent.run = r, parent.states = env->states;
  depth++;
  tfc_status s = tfc_plan_run_inside(plan, &parent, inputs, outputs);
  depth--;
  if (depth >= NAMED_CALLS) return depth == NAMED_CALLS ? shortened(s) : s;
  return tfc_status_annotate(s, "function '%.*s'", TFC_STR_ARG(func->name));
}
