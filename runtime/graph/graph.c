#include "runtime/graph/graph_internal.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/base/nearest.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"

tfc_status tfc_graph_new(struct tfc_graph **out) {
  struct tfc_graph *g = calloc(1, sizeof *g);
  if (!g) return tfc_status_no_memory("a graph");
  tfc_arena_init(&g->arena, 256 * 1024);
  g->references = 1;
  g->path = g->variables_prefix = g->saver_filename = g->saver_restore = g->saver_save = TFC_STR("");
  *out = g;
  return NULL;
}

tfc_status tfc_graph_new_body(struct tfc_graph *owner, struct tfc_graph **out) {
  struct tfc_graph *g = NULL;
  TFC_RETURN_IF_ERROR(tfc_graph_new(&g));
  tfc_arena_init(&g->arena, 16 * 1024);
  g->owner = g->library = owner;
  g->path = owner->path;
  *out = g;
  return NULL;
}

bool tfc_graph_own(struct tfc_graph *g, void *memory) {
  if (!memory) return true;
  void **heap = realloc(g->heap, (g->heap_count + 1) * sizeof *heap);
  if (!heap) return free(memory), false;
  g->heap = heap;
  g->heap[g->heap_count++] = memory;
  return true;
}

static void destroy(struct tfc_graph *g) {
  if (!g->library)
    for (uint32_t i = 0; i < g->function_count; i++)
      if (g->functions[i].body) destroy((struct tfc_graph *)g->functions[i].body);
  tfc_strmap_deinit(&g->by_name);
  tfc_strmap_deinit(&g->functions_by_name);
  tfc_source_release(g->source);
  for (size_t i = 0; i < g->heap_count; i++) free(g->heap[i]);
  free(g->heap);
  const struct tfc_graph *parent = g->parent;
  tfc_arena_deinit(&g->arena);
  free(g);
  tfc_graph_release(parent);
}

void tfc_graph_free_body(struct tfc_graph *body) {
  destroy(body);
}

void tfc_graph_retain(const struct tfc_graph *g) {
  if (!g) return;
  while (g->owner) g = g->owner;
  atomic_fetch_add_explicit(&((struct tfc_graph *)g)->references, 1, memory_order_relaxed);
}

void tfc_graph_release(const struct tfc_graph *g) {
  if (!g) return;
  while (g->owner) g = g->owner;
  struct tfc_graph *mine = (struct tfc_graph *)g;
  if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) == 1) destroy(mine);
}

tfc_status tfc_graph_own_attributes(const struct tfc_graph *g, struct tfc_arena *arena, struct tfc_graph **out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t end = g->nodes[i].attr_begin + g->nodes[i].attr_count;
    if (end > count) count = end;
  }
  struct tfc_graph *copy = TFC_ARENA_NEW(arena, struct tfc_graph);
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(arena, struct tfc_attr, count + 1u);
  if (!copy || !attrs) return tfc_status_no_memory("copying attributes");
  if (count) memcpy(attrs, g->attrs, count * sizeof *attrs);
  // The members from `arena` on are not copied: only g itself is freed, and other threads may change its references.
  memcpy(copy, g, offsetof(struct tfc_graph, arena));
  copy->attrs = attrs, copy->library = g->library, copy->owner = g->owner;
  *out = copy;
  return NULL;
}

uint32_t tfc_graph_find(const struct tfc_graph *g, tfc_str name) {
  const uint64_t *id = tfc_strmap_get(&g->by_name, name);
  return id ? (uint32_t)*id : TFC_NONE;
}

const struct tfc_function *tfc_graph_function(const struct tfc_graph *g, tfc_str name) {
  while (g->library) g = g->library;
  const uint64_t *id = tfc_strmap_get(&g->functions_by_name, name);
  return id ? &g->functions[*id] : NULL;
}

