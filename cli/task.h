// Functions for programs that run as tasks of a job, started by mpirun or srun: they find the tasks, connect them, and
// divide a host's cores among them.
#ifndef TFC_CLI_TASK_H
#define TFC_CLI_TASK_H

#include "runtime/cluster/spec.h"
#include "runtime/transport/transport.h"

// Whether mpirun or srun started this process together with others.
bool cli_task_started(void);
// --cluster: "ps=1,worker=2", or a file with a ClusterSpec.
TFC_MUST_USE tfc_status cli_task_spec(const char *text, struct tfc_cluster_spec *out);
// Connects the tasks of the spec; `text` is for messages. An empty spec becomes as many workers as there are processes.
// INVALID_ARGUMENT: there are more or fewer.
TFC_MUST_USE tfc_status cli_task_connect(struct tfc_cluster_spec *spec, const char *text, struct tfc_transport **out);
// Tasks on one host share its cores: if there are enough cores, each task gets its own.
void cli_task_share_cores(const struct tfc_transport *transport);

#endif
