#include "cli/task.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program.h"
#include "placer/model/machine.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

static bool is_above_one(const char *variable) {
  const char *value = getenv(variable);
  return value && atoi(value) > 1;
}

static bool by_slurm(void) {
  return getenv("PMIX_RANK") && is_above_one("SLURM_NTASKS");
}

bool cli_task_started(void) {
  return is_above_one("OMPI_COMM_WORLD_SIZE") || by_slurm();
}

// Started by srun, Open MPI 4.1 may crash in MPI_Init: while a task waits there for the addresses of all others, it
// receives over TCP, and a faster task that has them already sends to it before it can handle messages. With this
// setting MPI asks for each address when it needs it, and does not wait there. A value that the user has set is kept.
static void choose_start(void) {
  if (by_slurm()) (void)setenv("OMPI_MCA_pmix_base_async_modex", "1", 0);
}

tfc_status cli_task_spec(const char *text, struct tfc_cluster_spec *out) {
  struct tfc_file file = {0};
  if (strchr(text, '=') && access(text, F_OK) != 0) {
    tfc_status s = tfc_cluster_spec_parse(tfc_str_from(text), out);
    return s ? tfc_status_annotate(s, "--cluster %s", text) : NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_file_map_document(text, &file));
  tfc_status s = tfc_cluster_spec_read((tfc_str){(const char *)file.data, file.size}, text, out);
  tfc_file_unmap(&file);
  return s;
}

tfc_status cli_task_connect(struct tfc_cluster_spec *spec, const char *text, struct tfc_transport **out) {
  tfc_status s = NULL;
  struct tfc_transport *t = NULL;
  char workers[32];
  choose_start();
  TFC_TRY(s, spec->tasks.count == 1 ? tfc_transport_local(1, &t) : tfc_transport_mpi(&t));
  if (!spec->tasks.count) {
    snprintf(workers, sizeof workers, "worker=%u", t->count);
    TFC_TRY(s, tfc_cluster_spec_parse(tfc_str_from(workers), spec));
  }
  const uint32_t tasks = (uint32_t)spec->tasks.count;
  if (t->count != tasks)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "--cluster %s has %u tasks, and %u processes were started: mpirun -n %u", text,
             tasks, t->count, tasks);
  *out = t, t = NULL;
out:
  tfc_transport_close(t);
  return s;
}

void cli_task_close(struct tfc_transport *t, const char *program, const char *name, tfc_status s) {
  if (t && s && t->count > 1) {
    fflush(NULL);
    fprintf(stderr, "%s: %s: %s\n", program, name, tfc_status_message(s));
    t->type->fail(t, tfc_exit_code(s), tfc_status_message(s));
  }
  tfc_transport_close(t);
}

tfc_status cli_task_devices(const char *names, const char *task, char **out) {
  tfc_status s = NULL;
  struct tfc_text gpus = {0};
  int64_t last_cpu = -1; // CPU devices are opened from cpu:0 up to this one
  char *list = NULL;
  for (const char *at = names; *at;) {
    const tfc_str name = {at, strcspn(at, ",")};
    at += name.size + (at[name.size] == ',');
    const char *type = memmem(name.data, name.size, "/device:", 8);
    if (!type)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s' is not /job:NAME/task:N/device:TYPE:N, with * for any",
               TFC_STR_ARG(name));
    const tfc_str owner = {name.data, (size_t)(type - name.data)}, device = tfc_str_sub(name, owner.size + 8, SIZE_MAX);
    const tfc_str number = tfc_str_sub(device, 4, SIZE_MAX);
    const bool gpu = tfc_str_starts(device, "GPU:"), all = tfc_str_is(number, "*");
    int64_t index = 0;
    if (!gpu && !tfc_str_starts(device, "CPU:"))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s': devices of tasks are CPU:N or GPU:N", TFC_STR_ARG(name));
    if (all && gpu) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s': name GPUs by their numbers", TFC_STR_ARG(name));
    if (!all) TFC_TRY(s, tfc_parse_i64(number, &index));
    if (!tfc_glob_match(owner, tfc_str_from(task))) continue;
    if (gpu)
      tfc_text_printf(&gpus, ",gpu:%lld", (long long)index);
    else if (index > last_cpu)
      last_cpu = index;
  }
  const tfc_str after = {gpus.data ? gpus.data : "", gpus.size};
  if (last_cpu > 0)
    list = tfc_format("cpu:0-%lld%.*s", (long long)last_cpu, TFC_STR_ARG(after));
  else if (last_cpu == 0 || !after.size)
    list = tfc_format("cpu:0%.*s", TFC_STR_ARG(after));
  else
    list = tfc_format("%.*s", TFC_STR_ARG(tfc_str_sub(after, 1, SIZE_MAX)));
  if (gpus.failed || !list) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = list, list = NULL;
out:
  tfc_text_deinit(&gpus);
  free(list);
  return s;
}

_Static_assert(sizeof(cpu_set_t) == sizeof(struct cli_task_mask), "the mask holds a cpu_set_t");
static bool is_ps(const struct tfc_transport *t, const struct tfc_cluster_spec *spec, uint32_t beside) {
  return !strcmp(spec->tasks.data[t->beside_ranks ? t->beside_ranks[beside] : beside].job, "ps");
}

void cli_task_share_cores(const struct tfc_transport *t, const struct tfc_cluster_spec *spec,
                          struct cli_task_mask *out_mask) {
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (out_mask) memcpy(out_mask, &allowed, sizeof allowed);
  uint32_t parts = t->beside_count, part = t->beside, working = 0, before = 0;
  for (uint32_t i = 0; spec && i < t->beside_count; i++) {
    if (i == t->beside) before = working;
    working += !is_ps(t, spec, i);
  }
  if (working && !is_ps(t, spec, t->beside)) parts = working, part = before;
  if (parts < 2 || !known) return;
  const uint32_t cores = (uint32_t)CPU_COUNT(&allowed);
  const uint32_t each = cores / parts ? cores / parts : 1;
  uint32_t number = 0;
  for (int c = 0; c < CPU_SETSIZE; c++) {
    if (!CPU_ISSET(c, &allowed)) continue;
    if (number >= part * each % cores && number < part * each % cores + each) CPU_SET(c, &own);
    number++;
  }
  if (CPU_COUNT(&own)) sched_setaffinity(0, sizeof own, &own);
}

void cli_task_leave_cores(const struct cli_task_mask *mask) {
  cpu_set_t before;
  memcpy(&before, mask, sizeof before);
  if (CPU_COUNT(&before)) sched_setaffinity(0, sizeof before, &before);
}
