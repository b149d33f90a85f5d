// The tasks of a job, from a text such as "ps=1,worker=2" or a file like TensorFlow's ClusterSpec (JSON or text). Ranks
// are given in the order of the jobs in the text, and within a job by task index.
//
//   struct tfc_cluster_spec spec = {0};
//   TFC_TRY(s, tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
//   uint32_t rank = tfc_cluster_spec_rank(&spec, TFC_STR("worker"), 1); // 2
//   tfc_cluster_spec_deinit(&spec);
#ifndef TFC_RUNTIME_CLUSTER_SPEC_H
#define TFC_RUNTIME_CLUSTER_SPEC_H

#include "runtime/base/array.h"
#include "runtime/base/none.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

enum { TFC_CLUSTER_MOST_TASKS = 4096 };

struct tfc_cluster_task {
  char *job; // owned
  uint32_t index;
};
struct tfc_cluster_spec {
  TFC_ARRAY(struct tfc_cluster_task) tasks; // by rank
};
// INVALID_ARGUMENT: the message says what is wrong with the text.
TFC_MUST_USE tfc_status tfc_cluster_spec_parse(tfc_str text, struct tfc_cluster_spec *out);
// Reads a file's text in one of these forms: {"ps": ["host:port"], "worker": [...]}; the same inside {"cluster": ...};
// tasks by number, {"ps": {"0": "host:port"}}; or TensorFlow's ClusterDef as protobuf text. The addresses are ignored,
// because MPI connects the tasks.
TFC_MUST_USE tfc_status tfc_cluster_spec_read(tfc_str text, const char *path, struct tfc_cluster_spec *out);
void tfc_cluster_spec_deinit(struct tfc_cluster_spec *spec);

// Returns the rank of a task; TFC_NONE: there is no such task.
uint32_t tfc_cluster_spec_rank(const struct tfc_cluster_spec *spec, tfc_str job, uint32_t index);
// Writes a name such as "/job:worker/task:1".
enum { TFC_TASK_TEXT = 160 };
const char *tfc_cluster_task_name(const struct tfc_cluster_spec *spec, uint32_t rank, char out[TFC_TASK_TEXT]);

#endif
