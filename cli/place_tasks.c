// tfc-place under mpirun or srun: this process is one task of a job. Every task times the step's operations on its own
// devices. Task 0 then times the links between tasks and places as with --measure-with, where steps run on all tasks;
// the other tasks run their parts of these steps until task 0 has ended.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/guard.h"
#include "cli/measuring.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/restart.h"
#include "cli/step_args.h"
#include "cli/task.h"
#include "placer/measure/step_names.h"
#include "placer/tasks/exchange.h"
#include "placer/tasks/machine.h"
#include "placer/tasks/profile.h"
#include "placer/tasks/steps.h"
#include "profiler/lock.h"
#include "profiler/store.h"
#include "profiler/store_runs.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

// Profiling must end after profile_share of the time (--time, or usual_seconds), and the timing of links after
// links_share.
static const double usual_seconds = 600, profile_share = 0.2, links_share = 0.3;

struct place_tasks {
  struct place_options o; // of this task
  struct tfc_cluster_spec spec;
  struct tfc_member *member;
  struct tfc_device_set devices;
  struct tfc_guard *guard; // the parent process that reports a crash (cli/guard.h); NULL: there is none
  struct tfc_lock *lock;   // the lock of measuring runs; the first task of each host holds it
  char name[TFC_TASK_TEXT], text[32], *list; // the task's name; all tasks, as text; the task's devices, as in --devices
  bool patterns;                             // --devices has TensorFlow's names
  uint32_t rank, beside;
  int64_t begin_ns;
  double seconds;
  atomic_bool told;
  struct tfc_graph *graph;
  struct cli_step step;
  struct tfc_tensor *feeds, *init_feeds;
  // Task 0:
  struct tfc_task_link *links;
  uint32_t link_count, node_count;
  double **us; // [task][device * node_count + node]
};

int place_check_tasks(const struct tfc_program *program, const struct place_options *o) {
  const bool tasks = o->cluster || cli_task_started();
  if (o->restarts >= 0 && (!o->cluster || cli_task_started()))
    return tfc_flags_error(program, "--restarts needs --cluster, and starts mpirun itself: it is not for its tasks");
  if (!tasks) return 0;
  if (o->machine || o->measure_with || o->replicas)
    return tfc_flags_error(program,
                           "--machine, --measure-with and --replicas are for one process, and here are several "
                           "tasks");
  if (o->checkpoint) return tfc_flags_error(program, "--checkpoint is not for several tasks: they run the initialiser");
  if (o->request.objective == TFC_OBJECTIVE_THROUGHPUT)
    return tfc_flags_error(program, "--objective throughput is not for several tasks: steps run one by one there");
  if (o->common.untrusted) return tfc_flags_error(program, "--untrusted is not for several tasks");
  return 0;
}

// --- Joining the job -------------------------------------------------------------------------------------------------
static void say_failure(void *arg, int code, const char *why) {
  struct place_tasks *t = arg;
  (void)code;
  atomic_store(&t->told, true);
  fprintf(stderr, "tfc-place: %s: %s\n", t->name, why);
}

// Finds the devices that this task opens: those among the names in --devices that are its own.
static tfc_status find_list(struct place_tasks *t) {
  const char *devices = t->o.devices;
  t->patterns = devices && strchr(devices, '/');
  if (t->patterns) return cli_task_devices(devices, t->name, &t->list);
  t->list = tfc_format("%s", devices ? devices : "cpu:0");
  return t->list ? NULL : tfc_status_no_memory(NULL);
}

static tfc_status join(struct place_tasks *t) {
  tfc_status s = NULL;
  struct tfc_transport *transport = NULL;
  if (t->o.cluster) TFC_TRY(s, cli_task_spec(t->o.cluster, &t->spec));
  TFC_TRY(s, cli_task_connect(&t->spec, t->o.cluster, &transport));
  t->rank = transport->rank, t->beside = transport->beside;
  tfc_cluster_task_name(&t->spec, t->rank, t->name);
  snprintf(t->text, sizeof t->text, "%zu tasks", t->spec.tasks.count);
  if (t->guard) snprintf(t->guard->name, sizeof t->guard->name, "%s", t->name);
  cli_task_share_cores(transport, NULL, NULL);
  TFC_TRY(s, tfc_status_annotate(find_list(t), "--devices"));
  TFC_TRY(s, tfc_devices_open(t->list, NULL, 0, &t->devices));
  const struct tfc_member_options options = {.spec = &t->spec,
                                             .transport = transport,
                                             .devices = &t->devices,
                                             .has_script = true,
                                             .failed = say_failure,
                                             .last = t->guard ? t->guard->last : NULL,
                                             .arg = t};
  transport = NULL;
  TFC_TRY(s, tfc_member_join(&options, &t->member));
  for (uint32_t r = 0; t->rank == 0 && r < t->spec.tasks.count; r++) {
    char name[TFC_TASK_TEXT];
    struct tfc_text devices = {0};
    tfc_member_show_devices(t->member, r, &devices);
    tfc_say("%s on %s: %s", tfc_cluster_task_name(&t->spec, r, name), tfc_member_host(t->member, r),
            devices.data ? devices.data : "");
    tfc_text_deinit(&devices);
  }
out:
  cli_task_close(transport, "tfc-place", t->name, s);
  return s;
}

