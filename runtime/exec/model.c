// Loading values into a session: a SavedModel as TensorFlow's loader does it (its own restore operation is run with the
// path of its checkpoint, then its initialiser with the paths of its assets), and checkpoints by the variables' names.
#include "runtime/exec/model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/io/checkpoint.h"

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory loading a model");
}

// What is fed: the checkpoint's prefix and the assets' paths, as far as their tensors are in the graph.
struct feeds {
  struct tfc_output *outputs;
  struct tfc_tensor *values;
  uint32_t count;
};
static void feeds_deinit(struct feeds *f) {
  for (uint32_t i = 0; f->values && i < f->count; i++) tfc_tensor_release(&f->values[i]);
  free(f->outputs);
  free(f->values);
}
static tfc_status add_feed(const struct tfc_graph *g, tfc_str tensor, tfc_str text, struct feeds *f) {
  struct tfc_output o;
  struct tfc_tensor value = {0};
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(g, tensor, &o));
  for (uint32_t i = 0; i < f->count; i++)
    if (f->outputs[i].node == o.node && f->outputs[i].index == o.index) return NULL;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_STRING, &TFC_SHAPE_SCALAR, &value));
  f->outputs[f->count] = o;
  f->values[f->count++] = value;
  return tfc_tensor_set_string(&value, 0, text) ? NULL : no_memory();
}
static tfc_status make_feeds(const struct tfc_graph *g, bool filename, struct feeds *f) {
  f->outputs = calloc(g->asset_count + 2u, sizeof *f->outputs);
  f->values = calloc(g->asset_count + 2u, sizeof *f->values);
  if (!f->outputs || !f->values) return no_memory();
  if (filename) TFC_RETURN_IF_ERROR(add_feed(g, g->saver_filename, g->variables_prefix, f));
  for (uint32_t i = 0; i < g->asset_count; i++)
    TFC_RETURN_IF_ERROR(add_feed(g, g->assets[i].tensor, g->assets[i].path, f));
  return NULL;
}

static tfc_status run_op(struct tfc_session *session, const struct tfc_graph *g, tfc_str name, bool filename,
                         const uint16_t *placement) {
  tfc_status s = NULL;
  struct feeds f = {0};
  struct tfc_output o = {tfc_graph_find(g, name), 0};
  if (o.node == TFC_NO_NODE) TFC_TRY(s, tfc_graph_parse_output(g, name, &o)); // "name:0"
  TFC_TRY(s, make_feeds(g, filename, &f));
  struct tfc_run_spec spec = {
      .feeds = f.outputs, .feed_count = f.count, .targets = &o.node, .target_count = 1, .placement = placement};
  s = tfc_session_run(session, &spec, f.values, NULL, NULL);
out:
  feeds_deinit(&f);
  return tfc_status_annotate(s, "%.*s: running '%.*s'", TFC_STR_ARG(g->path), TFC_STR_ARG(name));
}

// The operation that a SavedModel wants run once it is restored; "" if there is none.
static tfc_str init_op(const struct tfc_graph *g) {
  static const char *const names[] = {"saved_model_main_op", "legacy_init_op", "saved_model_init_op"};
  for (uint32_t i = 0; i < g->signature_count; i++)
    if (tfc_str_is(g->signatures[i].name, "__saved_model_init_op") && g->signatures[i].output_count)
      return g->signatures[i].output_tensors[0];
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (uint32_t i = 0; i < g->collection_count; i++)
      if (tfc_str_is(g->collections[i].name, names[k]) && g->collections[i].count) return g->collections[i].values[0];
  return (tfc_str){0};
}

tfc_status tfc_session_load_model(struct tfc_session *session, const struct tfc_graph *g, const uint16_t *placement,
                                  bool variables) {
  struct tfc_restored unused;
  char *index = tfc_format("%.*s.index", TFC_STR_ARG(g->variables_prefix));
  if (!index) return no_memory();
  bool saved = variables && g->variables_prefix.size && access(index, F_OK) == 0; // a model may have no variables
  free(index);
  if (saved && g->saver_restore.size && g->saver_filename.size)
    TFC_RETURN_IF_ERROR(run_op(session, g, g->saver_restore, true, placement));
  else if (saved)
    TFC_RETURN_IF_ERROR(tfc_session_load_checkpoint(session, g, g->variables_prefix.data, &unused));
  tfc_str init = init_op(g);
  return init.size ? run_op(session, g, init, false, placement) : NULL;
}

// --- Checkpoints by name -----------------------------------------------------------------------------------------
static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE;
}
static tfc_str variable_name(const struct tfc_graph *g, const struct tfc_node *n) {
  tfc_str shared = tfc_node_attr_string(g, n, "shared_name", "");
  return shared.size ? shared : n->name;
}

// Partitioned variables are saved as slices of one tensor: name/part_K is the K-th slice of `name`, and an optimizer's
// slot name/part_K/SLOT that of name/SLOT. Where does the last such part of a name begin and end?
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
  // The parts before this one, in order of their numbers, say where it begins.
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
  if (!whole) return no_memory();
  tfc_status s = read_slice(c, g, name, tfc_str_from(whole), begin, end, out, out_found);
  free(whole);
  return s;
}

// Item `i` is a part: finds all parts of its whole, in order of their numbers. How many; 0: one is missing or does not
// fit, or there are more than `most`.
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
  if (!parts) return no_memory();
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
    if (!whole || !offsets || !joined.data) return no_memory();
    int axis = 0, differing = 0;
    for (int d = 0; d < first->rank; d++) {
      bool differs = false;
      for (uint32_t k = 1; k < n; k++) differs |= items[parts[k]].tensor->shape.dims[d] != first->dims[d];
      if (differs) axis = d, differing++;
    }
    if (differing > 1) continue; // no parts of one tensor
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
    if (tfc_checkpoint_find(c, name))
      s = tfc_checkpoint_read(c, name, &value);
    else
      s = read_part(c, g, name, &value, &found);
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
