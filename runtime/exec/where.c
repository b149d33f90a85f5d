// Makes a text of where devices have been waiting for a long time, which they record in the step's spans
// (tfc_step_note_stop).
#include "runtime/exec/where.h"

#include "runtime/exec/plan/plan_internal.h"

char *tfc_plan_where(const struct tfc_plan *plan) {
  const struct tfc_graph *g = plan->ir.graph;
  struct tfc_text text = {0};
  for (uint32_t d = 0; plan->spans && d < plan->ir.device_count; d++) {
    const uint32_t first = atomic_load(&plan->spans[d].last), last = atomic_load(&plan->spans[d].next);
    if (!first || !last || first > g->node_count || last > g->node_count) continue;
    const struct tfc_node *a = &g->nodes[first - 1], *b = &g->nodes[last - 1];
    tfc_text_printf(&text, "%snode '%.*s' (%.*s)", text.size ? "; " : "", TFC_STR_ARG(a->name), TFC_STR_ARG(a->op));
    if (a != b) tfc_text_printf(&text, " to '%.*s' (%.*s)", TFC_STR_ARG(b->name), TFC_STR_ARG(b->op));
    tfc_text_printf(&text, " on %s had not ended", plan->ir.devices[d]->info.name);
  }
  return text.data;
}
