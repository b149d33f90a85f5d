// tfc-run --cluster SPEC: this process is one task of a job that mpirun or srun started. A task with a graph and a
// script runs its script, and at the same time serves the other tasks. A task without a script only serves.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/guard.h"
#include "cli/program.h"
#include "cli/restart.h"
#include "cli/run.h"
#include "cli/run_kinds.h"
#include "cli/run_replicas.h"
#include "cli/task.h"
#include "placer/model/placed.h"
#include "placer/tasks/machine.h"
#include "runtime/graph/export.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

struct job {
  const struct run_options *options;
  struct run_options own; // the options of this task: paths expanded
  struct tfc_cluster_spec spec;
  struct tfc_member *member;
  struct run_setup setup;
  char *graph, *script, *out, *placement;
  struct tfc_placed placed; // what the file of --placement says
  char name[TFC_TASK_TEXT];
  struct tfc_guard *guard; // the parent process that reports a crash (cli/guard.h); NULL: there is none
  atomic_bool told;
  bool runs, chief; // runs: it takes steps; chief: it is the first task that takes steps
  bool stopped;     // a signal ended its steps, and everything is kept
};

// Replaces {job} and {task} in a path, as in "train.{job}.{task}.meta". NULL: out of memory.
static char *expand(const char *path, const struct tfc_cluster_task *task) {
  struct tfc_text text = {0};
  for (const char *at = path; *at;) {
    if (!strncmp(at, "{job}", 5)) {
      tfc_text_printf(&text, "%s", task->job), at += 5;
    } else if (!strncmp(at, "{task}", 6)) {
      tfc_text_printf(&text, "%u", task->index), at += 6;
    } else {
      tfc_text_add(&text, (tfc_str){at++, 1});
    }
  }
  char *copy = text.failed ? NULL : tfc_format("%.*s", (int)text.size, text.data ? text.data : "");
  tfc_text_deinit(&text);
  return copy;
}

// Returns the path of a task's script: SCRIPT.<job>.<task>.json if there is one, else SCRIPT.json. NULL: neither
// exists, or out of memory.
static char *script_of(const char *path, const struct tfc_cluster_task *task) {
  const size_t size = strlen(path), stem = size > 5 && !strcmp(path + size - 5, ".json") ? size - 5 : size;
  char *own = tfc_format("%.*s.%s.%u.json", (int)stem, path, task->job, task->index);
  if (own && access(own, F_OK) == 0) return own;
  free(own);
  return access(path, F_OK) == 0 ? tfc_format("%s", path) : NULL;
}

static bool has_own_graph(const struct job *job, uint32_t rank) {
  char *path = expand(job->options->graph, &job->spec.tasks.data[rank]);
  const bool own = path && strcmp(path, job->options->graph) != 0, there = own && access(path, F_OK) == 0;
  free(path);
  return there;
}

// Whether a task without a script takes steps. With graphs of their own, all tasks do; with one graph for all, only the
// first task whose job is not `ps` does. The first task that takes steps is the chief.
static bool trains(struct job *job, uint32_t rank) {
  uint32_t first = TFC_NONE, only = TFC_NONE;
  for (uint32_t r = (uint32_t)job->spec.tasks.count; r-- > 0;) {
    if (has_own_graph(job, r)) first = r;
    if (strcmp(job->spec.tasks.data[r].job, "ps") != 0) only = r;
  }
  if (strcmp(job->graph, job->options->graph) == 0) {
    job->chief = rank == (only == TFC_NONE ? 0 : only);
    // each replica takes steps of its own
    if (job->options->async) return strcmp(job->spec.tasks.data[rank].job, "ps") != 0;
    return job->chief;
  }
  job->chief = rank == first;
  return has_own_graph(job, rank);
}

static void say_failure(void *arg, int code, const char *why) {
  struct job *job = arg;
  atomic_store(&job->told, true);
  fprintf(stderr, "tfc-run: %s: %s\n", job->name, why);
  cli_failure_leave(job->options->supervise, code, "", why); // `why` begins with the name of the task that failed
}