// Only one run at a time measures on a host: the host's first task takes the lock for all tasks on this host.
static tfc_status take_lock(struct place_tasks *t) {
  return t->beside == 0 ? cli_measuring_lock(t->o.wait, &t->lock) : NULL;
}

// --- Reading and timing the step -------------------------------------------------------------------------------------
static tfc_status values_of(struct place_tasks *t, const struct tfc_step_feed *feeds, uint32_t count,
                            struct tfc_tensor **out) {
  const struct tfc_step_request *given = &t->step.request;
  struct tfc_tensor *values = *out = calloc(count + 1u, sizeof *values);
  if (!values) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < given->feed_count; k++)
      if (t->step.values[k].buffer && given->feeds[k].output.node == feeds[i].output.node &&
          given->feeds[k].output.index == feeds[i].output.index)
        tfc_tensor_share(&t->step.values[k], &values[i]);
    if (!values[i].dtype) TFC_RETURN_IF_ERROR(tfc_step_synthetic(&feeds[i], (uint64_t)t->o.execution.seed, &values[i]));
  }
  return NULL;
}

static tfc_status read_step(struct place_tasks *t) {
  const struct place_options *o = &t->o;
  const struct cli_step_args args = {
      .fetches = o->fetches, .targets = o->targets, .inits = o->inits, .feeds = o->feeds, .batch = o->batch};
  TFC_RETURN_IF_ERROR(tfc_graph_load(o->graph, NULL, &t->graph));
  TFC_RETURN_IF_ERROR(cli_step_infer(t->graph, &args, &t->step));
  TFC_RETURN_IF_ERROR(tfc_lower_loaded(&t->graph));
  t->node_count = t->graph->node_count;
  TFC_RETURN_IF_ERROR(values_of(t, t->step.spec.feeds, t->step.spec.feed_count, &t->feeds));
  return values_of(t, t->step.spec.init_feeds, t->step.spec.init_feed_count, &t->init_feeds);
}

static double moment(const struct place_tasks *t, double share) {
  return 1e-9 * (double)t->begin_ns + share * t->seconds;
}

static tfc_status profile(struct place_tasks *t, double *us) {
  tfc_status s = NULL;
  const struct tfc_step_spec *step = &t->step.spec;
  struct tfc_measure_feed *feeds = calloc(step->feed_count + 1u, sizeof *feeds);
  struct tfc_step_names names = {0};
  struct tfc_measure_options o = {.graph = t->o.graph,
                                  .devices = t->list,
                                  .execution = t->o.execution,
                                  .feeds = feeds,
                                  .cancel = tfc_program_cancel()};
  char *path = NULL, *lock = NULL;
  if (!feeds) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < step->feed_count; i++)
    feeds[i] = (struct tfc_measure_feed){step->feeds[i].name, &t->feeds[i]};
  TFC_TRY(s, tfc_step_names_init(&names, t->graph, step, &o));
  // The host's lock is held for all tasks, so each task's worker has a lock file of its own.
  if (!(path = tfc_format("tfc-measuring.task%u.lock", t->rank))) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_lock_path(path, &lock));
  o.lock = lock;
  TFC_TRY(s, tfc_task_profile(&o, t->devices.count, t->node_count, moment(t, profile_share), us));
out:
  tfc_step_names_deinit(&names);
  free(feeds), free(path), free(lock);
  return s;
}

