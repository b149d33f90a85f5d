// Finds the effects of nodes. The effect of a call is the strongest effect in the body of its function and in all
// functions that this calls.
#include <stdlib.h>

#include "runtime/graph/library.h"
#include "runtime/pass/step_internal.h"

// Returns the strongest of `effect` and the effects of the functions that a node calls.
static tfc_op_effect calls_effect(const struct tfc_graph *library, const struct tfc_graph *g, const struct tfc_node *n,
                                  const uint8_t *of_function, tfc_op_effect effect) {
  const struct tfc_function *f = n->function != TFC_NONE ? tfc_graph_function(library, n->op) : NULL;
  if (f && of_function[f - library->functions] > effect) effect = of_function[f - library->functions];
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const struct tfc_attr *a = &g->attrs[n->attr_begin + i];
    uint32_t count = a->kind == TFC_ATTR_FUNC ? 1 : a->kind == TFC_ATTR_LIST_FUNC ? a->count : 0;
    const struct tfc_func_attr *funcs = a->kind == TFC_ATTR_FUNC ? a->func : a->funcs;
    for (uint32_t k = 0; k < count; k++) {
      f = tfc_graph_function(library, funcs[k].name);
      if (f && of_function[f - library->functions] > effect) effect = of_function[f - library->functions];
    }
  }
  return effect;
}

// Sets out[f] to the effects of function f and of all functions that it calls, directly or through others. To find
// them, each function's effects are added to those of its callers until nothing changes.
static tfc_status function_effects(const struct tfc_graph *g, uint8_t *out) {
  tfc_status s = NULL;
  const uint32_t count = g->function_count;
  struct tfc_library_calls calls = {0};
  TFC_TRY(s, tfc_library_calls(g, &calls));
  for (uint32_t f = 0; f < count; f++) {
    const struct tfc_graph *body = g->functions[f].body;
    out[f] = TFC_EFFECT_NONE;
    for (uint32_t i = 0; body && i < body->node_count; i++) {
      const tfc_op_effect effect = tfc_node_effect(&body->nodes[i]);
      if (effect > out[f]) out[f] = (uint8_t)effect;
    }
  }
  TFC_TRY(s, tfc_library_raise(count, &calls, out));
out:
  tfc_library_calls_deinit(&calls);
  return s;
}

tfc_status tfc_node_effects(const struct tfc_graph *g, uint8_t *out) {
  const struct tfc_graph *library = g->library ? g->library : g;
  uint8_t *of_function = calloc(library->function_count + 1u, 1);
  tfc_status s = of_function ? function_effects(library, of_function) : tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < g->node_count && !s; i++) {
    const tfc_op_effect effect = tfc_node_effect(&g->nodes[i]);
    out[i] =
        (uint8_t)(effect != TFC_EFFECT_NONE ? effect : calls_effect(library, g, &g->nodes[i], of_function, effect));
  }
  free(of_function);
  return s;
}