// Somebody has sent another task a signal.
static void stop(void *arg) {
  (void)arg;
  tfc_program_stop();
}

// Reads --placement. Makes the list of devices that this task opens: --devices, if it is given; otherwise those of this
// task that the placement file names, or cpu:0.
static tfc_status find_devices(struct job *job, char **out) {
  const struct run_options *o = job->options;
  if (job->placement) TFC_RETURN_IF_ERROR(tfc_placed_read(job->placement, NULL, &job->placed));
  if (!o->devices && job->placement) {
    tfc_status s = cli_task_devices(job->placed.devices, job->name, out);
    if (tfc_status_code(s) != TFC_INVALID_ARGUMENT) return s;
    // A name that no device of a task can have is like one that no device has.
    tfc_status unknown = tfc_status_make(TFC_UNAVAILABLE, "%s: %s", job->placement, tfc_status_message(s));
    tfc_status_free(s);
    return unknown;
  }
  *out = tfc_format("%s", o->devices ? o->devices : "cpu:0");
  return *out ? NULL : tfc_status_no_memory(NULL);
}

static tfc_status join(struct job *job) {
  tfc_status s = NULL;
  char *devices = NULL;
  struct tfc_transport *t = NULL;
  struct cli_task_mask mask;
  const struct run_options *o = job->options;
  TFC_TRY(s, cli_task_spec(o->cluster, &job->spec));
  TFC_TRY(s, cli_task_connect(&job->spec, o->cluster, &t));
  const struct tfc_cluster_task *task = &job->spec.tasks.data[t->rank];
  tfc_cluster_task_name(&job->spec, t->rank, job->name);
  TFC_TRY(s, run_replicas_check(o, &job->spec));
  if (job->guard) snprintf(job->guard->name, sizeof job->guard->name, "%s", job->name);
  cli_task_share_cores(t, &job->spec, &mask);
  job->own = *o;
  job->graph = expand(o->graph, task);
  if (!job->graph) TFC_TRY(s, tfc_status_no_memory(NULL));
  job->own.graph = job->graph;
  if (o->placement) {
    job->placement = expand(o->placement, task);
    if (!job->placement) TFC_TRY(s, tfc_status_no_memory(NULL));
    job->own.placement = job->placement;
  }
  if (o->script) {
    job->script = script_of(o->script, task);
    job->out = tfc_format("%s/%s.%u", o->out, task->job, task->index);
    if (!job->out) TFC_TRY(s, tfc_status_no_memory(NULL));
    job->own.out = job->out;
    job->own.script = job->script;
  }
  // If --graph contains {job} or {task}, a task whose file does not exist only serves other tasks. Otherwise a missing
  // file is an error.
  const bool has_graph = strcmp(job->graph, o->graph) == 0 || access(job->graph, F_OK) == 0;
  TFC_TRY(s, find_devices(job, &devices));
  TFC_TRY(s, tfc_devices_open(devices, NULL, 0, &job->setup.devices));
  const struct tfc_device_set *set = &job->setup.devices;
  if (set->count == 1 && set->devices[0]->info.cores == 1) cli_task_leave_cores(&mask);
  const struct tfc_member_options options = {.spec = &job->spec,
                                             .transport = t,
                                             .devices = &job->setup.devices,
                                             .has_script = o->script ? has_graph && job->script : trains(job, t->rank),
                                             .never_lends = o->backup > 0,
                                             .failed = say_failure,
                                             .stop = tfc_program_cancel(),
                                             .stopped = stop,
                                             .last = job->guard ? job->guard->last : NULL,
                                             .arg = job};
  t = NULL;
  TFC_TRY(s, tfc_member_join(&options, &job->member));
  for (uint32_t r = 0; tfc_member_rank(job->member) == 0 && r < job->spec.tasks.count; r++) {
    char name[TFC_TASK_TEXT];
    struct tfc_text shown = {0};
    tfc_member_show_devices(job->member, r, &shown);
    tfc_say("%s on %s: %s", tfc_cluster_task_name(&job->spec, r, name), tfc_member_host(job->member, r),
            shown.data ? shown.data : "");
    tfc_text_deinit(&shown);
  }
  job->runs = options.has_script;
out:
  if (s && t) cli_failure_leave(o->supervise, tfc_exit_code(s), job->name, tfc_status_message(s));
  cli_task_close(t, "tfc-run", job->name, s);
  free(devices);
  return s;
}