// Collects every task's times at task 0. Tasks of one host profile one after the other, because at the same time they
// would share its memory bandwidth and its caches.
static tfc_status profile_all(struct place_tasks *t) {
  tfc_status s = NULL;
  const atomic_bool *cancel = t->rank ? NULL : tfc_program_cancel();
  const uint32_t tasks = (uint32_t)t->spec.tasks.count, values = t->devices.count * t->node_count;
  if (!(t->us = calloc(tasks + 1u, sizeof *t->us))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t r = 0; r < tasks; r++)
    if (r == t->rank || t->rank == 0) {
      t->us[r] = malloc(((size_t)tfc_member_device_count(t->member, r) * t->node_count + 1) * sizeof **t->us);
      if (!t->us[r]) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
  TFC_TRY(s, profile(t, t->us[t->rank]));
  if (t->rank) TFC_TRY(s, tfc_task_give(t->member, &t->spec, t->us[t->rank], values));
  TFC_TRY(s, tfc_member_barrier(t->member, "profiled", cancel));
  for (uint32_t r = 1; t->rank == 0 && r < tasks; r++)
    TFC_TRY(s, tfc_task_take(t->member, &t->spec, r, tfc_member_device_count(t->member, r) * t->node_count, t->us[r]));
out:
  return s;
}

static tfc_status time_links(struct place_tasks *t) {
  const uint32_t tasks = (uint32_t)t->spec.tasks.count;
  char a[32], b[32], from[TFC_TASK_TEXT], to[TFC_TASK_TEXT];
  if (!(t->links = calloc((size_t)tasks * tasks + 1, sizeof *t->links))) return tfc_status_no_memory(NULL);
  TFC_RETURN_IF_ERROR(tfc_task_links(t->member, &t->spec, moment(t, links_share), t->links, &t->link_count));
  for (uint32_t i = 0; i < t->link_count && i < 8; i++)
    for (int k = 0; k < TFC_TASK_LINK_SIZES; k += TFC_TASK_LINK_SIZES - 1)
      tfc_say("%s to %s: %s in %s", tfc_cluster_task_name(&t->spec, t->links[i].a, from),
              tfc_cluster_task_name(&t->spec, t->links[i].b, to), tfc_show_bytes(a, t->links[i].point[k].bytes),
              tfc_show_us(b, t->links[i].point[k].time_us));
  return NULL;
}

// --- Machine, costs and measured steps for the placer ----------------------------------------------------------------
const char *place_tasks_text(const struct place_tasks *t) {
  return t->text;
}

tfc_status place_tasks_machine(const struct place_tasks *t, struct tfc_machine **out) {
  return tfc_task_machine(t->member, &t->spec, t->patterns ? t->o.devices : NULL, t->links, t->link_count, out);
}

// The time of a kind is the mean over its devices. An operation that no device timed (because it waits for something
// outside of the step) counts as taking no time.
tfc_status place_tasks_costs(const struct place_tasks *t, const struct tfc_machine *m, const uint32_t *ops,
                             uint32_t op_count, struct tfc_cost_table **out) {
  tfc_status s = NULL;
  struct tfc_cost_table *table = NULL;
  struct tfc_task_device *where = calloc(m->device_count + 1u, sizeof *where);
  uint32_t *kind = calloc(m->device_count + 1u, sizeof *kind), kinds = 0;
  if (!where || !kind) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_task_devices(t->member, &t->spec, m, where));
  for (uint32_t d = 0; d < m->device_count; d++) {
    kind[d] = kinds;
    for (uint32_t e = 0; e < d && kind[d] == kinds; e++)
      if (tfc_str_equal(m->devices[e].kind, m->devices[d].kind)) kind[d] = kind[e];
    kinds += kind[d] == kinds;
  }
  TFC_TRY(s, tfc_cost_table_create(t->node_count, kinds, &table));
  for (uint32_t i = 0; i < op_count; i++) {
    bool timed = false;
    for (uint32_t k = 0; k < kinds; k++) {
      double sum = 0;
      uint32_t n = 0;
      for (uint32_t d = 0; d < m->device_count; d++) {
        const double us = t->us[where[d].rank][(size_t)where[d].number * t->node_count + ops[i]];
        if (kind[d] == k && isfinite(us)) sum += us, n++;
      }
      if (n) TFC_TRY(s, tfc_cost_table_put(table, ops[i], k, sum / n));
      timed |= n > 0;
    }
    for (uint32_t k = 0; k < kinds && !timed; k++) TFC_TRY(s, tfc_cost_table_put(table, ops[i], k, 0));
  }
  *out = table, table = NULL;
out:
  tfc_cost_table_free(table);
  free(where), free(kind);
  return s;
}

tfc_status place_tasks_steps(struct place_tasks *t, struct tfc_task_steps_options *o, struct tfc_task_steps **out) {
  o->member = t->member, o->graph = t->o.graph, o->execution = &t->o.execution, o->step = &t->step.spec;
  o->feeds = t->feeds, o->init_feeds = t->init_feeds, o->cancel = tfc_program_cancel();
  return tfc_task_steps_create(o, out);
}

