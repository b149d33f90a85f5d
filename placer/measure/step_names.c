#include "placer/measure/step_names.h"

#include <stdlib.h>

tfc_status tfc_step_names_init(struct tfc_step_names *n, const struct tfc_graph *g, const struct tfc_step_spec *step,
                               struct tfc_measure_options *o) {
  uint32_t count = 0;
  *n = (struct tfc_step_names){.fetch_count = step->fetch_count};
  n->names = calloc((size_t)step->fetch_count + step->target_count + step->init_count + 1, sizeof *n->names);
  n->fetches = calloc(step->fetch_count + 1u, sizeof *n->fetches);
  if (!n->names || !n->fetches) return tfc_status_no_memory("the names of a step");
  for (uint32_t i = 0; i < step->fetch_count; i++) {
    const struct tfc_output fetch = step->fetches[i];
    n->fetches[i] = tfc_format("%.*s:%d", TFC_STR_ARG(g->nodes[fetch.node].name), fetch.index);
    if (!n->fetches[i]) return tfc_status_no_memory("the names of a step");
    n->names[count++] = tfc_str_from(n->fetches[i]);
  }
  for (uint32_t i = 0; i < step->target_count; i++) n->names[count++] = g->nodes[step->targets[i]].name;
  for (uint32_t i = 0; i < step->init_count; i++) n->names[count++] = g->nodes[step->inits[i]].name;
  o->fetches = n->names, o->targets = o->fetches + step->fetch_count, o->inits = o->targets + step->target_count;
  o->fetch_count = step->fetch_count, o->target_count = step->target_count, o->init_count = step->init_count;
  o->feed_count = step->feed_count;
  return NULL;
}

void tfc_step_names_deinit(struct tfc_step_names *n) {
  for (uint32_t i = 0; n->fetches && i < n->fetch_count; i++) free(n->fetches[i]);
  free(n->fetches), free(n->names);
  *n = (struct tfc_step_names){0};
}