// Sets the device string of each node of the graph to the device that the placement file has for the node.
static tfc_status place(struct job *job) {
  tfc_status s = NULL;
  struct tfc_graph *g = job->setup.graph;
  struct tfc_machine *machine = NULL;
  uint16_t *placement = NULL;
  tfc_str *device = calloc(g->node_count + 1u, sizeof *device);
  if (!device) return tfc_status_no_memory("--placement");
  job->placed.graph = g;
  TFC_TRY(s, tfc_task_machine(job->member, &job->spec, NULL, NULL, 0, &machine));
  TFC_TRY(s, tfc_placed_assign_machine(&job->placed, machine, &placement));
  for (uint32_t i = 0; i < g->node_count; i++) device[i] = machine->devices[placement[i]].name;
  TFC_TRY(s, tfc_graph_set_devices(g, device));
  job->own.execution.gpu_math = (int)run_choose_math(&job->own, job->placed.gpu_math);
out:
  tfc_machine_free(machine);
  free(device), free(placement);
  return s;
}

// Waits until every task with a script has run its --init: a later one would undo what another task's script has done.
// Then the chief restores --checkpoint.
static tfc_status prepare_scripts(struct job *job) {
  TFC_RETURN_IF_ERROR(tfc_member_barrier(job->member, "--init has run", tfc_program_cancel()));
  if (!job->own.checkpoint) return NULL;
  if (job->chief) TFC_RETURN_IF_ERROR(run_restore_tasks(&job->setup, job->own.checkpoint));
  return tfc_member_barrier(job->member, "--checkpoint is restored", tfc_program_cancel());
}

// Runs the task's script. The chief is the first task that has one.
static tfc_status run_own_script(struct job *job) {
  tfc_status s = NULL;
  job->chief = true;
  for (uint32_t r = 0; r < tfc_member_rank(job->member); r++)
    if (tfc_member_is_client(job->member, r)) job->chief = false;
  if (job->own.profile) TFC_RETURN_IF_ERROR(run_kinds_open(&job->setup, job->chief, &job->setup.kinds));
  TFC_RETURN_IF_ERROR(run_initialise(&job->setup));
  TFC_RETURN_IF_ERROR(prepare_scripts(job));
  s = run_script(&job->setup);
  job->stopped = tfc_status_code(s) == TFC_CANCELLED && atomic_load(tfc_program_cancel()) && run_keeps(&job->own);
  return s;
}

// Writes what --save-checkpoint and --profile ask for, when the scripts of all tasks have ended. A profile that cannot
// be stored does not end the job; *out_code is the task's exit code then.
static tfc_status keep_of_script(struct job *job, int *out_code) {
  const bool stopped = atomic_load(tfc_program_cancel());
  if (!job->runs || !job->own.script) return NULL;
  if (job->own.save_checkpoint && job->chief && (!stopped || job->setup.steps))
    TFC_RETURN_IF_ERROR(run_save_tasks(&job->setup, job->own.save_checkpoint, true));
  if (!job->setup.kinds) return NULL;
  tfc_status s = run_kinds_store(job->setup.kinds, &job->setup, stopped);
  if (s) *out_code = tfc_program_fail(tfc_status_annotate(s, "%s", job->name));
  return NULL;
}

static tfc_status open_session(struct job *job) {
  struct run_setup *setup = &job->setup;
  setup->options = &job->own;
  setup->member = job->member;
  setup->tasks = &job->spec;
  TFC_RETURN_IF_ERROR(tfc_graph_load(job->graph, NULL, &setup->graph));
  setup->file = setup->graph;
  tfc_graph_retain(setup->file);
  TFC_RETURN_IF_ERROR(tfc_lower_loaded(&setup->graph));
  if (job->placement) TFC_RETURN_IF_ERROR(place(job));
  if (job->own.replicas) return NULL; // run_train makes another graph first
  return tfc_cluster_session_create(job->member, setup->graph, &job->own.execution, &setup->cluster);
}

