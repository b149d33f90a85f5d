#include "cli/run_variables.h"

#include <stdlib.h>

#include "cli/program.h"
#include "cli/run_replicas.h"
#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"

tfc_status run_variables_find(const struct run_setup *setup, bool local, run_variables *out) {
  const struct tfc_graph *g = setup->graph;
  for (uint32_t i = 0; i < tfc_graph_file_nodes(g); i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_VARIABLE) || tfc_node_role(n) == TFC_ROLE_TEMPORARY) continue;
    const tfc_str shared = tfc_node_attr_string(g, n, "shared_name", "");
    struct run_variable v = {
        .name = shared.size ? shared : n->name, .value = TFC_NO_OUTPUT, .assign = TFC_NONE, .given = TFC_NO_OUTPUT};
    if (tfc_step_is_local_variable(g, v.name) != local) continue;
    const tfc_str original = setup->mirrors && !local ? run_replicas_original(v.name) : v.name;
    v.copy = original.size != v.name.size;
    v.name = original;
    const bool reference = tfc_dtype_is_ref(g->output_dtypes[n->output_begin]);
    if (reference) v.value = (struct tfc_output){i, 0};
    for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1]; c++) {
      const struct tfc_consumer *k = &g->consumers[c];
      const struct tfc_node *reader = &g->nodes[k->node];
      if (k->input != 0) continue;
      if (!reference && v.value.node == TFC_NONE && tfc_node_role(reader) == TFC_ROLE_READ &&
          !(local && reader->control_count)) // what it waits for would run, too
        v.value = (struct tfc_output){k->node, 0};
      if (v.assign == TFC_NONE && tfc_node_role(reader) == TFC_ROLE_ASSIGN) {
        v.assign = k->node;
        v.given = tfc_node_inputs(g, reader)[1];
      }
    }
    if (local && (v.value.node == TFC_NONE || v.assign == TFC_NONE)) continue; // unused, or it is set in another way
    if (!tfc_array_push(out, v)) return tfc_status_no_memory("a checkpoint");
  }
  return NULL;
}

// The error for a variable that cannot be `done`, because no node of the graph `does` it.
static tfc_status cannot(const struct run_variable *v, const char *done, const char *does) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "the variable '%.*s' cannot be %s: no node of the graph %s it",
                         TFC_STR_ARG(v->name), done, does);
}

// What one step restores. Variables that are initialised from the same tensor are restored in different steps, because
// a step can feed a tensor only one value.
struct round {
  struct tfc_output *feeds;
  struct tfc_tensor *values;
  uint32_t *targets;
  tfc_str *names; // the variable whose value each feed has
  uint32_t feed_count, target_count;
};

// Adds the variable to the step. *out_later: it has to wait for another step. *out_found: the checkpoint contains it.
static tfc_status add(struct round *r, const struct run_variable *v, struct tfc_checkpoint *c,
                      const struct tfc_graph *g, bool *out_later, bool *out_found) {
  uint32_t same = 0;
  while (same < r->feed_count && (r->feeds[same].node != v->given.node || r->feeds[same].index != v->given.index))
    same++;
  *out_found = true;
  *out_later = same < r->feed_count && !tfc_str_equal(r->names[same], v->name);
  if (*out_later) return NULL;
  if (same == r->feed_count) {
    TFC_RETURN_IF_ERROR(tfc_checkpoint_read_variable(c, g, v->name, &r->values[same], out_found));
    if (!*out_found) return NULL;
    if (v->assign == TFC_NONE) return cannot(v, "restored", "assigns");
    r->feeds[same] = v->given, r->names[same] = v->name;
    r->feed_count++;
  }
  r->targets[r->target_count++] = v->assign;
  return NULL;
}

