// The formats of tfc-export that are not graphs: a CSV table of nodes, a Python file that tells TensorFlow the device
// of each operation, and the list of a cluster's tasks.
#ifndef TFC_CLI_EXPORT_LISTS_H
#define TFC_CLI_EXPORT_LISTS_H

#include "placer/model/placement.h"

// One line a node: name, device, TensorFlow's name of it, order, reason.
TFC_MUST_USE tfc_status cli_export_csv(const struct tfc_placement *placement, const char *path);
// A Python 3 file without imports: device(op) for `with tf.compat.v1.device(...)`, and apply(graph) for a graph that
// exists already.
TFC_MUST_USE tfc_status cli_export_device_function(const struct tfc_placement *placement, const char *path);
// {"worker": ["localhost:2222", ...], ...}, as tf.train.ClusterSpec takes it: the jobs and tasks of the devices' names.
// INVALID_ARGUMENT: a device's name that cannot be read.
TFC_MUST_USE tfc_status cli_export_clusterspec(const struct tfc_placement *placement, const char *path);

#endif