static tfc_status run_own(struct job *job) {
  if (!job->runs) return NULL;
  TFC_RETURN_IF_ERROR(open_session(job));
  return job->own.script ? run_own_script(job) : run_train(&job->setup, job->chief, &job->stopped);
}

// Prints an error and ends the whole job.
static int fail(struct job *job, tfc_status s) {
  if (tfc_status_code(s) == TFC_CANCELLED && job->spec.tasks.count > 1 && atomic_load(tfc_program_cancel())) {
    const bool says = job->chief || (job->member && tfc_member_rank(job->member) == 0); // the whole job ends
    const int stopped = says ? tfc_program_fail(tfc_status_annotate(s, "%s", job->name)) : tfc_exit_code(s);
    if (!says) tfc_status_free(s);
    fflush(NULL);
    _exit(stopped);
  }
  if (atomic_load(&job->told)) { // another task failed, and its error was printed already
    const int code = tfc_exit_code(s);
    tfc_status_free(s);
    fflush(NULL);
    if (job->member) tfc_member_fail(job->member, code, "the job has failed");
    return code;
  }
  if (job->name[0]) s = tfc_status_annotate(s, "%s", job->name);
  char *why = tfc_format("%s", tfc_status_message(s));
  const int code = tfc_program_fail(s);
  fflush(NULL); // what this task has printed: the process is killed
  cli_failure_leave(job->options->supervise, code, "", why ? why : "out of memory"); // `why` names the task
  if (job->member) tfc_member_fail(job->member, code, why ? why : "out of memory");
  free(why);
  return code;
}

int run_cluster(const struct run_options *o, char **argv) {
  struct job job = {.options = o};
  int code = 0;
  if (o->restarts >= 0) {
    tfc_status s = cli_task_spec(o->cluster, &job.spec);
    code = s ? tfc_program_fail(s)
             : cli_restart(&(struct cli_restart){.program = "tfc-run",
                                                 .restarts = o->restarts,
                                                 .tasks = (uint32_t)job.spec.tasks.count,
                                                 .argv = argv,
                                                 .folder = o->supervise});
    tfc_cluster_spec_deinit(&job.spec);
    return code;
  }
  if (!tfc_guard_enter("tfc-run", &job.guard, &code)) return code;
  tfc_status s = join(&job);
  if (!s) s = run_own(&job);
  int stopped = 0;
  if (job.stopped) { // the other tasks still need this one
    stopped = job.chief ? tfc_program_fail(tfc_status_annotate(s, "%s", job.name)) : tfc_exit_code(s);
    if (!job.chief) tfc_status_free(s);
    s = NULL;
  }
  if (!s) run_finish_steps(o);
  if (!s) s = tfc_member_end(job.member, run_cut_off(o));
  int lost = 0;
  if (!s) s = keep_of_script(&job, &lost);
  if (!stopped) stopped = lost;
  const bool failed = s != NULL;
  if (!failed && !job.runs && run_keeps(o) && atomic_load(tfc_program_cancel())) stopped = 130;
  code = failed ? fail(&job, s) : stopped;
  // the session is freed first, because its queue runners need the tasks that serve
  tfc_cluster_session_free(job.setup.cluster);
  job.setup.cluster = NULL;
  if (!failed && (s = tfc_member_leave(job.member)))
    code = fail(&job, s);
  else if (!code && job.chief)
    cli_failure_forget(o->supervise);
  struct tfc_device_set devices = job.setup.devices;
  job.setup.devices = (struct tfc_device_set){0};
  run_setup_close(&job.setup);
  tfc_member_free(job.member);
  tfc_devices_close(&devices);
  tfc_cluster_spec_deinit(&job.spec);
  tfc_placed_deinit(&job.placed);
  free(job.graph), free(job.script), free(job.out), free(job.placement);
  return code;
}
