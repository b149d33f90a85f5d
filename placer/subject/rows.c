#include "placer/subject/rows.h"

#include <math.h>
#include <stdlib.h>

#include "profiler/store_rows.h"

static struct tfc_store_node node_row(const struct tfc_subject_rows *r, uint32_t node) {
  const struct tfc_subject *u = r->subject;
  const struct tfc_node *n = &u->graph->nodes[node];
  const uint32_t anchor = u->needed[node] ? u->anchor[node] : TFC_NONE;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < n->output_count && n->output_begin + k < r->output_count; k++)
    bytes += r->output_bytes[n->output_begin + k];
  return (struct tfc_store_node){.node_id = node,
                                 .name = n->name,
                                 .op = n->op,
                                 .unit_id = anchor == TFC_NONE ? TFC_NONE : r->problem->unit[anchor],
                                 .flops = node < r->node_count ? r->work[node].flops : (double)NAN,
                                 .bytes_touched = node < r->node_count ? r->work[node].bytes : (double)NAN,
                                 .memory = u->cost_of[node] == TFC_NONE ? 0 : u->memory[u->cost_of[node]],
                                 .output_bytes = bytes};
}

tfc_status tfc_subject_write_rows(const struct tfc_subject_rows *r, struct tfc_store *store, int64_t run) {
  const struct tfc_subject *u = r->subject;
  tfc_status s = NULL;
  struct tfc_store_edge *edges = calloc(u->edge_count + 1u, sizeof *edges);
  if (!edges) return tfc_status_no_memory("recording a run");
  for (uint32_t i = 0; i < u->graph->node_count; i++) {
    const struct tfc_store_node row = node_row(r, i);
    TFC_TRY(s, tfc_store_add_nodes(store, run, &row, 1));
  }
  for (uint32_t e = 0; e < u->edge_count; e++) {
    const struct tfc_subject_edge *x = &u->edges[e];
    edges[e] = (struct tfc_store_edge){u->node_of[x->from], x->output, u->node_of[x->to], x->bytes};
  }
  TFC_TRY(s, tfc_store_add_edges(store, run, edges, u->edge_count));
out:
  free(edges);
  return s;
}
