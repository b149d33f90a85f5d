// Finds which functions of a library call which, and computes values along calls. Calls may form chains of any length,
// and cycles, so nothing here is recursive.
#include "runtime/graph/library.h"

#include <stdlib.h>

#include "runtime/base/array.h"

struct list {
  uint32_t *data;
  size_t count, capacity;
};

static bool add_name(const struct tfc_graph *g, tfc_str name, struct list *calls) {
  const struct tfc_function *fn = tfc_graph_function(g, name);
  return !fn || tfc_array_push(calls, (uint32_t)(fn - g->functions));
}

static bool add_node(const struct tfc_graph *g, const struct tfc_graph *body, const struct tfc_node *n,
                     struct list *calls) {
  if (!n->def && !add_name(g, n->op, calls)) return false;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const struct tfc_attr *a = &body->attrs[n->attr_begin + i];
    if (a->kind == TFC_ATTR_FUNC && !add_name(g, a->func->name, calls)) return false;
    for (uint32_t k = 0; a->kind == TFC_ATTR_LIST_FUNC && k < a->count; k++)
      if (!add_name(g, a->funcs[k].name, calls)) return false;
  }
  return true;
}

tfc_status tfc_library_calls(const struct tfc_graph *g, struct tfc_library_calls *out) {
  struct list calls = {0};
  uint32_t *first = calloc(g->function_count + 1u, sizeof *first);
  bool ok = first != NULL;
  for (uint32_t f = 0; f < g->function_count && ok; f++) {
    const struct tfc_graph *body = g->functions[f].body;
    for (uint32_t i = 0; body && i < body->node_count && ok; i++) ok = add_node(g, body, &body->nodes[i], &calls);
    first[f + 1] = (uint32_t)calls.count;
  }
  if (!ok) {
    free(first);
    tfc_array_free(&calls);
    return tfc_status_no_memory("the calls of a function library");
  }
  *out = (struct tfc_library_calls){first, calls.data};
  return NULL;
}

void tfc_library_calls_deinit(struct tfc_library_calls *calls) {
  free(calls->first);
  free(calls->callee);
  *calls = (struct tfc_library_calls){0};
}

static uint64_t add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

tfc_status tfc_library_measure(const struct tfc_graph *g, uint64_t *out) {
  tfc_status s = NULL;
  struct tfc_library_calls calls = {0};
  uint8_t *state = calloc(g->function_count + 1u, 1); // 0: not seen, 1: on the stack, 2: done
  uint32_t *stack = calloc(g->function_count + 1u, sizeof *stack), *next = calloc(g->function_count + 1u, sizeof *next);
  if (!state || !stack || !next) TFC_TRY(s, tfc_status_no_memory("a function library"));
  TFC_TRY(s, tfc_library_calls(g, &calls));
  for (uint32_t root = 0; root < g->function_count; root++) {
    uint32_t depth = 0;
    if (!state[root]) stack[depth++] = root, state[root] = 1, next[root] = calls.first[root];
    while (depth) {
      const uint32_t f = stack[depth - 1];
      if (next[f] < calls.first[f + 1]) {
        const uint32_t callee = calls.callee[next[f]++];
        if (!state[callee]) stack[depth++] = callee, state[callee] = 1, next[callee] = calls.first[callee];
        continue;
      }
      uint64_t nodes = g->functions[f].body ? g->functions[f].body->node_count : 0;
      for (uint32_t c = calls.first[f]; c < calls.first[f + 1]; c++)
        if (state[calls.callee[c]] == 2) nodes = add(nodes, out[calls.callee[c]]);
      out[f] = nodes;
      state[f] = 2;
      depth--;
    }
  }
out:
  tfc_library_calls_deinit(&calls);
  free(state);
  free(stack);
  free(next);
  return s;
}

// Raises the value of every function to the largest value of the functions that it calls. When the value of a function
// grows, its callers are visited again; for each function this happens at most once for each possible value.
tfc_status tfc_library_raise(uint32_t count, const struct tfc_library_calls *calls, uint8_t *values) {
  tfc_status s = NULL;
  const uint32_t edges = count ? calls->first[count] : 0;
  uint32_t *first = calloc(count + 2u, sizeof *first), *caller = calloc(edges + 1u, sizeof *caller);
  uint32_t *waiting = calloc(count + 1u, sizeof *waiting), left = 0;
  bool *listed = calloc(count + 1u, sizeof *listed);
  if (!first || !caller || !waiting || !listed) TFC_TRY(s, tfc_status_no_memory("a function library"));
  for (uint32_t e = 0; e < edges; e++) first[calls->callee[e] + 2]++;
  for (uint32_t f = 0; f < count; f++) first[f + 2] += first[f + 1];
  for (uint32_t f = 0; f < count; f++)
    for (uint32_t e = calls->first[f]; e < calls->first[f + 1]; e++) caller[first[calls->callee[e] + 1]++] = f;
  for (uint32_t f = 0; f < count; f++) waiting[left++] = f, listed[f] = true;
  while (left) {
    const uint32_t f = waiting[--left];
    listed[f] = false;
    for (uint32_t e = first[f]; e < first[f + 1]; e++) {
      const uint32_t up = caller[e];
      if (values[up] >= values[f]) continue;
      values[up] = values[f];
      if (!listed[up]) waiting[left++] = up, listed[up] = true;
    }
  }
out:
  free(first);
  free(caller);
  free(waiting);
  free(listed);
  return s;
}
