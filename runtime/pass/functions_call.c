// What all kinds of lowering do at the calling node: they add nodes with its name as prefix, make these wait for its
// control inputs, and replace the node itself.
#include <stdlib.h>

#include "runtime/pass/functions_internal.h"

struct tfc_output tfc_lowering_add(struct tfc_lowering *l, const struct tfc_call_site *at, const char *op,
                                   const char *suffix, const struct tfc_output *inputs, uint32_t count,
                                   const uint32_t *controls, uint32_t control_count, const struct tfc_attr *attrs,
                                   uint32_t attr_count) {
  tfc_str name = tfc_arena_printf(tfc_builder_arena(l->b), "%.*s/%s", TFC_STR_ARG(at->name), suffix);
  uint32_t id = tfc_builder_add(l->b, &(struct tfc_node_spec){.op = op,
                                                              .name = name.data,
                                                              .inputs = inputs,
                                                              .input_count = count,
                                                              .controls = controls,
                                                              .control_count = control_count,
                                                              .attrs = attrs,
                                                              .attr_count = attr_count,
                                                              .device = at->device});
  return (struct tfc_output){id, 0};
}

tfc_status tfc_lowering_check(struct tfc_lowering *l, uint32_t id, tfc_str function, const struct tfc_output *results,
                              uint32_t count) {
  const uint32_t outputs = tfc_builder_node(l->b, id)->output_count;
  TFC_RETURN_IF_ERROR(tfc_status_clone(tfc_builder_status(l->b)));
  if (count != outputs)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "function '%.*s' has %u results, but %u are asked for",
                           TFC_STR_ARG(function), count, outputs);
  for (uint32_t i = 0; i < count; i++) {
    const tfc_dtype is = tfc_dtype_base(tfc_builder_dtype(l->b, results[i]));
    const tfc_dtype asked = tfc_dtype_base(tfc_builder_dtype(l->b, (struct tfc_output){id, (int32_t)i}));
    if (is && asked && is != asked)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "result %u of function '%.*s' is %s, but %s is asked for", i,
                             TFC_STR_ARG(function), tfc_dtype_name(is), tfc_dtype_name(asked));
  }
  return NULL;
}

// --- The calling node ------------------------------------------------------------------------------------------------
tfc_status tfc_lowering_settle(struct tfc_lowering *l, uint32_t id, const struct tfc_output *results, uint32_t done,
                               bool is_loop) {
  const struct tfc_node *n = tfc_builder_node(l->b, id);
  uint32_t outputs = n->output_count, count = 0;
  uint32_t *controls = calloc((size_t)n->control_count + 2, sizeof *controls);
  if (!controls) return tfc_status_no_memory("lowering functions");
  for (uint32_t k = 0; k < n->control_count; k++)
    controls[count++] = tfc_builder_input(l->b, id, n->input_count + k).node;
  if (done != TFC_NONE) controls[count++] = done;
  struct tfc_attr attrs[2];
  uint32_t attr_count = 0;
  const struct tfc_attr *key = tfc_builder_attr(l->b, id, "_tfc_key");
  if (key) attrs[attr_count++] = *key;
  if (is_loop) attrs[attr_count++] = tfc_attr_bool(TFC_LOWERED_LOOP, true);
  tfc_builder_replace(l->b, id,
                      &(struct tfc_node_spec){.op = !outputs       ? "NoOp"
                                                    : outputs == 1 ? "Identity"
                                                                   : "IdentityN",
                                              .name = "lowered",
                                              .inputs = results,
                                              .input_count = outputs,
                                              .controls = controls,
                                              .control_count = count,
                                              .attrs = attrs,
                                              .attr_count = attr_count});
  free(controls);
  return tfc_status_clone(tfc_builder_status(l->b));
}

// Returns a node that waits for all of the caller's control inputs; TFC_NONE: the caller has none.
uint32_t tfc_lowering_control(struct tfc_lowering *l, const struct tfc_call_site *at) {
  const struct tfc_node *n = tfc_builder_node(l->b, at->caller);
  uint32_t inputs = n->input_count, count = n->control_count;
  if (!count) return TFC_NONE;
  uint32_t *controls = calloc(count, sizeof *controls);
  if (!controls) {
    tfc_builder_fail(l->b, tfc_status_no_memory("lowering functions"));
    return TFC_NONE;
  }
  for (uint32_t k = 0; k < count; k++) controls[k] = tfc_builder_input(l->b, at->caller, inputs + k).node;
  uint32_t id = tfc_lowering_add(l, at, "NoOp", "begin", NULL, 0, controls, count, NULL, 0).node;
  free(controls);
  return id;
}

tfc_status tfc_lowering_func(struct tfc_lowering *l, uint32_t id, const char *name, const struct tfc_func_attr **out) {
  const struct tfc_attr *a = tfc_builder_attr(l->b, id, name);
  if (!a || a->kind != TFC_ATTR_FUNC) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' is missing", name);
  *out = a->func;
  return NULL;
}