tfc_status run_variables_restore(const struct run_setup *setup, const char *prefix, bool all, size_t *out_restored,
                                 size_t *out_count) {
  tfc_status s = NULL;
  run_variables list = {0};
  struct tfc_checkpoint *c = NULL;
  struct round r = {0};
  size_t restored = 0, left = 0;
  TFC_TRY(s, run_variables_find(setup, false, &list));
  TFC_TRY(s, tfc_checkpoint_open(prefix, &c));
  const size_t count = left = list.count;
  r.feeds = calloc(count + 1, sizeof *r.feeds);
  r.values = calloc(count + 1, sizeof *r.values);
  r.targets = calloc(count + 1, sizeof *r.targets);
  r.names = calloc(count + 1, sizeof *r.names);
  if (!r.feeds || !r.values || !r.targets || !r.names) TFC_TRY(s, tfc_status_no_memory("a checkpoint"));
  while (left) {
    size_t later = 0;
    r.feed_count = r.target_count = 0;
    for (size_t i = 0; i < left; i++) {
      const struct run_variable v = list.data[i];
      bool waits, found;
      TFC_TRY(s, add(&r, &v, c, setup->graph, &waits, &found));
      if (!found && all)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: it has no variable '%.*s'", prefix, TFC_STR_ARG(v.name));
      if (waits) list.data[later++] = v;
    }
    left = later;
    const struct tfc_run_spec spec = {
        .feeds = r.feeds, .feed_count = r.feed_count, .targets = r.targets, .target_count = r.target_count};
    if (r.target_count)
      TFC_TRY(s, run_step(setup, &spec, r.values, NULL, &(struct tfc_run_options){.cancel = tfc_program_cancel()}));
    restored += r.target_count;
    for (uint32_t i = 0; i < r.feed_count; i++) tfc_tensor_release(&r.values[i]);
  }
  if (count && !restored)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: it has none of the graph's %zu variables", prefix, count);
  *out_restored = restored;
  *out_count = count;
out:
  for (uint32_t i = 0; r.values && i < r.feed_count; i++) tfc_tensor_release(&r.values[i]);
  free(r.feeds), free(r.values), free(r.targets), free(r.names);
  tfc_checkpoint_close(c);
  tfc_array_free(&list);
  return s;
}

static tfc_status fetch(const struct run_setup *setup, const struct tfc_output *outputs, size_t count,
                        struct tfc_tensor *values) {
  const struct tfc_run_spec spec = {.fetches = outputs, .fetch_count = (uint32_t)count};
  return run_step(setup, &spec, NULL, values, &(struct tfc_run_options){.cancel = tfc_program_cut_off()});
}

// Fetches variables one by one, and keeps those that have a value.
static tfc_status fetch_some(const struct run_setup *setup, const struct tfc_output *outputs, run_variables *all,
                             struct tfc_tensor *values) {
  size_t kept = 0;
  for (size_t i = 0; i < all->count; i++) {
    tfc_status s = fetch(setup, &outputs[i], 1, &values[kept]);
    if (!s)
      all->data[kept++] = all->data[i];
    else if (tfc_status_code(s) == TFC_FAILED_PRECONDITION)
      tfc_status_free(s);
    else
      return s;
  }
  all->count = kept;
  return NULL;
}

tfc_status run_variables_save(const struct run_setup *setup, const char *prefix, bool some, size_t *out_count) {
  tfc_status s = NULL;
  run_variables all = {0};
  struct tfc_arena arena = {0};
  struct tfc_output *fetches = NULL;
  struct tfc_tensor *values = NULL;
  struct tfc_checkpoint_item *items = NULL;
  TFC_TRY(s, run_variables_find(setup, false, &all));
  size_t originals = 0;
  for (size_t i = 0; i < all.count; i++)
    if (!all.data[i].copy) all.data[originals++] = all.data[i];
  all.count = originals;
  fetches = calloc(all.count + 1, sizeof *fetches);
  values = calloc(all.count + 1, sizeof *values);
  items = calloc(all.count + 1, sizeof *items);
  if (!fetches || !values || !items) TFC_TRY(s, tfc_status_no_memory("a checkpoint"));
  for (size_t i = 0; i < all.count; i++) {
    const struct run_variable *v = &all.data[i];
    if (v->value.node == TFC_NONE) TFC_TRY(s, cannot(v, "saved", "reads"));
    if (v->assign == TFC_NONE) TFC_TRY(s, cannot(v, "restored", "assigns"));
    fetches[i] = v->value;
  }
  s = fetch(setup, fetches, all.count, values);
  if (some && tfc_status_code(s) == TFC_FAILED_PRECONDITION) {
    tfc_status_free(s);
    s = fetch_some(setup, fetches, &all, values);
  }
  if (s) goto out;
  for (size_t i = 0; i < all.count; i++)
    items[i] = (struct tfc_checkpoint_item){.name = all.data[i].name, .tensor = &values[i]};
  TFC_TRY(s, tfc_checkpoint_join_parts(items, all.count, &arena));
  TFC_TRY(s, tfc_checkpoint_write(prefix, items, all.count));
  *out_count = all.count;
out:
  for (size_t i = 0; values && i < all.count; i++) tfc_tensor_release(&values[i]);
  free(fetches), free(values), free(items);
  tfc_array_free(&all);
  tfc_arena_deinit(&arena);
  return s;
}
