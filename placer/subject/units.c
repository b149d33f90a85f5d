// Finds which nodes are tied to one device. Nodes are tied in this order: by the classes in _class attributes (over all
// nodes of the file, so that initialisers and slots are with their variables), by references, by resource handles.
// Where function calls were lowered, the copies of one node of a function are tied (it has one device for all calls),
// and nodes that the lowering itself ties.
#include "placer/subject/units.h"

#include "runtime/base/map.h"
#include "runtime/base/union_find.h"

uint32_t tfc_units_root(const struct tfc_units *u, uint32_t node) {
  return tfc_union_find_root(u->parent, node);
}

// The lowest node becomes the root, so that names of units do not depend on the order in which nodes are tied.
void tfc_units_join(struct tfc_units *u, uint32_t a, uint32_t b) {
  uint32_t ra = tfc_units_root(u, a), rb = tfc_units_root(u, b);
  tfc_union_find_join(u->parent, ra < rb ? ra : rb, ra < rb ? rb : ra);
}

static void tie(struct tfc_units *u, uint32_t a, uint32_t b, tfc_tie why) {
  if (u->tie[a] == TFC_TIE_NONE && a != b) u->tie[a] = (uint8_t)why, u->tied_to[a] = b;
  tfc_units_join(u, a, b);
}

static int64_t arg_length(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_op_arg *arg) {
  char name[64];
  if (arg->number_attr.size && arg->number_attr.size < sizeof name) {
    memcpy(name, arg->number_attr.data, arg->number_attr.size);
    name[arg->number_attr.size] = 0;
    return tfc_node_attr_int(g, n, name, 1);
  }
  if (arg->is_list && arg->type_attr.size && arg->type_attr.size < sizeof name) {
    memcpy(name, arg->type_attr.data, arg->type_attr.size);
    name[arg->type_attr.size] = 0;
    const struct tfc_attr *a = tfc_node_attr(g, n, name);
    return a ? a->count : 1;
  }
  return 1;
}

static bool input_is_ref(const struct tfc_graph *g, const struct tfc_node *n, uint32_t input) {
  const struct tfc_op_signature *sig = n->def ? tfc_op_signature(n->def) : NULL;
  int64_t at = 0;
  for (uint32_t i = 0; sig && i < sig->input_count; i++) {
    at += arg_length(g, n, &sig->inputs[i]);
    if (input < at) return sig->inputs[i].is_ref;
  }
  return false;
}

static tfc_status tie_classes(const struct tfc_graph *g, struct tfc_units *u) {
  tfc_status s = NULL;
  struct tfc_strmap first = {0};
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_attr *a = tfc_node_attr(g, &g->nodes[i], "_class");
    if (!a || a->kind != TFC_ATTR_LIST_STRING) continue;
    for (uint32_t k = 0; k < a->count; k++) {
      if (!tfc_str_starts(a->strings[k], "loc:@")) continue;
      tfc_str name = tfc_str_sub(a->strings[k], 5, a->strings[k].size);
      uint32_t owner = tfc_graph_find(g, name);
      if (owner != TFC_NONE) {
        tie(u, i, owner, TFC_TIE_CLASS);
        continue;
      }
      // The node that names the class was pruned from the file; the members of the class still share a device.
      bool found = false;
      uint64_t *member = tfc_strmap_put(&first, name, i, &found);
      if (!member) TFC_TRY(s, tfc_status_no_memory(NULL));
      if (found) tie(u, i, (uint32_t)*member, TFC_TIE_CLASS);
    }
  }
out:
  tfc_strmap_deinit(&first);
  return s;
}

// Returns the output that a handle comes from, seen through IdentityN nodes, which a lowered call leaves. (Readers of
// the handle are tied to that node and not to the IdentityN, whose other tensors may be on other devices.)
static struct tfc_output behind_lists(const struct tfc_graph *g, struct tfc_output o) {
  while (o.index >= 0 && tfc_node_role(&g->nodes[o.node]) == TFC_ROLE_SPREAD)
    o = tfc_node_inputs(g, &g->nodes[o.node])[o.index];
  return o;
}

static bool serves_call(const struct tfc_graph *g, const struct tfc_node *n) {
  const uint32_t control = TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION |
                           TFC_OP_LOOP_COND | TFC_OP_VIEW;
  if (!n->def || n->def->flags & control || !n->output_count) return false;
  return g->output_dtypes[n->output_begin] != TFC_RESOURCE && tfc_node_role(n) != TFC_ROLE_SPREAD;
}

static tfc_status tie_lowered(const struct tfc_graph *g, struct tfc_units *u) {
  tfc_status s = NULL;
  struct tfc_strmap first = {0};
  for (uint32_t i = tfc_graph_file_nodes(g); i < g->node_count; i++) {
    tfc_str key = tfc_node_attr_string(g, &g->nodes[i], "_tfc_key", "");
    if (key.size) {
      bool found = false;
      uint64_t *at = tfc_strmap_put(&first, key, i, &found);
      if (!at) TFC_TRY(s, tfc_status_no_memory(NULL));
      if (found) tie(u, i, (uint32_t)*at, TFC_TIE_FUNCTION);
    } else if (g->caller[i] != TFC_NONE && serves_call(g, &g->nodes[i])) {
      tie(u, i, g->caller[i], TFC_TIE_CALL);
    }
  }
out:
  tfc_strmap_deinit(&first);
  return s;
}

tfc_status tfc_units_find_all(const struct tfc_graph *g, struct tfc_arena *arena, struct tfc_units *out) {
  struct tfc_units u = {TFC_ARENA_ARRAY(arena, uint32_t, g->node_count + 1u),
                        TFC_ARENA_ARRAY(arena, uint8_t, g->node_count + 1u),
                        TFC_ARENA_ARRAY(arena, uint32_t, g->node_count + 1u)};
  if (!u.parent || !u.tie || !u.tied_to) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < g->node_count; i++) u.parent[i] = i, u.tied_to[i] = TFC_NONE;
  TFC_RETURN_IF_ERROR(tie_classes(g, &u));
  TFC_RETURN_IF_ERROR(tie_lowered(g, &u));
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count; k++) {
      tfc_dtype type = tfc_output_dtype(g, in[k]);
      if (tfc_dtype_is_ref(type) && input_is_ref(g, n, k))
        tie(&u, i, in[k].node, TFC_TIE_REFERENCE);
      else if (type == TFC_RESOURCE && tfc_node_role(n) != TFC_ROLE_SPREAD)
        tie(&u, i, behind_lists(g, in[k]).node, TFC_TIE_HANDLE);
    }
  }
  *out = u;
  return NULL;
}

int tfc_subject_by_ends(const void *a, const void *b) {
  const struct tfc_subject_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->output != y->output) return x->output < y->output ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}