// --- What each task does ---------------------------------------------------------------------------------------------
static tfc_status work(struct place_tasks *t, int *code) {
  TFC_RETURN_IF_ERROR(join(t));
  TFC_RETURN_IF_ERROR(take_lock(t));
  TFC_RETURN_IF_ERROR(tfc_member_barrier(t->member, "alone", t->rank ? NULL : tfc_program_cancel()));
  // begins only now, because the time in which it waited for other measuring runs does not count
  t->begin_ns = tfc_now_ns();
  TFC_RETURN_IF_ERROR(read_step(t));
  TFC_RETURN_IF_ERROR(profile_all(t));
  if (t->rank) return tfc_member_end(t->member, NULL); // this task only serves
  TFC_RETURN_IF_ERROR(tfc_member_wait_alone(t->member, tfc_program_cancel()));
  TFC_RETURN_IF_ERROR(time_links(t));
  t->o.time = fmax(1, t->seconds - 1e-9 * (double)(tfc_now_ns() - t->begin_ns));
  *code = place_modelled(&t->o, false);
  return tfc_member_end(t->member, NULL);
}

// Prints an error and ends the whole job.
static int fail(struct place_tasks *t, tfc_status s) {
  char *why = NULL;
  int code;
  if (atomic_load(&t->told)) { // another task failed, and its error was printed already
    code = tfc_exit_code(s);
    tfc_status_free(s);
  } else {
    if (t->name[0]) s = tfc_status_annotate(s, "%s", t->name);
    why = tfc_format("%s", tfc_status_message(s));
    code = tfc_program_fail(s);
  }
  fflush(NULL);
  if (t->member) tfc_member_fail(t->member, code, why ? why : "the job has failed");
  free(why);
  return code;
}

int place_tasks(const struct place_options *options) {
  struct place_tasks t = {.o = *options, .begin_ns = tfc_now_ns()};
  int code = 0;
  t.o.tasks = &t;
  t.seconds = options->time > 0 ? options->time : usual_seconds;
  if (!tfc_guard_enter("tfc-place", &t.guard, &code)) return code;
  tfc_status s = work(&t, &code);
  if (s) code = fail(&t, s);
  if (!s && (s = tfc_member_leave(t.member))) code = fail(&t, s);
  for (uint32_t i = 0; t.feeds && i < t.step.spec.feed_count; i++) tfc_tensor_release(&t.feeds[i]);
  for (uint32_t i = 0; t.init_feeds && i < t.step.spec.init_feed_count; i++) tfc_tensor_release(&t.init_feeds[i]);
  for (uint32_t r = 0; t.us && r < t.spec.tasks.count; r++) free(t.us[r]);
  free(t.feeds), free(t.init_feeds), free(t.us), free(t.links), free(t.list);
  cli_step_deinit(&t.step);
  tfc_graph_release(t.graph);
  tfc_member_free(t.member);
  tfc_lock_release(t.lock);
  tfc_devices_close(&t.devices);
  tfc_cluster_spec_deinit(&t.spec);
  return code;
}

// --- Starting the tasks, and starting them again ---------------------------------------------------------------------
struct again {
  const struct place_options *o;
  int64_t before; // the last interrupted run of the database before the tasks were started; 0: there was none
  char word[48];
};

// Returns the number of the last run over several tasks that can be continued; 0: there is none.
static int64_t last_interrupted(const struct place_options *o) {
  struct tfc_store *store = NULL;
  int64_t run = 0;
  tfc_status s = tfc_store_open(o->db, &(struct tfc_store_options){0}, &store);
  if (!s) s = tfc_store_find_interrupted(store, -1, "measured_with", &run);
  tfc_store_close(store);
  if (!s) return run;
  tfc_status_free(s); // there is no database yet, or nothing to go on with
  return 0;
}

static const char *resume_word(void *user) {
  struct again *a = user;
  const int64_t run = last_interrupted(a->o);
  if (a->o->resume || run == a->before) return NULL; // it goes on anyway, or begins anew
  snprintf(a->word, sizeof a->word, "--resume=%lld", (long long)run);
  return a->word;
}

int place_tasks_restarted(const struct place_options *o, char **argv) {
  struct tfc_cluster_spec spec = {0};
  struct again again = {.o = o, .before = last_interrupted(o)};
  tfc_status s = cli_task_spec(o->cluster, &spec);
  const int code = s ? tfc_program_fail(s)
                     : cli_restart(&(struct cli_restart){.program = "tfc-place",
                                                         .restarts = o->restarts,
                                                         .tasks = (uint32_t)spec.tasks.count,
                                                         .argv = argv,
                                                         .again = resume_word,
                                                         .user = &again});
  tfc_cluster_spec_deinit(&spec);
  return code;
}
