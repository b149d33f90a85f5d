// --checkpoint and --save-checkpoint: every variable whose name is a key of the checkpoint.
#include <stdlib.h>

#include "cli/program.h"
#include "cli/run.h"
#include "runtime/exec/model.h"
#include "runtime/io/checkpoint.h"

static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE;
}

static tfc_str variable_name(const struct tfc_graph *g, const struct tfc_node *n) {
  tfc_str shared = tfc_node_attr_string(g, n, "shared_name", "");
  return shared.size ? shared : n->name;
}

tfc_status run_initialise(struct run_setup *setup) {
  const struct tfc_texts *inits = &setup->options->inits;
  for (uint32_t i = 0; i < inits->count; i++) {
    uint32_t node = tfc_graph_find(setup->graph, tfc_str_from(inits->items[i]));
    if (node == TFC_NO_NODE)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "--init %s: the graph has no such node", inits->items[i]);
    struct tfc_run_spec spec = {.targets = &node, .target_count = 1, .placement = setup->placement};
    tfc_status s = tfc_session_run(setup->session, &spec, NULL, NULL, NULL);
    if (s) return tfc_status_annotate(s, "--init %s", inits->items[i]);
  }
  return NULL;
}

tfc_status run_restore(struct run_setup *setup, const char *prefix) {
  const struct tfc_graph *g = setup->graph;
  struct tfc_restored done = {0};
  if (prefix) {
    TFC_RETURN_IF_ERROR(tfc_session_load_checkpoint(setup->session, g, prefix, &done));
    tfc_say("%s: %u of %u variables restored", prefix, done.restored, done.variables);
  }
  if (!g->variables_prefix.size) return NULL;
  TFC_RETURN_IF_ERROR(tfc_session_load_model(setup->session, g, setup->placement, !prefix));
  tfc_say("%.*s: loaded", TFC_STR_ARG(g->path));
  return NULL;
}

tfc_status run_save(struct run_setup *setup, const char *prefix) {
  tfc_status s = NULL;
  const struct tfc_graph *g = setup->graph;
  struct tfc_checkpoint_item *items = calloc(g->node_count + 1u, sizeof *items);
  struct tfc_tensor *values = calloc(g->node_count + 1u, sizeof *values);
  struct tfc_arena arena = {0};
  size_t count = 0;
  if (!items || !values) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!is_variable(&g->nodes[i])) continue;
    tfc_str name = variable_name(g, &g->nodes[i]);
    tfc_status got = tfc_session_get_variable(setup->session, name, &values[count]);
    if (tfc_status_code(got) == TFC_FAILED_PRECONDITION) { // never set: not part of what ran
      tfc_status_free(got);
      continue;
    }
    TFC_TRY(s, got);
    items[count] = (struct tfc_checkpoint_item){.name = name, .tensor = &values[count]};
    count++;
  }
  TFC_TRY(s, tfc_checkpoint_join_parts(items, count, &arena));
  TFC_TRY(s, tfc_checkpoint_write(prefix, items, count));
  tfc_say("%s: %zu variables saved", prefix, count);
out:
  for (size_t i = 0; values && i < count; i++) tfc_tensor_release(&values[i]);
  free(items);
  free(values);
  tfc_arena_deinit(&arena);
  return s;
}
