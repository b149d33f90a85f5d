// Cost graphs as JSON files.
#ifndef TFC_PLACER_MODEL_COST_GRAPH_JSON_H
#define TFC_PLACER_MODEL_COST_GRAPH_JSON_H

#include "placer/model/cost_graph.h"

// `path` only names the document in messages.
TFC_MUST_USE tfc_status tfc_cost_graph_parse(tfc_str json, const char *path, struct tfc_cost_graph **out);
TFC_MUST_USE tfc_status tfc_cost_graph_read(const char *path, struct tfc_cost_graph **out);
// Whether the content looks like a cost graph (valid or not): it is JSON and neither a binary nor a text GraphDef.
bool tfc_cost_graph_sniff(tfc_str content);
TFC_MUST_USE tfc_status tfc_cost_graph_format(const struct tfc_cost_graph *graph, struct tfc_text *out); // JSON
TFC_MUST_USE tfc_status tfc_cost_graph_write(const struct tfc_cost_graph *graph, const char *path);

#endif
