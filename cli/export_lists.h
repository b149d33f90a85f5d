// The formats of tfc-export that are not graphs: a CSV table of nodes, a Python file that tells TensorFlow the device
// of each operation, and the list of a cluster's tasks.
#ifndef TFC_CLI_EXPORT_LISTS_H
#define TFC_CLI_EXPORT_LISTS_H

#include "placer/model/placement.h"

// Writes one line for each node: its name, its device, TensorFlow's name of the device, its order, the reason.
TFC_MUST_USE tfc_status cli_export_csv(const struct tfc_placement *placement, const char *path);
// Writes a Python 3 file without imports. It has device(op), for `with tf.compat.v1.device(...)`, and apply(graph), for
// a graph that already exists.
TFC_MUST_USE tfc_status cli_export_device_function(const struct tfc_placement *placement, const char *path);
// Writes {"worker": ["localhost:2222", ...], ...}, as tf.train.ClusterSpec takes it, with the jobs and tasks in the
// devices' names. INVALID_ARGUMENT: the name of a device cannot be read.
TFC_MUST_USE tfc_status cli_export_clusterspec(const struct tfc_placement *placement, const char *path);

#endif
