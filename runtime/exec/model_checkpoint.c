// Saves and restores the variables of a session by their names.
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"
#include "runtime/io/checkpoint.h"

static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE;
}
static tfc_str variable_name(const struct tfc_graph *g, const struct tfc_node *n) {
  tfc_str shared = tfc_node_attr_string(g, n, "shared_name", "");
  return shared.size ? shared : n->name;
}

// Partitioned variables are saved as slices of one tensor: name/part_K is the K-th slice of `name`, and an optimizer's
// slot name/part_K/SLOT is that of name/SLOT. Finds the last such part of a name.
static bool find_part(tfc_str name, size_t *out_begin, size_t *out_end) {
  bool found = false;
  for (size_t i = 0; i < name.size; i++) {
    if (name.data[i] != '/' || !tfc_str_starts(tfc_str_sub(name, i + 1, name.size), "part_")) continue;
    size_t end = i + 1 + strlen("part_"), digits = end;
    while (end < name.size && name.data[end] >= '0' && name.data[end] <= '9') end++;
    if (end == digits || (end < name.size && name.data[end] != '/')) continue;
    *out_begin = i, *out_end = end, found = true;
  }
  return found;
}

static tfc_status read_slice(struct tfc_checkpoint *c, const struct tfc_graph *g, tfc_str name, tfc_str whole,
                             size_t begin, size_t end, struct tfc_tensor *out, bool *out_found) {
  const struct tfc_checkpoint_entry *e = tfc_checkpoint_find(c, whole);
  if (!e || e->shape.rank < 1) return NULL;
  int64_t starts[TFC_MAX_RANK] = {0}, lengths[TFC_MAX_RANK], own[TFC_MAX_RANK] = {0};
  bool seen = false;
  int axis = 0;
  for (int d = 0; d < e->shape.rank; d++) lengths[d] = e->shape.dims[d];
  // Its offset is the sum of the sizes of the parts before it, in the order of their numbers.
  for (uint32_t k = 0; !seen; k++) {
    struct tfc_text part = {0};
    tfc_text_printf(&part, "%.*s/part_%u%.*s", (int)begin, name.data, k, (int)(name.size - end), name.data + end);
    tfc_str part_name = {part.data, part.size};
    const struct tfc_shape *shape = NULL;
    for (uint32_t i = 0; i < g->node_count && !shape && !part.failed; i++) {
      const struct tfc_node *n = &g->nodes[i];
      const struct tfc_attr *a =
          is_variable(n) && tfc_str_equal(variable_name(g, n), part_name) ? tfc_node_attr(g, n, "shape") : NULL;
      if (a && a->kind == TFC_ATTR_SHAPE) shape = a->shape;
    }
    seen = shape && tfc_str_equal(part_name, name);
    bool fits = shape && shape->rank == e->shape.rank && tfc_shape_is_static(shape);
    tfc_text_deinit(&part);
    if (!fits) return NULL;
    for (int d = 0; d < shape->rank; d++)
      if (shape->dims[d] != e->shape.dims[d]) axis = d;
    for (int d = 0; d < shape->rank; d++) own[d] = shape->dims[d];
    if (!seen) starts[axis] += shape->dims[axis];
  }
  memcpy(lengths, own, sizeof lengths);
  *out_found = true;
  return tfc_checkpoint_read_slice(c, whole, e->shape.rank, starts, lengths, out);
}

static tfc_status read_part(struct tfc_checkpoint *c, const struct tfc_graph *g, tfc_str name, struct tfc_tensor *out,
                            bool *out_found) {
  size_t begin, end;
  *out_found = false;
  if (!find_part(name, &begin, &end)) return NULL;
  char *whole = tfc_format("%.*s%.*s", (int)begin, name.data, (int)(name.size - end), name.data + end);
  if (!whole) return tfc_status_no_memory("a checkpoint's variables");
  tfc_status s = read_slice(c, g, name, tfc_str_from(whole), begin, end, out, out_found);
  free(whole);
  return s;
}

// Finds all parts of the variable of which item `i` is a part, in the order of their numbers. Returns how many there
// are; 0: one is missing or does not fit, or there are more than `most`.
static uint32_t find_parts(const struct tfc_checkpoint_item *items, size_t count, size_t i, size_t begin, size_t end,
                           uint32_t *parts, uint32_t most) {
  const tfc_str name = items[i].name;
  uint32_t n = 0;
  bool seen = false;
  for (bool found = true; found && n < most; n += found) {
    char *wanted = tfc_format("%.*s/part_%u%.*s", (int)begin, name.data, n, (int)(name.size - end), name.data + end);
    found = false;
    for (size_t k = 0; wanted && k < count && !found; k++) {
      found = !items[k].whole && tfc_str_is(items[k].name, wanted);
      if (found) parts[n] = (uint32_t)k, seen = seen || k == i;
    }
    free(wanted);
  }
  for (uint32_t k = 1; k < n; k++)
    if (items[parts[k]].tensor->dtype != items[parts[0]].tensor->dtype ||
        items[parts[k]].tensor->shape.rank != items[parts[0]].tensor->shape.rank)
      return 0;
  return seen && n < most && items[i].tensor->shape.rank > 0 ? n : 0;
}

