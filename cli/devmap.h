// For --map: gives devices the names that they have on the production machine:
// "gpu:0=/job:worker/task:1/device:GPU:0,gpu:1=...".
#ifndef TFC_CLI_DEVMAP_H
#define TFC_CLI_DEVMAP_H

#include "placer/model/placement.h"
#include "runtime/graph/graph.h"

// Replaces `tensorflow` of the document's devices; a device without one gets "/device:KIND:INDEX", made from its name.
// UNAVAILABLE: `text` names a device that the placement does not have. INVALID_ARGUMENT: it is not NAME=DEVICE, or the
// device string cannot be read. `text` may be NULL.
TFC_MUST_USE tfc_status cli_devmap_apply(struct tfc_placement *placement, const char *text);

// INVALID_ARGUMENT names a device with nodes on it whose `tensorflow` is not the name of a device as TensorFlow reads
// it.
TFC_MUST_USE tfc_status cli_devmap_check(const struct tfc_placement *placement);

// Returns the first device with nodes on it that `text` gives no new name; data NULL: there is none. The host needs no
// new name.
tfc_str cli_devmap_unnamed(const struct tfc_placement *placement, const char *text);

// Writes a placement's devices into a graph file: a check of the graph's nodes, then a callback for tfc_graph_save.
struct cli_devmap;
// INVALID_ARGUMENT names a node that only the graph has, or only the placement.
TFC_MUST_USE tfc_status cli_devmap_create(const struct tfc_graph *graph, const struct tfc_placement *placement,
                                          struct cli_devmap **out);
tfc_str cli_devmap_device(void *devmap, tfc_str key, tfc_str device);
void cli_devmap_free(struct cli_devmap *devmap);

#endif
