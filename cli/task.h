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
// Tasks on one host share its cores: if there are enough cores, each task gets its own, and its devices are opened on
// these. `out_mask` (optional) is for cli_task_leave_cores.
struct cli_task_mask {
  unsigned char bytes[128]; // cpu_set_t
};
void cli_task_share_cores(const struct tfc_transport *transport, struct cli_task_mask *out_mask);
// After the devices were opened: the calling thread, and those that it starts, may again run on all cores that they
// could run on before. Worth it where a device has one core and so no thread that is pinned: if other programs use that
// core, the system can move the task to another one.
void cli_task_leave_cores(const struct cli_task_mask *mask);

#endif
