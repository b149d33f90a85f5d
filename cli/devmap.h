// --map: devices renamed for the production machine: "gpu:0=/job:worker/task:1/device:GPU:0,gpu:1=...".
#ifndef TFC_CLI_DEVMAP_H
#define TFC_CLI_DEVMAP_H

#include "placer/model/placement.h"
#include "runtime/graph/graph.h"

// Replaces `tensorflow` of the document's devices; those without one get "/device:KIND:INDEX" from their name.
// UNAVAILABLE: a name in `text` that the placement does not have. INVALID_ARGUMENT: not NAME=DEVICE, or a device string
// that cannot be read. `text` may be NULL.
TFC_MUST_USE tfc_status cli_devmap_apply(struct tfc_placement *placement, const char *text);

// The first device with nodes on it that `text` gives no name; data NULL: none. What runs on the host stays there.
tfc_str cli_devmap_unnamed(const struct tfc_placement *placement, const char *text);

// What a graph file gets from a placement: a callback for tfc_graph_save, with a check before.
struct cli_devmap;
// INVALID_ARGUMENT: a node of the graph that the placement lacks, or one that the graph lacks; names it.
TFC_MUST_USE tfc_status cli_devmap_create(const struct tfc_graph *graph, const struct tfc_placement *placement,
                                          struct cli_devmap **out);
tfc_str cli_devmap_device(void *devmap, tfc_str key, tfc_str device);
void cli_devmap_free(struct cli_devmap *devmap);

#endif
