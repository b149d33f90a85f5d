#include "placer/model/rows.h"

#include <math.h>
#include <stdlib.h>

#include "profiler/store_rows.h"

tfc_status tfc_problem_write_devices(const struct tfc_problem *p, tfc_label label, struct tfc_store *store,
                                     int64_t run) {
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *x = &p->machine->devices[d];
    char *name = tfc_str_dup(x->name), *kind = tfc_str_dup(x->kind),
         *tensorflow = x->tensorflow.data ? tfc_str_dup(x->tensorflow) : NULL;
    struct tfc_text slowdown = {0};
    for (uint32_t k = 0; k < x->slowdown_count; k++)
      tfc_text_printf(&slowdown, "%s%.4f", k ? ", " : "[", x->slowdown[k]);
    if (x->slowdown_count) tfc_text_printf(&slowdown, "]");
    const struct tfc_store_device row = {.device_id = d,
                                         .name = name,
                                         .kind = kind,
                                         .tensorflow = tensorflow,
                                         .label = tfc_label_name(label),
                                         .slowdown = slowdown.data,
                                         .memory_space = d,
                                         .memory_limit = x->memory,
                                         .dispatch_us = x->dispatch_us};
    const bool whole = name && kind && (tensorflow || !x->tensorflow.data) && !slowdown.failed;
    tfc_status s = whole ? tfc_store_add_devices(store, run, &row, 1) : tfc_status_no_memory("recording a run");
    free(name), free(kind), free(tensorflow);
    tfc_text_deinit(&slowdown);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}

tfc_status tfc_problem_write_links(const struct tfc_problem *p, struct tfc_store *store, int64_t run) {
  static const uint64_t sizes[] = {0, 1 << 20};
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes && a != b && pair->linked; i++) {
        const struct tfc_store_link row = {a, b, sizes[i], 1e-6 * (double)tfc_problem_wire_time_of(pair, sizes[i]), 0};
        TFC_RETURN_IF_ERROR(tfc_store_add_links(store, run, &row, 1));
      }
    }
  return NULL;
}

tfc_status tfc_problem_write_costs(const struct tfc_problem *p, const uint32_t *ids, struct tfc_store *store,
                                   int64_t run) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t k = 0; k < g->kind_count; k++) {
    char *kind = tfc_str_dup(g->kind_names[k]);
    tfc_status s = kind ? NULL : tfc_status_no_memory("recording a run");
    for (uint32_t n = 0; n < g->node_count && !s; n++) {
      const double us = g->time_us[(size_t)n * g->kind_count + k];
      const struct tfc_store_cost row = {ids ? ids[n] : n, kind, us, us, us, us, 0};
      if (!isnan(us)) s = tfc_store_add_costs(store, run, &row, 1);
    }
    free(kind);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}

tfc_status tfc_problem_write_graph(const struct tfc_problem *p, struct tfc_store *store, int64_t run) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t n = 0; n < g->node_count; n++) {
    uint64_t bytes = 0;
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) bytes += g->bytes[t];
    const struct tfc_store_node row = {.node_id = n,
                                       .name = g->names[n],
                                       .op = TFC_STR(""),
                                       .unit_id = p->unit[n],
                                       .flops = (double)NAN,
                                       .bytes_touched = (double)NAN,
                                       .memory = g->memory[n],
                                       .output_bytes = bytes};
    TFC_RETURN_IF_ERROR(tfc_store_add_nodes(store, run, &row, 1));
  }
  struct tfc_store_edge *edges = calloc(g->consumer_count + 1u, sizeof *edges);
  if (!edges) return tfc_status_no_memory("recording a run");
  for (uint32_t t = 0; t < g->tensor_count; t++)
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
      edges[c] = (struct tfc_store_edge){g->producer[t], g->output[t], g->consumer[c], g->bytes[t]};
  tfc_status s = tfc_store_add_edges(store, run, edges, g->consumer_count);
  free(edges);
  return s;
}
