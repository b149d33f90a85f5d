// Implements --checkpoint, which restores the variables whose names are keys of the checkpoint, and --save-checkpoint,
// also after a signal.
#include "cli/program.h"
#include "cli/run.h"
#include "cli/run_variables.h"
#include "cli/untrusted.h"
#include "runtime/base/interrupt.h"
#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"

tfc_status run_initialise(struct run_setup *setup) {
  const struct tfc_texts *inits = &setup->options->inits;
  for (uint32_t i = 0; i < inits->count; i++) {
    uint32_t node;
    tfc_status found = tfc_graph_parse_node(setup->graph, tfc_str_from(inits->items[i]), &node);
    if (found) return tfc_status_annotate(found, "--init %s", inits->items[i]);
    struct tfc_run_spec spec = {.targets = &node, .target_count = 1, .placement = setup->placement};
    const struct tfc_run_options options = {.cancel = tfc_program_cancel(), .deadline_ns = cli_untrusted_left(0)};
    tfc_status s = run_step(setup, &spec, NULL, NULL, &options);
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

tfc_status run_restore_tasks(const struct run_setup *setup, const char *prefix) {
  size_t restored, all;
  tfc_status s = run_variables_restore(setup, prefix, false, &restored, &all);
  if (s) return tfc_status_annotate(s, "--checkpoint");
  tfc_say("%s: %zu of %zu variables restored", prefix, restored, all);
  return NULL;
}

tfc_status run_save_tasks(const struct run_setup *setup, const char *prefix, bool some) {
  size_t saved;
  tfc_status s = run_variables_save(setup, prefix, some, &saved);
  if (s) return tfc_status_annotate(s, "saving %s", prefix);
  tfc_say("%s: %zu variables saved", prefix, saved);
  return NULL;
}

tfc_status run_save(struct run_setup *setup, const char *prefix) {
  size_t count;
  TFC_RETURN_IF_ERROR(tfc_session_save_checkpoint(setup->session, setup->graph, prefix, &count));
  tfc_say("%s: %zu variables saved", prefix, count);
  return NULL;
}

bool run_keeps(const struct run_options *o) {
  return o->save_checkpoint || o->supervise || (o->cluster && o->profile);
}
const _Atomic bool *run_cut_off(const struct run_options *o) {
  return run_keeps(o) ? tfc_program_cut_off() : tfc_program_cancel();
}
void run_finish_steps(const struct run_options *o) {
  if (run_keeps(o)) tfc_program_finish_steps(!o->common.untrusted); // --untrusted has a time limit of its own
}

tfc_status run_save_stopped(struct run_setup *setup, const char *prefix, tfc_status stopped) {
  if (!setup->steps) return stopped;
  tfc_status s = NULL;
  if (atomic_load(tfc_program_cut_off())) {
    s = tfc_status_make(TFC_CANCELLED, "%s; a step did not end, so %s is not written", tfc_status_message(stopped),
                        prefix);
  } else {
    tfc_interrupt_on(NULL);
    s = run_save(setup, prefix);
    if (!s) s = tfc_status_make(TFC_CANCELLED, "%s; %s has the variables", tfc_status_message(stopped), prefix);
  }
  tfc_status_free(stopped);
  return s;
}