tfc_status tfc_checkpoint_join_parts(struct tfc_checkpoint_item *items, size_t count, struct tfc_arena *arena) {
  enum { MOST_PARTS = 4096 };
  uint32_t *parts = TFC_ARENA_ARRAY(arena, uint32_t, MOST_PARTS);
  if (!parts) return tfc_status_no_memory("a checkpoint's variables");
  for (size_t i = 0; i < count; i++) {
    size_t begin, end;
    if (items[i].whole || !find_part(items[i].name, &begin, &end)) continue;
    const uint32_t n = find_parts(items, count, i, begin, end, parts, MOST_PARTS);
    if (!n) continue;
    const tfc_str name = items[i].name;
    const struct tfc_shape *first = &items[parts[0]].tensor->shape;
    struct tfc_shape *whole = TFC_ARENA_NEW(arena, struct tfc_shape);
    int64_t *offsets = TFC_ARENA_ARRAY(arena, int64_t, (size_t)n * TFC_MAX_RANK);
    tfc_str joined =
        tfc_arena_printf(arena, "%.*s%.*s", (int)begin, name.data, (int)(name.size - end), name.data + end);
    if (!whole || !offsets || !joined.data) return tfc_status_no_memory("a checkpoint's variables");
    int axis = 0, differing = 0;
    for (int d = 0; d < first->rank; d++) {
      bool differs = false;
      for (uint32_t k = 1; k < n; k++) differs |= items[parts[k]].tensor->shape.dims[d] != first->dims[d];
      if (differs) axis = d, differing++;
    }
    if (differing > 1) continue; // they differ in several dimensions, so they are not parts of one tensor
    *whole = *first;
    whole->dims[axis] = 0;
    for (uint32_t k = 0; k < n; k++) {
      offsets[(size_t)k * TFC_MAX_RANK + axis] = whole->dims[axis];
      whole->dims[axis] += items[parts[k]].tensor->shape.dims[axis];
    }
    for (uint32_t k = 0; k < n; k++) {
      struct tfc_checkpoint_item *item = &items[parts[k]];
      item->name = joined, item->whole = whole, item->offsets = offsets + (size_t)k * TFC_MAX_RANK;
    }
  }
  return NULL;
}

tfc_status tfc_checkpoint_read_variable(struct tfc_checkpoint *c, const struct tfc_graph *g, tfc_str name,
                                        struct tfc_tensor *out, bool *out_found) {
  *out_found = true;
  return tfc_checkpoint_find(c, name) ? tfc_checkpoint_read(c, name, out) : read_part(c, g, name, out, out_found);
}

tfc_status tfc_session_load_checkpoint(struct tfc_session *session, const struct tfc_graph *g, const char *prefix,
                                       struct tfc_restored *out) {
  tfc_status s = NULL;
  struct tfc_checkpoint *c = NULL;
  struct tfc_restored done = {0};
  TFC_TRY(s, tfc_checkpoint_open(prefix, &c));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!is_variable(&g->nodes[i])) continue;
    tfc_str name = variable_name(g, &g->nodes[i]);
    struct tfc_tensor value = {0};
    bool found = true;
    done.variables++;
    s = tfc_checkpoint_read_variable(c, g, name, &value, &found);
    if (!s && !found) continue;
    if (!s) s = tfc_session_set_variable(session, name, &value);
    tfc_tensor_release(&value);
    if (s) {
      s = tfc_status_annotate(s, "%s", prefix);
      goto out;
    }
    done.restored++;
  }
  if (done.variables && !done.restored)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: none of the graph's %u variables is in this checkpoint", prefix,
             done.variables);
  *out = done;
out:
  tfc_checkpoint_close(c);
  return s;
}

tfc_status tfc_session_save_checkpoint(struct tfc_session *session, const struct tfc_graph *g, const char *prefix,
                                       size_t *out_saved) {
  tfc_status s = NULL;
  struct tfc_checkpoint_item *items = calloc(g->node_count + 1u, sizeof *items);
  struct tfc_tensor *values = calloc(g->node_count + 1u, sizeof *values);
  struct tfc_arena arena = {0};
  size_t count = 0;
  if (!items || !values) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!is_variable(&g->nodes[i])) continue;
    tfc_str name = variable_name(g, &g->nodes[i]);
    tfc_status got = tfc_session_get_variable(session, name, &values[count]);
    if (tfc_status_code(got) == TFC_FAILED_PRECONDITION) { // the variable has no value, so nothing that ran uses it
      tfc_status_free(got);
      continue;
    }
    TFC_TRY(s, got);
    items[count] = (struct tfc_checkpoint_item){.name = name, .tensor = &values[count]};
    count++;
  }
  TFC_TRY(s, tfc_checkpoint_join_parts(items, count, &arena));
  TFC_TRY(s, tfc_checkpoint_write(prefix, items, count));
  *out_saved = count;
out:
  for (size_t i = 0; values && i < count; i++) tfc_tensor_release(&values[i]);
  free(items);
  free(values);
  tfc_arena_deinit(&arena);
  return s;
}