// Makes the error for a missing node, which suggests a node with a similar name. A match at the end of a name counts as
// much as one of the whole name, because users often leave out scopes.
static tfc_status no_node(const struct tfc_graph *g, tfc_str name) {
  struct tfc_nearest nearest = {.text = name};
  for (uint32_t i = 0; i < g->node_count; i++) {
    const tfc_str node = g->nodes[i].name;
    const size_t scope = node.size > name.size && name.size ? node.size - name.size : 0;
    const bool ends = scope && node.data[scope - 1] == '/' && tfc_str_equal(tfc_str_sub(node, scope, node.size), name);
    if (ends && (!nearest.best.data || nearest.distance)) nearest.best = node, nearest.distance = 0;
    tfc_nearest_try(&nearest, node);
  }
  return tfc_status_make(TFC_INVALID_ARGUMENT, "there is no node '%.*s' in the graph%s%.*s%s", TFC_STR_ARG(name),
                         nearest.best.data ? "; did you mean '" : "", TFC_STR_ARG(nearest.best),
                         nearest.best.data ? "'?" : "");
}

tfc_status tfc_graph_parse_node(const struct tfc_graph *g, tfc_str text, uint32_t *out) {
  tfc_str name = tfc_str_starts(text, "^") ? tfc_str_sub(text, 1, text.size) : text;
  *out = tfc_graph_find(g, name);
  if (*out != TFC_NONE) return NULL;
  const size_t colon = tfc_str_rfind(name, ':');
  int64_t index = -1;
  if (colon != SIZE_MAX) { // the name of an output also names its operation, even if the operation has no outputs
    tfc_status s = tfc_parse_i64(tfc_str_sub(name, colon + 1, name.size), &index);
    tfc_status_free(s);
  }
  if (index >= 0) name = tfc_str_sub(name, 0, colon), *out = tfc_graph_find(g, name);
  return *out == TFC_NONE ? no_node(g, name) : NULL;
}

tfc_status tfc_graph_parse_output(const struct tfc_graph *g, tfc_str text, struct tfc_output *out) {
  struct tfc_output o = {TFC_NONE, 0};
  const bool names_operation = tfc_str_starts(text, "^");
  tfc_str name = names_operation ? tfc_str_sub(text, 1, text.size) : text;
  size_t colon = names_operation ? SIZE_MAX : tfc_str_rfind(text, ':');
  if (colon != SIZE_MAX) {
    int64_t index;
    tfc_status s = tfc_parse_i64(tfc_str_sub(text, colon + 1, text.size), &index);
    tfc_status_free(s);
    if (s || index < 0 || index > INT32_MAX)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a tensor: after ':' comes the output's number",
                             TFC_STR_ARG(text));
    name = tfc_str_sub(text, 0, colon);
    o.index = (int32_t)index;
  }
  o.node = tfc_graph_find(g, name);
  if (o.node == TFC_NONE) return no_node(g, name);
  const struct tfc_node *n = &g->nodes[o.node];
  if (names_operation && n->output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "'%.*s' is the operation and none of its outputs: name one, as '%.*s:0', or run the "
                           "operation as a target (--target %.*s)",
                           TFC_STR_ARG(text), TFC_STR_ARG(name), TFC_STR_ARG(name));
  if ((uint32_t)o.index >= n->output_count && !n->def && n->function == TFC_NONE)
    return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %.*s is not known", TFC_STR_ARG(n->name),
                           TFC_STR_ARG(n->op));
  if (!n->output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "node '%.*s' (%.*s) has no outputs; run it as a target (--target %.*s)", TFC_STR_ARG(name),
                           TFC_STR_ARG(n->op), TFC_STR_ARG(name));
  if ((uint32_t)o.index >= n->output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) has %u outputs, there is no '%.*s'",
                           TFC_STR_ARG(name), TFC_STR_ARG(n->op), n->output_count, TFC_STR_ARG(text));
  *out = o;
  return NULL;
}

const struct tfc_attr *tfc_attr_find(const struct tfc_attr_view *view, tfc_str name) {
  for (uint32_t i = 0; i < view->count; i++)
    if (tfc_str_equal(view->attrs[i].name, name)) return &view->attrs[i];
  if (view->signature)
    for (uint32_t i = 0; i < view->signature->attr_count; i++) {
      const struct tfc_op_attr *a = &view->signature->attrs[i];
      if (a->has_default && tfc_str_equal(a->name, name)) return &a->default_value;
    }
  return NULL;
}

