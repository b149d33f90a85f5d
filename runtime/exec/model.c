// Loading a SavedModel into a session as TensorFlow's loader does it: it runs the model's own restore operation with
// the path of its checkpoint, then its initialiser with the paths of its assets.
#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/io/checkpoint.h"

// The feeds of the restore operation: the checkpoint's prefix and the assets' paths, if their tensors are in the graph.
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
  return tfc_tensor_set_string(&value, 0, text);
}
static tfc_status make_feeds(const struct tfc_graph *g, bool filename, struct feeds *f) {
  f->outputs = calloc(g->asset_count + 2u, sizeof *f->outputs);
  f->values = calloc(g->asset_count + 2u, sizeof *f->values);
  if (!f->outputs || !f->values) return tfc_status_no_memory("loading a model");
  if (filename) TFC_RETURN_IF_ERROR(add_feed(g, g->saver_filename, g->variables_prefix, f));
  for (uint32_t i = 0; i < g->asset_count; i++)
    TFC_RETURN_IF_ERROR(add_feed(g, g->assets[i].tensor, g->assets[i].path, f));
  return NULL;
}

static tfc_status run_op(struct tfc_session *session, const struct tfc_graph *g, tfc_str name, bool filename,
                         const uint16_t *placement) {
  tfc_status s = NULL;
  struct feeds f = {0};
  uint32_t node;
  TFC_TRY(s, tfc_graph_parse_node(g, name, &node)); // "name:0", too
  TFC_TRY(s, make_feeds(g, filename, &f));
  struct tfc_run_spec spec = {
      .feeds = f.outputs, .feed_count = f.count, .targets = &node, .target_count = 1, .placement = placement};
  s = tfc_session_run(session, &spec, f.values, NULL, NULL);
out:
  feeds_deinit(&f);
  return tfc_status_annotate(s, "%.*s: running '%.*s'", TFC_STR_ARG(g->path), TFC_STR_ARG(name));
}

// Returns the operation that a SavedModel runs after it is restored; "" if there is none.
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

// Whether there is a checkpoint. A model without variables may have none; a model that restores variables needs one.
static tfc_status find_variables(const struct tfc_graph *g, bool *out_saved) {
  uint32_t variables = 0;
  char *index = tfc_format("%.*s.index", TFC_STR_ARG(g->variables_prefix));
  if (!index) return tfc_status_no_memory("loading a model");
  *out_saved = access(index, F_OK) == 0;
  for (uint32_t i = 0; i < g->node_count; i++) variables += g->nodes[i].def && g->nodes[i].def->flags & TFC_OP_VARIABLE;
  tfc_status s = NULL;
  if (!*out_saved && variables && g->saver_restore.size)
    s = tfc_status_make(TFC_NOT_FOUND,
                        "%s is missing: the SavedModel has %u variables, and no values for them; --checkpoint PREFIX "
                        "takes values from elsewhere",
                        index, variables);
  free(index);
  return s;
}

tfc_status tfc_session_load_model(struct tfc_session *session, const struct tfc_graph *g, const uint16_t *placement,
                                  bool variables) {
  struct tfc_restored unused;
  bool saved = false;
  if (variables && g->variables_prefix.size) TFC_RETURN_IF_ERROR(find_variables(g, &saved));
  if (saved && g->saver_restore.size && g->saver_filename.size)
    TFC_RETURN_IF_ERROR(run_op(session, g, g->saver_restore, true, placement));
  else if (saved)
    TFC_RETURN_IF_ERROR(tfc_session_load_checkpoint(session, g, g->variables_prefix.data, &unused));
  tfc_str init = init_op(g);
  return init.size ? run_op(session, g, init, false, placement) : NULL;
}
