// Functions for programs that run as tasks of a job, started by mpirun or srun: they find the tasks, connect them, and
// divide a host's cores among them.
#ifndef TFC_CLI_TASK_H
#define TFC_CLI_TASK_H

#include "runtime/cluster/spec.h"
#include "runtime/transport/transport.h"

// Whether mpirun or srun started this process together with others.
bool cli_task_started(void);
// Reads the value of --cluster: "ps=1,worker=2", or the path of a file with a ClusterSpec.
TFC_MUST_USE tfc_status cli_task_spec(const char *text, struct tfc_cluster_spec *out);
// Connects the tasks of the spec; `text` is for messages. An empty spec is filled with as many workers as there are
// processes. INVALID_ARGUMENT: the number of processes is not that of the tasks.
TFC_MUST_USE tfc_status cli_task_connect(struct tfc_cluster_spec *spec, const char *text, struct tfc_transport **out);
// Closes the transport of a task that did not join, or NULL. After an error (`s` is not NULL) the other tasks would
// wait for this one for ever: `program` tells the user, and the whole job ends with the error's exit code. With MPI it
// then does not return; `name`: the task's.
void cli_task_close(struct tfc_transport *transport, const char *program, const char *name, tfc_status s);
// Makes the list of devices that a task opens, written as for --devices ("cpu:0-1,gpu:0"); the caller frees it.
// `names`: TensorFlow's names of devices of any tasks, separated by commas; '*' in a name stands for any characters.
// The list has those devices that belong to `task`, or only cpu:0 if none does. INVALID_ARGUMENT: one is not a device's
// name.
TFC_MUST_USE tfc_status cli_task_devices(const char *names, const char *task, char **out);
// Divides the cores of a host among its tasks: if there are enough, each task gets cores of its own, on which its
// devices are opened. With `spec`, tasks of a job `ps` beside others get such a part, too, but take nothing from the
// others: they hold variables, and work mostly while the others wait for them. `out_mask` (optional) is for
// cli_task_leave_cores.
struct cli_task_mask {
  unsigned char bytes[128]; // cpu_set_t
};
void cli_task_share_cores(const struct tfc_transport *transport, const struct tfc_cluster_spec *spec,
                          struct cli_task_mask *out_mask);
// Call it after the devices were opened: lets the calling thread, and threads that it starts, run on all cores again.
// That helps if a device has only one core, and so no pinned thread: if other programs use that core, the system can
// move the task to another one.
void cli_task_leave_cores(const struct cli_task_mask *mask);

#endif