const struct tfc_attr *tfc_node_attr(const struct tfc_graph *g, const struct tfc_node *n, const char *name) {
  const tfc_str wanted = tfc_str_from(name);
  const struct tfc_attr_view own = {g->attrs + n->attr_begin, n->attr_count, NULL};
  const struct tfc_attr *a = tfc_attr_find(&own, wanted);
  if (a || !n->def) return a;
  return tfc_attr_find(&(struct tfc_attr_view){.signature = tfc_op_signature(n->def)}, wanted);
}

int64_t tfc_node_attr_int(const struct tfc_graph *g, const struct tfc_node *n, const char *name, int64_t otherwise) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  return a && a->kind == TFC_ATTR_INT ? a->i : otherwise;
}

double tfc_node_attr_float(const struct tfc_graph *g, const struct tfc_node *n, const char *name, double otherwise) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  return a && a->kind == TFC_ATTR_FLOAT ? a->f : otherwise;
}

bool tfc_node_attr_bool(const struct tfc_graph *g, const struct tfc_node *n, const char *name, bool otherwise) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  return a && a->kind == TFC_ATTR_BOOL ? a->b : otherwise;
}

tfc_dtype tfc_node_attr_type(const struct tfc_graph *g, const struct tfc_node *n, const char *name,
                             tfc_dtype otherwise) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  return a && a->kind == TFC_ATTR_TYPE ? a->type : otherwise;
}

tfc_str tfc_node_attr_string(const struct tfc_graph *g, const struct tfc_node *n, const char *name,
                             const char *otherwise) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  return a && a->kind == TFC_ATTR_STRING ? a->s : tfc_str_from(otherwise);
}

// Whether the node starts the back edge of a loop.
static bool is_back_edge(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_NEXT_ITERATION;
}

// This is Kahn's algorithm with a plain queue. This order depends only on the graph. (An order by id would need a heap,
// and would not be better.)
tfc_status tfc_graph_topological(const struct tfc_graph *g, uint32_t *out_order) {
  tfc_status s = NULL;
  uint32_t *waits = calloc(g->node_count ? g->node_count : 1, sizeof *waits), head = 0, tail = 0;
  if (!waits) return tfc_status_no_memory_for("ordering %u nodes", g->node_count);
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      waits[i] += !is_back_edge(&g->nodes[in[k].node]);
    }
    if (!waits[i]) out_order[tail++] = i;
  }
  while (head < tail) {
    uint32_t id = out_order[head++];
    if (is_back_edge(&g->nodes[id])) continue;
    for (uint32_t k = g->consumer_begin[id]; k < g->consumer_begin[id + 1]; k++)
      if (--waits[g->consumers[k].node] == 0) out_order[tail++] = g->consumers[k].node;
  }
  if (tail == g->node_count) goto out;

  // Some nodes were not ordered. A walk from one of them, always to an input that was not ordered either, must reach a
  // cycle.
  uint32_t at = 0;
  while (!waits[at]) at++;
  for (uint32_t step = 0; step < 2 * g->node_count; step++) {
    const struct tfc_node *n = &g->nodes[at];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    if (step >= g->node_count && waits[at] == UINT32_MAX) break; // after that many steps, the walk is on the cycle
    if (step >= g->node_count) waits[at] = UINT32_MAX;
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      if (waits[in[k].node] && !is_back_edge(&g->nodes[in[k].node])) {
        at = in[k].node;
        break;
      }
    }
  }
  struct tfc_text names = {0};
  uint32_t start = at, length = 0;
  do {
    const struct tfc_node *n = &g->nodes[at];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    if (length < 8) tfc_text_printf(&names, "%s'%.*s'", length ? " <- " : "", TFC_STR_ARG(n->name));
    length++;
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      if (waits[in[k].node] && !is_back_edge(&g->nodes[in[k].node])) {
        at = in[k].node;
        break;
      }
    }
  } while (at != start && length <= g->node_count);
  s = tfc_status_make(TFC_INVALID_ARGUMENT, "the graph has a cycle of %u nodes: %s%s", length,
                      names.data ? names.data : "", length > 8 ? " <- ..." : "");
  tfc_text_deinit(&names);
out:
  free(waits);
  return s;
}
